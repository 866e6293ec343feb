"""Checked options -> Recipe: how to fit a table, and its folds and subsamples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from mixedgm.model.layout import Floats, Layout
from mixedgm.model.moderation import Moderators
from mixedgm.model.pair_weights import PairWeights
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.products import Products
from mixedgm.solve.choose import Auto
from mixedgm.solve.loop import Solver

Weights = Literal["calibrated", "uniform", "adaptive"]
Loss = Literal["pseudolikelihood", "likelihood", "likelihood-mc", "nodewise"]
ALL_PAIRS_UP_TO = 4_000_000
"""Edge parameters from which on a table is wide: about 2,800 continuous columns."""
Lam = float | tuple[float, ...]
"""One penalty, or one per column of the table (NaN for covariates): of separate regressions."""


@dataclass(frozen=True, eq=False)
class Moderated:
    """The wish for moderated edges."""

    nodes: tuple[int, ...]
    """The moderators, all covariates."""
    factors: Floats
    """(moderators, p + q, p + q) penalty factors of the deviations; inf leaves one out."""

    def layout(self, layout: Layout, moderators: Moderators, scales: Floats) -> Layout:
        """The layout with the deviations that are wanted; a constant moderator has none."""
        absent = np.isinf(self.factors)
        absent[scales[list(self.nodes)] == 0.0] = True
        return layout.moderated(moderators.n_features(layout), absent)

    def rows(self, rows: MemoryRows, layout: Layout, moderators: Moderators) -> MemoryRows:
        """Return the rows with the features that design columns are multiplied by."""
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


@dataclass(frozen=True, eq=False)
class Recipe:
    """How rows become a task (`task.prepare`), and a task a path (`path.solve_path`)."""

    solver: Solver = field(default_factory=Auto)
    tol: float = 1e-5
    max_iter: int = 1000
    weights: Weights = "calibrated"
    factors: PairWeights | None = None
    """Penalty factors of pairs of nodes; inf leaves an edge out."""
    loss: Loss = "pseudolikelihood"
    seed: np.random.SeedSequence | None = None
    """Seed of losses that are sampled."""
    rule: str = "and"
    """Which edges separate regressions have."""
    moderated: Moderated | None = None
    """Which columns moderate edges."""
    refits: bool = False
    """Whether graphs are refitted: edges that no refit could have are then left out."""
    most_parameters: float = ALL_PAIRS_UP_TO
    """Edge parameters up to which the layout has all permitted pairs; beyond that, candidates."""
    device: str = "cpu"
    """Where passes over the rows are made: see `rows.device.rows_on`."""


def by_conditionals(recipe: Recipe) -> Recipe:
    """Return the recipe by the pseudolikelihood, whatever the model's loss and penalty."""
    return replace(recipe, loss="pseudolikelihood", weights="calibrated")
