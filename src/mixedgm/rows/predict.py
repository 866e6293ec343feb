"""Params and any number of rows -> losses, conditional means, probabilities, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.density import conditionals, losses
from mixedgm.model.layout import Floats
from mixedgm.model.params import Params

_CELLS_PER_BLOCK = 2**20


def _blocks(params: Params, n_rows: int) -> Iterator[slice]:
    width = max(1, len(params.nodes) + int(params.nodes.level_start[-1]))
    size = max(1, _CELLS_PER_BLOCK // width)
    for first in range(0, n_rows, size):
        yield slice(first, min(first + size, n_rows))


def mean_losses(
    params: Params,
    numbers: Floats,
    codes: NDArray[np.integer],
    weights: Floats | None = None,
    n_observed: float = np.inf,
) -> Floats:
    """(p + q,) weighted mean negative log conditional of every column."""
    total = np.zeros(len(params.nodes))
    for block in _blocks(params, len(numbers)):
        loss = losses(params, numbers[block], codes[block], n_observed)
        total += loss.sum(axis=0) if weights is None else weights[block] @ loss
    return total / (len(numbers) if weights is None else weights.sum())


def cell_losses(
    params: Params, numbers: Floats, codes: NDArray[np.integer], n_observed: float = np.inf
) -> Floats:
    """(n, p + q) negative log conditional of every cell."""
    out = np.empty((len(numbers), len(params.nodes)))
    for block in _blocks(params, len(numbers)):
        out[block] = losses(params, numbers[block], codes[block], n_observed)
    return out


def predictions(
    params: Params,
    numbers: Floats,
    codes: NDArray[np.integer],
    points: Mapping[int, Callable[[Floats], NDArray[Any]]],
    n_observed: float = np.inf,
) -> dict[int, NDArray[Any]]:
    """Predictions of some nodes: `points` applied to their means, or to log probabilities.

    A point of a spiked node gets (n, 3): log probabilities that it is not zero, means and variances
    where it is not.
    """
    parts: dict[int, list[NDArray[Any]]] = {node: [] for node in points}
    nodes = params.nodes
    for block in _blocks(params, len(numbers)):
        given = conditionals(params, numbers[block], codes[block], n_observed)
        for node, point in points.items():
            at = nodes.place(node)
            if nodes.spiked_nodes[node]:
                there = given.log_prob[:, nodes.levels_of(at).stop - 1]
                variance = np.full(len(there), given.variance[node])
                part = np.column_stack([there, given.mean[:, node], variance])
            elif nodes.is_gaussian(node):
                part = given.mean[:, at]
            else:
                part = given.log_prob[:, nodes.levels_of(at)]
            parts[node].append(point(part))
    return {node: np.concatenate(part) if part else np.zeros(0) for node, part in parts.items()}


def probabilities(
    params: Params,
    numbers: Floats,
    codes: NDArray[np.integer],
    discrete: int,
    n_observed: float = np.inf,
) -> Floats:
    """(n, L) probability of every level of discrete column number `discrete`."""
    out = np.empty((len(numbers), params.n_levels[discrete]))
    for block in _blocks(params, len(numbers)):
        given = conditionals(params, numbers[block], codes[block], n_observed)
        out[block] = np.exp(given.log_prob[:, params.levels_of(discrete)])
    return out
