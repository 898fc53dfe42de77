"""The storage slot behind a token balance: found, proven, or unprovable.

A paper wallet owns nothing on the chain; its tokens exist by overriding the slot that `balanceOf` reads. First every usual
layout is tried in one call, each with its own marker value; then the node's access list names the slots; then a linear
solve tells whether the amount sits shifted in the slot or is kept as shares. What none of these finds is unprovable, and
that is an answer. Throw-away addresses are used for the search.
Source: 001 §2.2 and EIP-2930; design §6.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eth_utils import keccak

from chain import calldata
from chain.address import derived, is_address
from chain.header import Header
from chain.network import READER
from chain.rpc import METHOD_MISSING, RpcDoor, RpcRefused, of_the_contract
from chain.simulate import SlotWrite, lens_of, slot_override
from ledgers.errors import ChainFault

POSITIONS = (*range(24), 51, 101, 151, 201)
ERC20_NAMESPACE = int("52c63247e1f47db19d5ce0460030c497f067ca4cebf71ba98eeadabe20bace00", 16)
"""Where OpenZeppelin's upgradeable ERC-20 keeps its balances (ERC-7201)."""
SOLADY_SEED = 0x87A211A2
MARKER_FIRST = 0x1001
GAS = hex(3_000_000)
RATIO_BITS = 24
"""Shares are probed where the balance they make has at least so many bits, so that rounding hides no ratio."""
EIP1967_SLOTS = frozenset(
    {
        "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc",
        "0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50",
        "0xb53127684a568b3173ae13b9f8a6016e243e63b6e8ee1178d6a717850b5d6103",
    }
)
STORAGE_SLOT = re.compile(r"0x[0-9a-f]{64}")
CANDIDATES_MAX = 8
SHIFTS = range(0, 256)

Layout = Callable[[str], str]
"""From an owner's address to the slot of its balance."""


@dataclass(frozen=True, slots=True)
class BalanceSlot:
    """Where a token keeps one owner's balance."""

    token: str
    contract: str
    """Whose storage it is; mostly the token itself."""
    slot: str
    kind: str
    """exact, shifted or shares."""
    shift: int
    """Bits that the amount is shifted up inside the slot (exact: 0)."""

    @property
    def shares(self) -> bool:
        return self.kind == "shares"

    def write(self, units: int) -> SlotWrite:
        """Set the slot so that the owner holds `units`: base units, or shares when the token keeps them."""
        return SlotWrite(self.contract, self.slot, units << self.shift)


@dataclass(frozen=True, slots=True)
class _Found:
    contract: str
    slot: str
    """The seeker's own slot."""
    layout: Layout | None
    """None when the slot follows no rule that we know; then it is looked up for every owner."""
    kind: str
    shift: int


class _NoAccessList(Exception):
    """The lane has no such method; another may have it, so nothing is remembered."""


