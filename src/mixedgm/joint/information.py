"""A model and sets of columns -> entropy and mutual information, with their error if sampled.

A set of columns has a closed form when its numbers are Gaussian in every one of its joint states.
Otherwise they are a mixture, whose entropy has none: in one dimension it is
integrated numerically, to about 1e-8; in more, the mean of the exact log density over exact draws
is taken, and its standard error is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from scipy.special import entr, xlogy

from mixedgm.errors import ParameterError
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.effort import KNOWN_VALUES, begin_tables
from mixedgm.joint.exact import exact
from mixedgm.joint.field import gaussian
from mixedgm.joint.marginals import check_columns, hidden_columns, marginal
from mixedgm.joint.plan import LIMIT
from mixedgm.joint.posteriors import log_marginal
from mixedgm.joint.sampling import draw
from mixedgm.joint.tree import Tree
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.density import LOG_TWO_PI
from mixedgm.model.layout import Floats
from mixedgm.progress import quietly

# Table entries that one integral or one sampled density may visit: about a second.
_WORK = 2**27
_FEWEST, _MOST = 1_000, 20_000

# Points of the trapezoidal rule per standard deviation of a component of the mixture, and
# standard deviations on either side of the outermost ones.
_POINTS, _REACH = 8, 9


@dataclass(frozen=True)
class Columns:
    """A set of columns: positions of the numbers and of the states."""

    numbers: tuple[int, ...] = ()
    discrete: tuple[int, ...] = ()

    def __or__(self, other: Columns) -> Columns:
        """Return the columns that are in one set or the other."""
        return Columns(
            tuple(sorted({*self.numbers, *other.numbers})),
            tuple(sorted({*self.discrete, *other.discrete})),
        )


@dataclass(frozen=True)
class Estimate:
    """A number (entropies and information are in nats) and its standard error, 0 when exact."""

    value: float
    error: float = 0.0
    exact: bool = True
    """False when it was sampled."""

    def __float__(self) -> float:
        """Return the number."""
        return self.value


def entropy(
    params: ConditionalGaussian,
    columns: Columns | None = None,
    *,
    rng: np.random.Generator | None = None,
    limit: int = LIMIT,
) -> Estimate:
    """Entropy of a set of columns, by default all, differential in the numbers.

    Where there is no closed form, `rng` is used; `limit` is the most entries of all tables.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 4))
    >>> entropy(params, Columns(discrete=(1,)))
    Estimate(value=1.3862943611198906, error=0.0, exact=True)
    """
    everything = Columns(tuple(range(params.n_gaussian)), tuple(range(len(params.n_levels))))
    asked = everything if columns is None else columns
    check_columns(params, asked.numbers, asked.discrete)
    value = _closed_form(params, asked, limit)
    return Estimate(value) if value is not None else _sampled(params, [(asked, -1)], rng, limit)


def mutual_information(
    params: ConditionalGaussian,
    first: Columns,
    second: Columns,
    *,
    rng: np.random.Generator | None = None,
    limit: int = LIMIT,
) -> Estimate:
    """Mutual information of two sets without a common column, all others averaged out.

    Where there is no closed form, `rng` is used; `limit` is the most entries of all tables.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=2, n_levels=())
    >>> params.precision[:] = [[1.0, 0.6], [0.6, 1.0]]
    >>> found = mutual_information(params, Columns(numbers=(0,)), Columns(numbers=(1,)))
    >>> round(found.value, 6), found.exact
    (0.223144, True)
    """
    for side in (first, second):
        check_columns(params, side.numbers, side.discrete)
    if {*first.numbers} & {*second.numbers} or {*first.discrete} & {*second.discrete}:
        raise ParameterError("the two sets have a column in common.")
    parts = [(first, 1), (second, 1), (first | second, -1)]
    values = [_closed_form(params, columns, limit) for columns, _ in parts]
    if None not in values:
        total = sum(sign * value for value, (_, sign) in zip(values, parts, strict=True) if value)
        return Estimate(max(0.0, float(total)))
    # The density of the two together enters with +, those of each with -.
    return _sampled(params, [(columns, -sign) for columns, sign in parts], rng, limit)


def _closed_form(params: ConditionalGaussian, columns: Columns, limit: int) -> float | None:
    """Entropy of the set, or None when it must be sampled."""
    if set(hidden_columns(params, columns.numbers).tolist()) - set(columns.discrete):
        return _integral(params, columns, limit) if len(columns.numbers) == 1 else None
    inside = list(columns.numbers)
    covariance = gaussian(params).covariance[np.ix_(inside, inside)]
    if len(columns.discrete) == len(params.n_levels):
        discrete = _tree_entropy(exact(params, limit=limit).tree)
    else:
        whole = marginal(params, discrete=columns.discrete, method="exact", limit=limit)
        discrete = float(entr(whole.prob).sum())
    return discrete + _gaussian_entropy(covariance)


def _integral(params: ConditionalGaussian, columns: Columns, limit: int) -> float | None:
    """Entropy of one number with some states; None when too much work."""
    (s,) = columns.numbers
    given_y = gaussian(params)
    alive = np.where(np.isneginf(params.bias), np.nan, given_y.shift[:, s])
    moves = [alive[params.levels_of(j)] for j in range(len(params.n_levels))]
    spread = float(np.sqrt(given_y.covariance[s, s]))
    low = given_y.start[s] + sum(np.nanmin(move) for move in moves) - _REACH * spread
    high = given_y.start[s] + sum(np.nanmax(move) for move in moves) + _REACH * spread
    n_points = int(np.ceil((high - low) / spread * _POINTS))
    # The states of the set are taken out of the tables, so their number cancels.
    if n_points * exact(params, limit=limit).tree.plan.entries > _WORK:
        return None
    points = np.linspace(low, high, n_points)
    shape = [params.n_levels[j] for j in columns.discrete]
    n_states = prod(shape)
    states = np.indices(shape, dtype=np.int64).reshape(len(shape), n_states).T
    x, y = np.repeat(points, n_states)[:, None], np.tile(states, (n_points, 1))
    log_p = log_marginal(params, KnownColumns((s,), columns.discrete, x, y), limit=limit)
    density = np.exp(log_p)
    inner = np.where(density > 0, density * np.where(density > 0, log_p, 0.0), 0.0)
    return -float(inner.sum() * (points[1] - points[0]))


def _tree_entropy(tree: Tree) -> float:
    """Entropy of the states: every residual given its separator."""
    total = 0.0
    for table, given in zip(tree.cliques, tree.given, strict=True):
        total -= float(xlogy(table[0].ravel(), given[0].ravel()).sum())
    return total


def _gaussian_entropy(covariance: Floats) -> float:
    """Entropy of a Gaussian."""
    _, log_det = np.linalg.slogdet(covariance)
    return 0.5 * float(len(covariance) * (1.0 + LOG_TWO_PI) + log_det)


def _sampled(
    params: ConditionalGaussian,
    parts: Sequence[tuple[Columns, int]],
    rng: np.random.Generator | None,
    limit: int,
) -> Estimate:
    """Mean of a sum of signed log densities over exact draws.

    TooLargeError where the densities of all draws would take too long.
    """
    entries = exact(params, limit=limit).tree.plan.entries
    n = int(np.clip(_WORK // max(1, entries), _FEWEST, _MOST))
    begin_tables(n * len(parts), entries, limit, KNOWN_VALUES)
    rows = draw(params, n, rng=rng or np.random.default_rng(0), method="exact", limit=limit)
    total: Floats = np.zeros(n)
    with quietly():
        for columns, sign in parts:
            places = columns.numbers, columns.discrete
            known = KnownColumns.among(places, (rows.numbers, rows.codes))
            total += sign * log_marginal(params, known, limit=limit)
    return Estimate(float(total.mean()), float(total.std(ddof=1) / np.sqrt(n)), False)
