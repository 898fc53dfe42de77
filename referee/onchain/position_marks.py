"""The positions in a mark: closing all of them and selling what comes of it together with the rest of the book, in one sale (ONC-12, ONC-21).

Principal is what closing brings in simulation, fees are computed; both are added to the wallet before the sale. What one sale
of a token brings is split by units between the book's own holding and the positions, rounded against the run.
Source: 001 §2.2, §5.10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from chain.gas import fee_wei
from ledgers.money import TokenRaw, Wei, mul_div_ceil, mul_div_floor
from ledgers.postings import BOOK, ETH
from referee.onchain.book import Book, Holding
from referee.onchain.credit import GAS, MARKET
from referee.onchain.events import HoldingMark, PositionMark
from referee.onchain.liquidity import closing_moves
from referee.onchain.position import COUNTED, Accrued, Position

PROVEN, UNPROVABLE, BELOW_GAS = "proven", "unprovable", "below_gas"
Moves = dict[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Exit:
    """One position as closing it would leave it."""

    position: Position
    sqrt_price_x96: int
    principal: tuple[int, int]
    fees: tuple[int, int]
    gas: int
    failure: str = ""
    """Why it cannot be closed: reverted or unreadable."""
    reason: str = ""

    @property
    def sides(self) -> tuple[tuple[str, int], ...]:
        """What comes back, by asset."""
        return tuple((asset, raw + fee) for asset, raw, fee in zip(self.position.assets, self.principal, self.fees, strict=True))


@dataclass(frozen=True, slots=True)
class WayOut:
    """A book and what closing all its positions adds to it."""

    whole: Book
    """What is then sold."""
    exits: tuple[Exit, ...] = ()
    accrued: Accrued = field(default_factory=Accrued)
    closings: bytes = b""
    """Requests and answers of the closings."""

    def evidence(self, sale: bytes) -> bytes:
        """The evidence of the sale, with that of the closings where there are any."""
        return b'{"closings":%b,"sale":%b}' % (self.closings, sale) if self.exits else sale


def with_exits(book: Book, exits: Sequence[Exit]) -> Book:
    """The book with everything that its positions bring back, as it is then sold."""
    units: dict[str, int] = {}
    for asset, raw in (side for each in exits if not each.failure for side in each.sides):
        units[asset] = units.get(asset, 0) + raw
    eth_wei = units.pop(ETH, 0)
    held = {holding.token: holding for holding in book.holdings}
    for token, raw in units.items():
        holding = held.get(token, Holding(token, TokenRaw(0), False, ""))
        held[token] = replace(holding, units_raw=holding.units_raw + TokenRaw(raw))
    holdings = tuple(sorted((holding for holding in held.values() if holding.units_raw > TokenRaw(0)), key=lambda holding: holding.token))
    return replace(book, eth_wei=book.eth_wei + Wei(eth_wei), holdings=holdings)


@dataclass(frozen=True, slots=True)
class Split:
    """A sale of everything, split between the book's holdings and its positions."""

    holdings: tuple[HoldingMark, ...]
    positions: tuple[PositionMark, ...]
    moves: Moves
    """Of the positions that count, closed and sold."""


def split(book: Book, whole: Book, marks: Sequence[HoldingMark], exits: Sequence[Exit], gas_price_wei: Wei) -> Split:
    """Split the marks of a whole book's sale, in their order."""
    sold = {mark.token: (mark, int(held.units_raw)) for mark in marks if (held := whole.held(mark.token))}
    own = [_part_of_holding(mark, int(held.units_raw), sold[mark.token][1]) for mark in marks if (held := book.held(mark.token))]
    moves: Moves = {}
    positions = []
    for each in exits:
        mark = _position_mark(each, sold, gas_price_wei)
        positions.append(mark)
        for key, amount in exit_moves(each.position, mark).items():
            moves[key] = moves.get(key, 0) + amount
    return Split(tuple(own), tuple(positions), moves)


def exit_moves(position: Position, mark: PositionMark) -> Moves:
    """What a liquidation moves for one position: closed, and sold but for what could not be; nothing when it does not count."""
    if mark.status not in COUNTED:
        return {}
    fees, principal = (int(mark.fees0_raw), int(mark.fees1_raw)), (int(mark.amount0_raw), int(mark.amount1_raw))
    moves = closing_moves(position.assets, principal, fees, int(mark.close_gas_wei))
    gross, gas = int(mark.gross_wei), int(mark.sale_gas_wei)
    for key, amount in (((BOOK, ETH), gross - gas), ((MARKET, ETH), -gross), ((GAS, ETH), gas)):
        moves[key] = moves.get(key, 0) + amount
    for asset, raw, fee in zip(position.assets, principal, fees, strict=True):
        if asset != ETH and asset not in mark.unsold:
            moves[BOOK, asset] -= raw + fee
            moves[MARKET, asset] = moves.get((MARKET, asset), 0) + raw + fee
    return moves


