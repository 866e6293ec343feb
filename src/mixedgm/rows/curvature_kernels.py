"""Numba kernels over rows: second derivatives of the softmax terms, packed and unpacked."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner, kernel
from mixedgm.rows.arithmetic import exp_nonpositive

_LOOSE = {"reassoc", "contract", "nsz"}
_BLOCK = 128


@inner(fastmath=_LOOSE)
def _pack(weights, rows, n_rows, width, turned, by_level, by_row):  # type: ignore[no-untyped-def]
    """Lower triangle of w (diag(p) - p p') over levels 1 to L - 1, for a block of rows.

    What concerns level 0 follows, because rows of diag(p) - p p' sum to zero.  turned holds p,
    levels by rows; the result stands in both orders.
    """
    at = 0
    for k in range(1, width):
        for m in range(1, k + 1):
            for i in range(n_rows):
                by_level[at, i] = -turned[k, i] * turned[m, i]
            if m == k:
                for i in range(n_rows):
                    by_level[at, i] += turned[k, i]
            at += 1
    if weights.shape[0] > 0:
        for k in range(at):
            for i in range(n_rows):
                by_level[k, i] *= weights[rows[i]]
    for i in range(n_rows):
        for k in range(at):
            by_row[i, k] = by_level[k, i]


@inner
def _fill(table, value):  # type: ignore[no-untyped-def]
    """Cheaper to compile than np.zeros and np.ones."""
    for i in range(table.shape[0]):
        for k in range(table.shape[1]):
            table[i, k] = value


@inner(fastmath=_LOOSE)
def _add_numbers(n_rows, numbers, origin, values, by_level, gram):  # type: ignore[no-untyped-def]
    """gram[a, b] += sum over the block of z_a z_b packed, for predictors that are numbers."""
    x = np.empty(n_rows)
    for at in range(numbers.shape[0]):
        for before in range(at + 1):
            a, b = numbers[before], numbers[at]
            for i in range(n_rows):
                x[i] = values[a, i] * values[b, i]
            for k in range(by_level.shape[0]):
                total = 0.0
                for i in range(n_rows):
                    total += x[i] * by_level[k, i]
                gram[origin[a], origin[b], k] += total


@inner(fastmath=_LOOSE)
def _multiply(n_rows, numbers, values, by_row, outer):  # type: ignore[no-untyped-def]
    """All numbers of a row times its packed levels, one number after the other."""
    n_packed = by_row.shape[1]
    for i in range(n_rows):
        for at in range(numbers.shape[0]):
            x, to = values[numbers[at], i], np.uint64(at * n_packed)
            for k in range(n_packed):
                outer[i, to + np.uint64(k)] = x * by_row[i, k]


@inner(fastmath=_LOOSE)
def _add_levels(n_rows, kinds, origin, codes, values, products, by_level_sums, gram):  # type: ignore[no-untyped-def]
    """The same for pairs of which one or both have levels.

    kinds = (n_levels, is_product), products = (by_row, outer).  Pairs of a level and a number are
    added in by_level_sums, which has a row for every level: what belongs to a level is found once
    for all numbers.
    """
    (n_levels, is_product), (by_row, outer) = kinds, products
    n_packed = by_row.shape[1]
    for b in range(n_levels.shape[0]):
        if n_levels[b] == 0:
            continue
        for i in range(n_rows):
            at_b = np.uint64(origin[b] + codes[b, i])
            y = values[b, i]
            for k in range(outer.shape[1]):
                by_level_sums[at_b, k] += y * outer[i, k]
        for a in range(b + 1):
            if n_levels[a] == 0 or (a == b and not is_product[b]):
                continue
            for i in range(n_rows):
                at_a = np.uint64(origin[a] + codes[a, i])
                at_b = np.uint64(origin[b] + codes[b, i])
                y = values[a, i] * values[b, i]
                for k in range(n_packed):
                    gram[at_a, at_b, k] += y * by_row[i, k]


@inner
def _spread(numbers, n_levels, is_product, origin, by_level_sums, gram):  # type: ignore[no-untyped-def]
    """Put the sums of levels with numbers where the gram has them.

    The square of an indicator is the indicator: what a level has with itself it has with the
    intercept, the first of the numbers.
    """
    n_packed = gram.shape[2]
    for b in range(n_levels.shape[0]):
        for level in range(n_levels[b]):
            at_b = origin[b] + level
            if not is_product[b]:
                for k in range(n_packed):
                    gram[at_b, at_b, k] = by_level_sums[at_b, k]
            for at in range(numbers.shape[0]):
                at_a = origin[numbers[at]]
                low, high = (at_a, at_b) if at_a < at_b else (at_b, at_a)
                for k in range(n_packed):
                    gram[low, high, k] = by_level_sums[at_b, at * n_packed + k]


@inner(fastmath=_LOOSE)
def _intercepts(features, block_rows, n_rows, bias, values, turned):  # type: ignore[no-untyped-def]
    """Logits from the bias alone, in `turned`; values of the features' intercepts."""
    for k in range(turned.shape[0]):
        for i in range(n_rows):
            turned[k, i] = bias[0, k]
    for m in range(1, bias.shape[0]):
        for i in range(n_rows):
            values[m, i] = features[block_rows[i], m - 1]
        for k in range(turned.shape[0]):
            for i in range(n_rows):
                turned[k, i] += bias[m, k] * values[m, i]


@inner(fastmath=_LOOSE)
def _load(data, block_rows, n_rows, node, incidence, coefs, levels, values, turned):  # type: ignore[no-untyped-def]
    """Predictors of one node for a block of rows; its logits are added to `turned`.

    node = (first and last block of the incidence, levels of the node, number of intercepts).
    The intercepts stand first, those of the features already with their values.
    """
    cont, codes, _, features = data
    target_ptr, predictor, entry_ptr, feature = incidence
    first, last, width, n_own = node
    for m in range(first, last):
        u, at = predictor[m], m - first + n_own
        if u < cont.shape[1]:
            for i in range(n_rows):
                values[at, i] = cont[block_rows[i], u]
            if feature[m] >= 0:
                for i in range(n_rows):
                    values[at, i] *= features[block_rows[i], feature[m]]
            for k in range(width):
                x = coefs[entry_ptr[m] + k]
                for i in range(n_rows):
                    turned[k, i] += x * values[at, i]
            continue
        if feature[m] >= 0:
            for i in range(n_rows):
                values[at, i] = features[block_rows[i], feature[m]]
        for i in range(n_rows):
            levels[at, i] = codes[block_rows[i], u - cont.shape[1]]
            entry = np.uint64(entry_ptr[m] + levels[at, i] * width)
            for k in range(width):
                turned[k, i] += values[at, i] * coefs[entry + np.uint64(k)]


@inner(fastmath=_LOOSE)
def _probabilities(n_rows, width, turned, top, norm):  # type: ignore[no-untyped-def]
    """Softmax over levels, in place."""
    for i in range(n_rows):
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
    for k in range(width):
        for i in range(n_rows):
            turned[k, i] /= norm[i]


@inner
def _predictors(node, incidence, n_cont):  # type: ignore[no-untyped-def]
    """Of every predictor of a node: levels (0 for a number), first column, whether it is a product.

    And which of them are numbers; node is as in `_load`.
    """
    target_ptr, predictor, entry_ptr, feature = incidence
    first, last, width, n_own = node
    n = last - first + n_own
    n_levels, origin = np.empty(n, np.int64), np.empty(n, np.int64)
    is_product, numbers = np.empty(n, np.int64), np.empty(n, np.int64)
    found = 0
    for at in range(n):
        n_levels[at], origin[at], is_product[at] = 0, at, 0
        m = first + at - n_own
        if at >= n_own:
            is_product[at] = feature[m] >= 0
            if predictor[m] >= n_cont:
                n_levels[at] = (entry_ptr[m + 1] - entry_ptr[m]) // width
            origin[at] = n_own + (entry_ptr[m] - entry_ptr[first]) // width
        if n_levels[at] == 0:
            numbers[found] = at
            found += 1
    return n_levels, origin, is_product, numbers[:found]


@kernel
def curvature_sums(data, rows, nodes, level_start, bias, incidence, coefs, start, out):  # type: ignore[no-untyped-def]
    """Sum over rows of w (diag(p) - p p') x (z z') for each categorical node in `nodes`.

    rows = (first, last, stride).  The sums of nodes[k] begin at start[k] of the flat `out`:
    (K, K, L (L - 1) / 2), predictors (the intercept first, those of the features, then the node's
    incidence) by the packed levels of `_pack`.  Only pairs of predictors a <= b are filled.
    Returns the weight of the rows used.
    """
    target_ptr, predictor, entry_ptr, feature = incidence
    n_cont, weights, n_own = data[0].shape[1], data[2], bias.shape[0]
    block_rows, top, norm = np.empty(_BLOCK, np.int64), np.empty(_BLOCK), np.empty(_BLOCK)
    total = 0.0
    for node in range(nodes.shape[0]):
        base, width = (
            level_start[nodes[node]],
            level_start[nodes[node] + 1] - level_start[nodes[node]],
        )
        first, last = target_ptr[n_cont + nodes[node]], target_ptr[n_cont + nodes[node] + 1]
        own = (first, last, width, n_own)
        n_levels, origin, is_product, numbers = _predictors(own, incidence, n_cont)
        n_predictors = len(origin)
        n_packed = width * (width - 1) // 2
        size = n_own + (entry_ptr[last] - entry_ptr[first]) // width
        gram = out[start[node] : start[node + 1]].reshape((size, size, n_packed))
        levels = np.empty((n_predictors, _BLOCK), np.int64)
        values = np.empty((n_predictors, _BLOCK))
        _fill(levels, 0)
        _fill(values, 1.0)
        turned = np.empty((width, _BLOCK))
        by_level, by_row = np.empty((n_packed, _BLOCK)), np.empty((_BLOCK, n_packed))
        outer = np.empty((_BLOCK, len(numbers) * n_packed))
        with_number = np.empty((size, outer.shape[1]))
        _fill(with_number, 0.0)
        total = 0.0
        for begin in range(rows[0], rows[1], rows[2] * _BLOCK):
            n_rows = (min(begin + rows[2] * _BLOCK, rows[1]) - begin + rows[2] - 1) // rows[2]
            for i in range(n_rows):
                block_rows[i] = begin + i * rows[2]
                total += weights[block_rows[i]] if weights.shape[0] > 0 else 1.0
            level_bias = bias[:, base : base + width]
            _intercepts(data[3], block_rows, n_rows, level_bias, values, turned)
            _load(data, block_rows, n_rows, own, incidence, coefs, levels, values, turned)
            _probabilities(n_rows, width, turned, top, norm)
            _pack(weights, block_rows, n_rows, width, turned, by_level, by_row)
            _add_numbers(n_rows, numbers, origin, values, by_level, gram)
            _multiply(n_rows, numbers, values, by_row, outer)
            kinds, products = (n_levels, is_product), (by_row, outer)
            _add_levels(n_rows, kinds, origin, levels, values, products, with_number, gram)
        _spread(numbers, n_levels, is_product, origin, with_number, gram)
    return total


@kernel
def unpack_curvature(packed, levels, n_columns, scale, matrix):  # type: ignore[no-untyped-def]
    """Packed (K, K, L (L - 1) / 2) sums of one node -> its symmetric (K L, K L) matrix."""
    source, block = np.int64(0), np.zeros((levels, levels))  # a literal 0 is compiled for apart
    for a in range(n_columns):
        for b in range(n_columns):
            if a <= b:
                _unpack(packed, source, levels, scale, block)
                for k in range(levels):
                    for m in range(levels):
                        matrix[a * levels + k, b * levels + m] = block[k, m]
                        matrix[b * levels + k, a * levels + m] = block[k, m]
            source += levels * (levels - 1) // 2


@inner
def _unpack(packed, source, levels, scale, block):  # type: ignore[no-untyped-def]
    """The triangle over levels 1 to L - 1 -> all levels; rows and columns sum to zero."""
    for k in range(1, levels):
        for m in range(1, k + 1):
            x = packed[source] * scale
            block[k, m] = x
            block[m, k] = x
            source += 1
    block[0, 0] = 0.0
    for k in range(1, levels):
        x = 0.0
        for m in range(1, levels):
            x -= block[k, m]
        block[k, 0] = x
        block[0, k] = x
        block[0, 0] -= x
