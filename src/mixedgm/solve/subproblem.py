"""Curvature + gradient + penalty at theta -> approximate minimiser of the quadratic model.

Group coordinate descent finds which groups are active; once they are settled, Newton steps on
them finish the job, which matters when few rows and a small lam make coordinate descent crawl.
Away from zero the norm of a group is smooth, so on active groups the model's optimality is a linear
system: H plus the curvature of the penalty.  Small systems are assembled and factorised; large
sparse graphs take conjugate gradients on the node blocks, preconditioned block by block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mixedgm.base.compiled import inner, kernel
from mixedgm.model.layout import Floats, Ints, Layout, offsets
from mixedgm.penalty.group_lasso import block_distance, block_step
from mixedgm.solve.curvature import Blocks
from mixedgm.solve.problem import Conditions, Problem

# Active groups are settled when so few of them have changed; of so many, those that were active
# before the first sweep are a good guess.
_CHANGES = 0.01
_LARGE = 500
# Sweeps over active groups before others are looked at again; and so many more where they are
# expected to suffice: on a model with so few numbers they are faster than Newton steps.
_SWEEPS, _MORE, _SMALL = 5, 40, 2**17
# Share of nonzero entries below which a system is not assembled, and products to solve it then.
_SPARSE = 0.05
_MOST_PRODUCTS = 200


@dataclass(eq=False)
class QuadraticModel:
    """The quadratic model at `theta` and its minimisation by blocks."""

    problem: Problem
    """Gives the penalty, lam and the scale of the KKT number."""
    layout: Layout
    """Layout of theta, with the same groups as the problem's."""
    theta: Floats
    grad: Floats
    """Where the model is taken, and the gradient there."""
    blocks: Blocks
    """Blocks of the curvature from `flatten`, which may serve several models."""

    def minimise(self, tol: float, max_sweeps: int = 200) -> Floats:
        """A point whose model KKT number is at most `tol` (or the best found)."""
        blocks, layout = self.blocks, self.layout
        ends = blocks.n_node_blocks
        penalty, lam = self.problem.penalty, self.problem.lam
        pull, yard = np.zeros(len(blocks.start)), np.ones(len(blocks.start))
        pull[ends:], yard[ends:] = penalty.bound(lam), self.problem.yardstick
        if not penalty.bound(lam).any():
            free = self._without_penalty(tol)
            if free is not None:
                return free
        known = (blocks.blocks, blocks.nodes, blocks.eigen, blocks.node_start, (pull, yard))
        new = self.theta.copy()
        product = np.zeros(int(blocks.node_start[-1]))
        limits = (tol, _SWEEPS, _MORE if len(blocks.matrices) <= _SMALL else 0, ends)
        n_blocks, largest = len(blocks.size), int(blocks.size.max(initial=0))
        scratch = np.empty(n_blocks, dtype=np.int64), np.empty((4, largest))
        used, wait, pause, before_jump, jumped = 0, 0, 1, np.inf, False
        active = np.flatnonzero(layout.group_norms(new))
        before = active if len(active) >= _LARGE else None
        while used < max_sweeps:
            more, worst, last = descend(*known, limits, scratch, self.grad, new, product)
            used += more
            if worst <= tol:
                break
            if blocks.known is not None and not last <= worst:
                # The curvature was corrected by so much that steps by the old blocks lead astray.
                afresh = replace(self, blocks=replace(blocks, known=None))
                return afresh.minimise(tol, max_sweeps)
            if jumped and worst > 0.5 * before_jump:
                # Groups outside disagree with the Newton steps, and descent with both: it could
                # go on like this for ever.
                wait, pause = pause, 2 * pause
            before_jump, jumped = worst, False
            settled = np.flatnonzero(layout.group_norms(new))
            wait -= 1
            slow = last > (tol if limits[2] else 0.3 * tol)
            if slow and wait < 0 and before is not None and _alike(settled, before):
                better = self._newton(new, settled, tol)
                if better is not None:
                    new, jumped = better, True
                    node_products(blocks.nodes, blocks.runs, new - self.theta, product)
            before = settled
        return new

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
        return layout.expanded(active, x)


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


