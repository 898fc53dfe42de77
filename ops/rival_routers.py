"""The rivals of a window: other aggregators by the names that the settings give, the local chain's own wherever it now stands.

Source: ONC-05. Their addresses on a real chain are public; keys come from the settings and are shown nowhere.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

from chain.aggregators.ask import Ask, RivalQuote, RivalSilent
from chain.aggregators.rivals import ALL, NONE, Rivals, rivals_named
from chain.devnet import standing
from chain.devnet.rival import KEY, KYBER_BASE
from chain.network import Network
from ledgers.clock import Clock
from ops.home_chain import DEVNET
from ops.settings import BadSettings, Settings

LOCAL = {"kyberswap": KYBER_BASE, "0x": ""}
"""Wire shapes that the local chain's rival speaks, and where each begins."""
BUDGET_WAIT_MS = 1_500
"""How long a question may wait for its rival's budget; all have a deadline besides."""


class AskedRivals(Protocol):
    """Rivals that can be asked, and are closed at the end."""

    @property
    def names(self) -> tuple[str, ...]: ...
    async def ask(self, ask: Ask) -> tuple[RivalQuote | RivalSilent, ...]: ...
    async def close(self) -> None: ...


def rivals_of(settings: Settings, network: Network, clock: Clock) -> AskedRivals | None:
    """The rivals that are asked on a network; none where the settings name none. Raises: BadSettings."""
    names = settings.rival_names()
    try:
        if network.name == DEVNET:
            local = tuple(LOCAL if names == (ALL,) else [name for name in LOCAL if name in names])
            rivals_named([name for name in names if name not in LOCAL and name not in (ALL, NONE)], network.name, {}, {name: "" for name in names})
            return HomeRivals(settings.home, local, clock) if local else None
        found = rivals_named(names, network.name, settings.rival_keys())
    except ValueError as error:
        raise BadSettings(f"REFEREE_RIVALS: {error}") from None
    return Rivals(found, clock, wait_ms_max=BUDGET_WAIT_MS) if found else None


def strangers_to(settings: Settings, network: Network) -> tuple[str, ...]:
    """Rivals that the settings name and the local chain does not have; they are not asked there."""
    return tuple(name for name in settings.rival_names() if network.name == DEVNET and name not in (*LOCAL, ALL, NONE))


class HomeRivals:
    """The rival of a home's local chain, found anew whenever the chain was built again."""

    def __init__(self, home: Path, names: tuple[str, ...], clock: Clock) -> None:
        self.names = names
        self._folder, self._clock = standing.folder_of(home), clock
        self._at, self._rivals = "", Rivals((), clock)

    async def ask(self, ask: Ask) -> tuple[RivalQuote | RivalSilent, ...]:
        """Ask it where it is now; never raises."""
        written = await asyncio.to_thread(standing.read, self._folder)
        at = written.rival_url if written is not None else ""
        if at != self._at:
            before, self._at, self._rivals = self._rivals, at, self._named(at)
            await before.close()
        if not at:
            return tuple(RivalSilent(source=name, reason="dead", detail="the local chain has no rival", latency_ms=0) for name in self.names)
        return await self._rivals.ask(ask)

    def _named(self, at: str) -> Rivals:
        bases = {name: at + base for name, base in LOCAL.items()}
        return Rivals(rivals_named(self.names, DEVNET, {"0x": KEY}, bases) if at else (), self._clock, wait_ms_max=BUDGET_WAIT_MS)

    async def close(self) -> None:
        """Close kept connections."""
        await self._rivals.close()
