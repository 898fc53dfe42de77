"""The position telling: one position of liquidity laid out line by line, fees and impermanent loss always apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledgers.events import Event
from ledgers.money import TokenRaw, Wei, mul_div_ceil
from ops.lines import because, counted, ledgers_text
from ops.names import Names
from ops.position_lines import accrued_text, amounts_text, blocks_text, outside, part_text, pool_text, price_text, range_text, share_text, signed_eth_text, small_eth_text, state_text, unit_text, where_text
from ops.positions import LOST, OPEN, Kept
from referee.onchain.events import OrderAsked
from referee.onchain.liquidity import LP, LP_FEES, PPM
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityOpened

ACCRUALS_SHOWN_MAX = 12
POSITIONS_TOLD_MAX = 6
BLANK = ("", "")
"""A line between parts of a text."""
ACCOUNTS = {LP: "lp (in the pool)", LP_FEES: "lp_fees (from swaps)"}
"""Accounts of positions in words."""

Chapter = tuple[str, str]


def positions_chapters(found: Sequence[Kept], names: Names) -> Iterator[Chapter]:
    """Tell the positions of a run: the first in full, open ones before closed ones, the others in a line each."""
    ordered = sorted(found, key=lambda kept: kept.state != OPEN)
    for kept in ordered[:POSITIONS_TOLD_MAX]:
        yield from (BLANK, *position_chapters(kept, names))
    if left := ordered[POSITIONS_TOLD_MAX:]:
        yield BLANK
        yield from (("positions", _brief(kept, names)) for kept in left)
    if found:
        yield BLANK


def _brief(kept: Kept, names: Names) -> str:
    worth = kept.worth
    told = f"fees {small_eth_text(worth.fees_wei)} ETH, impermanent loss {_signed(worth.impermanent_wei)} ETH" if worth else "not marked yet"
    return f"{ledgers_text(kept.ledgers)}{kept.id}  {pool_text(kept.opened, names)}  {state_text(kept)}  {told}"


def position_chapters(kept: Kept, names: Names) -> Iterator[Chapter]:
    """Tell a position: what it is, what went in, what it earned, what it is worth."""
    opened = kept.opened
    yield "position", f"{ledgers_text(kept.ledgers)}{kept.id}, {state_text(kept)}"
    yield "pool", f"{pool_text(opened, names).removesuffix(opened.pool[:10]).rstrip()}, {opened.pool}"
    yield "range", range_text(opened, names)
    yield "", _price_line(kept, names)
    yield "put in", f"{amounts_text(kept.assets, kept.put_in, names)} at block {opened.pin.block}, {share_text(opened)}"
    yield "fees", _fees_line(kept, names)
    yield "principal", _principal_line(kept, names)
    yield from _worth_chapters(kept)


def _price_line(kept: Kept, names: Names) -> str:
    if not kept.sqrt_price_x96:
        return "the pool's price was not recorded"
    block = kept.closed.pin.block if kept.closed else kept.mark_block if kept.mark else kept.opened.pin.block
    return f"{where_text(kept, names)}: {price_text(kept.sqrt_price_x96, kept.opened, names)} {unit_text(kept.opened, names)} at block {block}"


def _fees_line(kept: Kept, names: Names) -> str:
    worth = kept.worth
    told = worth is not None and any(map(int, kept.fees))
    marked = f", {small_eth_text(worth.fees_wei)} ETH at the mark of block {worth.block}" if told and worth and kept.closed and worth.block != kept.end_block else ""
    in_eth = f" = {small_eth_text(worth.fees_wei)} ETH at block {worth.block}" if told and worth and not marked else marked
    if not kept.accruals:
        return "none counted yet"
    blocks = blocks_text(kept.accruals[0].from_block, kept.accruals[-1].to_block)
    return f"{amounts_text(kept.assets, kept.fees, names)}{in_eth}; computed from {counted(kept.swaps, 'swap')}, {counted(kept.crossings, 'tick')} crossed, {blocks}"


def _principal_line(kept: Kept, names: Names) -> str:
    if kept.principal is None:
        return "not marked yet"
    when = "came back" if kept.state not in (OPEN, LOST) else f"at block {kept.mark_block}"
    return f"{amounts_text(kept.assets, kept.principal, names)} {when}"


def _worth_chapters(kept: Kept) -> Iterator[Chapter]:
    worth = kept.worth
    if worth is None:
        return
    yield "imp. loss", (
        f"impermanent loss {_signed(worth.impermanent_wei)} ETH: principal worth {small_eth_text(worth.principal_wei)}, "
        f"what was put in {small_eth_text(worth.held_wei)}, both at the price of block {worth.block}"
    )
    if kept.mark and not kept.closed:
        yield "value", f"{small_eth_text(kept.mark.value_wei)} ETH when closed and sold at block {kept.mark_block}, {kept.mark.status}{because(kept.mark.reason)}"
    yield "gas", f"{small_eth_text(kept.gas_wei)} ETH of {'opening' if kept.state in (OPEN, LOST) else 'opening and closing'}"
    net = kept.net_wei
    assert net is not None
    made = "nothing came back" if kept.state == LOST else "fees and impermanent loss less gas"
    yield "net", f"{_signed(net)} ETH: {made}, against holding what was put in"


def _signed(amount: Wei) -> str:
    return signed_eth_text(amount)


# --- in the story of an order ---------------------------------------------------------------------------------------


def asked_chapters(asked: OrderAsked, assets: tuple[str, str] | None, names: Names) -> Iterator[Chapter]:
    """Say what a liquidity order names; amounts in base units where it is not known what the pool's sides are booked as."""
    if asked.position:
        yield "position", asked.position
        return
    yield "pool", asked.pool
    raws = [TokenRaw(int(raw or 0)) for raw in (asked.amount0_raw, asked.amount1_raw)]
    yield "at most", amounts_text(assets, raws, names) if assets else f"{asked.amount0_raw} base units of its token 0 and {asked.amount1_raw} of its token 1"


