// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// An honest token that leaves out its own facts.
abstract contract Nameless {
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor(uint256 supply) {
        totalSupply = supply;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _move(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        if (allowance[from][msg.sender] != type(uint256).max) allowance[from][msg.sender] -= amount;
        _move(from, to, amount);
        return true;
    }

    function _move(address from, address to, uint256 amount) private {
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
    }
}

/// Answers name(), symbol() and decimals() with the very bytes it was given.
contract RawFacts is Nameless {
    bytes private nameAnswer;
    bytes private symbolAnswer;
    bytes private decimalsAnswer;

    constructor(bytes memory n, bytes memory s, bytes memory d, uint256 supply) Nameless(supply) {
        (nameAnswer, symbolAnswer, decimalsAnswer) = (n, s, d);
    }

    function name() external view { _answer(nameAnswer); }
    function symbol() external view { _answer(symbolAnswer); }
    function decimals() external view { _answer(decimalsAnswer); }

    function _answer(bytes memory fact) private pure {
        assembly { return(add(fact, 32), mload(fact)) }
    }
}

/// Reverts when asked for its decimals, and its texts too.
contract NoFacts is Nameless {
    constructor(uint256 supply) Nameless(supply) {}

    function name() external pure { revert("not told"); }
    function symbol() external pure { revert("not told"); }
    function decimals() external pure { revert("not told"); }
}

/// Answers name() and symbol() with a million letters, or, when endless, never.
contract FactsBomb is Nameless {
    uint256 private constant LETTERS = 1_000_000;

    uint8 public immutable decimals;
    bool private immutable endless;

    constructor(uint8 d, uint256 supply, bool endless_) Nameless(supply) { (decimals, endless) = (d, endless_); }

    function name() external view { _burst(); }
    function symbol() external view { _burst(); }

    function _burst() private view {
        while (endless) {}
        assembly {
            mstore(0, 32)
            mstore(32, LETTERS)
            return(0, add(64, LETTERS))
        }
    }
}
