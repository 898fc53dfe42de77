"""The report of lives: per kind what was lived, and every difference between paper and reality by its word."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ledgers.report import Basis, Column, Table
from tests.lives.kinds import LifeKind
from tests.lives.life import Finding, Lived

COLUMNS = ("lives", "orders", "filled", "marks")


@dataclass(slots=True)
class Tally:
    """What all lives came to."""

    kinds: dict[str, LifeKind] = field(default_factory=dict)
    counts: dict[str, Counter] = field(default_factory=dict)
    refusals: dict[str, Counter] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def add(self, lived: Lived) -> None:
        """Count one life in."""
        name = lived.program.kind.name
        self.kinds[name] = lived.program.kind
        self.counts.setdefault(name, Counter()).update(lived.counts)
        self.refusals.setdefault(name, Counter()).update(lived.refusals)
        self.findings += lived.findings

    def all(self, word: str) -> int:
        return sum(counts[word] for counts in self.counts.values())

    @property
    def false(self) -> int:
        """Differences where paper said more than is."""
        return sum(finding.word.startswith("false") for finding in self.findings)

    @property
    def broken(self) -> int:
        return self.all("broken")

    def worst(self) -> list[Finding]:
        """One finding of each word and kind, falsehoods first."""
        one = {(finding.kind, finding.word): finding for finding in reversed(self.findings)}
        return sorted(one.values(), key=lambda finding: (finding.word.startswith("under"), finding.word, finding.kind))

    def table(self) -> Table:
        """A row per kind."""
        rows = [
            (name, "yes" if self.kinds[name].honest else "", *(str(counts[column]) for column in COLUMNS),
             _words(counts, "false"), _words(counts, "under"), _listed(self.refusals[name]))
            for name, counts in self.counts.items()
        ]  # fmt: skip
        headings = ("kind", "honest", *COLUMNS, "paper says more", "paper says less", "refused")
        return Table(
            name="lives",
            title="Lives on paper beside the same lives really lived",
            basis=Basis(label="devnet", n=self.all("lives"), of="lives", claim="no order and no mark says more than is"),
            columns=tuple(Column(heading, heading) for heading in headings),
            rows=tuple(rows),
            note=totals(self),
        )


def _words(counts: Counter, prefix: str) -> str:
    return _listed(Counter({word.partition("_")[2]: count for word, count in counts.items() if word.startswith(prefix)}))


def _listed(counts: Counter) -> str:
    return ", ".join(f"{word} {count}" for word, count in sorted(counts.items()))


def totals(tally: Tally) -> str:
    """One line of sums."""
    words = Counter(finding.word for finding in tally.findings)
    return f"{tally.all('lives')} lives, {tally.all('orders')} orders, {tally.all('filled')} filled, {tally.all('marks')} marks; {_listed(words) or 'no difference'}"
