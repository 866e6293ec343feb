"""Quadratic models that are hard to minimise, or have a minimum too far away to be of use."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.path.path import solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.solve.choose import Auto
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.curvature import flatten
from mixedgm.solve.subproblem import QuadraticModel, _crossing, _without
from mixedgm.solve.working_set import Start, solve
from tests.support.problems import Table, draw


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


@pytest.mark.parametrize("share", [1.0, 0.6, 0.2, 0.02])
def test_blocks_that_were_decomposed_before_the_curvature_was_corrected(share):
    """Steps by a share of the curvature overshoot; by less than half of it they lead astray."""
    task = draw(2, 300, 4, (3, 4, 2), False).task()
    problem = task.problem(0.1 * task.lam_max)
    smooth, theta = problem.smooth, task.null.theta
    contrasts = Contrasts(smooth.layout)
    blocks = flatten(contrasts, smooth, theta, 1)
    slope = contrasts.down(smooth.evaluate(theta).gradient)
    around = (problem, contrasts.reduced, contrasts.down(theta), slope)
    vectors, values = blocks.eigen[1:]
    stale = replace(blocks, known=(vectors, share * values))
    wanted = QuadraticModel(*around, blocks).minimise(1e-10)
    found = QuadraticModel(*around, stale).minimise(1e-10)
    np.testing.assert_allclose(found, wanted, atol=1e-8)


@pytest.mark.parametrize("seed", [10, 16])
def test_a_level_of_few_rows_that_others_predict(seed):
    """Its bias grows, and the curvature there with it: an overflow would be an error here."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.choice([2000, 5000, 10000])), int(rng.integers(2, 6))
    x, rare = rng.normal(size=n), np.zeros(n, dtype=np.int64)
    at = rng.choice(n, k, replace=False)
    rare[at] = 1
    x[at] += 8
    y = (rng.random(n) < 1 / (1 + np.exp(-x))).astype(np.int64)
    y[at] = 0
    task = Table(x[:, None], np.column_stack([y, rare]), (2, 2)).task()
    lams = np.geomspace(1.0, 0.02, 25) * task.lam_max
    path = solve_path(task, lams, Recipe(Auto(), 1e-5, 1000))
    assert path.converged.all()


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
