"""Liquidity orders: what the rules make of opening and closing a position. Pure, so that a replay does the same again (ONC-21).

A position is paid from the book and lies on an account of its own; what comes back of it is principal, what real swaps left it is
fees, and each has its own line in the ledger. The run's positions of a pool, wherever they lie, may come to a pinned part of the liquidity
that others have in range, Lp / L, because beyond that the real swaps would have gone otherwise.
Source: 001 §2.2, §5.10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from chain.gas import fee_wei
from chain.liquidity.ticks import TICK_MAX, sqrt_price_at, tick_of_ratio
from chain.network import Network
from chain.pools import Pool
from chain.positions import is_eth, manager_of, range_refusal
from ledgers.money import TokenRaw, Wei, mul_div_ceil
from ledgers.postings import BOOK, ETH, Entry
from referee.onchain.book import Book, entry_of
from referee.onchain.credit import GAS, refusal
from referee.onchain.events import OrderAsked, OrderRefused
from referee.onchain.liquidity_events import LiquidityOpened
from referee.onchain.position import Position
from referee.onchain.rules import Rules

LP, LP_FEES = "lp", "lp_fees"
"""Accounts: what is in pools, and what fees came of it. What a closed position leaves on the first is its gain or loss."""
PPM = 1_000_000

Objection = tuple[str, str]
"""Reason and detail; both empty for none."""
NO_OBJECTION: Objection = ("", "")


@dataclass(frozen=True, slots=True)
class Range:
    """A range on a pool's grid."""

    lower: int
    upper: int


def asset_of_side(network: Network, token: str) -> str:
    """What a side of a pool is booked as."""
    return ETH if is_eth(network, token) else token


def pool_objection(network: Network, pool: Pool | None, refused_hook: str) -> Objection:
    """Say why no position may be opened in a pool; `refused_hook` is what its hook is refused for, if anything."""
    if pool is None:
        return "lp_pool", "no such pool is known"
    if pool.venue not in ("v3", "v4") or pool.fork or manager_of(network, pool) is None:
        return "lp_pool", f"positions of {pool.fork or pool.venue} pools are not refereed here"
    if is_eth(network, pool.token0) and is_eth(network, pool.token1):
        return "lp_pool", "both sides of the pool are ETH"
    return ("lp_pool", refused_hook) if refused_hook else NO_OBJECTION


