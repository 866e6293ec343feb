"""A solver's theta <-> Params in the data's own units, over all declared levels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Layout
from mixedgm.model.moderation import Moderators, deviations_over_observed
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import (
    Params,
    Units,
    from_theta,
    over_observed,
    to_theta,
    with_all_levels,
)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """What solver coordinates leave out: units, levels without rows, moderators."""

    layout: Layout
    """Over observed levels."""
    units: Units
    observed: NDArray[np.bool_]
    """Which of all declared levels have rows."""
    nodes: Nodes
    """With all declared levels, in the data's own units."""
    moderators: Moderators | None = None

    def params(self, theta: Floats) -> Params:
        """Solver coordinates -> the data's own units and all declared levels."""
        params = self.units.to_own(from_theta(self.layout, theta))
        if self.moderators is not None:
            moderation = self.moderators.to_own(self.layout, theta, self.units)
            params = replace(params, moderation=moderation)
        return with_all_levels(params, self.observed, self.nodes)

    def over_observed(self, params: Params) -> Params:
        """The data's own units and all declared levels -> standardised, observed levels only."""
        return over_observed(self.units.to_standard(params), self.observed)

    def theta(self, params: Params, standard: Params) -> Floats:
        """Solver coordinates of `standard`, with the deviations of `params` where there are any."""
        if self.moderators is None:
            return to_theta(self.layout, standard)
        if params.moderation is None:
            d = self.layout.n_columns
            stack = np.zeros((self.layout.n_products - d, d))
        else:
            here = deviations_over_observed(params.moderation, params.nodes, self.observed)
            stack = self.moderators.to_stack(self.layout, here, self.units)
        return to_theta(self.layout, standard, stack)
