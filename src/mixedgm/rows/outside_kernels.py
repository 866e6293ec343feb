"""Numba kernels over blocks of pairs of nodes: gradients, and where pairs enter."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import kernel


@kernel(fastmath={"reassoc", "contract"})
def slopes_by_moments(moments, terms, entries, expected, is_predicted, targets, columns, out):  # type: ignore[no-untyped-def]
    """out[t, k] = mean of z_k r_t, for some columns t of targets and some columns k.

    moments = (mean, second); terms = (linear, precision) of Gaussian nodes; entries = (first of
    each node, columns, coefficients); expected[l, k] = mean of z_k E_l of the discrete design
    columns l; is_predicted has one entry per column.  targets and columns are (first, end).
    """
    (mean, second), (linear, precision), (entry_ptr, column, values) = moments, terms, entries
    n_gaussian, first = linear.shape[0], columns[0]
    width = columns[1] - first
    for t in range(targets[0], targets[1]):
        row = out[t - targets[0]]
        if not is_predicted[t]:
            for k in range(width):
                row[k] = 0.0
        elif t >= n_gaussian:
            for k in range(width):
                row[k] = expected[t - n_gaussian, first + k] - second[t, first + k]
        else:
            for k in range(width):
                row[k] = linear[t] * mean[first + k]
            for e in range(entry_ptr[t], entry_ptr[t + 1]):
                x = values[e]
                if x != 0.0:
                    other = second[column[e]]
                    for k in range(width):
                        row[k] += x * other[first + k]
            scale = 1.0 / precision[t]
            for k in range(width):
                row[k] = scale * row[k] - second[t, first + k]


@kernel
def entries_of_block(slopes, others, shared, starts, weights, nodes, out):  # type: ignore[no-untyped-def]
    """out[i, j] = entry of the pair of nodes (first + i, second + j); -1 where it is not asked for.

    slopes[b, a] = mean of z_a r_b and others[a, b] = mean of r_a z_b for the columns a of the first
    nodes and b of the second; others is empty unless pairs are shared.  starts = first column of
    every node; nodes = (first, end, first of the second, end); weights = (scale, kind, by_kind,
    first exception of every node, its second node, its weight), as in `PairWeights`.
    """
    scale, kind, by_kind, first_exception, exception, its_weight = weights
    first, last, second, end = nodes
    weight = np.empty(end - second)
    for u in range(first, last):
        for v in range(second, end):
            weight[v - second] = scale[u] * scale[v] * by_kind[kind[u], kind[v]]
        low, high = first_exception[u], first_exception[u + 1]
        while low < high:
            middle = (low + high) // 2
            if exception[middle] < second:
                low = middle + 1
            else:
                high = middle
        while low < first_exception[u + 1] and exception[low] < end:
            weight[exception[low] - second] = its_weight[low]
            low += 1
        for v in range(second, end):
            w = weight[v - second]
            if u == v or (shared and v < u) or not w < np.inf:
                out[u - first, v - second] = -1.0
                continue
            total = 0.0
            for a in range(starts[u] - starts[first], starts[u + 1] - starts[first]):
                for b in range(starts[v] - starts[second], starts[v + 1] - starts[second]):
                    x = slopes[b, a]
                    if shared:
                        x += others[a, b]
                    total += x * x
            out[u - first, v - second] = np.sqrt(total) / w
