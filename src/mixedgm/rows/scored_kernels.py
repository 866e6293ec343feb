"""Numba kernels: predictors of scored nodes -> log normalisers and moments of the score.

Given its predictor m, a scored node has log probabilities own_l + s_l m - A(m): all that a row adds
is a function of one number.  Where values have no terms of their own, A is expanded at the points
of a grid, whose coefficients are cumulants of the score, and a row takes the point next to it.
Where they have, and scores are equally spaced, the probabilities are powers of one exponential.
Everything else is done value by value.

The points of a grid do not depend on the rows, so that neither do the results on which thread
visits which rows.
"""

from __future__ import annotations

import numpy as np

from mixedgm.base.compiled import inner
from mixedgm.rows.arithmetic import exp_nonpositive, log_positive

_LOOSE = {"reassoc", "contract", "nsz"}
_MANY_VALUES = 16
_NEGLIGIBLE = -45.0
"""The logarithm of a probability that leaves sums over thousands of values as they are."""
_LARGEST_LOGIT = 300.0

ORDER = 12
"""Coefficients of an expansion."""
CELLS = 512
"""Points of a grid; those in the middle are near zero."""
_BATCH = 32
"""Points of the grid that are expanded at a time."""
_LAST_TERM = 1e-14
_AGREEMENT = 3e-14
"""Relative errors: of the last terms, by which the spacing is chosen, and between neighbours."""


@inner
def needed_values(predictor, n_rows, own, scores):
    """Range of the values of a scored node that matter in some of these rows.

    A value with a larger score than the most probable one at the largest predictor gains on all
    others as the predictor rises, so it matters nowhere if it does not matter there; and likewise
    at the other end.
    """
    n_values = scores.shape[0]
    if n_values <= _MANY_VALUES:
        return 0, n_values
    low, high = predictor[0], predictor[0]
    for i in range(1, n_rows):
        low, high = min(low, predictor[i]), max(high, predictor[i])
    at_low, at_high = 0, 0
    for k in range(1, n_values):
        if own[k] + scores[k] * low > own[at_low] + scores[at_low] * low:
            at_low = k
        if own[k] + scores[k] * high > own[at_high] + scores[at_high] * high:
            at_high = k
    least = own[at_low] + scores[at_low] * low + _NEGLIGIBLE
    most = own[at_high] + scores[at_high] * high + _NEGLIGIBLE
    first, last = n_values, 0
    for k in range(n_values):
        above = scores[k] >= scores[at_high] and own[k] + scores[k] * high < most
        below = scores[k] <= scores[at_low] and own[k] + scores[k] * low < least
        if not (above or below):
            first, last = min(first, k), k + 1
    return first, last


# -- value by value --------------------------------------------------------------------------------


@inner(fastmath=_LOOSE)
def spread(predictor, scores, n_rows, logits):
    """Logits of every value less their bias: the predictor times the score."""
    for k in range(scores.shape[0]):
        for i in range(n_rows):
            logits[k, i] = scores[k] * predictor[i]


@inner(fastmath=_LOOSE)
def expect(probs, scores, n_rows, expected):
    """Expected score, times the row's weight, from weighted probabilities."""
    for i in range(n_rows):
        expected[i] = scores[0] * probs[0, i]
    for k in range(1, scores.shape[0]):
        for i in range(n_rows):
            expected[i] += scores[k] * probs[k, i]


@inner(fastmath=_LOOSE)
def add_terms(probs, scores, lowest, is_free, n_rows, sums):
    """Add what multiplies own terms: probabilities of values, or s, s^2 and "is the first".

    The first of `probs` and `scores` belongs to the value number `lowest`.
    """
    for k in range(probs.shape[0]):
        total = 0.0
        for i in range(n_rows):
            total += probs[k, i]
        if is_free:
            sums[lowest + k] += total
            continue
        sums[0] += scores[k] * total
        sums[1] += scores[k] ** 2 * total
        if lowest + k == 0 and sums.shape[0] > 2:
            sums[2] += total


# -- powers ----------------------------------------------------------------------------------------


