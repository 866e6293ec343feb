"""Numba kernels over rows: second derivatives of the softmax terms, packed and unpacked."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner, kernel
from mixedgm.rows.arithmetic import FEW_LEVELS, exp_nonpositive

_LOOSE = {"reassoc", "contract", "nsz"}
_BLOCK = 64


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


@inner(fastmath=_LOOSE)
def _add_block(n_rows, n_levels, origin, codes, values, by_level, by_row, gram):  # type: ignore[no-untyped-def]
    """gram[a, b] += sum over the block of z_a z_b packed, for predictors a <= b.

    n_levels[m] is 0 for a predictor with a value per row (values[m]), else that of a categorical
    one (level codes[m]); origin[m] is its first column of gram.
    """
    n_packed = by_level.shape[0]
    x = np.empty(n_rows)
    for b in range(n_levels.shape[0]):
        for a in range(b + 1):
            own = b if n_levels[b] > 0 else a
            both = a < b and n_levels[a] > 0 and n_levels[b] > 0
            if both or n_levels[own] > FEW_LEVELS:
                for i in range(n_rows):
                    at_a = np.uint64(origin[a] + codes[a, i])
                    at_b = np.uint64(origin[b] + codes[b, i])
                    y = values[a, i] * values[b, i]
                    for k in range(n_packed):
                        gram[at_a, at_b, k] += y * by_row[i, k]
                continue
            for k in range(n_packed):
                for i in range(n_rows):
                    x[i] = values[a, i] * values[b, i] * by_level[k, i]
                if n_levels[own] == 0:
                    total = 0.0
                    for i in range(n_rows):
                        total += x[i]
                    gram[origin[a], origin[b], k] += total
                for level in range(n_levels[own]):
                    total = 0.0
                    for i in range(n_rows):
                        total += x[i] if codes[own, i] == level else 0.0
                    at_a = origin[a] + (level if n_levels[a] > 0 else 0)
                    at_b = origin[b] + (level if n_levels[b] > 0 else 0)
                    gram[at_a, at_b, k] += total


@inner(fastmath=_LOOSE)
def _load(data, block_rows, n_rows, node, incidence, coefs, levels, values, turned):  # type: ignore[no-untyped-def]
    """Predictors of one node for a block of rows; its logits are added to `turned`.

    node = (first and last block of the incidence, levels of the node).
    """
    cont, codes, _ = data
    target_ptr, predictor, entry_ptr = incidence
    first, last, width = node
    for m in range(first, last):
        u, at = predictor[m], m - first + 1
        for i in range(n_rows):
            if u < cont.shape[1]:
                values[at, i] = cont[block_rows[i], u]
            else:
                levels[at, i] = codes[block_rows[i], u - cont.shape[1]]
        for i in range(n_rows):
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


@kernel
def curvature_sums(data, rows, nodes, level_start, bias, incidence, coefs, start, out):  # type: ignore[no-untyped-def]
    """Sum over rows of w (diag(p) - p p') x (z z') for each categorical node in `nodes`.

    rows = (first, last, stride).  The sums of nodes[k] begin at start[k] of the flat `out`:
    (K, K, L (L - 1) / 2), predictors (the intercept first, then the node's incidence) by the
    packed levels of `_pack`.  Only pairs of predictors a <= b are filled.  Returns the weight of
    the rows used.
    """
    target_ptr, predictor, entry_ptr = incidence
    n_cont, weights = data[0].shape[1], data[2]
    block_rows, top, norm = np.empty(_BLOCK, np.int64), np.empty(_BLOCK), np.empty(_BLOCK)
    total = 0.0
    for node in range(nodes.shape[0]):
        base, width = (
            level_start[nodes[node]],
            level_start[nodes[node] + 1] - level_start[nodes[node]],
        )
        first, last = target_ptr[n_cont + nodes[node]], target_ptr[n_cont + nodes[node] + 1]
        n_levels, origin = (
            np.zeros(last - first + 1, np.int64),
            np.zeros(last - first + 1, np.int64),
        )
        for m in range(first, last):
            if predictor[m] >= n_cont:
                n_levels[m - first + 1] = (entry_ptr[m + 1] - entry_ptr[m]) // width
            origin[m - first + 1] = 1 + (entry_ptr[m] - entry_ptr[first]) // width
        n_packed, size = width * (width - 1) // 2, 1 + (entry_ptr[last] - entry_ptr[first]) // width
        gram = out[start[node] : start[node + 1]].reshape((size, size, n_packed))
        levels, values = np.zeros((len(origin), _BLOCK), np.int64), np.ones((len(origin), _BLOCK))
        turned = np.empty((width, _BLOCK))
        by_level, by_row = np.empty((n_packed, _BLOCK)), np.empty((_BLOCK, n_packed))
        total = 0.0
        for begin in range(rows[0], rows[1], rows[2] * _BLOCK):
            n_rows = (min(begin + rows[2] * _BLOCK, rows[1]) - begin + rows[2] - 1) // rows[2]
            for i in range(n_rows):
                block_rows[i] = begin + i * rows[2]
                total += weights[block_rows[i]] if weights.shape[0] > 0 else 1.0
            for k in range(width):
                for i in range(n_rows):
                    turned[k, i] = bias[base + k]
            own = (first, last, width)
            _load(data, block_rows, n_rows, own, incidence, coefs, levels, values, turned)
            _probabilities(n_rows, width, turned, top, norm)
            _pack(weights, block_rows, n_rows, width, turned, by_level, by_row)
            _add_block(n_rows, n_levels, origin, levels, values, by_level, by_row, gram)
    return total


@kernel
def unpack_curvatures(packed, width, size, scale, matrices):  # type: ignore[no-untyped-def]
    """Packed (K, K, L (L - 1) / 2) sums of every node -> symmetric (K L, K L) matrices, in a row.

    Node k has width[k] = L levels and size[k] = K predictor columns.
    """
    source, first = np.int64(0), np.int64(0)  # a literal 0 would be compiled for apart
    for node in range(width.shape[0]):
        levels, n_columns = width[node], size[node]
        n = n_columns * levels
        block = np.zeros((levels, levels))
        for a in range(n_columns):
            for b in range(n_columns):
                if a <= b:
                    _unpack(packed, source, levels, scale, block)
                    for k in range(levels):
                        for m in range(levels):
                            x = block[k, m]
                            matrices[first + (a * levels + k) * n + b * levels + m] = x
                            matrices[first + (b * levels + k) * n + a * levels + m] = x
                source += levels * (levels - 1) // 2
        first += n * n


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
