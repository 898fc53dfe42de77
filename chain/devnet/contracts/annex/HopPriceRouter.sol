// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IPoolManager, PoolKey, SwapParams} from "./Hook.sol";

interface IPair { function getReserves() external view returns (uint112, uint112, uint32); function swap(uint256, uint256, address, bytes calldata) external; }
interface IPool { function swap(address, bool, int256, uint160, bytes calldata) external returns (int256, int256); }
interface IPairFactory { function getPair(address, address) external view returns (address); }
interface IPoolFactory { function getPool(address, address, uint24) external view returns (address); }
interface IPermit2 { function transferFrom(address, address, uint160, address) external; }
interface IWrapped { function deposit() external payable; function withdraw(uint256) external; }

/// A router that takes calls in the shape of UniversalRouter 2.1.1: every swap carries the least price of each hop, times
/// 10^36, as one member more than version 2.1.0 knows; an empty list or 0 checks nothing. Exact input only.
contract HopPriceRouter {
    using SafeERC20 for IERC20;

    struct PathKey { address intermediateCurrency; uint24 fee; int24 tickSpacing; address hooks; bytes hookData; }
    struct Single { PoolKey poolKey; bool zeroForOne; uint128 amountIn; uint128 amountOutMinimum; uint256 minHopPriceX36; bytes hookData; }
    struct Several { address currencyIn; PathKey[] path; uint256[] minHopPriceX36; uint128 amountIn; uint128 amountOutMinimum; }

    uint256 private constant WHOLE_BALANCE = 1 << 255;
    uint256 private constant PRECISION = 1e36;
    uint160 private constant ROOT_MIN = 4295128739;
    uint160 private constant ROOT_MAX = 1461446703485210103287273052203988822378723970342;
    address private constant NATIVE = address(0);
    IPermit2 private immutable permit2;
    IWrapped private immutable weth;
    IPairFactory private immutable pairs;
    IPoolFactory private immutable pools;
    IPoolManager private immutable manager;
    address private transient user;

    error SliceOutOfBounds();
    error InvalidCommandType(uint256 commandType);
    error UnsupportedAction(uint256 action);
    error TransactionDeadlinePassed();
    error LengthMismatch();
    error InvalidEthSender();
    error V2TooLittleReceived();
    error V3TooLittleReceived();
    error V4TooLittleReceived(uint256 minAmountOutReceived, uint256 amountReceived);
    error V4TooMuchRequested(uint256 maxAmountInRequested, uint256 amountRequested);
    error TooLittleReceivedPerHop(uint256 hop, uint256 minPriceX36, uint256 priceX36);
    error InsufficientToken();
    error InsufficientETH();
    error DeltaNotPositive(address currency);
    error DeltaNotNegative(address currency);

    constructor(address permit2_, address weth_, address pairs_, address pools_, address manager_) {
        (permit2, weth, pairs) = (IPermit2(permit2_), IWrapped(weth_), IPairFactory(pairs_));
        (pools, manager) = (IPoolFactory(pools_), IPoolManager(manager_));
    }

    receive() external payable {
        if (msg.sender != address(weth) && msg.sender != address(manager)) revert InvalidEthSender();
    }

    function execute(bytes calldata commands, bytes[] calldata inputs, uint256 deadline) external payable {
        if (block.timestamp > deadline) revert TransactionDeadlinePassed();
        if (commands.length != inputs.length) revert LengthMismatch();
        user = msg.sender;
        for (uint256 i; i < commands.length; ++i) _command(uint8(commands[i]) & 0x7f, inputs[i]);
    }

    function _command(uint256 command, bytes calldata input) private {
        if (command == 0x00) _swapPools(input);
        else if (command == 0x08) _swapPairs(input);
        else if (command == 0x10) manager.unlock(input);
        else if (command == 0x02) {
            (address token, address to, uint160 amount) = abi.decode(input, (address, address, uint160));
            permit2.transferFrom(user, _recipient(to), amount, token);
        } else if (command == 0x04) {
            (address token, address to, uint256 least) = abi.decode(input, (address, address, uint256));
            _sweep(token, _recipient(to), least);
        } else if (command == 0x0b) {
            (address to, uint256 amount) = abi.decode(input, (address, uint256));
            amount = amount == WHOLE_BALANCE ? address(this).balance : amount;
            weth.deposit{value: amount}();
            if (_recipient(to) != address(this)) IERC20(address(weth)).safeTransfer(_recipient(to), amount);
        } else if (command == 0x0c) {
            (address to, uint256 least) = abi.decode(input, (address, uint256));
            uint256 amount = IERC20(address(weth)).balanceOf(address(this));
            if (amount < least) revert InsufficientETH();
            weth.withdraw(amount);
            if (_recipient(to) != address(this)) _send(NATIVE, _recipient(to), amount);
        } else revert InvalidCommandType(command);
    }

    // --- v3 and v2: (recipient, amountIn, amountOutMin, path, payerIsUser, minHopPriceX36[]) ---------------------------

    function _swapPools(bytes calldata input) private {
        (address to, uint256 amount, uint256 least, bool byUser) = _head(input);
        bytes calldata path = _bytes(input, 3);
        uint256[] memory prices = _words(input, 5);
        uint256 hops = (path.length - 20) / 23;
        if (prices.length != 0 && prices.length != hops) revert LengthMismatch();
        address first = address(bytes20(path[0:20]));
        if (amount == WHOLE_BALANCE) amount = IERC20(first).balanceOf(address(this));
        for (uint256 i; i < hops; ++i) {
            uint256 out = _hop(path[23 * i:23 * i + 43], amount, i + 1 == hops ? _recipient(to) : address(this), byUser && i == 0);
            _checkPrice(i, prices, amount, out);
            amount = out;
        }
        if (amount < least) revert V3TooLittleReceived();
    }

    function _hop(bytes calldata step, uint256 amount, address to, bool byUser) private returns (uint256) {
        address tokenIn = address(bytes20(step[0:20]));
        address tokenOut = address(bytes20(step[23:43]));
        address pool = pools.getPool(tokenIn, tokenOut, uint24(bytes3(step[20:23])));
        bytes memory payment = abi.encode(step, byUser ? user : address(this));
        bool first = tokenIn < tokenOut;
        (int256 a, int256 b) = IPool(pool).swap(to, first, int256(amount), first ? ROOT_MIN + 1 : ROOT_MAX - 1, payment);
        return uint256(-(first ? b : a));
    }

    function uniswapV3SwapCallback(int256 amount0, int256 amount1, bytes calldata data) external {
        (bytes memory step, address payer) = abi.decode(data, (bytes, address));
        (address tokenIn, uint24 fee, address tokenOut) = this.members(step);
        require(msg.sender == pools.getPool(tokenIn, tokenOut, fee), "not a pool");
        _pay(tokenIn, payer, msg.sender, uint256(amount0 > 0 ? amount0 : amount1));
    }

    /// Token, fee and token of one step of a path.
    function members(bytes calldata step) external pure returns (address, uint24, address) {
        return (address(bytes20(step[0:20])), uint24(bytes3(step[20:23])), address(bytes20(step[23:43])));
    }

    function _swapPairs(bytes calldata input) private {
        (address to, uint256 amount, uint256 least, bool byUser) = _head(input);
        uint256[] memory path = _words(input, 3);
        uint256[] memory prices = _words(input, 5);
        if (prices.length != 0 && prices.length != path.length - 1) revert LengthMismatch();
        to = _recipient(to);
        IERC20 last = IERC20(address(uint160(path[path.length - 1])));
        uint256 before = last.balanceOf(to);
        address token = address(uint160(path[0]));
        address pair = pairs.getPair(token, address(uint160(path[1])));
        if (amount == WHOLE_BALANCE) amount = IERC20(token).balanceOf(address(this));
        if (amount != 0) _pay(token, byUser ? user : address(this), pair, amount);
        for (uint256 i; i + 1 < path.length; ++i) {
            address next = i + 2 < path.length ? pairs.getPair(address(uint160(path[i + 1])), address(uint160(path[i + 2]))) : to;
            (uint256 paid, uint256 out) = _throughPair(pair, address(uint160(path[i])), address(uint160(path[i + 1])), next);
            _checkPrice(i, prices, paid, out);
            pair = next;
        }
        if (last.balanceOf(to) - before < least) revert V2TooLittleReceived();
    }

    function _throughPair(address pair, address tokenIn, address tokenOut, address to) private returns (uint256 paid, uint256 out) {
        bool first = tokenIn < tokenOut;
        (uint256 a, uint256 b,) = IPair(pair).getReserves();
        (uint256 reserveIn, uint256 reserveOut) = first ? (a, b) : (b, a);
        paid = IERC20(tokenIn).balanceOf(pair) - reserveIn;
        out = paid * 997 * reserveOut / (reserveIn * 1_000 + paid * 997);
        IPair(pair).swap(first ? 0 : out, first ? out : 0, to, "");
    }

    // --- v4 -----------------------------------------------------------------------------------------------------------

    function unlockCallback(bytes calldata data) external returns (bytes memory) {
        require(msg.sender == address(manager), "not the manager");
        (bytes memory actions, bytes[] memory members) = abi.decode(data, (bytes, bytes[]));
        for (uint256 i; i < actions.length; ++i) this.act(uint8(actions[i]), members[i]);
        return "";
    }

    /// One action; called by the router itself only, so that its members lie in calldata as the decoder wants them.
    function act(uint256 action, bytes calldata input) external {
        require(msg.sender == address(this), "not the router");
        if (action == 0x06) _swapSingle(input);
        else if (action == 0x07) _swapSeveral(input);
        else if (action == 0x0b) {
            (address currency, uint256 amount, bool byUser) = abi.decode(input, (address, uint256, bool));
            if (amount == WHOLE_BALANCE) amount = _held(currency);
            _settle(currency, byUser ? user : address(this), amount == 0 ? _debt(currency) : amount);
        } else if (action == 0x0c) {
            (address currency, uint256 most) = abi.decode(input, (address, uint256));
            uint256 amount = _debt(currency);
            if (amount > most) revert V4TooMuchRequested(most, amount);
            _settle(currency, user, amount);
        } else if (action == 0x0e) {
            (address currency, address to, uint256 amount) = abi.decode(input, (address, address, uint256));
            manager.take(currency, _recipient(to), amount == 0 ? _credit(currency) : amount);
        } else if (action == 0x0f) {
            (address currency, uint256 least) = abi.decode(input, (address, uint256));
            uint256 amount = _credit(currency);
            if (amount < least) revert V4TooLittleReceived(least, amount);
            manager.take(currency, user, amount);
        } else revert UnsupportedAction(action);
    }

    /// Where the struct's members lie is believed as written, as by the real decoder: a shorter encoding of a pool of native
    /// ETH without hook data passes, with its offset read as a price.
    function _swapSingle(bytes calldata input) private {
        if (input.length < 0x160) revert SliceOutOfBounds();
        Single calldata order;
        assembly { order := add(input.offset, calldataload(input.offset)) }
        uint256 amount = order.amountIn;
        if (amount == 0) amount = _credit(order.zeroForOne ? order.poolKey.currency0 : order.poolKey.currency1);
        uint256 out = _swap(order.poolKey, order.zeroForOne, amount, order.hookData);
        _checkPrice(0, order.minHopPriceX36, amount, out);
        if (out < order.amountOutMinimum) revert V4TooLittleReceived(order.amountOutMinimum, out);
    }

    function _swapSeveral(bytes calldata input) private {
        if (input.length < 0xe0) revert SliceOutOfBounds();
        Several calldata order;
        assembly { order := add(input.offset, calldataload(input.offset)) }
        if (order.minHopPriceX36.length != 0 && order.minHopPriceX36.length != order.path.length) revert LengthMismatch();
        address currency = order.currencyIn;
        uint256 amount = order.amountIn == 0 ? _credit(currency) : order.amountIn;
        for (uint256 i; i < order.path.length; ++i) {
            PathKey calldata hop = order.path[i];
            bool first = currency < hop.intermediateCurrency;
            (address a, address b) = first ? (currency, hop.intermediateCurrency) : (hop.intermediateCurrency, currency);
            uint256 out = _swap(PoolKey(a, b, hop.fee, hop.tickSpacing, hop.hooks), first, amount, hop.hookData);
            if (order.minHopPriceX36.length != 0) _checkPrice(i, order.minHopPriceX36[i], amount, out);
            (amount, currency) = (out, hop.intermediateCurrency);
        }
        if (amount < order.amountOutMinimum) revert V4TooLittleReceived(order.amountOutMinimum, amount);
    }

    function _swap(PoolKey memory key, bool zeroForOne, uint256 amount, bytes calldata hookData) private returns (uint256) {
        int256 delta = manager.swap(key, SwapParams(zeroForOne, -int256(amount), zeroForOne ? ROOT_MIN + 1 : ROOT_MAX - 1), hookData);
        return uint256(uint128(zeroForOne ? int128(delta) : int128(delta >> 128)));
    }

    function _settle(address currency, address payer, uint256 amount) private {
        if (amount == 0) return;
        manager.sync(currency);
        if (currency == NATIVE) manager.settle{value: amount}();
        else {
            _pay(currency, payer, address(manager), amount);
            manager.settle();
        }
    }

    function _debt(address currency) private view returns (uint256) {
        int256 delta = _delta(currency);
        if (delta > 0) revert DeltaNotNegative(currency);
        return uint256(-delta);
    }

    function _credit(address currency) private view returns (uint256) {
        int256 delta = _delta(currency);
        if (delta < 0) revert DeltaNotPositive(currency);
        return uint256(delta);
    }

    function _delta(address currency) private view returns (int256) {
        return int256(uint256(manager.exttload(keccak256(abi.encode(address(this), currency)))));
    }

    // --- money --------------------------------------------------------------------------------------------------------

    function _pay(address token, address payer, address to, uint256 amount) private {
        if (payer == address(this)) IERC20(token).safeTransfer(to, amount);
        else permit2.transferFrom(payer, to, uint160(amount), token);
    }

    function _sweep(address token, address to, uint256 least) private {
        uint256 amount = _held(token);
        if (amount < least) { if (token == NATIVE) revert InsufficientETH(); revert InsufficientToken(); }
        if (amount > 0) _send(token, to, amount);
    }

    function _held(address token) private view returns (uint256) {
        return token == NATIVE ? address(this).balance : IERC20(token).balanceOf(address(this));
    }

    function _send(address token, address to, uint256 amount) private {
        if (token != NATIVE) return IERC20(token).safeTransfer(to, amount);
        (bool done,) = to.call{value: amount}("");
        if (!done) revert InsufficientETH();
    }

    function _recipient(address named) private view returns (address) {
        return named == address(1) ? user : named == address(2) ? address(this) : named;
    }

    function _checkPrice(uint256 hop, uint256[] memory prices, uint256 paid, uint256 out) private pure {
        if (prices.length != 0) _checkPrice(hop, prices[hop], paid, out);
    }

    function _checkPrice(uint256 hop, uint256 least, uint256 paid, uint256 out) private pure {
        if (least == 0) return;
        uint256 price = out * PRECISION / paid;
        if (price < least) revert TooLittleReceivedPerHop(hop, least, price);
    }

    // --- decoding -----------------------------------------------------------------------------------------------------

    function _head(bytes calldata input) private pure returns (address to, uint256 amount, uint256 least, bool byUser) {
        if (input.length < 0xc0) revert SliceOutOfBounds();
        (to, amount, least) = abi.decode(input[0:0x60], (address, uint256, uint256));
        byUser = uint256(bytes32(input[0x80:0xa0])) != 0;
    }

    /// Start and length of the dynamic member with this index, `unit` bytes an element.
    function _slice(bytes calldata input, uint256 index, uint256 unit) private pure returns (uint256 start, uint256 length) {
        uint256 offset = uint256(bytes32(input[32 * index:32 * index + 32]));
        if (offset > input.length - 32) revert SliceOutOfBounds();
        length = uint256(bytes32(input[offset:offset + 32]));
        start = offset + 32;
        if (length > (input.length - start) / unit) revert SliceOutOfBounds();
    }

    function _bytes(bytes calldata input, uint256 index) private pure returns (bytes calldata) {
        (uint256 start, uint256 length) = _slice(input, index, 1);
        return input[start:start + length];
    }

    function _words(bytes calldata input, uint256 index) private pure returns (uint256[] memory found) {
        (uint256 start, uint256 length) = _slice(input, index, 32);
        found = new uint256[](length);
        for (uint256 i; i < length; ++i) found[i] = uint256(bytes32(input[start + 32 * i:start + 32 * i + 32]));
    }
}
