"""The exam as a person sits, lists, shows, replays and captures it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from exam.checks import CHECKS, output_text
from exam.entrance import FAIL, NOT_SAT, PASS, Candidate, SatTurn, sit
from exam.hints import hint_of
from exam.kept_tools import KeptTools
from exam.record import INTERRUPTED, Sitting, Sittings, heard_again, turn_of
from exam.sheets import Sheet, every_sheet, exam_sha256, exam_sheets
from harnesses.manifest import Harness, load_harness
from harnesses.outcome import ToolUse
from harnesses.question import Question
from harnesses.tools import Toolbox
from ledgers.clock import Clock, SystemClock
from ledgers.plain_text import plain_text
from ledgers.report import Basis, Column, Table
from ledgers.whole_file import write_whole
from ops.capturing import capture
from ops.costs import UsageTold, cost_text, tokens_text, usages_cost
from ops.fresh_exam import fresh_sheets
from ops.lines import counted
from ops.models import Models, limits_told, model_stack, sittings_of
from ops.reading import WrongUse, journal_named
from ops.settings import Settings
from ops.width import text_width
from prompts.library import load_prompt
from referee.onchain.toolbox import specs_of
from referee.onchain.window import PROMPT, ModelAsked

HASH_SHOWN = 12
TEXT_CHARS_MAX = 2_000
TOOLS_ANSWER_BYTES = 20_000
"""What the tools that a model uses on a turn answer together, as models were seen to use them."""
CLAIM = "tells ability to play, not skill"
LIST_COLUMNS = (
    Column("sitting", "sitting"), Column("date", "date"), Column("model", "model"), Column("model_reported", "calls itself"),
    Column("harness", "harness"), Column("harness_sha256", "identity"), Column("verdict", "verdict"), Column("turns", "turns"), Column("steps", "steps"),
    Column("tool_uses", "tools"), Column("tokens", "tokens"), Column("latency_s", "seconds"), Column("cost", "list price"),
)  # fmt: skip
TURN_COLUMNS = (
    Column("turn", "turn"), Column("sheet", "sheet"), Column("purpose", "purpose"), Column("captured", "captured from"),
    Column("answers", "tool answers"), Column("sha256", "sha256"),
)  # fmt: skip
STANDING_WORDS = {PASS: "passed", FAIL: "failed", NOT_SAT: "not sat", INTERRUPTED: "interrupted"}


# --- sit ----------------------------------------------------------------------------------------------------------------


def sat(settings: Settings, model: str, harness_name: str, prompt_name: str | None = None, fresh: bool = False) -> tuple[str, Sitting]:
    """Sit the exam and record it; each turn is told on stderr as it ends. With `fresh`, new turns are captured and sat too.

    Raises: WrongUse, BadSettings, StoreFault, CorruptJournal."""
    prompt_name = prompt_name or PROMPT
    try:
        harness, prompt = load_harness(harness_name), load_prompt(prompt_name)
        harness.model_manifest  # noqa: B018 a harness without a model has no exam
        stack = model_stack("candidate", ModelAsked(model=model, harness=harness_name, prompt=prompt_name, plan=None), harness)
    except ValueError as error:
        raise WrongUse(str(error)) from None
    manifest = harness.model_manifest
    candidate = Candidate(stack=stack, harness=harness_name, prompt=prompt.text, limits=limits_told(manifest), turn_ms_max=manifest.limits.turn_ms_max)
    settings.provider_address(manifest.provider.name)  # said before anything is asked or captured
    clock, sheets = SystemClock(), exam_sheets()
    if not sheets:
        raise WrongUse("the exam has no turns; capture some with `referee exam capture`")
    _tell(f"the exam needs about {context_tokens(prompt.text, sheets):,} tokens of context; a host that takes fewer fails it")
    if fresh:
        _tell("capturing three fresh turns from a chain that was never played before; this takes about two minutes")
        sheets = (*sheets, *fresh_sheets(clock))
    sitting = asyncio.run(_sit(settings, candidate, harness, sheets, clock))
    return sitting_text(sitting, sittings_of(settings)), sitting


def _tell(text: str) -> None:
    print(f"referee: {text}", file=sys.stderr, flush=True)


async def _sit(settings: Settings, candidate: Candidate, harness: Harness, sheets: Sequence[Sheet], clock: Clock) -> Sitting:
    sittings, models, places = sittings_of(settings), Models(settings, clock), iter(range(1, len(sheets) + 1))
    try:
        provider = models.provider(candidate.stack.model, harness, harness.model_manifest.limits.live, kept_tools(sheets, harness))
    except ValueError as error:
        raise WrongUse(str(error)) from None
    begun = sittings.begin(candidate, sheets, exam_sheets(), clock.now_ms())
    name = begun["sitting"]

    def heard(turn: SatTurn) -> None:
        sittings.turn(begun, next(places), turn)
        print(f"{name}: {_turn_line(turn)}", file=sys.stderr, flush=True)

    try:
        models.expect(harness, name)
        await models.open()
        return sittings.end(begun, await sit(candidate, provider, sheets, clock, name, heard))
    finally:
        await models.close()


def kept_tools(sheets: Sequence[Sheet], harness: Harness) -> Any:
    """Lay out a sheet's own tools for its turn, under the harness's live allowance."""
    manifest = harness.model_manifest

    def tools(question: Question) -> Toolbox:
        return KeptTools(sheets[question.tick], specs_of(manifest.tools), manifest.limits.quotes_live_max)

    return tools


def _turn_line(turn: SatTurn) -> str:
    failed = next((heard for heard in turn.heard if not heard.holds), None)
    how = "holds all ten checks" if failed is None else f"{failed.check}: {plain_text(failed.why, 160)}"
    played = turn.played
    return f"turn {turn.question.tick + 1} ({turn.sheet.name}) {played.outcome} after {counted(len(played.steps), 'step')}, {counted(len(played.tool_uses), 'tool call')}, {played.latency_ms / 1_000:.1f} s: {how}"


# --- list, show, replay -----------------------------------------------------------------------------------------------


def listed(settings: Settings) -> tuple[str, Any]:
    """List every sitting. Raises: CorruptJournal."""
    sittings = sittings_of(settings)
    found = [sitting for _, sitting in sittings.all()]
    if not found:
        return f"nobody has sat the exam in {settings.home} yet; `referee exam sit --model … --harness …`", []
    basis = Basis(label="entrance exam", n=len(found), of="sittings", claim=CLAIM)
    table = Table(
        name="sittings", title="sittings", basis=basis, columns=LIST_COLUMNS, rows=tuple(_list_row(sitting) for sitting in found), note=_list_note(found)
    )
    return table.text(text_width()), found


def _list_row(sitting: Sitting) -> tuple[str, ...]:
    turns = sitting["turns"]
    usages = [used for turn in turns for step in turn["steps"] for used in _usages(step)]
    return (
        sitting["sitting"], sitting["date"], plain_text(sitting["model"], 40), plain_text(sitting["model_reported"], 40) or "–", sitting["harness"],
        sitting["harness_sha256"][:HASH_SHOWN], _standing_text(sitting, 60), f"{len(turns)} of {sitting['exam_turns']}", str(sum(len(turn["steps"]) for turn in turns)),
        str(sum(len(turn["tool_uses"]) for turn in turns)), tokens_text(usages), f"{sum(turn['latency_ms'] for turn in turns) / 1_000:.1f}",
        cost_text(usages_cost(sitting["model"], usages)),
    )  # fmt: skip


def _list_note(found: Sequence[Sitting]) -> str:
    counts = [f"{sum(sitting['verdict']['standing'] == standing for sitting in found)} {word}" for standing, word in STANDING_WORDS.items()]
    return f"{counted(len(found), 'sitting')}: {', '.join(counts)}. An outage is not sat, never a failure."


def verdict_text(verdict: Mapping[str, Any], chars_max: int = 300) -> str:
    """Say a verdict in one line."""
    if verdict["standing"] == FAIL:
        return plain_text(f"fail: {verdict['check']}, turn {verdict['turn']}", chars_max)
    if verdict["standing"] == INTERRUPTED:
        return plain_text(f"interrupted: {verdict['reason']}", chars_max)
    return plain_text(f"not sat: {verdict['reason']}", chars_max) if verdict["standing"] == NOT_SAT else verdict["standing"]


def _standing_text(sitting: Sitting, chars_max: int = 300) -> str:
    """A verdict, with what qualifies a pass beside it."""
    text = verdict_text(sitting["verdict"], chars_max)
    if sitting["verdict"]["standing"] != PASS:
        return text
    idle = ", no order placed" if sitting.get("orders") == 0 else ""
    return f"{text}{' on fresh turns too' if sitting.get('fresh') else ''}{idle}"


def shown(settings: Settings, name: str | None) -> tuple[str, Any]:
    """Show one sitting, or all as a table. Raises: WrongUse, CorruptJournal."""
    if name is None:
        return listed(settings)
    sitting = _named(sittings_of(settings), name)
    return sitting_text(sitting, sittings_of(settings)), sitting


def sitting_text(sitting: Sitting, sittings: Sittings) -> str:
    """Tell one sitting: who, under which limits, and every check of every turn."""
    head = f"{sitting['sitting']} · {plain_text(sitting['model'], 80)} on {sitting['harness']} · {_standing_text(sitting)}"
    limits = sitting["limits"]
    lines = [
        head, "═" * len(head),
        f"date      {sitting['date']}, exam {sitting['exam_sha256'][:HASH_SHOWN]}…, {'published and fresh turns' if sitting.get('fresh') else 'published turns'}",
        f"model     {plain_text(sitting['model'], 80)} by {sitting['provider']}; it calls itself {plain_text(sitting['model_reported'], 120) or 'nothing'}",
        f"harness   {sitting['harness']}, {sitting['harness_sha256'][:HASH_SHOWN]}…, tools {sitting['tools_sha256'][:HASH_SHOWN]}…, prompt {sitting['prompt_sha256'][:HASH_SHOWN]}…",
        f"limits    {limits.get('steps_max', '–')} steps, {limits.get('turn_ms_max', 0) // 1_000} s, {limits.get('output_tokens_max', 'uncounted')} output tokens, {limits.get('quotes_live_max', '–')} quotes a turn",
    ]  # fmt: skip
    for turn in sitting["turns"]:
        lines += ["", *_sat_turn_text(sitting, turn, sittings)]
    if sitting["verdict"]["reason"]:
        lines += ["", f"why       {sitting['verdict']['reason']}"]
    return "\n".join(lines) + "\n"


def _sat_turn_text(sitting: Sitting, told: Mapping[str, Any], sittings: Sittings) -> list[str]:
    usages = [used for step in told["steps"] for used in _usages(step)]
    played = turn_of(told, sittings)
    checks = {check["check"]: check["why"] for check in told["checks"]}
    lines = [
        f"turn {told['turn']}    {told['sheet']}: {told['outcome']} in {told['latency_ms'] / 1_000:.1f} s, waited {told['wait_ms'] / 1_000:.1f} s, "
        f"{counted(len(told['steps']), 'step')}, {counted(len(told['tool_uses']), 'tool call')}",
        f"tokens    {tokens_text(usages)}; {output_text(played)}; {cost_text(usages_cost(sitting['model'], usages))}",
        *(f"tool      step {use.step}: {use.name or '?'} {plain_text(use.arguments_text, 120)} → {'ok' if use.ok else _own_reason(use)}{f' ({use.note})' if use.note else ''}" for use in played.tool_uses),
        *(f"{'  holds' if not checks.get(name) else '  FAILS'}   {name}{f': {checks[name]}' if checks.get(name) else ''}" for name in CHECKS),
    ]
    failing = any(checks.values())
    if failing and (first := next((use for use in played.tool_uses if not use.ok), None)) is not None:
        lines.append(f"first     step {first.step}: {first.name or '?'} was refused: {_own_reason(first)}")
    if failing and (hint := hint_of(played)):
        lines.append(f"hint      {hint}")
    if played.answer is not None:
        lines.append(f"answer    {plain_text(played.answer, 400)}")
    return lines


def _own_reason(use: ToolUse) -> str:
    """Why a tool did not do what it was asked, in its own words."""
    try:
        detail = json.loads(use.answer).get("detail", "")
    except (ValueError, RecursionError, AttributeError):
        detail = ""
    return f"{use.reason}: {plain_text(str(detail), 200)}" if detail else use.reason


def context_tokens(prompt: str, sheets: Sequence[Sheet]) -> int:
    """About how much context a turn of the exam needs: its longest opening and what a few tools answer.

    Units: tokens, at two bytes each, as addresses and digits come to; rounded up to a thousand."""
    opening = max(len(prompt.encode()) + len(sheet.bundle) + len(sheet.book) for sheet in sheets)
    return -(-(opening + TOOLS_ANSWER_BYTES) // (2 * 1_000)) * 1_000


def replayed(settings: Settings, name: str) -> tuple[str, Any, bool]:
    """Hear a sitting's checks again from its bytes. Raises: WrongUse, CorruptJournal."""
    sittings = sittings_of(settings)
    sitting = _named(sittings, name)
    found, different = heard_again(sitting, sittings, every_sheet())
    data = {"sitting": name, "equal": not different, "standing": found.standing, "different": different}
    if different:
        why = "comes out otherwise" if found.standing else "cannot be heard again, the exam has changed since"
        return "\n".join([f"{name} {why}:", *different]), data, False
    return f"{name}: {counted(len(sitting['turns']), 'turn')} judged again from their bytes, {verdict_text(sitting['verdict'])} as recorded", data, True


