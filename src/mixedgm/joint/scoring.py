"""Params and encoded rows -> their mean negative log likelihood, levels without rows included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixedgm.joint.moments import log_density, log_partition
from mixedgm.joint.posteriors import posterior
from mixedgm.model.layout import Floats
from mixedgm.model.params import Params


def log_likelihood(
    params: Params, cont: Floats, codes: NDArray[np.integer], n_observed: float = np.inf
) -> Floats:
    """(n,) joint log density of rows, some of which may have levels that no training row had.

    As for the conditionals, a level with bias ``-inf`` gets the probability of half a row among
    `n_observed` rows, and the other levels of its column share the rest.  It says nothing about
    the other columns: these keep their joint distribution with that column left out.

    Examples
    --------
    >>> params = Params.independent(n_cont=0, n_levels=(3,))
    >>> params.cat_bias[2] = -np.inf
    >>> np.exp(log_likelihood(params, np.zeros((3, 0)), np.array([[0], [1], [2]]), 9.5))
    array([0.475, 0.475, 0.05 ])
    """
    unseen = np.isneginf(params.cat_bias)
    log_z = log_partition(params)
    if not unseen.any() or not np.isfinite(n_observed):
        return log_density(params, cont, codes, log_z=log_z)
    out = np.zeros(len(codes))
    met = unseen[params.level_start[:-1] + codes]
    for j in range(len(params.n_levels)):
        n_unseen = int(unseen[params.levels_of(j)].sum())
        if n_unseen:
            total = n_observed + 0.5 * n_unseen
            out += np.log(np.where(met[:, j], 0.5, n_observed) / total)
    for pattern in np.unique(met, axis=0):
        rows = np.flatnonzero((met == pattern).all(axis=1))
        known = np.flatnonzero(~pattern)
        if not pattern.any():
            out[rows] += log_density(params, cont[rows], codes[rows], log_z=log_z)
            continue
        every = range(params.n_cont)
        found = posterior(
            params, every, known.tolist(), cont[rows], codes[np.ix_(rows, known)], method="exact"
        )
        out[rows] += found.log_weight - log_z
    return out


def mean_loss(
    params: Params,
    cont: Floats,
    codes: NDArray[np.integer],
    weights: Floats | None = None,
    n_observed: float = np.inf,
) -> float:
    """Weighted mean of the negative log likelihood of rows."""
    return -float(np.average(log_likelihood(params, cont, codes, n_observed), weights=weights))
