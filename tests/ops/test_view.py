"""The view: fed only by events, plain without a terminal, and deaf to what hostile text tells a terminal to do."""

from __future__ import annotations

import asyncio
import io
import unicodedata
from dataclasses import replace

import pytest
from rich.console import Console

from ledgers.clock import VirtualClock
from ledgers.journal import MemoryJournal
from ops.tail import follow, tell
from ops.view import LiveScreen, PlainScreen, Screen, render, screen_for
from tests.ops.told import ONE, OPEN, first_tick, opening, told

JOURNAL = told()
UNFINISHED = told(ended=False)


class Terminal(io.StringIO):
    """A terminal that keeps what it is sent."""

    def isatty(self) -> bool:
        return True


def watched(screen: Screen, journal=JOURNAL) -> Screen:
    tell(journal, [screen.see], 0)
    return screen


def plain_text_of(journal=JOURNAL, since_ts_ms: int = 0) -> str:
    file = io.StringIO()
    watched(PlainScreen(journal, VirtualClock(OPEN), since_ts_ms, Console(file=file)), journal)
    return file.getvalue()


def drawn(width: int, height: int = 40, journal=UNFINISHED, now_ms: int = OPEN + 12_000) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False, markup=False)
    screen = watched(PlainScreen(journal, VirtualClock(now_ms), 10**15, console), journal)
    console.print(render(screen.scene, now_ms, width, height))
    return console.file.getvalue()


def unprintable(text: str) -> set[str]:
    return {character for character in text if character != "\n" and unicodedata.category(character) in {"Cc", "Cf"}}


def test_without_a_terminal_every_event_is_one_line_with_its_reason():
    text = plain_text_of()
    assert "random-1: bought 123.0000 PEPE·abab for 0.010000 ETH by v3 0.3% weth>token" in text
    assert "random-1: refused gate_flagged (ONC-08)" in text
    assert "hold-1: missed tick 1 (late)" in text
    assert "random-1: scores -30.0000 % (permissive -30.0000 %)" in text
    assert "hold-1: has no score: fault" in text


def test_what_holds_on_one_ledger_says_which():
    text = plain_text_of()
    assert "[headline] refused unprovable_exit (ONC-11): slot" in text
    assert "[permissive] bought 7 [bold]PAY me·cdcd" in text and "[BUY_UNPROVEN:slot]" in text
    assert "[permissive] no mark: slow; the last one stands" in text


def test_hostile_text_reaches_no_terminal_as_anything_but_letters():
    assert unprintable(plain_text_of()) == set()
    assert unprintable(drawn(200)) == set()


def test_hostile_markup_is_shown_not_obeyed():
    assert "[bold]PAY me·cdcd" in drawn(300)
    assert "[link=x]click[/link]" in drawn(300)


def test_past_events_are_not_said_again_on_resume():
    assert plain_text_of(since_ts_ms=OPEN + 61_001) == ""


def test_live_view_shows_clock_book_decision_counts_and_both_values():
    text = drawn(200)
    for said in ("w1", "devnet", "0:12 of 1:00", "tick 1 of 6", "block 102 by lane-1", "random-1", "0.029998", "123.0000 PEPE·abab", "-1.0000 %", "–"):
        assert said in text, said


@pytest.mark.parametrize("width", [40, 60, 80, 100, 130, 200])
def test_live_view_fits_any_width(width):
    assert max(map(len, drawn(width).splitlines())) <= width


def test_live_view_fits_a_low_terminal():
    assert len(drawn(100, height=16).splitlines()) <= 16


def test_window_that_has_not_opened_is_drawn():
    console = Console(file=io.StringIO(), width=80)
    screen = PlainScreen(JOURNAL, VirtualClock(OPEN), 0, console)
    console.print(render(screen.scene, OPEN, 80, 24))
    assert "opening" in console.file.getvalue()


COLOURS = {"TERM": "xterm-256color", "COLUMNS": "160", "LINES": "40"}


def screen_on(file: io.StringIO, environment: dict[str, str] = COLOURS, plain: bool = False) -> Screen:
    return screen_for(JOURNAL, VirtualClock(OPEN), 0, file, plain, environment)


def test_a_pipe_gets_plain_lines():
    assert type(screen_on(io.StringIO())) is PlainScreen


def test_a_terminal_gets_the_live_view_unless_plain_is_asked():
    assert type(screen_on(Terminal())) is LiveScreen
    assert type(screen_on(Terminal(), plain=True)) is PlainScreen


def test_a_dumb_terminal_gets_plain_lines():
    assert type(screen_on(Terminal(), {"TERM": "dumb"})) is PlainScreen


@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color_takes_the_colours_away(more, coloured):
    terminal = Terminal()
    with screen_on(terminal, COLOURS | more) as screen:
        watched(screen)
    assert ("\x1b[32m" in terminal.getvalue()) is coloured


def test_live_screen_gives_the_cursor_back():
    terminal = Terminal()
    with pytest.raises(RuntimeError), screen_on(terminal) as screen:
        watched(screen)
        raise RuntimeError
    assert terminal.getvalue().rstrip().endswith("\x1b[?25h")


async def test_tail_ends_at_the_seal():
    seen = []
    await asyncio.wait_for(follow(JOURNAL, VirtualClock(OPEN), [seen.extend]), 10)
    assert len(seen) == JOURNAL.head()[0]


async def test_tail_of_an_unfinished_window_goes_on_and_tells_the_rest_when_cancelled():
    seen, clock = [], VirtualClock(OPEN)
    task = asyncio.ensure_future(follow(UNFINISHED, clock, [seen.extend]))
    await clock.advance_to(OPEN + 10_000)
    assert not task.done() and len(seen) == UNFINISHED.head()[0]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(seen) == UNFINISHED.head()[0]


def test_run_counts_are_those_of_the_headline_ledger():
    screen = watched(PlainScreen(JOURNAL, VirtualClock(OPEN), 10**15, Console(file=io.StringIO())))
    assert dict(screen.scene.runs[ONE].counts) == {"filled": 1, "refused": 2}


def many(runs: int) -> MemoryJournal:
    """A window of many runs in which the first missed a tick."""
    journal = MemoryJournal("w1")
    window, one, _ = opening()
    opened = [replace(one, run_id=f"w1-random-{copy}", copy=copy) for copy in range(1, runs + 1)]
    asyncio.run(journal.append(window, *opened, *(event for event in first_tick() if event.run_id == ONE)))
    return journal


@pytest.mark.parametrize("height", [24, 40])
def test_many_runs_leave_room_for_events_and_say_how_many_are_hidden(height):
    text = drawn(120, height=height, journal=many(42))
    assert len(text.splitlines()) <= height
    assert "more runs: a higher terminal shows them" in text and "refused gate_flagged" in text and "no mark: slow" in text


def test_runs_that_fit_are_all_shown():
    assert "more run" not in drawn(120, height=40, journal=many(20))


def test_missed_ticks_are_no_orders_and_have_their_own_column():
    text = drawn(120)
    heading, hold = (next(line for line in text.splitlines() if said in line) for said in ("permissive", " hold-1 "))
    assert heading.split()[-5:] == ["filled", "not", "missed", "headline", "permissive"] and hold.split()[-5:-2] == ["0", "0", "1"]
