"""A fitted estimator and rows -> does the model fit, and what is missing in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from mixedgm.base.parallel import RandomState
from mixedgm.base.parameters import ensure, is_integer
from mixedgm.estimator.base import HasModel
from mixedgm.fit.options import Options
from mixedgm.table.checks.check import MissingArg
from mixedgm.table.encode import UnseenArg
from mixedgm.table.gaps import read_gaps, read_rows
from mixedgm.table.read import as_frame

if TYPE_CHECKING:
    from mixedgm.studies.fit_check.result import ModelCheck
    from mixedgm.studies.missing.report import MissingReport


class AdequacyMethods(HasModel):
    """How well the model describes rows."""

    def predictability(
        self,
        X: object,
        sample_weight: ArrayLike | None = None,
        *,
        folds: int | None = None,
        unseen: UnseenArg = "error",
    ) -> Any:
        """How well every column is predicted from all others.

        Parameters
        ----------
        X : data frame or 2-D array
            The training table, or new rows, on which shrinkage and chance are not counted as
            success.  With missing cells, a column is judged on the rows that have it.
        sample_weight : array (n,) or str, optional
            Frequencies of the rows, or the name of their column.
        folds : int, optional
            Adds the column `held_out`: R2 or the normalised accuracy on rows that had no part in
            the estimates.  The graph is kept and estimated again without each of so many folds.
            The graph itself has seen all rows, so values of weak columns are slightly too large.
            Not for models with moderators, whose values are NaN.
        unseen : {"error", "ignore"}
            What to do about levels that the model does not have, as in `score`.

        Returns
        -------
        frame of the library of the training table
            One row per column: `r2` of numbers (1 - residual / total sum of squares; of normal
            scores where a column has a transform, of the count itself, and of the levels of an
            ordinal column where they are numbers, else of their scores); where there are levels
            `accuracy`, `majority` (the share of the most frequent level) and `normalised_accuracy`
            ((accuracy - majority) / (1 - majority)), of a hurdle column those of being zero; of
            levels and counts `deviance_explained` (1 - deviance / deviance of the column without
            edges).  Means and shares are those of `X`.  NaN where a number has no meaning.

        References
        ----------
        Haslbeck and Waldorp, "How well do network models predict observations?", Behavior Research
        Methods 50 (2018).
        """
        from mixedgm.studies.fit_check.predictability import predictability_frame

        model = self._model
        wanted = folds is None or is_integer(folds, 2)
        ensure(wanted, "folds", "None or an integer of at least 2", folds)
        gaps = read_gaps(as_frame(X), model.schema, sample_weight=sample_weight, unseen=unseen)
        return predictability_frame(model, gaps, folds)

    def check_fit(
        self,
        X: object,
        *,
        sample_weight: ArrayLike | None = None,
        refit: bool = True,
        n_sim: int = 200,
        alpha: float = 0.05,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> ModelCheck:
        """Compare rows with tables drawn from the model, to see where the model is wrong.

        By default the graph is judged, not the size of its parameters: its edges are estimated on
        these rows without shrinkage, tables are drawn from that estimate, and in each of them the
        edges are estimated again.  So the graph that the rows come from is flagged with chance
        `alpha`, however the model was fitted.

        Parameters
        ----------
        X : data frame or 2-D array
            The training table, or new rows.
        sample_weight : array (n,) or str, optional
            Frequencies of the rows, or the name of their column.
        refit : bool
            Whether to judge the graph, estimated on `X` without shrinkage.  False judges the model
            as it is, with its own parameters: do they describe new rows, what does shrinkage do?
        n_sim : int
            Simulated tables, each with as many rows as `X` (or as the weights sum to).
        alpha : float
            Chance that anything is flagged when the model is right: the share of simulated tables
            in which some column or pair is as odd.
        random_state : int, Generator, RandomState or None
            Equal numbers give equal results, whatever `n_jobs` is.
        n_jobs : int, optional
            Processes that simulate tables: all cores by default, or as `joblib.parallel_config`
            says.
        verbose : int
            1 shows a progress bar.

        Returns
        -------
        ModelCheck
            Prints what is flagged, what that means and what to do; `flags()` is the same as a
            frame.  `nodes()`: residuals of every column given all others (of an ordinal column
            those of its scores), and how odd they are.  `pairs()`: association of every pair in the
            rows and in simulated tables, and how odd the pair is.  `levels()`: observed and
            expected counts.  `plot()`: all of it in one picture.  `p`: of the whole table.

        Raises
        ------
        ParameterError
            If the graph has too many parameters for the rows to be refitted, or edges vary with
            moderators: use `at`.
        DistributionError
            If there is no distribution to draw from: as it is (``refit=False``), a model of
            separate regressions has none.

        Notes
        -----
        Graphs are refitted by the pseudolikelihood, whatever the loss of the model: separate
        regressions and likelihoods are judged by their graphs.  Transformed columns get the normal
        scores of `X`.

        A graph that was chosen on the same rows is flagged less often than `alpha` where it has
        all true edges, and more often where it misses some: that is what the check is for.

        Covariates are not checked: simulated tables have those of `X`, and the other columns drawn
        given these.

        Examples
        --------
        >>> import mixedgm as mg, numpy as np, pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> x, z = rng.normal(size=(2, 400))
        >>> table = pd.DataFrame({"x": x, "y": x + rng.normal(size=400), "z": np.exp(0.5 * z)})
        >>> options = {"lam": 0.2, "forbid": [("x", "y")], "transforms": None}
        >>> model = mg.MixedGraphicalModel(**options).fit(table)
        >>> checked = model.check_fit(table, random_state=0)
        >>> checked.flagged
        (('z',), ('x', 'y'))
        >>> checked.flags()["meaning"].tolist()
        ['skewed', 'missing edge']
        """
        from mixedgm.studies.fit_check.adequacy import check_model

        model = self._model
        missing: MissingArg = "error" if model.report.completion is None else "model"
        design = read_rows(X, model.schema, missing, sample_weight=sample_weight)
        return check_model(
            model,
            design,
            refit=refit,
            n_sim=n_sim,
            alpha=alpha,
            random_state=random_state,
            n_jobs=n_jobs,
            show=bool(verbose),
        )

    def missing_report(
        self,
        X: object,
        sample_weight: ArrayLike | None = None,
        *,
        alpha: float = 0.05,
        n_jobs: int | None = None,
    ) -> MissingReport:
        """Say what is missing in a table, what of it matters, and what is assumed about it.

        Parameters
        ----------
        X : data frame or 2-D array
            The training table, or another one with the same columns.
        sample_weight : array (n,) or str, optional
            Frequencies of the rows, or the name of their column.
        alpha : float
            Limit of adjusted p-values, for columns that go with gaps in others.
        n_jobs : int, optional
            Threads; they change no result.

        Returns
        -------
        MissingReport
            Prints all of it in words.  `columns()`: missing cells of every column.  `patterns()`:
            which columns are missing together.  `edges()`: the share of the information about
            every pair that is missing.  `hints()`: columns whose values go with gaps in others.
            `assumption`: what is assumed about why cells are missing.  `plot()`: the patterns.

        Notes
        -----
        The information that is missing is that of the pseudolikelihood, given the edges of the
        model, at rows that the model itself completes (Louis 1982).  Separate regressions have no
        joint distribution: a joint fit of their graph stands in.

        Examples
        --------
        >>> import mixedgm as mg, numpy as np, pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=500)
        >>> table = pd.DataFrame({"x": x, "y": x + rng.normal(size=500)})
        >>> table.loc[x + rng.normal(size=500) > 1, "y"] = np.nan
        >>> model = mg.MixedGraphicalModel(missing="model").fit(table)
        >>> report = model.missing_report(table)
        >>> report.columns()[["column", "missing"]].values.tolist()
        [['y', 124], ['x', 0]]
        >>> report.hints()[["column", "predictor", "more_often"]].values.tolist()
        [['y', 'x', 'high values']]
        >>> report.edges()["missing_information"].round(2).tolist()
        [0.3]
        """
        from mixedgm.studies.missing.report import report_missing

        model = self._model
        gaps = read_gaps(
            as_frame(X), model.schema, sample_weight=sample_weight, require_covariates=False
        )
        given = self.get_params(deep=False) | {"n_jobs": n_jobs, "verbose": 0}
        return report_missing(model, Options(**given), gaps, alpha)
