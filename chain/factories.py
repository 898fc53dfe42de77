"""Pools asked of their factories by tokens, for chains too long to read from their first block.

v2 and v3 factories answer for any pair; v4 has no such question, so pools are tried under the usual keys (fee and tick
spacing, no hook) and kept where they were initialised. Pools under unusual keys, and launchpads' curves, are only known
from recent logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from chain.calldata import address_word, uint_at, word
from chain.network import Fork, Network
from chain.pools import NATIVE, V2_FEE_PPM, V4_SLOT0, Pool, multicall_answer, multicall_request, of_fork, v4_id
from chain.rpc import RpcDoor
from ledgers.errors import ChainFault

GET_PAIR = "0xe6a43905"
GET_POOL = "0x1698ee82"
USUAL_TIERS = ((100, 1), (500, 10), (3_000, 60), (10_000, 200))
"""Fee in ppm and tick spacing."""
USUAL_V4_TIERS = (*USUAL_TIERS, (2_500, 25))
USUAL_FORK_TIERS = (*USUAL_TIERS, (2_500, 50))
QUESTIONS_AT_ONCE = 250
CALLS_AT_ONCE = 8
"""So that one request stays far below two megabytes, which some nodes take at most."""


@dataclass(frozen=True, slots=True)
class _Question:
    pool: Pool
    """What the pool would be; its key is still unknown for v2 and v3."""
    target: str
    data: str


async def ask_factories(rpc: RpcDoor, network: Network, tokens: Iterable[str], block: int) -> list[Pool]:
    """Ask which pools join tokens with the hubs, and the hubs with each other.

    Shapes: pools born at the network's first block as far as known. Raises: ChainFault."""
    hubs = (network.weth, NATIVE, network.usdg)
    pairs = {tuple(sorted((token, hub))) for token in tokens for hub in hubs if token != hub} | {tuple(sorted(pair)) for pair in combinations(hubs, 2)}
    return await ask_pairs(rpc, network, pairs, block)


async def ask_pairs(rpc: RpcDoor, network: Network, pairs: Iterable[tuple[str, ...]], block: int) -> list[Pool]:
    """Ask which pools join some pairs of tokens, each in order.

    Shapes: pools born at the network's first block as far as known. Raises: ChainFault."""
    questions = [question for pair in sorted(pairs) for question in _questions(network, *pair)]
    chunks = [questions[at : at + QUESTIONS_AT_ONCE] for at in range(0, len(questions), QUESTIONS_AT_ONCE)]
    found: list[Pool] = []
    for at in range(0, len(chunks), CALLS_AT_ONCE):
        several = chunks[at : at + CALLS_AT_ONCE]
        asked = [multicall_request(network, [(question.target, question.data) for question in chunk], block) for chunk in several]
        for chunk, answer in zip(several, await rpc.batch(asked), strict=True):
            found += _found(chunk, multicall_answer(answer, len(chunk)))
    return found


def _questions(network: Network, token0: str, token1: str) -> list[_Question]:
    asked: list[_Question] = []
    words = address_word(token0) + address_word(token1)
    if NATIVE not in (token0, token1):
        asked.append(_Question(_pool(network, "v2", token0, token1, V2_FEE_PPM, 0), network.v2_factory, GET_PAIR + words))
        for fee, spacing in USUAL_TIERS:
            asked.append(_Question(_pool(network, "v3", token0, token1, fee, spacing), network.v3_factory, GET_POOL + words + word(fee)))
        asked += [question for fork in network.forks for question in _fork_questions(network, fork, token0, token1)]
    if network.v4_state_view is not None:
        for fee, spacing in USUAL_V4_TIERS:
            pool = _pool(network, "v4", token0, token1, fee, spacing)
            pool = replace(pool, key=v4_id(pool))
            asked.append(_Question(pool, network.v4_state_view, V4_SLOT0 + pool.key[2:]))
    return asked


def _fork_questions(network: Network, fork: Fork, token0: str, token1: str) -> list[_Question]:
    words = address_word(token0) + address_word(token1)
    if fork.shape == "v2":
        return [_Question(of_fork(_pool(network, "v2", token0, token1, V2_FEE_PPM, 0), fork), fork.factory, GET_PAIR + words)]
    return [
        _Question(of_fork(_pool(network, "v3", token0, token1, fee, spacing), fork), fork.factory, GET_POOL + words + word(fee))
        for fee, spacing in USUAL_FORK_TIERS
    ]


def _pool(network: Network, venue: str, token0: str, token1: str, fee_ppm: int, spacing: int) -> Pool:
    return Pool(
        venue=venue, key="", token0=token0, token1=token1, fee_ppm=fee_ppm, tick_spacing=spacing, hooks=NATIVE,
        born_block=network.first_block,
    )  # fmt: skip


def _found(questions: Sequence[_Question], answers: Sequence[bytes | None]) -> list[Pool]:
    found = []
    for question, answer in zip(questions, answers, strict=True):
        value = uint_at(answer or b"", 0)
        if not value:
            continue
        if question.pool.venue == "v4":
            found.append(question.pool)
        elif value < 2**160:
            found.append(replace(question.pool, key=f"0x{value:040x}"))
        else:
            raise ChainFault("bad_answer", f"a factory named {value:#x} as a pool")
    return found
