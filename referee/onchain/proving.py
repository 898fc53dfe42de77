"""The proving: what a journal's fills, gates and liquidations stand on, run again offline from their witnesses.

By witness: the node was not needed, only its block's hash. By node only: nothing contradicts it, but no witness was kept.
Differs: what is kept says otherwise than the journal. Nothing that is read is believed, and nothing is asked of anybody.
Source: design §5–6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from chain.evm import NotRecorded, Traded, Verified, WitnessWrong, difference_from, read_shared, recorded_in, traded, verify
from chain.evm.l1_gas import without_charges
from chain.network import load_network
from ledgers.errors import CorruptJournal
from ledgers.events import Event
from ledgers.identity import sha256_hex
from referee.onchain.events import BoardTaken, FillCredited, GateTaken, Pin, RouteSimulated, RunOpened, WindowLiquidated, WindowOpened, WitnessKept
from referee.onchain.further_events import FurtherBoardTaken
from referee.onchain.witnessing import FILL, GATE, LIQUIDATION

BY_WITNESS, BY_NODE_ONLY, DIFFERS = "by_witness", "by_node_only", "differs"
Recall = Callable[[str], bytes | None]
Board = BoardTaken | FurtherBoardTaken
Place = tuple[str, tuple[str, ...]]
"""An order and the ledgers that share what is said of it."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What stands behind one fill, gate or liquidation."""

    what: str
    run_id: str
    order_id: str
    ledgers: tuple[str, ...]
    standing: str
    reason: str
    """Why it is not proven by witness; empty when it is."""
    block: int
    block_hash: str
    arrival_raw: int | None = None
    """Of a fill, as recorded: token units of a buy, wei before gas of a sale."""
    gas_wei: int | None = None


class _Differs(Exception):
    """What is kept says otherwise than the journal."""


class _NodeOnly(Exception):
    """Nothing was kept that proves it."""


