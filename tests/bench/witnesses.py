"""Witnesses: what proving a fill or a gate offline costs, beside the window: bytes kept and milliseconds to make and to prove it.

Code is apart, since all witnesses share it. No order waits for any of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from chain.evm import LocalEvm, read_shared, verify
from referee.onchain.events import GateTaken, RouteSimulated
from referee.onchain.live import Witnessed
from referee.onchain.witnessing import evidence_of, witnesses_of, written
from tests.bench.ground import WALLET, Ground
from tests.bench.turns import Result, milliseconds

Cost = tuple[float, float, int]
"""Seconds to make, seconds to prove, bytes."""


async def witness_results(ground: Ground) -> list[Result]:
    """Fills of both sides, and the gates of the buys."""
    costs: dict[str, list[Cost]] = {"fill": [], "gate": []}
    evm = LocalEvm(ground.desk.rpc, ground.network.chain_id, apart=True)
    for order in [*ground.orders("sell"), *ground.orders("buy")]:
        done = await ground.desk.decision("bench", WALLET, 0, ground.pin, ground.pin.block_ts_s * 1_000, order.books).order(order.asked, order.books)
        for event in (event for event in done.events if isinstance(event, RouteSimulated | GateTaken)):
            costs["gate" if isinstance(event, GateTaken) else "fill"].append(await _cost(evm, event, done.blobs[evidence_of(event)]))
    return [_result(what, each) for what, each in costs.items()]


async def _cost(evm: LocalEvm, event: Witnessed, evidence: bytes) -> Cost:
    begun = time.perf_counter()
    found = await witnesses_of(evm, evidence)
    if found.not_covered:
        raise RuntimeError(f"a simulation of the bench has no witness: {found.not_covered}")
    kept, blobs = written(event, found, 0)
    made, codes = time.perf_counter(), [blobs[code] for code in kept.codes]
    for witness in kept.witnesses:
        verify(blobs[witness], kept.block_hash, codes, read_shared(blobs[kept.nodes]))
    return made - begun, time.perf_counter() - made, sum(len(blobs[name]) for name in (*kept.witnesses, kept.nodes))


def _result(what: str, costs: Sequence[Cost]) -> Result:
    made, proven, size = (median(each[place] for each in costs) for place in range(3))
    return Result(
        what=f"witness of a {what}, n = {len(costs)}", ours=f"{milliseconds(made)} to make", against=f"{milliseconds(proven)} to prove", value=size / 1_000, unit="KB"
    )
