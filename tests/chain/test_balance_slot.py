"""The storage slot of a balance is found and proven, or said to be unprovable; a node's fault is neither (design §6)."""

from __future__ import annotations

from typing import Any

import pytest

from chain import calldata
from chain.balance_slot import EIP1967_SLOTS, BalanceSlot, SlotBook, throw_away
from chain.devnet.zoo import ZOO
from chain.header import Header, header_of
from chain.rpc import FunctionTransport, Lane, RpcDoor
from chain.simulate import slot_override
from ledgers.clock import VirtualClock
from ledgers.errors import ChainFault
from tests.chain.lies import door_through, door_to, refusal

WALLET = "0x7c0ffee0000000000000000000000000000a11ce"
OTHER = "0x7c0ffee000000000000000000000000000000b0b"
UNITS = 123_456_789_012

KINDS = {
    "plain_oz": "exact", "plain_solady": "exact", "plain_vyper": "exact", "plain_snek": "exact", "tax_5": "exact", "honeypot": "exact",
    "max_wallet": "exact", "event_liar": "exact", "no_return": "exact", "namespaced_proxy": "exact", "stored_elsewhere": "exact",
    "packed_flag": "exact", "packed_high": "exact", "packed_middle": "shifted", "two_mappings": "exact", "decimals_0": "exact",
    "shares": "shares", "gons": "shares", "interest": "shares", "reflection": "shares",
    "checkpointed": None, "masked": None, "balance_reverts": None,
}  # fmt: skip
"""What is expected of kinds of the zoo."""
MANY_BITS = {"gons": 160, "reflection": 190}
"""Bits of a slot value that makes a balance in kinds whose shares are tiny."""


def token(chain, kind: str) -> str:
    return chain.deployment.token(kind).address.lower()


def pinned(chain) -> Header:
    """The block before the head, as the product pins."""
    chain.mine()
    return header_of(chain.node.call("eth_getBlockByNumber", [hex(chain.height - 1), False]))


def balance_with(chain, pin: Header, slot: BalanceSlot, units: int, owner: str = WALLET) -> int:
    """What the token tells with the slot set."""
    call = {"to": slot.token, "data": calldata.balance_of(owner), "gas": hex(3_000_000)}
    return int(chain.node.call("eth_call", [call, hex(pin.block), slot_override([slot.write(units)])])[:66], 16)


def without(method: str, code: int = -32601, message: str = "the method does not exist/is not available"):
    return lambda asked, params, row: refusal(row, code, message) if asked == method else row


async def found_through(chain, alter, kind: str) -> BalanceSlot | None:
    door = door_through(chain.url, alter)
    try:
        return await SlotBook(door).of(token(chain, kind), WALLET, pinned(chain))
    finally:
        await door.close()


# --- finding --------------------------------------------------------------------------------------------------------


async def test_each_layout_is_found_as_what_it_is(chain):
    door, pin = door_to(chain.url), pinned(chain)
    slots = {kind: await SlotBook(door).of(token(chain, kind), WALLET, pin) for kind in KINDS}
    assert {kind: slot and slot.kind for kind, slot in slots.items()} == KINDS
    exact = {kind: balance_with(chain, pin, slot, UNITS) for kind, slot in slots.items() if slot and not slot.shares}
    assert set(exact.values()) == {UNITS}
    await door.close()


async def test_a_slot_found_for_any_kind_of_the_zoo_makes_the_balance_that_it_promises(chain):
    door, pin = door_to(chain.url), pinned(chain)
    book, wrong = SlotBook(door), {}
    for odd in ZOO:
        slot = await book.of(token(chain, odd.kind), WALLET, pin)
        if slot is not None and not slot.shares and (told := balance_with(chain, pin, slot, UNITS)) != UNITS:
            wrong[odd.kind] = told
    assert wrong == {}
    await door.close()


