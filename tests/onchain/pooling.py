"""A run that pools, and a real wallet that does the same on the chain."""

from __future__ import annotations

from dataclasses import dataclass, replace

import orjson

from chain import calldata
from chain.devnet.calls import Tx as Sent
from chain.devnet.calls import encode
from chain.pools import NATIVE, Pool, PoolGraph
from chain.positions import Placed, approvals_of, close_tx, is_eth, mint_tx
from chain.router import Route, buy_routes, sell_routes
from chain.trade import route_txs
from ledgers.money import TokenRaw
from referee.onchain.events import HEADLINE, OrderAsked
from referee.onchain.liquidity_events import LiquidityOpened
from referee.onchain.marks import Valued
from tests.onchain.given import outcome
from tests.onchain.ground import WALLET, Ground, Run

TWIN = "0x7c0ffee0000000000000000000000000000b12ce"
"""As many zero bytes as the run's own wallet has, so that its calldata costs the same."""
ETH_WEI = 10**18


def pool_of(ground: Ground, kind: str) -> Pool:
    """A pool by venue and both names, e.g. `v4 eth PINE`; of several the one of the lowest fee."""
    names = {"weth": ground.network.weth, "eth": NATIVE, "USDG": ground.network.usdg}
    venue, *pair = kind.split()
    wanted = {names.get(name) or ground.token(name) for name in pair}
    found = [pool for pool in ground.graph.pools.values() if pool.venue == venue and {pool.token0, pool.token1} == wanted and not pool.fork and pool.hooks == NATIVE]
    return min(found, key=lambda pool: pool.fee_ppm)


def tick_of(ground: Ground, pool: Pool) -> int:
    """The pool's tick now."""
    target, data = (pool.key, "0x3850c7bd") if pool.venue == "v3" else (ground.network.v4_state_view, "0xc815641c" + pool.key[2:])
    word = int(ground.chain.node.call("eth_call", [{"to": target, "data": data}, "latest"])[66:130], 16)
    return word - 2**256 if word >> 255 else word


