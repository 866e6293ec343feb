"""Column names and known values -> positions and codes, or what is wrong; the model there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import ExtrapolationWarning, ParameterError, level_of_caller, near_matches
from mixedgm.base.parameters import ensure
from mixedgm.base.printable import quoted
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.report import FitReport
from mixedgm.model.moderation import at_values, without
from mixedgm.model.nodes import in_node_order
from mixedgm.model.params import Params
from mixedgm.solve.loop import Certificate
from mixedgm.table.encode import Design
from mixedgm.table.schema import Column, Level, Schema, with_names

_SHOWN_LEVELS = 10


@dataclass(frozen=True)
class KnownValues:
    """Known values of some columns: by name, in the table's order and in the data's own units.

    `numbers` has those of columns with real numbers by position, normal scores where a column has a
    transform; `discrete` the codes of all but Gaussian columns by position.
    """

    values: Mapping[str, float | Level] = field(default_factory=dict)
    numbers: Mapping[int, float] = field(default_factory=dict)
    discrete: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        schema: Schema,
        encoded: Mapping[int, float],
        values: Mapping[str, float | Level] | None = None,
    ) -> KnownValues:
        """Return values of some nodes as the model has them; by default `values` are decoded."""
        spans, nodes = schema.spans, schema.nodes
        numbers = {v: float(x) for v, x in encoded.items() if spans.is_real(v)}
        discrete = {
            spans.place(v): int(x != 0.0 if v in numbers else x)
            for v, x in encoded.items()
            if not spans.is_gaussian(v)
        }
        if values is None:
            values = {nodes[v].name: nodes[v].value(x) for v, x in encoded.items()}
        return cls(values, numbers, discrete)

    def by_node(self, schema: Schema) -> dict[int, float]:
        """Return numbers and level codes by node."""
        spans = schema.spans
        nodes = (schema.node_index(name) for name in self.values)
        return {
            v: self.numbers[v] if spans.is_real(v) else self.discrete[spans.place(v)] for v in nodes
        }

    def __str__(self) -> str:
        """Return "age = 40, sex = Female"."""
        return ", ".join(f"{name} = {shown(value)}" for name, value in self.values.items())


def read_evidence(schema: Schema, given: Mapping[Any, Any] | None) -> KnownValues:
    """Return known values as numbers and level codes, or raise one error with all that is wrong.

    A level is given as it is in the table or as its text.  None and NaN mean that nothing is known.

    Examples
    --------
    >>> sex = Column("sex", "categorical", levels=("F", "M"))
    >>> schema = Schema((sex, Column("age", "continuous")))
    >>> print(read_evidence(schema, {"age": 40, "sex": "F"}))
    sex = F, age = 40
    """
    if given is None:
        return KnownValues()
    ensure(hasattr(given, "items"), "given", "a dict such as {'sex': 'Female', 'age': 40}", given)
    wrong: list[str] = []
    read: dict[str, tuple[float | Level, float]] = {}
    for name, value in given.items():
        try:
            column = schema.nodes[schema.node_index(name)]
            if not _missing(value):
                read[column.name] = _read_value(column, value)
        except ParameterError as error:
            wrong.append(str(error).rstrip("."))
    if wrong:
        text = "; ".join(wrong)
        raise ParameterError(text if text.endswith("?") else f"{text}.")
    names = [name for name in schema.names if name in read]
    encoded = {schema.node_index(name): read[name][1] for name in names}
    return KnownValues.of(schema, encoded, {name: read[name][0] for name in names})


def _read_value(column: Column, value: Any) -> tuple[float | Level, float]:
    """Return a value in the data's own units, and as the model has it."""
    if column.is_discrete:
        code = level_code(column, value)
        return column.value(code), code
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ParameterError(
            f"column {quoted(column.name)} is {column.kind}, so its value must be a number. "
            f"Got {quoted(value)} instead"
        ) from None
    if not np.isfinite(number):
        raise ParameterError(
            f"the value of column {quoted(column.name)} must be finite. Got {number}"
        )
    return number, float(column.encoded(number))


