"""Numba kernels over blocks of rows: linear predictors, softmax, products with Z transposed.

Indices that run from other than 0 are unsigned: a signed one might be negative, and Numba's
wrapping of negative indices keeps a loop from vectorising.

Where most pairs of columns are wanted, a block of Z is made and multiplied by BLAS; where few
are, their coefficients are picked by level.  Every kernel releases the GIL.

Discrete nodes come in an order: those with a spike at zero, whose design columns are two numbers,
those that are scored, whose design column is one, then those with an indicator for each level.
shape = (first slot of every discrete node, first design column of every discrete node among those
of all, score of every slot, first node with indicators, number of nodes with a spike, first own
term of every discrete node, whether its values have own terms, whether its scores are equally
spaced besides, first of its design columns that are kept: all but first levels).  A slot is a
value, or an own term of a node with a spike.  Predictors are numbered as columns of numbers, then
columns of codes.

Products of features with Z are never formed.  What the columns of feature k predict together is
predicted as if there were no feature, and multiplied by it row by row; and products of such a
column with P are those of Z with P times the feature.
"""

from __future__ import annotations

import numpy as np

from mixedgm.base.compiled import inner, kernel
from mixedgm.rows.arithmetic import FEW_LEVELS, exp_nonpositive, log_positive
from mixedgm.rows.scored_kernels import (
    add_terms,
    by_expansion,
    by_powers,
    expect,
    needed_values,
    new_grids,
    spread,
)

_LOOSE = {"reassoc", "contract", "nsz"}


@inner
def _fill_block(numbers, codes, first, n_rows, shape, block):
    """block[i] = z of row first + i: numbers, indicators of levels but the first, 1; then 0."""
    n_numbers, kept_start, first_indicator = numbers.shape[1], shape[8], shape[3]
    for i in range(n_rows):
        for s in range(n_numbers):
            block[i, s] = numbers[first + i, s]
        for k in range(n_numbers, block.shape[1]):
            block[i, k] = 0.0
        for j in range(first_indicator, codes.shape[1]):
            at = n_numbers - kept_start[first_indicator] + kept_start[j]
            level = np.int64(codes[first + i, j])
            block[i, at + max(level - 1, 0)] = 1.0 if level > 0 else 0.0
        block[i, block.shape[1] - 1] = 1.0
    for i in range(n_rows, block.shape[0]):
        for k in range(block.shape[1]):
            block[i, k] = 0.0


@inner(fastmath=_LOOSE)
def predict_node(turned, begin, n_rows, cat, wanted, incidence, values, logits):
    """Predictors of one node less their bias, columns by rows, from its listed blocks only.

    turned = (numbers, level codes), columns by rows, of which n_rows from `begin` are taken.
    Blocks of the feature `wanted` are taken (-1: of none), before the feature itself; returns
    their number.
    """
    numbers, codes = turned
    target_ptr, predictor, entry_ptr, feature = incidence
    width, n_blocks = logits.shape[0], 0
    n_gaussian = target_ptr.shape[0] - 1 - codes.shape[0]
    for k in range(width):
        for i in range(n_rows):
            logits[k, i] = 0.0
    for m in range(target_ptr[n_gaussian + cat], target_ptr[n_gaussian + cat + 1]):
        if feature[m] != wanted:
            continue
        u, entry = predictor[m], entry_ptr[m]
        n_blocks += 1
        if u < numbers.shape[0]:
            number = numbers[u, begin : begin + n_rows]
            for k in range(width):
                x = values[entry + k]
                for i in range(n_rows):
                    logits[k, i] += x * number[i]
            continue
        level = codes[u - numbers.shape[0], begin : begin + n_rows]
        n_levels = (entry_ptr[m + 1] - entry) // width
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
    return n_blocks