def range_of(asked: OrderAsked, pool: Pool, decimals: tuple[int, int]) -> Range:
    """The range that an order asks for: its ticks, or the widest on the pool's grid within its prices."""
    if not asked.price_lower:
        return Range(asked.tick_lower, asked.tick_upper)
    scale = Fraction(10) ** (decimals[1] - decimals[0])
    low, high = (Fraction(price) * scale for price in (asked.price_lower, asked.price_upper))
    spacing = pool.tick_spacing
    lower = tick_of_ratio(low.numerator, low.denominator)
    if lower < TICK_MAX and sqrt_price_at(lower) ** 2 * low.denominator < low.numerator << 192:
        lower += 1
    upper = tick_of_ratio(high.numerator, high.denominator)
    edge = TICK_MAX // spacing * spacing
    return Range(max(-(-lower // spacing) * spacing, -edge), min(upper // spacing * spacing, edge))


def range_objection(pool: Pool, span: Range) -> Objection:
    """Say why a range is none of a pool's."""
    refused = range_refusal(pool, span.lower, span.upper)
    return ("lp_range", refused) if refused else NO_OBJECTION


def sides_objection(rules: Rules, network: Network, pool: Pool, amounts: tuple[int, int], book: Book, slotless: Sequence[str], gas_price_wei: Wei) -> Objection:
    """Say why a book cannot put the amounts in: every side that is no ETH must be held, its exit provable.

    Shapes: `slotless` are the tokens whose balance no override can set."""
    if (objection := _count_objection(rules, book))[0]:
        return objection
    for token, raw in zip((pool.token0, pool.token1), amounts, strict=True):
        if is_eth(network, token):
            continue
        holding = book.held(token)
        if holding is None:
            return "not_held", f"the book holds none of {token}; buy it first"
        if holding.shares or holding.cause or token in slotless:
            return "lp_token", f"{token} keeps shares" if holding.shares else f"the exit of {token} cannot be proven: {holding.cause or 'slot'}"
        if raw > int(holding.units_raw):
            return "insufficient_tokens", f"put in {raw} > {holding.units_raw} held of {token}"
    eth_wei = sum(raw for token, raw in zip((pool.token0, pool.token1), amounts, strict=True) if is_eth(network, token))
    return eth_objection(rules, network, pool, book, eth_wei, 0, gas_price_wei)


def eth_objection(rules: Rules, network: Network, pool: Pool, book: Book, eth_wei: int, gas_wei: int, gas_price_wei: Wei) -> Objection:
    """Say whether ETH and gas of an opening leave the exits paid, the position's own included (ONC-27)."""
    sides = [token for token in (pool.token0, pool.token1) if not is_eth(network, token)]
    return _eth_objection(rules, book, sides, eth_wei, gas_wei, gas_price_wei)


def _eth_objection(rules: Rules, book: Book, tokens: Sequence[str], eth_wei: int, gas_wei: int, gas_price_wei: Wei) -> Objection:
    reserve_wei = int(fee_wei(rules.exit_reserve_gas_per_holding * (book.exits(*tokens) + 1), gas_price_wei))
    if eth_wei + gas_wei + reserve_wei > int(book.eth_wei):
        return "insufficient_eth", f"{eth_wei} put in, {gas_wei} of gas and an exit reserve of {reserve_wei} come to more than {book.eth_wei} wei held"
    return NO_OBJECTION


def share_ppm(liquidity: int, book: Book, pool: str, others: int) -> int:
    """Part that the run has of the liquidity in range and its own, the new position included, rounded up: Lp / (L + Lp)."""
    own = own_liquidity(liquidity, book, pool)
    return mul_div_ceil(own, PPM, own + others)


def own_liquidity(liquidity: int, book: Book, pool: str) -> int:
    """Liquidity that the run would have in a pool, a new position included: Lp."""
    return liquidity + sum(position.liquidity for position in book.positions if position.pool == pool)


def share_objection(rules: Rules, own: int, others: int) -> Objection:
    """Say whether the run's liquidity would be too much beside that of others in range: Lp / L (ONC-21)."""
    assert rules.lp_share_ppm_max is not None, "liquidity orders are refused by name where no share is ruled"
    if own * PPM > rules.lp_share_ppm_max * others:
        told = f"{mul_div_ceil(own, PPM, others)} ppm" if others else "all there is"
        return "lp_share", f"the run's liquidity would be {told} beside that of others in range, at most {rules.lp_share_ppm_max} ppm"
    return NO_OBJECTION


def opening_objection(rules: Rules, event: LiquidityOpened, book: Book) -> Objection:
    """Hold a finished opening against the rules once more, by what it says itself."""
    eth_wei = sum(int(raw) for asset, raw in _sides(event) if asset == ETH)
    tokens = [asset for asset, _ in _sides(event) if asset != ETH]
    if (objection := _count_objection(rules, book))[0]:
        return objection
    return _eth_objection(rules, book, tokens, eth_wei, int(event.gas_wei), event.pin.base_fee_wei)


def _count_objection(rules: Rules, book: Book) -> Objection:
    assert rules.lp_positions_max is not None, "liquidity orders are refused by name where no number of positions is ruled"
    if len(book.positions) >= rules.lp_positions_max:
        return "too_many_positions", f"{len(book.positions)} positions are open, at most {rules.lp_positions_max}"
    return NO_OBJECTION


def _sides(event: LiquidityOpened) -> list[tuple[str, TokenRaw]]:
    return [(event.asset0, event.amount0_raw), (event.asset1, event.amount1_raw)]


# --- entries --------------------------------------------------------------------------------------------------------


def opening_entry(ledgers: tuple[str, ...], assets: tuple[str, str], amounts: Sequence[int], gas_wei: int) -> Entry:
    """Book an opening: its amounts leave the book for the pool, gas is paid."""
    moves: dict[tuple[str, str], int] = {(BOOK, ETH): -gas_wei, (GAS, ETH): gas_wei}
    for asset, raw in zip(assets, amounts, strict=True):
        _add(moves, {(BOOK, asset): -int(raw), (LP, asset): int(raw)})
    return entry_of(ledgers, moves)


def closing_moves(assets: tuple[str, str], principal: Sequence[int], fees: Sequence[int], gas_wei: int) -> dict[tuple[str, str], int]:
    """What a closing moves: principal and fees come to the book, each from its own account; gas is paid."""
    moves: dict[tuple[str, str], int] = {(BOOK, ETH): -gas_wei, (GAS, ETH): gas_wei}
    for asset, raw, fee in zip(assets, principal, fees, strict=True):
        _add(moves, {(BOOK, asset): int(raw) + int(fee), (LP, asset): -int(raw), (LP_FEES, asset): -int(fee)})
    return moves


def closing_entry(ledgers: tuple[str, ...], position: Position, principal: Sequence[int], fees: Sequence[int], gas_wei: int) -> Entry:
    """Book a closing."""
    return entry_of(ledgers, closing_moves(position.assets, principal, fees, gas_wei))


def _add(moves: dict[tuple[str, str], int], more: Mapping[tuple[str, str], int]) -> None:
    for key, amount in more.items():
        moves[key] = moves.get(key, 0) + amount


def lp_refusal(run_id: str, order_id: str, ledgers: Sequence[str], objection: Objection, ts_ms: int) -> OrderRefused:
    """Write down an objection."""
    return refusal(run_id, order_id, ledgers, *objection, ts_ms)
