"""An attacker's contracts: compiled from `contracts` beside, put on the local chain, and told what to do by calldata."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chain.devnet.calls import Tx, arguments, encode
from chain.devnet.compile import artifacts
from chain.devnet.toolchain import require
from tests.onchain.ground import Ground
from tests.onchain.rival import Call

FOLDER = Path(__file__).parent / "contracts"
STEPS = "(address,uint256,bytes)[]"
DEPLOY_GAS = 12_000_000


def compiled(name: str):
    """An artifact of the attacker."""
    return artifacts(require(), folder=FOLDER)[name]


def deployed(ground: Ground, name: str, *values) -> str:
    """Deploy a contract of the attacker; its address."""
    artifact = compiled(name)
    data = artifact.bytecode + arguments(artifact.constructor_types, values)
    (receipt,) = ground.chain.send(Tx(sender=ground.chain.deployment.cast.visitor, to=None, data=data, gas=DEPLOY_GAS))
    assert receipt["status"] == "0x1", receipt
    ground.settle()
    return receipt["contractAddress"].lower()


def steps_of(calls: Sequence[Call]) -> list[tuple[str, int, bytes]]:
    """Calls as the executor takes them."""
    return [(call.to, call.value_wei, bytes.fromhex(call.data[2:])) for call in calls]


def told(signature: str, *values) -> str:
    """Calldata of the executor; `STEPS` in the signature stands for its list of calls."""
    return encode(signature.replace("STEPS", STEPS), *values)
