"""Rows and a penalty -> likelihood, its optimality and its optimum, by enumeration of all states.

Nothing is shared with the package but the names of the parameter blocks.  The optimum comes from
a conic solver: log Z is the log-sum-exp over states of convex functions of the parameters.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Standardised columns, indicators of levels, and what a row counts (shares)."""

    X: Floats
    D: Floats
    share: Floats
    n_levels: tuple[int, ...]

    @property
    def starts(self) -> list[int]:
        return np.cumsum([0, *self.n_levels]).tolist()

    @property
    def second(self) -> tuple[Floats, Floats, Floats]:
        """Means of xx', xd' and dd'."""
        X, D, w = self.X, self.D, self.share[:, None]
        return X.T @ (w * X), X.T @ (w * D), D.T @ (w * D)

    @property
    def scales(self) -> Floats:
        """sqrt(tr cov) of every node; 1 for the standardised columns."""
        freq = self.share @ self.D
        levels = [freq[a:b] for a, b in itertools.pairwise(self.starts)]
        return np.array([1.0] * self.X.shape[1] + [np.sqrt(np.sum(f * (1 - f))) for f in levels])


def rows_of(X: Floats, Y, n_levels: tuple[int, ...], row_weights=None) -> Rows:
    share = np.ones(len(X)) if row_weights is None else np.asarray(row_weights, dtype=float)
    share = share / share.sum()
    centred = X - share @ X
    scale = np.sqrt(share @ centred**2)
    hot = [np.eye(m)[Y[:, j]] for j, m in enumerate(n_levels)]
    return Rows(centred / scale, np.hstack([np.zeros((len(X), 0)), *hot]), share, n_levels)


def states_of(n_levels: tuple[int, ...]) -> Floats:
    """(number of states, sum of levels) indicators of every state."""
    states = []
    for y in itertools.product(*(range(m) for m in n_levels)):
        states.append(
            np.concatenate([np.zeros(0), *(np.eye(m)[a] for m, a in zip(n_levels, y, strict=True))])
        )
    return np.array(states).reshape(len(states), sum(n_levels))


@dataclass(frozen=True, eq=False)
class Moments:
    """log Z (without its p/2 log 2 pi) and expectations of all statistics."""

    log_z: float
    x: Floats
    d: Floats
    xx: Floats
    xd: Floats
    dd: Floats


def moments(params) -> Moments:
    """State by state: with x integrated out, the weight of y; given y, a Gaussian."""
    states = states_of(params.n_levels)
    C = np.linalg.inv(params.precision) if params.n_cont else np.zeros((0, 0))
    _, log_det = np.linalg.slogdet(params.precision) if params.n_cont else (1.0, 0.0)
    log_weight, means = [], []
    for d in states:
        linear = params.cont_bias + params.category_shift @ d
        own = params.cat_bias @ d + 0.5 * d @ params.cat_interaction @ d
        log_weight.append(own + 0.5 * linear @ C @ linear - 0.5 * log_det)
        means.append(C @ linear)
    log_weight, means = np.array(log_weight), np.array(means).reshape(len(states), -1)
    log_z = float(np.logaddexp.reduce(log_weight))
    prob = np.exp(log_weight - log_z)
    return Moments(
        log_z,
        prob @ means,
        prob @ states,
        means.T @ (prob[:, None] * means) + C,
        means.T @ (prob[:, None] * states),
        states.T @ (prob[:, None] * states),
    )


def loss(params, rows: Rows) -> float:
    """Mean negative log likelihood, row by row, p/2 log 2 pi left out."""
    log_z, total = moments(params).log_z, 0.0
    for x, d, share in zip(rows.X, rows.D, rows.share, strict=True):
        energy = (
            -0.5 * x @ params.precision @ x + (params.cont_bias + params.category_shift @ d) @ x
        )
        energy += params.cat_bias @ d + 0.5 * d @ params.cat_interaction @ d
        total += share * (log_z - energy)
    return total


