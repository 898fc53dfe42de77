"""The self-test of what stands on the chain: code, feeds, quotes against the feed, known pools, balance slots.

Source: design §6; rule ONC-28 for the feed.
"""

from __future__ import annotations

from collections.abc import Iterable

from chain import calldata
from chain.balance_slot import SlotBook
from chain.calldata import uint_at
from chain.factories import USUAL_TIERS, USUAL_V4_TIERS
from chain.finding import DIFFERS, FINE, NOTED, UNKNOWN, Finding, verdict
from chain.header import Header
from chain.logs import signed
from chain.network import BalanceLayout, Network
from chain.pools import NATIVE, V4_SLOT0, Pool, v4_key_words
from chain.price import LATEST_ROUND_DATA, read_feed
from chain.probe import Capabilities
from chain.rpc import RpcDoor, RpcRefused
from chain.simulate import SlotWrite, slot_override
from ledgers.errors import FeedFault

QUOTED_WEI = 10**16
"""What is quoted: a hundredth of an ETH."""
OFF_BPS_MAX = 100
NAMED_MAX = 6
HOLDER = "0x7c0ffee0000000000000000000000000005e1f7e"
"""Nobody's address, whose balance is written by override."""
MARKED = 987_654_321


# --- code -------------------------------------------------------------------------------------------------------------


async def code_findings(rpc: RpcDoor, network: Network, found: Capabilities) -> list[Finding]:
    """Say which addresses of the network file have code. Raises: ChainFault."""
    contracts, known = network.contracts(), network.known()
    missing = found.code_missing
    rows = [Finding("code", "contracts", verdict(not missing), f"{len(contracts) - len(missing)} of {len(contracts)} have code{_named(missing)}")]
    if not known:
        return rows
    answers = await rpc.batch([("eth_getCode", [address, "latest"]) for address in known.values()])
    without = [name for name, code in zip(known, answers, strict=True) if isinstance(code, RpcRefused) or not calldata.hex_bytes(code)]
    said = f"{len(known) - len(without)} of {len(known)} have code{_named(without)}"
    return [*rows, Finding("code", "other known addresses", verdict(not without, NOTED), said)]


def _named(missing: Iterable[str]) -> str:
    names = list(missing)
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return f"; none at {', '.join(names[:NAMED_MAX])}{more}" if names else ""


# --- prices -----------------------------------------------------------------------------------------------------------


async def price_findings(rpc: RpcDoor, network: Network, pin: Header) -> list[Finding]:
    """Read the feeds, and hold what the quoters promise for a hundredth of an ETH in dollars to them. Raises: ChainFault."""
    try:
        feed = int(await read_feed(rpc, network, pin.block))
    except FeedFault as fault:
        return [Finding("prices", "ETH/USD feed", DIFFERS, str(fault))]
    wanted = feed * QUOTED_WEI // 10**18
    rows = [Finding("prices", "ETH/USD feed", FINE, f"{_dollars(feed)} for one ETH")]
    for name, quoter, asked in _quotes(network):
        if quoter is None:
            rows.append(Finding("prices", name, NOTED, "this network has none"))
            continue
        answers = await rpc.batch([("eth_call", [{"to": quoter, "data": data}, hex(pin.block)]) for data in asked])
        quotes = [uint_at(calldata.hex_bytes(answer), 0) or 0 for answer in answers if not isinstance(answer, RpcRefused)]
        rows.append(_quote_finding(name, max(quotes, default=0), wanted))
    return [*rows, *await _feeds(rpc, network, pin)]


def _quotes(network: Network) -> list[tuple[str, str | None, list[str]]]:
    """Who quotes, and the question in every usual tier."""
    v3 = [calldata.quote_v3_single(network.weth, network.usdg, QUOTED_WEI, fee) for fee, _ in USUAL_TIERS]
    native = [_native_pool(network, fee, spacing) for fee, spacing in USUAL_V4_TIERS]
    v4 = [calldata.quote_v4_single(v4_key_words(pool), True, QUOTED_WEI) for pool in native]
    return [("QuoterV2, 0.01 ETH", network.quoter_v2, v3), ("V4Quoter, 0.01 ETH", network.v4_quoter, v4)]


