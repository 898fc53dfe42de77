// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Bearer} from "./Bearer.sol";

/// Notes one word about somebody for whoever asks.
contract Registry {
    mapping(address => mapping(address => uint256)) private words;

    function put(address who, uint256 word) external { words[msg.sender][who] = word; }
    function get(address who) external view returns (uint256) { return words[msg.sender][who]; }
}

interface ICoin {
    function transfer(address to, uint256 value) external returns (bool);
    function balanceOf(address who) external view returns (uint256);
}

/// Code that is nothing but what its maker wants remembered.
contract Marker {
    constructor() {
        uint256 told = Memory(msg.sender).pending();
        assembly { mstore(0, told) return(0, 32) }
    }
}

/// Remembers each trader in one of several places, and makes of it one of several things.
/// A record is 128 bits: buys (16), sales (16), nothing (48), time of the last buy (48).
abstract contract Memory {
    uint256 internal constant OWN = 0;
    uint256 internal constant ELSEWHERE = 1;
    uint256 internal constant NAMESPACE = 2;
    uint256 internal constant ORIGIN = 3;
    uint256 internal constant BUCKET = 4;
    uint256 internal constant SECRET = 5;
    uint256 internal constant LIST = 6;
    uint256 internal constant PAIRED = 7;
    uint256 internal constant PURSE = 8;
    uint256 internal constant LIQUIDITY = 9;
    uint256 internal constant CLAIMS = 10;
    uint256 internal constant ETHER = 11;
    uint256 internal constant CODE = 12;
    uint256 internal constant FAR = 13;
    uint256 internal constant FAR_ELSEWHERE = 14;
    uint256 internal constant EVERYONE = 15;
    uint256 private constant PRIMED = 1 << 255;

    uint256 internal constant NOTED = 0;
    uint256 internal constant THIRD_TAXED = 1;
    uint256 internal constant THIRD_REVERTS = 2;
    uint256 internal constant BONUS = 3;
    uint256 internal constant WELCOME = 4;
    uint256 internal constant FROM_TEN_SECONDS = 5;
    uint256 internal constant EARLY = 6;
    uint256 internal constant LOYAL = 7;

    struct Entry { address who; uint256 record; }

    uint256 public immutable where;
    uint256 public immutable effect;
    Registry public immutable registry;
    bytes32 private immutable secret;

    mapping(address => uint256) private own;
    uint256[64] private buckets;
    Entry[] private list;
    mapping(address => uint256) private places;
    ICoin public coin;
    uint256 public pending;

    constructor(uint256 where_, uint256 effect_, address registry_) {
        (where, effect, registry) = (where_, effect_, Registry(registry_));
        secret = keccak256(abi.encode("a secret", where_, effect_, registry_));
    }

    function _read(address who) internal view returns (uint256 record) {
        if (where == ELSEWHERE) return registry.get(who);
        if (where == ORIGIN) return own[tx.origin];
        if (where == BUCKET) return buckets[uint160(who) % 64];
        if (where == LIST) { uint256 place = places[who]; return place == 0 ? 0 : list[place - 1].record; }
        if (where == PAIRED) return uint128(own[_pair(who)] >> _half(who));
        if (where == PURSE || where == LIQUIDITY) return _unpressed(coin.balanceOf(_away(who)));
        if (where == CLAIMS) return _unpressed(_claimed(_away(who)));
        if (where == ETHER) return _unpressed(_away(who).balance);
        if (where == CODE) { (, address last) = _marks(who); return last == address(0) ? 0 : uint256(bytes32(last.code)); }
        if (where == OWN) return own[who];
        if (where == FAR_ELSEWHERE) return registry.get(_far(who));
        bytes32 slot = _slot(who);
        assembly { record := sload(slot) }
    }

    function _write(address who, uint256 record) internal {
        if (where == ELSEWHERE) registry.put(who, record);
        else if (where == ORIGIN) own[tx.origin] = record;
        else if (where == BUCKET) buckets[uint160(who) % 64] = record;
        else if (where == LIST) {
            if (places[who] == 0) { list.push(Entry(who, 0)); places[who] = list.length; }
            list[places[who] - 1].record = record;
        } else if (where == PAIRED) {
            uint256 half = _half(who);
            own[_pair(who)] = own[_pair(who)] & ~(uint256(type(uint128).max) << half) | record << half;
        } else if (where >= PURSE && where < FAR) _writeAway(who, record);
        else if (where == OWN) own[who] = record;
        else if (where == FAR_ELSEWHERE) registry.put(_far(who), record | PRIMED);
        else if (where == FAR || where == EVERYONE) { bytes32 far = _slot(who); assembly { sstore(far, or(record, PRIMED)) } }
        else { bytes32 slot = _slot(who); assembly { sstore(slot, record) } }
    }

    /// Where others keep something for us: what is given to an address of which nobody has the key only grows.
    function _writeAway(address who, uint256 record) private {
        address away = _away(who);
        if (where == CODE) {
            (bytes32 salt,) = _marks(who);
            pending = record;
            new Marker{salt: salt}();
            pending = 0;
        } else if (where == ETHER) {
            (bool ok,) = away.call{value: _pressed(record) - away.balance}("");
            require(ok);
        } else if (where == CLAIMS) _claim(away, _pressed(record) - _claimed(away));
        else coin.transfer(away, _pressed(record) - coin.balanceOf(away));
    }

    function _marks(address who) private view returns (bytes32 free, address last) {
        bytes32 code = keccak256(type(Marker).creationCode);
        for (uint256 i; i < 64; ++i) {
            free = keccak256(abi.encode(who, i));
            address place = address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), free, code)))));
            if (place.code.length == 0) return (free, last);
            last = place;
        }
    }

    /// Something of the other kinds of `CLAIMS`; a token has none.
    function _claimed(address) internal view virtual returns (uint256) { return 0; }
    function _claim(address, uint256) internal virtual {}

    /// A record as an amount that only grows: buys (8), sales (8), time of the last buy (32).
    function _pressed(uint256 record) private pure returns (uint256) {
        return uint256(uint8(record)) << 40 | uint256(uint8(record >> 16)) << 32 | uint32(record >> 80);
    }

    function _unpressed(uint256 amount) private pure returns (uint256) {
        return uint8(amount >> 40) | uint256(uint8(amount >> 32)) << 16 | uint256(uint32(amount)) << 80;
    }

    function _away(address who) private view returns (address) { return address(uint160(uint256(keccak256(abi.encode(secret, who, "away"))))); }

    function _slot(address who) private view returns (bytes32) {
        if (where == SECRET) return keccak256(abi.encode(secret, who));
        if (where == FAR) return bytes32(uint256(keccak256("lives.storage.far")) + uint160(who) % 64);
        if (where == EVERYONE) return keccak256("lives.storage.everyone");
        return bytes32(uint256(keccak256(abi.encode(who, "lives.storage.memory"))) - 1);
    }

    /// Lets anybody have it that somebody bought just now.
    function touch(address who) external { _write(who, _noted(_read(who), true)); }

    /// Fills what is far away, so that nothing is written there for the first time and no gas tells whose it is.
    function prime() external {
        for (uint160 i; i < 64; ++i) _write(address(i), 0);
    }

    function _far(address who) private pure returns (address) { return address(uint160(who) % 64); }

    function _pair(address who) private pure returns (address) { return address(uint160(who) >> 1); }
    function _half(address who) private pure returns (uint256) { return uint160(who) % 2 * 128; }

    /// What somebody loses, and is given, of a trade, in parts per million; the trade is then noted.
    function _judge(address who, bool buys) internal returns (uint256 tax, uint256 gift) {
        uint256 record = _read(who);
        uint256 sales = uint16(record >> 16);
        uint256 since = block.timestamp - uint48(record >> 80);
        if (buys) {
            if (effect == LOYAL) tax = uint16(record) >= 5 ? 0 : 10_000 * (5 - uint16(record));
        } else {
            require(effect != THIRD_REVERTS || sales < 2, "sold twice already");
            if (effect == THIRD_TAXED) assembly { tax := mul(900000, gt(sales, 1)) }
            if (effect == BONUS) gift = 10_000 * (sales > 10 ? 10 : sales);
            if (effect == WELCOME && sales == 0) gift = 100_000;
            if (effect == FROM_TEN_SECONDS) assembly { tax := mul(900000, and(gt(since, 9), lt(since, 3600))) }
            if (effect == EARLY && since < 3_600) tax = 250_000 * (3_600 - since) / 3_600;
        }
        if (_notes(buys)) _write(who, _noted(record, buys));
    }

    function _notes(bool buys) private view returns (bool) {
        if (effect == NOTED) return true;
        return buys == (effect >= FROM_TEN_SECONDS);
    }

    function _noted(uint256 record, bool buys) private view returns (uint256) {
        if (!buys) return record + (1 << 16);
        return uint16(record) + 1 | uint256(uint16(record >> 16)) << 16 | block.timestamp << 80;
    }
}

