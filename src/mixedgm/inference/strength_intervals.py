"""Information of a pair, and the covariance of its estimates -> an interval for its strength.

With theta the d parameters of a pair, F the information of the pair at the estimate and V / n the
covariance of the estimate, 2 n I is about theta' (n F) theta: c times a noncentral chi-square with
d degrees of freedom, c = tr(F V) / d.  That holds near zero.  Farther out the information is no
longer quadratic in theta, and its standard error is g' V g / n, with its gradient g; deviations of
the root of the noncentrality are stretched to have it.  Two numbers have Fisher's z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chndtr, ndtri

from mixedgm.inference.strength import strength
from mixedgm.model.layout import Floats

_HALVINGS = 60
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
    statistic, tail = 2.0 * n * pair.nats / scale, 0.5 * (1.0 - level)
    middle = np.sqrt(max(statistic - pair.freedom, 0.0))
    ends = [
        np.sqrt(_noncentrality(statistic, pair.freedom, chance)) for chance in (1.0 - tail, tail)
    ]
    moved = [max(middle + pair.stretch * (end - middle), 0.0) for end in ends]
    low, high = (float(strength(np.array(0.5 * scale * end**2 / n))) for end in moved)
    return (low if ends[0] > 0.0 else 0.0), high


def _noncentrality(statistic: float, freedom: int, chance: float) -> float:
    """The noncentrality at which a smaller statistic has this probability; 0 if none does."""
    if chndtr(statistic, freedom, 0.0) <= chance:
        return 0.0
    low, high = 0.0, 4.0 * (statistic + 10.0 * np.sqrt(statistic) + 50.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if chndtr(statistic, freedom, middle) > chance else (low, middle)
    return float(0.5 * (low + high))


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
    step = -ndtri(0.5 * (1.0 - level)) * np.sqrt(scale / n)
    low = max(float(np.tanh(z - step)), 0.0)
    return low, float(np.tanh(z + step))
