"""Which columns moderate which edges -> deviations in a layout, their rows and their weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixedgm.model.layout import Floats, Layout
from mixedgm.model.moderation import Moderators
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.products import Products


@dataclass(frozen=True, eq=False)
class Moderated:
    """The wish for moderated edges.

    Parameters
    ----------
    nodes : tuple of int
        The moderators, all covariates.
    factors : ndarray (moderators, p + q, p + q)
        Penalty factors of the deviations; inf leaves one out.
    """

    nodes: tuple[int, ...]
    factors: Floats

    def layout(self, layout: Layout, moderators: Moderators, scales: Floats) -> Layout:
        """The layout with the deviations that are wanted; a constant moderator has none."""
        absent = np.isinf(self.factors)
        absent[scales[list(self.nodes)] == 0.0] = True
        return layout.moderated(moderators.n_features(layout), absent)

    def rows(self, rows: MemoryRows, layout: Layout, moderators: Moderators) -> MemoryRows:
        """The same rows with the features that design columns are multiplied by."""
        features = moderators.features(layout, rows.numbers, rows.codes)
        return replace(rows, products=Products(features, moderators.centre(layout)))

    def weights(
        self, layout: Layout, scales: Floats, weights: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """Yardstick and penalty weights: those of deviations times sqrt(tr cov) of the moderator.

        The penalty's are multiplied by their factors, too.
        """
        deviating = np.flatnonzero(layout.moderator >= 0)
        which = layout.moderator[deviating]
        u, v = layout.pairs[deviating].T
        yardstick, penalty = (part.copy() for part in weights)
        spread = scales[list(self.nodes)][which]
        yardstick[deviating] *= spread
        penalty[deviating] *= spread * self.factors[which, u, v]
        return yardstick, penalty