@inner(fastmath=_LOOSE)
def _collect_node(turned, begin, n_rows, cat, wanted, incidence, probs, grad):
    """Add z E' of one node for its listed blocks; probs holds E, columns by rows.

    Blocks of the feature `wanted` are taken (-1: of none); E has been multiplied by it.
    """
    numbers, codes = turned
    target_ptr, predictor, entry_ptr, feature = incidence
    width, n_gaussian = probs.shape[0], target_ptr.shape[0] - 1 - codes.shape[0]
    for m in range(target_ptr[n_gaussian + cat], target_ptr[n_gaussian + cat + 1]):
        if feature[m] != wanted:
            continue
        u, entry = predictor[m], entry_ptr[m]
        if u < numbers.shape[0]:
            number = numbers[u, begin : begin + n_rows]
            for k in range(width):
                total = 0.0
                for i in range(n_rows):
                    total += number[i] * probs[k, i]
                grad[entry + k] += total
            continue
        level = codes[u - numbers.shape[0], begin : begin + n_rows]
        n_levels = (entry_ptr[m + 1] - entry) // width
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
def _softmax_node(codes, weights, first, n_rows, cat, less, bias, logits, work):
    """Logits of one node less their bias -> weighted probabilities in place; returns the loss.

    The node's logits stand levels by rows, so that every operation runs over rows and vectorises
    however few levels there are.  `cat` is the column of its codes; without one (-1), the sum of
    the log normalisers is returned.  With `less` = 1 they are those of all levels but the first,
    less that of the first; else it is 0.  work = (largest logit, sum, logit seen): separate arrays,
    so that the compiler need not fear that they overlap.
    """
    (top, norm, seen), lowest = work, 0.0 if less else -np.inf
    for i in range(n_rows):
        top[i] = lowest
        seen[i] = 0.0
    for k in range(bias.shape[0]):
        for i in range(n_rows):
            logits[k, i] += bias[k]
            top[i] = max(top[i], logits[k, i])
    for i in range(n_rows if cat >= 0 and bias.shape[0] > 0 else 0):
        level = np.int64(codes[first + i, cat]) - less
        x = logits[np.uint64(level if level > 0 else 0), i]  # read anyway, so that nothing branches
        seen[i] = x if level >= 0 else 0.0
    for i in range(n_rows):
        norm[i] = less * exp_nonpositive(min(-top[i], 0.0))
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


@inner(fastmath=_LOOSE)
def _spiked_node(x, codes, weights, first, n_rows, node, bias, scores, rows, work, sums):
    """Predictors of a node with a spike -> expected design columns, weighted, in place; the loss.

    With c = own term + predictor of x and v = 1 / precision, the log odds of b are those of their
    own plus c^2 v / 2 + log(2 pi v) / 2, and x given b = 1 has mean c v and variance v.  x is
    the standardised column; sums get the expectations of b, x and -x^2 / 2 in units of the scale.
    """
    per_b, middle, low = scores[0], scores[1], scores[2]
    chance, mean, losses, precision = work[0], work[1], work[2], bias[2]
    variance = 1.0 / precision
    constant = bias[0] + 0.5 * np.log(2.0 * np.pi * variance)
    # What is read from elsewhere has loops of its own, so that the others vectorise.
    for i in range(n_rows):
        losses[i] = x[first + i] + middle
    for i in range(n_rows):
        slope, of_b, value = bias[1] + rows[1, i], per_b * rows[0, i], losses[i]
        mean[i] = slope * variance
        chance[i] = constant + of_b + 0.5 * slope * mean[i]
        losses[i] = bias[0] + of_b + slope * value - 0.5 * precision * value * value
    for i in range(n_rows):
        losses[i] = losses[i] if codes[first + i, node] > 0 else 0.0
    for i in range(n_rows):
        odds = chance[i]
        e = exp_nonpositive(-abs(odds))
        losses[i] = max(odds, 0.0) + log_positive(1.0 + e) - losses[i]
        chance[i] = (1.0 if odds >= 0.0 else e) / (1.0 + e)
    if weights.shape[0] > 0:
        for i in range(n_rows):
            weight = weights[first + i]
            losses[i] *= weight
            chance[i] *= weight
            rows[0, i] = per_b * chance[i] - low * weight
            rows[1, i] = chance[i] * mean[i] - middle * weight
    else:
        for i in range(n_rows):
            rows[0, i] = per_b * chance[i] - low
            rows[1, i] = chance[i] * mean[i] - middle
    loss, total, total_x, total_square = 0.0, 0.0, 0.0, 0.0
    for i in range(n_rows):
        loss += losses[i]
        total += chance[i]
        total_x += chance[i] * mean[i]
        total_square -= 0.5 * chance[i] * (variance + mean[i] * mean[i])
    sums[0] += total
    sums[1] += total_x
    sums[2] += total_square
    return loss


