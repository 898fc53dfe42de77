"""Rival rows: what other aggregators answered, each held to its own transaction.

A rival's claim is never credited. Its transaction is looked at before it is simulated from the paper wallet, and counts only
when it brings something by itself, out of pools, and takes nothing that the order does not name. Whatever is wrong with it
costs its row alone. A maker's firm quote is never used up on paper, so it is left out.
Pure. Source: 001 §2.2, §5.1; ONC-05, ONC-06, ONC-10.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from chain import calldata
from chain.aggregators.ask import Ask, RivalQuote, RivalSilent
from chain.calldata import hex_bytes
from chain.gas import APPROVE_GAS_LIMIT, SWAP_GAS_LIMIT, swap_gas_estimate
from chain.header import Header
from chain.network import Network
from chain.origin import ForeignRoute, pairs_unknown
from chain.pools import NATIVE, Pool, PoolGraph
from chain.router import Approval, Route, Tx
from chain.rpc import RpcRefused
from chain.simulate import SimulationRefused, answered
from chain.trade import FAILED, PRIVATE_INVENTORY, PROVEN, REVERTED, Outcome, TradeSimulation, evidence
from ledgers.errors import ChainFault
from ledgers.identity import identity_of
from ledgers.plain_text import plain_text
from referee.onchain.events import WordKept
from referee.onchain.variant import Variant

LABEL_CHARS_MAX = 120
VIA_MAX, VIA_CHARS_MAX, REASON_CHARS_MAX = 8, 40, 40
CALLDATA_CHARS_MAX = 2 + 2 * 24 * 1024
"""Longer calldata is not simulated: a gate sends it some ten times over in one request, which a node must still take."""
LOWEST_CONTRACT = 0x10000
"""Below it are precompiles, and nobody."""
DELEGATED = bytes.fromhex("ef01")
"""How the code of an account begins that only lends another's (EIP-7702)."""
RFQ, BAD_TRANSACTION, NOT_ASKED, TOO_OLD = "rfq", "bad_transaction", "not_asked", "too_old"
HOPS_GUESSED = 2
"""What the gas of a rival's swap is guessed by where it was neither simulated nor said."""


class Rivals(Protocol):
    """Other aggregators, asked side by side."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def ask(self, ask: Ask) -> Awaitable[tuple[RivalQuote | RivalSilent, ...]]:
        """One answer of each, in the order of the rivals. Raises: nothing."""
        ...


@dataclass(slots=True)
class RivalRow:
    """One rival's answer on its way to a row."""

    answer: RivalQuote | RivalSilent
    label: str
    """Unique on its board."""
    route: Route | None = None
    """Its transaction as a route whose pools are not known."""
    question: TradeSimulation | None = None
    """None where its transaction need not be simulated."""
    outcome: Outcome = field(default_factory=lambda: Outcome(FAILED, NOT_ASKED))
    evidence: dict[str, Any] = field(default_factory=dict)
    answered: Any = None
    """What the node said of its transaction."""
    kept: tuple[WordKept, ...] = ()
    """What that wrote about the wallet."""
    gas_limit: int = 0

    @property
    def out_raw(self) -> int | None:
        """What it claims."""
        return self.answer.out_raw if isinstance(self.answer, RivalQuote) else None

    @property
    def via(self) -> tuple[str, ...]:
        """Places it says it goes through, plain and bounded."""
        return plain_via(self.answer)

    @property
    def gas_estimate(self) -> int:
        """Gas of its swap where it was not simulated."""
        said = self.answer.gas_estimate if isinstance(self.answer, RivalQuote) else None
        return said if said is not None and 0 < said <= SWAP_GAS_LIMIT else swap_gas_estimate(HOPS_GUESSED)

    def age_ms(self, now_ms: int) -> int:
        """Since it answered; 0 of one that said nothing."""
        return max(now_ms - self.answer.answered_ts_ms, 0) if isinstance(self.answer, RivalQuote) else 0

    def contracts(self) -> tuple[str, ...]:
        """Addresses that must hold code."""
        if self.question is None or not isinstance(self.answer, RivalQuote):
            return ()
        return tuple(address for address in (self.answer.tx.to, self.answer.spender) if address)

    def pairs_unknown(self, network: Network, answer: Any) -> set[tuple[str, ...]]:
        """Pairs whose pools would say whether its tokens came from a market that is not known yet; none where it does not matter."""
        if self.outcome.reason != PRIVATE_INVENTORY or self.question is None:
            return set()
        return pairs_unknown(network, self.question.swapped(answered(self.question.simulation, answer)), self.question.route)

    def read_again(self, answer: Any, code: Mapping[str, Any], pools: Mapping[str, Pool]) -> None:
        """Read what its transaction did with more pools known."""
        assert self.question is not None and isinstance(self.route, ForeignRoute)
        self.route = self.question.route = replace(self.route, pools=ChainMap(dict(pools), self.route.pools))
        self.read(answer, code)

    def change(
        self, *, status: str = PROVEN, reason: str = "", kept: tuple[WordKept, ...] | None = None, gas_limit: int | None = None,
        swap_gas: int | None = None, **_: Any,
    ) -> None:  # fmt: skip
        """Take over what running its transaction here said; what is not known of it fails it."""
        if status != PROVEN:
            self.fail(reason)
        self.kept = self.kept if kept is None else kept
        self.gas_limit = self.gas_limit if gas_limit is None else gas_limit
        if swap_gas is not None:
            self.outcome = replace(self.outcome, swap_gas=swap_gas)

    def fail(self, reason: str) -> None:
        """Give the row up."""
        self.outcome = Outcome(FAILED, reason)

    def read(self, answer: Any, code: Mapping[str, Any]) -> None:
        """Read what its transaction did; nothing that is wrong with it is anybody else's fault."""
        assert self.question is not None
        if not all(has_code(code.get(address)) for address in self.contracts()):
            self.outcome = Outcome(FAILED, BAD_TRANSACTION)
            return
        self.evidence = {"rival": claims_of(self.answer), **evidence(self.question.simulation, None if isinstance(answer, RpcRefused) else answer)}
        self.answered = answer
        try:
            outcome = self.question.outcome(answered(self.question.simulation, answer))
        except SimulationRefused as refused:
            outcome = Outcome(FAILED, refused.word)
        except ChainFault as fault:
            outcome = Outcome(FAILED, fault.reason)
        self.outcome = outcome if outcome.status in (PROVEN, REVERTED) else Outcome(FAILED, outcome.reason)


