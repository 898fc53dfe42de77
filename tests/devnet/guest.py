"""A wallet that really trades the annex, for tests: plain transactions, nothing simulated."""

from __future__ import annotations

from dataclasses import dataclass

from chain.devnet.annex import Stall
from chain.devnet.calls import Tx, arguments, decode, encode
from chain.devnet.devnet import Devnet
from chain.devnet.places import USDG
from chain.devnet.swaps import V4_SWAP, swap
from chain.devnet.venues import FOREVER, MAX, NATIVE, POOL_KEY

WALLET = "0x000000000000000000000000000000000000d0e5"
GAS = 3_000_000
MILLI = 10**15


@dataclass(frozen=True, slots=True)
class Guest:
    """Buys and sells at one stall through the universal router."""

    chain: Devnet
    stall: Stall
    wallet: str = WALLET

    @property
    def token(self) -> str:
        return self.stall.token.address

    @property
    def hub(self) -> str:
        return self.stall.place.other(self.token)

    def endow(self) -> Guest:
        """Give the wallet ETH, dollars, and approvals for both routers."""
        at, venues, cast = self.chain.addresses, self.chain.deployment.venues, self.chain.deployment.cast
        self.chain.fund(self.wallet, 10**19)
        give = encode("mint(address,uint64)", self.wallet, 10_000 * USDG)
        routers = (at["universal_router"], self.chain.deployment.annex.hop_price_router)
        approvals = [
            tx
            for token in (self.token, at["usdg"])
            for router in routers
            for tx in venues.approve(self.wallet, token, (at["permit2"], router))
        ]
        receipts = self.chain.send(Tx(sender=cast.deployer, to=at["usdg"], data=give), *approvals)
        assert all(receipt["status"] == "0x1" for receipt in receipts)
        return self

    def buy(self, amount_raw: int = 10 * MILLI) -> int | None:
        """Spend of the hub; what arrived, None when it was refused."""
        return self.trade(self.hub, amount_raw)

    def sell(self, amount_raw: int) -> int | None:
        """Sell tokens; what arrived of the hub, before gas."""
        return self.trade(self.token, amount_raw)

    def trade(self, token_in: str, amount_raw: int) -> int | None:
        tx = swap(self.chain.deployment.venues, self.wallet, self.stall.place, token_in, amount_raw)
        return self.arrival(tx, self.stall.place.other(token_in))

    def arrival(self, tx: Tx, token_out: str) -> int | None:
        """Really execute; what came of a token, gas put back; None when it reverted."""
        before = self.held(token_out)
        [receipt] = self.chain.send(tx)
        gas = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) if token_out == NATIVE else 0
        return self.held(token_out) - before + gas if receipt["status"] == "0x1" else None

    def held(self, token: str) -> int:
        if token == NATIVE:
            return int(self.chain.node.call("eth_getBalance", [self.wallet, "latest"]), 16)
        return self.read(token, "balanceOf(address)", self.wallet)

    def quoted(self, token_in: str, amount_raw: int) -> int:
        """What the quoter says. Raises: Refused."""
        order = (self.stall.place.pool_key, token_in == self.stall.place.token0, amount_raw, b"")
        return self.read(self.chain.addresses["v4_quoter"], f"quoteExactInputSingle(({POOL_KEY},bool,uint128,bytes))", order)

    def plain_out(self, token_in: str, amount_raw: int, fee_ppm: int) -> int:
        """What a pool of this state and fee would pay, by its constant product."""
        view = self.chain.addresses["v4_state_view"]
        pool = bytes.fromhex(self.stall.place.key[2:])
        root, liquidity = (self.read(view, f"{name}(bytes32)", pool) for name in ("getSlot0", "getLiquidity"))
        reserve0, reserve1 = (liquidity << 96) // root, liquidity * root >> 96
        given, kept = (reserve0, reserve1) if token_in == self.stall.place.token0 else (reserve1, reserve0)
        paid = amount_raw * (1_000_000 - fee_ppm) // 1_000_000
        return kept * paid // (given + paid)

    def plain_amount1(self, liquidity: int) -> int:
        """Units of token1 that so much liquidity over the whole range is at the pool's price."""
        return liquidity * self.read(self.chain.addresses["v4_state_view"], "getSlot0(bytes32)", bytes.fromhex(self.stall.place.key[2:])) >> 96

    def read(self, to: str, signature: str, *values) -> int:
        return decode(("uint256",), self.chain.node.call("eth_call", [{"to": to, "data": encode(signature, *values), "from": self.wallet}, "latest"])[:66])[0]

    def send(self, to: str, data: str, value_wei: int = 0) -> dict:
        return self.chain.send(Tx(sender=self.wallet, to=to, data=data, value_wei=value_wei, gas=GAS))[0]


def with_hook_data(guest: Guest, amount_raw: int, hook_data: bytes) -> Tx:
    """A buy of native ETH that brings hook data."""
    order = (guest.stall.place.pool_key, True, amount_raw, 0, hook_data)
    steps = [
        arguments((f"({POOL_KEY},bool,uint128,uint128,bytes)",), (order,)),
        arguments(("address", "uint256"), (NATIVE, MAX)),
        arguments(("address", "uint256"), (guest.token, 0)),
    ]
    plan = arguments(("bytes", "bytes[]"), (b"\x06\x0c\x0f", [bytes.fromhex(step) for step in steps]))
    data = encode("execute(bytes,bytes[],uint256)", V4_SWAP, [bytes.fromhex(plan)], FOREVER)
    return Tx(sender=guest.wallet, to=guest.chain.addresses["universal_router"], data=data, value_wei=amount_raw, gas=GAS)
