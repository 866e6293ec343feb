"""Shapes of tables -> how long a default fit takes on one thread: `python docs/studies/effort.py`.

Columns are a chain of correlated normals in random order, some of them cut into levels.  The times
are what `mixedgm.table.checks.effort` was fitted to; a test compares with them (effort.csv beside).
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import mixedgm as mg

SHAPES = (
    *((1_000, 10, 10, 3), (10_000, 10, 10, 3), (100_000, 10, 10, 3), (1_000, 50, 50, 3)),
    *((10_000, 50, 50, 3), (1_000, 200, 0, 0), (1_000, 0, 50, 10), (10_000, 0, 50, 10)),
    *((1_000, 200, 200, 3), (5_000, 0, 20, 50), (1_000, 500, 500, 3), (1_000, 1_000, 0, 0)),
    *((2_000, 2_000, 0, 0), (500, 300, 300, 5), (50_000, 20, 20, 5), (200_000, 5, 20, 8)),
    *((20_000, 0, 40, 20), (1_000_000, 5, 5, 3), (2_000, 0, 100, 20)),
)
"""Rows, numbers, categories, levels of each."""


def table(n_rows: int, n_gaussian: int, n_discrete: int, n_levels: int) -> pd.DataFrame:
    """Draw a chain of columns, in random order."""
    rng, columns = np.random.default_rng(0), {}
    chain = rng.normal(size=(n_rows, n_gaussian + n_discrete))
    for k in range(1, n_gaussian + n_discrete):
        chain[:, k] = 0.5 * chain[:, k - 1] + np.sqrt(0.75) * chain[:, k]
    for at, k in enumerate(rng.permutation(n_gaussian + n_discrete)):
        if at < n_gaussian:
            columns[f"x{at}"] = chain[:, k]
            continue
        cuts = np.quantile(chain[:, k], np.linspace(0, 1, n_levels + 1)[1:-1])
        level = rng.permutation(n_levels)[np.searchsorted(cuts, chain[:, k])]
        columns[f"c{at}"] = np.char.add("l", level.astype(str))
    return pd.DataFrame(columns)


def main() -> None:
    """Measure all shapes, and write them."""
    warnings.simplefilter("ignore")
    mg.MixedGraphicalModel(select="ebic", n_jobs=1).fit(table(300, 3, 3, 3))  # compiles
    rows = []
    for shape in SHAPES:
        drawn = table(*shape)
        start = time.process_time()
        mg.MixedGraphicalModel(select="ebic", n_jobs=1).fit(drawn)
        rows.append((*shape, round(time.process_time() - start, 2)))
        sys.stdout.write(f"{rows[-1]}\n")
    with Path(__file__).with_suffix(".csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("rows", "numbers", "categories", "levels", "seconds"), *rows])


if __name__ == "__main__":
    main()