def level_code(column: Column, value: object) -> int:
    """Return the position of a level that is given as itself or as its text.

    Examples
    --------
    >>> level_code(Column("year", "categorical", levels=(2008, 2009)), "2009")
    1
    >>> level_code(Column("visits", "count", largest=9), 4)
    4
    """
    value = value.item() if isinstance(value, np.generic) else value
    if not column.has_levels:
        return _count(column, value)
    for at, level in enumerate(column.levels):
        # 1 is not a truth value here, and False is not the level 0.
        if level == value and isinstance(level, bool) == isinstance(value, bool):
            return at
    text = str(value)
    if text in column.level_names:
        return column.level_names.index(text)
    hint = near_matches(text, column.level_names)
    if not hint.startswith("did"):
        shown = ", ".join(quoted(level) for level in column.levels[:_SHOWN_LEVELS])
        more = len(column.levels) - _SHOWN_LEVELS
        hint = f"its levels are {shown}" + (f" and {more} more" if more > 0 else "")
    raise ParameterError(f"column {quoted(column.name)} has no level {quoted(value)}; {hint}")


def _count(column: Column, value: Any) -> int:
    """A value of a count column, or its text, as a whole number."""
    try:
        number = np.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not 0 <= number < column.n_values or number != int(number):
        raise ParameterError(
            f"column {quoted(column.name)} is a count, so its value must be a whole number from 0 "
            f"to {column.n_values - 1}. Got {quoted(value)} instead"
        )
    return int(number)


def read_columns(schema: Schema, columns: object, option: str = "columns") -> tuple[Column, ...]:
    """Return the columns that a name or a sequence of different names stands for, in that order."""
    single = isinstance(columns, (str, Integral))
    names = [columns] if single else list(columns) if np.iterable(columns) else []
    if not names:
        raise ParameterError.must_be(option, "a column name or a list of them", columns)
    named = [schema.nodes[schema.node_index(name)] for name in names]
    for at, column in enumerate(named):
        if column in named[:at]:
            raise ParameterError(f"column {quoted(column.name)} is named twice.")
    return tuple(named)


