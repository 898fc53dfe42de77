"""The assembly: the one place that builds clocks, doors, stores, desks and stacks, from settings and a window.

Everything else is given what it needs. Source: design §3.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from secrets import randbelow, token_hex

from chain.devnet.process import Progress, nobody
from chain.evm import LocalEvm
from chain.market import MarketIndex
from chain.network import Network, load_network
from chain.outside.view import OutsideView, sources_named
from chain.pools import PoolGraph
from chain.probe import Capabilities, check_identity, probe
from chain.rpc import Lane, RpcDoor
from chain.unforeseen import watched_from
from harnesses.manifest import Harness, load_harness
from ledgers.clock import Clock
from ledgers.errors import StoreFault
from ledgers.identity import identity_of, sha256_hex
from ledgers.journal import Journal
from ledgers.store import Store
from ops.home_chain import DEVNET, HomeChain
from ops.live_market import LiveMarket
from ops.live_tools import LiveTools
from ops.models import Models
from ops.rival_routers import AskedRivals, rivals_of
from ops.scheduler import TickAlarm
from ops.settings import BadSettings, Settings
from referee.onchain.baselines import Baseline, baseline, scripted
from referee.onchain.board import Desk
from referee.onchain.further_desk import FurtherDesk
from referee.onchain.live import LiveWindow, Seat
from referee.onchain.second_opinion import ONE_IN
from referee.onchain.state import WindowState, folded
from referee.onchain.window import BadWindow, RunPlan, Window

ROOT = Path(__file__).parents[1]
PACKAGES = ("ledgers", "prompts", "harnesses", "chain", "referee", "exam", "ops")
CODE_SUFFIXES = (".py", ".toml", ".sol", ".vy", ".js", ".json", ".lock")
PROMPTS = "prompts"
"""Every file there is what a model is told."""
NOT_CODE = ("node_modules", "__pycache__", ".build", "build")
HARNESS = "baseline-1"
SECRET = "secret"
"""File of a home that the secrets of its windows are derived from; readable by its owner alone."""
METERED_ONE_IN = 20
"""Of so many orders one is witnessed where a node counts its questions."""
HISTORY_STEPS_PER_INTERVAL = 10
"""Price points that the bundle shows for one interval of the window."""


@asynccontextmanager
async def live_window(
    settings: Settings, window: Window, journal: Journal, clock: Clock, progress: Progress = nobody
) -> AsyncIterator[tuple[LiveWindow, HomeChain | None]]:
    """Build a window's doors, fresh or as its journal left it, and close them at the end.

    Raises: BadWindow, BadSettings, ChainFault."""
    network, state, models = network_named(window.network), folded(journal.read()), Models(settings, clock)
    places = seats(window, journal.window_id, models)
    home_chain = HomeChain(home=settings.home, seed=window.seed, clock=clock, progress=progress) if network.name == DEVNET else None
    async with AsyncExitStack() as closing:
        closing.push_async_callback(models.close)
        if home_chain is not None:
            closing.push_async_callback(home_chain.down)
        door = RpcDoor([await home_chain.up(state)] if home_chain else lanes(settings, network), clock=clock)
        closing.push_async_callback(door.close)
        alarm = TickAlarm(clock)
        closing.callback(alarm.close)
        found = await probed(door, network, clock, state)
        outside = outside_view(settings, network, clock)
        if outside is not None:
            closing.push_async_callback(outside.close)
        rivals = rivals_of(settings, network, clock)
        if rivals is not None:
            closing.push_async_callback(rivals.close)
        secret = window_secret(settings, journal.window_id)
        live = assembled(window, places, journal, state, door, network, found, clock, alarm, outside, rivals, secret)
        models.tables.tools, models.tables.plan_of = live_tools(live), live.plan_of
        await live.market.index.advance((await live.desk.pin()).block)  # a window taken up late sells before it shows anything
        yield live, home_chain


def assembled(
    window: Window, places: dict[str, Seat], journal: Journal, state: WindowState, door: RpcDoor, network: Network,
    found: Capabilities, clock: Clock, alarm: TickAlarm, outside: OutsideView | None = None, rivals: AskedRivals | None = None,
    secret: str = "",
) -> LiveWindow:  # fmt: skip
    """Put a live window together from its parts."""
    network = watched_from(network, secret)
    rules, graph = window.ruled_by, PoolGraph(network)
    step_s = max(1, window.interval_ms // (1_000 * HISTORY_STEPS_PER_INTERVAL))
    index = MarketIndex(door, network, graph, history_step_s=step_s, tokens=window.tokens)
    desk = desk_of(state, Desk(door, network, graph, rules, clock, found.clock_offset_ms), found)
    desk.liquidity.follower.recall, desk.rivals = journal.blob, rivals
    market = LiveMarket(rpc=door, chain=network, index=index, rules=rules, found=found, outside=outside)
    desk.said_against = market.said_against
    desk.compared = drawn
    return LiveWindow(
        window=window,
        rules=rules,
        seats=places,
        journal=journal,
        clock=clock,
        alarm=alarm,
        desk=desk,
        further=FurtherDesk(desk),
        market=market,
        code_sha256=code_sha256(),
        secret=secret,
        state=state,
        evm=LocalEvm(door, network.chain_id, apart=True, codes=desk.evm.codes),
        witness_one_in=1 if network.name == DEVNET else METERED_ONE_IN,
    )


def window_secret(settings: Settings, window_id: str) -> str:
    """The secret of one window, from the home's own: the same however often a window is taken up, and told in no event before its seal.

    Raises: StoreFault when the home's secret can be neither read nor made."""
    path = settings.home / SECRET
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token_hex(32))
        return hmac.new(path.read_bytes(), window_id.encode(), "sha256").hexdigest()
    except OSError as error:
        raise StoreFault(f"the secret of {settings.home} cannot be read or made: {error.strerror or error}") from None


