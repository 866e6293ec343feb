"""Rows with covariates -> likelihood of the targets, its optimality and its optimum, row by row.

Nothing is shared with the package but the names of the parameter blocks.  Every row is normalised
by enumerating the joint states of its categorical targets, each a Gaussian integral.  The optimum
comes from a conic solver: log Z is, row by row, the log-sum-exp of convex functions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from tests.reference.conic import solve_tightly
from tests.reference.likelihood import Rows, states_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Split:
    """Which nodes are covariates: positions of their columns in X and in D, and of the targets'."""

    rows: Rows
    covariates: tuple[int, ...]
    numbers: list[int] = field(init=False)
    known_numbers: list[int] = field(init=False)
    levels: list[int] = field(init=False)
    known_levels: list[int] = field(init=False)
    states: Floats = field(init=False)

    def __post_init__(self) -> None:
        p, starts = self.rows.X.shape[1], self.rows.starts
        known = set(self.covariates)

        def levels(inside):
            nodes = [j for j in range(len(self.rows.n_levels)) if (p + j in known) == inside]
            return [a for j in nodes for a in range(starts[j], starts[j + 1])]

        parts = {
            "numbers": [s for s in range(p) if s not in known],
            "known_numbers": [s for s in range(p) if s in known],
            "levels": levels(False),
            "known_levels": levels(True),
            "states": states_of(
                tuple(m for j, m in enumerate(self.rows.n_levels) if p + j not in known)
            ),
        }
        for name, value in parts.items():
            object.__setattr__(self, name, value)


def given(params, split: Split, x: Floats, d: Floats):
    """The targets' model in one row: B, linear terms, biases, interactions."""
    s, f, t, g = split.numbers, split.known_numbers, split.levels, split.known_levels
    linear = (
        params.cont_bias[s]
        - params.precision[np.ix_(s, f)] @ x[f]
        + params.category_shift[np.ix_(s, g)] @ d[g]
    )
    bias = (
        params.cat_bias[t]
        + x[f] @ params.category_shift[np.ix_(f, t)]
        + d[g] @ params.cat_interaction[np.ix_(g, t)]
    )
    return (
        params.precision[np.ix_(s, s)],
        linear,
        params.category_shift[np.ix_(s, t)],
        bias,
        params.cat_interaction[np.ix_(t, t)],
    )


def row_log_density(params, split: Split, x: Floats, d: Floats) -> float:
    """log p(targets | covariates) of one row, p/2 log 2 pi left out."""
    precision, linear, shift, bias, between = given(params, split, x, d)

    def energy(own):
        return bias @ own + 0.5 * own @ between @ own

    terms = []
    for state in split.states:
        a = linear + shift @ state
        quadratic = a @ np.linalg.solve(precision, a) if len(a) else 0.0
        terms.append(energy(state) + 0.5 * quadratic)
    log_det = np.linalg.slogdet(precision)[1] if len(linear) else 0.0
    log_z = np.logaddexp.reduce(terms) - 0.5 * log_det
    mine, own = x[split.numbers], d[split.levels]
    value = -0.5 * mine @ precision @ mine + (linear + shift @ own) @ mine + energy(own)
    return float(value - log_z)


def loss(params, split: Split) -> float:
    """Mean negative log likelihood given the covariates."""
    rows = split.rows
    return -sum(
        share * row_log_density(params, split, x, d)
        for x, d, share in zip(rows.X, rows.D, rows.share, strict=True)
    )


def expected_second(params, split: Split) -> tuple[Floats, Floats]:
    """Mean over rows of E[z | covariates] and E[zz' | covariates], z = (x, indicators)."""
    rows = split.rows
    p = rows.X.shape[1]
    size = p + rows.D.shape[1]
    mean, second = np.zeros(size), np.zeros((size, size))
    levels = [p + a for a in split.levels]
    for x, d, share in zip(rows.X, rows.D, rows.share, strict=True):
        precision, linear, shift, bias, between = given(params, split, x, d)
        spread = np.linalg.inv(precision) if len(linear) else np.zeros((0, 0))
        weight, points = [], []
        for state in split.states:
            a = linear + shift @ state
            own = bias @ state + 0.5 * state @ between @ state
            weight.append(own + 0.5 * a @ spread @ a)
            z = np.concatenate([x, d])
            z[split.numbers], z[levels] = spread @ a, state
            points.append(z)
        prob = np.exp(np.array(weight) - np.logaddexp.reduce(weight))
        points = np.array(points)
        mean += share * prob @ points
        second += share * points.T @ (prob[:, None] * points)
        second[np.ix_(split.numbers, split.numbers)] += share * spread
    return mean, second


