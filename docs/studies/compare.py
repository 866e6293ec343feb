"""Tables of two groups from known graphs -> how often `compare` says that they differ.

Groups with the same edges should be told apart in 5 % of the tables, whether they have the same
means, variances and shares or not.  Where one edge differs, the tests of differences should find it
at least as often as Fisher's test of two partial correlations does, on the same tables.

Tables come from `gibbs.py` and NumPy, which share no code with the package.  Run it when `compare`
or estimates of pairs change: ``python docs/studies/compare.py``.  It takes about forty minutes on
one core, writes docs/studies/compare.csv row by row, goes on where that ends, and prints the tables
of docs/guide.md.
"""

import csv
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import gibbs
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm
from tqdm import tqdm

import mixedgm as mg

TABLES, PERMUTED = 200, 80  # tables of a setting, and those that are permuted as well
PERMUTATIONS = 99
TESTS = ("differences", "permutation")
LEVEL = 0.05
FILE = Path(__file__).with_suffix(".csv")
FIELDS = (
    *("tables", "rows", "seed", "test", "pairs", "pairs_rejected", "largest", "strength"),
    *("variance", "pair_p", "pair_p_max", "fisher_p", "fisher_rejected", "effective"),
)

Floats = NDArray[np.float64]
Generator = np.random.Generator
Table = tuple[Floats, Floats]

NUMBER = gibbs.Gaussian()
MIXED = (
    *(NUMBER, NUMBER, NUMBER),
    *(
        gibbs.categorical([0.0, 0.0]),
        gibbs.categorical([0.0, 0.0, 0.0]),
        gibbs.categorical([0, 0.3]),
    ),
)
MIXED_APART = (
    *(gibbs.Gaussian(0.8, 1.4), gibbs.Gaussian(-0.5, 1.0), NUMBER),
    *(gibbs.categorical([0, -1]), gibbs.categorical([0, -0.8, 0.5]), gibbs.categorical([0, 1])),
)
MIXED_KINDS = ("continuous",) * 3 + ("categorical",) * 3
MIXED_EDGES = [(0, 1), (1, 2), (0, 3), (2, 4), (3, 5), (3, 4)]
EVERY = (
    *(NUMBER, NUMBER, gibbs.categorical([0.0, 0.0]), gibbs.categorical([0.0, 0.0, 0.0])),
    gibbs.ordinal(-0.35 * (np.arange(5) - 2.0) ** 2),
    gibbs.count(0.0, np.log(2.5), largest=40),
    gibbs.Hurdle(-0.5 * (np.log(2 * np.pi) + 9.0), 3.0),  # half of it zero, else around 3
)
EVERY_APART = (
    *(gibbs.Gaussian(0.8, 1.4), gibbs.Gaussian(-0.5, 1.0)),
    *(gibbs.categorical([0, -1]), gibbs.categorical([0, -0.8, 0.5])),
    gibbs.ordinal(-0.35 * (np.arange(5) - 1.2) ** 2),
    gibbs.count(0.0, np.log(3.5), largest=40),
    gibbs.Hurdle(-0.5 * (np.log(2 * np.pi) + 9.0) + 0.8, 3.0),
)
EVERY_KINDS = (
    *("continuous", "continuous", "categorical", "categorical", "ordinal", "count", "hurdle"),
)
EVERY_EDGES = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 4), (3, 5), (4, 5), (1, 6), (5, 6)]
SIZE = 0.35
N_GAUSSIAN, PAIR, FOUND = 8, (0, 5), 0.25


def precision(edge: float, diagonal: float = 1.0) -> Floats:
    """Of eight numbers: a chain, weaker edges three columns on, and one edge between 0 and 5."""
    matrix = diagonal * np.eye(N_GAUSSIAN)
    for k in range(N_GAUSSIAN - 1):
        matrix[k, k + 1] = matrix[k + 1, k] = -0.3
    for k in range(N_GAUSSIAN - 3):
        matrix[k, k + 3] = matrix[k + 3, k] = -0.15
    matrix[PAIR] = matrix[PAIR[::-1]] = -edge
    return matrix


def normal_rows(matrix: Floats, mean: float, n: int, rng: Generator) -> Floats:
    """Rows with this precision."""
    return rng.multivariate_normal(np.full(len(matrix), mean), np.linalg.inv(matrix), n)


def gaussian(n: int, rng: Generator) -> Table:
    """The same distribution twice."""
    first, second = (normal_rows(precision(0.0), 0.0, n, rng) for _ in range(2))
    return first, second


