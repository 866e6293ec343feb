"""Numba kernels over rows: second derivatives of the softmax terms, packed and unpacked."""

from __future__ import annotations

import numpy as np
from numba import njit

from mixedgm.rows.arithmetic import exp_nonpositive

_LOOSE = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=_LOOSE)
def _node_curvature(data, rows, cat, level_start, bias, incidence, values, gram):  # type: ignore[no-untyped-def]
    """Sum over rows of w (diag(p) - p p') x (z z') for one categorical node.

    rows = (first, last, stride).  gram is (K, K, L (L - 1) / 2): predictors (the intercept
    first, then the node's incidence) by the packed lower triangle over levels 1 to L - 1; what
    concerns level 0 follows, because rows of diag(p) - p p' sum to zero.  Only pairs of
    predictors a <= b are filled.  Returns the weight of the rows used.
    """
    cont, codes, weights = data
    target_ptr, predictor, entry_ptr = incidence
    n_cont = cont.shape[1]
    weighted = weights.shape[0] > 0
    base = np.uint64(level_start[cat])
    width = level_start[cat + 1] - level_start[cat]
    first, last = target_ptr[n_cont + cat], target_ptr[n_cont + cat + 1]
    n_used = last - first + 1
    origin = np.ones(n_used, np.int64)  # where each predictor's columns begin; 0 is the intercept
    for m in range(first, last):
        origin[m - first + 1] = 1 + (entry_ptr[m] - entry_ptr[first]) // width
    position = np.zeros(n_used, np.uint64)
    value = np.ones(n_used)
    prob = np.empty(width)
    packed = np.empty(gram.shape[2])
    total = 0.0
    for i in range(rows[0], rows[1], rows[2]):
        weight = weights[i] if weighted else 1.0
        total += weight
        for k in range(width):
            prob[k] = bias[base + np.uint64(k)]
        for m in range(first, last):
            u, x, level = predictor[m], 1.0, np.int64(0)
            if u < n_cont:
                x = cont[i, u]
            else:
                level = np.int64(codes[i, u - n_cont])
            position[m - first + 1] = np.uint64(origin[m - first + 1] + level)
            value[m - first + 1] = x
            start = np.uint64(entry_ptr[m] + level * width)
            for k in range(width):
                prob[k] += x * values[start + np.uint64(k)]
        top = prob[0]
        for k in range(1, width):
            top = max(top, prob[k])
        norm = 0.0
        for k in range(width):
            prob[k] = exp_nonpositive(prob[k] - top)
            norm += prob[k]
        for k in range(width):
            prob[k] /= norm
        at = 0
        for k in range(1, width):
            for m in range(1, k):
                packed[at] = -weight * prob[k] * prob[m]
                at += 1
            packed[at] = weight * prob[k] * (1.0 - prob[k])
            at += 1
        for a in range(n_used):
            at_a, x_a = position[a], value[a]
            for b in range(a, n_used):
                at_b, x = position[b], x_a * value[b]
                for k in range(packed.shape[0]):
                    gram[at_a, at_b, k] += x * packed[k]
    return total


@njit(nogil=True, cache=True)
def curvature_sums(data, rows, nodes, level_start, bias, incidence, values, start, out):  # type: ignore[no-untyped-def]
    """`_node_curvature` for each categorical node in `nodes`.

    The sums of nodes[k] begin at start[k] of the flat `out`.  Returns the weight of the rows.
    """
    target_ptr, predictor, entry_ptr = incidence
    n_cont = data[0].shape[1]
    weight = 0.0
    for k in range(nodes.shape[0]):
        v = n_cont + nodes[k]
        width = level_start[nodes[k] + 1] - level_start[nodes[k]]
        size = 1 + (entry_ptr[target_ptr[v + 1]] - entry_ptr[target_ptr[v]]) // width
        gram = out[start[k] : start[k + 1]].reshape((size, size, width * (width - 1) // 2))
        weight = _node_curvature(data, rows, nodes[k], level_start, bias, incidence, values, gram)
    return weight


@njit(nogil=True, cache=True)
def unpack_curvature(packed, width, scale, matrix):  # type: ignore[no-untyped-def]
    """Packed (K, K, L (L - 1) / 2) sums -> the symmetric (K L, K L) `matrix`, times `scale`."""
    size = matrix.shape[0] // width
    gram = packed.reshape((size, size, width * (width - 1) // 2))
    block = np.zeros((width, width))
    for a in range(size):
        for b in range(a, size):
            at = 0
            for k in range(1, width):
                for m in range(1, k + 1):
                    x = gram[a, b, at] * scale
                    block[k, m] = x
                    block[m, k] = x
                    at += 1
            block[0, 0] = 0.0
            for k in range(1, width):
                x = 0.0
                for m in range(1, width):
                    x -= block[k, m]
                block[k, 0] = x
                block[0, k] = x
                block[0, 0] -= x
            for k in range(width):
                for m in range(width):
                    matrix[a * width + k, b * width + m] = block[k, m]
                    matrix[b * width + k, a * width + m] = block[k, m]
