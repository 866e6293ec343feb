"""The search for the graph: where it ends, what it passes, and what it does not depend on."""

import numpy as np
import pytest

from mixedgm.select.error_rates import LocalFDR
from mixedgm.select.graph_search import settled
from mixedgm.select.pair_tests import pairs_given, refit
from tests.support.problems import Table, draw

LIMIT = LocalFDR().log_limit
NOTHING = np.zeros(0, dtype=np.int64)


def ends(task, groups):
    return {tuple(pair) for pair in task.layout.pairs[groups].tolist()}


def near_copies(seed=0, n=300, size=10, correlation=0.95):
    """Numbers in a chain whose neighbours are close to each other."""
    rng = np.random.default_rng(seed)
    power = correlation ** np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    X = rng.standard_normal((n, size)) @ np.linalg.cholesky(power).T
    return Table(X, np.zeros((n, 0), dtype=np.int64), ())


def test_edges_pass_and_other_pairs_fail():
    task = draw(4, 400, 4, (2, 3, 3)).task()
    found = settled(task, NOTHING, LIMIT)
    assert found.ended
    tests = pairs_given(task, found.graph)
    passes = tests.statistics.log_p <= LIMIT(tests)
    assert np.flatnonzero(passes).tolist() == found.graph.tolist()


def test_near_copies_leave_no_proxies():
    task = near_copies().task()
    found = settled(task, NOTHING, LIMIT)
    assert found.ended
    assert ends(task, found.graph) == {(k, k + 1) for k in range(9)}


def test_an_edge_gives_way_to_a_better_rival():
    """Given the wrong one of two near copies, all tests agree; a swap finds the other."""
    rng = np.random.default_rng(3)
    first = rng.normal(size=400)
    second = first + 0.3 * rng.normal(size=400)
    effect = 0.6 * first + rng.normal(size=400)
    noise = rng.normal(size=(400, 3))
    X = np.column_stack([first, second, effect, noise])
    task = Table(X, np.zeros((400, 0), dtype=np.int64), ()).task()
    pairs = task.layout.pairs.tolist()
    wrong, right = (np.sort([pairs.index([0, 1]), pairs.index([k, 2])]) for k in (1, 0))
    losses = [refit(task, graph, task.null.theta).loss for graph in (wrong, right)]
    assert losses[1] < losses[0]
    found = settled(task, wrong, LIMIT)
    assert (0, 2) in ends(task, found.graph)
    assert (1, 2) not in ends(task, found.graph)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_order_of_rows_and_columns_does_not_matter(seed):
    table, rng = near_copies(seed, n=120, correlation=0.8), np.random.default_rng(seed)
    plain = ends(task := table.task(), settled(task, NOTHING, LIMIT).graph)
    rows, columns = rng.permutation(120), rng.permutation(10)
    other = Table(table.X[rows][:, columns], table.Y, ()).task()
    again = ends(other, settled(other, NOTHING, LIMIT).graph)
    assert {tuple(sorted((columns[u], columns[v]))) for u, v in again} == plain


def test_a_graph_that_comes_again_ends_the_changes_of_the_limit():
    """A limit that lets an edge enter but not stay does not move the search for long."""
    rng, asked = np.random.default_rng(5), []
    X = rng.normal(size=(300, 4))
    X[:, 1] += 0.2 * X[:, 0]
    task = Table(X, np.zeros((300, 0), dtype=np.int64), ()).task()

    def limit(tests):
        asked.append(tests.graph.tolist())
        best = np.nanmin(tests.statistics.log_p)
        return best - 3.0 if len(tests.graph) else best + 0.1

    found = settled(task, NOTHING, limit)
    assert asked == [[], [0]]
    assert found.ended