def column_positions(
    schema: Schema, columns: Sequence[Column]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return their columns of numbers and their columns of codes; a spiked column has both.

    They are in the order in which a schema of these columns has them.
    """
    ordered = in_node_order(columns, lambda column: column.kind)
    numbers, discrete = schema.spans.places(schema.node_index(c.name) for c in ordered)
    return tuple(numbers), tuple(discrete)


def _missing(value: object) -> bool:
    """Whether a cell holds nothing: None, NaN, NaT or NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def shown(value: object, digits: int = 6) -> str:
    """A value as text."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


# -- conditioned -----------------------------------------------------------------------------------

_LISTED = 5
_GIVEN = "those of a larger model given "


def asked_model(
    fitted: FittedModel, given: Mapping[Any, Any] | None
) -> tuple[KnownValues, FittedModel]:
    """Read known values, all covariates among them; return them and the model of the rest."""
    evidence = read_evidence(fitted.schema, given)
    fitted.require_joint()
    covariates = [fitted.schema.nodes[node].name for node in fitted.schema.covariates]
    unknown = [name for name in covariates if name not in evidence.values]
    if unknown:
        raise ParameterError(
            f"the model has no distribution of its covariates; give values of "
            f"{', '.join(map(quoted, unknown))}, too: given={{{quoted(unknown[0])}: ...}}."
        )
    return evidence, conditioned(fitted, evidence)


def conditioned(fitted: FittedModel, evidence: KnownValues) -> FittedModel:
    """Return the model of the remaining columns, exactly.

    Edges among the remaining columns stay what they are, weights included; known values only
    change the node terms.
    """
    if not evidence.values:
        return fitted
    schema, names = fitted.schema, _moderator_names(fitted)
    if names:  # first what is known about moderators, then the rest
        moderators = {name: value for name, value in evidence.values.items() if name in names}
        others = {name: value for name, value in evidence.values.items() if name not in names}
        at = model_at(fitted, moderators)
        return conditioned(at, read_evidence(at.schema, others))
    if all(column.name in evidence.values for column in schema.columns):
        raise ParameterError("all columns are given, so that nothing is left; give fewer.")
    _refuse_impossible(fitted, evidence)
    values = evidence.by_node(schema)
    params = without(fitted.matched_params, list(values), list(values.values()))
    return _of_rest(fitted, evidence, params, fitted.report.at)


def is_conditioned(fitted: FittedModel) -> bool:
    """Whether the model is that of some columns of a larger one, given the others."""
    return fitted.report.message.startswith(_GIVEN)


def _of_rest(fitted: FittedModel, evidence: KnownValues, params: Params, at: str) -> FittedModel:
    """The model of the columns that are not known, with these parameters."""
    schema = fitted.schema
    left = Schema(tuple(c for c in schema.columns if c.name not in evidence.values))
    before = f"{fitted.report.message}, " if is_conditioned(fitted) else _GIVEN
    report = replace(
        FitReport.given(fitted.report.notes),
        certificate=Certificate.none(f"{before}{evidence}"),
        at=at,
        loss=fitted.report.loss,
        rule=fitted.report.rule,
    )
    kept = [schema.node_index(column.name) for column in left.nodes]
    scales = fitted.node_scales[np.isin(schema.spans.scale_node, kept)]
    rows = None
    if fitted.rows is not None and left.covariates:  # else they are drawn from the model
        known = [schema.node_index(name) for name in evidence.values]
        rows = fitted.rows.without(*schema.spans.places(known))
    return FittedModel(left, params, scales, report, fitted.library, rows=rows)


# -- moderated edges -------------------------------------------------------------------------------


def model_at(fitted: FittedModel, values: Mapping[Any, Any] | None) -> FittedModel:
    """Return the ordinary model at given values of all moderators and nothing else."""
    names = _moderator_names(fitted)
    if not names:
        raise ParameterError(
            "this model has no moderators, so that its edges are the same everywhere; fit it with "
            "moderators=[...], or use condition for known values of other columns."
        )
    if values is None or not hasattr(values, "items"):
        wanted = ", ".join(f"{quoted(name)}: ..." for name in names)
        raise ParameterError.must_be("f", f"a dict with the moderators {{{wanted}}}", values)
    for name in values:
        column = fitted.schema.nodes[fitted.schema.node_index(name)].name
        if column not in names:
            raise ParameterError(
                f"{quoted(column)} is not a moderator; the edges vary with "
                f"{', '.join(map(quoted, names))}. "
                "Use condition for known values of other columns."
            )
    evidence = read_evidence(fitted.schema, values)
    model = _at(fitted, evidence)
    _warn_outside(fitted, evidence)
    return model


def models_along(
    fitted: FittedModel,
    moderator: str,
    values: Sequence[Any] | None = None,
    f: Mapping[Any, Any] | None = None,
) -> tuple[list[FittedModel], list[str]]:
    """Return the models at several values of a moderator, and what to call them.

    By default these are its mean and one standard deviation below and above, or all levels that
    have rows.  Other moderators have the values in `f`, else their mean or most frequent level.
    """
    node = fitted.schema.node_index(moderator)
    if node not in fitted.moderators:
        names = ", ".join(map(quoted, _moderator_names(fitted)))
        raise ParameterError(
            f"{quoted(moderator)} is not a moderator; "
            + (f"the edges vary with {names}." if names else "the edges do not vary.")
        )
    name = fitted.schema.nodes[node].name
    others = {fitted.schema.nodes[m].name: _middle(fitted, m) for m in fitted.moderators}
    others |= dict(f or {})
    chosen = list(values) if values is not None else _spread(fitted, node)
    if not chosen:
        raise ParameterError.must_be("values", "at least one value of the moderator", values)
    models = [model_at(fitted, {**others, name: value}) for value in chosen]
    return models, [f"{name} = {shown(value, 4)}" for value in chosen]


def _spread(fitted: FittedModel, node: int) -> list[Any]:
    """Low, middle and high, and zero of a hurdle column; or all levels with rows."""
    assert fitted.params.moderation is not None
    column, moderation = fitted.schema.nodes[node], fitted.params.moderation
    if column.has_levels:
        bias = fitted.params.bias_of(node)
        return [level for level, x in zip(column.levels, bias, strict=True) if np.isfinite(x)]
    nodes = fitted.params.nodes
    middle = moderation.middle[nodes.last_column[node]]
    low, high = moderation.span[fitted.moderators.index(node)]
    step = fitted.units_of(node)[-1] * np.array([-1.0, 0.0, 1.0])
    values = [nodes.value_at(node, x) for x in np.clip(middle + step, low, high)]
    values = [0.0, *values] if nodes.spiked_nodes[node] else values
    return [column.value(x) for x in dict.fromkeys(values)]


def _middle(fitted: FittedModel, node: int) -> Any:
    """Mean, or most frequent level."""
    assert fitted.params.moderation is not None
    nodes = fitted.params.nodes
    middle = fitted.params.moderation.middle[nodes.columns_of(node)]
    if nodes.numeric_nodes[node]:
        return fitted.schema.nodes[node].value(nodes.value_at(node, float(middle[-1])))
    return fitted.schema.nodes[node].value(nodes.kinds[node].point(middle).item())


def _at(fitted: FittedModel, evidence: KnownValues) -> FittedModel:
    """The model at evidence about all moderators and nothing else."""
    missing = [name for name in _moderator_names(fitted) if name not in evidence.values]
    if missing:
        raise ParameterError(
            f"the edges vary with {', '.join(map(quoted, missing))}; give a value of "
            f"{'it' if len(missing) == 1 else 'each'}, too: {{{quoted(missing[0])}: ...}}."
        )
    _refuse_impossible(fitted, evidence)
    known = evidence.by_node(fitted.schema)
    values = [known[m] for m in fitted.moderators]
    params = without(at_values(fitted.params, values), fitted.moderators, values)
    return _of_rest(fitted, evidence, params, str(evidence))


def rows_at(
    fitted: FittedModel, design: Design
) -> Iterator[tuple[NDArray[np.intp], FittedModel, Design]]:
    """Rows with equal values of the moderators, the model at these, and the other columns."""
    schema = fitted.schema
    keys = np.column_stack([design.values_of(m) for m in fitted.moderators])
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    for at, values in enumerate(distinct):
        evidence = KnownValues.of(schema, dict(zip(fitted.moderators, values, strict=True)))
        here = _at(fitted, evidence)
        numbers, discrete = column_positions(schema, here.schema.nodes)
        rows = np.flatnonzero(which.ravel() == at)
        part = design.take(rows)
        x, y = part.numbers[:, list(numbers)], part.codes[:, list(discrete)]
        yield rows, here, replace(part, schema=here.schema, numbers=x, codes=y)


def _moderator_names(fitted: FittedModel) -> list[str]:
    return [fitted.schema.nodes[node].name for node in fitted.moderators]


def _warn_outside(fitted: FittedModel, evidence: KnownValues) -> None:
    """Warn about values of moderators that the fit has not seen."""
    assert fitted.params.moderation is not None
    known, nodes = evidence.by_node(fitted.schema), fitted.params.nodes
    for node, (low, high) in zip(fitted.moderators, fitted.params.moderation.span, strict=True):
        if np.isnan(low):  # categories have no range
            continue
        value, slack = nodes.numbers_of(node, known[node])[-1], 1e-9 * (high - low)
        if low - slack <= value <= high + slack:  # zero of a hurdle column is between, too
            continue
        column = fitted.schema.nodes[node]
        lowest, highest = (column.value(nodes.value_at(node, x)) for x in (low, high))
        warnings.warn(
            f"{quoted(column.name)} was between {shown(lowest)} and {shown(highest)} in the rows "
            f"of the fit; at {shown(evidence.values[column.name])} the edges are extrapolated.",
            ExtrapolationWarning,
            stacklevel=level_of_caller(),
        )


def _refuse_impossible(fitted: FittedModel, evidence: KnownValues) -> None:
    spans, possible = fitted.schema.spans, fitted.params.levels_possible
    for at, code in evidence.discrete.items():
        if not possible[spans.levels_of(at)][code]:
            column = fitted.schema.discrete[at]
            raise ParameterError(
                f"level {quoted(column.value(code))} of column {quoted(column.name)} cannot "
                "occur in this model (it had no rows), so nothing can be said given it."
            )


def repaired_model(fitted: FittedModel) -> FittedModel:
    """Return the nearest model that has a joint distribution; its notes tell what was changed.

    A model that has one already is returned as it is.
    """
    from mixedgm.joint.validity import repaired

    # Covariates are always known, so only the targets need a distribution.
    inside = fitted.schema.real_targets
    targets = Schema(tuple(fitted.schema.nodes[s] for s in inside))
    block, whole = np.ix_(inside, inside), fitted.pairwise_params
    valid, repair = with_names(targets, repaired, whole.real_precision[block])
    if not repair.needed:
        return fitted
    precision, names = whole.real_precision.copy(), targets.names
    precision[block] = valid
    size = np.abs(repair.partial_after - repair.partial_before)
    largest = np.argsort(-size, kind="stable")[:_LISTED]
    listed = ", ".join(
        f"{names[int(repair.changed[k, 0])]} - {names[int(repair.changed[k, 1])]} from "
        f"{repair.partial_before[k]:.3g} to {repair.partial_after[k]:.3g}"
        for k in largest
    )
    first = "the largest: " if len(size) > _LISTED else ""
    note = f"repaired, so that there is a joint distribution. {str(repair).capitalize()}. Partial "
    note += f"correlations, {first}{listed}"
    report = replace(
        fitted.report,
        certificate=Certificate.none(
            "the parameters were repaired after the fit, so its certificate does not hold"
        ),
        notes=(*fitted.report.notes, note),
    )
    params = whole.with_real_precision(precision)
    return replace(fitted, params=params, report=report, known_terms=None, known_strengths=None)
