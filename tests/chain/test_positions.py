"""Positions: their calldata is what the contracts' own interface says, and what simulation says of them is what really happens."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.devnet.calls import Tx as Sent
from chain.devnet.calls import arguments, encode
from chain.header import header_of, header_request
from chain.liquidity.amounts import amounts_of, liquidity_for
from chain.liquidity.ticks import SQRT_PRICE_MAX, SQRT_PRICE_MIN, TICK_MAX
from chain.network import load_network
from chain.pools import NATIVE, Pool, discover
from chain.position_proofs import COLLECT_GAS, Closing, ClosingProof, Opening, OpeningProof, PoolReading, Stopped
from chain.positions import AMOUNT_WHOLE, DEADLINE_NEVER, Placed, amounts_making, approvals_of, away_txs, close_tx, is_eth, mint_tx, range_refusal, straight_close_txs
from chain.simulate import answered
from chain.trade import Purse
from tests.onchain.ground import Ground

WALLET = "0x7c0ffee0000000000000000000000000000a11ce"
ETH = 10**18
POOLS = ("v3 weth LEAF", "v3 MOSS USDG", "v3 weth USDG", "v4 eth PINE", "v4 BRIM USDG")


def pool_of(ground: Ground, kind: str) -> Pool:
    """A pool by venue and both names, e.g. `v4 eth PINE`."""
    names = {"weth": ground.network.weth, "eth": NATIVE, "USDG": ground.network.usdg}
    venue, *pair = kind.split()
    wanted = {names.get(name) or ground.token(name) for name in pair}
    return next(pool for pool in ground.graph.pools.values() if pool.venue == venue and {pool.token0, pool.token1} == wanted)


@dataclass
class Bench:
    """A funded wallet, in simulation by its balance slots."""

    ground: Ground
    pool: Pool
    pin: object
    slots: dict
    held: dict

    @classmethod
    async def at(cls, ground: Ground, kind: str) -> Bench:
        pool = pool_of(ground, kind)
        (answer,) = await ground.desk.rpc.batch([header_request(ground.chain.height)])
        pin = header_of(answer)
        tokens = [token for token in (pool.token0, pool.token1) if not is_eth(ground.network, token)]
        slots = {token: await ground.desk.slots.of(token, WALLET, pin) for token in tokens}
        decimals = {ground.network.usdg: 6, ground.token("MOSS"): 6}
        held = {token: 500 * 10 ** decimals.get(token, 18) for token in tokens}
        return cls(ground, pool, pin, slots, held)

    def purse(self, *prefix) -> Purse:
        return Purse(WALLET, 5 * ETH, tuple(slot.write(self.held[token]) for token, slot in self.slots.items()), prefix)

    async def ask(self, simulation):
        (answer,) = await self.ground.desk.rpc.batch([simulation.request()])
        return answered(simulation, answer)

    async def now(self, *prefix):
        reading = PoolReading(self.ground.network, self.pin, self.purse(*prefix), self.pool)
        return reading.read(await self.ask(reading.simulation))

    def placed(self, tick: int, spacings: int = 10, shift: int = 0) -> Placed:
        spacing = self.pool.tick_spacing
        middle = (tick // spacing + shift) * spacing
        return Placed(self.pool, middle - spacings * spacing, middle + spacings * spacing)

    def sizes(self) -> tuple[int, int]:
        return tuple(ETH // 10 if is_eth(self.ground.network, token) else self.held[token] // 10 for token in (self.pool.token0, self.pool.token1))

    async def open(self, placed: Placed, amounts: tuple[int, int], now, paid=frozenset()) -> Opening | Stopped:
        liquidity = liquidity_for(now.sqrt_price_x96, placed.lower, placed.upper, *amounts)
        owed = amounts_of(liquidity, now.sqrt_price_x96, placed.lower, placed.upper, round_up=True)
        proof = OpeningProof(self.ground.network, self.pin, self.purse(), placed, amounts, liquidity, self.held, paid)
        return proof.read(await self.ask(proof.simulation), liquidity, owed)

    async def close(self, placed: Placed, liquidity: int, now) -> Closing | Stopped:
        proof = ClosingProof(self.ground.network, self.pin, WALLET, 5 * ETH, placed, liquidity, now.sqrt_price_x96, self.slots, self.held)
        stopped = proof.numbered(await self.ask(proof.simulation))
        return stopped or proof.read(await self.ask(proof.simulation))

    # --- really

    def fund(self) -> None:
        chain = self.ground.chain
        for token, slot in self.slots.items():
            write = slot.write(self.held[token])
            chain.node.call("anvil_setStorageAt", [write.contract, write.slot, f"0x{write.value:064x}"])
        chain.fund(WALLET, 5 * ETH)

    def balances(self) -> dict[str, int]:
        call = self.ground.chain.node.call
        told = {"eth": int(call("eth_getBalance", [WALLET, "latest"]), 16)}
        return told | {token: int(call("eth_call", [{"to": token, "data": encode("balanceOf(address)", WALLET)}, "latest"]), 16) for token in self.slots}

    def send(self, *txs) -> tuple[dict[str, int], list[dict]]:
        """What really came and went, gas apart, and the receipts."""
        before = self.balances()
        receipts = [receipt for tx in txs for receipt in self.ground.chain.send(Sent(sender=WALLET, to=tx.to, data=tx.data, value_wei=tx.value_wei, gas=tx.gas_limit))]
        assert all(receipt["status"] == "0x1" for receipt in receipts), receipts
        after = self.balances()
        gas_wei = sum(int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) for receipt in receipts)
        moved = {asset: after[asset] - before[asset] for asset in before}
        moved["eth"] += gas_wei
        return moved, receipts

    def by_side(self, moved: dict[str, int]) -> tuple[int, ...]:
        return tuple(moved["eth" if is_eth(self.ground.network, token) else token] for token in (self.pool.token0, self.pool.token1))


@pytest.fixture
async def ground(chain):
    ground = await Ground.on(chain)
    yield ground
    await ground.close()


@pytest.mark.parametrize("shift", [0, -40, 40], ids=["in range", "below", "above"])
@pytest.mark.parametrize("kind", POOLS)
async def test_opening_and_closing_are_simulated_as_they_really_happen_to_the_wei(ground, kind, shift):
    bench = await Bench.at(ground, kind)
    now = await bench.now()
    placed, amounts = bench.placed(now.tick, shift=shift), bench.sizes()
    opening = await bench.open(placed, amounts, now)
    closing = await bench.close(placed, opening.liquidity, now)
    bench.fund()
    mint = mint_tx(ground.network, placed, *amounts, opening.liquidity, WALLET)
    moved, receipts = bench.send(*(approval.tx for approval in approvals_of(ground.network, bench.pool)), mint)
    assert tuple(-each for each in bench.by_side(moved)) == opening.amounts
    assert [int(receipt["gasUsed"], 16) for receipt in receipts] == [*(gas for _, gas in opening.approve_gas), opening.mint_gas]
    number = int(next(log["topics"][3] for log in receipts[-1]["logs"] if len(log["topics"]) == 4 and log["topics"][1] == "0x" + "0" * 64), 16)
    moved, receipts = bench.send(close_tx(ground.network, placed, number, opening.liquidity, WALLET))
    assert bench.by_side(moved) == closing.amounts
    assert int(receipts[0]["gasUsed"], 16) == closing.gas


async def test_eth_is_wrapped_for_a_v4_pool_of_wrapped_eth(ground):
    """No such pool is there: one is made, and its first position is the paper wallet's own."""
    token, weth = ground.token("LEAF"), ground.network.weth
    token0, token1 = sorted((token, weth))
    key = (token0, token1, 3_000, 60, NATIVE)
    made = Sent(sender=ground.chain.deployment.cast.zookeeper, to=ground.network.v4_pool_manager, data=encode(f"initialize({KEY},uint160)", key, 1 << 96), gas=8_000_000)
    ground.chain.send(made)
    for pool in await discover(ground.desk.rpc, ground.network, 0, ground.chain.height):
        ground.graph.add(pool)
    bench = await Bench.at(ground, "v4 weth LEAF")
    now = await bench.now()
    placed, amounts = bench.placed(now.tick), (ETH, ETH)
    opening = await bench.open(placed, amounts, now)
    closing = await bench.close(placed, opening.liquidity, now)
    bench.fund()
    mint = mint_tx(ground.network, placed, *amounts, opening.liquidity, WALLET)
    moved, receipts = bench.send(*(approval.tx for approval in approvals_of(ground.network, bench.pool)), mint)
    assert tuple(-each for each in bench.by_side(moved)) == opening.amounts
    number = int(next(log["topics"][3] for log in receipts[-1]["logs"] if len(log["topics"]) == 4 and log["topics"][1] == "0x" + "0" * 64), 16)
    moved, receipts = bench.send(close_tx(ground.network, placed, number, opening.liquidity, WALLET))
    assert (bench.by_side(moved), int(receipts[0]["gasUsed"], 16)) == (closing.amounts, closing.gas)


