"""The referee's own router: candidate routes for an exact size, and the transactions behind them.

ETH goes in and ETH comes out, directly or through one hub token. Candidates are ranked by what the cached pool states
promise; simulation, not this estimate, decides. v2 and v3 pools are reached through SwapRouter02, which may mix them in one
transaction; v4 pools without hooks through UniversalRouter.
Source: 001 §2.2; design §6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chain import calldata
from chain.gas import APPROVE_GAS_LIMIT, SWAP_GAS_LIMIT, VIEW_GAS_LIMIT
from chain.network import Network
from chain.pools import NATIVE, Pool, PoolGraph, PoolState, v4_key_words

CANDIDATES_MAX = 6
V4_CANDIDATES_MAX = 3
"""Anybody can make any number of v4 pools that promise much; they crowd out no more than these."""
ROUTER_ITSELF = "0x0000000000000000000000000000000000000002"
"""SwapRouter02's word for its own address as a recipient."""
HELD_BY_ROUTER = 0
"""SwapRouter02's word for `everything the router holds` as an amount."""
FEE_WHOLE_PPM = 1_000_000
AMOUNT_V4_MAX = 2**128 - 1

V4_SWAP = "10"
"""UniversalRouter's command, in hex."""
V4_ACTIONS = "060c0f"
"""Swap exactly this much in one pool, settle all of it, take all that comes."""
DEADLINE_NEVER = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Tx:
    """A transaction to simulate."""

    to: str
    data: str
    gas_limit: int
    value_wei: int = 0


@dataclass(frozen=True, slots=True)
class Approval:
    """An allowance that a sale needs, and the transaction that grants it."""

    key: str
    """`token>spender`; an allowance is unlimited and paid for once."""
    tx: Tx


@dataclass(frozen=True, slots=True)
class Hop:
    """One pool crossed in one direction."""

    pool: Pool
    token_in: str
    token_out: str


@dataclass(frozen=True, slots=True)
class Route:
    """A way through pools for an exact size, as transactions."""

    label: str
    side: str
    token: str
    amount: int
    """Wei to spend or token units to sell."""
    hops: tuple[Hop, ...]
    approvals: tuple[Approval, ...]
    swap: Tx
    quoter: Tx | None
    """A cross-check by a quoter contract; none where no quoter knows the shape."""
    quoted: Callable[[bytes], int | None]
    """Reads the quoter's answer."""


def buy_routes(network: Network, graph: PoolGraph, token: str, spend_wei: int, wallet: str) -> tuple[Route, ...]:
    """Candidate routes from ETH to a token, best promise first."""
    return _routes(network, graph, "buy", token, spend_wei, wallet)


def sell_routes(network: Network, graph: PoolGraph, token: str, amount_raw: int, wallet: str) -> tuple[Route, ...]:
    """Candidate routes from a token to ETH, best promise first."""
    return _routes(network, graph, "sell", token, amount_raw, wallet)


def _routes(network: Network, graph: PoolGraph, side: str, token: str, amount: int, wallet: str) -> tuple[Route, ...]:
    paths = graph.settled(("paths", side, token), lambda: _paths(network, graph, side, token))
    promised = {label: _promise(graph, path, amount) for label, path in paths.items()}
    ranked = sorted(promised, key=lambda label: (-promised[label], label))
    if len(ranked) > CANDIDATES_MAX:
        ranked = _chosen(ranked, {label for label in ranked if paths[label][0].pool.venue == "v4"})
    return tuple(_route(network, side, token, paths[label], label, amount, wallet) for label in ranked)


def _chosen(ranked: list[str], v4: set[str]) -> list[str]:
    """The best candidates, with few v4 pools among them as long as there are others."""
    places = CANDIDATES_MAX - min(len(v4), V4_CANDIDATES_MAX)
    others = [label for label in ranked if label not in v4][:places]
    kept = {*others, *[label for label in ranked if label in v4][: CANDIDATES_MAX - len(others)]}
    return [label for label in ranked if label in kept]


def route_of(network: Network, route: Route, wallet: str, amount: int | None = None) -> Route:
    """The same route for another wallet, and for another amount where one is given."""
    return _route(network, route.side, route.token, route.hops, route.label, route.amount if amount is None else amount, wallet)


