"""Groups and the pull of the penalty on each -> block steps and distances to the subdifferential.

Numba kernels.  Nothing else of a penalty is compiled into them than that it pulls along theta_g.
"""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner, kernel

_LOOSE = {"reassoc", "contract"}


@kernel(fastmath=_LOOSE)
def subgradient_distances(starts, theta, grad, pull, first, last, out):  # type: ignore[no-untyped-def]
    """out[g] = distance from -grad_g to pull[g] times the subdifferential of the norm.

    For the groups first:last.
    """
    for g in range(first, last):
        square, slope = 0.0, 0.0
        for k in range(starts[g], starts[g + 1]):
            square += theta[k] * theta[k]
            slope += grad[k] * grad[k]
        if square == 0.0:
            beyond = np.sqrt(slope) - pull[g]
            out[g] = 0.0 if beyond <= 0.0 else beyond  # NaN stays NaN
            continue
        factor, total = pull[g] / np.sqrt(square), 0.0
        for k in range(starts[g], starts[g + 1]):
            x = grad[k] + factor * theta[k]
            total += x * x
        out[g] = np.sqrt(total)


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
