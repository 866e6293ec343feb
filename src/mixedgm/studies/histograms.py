"""A table in -> how the values of each of its columns are distributed, for a small chart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.table.gaps import Gaps
from mixedgm.table.schema import Column

__all__ = ["Histogram", "histogram", "known_shares"]

_BINS = 24
_MOST_LEVELS = 24


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
        if len(counts) > _MOST_LEVELS:
            binned, edges = _binned(np.arange(len(counts), dtype=np.float64), counts)
            return Histogram(binned, tuple(edges.tolist()), missing=missing)
    shown = np.sort(np.argsort(-counts, kind="stable")[:_MOST_LEVELS])
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
