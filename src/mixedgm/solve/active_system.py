"""Curvature by nodes and a set of active groups -> Newton directions on them.

Away from zero the norm of a group is smooth, so on active groups the model's optimality is a
linear system: H plus the curvature of the penalty.  Small systems are assembled and factorised;
large sparse graphs take conjugate gradients on the node blocks, preconditioned block by block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.solve.contrasts import offsets
from mixedgm.solve.problem import Conditions

_SPARSE = 0.05
_MOST_PRODUCTS = 200


@dataclass(frozen=True, eq=False)
class Blocks:
    """Node curvatures flattened for the kernels."""

    start: Ints
    size: Ints
    touch_node: Ints
    touch_at: Ints
    matrix_start: Ints
    node_size: Ints
    node_start: Ints
    runs: tuple[Ints, Ints, Ints, Ints]
    matrices: Floats
    eigen_start: Ints
    vectors: Floats
    values: Floats
    n_node_blocks: int

    @property
    def blocks(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Where every block of theta is."""
        return self.start, self.size, self.touch_node, self.touch_at

    @property
    def nodes(self) -> tuple[Ints, Ints, Floats]:
        """The matrices."""
        return self.matrix_start, self.node_size, self.matrices

    @property
    def eigen(self) -> tuple[Ints, Floats, Floats]:
        """Eigendecompositions of the diagonal blocks."""
        return self.eigen_start, self.vectors, self.values


@dataclass(frozen=True, eq=False)
class ActiveSystem:
    """The Hessian on node terms and active groups.

    Parameters
    ----------
    blocks : Blocks
        Curvature of the working set.
    where : ndarray (n_theta,)
        Row of every theta position in the system, or -1.
    layout : Layout
        Of the active groups.
    active : ndarray
        Their numbers in the working set.
    largest : int
        Rows up to which it may be factorised.
    """

    blocks: Blocks
    where: Ints
    layout: Layout
    active: Ints
    largest: int = 600

    @cached_property
    def _dense(self) -> Floats | None:
        from mixedgm.solve.descent import assemble

        n = self.layout.n_theta
        if n > self.largest or (self.blocks.node_size**2).sum() < _SPARSE * n**2:
            return None
        out = np.zeros((self.layout.n_theta, self.layout.n_theta))
        assemble(self.blocks.nodes, self.blocks.runs, self.where, out)
        return out

    @cached_property
    def _taken_out(self) -> tuple[Ints, Ints, Ints, Floats]:
        """The active part of every node's matrix by itself, for many products."""
        from mixedgm.solve.descent import take_out

        ptr, _, position, length = self.blocks.runs
        there = (length > 0) & (self.where[np.minimum(position, len(self.where) - 1)] >= 0)
        first = offsets(there * length)[ptr]
        starts = offsets(np.diff(first) ** 2)
        places, matrices = np.empty(int(first[-1]), dtype=np.int64), np.empty(int(starts[-1]))
        take_out(self.blocks.nodes, self.blocks.runs, self.where, first, places, starts, matrices)
        return first, places, starts, matrices

    def product(self, delta: Floats) -> Floats:
        """H times delta."""
        from mixedgm.solve.descent import active_product

        if self._dense is not None:
            return np.asarray(self._dense @ delta)
        out = np.empty(len(delta))
        active_product(*self._taken_out, delta, out)
        return out

    def newton_direction(self, asked: Conditions, x: Floats, slope: Floats) -> Floats | None:
        """Solve (H + penalty'') d = -(slope + penalty'); None if that fails."""
        layout = self.layout
        norms = layout.group_norms(x)
        safe = np.where(norms > 0.0, norms, 1.0)
        pull = asked.penalty.pull(norms, asked.lam) / safe
        bend = asked.penalty.bend(norms, asked.lam)
        right = -slope
        right[layout.edges] -= layout.spread(pull) * x[layout.edges]
        unit = x[layout.edges] / layout.spread(safe)
        if self._dense is not None:
            return self._factorised(pull, bend, unit, right)
        return self._by_products(pull, bend, unit, right)

    def _factorised(self, pull: Floats, bend: Floats, unit: Floats, right: Floats) -> Floats | None:
        assert self._dense is not None
        scale = float(np.mean(self._dense.diagonal()))
        for ridge in (1e-11, 1e-8, 1e-5):
            matrix = self._with_penalty(pull, bend, unit)
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

    def _with_penalty(self, pull: Floats, bend: Floats, unit: Floats) -> Floats:
        """A copy of H plus, per group, pull * (I - unit unit') + bend * unit unit'."""
        layout, first = self.layout, self.layout.n_node_terms
        matrix = np.array(self._dense)
        diagonal = np.arange(first, layout.n_theta)
        # The norm of a single number has no curvature: only the penalty of the norm may have.
        bent = layout.sizes > 1
        matrix[diagonal, diagonal] += layout.spread(np.where(bent, pull, bend))
        for g in np.flatnonzero(bent).tolist():
            at = slice(layout.starts[g], layout.starts[g + 1])
            direction = unit[at.start - first : at.stop - first]
            matrix[at, at] -= (pull[g] - bend[g]) * np.outer(direction, direction)
        return matrix

    def _by_products(
        self, pull: Floats, bend: Floats, unit: Floats, right: Floats
    ) -> Floats | None:
        """Preconditioned conjugate gradients, to a hundredth of the right-hand side."""
        layout, weight = self.layout, self.layout.spread(pull)
        inward = self.layout.spread(bend)
        preconditioned = self._preconditioner(pull, unit)

        def product(d: Floats) -> Floats:
            out = self.product(d)
            edges = d[layout.edges]
            along = layout.spread(layout.group_sums(unit * edges))
            out[layout.edges] += weight * (edges - unit * along) + inward * unit * along
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
        from mixedgm.solve.descent import precondition

        layout, blocks = self.layout, self.blocks
        start, vectors, values = blocks.eigen
        there = self.where >= 0
        own, at = np.zeros(layout.n_theta), np.zeros(len(self.where))
        own[layout.edges] = layout.spread(pull)
        at[there] = own[self.where[there]]
        with_pull = values + at

        def divided(r: Floats, by: Floats) -> Floats:
            out = np.zeros(len(r))
            precondition(blocks.blocks, (start, vectors, by), self.where, r, out)
            return out

        # (M^-1 - pull u u')^-1 = M + pull (M u) (M u)' / (1 - pull u' M u).  The divisor is the sum
        # of (v'u)^2 value / (value + pull) over the eigenvectors v, which loses no digits.
        own[layout.edges] = unit
        along = divided(own, with_pull)[layout.edges]
        left = layout.group_sums(unit * divided(own, with_pull / values)[layout.edges])
        factor = pull / np.where(left > 0.0, left, 1.0)

        def preconditioned(r: Floats) -> Floats:
            out = divided(r, with_pull)
            share = factor * layout.group_sums(along * r[layout.edges])
            out[layout.edges] += layout.spread(share) * along
            return out

        return preconditioned
