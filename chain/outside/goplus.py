"""GoPlus: what a token scanner says of a token's safety; it may only worsen the verdict of the referee's own gate.

Text that is empty is unknown, not zero; taxes are fractions as text; a token that it does not know is left out, and so is
every one when it asks for fewer requests (code 4029). A flag that says anything but no, in whatever form, is a warning: one
that cannot be read is not taken for silence. Source: its public interface,
`GET /api/v1/token_security/{chain id}?contract_addresses=a,b`, about 30 requests a minute without a key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from chain.outside.source import Silent, Web, lowered, part
from chain.outside.told import Told

BASE = "https://api.gopluslabs.io"
CHAIN_ID = 4663
TOKENS_AT_ONCE = 10
KNOWN_MAX = 2_000
GOOD_CODES = (1, 2)
"""Whole and partial answers."""
SHOWN = ("is_honeypot", "cannot_sell_all", "cannot_buy", "buy_tax", "sell_tax", "trading_cooldown", "transfer_pausable")
AGAINST = ("is_honeypot", "cannot_sell_all", "cannot_buy")
"""Flags that speak against a buy unless they are no."""
YES, NO = frozenset({"true", "yes"}), frozenset({"false", "no"})
"""How a flag may be said beside the numbers one and zero."""
UNREADABLE = "unreadable"
VALUE_CHARS_MAX, DIGITS_MAX = 60, 30
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
                self._known[token] = _read(part(lowered(part(document, "result")), token))
        for token in list(self._known)[: max(len(self._known) - KNOWN_MAX, 0)]:
            del self._known[token]
        return Told(self.name, {token: self._known[token] for token in tokens if self._known.get(token)})


def _read(row: object) -> dict[str, str]:
    """What is shown of one token; what is empty is left out, and what cannot be read is named so."""
    said = lowered(row)
    return {name: _plain(said[name]) for name in SHOWN if said.get(name) not in (None, "", [], {})}


def _plain(value: object) -> str:
    """A flag or a fraction in one form: decimal text, 1 for yes and 0 for no."""
    text = str(value).strip().lower() if isinstance(value, str | int | float) and len(str(value)) <= VALUE_CHARS_MAX else ""
    if text in YES or text in NO:
        return "1" if text in YES else "0"
    number = _number(text)
    return UNREADABLE if number is None or abs(number.adjusted()) > DIGITS_MAX else f"{number:f}"


def said_against(told: Sequence[Told], token: str, tax_bps_max: int) -> tuple[str, ...]:
    """What the scanner says against buying a token, `goplus:word`; nothing where it is silent.

    Units: a sales tax of at least `tax_bps_max` is said against it."""
    words = [word for each in told if each.source == GoPlus.name for word in _against(each.tokens.get(token, {}), tax_bps_max)]
    return tuple(f"{GoPlus.name}:{word}" for word in words)


def _against(said: Mapping[str, str], tax_bps_max: int) -> list[str]:
    flagged = [name for name in AGAINST if name in said and not _is_no(said[name])]
    taxed = "sell_tax" in said and not _is_less(said["sell_tax"], tax_bps_max)
    return [*flagged, "sell_tax"] if taxed else flagged


def _is_no(text: str) -> bool:
    return (number := _number(text)) is not None and number == 0


def _is_less(text: str, tax_bps_max: int) -> bool:
    number = _number(text)
    return number is not None and number * BPS_WHOLE < tax_bps_max


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
