"""Encoded columns and coefficients of scored nodes -> second derivatives of their terms, summed.

With v the variance of the score given the row, c its covariances with what multiplies own terms,
and z the columns of the node (intercepts: 1, and one for each feature; then its entries of the
incidence), every row adds v z z', c z', and the covariances of what multiplies own terms.
Indicators of first levels are left out, and put back into the sums.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.compiled import inner, kernel
from mixedgm.base.threads import run_all, single_threaded_blas, threads_for
from mixedgm.model.layout import Floats, Ints, offsets
from mixedgm.model.nodes import Nodes
from mixedgm.rows.arithmetic import exp_nonpositive
from mixedgm.rows.contract import Coefficients, NodeMatrices, Shape
from mixedgm.rows.curvature import BLOCK, count_numbers, row_ranges
from mixedgm.rows.kernels import add_moderated, predict_node
from mixedgm.rows.products import Products
from mixedgm.rows.scored_kernels import (
    ORDER,
    find_cells,
    needed_values,
    new_grids,
    power_probabilities,
)

_LOOSE = {"reassoc", "contract", "nsz"}
# Rows that have sums of their own, at least.
_ROWS_OF_A_PART = 500


def scored_curvature(
    data: tuple[Floats, NDArray[np.integer], Floats, Floats],
    shape: Shape,
    of_columns: Nodes,
    asked: tuple[Coefficients, Floats, Ints],
    products: Products | None,
    stride: int,
    n_threads: int,
) -> NodeMatrices:
    """Curvature of scored nodes as whole matrices: own terms, then entries of the incidence.

    asked = (coefficients, biases, nodes), shape as in `kernels`.
    """
    coef, bias, nodes = asked
    incidence, n_rows, n_intercepts = coef.incidence, len(data[1]), len(bias)
    target_ptr, _, entry_ptr, _ = incidence.blocks
    target = of_columns.n_gaussian + nodes
    first, last = target_ptr[target], target_ptr[target + 1]
    entries, n_terms = entry_ptr[last] - entry_ptr[first], of_columns.n_biases[target]
    with_levels = last - first - count_numbers(incidence, first, last)
    n_columns = n_intercepts + entries - with_levels
    starts = offsets(n_columns * (n_columns + n_terms) + n_terms**2)
    n_values = int(np.diff(shape[0])[nodes].max())
    work = (n_rows // stride + 1) * int((n_columns * (n_columns + n_terms) + 20).sum())
    most = min(8, n_rows // (_ROWS_OF_A_PART * stride), 2**23 // max(int(starts[-1]), 1))
    parts = row_ranges(n_rows, max(1, most), stride)
    sums = np.zeros((len(parts), int(starts[-1])))
    sizes = (BLOCK // 2, int(n_columns.max()), n_values, int(n_terms.max()))

    def task(part: int) -> None:
        _sums(
            data,
            (*parts[part], stride),
            nodes,
            shape,
            bias,
            incidence.blocks,
            coef.values,
            starts,
            sizes,
            sums[part],
        )

    with single_threaded_blas():
        run_all([partial(task, k) for k in range(len(parts))], threads_for(work, n_threads))
    weights = data[2]
    total = float(weights[::stride].sum()) if len(weights) else float(-(-n_rows // stride))
    size = n_terms + entries + (n_intercepts if n_intercepts > 1 else 0)
    begins = offsets(size**2)
    matrices = np.empty(int(begins[-1]))
    _matrices(
        nodes,
        n_terms,
        (data[0].shape[1], data[1].shape[1], n_intercepts),
        incidence.blocks,
        (sums[0] if len(parts) == 1 else sums.sum(axis=0), starts, total),
        (matrices, begins),
    )
    whole = NodeMatrices(nodes, begins, matrices)
    if products is None:
        return whole
    centred = [
        products.centre_matrix(whole[k], int(n_terms[k]), incidence.entry_column[entries]).ravel()
        for k, entries in enumerate(map(incidence.entries_of, target.tolist()))
    ]
    return NodeMatrices(nodes, np.cumsum([0, *map(len, centred)]), np.concatenate(centred))


# -- kernels ---------------------------------------------------------------------------------------


@inner(fastmath=_LOOSE)
def _softmax(predictor, n_rows, own, scores, probs, work):
    """Probabilities of the values, value by value."""
    top, norm = work[0], work[1]
    for i in range(n_rows):
        top[i] = own[0] + scores[0] * predictor[i]
        norm[i] = 0.0
    for k in range(1, own.shape[0]):
        for i in range(n_rows):
            top[i] = max(top[i], own[k] + scores[k] * predictor[i])
    for k in range(own.shape[0]):
        for i in range(n_rows):
            e = exp_nonpositive(own[k] + scores[k] * predictor[i] - top[i])
            probs[k, i] = e
            norm[i] += e
    for i in range(n_rows):
        norm[i] = 1.0 / norm[i]
    for k in range(own.shape[0]):
        for i in range(n_rows):
            probs[k, i] *= norm[i]


@inner(fastmath=_LOOSE)
def _of_values(probs, scores, weight, n_rows, mean, variance, covariance, total):
    """v, c and the covariances of indicators, weighted, where every value has its own term."""
    for i in range(n_rows):
        mean[i] = 0.0
        variance[i] = 0.0
    for k in range(scores.shape[0]):
        for i in range(n_rows):
            mean[i] += scores[k] * probs[k, i]
    for k in range(scores.shape[0]):
        for i in range(n_rows):
            x = weight[i] * (scores[k] - mean[i]) * probs[k, i]
            covariance[k, i] = x
            variance[i] += (scores[k] - mean[i]) * x
    for k in range(scores.shape[0]):
        for m in range(k + 1):
            x = 0.0
            for i in range(n_rows):
                x -= weight[i] * probs[k, i] * probs[m, i]
            total[k, m] += x
        x = 0.0
        for i in range(n_rows):
            x += weight[i] * probs[k, i]
        total[k, k] += x


@inner(fastmath=_LOOSE)
def _of_score(probs, scores, first, n_rows, mean, moments):
    """Cumulants of the score from probabilities: the first four, and the chance of the first value.

    `first` is the number of the value that the first of `probs` belongs to.
    """
    for i in range(n_rows):
        mean[i] = 0.0
    for k in range(scores.shape[0]):
        for i in range(n_rows):
            mean[i] += scores[k] * probs[k, i]
    for t in range(3):
        for i in range(n_rows):
            moments[t, i] = 0.0
    for k in range(scores.shape[0]):
        for i in range(n_rows):
            x = scores[k] - mean[i]
            y = x * x * probs[k, i]
            moments[0, i] += y
            moments[1, i] += x * y
            moments[2, i] += x * x * y
    for i in range(n_rows):
        moments[2, i] -= 3.0 * moments[0, i] * moments[0, i]
        moments[3, i] = probs[0, i] if first == 0 else 0.0


@inner(fastmath=_LOOSE)
def _cumulants(table, cells, offset, n_rows, own, score, predictor, mean, moments):
    """Cumulants of the score, and the chance of its first value, from expansions."""
    flat = table.reshape(table.size)
    for i in range(n_rows):
        x, at = offset[i], np.uint64(cells[i] * ORDER)
        a, b, c, d, e = flat[at + np.uint64(ORDER - 1)], 0.0, 0.0, 0.0, 0.0
        for t in range(ORDER - 2, -1, -1):
            e = e * x + d
            d = d * x + c
            c = c * x + b
            b = b * x + a
            a = a * x + flat[at + np.uint64(t)]
        mean[i] = b
        moments[0, i] = 2.0 * c
        moments[1, i] = 6.0 * d
        moments[2, i] = 24.0 * e
        moments[3, i] = own + score * predictor[i] - a
    for i in range(n_rows):
        moments[3, i] = exp_nonpositive(min(0.0, moments[3, i]))


@inner(fastmath=_LOOSE)
def _of_cumulants(moments, mean, score, weight, n_rows, variance, covariance, total):
    """v, c and the covariances of s, s^2 and "is the first value", weighted.

    With y = s - mean, s^2 = mean^2 + 2 mean y + y^2.
    """
    n_terms, square = covariance.shape[0], variance
    for i in range(n_rows):
        v, third, middle = moments[0, i], moments[1, i], mean[i]
        covariance[0, i] = weight[i] * v
        covariance[1, i] = weight[i] * (third + 2.0 * middle * v)
        square[i] = weight[i] * (moments[2, i] + 2.0 * v * v + 4.0 * middle * (third + middle * v))
    for k in range(3):
        x, row = 0.0, square if k == 2 else covariance[k]
        for i in range(n_rows):
            x += row[i]
        total[(k + 1) // 2, k // 2] += x
    if n_terms > 2:
        a, b, c = 0.0, 0.0, 0.0
        for i in range(n_rows):
            chance = weight[i] * moments[3, i]
            covariance[2, i] = chance * (score - mean[i])
        for i in range(n_rows):
            chance, middle = weight[i] * moments[3, i], mean[i]
            a += chance * (score - middle)
            b += chance * (score * score - middle * middle - moments[0, i])
            c += chance * (1.0 - moments[3, i])
        total[2, 0] += a
        total[2, 1] += b
        total[2, 2] += c
    for i in range(n_rows):
        variance[i] = covariance[0, i]


@inner(fastmath=_LOOSE)
def _columns(turned, moderating, n_rows, node, incidence, left):
    """The columns z of one node by rows, without first levels; how many they are.

    node = (first and last block of the incidence).
    """
    numbers, codes = turned
    _, predictor, entry_ptr, feature = incidence
    for i in range(n_rows):
        left[0, i] = 1.0
    at = 1
    for k in range(moderating.shape[0]):
        for i in range(n_rows):
            left[at, i] = moderating[k, i]
        at += 1
    for m in range(node[0], node[1]):
        u, n_levels = predictor[m], entry_ptr[m + 1] - entry_ptr[m]
        is_number, first = u < numbers.shape[0], at
        if is_number:
            for i in range(n_rows):
                left[at, i] = numbers[u, i]
            at += 1
        else:
            for k in range(1, n_levels):
                for i in range(n_rows):
                    left[at, i] = 1.0 if codes[u - numbers.shape[0], i] == k else 0.0
                at += 1
        if feature[m] >= 0:
            for k in range(first, at):
                for i in range(n_rows):
                    left[k, i] *= moderating[feature[m], i]
    return at


@inner(fastmath=_LOOSE)
def _weigh(left, variance, covariance, n_rows, right):
    """The products v z, then c; rows that are left over count for nothing."""
    n = left.shape[0]
    for k in range(n):
        for i in range(n_rows):
            right[k, i] = left[k, i] * variance[i]
    for k in range(covariance.shape[0]):
        for i in range(n_rows):
            right[n + k, i] = covariance[k, i]
    for k in range(right.shape[0]):
        for i in range(n_rows, right.shape[1]):
            right[k, i] = 0.0


@inner(fastmath=_LOOSE)
def _turn_rows(data, begin, stride, n_rows, turned, moderating, weight):
    """The rows of a block, columns by rows."""
    numbers, codes, weights, features = data
    for i in range(n_rows):
        row = begin + i * stride
        weight[i] = weights[row] if weights.shape[0] > 0 else 1.0
        for u in range(numbers.shape[1]):
            turned[0][u, i] = numbers[row, u]
        for u in range(codes.shape[1]):
            turned[1][u, i] = codes[row, u]
        for u in range(features.shape[1]):
            moderating[u, i] = features[row, u]


@kernel
def _sums(data, rows, nodes, shape, bias, incidence, values, start, sizes, out):
    """Sums over the rows first, first + stride, ... of `rows` = (first, last, stride).

    Sums of the node number k of `nodes` begin at start[k] of `out`: v z z' beside c z', columns by
    (columns and own terms); then the covariances of own terms, of which the lower triangle counts.
    sizes = (rows of a block, most columns, most values, most own terms).
    """
    numbers, codes, _, features = data
    slot_start, column_start, scores, _, _, term_start, is_free, is_even, _ = shape
    length, most, n_values, n_terms = sizes
    target_ptr = incidence[0]
    n_gaussian, n_intercepts = target_ptr.shape[0] - 1 - codes.shape[1], bias.shape[0]
    turned = (
        np.empty((numbers.shape[1], length)),
        np.empty((codes.shape[1], length), np.int64),
    )
    moderating, weight = np.empty((features.shape[1], length)), np.empty(length)
    predictors, part = np.empty((1, length)), np.empty((1, length))
    mean, variance = np.empty(length), np.empty(length)
    work, cells = np.empty((2, length)), np.empty(length, np.int64)
    left, right = np.zeros((most, length)), np.zeros((most + n_terms, length))
    probs, moments = np.empty((n_values, length)), np.empty((4, length))
    covariances, product = np.empty((n_terms, length)), np.empty(most * (most + n_terms))
    grids = new_grids(shape)
    for begin in range(rows[0], rows[1], length * rows[2]):
        n_rows = min(length, (rows[1] - begin + rows[2] - 1) // rows[2])
        _turn_rows(data, begin, rows[2], n_rows, turned, moderating, weight)
        for at in range(nodes.shape[0]):
            node = nodes[at]
            slots = slice(slot_start[node], slot_start[node + 1])
            own, score = bias[0][slots], scores[slots]
            place = slice(column_start[node], column_start[node] + 1)
            for k in range(n_intercepts):
                to = part if k > 0 else predictors
                n_blocks = predict_node(
                    turned, np.int64(0), n_rows, node, k - 1, incidence, values, to
                )
                if k > 0 and n_blocks > 0:
                    add_moderated(part, bias[k][place], moderating[k - 1], n_rows, predictors)
            first, last = target_ptr[n_gaussian + node], target_ptr[n_gaussian + node + 1]
            n = _columns(turned, moderating, n_rows, (first, last), incidence, left)
            n_own = term_start[node + 1] - term_start[node]
            n_sums = n * (n + n_own)
            total = out[start[at] + n_sums : start[at + 1]].reshape((n_own, n_own))
            covariance, m = covariances[:n_own], predictors[0]
            is_done, low, high = False, 0, own.shape[0]
            if is_even[node]:
                is_done = power_probabilities(m, n_rows, own, score, probs, work)
            elif not is_free[node]:
                is_done = find_cells(m, n_rows, node, own, score, grids, cells, work[0])
                if is_done:
                    _cumulants(
                        grids[1][grids[0][node]], cells, work[0], n_rows, own[0], score[0], m,
                        mean, moments,
                    )  # fmt: skip
                else:
                    low, high = needed_values(m, n_rows, own, score)
            if not is_done:
                _softmax(m, n_rows, own[low:high], score[low:high], probs, work)
                if not is_free[node]:
                    known = probs[: high - low]
                    _of_score(known, score[low:high], low, n_rows, mean, moments)
            if is_free[node]:
                _of_values(
                    probs[: own.shape[0]], score, weight, n_rows, mean, variance, covariance, total
                )
            else:
                _of_cumulants(moments, mean, score[0], weight, n_rows, variance, covariance, total)
            _weigh(left[:n], variance, covariance, n_rows, right[: n + n_own])
            added = product[:n_sums]
            np.dot(left[:n], right[: n + n_own].T, added.reshape((n, n + n_own)))
            for k in range(n_sums):
                out[start[at] + k] += added[k]


@inner
def _with_first_levels(narrow, place, n_own, incidence, n_numbers, wide):
    """Rows of the columns that sums have -> rows of (intercepts, own terms, entries).

    All levels of a column add up to the intercept, or to the feature that they are multiplied by.
    place = (intercepts, first and last block of the incidence); rows of own terms stay as they are.
    """
    _, predictor, entry_ptr, feature = incidence
    n_intercepts, first, last = place
    for b in range(narrow.shape[1]):
        for k in range(n_intercepts):
            wide[k, b] = narrow[k, b]
        source, to = n_intercepts, n_intercepts + n_own
        for m in range(first, last):
            is_number, n = predictor[m] < n_numbers, entry_ptr[m + 1] - entry_ptr[m]
            rest = narrow[feature[m] + 1, b]
            for k in range(0 if is_number else 1, n):
                wide[to + k, b] = narrow[source, b]
                rest -= narrow[source, b]
                source += 1
            if not is_number:
                wide[to, b] = rest
            to += n


@kernel
def _matrices(nodes, n_terms, sizes, incidence, sums, out):
    """Sums of nodes -> symmetric matrices over (intercepts, own terms, entries), one by one.

    sizes = (columns of numbers, columns of codes, intercepts); sums = (flat, starts, what they are
    divided by); out = (flat, starts).  Where there are no features, the intercept is left out.
    """
    target_ptr, predictor, entry_ptr, _ = incidence
    (flat, start, divisor), (matrices, begin) = sums, out
    n_numbers, n_codes, n_intercepts = sizes
    for at in range(nodes.shape[0]):
        target, n_own = target_ptr.shape[0] - 1 - n_codes + nodes[at], n_terms[at]
        first, last = target_ptr[target], target_ptr[target + 1]
        place, n = (n_intercepts, first, last), n_intercepts
        for m in range(first, last):
            n += 1 if predictor[m] < n_numbers else entry_ptr[m + 1] - entry_ptr[m] - 1
        gram = flat[start[at] : start[at] + n * (n + n_own)].reshape((n, n + n_own))
        own = flat[start[at] + n * (n + n_own) : start[at + 1]].reshape((n_own, n_own))
        size = n_intercepts + n_own + entry_ptr[last] - entry_ptr[first]
        half, whole = np.zeros((size, n + n_own)), np.zeros((size, size))
        _with_first_levels(gram, place, n_own, incidence, n_numbers, half)
        turned = np.ascontiguousarray(half[:, :n].T)
        _with_first_levels(turned, place, n_own, incidence, n_numbers, whole)
        for k in range(n_own):
            for a in range(size):
                whole[n_intercepts + k, a] = half[a, n + k]
                whole[a, n_intercepts + k] = half[a, n + k]
        for k in range(n_own):
            for m in range(n_own):
                whole[n_intercepts + k, n_intercepts + m] = own[max(k, m), min(k, m)]
        left_out = 1 if n_intercepts == 1 else 0
        kept = matrices[begin[at] : begin[at + 1]].reshape((size - left_out, size - left_out))
        for a in range(left_out, size):
            for b in range(a, size):
                kept[a - left_out, b - left_out] = whole[a, b] / divisor
                kept[b - left_out, a - left_out] = whole[a, b] / divisor
