"""The two worlds of a life: one chain for the paper wallet, one for the wallet that really trades; their history is the same but for its trades.

Every block is sealed on both, with the same transactions of owners and strangers at the same time. In the real one the
wallet's own transactions come on top. What they did to the market is taken back after each decision: prices and reserves of
pools, the balance words of pools, manager and routers in the traded tokens and in WETH, and the manager's ETH. Every other
word they wrote stays. So the market is the same in both at every order, and the wallet's own past is the only difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from eth_utils import keccak

from chain.devnet.calls import Tx, arguments, created_address, encode, word
from chain.devnet.compile import artifacts
from chain.devnet.devnet import Devnet
from chain.devnet.hooks import AFTER_SWAP, AFTER_SWAP_DELTA, PERMISSIONS
from chain.devnet.miner import Miner
from chain.devnet.node import Refused
from chain.devnet.swaps import swap
from chain.devnet.toolchain import require
from chain.devnet.venues import NATIVE, Place
from tests.onchain import rival
from tests.lives.kinds import FOLDER, POOL, WALLET, Act, LifeKind

ETH = 10**18
SEED = 7
DEPTH_WEI, DEPTH_RAW = 200 * ETH, 200_000 * ETH
BETTER_PERCENT = 104
CREATION_GAS = 12_000_000
CALL_GAS = 6_000_000
STRANGERS = tuple(f"0x57a96e{index:034x}" for index in range(1, 4))
STRANGERS_RAW = 20_000 * ETH
RICH_WEI = 1_000_000 * ETH
WETH_BOOK, V4_POOLS = 3, 6
"""Storage positions: of WETH's balances, of the manager's pools."""
V4_POOL_WORDS, PLAIN_WORDS = 4, 2**20
ROUTERS = ("v2_router", "swap_router_02", "universal_router", "v4_pool_manager")


class LeapingMiner(Miner):
    """A miner whose time may leap."""

    leap_s = 0

    def time_of(self, block: int) -> int:
        return super().time_of(block) + self.leap_s

    def mine_for(self, txs: Sequence[Tx], who: str, wei: int) -> None:
        """Seal a block of somebody's who has so much when it begins, though he is rich while they are taken in."""
        sends = [("eth_sendTransaction", [self._request(tx)]) for tx in txs]
        self.node.batch([("anvil_setBalance", [who, hex(RICH_WEI)]), *sends])
        self.node.call("anvil_setBalance", [who, hex(wei)])
        self.mine()


@dataclass(slots=True)
class Change:
    """What a transaction did to one account."""

    before: dict[str, Any]
    after: dict[str, Any]

    def words(self) -> dict[str, tuple[str, str]]:
        """Storage words before and after."""
        before, after = self.before.get("storage", {}), self.after.get("storage", {})
        return {slot: (before.get(slot, ZERO), after.get(slot, ZERO)) for slot in {*before, *after}}


ZERO = "0x" + "00" * 32
Trace = dict[str, Change]


class World:
    """One of the two chains."""

    def __init__(self) -> None:
        self.chain = Devnet.build(SEED)
        miner = LeapingMiner(self.chain.node, self.chain.miner.block_time_ms)
        miner.height, miner.nonces = self.chain.miner.height, self.chain.miner.nonces
        self.chain.miner = self.miner = miner
        self.node, self.at = self.chain.node, self.chain.deployment.at
        self.owner = self.chain.deployment.cast.visitor
        self.node.call("anvil_autoImpersonateAccount", [True])
        self.node.call("anvil_setCode", [rival.ROUTER, rival.does_all()])
        self.endow(STRANGERS, 10_000 * ETH)

    def endow(self, addresses: Iterable[str], wei: int) -> None:
        self.node.batch([("anvil_setBalance", [address, hex(wei)]) for address in addresses])

    def send(self, txs: Sequence[Tx], purse: tuple[str, int] | None = None) -> list[dict]:
        """Seal a block of these; receipts of those that got in, in order. Raises: Refused when the node takes one not at all.

        `purse` is somebody's true balance: what the first brings may pay for the next in one block, though no node would
        take the next before; so they are taken while he is rich."""
        nonces = dict(self.miner.nonces)
        try:
            if purse is None:
                self.miner.mine(txs)
            else:
                self.miner.mine_for(txs, *purse)
        except Refused:
            self.miner.nonces.clear()
            self.miner.nonces.update(nonces)
            raise
        receipts = self.miner.receipts() if txs else []
        if len(receipts) < len(txs):  # what could not be paid for must not get in later
            self.node.call("anvil_dropAllTransactions", [])
            for tx in txs:
                self.miner.nonces.pop(tx.sender, None)
        return receipts

    def must(self, txs: Sequence[Tx]) -> None:
        """Seal a block in which all must go through."""
        self.miner.mine_all(txs)

    def traces(self, receipts: Sequence[dict]) -> list[Trace]:
        """What each transaction changed."""
        how = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}
        answers = self.node.batch([("debug_traceTransaction", [receipt["transactionHash"], how]) for receipt in receipts])
        return [_trace(answer) for answer in answers]

    def mark(self) -> tuple[str, int]:
        return self.chain.snapshot(), self.miner.leap_s

    def back(self, mark: tuple[str, int]) -> None:
        self.chain.revert(mark[0])
        self.miner.leap_s = mark[1]

    def eth_of(self, who: str) -> int:
        return int(self.node.call("eth_getBalance", [who, "latest"]), 16)

    def tokens_of(self, token: str, who: str) -> int | None:
        """A balance; none where the token does not tell."""
        try:
            told = self.node.call("eth_call", [{"to": token, "data": encode("balanceOf(address)", who), "gas": "0x2dc6c0"}, "latest"])
        except Refused:
            return None
        return int(told[:66], 16) if len(told) >= 66 else None


