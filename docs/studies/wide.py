"""Wide tables of numbers -> time and errors of the default graph, beside EBIC and its path.

Run it when tests or the search for the graph change: ``python docs/studies/wide.py``.  It writes
docs/studies/wide.csv row by row, goes on where that ends, and prints a summary: processor seconds
as a multiple of those of EBIC in the same process, F1 of both and of the best graph on EBIC's
path, and said and actual false edges of the default.  Names of settings as arguments restrict what
is counted, ``--tables 3`` how often; ``--jobs`` are processes; ``--report`` counts nothing.
"""

import argparse
import csv
import os
import sys
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
import pandas as pd
from default import Graph, Pair, random, scale_free

import mixedgm as mg
from mixedgm.fit.fitted import FittedModel

TABLES = 5
SIZES = (0.2, 0.5)
"""Partial correlations before the precision is made positive."""
LEAST_EIGENVALUE = 0.1
FILE = Path(__file__).with_suffix(".csv")
FIELDS = (
    *("setting", "seed", "edges", "seconds", "seconds_ebic", "f1", "f1_ebic", "f1_best"),
    *("found", "false", "said", "false_ebic"),
)
SETTINGS: dict[str, tuple[int, int, Graph]] = {
    "random, 400 columns, n = 400": (400, 400, random(800)),
    "scale-free, 400 columns, n = 400": (400, 400, scale_free),
    "random, 1,000 columns, n = 400": (1000, 400, random(2000)),
    "random, sparse, 1,000 columns, n = 400": (1000, 400, random(500)),
    "scale-free, 1,000 columns, n = 400": (1000, 400, scale_free),
    "noise, 1,000 columns, n = 400": (1000, 400, random(0)),
}
"""Columns, rows, graph."""


def drawn(name: str, seed: int) -> tuple[pd.DataFrame, frozenset[Pair]]:
    """A table of normal columns and its true edges."""
    n_columns, n_rows, graph = SETTINGS[name]
    rng = np.random.default_rng([seed, *name.encode()])
    pairs = graph(n_columns, rng)
    precision = np.zeros((n_columns, n_columns))
    for u, v in pairs:
        precision[u, v] = precision[v, u] = rng.choice([-1.0, 1.0]) * rng.uniform(*SIZES)
    lowest = np.linalg.eigvalsh(precision)[0]
    precision += max(1.0, LEAST_EIGENVALUE - lowest) * np.eye(n_columns)
    noise = rng.standard_normal((n_columns, n_rows))
    rows = np.linalg.solve(np.linalg.cholesky(precision).T, noise).T
    return pd.DataFrame(rows, columns=[f"x{k}" for k in range(n_columns)]), frozenset(pairs)


def f1(found: frozenset[Pair], truth: frozenset[Pair]) -> float:
    """Of a graph; one for an empty graph where the true one is empty."""
    return 2.0 * len(found & truth) / (len(found) + len(truth)) if found or truth else 1.0


def fitted(frame: pd.DataFrame, select: str) -> tuple[FittedModel, float]:
    """The fit of a table, and its processor seconds."""
    before = sum(os.times()[:4])
    model = mg.MixedGraphicalModel(select=select, n_jobs=1).fit(frame)
    return model.fitted_, sum(os.times()[:4]) - before


def pairs_of(ends: Iterable[tuple[str, str]]) -> frozenset[Pair]:
    """Places of columns from their names."""
    places = ((int(a[1:]), int(b[1:])) for a, b in ends)
    return frozenset((min(pair), max(pair)) for pair in places)


def counted(name: str, seed: int) -> dict[str, object]:
    """A table by the default and by EBIC."""
    frame, truth = drawn(name, seed)
    warnings.simplefilter("ignore", mg.SelectionWarning)
    for select in ("local-fdr", "ebic"):  # compiles what both call
        fitted(frame.iloc[:, :160], select)
    chosen, seconds = fitted(frame, "local-fdr")
    ebic, seconds_ebic = fitted(frame, "ebic")
    graph, other = (
        pairs_of((edge.source, edge.target) for edge in model.edges) for model in (chosen, ebic)
    )
    path = ebic.path
    on_path = (pairs_of((e[0], e[1]) for e in path.edges(k)) for k in range(len(path)))
    return {
        "setting": name,
        "seed": seed,
        "edges": len(truth),
        "seconds": f"{seconds:.3f}",
        "seconds_ebic": f"{seconds_ebic:.3f}",
        "f1": f"{f1(graph, truth):.4f}",
        "f1_ebic": f"{f1(other, truth):.4f}",
        "f1_best": f"{max(f1(g, truth) for g in on_path):.4f}",
        "found": len(graph),
        "false": len(graph - truth),
        "said": "" if chosen.expected_false is None else f"{chosen.expected_false:.3f}",
        "false_ebic": len(other - truth),
    }


def stored(file: Path) -> pd.DataFrame:
    """Everything counted so far."""
    return pd.read_csv(file) if file.exists() else pd.DataFrame(columns=FIELDS)


def run(file: Path, settings: list[str], n_tables: int, n_jobs: int) -> None:
    """Count what the file does not have yet."""
    known = stored(file)
    done = set(zip(known["setting"], known["seed"], strict=True))
    left = [(name, s) for s in range(n_tables) for name in settings if (name, s) not in done]
    with ProcessPoolExecutor(n_jobs) as pool:
        waiting = [pool.submit(counted, *each) for each in left]
        for each in as_completed(waiting):
            is_new = not file.exists()
            with file.open("a", newline="") as out:
                writer = csv.DictWriter(out, FIELDS)
                if is_new:
                    writer.writeheader()
                writer.writerow(each.result())


def report(file: Path) -> str:
    """Means over tables, as a table of Markdown."""
    known = stored(file)
    lines = [
        "| setting | tables | seconds / EBIC | F1 | EBIC | best on the path | false | said |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in SETTINGS:
        some = known[known["setting"] == name]
        if some.empty:
            continue
        ratio = some["seconds"].sum() / some["seconds_ebic"].sum()
        mean = some[["f1", "f1_ebic", "f1_best", "false", "said"]].mean()
        lines.append(
            f"| {name} | {len(some)} | {ratio:.1f} | {mean['f1']:.3f} | {mean['f1_ebic']:.3f} | "
            f"{mean['f1_best']:.3f} | {mean['false']:.1f} | {mean['said']:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Count, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("settings", nargs="*", default=list(SETTINGS), metavar="setting")
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    if not given.report:
        run(given.file, given.settings, given.tables, given.jobs)
    sys.stdout.write(report(given.file) + "\n")


if __name__ == "__main__":
    main()
