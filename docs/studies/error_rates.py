"""Tables drawn from known graphs -> said and actual numbers of false edges, and what is found.

Settings are hard ones: weak, strong and bimodal edges, dense and collinear graphs, rare levels,
tables that are not from the model.  Of these the true graph is that of the fit to a million rows:
pairs whose statistic is at least `LEAST` per row there.  The latent graph is counted beside it.

Run it when tests or the search for the graph change: ``python docs/studies/error_rates.py``.  It
writes docs/studies/error_rates.csv row by row, goes on where that ends, and prints the tables of
docs/selection.md.  Names of settings as arguments restrict what is counted, ``--tables 20`` how
often; ``--jobs 16`` uses so many processes; ``--report`` counts nothing; ``--file other.csv`` keeps
the counts elsewhere, beside it the graphs of settings whose truth takes a fit to many rows.
"""

import argparse
import csv
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from multiprocessing import Pool
from pathlib import Path

import default
import kinds
import numpy as np
import pandas as pd
from default import (
    DECIMALS,
    MIXED,
    NUMBER,
    Edges,
    Graph,
    Pair,
    Table,
    drawn_normal,
    levels,
    of_model,
    random,
)
from numpy.typing import NDArray
from scipy.stats import beta, expon, nbinom, norm
from scipy.stats import t as student
from tqdm import tqdm

import mixedgm as mg

TABLES = 200
POPULATIONS = 5
"""Graphs of a setting whose truth takes a fit to many rows."""
MANY = 1_000_000
LEAST = 4e-4
"""W per row of a true edge: a partial correlation of 0.02."""
BOUNDS = (0.3, 0.5, 0.7, 0.9, 0.95)
"""Of classes of probabilities; the last one is open."""
FILE = Path(__file__).with_suffix(".csv")
FIELDS = (
    *("tables", "seed", "edges", "true", "false", "said", "false_latent"),
    *(f"{what}_{low}" for low in BOUNDS for what in ("pairs", "sum", "edges")),
    *("seconds", "rows"),
)

Floats = NDArray[np.float64]
Generator = np.random.Generator

# -- graphs and normal numbers ---------------------------------------------------------------------


def cluster(n_clusters: int, n_edges: int) -> Graph:
    """So many edges in each of several equal parts, none between them."""

    def graph(n_columns: int, rng: Generator) -> list[Pair]:
        parts = np.array_split(rng.permutation(n_columns), n_clusters)
        return [
            (int(min(part[u], part[v])), int(max(part[u], part[v])))
            for part in parts
            for u, v in random(n_edges)(len(part), rng)
        ]

    return graph


def wishart(pairs: Sequence[Pair], n_columns: int, rng: Generator) -> Floats:
    """A covariance whose inverse is from the G-Wishart distribution with 3 degrees of freedom.

    As in the simulations of BDgraph; by the sampler of Lenkoski (2013).
    """
    factor = np.tril(rng.standard_normal((n_columns, n_columns)), -1)
    factor += np.diag(np.sqrt(rng.chisquare(n_columns + 2.0 - np.arange(n_columns))))
    sigma = np.linalg.inv(factor @ factor.T)
    neighbours: list[list[int]] = [[] for _ in range(n_columns)]
    for u, v in pairs:
        neighbours[u].append(v)
        neighbours[v].append(u)
    out = sigma.copy()
    for _ in range(100_000):
        before = out.copy()
        for v in range(n_columns):
            rest, near = np.arange(n_columns) != v, neighbours[v]
            slope = np.linalg.solve(out[np.ix_(near, near)], sigma[near, v])
            out[rest, v] = out[v, rest] = (out[:, near] @ slope)[rest]
        if np.abs(out - before).max() < 1e-9:
            return out
    raise ArithmeticError("the sampler of the G-Wishart distribution did not converge")


Covariance = Callable[[Generator], tuple[list[Pair], Floats]]


def of_wishart(n_columns: int, graph: Graph) -> Covariance:
    """A random graph and a covariance from the G-Wishart distribution on it."""

    def draw(rng: Generator) -> tuple[list[Pair], Floats]:
        pairs = graph(n_columns, rng)
        return pairs, wishart(pairs, n_columns, rng)

    return draw


