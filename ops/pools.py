"""The pools: a token's markets, and the tokens of a network with their deepest ones, printed for a person."""

from __future__ import annotations

from chain.liquidity import carriers
from chain.pools import DYNAMIC_FEE, NATIVE, Pool
from chain.tokens import TokenFacts, read_facts
from ledgers.clock import SystemClock
from ledgers.money import TokenRaw, Wei, decimal_text
from ledgers.report import Basis, Cell, Column, Said, Table, eth_text
from ops.lines import plain
from ops.onlooker import Onlooker, onlooker
from ops.settings import Settings
from referee.onchain.liquidity import pool_objection

TOKENS_SHOWN_MAX = 60
UNISWAP = "Uniswap"
POOL_COLUMNS = (
    Column("exchange", "exchange", people=False),
    Column("venue", "shape", people=False),
    Column("exchange_text", "exchange", machines=False),
    Column("other", "with"),
    Column("fee_ppm", "fee"),
    Column("tick_spacing", "spacing"),
    Column("price", "price"),
    Column("depth", "depth there"),
    Column("born_block", "born"),
    Column("positions", "open-lp"),
    Column("pool", "pool", below=True),
    Column("other_token", "with", below=True),
    Column("hooks", "hook", below=True),
    Column("positions_refused", "no positions:", below=True),
)
TOKEN_COLUMNS = (
    Column("symbol", "symbol"),
    Column("exchange", "deepest at", people=False),
    Column("venue", "shape", people=False),
    Column("exchange_text", "deepest at", machines=False),
    Column("other", "with"),
    Column("depth", "depth there"),
    Column("pools", "pools"),
    Column("token", "token", below=True),
    Column("pool", "pool", people=False),
)


# --- of a token -----------------------------------------------------------------------------------------------------


async def pools_asked(settings: Settings, network: str | None, token: str, width: int) -> tuple[str, dict[str, object]]:
    """Print every known pool of a token. Raises: BadSettings, ChainFault."""
    async with onlooker(settings, network, token, SystemClock()) as seen:
        table = pools_table(seen, await seen.facts(token))
        return table.text(width), table.data()


def pools_table(seen: Onlooker, facts: TokenFacts) -> Table:
    """A token's pools, the deepest first among those against ETH."""
    pools = sorted(seen.graph.pools_of(facts.address), key=lambda pool: (pool.other(facts.address) not in seen.graph.hubs, -_depth_raw(seen, pool, facts.address), pool.key))
    hooked = any(pool.hooked for pool in pools)
    return Table(
        name="pools",
        title=f"pools of {plain(facts.symbol) or 'token'} ({facts.address})",
        basis=Basis(label=seen.network.label, n=len(pools), of=f"pools at block {seen.pin.block}", claim="depth and price as the pools say; a swap may bring less"),
        columns=POOL_COLUMNS,
        rows=tuple(_pool_cells(seen, pool, facts) for pool in pools),
        note="open-lp: whether a position may be opened there. born: the block of its creation." + (" A hook may change what a swap brings: routes through it are believed only as far as simulation goes." if hooked else ""),
    )


def _pool_cells(seen: Onlooker, pool: Pool, facts: TokenFacts) -> tuple[Cell, ...]:
    other = pool.other(facts.address)
    fee = "by its hook" if pool.fee_ppm >= DYNAMIC_FEE else f"{decimal_text(pool.fee_ppm, 4)} %"
    depth_raw = _depth_raw(seen, pool, other)
    name = _hub_name(seen, other)
    _, refused = pool_objection(seen.network, pool, carriers.refusal(pool))
    return (
        exchange_of(pool),
        pool.venue,
        f"{exchange_of(pool)} {pool.venue}",
        name or "a token",
        Said(fee, pool.fee_ppm),
        pool.tick_spacing or None,
        _price(seen, pool, facts),
        Said(_hub_amount(seen, depth_raw, other), str(depth_raw)),
        pool.born_block,
        "no" if refused else "yes",
        pool.key,
        None if name else other,
        None if pool.hooks == NATIVE else pool.hooks,
        refused or None,
    )


