"""The devnet: a local chain with its markets, built from a seed and moved block by block.

The admin door for tests, benchmarks and the background process; nothing outside this package deploys, impersonates or
mines. Plain, not async: each call is a few milliseconds on loopback, and while it runs no block can come between.
Same seed, same block hashes. Source: design §7.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from chain.devnet.calls import Tx
from chain.devnet.deploy import deploy
from chain.devnet.driver import Driver
from chain.devnet.miner import Miner
from chain.devnet.node import BASE_FEE_WEI, CHAIN_ID, Node, start
from chain.devnet.places import Deployment
from chain.devnet.prices import Tape
from chain.devnet.rival import Rival
from chain.devnet.rival import start as start_rival
from chain.devnet.toolchain import require
from chain.devnet.traders import Scene

BLOCK_TIME_MS = 1_000
SEED_FEE_SPAN = 2**32


class Devnet:
    """A living local chain. Close it, or use it as a context manager."""

    def __init__(self, node: Node, miner: Miner, driver: Driver) -> None:
        self.node = node
        self.miner = miner
        self.driver = driver
        self._snapshots: dict[str, tuple[int, dict[str, int], Scene]] = {}

    @classmethod
    def build(
        cls,
        seed: int = 7,
        height: int = 0,
        *,
        block_time_ms: int = BLOCK_TIME_MS,
        tape: Tape | None = None,
        port: int = 0,
        pid_file: Path | None = None,
    ) -> Devnet:
        """Start a node, deploy everything, and play the market up to block `height`.

        Raises: ChainFault when the toolchain is missing or the node does not come up."""
        toolchain = require()
        node = start(toolchain, genesis_fee_wei=genesis_fee_wei(seed, block_time_ms, tape), pid_file=pid_file, port=port)
        try:
            miner = Miner(node, block_time_ms)
            chain = cls(node, miner, Driver(miner, deploy(miner, toolchain), seed, tape))
            chain.step(max(0, height - chain.height))
        except BaseException:
            node.stop()
            raise
        return chain

    @property
    def url(self) -> str:
        return self.node.url

    @property
    def deployment(self) -> Deployment:
        return self.driver.deployment

    @property
    def seed(self) -> int:
        return self.driver.seed

    @property
    def chain_id(self) -> int:
        return CHAIN_ID

    @property
    def height(self) -> int:
        """Number of the newest block."""
        return self.miner.height

    @property
    def addresses(self) -> dict[str, str]:
        """Core contracts by name, lower case."""
        return self.deployment.at

    def step(self, blocks: int = 1) -> None:
        """Let the market play `blocks` blocks."""
        for _ in range(blocks):
            self.driver.step()

    def mine(self, blocks: int = 1) -> None:
        """Seal empty blocks: time passes, nobody trades."""
        for _ in range(blocks):
            self.miner.mine()

    def send(self, *txs: Tx) -> list[dict]:
        """Really execute transactions in the next block, from any address whatever; receipts in order, failed ones too.

        The sender pays gas at the fixed base fee, so it needs ETH: see `fund`."""
        own = set(self.node.call("eth_accounts", []))
        strangers = sorted({tx.sender for tx in txs} - {account.lower() for account in own})
        self.node.batch([("anvil_impersonateAccount", [address]) for address in strangers])
        self.miner.mine(txs)
        return self.miner.receipts()

    def fund(self, address: str, wei: int) -> dict:
        """Send real ETH from the visitor's account, in a block of its own."""
        return self.send(Tx(sender=self.deployment.cast.visitor, to=address, value_wei=wei, gas=100_000))[0]

    def snapshot(self) -> str:
        """Remember this moment of the chain."""
        mark = self.node.call("evm_snapshot", [])
        self._snapshots[mark] = (self.miner.height, dict(self.miner.nonces), self.driver.remember())
        return mark

    def revert(self, mark: str) -> None:
        """Go back to a moment; it can be used once."""
        self.node.call("evm_revert", [mark])
        self.miner.height, self.miner.nonces, self.driver.scene = self._snapshots.pop(mark)

    def block_hash(self, block: int) -> str:
        return self.node.call("eth_getBlockByNumber", [hex(block), False])["hash"]

    def rival(self) -> Rival:
        """Start a rival aggregator beside the node; close it before the chain. It reads the newest block at every question."""
        return start_rival(self.deployment, self.node.port)

    def close(self) -> None:
        """End the node."""
        self.node.stop()

    def __enter__(self) -> Devnet:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def genesis_fee_wei(seed: int, block_time_ms: int, tape: Tape | None = None) -> int:
    """Base fee of block 0, a mark of what the market is made of: it makes the hash of block 0 tell one from another."""
    mark = hashlib.sha256(f"devnet {seed} {block_time_ms} {tape.sha256 if tape else ''}".encode()).digest()
    return BASE_FEE_WEI + int.from_bytes(mark[:8], "big") % SEED_FEE_SPAN
