"""A window with liquidity told by hand: one position closed by an order, one that only the permissive ledger keeps, of tokens with bad names."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from chain.liquidity.ticks import sqrt_price_at
from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.journal import MemoryJournal
from ledgers.money import TokenRaw, Wei
from referee.onchain.events import DecisionTaken, MarkTaken, OrderAsked, PositionMark, WindowLiquidated
from referee.onchain.liquidity import closing_entry, opening_entry
from referee.onchain.liquidity_events import LiquidityAccrued, LiquidityClosed, LiquidityOpened
from referee.onchain.position import opened_position
from tests.ops.told import BOTH, BUNDLE, ETH, HOSTILE, ONE, OPEN, TOKEN, ending, first_tick, opening, pin

WETH, NAMELESS = "0x" + "0a" * 20, "0x" + "ef" * 20
POOL, ODD_POOL = "0x" + "1c" * 20, "0x" + "2d" * 32
KEPT, ODD, CLOSING = f"{ONE}/1/0", f"{ONE}/1/1", f"{ONE}/2/0"
AT = {"run_id": ONE, "ts_ms": OPEN + 20_000}
GAS = Wei(5 * 10**12)


def asked(index: int, **fields) -> OrderAsked:
    """A liquidity order as the parser understood it."""
    return OrderAsked(index=index, token="", spend_wei=None, amount_raw=None, sell_all=False, **fields)


def opened() -> LiquidityOpened:
    """0.01 ETH and 20 tokens in range on both ledgers."""
    return LiquidityOpened(
        **AT, order_id=KEPT, ledgers=BOTH, position=KEPT, venue="v3", pool=POOL, token0=WETH, token1=TOKEN, asset0="eth", asset1=TOKEN, fee_ppm=3_000,
        tick_spacing=60, hooks="0x" + "00" * 20, tick_lower=93_000, tick_upper=95_400, liquidity_raw=TokenRaw(10**18), amount0_raw=TokenRaw(10**16),
        amount1_raw=TokenRaw(20 * ETH), pool_liquidity_raw=TokenRaw(9 * 10**18), share_ppm=100_000, gas_wei=GAS, approvals=(), pin=pin(102),
        path_sha256="aa" * 32, evidence_sha256="bb" * 32, entry=opening_entry(BOTH, ("eth", TOKEN), (10**16, 20 * ETH), int(GAS)), sqrt_price_x96=TokenRaw(sqrt_price_at(94_200)),
    )  # fmt: skip


def odd() -> LiquidityOpened:
    """All of a token with a hostile name, out of range, against one that tells no decimals; on the permissive ledger alone."""
    return replace(
        opened(), order_id=ODD, position=ODD, ledgers=("permissive",), venue="v4", pool=ODD_POOL, token0=HOSTILE, token1=NAMELESS, asset0=HOSTILE, asset1=NAMELESS, fee_ppm=0x800000,
        tick_spacing=1, tick_lower=100, tick_upper=200, amount0_raw=TokenRaw(7), amount1_raw=TokenRaw(0), share_ppm=0,
        entry=opening_entry(("permissive",), (HOSTILE, NAMELESS), (7, 0), int(GAS)), sqrt_price_x96=TokenRaw(sqrt_price_at(0)),
    )  # fmt: skip


def accrued(first: int, last: int, fees: tuple[int, int], swaps: int, healed: str = "") -> LiquidityAccrued:
    """What swaps left the first position since it was opened."""
    return LiquidityAccrued(
        **AT, ledgers=BOTH, position=KEPT, pool=POOL, from_block=first, to_block=last, to_block_hash="0x" + "33" * 32, swaps=swaps, crossings=1,
        growth0_x128=TokenRaw(1), growth1_x128=TokenRaw(1), fees0_raw=TokenRaw(fees[0]), fees1_raw=TokenRaw(fees[1]), healed=healed, logs_sha256="dd" * 32,
    )  # fmt: skip


def mark(position: str, status: str = "proven", **fields) -> PositionMark:
    """A position in a mark: it lost 3 and earned 1 thousandth of an ETH."""
    known = {
        "amount0_raw": TokenRaw(9 * 10**15), "amount1_raw": TokenRaw(21 * ETH), "fees0_raw": TokenRaw(10**12), "fees1_raw": TokenRaw(0), "close_gas_wei": GAS,
        "gross_wei": Wei(10**15), "sale_gas_wei": GAS, "unsold": (), "value_wei": Wei(10**16), "principal_wei": Wei(9 * 10**15), "fees_wei": Wei(10**15),
        "held_wei": Wei(12 * 10**15), "sqrt_price_x96": TokenRaw(sqrt_price_at(94_260)), "reason": "",
    }  # fmt: skip
    return PositionMark(position=position, status=status, **{**known, **fields})


def lost() -> PositionMark:
    """The odd position as nobody can close it."""
    return mark(ODD, "reverted", reason="\x1b[31mno\u202e", amount0_raw=TokenRaw(7), amount1_raw=TokenRaw(0), fees0_raw=TokenRaw(0), value_wei=Wei(0), sqrt_price_x96=TokenRaw(sqrt_price_at(0)))


def closed() -> LiquidityClosed:
    """The first position closed by an order, its price having risen."""
    amounts, fees = (8 * 10**15, 23 * ETH), (10**12, ETH // 100)
    return LiquidityClosed(
        **AT, order_id=CLOSING, ledgers=BOTH, position=KEPT, amount0_raw=TokenRaw(amounts[0]), amount1_raw=TokenRaw(amounts[1]), fees0_raw=TokenRaw(fees[0]),
        fees1_raw=TokenRaw(fees[1]), gas_wei=GAS, pin=pin(115), evidence_sha256="ee" * 32, entry=closing_entry(BOTH, opened_position(opened()), amounts, fees, int(GAS)),
        sqrt_price_x96=TokenRaw(sqrt_price_at(94_300)),
    )  # fmt: skip


def marked(ledger: str, *positions: PositionMark) -> MarkTaken:
    """A mark of one ledger with positions."""
    return MarkTaken(**AT, clock="turn", tick=1, ledgers=(ledger,), pin=pin(110), eth_wei=Wei(10**16), holdings=(), value_wei=Wei(3 * 10**16), fault="", digest="", positions=positions)


def opening_tick() -> list[Event]:
    """Both positions are opened and marked, and the first earns."""
    orders = (
        asked(0, side="open-lp", pool=POOL, tick_lower=93_000, tick_upper=95_400, amount0_raw=TokenRaw(10**16), amount1_raw=TokenRaw(20 * ETH)),
        asked(1, side="open-lp", pool=ODD_POOL, price_lower="0.5", price_upper="2", amount0_raw=TokenRaw(7), amount1_raw=TokenRaw(0)),
    )
    return [
        DecisionTaken(**AT, tick=1, decision_sha256="0a" * 32, schema="decision/1", orders=orders),
        opened(),
        odd(),
        accrued(103, 110, (10**12, 0), 3),
        marked("headline", mark(KEPT)),
        marked("permissive", mark(KEPT), lost()),
    ]


def closing_tick() -> list[Event]:
    """Its logs are read again after a reorg, then the first position is closed."""
    order = asked(0, side="close-lp", position=KEPT)
    return [
        DecisionTaken(**AT, tick=2, decision_sha256="0a" * 32, schema="decision/1", orders=(order,)),
        accrued(108, 115, (10**12, ETH // 100), 2, "reorg"),
        closed(),
    ]


def pooled(*, ticks: int = 2, ended: bool = True) -> MemoryJournal:
    """The window in a journal, as far as wanted."""
    journal = MemoryJournal("w1")

    async def tell() -> None:
        await journal.append(*opening())
        await journal.append(*first_tick(), blobs={sha256_hex(BUNDLE): BUNDLE})
        await journal.append(*opening_tick(), *(closing_tick() if ticks > 1 else []))
        if ended:
            sold, *rest = ending(*journal.head())[:-1]
            assert isinstance(sold, WindowLiquidated)
            await journal.append(replace(sold, ledgers=("headline",)), replace(sold, ledgers=("permissive",), positions=(lost(),)), *rest)

    asyncio.run(tell())
    return journal
