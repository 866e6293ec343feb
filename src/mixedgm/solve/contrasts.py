"""Theta and its curvature -> the directions that matter, and back.

Adding a constant over the levels of a column to a bias, a category shift or an interaction
changes no probability that the biases could not change as well, and the penalty drives such sums
to zero.  So a Newton step needs only contrasts: every level axis is written in an orthonormal
basis of the vectors that sum to zero, L coordinates become L - 1, and norms stay what they are.
What is left is a smaller problem on a layout of its own, without directions of zero curvature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.moderation import level_basis
from mixedgm.objective.contract import Curvature, Smooth, SoftmaxNode
from mixedgm.rows.contract import SoftmaxCurvature

_BATCH = 2**18


@dataclass(frozen=True, eq=False)
class Runs:
    """Stretches of consecutive theta positions within the conditional of every node.

    A continuous node's bias, its diagonal, a categorical node's biases, and every edge group are
    one run each; node v has the runs ``ptr[v]:ptr[v + 1]``.
    """

    ptr: Ints
    wide: Ints
    """Length in theta."""
    narrow: Ints
    """Length among contrasts."""
    position: Ints
    """Where the run begins among contrasts."""
    local: Ints
    """Where the run begins within its node, among contrasts."""
    group: Ints
    """Edge group, or -1 for a node's own terms."""
    node: Ints


_PredictorRuns = tuple[Ints, Ints, Ints, Ints, Ints, NDArray[np.bool_]]
"""(ptr, local, columns, contrasts, basis, own_first)"""


