"""The asking: a whole board for an exact size, the safety story of a token, and its pools, printed for a person."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import ROUND_DOWN, Decimal, localcontext

import orjson

from chain.address import checksum_ok, is_address
from chain.tokens import TokenFacts
from chain.trade import PROVEN, REVERTED
from ledgers.clock import SystemClock
from ledgers.events import Event, encode, kind_of
from ledgers.layout import labelled
from ledgers.money import TokenRaw, Wei, decimal_text
from ledgers.report import Basis, Cell, Column, Said, Table, eth_text
from ops.lines import counted, detail_text, ledgers_text, plain
from ops.names import TokenName, amount_text
from ops.onlooker import NOBODY, Onlooker, onlooker
from ops.pools import pools_table
from ops.reading import WrongUse
from ops.rival_routers import LOCAL, strangers_to
from ops.settings import Settings
from referee.onchain.board import header_of_pin
from referee.onchain.credit import chosen_row
from referee.onchain.events import (
    HEADLINE, BoardTaken, FillCredited, GateTaken, OrderAsked, OrderNotFilled, OrderRefused, Row, RouteUnprovable,
)  # fmt: skip

NUMBER = re.compile(r"[0-9]{1,30}(\.[0-9]{1,36})?", re.ASCII)
ETH_DECIMALS = 18
TRIED_WEI = Wei(10**16)
"""What the safety story of a token buys and sells again."""
LABEL_CHARS = 12
COPIED = frozenset({"ETH", "WETH", "USDG"})
"""Names of hubs, which others copy."""
OWN = "router"
"""The source of our own rows, whose quote is the proof itself."""
QUESTION = "a question, not an order: nothing is recorded"

BOARD_COLUMNS = (
    Column("chosen", ""),
    Column("source", "source"),
    Column("proof", "proof"),
    Column("arrives_raw", "arrives"),
    Column("quoted_raw", "quoted"),
    Column("gas_wei", "gas ETH"),
    Column("net", "net of gas"),
    Column("age_ms", "age", people=False),
    Column("route", "route", people=False),
    Column("route_text", "route", machines=False, below=True),
    Column("why", "flagged", below=True),
)


# --- what was typed -------------------------------------------------------------------------------------------------


def token_typed(text: str) -> str:
    """Read a token's address. Raises: WrongUse."""
    if is_address(text) and not checksum_ok(text):
        raise WrongUse(f"the capitals of {text} are not its EIP-55 checksum, so a digit may be wrong; write it in lower case to name it all the same")
    if not is_address(text):
        raise WrongUse(f"a token is named by its address, 0x and 40 hex digits (lower case or EIP-55), found {plain(text)[:60]!r}")
    return text.lower()


def raw_typed(text: str, decimals: int, what: str) -> int:
    """Read a decimal amount into base units. Raises: WrongUse for anything that is not a whole number of them above 0."""
    if not NUMBER.fullmatch(text):
        raise WrongUse(f"{what} is a plain decimal number such as 0.05, found {plain(text)[:40]!r}")
    with localcontext() as precise:
        precise.prec = 120
        scaled = Decimal(text).scaleb(decimals)
        raw = int(scaled.to_integral_value(ROUND_DOWN))
        if not scaled:
            raise WrongUse(f"{what} of {text} is nothing; it must be above 0")
        if raw != scaled:
            raise WrongUse(f"{what} of {text} is not a whole number of base units ({decimals} decimals)")
    return raw


# --- the board ------------------------------------------------------------------------------------------------------


async def board_asked(settings: Settings, network: str | None, token: str, spend: str | None, sell: str | None, width: int) -> tuple[str, dict[str, object]]:
    """Print the whole board for an exact size. Raises: WrongUse, BadSettings, ChainFault."""
    token = token_typed(token)
    if (spend is None) == (sell is None):
        raise WrongUse("say `--spend ETH` for a buy or `--sell AMOUNT` for a sale, and not both")
    spend_wei = raw_typed(spend, ETH_DECIMALS, "--spend") if spend is not None else None
    async with onlooker(settings, network, token, SystemClock()) as seen:
        facts = await seen.facts(token)
        if facts.decimals is None:
            raise WrongUse(f"{token} does not tell its decimals at block {seen.pin.block}, so it is not a token that can be traded here")
        amount_raw = raw_typed(sell, facts.decimals, "--sell") if sell is not None else None
        asked = OrderAsked(
            index=0, side="buy" if spend_wei else "sell", token=token, spend_wei=Wei(spend_wei) if spend_wei else None,
            amount_raw=TokenRaw(amount_raw) if amount_raw else None, sell_all=False,
        )  # fmt: skip
        events = await seen.referee(asked)
        strangers = strangers_to(settings, seen.network)
        beside = [("rivals", f"REFEREE_RIVALS names {', '.join(strangers)}, which the local chain does not know; it has {' and '.join(LOCAL)}")] if strangers else []
        text = board_text(seen, asked, facts, events, width)
        return text + "".join(f"{line}\n" for line in _laid_out(beside, width)), board_data(seen, asked, events)