def _native_pool(network: Network, fee_ppm: int, spacing: int) -> Pool:
    return Pool(venue="v4", key="", token0=NATIVE, token1=network.usdg, fee_ppm=fee_ppm, tick_spacing=spacing, hooks=NATIVE, born_block=0)


def _quote_finding(name: str, quoted: int, wanted: int) -> Finding:
    if not quoted:
        return Finding("prices", name, NOTED, "no pool in the usual tiers answers")
    off_bps = (quoted - wanted) * 10_000 // wanted
    return Finding("prices", name, verdict(abs(off_bps) <= OFF_BPS_MAX), f"{_dollars(quoted)}, {off_bps:+} bps from the feed's {_dollars(wanted)}")


def _dollars(micro_usd: int) -> str:
    return f"${micro_usd // 10**6}.{micro_usd % 10**6 // 10**2:04d}"


async def _feeds(rpc: RpcDoor, network: Network, pin: Header) -> list[Finding]:
    answers = await rpc.batch([("eth_call", [{"to": feed.address, "data": LATEST_ROUND_DATA}, hex(pin.block)]) for feed in network.feeds])
    rows = []
    for feed, answer in zip(network.feeds, answers, strict=True):
        data = b"" if isinstance(answer, RpcRefused) else calldata.hex_bytes(answer)
        price, updated_s = uint_at(data, 1), uint_at(data, 3)
        if price is None or updated_s is None or signed(price) <= 0:
            rows.append(Finding("prices", f"{feed.name} feed", NOTED, "does not answer in Chainlink's shape"))
            continue
        age_s = pin.ts_s - updated_s
        rows.append(Finding("prices", f"{feed.name} feed", verdict(0 <= age_s <= network.feed_heartbeat_s, NOTED), f"answered {age_s} s ago"))
    return rows


# --- pools and slots --------------------------------------------------------------------------------------------------


async def pool_findings(rpc: RpcDoor, network: Network, pin: Header) -> list[Finding]:
    """Say which v4 pools of the network file are there; v2 and v3 pools have code. Raises: ChainFault."""
    ids = [pool for pool in network.reference_pools if pool.venue == "v4"]
    if not ids or network.v4_state_view is None:
        return []
    asked = [("eth_call", [{"to": network.v4_state_view, "data": V4_SLOT0 + pool.key[2:]}, hex(pin.block)]) for pool in ids]
    answers = await rpc.batch(asked)
    there = [not isinstance(answer, RpcRefused) and bool(uint_at(calldata.hex_bytes(answer), 0)) for answer in answers]
    return [
        Finding("pools", f"v4 {pool.name}", verdict(is_there, NOTED), "is there" if is_there else "was never opened")
        for pool, is_there in zip(ids, there, strict=True)
    ]


async def slot_findings(rpc: RpcDoor, network: Network, pin: Header) -> list[Finding]:
    """Find where WETH and the dollar token keep balances, as an order does and as the network file says. Raises: ChainFault."""
    book, rows = SlotBook(rpc), []
    for name, token in (("WETH", network.weth), ("USDG", network.usdg)):
        slot = await book.of(token, HOLDER, pin)
        found = f"{slot.kind}, shifted by {slot.shift} bits" if slot and slot.shift else slot.kind if slot else "no override can set it, so no sale of it could be proven"
        rows.append(Finding("slots", f"{name} found", verdict(slot is not None), found))
    for layout in network.balance_layouts:
        rows.append(await _read_back(rpc, network, layout, pin))
    return rows


async def _read_back(rpc: RpcDoor, network: Network, layout: BalanceLayout, pin: Header) -> Finding:
    name = {network.weth: "WETH", network.usdg: "USDG"}.get(layout.token, layout.token)
    write = SlotWrite(layout.token, calldata.mapping_slot(HOLDER, layout.position), MARKED)
    asked = {"to": layout.token, "data": calldata.balance_of(HOLDER)}
    (answer,) = await rpc.batch([("eth_call", [asked, hex(pin.block), slot_override([write])])])
    what = f"{name} at {layout.position}"
    if isinstance(answer, RpcRefused):
        return Finding("slots", what, UNKNOWN, "the balance could not be read")
    told = uint_at(calldata.hex_bytes(answer), 0)
    return Finding("slots", what, verdict(told == MARKED), f"{MARKED} written, {told} read back, {layout.bits} bits wide")
