"""Numba kernels: sums for second derivatives by BLAS, for all pairs of a node's columns at once."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner

_LOOSE = {"reassoc", "contract", "nsz"}


@inner
def kept(n_levels):  # type: ignore[no-untyped-def]
    """Columns of a predictor without its first level; 0 levels are a number."""
    return 1 if n_levels == 0 else n_levels - 1


@inner
def columns_of(n, facts):  # type: ignore[no-untyped-def]
    """Those of all n predictors."""
    return facts[5][n - 1] + kept(facts[0][n - 1])


@inner(allocates=True, fastmath=_LOOSE)
def add_products(n_rows, n, facts, codes, values, by_level, n_packed, work):  # type: ignore[no-untyped-def]
    """The same sums for all pairs of columns at once, by BLAS, without every first level.

    work = (columns by rows, some of them times packed levels by rows, a product, the sums: columns
    by columns times packed levels).  Of the sums, those of a column with later ones count.
    """
    left, right, product, sums = work
    n_levels, narrow, length = facts[0], facts[5], right.shape[0]
    for at in range(n):
        for k in range(kept(n_levels[at])):
            for i in range(n_rows):
                there = n_levels[at] == 0 or codes[at, i] == k + 1
                left[narrow[at] + k, i] = values[at, i] if there else 0.0
            for i in range(n_rows, left.shape[1]):
                left[narrow[at] + k, i] = 0.0
    n_columns = columns_of(n, facts)
    total = n_columns * n_packed
    for first in range(0, total, length):
        here = min(length, total - first)
        for k in range(here):
            b, level = (first + k) // n_packed, (first + k) % n_packed
            for i in range(n_rows):
                right[k, i] = left[b, i] * by_level[level, i]
        last = (first + here - 1) // n_packed + 1
        part = product[:last]
        np.dot(left[:last], right.T, part)
        for a in range(last):
            to = np.uint64(a * total + first)
            for k in range(here):
                sums[to + np.uint64(k)] += part[a, k]


@inner
def with_first_levels(n, facts, gram, sums, out):  # type: ignore[no-untyped-def]
    """Put the sums of `add_products` where the gram has them; those of first levels follow.

    All levels of a column add up to the intercept (or its feature), and no two of them are seen at
    once.
    """
    (n_levels, origin, _, _, whole, narrow), (base, size, n_packed) = facts, gram
    n_columns = columns_of(n, facts)
    for a in range(n):
        for i in range(kept(n_levels[a])):
            at, row = narrow[a] + i, origin[a] + i + np.int64(n_levels[a] > 0)
            for b in range(a, n):
                for j in range(i if a == b else 0, kept(n_levels[b])):
                    source = (at * n_columns + narrow[b] + j) * n_packed
                    to = row * size + origin[b] + j + np.int64(n_levels[b] > 0)
                    for k in range(n_packed):
                        out[base + to * n_packed + k] = sums[source + k]
                if n_levels[b] == 0 or a == b:
                    continue
                low, high = min(at, whole[b]), max(at, whole[b])
                for k in range(n_packed):
                    x = sums[(low * n_columns + high) * n_packed + k]
                    for j in range(n_levels[b] - 1):
                        x -= sums[(at * n_columns + narrow[b] + j) * n_packed + k]
                    out[base + (row * size + origin[b]) * n_packed + k] = x
    for a in range(n):
        if n_levels[a] == 0:
            continue
        row = origin[a] * size
        for b in range(origin[a], size):
            for k in range(n_packed):
                x = out[base + (whole[a] * size + b) * n_packed + k]
                if b >= origin[a] + n_levels[a]:
                    for j in range(1, n_levels[a]):
                        x -= out[base + (row + j * size + b) * n_packed + k]
                elif b > origin[a]:
                    x = 0.0
                out[base + (row + b) * n_packed + k] = x
