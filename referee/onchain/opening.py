"""The opening: everything that can change a result, pinned before the first tick; and what a resume must find unchanged.

Source: 001 §2.1–2.2; ONC-02, ONC-28; design §4 (identity).
"""

from __future__ import annotations

from ledgers.errors import RefereeError
from ledgers.identity import identity_of, sha256_hex
from referee.onchain.book import stake_entry
from referee.onchain.cadence import mark_interval_ms, ticks_in
from referee.onchain.doors import EthPrice, NetworkSeen
from referee.onchain.events import PassShown, Pin, RunOpened, WindowOpened
from referee.onchain.live import LiveWindow, Seat
from referee.onchain.rules import Rules, rules_named
from referee.onchain.score import stake_for
from referee.onchain.state import WindowState
from referee.onchain.window import FRESH, Window


class Refused(RefereeError):
    """A window that may not be opened or taken up again; the message says what was expected and what was found."""


def window_opened(live: LiveWindow, seen: NetworkSeen, pin: Pin, price: EthPrice, now_ms: int) -> WindowOpened:
    """Write down the opening. Units: the window clock starts at `now_ms`. Raises: Refused when the stake prices to nothing."""
    window, rules = live.window, live.rules
    stake_wei = stake_for(rules.stake_micro_usd, price.micro_usd)
    if int(stake_wei) <= 0:
        raise Refused(f"the stake prices to {stake_wei} wei at {price.micro_usd} micro-dollars per ETH; the window was not opened")
    return WindowOpened(
        run_id=live.window_id,
        ts_ms=now_ms,
        window_sha256=window_identity(window, rules, seen, live.code_sha256),
        window_file_sha256=window.sha256,
        rules_name=rules.name,
        rules_sha256=rules.sha256(),
        code_sha256=live.code_sha256,
        network=seen.name,
        label=seen.label,
        chain_id=seen.chain_id,
        block0_hash=seen.block0_hash,
        client=seen.client,
        clock_offset_ms=seen.clock_offset_ms,
        pin=pin,
        eth_usd_micro_usd=price.micro_usd,
        feed_micro_usd=price.feed_micro_usd,
        price_pools=price.pools,
        stake_wei=stake_wei,
        open_ts_ms=now_ms,
        close_ts_ms=now_ms + window.length_ms,
        interval_ms=window.interval_ms,
        mark_interval_ms=mark_interval_ms(rules, window.length_ms),
        board_policy=window.board,
        seed=window.seed,
        ticks=ticks_in(window.length_ms, window.interval_ms),
        secret_sha256=sha256_hex(live.secret.encode()) if live.secret else "",
    )


def revealed(opened: WindowOpened | None, secret: str) -> str:
    """The secret that an opening committed to; empty where this process has another, since the home's was lost."""
    return secret if opened is not None and opened.secret_sha256 == sha256_hex(secret.encode()) else ""


def window_identity(window: Window, rules: Rules, seen: NetworkSeen, code_sha256: str) -> str:
    """Hash everything that can change a window's result."""
    return identity_of(
        {
            "schema": "window-identity/1",
            "window_file_sha256": window.sha256,
            "rules_sha256": rules.sha256(),
            "chain_id": seen.chain_id,
            "block0_hash": seen.block0_hash,
            "client": seen.client,
            "code_sha256": code_sha256,
        }
    )


def run_opened(seat: Seat, opened: WindowOpened, plan: str = "", secret: str = "") -> RunOpened:
    """Write down one run's opening, with its stake booked on every ledger; its identity is the stack's with the plan."""
    return RunOpened(
        run_id=seat.run_id,
        ts_ms=opened.ts_ms,
        window_id=opened.run_id,
        stack=seat.stack.name,
        stack_sha256=seat.stack.sha256,
        run_sha256=seat.stack.run_sha256(sha256_hex(plan.encode())),
        copy=seat.copy,
        seed=seat.seed,
        wallet=paper_wallet(opened.window_sha256, seat.run_id, secret_of_wallets(rules_named(opened.rules_name), secret)),
        entry=stake_entry(opened.stake_wei, rules_named(opened.rules_name).further_ledgers),
    )


