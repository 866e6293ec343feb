"""Theta and its curvature -> the directions that matter, and back.

Adding a constant over the levels of a column to its biases or to a block of an edge changes no
probability that the biases could not change as well, and the penalty drives such sums to zero.  So
a Newton step needs only contrasts: every level axis is written in an orthonormal basis of the
vectors that sum to zero, L coordinates become L - 1, and norms stay what they are.  What is left is
a smaller problem on a layout of its own, without directions of zero curvature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from scipy.linalg import block_diag

from mixedgm.base.compiled import inner, kernel
from mixedgm.model.layout import Floats, Ints, Layout, offsets, spans
from mixedgm.model.moderation import level_basis
from mixedgm.objective.contract import Curvature, Smooth
from mixedgm.rows.contract import SoftmaxCurvature

_BATCH = 2**18
_FEW_LEVELS = 24
# Rows and columns of a matrix that are mirrored at once.
_SQUARE = 32


@dataclass(frozen=True, eq=False)
class Runs:
    """Stretches of consecutive contrasts within the conditional of every node.

    Every block of node terms (``Layout.term_blocks``) and every block of an edge is one run; node v
    has the runs ``ptr[v]:ptr[v + 1]``.
    """

    ptr: Ints
    node_size: Ints
    """Contrasts in the conditional of every node."""
    local: Ints
    """Where the run begins within its node."""
    position: Ints
    """Where it begins among all contrasts."""
    length: Ints
    columns: Ints
    """Design columns of the predictor: 1, or its levels; of a scored node itself: its own terms."""
    contrasts: Ints
    """Contrasts of the predictor."""
    own_first: Ints
    """1 where the node's own contrasts are the outer ones."""
    block: Ints
    """Number among `Contrasts.blocks`."""
    side: Ints
    """1 where the node is the edge's second end."""

    @property
    def places(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The runs of every node, their places within it and among all contrasts, and lengths."""
        return self.ptr, self.local, self.position, self.length


@dataclass(frozen=True, eq=False)
class Contrasts:
    """The change of coordinates for one layout."""

    layout: Layout

    @cached_property
    def reduced(self) -> Layout:
        """The layout of the contrasts: one level fewer everywhere."""
        layout = self.layout
        return replace(layout, nodes=layout.nodes.contrasts)

    # -- vectors -----------------------------------------------------------------------------------

    def down(self, theta: Floats) -> Floats:
        """Contrasts of theta (its part that sums to zero over levels)."""
        return self._turned(theta, self.reduced.n_theta, *self._sides)

    def up(self, eta: Floats) -> Floats:
        """Theta with these contrasts."""
        return self._turned(eta, self.layout.n_theta, *self._sides[::-1])

    @cached_property
    def _sides(self) -> tuple[tuple[Ints, ...], tuple[Ints, ...]]:
        """Widths, first terms, numbers of own terms and starts of blocks, and among contrasts."""
        full, small = self.layout, self.reduced
        wide = (full.width, full.first_term, full.nodes.n_biases, full.block_start)
        return wide, (small.width, small.first_term, small.nodes.n_biases, small.block_start)

    def _turned(
        self, values: Floats, size: int, one: tuple[Ints, ...], other: tuple[Ints, ...]
    ) -> Floats:
        """Node terms and edges in one kind of coordinates -> those in the other."""
        out, layout = np.empty(size), self.layout
        out[layout.gaussian_terms] = values[layout.gaussian_terms]
        edges = (layout.n_gaussian, layout.pairs, layout.block_group)
        _turn(values, one, other, edges, self.bases, np.empty(len(self.bases[0])), out)
        return out

    @property
    def bases(self) -> tuple[Ints, Floats]:
        """Where the basis of every number of levels begins in the second array, row by row."""
        return _bases(self.layout.nodes.contrasted)

    # -- curvature ---------------------------------------------------------------------------------

    @property
    def runs(self) -> Runs:
        """The runs of every node, in the order of ``Layout.conditional``."""
        return self._indexed[0]

    @cached_property
    def blocks(self) -> tuple[Ints, Ints, Ints, Ints]:
        """(start, size, touch_node, touch_at) of every block of contrasts.

        Each touches one or two nodes, and begins at touch_at within them.
        """
        return *self.reduced.term_blocks, *self._indexed[1]

    @cached_property
    def _indexed(self) -> tuple[Runs, tuple[Ints, Ints]]:
        """The runs, and what every block touches."""
        full, small, incidence = self.layout, self.reduced, self.layout.incidence
        ptr, node_size = (np.empty(full.n_nodes + n, dtype=np.int64) for n in (1, 0))
        table = np.empty((8, full.n_node_blocks + len(incidence.predictor)), dtype=np.int64)
        touch_node = np.full((full.n_node_blocks + full.n_groups, 2), -1)
        touch_at = np.zeros_like(touch_node)
        _fill_index(
            (incidence.target_ptr, incidence.predictor, incidence.group, incidence.feature),
            (
                full.n_gaussian,
                full.nodes.first_indicator,
                full.width,
                small.width,
                full.nodes.n_biases,
            ),
            (full.pairs, full.first_feature, small.term_blocks),
            (ptr, node_size, table),
            (touch_node, touch_at),
        )
        return Runs(ptr, node_size, *table), (touch_node, touch_at)

    @cached_property
    def columns(self) -> Floats:
        """(d, d') the change of design columns that makes the contrasts; numbers stay the same."""
        nodes = self.layout.nodes
        bases = [level_basis(n) for n in nodes.width[~nodes.numeric_nodes].tolist()]
        return np.asarray(block_diag(np.eye(nodes.n_numeric), *bases), dtype=np.float64)

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
        size, incidence = self.runs.node_size, self.layout.incidence
        start = offsets(size**2)
        out = np.zeros(int(start[-1]))
        entries = incidence.entry_ptr[incidence.target_ptr]
        sizes = (entries[1:] - entries[:-1] + self.layout.nodes.n_biases + 1) ** 2
        for a, b in _batches(sizes, getattr(smooth, "curvature_at_once", _BATCH)):
            curvature = smooth.curvature(theta, stride, np.arange(a, b))
            assert isinstance(curvature, Curvature)
            self._project(curvature, start, out)
            ridge = curvature.ridge
        if ridge is not None:
            self._add_ridge(ridge, start, out)
        return size, start, out

    def _add_ridge(self, per_group: Floats, start: Ints, out: Floats) -> None:
        """Add what every edge has on the diagonal, in all conditionals that it is in."""
        runs = self.runs
        level = np.concatenate([np.zeros(self.layout.n_node_blocks), per_group])[runs.block]
        node = np.repeat(np.arange(len(runs.node_size)), np.diff(runs.ptr))
        step = runs.node_size[node] + 1
        within = spans(np.zeros_like(runs.length), runs.length)
        first = np.repeat(start[node] + runs.local * step, runs.length)
        out[first + within * np.repeat(step, runs.length)] += np.repeat(level, runs.length)

    def _project(self, curvature: Curvature, start: Ints, out: Floats) -> None:
        """Write the curvature of nodes to their places in `out`."""
        runs, (of_width, bases) = self.runs, self.bases
        table = (runs.ptr, runs.local, runs.columns, runs.contrasts, runs.own_first, of_width)
        numbers, sums = curvature.single, curvature.softmax
        of_two = np.flatnonzero(self.layout.width[numbers.nodes] > 1)
        for at in of_two.tolist():
            self._project_whole(int(numbers.nodes[at]), numbers[at], start, out)
        if len(of_two) < len(numbers.nodes):
            others = np.setdiff1d(np.arange(len(numbers.nodes)), of_two)
            nodes, first = numbers.nodes[others], numbers.start[others]
            _project_nodes(
                numbers.matrices, first, 1.0, nodes, np.ones_like(nodes), table, bases, start, out
            )
        if sums is not None:
            varies = np.flatnonzero(sums.n_levels > 1)  # else it has no contrasts
            nodes, n_contrasts = curvature.discrete[varies], sums.n_levels[varies] - 1
            parts = (_own_contrasts(sums), sums.start[varies], sums.scale, nodes, n_contrasts)
            _project_nodes(*parts, table, bases, start, out)

    def _project_whole(self, node: int, matrix: Floats, start: Ints, out: Floats) -> None:
        """Write the curvature of a node of several columns, given over own terms and entries."""
        runs, n = self.runs, int(self.layout.width[node])
        turns: list[Floats] = []
        for run in range(int(runs.ptr[node]), int(runs.ptr[node + 1])):
            if run == runs.ptr[node]:
                turns.append(np.eye(int(runs.length[run])))
                continue
            columns, contrasts = int(runs.columns[run]), int(runs.contrasts[run])
            basis = level_basis(columns) if contrasts < columns else np.eye(columns)
            turn: Floats = np.kron(basis, np.eye(n)).astype(np.float64)
            if runs.own_first[run]:
                order = np.arange(contrasts * n).reshape(contrasts, n).T.ravel()
                turn = turn[:, order]
            turns.append(turn)
        whole = block_diag(*turns)
        small = whole.T @ matrix @ whole
        out[start[node] : start[node + 1]] = small.ravel()


@cache
def _bases(n_levels: tuple[int, ...]) -> tuple[Ints, Floats]:
    """Where the basis of every number of levels begins in the second array, row by row."""
    of_width, tables = np.zeros(max([*n_levels, 3]) + 1, dtype=np.int64), [np.ones(1)]
    for n in sorted(set(n_levels) - {1}):  # 1 is a number, its basis is (1)
        of_width[n] = sum(table.size for table in tables)
        tables.append(level_basis(n).ravel())
    return of_width, np.concatenate(tables)


def _own_contrasts(sums: SoftmaxCurvature) -> Floats:
    """The sums with the triangle over a node's own levels turned into one over its contrasts."""
    out, n_levels = np.empty(len(sums.sums)), sums.n_levels
    cuts = [0, *(np.flatnonzero(n_levels[1:] != n_levels[:-1]) + 1).tolist(), len(sums)]
    for a, b in zip(cuts[:-1], cuts[1:], strict=True):  # nodes with as many levels
        if n_levels[a] == 1:
            continue
        part, n = slice(int(sums.start[a]), int(sums.start[b])), int(n_levels[a])
        packed, turned = (each[part].reshape(-1, n * (n - 1) // 2) for each in (sums.sums, out))
        if n <= _FEW_LEVELS:
            np.matmul(packed, _triangle(n), out=turned)
        else:
            _turn_triangles(packed, n, turned)
    return out


def _turn_triangles(packed: Floats, n_levels: int, out: Floats) -> None:
    """Turn triangles without the matrix `_triangle`, the fourth power of the levels in size."""
    basis = level_basis(n_levels)
    v = basis[1:] - basis[0]
    k, other = np.tril_indices(n_levels - 1)
    some = max(1, _BATCH // len(v) ** 2)
    for a in range(0, len(packed), some):
        whole = np.zeros((len(packed[a : a + some]), len(v), len(v)))
        whole[:, k, other] = whole[:, other, k] = packed[a : a + some]
        out[a : a + some] = (v.T @ whole @ v)[:, k, other]


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


def _batches(sizes: Ints, most: int = _BATCH) -> list[tuple[int, int]]:
    """Consecutive nodes whose sizes add up to about `most`, or to four times the largest.

    What fits into a cache is quickly read again; several nodes are several threads' work.
    """
    total, limit = sizes.cumsum(), max(most, 4 * int(sizes.max()))
    if total[-1] <= limit:
        return [(0, len(sizes))]
    cuts = np.flatnonzero(np.diff(total // limit)) + 1
    edges = [0, *cuts.tolist(), len(sizes)]
    return list(zip(edges[:-1], edges[1:], strict=True))


# -- kernels ---------------------------------------------------------------------------------------


@kernel(fastmath={"reassoc", "contract"})
def _turn(values, one, other, edges, bases, work, out):
    """Own terms and blocks of edges in the coordinates of one layout -> of the other.

    one, other = (width of nodes, their first term, how many own terms they have, start of blocks);
    of these widths the smaller is that of contrasts.  edges = (number of Gaussian nodes, pairs,
    group of every block); bases = (where that of a width begins, all of them row by row).
    """
    width, first, n_terms, start = one
    to_width, to_first, to_terms, to_start = other
    n_cont, pairs, group = edges
    of_width, table = bases
    n_cat = width.shape[0] - n_cont
    for k in range(n_cat + group.shape[0]):
        if k < n_cat:  # biases are like an edge with a number
            u, inner, to_inner = n_cont + k, 1, 1
            at, to = first[u], to_first[u]
            outer, to_outer = n_terms[u], to_terms[u]
            if outer == to_outer:  # a few terms of the whole distribution, not one of each level
                for i in range(outer):
                    out[to + i] = values[at + i]
                continue
        else:
            u, v = pairs[group[k - n_cat], 0], pairs[group[k - n_cat], 1]
            inner, to_inner = width[v], to_width[v]
            at, to = start[k - n_cat], to_start[k - n_cat]
            outer, to_outer = width[u], to_width[u]
        left, right = of_width[max(outer, to_outer)], of_width[max(inner, to_inner)]
        row, across = (outer, 1) if to_outer > outer else (1, to_outer)
        down, along = (inner, 1) if to_inner > inner else (1, to_inner)
        for i in range(to_outer):
            for b in range(inner):
                x = 0.0
                if outer == to_outer:  # numbers stay what they are
                    x = values[at + i * inner + b]
                else:
                    for a in range(outer):
                        x += table[left + i * row + a * across] * values[at + a * inner + b]
                work[b] = x
            for j in range(to_inner):
                x = 0.0
                if inner == to_inner:
                    x = work[j]
                else:
                    for b in range(inner):
                        x += table[right + j * down + b * along] * work[b]
                out[to + i * to_inner + j] = x


@kernel(fastmath={"reassoc", "contract"})
def _project_nodes(sums, first, scale, nodes, n_own, runs, bases, start, out):
    """Second derivatives of the named nodes, column by column -> the same in contrasts.

    A node has n_own = m contrasts of its own columns (m = 1 unless it has indicators).  Its sums,
    K x K triangles of an (m, m) matrix, of which columns a <= b count, begin at first[k].  runs =
    (run_ptr, local, columns, contrasts, own_first, of_width): the columns of the predictor, their
    contrasts, whether own contrasts are the outer ones in a run, and where the basis for so many
    columns begins.  Node v goes to start[v] of out.
    """
    run_ptr, local, columns, contrasts, own_first, of_width = runs
    for k in range(nodes.shape[0]):
        v, m = nodes[k], n_own[k]
        n_packed, n_columns, size = m * (m + 1) // 2, 0, 0
        for a in range(run_ptr[v], run_ptr[v + 1]):
            n_columns += columns[a]
            size += contrasts[a] * m
        length, from_a = n_columns * n_packed, 0
        half, total = np.empty(length), np.empty(n_packed)
        for a in range(run_ptr[v], run_ptr[v + 1]):
            # Within a run the lower triangle is wanted as well.
            for x in range(from_a, from_a + columns[a]):
                for y in range(x + 1, from_a + columns[a]):
                    low, high = first[k] + y * length, first[k] + x * length
                    for p in range(n_packed):
                        sums[low + x * n_packed + p] = sums[high + y * n_packed + p]
            step_a, begin = contrasts[a] if own_first[a] else 1, np.uint64(from_a * n_packed)
            for i in range(contrasts[a]):
                left = (local[a] + (i if own_first[a] else i * m), step_a)
                for x in range(columns[a]):
                    weight = scale if x == i else 0.0
                    if contrasts[a] < columns[a]:
                        weight = scale * bases[of_width[columns[a]] + x * contrasts[a] + i]
                    source = np.uint64(first[k] + (from_a + x) * length)
                    for at in range(begin, np.uint64(length)):
                        before = half[at] if x > 0 else 0.0
                        half[at] = before + weight * sums[source + at]
                from_b = from_a
                for b in range(a, run_ptr[v + 1]):
                    step_b = contrasts[b] if own_first[b] else 1
                    for j in range(contrasts[b]):
                        for y in range(columns[b]):
                            weight = 1.0 if y == j else 0.0
                            if contrasts[b] < columns[b]:
                                weight = bases[of_width[columns[b]] + y * contrasts[b] + j]
                            other = np.uint64((from_b + y) * n_packed)
                            for p in range(n_packed):
                                before = total[p] if y > 0 else 0.0
                                total[p] = before + weight * half[other + np.uint64(p)]
                        right = (local[b] + (j if own_first[b] else j * m), step_b)
                        _write(total, m, start[v], size, left, right, out)
                    from_b += columns[b]
            from_a += columns[a]
        _mirror(start[v], size, out)


@inner
def _write(packed, n_own, start, size, left, right, out):
    """One triangle of own contrasts to its places in the node's matrix, which begins at start.

    left and right = (first place, step from one own contrast to the next).
    """
    (to_row, row_step), (to_column, column_step) = left, right
    for s in range(n_own):
        row = start + (to_row + s * row_step) * size + to_column
        for t in range(n_own):
            low, high = min(s, t), max(s, t)
            x = packed[high * (high + 1) // 2 + low]
            out[np.uint64(row + t * column_step)] = x


@inner
def _mirror(start, size, out):
    """Upper triangle of a matrix to the lower one, square by square to stay in the cache."""
    for top in range(0, size, _SQUARE):
        for first in range(top, size, _SQUARE):
            for i in range(top, min(top + _SQUARE, size)):
                for j in range(max(first, i + 1), min(first + _SQUARE, size)):
                    out[np.uint64(start + j * size + i)] = out[np.uint64(start + i * size + j)]


@kernel
def _fill_index(incidence, nodes, groups, runs, touches):
    """Fill the runs of all nodes (``contrasts.Runs``), and what every block touches.

    nodes = (number of Gaussian ones, of scored ones, widths, widths in contrasts, own terms);
    groups = (pairs, first feature or -1, (start, size) of all blocks of contrasts).
    """
    target_ptr, predictor, group, feature = incidence
    n_cont, n_scored, width, narrow, n_terms = nodes
    pairs, first_feature, (block_start, block_size) = groups
    run_ptr, node_size, table = runs
    touch_node, touch_at = touches
    at, n_nodes = 0, width.shape[0]
    for v in range(n_nodes):
        run_ptr[v], here = at, 0
        n_own = 2 if v < n_cont else 1
        for m in range(target_ptr[v] - n_own, target_ptr[v + 1]):
            columns, contrasts, own_first, side = 1, 1, np.int64(0), np.int64(0)
            block = v if v < n_cont and m == target_ptr[v] - 2 else n_cont + v
            position, length = block_start[block], block_size[block]
            if n_cont <= v < n_cont + n_scored:  # numbers to the others
                columns, contrasts = n_terms[v], length
            if m >= target_ptr[v]:
                u, g = predictor[m], group[m]
                columns, contrasts = width[u], narrow[u]
                own_first, side = np.int64(pairs[g, 0] == v), np.int64(pairs[g, 1] == v)
                block = n_cont + n_nodes + g
                turn = feature[m] - first_feature[g]
                length = contrasts * narrow[v]
                position = block_start[block] + turn * length
            table[0, at], table[1, at], table[2, at] = here, position, length
            table[3, at], table[4, at], table[5, at] = columns, contrasts, own_first
            table[6, at], table[7, at] = block, side
            if touch_node[block, side] < 0:  # a deviation may have several runs
                touch_node[block, side], touch_at[block, side] = v, here
            here += length
            at += 1
        node_size[v] = here
    run_ptr[n_nodes] = at
