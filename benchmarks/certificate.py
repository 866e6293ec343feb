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
    T, p = layout.to_matrix(theta), layout.n_gaussian
    node_grad, cross, frequency = _gradient(task, theta, T)
    starts = layout.column_start[:-1]
    trace = np.add.reduceat(frequency * (1.0 - frequency), starts)
    scale = np.concatenate([np.ones(p), np.sqrt(trace[p:])])
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
    p, d = layout.n_gaussian, layout.n_columns
    edges = layout.from_matrix(cross + cross.T)
    return np.concatenate([nodes[:p], nodes[d:], nodes[p:d], edges])


def _gradient(task: Task, theta: Floats, T: Floats) -> tuple[Floats, Floats, Floats]:
    """Of the node terms; Z'(residuals); and the column means of Z."""
    rows, layout = task.smooth.rows, task.layout  # type: ignore[attr-defined]
    p, d = layout.n_gaussian, layout.n_columns
    bias = np.concatenate([theta[layout.linear], theta[layout.biases]])
    b = theta[layout.diagonal]
    weights = np.ones(len(rows.codes)) if rows.weights is None else rows.weights
    total = np.zeros(d)
    slope = np.zeros(p)
    cross, frequency = np.zeros((d, d)), np.zeros(d)
    step = max(1, _BLOCK // d)
    for first in range(0, len(weights), step):
        part = slice(first, first + step)
        share = weights[part] / weights.sum()
        Z = indicators(rows.numbers[part], rows.codes[part], layout.column_start[p:])
        eta = bias + Z @ T
        E = eta[:, :p] / b - Z[:, :p]
        residual = np.hstack([E, _softmax(eta[:, p:], layout.n_levels) - Z[:, p:]])
        cross += Z.T @ (share[:, None] * residual)
        total += share @ residual
        slope += share @ (-0.5 / b - Z[:, :p] * E - 0.5 * E**2)
        frequency += share @ Z
    return np.concatenate([total, slope]), cross, frequency


def indicators(numbers: Floats, codes: NDArray[np.integer], starts: NDArray[np.int64]) -> Floats:
    Z = np.zeros((len(codes), int(starts[-1])))
    Z[:, : numbers.shape[1]] = numbers
    for j in range(codes.shape[1]):
        Z[np.arange(len(codes)), starts[j] + codes[:, j]] = 1.0
    return Z


def _softmax(logits: Floats, n_levels: tuple[int, ...]) -> Floats:
    ends = np.cumsum((0, *n_levels))
    for a, e in zip(ends[:-1], ends[1:], strict=True):
        part = logits[:, a:e]
        part -= part.max(axis=1, keepdims=True)
        np.exp(part, out=part)
        part /= part.sum(axis=1, keepdims=True)
    return logits


def _norms(M: Floats, starts: NDArray[np.int64]) -> Floats:
    """Frobenius norm of every node-by-node block."""
    return np.sqrt(np.add.reduceat(np.add.reduceat(M * M, starts, axis=0), starts, axis=1))