def _named(sittings: Sittings, name: str) -> Sitting:
    found = sittings.find(name)
    if found is None:
        raise WrongUse(f"no sitting named {name[:40]!r}; `referee exam list` lists them")
    return found[1]


# --- capture ------------------------------------------------------------------------------------------------------------


def captured(settings: Settings, run: str, tick: int, name: str, purpose: str, path: Path | None) -> tuple[str, Any]:
    """Capture one turn as an exam sheet. Raises: WrongUse, ChainFault, CorruptJournal, StoreFault."""
    with journal_named(settings, run) as (journal, run_id):
        if run_id is None:
            raise WrongUse(f"{run[:80]} is a window; name one of its runs, `referee runs` lists them")
        sheet = asyncio.run(capture(journal, run_id, tick, name, purpose, SystemClock()))
    target = path or Path(f"{name}.json")
    write_whole(target, sheet.encoded)
    refused = sum(not answer.ok for answer in sheet.answers)
    data = {"sheet": name, "sha256": sheet.sha256, "path": str(target), "answers": len(sheet.answers), "refused": refused, "block": sheet.captured.block}
    return f"turn {tick} of {run_id} at block {sheet.captured.block}, {counted(len(sheet.answers), 'tool answer')}, written to {target}\nsha256 {sheet.sha256}", data


def exam_list() -> tuple[str, Any]:
    """Say what the exam is."""
    sheets = exam_sheets()
    rows = tuple((str(place), sheet.name, sheet.purpose, f"{sheet.captured.run_id} turn {sheet.captured.tick}", str(len(sheet.answers)), sheet.sha256[:HASH_SHOWN]) for place, sheet in enumerate(sheets, start=1))
    basis = Basis(label="entrance exam", n=len(sheets), of="turns", claim=CLAIM)
    context = context_tokens(load_prompt(PROMPT).text, sheets) if sheets else 0
    note = f"exam {exam_sha256(sheets)}; about {context:,} tokens of context are needed; checks: {', '.join(CHECKS)}"
    table = Table(name="exam", title="exam", basis=basis, columns=TURN_COLUMNS, rows=rows, note=note)
    return table.text(text_width()), [{"name": sheet.name, "purpose": sheet.purpose, "sha256": sheet.sha256} for sheet in sheets]


def _usages(step: Mapping[str, Any]) -> list[UsageTold]:
    """Tokens of a step and of the exchanges that broke before it."""
    broken = [tried["usage"] for tried in step["attempts"] if tried.get("usage")]
    return [*broken, step["usage"]]
