"""The fitted model behind an estimator -> its attributes, its file and its HTML."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mixedgm.fit.fitted import Edge, FittedModel
from mixedgm.fit.options import to_plain
from mixedgm.results.summary import summarise
from mixedgm.studies.fit_check.joint_discrepancy import summary_notes


class HasModel(BaseEstimator):
    """An estimator that holds a FittedModel once it is fitted."""

    fitted_: FittedModel

    def _adopt(self, fitted: FittedModel) -> Self:
        """Show a fitted model through the attributes that scikit-learn users expect."""
        self.fitted_ = fitted
        by_column = fitted.report.lam_by_column
        self.lam_ = fitted.report.lam if by_column is None else by_column
        self.params_ = fitted.params
        self.schema_ = fitted.schema
        self.kkt_ = fitted.report.kkt
        self.converged_ = fitted.report.converged
        self.n_iter_ = fitted.report.n_iter
        self.objective_ = fitted.report.objective
        self.path_ = fitted.path
        self.n_features_in_ = len(fitted.schema.table_names)
        if fitted.library != "numpy":
            self.feature_names_in_ = np.array(fitted.schema.table_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _with_model(self, fitted: FittedModel) -> Self:
        """Return a new estimator with the same parameters that holds another model."""
        return type(self)(**self.get_params(deep=False))._adopt(fitted)

    @property
    def edges_(self) -> tuple[Edge, ...]:
        """The edges, strongest first."""
        return self._model.edges

    @property
    def _model(self) -> FittedModel:
        check_is_fitted(self, "fitted_")
        return self.fitted_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which `mixedgm.load` reads back."""
        from mixedgm import store

        plain = {name: to_plain(value) for name, value in self.get_params(deep=False).items()}
        store.save(self._model, path, settings=plain)

    def _repr_html_(self) -> str:
        if not hasattr(self, "fitted_"):
            return str(BaseEstimator._repr_html_.__get__(self)())
        from mixedgm.results.result import html

        return html(summarise(self.fitted_, summary_notes(self.fitted_)))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
