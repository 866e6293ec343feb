"""A model -> rows of its joint distribution, and answers from Gibbs chains with their errors.

Only the states are sampled: given them, means and covariances of the numbers are known and
averaged.  Chains are independent of each other, so the spread of their
averages gives the standard error whatever the correlation within a chain.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import ParameterError, SamplingWarning, TooLargeError
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.exact import exact
from mixedgm.joint.field import gaussian
from mixedgm.joint.gibbs import Chains, Codes, Diagnostics, as_codes, chains, draw_numbers
from mixedgm.joint.kernels import add_level_rows
from mixedgm.joint.plan import LIMIT
from mixedgm.joint.spiked import ChainState, SpikedColumns, spiked_chains
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params

# Joint states times chains that a sampled marginal counts: 1 GiB with what is made of the counts.
_MOST_CELLS = 2**26


@dataclass(frozen=True)
class SamplingEffort:
    """How many chains, states kept of each, and sweeps before the first and between two."""

    n_chains: int = 64
    n_keep: int = 400
    burn_in: int = 500
    thin: int = 2

    def run(self, params: ConditionalGaussian | Params, rng: np.random.Generator) -> Chains:
        """Run the chains; warn when they have not mixed."""
        sizes = {"burn_in": self.burn_in, "thin": self.thin}
        sample = chains_of(params, self.n_chains, self.n_keep, rng=rng, **sizes)
        warn_unless_good(sample.diagnostics, isinstance(params, ConditionalGaussian))
        return sample


def chains_of(
    params: ConditionalGaussian | Params,
    n_chains: int,
    n_keep: int,
    *,
    rng: np.random.Generator,
    burn_in: int,
    thin: int,
) -> Chains:
    """Run the chains of a model, which is given by its parameters where it has spiked columns."""
    if isinstance(params, Params):
        return spiked_chains(params, n_chains, n_keep, rng=rng, burn_in=burn_in, thin=thin)
    return chains(params, n_chains, n_keep, rng=rng, burn_in=burn_in, thin=thin)


def _given_states(params: ConditionalGaussian | Params, run: Chains) -> tuple[Floats, Floats]:
    """(n, p) means of the numbers given the other columns of all states, and what is left open."""
    codes = run.codes.reshape(-1, run.codes.shape[2])
    if isinstance(params, Params):
        whole, p = SpikedColumns.of(params, KnownColumns.none()), len(params.diagonal)
        state = ChainState(run.numbers.reshape(len(codes), -1)[:, p:], codes.astype(np.int32))
        return whole.means(state), whole.covariance
    given_y = gaussian(params)
    means = np.tile(given_y.start, (len(codes), 1))
    add_level_rows(means, codes, params.level_start, given_y.shift)
    return means, given_y.covariance


def warn_unless_good(diagnostics: Diagnostics, can_be_exact: bool = True) -> None:
    """Warn when R-hat or the effective sample size is bad."""
    if not diagnostics.good:
        message = (
            f"the chains have not mixed well ({diagnostics}; worst: {{places}}), so what they give "
            "may be far from the distribution. To change it: more sweeps (burn_in= and thin= when "
            "rows are sampled)"
        )
        if can_be_exact:
            message += ", or method='exact' with a larger limit= where memory allows"
        warnings.warn(SamplingWarning(message, diagnostics.worst), stacklevel=4)


@dataclass(frozen=True, eq=False)
class SampledMargins:
    """Means of numbers and shares of levels by chains, with their standard errors."""

    means: Floats
    """(chains, p) means of the numbers by every chain."""
    variance: Floats
    """(p,) variances of the numbers."""
    shares: Floats
    """(chains, sum of levels)"""

    @property
    def mean(self) -> Floats:
        """(p,) means of the numbers."""
        return np.asarray(self.means.mean(axis=0))

    @property
    def mean_error(self) -> Floats:
        """(p,) standard errors of `mean`."""
        return _error(self.means)

    @property
    def share(self) -> Floats:
        """(sum of levels,) shares of the levels."""
        return np.asarray(self.shares.mean(axis=0))

    @property
    def share_error(self) -> Floats:
        """(sum of levels,) standard errors of `share`."""
        return _error(self.shares)

    def errors_of(self, values: Sequence[Floats]) -> Floats:
        """(q,) standard errors of the means of some number that every level has."""
        parts = np.split(self.shares, np.cumsum([len(each) for each in values])[:-1], axis=1)
        means = [part @ each for part, each in zip(parts, values, strict=True)]
        return _error(np.array(means).reshape(len(values), len(self.shares)).T)


def _error(by_chain: Floats) -> Floats:
    return np.asarray(by_chain.std(axis=0, ddof=1) / np.sqrt(len(by_chain)))


def sampled_margins(
    params: ConditionalGaussian | Params,
    *,
    rng: np.random.Generator,
    effort: SamplingEffort | None = None,
) -> SampledMargins:
    """Estimate means and shares of all columns one by one, without tables of pairs of levels.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=1, n_levels=(2, 3))
    >>> found = sampled_margins(params, rng=np.random.default_rng(0))
    >>> bool(np.all(np.abs(found.share[:2] - 0.5) < 4 * found.share_error[:2]))
    True
    """
    run = (effort or SamplingEffort()).run(params, rng)
    start = params.level_start
    levels = run.codes.astype(np.int64) + start[:-1]
    count = [np.bincount(one.ravel(), minlength=int(start[-1])) for one in levels.swapaxes(0, 1)]
    shares = np.array(count) / len(run.codes)
    means, within = _given_states(params, run)
    variance = means.var(axis=0) + np.diagonal(within)
    by_chain = means.reshape(*run.codes.shape[:2], -1).mean(axis=0)
    return SampledMargins(by_chain, variance, shares)


@dataclass(frozen=True, eq=False)
class StateMoments:
    """Probabilities of joint states, moments of k numbers in each, and standard errors."""

    prob: Floats
    prob_error: Floats
    """(states,)"""
    mean: Floats
    mean_error: Floats
    """(states, k), NaN in a state that was not drawn."""
    covariance: Floats
    """(states, k, k)"""
    note: str
    """How they were sampled; empty when exact."""


def sampled_states(
    params: ConditionalGaussian | Params,
    numbers: Sequence[int],
    discrete: Sequence[int],
    *,
    rng: np.random.Generator,
    effort: SamplingEffort | None = None,
) -> StateMoments:
    """Estimate the marginal of some numbers and states, by joint state."""
    shape = tuple(params.n_levels[j] for j in discrete)
    n_states, effort = prod(shape), effort or SamplingEffort()
    if n_states * effort.n_chains > _MOST_CELLS:
        raise TooLargeError(
            f"{{columns}} have {n_states:,} joint states, too many to be counted in every one of "
            f"{effort.n_chains} chains. To fix: ask for fewer columns at a time, or draw rows with "
            "sample and count them",
            tuple(params.nodes.discrete_nodes[list(discrete)].tolist()),
        )
    run = effort.run(params, rng)
    n_keep, n_chains = run.codes.shape[:2]
    codes = run.codes.reshape(n_keep * n_chains, -1)
    state = np.zeros(len(codes), dtype=np.int64)
    for j, n in zip(discrete, shape, strict=True):
        state = state * n + codes[:, j]
    cell = state * n_chains + np.tile(np.arange(n_chains), n_keep)
    count = np.bincount(cell, minlength=n_states * n_chains).reshape(n_states, n_chains)
    share = count / n_keep
    means, within = _given_states(params, run)
    mean, mean_error, spread = _moments(means[:, list(numbers)], state, cell, count)
    return StateMoments(
        share.mean(axis=1),
        share.std(axis=1, ddof=1) / np.sqrt(n_chains),
        mean,
        mean_error,
        spread + within[np.ix_(numbers, numbers)],
        f"sampled: {run.diagnostics}",
    )


def _moments(
    values: Floats, state: Ints, cell: Ints, count: NDArray[np.int64]
) -> tuple[Floats, Floats, Floats]:
    """Mean of the values in every state, its standard error, and their covariance.

    `cell` numbers the pairs (state, chain), and `count` (states, chains) has their sizes.
    """
    n_states, n_chains = count.shape
    k = values.shape[1]
    per_state = count.sum(axis=1).astype(np.float64)
    per_state[per_state == 0] = np.nan
    mean, error = np.empty((n_states, k)), np.empty((n_states, k))
    spread = np.empty((n_states, k, k))
    off = values.copy()
    for s in range(k):
        mean[:, s] = np.bincount(state, values[:, s], n_states) / per_state
        off[:, s] -= mean[state, s]
        # A ratio of two averages: its error is that of the chains' sums of residuals.
        sums = np.bincount(cell, off[:, s], n_states * n_chains).reshape(n_states, n_chains)
        scale = np.sqrt(n_chains / (n_chains - 1))
        error[:, s] = scale * np.sqrt((sums**2).sum(axis=1)) / per_state
        for t in range(s + 1):
            spread[:, s, t] = np.bincount(state, off[:, s] * off[:, t], n_states) / per_state
            spread[:, t, s] = spread[:, s, t]
    return mean, error, spread


# -- draws -----------------------------------------------------------------------------------------

Method = Literal["auto", "exact", "gibbs"]
T = TypeVar("T")

# Many chains are cheap, and their agreement is what shows convergence.
_CHAINS = 64
_FEWEST_KEPT = 100


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows drawn from the joint distribution: numbers (n, p) and level codes (n, q)."""

    numbers: Floats
    codes: Codes
    method: Literal["exact", "gibbs"]
    notes: tuple[str, ...] = ()
    """Notes on the rows: why they are not exact draws, how well the chains mixed."""
    diagnostics: Diagnostics | None = None
    """R-hat and effective sample sizes; None for exact draws."""


