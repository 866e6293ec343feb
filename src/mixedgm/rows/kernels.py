"""Numba kernels over blocks of rows: linear predictors, softmax, products with Z transposed.

Z is never formed: a categorical column selects a row of the coefficient matrix, which costs one
addition where the indicator block would cost a product.  Every kernel releases the GIL.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_LOOSE = {"reassoc", "contract", "nsz"}
_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_MAGIC = 6755399441055744.0  # 1.5 * 2**52: adding it leaves the rounded integer in the low bits


@intrinsic
def _as_bits(typingctx, value):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def _as_float(typingctx, bits):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@njit(nogil=True, cache=True, fastmath={"contract"})
def _exp(x):  # type: ignore[no-untyped-def]
    """exp(x) for x <= 0, to 2e-16, in plain arithmetic so that loops over it vectorise.

    No reassociation here: (x + MAGIC) - MAGIC must not be simplified.
    """
    x = max(x, -700.0)
    shifted = x * _LOG2E + _MAGIC
    k = shifted - _MAGIC
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return _as_float(_as_bits(p) + (_as_bits(shifted) << 52))


@njit(nogil=True, cache=True, fastmath=_LOOSE)
def _predict_dense(cont, codes, first, last, coef, bias, level_start, tile, logits):  # type: ignore[no-untyped-def]
    """logits[i] = bias + z_i' coef for a block of rows; coef is (d, levels)."""
    n_cont, n_cat, total = cont.shape[1], codes.shape[1], bias.shape[0]
    for t0 in range(0, total, tile):
        t1 = min(t0 + tile, total)
        for i in range(first, last):
            out = logits[i - first]
            for k in range(t0, t1):
                out[k] = bias[k]
            for s in range(n_cont):
                x = cont[i, s]
                row = coef[s]
                for k in range(t0, t1):
                    out[k] += x * row[k]
            j = 0
            while j + 1 < n_cat:
                one = coef[n_cont + level_start[j] + codes[i, j]]
                two = coef[n_cont + level_start[j + 1] + codes[i, j + 1]]
                for k in range(t0, t1):
                    out[k] += one[k] + two[k]
                j += 2
            if j < n_cat:
                one = coef[n_cont + level_start[j] + codes[i, j]]
                for k in range(t0, t1):
                    out[k] += one[k]


@njit(nogil=True, cache=True, fastmath=_LOOSE)
def _predict_support(cont, codes, first, last, incidence, values, bias, level_start, logits):  # type: ignore[no-untyped-def]
    """The same from the listed blocks only."""
    target_ptr, predictor, entry_ptr = incidence
    n_cont, n_cat, total = cont.shape[1], codes.shape[1], bias.shape[0]
    for i in range(first, last):
        out = logits[i - first]
        for k in range(total):
            out[k] = bias[k]
        for j in range(n_cat):
            base = level_start[j]
            width = level_start[j + 1] - base
            for m in range(target_ptr[n_cont + j], target_ptr[n_cont + j + 1]):
                u, entry = predictor[m], entry_ptr[m]
                if u < n_cont:
                    x = cont[i, u]
                    for k in range(width):
                        out[base + k] += x * values[entry + k]
                else:
                    entry += codes[i, u - n_cont] * width
                    for k in range(width):
                        out[base + k] += values[entry + k]


