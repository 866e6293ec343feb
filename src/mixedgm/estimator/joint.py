"""A fitted estimator and a question to its joint distribution -> densities, rows, means, ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mixedgm.base.parallel import RandomState
from mixedgm.estimator.base import HasModel
from mixedgm.model.layout import Floats
from mixedgm.studies.fit_check.joint_discrepancy import JointDiscrepancy, joint_discrepancy
from mixedgm.studies.queries.conditioned import conditioned, read_evidence, repaired_model
from mixedgm.studies.queries.distribution import Distribution
from mixedgm.studies.queries.means import Means, SampleReport
from mixedgm.studies.queries.observed import observed_rows
from mixedgm.studies.queries.queries import (
    GivenArg,
    How,
    distribution_of,
    entropy_of,
    expectation_of,
    information_of,
    log_densities,
    log_partition_of,
    means_of,
    sample_rows,
)
from mixedgm.table.encode import apply

if TYPE_CHECKING:
    from mixedgm.joint.marginals import Estimate
    from mixedgm.joint.sampled import Method

ColumnsArg = str | Sequence[str]


class JointMethods(HasModel):
    """Questions to the joint distribution of all columns.

    Wherever values are given, a continuous or hurdle column takes a number in the data's own units,
    a count a whole number and a categorical or ordinal column a level; None and NaN mean that
    nothing is known.  Answers are exact when the tables that they need fit `limit` (2**24 entries
    by default) and, with ordinal columns or counts, all discrete columns have at most 2,048 values
    together; otherwise they come from Gibbs chains and have standard errors.  With hurdle columns
    they always do, unless all of these are given; what needs exact tables, such as densities, then
    raises DistributionError.  A call that takes more than about ten seconds says so before it
    begins (LongRunWarning).
    """

    def log_likelihood(
        self, X: object, sample_weight: ArrayLike | None = None, *, limit: int | None = None
    ) -> float:
        """Mean joint log density of rows; higher is better.

        Unlike `score`, which adds the conditionals of all columns, this is a likelihood; where the
        model has covariates, that of the other columns given these.

        Parameters
        ----------
        X : data frame or 2-D array
            The rows.
        sample_weight : array (n,) or str, optional
            Frequencies of the rows, or the name of their column.
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
            When the precision matrix is not positive definite; see `repaired`.  With hurdle
            columns.
        TooLargeError
            When the tables exceed the limit.
        """
        model = self._model
        design = apply(X, model.schema, sample_weight=sample_weight)
        densities = log_densities(model, design, How(limit=limit))
        return float(np.average(densities, weights=design.weights))

    def log_density(self, X: object, *, limit: int | None = None) -> Floats:
        """Joint log density of every row, as in `log_likelihood`.

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
            When there is no joint distribution, or none that is exact: with hurdle columns.
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
            0.01.  No edge is added, and all other parameters stay as they are.  `summary` says
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

    def condition(self, given: Mapping[Any, Any]) -> Self:
        """Return the model of the other columns, given known values of some.

        Parameters
        ----------
        given : mapping of column name to value
            For example ``{"sex": "Female", "age": 40}``.

        Returns
        -------
        MixedGraphicalModel
            A model of the remaining columns, exactly: it can be asked, drawn, sampled and saved
            like any other.  Their edges and strengths are those of the whole model; only the node
            terms depend on what is known.  Nothing was fitted, so `lam_`, `kkt_` and `objective_`
            are NaN; the estimator's parameters are those of this model.

        Examples
        --------
        >>> import mixedgm as mg
        >>> truth = mg.from_params(
        ...     {"height": "continuous", "sex": ["f", "m"]}, {"category_shift": [[-1.0, 1.0]]}
        ... )
        >>> truth.condition({"sex": "m"}).mean()["height"]
        1.0
        """
        evidence = read_evidence(self._model.schema, given)
        return self._with_model(conditioned(self._model, evidence))

    def marginal(
        self,
        columns: ColumnsArg,
        *,
        data: object = None,
        sample_weight: ArrayLike | None = None,
        method: Method = "auto",
        random_state: RandomState = 0,
        limit: int | None = None,
    ) -> Distribution:
        """Distribution of some columns, all others averaged out.

        Parameters
        ----------
        columns : str or sequence of str
            One or several names.
        data : data frame, 2-D array or file name, optional
            The training table, or another one with the same columns.  Its shares and means stand
            beside those of the model, and a note names the largest difference that sampling does
            not explain.
        sample_weight : array (n,), optional
            Frequencies of the rows of `data`.
        method : {"auto", "exact", "gibbs"}
            How it is computed.
        random_state : int, Generator, RandomState or None
            For Gibbs chains.
        limit : int, optional
            Most entries of all tables together; 2**24 by default.

        Returns
        -------
        Distribution
            `frame()` has one row for every state of the categorical and ordinal columns and counts:
            their values, probability, and mean and standard deviation of the continuous columns in
            that state.  A hurdle column has two states, zero and not zero.  Further `mean`,
            `covariance(state)`, `density(x)`, `exact`, `gaussian`.

        Examples
        --------
        >>> import mixedgm as mg
        >>> truth = mg.from_params(
        ...     {"height": "continuous", "sex": ["f", "m"]}, {"category_shift": [[-1.0, 1.0]]}
        ... )
        >>> truth.marginal(["sex", "height"])
        Distribution of sex, height
        sex  probability  height_mean  height_sd
        f            0.5           -1          1
        m            0.5            1          1
        (exact under the model)
        """
        model = self._model
        table = observed_rows(model, data, sample_weight)
        return distribution_of(model, columns, None, How(method, random_state, limit), table)

    def conditional(
        self,
        columns: ColumnsArg,
        given: GivenArg = None,
        *,
        data: object = None,
        sample_weight: ArrayLike | None = None,
        method: Method = "auto",
        random_state: RandomState = 0,
        limit: int | None = None,
    ) -> Distribution:
        """Distribution of some columns given others, the rest averaged out.

        Parameters
        ----------
        columns : str or sequence of str
            One or several names.
        given : mapping of column name to value
            Known values of other columns, not necessarily of all.
        data, sample_weight
            As in `marginal`, of the rows that have the known values, where at least 30 do: those of
            a continuous column seldom have the same value.
        method, random_state, limit
            As in `marginal`.

        Returns
        -------
        Distribution
            As in `marginal`.

        Examples
        --------
        >>> import mixedgm as mg
        >>> wage = mg.datasets.load_wage()[["education", "health", "health_ins"]]
        >>> model = mg.MixedGraphicalModel().fit(wage)
        >>> given = {"education": "4. College Grad", "health_ins": "2. No"}
        >>> model.conditional("health", given, data=wage)
        Distribution of health given education = 4. College Grad, health_ins = 2. No
        health          probability  observed
        1. <=Good            0.2152    0.3013
        2. >=Very Good       0.7848    0.6987
        (exact under the model; observed in 156 rows of the table that match)
        """
        model = self._model
        table = observed_rows(model, data, sample_weight)
        return distribution_of(model, columns, given, How(method, random_state, limit), table)

    def mean(
        self,
        given: GivenArg = None,
        *,
        data: object = None,
        sample_weight: ArrayLike | None = None,
        method: Method = "auto",
        random_state: RandomState = 0,
        limit: int | None = None,
    ) -> Means:
        """Mean of every column of numbers and count, and probability of every level.

        Parameters
        ----------
        given : mapping of column name to value, optional
            Known values of some columns.
        data, sample_weight
            As in `conditional`.
        method, random_state, limit
            As in `marginal`.

        Returns
        -------
        Means
            ``means["age"]`` is a number, ``means["sex"]`` a dictionary of levels, and
            ``means.score("pain")`` the mean of an ordinal column's scores; `frame()` has everything
            else.  The mean of a column with a transform is that of its normal scores, put back into
            the data's own units.
        """
        model = self._model
        table = observed_rows(model, data, sample_weight)
        return means_of(model, given, How(method, random_state, limit), table)

    def expectation(
        self,
        f: Callable[[Any], Any],
        given: GivenArg = None,
        *,
        n: int = 10_000,
        method: Method = "auto",
        random_state: RandomState = 0,
        limit: int | None = None,
    ) -> Estimate:
        """Mean of any function of a row, over rows drawn from the model.

        Parameters
        ----------
        f : callable
            Takes a table of rows as `sample` returns it, gives one number (or truth value) for
            each row.
        given : mapping of column name to value, optional
            Known values of some columns.
        n : int
            Rows to draw.
        method, random_state, limit
            As in `marginal`.

        Returns
        -------
        Estimate
            `value` and its standard `error`.

        Examples
        --------
        >>> import mixedgm as mg
        >>> truth = mg.from_params({"height": "continuous", "sex": ["f", "m"]}, {})
        >>> share = truth.expectation(lambda rows: rows["height"] > 0)
        >>> abs(share.value - 0.5) < 4 * share.error
        True
        """
        return expectation_of(self._model, f, given, n, How(method, random_state, limit))

    def entropy(
        self,
        columns: ColumnsArg | None = None,
        given: GivenArg = None,
        *,
        random_state: RandomState = 0,
        limit: int | None = None,
    ) -> Estimate:
        """Entropy of some columns in nats, differential in the continuous ones.

        Parameters
        ----------
        columns : str or sequence of str, optional
            All that are not given by default.
        given : mapping of column name to value, optional
            Known values of other columns.
        random_state : int, Generator, RandomState or None
            Where there is no closed form.
        limit : int, optional
            Most entries of all tables together; 2**24 by default.

        Returns
        -------
        Estimate
            `value`, `error`, `exact`.  Exact unless several continuous columns are a mixture over
            columns that are averaged out; then it is a mean over exact draws.  A column with a
            transform counts in normal scores.
        """
        return entropy_of(self._model, columns, given, How("auto", random_state, limit))

    def mutual_information(
        self,
        a: ColumnsArg,
        b: ColumnsArg,
        given: GivenArg = None,
        *,
        random_state: RandomState = 0,
        limit: int | None = None,
    ) -> Estimate:
        """Mutual information of two columns, or of two sets of columns, in nats.

        Parameters
        ----------
        a, b : str or sequence of str
            Columns without a common one.
        given : mapping of column name to value, optional
            Known values of other columns.
        random_state, limit
            As in `entropy`.

        Returns
        -------
        Estimate
            `value`, `error`, `exact`.  Columns without a path between them have 0.  Exact in the
            same cases as `entropy`.

        Raises
        ------
        TooLargeError
            When exact tables exceed the limit, or a mean over exact draws would take too long.

        Examples
        --------
        >>> import mixedgm as mg
        >>> truth = mg.from_params(
        ...     {"height": "continuous", "sex": ["f", "m"]}, {"category_shift": [[-1.0, 1.0]]}
        ... )
        >>> round(truth.mutual_information("height", "sex").value, 3)
        0.337
        """
        return information_of(self._model, a, b, given, How("auto", random_state, limit))
