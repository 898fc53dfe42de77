// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ERC20} from "solady/src/tokens/ERC20.sol";

/// An honest token as Solady writes it: balances at hashed slots of its own making.
contract PlainSolady is ERC20 {
    string private _name;
    string private _symbol;
    uint8 private immutable _decimals;

    constructor(string memory name_, string memory symbol_, uint8 decimals_, uint256 supply) {
        (_name, _symbol, _decimals) = (name_, symbol_, decimals_);
        _mint(msg.sender, supply);
    }

    function name() public view override returns (string memory) { return _name; }
    function symbol() public view override returns (string memory) { return _symbol; }
    function decimals() public view override returns (uint8) { return _decimals; }
    /// Keeps the allowance of Permit2 an ordinary one, as on chains where it is not pre-approved.
    function _givePermit2InfiniteAllowance() internal pure override returns (bool) { return false; }
}
