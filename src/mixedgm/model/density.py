"""Params and a block of encoded rows -> the conditional of every column given all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats
from mixedgm.model.moderation import Moderation
from mixedgm.model.params import Params

LOG_TWO_PI = float(np.log(2.0 * np.pi))
_FARTHEST = 1e300
_SPARSE = 0.02
"""Share of the coefficients that are not zero, below which products skip the others."""


@dataclass(frozen=True, eq=False)
class RowConditionals:
    """Conditionals of a block of rows.

    `mean` (n, p) and `variance` (p,) of the Gaussian nodes, then of spiked ones where they are not
    zero; `log_prob` (n, sum of levels) of the discrete ones, of a spiked one, zero or not.
    """

    mean: Floats
    variance: Floats
    log_prob: Floats


def conditionals(
    params: Params, numbers: Floats, codes: NDArray[np.integer], n_observed: float = np.inf
) -> RowConditionals:
    """Conditional of every column given all others.

    A level without training rows (bias ``-inf``) has no place in the fitted softmax; it gets the
    probability of half a row among `n_observed` rows, and the others share the rest.  A cell with a
    negative code says nothing about the other columns: it has no terms in their conditionals.

    Examples
    --------
    >>> from mixedgm.model.nodes import Nodes
    >>> params = Params.independent(Nodes.mixed(1, (2,)))
    >>> conditionals(params, np.array([[3.0]]), np.array([[0]])).mean
    array([[0.]])
    """
    linear = predictors(params, numbers, codes)
    nodes, variance = params.nodes, 1.0 / params.precisions
    mean = (linear[:, nodes.real_columns] + params.linear_terms) * variance
    if nodes.n_spiked:
        mean += nodes.locations
    # Levels by rows: reductions over a few neighbours in memory would be several times slower.
    log_prob = _logits(params, linear)
    for j in range(len(params.n_levels)):
        part = log_prob[params.levels_of(j)]
        part -= part.max(axis=0)
        part -= np.log(np.exp(part).sum(axis=0))
        share_with_unseen(part, params.bias_of(params.nodes.n_gaussian + j), n_observed)
    return RowConditionals(mean, variance, log_prob.T)


def predictors(params: Params, numbers: Floats, codes: NDArray[np.integer]) -> Floats:
    """(n, d) linear predictors of all design columns by the rest of each row, without own terms."""
    linear = _linear(params, params.coef, numbers, codes)
    if params.moderation is not None:
        _add_deviations(params, params.moderation, numbers, codes, linear)
    return linear


def _logits(params: Params, linear: Floats) -> Floats:
    """(sum of values, n) logits, up to a constant, from the predictors of all design columns."""
    nodes = params.nodes
    out = np.empty((int(nodes.level_start[-1]), len(linear)))
    first = int(nodes.level_start[nodes.first_indicator])
    out[first:] = linear[:, nodes.indicators].T
    for j in range(nodes.n_spiked, nodes.first_indicator):
        column = linear[:, nodes.column_start[nodes.n_gaussian + j]]
        np.multiply(nodes.scores[nodes.slots_of(j)][:, None], column, out=out[nodes.levels_of(j)])
    out[: 2 * nodes.n_spiked] = 0.0
    out += params.logits[:, None]
    for j, (first_term, column) in enumerate(zip(*nodes.spiked_terms, strict=True)):
        _, slope, precision = params.bias[first_term : first_term + 3]
        moved = linear[:, column + 1]
        out[2 * j + 1] += linear[:, column] + moved * (slope + 0.5 * moved) / precision
    return out


def share_with_unseen(log_prob: Floats, bias: Floats, n_observed: float) -> None:
    """Give levels without training rows half a row each, in place; `log_prob` is (levels, n)."""
    unseen = np.isneginf(bias)
    if unseen.any() and np.isfinite(n_observed):
        log_prob[~unseen] += np.log(n_observed / (n_observed + 0.5 * unseen.sum()))
        log_prob[unseen] = log_half_row(int(unseen.sum()), n_observed)


def log_half_row(n_unseen: int, n_observed: float) -> float:
    """Log probability of one of `n_unseen` levels that none of `n_observed` rows had."""
    return float(np.log(0.5 / (n_observed + 0.5 * n_unseen))) if n_observed < np.inf else -np.inf


def _linear(params: Params, coef: Floats, numbers: Floats, codes: NDArray[np.integer]) -> Floats:
    """(n, d) linear predictors of all design columns in every row, given coefficients."""
    nodes = params.nodes
    if coef is params.coef and len(params.places) < _SPARSE * coef.size:
        return _sparse_linear(params, numbers, codes)
    linear = nodes.numbers(numbers, codes) @ coef[nodes.numeric]
    first = nodes.column_start[:-1][nodes.discrete]
    for j in range(nodes.first_indicator, len(first)):
        start = first[j]
        terms = coef[start + np.maximum(codes[:, j], 0)]  # int64, whatever type codes have
        terms[codes[:, j] < 0] = 0.0
        linear += terms
    return np.asarray(linear)


def _sparse_linear(params: Params, numbers: Floats, codes: NDArray[np.integer]) -> Floats:
    """(n, d) predictions of `_linear` by a sparse product, for few nonzero coefficients."""
    from scipy import sparse

    at, d = params.places, len(params.coef)
    coef = sparse.csr_array((params.coef.ravel()[at], np.divmod(at, d)), shape=(d, d))
    return np.asarray((coef.T @ params.nodes.design_columns(numbers, codes).T).T)


def _add_deviations(
    params: Params,
    moderation: Moderation,
    numbers: Floats,
    codes: NDArray[np.integer],
    linear: Floats,
) -> None:
    """Add what every row's own deviations predict."""
    middle = moderation.middle
    for node, deviations in zip(moderation.nodes, moderation.deviations, strict=True):
        for level, deviation in enumerate(deviations):
            if not deviation.any():
                continue
            at = params.nodes.place(node)
            if params.nodes.numeric_nodes[node]:
                column = int(params.nodes.column_start[node]) + level
                seen = params.nodes.numbers(numbers, codes)[:, [column]]
                change = _linear(params, deviation, numbers, codes) - middle @ deviation
                linear += (seen - middle[column]) * change
            else:
                rows = np.flatnonzero(codes[:, at] == level)
                change = _linear(params, deviation, numbers[rows], codes[rows]) - middle @ deviation
                linear[rows] += change


