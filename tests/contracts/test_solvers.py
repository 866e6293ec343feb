"""Every solver on every problem: one optimum, one graph, certified by loops over rows."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from mixedgm.base.errors import ParameterError
from mixedgm.objective.contract import Evaluation
from mixedgm.solve.loop import Status, run
from mixedgm.solve.monte_carlo import MonteCarlo
from mixedgm.solve.problem import Problem
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.solve.working_set import Start, solve
from tests.reference import optimality, plain, problems
from tests.support.moderated import moderated_task
from tests.support.problems import SCORED, SOLVERS, Table, draw, edges_of, solved

# Levels from 2 to 9; calibrated and uniform; weights, free and forbidden edges, unseen levels.
PROBLEMS = (
    "mixed-uniform-0.3",
    "many-levels-calibrated-0.3",
    "many-levels-uniform-0.08",
    "continuous-calibrated-0.08",
    "categorical-calibrated-0.3",
    "six-columns",
    "row-weights-mixed",
    "bad-units-mixed",
    "factors-free",
    "factors-free-categorical",
    "factors-forbidden",
    "unseen-level",
)
# Solvers that users meet are tried on everything, their variants on a share each.
OFFERED = (
    "auto",
    "newton-exact",
    "newton-limited-memory",
    "gradient-auslender-teboulle",
    "spectral",
)


def covering(names, share=3):
    """Pairs of a name and a solver: a variant meets every third name, or every share-th."""
    variants = [solver for solver in SOLVERS if solver not in OFFERED]
    return [
        *((name, solver) for name in names for solver in OFFERED),
        *(
            (name, solver)
            for k, solver in enumerate(variants)
            for name in names[k % share :: share]
        ),
    ]


EVERY = covering(PROBLEMS)


@cache
def task_of(name):
    known = problems.get(name)
    table = Table(known.X, known.Y, known.n_levels, known.row_weights)
    return table.task(weights=known.weights, factors=known.factors)


@cache
def solution_of(name, solver):
    return solved(task_of(name), problems.get(name).lam, solver)


@pytest.mark.parametrize(("name", "solver"), EVERY)
def test_reaches_the_tolerance(name, solver):
    solution = solution_of(name, solver)
    assert solution.status is Status.CONVERGED
    assert solution.converged
    assert solution.kkt <= 1e-8
    assert solution.notes == ()


@pytest.mark.parametrize(("name", "solver"), EVERY)
def test_all_solvers_find_one_optimum_and_one_graph(name, solver):
    reference, solution = solution_of(name, "newton-exact"), solution_of(name, solver)
    assert solution.objective == pytest.approx(reference.objective, abs=1e-8)
    task = task_of(name)
    assert edges_of(task, solution.theta) == edges_of(task, reference.theta)


@pytest.mark.parametrize(("name", "solver"), EVERY)
def test_certificate_by_loops_agrees(name, solver):
    task, known = task_of(name), problems.get(name)
    params = task.params(solution_of(name, solver).theta)
    found = optimality.certificate(
        params, known.X, known.Y, known.lam, known.edge_weights, known.row_weights
    )
    assert found.kkt <= 1e-7


@pytest.mark.parametrize("name", PROBLEMS)
def test_objective_in_own_units_is_the_one_of_the_loops(name):
    task, known = task_of(name), problems.get(name)
    solution = solution_of(name, "newton-exact")
    expected = plain.objective(
        task.params(solution.theta),
        known.X,
        known.Y,
        known.lam,
        known.edge_weights,
        known.row_weights,
    )
    assert solution.objective + task.log_jacobian == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("name", "solver"), EVERY)
def test_trace_counts_on_and_ends_at_the_answer(name, solver):
    solution = solution_of(name, solver)
    passes = [row.passes for row in solution.trace]
    seconds = [row.seconds for row in solution.trace]
    assert passes == sorted(passes)
    assert seconds == sorted(seconds)
    assert passes[-1] <= solution.passes
    assert solution.trace[-1].objective == pytest.approx(solution.objective, abs=1e-9)
    assert solution.trace[-1].kkt <= 1e-8
    assert len(solution.trace) > solution.n_iter > 0


@cache
def other_task(name):
    scored, spiked = name.endswith("scored"), name.endswith("spiked")
    name = name.removesuffix(" scored").removesuffix(" spiked")
    if spiked:
        table = draw(3, 120, 1, (4, 8, 3), True, SCORED[::3], 2)
    if spiked and name.startswith("moderated"):
        return moderated_task(table, (0, 1), loss=name.removeprefix("moderated "))
    if name.startswith("moderated"):
        loss = name.removeprefix("moderated ")
        shape = (120, 1, (4, 5, 8, 9, 3), True, SCORED) if scored else (80, 3, (2, 3, 4), True)
        return moderated_task(draw(7, *shape), (0, 5), loss=loss)
    if not spiked:
        table = draw(3, 80, 3, (2, 3, 2), True)
    if scored and name.startswith("likelihood"):
        table = draw(3, 90, 2, (4, 6, 3), True, (SCORED[0], SCORED[2]))
    elif scored:
        table = draw(3, 90, 2, (4, 5, 8, 9, 3), True, SCORED)
    if name.endswith("given covariates"):
        table = replace(table, covariates=(0, 4))
    return table.task(loss=name.split()[0])


LOSSES = (
    "likelihood",
    "likelihood given covariates",
    "pseudolikelihood given covariates",
    "nodewise",
    "moderated pseudolikelihood",
    "moderated nodewise",
    "pseudolikelihood scored",
    "pseudolikelihood given covariates scored",
    "nodewise scored",
    "moderated pseudolikelihood scored",
    "likelihood scored",
    "likelihood given covariates scored",
    "pseudolikelihood spiked",
    "pseudolikelihood given covariates spiked",
    "nodewise spiked",
    "moderated pseudolikelihood spiked",
)


def rounded(number):
    """Equal but for rounding: products with fewer columns may add up in another order."""
    return pytest.approx(number, rel=1e-14, abs=1e-14)


@cache
def best_of(name):
    return solved(other_task(name), 0.12 * other_task(name).lam_max, "newton-exact", tol=1e-9)


@pytest.mark.parametrize(("name", "solver"), covering(LOSSES, share=6))
def test_all_solvers_find_the_certified_optimum_of_every_loss(name, solver):
    task, best = other_task(name), best_of(name)
    lam = 0.12 * task.lam_max
    found = solved(task, lam, solver, tol=1e-7)
    assert found.converged, found.status.value
    assert found.kkt == rounded(task.problem(lam).optimality(found.theta).kkt)
    assert found.objective == pytest.approx(best.objective, abs=1e-10)
    np.testing.assert_allclose(found.theta, best.theta, atol=1e-4)
    active = task.layout.group_norms(best.theta) > 0
    np.testing.assert_array_equal(task.layout.group_norms(found.theta) > 0, active)
    assert "moderated" not in name or (task.layout.moderator[active] >= 0).any()


def test_sampled_steps_find_the_optimum_where_nothing_is_sampled():
    """Where something is, see tests/unit/objective/test_sampled.py."""
    table, solver = draw(3, 60, 4, ()), MonteCarlo(accuracy=0.01)
    task, exact = table.task(loss="likelihood-mc"), table.task(loss="likelihood")
    lam = 0.1 * task.lam_max
    start = Start(task.null.theta, task.null.evaluation, task.lam_max)
    found = solve(task.problem(lam), solver, start, tol=1e-7, max_iter=50)
    assert found.status is Status.CONVERGED
    assert found.kkt <= 1e-7
    assert found.kkt_error == 0.0
    true = exact.problem(lam).optimality(found.theta)
    assert true.kkt <= 1e-7
    assert found.objective == pytest.approx(true.objective, abs=0.02)


@pytest.mark.parametrize("name", ["likelihood", "likelihood given covariates"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solve_that_is_cut_short_returns_a_distribution(name, solver):
    """Four columns that are nearly the same."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 1)) + 0.05 * rng.normal(size=(40, 4))
    covariates = (4,) if name.endswith("covariates") else ()
    table = Table(x, draw(1, 40, 4, (2,)).Y, (2,), covariates=covariates)
    task = table.task(loss="likelihood")
    lam = 1e-3 * task.lam_max
    start = Start(task.null.theta, task.null.evaluation, task.lam_max)
    solution = solve(task.problem(lam), SOLVERS[solver], start, tol=1e-8, max_iter=3)
    assert solution.status is Status.ITERATION_LIMIT
    assert np.isfinite(solution.objective)
    assert solution.kkt == rounded(task.problem(lam).optimality(solution.theta).kkt)


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name.startswith("newton")])
def test_newton_objectives_never_rise(solver):
    objectives = [row.objective for row in solution_of("six-columns", solver).trace]
    assert np.all(np.diff(objectives) <= 1e-11)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solve_is_deterministic(solver):
    task, lam = task_of("six-columns"), problems.get("six-columns").lam
    again = solved(task, lam, solver)
    np.testing.assert_array_equal(again.theta, solution_of("six-columns", solver).theta)


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_iteration_is_an_iteration_limit_with_a_message(solver):
    task = task_of("six-columns")
    solution = solved(task, problems.get("six-columns").lam, solver, max_iter=1)
    assert solution.status is Status.ITERATION_LIMIT
    assert "raise max_iter" in solution.status.value
    assert not solution.converged
    assert solution.n_iter == 1
    assert solution.kkt > 1e-8
    assert np.isfinite(solution.objective)


