"""The record of sittings: every one is kept, passed or not, as a hash chain of JSON lines, and can be heard again.

`sittings.jsonl` is in the form of a journal's export: a line when a sitting begins, one for each of its turns, one when
it ends with a verdict. A sitting that has no end was interrupted, and is kept and counted as that. The bytes behind it
(questions, answers, tool answers, sheets that nobody had seen before) stand beside it in `blobs/`, compressed, by their
SHA-256. Nothing is ever changed or taken out. A line also says when a host was found to answer as another model than
the one that passed: then the model has to sit again.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exam.checks import FIRST, SECOND, THIRD, hear
from exam.entrance import PASS, Candidate, SatTurn, Verdict, verdict
from exam.sheets import Sheet, exam_sha256, read_sheet
from harnesses.exam_pass import ExamPass
from harnesses.message import Usage
from harnesses.outcome import Outcome, Step, ToolUse, Turn
from harnesses.question import Question
from harnesses.stack import Stack
from ledgers.errors import CorruptJournal, StoreFault
from ledgers.identity import canonical_bytes, sha256_hex
from ledgers.journal import GENESIS, Record, link_of, verify
from ledgers.plain_text import plain_text
from ledgers.seal import line_of, read_export
from ledgers.whole_file import write_whole
from referee.onchain.decision import Decision, of_turn

KIND, BEGUN, TURN, DRIFTED = "ExamSat", "ExamBegun", "ExamTurnSat", "ModelDrifted"
FIRST_SCHEMA, SECOND_SCHEMA, SCHEMA = "sitting/1", "sitting/2", "sitting/3"
EDITIONS = {FIRST_SCHEMA: FIRST, SECOND_SCHEMA: SECOND, SCHEMA: THIRD}
"""By which edition of the checks a sitting was judged."""
INTERRUPTED = "interrupted"
WHY_CHARS_MAX = 300

Sitting = Mapping[str, Any]
"""A recorded sitting, as its line holds it."""


class Sittings:
    """The record of a home's sittings."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "sittings.jsonl"

    def all(self) -> list[tuple[Record, Sitting]]:
        """Read every sitting, in the order in which they began. Raises: CorruptJournal at the first line that does not
        hold."""
        found: dict[str, tuple[Record, dict[str, Any]]] = {}
        for record, body in self._lines():
            name = body.get("sitting", "")
            match record.kind:
                case "ExamBegun":
                    found[name] = (
                        record,
                        {**body, "model_reported": "", "turns": [], "verdict": _verdict(Verdict(INTERRUPTED))},
                    )
                case "ExamTurnSat" if name in found:
                    found[name][1]["turns"].append(body["turn"])
                case "ExamSat":
                    found[name] = record, body
        for _, body in found.values():
            if body["verdict"]["standing"] == INTERRUPTED:
                body["verdict"] = _interrupted(body["turns"])
        return list(found.values())

    def find(self, name: str) -> tuple[Record, Sitting] | None:
        """Find a sitting by its id. Raises: CorruptJournal."""
        return next((found for found in self.all() if found[1]["sitting"] == name), None)

    def pass_of(self, stack: Stack, exam: str) -> ExamPass | None:
        """The latest pass of a model on a harness in the exam of that hash, if there is one; an older exam's counts no
        more.

        Nor does one after which the host answered as another model. Raises: CorruptJournal."""
        passed: ExamPass | None = None
        begun = 0
        for record, body in self._lines():
            if not _who(stack).items() <= body.items():
                continue
            begun += _begins(record, body)
            if record.kind == DRIFTED:
                passed = None
            elif (
                record.kind == KIND
                and body["verdict"]["standing"] == PASS
                and body.get("published_sha256", body["exam_sha256"]) == exam
            ):
                found = exam_pass(record, body, begun)
                passed = found if found.admits(stack) else passed
        return passed

    def begin(self, candidate: Candidate, sheets: Sequence[Sheet], published: Sequence[Sheet], ts_ms: int) -> Sitting:
        """Write down that a sitting begins, before anything is asked; it is named here. Raises: StoreFault,
        CorruptJournal."""
        fresh = [sheet for sheet in sheets if sheet not in published]

        def body(records: Sequence[Record]) -> Sitting:
            count = sum(_begins(record, json.loads(record.body)) for record in records)
            return begun_of(f"s{count + 1}", candidate, sheets, published, ts_ms)

        return self._append(BEGUN, body, {sheet.sha256: sheet.encoded for sheet in fresh})[1]

    def turn(self, begun: Sitting, place: int, turn: SatTurn) -> None:
        """Write one turn down as it ends. Raises: StoreFault, CorruptJournal."""
        blobs: dict[str, bytes] = {}
        body = {"schema": SCHEMA, "sitting": begun["sitting"], "turn": _turn(place, turn, blobs)}
        self._append(TURN, lambda _: body, blobs)

    def end(self, begun: Sitting, sat: Sequence[SatTurn]) -> Sitting:
        """Write down how a sitting ended. Raises: StoreFault, CorruptJournal."""
        blobs: dict[str, bytes] = {}
        body = ended_of(begun, sat, blobs)
        self._append(KIND, lambda _: body, blobs)
        return body

    def drift(self, stack: Stack, was: str, now: str, window: str, ts_ms: int) -> bool:
        """Write down that a host answered as another model than the one that passed; false where that is known already.

        Raises: StoreFault, CorruptJournal."""
        found = {**_who(stack), "window": window}
        if any(record.kind == DRIFTED and found.items() <= body.items() for record, body in self._lines()):
            return False
        told = {"was": plain_text(was, WHY_CHARS_MAX), "now": plain_text(now, WHY_CHARS_MAX), "ts_ms": ts_ms}
        self._append(DRIFTED, lambda _: {"schema": SCHEMA, **found, **told}, {})
        return True

    def _lines(self) -> list[tuple[Record, dict[str, Any]]]:
        records = list(read_export(self._file)) if self._file.is_file() else []
        verify(records)
        return [(record, _decoded(record)) for record in records]

    def _append(
        self, kind: str, body_of: Callable[[Sequence[Record]], Sitting], blobs: Mapping[str, bytes]
    ) -> tuple[Record, Sitting]:
        """Append one line and its bytes; on disk when this returns. Raises: StoreFault, CorruptJournal."""
        try:
            (self._folder / "blobs").mkdir(parents=True, exist_ok=True)
            for digest, data in blobs.items():
                if not self._blob_path(digest).is_file():
                    write_whole(self._blob_path(digest), zlib.compress(data))
            with self._locked() as file:
                records = list(read_export(self._file))
                last = verify(records)
                seq, previous = (last.seq, last.link) if last else (0, GENESIS)
                said = body_of(records)
                body = canonical_bytes(said)
                record = Record(seq + 1, kind, body, link_of(previous, kind, body))
                os.write(file, line_of(record))
                os.fsync(file)
                return record, said
        except OSError as error:
            raise StoreFault(f"the sitting could not be recorded: {error.strerror or error}") from None

    def blob(self, digest: str) -> bytes:
        """Return the bytes with this hash. Raises: CorruptJournal when they are missing or others."""
        try:
            data = zlib.decompress(self._blob_path(digest).read_bytes())
        except (OSError, zlib.error) as error:
            raise CorruptJournal(
                f"the bytes {digest[:16]}… of a sitting are missing or broken: {type(error).__name__}"
            ) from None
        if sha256_hex(data) != digest:
            raise CorruptJournal(f"the bytes {digest[:16]}… of a sitting are not the ones that were recorded")
        return data

    def sheet(self, digest: str, name: str) -> Sheet | None:
        """A sheet that was captured for a sitting; none where it was not. Raises: CorruptJournal."""
        return read_sheet(self.blob(digest), name) if self._blob_path(digest).is_file() else None

    def _blob_path(self, digest: str) -> Path:
        return self._folder / "blobs" / f"{digest}.z"

    @contextmanager
    def _locked(self) -> Iterator[int]:
        file = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def _who(stack: Stack) -> dict[str, str]:
    """The fields of a line that name who sat."""
    return {"provider": stack.provider, "model": stack.model, "harness_sha256": stack.harness_sha256}


