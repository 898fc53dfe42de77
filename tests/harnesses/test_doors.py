"""DOORS.md holds: the program in it plays a turn as it stands, and what it names is there."""

import asyncio
import re
import socket
import sys
from pathlib import Path

from harnesses import mcp_door
from harnesses.address import Address
from harnesses.catalog import endpoint_of, http_door
from harnesses.manifest import Retry, load_harness
from harnesses.model import ModelProvider
from harnesses.outcome import ILL_FORMED, Outcome
from harnesses.turn import play
from ledgers.clock import SystemClock
from tests.harnesses.test_model import ASKED, STACK, Tools
from tests.harnesses.wire import manifest

DOORS = (Path(mcp_door.__file__).parent / "DOORS.md").read_text("utf-8")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def test_the_program_in_the_paper_plays_a_turn() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", DOORS, re.DOTALL)
    port, clock = free_port(), SystemClock()
    assert "8700" in program
    running = await asyncio.create_subprocess_exec(sys.executable, "-c", program.replace("8700", str(port)), stderr=asyncio.subprocess.DEVNULL)
    held = manifest("agent-1", retry=Retry(attempts_max=10, backoff_ms=[1_000] * 9))
    door = http_door(held, Address(f"http://127.0.0.1:{port}/"), clock)
    try:
        provider = ModelProvider(endpoint_of(held, "mine", door), lambda _: Tools(), held.limits.live, clock)
        ended = await play(STACK, ASKED, provider, clock)
    finally:
        await door.close()
        running.terminate()
        await running.wait()
    assert (ended.outcome, ended.answer) == (Outcome.ANSWERED, '{"schema": "decision/1", "inputs": ["book"], "orders": []}')
    assert [used.name for used in ended.tool_uses] == ["book"]


def test_every_name_in_the_paper_is_there() -> None:
    for name in ("agent-1", "h2"):
        provider = load_harness(name).model_manifest.provider
        assert f"harness `{name}`" in DOORS and f"REFEREE_PROVIDER_{provider.name.upper()}_URL" in DOORS
    for tool in (mcp_door.NEXT_TURN, mcp_door.ANSWER):
        assert f"`{tool.name}`" in DOORS
    assert all(f"`{reason}`" in DOORS for reason in ILL_FORMED if reason != "call_in_text")
