// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Hook, ModifyLiquidityParams, PoolKey, SwapParams} from "./Hook.sol";

/// Takes a part of what a trade brings, after the swap, by return delta; the pool's own fee may read 0.
contract AfterSwapFee is Hook {
    uint256 public immutable ppm;

    constructor(address manager_, uint256 ppm_) Hook(manager_) { ppm = ppm_; }

    function afterSwap(address sender, PoolKey calldata key, SwapParams calldata params, int256 delta, bytes calldata)
        external onlyManager returns (bytes4, int128)
    {
        (address currency, uint256 amount) = _open(key, params, delta);
        uint256 fee = _fee(sender, amount);
        if (fee > 0) manager.take(currency, address(this), fee);
        return (this.afterSwap.selector, int128(int256(fee)));
    }

    function _fee(address, uint256 amount) internal view virtual returns (uint256) { return amount * ppm / PPM; }
}

/// Takes a part of what is paid in, before the swap, by return delta.
contract BeforeSwapFee is Hook {
    uint256 public immutable ppm;

    constructor(address manager_, uint256 ppm_) Hook(manager_) { ppm = ppm_; }

    function beforeSwap(address, PoolKey calldata key, SwapParams calldata params, bytes calldata)
        external onlyManager returns (bytes4, int256, uint24)
    {
        if (params.amountSpecified >= 0) return (this.beforeSwap.selector, 0, 0);
        uint256 fee = _size(params) * ppm / PPM;
        if (fee > 0) manager.take(params.zeroForOne ? key.currency0 : key.currency1, address(this), fee);
        return (this.beforeSwap.selector, int256(fee) << 128, 0);
    }
}

/// Takes all that a trade brings and one unit more: a quoter reads the missing unit as 2^128 - 1.
contract TakesAll is AfterSwapFee {
    constructor(address manager_) AfterSwapFee(manager_, PPM) {}

    function _fee(address, uint256 amount) internal pure override returns (uint256) { return amount + 1; }
}

/// Takes nothing from the one contract that asks for quotes, and its part from everybody else.
contract FlattersQuoter is AfterSwapFee {
    address public immutable quoter;

    constructor(address manager_, uint256 ppm_, address quoter_) AfterSwapFee(manager_, ppm_) { quoter = quoter_; }

    function _fee(address sender, uint256 amount) internal view override returns (uint256) {
        return sender == quoter ? 0 : super._fee(sender, amount);
    }
}

/// Takes a part of the trade that falls from 99 % to 1 % over `span` seconds after the pool was made.
contract SnipeTaxDelta is AfterSwapFee {
    uint256 public immutable span;
    uint256 public born;

    constructor(address manager_, uint256 span_) AfterSwapFee(manager_, 0) { span = span_; }

    function afterInitialize(address, PoolKey calldata, uint160, int24) external onlyManager returns (bytes4) {
        born = block.timestamp;
        return this.afterInitialize.selector;
    }

    function _fee(address, uint256 amount) internal view override returns (uint256) {
        uint256 age = block.timestamp - born;
        return amount * (age >= span ? 10_000 : 990_000 - 980_000 * age / span) / PPM;
    }
}

/// Takes a part of what is added as liquidity, as claims within the manager: what is added has not been paid yet.
contract LiquidityCut is Hook {
    uint256 public immutable ppm;

    constructor(address manager_, uint256 ppm_) Hook(manager_) { ppm = ppm_; }

    function afterAddLiquidity(
        address, PoolKey calldata key, ModifyLiquidityParams calldata, int256 delta, int256, bytes calldata
    ) external onlyManager returns (bytes4, int256) {
        uint256 cut0 = _cut(key.currency0, delta >> 128);
        uint256 cut1 = _cut(key.currency1, int256(int128(delta)));
        return (this.afterAddLiquidity.selector, int256((cut0 << 128) | cut1));
    }

    function _cut(address currency, int256 amount) private returns (uint256 cut) {
        if (amount >= 0) return 0;
        cut = uint256(-amount) * ppm / PPM;
        if (cut > 0) manager.mint(address(this), uint160(currency), cut);
    }
}