def around(ground: Ground, pool: Pool, ticks: int = 3_000, shift: int = 0) -> tuple[int, int]:
    """A range of some ticks to both sides of the price, or beside it by a shift."""
    spacing = pool.tick_spacing
    low, high = ((tick_of(ground, pool) + shift + sign * ticks) // spacing * spacing for sign in (-1, 1))
    return low, high


STRANGER = "0x7c0ffee0000000000000000000000000000057a7"


def churn(ground: Ground, pool: Pool, eth_wei: int = ETH_WEI // 4) -> None:
    """Let a stranger really buy and sell through one pool, once in each direction."""
    token = next(token for token in (pool.token0, pool.token1) if token not in (ground.network.weth, NATIVE, ground.network.usdg))
    ground.chain.fund(STRANGER, 10 * ETH_WEI)
    _really(ground, _every_route(ground, pool, "buy", token, eth_wei)[0])
    units = int(ground.chain.node.call("eth_call", [{"to": token, "data": encode("balanceOf(address)", STRANGER)}, "latest"]), 16)
    _really(ground, _every_route(ground, pool, "sell", token, units)[0])


def _every_route(ground: Ground, pool: Pool, side: str, token: str, amount: int) -> list[Route]:
    """Routes that end or begin in one pool."""
    graph, dollars = PoolGraph(ground.network), {ground.network.weth, ground.network.usdg}
    for known in ground.graph.pools.values():
        if known.key == pool.key or (known.venue == "v3" and not known.fork and {known.token0, known.token1} == dollars):
            graph.add(known)
    graph.states.update(ground.graph.states)
    routes = (buy_routes if side == "buy" else sell_routes)(ground.network, graph, token, amount, STRANGER)
    return [route for route in routes if any(hop.pool.key == pool.key for hop in route.hops)]


def _really(ground: Ground, route: Route) -> None:
    for tx in route_txs(route):
        (receipt,) = ground.chain.send(Sent(sender=STRANGER, to=tx.to, data=tx.data, value_wei=tx.value_wei, gas=tx.gas_limit))
        assert receipt["status"] == "0x1", (route.label, receipt)


def opening(pool: Pool, ticks: tuple[int, int], amounts: tuple[int, int], **more) -> OrderAsked:
    """An open-lp by tick."""
    return OrderAsked(
        index=0, side="open-lp", token="", spend_wei=None, amount_raw=None, sell_all=False, pool=pool.key, tick_lower=ticks[0],
        tick_upper=ticks[1], amount0_raw=TokenRaw(amounts[0]), amount1_raw=TokenRaw(amounts[1]), **more,
    )  # fmt: skip


def closing(position: str) -> OrderAsked:
    return OrderAsked(index=0, side="close-lp", token="", spend_wei=None, amount_raw=None, sell_all=False, position=position)


def sizes(ground: Ground, run: Run, pool: Pool, eth_wei: int = ETH_WEI // 50, part: int = 2) -> tuple[int, int]:
    """Some ETH and a part of what the run holds of the other side."""

    def size(token: str) -> int:
        if is_eth(ground.network, token):
            return eth_wei
        holding = run.book().held(token)
        return int(holding.units_raw) // part if holding else 0

    return size(pool.token0), size(pool.token1)


async def pooled(run: Run, pool: Pool, ticks: tuple[int, int] | None = None, spend: str = "0.05 eth") -> LiquidityOpened:
    """Buy what the pool needs, and open a position."""
    ground = run.ground
    for token in (token for token in (pool.token0, pool.token1) if not is_eth(ground.network, token) and run.book().held(token) is None):
        await run.fill(replace(run.buy("LEAF", spend), token=token))
    opened = outcome((await run.decide(opening(pool, ticks or around(ground, pool), sizes(ground, run, pool))))[0], HEADLINE)
    assert isinstance(opened, LiquidityOpened), opened
    return opened


@dataclass
class Twin:
    """A real wallet with a real position."""

    ground: Ground
    pool: Pool
    address: str = TWIN
    number: int = 0
    liquidity: int = 0

    def hold(self, token: str, units: int, slot) -> None:
        """Put a balance in place for real."""
        write = slot.write(units)
        self.ground.chain.node.call("anvil_setStorageAt", [write.contract, write.slot, f"0x{write.value:064x}"])

    def units(self, token: str) -> int:
        if is_eth(self.ground.network, token):
            return self.ground.eth_of(self.address)
        return int(self.ground.chain.node.call("eth_call", [{"to": token, "data": encode("balanceOf(address)", self.address)}, "latest"]), 16)

    def send(self, *txs) -> list[dict]:
        receipts = []
        for tx in txs:
            (receipt,) = self.ground.chain.send(Sent(sender=self.address, to=tx.to, data=tx.data, value_wei=tx.value_wei, gas=tx.gas_limit))
            assert receipt["status"] == "0x1", (tx, receipt)
            receipts.append(receipt)
        return receipts

    def open(self, opened: LiquidityOpened, amounts: tuple[int, int]) -> tuple[tuple[int, int], int]:
        """Really open the same; what left of both sides, gas apart, and the gas paid in wei."""
        placed = Placed(self.pool, opened.tick_lower, opened.tick_upper)
        mint = mint_tx(self.ground.network, placed, *amounts, int(opened.liquidity_raw), self.address)
        before = [self.units(token) for token in placed.tokens]
        receipts = self.send(*(approval.tx for approval in approvals_of(self.ground.network, self.pool)), mint)
        self.number = int(next(log["topics"][3] for log in receipts[-1]["logs"] if len(log["topics"]) == 4 and log["topics"][1] == "0x" + "0" * 64), 16)
        self.liquidity = int(opened.liquidity_raw)
        gas_wei = paid(receipts)
        left = [was - self.units(token) - (gas_wei if is_eth(self.ground.network, token) else 0) for was, token in zip(before, placed.tokens, strict=True)]
        return (left[0], left[1]), sum(int(receipt["gasUsed"], 16) for receipt in receipts)

    def close(self, opened: LiquidityOpened) -> tuple[tuple[int, int], int]:
        """Really close it; what came of both sides, gas apart, and the gas used."""
        placed = Placed(self.pool, opened.tick_lower, opened.tick_upper)
        before = [self.units(token) for token in placed.tokens]
        receipts = self.send(close_tx(self.ground.network, placed, self.number, self.liquidity, self.address))
        gas_wei = paid(receipts)
        came = [self.units(token) - was + (gas_wei if is_eth(self.ground.network, token) else 0) for was, token in zip(before, placed.tokens, strict=True)]
        return (came[0], came[1]), int(receipts[0]["gasUsed"], 16)

    def sell_as(self, worth: Valued, paid: frozenset[str]) -> None:
        """Really send what a mark sold in simulation, but for approvals that opening has paid for."""
        blocks = orjson.loads(worth.evidence)["sale"][0]["params"][0]["blockStateCalls"]
        for call in (call for block in blocks for call in block["calls"] if call["from"] == WALLET and approved(call) not in paid):
            data = call["data"].replace(WALLET[2:], self.address[2:])
            (receipt,) = self.ground.chain.send(Sent(sender=self.address, to=call["to"], data=data, gas=int(call["gas"], 16)))
            assert receipt["status"] == "0x1", call


def approved(call: dict) -> str:
    """Key of an approval, `token>spender`; empty for other calls."""
    data, to = call["data"], call["to"]
    if data.startswith("0x" + calldata.APPROVE):
        return f"{to}>0x{data[34:74]}"
    return f"0x{data[34:74]}>{to}>0x{data[98:138]}" if data.startswith("0x" + calldata.PERMIT2_APPROVE) else ""


def paid(receipts: list[dict]) -> int:
    return sum(int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) for receipt in receipts)
