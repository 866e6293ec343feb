"""Parameters and rows -> conditionals, objective, weights, lambda_max, by loops over rows.

Slow on purpose: each function follows its formula row by row and column by column, in Python
numbers, so that it can be read against the mathematics. Nothing here is shared with the package
or with the conic reference. `blocks` is anything with the named arrays of `Blocks`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Table = list[list[float]]


@dataclass
class Blocks:
    """B (p, p), alpha (p,), rho (p, sum L), phi (sum L, sum L), phi_jj (sum L,)."""

    n_levels: tuple[int, ...]
    precision: Floats
    cont_bias: Floats
    category_shift: Floats
    cat_interaction: Floats
    cat_bias: Floats


def copy(blocks: Blocks) -> Blocks:
    """Give the same numbers in arrays of their own."""
    return Blocks(
        tuple(blocks.n_levels),
        np.array(blocks.precision, dtype=float),
        np.array(blocks.cont_bias, dtype=float),
        np.array(blocks.category_shift, dtype=float),
        np.array(blocks.cat_interaction, dtype=float),
        np.array(blocks.cat_bias, dtype=float),
    )


def zeros_like(blocks: Blocks) -> Blocks:
    """Give blocks of the same shapes, all zero."""
    out = copy(blocks)
    for array in (out.precision, out.cont_bias, out.category_shift, out.cat_interaction):
        array[...] = 0.0
    out.cat_bias[...] = 0.0
    return out


def starts(n_levels: Sequence[int]) -> list[int]:
    """Place of each categorical column's first level among all levels."""
    out, position = [], 0
    for m in n_levels:
        out.append(position)
        position += m
    return out


# --- conditionals ---------------------------------------------------------------------------


def eta(blocks: Blocks, s: int, x: Sequence[float], y: Sequence[int]) -> float:
    """alpha_s + sum_j rho_sj(y_j) - sum_{t != s} beta_st x_t."""
    total = float(blocks.cont_bias[s])
    for start, level in zip(starts(blocks.n_levels), y, strict=True):
        total += float(blocks.category_shift[s, start + level])
    for t, value in enumerate(x):
        if t != s:
            total -= float(blocks.precision[s, t]) * value
    return total


def conditional_mean(blocks: Blocks, s: int, x: Sequence[float], y: Sequence[int]) -> float:
    """Mean of x_s given all else; its variance is 1 / beta_ss."""
    return eta(blocks, s, x, y) / float(blocks.precision[s, s])


def scores(blocks: Blocks, r: int, x: Sequence[float], y: Sequence[int]) -> list[float]:
    """phi_rr(l) + sum_s rho_sr(l) x_s + sum_{j != r} phi_rj(l, y_j) for each level l."""
    first = starts(blocks.n_levels)
    out = []
    for level in range(blocks.n_levels[r]):
        here = first[r] + level
        total = float(blocks.cat_bias[here])
        for s, value in enumerate(x):
            total += float(blocks.category_shift[s, here]) * value
        for j, other in enumerate(y):
            if j != r:
                total += float(blocks.cat_interaction[here, first[j] + other])
        out.append(total)
    return out


def log_sum_exp(values: Sequence[float]) -> float:
    """log(sum(exp(values))), shifted by the largest; -inf entries count as nothing."""
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values))


def conditional_probabilities(
    blocks: Blocks, r: int, x: Sequence[float], y: Sequence[int]
) -> list[float]:
    """Probabilities of the levels of y_r given all else."""
    logits = scores(blocks, r, x, y)
    total = log_sum_exp(logits)
    return [math.exp(v - total) for v in logits]


# --- objective ------------------------------------------------------------------------------


def rows_of(X: Floats, Y: NDArray[np.int64], row_weights: Floats | None) -> list[tuple]:
    """(share, x, y) of every row that counts; the shares sum to one."""
    weights = [1.0] * len(X) if row_weights is None else [float(w) for w in row_weights]
    total = math.fsum(weights)
    return [
        (w / total, [float(v) for v in X[i]], [int(v) for v in Y[i]])
        for i, w in enumerate(weights)
        if w > 0
    ]


def row_loss(blocks: Blocks, x: Sequence[float], y: Sequence[int]) -> float:
    """Sum over columns of one row's negative log conditionals, without the log 2 pi terms."""
    total = 0.0
    for s in range(len(x)):
        b = float(blocks.precision[s, s])
        if b <= 0:
            return math.inf
        total += -0.5 * math.log(b) + (eta(blocks, s, x, y) - b * x[s]) ** 2 / (2 * b)
    for r in range(len(y)):
        logits = scores(blocks, r, x, y)
        total += log_sum_exp(logits) - logits[y[r]]
    return total


def smooth(
    blocks: Blocks, X: Floats, Y: NDArray[np.int64], row_weights: Floats | None = None
) -> float:
    """(Weighted) mean over rows of the negative log pseudolikelihood."""
    return math.fsum(w * row_loss(blocks, x, y) for w, x, y in rows_of(X, Y, row_weights))


def pairs(n_gaussian: int, n_discrete: int) -> Iterator[tuple[int, int]]:
    """All unordered pairs of nodes, continuous before categorical."""
    for u in range(n_gaussian + n_discrete):
        for v in range(u + 1, n_gaussian + n_discrete):
            yield u, v


