"""Hurdle columns: zero, or any real number; to the others, whether it is zero and how much."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.families.contract import Floats, Kind, Point, Transform

LOG_TWO_PI = float(np.log(2.0 * np.pi))


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

    def statistics(self, values: Floats) -> Floats:
        """(n, 3) statistics of the own terms: b, y, -y^2 / 2, with y in units of its scale."""
        y = self.amounts(values) / self.scale[1]
        return np.column_stack([values != 0.0, y, -0.5 * y**2])

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
        a = odds - 0.5 * (mean**2 / variance + LOG_TWO_PI + np.log(variance))
        return np.array([a, mean / variance, 1.0 / variance])

    # -- as every kind -----------------------------------------------------------------------------

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
