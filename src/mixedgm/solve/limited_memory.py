"""Gradient differences -> limited-memory BFGS curvature, and a minimiser for its model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.contract import Curvature, Evaluation, Smooth
from mixedgm.solve.loop import run
from mixedgm.solve.problem import Problem
from mixedgm.solve.proximal_gradient import ProximalGradient


@dataclass(frozen=True, eq=False)
class LimitedMemory:
    """B = s I - W M W', the compact form of BFGS over the last `size` pairs."""

    size: int
    pairs: tuple[tuple[Floats, Floats], ...] = ()

    def updated(self, move: Floats, change: Floats) -> LimitedMemory:
        """Take in one step and its gradient change (skipped when it carries no curvature)."""
        if float(move @ change) <= 1e-10 * float(move @ move):
            return self
        return LimitedMemory(self.size, (*self.pairs, (move, change))[-self.size :])

    def product(self, delta: Floats) -> Floats:
        """B times delta."""
        if not self.pairs:
            return delta
        scale, wide, inverse = self._compact
        return np.asarray(scale * delta - wide @ (inverse @ (wide.T @ delta)))

    @cached_property
    def _compact(self) -> tuple[float, Floats, Floats]:
        """Return s, W and M."""
        moves = np.column_stack([s for s, _ in self.pairs])
        changes = np.column_stack([y for _, y in self.pairs])
        last_s, last_y = self.pairs[-1]
        scale = float(last_y @ last_y) / float(last_s @ last_y)
        cross = moves.T @ changes
        lower = np.tril(cross, -1)
        middle = np.block(
            [[scale * moves.T @ moves, lower], [lower.T, -np.diag(np.diagonal(cross))]]
        )
        wide = np.hstack([scale * moves, changes])
        return scale, wide, np.linalg.inv(middle)


@dataclass(eq=False)
class ProductModel:
    """The quadratic model as a smooth function that needs products with the Hessian only."""

    layout: Layout
    product: Callable[[Floats], Floats]
    theta: Floats
    grad: Floats
    passes: float = 0.0
    curvature_passes: float = 0.0
    part_seconds: tuple[float, float] = (0.0, 0.0)
    n_rows: int = 0
    terms_per_edge: int = 1
    by_nodes: bool = True
    curvature_rows: int = 0
    exact_curvature: bool = False

    def evaluate(
        self, theta: Floats, gradient: bool = True, groups: Ints | None = None
    ) -> Evaluation:
        """Model value relative to the centre, and its gradient."""
        if not np.all(theta[self.layout.diagonal] > 0.0):
            return Evaluation(np.inf)
        delta = theta - self.theta
        bent = self.product(delta)
        return Evaluation(float(self.grad @ delta + 0.5 * delta @ bent), self.grad + bent)

    def curvature(self, theta: Floats, stride: int = 1, nodes: Ints | None = None) -> Curvature:
        """Not available."""
        raise NotImplementedError("a product model has no node blocks")

    def restrict(self, groups: Ints) -> Smooth:
        """Not available."""
        raise NotImplementedError("a product model is not restricted")

    def null(self) -> Floats:
        """The centre of the model."""
        return self.theta


def minimise_by_products(
    problem: Problem, product: Callable[[Floats], Floats], at: tuple[Floats, Floats], tol: float
) -> Floats:
    """Minimise the model around theta = at[0], gradient at[1], by accelerated proximal gradient."""
    theta, grad = at
    model = ProductModel(problem.smooth.layout, product, theta, grad)
    inner = Problem(model, problem.penalty, problem.lam, problem.yardstick)
    start = (theta, Evaluation(0.0, grad))
    return run(inner, ProximalGradient("nesterov-1983"), start, tol=tol, max_iter=500).theta