@pytest.mark.parametrize("solver", SOLVERS)
def test_certificate_is_that_of_the_returned_point(solver):
    """Also where the solve was cut short: never the solver's own bookkeeping."""
    task, lam = task_of("mixed-uniform-0.3"), problems.get("mixed-uniform-0.3").lam
    solution = solved(task, lam, solver, max_iter=3)
    fresh = task.problem(lam).optimality(solution.theta)
    assert solution.kkt == rounded(fresh.kkt)
    assert solution.objective == rounded(fresh.objective)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_impossible_tolerance_does_not_spoil_the_answer(solver):
    task = task_of("mixed-uniform-0.3")
    problem = task.problem(problems.get("mixed-uniform-0.3").lam)
    start = (task.null.theta, task.null.evaluation)
    found = run(problem, SOLVERS[solver], start, tol=0.0, max_iter=300)
    assert found.status in (Status.NO_PROGRESS, Status.ITERATION_LIMIT)
    assert problem.optimality(found.theta).kkt < 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_starting_at_the_optimum_takes_no_step(solver):
    task, lam = task_of("six-columns"), problems.get("six-columns").lam
    best = solution_of("six-columns", "newton-exact")
    start = Start(best.theta, best.evaluation, lam)
    again = solve(task.problem(lam), SOLVERS[solver], start, tol=1e-7, max_iter=100)
    assert again.n_iter == 0
    # Centring a centred point may still move its last digit.
    np.testing.assert_allclose(again.theta, best.theta, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("solver", SOLVERS)
def test_any_start_leads_to_the_optimum(solver):
    task, lam = task_of("mixed-uniform-0.3"), problems.get("mixed-uniform-0.3").lam
    theta = task.null.theta + np.random.default_rng(2).normal(size=task.layout.n_theta)
    theta[task.layout.diagonal] = 3.0
    start = Start(theta, task.smooth.evaluate(theta))
    solution = solve(task.problem(lam), SOLVERS[solver], start, tol=1e-8, max_iter=30_000)
    expected = solution_of("mixed-uniform-0.3", "newton-exact").objective
    assert solution.converged
    assert solution.objective == pytest.approx(expected, abs=1e-8)


def nearly_collinear():
    """Two columns almost equal, a third almost their level, few rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    X = np.column_stack([x, x + 1e-2 * rng.normal(size=40), rng.normal(size=40)])
    Y = np.column_stack([(x > 0).astype(int), rng.integers(0, 3, size=40)])
    return Table(X, Y, (2, 3))


@pytest.mark.parametrize("solver", SOLVERS)
def test_diagonal_stays_positive_at_every_step(solver):
    task = nearly_collinear().task()
    problem, method = task.problem(1e-3 * task.lam_max), SOLVERS[solver]
    state, n_steps = method.init(problem, task.null.theta, task.null.evaluation, 1e-5), 0
    while n_steps < 25 and state.measure > 1e-5 and not state.halted:
        state, n_steps = method.step(problem, state), n_steps + 1
        assert np.isfinite(state.objective)
        assert state.theta[task.layout.diagonal].min() > 0
    assert n_steps > 0


@pytest.mark.parametrize("solver", ["newton-exact", "newton-sampled"])
def test_nearly_collinear_columns_converge(solver):
    task = nearly_collinear().task()
    solution = solved(task, 1e-3 * task.lam_max, solver, tol=1e-5, max_iter=1000)
    assert solution.converged, solution.status.value


# --- functions that lie ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Liar:
    """A smooth function whose curvature or gradient is wrong by a factor."""

    honest: object
    curvature_factor: float = 1.0
    gradient_factor: float = 1.0
    steepness: float = 1.0
    """Of the function itself."""

    def __getattr__(self, name):
        return getattr(self.honest, name)

    def evaluate(self, theta, gradient=True, groups=None):
        here = self.honest.evaluate(theta, gradient, groups)
        value = self.steepness * here.value
        if here.grad is None:
            return Evaluation(value)
        return Evaluation(value, self.gradient_factor * self.steepness * here.grad)

    def curvature(self, theta, stride=1, nodes=None):
        true = self.honest.curvature(theta, stride, nodes)
        scale, single = self.curvature_factor, true.single
        return replace(
            true,
            single=replace(single, matrices=scale * single.matrices),
            softmax=replace(true.softmax, scale=scale * true.softmax.scale),
        )

    def restrict(self, groups):
        return replace(self, honest=self.honest.restrict(groups))


def lied_to(solver, max_iter=100, **lie):
    task = draw(3, 60, 3, (2, 4)).task()
    honest = task.problem(0.2 * task.lam_max)
    problem = Problem(Liar(honest.smooth, **lie), honest.penalty, honest.lam, honest.yardstick)
    theta = task.null.theta
    start = Start(theta, problem.smooth.evaluate(theta), task.lam_max)
    return solve(problem, solver, start, tol=1e-6, max_iter=max_iter)


@pytest.mark.parametrize("subproblem", ["coordinate-descent", "proximal-gradient"])
def test_a_failed_line_search_falls_back_and_says_so(subproblem):
    """Curvature far too small: each Newton step is too long for halvings and damping."""
    lie = {"curvature_factor": 1e-13, "steepness": 1e12}
    solution = lied_to(ProximalNewton("exact", subproblem), 12, **lie)
    assert any("line search failed" in note for note in solution.notes)
    assert len(set(solution.notes)) == len(solution.notes)
    assert solution.objective < solution.trace[0].objective


@pytest.mark.parametrize("hessian", ["exact", "sampled"])
def test_damping_makes_up_for_curvature_that_is_far_too_small(hessian):
    solution = lied_to(ProximalNewton(hessian), curvature_factor=1e-13)
    assert solution.converged
    assert solution.notes == ()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_wrong_gradient_is_never_called_converged(solver):
    solution = lied_to(SOLVERS[solver], gradient_factor=-1.0)
    assert not solution.converged
    assert solution.status in (Status.NO_PROGRESS, Status.ITERATION_LIMIT)


@pytest.mark.parametrize("hessian", ["exact", "sampled", "limited-memory"])
def test_newton_without_any_way_down_says_that_it_makes_no_progress(hessian):
    solution = lied_to(ProximalNewton(hessian), gradient_factor=-1.0)
    assert solution.status is Status.NO_PROGRESS
    assert "no step lowers the objective" in solution.status.value


# --- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ProximalGradient("fista"), r"variant must be one of .*'nesterov-1983'.*'fista'"),
        (lambda: ProximalGradient(lengthen=0.0), r"lengthen must be .* in \(0, 1\]\. Got 0\.0"),
        (lambda: ProximalGradient(lengthen=1.5), r"lengthen must be .* in \(0, 1\]\. Got 1\.5"),
        (
            lambda: ProximalGradient(shorten=1.0),
            r"shorten must be .* \(1, inf\)\. Got 1\.0",
        ),
        (lambda: ProximalNewton("dense"), r"hessian must be one of .*'limited-memory'.*'dense'"),
        (lambda: ProximalNewton(subproblem="lp"), r"subproblem must be one of .*Got 'lp'"),
        (lambda: ProximalNewton(sample_rows=0), r"sample_rows and memory must be positive"),
        (lambda: ProximalNewton(memory=0), r"sample_rows and memory must be positive"),
    ],
)
def test_impossible_options_are_named(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_steps_can_lengthen_and_momentum_can_be_kept():
    task = task_of("mixed-uniform-0.3")
    lam = problems.get("mixed-uniform-0.3").lam
    expected = solution_of("mixed-uniform-0.3", "newton-exact").objective
    start = Start(task.null.theta, task.null.evaluation, task.lam_max)
    for solver in (ProximalGradient(lengthen=1.0), ProximalGradient("tseng", restart=False)):
        found = solve(task.problem(lam), solver, start, tol=1e-6, max_iter=30_000)
        assert found.converged
        assert found.objective == pytest.approx(expected, abs=1e-8)
