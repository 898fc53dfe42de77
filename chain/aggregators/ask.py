"""The ask: one exact size put to every rival, and what each of them answers.

A rival is an aggregator with a public interface. Its answer is a claim (so much comes out) with a transaction behind it;
the claim is never credited, the transaction is simulated like any other row's.
Source: 001 §2.2, §5.1; design §6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from chain.router import Tx

if TYPE_CHECKING:
    from chain.aggregators.web import RivalDoor

BUY, SELL = "buy", "sell"
SLIPPAGE_BPS = 300
"""Asked of every rival: wide, because what really arrives is simulated on the block that is filled on."""
SLIPPAGE_PERCENT = SLIPPAGE_BPS // 100
SLIPPAGE_FRACTION = f"0.{SLIPPAGE_BPS:04d}"
DEADLINE_S = 1_200
"""How long a rival's transaction stays good, in chain time, where its interface lets one say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """An exact size: native ETH into a token, or a token into native ETH."""

    side: str
    """`buy` or `sell`."""
    token: str
    """Lower case."""
    amount: int
    """Wei to spend, or token units to sell."""
    wallet: str
    """The paper wallet: sender, taker and recipient of whatever is built."""
    token_decimals: int
    chain_id: int
    weth: str
    gas_price_wei: int
    now_s: int
    """The chain's time, Unix seconds."""
    deadline_ms: int
    """How long all rivals have together."""

    @property
    def spend_wei(self) -> int:
        """The ETH that the transaction must carry."""
        return self.amount if self.side == BUY else 0

    @property
    def deadline_s(self) -> int:
        """Until when a transaction should be good, Unix seconds of the chain."""
        return self.now_s + DEADLINE_S

    def sold(self, native: str) -> str:
        """What is sold, where a rival writes native ETH as `native`."""
        return native if self.side == BUY else self.token

    def bought(self, native: str) -> str:
        """What is bought, where a rival writes native ETH as `native`."""
        return self.token if self.side == BUY else native


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one rival's answer says, checked against the ask."""

    out_raw: int
    """Claimed, in wei or token units; above 0 and below 2^128."""
    tx: Tx
    spender: str | None
    """Who must be approved for the token that is sold; none on a buy."""
    gas_estimate: int | None = None
    """Claimed."""
    via: tuple[str, ...] = ()
    """The sources it names, plain and bounded."""
    rfq: bool = False
    """True when a firm quote or private inventory is among the sources: such a row is not used up on paper."""
    deadline_s: int | None = None
    """Until when the transaction is good, in chain time, where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalQuote:
    """One rival's row: an offer, and when it came."""

    source: str
    out_raw: int
    tx: Tx
    spender: str | None
    gas_estimate: int | None
    via: tuple[str, ...]
    rfq: bool
    deadline_s: int | None = None
    answered_ts_ms: int
    latency_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalSilent:
    """A rival without a usable answer."""

    source: str
    reason: str
    """One word, of REASONS or `http_` and a status."""
    detail: str
    """Plain and bounded; never a key."""
    latency_ms: int


REASONS = {
    "slow": "no answer before the deadline",
    "dead": "no connection",
    "rate_limited": "its budget is used up, or it said so",
    "no_key": "it asks for a key and none is set",
    "redirect": "it sent us elsewhere",
    "too_long": "its answer passes the bound",
    "html": "a web page instead of data",
    "bad_answer": "not the documented shape",
    "no_route": "it knows no way for this size",
    "token_not_supported": "it does not trade this token",
    "refused": "it said no, with a code of its own",
    "firm_quote": "a maker's quote that only a signature can use",
    "wrong_chain": "an answer for another chain",
    "wrong_token": "an answer for another token",
    "wrong_units": "an answer in other decimals",
    "wrong_amount": "an answer for another size",
    "wrong_value": "the transaction carries another amount of ETH",
    "wrong_wallet": "the transaction is built for somebody else",
    "bad_target": "the transaction or the approval goes where none may",
    "bad_calldata": "calldata that is none, or too long",
    "fault": "our own reading failed",
}
"""Why a rival is silent."""


class Silence(Exception):
    """A rival said nothing that can be used; `reason` is of REASONS or `http_` and a status."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Limit:
    """So many requests in so long."""

    requests: int
    per_ms: int


class Rival(Protocol):
    """One aggregator."""

    @property
    def name(self) -> str: ...

    @property
    def base_url(self) -> str:
        """What every request's address begins with."""
        ...

    @property
    def limits(self) -> Sequence[Limit]:
        """Its documented budget."""
        ...

    @property
    def secrets(self) -> Sequence[str]:
        """Keys that nothing it answers may carry into a record."""
        ...

    async def offer(self, door: RivalDoor, ask: Ask) -> Offer:
        """Ask it and read what it answers. Raises: Silence."""
        ...
