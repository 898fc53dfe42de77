"""A trade: one route run in simulation for one wallet, and what its balances then say.

Source: 001 §2.2 (credited is what arrives); design §6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from chain import calldata
from chain.balance_slot import BalanceSlot
from chain.gas import SWAP_GAS_LIMIT
from chain.header import Header
from chain.logs import signed
from chain.network import Network
from chain.origin import from_pools, said_bytes
from chain.router import Hop, Route, Tx
from chain.simulate import (
    AMOUNT_MAX,
    ETH_MAX,
    NATIVE_LOG,
    SLOAD_CODE,
    CallAnswer,
    Handle,
    Simulated,
    Simulation,
    SlotWrite,
    logged_by,
    logged_net,
    revert_word,
)
from chain.swaps import V4_SWAP, swap_topic
from ledgers.errors import ChainFault
from ledgers.money import mul_div_ceil, mul_div_floor

PROVEN, REVERTED, UNPROVABLE, FAILED = "proven", "reverted", "unprovable", "failed"
BALANCE_READ_MAX = 2**256
ALLOWANCE_STANDING_MIN = 2**95
"""An unlimited allowance of which a token keeps 96 bits, after some use."""
QUOTED_MAX = 2**127
"""No pool can pay out more; a quoter that says so was told by a hook, or of one."""
APPROVAL_USED_UP, QUOTER_ABSURD = "approval_used_up", "quoter_absurd"
PRIVATE_INVENTORY, INCONSISTENT = "private_inventory", "inconsistent"
FOREIGN_GAS_MAX, FOREIGN_BYTES_MAX = SWAP_GAS_LIMIT // 2, 64 * 1024
"""What a rival's transaction, or a buy that crosses a hook, may use and say: what is filled in a decision is run again before each of its later orders."""
UNREPEATABLE = "impact_unrepeatable"
"""Why nothing is known after earlier trades of which one did not go through again."""
ROUNDING_RAW, ROUNDING_PART = 2, 1_000_000
"""Token units that a sale of shares may round by: two, where they are at most a millionth of it."""


@dataclass(frozen=True, slots=True)
class Echo:
    """Earlier trades, run again by stand-ins in a block of their own before anything else (001 §5.2)."""

    txs: tuple[tuple[str, Tx], ...]
    """Sender and transaction, in order; senders hold nothing but what overrides give them."""
    writes: tuple[SlotWrite, ...]
    """The tokens that they sell."""

    def begin(self, sim: Simulation) -> list[Handle]:
        """Open a simulation with the trades; what they did is read by `repeated`."""
        headroom: dict[str, int] = {}
        for sender, tx in self.txs:
            headroom[sender] = headroom.get(sender, 0) + gas_headroom_wei([tx], sim.pin.base_fee_wei)
        sim.block(balances_wei=headroom, writes=self.writes)
        return [sim.send(sender, tx) for sender, tx in self.txs]


@dataclass(frozen=True, slots=True)
class Purse:
    """A wallet as it stands before a decision: what the overrides set."""

    wallet: str
    eth_wei: int
    writes: tuple[SlotWrite, ...]
    """Balance slots of the whole book, so that limits on holdings bind."""
    prefix: tuple[Tx, ...] = ()
    """Transactions already filled in this decision, run again first."""
    echo: Echo | None = None
    """Earlier trades that are run again before all of it."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the running book says of the traded token."""

    amount_raw: int
    """Token units that the wallet holds right before the trade; where an override puts them there, the simulation must say so too."""
    units_raw: int
    slot: BalanceSlot | None
    kept: tuple[SlotWrite, ...] = ()
    """What else earlier buys of it wrote about the wallet, to be read again after a sale."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a route did in simulation. Units as in the journal's `Row`."""

    status: str
    reason: str = ""
    quoted_raw: int | None = None
    arrival_raw: int | None = None
    units_raw: int | None = None
    logged_raw: int | None = None
    swap_gas: int = 0
    approve_gas: tuple[tuple[str, int], ...] = ()
    """Gas of each approval by its key."""
    flags: tuple[str, ...] = ()
    kept: tuple[SlotWrite, ...] = ()
    """What a sale left of `Held.kept`."""
    before_raw: int = 0
    """Token units that the wallet was found to hold right before."""


def gas_headroom_wei(txs: Sequence[Tx], gas_price_wei: int) -> int:
    """ETH that a wallet must show to be let run some transactions."""
    return sum(tx.gas_limit * gas_price_wei + tx.value_wei for tx in txs)


def shown_wei(eth_wei: int, txs: Sequence[Tx], gas_price_wei: int) -> int:
    """ETH that a wallet shows: its own, since a token can look at it, and more only where it would not be let run else."""
    return max(eth_wei, gas_headroom_wei(txs, gas_price_wei))


