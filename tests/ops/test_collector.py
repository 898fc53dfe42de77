"""A process that plays a window looks for cycles seldom, and not at what lived before."""

from __future__ import annotations

import gc

from ops.collector import THRESHOLDS, rest


def test_the_collector_rests_once_a_window_is_built():
    before = gc.get_threshold()
    try:
        rest()
        assert gc.get_threshold() == THRESHOLDS
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