def board_text(seen: Onlooker, asked: OrderAsked, facts: TokenFacts, events: Sequence[Event], width: int) -> str:
    """Lay a board out: its rows best first, the gates, and what would become of the order on each ledger."""
    parts = [board_table(seen, board, facts).text(width) for board in events if isinstance(board, BoardTaken)]
    lines = [*_gate_lines(events), *_outcome_lines(asked, facts, events), *_sale_lines(asked, facts, events)]
    return "\n".join([*parts, *_laid_out(lines, width)]) + "\n"


def board_table(seen: Onlooker, board: BoardTaken, facts: TokenFacts) -> Table:
    """The rows of one board, in the order of the board."""
    chosen = chosen_row(board, HEADLINE)
    size = f"buy {_name(facts)} for {decimal_text(int(board.size_raw), ETH_DECIMALS)} ETH" if board.side == "buy" else f"sell {_amount(board.size_raw, facts)} {_name(facts)}"
    return Table(
        name="board",
        title=f"{size} · {board.token}",
        basis=Basis(label=seen.network.label, n=len(board.rows), of=f"rows at block {board.pin.block}, {board.age_ms:,} ms old", claim=QUESTION),
        columns=BOARD_COLUMNS,
        rows=tuple(_row_cells(board, row, row is chosen, facts) for row in board.rows),
        note="→ best net of gas (ONC-06). proven: its own transaction was simulated and this much arrived." + (" Amounts are ETH." if board.side == "sell" else ""),
    )


def _row_cells(board: BoardTaken, row: Row, chosen: bool, facts: TokenFacts) -> tuple[Cell, ...]:
    return (
        "→" if chosen else "",
        plain(row.source),
        row.status,
        _said_amount(board, row.arrival_raw, facts),
        _said_amount(board, row.quoted_raw, facts),
        Said(eth_text(row.gas_wei, 8), str(row.gas_wei)),
        _net(board, row, facts),
        Said(f"{row.age_ms:,} ms", row.age_ms) if row.source != OWN else None,
        plain(row.route),
        plain(row.route) if row.source == OWN else f"{plain(row.route)}, answered {row.age_ms:,} ms ago",
        " ".join((plain(row.reason), *map(plain, row.flags))).strip() or None,
    )


def _said_amount(board: BoardTaken, raw: TokenRaw | None, facts: TokenFacts) -> Cell:
    if raw is None:
        return None
    text = _amount(raw, facts) if board.side == "buy" else eth_text(Wei(int(raw)), 8) or ""
    return Said(text, str(raw))


