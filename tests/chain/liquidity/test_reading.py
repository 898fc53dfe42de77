"""Reading: a path is what its pool is; what a node leaves out, changes or takes back is noticed, and healed or refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from chain.header import Header
from chain.liquidity.accrual import PaperPosition, PoolPath
from chain.liquidity.moment import TICKS_MAX, ticks_of_words, word_call, word_places
from chain.liquidity.reading import Followed, follow, read_path, replayed
from chain.liquidity.record import log_bytes, logs_of, path_bytes, path_of
from chain.liquidity.ticks import sqrt_price_at
from chain.logs import LogFilter, topic
from chain.rpc import HttpTransport, Lane, RpcDoor
from ledgers.clock import SystemClock
from ledgers.errors import ChainFault, Corrupt
from tests.chain.liquidity.twin import CHANGE, LIQUIDITY, SWAP, TwinPool
from tests.onchain.lying import LyingNode, lying_node

VENUES = [("v3", "LEAF", 500, 10), ("v4", "native", 3_000, 60)]


@pytest.fixture(params=VENUES, ids=["v3", "v4"])
def market(chain, request) -> TwinPool:
    """A pool that has lived."""
    made = TwinPool.made(chain, *request.param)
    made.riot(2)
    return made


@asynccontextmanager
async def liar(market: TwinPool):
    """A lying node in front of the market's chain, and a door to it."""
    async with lying_node(market.chain.url) as node:
        door = RpcDoor([Lane("liar", node.url)], clock=SystemClock())
        yield node, door
        await door.close()


async def opened(market: TwinPool, door: RpcDoor, liquidity: int = LIQUIDITY) -> PoolPath:
    """A paper position in the market's newest block."""
    path = await read_path(door, market.network, market.pool, await market.header(door))
    path.positions.append(PaperPosition(lower=market.bounds[0] + 1, upper=market.bounds[1] + 1, liquidity=liquidity))
    return path


async def carried(market: TwinPool, door: RpcDoor, path: PoolPath, *earlier: PoolPath, header: Header | None = None) -> Followed:
    return await follow(door, market.network, market.pool, path, header or await market.header(door), earlier)


def growths(path: PoolPath) -> list[tuple[int, int]]:
    return [(position.growth0_x128, position.growth1_x128) for position in path.positions]


# --- what is read ---------------------------------------------------------------------------------------------------


async def test_a_path_carried_on_is_the_pool_read_anew(market, door):
    path = await opened(market, door)
    market.riot(3)
    market.chain.step(2)
    followed = await carried(market, door, path)
    anew = await read_path(door, market.network, market.pool, await market.header(door))
    assert replace(followed.path, positions=[], swaps=0, crossings=0, ticks=anew.ticks) == anew
    assert followed.path.ticks.ticks == anew.ticks.ticks and len(anew.ticks.ticks) > 10
    assert (followed.healed, followed.from_block, followed.swaps) == ("", path.block + 1, followed.path.swaps)
    assert min(followed.path.positions[0].fees()) > 0 and path.positions[0].fees() == (0, 0)


async def test_reading_in_stages_and_at_once_is_the_same(market, door):
    path = once = await opened(market, door)
    for _ in range(4):
        market.riot(1)
        path = (await carried(market, door, path)).path
    whole = await carried(market, door, once)
    assert growths(whole.path) == growths(path) and whole.path.crossings == path.crossings > 0


async def test_logs_alone_carry_a_path_on_as_far_and_ask_nothing_else(market, door):
    path = await opened(market, door)
    market.riot(2)
    honest, header = await carried(market, door, path), await market.header(door)
    async with liar(market) as (node, lied_to):
        on, logs = await replayed(lied_to, market.network, market.pool, path, header)
        assert node.asked == [["eth_getLogs"]]
    assert (path_bytes(on), log_bytes(logs)) == (path_bytes(honest.path), honest.logs_bytes)


async def test_an_empty_stretch_moves_nothing_but_the_block(market, door):
    path = await opened(market, door)
    market.chain.mine(3)
    followed = await carried(market, door, path)
    assert (followed.swaps, followed.path.block, growths(followed.path)) == (0, path.block + 3, [(0, 0)])
    again = await carried(market, door, followed.path)
    assert (again.path.block, again.from_block) == (path.block + 3, path.block + 4)


