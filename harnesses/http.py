"""The HTTP door to a provider: one POST, read as it comes, ended by the deadline whatever the other side does.

    deadline      of the whole exchange, retries and waits in: a server that drips a byte a second cannot outlast it
    retries       of transport faults only: no connection, a connection lost, HTTP 408, 429 and 5xx, and their like
    Retry-After   goes before our own back-off; when it asks for more time than is left, the fault stands at once
    waits         recorded apart from latency, those for our own slot too
    redirects     not followed, and nothing is read from the machine's proxy settings: a key goes where it was meant to
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Protocol, TypeVar

import httpx
import tenacity

from harnesses.address import Address
from harnesses.endpoint import Wire
from harnesses.manifest import Retry
from harnesses.message import Reply, Usage
from harnesses.outcome import Attempt
from harnesses.pace import Pace
from harnesses.provider import LimitSpent, ModelFault, ProviderFault
from harnesses.refusals import fault_of
from harnesses.usage import BYTES_PER_TOKEN
from ledgers.clock import Clock
from ledgers.errors import RefereeError
from ledgers.plain_text import plain_text

WIRE_BYTES_MAX = 16 * 1024 * 1024
"""Nothing that is still an answer is longer."""
ERROR_BYTES_MAX = 65_536
ERROR_MS_MAX = 2_000
"""How long the words of a refusal are waited for."""
CONNECT_S_MAX = 10.0
REASON_CHARS_MAX = 160
RETRY_AFTER_MS_MAX = 24 * 3_600_000
TRANSIENT = frozenset({408, 429})
"""Refusals that are worth another attempt, beside every 5xx."""
AUTHORITY = frozenset({401, 402, 403, 404, 407})
"""Refusals that no model can bring about."""
THREAD_BYTES_MIN = 65_536
"""A longer answer is read beside the loop that all runs share."""
HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "referee/1"}

T = TypeVar("T")

WITHHELD = b"withheld: the answer repeated a key in pieces that cannot be told apart"


class TransportFault(ProviderFault):
    """A fault that another attempt may not meet."""

    def __init__(self, reason: str, message: str = "", retry_after_ms: int = 0) -> None:
        super().__init__(f"{reason}: {message}" if message else reason)
        self.reason = reason
        self.retry_after_ms = retry_after_ms


class Reading(Protocol):
    """Reads one answer as it comes."""

    @property
    def held(self) -> int:
        """How many bytes wait to be read with those that come next."""
        ...

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; True when nothing more is needed. Raises: ProviderFault."""
        ...

    def end(self) -> Reply:
        """Say what was read. Raises: TransportFault when it was cut off, ProviderFault when it makes no sense."""
        ...

    def lost(self) -> Reply:
        """Say what was read although the connection broke. Raises: ProviderFault unless its own end had come."""
        ...

    def broken(self, request: bytes) -> Usage | None:
        """What an exchange cost that ended before its answer did; none where nobody counts."""
        ...


