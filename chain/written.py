"""Written: which words a wallet's transactions left different, and which of them are the market's own.

The complete write set comes from running the simulation here; it counts only where the node's answer is the same. Market words
are left out, because own impact is another ledger: what a pool's own swap wrote in the pool or its manager, what routers keep,
and the pools' balances in tokens. A pool's balance is told by asking the token for it: the one word that this reads and that
asking for a stranger does not read, and only where it moved as the balance did, so that nothing else can hide in it: by as much,
or as shares do, of which any part is as much of the balance.
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
from chain.simulate import BALANCE, TRANSFER_TOPIC, Handle, Simulated, Simulation, lens_of
from chain.words import Place, Word
from ledgers.errors import ChainFault

WORDS_MAX = 512
"""Words that one order may leave different beside the market's."""
ASKED_MAX = 64
"""Balances of pools that are asked for in one order."""
PARTS = 8
"""A pool's word of shares may move by this part otherwise than its balance."""
PART_WHOLE = 2**64
ROUNDING_RAW = 4
"""Token units by which the balance of a part of the shares may differ from that part of the balance."""
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


@dataclass(frozen=True, slots=True)
class Told:
    """What an order's transactions wrote beside the market's words, and the gas limit that its swap needs."""

    words: tuple[Word, ...]
    gas_limit: int


@dataclass(frozen=True, slots=True)
class Untold:
    """Why that is not known."""

    reason: str


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

    def weighs_tokens(self, address: str) -> bool:
        """Whether a pool holds what it has to its own count of it, so that one without the other makes no sense."""
        pool = self._graph.pools.get(address)
        return pool is not None and pool.venue == "v2"

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
    balances = await _balance_words(evm, market, asked, executed, pairs)
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


def _after(calls: Sequence[LocalCall], market: Market, asked: Asked, balances: frozenset[Place]) -> dict[Place, int]:
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
    return found


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


async def _balance_words(
    evm: LocalEvm, market: Market, asked: Asked, executed: Executed, pairs: Sequence[tuple[str, str]]
) -> frozenset[Place] | Untold:  # fmt: skip
    """Where tokens keep the balances of the market's holders, as far as these words hold nothing else."""
    if not pairs:
        return frozenset()
    reader = asked.simulation.network.reader
    strangers = list(dict.fromkeys(token for token, _ in pairs))
    questions = [*pairs, *((token, reader) for token in strangers)]
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
    owns = [[place for place in _read(view) - unknown[token] if place in changed] for view, (token, _) in zip(after, pairs, strict=False)]
    words, shares = set[Place](), dict[Place, tuple[str, str]]()
    for at, own in enumerate(owns):
        if len(own) == 1 and _moved_by_as_much(changed[own[0]], before[at], after[at]):
            words.add(own[0])
        elif len(own) == 1 and _moved_in_proportion(changed[own[0]], before[at], after[at]):
            shares[own[0]] = pairs[at]
    words |= await _shares(evm, asked, blocks, list(shares.values()), {place: changed[place].after for place in shares})
    for at, (own, (_, holder)) in enumerate(zip(owns, pairs, strict=True)):
        if own and not words.issuperset(own) and market.weighs_tokens(holder) and before[at].data != after[at].data:
            return Untold("not told: where a pool's balance is kept")
    return frozenset(words)


async def _shares(evm: LocalEvm, asked: Asked, blocks: list[dict[str, Any]], pairs: Sequence[tuple[str, str]], words: Mapping[Place, int]) -> set[Place]:
    """Which of some words count shares and nothing else: a part of the word is as much of the balance. `pairs` are whose balances they are.

    The part is one that nobody foresees, so that no field beside the shares comes out even."""
    if not words:
        return set()
    whole = deepcopy(blocks[-1])
    head = whole["blockOverrides"]
    head |= {name: hex(int(head[name], 16) + 1) for name in ("number", "time")}
    whole["stateOverrides"] = {}
    whole["calls"] = [_view(whole, token, owner, asked.simulation) for token, owner in pairs]
    less, part = deepcopy(whole), PART_WHOLE // 4 + int.from_bytes(keccak(hexstr=asked.simulation.pin.block_hash)) % (PART_WHOLE // 4)
    for (contract, slot), value in words.items():
        less["stateOverrides"].setdefault(contract, {}).setdefault("stateDiff", {})[slot] = f"0x{value * part // PART_WHOLE:064x}"
    found = [await evm.run_blocks(asked.simulation.pin.block_hash, deepcopy([*blocks, each]), proven=False) for each in (whole, less)]
    if any(isinstance(each, NotCovered) for each in found):
        return set()
    now, then = ([_amount(view) for view in each.calls[-1]] for each in found if isinstance(each, Executed))
    return {
        place for (place, word), one, other in zip(words.items(), now, then, strict=True)
        if one and other and abs(one * part // PART_WHOLE - other) <= ROUNDING_RAW + one // word
    }  # fmt: skip


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


def _amount(view: LocalCall) -> int | None:
    return calldata.uint_at(view.data, 0) if view.ok else None


def _moved_by_as_much(write: Write, before: LocalCall, after: LocalCall) -> bool:
    """Whether a word moved by as much as the balance did, shifted or not."""
    was, now = _amount(before), _amount(after)
    if was is None or now is None or was == now:
        return False
    by, grew = write.after - write.before, now - was
    return by % grew == 0 and (times := by // grew) > 0 and times & (times - 1) == 0


def _moved_in_proportion(write: Write, before: LocalCall, after: LocalCall) -> bool:
    """Whether a word moved about as the balance did, as where it counts shares of a total that moved too."""
    was, now = _amount(before), _amount(after)
    if was is None or now is None or was == now:
        return False
    left, right = write.after * was, write.before * now
    return abs(left - right) * PARTS <= min(left, right)


def refused(fault: ChainFault) -> Untold:
    """A node's fault as a reason."""
    return Untold(f"not told: {fault.reason}")
