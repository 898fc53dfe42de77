"""What a buy writes about its buyer is read from storage by a program of ours, which is what it says it is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import chain.holder_state
from chain.devnet.compile import SOURCES
from chain.devnet.toolchain import require
from chain.holder_state import READ_GAS, WORDS_CODE
from chain.simulate import SlotWrite, slot_override

TOKEN = "0x" + "11" * 20
SLOT = "0x" + "22" * 32
WALLET = "0x7c0ffee0000000000000000000000000000a11ce"


def test_the_program_is_its_source_compiled():
    modules = require() / "node_modules"
    source = Path(chain.holder_state.__file__).with_suffix(".yul").read_text("utf-8")
    settings = {"evmVersion": "shanghai", "optimizer": {"enabled": True, "details": {"yul": True}}, "outputSelection": {"*": {"*": ["evm.bytecode.object"]}}}
    asked = json.dumps({"language": "Yul", "sources": {"words": {"content": source}}, "settings": settings})
    node = require() / "node"
    done = subprocess.run([str(node) if node.exists() else "node", str(SOURCES / "solc.js"), str(modules)], input=asked, capture_output=True, text=True, check=True)
    (compiled,) = json.loads(done.stdout)["contracts"]["words"].values()
    assert "0x" + compiled["evm"]["bytecode"]["object"] == WORDS_CODE


def test_the_program_ends_within_its_gas_with_as_many_keys_as_it_is_ever_given(chain):
    words = "".join(f"{key:064x}" for key in (int(WALLET, 16), 1, 2, 3, 4))
    call = {"to": TOKEN, "data": "0x" + words, "gas": hex(READ_GAS)}
    assert chain.node.call("eth_call", [call, "latest", {TOKEN: {"code": WORDS_CODE}}]) == "0x"
    state = {TOKEN: {"code": WORDS_CODE, "stateDiff": {f"0x{low:064x}": "0x" + "00" * 31 + "03" for low in range(256)}}}
    assert len(chain.node.call("eth_call", [call, "latest", state])) == 2 + 256 * 128


def test_bits_beside_a_balance_are_added_to_it():
    balance, flag = SlotWrite(TOKEN, SLOT, 7), SlotWrite(TOKEN, SLOT, 1 << 255, beside=True)
    (diff,) = slot_override([balance, flag]).values()
    assert int(diff["stateDiff"][SLOT], 16) == 7 | 1 << 255
    assert slot_override([balance, SlotWrite(TOKEN, SLOT, 5)]) == slot_override([SlotWrite(TOKEN, SLOT, 5)])
