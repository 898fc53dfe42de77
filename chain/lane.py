"""A lane: one endpoint of a node, what may be asked of it, and how often.

A lane's address carries keys and is never shown, only its name is. Its limits are the provider's own numbers, written behind
its address: `https://…|rps=25|batch=25|logs=10000`. A pace delays what would be too much rather than letting the node refuse
it, and never beyond the caller's deadline.
Source: design §6, §9.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ledgers.clock import Clock
from ledgers.errors import ChainFault

KEY_LENGTH_MIN = 12
"""Parts of a lane's address at least so long are blotted out of what the node says."""
OPTION_MAX = 1_000_000
BACK_OFF_MS = 250
"""How long a lane that asked for fewer requests is left alone before the same is asked again; twice as long each time."""
REMOTE_TRIES = 4
"""How often one question is put to a remote lane that asks for fewer requests."""
RETRY_AFTER_S_MAX = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLimits:
    """What a provider allows; 0 is no limit that is known."""

    requests_per_s: int = 0
    """Questions a second; every question of a batch counts."""
    batch_max: int = 0
    """Questions in one batch."""
    log_blocks_max: int = 0
    """Blocks in one question for logs."""
    tries: int = 1
    """How often a question is put that the lane answers with `fewer requests`."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One endpoint of a node."""

    name: str
    url: str = field(repr=False)
    limits: LaneLimits = LaneLimits()

    def without_key(self, text: str) -> str:
        """Blot out parts of the address in what the node wrote: some nodes repeat the key they were asked with."""
        for part in re.split(r"[/?&=@:#]+", self.url):
            text = text.replace(part, "…") if len(part) >= KEY_LENGTH_MIN else text
        return text


OPTIONS = {"rps": "requests_per_s", "batch": "batch_max", "logs": "log_blocks_max"}
"""Words of a limit behind an address, and the limits they set."""


def limits_of(options: str) -> LaneLimits:
    """Read what stands behind an address: `rps=25|batch=25|logs=10000`, each left out where it is not known.

    Raises: ValueError that names the words, never what was written."""
    found: dict[str, int] = {}
    for option in filter(None, (part.strip() for part in options.split("|"))):
        word, _, number = option.partition("=")
        name = OPTIONS.get(word.strip())
        if name is None or name in found or not number.strip().isdecimal() or not 1 <= int(number.strip()[:9]) <= OPTION_MAX:
            raise ValueError(f"behind an address may stand {', '.join(OPTIONS)}, each once, as in |rps=25|batch=25, with numbers from 1 to {OPTION_MAX}")
        found[name] = int(number)
    return LaneLimits(**found, tries=REMOTE_TRIES)


class RateLimited(ChainFault):
    """A lane asked for fewer requests; `retry_after_ms` is how long it said to wait, 0 when it did not."""

    def __init__(self, message: str, retry_after_ms: int = 0) -> None:
        super().__init__("rate_limited", message)
        self.retry_after_ms = retry_after_ms


def retry_after_ms(text: str | None) -> int:
    """Read a Retry-After header in seconds; a date, or anything else, is 0."""
    said = (text or "").strip()
    return min(int(said), RETRY_AFTER_S_MAX) * 1_000 if said.isdecimal() and len(said) <= 9 else 0


class Pace:
    """A bucket that fills at the lane's rate and holds one second of it."""

    def __init__(self, requests_per_s: int, clock: Clock) -> None:
        self._per_s, self._clock = requests_per_s, clock
        self._free_at_ms = clock.monotonic_ms() - 1_000
        """When the bucket was, or will be, empty: what is asked moves it forward."""

    def take(self, requests: int, wait_ms_max: int) -> int | None:
        """Reserve so many questions; how many milliseconds to wait before they may go out, or None when that is too long."""
        if not self._per_s:
            return 0
        now_ms = self._clock.monotonic_ms()
        empty_at_ms = max(self._free_at_ms, now_ms - 1_000) + -(-requests * 1_000 // self._per_s)
        wait_ms = max(0, empty_at_ms - now_ms)
        if wait_ms > wait_ms_max:
            return None
        self._free_at_ms = empty_at_ms
        return wait_ms


@dataclass(slots=True)
class LaneState:
    """What the door knows of a lane."""

    lane: Lane
    pace: Pace
    checked: bool = False
    """True once it showed the expected identity since its last fault."""
    cool_until_ms: int = 0
    trips: int = 0
    faults: int = 0
    latency_ms_total: int = 0
    waited_ms_total: int = 0
    """How long questions were held back for the lane's pace, or because it asked for fewer."""
    not_before_ms: int = 0
    """When it may be asked again after it asked for fewer requests."""
    batch_max: int = 0
    """Largest batch it takes, as it says or was found; 0 when none was refused yet."""
    log_blocks_max: int = 0
    """Most blocks in a question for logs, likewise."""
    barred: bool = False
    """True once it told something else than another lane of the same block: nothing is filled on it any more."""

    @classmethod
    def of(cls, lane: Lane, clock: Clock) -> LaneState:
        """A lane that has not been asked anything yet."""
        limits = lane.limits
        return cls(lane, Pace(limits.requests_per_s, clock), batch_max=limits.batch_max, log_blocks_max=limits.log_blocks_max)

    def takes_no_batch_of(self, size: int) -> None:
        """Learn that a batch was too large."""
        self.batch_max = max(1, min(self.batch_max or size, size) // 2)
