"""Steps scaled by independent columns: exact where columns are independent, and any size fits."""

from itertools import product

import numpy as np
import pytest

from mixedgm.families import CountKind, OrdinalKind
from mixedgm.solve.choose import Auto
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.proximal_newton import NewtonState
from mixedgm.solve.spectral_gradient import IndependentScale, SpectralGradient, SpectralState
from mixedgm.solve.working_set import Start, solve
from tests.support.problems import SCORED, Table, draw, edges_of, solved


def independent_table(nodewise=False, scored=()):
    """Every combination of a number and two columns, weighted by the product of frequencies."""
    x, wx = np.array([-1.0, 0.5, 2.0]), np.array([4.0, 2.0, 1.0])
    a, b = np.array([5.0, 3.0, 2.0, 1.0]), np.array([1.0, 6.0, 2.0])
    rows = list(product(range(3), range(4), range(3)))
    weights = np.array([wx[i] * a[j] * b[k] for i, j, k in rows])
    X = np.array([[x[i]] for i, _, _ in rows])
    Y = np.array([[j, k] for _, j, k in rows])
    table = Table(X, Y, (4, 3), weights, scored=scored)
    return table.task(loss="nodewise" if nodewise else "pseudolikelihood")


@pytest.mark.parametrize("nodewise", [False, True])
@pytest.mark.parametrize("scored", [(), *((kind,) for kind in SCORED), (SCORED[1], SCORED[2])])
def test_curvature_of_independent_columns_is_diagonal(nodewise, scored):
    task = independent_table(nodewise, scored)
    theta = task.null.theta
    scale = IndependentScale.at(task.smooth, theta)
    up = np.array([scale.up(unit) for unit in np.eye(len(scale.values))])
    found = up @ task.smooth.curvature(theta).dense() @ up.T
    np.testing.assert_allclose(found, np.diag(scale.values), atol=1e-12)


@pytest.mark.parametrize("shape", [((3, 5, 2),), ((4, 5, 8, 9, 3), False, SCORED)])
def test_coordinates_and_gradients_go_there_and_back(shape):
    task = draw(3, 60, 2, *shape).task()
    rng = np.random.default_rng(0)
    scale = IndependentScale.at(task.smooth, task.null.theta)
    eta = rng.normal(size=len(scale.values))
    theta = scale.up(eta)
    np.testing.assert_allclose(scale.down(theta), eta, atol=1e-12)
    # The chain rule, by differences along every coordinate.
    grad = rng.normal(size=len(theta))
    slopes = [(scale.up(eta + unit) - theta) @ grad for unit in np.eye(len(eta))]
    np.testing.assert_allclose(scale.slope_down(grad), slopes, atol=1e-10)


def test_few_steps_where_columns_are_nearly_independent():
    """Without the scale, accelerated proximal gradient takes at least ten times as many."""
    rng = np.random.default_rng(0)
    Y = np.column_stack([rng.integers(0, 30, 2000), rng.integers(0, 30, 2000)])
    task = Table(rng.normal(size=(2000, 1)), Y, (30, 30)).task()
    problem = task.problem(0.7 * task.lam_max)
    start = Start(task.null.theta, task.null.evaluation)
    found = solve(problem, SpectralGradient(), start, tol=1e-6, max_iter=50)
    assert found.converged
    assert found.n_iter <= 15
    plain = solve(problem, ProximalGradient("nesterov-1983"), start, tol=1e-6, max_iter=2000)
    assert plain.n_iter >= 10 * found.n_iter
    assert edges_of(task, found.theta)
    assert found.objective == pytest.approx(
        solved(task, problem.lam, "newton-exact").objective, abs=1e-7
    )


def test_auto_leaves_very_many_levels_to_it():
    rng = np.random.default_rng(0)
    few = Table(rng.normal(size=(300, 1)), rng.integers(0, 5, (300, 2)), (5, 5)).task()
    codes = np.column_stack([np.arange(300) % 150, rng.integers(0, 5, 300)])
    many = Table(rng.normal(size=(300, 1)), codes, (150, 5)).task()
    ordered, counted = (
        Table(rng.normal(size=(300, 1)), codes, (150, 5), scored=(kind,)).task()
        for kind in (OrdinalKind(), CountKind())
    )
    kinds = (NewtonState, SpectralState, SpectralState, NewtonState)
    for task, kind in zip((few, many, ordered, counted), kinds, strict=True):
        here = task.null
        state = Auto().init(task.problem(0.5), here.theta, here.evaluation, 1e-5)
        assert isinstance(state, kind)
