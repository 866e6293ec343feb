"""Estimates of pairs and their covariances -> a p-value and an equivalent z for every pair.

A pair of many parameters is tested twice: in all directions at once, W = n e'V^-1 e against a
chi-square of as many degrees of freedom, and along one direction, that of levels in their order,
whose square is part of W.  The two p-values are combined as means of Cauchy variables are
(Liu and Xie 2020), and the combination is calibrated by its null distribution.  So a pair of 16
parameters loses little power where its columns behave like ordered ones, and little where they do
not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy.special import chdtrc, chdtri, gammaln, ndtri_exp

from mixedgm.inference.pairs import PairEstimates
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.moderation import level_basis
from mixedgm.model.nodes import Nodes
from mixedgm.threads import run_some

_TINY = 1e-300
_NODES = 250
_TERMS = 40


@dataclass(frozen=True, eq=False)
class PairStatistics:
    """Tests of all groups."""

    statistic: Floats
    """(n_groups,) W: Wald's, or the score test's, in all directions."""
    df: Ints
    direction: Floats
    """(n_groups,) z along levels in order; of pairs with one parameter, its z with its sign."""
    log_p: Floats
    """(n_groups,) logarithms of the combined p-values."""

    @property
    def p(self) -> Floats:
        """The combined p-values."""
        return np.exp(self.log_p)

    @property
    def z(self) -> Floats:
        """(n_groups,) the standard normal number, above zero, that has this p-value."""
        return equivalent_z(self.log_p)


def equivalent_z(log_p: Floats) -> Floats:
    """Absolute value of a standard normal number that has this two-sided p-value."""
    return np.asarray(np.maximum(-ndtri_exp(np.minimum(log_p, 0.0) - np.log(2.0)), 0.0))


def pair_statistics(estimates: PairEstimates, full: Nodes) -> PairStatistics:
    """Test every group.  `full` are the nodes with all their levels."""
    layout = estimates.layout
    statistic, direction, log_p = np.zeros((3, layout.n_groups))
    directions, starts = ordered_directions(layout, full), layout.starts - layout.n_node_terms

    def test(groups: Ints, values: Floats, covariance: Floats) -> None:
        k = values.shape[1]
        along = directions[starts[groups][:, None] + np.arange(k)]
        both = np.stack([values, along], axis=2)
        solved = np.linalg.solve(covariance, both)
        statistic[groups] = np.einsum("ga,ga->g", values, solved[:, :, 0])
        length = np.sqrt(np.einsum("ga,ga->g", along, solved[:, :, 1]))
        direction[groups] = np.einsum("ga,ga->g", values, solved[:, :, 1]) / length
        log_p[groups] = log_tail(statistic[groups], k)
        if k > 1:
            log_p[groups] = combined(log_p[groups], log_tail(direction[groups] ** 2, 1))

    parts = [partial(test, *part) for part in estimates.by_size()]
    run_some(parts, int((layout.sizes**3).sum()))
    return PairStatistics(statistic, layout.sizes, direction, log_p)


def log_tail(x: Floats, df: int) -> Floats:
    """Logarithm of the probability that a chi-square is larger, also where that underflows.

    There it is Legendre's continued fraction of the incomplete gamma function.
    """
    near = chdtrc(df, x)
    half, far = 0.5 * df, np.maximum(0.5 * np.asarray(x, dtype=np.float64), 0.5 * df + 1.0)
    fraction = far + (2 * _TERMS + 1 - half)
    for k in range(_TERMS, 0, -1):
        fraction = far + (2 * k - 1 - half) - k * (k - half) / fraction
    beyond = half * np.log(far) - far - gammaln(half) - np.log(fraction)
    return np.where(near > _TINY, np.log(np.maximum(near, _TINY)), beyond)


def ordered_directions(layout: Layout, full: Nodes) -> Floats:
    """(edge parameters,) for every group, how its contrasts look if both ends are ordered.

    Levels count 1, 2, ..., a column of numbers as it is; of a hurdle column, whether and how much
    count the same.  Of a deviation, so for each feature of its moderator.
    """
    scores = np.concatenate(
        [
            np.ones(n) if is_numeric else np.arange(n) @ level_basis(n)
            for n, is_numeric in zip(full.width.tolist(), full.numeric_nodes, strict=True)
        ]
    )
    row, column = layout.edge_position
    return np.asarray(scores[row % layout.n_columns] * scores[column])


def combined(log_p: Floats, log_p_direction: Floats) -> Floats:
    """Logarithm of the p-value of both tests, that in all directions and that in one of them."""
    mean = _cauchy_mean(log_p, log_p_direction)
    at, shift = _calibration()
    return np.minimum(mean + np.interp(mean, at, shift), 0.0)


def _cauchy_mean(a: Floats, b: Floats) -> Floats:
    """Logarithm of the p-value of the mean of two Cauchy variables with these p-values."""
    small = np.log(2.0) - np.logaddexp(-a, -b)  # tails of Cauchy variables add up
    p, q = (np.clip(np.exp(each), _TINY, 1.0 - 1e-15) for each in (a, b))
    mean = 0.5 * (1.0 / np.tan(np.pi * p) + 1.0 / np.tan(np.pi * q))
    exact = np.log(np.maximum(0.5 - np.arctan(mean) / np.pi, _TINY))
    return np.where(np.minimum(a, b) < np.log(1e-8), small, exact)


@cache
def _calibration(df: int = 4) -> tuple[Floats, Floats]:
    """Combinations (logarithms), and what is added to them to make them p-values.

    With t the square along the direction and r what is left of W, both chi-square and independent,
    the probability of a smaller combination is the mean over t of that of a large enough r.  It is
    integrated over q, the p-value of t.  In the far tail nothing is added: tails of Cauchy
    variables add up whatever their dependence.  What is added, 0.04 at most, is the same for all
    degrees of freedom to 0.02, so that one number of them stands for all.
    """
    target = np.concatenate([np.linspace(-14.0, -1.0, 27), np.log(np.linspace(0.4, 0.9999, 13))])
    low = target[:, None] - 6.0
    log_q = low * (1.0 - (np.arange(_NODES) + 0.5) / _NODES)
    q = np.exp(log_q)
    rest = 2.0 / np.tan(np.pi * np.exp(target[:, None])) - 1.0 / np.tan(np.pi * q)
    largest = 0.5 - np.arctan(rest) / np.pi  # p-value of W with which t has this combination
    r = np.maximum(chdtri(df, largest) - chdtri(1.0, q), 0.0)
    chance = (chdtrc(df - 1.0, r) * q).mean(axis=1) * -low[:, 0] + np.exp(low[:, 0])
    shift = np.log(chance) - target
    shift[0] = 0.0
    return target, shift
