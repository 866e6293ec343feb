"""The fitted model behind an estimator -> what all of its methods start from."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mixedgm.fitted import FittedModel


class HasModel(BaseEstimator):
    """An estimator that holds a FittedModel once it is fitted."""

    fitted_: FittedModel

    def _adopt(self, fitted: FittedModel) -> None:
        """Show a fitted model through the attributes that scikit-learn users expect."""
        self.fitted_ = fitted
        by_column = fitted.report.lam_by_column
        self.lam_ = fitted.report.lam if by_column is None else by_column
        self.params_ = fitted.params
        self.schema_ = fitted.schema
        self.edges_ = fitted.edges
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

    def _with_model(self, fitted: FittedModel) -> Self:
        """Return a new estimator with the same parameters that holds another model."""
        model = type(self)(**self.get_params(deep=False))
        model._adopt(fitted)
        return model

    @property
    def _model(self) -> FittedModel:
        check_is_fitted(self, "fitted_")
        return self.fitted_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")
