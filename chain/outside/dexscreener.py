"""DexScreener: prices, depth and volume in dollars of a token's main pair.

Source: its public interface, `GET /tokens/v1/{chain}/{up to 30 addresses}`, 300 requests a minute, no key.
"""

from __future__ import annotations

from collections.abc import Sequence

from chain.outside.source import Web, address, numbers, part, rows
from chain.outside.told import Told

BASE = "https://api.dexscreener.com"
TOKENS_AT_ONCE = 30
PAIRS_MAX = 300


class DexScreener:
    """Asks about the first thirty tokens."""

    name = "dexscreener"

    def __init__(self, chain: str, base: str = BASE) -> None:
        self._chain, self._base = chain, base

    async def ask(self, web: Web, tokens: Sequence[str]) -> Told:
        """Ask about some tokens. Raises: Silent."""
        wanted = tokens[:TOKENS_AT_ONCE]
        found: dict[str, dict[str, str]] = {}
        for pair in rows(await web.json(f"{self._base}/tokens/v1/{self._chain}/{','.join(wanted)}"), PAIRS_MAX):
            token = address(part(pair, "baseToken", "address"))
            if token in wanted and part(pair, "chainId") == self._chain:
                found.setdefault(token, numbers(
                    price_usd=part(pair, "priceUsd"), liquidity_usd=part(pair, "liquidity", "usd"), volume_24h_usd=part(pair, "volume", "h24"),
                    buys_24h=part(pair, "txns", "h24", "buys"), sells_24h=part(pair, "txns", "h24", "sells"), market_cap_usd=part(pair, "marketCap"),
                ))  # fmt: skip
        return Told(self.name, {token: told for token, told in found.items() if told})
