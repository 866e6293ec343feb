"""Newton directions on active groups: those of the dense system, from few products."""

from functools import cached_property

import numpy as np
import pytest

from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.curvature import flatten
from mixedgm.solve.subproblem import ActiveSystem
from tests.support.problems import draw, random_theta


class Counting(ActiveSystem):
    """Keeps an account of products."""

    def product(self, delta):
        self.products.append(len(delta))
        return super().product(delta)

    @cached_property
    def products(self):
        return []


@pytest.fixture
def system():
    """A model's system at a point, some of whose groups are almost zero."""
    problem = draw(5, 400, 8, (2, 3, 4, 3, 4, 3, 4), False).task().problem(0.3)
    smooth = problem.smooth
    contrasts, theta = Contrasts(smooth.layout), 0.3 * random_theta(smooth.layout, 1)
    layout, blocks = contrasts.reduced, flatten(contrasts, smooth, theta, 1)
    active = np.arange(layout.n_groups)
    small = problem.conditions.on(layout, active)
    system = Counting(blocks, np.arange(layout.n_theta), small.penalty.layout, active, largest=0)
    x = contrasts.down(theta)
    sizes = np.random.default_rng(2).choice([1e-9, 1e-4, 1.0], layout.n_groups)
    x[layout.edges] *= layout.spread(sizes)
    return system, small, x


def dense_system(system, problem, x):
    """H plus the second derivative of every norm, from its formula."""
    layout = system.layout
    n = layout.n_theta
    matrix = np.array([system.product(one) for one in np.eye(n)])
    for g, (start, size) in enumerate(zip(layout.starts[:-1], layout.sizes, strict=True)):
        own = x[start : start + size]
        norm = np.sqrt(own @ own)
        pull = problem.lam * problem.penalty.weights[g] / norm
        at = slice(start, start + size)
        matrix[at, at] += pull * (np.eye(size) - np.outer(own, own) / norm**2)
    return matrix


def test_direction_solves_the_system(system):
    system, problem, x = system
    slope = np.random.default_rng(3).normal(size=len(x))
    matrix = dense_system(system, problem, x)
    right = -slope
    for g, (start, size) in enumerate(
        zip(system.layout.starts[:-1], system.layout.sizes, strict=True)
    ):
        own = x[start : start + size]
        right[start : start + size] -= (
            problem.lam * problem.penalty.weights[g] * own / np.sqrt(own @ own)
        )
    exact = np.linalg.solve(matrix, right)
    found = system.newton_direction(problem, x, slope)
    error = found - exact
    # Energy norm: that is what conjugate gradients make small.
    assert error @ matrix @ error <= 1e-3 * (exact @ matrix @ exact)


@pytest.mark.parametrize("size", [1e-8, 1e-12, 1e-16])
def test_tiny_groups_of_one_number_do_not_spoil_the_factors(size):
    """The norm of a number has no curvature, however small the number."""
    problem = draw(5, 200, 6, (), False).task().problem(0.3)
    layout = problem.smooth.layout
    contrasts, theta = Contrasts(layout), 0.3 * random_theta(layout, 1)
    theta[layout.edges][::3] *= size
    blocks, active = flatten(contrasts, problem.smooth, theta, 1), np.arange(layout.n_groups)
    small = problem.conditions.on(contrasts.reduced, active)
    system = ActiveSystem(blocks, np.arange(layout.n_theta), small.penalty.layout, active)
    slope = np.random.default_rng(3).normal(size=layout.n_theta)
    found = system.newton_direction(small, theta, slope)
    right = -slope
    right[layout.edges] -= problem.lam * problem.penalty.weights * np.sign(theta[layout.edges])
    exact = np.linalg.solve(system._dense, right)
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-8 * abs(exact).max())


def test_small_groups_cost_no_products(system):
    """The preconditioner knows that a norm has no curvature along its group."""
    system, problem, x = system
    slope = np.random.default_rng(3).normal(size=len(x))
    system.newton_direction(problem, x, slope)
    assert 0 < len(system.products) < 25


def test_preconditioner_is_the_inverse_of_the_diagonal_blocks(system):
    system, problem, x = system
    layout = system.layout
    norms = layout.group_norms(x)
    pull = problem.lam * problem.penalty.weights / norms
    unit = x[layout.edges] / layout.spread(norms)
    apply = system._preconditioner(pull, unit)
    found = np.array([apply(one) for one in np.eye(layout.n_theta)])
    matrix = dense_system(system, problem, x)
    for start, size in zip(layout.starts[:-1], layout.sizes, strict=True):
        at = slice(start, start + size)
        np.testing.assert_allclose(found[at, at] @ matrix[at, at], np.eye(size), atol=1e-5)
    np.testing.assert_allclose(found, found.T, rtol=1e-9, atol=1e-9 * abs(found).max())
