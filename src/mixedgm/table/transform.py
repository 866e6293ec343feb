"""A skewed column in -> standard normal scores by rank, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from mixedgm.errors import ModelFileError, ParameterError
from mixedgm.printable import quoted

__all__ = ["Nonparanormal", "normal_scores", "ranked"]

Floats = NDArray[np.float64]

_MAX_KNOTS = 1000


@dataclass(frozen=True)
class Nonparanormal:
    """Rank-based transform of one continuous column to standard normal scores.

    A value goes to the normal quantile of its mid-rank, (number below + half of those equal) / n.
    Between training values the transform is linear; outside their range it continues in a straight
    line. It is strictly increasing, so it has an inverse, which stays within the training range
    unless told to extrapolate. Parameters of a model with transformed columns are in
    normal-score units.

    Examples
    --------
    >>> import numpy as np
    >>> skewed = np.array([1.0, 10.0, 100.0])
    >>> transform = Nonparanormal.fit(skewed)
    >>> transform.forward(skewed).round(2).tolist()
    [-0.97, 0.0, 0.97]
    >>> transform.inverse(transform.forward(skewed)).round(6).tolist()
    [1.0, 10.0, 100.0]
    >>> transform.inverse([-5.0, 5.0]).tolist()
    [1.0, 100.0]
    """

    values: tuple[float, ...]  # knots in the units of the column, strictly increasing, at most 1000
    scores: tuple[float, ...]  # the normal score of each knot
    extrapolate: bool = False  # whether values may come back from beyond the training range

    def __post_init__(self) -> None:
        values, scores = np.asarray(self.values), np.asarray(self.scores)
        if (
            len(values) < 2
            or len(values) != len(scores)
            or not (np.isfinite(values).all() and np.isfinite(scores).all())
            or not ((np.diff(values) > 0).all() and (np.diff(scores) > 0).all())
        ):
            raise ParameterError(
                "a nonparanormal transform needs two or more finite, strictly increasing knots."
            )

    @classmethod
    def fit(
        cls, values: ArrayLike, weights: ArrayLike | None = None, *, extrapolate: bool = False
    ) -> Nonparanormal:
        """Return the transform of finite values, at least two of them distinct.

        Weights are frequencies: weight 2 is the same as the row twice.
        """
        distinct, _, scores = ranked(values, weights)
        # Tiny weights can leave two ranks equal in floating point; such values need no knot.
        usable = np.isfinite(scores)
        usable[1:] &= scores[1:] > np.maximum.accumulate(scores)[:-1]
        distinct, scores = _thinned(distinct[usable], scores[usable])
        return cls(tuple(distinct.tolist()), tuple(scores.tolist()), extrapolate)

    def forward(self, x: ArrayLike) -> Floats:
        """Return normal scores for values; those outside the training range are extrapolated."""
        return _piecewise(np.asarray(x, np.float64), self.values, self.scores)

    def inverse(self, z: ArrayLike) -> Floats:
        """Return values for normal scores, within the training range unless told otherwise."""
        values = _piecewise(np.asarray(z, np.float64), self.scores, self.values)
        return values if self.extrapolate else np.clip(values, self.values[0], self.values[-1])

    def to_dict(self) -> dict[str, Any]:
        """Return the transform as values that JSON can hold."""
        stored = {"name": "nonparanormal", "values": list(self.values), "scores": list(self.scores)}
        return {**stored, "extrapolate": True} if self.extrapolate else stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Nonparanormal:
        """Return the transform that `to_dict` wrote."""
        if stored.get("name") != "nonparanormal":
            raise ModelFileError(
                f"unknown transform {quoted(stored.get('name'))} in a stored schema."
            )
        try:
            return cls(
                tuple(float(value) for value in stored["values"]),
                tuple(float(score) for score in stored["scores"]),
                bool(stored.get("extrapolate", False)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"the stored transform cannot be read: {error}") from error


def normal_scores(values: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Return the normal quantile of the mid-rank of each value.

    Examples
    --------
    >>> normal_scores([5.0, 1.0, 5.0, 9.0]).round(2).tolist()
    [0.0, -1.15, 0.0, 1.15]
    """
    distinct, _, scores = ranked(values, weights)
    return scores[np.searchsorted(distinct, np.asarray(values))]


def ranked(values: ArrayLike, weights: ArrayLike | None = None) -> tuple[Floats, Floats, Floats]:
    """Return distinct values in order, how often each occurs, and its normal score.

    Examples
    --------
    >>> distinct, counts, scores = ranked([5.0, 1.0, 5.0, 9.0])
    >>> distinct.tolist(), counts.tolist(), scores.round(2).tolist()
    ([1.0, 5.0, 9.0], [1.0, 2.0, 1.0], [-1.15, 0.0, 1.15])
    """
    values = np.asarray(values, dtype=np.float64)
    counts: NDArray[Any]
    if weights is None:
        distinct, counts = np.unique(values, return_counts=True)
    else:
        distinct, where = np.unique(values, return_inverse=True)
        counts = np.bincount(where.ravel(), weights)
    counts = counts.astype(np.float64)
    ranks = (np.cumsum(counts) - counts / 2) / counts.sum()
    return distinct, counts, np.asarray(ndtri(ranks), dtype=np.float64)


def _thinned(values: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Keep at most _MAX_KNOTS knots, evenly spaced in score.

    Both neighbours of each grid point are kept: where many equal values make the scores jump, the
    knots on both sides of the jump stay, so that no value next to a spike is drawn into it.
    """
    if len(values) <= _MAX_KNOTS:
        return values, scores
    grid = np.linspace(scores[0], scores[-1], _MAX_KNOTS // 2)
    above = np.clip(np.searchsorted(scores, grid), 1, len(scores) - 1)
    kept = np.union1d(above - 1, above)
    return values[kept], scores[kept]


def _piecewise(x: Floats, knots: tuple[float, ...], images: tuple[float, ...]) -> Floats:
    """Interpolate linearly between knots and continue in a straight line outside them."""
    at, to = np.asarray(knots), np.asarray(images)
    out = np.asarray(np.interp(x, at, to), dtype=np.float64)
    # A slope towards the middle is not at the mercy of two extreme values that lie close together.
    left = len(at) // 2
    right = len(at) - 1 - left
    low_slope = (to[left] - to[0]) / (at[left] - at[0])
    high_slope = (to[-1] - to[right]) / (at[-1] - at[right])
    out = np.where(x < at[0], to[0] + low_slope * (x - at[0]), out)
    return np.where(x > at[-1], to[-1] + high_slope * (x - at[-1]), out)
