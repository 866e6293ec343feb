"""A smooth function and weights -> the same function plus a ridge that keeps its optimum finite.

Where rows leave a parameter open (a cell without rows, a column that another one determines), a
function without penalty has no optimum, or none that a few more rows would not move far away.  The
ridge adds half of r_g |theta_g|^2 for edge groups, and half of t_s beta_ss for the precision of
numbers: noise of variance t_s in that column, as its own conditional sees it.  In a hurdle column
it is noise in what is not zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.contract import Curvature, Evaluation, Slopes, Smooth, WholeCurvature


@dataclass(frozen=True, eq=False)
class Ridged:
    """The sum of a smooth function and a ridge."""

    smooth: Smooth
    edges: Floats
    """(n_groups,) r_g >= 0."""
    numbers: Floats
    """(n_real,) t_s >= 0."""

    @property
    def layout(self) -> Layout:
        """Which parameters exist."""
        return self.smooth.layout

    @property
    def passes(self) -> float:
        """Passes over the rows so far."""
        return self.smooth.passes

    @property
    def curvature_passes(self) -> float:
        """Passes over the rows for curvature so far."""
        return self.smooth.curvature_passes

    @property
    def part_seconds(self) -> tuple[float, float]:
        """Wall time so far in evaluations, and in curvature."""
        return self.smooth.part_seconds

    @property
    def n_rows(self) -> int:
        """Number of rows behind the function."""
        return self.smooth.n_rows

    @property
    def terms_per_edge(self) -> int:
        """Number of terms of the smooth function that have an edge between targets in them."""
        return self.smooth.terms_per_edge

    @property
    def by_nodes(self) -> bool:
        """Whether the smooth function is a sum over nodes."""
        return self.smooth.by_nodes

    @property
    def curvature_rows(self) -> int:
        """Rows behind the curvature of the smooth function."""
        return self.smooth.curvature_rows

    @property
    def exact_curvature(self) -> bool:
        """Whether the curvature of the smooth function is exact."""
        return self.smooth.exact_curvature

    def restrict(self, groups: Ints) -> Ridged:
        """Return the function with all other groups zero."""
        return Ridged(self.smooth.restrict(groups), self.edges[groups], self.numbers)

    def null(self) -> Floats:
        """Optimum without edges: noise adds to the variance of a number and leaves its mean."""
        theta, layout = self.smooth.null(), self.layout
        for run, family in layout.nodes.runs:
            noise = self.numbers[run]
            if noise.any():
                at = [layout.node_terms_of(node) for node in range(run.start, run.stop)]
                theta[at] = family.with_noise(theta[at], noise)
        return theta

    def evaluate(
        self, theta: Floats, gradient: bool = True, groups: Ints | None = None
    ) -> Evaluation:
        """Value and, if asked, gradient."""
        plain = self.smooth.evaluate(theta, gradient, groups)
        value = plain.value + self.added(theta)
        if plain.grad is None:
            return Evaluation(value)
        slopes = None if plain.slopes is None else RidgedSlopes(plain.slopes, self, theta)
        return Evaluation(value, plain.grad + self.push(theta), slopes)

    def added(self, theta: Floats) -> float:
        """The ridge alone."""
        layout, norms = self.layout, self.layout.group_norms(theta)
        return float(0.5 * (self.edges @ norms**2 + self.numbers @ theta[layout.positive]))

    def push(self, theta: Floats) -> Floats:
        """The gradient of the ridge alone."""
        layout, out = self.layout, np.zeros(len(theta))
        out[layout.edges] = layout.spread(self.edges) * theta[layout.edges]
        out[layout.positive] = 0.5 * self.numbers
        return out

    def curvature(
        self, theta: Floats, stride: int = 1, nodes: Ints | None = None
    ) -> Curvature | WholeCurvature:
        """Hessian at theta."""
        hessian = self.smooth.curvature(theta, stride, nodes)
        if not isinstance(hessian, Curvature):
            return RidgedWhole(hessian, self.layout, self.edges)
        return replace(hessian, ridge=self.shares)

    @property
    def shares(self) -> Floats:
        """(n_groups,) ridge of an edge, divided among the conditionals that it is in."""
        return self.edges / np.maximum(1, self.layout.conditionals)


@dataclass(frozen=True, eq=False)
class RidgedSlopes:
    """Contribution of every conditional to the gradient, with its share of the ridge."""

    plain: Slopes
    ridged: Ridged
    theta: Floats

    def on(self, layout: Layout) -> Floats | None:
        """Derivatives in the coefficients; known on the function's own layout only."""
        plain = self.plain.on(layout) if layout is self.ridged.layout else None
        if plain is None:
            return None
        push = np.zeros(layout.n_theta)
        push[layout.edges] = layout.spread(self.ridged.shares) * self.theta[layout.edges]
        return plain + push[layout.incidence.theta_index]


@dataclass(frozen=True, eq=False)
class RidgedWhole:
    """One dense Hessian plus the ridge."""

    whole: WholeCurvature
    layout: Layout
    edges: Floats

    def product(self, delta: Floats) -> Floats:
        """Hessian times `delta`."""
        out = self.whole.product(delta)
        out[self.layout.edges] += self.layout.spread(self.edges) * delta[self.layout.edges]
        return out

    def dense(self) -> Floats:
        """The matrix."""
        return self._with_ridge(self.whole.dense(), self.layout)

    def on(self, layout: Layout, columns: Floats) -> Floats:
        """The matrix in orthonormal contrasts, which leave the ridge as it is."""
        return self._with_ridge(self.whole.on(layout, columns), layout)

    def _with_ridge(self, matrix: Floats, layout: Layout) -> Floats:
        at = np.arange(layout.n_theta)[layout.edges]
        matrix[at, at] += layout.spread(self.edges)
        return matrix
