"""Lines ask a local node quickly, and leave every other shape of answer to the general client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from chain.line import LineBroken, Lines, LineUnusual
from chain.rpc import HttpTransport, Lane
from ledgers.errors import ChainFault

Serve = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
DEADLINE_MS = 5_000


def usual(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Served:
    """A node on loopback that answers each question by a function."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self.connections = self.questions = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
                self.questions += 1
                await self._serve(body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def node(serve: Serve) -> AsyncIterator[tuple[Served, str]]:
    served = Served(serve)
    server = await asyncio.start_server(served.accept, "127.0.0.1", 0)
    try:
        yield served, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def lines_to(url: str, lines_max: int = 4) -> Lines:
    return Lines(url, {}, lines_max=lines_max, body_bytes_max=1_000)


def saying(*pieces: bytes, hang_up: bool = False) -> Serve:
    async def serve(_: bytes, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if hang_up:
            writer.close()

    return serve


async def echo(body: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(usual(body))


# --- what lines read ------------------------------------------------------------------------------------------------


async def test_one_line_carries_one_question_after_another():
    async with node(echo) as (served, url):
        lines = lines_to(url)
        answers = [(await lines.post(f"q{number}".encode())).body for number in range(5)]
        assert (answers, served.connections) == ([b"q0", b"q1", b"q2", b"q3", b"q4"], 1)
        lines.close()


async def test_questions_at_once_keep_apart_on_at_most_so_many_lines():
    async with node(echo) as (served, url):
        lines = lines_to(url, lines_max=3)
        answers = await asyncio.gather(*(lines.post(b"%d" % number) for number in range(20)))
        assert [answer.body for answer in answers] == [b"%d" % number for number in range(20)]
        assert served.connections <= 3
        lines.close()


@pytest.mark.parametrize("cut", [1, 9, 40, 70, 80])
async def test_an_answer_in_pieces_is_put_together(cut):
    whole = usual(b'{"id":1}')
    async with node(saying(whole[:cut], whole[cut:])) as (_, url):
        assert (await lines_to(url).post(b"q")).body == b'{"id":1}'


async def test_a_status_other_than_200_is_an_answer_by_itself():
    async with node(saying(usual(b"busy", "429 Too Many Requests"))) as (_, url):
        answer = await lines_to(url).post(b"q")
        assert (answer.status, answer.body) == (429, b"")


async def test_how_long_to_wait_is_read_from_a_refusal():
    async with node(saying(b"HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n")) as (_, url):
        assert (await lines_to(url).post(b"q")).retry_after == "7"


async def test_a_kept_line_closed_meanwhile_is_replaced():
    async with node(saying(usual(b"ok"), hang_up=True)) as (served, url):
        lines = lines_to(url)
        assert [(await lines.post(b"q")).body for _ in range(3)] == [b"ok"] * 3
        assert served.connections == 3


async def test_a_line_with_more_than_the_answer_on_it_is_not_kept():
    async with node(saying(usual(b"ok") + b"HTTP/1.1 200 OK\r\n")) as (served, url):
        lines = lines_to(url)
        assert [(await lines.post(b"q")).body for _ in range(2)] == [b"ok"] * 2
        assert served.connections == 2


async def test_a_question_given_up_ends_its_line():
    answers = iter([b"", usual(b"second")])

    async def late(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(next(answers))

    async with node(late) as (served, url):
        lines = lines_to(url)
        asking = asyncio.ensure_future(lines.post(b"first"))
        while not served.questions:
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert (await lines.post(b"q")).body == b"second"
        assert served.connections == 2


# --- what they leave ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\nok",
        b"HTTP/1.1 oh\r\n\r\n",
        b"SSH-2.0-node\r\n\r\n",
    ],
)
async def test_an_unusual_answer_is_left_to_the_general_client(answer):
    async with node(saying(answer)) as (served, url):
        lines = lines_to(url)
        for _ in range(2):
            with pytest.raises(LineUnusual):
                await lines.post(b"q")
        assert served.questions == 1


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", b"HTTP/1.1 200", b"x" * 70_000])
async def test_a_node_that_hangs_up_or_never_ends_breaks_the_line(said):
    async with node(saying(said, hang_up=True)) as (_, url):
        with pytest.raises(LineBroken):
            await lines_to(url).post(b"q")


@pytest.mark.parametrize("url", ["https://node.example", "http://user:key@node.example", "http://nöde.example"])
def test_lines_reach_plain_addresses_only(url):
    assert not Lines.reach(url)


# --- through the transport ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        usual(b"[1]"),
        b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n[1]",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[1]\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[1]",
    ],
)
async def test_every_shape_of_http_answer_is_read(answer):
    async with node(saying(answer, hang_up=b"close" in answer)) as (_, url):
        transport = HttpTransport()
        assert [await transport.post(Lane("node", url), b"q", DEADLINE_MS) for _ in range(2)] == [b"[1]"] * 2
        await transport.close()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (usual(b"", "429 Slow Down"), "rate_limited"),
        (usual(b"", "503 Down"), "bad_status"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", "dead"),
        (b"", "dead"),
    ],
)
async def test_a_bad_answer_is_a_fault_that_never_shows_the_address(answer, reason):
    async with node(saying(answer, hang_up=True)) as (_, url):
        transport = HttpTransport()
        with pytest.raises(ChainFault) as fault:
            await transport.post(Lane("node", f"{url}/key/0123456789abcdef"), b"q", DEADLINE_MS)
        assert fault.value.reason == reason
        assert "0123456789abcdef" not in str(fault.value)
        await transport.close()


async def test_a_node_that_does_not_answer_is_slow():
    async with node(saying(b"HTTP/1.1 200 OK\r\nContent-Le")) as (_, url):
        transport = HttpTransport()
        with pytest.raises(ChainFault, match="did not answer within 50 ms"):
            await transport.post(Lane("node", url), b"q", 50)
        await transport.close()