def exchange_of(pool: Pool) -> str:
    """Name whose pool it is, as the rows of boards do."""
    return plain(pool.fork) or UNISWAP


def _depth_raw(seen: Onlooker, pool: Pool, token: str) -> int:
    state = seen.graph.states.get(pool.key)
    return state.depth_raw(pool, token) if state else 0


def _price(seen: Onlooker, pool: Pool, facts: TokenFacts) -> Cell:
    state = seen.graph.states.get(pool.key)
    ratio = state.ratio(pool, facts.address) if state else None
    other = pool.other(facts.address)
    if ratio is None or facts.decimals is None or other not in seen.graph.hubs:
        return None
    raw = ratio[0] * 10**facts.decimals // ratio[1]
    return Said(_hub_amount(seen, raw, other), str(raw))


def _hub_name(seen: Onlooker, token: str) -> str:
    return {NATIVE: "ETH", seen.network.weth: "WETH", seen.network.usdg: "USDG"}.get(token, "")


def _hub_amount(seen: Onlooker, raw: int, token: str) -> str:
    if token in (NATIVE, seen.network.weth):
        return f"{eth_text(Wei(raw), 6)} ETH"
    return f"{decimal_text(TokenRaw(raw), 6, 2)} USDG" if token == seen.network.usdg else f"{raw} units"


# --- of a network ---------------------------------------------------------------------------------------------------


async def tokens_asked(settings: Settings, network: str | None, everything: bool, width: int) -> tuple[str, dict[str, object]]:
    """Print the tokens of a network, those with the deepest pools first. Raises: BadSettings, ChainFault."""
    async with onlooker(settings, network, None, SystemClock()) as seen:
        table = await tokens_table(seen, None if everything else TOKENS_SHOWN_MAX)
        return table.text(width), table.data()


async def tokens_table(seen: Onlooker, tokens_max: int | None) -> Table:
    """The tokens that trade against ETH or the dollar token, by the ETH in their deepest pool; then those against USDG. Raises: ChainFault."""
    deepest = {token: pool for token in seen.graph.tokens() if token not in seen.graph.hubs and (pool := _deepest(seen, token)) is not None}
    order = sorted(deepest, key=lambda token: (_place(seen, token, deepest[token]), token))
    shown = order[:tokens_max]
    facts = await read_facts(seen.rpc, shown, seen.pin.block)
    left = len(order) - len(shown)
    return Table(
        name="tokens",
        title=f"tokens of {seen.network.label}",
        basis=Basis(label=seen.network.label, n=len(shown), of=f"tokens at block {seen.pin.block}", claim="symbols are what tokens call themselves; only addresses count"),
        columns=TOKEN_COLUMNS,
        rows=tuple(_token_cells(seen, facts[token], deepest[token]) for token in shown),
        note="depth: what the deepest pool can pay out of the other side." + (f" {left} more with less: --all." if left else "") + " Pools of one: referee pools TOKEN",
    )


def _place(seen: Onlooker, token: str, pool: Pool) -> tuple[bool, int]:
    other = pool.other(token)
    return other == seen.network.usdg, -_depth_raw(seen, pool, other)


def _deepest(seen: Onlooker, token: str) -> Pool | None:
    pools = [pool for pool in seen.graph.pools_of(token) if pool.other(token) in seen.graph.hubs and pool.venue != "curve"]
    return min(pools, key=lambda pool: (_place(seen, token, pool), pool.key), default=None)


def _token_cells(seen: Onlooker, facts: TokenFacts, pool: Pool) -> tuple[Cell, ...]:
    other = pool.other(facts.address)
    depth_raw = _depth_raw(seen, pool, other)
    return (
        plain(facts.symbol) or None,
        exchange_of(pool),
        pool.venue,
        f"{exchange_of(pool)} {pool.venue}",
        _hub_name(seen, other),
        Said(_hub_amount(seen, depth_raw, other), str(depth_raw)),
        len(seen.graph.pools_of(facts.address)),
        facts.address,
        pool.key,
    )