@inner(fastmath=_LOOSE)
def by_powers(predictor, weights, first, n_rows, own, scores, want, work, sums):
    """Predictors of a node with equally spaced scores -> weighted expected scores, in place.

    With e = exp(step m), value k has the weight e^k exp(own_k).  Returns whether that is possible,
    and the sum of A; sums get those of the probabilities.
    """
    n_values, (e, norm, slope) = own.shape[0], work
    step, square = (scores[n_values - 1] - scores[0]) / (n_values - 1), 0.0
    top = own[0]
    for i in range(n_rows):
        square += predictor[i] * predictor[i]
    if not step * step * square * n_values**2 < _LARGEST_LOGIT**2:
        return False, 0.0
    for k in range(1, n_values):
        top = max(top, own[k])
    last = exp_nonpositive(own[n_values - 1] - top)
    for i in range(n_rows):
        e[i] = exp_nonpositive(step * predictor[i])
        norm[i] = last
        slope[i] = 0.0
    for k in range(n_values - 2, -1, -1):
        x = exp_nonpositive(own[k] - top)
        for i in range(n_rows):
            slope[i] = slope[i] * e[i] + norm[i]
            norm[i] = norm[i] * e[i] + x
    total, lowest = 0.0, scores[0]
    if weights.shape[0] > 0:
        for i in range(n_rows):
            total += weights[first + i] * (top + lowest * predictor[i] + log_positive(norm[i]))
        # One rounding to a loop that reads weights: it exists twice, as in `_softmax_node`.
        for i in range(n_rows):
            norm[i] = weights[first + i] / norm[i]
        for i in range(n_rows):
            predictor[i] = lowest * weights[first + i]
        for i in range(n_rows):
            predictor[i] += step * slope[i] * e[i] * norm[i]
    else:
        for i in range(n_rows):
            total += top + lowest * predictor[i] + log_positive(norm[i])
        for i in range(n_rows):
            norm[i] = 1.0 / norm[i]
            predictor[i] = step * slope[i] * e[i] * norm[i] + lowest
    for k in range(n_values if want > 0 else 0):
        x = 0.0
        for i in range(n_rows):
            x += norm[i]
        sums[k] += exp_nonpositive(own[k] - top) * x
        for i in range(n_rows):
            norm[i] *= e[i]
    return True, total


@inner(fastmath=_LOOSE)
def power_probabilities(predictor, n_rows, own, scores, probs, work):
    """Probabilities for equally spaced scores, into `probs`; returns whether that is possible."""
    n_values, e, norm = own.shape[0], work[0], work[1]
    step, square = (scores[n_values - 1] - scores[0]) / (n_values - 1), 0.0
    top = own[0]
    for i in range(n_rows):
        square += predictor[i] * predictor[i]
    if not step * step * square * n_values**2 < _LARGEST_LOGIT**2:
        return False
    for k in range(1, n_values):
        top = max(top, own[k])
    for i in range(n_rows):
        e[i] = exp_nonpositive(step * predictor[i])
        norm[i] = 0.0
    for k in range(n_values - 1, -1, -1):
        x = exp_nonpositive(own[k] - top)
        for i in range(n_rows):
            norm[i] = norm[i] * e[i] + x
    for i in range(n_rows):
        norm[i] = 1.0 / norm[i]
    for k in range(n_values):
        x = exp_nonpositive(own[k] - top)
        for i in range(n_rows):
            probs[k, i] = x * norm[i]
            norm[i] *= e[i]
    return True


# -- expansions ------------------------------------------------------------------------------------


@inner(allocates=True)
def new_grids(shape):
    """Empty grids of all nodes whose values have no terms of their own, and what to make them with.

    (number of a node's grid, coefficients, whether neighbours agree, first and last point that is
    there, spacing, work)
    """
    slot_start, is_free, first, last = shape[0], shape[6], shape[4], shape[3]
    number, n_grids, most = np.full(is_free.shape[0], -1), 0, 0
    for j in range(first, last):
        if not is_free[j]:
            number[j] = n_grids
            n_grids += 1
            most = max(most, slot_start[j + 1] - slot_start[j])
    return (
        number,
        np.empty((n_grids, CELLS, ORDER)),
        np.zeros((n_grids, CELLS + 1), np.bool_),
        np.zeros((n_grids, 2), np.int64),
        np.zeros(n_grids),
        (
            np.empty((most, _BATCH)),
            np.empty((ORDER, _BATCH)),
            np.empty((ORDER, _BATCH)),
            np.empty((5, _BATCH)),
        ),
    )


