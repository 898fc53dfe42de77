"""Kinds of token and hook that lives are lived with: what each remembers, what its owner may do, and whether it is honest.

The contracts are in `contracts` beside. A memory has a place (`WHERE`) and an effect (`EFFECT`); every pair is a kind of its
own, of a token and of a v4 hook.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ETH = 10**18
FOLDER = Path(__file__).parent / "contracts"
WHERE = ("own", "elsewhere", "namespace", "origin", "bucket", "secret", "list", "paired", "purse", "liquidity", "claims", "ether", "code", "far", "far_elsewhere", "everyone")
"""From the purse on it is kept by others: WETH of an address nobody has the key of, liquidity of the pair, claims on the pool manager, ETH, code.

What is far is filled beforehand, so that no gas tells who traded; the last is one record of all traders together."""
PRIMED = ("far", "far_elsewhere", "everyone")
NOT_OF_TOKENS, NOT_OF_HOOKS = ("claims",), ("origin", "purse", "liquidity")
EFFECT = ("noted", "third_taxed", "third_reverts", "bonus", "welcome", "from_ten_seconds", "early", "loyal")
FAIR = ("noted", "bonus", "welcome", "early", "loyal")
"""Effects that real tokens have without meaning harm."""
EVERYWHERE = ("v2", "v3", "v4")
WALLET, POOL = "wallet", "pool"
"""Stand for addresses of the life in what an owner calls."""


@dataclass(frozen=True, slots=True)
class Act:
    """What an owner may do."""

    signature: str
    values: tuple = ()
    sync: bool = False
    """Whether he has the v2 pair take its balances over after it."""
    ether_wei: int = 0
    """What he adds to the v2 pair beside it."""


@dataclass(frozen=True, slots=True)
class LifeKind:
    """One kind."""

    name: str
    artifact: str
    args: tuple = ()
    """Constructor arguments; `registry`, `manager` and `behind` are addresses of the world."""
    honest: bool = False
    venues: tuple[str, ...] = EVERYWHERE
    acts: tuple[Act, ...] = ()
    books: tuple[int, ...] = (0,)
    """Storage positions of the mappings that hold balances, in the order in which they took over."""
    judges: bool = False
    """Whether what a trade brings hangs on who makes it, so that a stand-in's is another."""
    balance_bits: int = 256
    """How many bits of a balance word, from the right, are the balance."""
    rounding_raw: int = 0
    """How far a balance may be off where it is counted in shares."""
    ether_wei: int = 0
    """What the contract owns at the start."""
    primed: bool = False
    """Whether it is told to fill beforehand what it will write."""
    copies: int = 1
    """How many tokens of the kind one life has."""
    keeps: str = ""
    """`purse` or `liquidity`: it is given WETH, or liquidity of its pair, to remember by."""


def _minds() -> Iterator[LifeKind]:
    for act, effect in enumerate(EFFECT):
        for place, where in enumerate(WHERE):
            fair, args, primed = effect in FAIR, (place, act, "registry"), where in PRIMED
            acts = () if where in ("origin", "claims") else (Act("touch(address)", (WALLET,)),)
            if where not in NOT_OF_TOKENS:
                venues, keeps = ("v2",) if where == "liquidity" else EVERYWHERE, where if where in ("purse", "liquidity") else ""
                yield LifeKind(f"{effect}/{where}", "Mindful", args, fair, venues, acts, ether_wei=ETH, keeps=keeps, judges=act > 0, primed=primed)
            if where not in NOT_OF_HOOKS:
                yield LifeKind(f"hook/{effect}/{where}", "MindfulHook", (*args, "manager"), fair, ("hook",), acts, ether_wei=100 * ETH, judges=act > 0, primed=primed)


PUMP_WEI = 50 * ETH
MOVES = (Act("move(address)", (POOL,)), Act("move(address)", (POOL,), True, PUMP_WEI))
REBASES = tuple(Act("rebase(uint256)", (ppm,), True) for ppm in (500_000, 900_000, 1_000_100, 1_100_000, 3_000_000))

