"""The rival's transactions: a quote as one call of its executor, step by step through the public routers.

A step spends whatever the executor then holds of a token, so that taxes and rounding do not stop the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chain.devnet.calls import arguments, encode
from chain.devnet.rival_routes import Atlas, Hop, Quote
from chain.devnet.swaps import V4_SWAP
from chain.devnet.venues import FOREVER, NATIVE, POOL_KEY

NATIVE_E = "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
"""Native ETH in the words of both interfaces."""
STEPS = "(address,address,uint256,bytes)[]"
SWAP = f"swap(address,uint256,address,uint256,address,uint256,{STEPS})"
FIRST_MEMBER, SECOND_MEMBER, FIFTH_MEMBER = 4, 36, 4 + 4 * 32
CALLER = "0x" + "00" * 19 + "01"
WHOLE_BALANCE = 1 << 255
SETTLE, SWAP_EXACT_IN_SINGLE, TAKE = 0x0B, 0x06, 0x0E
Step = tuple[str, str, int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the transaction is to do; tokens as asked, native ETH as `NATIVE_E`."""

    sold: str
    bought: str
    amount_raw: int
    least_raw: int
    recipient: str
    deadline_s: int


def swap_data(atlas: Atlas, quote: Quote, order: Order) -> str:
    """Calldata of the executor."""
    steps = list(steps_of(atlas, quote, order))
    return encode(SWAP, order.sold, order.amount_raw, order.bought, order.least_raw, order.recipient, order.deadline_s, steps)


def steps_of(atlas: Atlas, quote: Quote, order: Order) -> Iterator[Step]:
    """The calls in order, with ETH wrapped and unwrapped in between where a pool wants the other form."""
    held = NATIVE if order.sold == NATIVE_E else order.sold
    for hop in quote.hops:
        yield from change(atlas.weth, held, hop.token_in)
        yield from through(atlas.deployment.annex.rival, hop)
        held = hop.token_out
    yield from change(atlas.weth, held, NATIVE if order.bought == NATIVE_E else order.bought)


def change(weth: str, held: str, wanted: str) -> Iterator[Step]:
    if held == wanted:
        return
    if held == NATIVE:
        yield step(weth, NATIVE, 0, encode("deposit()"))
    else:
        yield step(weth, weth, FIRST_MEMBER, encode("withdraw(uint256)", 0))


def through(executor: str, hop: Hop) -> Iterator[Step]:
    """One pool, through the router of its exchange."""
    at, token = hop.venues.at, hop.token_in
    if hop.kind == "v2":
        signature = "swapExactTokensForTokensSupportingFeeOnTransferTokens(uint256,uint256,address[],address,uint256)"
        data = encode(signature, 0, 0, [token, hop.token_out], executor, FOREVER)
        yield step(at["v2_router"], token, FIRST_MEMBER, data)
    elif hop.kind == "v3":
        order = (token, hop.token_out, hop.place.fee_ppm, executor, 0, 0, 0)
        data = encode("exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))", order)
        yield step(at["swap_router_02"], token, FIFTH_MEMBER, data)
    elif hop.kind == "v4":
        if token != NATIVE:
            yield step(token, token, SECOND_MEMBER, encode("transfer(address,uint256)", at["universal_router"], 0))
        yield step(at["universal_router"], NATIVE, 0, through_v4(hop))
    elif token == NATIVE:
        yield step(hop.place.key, NATIVE, FIRST_MEMBER, encode("buy(uint256,uint256,address)", 0, 0, executor))
    else:
        yield step(hop.place.key, token, FIRST_MEMBER, encode("sell(uint256,uint256,address)", 0, 0, executor))


def through_v4(hop: Hop) -> str:
    """Settle what the router was given, swap all of it, take all that comes."""
    members = (
        arguments(("address", "uint256", "bool"), (hop.token_in, WHOLE_BALANCE, False)),
        arguments((f"({POOL_KEY},bool,uint128,uint128,bytes)",), ((hop.place.pool_key, hop.token_in == hop.place.token0, 0, 0, b""),)),
        arguments(("address", "address", "uint256"), (hop.token_out, CALLER, 0)),
    )
    actions = bytes([SETTLE, SWAP_EXACT_IN_SINGLE, TAKE])
    plan = arguments(("bytes", "bytes[]"), (actions, [bytes.fromhex(member) for member in members]))
    return encode("execute(bytes,bytes[],uint256)", V4_SWAP, [bytes.fromhex(plan)], FOREVER)


def step(target: str, spends: str, amount_at: int, data: str) -> Step:
    return target, NATIVE_E if spends == NATIVE else spends, amount_at, bytes.fromhex(data[2:])
