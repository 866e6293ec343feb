"""A fitted model in -> its edges, nodes, interactions and path as columns or data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.path.path import Path
from mixedgm.table.assemble import Columns, frame, frame_library, unused_name

__all__ = [
    "chosen_columns",
    "edges_columns",
    "edges_frame",
    "interaction_frame",
    "nodes_columns",
    "nodes_frame",
    "path_columns",
    "path_frame",
    "path_of",
    "probability_frame",
    "score_columns",
]


def edges_columns(fitted: FittedModel, *, shrunken: bool = False) -> Columns:
    """Return the edges, heaviest first: source, target, kind, weight, sign, partial_correlation."""
    edges = fitted.edges
    columns: dict[str, Any] = {
        "source": [edge.source for edge in edges],
        "target": [edge.target for edge in edges],
        "kind": [edge.kind for edge in edges],
        "weight": np.array([edge.weight for edge in edges], dtype=np.float64),
        "sign": [edge.sign for edge in edges],
        # NaN, not None: the column stays one of numbers when no edge has a value.
        "partial_correlation": np.array(
            [
                np.nan if edge.partial_correlation is None else edge.partial_correlation
                for edge in edges
            ],
            dtype=np.float64,
        ),
    }
    if fitted.schema.covariates:
        columns["directed"] = np.array([edge.directed for edge in edges], dtype=bool)
    if fitted.moderators:
        columns["moderator"] = [edge.moderator for edge in edges]
    if fitted.selection_frequency is not None:
        columns["frequency"] = np.array(
            [fitted.frequency_of(edge) for edge in edges], dtype=np.float64
        )
    if fitted.report.ridge:
        columns["ridge"] = np.array([edge.ridge for edge in edges], dtype=bool)
    if shrunken:
        columns["shrunken_weight"] = np.array(
            [fitted.shrunken_weight_of(edge) for edge in edges], dtype=np.float64
        )
    return columns


def edges_frame(fitted: FittedModel, *, shrunken: bool = False) -> Any:
    """Return the edges as a tidy frame of the library of the training table.

    Parameters
    ----------
    fitted : FittedModel
        The model.
    shrunken : bool
        Whether to add `shrunken_weight`: that of the penalised estimate at the chosen lam, before
        the refit.

    Returns
    -------
    data frame
        One row per edge, heaviest first. `weight` is free of units. `sign` is "+" or "-", and
        missing where an end has three or more levels; `partial_correlation` is missing unless
        both ends are continuous. Where the model has covariates, `directed` edges lead from a
        covariate to what it predicts. Where edges are moderated, rows with a `moderator` tell how
        an edge varies with it. Where subsamples chose the graph, `frequency` is the share of
        them that have the edge. Where some edges have a ridge, because the rows alone leave them
        open, `ridge` tells which.
    """
    return frame(edges_columns(fitted, shrunken=shrunken), fitted.library)


def nodes_columns(fitted: FittedModel) -> Columns:
    """Return the columns of the table as nodes of the graph, in the table's order."""
    columns = fitted.schema.columns
    at = [fitted.schema.node_index(column.name) for column in columns]
    weights = fitted.edge_weights[np.ix_(at, at)]
    own: Columns = {}
    if fitted.report.lam_by_column is not None:
        own = {"lam": fitted.report.lam_by_column}
    return {
        "column": [column.name for column in columns],
        "kind": [column.kind for column in columns],
        "role": [column.role for column in columns],
        "n_levels": np.array([len(column.levels) for column in columns], dtype=np.int64),
        "levels": [", ".join(column.level_names) or None for column in columns],
        "degree": np.count_nonzero(weights, axis=1).astype(np.int64),
        "strength": weights.sum(axis=1),
        **own,
    }


def nodes_frame(fitted: FittedModel) -> Any:
    """Return one row per column of the table: kind, role, levels, degree and strength.

    Parameters
    ----------
    fitted : FittedModel
        The model.

    Returns
    -------
    data frame
        `degree` is the number of edges at the node, `strength` the sum of their weights. `levels`
        is text, and missing for a continuous column. Where every column has a penalty of its own,
        `lam` is that.
    """
    return frame(nodes_columns(fitted), fitted.library)


