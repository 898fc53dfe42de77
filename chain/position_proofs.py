"""Proofs of positions: what opening and closing one really does, by simulation from a paper wallet.

Opening is one simulated block after whatever the wallet did before. Closing is two: in the first the wallet, funded by override,
opens a position of exactly the liquidity that the paper one has; in the second it stands with its own book and closes it. What
counts is the balance difference of the wallet, never more than the pool's own arithmetic pays; logs and arithmetic are held against it.
Source: 001 §2.2, §5.10; design §6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chain.balance_slot import BalanceSlot
from chain.calldata import hex_bytes, uint_at
from chain.header import Header
from chain.liquidity.amounts import amounts_of
from chain.logs import signed
from chain.network import Network
from chain.pools import LIQUIDITY, SLOT0, V4_LIQUIDITY, V4_SLOT0, Pool
from chain.positions import Placed, amounts_making, approvals_of, close_tx, is_eth, manager_of, mint_tx, straight_close_txs, trim_tx
from chain.router import Tx
from chain.simulate import NATIVE_LOG, TRANSFER_TOPIC, CallAnswer, Handle, Simulated, Simulation, logged_net, revert_word
from chain.trade import BALANCE_READ_MAX, Purse, shown_wei
from chain.words import Reading
from ledgers.errors import ChainFault

INCREASE_LIQUIDITY = "0x3067048beee31b25b2f1681f88dac838c8bba36af25bfb2b7cf7473a5847e35f"
MODIFY_LIQUIDITY = "0xf208f4912782fd25c7f114ca3723a2d5dd6f3bcc3ac8db5af63baa85f711d5ec"
ROUNDING_RAW = 2
"""Base units that closing may pay less than the arithmetic says."""
COLLECT_GAS = {"v3": 120_000, "v4": 40_000}
"""What closing with fees takes more than the simulated closing, which has none; chosen above what it was measured to be (68,000 to 99,000 and 31,000)."""
ETH_OF_FUNDED_WEI = 10**18
"""What the funded wallet has beyond the position, for gas."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A position that could not be opened or closed."""

    word: str
    """reverted, or unprovable where the wallet's tokens could not be put in place."""
    reason: str


@dataclass(frozen=True, slots=True)
class PoolNow:
    """A pool after what the wallet did before."""

    sqrt_price_x96: int
    tick: int
    liquidity: int


@dataclass(frozen=True, slots=True)
class Opening:
    """What opening did."""

    amounts: tuple[int, int]
    """What left the wallet of both tokens, gas apart."""
    liquidity: int
    mint_gas: int
    approve_gas: tuple[tuple[str, int], ...]
    """Gas of each approval by its key."""


@dataclass(frozen=True, slots=True)
class Closing:
    """What closing brought, fees apart."""

    amounts: tuple[int, int]
    due: tuple[int, int]
    """What the pool paid, by its arithmetic: more than what came where a token takes its part of a transfer."""
    gas: int

    def arriving(self, fees: tuple[int, int]) -> tuple[int, int]:
        """What would arrive of fees, which share a token's transfer with the principal."""
        first, second = (
            fee if told >= due - ROUNDING_RAW else fee * told // due for fee, told, due in zip(fees, self.amounts, self.due, strict=True)
        )  # fmt: skip
        return first, second


class PoolReading:
    """A pool's price and liquidity at the pinned block, after some transactions of a wallet."""

    def __init__(self, network: Network, pin: Header, purse: Purse, pool: Pool) -> None:
        sim = self.simulation = Simulation(network, pin)
        sim.block(balances_wei={purse.wallet: shown_wei(purse.eth_wei, purse.prefix, pin.base_fee_wei)}, writes=purse.writes)
        self._prefix = [sim.send(purse.wallet, tx) for tx in purse.prefix]
        target, ask = (pool.key, "") if pool.venue == "v3" else (str(network.v4_state_view), pool.key[2:])
        slot0, liquidity = (SLOT0, LIQUIDITY) if pool.venue == "v3" else (V4_SLOT0, V4_LIQUIDITY)
        self._slot0, self._liquidity = sim.view(target, slot0 + ask), sim.view(target, liquidity + ask)

    def read(self, done: Simulated) -> PoolNow:
        """Raises: ChainFault when the pool does not tell."""
        _hold_prefix(done, self._prefix)
        price, tick = (uint_at(done[self._slot0].data, at) for at in (0, 1))
        if tick is None or price is None or not 0 < price < 2**160:
            raise ChainFault("bad_answer", "a pool did not tell its price")
        liquidity = done.word(self._liquidity)
        if liquidity >> 128:
            raise ChainFault("absurd_amount", f"liquidity of {liquidity} cannot be in range")
        return PoolNow(price, signed(tick), liquidity)


