"""Numba kernel over the edge groups of a flat vector: their norms."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import kernel


@kernel(fastmath={"reassoc", "contract"})
def group_norms(starts, theta, out):  # type: ignore[no-untyped-def]
    """out[g] = norm of theta[starts[g]:starts[g + 1]]."""
    for g in range(out.shape[0]):
        total = 0.0
        for k in range(starts[g], starts[g + 1]):
            total += theta[k] * theta[k]
        out[g] = np.sqrt(total)
