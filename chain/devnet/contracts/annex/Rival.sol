// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// An executor of swaps, as other routers have one: takes the sold token from the caller by allowance (or native ETH with
/// the call), makes the calls it is told, each with what is then held of its token, and pays what is left of the bought one.
contract Rival {
    using SafeERC20 for IERC20;

    struct Step { address target; address spends; uint256 amountAt; bytes data; }

    address private constant NATIVE = 0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE;

    event Swapped(address indexed sender, address sold, address bought, address indexed recipient, uint256 paid, uint256 brought);

    error Expired();
    error ReturnAmountIsNotEnough(uint256 brought, uint256 least);

    receive() external payable {}

    /// `amountAt` of a step is where in its data the amount held is written; 0 leaves the data as it is.
    function swap(
        address sold, uint256 amount, address bought, uint256 least, address recipient, uint256 deadline, Step[] calldata steps
    ) external payable returns (uint256 brought) {
        if (block.timestamp > deadline) revert Expired();
        if (sold != NATIVE) IERC20(sold).safeTransferFrom(msg.sender, address(this), amount);
        else require(msg.value == amount, "wrong value");
        for (uint256 i; i < steps.length; ++i) _step(steps[i]);
        brought = _held(bought);
        if (brought < least) revert ReturnAmountIsNotEnough(brought, least);
        _pay(bought, recipient, brought);
        emit Swapped(msg.sender, sold, bought, recipient, amount, brought);
    }

    function _step(Step calldata step) private {
        bytes memory data = step.data;
        uint256 held = _held(step.spends);
        uint256 at = step.amountAt;
        if (at != 0) {
            require(at + 32 <= data.length, "amount outside the data");
            assembly { mstore(add(add(data, 32), at), held) }
        }
        if (step.spends != NATIVE) IERC20(step.spends).forceApprove(step.target, held);
        (bool done, bytes memory said) = step.target.call{value: step.spends == NATIVE ? held : 0}(data);
        if (!done) assembly { revert(add(said, 32), mload(said)) }
    }

    function _held(address token) private view returns (uint256) {
        return token == NATIVE ? address(this).balance : IERC20(token).balanceOf(address(this));
    }

    function _pay(address token, address to, uint256 amount) private {
        if (token != NATIVE) return IERC20(token).safeTransfer(to, amount);
        (bool done,) = to.call{value: amount}("");
        require(done, "payment failed");
    }
}
