"""The hurdle family: zero, or any real number; to the others, whether it is zero and how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from mixedgm.families.gaussian import log_integral, log_normal


@dataclass(frozen=True, eq=False)
class HurdleFamily(Family):
    """log p(x) = b (height + m_b) + slope x - precision x^2 / 2 - constant, with b = (x != 0).

    The slope is the linear term + m_x.  Others see b and x in units of their own:
    ``per_b * b - low`` and ``x - middle``, and m_b is ``per_b`` times the predictor of the first.
    """

    constants: Array
    """(3, G, 1) per_b, middle, low: `HurdleKind.constants`."""

    def given(self, own: Array, predictors: Array, xp: Any = np) -> HurdleConditional:
        """Zero, or a normal number: the odds of a number have the integral over it."""
        slope, precision = own[:, 1:2] + predictors[:, 1, :], own[:, 2:]
        odds = own[:, :1] + self.constants[0] * predictors[:, 0, :]
        odds = odds + log_integral(slope, precision, xp)
        return HurdleConditional(self, odds, slope / precision, 1.0 / precision, xp)

    def seen(self, of_b: Array, of_x: Array, xp: Any = np) -> Array:
        """(G, 2, n) b and x as others see them; any expectations of them, too."""
        per_b, middle, low = self.constants[0], self.constants[1], self.constants[2]
        return xp.stack([per_b * of_b - low, of_x - middle], axis=1)

    def columns(self, codes: Codes, numbers: Floats) -> Floats:
        """Whether, and how much."""
        return np.asarray(self.seen(codes > 0, np.where(codes > 0, numbers, 0.0)))

    def numbers(self, codes: Codes, columns: Floats) -> Floats:
        """(G, n) x, which is zero in state 0."""
        return np.where(codes > 0, columns[:, 1, :] + self.constants[1], 0.0)

    def statistics(self, codes: Codes, numbers: Floats) -> Floats:
        """b, x, and minus half the square of x."""
        x = np.where(codes > 0, numbers, 0.0)
        return np.stack([codes > 0, x, -0.5 * x**2], axis=1)

    def with_noise(self, own: Floats, noise: Floats) -> Floats:
        """Noise, of so much over all rows, is in what is not zero, whose share stays."""
        height, slope, precision = own.T
        odds = height + log_integral(slope, precision)
        noisy = 1.0 / (1.0 / precision + noise * (1.0 + np.exp(-odds)))
        tilted = slope * noisy / precision
        return np.column_stack([odds - log_integral(tilted, noisy), tilted, noisy])

    def states(self, own: Floats) -> States:
        """Zero, and not zero."""
        height, slope, precision = own.tolist()
        columns = np.array([[0.0, 0.0], [float(self.constants[0, 0, 0]), 0.0]])
        return States(np.array([0.0, height]), columns, (slope, precision))

    @classmethod
    def stacked(cls, families: Sequence[HurdleFamily]) -> HurdleFamily:
        """Constants side by side."""
        return cls(np.concatenate([each.constants for each in families], axis=1))


@dataclass(frozen=True, eq=False)
class HurdleConditional(Conditional):
    """Zero, or normal numbers."""

    family: HurdleFamily
    odds: Array
    """(G, n) log odds of a number against zero."""
    mean: Array
    """(G, n) of the number."""
    variance: Array
    """(G, 1) of the number."""
    xp: Any = np

    @cached_property
    def _small(self) -> Array:
        return self.xp.exp(-self.xp.abs(self.odds))

    @cached_property
    def log_normaliser(self) -> Array:
        """(G, n) logarithm of 1 + odds."""
        xp = self.xp
        return xp.where(self.odds > 0.0, self.odds, 0.0) + xp.log1p(self._small)

    @cached_property
    def chance(self) -> Array:
        """(G, n) probability of a number."""
        return self.xp.where(self.odds >= 0.0, 1.0, self._small) / (1.0 + self._small)

    @property
    def log_prob(self) -> Array:
        """(G, 2, n) log probabilities of zero and of a number."""
        return self.xp.stack([-self.log_normaliser, self.odds - self.log_normaliser], axis=1)

    @property
    def columns(self) -> Array:
        """Chances and means, zeros included."""
        return self.family.seen(self.chance, self.chance * self.mean, self.xp)

    @property
    def terms(self) -> Array:
        """Chances, means and minus half the second moments."""
        chance, mean = self.chance, self.mean
        square = -0.5 * chance * (self.variance + mean * mean)
        return self.xp.stack([chance, chance * mean, square], axis=1)

    def of_statistics(self) -> tuple[Array, ...]:
        """(G, n) each: covariances of b, x and q = -x^2 / 2, the lower triangle row by row."""
        chance, mean, variance = self.chance, self.mean, self.variance
        zero, half = self._small / (1.0 + self._small) ** 2, 0.5 * variance
        middle, square, there = mean * zero, half + 0.5 * mean * mean, chance * variance
        return (
            zero,
            middle,
            there + mean * middle,
            -zero * square,
            -mean * (there + zero * square),
            there * (half + mean * mean) + zero * square * square,
        )

    def covariances(self) -> tuple[Array, Array]:
        """Covariances of per_b b and x; and with b, x and -x^2 / 2."""
        xp, per_b = self.xp, self.family.constants[0]
        bb, xb, xx, qb, qx, _ = self.of_statistics()
        of_b = xp.stack([per_b * each for each in (bb, xb, qb)], axis=1)
        with_terms = xp.stack([of_b, xp.stack([xb, xx, qx], axis=1)], axis=1)
        units = xp.stack([per_b, xp.ones_like(per_b)], axis=1)
        return with_terms[:, :, :2, :] * units[:, None, :, :], with_terms

    def scores(self, codes: Codes, numbers: Floats) -> Floats:
        """Of the share, the mean and the square."""
        away = self.terms - self.family.statistics(codes, numbers)
        return np.asarray(away.swapaxes(0, 1))

    def log_density(self, codes: Codes, numbers: Floats) -> Floats:
        """Of zero, or of a number."""
        number = self.odds + log_normal(numbers, self.mean, self.variance)
        return np.asarray(np.where(codes > 0, number, 0.0) - self.log_normaliser)

    def drawn(self, rng: np.random.Generator) -> tuple[Codes, Floats]:
        """Whether, and how much."""
        shape = self.odds.shape
        there = rng.random(shape) < self.chance
        amounts = self.mean + rng.standard_normal(shape) * np.sqrt(self.variance)
        return there.astype(np.int64), np.where(there, amounts, 0.0)


@dataclass(frozen=True)
class HurdleKind(Kind):
    """log p(x | rest) = b (a + m_1) + (alpha + m_2) y - beta y^2 / 2 - constant, b = (x != 0).

    Others see b and y = b (x - location), less `centre` and divided by `scale`.  Own terms are
    those of y / scale, so that they do not depend on units, and of b.  The location changes no
    distribution, but what parameters mean: with the mean of what is not zero, b and y are not
    correlated, and m_1 is what happens to the odds of not zero where the amount is as usual.
    """

    location: float = 0.0
    centre: tuple[float, float] = (0.0, 0.0)
    scale: tuple[float, float] = (1.0, 1.0)

    name = "hurdle"
    short = "hurdle"
    fill = "#F6D5C9"
    line = "#C4512D"
    marker = "p"
    marker_size = 1.1
    is_gaussian = False
    is_numeric = True
    has_spike = True
    has_levels = False
    predicted_by = "mean"
    measure = "r2"
    assumption = (
        "Hurdle columns have two parts: whether they are zero, and how much they are if not, which "
        "is normal given all others."
    )

    @property
    def is_free(self) -> bool:
        """No: its terms are those of the whole distribution."""
        return False

    def standardised(self, centre: Floats, scale: Floats) -> HurdleKind:
        """Return the kind with design columns in other units; 0 and 1 keep those of the table."""
        middle, unit = (float(centre[0]), float(centre[1])), (float(scale[0]), float(scale[1]))
        return replace(self, centre=middle, scale=unit)

    def amounts(self, values: Floats) -> Floats:
        """(n,) y of values of the table."""
        return np.where(values != 0.0, values - self.location, 0.0)

    def columns(self, values: Floats) -> Floats:
        """(n, 2) design columns of values of the table."""
        both = np.column_stack([values != 0.0, self.amounts(values)])
        return np.asarray((both - self.centre) / self.scale)

    @property
    def constants(self) -> tuple[float, float, float]:
        """Constants of a pass over the rows: 1 / scale of b, and centre / scale of x and of b."""
        (b, x), (scale_b, scale_x) = self.centre, self.scale
        return 1.0 / scale_b, x / scale_x, b / scale_b

    def moved(self, predictors: Floats) -> Floats:
        """(3,) rise of the own terms when the predictors of both columns rise by so much."""
        return np.array([predictors[0] / self.scale[0], predictors[1], 0.0])

    def marginal(self, means: Floats) -> Floats:
        """(3,) own terms of a column whose statistics have these means, and no edges."""
        share = min(max(float(means[0]), 1e-300), 1.0 - 1e-16)
        mean = means[1] / share
        variance = -2.0 * means[2] / share - mean**2
        if not variance > 1e-13 * mean**2:
            variance = 1.0  # a constant has a variance by custom
        odds = np.log(share) - np.log1p(-share)
        a = odds - log_integral(mean / variance, 1.0 / variance)
        return np.array([a, mean / variance, 1.0 / variance])

    # -- as every kind -----------------------------------------------------------------------------

    def family(self, n_values: int) -> Family:
        """Zero, or Gaussian."""
        return HurdleFamily(np.array(self.constants)[:, None, None])

    def width(self, n_values: int) -> int:
        """Two: whether it is zero, and how much it is."""
        return 2

    def n_biases(self, n_values: int) -> int:
        """Three: a, alpha and beta."""
        return 3

    def freedom(self, n_values: int) -> int:
        """Two."""
        return 2

    def is_signed(self, n_values: int) -> bool:
        """No: an edge has a sign for each of its two parts."""
        return False

    def variance(self, mean: Floats, varies: Floats) -> Floats:
        """1, by standardisation, or 0."""
        return varies

    def problem(self, levels: tuple[Any, ...], transform: Transform | None) -> str | None:
        """Levels, or a transform."""
        if levels:
            return "is a hurdle column, so it has no levels"
        return None if transform is None else "is a hurdle column, so it has no transform"

    def axis(self, name: str, level_names: tuple[str, ...]) -> tuple[str, ...]:
        """Whether, and how much."""
        return (f"{name} != 0", name)

    def encode(self, values: NDArray[Any], transform: Transform | None) -> NDArray[Any]:
        """The number."""
        return values

    def decode(self, values: NDArray[Any], transform: Transform | None) -> NDArray[Any]:
        """The number."""
        return values

    def term_names(self, level_names: tuple[str, ...]) -> tuple[str | None, ...]:
        """Names of its three terms."""
        return ("not zero", "linear", "precision")

    @staticmethod
    def parts(mean: Floats, variance: Floats, share: Floats) -> Floats:
        """(n, 3) conditionals for `point`, from moments including zeros and shares of not zero."""
        with np.errstate(divide="ignore"):
            there = np.log(share)
        share = np.maximum(share, 1e-300)
        amount = mean / share
        spread = np.maximum((variance + mean**2) / share - amount**2, 0.0)
        return np.column_stack([there, amount, spread])

    def point(
        self, conditional: Floats, which: Point | None = None, numbers: Floats | None = None
    ) -> NDArray[Any]:
        """Mean, median, or else the likelier part: zero, or the mean where it is not zero.

        The conditional (n, 3) is the log probability of not zero, and mean and variance where it is
        not; the median is that of zeros and a normal distribution with these.
        """
        there, mean, variance = np.exp(conditional[:, 0]), *conditional[:, 1:].T
        if which == "mean":
            return np.asarray(there * mean)
        if which == "median":
            return _median(there, mean, np.sqrt(variance))
        return np.where(there >= 0.5, mean, 0.0)


def _median(there: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Medians of mixtures of zero and a normal distribution, which has the share `there`."""
    from scipy.special import ndtri

    half = 0.5 / np.maximum(there, np.nextafter(0.5, 1.0))  # of all, as a share of what is not zero
    lower, upper = mean - deviation * ndtri(half), mean + deviation * ndtri(half)
    # The median is below zero, above it, or zero: not both, because the lower bound is the smaller.
    not_zero = np.where(upper < 0.0, upper, np.maximum(lower, 0.0))
    return np.asarray(np.where(there > 0.5, not_zero, 0.0))


HURDLE = HurdleKind()
