"""Tables drawn from known graphs -> the best graph on the path, by the metric of group norms.

The group lasso of the pseudolikelihood with the norm of a pair (u, v) in the metric of its own
covariance under independence,

    |Sigma_u^(1/2) theta_uv Sigma_v^(1/2)|,

Sigma_v the covariance of the level indicators of column v, 1 for a standardised number: the
standardised group lasso (Simon and Tibshirani 2012).  It is the plain group lasso of whitened
contrasts.  It is compared with the package's own weights, calibrated and adaptive, on tables of
`default.py`.

All about a metric is in the contrasts that a categorical column is written in, and all groups have
weight 1:

    calibrated               Q / root of the trace of S             Q: orthonormal contrasts
    calibrated, less df      Q / root of the mean of S's diagonal   S = Q' Sigma_v Q
    standardised             Q S^(-1/2)
    standardised, root df    Q S^(-1/2) / root of (levels - 1)

These are two questions, crossed.  The metric: calibrated or whitened.  The weight: the first and
the last make the expected squared gradient of all groups equal under independence, which is the
weight root(df) of Simon and Tibshirani, df the number of parameters; the two others leave that out,
so that a group of many parameters is penalised as little as one of a single parameter.

Run ``python docs/studies/standardised.py check`` to compare the solver here, plain FISTA, with the
package; and ``python docs/studies/standardised.py`` to count.  That writes `standardised.csv`
beside this file row by row, goes on where it ends, and prints the table; ``report`` prints only.
"""

import csv
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import default
import numpy as np
import pandas as pd
from numpy.typing import NDArray

import mixedgm as mg

Floats = NDArray[np.float64]

SETTINGS = (
    "hubs, rare levels, 10 + 10, n = 1,000",
    "rare levels, 8 + 8, n = 500",
    "random 10 + 10, n = 500",
    "five-level items as categories, n = 600",
)
REPLICATES = 10
TOLERANCE = 1e-4  # KKT, on the scale on which lam_max is at most 2
RATIO = 100 ** (1 / 49)  # of one lam to the next: the package's
LAST = 30  # the path ends at lam_max / LAST, or just below
FILE = Path(__file__).with_suffix(".csv")
FIELDS = ("setting", "seed", "weights", "best_f1", "edges", "true", "false")
LOG_FILE = Path(__file__).with_name("standardised_log.csv")
LOG_FIELDS = (
    "setting",
    "seed",
    "weights",
    "n_lams",
    "best_at",
    "most_edges",
    "by_parameters",
    "kkt",
    "seconds",
)

# -- metrics: contrasts of one categorical column from the shares of its levels --------------------


def orthonormal(n_levels: int) -> Floats:
    """(levels, levels - 1) orthonormal basis of the vectors that sum to zero."""
    basis = np.linalg.qr(np.column_stack([np.ones(n_levels), np.eye(n_levels)[:, 1:]]))[0]
    return basis[:, 1:]


def calibrated(shares: Floats) -> Floats:
    """Orthonormal contrasts, divided by the root of the total variance of the indicators."""
    return orthonormal(len(shares)) / np.sqrt(shares @ (1 - shares))


def calibrated_less_size(shares: Floats) -> Floats:
    """The same with a mean variance of 1, so that groups of many parameters weigh no more."""
    return calibrated(shares) * np.sqrt(len(shares) - 1)


def standardised(shares: Floats) -> Floats:
    """Contrasts that have the unit matrix for their covariance."""
    basis = orthonormal(len(shares))
    covariance = basis.T @ (np.diag(shares) - np.outer(shares, shares)) @ basis
    values, vectors = np.linalg.eigh(covariance)
    return basis @ (vectors / np.sqrt(values)) @ vectors.T


def standardised_by_size(shares: Floats) -> Floats:
    """The same with a total variance of 1, so that groups are weighted by the root of their df."""
    return standardised(shares) / np.sqrt(len(shares) - 1)


Metric = Callable[[Floats], Floats]

