"""Tables from a known model -> how often bootstrap intervals cover the truth, and what they find.

The ladder of the paper with four continuous and four two-level columns, ten edges, as often as
`--tables` says; `lam` is chosen by the default criterion on every table.  Run from the root of the
repository: ``python docs/studies/intervals.py``.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

import numpy as np

import mixedgm as mg


class Found(NamedTuple):
    """Of one table: whether each interval covers, how often true and false edges are found."""

    covered: list[bool]
    true: list[float]
    false: list[float]


def one_table(seed: int, n: int, n_boot: int, refit: bool, select: str) -> Found:
    """Draw, fit, bootstrap, and compare with the truth."""
    table, truth = mg.datasets.make_ladder(n, 4, random_state=seed)
    model = mg.MixedGraphicalModel(refit=refit).fit(table)
    boot = mg.bootstrap(model, table, n_boot=n_boot, select=select, random_state=seed)
    names = [column.name for column in truth.schema_.columns]
    pairs = {frozenset((a, b)) for k, a in enumerate(names) for b in names[:k]}
    edges = {frozenset((edge.source, edge.target)) for edge in truth.edges_}
    inclusion = dict.fromkeys(pairs, 0.0)
    for row in boot.edges().itertuples():
        inclusion[frozenset((row.source, row.target))] = row.inclusion
    covered = {}
    for row in boot.parameters().query("parameter == 'interaction'").itertuples():
        pair = frozenset((row.source, row.target))
        if pair in edges:  # the last entry of a block is the only free one here
            value = truth.interaction(row.source, row.target).to_numpy()[-1, -1]
            covered[pair] = bool(row.lower <= value <= row.upper)
    return Found(
        list(covered.values()),
        [inclusion[pair] for pair in edges],
        [inclusion[pair] for pair in pairs - edges],
    )


def summary(found: list[Found]) -> tuple[float, float, float]:
    """Coverage, inclusion of true edges, inclusion of false ones."""
    return (
        float(np.mean([each for one in found for each in one.covered])),
        float(np.mean([each for one in found for each in one.true])),
        float(np.mean([each for one in found for each in one.false])),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--n-boot", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--select", nargs="+", default=["fixed", "again"])
    options = parser.parse_args()
    sys.stdout.write("| rows | lam | refit | coverage | true edges | false edges |\n")
    sys.stdout.write("| --- | --- | --- | --- | --- | --- |\n")
    for n in options.rows:
        for select in options.select:
            for refit in (True, False):
                found = [
                    one_table(seed, n, options.n_boot, refit, select)
                    for seed in range(options.tables)
                ]
                cells = " | ".join(f"{value:.3f}" for value in summary(found))
                sys.stdout.write(f"| {n:,} | {select} | {refit} | {cells} |\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
