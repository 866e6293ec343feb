"""What a run of proximal Newton leaves to the next lam, and what that saves."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.path.path import solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.solve.choose import Auto
from mixedgm.solve.proximal_newton import ProximalNewton, Remembered
from mixedgm.solve.working_set import Start, solve
from tests.support.problems import SCORED, Table, draw, random_theta

TABLE = draw(5, 400, 4, (4, 5, 8, 9, 3, 2), False, SCORED)


def test_a_miss_grows_with_the_square_of_the_way() -> None:
    whole = TABLE.task().problem(0.2)
    groups = np.arange(0, whole.smooth.layout.n_groups, 2)
    problem = whole.restrict(groups)
    layout = problem.smooth.layout
    theta, expected = random_theta(layout, 1), random_theta(layout, 2)
    theta[layout.starts[0] : layout.starts[1]] = 0.0
    remembered = Remembered(0.3, 0.5, (problem.index, expected))
    miss = remembered.miss(problem, theta)
    wanted = 0.25 * (theta - expected)
    wanted[layout.starts[0] : layout.starts[1]] = 0.0
    np.testing.assert_allclose(miss, wanted, atol=1e-15)
    # Of groups that were not in the first model nothing is known.
    fewer = whole.restrict(groups[1:])
    other = Remembered(0.3, 0.5, (fewer.index, random_theta(fewer.smooth.layout, 2)))
    missing = np.isin(problem.index, fewer.index, invert=True)
    assert missing.any()
    np.testing.assert_array_equal(other.miss(problem, theta)[missing], 0.0)


@pytest.mark.parametrize(
    ("before", "lam", "problem_lam"), [(None, 0.3, 0.2), (0.5, 0.3, 0.3), (0.3, 0.25, 0.1)]
)
def test_nothing_is_missed_without_a_step_like_the_last_one(before, lam, problem_lam) -> None:
    problem = TABLE.task().problem(problem_lam)
    theta = random_theta(problem.smooth.layout, 1)
    assert (
        Remembered(lam, before, (np.arange(len(theta)), 0.5 * theta)).miss(problem, theta) is None
    )


def path(lams, *, forgetful):
    task = TABLE.task()
    here, solutions = replace(task.null, lam=task.lam_max), []
    for lam in lams * task.lam_max:
        if forgetful:
            here = replace(here, memory=None)
        done = solve(task.problem(lam), ProximalNewton(), here, tol=1e-7, max_iter=100)
        here = Start(done.theta, done.evaluation, lam, done.memory)
        solutions.append(done)
    return solutions


def test_what_was_missed_before_saves_steps_along_a_path() -> None:
    lams = 0.85 ** np.arange(1, 16)
    runs = [path(lams, forgetful=forgetful) for forgetful in (False, True)]
    for one, other in zip(*runs, strict=True):
        assert max(one.kkt, other.kkt) <= 1e-7
        assert one.objective == pytest.approx(other.objective, abs=1e-11)
    steps = [sum(done.n_iter for done in run) for run in runs]
    first = [np.mean([done.trace[1].kkt / done.trace[0].kkt for done in run]) for run in runs]
    assert steps[0] < steps[1]
    assert first[0] < 0.8 * first[1]


def test_steps_correct_curvature_so_that_a_lam_visits_few_rows_for_it() -> None:
    solutions = path(0.85 ** np.arange(1, 16), forgetful=False)
    assert max(done.curvature_passes for done in solutions) <= 1.0 + 1e-9
    assert np.median([done.n_iter for done in solutions]) <= 4


def test_two_lams_that_needed_more_rows_are_enough_to_know() -> None:
    once = replace(Remembered(0.5), strides=(8.0, 2.0)).at(0.4)
    assert once.strides == (2.0, np.inf)
    assert replace(once, strides=(2.0, 8.0)).enough == 8.0
    assert replace(once, strides=(2.0, 1.0)).enough == 2.0


@pytest.mark.parametrize("n_rows", [2000, 12000])
def test_rows_in_turns_take_about_as_many_passes_as_in_any_order(n_rows) -> None:
    """A sample of every second row sees one of two levels only."""
    rng = np.random.default_rng(0)
    wave, person = np.arange(n_rows) % 2, np.repeat(rng.normal(size=n_rows // 2), 2)

    def answers(logit):
        return (logit + rng.logistic(size=n_rows) > 0).astype(np.int64)

    X = np.column_stack([person + 0.6 * wave, 0.5 * person]) + rng.normal(size=(n_rows, 2))
    codes = [wave, answers(person + 0.9 * wave), answers(0.7 * person - 0.8 * wave)]
    passes = []
    for order in (np.arange(n_rows), rng.permutation(n_rows)):
        task = Table(X[order], np.column_stack(codes)[order], (2, 2, 2)).task()
        lams = np.geomspace(1.0, 0.05, 30) * task.lam_max
        path = solve_path(task, lams, Recipe(Auto(), 1e-5, 1000))
        assert path.converged.all()
        passes.append(path.passes.sum())
    assert passes[0] <= 1.5 * passes[1]
