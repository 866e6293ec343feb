"""The certificate measures optimality at any point, by itself and independent of solvers."""

from functools import cache

import numpy as np
import pytest

from tests.reference import optimality, plain, problems
from tests.support import dense
from tests.support.problems import Table, random_theta

NAMES = ("mixed-calibrated-0.3", "mixed-uniform-0.3", "row-weights-mixed", "bad-units-uniform")


@cache
def task_of(name):
    known = problems.get(name)
    table = Table(known.X, known.Y, known.n_levels, known.row_weights)
    return table.task(weights=known.weights, factors=known.factors)


def point(task, seed):
    """A point with half of the edges."""
    theta = random_theta(task.layout, seed, 0.2)
    absent = np.random.default_rng(seed).random(task.layout.n_groups) < 0.5
    theta[task.layout.edges] *= ~task.layout.spread(absent.astype(float)).astype(bool)
    return theta


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 1])
def test_certificate_anywhere_is_that_of_the_loops(name, seed):
    known, task = problems.get(name), task_of(name)
    theta = point(task, seed)
    found = task.problem(known.lam).optimality(theta)
    data = known.X, known.Y, known.lam, known.edge_weights, known.row_weights
    params = task.params(theta)
    assert found.kkt == pytest.approx(optimality.certificate(params, *data).kkt, rel=1e-7)
    own = found.objective + task.log_jacobian
    assert own == pytest.approx(plain.objective(params, *data), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_dense_formulas_agree_with_the_loops(name):
    """The matrix form that large tables are checked with is right itself."""
    known, task = problems.get(name), task_of(name)
    params = task.params(point(task, 3))
    loops = optimality.certificate(
        params, known.X, known.Y, known.lam, known.edge_weights, known.row_weights
    )
    found = dense.kkt(params, known.X, known.Y, known.lam, known.row_weights, known.edge_weights)
    assert found == pytest.approx(loops.kkt, rel=1e-7)


def test_restricted_problem_measures_its_own_groups():
    task = task_of("mixed-calibrated-0.3")
    problem = task.problem(0.2)
    groups = np.array([0, 3, 5])
    index = task.layout.positions(groups)
    theta = np.zeros(task.layout.n_theta)
    theta[index] = random_theta(task.layout, 4)[index]
    full, small = problem.optimality(theta), problem.restrict(groups).optimality(theta[index])
    assert small.objective == pytest.approx(full.objective, abs=1e-12)
    np.testing.assert_allclose(small.edge_distance, full.edge_distance[groups], atol=1e-12)


def test_node_terms_count_too():
    task = task_of("mixed-calibrated-0.3")
    problem = task.problem(2 * task.lam_max)
    assert problem.optimality(task.null.theta).kkt <= 1e-12
    moved = task.null.theta.copy()
    moved[0] += 0.25
    assert problem.optimality(moved).kkt == pytest.approx(0.25)


@pytest.mark.parametrize("where", ["node terms", "edges", "one edge"])
def test_a_gradient_that_is_not_a_number_is_never_optimal(where):
    """max(0, nan) is 0 in some languages: a certificate must not come out of it."""
    task = task_of("mixed-calibrated-0.3")
    problem, theta = task.problem(1e6), task.null.theta
    grad = np.zeros(task.layout.n_theta)
    at = {"node terms": 0, "edges": task.layout.edges, "one edge": -1}[where]
    assert problem.measure(theta, grad) == 0.0
    grad[at] = np.nan
    assert np.isnan(problem.measure(theta, grad))
