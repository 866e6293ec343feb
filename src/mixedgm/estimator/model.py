"""Parameters and a table -> MixedGraphicalModel, a scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.utils import Tags

from mixedgm.base.parameters import with_options
from mixedgm.estimator.adequacy import AdequacyMethods
from mixedgm.estimator.graph import GraphMethods
from mixedgm.estimator.joint import JointMethods
from mixedgm.estimator.new_data import NewDataMethods
from mixedgm.estimator.report import ReportMethods
from mixedgm.fit.fitting import fit_table
from mixedgm.fit.options import Options, from_plain
from mixedgm.table.parted.design import parts_of
from mixedgm.table.read import as_frame


class MixedGraphicalModel(
    GraphMethods,
    NewDataMethods,
    AdequacyMethods,
    JointMethods,
    ReportMethods,
):
    """Sparse graphical model over continuous and categorical columns.

    Parameters
    ----------
    lam : float, or one per column, optional
        Penalty.  By default a path of values is solved and `select` chooses.  One value per column
        of the table, in its order (any for covariates, which have none), is for
        ``loss="nodewise"``.
    select : {"local-fdr", "fdr", "ebic", "bic", "aic", "cv", "holdout", "stars", "stability"}
        How the graph is chosen.  The first two test every pair of columns and keep those that pass,
        with a stated rate of errors; all others choose a lam.  An object carries options:
        ``mixedgm.LocalFDR(0.3)``, ``FDR(0.1)``, ``EBIC(gamma=0.25)``, `BIC`, `AIC` (with
        ``per_node=True``, one lam per column for ``loss="nodewise"``),
        ``CV(cv=5, one_se=True, groups=None)``, ``Holdout(fraction=0.2)``, ``StARS(beta=0.05)``,
        ``StabilitySelection(threshold=0.75, max_false=1)``.
    lams : sequence of float, optional
        The values of the path.  By default a geometric grid from lam_max down, as far as the
        choice needs it.
    n_lams : int
    lam_min_ratio : float
        Spacing of the default grid: `n_lams` values down to ``lam_min_ratio * lam_max``.
    loss : {"pseudolikelihood", "likelihood", "likelihood-mc", "nodewise"}
        What is minimised besides the penalty.  The likelihood is exact where its tables fit into
        memory; "likelihood-mc" samples it.  lam has another scale: lam_max of the likelihood is
        half that of the pseudolikelihood.  "nodewise" fits a separate regression for every column,
        each with its own coefficients; its lam_max is half as well.
    penalty_weights : {"calibrated", "uniform", "adaptive"}
        Penalty weights of the edges; calibrated ones make the estimate free of units and fair
        between kinds of edges.  "adaptive" divides them by the size of the edge in a pilot fit, so
        that large edges are shrunken less: the adaptive group lasso.  `lam` then has another scale.
    penalty_factors : mapping, optional
        Multiplies `penalty_weights`, by pair of names or by edge kind, e.g.
        ``{("age", "wage"): 0.5, "categorical-categorical": 2}``; 0 = free, inf = absent.
    require, forbid : list of pairs of names, optional
        Edges free of penalty, and edges left out.
    covariates : list of names, optional
        Columns that predict and are not predicted: the model is that of all others given them.
    penalize_covariates : bool
        Whether their edges are penalised (with half the weight in a pseudolikelihood, where only
        one end is predicted).
    moderators : list of names, optional
        Covariates that the edges between all other columns vary with, linearly or level by level.
        Every deviation of an edge is penalised apart; see `at`.  Factors, `require` and `forbid`
        name one by two columns and the moderator.
    rule : {"and", "or"}
        Whether an edge of separate regressions must be in both, or in either.
    types : mapping, Schema or str, optional
        Kinds that override inference, e.g. ``{"stage": "ordinal", "visits": "count"}``; `Ordinal`
        and `Count` instead of a name have options.  ``"hurdle"`` is a number with a spike at zero,
        such as debt: it has two parameters with every other column, whether and how much.
        ``types="ordinal"`` ("categorical", "continuous") is for all numbers with 3 to 10 distinct
        values.  The schema of a whole table, ``mixedgm.check_table(table).schema``, gives every
        fold of a cross-validation the kinds and levels of that table.
    transforms : "auto", "nonparanormal", mapping or None
        Which continuous columns are replaced by normal scores of their ranks.  "auto" decides by
        the values of each column: those with plainly skewed, heavy-tailed or bounded values are
        replaced, unless other columns explain the shape; covariates and tables in parts are not.
        "nonparanormal" is for all columns, None for none.  A mapping decides by name; columns that
        it does not name are "auto".  Values that are predicted, drawn or imputed stay within the
        range of the data; with "nonparanormal-extrapolated" they may lie beyond.
    missing : {"error", "drop", "model"}
        What to do about missing cells: refuse them; drop the rows that have some; or model them.
        "model" uses every row: the estimate is that whose gradient vanishes on average over what
        the missing cells can be, as the model itself says given the rest of the row.  It is right
        where cells are missing at random given what is observed; see `missing_report`.  A column
        that is missing where another has certain values is refused, unless `forbid` has the pair.
    refit : bool or "auto"
        Whether to estimate the chosen graph again without penalty.  "auto" does so where the
        criterion judges graphs (all but those named next), and not with
        cross-validation or a hold-out, which choose lam for shrunken predictions, nor with a given
        `lam`, which promises its objective.  Edges whose refit does not exist or is unstable get a
        ridge worth one row; `summary` names them.  Where tests chose the graph, edges of several
        parameters are shrunken, each by the variance of its coefficients.
    solver : {"auto", "proximal-newton", "proximal-gradient"} or object
        An object carries options: `ProximalNewton`, `ProximalGradient`; `MonteCarlo` for
        ``loss="likelihood-mc"``.
    tol : float
        Largest KKT number of a converged solution.
    max_iter : int
        Steps per lam.
    device : str
        Where passes over the rows are made: ``"cpu"``, or ``"cuda"`` (``"cuda:1"``, ...) for an
        NVIDIA GPU, which needs PyTorch.  Results are equal up to rounding.
    n_jobs : int, optional
        Threads of the fit, and processes for the folds and subsamples of `select`: all cores by
        default, or as `joblib.parallel_config` says.  It never changes a result.
    random_state : int, Generator, RandomState or None
        Draws the folds and subsamples of `select`, and the chains of ``loss="likelihood-mc"``.
        Everything else is deterministic.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    lam_ : float, or ndarray of shape (`n_features_in_`,)
        One value per column, in the order of the table and NaN for covariates, where `select`
        chooses or `lam` gives one per column.
    params_ : Params
        In the data's own units.
    schema_ : Schema
    edges_ : tuple of Edge
    kkt_, objective_ : float
        Recomputed at `params_`, independently of the solver.
    converged_ : bool
        Whether `kkt_` is known to be at most `tol`.  Where missing cells are completed by draws,
        it is not if the Monte Carlo error of the draws exceeds `tol`, and
        ``fitted_.report.solved`` tells whether `kkt_` is at these draws.
    n_iter_ : int
    path_ : Path
        None where `lam` gives one value per column.
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

    def __init__(
        self,
        lam: float | ArrayLike | None = None,
        *,
        select: object = "local-fdr",
        lams: ArrayLike | None = None,
        n_lams: int = 50,
        lam_min_ratio: float = 0.01,
        loss: str = "pseudolikelihood",
        penalty_weights: str = "calibrated",
        penalty_factors: object = None,
        require: object = None,
        forbid: object = None,
        covariates: Sequence[str] | None = None,
        penalize_covariates: bool = True,
        moderators: Sequence[str] | None = None,
        rule: str = "and",
        types: object = None,
        transforms: object = "auto",
        missing: str = "error",
        refit: bool | str = "auto",
        solver: object = "auto",
        tol: float = 1e-5,
        max_iter: int = 1000,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: object = None,
        verbose: int = 0,
    ) -> None:
        self.lam = lam
        self.select = select
        self.lams = lams
        self.n_lams = n_lams
        self.lam_min_ratio = lam_min_ratio
        self.loss = loss
        self.penalty_weights = penalty_weights
        self.penalty_factors = penalty_factors
        self.require = require
        self.forbid = forbid
        self.covariates = covariates
        self.penalize_covariates = penalize_covariates
        self.moderators = moderators
        self.rule = rule
        self.types = types
        self.transforms = transforms
        self.missing = missing
        self.refit = refit
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        """Change parameters, or options of a criterion or solver: ``select__gamma=0.25``.

        A criterion or solver is replaced by a changed copy, so that other models keep theirs.

        Examples
        --------
        >>> import mixedgm as mg
        >>> mg.MixedGraphicalModel(select=mg.EBIC()).set_params(select__gamma=0.25).select
        EBIC(gamma=0.25, per_node=False)
        """
        nested: dict[str, dict[str, Any]] = {}
        for name in [name for name in params if "__" in name]:
            parameter, _, option = name.partition("__")
            if parameter in self._get_param_names():
                nested.setdefault(parameter, {})[option] = params.pop(name)
        super().set_params(**params)
        for name, options in nested.items():
            setattr(self, name, with_options(name, getattr(self, name), options))
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"  # in the fit; in new rows always
        return tags

    # -- fitting -----------------------------------------------------------------------------------

    def fit(self, X: object, y: Any = None, sample_weight: ArrayLike | str | None = None) -> Self:
        """Learn the graph of a table.

        Parameters
        ----------
        X : data frame, 2-D array or path of a CSV or Parquet file
            The table.  A folder of Parquet files, a pattern such as ``"part-*.parquet"``, a list of
            such files, a lazy frame of polars and a dataset of pyarrow are read part by part, so
            that the table may be larger than memory; a Dask frame is fitted by its workers.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array (n,) or str, optional
            Frequencies of the rows, or the name of the column that has them.

        Returns
        -------
        MixedGraphicalModel
            Itself.
        """
        options = Options(**self.get_params(deep=False))
        reader = parts_of(X)
        if reader is not None:
            return self._adopt(fit_table(reader, reader.library, options, sample_weight))
        frame = as_frame(X)
        return self._adopt(fit_table(frame, frame.library, options, sample_weight))


def load(path: str | os.PathLike[str]) -> MixedGraphicalModel:
    """Read a model that `MixedGraphicalModel.save` wrote.

    Nothing in the file is executed; a damaged or foreign file raises ModelFileError.
    """
    from mixedgm import store

    fitted, settings = store.load(path)
    names = MixedGraphicalModel._get_param_names()
    given = {name: from_plain(value) for name, value in settings.items() if name in names}
    return MixedGraphicalModel(**given)._adopt(fitted)
