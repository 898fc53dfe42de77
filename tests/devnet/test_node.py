"""The node: answers on loopback only, keeps nothing on disk, and never outlives its owner."""

import os
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from chain.devnet.calls import Tx
from chain.devnet.miner import TOGETHER_MAX
from chain.devnet.node import Refused, end_orphan, start
from chain.devnet.toolchain import require
from ledgers.errors import ChainFault

ROOT = Path(__file__).parents[2]
OWNER = "import sys, chain.devnet.devnet as d; c = d.Devnet.build(5); print(c.node.pid, flush=True); sys.stdin.read()"


def test_a_killed_owner_takes_its_node_along():
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    node = os.pidfd_open(int(owner.stdout.readline()))
    owner.kill()
    owner.communicate()
    ended, _, _ = select.select([node], [], [], 10)
    os.close(node)
    assert ended


def test_an_orphan_is_found_by_its_pid_file_and_ended(tmp_path):
    node = start(require(), pid_file=tmp_path / "node.pid")
    assert end_orphan(tmp_path / "node.pid")
    assert node.process.wait(10) != 0 and not (tmp_path / "node.pid").exists()


@pytest.mark.parametrize("content", ["", "nonsense", f"{os.getpid()} 8545", "999999999 1"], ids=["empty", "nonsense", "ours", "gone"])
def test_a_pid_file_that_names_no_node_of_ours_ends_nothing(tmp_path, content):
    (tmp_path / "node.pid").write_text(content)
    assert not end_orphan(tmp_path / "node.pid")


def test_a_node_that_is_gone_is_a_fault(tmp_path):
    node = start(require())
    node.stop()
    with pytest.raises(ChainFault, match="dead"):
        node.call("eth_chainId", [])


def test_a_port_that_a_silent_stranger_took_is_given_up():
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        with pytest.raises(ChainFault, match="did not come up"):
            start(require(), port=stranger.getsockname()[1])


def test_a_refusal_names_the_method(chain):
    with pytest.raises(Refused, match="eth_noSuchThing"):
        chain.node.call("eth_noSuchThing", [])


def test_the_node_listens_on_loopback_only(chain):
    rows = [line.split() for path in ("/proc/net/tcp", "/proc/net/tcp6") for line in Path(path).read_text().splitlines()[1:]]
    listening = {row[1].split(":")[0] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == chain.node.port}
    assert listening == {"0100007F"}


def test_blocks_leave_nothing_on_disk(chain):
    chain.step(10)
    opened = {os.readlink(f"/proc/{chain.node.pid}/fd/{name}") for name in os.listdir(f"/proc/{chain.node.pid}/fd")}
    written = dict(line.split(": ") for line in Path(f"/proc/{chain.node.pid}/io").read_text().splitlines())
    assert {path for path in opened if path.startswith("/")} == {"/dev/null"} and written["write_bytes"] == "0"


def test_many_transactions_are_sealed_together_and_in_order(chain):
    visitor, count = chain.deployment.cast.visitor, TOGETHER_MAX * 4 + 1
    receivers = [f"0x{0xABC000 + index:040x}" for index in range(count)]
    receipts = chain.send(*(Tx(sender=visitor, to=receiver, value_wei=1, gas=60_000) for receiver in receivers))
    assert [receipt["to"] for receipt in receipts] == receivers


def test_the_whole_history_of_logs_is_kept(chain):
    chain.mine(80)
    pairs = chain.node.call(
        "eth_getLogs", [{"fromBlock": "0x0", "toBlock": hex(chain.deployment.height), "address": chain.addresses["v2_factory"]}]
    )
    annex = chain.deployment.annex
    elsewhere = {market.place.key for fork in annex.forks for market in fork.markets}
    made = [market.place for market in (*chain.deployment.markets, *annex.markets) if market.place.key not in elsewhere]
    assert len(pairs) == sum(place.venue == "v2" for place in made)


def test_a_state_of_the_last_blocks_can_be_read(chain):
    chain.mine(70)
    answer = chain.node.call("eth_getBalance", [chain.deployment.cast.visitor, hex(chain.height - 60)])
    assert int(answer, 16) > 0


def test_of_many_questions_some_may_be_refused(devnet):
    weth, usdg = devnet.addresses["weth"], devnet.addresses["usdg"]
    asked = [("eth_call", [{"to": weth, "data": "0xdeadbeef", "from": usdg}, "latest"]), ("eth_chainId", []), ("eth_nothing", [])]
    answers = devnet.node.tried([*asked, ("eth_call", [{"to": usdg, "data": "0xdeadbeef"}, "latest"])])
    assert answers[1] == "0x1237" and answers[2] is None and answers[3] is None and devnet.node.tried([]) == []