def of_partials(
    n_columns: int, graph: Graph, sizes: tuple[float, float], positive: float = 0.5
) -> Covariance:
    """A random graph with partial correlations of these sizes, some of them positive."""

    def draw(rng: Generator) -> tuple[list[Pair], Floats]:
        while True:
            pairs, precision = graph(n_columns, rng), np.eye(n_columns)
            for u, v in pairs:
                sign = rng.choice([-1, 1], p=[positive, 1 - positive])
                precision[u, v] = precision[v, u] = sign * rng.uniform(*sizes)
            if np.linalg.eigvalsh(precision)[0] > 0.1:
                return pairs, np.linalg.inv(precision)

    return draw


def collinear(n_components: int, size: int, correlation: float) -> Covariance:
    """Chains whose neighbours have this correlation."""

    def draw(rng: Generator) -> tuple[list[Pair], Floats]:
        order = rng.permutation(n_components * size).reshape(n_components, size)
        covariance, pairs = np.eye(order.size), []
        power = correlation ** np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
        for part in order:
            covariance[np.ix_(part, part)] = power
            ends = zip(part[:-1].tolist(), part[1:].tolist(), strict=True)
            pairs += [(min(u, v), max(u, v)) for u, v in ends]
        return pairs, covariance

    return draw


def correlated(covariance: Floats) -> Floats:
    """The correlations."""
    scale = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(scale, scale))


# -- settings --------------------------------------------------------------------------------------

Rows = Callable[[int, Generator], Floats]
Margin = Callable[[Floats, Generator], Rows]


@dataclass(frozen=True, eq=False)
class Population:
    """What tables are drawn from, and its graph."""

    rows: Rows
    kinds: tuple[str, ...]
    edges: Edges

    def table(self, n_rows: int, rng: Generator) -> Table:
        """Rows of it."""
        return Table(self.rows(n_rows, rng).round(DECIMALS), self.kinds, self.edges)


@dataclass(frozen=True)
class Setting:
    """Tables of one sort."""

    n_rows: int
    table: Callable[[Generator], Table] | None = None
    """Draws a graph and a table of it."""
    population: Callable[[Generator], Population] | None = None
    """Draws what is not from the model: its graph is that of many rows."""
    options: tuple[tuple[str, object], ...] = ()
    """Of the fit."""
    gaps: float = 0.0
    """Share of the cells that are missing by chance."""


def normal(n_rows: int, covariance: Covariance) -> Setting:
    """Normal numbers."""

    def draw(rng: Generator) -> Table:
        pairs, sigma = covariance(rng)
        values = drawn_normal(correlated(sigma), n_rows, rng)
        return Table(values.round(DECIMALS), ("continuous",) * len(sigma), frozenset(pairs))

    return Setting(n_rows, draw)


def margins(n_rows: int, covariance: Covariance, margin: Margin) -> Setting:
    """Numbers that a margin makes of normal ones; their graph is that of the normal ones."""

    def draw(rng: Generator) -> Table:
        pairs, sigma = covariance(rng)
        values = margin(correlated(sigma), rng)(n_rows, rng)
        return Table(values.round(DECIMALS), ("continuous",) * len(sigma), frozenset(pairs))

    return Setting(n_rows, draw)


def latent(n_rows: int, covariance: Covariance, margin: Margin, kind: str) -> Setting:
    """Numbers that a margin makes of normal ones; their graph is that of many rows."""

    def draw(rng: Generator) -> Population:
        pairs, sigma = covariance(rng)
        rows = margin(correlated(sigma), rng)
        return Population(rows, (kind,) * len(sigma), frozenset(pairs))

    return Setting(n_rows, population=draw)


def cut(sigma: Floats, rng: Generator) -> Rows:
    """Five levels, their shares different from item to item."""
    cuts = np.array([-1.2, -0.4, 0.4, 1.2]) + rng.uniform(-0.4, 0.4, (len(sigma), 1))

    def rows(n_rows: int, rng: Generator) -> Floats:
        values = drawn_normal(sigma, n_rows, rng)
        each = [np.searchsorted(c, column) for c, column in zip(cuts, values.T, strict=True)]
        return np.column_stack(each).astype(np.float64)

    return rows