def _net(board: BoardTaken, row: Row, facts: TokenFacts) -> Cell:
    """What counts in ONC-06: tokens for a whole ETH spent on price and gas, or ETH after gas."""
    if row.status != PROVEN or row.arrival_raw is None:
        return None
    if board.side == "sell":
        net_wei = int(row.arrival_raw) - int(row.gas_wei)
        return Said(eth_text(Wei(net_wei), 8) or "", str(net_wei))
    paid_wei = int(board.size_raw) + int(row.gas_wei)
    a_whole_eth = TokenRaw(int(row.arrival_raw) * 10**ETH_DECIMALS // paid_wei)
    return Said(f"{_amount(a_whole_eth, facts)} an ETH", str(a_whole_eth))


def _gate_lines(events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    for gate in (event for event in events if isinstance(event, GateTaken)):
        loss = f", round trip loses {gate.loss_bps / 100:.2f} %" if gate.loss_bps >= 0 else ""
        exit_text = "" if gate.exit_provable or gate.verdict != "CLEAR" else f"; its exit cannot be proven ({plain(gate.exit_cause)})"
        outside = f"; outside: {', '.join(map(plain, gate.outside))}" if gate.outside else ""
        yield "gate", f"{gate.verdict}{f' ({plain(gate.cause)})' if gate.cause else ''} for {plain(gate.route)}{loss}{exit_text}{outside}"


def _outcome_lines(asked: OrderAsked, facts: TokenFacts, events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    for event in events:
        match event:
            case FillCredited():
                got = f"{_amount(event.arrival_raw, facts)} {_name(facts)}" if asked.side == "buy" else f"{eth_text(Wei(int(event.arrival_raw)))} ETH"
                tag = f", {plain(event.tag)}" if event.tag else ""
                yield "would fill", f"{ledgers_text(event.ledgers)}{got} by {plain(event.route)}{tag}"
            case OrderRefused():
                yield "refused", f"{ledgers_text(event.ledgers)}{event.reason} ({event.rule}){detail_text(event.reason, event.detail)}"
            case OrderNotFilled():
                yield "not filled", f"{ledgers_text(event.ledgers)}{event.reason}{detail_text(event.reason, event.detail)}"
            case RouteUnprovable():
                yield "unproven", f"{ledgers_text(event.ledgers)}{plain(event.route)}: {plain(event.reason)}"


def _sale_lines(asked: OrderAsked, facts: TokenFacts, events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    """What is odd about a sale, for whoever wonders."""
    rows = [row for event in events if isinstance(event, BoardTaken) for row in event.rows]
    if asked.amount_raw is not None and facts.total_supply_raw is not None and int(asked.amount_raw) > facts.total_supply_raw:
        yield "careful", f"that is more than there is of it: its supply is {_amount(TokenRaw(facts.total_supply_raw), facts)} by its own word"
    if asked.side == "sell" and rows and all(row.status == REVERTED for row in rows if row.source == OWN):
        yield "hint", f"every sale reverts; `referee token {asked.token}` tries what can be known about why"


def board_data(seen: Onlooker, asked: OrderAsked, events: Sequence[Event]) -> dict[str, object]:
    """A board as JSON: every event as the journal would hold it."""
    told = [{"kind": kind_of(event), **orjson.loads(encode(event))} for event in events]
    return {"network": seen.network.label, "token": asked.token, "side": asked.side, "block": seen.pin.block, "events": told}


# --- safety ---------------------------------------------------------------------------------------------------------


async def token_asked(settings: Settings, network: str | None, token: str, width: int) -> tuple[str, dict[str, object]]:
    """Tell the safety story of a token. Raises: WrongUse, BadSettings, ChainFault."""
    token = token_typed(token)
    async with onlooker(settings, network, token, SystemClock()) as seen:
        facts = await seen.facts(token)
        asked = OrderAsked(index=0, side="buy", token=token, spend_wei=TRIED_WEI, amount_raw=None, sell_all=False)
        events = await seen.referee(asked)
        lines = [*_fact_lines(seen, facts), *_slot_lines(await _slot_kind(seen, token)), *_trial_lines(facts, events), *_gate_lines(events), *_outcome_lines(asked, facts, events)]
        head = f"{_name(facts)} · {token} · {seen.network.label} · block {seen.pin.block}"
        text = "\n".join([head, "═" * len(head), *_laid_out(lines, width), "", pools_table(seen, facts).text(width)])
        return text, {**board_data(seen, asked, events), "facts": _facts_data(facts), "pools": pools_table(seen, facts).data()}


def _fact_lines(seen: Onlooker, facts: TokenFacts) -> Iterator[tuple[str, str]]:
    said = f"calls itself {plain(facts.name)!r}, symbol {plain(facts.symbol)!r}" if facts.name or facts.symbol else "tells neither name nor symbol"
    yield "says", f"{said}; anybody may call a token anything, only the address counts"
    if facts.symbol.upper() in COPIED and facts.address not in seen.graph.hubs:
        yield "careful", f"{plain(facts.symbol)} is the name of a main token of this network, which has another address"
    supply = "unknown" if facts.total_supply_raw is None or facts.decimals is None else decimal_text(TokenRaw(facts.total_supply_raw), facts.decimals, 2)
    yield "supply", f"{supply} by its own word, decimals {facts.decimals if facts.decimals is not None else 'unknown'}"
    pools = seen.graph.pools_of(facts.address)
    hooked = sum(pool.hooked for pool in pools)
    yield "pools", f"{counted(len(pools), 'pool')}{f', {hooked} of them with a hook' if hooked else ''}" if pools else "none known, so that it cannot be traded here"


async def _slot_kind(seen: Onlooker, token: str) -> str | None:
    slot = await seen.desk.slots.of(token, NOBODY, header_of_pin(seen.pin))
    return slot.kind if slot else None


def _slot_lines(kind: str | None) -> Iterator[tuple[str, str]]:
    told = {
        None: "not found: only a wallet that bought it can be shown selling it",
        "shares": "found; the token keeps shares, so amounts change by themselves",
        "shifted": "found, packed with other data",
    }
    yield "balances", told.get(kind, "found")


def _trial_lines(facts: TokenFacts, events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    boards = [event for event in events if isinstance(event, BoardTaken)]
    own = [row for board in boards for row in board.rows if row.source == OWN]
    proven, rows = sum(row.status == PROVEN for row in own), len(own)
    yield "tried", f"buying for {decimal_text(TRIED_WEI, ETH_DECIMALS)} ETH and selling it again: " + (f"{proven} of {counted(rows, 'row')} of our own router proven" if rows else "our own router knows no way")


def _facts_data(facts: TokenFacts) -> dict[str, object]:
    supply = None if facts.total_supply_raw is None else str(facts.total_supply_raw)
    return {"untrusted_name": facts.name, "untrusted_symbol": facts.symbol, "decimals": facts.decimals, "untrusted_total_supply_raw": supply}


# --- words ----------------------------------------------------------------------------------------------------------


def _laid_out(lines: Sequence[tuple[str, str]], width: int) -> list[str]:
    return [text for label, said in lines for text in labelled(label, said, LABEL_CHARS, width)]


def _name(facts: TokenFacts) -> str:
    return f"{plain(facts.symbol) or 'token'}·{facts.address[-4:]}"


def _amount(raw: TokenRaw, facts: TokenFacts) -> str:
    names = {} if facts.decimals is None else {facts.address: TokenName(facts.symbol, facts.decimals)}
    return amount_text(raw, facts.address, names)
