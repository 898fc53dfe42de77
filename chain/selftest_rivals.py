"""The self-test of rivals: one quote of each for a hundredth of an ETH in dollars, and what its own transaction really brings.

Source: 001 §2.2: a row's own transaction is simulated before it counts.
"""

from __future__ import annotations

from chain.aggregators.ask import BUY, Ask, RivalQuote, RivalSilent
from chain.aggregators.rivals import Rivals
from chain.finding import NOTED, Finding, verdict
from chain.header import Header
from chain.network import Network
from chain.price import USDG_DECIMALS
from chain.rpc import RpcDoor
from chain.simulate import AMOUNT_MAX, Simulation, SimulationRefused, answered, revert_word
from chain.text import clean
from ledgers.errors import ChainFault

TAKER = "0x7c0ffee0000000000000000000000000005e1f7e"
ASKED_WEI = 10**16
PURSE_WEI = 10**18
DEADLINE_MS = 10_000
LESS_BPS_MAX = 100
"""How much less than its quote a rival's transaction may bring."""


async def rival_findings(rpc: RpcDoor, network: Network, pin: Header, rivals: Rivals) -> list[Finding]:
    """Ask every rival once. Raises: ChainFault when the node does not answer."""
    ask = Ask(
        side=BUY, token=network.usdg, amount=ASKED_WEI, wallet=TAKER, token_decimals=USDG_DECIMALS, chain_id=network.chain_id, weth=network.weth,
        gas_price_wei=pin.base_fee_wei, now_s=pin.ts_s, deadline_ms=DEADLINE_MS,
    )  # fmt: skip
    return [await _finding(rpc, network, pin, quote) for quote in await rivals.ask(ask)]


async def _finding(rpc: RpcDoor, network: Network, pin: Header, quote: RivalQuote | RivalSilent) -> Finding:
    if isinstance(quote, RivalSilent):
        return Finding("rivals", quote.source, NOTED, clean(f"silent: {quote.reason} {quote.detail}", 120).strip())
    brought = await _brought(rpc, network, pin, quote)
    if isinstance(brought, str):
        return Finding("rivals", quote.source, NOTED, f"quotes {quote.out_raw} units in {quote.latency_ms} ms; its transaction {brought}")
    less_bps = (quote.out_raw - brought) * 10_000 // quote.out_raw
    found = f"quotes {quote.out_raw} units in {quote.latency_ms} ms, its transaction brings {brought} ({-less_bps:+} bps)"
    return Finding("rivals", quote.source, verdict(less_bps <= LESS_BPS_MAX, NOTED), found)


async def _brought(rpc: RpcDoor, network: Network, pin: Header, quote: RivalQuote) -> int | str:
    """What a rival's transaction brings its taker, or why it cannot be told."""
    sim = Simulation(network, pin)
    sim.block(balances_wei={TAKER: PURSE_WEI})
    before, sent, after = sim.token_balance(network.usdg, TAKER), sim.send(TAKER, quote.tx), sim.token_balance(network.usdg, TAKER)
    (answer,) = await rpc.batch([sim.request()])
    try:
        done = answered(sim, answer)
        if not done[sent].ok:
            return clean(revert_word(done[sent]), 80)
        return done.amount(after, AMOUNT_MAX) - done.amount(before, AMOUNT_MAX)
    except (SimulationRefused, LookupError, ChainFault) as refused:
        return f"could not be simulated ({clean(str(refused), 80)})"
