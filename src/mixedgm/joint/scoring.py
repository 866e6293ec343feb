"""A model and encoded rows -> their log likelihood, given covariates where there are some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.joint.conditioning import KnownColumns, log_weight
from mixedgm.joint.moments import log_partition
from mixedgm.joint.plan import LIMIT
from mixedgm.joint.unknown_columns import UnknownColumns
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

    As for the conditionals, a level with bias ``-inf`` gets the probability of half a row among
    `n_observed` rows, and the other levels of its column share the rest.  It says nothing about
    the other columns: these keep their joint distribution with that column left out.  By default
    such a level has no probability.

    Covariates are nodes that are given: the density is that of the others, whose precision must
    be positive definite.  A level of theirs without rows says nothing.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=0, n_levels=(3,))
    >>> params.bias[2] = -np.inf
    >>> np.exp(log_likelihood(params, np.zeros((3, 0)), np.array([[0], [1], [2]]), 9.5))
    array([0.475, 0.475, 0.05 ])
    """
    places = params.nodes.places(covariates)
    params = _without_own_levels(params, places[1])
    log_z: Floats | float
    if covariates:
        given = KnownColumns.among(places, (numbers, codes))
        log_z = UnknownColumns.of(params, given).log_weight(limit)
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
            seen = range(params.n_gaussian), np.flatnonzero(~pattern).tolist()
            given = KnownColumns.among(seen, (numbers[rows], codes[rows]))
            out[rows] += UnknownColumns.of(params, given).log_weight(limit)
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
