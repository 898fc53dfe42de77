"""A life: the program played on paper and really, and every difference between the two named.

A life ends where the two wallets part: at a false fill, or when they hold other tokens. Where paper only took too much ETH, the
real wallet is left with as little, and both live on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from chain.router import Route
from chain.rpc import RpcDoor
from ledgers.errors import ChainFault
from referee.onchain.events import DELAYED, FURTHER_LEDGERS, IMPACT, HoldingMark
from tests.lives import compare
from tests.lives.compare import Difference
from tests.lives.paper import Paper, Told
from tests.lives.program import Decide, Mark, Owner, Program, Step, Stranger, Wait
from tests.lives.reality import Happened, Reality
from tests.lives.rival import rival_of
from tests.lives.world import STRANGERS, Twins
from tests.onchain.followed import DELAY_BLOCKS

PARTING = frozenset({"false_revert", "false_fill", "false_tokens", "under_tokens", "false_claim", "under_claim"})
READER = "0x5ec4e7000000000000000000000000000000a11d"
"""Unknown to the tokens, as a window's is."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference between paper and reality."""

    seed: int
    kind: str
    venue: str
    step: int
    word: str
    """As `compare` has them."""
    detail: str


@dataclass(slots=True)
class Lived:
    """What came of a life."""

    program: Program
    counts: Counter = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    refusals: Counter = field(default_factory=Counter)
    trouble: str = ""
    """Why it could not be lived to its end."""


