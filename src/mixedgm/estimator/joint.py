"""A fitted estimator -> what only its joint distribution can say: new rows."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.estimator.base import HasModel
from mixedgm.parallel import RandomState, seeds
from mixedgm.table import decode

if TYPE_CHECKING:
    from mixedgm.joint.sampling import Method


class JointMethods(HasModel):
    """What can be asked of the joint distribution of all columns."""

    def sample(
        self, n: int = 1, *, random_state: RandomState = None, method: Method = "auto"
    ) -> Any:
        """Draw new rows from the model.

        Parameters
        ----------
        n : int
            How many.
        random_state : int, Generator or None
            Equal numbers give equal rows.
        method : {"auto", "exact", "gibbs"}
            Exact draws, Gibbs chains, or whichever fits: exact unless its tables are too large.

        Returns
        -------
        frame of the library of the training table, or ndarray after a fit to an array
            With its columns, levels and data types.  A column of whole numbers becomes one of
            decimals: the model takes it as continuous.

        Raises
        ------
        DistributionError
            When the precision matrix is not positive definite, so that there is no joint
            distribution.  The conditionals, and so `predict`, work all the same.
        TooLargeError
            When ``method="exact"`` would need too much memory.

        Warns
        -----
        SamplingWarning
            When Gibbs chains were needed and did not mix well.

        Examples
        --------
        >>> import mixedgm as mg
        >>> truth = mg.from_params({"height": "continuous", "sex": ["f", "m"]}, {})
        >>> truth.sample(3, random_state=0).shape
        (3, 2)
        """
        model = self._model
        if not isinstance(n, numbers.Integral) or isinstance(n, (bool, np.bool_)) or n < 1:
            raise ParameterError.must_be("n", "an integer of at least 1", n)
        rng = np.random.default_rng(seeds(random_state, 1)[0])
        rows = model.draw(int(n), rng, method)
        return decode(model.schema, rows.cont, rows.codes, model.library)