@dataclass(frozen=True, eq=False)
class Contrasts:
    """The change of coordinates for one layout."""

    layout: Layout

    @cached_property
    def reduced(self) -> Layout:
        """The layout of the contrasts: one level fewer everywhere."""
        layout = self.layout
        return replace(layout, n_levels=tuple(n - 1 for n in layout.n_levels))

    # -- vectors -----------------------------------------------------------------------------------

    @cached_property
    def _shapes(self) -> list[tuple[Ints, Ints, Floats]]:
        """Per shape of block: positions in theta, positions among contrasts, the basis."""
        full, small, p = self.layout, self.reduced, self.layout.n_cont
        out = []
        levels = np.array(full.n_levels, dtype=np.int64)
        for n in sorted(set(full.n_levels)):
            basis = level_basis(n)
            nodes = p + np.flatnonzero(levels == n)
            wide = (p + full.column_start[nodes])[:, None] + np.arange(n)
            narrow = (p + small.column_start[nodes])[:, None] + np.arange(n - 1)
            out.append((wide, narrow, basis))
        widths = full.width[full.pairs[full.block_group]]
        code = widths[:, 0] * (full.width.max(initial=1) + 1) + widths[:, 1]
        for key in np.unique(code):
            blocks = np.flatnonzero(code == key)
            u, v = widths[blocks[0]]
            basis = _edge_basis(int(u), int(v))
            wide = full.block_start[blocks][:, None] + np.arange(basis.shape[0])
            narrow = small.block_start[blocks][:, None] + np.arange(basis.shape[1])
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

    # -- curvature ---------------------------------------------------------------------------------

    @cached_property
    def runs(self) -> Runs:
        """The runs of every node, in the order of ``Layout.conditional``."""
        full, small, p = self.layout, self.reduced, self.layout.n_cont
        groups, before = self._groups_of_nodes
        nodes = np.arange(full.n_nodes)
        n_own, n_edges = np.where(nodes < p, 2, 1), np.diff(before)
        ptr = np.concatenate([[0], np.cumsum(n_own + n_edges)]).astype(np.int64)
        n_runs = int(ptr[-1])
        node = np.repeat(nodes, n_own + n_edges)
        group = np.full(n_runs, -1)
        is_edge = np.arange(n_runs) - ptr[node] >= n_own[node]
        group[is_edge] = groups
        wide, narrow, position = (np.ones(n_runs, dtype=np.int64) for _ in range(3))
        own = ~is_edge & (node >= p)
        wide[own], narrow[own] = full.width[node[own]], small.width[node[own]]
        position[own] = p + small.column_start[node[own]]
        position[ptr[:p]], position[ptr[:p] + 1] = nodes[:p], p + nodes[:p]
        wide[is_edge], narrow[is_edge] = full.sizes[groups], small.sizes[groups]
        position[is_edge] = small.starts[groups]
        before = np.concatenate([[0], np.cumsum(narrow)])
        local = before[:-1] - before[ptr[:-1]][node]
        return Runs(ptr, wide, narrow, position, local, group, node)

    @property
    def _groups_of_nodes(self) -> tuple[Ints, Ints]:
        """Groups in the conditional of every node, and how many there are before each node."""
        incidence = self.layout.incidence
        if not self.layout.n_features:
            return incidence.group, incidence.target_ptr
        # A deviation with several features is a run of several blocks.
        leads = incidence.feature == self.layout.first_feature[incidence.group]
        before = np.concatenate([[0], np.cumsum(leads)])
        return incidence.group[leads], before[incidence.target_ptr]

    @cached_property
    def blocks(self) -> tuple[Ints, Ints, Ints, Ints]:
        """(start, size, touch_node, touch_at) of every block of contrasts.

        Blocks are every continuous bias and diagonal, every categorical node's biases, and every
        edge group.  Each touches one or two nodes, and begins at touch_at within them.
        """
        layout, runs = self.reduced, self.runs
        p = layout.n_cont
        start = np.concatenate(
            [np.arange(2 * p), p + layout.column_start[p:-1], layout.starts[:-1]]
        )
        size = np.concatenate([np.ones(2 * p, dtype=np.int64), layout.width[p:], layout.sizes])
        block, side = self.block_of_run
        touch_node = np.full((len(start), 2), -1)
        touch_at = np.zeros((len(start), 2), dtype=np.int64)
        touch_node[block, side], touch_at[block, side] = runs.node, runs.local
        return start, size, touch_node, touch_at

    @cached_property
    def block_of_run(self) -> tuple[Ints, Ints]:
        """The block of every run, and whether its node is the edge's second end."""
        layout, runs = self.layout, self.runs
        p, edge = layout.n_cont, runs.group >= 0
        block = np.where(runs.node < p, runs.node, p + runs.node)
        block[runs.ptr[:p] + 1] += p
        block[edge] = p + layout.n_nodes + runs.group[edge]
        side = np.zeros(len(block), dtype=np.int64)
        side[edge] = layout.pairs[runs.group[edge], 1] == runs.node[edge]
        return block, side

    @cached_property
    def columns(self) -> Floats:
        """(d, d') the change of design columns that makes the contrasts: x as it is, levels not."""
        bases = [level_basis(n) for n in self.layout.n_levels]
        return np.asarray(block_diag(np.eye(self.layout.n_cont), *bases), dtype=np.float64)

    def whole_curvature(self, smooth: Smooth, theta: Floats, stride: int) -> Floats:
        """Second derivative in the contrasts as one matrix, for functions not by nodes."""
        curvature = smooth.curvature(theta, stride)
        assert not isinstance(curvature, Curvature)
        return curvature.on(self.reduced, self.columns)

    def curvature(self, smooth: Smooth, theta: Floats, stride: int) -> tuple[Ints, Ints, Floats]:
        """Second derivative in the contrasts: (size of every node, start, matrices in a row).

        Nodes are taken a few at a time, so that their much larger matrices in theta's own
        coordinates never stand in memory all together.
        """
        runs = self.runs
        size = np.add.reduceat(runs.narrow, runs.ptr[:-1])
        start = np.concatenate([[0], np.cumsum(size**2)]).astype(np.int64)
        out = np.zeros(int(start[-1]))
        wide_size = np.add.reduceat(runs.wide, runs.ptr[:-1])
        for a, b in _batches(wide_size**2):
            curvature = smooth.curvature(theta, stride, np.arange(a, b))
            assert isinstance(curvature, Curvature)
            self._project(curvature, a, start, out)
        return size, start, out

    def _project(self, curvature: Curvature, first: int, start: Ints, out: Floats) -> None:
        """Write the curvature of the nodes from `first` on to their places in `out`."""
        from mixedgm.solve.contrast_kernels import project

        p, (table, bases) = self.layout.n_cont, self._predictors
        width = self.layout.width[first : first + len(curvature.nodes)]
        m = np.maximum(1, width - 1)
        plain: list[int] = []
        softmax: list[int] = []
        for k, node in enumerate(curvature.nodes):
            if first + k >= p and width[k] == 1:
                continue  # it does not vary, so it has no contrasts
            (softmax if isinstance(node, SoftmaxNode) else plain).append(k)
        if plain:
            parts = [
                _packed(curvature.nodes[k].matrix, 1 if first + k < p else int(width[k]))
                for k in plain
            ]
            ends = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
            at = first + np.array(plain)
            project(np.concatenate(parts), ends, 1.0, at, m[plain], table, bases, start, out)
        if softmax:
            some = [node for node in curvature.nodes if isinstance(node, SoftmaxNode)]
            sums = some[0].sums
            places = np.array([node.at for node in some if sums.n_levels[node.at] > 1])
            begin, at = sums.start[places], first + np.array(softmax)
            packed = _own_contrasts(sums)
            project(packed, begin, sums.scale, at, m[softmax], table, bases, start, out)

    @cached_property
    def _predictors(self) -> tuple[_PredictorRuns, Floats]:
        """What `project` needs: (runs, bases).

        A deviation with several features is a run for each of them here.
        """
        full, runs = self.layout, self.runs
        times = np.where(runs.group >= 0, full.n_blocks[runs.group], 1) if full.n_groups else 1
        times = np.broadcast_to(times, runs.group.shape)
        of = np.repeat(np.arange(len(times)), times)
        before = np.concatenate([[0], np.cumsum(times)])
        width = full.width[runs.node[of]]
        narrow = (runs.narrow // times)[of]
        local = runs.local[of] + (np.arange(len(of)) - before[of]) * narrow
        columns, contrasts = (runs.wide // times)[of] // width, narrow // np.maximum(1, width - 1)
        group = runs.group[of]
        edge = group >= 0
        own_first = np.zeros(len(edge), dtype=bool)
        own_first[edge] = full.pairs[group[edge], 0] == runs.node[of][edge]
        most = int(full.width.max(initial=1))
        tables: list[Floats] = [np.ones(1)]  # of a number
        plain, end = np.zeros(most + 1, dtype=np.int64), 1
        for n in sorted(set(full.n_levels) - {1}):
            plain[n] = end
            tables.append(level_basis(n).ravel())
            end += tables[-1].size
        table = (before[runs.ptr], local, columns, contrasts, plain[columns], own_first)
        return table, np.concatenate(tables)


def _own_contrasts(sums: SoftmaxCurvature) -> Floats:
    """The sums with the triangle over a node's own levels turned into one over its contrasts."""
    out = np.empty(len(sums.sums))
    cuts = [0, *(np.flatnonzero(np.diff(sums.n_levels)) + 1).tolist(), len(sums)]
    for a, b in zip(cuts[:-1], cuts[1:], strict=True):  # nodes with as many levels
        if sums.n_levels[a] == 1:
            continue
        turn = _triangle(int(sums.n_levels[a]))
        part = slice(int(sums.start[a]), int(sums.start[b]))
        np.matmul(
            sums.sums[part].reshape(-1, len(turn)), turn, out=out[part].reshape(-1, len(turn))
        )
    return out


@cache
def _triangle(n_levels: int) -> Floats:
    """The matrix that takes the packed N, over levels 1 to L - 1, to the packed V'NV.

    V is the basis against level 0, which the sums leave out: rows of diag(p) - p p' sum to zero.
    """
    basis = level_basis(n_levels)
    v = basis[1:] - basis[0]
    k, other = np.tril_indices(n_levels - 1)
    out = v[k][:, k] * v[other][:, other]
    twice = k != other
    out[twice] += (v[other][:, k] * v[k][:, other])[twice]
    return np.ascontiguousarray(out)


def _packed(matrix: Floats, width: int) -> Floats:
    """The matrix of a node, of which only what `project` reads is kept, in its order."""
    if width == 1:
        return matrix.ravel()
    k, m = np.tril_indices(width - 1)
    columns = len(matrix) // width
    by_level = matrix.reshape(columns, width, columns, width)
    packed = by_level[:, k + 1, :, m + 1].transpose(1, 2, 0)
    return np.asarray(packed @ _triangle(width)).ravel()


def _batches(sizes: Ints) -> list[tuple[int, int]]:
    """Consecutive nodes whose sizes add up to about `_BATCH` at most."""
    number = np.cumsum(sizes) // _BATCH
    cuts = np.flatnonzero(np.diff(number)) + 1
    edges = [0, *cuts.tolist(), len(sizes)]
    return list(zip(edges[:-1], edges[1:], strict=True))


@cache
def _edge_basis(outer: int, inner: int) -> Floats:
    """The same for an edge between nodes of these widths; one of width 1 is continuous."""
    ends = [np.ones((1, 1)) if n == 1 else level_basis(n) for n in (outer, inner)]
    return np.asarray(np.kron(*ends), dtype=np.float64)
