"""Tiny models -> their joint density, enumerated over states and summed over grids."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from .plain import Blocks, starts


def log_density(blocks: Blocks, x: Sequence[float], y: Sequence[int]) -> float:
    """Unnormalised log p(x, y), each unordered pair once."""
    p, first = len(x), starts(blocks.n_levels)
    total = 0.0
    for s in range(p):
        total += float(blocks.cont_bias[s]) * x[s]
        for t in range(p):
            total -= 0.5 * x[s] * float(blocks.precision[s, t]) * x[t]
        for j, level in enumerate(y):
            total += float(blocks.category_shift[s, first[j] + level]) * x[s]
    for j, level in enumerate(y):
        total += float(blocks.cat_bias[first[j] + level])
        for r in range(j):
            total += float(blocks.cat_interaction[first[r] + y[r], first[j] + level])
    return total


def states(n_levels: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every combination of levels."""
    return product(*(range(m) for m in n_levels))


def grid(centre: Sequence[float], half_width: float, n_points: int) -> Iterator[list[float]]:
    """Points of an even grid over a box; the trapezoid rule is spectrally exact for Gaussians."""
    step = 2 * half_width / (n_points - 1)
    axes = [[c - half_width + k * step for k in range(n_points)] for c in centre]
    for point in product(*axes):
        yield list(point)


def joint_table(
    blocks: Blocks, half_width: float = 12.0, n_points: int = 61
) -> dict[tuple[int, ...], tuple[float, list[float]]]:
    """Per state y: p(y) and E[x | y], by enumerating states and summing x over a grid."""
    p = len(blocks.cont_bias)
    mass: dict[tuple[int, ...], float] = {}
    first_moment: dict[tuple[int, ...], list[float]] = {}
    for y in states(blocks.n_levels):
        mass[y], first_moment[y] = 0.0, [0.0] * p
        for x in grid([0.0] * p, half_width, n_points):
            density = math.exp(log_density(blocks, x, y))
            mass[y] += density
            for s in range(p):
                first_moment[y][s] += density * x[s]
    total = math.fsum(mass.values())
    return {y: (mass[y] / total, [m / mass[y] for m in first_moment[y]]) for y in mass}


def levels_from_joint(blocks: Blocks, r: int, x: Sequence[float], y: Sequence[int]) -> list[float]:
    """p(y_r | rest) by normalising the joint density over the levels of y_r."""
    masses = []
    for level in range(blocks.n_levels[r]):
        masses.append(math.exp(log_density(blocks, x, [*y[:r], level, *y[r + 1 :]])))
    return [m / math.fsum(masses) for m in masses]


def moments_from_joint(
    blocks: Blocks, s: int, x: Sequence[float], y: Sequence[int]
) -> tuple[float, float]:
    """Mean and variance of x_s | rest by summing the joint density over a grid of x_s."""
    points = [point[0] for point in grid([0.0], 30.0, 3001)]
    logs = [log_density(blocks, [*x[:s], v, *x[s + 1 :]], y) for v in points]
    top = max(logs)
    masses = [math.exp(value - top) for value in logs]
    total = math.fsum(masses)
    mean = math.fsum(m * v for m, v in zip(masses, points, strict=True)) / total
    spread = math.fsum(m * (v - mean) ** 2 for m, v in zip(masses, points, strict=True))
    return mean, spread / total
