"""The outside view: what the sources last said, always from before the block it is shown with.

Sources are asked behind the scenes after a look; the next look shows what came back by then. So nobody waits for them,
nothing of them is later than a block, and a source that fails changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from chain.outside.blockscout import Blockscout
from chain.outside.dexscreener import DexScreener
from chain.outside.geckoterminal import GeckoTerminal
from chain.outside.goplus import CHAIN_ID, GoPlus
from chain.outside.source import Silent, Source, Web
from chain.outside.told import Told
from ledgers.clock import Clock

EVERY_MS = 20_000
"""A source is asked no more often."""
KEPT_MS = 1_800_000
"""What was told longer ago is shown no more."""
NAMES = ("dexscreener", "geckoterminal", "blockscout", "goplus")


def sources_named(names: Sequence[str], network: str, chain_id: int = CHAIN_ID) -> tuple[Source, ...]:
    """Make the sources of a network by their names. Raises: ValueError naming the first that does not exist."""
    made: dict[str, Source] = {
        "dexscreener": DexScreener(network), "geckoterminal": GeckoTerminal(network), "blockscout": Blockscout(), "goplus": GoPlus(chain_id),
    }  # fmt: skip
    for name in names:
        if name not in made:
            raise ValueError(f"no outside source named {name[:40]!r}; known: {', '.join(NAMES)}")
    return tuple(made[name] for name in names)


class OutsideView:
    """Keeps what each source said last."""

    def __init__(self, sources: Sequence[Source], clock: Clock, web: Web | None = None) -> None:
        self._sources, self._clock, self._web = tuple(sources), clock, web or Web()
        self._told: dict[str, Told] = {}
        self._asked_ms: int | None = None
        self._asking: asyncio.Task[None] | None = None
        self.failures: dict[str, int] = dict.fromkeys((source.name for source in sources), 0)
        """How often each source said nothing that could be used."""

    def told(self, before_ts_ms: int) -> tuple[Told, ...]:
        """What the sources said last, if they had answered before a time and not too long before it, by name."""
        recent = range(before_ts_ms - KEPT_MS, before_ts_ms)
        return tuple(told for _, told in sorted(self._told.items()) if told.told_ts_ms in recent)

    def refresh(self, tokens: Sequence[str]) -> None:
        """Begin to ask all sources again, unless they are being asked or were a moment ago."""
        now_ms = self._clock.monotonic_ms()
        if self._asking is not None and not self._asking.done():
            return
        if self._asked_ms is None or now_ms - self._asked_ms >= EVERY_MS:
            self._asked_ms = now_ms
            self._asking = asyncio.get_running_loop().create_task(self._ask_all(tuple(tokens)))

    async def settled(self) -> None:
        """Wait until nothing is being asked any more."""
        if self._asking is not None:
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask_all(self, tokens: Sequence[str]) -> None:
        await asyncio.gather(*(self._ask(source, tokens) for source in self._sources))

    async def _ask(self, source: Source, tokens: Sequence[str]) -> None:
        try:
            told = await source.ask(self._web, tokens)
        except Silent:
            self.failures[source.name] += 1
            return
        self._told[source.name] = replace(told, told_ts_ms=self._clock.now_ms())

    async def close(self) -> None:
        """Stop asking and close connections."""
        if self._asking is not None:
            self._asking.cancel()
            await self.settled()
        await self._web.close()
