"""Edge weights of many graphs -> how central every node is in each of them."""

from __future__ import annotations

import numpy as np

from mixedgm.model.layout import Floats

__all__ = ["MEASURES", "centrality"]

MEASURES = ("strength", "expected_influence", "closeness", "betweenness")


def centrality(weights: Floats, signed: Floats) -> dict[str, Floats]:
    """Compute all measures, (B, n) each, of B graphs given by symmetric (B, n, n) weights.

    Both weights are 0 where there is no edge, the signed ones also where it has no sign.

    strength
        Sum of the weights of the node's edges.
    expected_influence
        Sum of the signed weights of the node's edges (Robinaugh, Millner and McNally 2016).
    closeness
        (r - 1) / (sum of distances) * (r - 1) / (n - 1), where r nodes can be reached and an edge
        is 1 / weight long; 0 for an isolated node.  As networkx's `closeness_centrality`.
    betweenness
        Share of the shortest paths between other nodes that lead through the node, as networkx's
        `betweenness_centrality` with the same lengths.

    Examples
    --------
    >>> chain = np.array([[[0.0, 0.5, 0.0], [0.5, 0.0, 0.25], [0.0, 0.25, 0.0]]])
    >>> measures = centrality(chain, -chain)
    >>> measures["strength"].tolist(), measures["betweenness"].tolist()
    ([[0.5, 0.75, 0.25]], [[0.0, 1.0, 0.0]])
    """
    from mixedgm.studies.centrality_kernels import shortest_path_measures

    shape = weights.shape[:2]
    closeness, betweenness = np.zeros(shape), np.zeros(shape)
    shortest_path_measures(np.ascontiguousarray(weights), closeness, betweenness)
    return {
        "strength": weights.sum(axis=2),
        "expected_influence": signed.sum(axis=2),
        "closeness": closeness,
        "betweenness": betweenness,
    }
