"""Continuous columns: any real number; Gaussian given all others, with one linear term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.families.contract import Floats, Kind, Point, Transform


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