def rival_rows(
    network: Network, graph: PoolGraph, pin: Header, variant: Variant, answers: Sequence[RivalQuote | RivalSilent], others: Collection[str]
) -> list[RivalRow]:
    """Prepare one row for each answer, in their order; `others` are tokens that the order does not name."""
    labels: set[str] = set()
    rows = []
    for answer in answers:
        row = RivalRow(answer, _label(answer, labels))
        reason = _objection(network, graph, variant, answer)
        if isinstance(answer, RivalQuote) and answer.tx.to:
            row.route = _route(graph, variant, answer, row.label)
        if reason or row.route is None:
            row.outcome = Outcome(FAILED, reason)
        else:
            row.question = TradeSimulation(network, pin, variant.purse, row.route, variant.held, variant.book.approvals, sorted(others))
        rows.append(row)
    return rows


def tx_sha256(tx: Tx) -> str:
    """Identity of a transaction: its contract, value and calldata."""
    return identity_of({"to": tx.to, "value_wei": str(tx.value_wei), "data": tx.data})


def has_code(answer: Any) -> bool:
    """Whether an address holds a contract's own code, by the node's word."""
    try:
        code = b"" if answer is None or isinstance(answer, RpcRefused) else hex_bytes(answer)
    except ChainFault:
        return False
    return bool(code) and not code.startswith(DELEGATED)


def plain_via(answer: RivalQuote | RivalSilent) -> tuple[str, ...]:
    """Places that a rival names, plain and bounded."""
    named = answer.via if isinstance(answer, RivalQuote) else ()
    return tuple(filter(None, (plain_text(each, VIA_CHARS_MAX) for each in named[:VIA_MAX])))


def claims_of(answer: RivalQuote | RivalSilent) -> dict[str, Any]:
    """What a rival said, as evidence."""
    if isinstance(answer, RivalSilent):
        return {"source": answer.source, "reason": answer.reason}
    tx = answer.tx
    return {
        "source": answer.source, "out_raw": str(answer.out_raw), "spender": answer.spender, "via": list(plain_via(answer)),
        "tx": {"to": tx.to, "data": tx.data, "value_wei": str(tx.value_wei), "gas_limit": tx.gas_limit},
        "answered_ts_ms": answer.answered_ts_ms, "latency_ms": answer.latency_ms,
    }  # fmt: skip


def _label(answer: RivalQuote | RivalSilent, taken: set[str]) -> str:
    whole = plain_text(" > ".join((answer.source, *plain_via(answer))), LABEL_CHARS_MAX)
    label, number = whole, 1
    while label in taken:
        number += 1
        label = f"{whole} #{number}"
    taken.add(label)
    return label


def _objection(network: Network, graph: PoolGraph, variant: Variant, answer: RivalQuote | RivalSilent) -> str:
    """Why an answer is not simulated, in one word; empty when it is."""
    if isinstance(answer, RivalSilent):
        return plain_text(answer.reason, REASON_CHARS_MAX)
    if answer.rfq:
        return RFQ
    if _is_bad(network, graph, variant, answer):
        return BAD_TRANSACTION
    return variant.cause


def _is_bad(network: Network, graph: PoolGraph, variant: Variant, quote: RivalQuote) -> bool:
    """Whether a transaction spends something else, or goes, or has its allowance go, where no swap does."""
    buy = variant.asked.side == "buy"
    if quote.tx.value_wei != (variant.size_raw if buy else 0) or not quote.tx.data.startswith("0x") or len(quote.tx.data) > CALLDATA_CHARS_MAX:
        return True
    nowhere = {network.permit2, network.multicall3, variant.purse.wallet, variant.asked.token, network.reader, *(holding.token for holding in variant.book.holdings)}
    allowed = {network.permit2}
    return any(
        address is not None and (_is_token(network, graph, address) or int(address, 16) < LOWEST_CONTRACT or address in nowhere - granted)
        for address, granted in ((quote.tx.to, set()), (None if buy else quote.spender, allowed))
    )


def _is_token(network: Network, graph: PoolGraph, address: str) -> bool:
    return address in (network.weth, network.usdg, NATIVE) or bool(graph.pools_of(address))


def _route(graph: PoolGraph, variant: Variant, quote: RivalQuote, label: str) -> Route:
    token, buy = variant.asked.token, variant.asked.side == "buy"
    approvals: tuple[Approval, ...] = ()
    if not buy and quote.spender:
        approvals = (Approval(f"{token}>{quote.spender}", Tx(token, calldata.approve(quote.spender), APPROVE_GAS_LIMIT)),)
    swap = Tx(quote.tx.to, quote.tx.data, min(quote.tx.gas_limit, SWAP_GAS_LIMIT), quote.tx.value_wei)
    return ForeignRoute(label, variant.asked.side, token, variant.size_raw, (), approvals, swap, None, _untold, pools=graph.pools)


def _untold(data: bytes) -> int | None:
    return None
