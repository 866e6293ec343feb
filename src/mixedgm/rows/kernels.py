"""Numba kernels over blocks of rows: linear predictors, softmax, products with Z transposed.

Indices that run from other than 0 are unsigned: a signed one might be negative, and Numba's
wrapping of negative indices keeps a loop from vectorising.

Where most pairs of columns are wanted, a block of Z is made and multiplied by BLAS; where few
are, their coefficients are picked by level.  Every kernel releases the GIL.

Products of features with Z are never formed.  What the columns of feature k predict together is
predicted as if there were no feature, and multiplied by it row by row; and products of such a
column with P are those of Z with P times the feature.
"""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner, kernel
from mixedgm.rows.arithmetic import FEW_LEVELS, exp_nonpositive, log_positive

_LOOSE = {"reassoc", "contract", "nsz"}


@inner
def _fill_block(cont, codes, first, n_rows, level_start, block):  # type: ignore[no-untyped-def]
    """block[i] = z of row first + i: continuous columns, then an indicator per level; then 0."""
    n_cont = cont.shape[1]
    for i in range(n_rows):
        for s in range(n_cont):
            block[i, s] = cont[first + i, s]
        for k in range(n_cont, block.shape[1]):
            block[i, k] = 0.0
        for j in range(codes.shape[1]):
            block[i, n_cont + level_start[j] + np.int64(codes[first + i, j])] = 1.0
    for i in range(n_rows, block.shape[0]):
        for k in range(block.shape[1]):
            block[i, k] = 0.0


@inner(fastmath=_LOOSE)
def _predict_node(turned, n_rows, cat, wanted, incidence, values, logits):  # type: ignore[no-untyped-def]
    """Logits of one node less their bias, levels by rows, from its listed blocks only.

    turned = (continuous columns, level codes), columns by rows.  Blocks of the feature `wanted`
    are taken (-1: of none), before the feature itself; returns their number.
    """
    cont, codes = turned
    target_ptr, predictor, entry_ptr, feature = incidence
    width, n_cont, found = logits.shape[0], cont.shape[0], 0
    for k in range(width):
        for i in range(n_rows):
            logits[k, i] = 0.0
    for m in range(target_ptr[n_cont + cat], target_ptr[n_cont + cat + 1]):
        if feature[m] != wanted:
            continue
        u, entry = predictor[m], entry_ptr[m]
        found += 1
        if u < n_cont:
            for k in range(width):
                x = values[entry + k]
                for i in range(n_rows):
                    logits[k, i] += x * cont[u, i]
            continue
        level, n_levels = codes[u - n_cont], (entry_ptr[m + 1] - entry) // width
        if n_levels <= FEW_LEVELS:
            for k in range(width):
                for a in range(n_levels):
                    x = values[entry + a * width + k]
                    for i in range(n_rows):
                        logits[k, i] += x if level[i] == a else 0.0
        else:
            for i in range(n_rows):
                at = np.uint64(entry + level[i] * width)
                for k in range(width):
                    logits[k, i] += values[at + np.uint64(k)]
    return found


@inner(fastmath=_LOOSE)
def _collect_node(turned, n_rows, cat, wanted, incidence, probs, grad):  # type: ignore[no-untyped-def]
    """Add z P' of one node for its listed blocks; probs holds P, levels by rows.

    Blocks of the feature `wanted` are taken (-1: of none); P has been multiplied by it.
    """
    cont, codes = turned
    target_ptr, predictor, entry_ptr, feature = incidence
    width, n_cont = probs.shape[0], cont.shape[0]
    for m in range(target_ptr[n_cont + cat], target_ptr[n_cont + cat + 1]):
        if feature[m] != wanted:
            continue
        u, entry = predictor[m], entry_ptr[m]
        if u < n_cont:
            for k in range(width):
                total = 0.0
                for i in range(n_rows):
                    total += cont[u, i] * probs[k, i]
                grad[entry + k] += total
            continue
        level, n_levels = codes[u - n_cont], (entry_ptr[m + 1] - entry) // width
        if n_levels <= FEW_LEVELS:
            for k in range(width):
                for a in range(n_levels):
                    total = 0.0
                    for i in range(n_rows):
                        total += probs[k, i] if level[i] == a else 0.0
                    grad[entry + a * width + k] += total
        else:
            for i in range(n_rows):
                at = np.uint64(entry + level[i] * width)
                for k in range(width):
                    grad[at + np.uint64(k)] += probs[k, i]