class OpeningProof:
    """One opening in one request entry."""

    def __init__(self, network: Network, pin: Header, purse: Purse, placed: Placed, amounts: tuple[int, int], liquidity: int, held: Mapping[str, int], paid: frozenset[str]) -> None:
        """`held`: token units that the wallet must be found to have; approvals that are `paid` already were written before."""
        self._network, self._wallet, self._placed, self._held, self._price = network, purse.wallet, placed, held, pin.base_fee_wei
        mint = mint_tx(network, placed, *amounts, liquidity, purse.wallet)
        unsent = [approval for approval in approvals_of(network, placed.pool) if approval.tx not in purse.prefix and approval.key not in paid]
        sim = self.simulation = Simulation(network, pin)
        sent = [*purse.prefix, *(approval.tx for approval in unsent), mint]
        sim.block(balances_wei={purse.wallet: shown_wei(purse.eth_wei, sent, pin.base_fee_wei)}, writes=purse.writes)
        self._prefix = [sim.send(purse.wallet, tx) for tx in purse.prefix]
        self._before = _Balances(sim, network, placed, purse.wallet)
        self._approvals = {approval.key: sim.send(purse.wallet, approval.tx) for approval in unsent}
        self._mint = sim.send(purse.wallet, mint)
        self._after = _Balances(sim, network, placed, purse.wallet)

    @property
    def pool(self) -> Pool:
        return self._placed.pool

    @property
    def sent(self) -> tuple[Handle, ...]:
        """The opening's own transactions."""
        return (*self._approvals.values(), self._mint)

    def read(self, done: Simulated, expected: int, owed: tuple[int, int]) -> Opening | Stopped:
        """Read what opening did; by the pool's arithmetic it makes `expected` liquidity and costs `owed`.

        Raises: ChainFault when the node contradicts itself or the arithmetic."""
        _hold_prefix(done, self._prefix)
        sends = self.sent
        if failed := next((done[handle] for handle in sends if not done[handle].ok), None):
            return Stopped("reverted", revert_word(failed))
        gas_wei = sum(done[handle].gas_used for handle in (*self._approvals.values(), self._mint)) * self._price
        moved = _moved(done, self._before, self._after, gas_wei)
        if isinstance(moved, Stopped):
            return moved
        for token, held in self._held.items():
            if self._before.token(done, token) != held:
                return Stopped("unprovable", "the token's balance could not be put in place")
        _hold_trace(done, [*self._approvals.values(), self._mint], self._wallet, moved[0])
        made = made_liquidity(self._network, self._placed, done[self._mint])
        if made != expected:
            raise ChainFault("inconsistent", f"opening made {made} of liquidity, the pool's arithmetic says {expected}")
        spent = [-moved_by for moved_by in _by_side(self._network, self._placed, moved)]
        amounts = max(spent[0], owed[0]), max(spent[1], owed[1])
        return Opening(amounts, made, done[self._mint].gas_used, tuple((key, done[handle].gas_used) for key, handle in self._approvals.items()))


