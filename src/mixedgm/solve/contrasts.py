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
from mixedgm.objective.contract import Curvature, Smooth
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

    def down(self, theta: Floats) -> Floats:
        """Contrasts of theta (its part that sums to zero over levels)."""
        return self._turned(theta, self.layout, self.reduced)

    def up(self, eta: Floats) -> Floats:
        """Theta with these contrasts."""
        return self._turned(eta, self.reduced, self.layout)

    def _turned(self, values: Floats, one: Layout, other: Layout) -> Floats:
        """Node terms and edges of one layout -> those of the other."""
        from mixedgm.solve.contrast_kernels import turn

        out, p = np.empty(other.n_theta), one.n_cont
        out[: 2 * p] = values[: 2 * p]
        turn(
            values,
            (one.width, one.column_start, one.block_start),
            (other.width, other.column_start, other.block_start),
            (p, one.pairs, one.block_group),
            _bases(self.layout.n_levels),
            np.empty(max(one.n_levels, default=1)),
            out,
        )
        return out

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
            self._project(curvature, start, out)
        return size, start, out

    def _project(self, curvature: Curvature, start: Ints, out: Floats) -> None:
        """Write the curvature of nodes to their places in `out`."""
        from mixedgm.solve.contrast_kernels import project

        table, bases = self._predictors
        cont, sums = curvature.gaussian, curvature.softmax
        if len(cont.nodes):
            own = np.ones_like(cont.nodes)
            project(cont.matrices, cont.start, 1.0, cont.nodes, own, table, bases, start, out)
        if sums is not None:
            varies = np.flatnonzero(sums.n_levels > 1)  # else it has no contrasts
            at, own = curvature.categories[varies], sums.n_levels[varies] - 1
            first = sums.start[varies]
            project(_own_contrasts(sums), first, sums.scale, at, own, table, bases, start, out)

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
        of_width, tables = _bases(full.n_levels)
        return (before[runs.ptr], local, columns, contrasts, of_width[columns], own_first), tables


@cache
def _bases(n_levels: tuple[int, ...]) -> tuple[Ints, Floats]:
    """Where the basis of every number of levels begins in the second array, row by row."""
    of_width, tables = np.zeros(max(n_levels, default=1) + 1, dtype=np.int64), [np.ones(1)]
    for n in sorted(set(n_levels) - {1}):  # 1 is a number, its basis is (1)
        of_width[n] = sum(table.size for table in tables)
        tables.append(level_basis(n).ravel())
    return of_width, np.concatenate(tables)


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


def _batches(sizes: Ints) -> list[tuple[int, int]]:
    """Consecutive nodes whose sizes add up to about `_BATCH` at most."""
    number = np.cumsum(sizes) // _BATCH
    cuts = np.flatnonzero(np.diff(number)) + 1
    edges = [0, *cuts.tolist(), len(sizes)]
    return list(zip(edges[:-1], edges[1:], strict=True))
