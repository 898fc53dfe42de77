"""What nodes say of a block whose state or logs they do not have any more, or not yet.

Source: wording of geth, Nitro, erigon, reth, nethermind and anvil.
"""

from __future__ import annotations

_EITHER = ("metadata is not found", "pruned", "missing trie node", "historical state")
_OF_LOGS = (*_EITHER, "history has been", "no longer available")
_OF_STATE = (
    *_EITHER, "not available", "outofrange", "out of range", "header not found", "block not found", "unknown block", "no state", "state is not",
    "required historical", "distance to target block exceeds",
)  # fmt: skip


def gone(message: str) -> bool:
    """Whether a node's message says that it does not have a block's state."""
    text = message.lower()
    return any(words in text for words in _OF_STATE) or "not found" in text and "method" not in text


def logs_gone(message: str) -> bool:
    """Whether a node's message says that it no longer has the logs of a block."""
    text = message.lower()
    return any(words in text for words in _OF_LOGS)
