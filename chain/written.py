"""Written: which words a wallet's transactions left different, and which of them are the market's own.

The complete write set comes from running the simulation here; it counts only where the node's answer is the same. Market words
are left out, because own impact is another ledger: what a pool's own swap wrote in the pool or its manager, what routers keep,
and the pools' balances in tokens. A pool's balance is told by asking the token for it: the one word that this reads and that
asking for a stranger does not read, and only where it moved as the balance did, so that nothing else can hide in it. Where more
is kept with a balance, the words are carried without what the order moved, and only if the token then tells the balance from
before.
Source: ONC-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from eth_utils import keccak

from chain import calldata
from chain.evm import Executed, LocalCall, LocalEvm, NotCovered
from chain.evm.execute import Write
from chain.network import Network
from chain.pools import NATIVE, PoolGraph
from chain.simulate import BALANCE, TRANSFER_TOPIC, Handle, Simulated, Simulation, SlotWrite, lens_of, slot_override
from chain.words import WORD_MAX, Place, Word
from ledgers.errors import ChainFault

WORDS_MAX = 512
"""Words that one order may leave different beside the market's."""
ASKED_MAX = 64
"""Balances of pools that are asked for in one order."""
ROUNDING_RAW = 4
"""Shares that a pool's word may move by otherwise than its balance, both being rounded."""
VIEW_GAS = 2_000_000
POOL_SWAPS = frozenset(
    keccak(text=signature)[:4]
    for signature in (
        "swap(uint256,uint256,address,bytes)",
        "swap(address,bool,int256,uint160,bytes)",
        "swap((address,address,uint24,int24,address),(bool,int256,uint160),bytes)",
    )
)
"""Selectors of the swaps of v2 and v3 pools and of the v4 manager."""


Balances = dict[Place, int | None]
"""Words that hold balances of the market: what is carried of each, none where it is left out."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an order's transactions wrote beside the market's words, and the gas limit that its swap needs."""

    words: tuple[Word, ...]
    gas_limit: int


@dataclass(frozen=True, slots=True)
class Untold:
    """Why that is not known."""

    reason: str


UNTOLD_BALANCE = Untold("not told: more than a pool's balance is kept in its words")


class Market:
    """What belongs to the market, on one network."""

    def __init__(self, network: Network, graph: PoolGraph) -> None:
        self._graph = graph
        routers = (network.swap_router_02, network.universal_router, network.v2_router, network.quoter_v2, network.v4_quoter, network.multicall3)
        self._routers = frozenset(address for address in (*routers, *(fork.router for fork in network.forks)) if address)
        self._manager, self._positions = network.v4_pool_manager, frozenset(filter(None, (network.v3_positions, network.v4_positions)))
        self._weth = network.weth

    def holds_tokens(self, address: str) -> bool:
        """Whether an address keeps tokens for the market."""
        return address == self._manager or address in self._routers or address in self._graph.pools

    def tokens_kept(self, address: str, traded: Iterable[str]) -> tuple[str, ...]:
        """The tokens of a pool; of what keeps those of many, the traded ones."""
        pool = self._graph.pools.get(address)
        return (pool.token0, pool.token1) if pool is not None else tuple(traded) if address == self._manager else ()

    def keeps_ether(self, address: str) -> bool:
        return self.holds_tokens(address) or address == self._weth

    def wrote(self, write: Write, *, positions: bool) -> bool:
        """Whether a word is the market's by its contract; with `positions` what opens and closes them is too."""
        if write.contract in self._routers:
            return True
        pool = self._graph.pools.get(write.contract)
        if pool is None and write.contract != self._manager:
            return positions and write.contract in self._positions
        return positions or pool is not None and pool.venue == "curve" or bool(write.by & POOL_SWAPS)


@dataclass(frozen=True, slots=True)
class Asked:
    """One order's simulation, as it is read here."""

    simulation: Simulation
    sent: tuple[Handle, ...]
    """The order's own transactions, in order, all in one block."""
    wallet: str
    tokens: tuple[str, ...]
    """What is traded."""
    positions: bool = False


async def alike(evm: LocalEvm, found: Executed | NotCovered, done: Simulated) -> Executed | Untold:
    """Hold what was run here to the node's answer. Raises: ChainFault."""
    if isinstance(found, NotCovered):
        return Untold(f"not told: {found.reason}"[:120])
    found, differs = await evm.held_to(found, done.rows)
    return Untold(f"not told: {differs}"[:120]) if differs else found


