"""A fitted estimator and a table with gaps -> what is missing, and what that means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from mixedgm.estimator.base import HasModel
from mixedgm.options import Options
from mixedgm.table import as_frame
from mixedgm.table.gaps import read_gaps

if TYPE_CHECKING:
    from mixedgm.studies.missing_report import MissingReport


class MissingMethods(HasModel):
    """What gaps in a table mean for the model."""

    def missing_report(
        self,
        X: Any,
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
        from mixedgm.studies.missing_report import report_missing

        model = self._model
        gaps = read_gaps(
            as_frame(X), model.schema, sample_weight=sample_weight, require_covariates=False
        )
        given = self.get_params(deep=False) | {"n_jobs": n_jobs, "verbose": 0}
        return report_missing(model, Options(**given), gaps, alpha)