async def test_each_owner_has_a_slot_of_his_own(chain):
    door, pin = door_to(chain.url), pinned(chain)
    for kind, expected in KINDS.items():
        if expected is None:
            continue
        book = SlotBook(door)
        slot, other = await book.of(token(chain, kind), WALLET, pin), await book.of(token(chain, kind), OTHER, pin)
        assert slot and other and slot.slot != other.slot, kind
        much = 1 << MANY_BITS.get(kind, 100)
        assert balance_with(chain, pin, slot, much, owner=OTHER) == 0, kind
        assert balance_with(chain, pin, other, much, owner=OTHER) > 0, kind
    await door.close()


async def test_balances_kept_in_another_contract_are_set_there(chain):
    slot = await found_through(chain, lambda method, params, row: row, "stored_elsewhere")
    assert slot and slot.contract != slot.token


async def test_a_shifted_amount_is_written_shifted(chain):
    slot = await found_through(chain, lambda method, params, row: row, "packed_middle")
    assert slot and slot.write(5).value == 5 << slot.shift and slot.shift == 64


async def test_what_is_found_is_not_asked_again_until_forgotten(chain):
    asked: list[str] = []

    def count(method, params, row):
        asked.append(method)
        return row

    door, pin = door_through(chain.url, count), pinned(chain)
    book, plain = SlotBook(door), token(chain, "plain_oz")
    first = await book.of(plain, WALLET, pin)
    trips = len(asked)
    assert book.known(plain, WALLET) and await book.of(plain, WALLET, pin) == first and len(asked) == trips
    book.forget(plain)
    assert not book.known(plain, WALLET) and await book.of(plain, WALLET, pin) == first and len(asked) == 2 * trips
    await door.close()


# --- slots that belong to everybody ---------------------------------------------------------------------------------


def written(asked: list[tuple[str, list[Any]]]) -> set[str]:
    """Slots that any request overrode, apart from the first marker call."""
    slots: set[str] = set()
    for method, params in asked:
        if method == "eth_call" and len(params) == 3:
            here = {slot for override in params[2].values() for slot in override.get("stateDiff", {})}
            slots |= here if len(here) == 1 else set()
    return slots


@pytest.mark.parametrize("kind", ["namespaced_proxy", "stored_elsewhere", "shares"])
async def test_the_slots_of_a_proxy_are_never_written(chain, kind):
    asked: list[tuple[str, list[Any]]] = []

    def proxied(method, params, row):
        asked.append((method, params))
        if method == "eth_createAccessList":
            own = {"address": token(chain, kind), "storageKeys": [slot.upper().replace("X", "x") for slot in sorted(EIP1967_SLOTS)]}
            row["result"]["accessList"].insert(0, own)
        return row

    slot = await found_through(chain, proxied, kind)
    assert slot and not written(asked) & EIP1967_SLOTS


@pytest.mark.parametrize("kind", ["reflection", "shares", "gons"])
async def test_a_slot_that_is_set_already_belongs_to_everybody_and_is_never_written(chain, kind):
    asked: list[tuple[str, list[Any]]] = []

    def watch(method, params, row):
        asked.append((method, params))
        return row

    slot = await found_through(chain, watch, kind)
    listed = {params[1] for method, params in asked if method == "eth_getStorageAt"}
    assert slot and listed and not set_already(chain, kind, written(asked)) and set_already(chain, kind, listed)


def set_already(chain, kind: str, slots: set[str]) -> set[str]:
    """Those of some slots that hold something on the chain."""
    return {slot for slot in slots if int(chain.node.call("eth_getStorageAt", [token(chain, kind), slot, "latest"]), 16)}


# --- nodes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "message"), [(-32601, "the method does not exist/is not available"), (-32004, "Method is not supported"), (-32000, "unsupported method")])
async def test_a_lane_without_access_lists_still_finds_plain_slots(chain, code, message):
    missing = without("eth_createAccessList", code, message)
    assert (await found_through(chain, missing, "plain_oz")).kind == "exact"
    assert await found_through(chain, missing, "shares") is None


