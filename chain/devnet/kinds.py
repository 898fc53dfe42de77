"""The kinds of odd tokens and what must become of an order in each: the table behind the zoo.

Expected outcomes hold for a wallet that spends `SPEND_WEI` in a fresh pool, and sells all of it after.
Source: design §5 (ONC-08, ONC-11), §6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from chain.devnet.texts import HOSTILE_ANSWERS, HOSTILE_TEXTS, text_answer

SPEND_WEI = 10**16
"""What the truth test spends on a buy: some 200 tokens of a usual pool."""
SUPPLY = 1_000_000
"""Whole tokens of each kind."""


class Outcome(StrEnum):
    """What becomes of an order in one kind, by one kind of route, on one side."""

    EQUAL = "EQUAL"
    """What is credited is, to the wei, what really executing it brings."""
    GAS_ABOVE = "GAS_ABOVE"
    """The same arrives, and more gas is charged than is really used, since others wrote words of the wallet's."""
    REVERTS_ON_BOTH = "REVERTS_ON_BOTH"
    REFUSED = "REFUSED"
    UNPROVABLE = "UNPROVABLE"
    NO_POOL = "NO_POOL"


@dataclass(frozen=True, slots=True)
class Expected:
    """An outcome and, where there is one, its reason."""

    outcome: Outcome
    reason: str = ""


EQUAL = Expected(Outcome.EQUAL)
REVERTS = Expected(Outcome.REVERTS_ON_BOTH)
FLAGGED = Expected(Outcome.REFUSED, "gate_flagged")
UNREAD = Expected(Outcome.REFUSED, "gate_unknown")
GAS_ABOVE = Expected(Outcome.GAS_ABOVE)
UNTOLD = Expected(Outcome.UNPROVABLE, "words_untold")
SHARED = Expected(Outcome.UNPROVABLE, "shared_state")
CHANCE = Expected(Outcome.UNPROVABLE, "chance")
POOL_UNKNOWN = Expected(Outcome.UNPROVABLE, "not told: where a pool's balance is kept")
NO_POOL = Expected(Outcome.NO_POOL)


class Word(StrEnum):
    """What arguments and calls can name before it is known."""

    NAME = "name"
    SYMBOL = "symbol"
    TOKEN = "token"
    EACH_POOL = "each pool"
    """The call is made once for every pool; the pool manager stands for a v4 pool."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """An amount in whole tokens, whose raw units the zoo counts out."""

    whole: int


@dataclass(frozen=True, slots=True)
class ZooCall:
    """A call by the token's owner."""

    signature: str
    values: tuple = ()
    target: str = Word.TOKEN


