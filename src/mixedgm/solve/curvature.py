"""Curvature at theta -> the same in contrasts, laid out for kernels, for several steps and lams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from mixedgm.base.compiled import kernel
from mixedgm.base.threads import run_some
from mixedgm.model.layout import Floats, Ints, offsets, spans
from mixedgm.objective.contract import Smooth
from mixedgm.solve.contrasts import Contrasts

_OF_NODE_TERMS = 0.25
# Operations of an eigendecomposition, over the cube of its size; and those that make a task.
_STEPS, _PART = 10, 20_000_000
# A node learns nothing from a step that hardly moves it, nor where what it sees is so far from what
# its matrix says.
_NOTHING, _LEAST = 1e-20, 0.05


@dataclass(frozen=True, eq=False)
class Blocks:
    """Node curvatures flattened for the kernels."""

    start: Ints
    size: Ints
    touch_node: Ints
    touch_at: Ints
    runs: tuple[Ints, Ints, Ints, Ints]
    node_size: Ints
    matrices: Floats
    n_node_blocks: int
    known: tuple[Floats, Floats] | None = None
    """Eigenvectors and eigenvalues of the diagonal blocks, where they need not be computed."""

    @cached_property
    def matrix_start(self) -> Ints:
        """Where the matrix of every node begins."""
        return offsets(self.node_size**2)

    @cached_property
    def node_start(self) -> Ints:
        """Where the rows of every node begin, all nodes in a row."""
        return offsets(self.node_size)

    @cached_property
    def eigen_start(self) -> Ints:
        """Where the eigenvectors of every block begin."""
        return offsets(self.size**2)

    @property
    def blocks(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Where every block of theta is."""
        return self.start, self.size, self.touch_node, self.touch_at

    @property
    def nodes(self) -> tuple[Ints, Ints, Floats]:
        """The matrices."""
        return self.matrix_start, self.node_size, self.matrices

    @property
    def decomposition(self) -> tuple[Floats, Floats] | None:
        """Eigenvectors and eigenvalues of the diagonal blocks, if known already; else None."""
        asked: tuple[Ints, Floats, Floats] | None = vars(self).get("eigen")
        return self.known if asked is None else asked[1:]

    @cached_property
    def eigen(self) -> tuple[Ints, Floats, Floats]:
        """Eigendecompositions of the diagonal blocks, made when somebody asks for them."""
        return self.eigen_start, *(self.known or self._decomposed())

    def _decomposed(self) -> tuple[Floats, Floats]:
        """Eigenvectors, and eigenvalues above zero, of the diagonal block of H for every block."""
        start, size, eigen_start = self.start, self.size, self.eigen_start
        vectors, values = np.ones(eigen_start[-1]), np.empty(int(size.sum()))

        def decompose(which: Ints) -> None:
            m = int(size[which[0]])
            squares = np.zeros((len(which), m, m))
            _diagonal_blocks(which, self.blocks, self.nodes, squares)
            if m > 1:
                lam, basis = np.linalg.eigh(squares)
                vectors[eigen_start[which][:, None] + np.arange(m * m)] = basis.reshape(-1, m * m)
            else:
                lam = squares[:, :, 0]
            floor = np.maximum(1e-12, 1e-10 * lam[:, -1:])
            values[start[which][:, None] + np.arange(m)] = np.maximum(lam, floor)

        tasks = [partial(decompose, which) for which in _of_one_size(size)]
        run_some(tasks, _STEPS * int((size**3).sum()))
        return vectors, values


def flatten(contrasts: Contrasts, smooth: Smooth, theta: Floats, stride: int) -> Blocks:
    """Curvature at theta, in contrasts and laid out for the kernels."""
    if not smooth.by_nodes:
        return one_matrix(contrasts, contrasts.whole_curvature(smooth, theta, stride))
    node_size, _, matrices = contrasts.curvature(smooth, theta, stride)
    ends = contrasts.reduced.n_node_blocks
    return Blocks(*contrasts.blocks, contrasts.runs.places, node_size, matrices, ends)


def one_matrix(contrasts: Contrasts, matrix: Floats) -> Blocks:
    """A dense Hessian, laid out as the curvature of a single node that every block touches."""
    start, size, _, _ = contrasts.blocks
    zero = np.zeros_like(start)
    blocks = (start, size, np.column_stack([zero, zero - 1]), np.column_stack([start, zero]))
    runs = (np.array([0, len(start)]), start, start, size)
    ends = contrasts.reduced.n_node_blocks
    return Blocks(*blocks, runs, np.array([len(matrix)]), matrix.ravel(), ends)


