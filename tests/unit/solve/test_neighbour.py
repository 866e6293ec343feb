"""Starts from a neighbouring problem: the same optimum, without curvature of one's own."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.inference.pairs import inverse_curvature
from mixedgm.path.task import Reference, prepare
from mixedgm.penalty.group_lasso import GroupLasso
from mixedgm.solve.choose import Auto
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.neighbour import Chord, Secant, SecantState, neighbour_of
from mixedgm.solve.problem import Problem
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.solve.working_set import Start, solve
from mixedgm.table.encode import learn
from tests.support.people import people
from tests.support.problems import SCORED, draw

LAM, TOL = 0.15, 1e-9


@pytest.fixture(scope="module", params=["people", "all-kinds"])
def whole(request):
    if request.param == "people":
        design, _ = learn(people(400, seed=2))
    else:
        design = draw(2, 400, 2, (4, 5, 20, 20, 3), scored=SCORED).design
    task = prepare(design)
    start = Start(task.null.theta, task.null.evaluation)
    return design, task, solve(task.problem(LAM), Auto(), start, tol=TOL, max_iter=200)


def reweighted(design, task, seed, spread):
    rng = np.random.default_rng(seed)
    weights = rng.gamma(1.0 / spread, spread, design.n_rows) + 1e-3
    reference = replace(Reference.of(design), layout=task.layout)
    return prepare(replace(design, weights=weights), reference=reference)


def cold(task):
    start = Start(task.null.theta, task.null.evaluation)
    return solve(task.problem(LAM), ProximalNewton("exact"), start, tol=TOL, max_iter=200)


def warm(task, solver, whole_task, theta):
    neighbour = neighbour_of(whole_task.problem(LAM), solver, theta)
    theta = task.theta_of(whole_task.params(theta))
    start = neighbour.start(theta, task.smooth.evaluate(theta), task.layout)
    return solve(task.problem(LAM), Chord(solver), start, tol=TOL, max_iter=2000)


@pytest.mark.parametrize(
    "solver", [Auto(), ProximalNewton(), ProximalNewton("limited-memory"), ProximalGradient()]
)
@pytest.mark.parametrize("spread", [0.01, 1.0, 20.0])
def test_near_and_far_problems_reach_their_own_optimum(whole, solver, spread):
    design, task, solution = whole
    other = reweighted(design, task, 1, spread)
    assert other.layout.same(task.layout)
    expected = cold(other)
    found = warm(other, solver, task, solution.theta)
    assert expected.converged
    assert found.converged
    assert np.abs(expected.theta - solution.theta).max() > 1e-3, "the problems do differ"
    np.testing.assert_allclose(found.theta, expected.theta, atol=1e-6)


def test_a_near_problem_needs_no_curvature_and_a_far_one_gets_it(whole):
    design, task, solution = whole
    near = warm(reweighted(design, task, 1, 0.01), Auto(), task, solution.theta)
    assert near.curvature_passes == 0.0
    assert 0 < near.n_iter < 12
    far = warm(reweighted(design, task, 1, 20.0), Auto(), task, solution.theta)
    assert far.curvature_passes > 0.0


def test_a_problem_on_another_layout_gets_a_plain_start(whole):
    design, task, solution = whole
    neighbour = neighbour_of(task.problem(LAM), Auto(), solution.theta)
    assert neighbour.memory is not None
    active = np.flatnonzero(task.layout.group_norms(solution.theta))
    assert set(active) <= set(neighbour.working)
    other = task.layout.restrict(np.arange(3))
    start = neighbour.start(solution.theta, solution.evaluation, other)
    assert start.memory is None
    assert start.working is None


def test_solvers_that_keep_no_curvature_have_none_in_memory(whole):
    _, task, solution = whole
    for solver in (ProximalGradient(), ProximalNewton("limited-memory")):
        assert neighbour_of(task.problem(LAM), solver, solution.theta).memory is None


# -- without penalty -------------------------------------------------------------------------------


def unpenalised(task):
    return Problem(task.smooth, GroupLasso.none(task.layout), 0.0, task.yardstick)


def free_solution(task, solver=None):
    start = Start(task.null.theta, task.null.evaluation)
    problem = unpenalised(task)
    return solve(problem, solver or ProximalNewton("exact"), start, tol=TOL, max_iter=200)


@pytest.mark.parametrize("spread", [0.01, 1.0, 5.0])
def test_secants_reach_the_optimum_without_penalty(whole, spread):
    design, task, _ = whole
    theta = free_solution(task).theta
    other = reweighted(design, task, 1, spread)
    expected = free_solution(other)
    solver = Secant(task.layout, inverse_curvature(task.smooth, theta), ProximalNewton("exact"))
    begin = other.theta_of(task.params(theta))
    start = Start(begin, other.smooth.evaluate(begin))
    found = solve(unpenalised(other), solver, start, tol=TOL, max_iter=200)
    assert expected.converged
    assert found.converged
    np.testing.assert_allclose(
        other.layout.centred(found.theta, np.arange(other.layout.n_groups)),
        other.layout.centred(expected.theta, np.arange(other.layout.n_groups)),
        atol=1e-5,
    )
    if spread == 0.01:
        assert found.curvature_passes == 0.0, "gradients are enough"
        assert found.n_iter < 15


def test_secants_know_which_groups_their_curvature_is_about(whole):
    """Another graph with as many parameters is another problem: its solver takes over."""
    _, task, _ = whole
    sizes, pairs = task.layout.sizes, task.layout.pairs
    same = [(a, b) for a in range(len(sizes)) for b in range(a) if sizes[a] == sizes[b]]
    here, there = (task.smooth.restrict(np.array([g])) for g in same[0])
    assert here.layout.n_theta == there.layout.n_theta
    inverse = np.eye(Contrasts(here.layout).reduced.n_theta)
    solver = Secant(here.layout, inverse, ProximalNewton("exact"))
    for small, expected in ((here, True), (there, False)):
        problem = Problem(small, GroupLasso.none(small.layout), 0.0, np.ones(1))
        theta = small.null()
        state = solver.init(problem, theta, small.evaluate(theta), TOL)
        assert isinstance(state, SecantState) == expected, pairs[list(same[0])]
