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

from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.contract import Conditionals, Moments, Outside, Question
from mixedgm.threads import run_all

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
        """What another has seen."""
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
    from mixedgm.rows.outside_kernels import entries_of_block

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
        from mixedgm.rows.outside_kernels import slopes_by_moments

        out = np.empty((targets.stop - targets.start, columns.stop - columns.start))
        ends = (targets.start, targets.stop), (columns.start, columns.stop)
        slopes_by_moments(*self._given, self.expected, self._predicted, *ends, out)
        return out

    def of_gaussian(self, nodes: slice, end: int, weights: tuple[Any, ...]) -> Floats:
        """Entries of the pairs of these Gaussian nodes with those from the first of them on."""
        from mixedgm.rows.outside_kernels import gaussian_entries

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
        """Of every design column, whether its node is."""
        width = self.conditionals.softmax.incidence.nodes.width
        return np.repeat(self.conditionals.predicted, width)


@dataclass(frozen=True, eq=False)
class DesignColumns:
    """Design columns of all rows, written out: for tables with fewer rows than columns."""

    nodes: Nodes
    columns: Floats
    """(d, n)."""
    share: Floats
    """(n,) what every row counts, of one."""

    @classmethod
    def of(
        cls, numbers: Floats, codes: NDArray[np.integer], nodes: Nodes, weights: Floats | None
    ) -> DesignColumns:
        """From rows as a store has them."""
        n = len(codes)
        columns = np.zeros((nodes.n_columns, n))
        columns[: nodes.n_numeric] = numbers.T
        for j in range(nodes.first_indicator, codes.shape[1]):
            first = int(nodes.column_start[nodes.n_gaussian + j])
            columns[first + codes[:, j].astype(np.int64), np.arange(n)] = 1.0
        share = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
        return cls(nodes, columns, share)

    def second_moments(self, first: Ints, second: Ints) -> Floats:
        """Mean of z_a z_b for every pair of columns listed."""
        from mixedgm.rows.outside_kernels import row_products

        out = np.empty(len(first))
        row_products(self.columns, self.share, first, second, out)
        return out

    def slopes(self, conditionals: Conditionals, expected: Floats, n_threads: int) -> Slopes:
        """Means of z_k r_t, by products over the rows; `expected` as in `SlopesByMoments`."""
        from mixedgm.rows.outside_kernels import gaussian_residuals

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
