"""Encoded columns and coefficients of some nodes -> second derivatives of their losses, summed.

Sums of z z' over rows are made by one of two kernels, whichever is cheaper for the node: by BLAS,
for which levels are columns of zeros and ones, or level by level, which visits only the ones.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.contract import Coefficients, NodeMatrices, Shape, SoftmaxCurvature
from mixedgm.rows.products import Products
from mixedgm.threads import run_all, single_threaded_blas, threads_for

# Rows of a block; level by level they are half as many.
_BLOCK = 256
# So many columns times packed levels are multiplied by BLAS at a time.
_PANEL = 24
# Sums of another part of the rows have to be zeroed and added, which so many rows are worth.
_ROWS_OF_A_PART = 2000
_ROWS_OF_A_SCORED_PART = 500

# Nanoseconds per row that were measured: of a pair of columns with BLAS; of a pair of numbers, of a
# number and a column with levels, of two columns with levels, level by level (times packed levels),
# and of such two columns however few packed levels there are.
BLAS_COST, _NUMBERS, _MIXED, _LEVELS, _PAIR = 0.07, 0.24, 0.19, 0.3, 2.5


def summed_curvature(
    data: tuple[Floats, NDArray[np.integer], Floats, Floats],
    shape: Shape,
    asked: tuple[Coefficients, Floats, Ints],
    stride: int,
    n_threads: int,
    blas_cost: float,
) -> SoftmaxCurvature:
    """From every stride-th row; asked = (coefficients, biases, nodes), shape as in `kernels`."""
    from mixedgm.rows.curvature_kernels import curvature_sums

    coef, bias, nodes = asked
    incidence, n_rows = coef.incidence, len(data[1])
    sizes = _Sizes(coef, bias, shape[0], nodes, blas_cost)
    starts = np.zeros(len(nodes) + 1, dtype=np.int64)
    np.cumsum(sizes.n_columns**2 * sizes.n_packed, out=starts[1:])
    work = (n_rows // stride + 1) * (sizes.n_predictors * sizes.width) ** 2
    parts = _row_parts(n_rows, int(work.sum()), int(starts[-1]), stride)
    n_threads = threads_for(int(work.sum()), n_threads)
    shares = _shares(work, 1 if n_threads == 1 else -(-3 * n_threads // len(parts)))
    sums, by_blas = np.zeros((len(parts), int(starts[-1]))), sizes.by_blas

    def task(part: int, first: int, last: int) -> None:
        curvature_sums(
            data,
            (*parts[part], stride),
            (nodes[first:last], by_blas[first:last]),
            shape,
            bias,
            incidence.blocks,
            coef.values,
            starts[first : last + 1],
            sizes.work(slice(first, last)),
            sums[part],
        )

    tasks = [(part, *share) for part in range(len(parts)) for share in shares]
    with single_threaded_blas() if by_blas.any() else nullcontext():
        run_all([partial(task, *one) for one in tasks], n_threads)
    # Added up here, in one order: what a thread adds up depends on which nodes it has.
    weights = data[2]
    total = float(weights[::stride].sum()) if len(weights) else float(-(-n_rows // stride))
    packed = sums[0] if len(parts) == 1 else sums.sum(axis=0)
    return SoftmaxCurvature(packed, starts, sizes.width, sizes.n_columns, 1.0 / total)


def scored_curvature(
    data: tuple[Floats, NDArray[np.integer], Floats, Floats],
    shape: Shape,
    of_columns: Nodes,
    asked: tuple[Coefficients, Floats, Ints],
    products: Products | None,
    stride: int,
    n_threads: int,
) -> NodeMatrices:
    """The same for scored nodes, as whole matrices: own terms, then entries of the incidence."""
    from mixedgm.rows.scored_curvature_kernels import scored_matrices, scored_sums

    coef, bias, nodes = asked
    incidence, n_rows, n_intercepts = coef.incidence, len(data[1]), len(bias)
    target_ptr, source, entry_ptr, _ = incidence.blocks
    target = of_columns.n_gaussian + nodes
    first, last = target_ptr[target], target_ptr[target + 1]
    entries, n_terms = entry_ptr[last] - entry_ptr[first], of_columns.n_biases[target]
    with_levels = _count_between(source >= of_columns.n_numeric, first, last)
    n_columns = n_intercepts + entries - with_levels
    starts = _offsets(n_columns * (n_columns + n_terms) + n_terms**2)
    n_values = int(np.diff(shape[0])[nodes].max())
    work = (n_rows // stride + 1) * int((n_columns * (n_columns + n_terms) + 20).sum())
    most = min(8, n_rows // (_ROWS_OF_A_SCORED_PART * stride), 2**23 // max(int(starts[-1]), 1))
    parts = _cut(n_rows, max(1, most), stride)
    sums = np.zeros((len(parts), int(starts[-1])))
    sizes = (_BLOCK // 2, int(n_columns.max()), n_values, int(n_terms.max()))

    def task(part: int) -> None:
        scored_sums(
            data,
            (*parts[part], stride),
            nodes,
            shape,
            bias,
            incidence.blocks,
            coef.values,
            starts,
            sizes,
            sums[part],
        )

    with single_threaded_blas():
        run_all([partial(task, k) for k in range(len(parts))], threads_for(work, n_threads))
    weights = data[2]
    total = float(weights[::stride].sum()) if len(weights) else float(-(-n_rows // stride))
    size = n_terms + entries + (n_intercepts if n_intercepts > 1 else 0)
    begins = _offsets(size**2)
    matrices = np.empty(int(begins[-1]))
    scored_matrices(
        nodes,
        n_terms,
        (data[0].shape[1], data[1].shape[1], n_intercepts),
        incidence.blocks,
        (sums[0] if len(parts) == 1 else sums.sum(axis=0), starts, total),
        (matrices, begins),
    )
    whole = NodeMatrices(nodes, begins, matrices)
    if products is None:
        return whole
    centred = [
        products.centre_matrix(whole[k], int(n_terms[k]), incidence.entry_column[entries]).ravel()
        for k, entries in enumerate(map(incidence.entries_of, target.tolist()))
    ]
    return NodeMatrices(nodes, np.cumsum([0, *map(len, centred)]), np.concatenate(centred))


def _offsets(sizes: Ints) -> Ints:
    out = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


class _Sizes:
    """How much of everything the nodes have."""

    def __init__(
        self, coef: Coefficients, bias: Floats, level_start: Ints, nodes: Ints, blas_cost: float
    ) -> None:
        incidence, self.blas_cost = coef.incidence, blas_cost
        target_ptr, source, entry_ptr, _ = incidence.blocks
        target = incidence.nodes.n_gaussian + nodes
        first, last = target_ptr[target], target_ptr[target + 1]
        entries = entry_ptr[last] - entry_ptr[first]
        self.width = level_start[nodes + 1] - level_start[nodes]
        self.n_packed = self.width * (self.width - 1) // 2
        self.n_predictors = len(bias) + last - first
        is_number = source < incidence.nodes.n_numeric
        self.n_numbers = len(bias) + _count_between(is_number, first, last)
        self.n_columns = len(bias) + entries // self.width
        self.narrow = self.n_columns - (self.n_predictors - self.n_numbers)
        """Columns without every first level."""

    @cached_property
    def by_blas(self) -> NDArray[np.bool_]:
        """For which nodes that is cheaper."""
        numbers, others = self.n_numbers, self.n_predictors - self.n_numbers
        pairs = _NUMBERS * numbers**2 / 2 + _MIXED * numbers * others + _LEVELS * others**2 / 2
        by_level = self.n_packed * pairs + _PAIR * others**2 / 2
        by_blas = self.blas_cost * self.narrow * np.maximum(_PANEL, self.narrow * self.n_packed)
        return np.asarray((by_blas < by_level) & (self.n_packed > 0))

    def work(self, nodes: slice) -> tuple[Any, ...]:
        """What one thread needs for these nodes."""
        n, width, n_packed = (
            int(each[nodes].max()) for each in (self.n_predictors, self.width, self.n_packed)
        )
        common = (
            np.empty(_BLOCK, dtype=np.int64),
            np.empty(_BLOCK),
            np.empty(_BLOCK),
            tuple(np.empty((6, n), dtype=np.int64)),
            np.empty((n, _BLOCK), dtype=np.int64),
            np.empty((n, _BLOCK)),
            np.empty((width, _BLOCK)),
            np.empty((n_packed, _BLOCK)),
        )
        return common, self._by_level(nodes), self._by_blas(nodes)

    def _by_level(self, nodes: slice) -> tuple[Floats, ...]:
        here, some = ~self.by_blas[nodes], _BLOCK // 2
        n_packed = self.n_packed[nodes][here]
        outer = self.n_numbers[nodes][here] * n_packed
        sums = self.n_columns[nodes][here] * outer
        return tuple(np.empty(_most(each)) for each in (some * n_packed, some * outer, sums))

    def _by_blas(self, nodes: slice) -> tuple[Floats, ...]:
        here = self.by_blas[nodes]
        narrow, n_packed = self.narrow[nodes][here], self.n_packed[nodes][here]
        n = _most(narrow)
        return (
            np.empty((n, _BLOCK)),
            np.zeros((_PANEL, _BLOCK)),  # no rows that are left over may be other than finite
            np.empty((n, _PANEL)),
            np.empty(_most(narrow**2 * n_packed)),
        )


def _most(sizes: Ints) -> int:
    return int(sizes.max(initial=0))


def _count_between(marked: NDArray[np.bool_], first: Ints, last: Ints) -> Ints:
    """How many are marked in each of the ranges first:last."""
    before = np.zeros(len(marked) + 1, dtype=np.int64)
    marked.cumsum(out=before[1:])
    return np.asarray(before[last] - before[first])


def _row_parts(n_rows: int, work: int, sums: int, stride: int) -> list[tuple[int, int]]:
    """Row ranges that get sums of their own: by work and memory, never by threads."""
    enough = n_rows // (_ROWS_OF_A_PART * stride)
    return _cut(n_rows, max(1, min(work // 4_000_000, 2**23 // max(sums, 1), enough, 8)), stride)


def _cut(n_rows: int, n_parts: int, stride: int) -> list[tuple[int, int]]:
    """Ranges of about as many rows, which begin at multiples of the stride."""
    step = -(-n_rows // (n_parts * stride)) * stride
    return [(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]


def _shares(work: NDArray[np.int64], n_shares: int) -> list[tuple[int, int]]:
    """Consecutive nodes in at most `n_shares` ranges of about equal work."""
    if n_shares == 1:
        return [(0, len(work))]
    done = np.cumsum(work)
    cuts = np.searchsorted(done, done[-1] * np.arange(1, n_shares) / n_shares)
    edges = np.unique(np.concatenate([[0], cuts, [len(work)]]))
    return [(int(a), int(b)) for a, b in zip(edges[:-1], edges[1:], strict=True)]
