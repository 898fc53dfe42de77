"""Amounts: what holdings come to in token units, read in the very block they would be sold in.

A token may make more or less of what it holds for somebody at any time, so that a book counts the units that arrived, and every
sale and mark asks anew, through the words that the wallet carries.
Source: design §6; ONC-29.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chain import calldata
from chain.header import Header
from chain.network import Network
from chain.rpc import RpcRefused
from chain.simulate import AMOUNT_MAX, Simulated, Simulation, SimulationRefused, answered, slot_override
from chain.trade import BALANCE_READ_MAX, UNREPEATABLE, Purse, repeated, shown_wei
from ledgers.errors import ChainFault


class Amounts:
    """One simulation that tells what a wallet holds of some tokens, after what was filled before."""

    def __init__(self, network: Network, pin: Header, purse: Purse, tokens: Sequence[str]) -> None:
        sim = self.simulation = Simulation(network, pin)
        self._echo = purse.echo.begin(sim) if purse.echo else []
        sim.block(balances_wei={purse.wallet: shown_wei(purse.eth_wei, purse.prefix, pin.base_fee_wei)}, writes=purse.writes)
        self._prefix = [sim.send(purse.wallet, tx) for tx in purse.prefix]
        self._reads = {token: sim.token_balance(token, purse.wallet) for token in tokens}

    def heard(self, answer: Any) -> dict[str, int | None]:
        """The same from a node's answer. Raises: ChainFault when the node refuses too."""
        try:
            return self.read(answered(self.simulation, answer))
        except SimulationRefused as refused:
            raise ChainFault(refused.word, "the node refused to tell what a wallet holds") from None

    def read(self, done: Simulated) -> dict[str, int | None]:
        """Token units by token; none where a token does not tell, or tells what cannot be.

        Raises: ChainFault when the node contradicts itself."""
        if not repeated(done, self._echo):
            raise ChainFault(UNREPEATABLE, "an earlier trade of the run does not go through again")
        if not all(done[handle].ok for handle in self._prefix):
            raise ChainFault("state_moved", "a filled order of the same decision no longer goes through at its own block")
        told: dict[str, int | None] = {}
        for token, handle in self._reads.items():
            try:
                amount = done.amount(handle, BALANCE_READ_MAX)
            except LookupError:
                told[token] = None
                continue
            told[token] = amount if amount < AMOUNT_MAX else None
        return told


class AmountByCall:
    """The same of one token by a plain call, for a node that cannot simulate; it knows of nothing that was filled before."""

    def __init__(self, network: Network, pin: Header, purse: Purse, token: str) -> None:
        call = {"from": network.reader, "to": token, "data": calldata.balance_of(purse.wallet)}
        self.request: tuple[str, list[Any]] = ("eth_call", [call, {"blockHash": pin.block_hash}, slot_override(purse.writes)])

    def heard(self, answer: Any) -> int | None:
        """Token units; none where the token does not tell, or tells what cannot be."""
        data = b"" if isinstance(answer, RpcRefused) else calldata.hex_bytes(answer)
        amount = calldata.uint_at(data, 0) if len(data) >= 32 else None
        return amount if amount is not None and amount < AMOUNT_MAX else None
