"""Rows and a model in -> statistics of columns and pairs, and how odd they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

from mixedgm.fitted import FittedModel
from mixedgm.model.density import Conditionals, conditionals
from mixedgm.model.layout import Floats
from mixedgm.table.encode import Design

__all__ = ["MOMENTS", "Oddity", "Statistics", "holm", "oddity", "statistics"]

MOMENTS = ("mean", "sd", "residual mean", "residual sd", "skewness", "kurtosis")
"""Of a column of numbers; the last four are those of residuals, standardised by the model."""

OUTLIER = 4.0
_CELLS_PER_BLOCK = 2**20
_ENOUGH = 10  # simulated tables beyond the observed one, for their share to be the p-value
_CERTAIN = 1e-12  # variance of a value that is all but certain, against its squared range


@dataclass(frozen=True, eq=False)
class Statistics:
    """What one table looks like to a model.

    The covariance is that of the design columns: numbers and scores, standardised within this
    table, and level indicators.  Its blocks are the correlation of two columns of numbers, the
    group means of a mixed pair (times the groups' shares), and a table less the product of its
    margins.  Moments are those of the m columns of numbers: Gaussian ones, then hurdle ones where
    they are not zero, ordinal ones by their scores, and counts.  The q discrete columns are hurdle
    ones (zero or not), ordinal, counts and categorical.
    """

    covariance: Floats  # (d, d)
    moments: Floats  # (m, 6), the `MOMENTS`
    largest: Floats  # (m,) standardised residual, in size
    n_outliers: Floats  # (m,) total weight of rows whose residual is beyond `OUTLIER`
    shares: Floats  # (sum of values,)
    expected: Floats  # (sum of values,) mean probability given the other columns
    spread: Floats  # (sum of values,) mean of p(1 - p) over those probabilities
    dispersion: Floats  # (q,) mean squared Pearson residual, 1 when the model is right


def statistics(fitted: FittedModel, design: Design) -> Statistics:
    """Look at the rows in blocks; only sums are kept."""
    params, nodes, total = fitted.params, fitted.params.nodes, design.total_weight
    weights = np.ones(design.n_rows) if design.weights is None else design.weights
    scores = nodes.numbers(design.numbers, design.codes)
    centre, scale = _centre_and_scale(scores, weights)
    n_values = int(nodes.level_start[-1])
    d, m = nodes.n_columns, int(np.count_nonzero(nodes.numeric_nodes))
    second, mean = np.zeros((d, d)), np.zeros(d)
    powers, outliers, largest = np.zeros((4, m)), np.zeros(m), np.zeros(m)
    shares, expected, spread = np.zeros((3, n_values))
    pearson = np.zeros(len(nodes.n_levels))
    values, judged = _values(fitted, design), _judged(fitted, design) * weights[:, None]
    size = max(1, _CELLS_PER_BLOCK // max(d, nodes.n_gaussian + n_values, 1))
    for first in range(0, design.n_rows, size):
        cut = slice(first, first + size)
        numbers, codes, w = design.numbers[cut], design.codes[cut], weights[cut]
        given = conditionals(params, numbers, codes, fitted.n_observed)
        chance = np.exp(given.log_prob)
        hot = _indicators(codes, params.level_start)
        indicators = hot[:, int(nodes.level_start[nodes.first_indicator]) :]
        z = np.hstack([(scores[cut] - centre) / scale, indicators])
        second += z.T @ (w[:, None] * z)
        mean += w @ z
        middle, variance = _expected(fitted, given, chance)
        residual = np.where(judged[cut] > 0.0, (values[cut] - middle) / np.sqrt(variance), 0.0)
        powers += [np.sum(judged[cut] * residual**k, axis=0) for k in (1, 2, 3, 4)]
        outliers += w @ (np.abs(residual) > OUTLIER)
        largest = np.maximum(largest, np.abs(residual).max(axis=0, initial=0.0))
        shares += w @ hot
        expected += w @ chance
        spread += w @ (chance * (1.0 - chance))
        for j in (*range(nodes.n_spiked), *range(nodes.first_indicator, len(nodes.n_levels))):
            levels = params.levels_of(j)
            chosen = np.maximum((hot[:, levels] * chance[:, levels]).sum(axis=1), 1e-300)
            # sum over levels of (indicator - p)^2 / p, over its expectation L - 1
            pearson[j] += w @ (1.0 / chosen - 1.0) / max(nodes.n_levels[j] - 1, 1)
    mean /= total
    powers /= np.maximum(judged.sum(axis=0), 1e-300)
    pearson /= total
    pearson[nodes.n_spiked : nodes.first_indicator] = powers[1, nodes.n_real :]
    return Statistics(
        second / total - np.outer(mean, mean),
        _moments(*_centre_and_scale(values, judged), powers),
        largest,
        outliers,
        shares / total,
        expected / total,
        spread / total,
        pearson,
    )


def _centre_and_scale(columns: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Of every column; weights are those of rows (n,), or of cells."""
    if weights.ndim == 1:
        centre = weights @ columns / weights.sum()
        scale = np.sqrt(weights @ (columns - centre) ** 2 / weights.sum())
    else:
        total = np.maximum(weights.sum(axis=0), 1e-300)
        centre = np.sum(weights * columns, axis=0) / total
        scale = np.sqrt(np.sum(weights * (columns - centre) ** 2, axis=0) / total)
    return centre, np.where(scale == 0.0, 1.0, scale)


def _values(fitted: FittedModel, design: Design) -> Floats:
    """(n, m) what residuals are about: numbers, scores of levels, counts."""
    nodes = fitted.params.nodes
    scored, codes = range(nodes.n_spiked, nodes.first_indicator), design.codes.astype(np.intp)
    return np.column_stack([design.numbers, *(nodes.amounts(j)[codes[:, j]] for j in scored)])


def _judged(fitted: FittedModel, design: Design) -> Floats:
    """(n, m) 1 where there is a residual: in a hurdle column, where it is not zero."""
    nodes = fitted.params.nodes
    there = np.ones((design.n_rows, int(np.count_nonzero(nodes.numeric_nodes))))
    there[:, nodes.n_gaussian : nodes.n_real] = design.codes[:, : nodes.n_spiked]
    return there


def _expected(fitted: FittedModel, given: Conditionals, chance: Floats) -> tuple[Floats, Floats]:
    """(n, m) means and variances of the same given the other columns."""
    nodes = fitted.params.nodes
    means, variances = [given.mean], [np.broadcast_to(given.variance, given.mean.shape)]
    for j in range(nodes.n_spiked, nodes.first_indicator):
        numbers, prob = nodes.amounts(j), chance[:, nodes.levels_of(j)]
        mean = prob @ numbers
        means.append(mean[:, None])
        variance = np.sum(prob * (numbers - mean[:, None]) ** 2, axis=1, keepdims=True)
        variances.append(np.maximum(variance, _CERTAIN * np.ptp(numbers) ** 2))
    return np.hstack(means), np.hstack(variances)


def _indicators(codes: np.ndarray, level_start: np.ndarray) -> Floats:
    hot = np.zeros((len(codes), int(level_start[-1])))
    rows = np.arange(len(codes))
    for j in range(codes.shape[1]):
        hot[rows, level_start[j] + codes[:, j]] = 1.0
    return hot


def _moments(centre: Floats, scale: Floats, powers: Floats) -> Floats:
    first, second, third, fourth = powers
    variance = np.maximum(second - first**2, 1e-300)
    skewness = (third - 3.0 * first * second + 2.0 * first**3) / variance**1.5
    central = fourth - 4.0 * first * third + 6.0 * first**2 * second - 3.0 * first**4
    kurtosis = central / variance**2 - 3.0
    return np.column_stack([centre, scale, first, np.sqrt(variance), skewness, kurtosis])


@dataclass(frozen=True, eq=False)
class Oddity:
    """How far the observed statistics of one column or pair are from simulated ones.

    `scaled` is observed minus simulated mean, in standard deviations of the simulation; `distance`
    its root mean square, divided by what that is in simulated tables: about 1 when the model is
    right; `p_value` the chance of a larger distance under the model.
    """

    scaled: Floats
    distance: float
    p_value: float


def oddity(observed: Floats, simulated: Floats, floor: float | Floats) -> Oddity:
    """Compare k statistics with their values in S simulated tables, an (S, k) array.

    The p-value is the share of simulated tables that are farther from the simulated mean; where
    fewer than ten are, the tail of an F distribution whose degrees of freedom follow from the
    statistics' correlations and from the spread of the simulated distances.  `floor` is the
    smallest standard deviation to divide by.
    """
    n, k = simulated.shape
    centre = simulated.mean(axis=0)
    scale = np.maximum(simulated.std(axis=0, ddof=1), floor)
    # A simulated table is part of the mean that it is compared with, the observed one is not.
    scaled = (observed - centre) / (scale * np.sqrt(1.0 + 1.0 / n))
    drawn = (simulated - centre) / (scale * np.sqrt(1.0 - 1.0 / n))
    reference = np.mean(drawn**2, axis=1)
    square, mean = float(np.mean(scaled**2)), float(reference.mean())
    if mean <= 0.0:  # none of the statistics varies under the model
        return Oddity(scaled, float(np.sqrt(square)), 1.0 if square < 1.0 else 0.0)
    distance = float(np.sqrt(square / mean))
    beyond = int(np.count_nonzero(reference >= square))
    if beyond >= _ENOUGH:
        return Oddity(scaled, distance, (beyond + 1.0) / (n + 1.0))
    # Sum of squares of correlated normals: mean k, variance 2 |R|^2.  Rare cells vary more.
    by_correlation = 2.0 * float(np.sum((drawn.T @ drawn / n) ** 2)) / k**2
    variance = max(by_correlation, float(reference.var(ddof=1)))
    p_value = float(fdtrc(2.0 * mean**2 / variance, n - 1.0, square / mean))
    return Oddity(scaled, distance, p_value)


def holm(p_values: Floats) -> Floats:
    """Adjust p-values so that one at most alpha is a false alarm with probability at most alpha.

    Examples
    --------
    >>> holm(np.array([0.01, 0.5, 0.02])).tolist()
    [0.03, 0.5, 0.04]
    """
    order = np.argsort(p_values, kind="stable")
    left = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * left))
    return adjusted
