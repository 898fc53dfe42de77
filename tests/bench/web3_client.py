"""The web3.py client: an order and a mark as they are usually written, on the same node and the same routes.

One quote call a candidate route, an allowance and an approval estimate before a sale, then `eth_simulateV1` for the best
quote with the balance slot taken as known, decoded by web3's own codec. A buy is simulated once more with its sale behind it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from web3 import AsyncHTTPProvider, AsyncWeb3, Web3
from web3.contract import AsyncContract

from chain.balance_slot import BalanceSlot
from chain.network import Network
from chain.router import Route, sell_routes
from chain.simulate import READER, READER_WEI
from tests.bench.ground import WALLET, Ground, Order

GAS_LIMIT, WORD_MAX = 6_000_000, 2**256 - 1


def _function(name: str, inputs: str, outputs: str = "", mutability: str = "nonpayable") -> dict[str, Any]:
    parts = [{"name": f"a{at}", "type": kind} for at, kind in enumerate(inputs.split())]
    answers = [{"name": "", "type": kind} for kind in outputs.split()]
    return {"type": "function", "name": name, "inputs": parts, "outputs": answers, "stateMutability": mutability}


def _struct(name: str, members: str, outputs: str, mutability: str = "nonpayable") -> dict[str, Any]:
    parts = [{"name": f"m{at}", "type": kind} for at, kind in enumerate(members.split())]
    return _function(name, "", outputs, mutability) | {"inputs": [{"name": "params", "type": "tuple", "components": parts}]}


ERC20 = [
    _function("balanceOf", "address", "uint256", "view"),
    _function("allowance", "address address", "uint256", "view"),
    _function("approve", "address uint256", "bool"),
]
MULTICALL3 = [_function("getEthBalance", "address", "uint256", "view")]
QUOTER = [
    _struct("quoteExactInputSingle", "address address uint256 uint24 uint160", "uint256 uint160 uint32 uint256"),
    _function("quoteExactInput", "bytes uint256", "uint256 uint160[] uint32[] uint256"),
]
V2_ROUTER = [_function("getAmountsOut", "uint256 address[]", "uint256[]", "view")]
SWAP_ROUTER = [
    _struct("exactInputSingle", "address address uint24 address uint256 uint256 uint160", "uint256", "payable"),
    _struct("exactInput", "bytes address uint256 uint256", "uint256", "payable"),
    _function("swapExactTokensForTokens", "uint256 uint256 address[] address", "uint256", "payable"),
    _function("unwrapWETH9", "uint256 address", "", "payable"),
    _function("multicall", "bytes[]", "bytes[]", "payable"),
]


class Web3Client:
    """Orders and quotes by web3.py."""

    def __init__(self, ground: Ground) -> None:
        self._ground, self._network = ground, ground.network
        self._w3 = AsyncWeb3(AsyncHTTPProvider(ground.chain.url))
        self._quoter = self._contract(self._network.quoter_v2, QUOTER)
        self._v2_router = self._contract(self._network.v2_router, V2_ROUTER)
        self._router = self._contract(self._network.swap_router_02, SWAP_ROUTER)
        self._multicall = self._contract(self._network.multicall3, MULTICALL3)

    def _contract(self, address: str, abi: list[dict[str, Any]]) -> AsyncContract:
        return self._w3.eth.contract(address=Web3.to_checksum_address(address), abi=abi)

    async def close(self) -> None:
        await self._w3.provider.disconnect()

    # --- an order ---------------------------------------------------------------------------------------------------

    async def play(self, order: Order, routes: Sequence[Route], slot: BalanceSlot) -> float:
        """Quote, choose, simulate, decode; seconds that it took."""
        begun = time.perf_counter()
        route = await self._best(routes)
        if order.asked.side == "sell":
            token = self._contract(route.token, ERC20)
            await token.functions.allowance(_sum(WALLET), self._router.address).call(block_identifier=self._ground.pin.block)
            await token.functions.approve(self._router.address, WORD_MAX).estimate_gas({"from": _sum(WALLET)})
            arrived = await self._sold(route, slot)
        else:
            arrived = await self._bought(route, slot)
        assert arrived > 0
        return time.perf_counter() - begun

    async def _best(self, routes: Sequence[Route]) -> Route:
        quotes = [(await self.quote(route), -at) for at, route in enumerate(routes)]
        return routes[-max(quotes)[1]]

    async def quote(self, route: Route) -> int:
        """What a route's quoter promises; 0 where no quoter knows the shape."""
        if route.quoter is None:
            return 0
        at = {"block_identifier": self._ground.pin.block}
        path = [_sum(route.hops[0].token_in), *(_sum(hop.token_out) for hop in route.hops)]
        if {hop.pool.venue for hop in route.hops} == {"v2"}:
            return (await self._v2_router.functions.getAmountsOut(route.amount, path).call(**at))[-1]
        if len(route.hops) == 1:
            asked = (*path, route.amount, route.hops[0].pool.fee_ppm, 0)
            return (await self._quoter.functions.quoteExactInputSingle(asked).call(**at))[0]
        return (await self._quoter.functions.quoteExactInput(_packed(route), route.amount).call(**at))[0]

    def _swap(self, route: Route, recipient: str) -> str:
        path = [_sum(route.hops[0].token_in), *(_sum(hop.token_out) for hop in route.hops)]
        if {hop.pool.venue for hop in route.hops} == {"v2"}:
            return self._router.encode_abi("swapExactTokensForTokens", [route.amount, 0, path, recipient])
        if len(route.hops) == 1:
            return self._router.encode_abi("exactInputSingle", [(*path, route.hops[0].pool.fee_ppm, recipient, route.amount, 0, 0)])
        return self._router.encode_abi("exactInput", [(_packed(route), recipient, route.amount, 0)])

    def _sale_calls(self, route: Route) -> list[dict[str, str]]:
        router = self._router.address
        swap = self._swap(route, "0x0000000000000000000000000000000000000002")
        unwrap = self._router.encode_abi("unwrapWETH9", [0, _sum(WALLET)])
        token = self._contract(route.token, ERC20)
        return [
            self._call(WALLET, token.address, token.encode_abi("approve", [router, WORD_MAX])),
            self._call(WALLET, router, self._router.encode_abi("multicall", [[swap, unwrap]])),
        ]

    async def _sold(self, route: Route, slot: BalanceSlot) -> int:
        read = self._call(READER, self._multicall.address, self._multicall.encode_abi("getEthBalance", [_sum(WALLET)]))
        write = slot.write(route.amount)
        diff = {write.contract: {"stateDiff": {write.slot: Web3.to_hex(write.value.to_bytes(32))}}}
        (calls,) = await self._simulated([(diff, [read, *self._sale_calls(route), read])])
        return self._number(calls[-1]) - self._number(calls[0])

    async def _bought(self, route: Route, slot: BalanceSlot) -> int:
        token = self._contract(route.token, ERC20)
        read = self._call(READER, token.address, token.encode_abi("balanceOf", [_sum(WALLET)]))
        swap = self._call(WALLET, self._router.address, self._swap(route, _sum(WALLET))) | {"value": Web3.to_hex(route.amount)}
        (calls,) = await self._simulated([({}, [read, swap, read])])
        arrived = self._number(calls[-1]) - self._number(calls[0])
        back = sell_routes(self._network, self._ground.graph, route.token, arrived, WALLET)
        sale = understood(back)[0]
        await self._simulated([({}, [read, swap, read]), ({}, self._sale_calls(sale))])
        return arrived

    def _call(self, sender: str, to: str, data: str) -> dict[str, str]:
        fee = Web3.to_hex(int(self._ground.pin.base_fee_wei))
        return {"from": sender, "to": to, "data": data, "gas": Web3.to_hex(GAS_LIMIT), "maxFeePerGas": fee, "maxPriorityFeePerGas": "0x0"}

    async def _simulated(self, blocks: Sequence[tuple[dict[str, Any], list[dict[str, str]]]]) -> list[list[dict[str, Any]]]:
        pin = self._ground.pin
        asked = [
            {
                "blockOverrides": {"number": hex(pin.block + 1 + at), "time": hex(pin.block_ts_s + 1 + at), "baseFeePerGas": hex(int(pin.base_fee_wei))},
                "stateOverrides": {WALLET: {"balance": hex(10**19)}, READER: {"balance": hex(READER_WEI)}} | overrides,
                "calls": calls,
            }
            for at, (overrides, calls) in enumerate(blocks)
        ]
        body = {"blockStateCalls": asked, "traceTransfers": True, "validation": True}
        answer = await self._w3.provider.make_request("eth_simulateV1", [body, {"blockHash": pin.block_hash}])
        done = [block["calls"] for block in answer["result"]]
        assert all(call["status"] == "0x1" for calls in done for call in calls), answer
        return done

    def _number(self, call: dict[str, Any]) -> int:
        return self._w3.codec.decode(["uint256"], bytes.fromhex(call["returnData"][2:]))[0]


def understood(routes: Sequence[Route]) -> list[Route]:
    """Routes that this client can build: not split, through SwapRouter02, with a quoter."""
    return [route for route in routes if route.quoter and not route.parts and all(not hop.pool.fork and hop.pool.venue != "v4" for hop in route.hops)]


def _sum(address: str) -> str:
    return Web3.to_checksum_address(address)


def _packed(route: Route) -> bytes:
    hops = b"".join(hop.pool.fee_ppm.to_bytes(3) + bytes.fromhex(hop.token_out[2:]) for hop in route.hops)
    return bytes.fromhex(route.hops[0].token_in[2:]) + hops
