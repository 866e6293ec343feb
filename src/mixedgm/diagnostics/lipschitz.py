"""A truth and a loss -> how fast gradient and curvature change near it, as estimates.

Both are taken at the truth, not over a ball around it.  The gradient of the log partition function
changes at most by the largest eigenvalue of the covariance of the statistics; the curvature of the
loss by the largest third derivative along one direction, which for a symmetric form is also the
largest along any three.  It is sought by a power method, so the number is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.sparse.linalg import eigsh

from mixedgm.diagnostics.curvature import ContrastCoordinates, smooth_of, statistics_covariance
from mixedgm.diagnostics.states import DIGITS, StateRows
from mixedgm.model.layout import Floats
from mixedgm.rows.contract import Rows

__all__ = ["curvature_change", "gradient_change"]

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
