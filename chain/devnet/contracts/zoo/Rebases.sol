// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Sheet} from "./Sheet.sol";

/// Holders own shares of a total that its owner sets anew.
contract Shares is Sheet {
    uint256 public totalShares;
    mapping(address => uint256) public sharesOf;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function rebase(uint256 total) external {
        require(msg.sender == owner, "not the owner");
        totalSupply = total;
    }

    function _endow(address to, uint256 supply) internal override { (totalShares, sharesOf[to]) = (supply, supply); }
    function _read(address account) internal view override returns (uint256) { return sharesOf[account] * totalSupply / totalShares; }
    function _write(address, uint256) internal pure override {}

    function _move(address from, address to, uint256 amount) internal override {
        uint256 shares = amount * totalShares / totalSupply;
        require(sharesOf[from] >= shares, "insufficient balance");
        sharesOf[from] -= shares;
        sharesOf[to] += shares;
        emit Transfer(from, to, amount);
    }
}

/// Holders own principal that grows by the second.
contract Interest is Sheet {
    uint256 private constant ONE = 1e18;
    uint256 private constant RATE = ONE / 100 / 365 days;
    uint256 private immutable since = block.timestamp;
    mapping(address => uint256) public principalOf;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function _index() private view returns (uint256) { return ONE + RATE * (block.timestamp - since); }
    function _read(address account) internal view override returns (uint256) { return principalOf[account] * _index() / ONE; }
    function _write(address account, uint256 amount) internal override { principalOf[account] = amount; }

    function _move(address from, address to, uint256 amount) internal override {
        uint256 principal = amount * ONE / _index();
        require(principalOf[from] >= principal, "insufficient balance");
        principalOf[from] -= principal;
        principalOf[to] += principal;
        emit Transfer(from, to, amount);
    }
}

/// Holders own fragments of a fixed giant number, of which a token is so many.
contract Gons is Sheet {
    uint256 private gonsPerToken;
    mapping(address => uint256) private gonsOf;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function rebase(uint256 total) external {
        require(msg.sender == owner, "not the owner");
        gonsPerToken = gonsPerToken * totalSupply / total;
        totalSupply = total;
    }

    function _endow(address to, uint256 supply) internal override {
        gonsPerToken = type(uint128).max;
        gonsOf[to] = supply * gonsPerToken;
    }

    function _read(address account) internal view override returns (uint256) { return gonsOf[account] / gonsPerToken; }
    function _write(address, uint256) internal pure override {}

    function _move(address from, address to, uint256 amount) internal override {
        uint256 gons = amount * gonsPerToken;
        require(gonsOf[from] >= gons, "insufficient balance");
        gonsOf[from] -= gons;
        gonsOf[to] += gons;
        emit Transfer(from, to, amount);
    }
}

/// Gives 2 % of each transfer to all holders by lowering the rate; its owner moves without that fee.
contract Reflection is Sheet {
    uint256 public constant FEE_BPS = 200;
    uint256 private reflectedTotal;
    uint256 private feesTotal;
    mapping(address => uint256) private reflectedOf;

    constructor(string memory n, string memory s, uint8 d, uint256 supply) Sheet(n, s, d, supply) {}

    function _endow(address to, uint256 supply) internal override {
        reflectedTotal = type(uint256).max - type(uint256).max % supply;
        reflectedOf[to] = reflectedTotal;
    }

    function _rate() private view returns (uint256) { return reflectedTotal / totalSupply; }

    function _read(address account) internal view override returns (uint256) {
        require(reflectedOf[account] <= reflectedTotal, "more than all reflections");
        return reflectedOf[account] / _rate();
    }

    function _write(address, uint256) internal pure override {}

    function _move(address from, address to, uint256 amount) internal override {
        uint256 rate = _rate();
        uint256 fee = from == owner || to == owner ? 0 : amount * FEE_BPS / 10_000;
        require(reflectedOf[from] >= amount * rate, "insufficient balance");
        reflectedOf[from] -= amount * rate;
        reflectedOf[to] += (amount - fee) * rate;
        reflectedTotal -= fee * rate;
        feesTotal += fee;
        emit Transfer(from, to, amount - fee);
    }
}
