// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Hook, PoolKey, SwapParams} from "./Hook.sol";

/// Names the pool's own fee for each swap: 99 % when the pool is made, falling to 1 % over `span` seconds.
contract SnipeTaxRate is Hook {
    uint256 public immutable span;
    uint256 public born;

    constructor(address manager_, uint256 span_) Hook(manager_) { span = span_; }

    function afterInitialize(address, PoolKey calldata, uint160, int24) external onlyManager returns (bytes4) {
        born = block.timestamp;
        return this.afterInitialize.selector;
    }

    function beforeSwap(address, PoolKey calldata, SwapParams calldata, bytes calldata)
        external view onlyManager returns (bytes4, int256, uint24)
    {
        uint256 age = block.timestamp - born;
        uint256 rate = age >= span ? 10_000 : 990_000 - 980_000 * age / span;
        return (this.beforeSwap.selector, 0, uint24(rate) | OVERRIDE);
    }
}

/// Names the pool's own fee for each swap by its side: little for buyers, more for sellers.
contract SideRate is Hook {
    address public immutable token;
    uint24 public immutable buyPpm;
    uint24 public immutable sellPpm;

    constructor(address manager_, address token_, uint24 buyPpm_, uint24 sellPpm_) Hook(manager_) {
        (token, buyPpm, sellPpm) = (token_, buyPpm_, sellPpm_);
    }

    function beforeSwap(address, PoolKey calldata key, SwapParams calldata params, bytes calldata)
        external view onlyManager returns (bytes4, int256, uint24)
    {
        bool sells = params.zeroForOne == (key.currency0 == token);
        return (this.beforeSwap.selector, 0, (sells ? sellPpm : buyPpm) | OVERRIDE);
    }
}

/// Writes the pool's fee after every swap: 2,000 ppm more, and 100 less for each second since the last, from 500 to 30,000.
contract BusyRate is Hook {
    uint256 public rate;
    uint256 public since;

    constructor(address manager_) Hook(manager_) {}

    function afterInitialize(address, PoolKey calldata key, uint160, int24) external onlyManager returns (bytes4) {
        _write(key, 500);
        return this.afterInitialize.selector;
    }

    function afterSwap(address, PoolKey calldata key, SwapParams calldata, int256, bytes calldata)
        external onlyManager returns (bytes4, int128)
    {
        uint256 rested = (block.timestamp - since) * 100;
        uint256 next = (rate > rested + 500 ? rate - rested : 500) + 2_000;
        _write(key, next > 30_000 ? 30_000 : next);
        return (this.afterSwap.selector, 0);
    }

    function _write(PoolKey calldata key, uint256 next) private {
        (rate, since) = (next, block.timestamp);
        manager.updateDynamicLPFee(key, uint24(next));
    }
}
