"""Pull of the penalty, a diagonal metric and a point -> the block step of all groups at once."""

from __future__ import annotations

import numpy as np

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
