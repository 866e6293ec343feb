"""Material in -> the tables of the report, each with what its columns mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mixedgm.report.material import Material
from mixedgm.report.plain import Json, shown, value
from mixedgm.results.tables import edges_columns, nodes_columns
from mixedgm.studies.edges.tests import EdgeTests
from mixedgm.studies.groups.result import DifferenceComparison, GroupComparison
from mixedgm.studies.resampling.result import Bootstrap
from mixedgm.table.read import Columns, plain_columns

_MOST_ROWS = 3_000


class _Field(NamedTuple):
    """A column of a table: how it is called, what it means."""

    label: str
    meaning: str = ""


_FIELDS = {
    "source": _Field("source"),
    "target": _Field("target"),
    "moderator": _Field("moderator", "empty: the edge itself; else how it varies with this column"),
    "kind": _Field("kind"),
    "strength": _Field("strength", "of the relation given all other columns, from 0 to 1"),
    "norm": _Field("norm", "of the parameters, as the penalty sees them"),
    "shrunken_norm": _Field("penalised norm", "norm before the graph was refitted"),
    "sign": _Field("sign", "empty where an edge has no single direction"),
    "partial_correlation": _Field("partial corr.", "of two continuous columns"),
    "directed": _Field("directed", "from a covariate to what it predicts"),
    "frequency": _Field("frequency", "share of the subsamples that have the edge"),
    "probability": _Field("probability", "that there is an edge, by the tests of all pairs"),
    "ridge": _Field("ridge", "the data do not determine its parameters; a small ridge was added"),
    "column": _Field("column"),
    "role": _Field("role"),
    "n_levels": _Field("values", "how many values a column can have; 0 for numbers"),
    "degree": _Field("edges", "number of neighbours"),
    "total_strength": _Field("total strength", "sum of the strengths of its edges"),
    "lam": _Field("λ", "penalty"),
    "r2": _Field("R²", "share of the variance that the other columns explain"),
    "accuracy": _Field("accuracy", "share of the rows whose level is predicted"),
    "majority": _Field("majority", "share of the most frequent level"),
    "normalised_accuracy": _Field("norm. accuracy", "accuracy beyond the majority, up to 1"),
    "held_out": _Field(
        "held out", "on rows without part in the estimates; 0 or less: unpredictable"
    ),
    "deviance_explained": _Field("deviance expl.", "compared with the column without edges"),
    "missing": _Field("missing", "cells without a value"),
    "estimate": _Field("estimate", "in standard deviations; from the first to the second level"),
    "se": _Field("s.e.", "standard error"),
    "lower": _Field("lower", "end of the 95 % interval"),
    "upper": _Field("upper", "end of the 95 % interval"),
    "df": _Field("df", "number of free parameters"),
    "p": _Field("p", "probability of so much evidence by chance alone"),
    "p_holm": _Field("p (Holm)", "adjusted for all pairs: any false edge"),
    "p_bh": _Field("p (B–H)", "adjusted for all pairs: share of false edges"),
    "log_bf": _Field("log BF", "log Bayes factor for an edge"),
    "verdict": _Field("verdict", "present or absent from a Bayes factor of 10 on"),
    "in_model": _Field("in model", "whether the graph has the edge"),
    "source_level": _Field("source level"),
    "target_level": _Field("target level"),
    "inclusion": _Field("inclusion", "share of the resamples that have the edge"),
    "same_sign": _Field("same sign", "share of the resamples with the sign of the model"),
    "mean": _Field("mean", "mean strength over resamples, 0 where the edge is missing"),
    "present_in": _Field("present in", "groups whose graph has the edge"),
    "difference": _Field("difference", "largest between two groups"),
    "between": _Field("between"),
    "p_max": _Field("p (all pairs)", "adjusted for all pairs"),
    "significant": _Field("significant"),
    "probability_differs": _Field("probability", "that the pair differs between groups"),
    "differs": _Field("differs"),
    "group": _Field("group"),
    "n_rows": _Field("rows"),
    "n_edges": _Field("edges"),
    "converged": _Field("converged"),
    "statistic": _Field("statistic"),
    "value": _Field("value"),
    "measure": _Field("measure"),
    "dropped": _Field("dropped", "share of the rows left out"),
    "correlation": _Field("correlation", "with the centrality in the whole table"),
}


def tables_content(material: Material) -> list[Json]:
    """Return every table that there is something for."""
    tables = [_edges(material), _columns(material)]
    if material.studies.tests is not None:
        tables.append(_tests(material, material.studies.tests))
    if material.studies.bootstrap is not None:
        tables += _bootstrap(material, material.studies.bootstrap)
    if material.studies.comparison is not None:
        tables += _groups(material, material.studies.comparison)
    return tables


def _table(material: Material, key: str, title: str, note: str, columns: Columns) -> Json:
    """Return a table column by column, with the columns of the graph that each row is about."""
    n_rows = len(next(iter(columns.values())))
    kept = {name: list(values)[:_MOST_ROWS] for name, values in columns.items()}
    if n_rows > _MOST_ROWS:
        note += f" The first {_MOST_ROWS:,} of {n_rows:,} rows."
    return {
        "key": key,
        "title": title,
        "note": note.strip(),
        "columns": [_column(name, values) for name, values in kept.items()],
        "about": _about(material, kept),
    }


def _column(name: str, values: Sequence[Any]) -> Json:
    known = _FIELDS.get(name, _Field(name.replace("_", " ")))
    cells = [value(cell) for cell in values]
    plain = [cell for cell in cells if cell is not None]
    numeric = bool(plain) and all(isinstance(c, int | float) for c in plain)
    truth = bool(plain) and all(isinstance(c, bool) for c in plain)
    return {
        "name": shown(name),
        "label": shown(known.label),
        "meaning": known.meaning,
        "type": "truth" if truth else "number" if numeric else "text",
        "cells": cells,
    }


def _about(material: Material, columns: Mapping[str, Sequence[Any]]) -> Json:
    """Return, for every row, the places of its columns: of an edge two, and of a moderator."""
    ends = ["source", "target", "moderator"] if "source" in columns else ["column"]
    named = [columns[name] for name in ends if name in columns]
    if not named:
        return []
    place = material.place
    return [
        [place.get(name, -1) if isinstance(name, str) else -1 for name in row]
        for row in zip(*named, strict=True)
    ]


def _edges(material: Material) -> Json:
    fitted = material.fitted
    columns = dict(edges_columns(fitted, shrunken=fitted.report.refitted))
    note = "Strongest first. Two columns without an edge are independent given all others."
    return _table(material, "edges", "Edges", note, _worth_showing(columns))


def _columns(material: Material) -> Json:
    columns = dict(nodes_columns(material.fitted))
    del columns["levels"]
    if not any(role != columns["role"][0] for role in columns["role"]):
        del columns["role"]
    by_name = {node.column: node for node in material.predictability}
    if by_name:
        for field in next(iter(by_name.values()))._fields[2:]:
            columns[field] = [
                getattr(by_name[name], field) if name in by_name else None
                for name in columns["column"]
            ]
    if material.gaps is not None and material.gaps.missing.any():
        counts = material.gaps.missing.sum(axis=0)
        nodes = map(material.fitted.schema.node_index, columns["column"])
        columns["missing"] = [int(counts[node]) for node in nodes]
    note = "How each column is related to the others"
    note += ", and how well they predict it." if by_name else "."
    return _table(material, "columns", "Columns", note, _worth_showing(columns))


def _worth_showing(columns: Columns) -> Columns:
    """Return the columns that have a value anywhere."""
    kept = ("source", "target", "column")
    return {
        name: values
        for name, values in columns.items()
        if name in kept or any(value(cell) is not None for cell in values)
    }


def _tests(material: Material, tests: EdgeTests) -> Json:
    columns = plain_columns(tests.edges())
    hidden = (tests.named("statistic"), tests.named("log_bf_unit"), "kind")
    shown_columns = {name: cells for name, cells in columns.items() if name not in hidden}
    note = "; ".join(tests.notes) + "."
    return _table(material, "tests", "Tests", note, _worth_showing(shown_columns))


def _bootstrap(material: Material, bootstrap: Bootstrap) -> list[Json]:
    if bootstrap.kind != "nonparametric":
        note = f"Correlations of centralities when rows are left out, {bootstrap.n_done} resamples."
        columns = plain_columns(bootstrap.stability())
        return [_table(material, "stability", "Stability", note, columns)]
    found = []
    if bootstrap.pair_replicates is not None:
        note = (
            f"How large every edge is, without shrinkage; {bootstrap.n_done} resamples, "
            "intervals of 95 %, the most certain pairs first."
        )
        columns = plain_columns(bootstrap.intervals())
        columns.pop("kind", None)
        found.append(_table(material, "intervals", "Intervals", note, _worth_showing(columns)))
    note = f"How often each edge is found again in {bootstrap.n_done} resamples."
    columns = plain_columns(bootstrap.selection())
    columns.pop("kind", None)
    return [*found, _table(material, "selection", "Found again", note, columns)]


def _groups(material: Material, comparison: GroupComparison) -> list[Json]:
    note = f"{comparison.sentence} " + "; ".join(comparison.notes) + "."
    columns = plain_columns(comparison.edges())
    plain = ("sign_", "se_", "norm_", *(["estimate_"] if comparison.test == "differences" else []))
    names = [name for name in columns if not name.startswith(plain) and name != "kind"]
    hidden = ("statistic", "df", "p_holm", "p_bh")
    pairs = {name: columns[name] for name in names if name not in hidden}
    tables = [
        _table(material, "groups", "Groups", note, plain_columns(comparison.group_table())),
        _table(
            material,
            "graphs",
            "Whole graphs",
            "Do the graphs of the groups differ at all?",
            plain_columns(comparison.tests()),
        ),
        _table(
            material,
            "differences",
            "Differences",
            "Pairs of columns, the most different first.",
            _worth_showing(pairs),
        ),
    ]
    if isinstance(comparison, DifferenceComparison):
        untested = plain_columns(comparison.untested())
        if len(untested["source"]):
            what = "Pairs of columns whose difference could not be tested."
            tables.append(_table(material, "untested", "Not tested", what, untested))
    return tables