def draw(
    params: ConditionalGaussian | Params,
    n: int,
    *,
    rng: np.random.Generator,
    method: Method = "auto",
    limit: int = LIMIT,
    burn_in: int = 500,
    thin: int = 5,
) -> Draw:
    """Draw n rows of a model with a positive definite precision.

    Exact draws go through the clique tree of the states, then draw the numbers from their
    Gaussian.  Method "auto" takes Gibbs chains when all tables together have more entries than
    `limit`, or with spiked columns, where the model is given by its parameters: `burn_in` sweeps
    before the first kept state, `thin` from one to the next, and a SamplingWarning when R-hat
    exceeds 1.01 or the effective sample size is below 400.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=1, n_levels=(2, 3))
    >>> rows = draw(params, 4, rng=np.random.default_rng(0))
    >>> rows.numbers.shape, rows.codes.shape, rows.method
    ((4, 1), (4, 2), 'exact')
    """
    check_method(method)
    if n < 0:
        raise ParameterError.must_be("n", "an integer of at least 0", n)
    if isinstance(params, Params):
        refuse_exact(params, method)
    if method == "gibbs" or isinstance(params, Params):
        return _by_gibbs(params, n, rng, burn_in, thin, ())
    try:
        model = exact(params, limit=limit)
    except TooLargeError as error:
        if method == "exact":
            raise
        return _by_gibbs(params, n, rng, burn_in, thin, (f"not exact: {error}",))
    codes = as_codes(params, model.tree.draw(n, rng))
    return Draw(draw_numbers(model.given_y, params, codes, rng), codes, "exact")


