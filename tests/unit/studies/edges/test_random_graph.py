"""A graph -> a random model with exactly its edges, in the stated ranges."""

import networkx as nx
import numpy as np
import pytest

import mixedgm as mg

KINDS = ("continuous-continuous", "continuous-categorical", "categorical-categorical")


@pytest.mark.parametrize("seed", range(4))
def test_exactly_the_edges_of_the_graph(seed):
    graph = nx.gnm_random_graph(12, 20, seed=seed)
    truth = mg.random_model(graph, random_state=seed, types={3: 4, 5: ["no", "yes", "maybe"]})
    assert mg.compare_graphs(graph, truth).hamming == 0
    assert truth.schema_.n_levels == (2, 4, 3, 2, 2, 2)
    assert np.linalg.eigvalsh(truth.params_.precision)[0] >= 0.25 - 1e-12


def test_sizes_are_in_the_ranges_and_blocks_sum_to_zero():
    graph = nx.path_graph(40)  # a path needs no shrinking at these sizes
    truth = mg.random_model(
        graph,
        types=["continuous"] * 14 + [3] * 26,
        sizes={KINDS[0]: (0.1, 0.3), KINDS[1]: 0.5, KINDS[2]: (0.6, 0.7)},
        random_state=0,
    )
    sizes = {kind: [] for kind in KINDS}
    for edge in truth.edges_:
        block = truth.interaction(edge.source, edge.target).to_numpy()
        sizes[edge.kind].append(np.sqrt(np.mean(block**2)))
        if edge.kind != KINDS[0]:
            assert abs(block.sum(axis=1)).max() < 1e-12
    assert 0.1 <= min(sizes[KINDS[0]]) < max(sizes[KINDS[0]]) <= 0.3
    assert sizes[KINDS[1]] == [pytest.approx(0.5)]
    assert 0.6 <= min(sizes[KINDS[2]]) < max(sizes[KINDS[2]]) <= 0.7


def test_dense_continuous_graphs_are_shrunk_and_say_so():
    truth = mg.random_model(
        nx.complete_graph(8), types=["continuous"] * 8, sizes=0.6, random_state=0
    )
    assert np.linalg.eigvalsh(truth.params_.precision)[0] == pytest.approx(0.25)
    off = np.abs(truth.params_.precision[np.triu_indices(8, 1)])
    np.testing.assert_allclose(off, off[0])
    assert any("multiplied by" in note for note in truth.summary().values.notes)


def test_equal_seeds_give_equal_models():
    def draw(seed):
        return mg.random_model(nx.cycle_graph(6), random_state=seed, bias=0.5).params_

    assert np.array_equal(draw(1).category_shift, draw(1).category_shift)
    assert not np.array_equal(draw(1).category_shift, draw(2).category_shift)
    assert 0 < np.abs(draw(1).cat_bias).max() <= 0.5


def test_the_graph_of_a_model_brings_its_columns():
    truth = mg.from_params({"age": "continuous", "job": ["a", "b", "c"], "sex": [0, 1]}, {})
    graph = truth.to_networkx()
    graph.add_edge("age", "job")
    twin = mg.random_model(graph, random_state=0)
    assert [c.levels for c in twin.schema_.columns] == [(), ("a", "b", "c"), (0, 1)]


def test_a_list_of_pairs_is_a_graph():
    truth = mg.random_model([("a", "b"), ("b", "c")], random_state=0)
    assert [c.kind for c in truth.schema_.columns] == ["continuous", "categorical", "continuous"]


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        ([], {}, "graph must be"),
        (nx.path_graph(2), {"types": {"x": 2}}, "types names 'x'"),
        (nx.path_graph(2), {"types": ["continuous"]}, "types must be"),
        (nx.path_graph(2), {"sizes": (0.5, 0.1)}, "sizes must be"),
        (nx.path_graph(2), {"sizes": -1}, "sizes must be"),
        (nx.path_graph(2), {"sizes": {"all": 1}}, "a kind in sizes"),
        (nx.path_graph(2), {"bias": -1}, "bias must be"),
        (nx.path_graph(2), {"random_state": "x"}, "random_state must be"),
    ],
)
def test_bad_arguments(graph, options, message):
    with pytest.raises(mg.ParameterError, match=message):
        mg.random_model(graph, **options)