@pytest.mark.parametrize("kind", POOLS)
async def test_what_leaves_for_a_position_leaves_the_wallet_the_same_way_without_making_the_pool_deeper(ground, kind):
    bench = await Bench.at(ground, kind)
    before = await bench.now()
    assert await bench.now(*away_txs(ground.network, bench.pool, bench.sizes(), 10**15)) == before


async def test_a_position_that_the_pool_does_not_take_is_stopped_with_its_reason(ground):
    bench = await Bench.at(ground, "v3 weth LEAF")
    now = await bench.now()
    stopped = await bench.open(Placed(bench.pool, 7, 61), bench.sizes(), now)
    assert isinstance(stopped, Stopped) and stopped.word == "reverted"


async def test_a_balance_that_cannot_be_put_in_place_proves_nothing(ground):
    bench = await Bench.at(ground, "v3 weth LEAF")
    now = await bench.now()
    bench.held = {token: units + 1 for token, units in bench.held.items()}
    slots, bench.slots = bench.slots, {token: SHIFTED(slot) for token, slot in bench.slots.items()}
    assert (await bench.open(bench.placed(now.tick), bench.sizes(), now)).word in ("unprovable", "reverted")
    bench.slots = slots


def SHIFTED(slot):
    return replace(slot, kind="shifted", shift=1)