def drawn() -> bool:
    """Whether an order is compared with what another lane says; decided when it is quoted, by nobody's seed."""
    return randbelow(ONE_IN) == 0


def outside_view(settings: Settings, network: Network, clock: Clock) -> OutsideView | None:
    """The outside sources that are asked for; none of a local chain, which nobody outside knows. Raises: BadSettings."""
    try:
        sources = sources_named(settings.outside_names(), network.name, network.chain_id)
    except ValueError as error:
        raise BadSettings(f"REFEREE_OUTSIDE: {error}") from None
    return OutsideView(sources, clock) if sources and network.name != DEVNET else None


def live_tools(live: LiveWindow) -> LiveTools:
    """The tools of a window's models, over its own desk and market."""
    assert isinstance(live.market, LiveMarket) and isinstance(live.desk, Desk), "tools are laid out over a real node"
    return LiveTools(market=live.market, desk=live.desk, rules=live.rules, state=live.state)


def desk_of(state: WindowState, desk: Desk, found: Capabilities) -> Desk:
    """Fit a desk to its node, and to the marks that the journal already holds."""
    desk.fit(gas_cap=found.gas_cap, headers_sealed=found.headers_sealed)
    for run_id, run in state.runs.items():
        for ledger, mark in run.marks.items():
            desk.remember(run_id, ledger, mark.holdings)
    return desk


async def probed(door: RpcDoor, network: Network, clock: Clock, state: WindowState) -> Capabilities:
    """Find out what the node is, and believe no other from then on. Raises: ChainFault."""
    expected = state.opened.block0_hash if state.opened else None
    found = await probe(door, network, clock)
    check_identity(found, network, expected)
    door.expect_identity(found.chain_id, found.block0_hash)
    return found


# --- networks ---------------------------------------------------------------------------------------------------------


def network_named(name: str) -> Network:
    """Load a network, with a reader that nobody can know beforehand. Raises: BadWindow naming the known ones."""
    try:
        return replace(load_network(name), reader=f"0x{token_hex(20)}")
    except ValueError as error:
        raise BadWindow(str(error)) from None


def lanes(settings: Settings, network: Network) -> list[Lane]:
    """Name the lanes to a real chain. Raises: BadSettings when there is none."""
    found = settings.lanes()
    if not found:
        raise BadSettings(f"{network.name} is a real chain and needs a node: set REFEREE_RPC_URLS to its address")
    return list(found)


# --- stacks -----------------------------------------------------------------------------------------------------------


def seats(window: Window, window_id: str, models: Models) -> dict[str, Seat]:
    """Seat every run of a window. Shapes: by run id, in the order of the file. Raises: BadWindow, BadSettings, CorruptJournal."""
    harness = load_harness(HARNESS)
    return {plan.run_id: _seat(window, plan, harness, models) for plan in window.runs(window_id)}


def _seat(window: Window, plan: RunPlan, harness: Harness, models: Models) -> Seat:
    try:
        if plan.stack.model is not None:
            return models.seat(plan)
        built = _baseline(window, plan, harness)
    except ValueError as error:
        raise BadWindow(f"stack {plan.stack.name}: {error}") from None
    return Seat(
        run_id=plan.run_id,
        copy=plan.copy,
        stack=built.stack,
        provider=built.provider(models.clock),
        prompt="",
        seed=built.seed,
        turn_ms_max=built.turn_ms_max,
    )


def _baseline(window: Window, plan: RunPlan, harness: Harness) -> Baseline:
    stack = plan.stack
    if stack.script is not None:
        if stack.params:
            raise ValueError("a script takes no parameters")
        return scripted(stack.script, harness, window_seed=window.seed, copy=plan.copy, label=stack.name)
    assert stack.baseline is not None, f"{plan.run_id} has neither baseline nor script"
    return baseline(stack.baseline, dict(stack.params), harness, window_seed=window.seed, copy=plan.copy, label=stack.name)


# --- store ------------------------------------------------------------------------------------------------------------


@contextmanager
def held_store(settings: Settings) -> Iterator[Store]:
    """Hold the home's store for this process alone; one in which nothing came to be is taken away again.

    Raises: StoreFault."""
    fresh = not settings.store_path.exists() or not settings.store_path.stat().st_size
    made_home = not settings.home.exists()
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreFault(f"the home {settings.home} cannot be made ({error.strerror}); set REFEREE_HOME to a directory that can be written") from None
    empty = False
    try:
        with Store(settings.store_path, exclusive=True) as store:
            try:
                yield store
            finally:
                empty = fresh and not store.window_ids()
    finally:
        if empty:
            _clear(settings.store_path, settings.home if made_home else None)


def _clear(store_path: Path, home: Path | None) -> None:
    for path in store_path.parent.glob(f"{store_path.name}*"):
        path.unlink(missing_ok=True)
    if home is not None and not any(home.iterdir()):
        home.rmdir()


# --- identity ---------------------------------------------------------------------------------------------------------


def code_sha256(root: Path = ROOT) -> str:
    """Hash the code tree: every source and data file of the product's packages, by path."""
    return identity_of({path.relative_to(root).as_posix(): sha256_hex(path.read_bytes()) for path in _code_files(root)})


def _code_files(root: Path) -> Sequence[Path]:
    found = (path for package in PACKAGES for path in (root / package).rglob("*") if path.suffix in CODE_SUFFIXES or package == PROMPTS)
    return sorted(path for path in found if path.is_file() and not set(path.relative_to(root).parts) & set(NOT_CODE))
