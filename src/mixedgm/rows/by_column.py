"""Nodes and rows -> the design columns that are multiplied, and products with few rows.

The levels of a column sum to one: products with its first level follow from those with the others
and from sums, and so do those of its first probability.  With three levels that leaves less than
half of all products.

Few rows of many columns -> the same columns by rows, and products with all of them in tiles.

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

from mixedgm.base.compiled import kernel
from mixedgm.base.threads import run_all
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes


@dataclass(frozen=True, eq=False)
class KeptColumns:
    """Places of the columns that are kept, among all design columns and among discrete ones."""

    nodes: Nodes

    @cached_property
    def targets(self) -> tuple[Ints, Ints]:
        """First design column of every discrete node, counted from the first; first kept one."""
        nodes = self.nodes
        start = nodes.column_start[nodes.n_gaussian :] - nodes.column_start[nodes.n_gaussian]
        kept = np.diff(start) - (np.arange(len(start) - 1) >= nodes.first_indicator)
        return start, np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)

    @cached_property
    def units(self) -> tuple[Ints, Ints]:
        """First design column of every number and of every node with indicators; first kept one."""
        nodes = self.nodes
        widths = nodes.width[nodes.discrete][nodes.first_indicator :]
        ones = np.ones(nodes.n_numeric, dtype=np.int64)
        start = np.concatenate([[0], np.cumsum(np.concatenate([ones, widths]))])
        kept = np.concatenate([[0], np.cumsum(np.concatenate([ones, widths - 1]))])
        return start.astype(np.int64), kept.astype(np.int64)

    @cached_property
    def place(self) -> Ints:
        """(discrete design columns,) where each is among those that are kept; -1: it follows.

        Examples
        --------
        >>> KeptColumns(Nodes.mixed(1, (3, 2))).place.tolist()
        [-1, 0, 1, -1, 2]
        """
        start, _ = self.targets
        keeps = np.ones(int(start[-1]), dtype=bool)
        keeps[start[self.nodes.first_indicator : -1]] = False
        return np.where(keeps, np.cumsum(keeps) - 1, -1)

    @cached_property
    def column_place(self) -> Ints:
        """(d,) place of each design column among all that are kept; -1: it follows."""
        first = self.nodes.n_gaussian
        return np.concatenate([np.arange(first), np.where(self.place < 0, -1, first + self.place)])

    @property
    def n_targets(self) -> int:
        """Number of discrete design columns that are kept."""
        return int(self.targets[1][-1])

    @property
    def n_columns(self) -> int:
        """Number of design columns that are kept."""
        return int(self.units[1][-1])

    def spread(self, kept: Floats, total: float | Floats) -> Floats:
        """Sums of kept discrete columns -> of all; the levels of a column add up to `total`.

        Columns run along the last axis.

        Examples
        --------
        >>> KeptColumns(Nodes.mixed(1, (3, 2))).spread(np.array([0.25, 0.5, 0.125]), 1.0)
        array([0.25 , 0.25 , 0.5  , 0.875, 0.125])
        """
        kept_at, first_at, run_start, is_empty = self._levels
        out = np.empty((*kept.shape[:-1], len(self.place)))
        out[..., kept_at] = kept
        if len(first_at):
            # One more at the end, so that there is something after a last node of one level.
            longer = np.concatenate([kept, np.zeros((*kept.shape[:-1], 1))], axis=-1)
            others = np.add.reduceat(longer, run_start, axis=-1)[..., : len(first_at)]
            others[..., is_empty] = 0.0
            out[..., first_at] = np.asarray(total)[..., None] - others
        return out

    @cached_property
    def _levels(self) -> tuple[Ints, Ints, Ints, NDArray[np.bool_]]:
        """Kept columns; first levels; where their others begin, and the end; which have none."""
        (start, ends), first = self.targets, self.nodes.first_indicator
        kept_at = np.flatnonzero(self.place >= 0)
        return kept_at, start[first:-1], ends[first:], np.diff(ends[first:]) == 0

    def products(self, kept: Floats, means: Floats) -> Floats:
        """Means of E z' of kept columns and a last one of ones -> of all columns, (..., q, d).

        `means` are those of z, (..., d).
        """
        (start, at), (unit_start, unit_kept) = self.targets, self.units
        out = np.empty((len(kept), int(start[-1]), self.nodes.n_columns))
        nodes, n_units = np.arange(len(start) - 1), len(unit_start) - 1
        for product, of_z, to in zip(kept, means, out, strict=True):
            fill_products(
                product,
                (start, at, nodes, (0, len(nodes))),
                (unit_start, unit_kept, (0, n_units)),
                (np.ascontiguousarray(product[:, -1]), of_z),
                1.0,
                to,
            )
        return out


# -- kernels ---------------------------------------------------------------------------------------


@kernel
def fill_products(product, targets, units, sums, total, out):
    """Products of E with kept columns -> those with all columns of some nodes, divided by total.

    targets = (first column of every node, where those of some nodes begin in the products, these
    nodes, (first of them, end)); units = (first column, first kept one, (first, end)) of what z is
    made of: numbers, and columns of indicators.  A node or unit with one kept column less
    than columns has levels, of which the first follows from the sums of E over all rows or, for the
    first level of a target, from those of z.  sums = (of kept columns of E, of z).
    """
    (start, place, nodes, some), (unit_start, unit_kept, run) = targets, units
    of_e, of_z = sums
    first, last = unit_start[run[0]], unit_start[run[1]]
    for i in range(some[0], some[1]):
        j, n_kept = nodes[i], place[i + 1] - place[i]
        n_columns = start[j + 1] - start[j]
        for k in range(n_kept):
            source = product[place[i] - place[some[0]] + k]
            row = out[start[j] + n_columns - n_kept + k]
            for u in range(run[0], run[1]):
                at, to, width = unit_kept[u] - unit_kept[run[0]], unit_start[u], unit_start[u + 1]
                width -= to
                if width == unit_kept[u + 1] - unit_kept[u]:
                    for a in range(width):
                        row[to + a] = source[at + a] / total
                else:
                    rest = of_e[place[i] + k]
                    for a in range(1, width):
                        rest -= source[at + a - 1]
                        row[to + a] = source[at + a - 1] / total
                    row[to] = rest / total
        if n_kept < n_columns:
            row = out[start[j]]
            for a in range(first, last):
                row[a] = of_z[a] / total
            for k in range(1, n_columns):
                other = out[start[j] + k]
                for a in range(first, last):
                    row[a] -= other[a]


# -- rows by columns -------------------------------------------------------------------------------

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
def _fill_same(expected, sums, start, nodes, varies, out):
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
