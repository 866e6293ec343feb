"""Checked options -> Recipe: how to fit a table, and its folds and subsamples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mixedgm.model.layout import Floats
from mixedgm.path.moderated import Moderated
from mixedgm.solve.choose import Auto
from mixedgm.solve.loop import Solver

Weights = Literal["calibrated", "uniform", "adaptive"]
Loss = Literal["pseudolikelihood", "likelihood", "likelihood-mc", "nodewise"]
Lam = float | tuple[float, ...]
"""One penalty, or one per column of the table (NaN for covariates): of separate regressions."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """How rows become a task (`task.prepare`), and a task a path (`path.solve_path`).

    Parameters
    ----------
    solver : Solver
    tol : float
    max_iter : int
    weights : {"calibrated", "uniform", "adaptive"}
    factors : ndarray (p + q, p + q), optional
        Penalty factors by pair of nodes; inf leaves an edge out.
    loss : {"pseudolikelihood", "likelihood", "likelihood-mc", "nodewise"}
    seed : SeedSequence, optional
        For losses that are sampled.
    rule : {"and", "or"}
        Which edges separate regressions have.
    moderated : Moderated, optional
        Which columns moderate edges.
    refits : bool
        Whether graphs are refitted: edges that no refit could have are then left out.
    """

    solver: Solver = field(default_factory=Auto)
    tol: float = 1e-5
    max_iter: int = 1000
    weights: Weights = "calibrated"
    factors: Floats | None = None
    loss: Loss = "pseudolikelihood"
    seed: np.random.SeedSequence | None = None
    rule: str = "and"
    moderated: Moderated | None = None
    refits: bool = False
