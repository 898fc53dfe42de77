"""GoPlus: what a token scanner says of a token's safety; it may only worsen the verdict of the referee's own gate.

Text that is empty is unknown, not zero; taxes are fractions as text; a token that it does not know is left out, and so is
every one when it asks for fewer requests (code 4029). Source: its public interface,
`GET /api/v1/token_security/{chain id}?contract_addresses=a,b`, about 30 requests a minute without a key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from chain.outside.source import Silent, Web, numbers, part
from chain.outside.told import Told

BASE = "https://api.gopluslabs.io"
CHAIN_ID = 4663
TOKENS_AT_ONCE = 10
KNOWN_MAX = 2_000
GOOD_CODES = (1, 2)
"""Whole and partial answers."""
SHOWN = ("is_honeypot", "cannot_sell_all", "cannot_buy", "buy_tax", "sell_tax", "trading_cooldown", "transfer_pausable")
AGAINST = ("is_honeypot", "cannot_sell_all", "cannot_buy")
"""Flags that speak against a buy when they are 1."""
BPS_WHOLE = 10_000


class GoPlus:
    """Asks about ten tokens at a time, those asked longest ago first, and remembers what it was told last."""

    name = "goplus"

    def __init__(self, chain_id: int = CHAIN_ID, base: str = BASE) -> None:
        self._chain_id, self._base = chain_id, base
        self._known: dict[str, dict[str, str]] = {}
        """What was told last, by token; the one asked longest ago first."""

    async def ask(self, web: Web, tokens: Sequence[str]) -> Told:
        """Ask about some tokens. Raises: Silent."""
        order = {token: place for place, token in enumerate(self._known, start=1)}
        wanted = sorted(tokens, key=lambda token: order.get(token, 0))[:TOKENS_AT_ONCE]
        if wanted:
            document = await web.json(f"{self._base}/api/v1/token_security/{self._chain_id}?contract_addresses={','.join(wanted)}")
            if part(document, "code") not in GOOD_CODES:
                raise Silent("refused")
            for token in wanted:
                self._known.pop(token, None)
                self._known[token] = numbers(**{name: part(document, "result", token, name) for name in SHOWN})
        for token in list(self._known)[: max(len(self._known) - KNOWN_MAX, 0)]:
            del self._known[token]
        return Told(self.name, {token: self._known[token] for token in tokens if self._known.get(token)})


def said_against(told: Sequence[Told], token: str, tax_bps_max: int) -> tuple[str, ...]:
    """What the scanner says against buying a token, `goplus:word`; nothing where it is silent.

    Units: a sales tax of at least `tax_bps_max` is said against it."""
    words = [word for each in told if each.source == GoPlus.name for word in _against(each.tokens.get(token, {}), tax_bps_max)]
    return tuple(f"{GoPlus.name}:{word}" for word in words)


def _against(said: Mapping[str, str], tax_bps_max: int) -> list[str]:
    flagged = [name for name in AGAINST if said.get(name) == "1"]
    taxed = "sell_tax" in said and Decimal(said["sell_tax"]) * BPS_WHOLE >= tax_bps_max
    return [*flagged, "sell_tax"] if taxed else flagged
