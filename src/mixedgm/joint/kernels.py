"""Tables and random numbers -> level codes and means, row by row in compiled loops."""

from __future__ import annotations

import numpy as np

from mixedgm.base.compiled import inner, kernel


@kernel
def _pick(logits, first, last, u):
    """Level drawn from the softmax of ``logits[first:last]`` with one uniform number."""
    top = logits[first]
    for a in range(first + 1, last):
        top = max(top, logits[a])
    total = 0.0
    for a in range(first, last):
        total += np.exp(logits[a] - top)
    goal = u * total  # below the total, since u is below 1: also after rounding
    reached = 0.0
    for a in range(first, last):
        reached += np.exp(logits[a] - top)
        if reached > goal:  # so a level without a chance is never the one that exceeds
            return a - first
    return last - first - 1


@kernel
def _pick_near(logits, first, last, u):
    """Draw a level as `_pick`, quicker where most levels are out of reach; uses the logits up.

    A level with a chance below 1e-19 of the most probable one's has none, and costs no exponential.
    """
    top = logits[first]
    for a in range(first + 1, last):
        top = max(top, logits[a])
    total = 0.0
    for a in range(first, last):
        off = logits[a] - top
        logits[a] = np.exp(off) if off > -44.0 else 0.0
        total += logits[a]
    goal = u * total
    reached = 0.0
    for a in range(first, last):
        reached += logits[a]
        if reached > goal:
            return a - first
    return last - first - 1


