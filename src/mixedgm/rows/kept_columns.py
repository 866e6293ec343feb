"""Nodes -> the design columns that are multiplied: all but first levels, which follow from others.

The levels of a column sum to one: products with its first level follow from those with the others
and from sums, and so do those of its first probability.  With three levels that leaves less than
half of all products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.compiled import kernel
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
def fill_products(product, targets, units, sums, total, out):  # type: ignore[no-untyped-def]
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
