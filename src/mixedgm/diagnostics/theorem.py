"""Constants of a truth and a number of rows -> what the theorem of Lee and Hastie promises.

With k the largest number of free parameters of a pair, |G| pairs, |A| edges, m the convexity
on the model subspace in a ball of radius r, tau the margin of the irrepresentable condition:

    lam  = 2 sqrt(256 L1) tau_bar / tau * sqrt(k log|G| / n)
    n   >= 4096 L1 L2^2 tau_bar^2 / (m^4 tau^4) * (2 + tau / tau_bar)^4 * k |A|^2 log|G|
    n   >= 2048 L1 / (m^2 r^2) * (2 + tau / tau_bar)^2 * k |A| log|G|
    error    <= 4 / m * (tau_bar + 1) / (2 tau) * sqrt(256 L1 |A| k log|G| / n)
    edges above  1 / m * (1 + tau / (2 tau_bar)) * sqrt(|A|) * lam  are found.

For the likelihood L1 is divided by 128 everywhere.

A truth and a loss -> how fast gradient and curvature change near it, as estimates.

Both are taken at the truth, not over a ball around it.  The gradient of the log partition function
changes at most by the largest eigenvalue of the covariance of the statistics; the curvature of the
loss by the largest third derivative along one direction, which for a symmetric form is also the
largest along any three.  It is sought by a power method, so the number is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import eigsh

from mixedgm.diagnostics.states import DIGITS, StateRows
from mixedgm.diagnostics.truth import ContrastCoordinates, smooth_of, statistics_covariance
from mixedgm.model.layout import Floats
from mixedgm.rows.contract import Rows


@dataclass(frozen=True)
class Promise:
    """Promise of the theorem for n rows; every number is an estimate.

    Parameters
    ----------
    n_rows : float
        The number of rows.
    lam : float
        The penalty that it asks for.
    error_bound : float
        Bound of the distance between estimate and truth, edges on the scale of their weights.
    smallest_edge : float
        Edges of a larger norm are found.
    enough_rows : bool
        Whether it promises anything for so few rows.
    """

    n_rows: float
    lam: float
    error_bound: float
    smallest_edge: float
    enough_rows: bool


@dataclass(frozen=True)
class Constants:
    """The constants of the theorem.

    Parameters
    ----------
    tau : float
        Margin of the irrepresentable condition; the theorem needs it positive.
    tau_bar : float
        Irrepresentability number over edges and missing edges together, at least 1.
    convexity : float
        Smallest eigenvalue of the curvature on the model subspace, at the truth.
    gradient_change, curvature_change : float
        L1 and L2, at the truth.
    largest_group : int
        k, free parameters of the largest pair.
    n_pairs, n_edges : int
        ``|G|`` and ``|A|``.
    loss : str
        "pseudolikelihood" or "likelihood".
    """

    tau: float
    tau_bar: float
    convexity: float
    gradient_change: float
    curvature_change: float
    largest_group: int
    n_pairs: int
    n_edges: int
    loss: str = "pseudolikelihood"

    @property
    def applies(self) -> bool:
        """Whether both conditions of the theorem are met."""
        return self.tau > 0.0 and self.convexity > 0.0

    @property
    def _noise(self) -> float:
        """L1 k log|G|."""
        first = self.gradient_change / (128.0 if self.loss == "likelihood" else 1.0)
        return first * self.largest_group * float(np.log(max(1, self.n_pairs)))

    def _needed(self, share: Floats) -> Floats:
        """Rows needed when the ball has this share of the radius at which convexity is lost."""
        ratio = 2.0 + self.tau / self.tau_bar
        m = (1.0 - share) * self.convexity
        # r = share * convexity / L2, within which convexity stays at least m.
        both = self.curvature_change**2 * self._noise * self.n_edges * ratio**2 / m**2
        first = 4096.0 * both * self.tau_bar**2 * ratio**2 * self.n_edges / (m**2 * self.tau**4)
        second = 2048.0 * both / (share * self.convexity) ** 2
        return np.asarray(np.maximum(first, second))

    @property
    def radius_share(self) -> float:
        """The share of that radius that needs the fewest rows."""
        if not self.applies:
            return float("nan")
        shares = np.linspace(0.001, 0.999, 999)
        return float(shares[np.argmin(self._needed(shares))])

    @property
    def n_rows(self) -> float:
        """Rows from which the theorem holds; NaN where it does not apply."""
        if not self.applies:
            return float("nan")
        return float(self._needed(np.array([self.radius_share]))[0])

    def promise(self, n_rows: float | None = None) -> Promise:
        """Promise for so many rows, by default for as many as the theorem needs."""
        n = self.n_rows if n_rows is None else float(n_rows)
        if not self.applies:
            nothing = float("nan")
            return Promise(n, nothing, nothing, nothing, False)
        m = (1.0 - self.radius_share) * self.convexity
        noise = np.sqrt(256.0 * self._noise / n) if n > 0.0 else 0.0
        lam = 2.0 * noise * self.tau_bar / self.tau
        error = 4.0 / m * (self.tau_bar + 1.0) / (2.0 * self.tau) * noise * np.sqrt(self.n_edges)
        edge = (1.0 + self.tau / (2.0 * self.tau_bar)) * np.sqrt(self.n_edges) * lam / m
        return Promise(n, float(lam), float(error), float(edge), n >= self.n_rows)


# -- lipschitz -------------------------------------------------------------------------------------

_STEP = 1e-3
_TURNS = 30
_STARTS = 2
_SETTLED = 1e-3
_DENSE = 400


def gradient_change(coordinates: ContrastCoordinates) -> float:
    """Largest eigenvalue of the covariance of the sufficient statistics."""
    matrix = statistics_covariance(coordinates)
    if len(matrix) <= _DENSE:
        return float(np.linalg.eigvalsh(matrix)[-1])
    start = np.ones(len(matrix))
    return float(eigsh(matrix, k=1, v0=start, return_eigenvectors=False)[0])


def curvature_change(coordinates: ContrastCoordinates, loss: str) -> float:
    """Largest third derivative of the expected loss along one direction of length 1."""
    truth = coordinates.truth
    rows: Rows = truth.batches[0] if truth.batches else truth.rows
    if isinstance(rows, StateRows):
        # Enough for second differences, and for an estimate.
        rows = replace(rows, digits=min(rows.digits, DIGITS[-1]))
    smooth, theta = smooth_of(truth, loss, rows), truth.theta
    centre = smooth.evaluate(theta).gradient

    def slope_along(direction: Floats) -> Floats:
        """Second derivative of the gradient along a direction, by differences."""
        step = _STEP * coordinates.up(direction)
        ahead, behind = (smooth.evaluate(theta + sign * step).gradient for sign in (1.0, -1.0))
        return coordinates.down((ahead - 2.0 * centre + behind) / _STEP**2)

    rng = np.random.default_rng(0)
    n = coordinates.layout.n_theta
    return max(_climb(slope_along, rng.normal(size=n)) for _ in range(_STARTS))


def _climb(slope_along: Callable[[Floats], Floats], start: Floats) -> float:
    """The power method for a symmetric form of degree three, shifted where it would fall."""
    direction, best, shift = start / np.linalg.norm(start), 0.0, 0.0
    slope = slope_along(direction)
    value = float(direction @ slope)
    for _ in range(_TURNS):
        if value < 0.0:
            direction, value = -direction, -value  # the form is odd, its slope even
        moved = slope + shift * direction
        size = float(np.linalg.norm(moved))
        if size == 0.0:
            break
        trial = moved / size
        trial_slope = slope_along(trial)
        trial_value = abs(float(trial @ trial_slope))
        if trial_value < value * (1.0 - _SETTLED):
            shift = max(2.0 * shift, value)
            continue
        settled = trial_value <= value * (1.0 + _SETTLED)
        direction, slope, value = trial, trial_slope, float(trial @ trial_slope)
        best = max(best, abs(value))
        if settled:
            break
    return max(best, abs(value))
