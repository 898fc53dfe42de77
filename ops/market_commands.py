"""The commands that look at a market outside any window: `referee board`, `referee token`, `referee pools`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

Answer = tuple[str, dict[str, object]]


Says = Callable[[argparse.Namespace, str, object], None]


def add_market(commands: argparse._SubParsersAction[argparse.ArgumentParser], say: Says) -> None:
    """Describe them; `say` answers as text or JSON."""
    board = commands.add_parser("board", help="print the whole board for an exact size: every row, its gas, proof and why not", allow_abbrev=False)
    board.add_argument("token", metavar="TOKEN", help="the token's address")
    board.add_argument("--spend", metavar="ETH", help="buy for exactly so much ETH, e.g. 0.05")
    board.add_argument("--sell", metavar="AMOUNT", help="sell exactly so many whole tokens, e.g. 120.5")
    _add(board, say, board_asked)
    token = commands.add_parser("token", help="tell the safety story of a token", allow_abbrev=False)
    token.add_argument("token", metavar="ADDRESS")
    _add(token, say, token_asked)
    pools = commands.add_parser("pools", help="list every known pool of a token, or the tokens of the network", allow_abbrev=False)
    pools.add_argument("token", nargs="?", metavar="TOKEN", help="the token's address; without it the tokens are listed, the deepest first")
    pools.add_argument("--all", action="store_true", dest="everything", help="every token instead of the 60 deepest")
    _add(pools, say, pools_asked)


def _add(command: argparse.ArgumentParser, say: Says, asks: Callable[[argparse.Namespace], Coroutine[Any, Any, Answer]]) -> None:
    command.add_argument("--network", metavar="NAME", help="robinhood or devnet; else the real chain where REFEREE_RPC_URLS is set, else the local one")
    command.add_argument("--json", action="store_true", help="answer with one JSON object")

    def does(asked: argparse.Namespace) -> int:
        say(asked, *asyncio.run(asks(asked)))
        return 0

    command.set_defaults(command=does)


def board_asked(asked: argparse.Namespace) -> Coroutine[Any, Any, Answer]:
    """`referee board`."""
    from ops import asking
    from ops.settings import load_settings
    from ops.width import text_width

    return asking.board_asked(load_settings(), asked.network, asked.token, asked.spend, asked.sell, text_width())


def token_asked(asked: argparse.Namespace) -> Coroutine[Any, Any, Answer]:
    """`referee token`."""
    from ops import asking
    from ops.settings import load_settings
    from ops.width import text_width

    return asking.token_asked(load_settings(), asked.network, asked.token, text_width())


def pools_asked(asked: argparse.Namespace) -> Coroutine[Any, Any, Answer]:
    """`referee pools`."""
    from ops import pools
    from ops.asking import token_typed
    from ops.settings import load_settings
    from ops.width import text_width

    if asked.token is None:
        return pools.tokens_asked(load_settings(), asked.network, asked.everything, text_width())
    return pools.pools_asked(load_settings(), asked.network, token_typed(asked.token), text_width())
