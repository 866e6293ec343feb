"""Tables drawn from known graphs -> true and false edges, by the kinds that columns are taken for.

The same tables are fitted with their ordinal and count columns declared as such, as categories, as
numbers, and as numbers with normal scores; EBIC chooses the graph, as by default.  Tables are drawn
from models of these kinds by `gibbs.py`, which shares no code with the package, and from others
that no kind is made for.

Run it when kinds, weights or criteria change: ``python docs/studies/kinds.py``.  It takes about
half an hour on one core, writes docs/studies/kinds.csv row by row, goes on where that ends, and
prints the tables of docs/selection.md.
"""

import csv
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import gibbs
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import nbinom, norm, poisson
from tqdm import tqdm

import mixedgm as mg

REPLICATES = 30
ROWS = (100, 200, 500, 1000)
COLUMNS, EDGES = 12, 14
MODERATE, STRONG = (0.15, 0.35), (0.25, 0.5)
ZEROS = 0.3
GROUPS_BEYOND = 8
FILE = Path(__file__).with_suffix(".csv")
FIELDS = ("tables", "rows", "seed", "as", "edges", "true", "false", "converged")

Floats = NDArray[np.float64]
Generator = np.random.Generator
Draw = Callable[[Floats, Generator], Floats]

SYMMETRIC = gibbs.ordinal(-0.35 * (np.arange(5) - 2.0) ** 2)
SKEWED = gibbs.ordinal(-0.9 * np.arange(5))
SMALL = gibbs.count(0.0, np.log(1.5), largest=40)
MEDIUM = gibbs.count(0.0, np.log(4.0), largest=60)
LARGE = gibbs.count(0.0, np.log(50.0), largest=120)
NUMBER = gibbs.Gaussian()
CATEGORY = gibbs.categorical(np.zeros(3))


def sizes(limits: tuple[float, float], rng: Generator) -> Floats:
    """A random graph: (columns, columns) sizes of its edges with their signs, 0 without an edge.

    A size is the coefficient of standardised columns; for numbers minus it is the precision matrix,
    with ones on its diagonal, which is kept well away from singular.
    """
    pairs = np.array([(u, v) for v in range(COLUMNS) for u in range(v)])
    while True:
        signed = np.zeros((COLUMNS, COLUMNS))
        for u, v in pairs[rng.choice(len(pairs), EDGES, replace=False)]:
            signed[u, v] = signed[v, u] = rng.choice([-1, 1]) * rng.uniform(*limits)
        if np.linalg.eigvalsh(np.eye(COLUMNS) - signed)[0] > 0.15:
            return signed


def block(column: gibbs.Column, other: gibbs.Column, size: float, rng: Generator) -> Floats:
    """The block of an edge of a given size; in a random direction where there are levels."""
    direction = np.ones((1, 1))
    if column.width + other.width > 2:
        direction = rng.standard_normal((column.width, other.width))
        for axis, end in enumerate((column, other)):
            if end.width > 1 and isinstance(end, gibbs.Finite):
                direction -= direction.mean(axis=axis, keepdims=True)
    scale = column.independent()[1] * other.independent()[1] * np.linalg.norm(direction)
    return size / scale * direction


def of_model(*columns: gibbs.Column) -> Draw:
    """Rows of the model itself."""

    def draw(signed: Floats, rng: Generator) -> Floats:
        blocks = {
            (u, v): block(columns[u], columns[v], signed[u, v], rng)
            for u, v in zip(*np.nonzero(np.triu(signed)), strict=True)
        }
        return gibbs.rows(columns, blocks, max(ROWS), rng)

    return draw


def of_latent(margin: Callable[[Floats], Floats]) -> Draw:
    """Normal numbers with this graph, each put on the scale of a margin by its quantile."""

    def draw(signed: Floats, rng: Generator) -> Floats:
        covariance = np.linalg.inv(np.eye(COLUMNS) - signed)
        scale = np.sqrt(np.diag(covariance))
        normal = rng.multivariate_normal(np.zeros(COLUMNS), covariance, max(ROWS)) / scale
        return margin(norm.cdf(normal))

    return draw


