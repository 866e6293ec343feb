"""Curvature + gradient + penalty at theta -> approximate minimiser of the quadratic model.

Group coordinate descent finds which groups are active; once they are settled, Newton steps on
them (the penalty is smooth away from zero) finish the job, which matters when few rows and a small
lam make coordinate descent crawl.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.contract import Smooth
from mixedgm.solve.active_system import ActiveSystem, Blocks
from mixedgm.solve.contrasts import Contrasts, offsets
from mixedgm.solve.problem import Problem

# Active groups are settled when so few of them have changed; of so many, those that were active
# before the first sweep are a good guess.
_CHANGES = 0.01
_LARGE = 500


def flatten(contrasts: Contrasts, smooth: Smooth, theta: Floats, stride: int) -> Blocks:
    """Curvature at theta, in contrasts and laid out for the kernels."""
    if not smooth.by_nodes:
        return one_matrix(contrasts, contrasts.whole_curvature(smooth, theta, stride))
    layout, runs, blocks = contrasts.reduced, contrasts.runs, contrasts.blocks
    node_size, matrix_start, matrices = contrasts.curvature(smooth, theta, stride)
    eigen_start, vectors, values = _block_eigen(blocks, (matrix_start, node_size, matrices))
    return Blocks(
        *blocks,
        matrix_start=matrix_start,
        node_size=node_size,
        node_start=offsets(node_size),
        runs=(runs.ptr, runs.local, runs.position, runs.length),
        matrices=matrices,
        eigen_start=eigen_start,
        vectors=vectors,
        values=values,
        n_node_blocks=layout.n_node_blocks,
    )


def one_matrix(contrasts: Contrasts, matrix: Floats) -> Blocks:
    """A dense Hessian, laid out as the curvature of a single node that every block touches."""
    layout = contrasts.reduced
    start, size, _, _ = contrasts.blocks
    n = layout.n_theta
    touch_node = np.column_stack([np.zeros(len(start), dtype=np.int64), np.full(len(start), -1)])
    touch_at = np.column_stack([start, np.zeros_like(start)])
    node = (np.zeros(1, dtype=np.int64), np.array([n]), matrix.ravel())
    eigen_start, vectors, values = _block_eigen((start, size, touch_node, touch_at), node)
    return Blocks(
        start,
        size,
        touch_node,
        touch_at,
        matrix_start=node[0],
        node_size=node[1],
        node_start=np.array([0, n]),
        runs=(np.array([0, len(start)]), start, start, size),
        matrices=node[2],
        eigen_start=eigen_start,
        vectors=vectors,
        values=values,
        n_node_blocks=layout.n_node_blocks,
    )


def _block_eigen(
    blocks: tuple[Ints, Ints, Ints, Ints], nodes: tuple[Ints, Ints, Floats]
) -> tuple[Ints, Floats, Floats]:
    """Eigendecomposition of the diagonal block of H for every block: (start, vectors, values)."""
    from mixedgm.solve.contrast_kernels import diagonal_blocks

    start, size, _, _ = blocks
    eigen_start = offsets(size**2)
    vectors, values = np.ones(eigen_start[-1]), np.empty(int(size.sum()))
    for m in (1 + np.bincount(size)[1:].nonzero()[0]).tolist():
        which = np.flatnonzero(size == m)
        squares = np.zeros((len(which), m, m))
        diagonal_blocks(which, blocks, nodes, squares)
        if m > 1:
            lam, basis = np.linalg.eigh(squares)
            vectors[eigen_start[which][:, None] + np.arange(m * m)] = basis.reshape(-1, m * m)
        else:
            lam = squares[:, :, 0]
        floor = np.maximum(1e-12, 1e-10 * lam[:, -1:])
        values[start[which][:, None] + np.arange(m)] = np.maximum(lam, floor)
    return eigen_start, vectors, values


@dataclass(eq=False)
class QuadraticModel:
    """The quadratic model at `theta` and its minimisation by blocks.

    Parameters
    ----------
    problem : Problem
        Gives the penalty, lam and the scale of the KKT number.
    layout : Layout
        Of theta, with the same groups as the problem's.
    theta, grad : ndarray (n_theta,)
        Where the model is taken, and the gradient there.
    blocks : Blocks
        From `flatten`, which may serve several models.
    """

    problem: Problem
    layout: Layout
    theta: Floats
    grad: Floats
    blocks: Blocks

    def minimise(self, tol: float, max_sweeps: int = 200) -> Floats:
        """A point whose model KKT number is at most `tol` (or the best found)."""
        from mixedgm.solve.descent import descend

        blocks, layout = self.blocks, self.layout
        ends = blocks.n_node_blocks
        penalty, lam = self.problem.penalty, self.problem.lam
        pull, yard = np.zeros(len(blocks.start)), np.ones(len(blocks.start))
        yard[ends:] = self.problem.yardstick
        if not penalty.bound(lam).any():
            free = self._without_penalty(tol)
            if free is not None:
                return free
        known = (blocks.blocks, blocks.nodes, blocks.eigen, blocks.node_start, (pull, yard))
        new = self.theta.copy()
        product = np.zeros(int(blocks.node_start[-1]))
        used, wait, pause, before_jump, jumped = 0, 0, 1, np.inf, False
        norms = layout.group_norms(new)
        active = np.flatnonzero(norms)
        before = active if len(active) >= _LARGE else None
        while used < max_sweeps:
            pull[ends:] = penalty.pull(norms, lam)
            more, worst, last = descend(*known, (tol, 5, ends), self.grad, new, product)
            used += more
            if worst <= tol:
                break
            if jumped and worst > 0.5 * before_jump:
                # Groups outside disagree with the Newton steps, and descent with both: it could
                # go on like this for ever.
                wait, pause = pause, 2 * pause
            before_jump, jumped = worst, False
            norms = layout.group_norms(new)
            settled = np.flatnonzero(norms)
            wait -= 1
            slow = last > 0.3 * tol
            if slow and wait < 0 and before is not None and _alike(settled, before):
                better = self._newton(new, settled, tol)
                if better is not None:
                    new, jumped = better, True
                    product = self._node_products(new - self.theta)
                    norms = layout.group_norms(new)
            before = settled
        return new

    def _node_products(self, delta: Floats) -> Floats:
        from mixedgm.solve.descent import node_products

        out = np.empty(int(self.blocks.node_start[-1]))
        node_products(self.blocks.nodes, self.blocks.runs, delta, out)
        return out

    def _without_penalty(self, tol: float) -> Floats | None:
        """The minimiser where nothing is penalised: a linear system; None if that fails."""
        layout = self.layout
        every = np.arange(layout.n_groups)
        asked = self.problem.conditions.on(layout, every)
        system = ActiveSystem(self.blocks, np.arange(layout.n_theta), layout, every)
        x, slope = self.theta, self.grad
        for _ in range(5):
            direction = system.newton_direction(asked, x, slope)
            if direction is None:
                return None
            x = x + direction
            slope = self.grad + system.product(x - self.theta)
            if asked.measure(x, slope) <= tol:
                break
        return x

    def _newton(self, point: Floats, active: Ints, tol: float) -> Floats | None:
        """Newton steps on the node terms and the active groups; None if that fails."""
        layout = self.layout
        index = layout.positions(active)
        where = np.full(layout.n_theta, -1)
        where[index] = np.arange(len(index))
        small = self.problem.conditions.on(layout, active)
        system = ActiveSystem(self.blocks, where, small.penalty.layout, active)
        x, theta, grad = point[index], self.theta[index], self.grad[index]

        def value(at: Floats, slope: Floats) -> float:
            smooth = 0.5 * (at - theta) @ (grad + slope)
            return float(smooth) + small.penalty.value(at, small.lam)

        slope = grad + system.product(x - theta)
        before = now = small.measure(x, slope)
        for _ in range(5):
            if now <= 0.3 * tol:
                break
            direction = system.newton_direction(small, x, slope)
            if direction is None:
                return None
            crossing = _crossing(small.penalty.layout, x, direction)
            new = _without(small.penalty.layout, x + direction, crossing <= 1.0)
            new_slope = grad + system.product(new - theta)
            if (crossing <= 1.0).any():
                # Some groups went to zero: coordinate descent decides which stay there.
                if value(new, new_slope) > value(x, slope):
                    # The others went further than is good without them.
                    first = float(crossing.min())
                    new = _without(small.penalty.layout, x + first * direction, crossing <= first)
                x = new
                break
            x, slope = new, new_slope
            now = small.measure(x, slope)
        else:
            if now > before:
                return None
        out = np.zeros(layout.n_theta)
        out[index] = x
        return out


def _alike(settled: Ints, before: Ints) -> bool:
    few = int(_CHANGES * len(settled))
    if few == 0 or abs(len(settled) - len(before)) > few:
        return np.array_equal(settled, before)
    return len(np.setxor1d(settled, before, assume_unique=True)) <= few


def _crossing(layout: Layout, x: Floats, direction: Floats) -> Floats:
    """How far along the direction every group comes closest to zero (almost), if it does."""
    along = -layout.group_sums(x[layout.edges] * direction[layout.edges])
    square = layout.group_norms(x) ** 2
    near = np.full(len(along), np.inf)
    np.divide(0.99 * square, along, out=near, where=along > 0.99 * square)
    return near


def _without(layout: Layout, x: Floats, groups: NDArray[np.bool_]) -> Floats:
    """A copy of x with these groups set to zero."""
    new = x.copy()
    new[layout.edges] *= 1.0 - layout.spread(groups.astype(np.float64))
    return new
