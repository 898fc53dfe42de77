// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ERC1967Proxy} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Proxy.sol";
import {Sheet} from "./Sheet.sol";

/// The amount in the low bits; the top bit says that the account was ever written.
contract PackedFlag is Sheet {
    mapping(address => uint256) private words;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function _read(address account) internal view override returns (uint256) { return words[account] << 1 >> 1; }
    function _write(address account, uint256 amount) internal override { words[account] = amount | 1 << 255; }
}

/// The amount in the low 128 bits, the time of the last change above.
contract PackedHigh is Sheet {
    mapping(address => uint256) private words;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function _read(address account) internal view override returns (uint256) { return uint128(words[account]); }
    function _write(address account, uint256 amount) internal override { words[account] = amount | block.timestamp << 128; }
}

/// A counter in the low 64 bits, the amount in the 128 above.
contract PackedMiddle is Sheet {
    mapping(address => uint256) private words;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function _read(address account) internal view override returns (uint256) { return uint128(words[account] >> 64); }
    function _write(address account, uint256 amount) internal override {
        words[account] = amount << 64 | (uint64(words[account]) + 1);
    }
}

/// The amount under a mask that differs by account.
contract Masked is Sheet {
    mapping(address => uint256) private words;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function _mask(address account) private view returns (uint256) { return uint256(keccak256(abi.encode(account, address(this)))); }

    function _read(address account) internal view override returns (uint256) {
        return words[account] == 0 ? 0 : words[account] ^ _mask(account);
    }

    function _write(address account, uint256 amount) internal override {
        words[account] = amount == 0 ? 0 : amount ^ _mask(account);
    }
}

/// Half of the amount in one mapping, the rest in another.
contract TwoMappings is Sheet {
    mapping(address => uint256) private left;
    mapping(address => uint256) private right;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function _read(address account) internal view override returns (uint256) { return left[account] + right[account]; }
    function _write(address account, uint256 amount) internal override {
        left[account] = amount / 2;
        right[account] = amount - amount / 2;
    }
}

/// The amount is the last of the account's checkpoints.
contract Checkpointed is Sheet {
    struct Checkpoint { uint128 fromBlock; uint128 value; }

    mapping(address => Checkpoint[]) private history;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function balanceOfAt(address account, uint256 number) external view returns (uint256) {
        Checkpoint[] storage points = history[account];
        for (uint256 i = points.length; i > 0; i--) if (points[i - 1].fromBlock <= number) return points[i - 1].value;
        return 0;
    }

    function _read(address account) internal view override returns (uint256) {
        Checkpoint[] storage points = history[account];
        return points.length == 0 ? 0 : points[points.length - 1].value;
    }

    function _write(address account, uint256 amount) internal override {
        Checkpoint[] storage points = history[account];
        if (points.length != 0 && points[points.length - 1].fromBlock == block.number) points[points.length - 1].value = uint128(amount);
        else points.push(Checkpoint(uint128(block.number), uint128(amount)));
    }
}

/// Keeps other contracts' balances.
contract BalanceStore {
    address private immutable keeper = msg.sender;
    uint256 private version = 1;
    mapping(address => uint256) public amountOf;

    function set(address account, uint256 amount) external {
        require(msg.sender == keeper, "not the keeper");
        amountOf[account] = amount;
    }
}

/// Keeps its balances in another contract.
contract StoredElsewhere is Sheet {
    BalanceStore public store;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function _endow(address to, uint256 supply) internal override {
        store = new BalanceStore();
        store.set(to, supply);
    }

    function _read(address account) internal view override returns (uint256) { return store.amountOf(account); }
    function _write(address account, uint256 amount) internal override { store.set(account, amount); }
}

/// The logic of a token whose whole state lies in the ERC-7201 namespace `openzeppelin.storage.ERC20`.
contract NamespacedLogic {
    struct State {
        mapping(address => uint256) balances;
        mapping(address => mapping(address => uint256)) allowances;
        uint256 totalSupply;
        string name;
        string symbol;
        uint8 decimals;
    }

    bytes32 private constant NAMESPACE = 0x52c63247e1f47db19d5ce0460030c497f067ca4cebf71ba98eeadabe20bace00;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    function initialize(string memory n, string memory s, uint8 d, uint256 supply, address to) external {
        State storage state = _state();
        require(state.totalSupply == 0, "initialized");
        (state.name, state.symbol, state.decimals, state.totalSupply) = (n, s, d, supply);
        state.balances[to] = supply;
        emit Transfer(address(0), to, supply);
    }

    function name() external view returns (string memory) { return _state().name; }
    function symbol() external view returns (string memory) { return _state().symbol; }
    function decimals() external view returns (uint8) { return _state().decimals; }
    function totalSupply() external view returns (uint256) { return _state().totalSupply; }
    function balanceOf(address account) external view returns (uint256) { return _state().balances[account]; }
    function allowance(address holder, address spender) external view returns (uint256) { return _state().allowances[holder][spender]; }

    function approve(address spender, uint256 amount) external returns (bool) {
        _state().allowances[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _move(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        uint256 allowed = _state().allowances[from][msg.sender];
        if (allowed != type(uint256).max) _state().allowances[from][msg.sender] = allowed - amount;
        _move(from, to, amount);
        return true;
    }

    function _move(address from, address to, uint256 amount) private {
        _state().balances[from] -= amount;
        _state().balances[to] += amount;
        emit Transfer(from, to, amount);
    }

    function _state() private pure returns (State storage state) {
        assembly { state.slot := NAMESPACE }
    }
}

/// A namespaced token behind an EIP-1967 proxy; its logic is deployed along with it.
contract NamespacedProxy is ERC1967Proxy {
    constructor(string memory n, string memory s, uint8 d, uint256 supply)
        ERC1967Proxy(
            address(new NamespacedLogic()), abi.encodeCall(NamespacedLogic.initialize, (n, s, d, supply, msg.sender))
        )
    {}
}

/// Amount, time of the last change and number of sales in one word; a sale is taxed 5 % for each one before.
contract PackedSales is Sheet {
    struct Word { uint96 amount; uint64 changed; uint32 sales; }

    mapping(address => Word) private words;
    mapping(address => bool) public isPool;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function markPool(address pool) external {
        require(msg.sender == owner, "not the owner");
        isPool[pool] = true;
    }

    function _read(address account) internal view override returns (uint256) { return words[account].amount; }
    function _write(address account, uint256 amount) internal override {
        (words[account].amount, words[account].changed) = (uint96(amount), uint64(block.timestamp));
    }

    function _move(address from, address to, uint256 amount) internal override {
        uint256 tax = isPool[to] && from != owner ? amount * (words[from].sales++ * 5) / 100 : 0;
        if (tax != 0) super._move(from, owner, tax);
        super._move(from, to, amount - tax);
    }
}
