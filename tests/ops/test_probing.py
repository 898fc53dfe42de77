"""`referee probe`: a table a person can read, an exit code, and never the address."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chain.devnet import process
from chain.devnet.devnet import Devnet
from ledgers.clock import SystemClock
from ledgers.errors import ChainFault
from ops import cli
from ops.home_chain import network_of
from ops.probing import probed_node
from ops.reading import WrongUse
from ops.reenacting import Wanted, truth_of_chain
from ops.settings import BadSettings, Settings
from tests.chain.nitro import nitro_node
from tests.onchain.lying import lying_node

ROOT = Path(__file__).parents[2]
KEY = "s3cr3t-k3y-0123456789abcdef"


@pytest.fixture(scope="module")
def street():
    """A chain of this module's own: a node forgets states when what others did on it is undone."""
    with Devnet.build(7, 50) as chain:
        yield chain


async def probed(url: str, network: str = "devnet", rivals: str = ""):
    return await probed_node(Settings(), url, network, rivals, SystemClock())


def test_the_local_chains_node_will_do(street, capsys):
    assert cli.main(["probe", street.url, "--network", "devnet"]) == 0
    told = capsys.readouterr().out
    assert "0 differ, 0 unknown" in told and "This node will do" in told
    assert "eth_simulateV1" in told and "not asked" in told and "V4Quoter" in told


def test_the_answer_as_json_has_every_finding(street, capsys):
    assert cli.main(["probe", street.url, "--network", "devnet", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["holds"] is True and told["network"] == "devnet"
    assert {row["part"] for row in told["rows"]} >= {"node", "methods", "simulation", "gas", "limits", "code", "prices", "slots"}


@pytest.mark.parametrize("command", ["probe", "truth"])
def test_a_development_node_is_not_taken_for_a_real_chain(street, capsys, command):
    for network in ((), ("--network", "robinhood")):
        assert cli.main([command, street.url, *network]) == 3
        told = capsys.readouterr()
        assert told.out == "" and "a development node: a chain of somebody's own and not robinhood" in told.err


async def test_a_node_without_the_networks_contracts_differs_and_does_not_bear_its_name(street):
    async with nitro_node(street.url) as node:
        text, _, holds = await probed(node.url, "robinhood")
        with pytest.raises(ChainFault, match="missing_code"):
            await truth_of_chain(Settings(), node.url, "robinhood", Wanted(swaps=1), SystemClock())
    assert not holds and "not known to be robinhood · n =" in text and "have code" in text and "nothing should be" in text
    assert "nothing here can be compared with it" in text.replace("\n", " ")


def test_at_the_address_of_the_homes_own_chain_no_network_has_to_be_named(tmp_path):
    try:
        up = asyncio.run(process.up(tmp_path, clock=SystemClock(), seed=21))
        command = [sys.executable, "-m", "ops.cli", "probe", up.url.replace("127.0.0.1", "localhost") + "/|rps=1000"]
        said = subprocess.run(command, env={**os.environ, "REFEREE_HOME": str(tmp_path)}, cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert said.returncode == 0 and "What the node can do for devnet" in said.stdout
        assert network_of(tmp_path, "http://127.0.0.1:9") is network_of(tmp_path, "http://node.example:99999") is None
    finally:
        asyncio.run(process.down(tmp_path, clock=SystemClock()))


def test_a_node_that_does_not_answer_is_the_outsides_fault_and_its_address_is_not_shown(capsys):
    assert cli.main(["probe", f"http://127.0.0.1:9/{KEY}"]) == 3
    told = capsys.readouterr()
    assert KEY not in told.out + told.err and told.err.startswith("referee: ")


@pytest.mark.parametrize("url", [KEY, f"ftp://{KEY}", f"http://127.0.0.1:9|rps={KEY}"])
def test_an_address_that_is_none_is_wrong_use_and_not_shown(url, capsys):
    assert cli.main(["probe", url]) == 2
    assert KEY not in capsys.readouterr().err


async def test_a_node_in_nitros_shapes_will_do(street):
    async with nitro_node(street.url) as node:
        text, data, holds = await probed(node.url)
    assert holds
    said = {row["what"]: (row["verdict"], row["found"]) for row in data["rows"]}
    assert said["eth_createAccessList"][0] == said["headers"][0] == said["NUMBER"][0] == "noted"
    assert said["error of a revert"][1].endswith("-32000:data") and said["batch"][1].startswith("25 questions")
    assert said["client"][1].startswith("nitro/v3")


async def test_an_l1_part_that_is_charged_but_not_told_differs(street):
    def untold(params, answer):
        for block in answer:
            for call in block["calls"]:
                if call["gasUsed"] == "0x5208" and params[0].get("validation"):
                    call["gasUsed"] = hex(0x5208 + 20_000)
        return answer

    async with lying_node(street.url) as node:
        node.by("eth_simulateV1", untold)
        _, data, holds = await probed(node.url)
    said = {row["what"]: row["verdict"] for row in data["rows"]}
    assert not holds and said["transfer with fees"] == "differs"


async def test_a_key_that_the_node_repeats_is_not_shown(street):
    def echo(method, params, row):
        if method == "eth_getBlockReceipts":
            return {"jsonrpc": "2.0", "id": row["id"], "error": {"code": -32000, "message": f"project {KEY} may not"}}
        return row

    async with lying_node(street.url, f"/v2/{KEY}") as node:
        node.lie(alter=echo)
        text, data, _ = await probed(node.url)
    assert KEY not in text + json.dumps(data) and "may not" in text


async def test_a_node_without_simulation_differs(street):
    def without(method, params, row):
        return {"jsonrpc": "2.0", "id": row["id"], "error": {"code": -32601, "message": "no such method"}} if method == "eth_simulateV1" else row

    async with lying_node(street.url) as node:
        node.lie(alter=without)
        _, data, holds = await probed(node.url)
    said = {row["what"]: row["verdict"] for row in data["rows"]}
    assert not holds and said["eth_simulateV1"] == "differs"


async def test_a_node_of_nonsense_is_a_fault(street):
    async with lying_node(street.url) as node:
        node.lie(rewrite=lambda body: b"<html>")
        with pytest.raises(ChainFault, match="bad_answer"):
            await probed(node.url)


async def test_an_unknown_rival_is_wrong_use(street):
    with pytest.raises(WrongUse, match="no rival named 'nobody'"):
        await probed(street.url, rivals="nobody")


async def test_limits_behind_the_address_are_shown_and_kept(street):
    _, data, _ = await probed(f"{street.url}|rps=100000|batch=7")
    said = {row["what"]: row["found"] for row in data["rows"]}
    assert said["pace"] == "held to 100000 questions a second" and said["batch"].startswith("7 questions")


async def test_an_address_must_be_one():
    with pytest.raises(BadSettings, match="the URL that was named is not an http or https address"):
        await probed("somewhere")
