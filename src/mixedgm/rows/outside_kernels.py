"""Numba kernels over blocks of pairs of nodes: gradients, and where pairs enter."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner, kernel


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


@kernel(fastmath={"reassoc", "contract"})
def row_products(columns, share, first, second, out):  # type: ignore[no-untyped-def]
    """out[k] = sum over rows i of share[i] columns[first[k], i] columns[second[k], i]."""
    for k in range(first.shape[0]):
        x, y, total = columns[first[k]], columns[second[k]], 0.0
        for i in range(share.shape[0]):
            total += share[i] * x[i] * y[i]
        out[k] = total


@kernel(fastmath={"reassoc", "contract"})
def gaussian_residuals(columns, share, terms, entries, is_predicted, nodes, out):  # type: ignore[no-untyped-def]
    """out[s] = share times the residuals of the Gaussian nodes[0]:nodes[1]; rest as above."""
    (linear, precision), (entry_ptr, column, values) = terms, entries
    for s in range(nodes[0], nodes[1]):
        row = out[s]
        if not is_predicted[s]:
            for i in range(share.shape[0]):
                row[i] = 0.0
            continue
        for i in range(share.shape[0]):
            row[i] = linear[s]
        for e in range(entry_ptr[s], entry_ptr[s + 1]):
            x, other = values[e], columns[column[e]]
            if x != 0.0:
                for i in range(share.shape[0]):
                    row[i] += x * other[i]
        scale, own = 1.0 / precision[s], columns[s]
        for i in range(share.shape[0]):
            row[i] = share[i] * (scale * row[i] - own[i])


@inner
def _pair_weights(weights, u, second, end, out):  # type: ignore[no-untyped-def]
    """out[v - second] = weight of the pair (u, v); weights as in `entries_of_block`."""
    scale, kind, by_kind, first_exception, exception, its_weight = weights
    factor, of_u = by_kind[kind[u]], scale[u]
    for v in range(second, end):
        out[v - second] = of_u * scale[v] * factor[kind[v]]
    low, high = first_exception[u], first_exception[u + 1]
    while low < high:
        middle = (low + high) // 2
        if exception[middle] < second:
            low = middle + 1
        else:
            high = middle
    while low < first_exception[u + 1] and exception[low] < end:
        out[exception[low] - second] = its_weight[low]
        low += 1


@kernel(fastmath={"reassoc", "contract"})
def gaussian_entries(moments, terms, entries, is_predicted, weights, nodes, out):  # type: ignore[no-untyped-def]
    """out[i, j] = entry of the pair of Gaussian nodes (first + i, first + j), for all j > i.

    nodes = (first, end of the first ones, end); arguments as in `slopes_by_moments` and
    `entries_of_block`, -1 as there.  Here both conditionals of a pair are added up in one go, from
    a row of second moments: of every node only its neighbours' rows are read besides.
    """
    (mean, second), (linear, precision), (entry_ptr, column, values) = moments, terms, entries
    first, last, end = nodes
    weight = np.empty(end - first)
    for u in range(first, last):
        row, own = out[u - first], second[u]
        _pair_weights(weights, u, first, end, weight)
        for v in range(first, u + 1):
            row[v - first] = -1.0
        for v in range(u + 1, end):
            row[v - first] = 0.0
        if is_predicted[u]:
            scale = linear[u] / precision[u]
            for v in range(u + 1, end):
                row[v - first] = scale * mean[v] - own[v]
            for e in range(entry_ptr[u], entry_ptr[u + 1]):
                x = values[e] / precision[u]
                if x != 0.0:
                    other = second[column[e]]
                    for v in range(u + 1, end):
                        row[v - first] += x * other[v]
        for v in range(u + 1, end):
            if is_predicted[v]:
                x = linear[v] * mean[u]
                for e in range(entry_ptr[v], entry_ptr[v + 1]):
                    x += values[e] * own[column[e]]
                row[v - first] += x / precision[v] - own[v]
        for v in range(u + 1, end):
            x, w = abs(row[v - first]), weight[v - first]
            row[v - first] = x / w if w < np.inf else -1.0


@kernel
def entries_of_block(slopes, others, shared, starts, weights, nodes, out):  # type: ignore[no-untyped-def]
    """out[i, j] = entry of the pair of nodes (first + i, second + j); -1 where it is not asked for.

    slopes[b, a] = mean of z_a r_b and others[a, b] = mean of r_a z_b for the columns a of the first
    nodes and b of the second; others is empty unless pairs are shared.  starts = first column of
    every node; nodes = (first, end, first of the second, end); weights = (scale, kind, by_kind,
    first exception of every node, its second node, its weight), as in `PairWeights`.
    """
    first, last, second, end = nodes
    weight = np.empty(end - second)
    for u in range(first, last):
        _pair_weights(weights, u, second, end, weight)
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
