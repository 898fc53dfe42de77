# pragma version 0.4.3
"""
@title An honest token in the modular Vyper manner: balances first, texts immutable, allowance before supply.
@license MIT
"""

event Transfer:
    owner: indexed(address)
    to: indexed(address)
    amount: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    amount: uint256

decimals: public(immutable(uint8))
name: public(immutable(String[25]))
symbol: public(immutable(String[5]))
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
totalSupply: public(uint256)
owner: public(address)
is_minter: public(HashMap[address, bool])


@deploy
def __init__(name_: String[25], symbol_: String[5], decimals_: uint8, supply: uint256):
    decimals = decimals_
    name = name_
    symbol = symbol_
    self.owner = msg.sender
    self.is_minter[msg.sender] = True
    self.totalSupply = supply
    self.balanceOf[msg.sender] = supply
    log Transfer(owner=empty(address), to=msg.sender, amount=supply)


@external
def approve(spender: address, amount: uint256) -> bool:
    assert spender != empty(address), "approve to the zero address"
    self.allowance[msg.sender][spender] = amount
    log Approval(owner=msg.sender, spender=spender, amount=amount)
    return True


@external
def transfer(to: address, amount: uint256) -> bool:
    self._transfer(msg.sender, to, amount)
    return True


@external
def transferFrom(owner: address, to: address, amount: uint256) -> bool:
    allowed: uint256 = self.allowance[owner][msg.sender]
    if allowed < max_value(uint256):
        assert allowed >= amount, "insufficient allowance"
        self.allowance[owner][msg.sender] = allowed - amount
        log Approval(owner=owner, spender=msg.sender, amount=allowed - amount)
    self._transfer(owner, to, amount)
    return True


@internal
def _transfer(owner: address, to: address, amount: uint256):
    assert to != empty(address), "transfer to the zero address"
    assert self.balanceOf[owner] >= amount, "transfer amount exceeds balance"
    self.balanceOf[owner] = unsafe_sub(self.balanceOf[owner], amount)
    self.balanceOf[to] = unsafe_add(self.balanceOf[to], amount)
    log Transfer(owner=owner, to=to, amount=amount)
