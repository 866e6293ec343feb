"""The likelihood: its domain, sampled curvature, and graphs that are too dense."""

import numpy as np
import pytest

from mixedgm.base.errors import ParameterError, TooLargeError
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.objective.likelihood import Likelihood
from mixedgm.penalty.group_lasso import GroupLasso
from mixedgm.rows.contract import Moments
from mixedgm.solve.choose import Auto
from mixedgm.solve.loop import Status, run
from mixedgm.solve.problem import Problem
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.solve.working_set import Start, solve
from tests.support.problems import draw, random_theta


def test_value_is_infinite_where_the_precision_is_not_positive_definite():
    smooth = draw(7, 30, 2, (2,)).task(loss="likelihood").smooth
    theta = smooth.null()
    theta[smooth.layout.starts[0]] = 1.0 - 1e-8  # minus the precision of the two columns
    assert np.isfinite(smooth.evaluate(theta).value)
    for wrong in (1.0, 1.5, -2.0, np.inf, np.nan):
        theta[smooth.layout.starts[0]] = wrong
        assert smooth.evaluate(theta).value == np.inf
    theta[smooth.layout.starts[0]], theta[smooth.layout.diagonal] = 0.0, -1.0
    assert smooth.evaluate(theta).value == np.inf


def test_the_variance_of_one_combination_is_that_of_the_matrix():
    smooth = draw(7, 60, 2, (3, 2)).task(loss="likelihood").smooth
    theta = 0.3 * random_theta(smooth.layout, 1)
    theta[smooth.layout.diagonal] = 1.0
    curvature = smooth.curvature(theta)
    for delta in np.random.default_rng(0).normal(size=(3, len(theta))):
        assert curvature.variance_of(delta) == pytest.approx(delta @ curvature.dense() @ delta)


# --- sampled curvature -------------------------------------------------------------------------


def test_curvature_from_draws_is_near_the_exact_one():
    """Statistical in nature, but the draws have a fixed seed."""
    smooth = draw(7, 90, 2, (3,) * 7).task(loss="likelihood").smooth
    theta = 0.2 * random_theta(smooth.layout, 1)
    theta[smooth.layout.diagonal] = 1.0
    exact, sampled = (smooth.curvature(theta, stride).dense() for stride in (1, 2))
    scale = np.sqrt(np.diag(exact))
    off = np.abs(sampled - exact) / np.outer(scale, scale)
    n_draws = 3**7 // 2
    assert 0.0 < np.median(off) < 2.0 / np.sqrt(n_draws)
    # Six standard errors of a correlation, and of a variance with the margin that is added.
    assert off.max() < 6.0 * np.sqrt(2.0 / n_draws) + 1.0 / np.sqrt(n_draws * 0.02)
    np.testing.assert_array_equal(smooth.curvature(theta, 2).dense(), sampled)


def test_cells_that_are_never_drawn_still_have_curvature():
    smooth = draw(7, 90, 0, (3,) * 7).task(loss="likelihood").smooth
    theta = smooth.null()
    theta[smooth.layout.biases][0] -= 12.0
    sampled = smooth.curvature(theta, stride=100)
    assert not (sampled.codes[:, 0] == 0).any()
    own = sampled.dense()[smooth.layout.starts[0], smooth.layout.starts[0]]
    assert own > smooth.curvature(theta).dense()[smooth.layout.starts[0], smooth.layout.starts[0]]


def test_exact_curvature_is_refused_where_there_are_too_many_states():
    layout = Layout(Nodes.mixed(0, (2,) * 20), np.array([[0, 1]]))
    second = np.full((40, 40), 0.25)
    for j in range(20):
        second[2 * j : 2 * j + 2, 2 * j : 2 * j + 2] = np.diag([0.5, 0.5])
    second[:2, 2:4] = second[2:4, :2] = [[0.4, 0.1], [0.1, 0.4]]
    smooth = Likelihood(layout, Moments(100.0, np.full(40, 0.5), second, np.full(40, 0.5)), 100)
    assert not smooth.exact_curvature
    problem = Problem(smooth, GroupLasso(layout, np.ones(1)), 0.01, np.ones(1))
    start = smooth.null(), smooth.evaluate(smooth.null())
    with pytest.raises(ParameterError, match=r"hessian='exact' .* use hessian='sampled'"):
        ProximalNewton("exact").init(problem, *start, 1e-5)
    found = run(problem, ProximalNewton(), start, tol=1e-7, max_iter=50)
    assert found.status is Status.CONVERGED


def test_a_graph_that_is_too_dense_is_an_error_with_columns_and_remedies():
    layout = Layout.complete(Nodes.mixed(1, (2,) * 30))
    mean = np.concatenate([[0.0], np.full(60, 0.5)])
    second = np.zeros((61, 61))
    second[0, 0] = 1.0
    smooth = Likelihood(layout, Moments(100.0, mean, second, mean[1:]), 100)
    theta = smooth.null()
    assert np.isfinite(smooth.evaluate(theta).value)
    theta[layout.edges] = 0.01
    with pytest.raises(TooLargeError, match="loss='likelihood-mc'.*larger lam.*forbid") as caught:
        smooth.evaluate(theta)
    assert len(caught.value.columns) > 20
    assert min(caught.value.columns) >= 1


# --- solvers -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task():
    return draw(3, 80, 3, (2, 3), True).task(loss="likelihood")


def test_auto_takes_limited_memory_curvature_where_the_matrix_is_large(task):
    lam = 0.1 * task.lam_max
    start = Start(task.null.theta, task.null.evaluation, task.lam_max)
    small, large = (
        solve(task.problem(lam), Auto(limit_whole=limit), start, tol=1e-6, max_iter=500)
        for limit in (1500, 3)
    )
    assert small.converged
    assert large.converged
    assert large.n_iter > 2 * small.n_iter
    assert small.objective == pytest.approx(large.objective, abs=1e-9)
