"""Tables drawn from known graphs -> how often `check_fit` flags them, and whether it says why.

A right graph should be flagged in 5 % of the tables, whatever the kinds of its columns, also with
normal scores and given covariates.  Then tables are spoiled in one place each: an edge is left out,
a column is skewed or has heavy tails, a relation bends with an ordinal column, a spread depends on
a category, the effect of one column depends on another.  Counted is how often anything is flagged,
and how often the right column or pair with the right meaning.

Tables come from `gibbs.py`, which shares no code with the package.  Run it when the check, its
statistics or refits change: ``python docs/studies/check.py``.  It takes about an hour on one core,
writes docs/studies/check.csv row by row, goes on where that ends, and prints the table of
docs/selection.md.
"""

import csv
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path
from time import perf_counter
from typing import Any

import gibbs
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

import mixedgm as mg

REPLICATES = 100
SPOILED = 30  # of spoiled tables and of chosen graphs, for each number of rows
ROWS = (300, 1000)
SIMULATED = 59  # 3 of 60 tables are 5 %, exactly
SIZES = (0.25, 0.45)
SMALLEST = 0.2  # eigenvalue of the precision matrix of numbers and amounts
FILE = Path(__file__).with_suffix(".csv")
FIELDS = ("tables", "rows", "seed", "flagged", "named", "p", "meanings", "seconds")

Floats = NDArray[np.float64]
Generator = np.random.Generator
Edges = list[tuple[int, int]]

NUMBER, BINARY = gibbs.Gaussian(), gibbs.categorical(np.zeros(2))
THREE, FOUR = gibbs.categorical(np.zeros(3)), gibbs.categorical([0.0, -0.5, -1.0, 0.3])
LIKERT = gibbs.ordinal(-0.35 * (np.arange(5) - 2.0) ** 2)
SKEWED = gibbs.ordinal(-0.5 * np.arange(4))
VISITS = gibbs.count(0.0, np.log(2.5), largest=40)
DEBT = gibbs.Hurdle(-0.5 * (np.log(2 * np.pi) + 9.0), 3.0)  # half of it zero, else around 3

MIXED = (NUMBER, NUMBER, LIKERT, SKEWED, VISITS, DEBT, THREE, BINARY)
KINDS = ("continuous",) * 2 + ("ordinal",) * 2 + ("count", "hurdle") + ("categorical",) * 2
# Hurdle columns are drawn by chains, which takes half of the time: spoiled tables have none.
PLAIN = (NUMBER, NUMBER, LIKERT, SKEWED, VISITS, NUMBER, THREE, BINARY)
PLAIN_KINDS = tuple("continuous" if kind == "hurdle" else kind for kind in KINDS)
LADDER = (NUMBER,) * 4 + (BINARY, THREE, BINARY, FOUR)
LADDER_KINDS = ("continuous",) * 4 + ("categorical",) * 4
Y, X, ORDINAL, CATEGORY = 0, 1, 2, 6  # columns of mixed tables that are spoiled
GIVEN = (X, CATEGORY)  # covariates


def name(column: int) -> str:
    """Name of a column."""
    return f"v{column}"


def ladder(rng: Generator) -> Edges:
    """Neighbours on both rails, and rungs between them."""
    rails = [(k, k + 1) for k in (0, 1, 2, 4, 5, 6)]
    return [*rails, *((k, k + 4) for k in range(4))]


def scale_free(rng: Generator) -> Edges:
    """Every column, in random order, joins one that came before, by their numbers of edges."""
    order, degree = rng.permutation(len(MIXED)), np.zeros(len(MIXED))
    edges = []
    for k, new in enumerate(order[1:], start=1):
        before = order[:k]
        weight = np.maximum(degree[before], 1.0)
        other = int(rng.choice(before, p=weight / weight.sum()))
        edges.append((min(int(new), other), max(int(new), other)))
        degree[[new, other]] += 1
    return edges


def units(column: gibbs.Column) -> Floats:
    """What takes T of a column to standard units; of a hurdle column, whether and how much."""
    mean, scale = column.independent()
    if not isinstance(column, gibbs.Hurdle):
        return np.eye(column.width) / scale
    share, amount = mean[0], mean[1] / mean[0]
    return np.array([[1 / np.sqrt(share * (1 - share)), 0.0], [-amount, 1.0]])


