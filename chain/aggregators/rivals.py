"""The rivals: every aggregator asked side by side under one deadline.

A rival that is slow, wrong or broken costs nothing but its row: each is asked in a task of its own, and whatever happens
there becomes one word. Answers are in the order of the rivals, not of their coming.
Source: 001 §2.2; design §6.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from chain.aggregators.ask import Ask, Offer, Rival, RivalQuote, RivalSilent, Silence
from chain.aggregators.kyber import KyberSwap
from chain.aggregators.web import RivalDoor, Web
from ledgers.clock import Clock

ALL, NONE = "all", "none"


class Rivals:
    """Asks some rivals for the same exact size."""

    def __init__(self, rivals: Sequence[Rival], clock: Clock, web: Web | None = None) -> None:
        self._clock = clock
        self._web = web or Web(clock)
        self._rivals = tuple(rivals)
        self._doors = [RivalDoor(self._web, rival.base_url, rival.limits, rival.secrets, clock) for rival in self._rivals]
        self._left: set[asyncio.Task[RivalQuote | RivalSilent]] = set()
        """Tasks that were cut and have not ended yet."""

    @property
    def names(self) -> tuple[str, ...]:
        """Who is asked, in order."""
        return tuple(rival.name for rival in self._rivals)

    async def ask(self, ask: Ask) -> tuple[RivalQuote | RivalSilent, ...]:
        """Ask everybody at once and take what has come by the deadline; never raises."""
        begun_ms = self._clock.monotonic_ms()
        tasks = [asyncio.ensure_future(self._answer(rival, door, ask)) for rival, door in zip(self._rivals, self._doors, strict=True)]
        try:
            await self._clock.within(ask.deadline_ms, _all_of(tasks))
        except TimeoutError:
            pass
        finally:
            for task in tasks:
                self._leave(task)
        late = RivalSilent(source="", reason="slow", detail=f"no answer within {ask.deadline_ms} ms", latency_ms=self._clock.monotonic_ms() - begun_ms)
        return tuple(_heard(rival.name, task, late) for rival, task in zip(self._rivals, tasks, strict=True))

    async def _answer(self, rival: Rival, door: RivalDoor, ask: Ask) -> RivalQuote | RivalSilent:
        begun_ms = self._clock.monotonic_ms()
        try:
            offer = await rival.offer(door, ask)
        except Silence as silence:
            return RivalSilent(source=rival.name, reason=silence.reason, detail=silence.detail, latency_ms=self._clock.monotonic_ms() - begun_ms)
        except Exception as error:
            return RivalSilent(source=rival.name, reason="fault", detail=type(error).__name__, latency_ms=self._clock.monotonic_ms() - begun_ms)
        return _quote(rival.name, offer, self._clock.now_ms(), self._clock.monotonic_ms() - begun_ms)

    def _leave(self, task: asyncio.Task[RivalQuote | RivalSilent]) -> None:
        if not task.done():
            task.cancel()
            self._left.add(task)
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[RivalQuote | RivalSilent]) -> None:
        self._left.discard(task)
        if not task.cancelled():
            task.exception()

    async def close(self) -> None:
        """Close kept connections."""
        await self._web.close()


async def _all_of(tasks: Sequence[asyncio.Task[RivalQuote | RivalSilent]]) -> None:
    if tasks:
        await asyncio.wait(tasks)


def _heard(name: str, task: asyncio.Task[RivalQuote | RivalSilent], late: RivalSilent) -> RivalQuote | RivalSilent:
    if not task.done() or task.cancelled():
        return RivalSilent(source=name, reason=late.reason, detail=late.detail, latency_ms=late.latency_ms)
    return task.result()


def _quote(name: str, offer: Offer, now_ms: int, latency_ms: int) -> RivalQuote:
    return RivalQuote(
        source=name, out_raw=offer.out_raw, tx=offer.tx, spender=offer.spender, gas_estimate=offer.gas_estimate, via=offer.via,
        rfq=offer.rfq, deadline_s=offer.deadline_s, answered_ts_ms=now_ms, latency_ms=latency_ms,
    )  # fmt: skip


# --- by name ----------------------------------------------------------------------------------------------------------

Made = Callable[[str, Mapping[str, str]], Rival]

KYBER_SLUGS = {"robinhood": "robinhood"}
"""What KyberSwap calls a network."""
BASE_URLS = {"kyberswap": "https://aggregator-api.kyberswap.com"}
MADE: dict[str, Made] = {"kyberswap": lambda base, keys: KyberSwap(base)}
NETWORKS = ("robinhood",)
"""Networks that rivals outside know; elsewhere only rivals with an address of their own can be asked."""


def rivals_named(
    names: Iterable[str], network_name: str, keys: Mapping[str, str], base_urls: Mapping[str, str] | None = None
) -> tuple[Rival, ...]:
    """Find rivals by name; `all` is every one that can be asked on a network, `none` is nobody.

    Shapes: `keys` by rival (`0x`, `okx`, `okx_secret`…); `base_urls` by rival, instead of its public address.
    Raises: ValueError naming the first that is unknown or cannot be asked there."""
    own = base_urls or {}
    asked = list(names)
    if asked == [NONE]:
        return ()
    if asked == [ALL]:
        asked = [name for name in MADE if name in own or network_name in NETWORKS]
    for name in asked:
        if name not in MADE:
            raise ValueError(f"no rival named {name[:40]!r}; known: {', '.join(MADE)}, or {ALL} or {NONE} alone")
        if name not in own and network_name not in NETWORKS:
            raise ValueError(f"rival {name} does not know the network {network_name}")
    return tuple(MADE[name](own.get(name) or _public(name, network_name), keys) for name in dict.fromkeys(asked))


def _public(name: str, network_name: str) -> str:
    slug = f"/{KYBER_SLUGS[network_name]}" if name == "kyberswap" else ""
    return BASE_URLS[name] + slug