# --- which pools ----------------------------------------------------------------------------------------------------


def _paths(network: Network, graph: PoolGraph, side: str, token: str) -> dict[str, tuple[Hop, ...]]:
    """Every way to trade a token, by label."""
    paths = [path if side == "buy" else _reversed(path) for path in _paths_from_eth(network, graph, token)]
    return {_label(network, path): path for path in paths}


def _paths_from_eth(network: Network, graph: PoolGraph, token: str) -> Iterator[tuple[Hop, ...]]:
    for pool in graph.pools_between(network.weth, token):
        if pool.venue != "v4":
            yield (Hop(pool, network.weth, token),)
    for pool in graph.pools_between(NATIVE, token):
        if _reachable_v4(network, pool):
            yield (Hop(pool, NATIVE, token),)
    if token in (network.usdg, network.weth):
        return
    for second in graph.pools_between(network.usdg, token):
        for first in graph.pools_between(network.weth, network.usdg):
            if first.venue != "v4" and second.venue != "v4":
                yield Hop(first, network.weth, network.usdg), Hop(second, network.usdg, token)


def _reachable_v4(network: Network, pool: Pool) -> bool:
    return pool.venue == "v4" and not pool.hooked and network.universal_router is not None and network.v4_quoter is not None


def _reversed(path: tuple[Hop, ...]) -> tuple[Hop, ...]:
    return tuple(Hop(hop.pool, hop.token_out, hop.token_in) for hop in reversed(path))


def _promise(graph: PoolGraph, path: tuple[Hop, ...], amount: int) -> int:
    for hop in path:
        amount = _out_of(graph.states.get(hop.pool.key), hop, amount)
    return amount


def _out_of(state: PoolState | None, hop: Hop, amount_in: int) -> int:
    if state is None:
        return 0
    reserves = (state.reserve0_raw, state.reserve1_raw)
    reserve_in, reserve_out = reserves if hop.token_in == hop.pool.token0 else reserves[::-1]
    after_fee = amount_in * (FEE_WHOLE_PPM - hop.pool.fee_ppm)
    denominator = reserve_in * FEE_WHOLE_PPM + after_fee
    promised = after_fee * reserve_out // denominator if denominator else 0
    held = state.held1_raw if hop.token_in == hop.pool.token0 else state.held0_raw
    return promised if held is None else min(promised, held)


# --- the transactions behind a path ---------------------------------------------------------------------------------


def _route(network: Network, side: str, token: str, path: tuple[Hop, ...], label: str, amount: int, wallet: str) -> Route:
    if path[0].pool.venue == "v4":
        return _v4_route(network, side, token, path, amount, label)
    quoter, quoted = _quoter(network, path, amount)
    swap = _swap_router_tx(network, side, path, amount, wallet)
    approvals = () if side == "buy" else (_approval(token, network.swap_router_02),)
    return Route(label, side, token, amount, path, approvals, swap, quoter, quoted)


def _label(network: Network, path: tuple[Hop, ...]) -> str:
    names = {network.weth: "eth", NATIVE: "eth", network.usdg: "usdg"}
    text = names.get(path[0].token_in, "token")
    for hop in path:
        percent = f"{hop.pool.fee_ppm // 10_000}.{hop.pool.fee_ppm % 10_000:04d}".rstrip("0").rstrip(".")
        text += f" >{hop.pool.venue} {percent}% {hop.pool.key[:10]}> {names.get(hop.token_out, 'token')}"
    return text


def _approval(token: str, spender: str) -> Approval:
    return Approval(f"{token}>{spender}", Tx(token, calldata.approve(spender), APPROVE_GAS_LIMIT))


def _swap_router_tx(network: Network, side: str, path: tuple[Hop, ...], amount: int, wallet: str) -> Tx:
    if side == "buy":
        calls = _swap_calls(path, amount, wallet)
        data = calls[0] if len(calls) == 1 else calldata.multicall(calls)
        return Tx(network.swap_router_02, data, SWAP_GAS_LIMIT, amount)
    calls = [*_swap_calls(path, amount, ROUTER_ITSELF), calldata.unwrap_weth(wallet)]
    return Tx(network.swap_router_02, calldata.multicall(calls), SWAP_GAS_LIMIT)


