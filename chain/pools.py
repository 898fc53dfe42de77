"""Pools: where they are, what they hold, and which tokens they join.

Uniswap v2, v3 and v4, and other exchanges whose pools have the shapes of v2 and v3. A v4 pool with hooks is flagged: what it
says of itself is believed for no price, and what a swap there brings is only known by simulation. WETH and native ETH are
distinct tokens of pools, as on the chain; both are hubs, as is the dollar token. Depth ranks pools; it proves nothing.
Source: PairCreated, PoolCreated and Initialize logs; pool state by calls at one block.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any, TypeVar

from eth_utils import keccak

from chain.calldata import address_word, aggregate3, aggregate3_results, balance_of, eth_balance, uint_at, word
from chain.logs import Log, LogFilter, read_logs, topic, topic_address, words
from chain.network import Curve, Fork, Network
from chain.rpc import RpcDoor, RpcRefused
from chain.text import clean
from ledgers.errors import ChainFault

T = TypeVar("T")

NATIVE = "0x0000000000000000000000000000000000000000"
V2_FEE_PPM = 3_000
DYNAMIC_FEE = 0x800000
"""A v4 fee with this bit is set by its hook."""
POOLS_AT_ONCE = 100
"""Pools whose state one call reads."""
CALLS_AT_ONCE = 20

PAIR_CREATED = topic("PairCreated(address,address,address,uint256)")
POOL_CREATED = topic("PoolCreated(address,address,uint24,int24,address)")
V4_INITIALIZED = topic("Initialize(bytes32,address,address,uint24,int24,address,uint160,int24)")
CREATIONS = frozenset({PAIR_CREATED, POOL_CREATED, V4_INITIALIZED})

GET_RESERVES = "0x0902f1ac"
SLOT0 = "0x3850c7bd"
LIQUIDITY = "0x1a686502"
V4_SLOT0 = "0xc815641c"
V4_LIQUIDITY = "0xfa6793d5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A market of two tokens."""

    venue: str
    """v2, v3 or v4; or `curve`, a launchpad's own, of which no state is read."""
    key: str
    """The pool's address; for v4 its 32-byte id."""
    token0: str
    token1: str
    fee_ppm: int
    tick_spacing: int
    """0 for v2."""
    hooks: str
    """The hook contract; NATIVE (zero) for none."""
    born_block: int
    fork: str = ""
    """Name of the other exchange whose pool it is; empty for Uniswap's own."""
    swap_topic: str = ""
    """Topic of its Swap log where it is not Uniswap's own."""

    @property
    def hooked(self) -> bool:
        """True when a hook may change what a swap brings."""
        return self.hooks != NATIVE or self.fee_ppm >= DYNAMIC_FEE

    def other(self, token: str) -> str:
        """The token at the other side."""
        return self.token1 if token == self.token0 else self.token0


@dataclass(frozen=True, slots=True)
class PoolState:
    """What a pool holds at one block."""

    reserve0_raw: int
    """v2 reserves; for v3 and v4 the virtual reserves of the liquidity in range."""
    reserve1_raw: int
    sqrt_price_x96: int
    """0 for v2."""
    liquidity: int
    """√(x·y), in range for v3 and v4."""
    held0_raw: int | None = None
    """Most that the pool can pay out of token 0, where it is known: a narrow position's virtual reserves exceed it."""
    held1_raw: int | None = None
    fee_ppm: int | None = None
    """What the pool takes of a swap where its hook sets that, as it stands; the hook may set it anew in the swap itself."""

    def depth_raw(self, pool: Pool, token: str) -> int:
        """What the pool can offer of one of its tokens: virtual reserve, at most what is really held."""
        reserve, held = (self.reserve0_raw, self.held0_raw) if token == pool.token0 else (self.reserve1_raw, self.held1_raw)
        return reserve if held is None else min(reserve, held)

    def ratio(self, pool: Pool, token: str) -> tuple[int, int] | None:
        """Price of one base unit of `token` in base units of the other, as a fraction; None when the pool is empty."""
        if self.sqrt_price_x96:
            up, down = self.sqrt_price_x96**2, 1 << 192
        else:
            up, down = self.reserve1_raw, self.reserve0_raw
        if not up or not down or not self.liquidity:
            return None
        return (up, down) if token == pool.token0 else (down, up)


