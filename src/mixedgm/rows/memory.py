"""Encoded columns in memory -> Rows, by Numba kernels on threads.

Rows are cut into chunks that depend on the data's shape only.  Every chunk adds into its own
accumulator and the accumulators are summed in a fixed order, so a result does not depend on the
number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.threads import run_all, single_threaded_blas, threads_for
from mixedgm.model.layout import Floats, Incidence, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.by_column import KeptColumns, RowsByColumn
from mixedgm.rows.contract import (
    Coefficients,
    ColumnMoments,
    Conditionals,
    Gradient,
    Moments,
    NodeMatrices,
    Outside,
    Question,
    Shape,
    SoftmaxCurvature,
    SoftmaxSums,
)
from mixedgm.rows.curvature import BLAS_COST, SpikedRows, summed_curvature
from mixedgm.rows.kernels import fill_dense, level_moments, new_scratch, softmax_chunks
from mixedgm.rows.outside import DesignColumns, Slopes, SlopesByMoments, nearest
from mixedgm.rows.products import Products
from mixedgm.rows.scored_curvature import scored_curvature

_NO_WEIGHTS = np.zeros(0)
_NO_MATRIX = np.zeros((0, 0))
_NO_MATRICES = np.zeros((0, 0, 0))
_LANES = 8
_STRIP = 128
# A coefficient that is picked takes about as long as so many parts of one that is multiplied.
_DENSE = 0.16
# Up to so many multiplications BLAS does not rearrange its matrices.
_SMALL_PRODUCT = 900_000
_WANT = {"none": 0, "support": 1, "all": 2}
_EXPECTED = 3
_NOT_TURNED = (np.zeros((0, 0)), np.zeros((0, 0), dtype=np.int64))
# Up to so many rows there are fewer chunks than a large machine has use for; passes with much work
# are then cut by columns, too, as long as the rows turned take no more bytes than these.
_MANY_ROWS, _MOST_BYTES = 64 * 400, 2**30
MUCH_WORK = 200_000_000
_PIECES = 2
# What a softmax takes per level, in coefficients.
_SOFTMAX_WORK = 20


@dataclass(eq=False)
class MemoryRows:
    """Rows held in memory."""

    numbers: Floats
    """(n, p) standardised design columns that are numbers, C order."""
    codes: NDArray[np.integer]
    """(n, q) codes of the values of discrete columns, unsigned integers, C order."""
    nodes: Nodes
    """Kinds of the columns and their numbers of values; scores in the units of `numbers`."""
    weights: Floats | None = None
    """(n,) frequencies."""
    n_threads: int = 1
    """Threads to use; it changes the time only."""
    products: Products | None = None
    """Features that design columns are multiplied by, where edges are moderated."""
    blas_cost: float = BLAS_COST
    """Nanoseconds per row that BLAS takes for a pair of columns; by it curvature is summed one way
    or the other."""
    known_moments: Moments | None = None
    """Moments of the table that these rows are a part of, where they take the place of their
    own."""
    most_moments: int = 2**30
    """Bytes that second moments of all columns may take.  Where they would take more, those that
    are asked for are computed from the rows."""
    cut_from: int = MUCH_WORK
    """Rows times pairs of columns from which on a pass over few rows is cut by columns, too."""
    turned_up_to: int = 2**20
    """Rows times columns up to which moments are made from the rows turned in any case."""
    passes: float = field(default=0.0, init=False)
    curvature_passes: float = field(default=0.0, init=False)
    part_seconds: tuple[float, float] = field(default=(0.0, 0.0), init=False)
    _judged: tuple[Incidence, bool] | None = field(default=None, init=False, repr=False)
    """The last incidence, and whether it is dense."""
    _scored: tuple[Incidence, slice, Floats, Ints] | None = field(
        default=None, init=False, repr=False
    )
    """The last incidence, and the entries of its scored targets: second moments, and targets."""

    def __post_init__(self) -> None:
        _keep_freed_memory()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[0])

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    @cached_property
    def _shape(self) -> Shape:
        """Description of discrete columns for kernels: see `kernels`."""
        nodes = self.nodes
        start = nodes.column_start[nodes.n_gaussian :]
        columns = start - start[0]
        return (
            nodes.slot_start,
            columns,
            nodes.scores,
            nodes.first_indicator,
            nodes.n_spiked,
            nodes.term_start,
            nodes.free,
            nodes.evenly_scored,
            self._kept.targets[1],
        )

    @cached_property
    def _kept(self) -> KeptColumns:
        """The design columns that are multiplied."""
        return KeptColumns(self.nodes)

    @cached_property
    def _width(self) -> int:
        """Design columns of discrete columns."""
        return int(self._shape[1][-1])

    @cached_property
    def _n_values(self) -> int:
        """Slots of all discrete columns: their values, or own terms."""
        return int(self._shape[0][-1])

    @cached_property
    def _n_terms(self) -> int:
        """Own terms of all discrete columns."""
        return int(self._shape[5][-1])

    @property
    def _n_columns(self) -> int:
        return self.nodes.n_columns

    @property
    def _data(self) -> tuple[Floats, NDArray[np.integer], Floats, Floats]:
        weights = _NO_WEIGHTS if self.weights is None else self.weights
        features = _NO_MATRIX if self.products is None else self.products.features
        return self.numbers, self.codes, weights, features

    @cached_property
    def _bounds(self) -> Ints:
        """Chunk boundaries, by the data's shape only.

        A power of two, so that threads share evenly; enough for many cores, but with so many
        rows in each that its own sums of size d times levels stay a small part of the work.
        """
        width = self._width
        work = self.n_rows * width * (self.numbers.shape[1] + self.codes.shape[1])
        if self.nodes.first_indicator:
            work += self.n_rows * self._n_values
        most = min(
            64, work // 400_000, self.n_rows // 400, 2**28 // (8 * self._n_columns * width + 1)
        )
        n_chunks = 2 ** int(np.log2(max(1, most)))
        return np.linspace(0, self.n_rows, n_chunks + 1).astype(np.int64)

    @cached_property
    def _by_column(self) -> RowsByColumn | None:
        """The rows columns by rows, where there are few rows and very many pairs of columns."""
        n, d, width = self.n_rows, self._n_columns, self._width
        if n >= _MANY_ROWS or n * d * width < self.cut_from or self.products is not None:
            return None
        if 8 * n * (d + width + self.codes.shape[1]) > _MOST_BYTES:
            return None
        return RowsByColumn.of(self.numbers, self.codes, self.nodes, self.weights)

    @cached_property
    def _widest(self) -> int:
        """Design columns of the discrete column that has most."""
        return int(np.diff(self._shape[1]).max(initial=1))

    def with_joint_state(self, numbers: Ints, discrete: Ints, together: Ints) -> MemoryRows:
        """Keep the columns `numbers` and `discrete`, and put the joint state of others behind them.

        The columns `together` become one, which has a level for every combination of theirs; the
        level of the last of them changes fastest.

        Examples
        --------
        >>> codes = np.array([[1, 0, 2], [0, 1, 1]], dtype=np.uint8)
        >>> rows = MemoryRows(np.zeros((2, 0)), codes, Nodes.mixed(0, (2, 2, 3)))
        >>> joined = rows.with_joint_state(np.arange(0), np.array([1]), np.array([0, 2]))
        >>> joined.nodes.n_levels, joined.codes.tolist()
        ((2, 6), [[0, 5], [1, 1]])
        """
        state, n_levels = np.zeros(self.n_rows, dtype=np.int64), self.nodes.n_levels
        for j in together:
            state = state * n_levels[j] + self.codes[:, j]
        p, joint = self.nodes.n_gaussian, prod(n_levels[j] for j in together)
        nodes = self.nodes.take([*numbers, *(p + discrete)]).with_state(joint)
        codes = np.column_stack([self.codes[:, discrete].astype(np.int64), state])
        if max(nodes.n_levels) <= 2**16:
            codes = codes.astype(np.uint8 if max(nodes.n_levels) <= 2**8 else np.uint16)
        scored = discrete[discrete < self.nodes.n_scored]
        kept = np.ascontiguousarray(self.numbers[:, [*numbers, *(p + scored)]])
        return MemoryRows(kept, codes, nodes, self.weights, self.n_threads)

    # -- moments ---------------------------------------------------------------------------------

    def moments(self) -> Moments:
        """Weighted means and second moments of the columns, products with features included."""
        return self._moments

    @cached_property
    def _moments(self) -> Moments:
        if self.known_moments is not None:
            return self.known_moments
        if self.products is None:
            mean, second = self._sums(self.weights)
        else:
            mean, second = self.products.moments(self._sums, self.weights)
        total, shares = self.total_weight, self._shares(mean)
        # In place: of very many columns it is the largest matrix there is.
        strips = [second[rows] for rows in _strips(len(second))]
        divided = [partial(np.divide, strip, total, strip) for strip in strips]
        run_all(divided, threads_for(second.size, self.n_threads))
        return Moments(total, mean / total, second, shares / total)

    def _shares(self, sums: Floats) -> Floats:
        """Sums of weights by value, from the sums of all columns."""
        nodes, shares = self.nodes, sums[self.nodes.n_numeric : self._n_columns]
        if not nodes.first_indicator:
            return shares
        counts = [
            np.bincount(self.codes[:, j], self.weights, nodes.n_levels[j])
            for j in range(nodes.n_spiked, nodes.first_indicator)
        ]
        return np.concatenate([*self.spiked_sums(), *counts, shares])

    def spiked_sums(self) -> list[Floats]:
        """Sums of what multiplies the own terms of nodes with a spike."""
        first, out = self.nodes.n_gaussian, []
        for j in range(self.nodes.n_spiked):
            x = self.numbers[:, first + 2 * j + 1] + self.nodes.scores[3 * j + 1]
            x = np.where(self.codes[:, j] > 0, x, 0.0)
            both = np.column_stack([self.codes[:, j] > 0, x, -0.5 * x**2])
            out.append(both.sum(axis=0) if self.weights is None else self.weights @ both)
        return out

    def _sums(self, weights: Floats | None) -> tuple[Floats, Floats]:
        """Sums of w z and of w z z', for any weights."""
        if self._by_column is not None:
            return self._sums_by_column(self._by_column, weights)
        if self.n_rows * self._n_columns <= self.turned_up_to:
            turned = RowsByColumn.of(self.numbers, self.codes, self.nodes, weights)
            return self._sums_by_column(turned, weights)
        p, first = self.numbers.shape[1], self.nodes.first_indicator
        start = self._shape[1][first:] - self._shape[1][first]
        levels = int(start[-1])
        weighted = self.numbers if weights is None else self.numbers * weights[:, None]
        number_by_level = np.zeros((levels, p))
        level_by_level = np.zeros((levels, levels))
        codes = np.ascontiguousarray(self.codes[:, first:])
        data = (self.numbers, codes, _NO_WEIGHTS if weights is None else weights)
        out = (max(16, 2**16 // max(p, 1)), number_by_level, level_by_level)
        run_all(
            [lambda part=part: level_moments(data, start, part, *out) for part in self._triangle],  # type: ignore[misc]
            threads_for(self.n_rows * codes.shape[1] * (p + codes.shape[1]), self.n_threads),
        )
        upper = np.triu(level_by_level)
        second = np.empty((p + levels, p + levels))
        np.matmul(weighted.T, self.numbers, out=second[:p, :p])  # without a second one of its size
        second[p:, :p] = number_by_level
        second[:p, p:] = number_by_level.T
        second[p:, p:] = upper + np.triu(upper, 1).T
        return np.concatenate([weighted.sum(axis=0), np.diagonal(upper)]), second

    def _sums_by_column(
        self, turned: RowsByColumn, weights: Floats | None
    ) -> tuple[Floats, Floats]:
        """Sums of w z and of w z z', from the rows turned with these weights."""
        p, discrete = self.nodes.n_gaussian, turned.design[self.nodes.n_gaussian :]
        numbers = self.numbers[:, :p]
        weighted = numbers
        if weights is not None:
            discrete, weighted = discrete * weights, numbers * weights[:, None]
        second = np.empty((self._n_columns, self._n_columns))

        def of_numbers(rows: slice) -> None:
            after = slice(rows.stop, p)
            np.matmul(weighted.T[rows], numbers[:, rows], out=second[rows, rows])
            np.matmul(weighted.T[rows], numbers[:, after], out=second[rows, after])
            second[after, rows] = second[rows, after].T

        def of_levels(rows: slice) -> None:
            whole, after = slice(p + rows.start, p + rows.stop), slice(p + rows.stop, None)
            second[whole, :p], second[:p, whole] = found[rows, :p], found[rows, :p].T
            second[whole, after], second[after, whole] = found[rows, after], found[rows, after].T
            upper = np.triu(found[rows, whole])
            second[whole, whole] = upper + np.triu(upper, 1).T

        with single_threaded_blas():
            found = turned.products(discrete, 1.0, self.n_threads)
            for function, size in ((of_numbers, p), (of_levels, len(found))):
                n_threads = threads_for(self._n_columns * size, self.n_threads)
                run_all([partial(function, strip) for strip in _strips(size)], n_threads)
        return turned.sums, second

    def column_moments(self) -> ColumnMoments:
        """Weighted means of the columns and of their squares, shares of values."""
        return self._column_moments

    @cached_property
    def _column_moments(self) -> ColumnMoments:
        if self._written_out is None:
            return self._moments.columns
        share, columns = self._written_out.share, self._written_out.columns
        mean = columns @ share
        shares = self._shares(mean * self.total_weight) / self.total_weight
        return ColumnMoments(self.total_weight, mean, columns**2 @ share, shares)

    def second_moments(self, first: Ints, second: Ints) -> Floats:
        """Mean of z_a z_b for every pair of columns listed."""
        if self._written_out is None:
            return np.asarray(self._moments.second[first, second])
        return self._written_out.second_moments(first, second)

    @cached_property
    def _written_out(self) -> DesignColumns | None:
        """All design columns, where second moments of all of them would take too much memory."""
        has_moments = self.known_moments is not None or self.products is not None
        if has_moments or 8 * self._n_columns**2 <= self.most_moments:
            return None
        return DesignColumns.of(self.numbers, self.codes, self.nodes, self.weights)

    @property
    def _triangle(self) -> list[tuple[int, int]]:
        """Runs of the columns with indicators, so that pairs with them and those after are even."""
        n = self.codes.shape[1] - self.nodes.first_indicator
        work = np.cumsum(self.numbers.shape[1] + np.arange(n, 0, -1))
        n_runs = min(n, 8 * self.n_threads)
        wanted = np.arange(1, n_runs) * (work[-1] / n_runs) if n_runs else np.zeros(0)
        ends = np.unique([0, *(np.searchsorted(work, wanted) + 1), n])
        return list(pairwise(ends.tolist()))

    # -- passes ----------------------------------------------------------------------------------

    def softmax(self, coef: Coefficients, gradient: Gradient) -> SoftmaxSums:
        """Loss per discrete node and the mean of z P' as asked."""
        whole_rows = self._is_dense(coef)
        if whole_rows and gradient == "support":
            return self._support_from_all(coef)
        clock = time.perf_counter()
        self.passes += 0.5 if gradient == "none" else 1.0
        bounds, columns, d = self._bounds, self._width, self._n_columns
        n_chunks = len(bounds) - 1
        turned = None if whole_rows else self._by_column
        multiplies = whole_rows or (gradient == "all" and turned is None)
        # Whole vector registers: the columns added here belong to no node and are cut off again.
        width = -(-max(1, self._kept.n_targets) // _LANES) * _LANES
        of_z = self._kept.n_columns + 1
        bias = self._biases(coef)
        want = _EXPECTED if turned is not None and gradient == "all" else _WANT[gradient]
        counts = (self.codes.shape[1], len(coef.values), len(bias), of_z, width)
        out = _accumulators(n_chunks, counts, max(columns, self._n_terms), want)
        work = self.n_rows * (len(coef.values) + (d * columns if gradient == "all" else 0))
        if self.nodes.first_indicator:
            work += self.n_rows * self._n_values
        n_threads = threads_for(work, self.n_threads)
        dense = self._dense(coef, bias, (len(bias), of_z, width)) if whole_rows else _NO_MATRICES
        block = self._block(of_z, width, products=multiplies)
        kept, (numbers, codes), all_pairs = _NO_MATRIX, _NOT_TURNED, None
        if turned is not None:
            numbers, codes = turned.numbers, turned.codes
        by_column = (numbers, codes, self._kept.place)
        if want == _EXPECTED:
            kept = np.empty((self._kept.n_targets, self.n_rows))
            if len(coef.nodes) < self.codes.shape[1]:
                kept[:] = 0.0  # what belongs to nodes that are not predicted

        by_row = not whole_rows and turned is None
        shape = self.numbers.shape[1] * by_row, self.codes.shape[1] * by_row
        sizes = (block, of_z, width, self._widest)

        def piece(chunks: tuple[int, int], nodes: Ints) -> Callable[[], object]:
            return lambda: softmax_chunks(
                self._data,
                by_column,
                bounds,
                chunks,
                self._shape,
                self._scored_work(block),
                None if self.products is None else True,
                nodes,
                bias,
                dense,
                coef.incidence.blocks,
                coef.values,
                want,
                block,
                new_scratch(sizes, len(bias), shape, multiplies),
                (*out, kept),
            )

        pieces = self._pieces(coef, n_chunks, n_threads, by_nodes=turned is not None)
        with single_threaded_blas() if whole_rows or gradient == "all" else nullcontext():
            run_all([piece(*one) for one in pieces], n_threads)
            if turned is not None and want == _EXPECTED:
                all_pairs = turned.expected_products(kept, self.total_weight, n_threads).T
        sums = self._means(out, coef, gradient, all_pairs)
        self._spend(time.perf_counter() - clock, 0.0)
        return sums

    def _scored_work(self, length: int) -> tuple[Floats, Ints] | None:
        """Arrays for blocks of so many rows of scored nodes, if there are such nodes."""
        first, last = self.nodes.n_spiked, self.nodes.first_indicator
        if not last:
            return None
        most = int(np.diff(self._shape[0])[first:last].max(initial=0))
        return np.empty((most, length)), np.empty(length, dtype=np.int64)

    def outside(self, conditionals: Conditionals, question: Question) -> Outside:
        """Pairs, among those asked about, whose gradient is near its bound."""
        coef, expected = conditionals.softmax, np.zeros((0, self._n_columns))
        if len(coef.nodes):
            sums = self.softmax(coef, "all")
            assert sums.all_pairs is not None
            expected = np.ascontiguousarray(sums.all_pairs.T)
        else:
            self.passes += 1.0
        clock = time.perf_counter()
        slopes: Slopes
        if self._written_out is None:
            slopes = SlopesByMoments(self._moments, conditionals, expected)
        else:
            slopes = self._written_out.slopes(conditionals, expected, self.n_threads)
        with single_threaded_blas():
            found = nearest(slopes, self.nodes, conditionals, question, self.n_threads)
        self._spend(time.perf_counter() - clock, 0.0)
        return found

    def _pieces(
        self, coef: Coefficients, n_chunks: int, n_threads: int, *, by_nodes: bool
    ) -> list[tuple[tuple[int, int], Ints]]:
        """Chunks of rows and nodes for the threads to take; nothing is added up across pieces.

        So they may depend on the number of threads, and one that has all nodes is cheapest.
        """
        if n_threads == 1 or not by_nodes:
            n_shares = min(n_threads, n_chunks)
            shares = [k * n_chunks // n_shares for k in range(n_shares + 1)]
            return [(chunks, coef.nodes) for chunks in pairwise(shares)]
        n_runs = min(-(-_PIECES * n_threads // n_chunks), len(coef.nodes))
        first = coef.incidence.node_entries[coef.incidence.nodes.n_gaussian + coef.nodes]
        work = np.cumsum(_SOFTMAX_WORK * self.nodes.width[self.nodes.discrete][coef.nodes])
        work += first - first[0]
        cuts = np.searchsorted(work, np.arange(1, n_runs) * (work[-1] / n_runs))
        runs = np.split(coef.nodes, np.unique(cuts))
        return [((c, c + 1), run) for c in range(n_chunks) for run in runs if len(run)]

    def _means(
        self,
        out: tuple[Floats, ...],
        coef: Coefficients,
        gradient: Gradient,
        all_pairs: Floats | None,
    ) -> SoftmaxSums:
        """Sums of all chunks -> means over rows, of what was asked for and is not known."""
        loss, means, support, products = (self._mean(part) for part in out)
        if gradient == "all" and all_pairs is None:
            all_pairs = self._all_pairs(products[:, : self._kept.n_targets], means)
        if self.products is not None and gradient == "support":
            self.products.centre_support(support, means[1:], coef)
        if self.nodes.n_scored:
            first, last = np.searchsorted(
                coef.nodes, [self.nodes.n_spiked, self.nodes.first_indicator]
            )
            predicted = coef.nodes[first:last]
            loss[predicted] -= self._seen(coef)[predicted - self.nodes.n_spiked]
        return SoftmaxSums(
            loss,
            means[0, : self._n_terms] if gradient != "none" else None,
            support if gradient == "support" else None,
            all_pairs,
        )

    def _all_pairs(self, products: Floats, means: Floats) -> Floats:
        """(1 + F, kept target columns, kept columns and ones) means -> (columns, target columns).

        Fills in the means of nodes with indicators, too.
        """
        kept, totals = self._kept, self._column_means
        expected = kept.spread(products[:, :, -1], totals[:, 0])
        first, start = self.nodes.first_indicator, int(self._shape[1][self.nodes.first_indicator])
        means[0, int(self._shape[5][first]) : self._n_terms] = expected[0, start:]
        means[1:, : self._width] = expected[1:]
        every = kept.products(products, totals[:, 1:])
        if self.products is not None:
            self.products.centre_all(every, means[1:, : self._width])
        return np.concatenate(list(every), axis=1).T if len(every) > 1 else every[0].T

    @cached_property
    def _column_means(self) -> Floats:
        """(1 + F, 1 + d) mean of 1 and of the design columns, times 1 and times every feature."""
        features = _NO_MATRIX if self.products is None else self.products.features.T
        first, n_levels = self.nodes.first_indicator, self.nodes.n_levels
        weights = np.ones(self.n_rows) if self.weights is None else self.weights
        rows = []
        for weight in [weights, *(weights * feature for feature in features)]:
            levels = [
                np.bincount(self.codes[:, j], weight, n_levels[j])
                for j in range(first, self.codes.shape[1])
            ]
            rows.append(np.concatenate([[weight.sum()], weight @ self.numbers, *levels]))
        return np.array(rows) / self.total_weight

    def _seen(self, coef: Coefficients) -> Floats:
        """Mean logits of the values that scored nodes have, which are linear in what was observed.

        The logit of a value that no row has may be -inf.
        """
        nodes, incidence = self.nodes, coef.incidence
        first, last = nodes.n_spiked, nodes.first_indicator
        values = slice(int(nodes.slot_start[first]), int(nodes.slot_start[last]))
        shares = self.column_moments().shares[values]
        logits = np.where(shares > 0.0, coef.bias[values], 0.0) * shares
        out = np.add.reduceat(logits, nodes.slot_start[first:last] - nodes.slot_start[first])
        if self._scored is None or self._scored[0] is not incidence:
            p = incidence.nodes.n_gaussian
            entries = slice(*incidence.node_entries[[p + first, p + last]].tolist())
            column, target = incidence.entry_column[entries], incidence.entry_target[entries]
            at = target - nodes.column_start[p + first]
            self._scored = incidence, entries, self.second_moments(column, target), at
        _, entries, second, at = self._scored
        return np.asarray(out + np.bincount(at, coef.values[entries] * second, last - first))

    def _biases(self, coef: Coefficients) -> Floats:
        """The bias of every value; below, an intercept of every feature for every column."""
        if self.products is None:
            return coef.bias[None]
        intercepts = self.products.intercepts(coef, self._width)
        out = np.zeros((1 + len(intercepts), max(self._width, self._n_values)))
        out[0, : self._n_values], out[1:, : self._width] = coef.bias, intercepts
        return out

    def _mean(self, sums: Floats) -> Floats:
        if len(sums) == 1 or sums.size == 0:
            return np.asarray(sums[0] / self.total_weight)
        return np.asarray(sums.sum(axis=0) / self.total_weight)

    def _block(self, d: int, width: int, *, products: bool) -> int:
        """Rows per block, so that d + width numbers for each of them stay in the cache of one core.

        Wide matrix products bring their own order, and gain from long blocks.  They take whole
        blocks, so every chunk has about a whole number of them.  Products that are small enough
        skip that order, which is faster still; tables without scored columns keep the blocks that
        they have always been summed by.
        """
        fitting = 2**19 // (d + width) // 8 * 8
        most = 512 if products and d + width > 200 else min(max(fitting, 64), 256)
        small = _SMALL_PRODUCT // (d * width) // 8 * 8
        if self.nodes.n_scored and products and small >= 64:
            most = min(most, small)
        chunk = -(-self.n_rows // (len(self._bounds) - 1))
        return -(-chunk // (8 * -(-chunk // most))) * 8

    def _is_dense(self, coef: Coefficients) -> bool:
        """Whether whole rows of the coefficient matrix are cheaper than picking blocks.

        A level picks its coefficients, one for each level of the target, whatever the number of
        levels that it was picked from; a product takes all columns.
        """
        if self._judged is None or self._judged[0] is not coef.incidence:
            n_matrices = 1 if self.products is None else 1 + self.products.n_features
            limit = _DENSE * n_matrices * self._kept.n_columns * self._kept.n_targets
            self._judged = coef.incidence, self._picked(coef.incidence) > limit
        if not self._judged[1]:
            return False
        # A first level without rows may have the bias -inf, and nothing can be relative to it.
        return bool(np.isfinite(coef.bias[self._shape[0][self.nodes.first_indicator] :]).all())

    def _picked(self, incidence: Incidence) -> int:
        """Coefficients that a row picks, of all targets that have a softmax."""
        target_ptr, source, entry_ptr, _ = incidence.blocks
        first = target_ptr[incidence.nodes.n_gaussian]
        entries, p = np.diff(entry_ptr)[first:], self.numbers.shape[1]
        width = np.concatenate([np.ones(p, dtype=np.int64), self.nodes.width[self.nodes.discrete]])
        return int((entries // width[source[first:]]).sum())

    def _dense(self, coef: Coefficients, bias: Floats, shape: tuple[int, int, int]) -> Floats:
        incidence, dense = coef.incidence, np.zeros(shape)
        blocks = (incidence.target_ptr, incidence.entry_ptr, incidence.entry_column)
        places = self._kept.column_place
        fill_dense(blocks, self._shape, places, coef.nodes, bias, coef.values, dense)
        return dense

    def _support_from_all(self, coef: Coefficients) -> SoftmaxSums:
        sums, incidence = self.softmax(coef, "all"), coef.incidence
        assert sums.all_pairs is not None
        entries, support = incidence.softmax_entries, np.zeros(len(coef.values))
        level = incidence.nodes.softmax_column[incidence.entry_target[entries]]
        support[entries] = sums.all_pairs[incidence.entry_column[entries], level]
        return SoftmaxSums(sums.loss, sums.mean_terms, support, None)

    # -- curvature -------------------------------------------------------------------------------

    def softmax_curvature(self, coef: Coefficients, nodes: Ints, stride: int) -> SoftmaxCurvature:
        """Second derivatives of the mean loss of nodes with indicators, every stride-th row."""
        clock = time.perf_counter()
        self.curvature_passes += len(nodes) / self.codes.shape[1] / stride
        curvature = summed_curvature(
            self._data,
            self._shape,
            (coef, self._biases(coef), nodes),
            stride,
            self.n_threads,
            self.blas_cost,
        )
        if self.products is not None:
            curvature = self.products.centre_curvatures(curvature, coef, nodes)
        self._spend(0.0, time.perf_counter() - clock)
        return curvature

    def scored_curvature(self, coef: Coefficients, nodes: Ints, stride: int) -> NodeMatrices:
        """Second derivatives of the mean loss of scored nodes, every stride-th row."""
        clock = time.perf_counter()
        self.curvature_passes += len(nodes) / self.codes.shape[1] / stride
        spiked, nodes = np.split(nodes, [np.searchsorted(nodes, self.nodes.n_spiked)])
        matrices = None
        if len(nodes):
            asked = (coef, self._biases(coef), nodes)
            matrices = scored_curvature(
                self._data, self._shape, self.nodes, asked, self.products, stride, self.n_threads
            )
        if len(spiked):
            data = (self.numbers, self.codes, self.weights, self.nodes, self.products)
            rows = SpikedRows(*data, self.n_threads)
            with single_threaded_blas():
                matrices = rows.curvature(coef, spiked, stride).followed_by(matrices)
        assert matrices is not None
        self._spend(0.0, time.perf_counter() - clock)
        return matrices

    def _spend(self, passes: float, curvature: float) -> None:
        self.part_seconds = (self.part_seconds[0] + passes, self.part_seconds[1] + curvature)


@cache
def _keep_freed_memory() -> None:
    """Let the C library reuse the arrays of one pass in the next.

    That of Linux gives large blocks back to the system, which has to clear every page of the next
    one, unless it has seen still larger ones come and go.  Elsewhere this does nothing.
    """
    np.empty(2**24, dtype=np.uint8)


def _strips(n_columns: int) -> list[slice]:
    """Columns in runs, each of which is a thread's work."""
    return [slice(a, min(a + _STRIP, n_columns)) for a in range(0, n_columns, _STRIP)]


def _accumulators(
    n_chunks: int, sizes: tuple[int, int, int, int, int], n_means: int, want: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Sums of every chunk: loss, means, support, all_pairs; those not asked for are empty."""
    n_discrete, n_entries, n_biases, of_z, width = sizes
    shape = (n_biases, width, of_z) if want == _WANT["all"] else (0, 0, 0)
    return (
        np.zeros((n_chunks, n_discrete)),
        np.zeros((n_chunks, n_biases, n_means)),
        np.zeros((n_chunks, n_entries if want == _WANT["support"] else 0)),
        # Written whole by the first block of a chunk, so it need not be zero before.
        np.empty((n_chunks, *shape)),
    )
