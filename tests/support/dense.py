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


def conditionals(layout, theta: Floats, C: Floats, Y, share: Floats) -> tuple[float, Floats]:
    """Sum of -log p(column | others) over the targets, constants left out, and its gradient.

    Theta is read by the definition of a layout.  `C` has the design columns, and behind them their
    products with every feature of moderators.
    """
    p, d = layout.n_gaussian, layout.n_columns
    spans = [slice(a, a + w) for a, w in zip(layout.column_start, layout.width, strict=False)]
    terms = []  # (positions in theta, predicting columns, predicted columns)
    for g, (u, v) in enumerate(layout.pairs.tolist()):
        block = np.arange(layout.starts[g], layout.starts[g + 1])
        block = block.reshape(layout.n_blocks[g], layout.width[u], layout.width[v])
        for k, at in enumerate(block):
            down = d * (1 + layout.first_feature[g] + k)
            ways = [(at, u, v)] if layout.nodewise else [(at, u, v), (at.T, v, u)]
            for index, a, b in ways:
                if b not in layout.covariates:
                    here = np.arange(d)[spans[a]] + down
                    terms.append((index, here, np.arange(d)[spans[b]]))
    coef = np.zeros((C.shape[1], d))
    for index, columns, target in terms:
        coef[np.ix_(columns, target)] = theta[index]
    is_target = np.repeat([v not in layout.covariates for v in range(layout.n_nodes)], layout.width)
    eta = np.r_[theta[layout.linear], theta[layout.biases]] + C @ coef
    x, b, D = C[:, :p], theta[layout.diagonal], indicators(Y, layout.n_levels)
    prob, logs = probabilities(eta[:, p:], layout.n_levels)
    mean = eta[:, :p] / b
    normal = share @ (0.5 * b * (x - mean) ** 2) - 0.5 * np.log(b)
    value = normal[is_target[:p]].sum() - share @ np.where(D > 0, logs, 0.0)[:, is_target[p:]].sum(
        axis=1
    )
    residual = np.where(is_target, np.hstack([mean - x, prob - D]), 0.0)
    slope = np.where(is_target[:p], share @ (0.5 * x**2 - 0.5 * mean**2) - 0.5 / b, 0.0)
    bias, cross = share @ residual, C.T @ (share[:, None] * residual)
    grad = np.r_[bias[:p], slope, bias[p:], np.zeros(layout.n_theta - layout.n_node_terms)]
    for index, columns, target in terms:
        grad[index] += cross[np.ix_(columns, target)]
    return float(value), grad
