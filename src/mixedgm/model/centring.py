"""Theta and some groups -> the same distribution with these groups summing to zero over levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mixedgm.model.layout import Layout

Floats = NDArray[np.float64]


def centred(layout: Layout, theta: Floats, groups: NDArray[np.int64]) -> Floats:
    """Move level means of these groups to the node terms, and centre all biases.

    A row mean of an interaction belongs to the bias of that row's node, the mean of a category
    shift to the bias of the continuous node.  The penalty centres its groups by itself; groups
    free of penalty and the biases need it done.

    Deviations act on design columns less their means, which sum to zero over levels: the means of
    their blocks act on nothing and are dropped.
    """
    theta = theta.copy()
    for g in groups.tolist():
        u, v = layout.pairs[g].tolist()
        run = theta[layout.starts[g] : layout.starts[g + 1]]
        blocks = run.reshape(-1, layout.width[u], layout.width[v])
        if layout.moderator[g] < 0:
            _to_node_terms(layout, theta, blocks[0], (u, v))
        if layout.width[v] > 1:
            blocks -= blocks.mean(axis=2, keepdims=True)
        if layout.width[u] > 1:
            blocks -= blocks.mean(axis=1, keepdims=True)
    if layout.n_levels:
        width = layout.width[layout.n_gaussian :]
        first = layout.column_start[layout.n_gaussian : -1] - layout.n_gaussian
        means = np.add.reduceat(theta[layout.biases], first) / width
        theta[layout.biases] -= np.repeat(means, width)
    return theta


def _to_node_terms(layout: Layout, theta: Floats, block: Floats, ends: tuple[int, int]) -> None:
    u, v = ends
    for mean, node in ((block.mean(axis=1), u), (block.mean(axis=0), v)):
        if node == u and layout.nodewise:
            continue  # the same for all levels of v: no conditional changes
        if layout.width[v if node == u else u] > 1:
            theta[layout.node_terms_of(node)[: layout.width[node]]] += mean
