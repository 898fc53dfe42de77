"""The checking of a window file: what it would play, and what in it will not do what its author may think."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import orjson

from harnesses.scripted import ScriptLine, read_script
from ledgers.clock import Clock
from ops.assembly import network_named, seats
from ops.home_chain import DEVNET
from ops.lines import counted, plain
from ops.models import Models
from ops.rival_routers import LOCAL, strangers_to
from ops.settings import Settings
from referee.onchain.cadence import ticks_in
from referee.onchain.decision import Malformed, parse
from referee.onchain.events import OrderAsked
from referee.onchain.live import Seat
from referee.onchain.window import FRESH, BadWindow, StackPlan, Window, load_window

REMARKS_MAX = 20
POSITION = re.compile(r"(?P<run>w[0-9]{1,9}-(?P<stack>.+)-(?P<copy>[0-9]{1,9}))/(?P<tick>[0-9]{1,9})/[0-9]{1,9}", re.ASCII)
"""A position's id."""


def playable(settings: Settings, path: Path, clock: Clock) -> tuple[Window, dict[str, Seat]]:
    """Read a window file and seat its stacks. Raises: BadWindow naming the file, BadSettings."""
    window = load_window(path)
    try:
        network_named(window.network)
        return window, seats(window, "w0", Models(settings, clock))
    except BadWindow as error:
        raise BadWindow(f"{path.name}: {error}") from None


def checked(settings: Settings, path: Path, clock: Clock) -> tuple[str, dict[str, object], bool]:
    """Say whether a window file can be played, first of all, and what it would play. Raises: BadWindow, BadSettings.

    Shapes: text, data, and whether the window would open."""
    window, places = playable(settings, path, clock)
    network = network_named(window.network)
    ticks = ticks_in(window.length_ms, window.interval_ms)
    objections, remarks = [*_objections(settings, window), *_exam_objections(window, places)], [*_remarks(settings, window, ticks)]
    text = (
        f"{path.name} {'will not open' if objections else 'can be played'}: {counted(len(places), 'run')} of {counted(len(window.stacks), 'stack')} on {network.label}, "
        f"{counted(ticks, 'tick')} every {window.interval_ms // 1_000} s, for {window.length_ms // 1_000} s\nwindow file sha256 {window.sha256}"
    )
    data = _window_data(window, network.label, ticks, {seat.stack.name: seat.stack.sha256 for seat in places.values()})
    lines = [*(f"before it opens: {objection}" for objection in objections), *(f"note: {remark}" for remark in remarks[:REMARKS_MAX])]
    return "\n".join([text, *lines]), data | {"opens": not objections, "objections": objections, "notes": remarks}, not objections


def _objections(settings: Settings, window: Window) -> Iterator[str]:
    """What keeps a window from opening as things stand."""
    if window.network != DEVNET and not settings.lanes():
        yield f"network {window.network} needs REFEREE_RPC_URLS, the addresses of its nodes"


def _remarks(settings: Settings, window: Window, ticks: int) -> Iterator[str]:
    if strangers := strangers_to(settings, network_named(window.network)):
        yield f"REFEREE_RIVALS names {', '.join(strangers)}, which the local chain does not know; it has {' and '.join(LOCAL)}"
    if window.tokens is not None:
        yield f"whether its {counted(len(window.tokens), 'token')} can be traded on {window.network} is seen only when it is played; orders of others are refused"
    for stack in window.stacks:
        if stack.script is not None:
            yield from _script_remarks(window, stack, ticks)


def _exam_objections(window: Window, places: dict[str, Seat]) -> Iterator[str]:
    missing = {seat.stack.name: seat.stack for seat in places.values() if not seat.stack.exempt_from_exam and seat.exam_pass is None}
    for name, stack in missing.items():
        yield f"stack {name}: {plain(stack.model)} has no pass of the entrance exam on its harness: `referee exam sit` (ONC-13)"
    if window.exam == FRESH:
        for name, seat in {seat.stack.name: seat for seat in places.values() if seat.exam_pass and not seat.exam_pass.fresh}.items():
            assert seat.exam_pass is not None
            yield f"stack {name}: the window asks for a pass on fresh turns, and {seat.exam_pass.sitting} sat the published ones alone: `referee exam sit --fresh`"


def _script_remarks(window: Window, stack: StackPlan, ticks: int) -> Iterator[str]:
    script = read_script((stack.script or b"").decode())
    beyond = [tick for tick in sorted(script) if tick >= ticks]
    if beyond:
        yield f"stack {stack.name}: the script has lines for {_ticks(beyond)}, but the window's last tick is {ticks - 1}"
    for tick, line in sorted(script.items()):
        said = _answer(line)
        read = None if said is None else parse(said, window.ruled_by.orders_max)
        if isinstance(read, Malformed):
            yield f"stack {stack.name}: what the script says to tick {tick} is not a decision and will be recorded as malformed: {read.reason}: {read.detail}"
        elif read is not None:
            yield from (f"stack {stack.name}, tick {tick}: {remark}" for order in read.orders if (remark := _position_remark(stack, tick, order)))


def _position_remark(stack: StackPlan, tick: int, order: OrderAsked) -> str:
    """Say why a position that is to be closed can be none of the stack's own; which window it will be is not known before."""
    if not order.position:
        return ""
    named = POSITION.fullmatch(order.position)
    if named is None:
        return f"close-lp names {plain(order.position)!r}, and a position is RUN/TICK/INDEX, the order that opened it, such as w1-{stack.name}-1/0/0"
    if named["stack"] != stack.name or not 1 <= int(named["copy"]) <= stack.copies:
        return f"close-lp names a position of {plain(named['run'])}, which is no run of this stack; those are w…-{stack.name}-1" + (f" to {stack.copies}" if stack.copies > 1 else "")
    return f"close-lp names a position that is opened at tick {int(named['tick'])}, not before" if int(named["tick"]) >= tick else ""


def _answer(line: ScriptLine) -> str | None:
    """What a line answers; none when it is to fail on purpose."""
    return orjson.dumps(line.decision).decode() if line.decision is not None else line.answer


def _ticks(ticks: list[int]) -> str:
    return f"tick{'' if len(ticks) == 1 else 's'} {', '.join(map(str, ticks[:8]))}{' …' if len(ticks) > 8 else ''}"


def _window_data(window: Window, label: str, ticks: int, stacks: dict[str, str]) -> dict[str, object]:
    return {
        "name": window.name,
        "network": window.network,
        "label": label,
        "length_s": window.length_ms // 1_000,
        "interval_s": window.interval_ms // 1_000,
        "ticks": ticks,
        "board": window.board,
        "rules": window.rules,
        "seed": window.seed,
        "window_file_sha256": window.sha256,
        "stacks": [{"name": stack.name, "copies": stack.copies, "sha256": stacks[stack.name]} for stack in window.stacks],
    }