# --- calldata -------------------------------------------------------------------------------------------------------

NETWORK = load_network("devnet")
KEY = "(address,address,uint24,int24,address)"
TOKEN = "0x" + "99" * 20
MINT = "mint((address,address,uint24,int24,int24,uint256,uint256,uint256,uint256,address,uint256))"
MINT_V4 = (KEY, "int24", "int24", "uint256", "uint128", "uint128", "address", "bytes")


def a_pool(venue: str, token0: str, token1: str) -> Pool:
    return Pool(venue=venue, key="0x" + "77" * (20 if venue == "v3" else 32), token0=token0, token1=token1, fee_ppm=500, tick_spacing=10, hooks=NATIVE, born_block=1)


def plan(*steps: tuple[int, tuple, tuple]) -> str:
    inside = arguments(("bytes", "bytes[]"), (bytes(action for action, _, _ in steps), [bytes.fromhex(arguments(types, values)) for _, types, values in steps]))
    return encode("modifyLiquidities(bytes,uint256)", bytes.fromhex(inside), DEADLINE_NEVER)


def test_v3_calldata_is_what_the_interface_says():
    placed = Placed(a_pool("v3", NETWORK.weth, TOKEN), -120, 60)
    words = (NETWORK.weth, TOKEN, 500, -120, 60, 7, 9, 0, 0, WALLET, DEADLINE_NEVER)
    both = [bytes.fromhex(part[2:]) for part in (encode(MINT, words), encode("refundETH()"))]
    tx = mint_tx(NETWORK, placed, 7, 9, 0, WALLET)
    assert (tx.to, tx.data, tx.value_wei) == (NETWORK.v3_positions, encode("multicall(bytes[])", both), 7)
    steps = [
        encode("decreaseLiquidity((uint256,uint128,uint256,uint256,uint256))", (5, 77, 0, 0, DEADLINE_NEVER)),
        encode("collect((uint256,address,uint128,uint128))", (5, NATIVE, AMOUNT_WHOLE, AMOUNT_WHOLE)),
        encode("unwrapWETH9(uint256,address)", 0, WALLET),
        encode("sweepToken(address,uint256,address)", TOKEN, 0, WALLET),
    ]
    assert close_tx(NETWORK, placed, 5, 77, WALLET).data == encode("multicall(bytes[])", [bytes.fromhex(step[2:]) for step in steps])
    steps[1:] = [encode("collect((uint256,address,uint128,uint128))", (5, WALLET, AMOUNT_WHOLE, AMOUNT_WHOLE))]
    first, second = straight_close_txs(NETWORK, placed, 5, 77, WALLET, (12, 34))
    assert (first.to, first.data) == (NETWORK.v3_positions, encode("multicall(bytes[])", [bytes.fromhex(step[2:]) for step in steps]))
    assert (second.to, second.data) == (NETWORK.weth, encode("withdraw(uint256)", 12))
    assert len(straight_close_txs(NETWORK, placed, 5, 77, WALLET, (0, 34))) == 1
    assert straight_close_txs(NETWORK, Placed(a_pool("v3", TOKEN, NETWORK.usdg), -120, 60), 5, 77, WALLET, (12, 34)) == ()


