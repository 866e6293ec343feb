"""Params and a block of encoded rows -> the conditional of every column given all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats
from mixedgm.model.moderation import Moderation
from mixedgm.model.params import Params

LOG_TWO_PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class Conditionals:
    """Conditionals of a block of rows.

    `mean` (n, p) and `variance` (p,) of the continuous columns, `log_prob` (n, sum of levels) of
    the categorical ones.
    """

    mean: Floats
    variance: Floats
    log_prob: Floats


def conditionals(
    params: Params, cont: Floats, codes: NDArray[np.integer], n_observed: float = np.inf
) -> Conditionals:
    """Conditional of every column given all others.

    A level without training rows (bias ``-inf``) has no place in the fitted softmax; it gets the
    probability of half a row among `n_observed` rows, and the others share the rest.

    Examples
    --------
    >>> params = Params.independent(n_cont=1, n_levels=(2,))
    >>> conditionals(params, np.array([[3.0]]), np.array([[0]])).mean
    array([[0.]])
    """
    p = params.n_cont
    linear = _linear(params, params.coef, cont, codes)
    if params.moderation is not None:
        _add_deviations(params, params.moderation, cont, codes, linear)
    diagonal = np.diagonal(params.precision)
    mean = (linear[:, :p] + params.cont_bias) / diagonal
    # Levels by rows: reductions over a few neighbours in memory would be several times slower.
    log_prob = np.ascontiguousarray(linear[:, p:].T)
    log_prob += params.cat_bias[:, np.newaxis]
    for j in range(len(params.n_levels)):
        part = log_prob[params.levels_of(j)]
        part -= part.max(axis=0)
        part -= np.log(np.exp(part).sum(axis=0))
        unseen = np.isneginf(params.cat_bias[params.levels_of(j)])
        if unseen.any() and np.isfinite(n_observed):
            total = n_observed + 0.5 * unseen.sum()
            part[~unseen] += np.log(n_observed / total)
            part[unseen] = np.log(0.5 / total)
    return Conditionals(mean, 1.0 / diagonal, log_prob.T)


def _linear(params: Params, coef: Floats, cont: Floats, codes: NDArray[np.integer]) -> Floats:
    """(n, d) what the design columns of every row predict."""
    p, start = params.n_cont, params.level_start
    linear = cont @ coef[:p]
    for j in range(len(params.n_levels)):
        linear += coef[p + start[j] + codes[:, j]]
    return np.asarray(linear)


def _add_deviations(
    params: Params,
    moderation: Moderation,
    cont: Floats,
    codes: NDArray[np.integer],
    linear: Floats,
) -> None:
    """Add what every row's own deviations predict."""
    p, middle = params.n_cont, moderation.middle
    for node, deviations in zip(moderation.nodes, moderation.deviations, strict=True):
        for level, deviation in enumerate(deviations):
            if not deviation.any():
                continue
            if node < p:
                change = _linear(params, deviation, cont, codes) - middle @ deviation
                linear += (cont[:, [node]] - middle[node]) * change
            else:
                rows = np.flatnonzero(codes[:, node - p] == level)
                change = _linear(params, deviation, cont[rows], codes[rows]) - middle @ deviation
                linear[rows] += change


def losses(
    params: Params, cont: Floats, codes: NDArray[np.integer], n_observed: float = np.inf
) -> Floats:
    """(n, p + q) negative log conditional of every cell, constant included."""
    found = conditionals(params, cont, codes, n_observed)
    gauss = 0.5 * ((cont - found.mean) ** 2 / found.variance + np.log(found.variance) + LOG_TWO_PI)
    rows = np.arange(len(codes))
    discrete = [
        -found.log_prob[rows, params.level_start[j] + codes[:, j]]
        for j in range(len(params.n_levels))
    ]
    return np.column_stack([gauss, *discrete])
