"""A fitted estimator and a question about some columns -> distributions, means, information."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from mixedgm.estimator.base import HasModel
from mixedgm.parallel import RandomState
from mixedgm.studies.conditioned import conditioned
from mixedgm.studies.distribution import Distribution
from mixedgm.studies.evidence import read_evidence
from mixedgm.studies.means import Means
from mixedgm.studies.queries import (
    GivenArg,
    How,
    distribution_of,
    entropy_of,
    expectation_of,
    information_of,
    means_of,
)

if TYPE_CHECKING:
    from mixedgm.joint import Estimate
    from mixedgm.joint.sampling import Method

ColumnsArg = str | Sequence[str]


class QueryMethods(HasModel):
    """Questions to the joint distribution.

    Wherever values are given, a continuous column takes a number in the data's own units and a
    categorical one a level; None and NaN mean that nothing is known.  Answers are exact when the
    tables that they need fit `limit` (2**24 entries by default); otherwise they come from Gibbs
    chains and have standard errors.
    """

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
            like any other.  Their edges and weights are those of the whole model; only the node
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
        method: Method = "auto",
        random_state: RandomState = 0,
        limit: int | None = None,
    ) -> Distribution:
        """Distribution of some columns, all others averaged out.

        Parameters
        ----------
        columns : str or sequence of str
            One or several names.
        method : {"auto", "exact", "gibbs"}
            How it is computed.
        random_state : int, Generator, RandomState or None
            For Gibbs chains.
        limit : int, optional
            Most entries of all tables together; 2**24 by default.

        Returns
        -------
        Distribution
            `frame()` has one row for every state of the categorical columns: levels, probability,
            and mean and standard deviation of the continuous columns in that state.  Further
            `mean`, `covariance(state)`, `density(x)`, `exact`, `gaussian`.

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
        (exact)
        """
        return distribution_of(self._model, columns, None, How(method, random_state, limit))

    def conditional(
        self,
        columns: ColumnsArg,
        given: GivenArg = None,
        *,
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
        method, random_state, limit
            As of `marginal`.

        Returns
        -------
        Distribution
            As of `marginal`.
        """
        return distribution_of(self._model, columns, given, How(method, random_state, limit))

    def mean(
        self,
        given: GivenArg = None,
        *,
        method: Method = "auto",
        random_state: RandomState = 0,
        limit: int | None = None,
    ) -> Means:
        """Mean of every continuous column and probability of every level.

        Parameters
        ----------
        given : mapping of column name to value, optional
            Known values of some columns.
        method, random_state, limit
            As of `marginal`.

        Returns
        -------
        Means
            ``means["age"]`` is a number, ``means["sex"]`` a dictionary of levels; `frame()` has
            everything.  The mean of a column with a transform is that of its normal scores, put
            back into the data's own units.
        """
        return means_of(self._model, given, How(method, random_state, limit))

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
            As of `marginal`.

        Returns
        -------
        Estimate
            `value` and its standard `error`.

        Examples
        --------
        >>> import mixedgm as mg
        >>> truth = mg.from_params({"height": "continuous", "sex": ["f", "m"]}, {})
        >>> found = truth.expectation(lambda rows: rows["height"] > 0)
        >>> abs(found.value - 0.5) < 4 * found.error
        True
        """
        how = How(method, random_state, limit)
        return expectation_of(self._model, f, given, n, how)

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
            As of `entropy`.

        Returns
        -------
        Estimate
            `value`, `error`, `exact`.  Columns without a path between them have 0.

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