def _begins(record: Record, body: Mapping[str, Any]) -> bool:
    """Whether a line is the first of a sitting; the first edition wrote one line a sitting."""
    return record.kind == BEGUN or (record.kind == KIND and body["schema"] == FIRST_SCHEMA)


# --- writing ----------------------------------------------------------------------------------------------------------


def begun_of(
    name: str, candidate: Candidate, sheets: Sequence[Sheet], published: Sequence[Sheet], ts_ms: int
) -> dict[str, Any]:
    """Who sits, on which harness, and which turns."""
    stack = candidate.stack
    return {
        "schema": SCHEMA,
        "sitting": name,
        "ts_ms": ts_ms,
        "date": datetime.fromtimestamp(ts_ms // 1_000, UTC).strftime("%Y-%m-%d"),
        "provider": stack.provider,
        "model": stack.model,
        "harness": candidate.harness,
        "harness_sha256": stack.harness_sha256,
        "tools_sha256": stack.tools_sha256,
        "prompt_sha256": stack.prompt_sha256,
        "stack_sha256": stack.sha256,
        "limits": candidate.limits,
        "exam_sha256": exam_sha256(tuple(sheets)),
        "published_sha256": exam_sha256(tuple(published)),
        "fresh": len(sheets) > len(published),
        "exam_turns": len(sheets),
    }


def ended_of(begun: Sitting, sat: Sequence[SatTurn], blobs: dict[str, bytes]) -> dict[str, Any]:
    """A sitting that ended, with the bytes behind it."""
    turns = [_turn(place, turn, blobs) for place, turn in enumerate(sat, start=1)]
    reported = dict.fromkeys(turn.played.model_reported for turn in sat if turn.played.model_reported)
    orders = sum(
        len(read.orders) for turn in sat if isinstance(read := of_turn(turn.played, turn.sheet.orders_max), Decision)
    )
    found = verdict(sat, begun["exam_turns"])
    return {
        **begun,
        "model_reported": ", ".join(reported),
        "verdict": _verdict(found),
        "orders": orders,
        "turns": turns,
    }


def _interrupted(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is known of a sitting that has no end: the first check that had failed by then, if one had."""
    failed = next(((turn["turn"], check) for turn in turns for check in turn["checks"] if check["why"]), None)
    if failed is None:
        return _verdict(
            Verdict(INTERRUPTED, "", len(turns) + 1, f"it ended after {len(turns)} turns, none of which had failed")
        )
    return _verdict(
        Verdict(
            INTERRUPTED,
            failed[1]["check"],
            failed[0],
            f"it ended after {len(turns)} turns; {failed[1]['check']} had failed: {failed[1]['why']}",
        )
    )


def _verdict(found: Verdict) -> dict[str, Any]:
    return asdict(found) | {"reason": plain_text(found.reason, WHY_CHARS_MAX)}


def _turn(place: int, turn: SatTurn, blobs: dict[str, bytes]) -> dict[str, Any]:
    def kept(data: bytes) -> str:
        digest = sha256_hex(data)
        blobs[digest] = data
        return digest

    played = turn.played
    answer = None if played.answer is None else kept(played.answer.encode("utf-8", "surrogatepass"))
    return {
        "turn": place,
        "sheet": turn.sheet.name,
        "sheet_sha256": turn.sheet.sha256,
        "prompt_sha256": kept(turn.question.prompt.encode()),
        "deadline_ms": turn.question.deadline_ms,
        "outcome": played.outcome.value,
        "reason": plain_text(played.reason, WHY_CHARS_MAX),
        "answer_sha256": answer,
        "latency_ms": played.latency_ms,
        "wait_ms": played.wait_ms,
        "steps": [_step(step, kept) for step in played.steps],
        "tool_uses": [_use(use, kept) for use in played.tool_uses],
        "checks": [{"check": heard.check, "why": plain_text(heard.why, WHY_CHARS_MAX)} for heard in turn.heard],
    }


def _step(step: Step, kept: Any) -> dict[str, Any]:
    return {
        "request_sha256": kept(step.request),
        "answer_sha256": kept(step.answer),
        "latency_ms": step.latency_ms,
        "wait_ms": step.wait_ms,
        "stop": step.stop,
        "model_reported": step.model_reported,
        "usage": _counted(step.usage),
        "attempts": [
            {
                "reason": tried.reason, "latency_ms": tried.latency_ms, "wait_ms": tried.wait_ms,
                "answer_sha256": kept(tried.answer),
                "usage": _counted(tried.usage),
            }
            for tried in step.attempts
        ],
    }  # fmt: skip


def _counted(usage: Usage | None) -> dict[str, Any] | None:
    return None if usage is None else asdict(usage) | {"flags": list(usage.flags)}


def _use(use: ToolUse, kept: Any) -> dict[str, Any]:
    return {
        "step": use.step,
        "call": use.call,
        "id": use.id,
        "name": use.name,
        "arguments_sha256": kept(use.arguments_text.encode("utf-8", "surrogatepass")),
        "answer_sha256": kept(use.answer),
        "ok": use.ok,
        "reason": use.reason,
        "note": use.note,
        "latency_ms": use.latency_ms,
    }


# --- reading ----------------------------------------------------------------------------------------------------------


def exam_pass(record: Record, sitting: Sitting, sittings: int = 0) -> ExamPass:
    """What a passed sitting admits; `sittings` is how many the stack had sat by then."""
    named = ("sitting", "ts_ms", "provider", "model", "harness_sha256", "tools_sha256", "model_reported")
    fresh = bool(sitting.get("fresh", False))
    return ExamPass(
        sitting_sha256=record.link, fresh=fresh, sittings=sittings, **{name: sitting[name] for name in named}
    )


def heard_again(sitting: Sitting, sittings: Sittings, sheets: Sequence[Sheet]) -> tuple[Verdict, list[str]]:
    """Hear a recorded sitting's checks again, from its bytes and the exam's sheets; say what comes out otherwise.

    Raises: CorruptJournal when bytes are missing."""
    known = {sheet.sha256: sheet for sheet in sheets}
    edition = EDITIONS[sitting["schema"]]
    again, different = [], []
    for told in sitting["turns"]:
        sheet = known.get(told["sheet_sha256"]) or sittings.sheet(told["sheet_sha256"], told["sheet"])
        if sheet is None:
            return Verdict("", "", told["turn"], ""), [
                f"turn {told['turn']} was played on another sheet {told['sheet']} than the exam now has"
            ]
        played = turn_of(told, sittings)
        heard = hear(played, sheet, edition)
        told_why = {check["check"]: check["why"] for check in told["checks"]}
        different += [
            f"turn {told['turn']}: {one.check} is now {one.why or 'held'!r}, was {told_why.get(one.check) or 'held'!r}"
            for one in heard if plain_text(one.why, WHY_CHARS_MAX) != told_why.get(one.check)
        ]  # fmt: skip
        again.append(
            SatTurn(
                sheet,
                Question(sitting["sitting"], told["turn"] - 1, "", sheet.bundle, sheet.book, told["deadline_ms"]),
                played,
                heard,
            )
        )
    found = verdict(again, sitting["exam_turns"], edition)
    if sitting["verdict"]["standing"] != INTERRUPTED and _verdict(found) != dict(sitting["verdict"]):
        different.append(f"the verdict is now {found.standing}, was {sitting['verdict']['standing']}")
    return found, different


def turn_of(told: Mapping[str, Any], sittings: Sittings) -> Turn:
    """Rebuild a played turn from its record. Raises: CorruptJournal when bytes are missing."""
    answer = told["answer_sha256"]
    return Turn(
        outcome=Outcome(told["outcome"]),
        answer=None if answer is None else sittings.blob(answer).decode("utf-8", "surrogatepass"),
        reason=told["reason"],
        steps=tuple(
            Step(
                request=sittings.blob(step["request_sha256"]), answer=sittings.blob(step["answer_sha256"]),
                latency_ms=step["latency_ms"],
                wait_ms=step["wait_ms"], usage=_usage(step["usage"]), stop=step["stop"],
                model_reported=step["model_reported"],
            )
            for step in told["steps"]
        ),
        latency_ms=told["latency_ms"],
        wait_ms=told["wait_ms"],
        tool_uses=tuple(
            ToolUse(
                step=use["step"], call=use["call"], id=use["id"], name=use["name"],
                arguments_text=sittings.blob(use["arguments_sha256"]).decode("utf-8", "surrogatepass"),
                answer=sittings.blob(use["answer_sha256"]),
                ok=use["ok"], reason=use["reason"], note=use["note"], latency_ms=use["latency_ms"],
            )
            for use in told["tool_uses"]
        ),
    )  # fmt: skip


def _usage(told: Mapping[str, Any] | None) -> Usage | None:
    return None if told is None else Usage(**{**told, "flags": tuple(told["flags"])})


def _decoded(record: Record) -> dict[str, Any]:
    body = json.loads(record.body)
    known = {SCHEMA: (KIND, BEGUN, TURN, DRIFTED), SECOND_SCHEMA: (KIND, BEGUN, TURN, DRIFTED), FIRST_SCHEMA: (KIND,)}
    if record.kind not in known.get(body.get("schema"), ()):
        raise CorruptJournal(f"record {record.seq} of the exam is of none of {', '.join(known)}", record.seq)
    return body
