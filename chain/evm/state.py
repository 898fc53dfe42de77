"""State: what a run stands on, and what it has written so far.

`Known` is what is proven of the chain; what it lacks is noted and taken for nothing, so that one run names as much of it as
can be named at once, and is run again. `State` lies over it: every change can be taken back, and a transaction's own changes
are told at its end.
Addresses, slots and values are integers here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from eth_hash.auto import keccak

from chain.evm.rules import CODE_EMPTY, NotCoveredHere

Word = tuple[int, int]
"""Contract and slot."""


class Account(NamedTuple):
    """What the chain holds of an address; one that does not exist has nothing."""

    nonce: int
    """NONCE_UNTOLD of a contract whose state was only told."""
    balance: int
    storage_root: bytes
    code_hash: bytes


NONCE_UNTOLD = -1
NOBODY = Account(0, 0, b"", CODE_EMPTY)


@dataclass(slots=True)
class Missing:
    """What a run would have had to know."""

    accounts: set[int] = field(default_factory=set)
    words: set[Word] = field(default_factory=set)
    codes: dict[int, bytes] = field(default_factory=dict)
    """Hashes by an address that has them."""
    blocks: set[int] = field(default_factory=set)
    """Heights whose hash was asked for."""

    def __bool__(self) -> bool:
        return bool(self.accounts or self.words or self.codes or self.blocks)

    def __len__(self) -> int:
        return len(self.accounts) + len(self.words) + len(self.codes) + len(self.blocks)


@dataclass(slots=True)
class Known:
    """What is proven at one block."""

    accounts: dict[int, Account] = field(default_factory=dict)
    words: dict[Word, int] = field(default_factory=dict)
    codes: dict[bytes, bytes] = field(default_factory=dict)
    """By hash."""
    blocks: dict[int, int] = field(default_factory=dict)
    """Hashes of blocks by height."""


class State:
    """One run's view: reads go through to what is known, writes stay here."""

    def __init__(self, known: Known, patience: int) -> None:
        """Begin a run that goes on until more than `patience` words and accounts are missing: what follows from wrong ones is of no use."""
        self.known, self.missing, self._patience = known, Missing(), patience
        self.read_accounts: set[int] = set()
        self.read_words: set[Word] = set()
        self.read_blocks: set[int] = set()
        self.read_codes: set[bytes] = set()
        self.saw_chance = False
        """Whether a block's random word was read."""
        self.balances: dict[int, int] = {}
        self.nonces: dict[int, int] = {}
        self.codes: dict[int, bytes] = {}
        self.words: dict[Word, int] = {}
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []
        self.begin()

    def copy(self) -> State:
        """The same between two transactions, to try one on."""
        other = State(self.known, self._patience)
        other.balances, other.nonces, other.codes, other.words = dict(self.balances), dict(self.nonces), dict(self.codes), dict(self.words)
        return other

    # --- reading ----------------------------------------------------------------------------------------------------

    def balance(self, address: int) -> int:
        if address not in self.balances:
            self._load(address)
        return self.balances[address]

    def nonce(self, address: int) -> int:
        if address not in self.nonces:
            self._load(address)
        return self.nonces[address]

    def code(self, address: int) -> bytes:
        code = self.codes.get(address)
        if code is None:
            code = self.codes[address] = self._known_code(address)
        return code

    def code_hash(self, address: int) -> bytes:
        code = self.codes.get(address)
        if code is None:
            return self._account(address).code_hash
        return keccak(code) if code else CODE_EMPTY

    def dead(self, address: int) -> bool:
        """Say whether an account holds nothing at all. Source: EIP-161."""
        return not (self.balance(address) or self.nonce(address)) and self.code_hash(address) == CODE_EMPTY

    def word(self, word: Word) -> int:
        value = self.words.get(word)
        if value is None:
            value = self.words[word] = self._known_word(word)
        return value

    def block_hash(self, height: int) -> int:
        self.read_blocks.add(height)
        found = self.known.blocks.get(height)
        if found is None:
            self.missing.blocks.add(height)
        return found or 0

    def _load(self, address: int) -> None:
        nonce, balance, _, _ = self._account(address)
        self.nonces.setdefault(address, nonce)
        self.balances.setdefault(address, balance)

    def _account(self, address: int) -> Account:
        self.read_accounts.add(address)
        account = self.known.accounts.get(address)
        if account is None:
            self.missing.accounts.add(address)
            self._bear()
            return NOBODY
        return account

    def _known_code(self, address: int) -> bytes:
        code_hash = self._account(address).code_hash
        if code_hash == CODE_EMPTY:
            return b""
        self.read_codes.add(code_hash)
        code = self.known.codes.get(code_hash)
        if code is None:
            self.missing.codes[address] = code_hash
        return code or b""

    def _known_word(self, word: Word) -> int:
        if word[0] in self.created:
            return 0
        self.read_words.add(word)
        value = self.known.words.get(word)
        if value is None:
            self.missing.words.add(word)
            self._bear()
        return value or 0

    def _bear(self) -> None:
        if len(self.missing) > self._patience:
            raise NotCoveredHere("asks for more than is known")

    # --- overriding -------------------------------------------------------------------------------------------------

    def override(self, address: int, balance: int | None, nonce: int | None, code: bytes | None) -> None:
        """Set what an account holds between transactions, whatever it held."""
        for held, value in ((self.balances, balance), (self.nonces, nonce), (self.codes, code)):
            if value is not None:
                held[address] = value

    # --- writing ----------------------------------------------------------------------------------------------------

    def set_balance(self, address: int, value: int) -> None:
        self._put(self.balances, address, self.balance(address), value, self.first_balances)

    def set_nonce(self, address: int, value: int) -> None:
        self._put(self.nonces, address, self.nonce(address), value, self.first_nonces)

    def set_code(self, address: int, value: bytes) -> None:
        self._put(self.codes, address, self.code(address), value, self.first_codes)

    def set_word(self, word: Word, value: int) -> None:
        self._put(self.words, word, self.word(word), value, self.first_words)

    def set_transient(self, word: Word, value: int) -> None:
        self._put(self.transient, word, self.transient.get(word, 0), value, {})

    def _put(self, held: dict[Any, Any], key: Any, before: Any, value: Any, first: dict[Any, Any]) -> None:
        first.setdefault(key, before)
        self._undo.append((held, key, before))
        held[key] = value

    def original(self, word: Word) -> int:
        """A word's value when the transaction began."""
        value = self.first_words.get(word)
        return self.word(word) if value is None else value

    def warm_address(self, address: int) -> bool:
        """Touch an address; say whether it had been touched before in this transaction."""
        return self._warm(self.warm_addresses, address)

    def warm_word(self, word: Word) -> bool:
        self.touched.setdefault(word)
        return self._warm(self.warm_words, word)

    def _warm(self, held: dict[Any, bool], key: Any) -> bool:
        if held.get(key):
            return True
        self._undo.append((held, key, False))
        held[key] = True
        return False

    def create(self, address: int) -> None:
        """Note that an account begins in this transaction."""
        self._undo.append((self.created, address, False))
        self.created[address] = True

    def destroy(self, address: int) -> None:
        """Note that an account ends with this transaction."""
        self._undo.append((self.ended, address, False))
        self.ended[address] = True

    # --- frames and transactions ------------------------------------------------------------------------------------

    def mark(self) -> int:
        return len(self._undo)

    def revert(self, mark: int) -> None:
        """Take back everything since `mark`."""
        while len(self._undo) > mark:
            held, key, before = self._undo.pop()
            held[key] = before

    def begin(self) -> None:
        """Begin a transaction: nothing is warm, nothing of it has been written."""
        self._undo.clear()
        self.first_balances: dict[int, int] = {}
        self.first_nonces: dict[int, int] = {}
        self.first_codes: dict[int, bytes] = {}
        self.first_words: dict[Word, int] = {}
        self.transient: dict[Word, int] = {}
        self.warm_addresses: dict[int, bool] = {}
        self.warm_words: dict[Word, bool] = {}
        self.writers: dict[Word, set[bytes]] = {}
        """With which selectors the contract of a word was called when it wrote that, reverted or not."""
        self.touched: dict[Word, None] = {}
        """Words that were read or written, reverted or not."""
        self.created: dict[int, bool] = {}
        self.ended: dict[int, bool] = {}

    def end(self) -> None:
        """End a transaction: accounts that were created and destroyed in it are gone."""
        for address in [address for address, gone in self.ended.items() if gone]:
            self.set_balance(address, 0)
            self.set_nonce(address, 0)
            self.set_code(address, b"")
            for word in [word for word in self.words if word[0] == address]:
                self.set_word(word, 0)

    def changed_words(self) -> Iterator[tuple[Word, int, int]]:
        """Every word that the transaction left different: before and after."""
        for word, before in self.first_words.items():
            if self.words[word] != before:
                yield word, before, self.words[word]