@dataclass(frozen=True, eq=False)
class ActiveSystem:
    """The Hessian on node terms and active groups."""

    blocks: Blocks
    """Curvature of the working set."""
    where: Ints
    """(n_theta,) row of every theta position in the system, or -1."""
    layout: Layout
    """Layout of the active groups."""
    active: Ints
    """Numbers of the active groups in the working set."""
    largest: int = 600
    """Rows up to which it may be factorised."""

    @cached_property
    def _dense(self) -> Floats | None:
        n = self.layout.n_theta
        if n > self.largest or (self.blocks.node_size**2).sum() < _SPARSE * n**2:
            return None
        out = np.zeros((self.layout.n_theta, self.layout.n_theta))
        assemble(self.blocks.nodes, self.blocks.runs, self.where, out)
        return out

    @cached_property
    def _taken_out(self) -> tuple[Ints, Ints, Ints, Floats]:
        """The active part of every node's matrix by itself, for many products."""
        ptr, _, position, length = self.blocks.runs
        there = (length > 0) & (self.where[np.minimum(position, len(self.where) - 1)] >= 0)
        first = offsets(there * length)[ptr]
        starts = offsets(np.diff(first) ** 2)
        places, matrices = np.empty(int(first[-1]), dtype=np.int64), np.empty(int(starts[-1]))
        _take_out(self.blocks.nodes, self.blocks.runs, self.where, first, places, starts, matrices)
        return first, places, starts, matrices

    def product(self, delta: Floats) -> Floats:
        """H times delta."""
        if self._dense is not None:
            return np.asarray(self._dense @ delta)
        out = np.empty(len(delta))
        _active_product(*self._taken_out, delta, out)
        return out

    def newton_direction(self, asked: Conditions, x: Floats, slope: Floats) -> Floats | None:
        """Solve (H + penalty'') d = -(slope + penalty'); None if that fails."""
        layout = self.layout
        norms = layout.group_norms(x)
        safe = np.where(norms > 0.0, norms, 1.0)
        pull = asked.penalty.bound(asked.lam) / safe
        right = -slope
        right[layout.edges] -= layout.spread(pull) * x[layout.edges]
        unit = x[layout.edges] / layout.spread(safe)
        if self._dense is not None:
            return self._factorised(pull, unit, right)
        return self._by_products(pull, unit, right)

    def _factorised(self, pull: Floats, unit: Floats, right: Floats) -> Floats | None:
        assert self._dense is not None
        scale = float(np.mean(self._dense.diagonal()))
        for ridge in (1e-11, 1e-8, 1e-5):
            matrix = self._with_penalty(pull, unit)
            matrix.flat[:: len(matrix) + 1] += ridge * scale
            try:
                # Transposed, the symmetric matrix is in the order that LAPACK works on in place.
                factor = linalg.cho_factor(
                    matrix.T, lower=True, overwrite_a=True, check_finite=False
                )
            except linalg.LinAlgError:
                continue
            return np.asarray(linalg.cho_solve(factor, right, check_finite=False))
        return None

    def _with_penalty(self, pull: Floats, unit: Floats) -> Floats:
        """A copy of H plus, per group, pull * (I - unit unit')."""
        layout, first = self.layout, self.layout.n_node_terms
        matrix = np.array(self._dense)
        diagonal = np.arange(first, layout.n_theta)
        # The norm of a single number has no curvature.
        matrix[diagonal, diagonal] += layout.spread(np.where(layout.sizes > 1, pull, 0.0))
        for m in np.unique(layout.sizes[layout.sizes > 1]).tolist():
            groups = np.flatnonzero(layout.sizes == m)
            at = layout.starts[groups][:, None] + np.arange(m)
            along = unit[at - first]
            blocks = (pull[groups, None] * along)[:, :, None] * along[:, None, :]
            matrix[at[:, :, None], at[:, None, :]] -= blocks
        return matrix

    def _by_products(self, pull: Floats, unit: Floats, right: Floats) -> Floats | None:
        """Preconditioned conjugate gradients, to a hundredth of the right-hand side."""
        layout, weight = self.layout, self.layout.spread(pull)
        preconditioned = self._preconditioner(pull, unit)

        def product(d: Floats) -> Floats:
            out = self.product(d)
            edges = d[layout.edges]
            along = layout.spread(layout.group_sums(unit * edges))
            out[layout.edges] += weight * (edges - unit * along)
            return out

        x, residual = np.zeros(len(right)), right.copy()
        z = preconditioned(residual)
        direction, size = z, float(residual @ z)
        goal = 1e-4 * size
        for _ in range(_MOST_PRODUCTS):
            if size <= goal:
                break
            image = product(direction)
            curvature = float(direction @ image)
            if curvature <= 0.0:
                return None
            x = x + size / curvature * direction
            residual = residual - size / curvature * image
            z = preconditioned(residual)
            before, size = size, float(residual @ z)
            direction = z + size / before * direction
        return x

    def _preconditioner(self, pull: Floats, unit: Floats) -> Callable[[Floats], Floats]:
        """The inverse of every diagonal block of the system.

        A norm has no curvature along its group: where a group is small its pull is large, and a
        preconditioner that had it in that direction, too, would be of little use.
        """
        layout, blocks = self.layout, self.blocks
        start, vectors, values = blocks.eigen
        there = self.where >= 0
        on_edges, at = np.zeros(layout.n_theta), np.zeros(len(self.where))
        on_edges[layout.edges] = layout.spread(pull)
        at[there] = on_edges[self.where[there]]
        with_pull = values + at

        def divided(r: Floats, by: Floats) -> Floats:
            out = np.zeros(len(r))
            _precondition(blocks.blocks, (start, vectors, by), self.where, r, out)
            return out

        # (M^-1 - pull u u')^-1 = M + pull (M u) (M u)' / (1 - pull u' M u).  The divisor is the sum
        # of (v'u)^2 value / (value + pull) over the eigenvectors v, which loses no digits.
        on_edges[layout.edges] = unit
        along = divided(on_edges, with_pull)[layout.edges]
        left = layout.group_sums(unit * divided(on_edges, with_pull / values)[layout.edges])
        factor = pull / np.where(left > 0.0, left, 1.0)

        def preconditioned(r: Floats) -> Floats:
            out = divided(r, with_pull)
            share = factor * layout.group_sums(along * r[layout.edges])
            out[layout.edges] += layout.spread(share) * along
            return out

        return preconditioned


