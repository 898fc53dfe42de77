"""Proving: `referee prove RUN|WINDOW`, the fills of a window run again offline from their witnesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from ledgers.journal import verify
from ledgers.plain_text import plain_text
from ops.reading import WrongUse, journal_named
from ops.settings import Settings
from referee.onchain.proving import BY_NODE_ONLY, BY_WITNESS, DIFFERS, Proof, proofs_of
from referee.onchain.state import decoded
from referee.onchain.witnessing import FILL

WORDS = {BY_WITNESS: "proven by witness", BY_NODE_ONLY: "by node only", DIFFERS: "DIFFERS"}
REASON_CHARS_MAX = 300


def proved(settings: Settings, name: str, hashes: Path | None) -> tuple[str, dict[str, object], bool]:
    """Prove what a person named. Returns: text, data, and whether nothing differs. Raises: WrongUse, CorruptJournal."""
    published = None if hashes is None else published_hashes(hashes)
    with journal_named(settings, name) as (journal, run_id):
        verify(journal.read())
        every = proofs_of(map(decoded, journal.read()), journal.blob, published)
    if run_id is not None and not any(proof.run_id == run_id for proof in every):
        raise WrongUse(f"{name[:80]!r} has nothing to prove, or is no run; `referee runs` lists them")
    proofs = [proof for proof in every if run_id in (None, proof.run_id)]
    fills, others = [proof for proof in proofs if proof.what == FILL], [proof for proof in proofs if proof.what != FILL]
    counts = Counter(proof.standing for proof in fills)
    data = {
        "fills": len(fills), **{standing: counts[standing] for standing in WORDS}, "others_differ": sum(proof.standing == DIFFERS for proof in others),
        "rows": [_data(proof) for proof in fills], "others": [_data(proof) for proof in others],
    }  # fmt: skip
    return "\n".join(_lines(fills, others)), data, not any(proof.standing == DIFFERS for proof in proofs)


def published_hashes(path: Path) -> dict[int, str]:
    """Read a file with a block's number and hash on each line. Raises: WrongUse."""
    found: dict[int, str] = {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise WrongUse(f"the file {str(path)[:200]!r} cannot be read; it takes a block's number and hash on each line") from None
    for place, line in enumerate(lines, 1):
        match line.lower().split():
            case []:
                continue
            case [number, word] if number.isdecimal() and len(word) == 66 and word.startswith("0x") and set(word[2:]) <= set("0123456789abcdef"):
                if found.setdefault(int(number), word) != word:
                    raise WrongUse(f"line {place} of {str(path)[:200]!r} gives block {number} another hash than a line before it")
            case _:
                raise WrongUse(f"line {place} of {str(path)[:200]!r} is not a block's number and hash: {plain_text(line, 80)!r}")
    return found


def _lines(fills: Sequence[Proof], others: Sequence[Proof]) -> Iterator[str]:
    counts = Counter(proof.standing for proof in fills)
    yield f"{len(fills)} fills: {counts[BY_WITNESS]} proven by witness, {counts[BY_NODE_ONLY]} by node only, {counts[DIFFERS]} differ"
    for proof in fills:
        where = f"{proof.order_id} {'+'.join(proof.ledgers)} at block {proof.block}"
        yield f"  {WORDS[proof.standing]}: {where}: arrived {proof.arrival_raw}, gas {proof.gas_wei} wei{_why(proof)}"
    for what in dict.fromkeys(proof.what for proof in others):
        told = Counter(proof.standing for proof in others if proof.what == what)
        yield f"{what}s: {told[BY_WITNESS]} proven by witness, {told[BY_NODE_ONLY]} by node only, {told[DIFFERS]} differ"
        for proof in (proof for proof in others if proof.what == what and proof.standing != BY_WITNESS):
            yield f"  {WORDS[proof.standing]}: {proof.order_id or proof.run_id} {'+'.join(proof.ledgers)} at block {proof.block}{_why(proof)}"


def _why(proof: Proof) -> str:
    return f" ({plain_text(proof.reason, REASON_CHARS_MAX)})" if proof.reason else ""


def _data(proof: Proof) -> dict[str, object]:
    exact = {name: None if value is None else str(value) for name, value in (("arrival_raw", proof.arrival_raw), ("gas_wei", proof.gas_wei))}
    return asdict(proof) | exact | {"reason": plain_text(proof.reason, REASON_CHARS_MAX)}
