"""Tables drawn from known graphs -> what variances by empirical Bayes do for the estimates.

The default graph is estimated twice: as it is by default, with edges of several parameters shrunken
by the variance of their coefficients (`select/error_rates.py`), and without shrinkage, but
for a ridge worth one row where the data do not determine an edge.  Compared are the mean log
pseudolikelihood of 4,000 other rows, and the coefficients of true edges that were found: the root
of their mean squared error, and the largest of a table.

Run it when the refit changes: ``python docs/studies/shrinkage.py``.  It takes about a quarter of an
hour on one core, writes docs/studies/shrinkage.csv row by row, goes on where that ends, and prints
the table of docs/selection.md.  A folder as argument adds the tables of Parquet files there, with
rows held out; their true coefficients are not known.
"""

import csv
import sys
import warnings
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from unittest.mock import patch

import default
import gibbs
import kinds
import numpy as np
import pandas as pd
from default import NUMBER, VARIOUS, Column, Floats, Generator, Graph, Pair, levels, random
from refit import tables

import mixedgm as mg

TABLES, OTHER_ROWS, SPLITS = 5, 4000, 2
FILE = Path(__file__).with_suffix(".csv")
FIELDS = (
    *("tables", "rows", "seed", "edges", "open"),
    *(f"{what}_{how}" for what in ("score", "error", "largest") for how in ("default", "plain")),
)
Setting = tuple[int, tuple[Column, ...], Graph, tuple[float, float]]

SETTINGS: dict[str, Setting] = {
    "hubs, rare levels, 10 + 10": (
        *(1000, (NUMBER,) * 10 + levels(*(3,) * 10, rarest=0.025), default.hubs(4)),
        (0.28, 0.45),
    ),
    "rare levels, 8 + 8": (
        *(500, (NUMBER,) * 8 + levels(*(4,) * 8, rarest=0.03), random(16)),
        (0.2, 0.45),
    ),
    "rare levels, strong edges, 5 + 8": (
        *(300, (NUMBER,) * 5 + levels(*(4,) * 8, rarest=0.02), random(14)),
        (0.4, 0.9),
    ),
    "two to nine levels, 8 + 8": (
        *(1000, (NUMBER,) * 8 + levels(*VARIOUS), random(20)),
        (0.15, 0.5),
    ),
    "nine levels, 5 + 5": (2000, (NUMBER,) * 5 + levels(*(9,) * 5), random(12), (0.15, 0.5)),
    "scale-free 15 + 15": (
        *(500, (NUMBER,) * 15 + levels(*(2, 2, 3, 4, 5) * 3), default.scale_free),
        (0.25, 0.45),
    ),
    "random 10 + 10": (500, (NUMBER,) * 10 + levels(*(3,) * 10), random(20), (0.15, 0.4)),
    "strong and sparse, 10 + 10": (
        *(300, (NUMBER,) * 10 + levels(*(3,) * 10), random(8)),
        (0.5, 0.8),
    ),
}


def drawn(setting: Setting, rng: Generator) -> tuple[Floats, dict[Pair, Floats]]:
    """Rows of the table and other ones, and the blocks of the edges."""
    n_rows, columns, graph, sizes = setting
    types, nodes = [kind for kind, _ in columns], [column for _, column in columns]
    n_numbers = types.count("continuous")
    while True:
        pairs = graph(len(nodes), rng)
        blocks = {
            (u, v): kinds.block(nodes[u], nodes[v], rng.choice([-1, 1]) * size, rng)
            for (u, v), size in zip(pairs, rng.uniform(*sizes, len(pairs)), strict=True)
        }
        precision = np.eye(n_numbers)
        for u, v in combinations(range(n_numbers), 2):
            if (u, v) in blocks:
                precision[u, v] = precision[v, u] = -blocks[u, v][0, 0]
        if np.linalg.eigvalsh(precision)[0] < 0.15:
            continue
        values = gibbs.rows(nodes, blocks, n_rows + OTHER_ROWS, rng, sweeps=60)
        if default.all_seen(values[:n_rows], types):
            return values, blocks


def both(table: pd.DataFrame, **options: object) -> dict[str, mg.MixedGraphicalModel]:
    """The default fit, and the same graph without shrinkage."""
    whole = mg.MixedGraphicalModel(n_jobs=1, **options).fit(table)
    with patch("mixedgm.select.error_rates.block_variances", no_variances):
        plain = mg.MixedGraphicalModel(n_jobs=1, **options).fit(table)
    assert {(e.source, e.target) for e in whole.edges_} == {
        (e.source, e.target) for e in plain.edges_
    }
    return {"default": whole, "plain": plain}


