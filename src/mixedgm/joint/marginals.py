"""A model and a set of columns -> their marginal: probabilities, and moments of x per state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from scipy.special import logsumexp

from mixedgm.errors import DistributionError, ParameterError, TooLargeError
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.exact import exact, renumbered
from mixedgm.joint.field import gaussian, integrate_out
from mixedgm.joint.plan import LIMIT
from mixedgm.joint.sampled import StateMoments, sampled_states
from mixedgm.joint.sampling import Method, check_method, exact_if_possible, refuse_exact
from mixedgm.joint.unknown_columns import UnknownColumns
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
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 3))
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
            tuple(params.nodes.n_gaussian + j for j in discrete),
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
    reduced, _ = integrate_out(params, np.setdiff1d(np.arange(params.n_gaussian), kept).tolist())
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
        hidden = params.n_gaussian - k + np.arange(params.n_gaussian + len(params.n_levels))
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
