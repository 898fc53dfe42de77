"""The replay: every ledger, every outcome and every score computed again from the journal, without a network.

What the world answered (boards, gates, sales, prices, faults) is taken from the record; what the rules make of it is
computed anew and compared with what was recorded. Equal, or the first difference by record, field and both values.
Source: design §4, "restart = replay".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace

from chain.trade import PROVEN
from harnesses.stack import run_identity
from ledgers.errors import CorruptJournal
from ledgers.events import Event, kind_of
from ledgers.identity import sha256_hex
from ledgers.journal import Record, verify
from ledgers.money import Wei
from ledgers.postings import BOOK, ETH, Posting
from referee.onchain.accrual_court import AccrualCourt, Recall
from referee.onchain.admission import NOT_YET, STANDING_ORDER, WINDOW_CLOSED, refused_by_name
from referee.onchain.book import asset_of, stake_entry
from referee.onchain.cadence import mark_interval_ms, rotation, tick_ts_ms, ticks_in
from referee.onchain.credit import CLEAR, FLAGGED, GAS, MARKET, REFUSALS, settle
from referee.onchain.events import (
    FURTHER_LEDGERS,
    LEDGERS,
    BoardTaken,
    DecisionTaken,
    FillCredited,
    GateTaken,
    HoldingMark,
    MarkTaken,
    OrderAsked,
    OrderNotFilled,
    OrderRefused,
    PlanWritten,
    RouteReverted,
    RouteSimulated,
    RouteUnprovable,
    RunOpened,
    RunScored,
    TickMissed,
    WindowLiquidated,
    WindowOpened,
    WindowScored,
    WindowSealed,
    Woken,
)  # fmt: skip
from referee.onchain.further_court import FurtherCourt, is_further
from referee.onchain.further_events import DelayedReverted, FurtherBoardTaken, OrderSkipped, RouteRemembered
from referee.onchain.liquidity_court import LiquidityCourt
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityClosed, LiquidityOpened
from referee.onchain.marks import COUNTED
from referee.onchain.opening import paper_wallet
from referee.onchain.rules import Rules, rules_named
from referee.onchain.score import score_run, score_window, stake_for
from referee.onchain.state import WindowState, decoded

TEXT_CHARS_MAX = 200
Adjudged = RouteSimulated | RouteReverted | RouteUnprovable | FillCredited | OrderRefused | OrderNotFilled
"""What the rules make of a board."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the record and the recomputation part."""

    seq: int
    kind: str
    field: str
    recorded: str
    recomputed: str


@dataclass(slots=True)
class Replayed:
    """What a replay found."""

    state: WindowState = field(default_factory=WindowState)
    """Books, marks and scores as recomputed, up to the difference if there is one."""
    records: int = 0
    recomputed: int = 0
    """Records of which something was computed again."""
    observed: int = 0
    """Outcomes taken as recorded, for only the world knew: faults, interruptions, and gas prices no board tells."""
    difference: Difference | None = None


class Differs(Exception):
    """Carries a difference from a check to the replay."""

    def __init__(self, name: str, recorded: object, recomputed: object) -> None:
        super().__init__(name)
        self.name, self.recorded, self.recomputed = name, recorded, recomputed


def replay(records: Iterable[Record], recall: Recall | None = None) -> Replayed:
    """Compute a window again from its journal; with `recall`, which finds its blobs, what positions earned too.

    Raises: CorruptJournal when chain, entries or books do not hold."""
    kept = list(records)
    verify(kept)
    found = Replayed()
    court = _Court(found, recall)
    for record in kept:
        event = decoded(record)
        try:
            court.check(record, event)
            found.state.apply(event)
        except Differs as part:
            found.difference = Difference(record.seq, record.kind, part.name, _text(part.recorded), _text(part.recomputed))
            return found
        except CorruptJournal as error:
            raise CorruptJournal(f"record {record.seq}: {error}", record.seq) from error
        found.records = record.seq
    return found


