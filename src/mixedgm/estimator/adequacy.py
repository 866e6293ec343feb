"""A fitted estimator and rows -> does the model fit: predictability and checks."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from mixedgm.estimator.base import HasModel
from mixedgm.studies.predictability import predictability_frame
from mixedgm.table import apply


class AdequacyMethods(HasModel):
    """How well the model describes rows."""

    def predictability(self, X: Any, sample_weight: ArrayLike | None = None) -> Any:
        """How well every column is predicted from all others.

        Parameters
        ----------
        X : data frame or 2-D array
            The training table, or new rows, on which shrinkage and chance are not counted as
            success.
        sample_weight : array (n,), optional
            Frequencies of the rows.

        Returns
        -------
        frame of the library of the training table
            One row per column: `r2` of a continuous one (1 - residual / total sum of squares; of
            normal scores where it has a transform); of a categorical one `accuracy`, `majority`
            (the share of its most frequent level), `normalised_accuracy` ((accuracy - majority) /
            (1 - majority)) and `deviance_explained` (1 - deviance / deviance of the levels'
            shares).  Means and shares are those of `X`.  NaN where a number has no meaning.

        References
        ----------
        Haslbeck and Waldorp, "How well do network models predict observations?", Behavior Research
        Methods 50 (2018).
        """
        model = self._model
        return predictability_frame(model, apply(X, model.schema, sample_weight=sample_weight))
