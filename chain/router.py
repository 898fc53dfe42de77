"""The referee's own router: candidate routes for an exact size, and the transactions behind them.

ETH goes in and ETH comes out, directly or through one hub token. Candidates are ranked by what the cached pool states
promise; simulation, not this estimate, decides. v2 and v3 pools are reached through SwapRouter02, which may mix them in one
transaction; v4 pools, hooked ones too, and mixtures with them through UniversalRouter; other exchanges through their own
routers, a launchpad's curve by itself. An order may be split over ways of one router in one transaction.
Source: 001 §2.2; design §6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from chain import calldata
from chain.candidates import Part, candidates
from chain.gas import APPROVE_GAS_LIMIT, SWAP_GAS_LIMIT, VIEW_GAS_LIMIT
from chain.network import Network
from chain.paths import CURVE, UNIVERSAL, V2_ROUTER_02, Hop, Path, Router, label_of, router_of
from chain.pools import PoolGraph, v4_key_words
from chain.swap_router import packed, swap_router_call, tokens_of, v2_router_call
from chain.universal_router import AMOUNT_V4_MAX, universal_call


ETH_MAX = 2**96
"""More wei than there are."""


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
class Route:
    """A way through pools for an exact size, as transactions."""

    label: str
    side: str
    token: str
    amount: int
    """Wei to spend or token units to sell."""
    hops: tuple[Hop, ...]
    """Every pool crossed, one way of a split after the other."""
    approvals: tuple[Approval, ...]
    swap: Tx
    quoter: Tx | None
    """A cross-check by a quoter contract; none where no quoter knows the shape."""
    quoted: Callable[[bytes], int | None]
    """Reads the quoter's answer."""
    parts: tuple[Part, ...] = ()
    """What goes which way; their amounts add up to the route's. Empty where nothing is split."""
    promised: int = 0
    """What it would bring if its pools were as their cached states say; 0 where that is unknown."""
    depth_wei: int = 0
    """Of a sale, the ETH that the last pools of its ways hold by their cached states; 0 where that is unknown."""

    @property
    def hooked(self) -> bool:
        """Whether a hook is crossed: it may tell a quoter something else than it does in a swap."""
        return any(hop.pool.hooked for hop in self.hops)

    @property
    def tokens(self) -> tuple[str, ...]:
        """Every token that it crosses."""
        return tuple(dict.fromkeys((self.token, *(token for hop in self.hops for token in (hop.token_in, hop.token_out)))))

    @property
    def sound_quoter(self) -> Tx | None:
        """The quoter where its word may stand in for a swap that cannot be simulated; none where a hook is crossed."""
        return None if self.hooked else self.quoter

    def payable(self, amount: int | None, paid_in_wei: int = 0) -> int | None:
        """What may be claimed of a sale that nobody can simulate: at most the ETH that its last pools hold; None for nothing.

        A quoter that promises more ETH than there is anywhere is not believed at all. `paid_in_wei` is what earlier orders
        of the decision may have paid into them."""
        if amount is None or amount >= ETH_MAX or not self.depth_wei:
            return None
        return min(amount, self.depth_wei + paid_in_wei)

    @property
    def ways(self) -> tuple[Part, ...]:
        """What goes which way, split or not."""
        return self.parts or (Part(self.amount, self.hops),)


def buy_routes(network: Network, graph: PoolGraph, token: str, spend_wei: int, wallet: str) -> tuple[Route, ...]:
    """Candidate routes from ETH to a token, best promise first."""
    return _routes(network, graph, "buy", token, spend_wei, wallet)


def sell_routes(network: Network, graph: PoolGraph, token: str, amount_raw: int, wallet: str) -> tuple[Route, ...]:
    """Candidate routes from a token to ETH, best promise first."""
    return _routes(network, graph, "sell", token, amount_raw, wallet)


def _routes(network: Network, graph: PoolGraph, side: str, token: str, amount: int, wallet: str) -> tuple[Route, ...]:
    found = candidates(network, graph, side, token, amount)
    routes = (_route(network, side, token, each.parts, each.router, each.label, wallet, each.promised) for each in found)
    return tuple(replace(route, depth_wei=_depth_wei(graph, route)) for route in routes)


def _depth_wei(graph: PoolGraph, route: Route) -> int:
    """ETH that the last pools of a sale's ways offer, each counted once."""
    last = {part.path[-1].pool.key: part.path[-1] for part in route.ways} if route.side == "sell" else {}
    states = [(graph.states.get(key), hop) for key, hop in last.items()]
    return sum(state.depth_raw(hop.pool, hop.token_out) for state, hop in states if state is not None)


def route_of(network: Network, route: Route, wallet: str, amount: int | None = None) -> Route:
    """The same route for another wallet, and for another amount where one is given: split in the same proportion."""
    parts, promised = route.ways, route.promised
    if amount is not None and amount != route.amount:
        parts, promised = _scaled(parts, route.amount, amount), promised * amount // route.amount
    router = router_of(network, route.hops)
    assert router is not None, f"no router trades {route.label}"
    return replace(_route(network, route.side, route.token, parts, router, route.label, wallet, promised), depth_wei=route.depth_wei)


