"""Gradients of pairs, block by block -> those pairs that are near their bound.

All pairs are looked at in blocks of some nodes by some nodes.  Of every block the largest entry is
kept, and the pairs that are wanted: memory is that of a few blocks, whatever the number of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.contract import Conditionals, Moments, Outside, Question
from mixedgm.rows.threads import run_all

Slopes = Callable[[slice, slice], Floats]
"""Columns t of targets and columns k -> the (t, k) matrix of the means of z_k r_t."""

BLOCK = 256
"""Design columns of a block: its matrices stay in the cache of a core."""


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
        if not largest >= self._floor or (self._floor <= 0.0 and not (entries >= 0.0).any()):
            return
        floor = max(self._floor, 0.0)
        self._count += int(np.count_nonzero(entries >= floor))
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
        if self._n_held > 2 * self._most + 1000:
            self._prune()

    def _prune(self) -> None:
        """Keep `most` of those held, and ask no more for smaller entries."""
        u, v, entries = (np.concatenate(part) for part in zip(*self._held, strict=True))
        order = np.lexsort((v, u, -entries))[: self._most]
        self._held = [(u[order], v[order], entries[order])]
        self._n_held = len(order)
        if self._n_held == self._most > 0:
            self._lowest = max(self._lowest, float(entries[order[-1]]))

    def answer(self) -> Outside:
        """The answer, of all that was added."""
        if not self._held:
            nothing = np.zeros((0, 2), dtype=np.int64)
            return Outside(self._largest, self._count, nothing, np.zeros(0))
        self._prune()
        u, v, entries = self._held[0]
        return Outside(self._largest, self._count, np.column_stack([u, v]), entries)


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

    starts, runs, shared = (
        nodes.column_start,
        list(node_runs(nodes.width, block)),
        conditionals.shared,
    )
    of = question.weights
    weights = (of.scale, of.kind, of.by_kind, of.first_exception)
    exceptions = np.ascontiguousarray(of.pairs[:, 1]), of.weights

    def columns(run: slice) -> slice:
        return slice(int(starts[run.start]), int(starts[run.stop]))

    def band(i: int) -> Nearest:
        """All pairs whose first node is in one run."""
        found, mine = Nearest(question.floor, question.most), runs[i]
        for other in runs[i if shared else 0 :]:
            said = slopes(columns(other), columns(mine))
            heard = slopes(columns(mine), columns(other)) if shared else np.zeros((0, 0))
            out = np.empty((mine.stop - mine.start, other.stop - other.start))
            ends = (mine.start, mine.stop, other.start, other.stop)
            entries_of_block(said, heard, shared, starts, (*weights, *exceptions), ends, out)
            found.add(out, mine.start, other.start)
        return found

    total = Nearest(question.floor, question.most)
    # The first bands are the longest: threads that begin with them end at the same time.
    for found in run_all([lambda i=i: band(i) for i in range(len(runs))], n_threads):  # type: ignore[misc]
        total.merge(found)
    return total.answer()


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

        given, incidence = self.conditionals, self.conditionals.softmax.incidence
        out = np.empty((targets.stop - targets.start, columns.stop - columns.start))
        slopes_by_moments(
            (self.moments.mean, self.moments.second),
            (given.linear, given.precision),
            (incidence.node_entries, incidence.entry_column, given.softmax.values),
            self.expected,
            np.repeat(given.predicted, incidence.nodes.width),
            (targets.start, targets.stop),
            (columns.start, columns.stop),
            out,
        )
        return out


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
