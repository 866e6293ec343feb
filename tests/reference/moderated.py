"""Columns, moderators and a penalty -> the exact optimum with moderated edges, by a conic solver.

Every deviation is posed as it is stated: one number for each pair of features and each centred
indicator of the moderator's levels, without any contrasts.  Nothing of the package is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import cvxpy as cp
import numpy as np

from .conic import EDGE_THRESHOLD, _Columns, _pair_weights, solve_tightly


@dataclass(frozen=True, eq=False)
class ModeratedOptimum:
    """Objective in own units, and the calibrated norms of edges (u, v) and deviations (u, v, m)."""

    value: float
    strength: dict[tuple[int, ...], float]
    blocks: dict[tuple[int, ...], np.ndarray]

    @property
    def found(self) -> frozenset[tuple[int, ...]]:
        return frozenset(key for key, norm in self.strength.items() if norm > EDGE_THRESHOLD)


def solve(
    X, Y, n_levels, lam, moderators, covariates=(), row_weights=None, weights="calibrated",
    factors=None, deviation_factor=1.0,
) -> ModeratedOptimum:  # fmt: skip
    """Minimise F; moderators are covariates, pairs of a covariate have half the weight."""
    rows = np.ones(len(X)) if row_weights is None else np.asarray(row_weights, dtype=float)
    columns = _Columns(np.asarray(X, dtype=float), np.asarray(Y), tuple(n_levels), rows)
    fixed = {*moderators, *covariates}
    own = _pair_weights(columns, weights, factors)
    centred = [f - columns.share @ f for f in columns.features]
    strength = {}
    for u, v in combinations(range(columns.n_nodes), 2):
        ends = len({u, v} - fixed)
        if ends == 0 or np.isinf(own[u, v]):
            continue
        half = 0.5 * ends if weights == "calibrated" else 1.0
        strength[u, v] = half * own[u, v]
        for m in moderators if ends == 2 and np.isfinite(deviation_factor) else ():
            strength[u, v, m] = own[u, v] * columns.spread[m] * deviation_factor
    blocks = {
        key: cp.Variable(
            (
                columns.features[key[0]].shape[1] * (centred[key[2]].shape[1] if key[2:] else 1),
                columns.features[key[1]].shape[1],
            )
        )
        for key in strength
    }
    biases = [cp.Variable((1, f.shape[1])) for f in columns.features]
    beta = [cp.Variable() for _ in range(columns.n_gaussian)]
    targets = [u for u in range(columns.n_nodes) if u not in fixed]
    loss = sum(_node_loss(columns, centred, u, blocks, biases[u], beta) for u in targets)
    penalty = sum(lam * w * cp.norm(blocks[key], "fro") for key, w in strength.items() if w > 0)
    constraints = [cp.sum(biases[r]) == 0 for r in targets if r >= columns.n_gaussian]
    problem = cp.Problem(cp.Minimize(loss + penalty), constraints)
    solve_tightly(problem)
    scale = sum(np.log(columns.scale[s]) for s in targets if s < columns.n_gaussian)
    spread = {
        key: columns.spread[key[0]]
        * columns.spread[key[1]]
        * (columns.spread[key[2]] if key[2:] else 1.0)
        for key in blocks
    }
    norms = {key: spread[key] * np.linalg.norm(blocks[key].value) for key in blocks}
    return ModeratedOptimum(
        float(problem.value + scale), norms, {key: block.value for key, block in blocks.items()}
    )


def _node_loss(columns, centred, u, blocks, bias, beta) -> cp.Expression:
    predictor = np.ones((len(columns.share), 1)) @ bias
    for (a, b, *by), block in blocks.items():
        if u not in (a, b):
            continue
        other = b if u == a else a
        if not by:
            parts = [(columns.features[other], block)]
        else:
            size = columns.features[a].shape[1]
            parts = [
                (centred[by[0]][:, [k]] * centred[other], block[k * size : (k + 1) * size])
                for k in range(centred[by[0]].shape[1])
            ]
        for design, part in parts:
            predictor = predictor + design @ (part.T if u == a else part)
    own = columns.features[u]
    if u < columns.n_gaussian:
        residual = cp.multiply(np.sqrt(columns.share), cp.vec(predictor - beta[u] * own, order="F"))
        return cp.quad_over_lin(residual, 2 * beta[u]) - cp.log(beta[u]) / 2
    chosen = cp.sum(cp.multiply(own, predictor), axis=1)
    return columns.share @ (cp.log_sum_exp(predictor, axis=1) - chosen)
