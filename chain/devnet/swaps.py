"""Swaps: how the market's own traders read a pool and trade on it, through the public routers.

Source: SwapRouter02 (v2, v3), UniversalRouter (v4).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from chain.devnet.calls import Tx, arguments, encode
from chain.devnet.node import Request
from chain.devnet.venues import FOREVER, NATIVE, POOL_KEY, Place, Venues

Q96 = 1 << 96
SWAP_GAS = 700_000
ROUTER_ITSELF = "0x" + "00" * 19 + "02"
"""How SwapRouter02 names itself as the receiver of WETH that it then unwraps."""
V4_SWAP = b"\x10"
SWAP_EXACT_IN_SINGLE, SETTLE_ALL, TAKE_ALL = 0x06, 0x0C, 0x0F


@dataclass(frozen=True, slots=True)
class View:
    """A pool's state as a constant-product pair; of v3 and v4 the virtual reserves of the liquidity in range."""

    raw0: int
    raw1: int
    tick: int
    """0 for v2."""

    def spent_to(self, target: tuple[int, int], fee_ppm: int) -> tuple[bool, int]:
        """What an arbitrageur pays to bring token1 per token0 to the edge of the fee's band around `target`.

        Shapes: whether token0 is paid, and how much of it; 0 within the band."""
        worth, unit = target
        product, kept = self.raw0 * self.raw1, 1_000_000 - fee_ppm
        to_buy = isqrt(product * worth * kept // (unit * 1_000_000))
        if to_buy > self.raw1:
            return False, (to_buy - self.raw1) * 1_000_000 // kept
        to_sell = isqrt(product * unit * kept // (worth * 1_000_000))
        return True, max(0, to_sell - self.raw0) * 1_000_000 // kept


def reads(venues: Venues, place: Place) -> list[Request]:
    """What to ask to see a pool: always two requests."""
    if place.venue == "v4":
        view, pool = venues.at["v4_state_view"], bytes.fromhex(place.key[2:])
        return [call(view, encode("getSlot0(bytes32)", pool)), call(view, encode("getLiquidity(bytes32)", pool))]
    if place.venue == "v3":
        return [call(place.key, encode("slot0()")), call(place.key, encode("liquidity()"))]
    return [call(place.key, encode("getReserves()")), ("eth_chainId", [])]


def call(to: str, data: str) -> Request:
    return ("eth_call", [{"to": to, "data": data}, "latest"])


def view(place: Place, state: str, liquidity: str) -> View:
    """Read the two answers."""
    if place.venue == "v2":
        return View(word_at(state, 0), word_at(state, 1), 0)
    root, depth = word_at(state, 0), word_at(liquidity, 0)
    tick = word_at(state, 1)
    return View(depth * Q96 // root, depth * root // Q96, tick - (1 << 256) if tick >> 255 else tick)


def word_at(data: str, index: int) -> int:
    """A 32-byte word of an answer."""
    start = 2 + 64 * index
    return int(data[start : start + 64], 16)


def swap(venues: Venues, sender: str, place: Place, token_in: str, amount_raw: int, *, ether: bool = False) -> Tx:
    """Sell an exact amount to a pool. `ether`: pay and be paid in native ETH where the pool holds WETH."""
    if place.venue == "v4":
        return swap_v4(venues, sender, place, token_in, amount_raw)
    weth, token_out = venues.at["weth"], place.other(token_in)
    unwrap = ether and token_out == weth
    receiver = ROUTER_ITSELF if unwrap else sender
    data = swap_v3(place, token_in, amount_raw, receiver) if place.venue == "v3" else swap_v2(place, token_in, amount_raw, receiver)
    if unwrap:
        steps = [bytes.fromhex(step[2:]) for step in (data, encode("unwrapWETH9(uint256,address)", 0, sender))]
        data = encode("multicall(bytes[])", steps)
    paid = amount_raw if ether and token_in == weth else 0
    return Tx(sender=sender, to=venues.at["swap_router_02"], data=data, value_wei=paid, gas=SWAP_GAS)


def swap_v2(place: Place, token_in: str, amount_raw: int, receiver: str) -> str:
    return encode("swapExactTokensForTokens(uint256,uint256,address[],address)", amount_raw, 0, [token_in, place.other(token_in)], receiver)


def swap_v3(place: Place, token_in: str, amount_raw: int, receiver: str) -> str:
    order = (token_in, place.other(token_in), place.fee_ppm, receiver, amount_raw, 0, 0)
    return encode("exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))", order)


def swap_v4(venues: Venues, sender: str, place: Place, token_in: str, amount_raw: int) -> Tx:
    order = (place.pool_key, token_in == place.token0, amount_raw, 0, b"")
    steps = [
        arguments((f"({POOL_KEY},bool,uint128,uint128,bytes)",), (order,)),
        arguments(("address", "uint256"), (token_in, amount_raw)),
        arguments(("address", "uint256"), (place.other(token_in), 0)),
    ]
    plan = arguments(("bytes", "bytes[]"), (bytes([SWAP_EXACT_IN_SINGLE, SETTLE_ALL, TAKE_ALL]), [bytes.fromhex(step) for step in steps]))
    data = encode("execute(bytes,bytes[],uint256)", V4_SWAP, [bytes.fromhex(plan)], FOREVER)
    return Tx(sender=sender, to=venues.at["universal_router"], data=data, value_wei=amount_raw if token_in == NATIVE else 0, gas=SWAP_GAS)
