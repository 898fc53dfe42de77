// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// A hook that lets liquidity in and, while it is locked, none out again.
contract Stay {
    bool public locked;

    function lock(bool locked_) external { locked = locked_; }

    function beforeRemoveLiquidity(
        address,
        Key calldata,
        Change calldata,
        bytes calldata
    ) external view returns (bytes4) {
        require(!locked, "stay");
        return this.beforeRemoveLiquidity.selector;
    }

    struct Key { address currency0; address currency1; uint24 fee; int24 tickSpacing; address hooks; }
    struct Change { int24 tickLower; int24 tickUpper; int256 liquidityDelta; bytes32 salt; }
}