def test_v4_calldata_is_what_the_interface_says():
    placed = Placed(a_pool("v4", NATIVE, TOKEN), -120, 60)
    mint = (2, MINT_V4, ((NATIVE, TOKEN, 500, 10, NATIVE), -120, 60, 77, 7, 9, WALLET, b""))
    pair, sweep = (0x0D, ("address", "address"), (NATIVE, TOKEN)), (0x14, ("address", "address"), (NATIVE, WALLET))
    tx = mint_tx(NETWORK, placed, 7, 9, 77, WALLET)
    assert (tx.to, tx.data, tx.value_wei) == (NETWORK.v4_positions, plan(mint, pair, sweep), 7)
    burn = (3, ("uint256", "uint128", "uint128", "bytes"), (5, 0, 0, b""))
    taken = (0x11, ("address", "address", "address"), (NATIVE, TOKEN, WALLET))
    assert close_tx(NETWORK, placed, 5, 77, WALLET).data == plan(burn, taken)


@pytest.mark.parametrize(
    ("lower", "upper", "said"),
    [(-120, 60, ""), (-121, 60, "multiples"), (60, 60, "reaches"), (120, 60, "reaches"), (-887_280, 0, "reaches"), (0, 887_280, "reaches"), (-887_270, 887_270, "")],
)
def test_a_range_is_on_the_grid_of_its_pool_or_says_why_not(lower, upper, said):
    refusal = range_refusal(a_pool("v3", NETWORK.weth, TOKEN), lower, upper)
    assert said in refusal and bool(refusal) == bool(said)


@given(st.integers(1, 2**100), st.integers(SQRT_PRICE_MIN, SQRT_PRICE_MAX - 1), st.integers(-600_000, TICK_MAX - 1), st.integers(1, 50_000))
def test_the_least_amounts_of_some_liquidity_make_at_least_it(liquidity, price, lower, width):
    upper = min(lower + width, TICK_MAX)
    assert liquidity_for(price, lower, upper, *amounts_making(liquidity, price, lower, upper)) >= liquidity


@pytest.mark.parametrize("kind", POOLS)
async def test_closing_with_fees_takes_at_most_the_gas_of_collecting_them_more(ground, kind):
    """The position in simulation has earned nothing yet: what collecting fees adds is charged on top."""
    bench = await Bench.at(ground, kind)
    now = await bench.now()
    placed, amounts = bench.placed(now.tick, spacings=100), bench.sizes()
    opening = await bench.open(placed, amounts, now)
    bench.fund()
    _, receipts = bench.send(*(approval.tx for approval in approvals_of(ground.network, bench.pool)), mint_tx(ground.network, placed, *amounts, opening.liquidity, WALLET))
    number = int(next(log["topics"][3] for log in receipts[-1]["logs"] if len(log["topics"]) == 4 and log["topics"][1] == "0x" + "0" * 64), 16)
    ground.chain.step(30)
    later = await Bench.at(ground, kind)
    closing = await later.close(placed, opening.liquidity, await later.now())
    moved, receipts = bench.send(close_tx(ground.network, placed, number, opening.liquidity, WALLET))
    assert min(bench.by_side(moved)[0] - closing.amounts[0], bench.by_side(moved)[1] - closing.amounts[1]) >= 0
    assert closing.gas < int(receipts[0]["gasUsed"], 16) <= closing.gas + COLLECT_GAS[bench.pool.venue]