def elliptical(sigma: Floats, rng: Generator) -> Rows:
    """Student's t with three degrees of freedom: one scale for every row."""

    def rows(n_rows: int, rng: Generator) -> Floats:
        scale = np.sqrt(rng.chisquare(3.0, (n_rows, 1)) / 3.0)
        return drawn_normal(sigma, n_rows, rng) / scale

    return rows


def contaminated(share: float) -> Margin:
    """A share of the rows is replaced by independent numbers that spread five times as much."""

    def margin(sigma: Floats, rng: Generator) -> Rows:
        def rows(n_rows: int, rng: Generator) -> Floats:
            values = drawn_normal(sigma, n_rows, rng)
            replaced = rng.random(n_rows) < share
            values[replaced] = 5.0 * rng.standard_normal((replaced.sum(), len(sigma)))
            return values

        return rows

    return margin


def each(shape: Callable[[Floats], Floats]) -> Margin:
    """A function of normal numbers, the same in every column."""

    def margin(sigma: Floats, rng: Generator) -> Rows:
        return lambda n_rows, rng: shape(drawn_normal(sigma, n_rows, rng))

    return margin


def of_exponentials(sigma: Floats, rng: Generator) -> Rows:
    """A directed linear system whose errors are exponential; pairs are those of its covariance."""
    root = np.linalg.cholesky(sigma)
    return lambda n_rows, rng: rng.exponential(size=(n_rows, len(sigma))) @ root.T


def bent(sigma: Floats, rng: Generator) -> Rows:
    """Margins with heavy tails, skewed, bounded and normal ones."""
    shapes = rng.integers(0, 4, len(sigma))

    def rows(n_rows: int, rng: Generator) -> Floats:
        values = drawn_normal(sigma, n_rows, rng)
        each = (
            lambda x: student.ppf(norm.cdf(x), 3),
            lambda x: np.exp(0.8 * x),
            norm.cdf,
            lambda x: x,
        )
        columns = [each[k](column) for k, column in zip(shapes, values.T, strict=True)]
        return np.column_stack(columns)

    return rows


def zero_inflated(sigma: Floats, rng: Generator) -> Rows:
    """Negative binomial counts, 40 to 80 % of them zero; the last columns stay normal."""
    zeros = rng.uniform(0.3, 0.7, len(sigma))

    def rows(n_rows: int, rng: Generator) -> Floats:
        values = drawn_normal(sigma, n_rows, rng)
        share = norm.cdf(values)
        high = np.maximum(share - zeros, 0.0) / (1.0 - zeros)
        return np.where(share <= zeros, 0.0, nbinom.ppf(high, 3.0, 0.4)).clip(0, 60)

    return rows


def moral(n_columns: int, degree: float) -> Callable[[Generator], Population]:
    """A directed graph of numbers and of columns with three levels; its moral graph is latent."""

    def draw(rng: Generator) -> Population:
        pairs = list(combinations(range(n_columns), 2))
        number = round(n_columns * degree / 2)
        arrows = [pairs[k] for k in rng.choice(len(pairs), number, replace=False)]
        parents = [[u for u, w in arrows if w == v] for v in range(n_columns)]
        is_number = rng.random(n_columns) < 0.5
        slopes = {
            (u, v): rng.choice([-1, 1], (1 if is_number[u] else 3, 1 if is_number[v] else 3))
            * rng.uniform(0.4, 0.9, (1 if is_number[u] else 3, 1 if is_number[v] else 3))
            for u, v in arrows
        }
        married = {
            (min(a, b), max(a, b)) for each in parents for a, b in combinations(each, 2)
        } | set(arrows)

        def rows(n_rows: int, rng: Generator) -> Floats:
            values, seen = np.zeros((n_rows, n_columns)), []
            for v in range(n_columns):
                mean = np.zeros((n_rows, 1 if is_number[v] else 3))
                for u in parents[v]:
                    mean += seen[u] @ slopes[u, v]
                if is_number[v]:
                    values[:, v] = mean[:, 0] + rng.standard_normal(n_rows)
                    seen.append(values[:, [v]] / np.sqrt(1.0 + len(parents[v])))
                else:
                    level = np.argmax(mean + rng.gumbel(size=mean.shape), axis=1)
                    values[:, v] = level
                    seen.append(np.eye(3)[level])
            return values

        types = tuple("continuous" if each else "categorical" for each in is_number)
        return Population(rows, types, frozenset(married))

    return draw


