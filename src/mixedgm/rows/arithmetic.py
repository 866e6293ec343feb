"""x -> exp(x) and log(x) in plain arithmetic, so that Numba's loops over them vectorise."""

from __future__ import annotations

import numpy as np

from mixedgm.base.compiled import inner

FEW_LEVELS = 6
"""Up to here, comparing whole vectors of codes with every level beats picking row by row."""

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_LN2 = 0.6931471805599453
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD  # sqrt(1/2) as a bit pattern
_MAGIC = 6755399441055744.0  # 1.5 * 2**52: adding it leaves the rounded integer in the low bits


@inner
def _as_bits(value):
    return np.float64(value).view(np.int64)


@inner
def _as_float(bits):
    return np.int64(bits).view(np.float64)


@inner(fastmath={"contract"})
def exp_nonpositive(x):
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


@inner(fastmath={"contract"})
def log_positive(x):
    """log(x) for normal x > 0, to 2e-16, in plain arithmetic so that loops over it vectorise."""
    bits = _as_bits(x) - _SQRT_HALF_BITS
    exponent = bits >> 52
    m = _as_float((bits & 0xFFFFFFFFFFFFF) + _SQRT_HALF_BITS)
    f = (m - 1.0) / (m + 1.0)
    g = f * f
    p = 1.0 / 19.0
    p = p * g + 1.0 / 17.0
    p = p * g + 1.0 / 15.0
    p = p * g + 1.0 / 13.0
    p = p * g + 1.0 / 11.0
    p = p * g + 1.0 / 9.0
    p = p * g + 1.0 / 7.0
    p = p * g + 0.2
    p = p * g + 1.0 / 3.0
    return exponent * _LN2 + (2.0 * f + 2.0 * f * g * p)
