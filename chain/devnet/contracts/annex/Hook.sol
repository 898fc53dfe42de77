// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

struct PoolKey { address currency0; address currency1; uint24 fee; int24 tickSpacing; address hooks; }
struct SwapParams { bool zeroForOne; int256 amountSpecified; uint160 sqrtPriceLimitX96; }
struct ModifyLiquidityParams { int24 tickLower; int24 tickUpper; int256 liquidityDelta; bytes32 salt; }

interface IPoolManager {
    function unlock(bytes calldata data) external returns (bytes memory);
    function initialize(PoolKey calldata key, uint160 sqrtPriceX96) external returns (int24);
    function modifyLiquidity(PoolKey calldata key, ModifyLiquidityParams calldata params, bytes calldata hookData) external returns (int256, int256);
    function swap(PoolKey calldata key, SwapParams calldata params, bytes calldata hookData) external returns (int256);
    function take(address currency, address to, uint256 amount) external;
    function mint(address to, uint256 id, uint256 amount) external;
    function sync(address currency) external;
    function settle() external payable returns (uint256);
    function updateDynamicLPFee(PoolKey calldata key, uint24 fee) external;
    function exttload(bytes32 slot) external view returns (bytes32);
}

/// What the hooks share: who may call them, and how they read a trade.
/// A hook is told by the low 14 bits of its own address what it may do, so its code must stand at an address that says so.
abstract contract Hook {
    uint24 internal constant OVERRIDE = 0x400000;
    uint256 internal constant PPM = 1_000_000;
    IPoolManager public immutable manager;

    error NotManager();

    constructor(address manager_) { manager = IPoolManager(manager_); }

    receive() external payable {}

    modifier onlyManager() {
        if (msg.sender != address(manager)) revert NotManager();
        _;
    }

    /// The currency whose amount a trade leaves open, and that amount without its sign.
    function _open(PoolKey calldata key, SwapParams calldata params, int256 delta) internal pure returns (address currency, uint256 amount) {
        bool second = (params.amountSpecified < 0) == params.zeroForOne;
        int256 signed = second ? int256(int128(delta)) : delta >> 128;
        return (second ? key.currency1 : key.currency0, uint256(signed < 0 ? -signed : signed));
    }

    /// Whether a trade sells the pool's second currency, which is the token where the first is native ETH.
    function _sells(SwapParams calldata params) internal pure returns (bool) { return !params.zeroForOne; }

    function _size(SwapParams calldata params) internal pure returns (uint256) {
        return uint256(params.amountSpecified < 0 ? -params.amountSpecified : params.amountSpecified);
    }
}
