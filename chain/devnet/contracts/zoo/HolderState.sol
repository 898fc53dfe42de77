// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Coin} from "./Coin.sol";

/// A holder may sell only in a later block than that of the last buy.
contract CooldownBlock is Coin {
    mapping(address => uint256) public lastBuy;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function _trade(address from, address to, uint256 value) internal override {
        if (isPool[from]) lastBuy[to] = block.number;
        else require(block.number > lastBuy[from], "cooling down");
        _move(from, to, value);
    }
}

/// A holder may sell only some seconds after the last buy.
contract CooldownTime is Coin {
    uint256 public immutable rest;
    mapping(address => uint256) public lastBuy;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, uint256 rest_) Coin(n, s, d, supply) { rest = rest_; }

    function _trade(address from, address to, uint256 value) internal override {
        if (isPool[from]) lastBuy[to] = block.timestamp;
        else require(block.timestamp >= lastBuy[from] + rest, "cooling down");
        _move(from, to, value);
    }
}

/// Stamps both sides of every transfer; nothing depends on the stamp but the gas of writing it.
contract Stamped is Coin {
    mapping(address => uint256) public lastTrade;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function _trade(address from, address to, uint256 value) internal override {
        lastTrade[from] = block.number;
        lastTrade[to] = block.number;
        _move(from, to, value);
    }
}

/// Taxes a sale by how little time has passed since the holder's own first buy.
contract EarlySeller is Coin {
    uint256 public constant TOP_BPS = 2_500;
    uint256 public immutable span;
    mapping(address => uint256) public firstBuy;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, uint256 span_) Coin(n, s, d, supply) { span = span_; }

    function taxBps(address holder) public view returns (uint256) {
        uint256 held = block.timestamp - firstBuy[holder];
        return held >= span ? 0 : TOP_BPS * (span - held) / span;
    }

    function _trade(address from, address to, uint256 value) internal override {
        if (isPool[from] && firstBuy[to] == 0) firstBuy[to] = block.timestamp;
        uint256 tax = isPool[to] ? value * taxBps(from) / 10_000 : 0;
        if (tax != 0) _move(from, owner, tax);
        _move(from, to, value - tax);
    }
}

/// Only who bought from a pool may sell to one.
contract RegisteredBuyers is Coin {
    mapping(address => bool) public hasBought;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function _trade(address from, address to, uint256 value) internal override {
        if (isPool[from]) hasBought[to] = true;
        else if (isPool[to]) require(hasBought[from], "not a registered buyer");
        _move(from, to, value);
    }
}

/// Each holder may sell once.
contract SellOnce is Coin {
    mapping(address => bool) public hasSold;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function _trade(address from, address to, uint256 value) internal override {
        if (isPool[to]) {
            require(!hasSold[from], "sold already");
            hasSold[from] = true;
        }
        _move(from, to, value);
    }
}

/// Each further buy, and each further sale, of a holder is taxed more.
contract TradeCount is Coin {
    uint256 public immutable buyStepBps;
    uint256 public immutable saleStepBps;
    mapping(address => uint256) public buys;
    mapping(address => uint256) public sales;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, uint256 buyStepBps_, uint256 saleStepBps_) Coin(n, s, d, supply) {
        (buyStepBps, saleStepBps) = (buyStepBps_, saleStepBps_);
    }

    function _trade(address from, address to, uint256 value) internal override {
        uint256 bps = 0;
        if (isPool[from] && buyStepBps != 0) bps = buys[to]++ * buyStepBps;
        if (isPool[to] && saleStepBps != 0) bps = sales[from]++ * saleStepBps;
        uint256 tax = value * (bps > 9_000 ? 9_000 : bps) / 10_000;
        if (tax != 0) _move(from, owner, tax);
        _move(from, to, value - tax);
    }
}

/// A fifth of a buy is taken from who holds none yet.
contract Loyal is Coin {
    constructor(string memory n, string memory s, uint8 d, uint256 supply) Coin(n, s, d, supply) {}

    function _trade(address from, address to, uint256 value) internal override {
        uint256 tax = isPool[from] && balanceOf(to) == 0 ? value / 5 : 0;
        if (tax != 0) _move(from, owner, tax);
        _move(from, to, value - tax);
    }
}