def kkt(params, rows: Rows, lam: float, edge_weights) -> float:
    """The KKT number; `edge_weights(u, v)` is the penalty's weight of a pair, inf if absent."""
    found, (xx, xd, dd) = moments(params), rows.second
    p, starts, scales = params.n_cont, rows.starts, rows.scales
    worst = [
        np.abs(found.x - rows.share @ rows.X).max(initial=0.0),
        0.5 * np.abs(np.diag(found.xx) - np.diag(xx)).max(initial=0.0),
        np.abs(found.d - rows.share @ rows.D).max(initial=0.0),
    ]

    def span(v):
        return slice(starts[v - p], starts[v - p + 1])

    for u, v in itertools.combinations(range(p + len(rows.n_levels)), 2):
        if v < p:
            theta, grad = -params.precision[u, v], (found.xx - xx)[u, v]
        elif u < p:
            theta, grad = params.category_shift[u, span(v)], (found.xd - xd)[u, span(v)]
        else:
            theta = params.cat_interaction[span(u), span(v)]
            grad = (found.dd - dd)[span(u), span(v)]
        theta, grad, limit = np.ravel(theta), np.ravel(grad), lam * edge_weights(u, v)
        norm = np.linalg.norm(theta)
        if np.isinf(limit):
            continue
        if norm > 0:
            distance = np.linalg.norm(grad + limit * theta / norm)
        else:
            distance = max(0.0, np.linalg.norm(grad) - limit)
        worst.append(distance / (scales[u] * scales[v]))
    return float(max(worst))


@dataclass(frozen=True, eq=False)
class Optimum:
    """In standardised units."""

    value: float
    precision: Floats
    category_shift: Floats
    cat_interaction: Floats


def optimum(rows: Rows, lam: float) -> Optimum:
    """The penalised maximum likelihood estimate with calibrated weights, by a conic solver."""
    p, total, starts = rows.X.shape[1], sum(rows.n_levels), rows.starts
    scales, (xx, xd, dd) = rows.scales, rows.second
    B = cp.Variable((p, p), symmetric=True) if p else None
    alpha = cp.Variable(p) if p else None
    rho = cp.Variable((p, total)) if p and total else None
    bias = cp.Variable(total) if total else None
    phi = {}
    for r, j in itertools.combinations(range(len(rows.n_levels)), 2):
        phi[r, j] = cp.Variable((rows.n_levels[r], rows.n_levels[j]))
    exponents = []
    for d in states_of(rows.n_levels):
        own = bias @ d if total else cp.Constant(0.0)
        for (r, j), block in phi.items():
            own = own + d[starts[r] : starts[r + 1]] @ block @ d[starts[j] : starts[j + 1]]
        if p:
            linear = alpha + rho @ d if rho is not None else alpha
            own = own + 0.5 * cp.matrix_frac(linear, B)
        exponents.append(own)
    smooth = cp.log_sum_exp(cp.hstack(exponents))
    penalty = []
    if p:
        smooth = smooth - 0.5 * cp.log_det(B) + 0.5 * cp.trace(xx @ B)
        smooth = smooth - alpha @ (rows.share @ rows.X)
        penalty += [cp.abs(B[s, t]) for s, t in itertools.combinations(range(p), 2)]
    if rho is not None:
        smooth = smooth - cp.sum(cp.multiply(rho, xd))
        for s, j in itertools.product(range(p), range(len(rows.n_levels))):
            penalty.append(scales[p + j] * cp.norm(rho[s, starts[j] : starts[j + 1]], 2))
    if total:
        smooth = smooth - bias @ (rows.share @ rows.D)
    for (r, j), block in phi.items():
        smooth = smooth - cp.sum(
            cp.multiply(block, dd[starts[r] : starts[r + 1], starts[j] : starts[j + 1]])
        )
        penalty.append(scales[p + r] * scales[p + j] * cp.norm(block, "fro"))
    problem = cp.Problem(cp.Minimize(smooth + lam * sum(penalty)))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    full = np.zeros((total, total))
    for (r, j), block in phi.items():
        full[starts[r] : starts[r + 1], starts[j] : starts[j + 1]] = block.value
    return Optimum(
        float(problem.value),
        B.value if p else np.zeros((0, 0)),
        rho.value if rho is not None else np.zeros((p, total)),
        full + full.T,
    )
