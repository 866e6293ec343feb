"""Pull of a penalty, a diagonal metric and a point -> the block step of a group, or of all at once.

Nothing else of a penalty is known here than that it pulls along theta_g.
"""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner
from mixedgm.model.layout import Floats, Ints


def scaled_prox(pull: Floats, metric: Floats, point: Floats, starts: Ints) -> Floats:
    """argmin_x  sum_i metric_i (x_i - point_i)^2 / 2 + sum_g pull_g norm(x_g).

    A group is x_i = d_i y_i / (d_i + m) with metric d, point y and m = pull / |x|.  The root in m
    of 1 / |x| = m / pull is found by Newton's method: both sides are almost straight lines.
    Coordinates of one group follow those of another; `starts` says where each begins, and the end.
    """
    if not pull.any():
        return point
    d, y, size = metric, point, np.diff(starts)

    def sums(values: Floats) -> Floats:
        return np.add.reduceat(values, starts[:-1])

    penalised = pull > 0.0
    divisor = np.where(penalised, pull, 1.0)
    there = np.sqrt(sums(np.square(d * y))) > pull
    norm = np.sqrt(sums(np.square(y)))
    m = np.where(there & penalised, pull / np.where(norm > 0.0, norm, 1.0), 0.0)
    for _ in range(50):
        spread = np.repeat(m, size)
        x = d * y / (d + spread)
        square = sums(np.square(x))
        length = np.sqrt(np.where(square > 0.0, square, 1.0))
        off = 1.0 / length - m / divisor
        active = there & penalised & (np.abs(off) * length > 1e-12)
        if not active.any():
            break
        slope = sums(np.square(x) / (d + spread)) / length**3 - 1.0 / divisor
        falls = slope < 0.0
        step = np.where(falls, m - off / np.where(falls, slope, 1.0), 2.0 * m)
        m = np.where(active, np.maximum(step, 0.5 * m), m)
    return np.where(np.repeat(there, size), d * y / (d + np.repeat(m, size)), 0.0)


@inner
def block_step(c, pull, values, first, m, out):  # type: ignore[no-untyped-def]
    """argmin_v  v'Dv/2 - c'v + pull |v|  for diagonal D, in place of `out`."""
    norm = 0.0
    for i in range(m):
        norm += c[i] * c[i]
    if pull > 0.0 and norm <= pull * pull:
        for i in range(m):
            out[i] = 0.0
        return
    if pull == 0.0:
        for i in range(m):
            out[i] = c[i] / values[first + i]
        return
    if m == 1:
        out[0] = (c[0] - pull if c[0] > 0.0 else c[0] + pull) / values[first]
        return
    # Secular equation sum_i (c_i / (D_i t + pull))^2 = 1 for the norm t, by Newton on
    # 1 / sqrt(sum) - 1, which is nearly linear in t and is approached from one side.
    t = 0.0
    for _ in range(100):
        total, slope = 0.0, 0.0
        for i in range(m):
            denominator = values[first + i] * t + pull
            ratio = c[i] / denominator
            total += ratio * ratio
            slope += ratio * ratio * values[first + i] / denominator
        root = np.sqrt(total)
        change = (root - 1.0) * total / slope
        t += change
        if abs(change) <= 1e-14 * t:
            break
    for i in range(m):
        out[i] = c[i] * t / (values[first + i] * t + pull)


@inner
def block_distance(g, theta, first, m, pull):  # type: ignore[no-untyped-def]
    """Distance of -g to the subdifferential of pull |.| at the block (largest entry if free)."""
    norm, size = 0.0, 0.0
    for i in range(m):
        norm += theta[first + i] * theta[first + i]
        size += g[i] * g[i]
    norm, size = np.sqrt(norm), np.sqrt(size)
    if norm == 0.0:
        return max(0.0, size - pull)
    total = 0.0
    for i in range(m):
        x = g[i] + pull * theta[first + i] / norm
        total += x * x
    return np.sqrt(total)
