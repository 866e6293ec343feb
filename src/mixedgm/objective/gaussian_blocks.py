"""Rows and a layout -> the Gaussian terms, from second moments of each node's own predictors only.

They are the terms of `pseudolikelihood.GaussianTerms`, for tables with so many columns that nothing
of size d x d is asked for: every node has a small matrix of the columns that it sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixedgm.compiled import inner, kernel
from mixedgm.model.layout import Floats, Ints, Layout, spans
from mixedgm.rows.contract import ColumnMoments, NodeMatrices, Rows

_AT_ONCE = 2**20
"""Second moments that are asked for in one call."""


@dataclass(frozen=True, eq=False)
class SupportSums:
    """Sum of the Gaussian terms and its derivatives in the parameters of the layout."""

    value: float
    slopes: Floats
    """Derivatives in the coefficients of Gaussian conditionals, in the incidence's order."""
    node_slopes: Floats
    """Derivatives in the linear terms, then in the diagonal."""


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Second moments of some columns of each node (rows of a block) with all of them."""

    row_ptr: Ints
    row_entry: Ints
    """Coefficient of every row; that of a node's own column means nothing."""
    start: Ints
    second: Floats


@dataclass(frozen=True, eq=False)
class GaussianBlocks:
    """Sum over Gaussian nodes of -log p(node | its predictors), averaged over rows."""

    rows: Rows
    moments: ColumnMoments
    layout: Layout
    whole: bool = True
    """Whether second moments of all predictors of a node are kept, or at every point asked for
    those of coefficients that are not zero there: for a layout of which few are."""

    def at(self, layout: Layout, theta: Floats, values: Floats, own: bool = True) -> SupportSums:
        """All terms; `values` are theta's in the order of the layout's incidence."""
        p, last = layout.n_gaussian, layout.incidence.gaussian_entries.stop
        blocks = self._all if self.whole else self._of(np.flatnonzero(values[:last]))
        slopes, out = np.zeros(last), np.empty((3, p))
        _terms(
            (self._first, self._mean, blocks.start, blocks.second),
            (blocks.row_ptr, blocks.row_entry),
            (theta[layout.linear], theta[layout.diagonal]),
            values,
            slopes,
            out,
        )
        if layout.covariates:
            out[:, ~layout.is_target[layout.nodes.gaussian]] = 0.0
        return SupportSums(float(out[0].sum()), slopes, out[1:].ravel())

    def curvature(self, layout: Layout, theta: Floats, values: Floats, nodes: Ints) -> NodeMatrices:
        """Second derivative of these nodes' terms, in the order of ``layout.conditional``."""
        size, blocks = np.diff(self._first)[nodes] + 1, self._all
        start = np.zeros(len(nodes) + 1, dtype=np.int64)
        np.square(size).cumsum(out=start[1:])
        out = np.empty(int(start[-1]))
        _curvatures(
            (self._first, self._mean, blocks.start, blocks.second),
            (theta[layout.linear], theta[layout.diagonal]),
            nodes,
            values,
            start,
            out,
        )
        return NodeMatrices(nodes, start, out)

    @cached_property
    def _first(self) -> Ints:
        """Where the columns of every node begin in `_columns`, and the end."""
        p = self.layout.n_gaussian
        return self.layout.incidence.node_entries[: p + 1] + np.arange(p + 1)

    @cached_property
    def _columns(self) -> Ints:
        """Design columns by node: the node's own, then those of its coefficients."""
        p, incidence = self.layout.n_gaussian, self.layout.incidence
        out = np.empty(int(self._first[-1]), dtype=np.int64)
        is_own = np.zeros(len(out), dtype=bool)
        is_own[self._first[:-1]] = True
        out[is_own] = np.arange(p)
        out[~is_own] = incidence.entry_column[incidence.gaussian_entries]
        return out

    @cached_property
    def _mean(self) -> Floats:
        return np.asarray(self.moments.mean[self._columns])

    @cached_property
    def _all(self) -> _Blocks:
        return self._of(np.arange(self.layout.incidence.gaussian_entries.stop))

    def _of(self, entries: Ints) -> _Blocks:
        """Rows for each node's own column and for these coefficients, which are sorted."""
        p, ends = self.layout.n_gaussian, self.layout.incidence.node_entries
        row_ptr = np.searchsorted(entries, ends[: p + 1]) + np.arange(p + 1)
        row_entry = np.full(int(row_ptr[-1]), -1, dtype=np.int64)
        is_own = np.zeros(len(row_entry), dtype=bool)
        is_own[row_ptr[:-1]] = True
        row_entry[~is_own] = entries
        node = np.repeat(np.arange(p), np.diff(row_ptr))
        place = np.where(is_own, self._first[node], row_entry + node + 1)
        width = np.diff(self._first)
        start = np.concatenate([[0], np.cumsum(np.diff(row_ptr) * width)]).astype(np.int64)
        second = np.empty(int(start[-1]))
        length = width[node]
        ends_at = np.cumsum(length)
        done = 0
        while done < len(node):
            before = int(ends_at[done - 1]) if done else 0
            upto = max(done + 1, int(np.searchsorted(ends_at, before + _AT_ONCE, "right")))
            part = slice(done, upto)
            second[before : int(ends_at[upto - 1])] = self.rows.second_moments(
                np.repeat(self._columns[place[part]], length[part]),
                self._columns[spans(self._first[node[part]], length[part])],
            )
            done = upto
        # The variance of a constant is 1 by custom, so that its own term has an optimum.
        second[start[:-1]] = self.moments.squares[:p]
        return _Blocks(row_ptr.astype(np.int64), row_entry, start, second)


