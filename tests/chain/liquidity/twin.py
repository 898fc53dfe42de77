"""A pool on the local chain with a crowd of traders and providers, and a real position of ours in it.

The crowd is a contract of the tests that talks to the pool itself, so that it can trade up to a price, borrow and give.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from chain.devnet.calls import Tx, arguments, decode, encode, topic
from chain.devnet.compile import Artifact, artifacts
from chain.devnet.devnet import Devnet
from chain.devnet.toolchain import require
from chain.devnet.venues import NATIVE, POOL_KEY
from chain.header import Header, header_of, header_request
from chain.liquidity.ticks import sqrt_price_at, tick_at
from chain.network import Network, load_network
from chain.pools import Pool, v4_id
from chain.rpc import RpcDoor

CONTRACTS = Path(__file__).parent / "contracts"
MOVE = "(uint8,bool,int24,int24,int256,uint160,uint256)"
PLAY = f"play({MOVE}[])"
MOVED, CLOSED = topic("Moved(uint256)"), topic("Closed(uint256,uint256,uint256,uint256)")
SWAP, CHANGE, GIVE = 0, 1, 2
MOVES_IN_ONE, TXS_IN_BLOCK = 16, 6
GAS = 28_000_000
LIQUIDITY = 10**21
WIDTH = 20
"""Ranges begin and end so many spacings from the start."""
SUPPLY = 10**27
Move = tuple[int, bool, int, int, int, int, int]


@dataclass(slots=True)
class Closed:
    """What closing really paid."""

    principal: tuple[int, int]
    all: tuple[int, int]

    @property
    def fees(self) -> tuple[int, int]:
        return self.all[0] - self.principal[0], self.all[1] - self.principal[1]


@dataclass(slots=True)
class TwinPool:
    """A pool made for a test: `us` holds one position, everybody else is the crowd."""

    chain: Devnet
    network: Network
    pool: Pool
    us: str
    crowd: str
    random: Random
    start: int
    """Tick at the opening."""
    lent: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Lower, upper, liquidity, salt of the crowd's positions."""
    bounds: tuple[int, int] = (0, 0)

    @classmethod
    def made(cls, chain: Devnet, venue: str, hub: str, fee_ppm: int, spacing: int, seed: int = 1, hooks: str = NATIVE) -> TwinPool:
        """Make a pool at a random price, two contracts with money, and the crowd's first position over the whole range.

        `hub`: native, or the symbol of an honest token."""
        random, network = Random(f"{venue} {hub} {seed}"), load_network("devnet")
        token0, token1 = sorted((NATIVE if hub == "native" else chain.deployment.token(hub).address.lower(), chain.deployment.token("FERN").address.lower()))
        start = random.randint(-3_000, 3_000)
        price = random.randint(sqrt_price_at(start), sqrt_price_at(start + 1) - 1)
        pool = Pool(venue=venue, key="", token0=token0, token1=token1, fee_ppm=fee_ppm, tick_spacing=spacing, hooks=hooks, born_block=chain.height)
        pool = _opened(chain, pool, price)
        built = artifacts(require(), folder=CONTRACTS)
        us, crowd = (_contract(chain, built, pool) for _ in range(2))
        made = cls(chain, network, pool, us, crowd, random, tick_at(price))
        edge = 887_272 // spacing * spacing
        made.play([(CHANGE, False, -edge, edge, LIQUIDITY // 10, 0, 0)])
        made.bounds = made.range()
        return made

    # --- what is done -----------------------------------------------------------------------------------------------

    def play(self, moves: Sequence[Move], by: str = "") -> list[int]:
        """Really do it, in one block; which moves the pool took."""
        chunks = [moves[at : at + MOVES_IN_ONE] for at in range(0, len(moves), MOVES_IN_ONE)]
        receipts = self.chain.send(*[Tx(sender=self.chain.deployment.cast.visitor, to=by or self.crowd, data=encode(PLAY, chunk), gas=GAS) for chunk in chunks])
        assert all(receipt["status"] == "0x1" for receipt in receipts), "the crowd's own contract failed"
        return [
            at * MOVES_IN_ONE + int(log["data"], 16)
            for at, receipt in enumerate(receipts)
            for log in receipt["logs"]
            if log["topics"][0] == MOVED
        ]

    def riot(self, blocks: int) -> int:
        """Let the crowd do whatever for some blocks; how many of its swaps went through."""
        swaps = 0
        for _ in range(blocks):
            moves = [self.move() for _ in range(MOVES_IN_ONE * TXS_IN_BLOCK)]
            took = set(self.play(moves))
            swaps += sum(move[0] == SWAP for at, move in enumerate(moves) if at in took)
            self.lent += [(move[2], move[3], move[4], move[6]) for at, move in enumerate(moves) if at in took and move[0] == CHANGE and move[4] > 0]
        return swaps

    def move(self) -> Move:
        """Anything that somebody may do."""
        roll, random = self.random.random(), self.random
        if roll < 0.8:
            return self.swap()
        if roll < 0.88 or not self.lent:
            lower, upper = self.bounds if random.random() < 0.25 else self.range()
            return (CHANGE, False, lower, upper, 10 ** random.randint(6, 21), 0, random.randint(0, 2))
        if roll < 0.96:
            lower, upper, amount, salt = self.lent.pop(random.randrange(len(self.lent)))
            return (CHANGE, False, lower, upper, -amount, 0, salt)
        return (GIVE, False, 0, 0, random.randint(0, 10**15), 0, random.randint(1, 10**15))

    def swap(self) -> Move:
        """A swap of any size and direction, exact in or out, that ends at a limit not too far away."""
        random = self.random
        zero = random.random() < 0.5
        size = random.choice([random.randint(1, 5), 10 ** random.randint(3, 18), random.randint(1, LIQUIDITY // 10), random.randint(1, LIQUIDITY)])
        off = random.choice([7, self.pool.tick_spacing, 5 * self.pool.tick_spacing, WIDTH * self.pool.tick_spacing + 300])
        limit = sqrt_price_at(self.start + (-off if zero else off) // self.pool.tick_spacing * self.pool.tick_spacing + random.choice([0, 0, 3]))
        return (SWAP, zero, 0, 0, size if random.random() < 0.6 else -size, limit, 0)

    def range(self) -> tuple[int, int]:
        """A range about the start."""
        place, spacing = self.start // self.pool.tick_spacing, self.pool.tick_spacing
        lower = place + self.random.randint(-WIDTH, WIDTH // 2)
        return lower * spacing, (lower + self.random.randint(1, WIDTH)) * spacing

    def open(self, liquidity: int, bounds: tuple[int, int] | None = None) -> None:
        """Put a position of ours in the pool."""
        assert self.play([(CHANGE, False, *(bounds or self.bounds), liquidity, 0, 0)], self.us) == [0]

    def close(self, liquidity: int, bounds: tuple[int, int] | None = None) -> Closed:
        """Take it out again, with what it earned."""
        assert self.play([(CHANGE, False, *(bounds or self.bounds), -liquidity, 0, 0)], self.us) == [0]
        (paid,) = [log["data"] for receipt in self.chain.miner.receipts() for log in receipt["logs"] if log["topics"][0] == CLOSED]
        principal0, principal1, all0, all1 = decode(("uint256",) * 4, paid)
        return Closed((principal0, principal1), (all0, all1))

    def protocol_takes(self, cut0: int, cut1: int) -> None:
        """Switch the protocol's cut on: a divisor of the fee in v3, ppm of the amount in v4."""
        deployer, at = self.chain.deployment.cast.deployer, self.chain.addresses
        if self.pool.venue == "v3":
            calls = [(self.pool.key, encode("setFeeProtocol(uint8,uint8)", cut0, cut1))]
        else:
            calls = [
                (at["v4_pool_manager"], encode("setProtocolFeeController(address)", deployer)),
                (at["v4_pool_manager"], encode(f"setProtocolFee({POOL_KEY},uint24)", _key(self.pool), cut1 << 12 | cut0)),
            ]
        receipts = self.chain.send(*[Tx(sender=deployer, to=to, data=data) for to, data in calls])
        assert all(receipt["status"] == "0x1" for receipt in receipts)

    async def header(self, door: RpcDoor, block: int | None = None) -> Header:
        """The newest block, or one before."""
        block = self.chain.height if block is None else block
        return header_of(await door.call(*header_request(block)), block)


def _opened(chain: Devnet, pool: Pool, price: int) -> Pool:
    sender, at = chain.deployment.cast.visitor, chain.addresses
    if pool.venue == "v4":
        pool = _keyed(pool, v4_id(pool))
        tx = Tx(sender=sender, to=at["v4_pool_manager"], data=encode(f"initialize({POOL_KEY},uint160)", _key(pool), price), gas=GAS)
    else:
        signature = "createAndInitializePoolIfNecessary(address,address,uint24,uint160)"
        tx = Tx(sender=sender, to=at["v3_positions"], data=encode(signature, pool.token0, pool.token1, pool.fee_ppm, price), gas=GAS)
    (receipt,) = chain.send(tx)
    assert receipt["status"] == "0x1", "the pool was there already"
    if pool.venue == "v4":
        return pool
    get = encode("getPool(address,address,uint24)", pool.token0, pool.token1, pool.fee_ppm)
    return _keyed(pool, decode(("address",), chain.node.call("eth_call", [{"to": at["v3_factory"], "data": get}, "latest"]))[0].lower())


def _contract(chain: Devnet, built: dict[str, Artifact], pool: Pool) -> str:
    """A crowd's contract at a pool, with plenty of both tokens."""
    artifact, cast = built["Crowd3" if pool.venue == "v3" else "Crowd4"], chain.deployment.cast
    values = (pool.key,) if pool.venue == "v3" else (chain.addresses["v4_pool_manager"], _key(pool))
    types = ("address",) if pool.venue == "v3" else ("address", POOL_KEY)
    (receipt,) = chain.send(Tx(sender=cast.visitor, to=None, data=artifact.bytecode + arguments(types, values), gas=GAS))
    assert receipt["status"] == "0x1"
    address = receipt["contractAddress"].lower()
    for token in (pool.token0, pool.token1):
        if token == NATIVE:
            chain.node.call("anvil_setBalance", [address, hex(SUPPLY)])
        else:
            rich(chain, token, address)
    return address


def rich(chain: Devnet, token: str, address: str) -> None:
    """Let an address hold plenty of an honest token."""
    artifact_slot = _balance_slot(chain, token, address)
    chain.node.call("anvil_setStorageAt", [token, artifact_slot, f"0x{SUPPLY:064x}"])


def _balance_slot(chain: Devnet, token: str, address: str) -> str:
    """The slot that its balance is read from."""
    call = {"to": token, "data": encode("balanceOf(address)", address)}
    (entry,) = [each for each in chain.node.call("eth_createAccessList", [call, "latest"])["accessList"] if each["address"].lower() == token]
    (slot,) = entry["storageKeys"]
    return slot


def _key(pool: Pool) -> tuple:
    return (pool.token0, pool.token1, pool.fee_ppm, pool.tick_spacing, pool.hooks)


def _keyed(pool: Pool, key: str) -> Pool:
    return Pool(
        venue=pool.venue, key=key, token0=pool.token0, token1=pool.token1, fee_ppm=pool.fee_ppm, tick_spacing=pool.tick_spacing,
        hooks=pool.hooks, born_block=pool.born_block,
    )  # fmt: skip


def sums(amounts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Add pairs of amounts."""
    first, second = zip(*amounts, strict=True)
    return sum(first), sum(second)