def route_txs(route: Route, before: Sequence[Tx] = ()) -> list[Tx]:
    """All transactions of a route, approvals first; those that ran before it are left out, since some tokens take one only once."""
    return [*(approval.tx for approval in route.approvals if approval.tx not in before), route.swap]


def repeated(done: Simulated, echo: Sequence[Handle]) -> bool:
    """Say whether all earlier trades went through again."""
    return all(done[handle].ok for handle in echo)


def _spenders(route: Route) -> list[str]:
    """Whom the token itself must allow."""
    return [spenders[0] for _, *spenders in (approval.key.split(">") for approval in route.approvals) if len(spenders) == 1]


def crossed(network: Network, route: Route, swap: CallAnswer) -> bool:
    """Say whether every pool of a route logged in its swap: an answer to another route's question has other pools."""
    return all(
        logged_by(swap, str(network.v4_pool_manager), hop.pool.key) if hop.pool.venue == "v4" else logged_by(swap, hop.pool.key)
        for hop in route.hops
    )


def paid_in(network: Network, hop: Hop, swap: CallAnswer) -> int | None:
    """What a pool that can run out was paid, by its own logs; None where no such pool tells, or a hook may have taken some of it before."""
    event = {"v3": (hop.pool.key, [swap_topic(hop.pool)]), "v4": (network.v4_pool_manager, [V4_SWAP, hop.pool.key])}.get(hop.pool.venue)
    if event is None or hop.pool.hooked:
        return None
    emitter, topics = event
    amounts = [
        calldata.uint_at(calldata.hex_bytes(log.get("data")), int(hop.token_in == hop.pool.token1))
        for log in swap.logs
        if log["address"].lower() == emitter and log["topics"][: len(topics)] == topics
    ]
    told = [abs(signed(amount)) for amount in amounts if amount is not None]
    return sum(told) if told and len(told) == len(amounts) else None


def paid_first(network: Network, route: Route, swap: CallAnswer) -> int:
    """What the first pools of a route were paid, at most its amount; what goes to a pool that does not tell counts whole."""
    paid, told = 0, dict[str, int]()
    for way in route.ways:
        amount = paid_in(network, way.path[0], swap)
        if amount is None:
            paid += way.amount
        else:
            told[way.path[0].pool.key] = amount
    return min(paid + sum(told.values()), route.amount)