async def told(evm: LocalEvm, market: Market, asked: Asked, executed: Executed, begun: Mapping[Place, int], enough_wei: int) -> Told | Untold:
    """What an order wrote.

    Units: `begun` is what places held before the wallet wrote them that overrides set; with `enough_wei` of ETH a swap's gas is not in question.
    Raises: ChainFault."""
    calls = [executed.calls[block][place] for block, place in asked.sent]
    if any(account.code[0] != account.code[1] for call in calls for account in call.accounts):
        return Untold("not told: it creates or ends a contract")
    pairs = list(dict.fromkeys(pair for call in calls for pair in (*_paid(call, market), *_crossed(call, market, asked))))
    if len(pairs) > ASKED_MAX:
        return Untold(f"not told: it moves more than {ASKED_MAX} balances of pools")
    balances = await _balance_words(evm, asked, executed, pairs)
    if isinstance(balances, Untold):
        return balances
    after = _after(calls, market, asked, balances)
    if len(after) > WORDS_MAX:
        return Untold(f"not told: it writes more than {WORDS_MAX} words")
    try:
        words = tuple(Word(*place, begun[place] if place in begun else _on_chain(executed, place), value) for place, value in after.items())
    except KeyError:
        return Untold("not told: what a word held before")
    swap = calls[-1]
    limit = swap.gas_needed
    if limit * 2 * asked.simulation.pin.base_fee_wei > enough_wei:
        limit = executed.least_gas(asked.sent[-1])
    return Told(words, limit)


def _after(calls: Sequence[LocalCall], market: Market, asked: Asked, balances: Balances) -> dict[Place, int]:
    """What words and purses beside the market's hold in the end."""
    found: dict[Place, int] = {}
    for call in calls:
        for write in call.writes:
            place = write.contract, write.slot
            if place not in balances and not market.wrote(write, positions=asked.positions):
                found[place] = write.after
        for account in call.accounts:
            if account.balance[0] != account.balance[1] and account.address not in _payers(asked) and not market.keeps_ether(account.address):
                found[account.address, BALANCE] = account.balance[1]
    return found | {place: value for place, value in balances.items() if value is not None}


def _payers(asked: Asked) -> frozenset[str]:
    """Who pays and gets gas, and the wallet, whose ETH is in its book."""
    network = asked.simulation.network
    return frozenset(filter(None, (asked.wallet, network.reader, network.fee_recipient)))


def _on_chain(executed: Executed, place: Place) -> int:
    known, contract = executed.pinned.known, int(place[0], 16)
    return known.accounts[contract].balance if place[1] == BALANCE else known.words[contract, int(place[1], 16)]


# --- the pools' balances ------------------------------------------------------------------------------------------------


def _paid(call: LocalCall, market: Market) -> Iterator[tuple[str, str]]:
    """Tokens and holders of the market that a transaction moved them from or to, by its logs."""
    for log in call.logs:
        if len(log.topics) == 3 and log.topics[0] == TRANSFER_TOPIC:
            for topic in log.topics[1:]:
                if market.holds_tokens(holder := "0x" + topic[26:]):
                    yield log.address, holder


def _crossed(call: LocalCall, market: Market, asked: Asked) -> Iterator[tuple[str, str]]:
    """Tokens and holders of the market that a transaction wrote in, whatever it logged."""
    for holder in dict.fromkeys(write.contract for write in call.writes):
        for token in market.tokens_kept(holder, asked.tokens):
            if token != NATIVE:
                yield token, holder


async def _balance_words(evm: LocalEvm, asked: Asked, executed: Executed, pairs: Sequence[tuple[str, str]]) -> Balances | Untold:
    """Where tokens keep the balances of the market's holders."""
    if not pairs:
        return {}
    strangers = list(dict.fromkeys(token for token, _ in pairs))
    questions = [*pairs, *((token, asked.simulation.network.reader) for token in strangers)]
    block, first = asked.sent[0]
    last = asked.sent[-1][1]
    blocks = deepcopy(executed.blocks[: block + 1])
    here = blocks[block]
    views = [_view(here, token, owner, asked.simulation) for token, owner in questions]
    here["calls"] = [*here["calls"][:first], *views, *here["calls"][first : last + 1], *views]
    found = await evm.run_blocks(asked.simulation.pin.block_hash, blocks, proven=False)
    if isinstance(found, NotCovered):
        return Untold(f"not told: {found.reason}"[:120])
    row = found.calls[block]
    before, after = row[first : first + len(views)], row[len(row) - len(views) :]
    changed = {(write.contract, write.slot): write for write in _net(executed, asked)}
    unknown = {token: _read(after[len(pairs) + at]) for at, token in enumerate(strangers)}
    words: dict[Place, int | None] = {}
    odd: list[_Kept] = []
    for pair, was, now in zip(pairs, before, after, strict=False):
        own = {place: changed[place] for place in _read(now) - unknown[pair[0]] if place in changed}
        told, then = _balance(was), _balance(now)
        if not own or told is None or then is None:
            continue
        kept = _Kept(*pair, own, then)
        if kept.moved_alike(told):
            words |= dict.fromkeys(own)
        else:
            odd.append(kept)
    return await _apart(evm, asked, executed, words, odd) if odd else words


