"""The node: one anvil process on loopback, and its admin door.

The only place that deploys, impersonates or mines. Plain, not async: it has one caller, which owns the chain, and a
call takes a fraction of a millisecond. Flags as measured for the local chain: our own driver mines, transactions keep
their order, no state goes to disk. Source: design §7.
"""

from __future__ import annotations

import ctypes
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from chain.devnet.child import environment
from chain.devnet.toolchain import anvil_binary
from ledgers.errors import ChainFault

CHAIN_ID = 4663
GENESIS_S = 1_790_000_000
"""Chain time of block 0, Unix seconds; fixed, so that every build is the same chain."""
BASE_FEE_WEI = 10_000_000
BLOCK_GAS_MAX = 1_000_000_000
CODE_BYTES_MAX = 98_304
STATES_KEPT = 64
"""How many blocks back the node still answers for; all blocks, receipts and logs are kept."""
ACCOUNTS = 20
BALANCE_ETH = 100_000_000
READY_TRIES = 1_000
READY_NAP_S = 0.01
SETTLE_S = 0.02
"""A node whose port was taken meanwhile ends within this, and it was another one that answered."""
CALL_S_MAX = 60
ASK_S_MAX = 1
"""How long a node that may be up is waited for: whoever took its port meanwhile may never answer."""
START_TRIES = 3
PARENT_DEATH_SIGNAL = 1

Request = tuple[str, list]


class Refused(Exception):
    """The node answered with an error object."""


class Line:
    """A line to a node on loopback, with its admin methods."""

    def __init__(self, port: int, limit_s: float = CALL_S_MAX) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=limit_s)

    def call(self, method: str, params: list) -> Any:
        """Ask one thing. Raises: Refused, ChainFault."""
        answer = self._exchange({"jsonrpc": "2.0", "id": 0, "method": method, "params": params})
        return _result(answer, method)

    def batch(self, requests: Sequence[Request]) -> list[Any]:
        """Ask many things; results in the order asked. Raises: Refused at the first refusal, ChainFault."""
        if not requests:
            return []
        asked = [{"jsonrpc": "2.0", "id": index, "method": method, "params": params} for index, (method, params) in enumerate(requests)]
        answers = {answer["id"]: answer for answer in self._exchange(asked)}
        return [_result(answers[index], method) for index, (method, _) in enumerate(requests)]

    def tried(self, requests: Sequence[Request]) -> list[Any]:
        """Ask many things of which some may be refused; None for each that was. Raises: ChainFault."""
        if not requests:
            return []
        asked = [{"jsonrpc": "2.0", "id": index, "method": method, "params": params} for index, (method, params) in enumerate(requests)]
        answers = {answer["id"]: answer for answer in self._exchange(asked)}
        return [answers[index].get("result") for index in range(len(requests))]

    def hang_up(self) -> None:
        self._line.close()

    def _exchange(self, asked: Any) -> Any:
        try:
            self._line.request("POST", "/", orjson.dumps(asked), {"Content-Type": "application/json"})
            return orjson.loads(self._line.getresponse().read())
        except (OSError, http.client.HTTPException, orjson.JSONDecodeError) as error:
            self._line.close()
            raise ChainFault("dead", f"the local chain's node gave no answer ({type(error).__name__})") from error


class Node(Line):
    """A running anvil of ours. Ends with its owner: killed by the kernel on Linux, found by its pid file elsewhere."""

    def __init__(self, process: subprocess.Popen, port: int, pid_file: Path | None) -> None:
        super().__init__(port)
        self.process = process
        self.pid_file = pid_file

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        """End the process and forget its pid file."""
        self.hang_up()
        if self.alive():
            self.process.kill()
        self.process.wait()
        if self.pid_file:
            self.pid_file.unlink(missing_ok=True)


def _result(answer: dict, method: str) -> Any:
    if "error" in answer:
        raise Refused(f"{method}: {answer['error'].get('message', '')[:500]}")
    return answer["result"]


def start(toolchain: Path, *, genesis_fee_wei: int = BASE_FEE_WEI, pid_file: Path | None = None, port: int = 0) -> Node:
    """Start a node with an empty chain and wait until it answers; `port` 0 takes a free one.

    `genesis_fee_wei` is the base fee written into block 0 and nowhere else: it sets the hash of block 0.
    Raises: ChainFault("dead") when it does not come up."""
    if pid_file:
        end_orphan(pid_file)
    for _ in range(START_TRIES):
        chosen = port or _free_port()
        process = _launch(_command(toolchain, chosen, genesis_fee_wei))
        node = Node(process, chosen, pid_file)
        if pid_file:
            pid_file.write_text(f"{process.pid} {chosen}\n")
        if _answers(node):
            return node
        node.stop()
    raise ChainFault("dead", f"the local chain's node did not come up {START_TRIES} times in a row; is the machine out of memory or ports?")


def _command(toolchain: Path, port: int, genesis_fee_wei: int) -> list[str]:
    flags = {
        "--chain-id": CHAIN_ID,
        "--host": "127.0.0.1",
        "--port": port,
        "--order": "fifo",
        "--prune-history": STATES_KEPT,
        "--gas-limit": BLOCK_GAS_MAX,
        "--code-size-limit": CODE_BYTES_MAX,
        "--timestamp": GENESIS_S,
        "--base-fee": genesis_fee_wei,
        "--accounts": ACCOUNTS,
        "--balance": BALANCE_ETH,
    }
    return [str(anvil_binary(toolchain)), "--no-mining", "--quiet", *(str(part) for flag in flags.items() for part in flag)]


def _launch(command: list[str]) -> subprocess.Popen:
    quiet = subprocess.DEVNULL
    die_with_parent = _die_with_parent if sys.platform == "linux" else None
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, preexec_fn=die_with_parent, env=environment())


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(node: Node) -> bool:
    asking = Line(node.port, ASK_S_MAX)
    try:
        return _answers_on(asking, node.process)
    finally:
        asking.hang_up()


def _answers_on(asking: Line, process: subprocess.Popen) -> bool:
    for _ in range(READY_TRIES):
        try:
            known = int(asking.call("eth_chainId", []), 16) == CHAIN_ID
            return known and not _ended_within(process, SETTLE_S)
        except ChainFault:
            if _ended_within(process, READY_NAP_S):
                return False
    return False


def _ended_within(process: subprocess.Popen, limit_s: float) -> bool:
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def end_orphan(pid_file: Path) -> bool:
    """Kill the node that `pid_file` names when it still runs and really is one of ours; say whether it was."""
    try:
        pid, port = (int(part) for part in pid_file.read_text().split())
    except (OSError, ValueError):
        return False
    ours = _is_our_node(pid, port)
    if ours:
        os.kill(pid, signal.SIGKILL)
    pid_file.unlink(missing_ok=True)
    return ours


def _is_our_node(pid: int, port: int) -> bool:
    command = command_of(pid)
    return "anvil" in command and f"--chain-id {CHAIN_ID} " in command and f"--port {port} " in command


def command_of(pid: int) -> str:
    """The command line of a process, or nothing when there is no such process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        pass
    if sys.platform == "linux":
        return ""
    return subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, env=environment()).stdout.strip() + " "
