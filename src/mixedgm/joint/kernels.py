"""Tables and random numbers -> level codes and means, row by row in compiled loops."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _pick(logits, first, last, u):  # type: ignore[no-untyped-def]
    """Level drawn from the softmax of ``logits[first:last]`` with one uniform number."""
    top = logits[first]
    for a in range(first + 1, last):
        top = max(top, logits[a])
    total = 0.0
    for a in range(first, last):
        total += np.exp(logits[a] - top)
    goal = u * total
    reached = 0.0
    level = 0
    for a in range(first, last):
        chance = np.exp(logits[a] - top)
        if chance > 0.0:  # a level without a chance is never drawn, not even by rounding
            level = a - first
            reached += chance
            if reached > goal:
                break
    return level


@njit(nogil=True, cache=True)
def gibbs_sweep(codes, unary, pairwise, start, uniforms):  # type: ignore[no-untyped-def]
    """Redraw every column of every chain once, in place.

    The logits of all levels of all columns are kept up to date while the columns change, so a
    column that keeps its level costs nothing but its own softmax.  They are computed afresh for
    every sweep: rounding does not pile up.
    """
    n, q = codes.shape
    width = len(unary)
    logits = np.empty(width)
    for i in range(n):
        logits[:] = unary
        for j in range(q):
            logits += pairwise[start[j] + codes[i, j]]
        for j in range(q):
            old = codes[i, j]
            new = _pick(logits, start[j], start[j + 1], uniforms[i, j])
            if new != old:
                codes[i, j] = new
                for a in range(width):
                    logits[a] += pairwise[start[j] + new, a] - pairwise[start[j] + old, a]


@njit(nogil=True, cache=True)
def add_level_rows(out, codes, start, rows):  # type: ignore[no-untyped-def]
    """Add to every row of `out` the rows that belong to its levels, in place."""
    n, q = codes.shape
    for i in range(n):
        for j in range(q):
            row = start[j] + codes[i, j]
            for s in range(out.shape[1]):
                out[i, s] += rows[row, s]
