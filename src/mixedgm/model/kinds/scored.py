"""Columns with finitely many values that are numbers to the others: one score for each value.

The log probability of value l is, up to a constant, base_l + own_l + s_l m, with the score s_l, the
linear predictor m, a base measure that is known, and own terms: one for each value (*free*), or
quadratic in the score, a s_l + b s_l^2, with a term for the value zero besides where it is wanted.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.kinds.contract import Floats, Kind, Point, Transform

_STEPS = 200
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Scored(Kind):
    """Base class of ordinal and count columns.

    Scores are those of the table's own values, less `centre` and divided by `scale`.
    """

    centre: float = 0.0
    scale: float = 1.0

    is_gaussian = False
    is_numeric = True
    measure = "r2"
    filled_by: ClassVar[Point] = "mode"
    """The value that fills a gap."""

    @abstractmethod
    def own_scores(self, n_values: int) -> Floats:
        """(n_values,) scores in the units of the table."""

    @property
    def has_zero_term(self) -> bool:
        """Whether the value zero has a term besides the quadratic ones."""
        return False

    def base(self, n_values: int) -> Floats:
        """(n_values,) the part of the own terms that is known."""
        return np.zeros(n_values)

    def scores(self, n_values: int) -> Floats:
        """(n_values,) scores with which the values enter other conditionals."""
        return (self.own_scores(n_values) - self.centre) / self.scale

    def amounts(self, n_values: int) -> Floats:
        """(n_values,) the numbers of which a mean is taken: scores in the units of the table."""
        return self.own_scores(n_values)

    def unknown_score(self, n_values: int) -> float:
        """Score that stands for a value unknown to the model: the mean of all scores."""
        return float(self.scores(n_values).mean())

    def features(self, n_values: int) -> Floats:
        """(n_values, n_biases) statistics of the own terms, by value."""
        if self.is_free:
            return np.eye(n_values)
        s = self.scores(n_values)
        columns = [s, s**2]
        if self.has_zero_term:
            columns.append(np.arange(n_values) == 0)
        return np.column_stack(columns).astype(np.float64)

    def standardised(self, centre: float, scale: float) -> Scored:
        """Return the kind with scores in other units; 0 and 1 keep those of the table."""
        return replace(self, centre=float(centre), scale=float(scale))

    def with_unknown(self, n_values: int) -> Scored:
        """A kind with one more value, one that is not among these, and a term for each value."""
        from mixedgm.model.kinds.ordinal import OrdinalKind

        scores = [*self.scores(n_values).tolist(), self.unknown_score(n_values)]
        return OrdinalKind(level_scores=tuple(scores))

    def moved(self, n_values: int) -> Floats:
        """(n_biases,) rise of the own terms when the predictor rises by one."""
        return self.scores(n_values) if self.is_free else np.eye(self.n_biases(n_values))[0]

    def kept(self, observed: NDArray[np.bool_]) -> Scored:
        """Return the kind restricted to the observed values; here, unchanged."""
        return self

    def marginal(self, shares: Floats) -> Floats:
        """(n_biases,) own terms of a column that has these shares of values, and no edges."""
        if self.is_free:
            return np.log(shares)
        n, features = len(shares), self.features(len(shares))
        base, terms = self.base(n), np.zeros(features.shape[1])
        wanted = shares @ features

        def loss(at: Floats) -> tuple[float, Floats]:
            logits = base + features @ at
            top = logits.max()
            weights = np.exp(logits - top)
            total = weights.sum()
            return float(top + np.log(total) - wanted @ at), weights / total

        value, prob = loss(terms)
        last = np.inf
        for _ in range(_STEPS):
            expected = prob @ features
            slope = expected - wanted
            centred = features - expected
            hessian = (centred * prob[:, None]).T @ centred
            hessian.flat[:: len(slope) + 1] += 1e-12 * max(1.0, float(np.trace(hessian)))
            step, size = np.linalg.solve(hessian, -slope), 1.0
            decrease = float(slope @ step)
            rounding = -decrease < 1e-9 * max(1.0, abs(value)) and -decrease > 0.25 * last
            if -decrease < 1e-26 or rounding:
                break
            last = -decrease
            new_value, new_prob = loss(terms + step)
            # Where so little is left to gain, rounding would hide it, and a whole step is safe.
            while decrease < -1e-10 and new_value > value + 1e-4 * size * decrease:
                size *= 0.5
                new_value, new_prob = loss(terms + size * step)
            terms, value, prob = terms + size * step, new_value, new_prob
        return terms

    def alone(self, shares: Floats) -> Floats:
        """(n_values,) log probabilities of a column that has these shares, and no edges."""
        n_values = len(shares)
        logits = self.base(n_values) + self.features(n_values) @ self.marginal(shares)
        top = logits.max()
        return np.asarray(logits - top - np.log(np.exp(logits - top).sum()))

    # -- as every kind -----------------------------------------------------------------------------

    def width(self, n_values: int) -> int:
        """One: the score."""
        return 1

    def n_biases(self, n_values: int) -> int:
        """One per value, or those of a quadratic function."""
        return n_values if self.is_free else 2 + self.has_zero_term

    def freedom(self, n_values: int) -> int:
        """One."""
        return 1

    def is_signed(self, n_values: int) -> bool:
        """Always: values have an order."""
        return True

    def variance(self, mean: Floats, varies: Floats) -> Floats:
        """1, by standardisation, or 0."""
        return varies

    def axis(self, name: str, level_names: tuple[str, ...]) -> tuple[str, ...]:
        """The name of the column."""
        return (name,)

    def encode(self, values: NDArray[Any], transform: Transform | None) -> NDArray[Any]:
        """The number of the value."""
        return values

    def decode(self, values: NDArray[Any], transform: Transform | None) -> NDArray[Any]:
        """The number of the value."""
        return values

    def term_names(self, level_names: tuple[str, ...]) -> tuple[str | None, ...]:
        """Names of the levels or, if these have no terms of their own, functions of the score."""
        if self.is_free:
            return level_names
        return ("score", "score^2", "zero")[: self.n_biases(0)]

    def point(
        self, conditional: Floats, which: Point | None = None, numbers: Floats | None = None
    ) -> NDArray[Any]:
        """The most probable value, the smallest with half of the probability up to it, the mean."""
        which = self.filled_by if which is None else which
        if which == "mode":
            return np.asarray(conditional.argmax(axis=-1))
        prob = np.exp(conditional)
        prob /= prob.sum(axis=-1, keepdims=True)
        if which == "median":
            return np.asarray((prob.cumsum(axis=-1) >= 0.5 - _ROUNDING).argmax(axis=-1))
        n_values = conditional.shape[-1]
        return np.asarray(prob @ (self.amounts(n_values) if numbers is None else numbers))
