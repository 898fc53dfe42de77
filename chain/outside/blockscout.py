"""Blockscout: how many addresses hold a token.

Source: its public interface, `GET /api/v2/tokens/{address}`, about 180 requests a window, so that few are asked at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from chain.outside.source import Silent, Web, address, numbers, part
from chain.outside.told import Told

BASE = "https://robinhoodchain.blockscout.com/api/v2"
TOKENS_AT_ONCE = 4
KNOWN_MAX = 2_000


class Blockscout:
    """Asks about a few tokens at a time, and remembers what it was told."""

    name = "blockscout"

    def __init__(self, base: str = BASE) -> None:
        self._base = base
        self._known: dict[str, dict[str, str]] = {}
        """What was told last, by token; the one asked longest ago first."""

    async def ask(self, web: Web, tokens: Sequence[str]) -> Told:
        """Ask about those tokens that were never asked about, then about those asked longest ago. Raises: Silent."""
        order = {token: place for place, token in enumerate(self._known, start=1)}
        for token in sorted(tokens, key=lambda token: order.get(token, 0))[:TOKENS_AT_ONCE]:
            told = await self._one(web, token)
            self._known.pop(token, None)
            self._known[token] = told
        for token in list(self._known)[: max(len(self._known) - KNOWN_MAX, 0)]:
            del self._known[token]
        return Told(self.name, {token: self._known[token] for token in tokens if self._known.get(token)})

    async def _one(self, web: Web, token: str) -> dict[str, str]:
        document = await web.json(f"{self._base}/tokens/{token}")
        if address(part(document, "address") or part(document, "address_hash")) != token:
            raise Silent("told of another token")
        return numbers(holders=part(document, "holders_count") or part(document, "holders"))
