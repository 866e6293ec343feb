"""The scikit-learn face: parameters in, FittedModel behind, frames out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixedgm import store, views
from mixedgm.errors import ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.fitting import fit_table
from mixedgm.options import Options
from mixedgm.settings import from_plain, to_plain
from mixedgm.table import Schema, apply, as_frame, decode

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from networkx import Graph


class _Unseen:
    """A parameter that `getattr` does not find, only `get_params` and `set_params`.

    scikit-learn takes every object that has an attribute `transform` for a transformer, and would
    call it.  The parameter of that name must therefore not be seen as an attribute.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        raise AttributeError(
            f"MixedGraphicalModel has no method {self.name!r}; "
            f"the parameter is in get_params()[{self.name!r}]"
        )

    def __set__(self, instance: object, value: Any) -> None:
        instance.__dict__[self.name] = value


def _has_categorical_target(model: MixedGraphicalModel) -> bool:
    fitted = getattr(model, "fitted_", None)
    return fitted is not None and fitted.schema.n_cat > 0


class MixedGraphicalModel(BaseEstimator):
    """Sparse graphical model over continuous and categorical columns.

    Parameters
    ----------
    lam : float, optional
        Penalty.  By default a path of values is solved and `select` chooses.
    select : {"ebic", "bic", "aic"} or object
        How lam is chosen, e.g. ``mixedgm.EBIC(gamma=0.25)``.
    lams : sequence of float, optional
        The values of the path; by default `n_lams` values from lam_max down to
        ``lam_min_ratio * lam_max``.
    n_lams : int
    lam_min_ratio : float
    loss : {"pseudolikelihood"}
    weights : {"calibrated", "uniform"}
        Penalty weights of the edges; calibrated ones make the estimate free of units and fair
        between kinds of edges.
    penalty_factors : mapping, optional
        Multiplies `weights`, by pair of names or by edge kind, e.g.
        ``{("age", "wage"): 0.5, "categorical-categorical": 2}``; 0 = free, inf = absent.
    require, forbid : list of pairs of names, optional
        Edges free of penalty, and edges left out.
    covariates, penalize_covariates, moderators, rule
        Reserved for conditional and nodewise models.
    types : mapping, optional
        Kinds that override inference, e.g. ``{"stage": "categorical"}``.
    transform : "nonparanormal" or mapping, optional
        Rank-based Gaussianising of all or some continuous columns.
    missing : {"error", "drop"}
    refit : bool
        Refit the chosen graph without shrinkage.
    solver : {"auto", "proximal-newton", "proximal-gradient"} or object
    tol : float
        Largest KKT number of a converged solution.
    max_iter : int
        Steps per lam.
    n_jobs : int, optional
        Threads; all cores by default.  It never changes a result.
    random_state : int, optional
        Not used by the fit, which is deterministic.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    lam_ : float
    params_ : Params
        In the data's own units.
    schema_ : Schema
    edges_ : tuple of Edge
    kkt_, objective_ : float
        Recomputed at `params_`, independently of the solver.
    converged_ : bool
    n_iter_ : int
    path_ : Path
    fitted_ : FittedModel
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when the table had column names.

    Examples
    --------
    >>> import numpy as np, mixedgm as mg
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 500)
    >>> table = {"height": rng.normal(size=500) + group, "group": np.array(["a", "b"])[group]}
    >>> import pandas as pd
    >>> model = mg.MixedGraphicalModel().fit(pd.DataFrame(table))
    >>> [(edge.source, edge.target, edge.sign) for edge in model.edges_]
    [('height', 'group', '+')]
    """

    transform = _Unseen()

    def __init__(
        self,
        lam: float | None = None,
        *,
        select: Any = "ebic",
        lams: ArrayLike | None = None,
        n_lams: int = 50,
        lam_min_ratio: float = 0.01,
        loss: str = "pseudolikelihood",
        weights: str = "calibrated",
        penalty_factors: Any = None,
        require: Any = None,
        forbid: Any = None,
        covariates: Sequence[str] | None = None,
        penalize_covariates: bool = True,
        moderators: Sequence[str] | None = None,
        rule: str = "and",
        types: Any = None,
        transform: Any = None,
        missing: str = "error",
        refit: bool = False,
        solver: Any = "auto",
        tol: float = 1e-5,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.lam = lam
        self.select = select
        self.lams = lams
        self.n_lams = n_lams
        self.lam_min_ratio = lam_min_ratio
        self.loss = loss
        self.weights = weights
        self.penalty_factors = penalty_factors
        self.require = require
        self.forbid = forbid
        self.covariates = covariates
        self.penalize_covariates = penalize_covariates
        self.moderators = moderators
        self.rule = rule
        self.types = types
        self.transform = transform
        self.missing = missing
        self.refit = refit
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters as they were given."""
        return {name: vars(self)[name] for name in self._get_param_names()}

    # -- fitting -----------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> MixedGraphicalModel:
        """Learn the graph of a table.

        Parameters
        ----------
        X : data frame, 2-D array or path of a CSV or Parquet file
            The table.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array (n,), optional
            Frequencies of the rows.

        Returns
        -------
        MixedGraphicalModel
            Itself.
        """
        options = Options(**self.get_params(deep=False))
        frame = as_frame(X)
        fitted = fit_table(frame, frame.library, options, sample_weight)
        self._adopt(fitted)
        return self

    def _adopt(self, fitted: FittedModel) -> None:
        """Show a fitted model through the attributes that scikit-learn users expect."""
        self.fitted_ = fitted
        self.lam_ = fitted.report.lam
        self.params_ = fitted.params
        self.schema_ = fitted.schema
        self.edges_ = fitted.edges
        self.kkt_ = fitted.report.kkt
        self.converged_ = fitted.report.converged
        self.n_iter_ = fitted.report.n_iter
        self.objective_ = fitted.report.objective
        self.path_ = fitted.path
        self.n_features_in_ = len(fitted.schema.columns)
        if fitted.library != "numpy":
            self.feature_names_in_ = np.array(fitted.schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    @property
    def _model(self) -> FittedModel:
        check_is_fitted(self, "fitted_")
        return self.fitted_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    # -- the graph ---------------------------------------------------------------------------------

    def edges(self) -> Any:
        """Edges, heaviest first, as a frame of the training table's library.

        Columns: source, target, kind, weight (free of units, comparable between kinds), sign
        ("+", "-", or none where an end has three or more levels), partial_correlation (continuous
        pairs only).
        """
        return views.edges_frame(self._model)

    def nodes(self) -> Any:
        """Columns with kind, levels, number of edges and total edge weight, as a frame."""
        return views.nodes_frame(self._model)

    def interaction(self, a: str, b: str) -> Any:
        """Parameters between two columns, level names on both axes."""
        return views.interaction_frame(self._model, a, b)

    def summary(self) -> views.Summary:
        """What was fitted, how well it converged, and the heaviest edges; prints as text."""
        return views.summarise(self._model)

    def to_networkx(self) -> Graph[str]:
        """The graph with the columns as nodes; kind, weight and sign as attributes."""
        return views.to_networkx(self._model)

    def to_adjacency(self, *, signed: bool = False) -> Any:
        """Symmetric table of edge weights (negative where signed and the sign is "-")."""
        return views.to_adjacency(self._model, signed=signed)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the graph as .graphml, .json (with all parameters) or .csv (edge list)."""
        views.write(self._model, path)

    def plot(self, *, layout: Any = "spring", ax: Axes | None = None, **options: Any) -> Any:
        """Draw the network; `layout` takes a name or the positions of an earlier plot."""
        return views.plot_network(self._model, layout=layout, ax=ax, **options)

    def plot_path(self, *, ax: Axes | None = None, **options: Any) -> Any:
        """Draw edge weights against lam, with the chosen value marked."""
        return views.plot_path(self._model, ax=ax, **options)

    def plot_parameters(self, *, ax: Axes | None = None, **options: Any) -> Any:
        """Draw the symmetric matrix of all parameters."""
        return views.plot_parameters(self._model, ax=ax, **options)

    # -- new data ----------------------------------------------------------------------------------

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
        return out[:, 0] if frame.library == "numpy" else out[wanted[0]]

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
            return {c.name: self.predict_proba(X, c.name) for c in model.schema.categorical}
        node = model.schema.nodes[model.schema.node_index(column)]
        frame = as_frame(X)
        design = apply(frame, model.schema, require=set(model.schema.names) - {node.name})
        probability = model.predict_proba(design, node.name)
        return _aligned(views.probability_frame(node.level_names, probability, frame.library), X)

    # -- keeping -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which `mixedgm.load` reads back."""
        plain = {name: to_plain(value) for name, value in self.get_params(deep=False).items()}
        store.save(self._model, path, settings=plain)

    @classmethod
    def _from_store(cls, fitted: FittedModel, settings: Mapping[str, Any]) -> MixedGraphicalModel:
        known = cls._get_param_names()
        model = cls(**{k: from_plain(v) for k, v in settings.items() if k in known})
        model._adopt(fitted)
        return model

    def _repr_html_(self) -> str:
        if not hasattr(self, "fitted_"):
            return str(BaseEstimator._repr_html_.__get__(self)())
        return views.html(views.summarise(self.fitted_))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def load(path: str | os.PathLike[str]) -> MixedGraphicalModel:
    """Read a model that `MixedGraphicalModel.save` wrote.

    Nothing in the file is executed; a damaged or foreign file raises ModelFileError.
    """
    fitted, settings = store.load(path)
    return MixedGraphicalModel._from_store(fitted, settings)


def _aligned(out: Any, X: Any) -> Any:
    """Give predictions for a pandas frame that frame's index, so that they can be assigned."""
    if hasattr(out, "index") and hasattr(X, "index") and hasattr(out, "iloc"):
        out.index = X.index
    return out


def _wanted(schema: Schema, columns: str | Sequence[str] | None) -> list[str]:
    if columns is None:
        return list(schema.names)
    names = list(columns) if isinstance(columns, (list, tuple, np.ndarray)) else [columns]
    if not names:
        raise ParameterError.must_be("columns", "at least one column name", columns)
    return [schema.nodes[schema.node_index(name)].name for name in names]
