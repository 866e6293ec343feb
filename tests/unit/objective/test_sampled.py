"""The likelihood from Gibbs chains, and its solver: against exact elimination, within the errors.

Seeds are fixed, so a test passes always or never; where another seed is taken, or the order of
random numbers changes, it may fail at the rate stated.
"""

import numpy as np
import pytest

from mixedgm.base.errors import ParameterError
from mixedgm.path.path import geometric_lams, solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.solve.choose import Auto
from mixedgm.solve.loop import Status
from mixedgm.solve.monte_carlo import MonteCarlo
from tests.support.problems import draw, random_theta

FAST = MonteCarlo(accuracy=0.01)


def task_of(table, seed=0, solver=FAST, **options):
    seeds = np.random.SeedSequence(seed)
    return table.task(loss="likelihood-mc", solver=solver, seed=seeds, **options)


def inside(layout, seed):
    theta = random_theta(layout, seed, 0.3)
    theta[layout.diagonal] += 0.5 * layout.n_gaussian
    return theta


@pytest.mark.statistical
def test_gradient_is_that_of_elimination_within_its_standard_errors():
    """Of 100 seeds, fewer than one would exceed 4.5 standard errors in one of 60 entries."""
    table = draw(7, 60, 2, (2, 3, 2))
    exact, sampled = table.task(loss="likelihood").smooth, task_of(table).smooth
    theta = inside(exact.layout, 1)
    found = sampled.estimate(theta, 400)
    off = (found.grad - exact.evaluate(theta).gradient) / found.error
    assert np.abs(off).max() < 4.5
    assert 0.5 < np.sqrt(np.mean(off**2)) < 1.5
    # 512 chains of 400 sweeps: about as good as a tenth as many independent draws, or better.
    hessian = exact.curvature(theta).dense()
    assert np.all(found.error < np.sqrt(10.0 * np.diag(hessian) / (512 * 400)) + 1e-12)


@pytest.mark.statistical
def test_curvature_of_the_visited_states_is_near_the_exact_one():
    """A correlation that is off by more than 0.15 is seven standard errors."""
    table = draw(7, 60, 2, (2, 3, 2))
    exact, sampled = table.task(loss="likelihood").smooth, task_of(table).smooth
    theta = inside(exact.layout, 1)
    hessian = exact.curvature(theta).dense()
    scale = np.sqrt(np.diag(hessian))
    off = sampled.estimate(theta, 50).curvature.dense() - hessian
    assert np.abs(off / np.outer(scale, scale)).max() < 0.15


def test_without_edges_everything_is_exact():
    table = draw(7, 60, 2, (2, 3))
    task, exact = task_of(table), table.task(loss="likelihood")
    assert task.lam_max == exact.lam_max
    theta = task.smooth.null()
    assert task.smooth.evaluate(theta).value == exact.smooth.evaluate(theta).value
    theta[task.layout.starts[0]] = 5.0
    assert task.smooth.evaluate(theta).value == np.inf
    assert not task.smooth.valid(theta)


@pytest.mark.statistical
def test_a_path_is_that_of_elimination_within_the_stated_errors():
    """Five standard errors of a KKT number or an objective; about one failure in 10,000 seeds."""
    table = draw(3, 150, 2, (2, 3, 2), True)
    task, exact = task_of(table), table.task(loss="likelihood")
    lams = geometric_lams(task.lam_max, 4, 0.1)
    path = solve_path(task, lams, Recipe(FAST, 1e-5, 100))
    best = solve_path(exact, lams, Recipe(Auto(), 1e-7, 200))
    assert path.loss == "likelihood-mc"
    assert path.converged.all()
    for k, (point, optimum) in enumerate(zip(path.points, best.points, strict=True)):
        true = exact.problem(point.lam).optimality(path.theta(k))
        objective = true.objective + exact.log_jacobian
        assert point.objective == pytest.approx(objective, abs=5 * point.objective_error + 1e-12)
        # Each estimate errs by one standard error, and the point was placed by another estimate.
        assert true.kkt <= 5 * FAST.accuracy
        assert 0.0 <= objective - optimum.objective < 1e-3
        if k:
            assert point.status is Status.WITHIN_ERROR
            assert 0.0 < point.kkt_error <= FAST.accuracy
            assert "standard error" in point.notes[-1]


def test_equal_seeds_give_equal_results_and_others_do_not():
    table = draw(3, 80, 1, (2, 2))

    def theta(seed):
        task = task_of(table, seed)
        return solve_path(task, np.array([0.1]), Recipe(FAST, 1e-5, 20)).theta(0)

    np.testing.assert_array_equal(theta(1), theta(1))
    assert not np.array_equal(theta(1), theta(2))


def test_limits_are_named():
    table = draw(3, 80, 1, (2, 2))
    short = MonteCarlo(accuracy=1e-4, max_sweeps=300)
    path = solve_path(task_of(table), np.array([0.1]), Recipe(short, 1e-5, 100))
    assert path.points[0].status is Status.SAMPLING_LIMIT
    assert not path.converged[0]
    path = solve_path(task_of(table), np.array([0.1]), Recipe(short, 1e-5, 1))
    assert path.points[0].status is Status.ITERATION_LIMIT
    with pytest.raises(ParameterError, match="for loss='likelihood-mc' only"):
        solve_path(table.task(), np.array([0.1]), Recipe(short, 1e-5, 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accuracy": 0.0}, r"accuracy must be a number in \(0, 1\)"),
        ({"n_chains": 100}, "n_chains must be a positive multiple of 64"),
        ({"max_sweeps": 0}, "max_sweeps must be a positive integer"),
    ],
)
def test_impossible_options_are_named(options, message):
    with pytest.raises(ParameterError, match=message):
        MonteCarlo(**options)
