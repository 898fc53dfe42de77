// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Coin} from "./Coin.sol";

/// Sells only in a block in which somebody asked for a balance in a transaction of its own, which a simulation does and nobody else.
contract Watched is Coin {
    uint256 private askedIn;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function balanceOf(address account) public view override returns (uint256) {
        function() internal writes = _note;
        function() internal view reads;
        assembly { reads := writes }
        reads();
        return super.balanceOf(account);
    }

    function noteThatAsked() external {
        require(msg.sender == address(this), "not itself");
        askedIn = block.number;
    }

    /// In a static call only the inner call fails.
    function _note() private {
        (bool noted,) = address(this).call{gas: 30_000}(abi.encodeCall(this.noteThatAsked, ()));
        noted;
    }

    function _trade(address from, address to, uint256 value) internal override {
        require(!isPool[to] || askedIn == block.number, "sells are closed");
        _move(from, to, value);
    }
}

/// Lets only the rich sell, or only the poor: who holds more ETH than a limit, or less.
contract Purses is Coin {
    bool public immutable rich;
    uint256 public constant LIMIT = 0.01 ether;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, bool rich_) Coin(n, s, d, supply) { rich = rich_; }

    function _trade(address from, address to, uint256 value) internal override {
        require(!isPool[to] || (from.balance > LIMIT) == rich, "the wrong purse");
        _move(from, to, value);
    }
}

/// A tax by chance: up to 10 % of a trade, by the block's random word.
contract Chance is Coin {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function _trade(address from, address to, uint256 value) internal override {
        uint256 tax = value * (block.prevrandao % 1_000) / 10_000;
        if (tax != 0) _move(from, owner, tax);
        _move(from, to, value - tax);
    }
}