KINDS: tuple[LifeKind, ...] = (
    LifeKind("plain", "Plain", honest=True),
    *_minds(),
    LifeKind("last_transfer", "LastTransfer", honest=True),
    LifeKind("accrual", "Accrual", honest=True),
    LifeKind("per_user_index", "PerUserIndex", honest=True, acts=(Act("raise(uint256)", (10_000,)),)),
    LifeKind("auto_votes", "AutoVotes", honest=True),
    LifeKind("pieces", "Pieces", honest=True),
    LifeKind("dividend_list", "DividendList", honest=True),
    LifeKind("dividend_tracked", "DividendTracked", honest=True),
    LifeKind("holder_list", "HolderList", honest=True),
    LifeKind("last_buyer", "LastBuyer", honest=True, venues=("v2",)),
    LifeKind("daily_limit", "DailyLimit", honest=True),
    LifeKind("snapshots", "Snapshots", honest=True, acts=(Act("snapshot()"),)),
    LifeKind("swap_back", "SwapBack", honest=True, venues=("v2",)),
    LifeKind("reflection", "Reflection", honest=True, venues=("v2",), rounding_raw=10),
    LifeKind("expiring", "Expiring"),
    LifeKind("counted", "Counted"),
    LifeKind("epochs", "Epochs"),
    LifeKind("misreported", "Misreported"),
    LifeKind("stale", "Stale"),
    LifeKind("paid_approval", "PaidApproval", ether_wei=ETH),
    LifeKind("costly_approval", "CostlyApproval"),
    LifeKind("moved_books", "MovedBooks", venues=("v2",), acts=(*MOVES, Act("allow(address,uint256)", (WALLET, ETH))), books=(0, 4)),
    LifeKind("lazy_books", "LazyBooks", honest=True, acts=MOVES[:1], books=(0, 4)),
    LifeKind("packed", "Packed", venues=("v2", "v3"), balance_bits=128),
    LifeKind("silent", "Silent", honest=True),
    LifeKind("shares", "Shares", honest=True, venues=("v2",), acts=REBASES, rounding_raw=10),
    LifeKind("muted", "Muted", acts=tuple(Act("feel(uint256)", (mood,)) for mood in (0, 1, 2))),
    LifeKind("proxy", "Proxy", ("behind",), acts=(Act("leave()"),)),
    LifeKind("stopped", "Stopped", acts=tuple(Act("tax(uint256)", (ppm,)) for ppm in (0, 500_000, 1_000_000, 1_000_001))),
    LifeKind("knows_ghost", "KnowsGhost", primed=True),
    LifeKind("knows_reader", "KnowsReader"),
    LifeKind("knows_lens", "KnowsLens"),
    LifeKind("chance", "Chance", (0,)),
    LifeKind("chance_of_sales", "Chance", (1,)),
    LifeKind("chance_later", "Chance", (2,), acts=(Act("begin(uint256)", (1,)), Act("begin(uint256)", (2,)))),
    LifeKind("bequests", "Bequests", acts=(Act("give(bool)", (True,)), Act("give(bool)", (True,)), Act("give(bool)", (False,))), ether_wei=ETH),
    LifeKind("burning", "Burning", acts=tuple(Act("light(uint256)", (left,)) for left in (0, 3_000, 300_000, 4_000_000))),
    LifeKind("refunding", "Refunding", honest=True),
    LifeKind("unloading", "Unloading", acts=tuple(Act("loaded(uint256)", (count,)) for count in (60, 160, 200))),
    LifeKind("burning_crowd", "Burning", venues=("v2",), acts=(Act("light(uint256)", (4_000,)),), copies=10),
    LifeKind("muted_crowd", "Muted", venues=("v2",), acts=(Act("feel(uint256)", (2,)),), copies=10),
)


def kind_named(name: str) -> LifeKind:
    """A kind by name. Raises: KeyError."""
    return {kind.name: kind for kind in KINDS}[name]