def _by_gibbs(
    params: ConditionalGaussian | Params,
    n: int,
    rng: np.random.Generator,
    burn_in: int,
    thin: int,
    notes: tuple[str, ...],
) -> Draw:
    """Rows picked at random among the kept states of many chains."""
    n_keep = max(_FEWEST_KEPT, -(-n // _CHAINS))
    sample = chains_of(params, _CHAINS, n_keep, rng=rng, burn_in=burn_in, thin=thin)
    picked = rng.choice(n_keep * _CHAINS, n, replace=False)
    numbers = sample.numbers.reshape(n_keep * _CHAINS, -1)[picked]
    codes = sample.codes.reshape(n_keep * _CHAINS, -1)[picked]
    text = f"Gibbs: {_CHAINS} chains, {burn_in} sweeps of burn-in, every {thin}th sweep kept; "
    text += str(sample.diagnostics)
    warn_unless_good(sample.diagnostics, isinstance(params, ConditionalGaussian))
    return Draw(numbers, codes, "gibbs", (*notes, text), sample.diagnostics)


def check_method(method: str) -> None:
    """Raise ParameterError for a method that there is not."""
    if method not in ("auto", "exact", "gibbs"):
        raise ParameterError.must_be("method", "'auto', 'exact' or 'gibbs'", method)


def refuse_exact(params: Params, method: Method) -> None:
    """Say that a model with spiked columns has no exact answer, where one is asked for."""
    check_method(method)
    if method == "exact":
        _ = params.joint


def exact_if_possible(method: Method, compute: Callable[[], T]) -> T | None:
    """The exact answer; None where the method is to sample, because of the size or always."""
    if method == "gibbs":
        return None
    try:
        return compute()
    except TooLargeError:
        if method == "exact":
            raise
        return None
