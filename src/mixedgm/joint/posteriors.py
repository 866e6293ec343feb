"""Rows with the same columns known -> the distribution of their other columns, row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.exact import exact
from mixedgm.joint.kernels import add_level_rows
from mixedgm.joint.plan import LIMIT
from mixedgm.joint.sampling import Method, check_method, exact_if_possible, refuse_exact
from mixedgm.joint.spiked import SpikedColumns
from mixedgm.joint.unknown_columns import UnknownColumns
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params


@dataclass(frozen=True, eq=False)
class Posterior:
    """The unknown numbers and states of n rows."""

    numbers: Ints
    discrete: Ints
    """Positions of the unknown numbers and states."""
    mean: Floats
    """(n, p') means of the unknown numbers."""
    variance: Floats
    """(n, p') variances of the unknown numbers, including the spread of the unknown states."""
    levels: Floats
    """(n, sum of unknown levels) probabilities of the levels of the unknown states."""
    log_weight: Floats
    """(n,) log density of the known values, up to the log partition function of the whole model:
    subtract that to have the density.  NaN when sampled."""
    exact: bool
    """False when it was sampled."""
    levels_error: Floats
    """(n, sum of unknown levels) standard errors of the probabilities; zero when exact."""


def posterior(
    params: ConditionalGaussian | Params,
    known: KnownColumns,
    *,
    method: Method = "auto",
    rng: np.random.Generator | None = None,
    limit: int = LIMIT,
) -> Posterior:
    """Means, variances and level probabilities of the unknown columns of every row.

    The precision of the unknown numbers must be positive definite.  Method "auto" is exact when
    the tables of one row have at most `limit` entries, else sampled; `rng` is used when sampling,
    by default with a fixed seed.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 2))
    >>> params.shift[0] = [0.0, 4.0, 0.0, 0.0]
    >>> found = posterior(params, KnownColumns([], [1], np.zeros((1, 0)), np.array([[0]])))
    >>> found.mean.round(3), found.levels.round(2)
    (array([[3.999]]), array([[0., 1.]]))
    """
    check_method(method)
    if isinstance(params, Params):
        return _spiked_posterior(params, known, method, rng or np.random.default_rng(0))
    unknown = UnknownColumns.of(params, known)
    answer = exact_if_possible(method, lambda: _exact(unknown, limit))
    if answer is not None:
        return answer
    levels, error, spread = unknown.sample(rng or np.random.default_rng(0))
    return _posterior(unknown, levels, spread, np.full(len(levels), np.nan), error)


def _spiked_posterior(
    params: Params, known: KnownColumns, method: Method, rng: np.random.Generator
) -> Posterior:
    refuse_exact(params, method)
    unknown = SpikedColumns.of(params, known)
    mean, variance, levels, error = unknown.moments(rng)
    nodes = params.nodes
    given = nodes.nodes_at(known.numbers, known.discrete)
    places = nodes.places(np.setdiff1d(np.arange(len(nodes)), given))
    numbers, discrete = (np.array(part, dtype=np.int64) for part in places)
    weight = np.full(len(levels), np.nan)
    return Posterior(numbers, discrete, mean, variance, levels, weight, False, error)


def _exact(unknown: UnknownColumns, limit: int) -> Posterior:
    levels, log_z = np.empty(unknown.unary.shape), np.empty(len(unknown.unary))
    spread = np.zeros(unknown.start.shape)
    shift = unknown.given_y.shift
    for block, tree in unknown.trees(limit, pairs=spread.size > 0):
        levels[block], log_z[block] = tree.levels, tree.log_z
        if spread.size:
            spread[block] = tree.variance_of(shift)
    return _posterior(unknown, levels, spread, unknown.log_constant + log_z)


def _posterior(
    unknown: UnknownColumns,
    levels: Floats,
    spread: Floats,
    log_weight: Floats,
    levels_error: Floats | None = None,
) -> Posterior:
    """The result from level probabilities and the variance of E[x | y]; exact without errors."""
    return Posterior(
        unknown.numbers,
        unknown.discrete,
        unknown.start + levels @ unknown.given_y.shift,
        np.diagonal(unknown.given_y.covariance) + np.maximum(spread, 0.0),
        levels,
        log_weight,
        levels_error is None,
        np.zeros_like(levels) if levels_error is None else levels_error,
    )


def log_marginal(params: ConditionalGaussian, known: KnownColumns, *, limit: int = LIMIT) -> Floats:
    """(n,) log density of the known columns, the others integrated and summed out.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 4))
    >>> np.exp(log_marginal(params, KnownColumns([], [1], np.zeros((1, 0)), np.array([[3]]))))
    array([0.25])
    """
    log_weight = UnknownColumns.of(params, known).log_weight(limit)
    return np.asarray(log_weight - exact(params, limit=limit).log_partition)


def posterior_draw(
    params: ConditionalGaussian | Params,
    known: KnownColumns,
    *,
    rng: np.random.Generator,
    method: Method = "auto",
    sweeps: int = 200,
    limit: int = LIMIT,
) -> tuple[Floats, NDArray[np.int32]]:
    """One draw of the unknown numbers and codes of every row, in the order of their positions.

    Method "auto" is exact when the tables of one row have at most `limit` entries; else each row
    ends a Gibbs chain of `sweeps`.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 3))
    >>> known = KnownColumns([0], [0], np.zeros((5, 1)), np.zeros((5, 1), int))
    >>> x, y = posterior_draw(params, known, rng=np.random.default_rng(0))
    >>> x.shape, y.shape
    ((5, 0), (5, 1))
    """
    check_method(method)
    if isinstance(params, Params):
        refuse_exact(params, method)
        return SpikedColumns.of(params, known).draw(sweeps, rng)
    unknown = UnknownColumns.of(params, known)
    codes = exact_if_possible(method, lambda: unknown.draw_exactly(rng, limit))
    if codes is None:
        codes = unknown.draw_by_gibbs(sweeps, rng)
    values = rng.standard_normal(unknown.start.shape) @ unknown.given_y.factor.root
    values += unknown.start
    add_level_rows(values, codes, unknown.field.level_start, unknown.given_y.shift)
    return np.asarray(values), codes


def log_density_of(
    params: ConditionalGaussian | Params,
    number: int,
    values: Floats,
    known: KnownColumns,
    *,
    method: Method = "auto",
    rng: np.random.Generator | None = None,
    limit: int = LIMIT,
) -> tuple[Floats, bool]:
    """(n,) log density of an unknown number at `values`, and whether it is exact.

    All other unknown columns are integrated out; where states are unknown, it is a mixture of
    normal densities, which Gibbs chains average over.  `method`, `rng` and `limit` are as for
    `posterior`.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2,))
    >>> params.shift[0] = [-1.0, 1.0]
    >>> nothing = KnownColumns.none(2)
    >>> found, exact = log_density_of(params, 0, np.array([0.0, 1.0]), nothing)
    >>> np.exp(found).round(3), exact
    (array([0.242, 0.226]), True)
    """
    check_method(method)
    if isinstance(params, Params):
        refuse_exact(params, method)
        return _spiked_log_density(params, number, values, known, rng), False
    without = UnknownColumns.of(params, known, known_terms=False)
    at = int(np.flatnonzero(without.numbers == number)[0])

    def exactly() -> Floats:
        extended = KnownColumns(
            [*known.numbers, number],
            known.discrete,
            np.column_stack([known.values, values]),
            known.codes,
        )
        having = UnknownColumns.of(params, extended, known_terms=False)
        linear = without.linear[:, at] - 0.5 * params.precision[number, number] * values
        density = having.log_weight(limit) - without.log_weight(limit) + linear * values
        return np.asarray(density)

    density = exact_if_possible(method, exactly)
    if density is not None:
        return density, True
    return without.sample_log_density(at, values, rng or np.random.default_rng(0)), False


def _spiked_log_density(
    params: Params,
    number: int,
    values: Floats,
    known: KnownColumns,
    rng: np.random.Generator | None,
) -> Floats:
    given = params.nodes.nodes_at(known.numbers, known.discrete)
    at = number - int(np.searchsorted(given, number))
    unknown = SpikedColumns.of(params, known)
    return unknown.log_density(at, values, rng or np.random.default_rng(0))
