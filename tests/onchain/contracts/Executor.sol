// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function balanceOf(address owner) external view returns (uint256);
}

/// An executor of a rival that makes the calls it is told, and then misbehaves in one way.
contract Executor {
    struct Step { address to; uint256 value; bytes data; }

    uint256 public times;

    event Swap(address indexed sender, uint256 in0, uint256 in1, uint256 out0, uint256 out1, address indexed to);
    event Swap(address indexed sender, address indexed to, int256 amount0, int256 amount1, uint160 price, uint128 liquidity, int24 tick);
    event Swap(bytes32 indexed id, address indexed sender, int128 amount0, int128 amount1, uint160 price, uint128 liquidity, int24 tick, uint24 fee);

    receive() external payable {}

    function run(Step[] calldata steps) external payable { _all(steps); }

    /// Pays from a stock and logs it as pools log their swaps.
    function pretend(address token, address to, uint256 amount, uint256 shape, bytes32 id) external payable {
        if (shape == 2) emit Swap(msg.sender, msg.value, 0, 0, amount, to);
        if (shape == 3) emit Swap(msg.sender, to, int256(msg.value), -int256(amount), 1 << 96, 1, 0);
        if (shape == 4) emit Swap(id, msg.sender, -int128(int256(msg.value)), int128(int256(amount)), 1 << 96, 1, 0, 3000);
        if (token == address(0)) { (bool paid,) = to.call{value: amount}(""); require(paid); }
        else IERC20(token).transfer(to, amount);
    }

    /// Hands out all that it holds of a token.
    function hand(address token, address to) external { IERC20(token).transfer(to, IERC20(token).balanceOf(address(this))); }

    /// Works once.
    function once(Step[] calldata steps) external payable { require(times++ == 0, "used up"); _all(steps); }

    /// Makes the calls `most` times, and after that only those it is told to leave.
    function until(uint256 most, Step[] calldata steps, Step[] calldata later) external payable {
        if (times++ < most) _all(steps); else _all(later);
    }

    /// Answers with very many bytes.
    function loud(Step[] calldata steps, uint256 size) external payable { _all(steps); assembly { return(0x80, size) } }

    function shout(uint256 size) external payable { assembly { revert(0x80, size) } }

    /// Logs very many bytes.
    function chatter(Step[] calldata steps, uint256 size) external payable { _all(steps); assembly { log0(0x80, size) } }

    /// Uses up its gas but for some.
    function guzzle(Step[] calldata steps, uint256 left) external payable { _all(steps); while (gasleft() > left) {} }

    /// Refuses where some address has code.
    function shy(address watcher, Step[] calldata steps) external payable { require(watcher.code.length == 0, "watched"); _all(steps); }

    /// Refuses where some address has no code.
    function shown(address watcher, Step[] calldata steps) external payable { require(watcher.code.length > 0, "unwatched"); _all(steps); }

    /// Refuses where some address has ETH.
    function poor(address watcher, Step[] calldata steps) external payable { require(watcher.balance == 0, "watched"); _all(steps); }

    /// Serves one origin of transactions only.
    function choosy(address origin, Step[] calldata steps) external payable { require(tx.origin == origin, "not you"); _all(steps); }

    /// Says what it was told as it refuses.
    function say(string calldata words) external payable { require(false, words); }

    function _all(Step[] calldata steps) private {
        for (uint256 i; i < steps.length; ++i) {
            (bool done, bytes memory said) = steps[i].to.call{value: steps[i].value}(steps[i].data);
            if (!done) assembly { revert(add(said, 32), mload(said)) }
        }
    }
}
