"""Centrality: as networkx computes it, on graphs of every sort."""

import networkx as nx
import numpy as np
import pytest

from mixedgm.studies.resampling.replicates import MEASURES, centrality


def random_graphs(n: int, density: float, n_graphs: int = 4) -> np.ndarray:
    rng = np.random.default_rng(n)
    upper = np.triu(rng.random((n_graphs, n, n)) * (rng.random((n_graphs, n, n)) < density), 1)
    return upper + upper.swapaxes(1, 2)


def from_networkx(weights: np.ndarray) -> dict[str, list[float]]:
    graph = nx.from_numpy_array(weights)
    for *_, edge in graph.edges(data=True):
        edge["length"] = 1.0 / edge["weight"]
    return {
        "total_strength": [strength for _, strength in graph.degree(weight="weight")],
        "closeness": list(nx.closeness_centrality(graph, distance="length").values()),
        "betweenness": list(nx.betweenness_centrality(graph, weight="length").values()),
    }


@pytest.mark.parametrize(("n", "density"), [(1, 0), (2, 1), (6, 0.2), (9, 0.5), (25, 0.15)])
def test_all_measures_are_those_of_networkx(n: int, density: float) -> None:
    weights = random_graphs(n, density)
    # Equal weights too: several shortest paths between two nodes share the betweenness.
    weights = np.concatenate([weights, (weights > 0.0).astype(float)])
    found = centrality(weights, weights)
    assert tuple(found) == MEASURES
    for k, graph in enumerate(weights):
        for name, expected in from_networkx(graph).items():
            np.testing.assert_allclose(found[name][k], expected, rtol=1e-9, atol=1e-12)


def test_expected_influence_adds_signed_weights() -> None:
    weights = random_graphs(5, 0.8, 1)
    signs = np.sign(np.arange(25).reshape(5, 5) % 3 - 1.0)
    signed = weights * np.triu(signs, 1) + weights * np.triu(signs, 1).T
    expected = [sum(signed[0, v]) for v in range(5)]
    np.testing.assert_allclose(centrality(weights, signed)["expected_influence"][0], expected)
