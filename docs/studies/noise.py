"""Tables of independent normal columns -> how many edges each criterion finds; all are false.

Run it when a criterion changes: ``python docs/studies/noise.py``.  It takes half a minute.
"""

import sys

import numpy as np

import mixedgm as mg

SHAPES = ((50, 20), (100, 30), (200, 30), (500, 30), (100, 100))
SEEDS = (0, 1, 2)
CRITERIA = ("ebic", "bic", "aic")


def false_edges(rows: int, columns: int, select: str) -> float:
    """Mean number of edges over the seeds."""
    tables = (np.random.default_rng(seed).normal(size=(rows, columns)) for seed in SEEDS)
    fits = (mg.MixedGraphicalModel(select=select).fit(table) for table in tables)
    return float(np.mean([len(fit.edges_) for fit in fits]))


def main() -> None:
    """Print one line for each shape of table."""
    head = "rows  columns  pairs" + "".join(f"{name:>7}" for name in CRITERIA)
    sys.stdout.write(head + "\n")
    for rows, columns in SHAPES:
        counts = (false_edges(rows, columns, select) for select in CRITERIA)
        pairs = columns * (columns - 1) // 2
        line = f"{rows:4}  {columns:7}  {pairs:5}" + "".join(f"{n:7.1f}" for n in counts)
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
