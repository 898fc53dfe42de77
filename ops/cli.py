"""The command: `referee`.

Exit codes: 0 fine · 1 found a difference, or a rule refused · 2 wrong use, a window file that cannot be played included ·
3 the outside world failed (node, disk, another daemon) · 4 the window was paused and is not sealed. Every error is one sentence on stderr.
Modules are imported where they are used, so that `referee --help` answers at once.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from ops.chain_commands import add_chain
from ops.market_commands import add_market

SENTENCE_BLANKS = 6
"""From so many blanks on, what a fault says is a sentence of its own and needs no machine word before it."""
FINE, DIFFERENT, WRONG_USE, OUTSIDE, PAUSED = 0, 1, 2, 3, 4
DESCRIPTION = "Referees trading agents: every order is proven by simulation, every score can be recomputed."
EPILOG = "exit codes: 0 fine · 1 found a difference or refused · 2 wrong use · 3 outside fault, or stopped by a second Ctrl-C · 4 paused, not sealed. Data: .referee/ or REFEREE_HOME."

Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows few letters gets question marks, not a failure
    whole = parser()
    asked = whole.parse_args(argv)
    if asked.command is None:
        whole.print_help()
        return FINE
    try:
        code = asked.command(asked)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read us has gone; say nothing at exit
        return FINE
    except KeyboardInterrupt:
        if asked.command is run_window:
            return complain("stopped at once; `referee run --resume` takes the window up where its journal ends", OUTSIDE)
        return complain("stopped", OUTSIDE)
    except Exception as error:  # noqa: BLE001 the last edge: nobody is shown a traceback
        return complain(*sentence_for(error))


def _open_what_is_closed() -> None:
    """Give a process that was started without standard input, output or error one that goes nowhere.

    Else the next file that is opened, the journal, would take that number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            os.dup2(handle, number)
            if handle != number:
                os.close(handle)
            setattr(sys, name, open(number, mode, closefd=False))