def refuse_without_pass(live: LiveWindow) -> None:
    """Check that every stack with a model has passed the exam on its harness (ONC-13). Raises: Refused naming the first that has not."""
    for seat in live.seats.values():
        if seat.stack.exempt_from_exam:
            continue
        if seat.exam_pass is not None and seat.exam_pass.admits(seat.stack):
            if live.window.exam == FRESH and not seat.exam_pass.fresh:
                raise Refused(
                    f"{seat.run_id}: the window asks for a pass on fresh turns, and {seat.exam_pass.sitting} sat the published ones alone; "
                    f"sit with `referee exam sit --fresh`; the window was not opened"
                )
            continue
        raise Refused(
            f"{seat.run_id}: {seat.stack.model} by {seat.stack.provider} has no pass of the entrance exam on harness {seat.stack.harness_sha256[:16]}… "
            f"(ONC-13); sit it with `referee exam sit`; the window was not opened"
        )


def pass_shown(seat: Seat, ts_ms: int) -> tuple[PassShown, ...]:
    """Write down by which sitting a stack was admitted; nothing for an exempt one."""
    shown = seat.exam_pass
    if seat.stack.exempt_from_exam or shown is None:
        return ()
    return (
        PassShown(
            run_id=seat.run_id,
            ts_ms=ts_ms,
            sitting=shown.sitting,
            sitting_sha256=shown.sitting_sha256,
            sitting_ts_ms=shown.ts_ms,
            model=shown.model,
            model_reported=shown.model_reported,
            fresh=shown.fresh,
            sittings=shown.sittings,
        ),
    )


def paper_wallets(live: LiveWindow, seen: NetworkSeen) -> list[str]:
    """List the wallets that a window's runs will have."""
    identity = window_identity(live.window, live.rules, seen, live.code_sha256)
    return [paper_wallet(identity, run_id, secret_of_wallets(live.rules, live.secret)) for run_id in live.seats]


def secret_of_wallets(rules: Rules, secret: str) -> str:
    """The secret that wallets are derived from, where the rules have them derived from one."""
    return secret if rules.unforeseen_wallets else ""


def paper_wallet(window_sha256: str, run_id: str, secret: str = "") -> str:
    """Derive a run's wallet: the last 20 bytes of a hash, an address nobody holds a key to (design §5).

    With the window's secret nobody can tell it before the seal reveals that."""
    return "0x" + sha256_hex("/".join(filter(None, (window_sha256, run_id, secret))).encode())[-40:]


def refuse_another_window(live: LiveWindow, seen: NetworkSeen, accept_code_change: bool) -> None:
    """Check that a resume meets what the window was opened with.

    The network (chain id and block 0), the rules, the window file and every stack must be the same. For the
    code tree see `refuse_other_code`. The client may differ: a node may be upgraded, and lanes may run different ones.
    Raises: Refused naming the first difference."""
    opened = live.opened
    pairs = [
        ("chain id", str(opened.chain_id), str(seen.chain_id)),
        ("block 0", opened.block0_hash, seen.block0_hash),
        ("rules", opened.rules_sha256, live.rules.sha256()),
        ("window file", opened.window_file_sha256, live.window.sha256),
        ("runs", " ".join(live.state.runs), " ".join(live.seats)),
        *((f"stack of {run_id}", run.opened.stack_sha256, live.seats[run_id].stack.sha256) for run_id, run in live.state.runs.items() if run_id in live.seats),
    ]
    for what, expected, found in pairs:
        if expected != found:
            raise Refused(f"{opened.run_id} was opened with another {what}: expected {expected[:80]}, found {found[:80]}; it was not resumed")
    refuse_other_code(live.state, live.code_sha256, accept_code_change)


def refuse_other_code(state: WindowState, code_sha256: str, accept_code_change: bool) -> None:
    """Check that a resume runs the code tree that last played the window, unless an operator accepts the change.

    Every resumed stretch names its own, so that what was accepted once stays accepted. Needs no chain. Raises: Refused."""
    if accept_code_change or state.opened is None or state.code_sha256 == code_sha256:
        return
    raise Refused(
        f"{state.opened.run_id} was last played with another code tree: expected {state.code_sha256}, found {code_sha256}; "
        "it was not resumed (accept the change with --accept-code-change)"
    )
