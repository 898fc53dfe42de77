"""The owners: who owns the liquidity of a pool, and who traded in it, as far as its logs tell.

Facts for whoever weighs a result; no order waits for them and nothing is filled on them, so every reading is bounded and
whatever is beyond its bound, or unclear, is unknown. Positions held through a position manager are told by their token's
owner. Only liquidity in range counts in v3 and v4.
Source: events of Uniswap v2 pairs, v3 pools and the v4 PoolManager, and of their position managers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chain import calldata
from chain.calldata import hex_bytes, uint_at
from chain.header import header_of, header_request
from chain.logs import Log, LogFilter, address_of, read_logs, signed, topic, topic_address
from chain.network import Network
from chain.pools import SLOT0, V4_SLOT0, Pool
from chain.rpc import RpcDoor, RpcRefused
from chain.simulate import TRANSFER_TOPIC
from chain.swaps import V2_SWAP, V3_BURN, V3_MINT, V4_LIQUIDITY_MODIFIED, V4_SWAP, swap_topic

BLOCKS_MAX = 200_000
"""Longest life of a pool whose logs are read whole."""
BLOCKS_READ_MAX = 64
"""Single blocks that one reading looks into."""
TOKENS_MAX = 64
"""Position tokens whose owners are asked for."""
INCREASED = topic("IncreaseLiquidity(uint256,uint128,uint256,uint256)")
OWNER_OF, POSITIONS = "0x6352211e", "0x99fbab88"
NOBODY = "0x" + "00" * 20


@dataclass(frozen=True, slots=True)
class Range:
    """Liquidity of one owner between two ticks."""

    owner: str
    token_id: int | None
    """The position's token where its owner is a position manager."""
    lower: int
    upper: int
    liquidity: int


async def born_ts_s(rpc: RpcDoor, pool: Pool) -> int:
    """Time of the block that a pool was made in, Unix seconds. Raises: ChainFault."""
    (answer,) = await rpc.batch([header_request(pool.born_block)])
    return header_of(answer, pool.born_block).ts_s


async def owners_of(rpc: RpcDoor, network: Network, pool: Pool, block: int) -> dict[str, int] | None:
    """Liquidity by its owner at a block; None when it cannot be told within bounds. Raises: ChainFault."""
    if not 0 <= block - pool.born_block <= BLOCKS_MAX:
        return None
    if pool.venue == "v2":
        return _held(await read_logs(rpc, LogFilter(frozenset({TRANSFER_TOPIC}), frozenset({pool.key})), pool.born_block, block))
    tick = await _tick(rpc, network, pool, block)
    ranges = await (_v3_ranges if pool.venue == "v3" else _v4_ranges)(rpc, network, pool, block)
    if tick is None or ranges is None:
        return None
    live = [each for each in ranges if each.lower <= tick < each.upper and each.liquidity > 0]
    owners = await _token_owners(rpc, network, pool, [each.token_id for each in live if each.token_id is not None], block)
    if owners is None:
        return None
    shares: dict[str, int] = {}
    for each in live:
        owner = each.owner if each.token_id is None else owners.get(each.token_id, each.owner)
        shares[owner] = shares.get(owner, 0) + each.liquidity
    return shares


async def traders_of(rpc: RpcDoor, network: Network, pool: Pool, first: int, last: int) -> dict[str, int] | None:
    """Volume in a pool by who sent the transactions, blocks `first` to `last`; None when it cannot be told within bounds.

    Units: base units of the pool's token 0. Raises: ChainFault."""
    logs = await read_logs(rpc, _swaps_of(network, pool), first, last) if last - first <= BLOCKS_MAX else None
    if logs is None or len({log.block for log in logs}) > BLOCKS_READ_MAX or any(log.tx_index is None for log in logs):
        return None
    blocks = sorted({log.block for log in logs})
    answers = await rpc.batch([("eth_getBlockByNumber", [hex(block), True]) for block in blocks])
    senders = {block: _senders(answer) for block, answer in zip(blocks, answers, strict=True)}
    volume: dict[str, int] = {}
    for log in logs:
        sent = senders[log.block]
        assert log.tx_index is not None
        if log.tx_index >= len(sent):
            return None
        volume[sent[log.tx_index]] = volume.get(sent[log.tx_index], 0) + _moved0(pool, log)
    return volume


