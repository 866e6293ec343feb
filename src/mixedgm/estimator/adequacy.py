"""A fitted estimator and rows -> does the model fit: predictability and checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from mixedgm.deprecation import renamed
from mixedgm.estimator.base import HasModel
from mixedgm.parallel import RandomState
from mixedgm.table import apply, as_frame
from mixedgm.table.encode import UnseenArg
from mixedgm.table.gaps import read_gaps

if TYPE_CHECKING:
    from mixedgm.studies.model_check import ModelCheck


class AdequacyMethods(HasModel):
    """How well the model describes rows."""

    def predictability(
        self, X: Any, sample_weight: ArrayLike | None = None, *, unseen: UnseenArg = "error"
    ) -> Any:
        """How well every column is predicted from all others.

        Parameters
        ----------
        X : data frame or 2-D array
            The training table, or new rows, on which shrinkage and chance are not counted as
            success.  With missing cells, a column is judged on the rows that have it.
        sample_weight : array (n,), optional
            Frequencies of the rows.
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
        from mixedgm.studies.predictability import predictability_frame

        model = self._model
        gaps = read_gaps(as_frame(X), model.schema, sample_weight=sample_weight, unseen=unseen)
        return predictability_frame(model, gaps)

    def check_fit(
        self,
        X: Any,
        *,
        sample_weight: ArrayLike | None = None,
        n_sim: int = 200,
        alpha: float = 0.05,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> ModelCheck:
        """Compare rows with tables drawn from the model, to see where the model is wrong.

        Parameters
        ----------
        X : data frame or 2-D array
            The training table, or new rows.
        sample_weight : array (n,), optional
            Frequencies of the rows.
        n_sim : int
            Simulated tables, each with as many rows as `X` (or as the weights sum to).
        alpha : float
            Chance that anything is flagged when the model is right (by Holm's rule over all columns
            and pairs).
        random_state : int, Generator, RandomState or None
            Equal numbers give equal results, whatever `n_jobs` is.
        n_jobs : int, optional
            Processes that simulate tables: all cores by default, or as `joblib.parallel_config`
            says.

        Returns
        -------
        ModelCheck
            Prints what is flagged and what that means.  `nodes()`: residuals of every column given
            all others (of an ordinal column those of its scores), and how odd they are.  `pairs()`:
            strength of every pair in the rows and in simulated tables.  `levels()`: observed and
            expected counts.  `plot()`: all of it in one picture.

        Notes
        -----
        A penalised estimate (a given lam, cross-validation, ``refit=False``) is shrunken, and
        simulated relations are then weaker than observed ones: with many rows the check shows
        that, too.  To see what the graph itself misses, check a refitted model.  On the rows of
        the fit the check is cautious: the model has already moved towards them.

        Covariates are not checked: simulated tables have those of `X`, and the other columns drawn
        given these.
        """
        from mixedgm.studies.adequacy import check_model

        model = self._model
        design = apply(X, model.schema, sample_weight=sample_weight)
        return check_model(
            model, design, n_sim=n_sim, alpha=alpha, random_state=random_state, n_jobs=n_jobs
        )

    check = renamed(check_fit, "model.check", "model.check_fit")
