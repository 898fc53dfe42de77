"""The positions of a report: what providing liquidity brought, fees and impermanent loss apart (ONC-21)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ledgers.events import Event
from ledgers.journal import Journal
from ledgers.money import TokenRaw, Wei, decimal_text
from ledgers.report import Basis, Cell, Column, Said, Table
from ops.lists import short_run
from ops.names import Names, names_in, network_names
from ops.position_lines import amounts_text, bounds_text, pool_text, range_text, signed_eth_text, small_eth_text, unit_text
from ops.positions import LOST, OPEN, Kept, Positions
from referee.onchain.events import LEDGERS, BundleShown, WindowOpened
from referee.onchain.liquidity_events import LiquidityOpened

COLUMNS = (
    Column("run_id", "run", people=False),
    Column("position", "position", people=False),
    Column("position_text", "position", machines=False),
    Column("ledgers", "ledgers", people=False),
    Column("venue", "venue", people=False),
    Column("pool", "pool", people=False),
    Column("token0", "token 0", people=False),
    Column("token1", "token 1", people=False),
    Column("fee_ppm", "fee", people=False),
    Column("tick_lower", "from tick", people=False),
    Column("tick_upper", "to tick", people=False),
    Column("price_lower", "from price", people=False),
    Column("price_upper", "to price", people=False),
    Column("price_unit", "price of", people=False),
    Column("share_percent", "share", people=False),
    Column("state", "ended"),
    Column("opened_block", "from block", people=False),
    Column("closed_block", "to block", people=False),
    Column("put_in0_raw", "put in 0", people=False),
    Column("put_in1_raw", "put in 1", people=False),
    Column("principal0_raw", "principal 0", people=False),
    Column("principal1_raw", "principal 1", people=False),
    Column("fees0_raw", "fees 0", people=False),
    Column("fees1_raw", "fees 1", people=False),
    Column("swaps", "swaps", people=False),
    Column("crossings", "crossed", people=False),
    Column("valued_block", "valued at", people=False),
    Column("held_eth", "held instead", people=False),
    Column("principal_eth", "principal", people=False),
    Column("fees_eth", "fees"),
    Column("impermanent_loss_eth", "imp. loss"),
    Column("gas_eth", "gas"),
    Column("net_eth", "net"),
)
AMOUNT_COLUMNS = (
    Column("position", "position"),
    Column("place", "pool and range"),
    Column("put_in", "put in"),
    Column("principal", "principal back"),
    Column("fees", "fees"),
)
NOTE = (
    "In ETH. fees: computed from the pool's own logs, swap by swap, as the true share Lp/(L+Lp) of what real swaps paid in the range, "
    "the protocol's cut taken off; never simulated.\n"
    "imp. loss: impermanent loss, the principal's value less what the amounts put in would be worth unpooled, both at the pool's price of the closing "
    "(of a pool without ETH: at the sale of the last mark).\n"
    "net: fees and impermanent loss less the gas of opening and closing, against holding what was put in.\n"
    "Positions are kept on headline and permissive; delayed and own impact leave them out, so that what they brought is also part of the gaps to the headline."
)


@dataclass(slots=True)
class PooledAccount:
    """What these tables need of a window, as a fold over its events."""

    positions: Positions = field(default_factory=Positions)
    shown: dict[str, str] = field(default_factory=dict)
    """The last bundle that each run was shown."""
    named_in: dict[str, None] = field(default_factory=dict)
    """Bundles on which positions were opened: they name the tokens."""
    own: Names = field(default_factory=dict)
    """Names of our own file."""

    def apply(self, event: Event) -> None:
        """Fold one event in."""
        self.positions.apply(event)
        match event:
            case WindowOpened():
                self.own = network_names(event.network)
            case BundleShown():
                self.shown[event.run_id] = event.bundle_sha256
            case LiquidityOpened() if event.run_id in self.shown:
                self.named_in[self.shown[event.run_id]] = None

    def names(self, blob: Callable[[str], bytes | None]) -> Names:
        """Name the tokens of all positions."""
        return {**self.own, **{token: name for digest in self.named_in for token, name in names_in(blob(digest)).items()}}


def positions_tables(pooled: PooledAccount, journal: Journal, basis: Basis) -> tuple[Table, ...]:
    """Every position of a window: in ETH, and in tokens; nothing where there is none."""
    found = pooled.positions.all()
    if not found:
        return ()
    names, window_id = pooled.names(journal.blob), journal.window_id
    counted = Basis(label=basis.label, n=len(found), of="liquidity positions", claim=basis.claim)
    return (
        Table(name="positions", title="Liquidity positions", basis=counted, columns=COLUMNS, rows=tuple(_row(kept, names, window_id) for kept in found), note=NOTE),
        Table(
            name="position_amounts", title="Liquidity positions in tokens", basis=counted, columns=AMOUNT_COLUMNS,
            rows=tuple(_amounts(kept, names, window_id) for kept in found), note="principal of a position that is open: as it was at the last mark.",
        ),
    )  # fmt: skip


def _row(kept: Kept, names: Names, window_id: str) -> tuple[Cell, ...]:
    opened, worth, principal = kept.opened, kept.worth, kept.principal
    low, high = bounds_text(opened, names)
    back: Sequence[str | None] = [str(raw) for raw in principal] if principal else (None, None)
    return (
        opened.run_id, kept.id, _short(kept, window_id), "+".join(kept.ledgers), opened.venue, opened.pool, opened.token0, opened.token1,
        opened.fee_ppm, opened.tick_lower, opened.tick_upper, low, high, unit_text(opened, names), decimal_text(opened.share_ppm, 4, 4), kept.state,
        opened.pin.block, kept.end_block, *map(_raw, kept.put_in), *back, *map(_raw, kept.fees), kept.swaps, kept.crossings,
        worth.block if worth else None, _eth(worth.held_wei if worth else None), _eth(worth.principal_wei if worth else None),
        _eth(worth.fees_wei if worth else None), _signed(worth.impermanent_wei) if worth else None, _eth(kept.gas_wei),
        None if kept.net_wei is None else _signed(kept.net_wei),
    )  # fmt: skip


def _amounts(kept: Kept, names: Names, window_id: str) -> tuple[Cell, ...]:
    principal = amounts_text(kept.assets, kept.principal, names) if kept.principal else None
    left = f"{principal} (not back)" if principal and kept.state in (OPEN, LOST) else principal
    return _short(kept, window_id), f"{pool_text(kept.opened, names)}, {range_text(kept.opened, names)}", amounts_text(kept.assets, kept.put_in, names), left, amounts_text(kept.assets, kept.fees, names)


def _short(kept: Kept, window_id: str) -> str:
    ledgers = "" if set(kept.ledgers) == set(LEDGERS) else f" ({' and '.join(kept.ledgers)})"
    return f"{short_run(kept.id, window_id)}{ledgers}"


def _raw(raw: TokenRaw) -> str:
    return str(raw)


def _eth(amount: Wei | None) -> Said | None:
    return None if amount is None else Said(small_eth_text(amount), decimal_text(amount, 18))


def _signed(amount: Wei) -> Said:
    return Said(signed_eth_text(amount), decimal_text(amount, 18))
