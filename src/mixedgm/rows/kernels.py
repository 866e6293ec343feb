"""Numba kernels over blocks of rows: linear predictors, softmax, products with Z transposed.

Indices that run from other than 0 are unsigned: a signed one might be negative, and Numba's
wrapping of negative indices keeps a loop from vectorising.

Where most pairs of columns are wanted, a block of Z is made and multiplied by BLAS; where few
are, their coefficients are picked by level.  Every kernel releases the GIL.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mixedgm.rows.arithmetic import exp_nonpositive, log_positive

_LOOSE = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True)
def _fill_block(cont, codes, first, n_rows, level_start, block):  # type: ignore[no-untyped-def]
    """block[i] = z of row first + i: the continuous columns, then an indicator per level."""
    n_cont = cont.shape[1]
    for i in range(n_rows):
        for s in range(n_cont):
            block[i, s] = cont[first + i, s]
        for k in range(n_cont, block.shape[1]):
            block[i, k] = 0.0
        for j in range(codes.shape[1]):
            block[i, n_cont + level_start[j] + np.int64(codes[first + i, j])] = 1.0


@njit(nogil=True, cache=True, fastmath=_LOOSE)
def _predict_node(codes, first, n_rows, node, incidence, values, bias, turned_cont, turned):  # type: ignore[no-untyped-def]
    """Logits of one node, levels by rows, from its listed blocks only.

    node = (categorical column, first level column, levels); turned_cont is (p, rows).
    """
    target_ptr, predictor, entry_ptr = incidence
    cat, base, width = node
    n_cont = turned_cont.shape[0]
    for k in range(width):
        for i in range(n_rows):
            turned[k, i] = bias[base + k]
    for m in range(target_ptr[n_cont + cat], target_ptr[n_cont + cat + 1]):
        u, entry = predictor[m], entry_ptr[m]
        if u < n_cont:
            for k in range(width):
                x = values[entry + k]
                for i in range(n_rows):
                    turned[k, i] += x * turned_cont[u, i]
        else:
            for i in range(n_rows):
                at = np.uint64(entry + np.int64(codes[first + i, u - n_cont]) * width)
                for k in range(width):
                    turned[k, i] += values[at + np.uint64(k)]


@njit(nogil=True, cache=True, fastmath=_LOOSE)
def _collect_node(codes, first, n_rows, node, incidence, turned_cont, turned, mean_prob, grad):  # type: ignore[no-untyped-def]
    """Add z P' of one node for its listed blocks, and 1'P; turned holds P, levels by rows."""
    target_ptr, predictor, entry_ptr = incidence
    cat, base, width = node
    n_cont = turned_cont.shape[0]
    for k in range(width):
        total = 0.0
        for i in range(n_rows):
            total += turned[k, i]
        mean_prob[base + k] += total
    for m in range(target_ptr[n_cont + cat], target_ptr[n_cont + cat + 1]):
        u, entry = predictor[m], entry_ptr[m]
        if u < n_cont:
            for k in range(width):
                total = 0.0
                for i in range(n_rows):
                    total += turned_cont[u, i] * turned[k, i]
                grad[entry + k] += total
        else:
            for i in range(n_rows):
                at = np.uint64(entry + np.int64(codes[first + i, u - n_cont]) * width)
                for k in range(width):
                    grad[at + np.uint64(k)] += turned[k, i]


@njit(nogil=True, cache=True, fastmath=_LOOSE)
def _softmax_node(codes, weights, first, n_rows, cat, width, work):  # type: ignore[no-untyped-def]
    """Logits of one node -> weighted probabilities in place; returns the weighted loss.

    The node's logits stand levels by rows, so that every operation runs over rows and vectorises
    however few levels there are.  work = (turned, largest logit, sum, logit seen): separate
    arrays, so that the compiler need not fear that they overlap.
    """
    turned, top, norm, seen = work
    for i in range(n_rows):
        seen[i] = turned[codes[first + i, cat], i]
        top[i] = turned[0, i]
        norm[i] = 0.0
    for k in range(1, width):
        for i in range(n_rows):
            top[i] = max(top[i], turned[k, i])
    for k in range(width):
        for i in range(n_rows):
            e = exp_nonpositive(turned[k, i] - top[i])
            turned[k, i] = e
            norm[i] += e
    total = 0.0
    if weights.shape[0] > 0:
        for i in range(n_rows):
            total += weights[first + i] * (top[i] - seen[i] + log_positive(norm[i]))
            norm[i] = weights[first + i] / norm[i]
    else:
        for i in range(n_rows):
            total += top[i] - seen[i] + log_positive(norm[i])
            norm[i] = 1.0 / norm[i]
    for k in range(width):
        for i in range(n_rows):
            turned[k, i] *= norm[i]
    return total


@njit(nogil=True, cache=True)
def _turn(table, first, n_rows, base, width, turned):  # type: ignore[no-untyped-def]
    """turned[k, i] = table[first + i, base + k]."""
    at = np.uint64(base)
    for k in range(width):
        for i in range(n_rows):
            turned[k, i] = table[first + i, at + np.uint64(k)]


@njit(nogil=True, cache=True, fastmath=_LOOSE)
def _add_bias(bias, base, width, n_rows, turned):  # type: ignore[no-untyped-def]
    for k in range(width):
        for i in range(n_rows):
            turned[k, i] += bias[base + k]


@njit(nogil=True, cache=True, fastmath=_LOOSE)
def _turn_back(turned, n_rows, base, width, table, mean_prob):  # type: ignore[no-untyped-def]
    """table[i, base + k] = turned[k, i]; mean_prob gains the sums over rows."""
    at = np.uint64(base)
    for k in range(width):
        total = 0.0
        for i in range(n_rows):
            table[i, at + np.uint64(k)] = turned[k, i]
            total += turned[k, i]
        mean_prob[base + k] += total


@njit(nogil=True, cache=True)
def _add(term, total):  # type: ignore[no-untyped-def]
    for a in range(total.shape[0]):
        for k in range(total.shape[1]):
            total[a, k] += term[a, k]


@njit(nogil=True, cache=True)
def softmax_chunks(  # type: ignore[no-untyped-def]
    data, bounds, chunks, level_start, bias, dense, incidence, values, want, sizes, out
):
    """Run the chunks of rows ``chunks[0]:chunks[1]``, each into its own slot of `out`.

    data = (cont, codes, weights); chunk c holds the rows bounds[c]:bounds[c + 1].
    dense = (d, levels) coefficients, or empty when `incidence` and `values` hold them.
    want = 0 value, 1 gradient on the support, 2 gradient for all pairs.
    sizes = (rows per block, d, most levels of a node); out = (loss, mean_prob, support, all_pairs).
    """
    cont, codes, weights = data
    block, n_columns, widest = sizes
    loss, mean_prob, support, all_pairs = out
    n_cat, is_dense = codes.shape[1], dense.shape[0] > 0
    # A block of Z is only made for the products with it.
    whole = block if is_dense or want == 2 else 0
    z, logits = np.empty((whole, n_columns)), np.zeros((whole, bias.shape[0]))
    turned_cont = np.empty((cont.shape[1], 0 if is_dense else block))
    work = (np.empty((widest, block)), np.empty(block), np.empty(block), np.empty(block))
    turned = work[0]
    product = np.empty((n_columns if want == 2 else 0, bias.shape[0]))
    for c in range(chunks[0], chunks[1]):
        for first in range(bounds[c], bounds[c + 1], block):
            n_rows = min(block, bounds[c + 1] - first)
            if whole > 0:
                _fill_block(cont, codes, first, n_rows, level_start, z)
            if is_dense:
                np.dot(z[:n_rows], dense, logits[:n_rows])
            else:
                _turn(cont, first, n_rows, 0, cont.shape[1], turned_cont)
            for j in range(n_cat):
                node = (j, level_start[j], level_start[j + 1] - level_start[j])
                if is_dense:
                    _turn(logits, 0, n_rows, node[1], node[2], turned)
                    _add_bias(bias, node[1], node[2], n_rows, turned)
                else:
                    _predict_node(
                        codes, first, n_rows, node, incidence, values, bias, turned_cont, turned
                    )
                loss[c, j] += _softmax_node(codes, weights, first, n_rows, j, node[2], work)
                if want == 1:
                    _collect_node(
                        codes, first, n_rows, node, incidence, turned_cont, turned,
                        mean_prob[c], support[c],
                    )  # fmt: skip
                elif want == 2:
                    _turn_back(turned, n_rows, node[1], node[2], logits, mean_prob[c])
            if want == 2 and first == bounds[c]:
                np.dot(z[:n_rows].T, logits[:n_rows], all_pairs[c])
            elif want == 2:
                np.dot(z[:n_rows].T, logits[:n_rows], product)
                _add(product, all_pairs[c])


@njit(nogil=True, cache=True)
def level_moments(data, level_start, cont_by_level, level_by_level):  # type: ignore[no-untyped-def]
    """Sums of w x_s over the rows of each level, and of w over pairs of levels (upper triangle)."""
    cont, codes, weights = data
    weighted = weights.shape[0] > 0
    n_cont, n_cat = cont.shape[1], codes.shape[1]
    column = np.empty(n_cat, np.int64)
    for i in range(codes.shape[0]):
        weight = weights[i] if weighted else 1.0
        for j in range(n_cat):
            column[j] = level_start[j] + codes[i, j]
        for j in range(n_cat):
            a = column[j]
            for s in range(n_cont):
                cont_by_level[a, s] += weight * cont[i, s]
            for k in range(j, n_cat):
                level_by_level[a, column[k]] += weight