def gaussian_apart(n: int, rng: Generator) -> Table:
    """The same edges; the second group is one higher and narrower in all columns."""
    narrow = precision(0.0, diagonal=1.4)
    return normal_rows(precision(0.0), 0.0, n, rng), normal_rows(narrow, 1.0, n, rng)


def one_edge(n: int, rng: Generator) -> Table:
    """One edge that the first group lacks; all columns have variance one in both groups."""
    tables = []
    for edge in (0.0, FOUND):
        covariance = np.linalg.inv(precision(edge))
        spread = np.sqrt(np.diagonal(covariance))
        rows = rng.multivariate_normal(
            np.zeros(N_GAUSSIAN), covariance / np.outer(spread, spread), n
        )
        tables.append(rows)
    return tables[0], tables[1]


def one_edge_same_noise(n: int, rng: Generator) -> Table:
    """The same, with equal diagonals of the precision instead of equal variances."""
    first, second = (normal_rows(precision(edge), 0.0, n, rng) for edge in (0.0, FOUND))
    return first, second


def blocks(columns: tuple[gibbs.Column, ...], edges: list[tuple[int, int]]) -> dict[object, Floats]:
    """Edges of one size in directions that are the same in all tables."""
    rng, out = np.random.default_rng(1), {}
    for u, v in edges:
        block = rng.standard_normal((columns[u].width, columns[v].width))
        for axis, end in enumerate((columns[u], columns[v])):
            if isinstance(end, gibbs.Finite) and end.width > 1:
                block -= block.mean(axis=axis, keepdims=True)
        units = [columns[end].independent()[1] for end in (u, v)]
        out[u, v] = SIZE * block / np.linalg.norm(block) / np.prod(units)
    return out


def of_columns(
    first: tuple[gibbs.Column, ...],
    second: tuple[gibbs.Column, ...],
    edges: list[tuple[int, int]],
) -> Callable[[int, Generator], Table]:
    """Two groups with the same edges and the own terms of these columns."""
    same = blocks(first, edges)

    def drawn(n: int, rng: Generator) -> Table:
        a, b = (gibbs.rows(columns, same, n, rng, sweeps=40) for columns in (first, second))
        return a, b

    return drawn


@dataclass(frozen=True)
class Setting:
    """How tables are drawn, and the kinds of their columns."""

    draw: Callable[[int, Generator], Table]
    kinds: tuple[str, ...]
    rows: tuple[int, ...] = (200, 600)
    differs: bool = False
    tables: int = TABLES
    permuted: int = PERMUTED


NUMBERS = ("continuous",) * N_GAUSSIAN
SETTINGS = {
    "Gaussian": Setting(gaussian, NUMBERS),
    "Gaussian, other margins": Setting(gaussian_apart, NUMBERS, (60, 200, 600)),
    "mixed": Setting(of_columns(MIXED, MIXED, MIXED_EDGES), MIXED_KINDS),
    "mixed, other margins": Setting(of_columns(MIXED, MIXED_APART, MIXED_EDGES), MIXED_KINDS),
    "every kind": Setting(of_columns(EVERY, EVERY, EVERY_EDGES), EVERY_KINDS, permuted=30),
    "every kind, other margins": Setting(
        of_columns(EVERY, EVERY_APART, EVERY_EDGES), EVERY_KINDS, permuted=30
    ),
    "one edge, equal variances": Setting(one_edge, NUMBERS, (200,), differs=True, tables=300),
    "one edge, equal noise": Setting(
        one_edge_same_noise, NUMBERS, (200,), differs=True, permuted=0
    ),
}


def fisher(a: Floats, b: Floats) -> Floats:
    """(columns, columns) p-values of Fisher's test of two partial correlations."""
    z = []
    for rows in (a, b):
        inverse = np.linalg.inv(np.cov(rows.T))
        unit = np.sqrt(np.diagonal(inverse))
        partial = np.clip(-inverse / np.outer(unit, unit), -0.999999, 0.999999)
        z.append(np.arctanh(partial) * np.sqrt((len(rows) - N_GAUSSIAN - 1) / 2.0))
    return np.asarray(2.0 * norm.sf(np.abs(z[0] - z[1])))


