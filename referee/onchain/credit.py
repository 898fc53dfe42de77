"""Credit: what the rules make of one order's board and gate, per ledger. Pure, so that a replay does the same again.

Headline counts proven rows only; permissive takes the best row of the same board, proven or not, but never one that
reverted. An exit that cannot be proven is filled at the quote less gas and tagged, so that it is never trapped by us.
A rival's row counts only when it is proven; where it cannot fill, the next best row does, down to our own router's.
Source: 001 §2.2; ONC-06 to ONC-11, ONC-27.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from chain.gas import fee_wei
from chain.trade import APPROVAL_USED_UP, FAILED, PROVEN, REVERTED, UNPROVABLE
from ledgers.events import Event
from ledgers.money import TokenRaw, Wei
from ledgers.postings import BOOK, ETH, Entry
from referee.onchain.book import BUY_UNPROVEN, EXIT_UNPROVEN, Book, asset_of, entry_of
from referee.onchain.events import (
    HEADLINE,
    BoardTaken,
    FillCredited,
    GateTaken,
    OrderAsked,
    OrderNotFilled,
    OrderRefused,
    RouteReverted,
    RouteSimulated,
    RouteUnprovable,
    Row,
)
from referee.onchain.rules import Rules

MARKET, GAS = "market", "gas"

REFUSALS = {
    "insufficient_eth": "ONC-27",
    "not_held": "ONC-04",
    "insufficient_tokens": "ONC-04",
    "board_too_old": "ONC-07",
    "gate_flagged": "ONC-08",
    "gate_unknown": "ONC-08",
    "gas_exceeds_value": "ONC-09",
    "unprovable_exit": "ONC-11",
    "standing_order": "ONC-26",
    "not_yet": "ONC-21",
    "lp_pool": "ONC-21",
    "lp_range": "ONC-21",
    "lp_share": "ONC-21",
    "lp_token": "ONC-21",
    "too_many_positions": "ONC-21",
    "no_position": "ONC-21",
    "window_closed": "ONC-12",
}
"""Every reason a rule may refuse an order for, and the rule."""

NOT_FILLED = ("no_route", "reverted", "fault", "unprovable_no_quote", "unprovable", "interrupted", "impact_unrepeatable")
"""Every reason an admitted order may not fill for."""

CLEAR, FLAGGED = "CLEAR", "FLAGGED"
LANE = "lane"
"""Why a row is unprovable where the node could not simulate at all."""
ROUTER = "router"
"""Source of our own rows; every other source is a rival."""
HOOKED = "hooked"
"""Flag of a row of ours that crosses a hook."""
SALE_SIZE_LIMITED = "sale_size_limited"
"""Flag of a reverted sale of which a smaller part goes through, and a gate's word for it."""

Ledgers = tuple[str, ...]


# --- before anything is asked ---------------------------------------------------------------------------------------


def exit_reserve_wei(rules: Rules, book: Book, token: str, gas_price_wei: Wei) -> Wei:
    """ETH that a buy must leave for the exits of every holding and position, its own included (ONC-27)."""
    return fee_wei(rules.exit_reserve_gas_per_holding * book.exits(token), gas_price_wei)


def carried(rules: Rules, asked: OrderAsked, book: Book, amount_held_raw: TokenRaw, gas_price_wei: Wei) -> tuple[str, str]:
    """Say whether a book can carry an order at all: (reason, detail), both empty when it can.

    Units: `amount_held_raw` is the token units that the book holds now (for a sell)."""
    if asked.side == "buy":
        assert asked.spend_wei is not None
        reserve = exit_reserve_wei(rules, book, asked.token, gas_price_wei)
        if asked.spend_wei + reserve > book.eth_wei:
            return "insufficient_eth", f"spend {asked.spend_wei} + exit reserve {reserve} > {book.eth_wei} wei held"
        return "", ""
    if amount_held_raw == TokenRaw(0):
        return "not_held", "the book holds none of this token"
    if asked.amount_raw is not None and asked.amount_raw > amount_held_raw:
        return "insufficient_tokens", f"sell {asked.amount_raw} > {amount_held_raw} held"
    return "", ""


# --- which row ------------------------------------------------------------------------------------------------------


def best_row(board: BoardTaken, rows: Iterable[Row]) -> Row | None:
    """The best row net of gas (ONC-06): buys by arrival ÷ (spend + gas), sells by ETH − gas; ties go to the earlier row.

    Shapes: rows in board order, our own router's first."""
    best: Row | None = None
    for row in rows:
        if best is None or _beats(board, row, best):
            best = row
    return best


