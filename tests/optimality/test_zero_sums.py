"""At the optimum, levels sum to zero: by the penalty alone, and by centring where it is free."""

import numpy as np
import pytest

from mixedgm.solve.working_set import Start, solve
from tests.support import dense
from tests.support.problems import SOLVERS, draw, solved

TABLE = draw(41, 120, 2, (2, 3, 5))


@pytest.mark.parametrize("weights", ["calibrated", "uniform"])
@pytest.mark.parametrize("ratio", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("solver", ["newton-exact", "gradient-nesterov-1983"])
def test_penalised_blocks_sum_to_zero_over_levels(weights, ratio, solver):
    task = TABLE.task(weights=weights)
    solution = solved(task, ratio * task.lam_max, solver, tol=1e-9)
    assert solution.converged
    params = task.params(solution.theta)
    scale = task.units.scale
    for levels in dense.level_slices(params.n_levels):
        shift = params.category_shift[:, levels].sum(axis=1) * scale
        np.testing.assert_allclose(shift, 0.0, atol=1e-6)
        np.testing.assert_allclose(params.cat_interaction[:, levels].sum(axis=1), 0.0, atol=1e-6)


def test_standardised_biases_sum_to_zero():
    task = TABLE.task()
    theta = solved(task, 0.1 * task.lam_max).theta
    for v in range(task.layout.n_gaussian, task.layout.n_nodes):
        assert abs(theta[task.layout.node_terms_of(v)].sum()) <= 1e-12


def test_free_groups_are_centred_exactly():
    factors = np.ones((5, 5))
    for u, v in ((0, 3), (2, 4), (3, 4)):
        factors[u, v] = factors[v, u] = 0.0
    task = TABLE.task(factors=factors)
    solution = solved(task, 0.2 * task.lam_max, tol=1e-7)
    assert solution.converged
    params = task.params(solution.theta)
    for u, v in ((0, 3), (2, 4), (3, 4)):
        block = params.block(u, v)
        np.testing.assert_allclose(block.sum(axis=1), 0.0, atol=1e-12)
        if u >= 2:
            np.testing.assert_allclose(block.sum(axis=0), 0.0, atol=1e-12)


def test_sums_run_over_observed_levels_only():
    table = draw(42, 90, 2, (3, 4))
    table.Y[table.Y[:, 1] == 1, 1] = 3
    task = table.task()
    params = task.params(solved(task, 0.05 * task.lam_max, tol=1e-9).theta)
    second = params.levels_of(1)
    assert not params.category_shift[:, second][:, 1].any()
    np.testing.assert_allclose(
        params.category_shift[:, second].sum(axis=1) * task.units.scale, 0.0, atol=1e-6
    )
    np.testing.assert_allclose(params.cat_interaction[:, second].sum(axis=1), 0.0, atol=1e-6)


@pytest.mark.parametrize("solver", ["newton-exact", "newton-sampled", "newton-limited-memory"])
def test_one_free_pair_of_continuous_columns_has_no_slope(solver):
    """No penalty on the pair: its gradient vanishes, whatever the others do."""
    factors = np.ones((5, 5))
    factors[0, 1] = factors[1, 0] = 0.0
    task = TABLE.task(factors=factors)
    solution = solved(task, 0.3 * task.lam_max, solver)
    params = task.params(solution.theta)
    _, _, matrix = dense.gradient(params, TABLE.X, TABLE.Y)
    assert abs(matrix[0, 1]) <= 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_start_that_is_not_centred_ends_centred(solver):
    factors = np.ones((5, 5))
    factors[3, 4] = factors[4, 3] = 0.0
    task = TABLE.task(factors=factors)
    layout = task.layout
    theta = task.null.theta.copy()
    theta[layout.biases] += 1.0
    group = int(task.penalty.free[0])
    theta[layout.starts[group] : layout.starts[group + 1]] += 0.5
    start = Start(theta, task.smooth.evaluate(theta))
    problem = task.problem(0.3 * task.lam_max)
    found = solve(problem, SOLVERS[solver], start, tol=1e-6, max_iter=5000)
    assert found.converged
    for v in range(layout.n_gaussian, layout.n_nodes):
        assert abs(found.theta[layout.node_terms_of(v)].sum()) <= 1e-12
    block = task.params(found.theta).block(3, 4)
    np.testing.assert_allclose(block.sum(axis=1), 0.0, atol=1e-12)