@kernel
def gibbs_sweep(codes, unary, pairwise, start, runs, uniforms):
    """Redraw every column of every chain once, in place.

    `unary` has one row for all chains, or one for each block of consecutive chains of the same
    length.  ``runs[j]`` are the stretches of levels with which column j interacts, first and end;
    unused ones have length zero.  The logits of all levels are kept up to date while the columns
    change, so a column that keeps its level costs nothing but its own softmax.  They are computed
    afresh for every sweep: rounding does not pile up.
    """
    n, q = codes.shape
    n_fields, width = unary.shape
    logits = np.empty(width)
    for i in range(n):
        logits[:] = unary[i * n_fields // n]
        for j in range(q):
            row = pairwise[start[j] + codes[i, j]]
            for first, end in runs[j]:
                for a in range(first, end):
                    logits[a] += row[a]
        for j in range(q):
            old = codes[i, j]
            new = _pick(logits, start[j], start[j + 1], uniforms[i, j])
            if new != old:
                codes[i, j] = new
                came, went = pairwise[start[j] + new], pairwise[start[j] + old]
                for first, end in runs[j]:
                    for a in range(first, end):
                        logits[a] += came[a] - went[a]


@inner
def _add(total, factor, row):
    """Add a multiple of a row, in place."""
    for a in range(len(total)):
        total[a] += factor * row[a]


@kernel
def scored_sweep(codes, unary, coupling, states, uniforms):
    """Redraw every column of every chain once, in place, without tables of pairs of levels.

    The first states enter other conditionals by their scores. `states` are the first level and the
    first column of every state, the scores of all levels, and how many states are scored;
    `coupling` is over columns.  The linear predictors of all columns are kept up to date while
    states change.
    """
    start, column, scores, n_scored = states
    n, q = codes.shape
    n_fields, width = unary.shape
    said, logits = np.empty(len(coupling)), np.empty(width)
    for i in range(n):
        bias = unary[i * n_fields // n]
        said[:] = 0.0
        for j in range(q):
            if j < n_scored:
                _add(said, scores[start[j] + codes[i, j]], coupling[column[j]])
            else:
                said += coupling[column[j] + codes[i, j]]
        for j in range(q):
            first, last, old = start[j], start[j + 1], codes[i, j]
            for a in range(first, last):
                if j < n_scored:
                    logits[a] = bias[a] + scores[a] * said[column[j]]
                else:
                    logits[a] = bias[a] + said[column[j] + a - first]
            new = _pick_near(logits, first, last, uniforms[i, j])
            if new != old:
                codes[i, j] = new
                if j < n_scored:
                    _add(said, scores[first + new] - scores[first + old], coupling[column[j]])
                else:
                    said += coupling[column[j] + new] - coupling[column[j] + old]


@kernel
def add_level_rows(out, codes, start, rows):
    """Add to every row of `out` the rows that belong to its levels, in place."""
    n, q = codes.shape
    for i in range(n):
        for j in range(q):
            row = start[j] + codes[i, j]
            for s in range(out.shape[1]):
                out[i, s] += rows[row, s]


@kernel
def split_sums(table):
    """Sum a (b, m, k, l) table over m, and over k, in one pass."""
    b, m, k, width = table.shape
    pair = np.zeros((b, k, width))
    rest = np.zeros((b, m, width))
    for f in range(b):
        for i in range(m):
            for a in range(k):
                for c in range(width):
                    value = table[f, i, a, c]
                    pair[f, a, c] += value
                    rest[f, i, c] += value
    return pair, rest


@kernel
def row_sums(table):
    """Sum a (b, m, k) table over k; NumPy is slow when k is small."""
    b, m, k = table.shape
    out = np.zeros((b, m))
    for f in range(b):
        for i in range(m):
            for a in range(k):
                out[f, i] += table[f, i, a]
    return out


@kernel
def draw_residual(codes, cumulated, separator, residual, n_levels, uniforms):
    """Draw the residual columns of a clique given its separator, for every row, in place.

    `cumulated` is (b, |S|, |R|): running sums of the probabilities given S.  Row i uses field i,
    or the only one there is.
    """
    b, _, n_states = cumulated.shape
    for i in range(len(codes)):
        state = 0
        for j in separator:
            state = state * n_levels[j] + codes[i, j]
        sums = cumulated[i if b > 1 else 0, state]
        goal = uniforms[i] * sums[-1]
        low, high = 0, n_states - 1
        while low < high:  # the first state whose running sum exceeds the goal
            middle = (low + high) // 2
            if sums[middle] > goal:
                high = middle
            else:
                low = middle + 1
        for position in range(len(residual) - 1, -1, -1):
            j = residual[position]
            codes[i, j] = low % n_levels[j]
            low //= n_levels[j]


@kernel
def add_column(total, block):
    """(n, w) and (k, w) -> (n * k, w) all sums of two rows; NumPy is slow when w is small."""
    n, width = total.shape
    k = len(block)
    out = np.empty((n * k, width))
    for i in range(n):
        for a in range(k):
            for c in range(width):
                out[i * k + a, c] = total[i, c] + block[a, c]
    return out


@kernel
def grow(table, joined, unary):
    """(b, n), (n, w) and (b, w) -> (b, n * w) all sums of three."""
    n, width = joined.shape
    b = len(unary)
    out = np.empty((b, n * width))
    for f in range(b):
        for i in range(n):
            so_far = table[f if len(table) > 1 else 0, i]
            for c in range(width):
                out[f, i * width + c] = so_far + joined[i, c] + unary[f, c]
    return out


@kernel
def level_terms(codes, start, bias, pairwise):
    """Biases and interactions of the levels of every row."""
    n, q = codes.shape
    out = np.zeros(n)
    for i in range(n):
        for j in range(q):
            at = start[j] + codes[i, j]
            out[i] += bias[at]
            for r in range(j):
                out[i] += pairwise[at, start[r] + codes[i, r]]
    return out


@kernel
def count_pairs(codes, start, counts):
    """Add one to every pair of levels of every row; `counts` is (K, K)."""
    n, q = codes.shape
    for i in range(n):
        for j in range(q):
            at = start[j] + codes[i, j]
            for r in range(q):
                counts[at, start[r] + codes[i, r]] += 1.0


@kernel
def count_levels(codes, start, counts):
    """Add one to the levels of every row; `counts` is (n, K)."""
    n, q = codes.shape
    for i in range(n):
        for j in range(q):
            counts[i, start[j] + codes[i, j]] += 1.0


@kernel
def spiked_sweep(numbers, codes, said, bias, coupling, nodes, uniforms, normals):
    """Redraw every column of every chain once, in place, where the first ones have a spike at zero.

    `numbers` (chains, spiked columns) are their values, `codes` (chains, columns) whether they are
    not zero and the codes of all others.  `said` (fields, design columns) is what is known to say
    to each chain of a block, `bias` what every column has by itself.  `nodes` are the first slot
    and the first design column of every column, the scores of all slots, and how many columns are
    spiked, and numbers to the others.
    """
    start, column, scores, n_spiked, n_numeric = nodes
    n, q = codes.shape
    n_fields, d = said.shape
    told, logits = np.empty(d), np.empty(len(bias))
    for i in range(n):
        told[:] = said[i * n_fields // n]
        for j in range(q):
            at = column[j]
            if j < n_spiked:
                if codes[i, j]:
                    _add(told, 1.0, coupling[at])
                    _add(told, numbers[i, j], coupling[at + 1])
            elif j < n_numeric:
                _add(told, scores[start[j] + codes[i, j]], coupling[at])
            else:
                _add(told, 1.0, coupling[at + codes[i, j]])
        for j in range(q):
            first, last, at, old = start[j], start[j + 1], column[j], codes[i, j]
            if j < n_spiked:
                slope, beta = bias[first + 1] + told[at + 1], bias[first + 2]
                odds = bias[first] + told[at]
                odds += 0.5 * (slope * slope / beta + np.log(2.0 * np.pi / beta))
                new = 1 if uniforms[i, j] * (1.0 + np.exp(-odds)) < 1.0 else 0
                value = (slope + normals[i, j] * np.sqrt(beta)) / beta if new else 0.0
                if new or old:
                    _add(told, 1.0 * new - old, coupling[at])
                    _add(told, value - numbers[i, j], coupling[at + 1])
                    codes[i, j], numbers[i, j] = new, value
                continue
            for a in range(first, last):
                if j < n_numeric:
                    logits[a] = bias[a] + scores[a] * told[at]
                else:
                    logits[a] = bias[a] + told[at + a - first]
            new = _pick_near(logits, first, last, uniforms[i, j])
            if new != old:
                codes[i, j] = new
                if j < n_numeric:
                    _add(told, scores[first + new] - scores[first + old], coupling[at])
                else:
                    _add(told, 1.0, coupling[at + new])
                    _add(told, -1.0, coupling[at + old])