def _beats(board: BoardTaken, row: Row, other: Row) -> bool:
    if board.side == "buy":
        spend = int(board.size_raw)
        return _claim(row) * (spend + int(other.gas_wei)) > _claim(other) * (spend + int(row.gas_wei))
    return _claim(row) - int(row.gas_wei) > _claim(other) - int(other.gas_wei)


def _claim(row: Row) -> int:
    """What a row brings: what arrived, or what it says when it was never simulated."""
    amount = row.arrival_raw if row.status == PROVEN else row.quoted_raw
    return int(amount or 0)


def chosen_row(board: BoardTaken, ledger: str, lane_only: bool = False) -> Row | None:
    """The best row that a ledger may fill at; None when it has none.

    A buy fills at a proven row only, since what it brings must be read. Of a sell, headline takes the best proven row, and
    an unprovable one only when there is none; permissive takes the best of both."""
    return next(iter(considered(board, ledger, lane_only)), None)


def considered(board: BoardTaken, ledger: str, lane_only: bool = False) -> list[Row]:
    """The rows that a ledger may fill at, best first, down to our own best, and our own best without hooks.

    With `lane_only` headline fills at a quote only where our own lane failed: what a token does is worth what it pays (ONC-11).

    So a rival's row costs nothing but itself, and neither does a pool that anybody opened under a hook."""
    proven = [row for row in board.rows if row.status == PROVEN]
    claimed = [row for row in board.rows if row.source == ROUTER and row.status == UNPROVABLE and row.quoted_raw]
    if board.side == "buy":
        return _down_to_our_own(board, proven)
    if ledger == HEADLINE:
        claimed = [row for row in claimed if row.reason == LANE] if lane_only else claimed
        best = _down_to_our_own(board, proven)
        return best if best and best[-1].source == ROUTER else best + _down_to_our_own(board, claimed)
    return _down_to_our_own(board, [row for row in board.rows if row in proven or row in claimed])


def _down_to_our_own(board: BoardTaken, rows: Sequence[Row]) -> list[Row]:
    left, ranked = list(rows), []
    while (best := best_row(board, left)) is not None:
        ranked.append(best)
        if best.source == ROUTER:
            plain = best_row(board, (row for row in left if row.source == ROUTER and HOOKED not in row.flags))
            return ranked if plain is None or plain is best else [*ranked, plain]
        left = [row for row in left if row is not best]
    return ranked


# --- what becomes of it ---------------------------------------------------------------------------------------------


def settle(rules: Rules, board: BoardTaken, gates: Sequence[GateTaken], books: Mapping[str, Book], ts_ms: int) -> tuple[Event, ...]:
    """Turn a board and the gates of its rows into the order's events, for every ledger of the board.

    Shapes: first what the chosen routes did, then the outcomes; ledgers of equal outcome share one event."""
    if board.age_ms > rules.board_age_ms_max:
        return (_refused(board, board.ledgers, "board_too_old", f"{board.age_ms} ms old, at most {rules.board_age_ms_max}", ts_ms),)
    lane_only = bool(rules.lane_claims_only)
    without = tuple(ledger for ledger in board.ledgers if chosen_row(board, ledger if lane_only else HEADLINE, lane_only) is None)
    unfilled = _no_row(board, without, ts_ms, lane_only) if without else ()
    by_route = {gate.route: gate for gate in gates}
    chosen: dict[int, Ledgers] = {}
    outcomes: dict[Judgement, Ledgers] = {}
    for ledger in (ledger for ledger in board.ledgers if ledger not in without):
        judged = _judged(board, by_route, books[ledger], lane_only)
        chosen[judged.place] = (*chosen.get(judged.place, ()), ledger)
        outcomes[judged] = (*outcomes.get(judged, ()), ledger)
    simulated = [_route_event(board, by_route, board.rows[place], ledgers, ts_ms) for place, ledgers in chosen.items()]
    return (*unfilled, *simulated, *(_outcome(board, by_route, judged, ledgers, ts_ms) for judged, ledgers in outcomes.items()))


Gates = Mapping[str, GateTaken]
"""Gates of a buy by the route that was gated."""


class Judgement(NamedTuple):
    """What the rules make of the order on one ledger; ledgers of equal judgement share one outcome."""

    place: int
    """Of the chosen row on the board."""
    reason: str
    """Why it is refused, else empty."""
    detail: str
    units: int
    """Storage units that come or go."""


