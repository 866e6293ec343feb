"""The Gaussian family: continuous columns, any real number, with one linear term."""

from __future__ import annotations

from dataclasses import dataclass
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

LOG_TWO_PI = float(np.log(2.0 * np.pi))
_FARTHEST = 1e300


def log_integral(linear: Array, precision: Array, xp: Any = np) -> Array:
    """Logarithm of the integral of exp(linear x - precision x^2 / 2) over x."""
    return 0.5 * (linear * linear / precision + xp.log(2.0 * np.pi / precision))


def log_normal(values: Floats, mean: Floats | float, variance: Floats | float) -> Floats:
    """Log density of normal distributions."""
    with np.errstate(over="ignore"):  # a value as far away as doubles go
        square = np.minimum((values - mean) ** 2 / variance, _FARTHEST)
    return np.asarray(-0.5 * (square + np.log(variance) + LOG_TWO_PI))


@dataclass(frozen=True, eq=False)
class GaussianFamily(Family):
    """log p(x) = slope x - precision x^2 / 2 - constant, slope = linear term + predictor."""

    def given(self, own: Array, predictors: Array, xp: Any = np) -> GaussianConditional:
        """Normal distributions."""
        precision = own[:, 1:]
        return GaussianConditional(self, predictors[:, 0, :] + own[:, :1], precision, xp)

    def columns(self, codes: Codes, numbers: Floats) -> Floats:
        """The numbers."""
        return numbers[:, None, :]

    def numbers(self, codes: Codes, columns: Floats) -> Floats:
        """The only column."""
        return columns[:, 0, :]

    def statistics(self, codes: Codes, numbers: Floats) -> Floats:
        """Numbers and minus half their squares."""
        return np.stack([numbers, -0.5 * numbers**2], axis=1)

    def with_noise(self, own: Floats, noise: Floats) -> Floats:
        """Noise adds to the variance and leaves the mean."""
        precision = 1.0 / (1.0 / own[:, 1] + noise)
        return np.column_stack([own[:, 0] * precision / own[:, 1], precision])

    def states(self, own: Floats) -> States:
        """One state."""
        return States(np.zeros(1), np.zeros((1, 1)), (float(own[0]), float(own[1])))


@dataclass(frozen=True, eq=False)
class GaussianConditional(Conditional):
    """Normal distributions of numbers."""

    family: GaussianFamily
    slope: Array
    """(G, n)."""
    precision: Array
    """(G, 1)."""
    xp: Any = np

    @property
    def log_normaliser(self) -> Array:
        """(G, n) logarithm of the integral."""
        return log_integral(self.slope, self.precision, self.xp)

    @property
    def mean(self) -> Array:
        """(G, n)."""
        return self.slope / self.precision

    @property
    def variance(self) -> Array:
        """(G, 1)."""
        return 1.0 / self.precision

    @property
    def columns(self) -> Array:
        """Means."""
        return self.mean[:, None, :]

    @property
    def terms(self) -> Array:
        """Means, and minus half the second moments."""
        mean = self.mean
        return self.xp.stack([mean, -0.5 * (mean * mean + self.variance)], axis=1)

    def covariances(self) -> tuple[Array, Array]:
        """Variances; and with the own terms."""
        mean = self.mean
        variance = self.xp.broadcast_to(self.variance, mean.shape)
        with_terms = self.xp.stack([variance, -mean * variance], axis=1)
        return variance[:, None, None, :], with_terms[:, None, :, :]

    def scores(self, codes: Codes, numbers: Floats) -> list[Floats]:
        """Of the mean; half of the square, less what is expected of it."""
        mean = self.mean
        return [mean - numbers, 0.5 * (numbers**2 - mean**2 - self.variance)]

    def log_density(self, codes: Codes, numbers: Floats) -> Floats:
        """Log normal density."""
        return log_normal(numbers, self.mean, self.variance)

    def drawn(self, rng: np.random.Generator) -> tuple[Codes, Floats]:
        """State 0, and a normal number."""
        mean = self.mean
        numbers = mean + rng.standard_normal(mean.shape) * np.sqrt(self.variance)
        return np.zeros(mean.shape, dtype=np.int64), numbers


@dataclass(frozen=True)
class Continuous(Kind):
    """log p(x | rest) = (alpha + m) x - beta x^2 / 2 - constant, others see x itself."""

    name = "continuous"
    short = "cont"
    fill = "#BFE5DC"
    line = "#009E73"
    marker = "o"
    marker_size = 1.0
    is_gaussian = True
    is_numeric = True
    has_levels = False
    predicted_by = "mean"
    measure = "r2"
    assumption = (
        "Continuous columns are normal given all others, with the same spread everywhere and "
        "effects in straight lines."
    )

    def family(self, n_values: int) -> Family:
        """Gaussian."""
        return GaussianFamily()

    def width(self, n_values: int) -> int:
        """One: the number."""
        return 1

    def n_biases(self, n_values: int) -> int:
        """One: alpha."""
        return 1

    def freedom(self, n_values: int) -> int:
        """One."""
        return 1

    def is_signed(self, n_values: int) -> bool:
        """Always."""
        return True

    def variance(self, mean: Floats, varies: Floats) -> Floats:
        """1, by standardisation, or 0."""
        return varies

    def problem(self, levels: tuple[Any, ...], transform: Transform | None) -> str | None:
        """Levels."""
        return "is continuous, so it has no levels" if levels else None

    def axis(self, name: str, level_names: tuple[str, ...]) -> tuple[str, ...]:
        """The name of the column."""
        return (name,)

    def encode(self, values: NDArray[Any], transform: Transform | None) -> NDArray[Any]:
        """The number, or its normal score."""
        return values if transform is None else transform.forward(values)

    def decode(self, values: NDArray[Any], transform: Transform | None) -> NDArray[Any]:
        """The number."""
        return values if transform is None else transform.inverse(values)

    def term_names(self, level_names: tuple[str, ...]) -> tuple[str | None, ...]:
        """Alpha has none."""
        return (None,)

    def point(
        self, conditional: Floats, which: Point | None = None, numbers: Floats | None = None
    ) -> NDArray[np.float64]:
        """The mean."""
        return conditional


CONTINUOUS = Continuous()
