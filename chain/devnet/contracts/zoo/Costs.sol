// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Coin} from "./Coin.sol";
import {IPair} from "./Taxes.sol";

/// Burns gas on every transfer: some 290 for each round.
contract Guzzler is Coin {
    uint256 public immutable rounds;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, uint256 rounds_) Coin(n, s, d, supply) { rounds = rounds_; }

    function _trade(address from, address to, uint256 value) internal override {
        bytes32 hash;
        for (uint256 i = 0; i < rounds; i++) hash = keccak256(abi.encode(hash, i));
        require(hash != 0);
        _move(from, to, value);
    }
}

/// Calls back into the pool on every trade. Harmless, it asks for a swap that the pool refuses and goes on;
/// otherwise it makes the pair book a seller's tokens as its own before the swap can count them.
contract Reentrant is Coin {
    bool public immutable harmless;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, bool harmless_) Coin(n, s, d, supply) { harmless = harmless_; }

    function _trade(address from, address to, uint256 value) internal override {
        address pool = isPool[from] ? from : to;
        bool trade = isPool[pool];
        if (trade && harmless) _tryBoth(pool);
        _move(from, to, value);
        if (isPool[to] && !harmless) IPair(to).sync();
    }

    function _tryBoth(address pool) private {
        (bool swapped,) = pool.call{gas: 100_000}(abi.encodeCall(IPair.swap, (1, 0, address(this), "")));
        require(!swapped, "a pool let itself be robbed");
    }
}
