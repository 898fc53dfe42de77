// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// A dollar of 6 decimals; an account's balance is a uint64 in the low 8 bytes of its slot, flags lie beside it.
contract Usdg {
    struct Account { uint64 balance; bool frozen; bool isMinter; }

    string public constant name = "Global Dollar";
    string public constant symbol = "USDG";
    uint8 public constant decimals = 6;
    address public immutable owner = msg.sender;
    uint256 public totalSupply;
    mapping(address => Account) private accounts;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor() { accounts[msg.sender].isMinter = true; }

    function balanceOf(address account) external view returns (uint256) { return accounts[account].balance; }
    function isFrozen(address account) external view returns (bool) { return accounts[account].frozen; }

    function mint(address to, uint64 amount) external {
        require(accounts[msg.sender].isMinter, "Usdg: not a minter");
        totalSupply += amount;
        accounts[to].balance += amount;
        emit Transfer(address(0), to, amount);
    }

    function freeze(address account, bool frozen) external {
        require(msg.sender == owner, "Usdg: not the owner");
        accounts[account].frozen = frozen;
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
        uint256 allowed = allowance[from][msg.sender];
        require(allowed >= amount, "Usdg: insufficient allowance");
        if (allowed != type(uint256).max) allowance[from][msg.sender] = allowed - amount;
        _move(from, to, amount);
        return true;
    }

    function _move(address from, address to, uint256 amount) private {
        require(to != address(0), "Usdg: to nobody");
        require(!accounts[from].frozen && !accounts[to].frozen, "Usdg: frozen");
        require(accounts[from].balance >= amount, "Usdg: insufficient balance");
        accounts[from].balance -= uint64(amount);
        accounts[to].balance += uint64(amount);
        emit Transfer(from, to, amount);
    }
}
