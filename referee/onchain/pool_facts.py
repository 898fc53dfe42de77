"""Pool facts: what is recorded of a pool that a fill went through, so that findings can tell one pool's doing (ONC-25). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from chain.owners import largest
from chain.pools import Pool
from referee.onchain.events import PoolCrossed

UNKNOWN = -1


def pool_crossed(pool: Pool, age_s: int | None, owners: Mapping[str, int] | None, traders: Mapping[str, int] | None) -> PoolCrossed:
    """Write down what is known; none of it is unknown, which is not zero.

    Units: `owners` by liquidity, `traders` by volume since the run bought (none on a buy)."""
    owner, owner_ppm = ("", UNKNOWN) if owners is None else largest(owners)
    sender, sender_ppm = ("", UNKNOWN) if traders is None else largest(traders)
    return PoolCrossed(
        pool=pool.key, venue=pool.venue, age_s=UNKNOWN if age_s is None else max(age_s, 0), top_owner=owner, top_owner_ppm=owner_ppm,
        top_sender=sender, top_sender_ppm=sender_ppm,
    )  # fmt: skip
