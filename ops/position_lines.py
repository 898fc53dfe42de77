"""The position lines: liquidity in words, with every digit true and prices of whole tokens.

A side that is ETH or WETH is called ETH, as the book has it; a token whose decimals are not known is told in base units.
"""

from __future__ import annotations

from collections.abc import Sequence

from chain.liquidity.ticks import TICK_MAX, sqrt_price_at
from ledgers.money import TokenRaw, Wei, decimal_text
from ledgers.plain_text import plain_text
from ledgers.postings import ETH, Entry
from ledgers.report import eth_text, percent_text
from ops.names import Names, amount_text, token_text
from ops.positions import ABOVE, BELOW, INSIDE, LIQUIDATED, LOST, OPEN, Kept
from referee.onchain.events import OrderAsked
from referee.onchain.liquidity import LP, LP_FEES
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityClosed, LiquidityOpened

ETHER_DECIMALS = 18
DYNAMIC_FEE = 0x800000
PLACES = 8
ROUNDING_WEI = 10
"""So many wei more or less are what rounding leaves of a difference."""
POOL_CHARS, ID_CHARS_MAX = 10, 100
DIGITS = 6
"""Digits that a price is shown with, the first that is not 0 included."""
PLAIN_DIGITS_MAX = 12
"""Beyond so many digits before the point, or zeros behind it, a price is told as a power of ten."""


# --- what happened --------------------------------------------------------------------------------------------------


def asked_liquidity_text(asked: OrderAsked) -> str:
    """Say what a liquidity order asks for, amounts apart."""
    if asked.position:
        return f"{asked.side} of position {plain_text(asked.position, ID_CHARS_MAX)}"
    span = f"prices {asked.price_lower} to {asked.price_upper}" if asked.price_lower else f"ticks {asked.tick_lower} to {asked.tick_upper}"
    return f"{asked.side} in pool {asked.pool[:POOL_CHARS]}, {span}"


def opened_text(event: LiquidityOpened, names: Names) -> str:
    """Say what an opening put where."""
    return (
        f"opened position {event.position}: {amounts_text((event.asset0, event.asset1), (event.amount0_raw, event.amount1_raw), names)} "
        f"into {pool_text(event, names)}, {range_text(event, names)}, {share_text(event)}, gas {eth_text(event.gas_wei, 8)} ETH"
    )


def closed_text(event: LiquidityClosed, names: Names) -> str:
    """Say what a closing brought, principal and fees apart."""
    return (
        f"closed position {event.position}: principal {_booked_text(event.entry, LP, names)}, "
        f"fees {_booked_text(event.entry, LP_FEES, names)}, gas {eth_text(event.gas_wei, 8)} ETH"
    )


def accrued_text(event: LiquidityAccrued, opened: LiquidityOpened, names: Names) -> str:
    """Say what a position earned so far, and by which blocks."""
    healed = f", after its logs were read again ({plain_text(event.healed, ID_CHARS_MAX)})" if event.healed else ""
    crossed = f" across {_counted(event.crossings, 'tick')}" if event.crossings else ""
    fees = amounts_text((opened.asset0, opened.asset1), (event.fees0_raw, event.fees1_raw), names)
    return f"position {event.position}: {_counted(event.swaps, 'swap')}{crossed} in {blocks_text(event.from_block, event.to_block)}{healed}; fees so far {fees}"


def _booked_text(entry: Entry, account: str, names: Names) -> str:
    """What an entry takes from an account."""
    moved = [(posting.asset, TokenRaw(-int(posting.amount))) for posting in entry.postings if posting.account == account]
    return amounts_text([asset for asset, _ in moved], [raw for _, raw in moved], names)


# --- parts ----------------------------------------------------------------------------------------------------------


def small_eth_text(amount: Wei) -> str:
    """Write wei as ether in few digits: an amount below their last place with its first two."""
    zeros = 18 - len(str(abs(int(amount))))
    return decimal_text(amount, 18, max(PLACES, zeros + 2)) if int(amount) else "0"


def signed_eth_text(amount: Wei) -> str:
    """Write a difference with its sign; what rounding leaves is about nothing."""
    if 0 < abs(int(amount)) <= ROUNDING_WEI:
        return "≈ 0"
    return f"{'+' if int(amount) > 0 else ''}{small_eth_text(amount)}"


def blocks_text(first: int, last: int) -> str:
    """Name a span of blocks."""
    return f"block {first}" if first == last else f"blocks {first}–{last}"


def side_text(asset: str, names: Names) -> str:
    """Name a side of a pool."""
    return "ETH" if asset == ETH else token_text(asset, names)


def amounts_text(assets: Sequence[str], raws: Sequence[TokenRaw], names: Names) -> str:
    """Write what there is of both sides."""
    told = [f"{_amount(asset, raw, names)} {side_text(asset, names)}" for asset, raw in zip(assets, raws, strict=True) if int(raw)]
    return " and ".join(told) or "none"


