"""Venues: what a pool is on each Uniswap version, and the transactions that make one and give it liquidity.

Everything is in base units, and every price is token1 per token0 as the square root times 2⁹⁶. Source: Uniswap v2, v3
and v4 contracts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt

from eth_utils import keccak

from chain.devnet.calls import Tx, arguments, create2_address, encode, word

NATIVE = "0x" + "00" * 20
FOREVER = 2**48 - 1
MAX = 2**256 - 1
MAX_ALLOWANCE = 2**160 - 1
MAX_TICK = 887_272
TICK_SPACING = {100: 1, 500: 10, 3_000: 60, 10_000: 200}
POOL_GAS = 8_000_000
MINT_GAS = 4_000_000
DYNAMIC_FEE = 0x800000
"""What stands for the fee in the identity of a v4 pool whose hook sets it."""
MINT_POSITION, SETTLE_PAIR, SWEEP = 0x02, 0x0D, 0x14
POOL_KEY = "(address,address,uint24,int24,address)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One pool of the local chain."""

    venue: str
    key: str
    """Address of the pool; of a v4 pool its 32-byte id."""
    token0: str
    token1: str
    fee_ppm: int
    """What its identity says; `DYNAMIC_FEE` where a hook sets it."""
    spacing: int = 0
    """Of a v4 pool whose spacing is not the usual one of its fee; else 0."""
    hooks: str = NATIVE

    @property
    def tick_spacing(self) -> int:
        return self.spacing or TICK_SPACING[self.fee_ppm]

    @property
    def full_range(self) -> tuple[int, int]:
        edge = MAX_TICK // self.tick_spacing * self.tick_spacing
        return -edge, edge

    @property
    def pool_key(self) -> tuple:
        """The v4 identity of the pool."""
        return (self.token0, self.token1, self.fee_ppm, self.tick_spacing, self.hooks)

    def other(self, token: str) -> str:
        return self.token1 if token == self.token0 else self.token0


