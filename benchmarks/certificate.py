"""A task and a point -> its KKT number by whole matrices, without the package's own passes.

The indicator matrix is formed, block by block of rows, and nothing is skipped: neither kernels,
nor moments, nor screening are used.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixedgm.path.path import Path
from mixedgm.path.task import Task

Floats = NDArray[np.float64]

_BLOCK = 2**24
"""Numbers in a block of the indicator matrix."""


def worst_kkt(task: Task, path: Path, at_most: int = 10) -> float:
    """The largest KKT number over evenly spread points of a path, and its worst by own account."""
    points = {int(k) for k in np.linspace(0, len(path) - 1, min(at_most, len(path)))}
    points.add(int(np.argmax(path.kkt)))
    found = [kkt(task, path.theta(k), float(path.lams[k])) for k in sorted(points)]
    return max(*found, float(path.kkt.max()))


def kkt(task: Task, theta: Floats, lam: float) -> float:
    """Distance from optimality at theta, in standardised coordinates."""
    layout = task.layout
    T, numeric = layout.to_matrix(theta), layout.nodes.n_numeric
    node_grad, cross, frequency = _gradient(task, theta, T)
    starts = layout.column_start[:-1]
    trace = np.add.reduceat(frequency * (1.0 - frequency), starts)
    scale = np.concatenate([np.ones(numeric), np.sqrt(trace[numeric:])])
    weights = np.outer(scale, scale)
    node = layout.column_node
    size, G = _norms(T, starts), cross + cross.T
    direction = (weights / np.where(size > 0.0, size, 1.0))[node][:, node] * T
    active = _norms(G + lam * direction, starts)
    idle = np.maximum(0.0, _norms(G, starts) - lam * weights)
    distance = np.where(size > 0.0, active, idle) / weights
    edges = distance[np.triu_indices(len(starts), 1)].max(initial=0.0)
    return float(max(edges, np.abs(node_grad).max()))


def gradient(task: Task, theta: Floats) -> Floats:
    """The gradient in theta, for comparison with the package's own."""
    layout = task.layout
    nodes, cross, _ = _gradient(task, theta, layout.to_matrix(theta))
    return np.concatenate([nodes, layout.from_matrix(cross + cross.T)])


def _gradient(task: Task, theta: Floats, T: Floats) -> tuple[Floats, Floats, Floats]:
    """Of the node terms, as in theta; Z'(residuals); and the column means of Z."""
    rows, layout = task.smooth.rows, task.layout  # type: ignore[attr-defined]
    p, d, nodes = layout.n_gaussian, layout.n_columns, layout.nodes
    linear, b = theta[layout.linear], theta[layout.diagonal]
    alone = nodes.own_logits(theta[layout.biases])
    weights = np.ones(len(rows.codes)) if rows.weights is None else rows.weights
    total, by_value, slope = np.zeros(p), np.zeros(len(alone)), np.zeros(p)
    cross, frequency = np.zeros((d, d)), np.zeros(d)
    step = max(1, _BLOCK // max(d, len(alone)))
    for first in range(0, len(weights), step):
        part = slice(first, first + step)
        share = weights[part] / weights.sum()
        starts = layout.column_start[nodes.n_numeric :]
        Z = indicators(rows.numbers[part], rows.codes[part][:, nodes.n_scored :], starts)
        residual = Z @ T
        E = (linear + residual[:, :p]) / b - Z[:, :p]
        residual[:, :p] = E
        for j in range(len(nodes.n_levels)):
            own, values = nodes.columns_of(p + j), nodes.levels_of(j)
            table = (
                nodes.scores[values][:, None] if j < nodes.n_scored else np.eye(len(alone[values]))
            )
            wrong = _softmax(alone[values] + residual[:, own] @ table.T)
            wrong[np.arange(len(wrong)), rows.codes[part, j]] -= 1.0
            by_value[values] += share @ wrong
            residual[:, own] = wrong @ table
        cross += Z.T @ (share[:, None] * residual)
        total += share @ E
        slope += share @ (-0.5 / b - Z[:, :p] * E - 0.5 * E**2)
        frequency += share @ Z
    return np.concatenate([total, slope, nodes.term_sums(by_value)]), cross, frequency


def indicators(numbers: Floats, codes: NDArray[np.integer], starts: NDArray[np.int64]) -> Floats:
    Z = np.zeros((len(codes), int(starts[-1])))
    Z[:, : numbers.shape[1]] = numbers
    for j in range(codes.shape[1]):
        Z[np.arange(len(codes)), starts[j] + codes[:, j]] = 1.0
    return Z


def _softmax(logits: Floats) -> Floats:
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def _norms(M: Floats, starts: NDArray[np.int64]) -> Floats:
    """Frobenius norm of every node-by-node block."""
    return np.sqrt(np.add.reduceat(np.add.reduceat(M * M, starts, axis=0), starts, axis=1))