def bimodal(n_rows: int) -> Setting:
    """Half of the edges weak, half of them strong."""

    def draw(rng: Generator) -> Table:
        while True:
            precision, pairs = np.eye(30), random(30)(30, rng)
            sizes = np.concatenate([rng.uniform(0.08, 0.12, 15), rng.uniform(0.35, 0.5, 15)])
            for (u, v), size in zip(pairs, sizes * rng.choice([-1, 1], 30), strict=True):
                precision[u, v] = precision[v, u] = size
            if np.linalg.eigvalsh(precision)[0] > 0.1:
                break
        sigma = correlated(np.linalg.inv(precision))
        values = drawn_normal(sigma, n_rows, rng)
        return Table(values.round(DECIMALS), ("continuous",) * 30, frozenset(pairs))

    return Setting(n_rows, draw)


def of_kinds(n_rows: int, columns: Sequence[default.Column], *args: object) -> Setting:
    """Tables of the model itself."""
    return Setting(n_rows, of_model(n_rows, columns, *args))  # type: ignore[arg-type]


def weak(n_columns: int) -> Covariance:
    """Two in five pairs with small partial correlations."""
    number = round(0.2 * n_columns * (n_columns - 1))
    return of_partials(n_columns, random(number), (0.05, 0.2))


THREE = levels(*(3,) * 10)
COUNTS = tuple(("count", column) for column in (kinds.SMALL, kinds.MEDIUM) * 4)
HURDLES = tuple(("hurdle", kinds.spiked(zeros)) for zeros in (0.3, 0.5, 0.65, 0.8))
STRONG = (0.4, 0.7)
ITEMS = of_partials(25, random(75), (0.05, 0.3), positive=0.75)

MODERATE = of_partials(20, random(24), (0.15, 0.4))
MARGINS: dict[str, Margin] = {
    "normal": each(lambda x: x),
    "1 % of the rows contaminated": contaminated(0.01),
    "5 % of the rows contaminated": contaminated(0.05),
    "exponential": each(lambda x: expon.ppf(norm.cdf(x))),
    "log-normal": each(lambda x: np.exp(0.8 * x)),
    "log-normal, rounded": each(lambda x: np.exp(0.8 * x).round()),
    "normal, rounded": each(np.round),
    "uniform": each(norm.cdf),
    "beta (1/2, 1/2)": each(lambda x: beta.ppf(norm.cdf(x), 0.5, 0.5)),
    "cut off at both ends": each(lambda x: x.clip(-0.5, 1.2)),
    "sums of exponential numbers": of_exponentials,
    "elliptical t3": elliptical,
    "bent": bent,
}
"""What becomes of normal numbers; the graph is that of the normal ones."""
AS_THEY_ARE = ", as they are"
"""Ends names of settings whose tables are those of another setting, fitted without transforms."""

