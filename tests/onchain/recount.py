"""A recount by a stranger: ledgers and scores from an exported journal, with nothing but Python's own library.

It shares no code and no method with the product: fills are recounted from what they say was spent, received and paid,
not from their entries; the entries are only compared with that. Run alone: python tests/onchain/recount.py FILE
"""

from __future__ import annotations

import hashlib
import json
import sys

LEDGERS = ("headline", "permissive")
FURTHER = ("delayed", "impact")


class Miscounted(Exception):
    """The journal says something else than the recount."""


def read(path: str) -> list[tuple[str, dict]]:
    """Read an export, checking every link by hand."""
    link, events = "00" * 32, []
    for number, line in enumerate(open(path, "rb"), start=1):
        record = json.loads(line)
        body = line[line.index(b'"body":') + 7 : line.rindex(b',"link":"')]
        expect(f"seq of line {number}", record["seq"], number)
        link = hashlib.sha256(bytes.fromhex(link) + record["kind"].encode() + body).hexdigest()
        expect(f"link of line {number}", record["link"], link)
        events.append((record["kind"], record["body"]))
    return events


def expect(what: str, recorded: object, recounted: object) -> None:
    if recorded != recounted:
        raise Miscounted(f"{what}: recorded {recorded!r}, recounted {recounted!r}")


class Purse:
    """What one ledger of one run holds."""

    def __init__(self, stake: int) -> None:
        self.eth, self.tokens, self.by_entries = stake, {}, {"eth": stake}
        self.claimed_exits = 0
        self.fills = 0

    def fill(self, fill: dict, shares: bool) -> None:
        spent, arrived, gas = int(fill["spent_raw"]), int(fill["arrival_raw"]), int(fill["gas_wei"])
        gain = -spent - gas if fill["side"] == "buy" else arrived - gas
        self.eth += gain
        self.fills += 1
        if fill["tag"].startswith("EXIT_UNPROVEN"):
            self.claimed_exits += gain
        if not shares:
            units = arrived if fill["side"] == "buy" else -spent
            self.tokens[fill["token"]] = self.tokens.get(fill["token"], 0) + units

    def pool(self, body: dict, sides: tuple[str, str], sign: int) -> None:
        """Put a position's amounts in (−1), or take them out with its fees (1)."""
        self.eth -= int(body["gas_wei"])
        self.fills += 1
        for asset, number in zip(sides, "01", strict=True):
            amount = sign * (int(body[f"amount{number}_raw"]) + int(body.get(f"fees{number}_raw", 0)))
            if asset == "eth":
                self.eth += amount
            else:
                self.tokens[asset] = self.tokens.get(asset, 0) + amount

    def post(self, entry: dict) -> None:
        per_asset: dict[str, int] = {}
        for posting in entry["postings"]:
            amount = int(posting["amount"])
            per_asset[posting["asset"]] = per_asset.get(posting["asset"], 0) + amount
            if posting["account"] == "book":
                self.by_entries[posting["asset"]] = self.by_entries.get(posting["asset"], 0) + amount
                if self.by_entries[posting["asset"]] < 0:
                    raise Miscounted(f"a book went below zero in {posting['asset']}")
        if any(per_asset.values()):
            raise Miscounted(f"an entry does not balance: {per_asset}")

    def check(self, where: str) -> None:
        expect(f"{where}: ETH by its entries", self.by_entries["eth"], self.eth)
        for token, units in self.tokens.items():
            expect(f"{where}: {token} by its entries", self.by_entries.get(token, 0), units)
            if units < 0:
                raise Miscounted(f"{where}: holds {units} of {token}")