def drawn(columns: tuple[gibbs.Column, ...], edges: Edges, n: int, rng: Generator) -> Floats:
    """Rows of the model with edges of random sizes, signs and directions."""
    is_number = [not isinstance(column, gibbs.Finite) for column in columns]
    while True:
        blocks, precision = {}, np.eye(len(columns))
        for u, v in edges:
            size = rng.choice([-1, 1]) * rng.uniform(*SIZES)
            direction = rng.standard_normal((columns[u].width, columns[v].width))
            for axis, end in enumerate((columns[u], columns[v])):
                if isinstance(end, gibbs.Finite) and end.width > 1:
                    direction -= direction.mean(axis=axis, keepdims=True)
            direction *= size / np.linalg.norm(direction)
            blocks[u, v] = units(columns[u]).T @ direction @ units(columns[v])
            if is_number[u] and is_number[v]:
                precision[u, v] = precision[v, u] = -blocks[u, v][-1, -1]
        if np.linalg.eigvalsh(precision)[0] > SMALLEST:
            return gibbs.rows(columns, blocks, n, rng, sweeps=60)


def standard(column: Floats) -> Floats:
    """Mean 0, standard deviation 1."""
    return (column - column.mean()) / column.std()


Spoil = Callable[[Floats, Generator], Floats]


def with_y(values: Floats, y: Floats) -> Floats:
    """The table with another column Y."""
    return np.column_stack([values[:, :Y], y, values[:, Y + 1 :]])


def exponential(values: Floats, rng: Generator) -> Floats:
    """The numbers of a ladder, log-normal."""
    return np.column_stack([np.exp(0.7 * values[:, :4]), values[:, 4:]])


def skewed(values: Floats, rng: Generator) -> Floats:
    """A log-normal number."""
    return with_y(values, np.exp(0.5 * standard(values[:, Y])))


def heavy(values: Floats, rng: Generator) -> Floats:
    """Student's t with 4 degrees of freedom instead of a normal number."""
    return with_y(values, values[:, Y] / np.sqrt(rng.chisquare(4, len(values)) / 4))


def bent(values: Floats, rng: Generator) -> Floats:
    """A number that depends on both ends of an ordinal scale alike."""
    return with_y(values, values[:, Y] + 0.3 * standard(values[:, ORDINAL]) ** 2)


def uneven(values: Floats, rng: Generator) -> Floats:
    """A number whose spread depends on a category: 0.7, 1 and 1.4."""
    return with_y(values, values[:, Y] * 1.4 ** (values[:, CATEGORY] - 1))


def interacting(values: Floats, rng: Generator) -> Floats:
    """A number that depends on the product of two other columns."""
    x, z = standard(values[:, X]), standard(values[:, ORDINAL])
    return with_y(values, values[:, Y] + 0.4 * (x + z + 0.75 * x * z))