# -- the pseudolikelihood --------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """Parameters: symmetric edges (columns, columns), biases (columns,), precisions (numbers,).

    Edges between two numbers are minus the entries of the precision matrix.
    """

    edges: Floats
    bias: Floats
    precision: Floats

    def moved(self, direction: "Point", step: float) -> "Point":
        """A step along a direction away."""
        return Point(
            self.edges + step * direction.edges,
            self.bias + step * direction.bias,
            self.precision + step * direction.precision,
        )

    def times(self, other: "Point") -> float:
        """Inner product, every pair counted once."""
        nodes = self.bias @ other.bias + self.precision @ other.precision
        return float(0.5 * np.vdot(self.edges, other.edges) + nodes)


class Pseudolikelihood:
    """Minus the mean log pseudolikelihood of a table of numbers and categories, without log 2 pi.

    Design columns are standardised numbers and the centred contrasts of the categories; each of
    them also has a linear predictor, bias + design @ edges.
    """

    def __init__(self, table: default.Table, metric: Metric) -> None:
        order = [k for kind in ("continuous", "categorical") for k in of_kind(table, kind)]
        numbers = table.values[:, of_kind(table, "continuous")]
        self.n_rows, self.n_numbers = numbers.shape
        self.log_units = float(np.log(numbers.std(axis=0)).sum())
        self.numbers = default.standardised(numbers)
        design, indicators, blocks = [self.numbers], [], []
        node = list(range(self.n_numbers))
        for k in order[self.n_numbers :]:
            levels = np.unique(table.values[:, k])
            indicator = (table.values[:, [k]] == levels).astype(np.float64)
            contrasts = metric(indicator.mean(axis=0))
            design.append((indicator - indicator.mean(axis=0)) @ contrasts)
            indicators.append(indicator)
            blocks.append(contrasts)
            node += [len(blocks) - 1 + self.n_numbers] * contrasts.shape[1]
        self.design = np.column_stack(design)
        self.indicators = np.column_stack([np.zeros((self.n_rows, 0)), *indicators])
        self.contrasts = block_diagonal(blocks)
        self.starts = np.cumsum([0] + [len(block) for block in blocks])[:-1]
        self.level_node = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
        self.order, self.node = np.array(order), np.array(node)
        self.pooling = (self.node[:, None] == np.arange(len(order))).astype(np.float64)
        self.between = self.node[:, None] != self.node

    def empty(self) -> Point:
        """The best point without edges."""
        n_columns = self.design.shape[1]
        shares = self.indicators.mean(axis=0)
        bias = np.zeros(n_columns)
        bias[self.n_numbers :] = np.linalg.lstsq(self.contrasts, self._centred_logs(shares))[0]
        return Point(np.zeros((n_columns, n_columns)), bias, np.ones(self.n_numbers))

    def _centred_logs(self, shares: Floats) -> Floats:
        logs = np.log(shares)
        if not len(logs):
            return logs
        means = np.add.reduceat(logs, self.starts) / np.bincount(self.level_node)
        return logs - means[self.level_node]

    def predictors(self, point: Point) -> Floats:
        """(rows, columns) linear predictors."""
        return point.bias + self.design @ point.edges

    def value(self, predictors: Floats, precision: Floats) -> float:
        """The loss; infinite where a precision is not positive."""
        return self._terms(predictors, precision)[0]

    def _terms(self, predictors: Floats, precision: Floats) -> tuple[float, Floats, Floats]:
        """The loss, residuals of the numbers, and probabilities of all levels."""
        if len(precision) and precision.min() <= 0:
            return np.inf, self.numbers, self.indicators
        residuals = predictors[:, : self.n_numbers] / precision - self.numbers
        squares = np.einsum("ij,ij->j", residuals, residuals) / self.n_rows
        loss = 0.5 * float(precision @ squares - np.log(precision).sum())
        if not len(self.starts):
            return loss, residuals, self.indicators
        logits = predictors[:, self.n_numbers :] @ self.contrasts.T
        logits -= np.maximum.reduceat(logits, self.starts, axis=1)[:, self.level_node]
        weights = np.exp(logits)
        sums = np.add.reduceat(weights, self.starts, axis=1)
        loss += float(np.log(sums).sum() - np.vdot(logits, self.indicators)) / self.n_rows
        return loss, residuals, weights / sums[:, self.level_node]

    def gradient(self, predictors: Floats, precision: Floats) -> tuple[float, Point]:
        """The loss and its gradient; that of an edge has a part from either conditional."""
        loss, residuals, probabilities = self._terms(predictors, precision)
        excess = (probabilities - self.indicators) @ self.contrasts
        slopes = np.column_stack([residuals, excess])
        half = self.design.T @ slopes / self.n_rows
        own = (self.numbers + 0.5 * residuals) * residuals
        return loss, Point(
            (half + half.T) * self.between,
            slopes.mean(axis=0),
            -0.5 / precision - own.mean(axis=0),
        )

    def norms(self, edges: Floats) -> Floats:
        """(nodes, nodes) norm of every group."""
        return np.sqrt(self.pooling.T @ (edges * edges) @ self.pooling)

    def shrunken(self, edges: Floats, by: float) -> Floats:
        """Every group shortened by so much."""
        norms = self.norms(edges)
        keep = np.maximum(1 - by / np.where(norms > 0, norms, np.inf), 0) * (norms > by)
        return edges * keep[self.node][:, self.node]

    def penalty(self, point: Point) -> float:
        """Sum of the norms of all groups."""
        return 0.5 * float(self.norms(point.edges).sum())

    def kkt(self, point: Point, lam: float) -> float:
        """Largest distance from an optimality condition."""
        _, slope = self.gradient(self.predictors(point), point.precision)
        norms = self.norms(point.edges)
        factors = np.where(norms > 0, lam / np.where(norms > 0, norms, 1.0), 0.0)
        off = self.norms(slope.edges + factors[self.node][:, self.node] * point.edges)
        off = np.where(norms > 0, off, np.maximum(off - lam, 0.0))
        return float(
            max(off.max(), np.abs(slope.bias).max(), np.abs(slope.precision).max(initial=0))
        )

    def graph(self, point: Point) -> default.Edges:
        """Pairs of table columns whose group is not zero."""
        pairs = np.argwhere(np.triu(self.norms(point.edges) > 0, 1))
        return frozenset(tuple(sorted(self.order[pair].tolist())) for pair in pairs)


def of_kind(table: default.Table, kind: str) -> list[int]:
    """Positions of the columns of a kind."""
    return [k for k, each in enumerate(table.kinds) if each == kind]


def block_diagonal(blocks: list[Floats]) -> Floats:
    """One matrix with these along its diagonal."""
    out = np.zeros((sum(map(len, blocks)), sum(block.shape[1] for block in blocks)))
    row = column = 0
    for block in blocks:
        out[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    return out


# -- the solver ------------------------------------------------------------------------------------


class Fista:
    """Accelerated proximal gradient with backtracking, restarted where momentum goes uphill."""

    def __init__(self, loss: Pseudolikelihood, tolerance: float = TOLERANCE) -> None:
        self.loss, self.tolerance = loss, tolerance
        self.curvature = 1.0
        self.steps = 0

    def solve(self, start: Point, lam: float, most: int = 20_000) -> tuple[Point, float]:
        """The minimum, and its KKT number."""
        loss = self.loss
        x, at_x = start, loss.predictors(start)
        y, at_y, momentum = x, at_x, 1.0
        for step in range(most):
            self.steps += 1
            value, slope = loss.gradient(at_y, y.precision)
            self.curvature *= 0.97
            while True:
                new = y.moved(slope, -1 / self.curvature)
                edges = loss.shrunken(new.edges, lam / self.curvature)
                new = Point(edges, new.bias, new.precision)
                at_new = loss.predictors(new)
                move = new.moved(y, -1.0)
                limit = value + slope.times(move) + 0.5 * self.curvature * move.times(move)
                if loss.value(at_new, new.precision) <= limit + 1e-13 * abs(value):
                    break
                self.curvature *= 1.5
            change = new.moved(x, -1.0)
            size = self.curvature * np.sqrt(move.times(move))
            if size <= 2 * self.tolerance or step % 50 == 49:
                kkt = loss.kkt(new, lam)
                if kkt <= self.tolerance:
                    return new, kkt
            if move.times(change) < 0:
                momentum, push = 1.0, 0.0
            else:
                following = 0.5 + np.sqrt(0.25 + momentum**2)
                momentum, push = following, (momentum - 1) / following
            y, at_y = new.moved(change, push), at_new + push * (at_new - at_x)
            if len(y.precision) and y.precision.min() <= 0:
                momentum, y, at_y = 1.0, new, at_new
            x, at_x = new, at_new
        return x, loss.kkt(x, lam)


def largest_lam(loss: Pseudolikelihood) -> float:
    """The smallest lam without edges."""
    empty = loss.empty()
    _, slope = loss.gradient(loss.predictors(empty), empty.precision)
    return float(loss.norms(slope.edges).max())


def path(
    loss: Pseudolikelihood, ratio: float = RATIO, last: float = LAST
) -> Iterator[tuple[float, Point, float]]:
    """Every lam with its solution and KKT number, from the one without edges down."""
    solver, point, top = Fista(loss), loss.empty(), largest_lam(loss)
    for k in range(int(np.ceil(np.log(last) / np.log(ratio) - 1e-9)) + 1):
        lam = top / ratio**k
        point, kkt = solver.solve(point, lam)
        yield lam, point, kkt


# -- the comparison --------------------------------------------------------------------------------


def in_metric(table: default.Table, metric: Metric) -> tuple[list[default.Edges], float]:
    """Graphs along the path, and the largest KKT number."""
    loss = Pseudolikelihood(table, metric)
    points = list(path(loss))
    return [loss.graph(point) for _, point, _ in points], max(kkt for _, _, kkt in points)


def by_package(table: default.Table, **options: object) -> tuple[list[default.Edges], float]:
    """The same of the package, as `default.best_on_path` has it."""
    found = default.fitted(table, select="aic", **options).path_
    graphs = [default.positions(found.edges(k)) for k in range(len(found))]
    return graphs, float(np.max(found.kkt))


METHODS = {
    "calibrated": by_package,
    "adaptive": partial(by_package, penalty_weights="adaptive"),
    "calibrated, same grid": partial(in_metric, metric=calibrated),
    "calibrated, less df": partial(in_metric, metric=calibrated_less_size),
    "standardised": partial(in_metric, metric=standardised),
    "standardised, root df": partial(in_metric, metric=standardised_by_size),
}

PAIRS = (
    ("calibrated, same grid", "calibrated"),
    ("standardised", "calibrated"),
    ("standardised", "adaptive"),
    ("standardised, root df", "calibrated, same grid"),
    ("standardised", "calibrated, less df"),
    ("calibrated, less df", "calibrated, same grid"),
    ("standardised", "standardised, root df"),
)


def counted(table: default.Table, graphs: list[default.Edges]) -> tuple[int, dict[str, object]]:
    """Where the graph with the highest F1 is, the first of them if there are many; its counts."""
    counts = [(len(graph & table.truth), len(graph - table.truth)) for graph in graphs]
    scores = [default.f1(len(table.truth), *each) for each in counts]
    best = int(np.argmax(scores))
    true, false = counts[best]
    row = {"best_f1": round(scores[best], 6), "edges": len(table.truth), "true": true}
    return best, row | {"false": false}


def by_parameters(table: default.Table, graph: default.Edges) -> str:
    """Number of parameters: true edges there are / found / false ones found."""
    parts = (table.truth, graph & table.truth, graph - table.truth)
    counts = []
    for df in sorted(set(table.parameters.values())):
        pairs = {pair for pair, each in table.parameters.items() if each == df}
        counts.append(f"{df}:" + "/".join(str(len(part & pairs)) for part in parts))
    return " ".join(counts)


def written(file: Path, fields: tuple[str, ...], row: dict[str, object]) -> None:
    """Append a row."""
    is_new = not file.exists()
    with file.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fields, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def run() -> None:
    """Count what the file does not have yet."""
    known = pd.read_csv(FILE) if FILE.exists() else pd.DataFrame(columns=FIELDS)
    done = set(zip(known["setting"], known["seed"], known["weights"], strict=True))
    for seed in range(REPLICATES):
        for name in SETTINGS:
            table = default.drawn(name, seed)
            for weights, method in METHODS.items():
                if (name, seed, weights) in done:
                    continue
                before = time.process_time()
                graphs, kkt = method(table)
                best, counts = counted(table, graphs)
                key = {"setting": name, "seed": seed, "weights": weights}
                written(FILE, FIELDS, key | counts)
                log = {
                    "n_lams": len(graphs),
                    "best_at": best,
                    "most_edges": max(map(len, graphs)),
                    "by_parameters": by_parameters(table, graphs[best]),
                    "kkt": f"{kkt:.1e}",
                    "seconds": f"{time.process_time() - before:.1f}",
                }
                written(LOG_FILE, LOG_FIELDS, key | log)


def report() -> None:
    """Print mean and standard error of F1, true and false edges, and paired differences."""
    counts = pd.read_csv(FILE)
    f1 = counts.pivot(index=["setting", "seed"], columns="weights", values="best_f1")
    names = [name for name in METHODS if name in f1]
    default.printed(
        ["tables", "seeds", *names],
        (
            [name, str(len(f1.loc[name])), *(default.mean(f1.loc[name, w], 3) for w in names)]
            for name in SETTINGS
        ),
    )
    default.printed(
        ["tables", *(f"{a} less {b}" for a, b in PAIRS)],
        (
            [name, *(default.mean(f1.loc[name, a] - f1.loc[name, b], 3) for a, b in PAIRS)]
            for name in SETTINGS
        ),
    )
    found = counts.groupby(["setting", "weights"])[["true", "false"]].mean()
    default.printed(
        ["true + false edges", *names],
        (
            [name, *("{:.1f} + {:.1f}".format(*found.loc[(name, weights)]) for weights in names)]
            for name in SETTINGS
        ),
    )

    log = pd.read_csv(LOG_FILE)
    lines = []
    for (name, weights), rows in log.groupby(["setting", "weights"], sort=False):
        sums: dict[str, NDArray[np.int64]] = {}
        for part in " ".join(rows["by_parameters"]).split():
            df, cell = part.split(":")
            sums[df] = sums.get(df, 0) + np.array([int(number) for number in cell.split("/")])
        lines.append([name, weights, *(f"{df}: {b}/{a} + {c}" for df, (a, b, c) in sums.items())])
    width = max(map(len, lines))
    default.printed(
        ["tables", "weights", *["df: true found / all + false, in all seeds"] * (width - 2)],
        (line + [""] * (width - len(line)) for line in lines),
    )


def check() -> None:
    """Compare the solver with the package, calibrated weights, two values of lam per setting."""
    for name in SETTINGS:
        table = default.drawn(name, 0)
        loss = Pseudolikelihood(table, calibrated)
        top, point = largest_lam(loss), loss.empty()
        solver = Fista(loss)
        for share in (0.3, 0.08):
            model = default.fitted(table, lam=share * top, refit=False)
            point, kkt = solver.solve(point, share * top)
            value = loss.value(loss.predictors(point), point.precision)
            value += share * top * loss.penalty(point) + loss.log_units
            edges = default.positions((edge.source, edge.target) for edge in model.edges_)
            sys.stdout.write(
                f"{name}: lam {share * top:.4f}, edges {len(edges)}, differing "
                f"{len(edges ^ loss.graph(point))}, objective {model.objective_:.8f}, here "
                f"{value - model.objective_:+.1e}, KKT {model.kkt_:.1e} and {kkt:.1e}, "
                f"steps {solver.steps}\n"
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore", mg.TableWarning)  # rare levels are the point of some tables
    warnings.simplefilter("ignore", mg.SelectionWarning)
    if "check" in sys.argv:
        check()
    else:
        if "report" not in sys.argv:
            run()
        report()
