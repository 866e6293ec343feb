"""A fitted estimator and rows with missing cells -> the same rows, completed."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.estimator.base import HasModel
from mixedgm.parallel import RandomState
from mixedgm.table import as_frame
from mixedgm.table.fill import filled
from mixedgm.table.gaps import read_gaps
from mixedgm.table.match import UnseenArg

if TYPE_CHECKING:
    from mixedgm.joint.sampling import Method


class ImputeMethods(HasModel):
    """Missing cells."""

    def impute(
        self,
        X: Any,
        n_draws: int | None = None,
        *,
        random_state: RandomState = None,
        method: Method = "auto",
        limit: int | None = None,
        unseen: UnseenArg = "error",
    ) -> Any:
        """Fill missing cells from what is observed in their row.

        Parameters
        ----------
        X : data frame or 2-D array
            Rows with missing cells (NaN or null).  To have a whole column filled, add it without
            values.  Columns that the model does not know are kept.
        n_draws : int, optional
            Fill the cells of a row with a draw from their joint distribution, this many times
            (multiple imputation).  By default each cell gets its conditional mean, or its most
            probable level.
        random_state : int, Generator or None
            For draws.  The first of many draws are those of few.
        method : {"auto", "exact", "gibbs"}
            "auto" is exact where the tables fit the limit, else by Gibbs chains.
        limit : int, optional
            Most entries of the tables of one row; 2**24 by default.
        unseen : {"error", "ignore"}
            Whether a level that the model does not have is an error, or stays as it is and says
            nothing about the other cells of its row.

        Returns
        -------
        frame of the library of `X`, or ndarray for an array; with `n_draws`, a list of them
            Observed cells, order, index, data types and categories are those of `X`.  A column of
            an integer type stays one: what fills it is rounded.  In a column of decimals draws are
            rounded where the model was fitted to whole numbers, as those of `sample`.  A column
            with a transform gets the mean of its normal scores, put back into the data's own units,
            within the range of the data unless the transform is "nonparanormal-extrapolated".
            Columns that the model leaves out stay as they are.

        Warns
        -----
        SamplingWarning
            When means and levels had to come from Gibbs chains; it says how exact they are.

        Notes
        -----
        Draws take the fitted parameters as the truth: their spread does not hold the uncertainty
        of the fit itself.

        Examples
        --------
        >>> import mixedgm as mg
        >>> truth = mg.from_params(
        ...     {"height": "continuous", "sex": ["f", "m"]},
        ...     {"category_shift": [[-1.0, 1.0]]},
        ...     frame="numpy",
        ... )
        >>> truth.impute([[None, "m"], [-2.0, None]]).tolist()
        [[1.0, 'm'], [-2.0, 'f']]
        """
        from mixedgm.studies.impute import draws, expected
        from mixedgm.studies.queries import How

        model, frame = self._model, as_frame(X)
        how = How(method, random_state, limit)
        gaps = read_gaps(frame, model.schema, unseen=unseen)
        if n_draws is None:
            found = expected(model, gaps, how)
            return filled(X, frame, gaps, found.numbers, found.codes)
        whole = isinstance(n_draws, Integral) and not isinstance(n_draws, (bool, np.bool_))
        if not whole or n_draws < 1:
            raise ParameterError.must_be("n_draws", "an integer of at least 1, or None", n_draws)
        return [
            filled(X, frame, gaps, found.numbers, found.codes, rounded=True)
            for found in draws(model, gaps, int(n_draws), how)
        ]
