"""A fitted model in -> its edges, nodes, interactions and path as columns or data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixedgm.base.errors import ParameterError
from mixedgm.fit.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.path.path import Path
from mixedgm.table.read import Columns, frame, frame_library, named_rows_frame, unused_name
from mixedgm.table.schema import Column

_ALONG_PATH = (
    *("n_edges", "objective", "kkt", "kkt_relative", "passes", "curvature_passes"),
    *("seconds", "pass_seconds", "curvature_seconds"),
)


def edges_columns(fitted: FittedModel, *, shrunken: bool = False) -> Columns:
    """Return the edges, strongest first.

    Columns: source, target, kind, strength, sign, partial_correlation, norm.
    Where they say something, also `moderator` (the row is about how an edge varies with it) and
    `directed` (from a covariate) after kind; `probability` (that there is an edge, by the tests
    that chose the graph), `untested` (why an edge was chosen by an information criterion instead,
    and has no probability) and `frequency` (of the subsamples that have the edge) after sign; and
    `ridge` at the end.
    """
    edges = fitted.edges
    columns: dict[str, Any] = {
        "source": [edge.source for edge in edges],
        "target": [edge.target for edge in edges],
        "kind": [edge.kind for edge in edges],
    }
    if fitted.moderators:
        columns["moderator"] = [edge.moderator for edge in edges]
    if fitted.schema.covariates:
        columns["directed"] = np.array([edge.directed for edge in edges], dtype=bool)
    columns["strength"] = np.array([edge.strength for edge in edges], dtype=np.float64)
    columns["sign"] = [edge.sign for edge in edges]
    if fitted.edge_probability is not None:
        columns["probability"] = np.array([fitted.probability_of(e) for e in edges], dtype=float)
    if fitted.report.untested:
        columns["untested"] = [fitted.untested(edge) for edge in edges]
    if fitted.selection_frequency is not None:
        columns["frequency"] = np.array([fitted.frequency_of(e) for e in edges], dtype=np.float64)
    # NaN, not None: the column stays one of numbers when no edge has a value.
    partial = np.array([edge.partial_correlation for edge in edges], dtype=np.float64)
    columns["partial_correlation"] = partial
    columns["norm"] = np.array([edge.norm for edge in edges], dtype=np.float64)
    if fitted.report.ridge:
        columns["ridge"] = np.array([edge.ridge for edge in edges], dtype=bool)
    if shrunken:
        norms = [fitted.shrunken_norm_of(edge) for edge in edges]
        columns["shrunken_norm"] = np.array(norms, dtype=np.float64)
    return columns


def nodes_columns(fitted: FittedModel) -> Columns:
    """Return the columns of the table as nodes of the graph, in the table's order."""
    columns = fitted.schema.columns
    at = [fitted.schema.node_index(column.name) for column in columns]
    there = fitted.edge_norms[np.ix_(at, at)] > 0.0
    lam = fitted.report.lam_by_column
    return {
        "column": [column.name for column in columns],
        "kind": [column.kind for column in columns],
        "role": [column.role for column in columns],
        "n_levels": np.array([c.n_values if c.is_discrete else 0 for c in columns], dtype=np.int64),
        "levels": [_levels(column) for column in columns],
        "degree": np.count_nonzero(there, axis=1).astype(np.int64),
        "total_strength": fitted.edge_strengths[np.ix_(at, at)].sum(axis=1),
        **({} if lam is None else {"lam": lam}),
    }


def _levels(column: Column) -> str | None:
    if column.has_levels:
        return ", ".join(column.level_names)
    return f"0 to {column.n_values - 1}" if column.is_discrete else None


def interaction_frame(
    fitted: FittedModel, a: str, b: str, moderator: str | None = None, *, standardised: bool = False
) -> Any:
    """Return the parameters between two columns: levels of `a` in rows, of `b` in columns.

    A column that is not categorical has its own name on its axis. With a `moderator`, these are the
    deviations with this column, level by level where it is categorical. pandas has names on index
    and columns; in polars and pyarrow the first column, named after `a`, holds the names of rows.
    """
    block = fitted.interaction(a, b, moderator, standardised=standardised)
    by_column = dict(zip(block.column_names, block.values.T, strict=True))
    table = named_rows_frame(block.row_names, by_column, fitted.library, heading=block.row)
    if frame_library(fitted.library) != "pandas":
        return table
    return table.rename_axis(index=block.row, columns=block.column)


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
        **{name: getattr(path, name) for name in _ALONG_PATH},
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
    lams = path_of(fitted).lams
    return [", ".join(name for name, chosen in named if chosen == lam) for lam in lams]


def probability_frame(value_names: Sequence[str], probability: Floats, library: str) -> Any:
    """Return (n, values) probabilities with one column per value; for "numpy", the array."""
    if library == "numpy":
        return probability
    return frame(dict(zip(value_names, probability.T, strict=True)), library)
