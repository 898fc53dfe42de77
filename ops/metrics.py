"""The metrics: Prometheus numbers on a loopback port, off unless asked for.

They are fed from the journal's tail, like any other watcher; only a lane's trips and waiting come from the door, which
counts them itself. Floats here are for a dashboard; nothing is decided by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from ledgers.clock import Clock
from ledgers.errors import StoreFault
from ops.tail import Seen
from referee.onchain.events import FillCredited, MarkTaken, OrderNotFilled, OrderRefused, TickMissed, TurnPlayed, Woken
from referee.onchain.further_events import DelayedReverted, OrderSkipped
from referee.onchain.liquidity_events import LiquidityClosed, LiquidityOpened

LOOPBACK = "127.0.0.1"
LAG_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class LaneCount(Protocol):
    """What a door counts of one lane."""

    trips: int
    faults: int
    latency_ms_total: int
    waited_ms_total: int


Lanes = Callable[[], Iterable[tuple[str, LaneCount]]]
"""Name and counts of every lane, now."""


class Metrics:
    """What a dashboard may ask."""

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self.lanes: Lanes = tuple
        self._clock = clock
        self._marked_ts_ms: int | None = None
        self._orders = Counter("referee_orders", "Orders by ledger, outcome and reason", ("ledger", "outcome", "reason"), registry=self.registry)
        self._turns = Counter("referee_turns", "Turns by outcome", ("outcome",), registry=self.registry)
        self._missed = Counter("referee_ticks_missed", "Ticks missed by reason", ("reason",), registry=self.registry)
        self._wake_lag = Histogram("referee_wake_lag_seconds", "From a tick's time to its waking", buckets=LAG_BUCKETS_S, registry=self.registry)
        self._journal_lag = Gauge("referee_journal_lag_seconds", "From an event's time to its being read from the journal", registry=self.registry)
        self._journal_seq = Gauge("referee_journal_seq", "Last record of the journal", registry=self.registry)
        self._mark_age = Gauge("referee_mark_age_seconds", "Since a value was last measured", registry=self.registry)
        self._trips = Gauge("referee_lane_round_trips", "Round trips by lane", ("lane",), registry=self.registry)
        self._faults = Gauge("referee_lane_faults", "Faults by lane", ("lane",), registry=self.registry)
        self._waiting = Gauge("referee_lane_latency_seconds_sum", "Time spent waiting for a lane, all trips", ("lane",), registry=self.registry)
        self._held_back = Gauge("referee_lane_held_back_seconds_sum", "Time that questions were held back for a lane's limits", ("lane",), registry=self.registry)

    def see(self, seen: Sequence[Seen]) -> None:
        """Take in what is new in the journal."""
        for record, event in seen:
            self._journal_seq.set(record.seq)
            self._count(event)
        now_ms = self._clock.now_ms()
        self._journal_lag.set(max(0, now_ms - seen[-1][1].ts_ms) / 1_000 if seen else 0)
        if self._marked_ts_ms is not None:
            self._mark_age.set(max(0, now_ms - self._marked_ts_ms) / 1_000)
        for name, lane in self.lanes():
            self._trips.labels(name).set(lane.trips)
            self._faults.labels(name).set(lane.faults)
            self._waiting.labels(name).set(lane.latency_ms_total / 1_000)
            self._held_back.labels(name).set(lane.waited_ms_total / 1_000)

    def _count(self, event: object) -> None:
        match event:
            case Woken():
                self._wake_lag.observe(event.lag_ms / 1_000)
            case TickMissed():
                self._missed.labels(event.reason).inc()
            case TurnPlayed():
                self._turns.labels(event.outcome).inc()
            case FillCredited():
                self._order(event.ledgers, "filled", "" if event.proven else "unproven")
            case LiquidityOpened():
                self._order(event.ledgers, "opened", "")
            case LiquidityClosed():
                self._order(event.ledgers, "closed", "")
            case OrderRefused():
                self._order(event.ledgers, "refused", event.reason)
            case OrderNotFilled():
                self._order(event.ledgers, "not_filled", event.reason)
            case OrderSkipped():
                self._order(event.ledgers, "skipped", event.reason)
            case DelayedReverted():
                self._order(event.ledgers, "reverted", event.reason)
            case MarkTaken() if event.value_wei is not None:
                self._marked_ts_ms = event.ts_ms

    def _order(self, ledgers: tuple[str, ...], outcome: str, reason: str) -> None:
        for ledger in ledgers:
            self._orders.labels(ledger, outcome, reason).inc()


def serve(metrics: Metrics, port: int) -> Callable[[], None]:
    """Offer the metrics on a loopback port and return how to stop. Raises: StoreFault when the port is taken."""
    try:
        server, thread = start_http_server(port, addr=LOOPBACK, registry=metrics.registry)
    except OSError as error:
        raise StoreFault(f"metrics cannot be served on port {port} of this machine: {error.strerror}; choose another one") from error

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