# -- kernels ---------------------------------------------------------------------------------------
#
# The model around theta is  g'd + d'Hd/2 + sum_g pull_g |theta_g + d_g|,  H a sum over nodes of
# dense matrices, pull_g the penalty's derivative in the norm of a group.  Every block of theta (a
# node's terms, or an edge group) is contiguous in theta and in each of the one or two nodes that it
# touches.


@kernel
def descend(blocks, nodes, eigen, node_start, penalty, limits, scratch, grad, theta, product):
    """Coordinate descent on the model: once over all blocks, then some times over active ones.

    theta and product, which holds H d node by node, change in place.  penalty = (pull, scale)
    of every block, limits = (tol, sweeps over active blocks at most, as many more if they are
    expected to be enough, number of blocks that are always active), scratch = (an integer for every
    block, four lines as long as the largest).  Returns the sweeps made, the
    largest violation (divided by scale) of the model's optimality conditions that the first sweep
    met on its way, and that of the last sweep.
    """
    start, size = blocks[0], blocks[1]
    tol, most, more, always = limits
    n_blocks, n = size.shape[0], size.shape[0]
    order, work = scratch
    for b in range(n_blocks):
        order[b] = b
    first, last = 0.0, 0.0
    for used in range(1, most + more + 2):
        before = last
        last = _sweep(
            blocks, nodes, eigen, node_start, order[:n], penalty, grad, theta, product, work
        )
        if used == 1:
            first, n = last, always
            for b in range(always, n_blocks):
                for i in range(start[b], start[b] + size[b]):
                    if theta[i] != 0.0:
                        order[n] = b
                        n += 1
                        break
        if last <= (tol if used == 1 else 0.3 * tol):
            break
        if used > most and not last * (last / before) ** (most + more + 1 - used) <= 0.3 * tol:
            break
    return used, first, last


@inner
def _sweep(blocks, nodes, eigen, node_start, order, penalty, grad, theta, product, work):
    """One pass over the blocks in `order`; returns the largest violation met on the way."""
    start, size, touch_node, touch_at = blocks
    matrix_start, node_size, matrices = nodes
    eigen_start, vectors, values = eigen
    pull, yard = penalty
    g, c, rotated, new = work[0], work[1], work[2], work[3]
    worst = 0.0
    for b in order:
        m, first = size[b], start[b]
        for i in range(m):
            g[i] = grad[first + i]
            for k in range(2):
                v = touch_node[b, k]
                if v >= 0:
                    g[i] += product[node_start[v] + touch_at[b, k] + i]
        distance = block_distance(g, theta, first, m, pull[b])
        if distance == 0.0:  # as of most blocks that are zero
            continue
        worst = max(worst, distance / yard[b])
        # c = Q'(H v - g), with H v through the eigenvectors.
        base = eigen_start[b]
        for i in range(m):
            rotated[i] = 0.0
            c[i] = 0.0
        for j in range(m):
            x, y = theta[first + j], g[j]
            for i in range(m):
                rotated[i] += vectors[base + j * m + i] * x
                c[i] -= vectors[base + j * m + i] * y
        for i in range(m):
            c[i] += values[first + i] * rotated[i]
        block_step(c, pull[b], values, first, m, new)
        for j in range(m):
            x = 0.0
            for i in range(m):
                x += vectors[base + j * m + i] * new[i]
            change = x - theta[first + j]
            if change == 0.0:
                continue
            theta[first + j] = x
            for k in range(2):
                v = touch_node[b, k]
                if v < 0:
                    continue
                row = np.uint64(matrix_start[v] + (touch_at[b, k] + j) * node_size[v])
                at = np.uint64(node_start[v])
                for i in range(np.uint64(0), np.uint64(node_size[v])):
                    product[at + i] += change * matrices[row + i]
    return worst


