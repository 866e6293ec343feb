"""Tables drawn from known graphs -> true and false edges, by the kinds that columns are taken for.

The same tables are fitted with their ordinal, count and hurdle columns declared as such, as
categories, as numbers, and as numbers with normal scores; EBIC chooses the graph, or tests as by
default where counts have many zeros.  Tables are drawn from models of these kinds by `gibbs.py`,
which shares no code with the package, and from others that no kind is made for.

Run it when kinds, weights or criteria change: ``python docs/studies/kinds.py``.  It takes about
an hour on one core, writes docs/studies/kinds.csv row by row, goes on where that ends, and prints
the tables of docs/selection.md.
"""

import csv
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import gibbs
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import nbinom, norm, poisson
from tqdm import tqdm

import mixedgm as mg
from mixedgm.table.checks.columns import shape_of, short_values

REPLICATES = 30
ROWS = (100, 200, 500, 1000)
COLUMNS, EDGES = 12, 14
MODERATE, STRONG = (0.15, 0.35), (0.25, 0.5)
SMALLEST = 0.15  # eigenvalue of a precision matrix
ZEROS = 0.3
INFLATED = (0.4, 0.48, 0.56, 0.64, 0.72, 0.8)
ZERO_SHARES, AMOUNT = (0.3, 0.5, 0.65, 0.8), 3.0
BY_CHANCE = ZERO_SHARES + (0.0,) * (COLUMNS - len(ZERO_SHARES))
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


def spiked(zeros: float, mean: float = AMOUNT) -> gibbs.Hurdle:
    """A share of zeros, and normal numbers of this mean and of variance 1."""
    log_odds = np.log((1 - zeros) / zeros)
    return gibbs.Hurdle(log_odds - 0.5 * (np.log(2 * np.pi) + mean**2), mean)


SPIKED = tuple(spiked(zeros) for zeros in ZERO_SHARES)
BALANCES = tuple(spiked(zeros, mean=0.0) for zeros in ZERO_SHARES)


def sizes(n_columns: int, limits: tuple[float, float], rng: Generator) -> Floats:
    """A random graph: (columns, columns) sizes of its edges with their signs, 0 without an edge.

    A size is the coefficient of standardised columns; for numbers minus it is the precision matrix,
    with ones on its diagonal, which is kept well away from singular.
    """
    pairs = np.array([(u, v) for v in range(n_columns) for u in range(v)])
    while True:
        signed = np.zeros((n_columns, n_columns))
        for u, v in pairs[rng.choice(len(pairs), EDGES, replace=False)]:
            signed[u, v] = signed[v, u] = rng.choice([-1, 1]) * rng.uniform(*limits)
        if np.linalg.eigvalsh(np.eye(n_columns) - signed)[0] > SMALLEST:
            return signed


def standardised(column: gibbs.Column) -> Floats:
    """What takes T of a column to standard units.

    Of a hurdle column: whether it is zero, and how far numbers other than zero are from their mean.
    """
    mean, scale = column.independent()
    if not isinstance(column, gibbs.Hurdle):
        return np.eye(column.width) / scale
    share, amount = mean[0], mean[1] / mean[0]
    return np.array([[1 / np.sqrt(share * (1 - share)), 0.0], [-amount, 1.0]])


def block(
    column: gibbs.Column,
    other: gibbs.Column,
    size: float,
    rng: Generator,
    parts: tuple[float, float] = (1.0, 1.0),
) -> Floats:
    """The block of an edge of a given size; in a random direction where it has many entries.

    `parts` are the shares of "whether" and "how much" in edges of a hurdle column.
    """
    direction = np.ones((1, 1))
    if column.width + other.width > 2:
        direction = rng.standard_normal((column.width, other.width))
        for axis, end in enumerate((column, other)):
            if isinstance(end, gibbs.Hurdle):
                direction *= np.expand_dims(parts, 1 - axis)
            elif end.width > 1:
                direction -= direction.mean(axis=axis, keepdims=True)
    direction *= size / np.linalg.norm(direction)
    return standardised(column).T @ direction @ standardised(other)


def of_model(*columns: gibbs.Column, parts: tuple[float, float] = (1.0, 1.0)) -> Draw:
    """Rows of the model itself.

    Directions are drawn until the precision matrix of numbers and amounts is far from singular,
    and a tenth of every hurdle column is zero.
    """
    is_number = [not isinstance(column, gibbs.Finite) for column in columns]
    is_spiked = [isinstance(column, gibbs.Hurdle) for column in columns]

    def draw(signed: Floats, rng: Generator) -> Floats:
        while True:
            blocks = {
                (u, v): block(columns[u], columns[v], signed[u, v], rng, parts)
                for u, v in zip(*np.nonzero(np.triu(signed)), strict=True)
            }
            precision = np.eye(COLUMNS)
            for (u, v), entries in blocks.items():
                if is_number[u] and is_number[v]:
                    precision[u, v] = precision[v, u] = -entries[-1, -1]
            if np.linalg.eigvalsh(precision)[0] < SMALLEST:
                continue
            values = gibbs.rows(columns, blocks, max(ROWS), rng)
            if np.all((values[:, is_spiked] == 0.0).mean(axis=0) > 0.1):
                return values

    return draw