def block(blocks: Blocks, u: int, v: int) -> Table:
    """Rows and columns of the parameters of pair u < v."""
    p, first = len(blocks.cont_bias), starts(blocks.n_levels)
    if v < p:
        return [[float(blocks.precision[u, v])]]
    b = [first[v - p] + level for level in range(blocks.n_levels[v - p])]
    if u < p:
        return [[float(blocks.category_shift[u, k]) for k in b]]
    a = [first[u - p] + level for level in range(blocks.n_levels[u - p])]
    return [[float(blocks.cat_interaction[i, k]) for k in b] for i in a]


def norm(table: Table) -> float:
    """Frobenius norm."""
    return math.sqrt(math.fsum(v * v for row in table for v in row))


def penalty(blocks: Blocks, lam: float, weights: Table) -> float:
    """Lambda times the weighted sum of norms; an infinite weight asks for a zero block."""
    total = 0.0
    for u, v in pairs(len(blocks.cont_bias), len(blocks.n_levels)):
        size = norm(block(blocks, u, v))
        if size > 0:
            total += lam * weights[u][v] * size
    return total


def objective(
    blocks: Blocks,
    X: Floats,
    Y: NDArray[np.int64],
    lam: float,
    weights: Table,
    row_weights: Floats | None = None,
) -> float:
    """F: `smooth` plus `penalty`."""
    return smooth(blocks, X, Y, row_weights) + penalty(blocks, lam, weights)


# --- moments, weights, lambda_max -------------------------------------------------------------


def mean_and_scale(X: Floats, row_weights: Floats | None = None) -> tuple[list[float], list[float]]:
    """Means and population standard deviations of the columns."""
    rows = rows_of(X, np.zeros((len(X), 0), dtype=np.int64), row_weights)
    means, scales = [], []
    for s in range(X.shape[1]):
        mean = math.fsum(w * x[s] for w, x, _ in rows)
        means.append(mean)
        scales.append(math.sqrt(math.fsum(w * (x[s] - mean) ** 2 for w, x, _ in rows)))
    return means, scales


def frequencies(
    Y: NDArray[np.int64], n_levels: Sequence[int], row_weights: Floats | None = None
) -> Table:
    """Share of each level, per categorical column."""
    rows = rows_of(np.zeros((len(Y), 0)), Y, row_weights)
    return [
        [math.fsum(w for w, _, y in rows if y[r] == level) for level in range(m)]
        for r, m in enumerate(n_levels)
    ]


def calibrated_weights(
    X: Floats, Y: NDArray[np.int64], n_levels: Sequence[int], row_weights: Floats | None = None
) -> Table:
    """sqrt(tr cov) of one node times that of the other: sigma, or sqrt(sum p (1 - p))."""
    _, size = mean_and_scale(X, row_weights)
    for shares in frequencies(Y, n_levels, row_weights):
        size.append(math.sqrt(math.fsum(p * (1 - p) for p in shares)))
    return [[a * b for b in size] for a in size]


def edge_weights(
    kind: str,
    X: Floats,
    Y: NDArray[np.int64],
    n_levels: Sequence[int],
    row_weights: Floats | None = None,
    factors: Floats | None = None,
) -> Table:
    """Weights by name, times the factor of each pair."""
    size = X.shape[1] + len(n_levels)
    if kind == "calibrated":
        out = calibrated_weights(X, Y, n_levels, row_weights)
    elif kind == "uniform":
        out = [[1.0] * size for _ in range(size)]
    else:
        raise ValueError(f"unknown weights {kind!r}")
    if factors is None:
        return out
    return [[out[u][v] * float(factors[u][v]) for v in range(size)] for u in range(size)]


def covariance(
    rows: list[tuple], n_gaussian: int, shape: Sequence[int], pair: Sequence[int]
) -> Table:
    """Cov(z_u, z_v) over `rows_of`: a number, a row over levels, or a table of levels by levels.

    `shape` is the number of features of u and of v: one, or the number of levels.
    """
    u, v = pair
    out = [[0.0] * shape[1] for _ in range(shape[0])]
    left, right = [0.0] * shape[0], [0.0] * shape[1]
    # The first row is taken off continuous columns: units may be far from zero.
    x0 = rows[0][1]
    for w, x, y in rows:
        a, first = (0, x[u] - x0[u]) if u < n_gaussian else (y[u - n_gaussian], 1.0)
        b, second = (0, x[v] - x0[v]) if v < n_gaussian else (y[v - n_gaussian], 1.0)
        left[a] += w * first
        right[b] += w * second
        out[a][b] += w * first * second
    for a, b in product(range(shape[0]), range(shape[1])):
        out[a][b] -= left[a] * right[b]
    return out


def lam_max(
    X: Floats,
    Y: NDArray[np.int64],
    n_levels: Sequence[int],
    weights: Table,
    row_weights: Floats | None = None,
) -> float:
    """Smallest lambda of the empty graph: the largest 2 norm(cov) / weight; no free pairs."""
    best, rows, p = 0.0, rows_of(X, Y, row_weights), X.shape[1]
    sizes = [1] * p + list(n_levels)
    for u, v in pairs(p, len(n_levels)):
        size = norm(covariance(rows, p, (sizes[u], sizes[v]), (u, v)))
        best = max(best, 2 * size / weights[u][v])
    return best
