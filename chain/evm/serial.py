"""Serial form: nested lists of bytes as the chain writes them.

Source: the Yellow Paper, appendix B (RLP).
"""

from __future__ import annotations

from collections.abc import Sequence

import rlp
from rlp.exceptions import RLPException

NotSerial = RLPException
"""What trie nodes that are not written so raise."""
Nested = bytes | list["Nested"]


def encode(what: Sequence[object] | bytes) -> bytes:
    """Write nested lists of bytes and numbers."""
    return rlp.encode(what)


def decode(written: bytes) -> Nested:
    """Read nested lists of bytes. Raises: ValueError when they are not written canonically."""
    try:
        return rlp.decode(written)
    except (RLPException, RecursionError) as error:
        raise ValueError(f"not written as the chain writes: {type(error).__name__}") from None
