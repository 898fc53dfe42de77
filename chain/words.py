"""Words: what a wallet's own transactions wrote, and how later simulations are given it.

A paper wallet's transactions never reach the chain, so what they wrote is set by override from then on: in every contract, under
every key, and the balances of contracts they paid. A word that nobody else changed since holds what was written. One that others
changed is shared: nobody can say what it would hold now without living their transactions again, so that several readings are
tried, and only what all of them agree on is known.
Source: ONC-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from chain.evm.local import ETH, LocalEvm
from chain.header import Header
from chain.simulate import BALANCE, SlotWrite

Place = tuple[str, str]
"""Contract and slot, or `balance` for its ETH."""
Reading = tuple[SlotWrite, ...]
"""What all words hold, by one way to read those that others changed."""

SHARED_STATE, CHANCE = "shared_state", "chance"
"""Why a result is not known: the readings of words that others changed do not agree, or it hangs on chance."""
WORD_MAX = 2**256 - 1
NUMBER_BITS, STEP_BITS, PART_BITS = 128, 64, 3
"""A word is taken for a number that grows when it is below 128 bits, or moved by fewer than 64 bits or less than an eighth of itself."""
FIELD_BITS, FIELD_MAX = 32, 2**32 - 1
YEARS_S = 20 * 365 * 86_400
"""A field within so many seconds of the present may be a time."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word that a wallet's transactions left otherwise than the chain has it."""

    contract: str
    slot: str
    """0x and 64 digits, or `balance`."""
    before: int
    """What the chain held when the wallet first wrote it."""
    value: int
    """What it would hold had nobody else written it since."""

    @property
    def place(self) -> Place:
        return self.contract, self.slot


async def look(evm: LocalEvm, words: Iterable[Word], pin: Header) -> dict[Place, int]:
    """What the chain holds in the places of some words at a block. Raises: ChainFault."""
    places = {word.place: (int(word.contract, 16), ETH if word.slot == BALANCE else int(word.slot, 16)) for word in words}
    if not places:
        return {}
    known = await evm.look(pin.block_hash, places.values())
    return {place: known.accounts[at[0]].balance if at[1] == ETH else known.words[at] for place, at in places.items()}


def own(words: Iterable[Word]) -> Reading:
    """The wallet's own reading: what words would hold had nobody else written them."""
    return tuple(_write(word, word.value) for word in words)


def begun(words: Iterable[Word], chain: Mapping[Place, int]) -> dict[Place, int]:
    """What places held before the wallet wrote them: as carried words say, else as the chain does."""
    return dict(chain) | {word.place: word.before for word in words}


def readings(words: Sequence[Word], chain: Mapping[Place, int], now_s: int) -> tuple[Reading, ...]:
    """The ways to read some words, the wallet's own first; a single one where others changed none of them.

    Units: `now_s` is the pinned block's time, which no word that may be a time is taken beyond."""
    shared = [word for word in words if chain[word.place] != word.before]
    ways = (_written, _likely, _added, _chain, _bits, _most, _least) if shared else (_written,)
    apart = {word.place for word in shared}
    found = dict.fromkeys(
        tuple(_write(word, way(word, chain[word.place], now_s) if word.place in apart else word.value) for word in words) for way in ways
    )
    return tuple(found)


def _write(word: Word, value: int) -> SlotWrite:
    return SlotWrite(word.contract, word.slot, value)


def _likely(word: Word, chain: int, now_s: int) -> int:
    """The later of two times; the sum of what both added to a number; else what others wrote last."""
    times = _times(word, chain, now_s)
    if not _number(word, chain) and not times:
        return chain
    return _sum(word, chain, {at: max(_field(word.value, at), _field(chain, at)) for at in times})


def _added(word: Word, chain: int, now_s: int) -> int:
    """The sum of what both added, times not beyond the present."""
    times = _times(word, chain, now_s)
    sums = {at: _field(chain, at) + _field(word.value, at) - _field(word.before, at) for at in times}
    return _sum(word, chain, {at: min(max(total, 0), now_s) for at, total in sums.items()})


def _most(word: Word, chain: int, now_s: int) -> int:
    """More than can be: what both hold together, times as late as the present."""
    if not _number(word, chain):
        return chain
    times = dict.fromkeys(_times(word, chain, now_s), now_s)
    return _sum(replace(word, before=0), chain, times)


def _least(word: Word, chain: int, now_s: int) -> int:
    """Less than is likely: half of what either holds, times as early as either has them."""
    if not _number(word, chain):
        return word.value
    times = {at: min(_field(word.value, at), _field(chain, at)) for at in _times(word, chain, now_s)}
    rest = WORD_MAX & ~sum(FIELD_MAX << at for at in times)
    return min(word.value & rest, chain & rest) // 2 & rest | sum(value << at for at, value in times.items())


def _number(word: Word, chain: int) -> bool:
    """Whether a word may be a number that both add to."""
    grew = abs(word.value - word.before)
    while grew and not grew & 0xFF:
        grew >>= 8
    return max(word.value, word.before, chain) < 1 << NUMBER_BITS or grew < 1 << STEP_BITS or grew << PART_BITS < min(word.before, chain)


def _sum(word: Word, chain: int, times: Mapping[int, int]) -> int:
    """What both added together, beside fields that are times and hold what is given."""
    rest = WORD_MAX & ~sum(FIELD_MAX << at for at in times)
    total = min(max((chain & rest) + (word.value & rest) - (word.before & rest), 0), WORD_MAX)
    return total & rest | sum(value << at for at, value in times.items())


def _chain(word: Word, chain: int, now_s: int) -> int:
    return chain


def _written(word: Word, chain: int, now_s: int) -> int:
    return word.value


def _bits(word: Word, chain: int, now_s: int) -> int:
    """The bits that the wallet changed as it left them, the others as the chain has them."""
    own = word.before ^ word.value
    return chain & ~own | word.value & own


def _times(word: Word, chain: int, now_s: int) -> tuple[int, ...]:
    """Where fields of both may be times, in bits from the right; none overlaps another."""
    found: list[int] = []
    for at in range(0, 256 - FIELD_BITS + 1, 8):
        fields = _field(word.value, at), _field(chain, at)
        if all(now_s - YEARS_S < field <= now_s + YEARS_S for field in fields) and (not found or at >= found[-1] + FIELD_BITS):
            found.append(at)
    return tuple(found)


def _field(value: int, at: int) -> int:
    return value >> at & FIELD_MAX


def merged(known: Iterable[Word], written: Iterable[Word]) -> tuple[Word, ...]:
    """The words of a wallet after more was written; one that holds what the chain does is left out."""
    by_place = {word.place: word for word in known} | {word.place: word for word in written}
    return tuple(word for word in by_place.values() if word.value != word.before)