def compared(title: str, n_rows: int, seed: int, test: str) -> dict[str, object]:
    """Draw one table and compare its groups."""
    setting = SETTINGS[title]
    rng = np.random.default_rng([seed, n_rows, *title.encode()])
    a, b = setting.draw(n_rows, rng)
    names = [f"v{k}" for k in range(a.shape[1])]
    table = pd.DataFrame(np.vstack([a, b]), columns=names)
    for name, kind in zip(names, setting.kinds, strict=True):
        if kind in ("categorical", "ordinal", "count"):
            table[name] = table[name].astype(np.int64)
    found = mg.compare(
        table,
        np.repeat(["a", "b"], n_rows),
        types=dict(zip(names, setting.kinds, strict=True)),
        test=test,
        n_perm=PERMUTATIONS if test == "permutation" else None,
        lam=None if test == "permutation" else 0.5,  # tests of differences do not depend on it
        random_state=seed,
        n_jobs=1,
    )
    edges, tests = found.edges(), found.tests()["p"].to_numpy()
    row: dict[str, object] = {
        "tables": title,
        "rows": n_rows,
        "seed": seed,
        "test": test,
        "pairs": found.n_pairs,
        "pairs_rejected": int((edges["p"] <= LEVEL).sum()),
        **dict(zip(("largest", "strength", "variance"), tests.round(4), strict=False)),
        "effective": round(float(min(found.effective_rows)), 1),
    }
    if setting.kinds == NUMBERS:
        p, upper = fisher(a, b), np.triu_indices(N_GAUSSIAN, 1)
        ends = edges[["source", "target"]].to_numpy().tolist()
        at = [k for k, pair in enumerate(ends) if {*pair} == {f"v{k}" for k in PAIR}]
        row |= {
            "pair_p": edges["p"][at[0]] if at else 1.0,
            "pair_p_max": edges["p_max"][at[0]] if at else 1.0,
            "fisher_p": p[PAIR],
            "fisher_rejected": int((p[upper] <= LEVEL).sum()),
        }
    return row


def run() -> None:
    """Compare every table that the file does not have yet."""
    done = set()
    if FILE.exists():
        known = pd.read_csv(FILE)
        done = set(zip(known["tables"], known["rows"], known["seed"], known["test"], strict=True))
    tasks, most = [], max(setting.tables for setting in SETTINGS.values())
    for test, seed, (title, setting) in product(TESTS, range(most), SETTINGS.items()):
        count = setting.tables if test == "differences" else setting.permuted
        tasks += [(title, n, seed, test) for n in setting.rows if seed < count]
    tasks = [task for task in tasks if task not in done]
    with FILE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for task in tqdm(tasks, unit="table"):
            writer.writerow(compared(*task))
            stream.flush()


def share(values: "pd.Series[float]") -> str:
    """Share of p-values that are at most the level, in per cent."""
    return f"{100 * (values <= LEVEL).mean():.1f} %"


def line(cells: Iterable[object]) -> str:
    """One row of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def alarms(part: pd.DataFrame) -> list[str]:
    """How many tables, and how often pairs and whole graphs are called different."""
    pairs = 100 * part["pairs_rejected"].sum() / part["pairs"].sum()
    whole = [share(part[name]) for name in ("largest", "strength", "variance")]
    return [str(len(part)), f"{pairs:.1f} %", *whole]


def report() -> None:
    """Print the tables of the page, of what is done so far."""
    counts = pd.read_csv(FILE)
    tests = {test: counts[counts["test"] == test] for test in TESTS}
    head = ("groups with the same edges", "rows each", "tables", "a pair")
    lines = [line((*head, "largest", "strength", "variance")), "| --- " * 7 + "|"]
    same = {title: setting for title, setting in SETTINGS.items() if not setting.differs}
    for title, setting in same.items():
        for n_rows in setting.rows:
            of = tests["differences"]
            part = of[(of["tables"] == title) & (of["rows"] == n_rows)]
            lines.append(line((f"differences: {title}", n_rows, *alarms(part))))
    for margins in ("the same margins", "other margins"):
        named = [title for title in same if title.endswith("margins") == (margins[0] == "o")]
        part = tests["permutation"][tests["permutation"]["tables"].isin(named)]
        lines.append(line((f"permutation: {margins}", "60 to 600", *alarms(part))))
    lines += ["", "| one edge differs | test | tables | found | among all pairs | Fisher |"]
    lines.append("| --- " * 6 + "|")
    for title, test in product(sorted(SETTINGS.keys() - same.keys()), TESTS):
        part = tests[test][tests[test]["tables"] == title]
        if len(part):
            found = [share(part[name]) for name in ("pair_p", "pair_p_max", "fisher_p")]
            lines.append(line((title, test, len(part), *found)))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore", mg.TableWarning)  # whole numbers taken as continuous
    warnings.simplefilter("ignore", mg.SelectionWarning)
    run()
    report()