def _no_row(board: BoardTaken, ledgers: Ledgers, ts_ms: int, lane_only: bool) -> tuple[Event, ...]:
    """What becomes of an order on ledgers without a usable row, by our own rows."""
    rows = [row for row in board.rows if row.source == ROUTER]
    statuses = {row.status for row in rows}
    if not rows:
        return (_not_filled(board, ledgers, "no_route", "no pool reaches this token", ts_ms),)
    if board.side == "buy" and UNPROVABLE in statuses:
        reason = next(row.reason for row in rows if row.status == UNPROVABLE)
        return (_refused(board, ledgers, "gate_unknown", f"what a buy brings cannot be read: {reason}", ts_ms),)
    if FAILED in statuses:
        reasons = sorted({row.reason for row in rows if row.status == FAILED})
        return (_not_filled(board, ledgers, "fault", ", ".join(reasons), ts_ms),)
    if REVERTED in statuses:
        row = next(row for row in rows if row.status == REVERTED)
        reverted = RouteReverted(
            run_id=board.run_id, ts_ms=ts_ms, order_id=board.order_id, ledgers=ledgers,
            route=row.route, reason=row.reason, evidence_sha256=row.digest,
        )  # fmt: skip
        limited = any(SALE_SIZE_LIMITED in row.flags for row in rows)
        return (reverted, _not_filled(board, ledgers, "reverted", f"{SALE_SIZE_LIMITED}: {row.reason}" if limited else row.reason, ts_ms))
    unknown = next((row for row in rows if row.status == UNPROVABLE), None)
    if unknown is not None and (unknown.quoted_raw or lane_only and unknown.reason != LANE):
        return (_not_filled(board, ledgers, "unprovable", unknown.reason, ts_ms),)
    return (_not_filled(board, ledgers, "unprovable_no_quote", rows[0].reason, ts_ms),)


def _judged(board: BoardTaken, gates: Gates, book: Book, lane_only: bool) -> Judgement:
    """Judge the best row that nothing speaks against; where each is refused, our own best one, if there is one."""
    rows = considered(board, book.ledger, lane_only)
    assert rows, f"{board.order_id} has a row for {HEADLINE} and none for {book.ledger}"
    judged = [_judgement(board, gates, book, row) for row in rows]
    return next((each for each in judged if not each.reason), judged[-1] if rows[-1].source == ROUTER else judged[0])


def _judgement(board: BoardTaken, gates: Gates, book: Book, row: Row) -> Judgement:
    reason, detail = _buy_refusal(board, gates.get(row.route), book, row) if board.side == "buy" else _sell_refusal(board, book, row)
    return Judgement(next(at for at, each in enumerate(board.rows) if each is row), reason, detail, _units(board, book, row))


def _buy_refusal(board: BoardTaken, gate: GateTaken | None, book: Book, row: Row) -> tuple[str, str]:
    if row.gas_wei > Wei(int(board.size_raw)):
        return "gas_exceeds_value", f"gas {row.gas_wei} wei > spend {board.size_raw} wei"
    needed = Wei(int(board.size_raw)) + row.gas_wei + board.exit_reserve_wei
    if needed > book.eth_wei:
        return "insufficient_eth", f"spend, gas and exit reserve come to {needed} wei > {book.eth_wei} held"
    if gate is None:
        return "gate_unknown", "no gate was taken of this route"
    if gate.verdict != CLEAR:
        return ("gate_flagged" if gate.verdict == FLAGGED else "gate_unknown"), gate.cause
    if not gate.exit_provable and book.ledger == HEADLINE:
        return "unprovable_exit", gate.exit_cause
    return "", ""


def _sell_refusal(board: BoardTaken, book: Book, row: Row) -> tuple[str, str]:
    if int(row.gas_wei) > _claim(row):
        return "gas_exceeds_value", f"gas {row.gas_wei} wei > {_claim(row)} wei that arrive"
    needed = max(row.gas_wei, fee_wei(row.approve_gas + max(row.gas_limit, row.swap_gas), board.gas_price_wei))
    if needed > book.eth_wei:
        return "insufficient_eth", f"gas {needed} wei > {book.eth_wei} held"
    return "", ""


def _units(board: BoardTaken, book: Book, row: Row) -> int:
    buy = board.side == "buy"
    units = int(row.units_raw) if row.units_raw is not None else _claim(row) if buy else int(board.size_units_raw)
    held = None if buy else book.held(board.token)
    return min(units, int(held.units_raw)) if held else units


