"""Tables with ordinal, count and hurdle columns -> optima of a conic solver, objectives by loops.

The conic problem is posed in standardised units, every value of every column with a logit of its
own; of a hurdle column, not zero has the logarithm of an integral.  The loops follow the formulas
in the units of the table.  Nothing of the package is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from tests.support import dense
from tests.support.problems import SCORED, Table, draw

from . import plain
from .conic import EDGE_THRESHOLD, _pair_weights, solve_tightly

Floats = NDArray[np.float64]
Pair = tuple[int, int]

# Seed, rows, continuous columns, values, weighted rows, kinds of the first columns with values;
# hurdle columns, which come before them.
TABLES = {
    "all-kinds": (1, 60, 2, (4, 4, 9, 9, 3), False, SCORED),
    "ordinal-count": (2, 50, 1, (4, 8, 3), True, (SCORED[0], SCORED[2])),
    "discrete": (3, 60, 0, (4, 9, 2, 3), False, (SCORED[1], SCORED[3])),
    "hurdle": (4, 60, 1, (), True, (), 2),
    "hurdle-all-kinds": (5, 60, 1, (4, 8, 3), False, (SCORED[0], SCORED[3]), 2),
}


@dataclass(frozen=True, eq=False)
class Problem:
    """A table, the penalty, and what a pair counts; lam is a fraction of that of no edges."""

    table: Table
    fraction: float
    weights: str = "calibrated"
    factors: Floats | None = None

    @property
    def targets(self) -> list[int]:
        n_nodes = self.table.n_gaussian + len(self.table.n_levels)
        return [v for v in range(n_nodes) if v not in self.table.covariates]


def _special() -> dict[str, Problem]:
    table = draw(*TABLES["all-kinds"])
    given = Table(table.X, table.Y, table.n_levels, None, (1, 2, 5), table.scored)
    factors = np.ones((7, 7))
    for (u, v), factor in {
        (0, 2): 0.0,
        (2, 4): 0.0,
        (3, 6): 0.0,
        (1, 5): np.inf,
        (2, 3): 2.5,
    }.items():
        factors[u, v] = factors[v, u] = factor
    spiked = draw(*TABLES["hurdle-all-kinds"])
    of_pair = np.ones((6, 6))
    for (u, v), factor in {(0, 1): 0.0, (1, 2): 0.0, (2, 5): np.inf, (1, 4): 2.5}.items():
        of_pair[u, v] = of_pair[v, u] = factor
    return {
        "hurdle-given": Problem(replace(spiked, covariates=(0, 2, 3)), 0.15),
        "hurdle-factors": Problem(spiked, 0.25, factors=of_pair),
        "given": Problem(given, 0.2),
        "given-uniform": Problem(given, 0.05, "uniform"),
        "factors": Problem(table, 0.25, factors=factors),
    }


PROBLEMS = {
    **{
        f"{name}-{weights}-{fraction}": Problem(draw(*shape), fraction, weights)
        for name, shape in TABLES.items()
        for weights in ("calibrated", "uniform")
        for fraction in (0.6, 0.25, 0.07)
    },
    **_special(),
}


class Columns:
    """Each node as a matrix of features: a standardised column or score, or one per level."""

    def __init__(self, table: Table):
        self.table, self.n_gaussian = table, table.n_gaussian
        self.share = dense.shares(len(table.Y), table.row_weights)
        X = table.X[:, : self.n_gaussian]
        mean = self.share @ X
        self.scale = np.sqrt(self.share @ (X - mean) ** 2)
        self.values = dense.values_of(table, self.share)
        standard = (X - mean) / self.scale
        self.features = [standard[:, [s]] for s in range(self.n_gaussian)]
        self.features += [
            node.observed(y)[:, node.n_terms :]
            for node, y in zip(self.values, table.Y.T, strict=True)
        ]
        self.unit = np.r_[self.scale, [node.unit for node in self.values]]
        self.column_units = [np.array([unit]) for unit in self.scale]
        self.column_units += [node.column_units for node in self.values]
        self.spread = np.sqrt(
            [self.share @ ((f - self.share @ f) ** 2).sum(axis=1) for f in self.features]
        )

    @property
    def n_nodes(self) -> int:
        return len(self.features)


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimum: its value in own units, and everything else in standardised units."""

    lam: float
    value: float
    linear: list[Floats]
    """Of every node: its linear term, or own terms; zero for covariates."""
    diagonal: Floats
    blocks: dict[Pair, Floats]
    strength: dict[Pair, float]

    @property
    def edges(self) -> set[Pair]:
        return {pair for pair, norm in self.strength.items() if norm > EDGE_THRESHOLD}


@cache
def optimum(name: str) -> Optimum:
    """Solve a problem with the conic solver, once per session."""
    return solve(PROBLEMS[name])


