"""Gradients of pairs, block by block -> those pairs that are near their bound.

All pairs are looked at in blocks of some nodes by some nodes.  Of every block the largest entry is
kept, and the pairs that are wanted: memory is that of a few blocks, whatever the number of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.compiled import inner, kernel
from mixedgm.base.threads import run_all
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.contract import Conditionals, Moments, Outside, Question

Slopes = Callable[[slice, slice], Floats]
"""Columns t of targets and columns k -> the (t, k) matrix of the means of z_k r_t."""

BLOCK = 256
"""Design columns of a block: its matrices stay in the cache of a core."""
_ROWS = 32
"""Gaussian nodes whose pairs with all others are taken at once."""


class Nearest:
    """The largest entry so far, how many are wanted, and those of them with the largest entries.

    What is kept depends on what was added, and not on the order: equal entries are ranked by pair.

    Examples
    --------
    >>> found = Nearest(floor=1.0, most=2)
    >>> found.add(np.array([[-1.0, 3.0], [-1.0, 0.5]]), 0, 0)
    >>> found.add(np.array([[2.0], [1.0]]), 0, 2)
    >>> answer = found.answer()
    >>> answer.largest, answer.count, answer.pairs.tolist(), answer.entries.tolist()
    (3.0, 3, [[0, 1], [0, 2]], [3.0, 2.0])
    """

    def __init__(self, floor: float, most: int) -> None:
        self._floor, self._most = floor, most
        self._largest, self._count, self._n_held = 0.0, 0, 0
        self._lowest = floor
        self._held: list[tuple[Ints, Ints, Floats]] = []

    def add(self, entries: Floats, first: int, second: int) -> None:
        """A block of entries, the first of them of this pair; -1 for pairs not asked about."""
        largest = np.max(entries, initial=0.0)
        self._largest = float(np.maximum(self._largest, largest))  # NaN stays NaN
        floor = max(self._floor, 0.0)
        if not largest >= floor:
            return
        self._count += int(np.count_nonzero(entries >= floor))
        if largest >= self._lowest:
            u, v = np.nonzero(entries >= max(self._lowest, floor))
            self._hold(u + first, v + second, entries[u, v])

    def merge(self, other: Nearest) -> None:
        """Add the pairs that another has collected."""
        self._largest = float(np.maximum(self._largest, other._largest))
        self._count += other._count
        for held in other._held:
            self._hold(*held)

    def _hold(self, u: Ints, v: Ints, entries: Floats) -> None:
        self._held.append((u, v, entries))
        self._n_held += len(entries)
        if self._n_held > 4 * self._most + 1000:
            self._prune()

    def _prune(self) -> None:
        """Keep `most` of those held and equal ones, and ask no more for smaller entries."""
        u, v, entries = (np.concatenate(part) for part in zip(*self._held, strict=True))
        if 0 < self._most < len(entries):
            self._lowest = float(np.partition(entries, -self._most)[-self._most])
            kept = entries >= self._lowest
            u, v, entries = u[kept], v[kept], entries[kept]
        self._held = [(u, v, entries)] if self._most else []
        self._n_held = len(entries) if self._most else 0

    def answer(self) -> Outside:
        """The answer, of all that was added."""
        if not self._held:
            nothing = np.zeros((0, 2), dtype=np.int64)
            return Outside(self._largest, self._count, nothing, np.zeros(0))
        u, v, entries = (np.concatenate(part) for part in zip(*self._held, strict=True))
        if len(entries) > self._most > 0:
            kept = entries >= np.partition(entries, -self._most)[-self._most]
            u, v, entries = u[kept], v[kept], entries[kept]
        order = np.lexsort((v, u, -entries))[: self._most]
        pairs = np.column_stack([u[order], v[order]])
        return Outside(self._largest, self._count, pairs, entries[order])


def nearest(
    slopes: Slopes,
    nodes: Nodes,
    conditionals: Conditionals,
    question: Question,
    n_threads: int = 1,
    block: int = BLOCK,
) -> Outside:
    """Answer a question from the means of z_k r_t, which are asked for block by block."""
    starts, shared, weights = nodes.column_start, conditionals.shared, _weights(question)
    runs = list(node_runs(nodes.width, block))
    # Pairs of Gaussian nodes have a way of their own.
    whole = isinstance(slopes, SlopesByMoments) and shared
    n_done = nodes.gaussian.stop if whole else 0

    def columns(run: slice) -> slice:
        return slice(int(starts[run.start]), int(starts[run.stop]))

    def band(mine: slice) -> Nearest:
        """All pairs whose first node is in one run."""
        found = Nearest(question.floor, question.most)
        if isinstance(slopes, SlopesByMoments) and mine.start < n_done:
            for some in _cut(mine, n_done, _ROWS):
                found.add(slopes.of_gaussian(some, n_done, weights), some.start, some.start)
        for other in runs:
            if shared and other.stop <= max(mine.start, n_done if mine.stop <= n_done else 0):
                continue
            said = slopes(columns(other), columns(mine))
            heard = slopes(columns(mine), columns(other)) if shared else np.zeros((0, 0))
            out = np.empty((mine.stop - mine.start, other.stop - other.start))
            ends = (mine.start, mine.stop, other.start, other.stop)
            entries_of_block(said, heard, shared, starts, weights, ends, out)
            out[: max(0, n_done - mine.start), : max(0, n_done - other.start)] = -1.0
            found.add(out, mine.start, other.start)
        return found

    total = Nearest(question.floor, question.most)
    # The first bands are the longest: threads that begin with them end at the same time.
    for found in run_all([partial(band, run) for run in runs], n_threads):
        total.merge(found)
    return total.answer()


def _cut(run: slice, end: int, most: int) -> list[slice]:
    """Parts of a run before `end`, of at most so many nodes."""
    last = min(run.stop, end)
    return [slice(at, min(at + most, last)) for at in range(run.start, last, most)]


def _weights(question: Question) -> tuple[NDArray[np.float64] | Ints, ...]:
    of = question.weights
    listed = np.ascontiguousarray(of.pairs[:, 1]), of.weights
    return (of.scale, of.kind, of.by_kind, of.first_exception, *listed)


@dataclass(frozen=True, eq=False)
class SlopesByMoments:
    """Means of z_k r_t from the second moments of all columns, and those of z with expectations."""

    moments: Moments
    conditionals: Conditionals
    expected: Floats
    """(design columns of discrete nodes, d) means of E z', C order."""

    def __call__(self, targets: slice, columns: slice) -> Floats:
        """The (targets, columns) matrix of these means."""
        out = np.empty((targets.stop - targets.start, columns.stop - columns.start))
        ends = (targets.start, targets.stop), (columns.start, columns.stop)
        slopes_by_moments(*self._given, self.expected, self._predicted, *ends, out)
        return out

    def of_gaussian(self, nodes: slice, end: int, weights: tuple[Any, ...]) -> Floats:
        """Entries of the pairs of these Gaussian nodes with those from the first of them on."""
        out = np.empty((nodes.stop - nodes.start, end - nodes.start))
        given = self._given, self._predicted, weights
        gaussian_entries(*given[0], *given[1:], (nodes.start, nodes.stop, end), out)
        return out

    @cached_property
    def _given(self) -> tuple[tuple[Any, ...], ...]:
        given, incidence = self.conditionals, self.conditionals.softmax.incidence
        return (
            (self.moments.mean, self.moments.second),
            (given.linear, given.precision),
            (incidence.node_entries, incidence.entry_column, given.softmax.values),
        )

    @cached_property
    def _predicted(self) -> NDArray[np.bool_]:
        """(d,) whether the node of each design column is predicted."""
        width = self.conditionals.softmax.incidence.nodes.width
        return np.repeat(self.conditionals.predicted, width)