@inner(fastmath=_LOOSE)
def _expand(n, own, scores, work, out):
    """Coefficients of A at n points, in the rows of `out`: A, and cumulants over factorials."""
    weights, moments, series, (points, top, norm, mean, total) = work
    low, high = needed_values(points, n, own, scores)
    for g in range(n):
        top[g] = own[low] + scores[low] * points[g]
        norm[g] = 0.0
        mean[g] = 0.0
    for k in range(low + 1, high):
        for g in range(n):
            top[g] = max(top[g], own[k] + scores[k] * points[g])
    for k in range(low, high):
        for g in range(n):
            e = exp_nonpositive(own[k] + scores[k] * points[g] - top[g])
            weights[k - low, g] = e
            norm[g] += e
            mean[g] += e * scores[k]
    for g in range(n):
        series[0, g] = top[g] + log_positive(norm[g])
        norm[g] = 1.0 / norm[g]
        mean[g] *= norm[g]
        series[1, g] = mean[g]
    for k in range(high - low):
        for g in range(n):
            weights[k, g] *= norm[g] * (scores[low + k] - mean[g])
    for t in range(2, ORDER):
        factor = 1.0 / t
        for g in range(n):
            total[g] = 0.0
        for k in range(high - low):
            for g in range(n):
                x = weights[k, g] * (factor * (scores[low + k] - mean[g]))
                weights[k, g] = x
                total[g] += x
        # The logarithm of the series of moments: t c_t = t w_t - sum of j c_j w_(t - j).
        for g in range(n):
            moments[t, g] = total[g]
            series[t, g] = total[g]
        for j in range(2, t - 1):
            share = j / t
            for g in range(n):
                series[t, g] -= share * series[j, g] * moments[t - j, g]
    for g in range(n):
        for t in range(ORDER):
            out[g, t] = series[t, g]


@inner
def _meets(left, right, half):
    """Whether two expansions agree halfway between their points."""
    a, slope_a, b, slope_b = left[ORDER - 1], 0.0, right[ORDER - 1], 0.0
    for t in range(ORDER - 2, -1, -1):
        slope_a = slope_a * half + a
        a = a * half + left[t]
        slope_b = b - slope_b * half
        b = right[t] - b * half
    scale = abs(slope_a) + np.sqrt(abs(left[2]) + abs(right[2]))
    return abs(slope_a - slope_b) <= _AGREEMENT * scale and abs(a - b) <= _AGREEMENT * (
        1.0 + abs(a)
    )


@inner
def _spacing(own, scores, work, trial):
    """Distance of points at which expansions near zero are exact, with some to spare."""
    work[3][0, 0] = 0.0
    _expand(1, own, scores, work, trial)
    spacing = 1.0
    for _ in range(40):
        half, scale = 0.5 * spacing, np.sqrt(2.0 * abs(trial[0, 2])) + abs(trial[0, 1])
        last = ORDER * abs(trial[0, ORDER - 1]) * half ** (ORDER - 2)
        before = ORDER * abs(trial[0, ORDER - 2]) * half ** (ORDER - 3)
        if max(last, before * half) <= _LAST_TERM * scale:
            break
        spacing *= 0.5
    return spacing


@inner(fastmath=_LOOSE)
def _locate(predictor, n_rows, spacing, cells, offset):
    """The next point to every predictor, and the way from there; the first and last of these."""
    per_unit = 1.0 / spacing
    for i in range(n_rows):
        at = np.floor(predictor[i] * per_unit + 0.5)
        cells[i] = np.int64(at) + CELLS // 2
        offset[i] = predictor[i] - at * spacing
    low, high = cells[0], cells[0]
    for i in range(n_rows):
        low = min(low, cells[i])
        high = max(high, cells[i])
    return low, high


