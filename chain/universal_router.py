"""UniversalRouter: a way over v4 pools, alone or mixed with v2 and v3, or a split over two ways, as one `execute`.

ETH is wrapped where a way begins in a pool of WETH and unwrapped where it ends in one. What is sold is paid through Permit2,
first and whole, and swapped as what came of it: tokens that take a fee on transfers can be sold like that. Hooks get no data.
Two shapes are on chains under one name: deployed as 2.1.1, every swap takes a least price of each hop; here there is none.
Source: Uniswap's universal-router and v4-periphery.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from chain import calldata
from chain.calldata import address_word, bytes_array, tail, word
from chain.candidates import Part
from chain.network import Network
from chain.paths import Hop, Path
from chain.pools import v4_key_words
from chain.swap_router import packed, tokens_of

V3_SWAP, V2_SWAP, WRAP, UNWRAP, V4_SWAP = "00", "08", "0b", "0c", "10"
"""Commands."""
SWAP_ONE, SETTLE, SETTLE_ALL, TAKE, TAKE_ALL = "06", "0b", "0c", "0e", "0f"
"""Actions of a v4 swap."""
SENDER, ROUTER = word(1), word(2)
"""The words for the sender and for the router itself, as recipients."""
USER_PAYS, ROUTER_PAYS = word(1), word(0)
OPEN_DELTA = 0
"""All that is owed or due, as an amount of a v4 action."""
ALL_HELD = 2**255
"""All that the router holds, as an amount."""
AMOUNT_V4_MAX = 2**128 - 1
DEADLINE_NEVER = 2**64 - 1

Command = tuple[str, str]
"""A command or action and its input, in hex."""


def universal_call(network: Network, side: str, parts: Sequence[Part]) -> str:
    """Encode `execute`: all of it arrives at the sender, of a sale as ETH."""
    commands = [command for part in parts for command in _commands(network, side, part)]
    if side == "sell" and any(part.path[-1].token_out == network.weth for part in parts):
        commands.append((UNWRAP, SENDER + word(0)))
    names, inputs = "".join(name for name, _ in commands), [given for _, given in commands]
    head = word(96) + word(160) + word(DEADLINE_NEVER)
    return f"0x{calldata.UNIVERSAL_EXECUTE}{head}{tail(names)}{bytes_array(inputs)}"


def _commands(network: Network, side: str, part: Part) -> Iterator[Command]:
    """One way: runs of pools of one version, each but the first fed with all that the one before left in the router."""
    runs = [tuple(run) for _, run in groupby(part.path, key=lambda hop: hop.pool.venue)]
    wrapped = side == "buy" and part.path[0].token_in == network.weth
    if wrapped:
        yield WRAP, ROUTER + word(part.amount)
    for place, run in enumerate(runs):
        last = place == len(runs) - 1
        to_sender = last and not (side == "sell" and run[-1].token_out == network.weth)
        amount = part.amount if place == 0 else ALL_HELD
        user_pays = place == 0 and not wrapped
        if run[0].pool.venue == "v4":
            yield V4_SWAP, _plan(_actions(network, run, amount, sold=side == "sell" and place == 0, user_pays=user_pays, to_sender=to_sender))
        else:
            yield _older(network, run, amount, user_pays=user_pays, to_sender=to_sender)


def _older(network: Network, run: Path, amount: int, *, user_pays: bool, to_sender: bool) -> Command:
    """A run of v2 or of v3 pools."""
    v2 = run[0].pool.venue == "v2"
    tokens = tokens_of(run)
    path = word(len(tokens)) + "".join(map(address_word, tokens)) if v2 else tail(packed(run))
    head = (SENDER if to_sender else ROUTER, word(amount), word(0))
    payer = USER_PAYS if user_pays else ROUTER_PAYS
    if not network.universal_router_hop_prices:
        given = (*head, word(5 * 32), payer, path)
    else:
        given = (*head, word(6 * 32), payer, word(6 * 32 + len(path) // 2), path, word(0))
    return V2_SWAP if v2 else V3_SWAP, "".join(given)


def _actions(network: Network, run: Path, amount: int, *, sold: bool, user_pays: bool, to_sender: bool) -> Iterator[Command]:
    """A run of v4 pools.

    What is bought with is settled after the swap, as much as it took; what is sold, or came from an earlier run, before it."""
    given, taken = address_word(run[0].token_in), address_word(run[-1].token_out)
    spent = min(amount, AMOUNT_V4_MAX)
    if sold:
        yield SETTLE, given + word(spent) + USER_PAYS
    elif amount == ALL_HELD:
        yield SETTLE, given + word(ALL_HELD) + ROUTER_PAYS
    bought = not sold and amount != ALL_HELD
    for place, hop in enumerate(run):
        yield SWAP_ONE, _swap_one(network, hop, spent if bought and place == 0 else OPEN_DELTA)
    if bought and user_pays:
        yield SETTLE_ALL, given + word(spent)
    elif bought:
        yield SETTLE, given + word(OPEN_DELTA) + ROUTER_PAYS
    yield (TAKE_ALL, taken + word(0)) if to_sender else (TAKE, taken + ROUTER + word(OPEN_DELTA))
    if sold:
        yield TAKE_ALL, given + word(0)


def _swap_one(network: Network, hop: Hop, amount: int) -> str:
    prices = (word(0),) if network.universal_router_hop_prices else ()
    zero_for_one = int(hop.token_in == hop.pool.token0)
    head = (word(zero_for_one), word(amount), word(0), *prices)
    return word(32) + v4_key_words(hop.pool) + "".join(head) + word((6 + len(head)) * 32) + word(0)


def _plan(actions: Iterator[Command]) -> str:
    steps = list(actions)
    names = tail("".join(name for name, _ in steps))
    return word(64) + word(64 + len(names) // 2) + names + bytes_array([given for _, given in steps])
