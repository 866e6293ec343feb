"""Curvature on the model subspace -> how well missing edges are explained by those that exist.

With Q the curvature in coordinates where the penalty is a plain sum of norms, and M the node terms
and edges of the truth, K = Q_gM (Q_MM)^-1 maps a change of the edges' subgradients to what it does
to the gradient of a missing edge g.  The number of g is

    max over unit z_a, one per edge a, of ||sum_a K_ga z_a||  =  max_|u|=1 sum_a ||K_ga'u||.

Turn by turn the best z for a u and the best u for a z never lower the sum: a lower bound, attained.
From above, sum_a ||K_ga||_2; and by ||v|| <= (t + ||v||^2 / t) / 2, for any t_a > 0,

    (sum_a t_a + largest eigenvalue of sum_a K_ga K_ga' / t_a) / 2,

which with t_a = ||K_ga'u|| equals the lower bound where u is the best there is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve

from mixedgm.diagnostics.curvature import ContrastCoordinates
from mixedgm.model.layout import Floats, Ints

__all__ = ["Irrepresentable", "irrepresentable", "largest_sum"]

_TURNS = 500
_SETTLED = 1e-13
_CLOSED = 1e-9
_STARTS = 8


@dataclass(frozen=True, eq=False)
class Irrepresentable:
    """Convexity and irrepresentability numbers of a truth, from its curvature.

    Convexity is the smallest eigenvalue on M. Every missing edge has a number with the directions
    of the true edges, and bounds of the largest over all directions; all infinite without convexity
    on M.
    """

    convexity: float
    at_truth: Floats
    lower: Floats
    upper: Floats

    @property
    def worst(self) -> Floats:
        """(4,) convexity and the largest of each kind of number."""
        largest = [float(part.max(initial=0.0)) for part in (self.at_truth, self.lower, self.upper)]
        return np.array([self.convexity, *largest])


def irrepresentable(coordinates: ContrastCoordinates, columns: Floats) -> Irrepresentable:
    """Find the numbers of all missing edges.

    Columns (n, |M|) are the curvature of every coordinate with those of M.
    """
    layout, model, inactive = coordinates.layout, coordinates.model, coordinates.inactive
    inside = 0.5 * (columns[model] + columns[model].T)
    convexity = float(np.linalg.eigvalsh(inside)[0]) if len(model) else np.inf
    numbers = np.full((3, len(inactive)), np.inf)
    if convexity <= 1e-12 * float(np.abs(np.diagonal(inside)).max(initial=0.0)):
        return Irrepresentable(convexity, *numbers)
    edges = np.zeros((len(model), len(model) - layout.n_node_terms))
    edges[layout.n_node_terms :] = np.eye(edges.shape[1])
    by_edge = solve(inside, edges, assume_a="pos") if edges.size else edges
    sizes = layout.sizes[coordinates.active]
    for at, g in enumerate(inactive.tolist()):
        block = columns[layout.starts[g] : layout.starts[g + 1]] @ by_edge
        numbers[0, at] = np.linalg.norm(block @ coordinates.directions)
        numbers[1:, at] = largest_sum(block, sizes)
    return Irrepresentable(convexity, *numbers)


def largest_sum(block: Floats, sizes: Ints) -> tuple[float, float]:
    """Bounds of ``max ||sum_a block_a z_a||`` over unit vectors z_a.

    `sizes` are the widths of the parts of a block (k, n). The bounds are equal when it has one row
    or one part, and mostly otherwise.

    Examples
    --------
    >>> largest_sum(np.array([[3.0, 4.0, -2.0]]), np.array([2, 1]))
    (7.0, 7.0)
    """
    if len(sizes) == 0 or not block.any():
        return 0.0, 0.0
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    if len(block) == 1:
        exact = float(np.sqrt(np.add.reduceat(block[0] ** 2, first)).sum())
        return exact, exact
    parts = np.split(block, first[1:], axis=1)
    singular = [np.linalg.svd(part, full_matrices=False)[:2] for part in parts]
    norms = np.array([values[0] for _, values in singular])
    heavy = np.argsort(-norms)[:_STARTS]
    whole = np.linalg.svd(block, full_matrices=False)[0]
    starts = np.column_stack([whole[:, 0], *(singular[a][0][:, 0] for a in heavy), whole[:, 1:]])
    lower, upper = 0.0, float(norms.sum())
    for start in starts.T:
        u, value = _ascent(block, first, start)
        lower = max(lower, value)
        upper = min(upper, _dual(block, sizes, first, u))
        if upper <= lower * (1.0 + _CLOSED):
            break
    return lower, max(lower, upper)


def _ascent(block: Floats, first: Ints, u: Floats) -> tuple[Floats, float]:
    """Improve a unit vector u turn by turn; return it and its sum of norms."""
    sizes = np.diff(np.append(first, block.shape[1]))
    value = -1.0
    for _ in range(_TURNS):
        pulled = block.T @ u
        norms = np.sqrt(np.add.reduceat(pulled**2, first))
        if norms.sum() <= value * (1.0 + _SETTLED):
            break
        value = float(norms.sum())
        moved = block @ (pulled / np.repeat(np.where(norms > 0.0, norms, 1.0), sizes))
        u = moved / np.linalg.norm(moved)
    return u, value


def _dual(block: Floats, sizes: Ints, first: Ints, u: Floats) -> float:
    """The upper bound with t_a = ||block_a' u||."""
    t = np.sqrt(np.add.reduceat((block.T @ u) ** 2, first))
    t = np.maximum(t, 1e-12 * t.max())
    scaled = block / np.sqrt(np.repeat(t, sizes))
    return 0.5 * float(t.sum() + np.linalg.norm(scaled, 2) ** 2)
