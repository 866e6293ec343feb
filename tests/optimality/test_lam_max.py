"""At lam_max the graph is empty, at 0.99 lam_max it is not: for every penalty and table."""

import numpy as np
import pytest

from tests.reference import plain
from tests.support.problems import draw, edges_of, solved

SHAPES = {
    "mixed": (60, 3, (2, 4), False),
    "mixed-weighted": (60, 3, (2, 4), True),
    "nine-levels": (90, 1, (9, 2), False),
    "continuous": (40, 5, (), False),
    "categorical": (60, 0, (2, 3, 5), False),
    "categorical-weighted": (60, 0, (2, 3, 5), True),
}
KINDS = pytest.mark.parametrize("weights", ["calibrated", "uniform"])


def random_factors(size, seed=0):
    upper = np.triu(np.random.default_rng(seed).uniform(0.3, 3.0, size=(size, size)), 1)
    return upper + upper.T


def edges_at(task, ratio):
    solution = solved(task, ratio * task.lam_max, tol=1e-9)
    assert solution.converged
    return edges_of(task, solution.theta)


@KINDS
@pytest.mark.parametrize("shape", SHAPES)
def test_first_edge_enters_just_below_lam_max(shape, weights):
    task = draw(31, *SHAPES[shape]).task(weights=weights)
    assert edges_at(task, 1.0 + 1e-9) == set()
    assert len(edges_at(task, 0.99)) >= 1


@KINDS
@pytest.mark.parametrize("shape", SHAPES)
def test_with_factors(shape, weights):
    n, p, n_levels, weighted = SHAPES[shape]
    table = draw(32, n, p, n_levels, weighted)
    factors = random_factors(p + len(n_levels))
    task = table.task(weights=weights, factors=factors)
    own = plain.edge_weights(weights, table.X, table.Y, n_levels, table.row_weights, factors)
    expected = plain.lam_max(table.X, table.Y, n_levels, own, table.row_weights)
    assert task.lam_max == pytest.approx(expected, rel=1e-9)
    assert edges_at(task, 1.0 + 1e-9) == set()
    assert len(edges_at(task, 0.99)) >= 1


@KINDS
@pytest.mark.parametrize("free", [{(0, 1)}, {(0, 3)}, {(3, 4)}, {(0, 1), (1, 4), (3, 4)}])
def test_with_free_edges_only_they_remain_at_lam_max(free, weights):
    table = draw(33, 80, 3, (2, 4))
    factors = np.ones((5, 5))
    for u, v in free:
        factors[u, v] = factors[v, u] = 0.0
    task = table.task(weights=weights, factors=factors)
    assert edges_at(task, 1.0 + 1e-6) == free
    assert edges_at(task, 0.99) > free


def test_free_edges_change_lam_max():
    """A small solve is needed: the closed form without free edges would be another number."""
    table = draw(33, 80, 3, (2, 4))
    factors = np.ones((5, 5))
    factors[0, 1] = factors[1, 0] = 0.0
    closed = [
        2 * plain.norm(plain.covariance(plain.rows_of(table.X, table.Y, None), 3, shape, pair))
        for shape, pair in (((1, 1), (0, 2)), ((1, 1), (1, 2)))
    ]
    weights = plain.calibrated_weights(table.X, table.Y, table.n_levels)
    without = max(closed[0] / weights[0][2], closed[1] / weights[1][2])
    pairs_out = np.ones((5, 5))
    pairs_out[3:, :] = pairs_out[:, 3:] = np.inf
    found = table.task(factors=factors * pairs_out).lam_max
    assert abs(found - without) > 1e-3


def test_absent_edges_do_not_count():
    table = draw(34, 60, 2, (2, 3))
    task = table.task()
    first = task.layout.pairs[
        np.argmax(task.layout.group_norms(task.null.evaluation.gradient) / task.penalty.weights)
    ]
    factors = np.ones((4, 4))
    factors[first[0], first[1]] = factors[first[1], first[0]] = np.inf
    fewer = table.task(factors=factors)
    assert fewer.lam_max < task.lam_max
    assert edges_at(fewer, 1.0 + 1e-9) == set()
    assert len(edges_at(fewer, 0.99)) >= 1


def test_everything_free_has_lam_max_zero():
    task = draw(35, 200, 2, (2,)).task(factors=np.zeros((3, 3)))
    assert task.lam_max == 0.0
    assert edges_of(task, task.null.theta) == {(0, 1), (0, 2), (1, 2)}
