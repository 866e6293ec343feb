"""A fitted model and a question about its joint distribution -> the answer, with its error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mixedgm.base.errors import ParameterError, TooLargeError
from mixedgm.base.parallel import RandomState, seeds
from mixedgm.base.parameters import ensure, is_integer
from mixedgm.base.printable import number_of, quoted
from mixedgm.fit.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.model.params import Params
from mixedgm.studies.fit_check.joint_discrepancy import margin_notes, pair_notes
from mixedgm.studies.queries.conditioned import (
    KnownValues,
    asked_model,
    column_positions,
    read_columns,
    rows_at,
)
from mixedgm.studies.queries.distribution import Distribution
from mixedgm.studies.queries.means import Means
from mixedgm.studies.queries.observed import (
    FEWEST,
    column_margin,
    difference_notes,
    matching,
    state_shares,
)
from mixedgm.table.decode import decode
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps
from mixedgm.table.schema import Schema, with_names

if TYPE_CHECKING:
    from mixedgm.joint.marginals import Columns, Estimate
    from mixedgm.joint.sampled import Draw, Method


GivenArg = Mapping[Any, Any] | None
Answer = TypeVar("Answer")
Compared = TypeVar("Compared", Distribution, Means)


@dataclass(frozen=True)
class How:
    """How a question is answered.

    Parameters
    ----------
    method : {"auto", "exact", "gibbs"}
        Exactly, by Gibbs chains, or exactly when the tables fit the limit and else by chains.
    random_state : int, Generator, RandomState or None
        For what is drawn.
    limit : int or None
        Most entries of all tables together; None for the default.
    """

    method: Method = "auto"
    random_state: RandomState = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.method not in ("auto", "exact", "gibbs"):
            raise ParameterError.must_be("method", "'auto', 'exact' or 'gibbs'", self.method)
        if self.limit is not None and not is_integer(self.limit, 1):
            raise ParameterError.must_be("limit", "a positive integer, or None", self.limit)

    @property
    def rng(self) -> np.random.Generator:
        """A generator at its start."""
        return np.random.default_rng(seeds(self.random_state, 1)[0])

    @property
    def entries(self) -> int:
        """The limit as a number."""
        from mixedgm.joint.plan import LIMIT

        return LIMIT if self.limit is None else int(self.limit)

    def ask(
        self, fitted: FittedModel, function: Callable[..., Answer], *args: Any, **more: Any
    ) -> Answer:
        """What a function says about the joint distribution; errors name the columns."""
        params = fitted.joint_form
        return with_names(fitted.schema, function, params, *args, limit=self.entries, **more)

    def ask_exactly(
        self, fitted: FittedModel, function: Callable[..., Answer], *args: Any, **more: Any
    ) -> Answer:
        """The same of what needs an exact form, which there must be."""
        params = fitted.joint_density
        return with_names(fitted.schema, function, params, *args, limit=self.entries, **more)


def log_partition_of(fitted: FittedModel, how: How) -> float:
    """Logarithm of the partition function."""
    from mixedgm.joint.exact import log_partition

    _, rest = asked_model(fitted, None)
    return how.ask_exactly(rest, log_partition)


def log_densities(fitted: FittedModel, design: Design, how: How) -> Floats:
    """(n,) joint log density of rows, given their covariates where there are some."""
    from mixedgm.joint.posteriors import log_likelihood

    if fitted.moderators:
        return _moderated_densities(fitted, design, how)
    rows, covariates = (design.numbers, design.codes), fitted.schema.covariates
    return how.ask_exactly(fitted, log_likelihood, *rows, covariates=covariates)


def _moderated_densities(fitted: FittedModel, design: Design, how: How) -> Floats:
    """The same where edges vary: each row by the model at its own values of the moderators."""
    out = np.empty(design.n_rows)
    for rows, here, part in rows_at(fitted, design):
        out[rows] = log_densities(here, part, how)
    return out


def distribution_of(
    fitted: FittedModel, columns: object, given: GivenArg, how: How, table: Gaps | None = None
) -> Distribution:
    """Return the distribution of some columns, all others but the known ones averaged out.

    Shares and means in the rows of a table that match are put beside it.
    """
    from mixedgm.joint.marginals import marginal

    wanted = read_columns(fitted.schema, columns)
    evidence, rest = asked_model(fitted, given)
    _refuse_known(wanted, evidence)
    places = column_positions(rest.schema, wanted)
    moments = how.ask(rest, marginal, *places, method=how.method, rng=how.rng)
    names = {column.name for column in wanted} | set(evidence.values)
    notes = (*margin_notes(fitted), *pair_notes(fitted, names))
    answer = Distribution(wanted, evidence, moments, rest, how.entries, notes)
    if table is None:
        return answer
    rows = matching(table, evidence)
    answer = replace(answer, observed=state_shares(rows, wanted, moments.prob.shape))
    return _compared(answer, fitted, rows)


def means_of(fitted: FittedModel, given: GivenArg, how: How, table: Gaps | None = None) -> Means:
    """Return means and level probabilities of all columns that are not known.

    Those in the rows of a table that match are put beside them.
    """
    evidence, rest = asked_model(fitted, given)
    parts = with_names(rest.schema, _moments, rest, how)
    notes = (*margin_notes(fitted), *_notes_of_given(fitted, evidence))
    answer = Means(rest.schema, evidence, *parts, library=rest.library, warnings=notes)
    if table is None:
        return answer
    rows = matching(table, evidence)
    margins = {column.name: column_margin(rows, column) for column in rest.schema.columns}
    return _compared(replace(answer, observed=margins), fitted, rows)


def _compared(answer: Compared, fitted: FittedModel, rows: Gaps) -> Compared:
    """The same with a note about the rows that match, where there is one."""
    notes: tuple[str, ...] = difference_notes(fitted, answer.given, answer.comparisons())
    if rows.total_weight < FEWEST:
        match = number_of(rows.n_rows, "row of the table matches", "rows of the table match")
        notes = (f"{match}, too few to compare",)
    return replace(answer, warnings=(*answer.warnings, *notes))


def _notes_of_given(fitted: FittedModel, evidence: KnownValues) -> tuple[str, ...]:
    """The worst notable pair of a known column with another one."""
    if not evidence.values:
        return ()
    return pair_notes(fitted, fitted.schema.names, evidence.values)


def _moments(fitted: FittedModel, how: How) -> tuple[Floats, Floats, Floats, Floats, Floats, bool]:
    """Means, level probabilities, errors of both and of mean scores, and whether all are exact."""
    from mixedgm.joint.conditioning import KnownColumns
    from mixedgm.joint.posteriors import posterior
    from mixedgm.joint.sampled import refuse_exact, sampled_margins

    spans = fitted.schema.spans
    amounts = [spans.amounts(at) for at in range(len(spans.n_levels))]
    params, nothing = fitted.joint_form, KnownColumns.none()
    if isinstance(params, Params):
        refuse_exact(params, how.method)
    elif how.method != "gibbs":
        try:
            answer = posterior(params, nothing, method="exact", limit=how.entries)
            mean, levels = answer.mean[0], answer.levels[0]
            none = np.zeros_like(mean), np.zeros_like(levels), np.zeros(len(amounts))
            return mean, levels, *none, True
        except TooLargeError:
            if how.method == "exact":
                raise
    margins = sampled_margins(params, rng=how.rng)
    errors = margins.mean_error, margins.share_error, margins.errors_of(amounts)
    return margins.mean, margins.share, *errors, False


def entropy_of(fitted: FittedModel, columns: object, given: GivenArg, how: How) -> Estimate:
    """Return the entropy of some columns, or of all that are not known."""
    from mixedgm.joint.marginals import entropy

    evidence, rest = asked_model(fitted, given)
    asked = None if columns is None else _side(fitted, rest, columns, evidence, "columns")
    return how.ask_exactly(rest, entropy, asked, rng=how.rng)


def information_of(fitted: FittedModel, a: object, b: Any, given: GivenArg, how: How) -> Estimate:
    """Return the mutual information of two columns, or of two sets of columns."""
    from mixedgm.joint.marginals import mutual_information

    evidence, rest = asked_model(fitted, given)
    first, second = (
        _side(fitted, rest, columns, evidence, name) for columns, name in ((a, "a"), (b, "b"))
    )
    common = {c.name for c in read_columns(fitted.schema, a)} & {
        c.name for c in read_columns(fitted.schema, b)
    }
    if common:
        raise ParameterError(f"column {quoted(sorted(common)[0])} is in both a and b.")
    return how.ask_exactly(rest, mutual_information, first, second, rng=how.rng)


def _side(
    fitted: FittedModel, rest: FittedModel, columns: object, evidence: KnownValues, option: str
) -> Columns:
    from mixedgm.joint.marginals import Columns

    wanted = read_columns(fitted.schema, columns, option)
    _refuse_known(wanted, evidence)
    return Columns(*column_positions(rest.schema, wanted))


def _refuse_known(wanted: tuple[Any, ...], evidence: KnownValues) -> None:
    known = [column.name for column in wanted if column.name in evidence.values]
    if known:
        raise ParameterError(
            f"column {quoted(known[0])} is given, so it has no distribution of its own."
        )


# -- draws -----------------------------------------------------------------------------------------


def sample_rows(
    fitted: FittedModel,
    n: int,
    given: GivenArg,
    how: How,
    *,
    rounded: bool = True,
    **sweeps: int,
) -> tuple[Any, Draw, Schema]:
    """Draw rows as a table like the one of the fit; known columns hold their values.

    Returns the table, the draws behind it, and the columns that were drawn.  With `rounded`, these
    are whole where the column of the fit was.
    """
    from mixedgm.joint.sampled import draw

    for name, value in {"n": n, **sweeps}.items():
        ensure(is_integer(value, 1), name, "an integer of at least 1", value)
    evidence, rest = asked_model(fitted, given)
    schema = fitted.schema
    whole_names = rest.schema.names if rounded else ()
    drawn = how.ask(rest, draw, int(n), rng=how.rng, method=how.method, **sweeps)
    if not evidence.values:
        table = decode(schema, drawn.numbers, drawn.codes, fitted.library, rounded=whole_names)
        return table, drawn, schema
    numbers = np.empty((int(n), schema.spans.n_real))
    codes = np.empty((int(n), schema.n_discrete), dtype=np.int64)
    left_numbers, left_discrete = column_positions(schema, rest.schema.columns)
    numbers[:, left_numbers], codes[:, left_discrete] = drawn.numbers, drawn.codes
    for discrete, code in evidence.discrete.items():
        codes[:, discrete] = code
    for at in evidence.numbers:  # in own units, so that no rounding of a transform shows
        numbers[:, at] = evidence.values[schema.real[at].name]
    plain = Schema(
        tuple(
            replace(c, transform=None) if c.name in evidence.values else c for c in schema.columns
        )
    )
    return decode(plain, numbers, codes, fitted.library, rounded=whole_names), drawn, rest.schema


def expectation_of(
    fitted: FittedModel, function: Callable[[Any], Any], given: GivenArg, n: int, how: How
) -> Estimate:
    """Mean of a function over drawn rows, and its standard error."""
    from mixedgm.joint.marginals import Estimate

    rows, drawn, _ = sample_rows(fitted, n, given, how, rounded=False)
    returned = function(rows)
    try:
        values = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError):
        wanted = "one number for each row of the table"
        raise ParameterError.must_be("what f returns", wanted, returned) from None
    if values.shape != (n,):
        raise ParameterError(
            f"f must return one number for each of {n} rows. Got an array of shape {values.shape} "
            "instead."
        )
    # Rows of Gibbs chains count as their effective number of independent ones.
    worth = n if drawn.diagnostics is None else min(n, drawn.diagnostics.worst_ess)
    spread = float(values.std(ddof=1)) if n > 1 else np.nan
    return Estimate(float(values.mean()), spread / float(np.sqrt(worth)), exact=False)