def with_zeros(
    draw: Draw,
) -> Draw:
    """The same rows, some cells set to zero by chance."""

    def zeroed(signed: Floats, rng: Generator) -> Floats:
        values = draw(signed, rng)
        return values * (rng.random(values.shape) >= ZEROS)

    return zeroed


def zero_inflated(quantile: Floats) -> Floats:
    """Poisson counts, with zero for the lowest values besides."""
    return poisson.ppf(np.maximum(quantile - ZEROS, 0.0) / (1 - ZEROS), 4.0).clip(0)


def cut(*below: float) -> Callable[[Floats], Floats]:
    """Levels 0, 1, ... by the shares of rows below each of the others."""
    return lambda quantile: np.searchsorted(below, quantile).astype(np.float64)


@dataclass(frozen=True)
class Setting:
    """How tables are drawn: the kinds of their columns, values from signed sizes of edges."""

    kinds: tuple[str, ...]
    draw: Draw
    sizes: tuple[float, float] = MODERATE
    zero_term: bool = False


LIKERT, COUNTS = ("ordinal",) * COLUMNS, ("count",) * COLUMNS
MIXED = ("continuous",) * 3 + ("ordinal",) * 4 + ("count",) * 3 + ("categorical",) * 2
MIXED_COLUMNS = (NUMBER,) * 3 + (SYMMETRIC, SKEWED) * 2 + (SMALL, SMALL, LARGE) + (CATEGORY,) * 2

SETTINGS = {
    "Likert, symmetric": Setting(LIKERT, of_model(*(SYMMETRIC,) * COLUMNS)),
    "Likert, skewed": Setting(LIKERT, of_model(*(SKEWED,) * COLUMNS)),
    "Likert, strong edges": Setting(LIKERT, of_model(*(SYMMETRIC,) * COLUMNS), STRONG),
    "mixed": Setting(MIXED, of_model(*MIXED_COLUMNS)),
    "small counts": Setting(COUNTS, of_model(*(SMALL,) * COLUMNS)),
    "large counts": Setting(COUNTS, of_model(*(LARGE,) * COLUMNS)),
    "latent normal, symmetric": Setting(LIKERT, of_latent(cut(0.07, 0.31, 0.69, 0.93))),
    "latent normal, skewed": Setting(LIKERT, of_latent(cut(0.55, 0.75, 0.88, 0.96))),
    "negative binomial": Setting(COUNTS, of_latent(lambda q: nbinom.ppf(q, 1.5, 1.5 / 5.5))),
    "zeros at the lower end": Setting(COUNTS, of_latent(zero_inflated), zero_term=True),
    "zeros by chance": Setting(COUNTS, with_zeros(of_model(*(MEDIUM,) * COLUMNS)), zero_term=True),
}
WELL_SPECIFIED, MISSPECIFIED = list(SETTINGS)[:6], list(SETTINGS)[6:]
FIRST = "as declared"


def treatments(name: str) -> dict[str, dict[str, str]]:
    """What each kind of column is taken for."""
    taken = {
        FIRST: {},
        "as categories": {"ordinal": "categorical", "count": "categorical"},
        "as numbers": {"ordinal": "continuous", "count": "continuous"},
        "as normal scores": {"ordinal": "scores", "count": "scores"},
    }
    if SETTINGS[name].zero_term:
        taken["with zero terms"] = {"count": "zero"}
    return taken


def grouped(values: Floats) -> Floats:
    """Many distinct values in four groups of about the same size."""
    if len(np.unique(values)) <= GROUPS_BEYOND:
        return values
    return np.searchsorted(np.quantile(values, [0.25, 0.5, 0.75]), values).astype(np.float64)