def largest(shares: Mapping[str, int]) -> tuple[str, int]:
    """Who has most of a whole, and how much of it in parts per million, rounded up; nobody and 0 of nothing."""
    whole = sum(shares.values())
    if whole <= 0:
        return "", 0
    name = max(sorted(shares), key=lambda each: shares[each])
    return name, -(-shares[name] * 1_000_000 // whole)


# --- liquidity ------------------------------------------------------------------------------------------------------


def _held(logs: Sequence[Log]) -> dict[str, int]:
    """Pair tokens by holder."""
    held: dict[str, int] = {}
    for log in logs:
        amount, sender, owner = uint_at(log.data, 0) or 0, topic_address(log, 1), topic_address(log, 2)
        held[owner] = held.get(owner, 0) + amount
        if sender != NOBODY:
            held[sender] = held.get(sender, 0) - amount
    return {owner: amount for owner, amount in held.items() if amount > 0}


async def _v3_ranges(rpc: RpcDoor, network: Network, pool: Pool, block: int) -> list[Range] | None:
    logs = await read_logs(rpc, LogFilter(frozenset({V3_MINT, V3_BURN}), frozenset({pool.key})), pool.born_block, block)
    kept: dict[tuple[str, int, int], int] = {}
    for log in logs:
        added = log.topics[0] == V3_MINT
        key = (topic_address(log, 1), *(_tick_of(int(word, 16)) for word in log.topics[2:4]))
        kept[key] = kept.get(key, 0) + (uint_at(log.data, int(added)) or 0) * (1 if added else -1)
    managed = [log for log in logs if log.topics[0] == V3_MINT and topic_address(log, 1) == network.v3_positions]
    tokens = await _v3_tokens(rpc, network, pool, managed, block)
    own = [Range(owner, None, lower, upper, amount) for (owner, lower, upper), amount in kept.items() if owner != network.v3_positions]
    return None if tokens is None else [*own, *tokens]


async def _v3_tokens(rpc: RpcDoor, network: Network, pool: Pool, minted: Sequence[Log], block: int) -> list[Range] | None:
    """What the position manager's tokens hold of a pool."""
    blocks = sorted({log.block for log in minted})
    if not blocks:
        return []
    if len(blocks) > BLOCKS_READ_MAX:
        return None
    manager = str(network.v3_positions)
    wanted = LogFilter(frozenset({INCREASED}), frozenset({manager}))
    answers = await rpc.batch([wanted.request(each, each) for each in blocks])
    ids = {int(log.topics[1], 16) for each, answer in zip(blocks, answers, strict=True) for log in wanted.read(answer, each, each)}
    if len(ids) > TOKENS_MAX:
        return None
    told = await _calls(rpc, [(manager, POSITIONS + calldata.word(token_id)) for token_id in sorted(ids)], block)
    return [each for token_id, data in zip(sorted(ids), told, strict=True) if (each := _v3_token(pool, manager, token_id, data))]


def _v3_token(pool: Pool, manager: str, token_id: int, data: bytes | None) -> Range | None:
    words = [uint_at(data or b"", at) for at in range(2, 8)]
    if None in words or words[:3] != [int(pool.token0, 16), int(pool.token1, 16), pool.fee_ppm]:
        return None
    lower, upper, liquidity = (word or 0 for word in words[3:])
    return Range(manager, token_id, _tick_of(lower), _tick_of(upper), liquidity)


async def _v4_ranges(rpc: RpcDoor, network: Network, pool: Pool, block: int) -> list[Range] | None:
    wanted = LogFilter(frozenset({V4_LIQUIDITY_MODIFIED}), frozenset({str(network.v4_pool_manager)}), pool.key)
    kept: dict[tuple[str, int, int, int], int] = {}
    for log in await read_logs(rpc, wanted, pool.born_block, block):
        lower, upper, delta, salt = (uint_at(log.data, at) or 0 for at in range(4))
        key = (topic_address(log, 2), _tick_of(lower), _tick_of(upper), salt)
        kept[key] = kept.get(key, 0) + signed(delta)
    return [
        Range(owner, salt if owner == network.v4_positions else None, lower, upper, liquidity)
        for (owner, lower, upper, salt), liquidity in kept.items()
    ]


async def _token_owners(rpc: RpcDoor, network: Network, pool: Pool, ids: Iterable[int], block: int) -> dict[int, str] | None:
    wanted = sorted(set(ids))
    if len(wanted) > TOKENS_MAX:
        return None
    manager = str(network.v3_positions if pool.venue == "v3" else network.v4_positions)
    told = await _calls(rpc, [(manager, OWNER_OF + calldata.word(token_id)) for token_id in wanted], block)
    owners = {token_id: uint_at(data or b"", 0) for token_id, data in zip(wanted, told, strict=True)}
    return {token_id: f"0x{owner:040x}" for token_id, owner in owners.items() if owner is not None and owner < 2**160}


async def _tick(rpc: RpcDoor, network: Network, pool: Pool, block: int) -> int | None:
    call = (pool.key, SLOT0) if pool.venue == "v3" else (str(network.v4_state_view), V4_SLOT0 + pool.key[2:])
    (data,) = await _calls(rpc, [call], block)
    word = uint_at(data or b"", 1)
    return None if word is None else _tick_of(word)


def _tick_of(word: int) -> int:
    return signed(word)


async def _calls(rpc: RpcDoor, calls: Sequence[tuple[str, str]], block: int) -> list[bytes | None]:
    answers = await rpc.batch([("eth_call", [{"to": to, "data": data}, hex(block)]) for to, data in calls])
    return [None if isinstance(answer, RpcRefused) else hex_bytes(answer) for answer in answers]


# --- volume ---------------------------------------------------------------------------------------------------------


def _swaps_of(network: Network, pool: Pool) -> LogFilter:
    if pool.venue == "v4":
        return LogFilter(frozenset({V4_SWAP}), frozenset({str(network.v4_pool_manager)}), pool.key)
    return LogFilter(frozenset({V2_SWAP if pool.venue == "v2" else swap_topic(pool)}), frozenset({pool.key}))


def _moved0(pool: Pool, log: Log) -> int:
    first, third = uint_at(log.data, 0) or 0, uint_at(log.data, 2) or 0
    return first + third if pool.venue == "v2" else abs(signed(first))


def _senders(block: Any) -> list[str]:
    """Who sent each transaction of a block, in their order. Raises: ChainFault."""
    sent = block.get("transactions") if isinstance(block, dict) else None
    return [address_of(tx.get("from")) for tx in sent if isinstance(tx, dict)] if isinstance(sent, list) else []
