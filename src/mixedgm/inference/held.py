"""A layout and a graph in it -> what follows when a pair outside the graph is estimated.

Of everything that is held, the own terms of all columns and the edges of the graph, a pair shares
curvature with what its two conditionals have: their own terms and their edges.  So what belongs to
a pair is a short list of held parameters, which differs from pair to pair, and matrices over held
parameters are needed on such lists only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout

_PAD = 8
"""Lists of held parameters are filled up to multiples of this length, to be handled together."""
_CELLS = 2**22


class HeldConditional(NamedTuple):
    """What is held of the conditional of one node."""

    own: Ints
    """Positions of its own terms among all that is held."""
    edges: Ints
    """Positions of the coefficients of its edges."""
    predictor: Ints
    """The column that each of these multiplies, products with features included."""
    target: Ints
    """The design column, counted within the node, that each of these predicts."""

    def __len__(self) -> int:
        return len(self.own) + len(self.edges)


class PairPart(NamedTuple):
    """Groups of the same size outside the graph."""

    groups: Ints
    """Among all of the layout."""
    size: int
    """Number of parameters of each."""
    most: int
    """Of what is held beside them."""
    before: int
    """Sum of the squared sizes of all groups in earlier parts."""


class Batch(NamedTuple):
    """Groups of the same size outside the graph, and lists of what is held beside them."""

    groups: Ints
    """(G,) among all of the layout."""
    params: Ints
    """(G, k) their parameters, among those of all edges."""
    held: Ints
    """(G, K) positions; the number of all that is held where a list is shorter."""
    entries: Ints
    """(G, k, K) where sums for each parameter and held one stand; -1 where a list is shorter."""

    def quadratic(self, matrix: Floats, left: Floats, right: Floats) -> Floats:
        """(G, k, k) left M right' for a matrix M over all that is held.

        Where lists are shorter, `left` and `right` (G, k, K) are zero.
        """
        at = np.minimum(self.held, len(matrix) - 1)
        matrix = matrix[at[:, :, None], at[:, None, :]]
        return np.asarray(left @ matrix @ right.transpose(0, 2, 1))

    def taken(self, sums: Floats) -> Floats:
        """(G, k, K) the sums that belong here; zero where a list is shorter."""
        return np.where(self.entries >= 0, sums[self.entries], 0.0)


@dataclass(frozen=True, eq=False)
class Held:
    """Own terms and a graph.

    Parameters
    ----------
    layout : Layout
        Of all pairs, in contrasts.
    graph : ndarray of int
        Its groups, sorted.
    """

    layout: Layout
    graph: Ints

    @cached_property
    def inside(self) -> Layout:
        """The layout of what is held."""
        return self.layout.restrict(self.graph)

    @property
    def size(self) -> int:
        """Number of held parameters."""
        return self.inside.n_theta

    @cached_property
    def others(self) -> Ints:
        """Groups outside the graph."""
        return np.setdiff1d(np.arange(self.layout.n_groups), self.graph)

    @cached_property
    def conditionals(self) -> list[HeldConditional]:
        """Of every node; covariates have none."""
        layout, inside = self.layout, self.inside
        row, column = inside.edge_position
        position = inside.n_node_terms + np.arange(len(row))
        target, predictor = column, row
        if not layout.nodewise:
            within = row % layout.n_columns
            target = np.concatenate([column, within])
            predictor = np.concatenate([row, row - within + column])
            position = np.concatenate([position, position])
        node = layout.column_node[target]
        order = np.argsort(node, kind="stable")
        ends = np.searchsorted(node[order], np.arange(layout.n_nodes + 1))
        out = []
        for v in range(layout.n_nodes):
            at = order[ends[v] : ends[v + 1]] if layout.is_target[v] else order[:0]
            own = inside.node_terms_of(v) if layout.is_target[v] else order[:0]
            first = int(layout.column_start[v])
            out.append(HeldConditional(own, position[at], predictor[at], target[at] - first))
        return out

    @cached_property
    def targets(self) -> list[int]:
        """Nodes with a conditional that is in a pair outside the graph."""
        nodes = np.unique(self.layout.pairs[self.others])
        return [v for v in nodes.tolist() if len(self.conditionals[v])]

    @cached_property
    def predictors(self) -> list[Ints]:
        """Of every node, the design columns of those it has a pair with outside the graph."""
        layout = self.layout
        apart = np.zeros((layout.n_nodes, layout.n_nodes), dtype=bool)
        u, v = layout.pairs[self.others].T
        apart[u, v] = apart[v, u] = True
        return [np.flatnonzero(mask[layout.column_node]) for mask in apart]

    @cached_property
    def n_predictors(self) -> int:
        """Columns that can be predictors: design columns, and their products with features."""
        layout = self.layout
        return layout.n_columns * (1 + sum(layout.n_features))

    @cached_property
    def lengths(self) -> Ints:
        """(nodes,) how much is held of every conditional."""
        return np.array([len(each) for each in self.conditionals], dtype=np.int64)

    @cached_property
    def sum_start(self) -> Ints:
        """(nodes + 1,) where sums for all predictors, columns of a node and held ones begin."""
        sizes = self.n_predictors * self.layout.width * self.lengths
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def _lists(self) -> tuple[Ints, Ints]:
        """Positions of what is held of every conditional, one list after the other; starts."""
        lists = [np.concatenate([each.own, each.edges]) for each in self.conditionals]
        starts = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        return np.concatenate([*lists, np.zeros(1, dtype=np.int64)]).astype(np.int64), starts

    @cached_property
    def parts(self) -> list[PairPart]:
        """All groups outside the graph that have parameters, cut so that batches stay small."""
        layout, others = self.layout, self.others
        first, second = layout.pairs[others].T
        length = self.lengths[second] + (0 if layout.nodewise else self.lengths[first])
        size, room = layout.sizes[others], -(-np.maximum(length, 1) // _PAD) * _PAD
        keys, kind = np.unique(np.column_stack([size, room]), axis=0, return_inverse=True)
        out, before = [], 0
        for number, (k, most) in enumerate(keys.tolist()):
            of_kind = others[kind.ravel() == number]
            step = max(1, _CELLS // (most * max(most, k)))
            for at in range(0, len(of_kind) if k else 0, step):
                groups = of_kind[at : at + step]
                out.append(PairPart(groups, k, most, before))
                before += len(groups) * k * k
        return out

    def batches(self) -> Iterator[Batch]:
        """The parts, one after the other."""
        return map(self.batch, self.parts)

    def batch(self, part: PairPart) -> Batch:
        """A part with its lists."""
        groups, k, most, _ = part
        layout, (positions, starts) = self.layout, self._lists
        row, column = layout.edge_position
        params = (layout.starts[groups] - layout.n_node_terms)[:, None] + np.arange(k)
        u, v = layout.pairs[groups].T
        in_u = np.zeros_like(u) if layout.nodewise else self.lengths[u]
        j = np.arange(most)
        of_u, of_v = j < in_u[:, None], j < (in_u + self.lengths[v])[:, None]
        place = np.where(of_u, starts[u][:, None] + j, starts[v][:, None] + j - in_u[:, None])
        held = np.where(of_v, positions[np.minimum(place, len(positions) - 1)], self.size)
        r, b = row[params], column[params]
        a = r % layout.n_columns
        s = r - a + b
        by_u = self._entry(u, s, a)[:, :, None] + j
        by_v = self._entry(v, r, b)[:, :, None] + j - in_u[:, None, None]
        entries = np.where(of_u[:, None, :], by_u, np.where(of_v[:, None, :], by_v, -1))
        return Batch(groups, params, held, entries)

    def _entry(self, node: Ints, predictor: Ints, column: Ints) -> Ints:
        """Where the sums of a predictor and a column of the node with what is held begin."""
        start, width, length = (
            each[node][:, None] for each in (self.sum_start, self.layout.width, self.lengths)
        )
        local = column - self.layout.column_start[node][:, None]
        return np.asarray(start + (predictor * width + local) * length)


def by_size(layout: Layout) -> Iterator[tuple[Ints, Ints]]:
    """Groups of each size, and (m, k) where their parameters stand among edges."""
    first = layout.starts[:-1] - layout.n_node_terms
    for k in np.unique(layout.sizes[layout.sizes > 0]).tolist():
        groups = np.flatnonzero(layout.sizes == k)
        yield groups, first[groups][:, None] + np.arange(k)


def square_starts(layout: Layout) -> Ints:
    """(n_groups + 1,) where the square matrix of every group begins, one after the other."""
    return np.concatenate([[0], np.cumsum(layout.sizes**2)]).astype(np.int64)
