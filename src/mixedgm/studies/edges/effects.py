"""A fitted model and rows in -> how predictions of one column change with a neighbour."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.fit.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.studies.queries.conditioned import KnownValues
from mixedgm.studies.queries.observed import column_margin, matching
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps
from mixedgm.table.schema import Column

_STEPS = 9
_MOST_LEVELS = 24
_CELLS = 40_000
_FEWEST_ROWS, _MOST_ROWS = 60, 400
_NO_LEVEL = -2


@dataclass(frozen=True, eq=False)
class EdgeEffect:
    """Predictions of `target` at several values of `source`, with the other columns as they are.

    `predicted` is (values, 1): means in the units of the table (medians where the column has a
    transform), or (values, levels): probabilities of `levels`.  `observed` has the same of the rows
    of a table with each level of `source`, and `n_rows` their number: there the other columns are
    as they come with the level.  Both are NaN for a level of fewer than 30 rows.
    """

    source: str
    target: str
    values: tuple[float | str, ...]
    predicted: Floats
    levels: tuple[str, ...] = ()
    observed: Floats | None = None
    n_rows: Floats | None = None


def beside_table(effect: EdgeEffect, table: Gaps) -> EdgeEffect:
    """Return the effect of a column with levels with what the rows of a table have beside it."""
    source, target = (table.schema.node_index(name) for name in (effect.source, effect.target))
    if not table.schema.nodes[source].has_levels:
        return effect
    observed, n_rows = np.full(effect.predicted.shape, np.nan), np.full(len(effect.values), np.nan)
    column = table.schema.nodes[target]
    for code in range(len(effect.values)):
        seen = column_margin(matching(table, KnownValues.of(table.schema, {source: code})), column)
        if seen is not None:
            n_rows[code] = seen.n_rows
            observed[code] = seen.share if column.has_levels else column.decoded(seen.mean)
    return replace(effect, observed=observed, n_rows=n_rows)


def edge_effects(fitted: FittedModel, rows: Design) -> dict[tuple[str, str], EdgeEffect]:
    """Return the effect of every column on each of its neighbours, by their names.

    Every row is predicted with the source set to one value after the other, and predictions are
    averaged over the rows.  So an effect is that of the edge, given all other columns, in rows as
    they occur; it says nothing about what would happen if somebody changed the source.

    Examples
    --------
    >>> import mixedgm as mg
    >>> columns = {"x": "continuous", "y": "continuous"}
    >>> fitted = mg.from_params(columns, {"precision": [[2, -1], [-1, 2]]}).fitted_
    >>> rows = Design(fitted.schema, np.array([[-1.0, 0.0], [1.0, 0.0]]), np.zeros((2, 0), int))
    >>> effect = edge_effects(fitted, rows)["x", "y"]
    >>> effect.values[0], float(effect.predicted[0, 0])
    (-0.9, -0.45)
    """
    nodes = fitted.schema.nodes
    found: dict[tuple[str, str], EdgeEffect] = {}
    for source, targets in enumerate(_neighbours(fitted)):
        if not targets:
            continue
        steps = list(_steps(fitted, rows, source))
        points = {target: _point(nodes[target]) for target in targets}
        at_steps = [fitted.predict(changed, points) for _, changed in steps]
        for target in targets:
            means = [np.average(at[target], axis=0, weights=rows.weights) for at in at_steps]
            name, other = nodes[source].name, nodes[target].name
            found[name, other] = EdgeEffect(
                name,
                other,
                tuple(value for value, _ in steps),
                np.array(means).reshape(len(steps), -1),
                nodes[target].level_names,
            )
    return found


def _neighbours(fitted: FittedModel) -> list[list[int]]:
    """Return the columns that every node predicts, by node."""
    schema = fitted.schema
    linked = fitted.all_norms.max(axis=0) > 0.0
    linked[:, list(schema.covariates)] = False
    return [np.flatnonzero(row).tolist() for row in linked]


def _point(column: Column) -> Callable[[Floats], NDArray[Any]]:
    """Return what makes a prediction of a conditional: probabilities of levels, or a mean."""
    if column.has_levels:
        return np.exp
    kind = partial(column.node_kind.point, which="mean", numbers=column.numbers)
    return lambda conditional: np.asarray(column.decoded(kind(conditional)))


def _steps(fitted: FittedModel, rows: Design, node: int) -> Iterator[tuple[float | str, Design]]:
    """Yield values of a node, and the rows with each of them."""
    spans, column = fitted.schema.spans, fitted.schema.nodes[node]
    at_numbers, at_codes = spans.places([node])
    for value, number, code in _values(fitted, rows, node):
        numbers, codes = rows.numbers.copy(), rows.codes.copy()
        numbers[:, at_numbers] = number
        codes[:, at_codes] = code
        shown = value if column.has_levels else float(np.asarray(column.decoded(number)))
        yield shown, Design(rows.schema, numbers, codes, rows.weights)


def _values(fitted: FittedModel, rows: Design, node: int) -> list[tuple[float | str, float, int]]:
    """Return names, numbers and codes of the values that a node is set to."""
    column = fitted.schema.nodes[node]
    if column.has_levels:
        names = column.level_names[:_MOST_LEVELS]
        return [(name, float(code), code) for code, name in enumerate(names)]
    seen = rows.values_of(node)
    if column.is_discrete:
        last = int(np.quantile(seen[seen >= 0], 0.95, method="higher")) if (seen >= 0).any() else 1
        counts = np.unique(np.rint(np.linspace(0, max(last, 1), _STEPS)).astype(int))
        return [(float(count), float(count), int(count)) for count in counts]
    zero = [(0.0, 0.0, 0)] if fitted.schema.spans.spiked_nodes[node] else []
    there = seen[seen != 0.0] if zero and (seen != 0.0).any() else seen
    low, high = _range(fitted, there, node)
    grid = np.linspace(low, high, _STEPS - len(zero))
    return [*zero, *((float(number), float(number), 1) for number in grid)]


def _range(fitted: FittedModel, seen: Floats, node: int) -> tuple[float, float]:
    """Return the numbers between which most rows lie; of a single row, two deviations around it."""
    low, high = np.quantile(seen, [0.05, 0.95])
    if high > low:
        return float(low), float(high)
    wide = 2.0 * float(fitted.units_of(node)[-1])
    return float(low) - wide, float(low) + wide


def rows_to_vary(gaps: Gaps) -> Design | None:
    """Return some rows of a table without gaps, evenly spread over it; None if it has none."""
    complete = np.flatnonzero(~gaps.missing.any(axis=1) & (gaps.codes >= 0).all(axis=1))
    if not len(complete):
        return None
    most = min(max(_CELLS // len(gaps.schema.nodes), _FEWEST_ROWS), _MOST_ROWS)
    at = np.unique(np.linspace(0, len(complete) - 1, most).astype(int))
    return gaps.take(complete[at]).complete


def typical_row(fitted: FittedModel) -> Design | None:
    """Return one row at the means of the training table, where these are known.

    Categories have no level in it, so that their effects are those of an average over levels.
    """
    if fitted.margins is None:
        return None
    spans, mean = fitted.schema.spans, fitted.margins.mean
    numbers = np.zeros((1, spans.n_real))
    codes = np.full((1, len(fitted.schema.discrete)), _NO_LEVEL, dtype=np.int32)
    for node, column in enumerate(fitted.schema.nodes):
        first = int(spans.column_start[node])
        if spans.is_gaussian(node):
            numbers[0, node] = mean[first]
        elif spans.spiked_nodes[node]:
            numbers[0, node] = column.location
            codes[0, spans.place(node)] = 1
        elif spans.numeric_nodes[node]:
            codes[0, spans.place(node)] = np.abs(column.own_scores - mean[first]).argmin()
    return Design(fitted.schema, numbers, codes)
