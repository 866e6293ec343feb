"""A table and known values -> shares and means of the rows that match, beside the model's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc, ndtr

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import few, literal
from mixedgm.fit.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.studies.queries.conditioned import KnownValues, column_positions, is_conditioned
from mixedgm.table.gaps import Gaps, read_gaps
from mixedgm.table.read import as_frame
from mixedgm.table.schema import Column

FEWEST = 30
"""Rows from which on shares and means of a table are shown."""
_CHANCE = 0.005  # that a difference is named although the model is right
_DIGITS = 3


def observed_rows(fitted: FittedModel, data: Any, sample_weight: Any = None) -> Gaps | None:
    """Read the table that answers are compared with; None without one."""
    if data is None:
        if sample_weight is not None:
            raise ParameterError("sample_weight is about the rows of data: give data=, too.")
        return None
    if is_conditioned(fitted):
        raise ParameterError(
            "this model is about rows with some values given, and data= would be compared as a "
            "whole: ask the whole model, with given=..."
        )
    return read_gaps(
        as_frame(data),
        fitted.schema,
        sample_weight=sample_weight,
        unseen="ignore",
        require_covariates=False,
    )


def matching(table: Gaps, evidence: KnownValues) -> Gaps:
    """Return the rows that have the known values.

    Numbers match up to rounding, so that of a continuous column few rows do.
    """
    spans, matches = table.schema.spans, np.ones(table.n_rows, dtype=bool)
    for node, value in evidence.by_node(table.schema).items():
        if spans.is_real(node):
            matches &= np.isclose(table.numbers[:, node], value, rtol=1e-9, atol=0.0)
        else:
            matches &= table.codes[:, spans.place(node)] == value
    return table.take(np.flatnonzero(matches))


@dataclass(frozen=True, eq=False)
class StateShares:
    """Shares of the states of some columns in matching rows, and moments of numbers in each."""

    n_rows: float
    """Rows that match and have all of these columns, by weight."""
    share: Floats
    """(states,)"""
    mean: Floats
    """(states, k) NaN in a state of fewer than `FEWEST` rows."""
    variance: Floats
    """(states, k)"""


def state_shares(
    table: Gaps, columns: Sequence[Column], shape: tuple[int, ...]
) -> StateShares | None:
    """Count the states of some columns; None where fewer than `FEWEST` rows have all of them."""
    numbers, discrete = column_positions(table.schema, columns)
    x, codes = table.numbers[:, list(numbers)], table.codes[:, list(discrete)]
    known = ~np.isnan(x).any(axis=1) & (codes >= 0).all(axis=1)
    x, codes = x[known], codes[known]
    weight = (np.ones(table.n_rows) if table.weights is None else table.weights)[known]
    total, n_states = float(weight.sum()), int(np.prod(shape, dtype=np.int64))
    if total < FEWEST:
        return None
    state = np.zeros(len(x), dtype=np.int64)
    if shape:
        state = np.ravel_multi_index(tuple(codes.T), shape).astype(np.int64)
    count = np.bincount(state, weight, n_states)
    divisor = np.where(count >= FEWEST, count, np.nan)[:, None]
    mean = np.empty((n_states, x.shape[1]))
    variance = np.empty(mean.shape)
    for at, values in enumerate(x.T):
        mean[:, at] = np.bincount(state, weight * values, n_states)
        mean[:, at] /= divisor[:, 0]
        off = values - mean[state, at]
        variance[:, at] = np.bincount(state, weight * off**2, n_states) / divisor[:, 0]
    return StateShares(total, count / total, mean, variance)


@dataclass(frozen=True, eq=False)
class ColumnMargin:
    """Shares of the values of one column in matching rows, and moments of its numbers."""

    n_rows: float
    """Rows that match and have the column, by weight."""
    share: Floats
    """(values,) of a column with finitely many, and of zero or not."""
    mean: float
    """Of numbers and counts; NaN for levels."""
    variance: float


def column_margin(table: Gaps, column: Column) -> ColumnMargin | None:
    """Count the values of one column; None where fewer than `FEWEST` rows have it."""
    spans, node = table.schema.spans, table.schema.node_index(column.name)
    weight = np.ones(table.n_rows) if table.weights is None else table.weights
    codes = None if spans.is_gaussian(node) else table.codes[:, spans.place(node)]
    values = table.numbers[:, node] if codes is None or spans.is_real(node) else codes
    known = ~np.isnan(values) & (True if codes is None else codes >= 0)
    values, weight = values[known].astype(np.float64), weight[known]
    total = float(weight.sum())
    if total < FEWEST:
        return None
    share = np.zeros(0) if codes is None else np.bincount(codes[known], weight, column.n_values)
    if column.has_levels:
        return ColumnMargin(total, share / total, np.nan, np.nan)
    mean = float(weight @ values / total)
    return ColumnMargin(total, share / total, mean, float(weight @ (values - mean) ** 2 / total))


class Comparison(NamedTuple):
    """A number of the model beside that of matching rows."""

    what: str
    model: float
    table: float
    chance: float
    """How probable a difference of this size is if the model is right."""


def share_comparison(
    what: str, probability: float, share: float, n_rows: float, error: float = 0.0
) -> Comparison:
    """Compare a probability, which may have a sampling error, with a share of rows.

    Examples
    --------
    >>> round(share_comparison("heads", 0.5, 0.1, 10).chance * 2**10)  # 0, 1, 9 or 10 of 10
    22
    """
    count, z = share * n_rows, abs(share - probability)
    above = betainc(count, n_rows - count + 1.0, probability) if count > 0.0 else 1.0
    below = betainc(n_rows - count, count + 1.0, 1.0 - probability) if count < n_rows else 1.0
    chance = min(1.0, 2.0 * float(min(above, below)))
    if error > 0.0:
        z /= np.sqrt(probability * (1.0 - probability) / n_rows + error**2)
        chance = max(chance, float(2.0 * ndtr(-z)))
    return Comparison(what, probability, share, chance)


def mean_comparison(
    column: Column, model: tuple[float, float, float], table: tuple[float, float], n_rows: float
) -> Comparison:
    """Compare means, as the model has the column; shown in the units of the table.

    The model has a mean, its variance and the standard error of the mean; the table the first two.
    """
    (expected, spread, error), (mean, variance) = model, table
    shown = float(column.decoded(expected)), float(column.decoded(mean))
    off, squared = abs(mean - expected), np.maximum(variance, spread) / n_rows + error**2
    # A column that does not vary here, or has too few rows, says nothing.
    chance = 1.0 if squared == 0.0 else float(2.0 * ndtr(-off / np.sqrt(squared)))
    return Comparison(f"the mean of {column.name}", *shown, chance)


def difference_notes(
    fitted: FittedModel, evidence: KnownValues, compared: Iterable[Comparison]
) -> tuple[str, ...]:
    """Return the most improbable difference as a sentence with what may help, if it is one."""
    every = [one for one in compared if np.isfinite(one.chance)]
    if not every:
        return ()
    worst = min(every, key=lambda one: one.chance)
    if worst.chance > _CHANCE / len(every):
        return ()
    numbers = f"{worst.table:.{_DIGITS}g} in the table and {worst.model:.{_DIGITS}g} in the model"
    return (f"{worst.what} is {numbers}, more than sampling explains: {_advice(fitted, evidence)}",)


def _advice(fitted: FittedModel, evidence: KnownValues) -> str:
    """Return what to try: an edge with one column of the condition that varies with another one."""
    vary = {fitted.schema.nodes[node].name for node in fitted.moderators}
    names = [name for name in evidence.values if name not in vary]
    if not names:
        return "model.check_fit(table) says where the model does not fit"
    others = "" if len(names) == 1 else f", or with {few(names[1:], 3, literal)}"
    fit = f"fit with moderators=[{literal(names[0])}]{others}"
    return f"edges may vary with a moderator; to try: {fit}"
