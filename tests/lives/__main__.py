"""Lives as a campaign: `python -m tests.lives --seed N --lives N [--kind K] [--seconds S]`.

Lives go round over the kinds, the seed rising with every round, so that the same seed and number of lives are the same lives.
Each job has two chains of its own. The table says per kind what was found; exit code 1 when paper said more than is.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.lives.campaign import chosen, results
from tests.lives.kinds import KINDS
from tests.lives.report import Tally, totals

FINDINGS_SHOWN = 40
TELL_S = 10


def main(arguments: Sequence[str]) -> int:
    """Live, print the table, write the findings down."""
    parser = argparse.ArgumentParser(prog="python -m tests.lives", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lives", type=int, default=len(KINDS))
    parser.add_argument("--kind", action="append", default=[], help="name of a kind, or the beginning of one with a star; may be given again")
    parser.add_argument("--seconds", type=float, default=10**9)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="file for every finding, one JSON row a line")
    asked = parser.parse_args(arguments)
    try:
        kinds, begun = chosen(asked.kind), time.monotonic()
    except ValueError as error:
        parser.error(str(error))
    tally, told_s = Tally(), begun
    rows = asked.out.open("w", encoding="utf-8") if asked.out else None
    for whole in results(kinds, asked.seed, asked.lives, asked.jobs, begun + asked.seconds):
        tally.add(whole)
        for finding in whole.findings:
            if rows:
                rows.write(json.dumps({name: getattr(finding, name) for name in finding.__slots__}) + "\n")
                rows.flush()
        if whole.trouble:
            print(f"\nlife {whole.program.seed} of {whole.program.kind.name} broke: {whole.trouble}", file=sys.stderr)
        if time.monotonic() - told_s > TELL_S:
            told_s = time.monotonic()
            print(f"{told_s - begun:5.0f} s: {totals(tally)}", file=sys.stderr, flush=True)
    print(tally.table().text())
    for finding in tally.worst()[:FINDINGS_SHOWN]:
        print(f"{finding.kind} seed {finding.seed} {finding.venue} step {finding.step}: {finding.word}: {finding.detail}")
    return 1 if tally.false or tally.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
