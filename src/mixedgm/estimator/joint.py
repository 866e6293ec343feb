"""A fitted estimator -> what its joint distribution gives: densities, new rows, a valid model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mixedgm.estimator.base import HasModel
from mixedgm.model.layout import Floats
from mixedgm.parallel import RandomState
from mixedgm.studies.conditioned import repaired_model
from mixedgm.studies.joint_discrepancy import JointDiscrepancy, joint_discrepancy
from mixedgm.studies.queries import GivenArg, How, log_densities, log_partition_of, sample_rows
from mixedgm.studies.sample_report import SampleReport
from mixedgm.table import apply

if TYPE_CHECKING:
    from mixedgm.joint.sampling import Method


class JointMethods(HasModel):
    """The joint distribution of all columns."""

    def log_likelihood(
        self, X: Any, sample_weight: ArrayLike | None = None, *, limit: int | None = None
    ) -> float:
        """Mean joint log density of rows; higher is better.

        Unlike `score`, which adds the conditionals of all columns, this is a likelihood; where the
        model has covariates, that of the other columns given these.

        Parameters
        ----------
        X : data frame or 2-D array
            The rows.
        sample_weight : array (n,), optional
            Frequencies of the rows.
        limit : int, optional
            Most entries of all tables together; 2**24 by default.

        Returns
        -------
        float
            ``-inf`` where a row has a level that had no rows in the fit.  A column with a transform
            counts in normal scores.

        Raises
        ------
        DistributionError
            When the precision matrix is not positive definite; see `repaired`.
        TooLargeError
            When the tables exceed the limit.
        """
        model = self._model
        design = apply(X, model.schema, sample_weight=sample_weight)
        found = log_densities(model, design, How(limit=limit))
        return float(np.average(found, weights=design.weights))

    def log_density(self, X: Any, *, limit: int | None = None) -> Floats:
        """Joint log density of every row, as of `log_likelihood`.

        Examples
        --------
        >>> import mixedgm as mg
        >>> truth = mg.from_params({"height": "continuous", "sex": ["f", "m"]}, {}, frame="numpy")
        >>> truth.log_density([[0.0, "f"], [1.0, "m"]]).round(3)
        array([-1.612, -2.112])
        """
        model = self._model
        return log_densities(model, apply(X, model.schema), How(limit=limit))

    def log_partition(self, *, limit: int | None = None) -> float:
        """Logarithm of the partition function of the joint distribution.

        Its node terms are those that give it the table's margins, not those in `params_`.
        """
        return log_partition_of(self._model, How(limit=limit))

    def joint_discrepancy(self) -> JointDiscrepancy:
        """How far the joint distribution is from the table of the fit, for every pair of columns.

        Its margins are those of the table.  What the graph leaves out or shrinkage weakens shows
        in pairs.

        Returns
        -------
        JointDiscrepancy
            Prints the pairs that are furthest from the table.  `frame()` has all of them,
            `largest` the worst as a sentence.  Compared are correlations of continuous columns,
            means of a continuous column in one level (in standard deviations), and shares of rows
            with one level of each of two categorical columns.  Notable is a difference of more
            than 0.1, 0.2 or 0.05 that is also more than three standard errors; answers about such
            a pair repeat it.

        Raises
        ------
        DistributionError
            When there is no joint distribution.
        ParameterError
            With covariates; for parameters that were given; for more than 200 design columns.

        Examples
        --------
        >>> import mixedgm as mg
        >>> wage = mg.datasets.load_wage()[["age", "logwage"]]
        >>> model = mg.MixedGraphicalModel(lam=0.3).fit(wage)
        >>> print(model.joint_discrepancy().largest)
        the correlation of age and logwage is +0.07 in the joint distribution, +0.22 in the table
        """
        return joint_discrepancy(self._model)

    def repaired(self) -> Self:
        """Return the nearest model that has a joint distribution.

        The pseudolikelihood does not force the precision matrix to be positive definite.  Where it
        is not, columns can be predicted from all others, but there is no joint distribution to
        sample from or to ask.

        Returns
        -------
        MixedGraphicalModel
            A new one.  Partial correlations are moved as little as possible (in the Frobenius
            norm) until the smallest eigenvalue of the precision matrix with a unit diagonal is
            0.01.  No edge is added, and all other parameters stay as they are.  `summary` tells
            what was changed; `kkt_` and `objective_` are NaN.  A model that is valid already comes
            back as it is.
        """
        return self._with_model(repaired_model(self._model))

    def sample(
        self,
        n: int = 1,
        given: GivenArg = None,
        *,
        method: Method = "auto",
        random_state: RandomState = None,
        limit: int | None = None,
        burn_in: int = 500,
        thin: int = 5,
        report: bool = False,
    ) -> Any:
        """Draw new rows from the model.

        Parameters
        ----------
        n : int
            How many.
        given : mapping of column name to value, optional
            Known values; the other columns are drawn given these.
        method : {"auto", "exact", "gibbs"}
            Exact draws, Gibbs chains, or whichever fits: exact unless its tables are too large.
        random_state : int, Generator, RandomState or None
            Equal numbers give equal rows.
        limit : int, optional
            Most entries of all tables together; 2**24 by default.
        burn_in, thin : int
            Sweeps of the Gibbs chains before the first and between two kept states.
        report : bool
            Whether to return a SampleReport as well: how the rows were drawn, and with Gibbs chains
            R-hat and effective sample size of every column and level.

        Returns
        -------
        frame of the library of the training table, or ndarray after a fit to an array
            With its columns, levels and data types; columns that are given hold their value.  The
            model takes a column of whole numbers as continuous; its draws are rounded, and kept
            within what its type can hold.  Draws of a column with a transform stay within the range
            of the data, unless the transform is "nonparanormal-extrapolated".  Columns that are
            left out of the model are not drawn.

        Raises
        ------
        DistributionError
            When the precision matrix is not positive definite, so that there is no joint
            distribution; see `repaired`.  The conditionals, and so `predict`, work all the same.
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
        >>> truth.sample(3, {"sex": "m"}, random_state=0)["sex"].tolist()
        ['m', 'm', 'm']
        """
        how = How(method, random_state, limit)
        rows, draw, schema = sample_rows(self._model, n, given, how, burn_in=burn_in, thin=thin)
        return (rows, SampleReport.of(schema, draw, self._model.library)) if report else rows
