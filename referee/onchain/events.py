"""What can happen in an on-chain window, liquidity positions and further ledgers apart; `kinds.KINDS` is all of it.

Source: 001 §2.2–2.3. Fields and units are listed in `ledgers/JOURNAL.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledgers.events import Event
from ledgers.money import MicroUsd, TokenRaw, Wei
from ledgers.postings import Entry

HEADLINE = "headline"
PERMISSIVE = "permissive"
LEDGERS = (HEADLINE, PERMISSIVE)
"""Ledgers that share the boards of orders."""
DELAYED = "delayed"
IMPACT = "impact"
FURTHER_LEDGERS = (DELAYED, IMPACT)
"""Ledgers with simulations of their own, where the rules declare them."""


# --- values inside events -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The block that everything of one observation is pinned to."""

    block: int
    block_hash: str
    block_ts_s: int
    """The block's own time, Unix seconds."""
    base_fee_wei: Wei
    head_block: int
    """Newest block known when the pin was chosen."""
    lane: str
    """Name of the node lane that answered; never its address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAsked:
    """One order of a decision, as the parser understood it."""

    index: int
    """Place in the decision, from 0."""
    side: str
    """buy, sell, open-lp or close-lp."""
    token: str
    """Lower-case address."""
    spend_wei: Wei | None
    """Exact ETH to spend (buy), else none."""
    amount_raw: TokenRaw | None
    """Exact token units to sell; none for a buy and for `all`."""
    sell_all: bool
    pool: str = ""
    """open-lp: the pool's address, or the 32-byte id of a v4 pool; empty otherwise."""
    position: str = ""
    """close-lp: the position's id; empty otherwise."""
    tick_lower: int = 0
    """open-lp: the range, lower bound inside, upper bound outside."""
    tick_upper: int = 0
    price_lower: str = ""
    """open-lp: the range by price instead, decimal text of whole token 1 per whole token 0; empty where it is by tick."""
    price_upper: str = ""
    amount0_raw: TokenRaw | None = None
    """open-lp: most that may leave of token 0, base units; none otherwise."""
    amount1_raw: TokenRaw | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WordKept:
    """A word that the run's wallet left otherwise than the chain has it."""

    contract: str
    slot: str
    """0x and 64 digits, or `balance` for the contract's ETH."""
    value: str
    """0x and 64 digits."""
    beside: bool = False
    """True where it is added to a balance that is kept in the same word."""
    before: str = ""
    """What the chain held at the pinned block, 0x and 64 digits; empty in windows whose rules guessed at what a buy wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One source's quote for the exact size, and what its own transaction did in simulation."""

    source: str
    """`router` for our own, else the rival's name."""
    route: str
    """The route in words, e.g. `v3 0.3% weth>token`; unique on a board."""
    status: str
    """proven, reverted, unprovable or failed."""
    reason: str
    """Why it is not proven; empty when it is."""
    quoted_raw: TokenRaw | None
    """What the source says arrives (token units for a buy, wei for a sell), else none."""
    arrival_raw: TokenRaw | None
    """What arrived in simulation by balance difference: token units (buy) or wei before gas (sell); none if not proven."""
    units_raw: TokenRaw | None
    """Storage units behind the arrival (buy) or behind the amount sold (sell) when the token keeps shares, else none."""
    logged_raw: TokenRaw | None
    """The same by the Transfer logs: a cross-check that decides nothing alone."""
    swap_gas: int
    """Gas used by the swap, or the estimate when it was not simulated."""
    approve_gas: int
    """Gas used by approvals that the ledger has not paid yet."""
    gas_wei: Wei
    """(swap_gas + approve_gas) × gas price."""
    approvals: tuple[str, ...]
    """Approvals this route would newly pay for, `token>spender`."""
    flags: tuple[str, ...]
    """Cross-checks that failed, e.g. `logs_differ`, `quoter_differs`."""
    digest: str
    """SHA-256 of the request and answer behind it; empty when it was not asked."""
    to: str = ""
    """Contract that the row's transaction calls; empty where there is none."""
    tx_sha256: str = ""
    """Of that transaction's contract, value and calldata."""
    age_ms: int = 0
    """Since a rival answered, at the board's time; 0 for our own router, whose quote is the proof."""
    via: tuple[str, ...] = ()
    """Places that a rival says it goes through, plain and bounded."""
    kept: tuple[WordKept, ...] = ()
    """Of a row that may be filled, every word that its transactions wrote beside the market's (ONC-29)."""
    gas_limit: int = 0
    """Gas limit that the swap needs, before refunds; 0 where it was not told."""
    sold_raw: TokenRaw | None = None
    """Token units that left the wallet (sell); none in windows that only knew storage units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionMark:
    """One liquidity position in a mark: what closing it and selling everything brings."""

    position: str
    status: str
    """proven, or unprovable where its tokens' sale rests on a claim; else the reason why it counts 0: reverted, unreadable or below_gas."""
    reason: str
    """Why it counts 0, or which of its tokens cannot be sold and count 0; empty otherwise."""
    amount0_raw: TokenRaw
    """Principal at the marked block."""
    amount1_raw: TokenRaw
    fees0_raw: TokenRaw
    """Computed fees up to the marked block."""
    fees1_raw: TokenRaw
    close_gas_wei: Wei
    gross_wei: Wei
    """ETH that its tokens bring before gas, as their part of one sale together with what the book holds of them."""
    sale_gas_wei: Wei
    """Its part of that sale's gas."""
    unsold: tuple[str, ...]
    """Tokens that could not be sold."""
    value_wei: Wei
    """What counts: its ETH sides and the gross, selling gas and closing gas taken off; at least 0."""
    principal_wei: Wei
    """Principal at the pool's price, in ETH."""
    fees_wei: Wei
    """Fees at the same price."""
    held_wei: Wei
    """What the amounts put in would be worth unpooled, at the same price; impermanent loss is principal less this."""
    sqrt_price_x96: TokenRaw = TokenRaw(0)
    """Square root of that price, times 2⁹⁶; 0 where it was not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCrossed:
    """What is known of a pool that a fill went through (ONC-25)."""

    pool: str
    venue: str
    age_s: int
    """Chain time since it was made; −1 when unknown."""
    top_owner: str
    """Who owns most of its liquidity, as far as logs tell; empty when unknown."""
    top_owner_ppm: int
    """Share of it; −1 when unknown."""
    top_sender: str
    """Who sent most of its volume since the run bought (on a sell); empty otherwise."""
    top_sender_ppm: int
    """Share of it; −1 when unknown or a buy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingMark:
    """One holding in a mark."""

    token: str
    amount_raw: TokenRaw
    """Token units that were sold in simulation (or claimed)."""
    status: str
    """proven, reverted, below_gas, unprovable (claimed at the quote less gas) or no_route."""
    reason: str
    route: str
    gross_wei: Wei
    """ETH that arrived before gas; 0 when it could not be sold."""
    gas_wei: Wei
    value_wei: Wei
    """max(gross − gas, 0): what counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensSpent:
    """Tokens of one step, the same for all providers."""

    input_tokens: int
    """All input, cached and cache-written tokens inside."""
    cached_tokens: int
    cache_write_tokens: int
    output_tokens: int
    """All output, hidden reasoning inside."""
    reasoning_tokens: int
    flags: tuple[str, ...]
    """inconsistent, estimated, reasoning_estimated, broken, input_too_small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAttempt:
    """One exchange with a provider that failed."""

    reason: str
    answer_sha256: str
    """What came back, a blob."""
    latency_ms: int
    wait_ms: int
    """What was waited before trying again; 0 when it was not."""
    tokens: TokensSpent | None = None
    """What it cost all the same, where an answer had begun."""


