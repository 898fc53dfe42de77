"""Hooks: the kinds of v4 hooks of the annex, each with the pool it stands on.

What a hook may do is written in the low 14 bits of its address, so its code is put at an address that says so: the hash
of its name with those bits in place of the last ones. Source: v4-core `Hooks`; the traps of the real chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eth_utils import keccak

from chain.devnet.calls import arguments
from chain.devnet.compile import Artifact
from chain.devnet.venues import DYNAMIC_FEE

AFTER_INITIALIZE, AFTER_ADD, BEFORE_SWAP, AFTER_SWAP = 1 << 12, 1 << 10, 1 << 7, 1 << 6
BEFORE_SWAP_DELTA, AFTER_SWAP_DELTA, AFTER_ADD_DELTA = 1 << 3, 1 << 2, 1 << 1
PERMISSIONS = (1 << 14) - 1
PASS_WORD = keccak(text="open the annex")
"""The hook data that `hook_data` wants."""
SNIPE_S = 300
"""Seconds in which the snipe taxes fall from 99 % to 1 %."""
REST_S = 30
HOURS_S = (60, 15)
"""Of every minute the first quarter is shut."""
SIZE_MAX = 10**17
FEE_PPM, BEFORE_PPM, FLATTER_PPM, CUT_PPM = 20_000, 10_000, 100_000, 10_000
SIDE_PPM = (3_000, 50_000)
"""What a buyer and a seller pay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSpec:
    """A hook and the pool that it stands on."""

    name: str
    artifact: str
    flags: int
    args: tuple = ()
    """Constructor arguments after the pool manager; a name in text is one of the core contracts, `token` the pool's token."""
    fee_ppm: int = 0
    spacing: int = 200
    hub: str = "native"
    buys: bool = True
    """Whether a plain buy through the universal router arrives."""
    sells: bool = True
    note: str

    @property
    def address(self) -> str:
        """Where its code is put."""
        named = int.from_bytes(keccak(text=f"devnet hook {self.name}")[:20], "big")
        return f"0x{named & ~PERMISSIONS | self.flags:040x}"

    def creation(self, compiled: Mapping[str, Artifact], known: Mapping[str, str]) -> str:
        """Creation code whose answer is the code to put there."""
        artifact = compiled[self.artifact]
        values = tuple(known.get(value, value) if isinstance(value, str) else value for value in ("v4_pool_manager", *self.args))
        return artifact.bytecode + arguments(artifact.constructor_types, values)


AFTER_DELTA, BEFORE_DELTA = AFTER_SWAP | AFTER_SWAP_DELTA, BEFORE_SWAP | BEFORE_SWAP_DELTA

HOOKS = (
    HookSpec(name="fee_after", artifact="AfterSwapFee", flags=AFTER_DELTA, args=(FEE_PPM,), note="takes 2 % of what arrives; pool fee 0"),
    HookSpec(
        name="fee_after_usdg", artifact="AfterSwapFee", flags=AFTER_DELTA, args=(FEE_PPM,), hub="usdg", note="the same against dollars"
    ),
    HookSpec(name="fee_before", artifact="BeforeSwapFee", flags=BEFORE_DELTA, args=(BEFORE_PPM,), note="takes 1 % of what is paid"),
    HookSpec(
        name="size", artifact="SizeGate", flags=BEFORE_SWAP, args=(SIZE_MAX,), fee_ppm=3_000, spacing=60, sells=False,
        note="refuses amounts paid above 10^17 units: buys of 0.1 ETH, sales of a tenth of a token",
    ),
    HookSpec(
        name="hours", artifact="HoursGate", flags=BEFORE_SWAP, args=HOURS_S, fee_ppm=3_000, spacing=60,
        note="refuses everything in the first 15 seconds of each minute",
    ),
    HookSpec(
        name="sender", artifact="SenderGate", flags=BEFORE_SWAP, args=("universal_router",), fee_ppm=3_000, spacing=60,
        note="admits the universal router only: the quoter is refused, a real swap is not",
    ),
    HookSpec(
        name="no_sale", artifact="SellGate", flags=BEFORE_SWAP, fee_ppm=3_000, spacing=60, sells=False, note="refuses every sale: a honeypot"
    ),
    HookSpec(
        name="snipe_rate", artifact="SnipeTaxRate", flags=AFTER_INITIALIZE | BEFORE_SWAP, args=(SNIPE_S,), fee_ppm=DYNAMIC_FEE, spacing=60,
        note="fee of the pool by override, 99 % falling to 1 % in 300 s",
    ),
    HookSpec(
        name="snipe_delta", artifact="SnipeTaxDelta", flags=AFTER_INITIALIZE | AFTER_DELTA, args=(SNIPE_S,),
        note="the same by return delta; pool fee 0",
    ),
    HookSpec(
        name="busy_rate", artifact="BusyRate", flags=AFTER_INITIALIZE | AFTER_SWAP, fee_ppm=DYNAMIC_FEE, spacing=60,
        note="dynamic fee, written after every swap: 0.05 % to 3 %",
    ),
    HookSpec(
        name="side_rate", artifact="SideRate", flags=BEFORE_SWAP, args=("token", *SIDE_PPM), fee_ppm=DYNAMIC_FEE, spacing=60, hub="usdg",
        note="dynamic fee by override: buyers 0.3 %, sellers 5 %",
    ),
    HookSpec(
        name="origin", artifact="OriginGate", flags=BEFORE_SWAP, args=(REST_S,), fee_ppm=3_000, spacing=60,
        note="refuses a second swap of one tx.origin within 30 s",
    ),
    HookSpec(
        name="hook_data", artifact="DataGate", flags=BEFORE_SWAP, args=(PASS_WORD,), fee_ppm=3_000, spacing=60, buys=False, sells=False,
        note="refuses who brings no pass word as hook data",
    ),
    HookSpec(
        name="loud", artifact="LoudGate", flags=BEFORE_SWAP, fee_ppm=3_000, spacing=60, sells=False,
        note="refuses every sale with 22 kB of hostile bytes",
    ),
    HookSpec(
        name="takes_all", artifact="TakesAll", flags=AFTER_DELTA, buys=False, sells=False,
        note="takes one unit more than arrives: the quoter answers 2^128 - 1, a real swap fails",
    ),
    HookSpec(
        name="flatters", artifact="FlattersQuoter", flags=AFTER_DELTA, args=(FLATTER_PPM, "v4_quoter"),
        note="takes 10 % of everybody but the quoter",
    ),
    HookSpec(
        name="liquidity_cut", artifact="LiquidityCut", flags=AFTER_ADD | AFTER_ADD_DELTA, args=(CUT_PPM,), fee_ppm=3_000, spacing=60,
        note="takes 1 % of what is added as liquidity; swaps are plain",
    ),
)

GRADUATE = HookSpec(
    name="graduate", artifact="AfterSwapFee", flags=AFTER_DELTA, args=(10_000,), note="takes 1 % in the pools that curves end in"
)
"""The hook of the launchpad."""