@dataclass(frozen=True, slots=True)
class Venues:
    """The contracts of the three versions, and the code hashes that pool addresses are made of."""

    at: Mapping[str, str]
    pair_hash: str
    pool_hash: str

    def place(self, venue: str, a: str, b: str, fee_ppm: int) -> Place:
        """Name the pool of two tokens, made or not."""
        token0, token1 = sorted((a, b))
        return Place(venue=venue, key=self._key(venue, token0, token1, fee_ppm), token0=token0, token1=token1, fee_ppm=fee_ppm)

    def _key(self, venue: str, token0: str, token1: str, fee_ppm: int) -> str:
        if venue == "v2":
            return create2_address(self.at["v2_factory"], keccak(bytes.fromhex(token0[2:] + token1[2:])), self.pair_hash)
        if venue == "v3":
            return create2_address(self.at["v3_factory"], keccak(word(token0) + word(token1) + fee_ppm.to_bytes(32, "big")), self.pool_hash)
        return pool_id((token0, token1, fee_ppm, TICK_SPACING[fee_ppm], NATIVE))

    def hooked(self, a: str, b: str, fee_ppm: int, spacing: int, hooks: str = NATIVE) -> Place:
        """Name the v4 pool of two tokens with this spacing and this hook."""
        token0, token1 = sorted((a, b))
        key = pool_id((token0, token1, fee_ppm, spacing, hooks))
        return Place(venue="v4", key=key, token0=token0, token1=token1, fee_ppm=fee_ppm, spacing=spacing, hooks=hooks)

    def spenders(self, venue: str) -> tuple[str, ...]:
        """Who must be approved to add liquidity there; for v4 the last one within Permit2."""
        return {"v2": (self.at["v2_router"],), "v3": (self.at["v3_positions"],), "v4": (self.at["permit2"], self.at["v4_positions"])}[venue]

    def approvals(self, owner: str, token: str, venue: str) -> list[Tx]:
        """Approve a venue's liquidity contract without bound."""
        return self.approve(owner, token, self.spenders(venue))

    def approve(self, owner: str, token: str, spenders: tuple[str, ...]) -> list[Tx]:
        """Approve one spender, or Permit2 and a spender within it."""
        if token == NATIVE:
            return []
        first = Tx(sender=owner, to=token, data=encode("approve(address,uint256)", spenders[0], MAX))
        if len(spenders) == 1:
            return [first]
        inner = encode("approve(address,address,uint160,uint48)", token, spenders[1], MAX_ALLOWANCE, FOREVER)
        return [first, Tx(sender=owner, to=spenders[0], data=inner)]

    def open(self, owner: str, place: Place, raw0: int, raw1: int) -> list[Tx]:
        """Make the pool at the price `raw1 / raw0` and give it both amounts over the full range."""
        if place.venue == "v2":
            return [self.add_v2(owner, place, raw0, raw1)]
        start = isqrt((raw1 << 192) // raw0)
        if place.venue == "v3":
            signature = "createAndInitializePoolIfNecessary(address,address,uint24,uint160)"
            made = Tx(
                sender=owner,
                to=self.at["v3_positions"],
                data=encode(signature, place.token0, place.token1, place.fee_ppm, start),
                gas=POOL_GAS,
            )
            return [made, self.add_v3(owner, place, place.full_range, raw0, raw1)]
        made = Tx(
            sender=owner, to=self.at["v4_pool_manager"], data=encode(f"initialize({POOL_KEY},uint160)", place.pool_key, start), gas=POOL_GAS
        )
        return [made, self.add_v4(owner, place, place.full_range, raw0, raw1)]

    def add_v2(self, owner: str, place: Place, raw0: int, raw1: int) -> Tx:
        """Add to a pair, with ETH where one side is WETH."""
        amounts = {place.token0: raw0, place.token1: raw1}
        weth = self.at["weth"]
        if weth in amounts:
            token = place.other(weth)
            data = encode("addLiquidityETH(address,uint256,uint256,uint256,address,uint256)", token, amounts[token], 0, 0, owner, FOREVER)
            return Tx(sender=owner, to=self.at["v2_router"], data=data, value_wei=amounts[weth], gas=MINT_GAS)
        signature = "addLiquidity(address,address,uint256,uint256,uint256,uint256,address,uint256)"
        return Tx(
            sender=owner,
            to=self.at["v2_router"],
            data=encode(signature, place.token0, place.token1, raw0, raw1, 0, 0, owner, FOREVER),
            gas=MINT_GAS,
        )

    def add_v3(self, owner: str, place: Place, ticks: tuple[int, int], raw0: int, raw1: int) -> Tx:
        """Mint a v3 position."""
        signature = "mint((address,address,uint24,int24,int24,uint256,uint256,uint256,uint256,address,uint256))"
        position = (place.token0, place.token1, place.fee_ppm, *ticks, raw0, raw1, 0, 0, owner, FOREVER)
        return Tx(sender=owner, to=self.at["v3_positions"], data=encode(signature, position), gas=MINT_GAS)

    def add_v4(self, owner: str, place: Place, ticks: tuple[int, int], raw0: int, raw1: int) -> Tx:
        """Mint a v4 position over the full range, of native ETH or tokens."""
        liquidity = isqrt(raw0 * raw1)
        most = (raw0 + raw0 // 50 + 1, raw1 + raw1 // 50 + 1)
        mint_types = (POOL_KEY, "int24", "int24", "uint256", "uint128", "uint128", "address", "bytes")
        steps = [
            arguments(mint_types, (place.pool_key, *ticks, liquidity, *most, owner, b"")),
            arguments(("address", "address"), (place.token0, place.token1)),
        ]
        actions = [MINT_POSITION, SETTLE_PAIR]
        if place.token0 == NATIVE:
            actions.append(SWEEP)
            steps.append(arguments(("address", "address"), (NATIVE, owner)))
        plan = arguments(("bytes", "bytes[]"), (bytes(actions), [bytes.fromhex(step) for step in steps]))
        data = encode("modifyLiquidities(bytes,uint256)", bytes.fromhex(plan), FOREVER)
        return Tx(sender=owner, to=self.at["v4_positions"], data=data, value_wei=most[0] if place.token0 == NATIVE else 0, gas=MINT_GAS)


def pool_id(identity: tuple) -> str:
    """Id of a v4 pool by its identity."""
    return "0x" + keccak(bytes.fromhex(arguments((POOL_KEY,), (identity,)))).hex()
