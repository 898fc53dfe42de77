"""The commands that test a real chain's node: `referee probe URL`, `referee truth URL`. Exit code 1 where something differs."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ops.settings import Settings

Answer = tuple[str, dict[str, object], bool]
"""Text, data, and whether all is as it should be."""
Says = Callable[[argparse.Namespace, str, object], None]


def add_chain(commands: argparse._SubParsersAction[argparse.ArgumentParser], say: Says) -> None:
    """Describe them; `say` answers as text or JSON."""
    probe = commands.add_parser("probe", help="test what a node can do, and whether the chain is what its file says", allow_abbrev=False)
    probe.add_argument("--rivals", default="", metavar="NAMES", help="also ask these rival routers for one quote, or `all`")
    _add(probe, say, probe_asked)
    truth = commands.add_parser("truth", help="run mined swaps of a chain again by simulation and say what differs", allow_abbrev=False)
    truth.add_argument("--swaps", type=_count, default=100, metavar="N", help="how many; 100 if left out")
    truth.add_argument("--from-block", type=_count, metavar="N", help="walk forward from this block; else back from the newest")
    truth.add_argument(
        "--wait", type=_count, metavar="SECONDS",
        help="follow new blocks for so long when those at hand are not enough; if left out not at all, on devnet until there are enough or no block comes",
    )  # fmt: skip
    _add(truth, say, truth_asked)


def _add(command: argparse.ArgumentParser, say: Says, asks: Callable[[argparse.Namespace], Coroutine[Any, Any, Answer]]) -> None:
    command.add_argument("url", metavar="URL", help="the node's address, with limits behind it as in REFEREE_RPC_URLS; never printed")
    command.add_argument("--network", metavar="NAME", help="robinhood or devnet; if left out devnet at the address of this home's own local chain, else robinhood")
    command.add_argument("--json", action="store_true", help="answer with one JSON object")

    def does(asked: argparse.Namespace) -> int:
        text, data, holds = asyncio.run(asks(asked))
        say(asked, text, data)
        return 0 if holds else 1

    command.set_defaults(command=does)


def probe_asked(asked: argparse.Namespace) -> Coroutine[Any, Any, Answer]:
    """`referee probe`."""
    from ledgers.clock import SystemClock
    from ops.probing import probed_node
    from ops.settings import load_settings
    from ops.width import text_width

    settings = load_settings()
    return probed_node(settings, asked.url, _network(settings, asked), asked.rivals, SystemClock(), text_width())


def truth_asked(asked: argparse.Namespace) -> Coroutine[Any, Any, Answer]:
    """`referee truth`."""
    from ledgers.clock import SystemClock
    from ops.reenacting import Wanted, truth_of_chain
    from ops.settings import load_settings
    from ops.width import text_width

    settings, wanted = load_settings(), Wanted(swaps=asked.swaps, from_block=asked.from_block, wait_s=asked.wait)
    return truth_of_chain(settings, asked.url, _network(settings, asked), wanted, SystemClock(), text_width(), tell=_say_beside)


def _network(settings: Settings, asked: argparse.Namespace) -> str:
    """The network that was named, else that of the address."""
    from ops.home_chain import network_of

    return asked.network or network_of(settings.home, asked.url.partition("|")[0].strip()) or "robinhood"


def _say_beside(text: str) -> None:
    print(f"referee: {text}", file=sys.stderr, flush=True)


def _count(text: str) -> int:
    count = int(text) if text.isdecimal() and len(text) <= 12 else 0
    if not 1 <= count:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, found {text[:20]!r}")
    return count
