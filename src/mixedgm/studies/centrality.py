"""Strengths of edges of many graphs -> how central every node is in each of them."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner, kernel
from mixedgm.model.layout import Floats

__all__ = ["MEASURES", "centrality"]

_TIE = 1e-12
MEASURES = ("total_strength", "expected_influence", "closeness", "betweenness")


def centrality(strengths: Floats, signed: Floats) -> dict[str, Floats]:
    """Compute all measures, (B, n) each, of B graphs given by symmetric (B, n, n) strengths.

    Both strengths are 0 where there is no edge, the signed ones also where it has no sign.

    total_strength
        Sum of the strengths of the node's edges.
    expected_influence
        Sum of the signed strengths of the node's edges (Robinaugh, Millner and McNally 2016).
    closeness
        (r - 1) / (sum of distances) * (r - 1) / (n - 1), where r nodes can be reached and an edge
        is 1 / strength long; 0 for an isolated node.  As networkx's `closeness_centrality`.
    betweenness
        Share of the shortest paths between other nodes that lead through the node, as networkx's
        `betweenness_centrality` with the same lengths.

    Examples
    --------
    >>> chain = np.array([[[0.0, 0.5, 0.0], [0.5, 0.0, 0.25], [0.0, 0.25, 0.0]]])
    >>> measures = centrality(chain, -chain)
    >>> measures["total_strength"].tolist(), measures["betweenness"].tolist()
    ([[0.5, 0.75, 0.25]], [[0.0, 1.0, 0.0]])
    """
    shape = strengths.shape[:2]
    closeness, betweenness = np.zeros(shape), np.zeros(shape)
    _shortest_path_measures(np.ascontiguousarray(strengths), closeness, betweenness)
    return {
        "total_strength": strengths.sum(axis=2),
        "expected_influence": signed.sum(axis=2),
        "closeness": closeness,
        "betweenness": betweenness,
    }


# -- kernels ---------------------------------------------------------------------------------------


@kernel
def _shortest_path_measures(strengths, closeness, betweenness):  # type: ignore[no-untyped-def]
    """Fill (B, n) closeness and betweenness of B graphs given as (B, n, n) symmetric strengths.

    Brandes (2001) on dense graphs.  The length of an edge is 1 / strength; no strength, no edge.
    """
    n_graphs, n = strengths.shape[0], strengths.shape[1]
    length = np.empty((n, n))
    distance, paths, share = np.empty(n), np.empty(n), np.empty(n)
    order = np.empty(n, np.int64)
    for b in range(n_graphs):
        for u in range(n):
            for v in range(n):
                length[u, v] = 1.0 / strengths[b, u, v] if strengths[b, u, v] > 0.0 else np.inf
        betweenness[b] = 0.0
        for source in range(n):
            n_reached = _search(length, source, distance, paths, order)
            total = distance[order[:n_reached]].sum()
            closeness[b, source] = 0.0
            if n_reached > 1:
                others = n_reached - 1.0
                closeness[b, source] = others / total * others / (n - 1.0)
            share[:] = 0.0
            for k in range(n_reached - 1, 0, -1):
                w = order[k]
                for i in range(k):
                    u = order[i]
                    if abs(distance[u] + length[u, w] - distance[w]) <= _TIE * distance[w]:
                        share[u] += paths[u] / paths[w] * (1.0 + share[w])
                betweenness[b, w] += share[w]
        if n > 2:
            betweenness[b] /= (n - 1.0) * (n - 2.0)


@inner(allocates=True)
def _search(length, source, distance, paths, order):  # type: ignore[no-untyped-def]
    """Dijkstra: distances, numbers of shortest paths, nodes from near to far; how many."""
    n = length.shape[0]
    done = np.zeros(n, np.bool_)
    distance[:] = np.inf
    paths[:] = 0.0
    distance[source], paths[source] = 0.0, 1.0
    for k in range(n):
        u = -1
        for v in range(n):
            if not done[v] and distance[v] < np.inf and (u < 0 or distance[v] < distance[u]):
                u = v
        if u < 0:
            return k
        done[u] = True
        order[k] = u
        for v in range(n):
            if done[v] or length[u, v] == np.inf:
                continue
            there = distance[u] + length[u, v]
            if there < distance[v] * (1.0 - _TIE) or distance[v] == np.inf:
                distance[v], paths[v] = there, paths[u]
            elif there <= distance[v] * (1.0 + _TIE):
                paths[v] += paths[u]
    return n
