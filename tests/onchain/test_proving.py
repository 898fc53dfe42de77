"""Fills that carry their proof: what is kept proves them offline, and nothing that was changed since is ever proven."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pytest

from chain import calldata
from chain.evm import LocalEvm, NotRecorded, read_shared, recorded_in, traded, verify
from chain.network import load_network
from chain.simulate import NATIVE_LOG
from ledgers.events import Event
from ledgers.identity import sha256_hex
from ledgers.money import TokenRaw, Wei
from referee.onchain.events import PERMISSIVE, FillCredited, GateTaken, RouteSimulated, WindowLiquidated, WitnessKept
from referee.onchain.live import Witnessed
from referee.onchain.proving import BY_NODE_ONLY, BY_WITNESS, DIFFERS, Proof, proofs_of
from referee.onchain.valuation import liquidations
from referee.onchain.witnessing import FILL, GATE, LIQUIDATION, drawn, evidence_of, witnesses_of, written
from tests.onchain.ground import WALLET, Ground, Run
from tests.onchain.lies import Call, lie, more_ether
from tests.onchain.scene import SIMULATE, scene_on
from tests.ops.told import opening

Blobs = dict[str, bytes]


@dataclass(slots=True)
class Kept:
    """A journal with what proves it."""

    events: list[Event] = field(default_factory=list)
    blobs: Blobs = field(default_factory=dict)

    def proofs(self, published: dict[int, str] | None = None) -> list[Proof]:
        return proofs_of(self.events, self.blobs.get, published)

    def said(self, published: dict[int, str] | None = None) -> dict[str, set[str]]:
        """How what there is of each kind stands."""
        proofs = self.proofs(published)
        return {what: {proof.standing for proof in proofs if proof.what == what} for what in (FILL, GATE, LIQUIDATION)}

    def changed(self, kind: type[Event], change: Callable[[Any], Event]) -> Kept:
        """The same with every event of a kind changed."""
        return replace(self, events=[change(event) if isinstance(event, kind) else event for event in self.events])

    def first(self, kind: type[Event]) -> Any:
        return next(event for event in self.events if isinstance(event, kind))


async def kept_of(ground: Ground, events: Iterable[Event], evidence: Blobs) -> Kept:
    """The witnesses of some events, as a window keeps them."""
    evm, seen = LocalEvm(ground.desk.rpc, ground.network.chain_id, apart=True), set[str]()
    kept = Kept([opening()[0], *events], dict(evidence))
    for event in [event for event in kept.events if isinstance(event, Witnessed) and evidence_of(event) not in seen]:
        seen.add(evidence_of(event))
        witness, parts = written(event, await witnesses_of(evm, evidence[evidence_of(event)]), 0)
        kept.events.append(witness)
        kept.blobs |= parts
    return kept


def evidence_in(run: Run) -> Blobs:
    return {sha256: data for refereed in run.refereed for sha256, data in refereed.blobs.items()}


async def lived(ground: Ground) -> Kept:
    """A run that buys two tokens in one decision, sells one, and is sold out."""
    run = Run(ground)
    await run.fill(run.buy("LEAF", "0.05 eth"), run.buy("tax_5", "0.02 eth"))
    await run.fill(run.sell("LEAF"))
    pin = await ground.desk.pin()
    valued = await ground.desk.value(run.run_id, run.wallet, tuple(run.books.both(run.run_id).values()), pin)
    sold = liquidations(run.run_id, pin, valued, False, 0)
    return await kept_of(ground, [*run.events, *sold], evidence_in(run) | {value.digest: value.evidence for value in valued})


@pytest.fixture
async def kept(ground) -> Kept:
    return await lived(ground)


@pytest.fixture
async def bare(kept) -> Kept:
    """Its fills alone."""
    events = [event for event in kept.events if not isinstance(event, GateTaken | WindowLiquidated) and getattr(event, "what", FILL) == FILL]
    return replace(kept, events=events)


# --- proven -------------------------------------------------------------------------------------------------------------


async def test_all_that_a_run_is_credited_with_is_proven_offline(kept):
    assert kept.said() == {FILL: {BY_WITNESS}, GATE: {BY_WITNESS}, LIQUIDATION: {BY_WITNESS}}
    assert [proof.arrival_raw for proof in kept.proofs() if proof.what == FILL] == [int(event.arrival_raw) for event in kept.events if isinstance(event, FillCredited)]


async def test_published_hashes_are_believed_and_no_others(kept):
    true = {proof.block: proof.block_hash for proof in kept.proofs()}
    assert kept.said(true) == kept.said()
    forged = {block: "0x" + "5e" * 32 for block in true}
    assert set().union(*kept.said(forged).values()) == {DIFFERS}
    assert set().union(*kept.said({}).values()) == {BY_NODE_ONLY}


# --- changed since ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [
    lambda fill: replace(fill, arrival_raw=TokenRaw(int(fill.arrival_raw) + 1)),
    lambda fill: replace(fill, arrival_raw=TokenRaw(int(fill.arrival_raw) - 1)),
    lambda fill: replace(fill, gas_wei=Wei(int(fill.gas_wei) - 1)),
    lambda fill: replace(fill, spent_raw=TokenRaw(int(fill.spent_raw) - 1)),
    lambda fill: replace(fill, route="v3 9% elsewhere"),
    lambda fill: replace(fill, token="0x" + "ab" * 20),
], ids=["more", "less", "gas", "spent", "route", "token"])  # fmt: skip
async def test_a_fill_credited_with_anything_else_differs(bare, change):
    assert bare.changed(FillCredited, change).said()[FILL] == {DIFFERS}


async def test_no_changed_or_missing_blob_proves_anything(bare):
    """Each kind of blob in turn is bent in the middle, cut, swapped with another and taken away."""
    kept = bare.first(WitnessKept)
    for sha256 in (kept.evidence_sha256, kept.witnesses[0], kept.nodes, kept.codes[0]):
        data, other = bare.blobs[sha256], bare.blobs[kept.codes[-1]]
        half = len(data) // 2
        for blob in (data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :], data[:-1], other, None):
            blobs = {name: each for name, each in bare.blobs.items() if name != sha256} | ({} if blob is None else {sha256: blob})
            assert DIFFERS in replace(bare, blobs=blobs).said()[FILL]


async def test_a_bent_blob_under_its_own_new_name_proves_nothing(bare):
    """A forger who names what they changed anew; a bend that unpacks to the same bytes is none."""
    kept = bare.first(WitnessKept)
    for part, name in ((bare.blobs[kept.witnesses[0]], "witnesses"), (bare.blobs[kept.nodes], "nodes")):
        for at in range(0, len(part), len(part) // 6):
            other = part[:at] + bytes([part[at] ^ 0x10]) + part[at + 1 :]
            if name == "witnesses" and unpacked(other) == unpacked(part):
                continue
            named = {name: (sha256_hex(other),) if name == "witnesses" else sha256_hex(other)}
            forged = bare.changed(WitnessKept, lambda event, named=named: replace(event, **named) if event == kept else event)
            forged.blobs = bare.blobs | {sha256_hex(other): other}
            assert DIFFERS in forged.said()[FILL]


def unpacked(blob: bytes) -> bytes:
    try:
        return zlib.decompress(blob, -zlib.MAX_WBITS)
    except zlib.error:
        return b""


async def test_swapped_witnesses_differ(bare):
    every = [event for event in bare.events if isinstance(event, WitnessKept)]
    one, two = every[0], every[-1]
    assert one.witnesses != two.witnesses
    parts = {field: getattr(two, field) for field in ("witnesses", "nodes", "codes", "block_hash")}
    swapped = bare.changed(WitnessKept, lambda event: replace(event, **parts) if event is one else event)
    assert DIFFERS in swapped.said()[FILL]


async def test_what_has_no_witness_is_by_node_only(kept):
    bare = replace(kept, events=[event for event in kept.events if not isinstance(event, WitnessKept)])
    assert set().union(*bare.said().values()) == {BY_NODE_ONLY}
    uncovered = kept.changed(WitnessKept, lambda event: replace(event, witnesses=(), nodes="", codes=(), not_covered="not here"))
    assert set().union(*uncovered.said().values()) == {BY_NODE_ONLY} and {proof.reason for proof in uncovered.proofs()} == {"not here"}


async def test_a_fill_that_names_another_simulation_differs(kept):
    gate = kept.first(GateTaken)
    assert kept.changed(RouteSimulated, lambda route: replace(route, evidence_sha256=gate.digest)).said()[FILL] == {DIFFERS}


async def test_a_liquidation_at_another_block_differs(kept):
    elsewhere = kept.changed(WindowLiquidated, lambda sold: replace(sold, pin=replace(sold.pin, block=sold.pin.block - 1)))
    assert elsewhere.said()[LIQUIDATION] == {DIFFERS}


@pytest.mark.parametrize("code", ["0x00", "0x5f35545f5260205ff3"])
async def test_a_trade_with_code_of_its_own_is_no_trade(bare, code):
    """A forger with a true witness of a request that replaces a contract."""
    (asked,) = recorded_in(bare.blobs[bare.first(RouteSimulated).evidence_sha256])
    fill, network = bare.first(FillCredited), load_network("devnet")
    about = (WALLET, fill.token, network.multicall3)
    kept = bare.first(WitnessKept)
    codes, nodes = [bare.blobs[each] for each in kept.codes], read_shared(bare.blobs[kept.nodes])
    calls = verify(bare.blobs[kept.witnesses[0]], kept.block_hash, codes, nodes).calls
    assert traded(asked.blocks, calls, *about).tokens == int(fill.arrival_raw)
    asked.blocks[0]["stateOverrides"][network.swap_router_02] = {"code": code}
    with pytest.raises(NotRecorded, match="other code"):
        traded(asked.blocks, calls, *about)


# --- which are witnessed ------------------------------------------------------------------------------------------------


async def test_one_order_in_twenty_is_drawn_whole_and_the_same_again(kept):
    route, gate = kept.first(RouteSimulated), kept.first(GateTaken)
    named = [f"w1-a-1/{tick}/0" for tick in range(4_000)]
    chosen = [name for name in named if drawn(replace(route, order_id=name), 20)]
    assert 140 <= len(chosen) <= 260 and chosen == [name for name in named if drawn(replace(gate, order_id=name), 20)]
    assert all(drawn(replace(route, order_id=name), 1) for name in named)


# --- a node that lies ---------------------------------------------------------------------------------------------------


def richer(question: Call, answer: Call, swapped: bool) -> None:
    """A sale that brings more, by the balance and by the trace alike."""
    more_ether(question, answer, swapped)
    for log in answer["logs"]:
        if question["from"] == WALLET and log["address"] == NATIVE_LOG and log["topics"][2].endswith(WALLET[2:]):
            log["data"] = "0x" + calldata.word(int(log["data"], 16) + 10**17)


async def test_a_fill_by_a_node_that_lies_consistently_is_never_proven(chain):
    async with scene_on(chain) as scene:
        honest = await scene.honest("sell")
        scene.node.by(SIMULATE, lie(richer))
        await scene.order("sell")
        kept = await kept_of(scene.ground, scene.run.events, evidence_in(scene.run))
        fills = [event for event in kept.events if isinstance(event, FillCredited) and event.order_id == honest.order_id]
        assert all(fill.ledgers == (PERMISSIVE,) and not fill.proven and fill.arrival_raw <= honest.arrival_raw for fill in fills)
        assert not [proof for proof in kept.proofs() if proof.what == FILL and proof.order_id == honest.order_id and proof.standing != BY_NODE_ONLY]


async def test_a_lie_that_is_put_under_an_honest_witness_differs(chain):
    """The node's answer is made richer after the witness was kept, and everything is named anew."""
    async with scene_on(chain) as scene:
        await scene.order("sell")
        kept = await kept_of(scene.ground, scene.run.events, evidence_in(scene.run))
        route = kept.first(RouteSimulated)
        evidence = orjson.loads(kept.blobs[route.evidence_sha256])
        evidence["answer"] = lie(richer)(evidence["params"], evidence["answer"])
        forged = orjson.dumps(evidence)
        renamed = Kept([_renamed(event, route.evidence_sha256, sha256_hex(forged)) for event in kept.events], kept.blobs | {sha256_hex(forged): forged})
        assert [proof.standing for proof in renamed.proofs() if proof.order_id == route.order_id] == [DIFFERS]


def _renamed(event: Event, before: str, after: str) -> Event:
    if isinstance(event, RouteSimulated | WitnessKept) and event.evidence_sha256 == before:
        return replace(event, evidence_sha256=after)
    rows: Sequence[Any] = getattr(event, "rows", ())
    return replace(event, rows=tuple(replace(row, digest=after) if row.digest == before else row for row in rows)) if rows else event  # type: ignore[call-arg]


@pytest.mark.parametrize("method", ["eth_getProof", "eth_getCode", "eth_getBlockByHash"])
async def test_a_node_that_lies_about_its_state_leaves_no_witness(chain, method):
    async with scene_on(chain) as scene:
        await scene.order("sell")
        scene.node.by(method, lambda params, result: "0x00" if isinstance(result, str) else dict(result) | {"stateRoot": "0x" + "11" * 32, "accountProof": []})
        kept = await kept_of(scene.ground, scene.run.events, evidence_in(scene.run))
        assert {proof.standing for proof in kept.proofs() if proof.run_id == scene.run.run_id and proof.block} == {BY_NODE_ONLY}