def pool_text(opened: LiquidityOpened, names: Names) -> str:
    """Name a pool by version, fee and sides, with the beginning of its address or id."""
    fee = "fee by its hook" if opened.fee_ppm >= DYNAMIC_FEE else f"{decimal_text(opened.fee_ppm, 4)} %"
    return f"{opened.venue} {fee} {side_text(opened.asset0, names)}/{side_text(opened.asset1, names)} {opened.pool[:POOL_CHARS]}"


def range_text(opened: LiquidityOpened, names: Names) -> str:
    """Say a range by ticks and by price."""
    ticks = f"ticks {opened.tick_lower} to {opened.tick_upper}"
    edge = TICK_MAX // opened.tick_spacing * opened.tick_spacing
    if (opened.tick_lower, opened.tick_upper) == (-edge, edge):
        return f"{ticks} (all prices)"
    low, high = bounds_text(opened, names)
    return f"{ticks} ({low} to {high} {unit_text(opened, names)})"


def bounds_text(opened: LiquidityOpened, names: Names) -> tuple[str, str]:
    """The bounds of a range as prices."""
    return price_text(sqrt_price_at(opened.tick_lower), opened, names), price_text(sqrt_price_at(opened.tick_upper), opened, names)


def unit_text(opened: LiquidityOpened, names: Names) -> str:
    """What prices of a pool count: token 1 per token 0."""
    sides = f"{side_text(opened.asset1, names)} per {side_text(opened.asset0, names)}"
    return sides if _scale(opened, names) is not None else f"{sides} in base units"


def price_text(sqrt_price_x96: int, opened: LiquidityOpened, names: Names) -> str:
    """Write a price of whole tokens, every digit true; of base units when decimals are not known."""
    scale = _scale(opened, names) or 0
    return _digits(sqrt_price_x96**2 * 10 ** max(scale, 0), 10 ** max(-scale, 0) << 192)


def share_text(opened: LiquidityOpened) -> str:
    """Say what part of the liquidity in range a position came to, or would come to where it lies."""
    return f"out of range when it was opened ({part_text(opened)} if the price were in it)" if outside(opened) else part_text(opened)


def part_text(opened: LiquidityOpened) -> str:
    """Write a position's share."""
    return f"{(percent_text(opened.share_ppm) or '').removeprefix('+')} of the liquidity in range"


def outside(opened: LiquidityOpened) -> bool:
    """Whether the price was out of the range when it was opened, as far as it was recorded."""
    price = int(opened.sqrt_price_x96)
    return price > 0 and not sqrt_price_at(opened.tick_lower) <= price < sqrt_price_at(opened.tick_upper)


def where_text(kept: Kept, names: Names) -> str:
    """Say where the price is against a range, and what that makes of the principal."""
    told = {INSIDE: INSIDE, BELOW: f"{BELOW}, all of it {side_text(kept.assets[0], names)}", ABOVE: f"{ABOVE}, all of it {side_text(kept.assets[1], names)}"}
    return told.get(kept.where, "")


def state_text(kept: Kept) -> str:
    """Say how a position stands."""
    if kept.closed:
        return f"closed by order {kept.closed.order_id} at block {kept.end_block}"
    if kept.state == LIQUIDATED:
        return f"closed by the liquidation at block {kept.end_block}"
    return f"{LOST} at the liquidation: {plain_text(kept.mark.status, ID_CHARS_MAX)}" if kept.mark and kept.state == LOST else OPEN


def _amount(asset: str, raw: TokenRaw, names: Names) -> str:
    return small_eth_text(Wei(int(raw))) if asset == ETH else amount_text(raw, asset, names)


def _scale(opened: LiquidityOpened, names: Names) -> int | None:
    """Decimals of token 0 less those of token 1; none when one is not known."""
    told = [ETHER_DECIMALS if asset == ETH else known.decimals if (known := names.get(asset)) else None for asset in (opened.asset0, opened.asset1)]
    return None if told[0] is None or told[1] is None else told[0] - told[1]


def _digits(up: int, down: int) -> str:
    """Write a ratio above 0, cut to its first digits."""
    whole = up // down
    if whole >= 10 ** (DIGITS - 1):
        text = str(whole)
        return text if len(text) <= PLAIN_DIGITS_MAX else f"{text[0]}.{text[1:DIGITS]}e{len(text) - 1}"
    if whole:
        places = DIGITS - len(str(whole))
        return decimal_text(up * 10**places // down, places)
    zeros = len(str(-(-down // up))) - 1
    zeros += up * 10**zeros < down
    digits = str(up * 10 ** (zeros + DIGITS - 1) // down)
    return decimal_text(int(digits), zeros + DIGITS - 1) if zeros <= PLAIN_DIGITS_MAX else f"{digits[0]}.{digits[1:]}e-{zeros}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