def _trace(answer: dict) -> Trace:
    before, after = ({address.lower(): account for address, account in answer[side].items()} for side in ("pre", "post"))
    return {address: Change(before.get(address, {}), after.get(address, {})) for address in {*before, *after}}


@dataclass(frozen=True, slots=True)
class Stall:
    """A token with its pool."""

    token: str
    place: Place
    books: tuple[int, ...]
    hook: str = ""
    balance_bits: int = 256


@dataclass(slots=True)
class Twins:
    """Both worlds."""

    paper: World
    real: World
    stalls: list[Stall] = field(default_factory=list)
    parted: bool = False
    """Whether the market of the real world is another, since the wallet's own impact stays there."""
    felt: int = 0
    """Blocks in which strangers met another market because of what the wallet had written; it is evened out."""
    _compiled: dict = field(default_factory=dict)
    _at: dict[str, str] = field(default_factory=dict)
    _marks: list = field(default_factory=list)

    @classmethod
    def build(cls) -> Twins:
        """Two chains with what every life needs. Raises: ChainFault."""
        twins = cls(World(), World())
        twins._compiled = artifacts(require(), folder=FOLDER)
        twins._at = {"manager": twins.paper.at["v4_pool_manager"]}
        twins._at |= {name: twins._created(artifact) for name, artifact in (("registry", "Registry"), ("behind", "Behind"))}
        twins.stalls = [twins.open(LifeKind("companion", "Plain"), "v2")]
        twins.remember()
        return twins

    @property
    def worlds(self) -> tuple[World, World]:
        return self.paper, self.real

    @property
    def even(self) -> bool:
        """Whether both worlds are at the same block and time."""
        return len({(world.miner.height, world.miner.leap_s) for world in self.worlds}) == 1

    def close(self) -> None:
        for world in self.worlds:
            world.chain.close()

    def remember(self) -> None:
        self._marks = [world.mark() for world in self.worlds]

    def reset(self) -> None:
        """Begin a life: everything is as it was when the worlds were built."""
        for world, mark in zip(self.worlds, self._marks, strict=True):
            world.back(mark)
        self.remember()
        self.stalls, self.felt, self.parted = self.stalls[:1], 0, False

    # --- what is the same in both ---------------------------------------------------------------------------------

    def _created(self, artifact: str, *values: Any) -> str:
        built = self._compiled[artifact]
        data = built.bytecode + arguments(built.constructor_types, values)
        address = created_address(self.paper.owner, self.paper.miner.nonce(self.paper.owner))
        for world in self.worlds:
            world.must([Tx(sender=world.owner, to=None, data=data, gas=CREATION_GAS)])
        return address

    def open(self, kind: LifeKind, venue: str) -> Stall:
        """Create a kind's token with its pool; of a hook, a plain token with a pool under it."""
        hook = self._hook(kind) if venue == "hook" else ""
        values = tuple(self._at.get(value, value) if isinstance(value, str) else value for value in kind.args)
        token = self._created("Plain") if hook else self._created(kind.artifact, *values)
        venues, owner = self.paper.chain.deployment.venues, self.paper.owner
        place = venues.hooked(token, NATIVE, 0, 200, hook) if hook else venues.place(venue, token, NATIVE if venue == "v4" else self.paper.at["weth"], 3_000)
        gifts = [Tx(sender=owner, to=token, data=encode("transfer(address,uint256)", who, STRANGERS_RAW)) for who in STRANGERS]
        txs = [*self._opening(token, place, DEPTH_RAW), *gifts, *self._kept(kind, token, self._pool(place))]
        for world in self.worlds:
            world.must(txs)
            if kind.ether_wei:
                world.endow([hook or token], kind.ether_wei)
            if kind.primed:
                world.must([Tx(sender=owner, to=hook or token, data=encode("prime()"), gas=CALL_GAS)])
        return Stall(token, place, kind.books, hook, kind.balance_bits)

    def open_better(self, stall: Stall, venue: str) -> Stall:
        """Give a token a second pool, where it is a little cheaper."""
        place = self.paper.chain.deployment.venues.place(venue, stall.token, self.paper.at["weth"], 3_000)
        txs = self._opening(stall.token, place, DEPTH_RAW * BETTER_PERCENT // 100)
        for world in self.worlds:
            world.must(txs)
        return replace(stall, place=place)

    def _pool(self, place: Place) -> str:
        return self.paper.at["v4_pool_manager"] if place.venue == "v4" else place.key

    def _opening(self, token: str, place: Place, raw: int) -> list[Tx]:
        """Open a pool with `raw` of the token, and tell the token of it."""
        owner, venues, weth = self.paper.owner, self.paper.chain.deployment.venues, self.paper.at["weth"]
        amounts = {token: raw, place.other(token): DEPTH_WEI}
        wrapped = [Tx(sender=owner, to=weth, data=encode("deposit()"), value_wei=DEPTH_WEI), *venues.approvals(owner, weth, "v3")] if place.venue == "v3" else []
        opened = venues.open(owner, place, amounts[place.token0], amounts[place.token1])
        return [*wrapped, *venues.approvals(owner, token, place.venue), *opened, Tx(sender=owner, to=token, data=encode("markPool(address)", self._pool(place)))]

    def _kept(self, kind: LifeKind, token: str, pool: str) -> list[Tx]:
        """Give a token what it remembers by."""
        if not kind.keeps:
            return []
        coin, owner = self.paper.at["weth"] if kind.keeps == "purse" else pool, self.paper.owner
        wrapped = [Tx(sender=owner, to=coin, data=encode("deposit()"), value_wei=ETH)] if kind.keeps == "purse" else []
        given = [encode("keep(address)", coin), encode("transfer(address,uint256)", token, ETH)]
        return [*wrapped, *(Tx(sender=owner, to=to, data=data) for to, data in zip((token, coin), given, strict=True))]

    def _hook(self, kind: LifeKind) -> str:
        values = tuple(self._at.get(value, value) if isinstance(value, str) else value for value in kind.args)
        artifact = self._compiled[kind.artifact]
        creation = artifact.bytecode + arguments(artifact.constructor_types, values)
        named = int.from_bytes(keccak(text=f"hook of lives {kind.name}")[:20], "big")
        address = f"0x{named & ~PERMISSIONS | AFTER_SWAP | AFTER_SWAP_DELTA:040x}"
        for world in self.worlds:
            code = world.node.call("eth_call", [{"data": creation, "gas": hex(CREATION_GAS)}, "latest"])
            world.node.call("anvil_setCode", [address, code])
        return address

    def mine(self) -> None:
        for world in self.worlds:
            world.send(())

    def leap(self, seconds: int, blocks: int) -> None:
        """Let time pass."""
        for world in self.worlds:
            world.miner.leap_s += seconds
            for _ in range(blocks):
                world.send(())

    def act(self, stalls: Sequence[Stall], act: Act, wallet: str) -> None:
        """Let the owner of some tokens act on all of them."""
        self.both([tx for stall in stalls for tx in self._acts(stall, act, wallet)])

    def _acts(self, stall: Stall, act: Act, wallet: str) -> Iterator[Tx]:
        owner, weth, names = self.paper.owner, self.paper.at["weth"], {WALLET: wallet, POOL: self._pool(stall.place)}
        values = tuple(names.get(value, value) if isinstance(value, str) else value for value in act.values)
        yield Tx(sender=owner, to=stall.hook or stall.token, data=encode(act.signature, *values), gas=CALL_GAS)
        if act.ether_wei:
            yield Tx(sender=owner, to=weth, data=encode("deposit()"), value_wei=act.ether_wei)
            yield Tx(sender=owner, to=weth, data=encode("transfer(address,uint256)", stall.place.key, act.ether_wei))
        if act.sync and stall.place.venue == "v2":
            yield Tx(sender=owner, to=stall.place.key, data=encode("sync()"))

    def trade(self, stall: Stall, stranger: str, wei: int, raw: int) -> None:
        """Let a stranger buy for so much, or sell so much."""
        chain, place, token = self.paper.chain, stall.place, stall.token
        if wei:
            self.both([replace(swap(chain.deployment.venues, stranger, place, place.other(token), wei, ether=True), gas=CALL_GAS)])
        else:
            spenders = (self.paper.at["permit2"], self.paper.at["universal_router"]) if place.venue == "v4" else (self.paper.at["swap_router_02"],)
            grants = chain.deployment.venues.approve(stranger, token, spenders)
            self.both([*grants, replace(swap(chain.deployment.venues, stranger, place, token, raw, ether=True), gas=CALL_GAS)])

    def both(self, txs: Sequence[Tx]) -> None:
        """Seal a block of these on both; where the market then differs, the real one is made what the other is."""
        done = [world.send(txs) for world in self.worlds]
        seen = [self._market_after(world.traces(receipts)) for world, receipts in zip(self.worlds, done, strict=True)]
        if seen[0] == seen[1] or self.parted:
            return
        self.felt += 1
        places = sorted({*seen[0], *seen[1]})
        told = self.paper.node.batch([_read(place) for place in places])
        self._make(dict(zip(places, told, strict=True)))

    # --- the market -------------------------------------------------------------------------------------------------

    def _pools(self) -> set[str]:
        return {stall.place.key for stall in self.stalls if stall.place.venue != "v4"}

    def _holders(self) -> list[str]:
        return [*self._pools(), rival.ROUTER, *(self.paper.at[name] for name in ROUTERS)]

    def _words(self) -> dict[str, set[str]]:
        """Words of the manager that are a pool's, and balance words of pools, manager and routers, by contract."""
        holders = self._holders()
        manager, weth = self.paper.at["v4_pool_manager"].lower(), self.paper.at["weth"].lower()
        books = {weth: (WETH_BOOK,)} | {stall.token: stall.books for stall in self.stalls}
        words = {token: {_entry(holder, position) for holder in holders for position in books[token]} for token in books}
        keys = [stall.place.key for stall in self.stalls if stall.place.venue == "v4"]
        first = [int.from_bytes(keccak(bytes.fromhex(key[2:]) + V4_POOLS.to_bytes(32, "big"))) for key in keys]
        return words | {manager: {f"0x{place + offset:064x}" for place in first for offset in range(V4_POOL_WORDS)}}

    def _market(self, trace: Trace) -> dict[tuple[str, str], tuple[str, str]]:
        """Market words of a trace before and after; the word named `` is the account's ETH.

        Of a pool these are its plain words: what is kept under a hash there, liquidity and positions, somebody owns."""
        pools, words, found = self._pools(), self._words(), {}
        rich = {self.paper.at[name].lower() for name in ("v4_pool_manager", "weth")}
        for address, change in trace.items():
            for slot, pair in change.words().items():
                if address in pools and int(slot, 16) < PLAIN_WORDS or slot in words.get(address, ()):
                    found[address, slot] = pair
            if address in rich and "balance" in change.after:
                found[address, ""] = change.before.get("balance", "0x0"), change.after["balance"]
        return found

    def _market_after(self, traces: Sequence[Trace]) -> dict[tuple[str, str], str]:
        return {place: after for trace in traces for place, (_, after) in self._market(trace).items()}

    def undo_market(self, traces: Sequence[Trace]) -> None:
        """Take back what the real wallet did to the market."""
        before: dict[tuple[str, str], str] = {}
        for trace in traces:
            for place, (was, _) in self._market(trace).items():
                before.setdefault(place, was)
        self._make(before | self._taken_over(before))

    def _taken_over(self, before: dict[tuple[str, str], str]) -> dict[tuple[str, str], str]:
        """What balances held that a trade moved to a book where they had nothing: there they hold what the book before it has."""
        moved = {
            (stall.token, _entry(holder, newer)): (stall.token, _entry(holder, older))
            for stall in self.stalls for older, newer in pairwise(stall.books) for holder in self._holders()
            if before.get((stall.token, _entry(holder, newer))) == ZERO
        }  # fmt: skip
        return dict(zip(moved, self.real.node.batch([_read(place) for place in moved.values()]), strict=True)) if moved else {}

    def _make(self, wanted: dict[tuple[str, str], str]) -> None:
        """Set market words in the real world; of a balance word only what of it is the balance."""
        bits = {stall.token: stall.balance_bits for stall in self.stalls if stall.balance_bits < 256}
        packed = [place for place in wanted if place[0] in bits and place[1]]
        values = dict(wanted)
        for place, now in zip(packed, self.real.node.batch([_read(place) for place in packed]) if packed else (), strict=True):
            mask = (1 << bits[place[0]]) - 1
            values[place] = f"0x{int(now, 16) & ~mask | int(wanted[place], 16) & mask:064x}"
        self.real.node.batch([_set(place, value) for place, value in values.items()])


def _entry(holder: str, position: int) -> str:
    """The slot of a mapping's entry."""
    return "0x" + keccak(word(holder) + position.to_bytes(32, "big")).hex()


def _read(place: tuple[str, str]) -> tuple[str, list]:
    address, slot = place
    return ("eth_getStorageAt", [address, slot, "latest"]) if slot else ("eth_getBalance", [address, "latest"])


def _set(place: tuple[str, str], value: str) -> tuple[str, list]:
    address, slot = place
    return ("anvil_setStorageAt", [address, slot, value]) if slot else ("anvil_setBalance", [address, value])
