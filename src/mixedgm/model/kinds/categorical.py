"""Categorical columns: a few levels without order; a softmax with a bias for every level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.kinds.contract import Floats, Kind, Point, Transform


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
