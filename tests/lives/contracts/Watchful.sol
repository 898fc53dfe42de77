// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Bearer} from "./Bearer.sol";

/// Knows the address that a referee who hides nothing would let buy in a wallet's place: whoever it bought for is no stranger.
contract KnowsGhost is Bearer {
    uint256 private constant FAR = uint256(keccak256("lives.ghosts"));
    uint256 private constant NEVER = 1 << 255;

    /// Fills the places of buyers, so that nothing is written there for the first time.
    function prime() external { for (uint256 i; i < 64; ++i) { uint256 slot = FAR + i; assembly { sstore(slot, NEVER) } } }

    function _trade(address from, address to, uint256 value) internal override {
        if (isPool[from]) { uint256 slot = _slot(to); assembly { sstore(slot, timestamp()) } }
        uint256 taxed;
        if (isPool[to]) {
            (uint256 mine, uint256 ghosts) = (_slot(from), _slot(ghostOf(from)));
            assembly { taxed := mul(900000, or(gt(timestamp(), add(sload(mine), 600)), gt(timestamp(), add(sload(ghosts), 600)))) }
        }
        _taxed(from, to, value, taxed);
    }

    function _slot(address who) private pure returns (uint256) { return FAR + uint160(who) % 64; }

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

/// Taxes by chance: every trade (0), sales alone (1), or nothing (2) until its owner says otherwise.
contract Chance is Bearer {
    uint256 public sides;

    constructor(uint256 sides_) { sides = sides_; }

    function begin(uint256 sides_) external onlyOwner { sides = sides_; }

    function _trade(address from, address to, uint256 value) internal override {
        _taxed(from, to, value, isPool[to] && sides < 2 || sides == 0 ? block.prevrandao % 400_000 : 0);
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

/// Clears in the next sale what its owner has loaded: a sale that pays back a fifth of what it needs.
contract Unloading is Bearer {
    uint256 public load;
    mapping(uint256 => uint256) private words;

    function loaded(uint256 count) external onlyOwner {
        for (uint256 i; i < count; ++i) words[i] = 1;
        load = count;
    }

    function _trade(address from, address to, uint256 value) internal override {
        _move(from, to, value);
        if (isPool[to]) while (load > 0) words[--load] = 0;
    }
}
