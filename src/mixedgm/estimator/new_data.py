"""A fitted estimator and rows -> scores, predictions and level probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from mixedgm import views
from mixedgm.errors import ParameterError
from mixedgm.estimator.base import HasModel
from mixedgm.table import Schema, apply, as_frame, decode


def _has_categorical_target(model: HasModel) -> bool:
    fitted = getattr(model, "fitted_", None)
    return fitted is not None and any(c.role == "target" for c in fitted.schema.categorical)


class NewDataMethods(HasModel):
    """What can be asked about rows."""

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log pseudolikelihood per row, constant included; higher is better."""
        return -sum(self.node_scores(X, sample_weight=sample_weight).values())

    def node_scores(self, X: Any, sample_weight: ArrayLike | None = None) -> dict[str, float]:
        """Mean negative log conditional likelihood of every column given all others."""
        model = self._model
        return model.node_losses(apply(X, model.schema, sample_weight=sample_weight))

    def predict(self, X: Any, columns: str | Sequence[str] | None = None) -> Any:
        """Predict every column given all others.

        Parameters
        ----------
        X : data frame or 2-D array
            The rows.  When one column is asked for, that column may be absent.
        columns : str or sequence of str, optional
            One name gives one column; several, or None for all, give a frame.

        Returns
        -------
        frame or column of the library of `X`
            Conditional means (medians where a column has a transform) and most probable levels.
        """
        model = self._model
        wanted = _wanted(model.schema, columns)
        others = None if len(wanted) > 1 else set(model.schema.names) - set(wanted)
        frame = as_frame(X)
        design = apply(frame, model.schema, require=others)
        means, modes = model.predict(design)
        by_name = {column.name: column for column in model.schema.columns}
        part = Schema(tuple(by_name[name] for name in wanted))
        nodes, p = [model.schema.node_index(column.name) for column in part.nodes], part.n_cont
        cont, cat = nodes[:p], [node - model.schema.n_cont for node in nodes[p:]]
        out = _aligned(decode(part, means[:, cont], modes[:, cat], frame.library), X)
        if columns is None or isinstance(columns, (list, tuple, np.ndarray)):
            return out
        if frame.library == "numpy":
            return out[:, 0]
        return out.iloc[:, 0] if frame.library == "pandas" else out[wanted[0]]

    @available_if(_has_categorical_target)
    def predict_proba(self, X: Any, column: str | None = None) -> Any:
        """Level probabilities of a categorical column given all others.

        Parameters
        ----------
        X : data frame or 2-D array
            The rows; the column itself may be absent.
        column : str, optional
            Its name.  Without one, a dict with a table for every categorical column.

        Returns
        -------
        frame of the library of `X`, or ndarray for an array
            One column per level, named as the level.
        """
        model = self._model
        if column is None:
            targets = [c.name for c in model.schema.categorical if c.role == "target"]
            return {name: self.predict_proba(X, name) for name in targets}
        node = model.schema.nodes[model.schema.node_index(_wanted(model.schema, column)[0])]
        frame = as_frame(X)
        design = apply(frame, model.schema, require=set(model.schema.names) - {node.name})
        probability = model.predict_proba(design, node.name)
        return _aligned(views.probability_frame(node.level_names, probability, frame.library), X)


def _aligned(out: Any, X: Any) -> Any:
    """Give predictions for a pandas frame that frame's index, so that they can be assigned."""
    if hasattr(out, "index") and hasattr(X, "index") and hasattr(out, "iloc"):
        out.index = X.index
    return out


def _wanted(schema: Schema, columns: str | Sequence[str] | None) -> list[str]:
    if columns is None:
        return list(schema.targets)
    names = list(columns) if isinstance(columns, (list, tuple, np.ndarray)) else [columns]
    if not names:
        raise ParameterError.must_be("columns", "at least one column name", columns)
    found = [schema.nodes[schema.node_index(name)].name for name in names]
    for name in found:
        if name not in schema.targets:
            raise ParameterError(
                f"{name!r} is a covariate: it predicts and is not predicted. "
                f"The model has {', '.join(map(repr, schema.targets))} to predict."
            )
    return found
