"""Lent: tokens that nobody bought, put into a wallet by the word that a token keeps a balance in, so that their sale can be quoted."""

from __future__ import annotations

from chain.header import Header
from chain.trade import Purse
from chain.words import Word, look
from ledgers.errors import ChainFault
from ledgers.money import Wei, mul_div_ceil
from referee.onchain.board import Desk

GAS_PURSE_WEI = Wei(10**18)
"""ETH that a seller is given for gas."""
NO_SLOT = "slot"
SHARES_PROBED = 10**24
"""Shares that a token is asked the worth of."""


async def lent(desk: Desk, wallet: str, token: str, amount_raw: int, header: Header) -> Word:
    """The word through which a wallet holds so many token units. Raises: ChainFault where it is not known."""
    slot = await desk.slots.of(token, wallet, header)
    if slot is None:
        raise ChainFault(NO_SLOT, "where the token keeps balances is not known; no sale of it can be tried for somebody who never bought")
    write = slot.write(amount_raw)
    if slot.shares:
        amount = await desk.amount(Purse(wallet, int(GAS_PURSE_WEI), (slot.write(SHARES_PROBED),)), token, header)
        if not amount:
            raise ChainFault(NO_SLOT, "the token does not tell what its shares come to; no sale of it can be tried")
        write = slot.write(mul_div_ceil(amount_raw, SHARES_PROBED, amount))
    chain = await look(desk.evm, (Word(write.contract, write.slot, 0, write.value),), header)
    return Word(write.contract, write.slot, chain[write.contract, write.slot], write.value)