def _of_one_size(size: Ints) -> list[Ints]:
    """Blocks of one size together, the largest first and none with too much to do for one part."""
    parts = []
    for m in (1 + np.bincount(size)[1:].nonzero()[0])[::-1].tolist():
        which = np.flatnonzero(size == m)
        parts += np.array_split(which, 1 + len(which) * _STEPS * m**3 // _PART)
    return [which for which in parts if len(which)]


@dataclass(frozen=True, eq=False)
class KnownCurvature:
    """Curvature in contrasts that serves several steps."""

    contrasts: Contrasts
    blocks: Blocks

    def corrected(self, move: Floats, gradients: Floats, slopes: Floats) -> KnownCurvature:
        """Correct the curvature by a step: `move` and the changes, in theta's own coordinates.

        Every node has seen its own slopes change, and its matrix is made to explain that.  Blocks
        on the diagonal keep their eigendecompositions, by which descent takes its steps: those
        need not be exact to lead to the same place.  Where they lead astray, descent notices.
        """
        contrasts, layout = self.contrasts, self.contrasts.layout
        runs, incidence = contrasts.runs, layout.incidence
        blocks = replace(
            self.blocks, matrices=self.blocks.matrices.copy(), known=self.blocks.decomposition
        )
        correct(
            (*runs.places, runs.columns, runs.contrasts, runs.own_first),
            (incidence.target_ptr, incidence.entry_ptr),
            (layout.width, contrasts.reduced.width),
            contrasts.bases,
            contrasts.down(move),
            (contrasts.down(gradients), slopes),
            blocks.nodes,
        )
        return KnownCurvature(contrasts, blocks)

    def damped(self, amount: float, yardstick: Floats) -> Blocks:
        """The curvature plus `amount` times that of independent columns, in every conditional.

        Where fitted probabilities are 0 or 1 there is next to no curvature, and a model without
        any would take an unbounded step.
        """
        old, ends = self.blocks, self.blocks.n_node_blocks
        level = np.full(len(old.size), amount * _OF_NODE_TERMS)
        level[ends:] = amount * _independent(yardstick, old.size[ends:])
        at = np.zeros(int(old.size.sum()))
        at[spans(old.start, old.size)] = np.repeat(level, old.size)
        ptr, local, position, length = old.runs
        node = np.repeat(np.arange(len(old.node_size)), np.diff(ptr))
        row, size = spans(local, length), np.repeat(old.node_size[node], length)
        matrices = old.matrices.copy()
        of_run = np.repeat(old.matrix_start[node], length)
        matrices[of_run + row * (size + 1)] += at[spans(position, length)]
        _, vectors, values = old.eigen
        values, touches = values.copy(), np.count_nonzero(old.touch_node >= 0, axis=1)
        values[spans(old.start, old.size)] += np.repeat(touches * level, old.size)
        return replace(old, matrices=matrices, known=(vectors, values))


def _independent(yardstick: Floats, size: Ints) -> Floats:
    """Mean curvature of groups in each of their conditionals, if all columns were independent."""
    return np.asarray(yardstick**2 / np.maximum(1, size))


# -- kernels ---------------------------------------------------------------------------------------


@kernel
def _diagonal_blocks(which, blocks, nodes, out):
    """out[k] += the square of block which[k] in the matrix of every node that it touches."""
    _, _, touch_node, touch_at = blocks
    matrix_start, node_size, matrices = nodes
    for k in range(which.shape[0]):
        for side in range(2):
            v, at = touch_node[which[k], side], touch_at[which[k], side]
            if v < 0:
                continue
            for i in range(out.shape[1]):
                row = matrix_start[v] + (at + i) * node_size[v] + at
                for j in range(out.shape[1]):
                    out[k, i, j] += matrices[row + j]


@kernel
def correct(runs, incidence, widths, bases, moved, changed, nodes):
    """Correct the matrix of every node, in place, by what a step changed in its own slopes.

    That is the update of Broyden, Fletcher, Goldfarb and Shanno, node by node (Griewank and Toint
    1982).  moved = the step, in contrasts; changed = (what it changed in the gradient, in
    contrasts, of which node terms count; and in the slopes of conditionals, in the incidence's
    order).  runs = (run_ptr, local, position, length, columns, contrasts, own_first), incidence =
    (target_ptr, entry_ptr), widths = those of nodes, and in contrasts.
    """
    run_ptr, local, position, length, columns, contrasts, own_first = runs
    target_ptr, entry_ptr = incidence
    width, narrow = widths
    of_width, table = bases
    of_terms, of_slopes = changed
    matrix_start, node_size, matrices = nodes
    half = np.empty(width.max())
    for v in range(node_size.shape[0]):
        size = node_size[v]
        step, change, image = np.empty(size), np.empty(size), np.zeros(size)
        first = run_ptr[v + 1] - (target_ptr[v + 1] - target_ptr[v])
        n_own, to_own, own_basis = width[v], narrow[v], of_width[width[v]]
        for a in range(run_ptr[v], run_ptr[v + 1]):
            for i in range(length[a]):
                step[local[a] + i] = moved[position[a] + i]
                change[local[a] + i] = of_terms[position[a] + i]
            if a < first:
                continue
            at, n, basis = entry_ptr[target_ptr[v] + a - first], contrasts[a], of_width[columns[a]]
            for i in range(n):
                for y in range(n_own):
                    total = of_slopes[at + i * n_own + y]
                    if n < columns[a]:
                        total = 0.0
                        for x in range(columns[a]):
                            total += table[basis + x * n + i] * of_slopes[at + x * n_own + y]
                    half[y] = total
                for j in range(to_own):
                    total = half[j]
                    if to_own < n_own:
                        total = 0.0
                        for y in range(n_own):
                            total += table[own_basis + y * to_own + j] * half[y]
                    change[local[a] + (j * n + i if own_first[a] else i * to_own + j)] = total
        bent, seen = 0.0, 0.0
        for i in range(size):
            row = matrix_start[v] + i * size
            for j in range(size):
                image[i] += matrices[row + j] * step[j]
            bent += step[i] * image[i]
            seen += step[i] * change[i]
        if not (bent > _NOTHING and _LEAST * bent < seen < bent / _LEAST):
            continue
        for i in range(size):
            row = matrix_start[v] + i * size
            for j in range(size):
                matrices[row + j] += change[i] * change[j] / seen - image[i] * image[j] / bent
