"""A solve from far away goes in stages: the same solution, from much smaller working sets."""

import numpy as np
import pytest

from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.solve.working_set import Start, solve
from tests.support.problems import SOLVERS, Table, draw

TOL = 1e-7


@pytest.fixture(scope="module")
def task():
    """All columns share one hidden cause: without edges, nearly all pairs are related."""
    return draw(8, 300, 22, (2, 3, 2, 3, 2, 2), False).task()


def from_nothing(task, share, solver=None, *, stages=True, **options):
    """A start that says which lam it solves is far away where more than 200 groups enter."""
    start = Start(task.null.theta, task.null.evaluation, task.lam_max if stages else None)
    problem = task.problem(share * task.lam_max)
    return solve(
        problem, solver or ProximalNewton(), start, **{"tol": TOL, "max_iter": 5000, **options}
    )


class Noting:
    """Newton steps, with the sizes of all working sets."""

    def __init__(self):
        self.sizes = []

    def init(self, problem, *start):
        self.sizes.append(problem.smooth.layout.n_groups)
        return ProximalNewton().init(problem, *start)

    def step(self, problem, state):
        return ProximalNewton().step(problem, state)


@pytest.mark.parametrize("name", SOLVERS)
def test_stages_lead_to_the_same_solution(task, name):
    solver = SOLVERS[name]
    tol = TOL if name.startswith("newton") else 1e-5
    direct = from_nothing(task, 0.1, stages=False)
    solution = from_nothing(task, 0.1, solver, tol=tol)
    assert solution.converged
    assert task.problem(0.1 * task.lam_max).optimality(solution.theta).kkt <= tol
    assert solution.objective == pytest.approx(direct.objective, abs=20 * tol)


def chain():
    """Columns far from each other are related, but not directly."""
    X = np.random.default_rng(3).normal(size=(500, 40))
    for s in range(1, 40):
        X[:, s] += 0.8 * X[:, s - 1]
    return Table(X, np.zeros((500, 0), dtype=np.int64), ())


def test_stages_work_on_fewer_groups():
    task, at_once, by_stages = chain().task(), Noting(), Noting()
    direct = from_nothing(task, 0.05, at_once, stages=False)
    solution = from_nothing(task, 0.05, by_stages)
    assert solution.converged
    np.testing.assert_allclose(solution.theta, direct.theta, atol=1e-4)
    n_active = np.count_nonzero(task.layout.group_norms(direct.theta))
    assert max(by_stages.sizes) - n_active < 0.5 * (max(at_once.sizes) - n_active)


def test_stages_count_but_have_no_trace(task):
    passes = task.smooth.passes
    solution = from_nothing(task, 0.05)
    assert solution.passes == pytest.approx(task.smooth.passes - passes)
    trace = solution.trace
    assert trace[0].passes > 0
    assert solution.n_iter >= len(trace)
    assert [row.passes for row in trace] == sorted(row.passes for row in trace)
    # Every row is about the problem that was asked for.
    assert trace[-1].objective == pytest.approx(solution.objective, abs=1e-9)
    assert max(row.objective for row in trace) == trace[0].objective


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e4])
def test_stages_do_not_depend_on_units(scale):
    """Without calibration, lam is in the units of the columns, and the KKT number is not."""
    table = chain()
    scaled = Table(scale * table.X, table.Y, table.n_levels).task(weights="uniform")
    plain = table.task(weights="uniform")
    here, there = Noting(), Noting()
    expected, solution = from_nothing(plain, 0.05, here), from_nothing(scaled, 0.05, there)
    assert solution.converged
    assert len(here.sizes) > 2
    assert abs(len(there.sizes) - len(here.sizes)) <= 2
    assert abs(solution.n_iter - expected.n_iter) <= 2
    np.testing.assert_allclose(solution.theta, expected.theta, atol=1e-4)


@pytest.mark.parametrize("max_iter", [0, 1, 3])
def test_stages_keep_to_the_limit_of_steps(task, max_iter):
    solution = from_nothing(task, 0.05, max_iter=max_iter)
    assert not solution.converged
    assert solution.n_iter == max_iter


def test_no_penalty_at_all(task):
    """Infinitely far away: stages end when most groups are active."""
    direct = from_nothing(task, 0.0, tol=1e-5, stages=False)
    solution = from_nothing(task, 0.0, tol=1e-5)
    assert solution.converged
    assert solution.objective == pytest.approx(direct.objective, abs=1e-6)


def test_short_ways_and_small_tables_are_gone_at_once(task):
    small = draw(8, 300, 14, (2, 3, 2, 3, 2, 2), False).task()  # 190 groups
    for one, share in ((small, 0.05), (task, 0.8)):
        solver = Noting()
        from_nothing(one, share, solver)
        assert len(solver.sizes) <= 2
