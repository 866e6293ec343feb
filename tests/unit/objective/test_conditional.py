"""The likelihood given covariates: one target, its domain, sampled curvature, sizes."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.base.errors import TooLargeError
from mixedgm.solve.choose import Auto
from mixedgm.solve.working_set import Start, solve
from tests.support.problems import SOLVERS, draw, random_theta, solved


def task_of(shape, covariates, loss="likelihood", seed=7):
    return replace(draw(seed, *shape), covariates=covariates).task(loss=loss)


def mixed():
    """Continuous columns 0 and 2 are targets, 1 is not."""
    return task_of((40, 3, (2, 3, 2), False), (1, 5)).smooth


def inside(layout, seed):
    theta = random_theta(layout, seed, 0.3)
    theta[layout.diagonal] += layout.n_gaussian * 0.5
    return theta


@pytest.mark.parametrize(
    ("shape", "covariates"),
    [((40, 2, (3, 2), True), (0, 1, 2)), ((30, 2, (3,), False), (1, 2))],
    ids=["binary", "continuous"],
)
def test_one_target_has_the_same_likelihood_and_pseudolikelihood(shape, covariates):
    losses = ("likelihood", "pseudolikelihood")
    joint, apart = (task_of(shape, covariates, loss).smooth for loss in losses)
    theta = inside(joint.layout, 6)
    a, b = joint.evaluate(theta), apart.evaluate(theta)
    assert a.value == pytest.approx(b.value, abs=1e-12)
    np.testing.assert_allclose(a.gradient, b.gradient, atol=1e-12)


def test_value_is_infinite_where_the_targets_precision_is_not_positive_definite():
    smooth = mixed()
    layout, theta = smooth.layout, smooth.null()
    pair = layout.starts[np.flatnonzero((layout.pairs == [0, 2]).all(axis=1))[0]]
    theta[pair] = 1.0 - 1e-8
    assert np.isfinite(smooth.evaluate(theta).value)
    for wrong in (1.0, 1.5, -2.0, np.inf, np.nan):
        theta[pair] = wrong
        assert smooth.evaluate(theta).value == np.inf
    theta = smooth.null()
    theta[layout.starts[np.flatnonzero((layout.pairs == [0, 1]).all(axis=1))[0]]] = 5.0
    assert np.isfinite(smooth.evaluate(theta).value)  # a regression on a covariate has no limit


def test_sampled_curvature_is_from_some_rows_and_positive_semidefinite():
    smooth = mixed()
    theta = inside(smooth.layout, 8)
    sampled, exact = (smooth.curvature(theta, stride).dense() for stride in (4, 1))
    assert 0.0 < np.abs(sampled - exact).max() < np.abs(exact).max()
    assert np.linalg.eigvalsh(sampled)[0] >= -1e-12


def test_too_many_joint_states_are_refused_with_columns_and_remedy():
    with pytest.raises(TooLargeError, match=r"15,625 joint states.*loss='pseudolikelihood'") as err:
        task_of((60, 1, (5,) * 6, False), (0,), seed=1)
    assert err.value.columns == (1, 2, 3, 4, 5, 6)


def test_auto_takes_limited_memory_where_the_curvature_is_too_large():
    """256 joint states times 18 columns."""
    task = task_of((80, 1, (4, 4, 4, 4, 17), False), (0, 5))
    assert task.smooth.curvature_rows == 0
    lam = 0.5 * task.lam_max
    start = Start(task.null.theta, task.null.evaluation, task.lam_max)
    found = solve(task.problem(lam), Auto(), start, tol=1e-6, max_iter=500)
    assert found.converged
    assert found.curvature_passes == 0.0
    best = solved(task, lam, "gradient-nesterov-1983", tol=1e-6)
    assert found.objective == pytest.approx(best.objective, abs=1e-9)
    with pytest.raises(TooLargeError, match="limited-memory"):
        solve(task.problem(lam), SOLVERS["newton-sampled"], start, tol=1e-6, max_iter=10)
