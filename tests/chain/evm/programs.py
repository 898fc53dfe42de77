"""Random programs: contracts made of pieces that mostly work, calls of them, and some bytes that are only noise.

What pieces find is mixed into memory, and memory is returned, logged or stored at the end, so that a difference anywhere
shows. Deterministic by seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

BOUNDARIES = (0, 1, 2, 31, 32, 33, 255, 256, 2**64 - 1, 2**128, 2**160 - 1, 2**255 - 1, 2**255, 2**256 - 2, 2**256 - 1)
BINARY = (0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x0A, 0x0B, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x18, 0x1A, 0x1B, 0x1C, 0x1D)
UNARY = (0x15, 0x19, 0x1E)
TOLD = (0x30, 0x32, 0x33, 0x34, 0x36, 0x38, 0x3A, 0x3D, 0x41, 0x42, 0x43, 0x45, 0x46, 0x47, 0x48, 0x4A, 0x58, 0x59, 0x5A)
CALLS = (0xF1, 0xF2, 0xF4, 0xFA)
PRECOMPILES = (1, 2, 3, 4, 5)


def push(value: int, size: int = 0) -> bytes:
    """A push of the least size, or of the size given."""
    if not value and not size:
        return b"\x5f"
    size = size or (value.bit_length() + 7) // 8
    return bytes([0x5F + size]) + value.to_bytes(size)


@dataclass(slots=True)
class Programs:
    """Makes programs and calls of them."""

    seed: int
    addresses: tuple[int, ...]
    """Where programs stand; some call one another."""
    others: tuple[int, ...] = ()
    """Further addresses worth asking about."""
    heights: tuple[int, ...] = (0,)
    """Blocks whose hash may be asked for."""
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def program(self, pieces_max: int = 40) -> bytes:
        """One contract's code."""
        if self._random.random() < 0.03:
            return bytes(self._random.randrange(256) for _ in range(self._random.randrange(1, 60)))
        body = b"".join(self._piece(depth=0) for _ in range(self._random.randrange(1, pieces_max)))
        return body + self._ending()

    def calldata(self) -> bytes:
        size = self._random.choice((0, 0, 4, 36, 100, 700))
        return bytes(self._random.choice((0, self._random.randrange(256))) for _ in range(size))

    def gas(self) -> int:
        return self._random.choice((60_000, 100_000, 300_000, 1_000_000, 3_000_000))

    def value(self) -> int:
        return self._random.choice((0, 0, 0, 1, 10**9, 10**16))

    def choice(self, of: tuple[int, ...]) -> int:
        return self._random.choice(of)

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _word(self) -> bytes:
        """Code that leaves one word."""
        chance = self._random.random()
        if chance < 0.35:
            return push(self._random.choice(BOUNDARIES))
        if chance < 0.5:
            return push(self._random.getrandbits(self._random.choice((8, 64, 160, 256))))
        if chance < 0.6:
            return push(self._random.choice((*self.addresses, *self.others, *PRECOMPILES)))
        if chance < 0.75:
            return bytes([self._random.choice(TOLD)])
        if chance < 0.85:
            return push(self._random.choice((0, 4, 32))) + b"\x35"
        return push(self._random.randrange(0, 256, 32)) + b"\x51"

    def _small(self, most: int = 300) -> bytes:
        return push(self._random.randrange(most))

    def _slot(self) -> bytes:
        return push(self._random.choice((0, 1, 2, 3, 2**255 + 7)))

    def _address(self) -> bytes:
        return push(self._random.choice((*self.addresses, *self.addresses, *self.others, *PRECOMPILES)), 20)

    def _keep(self) -> bytes:
        """Mix the word on the stack into memory."""
        at = push(self._random.randrange(0, 256, 32))
        return at + b"\x51\x01" + at + b"\x52" if self._random.random() < 0.7 else at + b"\x52"

    def _piece(self, depth: int) -> bytes:
        kinds = [
            (8, self._reckon), (3, self._reckon_three), (3, self._hash), (5, self._load), (7, self._store), (3, self._transient), (3, self._copy),
            (5, self._call), (2, self._create), (2, self._log), (3, self._ask), (2, self._branch), (2, self._shuffle), (1, self._loop), (1, self._refunds),
        ]  # fmt: skip
        weights, makers = zip(*kinds, strict=True)
        chance = self._random.random()
        if chance < 0.002:
            return b"\xff" if chance < 0.001 else self._address() + b"\xff"
        if chance < 0.004:
            return bytes([self._random.randrange(256)])
        if depth > 2:
            return self._reckon()
        maker = self._random.choices(makers, weights)[0]
        return maker(depth) if maker in (self._branch, self._loop) else maker()

    def _reckon(self) -> bytes:
        if self._random.random() < 0.2:
            return self._word() + bytes([self._random.choice(UNARY)]) + self._keep()
        return self._word() + self._word() + bytes([self._random.choice(BINARY)]) + self._keep()

    def _reckon_three(self) -> bytes:
        return self._word() + self._word() + self._word() + self._random.choice((b"\x08", b"\x09")) + self._keep()

    def _hash(self) -> bytes:
        return self._small(200) + self._small() + b"\x20" + self._keep()

    def _load(self) -> bytes:
        return self._slot() + b"\x54" + self._keep()

    def _store(self) -> bytes:
        value = self._random.choice((b"\x5f", push(1), push(2), self._word()))
        return value + self._slot() + b"\x55"

    def _refunds(self) -> bytes:
        slot = self._slot()
        return b"".join(push(self._random.choice((0, 0, 1, 7))) + slot + b"\x55" for _ in range(4))

    def _transient(self) -> bytes:
        return self._word() + self._slot() + b"\x5d" + self._slot() + b"\x5c" + self._keep()

    def _copy(self) -> bytes:
        size, since, to = self._small(100), self._small(100), self._small(200)
        if self._random.random() < 0.2:
            return self._small(100) + self._small(100) + self._small() + self._address() + b"\x3c"
        if self._random.random() < 0.2:
            return b"\x3d\x5f" + to + b"\x3e"
        return size + since + to + bytes([self._random.choice((0x37, 0x39, 0x5E))])

    def _ask(self) -> bytes:
        chance = self._random.random()
        if chance < 0.3:
            return push(self._random.choice(self.heights)) + b"\x40" + self._keep()
        if chance < 0.4:
            return self._word() + b"\x49" + self._keep()
        return self._address() + bytes([self._random.choice((0x31, 0x3B, 0x3F))]) + self._keep()

    def _call(self) -> bytes:
        instruction = self._random.choice(CALLS)
        value = self._random.choice((b"\x5f", b"\x5f", push(1), push(10**9))) if instruction in (0xF1, 0xF2) else b""
        gas = self._random.choice((b"\x5a", b"\x5a", push(0), push(700), push(2_300), push(30_000), push(200_000), push(2**255)))
        out, given = self._small(80) + self._small(), self._small(150) + self._small()
        return out + given + value + self._address() + gas + bytes([instruction]) + self._keep()

    def _create(self) -> bytes:
        made = self._random.choice((self._init, self._init, self._noise))()
        stored = b"".join(push(int.from_bytes(made[at : at + 32].ljust(32, b"\0"))) + push(512 + at) + b"\x52" for at in range(0, len(made), 32))
        salt, instruction = (push(self._random.randrange(3)), b"\xf5") if self._random.random() < 0.5 else (b"", b"\xf0")
        called = b""
        if self._random.random() < 0.5:
            called = b"\x80" + (b"\x5f" * 5 + b"\x85" + b"\x5a\xf1" + self._keep())
        return stored + salt + push(len(made)) + push(512) + self._random.choice((b"\x5f", push(1))) + instruction + called + self._keep()

    def _init(self) -> bytes:
        """Code that returns code."""
        code = self._random.choice((
            bytes.fromhex("5f545f5260205ff3"), bytes.fromhex("60015f5500"), bytes.fromhex("33ff"), bytes.fromhex("ef00"), bytes.fromhex("60425f55335f5260205fa0"),
        ))  # fmt: skip
        ctor = self._random.choice((b"", bytes.fromhex("6007600155"), bytes.fromhex("5f6000fd") if self._random.random() < 0.3 else b"", bytes.fromhex("33ff") if self._random.random() < 0.2 else b""))
        return ctor + push(int.from_bytes(code.ljust(32, b"\0")), 32) + b"\x5f\x52" + push(len(code)) + b"\x5f\xf3"

    def _noise(self) -> bytes:
        return bytes(self._random.randrange(256) for _ in range(self._random.randrange(40)))

    def _log(self) -> bytes:
        topics = self._random.randrange(5)
        return b"".join(self._word() for _ in range(topics)) + self._small(70) + self._small() + bytes([0xA0 + topics])

    def _shuffle(self) -> bytes:
        count = self._random.randrange(2, 17)
        words = b"".join(self._word() for _ in range(count))
        moved = bytes([0x90 + self._random.randrange(count - 1), 0x80 + self._random.randrange(count)])
        return words + moved + self._keep() * (count + 1)

    def _branch(self, depth: int) -> bytes:
        inside = b"".join(self._piece(depth + 1) for _ in range(self._random.randrange(1, 4)))
        return self._word() + b"\x58" + push(len(inside) + 6, 2) + b"\x01\x57" + inside + b"\x5b"

    def _loop(self, depth: int) -> bytes:
        inside = self._piece(depth + 1)
        back = len(inside) + 6
        return push(self._random.randrange(1, 5)) + b"\x5b" + inside + push(1) + b"\x90\x03\x80\x58" + push(back, 2) + b"\x90\x03\x57\x50"

    def _ending(self) -> bytes:
        chance = self._random.random()
        if chance < 0.72:
            return push(288) + b"\x5f\xf3"
        if chance < 0.86:
            return push(288) + b"\x5f\xfd"
        return self._random.choice((b"\x00", b"\xfe", b"\x5f\x57", self._address() + b"\xff", b"\x50" * 3))