@dataclass(slots=True)
class Court:
    """Hears the events of a window in their order."""

    recall: Recall
    """Bytes by SHA-256."""
    published: Mapping[int, str] | None = None
    """Block hashes by number that are believed; none to believe those of the journal."""
    _chain_id: int = 0
    _multicall3: str = ""
    _wallets: dict[str, str] = field(default_factory=dict)
    _boards: dict[Place, Board] = field(default_factory=dict)
    _routes: dict[Place, RouteSimulated] = field(default_factory=dict)
    _kept: dict[str, WitnessKept] = field(default_factory=dict)
    _stand: list[FillCredited | GateTaken | WindowLiquidated] = field(default_factory=list)

    def hear(self, event: Event) -> None:
        """Take in what was recorded."""
        match event:
            case WindowOpened():
                self._chain_id, self._multicall3 = event.chain_id, str(load_network(event.network).multicall3)
            case RunOpened():
                self._wallets[event.run_id] = event.wallet
            case BoardTaken() | FurtherBoardTaken():
                self._boards[event.order_id, event.ledgers] = event
            case RouteSimulated():
                self._routes[event.order_id, event.ledgers] = event
            case WitnessKept():
                self._kept[event.evidence_sha256] = event
            case FillCredited() | GateTaken() | WindowLiquidated():
                self._stand.append(event)

    def proofs(self) -> Iterator[Proof]:
        """Judge all of it. Shapes: in the journal's order."""
        for event in self._stand:
            standing, reason, pin = BY_WITNESS, "", self._pin(event)
            try:
                self._judge(event, pin)
            except _NodeOnly as why:
                standing, reason = BY_NODE_ONLY, str(why)
            except (_Differs, WitnessWrong, NotRecorded, CorruptJournal) as why:
                standing, reason = DIFFERS, str(why)
            about: dict[str, Any] = {"run_id": event.run_id, "ledgers": event.ledgers, "standing": standing, "reason": reason}
            about |= {"block": pin.block if pin else 0, "block_hash": pin.block_hash if pin else ""}
            match event:
                case FillCredited():
                    yield Proof(FILL, **about, order_id=event.order_id, arrival_raw=int(event.arrival_raw), gas_wei=int(event.gas_wei))
                case GateTaken():
                    yield Proof(GATE, **about, order_id=event.order_id)
                case WindowLiquidated():
                    yield Proof(LIQUIDATION, **about, order_id="")

    # --- one event --------------------------------------------------------------------------------------------------

    def _pin(self, event: FillCredited | GateTaken | WindowLiquidated) -> Pin | None:
        if isinstance(event, WindowLiquidated):
            return event.pin
        board = self._board(event)
        return board.pin if board else None

    def _board(self, event: FillCredited | GateTaken) -> Board | None:
        """The board whose ledgers hold those of an event."""
        boards = (board for (order_id, ledgers), board in self._boards.items() if order_id == event.order_id and set(event.ledgers) <= set(ledgers))
        return next(boards, None)

    def _judge(self, event: FillCredited | GateTaken | WindowLiquidated, pin: Pin | None) -> None:
        if pin is None:
            raise _Differs("the journal has no board for it")
        match event:
            case FillCredited():
                self._fill(event, pin)
            case GateTaken():
                self._run_again(event.digest, pin)
            case WindowLiquidated():
                self._run_again(event.evidence_sha256, pin)

    def _fill(self, fill: FillCredited, pin: Pin) -> None:
        board, route = self._board(fill), self._routes.get((fill.order_id, fill.ledgers))
        if not fill.proven or route is None or board is None:
            raise _NodeOnly(f"filled without proof: {fill.tag}" if fill.tag else "its simulation was not kept")
        row = next((row for row in board.rows if row.route == fill.route), None)
        if row is None or route.route != fill.route or row.digest != route.evidence_sha256:
            raise _Differs("the fill, its route and the board's row name different simulations")
        done = self._run_again(route.evidence_sha256, pin)
        if len(done) != 1:
            raise _Differs(f"a fill stands on one simulation, {len(done)} are kept")
        found = traded(done[0].blocks, done[0].calls, self._wallets.get(fill.run_id, ""), fill.token, self._multicall3)
        arrival, gas_wei = found.tokens if fill.side == "buy" else found.eth_wei, found.gas * int(pin.base_fee_wei)
        _same("gas price", found.gas_price_wei, int(pin.base_fee_wei))
        _same("arrival", arrival, int(fill.arrival_raw))
        _same("gas in wei", gas_wei, int(fill.gas_wei))
        _same("spent", *_spent(fill, board, found))

    def _run_again(self, evidence: str, pin: Pin) -> list[Verified]:
        kept = self._kept.get(evidence)
        if kept is None:
            raise _NodeOnly("no witness was kept")
        if kept.not_covered:
            raise _NodeOnly(kept.not_covered)
        recorded, codes = recorded_in(self._bytes(evidence)), [self._bytes(code) for code in kept.codes]
        nodes = read_shared(self._bytes(kept.nodes)) if kept.nodes else []
        if len(recorded) != len(kept.witnesses):
            raise _Differs(f"{len(kept.witnesses)} witnesses of {len(recorded)} simulations")
        done = []
        for asked, witness in zip(recorded, kept.witnesses, strict=True):
            _same("block hash", {asked.block_hash, kept.block_hash}, {pin.block_hash})
            again = verify(self._bytes(witness), pin.block_hash, codes, nodes)
            _same("chain", again.chain_id, self._chain_id)
            _same("block", again.block, pin.block)
            if without_charges(again.blocks) != asked.blocks:
                raise _Differs("the witness runs something else than was asked")
            if differs := difference_from(asked, again.calls):
                raise _Differs(differs)
            done.append(again)
        if self.published is not None:
            if pin.block not in self.published:
                raise _NodeOnly(f"block {pin.block} is not among the published ones")
            _same("published block hash", pin.block_hash, self.published[pin.block])
        return done

    def _bytes(self, sha256: str) -> bytes:
        found = self.recall(sha256)
        if found is None or sha256_hex(found) != sha256:
            raise _Differs(f"blob {sha256} is not there, or is another")
        return found


def _spent(fill: FillCredited, board: Board, found: Traded) -> tuple[int, int]:
    """What was really given and what is booked for it; of a sale at least what left, whatever the token keeps shares of."""
    booked = int(fill.spent_raw)
    if fill.side == "buy":
        return found.spent_wei, booked
    return (booked, booked) if board.shares or -found.tokens <= booked else (-found.tokens, booked)


def _same(name: str, found: object, recorded: object) -> None:
    if found != recorded:
        raise _Differs(f"{name}: {found} here, {recorded} in the journal")


def proofs_of(events: Iterable[Event], recall: Recall, published: Mapping[int, str] | None = None) -> list[Proof]:
    """Prove everything that a window's events credit."""
    court = Court(recall, published)
    for event in events:
        court.hear(event)
    return list(court.proofs())