class _Court:
    """Hears every event against what the rules make of the ones before it."""

    def __init__(self, found: Replayed, recall: Recall | None) -> None:
        self._found = found
        self._state = found.state
        self._rules: Rules | None = None
        self._boards: dict[str, BoardTaken] = {}
        """By run, the last board."""
        self._gates: dict[str, list[GateTaken]] = {}
        """By run, the gates of the last board's rows."""
        self._expected: dict[str, deque[Adjudged]] = {}
        """By run, what the rules make of the last board and is still to be recorded."""
        self._further = FurtherCourt(self._state, _same)
        self._liquidity = LiquidityCourt(self._state, _same, AccrualCourt(self._state, _same, recall) if recall else None)
        self._scores: list[tuple[int, RunScored]] = []
        self._last_link = ""
        self._rotated: tuple[int, dict[str, int]] = (-1, {})
        """The last tick looked at, and every run's place in it."""

    @property
    def rules(self) -> Rules:
        assert self._rules is not None, "a window begins with its opening"
        return self._rules

    def check(self, record: Record, event: Event) -> None:
        """Raises: Differs at the first field that comes out otherwise."""
        before = self._found.observed
        known = self._hear(record, event)
        self._found.recomputed += known and self._found.observed == before
        self._last_link = record.link

    def _hear(self, record: Record, event: Event) -> bool:
        match event:
            case WindowOpened():
                self._opening(event)
            case RunOpened():
                self._run(event)
            case PlanWritten():
                self._plan(event)
            case Woken():
                self._schedule(event)
                _same("order_index", event.order_index, self._place(event))
            case TickMissed():
                self._schedule(event)
            case BoardTaken():
                self._board(event)
            case GateTaken():
                self._gate(event)
            case FurtherBoardTaken():
                self._further.board(self.rules, event, self._asked(event))
            case RouteRemembered():
                self._further.remembered(event)
            case LiquidityOpened():
                self._liquidity.opened(self.rules, event, self._asked(event))
            case LiquidityAccrued():
                self._liquidity.accrued(event)
            case LiquidityClosed():
                self._liquidity.closed(event, self._asked(event))
            case OrderSkipped():
                self._further.skip(event, self._asked(event))
            case _ if is_further(event) and isinstance(event, Adjudged | DelayedReverted):
                self._followed(event)
            case DecisionTaken():
                self._all_settled(event.run_id, LEDGERS)
            case _ if isinstance(event, Adjudged):
                self._adjudged(event)
            case MarkTaken():
                self._mark(event)
            case WindowLiquidated():
                self._liquidated(event)
            case RunScored():
                self._scores.append((record.seq, event))
            case WindowScored():
                self._scored(event)
            case WindowSealed():
                _same("events", event.events, record.seq - 1)
                _same("root", event.root, self._last_link)
                if event.secret:
                    self._secret(event.secret)
            case _:
                return False
        return True

    @property
    def _opened(self) -> WindowOpened:
        if self._state.opened is None:
            raise CorruptJournal("the journal does not begin with WindowOpened")
        return self._state.opened

    # --- the opening and the schedule -------------------------------------------------------------------------------

    def _opening(self, opened: WindowOpened) -> None:
        try:
            self._rules = replace(rules_named(opened.rules_name), board_policy=opened.board_policy)
        except KeyError as error:
            raise Differs("rules_name", opened.rules_name, error.args[0]) from None
        _same("rules_sha256", opened.rules_sha256, self._rules.sha256())
        length_ms = opened.close_ts_ms - opened.open_ts_ms
        _same("stake_wei", opened.stake_wei, stake_for(self._rules.stake_micro_usd, opened.eth_usd_micro_usd))
        _same("ticks", opened.ticks, ticks_in(length_ms, opened.interval_ms))
        _same("mark_interval_ms", opened.mark_interval_ms, mark_interval_ms(self._rules, length_ms))

    def _run(self, run: RunOpened) -> None:
        if not (self.rules.unforeseen_wallets and self._opened.secret_sha256):  # else the seal tells what they follow from
            _same("wallet", run.wallet, paper_wallet(self._opened.window_sha256, run.run_id))
        _same("entry", run.entry, stake_entry(self._opened.stake_wei, self.rules.further_ledgers))

    def _secret(self, secret: str) -> None:
        """The secret is the one that was committed to, and the wallets follow from it."""
        _same("secret", sha256_hex(secret.encode()), self._opened.secret_sha256)
        for run in self._state.runs.values() if self.rules.unforeseen_wallets else ():
            _same("wallet", run.opened.wallet, paper_wallet(self._opened.window_sha256, run.opened.run_id, secret))

    def _plan(self, plan: PlanWritten) -> None:
        """The run is named by its plan, and no plan was still being written when the window clock started (ONC-14)."""
        run = self._state.runs[plan.run_id].opened
        _same("run_sha256", run.run_sha256, run_identity(run.stack_sha256, plan.plan_sha256))
        _same("begun_ts_ms", plan.begun_ts_ms, min(plan.begun_ts_ms, self._opened.open_ts_ms))

    def _schedule(self, event: Woken | TickMissed) -> None:
        _same("scheduled_ts_ms", event.scheduled_ts_ms, tick_ts_ms(self._opened, event.tick))

    def _place(self, woken: Woken) -> int:
        if self._rotated[0] != woken.tick:
            order = rotation(tuple(self._state.runs), self._opened.seed, woken.tick)
            self._rotated = (woken.tick, {run_id: place for place, run_id in enumerate(order)})
        return self._rotated[1].get(woken.run_id, -1)

    # --- orders -----------------------------------------------------------------------------------------------------

    def _board(self, board: BoardTaken) -> None:
        self._none_left(board.run_id)
        self._asked(board)
        _same("age_ms", board.age_ms, max([board.age_ms, *(row.age_ms for row in board.rows if row.status == PROVEN)]))
        self._boards[board.run_id] = board
        self._gates[board.run_id] = []
        self._expected.pop(board.run_id, None)

    def _gate(self, gate: GateTaken) -> None:
        """A gate is of one proven row of its board, and what outside sources say against a token clears nothing (ONC-08)."""
        board = self._boards.get(gate.run_id)
        about = (gate.order_id, gate.ledgers) if board is None else (board.order_id, board.ledgers)
        _same("order_id", (gate.order_id, gate.ledgers), about)
        if gate.outside:
            _same("verdict", gate.verdict, FLAGGED if gate.verdict == CLEAR else gate.verdict)
        self._gates.setdefault(gate.run_id, []).append(gate)

    def _followed(self, event: Adjudged | DelayedReverted) -> None:
        expected = self._further.next(event)
        if expected is None:
            self._without_board(event)
        else:
            _same_event(event, expected)

    def _adjudged(self, event: Adjudged) -> None:
        self._further.ended(event)
        board = self._boards.get(event.run_id)
        if board is None or board.order_id != event.order_id or not set(event.ledgers) <= set(board.ledgers):
            self._without_board(event)
            return
        if event.run_id not in self._expected:
            books = self._state.books.both(event.run_id)
            self._expected[event.run_id] = deque(settle(self.rules, board, self._gates.get(event.run_id, []), books, event.ts_ms))
        expected = self._expected[event.run_id]
        if not expected:
            raise Differs("kind", kind_of(event), "nothing more for this board")
        _same_event(event, expected.popleft())

    def _none_left(self, run_id: str) -> None:
        if left := self._expected.get(run_id):
            raise Differs("kind", "the order went on", f"{kind_of(left[0])} of {left[0].order_id}")

    def _all_settled(self, run_id: str, ledgers: Sequence[str] = (*LEDGERS, *FURTHER_LEDGERS)) -> None:
        self._none_left(run_id)
        owing = [order_id for order_id, left in self._state.runs[run_id].owed.items() if left & set(ledgers)]
        _same("orders without an outcome", sorted(owing), [])
        if ledgers != LEDGERS:
            _same("boards without an outcome", self._further.left(run_id), [])

    def _asked(self, event: BoardTaken | FurtherBoardTaken | OrderSkipped | DelayedReverted | LiquidityOpened | LiquidityClosed | Adjudged) -> OrderAsked:
        asked = self._state.runs[event.run_id].asked.get(event.order_id)
        if asked is None:
            raise Differs("order_id", event.order_id, "no such order was decided")
        return asked

    def _without_board(self, event: Adjudged | DelayedReverted) -> None:
        """Judge what needs no board; what only the world knew is taken as recorded."""
        asked = self._asked(event)
        by_name, _ = refused_by_name(asked, event.ts_ms, self._opened.close_ts_ms, self.rules)
        if isinstance(event, OrderRefused):
            _same("rule", event.rule, REFUSALS.get(event.reason, "none"))
            if by_name or event.reason in (WINDOW_CLOSED, NOT_YET, STANDING_ORDER):
                _same("reason", event.reason, by_name or "admitted")
                return
        elif not isinstance(event, OrderNotFilled):
            raise Differs("kind", kind_of(event), "an outcome without a board")
        self._found.observed += 1

    # --- marks, liquidation, score ----------------------------------------------------------------------------------

    def _mark(self, mark: MarkTaken) -> None:
        for ledger in mark.ledgers:
            _same("eth_wei", mark.eth_wei, self._state.books.of(mark.run_id, ledger).eth_wei)
        if mark.value_wei is not None:
            self._holdings(mark.run_id, mark.ledgers, mark.holdings)
            pooled, _, _ = self._liquidity.marked(mark.run_id, mark.ledgers, mark.positions, mark.pin)
            _same("value_wei", mark.value_wei, _worth(mark.eth_wei + pooled, mark.holdings))

    def _liquidated(self, sold: WindowLiquidated) -> None:
        self._all_settled(sold.run_id)
        for ledger in sold.ledgers:
            _same("eth_wei", sold.eth_wei, self._state.books.of(sold.run_id, ledger).eth_wei)
        self._holdings(sold.run_id, sold.ledgers, sold.holdings)
        pooled, claimed_pooled, moves = self._liquidity.marked(sold.run_id, sold.ledgers, sold.positions, sold.pin)
        _same("value_wei", sold.value_wei, _worth(sold.eth_wei + pooled, sold.holdings))
        claimed = sum((holding.value_wei for holding in sold.holdings if holding.status == "unprovable"), claimed_pooled)
        _same("unproven_wei", sold.unproven_wei, claimed)
        _same("entry.ledgers", sold.entry.ledgers, sold.ledgers)
        _same("entry.postings", _sums(sold.entry.postings), self._sales(sold, moves))
        _same("late", sold.late, self._state.closed_late)

    def _holdings(self, run_id: str, ledgers: Sequence[str], marks: Sequence[HoldingMark]) -> None:
        for ledger in ledgers:
            held = {holding.token: holding for holding in self._state.books.of(run_id, ledger).holdings}
            _same("holdings", sorted(mark.token for mark in marks), sorted(held))
            for mark in marks:
                if not held[mark.token].shares and not self.rules.lane_claims_only:  # since then tokens are asked what is held
                    _same(f"holdings.{mark.token}.amount_raw", mark.amount_raw, held[mark.token].units_raw)
        for mark in marks:
            _same(f"holdings.{mark.token}.value_wei", mark.value_wei, max(mark.gross_wei - mark.gas_wei, Wei(0)))

    def _sales(self, sold: WindowLiquidated, moves: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
        """What moves when everything that counts is sold, beside what the positions move."""
        book = self._state.books.of(sold.run_id, sold.ledgers[0])
        for mark in sold.holdings:
            holding = book.held(mark.token)
            if mark.status in COUNTED and holding is not None:
                asset, units = asset_of(holding.token, holding.shares), int(holding.units_raw)
                gross, gas = int(mark.gross_wei), int(mark.gas_wei)
                sale = {(BOOK, ETH): gross - gas, (MARKET, ETH): -gross, (GAS, ETH): gas, (BOOK, asset): -units, (MARKET, asset): units}
                for key, amount in sale.items():
                    moves[key] = moves.get(key, 0) + amount
        return {key: amount for key, amount in moves.items() if amount}

    def _scored(self, window: WindowScored) -> None:
        price, opened = window.close_eth_usd_micro_usd, self._opened
        for seq, score in self._scores:
            run = self._state.runs[score.run_id]
            again = score_run(run, opened.stake_wei, self._state.lost, price, self.rules, score.reason, score.ts_ms)
            _same_event(score, again, f"RunScored {seq}: ")
        scores = [score for _, score in self._scores]
        _same("runs", len(scores), len(self._state.runs))
        _same_event(window, score_window(window.run_id, scores, price, window.ts_ms))


def _worth(eth_wei: Wei, marks: Sequence[HoldingMark]) -> Wei:
    return sum((mark.value_wei for mark in marks), eth_wei)


def _sums(postings: Sequence[Posting]) -> dict[tuple[str, str], int]:
    sums: dict[tuple[str, str], int] = {}
    for posting in postings:
        key = (posting.account, posting.asset)
        sums[key] = sums.get(key, 0) + int(posting.amount)
    return {key: amount for key, amount in sums.items() if amount}


def _same(name: str, recorded: object, recomputed: object) -> None:
    if recorded != recomputed:
        raise Differs(name, recorded, recomputed)


def _same_event(recorded: Event, recomputed: Event, where: str = "") -> None:
    _same(f"{where}kind", kind_of(recorded), kind_of(recomputed))
    for part in fields(recorded):
        if part.name != "ts_ms":
            _same(f"{where}{part.name}", getattr(recorded, part.name), getattr(recomputed, part.name))


def _text(value: object) -> str:
    text = str(value)
    return text if len(text) <= TEXT_CHARS_MAX else text[: TEXT_CHARS_MAX - 1] + "…"