@dataclass(frozen=True, slots=True)
class _Kept:
    """A balance of the market's and the words that changed with it, which may hold something else too."""

    token: str
    holder: str
    own: Mapping[Place, Write]
    now: int

    def moved_alike(self, was: int) -> bool:
        """Whether a single word moved as the balance did, by a whole number of times as much; or in proportion, where it counts shares."""
        if len(self.own) != 1 or self.now == was:
            return False
        (write,), grew = self.own.values(), self.now - was
        by = write.after - write.before
        times = _times(by, grew)
        return times >= 1 and by == times * grew or times in (0, 1) and abs(by * was - write.before * grew) <= ROUNDING_RAW * max(was, write.before)

    def as_before(self) -> dict[Place, int]:
        return {place: write.before for place, write in self.own.items()}

    def unmoved(self, was: int) -> Iterator[dict[Place, int]]:
        """The words without what was moved, which may be in any of them and counted in smaller units than the balance is."""
        grew = self.now - was
        for place, write in self.own.items():
            for times in dict.fromkeys((1, max(_times(write.after - write.before, grew), 1))):
                if 0 <= (value := write.after - times * grew) <= WORD_MAX:
                    yield {other: each.after for other, each in self.own.items()} | {place: value}


async def _apart(evm: LocalEvm, asked: Asked, executed: Executed, words: Balances, odd: Sequence[_Kept]) -> Balances | Untold:
    """The same with words that hold more than a balance, as far as the token tells through them what it would tell without what was moved."""
    unmoved = await _told_with(evm, asked, executed, [(each, each.as_before()) for each in odd])
    if isinstance(unmoved, Untold):
        return unmoved
    tries: list[tuple[_Kept, dict[Place, int]]] = []
    for each, was in zip(odd, unmoved, strict=True):
        if was is None:
            return UNTOLD_BALANCE
        if each.moved_alike(was):
            words |= dict.fromkeys(each.own)
        else:
            tries += [(each, tried) for tried in each.unmoved(was)]
    told = await _told_with(evm, asked, executed, tries)
    if isinstance(told, Untold):
        return told
    for each, was in zip(odd, unmoved, strict=True):
        fitting = [tried for (of, tried), balance in zip(tries, told, strict=True) if of is each and balance == was]
        if fitting:
            words |= fitting[0]
        elif not each.own.keys() <= words.keys():
            return UNTOLD_BALANCE
    return words


async def _told_with(
    evm: LocalEvm, asked: Asked, executed: Executed, tries: Sequence[tuple[_Kept, dict[Place, int]]]
) -> list[int | None] | Untold:
    """What tokens tell of balances after the order, each with some words set otherwise."""
    if not tries:
        return []
    block, last = asked.sent[-1]
    blocks = deepcopy(executed.blocks[: block + 1])
    blocks[block]["calls"] = blocks[block]["calls"][: last + 1]
    header = blocks[block]["blockOverrides"]
    for each, tried in tries:
        header = header | {name: hex(int(header[name], 16) + 1) for name in ("number", "time")}
        there: dict[str, Any] = {"blockOverrides": header, "stateOverrides": slot_override([SlotWrite(*place, value) for place, value in tried.items()])}
        there["calls"] = [_view(there, each.token, each.holder, asked.simulation)]
        blocks.append(there)
    found = await evm.run_blocks(asked.simulation.pin.block_hash, blocks, proven=False)
    if isinstance(found, NotCovered):
        return Untold(f"not told: {found.reason}"[:120])
    return [_balance(view) for row in found.calls[block + 1 :] for view in row]


def _times(by: int, grew: int) -> int:
    """How many times as much as a balance its word moved by, to the nearest whole number."""
    return (2 * by + grew) // (2 * grew) if grew else 0


def _balance(view: LocalCall) -> int | None:
    return calldata.uint_at(view.data, 0) if view.ok else None


def _view(block: dict[str, Any], token: str, owner: str, simulation: Simulation) -> dict[str, str]:
    """A call that asks a token for a balance, in a block of calls."""
    reader, fee = simulation.network.reader, hex(simulation.pin.base_fee_wei)
    lens, code = lens_of(token, reader)
    block["stateOverrides"].setdefault(lens, {})["code"] = code
    return {"from": reader, "to": lens, "data": calldata.balance_of(owner), "gas": hex(VIEW_GAS), "maxFeePerGas": fee, "maxPriorityFeePerGas": "0x0"}


def _net(executed: Executed, asked: Asked) -> Iterable[Write]:
    """What all transactions of an order together changed: before the first, after the last."""
    found: dict[Place, Write] = {}
    for block, at in asked.sent:
        for write in executed.calls[block][at].writes:
            place = write.contract, write.slot
            earlier = found.get(place)
            found[place] = Write(*place, earlier.before if earlier else write.before, write.after)
    return found.values()


def _read(view: LocalCall) -> set[Place]:
    return {(read.contract, read.slot) for read in view.reads}


def refused(fault: ChainFault) -> Untold:
    """A node's fault as a reason."""
    return Untold(f"not told: {fault.reason}")