async def test_round_trips_are_few(market):
    """Two to read a whole tick map, two to carry it on."""

    class Counted(HttpTransport):
        trips = 0

        async def post(self, lane: Lane, body: bytes, deadline_ms: int) -> bytes:
            self.trips += 1
            return await super().post(lane, body, deadline_ms)

    wire = Counted()
    door = RpcDoor([Lane("devnet", market.chain.url)], clock=SystemClock(), transport=wire)
    header = await market.header(door)
    before = wire.trips
    path = await read_path(door, market.network, market.pool, header)
    read = wire.trips - before
    market.riot(1)
    header = await market.header(door)
    before = wire.trips
    await carried(market, door, path, header=header)
    assert (read, wire.trips - before) == (2, 2)
    await door.close()


@pytest.mark.parametrize(("spacing", "words"), [(1, 6_932), (60, 116), (32_767, 2)])
def test_every_word_of_a_tick_map_is_read(spacing: int, words: int):
    places = word_places(spacing)
    assert len(places) == words
    assert places[0] << 8 <= -887_272 // spacing and places[-1] << 8 <= 887_272 // spacing < places[-1] + 1 << 8


# --- lies about logs ------------------------------------------------------------------------------------------------


def of_swaps(logs: list) -> list[int]:
    """Places of the big swaps that are not the last log."""
    swaps = {topic("Swap(address,address,int256,int256,uint160,uint128,int24)"), topic("Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)")}
    return [at for at, log in enumerate(logs[:-1]) if log["topics"][0] in swaps and max(_amounts(log)) > 10**12]


def _amounts(log: dict) -> tuple[int, int]:
    sign = 1 if len(log["data"]) == 2 + 64 * 5 else -1
    first, second = (int.from_bytes(bytes.fromhex(log["data"][2 + 64 * at : 66 + 64 * at]), signed=True) for at in (0, 1))
    return sign * first, sign * second


def dropped(logs: list) -> list:
    return [log for at, log in enumerate(logs) if at != of_swaps(logs)[0]]


def doubled(logs: list) -> list:
    at = of_swaps(logs)[0]
    return [*logs[: at + 1], {**logs[at], "logIndex": hex(10**6)}, *logs[at + 1 :]]


def repeated(logs: list) -> list:
    return [*logs, logs[-1]]


def exchanged(logs: list) -> list:
    at = of_swaps(logs)[0]
    first, second = logs[at], logs[at + 1]
    places = ("blockNumber", "logIndex", "blockHash")
    turned = [{**second, **{name: first[name] for name in places}}, {**first, **{name: second[name] for name in places}}]
    return [*logs[:at], *turned, *logs[at + 2 :]]


