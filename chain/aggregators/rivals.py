"""The rivals: every aggregator asked side by side under one deadline.

A rival that is slow, wrong or broken costs nothing but its row: each is asked in a task of its own, and whatever happens
there becomes one word. Answers are in the order of the rivals, not of their coming.

    rival      key       budget                  approved for a sale       tells its sources   good until
    kyberswap  none      3 a second              its router                yes                 20 minutes, ours
    lifi       optional  75 in 2 hours           the address it names      its tool            not said
    sushi      optional  2 a second (ours)       its swapper               in the quote        not said
    relay      optional  50 a minute             named in its approval     where it says so    not said
    openocean  none      2 a second              the transaction's target  yes                 not said
    0x         needed    5 a second              its allowance holder      yes                 not said
    uniswap    needed    2 a second (ours)       its proxy                 pools only          20 minutes, ours
    1inch      needed    1 a second              its router                yes                 not said
    okx        needed    2 in 2 seconds          asked for once            yes                 not said

Nothing of an answer is believed but who must be approved and what to simulate; its amount out is a claim.
Source: 001 §2.2; design §6.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from chain.aggregators.ask import Ask, Offer, Rival, RivalQuote, RivalSilent, Silence
from chain.aggregators.kyber import KyberSwap
from chain.aggregators.lifi import KEYED as KEYED_LIFI
from chain.aggregators.lifi import LiFi
from chain.aggregators.okx import Okx, OkxKey
from chain.aggregators.oneinch import OneInch
from chain.aggregators.openocean import OpenOcean
from chain.aggregators.relay import Relay
from chain.aggregators.sushi import Sushi
from chain.aggregators.uniswap import Uniswap
from chain.aggregators.web import RivalDoor, Web
from chain.aggregators.zerox import ZeroX
from ledgers.clock import Clock

ALL, NONE = "all", "none"


class Rivals:
    """Asks some rivals for the same exact size."""

    def __init__(self, rivals: Sequence[Rival], clock: Clock, web: Web | None = None, wait_ms_max: int = 0) -> None:
        """Shapes: `wait_ms_max` is how long a question may wait for its rival's budget; its row ends as rate_limited otherwise."""
        self._clock = clock
        self._web = web or Web(clock)
        self._rivals = tuple(rivals)
        self._doors = [RivalDoor(self._web, rival.base_url, rival.limits, rival.secrets, clock, wait_ms_max) for rival in self._rivals]
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
        waited_ms = self._clock.monotonic_ms() - begun_ms
        return tuple(_heard(rival.name, task, waited_ms) for rival, task in zip(self._rivals, tasks, strict=True))

    async def _answer(self, rival: Rival, door: RivalDoor, ask: Ask) -> RivalQuote | RivalSilent:
        begun_ms = self._clock.monotonic_ms()
        try:
            offer = await rival.offer(door, ask)
            if any(secret.encode().hex() in offer.tx.data for secret in rival.secrets if secret):
                raise Silence("bad_calldata", "it holds the key")
            offer = replace(offer, via=tuple(door.shown(place) for place in offer.via))
            return _quote(rival.name, offer, self._clock.now_ms(), self._clock.monotonic_ms() - begun_ms)
        except Silence as silence:
            return _silent(rival.name, silence.reason, silence.detail, self._clock.monotonic_ms() - begun_ms)
        except Exception as error:  # noqa: BLE001 whatever one rival does, the others' rows stand
            return _silent(rival.name, "fault", type(error).__name__, self._clock.monotonic_ms() - begun_ms)

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


def _heard(name: str, task: asyncio.Task[RivalQuote | RivalSilent], waited_ms: int) -> RivalQuote | RivalSilent:
    if not task.done() or task.cancelled():
        return _silent(name, "slow", f"no answer within {waited_ms} ms", waited_ms)
    return task.result()


def _silent(name: str, reason: str, detail: str, latency_ms: int) -> RivalSilent:
    return RivalSilent(source=name, reason=reason, detail=detail, latency_ms=latency_ms)


def _quote(name: str, offer: Offer, now_ms: int, latency_ms: int) -> RivalQuote:
    return RivalQuote(
        source=name, out_raw=offer.out_raw, tx=offer.tx, spender=offer.spender, gas_estimate=offer.gas_estimate, via=offer.via,
        rfq=offer.rfq, deadline_s=offer.deadline_s, answered_ts_ms=now_ms, latency_ms=latency_ms,
    )  # fmt: skip


# --- by name ----------------------------------------------------------------------------------------------------------

Made = KyberSwap | LiFi | Sushi | Relay | OpenOcean | ZeroX | Uniswap | OneInch | Okx

MADE: dict[str, Callable[[str, Mapping[str, str]], Made]] = {
    "kyberswap": lambda base, keys: KyberSwap(base),
    "lifi": lambda base, keys: LiFi(base, keys["lifi"], KEYED_LIFI) if keys.get("lifi") else LiFi(base),
    "sushi": lambda base, keys: Sushi(base, keys.get("sushi", "")),
    "relay": lambda base, keys: Relay(base, keys.get("relay", "")),
    "openocean": lambda base, keys: OpenOcean(base),
    "0x": lambda base, keys: ZeroX(base, keys.get("0x", "")),
    "uniswap": lambda base, keys: Uniswap(base, keys.get("uniswap", "")),
    "1inch": lambda base, keys: OneInch(base, keys.get("1inch", "")),
    "okx": lambda base, keys: Okx(base, OkxKey(*(keys.get(name, "") for name in OKX_KEYS))),
}
"""Every rival, in the order of its row."""
OKX_KEYS = ("okx", "okx_secret", "okx_passphrase", "okx_project")
KEYED = ("0x", "uniswap", "1inch", "okx")
"""Rivals that say nothing without a key."""
PUBLIC: dict[str, dict[str, str]] = {
    "robinhood": {
        "kyberswap": "https://aggregator-api.kyberswap.com/robinhood",
        "lifi": "https://li.quest",
        "sushi": "https://api.sushi.com",
        "relay": "https://api.relay.link",
        "openocean": "https://open-api.openocean.finance",
        "0x": "https://api.0x.org",
        "uniswap": "https://trade-api.gateway.uniswap.org/v1",
        "1inch": "https://api.1inch.com",
        "okx": "https://web3.okx.com",
    }
}
"""Where rivals answer for a network, as of 2026-11; a network that is not here is known to none of them."""


def rivals_named(
    names: Iterable[str], network_name: str, keys: Mapping[str, str], base_urls: Mapping[str, str] | None = None
) -> tuple[Rival, ...]:
    """Find rivals by name; `all` is every one that can be asked with the keys there are, `none` is nobody.

    Shapes: `keys` by rival (`0x`, `okx`, `okx_secret`…); `base_urls` by rival, instead of its public address. Budgets are those
    of the public interfaces: on a network of our own they do not apply.
    Raises: ValueError naming the first that is unknown or does not know the network."""
    places = {**PUBLIC.get(network_name, {}), **(base_urls or {})}
    asked = list(dict.fromkeys(names))
    if asked == [NONE]:
        return ()
    if asked == [ALL]:
        asked = [name for name in MADE if name in places and (name not in KEYED or keys.get(name))]
    for name in asked:
        if name not in MADE:
            raise ValueError(f"no rival named {name[:40]!r}; known: {', '.join(MADE)}, or {ALL} or {NONE} alone")
        if name not in places:
            raise ValueError(f"rival {name} does not know the network {network_name}")
    made = (MADE[name](places[name], keys) for name in asked)
    return tuple(made if network_name in PUBLIC else (replace(rival, limits=()) for rival in made))