@njit(nogil=True, cache=True, fastmath=_LOOSE)
def _softmax(codes, weights, first, last, level_start, logits, product, loss):  # type: ignore[no-untyped-def]
    """logits -> weighted probabilities in place; losses added per node.

    After the largest logit is taken out, every sum of exponentials lies between 1 and the number
    of levels, so their product over rows is kept and one logarithm serves many rows.
    """
    n_cat = codes.shape[1]
    total = logits.shape[1]
    weighted = weights.shape[0] > 0
    for i in range(first, last):
        out = logits[i - first]
        weight = weights[i] if weighted else 1.0
        for j in range(n_cat):
            a, b = level_start[j], level_start[j + 1]
            top = out[a]
            for k in range(a + 1, b):
                top = max(top, out[k])
            loss[j] += weight * (top - out[a + codes[i, j]])
            for k in range(a, b):
                out[k] -= top
        for k in range(total):
            out[k] = _exp(out[k])
        for j in range(n_cat):
            a, b = level_start[j], level_start[j + 1]
            norm = 0.0
            for k in range(a, b):
                norm += out[k]
            if weighted:
                loss[j] += weight * math.log(norm)
            else:
                product[j] *= norm
                if product[j] > 1e250:
                    loss[j] += math.log(product[j])
                    product[j] = 1.0
            scale = weight / norm
            for k in range(a, b):
                out[k] *= scale


@njit(nogil=True, cache=True, fastmath=_LOOSE)
def _collect_all(cont, codes, first, last, level_start, tile, probs, mean_prob, grad):  # type: ignore[no-untyped-def]
    """grad += Z' P and mean_prob += 1' P for a block of rows."""
    n_cont, n_cat, total = cont.shape[1], codes.shape[1], probs.shape[1]
    for t0 in range(0, total, tile):
        t1 = min(t0 + tile, total)
        for i in range(first, last):
            prob = probs[i - first]
            for k in range(t0, t1):
                mean_prob[k] += prob[k]
            for s in range(n_cont):
                x = cont[i, s]
                row = grad[s]
                for k in range(t0, t1):
                    row[k] += x * prob[k]
            for j in range(n_cat):
                row = grad[n_cont + level_start[j] + codes[i, j]]
                for k in range(t0, t1):
                    row[k] += prob[k]


@njit(nogil=True, cache=True, fastmath=_LOOSE)
def _collect_support(cont, codes, first, last, incidence, level_start, probs, mean_prob, grad):  # type: ignore[no-untyped-def]
    """The same for the listed blocks only."""
    target_ptr, predictor, entry_ptr = incidence
    n_cont, n_cat, total = cont.shape[1], codes.shape[1], probs.shape[1]
    for i in range(first, last):
        prob = probs[i - first]
        for k in range(total):
            mean_prob[k] += prob[k]
        for j in range(n_cat):
            base = level_start[j]
            width = level_start[j + 1] - base
            for m in range(target_ptr[n_cont + j], target_ptr[n_cont + j + 1]):
                u, entry = predictor[m], entry_ptr[m]
                if u < n_cont:
                    x = cont[i, u]
                    for k in range(width):
                        grad[entry + k] += x * prob[base + k]
                else:
                    entry += codes[i, u - n_cont] * width
                    for k in range(width):
                        grad[entry + k] += prob[base + k]


@njit(nogil=True, cache=True)
def softmax_chunks(  # type: ignore[no-untyped-def]
    data, bounds, chunks, level_start, bias, dense, incidence, values, want, sizes, out
):
    """Run the chunks of rows ``chunks[0]:chunks[1]``, each into its own slot of `out`.

    data = (cont, codes, weights); chunk c holds the rows bounds[c]:bounds[c + 1].
    dense = (d, levels) coefficients, or empty when `incidence` and `values` hold them.
    want = 0 value, 1 gradient on the support, 2 gradient for all pairs.
    sizes = (rows per block, columns per tile); out = (loss, mean_prob, support, all_pairs).
    """
    cont, codes, weights = data
    block, tile = sizes
    loss, mean_prob, support, all_pairs = out
    logits = np.empty((block, bias.shape[0]))
    product = np.ones(codes.shape[1])
    for c in range(chunks[0], chunks[1]):
        product[:] = 1.0
        for first in range(bounds[c], bounds[c + 1], block):
            last = min(first + block, bounds[c + 1])
            if dense.shape[0] > 0:
                _predict_dense(cont, codes, first, last, dense, bias, level_start, tile, logits)
            else:
                _predict_support(
                    cont, codes, first, last, incidence, values, bias, level_start, logits
                )
            _softmax(codes, weights, first, last, level_start, logits, product, loss[c])
            if want == 1:
                _collect_support(
                    cont, codes, first, last, incidence, level_start, logits, mean_prob[c], support[c]
                )
            elif want == 2:
                _collect_all(
                    cont, codes, first, last, level_start, tile, logits, mean_prob[c], all_pairs[c]
                )
        for j in range(codes.shape[1]):
            loss[c, j] += math.log(product[j])


