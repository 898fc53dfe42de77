"""Liquidity positions: the transactions that open and close one in Uniswap v3 and v4, for a wallet that holds ETH.

A side of a pool that is WETH or native ETH is paid in ETH and comes back as ETH; every other side is a token of the wallet's own.
v3 goes through NonfungiblePositionManager, which makes liquidity of amounts; v4 through PositionManager, which takes the liquidity
itself and the most it may cost. Nothing here has a minimum: what happens is simulated on a pinned block.
Source: Uniswap v3-periphery 1.x and v4-periphery; tests check every calldata against eth_abi.
"""

from __future__ import annotations

from dataclasses import dataclass

from chain import calldata
from chain.calldata import address_word, bytes_array, tail, word
from chain.gas import APPROVE_GAS_LIMIT, SWAP_GAS_LIMIT
from chain.liquidity.ticks import Q96, TICK_MAX, sqrt_price_at
from chain.network import Network
from chain.pools import NATIVE, Pool, v4_key_words
from chain.router import Approval, Tx

MINT = "88316456"
REFUND_ETH = "12210e8a"
DECREASE_LIQUIDITY = "0c49ccbe"
COLLECT = "fc6f7865"
UNWRAP_WETH = "49404b7c"
WITHDRAW = "2e1a7d4d"
SWEEP_TOKEN = "df2ab5bb"
MODIFY_LIQUIDITIES = "dd46508f"
TRANSFER = "a9059cbb"

BURN_POSITION, MINT_POSITION, SETTLE, SETTLE_PAIR, TAKE, TAKE_PAIR, SWEEP, WRAP, UNWRAP = 3, 2, 0x0B, 0x0D, 0x0E, 0x11, 0x14, 0x15, 0x16
"""Actions of the v4 PositionManager."""
OPEN_DELTA = 0
"""Its word for `all that is owed`."""
CONTRACT_BALANCE = 1 << 255
"""Its word for `all that it holds`."""
ITSELF = "0x0000000000000000000000000000000000000002"
AMOUNT_WHOLE = 2**128 - 1
DEADLINE_NEVER = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Placed:
    """A range of one pool."""

    pool: Pool
    lower: int
    upper: int

    @property
    def tokens(self) -> tuple[str, str]:
        return self.pool.token0, self.pool.token1


def is_eth(network: Network, token: str) -> bool:
    """Whether a side of a pool is paid in ETH."""
    return token in (network.weth, NATIVE)


def range_refusal(pool: Pool, lower: int, upper: int) -> str:
    """Say why a range cannot be a position of a pool; empty when it can."""
    if lower % pool.tick_spacing or upper % pool.tick_spacing:
        return f"ticks {lower} and {upper} are not both multiples of the pool's spacing {pool.tick_spacing}"
    if not -TICK_MAX <= lower < upper <= TICK_MAX:
        return f"no position reaches from tick {lower} to {upper}"
    return ""


def manager_of(network: Network, pool: Pool) -> str | None:
    """The contract that positions of a pool are opened through; None where the network names none."""
    return {"v3": network.v3_positions, "v4": network.v4_positions}.get(pool.venue)


def vault_of(network: Network, pool: Pool) -> str:
    """Where a pool's tokens lie."""
    return str(network.v4_pool_manager) if pool.venue == "v4" else pool.key


def approvals_of(network: Network, pool: Pool) -> tuple[Approval, ...]:
    """Allowances that opening needs, one or two for every side that is no ETH."""
    manager = str(manager_of(network, pool))
    found = []
    for token in (token for token in (pool.token0, pool.token1) if not is_eth(network, token)):
        spender = manager if pool.venue == "v3" else network.permit2
        found.append(Approval(f"{token}>{spender}", Tx(token, calldata.approve(spender), APPROVE_GAS_LIMIT)))
        if pool.venue == "v4":
            grant = Tx(network.permit2, calldata.permit2_approve(token, manager), APPROVE_GAS_LIMIT)
            found.append(Approval(f"{token}>{network.permit2}>{manager}", grant))
    return tuple(found)