MARK = ZooCall("markPool(address)", (Word.EACH_POOL,))
FACTS = (Word.NAME, Word.SYMBOL)
WHOLE = Tokens(SUPPLY)
V2 = ("v2/weth", 3_000)
V3 = ("v3/weth", 3_000)
V3_LOW = ("v3/weth", 500)
V3_HIGH = ("v3/weth", 10_000)
V4 = ("v4/native", 3_000)
V2_USDG = ("v2/usdg", 3_000)
V3_USDG = ("v3/usdg", 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One row of the table."""

    kind: str
    artifact: str
    args: tuple
    """Constructor arguments; words and whole tokens are filled in by the zoo."""
    note: str
    decimals: int = 18
    """The unit amounts are counted in; what the contract tells may be something else or nothing."""
    pools: tuple[tuple[str, int], ...] = (V2,)
    before: tuple[ZooCall, ...] = ()
    after: tuple[ZooCall, ...] = ()
    buy: Expected = EQUAL
    sell: Expected = EQUAL
    apart: dict[tuple[str, str], Expected] = field(default_factory=dict)
    """Outcomes that differ by route: (route, side) → expected."""
    buyable: bool = True
    """Whether a wallet can come by `SPEND_WEI` of it with a real buy; else the owner hands it out."""


def honest(kind: str, artifact: str, note: str, decimals: int = 18, **more) -> Kind:
    """A token with the usual four arguments."""
    return Kind(kind=kind, artifact=artifact, args=(*FACTS, decimals, WHOLE), decimals=decimals, note=note, **more)


def coin(kind: str, artifact: str, note: str, *extra, **more) -> Kind:
    """A token that must be told its pools, with arguments of its own after the usual four."""
    return Kind(kind=kind, artifact=artifact, args=(*FACTS, 18, WHOLE, *extra), before=(MARK,), note=note, **more)


def sheet(kind: str, artifact: str, note: str, *extra, **more) -> Kind:
    """A token that need not know its pools, with arguments of its own after the usual four."""
    return Kind(kind=kind, artifact=artifact, args=(*FACTS, 18, WHOLE, *extra), note=note, **more)


def kinds() -> Iterator[Kind]:
    """Name every kind, in the order in which the zoo deploys them."""
    for family in (_plain, _taxed, _refusing, _limited, _holder_states, _answers, _layouts, _rebases, _costly, _units, _texts):
        yield from family()


def _plain() -> Iterator[Kind]:
    yield honest("plain_oz", "PlainOz", "OpenZeppelin; pools of every venue and quote", pools=(V2, V3, V4, V3_USDG))
    yield honest("plain_solady", "PlainSolady", "Solady: balances at its own hashed slots", pools=(V2, V3_LOW))
    yield honest("plain_vyper", "PlainVyper", "Vyper; texts before balances", pools=(V2, V3_HIGH))
    yield honest("plain_snek", "PlainSnek", "Vyper; balances first, texts immutable")
    yield honest("plain_usdg_v2", "PlainOz", "reachable through USDG only, v2", pools=(V2_USDG,))
    yield honest("plain_usdg_v3", "PlainOz", "reachable through USDG only, v3", pools=(V3_USDG,))
    yield honest("plain_v3", "PlainOz", "one v3 pool", pools=(V3,))
    yield honest("plain_v4", "PlainOz", "one v4 pool against native ETH, no hooks", pools=(V4,))


def _taxed() -> Iterator[Kind]:
    yield coin("tax_5", "Taxed", "5 % of every transfer", 500, 500, 500)
    yield coin("tax_10", "Taxed", "10 % of every transfer; a v3 pool refuses the short payment of a sale", 1_000, 1_000, 1_000,
               pools=(V2, V3), apart={("v3/weth", "buy"): FLAGGED, ("v3/weth", "sell"): REVERTS})  # fmt: skip
    yield coin("tax_buy", "Taxed", "10 % of buys only", 1_000, 0, 0)
    yield coin("tax_sell", "Taxed", "10 % of sells only", 0, 1_000, 0)
    yield coin("tax_sell_60", "Taxed", "60 % of sells: over the gate's loss limit", 0, 6_000, 0, buy=FLAGGED)
    yield coin("tax_buy_60", "Taxed", "60 % of buys: over the gate's loss limit", 6_000, 0, 0, buy=FLAGGED)
    yield coin("tax_v3", "Taxed", "5 %, v3 only: cannot be sold", 500, 500, 500, pools=(V3,), buy=FLAGGED, sell=REVERTS)
    yield coin("tax_v4", "Taxed", "5 %, v4 only: sold by paying first and swapping what came of it", 500, 500, 500, pools=(V4,))
    yield coin("tax_usdg", "Taxed", "5 %, through USDG", 500, 500, 500, pools=(V2_USDG,))
    yield coin("burn", "BurnHook", "1 % of everything moved is burnt", 100, Tokens(1))
    yield coin("burn_minimum", "BurnHook", "refuses amounts under 5,000 tokens", 100, Tokens(5_000),
               buy=REVERTS, sell=REVERTS, buyable=False)  # fmt: skip
    yield coin("swap_back", "SwapBack", "sells a piece of its own stock in the pair before each sale", Tokens(20))


def _refusing() -> Iterator[Kind]:
    for suffix, pools in (("", (V2,)), ("_v3", (V3,)), ("_v4", (V4,)), ("_usdg", (V2_USDG,))):
        yield coin(f"honeypot{suffix}", "Honeypot", "sells revert", pools=pools, buy=FLAGGED, sell=REVERTS)
    yield coin("sim_aware", "SimAware", "sells only where gas is free: in a plain simulation", pools=(V2, V3), buy=FLAGGED, sell=REVERTS)
    yield coin("gas_aware", "GasAware", "sells only with more gas left than anybody would send", buy=FLAGGED, sell=REVERTS)
    yield coin("parent_aware", "ParentAware", "sells only where the parent block has no hash", buy=FLAGGED, sell=REVERTS)
    yield coin("blacklist", "Blacklist", "its owner can list accounts, and listed none", False)
    yield coin("blacklist_on_buy", "Blacklist", "lists every buyer at the buy", True, buy=FLAGGED, sell=REVERTS)
    yield coin("pausable", "Pausable", "not paused")
    yield coin("pausable_paused", "Pausable", "paused once the pools were there", after=(ZooCall("pause(bool)", (True,)),),
               buy=REVERTS, sell=REVERTS, buyable=False)  # fmt: skip
    yield coin("started", "Unstarted", "trading was started", after=(ZooCall("start()"),))
    yield coin("unstarted", "Unstarted", "trading was not started", buy=REVERTS, sell=REVERTS, buyable=False)
    yield coin("approve_reverts", "NoApprovals", "only its owner can approve, so nobody else can sell", buy=FLAGGED, sell=REVERTS)
    yield coin("watched", "Watched", "sells only where a balance was asked for by transaction: in a careless simulation",
               pools=(V2, V3), buy=FLAGGED, sell=REVERTS)  # fmt: skip
    yield coin("poor_only", "Purses", "only who has less than 0.01 ETH may sell", False, buy=FLAGGED, sell=REVERTS)
    yield coin("rich_only", "Purses", "only who has more than 0.01 ETH may sell", True)
    yield coin("chance", "Chance", "up to 10 % of a trade, by the block's random word", buy=UNREAD, sell=CHANCE)
    yield coin("eoa_only", "EoaOnly", "moves for the sender of the transaction only, and to no contract but pools", pools=(V2, V3))


def _limited() -> Iterator[Kind]:
    yield coin("max_wallet", "MaxWallet", "no holder over 2 % of the supply", Tokens(20_000))
    yield coin("max_wallet_tight", "MaxWallet", "no holder over 50 tokens", Tokens(50), buy=REVERTS, buyable=False)
    yield coin("max_sell", "MaxSell", "no sale over 2,000 tokens", Tokens(2_000))
    yield coin("max_sell_tight", "MaxSell", "no sale over 50 tokens", Tokens(50), buy=FLAGGED, sell=REVERTS)


def _holder_states() -> Iterator[Kind]:
    yield coin("cooldown_block", "CooldownBlock", "no sale in the block of the holder's last buy")
    yield coin("cooldown_1s", "CooldownTime", "no sale within 1 s of the holder's last buy", 1)
    yield coin("cooldown_60s", "CooldownTime", "no sale within 60 s of the holder's last buy", 60, buy=UNREAD, sell=REVERTS)
    yield coin("stamped", "Stamped", "stamps both holders of a transfer: only the gas depends on it")
    yield coin("early_seller", "EarlySeller", "25 % of a sale, falling to nothing in an hour since the holder's first buy", 3_600)
    yield coin("registered_buyers", "RegisteredBuyers", "only who bought from a pool may sell", pools=(V2, V3))
    yield coin("sell_once", "SellOnce", "a holder's second sale reverts")
    yield coin("sale_count", "TradeCount", "each further sale of a holder is taxed 10 % more", 0, 1_000)
    yield coin("buy_count", "TradeCount", "each further buy of a holder is taxed 10 % more", 1_000, 0)
    yield coin("loyal", "Loyal", "20 % of a buy by who holds none yet; a later buy cannot be gated without its holding")


def _answers() -> Iterator[Kind]:
    yield honest("no_return", "NoReturn", "answers nothing to transfers and approvals", decimals=6, pools=(V2, V3))
    yield sheet("returns_false", "ReturnsFalse", "moves and answers false, to all but its owner", True,
                buy=REVERTS, sell=REVERTS, buyable=False)  # fmt: skip
    yield sheet("returns_false_unmoved", "ReturnsFalse", "answers false and moves nothing, for all but its owner", False,
                buy=REVERTS, sell=REVERTS, buyable=False)  # fmt: skip
    yield sheet("one_use", "OneUse", "an allowance is forgotten once it was used", pools=(V2, V3))
    yield sheet("bounty", "Bounty", "pays for approvals, when its owner gave it ETH", pools=(V2, V3))
    yield sheet("moody", "Moody", "its owner can make it refuse to tell balances, or tell them at length", before=(MARK,))
    yield sheet("event_liar", "EventLiar", "its Transfer logs say four times what moved", pools=(V2, V3))
    yield sheet("balance_doubles", "BalanceDoubles", "tells every holder twice the balance, pools the truth",
                before=(MARK,), buy=FLAGGED, sell=REVERTS)  # fmt: skip
    yield sheet("balance_reverts", "BalanceReverts", "does not tell a holder's balance",
                before=(MARK,), pools=(V2, V3), buy=UNREAD, sell=UNTOLD, apart={("v2/weth", "buy"): REVERTS})  # fmt: skip
    yield sheet("balance_max", "BalanceMax", "tells 2^256 − 1 to who holds nothing",
                before=(MARK,), pools=(V2, V3), apart={("v2/weth", "buy"): REVERTS, ("v3/weth", "buy"): UNREAD})  # fmt: skip


def _layouts() -> Iterator[Kind]:
    yield sheet("namespaced_proxy", "NamespacedProxy", "ERC-7201 storage behind an EIP-1967 proxy", pools=(V2, V3))
    yield sheet("stored_elsewhere", "StoredElsewhere", "balances in another contract", pools=(V2, V3))
    yield sheet("packed_flag", "PackedFlag", "the top bit of a balance's word is a flag")
    yield sheet("packed_high", "PackedHigh", "a time above the balance in its word", buy=POOL_UNKNOWN, sell=POOL_UNKNOWN)
    yield sheet("packed_middle", "PackedMiddle", "the balance in the middle of its word, a counter below")
    yield sheet("packed_sales", "PackedSales", "a count of the holder's sales above the balance in its word, by which they are taxed",
                before=(MARK,), buy=POOL_UNKNOWN, sell=POOL_UNKNOWN)  # fmt: skip
    yield sheet("two_mappings", "TwoMappings", "a balance is the sum of two mappings, half in each", buy=POOL_UNKNOWN, sell=POOL_UNKNOWN)
    yield sheet("checkpointed", "Checkpointed", "a balance is its last checkpoint", pools=(V2, V3), buy=POOL_UNKNOWN, sell=POOL_UNKNOWN,
                apart={("v3/weth", "buy"): EQUAL, ("v3/weth", "sell"): GAS_ABOVE})  # fmt: skip
    yield sheet("masked", "Masked", "balances under a mask that differs by account", buy=POOL_UNKNOWN, sell=POOL_UNKNOWN)


def _rebases() -> Iterator[Kind]:
    grown = (ZooCall("rebase(uint256)", (Tokens(SUPPLY * 107 // 100),)),)
    yield sheet("shares", "Shares", "holders own shares of a total, rebased by 7 %", before=grown)
    yield sheet("gons", "Gons", "holders own fragments of a fixed number, rebased by 7 %", before=grown)
    yield sheet("interest", "Interest", "balances grow by the second, 1 % in a year")
    yield sheet("reflection", "Reflection", "2 % of each transfer goes to all holders", sell=SHARED)


def _costly() -> Iterator[Kind]:
    yield coin("gas_guzzler", "Guzzler", "about 1 M gas for a transfer", 3_600, pools=(V2, V3))
    yield coin("gas_guzzler_heavy", "Guzzler", "about 8 M gas for a transfer: over the limit of a swap", 28_000,
               buy=REVERTS, sell=REVERTS, buyable=False)  # fmt: skip
    yield coin("reentrant", "Reentrant", "asks the pool for a swap during a transfer, in vain", True)
    yield coin("reentrant_sync", "Reentrant", "makes the pair book a seller's tokens before they count", False, buy=FLAGGED, sell=REVERTS)


def _units() -> Iterator[Kind]:
    for decimals, note in ((0, "whole tokens only"), (6, "6 decimals"), (24, "24 decimals"), (77, "10^77 units a token"), (255, "10^255 units a token")):
        yield honest(f"decimals_{decimals}", "PlainOz", note, decimals=decimals)
    word = (2**255).to_bytes(32, "big")
    yield Kind(kind="decimals_word", artifact="RawFacts", args=(text_answer(b"Plum Otter"), text_answer(b"PLOT"), word, WHOLE),
               note="decimals() answers 2^255")  # fmt: skip
    yield Kind(kind="no_facts", artifact="NoFacts", args=(WHOLE,), note="name(), symbol() and decimals() revert")


def _texts() -> Iterator[Kind]:
    eighteen = (18).to_bytes(32, "big")
    for text, (name, symbol) in HOSTILE_TEXTS.items():
        args = (text_answer(name), text_answer(symbol), eighteen, WHOLE)
        yield Kind(kind=f"text_{text}", artifact="RawFacts", args=args, note="an honest token with such a name and symbol")
    for answer, (name, symbol) in HOSTILE_ANSWERS.items():
        yield Kind(kind=f"answer_{answer}", artifact="RawFacts", args=(name, symbol, eighteen, WHOLE), note="such raw answers for its texts")
    yield Kind(kind="facts_bomb", artifact="FactsBomb", args=(18, WHOLE, False), note="a million letters for a name")
    yield Kind(kind="facts_endless", artifact="FactsBomb", args=(18, WHOLE, True), note="name() and symbol() use up all gas")
