"""Parts of a table -> Rows: every question is asked of each part, and the answers are added up.

Parts are added in a fixed order, so a result depends on how the table is cut, never on where its
parts are or on how many threads or workers there are.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.parts.contract import Parts, Same, Sums
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.contract import (
    Coefficients,
    ColumnMoments,
    Conditionals,
    Gradient,
    Moments,
    NodeMatrices,
    Outside,
    Question,
    SoftmaxCurvature,
    SoftmaxSums,
)
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.outside import SlopesByMoments, nearest

_SAMPLE = 2**17
"""Rows of a sample that is put together and kept, where the parts are in this process."""
_SAMPLES = 4


class Opener(Protocol):
    """Makes rows of a part whenever it is visited.

    It travels to other processes with every question, so it is small.
    """

    def __call__(self, part: Any, stride: int = 1, first: int = 0) -> MemoryRows:
        """Every stride-th row of a part, from the given one on."""


def sliced(part: MemoryRows, stride: int = 1, first: int = 0) -> MemoryRows:
    """Open a part that consists of standardised rows already.

    Examples
    --------
    >>> codes = np.array([[0], [1], [2], [1]], dtype=np.uint8)
    >>> sliced(MemoryRows(np.zeros((4, 0)), codes, Nodes.mixed(0, (3,))), 2, 1).codes.tolist()
    [[1], [1]]
    """
    if stride == 1 and first == 0:
        return replace(part)
    some = slice(first, None, stride)
    products = part.products
    if products is not None:
        products = replace(products, features=np.ascontiguousarray(products.features[some]))
    return replace(
        part,
        numbers=np.ascontiguousarray(part.numbers[some]),
        codes=np.ascontiguousarray(part.codes[some]),
        weights=None if part.weights is None else np.ascontiguousarray(part.weights[some]),
        products=products,
    )


@dataclass(frozen=True, eq=False)
class Standardising:
    """Opens parts of an encoded table, which have `numbers`, `codes` and `weights`.

    Numbers are standardised at every visit: standardised copies would take as much memory again.
    """

    declared: Nodes
    """Nodes as the table has them."""
    nodes: Nodes
    """Nodes in standardised units, without values that have no rows."""
    centre: Floats
    scale: Floats
    """Centres and scales of all design columns that are numbers."""
    constant: NDArray[np.bool_]
    """Which of these columns do not vary; what rounding leaves of such a column is taken for
    zero."""
    code: tuple[NDArray[np.integer], ...]
    """Number of every value of every discrete column among its values with rows; empty if all have
    rows."""

    def __call__(self, part: Any, stride: int = 1, first: int = 0) -> MemoryRows:
        """Every stride-th row of a part, from the given one on."""
        some = slice(first, None, stride)
        codes: NDArray[np.integer] = part.codes[some]
        numbers = self.declared.numbers(part.numbers[some], codes) - self.centre
        numbers[:, self.constant] = 0.0
        numbers /= self.scale
        if self.code:
            columns = [table[codes[:, j]] for j, table in enumerate(self.code)]
            codes = np.column_stack(columns).astype(codes.dtype, copy=False)
        weights = None if part.weights is None else np.ascontiguousarray(part.weights[some])
        codes = np.ascontiguousarray(codes)
        return MemoryRows(np.ascontiguousarray(numbers), codes, self.nodes, weights)


@dataclass(eq=False)
class PartedRows:
    """Rows in parts.

    Parameters
    ----------
    parts : Parts
        None of them is empty.
    opener : Opener
        Makes rows of a part.
    sizes : sequence of int
        The number of rows of every part.
    nodes : Nodes
        Nodes, as of `MemoryRows`.
    n_threads : int
        Threads for every part; they change the time only.

    Examples
    --------
    >>> from mixedgm.base.parts.local import LocalParts
    >>> codes = [np.array([[0], [1]], dtype=np.uint8), np.array([[1]], dtype=np.uint8)]
    >>> nodes = Nodes.mixed(0, (2,))
    >>> parts = LocalParts(MemoryRows(np.zeros((len(y), 0)), y, nodes) for y in codes)
    >>> PartedRows(parts, sliced, (2, 1), nodes).moments().mean.round(3).tolist()
    [0.333, 0.667]
    """

    parts: Parts[Any]
    opener: Opener
    sizes: Sequence[int]
    nodes: Nodes
    n_threads: int = 1
    passes: float = field(default=0.0, init=False)
    curvature_passes: float = field(default=0.0, init=False)
    part_seconds: tuple[float, float] = field(default=(0.0, 0.0), init=False)
    _samples: OrderedDict[int, MemoryRows] = field(
        default_factory=OrderedDict, init=False, repr=False
    )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(sum(self.sizes))

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return self._moments.total_weight

    # -- sums over parts ---------------------------------------------------------------------------

    def totals(self, function: Callable[..., Sums], *given: Any, stride: int = 1) -> Sums:
        """Sums over parts of ``function(rows, *given)``, with every stride-th row of the table."""
        before = np.cumsum([0, *self.sizes[:-1]])
        first = (-before % stride).tolist()
        # On a cluster every worker has tasks for all of its threads.
        n_threads = self.n_threads if self.parts.nearby else 1
        common = (self.opener, n_threads, function, given, stride)
        return self.parts.total(_asked, *common, each=first)

    def means(self, function: Callable[..., Sums], *given: Any, stride: int = 1) -> Sums:
        """Means over every stride-th row of what the function returns as means over its own rows.

        Where the parts are in this process and such rows are few, they are put together and kept.
        """
        sample = self.sample(stride)
        if sample is not None:
            return function(sample, *given)
        total, *sums = self.totals(_weighted, function, given, stride=stride)
        return tuple(each / total for each in sums)

    def sample(self, stride: int) -> MemoryRows | None:
        """Every stride-th row, where the parts are in this process and such rows are few."""
        if not self.parts.nearby or stride == 1 or self.n_rows > stride * _SAMPLE:
            return None
        if stride not in self._samples:
            before = np.cumsum([0, *self.sizes[:-1]])
            first = (-before % stride).tolist()
            pieces = self.parts.map(_sampled, self.opener, stride, each=first)
            self._samples[stride] = _joined([piece for piece in pieces if piece is not None])
            if len(self._samples) > _SAMPLES:
                self._samples.popitem(last=False)
        self._samples.move_to_end(stride)
        sample = replace(self._samples[stride], n_threads=self.n_threads)
        sample.known_moments = self._known_moments
        return sample

    # -- moments and passes ------------------------------------------------------------------------

    def moments(self) -> Moments:
        """Weighted means and second moments of the columns."""
        return self._moments

    @cached_property
    def _moments(self) -> Moments:
        total, mean, second, shares = self.totals(_moment_sums)
        return Moments(float(total), mean / total, second / total, shares / total)

    def softmax(self, coef: Coefficients, gradient: Gradient) -> SoftmaxSums:
        """Loss per discrete node and the mean of z P' as asked."""
        known = self._known_moments
        clock = time.perf_counter()
        total, *sums = self.totals(_softmax_sums, coef, gradient, known)
        self.passes += 0.5 if gradient == "none" else 1.0
        loss, *others = (None if each is None else each / total for each in sums)
        assert loss is not None
        self._spend(time.perf_counter() - clock, 0.0)
        return SoftmaxSums(loss, *others)

    def column_moments(self) -> ColumnMoments:
        """Weighted means of the columns and of their squares, shares of values."""
        return self._moments.columns

    def second_moments(self, first: Ints, second: Ints) -> Floats:
        """Mean of z_a z_b for every pair of columns listed."""
        return np.asarray(self._moments.second[first, second])

    def outside(self, conditionals: Conditionals, question: Question) -> Outside:
        """Pairs, among those asked about, whose gradient is near its bound.

        Parts have sums of all pairs of columns to add, so they are made.
        """
        coef, expected = conditionals.softmax, np.zeros((0, self.nodes.n_columns))
        if len(coef.nodes):
            sums = self.softmax(coef, "all")
            assert sums.all_pairs is not None
            expected = np.ascontiguousarray(sums.all_pairs.T)
        else:
            self.passes += 1.0
        clock = time.perf_counter()
        slopes = SlopesByMoments(self._moments, conditionals, expected)
        found = nearest(slopes, self.nodes, conditionals, question, self.n_threads)
        self._spend(time.perf_counter() - clock, 0.0)
        return found

    @property
    def _known_moments(self) -> Moments | None:
        """Moments of all rows, which parts need for the losses of scored columns; else None."""
        return self._moments if self.nodes.n_scored else None

    # -- curvature ---------------------------------------------------------------------------------

    def softmax_curvature(self, coef: Coefficients, nodes: Ints, stride: int) -> SoftmaxCurvature:
        """Second derivatives of the mean loss of nodes with indicators, every stride-th row."""
        clock = time.perf_counter()
        self.curvature_passes += len(nodes) / len(self.nodes.n_levels) / stride
        sample = self.sample(stride)
        if sample is None:
            total, sums, shape = self.totals(_softmax_curvature, coef, nodes, stride=stride)
            start, n_levels, n_columns = shape.value
            curvature = SoftmaxCurvature(sums, start, n_levels, n_columns, 1.0 / total)
        else:
            curvature = sample.softmax_curvature(coef, nodes, 1)
        self._spend(0.0, time.perf_counter() - clock)
        return curvature

    def scored_curvature(self, coef: Coefficients, nodes: Ints, stride: int) -> NodeMatrices:
        """Second derivatives of the mean loss of scored nodes, every stride-th row."""
        clock = time.perf_counter()
        self.curvature_passes += len(nodes) / len(self.nodes.n_levels) / stride
        sample = self.sample(stride)
        if sample is None:
            total, sums, shape = self.totals(_scored_curvature, coef, nodes, stride=stride)
            asked, start = shape.value
            curvature = NodeMatrices(asked, start, sums / total)
        else:
            curvature = sample.scored_curvature(coef, nodes, 1)
        self._spend(0.0, time.perf_counter() - clock)
        return curvature

    def _spend(self, passes: float, curvature: float) -> None:
        self.part_seconds = (self.part_seconds[0] + passes, self.part_seconds[1] + curvature)