class SlotBook:
    """Slots already found, by token; proven again inside every proof, so a stale one cannot credit anything."""

    def __init__(self, rpc: RpcDoor, reader: str = READER) -> None:
        """`reader` is who reads balances; seekers are as little known as it is."""
        self._rpc, self._reader = rpc, reader
        self._found: dict[str, _Found | None] = {}
        self._slots: dict[tuple[str, str], BalanceSlot | None] = {}

    def known(self, token: str, owner: str) -> bool:
        """True when nothing need be asked."""
        return (token, owner) in self._slots

    async def of(self, token: str, owner: str, pin: Header) -> BalanceSlot | None:
        """Find where a token keeps the owner's balance; None when no override can set it.

        Raises: ChainFault when the node cannot be asked; nothing is remembered then."""
        if (token, owner) not in self._slots:
            try:
                self._slots[token, owner] = await self._search(token, owner, pin)
            except _NoAccessList:
                return None
        return self._slots[token, owner]

    def forget(self, token: str) -> None:
        """Drop what is known of a token, after a proof failed on it."""
        self._found.pop(token, None)
        for key in [key for key in self._slots if key[0] == token]:
            del self._slots[key]

    async def _search(self, token: str, owner: str, pin: Header) -> BalanceSlot | None:
        if token not in self._found:
            self._found[token] = await self._by_marker(token, pin) or await self._by_access_list(token, throw_away(token, 2, self._reader), pin)
        found = self._found[token]
        if found is None:
            return None
        if found.layout is None:
            own = await self._by_access_list(token, owner, pin)
            return BalanceSlot(token, own.contract, own.slot, own.kind, own.shift) if own else None
        return BalanceSlot(token, found.contract, found.layout(owner), found.kind, found.shift)

    # --- by marker --------------------------------------------------------------------------------------------------

    async def _by_marker(self, token: str, pin: Header) -> _Found | None:
        seeker = throw_away(token, 1, self._reader)
        layouts = _layouts()
        writes = [SlotWrite(token, layout(seeker), MARKER_FIRST + number) for number, layout in enumerate(layouts)]
        (value,) = await self._balances([(token, seeker, writes)], pin)
        number = (value or 0) - MARKER_FIRST
        if not 0 <= number < len(layouts):
            return None
        layout = layouts[number]
        wanted = (1, 12_345_678_901, (1 << 60) + 7)
        proofs = await self._balances([(token, seeker, [SlotWrite(token, layout(seeker), units)]) for units in wanted], pin)
        return _Found(token, layout(seeker), layout, "exact", 0) if tuple(proofs) == wanted else None

    # --- by access list ---------------------------------------------------------------------------------------------

    async def _by_access_list(self, token: str, seeker: str, pin: Header) -> _Found | None:
        for place in await self._unset(await self._places(token, seeker, pin), pin):
            if found := await self._solve(token, seeker, place, pin):
                return found
        return None

    async def _places(self, token: str, owner: str, pin: Header) -> list[tuple[str, str]]:
        call = {"from": owner, "to": token, "data": calldata.balance_of(owner), "gas": GAS}
        (answer,) = await self._rpc.batch([("eth_createAccessList", [call, hex(pin.block)])])
        if isinstance(answer, RpcRefused):
            _hold_to_the_method(answer)
            _hold_to_the_token(answer)
            return []
        return _listed(answer.get("accessList") if isinstance(answer, dict) else None)

    async def _unset(self, places: Sequence[tuple[str, str]], pin: Header) -> list[tuple[str, str]]:
        """Slots that are zero for a fresh owner; others belong to everybody."""
        if not places:
            return []
        values = await self._rpc.batch([("eth_getStorageAt", [contract, slot, hex(pin.block)]) for contract, slot in places])
        if any(isinstance(value, RpcRefused) for value in values):
            raise ChainFault("node_error", "a storage slot was not told")
        return [place for place, value in zip(places, values, strict=True) if calldata.hex_int(value) == 0]

    async def _solve(self, token: str, seeker: str, place: tuple[str, str], pin: Header) -> _Found | None:
        """Ask the balance for powers of two in the slot: f(2^k) tells shift or ratio."""
        contract, slot = place

        def writing(value: int) -> tuple[str, str, list[SlotWrite]]:
            return token, seeker, [SlotWrite(contract, slot, value)]

        answers = await self._balances([writing(0), *(writing(1 << power) for power in SHIFTS)], pin)
        zero, powers = answers[0], answers[1:]
        if zero != 0:
            return None
        layout = _layout_of(slot, seeker)
        if (shift := _shift_of(powers)) is not None:
            return _Found(contract, slot, layout, "shifted" if shift else "exact", shift)
        if await self._is_linear(writing, powers, pin):
            return _Found(contract, slot, layout, "shares", 0)
        return None

    async def _is_linear(self, writing: Callable[[int], Any], powers: Sequence[int | None], pin: Header) -> bool:
        """Whether the balance grows in proportion to the slot, as far as whole units can tell."""
        power = next((power for power in SHIFTS if (powers[power] or 0) >> RATIO_BITS), None)
        if power is None:
            return False
        unit = powers[power]
        assert unit is not None
        multiples = (2, 3, 5, 1_000)
        values = await self._balances([writing(times << power) for times in multiples], pin)
        return all(value is not None and abs(value - times * unit) <= times for times, value in zip(multiples, values, strict=True))

    # --- asking -----------------------------------------------------------------------------------------------------

    async def _balances(self, asked: Sequence[tuple[str, str, list[SlotWrite]]], pin: Header) -> list[int | None]:
        requests = [_balance_request(*each, pin, self._reader) for each in asked]
        answers: list[Any] = []
        for start in range(0, len(requests), 100):
            answers += await self._rpc.batch(requests[start : start + 100])
        return [_balance(answer) for answer in answers]


