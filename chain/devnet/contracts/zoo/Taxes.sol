// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Coin} from "./Coin.sol";

/// Keeps a share of what is moved: one rate for buys, one for sells, one for the rest; the owner collects.
contract Taxed is Coin {
    uint256 public immutable buyBps;
    uint256 public immutable sellBps;
    uint256 public immutable moveBps;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, uint256 buy, uint256 sell, uint256 move_)
        Coin(n, s, d, supply)
    {
        (buyBps, sellBps, moveBps) = (buy, sell, move_);
    }

    function _trade(address from, address to, uint256 value) internal override {
        uint256 tax = value * (isPool[from] ? buyBps : isPool[to] ? sellBps : moveBps) / 10_000;
        if (tax != 0) _move(from, owner, tax);
        _move(from, to, value - tax);
    }
}

/// Burns a share of everything moved and refuses amounts under a minimum.
contract BurnHook is Coin {
    uint256 public immutable burnBps;
    uint256 public immutable least;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, uint256 burn_, uint256 least_) Coin(n, s, d, supply) {
        (burnBps, least) = (burn_, least_);
    }

    function _trade(address from, address to, uint256 value) internal override {
        require(value >= least, "under the minimum");
        uint256 burnt = value * burnBps / 10_000;
        _move(from, address(0), burnt);
        _move(from, to, value - burnt);
    }
}

/// Before each sale into a v2 pair it sells a piece of its own stock there, so that the seller comes second.
contract SwapBack is Coin {
    uint256 public immutable piece;

    constructor(string memory n, string memory s, uint8 d, uint256 supply, uint256 piece_) Coin(n, s, d, supply) {
        piece = piece_;
        _mint(address(this), supply / 20);
    }

    function _trade(address from, address to, uint256 value) internal override {
        if (isPool[to] && from != address(this) && balanceOf(address(this)) >= piece) _sellOwn(IPair(to));
        _move(from, to, value);
    }

    function _sellOwn(IPair pair) private {
        (uint256 reserve0, uint256 reserve1,) = pair.getReserves();
        bool first = pair.token0() == address(this);
        (uint256 mine, uint256 other) = first ? (reserve0, reserve1) : (reserve1, reserve0);
        uint256 arrives = piece * 997 * other / (mine * 1000 + piece * 997);
        _move(address(this), address(pair), piece);
        pair.swap(first ? 0 : arrives, first ? arrives : 0, owner, "");
    }
}

interface IPair {
    function token0() external view returns (address);
    function getReserves() external view returns (uint112, uint112, uint32);
    function swap(uint256 out0, uint256 out1, address to, bytes calldata data) external;
    function sync() external;
}