# -- what is asked of a part, wherever it is -------------------------------------------------------


def _asked(
    part: Any,
    opener: Opener,
    n_threads: int,
    function: Callable[..., Sums],
    given: tuple[Any, ...],
    stride: int,
    first: int,
) -> Sums | None:
    """A function of the rows of a part; None if it has none of those that are asked for."""
    rows = opener(part, stride, first)
    rows.n_threads = n_threads
    return function(rows, *given) if rows.n_rows else None


def _sampled(part: Any, opener: Opener, stride: int, first: int) -> MemoryRows | None:
    rows = opener(part, stride, first)
    return rows if rows.n_rows else None


def _joined(pieces: Sequence[MemoryRows]) -> MemoryRows:
    """The rows of all pieces, one after the other."""
    products, weights = pieces[0].products, None
    if products is not None:
        every = [piece.products.features for piece in pieces if piece.products is not None]
        products = replace(products, features=np.concatenate(every))
    if pieces[0].weights is not None:
        weights = np.concatenate([piece.weights for piece in pieces if piece.weights is not None])
    return replace(
        pieces[0],
        numbers=np.concatenate([piece.numbers for piece in pieces]),
        codes=np.concatenate([piece.codes for piece in pieces]),
        weights=weights,
        products=products,
    )


def _weighted(rows: MemoryRows, function: Callable[..., Sums], given: tuple[Any, ...]) -> Sums:
    """The weight of the rows, and sums from means over them."""
    total = rows.total_weight
    return (total, *(total * each for each in function(rows, *given)))


def _moment_sums(rows: MemoryRows) -> Sums:
    moments = rows.moments()
    total = moments.total_weight
    return total, total * moments.mean, total * moments.second, total * moments.shares


def _softmax_sums(
    rows: MemoryRows, coef: Coefficients, gradient: Gradient, moments: Moments | None
) -> Sums:
    rows.known_moments = moments
    sums, total = rows.softmax(coef, gradient), rows.total_weight
    every = (sums.loss, sums.mean_terms, sums.support, sums.all_pairs)
    return (total, *(None if each is None else total * each for each in every))


def _softmax_curvature(rows: MemoryRows, coef: Coefficients, nodes: Ints) -> Sums:
    found, total = rows.softmax_curvature(coef, nodes, 1), rows.total_weight
    shape = (found.start, found.n_levels, found.n_columns)
    return total, (found.scale * total) * found.sums, Same(shape)


def _scored_curvature(rows: MemoryRows, coef: Coefficients, nodes: Ints) -> Sums:
    found, total = rows.scored_curvature(coef, nodes, 1), rows.total_weight
    return total, total * found.matrices, Same((found.nodes, found.start))