# --- the window and its runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOpened(Event):
    """A window opened; everything that can change a result is pinned here."""

    window_sha256: str
    """Identity: canonical window file + rules + network identity + code tree."""
    window_file_sha256: str
    rules_name: str
    rules_sha256: str
    code_sha256: str
    network: str
    """Network profile name, e.g. devnet."""
    label: str
    """How results must be labelled, e.g. devnet."""
    chain_id: int
    block0_hash: str
    client: str
    """What the node says it is (bounded, stripped of control characters)."""
    clock_offset_ms: int
    """Chain time minus wall time as measured at opening."""
    pin: Pin
    eth_usd_micro_usd: MicroUsd
    """Price of one ETH that set the stake."""
    feed_micro_usd: MicroUsd
    """The feed's price at the same block."""
    price_pools: tuple[str, ...]
    """Pools whose median made the price."""
    stake_wei: Wei
    open_ts_ms: int
    close_ts_ms: int
    interval_ms: int
    mark_interval_ms: int
    board_policy: str
    """always or fallback."""
    seed: int
    ticks: int
    secret_sha256: str = ""
    """Commits to the secret that the addresses of readers and ghosts are derived from; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOpened(Event):
    """A run opened with its stake booked."""

    window_id: str
    stack: str
    """The stack's name in the window file."""
    stack_sha256: str
    run_sha256: str
    """Stack identity with the plan."""
    copy: int
    """Which of several equal stacks, from 1."""
    seed: int
    wallet: str
    """Paper wallet: an address nobody holds a key to."""
    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class PassShown(Event):
    """A stack with a model showed its pass of the entrance exam; a stack without a model has none and is exempt."""

    sitting: str
    """The sitting's id."""
    sitting_sha256: str
    sitting_ts_ms: int
    """When it was sat, Unix milliseconds."""
    model: str
    model_reported: str
    """What the provider called the model during the sitting; empty when it said nothing."""
    fresh: bool = False
    """Whether it also sat turns that nobody had seen before."""
    sittings: int = 0
    """How often the model had sat on this harness by then, however it ended; 0 where that was not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWritten(Event):
    """A plan turn ended; the plan is frozen into the prompt of every turn of its run."""

    plan_sha256: str
    """Of the plan's text, a blob; of nothing when the turn brought no plan."""
    prompt_sha256: str
    """Of the plan turn's recorded prompt, a blob."""
    bundle_sha256: str
    """Of the market as it was shown for planning, a blob."""
    pin: Pin
    outcome: str
    """As TurnPlayed says it."""
    reason: str
    begun_ts_ms: int
    """When the plan was asked for; the window clock started after all plans were in."""
    steps: int
    latency_ms: int
    wait_ms: int
    """Time spent waiting for us or for a rate limit, not part of latency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPaused(Event):
    """An operator paused; the window clock goes on."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowResumed(Event):
    """A process took the window up again."""

    clock_offset_ms: int
    down_ms: int
    """How long nobody was running it."""
    code_sha256: str
    """Code tree of the process that took it up; another than the window's only where an operator accepted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAbandoned(Event):
    """A turn was under way when the process ended; nothing is asked twice."""

    tick: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorgSeen(Event):
    """A block that something was pinned to is no longer on the chain."""

    block: int
    lost_hash: str
    found_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockJumped(Event):
    """The wall clock went back, or forward by more than a lag explains."""

    delta_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesCompared(Event):
    """The chosen transaction of an order was simulated by a second lane too, at the same block."""

    order_id: str
    block_hash: str
    lane: str
    """Name of the lane that the order was quoted on."""
    other: str
    """Name of the lane that was asked beside it."""
    differs: str
    """Where the two differ, in words; empty where they say the same. Where they differ, nothing is filled on `lane` any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFaulted(Event):
    """No lane could answer; said once when it begins."""

    lane: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRecovered(Event):
    """A lane answers again."""

    lane: str
    down_ms: int