class ClosingProof:
    """One closing in one request entry; asked twice, since the first answer tells which number the position gets."""

    def __init__(
        self, network: Network, pin: Header, wallet: str, eth_wei: int, placed: Placed, liquidity: int, sqrt_price_x96: int,
        slots: Mapping[str, BalanceSlot], held: Mapping[str, int], carried: Reading = (), straight: bool = False,
    ) -> None:  # fmt: skip
        """`slots`: where the position's tokens keep the wallet's balance, by token; `held`: units of the book's own, of all that is written;
        `carried`: what the wallet wrote before; `straight`: nothing passes through the manager's hands."""
        self._straight, self._carried = straight, carried
        self._again = (network, pin, wallet, eth_wei, placed, liquidity, sqrt_price_x96, slots, held, carried)
        self._network, self._pin, self._wallet, self._eth_wei, self._placed = network, pin, wallet, eth_wei, placed
        self._liquidity, self._slots, self._held, self._price = liquidity, slots, held, pin.base_fee_wei
        self._principal = amounts_of(liquidity, sqrt_price_x96, placed.lower, placed.upper)
        most = amounts_of(liquidity, sqrt_price_x96, placed.lower, placed.upper, round_up=True)
        making = amounts_making(liquidity, sqrt_price_x96, placed.lower, placed.upper)
        self._funded = (max(most[0], making[0]), max(most[1], making[1]))
        self._token_id: int | None = None
        self._excess = 0
        self._ask()

    def _ask(self) -> None:
        sim = self.simulation = Simulation(self._network, self._pin)
        mint = mint_tx(self._network, self._placed, *self._funded, self._liquidity, self._wallet)
        setup = [*(approval.tx for approval in approvals_of(self._network, self._placed.pool)), mint]
        writes = [self._slots[token].write(raw + self._held.get(token, 0)) for token, raw in zip(self._placed.tokens, self._funded, strict=True) if token in self._slots]
        headroom = shown_wei(0, setup, self._price) + ETH_OF_FUNDED_WEI
        sim.block(balances_wei={self._wallet: headroom}, writes=(*self._carried, *writes))
        self._setup = [sim.send(self._wallet, tx) for tx in setup]
        if self._token_id is None:
            return
        if self._excess:
            self._setup.append(sim.send(self._wallet, trim_tx(self._network, self._placed, self._token_id, self._excess, self._wallet)))
        closing = self._closing(self._token_id)
        own = [slot.write(self._held.get(token, 0)) for token, slot in self._slots.items()]
        sim.block(balances_wei={self._wallet: shown_wei(self._eth_wei, closing, self._price)}, writes=(*own, *self._carried))
        self._before = _Balances(sim, self._network, self._placed, self._wallet)
        self._closes = [sim.send(self._wallet, tx) for tx in closing]
        self._after = _Balances(sim, self._network, self._placed, self._wallet)

    @property
    def pool(self) -> Pool:
        return self._placed.pool

    @property
    def sent(self) -> tuple[Handle, ...]:
        """The closing's own transactions."""
        return tuple(self._closes)

    def _closing(self, token_id: int) -> Sequence[Tx]:
        known = self._network, self._placed, token_id, self._liquidity, self._wallet
        return straight_close_txs(*known, self._principal) if self._straight else (close_tx(*known),)

    def straight(self) -> ClosingProof | None:
        """The other way to close, for a position that the usual one does not; none where there is no other."""
        other = straight_close_txs(self._network, self._placed, 0, self._liquidity, self._wallet, self._principal)
        return ClosingProof(*self._again, straight=True) if other and not self._straight else None

    def numbered(self, done: Simulated) -> Stopped | None:
        """Read the first answer and ask again for the whole; a value when the position cannot even be set up."""
        if failed := next((done[handle] for handle in self._setup if not done[handle].ok), None):
            return Stopped("reverted", revert_word(failed))
        minted = done[self._setup[-1]]
        made = made_liquidity(self._network, self._placed, minted)
        self._token_id, self._excess = token_number(self._network, self._placed, minted), made - self._liquidity
        if self._excess < 0:
            raise ChainFault("inconsistent", f"{made} of liquidity came of amounts that make {self._liquidity}")
        self._ask()
        return None

    def read(self, done: Simulated) -> Closing | Stopped:
        """Read what closing brought. Raises: ChainFault when the node contradicts itself or the pool's arithmetic."""
        if failed := next((done[handle] for handle in (*self._setup, *self._closes) if not done[handle].ok), None):
            return Stopped("reverted", revert_word(failed))
        gas = sum(done[handle].gas_used for handle in self._closes)
        moved = _moved(done, self._before, self._after, gas * self._price)
        if isinstance(moved, Stopped):
            return moved
        if any(self._before.token(done, token) != self._held.get(token, 0) for token in self._before.tokens):
            return Stopped("unprovable", "the token's balance could not be put in place")
        _hold_trace(done, self._closes, self._wallet, moved[0])
        brought = _by_side(self._network, self._placed, moved)
        for token, told, due in zip(self._placed.tokens, brought, self._principal, strict=True):
            if told < due - ROUNDING_RAW:
                self._hold_shortfall(done, token, told, due)
        return Closing((min(brought[0], self._principal[0]), min(brought[1], self._principal[1])), self._principal, gas)

    def _hold_shortfall(self, done: Simulated, token: str, told: int, due: int) -> None:
        """Let a token take its part of what closing brings, as far as its own logs say so too. Raises: ChainFault otherwise."""
        if is_eth(self._network, token) or told < 0 or logged_net(done[self._closes[0]], token, self._wallet) != told:
            raise ChainFault("inconsistent", f"closing brought {told} units, the pool's arithmetic says {due}")