def _route_event(board: BoardTaken, gates: Gates, row: Row, ledgers: Ledgers, ts_ms: int) -> Event:
    gate = gates.get(row.route)
    about = {"run_id": board.run_id, "ts_ms": ts_ms, "order_id": board.order_id, "ledgers": ledgers, "route": row.route}
    if row.status == PROVEN and (gate is None or gate.exit_provable or gate.verdict != CLEAR):
        return RouteSimulated(**about, evidence_sha256=row.digest)
    return RouteUnprovable(**about, reason=row.reason or (gate.exit_cause if gate else ""))


def _outcome(board: BoardTaken, gates: Gates, judged: Judgement, ledgers: Ledgers, ts_ms: int) -> Event:
    if judged.reason:
        return _refused(board, ledgers, judged.reason, judged.detail, ts_ms)
    row, buy = board.rows[judged.place], board.side == "buy"
    gate = gates.get(row.route)
    proven = row.status == PROVEN and (not buy or bool(gate and gate.exit_provable))
    cause = row.reason or (gate.exit_cause if gate else "")
    return FillCredited(
        run_id=board.run_id,
        ts_ms=ts_ms,
        order_id=board.order_id,
        ledgers=ledgers,
        proven=proven,
        tag="" if proven else f"{BUY_UNPROVEN if buy else EXIT_UNPROVEN}:{cause}",
        side=board.side,
        token=board.token,
        route=row.route,
        spent_raw=_spent(board, row, judged.units),
        arrival_raw=TokenRaw(_claim(row)),
        gas_wei=row.gas_wei,
        approvals=() if APPROVAL_USED_UP in row.flags else row.approvals,
        entry=(_buy_entry if buy else _sell_entry)(board, row, judged.units, ledgers),
        kept=row.kept or (gate.kept if buy and gate else ()),
    )


def _spent(board: BoardTaken, row: Row, units: int) -> TokenRaw:
    """Wei or token units given; a claim is for the whole size, whatever the book counts for it."""
    if board.side == "sell" and row.sold_raw is not None and row.status == PROVEN:
        return row.sold_raw
    return board.size_raw if board.side == "buy" or board.shares or row.status != PROVEN else TokenRaw(units)


def _buy_entry(board: BoardTaken, row: Row, units: int, ledgers: Ledgers) -> Entry:
    spend, gas = int(board.size_raw), int(row.gas_wei)
    asset = asset_of(board.token, board.shares)
    return entry_of(ledgers, {
        (BOOK, ETH): -spend - gas, (MARKET, ETH): spend, (GAS, ETH): gas, (BOOK, asset): units, (MARKET, asset): -units,
    })  # fmt: skip


def _sell_entry(board: BoardTaken, row: Row, units: int, ledgers: Ledgers) -> Entry:
    gross, gas = _claim(row), int(row.gas_wei)
    asset = asset_of(board.token, board.shares)
    return entry_of(ledgers, {
        (BOOK, ETH): gross - gas, (MARKET, ETH): -gross, (GAS, ETH): gas, (BOOK, asset): -units, (MARKET, asset): units,
    })  # fmt: skip


def _refused(board: BoardTaken, ledgers: Ledgers, reason: str, detail: str, ts_ms: int) -> OrderRefused:
    return refusal(board.run_id, board.order_id, ledgers, reason, detail, ts_ms)


def refusal(run_id: str, order_id: str, ledgers: Sequence[str], reason: str, detail: str, ts_ms: int) -> OrderRefused:
    """Write down that a rule said no."""
    return OrderRefused(run_id=run_id, ts_ms=ts_ms, order_id=order_id, ledgers=tuple(ledgers), reason=reason, rule=REFUSALS[reason], detail=detail)


def _not_filled(board: BoardTaken, ledgers: Ledgers, reason: str, detail: str, ts_ms: int) -> OrderNotFilled:
    return not_filled(board.run_id, board.order_id, ledgers, reason, detail, ts_ms)


def not_filled(run_id: str, order_id: str, ledgers: Sequence[str], reason: str, detail: str, ts_ms: int) -> OrderNotFilled:
    """Write down that an admitted order did not fill."""
    assert reason in NOT_FILLED, reason
    return OrderNotFilled(run_id=run_id, ts_ms=ts_ms, order_id=order_id, ledgers=tuple(ledgers), reason=reason, detail=detail)