def recount(path: str) -> dict[str, dict[str, int | None]]:
    """Recount a window; returns the scores by run. Raises: Miscounted at the first thing that is otherwise."""
    events = read(path)
    opened = next(body for kind, body in events if kind == "WindowOpened")
    stake = 100_000_000 * 10**18 // int(opened["eth_usd_micro_usd"])
    expect("stake", int(opened["stake_wei"]), stake)
    purses: dict[tuple[str, str], Purse] = {}
    sold: dict[tuple[str, str], dict] = {}
    shares: set[tuple[str, str]] = set()
    outcomes: set[tuple[str, str]] = set()
    answered: dict[str, int] = {}
    woken: dict[str, int] = {}
    lost: set[str] = set()
    stood: dict[tuple[str, str], str] = {}
    sides: dict[tuple[str, str], tuple[str, str]] = {}
    liquidity: dict[tuple[str, str], int] = {}
    scores: dict[str, dict] = {}
    price = next((body["close_eth_usd_micro_usd"] for kind, body in events if kind == "WindowScored"), None)
    for number, (kind, body) in enumerate(events, start=1):
        run = body["run_id"]
        for ledger in body.get("ledgers", ()):
            if kind in ("FillCredited", "OrderRefused", "OrderNotFilled", "OrderSkipped", "DelayedReverted", "LiquidityOpened", "LiquidityClosed"):
                if (body["order_id"], ledger) in outcomes:
                    raise Miscounted(f"order {body['order_id']} has two outcomes in {ledger}")
                outcomes.add((body["order_id"], ledger))
        if kind == "RunOpened":
            for ledger in body["entry"]["ledgers"]:
                purses[run, ledger] = Purse(stake)
            answered[run] = woken[run] = 0
        elif kind == "Woken":
            woken[run] += 1
        elif kind == "TurnPlayed":
            answered[run] += body["outcome"] == "ANSWERED"
        elif kind == "ReorgSeen":
            lost.add(body["lost_hash"])
        elif kind in ("BoardTaken", "FurtherBoardTaken"):
            for ledger in body["ledgers"]:
                stood[body["order_id"], ledger] = body["pin"]["block_hash"]
            if body["shares"]:
                shares.add((run, body["token"]))
        elif kind == "FillCredited":
            expect(f"ledgers of the entry of record {number}", body["entry"]["ledgers"], body["ledgers"])
            for ledger in body["ledgers"]:
                purse = purses[run, ledger]
                purse.fill(body, (run, body["token"]) in shares)
                purse.post(body["entry"])
                purse.check(f"record {number}, {run} {ledger}")
        elif kind in ("LiquidityOpened", "LiquidityClosed"):
            if kind == "LiquidityOpened":
                sides[run, body["position"]] = (body["asset0"], body["asset1"])
                liquidity[run, body["position"]] = int(body["liquidity_raw"])
            for ledger in body["ledgers"]:
                stood[body["order_id"], ledger] = body["pin"]["block_hash"]
                purses[run, ledger].pool(body, sides[run, body["position"]], -1 if kind == "LiquidityOpened" else 1)
                purses[run, ledger].post(body["entry"])
                purses[run, ledger].check(f"record {number}, {run} {ledger}")
        elif kind == "LiquidityAccrued":
            for token in "01":
                fees = int(body[f"growth{token}_x128"]) * liquidity[run, body["position"]] // 2**128
                expect(f"record {number}, {run}: fees {token}", int(body[f"fees{token}_raw"]), fees)
        elif kind == "DelayedReverted":
            for ledger in body["ledgers"]:
                purses[run, ledger].eth -= int(body["gas_wei"])
                purses[run, ledger].post(body["entry"])
                purses[run, ledger].check(f"record {number}, {run} {ledger}")
        elif kind in ("MarkTaken", "WindowLiquidated"):
            for ledger in body["ledgers"]:
                expect(f"record {number}, {run} {ledger}: ETH", int(body["eth_wei"]), purses[run, ledger].eth)
                if body["value_wei"] is not None:
                    expect(f"record {number}, {run} {ledger}: value", int(body["value_wei"]), worth(body, run, sides))
                if kind == "WindowLiquidated":
                    sold[run, ledger] = body
                    purses[run, ledger].post(body["entry"])
        elif kind == "RunScored":
            scores[run] = body
    headline_fills: dict[str, int] = {}
    for run, score in scores.items():
        again = scored(purses, sold, run, stake, price, sides)
        again["turns_total"], again["turns_answered"] = woken[run], answered[run]
        again["fills"] = headline_fills[run] = purses[run, "headline"].fills
        fills = ("FillCredited", "LiquidityOpened", "LiquidityClosed")
        filled = {body["order_id"] for kind, body in events if kind in fills and body["run_id"] == run and "headline" in body["ledgers"]}
        again["reorged_fills"] = sum(stood[order_id, "headline"] in lost for order_id in filled)
        for name, value in again.items():
            recorded = score[name]
            expect(f"{run}: {name}", int(recorded) if isinstance(recorded, str) else recorded, value)
    return {run: {name: score[name] for name in ("headline_ppm", "permissive_ppm")} for run, score in scores.items()}


def worth(body: dict, run: str, sides: dict) -> int:
    """ETH and what every holding and position brings after gas, never less than nothing."""
    holdings = sum(max(int(mark["gross_wei"]) - int(mark["gas_wei"]), 0) for mark in body["holdings"])
    return int(body["eth_wei"]) + holdings + sum(pooled(mark, sides[run, mark["position"]]) for mark in body["positions"])


def pooled(mark: dict, sides: tuple[str, str]) -> int:
    """What a position brings: its ETH sides and what its tokens are sold for, all gas off."""
    if mark["status"] in ("reverted", "unreadable"):
        return 0
    eth = sum(int(mark[f"amount{number}_raw"]) + int(mark[f"fees{number}_raw"]) for asset, number in zip(sides, "01", strict=True) if asset == "eth")
    return max(eth + int(mark["gross_wei"]) - int(mark["sale_gas_wei"]) - int(mark["close_gas_wei"]), 0)


def scored(purses: dict, sold: dict, run: str, stake: int, price: str | None, sides: dict) -> dict[str, int | None]:
    """A run's score from what it was sold out for."""
    again: dict[str, int | None] = {}
    for ledger in (*LEDGERS, *FURTHER):
        value = worth(sold[run, ledger], run, sides) if (run, ledger) in sold else None
        if value is not None:
            expect(f"{run} {ledger}: what is left in the book", purses[run, ledger].by_entries["eth"], value)
        again[f"{ledger}_wei"] = value
        again[f"{ledger}_ppm"] = None if value is None else (value - stake) * 1_000_000 // stake
    headline = again["headline_wei"]
    if headline is not None:
        claims = sum(int(mark["value_wei"]) for mark in sold[run, "headline"]["holdings"] if mark["status"] == "unprovable")
        for mark in (mark for mark in sold[run, "headline"]["positions"] if mark["status"] == "unprovable"):
            claims += min(int(mark["value_wei"]), max(int(mark["gross_wei"]) - int(mark["sale_gas_wei"]), 0))
        proven = max(headline - claims - purses[run, "headline"].claimed_exits, 0)
        again["headline_without_unproven_ppm"] = (proven - stake) * 1_000_000 // stake
    again["close_usd_micro_usd"] = None if headline is None or price is None else headline * int(price) // 10**18
    return again


if __name__ == "__main__":
    print(json.dumps(recount(sys.argv[1]), indent=2))