@inner
def _turn(table, first, n_rows, turned):
    """turned[k, i] = table[first + i, k]."""
    for k in range(table.shape[1]):
        for i in range(n_rows):
            turned[k, i] = table[first + i, k]


@inner(fastmath=_LOOSE)
def _add_row_sums(turned, n_rows, total):
    for k in range(turned.shape[0]):
        x = 0.0
        for i in range(n_rows):
            x += turned[k, i]
        total[k] += x


@inner(fastmath=_LOOSE)
def add_moderated(part, bias, feature, n_rows, logits):
    """Logits += feature * (part + bias)."""
    for k in range(bias.shape[0]):
        for i in range(n_rows):
            logits[k, i] += feature[i] * (part[k, i] + bias[k])


@inner(fastmath=_LOOSE)
def _times(probs, feature, n_rows, out):
    for k in range(probs.shape[0]):
        for i in range(n_rows):
            out[k, i] = probs[k, i] * feature[i]


@inner
def _keep(rows, places, first, n_rows, kept):
    """kept[place of k, first + i] = rows[k, i], for those that have a place."""
    for k in range(rows.shape[0]):
        if places[k] >= 0:
            to = kept[places[k], first : first + n_rows]
            for i in range(n_rows):
                to[i] = rows[k, i]


@inner(fastmath=_LOOSE)
def _add_times(part, feature, n_rows, logits):
    """Logits += feature * part."""
    for k in range(logits.shape[0]):
        for i in range(n_rows):
            logits[k, i] += feature[i] * part[k, i]


@inner
def _add(term, total):
    for a in range(total.shape[0]):
        for k in range(total.shape[1]):
            total[a, k] += term[a, k]


@inner(allocates=True)
def _dot(z, probs, is_first, product, total):
    """Add P z' of a block of rows to what the blocks before it gave."""
    if is_first:
        np.dot(probs, z, total)
    else:
        np.dot(probs, z, product)
        _add(product, total)