def _balance(answer: Any) -> int | None:
    """A balance, or None when the token refuses to tell. Raises: ChainFault when it is the node that refuses."""
    if not isinstance(answer, RpcRefused):
        return calldata.uint_at(calldata.hex_bytes(answer), 0)
    _hold_to_the_token(answer)
    return None


def _hold_to_the_token(refused: RpcRefused) -> None:
    """Pass when it is the token's code that refused. Raises: ChainFault when the node did."""
    if of_the_contract(refused.code, refused.message):
        return
    text = refused.message.lower()
    ran = any(word in text for word in ("gas", "execution", "opcode", "evm error"))
    if not ran or "timeout" in text or "timed out" in text or "aborted" in text:
        raise ChainFault("node_error", f"a balance read was refused with code {refused.code}")


def _hold_to_the_method(refused: RpcRefused) -> None:
    """Pass when the node knows access lists. Raises: _NoAccessList."""
    text = refused.message.lower()
    if refused.code == METHOD_MISSING or not of_the_contract(refused.code, text) and ("method" in text or "supported" in text):
        raise _NoAccessList


def throw_away(token: str, number: int, reader: str = READER) -> str:
    """An address for searching, of no further use."""
    return derived(f"seeker {number} of {token} for {reader}")


def _balance_request(token: str, owner: str, writes: Sequence[SlotWrite], pin: Header, reader: str) -> tuple[str, list[Any]]:
    lens, code = lens_of(token, reader)
    call = {"to": lens, "data": calldata.balance_of(owner), "gas": GAS}
    return "eth_call", [call, hex(pin.block), slot_override(writes) | {lens: {"code": code}}]


def _layouts() -> list[Layout]:
    solidity = [lambda owner, at=position: calldata.mapping_slot(owner, at) for position in POSITIONS]
    vyper = [lambda owner, at=position: calldata.mapping_slot_vyper(owner, at) for position in POSITIONS]
    return [*solidity, *vyper, _solady, lambda owner: calldata.mapping_slot(owner, ERC20_NAMESPACE)]


def _solady(owner: str) -> str:
    return "0x" + keccak(bytes.fromhex(owner[2:] + f"{SOLADY_SEED:024x}")).hex()


def _layout_of(slot: str, seeker: str) -> Layout | None:
    """Recognise a listed slot as a mapping at a small position, so that later owners need no list."""
    for position in range(512):
        if calldata.mapping_slot(seeker, position) == slot:
            return lambda owner: calldata.mapping_slot(owner, position)
        if calldata.mapping_slot_vyper(seeker, position) == slot:
            return lambda owner: calldata.mapping_slot_vyper(owner, position)
    return None


def _listed(entries: Any) -> list[tuple[str, str]]:
    if not isinstance(entries, list):
        raise ChainFault("bad_answer", "expected an access list")
    places = []
    for entry in entries:
        keys = entry.get("storageKeys") if isinstance(entry, dict) else None
        if not isinstance(keys, list) or not isinstance(entry.get("address"), str) or not is_address(entry["address"]):
            raise ChainFault("bad_answer", "expected an access list")
        slots = [key.lower() for key in keys if isinstance(key, str)]
        if len(slots) != len(keys) or not all(STORAGE_SLOT.fullmatch(slot) for slot in slots):
            raise ChainFault("bad_answer", "expected an access list of storage slots")
        places += [(entry["address"].lower(), slot) for slot in slots if slot not in EIP1967_SLOTS]
    return places if len(places) <= CANDIDATES_MAX else []


def _shift_of(powers: Sequence[int | None]) -> int | None:
    """The shift s for which f(2^k) = 2^(k−s) from k = s on for at least 60 bits, else None."""
    shift = next((power for power in SHIFTS if powers[power]), None)
    if shift is None or powers[shift] != 1:
        return None
    width = 0
    while shift + width < len(powers) and powers[shift + width] == 1 << width:
        width += 1
    return shift if width >= 60 else None
