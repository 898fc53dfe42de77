"""The further tables of a report: what delay and own impact would have made of every run, in total and order by order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

from ledgers.money import Wei, decimal_text, mul_div_floor
from ledgers.report import Basis, Cell, Column, Said, Table, eth_text, percent_cell
from ops.further_gaps import FILLED, NAMES, REVERTED, RULES, FurtherGaps, OrderGap, unmeasured
from ops.lines import counted, minutes_text, seconds_text
from ops.lists import short_run
from ops.positions_report import PooledAccount
from referee.onchain.events import DELAYED, FURTHER_LEDGERS, HEADLINE, IMPACT, WindowLiquidated
from referee.onchain.rules import Rules, rules_named
from referee.onchain.state import RunState, WindowState

PPM = 1_000_000
CAUSES = {DELAYED: "delay", IMPACT: "impact"}
ORDERS_SHOWN_MAX = 20
TOTAL_COLUMNS = (
    Column("run_id", "run", people=False),
    Column("run", "run", machines=False),
    Column("ledger", "ledger", people=False),
    Column("ledger_text", "ledger", machines=False),
    Column("rule", "rule", people=False),
    Column("result_percent", "result"),
    Column("gap_percent", "gap"),
    Column("gap_eth", "gap in ETH", people=False),
    Column("gap_orders_percent", "of orders"),
    Column("gap_sale_percent", "of the sale"),
    Column("positions", "positions not kept", people=False),
    Column("orders", "orders", people=False),
    Column("filled", "filled", people=False),
    Column("filled_text", "filled", machines=False),
    Column("better", "better", people=False),
    Column("worse", "worse", people=False),
    Column("reverted", "reverted", people=False),
    Column("gas_lost_eth", "gas lost", people=False),
    Column("mean_gap_percent", "mean gap", people=False),
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
    pooled: PooledAccount

    @property
    def further_ledgers(self) -> tuple[str, ...]: ...
    def ranked(self) -> list[str]: ...


def further_tables(account: Accounted, window_id: str, basis: Basis) -> tuple[Table, ...]:
    """Lay out what further ledgers came to, and every order on them; nothing where the rules keep none."""
    if not account.further_ledgers:
        return ()
    return _totals(account, window_id, basis), _orders(account, basis)


def _totals(account: Accounted, window_id: str, basis: Basis) -> Table:
    runs, pooled = account.state.runs, Counter(kept.opened.run_id for kept in account.pooled.positions.all())
    rows = [
        _total(runs[run_id], ledger, short_run(run_id, window_id), account.further.of(run_id, ledger), _stake(account), pooled[run_id])
        for run_id in account.ranked() for ledger in account.further_ledgers if ledger in runs[run_id].ledgers
    ]  # fmt: skip
    assert account.state.opened is not None
    notes = "\n".join([*_notes(rules_named(account.state.opened.rules_name), account.further_ledgers, bool(pooled)), *_left_out(account, window_id)])
    return Table(name="further", title="Beside the score: delay and own impact", basis=basis, columns=TOTAL_COLUMNS, rows=tuple(rows), note=notes)


def _notes(rules: Rules, ledgers: Sequence[str], pooled: bool) -> Iterator[str]:
    yield "Never part of a score: what it would be with an assumption of the headline taken away. A gap is that ledger less the headline, in percent of the stake; below 0 the headline flatters."
    if DELAYED in ledgers:
        assert rules.delay_ms is not None and rules.delay_loss_bps_max is not None
        yield (
            f"delayed (ONC-22): the same transaction sent again {seconds_text(rules.delay_ms)} later; it fills where at most "
            f"{decimal_text(rules.delay_loss_bps_max, 2)} % less arrives than was quoted, else it reverts for its gas."
        )
    if IMPACT in ledgers:
        assert rules.impact_full_ms is not None and rules.impact_gone_ms is not None
        yield (
            f"own impact (ONC-23): up to {rules.impact_trades_max} earlier trades of the run are executed first, felt in full for "
            f"{minutes_text(rules.impact_full_ms)} and fading evenly to nothing at {minutes_text(rules.impact_gone_ms)}; always over our own router. "
            "It is often above 0: a buy pays for pushing the price up on every ledger, but headline sells into a pool that nobody pushed, "
            "own impact into the pushed one, as on the chain."
        )
    yield "of the sale: what was left at the end sold for more or less a token than on headline. of orders: the rest of the gap. filled: of the orders that headline filled."
    if pooled:
        yield "* the run opened liquidity positions, which this ledger does not keep: what they brought is in its gap, of orders."


def _left_out(account: Accounted, window_id: str) -> Iterator[str]:
    """Say beside which runs orders were left out, so that their gap is not read as delay or impact."""
    for run_id in account.ranked():
        for ledger in account.further_ledgers:
            if said := unmeasured(orders := account.further.of(run_id, ledger)):
                parts = ", ".join(f"{count} {words}" for words, count in said.items())
                yield f"{short_run(run_id, window_id)}, {NAMES[ledger]}: of {counted(len(orders), 'order')} {parts}; what they would have changed is in its gap, and is no {CAUSES[ledger]}."


def _stake(account: Accounted) -> Wei:
    assert account.state.opened is not None
    return account.state.opened.stake_wei


def _total(run: RunState, ledger: str, name: str, orders: list[OrderGap], stake_wei: Wei, positions: int) -> tuple[Cell, ...]:
    sold, headline = run.liquidated.get(ledger), run.liquidated.get(HEADLINE)
    gap = sold.value_wei - headline.value_wei if sold and headline else None
    of_sale = sale_gap(sold, headline) if sold and headline else None
    gaps = [each.gap_ppm for each in orders if each.gap_ppm is not None]
    filled = sum(each.ended == FILLED for each in orders)
    return (
        run.opened.run_id,
        name,
        ledger,
        f"{NAMES[ledger]}{' *' if positions else ''}",
        RULES[ledger],
        percent_cell(mul_div_floor(sold.value_wei - stake_wei, PPM, stake_wei)) if sold else None,
        percent_cell(None if gap is None else mul_div_floor(gap, PPM, stake_wei)),
        None if gap is None else signed_eth(gap),
        percent_cell(None if gap is None or of_sale is None else mul_div_floor(gap - of_sale, PPM, stake_wei)),
        percent_cell(None if of_sale is None else mul_div_floor(of_sale, PPM, stake_wei)),
        positions,
        len(orders),
        filled,
        f"{filled}/{len(orders)}",
        sum(gap > 0 for gap in gaps),
        sum(gap < 0 for gap in gaps),
        sum(each.ended == REVERTED for each in orders) if ledger == DELAYED else None,
        decimal_text(sum((each.gas_lost_wei for each in orders), Wei(0)), 18),
        percent_cell(sum(gaps) // len(gaps)) if gaps else None,
    )


def sale_gap(sold: WindowLiquidated, headline: WindowLiquidated) -> Wei | None:
    """The part of a gap that the last sale made: what each holding brought less what as much brought at headline's price for a unit of it.

    None where headline held none of a token, so that there is no such price."""
    there = {mark.token: mark for mark in headline.holdings if int(mark.amount_raw)}
    held = [mark for mark in sold.holdings if int(mark.amount_raw)]
    if any(mark.token not in there for mark in held):
        return None
    at_headline = sum(mul_div_floor(int(mark.amount_raw), int(there[mark.token].value_wei), int(there[mark.token].amount_raw)) for mark in held)
    return Wei(sum(int(mark.value_wei) for mark in held) - at_headline)


def _orders(account: Accounted, basis: Basis) -> Table:
    orders = sorted(account.further.orders, key=lambda each: (-abs(each.gap_ppm or 0), FURTHER_LEDGERS.index(each.ledger)))
    return Table(
        name="gaps",
        title="Gaps to the headline, order by order",
        basis=Basis(label=basis.label, n=len({each.order_id for each in orders}), of=f"orders that headline filled, on {counted(len(account.further_ledgers), 'further ledger')}", claim=basis.claim),
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