@kernel
def softmax_chunks(
    data, by_column, bounds, chunks, shape, odd, moderates, nodes, bias, dense, incidence, values,
    want, sizes, out,
):  # fmt: skip
    """Run the chunks of rows ``chunks[0]:chunks[1]``, each into its own slot of `out`.

    data = (numbers, codes, weights, features); chunk c holds the rows bounds[c]:bounds[c + 1].
    by_column = (numbers, codes, place of every discrete design column among those that are kept, or
    -1): the rows columns by rows, where the store keeps them so; else the first two are empty.
    odd = True, or None where all discrete nodes have indicators: then nothing else is compiled;
    moderates likewise, None where there are no features.
    nodes = the discrete columns to predict; bias[0] is that of every value, bias[1 + k] that of the
    feature k for every design column.
    dense = coefficients as `fill_dense` makes them, or empty when `incidence` and `values` do.
    want = 0 value, 1 gradient on the support, 2 gradient for all pairs, 3 what is expected.
    sizes = (rows per block, columns of Z, kept columns of discrete nodes and padding, columns of
    the largest discrete node); out = (loss, means, support, all_pairs, expected).  means has sums
    of what multiplies own terms first, then those of the features with expected design columns;
    with all pairs, those of nodes with indicators are left out: they stand in the last column of
    all_pairs.  Both all_pairs and expected are without first levels; the second has columns by
    rows.  The loss of a scored node is the sum of its log normalisers: what is seen of it is linear
    in the coefficients.

    Z, which BLAS multiplies, has no first levels, and a last column of ones.  It writes predictors
    columns by rows.  Its matrices are whole blocks: rows of Z after the last one are zero, and what
    stands beside them counts for nothing.
    """
    numbers, codes, weights, features = data
    slot_start, column_start, scores, first_indicator, n_spiked, term_start = shape[:6]
    is_free, is_even, kept_start = shape[6:]
    loss, means, support, all_pairs, kept = out
    is_dense, is_turned = dense.shape[0] > 0, by_column[1].shape[0] > 0
    # A block of Z is only made for the products with it.
    z = np.zeros((sizes[0] if is_dense or want == 2 else 0, sizes[1]))
    width, has_features = sizes[2] if z.shape[0] > 0 else 0, len(bias) > 1
    logits, part = np.zeros((width, sizes[0])), np.zeros((width * has_features, sizes[0]))
    # Of one node, where no product has all of them.
    levels = np.zeros((sizes[3], sizes[0]))
    others = np.zeros((sizes[3] * has_features, sizes[0]))
    nothing = np.zeros(sizes[3])
    if odd is not None:
        most = 0
        for j in range(n_spiked, first_indicator):
            most = max(most, slot_start[j + 1] - slot_start[j])
        by_value, cells = np.empty((most, sizes[0])), np.empty(sizes[0], np.int64)
        grids = new_grids(shape)
    columns = 0 if is_dense or is_turned else sizes[0]
    turned = (np.empty((numbers.shape[1], columns)), np.empty((codes.shape[1], columns), np.int64))
    moderating = np.empty((len(bias) - 1, sizes[0]))
    work = (np.empty(sizes[0]), np.empty(sizes[0]), np.empty(sizes[0]))
    product = np.empty((width if want == 2 else 0, sizes[1]))
    if is_turned:
        turned = (by_column[0], by_column[1])
    for c in range(chunks[0], chunks[1]):
        for first in range(bounds[c], bounds[c + 1], sizes[0]):
            n_rows = min(sizes[0], bounds[c + 1] - first)
            if moderates is not None:
                _turn(features, first, n_rows, moderating)
            if z.shape[0] > 0:
                _fill_block(numbers, codes, first, n_rows, shape, z)
            if is_dense:
                for k in range(len(bias)):
                    np.dot(dense[k].T, z.T, part if k > 0 else logits)
                    if moderates is not None:  # noqa: SIM102 (only a test of its own keeps it out)
                        if k > 0:
                            _add_times(part, moderating[k - 1], n_rows, logits)
            elif not is_turned:
                _turn(numbers, first, n_rows, turned[0])
                _turn(codes, first, n_rows, turned[1])
            begin = first if is_turned else 0
            # Every kernel is called in one place only: each further one is compiled again.
            for j in nodes:
                columns_of = slice(column_start[j], column_start[j + 1])
                slots_of = slice(slot_start[j], slot_start[j + 1])
                place = slice(kept_start[j], kept_start[j + 1])
                n_columns = column_start[j + 1] - column_start[j]
                here, other = levels[:n_columns], others[:n_columns]
                if is_dense or (want == 2 and j < first_indicator):
                    here = logits[place]
                for k in range(0 if is_dense else len(bias)):
                    to = other if k > 0 else here
                    n_blocks = predict_node(turned, begin, n_rows, j, k - 1, incidence, values, to)
                    if moderates is not None:  # noqa: SIM102
                        if k > 0 and n_blocks > 0:
                            shift = bias[k][columns_of]
                            add_moderated(other, shift, moderating[k - 1], n_rows, here)
                probs, lowest, is_done = here, np.int64(0), False
                terms = means[c, 0][term_start[j] : term_start[j + 1]]
                own, values_of = bias[0][slots_of], scores[slots_of]
                less = 1 if is_dense and j >= first_indicator else 0
                if less:  # biases are in the product
                    own = nothing[: here.shape[0]]
                if odd is not None:
                    if j < n_spiked:
                        at = numbers.shape[1] - column_start[first_indicator] + 2 * j + 1
                        is_done = True
                        loss[c, j] += _spiked_node(
                            numbers[:, at], codes, weights, first, n_rows, j, own, values_of,
                            here, work, terms,
                        )  # fmt: skip
                    elif j < first_indicator:
                        total = 0.0
                        if is_even[j]:
                            is_done, total = by_powers(
                                here[0], weights, first, n_rows, own, values_of, want, work, terms
                            )
                        elif not is_free[j]:
                            is_done, total = by_expansion(
                                here[0], weights, first, n_rows, j, own, values_of, grids, cells,
                                work, terms,
                            )  # fmt: skip
                        loss[c, j] += total
                        if not is_done:
                            lowest, end = needed_values(here[0], n_rows, own, values_of)
                            probs, own = by_value[: end - lowest], own[lowest:end]
                            values_of = values_of[lowest:end]
                            spread(here[0], values_of, n_rows, probs)
                if not is_done:
                    seen = -1 if j < first_indicator else j
                    loss[c, j] += _softmax_node(
                        codes, weights, first, n_rows, seen, less, own, probs, work
                    )
                    if want > 0 and (want != 2 or j < first_indicator):
                        add_terms(probs, values_of, lowest, is_free[j], n_rows, terms)
                    if odd is not None:  # noqa: SIM102 (only a test of its own keeps this out)
                        if j < first_indicator and want > 0:
                            expect(probs, values_of, n_rows, here[0])
                for k in range(len(bias) if want == 1 else 0):
                    expected = other if k > 0 else here
                    if moderates is not None:  # noqa: SIM102
                        if k > 0:
                            _times(here, moderating[k - 1], n_rows, other)
                            _add_row_sums(other, n_rows, means[c, k][columns_of])
                    _collect_node(turned, begin, n_rows, j, k - 1, incidence, expected, support[c])
                if want == 3 or (want == 2 and not is_dense and j >= first_indicator):
                    to, at_row = (kept, first) if want == 3 else (logits, 0)
                    _keep(here, by_column[2][columns_of], at_row, n_rows, to)
            for k in range(len(bias) if want == 2 else 0):
                if moderates is not None:  # noqa: SIM102
                    if k > 0:
                        _times(logits, moderating[k - 1], n_rows, part)
                _dot(z, part if k > 0 else logits, first == bounds[c], product, all_pairs[c, k])


