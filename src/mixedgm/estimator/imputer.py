"""Rows with missing cells in -> completed rows, as a step of a scikit-learn pipeline."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mixedgm.base.errors import ParameterError
from mixedgm.base.parallel import RandomState
from mixedgm.base.parameters import ensure
from mixedgm.estimator.model import MixedGraphicalModel
from mixedgm.table.encode import UnseenArg
from mixedgm.table.schema import Schema


class MixedImputer(TransformerMixin, BaseEstimator):
    """Fill missing cells from a mixed graphical model of all columns.

    Parameters
    ----------
    estimator : MixedGraphicalModel, optional
        The model to fit; by default ``MixedGraphicalModel()``.  It is fitted with
        ``missing="model"``, so that every row counts; ``missing="drop"`` leaves rows with missing
        cells out of the fit.
    strategy : {"mean", "draw"}
        Conditional means, most probable levels and median counts given the observed cells of a row,
        or a draw from their joint distribution.
    random_state : int, Generator, RandomState or None
        For draws.
    unseen : {"error", "ignore"}
        What `transform` does about a level that no row of the fit had: an error, or the cell stays
        as it is and is ignored when the others of its row are filled.

    Attributes
    ----------
    model_ : MixedGraphicalModel
        The fitted model.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when the table had column names.

    Notes
    -----
    The model is fitted to all rows that have a value, and no row needs to be complete.  That is
    right where cells are missing at random given what is observed in their row; where they are
    missing because of their own values, the fit is biased.  Moderators and ``loss="likelihood-mc"``
    need complete rows: with these, the others are left out, and a `TableWarning` counts them.

    Examples
    --------
    >>> import mixedgm as mg, numpy as np
    >>> wage = mg.datasets.load_wage(frame="pandas")
    >>> gappy = wage.mask(np.random.default_rng(0).random(wage.shape) < 0.2)
    >>> int(gappy.notna().all(axis=1).sum())  # complete rows, of 3,000
    400
    >>> imputer = mg.MixedImputer(mg.MixedGraphicalModel(lam=0.1)).fit(gappy)
    >>> filled = imputer.transform(gappy)
    >>> int(filled.isna().sum().sum()), filled["education"].iloc[0]
    (0, '1. < HS Grad')
    """

    def __init__(
        self,
        estimator: MixedGraphicalModel | None = None,
        *,
        strategy: Literal["mean", "draw"] = "mean",
        random_state: RandomState = None,
        unseen: UnseenArg = "error",
    ) -> None:
        self.estimator = estimator
        self.strategy = strategy
        self.random_state = random_state
        self.unseen = unseen

    def fit(self, X: object, y: Any = None, sample_weight: ArrayLike | None = None) -> MixedImputer:
        """Fit the model to a table with gaps.

        Parameters
        ----------
        X : data frame, 2-D array or path of a CSV or Parquet file
            The table.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array (n,) or str, optional
            Frequencies of the rows, or the name of their column.

        Returns
        -------
        MixedImputer
            Itself.
        """
        ensure(self.strategy in ("mean", "draw"), "strategy", "'mean' or 'draw'", self.strategy)
        model = MixedGraphicalModel() if self.estimator is None else clone(self.estimator)
        if not isinstance(model, MixedGraphicalModel):
            raise ParameterError.must_be("estimator", "a MixedGraphicalModel", self.estimator)
        model.set_params(missing="model" if _takes_gaps(model) else "drop")
        self.model_ = model.fit(X, sample_weight=sample_weight)
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def transform(self, X: object) -> Any:
        """Fill the missing cells of rows.

        Parameters
        ----------
        X : data frame or 2-D array
            The rows.

        Returns
        -------
        frame of the library of `X`, or ndarray for an array
            As from ``MixedGraphicalModel.impute``, with the columns of the model only; in another
            library after ``set_output``.
        """
        check_is_fitted(self, "model_")
        if self.strategy == "draw":
            state = self.random_state
            done = self.model_.impute(X, 1, random_state=state, unseen=self.unseen)[0]
        else:
            done = self.model_.impute(X, unseen=self.unseen)
        return _columns(done, self.model_.schema_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that are returned: those of the model."""
        check_is_fitted(self, "model_")
        schema = self.model_.schema_
        if input_features is not None and tuple(map(str, input_features)) != schema.table_names:
            raise ValueError("input_features is not equal to feature_names_in_")
        return np.array(schema.names, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _takes_gaps(model: MixedGraphicalModel) -> bool:
    """Whether the model is to be fitted to rows with gaps, and can be."""
    complete = model.missing == "drop" or model.loss == "likelihood-mc"
    return not complete and (model.moderators is None or len(model.moderators) == 0)


def _columns(table: Any, schema: Schema) -> Any:
    """The columns of the model, in its order, so that later steps see what they were fitted to."""
    names = list(schema.names)
    if isinstance(table, np.ndarray):
        if table.shape[1] == len(names):
            return table
        return table[:, [schema.table_names.index(name) for name in names]]
    if hasattr(table, "iloc"):
        at = {str(name): k for k, name in enumerate(table.columns)}
        return table.iloc[:, [at[name] for name in names]]
    return table.select(names)
