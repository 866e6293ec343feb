"""A moderated model and a moderator -> values to look at, and the models at these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.printable import quoted
from mixedgm.studies.conditioned import model_at

__all__ = ["models_along"]


def models_along(
    fitted: FittedModel,
    moderator: str,
    values: Sequence[Any] | None = None,
    f: Mapping[Any, Any] | None = None,
) -> tuple[list[FittedModel], list[str]]:
    """Return the models at several values of a moderator, and what to call them.

    Parameters
    ----------
    fitted : FittedModel
        With moderated edges.
    moderator : str
        The one that varies.
    values : sequence, optional
        Its values.  By default its mean and one standard deviation below and above, or all levels
        that have rows.
    f : mapping of column name to value, optional
        Values of the other moderators; by default their mean or most frequent level.
    """
    node = fitted.schema.node_index(moderator)
    if node not in fitted.moderators:
        names = ", ".join(quoted(fitted.schema.nodes[m].name) for m in fitted.moderators)
        raise ParameterError(
            f"{quoted(moderator)} is not a moderator; "
            + (f"the edges vary with {names}." if names else "the edges do not vary.")
        )
    own = fitted.schema.nodes[node].name
    others = {fitted.schema.nodes[m].name: _middle(fitted, m) for m in fitted.moderators}
    others |= dict(f or {})
    chosen = list(values) if values is not None else _spread(fitted, node)
    if not chosen:
        raise ParameterError.must_be("values", "at least one value of the moderator", values)
    models = [model_at(fitted, {**others, own: value}) for value in chosen]
    return models, [f"{own} = {_shown(value)}" for value in chosen]


def _spread(fitted: FittedModel, node: int) -> list[Any]:
    """Low, middle and high; or all levels with rows."""
    assert fitted.params.moderation is not None
    column, p = fitted.schema.nodes[node], fitted.schema.n_gaussian
    if node >= p:
        bias = fitted.params.cat_bias[fitted.params.levels_of(node - p)]
        return [level for level, x in zip(column.levels, bias, strict=True) if np.isfinite(x)]
    middle = float(fitted.params.moderation.middle[node])
    low, high = fitted.params.moderation.span[fitted.moderators.index(node)]
    step = fitted.node_scales[node] * np.array([-1.0, 0.0, 1.0])
    return [_own(column, x) for x in np.clip(middle + step, low, high)]


def _middle(fitted: FittedModel, node: int) -> Any:
    """Mean, or most frequent level."""
    assert fitted.params.moderation is not None
    column, p = fitted.schema.nodes[node], fitted.schema.n_gaussian
    middle = fitted.params.moderation.middle
    if node < p:
        return _own(column, float(middle[node]))
    levels = fitted.params.levels_of(node - p)
    return column.levels[int(np.argmax(middle[p + levels.start : p + levels.stop]))]


def _own(column: Any, x: float) -> float:
    """A value in the units of the table."""
    return float(x if column.transform is None else column.transform.inverse(x))


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
