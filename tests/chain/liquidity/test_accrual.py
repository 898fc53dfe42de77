"""Accrual against a reference pool: same logs, same growth, same fees, whatever happens in between."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chain.liquidity.accrual import PaperPosition, PoolPath
from chain.liquidity.pool_logs import PANCAKE, TOPICS, V3, V4, Swapped, happened
from chain.liquidity.tick_map import TickMap
from chain.liquidity.ticks import SQRT_PRICE_MAX, SQRT_PRICE_MIN, sqrt_price_at
from chain.logs import Log
from ledgers.errors import ChainFault
from tests.chain.liquidity.reference import ReferencePool

SHAPES = [V3, PANCAKE, V4]
WIDEST = 20
CUTS = {V3: [0, 4, 10], PANCAKE: [0, 3_200, 10_000], V4: [0, 500, 1_000]}


def path_of(pool: ReferencePool) -> PoolPath:
    """What is read of a pool at its present block."""
    ticks = TickMap(pool.spacing, [(tick, info.gross, info.net) for tick, info in pool.ticks.items()])
    return PoolPath(
        shape=pool.shape, fee_ppm=pool.fee, sqrt_price_x96=pool.price, tick=pool.tick, liquidity=pool.liquidity,
        growth0_x128=pool.growth[0], growth1_x128=pool.growth[1], cut0=pool.cuts[0], cut1=pool.cuts[1], ticks=ticks,
        block=pool.block - 1, block_hash="",
    )  # fmt: skip


class Market:
    """Random traders and providers at a reference pool."""

    def __init__(self, shape: str, seed: int, spacing: int = 60, fee: int = 3_000) -> None:
        self.random = Random(seed)
        tick = self.random.randint(-2_000, 2_000)
        self.pool = ReferencePool(shape, fee, spacing, self.random.randint(sqrt_price_at(tick), sqrt_price_at(tick + 1) - 1))
        self.start = self.pool.tick
        edge = 887_272 // spacing * spacing
        self.pool.change("floor", -edge, edge, self.random.randint(10**12, 10**18))
        self.lent: list[tuple[str, int, int, int]] = []
        self.bounds = self.range()

    def range(self) -> tuple[int, int]:
        """A range about the price."""
        place = self.start // self.pool.spacing
        lower = place + self.random.randint(-WIDEST, WIDEST // 2)
        return lower * self.pool.spacing, (lower + self.random.randint(1, WIDEST)) * self.pool.spacing

    def act(self) -> None:
        """One happening."""
        roll = self.random.random()
        if roll < 0.72:
            self.trade()
        elif roll < 0.86 or not self.lent:
            ticks = self.bounds if self.random.random() < 0.2 else self.range()
            owner, amount = f"p{self.random.randint(0, 3)}", 10 ** self.random.randint(3, 19)
            self.pool.change(owner, *ticks, amount)
            self.lent.append((owner, *ticks, amount))
        elif roll < 0.94:
            owner, lower, upper, amount = self.lent.pop(self.random.randrange(len(self.lent)))
            self.pool.change(owner, lower, upper, -amount)
        elif roll < 0.97 and self.pool.liquidity:
            self.pool.gift(self.random.randint(0, 10**15), self.random.randint(0, 10**15))
        else:
            self.pool.set_cuts(self.random.choice(CUTS[self.pool.shape]), self.random.choice(CUTS[self.pool.shape]))

    def trade(self) -> None:
        pool, random = self.pool, self.random
        zero = random.random() < (0.5 if abs(pool.tick - self.start) < 1_500 else 0.2 + 0.6 * (pool.tick > self.start))
        amount = random.choice([1, 2, 3, random.randint(1, 10**6), random.randint(1, 10 ** random.randint(6, 19))])
        limit = random.choice([self.price_off(zero, random.choice([1, 2, 7, 60, 900])), self.on_grid(zero), 0])
        if not limit or ((limit >= pool.price) if zero else (limit <= pool.price)):
            limit = self.price_off(zero, 3_000)
        lp_fee = random.choice([0, 100, 3_000, 500_000]) if pool.shape == V4 and random.random() < 0.3 else None
        whole = pool.fee_of(zero, lp_fee)[0] >= 10**6
        pool.swap(zero, amount if whole or random.random() < 0.6 else -amount, limit, lp_fee)


    def price_off(self, zero: bool, ticks: int) -> int:
        """Price of a tick so far down or up, at most the outermost."""
        price = sqrt_price_at(min(max(self.pool.tick + (-ticks if zero else ticks), -887_272), 887_272))
        return max(price, SQRT_PRICE_MIN + 1) if zero else min(price, SQRT_PRICE_MAX - 1)

    def on_grid(self, zero: bool) -> int:
        """Price of a stop nearby, initialised or not."""
        place = self.pool.tick // self.pool.spacing + (0 if zero else 1)
        return sqrt_price_at(min(max(place * self.pool.spacing, -887_271), 887_271))


def watched(market: Market) -> tuple[PoolPath, int]:
    """A path that has all of the market's logs so far, and their count."""
    path = path_of(market.pool)
    path.block, path.index = market.pool.block, len(market.pool.logs) - 1
    return path, len(market.pool.logs)