def mint_tx(network: Network, placed: Placed, raw0: int, raw1: int, liquidity: int, wallet: str) -> Tx:
    """Open a position of at most these amounts; v4 is told the liquidity, v3 makes the most that the amounts allow."""
    pool, manager = placed.pool, str(manager_of(network, placed.pool))
    value_wei = sum(raw for token, raw in zip(placed.tokens, (raw0, raw1), strict=True) if is_eth(network, token))
    if pool.venue == "v3":
        words = (pool.fee_ppm, placed.lower, placed.upper, raw0, raw1, 0, 0)
        mint = f"0x{MINT}{address_word(pool.token0)}{address_word(pool.token1)}{''.join(map(_signed_word, words))}{address_word(wallet)}{word(DEADLINE_NEVER)}"
        data = calldata.multicall([mint, f"0x{REFUND_ETH}"]) if value_wei else mint
        return Tx(manager, data, SWAP_GAS_LIMIT, value_wei)
    head = (placed.lower, placed.upper, liquidity, raw0, raw1)
    mint = f"{v4_key_words(pool)}{''.join(map(_signed_word, head))}{address_word(wallet)}{word(12 * 32)}{word(0)}"
    return Tx(manager, _modify([(MINT_POSITION, mint), *_settled(network, pool, wallet)]), SWAP_GAS_LIMIT, value_wei)


def close_tx(network: Network, placed: Placed, token_id: int, liquidity: int, wallet: str) -> Tx:
    """Take a position's liquidity and fees out, all of it to the wallet and as ETH where a side is ETH."""
    pool, manager = placed.pool, str(manager_of(network, placed.pool))
    if pool.venue == "v3":
        return Tx(manager, _v3_withdrawal(network, placed, token_id, liquidity, wallet), SWAP_GAS_LIMIT)
    burn = f"{word(token_id)}{word(0)}{word(0)}{word(4 * 32)}{word(0)}"
    return Tx(manager, _modify([(BURN_POSITION, burn), *_taken(network, pool, wallet)]), SWAP_GAS_LIMIT)


def straight_close_txs(network: Network, placed: Placed, token_id: int, liquidity: int, wallet: str, raw: tuple[int, int]) -> tuple[Tx, ...]:
    """The same for a v3 pool in two: everything straight to the wallet, since some tokens pass through no other hands, then its WETH into ETH.

    `raw`: what comes of both sides. Empty where `close_tx` is that already."""
    in_eth = [is_eth(network, token) for token in placed.tokens]
    if placed.pool.venue != "v3" or not any(in_eth):
        return ()
    decrease = f"0x{DECREASE_LIQUIDITY}{''.join(map(word, (token_id, liquidity, 0, 0, DEADLINE_NEVER)))}"
    collect = f"0x{COLLECT}{word(token_id)}{address_word(wallet)}{word(AMOUNT_WHOLE)}{word(AMOUNT_WHOLE)}"
    first = Tx(str(network.v3_positions), calldata.multicall([decrease, collect]), SWAP_GAS_LIMIT)
    wrapped = raw[in_eth.index(True)]
    return (first, Tx(network.weth, f"0x{WITHDRAW}{word(wrapped)}", SWAP_GAS_LIMIT)) if wrapped else (first,)


def trim_tx(network: Network, placed: Placed, token_id: int, excess: int, wallet: str) -> Tx:
    """Take some liquidity out of a v3 position that came out larger than it should be."""
    return Tx(str(network.v3_positions), _v3_withdrawal(network, placed, token_id, excess, wallet), SWAP_GAS_LIMIT)


def away_txs(network: Network, pool: Pool, amounts: tuple[int, int], gas_wei: int) -> tuple[Tx, ...]:
    """Plain transfers that leave a wallet with what opening leaves it with, without making the pool any deeper.

    Later orders of a decision run after these: liquidity on paper must not serve its own run."""
    txs, eth_wei = [], gas_wei
    for token, raw in zip((pool.token0, pool.token1), amounts, strict=True):
        if is_eth(network, token):
            eth_wei += raw
        elif raw:
            txs.append(Tx(token, f"0x{TRANSFER}{address_word(vault_of(network, pool))}{word(raw)}", SWAP_GAS_LIMIT))
    return (*txs, Tx("0x" + "00" * 18 + "dead", "0x", APPROVE_GAS_LIMIT, eth_wei))


