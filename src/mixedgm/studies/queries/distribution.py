"""The moments of some columns, state by state -> Distribution: frames, text, density."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import quoted, rows
from mixedgm.fit.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.results.result import how_found, result_html, result_text, square_frame
from mixedgm.studies.queries.conditioned import (
    KnownValues,
    column_positions,
    level_code,
    read_evidence,
)
from mixedgm.studies.queries.observed import (
    Comparison,
    StateShares,
    mean_comparison,
    share_comparison,
)
from mixedgm.table.encode import apply
from mixedgm.table.read import Columns, frame, unused_name
from mixedgm.table.schema import Column, Schema, with_names
from mixedgm.table.values import as_doubles

if TYPE_CHECKING:
    from mixedgm.joint.marginals import Marginal


@dataclass(frozen=True, eq=False, repr=False)
class Distribution:
    """The distribution of some columns, all others averaged out.

    ``model.marginal`` and ``model.conditional`` return one.  It prints as a table with one row for
    every state of the discrete columns: categorical and ordinal ones, and counts.  A hurdle column
    has two states, zero and not zero.

    Attributes
    ----------
    columns : tuple of Column
        The columns, in the order in which they were asked for.
    given : KnownValues
        The known values that it depends on.
    warnings : tuple of str
        Where the joint distribution is known to be far from the table of the fit.
    found : Marginal
        Probability, mean and covariance of every state, as arrays.
    model : FittedModel
        The model of all columns that are not given.
    limit : int
        Most entries of all tables together, for densities.
    observed : StateShares or None
        What matching rows of a table have, where one was given and at least 30 rows match.

    Examples
    --------
    >>> import mixedgm as mg
    >>> truth = mg.from_params(
    ...     {"height": "continuous", "sex": ["f", "m"]}, {"category_shift": [[-1.0, 1.0]]}
    ... )
    >>> height = truth.conditional("height", {"sex": "m"})
    >>> height.exact, height.mean
    (True, {'height': 1.0})
    """

    columns: tuple[Column, ...]
    given: KnownValues
    found: Marginal
    model: FittedModel
    limit: int
    warnings: tuple[str, ...] = ()
    observed: StateShares | None = None

    @property
    def exact(self) -> bool:
        """False when it was sampled; then `frame` has standard errors."""
        return self.found.exact

    @property
    def gaussian(self) -> bool:
        """Whether the continuous columns are Gaussian in every state.

        Otherwise they are a mixture over columns that are averaged out, with these moments.
        """
        return self.found.gaussian

    @property
    def continuous(self) -> tuple[Column, ...]:
        """The continuous columns, in the order in which they were asked for."""
        return self.schema.gaussian

    @property
    def categorical(self) -> tuple[Column, ...]:
        """The categorical columns, in the order in which they were asked for."""
        return self.schema.categorical

    @property
    def discrete(self) -> tuple[Column, ...]:
        """The columns with states: hurdle ones (zero or not), ordinal ones, counts, categories."""
        return self.schema.discrete

    @cached_property
    def schema(self) -> Schema:
        """The columns as a schema."""
        return Schema(self.columns)

    @property
    def _numbers(self) -> tuple[Column, ...]:
        """Those that have moments in every state."""
        return self.schema.real

    # -- tables ------------------------------------------------------------------------------------

    def frame(self) -> Any:
        """One row for every state of the discrete columns, as a frame.

        Returns
        -------
        frame of the library of the training table
            The value of every discrete column and `probability`; for every continuous column
            `<name>_mean` and `<name>_sd` in that state.  A hurdle column has these, too, and
            `<name> != 0`, which tells its two states apart.  A column with a transform has
            `<name>_centre`, `<name>_low` and `<name>_high` instead: the mean of its normal scores,
            less and plus their standard deviation, in the data's own units.  (That is the median
            where the column is Gaussian in the state, and a central interval of 68 per cent.)
            Sampled results have standard errors in `probability_error` and `<name>_error`; the
            latter are in normal scores for a column with a transform.  With `data`, and at least 30
            rows that match, `observed` has their shares, and `<name>_observed` means in states of
            at least 30 of them.
        """
        return frame(self._columns(), self.model.library)

    def _columns(self) -> Columns:
        shape, out = self.found.prob.shape, dict[str, Any]()

        def put(name: str, values: object) -> None:
            levels = (column.name for column in self.discrete)
            out[unused_name(name, [*out, *levels])] = values

        for code, column in zip(np.indices(shape), self.discrete, strict=True):
            if column in self._numbers:
                put(column.node_kind.axis(column.name, ())[0], code.ravel() > 0)
            else:
                out[column.name] = [column.value(at) for at in code.ravel().tolist()]
        if self.discrete:
            put("probability", self.found.prob.ravel())
        if self.discrete and not self.exact:
            put("probability_error", self.found.prob_error.ravel())
        if self.discrete and self.observed is not None:
            put("observed", self.observed.share)
        n_states = self.found.prob.size
        mean = self.found.mean.reshape(n_states, -1)
        variance = np.diagonal(self.found.covariance, axis1=-2, axis2=-1).reshape(n_states, -1)
        for at, column in enumerate(self._numbers):
            for name, values in _spread(column, mean[:, at], np.sqrt(variance[:, at])).items():
                put(f"{column.name}_{name}", values)
            if not self.exact:
                put(f"{column.name}_error", self.found.mean_error.reshape(n_states, -1)[:, at])
            if self.observed is not None:
                put(f"{column.name}_observed", column.decoded(self.observed.mean[:, at]))
        return out

    # -- moments and density -----------------------------------------------------------------------

    @property
    def mean(self) -> dict[str, float]:
        """Mean of every continuous or hurdle column and of every count over all states.

        For a column with a transform it is the mean of its normal scores, put back into the data's
        own units.
        """
        mean, _ = self._mixture()
        out = {
            column.name: float(column.decoded(value))
            for column, value in zip(self._numbers, mean, strict=True)
        }
        for at, column in enumerate(self.discrete):
            if not column.has_levels and column not in self._numbers:
                others = tuple(k for k in range(self.found.prob.ndim) if k != at)
                share = self.found.prob.sum(axis=others)
                out[column.name] = float(share @ np.arange(len(share)))
        return {name: out[name] for name in self.schema.names if name in out}

    def covariance(self, state: Mapping[str, Any] | None = None) -> Any:
        """Covariance of the continuous and hurdle columns.

        Parameters
        ----------
        state : mapping of column name to level, optional
            A value of every discrete column of the distribution; of a hurdle column zero, or any
            other number for not zero.  By default the covariance
            over all states, with the differences between their means in it.

        Returns
        -------
        frame
            Column names on both axes.  A column with a transform is in normal scores.
        """
        if state is None:
            _, matrix = self._mixture()
        else:
            known = read_evidence(Schema(self.discrete), state)
            names = [column.name for column in self.discrete]
            absent = [name for name in names if name not in known.values]
            if absent:
                raise ParameterError(
                    f"state needs a level of {', '.join(map(quoted, absent))}, too."
                )
            codes = [known.discrete[at] for at in range(len(names))]
            matrix = self.found.covariance[tuple(codes)]
        names = [column.name for column in self._numbers]
        return square_frame(names, matrix, self.model.library)

    def _mixture(self) -> tuple[Floats, Floats]:
        """Mean and covariance over all states."""
        prob = self.found.prob.ravel()
        alive = prob > 0
        prob, k = prob[alive], len(self._numbers)
        mean = self.found.mean.reshape(len(alive), k)[alive]
        within = self.found.covariance.reshape(len(alive), k, k)[alive]
        centre = prob @ mean
        off = mean - centre
        return centre, np.tensordot(prob, within, 1) + (prob[:, None] * off).T @ off

    def density(self, x: object) -> Any:
        """Density at some points, exactly, also where the continuous columns are a mixture.

        Parameters
        ----------
        x : mapping of column name to value or array, or data frame
            A value of every column.  Arrays must have one length, and go with single values.

        Returns
        -------
        float, or ndarray (n,) for arrays and frames
            Probability of the levels times density of the numbers.  A column with a transform
            counts in normal scores.

        Raises
        ------
        TooLargeError
            Where exact tables do not fit the limit.
        DistributionError
            Where the model has hurdle columns: it can be sampled, but its densities have no
            closed form.
        """
        from mixedgm.joint.conditioning import KnownColumns
        from mixedgm.joint.posteriors import log_marginal

        schema, params = self.model.schema, self.model.joint_density
        numbers, codes, single = self._points(x, self.schema)
        known = KnownColumns(*column_positions(schema, self.columns), numbers, codes)
        log_p = with_names(schema, log_marginal, params, known, limit=self.limit)
        return float(np.exp(log_p[0])) if single else np.exp(log_p)

    def _points(self, x: object, schema: Schema) -> tuple[Floats, Any, bool]:
        if not isinstance(x, Mapping):
            design = apply(x, schema)
            return design.numbers, design.codes, False
        given = {schema.nodes[schema.node_index(name)].name: value for name, value in x.items()}
        absent = [name for name in schema.names if name not in given]
        if absent:
            raise ParameterError(f"x needs a value of {', '.join(map(quoted, absent))}, too.")
        arrays = {name: np.asarray(given[name]) for name in schema.names}
        if any(array.ndim > 1 for array in arrays.values()):
            raise ParameterError("x takes single values and arrays with one dimension.")
        try:
            shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
        except ValueError:
            raise ParameterError("the arrays in x have different lengths.") from None
        n = shape[0] if shape else 1
        numbers, codes = (
            [_encoded(column, arrays[column.name], n) for column in part]
            for part in (schema.gaussian, schema.discrete)
        )
        empty = np.zeros((n, 0))
        return (
            np.column_stack([empty, *numbers]),
            np.column_stack([empty, *codes]).astype(np.int64),
            shape == (),
        )

    # -- how it looks ------------------------------------------------------------------------------

    def _title(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        given = f" given {self.given}" if self.given.values else ""
        return f"Distribution of {names}{given}"

    def _notes(self) -> list[str]:
        notes = [how_found(self.exact, self.found.note)]
        if self.observed is not None:
            notes.append(f"observed in {rows(self.observed.n_rows)} of the table that match")
        if self._numbers and not self.gaussian:
            notes.append("continuous columns: mixtures of Gaussians, of which these are moments")
        return [*notes, *self.warnings]

    def comparisons(self) -> Iterator[Comparison]:
        """Yield every number of the model beside that of matching rows."""
        if self.observed is None:
            return
        table, found = self.observed, self.found
        spreads = np.diagonal(found.covariance, axis1=-2, axis2=-1)
        means, spread, errors = (
            part.reshape(found.prob.size, -1) for part in (found.mean, spreads, found.mean_error)
        )
        for at, code in enumerate(np.ndindex(found.prob.shape)):
            names = [column.value_names[c] for column, c in zip(self.discrete, code, strict=True)]
            state = [f"{c.name} = {name}" for c, name in zip(self.discrete, names, strict=True)]
            if state and (at or found.prob.size != 2):  # of two shares one is enough
                shares = float(found.prob.flat[at]), float(table.share[at]), table.n_rows
                error = float(found.prob_error.flat[at])
                yield share_comparison(f"the share of {' & '.join(state)}", *shares, error)
            for j, column in enumerate(self._numbers):
                model = float(means[at, j]), float(spread[at, j]), float(errors[at, j])
                seen = float(table.mean[at, j]), float(table.variance[at, j])
                yield mean_comparison(column, model, seen, table.n_rows * float(table.share[at]))

    def __repr__(self) -> str:
        return result_text(self._title(), self._columns(), self._notes())

    def _repr_html_(self) -> str:
        """Return the same as HTML, with everything from the data escaped."""
        return result_html(self._title(), self._columns(), self._notes())


def _spread(column: Column, mean: Floats, sd: Floats) -> dict[str, Floats]:
    """Mean and standard deviation, or what a transform makes of them."""
    if column.transform is None:
        return {"mean": mean, "sd": sd}
    places = {"centre": mean, "low": mean - sd, "high": mean + sd}
    return {name: column.decoded(values) for name, values in places.items()}


def _encoded(column: Column, values: Any, n: int) -> Any:
    """Values of one column at all points, as the model has them."""
    if column.is_discrete:
        cells = np.broadcast_to(values, (n,)).tolist()
        code = {cell: level_code(column, cell) for cell in set(cells)}
        return np.array([code[cell] for cell in cells], dtype=np.int64)
    try:
        numbers = np.broadcast_to(as_doubles(values), (n,))
    except (TypeError, ValueError):
        raise ParameterError.must_be(
            f"the value of {quoted(column.name)}", "numbers", values
        ) from None
    if not np.isfinite(numbers).all():
        raise ParameterError(f"the values of {quoted(column.name)} must be finite.")
    return column.encoded(numbers)
