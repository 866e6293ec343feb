"""A fitted model and rows in -> how well every column is predicted from all others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.printable import quoted
from mixedgm.studies.incomplete import node_losses, predicted
from mixedgm.table.assemble import frame
from mixedgm.table.gaps import Gaps, read_gaps
from mixedgm.table.read import as_frame

__all__ = ["NodePredictability", "predictability", "predictability_frame", "ring_shares"]

_NAN = float("nan")


class NodePredictability(NamedTuple):
    """How well one column is predicted from all others; NaN where a number has no meaning.

    `r2` is for continuous columns, the others for categorical ones.  `normalised_accuracy` is the
    accuracy beyond that of always naming the most frequent level, `majority`, as a share of what
    there is to gain: (accuracy - majority) / (1 - majority).
    """

    column: str
    kind: str
    r2: float
    accuracy: float
    majority: float
    normalised_accuracy: float
    deviance_explained: float

    @property
    def share(self) -> float:
        """What a ring around the node shows: R2, or the normalised accuracy."""
        return self.r2 if self.kind == "continuous" else self.normalised_accuracy


def predictability(fitted: FittedModel, gaps: Gaps) -> tuple[NodePredictability, ...]:
    """Return one entry per column that is predicted, in the table's order.

    R2 compares with the mean, accuracy and deviance with the shares of the levels, all of the rows
    at hand that have the column.  On columns with a transform R2 is that of the normal scores.
    """
    schema = fitted.schema
    means, modes = predicted(fitted, gaps, [schema.node_index(name) for name in schema.targets])
    losses = node_losses(fitted, gaps)
    # Sums of whole weights are exact, so that no gain is exactly 0 rather than rounding.
    weights = np.ones(len(gaps.numbers)) if gaps.weights is None else gaps.weights
    found = {}
    for node, column in enumerate(schema.nodes):
        there = ~gaps.missing[:, node]
        own, at = weights[there], node - schema.n_gaussian
        if not there.any():
            found[column.name] = NodePredictability(column.name, column.kind, *[_NAN] * 5)
        elif node < schema.n_gaussian:
            values, mean = gaps.numbers[there, node], means[there, node]
            found[column.name] = _continuous(column.name, values, mean, own)
        else:
            codes = gaps.codes[there, at]  # an unseen level, -2, is the first of the shares
            levels: Floats = np.bincount(codes + 2, own).astype(np.float64) / own.sum()
            accuracy = float(own @ (modes[there, at] == codes)) / own.sum()
            loss = losses.get(column.name, _NAN)  # a covariate has none, and no entry below
            found[column.name] = _categorical(column.name, levels, accuracy, loss)
    return tuple(found[name] for name in schema.targets)


def _continuous(name: str, values: Floats, means: Floats, weights: Floats) -> NodePredictability:
    centre = weights @ values / weights.sum()
    total = float(weights @ (values - centre) ** 2)
    left = float(weights @ (values - means) ** 2)
    r2 = 1.0 - left / total if total > 0.0 else _NAN
    return NodePredictability(name, "continuous", r2, _NAN, _NAN, _NAN, _NAN)


def _categorical(name: str, levels: Floats, accuracy: float, loss: float) -> NodePredictability:
    seen = levels[levels > 0.0]
    majority, entropy = float(seen.max()), float(-(seen @ np.log(seen)))
    if len(seen) == 1:  # nothing to predict
        return NodePredictability(name, "categorical", _NAN, accuracy, 1.0, _NAN, _NAN)
    return NodePredictability(
        name,
        "categorical",
        _NAN,
        accuracy,
        majority,
        (accuracy - majority) / (1.0 - majority),
        1.0 - loss / entropy,
    )


def predictability_frame(fitted: FittedModel, gaps: Gaps) -> Any:
    """Return the same as a frame of the library of the training table."""
    found = predictability(fitted, gaps)
    columns: dict[str, Any] = {
        name: [getattr(node, name) for node in found] for name in ("column", "kind")
    }
    for name in NodePredictability._fields[2:]:
        columns[name] = np.array([getattr(node, name) for node in found], dtype=np.float64)
    return frame(columns, fitted.library)


def ring_shares(fitted: FittedModel, given: Any) -> dict[str, float]:
    """Return the share of every ring, from rows, from a frame of `predictability`, or as given.

    Parameters
    ----------
    fitted : FittedModel
        The model.
    given : data frame or mapping
        Rows to predict, what `predictability_frame` returned, or numbers by column name.
    """
    if isinstance(given, Mapping):
        shares = {_name(fitted, name): _number(name, value) for name, value in given.items()}
    else:
        table = as_frame(given)
        if {"column", "kind", "r2", "normalised_accuracy"} <= set(table.names):
            columns = dict(zip(table.names, table.columns, strict=True))
            rows = zip(
                *(list(columns[n]) for n in ("column", "kind", "r2", "normalised_accuracy")),
                strict=True,
            )
            shares = {
                _name(fitted, name): _number(name, r2 if kind == "continuous" else gain)
                for name, kind, r2, gain in rows
            }
        else:
            found = predictability(fitted, read_gaps(table, fitted.schema))
            shares = {node.column: node.share for node in found}
    return {name: share for name, share in shares.items() if not math.isnan(share)}


def _name(fitted: FittedModel, name: Any) -> str:
    return fitted.schema.nodes[fitted.schema.node_index(name)].name


def _number(name: Any, value: Any) -> float:
    try:
        number = _NAN if value is None else float(value)
    except (TypeError, ValueError):
        number = math.inf
    if number > 1.0:
        raise ParameterError.must_be(f"predictability of {quoted(name)}", "a number up to 1", value)
    return number
