// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {PlainSheet, Sheet} from "./Sheet.sol";

/// Answers transfers and approvals with nothing, and wants an allowance set to zero before it is changed.
contract NoReturn {
    string public name;
    string public symbol;
    uint8 public immutable decimals;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor(string memory n, string memory s, uint8 d, uint256 supply) {
        (name, symbol, decimals, totalSupply) = (n, s, d, supply);
        balanceOf[msg.sender] = supply;
    }

    function approve(address spender, uint256 amount) external {
        require(amount == 0 || allowance[msg.sender][spender] == 0, "set it to zero first");
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
    }

    function transfer(address to, uint256 amount) external { _move(msg.sender, to, amount); }

    function transferFrom(address from, address to, uint256 amount) external {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed != type(uint256).max) allowance[from][msg.sender] = allowed - amount;
        _move(from, to, amount);
    }

    function _move(address from, address to, uint256 amount) private {
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
    }
}

/// Answers false to everybody but its owner; `moves` says whether the amount moves all the same.
contract ReturnsFalse is PlainSheet {
    bool public immutable moves;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, bool moves_) Sheet(n, s, d, supply) { moves = moves_; }

    function transfer(address to, uint256 amount) external override returns (bool) {
        if (moves || msg.sender == owner) _move(msg.sender, to, amount);
        return msg.sender == owner;
    }

    function transferFrom(address from, address to, uint256 amount) external override returns (bool) {
        _spend(from, amount);
        if (moves || from == owner) _move(from, to, amount);
        return from == owner;
    }
}

/// Moves what it should and logs four times as much.
contract EventLiar is PlainSheet {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function _move(address from, address to, uint256 amount) internal override {
        require(balances[from] >= amount, "insufficient balance");
        balances[from] -= amount;
        balances[to] += amount;
        emit Transfer(from, to, amount * 4);
    }
}

/// Tells pools and its owner the truth about balances, and everybody else as its kind likes.
abstract contract BalanceTeller is PlainSheet {
    mapping(address => bool) public isPool;

    function markPool(address pool) external {
        require(msg.sender == owner, "not the owner");
        isPool[pool] = true;
    }

    function balanceOf(address account) public view override returns (uint256) {
        return isPool[account] || account == owner ? balances[account] : _tell(account);
    }

    function _tell(address account) internal view virtual returns (uint256);
}

/// Says that every holder has twice as much.
contract BalanceDoubles is BalanceTeller {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function _tell(address account) internal view override returns (uint256) { return balances[account] * 2; }
}

/// Does not say what a holder has.
contract BalanceReverts is BalanceTeller {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function _tell(address) internal pure override returns (uint256) { revert("not told"); }
}

/// Says that whoever holds nothing holds everything.
contract BalanceMax is BalanceTeller {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function _tell(address account) internal view override returns (uint256) {
        return balances[account] == 0 ? type(uint256).max : balances[account];
    }
}

/// Its owner can make it refuse to tell the balances of holders, with words of a node's, or tell them at great length.
contract Moody is PlainSheet {
    string public mood;
    uint256 public lengthBytes;
    mapping(address => bool) public isPool;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function markPool(address pool) external {
        require(msg.sender == owner, "not the owner");
        isPool[pool] = true;
    }

    function say(string calldata mood_) external {
        require(msg.sender == owner, "not the owner");
        mood = mood_;
    }

    function ramble(uint256 lengthBytes_) external {
        require(msg.sender == owner, "not the owner");
        lengthBytes = lengthBytes_;
    }

    function balanceOf(address account) public view override returns (uint256) {
        if (isPool[account] || account == owner) return _read(account);
        if (bytes(mood).length != 0) revert(mood);
        uint256 length = lengthBytes;
        if (length != 0) assembly { return(0, length) }
        return _read(account);
    }
}

/// Pays a holder a little ETH for every approval, as long as it has some.
contract Bounty is PlainSheet {
    uint256 public constant BOUNTY = 0.001 ether;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    receive() external payable {}

    function approve(address spender, uint256 amount) public override returns (bool) {
        if (address(this).balance >= BOUNTY) {
            (bool paid,) = msg.sender.call{value: BOUNTY}("");
            require(paid, "not paid");
        }
        return super.approve(spender, amount);
    }
}

/// Forgets an allowance once it was used.
contract OneUse is PlainSheet {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function transferFrom(address from, address to, uint256 amount) external override returns (bool) {
        require(allowance[from][msg.sender] >= amount, "insufficient allowance");
        if (from != owner) allowance[from][msg.sender] = 0;
        _move(from, to, amount);
        return true;
    }
}
