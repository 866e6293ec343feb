"""Kinds of columns, and where their nodes and design columns stand."""

import pickle

import numpy as np
import pytest

from mixedgm.families import HURDLE, KINDS, edge_kinds, pair_name
from mixedgm.model.nodes import Nodes, in_node_order
from tests.support.patients import median_with_zeros

MIXED = Nodes.mixed(2, (3, 1, 2))


def spans_by_hand(nodes: Nodes) -> list[list[int]]:
    at, spans = 0, []
    for kind, n in zip(nodes.kinds, nodes.n_values, strict=True):
        spans.append(list(range(at, at + kind.width(n))))
        at += kind.width(n)
    return spans


@pytest.mark.parametrize("nodes", [MIXED, Nodes.mixed(3, ()), Nodes.mixed(0, (2, 4))])
def test_nodes_cover_all_design_columns_in_order(nodes):
    spans = spans_by_hand(nodes)
    columns = np.arange(nodes.n_columns)
    assert [columns[nodes.columns_of(v)].tolist() for v in range(len(nodes))] == spans
    assert nodes.column_node.tolist() == [v for v, span in enumerate(spans) for _ in span]
    numeric = [span for kind, span in zip(nodes.kinds, spans, strict=True) if kind.is_numeric]
    assert columns[nodes.numeric].tolist() == sum(numeric, [])


def test_places_are_those_of_numbers_and_codes():
    assert MIXED.places([4, 1, 2, 0]) == ([1, 0], [2, 0])
    assert [MIXED.place(v) for v in range(5)] == MIXED.node_place.tolist() == [0, 1, 0, 1, 2]
    assert MIXED.gaussian_nodes.tolist() == [MIXED.is_gaussian(v) for v in range(5)]
    levels = np.arange(6)
    assert [levels[MIXED.levels_of(j)].tolist() for j in range(3)] == [[0, 1, 2], [3], [4, 5]]


def test_nodes_of_some_columns_levels_and_contrasts():
    assert MIXED.take([4, 0]) == Nodes.mixed(1, (2,))
    assert MIXED.contrasts.width.tolist() == MIXED.freedom.tolist() == [1, 1, 2, 0, 1]
    observed = np.array([True, False, True, True, True, True])
    assert MIXED.kept(observed) == Nodes.mixed(2, (2, 1, 2))
    assert MIXED.columns_kept(observed).tolist() == [0, 1, 2, 4, 5, 6, 7]


def test_equal_nodes_are_equal_after_a_journey():
    back = pickle.loads(pickle.dumps(MIXED))
    assert back == MIXED
    assert hash(back) == hash(MIXED)
    assert back.kinds[0] == MIXED.kinds[0] != MIXED.kinds[-1]
    assert back != Nodes.mixed(2, (3, 1))
    assert MIXED != "nodes"


def test_gaussian_kinds_come_first_and_indicators_last():
    places = [(not kind.is_gaussian, not kind.is_numeric) for kind in KINDS.values()]
    assert places == sorted(places)
    names = ["categorical", "continuous", "categorical"]
    ordered = in_node_order(enumerate(names), lambda item: item[1])
    assert [at for at, _ in ordered] == [1, 0, 2]


def test_kinds_of_edges():
    assert len(edge_kinds()) == len(KINDS) * (len(KINDS) + 1) // 2
    for a in KINDS:
        for b in KINDS:
            assert pair_name(a, b) == pair_name(b, a) in edge_kinds()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_keeps_its_promises(kind):
    n = 0 if kind.is_gaussian or kind.has_spike else 3
    assert 1 <= kind.freedom(n) <= kind.width(n)
    assert kind.n_biases(n) >= 1
    values = np.array([0, 2, 1, 1])
    np.testing.assert_array_equal(kind.decode(kind.encode(values, None), None), values)
    assert kind.point(
        np.array([[0.2, 0.5, 0.3]]) if n or kind.has_spike else np.array([0.7])
    ).shape == (1,)
    assert len({other.fill for other in KINDS.values()}) == len(KINDS)
    assert len({other.marker for other in KINDS.values()}) == len(KINDS)


@pytest.mark.parametrize("mean", [-3.0, -0.2, 0.0, 0.5, 20.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.52, 0.7, 0.99, 1.0])
def test_the_median_of_a_hurdle_column_is_that_of_zeros_and_amounts(mean, share):
    conditional = HURDLE.parts(
        *np.array([[share * mean], [share * (4 + (1 - share) * mean**2)], [share]])
    )
    assert np.exp(conditional[0, 0]) == pytest.approx(share)
    if share:
        assert conditional[0, 1:] == pytest.approx([mean, 4.0])
    expected = median_with_zeros(share, mean, 2.0)
    assert HURDLE.point(conditional, "median")[0] == pytest.approx(expected, abs=1e-9)