@dataclass(slots=True)
class PoolGraph:
    """Which tokens are joined by which pools."""

    network: Network
    pools: dict[str, Pool] = field(default_factory=dict)
    states: dict[str, PoolState] = field(default_factory=dict)
    _of: dict[str, dict[str, Pool]] = field(default_factory=dict)
    _settled: dict[Hashable, Any] = field(default_factory=dict)
    _worked: dict[Hashable, tuple[PoolState, Any]] = field(default_factory=dict)

    @property
    def hubs(self) -> tuple[str, ...]:
        """Tokens that prices and routes go through."""
        return (self.network.weth, NATIVE, self.network.usdg)

    def add(self, pool: Pool) -> None:
        """Learn of a pool; again is nothing new, and no other exchange's word changes what Uniswap's own factories said."""
        known = self.pools.get(pool.key)
        if known is not None and pool.fork and pool.fork != known.fork:
            return
        self._settled.clear()
        self.pools[pool.key] = pool
        for token in (pool.token0, pool.token1):
            self._of.setdefault(token, {})[pool.key] = pool

    def remove(self, key: str) -> None:
        """Forget a pool that a reorganisation took back."""
        self._settled.clear()
        pool = self.pools.pop(key)
        self.states.pop(key, None)
        for token in (pool.token0, pool.token1):
            self._worked.pop((key, token), None)
        for token in (pool.token0, pool.token1):
            self._of[token].pop(key, None)

    def pools_of(self, token: str) -> tuple[Pool, ...]:
        """Every pool of a token, hooked ones too, oldest knowledge first."""
        return tuple(self._of.get(token, {}).values())

    def pools_between(self, a: str, b: str) -> tuple[Pool, ...]:
        """Every pool that joins two tokens."""
        fewer, other = (a, b) if len(self._of.get(a, ())) <= len(self._of.get(b, ())) else (b, a)
        return tuple(pool for pool in self.pools_of(fewer) if pool.other(fewer) == other)

    def settled(self, what: Hashable, work: Callable[[], T]) -> T:
        """Work out what follows from which pools there are, and keep it until one comes or goes."""
        if what not in self._settled:
            self._settled[what] = work()
        return self._settled[what]

    def of_state(self, key: str, what: Hashable, work: Callable[[PoolState], T]) -> T | None:
        """Work out what follows from a pool's state, and keep it as long as that is the state; None when it is unknown."""
        state = self.states.get(key)
        if state is None:
            return None
        known = self._worked.get((key, what))
        if known is None or known[0] is not state:
            known = self._worked[key, what] = state, work(state)
        return known[1]

    def hub_pools_of(self, token: str, *, hooked: bool = False) -> tuple[Pool, ...]:
        """Pools of a token against a hub, by descending depth on the hub's side among equal hubs; hook-less ones unless asked."""
        found = [pool for pool in self.pools_of(token) if (hooked or not pool.hooked) and pool.other(token) in self.hubs]
        return tuple(sorted(found, key=lambda pool: (-self._depth_raw(pool, pool.other(token)), pool.key)))

    def _depth_raw(self, pool: Pool, token: str) -> int:
        state = self.states.get(pool.key)
        return state.depth_raw(pool, token) if state else 0

    def tokens(self) -> tuple[str, ...]:
        """Tokens, hubs apart, that have a pool against a hub; sorted."""
        hubs = set(self.hubs)
        joined = {pool.other(hub) for hub in hubs for pool in self.pools_of(hub)}
        return tuple(sorted(joined - hubs))


# --- discovery ------------------------------------------------------------------------------------------------------


def creation_emitters(network: Network) -> frozenset[str]:
    """Contracts whose word on new pools counts."""
    named = (network.v2_factory, network.v3_factory, network.v4_pool_manager if network.v4_state_view else None)
    return frozenset(address for address in (*named, *(place.factory for place in (*network.forks, *network.curves))) if address)


def creations(network: Network) -> frozenset[str]:
    """Topics of the logs that tell of new pools."""
    return CREATIONS | {curve.launched_topic for curve in network.curves}


async def discover(rpc: RpcDoor, network: Network, from_block: int, to_block: int) -> list[Pool]:
    """Read which pools were created in a range of blocks, both ends included.

    Shapes: in the order of their creation. Raises: ChainFault."""
    logs = await read_logs(rpc, LogFilter(creations(network), creation_emitters(network)), from_block, to_block)
    return [pool for log in logs if (pool := pool_created(network, log)) is not None]


def pool_created(network: Network, log: Log) -> Pool | None:
    """Read a creation log; None when it is none, or not from a factory that counts.

    Raises: ChainFault for a wrong shape of Uniswap's own."""
    what = (log.topics[0], log.address)
    if what == (PAIR_CREATED, network.v2_factory):
        return _pair(log)
    if what == (POOL_CREATED, network.v3_factory):
        return _v3_pool(log)
    if what == (V4_INITIALIZED, network.v4_pool_manager) and network.v4_state_view:
        return _v4_pool(log)
    try:
        return _elsewhere(network, log)
    except ChainFault:
        return None


