"""Material in -> what a click opens: parameters and effects of an edge, values of a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixedgm.fit.fitted import Edge, FittedModel, Interaction
from mixedgm.model.layout import Floats, Ints
from mixedgm.report.material import Material
from mixedgm.report.plain import Json, embedded, number, numbers, shown
from mixedgm.studies.edges.effects import EdgeEffect
from mixedgm.table.gaps import Gaps
from mixedgm.table.schema import Column

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


# -- histograms ------------------------------------------------------------------------------------

_BINS = 24
_MOST_BARS = 24


@dataclass(frozen=True, eq=False)
class Histogram:
    """How the values of one column are distributed.

    `edges` are the borders of the bins of a column of numbers; where they are empty, `names` are
    the values.  `zeros` are the rows of a hurdle column that are zero; its bins have the others.
    """

    counts: Floats
    edges: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    missing: float = 0.0
    zeros: float = 0.0
    n_hidden: int = 0
    """Rare values that are left out of the chart."""


def histogram(gaps: Gaps, node: int) -> Histogram:
    """Count the values of one column of a table; rows count by their weights.

    Examples
    --------
    >>> from mixedgm.table.gaps import learn_gaps
    >>> gaps, _ = learn_gaps([[1.5, "b"], [None, "a"], [0.5, None], [3.0, "b"], [2.0, "a"]])
    >>> chart = histogram(gaps, 1)
    >>> chart.names, chart.counts.tolist(), chart.missing
    (('a', 'b'), [2.0, 2.0], 1.0)
    """
    column, gap = gaps.schema.nodes[node], gaps.missing[:, node]
    weights = np.ones(gaps.n_rows) if gaps.weights is None else gaps.weights
    missing, seen = float(weights[gap].sum()), weights[~gap]
    values = gaps.design.values_of(node)[~gap]
    if not column.is_discrete:
        numbers = np.asarray(column.decoded(values), dtype=np.float64)
        zero = (numbers == 0.0) & gaps.schema.spans.spiked_nodes[node]
        counts, edges = _binned(numbers[~zero], seen[~zero])
        return Histogram(
            counts, tuple(edges.tolist()), missing=missing, zeros=float(seen[zero].sum())
        )
    known = values >= 0
    shares = np.bincount(values[known], seen[known], column.n_values).astype(np.float64)
    return _of_values(column, shares, missing)


def known_shares(fitted: FittedModel, node: int) -> Histogram | None:
    """Return shares of the values of a discrete column, as the model remembers its table."""
    spans = fitted.schema.spans
    if fitted.margins is None or spans.is_real(node):
        return None
    at = spans.levels_of(spans.place(node))
    return _of_values(fitted.schema.nodes[node], fitted.margins.share[at], 0.0)


def _of_values(column: Column, counts: Floats, missing: float) -> Histogram:
    """Return the values of a discrete column: all levels, or the most frequent, or bins."""
    if not column.has_levels:
        counts = counts[: int(np.flatnonzero(counts).max(initial=0)) + 1]
        if len(counts) > _MOST_BARS:
            binned, edges = _binned(np.arange(len(counts), dtype=np.float64), counts)
            return Histogram(binned, tuple(edges.tolist()), missing=missing)
    shown = np.sort(np.argsort(-counts, kind="stable")[:_MOST_BARS])
    names = tuple(column.value_names[k] for k in shown.tolist())
    return Histogram(counts[shown], names=names, missing=missing, n_hidden=len(counts) - len(shown))


def _binned(numbers: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Count numbers in bins of equal width; whole numbers get whole borders."""
    if not len(numbers):
        return np.zeros(0), np.zeros(0)
    low, high = float(numbers.min()), float(numbers.max())
    if not np.isfinite(high - low) or high <= low:
        return np.array([weights.sum()]), np.array([low, high])
    borders: Floats = np.linspace(low, high, _BINS + 1)
    if high - low >= 2.0 and (numbers == np.rint(numbers)).all():
        step = max(1.0, np.ceil((high - low + 1.0) / _BINS))
        borders = np.arange(low - 0.5, high + 0.5 + step, step)
    if (np.diff(borders) <= 0.0).any():  # too close together for double precision
        return np.array([weights.sum()]), np.array([low, high])
    counts, edges = np.histogram(numbers, borders, weights=weights)
    return counts.astype(np.float64), edges