class HttpDoor:
    """Posts to one provider."""

    def __init__(self, address: Address, retry: Retry, clock: Clock, slots: int = 4, pace: Pace | None = None) -> None:
        """Make a door; `pace` is shared by every door to the same host."""
        self.address = address
        self._pace = pace or Pace(clock)
        self._retry = retry
        self._clock = clock
        self._slots = asyncio.Semaphore(slots)
        self._client: httpx.AsyncClient | None = None

    async def ask(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        deadline_ms: int,
        wire: Wire,
        reading: Callable[[], Reading],
    ) -> Reply:
        """Post a body and read the answer. Raises: ProviderFault; LimitSpent when the deadline came first."""
        ends_ms = self._clock.monotonic_ms() + deadline_ms
        wire.request, wire.blot = self.address.blotted(body), self.address.blotted
        async for attempt in self._attempts(ends_ms, wire):
            with attempt:
                reply = await self._attempt(url, headers, body, ends_ms, wire, reading())
                return await beside(len(wire.answer), self._sealed, reply, wire, reading)
        raise AssertionError("tenacity raises the last fault")

    async def close(self) -> None:
        """Close the kept connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _sealed(self, reply: Reply, wire: Wire, reading: Callable[[], Reading]) -> Reply:
        """The reply without secrets; where one can still be put together out of the bytes that are kept, none are."""
        kept = wire.kept()
        if self.address.repeated_in(reply) and self._repeated_again(kept, reading()):
            wire.answer = bytearray(WITHHELD)
        return self.address.without_secrets(reply)

    def _repeated_again(self, kept: bytes, reading: Reading) -> bool:
        """Whether bytes hold a secret once they are read, or cannot be read to tell."""
        try:
            reading.feed(kept)
            return self.address.repeated_in(reading.end())
        except RefereeError:
            return True

    def _attempts(self, ends_ms: int, wire: Wire) -> tenacity.AsyncRetrying:
        def wait_s(state: tenacity.RetryCallState) -> float:
            fault = state.outcome.exception() if state.outcome else None
            backoff_ms = [*self._retry.backoff_ms, 0][min(state.attempt_number - 1, len(self._retry.backoff_ms))]
            return max(backoff_ms, fault.retry_after_ms if isinstance(fault, TransportFault) else 0) / 1_000

        def too_late(state: tenacity.RetryCallState) -> bool:
            return self._clock.monotonic_ms() + round(state.upcoming_sleep * 1_000) >= ends_ms

        async def sleep(seconds: float) -> None:
            await self._wait(round(seconds * 1_000), wire)

        return tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(TransportFault),
            wait=wait_s,
            stop=tenacity.stop_any(tenacity.stop_after_attempt(self._retry.attempts_max), too_late),
            sleep=sleep,
            reraise=True,
        )

    async def _wait(self, wait_ms: int, wire: Wire) -> None:
        """Wait before another attempt; recorded also when it is broken off."""
        begun_ms = self._clock.monotonic_ms()
        failed = wire.attempts.pop()
        try:
            await self._clock.sleep_until(self._clock.now_ms() + wait_ms)
        finally:
            waited_ms = self._clock.monotonic_ms() - begun_ms
            wire.wait_ms += waited_ms
            wire.attempts.append(replace(failed, wait_ms=waited_ms))

    async def _attempt(
        self, url: str, headers: Mapping[str, str], body: bytes, ends_ms: int, wire: Wire, reading: Reading
    ) -> Reply:
        begun_ms = self._clock.monotonic_ms()
        wire.answer, wire.began = bytearray(), False
        try:
            return await self._clock.within(
                max(0, ends_ms - begun_ms), self._exchange(url, headers, body, wire, reading)
            )
        except TimeoutError:
            wire.spent = reading.broken(wire.request)
            came = (
                f"after {len(wire.answer)} bytes of an answer" if wire.answer else "before the provider sent anything"
            )
            raise LimitSpent("time", f"the turn's time was over {came}") from None
        except (ProviderFault, ModelFault, LimitSpent) as fault:
            fault.args = (self.address.blotted_text(str(fault)),)
            await beside(len(wire.answer), wire.kept)
            reason, latency_ms = plain_text(str(fault), REASON_CHARS_MAX), self._clock.monotonic_ms() - begun_ms
            wire.attempts.append(
                Attempt(reason, wire.kept(), latency_ms, 0, reading.broken(wire.request) if wire.began else None)
            )
            raise

    async def _exchange(self, url: str, headers: Mapping[str, str], body: bytes, wire: Wire, reading: Reading) -> Reply:
        async with self._slot(wire):
            try:
                async with self._opened().stream("POST", url, content=body, headers={**HEADERS, **headers}) as response:
                    if response.status_code != 200:
                        raise await self._refused(response, wire)
                    wire.began = True
                    if response.headers.get("content-encoding", "identity") not in ("", "identity"):
                        raise ProviderFault("answered in an encoding that was not asked for")
                    async for chunk in response.aiter_raw():
                        _keep(wire, chunk)
                        if await beside(len(chunk) + reading.held, reading.feed, chunk):
                            break
            except httpx.TransportError as error:
                return await self._after_loss(reading, error, len(wire.answer))
            except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
                raise ProviderFault(f"could not be asked: {type(error).__name__}") from None
            return await beside(len(wire.answer), reading.end)

    @asynccontextmanager
    async def _slot(self, wire: Wire) -> AsyncIterator[None]:
        begun_ms = self._clock.monotonic_ms()
        try:
            await self._slots.acquire()
            try:
                await self._pace.ready(-(-len(wire.request) // BYTES_PER_TOKEN))
            except BaseException:
                self._slots.release()
                raise
        finally:
            wire.wait_ms += self._clock.monotonic_ms() - begun_ms
        try:
            yield
        finally:
            self._slots.release()

    async def _after_loss(self, reading: Reading, error: httpx.TransportError, size: int) -> Reply:
        """What there is once the connection is lost: an answer whose end was read, or a fault."""
        try:
            return await beside(size, reading.lost)
        except ProviderFault:
            raise TransportFault("connection", type(error).__name__) from None

    async def _refused(self, response: httpx.Response, wire: Wire) -> RefereeError:
        """What a refusal stands for, and whose doing it is."""
        try:
            await self._clock.within(ERROR_MS_MAX, _read_error(response, wire))
        except (TimeoutError, httpx.TransportError):
            pass  # the status has said what matters
        status = response.status_code
        body = self.address.blotted_text(bytes(wire.answer).decode("utf-8", "replace"))
        said = plain_text(body, REASON_CHARS_MAX)
        fault = fault_of(body, f"http {status}: {said}") if status not in TRANSIENT | AUTHORITY else None
        if fault is not None and (not isinstance(fault, ProviderFault) or status < 500):
            return fault
        if status in TRANSIENT or status >= 500:
            return TransportFault(f"http {status}", said, retry_after_ms(response.headers, self._clock.now_ms()))
        return ProviderFault(f"http {status}: {said}")

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            for name in ("httpx", "httpcore"):
                logging.getLogger(name).setLevel(logging.CRITICAL)  # they write addresses, and below that headers
            timeout = httpx.Timeout(None, connect=CONNECT_S_MAX)
            self._client = httpx.AsyncClient(timeout=timeout, follow_redirects=False, trust_env=False)
        return self._client


async def beside(size: int, read: Callable[..., T], *given: object) -> T:
    """Read so many bytes: many beside the loop, few at once."""
    return await asyncio.to_thread(read, *given) if size >= THREAD_BYTES_MIN else read(*given)


def retry_after_ms(headers: Mapping[str, str], now_ms: int) -> int:
    """How long a provider asks to be left alone; 0 when it does not say so in a way that can be read.

    Source: RFC 9110 §10.2.3 (seconds or a date); `retry-after-ms` is what some hosts say more exactly."""
    if (exact := headers.get("retry-after-ms")) is not None and (asked := _number(exact)) is not None:
        return min(round(asked), RETRY_AFTER_MS_MAX)
    said = headers.get("retry-after", "")
    if (seconds := _number(said)) is not None:
        return min(round(seconds * 1_000), RETRY_AFTER_MS_MAX)
    try:
        return min(max(0, round(parsedate_to_datetime(said).timestamp() * 1_000) - now_ms), RETRY_AFTER_MS_MAX)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < 10**12 else None


async def _read_error(response: httpx.Response, wire: Wire) -> None:
    async for chunk in response.aiter_raw():
        wire.answer += chunk[: ERROR_BYTES_MAX - len(wire.answer)]
        if len(wire.answer) >= ERROR_BYTES_MAX:
            return


def _keep(wire: Wire, chunk: bytes) -> None:
    if len(wire.answer) + len(chunk) > WIRE_BYTES_MAX:
        raise ProviderFault(f"answered more than {WIRE_BYTES_MAX} bytes")
    wire.answer += chunk
