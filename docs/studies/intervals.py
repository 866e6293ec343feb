"""Tables drawn from known models -> how often bootstrap intervals of all pairs cover true values.

Ten columns of all five kinds with the graph of a ladder or a random one, the same with categories
whose rarest level has about 3 % of the rows, and thirty such columns.  Tables are drawn by
`gibbs.py`, which shares no code with the package.  An interval counts for every coefficient of
every pair that may have an edge, those of true edges and of absent ones apart; all coefficients of
a pair together count once.

Run it when the bootstrap or refits change: ``python docs/studies/intervals.py``.  It takes about
forty minutes on one core, writes docs/studies/intervals.csv row by row, goes on where that ends,
and prints the table of docs/guide.md.
"""

import argparse
import csv
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import gibbs
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

import mixedgm as mg

FILE = Path(__file__).with_suffix(".csv")
REPLICATES, RESAMPLES, LEVEL = 100, 200, 0.95
SIZES = (0.2, 0.4)
SMALLEST = 0.15  # eigenvalue of a precision matrix
FEWEST = 0.02  # share of rows of a level
LAM = 1.0  # of the model, whose own edges play no part in the intervals

Floats = NDArray[np.float64]
Blocks = dict[tuple[int, int], Floats]


def spiked(zeros: float, mean: float = 3.0) -> gibbs.Hurdle:
    """A share of zeros, and normal numbers of this mean and of variance 1."""
    log_odds = np.log((1 - zeros) / zeros)
    return gibbs.Hurdle(log_odds - 0.5 * (np.log(2 * np.pi) + mean**2), mean)


NUMBER, AMOUNT = ("continuous", gibbs.Gaussian()), ("hurdle", spiked(0.4))
SCORE = ("ordinal", gibbs.ordinal(-0.35 * (np.arange(5) - 2.0) ** 2))
COUNT = ("count", gibbs.count(0.0, np.log(3.0), largest=60))
THREE, TWO = (("categorical", gibbs.categorical(np.zeros(levels))) for levels in (3, 2))
RARE_OF_THREE, RARE_OF_TWO = (
    ("categorical", gibbs.categorical(np.log(shares)))
    for shares in ((0.57, 0.40, 0.03), (0.97, 0.03))
)


def ten(three: tuple[str, gibbs.Column], two: tuple[str, gibbs.Column]) -> tuple:
    """Columns of all kinds, with these categories."""
    return (NUMBER, AMOUNT, SCORE, COUNT, three, NUMBER, two, SCORE, COUNT, three)


COMMON, RARE = ten(THREE, TWO), ten(RARE_OF_THREE, RARE_OF_TWO)


@dataclass(frozen=True)
class Setting:
    """Columns and their graph."""

    columns: tuple[tuple[str, gibbs.Column], ...]
    ladder: bool
    rows: tuple[int, ...]
    share: float = 1.0
    """Of the tables that are drawn."""


SETTINGS = {
    "ladder": Setting(COMMON, ladder=True, rows=(300, 1000)),
    "random graph": Setting(COMMON, ladder=False, rows=(300, 1000)),
    "random graph, rare levels": Setting(RARE, ladder=False, rows=(300, 1000)),
    "random graph, 30 columns": Setting(3 * COMMON, ladder=False, rows=(300,), share=0.4),
}


# -- tables ----------------------------------------------------------------------------------------


def standardised(column: gibbs.Column) -> Floats:
    """What takes T of a column to standard units."""
    mean, scale = column.independent()
    if not isinstance(column, gibbs.Hurdle):
        return np.eye(column.width) / scale
    share, amount = mean[0], mean[1] / mean[0]
    return np.array([[1 / np.sqrt(share * (1 - share)), 0.0], [-amount, 1.0]])


def has_levels(column: gibbs.Column) -> bool:
    """Whether others see indicators of it."""
    return column.width > 1 and not isinstance(column, gibbs.Hurdle)


def centred(block: Floats, ends: tuple[gibbs.Column, gibbs.Column]) -> Floats:
    """The block with coefficients of levels that sum to zero."""
    for axis, end in enumerate(ends):
        if has_levels(end):
            block = block - block.mean(axis=axis, keepdims=True)
    return block


def blocks_of(setting: Setting, rng: np.random.Generator) -> Blocks:
    """Edges of random sizes, and of random directions where they have many entries."""
    columns = [column for _, column in setting.columns]
    n, half = len(columns), len(columns) // 2
    if setting.ladder:
        edges = [(k, k + 1) for k in range(n - 1) if k + 1 != half]
        edges += [(k, half + k) for k in range(half)]
    else:
        pairs = np.array([(u, v) for v in range(n) for u in range(v)])
        edges = [tuple(pair) for pair in rng.permutation(pairs)[: round(1.3 * n)].tolist()]
    blocks = {}
    for u, v in edges:
        ends = columns[u], columns[v]
        direction = np.ones((1, 1))
        if ends[0].width + ends[1].width > 2:
            direction = centred(rng.standard_normal((ends[0].width, ends[1].width)), ends)
        direction *= rng.choice([-1, 1]) * rng.uniform(*SIZES) / np.linalg.norm(direction)
        blocks[u, v] = standardised(ends[0]).T @ direction @ standardised(ends[1])
    return blocks


def is_fair(setting: Setting, blocks: Blocks) -> bool:
    """Whether the precision matrix of numbers and amounts is far from singular."""
    numbers = [not isinstance(column, gibbs.Finite) for _, column in setting.columns]
    precision = np.eye(len(numbers))
    for (u, v), block in blocks.items():
        if numbers[u] and numbers[v]:
            precision[u, v] = precision[v, u] = -block[-1, -1]
    return bool(np.linalg.eigvalsh(precision)[0] > SMALLEST)