def same(path: PoolPath, pool: ReferencePool) -> bool:
    state = (path.sqrt_price_x96, path.tick, path.liquidity, [path.growth0_x128, path.growth1_x128], (path.cut0, path.cut1))
    ticks = {tick: (info.gross, info.net) for tick, info in pool.ticks.items()}
    return (*state, path.ticks.ticks) == (pool.price, pool.tick, pool.liquidity, pool.growth, pool.cuts, ticks)


# --- the pool -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), spacing=st.sampled_from([1, 10, 60, 200]), fee=st.sampled_from([0, 1, 100, 3_000, 999_999]))
def test_path_is_the_pool_after_every_log(shape: str, seed: int, spacing: int, fee: int):
    market = Market(shape, seed, spacing, fee)
    path = path_of(market.pool)
    for _ in range(60):
        seen = len(market.pool.logs)
        market.act()
        for log in market.pool.logs[seen:]:
            path.apply(log)
        assert same(path, market.pool)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), spacing=st.sampled_from([1, 10, 60, 200]))
def test_twin_earns_what_the_pool_owes_to_the_wei(shape: str, seed: int, spacing: int):
    market = Market(shape, seed, spacing)
    pool, lower, upper, liquidity = market.pool, *market.bounds, 10**17
    pool.change("us", lower, upper, liquidity)
    path, seen = watched(market)
    twin = PaperPosition(lower=lower, upper=upper, liquidity=liquidity, twin=True)
    path.positions.append(twin)
    for _ in range(120):
        market.act()
    for log in pool.logs[seen:]:
        path.apply(log)
    assert same(path, pool)
    assert list(twin.fees()) == pool.poke("us", lower, upper).owed
    assert twin.principal(path.sqrt_price_x96) == pool.change("us", lower, upper, -liquidity)


def test_thousands_of_steps_end_where_the_pool_does():
    market = Market(V4, 11)
    pool, (lower, upper), liquidity = market.pool, market.bounds, 10**17
    pool.change("us", lower, upper, liquidity)
    path, seen = watched(market)
    path.positions.append(twin := PaperPosition(lower=lower, upper=upper, liquidity=liquidity, twin=True))
    for _ in range(4_000):
        market.act()
    for log in pool.logs[seen:]:
        path.apply(log)
    assert same(path, pool)
    assert list(twin.fees()) == pool.poke("us", lower, upper).owed
    assert path.swaps > 2_000 and path.crossings > 300


# --- paper positions ------------------------------------------------------------------------------------------------

LIQUIDITY = 10**18


def still_pool(shape: str = V3, fee: int = 3_000) -> tuple[ReferencePool, PoolPath]:
    """A pool at tick 30 whose only liquidity reaches from −600 to 600, and its path."""
    pool = ReferencePool(shape, fee, 60, sqrt_price_at(30))
    pool.change("floor", -600, 600, LIQUIDITY)
    path = path_of(pool)
    path.block, path.index = pool.block, len(pool.logs) - 1
    return pool, path


def follow(pool: ReferencePool, path: PoolPath, *positions: PaperPosition) -> None:
    """Let papers earn from what the pool logged since."""
    path.positions.extend(positions)
    for log in pool.logs[path.index + 1 :]:
        path.apply(log)


