"""Stacks without a model: what every finding is measured against (001 §2.3.5).

    hold           does nothing; scores exactly 0
    random         buys, sells or does nothing by chance, at our own cadence and sizes
    momentum       buys what rose most, sells what falls
    reversion      buys what lies furthest below its mean, sells what is above it
    equal-weight   spreads its worth evenly over the deepest tokens and ETH
    script         answers from a file

Each is a pure function of the question: bundle and book in, decision text out, through the same provider, parser and
outcomes as a model. A change in what one decides is a new VERSION and so a new identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Protocol

from harnesses.manifest import Harness
from harnesses.provider import Provider
from harnesses.question import Question
from harnesses.scripted import FunctionProvider, Script, ScriptedProvider, read_script
from harnesses.stack import NO_MODEL, NO_PROMPT_SHA256, Stack
from ledgers.clock import Clock
from ledgers.identity import canonical_bytes, sha256_hex
from ledgers.money import mul_div_ceil, mul_div_floor
from referee.onchain.decision import BUY, SCHEMA, SELL
from referee.onchain.draws import Draws, run_seed
from referee.onchain.sight import SeenToken, Sight, look

PPM = 1_000_000
BPS = 10_000

Order = Mapping[str, str]
Orders = list[Order]


def buy(token: str, spend_wei: int) -> Order:
    """Write an order to buy."""
    return {"type": BUY, "token": token, "spend_wei": str(spend_wei)}


def sell(token: str, amount_raw: int | None = None) -> Order:
    """Write an order to sell an amount, or all of a holding."""
    return {"type": SELL, "token": token, "amount_raw": "all" if amount_raw is None else str(amount_raw)}


def decision(orders: Iterable[Order]) -> str:
    """Write orders as a decision's text."""
    return canonical_bytes({"schema": SCHEMA, "orders": [dict(order) for order in orders]}).decode()


HOLD = decision([])


