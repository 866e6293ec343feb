"""Rough tests of pairs: right without neighbours, and enough to find the pairs worth a test."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.inference.pairs import _inverse, hessian_of, inverse_of
from mixedgm.select.error_rates import LocalFDR
from mixedgm.select.graph_search import settled
from mixedgm.select.pair_tests import pairs_given, pairs_roughly, refit, rows_per_parameter
from mixedgm.solve.contrasts import Contrasts
from tests.support.problems import Table, draw

NOTHING = np.zeros(0, dtype=np.int64)


def chains(n_rows: int, seed: int = 0, n_columns: int = 24) -> Table:
    """Numbers in chains of four, and binary columns beside every sixth number."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    for k in range(1, n_columns):
        if k % 4:
            X[:, k] += 0.7 * X[:, k - 1]
    Y = (X[:, ::6] + rng.logistic(size=X[:, ::6].shape) > 0).astype(np.int64)
    return Table(X, Y, (2,) * Y.shape[1])


def test_without_neighbours_rough_tests_are_the_tests():
    """The variance differs by sampling only: by some per cent with 3,000 rows."""
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, levels, 3000) for levels in (2, 3, 4)])
    task = Table(rng.normal(size=(3000, 4)), codes, (2, 3, 4)).task()
    exact = pairs_given(task, NOTHING).statistics
    rough = pairs_roughly(task, NOTHING, task.null.theta, {}).statistics
    np.testing.assert_allclose(rough.statistic, exact.statistic, rtol=0.15)
    np.testing.assert_allclose(rough.direction, exact.direction, rtol=0.1, atol=0.02)
    np.testing.assert_array_equal(rough.df, exact.df)


@pytest.mark.parametrize("fraction", [0.0, 0.4, 1.0])
def test_the_inverse_of_a_hessian_by_parts_is_its_inverse(fraction):
    task = draw(3, 400, 4, (2, 3, 4)).task()
    graph = np.arange(int(fraction * task.layout.n_groups))
    fit = refit(task, graph, task.null.theta)
    theta = task.layout.centred(fit.solution.theta, graph)
    hessian = hessian_of(task.smooth, theta, graph, 1)
    small = Contrasts(task.layout).reduced.restrict(graph)
    found = inverse_of(hessian.copy(), small)
    np.testing.assert_allclose(found @ hessian, np.eye(len(hessian)), atol=1e-7)
    np.testing.assert_allclose(found, _inverse(hessian), atol=1e-7 * np.abs(found).max())


def test_screened_pairs_keep_their_tests():
    task = chains(400).task()
    graph = settled(task, NOTHING, LocalFDR().log_limit, many_pairs=0).graph
    exact = pairs_given(task, graph)
    found = pairs_given(task, graph, screened=True)
    near = found.estimated
    assert len(graph) < len(near) < 0.3 * task.layout.n_groups
    np.testing.assert_allclose(
        found.statistics.z[near], exact.statistics.z[near], rtol=1e-5, atol=1e-6
    )
    passes = exact.statistics.z > 3.0
    assert np.isin(np.flatnonzero(passes), near).all()
    assert np.isfinite(found.statistics.log_p).all()


def test_wide_and_narrow_searches_end_alike():
    """Only the limit may differ a little: at most one pair of some 370 does."""
    tasks = [chains(400, seed).task() for seed in range(3)]
    wide = [settled(task, NOTHING, LocalFDR().log_limit, many_pairs=0).graph for task in tasks]
    for task, graph in zip(tasks, wide, strict=True):
        narrow = settled(task, NOTHING, LocalFDR().log_limit).graph
        assert len(np.setxor1d(graph, narrow)) <= 1


def test_neither_threads_nor_orders_change_a_wide_search():
    table = chains(400, seed=5)
    task = table.task()
    graph = settled(task, NOTHING, LocalFDR().log_limit, many_pairs=0).graph
    pairs = {frozenset(pair) for pair in task.layout.pairs[graph].tolist()}
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(400), rng.permutation(table.X.shape[1])
    moved = Table(table.X[np.ix_(rows, columns)], table.Y[rows], table.n_levels).task()
    found = settled(moved, NOTHING, LocalFDR().log_limit, many_pairs=0).graph
    names = np.concatenate([columns, np.arange(len(columns), moved.layout.n_nodes)])
    assert {frozenset(names[list(p)].tolist()) for p in moved.layout.pairs[found]} == pairs
    rows_of_two = replace(task.smooth.rows, n_threads=2)
    threaded = replace(task, smooth=replace(task.smooth, rows=rows_of_two))
    assert threaded.n_threads == 2
    one, two = (settled(t, NOTHING, LocalFDR().log_limit, many_pairs=0) for t in (task, threaded))
    np.testing.assert_array_equal(one.tests.statistics.log_p, two.tests.statistics.log_p)


def of_many_levels(n_threads=1, order=range(8)):
    """Columns of four to six levels in chains of four, the last with two rare ones."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 8))
    for k in (1, 2, 3, 5, 6, 7):
        X[:, k] += 0.8 * X[:, k - 1]
    levels = (4, 5, 6, 5, 4, 5, 6, 5)
    Y = np.empty(X.shape, dtype=np.int64)
    for k, count in enumerate(levels):
        shares = np.full(count, 1.0 / count)
        if k == 7:
            shares = np.array([0.99, 0.0025, 0.0025, 0.0025, 0.0025])
        Y[:, k] = np.searchsorted(np.quantile(X[:, k], np.cumsum(shares)[:-1]), X[:, k])
    order = list(order)
    task = Table(np.zeros((3000, 0)), Y[:, order], tuple(levels[k] for k in order)).task()
    rows = replace(task.smooth.rows, n_threads=n_threads)
    return replace(task, smooth=replace(task.smooth, rows=rows))


def edges_of(task, graph, order):
    names = np.array(order)
    return {frozenset(names[pair].tolist()) for pair in task.layout.pairs[graph]}


def test_a_search_of_many_levels_ends_where_tests_and_graph_agree():
    """But for pairs that have too few rows to enter, and as the search by all tests does."""
    task, limit = of_many_levels(), LocalFDR().log_limit
    whole = settled(task, NOTHING, limit)
    found = settled(task, NOTHING, limit, many_parameters=50)
    assert found.ended
    assert len(found.tests.estimated) < task.layout.n_groups
    enough = rows_per_parameter(task) >= 4.0
    assert 0 < np.count_nonzero(~enough[whole.graph]) < len(whole.graph)
    assert found.graph.tolist() == whole.graph[enough[whole.graph]].tolist()
    passes = found.tests.statistics.log_p <= limit(found.tests)
    assert np.flatnonzero(passes & enough).tolist() == found.graph.tolist()


def test_neither_threads_nor_orders_change_a_search_of_many_levels():
    limit, order = LocalFDR().log_limit, [5, 0, 7, 2, 4, 1, 6, 3]
    tasks = of_many_levels(), of_many_levels(2), of_many_levels(order=order)
    one, two, moved = (settled(task, NOTHING, limit, many_parameters=50) for task in tasks)
    np.testing.assert_array_equal(one.tests.statistics.log_p, two.tests.statistics.log_p)
    assert edges_of(tasks[2], moved.graph, order) == edges_of(tasks[0], one.graph, range(8))