@dataclass(frozen=True, eq=False)
class DesignColumns:
    """Design columns of all rows, written out: for tables with fewer rows than columns."""

    nodes: Nodes
    columns: Floats
    """(d, n)."""
    share: Floats
    """(n,) weight of every row divided by the total weight."""

    @classmethod
    def of(
        cls, numbers: Floats, codes: NDArray[np.integer], nodes: Nodes, weights: Floats | None
    ) -> DesignColumns:
        """Build the design columns from rows as a store has them."""
        n = len(codes)
        columns = np.zeros((nodes.n_columns, n))
        columns[: nodes.n_numeric] = numbers.T
        for j in range(nodes.first_indicator, codes.shape[1]):
            first = int(nodes.column_start[nodes.discrete_nodes[j]])
            columns[first + codes[:, j].astype(np.int64), np.arange(n)] = 1.0
        share = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
        return cls(nodes, columns, share)

    def second_moments(self, first: Ints, second: Ints) -> Floats:
        """Mean of z_a z_b for every pair of columns listed."""
        out = np.empty(len(first))
        row_products(self.columns, self.share, first, second, out)
        return out

    def slopes(self, conditionals: Conditionals, expected: Floats, n_threads: int) -> Slopes:
        """Means of z_k r_t, by products over the rows; `expected` as in `SlopesByMoments`."""
        gaussian, incidence = self.nodes.gaussian, conditionals.softmax.incidence
        residuals = np.empty_like(self.columns)
        predicted = np.repeat(conditionals.predicted, self.nodes.width)
        has_expectation = predicted.copy()
        has_expectation[gaussian] = False
        given = (conditionals.linear, conditionals.precision)
        entries = (incidence.node_entries, incidence.entry_column, conditionals.softmax.values)

        def some(nodes: slice) -> None:
            ends = (nodes.start, nodes.stop)
            gaussian_residuals(self.columns, self.share, given, entries, predicted, ends, residuals)

        parts = _cut(gaussian, gaussian.stop, max(1, -(-gaussian.stop // (4 * n_threads))))
        run_all([partial(some, part) for part in parts], n_threads)
        # What is expected of a discrete node is added to the products.
        others = slice(gaussian.stop, None)
        np.multiply(self.columns[others], -self.share, out=residuals[others])
        residuals[others] *= predicted[others, None]

        def means(targets: slice, columns: slice) -> Floats:
            out: Floats = residuals[targets] @ self.columns[columns].T
            some = np.flatnonzero(has_expectation[targets])
            if len(some):
                out[some] += expected[self.nodes.softmax_column[targets][some], columns]
            return out

        return means


def node_runs(width: Ints, most: int) -> Iterator[slice]:
    """Runs of nodes of at most so many columns together, if one node has not more.

    Examples
    --------
    >>> [(run.start, run.stop) for run in node_runs(np.array([1, 1, 3, 2]), 3)]
    [(0, 2), (2, 3), (3, 4)]
    """
    first, total = 0, 0
    for node, columns in enumerate(width.tolist()):
        if total and total + columns > most:
            yield slice(first, node)
            first, total = node, 0
        total += columns
    if len(width):
        yield slice(first, len(width))


# -- kernels ---------------------------------------------------------------------------------------


@kernel(fastmath={"reassoc", "contract"})
def slopes_by_moments(moments, terms, entries, expected, is_predicted, targets, columns, out):
    """out[t, k] = mean of z_k r_t, for some columns t of targets and some columns k.

    moments = (mean, second); terms = (linear, precision) of Gaussian nodes; entries = (first of
    each node, columns, coefficients); expected[l, k] = mean of z_k E_l of the discrete design
    columns l; is_predicted has one entry per column.  targets and columns are (first, end).
    """
    (mean, second), (linear, precision), (entry_ptr, column, values) = moments, terms, entries
    n_numbers, first = linear.shape[0], columns[0]
    width = columns[1] - first
    for t in range(targets[0], targets[1]):
        row = out[t - targets[0]]
        if not is_predicted[t]:
            for k in range(width):
                row[k] = 0.0
        elif t >= n_numbers:
            for k in range(width):
                row[k] = expected[t - n_numbers, first + k] - second[t, first + k]
        else:
            for k in range(width):
                row[k] = linear[t] * mean[first + k]
            for e in range(entry_ptr[t], entry_ptr[t + 1]):
                x = values[e]
                if x != 0.0:
                    other = second[column[e]]
                    for k in range(width):
                        row[k] += x * other[first + k]
            scale = 1.0 / precision[t]
            for k in range(width):
                row[k] = scale * row[k] - second[t, first + k]


@kernel(fastmath={"reassoc", "contract"})
def row_products(columns, share, first, second, out):
    """out[k] = sum over rows i of share[i] columns[first[k], i] columns[second[k], i]."""
    for k in range(first.shape[0]):
        x, y, total = columns[first[k]], columns[second[k]], 0.0
        for i in range(share.shape[0]):
            total += share[i] * x[i] * y[i]
        out[k] = total


@kernel(fastmath={"reassoc", "contract"})
def gaussian_residuals(columns, share, terms, entries, is_predicted, nodes, out):
    """out[s] = share times the residuals of the Gaussian nodes[0]:nodes[1]; rest as above."""
    (linear, precision), (entry_ptr, column, values) = terms, entries
    for s in range(nodes[0], nodes[1]):
        row = out[s]
        if not is_predicted[s]:
            for i in range(share.shape[0]):
                row[i] = 0.0
            continue
        for i in range(share.shape[0]):
            row[i] = linear[s]
        for e in range(entry_ptr[s], entry_ptr[s + 1]):
            x, other = values[e], columns[column[e]]
            if x != 0.0:
                for i in range(share.shape[0]):
                    row[i] += x * other[i]
        scale, own = 1.0 / precision[s], columns[s]
        for i in range(share.shape[0]):
            row[i] = share[i] * (scale * row[i] - own[i])


@inner
def _pair_weights(weights, u, second, end, out):
    """out[v - second] = weight of the pair (u, v); weights as in `entries_of_block`."""
    scale, kind, by_kind, first_exception, exception, its_weight = weights
    factor, of_u = by_kind[kind[u]], scale[u]
    for v in range(second, end):
        out[v - second] = of_u * scale[v] * factor[kind[v]]
    low, high = first_exception[u], first_exception[u + 1]
    while low < high:
        middle = (low + high) // 2
        if exception[middle] < second:
            low = middle + 1
        else:
            high = middle
    while low < first_exception[u + 1] and exception[low] < end:
        out[exception[low] - second] = its_weight[low]
        low += 1


@kernel(fastmath={"reassoc", "contract"})
def gaussian_entries(moments, terms, entries, is_predicted, weights, nodes, out):
    """out[i, j] = entry of the pair of Gaussian nodes (first + i, first + j), for all j > i.

    nodes = (first, end of the first ones, end); arguments as in `slopes_by_moments` and
    `entries_of_block`, -1 as there.  Here both conditionals of a pair are added up in one go, from
    a row of second moments: of every node only its neighbours' rows are read besides.
    """
    (mean, second), (linear, precision), (entry_ptr, column, values) = moments, terms, entries
    first, last, end = nodes
    weight = np.empty(end - first)
    for u in range(first, last):
        row, own = out[u - first], second[u]
        _pair_weights(weights, u, first, end, weight)
        for v in range(first, u + 1):
            row[v - first] = -1.0
        for v in range(u + 1, end):
            row[v - first] = 0.0
        if is_predicted[u]:
            scale = linear[u] / precision[u]
            for v in range(u + 1, end):
                row[v - first] = scale * mean[v] - own[v]
            for e in range(entry_ptr[u], entry_ptr[u + 1]):
                x = values[e] / precision[u]
                if x != 0.0:
                    other = second[column[e]]
                    for v in range(u + 1, end):
                        row[v - first] += x * other[v]
        for v in range(u + 1, end):
            if is_predicted[v]:
                x = linear[v] * mean[u]
                for e in range(entry_ptr[v], entry_ptr[v + 1]):
                    x += values[e] * own[column[e]]
                row[v - first] += x / precision[v] - own[v]
        for v in range(u + 1, end):
            x, w = abs(row[v - first]), weight[v - first]
            row[v - first] = x / w if w < np.inf else -1.0


@kernel
def entries_of_block(slopes, others, shared, starts, weights, nodes, out):
    """out[i, j] = entry of the pair of nodes (first + i, second + j); -1 where it is not asked for.

    slopes[b, a] = mean of z_a r_b and others[a, b] = mean of r_a z_b for the columns a of the first
    nodes and b of the second; others is empty unless pairs are shared.  starts = first column of
    every node; nodes = (first, end, first of the second, end); weights = (scale, kind, by_kind,
    first exception of every node, its second node, its weight), as in `PairWeights`.
    """
    first, last, second, end = nodes
    weight = np.empty(end - second)
    for u in range(first, last):
        _pair_weights(weights, u, second, end, weight)
        for v in range(second, end):
            w = weight[v - second]
            if u == v or (shared and v < u) or not w < np.inf:
                out[u - first, v - second] = -1.0
                continue
            total = 0.0
            for a in range(starts[u] - starts[first], starts[u + 1] - starts[first]):
                for b in range(starts[v] - starts[second], starts[v + 1] - starts[second]):
                    x = slopes[b, a]
                    if shared:
                        x += others[a, b]
                    total += x * x
            out[u - first, v - second] = np.sqrt(total) / w
