"""Few rows of many columns -> the same columns by rows, and products with all of them in tiles.

Where a table has far more pairs of columns than rows, chunks of rows are too few for many cores.
Passes over it are cut by columns, too: predictors node by node, products tile by tile.  What a
piece adds up depends on the shape of the table only, so that results are the same for any number
of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from mixedgm.compiled import kernel
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.kept_columns import KeptColumns, fill_products
from mixedgm.threads import run_all

_LARGEST_TILE = 512
_SMALLEST_TILE = 64
_PART = 64
"""Columns of E that a thread looks at."""
_TILES = 48
"""Fewest tiles to aim at: sixteen cores then have about the same number each."""


@dataclass(frozen=True, eq=False)
class RowsByColumn:
    """The rows of a table, columns by rows."""

    design: Floats
    """(kept design columns, n): numbers, then indicators of all levels but the first."""
    codes: Ints
    """(q, n) values of the discrete nodes."""
    nodes: Nodes
    sums: Floats
    """(d,) weighted sums of all design columns."""
    weights: Floats
    """(n,) weights of the rows; empty where all are one."""

    @classmethod
    def of(
        cls,
        numbers: Floats,
        codes: NDArray[np.integer],
        nodes: Nodes,
        weights: Floats | None = None,
    ) -> RowsByColumn:
        """Turn the rows.

        Examples
        --------
        >>> codes = np.array([[0], [2], [1]], dtype=np.uint8)
        >>> RowsByColumn.of(np.zeros((3, 0)), codes, Nodes.mixed(0, (3,))).design.tolist()
        [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
        """
        turned = np.ascontiguousarray(codes.T, dtype=np.int64)
        p, first, widths = nodes.n_numeric, nodes.first_indicator, nodes.width[nodes.discrete]
        kept = widths[first:] - 1
        design = np.empty((p + int(kept.sum()), len(codes)))
        design[:p] = numbers.T
        level = np.arange(1, 1 + kept.max(initial=0))[:, None]
        at = p
        for code, count in zip(turned[first:], kept.tolist(), strict=True):
            np.equal(code, level[:count], out=design[at : at + count], casting="unsafe")
            at += count
        sums = design.sum(axis=1) if weights is None else design @ weights
        total = float(len(codes)) if weights is None else float(weights.sum())
        ends = p + np.cumsum(kept)
        whole = np.empty(nodes.n_columns)
        whole[:p] = sums[:p]
        spans = zip(nodes.column_start[nodes.discrete][first:], ends - kept, ends, strict=True)
        for start, a, b in spans:
            whole[start] = total - sums[a:b].sum()
            whole[start + 1 : start + 1 + b - a] = sums[a:b]
        return cls(design, turned, nodes, whole, np.zeros(0) if weights is None else weights)

    @property
    def numbers(self) -> Floats:
        """(numbers, n) design columns that are numbers."""
        return self.design[: self.nodes.n_numeric]

    @cached_property
    def kept(self) -> KeptColumns:
        """Which columns of E are multiplied, and with which."""
        return KeptColumns(self.nodes)

    def _tiles(self, kept: Ints) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Runs of targets by runs of columns: as large as leaves enough of them."""
        units, size = self.kept.units[1], _LARGEST_TILE
        while True:
            tiles = [
                (rows, columns) for rows in _runs(kept, size) for columns in _runs(units, 2 * size)
            ]
            if len(tiles) >= _TILES or size <= _SMALLEST_TILE:
                return tiles
            size //= 2

    def products(self, columns: Floats, total: float, n_threads: int) -> Floats:
        """(discrete design columns, d) sums of y z' over the rows, divided by `total`.

        `columns` are those y that are kept, columns by rows, times the weights.
        """
        start, kept = self.kept.targets
        out = np.empty((int(start[-1]), self.nodes.n_columns))
        self._multiply(columns, np.arange(len(kept) - 1), total, n_threads, out)
        return out

    def expected_products(self, expected: Floats, total: float, n_threads: int) -> Floats:
        """(discrete design columns, d) sums of E z' over the rows, divided by `total`.

        Where E is the same in all rows, as for nodes without edges, nothing is multiplied.
        """
        start, kept = self.kept.targets
        out = np.empty((int(start[-1]), self.nodes.n_columns))
        varies = np.ones(len(kept) - 1, dtype=bool)
        known = ((expected, self.weights, kept), (self.sums, total), start)
        parts = [partial(_fill_same, *known, run, varies, out) for run in _runs(kept, _PART)]
        run_all(parts, n_threads)
        self._multiply(expected, np.flatnonzero(varies), total, n_threads, out)
        return out

    def _multiply(
        self, expected: Floats, nodes: Ints, total: float, n_threads: int, out: Floats
    ) -> None:
        """Fill the rows of `out` that belong to these nodes."""
        (start, kept), (unit_start, unit_kept) = self.kept.targets, self.kept.units
        sizes = np.diff(kept)[nodes]
        at = np.concatenate([[0], np.cumsum(sizes)])
        some, sums = expected, np.empty(int(at[-1]))
        if len(nodes) < len(kept) - 1:
            some = np.empty((len(sums), expected.shape[1]))

        def gather(first: int, last: int) -> None:
            rows = slice(int(at[first]), int(at[last]))
            if some is not expected:
                begin = np.repeat(kept[nodes[first:last]] - at[first:last], sizes[first:last])
                some[rows] = expected[begin + np.arange(rows.start, rows.stop)]
            some[rows].sum(axis=1, out=sums[rows])

        def tile(targets: tuple[int, int], units: tuple[int, int]) -> None:
            rows, columns = (
                slice(int(ends[run[0]]), int(ends[run[1]]))
                for ends, run in ((at, targets), (unit_kept, units))
            )
            product = np.empty((rows.stop - rows.start, columns.stop - columns.start))
            np.dot(some[rows], self.design[columns].T, out=product)
            fill_products(
                product,
                (start, at, nodes, targets),
                (unit_start, unit_kept, units),
                (sums, self.sums),
                total,
                out,
            )

        run_all([partial(gather, *run) for run in _runs(at, _PART)], n_threads)
        run_all([partial(tile, *one) for one in self._tiles(at)], n_threads)


def _runs(start: Ints, size: int) -> Iterator[tuple[int, int]]:
    """Runs of nodes that have at most so many columns together, if one node has not more."""
    first, last = 0, len(start) - 1
    while first < last:
        end = max(first + 1, int(np.searchsorted(start, start[first] + size, "right")) - 1)
        yield first, min(end, last)
        first = min(end, last)


# -- kernels ---------------------------------------------------------------------------------------


@kernel
def _fill_same(expected, sums, start, nodes, varies, out):  # type: ignore[no-untyped-def]
    """Products of nodes whose expected columns are the same in all rows, up to rounding.

    expected = (columns by rows, times the weights; the weights, or none; first column of every
    node); sums = (of all design columns, what they are divided by); nodes = (first, end).
    """
    (values, weights, kept), (of_z, total) = expected, sums
    for j in range(nodes[0], nodes[1]):
        varies[j] = False
        for k in range(kept[j], kept[j + 1]):
            for i in range(values.shape[1]):
                same = values[k, 0]
                if weights.shape[0] > 0:
                    same *= weights[i] / weights[0]
                if not abs(values[k, i] - same) <= 2e-15 * abs(same):
                    varies[j] = True
                    break
            if varies[j]:
                break
        if varies[j]:
            continue
        n_columns, n_kept = start[j + 1] - start[j], kept[j + 1] - kept[j]
        first = 1.0
        for k in range(n_kept):
            share = values[kept[j] + k, 0]
            if weights.shape[0] > 0:
                share /= weights[0]
            first -= share
            row = out[start[j + 1] - n_kept + k]
            for a in range(out.shape[1]):
                row[a] = share * of_z[a] / total
        if n_kept < n_columns:
            row = out[start[j]]
            for a in range(out.shape[1]):
                row[a] = first * of_z[a] / total