def solve(problem: Problem, ridge: dict[Pair, float] | None = None) -> Optimum:
    """The optimum; `ridge` is worth so many rows, by pair."""
    columns = Columns(problem.table)
    own = _pair_weights(columns, problem.weights, problem.factors)
    targets = problem.targets
    weights = {
        (u, v): own[u, v]
        * (0.5 * len({u, v} & set(targets)) if problem.weights != "uniform" else 1)
        for u, v in combinations(range(columns.n_nodes), 2)
        if {u, v} & set(targets) and np.isfinite(own[u, v])
    }
    lam = problem.fraction * lam_max(columns, weights, targets)
    blocks = {
        (u, v): cp.Variable((columns.features[u].shape[1], columns.features[v].shape[1]))
        for u, v in weights
    }
    linear = [cp.Variable((1, 1)) for _ in range(columns.n_gaussian)]
    linear += [cp.Variable((node.n_terms, 1)) for node in columns.values]
    beta = [cp.Variable() for _ in range(columns.n_gaussian)]
    cones: list[cp.Constraint] = []
    loss = sum(_node_loss(columns, u, blocks, linear[u], beta, cones) for u in targets)
    strength = {pair: lam * w for pair, w in weights.items()}
    penalty = sum(s * cp.norm(blocks[pair], "fro") for pair, s in strength.items() if s > 0)
    held = sum(
        worth * _curvature_of_a_row(columns, pair, targets) * cp.sum_squares(blocks[pair]) / 2
        for pair, worth in (ridge or {}).items()
    )
    posed = cp.Problem(
        cp.Minimize(loss + penalty + held),
        [*cones, *_centring(columns, blocks, linear, strength, targets)],
    )
    solve_tightly(posed)
    p = columns.n_gaussian
    jacobian = sum(math.log(columns.scale[s]) for s in targets if s < p)
    for j in range(problem.table.n_spiked):
        node = columns.values[j]
        jacobian += (p + j in targets) * (columns.share @ node.there) * math.log(node.unit)
    return Optimum(
        lam,
        float(posed.value + jacobian),
        [np.zeros(x.size) if x.value is None else x.value.ravel() for x in linear],
        np.array([1.0 if b.value is None else float(b.value) for b in beta]),
        {pair: block.value for pair, block in blocks.items()},
        {
            (u, v): columns.spread[u] * columns.spread[v] * float(np.linalg.norm(block.value))
            for (u, v), block in blocks.items()
        },
    )


def _curvature_of_a_row(columns: Columns, pair: Pair, targets: list[int]) -> float:
    """Mean over the free directions of a block of what one row adds, of independent columns."""
    n_rows = (
        len(columns.share) if columns.table.row_weights is None else columns.table.row_weights.sum()
    )
    trace = (columns.spread[pair[0]] * columns.spread[pair[1]]) ** 2
    p, spiked = columns.n_gaussian, columns.table.n_spiked
    free = [
        2 if p <= node < p + spiked else max(1, columns.features[node].shape[1] - 1)
        for node in pair
    ]
    return len(set(pair) & set(targets)) * trace / (free[0] * free[1]) / n_rows


def lam_max(columns: Columns, weights: dict[Pair, float], targets: list[int]) -> float:
    """Without free pairs: the largest |covariance| over its weight, once for every target."""
    best = 0.0
    for (u, v), weight in weights.items():
        left, right = (f - columns.share @ f for f in (columns.features[u], columns.features[v]))
        covariance = left.T @ (columns.share[:, None] * right)
        if weight > 0:
            best = max(best, len({u, v} & set(targets)) * np.linalg.norm(covariance) / weight)
    return best


def _node_loss(columns, u, blocks, own, beta, cones) -> cp.Expression:
    """Mean negative log conditional of node u, without the half log of two pi of a number.

    What it is subject to is put into `cones`.
    """
    n_rows, width = len(columns.share), columns.features[u].shape[1]
    predictor = np.zeros((n_rows, width))
    for (a, b), block in blocks.items():
        if a == u:
            predictor = predictor + columns.features[b] @ block.T
        elif b == u:
            predictor = predictor + columns.features[a] @ block
    ones = np.ones((n_rows, 1))
    if u < columns.n_gaussian:
        eta = predictor + ones @ own - beta[u] * columns.features[u]
        residual = cp.multiply(np.sqrt(columns.share), cp.vec(eta, order="F"))
        return cp.quad_over_lin(residual, 2 * beta[u]) - cp.log(beta[u]) / 2
    node, y = columns.values[u - columns.n_gaussian], columns.table.Y[:, u - columns.n_gaussian]
    if isinstance(node, dense.Spiked):
        # half of slope^2 / precision is at least `area`, row by row; it is as small as it can be
        precision, area = own[2, 0], cp.Variable(n_rows)
        height = own[0, 0] + predictor[:, 0] / node.spread
        slope = own[1, 0] + predictor[:, 1]
        cones.append(
            cp.SOC(area + 2 * precision, cp.vstack([2 * slope, 2 * precision - area]), axis=0)
        )
        log_integral = height + area + 0.5 * math.log(2 * math.pi) - 0.5 * cp.log(precision)
        exponent = height + cp.multiply(slope, node.y) - precision * node.y**2 / 2
        return columns.share @ (cp.logistic(log_integral) - cp.multiply(node.there, exponent))
    logits = ones @ (node.terms @ own).T + ones @ node.base[None] + predictor @ node.columns.T
    chosen = cp.sum(cp.multiply(np.eye(len(node.base))[y], logits), axis=1)
    return columns.share @ (cp.log_sum_exp(logits, axis=1) - chosen)


