"""The real side of a life: a wallet that really sends what the paper one was filled for, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chain.devnet.calls import Tx
from chain.devnet.node import BASE_FEE_WEI
from chain.router import Route
from tests.lives.paper import Told
from tests.lives.world import RICH_WEI, Trace, Twins

GAS_MORE_PPM = (340_000, 260_000, 100_000, 30_000, 10_000)
"""What is set above the gas that is used: at most a fifth of what a transaction uses comes back at its end, and a call is given 63 parts of 64."""


@dataclass(frozen=True, slots=True)
class Happened:
    """What an order really did."""

    ok: bool
    gross_wei: int
    """ETH gained before gas."""
    gas_wei: int
    word: str = ""


@dataclass(slots=True)
class Reality:
    """A wallet with a key, as it were."""

    twins: Twins
    wallet: str
    moves_market: bool = False
    """Whether what it does to the market stays, as on the own-impact ledger."""

    def begin(self, stake_wei: int) -> None:
        self.twins.real.endow([self.wallet], stake_wei)

    @property
    def eth_wei(self) -> int:
        return self.twins.real.eth_of(self.wallet)

    def tokens(self, token: str) -> int | None:
        return self.twins.real.tokens_of(token, self.wallet)

    def live(self, told: Sequence[Told]) -> list[Happened]:
        """Send all that was filled in one block, then take back what it did to the market, unless the ledger keeps it."""
        parts = [each.txs for each in told]
        happened, traces = self._send(parts)
        if not self.moves_market:
            self.twins.undo_market(traces)
        return happened

    def would(self, parts: Sequence[Sequence]) -> list[Happened]:
        """What sending these would do; nothing of it stays."""
        mark = self.twins.real.mark()
        try:
            return self._send(parts)[0]
        finally:
            self.twins.real.back(mark)

    def best_sale(self, routes: Sequence[Route]) -> tuple[Happened, Route | None]:
        """The best of some ways to sell, each tried alone with approvals of its own."""
        best, way = Happened(False, 0, 0, "no way out"), None
        for route in routes:
            (done,) = self.would([[*(approval.tx for approval in route.approvals), route.swap]])
            if done.ok and (way is None or done.gross_wei - done.gas_wei > best.gross_wei - best.gas_wei):
                best, way = done, route
        return best, way

    def _send(self, parts: Sequence[Sequence]) -> tuple[list[Happened], list[Trace]]:
        txs = [self._tx(tx) for part in parts for tx in part]
        if not txs:
            self.twins.real.send(())
            return [], []
        receipts = self._sent(txs)
        traces = self.twins.real.traces(receipts)
        happened, at = [], 0
        for part in parts:
            mine = range(at, at + len(part))
            at += len(part)
            if at > len(receipts):
                happened.append(Happened(False, 0, 0, "cannot be paid for"))
                continue
            gas = sum(int(receipts[index]["gasUsed"], 16) * int(receipts[index]["effectiveGasPrice"], 16) for index in mine)
            gained = sum(_gained(traces[index], self.wallet) for index in mine)
            ok = all(receipts[index]["status"] == "0x1" for index in mine)
            happened.append(Happened(ok, gained + gas, gas, "" if ok else "reverts"))
        return happened, traces

    def _tx(self, tx) -> Tx:
        return Tx(sender=self.wallet, to=tx.to, data=tx.data, value_wei=int(tx.value_wei), gas=int(tx.gas_limit))

    def _sent(self, txs: list[Tx]) -> list[dict]:
        """Receipts; of a poor wallet with the highest gas limits that it can pay for, and none of what it cannot pay for at all."""
        purse, world = self.eth_wei, self.twins.real
        if sum(tx.value_wei + tx.gas * BASE_FEE_WEI for tx in txs) <= purse:
            return world.send(txs)
        mark = world.mark()
        world.endow([self.wallet], purse + RICH_WEI)
        used = [int(receipt["gasUsed"], 16) for receipt in world.send(txs)]
        world.back(mark)
        limited = [[replace(tx, gas=min(tx.gas, gas + gas * more_ppm // 10**6)) for tx, gas in zip(txs, used, strict=True)] for more_ppm in GAS_MORE_PPM]
        return world.send(max(limited, key=self._successes), (self.wallet, purse))

    def _successes(self, txs: list[Tx]) -> int:
        """How many of these would go through with the purse as it is."""
        world, purse = self.twins.real, self.eth_wei
        mark = world.mark()
        done = sum(receipt["status"] == "0x1" for receipt in world.send(txs, (self.wallet, purse)))
        world.back(mark)
        return done


def _gained(trace: Trace, wallet: str) -> int:
    change = trace.get(wallet)
    if change is None or "balance" not in change.after:
        return 0
    return int(change.after["balance"], 16) - int(change.before.get("balance", "0x0"), 16)
