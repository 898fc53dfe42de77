"""Addresses that no token can know: derived from a secret of the window, committed to at its opening and revealed at its seal.

Balances are read and slots are looked for from addresses of nobody. A token that could compute them would know that
it is being watched, and behave.
Source: ONC-29.
"""

from __future__ import annotations

from dataclasses import replace

from chain.address import derived
from chain.network import Network


def address_of(secret: str, role: str) -> str:
    """The address of one role under a secret."""
    return derived(f"{role} of {secret}")


def watched_from(network: Network, secret: str) -> Network:
    """A network whose reader, and so its lenses and seekers, nobody can compute; as it is without a secret."""
    return replace(network, reader=address_of(secret, "reader")) if secret else network
