"""Kept states of many chains -> R-hat and effective sample size of every number and level.

Each chain is cut in two halves.  R-hat is the plain split form, the square root of the ratio of
the variance of all halves pooled to the mean variance within a half; ranks are not needed, since
the quantities are Gaussian mixtures and indicators, which have no heavy tails.  The effective
sample size sums the autocorrelations of the halves up to where the sums of neighbouring pairs
stop being positive and decreasing (Geyer 1992; Gelman et al., Bayesian Data Analysis, 2013).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes

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