def amounts_making(liquidity: int, sqrt_price_x96: int, lower: int, upper: int) -> tuple[int, int]:
    """Least amounts of which the v3 position manager makes at least this liquidity: its formula the other way round."""
    low, high = sqrt_price_at(lower), sqrt_price_at(upper)
    here = min(max(sqrt_price_x96, low), high)
    raw0 = -(-liquidity * (high - here) // max(here * high // Q96, 1)) if here < high else 0
    raw1 = -(-liquidity * (here - low) // Q96) if here > low else 0
    return raw0, raw1


# --- v3 -------------------------------------------------------------------------------------------------------------


def _v3_withdrawal(network: Network, placed: Placed, token_id: int, liquidity: int, wallet: str) -> str:
    decrease = f"0x{DECREASE_LIQUIDITY}{''.join(map(word, (token_id, liquidity, 0, 0, DEADLINE_NEVER)))}"
    in_eth = [is_eth(network, token) for token in placed.tokens]
    recipient = NATIVE if any(in_eth) else wallet
    collect = f"0x{COLLECT}{word(token_id)}{address_word(recipient)}{word(AMOUNT_WHOLE)}{word(AMOUNT_WHOLE)}"
    if not any(in_eth):
        return calldata.multicall([decrease, collect])
    other = placed.tokens[in_eth.index(False)]
    unwrap = f"0x{UNWRAP_WETH}{word(0)}{address_word(wallet)}"
    sweep = f"0x{SWEEP_TOKEN}{address_word(other)}{word(0)}{address_word(wallet)}"
    return calldata.multicall([decrease, collect, unwrap, sweep])


# --- v4 -------------------------------------------------------------------------------------------------------------


def _settled(network: Network, pool: Pool, wallet: str) -> list[tuple[int, str]]:
    """Pay both sides, ETH wrapped where the pool wants it so, and give back what was sent too much."""
    sweep = (SWEEP, address_word(NATIVE) + address_word(wallet))
    if network.weth not in (pool.token0, pool.token1):
        pair = (SETTLE_PAIR, address_word(pool.token0) + address_word(pool.token1))
        return [pair, sweep] if NATIVE in (pool.token0, pool.token1) else [pair]
    wrapped = (SETTLE, address_word(network.weth) + word(OPEN_DELTA) + word(0))
    other = (SETTLE, address_word(pool.other(network.weth)) + word(OPEN_DELTA) + word(1))
    return [(WRAP, word(OPEN_DELTA)), wrapped, other, sweep]


def _taken(network: Network, pool: Pool, wallet: str) -> list[tuple[int, str]]:
    if network.weth not in (pool.token0, pool.token1):
        return [(TAKE_PAIR, address_word(pool.token0) + address_word(pool.token1) + address_word(wallet))]
    wrapped = (TAKE, address_word(network.weth) + address_word(ITSELF) + word(OPEN_DELTA))
    other = (TAKE, address_word(pool.other(network.weth)) + address_word(wallet) + word(OPEN_DELTA))
    return [other, wrapped, (UNWRAP, word(CONTRACT_BALANCE)), (SWEEP, address_word(NATIVE) + address_word(wallet))]


def _modify(steps: list[tuple[int, str]]) -> str:
    """Encode `modifyLiquidities(bytes unlockData, uint256 deadline)` of some actions."""
    actions = tail("".join(f"{action:02x}" for action, _ in steps))
    plan = word(64) + word(64 + len(actions) // 2) + actions + bytes_array([data for _, data in steps])
    return f"0x{MODIFY_LIQUIDITIES}{word(64)}{word(DEADLINE_NEVER)}{tail(plan)}"


def _signed_word(value: int) -> str:
    return word(value % 2**256)
