// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {TickMath} from "@uniswap/v4-core/src/libraries/TickMath.sol";
import {SwapMath} from "@uniswap/v4-core/src/libraries/SwapMath.sol";
import {SqrtPriceMath} from "@uniswap/v4-core/src/libraries/SqrtPriceMath.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

interface ISwapCallback { function uniswapV3SwapCallback(int256 amount0, int256 amount1, bytes calldata data) external; }

/// An exchange in the shape of v3 whose pools log swaps as Pancake's do: two amounts of protocol fees more, so another topic.
contract GriddleFactory {
    struct Parameters { address factory; address token0; address token1; uint24 fee; int24 tickSpacing; }

    Parameters public parameters;
    mapping(address => mapping(address => mapping(uint24 => address))) public getPool;
    mapping(uint24 => int24) public feeAmountTickSpacing;

    event PoolCreated(address indexed token0, address indexed token1, uint24 indexed fee, int24 tickSpacing, address pool);

    constructor() {
        feeAmountTickSpacing[100] = 1;
        feeAmountTickSpacing[500] = 10;
        feeAmountTickSpacing[2_500] = 50;
        feeAmountTickSpacing[10_000] = 200;
    }

    function createPool(address a, address b, uint24 fee) external returns (address pool) {
        (address token0, address token1) = a < b ? (a, b) : (b, a);
        int24 spacing = feeAmountTickSpacing[fee];
        require(token0 != token1 && token0 != address(0) && spacing != 0 && getPool[token0][token1][fee] == address(0), "no such pool");
        parameters = Parameters(address(this), token0, token1, fee, spacing);
        pool = address(new GriddlePool{salt: keccak256(abi.encode(token0, token1, fee))}());
        delete parameters;
        getPool[token0][token1][fee] = pool;
        getPool[token1][token0][fee] = pool;
        emit PoolCreated(token0, token1, fee, spacing, pool);
    }
}

/// A pool whose liquidity always spans the whole range, so that a swap is one step. What is added stays; fees stay too,
/// counted by feeGrowthGlobal. A twentieth of the fee is the protocol's: counted and logged, never paid out.
contract GriddlePool {
    using SafeERC20 for IERC20;

    uint256 private constant PROTOCOL_CUT = 20;
    address public immutable factory;
    address public immutable token0;
    address public immutable token1;
    uint24 public immutable fee;
    int24 public immutable tickSpacing;
    uint160 private _root;
    bool private _busy;
    uint128 public liquidity;
    uint256 public feeGrowthGlobal0X128;
    uint256 public feeGrowthGlobal1X128;
    uint128 private _owed0;
    uint128 private _owed1;

    event Initialize(uint160 sqrtPriceX96, int24 tick);
    event Mint(address sender, address indexed owner, int24 indexed tickLower, int24 indexed tickUpper, uint128 amount, uint256 amount0, uint256 amount1);
    event Swap(
        address indexed sender, address indexed recipient, int256 amount0, int256 amount1, uint160 sqrtPriceX96, uint128 liquidity, int24 tick,
        uint128 protocolFeesToken0, uint128 protocolFeesToken1
    );

    constructor() { (factory, token0, token1, fee, tickSpacing) = GriddleFactory(msg.sender).parameters(); }

    function slot0() external view returns (uint160, int24, uint16, uint16, uint16, uint32, bool) {
        return (_root, _tick(), 0, 1, 1, 0, !_busy);
    }

    function protocolFees() external view returns (uint128, uint128) { return (_owed0, _owed1); }

    /// As v3's, word for word: the two edges hold all there is.
    function ticks(int24 tick) external view returns (uint128 gross, int128 net, uint256[5] memory unused, bool initialized) {
        int24 edge = maxTick();
        if (tick == edge || tick == -edge) (gross, net) = (liquidity, tick < 0 ? int128(liquidity) : -int128(liquidity));
        initialized = gross > 0;
    }

    function tickBitmap(int16 position) external view returns (uint256 bits) {
        if (liquidity == 0) return 0;
        int24 last = maxTick() / tickSpacing;
        if (position == int16(last >> 8)) bits |= 1 << uint8(uint24(last));
        if (position == int16(-last >> 8)) bits |= 1 << uint8(uint24(-last));
    }

    function maxTick() public view returns (int24) { return TickMath.maxUsableTick(tickSpacing); }

    function initialize(uint160 sqrtPriceX96) external {
        require(_root == 0, "AI");
        _root = sqrtPriceX96;
        emit Initialize(sqrtPriceX96, _tick());
    }

    /// Adds `amount` of liquidity over the whole range, paid by the caller's allowance.
    function mint(address owner, uint128 amount) external {
        int24 edge = maxTick();
        uint256 amount0 = SqrtPriceMath.getAmount0Delta(_root, TickMath.getSqrtPriceAtTick(edge), amount, true);
        uint256 amount1 = SqrtPriceMath.getAmount1Delta(TickMath.getSqrtPriceAtTick(-edge), _root, amount, true);
        liquidity += amount;
        IERC20(token0).safeTransferFrom(msg.sender, address(this), amount0);
        IERC20(token1).safeTransferFrom(msg.sender, address(this), amount1);
        emit Mint(msg.sender, owner, -edge, edge, amount, amount0, amount1);
    }

    function swap(address recipient, bool zeroForOne, int256 amountSpecified, uint160 sqrtPriceLimitX96, bytes calldata data)
        external returns (int256 amount0, int256 amount1)
    {
        require(!_busy && amountSpecified != 0, "LOK");
        require(zeroForOne ? sqrtPriceLimitX96 < _root : sqrtPriceLimitX96 > _root, "SPL");
        _busy = true;
        (uint160 next, uint256 paid, uint256 got, uint256 taken) =
            SwapMath.computeSwapStep(_root, _target(zeroForOne, sqrtPriceLimitX96), liquidity, -amountSpecified, fee);
        _root = next;
        _grow(zeroForOne, taken);
        (amount0, amount1) = zeroForOne ? (int256(paid + taken), -int256(got)) : (-int256(got), int256(paid + taken));
        _trade(recipient, zeroForOne, got, paid + taken, amount0, amount1, data);
        emit Swap(msg.sender, recipient, amount0, amount1, next, liquidity, _tick(), _owed0, _owed1);
        _busy = false;
    }

    function _target(bool zeroForOne, uint160 limit) private view returns (uint160) {
        uint160 edge = TickMath.getSqrtPriceAtTick(zeroForOne ? -maxTick() : maxTick());
        return SwapMath.getSqrtPriceTarget(zeroForOne, edge, limit);
    }

    function _grow(bool zeroForOne, uint256 taken) private {
        uint256 cut = taken / PROTOCOL_CUT;
        uint256 growth = ((taken - cut) << 128) / liquidity;
        if (zeroForOne) { feeGrowthGlobal0X128 += growth; _owed0 += uint128(cut); }
        else { feeGrowthGlobal1X128 += growth; _owed1 += uint128(cut); }
    }

    function _trade(address recipient, bool zeroForOne, uint256 got, uint256 due, int256 amount0, int256 amount1, bytes calldata data) private {
        (IERC20 paying, IERC20 giving) = zeroForOne ? (IERC20(token0), IERC20(token1)) : (IERC20(token1), IERC20(token0));
        giving.safeTransfer(recipient, got);
        uint256 before = paying.balanceOf(address(this));
        ISwapCallback(msg.sender).uniswapV3SwapCallback(amount0, amount1, data);
        require(paying.balanceOf(address(this)) >= before + due, "IIA");
    }

    function _tick() private view returns (int24) { return TickMath.getTickAtSqrtPrice(_root); }
}
