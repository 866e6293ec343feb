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
_TILES = 48
"""So many that sixteen cores have about the same number each."""


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
        return cls(design, turned, nodes, whole)

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

    def products(
        self, expected: Floats, total: float, n_threads: int, before: ProductsByColumn | None = None
    ) -> ProductsByColumn:
        """Multiply E with all design columns.

        `expected` holds those columns of E that are kept, columns by rows.  What nodes had
        `before` is taken over where their E has not changed beyond rounding: those without edges
        keep theirs along a path.
        """
        start, kept = self.kept.targets
        out = np.empty((int(start[-1]), self.nodes.n_columns))
        is_new = np.ones(len(kept) - 1, dtype=bool)
        if before is not None:
            run_all(
                [
                    partial(
                        _take_same,
                        (before.expected, expected, kept),
                        (before.by_column, out, start),
                        run,
                        is_new,
                    )
                    for run in _runs(kept, _SMALLEST_TILE)
                ],
                n_threads,
            )
        nodes = np.flatnonzero(is_new)
        if len(nodes):
            self._multiply(expected, nodes, total, n_threads, out)
        return ProductsByColumn(expected, out)

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

        run_all([partial(gather, *run) for run in _runs(at, _SMALLEST_TILE)], n_threads)
        run_all([partial(tile, *one) for one in self._tiles(at)], n_threads)


@dataclass(frozen=True, eq=False)
class ProductsByColumn:
    """What a pass expected, and the products of that with all design columns."""

    expected: Floats
    """(expected columns that are kept, n)."""
    by_column: Floats
    """(discrete design columns, d) sums of E z' over the rows, divided by their weight."""


def _runs(start: Ints, size: int) -> Iterator[tuple[int, int]]:
    """Runs of nodes that have at most so many columns together, if one node has not more."""
    first, last = 0, len(start) - 1
    while first < last:
        end = max(first + 1, int(np.searchsorted(start, start[first] + size, "right")) - 1)
        yield first, min(end, last)
        first = min(end, last)


# -- kernels ---------------------------------------------------------------------------------------


@kernel
def _take_same(expected, products, nodes, is_new):  # type: ignore[no-untyped-def]
    """Take over the products of nodes whose expected columns differ by no more than rounding.

    expected = (before, now, first column of every node); products likewise; nodes = (first, end).
    """
    (before, now, kept), (source, out, start) = expected, products
    for j in range(nodes[0], nodes[1]):
        is_new[j] = False
        for k in range(kept[j], kept[j + 1]):
            for i in range(before.shape[1]):
                if not abs(now[k, i] - before[k, i]) <= 2e-15 * abs(before[k, i]):
                    is_new[j] = True
                    break
            if is_new[j]:
                break
        if not is_new[j]:
            for k in range(start[j], start[j + 1]):
                for i in range(out.shape[1]):
                    out[k, i] = source[k, i]
