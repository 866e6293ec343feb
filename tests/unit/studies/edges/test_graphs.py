"""Two graphs -> their common and their own edges; scores against scikit-learn's."""

import math

import networkx as nx
import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_score, recall_score

import mixedgm as mg
from tests.support.people import people


def adjacency(graph: nx.Graph) -> np.ndarray:
    return nx.to_numpy_array(graph)[np.triu_indices(len(graph), 1)].astype(int)


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_scikit_learn(seed):
    truth = nx.gnm_random_graph(9, 12, seed=seed)
    estimate = nx.gnm_random_graph(9, 15, seed=seed + 100)
    found = mg.compare_graphs(truth, estimate)
    y, z = adjacency(truth), adjacency(estimate)
    assert found.precision == pytest.approx(precision_score(y, z))
    assert found.recall == pytest.approx(recall_score(y, z))
    assert found.f1 == pytest.approx(f1_score(y, z))
    assert found.hamming == np.count_nonzero(y != z)
    assert len(found.true_edges) + len(found.missed_edges) == 12
    assert len(found.true_edges) + len(found.false_edges) == 15


def test_order_within_a_pair_and_repetitions_do_not_count():
    found = mg.compare_graphs([("a", "b"), ("b", "a")], [("b", "a")])
    assert (found.true_edges, found.hamming) == ((("a", "b"),), 0)


def test_models_graphs_and_lists_say_the_same():
    frame = people()
    model = mg.MixedGraphicalModel(lam=0.2).fit(frame)
    pairs = [(edge.source, edge.target) for edge in model.edges_]
    assert pairs
    for same in (model, model.fitted_, model.to_networkx(), pairs, model.edges_):
        assert mg.compare_graphs(model, same).hamming == 0
        assert mg.compare_graphs(same, pairs[1:]).missed_edges == (pairs[0],)


def test_empty_graphs_have_no_scores_that_would_be_made_up():
    nothing = mg.compare_graphs([], [])
    assert all(math.isnan(x) for x in (nothing.precision, nothing.recall, nothing.f1))
    assert nothing.hamming == 0
    none_found = mg.compare_graphs([("a", "b")], [])
    assert math.isnan(none_found.precision)
    assert (none_found.recall, none_found.f1) == (0.0, 0.0)


def test_the_text_names_what_is_wrong():
    text = repr(mg.compare_graphs([("a", "b"), ("b", "c")], [("a", "b"), ("a", "c")]))
    assert "1 true, 1 false, 1 missed" in text
    assert "false   a - c" in text
    assert "missed  b - c" in text
    many = repr(mg.compare_graphs([], [("a", f"b{k}") for k in range(12)]))
    assert "and 2 more" in many


def test_a_misspelt_name_is_not_a_missed_edge():
    model = mg.MixedGraphicalModel(lam=0.2).fit(people())
    with pytest.raises(mg.ParameterError, match="estimate has no column 'hight'; did you mean"):
        mg.compare_graphs([("hight", "weight")], model)
    with pytest.raises(mg.ParameterError, match="estimate has no column 'height'"):
        mg.compare_graphs(model, nx.path_graph(3))


@pytest.mark.parametrize("bad", ["ab", 3, [("a",)], [("a", "a")], [3]])
def test_things_that_are_no_graph(bad):
    with pytest.raises(mg.ParameterError, match="estimate"):
        mg.compare_graphs([("a", "b")], bad)


def test_a_directed_graph_is_refused():
    with pytest.raises(mg.ParameterError, match="directed"):
        mg.compare_graphs(nx.DiGraph([("a", "b")]), [])
