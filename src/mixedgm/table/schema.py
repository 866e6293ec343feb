"""Column kinds, roles and levels in -> one schema that prints, and travels as JSON."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import pairwise
from math import isfinite
from typing import Any, Literal, ParamSpec, TypeVar, cast, get_args

import numpy as np

from mixedgm.base.errors import (
    DistributionError,
    ModelFileError,
    ParameterError,
    SamplingWarning,
    level_of_caller,
    near_matches,
)
from mixedgm.base.printable import cut, few, json_text, literal, one_line, quoted, width
from mixedgm.families import KINDS, CountKind, HurdleKind, OrdinalKind, Scored
from mixedgm.families import Kind as NodeKind
from mixedgm.families.contract import Floats
from mixedgm.families.finite import Thresholds
from mixedgm.model.nodes import Nodes, in_node_order
from mixedgm.table.transform import Nonparanormal

Kind = Literal["continuous", "hurdle", "ordinal", "count", "categorical"]
Role = Literal["target", "covariate"]
Level = str | bool | int | float

MOST_COUNT = 100_000
"""The largest count that a column may have: every one of its values has a probability."""

_HEADINGS = ("column", "kind", "role", "levels", "note")
_WIDEST_LEVELS = 48
_WIDEST_NAME = 60
_MOST_COLUMNS = 500


@dataclass(frozen=True)
class Column:
    """One column of a table, and how it is modelled.

    Parameters
    ----------
    name : str
        Name of the column in the table.
    kind : {"continuous", "hurdle", "ordinal", "count", "categorical"}
        How it is modelled.
    role : {"target", "covariate"}
        A target is predicted by the others; a covariate only predicts.
    levels : tuple of str, bool, int or float
        The values of a categorical or ordinal column in order; empty for numbers and counts.
    ordered : bool
        Whether the frame declared the order of the levels to have a meaning.
    dtype : str
        The frame library and its data type, for example "pandas:category[str]".
    transform : Nonparanormal or None
        The transform of a continuous column; the model then works in normal scores.
    label : int or None
        The name in a pandas frame where that is a whole number; `name` is then its text.
    scores : tuple of float
        Scores of the levels of an ordinal column; empty for 0, 1, 2, ...
    thresholds : {"free", "quadratic"}
        Whether every level of an ordinal column has a term of its own, or all of them a quadratic
        function of the score.
    largest : int or None
        The largest count that is possible in a count column.
    zero_term : bool
        Whether zero has a term of its own in a count column.
    location : float
        Value of a hurdle column from which "how much" is counted: the mean of all values but zeros.

    Examples
    --------
    >>> Column("smoker", "categorical", levels=(False, True)).level_names
    ('False', 'True')
    """

    name: str
    kind: Kind
    role: Role = "target"
    levels: tuple[Level, ...] = ()
    ordered: bool = False
    dtype: str = "float64"
    transform: Nonparanormal | None = None
    label: int | None = None
    scores: tuple[float, ...] = ()
    thresholds: Thresholds = "free"
    largest: int | None = None
    zero_term: bool = False
    location: float = 0.0

    def __post_init__(self) -> None:
        for what, value, choices in (
            ("kind", self.kind, tuple(KINDS)),
            ("role", self.role, get_args(Role)),
        ):
            if value not in choices:
                wanted = " or ".join(map(repr, choices))
                raise ParameterError.must_be(f"{what} of {quoted(self.name)}", wanted, value)
        problem = KINDS[self.kind].problem(self.levels, self.transform) or _scored_problem(self)
        if problem is not None:
            raise ParameterError(f"column {quoted(self.name)} {problem}.")
        if len(set(self.level_names)) != len(self.levels):
            raise ParameterError(f"column {quoted(self.name)} has two levels that read the same.")

    @property
    def node_kind(self) -> NodeKind:
        """Kind of the column with all that is particular to it."""
        if self.kind == "ordinal":
            return OrdinalKind(level_scores=self.scores, thresholds=self.thresholds)
        if self.kind == "count":
            return CountKind(zero_term=self.zero_term)
        if self.kind == "hurdle":
            return HurdleKind(location=self.location)
        return KINDS[self.kind]

    @property
    def n_values(self) -> int:
        """How many values it can have; 0 for any real number, 2 for zero or any other."""
        if KINDS[self.kind].has_spike:
            return 2
        return len(self.levels) if self.largest is None else self.largest + 1

    @property
    def own_scores(self) -> Floats:
        """(n_values,) scores of the values of an ordinal or count column."""
        kind = self.node_kind
        assert isinstance(kind, Scored)
        return kind.own_scores(self.n_values)

    @property
    def level_names(self) -> tuple[str, ...]:
        """The levels as text, in order."""
        return tuple(str(level) for level in self.levels)

    @property
    def value_names(self) -> tuple[str, ...]:
        """All values of a discrete column as text: its levels, counts, or whether it is zero."""
        if KINDS[self.kind].has_spike:
            return ("zero", "not zero")
        return self.level_names if self.largest is None else tuple(map(str, range(self.n_values)))

    @property
    def numbers(self) -> Floats | None:
        """Ordered values as numbers, for means: levels where they are numbers, scores or counts."""
        kind = self.node_kind
        if not isinstance(kind, Scored):
            return None
        numeric = all(isinstance(x, int | float) and not isinstance(x, bool) for x in self.levels)
        if self.levels and numeric:
            return np.array(self.levels, dtype=np.float64)
        return kind.amounts(self.n_values)

    @property
    def of_means(self) -> Column:
        """The column of means of its values, which can be any numbers."""
        return Column(self.name, "continuous", self.role, label=self.label)

    @property
    def has_levels(self) -> bool:
        """Whether its values are levels with names; else they are numbers."""
        return KINDS[self.kind].has_levels

    @property
    def is_discrete(self) -> bool:
        """Whether it has finitely many values, which are codes in a Design; else any number."""
        kind = KINDS[self.kind]
        return not (kind.is_gaussian or kind.has_spike)

    def encoded(self, values: Any) -> Any:
        """Return numbers of the table, or level codes, as the model has them."""
        return KINDS[self.kind].encode(values, self.transform)

    def decoded(self, values: Any) -> Any:
        """Return numbers of the model in the units of the table; level codes as they are."""
        return KINDS[self.kind].decode(values, self.transform)

    def value(self, encoded: float) -> float | Level:
        """Return one value of the model as the table has it: a number, or a level."""
        decoded = self.decoded(encoded)
        if self.has_levels:
            return self.levels[int(decoded)]
        return int(decoded) if self.is_discrete else float(decoded)

    @property
    def note(self) -> str:
        """Note on the column for the printed schema, besides its kind."""
        if self.transform is not None:
            return "nonparanormal" + ("-extrapolated" if self.transform.extrapolate else "")
        if self.thresholds != "free":
            return f"{self.thresholds} thresholds"
        if self.zero_term:
            return "zero term"
        return "ordered" if self.ordered and self.kind == "categorical" else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the column as values that JSON can hold."""
        stored = {
            "name": self.name,
            "kind": self.kind,
            "role": self.role,
            "levels": list(self.levels),
            "ordered": self.ordered,
            "dtype": self.dtype,
            "transform": None if self.transform is None else self.transform.to_dict(),
        }
        further = {
            "label": self.label,
            "scores": list(self.scores) or None,
            "thresholds": None if self.thresholds == "free" else self.thresholds,
            "largest": self.largest,
            "zero_term": self.zero_term or None,
            "location": self.location if KINDS[self.kind].has_spike else None,
        }
        return stored | {name: value for name, value in further.items() if value is not None}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Column:
        """Return the column that `to_dict` wrote."""
        transform = stored["transform"]
        if not all(isinstance(level, str | bool | int | float) for level in stored["levels"]):
            raise ModelFileError(f"column {quoted(stored['name'])} has levels of an unknown type.")
        return cls(
            name=str(stored["name"]),
            kind=cast(Kind, stored["kind"]),
            role=cast(Role, stored["role"]),
            levels=tuple(stored["levels"]),
            ordered=bool(stored["ordered"]),
            dtype=str(stored["dtype"]),
            transform=None if transform is None else Nonparanormal.from_dict(transform),
            label=None if stored.get("label") is None else int(stored["label"]),
            scores=tuple(map(float, stored.get("scores") or ())),
            thresholds=cast(Thresholds, stored.get("thresholds") or "free"),
            largest=None if stored.get("largest") is None else int(stored["largest"]),
            zero_term=bool(stored.get("zero_term")),
            location=float(stored.get("location", 0.0)),
        )


