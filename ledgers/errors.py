"""The one exception tree.

    RefereeError
    ├── Fault            the outside world failed; recorded, never turned into a guess
    │   ├── ChainFault       a node: dead, slow, behind, lying, or of another identity
    │   ├── ProviderFault    whoever answers a question
    │   ├── FeedFault        a price or data source
    │   └── StoreFault       disk full, store gone, store held by another daemon
    └── Corrupt          evidence does not hold; the process stops
        ├── CorruptJournal
        ├── CorruptBundle
        └── CorruptPack

Refusals by a rule are values, not exceptions; bugs are asserts.
"""


class RefereeError(Exception):
    """Root of everything this project raises on purpose."""


class Fault(RefereeError):
    """The outside world failed."""


class ChainFault(Fault):
    """A node failed; `reason` is one of a short list of machine-readable words."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(f"{reason}: {message}" if message else reason)
        self.reason = reason
        self.message = message
        """What a person is told; empty where the word says it all."""


class ProviderFault(Fault):
    """Whoever answers a question failed."""


class FeedFault(Fault):
    """A price or data source failed."""


class StoreFault(Fault):
    """The journal cannot be written or is held by another daemon."""


class Corrupt(RefereeError):
    """Evidence does not hold."""


class CorruptJournal(Corrupt):
    """A journal's chain, order or balances do not hold; `seq` is the first bad record when known."""

    def __init__(self, message: str, seq: int | None = None) -> None:
        super().__init__(message)
        self.seq = seq


class CorruptBundle(Corrupt):
    """A sealed evidence bundle does not hold."""


class CorruptPack(Corrupt):
    """A pack of fixed history does not hold."""
