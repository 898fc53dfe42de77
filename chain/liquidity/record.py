"""Records: logs and paths as bytes, for evidence and for going on after a restart.

Shapes: JSON; numbers beyond 64 bits as decimal text. Logs keep the names that nodes give their fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from chain.calldata import hex_bytes
from chain.liquidity.accrual import SEALED, PaperPosition, PoolPath
from chain.liquidity.tick_map import TickMap
from chain.logs import Log
from ledgers.errors import Corrupt


def log_bytes(logs: Iterable[Log]) -> bytes:
    """Write logs down."""
    return orjson.dumps([
        {
            "address": log.address, "topics": log.topics, "data": "0x" + log.data.hex(), "blockNumber": log.block,
            "blockHash": log.block_hash, "logIndex": log.index,
        }
        for log in logs
    ])  # fmt: skip


def logs_of(record: bytes) -> list[Log]:
    """Read logs back. Raises: Corrupt."""
    try:
        rows = orjson.loads(record)
        if not isinstance(rows, list):
            raise TypeError
        return [
            Log(row["address"], tuple(row["topics"]), hex_bytes(row["data"]), row["blockNumber"], row["blockHash"], row["logIndex"], None)
            for row in rows
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"a record of logs does not read: {type(error).__name__}") from None


def path_bytes(path: PoolPath) -> bytes:
    """Write a path down that is at the end of a block."""
    assert path.index == SEALED, "a path is recorded at the end of a block"
    return orjson.dumps({
        "shape": path.shape, "fee_ppm": path.fee_ppm, "sqrt_price_x96": str(path.sqrt_price_x96), "tick": path.tick,
        "liquidity": str(path.liquidity), "growth0_x128": str(path.growth0_x128), "growth1_x128": str(path.growth1_x128),
        "cut0": path.cut0, "cut1": path.cut1, "block": path.block, "block_hash": path.block_hash, "swaps": path.swaps,
        "crossings": path.crossings, "spacing": path.ticks.spacing,
        "ticks": [[tick, str(gross), str(net)] for tick, (gross, net) in sorted(path.ticks.ticks.items())],
        "positions": [_position(position) for position in path.positions],
    })  # fmt: skip


def path_of(record: bytes) -> PoolPath:
    """Read a path back. Raises: Corrupt."""
    try:
        row = orjson.loads(record)
        wide = {name: int(row[name]) for name in ("sqrt_price_x96", "liquidity", "growth0_x128", "growth1_x128")}
        plain = {name: row[name] for name in ("shape", "fee_ppm", "tick", "cut0", "cut1", "block", "block_hash", "swaps", "crossings")}
        ticks = TickMap(row["spacing"], [(tick, int(gross), int(net)) for tick, gross, net in row["ticks"]])
        return PoolPath(**wide, **plain, ticks=ticks, positions=[_position_of(each) for each in row["positions"]])
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"a record of a pool's path does not read: {type(error).__name__}") from None


def _position(position: PaperPosition) -> dict[str, Any]:
    return {
        "lower": position.lower, "upper": position.upper, "liquidity": str(position.liquidity), "twin": position.twin,
        "growth0_x128": str(position.growth0_x128), "growth1_x128": str(position.growth1_x128),
    }  # fmt: skip


def _position_of(row: dict[str, Any]) -> PaperPosition:
    wide = {name: int(row[name]) for name in ("liquidity", "growth0_x128", "growth1_x128")}
    return PaperPosition(lower=row["lower"], upper=row["upper"], twin=row["twin"], **wide)