@kernel
def node_products(nodes, runs, delta, out):
    """Every node's matrix times its part of delta, node by node in a row."""
    matrix_start, node_size, matrices = nodes
    run_start, local, position, length = runs
    at = 0
    for v in range(node_size.shape[0]):
        width = node_size[v]
        for i in range(width):
            row = matrix_start[v] + i * width
            total = 0.0
            for k in range(run_start[v], run_start[v + 1]):
                for j in range(length[k]):
                    total += matrices[row + local[k] + j] * delta[position[k] + j]
            out[at + i] = total
        at += width


@kernel
def assemble(nodes, runs, where, out):
    """Add every node's matrix into the dense `out`; where[theta position] = row of out, or -1.

    runs = (first run of each node, position in the node, position in theta, length): a node's
    own terms and each of its groups are contiguous in both, and so in `out`.
    """
    matrix_start, node_size, matrices = nodes
    run_start, local, position, length = runs
    for v in range(node_size.shape[0]):
        for a in range(run_start[v], run_start[v + 1]):
            if length[a] == 0 or where[position[a]] < 0:
                continue
            for b in range(run_start[v], run_start[v + 1]):
                if length[b] == 0 or where[position[b]] < 0:
                    continue
                column = np.uint64(where[position[b]])
                for i in range(length[a]):
                    row = where[position[a]] + i
                    at = np.uint64(matrix_start[v] + (local[a] + i) * node_size[v] + local[b])
                    for j in range(length[b]):
                        out[row, column + np.uint64(j)] += matrices[at + np.uint64(j)]


@kernel
def _take_out(nodes, runs, where, first, places, matrices_start, out):
    """Take from every node's matrix what belongs to the theta positions with where >= 0.

    Node v gets the square matrix at matrices_start[v] of `out`, whose rows are numbered, as by
    `where`, places[first[v] : first[v + 1]].
    """
    matrix_start, node_size, matrices = nodes
    run_start, local, position, length = runs
    here = np.empty(places.shape[0], np.int64)
    for v in range(node_size.shape[0]):
        k = first[v]
        for a in range(run_start[v], run_start[v + 1]):
            if length[a] == 0 or where[position[a]] < 0:
                continue
            for i in range(length[a]):
                places[k] = where[position[a]] + i
                here[k] = local[a] + i
                k += 1
        to = np.uint64(matrices_start[v])
        for a in range(first[v], k):
            row = np.uint64(matrix_start[v] + here[a] * node_size[v])
            for b in range(first[v], k):
                out[to] = matrices[row + np.uint64(here[b])]
                to += np.uint64(1)


@kernel(fastmath={"reassoc", "contract"})
def _active_product(first, places, matrices_start, matrices, delta, out):
    """Out = H delta, with H as `take_out` left it."""
    out[:] = 0.0
    x = np.empty(places.shape[0])
    for v in range(first.shape[0] - 1):
        begin, size = first[v], first[v + 1] - first[v]
        for i in range(size):
            x[i] = delta[places[begin + i]]
        for i in range(size):
            row = np.uint64(matrices_start[v] + i * size)
            total = 0.0
            for j in range(size):
                total += matrices[row + np.uint64(j)] * x[np.uint64(j)]
            out[places[begin + i]] += total


@kernel(fastmath={"reassoc", "contract"})
def _precondition(blocks, eigen, where, x, out):
    """Out = A_b^-1 x_b for every active block b, A_b given by its eigenvectors and values."""
    start, size, touch_node, touch_at = blocks
    eigen_start, vectors, values = eigen
    turned = np.empty(max(1, size.max()))
    for b in range(start.shape[0]):
        m = size[b]
        if m == 0 or where[start[b]] < 0:
            continue
        first = np.uint64(where[start[b]])
        for k in range(m):
            turned[k] = 0.0
        for i in range(m):
            row, here = np.uint64(eigen_start[b] + i * m), x[first + np.uint64(i)]
            for k in range(m):
                turned[np.uint64(k)] += vectors[row + np.uint64(k)] * here
        for k in range(m):
            turned[k] /= values[start[b] + k]
        for i in range(m):
            row, total = np.uint64(eigen_start[b] + i * m), 0.0
            for k in range(m):
                total += vectors[row + np.uint64(k)] * turned[np.uint64(k)]
            out[first + np.uint64(i)] = total
