"""Quadratic models that are hard to minimise, or have a minimum too far away to be of use."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.solve.choose import Auto
from mixedgm.solve.subproblem import _crossing, _without
from mixedgm.solve.working_set import Start, solve
from tests.support.problems import draw


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("loss", ["nodewise", "pseudolikelihood"])
def test_two_almost_equal_columns(loss, seed):
    """Newton directions are long there: what crosses zero must not take the others too far."""
    table = draw(seed, 150, 18, (3, 2, 2, 3, 6, 3, 3, 2, 2, 2, 3), False)
    X = table.X.copy()
    noise = np.random.default_rng(seed).normal(size=150)
    X[:, 1] = X[:, 2] + 1e-3 * X[:, 2].std() * noise
    task = replace(table, X=X).task(loss=loss)
    start = Start(task.null.theta, task.null.evaluation, task.lam_max)
    solution = solve(task.problem(0.05 * task.lam_max), Auto(), start, tol=1e-6, max_iter=60)
    assert solution.converged
    assert solution.notes == ()


@pytest.mark.parametrize("seed", [2, 5, 6, 7, 8])
@pytest.mark.parametrize("loss", ["nodewise", "pseudolikelihood"])
def test_levels_that_were_seen_once(loss, seed):
    """Probabilities become 0 or 1 on the way, where a model without damping has no minimum."""
    table = draw(seed, 400, 5, (4, 4, 4), False)
    Y = np.zeros_like(table.Y)
    Y[:4] = np.random.default_rng(seed).permuted(np.tile(np.arange(4)[:, None], 3), axis=0)
    task = replace(table, Y=Y).task(loss=loss)
    start = Start(task.null.theta, task.null.evaluation, task.lam_max)
    solution = solve(task.problem(0.01 * task.lam_max), Auto(), start, tol=1e-5, max_iter=60)
    assert solution.converged
    assert solution.passes < 400
    assert solution.notes == ()


def test_where_groups_cross_zero():
    layout = draw(0, 50, 2, (3,), False).task().layout
    x = np.ones(layout.n_theta)
    direction = np.zeros(layout.n_theta)
    first = slice(layout.starts[0], layout.starts[1])
    last = slice(layout.starts[2], layout.starts[3])
    direction[first], direction[last] = -2.0, 3.0
    crossing = _crossing(layout, x, direction)
    np.testing.assert_allclose(crossing, [0.495, np.inf, np.inf])
    new = _without(layout, x + direction, crossing <= 1.0)
    assert not new[first].any()
    np.testing.assert_array_equal(new[last], 4.0)
    np.testing.assert_array_equal(x, 1.0)
