"""A model and a seed -> draws of many Gibbs chains, expectations by batches, and R-hat.

The numbers x are integrated out first, so the chains walk over the states y only and x is drawn at
the end, in one piece, from its Gaussian given y.  That mixes at least as well as drawing x in every
sweep, and costs less.

Gibbs chains over the discrete columns -> expectations under a model, by batches of chains.

For fields that are too large to eliminate.  Only the discrete columns are sampled; given them,
the moments of the Gaussian ones are known.  The chains persist: a small change of the parameters
moves them little, so few sweeps bring them up to date.  They are independent of each other, and
the spread between batches of them is the error, whatever the correlation along a chain.

Kept states of many chains -> R-hat and effective sample size of every number and level.

Each chain is cut in two halves.  R-hat is the plain split form, the square root of the ratio of
the variance of all halves pooled to the mean variance within a half; ranks are not needed, since
the quantities are Gaussian mixtures and indicators, which have no heavy tails.  The effective
sample size sums the autocorrelations of the halves up to where the sums of neighbouring pairs
stop being positive and decreasing (Geyer 1992; Gelman et al., Bayesian Data Analysis, 2013).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from mixedgm.base.errors import DistributionError
from mixedgm.base.progress import track
from mixedgm.joint.exact import moments_from
from mixedgm.joint.field import Gaussian, gaussian, integrate_out
from mixedgm.joint.kernels import add_level_rows, count_pairs, gibbs_sweep, scored_sweep
from mixedgm.joint.plan import FEWER_SWEEPS, begin_chains
from mixedgm.joint.validity import allowed_levels
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes

Codes = NDArray[np.uint8 | np.uint16 | np.int32]


def draw(
    params: ConditionalGaussian, n: int, *, rng: np.random.Generator, sweeps: int = 200
) -> tuple[Floats, Codes]:
    """Draw numbers (n, p) and level codes (n, q), each row the end of a Gibbs chain of its own.

    Every state is redrawn `sweeps` times before the chain ends; without states the draws are
    exact.  A level with bias ``-inf`` never appears.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=1, n_levels=(2, 3))
    >>> numbers, codes = draw(params, 5, rng=np.random.default_rng(0), sweeps=10)
    >>> numbers.shape, codes.shape
    ((5, 1), (5, 2))
    """
    given_y = gaussian(params)
    field, _ = integrate_out(params, range(params.n_numbers))
    codes = random_start(params, n, rng)
    begin_chains(params.n_levels, n, sweeps, by_scores=params.seen is not None)
    sweep(field, codes, sweeps, rng)
    return draw_numbers(given_y, params, codes, rng), codes


@dataclass(frozen=True, eq=False)
class Chains:
    """Kept `numbers` (n_keep, n_chains, p) and `codes` (n_keep, n_chains, q) of many chains."""

    numbers: Floats
    codes: Codes
    diagnostics: Diagnostics


def chains(
    params: ConditionalGaussian,
    n_chains: int,
    n_keep: int,
    *,
    rng: np.random.Generator,
    burn_in: int = 200,
    thin: int = 1,
) -> Chains:
    """Run Gibbs chains side by side and keep several states of each.

    There are `burn_in` sweeps before the first kept state, and `thin` from one to the next.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=1, n_levels=(2, 3))
    >>> found = chains(params, 8, 50, rng=np.random.default_rng(0), burn_in=10)
    >>> found.codes.shape, found.diagnostics.good
    ((50, 8, 2), False)
    >>> print(found.diagnostics)
    R-hat at most 1.005, effective sample size at least 322 of 400
    """
    given_y = gaussian(params)
    field, _ = integrate_out(params, range(params.n_numbers))
    state = random_start(params, n_chains, rng)
    n_sweeps, by_scores = burn_in + thin * n_keep, params.seen is not None
    size = params.n_levels, n_chains, n_sweeps
    seconds = begin_chains(*size, FEWER_SWEEPS, by_scores=by_scores)
    runs = runs_of(field) if state.size else None
    sweep(field, state, max(0, burn_in - thin), rng, runs=runs)
    codes = np.empty((n_keep, *state.shape), dtype=state.dtype)
    for kept in track(codes, what="Gibbs chains", seconds=seconds):
        sweep(field, state, thin, rng, runs=runs)
        kept[:] = state
    flat = codes.reshape(n_keep * n_chains, -1)
    numbers = draw_numbers(given_y, params, flat, rng).reshape(n_keep, n_chains, -1)
    states = Nodes.mixed(0, params.n_levels) if params.seen is None else params.seen
    return Chains(numbers, codes, diagnose(numbers, codes, states, by_scores))


def random_start(params: ConditionalGaussian, n: int, rng: np.random.Generator) -> Codes:
    """Codes drawn uniformly among the levels that have a chance."""
    codes = np.empty((n, len(params.n_levels)), dtype=np.int32)
    for j, levels in enumerate(allowed_levels(params)):
        if len(levels) == 0:
            raise DistributionError(
                "no level of {columns} has a chance: every bias is -inf", (params.n_numbers + j,)
            )
        codes[:, j] = levels[rng.integers(len(levels), size=n)]
    return as_codes(params, codes)


def sweep(
    field: ConditionalGaussian,
    codes: Codes,
    times: int,
    rng: np.random.Generator,
    unary: Floats | None = None,
    runs: Ints | None = None,
) -> None:
    """Redraw all states of all chains `times` times, in place: `codes` is (chains, q).

    The field is a model with its numbers integrated out.  `unary` (m, sum of levels) are biases of
    m fields with the same interactions, for chains in m equal consecutive blocks; `runs` is what
    `runs_of` says of the field, computed when not given.
    """
    if codes.size == 0:
        return
    bias = field.bias[None] if unary is None else unary
    runs = runs_of(field) if runs is None else runs
    uniforms, seen = np.empty(codes.shape), field.seen
    for _ in range(times):
        rng.random(out=uniforms)
        if seen is None:
            gibbs_sweep(codes, bias, field.coupling, field.level_start, runs, uniforms)
        else:
            states = (seen.level_start, seen.column_start, seen.scores, seen.n_scored)
            scored_sweep(codes, bias, field.coupling, states, uniforms)


def runs_of(field: ConditionalGaussian) -> Ints:
    """(q, m, 2) for every state the stretches of levels that it interacts with.

    Empty where states are seen by their scores.
    """
    if field.seen is not None:
        return np.zeros((len(field.n_levels), 0, 2), dtype=np.int64)
    first = field.level_start[:-1]
    touched = np.logical_or.reduceat(field.coupling != 0, first, axis=0)
    by_column = []
    for row in np.logical_or.reduceat(touched, first, axis=1):
        edge = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(np.int8)))
        by_column.append(field.level_start[edge].reshape(-1, 2))
    runs = np.zeros((len(by_column), max(map(len, by_column)), 2), dtype=np.int64)
    for j, stretches in enumerate(by_column):
        runs[j, : len(stretches)] = stretches
    return runs


def draw_numbers(
    given_y: Gaussian, params: ConditionalGaussian, codes: Codes, rng: np.random.Generator
) -> Floats:
    """Draw x from its Gaussian given the codes of every row."""
    numbers = rng.standard_normal((len(codes), params.n_numbers)) @ given_y.factor.root
    numbers += given_y.start
    add_level_rows(numbers, codes, params.level_start, given_y.shift)
    return np.asarray(numbers)


def as_codes(params: ConditionalGaussian, codes: NDArray[np.integer]) -> Codes:
    """The codes in the smallest type that holds those of every column, as in encoded tables."""
    most = max(params.n_levels, default=1)
    if most <= 2**8:
        return codes.astype(np.uint8)
    return codes.astype(np.uint16) if most <= 2**16 else codes.astype(np.int32)


# -- gradient chains -------------------------------------------------------------------------------

BATCHES = 64
# States that are kept: curvature is estimated from them.
KEPT = 4096


@dataclass(eq=False)
class GradientChains:
    """Gibbs chains over the discrete columns, which go on from wherever they are.

    Parameters
    ----------
    rng : numpy.random.Generator
    per_batch : int
        Chains in each of the 64 batches.
    """

    rng: np.random.Generator
    per_batch: int = 8
    codes: Codes | None = None
    sweeps: int = 0

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return BATCHES * self.per_batch

    def run(self, params: ConditionalGaussian, sweeps: int) -> tuple[Floats, Codes]:
        """Frequencies of pairs of levels in every batch, and some of the states visited."""
        total, start = sum(params.n_levels), params.level_start
        counts = np.zeros((BATCHES, total, total))

        def count(codes: Codes) -> None:
            for b in range(BATCHES):
                count_pairs(codes[b * self.per_batch : (b + 1) * self.per_batch], start, counts[b])

        states = self._visit(params, sweeps, count)
        counts /= sweeps * self.per_batch
        return counts, states

    def moments(
        self, nodes: Nodes, params: ConditionalGaussian, given_y: Gaussian, sweeps: int
    ) -> tuple[list[tuple[Floats, Floats]], tuple[Floats, Floats], Codes]:
        """Moments of the `statistics.columns` by every batch and by all, and states visited.

        The parameters are those of a model with these nodes, and x is Gaussian `given_y`.
        """
        if not nodes.n_scored:
            pairs, states = self.run(params, sweeps)
            expected = [moments_from(given_y, one) for one in (*pairs, pairs.mean(axis=0))]
            *by_batch, overall = ((one.column_mean, one.column_second) for one in expected)
            return by_batch, overall, states
        # Values may be too many for tables of pairs of them.
        width, p = nodes.n_columns + nodes.n_scored_terms, params.n_numbers
        mean, second = np.zeros((BATCHES, width)), np.zeros((BATCHES, width, width))

        def add(codes: Codes) -> None:
            x = np.tile(given_y.start, (len(codes), 1))
            add_level_rows(x, codes, params.level_start, given_y.shift)
            rows = nodes.statistics.rows(x, codes).reshape(BATCHES, -1, width)
            mean[:] += rows.sum(axis=1)
            second[:] += rows.transpose(0, 2, 1) @ rows

        states = self._visit(params, sweeps, add)
        mean /= sweeps * self.per_batch
        second /= sweeps * self.per_batch
        second[:, :p, :p] += given_y.covariance
        return (
            list(zip(mean, second, strict=True)),
            (mean.mean(axis=0), second.mean(axis=0)),
            states,
        )

    def _visit(
        self, params: ConditionalGaussian, sweeps: int, count: Callable[[Codes], None]
    ) -> Codes:
        """Let all chains go on, show their states after every sweep, and return some of them."""
        field, _ = integrate_out(params, range(params.n_numbers))
        burn_in = max(2, sweeps // 4)
        if self.codes is None:
            self.codes = random_start(field, self.n_chains, self.rng)
            burn_in += 100
        runs = runs_of(field) if self.codes.size else None
        sweep(field, self.codes, burn_in, self.rng, runs=runs)
        every = max(1, (sweeps * self.n_chains) // KEPT)
        kept = []
        for k in range(sweeps):
            sweep(field, self.codes, 1, self.rng, runs=runs)
            count(self.codes)
            if (k + 1) % every == 0:
                kept.append(self.codes.copy())
        self.sweeps += burn_in + sweeps
        return np.concatenate(kept)


# -- diagnostics of chains -------------------------------------------------------------------------

# Values from Vehtari et al. (2021), "Rank-normalization, folding, and localization".
LARGEST_R_HAT = 1.01
SMALLEST_ESS = 400.0

# Longer chains are judged by their last states: enough to see, and no long transforms.
_WINDOW = 2_000


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """How well the chains agree with each other and how much their states are worth."""

    r_hat: Floats
    """One for every number and every level; NaN for a level that was never or always drawn.  Where
    levels are very many, scored columns have a single one, that of their scores."""
    ess: Floats
    """Effective sample sizes of the same, of all kept states together."""
    n_states: int
    """Number of kept states."""
    place: Ints
    """Position of each among the numbers and all levels; of scores, that of the first level."""
    by_score: bool = False
    """Whether scored columns are judged by their scores, not level by level."""

    @property
    def worst_r_hat(self) -> float:
        """Largest R-hat; 1 when nothing varies."""
        return float(np.nanmax(self.r_hat)) if np.isfinite(self.r_hat).any() else 1.0

    @property
    def worst_ess(self) -> float:
        """Smallest effective sample size."""
        return float(np.nanmin(self.ess)) if np.isfinite(self.ess).any() else float(self.n_states)

    @property
    def good(self) -> bool:
        """True when R-hat is at most 1.01 and the effective sample size at least 400."""
        return self.worst_r_hat <= LARGEST_R_HAT and self.worst_ess >= SMALLEST_ESS

    @property
    def worst(self) -> tuple[int, ...]:
        """Positions of at most three quantities that fail, worst R-hat first."""
        fails = (self.r_hat > LARGEST_R_HAT) | (self.ess < SMALLEST_ESS)
        order = np.argsort(-np.where(fails, self.r_hat, -np.inf), kind="stable")
        return tuple(int(self.place[at]) for at in order[: min(3, np.count_nonzero(fails))])

    def __str__(self) -> str:
        """Return both numbers as a sentence."""
        return (
            f"R-hat at most {self.worst_r_hat:.3f}, effective sample size at least "
            f"{self.worst_ess:,.0f} of {self.n_states:,}"
        )


def diagnose(
    numbers: Floats, codes: NDArray[np.integer], states: Nodes, by_score: bool = False
) -> Diagnostics:
    """Diagnose chains: `numbers` (n_keep, n_chains, p) and level codes (n_keep, n_chains, q).

    With `by_score`, those of the states that are scored are judged by their scores.
    """
    n_keep, n_chains = numbers.shape[:2]
    p, at_scores = numbers.shape[2], states.scored_nodes & by_score
    traces, place = [numbers[-_WINDOW:, :, s] for s in range(p)], list(range(p))
    for j, n in enumerate(states.n_levels):
        drawn, first = codes[-_WINDOW:, :, j], p + int(states.level_start[j])
        if at_scores[j]:
            traces.append(states.scores[states.slots_of(j)][drawn])
            place.append(first)
        else:
            traces += [(drawn == level).astype(np.float64) for level in range(n)]
            place += range(first, first + n)
    figures = np.array([split_r_hat_and_ess(trace) for trace in traces]).reshape(-1, 2)
    scale = n_keep / max(1, min(n_keep, _WINDOW))
    ess, at = figures[:, 1] * scale, np.array(place, dtype=np.int64)
    return Diagnostics(figures[:, 0], ess, n_keep * n_chains, at, by_score)


def split_r_hat_and_ess(trace: Floats) -> tuple[float, float]:
    """R-hat and effective sample size of one quantity, whose values are `trace` (n_keep, n_chains).

    Fewer than eight per chain cannot be judged.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((500, 4))
    >>> r_hat, ess = split_r_hat_and_ess(noise)
    >>> round(r_hat, 2), ess > 1500
    (1.0, True)
    """
    half = len(trace) // 2
    if half < 4 or np.ptp(trace) == 0:
        return np.nan, np.nan
    halves = np.concatenate([trace[:half], trace[-half:]], axis=1)
    means = halves.mean(axis=0)
    centred = halves - means
    within = (centred**2).sum(axis=0).mean() / (half - 1)
    pooled = (half - 1) / half * within + means.var(ddof=1)
    if within == 0:  # every half is stuck, at different values
        return np.inf, float(halves.shape[1])
    correlation = 1.0 - (within - _autocovariance(centred)) / pooled
    return float(np.sqrt(pooled / within)), halves.size / _correlation_time(correlation)


def _autocovariance(centred: Floats) -> Floats:
    """(lags,) mean over chains, with the divisor n - 1 at lag zero."""
    n = len(centred)
    padded = next_fast_len(2 * n, real=True)
    spectrum = rfft(centred, padded, axis=0)
    products = irfft(np.abs(spectrum) ** 2, padded, axis=0)[:n]
    return np.asarray(products.mean(axis=1) / (n - 1))


def _correlation_time(correlation: Floats) -> float:
    """One plus twice the sum of the correlations that Geyer's sequence keeps."""
    even = len(correlation) // 2 * 2
    pairs = correlation[:even].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    kept = pairs[: negative[0]] if len(negative) else pairs
    # Antithetic chains can do better than independent draws, but not without bound.
    return max(float(2.0 * np.minimum.accumulate(kept).sum() - 1.0), 0.25)
