"""Parameters and rows -> gradient, finite differences and distance from optimality, by loops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .plain import (
    Blocks,
    Floats,
    Table,
    block,
    calibrated_weights,
    conditional_probabilities,
    copy,
    eta,
    mean_and_scale,
    norm,
    pairs,
    rows_of,
    smooth,
    starts,
    zeros_like,
)


def gradient(
    blocks: Blocks, X: Floats, Y: NDArray[np.int64], row_weights: Floats | None = None
) -> Blocks:
    """Gradient of `smooth`, row by row by the chain rule; a pair's entry is stored twice."""
    out, first = zeros_like(blocks), starts(blocks.n_levels)
    for w, x, y in rows_of(X, Y, row_weights):
        for s in range(len(x)):
            b = float(blocks.precision[s, s])
            e = (eta(blocks, s, x, y) - b * x[s]) / b  # derivative of the term in eta
            out.cont_bias[s] += w * e
            out.precision[s, s] += w * (-1 / (2 * b) - x[s] * e - e * e / 2)
            for t in range(len(x)):
                if t != s:
                    out.precision[s, t] -= w * e * x[t]
                    out.precision[t, s] -= w * e * x[t]
            for j, level in enumerate(y):
                out.category_shift[s, first[j] + level] += w * e
        for r in range(len(y)):
            chances = conditional_probabilities(blocks, r, x, y)
            for level, chance in enumerate(chances):
                d = w * (chance - (1.0 if level == y[r] else 0.0))
                here = first[r] + level
                out.cat_bias[here] += d
                for s, value in enumerate(x):
                    out.category_shift[s, here] += d * value
                for j, other in enumerate(y):
                    if j != r:
                        out.cat_interaction[here, first[j] + other] += d
                        out.cat_interaction[first[j] + other, here] += d
    return out


def coordinates(blocks: Blocks) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and index of every free number; of a symmetric pair, the upper one."""
    p = len(blocks.cont_bias)
    owner = [r for r, m in enumerate(blocks.n_levels) for _ in range(m)]
    for s in range(p):
        yield "cont_bias", (s,)
        for t in range(s, p):
            yield "precision", (s, t)
        for a in range(len(owner)):
            yield "category_shift", (s, a)
    for a in range(len(owner)):
        yield "cat_bias", (a,)
        for b in range(a + 1, len(owner)):
            if owner[a] != owner[b]:
                yield "cat_interaction", (a, b)


def moved(blocks: Blocks, name: str, index: tuple[int, ...], by: float) -> Blocks:
    """Give the blocks with one number (and its mirror image) changed."""
    out = copy(blocks)
    array = getattr(out, name)
    array[index] += by
    if name in ("precision", "cat_interaction") and index[0] != index[1]:
        array[index[::-1]] += by
    return out


def finite_difference(
    blocks: Blocks,
    X: Floats,
    Y: NDArray[np.int64],
    row_weights: Floats | None = None,
    step: float = 1e-5,
) -> Blocks:
    """Central differences of `smooth` in every coordinate, laid out as `gradient`."""
    out = zeros_like(blocks)
    for name, index in coordinates(blocks):
        up = smooth(moved(blocks, name, index, step), X, Y, row_weights)
        down = smooth(moved(blocks, name, index, -step), X, Y, row_weights)
        array = getattr(out, name)
        array[index] = (up - down) / (2 * step)
        if name in ("precision", "cat_interaction"):
            array[index[::-1]] = array[index]
    return out


def standardised(blocks: Blocks, mean: Sequence[float], scale: Sequence[float]) -> Blocks:
    """The same model for (x - mean) / scale."""
    out = copy(blocks)
    p, total = len(mean), sum(blocks.n_levels)
    for s in range(p):
        inner = math.fsum(float(blocks.precision[s, t]) * mean[t] for t in range(p))
        out.cont_bias[s] = scale[s] * (float(blocks.cont_bias[s]) - inner)
        for t in range(p):
            out.precision[s, t] = scale[s] * float(blocks.precision[s, t]) * scale[t]
        for a in range(total):
            out.category_shift[s, a] = scale[s] * float(blocks.category_shift[s, a])
            out.cat_bias[a] += float(blocks.category_shift[s, a]) * mean[s]
    return out


@dataclass(frozen=True)
class Certificate:
    """Distance from optimality; `node` and `edge` are its parts, `slack` per absent edge.

    `slack` maps an absent pair to 1 - norm(gradient) / (lam w): how surely it is absent.
    """

    node: float
    edge: float
    slack: dict[tuple[int, int], float]

    @property
    def kkt(self) -> float:
        return max(self.node, self.edge)


def certificate(
    blocks: Blocks,
    X: Floats,
    Y: NDArray[np.int64],
    lam: float,
    weights: Table,
    row_weights: Floats | None = None,
) -> Certificate:
    """Max over edges of dist(-grad, lam w d|theta|) / c and over node terms of |grad|.

    All in coordinates where each continuous column has mean 0 and variance 1; `weights` are
    those of the own units, c is the calibrated weight whatever they are.
    """
    mean, scale = mean_and_scale(X, row_weights)
    X_std = np.array([[(x[s] - mean[s]) / scale[s] for s in range(len(mean))] for x in X])
    X_std = X_std.reshape(X.shape)
    here = standardised(blocks, mean, scale)
    grad = gradient(here, X_std, Y, row_weights)
    unit = [*scale, *([1.0] * len(blocks.n_levels))]
    calibrated = calibrated_weights(X_std, Y, blocks.n_levels, row_weights)
    node_terms = [*grad.cont_bias, *grad.cat_bias, *np.diag(grad.precision)]
    edge, slack = 0.0, {}
    for u, v in pairs(len(mean), len(blocks.n_levels)):
        if math.isinf(weights[u][v]):
            continue
        pull = lam * weights[u][v] / (unit[u] * unit[v])
        theta, slope = block(here, u, v), block(grad, u, v)
        size = norm(theta)
        if size == 0:
            distance = max(0.0, norm(slope) - pull)
            slack[u, v] = 1 - norm(slope) / pull if pull > 0 else 0.0
        else:
            distance = norm(
                [
                    [g + pull * t / size for g, t in zip(gs, ts, strict=True)]
                    for gs, ts in zip(slope, theta, strict=True)
                ]
            )
        edge = max(edge, distance / calibrated[u][v])
    return Certificate(max((abs(float(g)) for g in node_terms), default=0.0), edge, slack)
