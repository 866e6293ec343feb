"""Information of a pair, and the covariance of its estimates -> an interval for its strength.

With theta the d parameters of a pair, F the information of the pair at the estimate and V / n the
covariance of the estimate, 2 n I is about theta' (n F) theta: c times a noncentral chi-square with
d degrees of freedom, c = tr(F V) / d.  That holds near zero.  Farther out the information is no
longer quadratic in theta, and its standard error is g' V g / n, with its gradient g; deviations of
the root of the noncentrality are stretched to have it.  For two numbers the root is Fisher's z.

A noncentrality near zero cannot be too small for the rows, so that all errors are on one side there
and the interval begins at zero unless a test at its level rejects zero.  Farther out both sides
have half of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chndtr, ndtri

from mixedgm.inference.strength import strength
from mixedgm.model.layout import Floats

_HALVINGS = 45
_LARGEST = 0.999999


@dataclass(frozen=True, eq=False)
class PairUncertainty:
    """What the interval of one pair is made of."""

    nats: float
    """Information at the estimate, not corrected."""
    freedom: int
    trace: float
    """tr(F V)."""
    stretch: float
    """Standard error of the root of the information, over that of a quadratic function."""


def excess(trace: Floats | float, n: float) -> Floats:
    """Information that estimates have in excess on average, in nats."""
    return np.asarray(0.5 * np.asarray(trace) / n)


def interval(pair: PairUncertainty, n: float, level: float) -> tuple[float, float]:
    """Lower and upper end of the interval for the strength of a pair.

    Examples
    --------
    >>> pair = PairUncertainty(nats=0.02, freedom=4, trace=4.0, stretch=1.0)
    >>> [round(end, 2) for end in interval(pair, 1000.0, 0.95)]
    [0.13, 0.25]
    """
    scale = pair.trace / pair.freedom
    statistic = 2.0 * n * pair.nats / scale
    middle = np.sqrt(max(statistic - pair.freedom, 0.0))
    ends = np.sqrt(noncentralities(statistic, pair.freedom, level))
    moved = np.maximum(middle + pair.stretch * (ends - middle), 0.0)
    low, high = strength(0.5 * scale * moved**2 / n).tolist()
    return (low if ends[0] > 0.0 else 0.0), high


def interval_of_numbers(
    correlation: float, scale: float, n: float, level: float
) -> tuple[float, float]:
    """The interval of two numbers, by Fisher's z, whose variance is scale / n.

    Examples
    --------
    >>> [round(end, 2) for end in interval_of_numbers(0.3, 1.0, 400.0, 0.95)]
    [0.21, 0.39]
    """
    z = np.arctanh(min(abs(correlation), _LARGEST))
    ends = noncentralities(float(z**2 * n / scale), 1, level)
    low, high = np.tanh(np.sqrt(ends * scale / n)).tolist()
    return low, high


def noncentralities(statistic: float, freedom: int, level: float) -> Floats:
    """The smallest and the largest noncentrality that a chi-square statistic does not reject.

    Examples
    --------
    >>> noncentralities(100.0, 1, 0.95).round(1)
    array([ 64.7, 143. ])
    """
    error = 1.0 - level
    one_sided = max(ndtri(level), 0.0) ** 2 * np.sqrt(freedom)

    def too_small(noncentrality: float) -> float:
        """Probability that a statistic is too small for this noncentrality."""
        if noncentrality <= one_sided:
            return 0.0
        return float(0.5 * error * (1.0 - (one_sided / noncentrality) ** 2))

    def end(chance: float) -> float:
        """Where statistics up to this one have this probability and that of too small ones."""

        def more(at: float) -> float:
            return float(chndtr(statistic, freedom, at)) - chance - too_small(at)

        low, high = 0.0, 4.0 * (statistic + 10.0 * np.sqrt(statistic) + 50.0)
        if more(low) < 0.0:
            return low
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if more(middle) >= 0.0 else (low, middle)
        return low

    return np.array([end(level), end(0.0)])