def paper(lower: int, upper: int, liquidity: int = LIQUIDITY // 10) -> PaperPosition:
    return PaperPosition(lower=lower, upper=upper, liquidity=liquidity)


def test_paper_in_range_earns_its_share_of_the_liquidity_with_it():
    pool, path = still_pool()
    pool.swap(True, 10**15, sqrt_price_at(0))
    follow(pool, path, position := paper(-60, 60))
    assert position.growth0_x128 == (3 * 10**12 << 128) // (LIQUIDITY + LIQUIDITY // 10)
    assert position.fees() == (3 * 10**12 // 11, 0)


def test_papers_on_one_path_dilute_each_other():
    pool, path = still_pool()
    pool.swap(True, 10**15, sqrt_price_at(0))
    follow(pool, path, first := paper(-60, 60), second := paper(-120, 33), away := paper(60, 120))
    assert first.growth0_x128 == second.growth0_x128 == (3 * 10**12 << 128) // (LIQUIDITY + 2 * (LIQUIDITY // 10))
    assert (away.growth0_x128, away.growth1_x128) == (0, 0)


@pytest.mark.parametrize(("falls", "inside"), [(True, (0, 30)), (False, (30, 47))])
def test_a_step_through_a_papers_own_bound_is_split_by_the_price_path(falls: bool, inside: tuple[int, int]):
    pool, path = still_pool()
    end = -40 if falls else 90
    amount0, amount1 = pool.swap(falls, 10**18, sqrt_price_at(end))
    follow(pool, path, position := paper(0, 47))
    place = (lambda tick: Fraction(1, sqrt_price_at(tick))) if falls else (lambda tick: Fraction(sqrt_price_at(tick)))
    part = (place(inside[0]) - place(inside[1])) / (place(30) - place(end)) * (1 if falls else -1)
    fee = Fraction((amount0 if falls else amount1) * 3, 1_000)
    share = abs(part) * fee * position.liquidity / (LIQUIDITY + position.liquidity)
    assert 0 <= share - position.fees()[0 if falls else 1] < 3


@pytest.mark.parametrize("shape", SHAPES)
def test_flash_fees_and_donations_are_shared_by_who_is_in_range(shape: str):
    pool, path = still_pool(shape)
    pool.gift(11 * 10**9, 22 * 10**9)
    follow(pool, path, inside := paper(-60, 60), outside := paper(31, 60))
    assert (inside.fees(), outside.fees()) == ((10**9 - 1, 2 * 10**9 - 1), (0, 0))


@pytest.mark.parametrize(("shape", "cut", "kept"), [(V3, 4, 3 * 10**12 * 3 // 4), (PANCAKE, 3_200, 3 * 10**12 * 68 // 100), (V4, 1_000, 2_997 * 10**9)])
def test_the_protocols_cut_is_taken_off(shape: str, cut: int, kept: int):
    pool, path = still_pool(shape)
    pool.set_cuts(cut, 0)
    pool.swap(True, 10**15, sqrt_price_at(0))
    pool.swap(False, 1, sqrt_price_at(600))
    follow(pool, path, position := paper(-60, 60))
    assert position.growth0_x128 == (kept << 128) // (LIQUIDITY + position.liquidity)


def test_a_dynamic_fee_is_read_from_each_swap():
    pool, path = still_pool(V4)
    for lp_fee in (0, 50_000, 10_000):
        pool.swap(True, 10**14, sqrt_price_at(0), lp_fee)
    follow(pool, path, position := paper(-60, 60))
    assert position.growth0_x128 == sum((fee << 128) // (LIQUIDITY + position.liquidity) for fee in (5 * 10**12, 10**12))


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), lower=st.integers(-900, 899), width=st.integers(1, 900))
def test_a_speck_of_paper_earns_what_a_real_speck_would(shape: str, seed: int, lower: int, width: int):
    """Bounds that nobody initialised against the same flow in a pool where somebody did: only roundings apart."""
    plain, marked = Market(shape, seed, 1), Market(shape, seed, 1)
    lower += plain.start
    speck = 10**6
    marked.pool.change("us", lower, lower + width, speck)
    path, seen = watched(plain)
    path.positions.append(position := paper(lower, lower + width, speck))
    sizes = Random(seed)
    for _ in range(60):
        zero, amount = sizes.random() < 0.5, 10 ** sizes.randint(6, 17)
        for market in (plain, marked):
            off = market.start - market.pool.tick
            if (off < 1_999) if zero else (off > -1_999):
                market.pool.swap(zero, amount, sqrt_price_at(market.start + (-2_000 if zero else 2_000)))
    for log in plain.pool.logs[seen:]:
        path.apply(log)
    real = [growth - last for growth, last in zip(marked.pool.inside(lower, lower + width), [0, 0], strict=True)]
    for ours, theirs in zip((position.growth0_x128, position.growth1_x128), real, strict=True):
        assert abs(ours - theirs) <= theirs // 10**5 + (60 * 20 << 128) // plain.pool.liquidity


# --- what is missing is noticed -------------------------------------------------------------------------------------


def earning(path: PoolPath, logs: list) -> list[int]:
    """Places of the swaps, not the last log, that are big enough to have earned something."""
    places = []
    for place, log in enumerate(logs[:-1]):
        before, what = (path.growth0_x128, path.growth1_x128), happened(path.shape, log)
        path.apply(log)
        if isinstance(what, Swapped) and max(what.amount0, what.amount1) > 10**7 and before != (path.growth0_x128, path.growth1_x128):
            places.append(place)
    return places


def ends_alike(path: PoolPath, logs: list, pool: ReferencePool) -> bool:
    """True when logs are taken in without complaint and end where the pool is, as the chain can be asked."""
    try:
        for log in logs:
            path.apply(log)
    except ChainFault:
        return False
    return (path.sqrt_price_x96, path.tick, path.liquidity, [path.growth0_x128, path.growth1_x128]) == (pool.price, pool.tick, pool.liquidity, pool.growth)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), shape=st.sampled_from(SHAPES), lie=st.sampled_from(["drop", "twice", "order", "amount"]))
def test_a_swap_that_is_dropped_doubled_moved_or_changed_is_noticed(seed: int, shape: str, lie: str):
    market = Market(shape, seed)
    path, seen = watched(market)
    for _ in range(40):
        market.act()
    logs = market.pool.logs[seen:]
    places = earning(path.copy(), logs)
    if not places:
        return
    at = Random(seed).choice(places)
    if lie == "drop":
        del logs[at]
    elif lie == "twice":
        logs.insert(at, logs[at])
    elif lie == "order":
        logs[at], logs[at + 1] = logs[at + 1], logs[at]
    else:
        logs[at] = replace(logs[at], data=more_in(shape, logs[at].data))
    assert not ends_alike(path, logs, market.pool)


def more_in(shape: str, data: bytes) -> bytes:
    """A swap's log with a hundredth more that came in, and one."""
    values = [int.from_bytes(data[at : at + 32], signed=True) for at in range(0, len(data), 32)]
    sign = -1 if shape == V4 else 1
    side = 0 if values[0] * sign > 0 else 1
    values[side] += sign * (abs(values[side]) // 100 + 1)
    return b"".join(value.to_bytes(32, signed=True) for value in values)


@pytest.mark.parametrize(("shape", "change"), [(V3, {"topics": ("0x" + "00" * 32,)}), (V4, {"data": b""}), (PANCAKE, {"data": bytes(32 * 5)}), (V3, {"data": b"\xff" * 160})])
def test_a_log_of_another_form_is_no_log_of_the_pool(shape: str, change: dict):
    pool, path = still_pool(shape)
    pool.swap(True, 10**15, sqrt_price_at(0))
    with pytest.raises(ChainFault, match="bad_answer"):
        path.apply(replace(pool.logs[-1], **change))


def test_a_copy_goes_on_apart():
    pool, path = still_pool()
    path.positions.append(paper(-60, 60))
    other = path.copy()
    pool.swap(True, 10**15, sqrt_price_at(0))
    pool.change("late", 0, 60, 7)
    follow(pool, other)
    assert (path.positions[0].fees(), path.ticks.ticks.get(0), path.swaps) == ((0, 0), None, 0)
    assert other.positions[0].fees()[0] > 0 and other.ticks.ticks[0] == (7, 7)


# --- whatever a node sends ------------------------------------------------------------------------------------------

WORDS = st.one_of(
    st.sampled_from([0, 1, 60, 120, 600, 2**96, 2**127, 2**128 - 1, 2**128, 2**255, 2**256 - 1, 2**256 - 60, LIQUIDITY, SQRT_PRICE_MIN, SQRT_PRICE_MAX - 1]),
    st.integers(0, 2**256 - 1),
    st.integers(-900, 900).map(lambda tick: tick % 2**256),
    st.integers(-900, 900).map(sqrt_price_at),
    st.integers(0, 10**18),
    st.integers(1, 10**18).map(lambda amount: 2**256 - amount),
)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_logs_at_all_are_taken_or_refused_by_name(shape: str, data: st.DataObject):
    _, path = still_pool(shape)
    path.positions += [paper(-60, 60), PaperPosition(lower=-600, upper=600, liquidity=LIQUIDITY, twin=True)]
    for index in range(path.index + 1, path.index + 5):
        kind = data.draw(st.sampled_from(sorted(TOPICS[shape])))
        topics = (kind, *(f"0x{data.draw(WORDS):064x}" for _ in range(data.draw(st.sampled_from([1, 3, 3])))))
        body = b"".join(data.draw(WORDS).to_bytes(32) for _ in range(data.draw(st.sampled_from([1, 2, 3, 4, 5, 6, 7]))))
        try:
            path.apply(Log("0x" + "aa" * 20, topics, body, path.block, "", index, None))
        except ChainFault as fault:
            assert fault.reason in ("liquidity_gap", "bad_answer")
            return
        assert all(min(position.fees()) >= 0 for position in path.positions)
