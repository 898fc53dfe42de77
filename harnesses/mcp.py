"""MCP: the messages of the Model Context Protocol that a server with tools needs, as values.

Source: modelcontextprotocol.io, specification 2025-11-25 (initialize, tools/list, tools/call) and 2026-07-28 (no
handshake: each request names its version in `_meta`, results carry `resultType`, lists carry cache hints,
`server/discover`). Both are spoken. There are no sessions: every request stands for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harnesses.shallow import read_json
from harnesses.tools import ToolSpec

HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
STATELESS_VERSIONS = ("2026-07-28",)
VERSIONS = (*STATELESS_VERSIONS, *HANDSHAKE_VERSIONS)
BATCH_VERSIONS = ("2025-03-26", "2024-11-05")
"""Revisions in which several messages may come as one; what names no revision is taken for this one, as it says
itself."""
BATCH_MAX = 64
META = "io.modelcontextprotocol/"
CACHE_MS = 60_000

PARSE, INVALID, NO_METHOD, BAD_PARAMS, BAD_VERSION = -32700, -32600, -32601, -32602, -32022

Record = dict[str, Any]


class McpRefused(Exception):
    """A message cannot be served; becomes a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Record | None = None, request_id: object = None) -> None:
        super().__init__(message)
        self.code, self.data, self.request_id = code, data, request_id

    def message(self) -> Record:
        """The error as it goes over the wire."""
        error = {"code": self.code, "message": str(self), **({"data": self.data} if self.data else {})}
        return {"jsonrpc": "2.0", "id": self.request_id, "error": error}


@dataclass(frozen=True, slots=True)
class McpRequest:
    """One request or notification."""

    method: str
    params: Record
    id: str | int | None
    """None for a notification, which is not answered."""

    @property
    def stateless(self) -> bool:
        """Whether it is of the revision without a handshake."""
        return self._version in STATELESS_VERSIONS

    @property
    def _version(self) -> object:
        meta = self.params.get("_meta")
        return meta.get(f"{META}protocolVersion") if isinstance(meta, dict) else None

    @property
    def client(self) -> str:
        """What the client says it is; empty when it does not."""
        meta = self.params.get("_meta")
        said = self.params.get("clientInfo") or (meta.get(f"{META}clientInfo") if isinstance(meta, dict) else None)
        named = [said.get(part) for part in ("name", "version")] if isinstance(said, dict) else []
        return " ".join(part for part in named if isinstance(part, str))

    def answer(self, result: Record) -> Record:
        """The answer as it goes over the wire."""
        return {
            "jsonrpc": "2.0",
            "id": self.id,
            "result": {**result, **({"resultType": "complete"} if self.stateless else {})},
        }

    def refused(self, code: int, message: str, data: Record | None = None) -> McpRefused:
        """A refusal of this request."""
        return McpRefused(code, message, data, self.id)


def read_messages(body: bytes) -> tuple[list[Any], bool]:
    """Read what one POST holds: its messages, and whether they came as a batch. Raises: McpRefused."""
    try:
        said = read_json(body, object_pairs_hook=_unique)
    except ValueError:
        raise McpRefused(PARSE, "expected one JSON object; found none that can be read") from None
    if not isinstance(said, list):
        return [said], False
    if not 0 < len(said) <= BATCH_MAX:
        raise McpRefused(INVALID, f"expected a batch of 1 to {BATCH_MAX} messages; found {len(said)}")
    return said, True


def read_request(said: object) -> McpRequest:
    """Read one message. Raises: McpRefused."""
    if not isinstance(said, dict) or said.get("jsonrpc") != "2.0" or not isinstance(said.get("method"), str):
        raise McpRefused(INVALID, "expected one JSON-RPC 2.0 request")
    request_id, params = said.get("id"), said.get("params", {})
    if type(request_id) not in (str, int, type(None)):
        raise McpRefused(INVALID, "an id is text or a whole number")
    if not isinstance(params, dict):
        raise McpRefused(BAD_PARAMS, "params are an object", request_id=request_id)
    request = McpRequest(said["method"], params, request_id)
    if request._version not in (None, *VERSIONS):
        raise request.refused(
            BAD_VERSION,
            "unsupported protocol version",
            {"supported": list(VERSIONS), "requested": str(request._version)[:40]},
        )
    return request


def initialized(request: McpRequest, name: str, instructions: str) -> Record:
    """Answer a handshake: the version that was asked for, or our newest."""
    asked = request.params.get("protocolVersion")
    version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0]
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": _named(name),
        "instructions": instructions,
    }


def discovered(name: str, instructions: str) -> Record:
    """Answer what the server can do, for clients without a handshake."""
    return {
        "supportedVersions": list(VERSIONS),
        "capabilities": {"tools": {}},
        "serverInfo": _named(name),
        "instructions": instructions,
        **_cacheable(),
        "_meta": {f"{META}serverInfo": _named(name)},
    }


def listed(request: McpRequest, specs: Sequence[ToolSpec]) -> Record:
    """Answer which tools there are."""
    tools = [{"name": spec.name, "description": spec.description, "inputSchema": spec.parameters} for spec in specs]
    return {"tools": tools, **(_cacheable() if request.stateless else {})}


def called(text: str, ok: bool) -> Record:
    """Answer a tool call."""
    return {"content": [{"type": "text", "text": text}], "isError": not ok}


def _named(name: str) -> Record:
    return {"name": name, "version": "1"}


def _cacheable() -> Record:
    return {"ttlMs": CACHE_MS, "cacheScope": "private"}


def _unique(pairs: list[tuple[str, Any]]) -> Record:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a key stands twice")
    return read
