"""The likelihood given covariates as a smooth function: rows normalised one by one, differences."""

from dataclasses import dataclass

import numpy as np
import pytest

from mixedgm.errors import TooLargeError
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import from_theta
from mixedgm.objective import conditional
from mixedgm.objective.conditional import ConditionalLikelihood
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.penalty.group_lasso import GroupLasso
from mixedgm.rows.memory import MemoryRows
from mixedgm.solve.choose import Auto
from mixedgm.solve.problem import Problem
from mixedgm.solve.working_set import Start, solve
from tests.reference import conditional as reference
from tests.reference.likelihood import rows_of
from tests.support.problems import SOLVERS, draw, random_theta

# Rows, continuous columns, levels, weighted; covariates by node.
TABLES = {
    "mixed": ((40, 3, (2, 3, 2), False), (1, 5)),
    "weighted": ((40, 3, (2, 3, 2), True), (0, 4)),
    "continuous-targets": ((30, 4, (3, 2), True), (0, 4, 5)),
    "categorical-targets": ((40, 2, (2, 3, 2), False), (0, 1, 4)),
    "one-binary-target": ((40, 2, (3, 2), True), (0, 1, 2)),
    "one-continuous-target": ((30, 2, (3,), False), (1, 2)),
    "continuous-covariates": ((30, 3, (2, 2), False), (0, 2)),
    "many-states": ((45, 1, (4, 5, 3), False), (3,)),
}
SETS = {"full": None, "every-second": 2, "no-group": 10_000}


@dataclass(eq=False)
class Case:
    smooth: ConditionalLikelihood
    split: reference.Split

    def theta(self, seed):
        """A point with every parameter in use, inside the domain."""
        layout = self.smooth.layout
        theta = random_theta(layout, seed, 0.3)
        theta[layout.diagonal] += layout.n_gaussian * 0.5
        return theta


def make(name):
    shape, covariates = TABLES[name]
    table = draw(7, *shape)
    split = reference.Split(
        rows_of(table.X, table.Y, table.n_levels, table.row_weights), covariates
    )
    X = np.ascontiguousarray(split.rows.X)
    rows = MemoryRows(X, table.design.codes, table.n_levels, table.row_weights)
    layout = Layout.complete(Nodes.mixed(table.n_gaussian, table.n_levels), covariates=covariates)
    return rows, Case(ConditionalLikelihood.of(layout, rows.moments(), rows), split)


@pytest.fixture(params=[(name, which) for name in TABLES for which in SETS], ids="-".join)
def case(request):
    name, which = request.param
    _, found = make(name)
    if SETS[which] is not None:
        groups = np.arange(found.smooth.layout.n_groups)[SETS[which] - 1 :: SETS[which]]
        found.smooth = found.smooth.restrict(groups)
    return found


def test_value_is_that_of_rows_normalised_one_by_one(case):
    theta = case.theta(1)
    expected = reference.loss(from_theta(case.smooth.layout, theta), case.split)
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
    assert np.linalg.eigvalsh(hessian)[0] >= -1e-12


def test_curvature_after_an_evaluation_is_that_without_one(case):
    theta = case.theta(4)
    fresh = case.smooth.curvature(theta).dense()
    case.smooth.evaluate(theta)
    np.testing.assert_array_equal(case.smooth.curvature(theta).dense(), fresh)


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
    wide = case.smooth.curvature(whole).dense()[np.ix_(index, index)]
    np.testing.assert_allclose(small.curvature(theta[index]).dense(), wide, atol=1e-12)


def test_nothing_depends_on_the_own_terms_of_covariates(case):
    layout, theta = case.smooth.layout, case.theta(5)
    other = theta.copy()
    for node in layout.covariates:
        other[layout.node_terms_of(node)] += 0.7
    a, b = case.smooth.evaluate(theta), case.smooth.evaluate(other)
    assert a.value == b.value
    np.testing.assert_array_equal(a.gradient, b.gradient)
    inert = np.concatenate([layout.node_terms_of(node) for node in layout.covariates])
    assert not a.gradient[inert].any()
    assert not case.smooth.curvature(theta).dense()[inert].any()


@pytest.mark.parametrize("name", ["one-binary-target", "one-continuous-target"])
def test_one_target_has_the_same_likelihood_and_pseudolikelihood(name):
    rows, case = make(name)
    conditionals = Pseudolikelihood(rows, case.smooth.layout, rows.moments())
    theta = case.theta(6)
    a, b = case.smooth.evaluate(theta), conditionals.evaluate(theta)
    assert a.value == pytest.approx(b.value, abs=1e-12)
    np.testing.assert_allclose(a.gradient, b.gradient, atol=1e-12)


