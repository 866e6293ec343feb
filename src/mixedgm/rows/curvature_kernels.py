"""Numba kernels over rows: second derivatives of the softmax terms, packed and unpacked."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner, kernel
from mixedgm.rows.arithmetic import exp_nonpositive
from mixedgm.rows.product_kernels import add_products, columns_of, kept, with_first_levels

_LOOSE = {"reassoc", "contract", "nsz"}


@inner(fastmath=_LOOSE)
def _pack(weights, rows, n_rows, width, turned, by_level):  # type: ignore[no-untyped-def]
    """Lower triangle of w (diag(p) - p p') over levels 1 to L - 1, for a block of rows.

    What concerns level 0 follows, because rows of diag(p) - p p' sum to zero.  turned holds p,
    levels by rows.
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


@inner
def _turn(n_rows, n_packed, by_level, by_row):  # type: ignore[no-untyped-def]
    """What `_pack` made, row by row."""
    for i in range(n_rows):
        to = np.uint64(i * n_packed)
        for k in range(n_packed):
            by_row[to + np.uint64(k)] = by_level[k, i]


@inner(fastmath=_LOOSE)
def _add_numbers(n_rows, n_numbers, facts, values, by_level, x, gram, out):  # type: ignore[no-untyped-def]
    """Add the sum over the block of z_a z_b packed, for the predictors that are numbers.

    gram = (where the node's sums begin in the flat `out`, K, packed levels); x is for work.
    """
    (_, origin, _, numbers, _, _), (base, size, n_packed) = facts, gram
    for at in range(n_numbers):
        for before in range(at + 1):
            a, b = numbers[before], numbers[at]
            for i in range(n_rows):
                x[i] = values[a, i] * values[b, i]
            to = base + (origin[a] * size + origin[b]) * n_packed
            for k in range(n_packed):
                total = 0.0
                for i in range(n_rows):
                    total += x[i] * by_level[k, i]
                out[to + k] += total


@inner(fastmath=_LOOSE)
def _multiply(n_rows, n_numbers, numbers, n_packed, values, by_row, outer):  # type: ignore[no-untyped-def]
    """All numbers of a row times its packed levels, one number after the other."""
    for i in range(n_rows):
        row, to = np.uint64(i * n_packed), np.uint64(i * n_numbers * n_packed)
        for at in range(n_numbers):
            x = values[numbers[at], i]
            for k in range(n_packed):
                outer[to + np.uint64(k)] = x * by_row[row + np.uint64(k)]
            to += np.uint64(n_packed)


@inner(fastmath=_LOOSE)
def _add_levels(n_rows, n, facts, codes, values, products, gram, with_number, out):  # type: ignore[no-untyped-def]
    """The same for pairs of which one or both have levels.

    products = (by_row, outer, numbers in a row of outer).  Pairs of a level and a number are added
    in with_number, which has a row for every level: what belongs to a level is looked up once for
    all numbers.
    """
    n_levels, origin, is_product, numbers, _, _ = facts
    (by_row, outer, length), (base, size, n_packed) = products, gram
    for b in range(n):
        if n_levels[b] == 0:
            continue
        for i in range(n_rows):
            to, row = np.uint64((origin[b] + codes[b, i]) * length), np.uint64(i * length)
            y = values[b, i]
            for k in range(length):
                with_number[to + np.uint64(k)] += y * outer[row + np.uint64(k)]
        for a in range(b + 1):
            if n_levels[a] == 0 or (a == b and is_product[b] == 0):
                continue
            for i in range(n_rows):
                pair = (origin[a] + codes[a, i]) * size + origin[b] + codes[b, i]
                to, row = np.uint64(base + pair * n_packed), np.uint64(i * n_packed)
                y = values[a, i] * values[b, i]
                for k in range(n_packed):
                    out[to + np.uint64(k)] += y * by_row[row + np.uint64(k)]


@inner
def _spread(n, n_numbers, facts, gram, with_number, out):  # type: ignore[no-untyped-def]
    """Put the sums of levels with numbers where the gram has them.

    The square of an indicator is the indicator: what a level has with itself it has with the
    intercept, the first of the numbers.
    """
    (n_levels, origin, is_product, numbers, _, _), (base, size, n_packed) = facts, gram
    for b in range(n):
        for at_b in range(origin[b], origin[b] + n_levels[b]):
            row = at_b * n_numbers * n_packed
            # Once more after the last of the numbers: itself.
            for at in range(n_numbers + 1 - is_product[b]):
                at_a = origin[numbers[at]] if at < n_numbers else at_b
                pair = at_a * size + at_b if at_a < at_b else at_b * size + at_a
                source = row + at * n_packed if at < n_numbers else row
                for k in range(n_packed):
                    out[base + pair * n_packed + k] = with_number[source + k]


@inner(fastmath=_LOOSE)
def _intercepts(features, block_rows, n_rows, node, bias, values, turned):  # type: ignore[no-untyped-def]
    """Logits from the bias alone, in `turned`; values of the features' intercepts."""
    first, last, width, n_own, base, column = node
    for k in range(width):
        for i in range(n_rows):
            turned[k, i] = bias[0, base + k]
    for m in range(1, n_own):
        for i in range(n_rows):
            values[m, i] = features[block_rows[i], m - 1]
        for k in range(width):
            for i in range(n_rows):
                turned[k, i] += bias[m, column + k] * values[m, i]


@inner(fastmath=_LOOSE)
def _load(data, block_rows, n_rows, node, incidence, coefs, levels, values, turned):  # type: ignore[no-untyped-def]
    """Predictors of one node for a block of rows; its logits are added to `turned`.

    node = (first and last block of the incidence, levels of the node, number of intercepts, first
    of its levels).  The intercepts stand first, those of the features already with their values.
    """
    numbers, codes, _, features = data
    target_ptr, predictor, entry_ptr, feature = incidence
    first, last, width, n_own, base = node
    for m in range(first, last):
        u, at = predictor[m], m - first + n_own
        if u < numbers.shape[1]:
            for i in range(n_rows):
                values[at, i] = numbers[block_rows[i], u]
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
            levels[at, i] = codes[block_rows[i], u - numbers.shape[1]]
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
def _predictors(node, incidence, n_numeric, facts, values):  # type: ignore[no-untyped-def]
    """Of every predictor of a node: levels (0 for a number), first column, whether it is a product.

    And which of them are numbers, whose number is returned; the intercept that all levels add up
    to; the first column where the first levels are left out.  node is as in `_load`.  An indicator
    has the value 1, unless a feature gives it another one.
    """
    target_ptr, predictor, entry_ptr, feature = incidence
    first, last, width, n_own, base = node
    n_levels, origin, is_product, numbers, whole, narrow = facts
    n_numbers, column = 0, 0
    for at in range(last - first + n_own):
        n_levels[at], origin[at], is_product[at], whole[at] = 0, at, 0, 0
        m = first + at - n_own
        if at >= n_own:
            is_product[at], whole[at] = feature[m] >= 0, feature[m] + 1
            if predictor[m] >= n_numeric:
                n_levels[at] = (entry_ptr[m + 1] - entry_ptr[m]) // width
            origin[at] = n_own + (entry_ptr[m] - entry_ptr[first]) // width
        narrow[at] = column
        column += kept(n_levels[at])
        if n_levels[at] == 0:
            numbers[n_numbers] = at
            n_numbers += 1
        for i in range(values.shape[1]):
            values[at, i] = 1.0
    return n_numbers


@inner
def _packed(data, rows, begin, length, place, bias, incidence, coefs, common):  # type: ignore[no-untyped-def]
    """Predictors and packed levels of a node for the rows of one block; their number and weight."""
    _, _, weights, features = data
    block_rows, top, norm, _, levels, values, turned, by_level = common
    n_rows = (min(begin + length, rows[1]) - begin + rows[2] - 1) // rows[2]
    total = 0.0
    for i in range(n_rows):
        block_rows[i] = begin + i * rows[2]
        total += weights[block_rows[i]] if weights.shape[0] > 0 else 1.0
    _intercepts(features, block_rows, n_rows, place, bias, values, turned)
    _load(data, block_rows, n_rows, place[:5], incidence, coefs, levels, values, turned)
    _probabilities(n_rows, place[2], turned, top, norm)
    _pack(weights, block_rows, n_rows, place[2], turned, by_level)
    return n_rows, total


@kernel
def curvature_sums(data, rows, nodes, shape, bias, incidence, coefs, start, work, out):  # type: ignore[no-untyped-def]
    """Sum over rows of w (diag(p) - p p') x (z z') for each node with indicators in `nodes`.

    shape = (first value of every discrete node, first of its columns, ...). rows = (first, last,
    stride); nodes = (their numbers, whether BLAS is to multiply). The sums of node k begin at
    start[k] of the flat `out`: (K, K, L (L - 1) / 2), predictors (the intercept first, those of the
    features, then the node's incidence) by the packed levels of `_pack`. Only pairs of predictors a
    <= b are filled. work = (rows of a block, two numbers per row, facts about predictors, their
    levels and values, probabilities, these packed by level), (packed by row, outer products, sums
    with numbers), and that of `add_products`.
    Returns the weight of the rows used.
    """
    target_ptr, predictor, entry_ptr, feature = incidence
    common, (by_row, outer, with_number), by_blas = work
    block_rows, _, norm, facts, levels, values, _, by_level = common
    n_gaussian, n_own, total = target_ptr.shape[0] - 1 - data[1].shape[1], bias.shape[0], 0.0
    for at in range(nodes[0].shape[0]):
        node, multiply = nodes[0][at], nodes[1][at]
        base, column = shape[0][node], shape[1][node]
        width = shape[0][node + 1] - base
        first, last = target_ptr[n_gaussian + node], target_ptr[n_gaussian + node + 1]
        place, n = (first, last, width, n_own, base, column), last - first + n_own
        n_numbers = _predictors(place[:5], incidence, data[0].shape[1], facts, values)
        size, n_packed = (
            n_own + (entry_ptr[last] - entry_ptr[first]) // width,
            width * (width - 1) // 2,
        )
        # BLAS gains from long blocks, sums level by level from what is still in the cache.
        length = block_rows.shape[0] // (1 if multiply else 2) * rows[2]
        gram = (start[at], size, n_packed)
        products = (by_row, outer, n_numbers * n_packed)
        total = 0.0
        if multiply:
            by_blas[3][: columns_of(n, facts) ** 2 * n_packed] = 0.0
        else:
            with_number[: size * n_numbers * n_packed] = 0.0
        for begin in range(rows[0], rows[1], length):
            n_rows, weight = _packed(
                data, rows, begin, length, place, bias, incidence, coefs, common
            )
            total += weight
            if multiply:
                add_products(n_rows, n, facts, levels, values, by_level, n_packed, by_blas)
                continue
            _add_numbers(n_rows, n_numbers, facts, values, by_level, norm, gram, out)
            _turn(n_rows, n_packed, by_level, by_row)
            _multiply(n_rows, n_numbers, facts[3], n_packed, values, by_row, outer)
            _add_levels(n_rows, n, facts, levels, values, products, gram, with_number, out)
        if multiply:
            with_first_levels(n, facts, gram, by_blas[3], out)
        else:
            _spread(n, n_numbers, facts, gram, with_number, out)
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