def route_over(network: Network, side: str, token: str, parts: Sequence[Part], wallet: str) -> Route | None:
    """The route of given ways, however they were found; None where no router trades them in one transaction."""
    routers = {router_of(network, part.path) for part in parts} | {router := router_of(network, [hop for part in parts for hop in part.path])}
    if router is None or None in routers:
        return None
    labels = " + ".join(label_of(network, part.path) for part in parts)
    return _route(network, side, token, parts, router, labels, wallet, 0)


def _scaled(parts: Sequence[Part], whole: int, amount: int) -> tuple[Part, ...]:
    shares = [amount * part.amount // whole for part in parts[:-1]]
    return tuple(Part(share, part.path) for share, part in zip((*shares, amount - sum(shares)), parts, strict=True))


# --- the transactions behind a path ---------------------------------------------------------------------------------


def _route(network: Network, side: str, token: str, parts: Sequence[Part], router: Router, label: str, wallet: str, promised: int) -> Route:
    amount, hops = sum(part.amount for part in parts), tuple(hop for part in parts for hop in part.path)
    swap = Tx(router.address, _call(network, side, parts, router, wallet), SWAP_GAS_LIMIT, amount if side == "buy" else 0)
    approvals = () if side == "buy" else _approvals(network, token, router)
    quoter, quoted = (None, _first_word) if len(parts) > 1 else _quoter(network, parts[0].path, amount, router)
    return Route(label, side, token, amount, hops, approvals, swap, quoter, quoted, tuple(parts) if len(parts) > 1 else (), promised)


def _call(network: Network, side: str, parts: Sequence[Part], router: Router, wallet: str) -> str:
    if router.shape == UNIVERSAL:
        return universal_call(network, side, parts)
    if router.shape in (V2_ROUTER_02, CURVE):
        (part,) = parts
        return v2_router_call(side, part, wallet) if router.shape == V2_ROUTER_02 else calldata.trade_curve(side, part.amount, wallet)
    return swap_router_call(side, parts, wallet)


def _approvals(network: Network, token: str, router: Router) -> tuple[Approval, ...]:
    if router.shape != UNIVERSAL:
        return (_approval(token, router.address),)
    grant = Tx(network.permit2, calldata.permit2_approve(token, router.address), APPROVE_GAS_LIMIT)
    return _approval(token, network.permit2), Approval(f"{token}>{network.permit2}>{router.address}", grant)


def _approval(token: str, spender: str) -> Approval:
    return Approval(f"{token}>{spender}", Tx(token, calldata.approve(spender), APPROVE_GAS_LIMIT))


# --- quoters --------------------------------------------------------------------------------------------------------


def _quoter(network: Network, path: Path, amount: int, router: Router) -> tuple[Tx | None, Callable[[bytes], int | None]]:
    venues = {hop.pool.venue for hop in path}
    if venues == {"v2"}:
        address = _pair_quoter(network, path, router)
        return (Tx(address, calldata.amounts_out(amount, tokens_of(path)), VIEW_GAS_LIMIT) if address else None), _last_amount
    if venues == {"v4"} and len(path) == 1 and network.v4_quoter and amount <= AMOUNT_V4_MAX:
        (hop,) = path
        data = calldata.quote_v4_single(v4_key_words(hop.pool), hop.token_in == hop.pool.token0, amount)
        return Tx(network.v4_quoter, data, VIEW_GAS_LIMIT), _first_word
    address = _v3_quoter(network, path) if venues == {"v3"} else None
    if address is None:
        return None, _first_word
    if len(path) == 1:
        (hop,) = path
        data = calldata.quote_v3_single(hop.token_in, hop.token_out, amount, hop.pool.fee_ppm)
    else:
        data = calldata.quote_v3_path(packed(path), amount)
    return Tx(address, data, VIEW_GAS_LIMIT), _first_word


def _pair_quoter(network: Network, path: Path, router: Router) -> str | None:
    """A v2 router quotes the pairs of its own factory."""
    if not path[0].pool.fork:
        return network.v2_router
    return router.address if router.shape == V2_ROUTER_02 else None


def _v3_quoter(network: Network, path: Path) -> str | None:
    names = {hop.pool.fork for hop in path}
    if names == {""}:
        return network.quoter_v2
    quoters = {fork.quoter for fork in network.forks if fork.name in names}
    return next(iter(quoters)) if len(quoters) == 1 else None


def _first_word(data: bytes) -> int | None:
    return calldata.uint_at(data, 0)


def _last_amount(data: bytes) -> int | None:
    count = calldata.uint_at(data, 1)
    return calldata.uint_at(data, 1 + count) if count is not None and 2 <= count <= 4 else None
