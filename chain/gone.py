"""What nodes say of a block whose state they do not have any more, or not yet.

Source: wording of geth, Nitro, erigon, reth, nethermind and anvil.
"""

from __future__ import annotations

SAID = (
    "not available", "outofrange", "out of range", "missing trie node", "header not found", "block not found", "metadata is not found", "unknown block",
    "pruned", "historical state", "no state", "state is not", "required historical", "distance to target block exceeds",
)  # fmt: skip


def gone(message: str) -> bool:
    """Whether a node's message says that it does not have a block's state."""
    text = message.lower()
    return any(words in text for words in SAID) or "not found" in text and "method" not in text
