"""The metrics: counted from the journal's tail, on a loopback port, off unless asked."""

from __future__ import annotations

import socket
import urllib.request
from dataclasses import dataclass

import pytest

from ledgers.clock import VirtualClock
from ledgers.errors import StoreFault
from ops.metrics import Metrics, serve
from ops.tail import tell
from tests.ops.pooled import pooled
from tests.ops.told import BOTH, OPEN, told


@dataclass
class Lane:
    trips: int = 4
    faults: int = 1
    latency_ms_total: int = 12
    waited_ms_total: int = 250


def counted() -> Metrics:
    metrics = Metrics(VirtualClock(OPEN + 61_500))
    metrics.lanes = lambda: [("lane-1", Lane())]
    tell(told(), [metrics.see], 0)
    return metrics


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("referee_orders_total", {"ledger": "headline", "outcome": "filled", "reason": ""}, 1),
        ("referee_orders_total", {"ledger": "headline", "outcome": "refused", "reason": "gate_flagged"}, 1),
        ("referee_orders_total", {"ledger": "permissive", "outcome": "filled", "reason": "unproven"}, 1),
        ("referee_turns_total", {"outcome": "ANSWERED"}, 1),
        ("referee_ticks_missed_total", {"reason": "late"}, 1),
        ("referee_wake_lag_seconds_count", {}, 1),
        ("referee_journal_lag_seconds", {}, 0.5),
        ("referee_mark_age_seconds", {}, 60.5),
        ("referee_lane_round_trips", {"lane": "lane-1"}, 4),
        ("referee_lane_faults", {"lane": "lane-1"}, 1),
        ("referee_lane_latency_seconds_sum", {"lane": "lane-1"}, 0.012),
        ("referee_lane_held_back_seconds_sum", {"lane": "lane-1"}, 0.25),
    ],
)
def test_metric_counts_what_the_journal_says(name, labels, value):
    assert counted().registry.get_sample_value(name, labels) == value


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_metrics_answer_on_loopback_and_stop():
    port = free_port()
    stop = serve(counted(), port)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            assert b"referee_orders_total" in answer.read()
    finally:
        stop()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_taken_port_is_one_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(StoreFault, match="choose another one"):
            serve(counted(), taken.getsockname()[1])


def test_positions_opened_and_closed_are_counted_as_orders():
    metrics = Metrics(VirtualClock(OPEN + 61_500))
    tell(pooled(), [metrics.see], 0)
    found = {(ledger, outcome): metrics.registry.get_sample_value("referee_orders_total", {"ledger": ledger, "outcome": outcome, "reason": ""}) for ledger in BOTH for outcome in ("opened", "closed")}
    assert found == {("headline", "opened"): 1, ("headline", "closed"): 1, ("permissive", "opened"): 2, ("permissive", "closed"): 1}
