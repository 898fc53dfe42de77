"""All kinds of events that a journal of this bench may hold, closed."""

from __future__ import annotations

from ledgers.events import Event
from referee.onchain import events, further_events, liquidity_events

KINDS: tuple[type[Event], ...] = (*events.KINDS, *liquidity_events.KINDS, *further_events.KINDS)