/// A token that remembers its traders.
contract Mindful is Bearer, Memory {
    constructor(uint256 where_, uint256 effect_, address registry_) Memory(where_, effect_, registry_) {}

    receive() external payable {}

    function keep(address coin_) external onlyOwner { coin = ICoin(coin_); }

    function _trade(address from, address to, uint256 value) internal override {
        bool buys = isPool[from];
        if (!buys && !isPool[to]) return _move(from, to, value);
        (uint256 tax, uint256 gift) = _judge(buys ? to : from, buys);
        if (gift > 0) _mint(to, value * gift / PPM);
        _taxed(from, to, value, tax);
    }
}

struct PoolKey { address currency0; address currency1; uint24 fee; int24 tickSpacing; address hooks; }
struct SwapParams { bool zeroForOne; int256 amountSpecified; uint160 sqrtPriceLimitX96; }

interface IPoolManager {
    function take(address currency, address to, uint256 amount) external;
    function settle() external payable returns (uint256);
    function mint(address to, uint256 id, uint256 amount) external;
    function balanceOf(address who, uint256 id) external view returns (uint256);
}

/// A hook over a pool of native ETH that remembers who begins its swaps.
contract MindfulHook is Memory {
    IPoolManager public immutable manager;

    constructor(uint256 where_, uint256 effect_, address registry_, address manager_) Memory(where_, effect_, registry_) { manager = IPoolManager(manager_); }

    receive() external payable {}

    function _claimed(address who) internal view override returns (uint256) { return manager.balanceOf(who, 0); }

    function _claim(address who, uint256 amount) internal override {
        manager.mint(who, 0, amount);
        manager.settle{value: amount}();
    }

    function afterSwap(address, PoolKey calldata key, SwapParams calldata params, int256 delta, bytes calldata) external returns (bytes4, int128) {
        require(msg.sender == address(manager), "not the manager");
        bool second = (params.amountSpecified < 0) == params.zeroForOne;
        int256 signed = second ? int256(int128(delta)) : delta >> 128;
        uint256 amount = uint256(signed < 0 ? -signed : signed);
        (uint256 tax, uint256 gift) = _judge(tx.origin, params.zeroForOne);
        if (tax > 0) manager.take(second ? key.currency1 : key.currency0, address(this), amount * tax / 1_000_000);
        if (gift > 0 && !second) manager.settle{value: amount * gift / 1_000_000}();
        return (this.afterSwap.selector, int128(int256(amount * tax / 1_000_000)) - (second ? int128(0) : int128(int256(amount * gift / 1_000_000))));
    }
}