def opening_chapters(event: LiquidityOpened, names: Names) -> Iterator[Chapter]:
    """Say what an opening was in simulation, and how its share came about."""
    pin = event.pin
    yield "simulated", f"{ledgers_text(event.ledgers)}at block {pin.block} ({pin.block_hash[:16]}…) by {pin.lane}; evidence {event.evidence_sha256[:16]}…"
    if event.sqrt_price_x96:
        yield "price", f"{price_text(int(event.sqrt_price_x96), event, names)} {unit_text(event, names)} when it was opened"
    own, others = int(event.liquidity_raw), int(event.pool_liquidity_raw)
    beside = "" if mul_div_ceil(own, PPM, own + others) == event.share_ppm else ", the run's other positions in the pool counted in"
    there = ", if the price were in its range" if outside(event) else ""
    yield "share", f"Lp/(L+Lp) = {part_text(event)}{there}{beside}: liquidity Lp {own} of its own, L {others} of others in range"


def accrual_chapters(events: Sequence[Event], opened: LiquidityOpened, names: Names) -> Iterator[Chapter]:
    """Tell what real swaps left a position, block by block; spans without a swap are left out, and of many the first."""
    told = [event for event in events if isinstance(event, LiquidityAccrued) and event.position == opened.position]
    moved = [event for event in told if event.swaps or event.healed]
    if told and not moved:
        yield "earned", f"no swap in its pool in {blocks_text(told[0].from_block, told[-1].to_block)}"
    if len(moved) > ACCRUALS_SHOWN_MAX:
        yield "earned", f"… {counted(len(moved) - ACCRUALS_SHOWN_MAX, 'earlier span')}"
    for event in moved[-ACCRUALS_SHOWN_MAX:]:
        yield "earned", f"{ledgers_text(event.ledgers)}{accrued_text(event, opened, names).partition(': ')[2]}"