def _swap_calls(path: tuple[Hop, ...], amount: int, recipient: str) -> list[str]:
    venues = {hop.pool.venue for hop in path}
    if venues == {"v2"}:
        return [calldata.swap_v2([path[0].token_in, *(hop.token_out for hop in path)], recipient, amount)]
    if len(path) == 1:
        (hop,) = path
        return [calldata.swap_v3_single(hop.token_in, hop.token_out, hop.pool.fee_ppm, recipient, amount)]
    if venues == {"v3"}:
        return [calldata.swap_v3_path(_packed(path), recipient, amount)]
    first, second = path
    return [*_swap_calls((first,), amount, ROUTER_ITSELF), *_swap_calls((second,), HELD_BY_ROUTER, recipient)]


def _packed(path: tuple[Hop, ...]) -> str:
    return calldata.v3_path([path[0].token_in, *(hop.token_out for hop in path)], [hop.pool.fee_ppm for hop in path])


def _quoter(network: Network, path: tuple[Hop, ...], amount: int) -> tuple[Tx | None, Callable[[bytes], int | None]]:
    venues = {hop.pool.venue for hop in path}
    if venues == {"v2"}:
        tokens = [path[0].token_in, *(hop.token_out for hop in path)]
        return Tx(network.v2_router, calldata.amounts_out(amount, tokens), VIEW_GAS_LIMIT), _last_amount
    if venues != {"v3"}:
        return None, _first_word
    if len(path) == 1:
        (hop,) = path
        data = calldata.quote_v3_single(hop.token_in, hop.token_out, amount, hop.pool.fee_ppm)
    else:
        data = calldata.quote_v3_path(_packed(path), amount)
    return Tx(network.quoter_v2, data, VIEW_GAS_LIMIT), _first_word


def _first_word(data: bytes) -> int | None:
    return calldata.uint_at(data, 0)


def _last_amount(data: bytes) -> int | None:
    count = calldata.uint_at(data, 1)
    return calldata.uint_at(data, 1 + count) if count is not None and 2 <= count <= 4 else None


# --- v4 -------------------------------------------------------------------------------------------------------------


def _v4_route(network: Network, side: str, token: str, path: tuple[Hop, ...], amount: int, label: str) -> Route:
    (hop,) = path
    assert network.universal_router and network.v4_quoter
    zero_for_one = hop.token_in == hop.pool.token0
    approvals = () if side == "buy" else _v4_approvals(network, token)
    swap = Tx(network.universal_router, _v4_execute(hop, zero_for_one, amount), SWAP_GAS_LIMIT, amount if side == "buy" else 0)
    quoter = Tx(network.v4_quoter, calldata.quote_v4_single(v4_key_words(hop.pool), zero_for_one, amount), VIEW_GAS_LIMIT)
    return Route(label, side, token, amount, path, approvals, swap, quoter if amount <= AMOUNT_V4_MAX else None, _first_word)


def _v4_approvals(network: Network, token: str) -> tuple[Approval, ...]:
    assert network.universal_router
    grant = Tx(network.permit2, calldata.permit2_approve(token, network.universal_router), APPROVE_GAS_LIMIT)
    return _approval(token, network.permit2), Approval(f"{token}>{network.permit2}>{network.universal_router}", grant)


def _v4_execute(hop: Hop, zero_for_one: bool, amount: int) -> str:
    """Encode UniversalRouter's `execute` of one v4 swap that settles and takes all."""
    amount = min(amount, AMOUNT_V4_MAX)
    swap = (calldata.word(32), v4_key_words(hop.pool), *map(calldata.word, (zero_for_one, amount, 0, 9 * 32, 0)))
    settle = calldata.address_word(hop.token_in) + calldata.word(amount)
    take = calldata.address_word(hop.token_out) + calldata.word(0)
    plan = calldata.word(64) + calldata.word(128) + calldata.tail(V4_ACTIONS) + calldata.bytes_array(["".join(swap), settle, take])
    head = calldata.word(96) + calldata.word(160) + calldata.word(DEADLINE_NEVER)
    return f"0x{calldata.UNIVERSAL_EXECUTE}{head}{calldata.tail(V4_SWAP)}{calldata.bytes_array([plan])}"
