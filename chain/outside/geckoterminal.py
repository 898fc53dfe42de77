"""GeckoTerminal: which pools it calls trending.

Source: its public interface, `GET /networks/{network}/trending_pools`, 30 requests a minute, no key.
"""

from __future__ import annotations

from collections.abc import Sequence

from chain.outside.source import POOL_KEY, Web, part, rows
from chain.outside.told import Told

BASE = "https://api.geckoterminal.com/api/v2"
POOLS_MAX = 20


class GeckoTerminal:
    """Asks for trending pools."""

    name = "geckoterminal"

    def __init__(self, network: str, base: str = BASE) -> None:
        self._network, self._base = network, base

    async def ask(self, web: Web, tokens: Sequence[str]) -> Told:
        """Ask for trending pools. Raises: Silent."""
        document = await web.json(f"{self._base}/networks/{self._network}/trending_pools")
        keys = (str(part(pool, "attributes", "address")).lower() for pool in rows(part(document, "data"), POOLS_MAX))
        return Told(self.name, pools=tuple(dict.fromkeys(key for key in keys if POOL_KEY.fullmatch(key))))
