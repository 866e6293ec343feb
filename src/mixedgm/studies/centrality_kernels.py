"""Stacks of weighted graphs -> closeness and betweenness of their nodes, by Numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixedgm.compiled import inner, kernel

_TIE = 1e-12


@kernel
def shortest_path_measures(weights: Any, closeness: Any, betweenness: Any) -> None:
    """Fill (B, n) closeness and betweenness of B graphs given as (B, n, n) symmetric weights.

    Brandes (2001) on dense graphs.  The length of an edge is 1 / weight; no weight, no edge.
    """
    n_graphs, n = weights.shape[0], weights.shape[1]
    length = np.empty((n, n))
    distance, paths, share = np.empty(n), np.empty(n), np.empty(n)
    order = np.empty(n, np.int64)
    for b in range(n_graphs):
        for u in range(n):
            for v in range(n):
                length[u, v] = 1.0 / weights[b, u, v] if weights[b, u, v] > 0.0 else np.inf
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
def _search(length: Any, source: Any, distance: Any, paths: Any, order: Any) -> Any:
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
