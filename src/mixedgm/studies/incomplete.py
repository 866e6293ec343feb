"""A fitted model and rows with gaps -> predictions and losses of cells, given what a row has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.fitted import FittedModel, Points
from mixedgm.model.layout import Floats
from mixedgm.rows.predict import cell_losses
from mixedgm.studies.joint_cells import JointCells
from mixedgm.table.gaps import Gaps

__all__ = ["level_probabilities", "node_losses", "predicted", "row_score"]


def predicted(
    fitted: FittedModel, gaps: Gaps, targets: Sequence[int], points: Points | None = None
) -> dict[int, NDArray[Any]]:
    """Predictions of the cells of some nodes, given the rest of their row.

    Parameters
    ----------
    fitted : FittedModel
        The model.
    gaps : Gaps
        The rows; their covariates are known.
    targets : sequence of int
        The nodes that are predicted.
    points : mapping of int to callable, optional
        What makes a prediction of the conditional of every node, as `FittedModel.points`.

    Returns
    -------
    dict of int to ndarray
        Of every node that is predicted: by default, means, or codes of values.
    """
    every = fitted.points() if points is None else points
    points = {node: every[node] for node in targets}
    out = fitted.predict(gaps.design, points)
    with JointCells(fitted, gaps) as cells:
        for node, rows, mean in cells.means(targets):
            out[node][rows] = points[node](mean)
        for node, rows, log_prob in cells.log_probs(_discrete(fitted, targets)):
            out[node][rows] = points[node](log_prob.T)
    return out


def level_probabilities(fitted: FittedModel, gaps: Gaps, column: str) -> Floats:
    """(n, values) probabilities of the values of a column, given the rest of every row."""
    out = fitted.predict_proba(gaps.design, column)
    with JointCells(fitted, gaps) as cells:
        for _, rows, log_prob in cells.log_probs([fitted.schema.node_index(column)]):
            out[rows] = np.exp(log_prob).T
    return out


def node_losses(fitted: FittedModel, gaps: Gaps) -> dict[str, float]:
    """Mean negative log likelihood of the observed cells of every target column, by name.

    NaN for a column without any observed cell.
    """
    if not gaps.missing.any():
        return fitted.node_losses(gaps.design)
    losses, weights = _losses(fitted, gaps)
    total = weights @ ~np.isnan(losses)
    sums = weights @ np.nan_to_num(losses, posinf=np.inf)
    mean = np.divide(sums, total, out=np.full(len(total), np.nan), where=total > 0.0)
    named = dict(zip(_targets(fitted), mean.tolist(), strict=True))
    return {name: named[fitted.schema.node_index(name)] for name in fitted.schema.targets}


def row_score(fitted: FittedModel, gaps: Gaps) -> float:
    """Mean over rows of the log likelihoods of a row's observed cells, added up."""
    if not gaps.missing.any():
        return -sum(fitted.node_losses(gaps.design).values())
    losses, weights = _losses(fitted, gaps)
    return -float(weights @ np.nansum(losses, axis=1) / weights.sum())


def _targets(fitted: FittedModel) -> list[int]:
    return [fitted.schema.node_index(name) for name in fitted.schema.targets]


def _discrete(fitted: FittedModel, nodes: Sequence[int]) -> list[int]:
    """Those of the nodes that have finitely many values."""
    return [node for node in nodes if not fitted.schema.spans.is_real(node)]


def _losses(fitted: FittedModel, gaps: Gaps) -> tuple[Floats, Floats]:
    """Negative log likelihood of the cells of all targets, NaN where missing; weights of rows."""
    design, place, targets = gaps.design, fitted.schema.spans.place, _targets(fitted)
    out = cell_losses(fitted.params, design.numbers, design.codes, fitted.n_observed)
    with JointCells(fitted, gaps) as cells:
        for node, rows, log_density in cells.log_densities(targets):
            out[rows, node] = -log_density
        for node, rows, log_prob in cells.log_probs(_discrete(fitted, targets), observed=True):
            codes = gaps.codes[rows, place(node)]
            seen = np.flatnonzero(codes >= 0)  # an unseen level counts half a row, whatever else
            out[rows[seen], node] = -log_prob[codes[seen], seen]
    out[gaps.missing] = np.nan
    return out[:, targets], np.ones(len(out)) if gaps.weights is None else gaps.weights