SETTINGS: dict[str, Setting] = {
    "weak binary items, n = 300": of_kinds(300, levels(*(2,) * 20), random(30), (0.09, 0.23)),
    "weak binary items, n = 1,000": of_kinds(1000, levels(*(2,) * 20), random(30), (0.09, 0.23)),
    "strong, all kinds, n = 300": of_kinds(300, MIXED, random(10), STRONG),
    "strong, all kinds, n = 1,000": of_kinds(1000, MIXED, random(10), STRONG),
    "weak and strong, 30 numbers, n = 500": bimodal(500),
    "random sizes, 30 numbers, n = 200": normal(200, of_wishart(30, random(45))),
    "dense and weak, 20 numbers, n = 300": normal(300, weak(20)),
    "dense and weak, 20 numbers, n = 1,000": normal(1000, weak(20)),
    "sparse, 20 + 20, n = 200": of_kinds(
        200, (NUMBER,) * 20 + levels(*(3,) * 20), random(12), (0.3, 0.5)
    ),
    "hubs, 10 + 10, n = 500": of_kinds(500, (NUMBER,) * 10 + THREE, default.hubs(3), (0.25, 0.4)),
    "scale-free, 15 + 15, n = 500": of_kinds(
        500, (NUMBER,) * 15 + levels(*(2, 2, 3, 4, 5) * 3), default.scale_free, (0.25, 0.45)
    ),
    "collinear, 3 x 20 numbers, n = 100": normal(100, collinear(3, 20, 0.95)),
    "collinear, 3 x 20 numbers, n = 400": normal(400, collinear(3, 20, 0.95)),
    "rare levels, 8 + 8, n = 500": of_kinds(
        500, (NUMBER,) * 8 + levels(*(4,) * 8, rarest=0.03), random(16), (0.2, 0.45)
    ),
    "cut items as ordinal, n = 250": latent(250, ITEMS, cut, "ordinal"),
    "cut items as ordinal, n = 1,000": latent(1000, ITEMS, cut, "ordinal"),
    "counts, n = 500": of_kinds(500, COUNTS + levels(2, 2), random(14), (0.12, 0.3)),
    "counts with many zeros, as hurdle, n = 500": latent(
        500, of_partials(12, random(14), (0.15, 0.4)), zero_inflated, "hurdle"
    ),
    "hurdles, n = 500": of_kinds(
        500, HURDLES * 2 + (NUMBER,) * 2 + levels(2, 3), random(16), (0.2, 0.4)
    ),
    "elliptical t3, 20 numbers, n = 500": latent(500, MODERATE, elliptical, "continuous"),
    "bent margins, 20 numbers, n = 500": latent(500, MODERATE, bent, "continuous"),
    "directed, 10 columns, n = 300": Setting(300, population=moral(10, 3.0)),
    "directed, 20 columns, n = 2,000": Setting(2000, population=moral(20, 3.0)),
    "a tenth missing, all kinds, n = 500": replace(
        of_kinds(500, MIXED, random(16), (0.15, 0.4)), gaps=0.1, options=(("missing", "model"),)
    ),
    "random sizes, 100 numbers, 50 edges, n = 400": normal(400, of_wishart(100, random(50))),
    "random sizes, 100 numbers, 248 edges, n = 400": normal(400, of_wishart(100, random(248))),
    "clusters, 100 numbers, n = 400": normal(400, of_wishart(100, cluster(5, 38))),
    "scale-free, 100 numbers, n = 400": normal(400, of_wishart(100, default.scale_free)),
    "random sizes, 100 numbers, 50 edges, n = 100": normal(100, of_wishart(100, random(50))),
    "random sizes, 100 numbers, 248 edges, n = 100": normal(100, of_wishart(100, random(248))),
    "clusters, 100 numbers, n = 100": normal(100, of_wishart(100, cluster(5, 38))),
    "scale-free, 100 numbers, n = 100": normal(100, of_wishart(100, default.scale_free)),
    "5 + 5, n = 50": of_kinds(50, (NUMBER,) * 5 + levels(*(2,) * 5), random(8), (0.4, 0.7)),
    "20 numbers, n = 50": normal(50, MODERATE),
    "noise, 10 + 10, n = 50": of_kinds(50, (NUMBER,) * 10 + THREE, random(0)),
    "5 + 5, n = 5,000": of_kinds(5000, (NUMBER,) * 5 + levels(*(4,) * 5), random(14), (0.03, 0.2)),
    "noise, 10 + 10, n = 100": of_kinds(100, (NUMBER,) * 10 + THREE, random(0)),
    "noise, all kinds, n = 300": of_kinds(300, MIXED, random(0)),
    "noise, rare levels, 10 + 10, n = 500": of_kinds(
        500, (NUMBER,) * 10 + levels(*(3,) * 10, rarest=0.025), random(0)
    ),
} | {
    f"margins, {name}, 20 numbers, n = {n_rows}": margins(n_rows, MODERATE, margin)
    for n_rows in (100, 500)
    for name, margin in MARGINS.items()
}
for _name in [name for name in SETTINGS if name.startswith("margins")]:
    SETTINGS[_name + AS_THEY_ARE] = replace(SETTINGS[_name], options=(("transforms", None),))


# -- counts ----------------------------------------------------------------------------------------


def of_rows(name: str) -> str:
    """The name of the tables that a setting fits, and whose seeds it has."""
    return name.removesuffix(AS_THEY_ARE)