class Trader(Protocol):
    """What a stack without a model is: parameters, and orders from what it sees."""

    NAME: ClassVar[str]
    VERSION: ClassVar[int]

    def orders(self, sight: Sight, draws: Draws) -> Orders:
        """Decide the orders of one turn."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Keeps its ETH."""

    NAME: ClassVar[str] = "hold"
    VERSION: ClassVar[int] = 1

    def orders(self, sight: Sight, draws: Draws) -> Orders:
        """Decide nothing."""
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Random:
    """The random trader: tokens by their liquidity, sizes like ours, nothing else known."""

    NAME: ClassVar[str] = "random"
    VERSION: ClassVar[int] = 1

    buy_ppm: int = 400_000
    """Chance of a buy; what buy and sell leave is the chance of nothing."""
    sell_ppm: int = 300_000
    spend_ppm_min: int = 10_000
    """Smallest buy as a part of the cash that may be spent; sizes are log-uniform up to the largest."""
    spend_ppm_max: int = 250_000

    def __post_init__(self) -> None:
        _within(self.buy_ppm, 0, PPM, "buy_ppm")
        _within(self.sell_ppm, 0, PPM - self.buy_ppm, "sell_ppm (with buy_ppm at most 1000000)")
        _within(self.spend_ppm_min, 1, PPM, "spend_ppm_min")
        _within(self.spend_ppm_max, self.spend_ppm_min, PPM, "spend_ppm_max")

    def orders(self, sight: Sight, draws: Draws) -> Orders:
        """Decide a buy, a sale or nothing, by chance."""
        chance = draws.below(PPM)
        if chance < self.buy_ppm:
            return self._buy(sight, draws)
        return self._sell(sight, draws) if chance < self.buy_ppm + self.sell_ppm else []

    def _buy(self, sight: Sight, draws: Draws) -> Orders:
        offered = [token for token in sight.market.tokens if token.liquidity_wei > 0]
        if not offered:
            return []
        token = offered[draws.weighted([token.liquidity_wei for token in offered])]
        cash_wei = sight.spendable_wei(_holdings_with(sight, token))
        spend_wei = mul_div_floor(cash_wei, draws.log_uniform_ppm(self.spend_ppm_min, self.spend_ppm_max), PPM)
        return [buy(token.address, spend_wei)] if spend_wei > 0 else []

    def _sell(self, sight: Sight, draws: Draws) -> Orders:
        if not sight.book.holdings:
            return []
        token, held_raw = sight.book.holdings[draws.below(len(sight.book.holdings))]
        return [sell(token, 1 + draws.below(held_raw))]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceReader:
    """What momentum and reversion have in common: how far back they look, and what they dare to buy."""

    lookback_steps: int
    """History steps that are looked at."""
    threshold_bps: int = 100
    """A smaller move or distance is none."""
    spend_ppm: int = 200_000
    """Part of the spendable cash that a buy takes."""
    depth_times_min: int = 20
    """A token is only bought where its pools hold this many times the spend; a rugged pool moves most of all."""

    def __post_init__(self) -> None:
        _within(self.depth_times_min, 0, 1_000_000, "depth_times_min")
        _within(self.lookback_steps, 1, 60, "lookback_steps")
        _within(self.threshold_bps, 0, BPS, "threshold_bps")
        _within(self.spend_ppm, 1, PPM, "spend_ppm")

    def buyable(self, sight: Sight) -> list[SeenToken]:
        """Tokens that are not held and whose pools are deep enough."""
        spend_wei = mul_div_ceil(sight.spendable_wei(len(sight.book.holdings) + 1), self.spend_ppm, PPM)
        deep = [token for token in sight.market.tokens if token.liquidity_wei >= self.depth_times_min * spend_wei]
        return [token for token in deep if not sight.book.holds(token.address)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Momentum(PriceReader):
    """Follows the price: one buy of what rose most, a full sale of what fell."""

    NAME: ClassVar[str] = "momentum"
    VERSION: ClassVar[int] = 1

    lookback_steps: int = 30
    """History steps over which a rise or fall is measured."""

    def orders(self, sight: Sight, draws: Draws) -> Orders:
        """Sell what fell, then buy the best riser that is not held."""
        moved = {token.address: self._moved_bps(token) for token in sight.market.tokens}
        sales = [sell(token) for token, _ in sight.book.holdings if moved.get(token, 0) <= -self.threshold_bps]
        risers = [token for token in self.buyable(sight) if moved[token.address] >= self.threshold_bps]
        best = max(risers, key=lambda token: moved[token.address], default=None)
        return _sales_then_buy(sight, sales, best, self.spend_ppm)

    def _moved_bps(self, token: SeenToken) -> int:
        prices = token.prices_wei[-self.lookback_steps - 1 :]
        return _gap_bps(prices[-1], prices[0]) if prices else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversion(PriceReader):
    """Bets on the mean: one buy of what lies furthest below it, a full sale of what is above it."""

    NAME: ClassVar[str] = "reversion"
    VERSION: ClassVar[int] = 1

    lookback_steps: int = 60
    """History steps whose mean is taken."""

    def orders(self, sight: Sight, draws: Draws) -> Orders:
        """Sell what is above its mean, then buy what is furthest below and not held."""
        gaps = {token.address: self._gap_bps(token) for token in sight.market.tokens}
        sales = [sell(token) for token, _ in sight.book.holdings if gaps.get(token, 0) >= self.threshold_bps]
        low = [token for token in self.buyable(sight) if gaps[token.address] <= -self.threshold_bps]
        lowest = min(low, key=lambda token: gaps[token.address], default=None)
        return _sales_then_buy(sight, sales, lowest, self.spend_ppm)

    def _gap_bps(self, token: SeenToken) -> int:
        prices = token.prices_wei[-self.lookback_steps :]
        return _gap_bps(prices[-1] * len(prices), sum(prices)) if prices else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualWeight:
    """Keeps its worth spread evenly over the deepest tokens and ETH."""

    NAME: ClassVar[str] = "equal-weight"
    VERSION: ClassVar[int] = 1

    tokens: int = 4
    """How many of the deepest tokens; ETH keeps a share of its own."""
    drift_bps: int = 2_000
    """A holding this far off its share is set right; a smaller drift is left alone."""

    def __post_init__(self) -> None:
        _within(self.tokens, 1, 7, "tokens")
        _within(self.drift_bps, 1, BPS, "drift_bps")

    def orders(self, sight: Sight, draws: Draws) -> Orders:
        """Sell what is above its share or no longer chosen, then buy what is below it."""
        chosen = [token for token in sight.market.tokens if token.price_wei > 0][: self.tokens]
        held = dict(sight.book.holdings)
        worth = {token.address: sight.worth_wei(token, held.get(token.address, 0)) for token in chosen}
        target_wei = mul_div_floor(sight.book.eth_wei + sum(worth.values()), 1, self.tokens + 1)
        drift_wei = mul_div_floor(target_wei, self.drift_bps, BPS)
        over = [token for token in chosen if worth[token.address] > target_wei + drift_wei]
        under = [token for token in chosen if worth[token.address] < target_wei - drift_wei]
        sales = [sell(token) for token in held if token not in worth]
        sales += [sell(token.address, _part_raw(held[token.address], worth[token.address], target_wei)) for token in over]
        buys = self._buys(sight, under, worth, target_wei)
        return (sales + buys)[: sight.market.orders_max]

    def _buys(self, sight: Sight, under: list[SeenToken], worth: Mapping[str, int], target_wei: int) -> Orders:
        held = {token for token, _ in sight.book.holdings}
        cash_wei = sight.spendable_wei(len(held | {token.address for token in under}))
        orders: Orders = []
        for token in under:
            spend_wei = min(target_wei - worth[token.address], cash_wei)
            cash_wei -= spend_wei
            orders += [buy(token.address, spend_wei)] if spend_wei > 0 else []
        return orders


# --- what traders share -----------------------------------------------------------------------------------------------


def _holdings_with(sight: Sight, token: SeenToken) -> int:
    return len(sight.book.holdings) + (0 if sight.book.holds(token.address) else 1)


def _sales_then_buy(sight: Sight, sales: Orders, token: SeenToken | None, spend_ppm: int) -> Orders:
    """At most one buy, with cash in hand only: what the sales will bring is not counted on."""
    if token is None:
        return sales[: sight.market.orders_max]
    spend_wei = mul_div_floor(sight.spendable_wei(_holdings_with(sight, token)), spend_ppm, PPM)
    return sales[: sight.market.orders_max - 1] + ([buy(token.address, spend_wei)] if spend_wei > 0 else [])


def _gap_bps(now: int, then: int) -> int:
    """How far one price is from another, rounded down; 0 when there was none."""
    return mul_div_floor(now - then, BPS, then) if then > 0 else 0


def _part_raw(held_raw: int, worth_wei: int, target_wei: int) -> int:
    """The part of a holding that is worth what it is above its share; at least one unit."""
    return max(held_raw - mul_div_ceil(held_raw, target_wei, worth_wei), 1)


def _within(value: int, low: int, high: int, name: str) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}, expected {low} to {high}")


