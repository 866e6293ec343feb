"""Tables with ordinal and count columns -> optima of a conic solver, and objectives by loops.

The conic problem is posed in standardised units, every value of every column with a logit of its
own.  The loops follow the formulas in the units of the table.  Nothing of the package is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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

# Seed, rows, continuous columns, values, weighted rows, kinds of the first columns with values.
TABLES = {
    "all-kinds": (1, 60, 2, (4, 4, 9, 9, 3), False, SCORED),
    "ordinal-count": (2, 50, 1, (4, 8, 3), True, (SCORED[0], SCORED[2])),
    "discrete": (3, 60, 0, (4, 9, 2, 3), False, (SCORED[1], SCORED[3])),
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
    return {
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
        mean = self.share @ table.X
        self.scale = np.sqrt(self.share @ (table.X - mean) ** 2)
        self.values = dense.values_of(table, self.share)
        standard = (table.X - mean) / self.scale
        self.features = [standard[:, [s]] for s in range(self.n_gaussian)]
        self.features += [node.columns[y] for node, y in zip(self.values, table.Y.T, strict=True)]
        self.unit = np.r_[self.scale, [node.unit for node in self.values]]
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
    linear += [cp.Variable((node.terms.shape[1], 1)) for node in columns.values]
    beta = [cp.Variable() for _ in range(columns.n_gaussian)]
    loss = sum(_node_loss(columns, u, blocks, linear[u], beta) for u in targets)
    strength = {pair: lam * w for pair, w in weights.items()}
    penalty = sum(s * cp.norm(blocks[pair], "fro") for pair, s in strength.items() if s > 0)
    held = sum(
        worth * _curvature_of_a_row(columns, pair, targets) * cp.sum_squares(blocks[pair]) / 2
        for pair, worth in (ridge or {}).items()
    )
    posed = cp.Problem(
        cp.Minimize(loss + penalty + held), _centring(columns, blocks, linear, strength, targets)
    )
    solve_tightly(posed)
    jacobian = sum(math.log(columns.scale[s]) for s in targets if s < columns.n_gaussian)
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
    free = [max(1, columns.features[node].shape[1] - 1) for node in pair]
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


def _node_loss(columns, u, blocks, own, beta) -> cp.Expression:
    """Mean negative log conditional of node u, without the half log of two pi."""
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
    logits = ones @ (node.terms @ own).T + ones @ node.base[None] + predictor @ node.columns.T
    chosen = cp.sum(cp.multiply(np.eye(len(node.base))[y], logits), axis=1)
    return columns.share @ (cp.log_sum_exp(logits, axis=1) - chosen)


def _centring(columns, blocks, linear, strength, targets) -> list[cp.Constraint]:
    """Sums over levels that no penalty settles: those of free own terms and of free blocks."""
    constraints, p = [], columns.n_gaussian
    with_levels = [u >= p and columns.features[u].shape[1] > 1 for u in range(columns.n_nodes)]
    for u in targets:
        if u >= p and columns.values[u - p].terms.shape[0] == columns.values[u - p].terms.shape[1]:
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
    if j >= len(table.scored):
        return float(terms[c])
    kind = table.scored[j]
    if kind.name == "count":
        zero = terms[2] if kind.zero_term and c == 0 else 0.0
        return float(terms[0] * math.sqrt(c) + terms[1] * c - math.lgamma(c + 1) + zero)
    if kind.thresholds == "free":
        return float(terms[c])
    s = score(table, j, c)
    return float(terms[0] * s + terms[1] * s * s)


def score(table: Table, j: int, c: int) -> float:
    """What the others see of value c of a scored column."""
    kind = table.scored[j]
    if kind.name == "count":
        return math.sqrt(c)
    return float(kind.level_scores[c] if kind.level_scores else c)


def objective(params, table: Table, lam: float, weights: Floats, targets) -> float:
    """Mean loss plus penalty; `weights` are those of pairs in own units."""
    p, k, share = table.n_gaussian, len(table.scored), dense.shares(len(table.Y), table.row_weights)
    width = [1] * (p + k) + list(table.n_levels[k:])
    start = [sum(width[:v]) for v in range(len(width))]
    total = 0.0
    for i in range(len(table.Y)):
        seen = [(start[s], table.X[i, s]) for s in range(p)]
        seen += [(start[p + j], score(table, j, table.Y[i, j])) for j in range(k)]
        seen += [(start[p + j] + table.Y[i, j], 1.0) for j in range(k, len(table.n_levels))]
        for v in targets:
            others = [one for u, one in enumerate(seen) if u != v]
            eta = [
                sum(params.coef[column, start[v] + a] * z for column, z in others)
                for a in range(width[v])
            ]
            terms = params.terms_of(v)
            if v < p:
                b = params.diagonal[v]
                here = (eta[0] + terms[0] - b * table.X[i, v]) ** 2 / (2 * b) - 0.5 * math.log(b)
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
            total += lam * weights[u, v] * math.sqrt((block**2).sum())
    return total
