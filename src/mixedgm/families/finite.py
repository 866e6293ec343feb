"""The family of finitely many values: categories, ordinal levels, counts up to a largest one.

Others see an indicator for each category, and one score for each level or count.  The log
probability of value l of a scored column is, up to a constant, base_l + own_l + s_l m, with the
score s_l, the linear predictor m, a base measure that is known, and own terms: one for each value
(*free*), or quadratic in the score, a s_l + b s_l^2, with a term for the value zero besides where
it is wanted.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from mixedgm.families.contract import (
    Array,
    Codes,
    Conditional,
    Family,
    Floats,
    Kind,
    Point,
    States,
    Transform,
)

Thresholds = Literal["free", "quadratic"]

_STEPS = 200
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class FiniteFamily(Family):
    """log p(value l) = own_l + S_l' m - constant, with a matrix of scores S.

    Own terms enter as logits of the values, in which base measure and features are contained.
    """

    n_values: int
    """V."""
    scores: Array | None = None
    """(G, V, width) what others see of every value; None for an indicator of each."""
    features: Array | None = None
    """(G, V, terms) statistics of the own terms; None for a term of each."""

    def given(self, own: Array, predictors: Array, xp: Any = np) -> FiniteConditional:
        """Softmax."""
        scores = self.scores
        logits = predictors if scores is None else xp.matmul(scores, predictors)
        return FiniteConditional.of(self, logits + own[:, :, None], xp)

    def columns(self, codes: Codes, numbers: Floats) -> Floats:
        """Scores of the values."""
        return self._chosen(self.scores, codes)

    def statistics(self, codes: Codes, numbers: Floats) -> Floats:
        """Features of the values."""
        return self._chosen(self.features, codes)

    def table(self, table: Array | None, n_columns: int) -> Array:
        """A table (G, V, k); the unit matrix in place of None."""
        one = np.eye(self.n_values)
        return np.broadcast_to(one, (n_columns, *one.shape)) if table is None else table

    def _chosen(self, table: Array | None, codes: Codes) -> Floats:
        """(G, k, n) rows of tables (G, V, k) with these numbers."""
        tables = self.table(table, len(codes))
        parts = [np.take(one, code, axis=0).T for one, code in zip(tables, codes, strict=True)]
        return np.asarray(parts[0][None] if len(parts) == 1 else np.stack(parts))

    def in_basis(self, basis: Callable[[int], Floats]) -> FiniteFamily:
        """Replace indicators of values by columns of a table."""
        scores, features = self.scores, self.features
        scores = basis(self.n_values)[None] if scores is None else scores
        features = basis(self.n_values)[None] if features is None else features
        return replace(self, scores=scores, features=features)

    def thinned(self, own: Floats, most: int) -> tuple[FiniteFamily, Floats]:
        """A single column with at most so many values: later ones stand for their neighbours."""
        n = self.n_values
        if n <= most or self.scores is None or self.features is None:
            return self, own
        kept = np.unique(np.geomspace(1, n, most).astype(np.int64)) - 1
        ends = np.concatenate([[0], (kept[1:] + kept[:-1] + 1) // 2, [n]])
        fewer = FiniteFamily(len(kept), self.scores[:, kept], self.features[:, kept])
        return fewer, own[:, kept] + np.log(np.diff(ends))

    def states(self, own: Floats) -> States:
        """The values that can occur."""
        scores = np.eye(len(own)) if self.scores is None else self.scores[0]
        possible = np.isfinite(own)
        return States(own[possible], scores[possible], None)

    @classmethod
    def stacked(cls, families: Sequence[FiniteFamily]) -> FiniteFamily:
        """One family of columns with as many values; those that have fewer are padded."""

        def padded(tables: list[Any]) -> Any:
            if tables[0] is None:
                return None
            out = np.zeros((len(tables), most, tables[0].shape[2]))
            for to, (table,) in zip(out, tables, strict=True):
                to[: len(table)] = table
            return out

        most = max(each.n_values for each in families)
        tables = (padded([getattr(x, name) for x in families]) for name in ("scores", "features"))
        return cls(most, *tables)


def _turned(xp: Any, array: Array) -> Array:
    """The last two axes exchanged."""
    return xp.permute_dims(array, (0, 2, 1))


@dataclass(frozen=True, eq=False)
class FiniteConditional(Conditional):
    """Probabilities of values."""

    family: FiniteFamily
    logits: Array
    """(G, V, n) less the largest of every row."""
    top: Array
    """(G, 1, n) largest logits."""
    xp: Any = np

    @classmethod
    def of(cls, family: FiniteFamily, logits: Array, xp: Any = np) -> FiniteConditional:
        """Softmax of logits (G, V, n), which it keeps and changes."""
        top = xp.max(logits, axis=1, keepdims=True)
        logits -= top
        return cls(family, logits, top, xp)

    @cached_property
    def _weights(self) -> tuple[Array, Array]:
        weights = self.xp.exp(self.logits)
        return weights, self.xp.sum(weights, axis=1, keepdims=True)

    @cached_property
    def chance(self) -> Array:
        """(G, V, n) probabilities."""
        weights, norm = self._weights
        weights /= norm
        return weights

    @cached_property
    def log_prob(self) -> Array:
        """(G, V, n) log probabilities."""
        return self.logits - self.xp.log(self._weights[1])

    @property
    def log_normaliser(self) -> Array:
        """(G, n) logarithm of the sum over values."""
        return (self.top + self.xp.log(self._weights[1]))[:, 0, :]

    def mean(self, table: Array | None, weights: Array | None = None) -> Array:
        """(G, k, n) expectations of a table (G, V, k): sums over values, of `weights` if given."""
        weights = self.chance if weights is None else weights
        return weights if table is None else self.xp.matmul(_turned(self.xp, table), weights)

    @property
    def columns(self) -> Array:
        """Expected scores."""
        return self.mean(self.family.scores)

    @property
    def terms(self) -> Array:
        """Expected features."""
        return self.mean(self.family.features)

    def term_sums(self, weight: Array | None) -> Array:
        """Expected features, summed over rows before values."""
        chance = self.chance if weight is None else self.chance * weight
        return self.mean(self.family.features, self.xp.sum(chance, axis=2)[:, :, None])[:, :, 0]

    def covariances(self) -> tuple[Array, Array]:
        """Covariances of scores; and with features."""
        family, xp, (n_columns, _, n) = self.family, self.xp, self.logits.shape
        scores = family.table(family.scores, n_columns)

        def second(other: Array | None) -> Array:
            if other is None:
                return _turned(xp, scores)[:, :, :, None] * self.chance[:, None, :, :]
            products = scores[:, :, :, None] * other[:, :, None, :]
            sizes = products.shape[2:]
            flat = n_columns, products.shape[1], math.prod(sizes)  # no -1: sizes may be 0
            found = self.mean(xp.reshape(products, flat))
            return xp.reshape(found, (n_columns, *sizes, n))

        mean = self.columns[:, :, None, :]
        of_columns = second(family.scores) - mean * self.columns[:, None, :, :]
        return of_columns, second(family.features) - mean * self.terms[:, None, :, :]

    def scores(self, codes: Codes, numbers: Floats) -> Floats:
        """Expected features less those of the values."""
        away = self.chance.copy()
        rows = np.arange(codes.shape[1])
        for part, code in zip(away, codes, strict=True):
            part[code, rows] -= 1.0
        return np.asarray(self.mean(self.family.features, away).swapaxes(0, 1))

    def log_density(self, codes: Codes, numbers: Floats) -> Floats:
        """Log probabilities of the values."""
        logits = np.take_along_axis(self.logits, codes[:, None, :], axis=1)
        return np.asarray((logits - np.log(self._weights[1]))[:, 0, :])

    def drawn(self, rng: np.random.Generator) -> tuple[Codes, Floats]:
        """Values; there is no real number."""
        below = self._weights[0].cumsum(axis=1)
        uniform = rng.random(below[:, 0, :].shape)
        codes = (below[:, :-1, :] < (uniform * below[:, -1, :])[:, None, :]).sum(axis=1)
        return codes, np.zeros(codes.shape)


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
        terms, wanted = np.zeros(features.shape[1]), shares @ features

        def loss(at: Floats) -> tuple[float, Floats]:
            given = self._alone(at, n)
            return float(given.log_normaliser[0, 0] - wanted @ at), given.chance[0, :, 0]

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
        return np.asarray(self._alone(self.marginal(shares), n_values).log_prob[0, :, 0])

    def _alone(self, terms: Floats, n_values: int) -> FiniteConditional:
        """The distribution without edges."""
        logits = self.base(n_values) + self.features(n_values) @ terms
        return FiniteConditional.of(FiniteFamily(n_values), logits[None, :, None])

    # -- as every kind -----------------------------------------------------------------------------

    def family(self, n_values: int) -> Family:
        """One score for each value."""
        features = None if self.is_free else self.features(n_values)[None]
        return FiniteFamily(n_values, self.scores(n_values)[None, :, None], features)

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


@dataclass(frozen=True)
class Categorical(Kind):
    """log p(y | rest) = phi(y) + m(y) - constant, others see one indicator per level."""

    name = "categorical"
    short = "cat"
    fill = "#DDD0EC"
    line = "#7B4FA3"
    marker = "s"
    marker_size = 0.9
    is_gaussian = False
    is_numeric = False
    has_levels = True
    predicted_by = "mode"
    measure = "normalised_accuracy"
    assumption = (
        "Categorical columns have no order: every pair of levels has a parameter of its own."
    )

    def family(self, n_values: int) -> Family:
        """An indicator of each level."""
        return FiniteFamily(n_values)

    def width(self, n_values: int) -> int:
        """One indicator per level."""
        return n_values

    def n_biases(self, n_values: int) -> int:
        """One per level."""
        return n_values

    def freedom(self, n_values: int) -> int:
        """Levels less one: what all levels have in common belongs to the biases."""
        return n_values - 1

    def is_signed(self, n_values: int) -> bool:
        """Whether its edges can have a sign: with two levels at most."""
        return n_values <= 2

    def variance(self, mean: Floats, varies: Floats) -> Floats:
        """Share times one minus share, level by level."""
        return mean * (1.0 - mean)

    def problem(self, levels: tuple[Any, ...], transform: Transform | None) -> str | None:
        """A transform."""
        return None if transform is None else "is categorical, so it has no transform"

    def axis(self, name: str, level_names: tuple[str, ...]) -> tuple[str, ...]:
        """The names of the levels."""
        return level_names

    def encode(self, values: NDArray[Any], transform: Transform | None) -> NDArray[Any]:
        """The level code."""
        return values

    def decode(self, values: NDArray[Any], transform: Transform | None) -> NDArray[Any]:
        """The level code."""
        return values

    def term_names(self, level_names: tuple[str, ...]) -> tuple[str | None, ...]:
        """Names of the levels, each of which has a term."""
        return level_names

    def point(
        self, conditional: Floats, which: Point | None = None, numbers: Floats | None = None
    ) -> NDArray[np.int64]:
        """The most probable level."""
        return np.asarray(conditional.argmax(axis=-1))


CATEGORICAL = Categorical()


@dataclass(frozen=True)
class OrdinalKind(Scored):
    """log p(y | rest) = phi(y) + s(y) m - constant: adjacent-category logits, s(y) the score.

    `level_scores` is empty for 0, 1, 2, ...; `thresholds` says whether every level has a term of
    its own, or all of them a quadratic function of the score (Blume and Capel).
    """

    level_scores: tuple[float, ...] = ()
    thresholds: Thresholds = "free"

    name = "ordinal"
    short = "ord"
    fill = "#FBE3B5"
    line = "#8C510A"
    marker = "D"
    marker_size = 0.78
    assumption = (
        "Ordinal columns act by the scores of their levels: steps are as large as the scores say."
    )
    has_levels = True
    predicted_by = "mode"

    @property
    def is_free(self) -> bool:
        """Whether every level has a threshold."""
        return self.thresholds == "free"

    def own_scores(self, n_values: int) -> Floats:
        """(n_values,) scores of the levels: those given, or 0, 1, 2, ..."""
        if self.level_scores:
            return np.array(self.level_scores)
        return np.arange(n_values, dtype=np.float64)

    def kept(self, observed: NDArray[np.bool_]) -> Scored:
        """Return the kind with the observed levels only, which keep their scores."""
        if observed.all():
            return self
        return replace(self, level_scores=tuple(self.own_scores(len(observed))[observed].tolist()))

    def problem(self, levels: tuple[Any, ...], transform: Transform | None) -> str | None:
        """A transform."""
        return None if transform is None else "is ordinal, so it has no transform"


ORDINAL = OrdinalKind()


@dataclass(frozen=True)
class CountKind(Scored):
    """log p(c | rest) = a sqrt(c) + b c - log c! + sqrt(c) m - constant, for c = 0, ..., R.

    With the root of the count the distribution exists whatever signs edges have: edges between
    counts grow like the counts themselves, not like their product.
    """

    zero_term: bool = False
    """Whether zero has a term besides: more or fewer zeros than the rest of the counts suggest."""

    name = "count"
    short = "count"
    fill = "#CFE3F7"
    line = "#1F6FB4"
    marker = "h"
    marker_size = 1.05
    assumption = (
        "Counts act by their square roots, and have a distribution of their own on 0, 1, 2, ..."
    )
    has_levels = False
    predicted_by = "mean"
    filled_by = "median"

    @property
    def is_free(self) -> bool:
        """No: its terms are those of the whole distribution."""
        return False

    @property
    def has_zero_term(self) -> bool:
        """Whether a term for the value zero was asked for."""
        return self.zero_term

    def own_scores(self, n_values: int) -> Floats:
        """The roots of 0, 1, 2, ..."""
        return np.sqrt(np.arange(n_values, dtype=np.float64))

    def amounts(self, n_values: int) -> Floats:
        """The counts themselves."""
        return np.arange(n_values, dtype=np.float64)

    def unknown_score(self, n_values: int) -> float:
        """A count above the largest is seen as the largest."""
        return float(self.scores(n_values)[-1])

    def base(self, n_values: int) -> Floats:
        """Minus the logarithm of c!."""
        return -gammaln(np.arange(n_values) + 1.0)

    def problem(self, levels: tuple[Any, ...], transform: Transform | None) -> str | None:
        """Levels, or a transform."""
        if levels:
            return "is a count, so it has no levels"
        return None if transform is None else "is a count, so it has no transform"


COUNT = CountKind()