# -- kernels ---------------------------------------------------------------------------------------


@kernel(fastmath={"reassoc", "contract"})
def _terms(blocks, rows, terms, values, slopes, out):  # type: ignore[no-untyped-def]
    """Value and slopes, of coefficients the nodes' own only, in the order of `values`.

    blocks as in `_curvatures`, but of second moments only some rows are there: those of the
    node's own column, and of coefficients that are not zero.  rows = (first row of each node, the
    coefficient of every row).
    """
    (first, mean, at, second), (row_ptr, coefficient), (bias, diagonal) = blocks, rows, terms
    longest = 0
    for s in range(bias.shape[0]):
        longest = max(longest, first[s + 1] - first[s])
    product = np.empty(longest)
    for s in range(bias.shape[0]):
        a, b, size, entry = bias[s], diagonal[s], first[s + 1] - first[s], first[s] - s
        of_node, own = mean[first[s] : first[s + 1]], second[at[s] : at[s] + size]
        for j in range(size):
            product[j] = 0.0
        mean_z, square = 0.0, 0.0
        for i in range(row_ptr[s] + 1, row_ptr[s + 1]):
            x = values[coefficient[i]]
            mean_z += x * of_node[1 + coefficient[i] - entry]
            begin = at[s] + (i - row_ptr[s]) * size
            for j in range(size):
                product[j] += x * second[begin + j]
        for i in range(row_ptr[s] + 1, row_ptr[s + 1]):
            square += values[coefficient[i]] * product[1 + coefficient[i] - entry]
        square += a * a + b * b * own[0]
        square += 2.0 * (a * mean_z - b * product[0] - b * a * of_node[0])
        for j in range(1, size):
            slopes[entry + j - 1] = (product[j] + a * of_node[j] - b * own[j]) / b
        out[0, s] = -0.5 * np.log(b) + square / (2.0 * b)
        out[1, s] = (a + mean_z - b * of_node[0]) / b
        of_own = (product[0] + a * of_node[0] - b * own[0]) / b
        out[2, s] = -0.5 / b - of_own - 0.5 * square / b**2


@kernel
def _curvatures(blocks, terms, nodes, values, start, out):  # type: ignore[no-untyped-def]
    """Second derivatives of nodes' terms, each from a matrix of second moments of its own.

    blocks = (first column of each node, means, first entry of its matrix, matrices): the columns of
    a node are its own one, then those of its coefficients.
    """
    first, mean, at, second = blocks
    bias, diagonal = terms
    for k in range(nodes.shape[0]):
        s = nodes[k]
        size = first[s + 1] - first[s]
        matrix = second[at[s] : at[s] + size * size].reshape(size, size)
        here = slice(first[s] - s, first[s + 1] - s - 1)
        columns = np.arange(1, size)
        of_node, place = mean[first[s] : first[s + 1]], out[start[k] :]
        node_curvature(
            of_node, matrix, columns, bias[s], diagonal[s], values[here], size + 1, place
        )


@inner
def node_curvature(mean, second, columns, bias, b, values, width, out):  # type: ignore[no-untyped-def]
    """The matrix of one node, which has these columns and coefficients; out is flat."""
    size = columns.shape[0]
    mean_eta, square = bias, 0.0
    for i in range(size):
        a = columns[i]
        z_eta = mean[a] * bias
        for j in range(size):
            x = second[a, columns[j]]
            z_eta += x * values[j]
            out[(i + 2) * width + j + 2] = x / b
        mean_eta += mean[a] * values[i]
        square += values[i] * z_eta
        out[i + 2] = mean[a] / b
        out[(i + 2) * width] = mean[a] / b
        out[width + i + 2] = -z_eta / (b * b)
        out[(i + 2) * width + 1] = -z_eta / (b * b)
    square += bias * mean_eta
    out[0] = 1.0 / b
    out[1] = -mean_eta / (b * b)
    out[width] = -mean_eta / (b * b)
    out[width + 1] = 0.5 / (b * b) + square / (b * b * b)