def source(name: str) -> str:
    """The name of what tables of a setting are drawn from: without their number of rows."""
    return of_rows(name).partition(", n = ")[0]


@cache
def population(name: str, number: int) -> Population:
    """A population of a setting; `edges` are those of its latent graph."""
    draw = SETTINGS[name].population
    assert draw is not None
    return draw(np.random.default_rng([number, *source(name).encode()]))


def graph_key(name: str, number: int) -> str:
    """A name for the graph of the fit to many rows."""
    return f"{source(name)}, population {number}"


def edges_of_many_rows(name: str, number: int) -> list[Pair]:
    """The graph of the fit to many rows of a population."""
    rng = np.random.default_rng([number, 3, *source(name).encode()])
    table = population(name, number).table(MANY, rng)
    options = {"select": "bic", "n_lams": 25, **dict(SETTINGS[name].options)}
    model = mg.MixedGraphicalModel(types=table.types, n_jobs=1, **options)
    tests = mg.edge_tests(model.fit(table.frame), table.frame, covariance="rows").edges()
    tests = tests[tests["statistic"] >= LEAST * MANY]
    return sorted(default.positions(zip(tests["source"], tests["target"], strict=True)))


Graphs = dict[str, list[Pair]]
"""Of populations, by `graph_key`."""


def drawn(name: str, seed: int, graphs: Graphs) -> tuple[Table, Edges]:
    """A table of a setting with its true edges, and the edges of the latent graph."""
    setting, number = SETTINGS[name], seed % POPULATIONS
    rng = np.random.default_rng([seed, 1, *of_rows(name).encode()])
    if setting.table is not None:
        table = setting.table(rng)
        return table, table.truth
    found = population(name, number)
    edges = frozenset((u, v) for u, v in graphs[graph_key(name, number)])
    return replace(found, edges=edges).table(setting.n_rows, rng), found.edges


def counted(name: str, seed: int, graphs: Graphs) -> dict[str, object]:
    """What a default fit finds and says."""
    warnings.simplefilter("ignore")
    setting, (table, of_latent) = SETTINGS[name], drawn(name, seed, graphs)
    frame = table.frame
    if setting.gaps:
        rng = np.random.default_rng([seed, 2])
        frame = frame.astype(float).mask(rng.random(frame.shape) < setting.gaps)
    model = mg.MixedGraphicalModel(
        types=table.types, n_jobs=1, random_state=0, **dict(setting.options)
    )
    before = sum(os.times()[:4])
    try:
        fitted = model.fit(frame).fitted_
    except mg.TableError:  # a column hardly varies, as happens where levels or amounts are rare
        return {}
    seconds = sum(os.times()[:4]) - before
    graph = default.positions((edge.source, edge.target) for edge in model.edges_)
    out: dict[str, object] = {
        "edges": len(table.truth),
        "true": len(graph & table.truth),
        "false": len(graph - table.truth),
        "said": "" if fitted.expected_false is None else f"{fitted.expected_false:.4f}",
        "false_latent": len(graph - of_latent),
        "seconds": f"{seconds:.2f}",
        "rows": len(table.values),
    }
    if fitted.edge_probability is None:
        return out
    node = [fitted.schema.node_index(name) for name in table.types]
    pairs = list(combinations(range(len(node)), 2))
    chance = np.array([fitted.edge_probability[node[u], node[v]] for u, v in pairs])
    is_edge = np.array([pair in table.truth for pair in pairs])
    for low, high in zip(BOUNDS, (*BOUNDS[1:], 2.0), strict=True):
        some = (chance >= low) & (chance < high)
        out |= {
            f"pairs_{low}": int(some.sum()),
            f"sum_{low}": f"{chance[some].sum():.3f}",
            f"edges_{low}": int(is_edge[some].sum()),
        }
    return out


def stored(file: Path) -> pd.DataFrame:
    """Everything counted so far."""
    return pd.read_csv(file) if file.exists() else pd.DataFrame(columns=FIELDS)


Call = tuple[Callable[..., object], tuple[object, ...]]


def outcome(numbered: tuple[int, Call]) -> tuple[int, object]:
    """Number and outcome of a call."""
    number, (function, arguments) = numbered
    return number, function(*arguments)


