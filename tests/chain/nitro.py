"""A node that answers as Nitro does: a real HTTP server in front of the local chain's node, which records what it is asked.

Everything is really executed by the local chain; what goes in and what comes out is put into Nitro's shapes. The L1 part of
gas is really paid: behind every simulated transaction that owes it, the sender pays the poster in a transfer of 21,000 gas,
which is taken out of the answer again, so that balances and gas agree.
Source: Nitro's and its geth fork's source and documentation; eth_simulateV1's specification.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import ClientSession, web

from tests.chain import nitro_shapes as shapes
from tests.chain.nitro_shapes import ARB_GAS_INFO, NODE_INTERFACE, POSTER, Refusal, number

BATCH_MAX = 25
GAS_POOL = 50_000_000
LOGS_MAX = 10_000
BLOCKS_MAX = 256
STEP_S = 12
MISSING = frozenset({"eth_createAccessList", "debug_traceCall", "txpool_status"})


class NitroNode:
    """Start with `nitro_node`; its limits may be changed while it runs."""

    def __init__(self, truth: str, session: ClientSession) -> None:
        self._truth, self._session = truth, session
        self.url = ""
        self.batch_max, self.gas_pool, self.logs_max = BATCH_MAX, GAS_POOL, LOGS_MAX
        self.oldest_block = 0
        """What is older is pruned."""
        self.put_off: deque[int | None] = deque()
        """One entry for each of the next requests that are answered with 429: what Retry-After says, or None."""
        self.recorded: list[tuple[str, list[Any], Any]] = []
        """Method, parameters and the answer's result or error."""
        self.turned_away = 0
        """Requests of clients without a usual User-Agent, too large batches and those put off."""
        self._blocks: dict[int, dict[str, int]] = {}

    def asked(self, method: str) -> list[list[Any]]:
        """The parameters of every question of a kind."""
        return [params for name, params, _ in self.recorded if name == method]

    # --- HTTP and JSON-RPC ------------------------------------------------------------------------------------------

    async def handle(self, request: web.Request) -> web.Response:
        if "Mozilla" not in request.headers.get("User-Agent", ""):
            self.turned_away += 1
            return web.Response(status=403, text="<html>error code: 1010</html>")
        if self.put_off:
            self.turned_away += 1
            after = self.put_off.popleft()
            return web.Response(status=429, headers={} if after is None else {"Retry-After": str(after)})
        asked = orjson.loads(await request.read())
        if isinstance(asked, list) and len(asked) > self.batch_max:
            self.turned_away += 1
            told: Any = [{"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "batch too large"}}]
        elif isinstance(asked, list):
            told = [await self._row(each) for each in asked]
        else:
            told = await self._row(asked)
        return web.Response(body=orjson.dumps(told), content_type="application/json")

    async def _row(self, asked: dict[str, Any]) -> dict[str, Any]:
        method, params = asked["method"], asked.get("params", [])
        row: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        try:
            row["result"] = await self._answer(method, params)
        except Refusal as refusal:
            row["error"] = refusal.error
        self.recorded.append((method, params, row.get("result", row.get("error"))))
        return row

    async def true(self, method: str, params: list[Any]) -> Any:
        """What the local chain's node answers. Raises: Refusal."""
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with self._session.post(self._truth, data=orjson.dumps(asked), headers={"Content-Type": "application/json"}) as answer:
            row = orjson.loads(await answer.read())
        if "error" in row:
            raise Refusal(row["error"]["code"], row["error"]["message"], row["error"].get("data"))
        return row["result"]

    async def _answer(self, method: str, params: list[Any]) -> Any:
        if method in MISSING:
            raise Refusal(-32601, f"the method {method} does not exist/is not available")
        match method:
            case "web3_clientVersion":
                return shapes.CLIENT
            case "eth_simulateV1":
                return await self._simulate(params[0], params[1] if len(params) > 1 else "latest")
            case "eth_call":
                return await self._call(params)
            case "eth_getLogs":
                return await self._logs(params[0])
            case "eth_getBlockByNumber" | "eth_getBlockByHash":
                block = await self.true(method, params)
                return block and shapes.block(block, whole=params[1])
            case "eth_getTransactionReceipt":
                receipt = await self.true(method, params)
                return receipt and shapes.receipt(receipt, await self._input(receipt["transactionHash"]))
            case "eth_getBlockReceipts":
                receipts = await self.true(method, params)
                return [shapes.receipt(each, await self._input(each["transactionHash"])) for each in receipts]
            case "eth_getBalance":
                return hex(number(await self.true(method, params)) - await self._l1_paid(params[0].lower(), params[1]))
        return await self.true(method, params)

    async def _input(self, tx_hash: str) -> str:
        return (await self.true("eth_getTransactionByHash", [tx_hash]))["input"]

    async def _l1_paid(self, sender: str, pin: Any) -> int:
        """What an address has paid for L1 up to a block: the local chain never charged it."""
        last = number((await self._block(pin))["number"])
        for at in range(last + 1):
            if at not in self._blocks or at == last:
                block = await self.true("eth_getBlockByNumber", [hex(at), True])
                paid: dict[str, int] = {}
                for tx in block["transactions"]:
                    paid[tx["from"]] = paid.get(tx["from"], 0) + shapes.l1_gas(tx["input"]) * number(block["baseFeePerGas"])
                self._blocks[at] = paid
        return sum(self._blocks[at].get(sender, 0) for at in range(last + 1))

    async def _block(self, pin: Any) -> dict[str, Any]:
        if isinstance(pin, dict):
            pin = pin.get("blockHash") or pin["blockNumber"]
        by_hash = len(pin) == 66
        block = await self.true("eth_getBlockByHash" if by_hash else "eth_getBlockByNumber", [pin, False])
        if block is None or number(block["number"]) < self.oldest_block:
            raise Refusal(-32000, "metadata is not found")
        return block

    # --- reads ------------------------------------------------------------------------------------------------------

    async def _call(self, params: list[Any]) -> Any:
        call, *rest = params
        block = await self._block(rest[0] if rest else "latest")
        to, data = (call.get("to") or "").lower(), call.get("data") or call.get("input") or "0x"
        if to == NODE_INTERFACE:
            return shapes.node_interface(data, number(block["baseFeePerGas"]))
        if to == ARB_GAS_INFO:
            return shapes.gas_info(data, number(block["baseFeePerGas"]), l1_gas=0)
        gas = min(number(call.get("gas", hex(self.gas_pool))), self.gas_pool)
        return await self.true("eth_call", [{**call, "gas": hex(gas)}, *rest])

    async def _logs(self, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        if "fromBlock" in wanted and number(wanted["fromBlock"]) < self.oldest_block:
            raise Refusal(-32000, "metadata is not found")
        logs = await self.true("eth_getLogs", [wanted])
        if len(logs) > self.logs_max:
            raise Refusal(-32602, f"logs matched by query exceeds limit of {self.logs_max}")
        return [shapes.shifted(log) for log in logs]

    # --- simulation -------------------------------------------------------------------------------------------------

    async def _simulate(self, payload: dict[str, Any], pin: Any) -> list[dict[str, Any]]:
        base = await self._block(pin)
        states = shapes.with_defaults(payload, base, step_s=STEP_S, blocks_max=BLOCKS_MAX)
        validation = payload.get("validation", False)
        if validation:
            await self._check_nonces(states, pin)
        owing = [shapes.owing(state, base, validation) for state in states]
        sent = [shapes.for_the_local_node(state, base, owes, validation, self.gas_pool) for state, owes in zip(states, owing, strict=True)]
        answer = await self._run(payload, sent, pin)
        if shapes.cut_to_pool(sent, answer, self.gas_pool):
            answer = await self._run(payload, sent, pin)
        return shapes.with_gaps([shapes.simulated(*each, base) for each in zip(answer, states, owing, strict=True)], base)

    async def _run(self, payload: dict[str, Any], sent: list[dict[str, Any]], pin: Any) -> list[dict[str, Any]]:
        try:
            return await self.true("eth_simulateV1", [{**payload, "blockStateCalls": sent}, pin])
        except Refusal as refusal:
            raise refusal.as_nitro() from None

    async def _check_nonces(self, states: list[dict[str, Any]], pin: Any) -> None:
        nonces: dict[str, int] = {}
        for state in states:
            for address, override in state["stateOverrides"].items():
                if "nonce" in override:
                    nonces[address.lower()] = number(override["nonce"])
            for call in state["calls"]:
                sender = call["from"].lower()
                if sender not in nonces:
                    nonces[sender] = number(await self.true("eth_getTransactionCount", [sender, pin]))
                if "nonce" in call and number(call["nonce"]) != nonces[sender]:
                    low = number(call["nonce"]) < nonces[sender]
                    raise Refusal(-38010 if low else -38011, f"nonce too {'low' if low else 'high'}: address {sender}")
                nonces[sender] += 1


@asynccontextmanager
async def nitro_node(truth: str) -> AsyncIterator[NitroNode]:
    """Serve a node in Nitro's shapes in front of `truth`."""
    session = ClientSession()
    node = NitroNode(truth, session)
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/{anything:.*}", node.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    node.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    try:
        yield node
    finally:
        await runner.cleanup()
        await session.close()
