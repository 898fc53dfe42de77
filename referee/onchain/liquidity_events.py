"""What can happen to a paper position of concentrated liquidity (ONC-21; 001 §2.2, §5.10)."""

from __future__ import annotations

from dataclasses import dataclass

from ledgers.events import Event
from ledgers.money import TokenRaw, Wei
from ledgers.postings import Entry
from referee.onchain.events import Pin, WordKept


@dataclass(frozen=True, slots=True, kw_only=True)
class LiquidityOpened(Event):
    """A position was opened: its amounts left the book for a pool, as far as simulation really took them."""

    order_id: str
    ledgers: tuple[str, ...]
    position: str
    """The position's id: the order that opened it."""
    venue: str
    """v3 or v4."""
    pool: str
    """Address of the pool; of a v4 pool its 32-byte id."""
    token0: str
    """Zero for native ETH, as the chain has it."""
    token1: str
    asset0: str
    """What token 0 is booked as: `eth` where it is ETH or WETH, else its address."""
    asset1: str
    fee_ppm: int
    tick_spacing: int
    hooks: str
    tick_lower: int
    tick_upper: int
    liquidity_raw: TokenRaw
    """Liquidity that the amounts made."""
    amount0_raw: TokenRaw
    """What left the wallet of token 0; wei where that is ETH or WETH."""
    amount1_raw: TokenRaw
    pool_liquidity_raw: TokenRaw
    """Liquidity that others have in range: the lesser of that at the pinned block and that after the decision's earlier orders."""
    share_ppm: int
    """Part that the run has of the liquidity in range and its own: it and the run's other positions of the pool, wherever they lie; rounded up."""
    gas_wei: Wei
    approvals: tuple[str, ...]
    """Approvals paid by it, `token>spender`."""
    pin: Pin
    path_sha256: str
    """The pool at that block with its whole tick map, a blob: what is needed to follow it again."""
    evidence_sha256: str
    entry: Entry
    sqrt_price_x96: TokenRaw = TokenRaw(0)
    """Square root of the pool's price at that block, times 2⁹⁶; 0 where it was not recorded."""
    kept: tuple[WordKept, ...] = ()
    """Every word that it wrote beside the market's, set by override in every later simulation (ONC-29)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiquidityAccrued(Event):
    """Fees of real swaps that a position earned between two blocks: computed from the pool's own logs, not simulated."""

    ledgers: tuple[str, ...]
    position: str
    pool: str
    from_block: int
    """First block that is counted in."""
    to_block: int
    """Last block that is counted in."""
    to_block_hash: str
    swaps: int
    crossings: int
    """Initialised ticks that those swaps crossed."""
    growth0_x128: TokenRaw
    """Fee growth inside the range per unit of liquidity since the opening, times 2¹²⁸, with the position's own liquidity in the denominator."""
    growth1_x128: TokenRaw
    fees0_raw: TokenRaw
    """Fees since the opening, rounded down."""
    fees1_raw: TokenRaw
    healed: str
    """What was read again first: gap or reorg; empty otherwise."""
    logs_sha256: str
    """The logs behind it, a blob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiquidityClosed(Event):
    """A position was closed: what its liquidity brings in simulation, and its computed fees on a line of their own."""

    order_id: str
    """Empty when the window's end closed it."""
    ledgers: tuple[str, ...]
    position: str
    amount0_raw: TokenRaw
    """Principal that arrived in simulation."""
    amount1_raw: TokenRaw
    fees0_raw: TokenRaw
    """Computed fees."""
    fees1_raw: TokenRaw
    gas_wei: Wei
    pin: Pin
    evidence_sha256: str
    entry: Entry
    sqrt_price_x96: TokenRaw = TokenRaw(0)
    """Square root of the pool's price at that block, times 2⁹⁶, by which principal, fees and what was put in compare; 0 where it was not recorded."""
    kept: tuple[WordKept, ...] = ()
    """Every word that it wrote beside the market's, set by override in every later simulation (ONC-29)."""


KINDS: tuple[type[Event], ...] = (LiquidityOpened, LiquidityAccrued, LiquidityClosed)
