"""Numba kernels for the Gaussian terms, which depend on the rows through moments only."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner, kernel


@kernel(fastmath={"reassoc", "contract"})
def gaussian_terms(moments, terms, entries, is_multiplied, part, slopes, out):  # type: ignore[no-untyped-def]
    """Value and slopes of -log p(x_s | rest) for continuous s, from part[0] to part[1].

    moments = (mean, second); terms = (bias, diagonal); entries = (first of each node, columns,
    coefficients c_s).  With `is_multiplied`, slopes[s] is second @ c_s before, else zero.  After,
    slopes[s] is the mean of z E_s, E_s = (a_s + z'c_s - b_s x_s) / b_s, and out = (value, slope in
    the bias, slope in the diagonal), each by node.
    """
    (mean, second), (bias, diagonal), (entry_ptr, columns, values) = moments, terms, entries
    for s in range(part[0], part[1]):
        a, b, product = bias[s], diagonal[s], slopes[s]
        mean_z, square = 0.0, 0.0
        for e in range(entry_ptr[s], entry_ptr[s + 1]):
            x, column = values[e], columns[e]
            mean_z += x * mean[column]
            if not is_multiplied:
                for k in range(product.shape[0]):
                    product[k] += x * second[column, k]
        for e in range(entry_ptr[s], entry_ptr[s + 1]):
            square += values[e] * product[columns[e]]
        # mean of (a + z'c - b x)^2, term by term
        square += a * a + b * b * second[s, s]
        square += 2.0 * (a * mean_z - b * product[s] - b * a * mean[s])
        for k in range(product.shape[0]):
            product[k] = (product[k] + a * mean[k] - b * second[s, k]) / b
        out[0, s] = -0.5 * np.log(b) + square / (2.0 * b)
        out[1, s] = (a + mean_z - b * mean[s]) / b
        out[2, s] = -0.5 / b - product[s] - 0.5 * square / b**2


@inner
def _node_curvature(mean, second, columns, bias, b, values, width, out):  # type: ignore[no-untyped-def]
    """The matrix of one node, which has these columns and coefficients; out is flat."""
    size = columns.shape[0]
    mean_eta, square = bias, 0.0
    for i in range(size):
        a = columns[i]
        z_eta = mean[a] * bias
        for j in range(size):
            x = second[a, columns[j]]
            z_eta += x * values[j]
            out[(i + 2) * width + j + 2] = x / b
        mean_eta += mean[a] * values[i]
        square += values[i] * z_eta
        out[i + 2] = mean[a] / b
        out[(i + 2) * width] = mean[a] / b
        out[width + i + 2] = -z_eta / (b * b)
        out[(i + 2) * width + 1] = -z_eta / (b * b)
    square += bias * mean_eta
    out[0] = 1.0 / b
    out[1] = -mean_eta / (b * b)
    out[width] = -mean_eta / (b * b)
    out[width + 1] = 0.5 / (b * b) + square / (b * b * b)


@kernel
def gaussian_curvatures(moments, terms, nodes, column_ptr, columns, values, start, out):  # type: ignore[no-untyped-def]
    """Second derivative of the nodes' Gaussian terms in (bias, diagonal, coefficients).

    moments = (mean, second); terms = (bias, diagonal); node s has the coefficients
    column_ptr[s]:column_ptr[s + 1]; the matrix of nodes[k] begins at start[k] of the flat `out`.
    """
    mean, second = moments
    bias, diagonal = terms
    for k in range(nodes.shape[0]):
        s = nodes[k]
        here = slice(column_ptr[s], column_ptr[s + 1])
        width = here.stop - here.start + 2
        _node_curvature(
            mean, second, columns[here], bias[s], diagonal[s], values[here], width, out[start[k] :]
        )


@kernel
def block_curvatures(blocks, terms, nodes, values, start, out):  # type: ignore[no-untyped-def]
    """The same where every node has a matrix of second moments of its own.

    blocks = (first column of each node, means, first entry of its matrix, matrices): the columns of
    a node are its own one, then those of its coefficients.
    """
    first, mean, at, second = blocks
    bias, diagonal = terms
    for k in range(nodes.shape[0]):
        s = nodes[k]
        size = first[s + 1] - first[s]
        matrix = second[at[s] : at[s] + size * size].reshape(size, size)
        here = slice(first[s] - s, first[s + 1] - s - 1)
        columns = np.arange(1, size)
        of_node, place = mean[first[s] : first[s + 1]], out[start[k] :]
        _node_curvature(
            of_node, matrix, columns, bias[s], diagonal[s], values[here], size + 1, place
        )


@kernel(fastmath={"reassoc", "contract"})
def block_terms(blocks, rows, terms, values, slopes, out):  # type: ignore[no-untyped-def]
    """`gaussian_terms`, with slopes in the nodes' own coefficients only, in the order of `values`.

    blocks as in `block_curvatures`, but of second moments only some rows are there: those of the
    node's own column, and of coefficients that are not zero.  rows = (first row of each node, the
    coefficient of every row).
    """
    (first, mean, at, second), (row_ptr, coefficient), (bias, diagonal) = blocks, rows, terms
    longest = 0
    for s in range(bias.shape[0]):
        longest = max(longest, first[s + 1] - first[s])
    product = np.empty(longest)
    for s in range(bias.shape[0]):
        a, b, size, entry = bias[s], diagonal[s], first[s + 1] - first[s], first[s] - s
        of_node, own = mean[first[s] : first[s + 1]], second[at[s] : at[s] + size]
        for j in range(size):
            product[j] = 0.0
        mean_z, square = 0.0, 0.0
        for i in range(row_ptr[s] + 1, row_ptr[s + 1]):
            x = values[coefficient[i]]
            mean_z += x * of_node[1 + coefficient[i] - entry]
            begin = at[s] + (i - row_ptr[s]) * size
            for j in range(size):
                product[j] += x * second[begin + j]
        for i in range(row_ptr[s] + 1, row_ptr[s + 1]):
            square += values[coefficient[i]] * product[1 + coefficient[i] - entry]
        square += a * a + b * b * own[0]
        square += 2.0 * (a * mean_z - b * product[0] - b * a * of_node[0])
        for j in range(1, size):
            slopes[entry + j - 1] = (product[j] + a * of_node[j] - b * own[j]) / b
        out[0, s] = -0.5 * np.log(b) + square / (2.0 * b)
        out[1, s] = (a + mean_z - b * of_node[0]) / b
        of_own = (product[0] + a * of_node[0] - b * own[0]) / b
        out[2, s] = -0.5 / b - of_own - 0.5 * square / b**2


@kernel
def edge_gradient(pairs, features, starts, shared, is_target, column_start, sums, part, out):  # type: ignore[no-untyped-def]
    """Sum over the conditionals that every edge is in; `out` is the edge part of theta's gradient.

    sums = (by_cont, by_level, second): by_cont[s, a] is the mean of z_a E_s, by_level[l, a] that of
    z_a P_l.  An edge that is not shared is in the conditional of its second node only.  features =
    (first of every group or -1, how many); products with feature k stand (1 + k) times d columns
    further on.  starts = where every group begins in theta; the groups from part[0] to part[1] are
    taken.  Indices are unsigned, as in `rows/kernels.py`.
    """
    by_cont, by_level, second = sums
    n_cont, n_columns = np.uint64(by_cont.shape[0]), np.uint64(column_start[-1])
    for g in range(part[0], part[1]):
        u, v, at = pairs[g, 0], pairs[g, 1], np.uint64(starts[g] - starts[0])
        heard, said = is_target[v], shared and is_target[u]
        first, last = np.uint64(column_start[v]), np.uint64(column_start[v + 1])
        for k in range(features[1][g]):
            on = np.uint64(1 + features[0][g] + k) * n_columns
            for column in range(column_start[u], column_start[u + 1]):
                a = np.uint64(column)
                for b in range(first, last):
                    x = 0.0
                    if heard:
                        if b < n_cont:
                            x += by_cont[b, on + a]
                        else:
                            x += by_level[b - n_cont, on + a] - second[on + a, b]
                    if said:
                        if a < n_cont:
                            x += by_cont[a, on + b]
                        else:
                            x += by_level[a - n_cont, on + b] - second[on + b, a]
                    out[at] = x
                    at += np.uint64(1)
