"""A model and encoded rows -> their log likelihood, given covariates where there are some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.joint.conditioning import log_weight
from mixedgm.joint.moments import log_partition
from mixedgm.joint.plan import LIMIT
from mixedgm.joint.posteriors import known_log_weight
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats


def log_likelihood(
    params: ConditionalGaussian,
    numbers: Floats,
    codes: NDArray[np.integer],
    n_observed: float = np.inf,
    covariates: Sequence[int] = (),
    *,
    limit: int = LIMIT,
) -> Floats:
    """(n,) log density of rows, some of which may have levels that no training row had.

    Parameters
    ----------
    params : ConditionalGaussian
        The model; the precision of all but the covariates must be positive definite.
    numbers, codes : ndarray (n, p), (n, q)
        The rows.
    n_observed : float
        As for the conditionals, a level with bias ``-inf`` gets the probability of half a row
        among so many rows, and the other levels of its column share the rest.  It says nothing
        about the other columns: these keep their joint distribution with that column left out.
        By default such a level has no probability.
    covariates : sequence of int
        Nodes that are given: the density is that of the others.  A level of theirs without rows
        says nothing.
    limit : int
        Most entries of the tables of one row.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=0, n_levels=(3,))
    >>> params.bias[2] = -np.inf
    >>> np.exp(log_likelihood(params, np.zeros((3, 0)), np.array([[0], [1], [2]]), 9.5))
    array([0.475, 0.475, 0.05 ])
    """
    known_numbers, known_discrete = params.nodes.places(covariates)
    params = _without_own_levels(params, known_discrete)

    def constant(
        rows: NDArray[np.integer] | slice, discrete: Sequence[int], x: Sequence[int]
    ) -> Floats:
        """Log weight of the known columns of some rows, the others summed out."""
        values = numbers[rows][:, list(x)], codes[rows][:, list(discrete)]
        return known_log_weight(params, x, discrete, *values, limit=limit)

    log_z: Floats | float
    if covariates:
        log_z = constant(slice(None), known_discrete, known_numbers)
    else:
        log_z = log_partition(params, limit=limit)
    unseen = np.isneginf(params.bias)
    if not unseen.any() or not np.isfinite(n_observed):
        return log_weight(params, numbers, codes) - log_z
    met = unseen[params.level_start[:-1] + codes]
    out = _shares(params, met, n_observed) - log_z
    for pattern in np.unique(met, axis=0):
        rows = np.flatnonzero((met == pattern).all(axis=1))
        if pattern.any():
            out[rows] += constant(rows, np.flatnonzero(~pattern).tolist(), range(params.n_gaussian))
        else:
            out[rows] += log_weight(params, numbers[rows], codes[rows])
    return out


def _without_own_levels(params: ConditionalGaussian, columns: Sequence[int]) -> ConditionalGaussian:
    """Zero biases of columns that are always known, so that levels without rows do no harm."""
    bias = params.bias.copy()
    for j in columns:
        bias[params.levels_of(j)] = 0.0
    return replace(params, bias=bias)


def _shares(params: ConditionalGaussian, met: NDArray[np.bool_], n_observed: float) -> Floats:
    """Log probability of being among the levels with rows, or of the one without."""
    out = np.zeros(len(met))
    unseen = np.isneginf(params.bias)
    for j in range(len(params.n_levels)):
        n_unseen = int(unseen[params.levels_of(j)].sum())
        if n_unseen:
            total = n_observed + 0.5 * n_unseen
            out += np.log(np.where(met[:, j], 0.5, n_observed) / total)
    return out


def mean_loss(
    params: ConditionalGaussian,
    numbers: Floats,
    codes: NDArray[np.integer],
    weights: Floats | None = None,
    n_observed: float = np.inf,
    covariates: Sequence[int] = (),
) -> float:
    """Weighted mean of the negative log likelihood of rows."""
    log_density = log_likelihood(params, numbers, codes, n_observed, covariates)
    return -float(np.average(log_density, weights=weights))
