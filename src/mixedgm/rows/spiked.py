"""Rows and coefficients of nodes with a spike at zero -> second derivatives of their losses.

These nodes are few, so plain NumPy over blocks of rows does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.contract import Coefficients, NodeMatrices
from mixedgm.rows.products import Products
from mixedgm.threads import run_all, threads_for

_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class SpikedRows:
    """Encoded columns."""

    numbers: Floats
    codes: NDArray[np.integer]
    weights: Floats | None
    nodes: Nodes
    products: Products | None
    n_threads: int = 1

    def curvature(self, coef: Coefficients, nodes: Ints, stride: int) -> NodeMatrices:
        """Curvature from every stride-th row: own terms, then entries of the incidence."""

        def of_node(j: int) -> Callable[[], Floats]:
            return lambda: self._of_node(coef, j, stride).ravel()

        work = len(coef.values) * len(self.codes) // stride
        matrices = run_all([of_node(j) for j in nodes.tolist()], threads_for(work, self.n_threads))
        ends = np.cumsum([0, *map(len, matrices)]).astype(np.int64)
        return NodeMatrices(nodes, ends, np.concatenate(matrices))

    def _of_node(self, coef: Coefficients, j: int, stride: int) -> Floats:
        entries = coef.incidence.entries_of(self.nodes.n_gaussian + j)
        columns = coef.incidence.entry_column[entries][::2]
        slopes = coef.values[entries].reshape(-1, 2)
        terms = coef.bias[self.nodes.slots_of(j)]
        per_b = self.nodes.scores[self.nodes.slots_of(j)][0]
        size, total = len(columns) + 1, 0.0
        sums, of_terms = np.zeros((3, size, size)), np.zeros((3, size))
        for at in range(0, len(self.codes), _BLOCK * stride):
            part = slice(at, at + _BLOCK * stride, stride)
            z = self._columns(columns, part)
            weight = np.ones(len(z)) if self.weights is None else self.weights[part]
            total += float(weight.sum())
            linear = z[:, 1:] @ slopes
            covariance = covariance_of_statistics(terms, per_b * linear[:, 0], linear[:, 1])
            for k in range(3):
                sums[k] += (z * (covariance[k] * weight)[:, None]).T @ z
                of_terms[k] += (covariance[3 + k] * weight) @ z
        return assembled(sums / total, of_terms / total, per_b)

    def _columns(self, columns: Ints, part: slice) -> Floats:
        """1, and these design columns (or products of them with features, less their centre)."""
        nodes, d = self.nodes, self.nodes.n_columns
        out = np.ones((len(self.codes[part]), len(columns) + 1))
        for k, (feature, column) in enumerate(zip(*np.divmod(columns, d), strict=True), start=1):
            if column < nodes.n_numeric:
                out[:, k] = self.numbers[part, column]
            else:
                node = int(nodes.column_node[column])
                level = column - nodes.column_start[node]
                out[:, k] = self.codes[part, nodes.place(node)] == level
            if feature > 0 and self.products is not None:
                out[:, k] -= self.products.centre[column]
                out[:, k] *= self.products.features[part, feature - 1]
        return out


def covariance_of_statistics(terms: Any, of_b: Any, of_x: Any, xp: Any = np) -> tuple[Any, ...]:
    """Covariance of (b, x, -x^2 / 2) in every row: the lower triangle, row by row.

    Arrays are those of the library `xp`.
    """
    variance = 1.0 / terms[2]
    slope = terms[1] + of_x
    mean = slope * variance
    odds = terms[0] + of_b + 0.5 * (slope * mean + xp.log(2.0 * np.pi * variance))
    share = 0.5 * (1.0 + xp.tanh(0.5 * odds))
    zero, half = share * (1.0 - share), 0.5 * variance
    middle = mean * zero
    square = half + 0.5 * mean * mean
    return (
        zero,
        middle,
        share * variance + mean * middle,
        -zero * square,
        -mean * (share * variance + zero * square),
        share * variance * (half + mean * mean) + zero * square * square,
    )


def own_covariance(terms: Floats) -> Floats:
    """(3, 3) covariance of (b, x, -x^2 / 2) for a node with these own terms and no neighbours."""
    bb, xb, xx, qb, qx, qq = (
        part[0] for part in covariance_of_statistics(terms, np.zeros(1), np.zeros(1))
    )
    return np.array([[bb, xb, qb], [xb, xx, qx], [qb, qx, qq]])


def assembled(sums: Floats, of_terms: Floats, per_b: float) -> Floats:
    """Sums over (1, columns) for pairs of statistics -> the matrix over own terms and entries.

    -x^2 / 2 multiplies an own term only, so `of_terms` has its sums times 1 and columns.
    """
    (bb, xb, xx), (qb, qx, qq) = sums, of_terms[:, None]
    size = len(bb) - 1
    out = np.empty((3 + 2 * size, 3 + 2 * size))
    out[:3, :3] = [
        [bb[0, 0], xb[0, 0], qb[0, 0]],
        [xb[0, 0], xx[0, 0], qx[0, 0]],
        [qb[0, 0], qx[0, 0], qq[0, 0]],
    ]
    of_b, of_x = slice(3, None, 2), slice(4, None, 2)
    for own, (with_b, with_x) in enumerate(((bb, xb), (xb, xx), (qb, qx))):
        out[own, of_b], out[own, of_x] = per_b * with_b[0, 1:], with_x[0, 1:]
    out[3:, :3] = out[:3, 3:].T
    out[of_b, of_b] = per_b**2 * bb[1:, 1:]
    out[of_b, of_x] = per_b * xb[1:, 1:]
    out[of_x, of_b] = per_b * xb[1:, 1:]
    out[of_x, of_x] = xx[1:, 1:]
    return out
