"""What follows when a rival takes the place of an edge, beside refits."""

import numpy as np
import pytest

from mixedgm.select.error_rates import LocalFDR
from mixedgm.select.graph_search import settled
from mixedgm.select.pair_tests import half_square, pairs_given, refit
from tests.support.problems import Table, draw


def twins(seed: int = 0, n: int = 400) -> Table:
    """A number, two that are much alike, and two columns of levels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    first = 0.5 * x + rng.normal(size=n)
    second = first + 0.8 * rng.normal(size=n)
    third = rng.normal(size=n)
    codes = np.column_stack([(x + rng.logistic(size=n) > 0), rng.integers(0, 3, n)])
    return Table(np.column_stack([x, first, second, third]), codes.astype(np.int64), (2, 3))


def number_of(task, u, v):
    return int(np.flatnonzero((task.layout.pairs == [u, v]).all(axis=1))[0])


@pytest.mark.parametrize("table", [twins(), draw(2, 400, 3, (2, 3))])
def test_rises_are_those_of_refits(table):
    """At a graph whose other pairs fail, where second order suffices."""
    task = table.task()
    graph = settled(task, np.zeros(0, dtype=np.int64), LocalFDR().log_limit).graph
    tests = pairs_given(task, graph)
    found = tests.rivals
    assert len(found.edge)
    start = refit(task, tests.graph, tests.theta).loss
    for edge, rival, rise, loss in zip(
        found.edge, found.rival, found.rise, found.loss, strict=True
    ):
        without = np.setdiff1d(tests.graph, edge)
        swapped = start - refit(task, np.union1d(without, rival), tests.theta).loss
        dropped = refit(task, without, tests.theta).loss - start
        assert rise / loss == pytest.approx(swapped / dropped, abs=0.07)
        if dropped < 0.03:
            assert rise == pytest.approx(swapped, rel=0.06, abs=0.001)
            assert loss == pytest.approx(dropped, rel=0.06)


def test_all_that_share_a_column_are_looked_at():
    task = draw(3, 300, 4, (2, 3)).task()
    tests = pairs_given(task, np.array([0, 5, 9]))
    found = {(int(e), int(r)) for e, r in zip(tests.rivals.edge, tests.rivals.rival, strict=True)}
    ends = [set(pair) for pair in task.layout.pairs.tolist()]
    expected = {
        (e, r)
        for e in (0, 5, 9)
        for r in range(len(ends))
        if r not in (0, 5, 9) and len(ends[e] & ends[r]) == 1
    }
    assert found == expected


def test_an_edge_with_an_equal_rival_is_not_certain():
    """Of two columns that are nearly equal, the rows cannot tell which one is related."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=300)
    first = 0.5 * x + rng.normal(size=300)
    columns = [x, first, first + 0.05 * rng.normal(size=300)]
    noise = [rng.normal(size=300) for _ in range(6)]
    task = Table(np.column_stack(columns + noise), np.zeros((300, 0), dtype=np.int64), ()).task()
    edge, rival, copy = (number_of(task, u, v) for u, v in ((0, 1), (0, 2), (1, 2)))
    tests = pairs_given(task, np.sort([edge, copy]))
    alone = 1.0 - tests.two_groups.no_edge[np.flatnonzero(tests.tested) == edge]
    assert alone > 0.99
    assert 0.1 < tests.no_edge[edge] < 0.7
    assert (
        tests.no_edge[rival] < tests.two_groups.no_edge[np.flatnonzero(tests.tested) == rival] - 0.1
    )
    assert tests.no_edge[copy] < 0.01


def test_without_edges_there_are_no_rivals():
    tests = pairs_given(draw(3, 300, 4, (2, 3)).task(), np.zeros(0, dtype=np.int64))
    assert not len(tests.rivals.edge)
    np.testing.assert_array_equal(tests.no_edge[tests.tested], tests.two_groups.no_edge)


def test_an_edge_that_cannot_move_costs_infinitely_much():
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(3, 2, 2))
    covariances = factors @ factors.transpose(0, 2, 1)
    covariances[1] = [[4.0, 2.0], [2.0, 1.0]]
    vectors = rng.normal(size=(3, 2))
    found = half_square(covariances, vectors)
    assert found[1] == np.inf
    for at in (0, 2):
        expected = 0.5 * vectors[at] @ np.linalg.inv(covariances[at]) @ vectors[at]
        assert found[at] == pytest.approx(expected)
