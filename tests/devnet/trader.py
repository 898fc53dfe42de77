"""A wallet that really trades one pool of one zoo token, for tests: plain transactions, nothing simulated."""

from __future__ import annotations

from dataclasses import dataclass

from chain.devnet.calls import Tx, decode, encode
from chain.devnet.devnet import Devnet
from chain.devnet.kinds import SPEND_WEI
from chain.devnet.venues import MAX, Place
from chain.devnet.zoo import ZooToken

GAS = 6_000_000
WALLET = "0x00000000000000000000000000000000000a11ce"


@dataclass(frozen=True, slots=True)
class Trader:
    """Buys and sells through SwapRouter02 by a v2 or v3 route; sales pay out in WETH."""

    chain: Devnet
    odd: ZooToken
    route: str
    wallet: str = WALLET

    @property
    def token(self) -> str:
        return self.chain.deployment.token(self.odd.kind).address

    @property
    def place(self) -> Place:
        """The pool that the route leads through."""
        places = {f"{market.place.venue}/{market.hub}": market.place for market in self.chain.deployment.markets if market.token and market.token.address == self.token}
        return places[self.route]

    def endow(self) -> None:
        """Give the wallet real ETH and its approval."""
        self.chain.fund(self.wallet, 10**18)
        self.send(self.token, encode("approve(address,uint256)", self._router, MAX))

    def buy(self, spend_wei: int = SPEND_WEI) -> bool:
        """Spend ETH; whether it went through."""
        return self.send(self._router, self._swap(self._path(), spend_wei), spend_wei)["status"] == "0x1"

    def sell(self, amount_raw: int) -> bool:
        """Sell tokens for WETH; whether it went through."""
        return self.send(self._router, self._swap(self._path()[::-1], amount_raw))["status"] == "0x1"

    def hand_out(self, amount_raw: int) -> None:
        """Let the owner give the wallet tokens."""
        self.owner("transfer(address,uint256)", self.wallet, amount_raw)

    def owner(self, signature: str, *values) -> None:
        """Let the owner call its token."""
        keeper = self.chain.deployment.cast.zookeeper
        [receipt] = self.chain.send(Tx(sender=keeper, to=self.token, data=encode(signature, *values), gas=GAS))
        assert receipt["status"] == "0x1", (self.odd.kind, signature)

    def held(self) -> int:
        """What the token says the wallet holds."""
        return self.read("balanceOf(address)", self.wallet)

    def weth(self) -> int:
        """WETH that sales brought."""
        return self.read("balanceOf(address)", self.wallet, to=self.chain.addresses["weth"])

    def read(self, signature: str, *values, to: str = "") -> int:
        """One number from a view."""
        return decode(("uint256",), self.answer(signature, *values, to=to))[0]

    def answer(self, signature: str, *values, to: str = "", **fields) -> str:
        """The raw answer of a view."""
        call = {"to": to or self.token, "data": encode(signature, *values), **fields}
        return self.chain.node.call("eth_call", [call, "latest"])

    def send(self, to: str, data: str, value_wei: int = 0) -> dict:
        """Really execute a transaction of the wallet; its receipt."""
        return self.chain.send(Tx(sender=self.wallet, to=to, data=data, value_wei=value_wei, gas=GAS))[0]

    @property
    def _router(self) -> str:
        return self.chain.addresses["swap_router_02"]

    def _path(self) -> tuple[str, ...]:
        at = self.chain.addresses
        return (at["weth"], at["usdg"], self.token) if self.route.endswith("usdg") else (at["weth"], self.token)

    def _swap(self, path: tuple[str, ...], amount_raw: int) -> str:
        if self.route.startswith("v2"):
            return encode("swapExactTokensForTokens(uint256,uint256,address[],address)", amount_raw, 0, path, self.wallet)
        fee = f"{self.place.fee_ppm:06x}"
        packed = bytes.fromhex(fee.join(token[2:] for token in path))
        return encode("exactInput((bytes,address,uint256,uint256))", (packed, self.wallet, amount_raw, 0))
