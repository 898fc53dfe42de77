"""A node with somebody in between: answers of the real local chain, altered on the way."""

from collections.abc import Callable
from typing import Any

import orjson

from chain.rpc import HttpTransport, Lane, RpcDoor
from ledgers.clock import SystemClock

Alter = Callable[[str, list, Any], Any]
"""Gets method, parameters and the true answer row (with `result` or `error`); returns the row to pass on."""


def door_to(url: str) -> RpcDoor:
    """An honest door to a node."""
    return RpcDoor([Lane("devnet", url)], clock=SystemClock())


class Between:
    """A transport that forwards to the node and alters what comes back."""

    def __init__(self, alter: Alter) -> None:
        self._alter, self._http = alter, HttpTransport()

    async def post(self, lane: Lane, body: bytes, deadline_ms: int) -> bytes:
        asked, rows = orjson.loads(body), orjson.loads(await self._http.post(lane, body, deadline_ms))
        if isinstance(asked, dict):
            return orjson.dumps(self._alter(asked["method"], asked["params"], rows))
        by_id = {row["id"]: row for row in rows}
        return orjson.dumps([self._alter(one["method"], one["params"], by_id[one["id"]]) for one in asked])

    async def close(self) -> None:
        await self._http.close()


def door_through(url: str, alter: Alter) -> RpcDoor:
    """A door whose answers pass through `alter`, one by one."""
    return RpcDoor([Lane("between", url)], clock=SystemClock(), transport=Between(alter))


def refusal(row: Any, code: int, message: str) -> Any:
    """The same row as a JSON-RPC error."""
    return {"jsonrpc": "2.0", "id": row["id"], "error": {"code": code, "message": message}}
