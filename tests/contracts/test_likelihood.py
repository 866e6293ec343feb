"""The likelihood as a smooth function: value by enumeration, derivatives by differences, domain."""

from dataclasses import dataclass

import numpy as np
import pytest

from mixedgm.errors import ParameterError, TooLargeError
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import from_theta
from mixedgm.objective.likelihood import Likelihood
from mixedgm.penalty.group_lasso import GroupLasso
from mixedgm.rows.contract import Moments
from mixedgm.solve.choose import Auto
from mixedgm.solve.loop import Status, run
from mixedgm.solve.problem import Problem
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.solve.working_set import Start, solve
from tests.reference import likelihood as reference
from tests.support.problems import SOLVERS, draw, random_theta, solved

# Rows, continuous columns, levels, weighted.
TABLES = {
    "mixed": (40, 2, (2, 3), False),
    "mixed-weighted": (40, 3, (2, 2), True),
    "many-levels": (45, 1, (2, 4, 5), False),
    "continuous": (30, 4, (), False),
    "categorical": (40, 0, (2, 3, 4), True),
}
SETS = {"full": None, "every-second": 2, "no-group": 10_000}


@dataclass(eq=False)
class Case:
    smooth: Likelihood
    rows: reference.Rows

    def theta(self, seed):
        """A point with every parameter in use, inside the domain."""
        layout = self.smooth.layout
        theta = random_theta(layout, seed, 0.3)
        theta[layout.diagonal] += layout.n_gaussian * 0.5
        return theta


@pytest.fixture(params=[(name, which) for name in TABLES for which in SETS], ids="-".join)
def case(request):
    name, which = request.param
    table = draw(7, *TABLES[name])
    smooth = table.task(loss="likelihood").smooth
    if SETS[which] is not None:
        smooth = smooth.restrict(np.arange(smooth.layout.n_groups)[SETS[which] - 1 :: SETS[which]])
    rows = reference.rows_of(table.X, table.Y, table.n_levels, table.row_weights)
    return Case(smooth, rows)


def test_value_is_that_of_the_enumerated_states(case):
    theta = case.theta(1)
    expected = reference.loss(from_theta(case.smooth.layout, theta), case.rows)
    assert case.smooth.evaluate(theta).value == pytest.approx(expected, abs=1e-10)
    assert case.smooth.evaluate(theta, gradient=False).value == pytest.approx(expected, abs=1e-10)


def test_gradient_equals_central_differences_of_the_value(case):
    theta, step = case.theta(2), 1e-5
    found = case.smooth.evaluate(theta).gradient
    for k, one in enumerate(np.eye(len(theta)) * step):
        up = case.smooth.evaluate(theta + one, gradient=False).value
        down = case.smooth.evaluate(theta - one, gradient=False).value
        assert found[k] == pytest.approx((up - down) / (2 * step), abs=1e-8)


def test_curvature_equals_central_differences_of_the_gradient(case):
    theta, step = case.theta(3), 1e-5
    curvature = case.smooth.curvature(theta)
    hessian = curvature.dense()
    for k, one in enumerate(np.eye(len(theta)) * step):
        up = case.smooth.evaluate(theta + one).gradient
        down = case.smooth.evaluate(theta - one).gradient
        np.testing.assert_allclose(hessian[k], (up - down) / (2 * step), atol=1e-8)
    delta = np.random.default_rng(0).normal(size=len(theta))
    np.testing.assert_allclose(curvature.product(delta), hessian @ delta, atol=1e-12)
    assert curvature.variance_of(delta) == pytest.approx(delta @ hessian @ delta, rel=1e-10)


def test_null_is_the_optimum_without_edges(case):
    theta = case.smooth.null()
    grad = case.smooth.evaluate(theta).gradient
    np.testing.assert_allclose(grad[: case.smooth.layout.n_node_terms], 0.0, atol=1e-13)


def test_a_restriction_has_the_value_and_gradient_of_the_whole(case):
    groups = np.arange(0, case.smooth.layout.n_groups, 2)
    index = case.smooth.layout.positions(groups)
    theta = case.theta(4)
    small = case.smooth.restrict(groups)
    whole = np.zeros_like(theta)
    whole[index] = theta[index]
    here, there = small.evaluate(theta[index]), case.smooth.evaluate(whole)
    assert here.value == pytest.approx(there.value, abs=1e-12)
    np.testing.assert_allclose(here.gradient, there.gradient[index], atol=1e-12)


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


def test_counters_count_evaluations_and_no_passes():
    smooth = draw(7, 30, 2, (2,)).task(loss="likelihood").smooth
    small = smooth.restrict(np.array([0]))
    before = smooth.effort.evaluations
    smooth.evaluate(smooth.null())
    small.evaluate(small.null(), gradient=False)
    assert smooth.effort.evaluations - before == 1.5
    assert (smooth.passes, smooth.curvature_passes) == (0.0, 0.0)
    assert smooth.part_seconds[0] > 0.0
    assert smooth.terms_per_edge == 1


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
    smooth = Likelihood(layout, Moments(100.0, np.full(40, 0.5), second), 100)
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
    smooth = Likelihood(layout, Moments(100.0, mean, second), 100)
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


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_solvers_reach_the_same_certified_optimum(task, solver):
    lam = 0.1 * task.lam_max
    best = solved(task, lam, "newton-exact", tol=1e-9)
    found = solved(task, lam, solver, tol=1e-6)
    assert found.converged, found.status.value
    assert found.kkt == task.problem(lam).certificate(found.theta).kkt
    assert found.objective == pytest.approx(best.objective, abs=1e-9)
    np.testing.assert_allclose(found.theta, best.theta, atol=1e-4)
    np.testing.assert_array_equal(solved(task, lam, solver, tol=1e-6).theta, found.theta)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solve_that_is_cut_short_returns_a_distribution(solver):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 1)) + 0.05 * rng.normal(size=(40, 4))
    table = draw(1, 40, 4, (2,))
    task = type(table)(x, table.Y, (2,)).task(loss="likelihood")
    solution = solved(task, 1e-3 * task.lam_max, solver, max_iter=3)
    assert solution.status is Status.ITERATION_LIMIT
    assert np.isfinite(solution.objective)
    assert solution.kkt == task.problem(1e-3 * task.lam_max).certificate(solution.theta).kkt


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