def test_value_is_infinite_where_the_targets_precision_is_not_positive_definite():
    _, case = make("mixed")  # continuous columns 0 and 2 are targets, 1 is not
    layout, smooth = case.smooth.layout, case.smooth
    theta = smooth.null()
    pair = layout.starts[np.flatnonzero((layout.pairs == [0, 2]).all(axis=1))[0]]
    theta[pair] = 1.0 - 1e-8
    assert np.isfinite(smooth.evaluate(theta).value)
    for wrong in (1.0, 1.5, -2.0, np.inf, np.nan):
        theta[pair] = wrong
        assert smooth.evaluate(theta).value == np.inf
    theta = smooth.null()
    theta[layout.starts[np.flatnonzero((layout.pairs == [0, 1]).all(axis=1))[0]]] = 5.0
    assert np.isfinite(smooth.evaluate(theta).value)  # a regression on a covariate has no limit
    theta[layout.diagonal] = -1.0
    assert smooth.evaluate(theta).value == np.inf


def test_extreme_logits_stay_finite_and_right():
    _, case = make("mixed")
    theta = case.theta(9)
    theta[case.smooth.layout.biases] = [800.0, -800.0, 0.0, 400.0, -799.0, 0.0, 0.0]
    here = case.smooth.evaluate(theta)
    expected = reference.loss(from_theta(case.smooth.layout, theta), case.split)
    assert here.value == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(here.gradient).all()
    assert np.isfinite(case.smooth.curvature(theta).dense()).all()


def test_sampled_curvature_is_from_some_rows_and_positive_semidefinite():
    _, case = make("mixed")
    theta = case.theta(8)
    before = case.smooth.curvature_passes
    sampled, exact = (case.smooth.curvature(theta, stride).dense() for stride in (4, 1))
    assert case.smooth.curvature_passes > before
    assert 0.0 < np.abs(sampled - exact).max() < np.abs(exact).max()
    assert np.linalg.eigvalsh(sampled)[0] >= -1e-12


def test_counters_count_passes_with_those_of_restrictions():
    _, case = make("mixed")
    smooth, small = case.smooth, case.smooth.restrict(np.array([0]))
    before = smooth.passes
    smooth.evaluate(smooth.null())
    small.evaluate(small.null(), gradient=False)
    assert smooth.passes - before == 1.5
    assert smooth.effort.evaluations == 1.5
    assert smooth.part_seconds[0] > 0.0
    assert (smooth.terms_per_edge, smooth.n_rows) == (1, 40)


def test_continuous_targets_need_no_pass():
    _, case = make("continuous-targets")
    case.smooth.evaluate(case.theta(1))
    case.smooth.curvature(case.theta(1)).dense()
    assert (case.smooth.passes, case.smooth.curvature_passes) == (0.0, 0.0)


def test_too_many_joint_states_are_refused_with_columns_and_remedy():
    table = draw(1, 60, 1, (5,) * 6)
    layout = Layout.complete(Nodes.mixed(1, table.n_levels), covariates=(0,))
    rows = MemoryRows(table.X, table.design.codes, table.n_levels)
    with pytest.raises(TooLargeError, match=r"15,625 joint states.*loss='pseudolikelihood'") as err:
        ConditionalLikelihood.of(layout, rows.moments(), rows)
    assert err.value.columns == (1, 2, 3, 4, 5, 6)


# --- solvers -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def smooth():
    return make("weighted")[1].smooth


def problem_of(smooth, lam):
    ones = np.ones(smooth.layout.n_groups)
    return Problem(smooth, GroupLasso(smooth.layout, ones), lam, ones)


def solution(smooth, lam, solver, tol=1e-8):
    null = smooth.null()
    return solve(
        problem_of(smooth, lam), solver, Start(null, smooth.evaluate(null)), tol=tol, max_iter=20000
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_solvers_reach_the_same_certified_optimum(smooth, solver):
    best = solution(smooth, 0.03, SOLVERS["newton-exact"], tol=1e-9)
    found = solution(smooth, 0.03, SOLVERS[solver], tol=1e-6)
    assert found.converged, found.status.value
    assert found.kkt == problem_of(smooth, 0.03).certificate(found.theta).kkt
    assert found.objective == pytest.approx(best.objective, abs=1e-9)
    np.testing.assert_allclose(found.theta, best.theta, atol=1e-4)


def test_auto_takes_limited_memory_where_the_curvature_is_too_large(smooth, monkeypatch):
    best = solution(smooth, 0.03, Auto())
    monkeypatch.setattr(conditional, "_LARGEST", 10)
    assert smooth.curvature_rows == 0
    found = solution(smooth, 0.03, Auto(), tol=1e-6)
    assert found.converged
    assert found.n_iter > best.n_iter
    assert found.objective == pytest.approx(best.objective, abs=1e-9)
    with pytest.raises(TooLargeError, match="limited-memory"):
        solution(smooth, 0.03, SOLVERS["newton-sampled"])
