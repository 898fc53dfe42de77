"""Lives that are told step by step: one for each way in which a wallet that forgets what it wrote is told more than it lives."""

from __future__ import annotations

from collections.abc import Sequence

from tests.lives.kinds import Act, LifeKind, kind_named
from tests.lives.program import ETH, NEARLY_ALL, Decide, Mark, Order, Owner, Program, Step, Stranger, Wait

WALLET = "0x71fe0fa11e7a1e000000000000000000005ea1ed"
SPEND_WEI = ETH // 20
DAY_S, HOUR_S = 86_400, 3_600


def buy(copies: int = 1, beside: bool = False) -> Decide:
    """Buy some of each token of the life, and of the plain one beside it."""
    own = tuple(Order(1 + copy, "buy", SPEND_WEI // copies) for copy in range(copies))
    return Decide((Order(0, "buy", SPEND_WEI), *own) if beside else own)


def sell(part_ppm: int = 1_000_000) -> Decide:
    return Decide((Order(1, "sell", part_ppm=part_ppm),))


def later(seconds: int) -> Wait:
    return Wait(seconds, 1)


THRICE = (buy(), sell(250_000), sell(333_333), Mark(), sell(500_000), Mark(), sell())
AFTER_A_MINUTE = (buy(), later(60), Mark(), sell())
AFTER_AN_HOUR = (buy(), later(HOUR_S), Mark(), sell())
POOR = (Decide((Order(1, "buy", NEARLY_ALL, left_wei=12 * 10**12),)), later(60), Mark(), sell())
"""A wallet that has little more than the gas of its sale, before what comes back of it."""
AT_ONCE = (buy(), Mark(), sell())
IN_PARTS = (buy(), later(700), Mark(), sell(500_000), later(DAY_S), Mark(), sell())
WITH_OTHERS = (buy(), Stranger(0, ETH // 10), sell(300_000), Stranger(1, 0, 10 * ETH), later(700), Mark(), buy(), sell(500_000), Mark(), sell())


def then(act: Act, *more: Act) -> tuple[Step, ...]:
    """The owner acts after the buy."""
    return (buy(beside=True), *(Owner(each) for each in (act, *more)), Mark(), sell(500_000), Mark(), sell())


def unloading(count: int) -> tuple[Step, ...]:
    """A poor wallet's sale has so many words to clear: up to 140 of them it can pay for beforehand, up to 190 only with what comes back."""
    return (POOR[0], Owner(Act("loaded(uint256)", (count,))), *POOR[2:])


PUMPED = Act("move(address)", ("pool",), True, 50 * ETH)
HOSTILE: dict[str, tuple[Step, ...]] = {
    **{f"{prefix}{effect}/{where}": THRICE for effect in ("third_taxed", "third_reverts") for prefix in ("", "hook/") for where in ("own", "far", "far_elsewhere")},
    "third_taxed/everyone": THRICE,
    **{
        f"{prefix}from_ten_seconds/{where}": AFTER_A_MINUTE
        for prefix in ("", "hook/") for where in ("own", "elsewhere", "namespace", "secret", "paired", "list", "ether", "code", "far", "far_elsewhere", "everyone")
    },
    "from_ten_seconds/origin": AFTER_A_MINUTE, "from_ten_seconds/purse": AFTER_A_MINUTE, "from_ten_seconds/liquidity": AFTER_A_MINUTE,
    "hook/from_ten_seconds/claims": AFTER_A_MINUTE,
    "expiring": IN_PARTS, "counted": THRICE, "epochs": IN_PARTS, "misreported": THRICE, "stale": IN_PARTS, "paid_approval": THRICE, "costly_approval": THRICE,
    "moved_books": then(PUMPED), "muted": then(Act("feel(uint256)", (1,))),
    "proxy": then(Act("leave()")), "stopped": then(Act("tax(uint256)", (500_000,))), "chance_of_sales": AT_ONCE, "chance": AT_ONCE,
    "chance_later": then(Act("begin(uint256)", (1,))), "knows_ghost": AFTER_AN_HOUR, "knows_reader": AT_ONCE, "knows_lens": AT_ONCE,
    "plain": POOR, "unloading": unloading(160),
    "bequests": then(Act("give(bool)", (True,))), "burning": then(Act("light(uint256)", (4_000,))),
    "burning_crowd": (buy(10, beside=True), Owner(Act("light(uint256)", (4_000,))), Mark()),
    "muted_crowd": (buy(10, beside=True), Owner(Act("feel(uint256)", (2,))), Mark()),
}  # fmt: skip
"""By kind, what is done with it."""
REBASES = {"half": 500_000, "a tenth more": 1_100_000}
HONEST: tuple[str, ...] = (
    "plain", "noted/own", "noted/elsewhere", "noted/namespace", "noted/secret", "noted/list", "noted/far", "noted/everyone", "hook/noted/own",
    "hook/noted/elsewhere", "loyal/elsewhere", "bonus/own", "welcome/own", "last_transfer", "accrual", "per_user_index", "auto_votes", "pieces",
    "dividend_list", "dividend_tracked", "holder_list", "last_buyer", "snapshots", "lazy_books", "refunding", "swap_back",
)  # fmt: skip


def program(kind: LifeKind | str, steps: Sequence[Step], venue: str = "") -> Program:
    """A life of these steps."""
    known = kind_named(kind) if isinstance(kind, str) else kind
    return Program(0, known, venue or known.venues[0], WALLET, ETH, tuple(steps))