@inner(fastmath=_LOOSE)
def _softmax_node(codes, weights, first, n_rows, cat, bias, logits, work):  # type: ignore[no-untyped-def]
    """Logits of one node less their bias -> weighted probabilities in place; returns the loss.

    The node's logits stand levels by rows, so that every operation runs over rows and vectorises
    however few levels there are.  work = (largest logit, sum, logit seen): separate arrays, so
    that the compiler need not fear that they overlap.
    """
    top, norm, seen = work
    for i in range(n_rows):
        logits[0, i] += bias[0]
        top[i] = logits[0, i]
        norm[i] = 0.0
    for k in range(1, bias.shape[0]):
        for i in range(n_rows):
            logits[k, i] += bias[k]
            top[i] = max(top[i], logits[k, i])
    for i in range(n_rows):
        seen[i] = logits[codes[first + i, cat], i]
    for k in range(bias.shape[0]):
        for i in range(n_rows):
            e = exp_nonpositive(logits[k, i] - top[i])
            logits[k, i] = e
            norm[i] += e
    # Sums run in loops that write nothing.  A loop that also writes exists twice, in vectors and
    # not, and where the arrays happen to lie decides which runs: the last bit would depend on it.
    total = 0.0
    if weights.shape[0] > 0:
        for i in range(n_rows):
            total += weights[first + i] * (top[i] - seen[i] + log_positive(norm[i]))
        for i in range(n_rows):
            norm[i] = weights[first + i] / norm[i]
    else:
        for i in range(n_rows):
            total += top[i] - seen[i] + log_positive(norm[i])
        for i in range(n_rows):
            norm[i] = 1.0 / norm[i]
    for k in range(bias.shape[0]):
        for i in range(n_rows):
            logits[k, i] *= norm[i]
    return total


@inner
def _turn(table, first, n_rows, turned):  # type: ignore[no-untyped-def]
    """turned[k, i] = table[first + i, k]."""
    for k in range(table.shape[1]):
        for i in range(n_rows):
            turned[k, i] = table[first + i, k]


@inner(fastmath=_LOOSE)
def _add_row_sums(turned, n_rows, total):  # type: ignore[no-untyped-def]
    for k in range(turned.shape[0]):
        x = 0.0
        for i in range(n_rows):
            x += turned[k, i]
        total[k] += x


@inner(fastmath=_LOOSE)
def _add_moderated(part, bias, feature, n_rows, logits):  # type: ignore[no-untyped-def]
    """Logits += feature * (part + bias); rows beyond those of the bias are padding."""
    for k in range(bias.shape[0]):
        for i in range(n_rows):
            logits[k, i] += feature[i] * (part[k, i] + bias[k])


@inner(fastmath=_LOOSE)
def _times(probs, feature, n_rows, out):  # type: ignore[no-untyped-def]
    for k in range(probs.shape[0]):
        for i in range(n_rows):
            out[k, i] = probs[k, i] * feature[i]


@inner
def _add(term, total):  # type: ignore[no-untyped-def]
    for a in range(total.shape[0]):
        for k in range(total.shape[1]):
            total[a, k] += term[a, k]


@inner(allocates=True)
def _dot(z, probs, is_first, product, total):  # type: ignore[no-untyped-def]
    """Add P z' of a block of rows to what the blocks before it gave."""
    if is_first:
        np.dot(probs, z, total)
    else:
        np.dot(probs, z, product)
        _add(product, total)