class TradeSimulation:
    """One candidate route of one order in one request entry."""

    def __init__(
        self, network: Network, pin: Header, purse: Purse, route: Route, held: Held, paid: frozenset[str] = frozenset(), others: Sequence[str] = ()
    ) -> None:
        """Prepare the trade; approvals that are `paid` already are only set up, so that they count for nothing.

        None of the `others`, tokens that the order does not name, may become less."""
        self.route, self._network, self._purse, self._held, self._price = route, network, purse, held, pin.base_fee_wei
        sim = self.simulation = Simulation(network, pin)
        self._echo = purse.echo.begin(sim) if purse.echo else []
        sent = [*purse.prefix, *route_txs(route, purse.prefix)]
        sim.block(balances_wei={purse.wallet: shown_wei(purse.eth_wei, sent, pin.base_fee_wei)}, writes=purse.writes)
        self._prefix = [sim.send(purse.wallet, tx) for tx in purse.prefix]
        unsent = [approval for approval in route.approvals if approval.tx not in purse.prefix]
        self._granted = [sim.send(purse.wallet, approval.tx) for approval in unsent if approval.key in paid]
        self._before = sim.token_balance(route.token, purse.wallet)
        self._eth_before = sim.eth_balance(purse.wallet)
        self._others = [sim.token_balance(token, purse.wallet) for token in others]
        self._quoter = sim.view(route.quoter.to, route.quoter.data) if route.quoter else None
        self._approvals = {approval.key: sim.send(purse.wallet, approval.tx) for approval in unsent if approval.key not in paid}
        self._swap = sim.send(purse.wallet, route.swap)
        self._after = sim.token_balance(route.token, purse.wallet)
        self._eth_after = sim.eth_balance(purse.wallet)
        self._others_after = [sim.token_balance(token, purse.wallet) for token in others]
        self._allowances = [sim.ask(route.token, calldata.allowance(purse.wallet, spender)) for spender in _spenders(route)]
        self._units = self._read_units(sim)
        self._words = self._read_words(sim) if route.side == "sell" else []

    def _read_units(self, sim: Simulation) -> Handle | None:
        slot = self._held.slot
        if slot is None or not slot.shares:
            return None
        sim.block(balances_wei={}, code={slot.contract: SLOAD_CODE})
        return sim.view(slot.contract, slot.slot)

    def _read_words(self, sim: Simulation) -> list[Handle]:
        kept = self._held.kept
        if kept:
            sim.block(balances_wei={}, code={write.contract: SLOAD_CODE for write in kept})
        return [sim.view(write.contract, write.slot) for write in kept]

    def swapped(self, done: Simulated) -> CallAnswer:
        """What the swap itself did."""
        return done[self._swap]

    def outcome(self, done: Simulated) -> Outcome:
        """Read what the route did, whatever its quoter says. Raises: ChainFault when the node contradicts itself."""
        found = self._outcome(done)
        return replace(found, flags=(*found.flags, QUOTER_ABSURD)) if self._absurd(done) else found

    def _outcome(self, done: Simulated) -> Outcome:
        if not repeated(done, self._echo):
            return Outcome(FAILED, UNREPEATABLE)
        if not all(done[handle].ok for handle in self._prefix):
            raise ChainFault("state_moved", "a filled order of the same decision no longer goes through at its own block")
        quoted, eth_gained = self._quoted(done), self._eth_gained(done)
        before, after = (self._tokens(done, handle) for handle in (self._before, self._after))
        misplaced = self._held.slot is not None and before is not None and self._misplaced(before)
        if misplaced and self.route.side == "sell" and before is not None and before < self.route.amount:
            return Outcome(UNPROVABLE, "slot", self._believed(quoted))
        for handle in (*self._granted, *self._approvals.values(), self._swap):
            if not done[handle].ok:
                return Outcome(REVERTED, revert_word(done[handle]), quoted)
        if before is None or after is None:
            return Outcome(UNPROVABLE, "balance_unreadable", self._claimable(eth_gained, quoted))
        if misplaced:
            return Outcome(UNPROVABLE, "slot", self._claimable(eth_gained, quoted))
        return self._moved(done, quoted, eth_gained, before, after)

    def _misplaced(self, before: int) -> bool:
        """Whether an override put the balance elsewhere; what the decision's earlier fills gave away beside their own is no sign of that."""
        return before < self._held.amount_raw if self._prefix else before != self._held.amount_raw

    def _claimable(self, eth_gained: int, quoted: int | None) -> int | None:
        """What may be claimed of a sale that went through without being a proof: never more than it brought."""
        if self.route.side == "buy" or quoted is None:
            return self._believed(quoted)
        return max(min(quoted, eth_gained), 0)

    def _believed(self, quoted: int | None) -> int | None:
        """What a quoter says where nothing bounds it: nothing, where a hook could tell it anything."""
        if self.route.hooked:
            return None
        return quoted if self.route.side == "buy" else self.route.payable(quoted, sum(tx.value_wei for tx in self._purse.prefix))

    def _tokens(self, done: Simulated, handle: Handle) -> int | None:
        try:
            return done.amount(handle, BALANCE_READ_MAX)
        except LookupError:
            return None

    def _told(self, done: Simulated) -> int | None:
        """What the quoter says, however absurd."""
        if self._quoter is None or not done[self._quoter].ok:
            return None
        return self.route.quoted(done[self._quoter].data)

    def _absurd(self, done: Simulated) -> bool:
        amount = self._told(done)
        return amount is not None and amount >= (ETH_MAX if self.route.side == "sell" else QUOTED_MAX)

    def _quoted(self, done: Simulated) -> int | None:
        return None if self._absurd(done) else self._told(done)

    def _moved(self, done: Simulated, quoted: int | None, eth_gained: int, before: int, after: int) -> Outcome:
        tokens_gained = after - before
        logged_token = logged_net(done[self._swap], self.route.token, self._purse.wallet)
        if self.route.side == "buy":
            if eth_gained != -self.route.swap.value_wei:
                return Outcome(FAILED, "spend_differs", quoted)
            arrival, logged, units = tokens_gained, logged_token, tokens_gained
        else:
            arrival, logged, units = eth_gained, eth_gained, self._sold(done, before, after)
        if arrival <= 0:
            return Outcome(REVERTED, "nothing_arrived", quoted)
        if arrival >= AMOUNT_MAX:
            raise ChainFault("absurd_amount", f"{arrival} units cannot have arrived")
        if not crossed(self._network, self.route, done[self._swap]):
            raise ChainFault(INCONSISTENT, "a swap went through without a word from its pools")
        if objection := self._foreign_objection(done, arrival, before - after):
            return Outcome(FAILED, objection, quoted)
        units = self._storage_units(done, units)
        if units <= 0:
            return Outcome(UNPROVABLE, "slot", self._believed(quoted))
        return Outcome(
            PROVEN, "", quoted, arrival, units, logged,
            done[self._swap].gas_used,
            tuple((key, done[handle].gas_used) for key, handle in self._approvals.items()),
            self._flags(done, quoted, arrival, logged_token, tokens_gained),
            self._kept(done, after),
            before,
        )  # fmt: skip

    def _foreign_objection(self, done: Simulated, arrival: int, sold: int) -> str:
        """What speaks against a transaction whose pools are not known, or are anybody's, beyond what it brings; empty for nothing."""
        if self.route.hops and not (self.route.hooked and self.route.side == "buy"):
            return ""  # no exit is refused for what it costs
        if done[self._swap].gas_used > FOREIGN_GAS_MAX:
            return "too_much_gas"
        if said_bytes(done[self._swap]) > FOREIGN_BYTES_MAX:
            return "too_long"
        if self.route.hops:
            return ""
        if self._others_shrank(done):
            return "touches_other_tokens"
        if self.route.side == "sell" and sold > self.route.amount + min(ROUNDING_RAW, self.route.amount // ROUNDING_PART):
            return "size_differs"
        given = sold if self.route.side == "sell" else self.route.swap.value_wei
        return "" if from_pools(self._network, done[self._swap], self.route, given, arrival) else PRIVATE_INVENTORY

    def _others_shrank(self, done: Simulated) -> bool:
        """Whether a token that the order does not name became less, or can no longer be read."""
        for handle, later in zip(self._others, self._others_after, strict=True):
            before, after = self._tokens(done, handle), self._tokens(done, later)
            if before is not None and (after is None or after < before):
                return True
        return False

    def _sold(self, done: Simulated, before: int, after: int) -> int:
        """Tokens that left: by balance difference, at least what the pool says it was paid, which is the size unless the pool ran out.

        Of a route whose pools are not known, the difference alone is told."""
        if not self.route.hops:
            return before - after
        return max(before - after, paid_first(self._network, self.route, done[self._swap]))

    def _eth_gained(self, done: Simulated) -> int:
        """ETH difference before gas; the node's own native logs must say the same."""
        handles = (*self._approvals.values(), self._swap)
        before, after = (done.eth_wei(handle) for handle in (self._eth_before, self._eth_after))
        gained = after - before + sum(done[handle].gas_used for handle in handles) * self._price
        logged = sum(logged_net(done[handle], NATIVE_LOG, self._purse.wallet) for handle in handles)
        if gained != logged:
            raise ChainFault(INCONSISTENT, f"balances say {gained} wei moved, the transfer trace says {logged}")
        return gained

    def _storage_units(self, done: Simulated, amount: int) -> int:
        """Storage units that came or went; a sale takes its part of all that is held, whatever the slot says, but for rounding."""
        if self._units is None:
            return amount
        grown = done.word(self._units) - self._held.units_raw
        if self.route.side == "buy":
            return grown
        rounding = min(ROUNDING_RAW, self.route.amount // ROUNDING_PART)
        if -grown >= mul_div_floor(self._held.units_raw, self.route.amount - rounding, self._held.amount_raw):
            return -grown
        return mul_div_ceil(self._held.units_raw, self.route.amount, self._held.amount_raw)

    def _kept(self, done: Simulated, balance_raw: int) -> tuple[SlotWrite, ...]:
        """What is now said about the wallet; bits beside its balance without that. Raises: ChainFault."""
        slot, after = self._held.slot, []
        for write, handle in zip(self._held.kept, self._words, strict=False):
            balance = slot.write(balance_raw).value if write.beside and slot else 0
            after.append(replace(write, value=(done.word(handle) - balance) % 2**256))
        return tuple(after)

    def _used_up(self, done: Simulated, handle: Handle) -> bool:
        """Whether an allowance is no longer without bound after the sale; one that is not told is taken to stand."""
        left = self._tokens(done, handle)
        return left is not None and left < ALLOWANCE_STANDING_MIN

    def _flags(self, done: Simulated, quoted: int | None, arrival: int, logged_token: int, tokens_gained: int) -> tuple[str, ...]:
        checks = (
            ("logs_differ", logged_token != tokens_gained),
            ("size_differs", self.route.side == "sell" and tokens_gained != -self.route.amount),
            ("quoter_differs", quoted is not None and quoted != arrival),
            ("quoter_silent", quoted is None and self._quoter is not None and not self._absurd(done)),
            (APPROVAL_USED_UP, any(self._used_up(done, handle) for handle in self._allowances)),
        )
        return tuple(word for word, failed in checks if failed)


def evidence(simulation: Simulation, answer: Any) -> dict[str, Any]:
    """What is kept of a simulation: the request and the raw answer."""
    method, params = simulation.request()
    return {"method": method, "params": params, "answer": answer}