@njit(nogil=True, cache=True, fastmath=_LOOSE)
def node_curvature(data, stride, cat, level_start, bias, incidence, values, gram):  # type: ignore[no-untyped-def]
    """Sum over every stride-th row of w (diag(p) - p p') x (z z') for one categorical node.

    gram is (K, K, L (L + 1) / 2): predictors (the intercept first, then the node's incidence),
    and the packed lower triangle over levels.  Only pairs of predictors a <= b are filled.
    Returns the weight of the rows used.
    """
    cont, codes, weights = data
    target_ptr, predictor, entry_ptr = incidence
    n_cont = cont.shape[1]
    weighted = weights.shape[0] > 0
    base = level_start[cat]
    width = level_start[cat + 1] - base
    first, last = target_ptr[n_cont + cat], target_ptr[n_cont + cat + 1]
    origin = entry_ptr[first]
    n_used = last - first + 1
    position = np.zeros(n_used, np.int64)
    value = np.ones(n_used)
    prob = np.empty(width)
    packed = np.empty(width * (width + 1) // 2)
    total = 0.0
    for i in range(0, cont.shape[0], stride):
        weight = weights[i] if weighted else 1.0
        total += weight
        for k in range(width):
            prob[k] = bias[base + k]
        for m in range(first, last):
            u, entry = predictor[m], entry_ptr[m]
            x = 1.0
            if u < n_cont:
                x = cont[i, u]
            else:
                entry += codes[i, u - n_cont] * width
            position[m - first + 1] = 1 + (entry - origin) // width
            value[m - first + 1] = x
            for k in range(width):
                prob[k] += x * values[entry + k]
        top = prob[0]
        for k in range(1, width):
            top = max(top, prob[k])
        norm = 0.0
        for k in range(width):
            prob[k] = _exp(prob[k] - top)
            norm += prob[k]
        for k in range(width):
            prob[k] /= norm
        at = 0
        for k in range(width):
            for m in range(k):
                packed[at] = -weight * prob[k] * prob[m]
                at += 1
            packed[at] = weight * prob[k] * (1.0 - prob[k])
            at += 1
        for a in range(n_used):
            for b in range(a, n_used):
                x = value[a] * value[b]
                row = gram[position[a], position[b]]
                for k in range(packed.shape[0]):
                    row[k] += x * packed[k]
    return total


@njit(nogil=True, cache=True)
def unpack_curvature(gram, width, scale):  # type: ignore[no-untyped-def]
    """Packed (K, K, L (L + 1) / 2) sums -> the symmetric (K L, K L) matrix, times `scale`."""
    size = gram.shape[0]
    matrix = np.empty((size * width, size * width))
    for a in range(size):
        for b in range(a, size):
            at = 0
            for k in range(width):
                for m in range(k + 1):
                    x = gram[a, b, at] * scale
                    matrix[a * width + k, b * width + m] = x
                    matrix[a * width + m, b * width + k] = x
                    matrix[b * width + k, a * width + m] = x
                    matrix[b * width + m, a * width + k] = x
                    at += 1
    return matrix


@njit(nogil=True, cache=True)
def level_moments(data, level_start, cont_by_level, level_by_level):  # type: ignore[no-untyped-def]
    """Sums of w x_s over the rows of each level, and of w over pairs of levels (upper triangle)."""
    cont, codes, weights = data
    weighted = weights.shape[0] > 0
    n_cont, n_cat = cont.shape[1], codes.shape[1]
    column = np.empty(n_cat, np.int64)
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
