"""Material in -> what a click opens: parameters and effects of an edge, values of a column."""

from __future__ import annotations

import numpy as np

from mixedgm.fitted import Edge, Interaction
from mixedgm.html_report.material import Material
from mixedgm.html_report.plain import Json, embedded, number, numbers, shown
from mixedgm.model.layout import Floats, Ints
from mixedgm.studies.effects import EdgeEffect
from mixedgm.studies.histograms import Histogram, histogram, known_shares
from mixedgm.table.gaps import Gaps

__all__ = ["column_details", "edge_details"]

_MOST_LEVELS = 20
_MOST_CHARACTERS = 450_000
_DIGITS = 3


def edge_details(material: Material) -> list[Json]:
    """Return parameters and effects of every edge, in the order of the edges, strongest first.

    From some size on, the lightest edges have None, so that the file stays small.
    """
    found: list[Json] = []
    size = 0
    for edge in material.fitted.edges:
        details = None if size > _MOST_CHARACTERS else _edge(material, edge)
        size += len(embedded(details))
        found.append(details)
    return found


def _edge(material: Material, edge: Edge) -> Json:
    block = material.fitted.interaction(edge.source, edge.target, edge.moderator)
    rows = None if edge.moderator is not None else _rows_behind(material, block)
    content: dict[str, Json] = {"parameters": _parameters(block, rows)}
    if edge.moderator is None:
        ends = (edge.source, edge.target)
        both = [material.effects.get(pair) for pair in (ends, ends[::-1])]
        content["effects"] = [_effect(material, each) for each in both if each is not None]
    return content


def _parameters(block: Interaction, behind: Floats | None) -> Json:
    """Return the table of parameters; of very many levels, those that deviate most."""
    rows, columns = (_pronounced(block.values, axis) for axis in (1, 0))
    values = block.values[np.ix_(rows, columns)]
    return {
        "rowTitle": shown(block.row),
        "columnTitle": shown(block.column),
        "rows": [shown(block.row_names[k], 60) for k in rows.tolist()],
        "columns": [shown(block.column_names[k], 60) for k in columns.tolist()],
        "values": [numbers(row, _DIGITS) for row in values],
        "hidden": block.values.size - values.size,
        "behind": []
        if behind is None
        else [numbers(row, _DIGITS) for row in behind[np.ix_(rows, columns)]],
    }


def _rows_behind(material: Material, block: Interaction) -> Floats | None:
    """Return how many rows of the table are behind every parameter; None without a table."""
    if material.gaps is None:
        return None
    gaps, schema = material.gaps, material.fitted.schema
    u, v = schema.node_index(block.row), schema.node_index(block.column)
    known = np.asarray(~gaps.missing[:, [u, v]].any(axis=1), dtype=np.float64)
    weights = known if gaps.weights is None else known * gaps.weights
    return np.asarray((_members(gaps, u) * weights[:, None]).T @ _members(gaps, v))


def _members(gaps: Gaps, node: int) -> Floats:
    """(n, entries) which rows say something about every entry of a column."""
    spans, every = gaps.schema.spans, np.ones((gaps.n_rows, 1))
    if spans.is_gaussian(node):
        return every
    codes = gaps.codes[:, spans.place(node)]
    if spans.spiked_nodes[node]:
        return np.column_stack([every, codes == 1]).astype(np.float64)
    if spans.numeric_nodes[node]:
        return every
    levels = np.arange(len(gaps.schema.nodes[node].level_names))
    return np.asarray(codes[:, None] == levels, dtype=np.float64)


def _pronounced(values: Floats, axis: int) -> Ints:
    """Return the positions of the rows or columns with the largest entries, in their order."""
    size = np.abs(values).max(axis=axis)
    return np.sort(np.argsort(-size, kind="stable")[:_MOST_LEVELS])


def _effect(material: Material, effect: EdgeEffect) -> Json:
    place = material.place
    kept = _pronounced(effect.predicted - effect.predicted.mean(axis=0), 0)
    names = [shown(effect.levels[k], 60) for k in kept.tolist()] if effect.levels else []
    given = [number(v) if isinstance(v, float) else shown(v, 60) for v in effect.values]
    return {
        "from": place[effect.source],
        "to": place[effect.target],
        "values": given,
        "levels": names,
        "predicted": [numbers(row, _DIGITS) for row in effect.predicted[:, kept]],
        "observed": []
        if effect.observed is None
        else [numbers(row, _DIGITS) for row in effect.observed[:, kept]],
        "rows": [] if effect.n_rows is None else numbers(effect.n_rows),
    }


def column_details(material: Material) -> list[Json]:
    """Return how the values of every column are distributed, in the table's order."""
    schema, gaps = material.fitted.schema, material.gaps
    found: list[Json] = []
    for column in schema.columns:
        node = schema.node_index(column.name)
        chart = known_shares(material.fitted, node) if gaps is None else histogram(gaps, node)
        found.append({"histogram": None if chart is None else _histogram(chart)})
    return found


def _histogram(chart: Histogram) -> Json:
    return {
        "counts": numbers(chart.counts),
        "edges": numbers(chart.edges),
        "names": [shown(name, 60) for name in chart.names],
        "missing": number(chart.missing),
        "zeros": number(chart.zeros),
        "hidden": chart.n_hidden,
    }