def _elsewhere(network: Network, log: Log) -> Pool | None:
    """A pool of another exchange or a launchpad; what they log in another shape than is said of them is none of our pools."""
    curve = next((curve for curve in network.curves if (curve.launched_topic, curve.factory) == (log.topics[0], log.address)), None)
    if curve is not None:
        return _curve(log, curve)
    fork = next((fork for fork in network.forks if fork.factory == log.address), None)
    if fork is None or log.topics[0] != {"v2": PAIR_CREATED, "v3": POOL_CREATED}[fork.shape]:
        return None
    return of_fork(_pair(log) if fork.shape == "v2" else _v3_pool(log), fork)


def _curve(log: Log, curve: Curve) -> Pool:
    """A launch names its token and the token's own curve; what is raised there is native ETH."""
    return _checked(log, Pool(
        venue="curve", key=topic_address(log, 2), token0=NATIVE, token1=topic_address(log, 1), fee_ppm=0, tick_spacing=0, hooks=NATIVE,
        born_block=log.block, fork=curve.name,
    ))  # fmt: skip


def of_fork(pool: Pool, fork: Fork) -> Pool:
    """The pool as another exchange's."""
    fee_ppm = pool.fee_ppm if fork.fee_ppm is None else fork.fee_ppm
    return replace(pool, fee_ppm=fee_ppm, fork=fork.name, swap_topic=fork.swap_topic or "")


def _pair(log: Log) -> Pool:
    pair, _ = words(log, 2)
    return _checked(log, Pool(
        venue="v2", key=_address(log, pair), token0=topic_address(log, 1), token1=topic_address(log, 2),
        fee_ppm=V2_FEE_PPM, tick_spacing=0, hooks=NATIVE, born_block=log.block,
    ))  # fmt: skip


def _v3_pool(log: Log) -> Pool:
    spacing, address = words(log, 2)
    fee = int(log.topics[3], 16) if len(log.topics) == 4 else 2**24
    return _checked(log, Pool(
        venue="v3", key=_address(log, address), token0=topic_address(log, 1), token1=topic_address(log, 2),
        fee_ppm=fee, tick_spacing=spacing, hooks=NATIVE, born_block=log.block,
    ))  # fmt: skip


def _v4_pool(log: Log) -> Pool:
    fee, spacing, hooks, _, _ = words(log, 5)
    pool = _checked(log, Pool(
        venue="v4", key=log.topics[1], token0=topic_address(log, 2), token1=topic_address(log, 3),
        fee_ppm=fee, tick_spacing=spacing, hooks=_address(log, hooks), born_block=log.block,
    ))  # fmt: skip
    if v4_id(pool) != pool.key:
        raise ChainFault("bad_answer", f"v4 pool {pool.key} is not the hash of its key")
    return pool


def _checked(log: Log, pool: Pool) -> Pool:
    if pool.token0 >= pool.token1 or pool.fee_ppm >= 2**24 or pool.tick_spacing >= 2**15:
        raise ChainFault("bad_answer", f"a creation log of {log.address} in block {log.block} is no pool")
    return pool


def _address(log: Log, value: int) -> str:
    if value >= 2**160:
        raise ChainFault("bad_answer", f"a log of {log.address} holds {value:#x} for an address")
    return f"0x{value:040x}"


def v4_key_words(pool: Pool) -> str:
    """Pack a v4 pool's key into five words of hex."""
    return "".join((address_word(pool.token0), address_word(pool.token1), word(pool.fee_ppm), word(pool.tick_spacing), address_word(pool.hooks)))


def v4_id(pool: Pool) -> str:
    """Hash a v4 pool's key into its id."""
    return "0x" + keccak(bytes.fromhex(v4_key_words(pool))).hex()


# --- state ----------------------------------------------------------------------------------------------------------


async def read_states(rpc: RpcDoor, network: Network, pools: Iterable[Pool], block: int) -> dict[str, PoolState]:
    """Read what pools hold at a block, in one round trip for up to 2,000 pools.

    Shapes: by pool key; a pool that does not answer at that block is left out. Raises: ChainFault."""
    chunks = [_StateCalls(network, chunk) for chunk in _chunks([pool for pool in pools if pool.venue != "curve"], POOLS_AT_ONCE)]
    states: dict[str, PoolState] = {}
    for several in _chunks(chunks, CALLS_AT_ONCE):
        answers = await rpc.batch([multicall_request(network, chunk.calls, block) for chunk in several])
        for chunk, answer in zip(several, answers, strict=True):
            states |= chunk.states(multicall_answer(answer, len(chunk.calls)))
    return states


