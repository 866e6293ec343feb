"""A column in -> whether it is far from normal; its normal scores by rank, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from mixedgm.base.errors import ModelFileError, ParameterError
from mixedgm.base.printable import quoted
from mixedgm.model.nodes import Floats

Integers = NDArray[np.integer]

_MAX_KNOTS = 1000
LEAST = 0.025
"""A departure from here on matters: that of log-normal numbers whose logarithms spread by 0.22."""
BY_CHANCE = 4.0
"""The departure of a normal column of n rows exceeds this number over n in fewer than 1 of 100."""
_FEWEST_ROWS = 20
_MOST_TERMS, _ROWS_PER_TERM = 50, 10
"""Terms of the regression on other columns: at most 50, and one for every ten rows."""


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
        distinct, _, scores = _ranked(values, weights)
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
    distinct, _, scores = _ranked(values, weights)
    return scores[np.searchsorted(distinct, np.asarray(values))]


def _ranked(values: ArrayLike, weights: ArrayLike | None = None) -> tuple[Floats, Floats, Floats]:
    """Return distinct values in order, how often each occurs, and its normal score.

    Examples
    --------
    >>> distinct, counts, scores = _ranked([5.0, 1.0, 5.0, 9.0])
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


# -- which columns get scores by default -----------------------------------------------------------


def departure(values: Floats, weights: Floats | None = None) -> float:
    """Return 1 - r², where r is the correlation of values with their normal scores.

    It is 0.045 for uniform numbers, 0.18 for exponential ones, and around 2 / n for normal ones.
    Weights are frequencies.

    Examples
    --------
    >>> round(departure(np.arange(1.0, 1001.0)), 3)
    0.044
    """
    distinct, counts, scores = _ranked(values, weights)
    return 1.0 - _squared_correlation(distinct, scores, counts)


def _squared_correlation(one: Floats, two: Floats, weights: Floats) -> float:
    one, two = _centred(one, weights), _centred(two, weights)
    product = float((weights @ one**2) * (weights @ two**2))
    return float((weights * one) @ two) ** 2 / product if product > 0.0 else 1.0


def _centred(values: Floats, weights: Floats | None = None) -> Floats:
    """Return values less their mean, the largest of them 1 in size."""
    centred = values - np.average(values, weights=weights)
    largest = np.abs(centred).max(initial=0.0)
    return centred / largest if largest > 0.0 else centred


@dataclass(frozen=True, eq=False)
class Predictor:
    """A column whose effect on the mean of others is no departure from the model.

    Given the discrete columns, the amounts of hurdle columns and the covariates, continuous columns
    of the model are normal, and their means are sums of effects of these.

    Parameters
    ----------
    groups : (n,) integers
        Group of each row, all of which have their own mean; -1 for missing values.
    numbers : (n,) float64 array or None
        Numbers that the mean is linear in, any number where they are missing.
    """

    groups: Integers
    numbers: Floats | None = None

    def explained(self, values: Floats, rows: NDArray[np.bool_], weights: Floats) -> float:
        """Return the share of the variance of centred values that it explains, by term."""
        groups = self.groups[rows] + 1
        totals = np.bincount(groups, weights)
        sums = np.bincount(groups, weights * values)[totals > 0.0]
        totals = totals[totals > 0.0]
        within = float((sums**2 / totals).sum() / (weights @ values**2)) / max(len(totals) - 1, 1)
        if self.numbers is None:
            return within
        return max(within, _squared_correlation(self.numbers[rows], values, weights))

    def terms(self, rows: NDArray[np.bool_]) -> Floats:
        """Return (rows, terms): whether a row is in each group but the first, and numbers."""
        present, codes = np.unique(self.groups[rows], return_inverse=True)
        dummies = np.equal.outer(codes.ravel(), np.arange(1, len(present))).astype(np.float64)
        if self.numbers is None:
            return dummies
        return np.column_stack([dummies, _centred(self.numbers[rows])])


def far_from_normal(
    values: Floats, predictors: Sequence[Predictor] = (), weights: Floats | None = None
) -> bool:
    """Return whether a column is plainly not normal, and its normal scores are closer to that.

    This holds if the departures of the column and of its residuals are both at least `LEAST`
    and more than chance makes of n rows, and that of the residuals of its normal scores is at most
    half as large. Residuals are those of a regression on the predictors that explain most.

    Parameters
    ----------
    values : (n,) float64 array
        The column, NaN where a value is missing.
    predictors : sequence of Predictor
        The discrete columns, hurdle columns and covariates of the table.
    weights : (n,) float64 array, optional
        Frequencies of the rows.

    Examples
    --------
    >>> groups = np.repeat([0, 1], 500)
    >>> normal = np.tile(normal_scores(np.arange(500.0)), 2)
    >>> two_groups = normal + 6.0 * groups
    >>> far_from_normal(two_groups), far_from_normal(two_groups, [Predictor(groups)])
    (True, False)
    """
    rows = ~np.isnan(values)
    values, weights = values[rows], None if weights is None else weights[rows]
    total = len(values) if weights is None else float(weights.sum())
    if total < _FEWEST_ROWS or departure(values, weights) < max(LEAST, BY_CHANCE / total):
        return False
    counts = np.ones(len(values)) if weights is None else weights
    centred = _centred(values, counts)
    terms = _terms(centred, predictors, rows, counts)
    if not terms.shape[1]:
        return True
    scores = normal_scores(values, counts)
    before, after = (_residuals(each, terms, counts) for each in (centred, scores))
    least = max(LEAST, BY_CHANCE / total, 2.0 * departure(after, weights))
    return departure(before, weights) >= least


def _terms(
    values: Floats, predictors: Sequence[Predictor], rows: NDArray[np.bool_], weights: Floats
) -> Floats:
    """Return (rows, terms) of the predictors that explain most, as many as the rows allow."""
    left = min(_MOST_TERMS, len(values) // _ROWS_PER_TERM)
    explained = [each.explained(values, rows, weights) for each in predictors]
    chosen = [np.empty((len(values), 0))]
    for at in np.argsort(-np.asarray(explained), kind="stable"):
        terms = predictors[at].terms(rows)
        if terms.shape[1] <= left:
            chosen.append(terms)
            left -= terms.shape[1]
        if not left:
            break
    return np.hstack(chosen)


def _residuals(values: Floats, terms: Floats, weights: Floats) -> Floats:
    """Return what a weighted regression on the terms leaves."""
    terms = np.column_stack([np.ones(len(terms)), terms])
    root = np.sqrt(weights)
    slopes = np.linalg.lstsq(terms * root[:, None], values * root, rcond=None)[0]
    return np.asarray(values - terms @ slopes)
