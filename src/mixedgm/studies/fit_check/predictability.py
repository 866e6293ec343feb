"""A fitted model and rows in -> how well every column is predicted from all others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import MixedGMError, ParameterError
from mixedgm.base.printable import quoted
from mixedgm.families import KINDS, Scored
from mixedgm.fit.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.studies.fit_check.graph_refit import refit_graph
from mixedgm.studies.missing.cells import node_losses, predicted
from mixedgm.table.gaps import Gaps, read_gaps
from mixedgm.table.read import Columns, as_frame, frame
from mixedgm.table.schema import Column

FOLDS = 5
"""Parts of the rows, each of which is held out once, where nobody says how many."""

_NAN = float("nan")


class NodePredictability(NamedTuple):
    """How well one column is predicted from all others; NaN where a number has no meaning.

    `r2` is for columns of numbers: of a count that of the count itself, of an ordinal column
    that of its levels where they are numbers, else of their scores.  The others are for columns
    with finitely many values, accuracies for those with levels, and of a hurdle column those of
    being zero or not.  `normalised_accuracy` is the
    accuracy beyond that of always naming the most frequent level, `majority`, as a share of what
    there is to gain: (accuracy - majority) / (1 - majority).  `held_out` is R2 or the normalised
    accuracy on rows that had no part in the estimates, where it was asked for; a column whose value
    is not above zero is not predictable from the others.
    """

    column: str
    kind: str
    r2: float = _NAN
    accuracy: float = _NAN
    majority: float = _NAN
    normalised_accuracy: float = _NAN
    deviance_explained: float = _NAN
    held_out: float = _NAN

    @property
    def in_sample(self) -> float:
        """R2, or the normalised accuracy, of the rows at hand."""
        return float(getattr(self, KINDS[self.kind].measure))

    @property
    def share(self) -> float:
        """What a ring around the node shows: that of held-out rows, where it is known."""
        return self.in_sample if math.isnan(self.held_out) else self.held_out


def predictability(
    fitted: FittedModel, gaps: Gaps, folds: int | None = None
) -> tuple[NodePredictability, ...]:
    """Return one entry per column that is predicted, in the table's order.

    With `folds`, `held_out` is filled: the graph is estimated again without each fold of the rows,
    which it then predicts.  Models with moderators cannot be estimated again in this way.

    R2 compares with the mean, accuracy with the most frequent level and deviance with the column
    without edges, all of the rows at hand that have the column.  On columns with a transform R2 is
    that of the normal scores.
    """
    held_out = {} if folds is None or fitted.moderators else _held_out(fitted, gaps, folds)
    return tuple(
        node._replace(held_out=held_out.get(node.column, _NAN)) for node in _measured(fitted, gaps)
    )


def _held_out(fitted: FittedModel, gaps: Gaps, folds: int) -> dict[str, float]:
    """R2, or the normalised accuracy, of every column on rows that the estimates do not know.

    A fold whose rows lack a level, or are too few for the graph, is left out.
    """
    fold = np.random.default_rng(0).permutation(len(gaps.missing)) % folds
    parts: dict[str, list[tuple[float, float]]] = {name: [] for name in fitted.schema.targets}
    for k in range(folds):
        inside = gaps.take(np.flatnonzero(fold != k))
        rows = inside if inside.missing.any() else inside.complete
        try:
            model = refit_graph(fitted, rows).fitted
        except MixedGMError:
            continue
        outside = gaps.take(np.flatnonzero(fold == k))
        for node in _measured(model, outside):
            if not math.isnan(node.in_sample):
                parts[node.column].append((node.in_sample, outside.total_weight))
    return {
        name: sum(share * weight for share, weight in found) / sum(w for _, w in found)
        for name, found in parts.items()
        if found
    }


def _measured(fitted: FittedModel, gaps: Gaps) -> tuple[NodePredictability, ...]:
    """Return the measures of all columns on these rows."""
    schema = fitted.schema
    targets = [schema.node_index(name) for name in schema.targets]
    means_of, modes_of = fitted.points("mean"), fitted.points("mode")
    both = {node: partial(_pair, means_of[node], modes_of[node]) for node in targets}
    guesses = predicted(fitted, gaps, targets, both)
    observed, missing, losses = gaps.design, gaps.missing, node_losses(fitted, gaps)
    # Whole weights add up exactly, so that a gain of nothing is 0 and not a rounding error.
    weights = np.ones(len(missing)) if gaps.weights is None else gaps.weights
    entries = []
    for node in targets:
        column, there = schema.nodes[node], ~missing[:, node]
        parts = (observed.values_of(node), *guesses[node].T, weights)
        values, means, modes, w = (part[there] for part in parts)
        measures: dict[str, float] = {}
        if len(w) and schema.spans.is_real(node):
            measures = _of_numbers(values, means, w)
            if schema.spans.spiked_nodes[node]:
                measures |= _accuracy((values != 0.0) == (modes != 0.0), values != 0.0, w)
        elif len(w):
            measures = _of_codes(column, (values, modes, w), losses[column.name])
            if column.numbers is not None:
                known = values >= 0
                numbers = column.numbers[values[known]]
                measures |= _of_numbers(numbers, means[known], w[known])
        entries.append(NodePredictability(column.name, column.kind, **measures))
    return tuple(entries)


def _of_numbers(values: Floats, means: Floats, weights: Floats) -> dict[str, float]:
    centre = weights @ values / weights.sum()
    total = float(weights @ (values - centre) ** 2)
    left = float(weights @ (values - means) ** 2)
    return {"r2": 1.0 - left / total} if total > 0.0 else {}


def _accuracy(right: NDArray[Any], there: NDArray[Any], weights: Floats) -> dict[str, float]:
    """How often it is known whether a column is zero."""
    accuracy, share = (float(weights @ each) / weights.sum() for each in (right, there))
    majority = max(share, 1.0 - share)
    measures = {"accuracy": accuracy, "majority": majority}
    if majority < 1.0:
        measures["normalised_accuracy"] = (accuracy - majority) / (1.0 - majority)
    return measures


def _pair(
    mean: Callable[[Floats], NDArray[Any]], mode: Callable[[Floats], NDArray[Any]], given: Floats
) -> NDArray[Any]:
    """(n, 2) means and modes."""
    return np.column_stack([mean(given), mode(given)])


def _of_codes(
    column: Column, cells: tuple[NDArray[Any], NDArray[Any], Floats], loss: float
) -> dict[str, float]:
    codes, modes, weights = cells
    # An unseen level, -2, is the first of the shares.
    shares: Floats = np.bincount(codes + 2, weights).astype(np.float64) / weights.sum()
    seen = shares[shares > 0.0]
    accuracy = {
        "accuracy": float(weights @ (modes == codes)) / weights.sum(),
        "majority": float(seen.max()),
    }
    if len(seen) == 1:  # nothing to predict
        return accuracy if column.has_levels else {}
    explained = {"deviance_explained": 1.0 - loss / _loss_alone(column, shares)}
    if not column.has_levels:
        return explained
    gained = accuracy["accuracy"] - accuracy["majority"]
    normalised = {"normalised_accuracy": gained / (1.0 - accuracy["majority"])}
    return {**accuracy, **normalised, **explained}


def _loss_alone(column: Column, shares: Floats) -> float:
    """Mean negative log likelihood of a column with these shares of values and without edges."""
    kind = column.node_kind
    if isinstance(kind, Scored) and not kind.is_free:
        values = np.zeros(column.n_values)
        values[: len(shares) - 2] = shares[2:]
        values[-1] += shares[0]
        return float(-values @ kind.alone(values))
    seen = shares[shares > 0.0]
    return float(-(seen @ np.log(seen)))


def predictability_frame(fitted: FittedModel, gaps: Gaps, folds: int | None = None) -> Any:
    """Return the same as a frame of the library of the training table."""
    entries = zip(*predictability(fitted, gaps, folds), strict=True)
    names = NodePredictability._fields if folds else NodePredictability._fields[:-1]
    columns: dict[str, Any] = dict(zip(names, map(list, entries), strict=False))
    for name in names[2:]:
        columns[name] = np.array(columns[name], dtype=np.float64)
    return frame(columns, fitted.library)


def predictability_columns(fitted: FittedModel, gaps: Gaps, folds: int) -> Columns:
    """Return how well every column of the table is predicted; NaN where it is not, or given."""
    found = {node.column: node for node in predictability(fitted, gaps, folds)}
    both = [(node.held_out, node.in_sample) for node in map(found.get, fitted.schema.names) if node]
    at = [name in found for name in fitted.schema.names]
    columns = np.full((2, len(at)), _NAN)
    columns[:, at] = np.array(both).reshape(-1, 2).T
    return {"held_out": columns[0], "in_sample": columns[1], "unpredictable": columns[0] <= 0.0}


def ring_shares(fitted: FittedModel, given: object) -> dict[str, float]:
    """Return the share of every ring: of held-out rows, of a `predictability` frame, or given."""
    if isinstance(given, Mapping):
        shares = {_column(fitted, name).name: _number(name, x) for name, x in given.items()}
    else:
        table = as_frame(given)
        if {"column", "kind", *(kind.measure for kind in KINDS.values())} <= set(table.names):
            columns = {n: list(c) for n, c in zip(table.names, table.columns, strict=True)}
            rows = [(_column(fitted, name), at) for at, name in enumerate(columns["column"])]
            held_out = "held_out" in columns
            shares = {
                column.name: _number(
                    column.name,
                    columns["held_out" if held_out else KINDS[column.kind].measure][at],
                )
                for column, at in rows
            }
        else:
            entries = predictability(fitted, read_gaps(table, fitted.schema), FOLDS)
            shares = {node.column: node.share for node in entries}
    return {name: share for name, share in shares.items() if not math.isnan(share)}


def _column(fitted: FittedModel, name: object) -> Column:
    return fitted.schema.nodes[fitted.schema.node_index(name)]


def _number(name: Any, value: Any) -> float:
    try:
        number = _NAN if value is None else float(value)
    except (TypeError, ValueError):
        number = math.inf
    if number > 1.0:
        raise ParameterError.must_be(f"predictability of {quoted(name)}", "a number up to 1", value)
    return number
