"""Standardised columns and named blocks -> moments, softmax and optimality by whole matrices.

Every formula is written once more, with the indicator matrix formed and no block skipped, so that
large tables can be checked without loops over rows. Nothing of the package is used.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def indicators(Y, n_levels) -> Floats:
    """(n, sum of levels) one-hot block."""
    parts = [np.eye(m)[Y[:, r]] for r, m in enumerate(n_levels)]
    return np.hstack(parts) if parts else np.zeros((len(Y), 0))


def level_slices(n_levels) -> list[slice]:
    ends = np.cumsum([0, *n_levels])
    return [slice(int(a), int(b)) for a, b in zip(ends[:-1], ends[1:], strict=True)]


def shares(n_rows: int, row_weights) -> Floats:
    weights = np.ones(n_rows) if row_weights is None else np.asarray(row_weights, dtype=float)
    return weights / weights.sum()


def probabilities(logits: Floats, n_levels) -> tuple[Floats, Floats]:
    """Softmax by node, and its logarithm."""
    logs = logits.copy()
    for part in level_slices(n_levels):
        block = logs[:, part]
        block -= block.max(axis=1, keepdims=True)
        block -= np.log(np.exp(block).sum(axis=1, keepdims=True))
    return np.exp(logs), logs


def gradient(params, X, Y, row_weights=None):
    """(bias, diagonal, matrix): of the biases, of beta_ss, and of the symmetric edge matrix.

    The matrix has an entry for each pair of design columns; that of a continuous pair is the
    derivative in minus the precision.
    """
    p, share = X.shape[1], shares(len(Y), row_weights)
    D = indicators(Y, params.n_levels)
    Z = np.hstack([X, D])
    diagonal = np.diag(params.precision)
    coupling = np.diag(diagonal) - params.precision
    eta = params.cont_bias + X @ coupling + D @ params.category_shift.T
    E = (eta - diagonal * X) / diagonal
    logits = params.cat_bias + X @ params.category_shift + D @ params.cat_interaction
    residual = np.hstack([E, probabilities(logits, params.n_levels)[0] - D])
    cross = Z.T @ (share[:, None] * residual)
    slope = share @ (-0.5 / diagonal - X * E - 0.5 * E**2) if p else np.zeros(0)
    return share @ residual, slope, cross + cross.T


def kkt(params, X, Y, lam, row_weights=None, edge_weights=None) -> float:
    """Distance from optimality in standardised coordinates; `edge_weights` are the own units'.

    They are calibrated when not given.
    """
    share = shares(len(Y), row_weights)
    mean = share @ X
    scale = np.sqrt(share @ (X - mean) ** 2)
    frequency = share @ indicators(Y, params.n_levels)
    levels = level_slices(params.n_levels)
    size = [*scale, *(np.sqrt(frequency[s] @ (1 - frequency[s])) for s in levels)]
    bias, slope, matrix = gradient(params, X, Y, row_weights)
    p = len(scale)
    # Biases at the mean of x, in standardised units: the chain rule of x = mean + scale * x~.
    pulled = matrix - np.outer(np.r_[mean, np.zeros(len(bias) - p)], bias)
    pulled -= np.outer(bias, np.r_[mean, np.zeros(len(bias) - p)])
    slope = slope + mean * bias[:p]
    nodes = np.r_[bias[:p] / scale, slope / scale**2, bias[p:]]
    places = [slice(s, s + 1) for s in range(p)]
    places += [slice(p + s.start, p + s.stop) for s in levels]
    theta = np.block(
        [
            [-params.precision, params.category_shift],
            [params.category_shift.T, params.cat_interaction],
        ]
    )
    worst = np.abs(nodes).max()
    for u in range(len(places)):
        for v in range(u + 1, len(places)):
            own = size[u] * size[v] if edge_weights is None else edge_weights[u][v]
            if np.isinf(own):
                continue
            block, grad = theta[places[u], places[v]], pulled[places[u], places[v]]
            length = np.linalg.norm(block)
            if length == 0:
                distance = max(0.0, np.linalg.norm(grad) - lam * own)
            else:
                distance = np.linalg.norm(grad + lam * own * block / length)
            worst = max(worst, distance / (size[u] * size[v]))
    return float(worst)
