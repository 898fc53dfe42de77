"""The rival: an aggregator of the local chain, as a real HTTP server beside the node, in the wire shapes of two real ones.

`/robinhood/api/v1/routes` and `/robinhood/api/v1/route/build` are KyberSwap's, `/swap/allowance-holder/quote` and
`/price` are 0x's version 2, whose key is `KEY`. It reads the chain itself at every question, routes better than hubs
alone allow, and on the tokens of `tricks` lies or fails as named there. Source: docs.kyberswap.com, docs.0x.org.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import orjson

from chain.devnet.node import CHAIN_ID, Line, Refused
from chain.devnet.places import Deployment
from chain.devnet.rival_answers import Failure, kyber_build, kyber_routes, zerox_quote
from chain.devnet.rival_routes import Atlas
from chain.devnet.tricks import FAILURES
from ledgers.errors import ChainFault

KEY = "devnet"
"""What 0x's header `0x-api-key` must hold here."""
KYBER_BASE = "/robinhood"
"""Where KyberSwap's interface begins; 0x's begins at the root."""
BODY_BYTES_MAX = 1_000_000
HUGE_CHUNKS, HUGE_CHUNK = 64, b" " * 262_144
SLOW_S = 60
"""How long a slow answer is held back, unless the rival is ended first."""
LINE_S_MAX = 10


@dataclass(slots=True)
class Rival:
    """A running rival. Close it, or use it as a context manager."""

    server: ThreadingHTTPServer
    ending: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def base_urls(self) -> dict[str, str]:
        """Where each of the two interfaces begins, by the name of the rival."""
        return {"kyberswap": self.url + KYBER_BASE, "0x": self.url}

    def close(self) -> None:
        """Stop answering, also those who wait."""
        self.ending.set()
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def start(deployment: Deployment, node_port: int) -> Rival:
    """Listen on a free port of loopback, in threads of this process: it ends when the process does."""
    atlas = Atlas(deployment)
    server = Server(("127.0.0.1", 0), Answering)
    server.rival, server.atlas, server.node_port = Rival(server), atlas, node_port
    server.tricks = {trick.token.address: trick.name for trick in deployment.annex.tricks}
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server.rival


class Server(ThreadingHTTPServer):
    """The server with what its handlers read."""

    daemon_threads = True
    block_on_close = False
    rival: Rival
    atlas: Atlas
    node_port: int
    tricks: Mapping[str, str]

    def handle_error(self, *_: Any) -> None:
        """Who hangs up early is no error."""


class Answering(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = 65_536
    """Head and body leave together; apart, the second waits for the first to be acknowledged."""
    server: Server

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        if parts.path == f"{KYBER_BASE}/api/v1/routes":
            self._serve(query.get("tokenIn", ""), query.get("tokenOut", ""), lambda line, trick: kyber_routes(self.server.atlas, line, trick, query))
        elif parts.path in ("/swap/allowance-holder/quote", "/swap/allowance-holder/price"):
            self._zerox(query, firm=parts.path.endswith("quote"))
        else:
            self._say(404, {"code": 404, "message": "no such path"})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_BYTES_MAX:
            self.close_connection = True
            return self._say(413, {"code": 4002, "message": "body too large"})
        body = self.rfile.read(length)
        if urlsplit(self.path).path != f"{KYBER_BASE}/api/v1/route/build":
            return self._say(404, {"code": 404, "message": "no such path"})
        try:
            asked = orjson.loads(body)
            summary = asked["routeSummary"]
            tokens = str(summary["tokenIn"]), str(summary["tokenOut"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return self._say(400, {"code": 4002, "message": "unable to bind request body"})
        self._serve(*tokens, lambda line, trick: kyber_build(self.server.atlas, line, trick, asked))

    def _zerox(self, query: dict[str, str], *, firm: bool) -> None:
        if self.headers.get("0x-api-key") != KEY:
            return self._say(401, {"message": "No API key found in request", "request_id": self._id()})
        if self.headers.get("0x-version") != "v2":
            return self._say(400, {"name": "INPUT_INVALID", "message": "The 0x-version header must be v2", "data": {"zid": self._id()}})
        if query.get("chainId") != str(CHAIN_ID):
            return self._say(400, {"name": "INPUT_INVALID", "message": "The input is invalid", "data": {"zid": self._id(), "details": [{"field": "chainId", "reason": "Invalid chainId"}]}})
        sold, bought = query.get("sellToken", ""), query.get("buyToken", "")
        self._serve(sold, bought, lambda line, trick: zerox_quote(self.server.atlas, line, trick, query, self._id(), firm=firm))

    def _serve(self, sold: str, bought: str, answer) -> None:
        """Let a trick happen, or answer from the chain as it is now."""
        trick = next((self.server.tricks[token.lower()] for token in (sold, bought) if token.lower() in self.server.tricks), "")
        if trick in FAILURES and trick != "no_route":
            return self._fail(trick)
        line = Line(self.server.node_port, LINE_S_MAX)
        try:
            self._say(200, answer(line, trick))
        except Failure as failure:
            self._say(failure.status, failure.document)
        except (ChainFault, Refused):
            self._say(503, {"code": 50301, "message": "the chain does not answer"})
        finally:
            line.hang_up()

    def _fail(self, trick: str) -> None:
        if trick == "html":
            self._send(200, b"<!DOCTYPE html><html><title>Just a moment...</title></html>", kind="text/html")
        elif trick == "redirect":
            self._send(302, b"", headers={"Location": self.path})
        elif trick == "overloaded":
            self._say(503, {"code": 50301, "message": "service is overloaded"})
        elif trick == "throttled":
            self._send(429, b'{"code":429,"message":"too many requests"}', headers={"Retry-After": "7"})
        elif trick == "garbage":
            self._send(200, b'{"code":0,"data":{"routeSummary":\xff\xfe')
        elif trick == "slow":
            self.server.rival.ending.wait(SLOW_S)
            self.close_connection = True
        else:
            self._huge()

    def _huge(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(HUGE_CHUNKS * len(HUGE_CHUNK)))
        self.end_headers()
        for _ in range(HUGE_CHUNKS):
            self.wfile.write(HUGE_CHUNK)

    def _say(self, status: int, document: dict[str, Any]) -> None:
        self._send(status, orjson.dumps(document))

    def _send(self, status: int, body: bytes, *, kind: str = "application/json", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _id(self) -> str:
        """A name for this answer; the same question has the same one."""
        return "0x" + hashlib.sha256(self.path.encode()).hexdigest()[:24]

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""