# --- reading --------------------------------------------------------------------------------------------------------


class _Balances:
    """The wallet's ETH and its balance of every side that is no ETH."""

    def __init__(self, sim: Simulation, network: Network, placed: Placed, wallet: str) -> None:
        self.eth = sim.eth_balance(wallet)
        self.tokens: dict[str, Handle] = {token: sim.token_balance(token, wallet) for token in placed.tokens if not is_eth(network, token)}

    def token(self, done: Simulated, token: str) -> int | None:
        try:
            return done.amount(self.tokens[token], BALANCE_READ_MAX)
        except LookupError:
            return None


def _moved(done: Simulated, before: _Balances, after: _Balances, gas_wei: int) -> tuple[int, dict[str, int]] | Stopped:
    """What came to the wallet, gas apart: wei, and units by token."""
    eth_wei = done.eth_wei(after.eth) - done.eth_wei(before.eth) + gas_wei
    units = {}
    for token in before.tokens:
        was, now = before.token(done, token), after.token(done, token)
        if was is None or now is None:
            return Stopped("unprovable", "the token does not tell a balance")
        units[token] = now - was
    return eth_wei, units


def _by_side(network: Network, placed: Placed, moved: tuple[int, dict[str, int]]) -> tuple[int, int]:
    eth_wei, units = moved
    first, second = (eth_wei if is_eth(network, token) else units[token] for token in placed.tokens)
    return first, second


def _hold_prefix(done: Simulated, prefix: Sequence[Handle]) -> None:
    if not all(done[handle].ok for handle in prefix):
        raise ChainFault("state_moved", "a filled order of the same decision no longer goes through at its own block")


def _hold_trace(done: Simulated, sends: Sequence[Handle], wallet: str, eth_wei: int) -> None:
    logged = sum(logged_net(done[handle], NATIVE_LOG, wallet) for handle in sends)
    if logged != eth_wei:
        raise ChainFault("inconsistent", f"balances say {eth_wei} wei moved, the transfer trace says {logged}")


def made_liquidity(network: Network, placed: Placed, mint: CallAnswer) -> int:
    """Liquidity of a new position by the manager's own log (v3) or the pool manager's (v4). Raises: ChainFault."""
    pool = placed.pool
    emitter, topics, at = (
        (manager_of(network, pool), [INCREASE_LIQUIDITY], 0) if pool.venue == "v3" else (network.v4_pool_manager, [MODIFY_LIQUIDITY, pool.key], 2)
    )  # fmt: skip
    found = [log for log in mint.logs if _is(log, emitter) and log["topics"][: len(topics)] == topics]
    amount = uint_at(hex_bytes(found[0].get("data")), at) if len(found) == 1 else None
    if amount is None:
        raise ChainFault("inconsistent", "a position was opened without a word of how much liquidity it has")
    return amount


def token_number(network: Network, placed: Placed, mint: CallAnswer) -> int:
    """Number of a new position, by its transfer from nobody. Raises: ChainFault."""
    manager = manager_of(network, placed.pool)
    found = [log["topics"] for log in mint.logs if _is(log, manager) and len(log["topics"]) == 4 and log["topics"][0] == TRANSFER_TOPIC]
    number = uint_at(hex_bytes(found[0][3]), 0) if len(found) == 1 else None
    if number is None:
        raise ChainFault("inconsistent", "a position was opened without a number")
    return number


def _is(log: object, emitter: str | None) -> bool:
    return isinstance(log, dict) and isinstance(log.get("address"), str) and log["address"].lower() == emitter and isinstance(log.get("topics"), list)
