"""The further tables of a report: what delay and own impact would have made of every run, in total and order by order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ledgers.money import Wei, decimal_text, mul_div_floor
from ledgers.report import Basis, Cell, Column, Said, Table, eth_text, percent_cell
from ops.further_gaps import FILLED, NAMES, REVERTED, RULES, FurtherGaps, OrderGap
from ops.lists import short_run
from referee.onchain.events import DELAYED, FURTHER_LEDGERS, HEADLINE
from referee.onchain.state import RunState, WindowState

PPM = 1_000_000
ORDERS_SHOWN_MAX = 20
TOTAL_COLUMNS = (
    Column("run_id", "run", people=False),
    Column("run", "run", machines=False),
    Column("ledger", "ledger", people=False),
    Column("ledger_text", "ledger", machines=False),
    Column("rule", "rule"),
    Column("result_percent", "result"),
    Column("gap_percent", "gap"),
    Column("gap_eth", "gap in ETH", people=False),
    Column("orders", "orders", people=False),
    Column("filled", "filled", people=False),
    Column("filled_text", "filled", machines=False),
    Column("better", "better"),
    Column("worse", "worse"),
    Column("reverted", "reverted"),
    Column("gas_lost_eth", "gas lost", people=False),
    Column("mean_gap_percent", "mean gap"),
)
ORDER_COLUMNS = (
    Column("order_id", "order"),
    Column("run_id", "run", people=False),
    Column("ledger", "ledger"),
    Column("rule", "rule"),
    Column("side", "side"),
    Column("token", "token", people=False),
    Column("ended", "ended"),
    Column("reason", "reason"),
    Column("gap_percent", "gap"),
)


class Accounted(Protocol):
    """What these tables need of a window's account."""

    state: WindowState
    further: FurtherGaps

    @property
    def further_ledgers(self) -> tuple[str, ...]: ...
    def ranked(self) -> list[str]: ...


def further_tables(account: Accounted, window_id: str, basis: Basis) -> tuple[Table, ...]:
    """Lay out what further ledgers came to, and every order on them; nothing where the rules keep none."""
    if not account.further_ledgers:
        return ()
    return _totals(account, window_id, basis), _orders(account, basis)


def _totals(account: Accounted, window_id: str, basis: Basis) -> Table:
    runs = account.state.runs
    rows = [
        _total(runs[run_id], ledger, short_run(run_id, window_id), account.further.of(run_id, ledger), _stake(account))
        for run_id in account.ranked() for ledger in account.further_ledgers if ledger in runs[run_id].ledgers
    ]  # fmt: skip
    return Table(name="further", title="Beside the score: delay and own impact", basis=basis, columns=TOTAL_COLUMNS, rows=tuple(rows), note="\n".join(_notes()))


def _notes() -> Iterator[str]:
    yield "Never part of a score: what it would be with an assumption of the headline taken away. A gap is that ledger less the headline; below 0 the headline flatters."
    yield "delayed (ONC-22): the same transaction sent again after a declared delay, and filled within a bound or reverted for its gas."
    yield "own impact (ONC-23): the run's own earlier trades in the same pools are executed first, fading by a declared rule; always over our own router."
    yield "gap: of the liquidation value, in percent of the stake. filled: of the orders that headline filled. mean gap: of filled orders, by what arrived for one unit given. better, worse: filled orders by the sign of that."


def _stake(account: Accounted) -> Wei:
    assert account.state.opened is not None
    return account.state.opened.stake_wei


def _total(run: RunState, ledger: str, name: str, orders: list[OrderGap], stake_wei: Wei) -> tuple[Cell, ...]:
    sold, headline = run.liquidated.get(ledger), run.liquidated.get(HEADLINE)
    gap = sold.value_wei - headline.value_wei if sold and headline else None
    gaps = [each.gap_ppm for each in orders if each.gap_ppm is not None]
    filled = sum(each.ended == FILLED for each in orders)
    return (
        run.opened.run_id,
        name,
        ledger,
        NAMES[ledger],
        RULES[ledger],
        percent_cell(mul_div_floor(sold.value_wei - stake_wei, PPM, stake_wei)) if sold else None,
        percent_cell(None if gap is None else mul_div_floor(gap, PPM, stake_wei)),
        None if gap is None else signed_eth(gap),
        len(orders),
        filled,
        f"{filled}/{len(orders)}",
        sum(gap > 0 for gap in gaps),
        sum(gap < 0 for gap in gaps),
        sum(each.ended == REVERTED for each in orders) if ledger == DELAYED else None,
        decimal_text(sum((each.gas_lost_wei for each in orders), Wei(0)), 18),
        percent_cell(sum(gaps) // len(gaps)) if gaps else None,
    )


def _orders(account: Accounted, basis: Basis) -> Table:
    orders = sorted(account.further.orders, key=lambda each: (-abs(each.gap_ppm or 0), FURTHER_LEDGERS.index(each.ledger)))
    return Table(
        name="gaps",
        title="Gaps to the headline, order by order",
        basis=Basis(label=basis.label, n=len(orders), of="orders that headline filled, once on each further ledger", claim=basis.claim),
        columns=ORDER_COLUMNS,
        rows=tuple(_order(each) for each in orders),
        note="largest first; what arrived for one unit given against the same on headline",
        people_rows_max=ORDERS_SHOWN_MAX,
    )


def _order(each: OrderGap) -> tuple[Cell, ...]:
    reason = each.reason or None
    return each.order_id, each.run_id, NAMES[each.ledger], RULES[each.ledger], each.side, each.token, each.ended, reason, percent_cell(each.gap_ppm)


def signed_eth(amount_wei: Wei) -> Said:
    """Write an amount of ETH with its sign; machines get all of it."""
    text = eth_text(amount_wei, 8) or ""
    return Said(f"+{text}" if int(amount_wei) > 0 else text, decimal_text(amount_wei, 18))