@kernel
def softmax_chunks(  # type: ignore[no-untyped-def]
    data, bounds, chunks, level_start, nodes, bias, dense, incidence, values, want, sizes, out
):
    """Run the chunks of rows ``chunks[0]:chunks[1]``, each into its own slot of `out`.

    data = (cont, codes, weights, features); chunk c holds the rows bounds[c]:bounds[c + 1].
    nodes = the categorical columns to predict; bias[1 + k] is that of the feature k.
    dense = (1 + features, d, levels) coefficients, or empty when `incidence` and `values` do.
    want = 0 value, 1 gradient on the support, 2 gradient for all pairs.
    sizes = (rows per block, d); out = (loss, mean_prob, support, all_pairs).

    BLAS writes logits levels by rows.  Its matrices are whole blocks: rows of Z after the last
    one are zero, and what stands beside them counts for nothing.
    """
    cont, codes, weights, features = data
    loss, mean_prob, support, all_pairs = out
    is_dense, width = dense.shape[0] > 0, mean_prob.shape[2]
    # A block of Z is only made for the products with it.
    z = np.zeros((sizes[0] if is_dense or want == 2 else 0, sizes[1]))
    logits, part = np.zeros((width, sizes[0])), np.zeros((width * (len(bias) > 1), sizes[0]))
    columns = 0 if is_dense else sizes[0]
    turned = (np.empty((cont.shape[1], columns)), np.empty((codes.shape[1], columns), np.int64))
    moderating = np.empty((len(bias) - 1, sizes[0]))
    work = (np.empty(sizes[0]), np.empty(sizes[0]), np.empty(sizes[0]))
    product = np.empty((width if want == 2 else 0, sizes[1]))
    for c in range(chunks[0], chunks[1]):
        for first in range(bounds[c], bounds[c + 1], sizes[0]):
            n_rows = min(sizes[0], bounds[c + 1] - first)
            _turn(features, first, n_rows, moderating)
            if z.shape[0] > 0:
                _fill_block(cont, codes, first, n_rows, level_start, z)
            if is_dense:
                for k in range(len(bias)):
                    np.dot(dense[k].T, z.T, part if k > 0 else logits)
                    if k > 0:
                        _add_moderated(part, bias[k], moderating[k - 1], n_rows, logits)
            else:
                _turn(cont, first, n_rows, turned[0])
                _turn(codes, first, n_rows, turned[1])
            # Every kernel is called in one place only: each further one is compiled again.
            for j in nodes:
                levels = slice(level_start[j], level_start[j + 1])
                own, other = logits[levels], part[levels]
                for k in range(0 if is_dense else len(bias)):
                    here = other if k > 0 else own
                    found = _predict_node(turned, n_rows, j, k - 1, incidence, values, here)
                    if k > 0 and found > 0:
                        _add_moderated(other, bias[k][levels], moderating[k - 1], n_rows, own)
                loss[c, j] += _softmax_node(
                    codes, weights, first, n_rows, j, bias[0][levels], own, work
                )
                for k in range(len(bias) if want > 0 else 0):
                    here = other if k > 0 else own
                    if k > 0:
                        _times(own, moderating[k - 1], n_rows, other)
                    if want == 1:
                        _collect_node(turned, n_rows, j, k - 1, incidence, here, support[c])
                    _add_row_sums(here, n_rows, mean_prob[c, k][levels])
            for k in range(len(bias) if want == 2 else 0):
                if k > 0:
                    _times(logits, moderating[k - 1], n_rows, part)
                _dot(z, part if k > 0 else logits, first == bounds[c], product, all_pairs[c, k])


@kernel
def fill_dense(incidence, level_start, values, dense):  # type: ignore[no-untyped-def]
    """dense[column, level] = coefficient, for all categorical targets; dense is zero before."""
    target_ptr, entry_ptr, entry_column = incidence
    n_cont = target_ptr.shape[0] - level_start.shape[0]
    for cat in range(level_start.shape[0] - 1):
        first, last = level_start[cat], level_start[cat + 1]
        for m in range(target_ptr[n_cont + cat], target_ptr[n_cont + cat + 1]):
            at, column = entry_ptr[m], entry_column[entry_ptr[m]]
            while at < entry_ptr[m + 1]:
                for k in range(first, last):
                    dense[column, k] = values[at]
                    at += 1
                column += 1


@kernel
def level_moments(data, level_start, column, cont_by_level, level_by_level):  # type: ignore[no-untyped-def]
    """Sums of w x_s over the rows of each level, and of w over pairs of levels (upper triangle).

    column has room for a row's levels.
    """
    cont, codes, weights, _ = data
    weighted = weights.shape[0] > 0
    n_cont, n_cat = cont.shape[1], codes.shape[1]
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
