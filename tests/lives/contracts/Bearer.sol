// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// What the tokens of the lives share: balances in slot 0, allowances in slot 1, an owner whom no rule binds, known pools.
/// A transfer out of a pool is a buy, one into a pool is a sale. A kind states what it does in `_trade`.
abstract contract Bearer {
    mapping(address => uint256) internal book;
    mapping(address => mapping(address => uint256)) internal granted;
    mapping(address => bool) public isPool;
    uint256 public totalSupply;

    string public constant name = "Life";
    string public constant symbol = "LIFE";
    uint8 public constant decimals = 18;
    uint256 internal constant PPM = 1_000_000;
    address public immutable owner = msg.sender;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor() { _mint(msg.sender, 1e27); }

    modifier onlyOwner() { require(msg.sender == owner, "not the owner"); _; }

    function markPool(address pool) external onlyOwner { isPool[pool] = true; }

    function balanceOf(address who) public view virtual returns (uint256) { return book[who]; }
    function allowance(address from, address spender) public view virtual returns (uint256) { return granted[from][spender]; }

    function approve(address spender, uint256 value) external virtual returns (bool) {
        granted[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) { _update(msg.sender, to, value); return true; }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        _spend(from, msg.sender, value);
        _update(from, to, value);
        return true;
    }

    function _spend(address from, address spender, uint256 value) internal virtual {
        uint256 allowed = granted[from][spender];
        require(allowed >= value, "insufficient allowance");
        if (allowed != type(uint256).max) granted[from][spender] = allowed - value;
    }

    function _update(address from, address to, uint256 value) internal {
        if (from == owner || to == owner) _move(from, to, value);
        else _trade(from, to, value);
    }

    /// Moves `value` for everybody but the owner.
    function _trade(address from, address to, uint256 value) internal virtual { _move(from, to, value); }

    function _move(address from, address to, uint256 value) internal virtual {
        require(book[from] >= value, "insufficient balance");
        book[from] -= value;
        book[to] += value;
        emit Transfer(from, to, value);
    }

    /// Moves `value` less a part that the owner keeps.
    function _taxed(address from, address to, uint256 value, uint256 ppm) internal {
        uint256 tax = value * ppm / PPM;
        if (tax > 0) _move(from, owner, tax);
        _move(from, to, value - tax);
    }

    function _mint(address to, uint256 value) internal {
        book[to] += value;
        totalSupply += value;
        emit Transfer(address(0), to, value);
    }
}

/// Does nothing but what a token does.
contract Plain is Bearer {}
