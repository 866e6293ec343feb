"""A solver's theta <-> Params in the data's own units, over all declared levels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Layout
from mixedgm.model.moderation import Moderators, over_observed
from mixedgm.model.params import (
    NodewiseParams,
    Params,
    Units,
    from_theta,
    to_theta,
    with_all_levels,
)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """What solver coordinates leave out: units, levels without rows, moderators.

    Parameters
    ----------
    layout : Layout
        Over observed levels.
    units : Units
    observed : bool array (sum of declared levels,)
        Levels that have rows.
    n_levels : tuple of int
        Declared levels.
    moderators : Moderators or None
    """

    layout: Layout
    units: Units
    observed: NDArray[np.bool_]
    n_levels: tuple[int, ...]
    moderators: Moderators | None = None

    def params(self, theta: Floats) -> Params:
        """Solver coordinates -> the data's own units and all declared levels."""
        own = self.units.to_own(from_theta(self.layout, theta))
        if self.moderators is not None:
            moderation = self.moderators.to_own(self.layout, theta, self.units)
            own = replace(own, moderation=moderation)
        return with_all_levels(own, self.observed, self.n_levels)

    def over_observed(self, params: Params) -> Params:
        """The data's own units and all declared levels -> standardised, observed levels only."""
        keep = np.flatnonzero(self.observed)
        ends = np.cumsum(self.n_levels)[:-1]
        parts = np.split(self.observed, ends) if self.n_levels else []
        standard = self.units.to_standard(params)
        found = replace(
            standard,
            n_levels=tuple(int(part.sum()) for part in parts),
            category_shift=standard.category_shift[:, keep],
            cat_interaction=standard.cat_interaction[np.ix_(keep, keep)],
            cat_bias=standard.cat_bias[keep],
            moderation=None,
        )
        if isinstance(found, NodewiseParams):
            found = replace(found, level_effect=found.level_effect[keep])
        return found

    def theta(self, params: Params, standard: Params) -> Floats:
        """Solver coordinates of `standard`, with the deviations of `params` where there are any."""
        if self.moderators is None:
            return to_theta(self.layout, standard)
        if params.moderation is None:
            d = self.layout.n_columns
            stack = np.zeros((self.layout.n_products - d, d))
        else:
            own = over_observed(params.moderation, params.n_gaussian, self.observed, self.n_levels)
            stack = self.moderators.to_stack(self.layout, own, self.units)
        return to_theta(self.layout, standard, stack)