@inner(fastmath=_LOOSE)
def find_cells(predictor, n_rows, node, own, scores, grids, cells, offset):
    """The expansion for every row; whether there is one for all of them that can be trusted."""
    number, tables, agrees, ranges, spacings, work = grids
    grid, square = number[node], 0.0
    table, agree, there = tables[grid], agrees[grid], ranges[grid]
    for i in range(n_rows):
        square += predictor[i] * predictor[i]
    if not square < 1e12:
        return False
    if spacings[grid] == 0.0:
        spacings[grid] = _spacing(own, scores, work, table)
    spacing = spacings[grid]
    low, high = _locate(predictor, n_rows, spacing, cells, offset)
    if low < 1 or high >= CELLS - 1:
        return False
    if there[0] == there[1]:
        there[0], there[1] = low, low
    a, b = there[0], there[1]
    # One more on either side, which their neighbours must agree with; and some for other rows.
    begin = max(0, low - 3) if low - 1 < a else a
    end = min(CELLS, high + 5) if high + 2 > b else b
    at = begin if begin < a else b
    while at < end:
        n = min(_BATCH, (a if at < a else end) - at)
        for g in range(n):
            work[3][0, g] = (at + g - CELLS // 2) * spacing
        _expand(n, own, scores, work, table[at : at + n])
        at += n
        if at == a:
            at = b
    there[0], there[1] = begin, end
    for edge in range(begin + 1, end):
        if edge <= a or edge >= b:
            agree[edge] = _meets(table[edge - 1], table[edge], 0.5 * spacing)
    trusted = True
    for edge in range(low, high + 2):
        trusted = trusted and agree[edge]
    if not trusted:  # then by those that rows are at
        trusted = True
        for i in range(n_rows):
            trusted = trusted and agree[cells[i]] and agree[cells[i] + 1]
    return trusted


@inner(fastmath=_LOOSE)
def _at_rows(table, cells, offset, n_rows, value, mean, variance):
    """A and its first two derivatives in every row."""
    flat = table.reshape(table.size)
    for i in range(n_rows):
        x, at = offset[i], np.uint64(cells[i] * ORDER)
        a, b, c = flat[at + np.uint64(ORDER - 1)], 0.0, 0.0
        for t in range(ORDER - 2, -1, -1):
            c = c * x + b
            b = b * x + a
            a = a * x + flat[at + np.uint64(t)]
        value[i] = a
        mean[i] = b
        variance[i] = 2.0 * c


@inner(fastmath=_LOOSE)
def by_expansion(predictor, weights, first, n_rows, node, own, scores, grids, cells, work, sums):
    """Predictors of a node whose values have no terms of their own -> weighted expected scores.

    Returns whether expansions hold for all of these rows, and the sum of A; sums get those of s,
    s^2 and, where it has a term, of the probability of the first value.
    """
    value, mean, second = work
    if not find_cells(predictor, n_rows, node, own, scores, grids, cells, value):
        return False, 0.0
    _at_rows(grids[1][grids[0][node]], cells, value, n_rows, value, mean, second)
    total, total_score, total_square, total_first = 0.0, 0.0, 0.0, 0.0
    for i in range(n_rows):
        second[i] += mean[i] * mean[i]
    if weights.shape[0] > 0:
        for i in range(n_rows):
            mean[i] *= weights[first + i]
            second[i] *= weights[first + i]
        for i in range(n_rows):
            total += weights[first + i] * value[i]
    else:
        for i in range(n_rows):
            total += value[i]
    for i in range(n_rows):
        total_score += mean[i]
        total_square += second[i]
    sums[0] += total_score
    sums[1] += total_square
    if sums.shape[0] > 2:
        for i in range(n_rows):
            value[i] = exp_nonpositive(min(0.0, own[0] + scores[0] * predictor[i] - value[i]))
        if weights.shape[0] > 0:
            for i in range(n_rows):
                value[i] *= weights[first + i]
        for i in range(n_rows):
            total_first += value[i]
        sums[2] += total_first
    for i in range(n_rows):
        predictor[i] = mean[i]
    return True, total