@dataclass(frozen=True)
class LeftOut:
    """A column of the table that the model does without, and why."""

    name: str
    reason: str
    position: int  # among all columns of the table

    def to_dict(self) -> dict[str, Any]:
        """Return the column as values that JSON can hold."""
        return {"name": self.name, "reason": self.reason, "position": self.position}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> LeftOut:
        """Return the column that `to_dict` wrote."""
        return cls(str(stored["name"]), str(stored["reason"]), int(stored["position"]))


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in the table's order.

    Parameters
    ----------
    columns : tuple of Column
        The columns of the model; their names are unique.
    left_out : tuple of LeftOut
        Columns of the table that the model does without. New data may have or lack them.

    Examples
    --------
    >>> schema = Schema((
    ...     Column("sex", "categorical", levels=("F", "M")),
    ...     Column("age", "continuous", role="covariate"),
    ... ))
    >>> print(schema)
    column  kind         role       levels   note
    sex     categorical  target     2: F, M
    age     continuous   covariate
    >>> [column.name for column in schema.nodes]
    ['age', 'sex']
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    columns: tuple[Column, ...]
    left_out: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.table_names)) != len(self.columns) + len(self.left_out):
            raise ParameterError("a schema needs unique column names.")
        if [c.position for c in self.left_out] != sorted({c.position for c in self.left_out}):
            raise ParameterError("columns that are left out need positions in increasing order.")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names in the table's order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def table_names(self) -> tuple[str, ...]:
        """Names of all columns of the table, those that are left out among them."""
        names = list(self.names)
        for column in self.left_out:
            names.insert(column.position, column.name)
        return tuple(names)

    @cached_property
    def continuous(self) -> tuple[Column, ...]:
        """The continuous columns in the table's order."""
        return tuple(column for column in self.columns if column.kind == "continuous")

    @cached_property
    def categorical(self) -> tuple[Column, ...]:
        """The categorical columns in the table's order."""
        return tuple(column for column in self.columns if column.kind == "categorical")

    @cached_property
    def nodes(self) -> tuple[Column, ...]:
        """The columns in the order of all numeric blocks: Gaussian ones first."""
        return in_node_order(self.columns, lambda column: column.kind)

    @property
    def gaussian(self) -> tuple[Column, ...]:
        """The columns that are Gaussian given the others."""
        return self.nodes[self.spans.gaussian]

    @property
    def real(self) -> tuple[Column, ...]:
        """The columns whose values are real numbers: those of `Design.numbers`."""
        return self.nodes[: self.spans.n_real]

    @property
    def discrete(self) -> tuple[Column, ...]:
        """The columns with finitely many values, or zero and others: those of `Design.codes`."""
        return self.nodes[self.spans.discrete]

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Names of the columns that are predicted, in the table's order."""
        return tuple(column.name for column in self.columns if column.role == "target")

    @cached_property
    def covariates(self) -> tuple[int, ...]:
        """Positions in `nodes` of the columns that predict but are never predicted."""
        return tuple(k for k, node in enumerate(self.nodes) if node.role == "covariate")

    @property
    def real_targets(self) -> list[int]:
        """Nodes that are predicted and have real numbers as values."""
        return [s for s in range(self.spans.n_real) if s not in self.covariates]

    def directed(self, u: int, v: int) -> tuple[int, int]:
        """Two nodes in the order in which an edge names them: a covariate is its source."""
        roles = self.nodes[u].role, self.nodes[v].role
        return (int(v), int(u)) if roles == ("target", "covariate") else (int(u), int(v))

    @cached_property
    def spans(self) -> Nodes:
        """Kinds and numbers of levels of the nodes: where values and design columns stand."""
        kinds = tuple(column.node_kind for column in self.nodes)
        return Nodes(kinds, tuple(column.n_values for column in self.nodes))

    @property
    def n_gaussian(self) -> int:
        """Number of columns that are Gaussian given the others; they are the first nodes."""
        return self.spans.n_gaussian

    @property
    def n_discrete(self) -> int:
        """Number of all other columns, which have finitely many values."""
        return len(self.spans.n_levels)

    @property
    def n_cont(self) -> int:
        """Number of continuous columns: `n_gaussian`, as it was called before."""
        return self.n_gaussian

    @property
    def n_cat(self) -> int:
        """Number of categorical columns: `n_discrete`, as it was called before."""
        return self.n_discrete

    @property
    def n_levels(self) -> tuple[int, ...]:
        """Number of levels of each column that has finitely many values."""
        return self.spans.n_levels

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {column.name: at for at, column in enumerate(self.nodes)}

    def node_index(self, name: Hashable) -> int:
        """Return the position of a column in `nodes`.

        Parameters
        ----------
        name : str, or another name such as an int
            A column's name; one that is not text stands for the text that it prints as.

        Returns
        -------
        int
            Its position, Gaussian columns first.
        """
        try:
            return self._positions[str(name)]
        except KeyError:
            for column in self.left_out:
                if column.name == str(name):
                    raise ParameterError(
                        f"column {quoted(name)} is left out of the model ({column.reason}); "
                        f"{types_line(str(name), 'categorical')} keeps it as a category."
                    ) from None
            hint = near_matches(name, self.names)
            raise ParameterError(f"there is no column {quoted(name)}; {hint}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as values that JSON can hold."""
        stored = {"columns": [column.to_dict() for column in self.columns]}
        if self.left_out:
            stored["left_out"] = [column.to_dict() for column in self.left_out]
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Schema:
        """Return the schema that `to_dict` wrote.

        Raises
        ------
        ModelFileError
            When the stored values are not a schema.
        """
        try:
            return cls(
                tuple(Column.from_dict(column) for column in stored["columns"]),
                tuple(LeftOut.from_dict(column) for column in stored.get("left_out", ())),
            )
        except ModelFileError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ModelFileError(f"the stored schema cannot be read: {error}") from error

    def _cells(self) -> list[tuple[str, ...]]:
        """The first columns, each as a name that can be printed and what is known about it."""
        out = {column.name: column for column in self.left_out}
        kept = iter(self.columns)
        cells: list[tuple[str, ...]] = []
        for name in self.table_names[:_MOST_COLUMNS]:
            shown = cut(one_line(name), _WIDEST_NAME)
            if name in out:
                cells.append((shown, "left out", "", "", one_line(out[name].reason)))
                continue
            column = next(kept)
            cells.append((shown, column.kind, column.role, _shortened(column), column.note))
        return cells

    def _more(self) -> str:
        """Line about the columns of a very wide table that are not shown; empty for others."""
        more = len(self.table_names) - _MOST_COLUMNS
        if more <= 0:
            return ""
        count = Counter[str](column.kind for column in self.columns)
        kinds = ", ".join(f"{count[kind]:,} {kind}" for kind in KINDS if count[kind])
        left = f", {len(self.left_out):,} left out" if self.left_out else ""
        return f"... and {more:,} more columns; of all {len(self.table_names):,}: {kinds}{left}"

    def __str__(self) -> str:
        """Return a small aligned table, one line per column."""
        rows = [_HEADINGS, *self._cells()]
        widths = [max(width(row[k]) for row in rows) for k in range(len(_HEADINGS))]
        lines = []
        for row in rows:
            cells = zip(row, widths, strict=True)
            line = "  ".join(cell + " " * (size - width(cell)) for cell, size in cells)
            lines.append(line.rstrip())
        return "\n".join([*lines, self._more()]).rstrip("\n")

    def _repr_html_(self) -> str:
        """Return the same table as HTML, with every cell escaped."""
        head = "".join(f"<th>{heading}</th>" for heading in _HEADINGS)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._cells()
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        more = self._more()
        return f"{table}<div>{more}</div>" if more else table


def levels_problem(levels: Sequence[object]) -> str | None:
    """Say why these cannot be the levels of an ordinal column, or None if they can."""
    names = [str(level) for level in levels]
    if len(levels) < 2:
        return f"levels must be at least 2. Got {len(levels)} instead"
    if any(level is None or level != level for level in levels):
        return "a missing value is among the levels"
    repeated = [name for name, count in Counter(names).items() if count > 1]
    return f"two levels read {quoted(repeated[0])}" if repeated else None


def scores_problem(scores: Sequence[float], levels: Sequence[object] | None = None) -> str | None:
    """Say why these cannot be the scores of these levels, or None if they can."""
    if levels is not None and len(scores) != len(levels):
        return f"{len(scores)} scores were given for {len(levels)} levels"
    bad = [score for score in scores if not isfinite(score)]
    if bad:
        return f"scores must be finite. Got {bad[0]} instead"
    falling = [(a, b) for a, b in pairwise(scores) if not a < b]
    if falling:
        a, b = falling[0]
        return f"scores must increase from level to level, but {b:g} comes after {a:g}"
    return None


def fewest_counts(zero_term: bool) -> int:
    """Return the smallest number that can be the largest count: as many as there are terms."""
    return 3 if zero_term else 2


def _scored_problem(column: Column) -> str | None:
    """Say why a column cannot have these scores, thresholds, counts and zero term, or None."""
    ordinal, count = column.kind == "ordinal", column.kind == "count"
    if (column.scores or column.thresholds != "free") and not ordinal:
        return f"is {described(column.kind)}, so it has no scores and thresholds"
    if (column.largest is not None or column.zero_term) and not count:
        return f"is {described(column.kind)}, so it has no largest count and no zero term"
    if column.location and not KINDS[column.kind].has_spike:
        return f"is {described(column.kind)}, so it has no location"
    if not isfinite(column.location):
        return f"has the location {column.location}, which is not finite"
    if column.thresholds not in get_args(Thresholds):
        return f"has thresholds {quoted(column.thresholds)}; they are 'free' or 'quadratic'"
    if column.thresholds != "free" and len(column.levels) < 3:
        return f"has {len(column.levels)} levels, and quadratic thresholds need at least 3"
    if column.scores:
        problem = scores_problem(column.scores, column.levels)
        return None if problem is None else f"cannot have these scores: {problem}"
    least = fewest_counts(column.zero_term)
    if count and (column.largest is None or not least <= column.largest <= MOST_COUNT):
        got = column.largest
        return (
            f"is a count, so its largest must be from {least} to {MOST_COUNT:,}. Got {got} instead"
        )
    return None


def _shortened(column: Column) -> str:
    """Return the values of a discrete column: how many levels, and as many as fit on a line."""
    if column.largest is not None:
        return f"0 to {column.largest:,}"
    if not column.has_levels:
        return ""
    names, between = column.level_names, " < " if column.kind == "ordinal" else ", "
    if column.scores:
        names = tuple(f"{n} ({s:g})" for n, s in zip(names, column.scores, strict=True))
    shown, size = 1, len(names[0]) if names else 0
    while shown < len(names) and size + len(between) + len(names[shown]) <= _WIDEST_LEVELS:
        size += len(between) + len(names[shown])
        shown += 1
    text = cut(one_line(between.join(names[:shown])), _WIDEST_LEVELS)
    return f"{len(names)}: {text}{f'{between}...' if shown < len(names) else ''}"


def described(kind: Kind) -> str:
    """Return what a column of a kind is, in a sentence: "categorical", "a count"."""
    return {"count": "a count", "hurdle": "a hurdle column"}.get(kind, kind)


def types_line(name: str | Sequence[str], kind: Kind, **options: object) -> str:
    """Return the option that gives columns their kind, as the user would write it.

    Examples
    --------
    >>> print(types_line("stage", "ordinal"), types_line("pain", "ordinal", levels=["no", "yes"]))
    types={"stage": "ordinal"} types={"pain": mg.Ordinal(levels=["no", "yes"])}
    """
    value = f'"{kind}"'
    if options:
        given = ", ".join(f"{option}={json_text(value)}" for option, value in options.items())
        value = f"mg.{kind.capitalize()}({given})"
    names = [name] if isinstance(name, str) else name
    return "types={" + ", ".join(f"{literal(each)}: {value}" for each in names) + "}"


def drop_line(*names: str) -> str:
    """Return the advice to leave columns out, at most twenty of them by name.

    Examples
    --------
    >>> drop_line("id"), drop_line("alley", "pool")
    ("leave column 'id' out", "leave columns 'alley', 'pool' out")
    """
    return f"leave column{'' if len(names) == 1 else 's'} {few(names, 20)} out"


# -- errors by names of columns --------------------------------------------------------------------

P = ParamSpec("P")
T = TypeVar("T")


def with_names(
    schema: Schema, function: Callable[P, T], /, *args: P.args, **options: P.kwargs
) -> T:
    """Call a function; its errors and warnings about the joint distribution get column names.

    Examples
    --------
    >>> from mixedgm.table.schema import Column
    >>> def fails(number):
    ...     raise DistributionError("no distribution of {columns}", (number,))
    >>> with_names(Schema((Column("age", "continuous"),)), fails, 0)
    Traceback (most recent call last):
    mixedgm.base.errors.DistributionError: no distribution of 'age'
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SamplingWarning)
        try:
            result = function(*args, **options)
        except DistributionError as error:
            raise error.named([node.name for node in schema.nodes]) from None
    for warning in caught:
        if isinstance(warning.message, SamplingWarning):
            warnings.warn(warning.message.named(_places(schema)), stacklevel=level_of_caller())
        else:
            message, category = warning.message, warning.category
            warnings.warn_explicit(message, category, warning.filename, warning.lineno)
    return result


def _places(schema: Schema) -> list[str]:
    """Return names of the columns of numbers, then of all values of the others."""
    levels = [f"{quoted(c.name)} = {value}" for c in schema.discrete for value in c.value_names]
    return [*(quoted(column.name) for column in schema.real), *levels]
