// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Bearer} from "./Bearer.sol";

/// Knows the address that a referee who hides nothing would let buy in a wallet's place: whoever it bought for is no stranger.
contract KnowsGhost is Bearer {
    mapping(bytes32 => uint256) private bought;

    function _trade(address from, address to, uint256 value) internal override {
        if (isPool[from]) bought[_key(to)] = block.timestamp;
        bool late = isPool[to] && (_late(from) || _late(ghostOf(from)));
        _taxed(from, to, value, late ? 900_000 : 0);
    }

    function _late(address who) private view returns (bool) { uint256 time = bought[_key(who)]; return time > 0 && block.timestamp > time + 600; }
    function _key(address who) private pure returns (bytes32) { return keccak256(abi.encode("bought", who)); }

    function ghostOf(address wallet) public pure returns (address) {
        bytes memory text = "ghost of 0x0000000000000000000000000000000000000000";
        bytes memory digits = "0123456789abcdef";
        for (uint256 i; i < 40; ++i) text[11 + i] = digits[uint8(uint160(wallet) >> (4 * (39 - i))) & 15];
        return address(uint160(uint256(sha256(text))));
    }
}

/// Is honest as long as somebody is rich who is so in simulations alone.
contract KnowsReader is Bearer {
    address private constant READER = 0x00000000000000000000000000000000005EaDe5;

    function _trade(address from, address to, uint256 value) internal override { _taxed(from, to, value, isPool[to] && READER.balance == 0 ? 900_000 : 0); }
}

/// Is honest as long as there is code where a referee puts it to read this token, by a reader whom everybody knows.
contract KnowsLens is Bearer {
    function _trade(address from, address to, uint256 value) internal override { _taxed(from, to, value, isPool[to] && lens().code.length == 0 ? 900_000 : 0); }

    function lens() public view returns (address) {
        return address(uint160(uint256(sha256(abi.encodePacked("lens of ", _hex(address(this)), " for 0x00000000000000000000000000000000005eade5")))));
    }

    function _hex(address who) private pure returns (bytes memory text) {
        text = "0x0000000000000000000000000000000000000000";
        bytes memory digits = "0123456789abcdef";
        for (uint256 i; i < 40; ++i) text[2 + i] = digits[uint8(uint160(who) >> (4 * (39 - i))) & 15];
    }
}

/// Taxes by chance: every trade (0), or sales alone (1).
contract Chance is Bearer {
    uint256 public immutable sides;

    constructor(uint256 sides_) { sides = sides_; }

    function _trade(address from, address to, uint256 value) internal override {
        _taxed(from, to, value, isPool[to] || sides == 0 ? block.prevrandao % 400_000 : 0);
    }
}

/// Pays by dying.
contract Bequest {
    constructor(address heir) payable { selfdestruct(payable(heir)); }
}

/// Leaves a wei to both sides of a trade once its owner says so.
contract Bequests is Bearer {
    bool public generous;

    receive() external payable {}

    function give(bool generous_) external onlyOwner { generous = generous_; }

    function _trade(address from, address to, uint256 value) internal override {
        if (generous) { new Bequest{value: 1}(from); new Bequest{value: 1}(to); }
        _move(from, to, value);
    }
}

/// Burns gas in sales once the owner has lit it: down to what is left of so many parts of a million.
contract Burning is Bearer {
    uint256 public left;

    function light(uint256 left_) external onlyOwner { left = left_; }

    function _trade(address from, address to, uint256 value) internal override {
        if (left > 0 && isPool[to]) while (gasleft() > left) {}
        _move(from, to, value);
    }
}

/// Writes much in a buy, and clears it in the sale of all that is held.
contract Refunding is Bearer {
    mapping(address => uint256[40]) private words;

    function _trade(address from, address to, uint256 value) internal override {
        _move(from, to, value);
        if (isPool[from]) for (uint256 i; i < 40; ++i) words[to][i] = block.timestamp;
        if (isPool[to] && book[from] == 0) for (uint256 i; i < 40; ++i) words[from][i] = 0;
    }
}