def no_variances(estimates, graph):
    """Return infinite variances, which shrink nothing."""
    return np.full(estimates.layout.n_groups, np.inf)


def errors(
    model: mg.MixedGraphicalModel, kind: dict[str, str], blocks: dict[Pair, Floats]
) -> dict[str, float]:
    """Of coefficients of true edges that the model has, and the largest of these."""
    names, squares, largest = list(kind), [], 0.0
    found = {frozenset((edge.source, edge.target)) for edge in model.edges_}
    for (u, v), block in blocks.items():
        ends = names[u], names[v]
        if frozenset(ends) not in found:
            continue
        estimate = model.interaction(*ends).to_numpy().reshape(block.shape)
        parts = [estimate, np.array(block)]
        for axis, end in enumerate(ends):
            if kind[end] == "categorical":
                parts = [part - part.mean(axis=axis, keepdims=True) for part in parts]
        squares.append(((parts[0] - parts[1]) ** 2).ravel())
        largest = max(largest, float(np.abs(parts[0]).max()))
    return {"error": float(np.sqrt(np.concatenate(squares).mean())), "largest": largest}


def of_setting(name: str, seed: int) -> dict[str, object]:
    """Fit one table both ways."""
    rng = np.random.default_rng([seed, *name.encode()])
    n_rows, columns, *_ = SETTINGS[name]
    values, blocks = drawn(SETTINGS[name], rng)
    types = tuple(kind for kind, _ in columns)
    table = default.Table(values.round(default.DECIMALS), types, frozenset(blocks))
    frame, row = table.frame, {}
    for how, model in both(frame[:n_rows], types=table.types).items():
        found = {"score": model.score(frame[n_rows:]), **errors(model, table.types, blocks)}
        row |= {f"{what}_{how}": round(value, 5) for what, value in found.items()}
        row |= {"edges": len(model.edges_), "open": len(model.fitted_.report.ridge)}
    return row


def of_split(table: pd.DataFrame, n_rows: int, seed: int) -> dict[str, object]:
    """Fit some rows of a table both ways, and score others."""
    order = np.random.default_rng(seed).permutation(len(table))
    train, test = table.iloc[order[:n_rows]], table.iloc[order[n_rows : n_rows + OTHER_ROWS]]
    varies, row = train.columns[train.nunique() > 1], {}
    for how, model in both(train[varies]).items():
        row |= {f"score_{how}": round(model.score(test[varies]), 5)}
        row |= {"edges": len(model.edges_), "open": len(model.fitted_.report.ridge)}
    return row


def tasks(folder: str | None) -> Iterator[tuple[str, int, int, object]]:
    """Name, rows and seed of every table, and the table where it is not drawn."""
    for seed in range(TABLES):
        for name, (n_rows, *_) in SETTINGS.items():
            yield name, n_rows, seed, None
    for seed in range(SPLITS):
        for name, table in tables(folder):
            for n_rows in (300, 1000):
                yield name, n_rows, seed, table


def run(folder: str | None) -> None:
    """Fit every table that the file does not have yet."""
    done = set()
    if FILE.exists():
        known = pd.read_csv(FILE)
        done = set(zip(known["tables"], known["rows"], known["seed"], strict=True))
    with FILE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for name, n_rows, seed, table in tasks(folder):
            if (name, n_rows, seed) in done:
                continue
            found = of_setting(name, seed) if table is None else of_split(table, n_rows, seed)
            writer.writerow({"tables": name, "rows": n_rows, "seed": seed, **found})
            stream.flush()


def report() -> None:
    """Print means over tables, with the standard errors of differences."""
    found = pd.read_csv(FILE)
    heads = "tables, rows, number, edges, open, gain in score, error, plain, largest, plain"
    lines = ["| " + heads.replace(",", " |") + " |", "| --- " * len(heads.split(",")) + "|"]
    for (name, n_rows), part in found.groupby(["tables", "rows"], sort=False):
        gain = part["score_default"] - part["score_plain"]
        cells = [name, f"{n_rows:,}", str(len(part))]
        cells += [f"{part['edges'].mean():.1f}", f"{part['open'].mean():.1f}"]
        cells += [f"{gain.mean():+.3f} ± {gain.std() / np.sqrt(len(part)):.3f}"]
        for what in ("error_default", "error_plain", "largest_default", "largest_plain"):
            cells += [f"{part[what].mean():.2f}" if part[what].notna().any() else ""]
        lines.append("| " + " | ".join(cells) + " |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--report" not in sys.argv:
        run(sys.argv[1] if len(sys.argv) > 1 else None)
    report()