# --- as stacks --------------------------------------------------------------------------------------------------------

TRADERS: tuple[type[Any], ...] = (Hold, Random, Momentum, Reversion, EqualWeight)
"""Every stack without a model that needs no file."""

SCRIPT_NAME, SCRIPT_VERSION = "script", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """One run's stack without a model, ready to be asked."""

    stack: Stack
    seed: int
    """The run's seed, from which each tick's draws come; recorded when the run opens."""
    turn_ms_max: int
    provider: Callable[[Clock], Provider]
    """Makes who answers, on a clock."""


def baseline(
    name: str,
    params: Mapping[str, object],
    harness: Harness,
    *,
    window_seed: int,
    copy: int,
    label: str | None = None,
) -> Baseline:
    """Build a stack without a model by its name. `label` is what the window file calls it, the name when left out.

    Raises: ValueError naming the baseline or the parameter, and what was expected."""
    trader = _trader(name, params)
    stack = _stack(label or name, f"baseline/{name}@{trader.VERSION}", asdict(trader), harness)
    seed = run_seed(window_seed, stack.sha256, stack.name, copy)
    return _ready(stack, seed, harness, lambda _: FunctionProvider(_decide(trader, seed)))


def scripted(script: bytes, harness: Harness, *, window_seed: int, copy: int, label: str | None = None) -> Baseline:
    """Build a stack that answers from a script; ticks without a line hold. Raises: ValueError naming the line."""
    lines = _lines(script)
    stack = _stack(label or SCRIPT_NAME, f"baseline/{SCRIPT_NAME}@{SCRIPT_VERSION}", {"script_sha256": sha256_hex(script)}, harness)
    seed = run_seed(window_seed, stack.sha256, stack.name, copy)
    return _ready(stack, seed, harness, lambda clock: ScriptedProvider(lines, clock, otherwise=HOLD))


def _trader(name: str, params: Mapping[str, object]) -> Trader:
    kind = next((kind for kind in TRADERS if name == kind.NAME), None)
    if kind is None:
        raise ValueError(f"no baseline named {name[:40]!r}; known: {', '.join(kind.NAME for kind in TRADERS)}")
    known = [field.name for field in fields(kind)]
    for param, value in params.items():
        if param not in known:
            raise ValueError(f"baseline {name} has no parameter {param[:40]!r}; known: {', '.join(known) or 'none'}")
        if type(value) is not int:
            raise ValueError(f"baseline {name}: {param} is {str(value)[:40]!r}, expected a whole number")
    try:
        trader: Trader = kind(**params)
    except ValueError as error:
        raise ValueError(f"baseline {name}: {error}") from None
    return trader


def _decide(trader: Trader, seed: int) -> Callable[[Question], str]:
    def decide(question: Question) -> str:
        return decision(trader.orders(look(question), Draws(seed, question.tick)))

    return decide


def _lines(script: bytes) -> Script:
    try:
        return read_script(script.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"the script is not UTF-8 at byte {error.start}") from None


def _stack(name: str, provider: str, params: Mapping[str, object], harness: Harness) -> Stack:
    return Stack(
        name=name,
        provider=provider,
        model=NO_MODEL,
        harness_sha256=harness.sha256,
        prompt_sha256=NO_PROMPT_SHA256,
        tools_sha256=harness.tools_sha256,
        params=tuple(sorted((param, str(value)) for param, value in params.items())),
    )


def _ready(stack: Stack, seed: int, harness: Harness, provider: Callable[[Clock], Provider]) -> Baseline:
    return Baseline(stack=stack, seed=seed, turn_ms_max=harness.manifest.limits.turn_ms_max, provider=provider)