def multicall_request(network: Network, calls: Sequence[tuple[str, str]], block: int) -> tuple[str, list[Any]]:
    """Ask several view calls of well-behaved contracts in one."""
    return ("eth_call", [{"to": network.multicall3, "data": aggregate3(calls)}, hex(block)])


def multicall_answer(answer: object, count: int) -> list[bytes | None]:
    """Read the answer to `multicall_request`. Raises: ChainFault."""
    if isinstance(answer, RpcRefused):
        raise ChainFault("refused", f"multicall: {clean(answer.message, 120)}")
    return aggregate3_results(answer, count)


class _StateCalls:
    """The calls that read a chunk of pools, and how their answers become states."""

    def __init__(self, network: Network, pools: Sequence[Pool]) -> None:
        self._network, self._pools = network, pools
        self.calls: list[tuple[str, str]] = []
        self._readings: list[tuple[Pool, int, dict[str, int]]] = []
        self._asked: dict[tuple[str, str], int] = {}
        for pool in pools:
            first = len(self.calls)
            self.calls += self._own_calls(pool)
            self._readings.append((pool, first, self._held_calls(pool)))

    def _own_calls(self, pool: Pool) -> list[tuple[str, str]]:
        if pool.venue == "v2":
            return [(pool.key, GET_RESERVES)]
        if pool.venue == "v3":
            return [(pool.key, SLOT0), (pool.key, LIQUIDITY)]
        assert self._network.v4_state_view, "v4 pools are only known where a StateView is configured"
        return [(self._network.v4_state_view, call + pool.key[2:]) for call in (V4_SLOT0, V4_LIQUIDITY)]

    def _held_calls(self, pool: Pool) -> dict[str, int]:
        """Places of the calls that tell what is held of the pool's hub tokens; only they are trusted to be asked."""
        holder = pool.key if pool.venue == "v3" else self._network.v4_pool_manager
        if pool.venue == "v2" or holder is None:
            return {}
        held = {}
        for token in (pool.token0, pool.token1):
            if token == NATIVE:
                held[token] = self._ask(self._network.multicall3, eth_balance(holder))
            elif token in (self._network.weth, self._network.usdg):
                held[token] = self._ask(token, balance_of(holder))
        return held

    def _ask(self, target: str, data: str) -> int:
        if (target, data) not in self._asked:
            self._asked[target, data] = len(self.calls)
            self.calls.append((target, data))
        return self._asked[target, data]

    def states(self, answers: Sequence[bytes | None]) -> dict[str, PoolState]:
        states = {}
        for pool, first, held in self._readings:
            balances = {token: uint_at(answers[place] or b"", 0) for token, place in held.items()}
            state = _state(pool, answers[first], answers[first + 1] if pool.venue != "v2" else b"", balances)
            if state is not None:
                states[pool.key] = state
        return states


def _state(pool: Pool, first: bytes | None, second: bytes | None, held: dict[str, int | None]) -> PoolState | None:
    if pool.venue == "v2":
        reserve0, reserve1 = uint_at(first or b"", 0), uint_at(first or b"", 1)
        if reserve0 is None or reserve1 is None:
            return None
        _bound(pool, (reserve0, 112), (reserve1, 112))
        return PoolState(reserve0, reserve1, 0, isqrt(reserve0 * reserve1), reserve0, reserve1)
    price, liquidity = uint_at(first or b"", 0), uint_at(second or b"", 0)
    if price is None or liquidity is None:
        return None
    fee_ppm = uint_at(first or b"", 3) if pool.venue == "v4" and pool.fee_ppm >= DYNAMIC_FEE else None
    _bound(pool, (price, 160), (liquidity, 128), (fee_ppm or 0, 24))
    reserve0 = (liquidity << 96) // price if price else 0
    return PoolState(reserve0, liquidity * price >> 96, price, liquidity, held.get(pool.token0), held.get(pool.token1), fee_ppm)


def _bound(pool: Pool, *values: tuple[int, int]) -> None:
    for value, bits in values:
        if value >> bits:
            raise ChainFault("bad_answer", f"{pool.venue} pool {pool.key} cannot hold {value:#x}")


def _chunks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[at : at + size] for at in range(0, len(items), size)]