def kkt(params, split: Split, lam: float, edge_weights) -> float:
    """The KKT number; `edge_weights(u, v)` is the penalty's weight of a pair, inf if absent."""
    rows = split.rows
    mean, second = expected_second(params, split)
    z = np.hstack([rows.X, rows.D])
    by_node = mean - rows.share @ z
    gap = second - z.T @ (rows.share[:, None] * z)
    p, scales = params.n_cont, rows.scales
    columns = [[s] for s in range(p)]
    columns += [list(range(p + a, p + b)) for a, b in itertools.pairwise(rows.starts)]
    worst = [np.abs(by_node).max(), 0.5 * np.abs(np.diag(gap)[:p]).max(initial=0.0)]
    for u, v in itertools.combinations(range(len(columns)), 2):
        if {u, v} <= set(split.covariates):
            continue
        theta, grad = np.ravel(params.block(u, v)), np.ravel(gap[np.ix_(columns[u], columns[v])])
        limit, norm = lam * edge_weights(u, v), np.linalg.norm(theta)
        if np.isinf(limit):
            continue
        if norm > 0:
            distance = np.linalg.norm(grad + limit * theta / norm)
        else:
            distance = max(0.0, np.linalg.norm(grad) - limit)
        worst.append(distance / (scales[u] * scales[v]))
    return float(max(worst))


def optimum(split: Split, lam: float, factor=lambda u, v: 1.0) -> float:
    """Optimal objective with calibrated weights times `factor`, in standardised units."""
    rows = split.rows
    p, scales = rows.X.shape[1], rows.scales
    z = np.hstack([rows.X, rows.D])
    columns = [[s] for s in range(p)]
    columns += [list(range(p + a, p + b)) for a, b in itertools.pairwise(rows.starts)]
    targets = [u for u in range(len(columns)) if u not in split.covariates]
    numbers, discrete = [u for u in targets if u < p], [u for u in targets if u >= p]
    blocks, penalty = {}, []
    for u, v in itertools.combinations(range(len(columns)), 2):
        if {u, v} <= set(split.covariates) or np.isinf(factor(u, v)) or {u, v} <= set(numbers):
            continue
        blocks[u, v] = cp.Variable((len(columns[u]), len(columns[v])))
        weight = lam * factor(u, v) * scales[u] * scales[v]
        if weight > 0:
            penalty.append(weight * cp.norm(blocks[u, v], "fro"))
    alpha = {u: cp.Variable((1, len(columns[u]))) for u in targets}
    n = len(z)

    def predictor(u, values):
        """(n, width) linear term of node u given (n, width) values of others, by node."""
        out = np.ones((n, 1)) @ alpha[u]
        for (a, b), block in blocks.items():
            if b == u and a in values:
                out = out + values[a] @ block
            elif a == u and b in values:
                out = out + values[b] @ block.T
        return out

    B = cp.Variable((len(numbers), len(numbers)), symmetric=True) if numbers else None
    for i, j in itertools.combinations(range(len(numbers)), 2):
        weight = lam * factor(numbers[i], numbers[j]) * scales[numbers[i]] * scales[numbers[j]]
        penalty.append(weight * cp.abs(B[i, j]))
    known = {u: z[:, columns[u]] for u in split.covariates}

    def energy(y):
        """(n,) what the levels y of the categorical targets add, and (n, p') linear terms of x."""
        own = np.zeros(n)
        for k, u in enumerate(discrete):
            before = {v: y[v] for v in discrete[:k]}
            own = own + cp.sum(cp.multiply(y[u], predictor(u, {**known, **before})), axis=1)
        return own, [predictor(u, {**known, **y}) for u in numbers]

    levels = [np.eye(len(columns[u])) for u in discrete]
    terms, constraints = [], []
    for state in itertools.product(*levels):
        own, linear = energy({u: np.tile(d, (n, 1)) for u, d in zip(discrete, state, strict=True)})
        if numbers:
            # One variable for every linear term keeps the expressions small.
            held = cp.Variable((n, len(numbers)))
            constraints.append(held == cp.hstack(linear))
            own = own + cp.hstack([0.5 * cp.matrix_frac(held[i], B) for i in range(n)])
        terms.append(own)
    here, linear = energy({u: z[:, columns[u]] for u in discrete})
    rows_loss = cp.log_sum_exp(cp.vstack(terms), axis=0) - here
    smooth = rows.share @ rows_loss
    if numbers:
        x = z[:, numbers]
        smooth = smooth - rows.share @ cp.sum(cp.multiply(x, cp.hstack(linear)), axis=1)
        smooth = smooth + 0.5 * cp.trace(x.T @ (rows.share[:, None] * x) @ B)
        smooth = smooth - 0.5 * cp.log_det(B)
    problem = cp.Problem(cp.Minimize(smooth + sum(penalty)), constraints)
    solve_tightly(problem)
    return float(problem.value)
