"""Rows with the same columns known -> the distribution of their other columns, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import TooLargeError
from mixedgm.joint.conditioning import given_rows
from mixedgm.joint.exact import exact
from mixedgm.joint.kernels import add_level_rows
from mixedgm.joint.plan import LIMIT
from mixedgm.joint.sampling import Method, check_method
from mixedgm.joint.unknown_columns import Rest
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints


@dataclass(frozen=True, eq=False)
class Posterior:
    """The unknown columns of n rows.

    Parameters
    ----------
    numbers, discrete : ndarray
        Positions of the unknown continuous and categorical columns.
    mean : ndarray (n, p')
        Means of the unknown continuous columns.
    variance : ndarray (n, p')
        Their variances; the spread of the unknown categorical columns is in them.
    levels : ndarray (n, sum of unknown levels)
        Probabilities of the levels of the unknown categorical columns.
    log_weight : ndarray (n,)
        Log density of the known values, up to the log partition function of the whole model:
        subtract that to have the density.  NaN when sampled.
    exact : bool
        False when it was sampled.
    levels_error : ndarray (n, sum of unknown levels)
        Standard errors of the probabilities; zero when exact.
    """

    numbers: Ints
    discrete: Ints
    mean: Floats
    variance: Floats
    levels: Floats
    log_weight: Floats
    exact: bool
    levels_error: Floats


def posterior(
    params: ConditionalGaussian,
    known_numbers: Sequence[int],
    known_discrete: Sequence[int],
    numbers: Floats,
    codes: NDArray[np.integer],
    *,
    method: Method = "auto",
    rng: np.random.Generator | None = None,
    limit: int = LIMIT,
) -> Posterior:
    """Means, variances and level probabilities of the unknown columns of every row.

    Parameters
    ----------
    params : ConditionalGaussian
        The whole model; the precision of the unknown columns must be positive definite.
    known_numbers, known_discrete : sequence of int
        Positions of the known columns.
    numbers, codes : ndarray
        Their values and level codes, (n, number of known columns of that kind).
    method : {"auto", "exact", "gibbs"}
        "auto" is exact when the tables fit the limit, else sampled.
    rng : numpy.random.Generator, optional
        Used when sampling; by default a generator with a fixed seed.
    limit : int
        Most entries of the tables of one row.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 2))
    >>> params.shift[0] = [0.0, 4.0, 0.0, 0.0]
    >>> found = posterior(params, [], [1], np.zeros((1, 0)), np.array([[0]]))
    >>> found.mean.round(3), found.levels.round(2)
    (array([[3.999]]), array([[0., 1.]]))
    """
    check_method(method)
    rest = Rest.of(given_rows(params, known_numbers, known_discrete, numbers, codes))
    if method != "gibbs":
        try:
            return _exact(rest, params, limit)
        except TooLargeError:
            if method == "exact":
                raise
    levels, error, spread = rest.sample(rng or np.random.default_rng(0))
    return _posterior(rest, levels, spread, np.full(len(levels), np.nan), error, exact=False)


def _exact(rest: Rest, params: ConditionalGaussian, limit: int) -> Posterior:
    levels, log_z = np.empty(rest.unary.shape), np.empty(len(rest.unary))
    spread = np.zeros(rest.start.shape)
    shift = rest.given_y.shift
    for block, tree in rest.trees(params, limit):
        levels[block], log_z[block] = tree.levels, tree.log_z
        if spread.size:
            spread[block] = ((tree.level_covariance @ shift) * shift).sum(axis=1)
    log_weight = rest.log_constant + log_z
    return _posterior(rest, levels, spread, log_weight, np.zeros_like(levels), exact=True)


def _posterior(
    rest: Rest,
    levels: Floats,
    spread: Floats,
    log_weight: Floats,
    levels_error: Floats,
    *,
    exact: bool,
) -> Posterior:
    """The result from level probabilities and the variance of E[x | y]."""
    return Posterior(
        rest.given.numbers,
        rest.given.discrete,
        rest.start + levels @ rest.given_y.shift,
        np.diagonal(rest.given_y.covariance) + np.maximum(spread, 0.0),
        levels,
        log_weight,
        exact,
        levels_error,
    )


def log_marginal(
    params: ConditionalGaussian,
    known_numbers: Sequence[int],
    known_discrete: Sequence[int],
    numbers: Floats,
    codes: NDArray[np.integer],
    *,
    limit: int = LIMIT,
) -> Floats:
    """(n,) log density of some columns of every row, the others integrated and summed out.

    Parameters
    ----------
    params : ConditionalGaussian
        The whole model.
    known_numbers, known_discrete : sequence of int
        Positions of the columns whose density is wanted.
    numbers, codes : ndarray
        Their values and level codes, (n, number of columns of that kind).
    limit : int
        Most entries of the tables of one row.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 4))
    >>> np.exp(log_marginal(params, [], [1], np.zeros((1, 0)), np.array([[3]])))
    array([0.25])
    """
    known = known_log_weight(params, known_numbers, known_discrete, numbers, codes, limit=limit)
    return np.asarray(known - exact(params, limit=limit).log_partition)


def known_log_weight(
    params: ConditionalGaussian,
    known_numbers: Sequence[int],
    known_discrete: Sequence[int],
    numbers: Floats,
    codes: NDArray[np.integer],
    *,
    limit: int = LIMIT,
) -> Floats:
    """(n,) `log_marginal` plus the log partition function, which this does not need.

    Only the precision of the unknown columns must be positive definite.
    """
    rest = Rest.of(given_rows(params, known_numbers, known_discrete, numbers, codes))
    out = rest.log_constant.copy()
    for block, tree in rest.trees(params, limit):
        out[block] += tree.log_z
    return out


def posterior_draw(
    params: ConditionalGaussian,
    known_numbers: Sequence[int],
    known_discrete: Sequence[int],
    numbers: Floats,
    codes: NDArray[np.integer],
    *,
    rng: np.random.Generator,
    method: Method = "auto",
    sweeps: int = 200,
    limit: int = LIMIT,
) -> tuple[Floats, NDArray[np.int32]]:
    """One draw of the unknown columns of every row.

    Parameters
    ----------
    params, known_numbers, known_discrete, numbers, codes
        As for `posterior`.
    rng : numpy.random.Generator
        Source of randomness.
    method : {"auto", "exact", "gibbs"}
        "auto" is exact when the tables fit the limit, else each row ends a Gibbs chain.
    sweeps : int
        Length of a Gibbs chain.
    limit : int
        Most entries of the tables of one row.

    Returns
    -------
    numbers : ndarray (n, number of unknown continuous columns)
        Drawn values.
    codes : ndarray (n, number of unknown categorical columns)
        Drawn level codes.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 3))
    >>> rng = np.random.default_rng(0)
    >>> x, y = posterior_draw(params, [0], [0], np.zeros((5, 1)), np.zeros((5, 1), int), rng=rng)
    >>> x.shape, y.shape
    ((5, 0), (5, 1))
    """
    check_method(method)
    rest = Rest.of(given_rows(params, known_numbers, known_discrete, numbers, codes))
    drawn = _draw_codes(rest, params, rng, method, sweeps, limit)
    values = rng.standard_normal(rest.start.shape) @ rest.given_y.factor.root + rest.start
    add_level_rows(values, drawn, rest.given.model.level_start, rest.given_y.shift)
    return np.asarray(values), drawn


def _draw_codes(
    rest: Rest,
    params: ConditionalGaussian,
    rng: np.random.Generator,
    method: Method,
    sweeps: int,
    limit: int,
) -> NDArray[np.int32]:
    if method != "gibbs":
        drawn = np.empty((len(rest.unary), len(rest.given.discrete)), dtype=np.int32)
        try:
            for block, tree in rest.trees(params, limit):
                drawn[block] = tree.draw(block.stop - block.start, rng)
        except TooLargeError:
            if method == "exact":
                raise
        else:
            return drawn
    return rest.draw_by_gibbs(sweeps, rng)


def log_density_of(
    params: ConditionalGaussian,
    node: int,
    values: Floats,
    known_numbers: Sequence[int],
    known_discrete: Sequence[int],
    numbers: Floats,
    codes: NDArray[np.integer],
    *,
    method: Method = "auto",
    rng: np.random.Generator | None = None,
    limit: int = LIMIT,
) -> tuple[Floats, bool]:
    """Log density of a continuous column given the known ones, all others integrated out.

    Where categorical columns are unknown, it is a mixture of normal densities.

    Parameters
    ----------
    params : ConditionalGaussian
        The whole model; the precision of the columns that are not known must be positive definite.
    node : int
        The continuous column, which is not among the known ones.
    values : ndarray (n,)
        Its values.
    known_numbers, known_discrete, numbers, codes, method, rng, limit
        As for `posterior`.

    Returns
    -------
    ndarray (n,)
        The log densities.
    bool
        False when they were averaged over Gibbs chains.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2,))
    >>> params.shift[0] = [-1.0, 1.0]
    >>> nothing = np.zeros((2, 0)), np.zeros((2, 0), int)
    >>> found, exact = log_density_of(params, 0, np.array([0.0, 1.0]), [], [], *nothing)
    >>> np.exp(found).round(3), exact
    (array([0.242, 0.226]), True)
    """
    check_method(method)
    without = _rest(params, known_numbers, known_discrete, numbers, codes)
    at = int(np.flatnonzero(without.given.numbers == node)[0])
    if method != "gibbs":
        extended = np.column_stack([numbers, values])
        with_value = _rest(params, [*known_numbers, node], known_discrete, extended, codes)
        try:
            density = _log_weight(with_value, params, limit) - _log_weight(without, params, limit)
        except TooLargeError:
            if method == "exact":
                raise
        else:
            linear = without.given.linear[:, at] - 0.5 * params.precision[node, node] * values
            return density + linear * values, True
    return without.sample_log_density(at, values, rng or np.random.default_rng(0)), False


def _rest(
    params: ConditionalGaussian,
    known_numbers: Sequence[int],
    known_discrete: Sequence[int],
    numbers: Floats,
    codes: NDArray[np.integer],
) -> Rest:
    """The unknown columns; what the known ones say about each other is left out."""
    given = given_rows(params, known_numbers, known_discrete, numbers, codes)
    return Rest.of(replace(given, log_constant=np.zeros(len(given.log_constant))))


def _log_weight(rest: Rest, params: ConditionalGaussian, limit: int) -> Floats:
    out = rest.log_constant.copy()
    for block, tree in rest.trees(params, limit):
        out[block] += tree.log_z
    return out