def interaction_frame(
    fitted: FittedModel,
    a: str,
    b: str,
    moderator: str | None = None,
    *,
    standardised: bool = False,
) -> Any:
    """Return the parameters between two columns with level names on both axes.

    Parameters
    ----------
    fitted : FittedModel
        The model.
    a, b : str
        Two different columns. A continuous one has its own name on its axis.
    moderator : str, optional
        The deviations with this column instead; level by level where it is categorical.
    standardised : bool
        Whether continuous columns are in standard deviations, not in their own units.

    Returns
    -------
    data frame
        Rows are the levels of `a`, columns those of `b`. pandas: names on index and columns;
        polars and pyarrow: the first column, named after `a`, holds the names of the rows.
    """
    found = fitted.interaction(a, b, moderator, standardised=standardised)
    library = frame_library(fitted.library)
    by_column = dict(zip(found.column_names, found.values.T, strict=True))
    if library != "pandas":
        first = unused_name(found.row, found.column_names)
        return frame({first: found.row_names, **by_column}, library)
    table = frame(by_column, library)
    return table.set_axis(list(found.row_names), axis=0).rename_axis(
        index=found.row, columns=found.column
    )


def path_of(fitted: FittedModel) -> Path:
    """Return the path of the model; an error says what to do where there is none."""
    if fitted.path is None or len(fitted.path) == 0:
        raise ParameterError(
            "this model has no path of lam values; fit it without lam, or with lams, to get one."
        )
    return fitted.path


def path_columns(fitted: FittedModel) -> Columns:
    """Return one entry per lam of the path, largest lam first, with the selection scores."""
    path = path_of(fitted)
    columns: dict[str, Any] = {
        "lam": path.lams,
        "n_edges": path.n_edges,
        "objective": path.objective,
        "kkt": path.kkt,
        "kkt_relative": path.kkt_relative,
        "passes": path.passes,
        "curvature_passes": path.curvature_passes,
        "seconds": path.seconds,
        "pass_seconds": path.pass_seconds,
        "curvature_seconds": path.curvature_seconds,
        "n_iter": np.array([point.n_iter for point in path.points], dtype=np.int64),
        "converged": path.converged,
    }
    for name, scores in score_columns(fitted).items():
        columns[unused_name(name, list(columns))] = scores
    return columns


def score_columns(fitted: FittedModel) -> dict[str, Floats]:
    """Return the selection scores, one value per lam; with one lam per column, those of each."""
    if not isinstance(fitted.report.lam, tuple):
        return {name: np.asarray(scores) for name, scores in fitted.scores.items()}
    return {
        f"{name}_{column.name}": scores[:, at]
        for name, scores in fitted.scores.items()
        for at, column in enumerate(fitted.schema.columns)
        if column.role == "target"
    }


def chosen_columns(fitted: FittedModel) -> list[str]:
    """Return, for every lam of the path, the columns for which it was chosen."""
    named = list(zip(fitted.schema.names, fitted.report.lam_by_column, strict=True))  # type: ignore[arg-type]
    return [", ".join(name for name, own in named if own == lam) for lam in path_of(fitted).lams]


def path_frame(fitted: FittedModel) -> Any:
    """Return the path as a frame, one row per lam, largest first.

    Parameters
    ----------
    fitted : FittedModel
        The model.

    Returns
    -------
    data frame
        lam, n_edges, objective, kkt, kkt_relative, passes, curvature_passes, seconds,
        pass_seconds, curvature_seconds, n_iter, converged, then one column per selection score
        (and column of the table, where each has a lam of its own).
    """
    return frame(path_columns(fitted), fitted.library)


def probability_frame(level_names: Sequence[str], probability: Floats, library: str) -> Any:
    """Return level probabilities with one column per level, named as the level.

    Parameters
    ----------
    level_names : sequence of str
        Names of the levels.
    probability : ndarray (n, L)
        One row per row of the table.
    library : {"pandas", "polars", "pyarrow", "numpy"}
        "numpy" returns the array as it is.

    Returns
    -------
    data frame or ndarray
        The probabilities.
    """
    if library == "numpy":
        return probability
    return frame(dict(zip(level_names, probability.T, strict=True)), library)