@kernel
def fill_dense(incidence, shape, places, nodes, bias, values, dense):
    """Coefficients of Z for some discrete targets, one matrix for each feature; zero before.

    places = (among kept design columns, of every design column).  What belongs to the first level
    of a predictor is taken from the others and added to the last row, that of the ones; what
    belongs to the first level of a target is taken from its others.  So are biases of nodes with
    indicators and of features, which are in the last row, too.
    """
    target_ptr, entry_ptr, entry_column = incidence
    slot_start, column_start, first_indicator, kept_start = shape[0], shape[1], shape[3], shape[8]
    n_discrete, d, one = column_start.shape[0] - 1, places.shape[0], dense.shape[1] - 1
    n_gaussian = target_ptr.shape[0] - 1 - n_discrete
    n_numbers = d - column_start[n_discrete] + column_start[first_indicator]
    for cat in nodes:
        width = column_start[cat + 1] - column_start[cat]
        # Of a target with indicators, levels from 1 on less the first; of others, all columns.
        has_first = 1 if cat >= first_indicator else 0
        to = kept_start[cat] - has_first
        for k in range(has_first, width):
            if has_first:
                own = bias[0][slot_start[cat] : slot_start[cat + 1]]
                dense[0, one, to + k] = own[k] - own[0]
            for f in range(1, dense.shape[0]):
                own = bias[f][column_start[cat] : column_start[cat + 1]]
                dense[f, one, to + k] = own[k] - (own[0] if has_first else 0.0)
        for m in range(target_ptr[n_gaussian + cat], target_ptr[n_gaussian + cat + 1]):
            first, last = entry_ptr[m], entry_ptr[m + 1]
            f, column = divmod(entry_column[first], d)
            for k in range(has_first, width):
                base = 0.0
                if column >= n_numbers:
                    base = values[first + k] - (values[first] if has_first else 0.0)
                    dense[f, one, to + k] += base
                for at in range(first, last, width):
                    place = places[column + (at - first) // width]
                    if place >= 0:
                        x = values[at + k] - (values[at] if has_first else 0.0)
                        dense[f, place, to + k] = x - base


@kernel
def level_moments(data, level_start, columns, n_rows, number_by_level, level_by_level):
    """Sums of w x_s over the rows of each level, and of w over pairs of levels (upper triangle).

    data = (numbers, codes of columns with indicators, weights); the levels of the columns
    ``columns[0]:columns[1]`` are those whose sums are made.  Every sum runs over the rows in their
    order, whatever the columns: n_rows of them at a time, so that they stay in the cache.
    """
    numbers, codes, weights = data
    weighted = weights.shape[0] > 0
    n_numbers, n_columns = numbers.shape[1], codes.shape[1]
    for first in range(0, codes.shape[0], n_rows):
        last = min(first + n_rows, codes.shape[0])
        for j in range(columns[0], columns[1]):
            for i in range(first, last):
                weight = weights[i] if weighted else 1.0
                a = level_start[j] + codes[i, j]
                for s in range(n_numbers):
                    number_by_level[a, s] += weight * numbers[i, s]
                for k in range(j, n_columns):
                    level_by_level[a, level_start[k] + codes[i, k]] += weight