def outcomes(calls: Sequence[Call], n_jobs: int) -> Iterator[tuple[int, object]]:
    """Number and outcome of every call, as they come."""
    if n_jobs == 1:
        yield from map(outcome, enumerate(tqdm(calls)))
        return
    with Pool(n_jobs, initializer=stopped_by_parent) as pool:  # an interrupt ends its processes
        found = pool.imap_unordered(outcome, enumerate(calls))
        yield from tqdm(found, total=len(calls))


def stopped_by_parent() -> None:
    """Leave an interrupt to the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def known_graphs(file: Path, settings: Iterable[str], n_jobs: int) -> Graphs:
    """The graphs of all populations, from the file; those of these settings by fits."""
    graphs: Graphs = json.loads(file.read_text("utf-8")) if file.exists() else {}
    new = {
        graph_key(name, number): (edges_of_many_rows, (name, number))
        for name in settings
        for number in range(POPULATIONS)
        if SETTINGS[name].population and graph_key(name, number) not in graphs
    }
    for k, edges in outcomes(list(new.values()), n_jobs):
        graphs[list(new)[k]] = edges  # type: ignore[assignment]
        file.write_text(json.dumps(graphs, sort_keys=True), "utf-8")
    return graphs


def run(file: Path, settings: Sequence[str], n_tables: int, n_jobs: int) -> None:
    """Count what the file does not have yet."""
    known = stored(file)
    graphs = known_graphs(file.with_suffix(".json"), settings, n_jobs)
    done = set(zip(known["tables"], known["seed"], strict=True))
    left = [
        (name, seed) for seed in range(n_tables) for name in settings if (name, seed) not in done
    ]
    calls: list[Call] = [(counted, (name, seed, graphs)) for name, seed in left]
    is_new = not file.exists()
    with file.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        for k, counts in outcomes(calls, n_jobs):
            name, seed = left[k]
            writer.writerow({"tables": name, "seed": seed, **counts})  # type: ignore[dict-item]
            stream.flush()


# -- report ----------------------------------------------------------------------------------------


def said_and_true(counts: pd.DataFrame, lows: Sequence[float]) -> str:
    """Mean probability, share of edges and number of the pairs in classes; empty without pairs."""
    pairs, chances, edges = (
        counts[[f"{what}_{low}" for low in lows]].to_numpy().sum()
        for what in ("pairs", "sum", "edges")
    )
    return f"{chances / pairs:.2f}/{edges / pairs:.2f} ({pairs:.0f})" if pairs else ""


def lines(counts: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    """A row of the report for every setting."""
    for name in SETTINGS:
        some = counts[(counts["tables"] == name) & counts["edges"].notna()]
        if some.empty:
            continue
        f1 = [default.f1(*row) for row in some[["edges", "true", "false"]].to_numpy()]
        said, false = some["said"].astype(float), some["false"]
        apart = said - false
        variance = max(apart.var(), said.mean())  # at least that of independent false edges
        ratio = false.mean() / said.mean() if said.mean() > 0 else np.nan
        holds = abs(ratio - 1) <= 0.25 or abs(apart.mean()) <= 2 * np.sqrt(variance / len(some))
        classes = [said_and_true(some, lows) for lows in (BOUNDS[:-1], *((low,) for low in BOUNDS))]
        yield (
            name,
            f"{len(some)}",
            f"{np.mean(f1):.3f}",
            f"{some['true'].mean():.1f} of {some['edges'].mean():.1f}",
            f"{said.mean():.2f}",
            f"{false.mean():.2f}",
            "yes" if holds else "NO",
            f"{some['false_latent'].mean():.2f}",
            *classes,
            f"{some['seconds'].mean():.2f}",
        )


HEADING = (
    *("tables", "number", "F1", "found", "said false", "false", "holds", "false, latent"),
    "0.3 to 0.95",
    *(f"from {low:g}" for low in BOUNDS),
    "seconds",
)


def main() -> None:
    """Count or report, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("settings", nargs="*", help="beginnings of names")
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    wanted = tuple(args.settings) or ("",)
    if not args.report:
        some = [name for name in SETTINGS if name.startswith(wanted)]
        run(args.file, some, args.tables, args.jobs)
    default.printed(HEADING, lines(stored(args.file)))


if __name__ == "__main__":
    main()