def _centring(columns, blocks, linear, strength, targets) -> list[cp.Constraint]:
    """Sums over levels that no penalty settles: those of free own terms and of free blocks."""
    constraints, p = [], columns.n_gaussian
    q = p + columns.table.n_spiked
    with_levels = [u >= q and columns.features[u].shape[1] > 1 for u in range(columns.n_nodes)]
    for u in targets:
        if u >= q and columns.values[u - p].n_slots == columns.values[u - p].n_terms:
            constraints.append(cp.sum(linear[u]) == 0)
    for (u, v), block in blocks.items():
        if strength[u, v] == 0 and with_levels[v]:
            constraints.append(cp.sum(block, axis=1) == 0)
            if with_levels[u]:
                constraints.append(cp.sum(block, axis=0)[:-1] == 0)
    return constraints


# --- the objective in own units, by loops ---------------------------------------------------------


def own_logit(table: Table, j: int, terms, c: int) -> float:
    """Logit of value c of a discrete column without neighbours, in the units of the table."""
    if j >= table.n_spiked + len(table.scored):
        return float(terms[c])
    kind = table.scored[j - table.n_spiked]
    if kind.name == "count":
        zero = terms[2] if kind.zero_term and c == 0 else 0.0
        return float(terms[0] * math.sqrt(c) + terms[1] * c - math.lgamma(c + 1) + zero)
    if kind.thresholds == "free":
        return float(terms[c])
    s = score(table, j, c)
    return float(terms[0] * s + terms[1] * s * s)


def score(table: Table, j: int, c: int) -> float:
    """What the others see of value c of a scored column."""
    kind = table.scored[j - table.n_spiked]
    if kind.name == "count":
        return math.sqrt(c)
    return float(kind.level_scores[c] if kind.level_scores else c)


def objective(params, problem: Problem, lam: float, weights: Floats) -> float:
    """The penalised objective; `weights` are those of blocks in standard units."""
    table, units = problem.table, Columns(problem.table).column_units
    p, h, share = table.n_gaussian, table.n_spiked, dense.shares(len(table.Y), table.row_weights)
    k = h + len(table.scored)
    width = [len(unit) for unit in units]
    start = np.cumsum([0, *width])
    total = 0.0
    for i in range(len(table.Y)):
        seen = [[(start[s], table.X[i, s])] for s in range(p)]
        for j in range(h):
            x = table.X[i, p + j]
            there = float(x != 0.0)
            amount = there * (x - table.locations[j])
            seen.append([(start[p + j], there), (start[p + j] + 1, amount)])
        seen += [[(start[p + j], score(table, j, table.Y[i, j]))] for j in range(h, k)]
        seen += [[(start[p + j] + table.Y[i, j], 1.0)] for j in range(k, len(table.n_levels))]
        for v in problem.targets:
            others = [one for u, each in enumerate(seen) if u != v for one in each]
            eta = [
                sum(params.coef[column, start[v] + a] * z for column, z in others)
                for a in range(width[v])
            ]
            terms = params.terms_of(v)
            if v < p:
                b = params.diagonal[v]
                here = (eta[0] + terms[0] - b * table.X[i, v]) ** 2 / (2 * b) - 0.5 * math.log(b)
            elif v < p + h:
                height, slope, b = terms[0] + eta[0], terms[1] + eta[1], terms[2]
                (_, there), (_, y) = seen[v]
                log_integral = height + slope**2 / (2 * b) + 0.5 * math.log(2 * math.pi / b)
                exponent = height + slope * y - b * y * y / 2
                here = plain.log_sum_exp([0.0, log_integral]) - there * exponent
            else:
                j = v - p
                logits = [
                    own_logit(table, j, terms, c)
                    + (score(table, j, c) * eta[0] if j < k else eta[c])
                    for c in range(table.n_levels[j])
                ]
                here = plain.log_sum_exp(logits) - logits[table.Y[i, j]]
            total += share[i] * here
    for u, v in combinations(range(len(width)), 2):
        block = params.coef[start[u] : start[u] + width[u], start[v] : start[v] + width[v]]
        if block.any():
            block = block * np.outer(units[u], units[v])
            total += lam * weights[u, v] * math.sqrt((block**2).sum())
    return total
