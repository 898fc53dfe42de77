"""Calls of a router in the shape of UniversalRouter 2.1.1, for tests: every swap carries the least price of each hop."""

from __future__ import annotations

from chain.devnet.calls import Tx, arguments, encode
from chain.devnet.venues import FOREVER, POOL_KEY, Place
from tests.devnet.guest import GAS, Guest

USER, ROUTER = "0x" + "00" * 19 + "01", "0x" + "00" * 19 + "02"
V3_IN, V2_IN, WRAP, UNWRAP, V4 = 0x00, 0x08, 0x0B, 0x0C, 0x10
MEMBERS_V3 = ("address", "uint256", "uint256", "bytes", "bool", "uint256[]")
MEMBERS_V2 = ("address", "uint256", "uint256", "address[]", "bool", "uint256[]")
SINGLE = f"({POOL_KEY},bool,uint128,uint128,uint256,bytes)"
SEVERAL = "(address,(address,uint24,int24,address,bytes)[],uint256[],uint128,uint128)"


def execute(guest: Guest, value_wei: int, *steps: tuple[int, str]) -> Tx:
    """Commands with their inputs in hex."""
    router = guest.chain.deployment.annex.hop_price_router
    inputs = [bytes.fromhex(step) for _, step in steps]
    data = encode("execute(bytes,bytes[],uint256)", bytes(command for command, _ in steps), inputs, FOREVER)
    return Tx(sender=guest.wallet, to=router, data=data, value_wei=value_wei, gas=GAS)


def v3_in(path: bytes, amount: int, by_user: bool, prices: list[int], *, to: str = USER, least: int = 0) -> tuple[int, str]:
    return V3_IN, arguments(MEMBERS_V3, (to, amount, least, path, by_user, prices))


def v2_in(path: list[str], amount: int, by_user: bool, prices: list[int], *, to: str = USER, least: int = 0) -> tuple[int, str]:
    return V2_IN, arguments(MEMBERS_V2, (to, amount, least, path, by_user, prices))


def v4_plan(actions: bytes, *members: str) -> tuple[int, str]:
    return V4, arguments(("bytes", "bytes[]"), (actions, [bytes.fromhex(member) for member in members]))


def v4_single(place: Place, token_in: str, amount: int, *, price: int = 0, least: int = 0) -> str:
    return arguments((SINGLE,), ((place.pool_key, token_in == place.token0, amount, least, price, b""),))


def pair(kinds: tuple[str, ...], *values) -> str:
    return arguments(kinds, values)


def wrap(amount: int) -> tuple[int, str]:
    return WRAP, arguments(("address", "uint256"), (ROUTER, amount))


def unwrap() -> tuple[int, str]:
    return UNWRAP, arguments(("address", "uint256"), (USER, 0))


def packed(*path: str | int) -> bytes:
    """A v3 path: token, fee, token, …"""
    return b"".join(part.to_bytes(3, "big") if isinstance(part, int) else bytes.fromhex(part[2:]) for part in path)