class Life:
    """One life while it is lived."""

    def __init__(self, twins: Twins, program: Program, paper: Paper) -> None:
        self.twins, self.program, self.paper = twins, program, paper
        self.real = Reality(twins, program.wallet, program.ledger == IMPACT)
        self.lived = Lived(program)
        self.step, self.over = 0, False

    async def play(self) -> Lived:
        """Play every step, until the two wallets part."""
        self.lived.counts["lives"] = 1
        self.real.begin(self.program.stake_wei)
        for self.step, step in enumerate(self.program.steps):
            await self._play(step)
            assert self.twins.even, "the two worlds are not at the same block and time"
            if self.over:
                break
        self.lived.counts["felt"] = self.twins.felt
        return self.lived

    async def _play(self, step: Step) -> None:
        stall, own = self.twins.stalls[1], self.twins.stalls[1 : 1 + self.program.kind.copies]
        match step:
            case Decide():
                await self._decide(step)
            case Mark():
                await self._mark()
            case Wait():
                self.twins.leap(step.seconds, step.blocks)
            case Owner():
                self.twins.act(own, step.act, self.program.wallet)
            case Stranger():
                self.twins.trade(stall, STRANGERS[step.who], step.wei, step.raw)

    def _note(self, differences: Iterable[Difference]) -> None:
        """Note differences, and end the life where the wallets part."""
        found = [Finding(self.program.seed, self.program.kind.name, self.program.venue, self.step, word, detail) for word, detail in differences]
        self.lived.findings += found
        self.lived.counts.update(finding.word for finding in found)
        self.over |= any(finding.word in PARTING for finding in found)

    # --- orders -----------------------------------------------------------------------------------------------------

    async def _decide(self, step: Decide) -> None:
        self.twins.paper.send(())
        further = self.program.ledger in FURTHER_LEDGERS
        told = await self.paper.decide(step.orders[:1] if further else step.orders)
        self.lived.counts["orders"] += len(told)
        if further:
            told = await self._followed(told)
        filled = [each for each in told if each.fill is not None]
        self.lived.counts["filled"] += len(filled)
        self.lived.counts["rival"] += sum(each.foreign for each in filled)
        for at, each in enumerate(told):
            if each.fill is None:
                self._refused(each, alone=not any(before.fill for before in told[:at]))
        if claimed := [each for each in filled if not each.fill.proven]:
            self._claimed(claimed)
            self.twins.real.send(())
            self.over = True
            return
        tokens = list(dict.fromkeys(each.asked.token for each in filled))
        before = {token: self.real.tokens(token) for token in tokens}
        self._compare(filled, self.real.live(filled))
        for token in tokens:
            self._compare_tokens(token, [each for each in filled if each.asked.token == token], before[token], self.real.tokens(token))
        if int(self.paper.book.eth_wei) != self.real.eth_wei:
            self.twins.real.endow([self.program.wallet], int(self.paper.book.eth_wei))

    async def _followed(self, told: list[Told]) -> list[Told]:
        """What a further ledger makes of what headline filled, the delayed one some blocks later."""
        if not any(each.fill for each in told):
            return told
        if self.program.ledger == DELAYED:
            self.twins.real.send(())
            for _ in range(DELAY_BLOCKS):
                self.twins.mine()
            self.twins.paper.send(())
        return [await self.paper.follow(each) for each in told]

    def _refused(self, told: Told, *, alone: bool) -> None:
        """Count an order that was not filled; a sale that would really bring something is an underfill where the paper says that it cannot be.

        Only one that nothing of its decision went before is really tried."""
        side, word = told.order.side, ":".join(told.word.split(":")[: 2 if told.word.startswith("fault") else 1])
        self.lived.refusals[f"{side} {word}"] += 1
        if word != "reverted" or side != "sell" or not alone:
            return
        amount = int(told.asked.amount_raw or 0) or self.paper.held_raw(told.asked.token)
        done, way = self.real.best_sale(self.paper.sales(told.asked.token, amount))
        if way is not None and done.gross_wei > done.gas_wei:
            self._note([("under_trapped", f"paper: {told.word}; really {done.gross_wei} wei over {way.label}")])

    def _claimed(self, claimed: list[Told]) -> None:
        """Sales credited without proof: is it what would really be paid?"""
        self.lived.counts["claimed"] += len(claimed)
        for each in claimed:
            done = Happened(False, 0, 0)
            if each.fill.side == "sell":
                held, spent = self.real.tokens(each.fill.token), int(each.fill.spent_raw)
                done, _ = self.real.best_sale(self.paper.sales(each.fill.token, spent if held is None else min(held, spent)))
            self._note(compare.of_claim(each.fill, done))

    def _compare(self, filled: list[Told], happened: list[Happened]) -> None:
        for told, done in zip(filled, happened, strict=True):
            if not self.over:  # what follows in the decision would be another's
                self._note(compare.of_fill(told.fill, done))

    def _compare_tokens(self, token: str, filled: list[Told], before: int | None, after: int | None) -> None:
        if self.over or before is None or after is None:
            return
        moved = sum(int(each.fill.arrival_raw) if each.fill.side == "buy" else -int(each.fill.spent_raw) for each in filled)
        self._note(compare.of_tokens(token, moved, after - before, self.program.kind.rounding_raw * len(filled)))

    # --- marks ------------------------------------------------------------------------------------------------------

    async def _mark(self) -> None:
        self.twins.paper.send(())
        self.lived.counts["marks"] += 1
        try:
            valued = await self.paper.value()
        except ChainFault as fault:
            self.lived.refusals[f"mark fault:{fault.reason}"] += 1
            self._note([("under_no_mark", str(fault)[:120])])
            self.twins.real.send(())
            return
        sold = [(mark, route) for mark in valued.holdings if int(mark.value_wei) and (route := self._route(mark)) is not None]
        parts = [[*(approval.tx for approval in route.approvals if approval.key not in self.paper.book.approvals), route.swap] for _, route in sold]
        happened = self.real.would(parts) if parts else []
        really = {mark.token: max(done.gross_wei - done.gas_wei, 0) if done.ok else 0 for (mark, _), done in zip(sold, happened, strict=False)}
        for mark in valued.holdings:
            self._compare_mark(mark, really.get(mark.token, 0))
        self.twins.real.send(())

    def _route(self, mark: HoldingMark) -> Route | None:
        return next((route for route in self.paper.sales(mark.token, int(mark.amount_raw)) if route.label == mark.route), None)

    def _compare_mark(self, mark: HoldingMark, real_wei: int) -> None:
        """Where the marked way brings something else, the best real sale is what counts."""
        if int(mark.value_wei) != real_wei or not real_wei:
            held = self.real.tokens(mark.token)
            amount = int(mark.amount_raw) if held is None else min(held, int(mark.amount_raw))
            done, _ = self.real.best_sale(self.paper.sales(mark.token, amount))
            real_wei = max(real_wei, done.gross_wei - done.gas_wei if done.ok else 0)
        self._note(compare.of_mark(mark, real_wei))


async def live(twins: Twins, door: RpcDoor, program: Program) -> Lived:
    """Live one life from the worlds' beginning."""
    twins.reset()
    twins.stalls += [twins.open(program.kind, program.venue) for _ in range(program.kind.copies)]
    if program.rival:
        twins.stalls.append(twins.open_better(twins.stalls[1], program.rival))
    twins.mine()
    twins.parted = program.ledger == IMPACT
    paper = await Paper.begin(twins, door, program, READER)
    life = Life(twins, program, paper)
    if not program.rival:
        return await life.play()
    await paper.settle()
    async with rival_of(twins, paper):
        return await life.play()