def losses(
    params: Params, numbers: Floats, codes: NDArray[np.integer], n_observed: float = np.inf
) -> Floats:
    """(n, p + q) negative log conditional of every cell, constant included.

    A cell with a negative code has a level that is not among the model's.  It counts as half a row,
    as if the level had been declared.
    """
    given = conditionals(params, numbers, codes, n_observed)
    with np.errstate(over="ignore"):  # a value as far away as doubles go
        square = np.minimum(((numbers - given.mean) / np.sqrt(given.variance)) ** 2, _FARTHEST)
    gauss = 0.5 * (square + np.log(given.variance) + LOG_TWO_PI)
    p = params.nodes.n_gaussian
    rows = np.arange(len(codes))
    discrete = []
    for j in range(len(params.n_levels)):
        at = np.maximum(codes[:, j], 0).astype(np.intp)  # codes may be of one byte, their sum not
        loss = -given.log_prob[rows, params.levels_of(j).start + at]
        n_unseen = 1 + int(np.isneginf(params.bias_of(params.nodes.n_gaussian + j)).sum())
        loss[codes[:, j] < 0] = -log_half_row(n_unseen, n_observed)
        if j < params.nodes.n_spiked:
            loss += np.where(codes[:, j] > 0, gauss[:, p + j], 0.0)
        discrete.append(loss)
    return np.column_stack([gauss[:, :p], *discrete])
