"""Lengths of modules and functions, printed: habits, not limits. `python -m tests.lengths`."""

from pathlib import Path
from statistics import median

from tests.guards import lengths, read_tree

MODULE_MAX, FUNCTION_MAX = 400, 60


def main() -> None:
    """Print the medians, and what is longer than reads well."""
    root = Path(__file__).parents[1]
    for what, rows, most in zip(("modules", "functions"), lengths(read_tree(root), root), (MODULE_MAX, FUNCTION_MAX), strict=True):
        sizes = sorted(size for size, _ in rows)
        print(f"{len(rows)} {what}: median {median(sizes):.0f} lines, p90 {sizes[len(sizes) * 9 // 10]}, longest {sizes[-1]}")
        for size, name in rows:
            if size > most:
                print(f"  over {most}: {size:4} {name}")


if __name__ == "__main__":
    main()