def fitted(values: Floats, kinds: list[str]) -> mg.MixedGraphicalModel:
    """A default fit with columns of these kinds."""
    columns, types, transforms = {}, {}, {}
    for k, kind in enumerate(kinds):
        name, column = f"v{k:02d}", values[:, k]
        if kind == "categorical":
            column = grouped(column)
        columns[name] = column if kind == "continuous" else column.astype(np.int64)
        types[name] = {"scores": "continuous", "zero": "count"}.get(kind, kind)
        if kind == "scores":
            transforms[name] = "nonparanormal"
        if kind == "zero":
            types[name] = mg.Count(zero_term=True)
    return mg.MixedGraphicalModel(types=types, transforms=transforms or None, n_jobs=1).fit(
        pd.DataFrame(columns)
    )


def counted(name: str, seed: int) -> Iterator[dict[str, object]]:
    """True and false edges of one table, by its rows and by what columns are taken for."""
    setting = SETTINGS[name]
    rng = np.random.default_rng([seed, *name.encode()])
    signed = sizes(setting.sizes, rng)
    values = setting.draw(signed, rng)
    truth = {(f"v{u:02d}", f"v{v:02d}") for u, v in zip(*np.nonzero(np.triu(signed)), strict=True)}
    for n_rows in ROWS:
        for label, taken in treatments(name).items():
            model = fitted(values[:n_rows], [taken.get(kind, kind) for kind in setting.kinds])
            graph = {tuple(sorted((edge.source, edge.target))) for edge in model.edges_}
            yield {
                "tables": name,
                "rows": n_rows,
                "seed": seed,
                "as": label,
                "edges": len(truth),
                "true": len(graph & truth),
                "false": len(graph - truth),
                "converged": int(model.converged_),
            }


def run() -> None:
    """Count in every table that the file does not have yet."""
    done = set()
    if FILE.exists():
        known = pd.read_csv(FILE)
        done = set(zip(known["tables"], known["seed"], strict=True))
    open_tasks = [(name, seed) for seed in range(REPLICATES) for name in SETTINGS]
    open_tasks = [task for task in open_tasks if task not in done]
    with FILE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for name, seed in tqdm(open_tasks, unit="table"):
            writer.writerows(list(counted(name, seed)))
            stream.flush()


def cell(counts: pd.Series, declared: pd.Series) -> str:
    """Mean and standard error; an arrow where it is not that of columns as declared.

    What is compared is the same tables, by two standard errors of the mean difference.
    """
    difference = counts - declared
    is_other = bool(abs(difference.mean()) > 2 * difference.sem())
    arrow = ("↑" if difference.mean() > 0 else "↓") * is_other
    return f"{counts.mean():.1f} ± {counts.sem():.1f}{arrow}"


def report() -> None:
    """Print the tables of the page."""
    counts = pd.read_csv(FILE).pivot(
        index=["tables", "rows", "seed"], columns="as", values=["true", "false"]
    )
    for names in (WELL_SPECIFIED, MISSPECIFIED):
        labels = list(dict.fromkeys(label for name in names for label in treatments(name)))
        lines = [f"| tables | rows | {' | '.join(labels)} |"]
        lines += ["| --- | --- |" + " --- |" * len(labels)]
        for name, n_rows in product(names, ROWS):
            part = counts.loc[(name, n_rows)]
            cells = [""] * len(labels)
            for k, label in enumerate(treatments(name)):
                both = [cell(part[what, label], part[what, FIRST]) for what in ("true", "false")]
                cells[k] = ", ".join(both)
            lines.append(f"| {name} | {n_rows:,} | {' | '.join(cells)} |")
        sys.stdout.write("\n".join(lines) + "\n\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore", mg.TableWarning)  # whole numbers taken as continuous
    warnings.simplefilter("ignore", mg.SelectionWarning)
    run()
    report()