def drawn(setting: Setting, n_rows: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Blocks]:
    """A table whose levels, and zeros of hurdle columns, all have rows; and its edges."""
    while True:
        blocks = blocks_of(setting, rng)
        if not is_fair(setting, blocks):
            continue
        values = gibbs.rows([column for _, column in setting.columns], blocks, n_rows, rng)
        table, fair = pd.DataFrame(index=range(n_rows)), True
        for k, (kind, column) in enumerate(setting.columns):
            own = values[:, k]
            is_whole = isinstance(column, gibbs.Finite)
            table[f"v{k:02d}"] = own.astype(np.int64) if is_whole else own
            if has_levels(column):
                fair &= np.bincount(own.astype(int), minlength=column.width).min() > FEWEST * n_rows
            elif kind == "hurdle":
                fair &= 0.1 < np.mean(own == 0.0) < 0.9
        if fair:
            return table, blocks


# -- coverage --------------------------------------------------------------------------------------


def truth(
    setting: Setting, blocks: Blocks, model: mg.MixedGraphicalModel
) -> dict[tuple[str, str], Floats]:
    """True coefficients of edges as `parameters()` has them, by source and target."""
    columns = [column for _, column in setting.columns]
    found = {}
    for (u, v), block in blocks.items():
        entries = centred(block, (columns[u], columns[v]))
        for axis, name in enumerate((f"v{u:02d}", f"v{v:02d}")):
            node = model.schema_.nodes[model.schema_.node_index(name)]
            if node.kind == "hurdle":  # amounts are counted from their mean in the table
                entries = np.moveaxis(entries, axis, 0).copy()
                entries[0] += node.location * entries[1]
                entries = np.moveaxis(entries, 0, axis)
        found[f"v{u:02d}", f"v{v:02d}"], found[f"v{v:02d}", f"v{u:02d}"] = entries, entries.T
    return found


def covered(name: str, n_rows: int, seed: int, n_boot: int = RESAMPLES) -> dict[str, object]:
    """Shares of coefficients that are covered, summed over true edges and over absent ones."""
    setting = SETTINGS[name]
    table, blocks = drawn(setting, n_rows, np.random.default_rng([seed, n_rows, *name.encode()]))
    types = {f"v{k:02d}": kind for k, (kind, _) in enumerate(setting.columns)}
    model = mg.MixedGraphicalModel(types=types, lam=LAM, refit=False, n_jobs=1).fit(table)
    result = mg.bootstrap(model, table, n_boot, random_state=seed, n_jobs=1)
    known = truth(setting, blocks, model)
    counts = dict.fromkeys(("true", "true_covered", "absent", "absent_covered", "open"), 0.0)
    parameters = result.parameters(LEVEL).query("parameter == 'interaction'")
    for pair, part in parameters.groupby(["source", "target"], sort=False):
        value = known[pair].ravel() if pair in known else 0.0
        if part["lower"].isna().any():
            counts["open"] += 1
            continue
        share = np.mean((part["lower"] <= value) & (value <= part["upper"]))
        which = "true" if pair in known else "absent"
        counts[which] += 1
        counts[f"{which}_covered"] += share
    return {
        "tables": name,
        "rows": n_rows,
        "seed": seed,
        "given": result.pair_replicates.method,
        **{what: round(float(count), 6) for what, count in counts.items()},
    }


FIELDS = ("tables", "rows", "seed", "given", "true", "true_covered", "absent", "absent_covered")
FIELDS = (*FIELDS, "open")


def run(tables: int) -> None:
    """Count in every table that the file does not have yet."""
    done = set()
    if FILE.exists():
        known = pd.read_csv(FILE)
        done = set(zip(known["tables"], known["rows"], known["seed"], strict=True))
    tasks = [
        (name, n_rows, seed)
        for seed in range(tables)
        for name, setting in SETTINGS.items()
        for n_rows in setting.rows
        if seed < setting.share * tables
    ]
    with FILE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if stream.tell() == 0:
            writer.writeheader()
        for task in tqdm([task for task in tasks if task not in done], unit="table"):
            writer.writerow(covered(*task))
            stream.flush()


def cell(part: pd.DataFrame, which: str) -> str:
    """Mean coverage over tables and its standard error, in per cent."""
    shares = 100 * part[f"{which}_covered"] / part[which]
    return f"{shares.mean():.1f} ± {shares.sem():.1f}"


def report() -> None:
    """Print the table of the page, of what is counted so far."""
    lines = ["| tables | rows | given | true edges | absent edges | all pairs | no interval |"]
    lines += ["| --- | --- | --- | --- | --- | --- | --- |"]
    counts = pd.read_csv(FILE)
    counts["all"] = counts["true"] + counts["absent"]
    counts["all_covered"] = counts["true_covered"] + counts["absent_covered"]
    for (name, n_rows), part in counts.groupby(["tables", "rows"], sort=False):
        given = {"free": "all others", "graph": "edges that pass"}
        words = " / ".join(given[method] for method in part["given"].unique())
        cells = [cell(part, which) for which in ("true", "absent", "all")]
        lost = 100 * part["open"].sum() / (part["open"] + part["all"]).sum()
        cells.append(f"{lost:.1f}")
        lines.append(f"| {name} ({len(part)}) | {n_rows:,} | {words} | {' | '.join(cells)} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=REPLICATES)
    warnings.simplefilter("ignore", mg.TableWarning)
    run(parser.parse_args().tables)
    report()