@dataclass(frozen=True)
class Setting:
    """How tables are drawn, spoiled and fitted, and what the check should say."""

    columns: tuple[gibbs.Column, ...]
    kinds: tuple[str, ...]
    graph: Callable[[Generator], Edges]
    spoil: Spoil | None = None
    extra: tuple[tuple[int, int], ...] = ()
    """Edges that the fitted graph has besides: those of what was spoiled."""
    where: tuple[str, ...] = ()
    meanings: tuple[str, ...] = ()
    how: str = "true graph"
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the fit."""
    replicates: int = SPOILED


def mixed(spoil: Spoil, extra: Edges, where: tuple[str, ...], meanings: tuple[str, ...]) -> Setting:
    """A mixed table that is spoiled in one place."""
    return Setting(PLAIN, PLAIN_KINDS, scale_free, spoil, tuple(extra), where, meanings)


TAILS = ("skewed", "heavy tails")
SETTINGS = {
    "right: ladder": Setting(LADDER, LADDER_KINDS, ladder, replicates=REPLICATES),
    "right: mixed": Setting(MIXED, KINDS, scale_free, replicates=REPLICATES),
    "right: normal scores": Setting(
        LADDER,
        LADDER_KINDS,
        ladder,
        exponential,
        options={"transforms": "nonparanormal"},
        replicates=REPLICATES,
    ),
    "right: given covariates": Setting(
        PLAIN,
        PLAIN_KINDS,
        scale_free,
        options={"covariates": [name(k) for k in GIVEN]},
        replicates=REPLICATES,
    ),
    "an edge left out": Setting(
        PLAIN, PLAIN_KINDS, scale_free, meanings=("missing edge",), how="edge left out"
    ),
    "a skewed column": mixed(skewed, [], (name(Y),), TAILS),
    "heavy tails": mixed(heavy, [], (name(Y),), TAILS[1:]),
    "a relation that bends": mixed(
        bent, [(Y, ORDINAL)], (name(Y), name(ORDINAL)), ("curved scores",)
    ),
    "unequal spreads": mixed(
        uneven, [(Y, CATEGORY)], (name(Y), name(CATEGORY)), ("uneven spread",)
    ),
    "an interaction": mixed(
        interacting,
        [(Y, X), (Y, ORDINAL), (X, ORDINAL)],
        (name(Y),),
        ("not additive",),
    ),
    "chosen by EBIC": Setting(LADDER, LADDER_KINDS, ladder, how="chosen"),
    "shrunken, as it is": Setting(LADDER, LADDER_KINDS, ladder, how="shrunken", replicates=10),
}


def frame_of(values: Floats) -> pd.DataFrame:
    """The table; whole numbers as such."""
    columns = {name(k): column for k, column in enumerate(values.T)}
    whole = {key: column for key, column in columns.items() if (column == column.round()).all()}
    return pd.DataFrame({**columns, **{key: c.astype(np.int64) for key, c in whole.items()}})


def checked(title: str, n_rows: int, seed: int) -> dict[str, object]:
    """Draw, spoil, fit and check one table."""
    setting = SETTINGS[title]
    rng = np.random.default_rng([seed, n_rows, *title.encode()])
    edges = setting.graph(rng)
    values = drawn(setting.columns, edges, n_rows, rng)
    if setting.spoil is not None:
        values = setting.spoil(values, rng)
    kept, where = sorted({*edges, *setting.extra}), setting.where
    if setting.how == "edge left out":
        lost = kept.pop(int(rng.integers(len(kept))))
        where = tuple(map(name, lost))
    types = {name(k): kind for k, kind in enumerate(setting.kinds)}
    options = {"transforms": None} | dict(setting.options)  # what is spoiled is to stay so
    model = mg.MixedGraphicalModel(types=types, select="ebic", n_jobs=1, **options)
    if setting.how in ("true graph", "edge left out"):
        given = {*GIVEN} if "covariates" in setting.options else set()
        pairs = {pair for pair in combinations(range(len(types)), 2) if not {*pair} <= given}
        others, kept = pairs - {*kept}, [edge for edge in kept if edge in pairs]
        model.set_params(
            lam=1.0,
            require=[tuple(map(name, edge)) for edge in kept],
            forbid=[tuple(map(name, pair)) for pair in sorted(others)],
        )
    if setting.how == "shrunken":
        model.set_params(refit=False)
    table = frame_of(values)
    model.fit(table)
    start = perf_counter()
    as_is = {"refit": False} if setting.how == "shrunken" else {}
    result = model.check_fit(table, n_sim=SIMULATED, random_state=seed, n_jobs=1, **as_is)
    seconds = perf_counter() - start
    flags = [((n.column,), n.meaning) for n in result.node_checks if n.flagged]
    flags += [((p.source, p.target), p.meaning) for p in result.pair_checks if p.flagged]
    named = any({*ends} == {*where} and what in setting.meanings for ends, what in flags)
    return {
        "tables": title,
        "rows": n_rows,
        "seed": seed,
        "flagged": int(bool(flags)),
        "named": int(named),
        "p": round(result.p, 4),
        "meanings": "; ".join(f"{' - '.join(ends)}: {what}" for ends, what in flags),
        "seconds": round(seconds, 2),
    }


def run() -> None:
    """Check every table that the file does not have yet."""
    done = set()
    if FILE.exists():
        known = pd.read_csv(FILE)
        done = set(zip(known["tables"], known["rows"], known["seed"], strict=True))
    tasks = [
        (title, n_rows, seed)
        for seed, n_rows, title in product(range(REPLICATES), ROWS, SETTINGS)
        if (title, n_rows, seed) not in done and seed < SETTINGS[title].replicates
    ]
    tasks.sort(key=lambda task: (task[2] >= SPOILED, not task[0].startswith("right")))
    with FILE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for task in tqdm(tasks, unit="table"):
            writer.writerow(checked(*task))
            stream.flush()


def report() -> None:
    """Print the table of the page, of what is counted so far."""
    counts = pd.read_csv(FILE)
    lines = ["| tables | rows | number | flagged | right place and meaning |", "| --- " * 5 + "|"]
    for title, n_rows in product(SETTINGS, ROWS):
        part = counts[(counts["tables"] == title) & (counts["rows"] == n_rows)]
        if part.empty:
            continue
        shares = [f"{100 * part['flagged'].mean():.0f} %"]
        shares += [f"{100 * part['named'].mean():.0f} %" if SETTINGS[title].meanings else ""]
        lines.append(f"| {title} | {n_rows:,} | {len(part)} | {' | '.join(shares)} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore", mg.TableWarning)  # whole numbers taken as continuous
    warnings.simplefilter("ignore", mg.SelectionWarning)
    run()
    report()
