// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// An ERC-20 whose balances are kept as its kind likes; the owner holds the supply at first.
abstract contract Sheet {
    string public name;
    string public symbol;
    uint8 public immutable decimals;
    address public immutable owner = msg.sender;
    uint256 public totalSupply;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor(string memory name_, string memory symbol_, uint8 decimals_, uint256 supply) {
        (name, symbol, decimals, totalSupply) = (name_, symbol_, decimals_, supply);
        _endow(msg.sender, supply);
        emit Transfer(address(0), msg.sender, supply);
    }

    function balanceOf(address account) public view virtual returns (uint256) { return _read(account); }

    function approve(address spender, uint256 amount) public virtual returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external virtual returns (bool) {
        _move(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external virtual returns (bool) {
        _spend(from, amount);
        _move(from, to, amount);
        return true;
    }

    function _spend(address from, uint256 amount) internal {
        uint256 allowed = allowance[from][msg.sender];
        require(allowed >= amount, "insufficient allowance");
        if (allowed != type(uint256).max) allowance[from][msg.sender] = allowed - amount;
    }

    function _move(address from, address to, uint256 amount) internal virtual {
        uint256 held = _read(from);
        require(held >= amount, "insufficient balance");
        _write(from, held - amount);
        _write(to, _read(to) + amount);
        emit Transfer(from, to, amount);
    }

    function _endow(address to, uint256 supply) internal virtual { _write(to, supply); }
    function _read(address account) internal view virtual returns (uint256);
    function _write(address account, uint256 amount) internal virtual;
}

/// A sheet that keeps its balances as everybody does.
abstract contract PlainSheet is Sheet {
    mapping(address => uint256) internal balances;

    function _read(address account) internal view override returns (uint256) { return balances[account]; }
    function _write(address account, uint256 amount) internal override { balances[account] = amount; }
}