def raised(logs: list) -> list:
    """A hundredth more came in."""
    at = of_swaps(logs)[0]
    amounts, log = _amounts(logs[at]), logs[at]
    side = 0 if amounts[0] > 0 else 1
    sign = 1 if len(log["data"]) == 2 + 64 * 5 else -1
    more = (sign * (amounts[side] * 101 // 100)).to_bytes(32, signed=True).hex()
    return [*logs[:at], {**log, "data": log["data"][: 2 + 64 * side] + more + log["data"][66 + 64 * side :]}, *logs[at + 1 :]]


def of_another_block(logs: list) -> list:
    """The newest block's logs are of another block of that number."""
    return [{**log, "blockHash": "0x" + "ab" * 32} if log["blockNumber"] == logs[-1]["blockNumber"] else log for log in logs]


def of_nothing(logs: list) -> list:
    return []


def misshapen(logs: list) -> list:
    return [*logs[:-1], {**logs[-1], "data": "0x"}]


LIES = [dropped, doubled, repeated, exchanged, raised, of_another_block, of_nothing, misshapen]


def lying_about_logs(node: LyingNode, lie: Callable[[list], list], times: int) -> None:
    left = [times]

    def change(params: list, logs: list) -> list:
        left[0] -= 1
        return lie(logs) if left[0] >= 0 and logs else logs

    node.by("eth_getLogs", change)


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
async def test_a_lie_told_once_is_healed(market, door, lie):
    path = await opened(market, door)
    market.riot(2)
    honest = await carried(market, door, path)
    async with liar(market) as (node, lied_to):
        lying_about_logs(node, lie, 1)
        healed = await carried(market, lied_to, path)
    assert healed.healed == ("reorg" if lie is of_another_block else "gap")
    assert (growths(healed.path), healed.swaps, healed.logs_bytes) == (growths(honest.path), honest.swaps, honest.logs_bytes)


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
async def test_a_lie_told_always_is_refused(market, door, lie):
    path = await opened(market, door)
    market.riot(2)
    async with liar(market) as (node, lied_to):
        lying_about_logs(node, lie, 10**6)
        with pytest.raises(ChainFault, match="liquidity_gap"):
            await carried(market, lied_to, path)
    assert growths(path) == [(0, 0)]


async def test_a_provider_left_out_shows_when_the_price_comes_by_and_is_healed_from_the_opening(market, door):
    """Nothing in the pool's state tells of liquidity out of range; the opening does."""
    path = opening = await opened(market, door)
    edge = market.start // market.pool.tick_spacing + 2 * 20
    lower = edge * market.pool.tick_spacing
    assert market.play([(CHANGE, False, lower, lower + market.pool.tick_spacing, LIQUIDITY, 0, 5)]) == [0]
    async with liar(market) as (node, lied_to):
        lying_about_logs(node, of_nothing, 1)
        path = (await carried(market, lied_to, path)).path
        assert lower not in path.ticks.ticks
        assert market.play([(SWAP, False, 0, 0, 10**30, sqrt_price_at(lower + 3), 0)]) == [0]
        healed = await carried(market, lied_to, path, opening)
    assert (healed.healed, healed.from_block) == ("gap", opening.block + 1)
    assert growths(healed.path) == growths((await carried(market, door, opening)).path)


async def test_a_tick_map_is_read_anew_while_nobody_earned(market, door):
    path = await opened(market, door)
    here = market.start // market.pool.tick_spacing * market.pool.tick_spacing
    reach = 60 * market.pool.tick_spacing
    assert market.play([(CHANGE, False, here - reach, here + reach, LIQUIDITY, 0, 5)]) == [0]
    async with liar(market) as (node, lied_to):
        lying_about_logs(node, of_nothing, 10**6)
        healed = await carried(market, lied_to, path)
    assert (healed.healed, healed.swaps, growths(healed.path)) == ("gap", 0, [(0, 0)])
    assert healed.path.liquidity == path.liquidity + LIQUIDITY


# --- reorganisations ------------------------------------------------------------------------------------------------


async def reorganised(market: TwinPool, door: RpcDoor) -> tuple[PoolPath, PoolPath]:
    """An opening that stands and a path whose block is gone; the chain has grown beyond it again, differently."""
    opening = await opened(market, door)
    market.chain.mine()
    mark, lent, state = market.chain.snapshot(), list(market.lent), market.random.getstate()
    market.riot(2)
    path = (await carried(market, door, opening)).path
    market.chain.revert(mark)
    market.lent = lent
    market.random.setstate(state)
    market.random.random()
    market.riot(3)
    return opening, path


async def test_a_reorganisation_is_healed_from_what_still_stands(market, door):
    opening, path = await reorganised(market, door)
    healed = await carried(market, door, path, opening)
    honest = await carried(market, door, opening)
    assert (healed.healed, healed.from_block, honest.healed) == ("reorg", opening.block + 1, "")
    assert growths(healed.path) == growths(honest.path) != growths(path)


async def test_an_opening_whose_block_is_gone_is_read_as_the_chain_has_it_now(market, door):
    _, path = await reorganised(market, door)
    path.positions = [afresh(position) for position in path.positions]
    healed = await carried(market, door, path)
    anew = await read_path(door, market.network, market.pool, await market.header(door, path.block))
    anew.positions = path.copy().positions
    assert (healed.healed, healed.from_block) == ("reorg", path.block + 1)
    assert growths(healed.path) == growths((await carried(market, door, anew)).path)


def afresh(position: PaperPosition) -> PaperPosition:
    return PaperPosition(lower=position.lower, upper=position.upper, liquidity=position.liquidity)


async def test_a_block_that_is_gone_cannot_be_followed_to(market, door):
    path = await opened(market, door)
    market.chain.mine()
    header = await market.header(door)
    gone = Header(block=header.block, block_hash="0x" + "cd" * 32, ts_s=header.ts_s, base_fee_wei=header.base_fee_wei)
    with pytest.raises(ChainFault, match="reorged: .*was to be read"):
        await carried(market, door, path, header=gone)


async def test_a_block_before_the_opening_cannot_be_followed_to(market, door):
    path = await opened(market, door)
    with pytest.raises(ChainFault, match="behind"):
        await carried(market, door, path, header=await market.header(door, path.block - 1))


async def test_a_block_before_the_newest_state_is_read_from_an_earlier_one(market, door):
    opening = await opened(market, door)
    market.riot(1)
    middle = await market.header(door)
    market.riot(1)
    newest = (await carried(market, door, opening)).path
    back = await carried(market, door, newest, opening, header=middle)
    assert (back.healed, back.path.block, back.from_block) == ("", middle.block, opening.block + 1)


# --- lies about the tick map ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lie", ["forgets a tick", "invents a tick", "says too little"])
async def test_a_tick_map_that_does_not_add_up_is_refused(market, door, lie):
    header = await market.header(door)
    async with liar(market) as (node, lied_to):

        def change(params: list, answer: str) -> str:
            word = market_word(market)
            other = {"forgets a tick": int(word, 16) & (int(word, 16) - 1), "invents a tick": int(word, 16) | (int(word, 16) + 1)}
            return answer[:-64] if lie == "says too little" else answer.replace(word, f"{other[lie]:064x}")

        node.by("eth_call", change)
        with pytest.raises(ChainFault, match="bad_answer"):
            await read_path(lied_to, market.network, market.pool, header)


def market_word(market: TwinPool) -> str:
    """The word of the tick map about the price, as the pool says it."""
    place = (market.start // market.pool.tick_spacing) >> 8
    to, data = word_call(market.network, market.pool, place)
    word = market.chain.node.call("eth_call", [{"to": to, "data": data}, "latest"])[2:]
    assert int(word, 16)
    return word


async def test_a_block_that_is_gone_is_not_read(market, door):
    header = await market.header(door)
    gone = Header(block=header.block, block_hash="0x" + "cd" * 32, ts_s=header.ts_s, base_fee_wei=header.base_fee_wei)
    with pytest.raises(ChainFault, match="reorged"):
        await read_path(door, market.network, market.pool, gone)


def test_a_map_of_more_ticks_than_any_pool_has_is_refused(market):
    full = (1 << 256) - 1
    words = [(place, full.to_bytes(32)) for place in range(TICKS_MAX // 256)]
    assert len(ticks_of_words(market.pool, words)) <= TICKS_MAX
    with pytest.raises(ChainFault, match="more than 50000"):
        ticks_of_words(market.pool, [*words, (-1, full.to_bytes(32))])


# --- records --------------------------------------------------------------------------------------------------------


async def test_a_path_and_its_logs_can_be_recounted_from_their_records(market, door):
    path = await opened(market, door)
    record = path_bytes(path)
    market.riot(2)
    followed = await carried(market, door, path)
    recounted = path_of(record)
    for log in logs_of(followed.logs_bytes):
        recounted.apply(log)
    recounted.seal(followed.path.block, followed.path.block_hash)
    assert path_bytes(recounted) == path_bytes(followed.path)
    assert log_bytes(logs_of(followed.logs_bytes)) == followed.logs_bytes


@pytest.mark.parametrize("record", [b"", b"{}", b"[1]", b'{"shape": 1}'])
def test_a_record_that_does_not_read_is_corrupt(record: bytes):
    with pytest.raises(Corrupt):
        path_of(record)
    with pytest.raises(Corrupt):
        logs_of(record)


# --- the filter -----------------------------------------------------------------------------------------------------


def test_logs_about_another_pool_of_the_manager_were_not_asked_for():
    ours, theirs, kind, where = "0x" + "01" * 32, "0x" + "02" * 32, topic("Swap()"), "0x" + "aa" * 20
    wanted = LogFilter(frozenset({kind}), frozenset({where}), ours)
    assert wanted.request(1, 2)[1][0]["topics"] == [[kind], ours]
    row = {"address": where, "topics": [kind, ours], "data": "0x", "blockNumber": "0x1", "blockHash": ours, "logIndex": "0x0"}
    assert len(wanted.read([row], 1, 2)) == 1
    for topics in ([kind, theirs], [kind]):
        with pytest.raises(ChainFault, match="not asked for"):
            wanted.read([{**row, "topics": topics}], 1, 2)
