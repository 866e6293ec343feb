"""Numba kernel over edge groups: distances to the subdifferential of the penalty."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import kernel

_LOOSE = {"reassoc", "contract"}


@kernel(fastmath=_LOOSE)
def subgradient_distances(starts, theta, grad, pull, out):  # type: ignore[no-untyped-def]
    """out[g] = distance from -grad_g to pull[g] times the subdifferential of the norm."""
    for g in range(out.shape[0]):
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
