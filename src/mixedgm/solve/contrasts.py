"""Theta and its curvature -> the directions that matter, and back.

Adding a constant over the levels of a column to a bias, a category shift or an interaction
changes no probability that the biases could not change as well, and the penalty drives such sums
to zero.  So a Newton step needs only contrasts: every level axis is written in an orthonormal
basis of the vectors that sum to zero, L coordinates become L - 1, and norms stay what they are.
What is left is a smaller problem on a layout of its own, without directions of zero curvature.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import helmert

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.contract import Curvature, NodeCurvature


@dataclass(frozen=True, eq=False)
class Contrasts:
    """The change of coordinates for one layout."""

    layout: Layout

    @cached_property
    def reduced(self) -> Layout:
        """The layout of the contrasts: one level fewer everywhere."""
        layout = self.layout
        return Layout(layout.n_cont, tuple(n - 1 for n in layout.n_levels), layout.pairs)

    @cached_property
    def _bases(self) -> dict[int, Floats]:
        """(L, L - 1) orthonormal columns that sum to zero, by number of levels."""
        return {
            n: helmert(n).T.copy() if n > 1 else np.zeros((1, 0)) for n in set(self.layout.n_levels)
        }

    @cached_property
    def _group_bases(self) -> dict[tuple[int, int], Floats]:
        """Basis of an edge group by the widths of its two nodes (width 1: continuous)."""
        bases = {**self._bases, 1: np.ones((1, 1))}  # a column with one level has no edges
        shapes = np.unique(self.layout.width[self.layout.pairs], axis=0)
        return {(int(u), int(v)): np.kron(bases[int(u)], bases[int(v)]) for u, v in shapes}

    @cached_property
    def _shapes(self) -> list[tuple[Ints, Ints, Floats]]:
        """Per shape of block: positions in theta, positions among contrasts, the basis.

        Biases of nodes with equally many levels, and groups between nodes of equal widths.
        """
        full, small = self.layout, self.reduced
        p = full.n_cont
        out = []
        for n, basis in self._bases.items():
            nodes = [p + j for j, levels in enumerate(full.n_levels) if levels == n]
            wide = np.array([full.node_terms_of(v) for v in nodes])
            narrow = np.array([small.node_terms_of(v) for v in nodes]).reshape(len(nodes), n - 1)
            out.append((wide, narrow, basis))
        widths = full.width[full.pairs]
        for (u, v), basis in self._group_bases.items():
            groups = np.flatnonzero((widths[:, 0] == u) & (widths[:, 1] == v))
            wide = full.starts[groups][:, None] + np.arange(basis.shape[0])
            narrow = small.starts[groups][:, None] + np.arange(basis.shape[1])
            out.append((wide, narrow, basis))
        return out

    def down(self, theta: Floats) -> Floats:
        """Contrasts of theta (its part that sums to zero over levels)."""
        eta = np.empty(self.reduced.n_theta)
        eta[: 2 * self.layout.n_cont] = theta[: 2 * self.layout.n_cont]
        for wide, narrow, basis in self._shapes:
            eta[narrow] = theta[wide] @ basis
        return eta

    def up(self, eta: Floats) -> Floats:
        """Theta with these contrasts."""
        theta = np.empty(self.layout.n_theta)
        theta[: 2 * self.layout.n_cont] = eta[: 2 * self.layout.n_cont]
        for wide, narrow, basis in self._shapes:
            theta[wide] = eta[narrow] @ basis.T
        return theta

    @cached_property
    def _node_maps(self) -> list[tuple[Ints, int, tuple[Ints, ...], Floats]]:
        """Per node: positions among contrasts, number of own terms, its runs, their bases."""
        full, small = self.layout, self.reduced
        maps = []
        for node in range(full.n_nodes):
            own = small.node_terms_of(node)
            groups = np.flatnonzero((full.pairs == node).any(axis=1))
            bases = [np.eye(2) if node < full.n_cont else self._bases[int(full.width[node])]]
            index = [own]
            for g in groups:
                u, v = full.width[full.pairs[g]]
                bases.append(self._group_bases[int(u), int(v)])
                index.append(np.arange(small.starts[g], small.starts[g + 1]))
            rows = np.array([basis.shape[0] for basis in bases], dtype=np.int64)
            columns = np.array([basis.shape[1] for basis in bases], dtype=np.int64)
            starts = tuple(
                np.concatenate([[0], np.cumsum(x)]).astype(np.int64)
                for x in (rows, columns, rows * columns)
            )
            flat = np.concatenate([basis.ravel() for basis in bases])
            maps.append((np.concatenate(index), len(own), starts, flat))
        return maps

    def curvature(self, curvature: Curvature) -> Curvature:
        """Second derivative in the contrasts."""
        from mixedgm.solve.descent import project

        nodes = []
        for node, (index, n_terms, starts, flat) in zip(
            curvature.nodes, self._node_maps, strict=True
        ):
            matrix = np.zeros((len(index), len(index)))
            project(node.matrix, starts, flat, matrix)
            nodes.append(NodeCurvature(index, matrix, n_terms))
        return Curvature(nodes, self.reduced.n_theta)
