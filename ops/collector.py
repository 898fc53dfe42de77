"""The collector: how often Python looks for cycles while a window is played.

A node's answer to an order is thousands of small objects without a cycle among them, and to a mark of many holdings tens
of thousands. At Python's usual thresholds the collector walks them, and everything else that lives, dozens of times while
one is decoded: measured, half of the time of a mark of 500 holdings. They are freed by their counts either way.
"""

from __future__ import annotations

import gc

THRESHOLDS = 100_000, 20, 20
"""New containers before the young are walked, and how many such walks before the older ones are."""


def rest() -> None:
    """Walk what lives now for the last time, and from then on look seldom. For a process that plays one window."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
