"""Count columns: whole numbers from 0 to a largest one; to the others, the root of the count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from mixedgm.model.kinds.contract import Floats, Transform
from mixedgm.model.kinds.scored import Scored


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