def sentence_for(error: BaseException) -> tuple[str, int]:
    """Turn an exception into one sentence and an exit code."""
    from ledgers.errors import Corrupt, Fault, RefereeError
    from ledgers.plain_text import plain_text

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    said = plain_text(str(error), 600)
    if isinstance(error, Corrupt):
        return f"the record does not hold: {said}", DIFFERENT
    if isinstance(error, Fault):
        message = getattr(error, "message", "")
        if message.startswith("lane node"):
            return f"the node that was named does not answer as it should ({said})", OUTSIDE
        if message.startswith("lane lane-"):
            return f"no node answers as it should ({said}); lanes are the addresses of REFEREE_RPC_URLS by their place", OUTSIDE
        return plain_text(message, 600) if message.count(" ") >= SENTENCE_BLANKS else said, OUTSIDE
    if type(error).__name__ == "Refused":
        return said, DIFFERENT
    if isinstance(error, RefereeError):
        return said, WRONG_USE
    if isinstance(error, OSError):
        return plain_text(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", 600), OUTSIDE
    if os.environ.get("REFEREE_TRACE"):
        raise error
    return f"this is a bug of referee ({type(error).__name__}: {said}); REFEREE_TRACE=1 shows where", OUTSIDE


def complain(sentence: str, code: int) -> int:
    """Say one sentence on stderr."""
    with contextlib.suppress(OSError):  # the terminal may be gone; the exit code is not
        print(f"referee: {sentence}", file=sys.stderr, flush=True)
    return code


# --- what can be asked ----------------------------------------------------------------------------------------------


class OneSentence(argparse.ArgumentParser):
    """Says in one sentence what does not fit, and where to look."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USE, f"referee: {message}; `{self.prog} --help` says what can be asked\n")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"referee {version('referee')}")
        parser.exit(FINE)


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    whole = OneSentence(prog="referee", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    whole.add_argument("--version", action=_Version, nargs=0, help="print the version")
    whole.set_defaults(command=None)
    commands = whole.add_subparsers(title="commands", metavar="COMMAND")
    _add_playing(commands)
    _add_reading(commands)
    add_market(commands, say)
    add_chain(commands, say)
    _add_exam(commands)
    return whole


def _add_playing(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser("run", help="play a window and write its report", allow_abbrev=False)
    run.add_argument("window", nargs="?", type=Path, metavar="WINDOW.toml")
    run.add_argument("--resume", nargs="?", const="", metavar="WINDOW", help="go on with the last window that was paused or killed, or with this one")
    run.add_argument("--accept-code-change", action="store_true", help="go on although the code is not the one that opened the window; recorded")
    run.add_argument("--plain", action="store_true", help="one line an event instead of the live view")
    run.add_argument("--metrics", type=_port, metavar="PORT", help="offer Prometheus metrics on this loopback port")
    run.set_defaults(command=run_window)
    check = commands.add_parser("check", help="say whether a window file can be played", allow_abbrev=False)
    check.add_argument("window", type=Path, metavar="WINDOW.toml")
    _add_json(check, check_window)
    devnet = commands.add_parser("devnet", help="the local chain alone", allow_abbrev=False)
    devnet.add_argument("action", choices=("up", "status", "down"))
    _add_json(devnet, devnet_alone)


def _add_reading(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    _add_json(commands.add_parser("runs", help="list windows and runs", allow_abbrev=False), list_runs)
    show = commands.add_parser("show", help="tell a run, or the whole story of one of its orders", allow_abbrev=False)
    show.add_argument("run", metavar="RUN")
    show.add_argument("--order", metavar="N", help="the order's number in the run, or tick/index")
    _add_json(show, show_run)
    turn = commands.add_parser("turn", help="tell one turn of a run: steps, tools, tokens, seconds, decision", allow_abbrev=False)
    turn.add_argument("run", metavar="RUN")
    turn.add_argument("turn", metavar="N", help="the tick, from 0, or `plan`")
    _add_json(turn, tell_turn)
    verify = commands.add_parser("verify", help="check every link of a journal", allow_abbrev=False)
    verify.add_argument("name", metavar="RUN|WINDOW|FILE")
    _add_json(verify, verify_chain)
    replay = commands.add_parser("replay", help="compute ledgers and scores again from the journal, without network", allow_abbrev=False)
    replay.add_argument("name", metavar="RUN|WINDOW|FILE")
    _add_json(replay, replay_journal)
    prove = commands.add_parser("prove", help="run what fills, gates and liquidations stand on again from their witnesses, without network", allow_abbrev=False)
    prove.add_argument("name", metavar="RUN|WINDOW")
    prove.add_argument("--hashes", type=Path, metavar="FILE", help="believe these block hashes alone: a number and a hash on each line")
    _add_json(prove, prove_fills)
    export = commands.add_parser("export", help="write a journal as JSON lines", allow_abbrev=False)
    export.add_argument("name", metavar="RUN|WINDOW")
    export.add_argument("-o", "--output", type=Path, metavar="FILE", help="to this file instead of standard output")
    export.set_defaults(command=export_journal)
    report = commands.add_parser("report", help="write the report of a sealed window again", allow_abbrev=False)
    report.add_argument("name", metavar="WINDOW")
    _add_json(report, report_window)
    _add_json(commands.add_parser("rules", help="print the rules with source, value and proving test", allow_abbrev=False), print_rules)


def _add_exam(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    exam = commands.add_parser("exam", help="sit, list, show, replay and capture the entrance exam", allow_abbrev=False)
    asked = exam.add_subparsers(title="actions", metavar="ACTION", required=True)
    sit = asked.add_parser("sit", help="let a model sit the exam under the limits of a harness (0 passed, 1 failed, 3 not sat)", allow_abbrev=False)
    sit.add_argument("--model", required=True, metavar="NAME")
    sit.add_argument("--harness", required=True, metavar="NAME")
    sit.add_argument("--prompt", metavar="NAME", help="another prompt than a window's usual one")
    sit.add_argument("--fresh", action="store_true", help="sit three turns more, captured now from a chain that nobody has seen")
    _add_json(sit, sit_exam)
    _add_json(asked.add_parser("list", help="list every sitting", allow_abbrev=False), list_sittings)
    show = asked.add_parser("show", help="show the sittings as a table, or one of them whole", allow_abbrev=False)
    show.add_argument("sitting", nargs="?", metavar="SITTING")
    _add_json(show, show_sitting)
    replay = asked.add_parser("replay", help="hear a sitting's checks again, without network", allow_abbrev=False)
    replay.add_argument("sitting", metavar="SITTING")
    _add_json(replay, replay_sitting)
    _add_json(asked.add_parser("turns", help="say which turns the exam has", allow_abbrev=False), list_exam_turns)
    capture = asked.add_parser("capture", help="keep one turn of a run of the local chain as an exam turn", allow_abbrev=False)
    capture.add_argument("run", metavar="RUN")
    capture.add_argument("--turn", type=int, required=True, metavar="N", help="the tick, from 0")
    capture.add_argument("--name", metavar="NAME", help="the sheet's name")
    capture.add_argument("--purpose", default="", metavar="WORDS", help="why this turn is in the exam")
    capture.add_argument("-o", "--output", type=Path, metavar="FILE")
    _add_json(capture, capture_turn)


def _add_json(command: argparse.ArgumentParser, does: Command) -> None:
    command.add_argument("--json", action="store_true", help="answer with one JSON object")
    command.set_defaults(command=does)


def _port(text: str) -> int:
    port = int(text) if text.isdecimal() else 0
    if not 1 <= port <= 65_535:
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535, found {text[:20]!r}")
    return port


def say(asked: argparse.Namespace, text: str, data: object) -> None:
    """Answer as text, or as JSON when that was asked for."""
    if asked.json:
        import json

        text = json.dumps(data, ensure_ascii=False, indent=2)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


# --- play -----------------------------------------------------------------------------------------------------------


def run_window(asked: argparse.Namespace) -> int:
    """`referee run`."""
    from ops.playing import Asked, play
    from ops.reading import WrongUse
    from ops.settings import load_settings

    if (asked.window is None) == (asked.resume is None):
        raise WrongUse("name a window file to play, or --resume to go on with the one that was interrupted, and not both")
    settings = load_settings()
    sealed = play(
        settings,
        Asked(
            file=asked.window,
            window_id=asked.resume or None,
            accept_code_change=asked.accept_code_change,
            plain=asked.plain,
            metrics_port=asked.metrics or settings.metrics_port,
        ),
    )
    return FINE if sealed else PAUSED


def check_window(asked: argparse.Namespace) -> int:
    """`referee check`."""
    from ledgers.clock import SystemClock
    from ops.checking import checked
    from ops.settings import load_settings

    text, data, opens = checked(load_settings(), asked.window, SystemClock())
    say(asked, text, data)
    return FINE if opens else DIFFERENT


def devnet_alone(asked: argparse.Namespace) -> int:
    """`referee devnet`."""
    from ops.local_chain import steer
    from ops.settings import load_settings

    text, data, dead = steer(load_settings(), asked.action)
    say(asked, text, data)
    return OUTSIDE if dead else FINE


# --- read -----------------------------------------------------------------------------------------------------------


def list_runs(asked: argparse.Namespace) -> int:
    """`referee runs`."""
    from ops.lists import runs_list
    from ops.settings import load_settings
    from ops.width import text_width

    say(asked, *runs_list(load_settings(), text_width()))
    return FINE


def show_run(asked: argparse.Namespace) -> int:
    """`referee show`."""
    from ops import story, telling
    from ops.reading import WrongUse, journal_named, named_runs
    from ops.settings import load_settings
    from ops.width import text_width

    with journal_named(load_settings(), asked.run) as (journal, run_id):
        if run_id is None:
            raise WrongUse(f"{asked.run[:80]} is a window; `referee show RUN` tells one of its runs: {named_runs(story.runs_of(journal))}")
        told = story.read_run(journal, run_id)
    if told is None:
        raise WrongUse(f"no run named {asked.run[:80]!r}; `referee runs` lists them")
    if asked.order is None:
        say(asked, telling.run_text(told, text_width()), story.run_data(told))
        return FINE
    order = told.order(asked.order)
    if order is None:
        raise WrongUse(f"{told.run_id} has no order {asked.order[:40]!r}; it has {len(told.orders)}, `referee show {told.run_id}` lists them")
    say(asked, telling.order_text(told, order, text_width()), story.order_data(told, order))
    return FINE


def tell_turn(asked: argparse.Namespace) -> int:
    """`referee turn`."""
    from ops.reading import WrongUse, journal_named
    from ops.settings import load_settings
    from ops.turn_story import PLAN_TICK, read_turn, turn_data, turn_text
    from ops.width import text_width

    if asked.turn != "plan" and not asked.turn.isdecimal():
        raise WrongUse(f"a turn is a number from 0 or `plan`, found {asked.turn[:20]!r}")
    with journal_named(load_settings(), asked.run) as (journal, run_id):
        if run_id is None:
            raise WrongUse(f"{asked.run[:80]} is a window; name one of its runs, `referee runs` lists them")
        story = read_turn(journal, run_id, PLAN_TICK if asked.turn == "plan" else int(asked.turn))
        say(asked, turn_text(story, journal, text_width()), turn_data(story))
    return FINE


def verify_chain(asked: argparse.Namespace) -> int:
    """`referee verify`."""
    from ledgers.seal import Standing, verify_export, verify_journal
    from ops.reading import WrongUse, is_file_name, journal_named
    from ops.settings import load_settings

    if is_file_name(asked.name):
        if not Path(asked.name).is_file():
            raise WrongUse(f"there is no file {asked.name[:200]!r} to verify")
        verdict = verify_export(Path(asked.name))
    else:
        with journal_named(load_settings(), asked.name) as (journal, _):
            verdict = verify_journal(journal)
    data = {"standing": verdict.standing.value, "seq": verdict.seq, "root": verdict.root, "first_bad_seq": verdict.first_bad_seq, "message": verdict.message}
    say(asked, f"{verdict.standing.value}: {verdict.message}", data)
    return FINE if verdict.standing is Standing.COMPLETE else DIFFERENT


def replay_journal(asked: argparse.Namespace) -> int:
    """`referee replay`."""
    from ops.replaying import replayed
    from ops.settings import load_settings

    text, data, equal = replayed(load_settings(), asked.name)
    say(asked, text, data)
    return FINE if equal else DIFFERENT


def prove_fills(asked: argparse.Namespace) -> int:
    """`referee prove`."""
    from ops.proving import proved
    from ops.settings import load_settings

    text, data, holds = proved(load_settings(), asked.name, asked.hashes)
    say(asked, text, data)
    return FINE if holds else DIFFERENT


def export_journal(asked: argparse.Namespace) -> int:
    """`referee export`."""
    from ledgers.seal import export
    from ops.reading import journal_named
    from ops.settings import load_settings

    with journal_named(load_settings(), asked.name) as (journal, _):
        count = export(journal, asked.output or sys.stdout.buffer)
    if asked.output:
        print(f"{count} records written to {asked.output}")
    return FINE


def report_window(asked: argparse.Namespace) -> int:
    """`referee report`."""
    from ops.lost_report import reported
    from ops.settings import load_settings

    say(asked, *reported(load_settings(), asked.name))
    return FINE


def print_rules(asked: argparse.Namespace) -> int:
    """`referee rules`."""
    from ops.rules import rules_list
    from ops.width import text_width

    say(asked, *rules_list(text_width()))
    return FINE


# --- the entrance exam ----------------------------------------------------------------------------------------------


def sit_exam(asked: argparse.Namespace) -> int:
    """`referee exam sit`."""
    from ops.exam_cli import sat
    from ops.settings import load_settings

    text, sitting = sat(load_settings(), asked.model, asked.harness, asked.prompt, asked.fresh)
    say(asked, text, sitting)
    return {"pass": FINE, "fail": DIFFERENT}.get(sitting["verdict"]["standing"], OUTSIDE)


def list_sittings(asked: argparse.Namespace) -> int:
    """`referee exam list`."""
    from ops.exam_cli import listed
    from ops.settings import load_settings

    say(asked, *listed(load_settings()))
    return FINE


def show_sitting(asked: argparse.Namespace) -> int:
    """`referee exam show`."""
    from ops.exam_cli import shown
    from ops.settings import load_settings

    say(asked, *shown(load_settings(), asked.sitting))
    return FINE


def replay_sitting(asked: argparse.Namespace) -> int:
    """`referee exam replay`."""
    from ops.exam_cli import replayed
    from ops.settings import load_settings

    text, data, equal = replayed(load_settings(), asked.sitting)
    say(asked, text, data)
    return FINE if equal else DIFFERENT


def list_exam_turns(asked: argparse.Namespace) -> int:
    """`referee exam turns`."""
    from ops.exam_cli import exam_list

    say(asked, *exam_list())
    return FINE


def capture_turn(asked: argparse.Namespace) -> int:
    """`referee exam capture`."""
    from ops.exam_cli import captured
    from ops.settings import load_settings

    name = asked.name or f"{asked.run}-{asked.turn}"
    say(asked, *captured(load_settings(), asked.run, asked.turn, name, asked.purpose, asked.output))
    return FINE


if __name__ == "__main__":
    sys.exit(main())
