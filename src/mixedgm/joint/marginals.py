"""A model and sets of columns -> their marginals, entropy and mutual information.

A model and sets of columns -> entropy and mutual information, with their error if sampled.

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
from scipy.special import entr, logsumexp, xlogy

from mixedgm.base.errors import DistributionError, ParameterError, TooLargeError
from mixedgm.base.progress import quietly
from mixedgm.families.gaussian import LOG_TWO_PI
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.exact import exact, renumbered
from mixedgm.joint.field import gaussian, integrate_out
from mixedgm.joint.plan import KNOWN_VALUES, LIMIT, begin_tables
from mixedgm.joint.posteriors import UnknownColumns, log_marginal
from mixedgm.joint.sampled import (
    Method,
    StateMoments,
    check_method,
    draw,
    exact_if_possible,
    refuse_exact,
    sampled_states,
)
from mixedgm.joint.tree import Tree
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params


@dataclass(frozen=True, eq=False)
class Marginal:
    """Distribution of k numbers and some states, the others integrated and summed out."""

    numbers: tuple[int, ...]
    discrete: tuple[int, ...]
    """Positions of the numbers and of the states, as asked for."""
    prob: Floats
    """(levels...) probability of every joint state; a scalar array 1 without states."""
    mean: Floats
    """(levels..., k) mean of the numbers in every state; NaN in one that cannot occur."""
    covariance: Floats
    """(levels..., k, k) covariance of the numbers in every state."""
    gaussian: bool
    """True when the numbers are Gaussian in every state.  Otherwise they are a mixture over
    states outside, with these moments."""
    exact: bool
    """False when it was sampled."""
    prob_error: Floats
    mean_error: Floats
    """Standard errors, of the shapes of `prob` and `mean`; zero when exact."""
    note: str = ""
    """How it was sampled; empty when exact."""


def marginal(
    params: ConditionalGaussian | Params,
    numbers: Sequence[int] = (),
    discrete: Sequence[int] = (),
    *,
    method: Method = "auto",
    rng: np.random.Generator | None = None,
    limit: int = LIMIT,
) -> Marginal:
    """Marginal of the numbers and states at these positions.

    Method "auto" is exact when all tables together have at most `limit` entries, else sampled with
    `rng`, by default with a fixed seed.  TooLargeError when the table asked for, or with
    method="exact" one on the way, exceeds the limit.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=1, n_levels=(2, 3))
    >>> params.shift[0, 1] = 1.0
    >>> found = marginal(params, numbers=[0], discrete=[0])
    >>> found.prob.round(3), found.mean.ravel(), found.gaussian
    (array([0.378, 0.622]), array([0., 1.]), True)
    """
    check_method(method)
    check_columns(params, numbers, discrete)
    shape = tuple(params.n_levels[j] for j in discrete)
    if prod(shape) > limit:
        raise TooLargeError(
            f"a table over {{columns}} has {prod(shape):.3g} entries, more than the limit of "
            f"{limit:,}. To fix: ask for fewer columns at a time, or raise limit=",
            tuple(params.nodes.discrete_nodes[list(discrete)].tolist()),
        )
    states = None
    if isinstance(params, Params):
        refuse_exact(params, method)
    else:
        density = params
        states = exact_if_possible(method, lambda: _exact_states(density, numbers, discrete, limit))
    if states is None:
        states = sampled_states(params, numbers, discrete, rng=rng or np.random.default_rng(0))
    hidden = set(_mixed_over(params, numbers).tolist()) - set(discrete)
    k = len(numbers)
    return Marginal(
        tuple(numbers),
        tuple(discrete),
        states.prob.reshape(shape),
        states.mean.reshape(*shape, k),
        states.covariance.reshape(*shape, k, k),
        not hidden,
        not states.note,
        states.prob_error.reshape(shape),
        states.mean_error.reshape(*shape, k),
        states.note,
    )


def _exact_states(
    params: ConditionalGaussian, numbers: Sequence[int], discrete: Sequence[int], limit: int
) -> StateMoments:
    params.require_pairs()
    if len(numbers) == 0:
        prob = _probabilities(params, discrete, limit)
        mean, covariance = np.zeros((prob.size, 0)), np.zeros((prob.size, 0, 0))
    else:
        prob, mean, covariance = _per_state(params, numbers, discrete, limit)
    return StateMoments(
        prob, np.zeros_like(prob), mean, np.where(np.isnan(mean), np.nan, 0.0), covariance, ""
    )


def _probabilities(params: ConditionalGaussian, discrete: Sequence[int], limit: int) -> Floats:
    """Table of some states."""
    try:
        return np.asarray(exact(params, together=discrete, limit=limit).tree.table(discrete)[0])
    except TooLargeError:
        # One table for all may not fit where one state at a time does.
        prob, _, _ = _per_state(params, (), discrete, limit)
        return prob.reshape([params.n_levels[j] for j in discrete])


def _per_state(
    params: ConditionalGaussian, numbers: Sequence[int], discrete: Sequence[int], limit: int
) -> tuple[Floats, Floats, Floats]:
    """Probability, mean and covariance in every joint state of these."""
    kept = np.asarray(sorted(numbers), dtype=np.int64)
    gaussian(params)  # the whole model must be valid, not only what is left of it
    reduced, _ = integrate_out(params, np.setdiff1d(np.arange(params.n_numbers), kept).tolist())
    n_states = prod(params.n_levels[j] for j in discrete)
    grid = np.indices([params.n_levels[j] for j in discrete], dtype=np.int64)
    codes = np.ascontiguousarray(grid.reshape(len(discrete), n_states).T)
    known = KnownColumns((), discrete, np.zeros((n_states, 0)), codes)
    rest = UnknownColumns.of(reduced, known)
    shift, k = rest.given_y.shift, len(kept)
    log_weight, mean = rest.log_constant.copy(), rest.start.copy()
    covariance = np.empty((n_states, k, k))
    try:
        for block, tree in rest.trees(limit, pairs=k > 0):
            log_weight[block] += tree.log_z
            mean[block] += tree.levels @ shift
            if k:
                covariance[block] = tree.covariance_of(shift)
    except DistributionError as error:
        hidden = params.n_numbers - k + np.arange(params.n_numbers + len(params.n_levels))
        raise renumbered(error, hidden) from None
    covariance += rest.given_y.covariance
    prob = np.exp(log_weight - logsumexp(log_weight))
    mean[prob == 0], covariance[prob == 0] = np.nan, np.nan
    asked = np.searchsorted(kept, numbers)
    return prob, mean[:, asked], covariance[:, asked[:, None], asked]


def _mixed_over(params: ConditionalGaussian | Params, numbers: Sequence[int]) -> Ints:
    """States over which these numbers are a mixture of Gaussians; at least as many as are."""
    if isinstance(params, ConditionalGaussian):
        return hidden_columns(params, numbers)
    return np.arange(len(params.n_levels) if len(numbers) else 0)


def hidden_columns(params: ConditionalGaussian, numbers: Sequence[int]) -> Ints:
    """States on which the mean of these numbers depends."""
    shift = gaussian(params).shift[:, list(numbers)]
    dead = np.isneginf(params.bias)
    moves = []
    for j in range(len(params.n_levels)):
        alive = shift[params.levels_of(j)][~dead[params.levels_of(j)]]
        moves.append(bool((alive != alive[:1]).any()))
    return np.flatnonzero(moves)


def check_columns(
    params: ConditionalGaussian | Params, numbers: Sequence[int], discrete: Sequence[int]
) -> None:
    """Raise ParameterError for a column that there is not, or that is named twice."""
    for kind, asked, n in (
        ("number", numbers, params.nodes.n_real),
        ("state", discrete, len(params.n_levels)),
    ):
        for column in asked:
            if not 0 <= column < n:
                raise ParameterError(f"{kind} {column} does not exist; there are {n}.")
        if len(set(asked)) < len(asked):
            raise ParameterError(f"a {kind} is named twice: {list(asked)}.")


# -- entropy and information -----------------------------------------------------------------------

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
    >>> params = ConditionalGaussian.independent(n_numbers=1, n_levels=(2, 4))
    >>> entropy(params, Columns(discrete=(1,)))
    Estimate(value=1.3862943611198906, error=0.0, exact=True)
    """
    everything = Columns(tuple(range(params.n_numbers)), tuple(range(len(params.n_levels))))
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
    >>> params = ConditionalGaussian.independent(n_numbers=2, n_levels=())
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
