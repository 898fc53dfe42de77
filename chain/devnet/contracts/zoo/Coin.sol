// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// What most odd tokens share: plain OpenZeppelin balances, an owner whom no rule binds, and a list of pools.
/// A transfer out of a pool is a buy, one into a pool is a sell. A kind states its oddity in `_trade`.
abstract contract Coin is ERC20 {
    address public immutable owner = msg.sender;
    uint8 private immutable _decimals;
    mapping(address => bool) public isPool;

    constructor(string memory name_, string memory symbol_, uint8 decimals_, uint256 supply) ERC20(name_, symbol_) {
        _decimals = decimals_;
        _mint(msg.sender, supply);
    }

    modifier onlyOwner() {
        require(msg.sender == owner, "not the owner");
        _;
    }

    function markPool(address pool) external onlyOwner { isPool[pool] = true; }

    function decimals() public view override returns (uint8) { return _decimals; }

    function _update(address from, address to, uint256 value) internal virtual override {
        if (from == address(0) || to == address(0) || from == owner || to == owner) super._update(from, to, value);
        else _trade(from, to, value);
    }

    /// Moves `value` for everybody but the owner.
    function _trade(address from, address to, uint256 value) internal virtual;

    function _move(address from, address to, uint256 value) internal { super._update(from, to, value); }
}
