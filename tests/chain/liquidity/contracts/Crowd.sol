// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

interface IToken {
    function transfer(address to, uint256 amount) external returns (bool);
}

interface IPool3 {
    function token0() external view returns (address);
    function token1() external view returns (address);
    function swap(address to, bool zeroForOne, int256 amount, uint160 limit, bytes calldata data) external returns (int256, int256);
    function mint(address to, int24 lower, int24 upper, uint128 amount, bytes calldata data) external returns (uint256, uint256);
    function burn(int24 lower, int24 upper, uint128 amount) external returns (uint256, uint256);
    function collect(address to, int24 lower, int24 upper, uint128 most0, uint128 most1) external returns (uint128, uint128);
    function flash(address to, uint256 amount0, uint256 amount1, bytes calldata data) external;
}

struct Key { address currency0; address currency1; uint24 fee; int24 tickSpacing; address hooks; }

struct SwapParams { bool zeroForOne; int256 amountSpecified; uint160 sqrtPriceLimitX96; }

struct ChangeParams { int24 tickLower; int24 tickUpper; int256 liquidityDelta; bytes32 salt; }

interface IManager4 {
    function unlock(bytes calldata data) external returns (bytes memory);
    function swap(Key calldata key, SwapParams calldata params, bytes calldata data) external returns (int256);
    function modifyLiquidity(Key calldata key, ChangeParams calldata params, bytes calldata data) external returns (int256, int256);
    function donate(Key calldata key, uint256 amount0, uint256 amount1, bytes calldata data) external returns (int256);
    function sync(address currency) external;
    function settle() external payable returns (uint256);
    function take(address currency, address to, uint256 amount) external;
}

/// One thing that somebody does in a pool: 0 swap (amount above zero: exact in), 1 change liquidity, 2 give amount and second.
struct Move { uint8 kind; bool zeroForOne; int24 lower; int24 upper; int256 amount; uint160 limit; uint256 second; }

/// Many who trade, provide and give; what a pool refuses is passed over.
abstract contract Crowd {
    event Moved(uint256 index);

    receive() external payable {}

    function play(Move[] calldata moves) external {
        for (uint256 at; at < moves.length; at++) {
            try this.one(moves[at]) { emit Moved(at); } catch {}
        }
    }

    function one(Move calldata move) external virtual;
}

contract Crowd3 is Crowd {
    IPool3 private immutable pool;
    address private immutable token0;
    address private immutable token1;

    event Closed(uint256 principal0, uint256 principal1, uint256 all0, uint256 all1);

    constructor(address at) {
        pool = IPool3(at);
        (token0, token1) = (IPool3(at).token0(), IPool3(at).token1());
    }

    function one(Move calldata move) external override {
        if (move.kind == 0) {
            pool.swap(address(this), move.zeroForOne, move.amount, move.limit, "");
        } else if (move.kind == 1 && move.amount > 0) {
            pool.mint(address(this), move.lower, move.upper, uint128(uint256(move.amount)), "");
        } else if (move.kind == 1) {
            (uint256 amount0, uint256 amount1) = pool.burn(move.lower, move.upper, uint128(uint256(-move.amount)));
            (uint128 all0, uint128 all1) = pool.collect(address(this), move.lower, move.upper, type(uint128).max, type(uint128).max);
            emit Closed(amount0, amount1, all0, all1);
        } else {
            pool.flash(address(this), 1000, 1000, abi.encode(1000 + uint256(move.amount), 1000 + move.second));
        }
    }

    function uniswapV3SwapCallback(int256 amount0, int256 amount1, bytes calldata) external {
        pay(amount0 > 0 ? uint256(amount0) : 0, amount1 > 0 ? uint256(amount1) : 0);
    }

    function uniswapV3MintCallback(uint256 amount0, uint256 amount1, bytes calldata) external { pay(amount0, amount1); }

    function uniswapV3FlashCallback(uint256, uint256, bytes calldata data) external {
        (uint256 amount0, uint256 amount1) = abi.decode(data, (uint256, uint256));
        pay(amount0, amount1);
    }

    function pay(uint256 amount0, uint256 amount1) private {
        if (amount0 > 0) IToken(token0).transfer(msg.sender, amount0);
        if (amount1 > 0) IToken(token1).transfer(msg.sender, amount1);
    }
}

contract Crowd4 is Crowd {
    IManager4 private immutable manager;
    Key private key;

    event Closed(uint256 principal0, uint256 principal1, uint256 all0, uint256 all1);

    constructor(address at, Key memory pool) { (manager, key) = (IManager4(at), pool); }

    function one(Move calldata move) external override { manager.unlock(abi.encode(move)); }

    function unlockCallback(bytes calldata data) external returns (bytes memory) {
        Move memory move = abi.decode(data, (Move));
        int256 delta;
        if (move.kind == 0) {
            delta = manager.swap(key, SwapParams(move.zeroForOne, -move.amount, move.limit), "");
        } else if (move.kind == 1) {
            int256 fees;
            (delta, fees) = manager.modifyLiquidity(key, ChangeParams(move.lower, move.upper, move.amount, bytes32(move.second)), "");
            if (move.amount <= 0) close(delta, fees);
        } else {
            delta = manager.donate(key, uint256(move.amount), move.second, "");
        }
        settle(key.currency0, int128(delta >> 128));
        settle(key.currency1, int128(delta));
        return "";
    }

    function close(int256 all, int256 fees) private {
        (int128 all0, int128 all1) = (int128(all >> 128), int128(all));
        emit Closed(uint128(all0 - int128(fees >> 128)), uint128(all1 - int128(fees)), uint128(all0), uint128(all1));
    }

    function settle(address currency, int128 delta) private {
        if (delta > 0) {
            manager.take(currency, address(this), uint128(delta));
        } else if (delta < 0 && currency == address(0)) {
            manager.sync(currency);
            manager.settle{value: uint128(-delta)}();
        } else if (delta < 0) {
            manager.sync(currency);
            IToken(currency).transfer(address(manager), uint128(-delta));
            manager.settle();
        }
    }
}