def of_latent(margin: Callable[[Floats], Floats]) -> Draw:
    """Normal numbers with this graph, put on the scale of margins by their quantiles."""

    def draw(signed: Floats, rng: Generator) -> Floats:
        covariance = np.linalg.inv(np.eye(len(signed)) - signed)
        scale = np.sqrt(np.diag(covariance))
        normal = rng.multivariate_normal(np.zeros(len(signed)), covariance, max(ROWS)) / scale
        return margin(norm.cdf(normal))

    return draw


def with_zeros(draw: Draw, shares: ArrayLike = ZEROS) -> Draw:
    """The same rows, these shares of the cells of all columns set to zero by chance."""

    def zeroed(signed: Floats, rng: Generator) -> Floats:
        values = draw(signed, rng)
        return values * (rng.random(values.shape) >= shares)

    return zeroed


def log_normal(draw: Draw) -> Draw:
    """The same rows; in the first columns, all but zeros are taken for logarithms."""

    def amounts(signed: Floats, rng: Generator) -> Floats:
        values = draw(signed, rng)
        first = values[:, : len(ZERO_SHARES)]
        first[:] = np.where(first == 0.0, 0.0, np.exp(first))
        return values

    return amounts


def zero_inflated(quantile: Floats) -> Floats:
    """Poisson counts, with zero for the lowest values besides."""
    return poisson.ppf(np.maximum(quantile - ZEROS, 0.0) / (1 - ZEROS), 4.0).clip(0)


def inflated(amount: Callable[[Floats, Generator], Floats]) -> Draw:
    """Two binary columns, numbers, and six counts that are zero where their number is lowest.

    `amount` makes the quantiles of all other counts, of where the number lies above that.
    """

    def draw(signed: Floats, rng: Generator) -> Floats:
        share = of_latent(lambda quantile: quantile)(signed, rng)
        values, zeros = norm.ppf(share), np.array(INFLATED)
        values[:, :2] = share[:, :2] > 0.5
        above = (share[:, -len(zeros) :] - zeros) / (1 - zeros)
        counts = 1 + nbinom.ppf(amount(above.clip(1e-9, 1 - 1e-9), rng), 3.0, 0.4)
        values[:, -len(zeros) :] = np.where(above <= 0.0, 0.0, counts)
        return values

    return draw


def cut_at_zero(quantile: Floats) -> Floats:
    """Normal numbers; the first columns are zero where they are lowest."""
    normal = norm.ppf(quantile)
    first = normal[:, : len(ZERO_SHARES)]
    first[:] = np.maximum(first - norm.ppf(ZERO_SHARES), 0.0)
    return normal


def shifted(quantile: Floats) -> Floats:
    """Normal numbers, away from zero."""
    return norm.ppf(quantile) + AMOUNT


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
    rows: tuple[int, ...] = ROWS
    select: str = "ebic"


BY_DEFAULT = {"rows": (500,), "select": "local-fdr"}
LIKERT, COUNTS = ("ordinal",) * COLUMNS, ("count",) * COLUMNS
MIXED = ("continuous",) * 3 + ("ordinal",) * 4 + ("count",) * 3 + ("categorical",) * 2
MIXED_COLUMNS = (NUMBER,) * 3 + (SYMMETRIC, SKEWED) * 2 + (SMALL, SMALL, LARGE) + (CATEGORY,) * 2
OTHERS = ("continuous",) * 4 + ("ordinal",) * 2 + ("categorical",) * 2
OTHER_COLUMNS = (NUMBER,) * 4 + (SYMMETRIC, SKEWED) + (CATEGORY,) * 2
HURDLES = ("hurdle",) * len(ZERO_SHARES) + OTHERS
TWO_HURDLES = ("hurdle", "hurdle", "continuous", "continuous", *OTHERS)
TWO_COLUMNS = (spiked(0.4), spiked(0.7), NUMBER, NUMBER, *OTHER_COLUMNS)
COUNTS_WITH_ZEROS = ("categorical",) * 2 + ("continuous",) * 6 + ("hurdle",) * len(INFLATED)
AMONG_NUMBERS = ("hurdle",) * len(ZERO_SHARES) + ("continuous",) * (COLUMNS - len(ZERO_SHARES))

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
    "hurdle, both": Setting(HURDLES, of_model(*SPIKED, *OTHER_COLUMNS), STRONG),
    "hurdle, whether": Setting(HURDLES, of_model(*SPIKED, *OTHER_COLUMNS, parts=(1, 0)), STRONG),
    "hurdle, how much": Setting(HURDLES, of_model(*SPIKED, *OTHER_COLUMNS, parts=(0, 1)), STRONG),
    "hurdle, two columns": Setting(TWO_HURDLES, of_model(*TWO_COLUMNS), STRONG),
    "hurdle, gains and losses": Setting(HURDLES, of_model(*BALANCES, *OTHER_COLUMNS), STRONG),
    "hurdle, log-normal": Setting(HURDLES, log_normal(of_model(*SPIKED, *OTHER_COLUMNS)), STRONG),
    "hurdle, cut at zero": Setting(AMONG_NUMBERS, of_latent(cut_at_zero), STRONG),
    "hurdle, zeros by chance": Setting(
        AMONG_NUMBERS, with_zeros(of_latent(shifted), BY_CHANCE), STRONG
    ),
    "counts with many zeros, one scale": Setting(
        COUNTS_WITH_ZEROS, inflated(lambda above, rng: above), STRONG, **BY_DEFAULT
    ),
    "counts with many zeros, whether": Setting(
        COUNTS_WITH_ZEROS,
        inflated(lambda above, rng: rng.random(above.shape)),
        STRONG,
        **BY_DEFAULT,
    ),
    "counts with many zeros, opposite": Setting(
        COUNTS_WITH_ZEROS, inflated(lambda above, rng: 1 - above), STRONG, **BY_DEFAULT
    ),
}
NAMES = list(SETTINGS)
WELL_SPECIFIED, MISSPECIFIED = NAMES[:6], NAMES[6:11]
SPIKES, SPIKES_OF_OTHERS, MANY_ZEROS = NAMES[11:16], NAMES[16:19], NAMES[19:]
FIRST = "as declared"


