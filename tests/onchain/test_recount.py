"""Scores are recounted from the exported journal by code that shares nothing with the product."""

from __future__ import annotations

import ast
import asyncio
import hashlib
import json
import sys
from pathlib import Path

import pytest

from ledgers.clock import VirtualClock
from ledgers.seal import export
from referee.onchain.events import RunScored
from referee.onchain.run import open_window, play_window
from tests.onchain import recount
from tests.onchain.paper import T0, PaperChain, Said, a_buy, events_of, live_on, ordering, selling, to_the_end


async def exported(folder: Path, unprovable: bool = False, down: bool = False) -> tuple[Path, list[RunScored]]:
    """Play a window on paper and export it."""
    chain = PaperChain(VirtualClock(T0), unprovable=unprovable)
    trader = {0: ordering(a_buy(10**16), a_buy(10**15), a_buy(10**18)), 2: selling(), 4: ordering(a_buy(2 * 10**15), a_buy(3))}
    live = live_on(chain, {"trader": Said(chain.clock, trader), "holder": Said(chain.clock)})
    await open_window(live)
    playing = asyncio.ensure_future(play_window(live))
    await chain.clock.advance_to(T0 + 15_000)
    chain.wei_per_token = 1_700_000_000_000_001
    await chain.clock.advance_to(T0 + 55_000)
    chain.values_down = {"w1-trader-1"} if down else set()
    await to_the_end(chain, playing)
    export(live.journal, folder / "w1.jsonl")
    return folder / "w1.jsonl", events_of(live.journal, RunScored)


@pytest.mark.parametrize(("unprovable", "down"), [(False, False), (True, False), (False, True)])
async def test_a_stranger_counts_the_same(tmp_path, unprovable, down):
    path, scores = await exported(tmp_path, unprovable, down)
    counted = recount.recount(str(path))
    assert {score.run_id: score.headline_ppm for score in scores} == {run: score["headline_ppm"] for run, score in counted.items()}
    assert len({score.headline_ppm for score in scores}) == (1 if unprovable else 2)


@pytest.mark.parametrize("field", ["headline_ppm", "permissive_ppm", "fills", "turns_answered"])
async def test_a_stranger_notices_another_score(tmp_path, field):
    path, _ = await exported(tmp_path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    relinked(path, lines, lambda kind, body: body | {field: body[field] + 1} if kind == "RunScored" else body)
    with pytest.raises(recount.Miscounted, match=field):
        recount.recount(str(path))


async def test_a_stranger_notices_a_fill_that_gives_more_than_arrived(tmp_path):
    path, _ = await exported(tmp_path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    relinked(path, lines, lambda kind, body: body | {"arrival_raw": body["arrival_raw"] + "0"} if kind == "FillCredited" else body)
    with pytest.raises(recount.Miscounted):
        recount.recount(str(path))


async def test_a_stranger_notices_a_changed_line(tmp_path):
    path, _ = await exported(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"lag_ms":0', b'"lag_ms":1', 1))
    with pytest.raises(recount.Miscounted, match="link"):
        recount.recount(str(path))


def test_the_stranger_imports_nothing_of_the_product():
    tree = ast.parse(Path(recount.__file__).read_text())
    imported = {name.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {(node.module or ".").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= set(sys.stdlib_module_names)


def relinked(path: Path, lines: list[dict], change) -> None:
    """Write an export anew with changed bodies and links that hold."""
    link, text = "00" * 32, []
    for line in lines:
        body = json.dumps(change(line["kind"], line["body"]), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        link = hashlib.sha256(bytes.fromhex(link) + line["kind"].encode() + body.encode()).hexdigest()
        text.append(f'{{"seq":{line["seq"]},"kind":"{line["kind"]}","body":{body},"link":"{link}"}}\n')
    path.write_text("".join(text))
