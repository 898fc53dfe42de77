"""Which rivals a window asks, by settings and network; the local chain's own is found again wherever it now stands (ONC-05)."""

from __future__ import annotations

import pytest

from chain.aggregators.ask import Ask, RivalQuote
from chain.devnet import standing
from chain.devnet.standing import LIVE, Standing
from chain.network import load_network
from ledgers.clock import SystemClock
from ops.rival_routers import HomeRivals, rivals_of
from ops.settings import BadSettings, Settings
from tests.onchain.ground import WALLET

SPEND = 10**16


def named(rivals: str, network: str, **keys: str) -> tuple[str, ...]:
    found = rivals_of(Settings(rivals=rivals, **keys), load_network(network), SystemClock())
    return found.names if found else ()


@pytest.mark.parametrize("rivals, names", [
    ("all", ("kyberswap", "0x")), ("", ()), ("none", ()), ("0x", ("0x",)), ("lifi", ()), ("lifi, KyberSwap", ("kyberswap",)),
])  # fmt: skip
def test_onc_05_the_local_chain_is_known_to_its_own_rival_alone(rivals, names):
    assert named(rivals, "devnet") == names


def test_onc_05_a_real_chain_is_asked_of_everybody_who_answers_without_a_key_unless_told_otherwise():
    assert named("all", "robinhood") == ("kyberswap", "lifi", "sushi", "relay", "openocean")
    assert named("0x,kyberswap", "robinhood", key_0x="k") == ("0x", "kyberswap") and named("none", "robinhood") == ()


@pytest.mark.parametrize("network", ["devnet", "robinhood"])
def test_an_unknown_rival_is_named(network):
    with pytest.raises(BadSettings, match="REFEREE_RIVALS: no rival named 'paraswap'"):
        named("paraswap", network)


def stands(home, url: str) -> None:
    folder = standing.folder_of(home)
    folder.mkdir(parents=True, exist_ok=True)
    standing.write(folder, Standing(
        phase=LIVE, reason="", url="", owner_pid=1, node_pid=1, seed=7, block_time_ms=1_000, anchor_ms=0, block0_hash="0x", height=1, target_block=1,
        rival_url=url,
    ))  # fmt: skip


async def test_onc_05_the_local_rival_is_found_again_when_the_chain_was_built_anew(tmp_path, chain):
    head = chain.node.call("eth_getBlockByNumber", ["latest", False])
    ask = Ask(
        side="buy", token=chain.deployment.token("LEAF").address.lower(), amount=SPEND, wallet=WALLET, token_decimals=18, chain_id=chain.chain_id,
        weth=chain.addresses["weth"], gas_price_wei=10**7, now_s=int(head["timestamp"], 16), deadline_ms=5_000,
    )  # fmt: skip
    home = HomeRivals(tmp_path, ("kyberswap",), SystemClock())
    try:
        assert [answer.reason for answer in await home.ask(ask)] == ["dead"]
        for _ in range(2):
            with chain.rival() as rival:
                stands(tmp_path, rival.url)
                (answer,) = await home.ask(ask)
                assert isinstance(answer, RivalQuote) and answer.tx.value_wei == SPEND
    finally:
        await home.close()