def treatments(name: str) -> dict[str, dict[str, str]]:
    """What each kind of column is taken for."""
    if name in MANY_ZEROS:
        return {
            FIRST: {},
            "as counts": {"hurdle": "count"},
            "as ordinal": {"hurdle": "ordinal"},
            "as numbers": {"hurdle": "continuous"},
            "as normal scores": {"hurdle": "scores"},
            "as check proposes": {"hurdle": "proposed"},
        }
    if "hurdle" in SETTINGS[name].kinds:
        return {
            FIRST: {},
            "as numbers": {"hurdle": "continuous"},
            "as normal scores": {"hurdle": "scores"},
        }
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


def proposed(values: Floats) -> str:
    """The kind that `mixedgm.check_table` proposes for numbers, or normal scores."""
    shape = shape_of("", values)
    kind = "ordinal" if short_values(values) is not None or shape is None else shape.advised
    return "scores" if kind == "continuous" else kind


def fitted(values: Floats, kinds: list[str], select: str) -> mg.MixedGraphicalModel:
    """A fit with columns of these kinds."""
    columns, types = {}, {}
    transforms: dict[str, str | None] = {}
    for k, kind in enumerate(kinds):
        name, column = f"v{k:02d}", values[:, k]
        kind = proposed(column) if kind == "proposed" else kind
        if kind == "categorical":
            column = grouped(column)
        is_whole = np.array_equal(column, column.round())
        columns[name] = column.astype(np.int64) if is_whole else column
        types[name] = {"scores": "continuous", "zero": "count"}.get(kind, kind)
        transforms[name] = "nonparanormal" if kind == "scores" else None
        if kind == "zero":
            types[name] = mg.Count(zero_term=True)
    return mg.MixedGraphicalModel(
        types=types, transforms=transforms, select=select, n_jobs=1, random_state=0
    ).fit(pd.DataFrame(columns))


def counted(name: str, seed: int) -> Iterator[dict[str, object]]:
    """True and false edges of one table, by its rows and by what columns are taken for."""
    setting = SETTINGS[name]
    rng = np.random.default_rng([seed, *name.encode()])
    signed = sizes(len(setting.kinds), setting.sizes, rng)
    values = setting.draw(signed, rng)
    truth = {(f"v{u:02d}", f"v{v:02d}") for u, v in zip(*np.nonzero(np.triu(signed)), strict=True)}
    for n_rows in setting.rows:
        for label, taken in treatments(name).items():
            taken_for = [taken.get(kind, kind) for kind in setting.kinds]
            model = fitted(values[:n_rows], taken_for, setting.select)
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
    """Print the tables of the page, of what is counted so far."""
    counts = pd.read_csv(FILE).pivot(
        index=["tables", "rows", "seed"], columns="as", values=["true", "false"]
    )
    for group in (WELL_SPECIFIED, MISSPECIFIED, SPIKES, SPIKES_OF_OTHERS, MANY_ZEROS):
        names = [name for name in group if name in counts.index]
        if not names:
            continue
        labels = list(dict.fromkeys(label for name in names for label in treatments(name)))
        lines = [f"| tables | rows | {' | '.join(labels)} |"]
        lines += ["| --- | --- |" + " --- |" * len(labels)]
        for name, n_rows in [(each, n) for each in names for n in SETTINGS[each].rows]:
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