# --- a turn ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken(Event):
    """A stack was woken for a tick."""

    tick: int
    scheduled_ts_ms: int
    lag_ms: int
    order_index: int
    """Place in this tick's rotation, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TickMissed(Event):
    """A stack was not woken for a tick; never made up."""

    tick: int
    scheduled_ts_ms: int
    reason: str
    """late, busy or down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleShown(Event):
    """What the stack was shown; the bytes are blobs."""

    tick: int
    pin: Pin
    bundle_sha256: str
    """The shared part, equal for all stacks of the tick."""
    book_sha256: str
    """The run's own book as shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTaken(Event):
    """One call to whoever answers; request and answer are blobs."""

    tick: int
    step: int
    request_sha256: str
    answer_sha256: str
    latency_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCounted(Event):
    """What a model's step used and how it went; follows its StepTaken. A stack without a model has none."""

    tick: int
    """−1 in the plan turn."""
    step: int
    stop: str
    """end, tools, length or other; empty when the model did not answer."""
    model_reported: str
    """What the provider calls the model that answered; empty when it said nothing."""
    wait_ms: int
    """Time spent waiting for a rate limit, a back-off or a slot, not part of latency."""
    tokens: TokensSpent | None
    """None when nobody counted them."""
    attempts: tuple[StepAttempt, ...]
    """Exchanges that failed before it, or ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled(Event):
    """A model called a tool; arguments and answer are blobs."""

    tick: int
    """−1 in the plan turn."""
    step: int
    """The step that asked for it, from 0."""
    call: int
    """Place within its step, from 0."""
    call_id: str
    name: str
    """As the model wrote it, plain and bounded."""
    arguments_sha256: str
    answer_sha256: str
    ok: bool
    reason: str
    """Why it is not ok; empty when it is."""
    note: str
    """repeated, id_missing, id_repeated, or empty."""
    latency_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlayed(Event):
    """How a turn ended."""

    tick: int
    outcome: str
    """ANSWERED, MALFORMED, OUT_OF_TIME, OUT_OF_STEPS, OUT_OF_OUTPUT or UNAVAILABLE."""
    reason: str
    steps: int
    latency_ms: int
    wait_ms: int
    """Time spent waiting for us or for a rate limit, not part of latency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTaken(Event):
    """The one valid decision of a turn."""

    tick: int
    decision_sha256: str
    schema: str
    orders: tuple[OrderAsked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionMalformed(Event):
    """An answer that is not exactly one valid decision; never a trade and never a hold."""

    tick: int
    reason: str
    detail: str
    """Bounded and stripped of control characters."""
    answer_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUnavailable(Event):
    """Whoever answers could not be reached or ran out of a limit: not a result."""

    tick: int
    reason: str


# --- an order -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardTaken(Event):
    """The rows of one order at one block, for the ledgers that share its size and book."""

    order_id: str
    """`run/tick/index`."""
    ledgers: tuple[str, ...]
    side: str
    token: str
    size_raw: TokenRaw
    """Wei spent (buy) or token units sold (sell)."""
    size_units_raw: TokenRaw
    """Storage units behind the size when the token keeps shares, else equal to size_raw."""
    shares: bool
    """True when the token keeps shares, so that the book holds storage units."""
    pin: Pin
    gas_price_wei: Wei
    arrived_ts_ms: int
    """Wall time when the decision arrived."""
    age_ms: int
    """Chain time at the decision to fill minus the pinned block's time."""
    exit_reserve_wei: Wei
    """ETH that a buy must leave for exits (0 on a sell)."""
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateTaken(Event):
    """The honeypot check of a buy, by our own buy-and-sell simulation."""

    order_id: str
    ledgers: tuple[str, ...]
    route: str
    """The buy route that was gated."""
    verdict: str
    """CLEAR, FLAGGED or UNKNOWN."""
    cause: str
    """Why it is not CLEAR, or empty."""
    exit_provable: bool
    """False when the exit cannot be carried by an override."""
    exit_cause: str
    """Why the exit is not provable, else empty: what the buy wrote is not told; in older windows slot or holder_state."""
    buy_arrival_raw: TokenRaw
    """What the buy brought in the gate batch; must equal the board's."""
    loss_bps: int
    """Round-trip loss before gas; −1 when it could not be told."""
    sell_route: str
    own_wei: Wei
    """Net ETH of selling what really arrived; 0 when it reverted."""
    ghost_wei: Wei
    """Net ETH of the same sale with the balance set by override."""
    digest: str
    outside: tuple[str, ...] = ()
    """What outside sources said against the token, `source:word`; they may only worsen a verdict."""
    kept: tuple[WordKept, ...] = ()
    """What the buy wrote about its buyer beside the balance, as it stands after the buy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSimulated(Event):
    """The chosen route of a board, proven."""

    order_id: str
    ledgers: tuple[str, ...]
    route: str
    evidence_sha256: str
    """Blob with the request and the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteReverted(Event):
    """No route of a board went through."""

    order_id: str
    ledgers: tuple[str, ...]
    route: str
    reason: str
    evidence_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteUnprovable(Event):
    """The chosen route cannot be proven."""

    order_id: str
    ledgers: tuple[str, ...]
    route: str
    reason: str
    """slot, holder_state or lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillCredited(Event):
    """An order was filled with what arrived."""

    order_id: str
    ledgers: tuple[str, ...]
    proven: bool
    tag: str
    """EXIT_UNPROVEN with its cause (`EXIT_UNPROVEN:slot`), BUY_UNPROVEN likewise, else empty."""
    side: str
    token: str
    route: str
    spent_raw: TokenRaw
    """Wei (buy) or token units (sell) given, gas apart."""
    arrival_raw: TokenRaw
    """Token units (buy) or wei before gas (sell) received."""
    gas_wei: Wei
    approvals: tuple[str, ...]
    """Approvals paid by this fill, `token>spender`."""
    entry: Entry
    kept: tuple[WordKept, ...] = ()
    """Every word that its transactions wrote beside the market's, set by override in every later simulation (ONC-29)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRefused(Event):
    """A rule said no."""

    order_id: str
    ledgers: tuple[str, ...]
    reason: str
    rule: str
    """The rule's id, e.g. ONC-08."""
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderNotFilled(Event):
    """An admitted order that did not fill: reverted, no route, a fault, or interrupted."""

    order_id: str
    ledgers: tuple[str, ...]
    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolsCrossed(Event):
    """The pools of a fill, recorded for findings (ONC-25); nothing of the fill depends on it."""

    order_id: str
    route: str
    pools: tuple[PoolCrossed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessKept(Event):
    """A recorded simulation was run again on proven state: what is kept proves it without the node (`referee prove`)."""

    order_id: str
    """Empty for a liquidation."""
    what: str
    """fill, gate or liquidation."""
    evidence_sha256: str
    """The recorded simulations that it proves."""
    block_hash: str
    """The block that they were run on; empty where that is not told."""
    witnesses: tuple[str, ...]
    """SHA-256 of a witness for each simulation, in their order, code and trie nodes apart; empty when one is not covered, or there is none."""
    nodes: str
    """SHA-256 of the trie nodes that they share; empty without witnesses."""
    codes: tuple[str, ...]
    """SHA-256 of every contract's code that they run."""
    not_covered: str
    """Why there is no witness; empty when there is."""


# --- marks and scores -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkTaken(Event):
    """A run's ledgers valued by full-size sales in simulation."""

    clock: str
    """turn or clock."""
    tick: int
    """The tick it belongs to (turn), or the last one (clock); −1 before the first."""
    ledgers: tuple[str, ...]
    pin: Pin | None
    """None when a fault left nothing to pin."""
    eth_wei: Wei
    holdings: tuple[HoldingMark, ...]
    value_wei: Wei | None
    """ETH plus what the holdings would bring; none when a fault left it unmeasured (never 0)."""
    fault: str
    digest: str
    positions: tuple[PositionMark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLiquidated(Event):
    """A run's ledgers sold out in full at the end."""

    ledgers: tuple[str, ...]
    pin: Pin
    eth_wei: Wei
    holdings: tuple[HoldingMark, ...]
    value_wei: Wei
    unproven_wei: Wei
    """Part of the value that rests on claims instead of simulation."""
    late: bool
    """True when it happened after a resume later than the close."""
    entry: Entry
    evidence_sha256: str
    positions: tuple[PositionMark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScored(Event):
    """The score of one run."""

    status: str
    """SCORED or UNSCORED."""
    reason: str
    stake_wei: Wei
    headline_wei: Wei | None
    permissive_wei: Wei | None
    headline_ppm: int | None
    """Return of the headline ledger in parts per million of the stake, rounded down."""
    permissive_ppm: int | None
    headline_without_unproven_ppm: int | None
    """The same with exits tagged unproven at 0."""
    close_usd_micro_usd: MicroUsd | None
    """Headline value in dollars at the closing price; none when the price could not be read."""
    turns_answered: int
    turns_total: int
    fills: int
    reorged_fills: int
    delayed_wei: Wei | None = None
    """Liquidation value of the delayed ledger; none where it is not kept or could not be measured."""
    impact_wei: Wei | None = None
    """The same of the own-impact ledger."""
    delayed_ppm: int | None = None
    impact_ppm: int | None = None
    trapped: int = 0
    """Headline holdings that could be sold when they were bought and not when the window ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowScored(Event):
    """The window is over and every run has its score."""

    runs: int
    scored: int
    close_eth_usd_micro_usd: MicroUsd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSealed(Event):
    """Last event of a window: nothing may follow it."""

    events: int
    """Number of events before this one."""
    root: str
    """Chain link of the event before this one."""
    secret: str = ""
    """The window's secret, now that no token can use it any more; empty where it was lost."""


KINDS: tuple[type[Event], ...] = (
    WindowOpened, RunOpened, PassShown, PlanWritten, WindowPaused, WindowResumed, TurnAbandoned, ReorgSeen, ClockJumped, NetworkFaulted,
    LanesCompared, NetworkRecovered, Woken, TickMissed, BundleShown, StepTaken, StepCounted, ToolCalled, TurnPlayed, DecisionTaken, DecisionMalformed,
    TurnUnavailable, BoardTaken, GateTaken, RouteSimulated, RouteReverted, RouteUnprovable, FillCredited, OrderRefused,
    OrderNotFilled, PoolsCrossed, WitnessKept, MarkTaken, WindowLiquidated, RunScored, WindowScored, WindowSealed,
)  # fmt: skip
