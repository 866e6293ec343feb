"""Ordinal columns: a few levels with an order; to the others, one score for each level."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.kinds.contract import Floats, Transform
from mixedgm.model.kinds.scored import Scored

Thresholds = Literal["free", "quadratic"]


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
