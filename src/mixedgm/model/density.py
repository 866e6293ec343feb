"""Params and a block of encoded rows -> the conditional of every column given all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats
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
    start = params.level_start
    coef = params.coef
    linear = cont @ coef[:p]
    for j in range(len(params.n_levels)):
        linear += coef[p + start[j] + codes[:, j]]
    diagonal = np.diagonal(params.precision)
    mean = (linear[:, :p] + params.cont_bias) / diagonal
    log_prob = linear[:, p:] + params.cat_bias
    for j in range(len(params.n_levels)):
        part = log_prob[:, params.levels_of(j)]
        part -= part.max(axis=1, keepdims=True)
        part -= np.log(np.exp(part).sum(axis=1, keepdims=True))
        unseen = np.isneginf(params.cat_bias[params.levels_of(j)])
        if unseen.any() and np.isfinite(n_observed):
            total = n_observed + 0.5 * unseen.sum()
            part[:, ~unseen] += np.log(n_observed / total)
            part[:, unseen] = np.log(0.5 / total)
    return Conditionals(mean, 1.0 / diagonal, log_prob)


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