def worth_of(position: Position, mark: PositionMark) -> Wei:
    """What a position's mark comes to by its own numbers; 0 when it does not count."""
    if mark.status not in (*COUNTED, BELOW_GAS):
        return Wei(0)
    sides = ((mark.amount0_raw, mark.fees0_raw), (mark.amount1_raw, mark.fees1_raw))
    eth_wei = sum(int(raw) + int(fee) for asset, (raw, fee) in zip(position.assets, sides, strict=True) if asset == ETH)
    return Wei(max(eth_wei + int(mark.gross_wei) - int(mark.sale_gas_wei) - int(mark.close_gas_wei), 0))


def claimed_wei(mark: PositionMark) -> Wei:
    """Part of a position's value that rests on claims."""
    return min(mark.value_wei, Wei(max(int(mark.gross_wei) - int(mark.sale_gas_wei), 0))) if mark.status == UNPROVABLE else Wei(0)


def _part_of_holding(mark: HoldingMark, units: int, of: int) -> HoldingMark:
    if units == of:
        return mark
    gross, gas = mul_div_floor(int(mark.gross_wei), units, of), mul_div_ceil(int(mark.gas_wei), units, of)
    value = max(gross - gas, 0)
    spoiled = mark.status in COUNTED and not value
    return replace(
        mark, amount_raw=TokenRaw(units), gross_wei=Wei(gross), gas_wei=Wei(gas), value_wei=Wei(value),
        status=BELOW_GAS if spoiled else mark.status, reason=f"{gross} wei arrive, gas is {gas}" if spoiled else mark.reason,
    )  # fmt: skip


def _position_mark(each: Exit, sold: Mapping[str, tuple[HoldingMark, int]], gas_price_wei: Wei) -> PositionMark:
    gross = gas = 0
    unsold, statuses = [], []
    for token, raw in ((asset, raw) for asset, raw in each.sides if asset != ETH and raw and not each.failure):
        mark, units = sold[token]
        if mark.status in COUNTED:
            gross += mul_div_floor(int(mark.gross_wei), raw, units)
            gas += mul_div_ceil(int(mark.gas_wei), raw, units)
            statuses.append(mark.status)
        else:
            unsold.append(token)
    principal, fees, held = (_in_eth(each, raw, sold) for raw in (each.principal, each.fees, tuple(map(int, each.position.put_in))))
    told = PositionMark(
        position=each.position.id,
        status=each.failure or (UNPROVABLE if UNPROVABLE in statuses else PROVEN),
        reason=each.reason or (f"not sold: {', '.join(unsold)}" if unsold else ""),
        amount0_raw=TokenRaw(each.principal[0]), amount1_raw=TokenRaw(each.principal[1]),
        fees0_raw=TokenRaw(each.fees[0]), fees1_raw=TokenRaw(each.fees[1]),
        close_gas_wei=fee_wei(each.gas, gas_price_wei), gross_wei=Wei(gross), sale_gas_wei=Wei(gas), unsold=tuple(unsold),
        value_wei=Wei(0), principal_wei=Wei(principal), fees_wei=Wei(fees), held_wei=Wei(held),
        sqrt_price_x96=TokenRaw(each.sqrt_price_x96),
    )  # fmt: skip
    value_wei = worth_of(each.position, told)
    if told.status in COUNTED and value_wei == Wei(0):
        return replace(told, status=BELOW_GAS, reason="closing and selling take more gas than they bring")
    return replace(told, value_wei=value_wei)


def at_pool_price(assets: tuple[str, str], sqrt_price_x96: int, amounts: Sequence[int]) -> int:
    """Amounts of a pool with ETH on one side in wei at the pool's price, rounded down."""
    assert ETH in assets, assets
    up, down = sqrt_price_x96**2, 1 << 192
    return amounts[0] + mul_div_floor(amounts[1], down, up) if assets[0] == ETH else amounts[1] + mul_div_floor(amounts[0], up, down)


def _in_eth(each: Exit, amounts: Sequence[int], sold: Mapping[str, tuple[HoldingMark, int]]) -> int:
    """Amounts in ETH at the pool's price; of a pool without ETH at what the sale brought of each token."""
    if ETH in each.position.assets:
        return at_pool_price(each.position.assets, each.sqrt_price_x96, amounts)
    told = [(raw, sold[token]) for token, raw in zip(each.position.assets, amounts, strict=True) if token in sold]
    return sum(mul_div_floor(raw, int(mark.gross_wei), units) for raw, (mark, units) in told)
