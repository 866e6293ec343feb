"""A fitted model -> the same with another precision matrix, which need not be positive definite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import mixedgm as mg


def with_precision(model: mg.MixedGraphicalModel, precision: np.ndarray) -> mg.MixedGraphicalModel:
    """A model of its own, with everything else as it was."""
    params = model.params_.with_precision(precision)
    twin = mg.MixedGraphicalModel(**model.get_params())
    return twin._adopt(replace(model.fitted_, params=params))


def with_strong_edge(model: mg.MixedGraphicalModel, correlation: float) -> mg.MixedGraphicalModel:
    """The first two continuous columns have this partial correlation; above 1 there is no
    distribution of both."""
    precision = model.params_.precision.copy()
    size = correlation * np.sqrt(precision[0, 0] * precision[1, 1])
    precision[0, 1] = precision[1, 0] = -size
    return with_precision(model, precision)