async def test_a_lane_without_access_lists_says_nothing_about_the_token_for_good(chain):
    lacking = [True]

    def alter(method, params, row):
        return without("eth_createAccessList")(method, params, row) if lacking else row

    door, pin = door_through(chain.url, alter), pinned(chain)
    book = SlotBook(door)
    assert await book.of(token(chain, "shares"), WALLET, pin) is None
    lacking.clear()
    assert (await book.of(token(chain, "shares"), WALLET, pin)).kind == "shares"
    await door.close()


FAULTS = {
    "balance refused": without("eth_call", -32000, "header not found"),
    "balance timed out": without("eth_call", -32000, "execution aborted (timeout = 5s)"),
    "list refused": without("eth_createAccessList", -32000, "header not found"),
    "list timed out": without("eth_createAccessList", -32000, "execution aborted (timeout = 5s)"),
    "storage refused": without("eth_getStorageAt", -32000, "missing trie node"),
    "storage is no number": lambda method, params, row: {**row, "result": "zero"} if method == "eth_getStorageAt" else row,
    "storage is null": lambda method, params, row: {**row, "result": None} if method == "eth_getStorageAt" else row,
    "balance is no data": lambda method, params, row: {**row, "result": "0x1"} if method == "eth_call" else row,
    "list is no list": lambda method, params, row: {**row, "result": {"accessList": 5}} if method == "eth_createAccessList" else row,
    "list is null": lambda method, params, row: {**row, "result": None} if method == "eth_createAccessList" else row,
}


@pytest.mark.parametrize("alter", FAULTS.values(), ids=FAULTS.keys())
async def test_a_nodes_fault_is_not_remembered_as_unprovable(chain, alter):
    lying = [True]
    door, pin = door_through(chain.url, lambda method, params, row: alter(method, params, row) if lying else row), pinned(chain)
    book, shares = SlotBook(door), token(chain, "shares")
    with pytest.raises(ChainFault):
        await book.of(shares, WALLET, pin)
    lying.clear()
    assert (await book.of(shares, WALLET, pin)).kind == "shares"
    await door.close()


@pytest.mark.parametrize(
    "entries",
    [[{"address": "0x12", "storageKeys": []}], [{"address": "0x" + "11" * 20, "storageKeys": ["0x1"]}], [{"address": "0x" + "11" * 20, "storageKeys": ["x" * 66]}],
     [{"address": "0x" + "11" * 20, "storageKeys": [5]}], [{"storageKeys": []}], [5], [{"address": "0x" + "11" * 20, "storageKeys": "0x"}], [{}] * 101],
)  # fmt: skip
async def test_an_access_list_that_is_none_is_a_fault(chain, entries):
    def alter(method, params, row):
        return {**row, "result": {"accessList": entries}} if method == "eth_createAccessList" else row

    with pytest.raises(ChainFault):
        await found_through(chain, alter, "shares")


async def test_a_token_that_answers_a_marker_without_keeping_it_is_not_believed():
    def answer(lane, body):
        rows = body if isinstance(body, list) else [body]
        told = [{"id": row["id"], "result": "0x" + calldata.word(0x1005)} if row["method"] == "eth_call" else refusal(row, -32601, "no method") for row in rows]
        return told if isinstance(body, list) else told[0]

    door = RpcDoor([Lane("a", "http://a")], transport=FunctionTransport(answer), clock=VirtualClock())
    header = Header(block=1, block_hash="0x" + "00" * 32, ts_s=1, base_fee_wei=1)
    assert await SlotBook(door).of("0x" + "11" * 20, WALLET, header) is None


def test_throw_away_addresses_differ_by_token_and_number():
    tokens = ["0x" + "11" * 20, "0x" + "22" * 20]
    assert len({throw_away(one, number) for one in tokens for number in (1, 2)}) == 4
