"""Equivalent z of all pairs -> the share of edges among them, and how probable each is.

Pairs are of two groups: without an edge z is standard normal, with one it is normal with the
variance 1 + tau^2.  The share of edges and tau^2 are those of this table: both are averaged over
what its own z-values say of them, from a weak prior under which few pairs have edges.  So a limit
on the probability of no edge adapts to weak dense and to strong sparse tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixedgm.model.layout import Floats

_LARGEST_SHARE = 0.95
_SMALLEST_SHARE = 1e-3
_SPREADS = 2.0, 400.0
_EVENLY = 0.1, 0.9
"""Between these the grid of shares is even, too."""
_N_SHARES, _N_SPREADS = 40, 24
_STEP = 0.05
"""Of the grid of z on which densities are computed; in between they are interpolated."""
_FAR = 50.0
_HUGE = 600.0
"""Exponents that are not yet too large."""


@dataclass(frozen=True, eq=False)
class TwoGroups:
    """The two groups of a table.

    Examples
    --------
    >>> z = np.concatenate([np.linspace(0.0, 2.0, 40), [6.0, 8.0]])
    >>> groups = TwoGroups(z)
    >>> groups.no_edge[[0, -1]].round(2)
    array([0.98, 0.  ])
    """

    z: Floats
    """(pairs,) absolute values."""

    @cached_property
    def _grid(self) -> tuple[Floats, Floats]:
        """Shares of edges, and variances tau^2 of their effects."""
        least = min(_SMALLEST_SHARE, 0.2 / max(len(self.z), 1))
        most = max(_SPREADS[1], float(np.square(self.z).max(initial=0.0)))
        few, many = (
            np.geomspace(least, _LARGEST_SHARE, _N_SHARES),
            np.linspace(*_EVENLY, _N_SHARES),
        )
        shares = np.union1d(few, many)
        return shares, np.geomspace(_SPREADS[0], most, _N_SPREADS)

    @cached_property
    def _points(self) -> tuple[Floats, Floats]:
        """(points,) values of z, and (spreads, points) log of how much likelier with an edge.

        The few values that are very large are points of their own.
        """
        _, spreads = self._grid
        largest = float(self.z.max(initial=0.0))
        near = np.arange(0.0, min(largest, _FAR) + 2.0 * _STEP, _STEP)
        z = np.concatenate([near, np.unique(self.z[self.z > near[-1]]), [largest + _FAR]])
        gain = 0.5 * np.outer(spreads / (1.0 + spreads), z**2)
        return z, gain - 0.5 * np.log1p(spreads)[:, None]

    @cached_property
    def _weights(self) -> Floats:
        """(shares, spreads) how probable each combination is, given the table."""
        shares, _ = self._grid
        points, log_ratio = self._points
        place = np.searchsorted(points, self.z, side="right") - 1
        upper = (self.z - points[place]) / (points[place + 1] - points[place])
        count = np.bincount(place, 1.0 - upper, len(points))
        count += np.bincount(place + 1, upper, len(points))
        some = count > 0.0
        ratio, count = np.exp(np.minimum(log_ratio[:, some], _HUGE)), count[some]
        log = np.array([np.log1p(share * (ratio - 1.0)) @ count for share in shares])
        log += np.maximum(log_ratio[:, some] - _HUGE, 0.0) @ count
        # The prior is even in the logarithm of the share, however close the grid is, but for a fall
        # towards one.
        log += (np.log(np.gradient(np.log(shares))) + 2.0 * np.log1p(-shares))[:, None]
        weights = np.exp(log - log.max())
        return np.asarray(weights / weights.sum())

    @cached_property
    def share(self) -> float:
        """The share of pairs that have an edge."""
        return float(self._weights.sum(axis=1) @ self._grid[0])

    @cached_property
    def spread(self) -> float:
        """tau^2: the variance of the z of edges, beyond that of noise."""
        return float(np.exp(self._weights.sum(axis=0) @ np.log(self._grid[1])))

    @cached_property
    def no_edge(self) -> Floats:
        """(pairs,) probability that a pair has no edge: its local false discovery rate."""
        shares, _ = self._grid
        points, log_ratio = self._points
        ratio, chance = np.exp(np.minimum(log_ratio, _HUGE)), np.zeros(len(points))
        for share, weights in zip(shares, self._weights, strict=True):
            chance += weights @ ((1.0 - share) / (1.0 - share + share * ratio))
        return np.interp(self.z, points, chance)

    def log_bayes_factor(self, z: Floats) -> Floats:
        """How much likelier every z is with an edge, in natural logarithms, at `spread`."""
        tau = self.spread
        return np.asarray(0.5 * (z**2 * tau / (1.0 + tau) - np.log1p(tau)))
