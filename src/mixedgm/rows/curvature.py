"""Encoded columns and coefficients of nodes -> second derivatives of their losses, summed.

Sums of z z' over rows are made by one of two kernels, whichever is cheaper for the node: by BLAS,
for which levels are columns of zeros and ones, or level by level, which visits only the ones.

Rows and coefficients of nodes with a spike at zero -> second derivatives of their losses.

These nodes are few, so plain NumPy over blocks of rows does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.compiled import inner, kernel
from mixedgm.base.threads import run_all, single_threaded_blas, threads_for
from mixedgm.families.hurdle import HurdleConditional
from mixedgm.model.layout import Floats, Incidence, Ints, offsets
from mixedgm.model.nodes import Nodes
from mixedgm.rows.arithmetic import exp_nonpositive
from mixedgm.rows.contract import Coefficients, NodeMatrices, Shape, SoftmaxCurvature
from mixedgm.rows.products import Products

_LOOSE = {"reassoc", "contract", "nsz"}
# Rows of a block; level by level they are half as many.
BLOCK = 256
# So many columns times packed levels are multiplied by BLAS at a time.
_PANEL = 24
# Sums of another part of the rows have to be zeroed and added, which so many rows are worth.
_ROWS_OF_A_PART = 2000
# So many tasks let few threads end at about the same time; each has arrays of its own to make.
_TASKS = 8

# Nanoseconds per row that were measured: of a pair of columns with BLAS; of a pair of numbers, of a
# number and a column with levels, of two columns with levels, level by level (times packed levels),
# and of such two columns however few packed levels there are.
BLAS_COST, _NUMBERS, _MIXED, _LEVELS, _PAIR = 0.07, 0.24, 0.19, 0.3, 2.5


def summed_curvature(
    data: tuple[Floats, NDArray[np.integer], Floats, Floats],
    shape: Shape,
    asked: tuple[Coefficients, Floats, Ints],
    stride: int,
    n_threads: int,
    blas_cost: float,
) -> SoftmaxCurvature:
    """Softmax curvature from every stride-th row.

    asked = (coefficients, biases, nodes), shape as in `kernels`.
    """
    coef, bias, nodes = asked
    incidence, n_rows = coef.incidence, len(data[1])
    sizes = _Sizes(coef, bias, shape[0], nodes, blas_cost)
    starts = offsets(sizes.n_columns**2 * sizes.n_packed)
    work = (n_rows // stride + 1) * (sizes.n_predictors * sizes.width) ** 2
    parts = _row_parts(n_rows, int(work.sum()), int(starts[-1]), stride)
    n_threads = threads_for(int(work.sum()), n_threads)
    shares = _shares(work, 1 if n_threads == 1 else -(-max(n_threads, _TASKS) // len(parts)))
    sums, by_blas = np.zeros((len(parts), int(starts[-1]))), sizes.by_blas

    def task(part: int, first: int, last: int) -> None:
        curvature_sums(
            data,
            (*parts[part], stride),
            (nodes[first:last], by_blas[first:last]),
            shape,
            bias,
            incidence.blocks,
            coef.values,
            starts[first : last + 1],
            sizes.work(slice(first, last)),
            sums[part],
        )

    tasks = [(part, *share) for part in range(len(parts)) for share in shares]
    with single_threaded_blas() if by_blas.any() else nullcontext():
        run_all([partial(task, *one) for one in tasks], n_threads)
    # Added up here, in one order: what a thread adds up depends on which nodes it has.
    weights = data[2]
    total = float(weights[::stride].sum()) if len(weights) else float(-(-n_rows // stride))
    packed = sums[0] if len(parts) == 1 else sums.sum(axis=0)
    return SoftmaxCurvature(packed, starts, sizes.width, sizes.n_columns, 1.0 / total)


class _Sizes:
    """How much of everything the nodes have."""

    def __init__(
        self, coef: Coefficients, bias: Floats, level_start: Ints, nodes: Ints, blas_cost: float
    ) -> None:
        incidence, self.blas_cost = coef.incidence, blas_cost
        target_ptr, _, entry_ptr, _ = incidence.blocks
        target = incidence.nodes.n_gaussian + nodes
        first, last = target_ptr[target], target_ptr[target + 1]
        entries = entry_ptr[last] - entry_ptr[first]
        self.width = level_start[nodes + 1] - level_start[nodes]
        self.n_packed = self.width * (self.width - 1) // 2
        self.n_predictors = len(bias) + last - first
        self.n_numbers = len(bias) + count_numbers(incidence, first, last)
        self.n_columns = len(bias) + entries // self.width
        self.narrow = self.n_columns - (self.n_predictors - self.n_numbers)
        """Columns without every first level."""

    @cached_property
    def by_blas(self) -> NDArray[np.bool_]:
        """(nodes,) whether BLAS is cheaper for a node than sums level by level."""
        numbers, others = self.n_numbers, self.n_predictors - self.n_numbers
        pairs = _NUMBERS * numbers**2 / 2 + _MIXED * numbers * others + _LEVELS * others**2 / 2
        by_level = self.n_packed * pairs + _PAIR * others**2 / 2
        by_blas = self.blas_cost * self.narrow * np.maximum(_PANEL, self.narrow * self.n_packed)
        return np.asarray((by_blas < by_level) & (self.n_packed > 0))

    def work(self, nodes: slice) -> tuple[Any, ...]:
        """Arrays that one thread needs for these nodes."""
        n, width, n_packed = (
            int(each[nodes].max()) for each in (self.n_predictors, self.width, self.n_packed)
        )
        common = (
            np.empty(BLOCK, dtype=np.int64),
            np.empty(BLOCK),
            np.empty(BLOCK),
            tuple(np.empty((6, n), dtype=np.int64)),
            np.empty((n, BLOCK), dtype=np.int64),
            np.empty((n, BLOCK)),
            np.empty((width, BLOCK)),
            np.empty((n_packed, BLOCK)),
        )
        return common, self._by_level(nodes), self._by_blas(nodes)

    def _by_level(self, nodes: slice) -> tuple[Floats, ...]:
        here, some = ~self.by_blas[nodes], BLOCK // 2
        n_packed = self.n_packed[nodes][here]
        outer = self.n_numbers[nodes][here] * n_packed
        sums = self.n_columns[nodes][here] * outer
        return tuple(np.empty(_most(each)) for each in (some * n_packed, some * outer, sums))

    def _by_blas(self, nodes: slice) -> tuple[Floats, ...]:
        here = self.by_blas[nodes]
        narrow, n_packed = self.narrow[nodes][here], self.n_packed[nodes][here]
        n = _most(narrow)
        return (
            np.empty((n, BLOCK)),
            np.zeros((_PANEL, BLOCK)),  # no rows that are left over may be other than finite
            np.empty((n, _PANEL)),
            np.empty(_most(narrow**2 * n_packed)),
        )


def _most(sizes: Ints) -> int:
    return int(sizes.max(initial=0))


def count_numbers(incidence: Incidence, first: Ints, last: Ints) -> Ints:
    """How many of the blocks in each of the ranges first:last are of predictors without levels."""
    _, source, _, _ = incidence.blocks
    before = offsets((source < incidence.nodes.n_numeric).astype(np.int64))
    return np.asarray(before[last] - before[first])


def _row_parts(n_rows: int, work: int, sums: int, stride: int) -> list[tuple[int, int]]:
    """Row ranges that get sums of their own: by work and memory, never by threads."""
    enough = n_rows // (_ROWS_OF_A_PART * stride)
    return row_ranges(
        n_rows, max(1, min(work // 4_000_000, 2**23 // max(sums, 1), enough, 8)), stride
    )


def row_ranges(n_rows: int, n_parts: int, stride: int) -> list[tuple[int, int]]:
    """Ranges of about as many rows, which begin at multiples of the stride."""
    step = -(-n_rows // (n_parts * stride)) * stride
    return [(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]


def _shares(work: NDArray[np.int64], n_shares: int) -> list[tuple[int, int]]:
    """Consecutive nodes in at most `n_shares` ranges of about equal work."""
    if n_shares == 1:
        return [(0, len(work))]
    done = np.cumsum(work)
    cuts = np.searchsorted(done, done[-1] * np.arange(1, n_shares) / n_shares)
    edges = np.unique(np.concatenate([[0], cuts, [len(work)]]))
    return [(int(a), int(b)) for a, b in zip(edges[:-1], edges[1:], strict=True)]


# -- sums level by level, and the kernel that chooses ----------------------------------------------


@inner(fastmath=_LOOSE)
def _pack(weights, rows, n_rows, width, turned, by_level):
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
def _turn(n_rows, n_packed, by_level, by_row):
    """Transpose what `_pack` made, so that the packed levels of a row follow each other."""
    for i in range(n_rows):
        to = np.uint64(i * n_packed)
        for k in range(n_packed):
            by_row[to + np.uint64(k)] = by_level[k, i]


@inner(fastmath=_LOOSE)
def _add_numbers(n_rows, n_numbers, facts, values, by_level, x, gram, out):
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
def _multiply(n_rows, n_numbers, numbers, n_packed, values, by_row, outer):
    """All numbers of a row times its packed levels, one number after the other."""
    for i in range(n_rows):
        row, to = np.uint64(i * n_packed), np.uint64(i * n_numbers * n_packed)
        for at in range(n_numbers):
            x = values[numbers[at], i]
            for k in range(n_packed):
                outer[to + np.uint64(k)] = x * by_row[row + np.uint64(k)]
            to += np.uint64(n_packed)


@inner(fastmath=_LOOSE)
def _add_levels(n_rows, n, facts, codes, values, products, gram, with_number, out):
    """Add the sum over the block of z_a z_b packed, for pairs with levels on one or both sides.

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
def _spread(n, n_numbers, facts, gram, with_number, out):
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
def _intercepts(features, block_rows, n_rows, node, bias, values, turned):
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
def _load(data, block_rows, n_rows, node, incidence, coefs, levels, values, turned):
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
def _probabilities(n_rows, width, turned, top, norm):
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
def _predictors(node, incidence, n_numeric, facts, values):
    """Facts of every predictor of a node; the number of those that are numbers is returned.

    Facts are levels (0 for a number), first column, whether it is a product, which predictors are
    numbers, the intercept that all levels add up to, and the first column where the first levels
    are left out.  node is as in `_load`.  An indicator has the value 1, unless a feature gives it
    another one.
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
        column += _kept(n_levels[at])
        if n_levels[at] == 0:
            numbers[n_numbers] = at
            n_numbers += 1
        for i in range(values.shape[1]):
            values[at, i] = 1.0
    return n_numbers


@inner
def _packed(data, rows, begin, length, place, bias, incidence, coefs, common):
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
def curvature_sums(data, rows, nodes, shape, bias, incidence, coefs, start, work, out):
    """Sum over rows of w (diag(p) - p p') x (z z') for each node with indicators in `nodes`.

    shape = (first value of every discrete node, first of its columns, ...). rows = (first, last,
    stride); nodes = (their numbers, whether BLAS is to multiply). The sums of node k begin at
    start[k] of the flat `out`: (K, K, L (L - 1) / 2), predictors (the intercept first, those of the
    features, then the node's incidence) by the packed levels of `_pack`. Only pairs of predictors a
    <= b are filled. work = (rows of a block, two numbers per row, facts about predictors, their
    levels and values, probabilities, these packed by level), (packed by row, outer products, sums
    with numbers), and that of `_add_products`.
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
            by_blas[3][: _columns_of(n, facts) ** 2 * n_packed] = 0.0
        else:
            with_number[: size * n_numbers * n_packed] = 0.0
        for begin in range(rows[0], rows[1], length):
            n_rows, weight = _packed(
                data, rows, begin, length, place, bias, incidence, coefs, common
            )
            total += weight
            if multiply:
                _add_products(n_rows, n, facts, levels, values, by_level, n_packed, by_blas)
                continue
            _add_numbers(n_rows, n_numbers, facts, values, by_level, norm, gram, out)
            _turn(n_rows, n_packed, by_level, by_row)
            _multiply(n_rows, n_numbers, facts[3], n_packed, values, by_row, outer)
            _add_levels(n_rows, n, facts, levels, values, products, gram, with_number, out)
        if multiply:
            _with_first_levels(n, facts, gram, by_blas[3], out)
        else:
            _spread(n, n_numbers, facts, gram, with_number, out)
    return total


# -- sums by BLAS ----------------------------------------------------------------------------------


@inner
def _kept(n_levels):
    """Columns of a predictor without its first level; 0 levels are a number."""
    return 1 if n_levels == 0 else n_levels - 1


@inner
def _columns_of(n, facts):
    """Number of columns of all n predictors, without first levels."""
    return facts[5][n - 1] + _kept(facts[0][n - 1])


@inner(allocates=True, fastmath=_LOOSE)
def _add_products(n_rows, n, facts, codes, values, by_level, n_packed, work):
    """Add the sums for all pairs of columns at once, by BLAS, without every first level.

    work = (columns by rows, some of them times packed levels by rows, a product, the sums: columns
    by columns times packed levels).  Of the sums, those of a column with later ones count.
    """
    left, right, product, sums = work
    n_levels, narrow, length = facts[0], facts[5], right.shape[0]
    for at in range(n):
        for k in range(_kept(n_levels[at])):
            for i in range(n_rows):
                there = n_levels[at] == 0 or codes[at, i] == k + 1
                left[narrow[at] + k, i] = values[at, i] if there else 0.0
            for i in range(n_rows, left.shape[1]):
                left[narrow[at] + k, i] = 0.0
    n_columns = _columns_of(n, facts)
    total = n_columns * n_packed
    for first in range(0, total, length):
        here = min(length, total - first)
        for k in range(here):
            b, level = (first + k) // n_packed, (first + k) % n_packed
            for i in range(n_rows):
                right[k, i] = left[b, i] * by_level[level, i]
        last = (first + here - 1) // n_packed + 1
        part = product[:last]
        np.dot(left[:last], right.T, part)
        for a in range(last):
            to = np.uint64(a * total + first)
            for k in range(here):
                sums[to + np.uint64(k)] += part[a, k]


@inner
def _with_first_levels(n, facts, gram, sums, out):
    """Put the sums of `_add_products` where the gram has them; those of first levels follow.

    All levels of a column add up to the intercept (or its feature), and no two of them are seen at
    once.
    """
    (n_levels, origin, _, _, whole, narrow), (base, size, n_packed) = facts, gram
    n_columns = _columns_of(n, facts)
    for a in range(n):
        for i in range(_kept(n_levels[a])):
            at, row = narrow[a] + i, origin[a] + i + np.int64(n_levels[a] > 0)
            for b in range(a, n):
                for j in range(i if a == b else 0, _kept(n_levels[b])):
                    source = (at * n_columns + narrow[b] + j) * n_packed
                    to = row * size + origin[b] + j + np.int64(n_levels[b] > 0)
                    for k in range(n_packed):
                        out[base + to * n_packed + k] = sums[source + k]
                if n_levels[b] == 0 or a == b:
                    continue
                low, high = min(at, whole[b]), max(at, whole[b])
                for k in range(n_packed):
                    x = sums[(low * n_columns + high) * n_packed + k]
                    for j in range(n_levels[b] - 1):
                        x -= sums[(at * n_columns + narrow[b] + j) * n_packed + k]
                    out[base + (row * size + origin[b]) * n_packed + k] = x
    for a in range(n):
        if n_levels[a] == 0:
            continue
        row = origin[a] * size
        for b in range(origin[a], size):
            for k in range(n_packed):
                x = out[base + (whole[a] * size + b) * n_packed + k]
                if b >= origin[a] + n_levels[a]:
                    for j in range(1, n_levels[a]):
                        x -= out[base + (row + j * size + b) * n_packed + k]
                elif b > origin[a]:
                    x = 0.0
                out[base + (row + b) * n_packed + k] = x


# -- columns with a spike at zero ------------------------------------------------------------------

_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class SpikedRows:
    """Encoded columns."""

    numbers: Floats
    codes: NDArray[np.integer]
    weights: Floats | None
    nodes: Nodes
    products: Products | None
    n_threads: int = 1

    def curvature(self, coef: Coefficients, nodes: Ints, stride: int) -> NodeMatrices:
        """Curvature from every stride-th row: own terms, then entries of the incidence."""

        def of_node(j: int) -> Callable[[], Floats]:
            return lambda: self._of_node(coef, j, stride).ravel()

        work = len(coef.values) * len(self.codes) // stride
        matrices = run_all([of_node(j) for j in nodes.tolist()], threads_for(work, self.n_threads))
        ends = np.cumsum([0, *map(len, matrices)]).astype(np.int64)
        return NodeMatrices(nodes, ends, np.concatenate(matrices))

    def _of_node(self, coef: Coefficients, j: int, stride: int) -> Floats:
        node = int(self.nodes.discrete_nodes[j])
        family, entries = self.nodes.families[node], coef.incidence.entries_of(node)
        columns = coef.incidence.entry_column[entries][::2]
        slopes = coef.values[entries].reshape(-1, 2)
        terms = coef.bias[self.nodes.slots_of(j)]
        per_b = self.nodes.scores[self.nodes.slots_of(j)][0]
        size, total = len(columns) + 1, 0.0
        sums, of_terms = np.zeros((3, size, size)), np.zeros((3, size))
        for at in range(0, len(self.codes), _BLOCK * stride):
            part = slice(at, at + _BLOCK * stride, stride)
            z = self._columns(columns, part)
            weight = np.ones(len(z)) if self.weights is None else self.weights[part]
            total += float(weight.sum())
            linear = z[:, 1:] @ slopes
            given = family.given(terms[None], linear.T[None])
            assert isinstance(given, HurdleConditional)
            covariance = [part[0] * weight for part in given.of_statistics()]
            for k in range(3):
                sums[k] += (z * covariance[k][:, None]).T @ z
                of_terms[k] += covariance[3 + k] @ z
        return assembled(sums / total, of_terms / total, per_b)

    def _columns(self, columns: Ints, part: slice) -> Floats:
        """1, and these design columns (or products of them with features, less their centre)."""
        nodes, d = self.nodes, self.nodes.n_columns
        out = np.ones((len(self.codes[part]), len(columns) + 1))
        for k, (feature, column) in enumerate(zip(*np.divmod(columns, d), strict=True), start=1):
            if column < nodes.n_numeric:
                out[:, k] = self.numbers[part, column]
            else:
                node = int(nodes.column_node[column])
                level = column - nodes.column_start[node]
                out[:, k] = self.codes[part, nodes.place(node)] == level
            if feature > 0 and self.products is not None:
                out[:, k] -= self.products.centre[column]
                out[:, k] *= self.products.features[part, feature - 1]
        return out


def assembled(sums: Floats, of_terms: Floats, per_b: float) -> Floats:
    """Sums over (1, columns) for pairs of statistics -> the matrix over own terms and entries.

    -x^2 / 2 multiplies an own term only, so `of_terms` has its sums times 1 and columns.
    """
    (bb, xb, xx), (qb, qx, qq) = sums, of_terms[:, None]
    size = len(bb) - 1
    out = np.empty((3 + 2 * size, 3 + 2 * size))
    out[:3, :3] = [
        [bb[0, 0], xb[0, 0], qb[0, 0]],
        [xb[0, 0], xx[0, 0], qx[0, 0]],
        [qb[0, 0], qx[0, 0], qq[0, 0]],
    ]
    of_b, of_x = slice(3, None, 2), slice(4, None, 2)
    for own, (with_b, with_x) in enumerate(((bb, xb), (xb, xx), (qb, qx))):
        out[own, of_b], out[own, of_x] = per_b * with_b[0, 1:], with_x[0, 1:]
    out[3:, :3] = out[:3, 3:].T
    out[of_b, of_b] = per_b**2 * bb[1:, 1:]
    out[of_b, of_x] = per_b * xb[1:, 1:]
    out[of_x, of_b] = per_b * xb[1:, 1:]
    out[of_x, of_x] = xx[1:, 1:]
    return out
