"""A table and its options in -> the schema of its columns and all findings at once."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict, Unpack, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.base.errors import (
    Finding,
    Severity,
    TableError,
    TableTypeError,
    TableWarning,
    finding_lines,
    level_of_caller,
    near_matches,
)
from mixedgm.base.parallel import n_workers
from mixedgm.base.parameters import ensure
from mixedgm.base.printable import few, number_of, quoted, rows
from mixedgm.families import KINDS
from mixedgm.model.nodes import Floats, Mask
from mixedgm.table.checks.columns import (
    Shape,
    amounts_finding,
    broken,
    closeness_finding,
    count_findings,
    default_largest,
    distribution_findings,
    family_finding,
    hurdle_finding,
    infinite_finding,
    kind_of_numbers,
    level_findings,
    numbering_finding,
    order_finding,
    order_findings,
    shape_findings,
    shape_of,
    short_finding,
    short_values,
    spread_finding,
    text_finding,
)
from mixedgm.table.checks.dependence import (
    FEWEST_ROWS,
    MOST_VALUES,
    Sample,
    dependence_findings,
    mid_ranks,
    sample_positions,
)
from mixedgm.table.checks.effort import effort
from mixedgm.table.checks.structural_gaps import (
    StructuralGap,
    gap_counts,
    gap_findings,
    named_pairs,
    structural_gaps,
)
from mixedgm.table.declarations import Count, Ordinal, declaration
from mixedgm.table.missing import Missing, check_missing, present_rows, read_weights
from mixedgm.table.read import Frame, as_frame, with_weights
from mixedgm.table.schema import Column, Kind, LeftOut, Level, Role, Schema, described, types_line
from mixedgm.table.transform import Predictor, far_from_normal
from mixedgm.table.values import ArrayNumbers, Factor, Numbers, Values, read_values

Declared = str | Ordinal | Count
TypesArg = Mapping[Any, Declared] | Sequence[Declared | None] | Schema | str | None
TransformArg = Mapping[Any, str | None] | str | None
MissingArg = Literal["error", "drop", "model"]
PairsArg = Sequence[tuple[Any, Any]] | None

# Name of a transform -> whether values come back from beyond the range of the data.
_TRANSFORMS = {"nonparanormal": False, "nonparanormal-extrapolated": True}
_AUTOMATIC = "auto"
ONE_WEIGHT = Finding(
    None,
    "only one row (1 sample) has a positive sample_weight while a minimum of 2 is required.",
    "give at least 2 rows a positive weight",
)
"""The error that all rows but one have weight zero."""
_TRANSFORMS_WANTED = f"'{_AUTOMATIC}', 'nonparanormal' or None"
_FEW_GROUPS = 10  # values of a count that have a mean each of the numbers beside it
KINDS_OF_FEW_VALUES: tuple[Kind, ...] = ("ordinal", "categorical", "continuous")
"""Kinds that one word in `types` may give to all numbers with few values."""
_KINDS_WANTED = (
    "'continuous', 'hurdle', 'ordinal', 'count' or 'categorical', "
    "or mg.Ordinal(...) or mg.Count(...)"
)


@dataclass(frozen=True, eq=False)
class Checked:
    """Result of a check of a table.

    Parameters
    ----------
    schema : Schema
        The columns that can be used, all of them when there is no error. No transform is fitted;
        `options` says which columns get one.
    findings : tuple of Finding
        Errors, warnings and notes, those about the whole table first.
    frame : Frame
        The table.
    options : ColumnOptions
        The user's options by column name.
    values : mapping of str to Values
        The columns of the schema.
    factors : mapping of str to Factor
        The columns with finitely many values as codes, for all rows; a count is its own code.
    keep : bool array of shape (n,) or None
        Rows with positive weight and no missing value; None when that is all rows.
    weights : float64 array or None
        Weights of the rows that are kept.
    leave_out : tuple of str
        Columns with gaps without which most cells of the table are in complete rows; the finding
        about missing values proposes to leave them out. Empty when it proposes none.
    n_kept : int
        How many rows a fit would use.
    """

    schema: Schema
    findings: tuple[Finding, ...]
    frame: Frame
    options: ColumnOptions
    values: Mapping[str, Values]
    factors: Mapping[str, Factor]
    keep: Mask | None
    weights: NDArray[np.float64] | None
    leave_out: tuple[str, ...] = ()
    n_kept: int = 0

    def __repr__(self) -> str:
        counts = Counter(finding.severity for finding in self.findings)
        shown: list[Severity] = ["error", "warning"]
        shown += ["note"] if counts["note"] else []
        summary = ", ".join(number_of(counts[noun], noun) for noun in shown)
        lines = [f"Table of {self.frame.n_rows:,} rows: {summary}", "", str(self.schema)]
        if self.findings:
            lines += ["", *finding_lines(self.findings, lambda each: f"[{each.severity}] {each}")]
        return "\n".join(lines)


class Reading(TypedDict, total=False):
    """How a table is read; see `check_table`."""

    types: TypesArg
    transforms: TransformArg
    covariates: Sequence[Any] | str | None
    missing: MissingArg
    sample_weight: ArrayLike | str | None
    forbid: PairsArg


def check_table(
    X: object,
    *,
    types: TypesArg = None,
    transforms: TransformArg = "auto",
    covariates: Sequence[Any] | str | None = None,
    missing: MissingArg = "error",
    sample_weight: ArrayLike | None = None,
    forbid: PairsArg = None,
) -> Checked:
    """Look at a table and collect everything that is wrong or worth knowing.

    Parameters
    ----------
    X : data frame, 2-D array or path
        The table; or one in parts, as for `MixedGraphicalModel.fit`.
    types : mapping, sequence, Schema or str, optional
        Kinds that override inference: "continuous", "hurdle" (a number with a spike at zero),
        "ordinal", "count" or "categorical" by column, or `Ordinal` and `Count` with options; a
        schema, such as that of another checked table, gives the kinds of its columns and their
        levels. ``types="ordinal"`` ("categorical", "continuous") is for all numbers with 3 to 10
        distinct values.
    transforms : "auto", "nonparanormal", mapping or None
        For all continuous columns, or by column. "auto" replaces columns that are far from normal
        by normal scores of their ranks.
    covariates : sequence of names, optional
        Columns that predict but are not predicted.
    missing : {"error", "drop", "model"}
        What to do about missing values: refuse them, drop their rows, or model them.
    sample_weight : array of shape (n,) or str, optional
        Frequencies of the rows, or the name of their column.
    forbid : list of pairs of names, optional
        Pairs that have no edge. A column may then be missing where the other has certain values.

    Returns
    -------
    Checked
        The schema and the findings. Nothing is raised for what is found in the table;
        something that is not a table raises TableError.

    Examples
    --------
    >>> checked = check_table([[1.5, "a"], [2.5, "b"], [None, "a"]])
    >>> print(checked.findings[0])
    column 'x0': 1 missing value (NaN or null). To fix: missing="model" uses all 3 rows,
    missing="drop" the 2 complete ones; or fill it in
    """
    from mixedgm.table.parted.design import check_parts, parts_of

    how = Reading(
        types=types,
        transforms=transforms,
        covariates=covariates,
        missing=missing,
        sample_weight=sample_weight,
        forbid=forbid,
    )
    reader = parts_of(X)
    checked = check_whole(X, **how) if reader is None else check_parts(reader, **how)
    long = effort(checked.schema.columns, checked.n_kept, n_threads=n_workers(None)).finding
    return checked if long is None else replace(checked, findings=(*checked.findings, long))


def missing_of(how: Reading) -> MissingArg:
    """Return what is done about missing values, checked."""
    missing = how.get("missing", "error")
    ensure(missing in get_args(MissingArg), "missing", "'error', 'drop' or 'model'", missing)
    return missing


def check_whole(X: object, **how: Unpack[Reading]) -> Checked:
    """Check a table whose rows are all in memory; see `check_table`."""
    missing = missing_of(how)
    frame, sample_weight = with_weights(as_frame(X), how.get("sample_weight"))
    findings = size_findings(frame, minimum=2)
    options, option_findings = resolve_options(frame, how)
    weights, weight_findings = read_weights(sample_weight, frame.n_rows)
    findings += option_findings + weight_findings
    if weights is not None and frame.n_rows > 1 and np.count_nonzero(weights) == 1:
        findings.append(ONE_WEIGHT)
    columns = Inspection(frame, options, weights)
    columns.read()
    if not frame.n_rows or not frame.names:
        gap = Missing(None, ())
    else:
        gap = check_missing(
            columns.gaps(), weights, missing, learning=True, covariates=options.covariates
        )
    if frame.n_rows > 1 and (weights is None or np.count_nonzero(weights) > 1):
        columns.decide(gap.empty)
        columns.compare_complete(gap)
        columns.look_for_dependence(gap.leave_out)
        columns.choose_transforms(gap)
    findings += columns.gap_findings(gap, missing, how.get("forbid"))
    if columns.left_out and not columns.values:
        names = [column.name for column in columns.left_out]
        what = f"no column is left to model: {few(names)} left out"
        reason = columns.left_out[0].reason
        remedy = f"{types_line(names[0], 'categorical')} keeps a column ({reason})"
        findings.append(Finding(None, what, remedy))
    return Checked(
        Schema(tuple(columns.schema), tuple(columns.left_out)),
        tuple(findings + columns.findings + shape_findings(columns.shapes, columns.bent)),
        frame,
        columns.options,
        columns.values,
        columns.factors,
        gap.keep,
        gap.kept(weights),
        gap.leave_out,
        frame.n_rows if gap.keep is None else int(np.count_nonzero(gap.keep)),
    )


def size_findings(frame: Frame, minimum: int) -> list[Finding]:
    """Return errors about a table with fewer rows than `minimum`, and about its column names."""
    findings = []
    n_rows, n_columns = frame.shape
    if n_columns == 0:
        what = f"the table is empty: 0 feature(s) (shape={frame.shape})"
        remedy = "pass a table with at least 1 column"
        findings.append(Finding(None, f"{what} while a minimum of 1 is required.", remedy))
    elif n_rows < minimum:
        size = "empty" if n_rows == 0 else "too short"
        what = f"the table is {size}: {n_rows} sample(s) (shape={frame.shape})"
        remedy = (
            f"pass at least {rows(minimum)}; look at the file or filter that the table comes from"
        )
        findings.append(Finding(None, f"{what} while a minimum of {minimum} is required.", remedy))
    for name, count in Counter(frame.names).items():
        if count > 1:
            what = f"{count} columns have this name"
            findings.append(Finding(name, what, "give each column its own name"))
        if broken(name):
            what = "its name is not valid Unicode: it has half of a character"
            findings.append(Finding(name, what, "rename the column"))
    return findings


def raise_or_warn(findings: Iterable[Finding]) -> None:
    """Raise one TableError with all errors, or else issue one TableWarning with all warnings.

    Strong notes are put together in one of the warnings.
    """
    findings = list(findings)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        wrong_type = any(finding.wrong_type for finding in errors)
        raise (TableTypeError if wrong_type else TableError)(errors)
    notices = [finding for finding in findings if finding.severity == "warning"]
    strong = [finding for finding in findings if finding.strong]
    if strong:
        whats = [str(replace(finding, remedy="")) for finding in strong]
        remedy = "mixedgm.check_table(table) says what helps; "
        remedy += "transforms={column: None} silences this warning"
        notices.append(Finding(None, "; ".join(whats), remedy, "warning"))
    if notices:
        warnings.warn(TableWarning(notices), stacklevel=level_of_caller())


# -- options by column -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnOptions:
    """Options that the user gave for columns, by name."""

    kinds: Mapping[str, Kind]
    wishes: Mapping[str, Ordinal | Count]  # of columns of these kinds, with what else is said
    transforms: Mapping[str, str | None]  # of columns about which something was said or decided
    transform_all: str | None  # of all other continuous columns
    covariates: frozenset[str]
    declared: Mapping[str, Column] = field(default_factory=dict)  # by a schema, with all values
    left_out: Mapping[str, str] = field(default_factory=dict)  # by a schema as `types`, and why
    short: Kind | None = None  # the kind of all columns with few values that are numbers

    def transform_of(self, name: str) -> str | None:
        """Return what was said or decided about the transform of a continuous column."""
        return self.transforms.get(name, self.transform_all)

    def undecided(self, name: str) -> bool:
        """Return whether the values of a continuous column decide about its transform."""
        return self.transform_of(name) == _AUTOMATIC

    def transformed(self, name: str) -> bool:
        """Return whether a continuous column is to be transformed."""
        return self.transform_of(name) in _TRANSFORMS

    def extrapolated(self, name: str) -> bool:
        """Return whether the transform of a column continues beyond the range of the data."""
        return _TRANSFORMS.get(self.transform_of(name) or "", False)


def resolve_options(frame: Frame, how: Reading) -> tuple[ColumnOptions, list[Finding]]:
    """Return the options by column name, with a finding for each entry that fits no column.

    `types` names columns by name (by position for arrays), or has a kind or None for each; a schema
    gives kinds and levels. Columns that a mapping of transforms does not name are "auto".
    """
    findings: list[Finding] = []
    kinds: dict[str, Kind] = {}
    wishes: dict[str, Ordinal | Count] = {}
    types, transforms = how.get("types"), how.get("transforms", _AUTOMATIC)
    covariates = how.get("covariates")
    for key, wish in _type_items(frame, types, findings):
        name = _resolved(frame, key, "types", findings)
        if isinstance(wish, str):
            wish = {"ordinal": Ordinal(), "count": Count()}.get(wish, wish)
        kind = wish.kind if isinstance(wish, Ordinal | Count) else wish
        if kind not in get_args(Kind):
            findings.append(_bad_choice("types", key, _KINDS_WANTED, wish))
        elif name is not None:
            kinds[name] = cast(Kind, kind)
            if isinstance(wish, Ordinal | Count):
                wishes[name] = wish
    by_column: dict[str, str | None] = {}
    choices = (None, _AUTOMATIC, *_TRANSFORMS)
    for_all: str | None = _AUTOMATIC
    if isinstance(transforms, Mapping):
        for key, choice in transforms.items():
            name = _resolved(frame, key, "transforms", findings)
            if choice not in choices:
                findings.append(_bad_choice("transforms", key, _TRANSFORMS_WANTED, choice))
            elif name is not None:
                by_column[name] = choice
    elif transforms is None or (isinstance(transforms, str) and transforms in choices):
        for_all = transforms
    else:
        wanted = f"{_TRANSFORMS_WANTED.replace(' or', ',')}, or a dictionary by column"
        what = f"transforms must be {wanted}. Got {quoted(transforms)} instead"
        findings.append(Finding(None, what, ""))
    several = () if covariates is None else covariates
    several = (several,) if isinstance(several, str) else several
    named = [_resolved(frame, key, "covariates", findings) for key in several]
    roles = frozenset(name for name in named if name is not None)
    known = types if isinstance(types, Schema) else Schema(())
    declared = {c.name: c for c in known.columns if c.is_discrete and c.name in kinds}
    left_out = {each.name: each.reason for each in known.left_out if each.name in frame.positions}
    short = types if isinstance(types, str) and types in KINDS_OF_FEW_VALUES else None
    by_schema = declared, left_out, short
    return ColumnOptions(kinds, wishes, by_column, for_all, roles, *by_schema), findings


def _type_items(
    frame: Frame, types: TypesArg, findings: list[Finding]
) -> list[tuple[object, object]]:
    if types is None or (isinstance(types, str) and types in KINDS_OF_FEW_VALUES):
        return []
    if isinstance(types, Schema):
        return [(column.name, declaration(column)) for column in types.columns]
    if isinstance(types, Mapping):
        return list(types.items())
    listed = isinstance(types, Collection) and not isinstance(types, str)
    if not listed or len(types) != len(frame.names):
        got = f"{len(types)} entries" if listed else quoted(types)
        wanted = (
            f"a dictionary by column, a schema, a list of {len(frame.names)} kinds, or 'ordinal', "
            "'categorical' or 'continuous' for all numbers with 3 to 10 distinct values"
        )
        findings.append(Finding(None, f"types must be {wanted}. Got {got} instead", ""))
        return []
    return [(name, kind) for name, kind in zip(frame.names, types, strict=True) if kind is not None]


def _resolved(frame: Frame, key: object, option: str, findings: list[Finding]) -> str | None:
    """Return the column that an entry names, by name or (for an array) by position."""
    if str(key) in frame.positions:
        return str(key)
    by_position = isinstance(key, int | np.integer) and not frame.named
    if by_position and 0 <= cast(int, key) < len(frame.names):
        return frame.names[cast(int, key)]
    hint = near_matches(key, frame.names)
    findings.append(Finding(None, f"{option} names {quoted(key)}, which is not a column", hint))
    return None


def _bad_choice(option: str, key: object, wanted: str, got: object) -> Finding:
    return Finding(None, f"{option}[{quoted(key)}] must be {wanted}. Got {quoted(got)} instead", "")


# -- columns ---------------------------------------------------------------------------------------


class Inspection:
    """The columns of one table while they are checked, one after the other."""

    def __init__(self, frame: Frame, options: ColumnOptions, weights: Floats | None) -> None:
        self.frame = frame
        self.options = options
        self.weights = weights
        self.present = present_rows(weights)
        self.findings: list[Finding] = []
        self.values: dict[str, Values] = {}
        self.factors: dict[str, Factor] = {}
        self.schema: list[Column] = []
        self.left_out: list[LeftOut] = []
        self.shapes: list[Shape] = []
        self.bent: list[Shape] = []  # of columns whose values ask for normal scores
        self.short: dict[str, Floats] = {}  # few values of numbers that nothing is said about

    def read(self) -> None:
        """Find the family of each column, and the codes of those that have levels."""
        for name, at in self.frame.positions.items():
            if name in self.options.left_out:
                self.left_out.append(LeftOut(name, self.options.left_out[name], at))
                continue
            values = self._values(name, at)
            declared = self.options.kinds.get(name)
            finding = self._family_finding(values, declared) if self.frame.n_rows else None
            if finding is not None:
                self.findings.append(finding)
                continue
            if declared is None and values.family != "number":
                factor = values.factor()
                finding, reason = self._text_finding(values, factor)
                self.findings += [] if finding is None else [finding]
                if reason is not None:
                    self.left_out.append(LeftOut(name, reason, at))
                    continue
                self.factors[name] = factor
            elif declared is not None and KINDS[declared].has_levels:
                self._set_factor(values)
            self.values[name] = values

    def _values(self, name: str, at: int) -> Values:
        return read_values(name, self.frame.columns[at], self.frame.library)

    def _family_finding(self, values: Values, declared: Kind | None) -> Finding | None:
        return family_finding(values, declared)

    def _text_finding(self, values: Values, factor: Factor) -> tuple[Finding | None, str | None]:
        return text_finding(values, factor, factor.counts(self.present))

    def _numbers(self, values: Values) -> Numbers:
        """Return those that are not missing, in rows that count."""
        numbers = values.numbers() if self.present is None else values.numbers()[self.present]
        return ArrayNumbers(numbers[~np.isnan(numbers)])

    def _set_factor(self, values: Values) -> None:
        """Set level codes: of a column whose levels `types` declares, positions in these."""
        if values.name in self.factors:
            return
        factor = self.factors[values.name] = values.factor()
        column, wish = self.options.declared.get(values.name), self.options.wishes.get(values.name)
        if column is not None:
            levels, ordered, whose = column.levels, column.ordered, "the schema in types"
            remedy = "use the schema of a table that has them all"
        elif isinstance(wish, Ordinal) and wish.levels is not None:
            levels, ordered, whose = tuple(wish.levels), factor.ordered, "types"
            remedy = "put them in their place among the levels, or replace them by missing values"
        else:
            if isinstance(wish, Ordinal):
                in_order = factor if values.is_enum else factor.in_order()
                if in_order is None:
                    self.findings.append(order_finding(values.name, factor))
                self.factors[values.name] = in_order or factor
            return
        unknown = factor.listed_outside(levels)
        if unknown:
            what = f"levels that {whose} does not have: {unknown}"
            self.findings.append(Finding(values.name, what, remedy))
        else:
            self.factors[values.name] = factor.matched(levels, ordered=ordered)

    def gaps(self) -> Iterable[tuple[str, Mask]]:
        """Yield where each column has missing values."""
        for name, values in self.values.items():
            if name in self.factors:
                yield name, self.factors[name].codes < 0
            else:
                yield name, np.isnan(values.numbers())

    def decide(self, empty: tuple[str, ...]) -> None:
        """Decide the kind of each column by all its values, not only those in complete rows."""
        for name, values in self.values.items():
            if name in empty:
                continue
            findings: list[Finding] = []
            kind = self._kind(values, findings)
            if KINDS[kind].has_levels and not _has_error(findings):
                findings += self._level_findings(name)
            if kind != "continuous" and self.options.transforms.get(name) in _TRANSFORMS:
                what = f"transforms names it, but it is {described(kind)}"
                findings.append(Finding(name, what, "take it out of transforms"))
            self.findings += findings
            if not _has_error(findings):
                self.schema.append(self._column(values, kind))
        about_short = short_finding(self.short)
        self.findings += [] if about_short is None else [about_short]

    def _level_findings(self, name: str) -> list[Finding]:
        factor, wish = self.factors[name], self.options.wishes.get(name)
        counts = factor.counts(self.present)
        findings = level_findings(name, factor, counts)
        if isinstance(wish, Ordinal) and wish.thresholds == "quadratic":
            # A level without rows has its probability from the others.
            findings = [each for each in findings if each.severity == "error"]
        if isinstance(wish, Ordinal) and not _has_error(findings):
            findings += order_findings(name, factor, counts, wish)
        return self._of_larger_table(name, findings)

    def _of_larger_table(self, name: str, findings: list[Finding]) -> list[Finding]:
        """Return findings about values; a schema has those of a larger table, and some may lack."""
        if name not in self.options.declared:
            return findings
        return [replace(each, severity="warning") for each in findings if each.severity == "error"]

    def _kind(self, values: Values, findings: list[Finding]) -> Kind:
        name, declared = values.name, self.options.kinds.get(values.name)
        if name in self.factors and values.family != "number":
            return declared or ("ordinal" if self.factors[name].ordered else "categorical")
        numbers = self._numbers(values)
        finding = infinite_finding(name, numbers)
        if finding is None and declared in (None, "continuous"):
            finding = spread_finding(name, numbers)
        if finding is not None:
            findings.append(finding)
            return declared or "continuous"
        short = None if declared else short_values(numbers)
        if short is not None:
            kind = self.options.short or "continuous"
            self.short |= {} if self.options.short else {name: short}
        else:
            kind, finding = (declared, None) if declared else kind_of_numbers(values, numbers)
        if kind == "count":
            findings += self._set_counts(values, numbers)
        elif KINDS[kind].has_spike:
            finding = hurdle_finding(name, numbers)
            if finding is None and self.options.transforms.get(name, "") is not None:
                finding = amounts_finding(name, numbers)
        elif KINDS[kind].has_levels:
            self._set_factor(values)
        elif not self.options.transformed(name):
            # None in transforms: the user wants no transform.
            if self.options.transforms.get(name, "") is not None and short is None:
                shape = shape_of(name, numbers, settled=bool(declared or finding))
                self.shapes += [] if shape is None else [shape]
            finding = closeness_finding(name, numbers) or finding  # ranks need no precision
        if finding is None and declared is None and kind == "continuous":
            finding = numbering_finding(name, numbers)
        findings += [] if finding is None else [finding]
        return kind

    def _set_counts(self, values: Values, numbers: Numbers) -> list[Finding]:
        """Set the codes of a count column, which are the counts, unless something is wrong."""
        wish = self.options.wishes[values.name]
        assert isinstance(wish, Count)
        largest = default_largest(numbers) if wish.largest is None else wish.largest
        findings = count_findings(values.name, numbers, largest)
        if findings:
            return findings
        self.factors[values.name] = self._count_factor(values, numbers, largest)
        findings = distribution_findings(values.name, numbers, largest, zero_term=wish.zero_term)
        return self._of_larger_table(values.name, findings)

    def _count_factor(self, values: Values, numbers: Numbers, largest: int) -> Factor:
        """Return counts as codes; those of rows that do not count are left out."""
        every = values.numbers()
        there = ~np.isnan(every) if self.present is None else ~np.isnan(every) & self.present
        codes = np.full(len(every), -1, dtype=np.int32)
        codes[there] = every[there].astype(np.int32)
        return Factor(codes, tuple(range(largest + 1)))

    def compare_complete(self, gap: Missing) -> None:
        """Find columns and levels that vary in the table, but not in its complete rows."""
        keep = gap.keep
        if keep is None or not gap.dropped or np.count_nonzero(keep) < 2:
            return
        flat: dict[str, Mask] = {}
        lost: dict[str, list[Level]] = {}
        elsewhere = np.zeros(len(keep), dtype=np.bool_)
        for column in self.schema:
            name = column.name
            if not column.has_levels:
                numbers = self.values[name].numbers()
                kept = numbers[keep]
                if kept.min() == kept.max():
                    flat[name] = ~np.isnan(numbers) & (numbers != kept[0])
                continue
            factor = self.factors[name]
            kept_counts = factor.counts(keep)
            gone = (kept_counts == 0) & (factor.counts(self.present) > 0)
            rows_gone = np.append(gone, False)[factor.codes]
            if np.count_nonzero(kept_counts) == 1:
                flat[name] = rows_gone
            elif gone.any():
                lost[name] = [factor.levels[int(at)] for at in np.flatnonzero(gone)]
                elsewhere |= rows_gone
        if lost:
            self.findings.append(gap.levels_finding(lost, gap.counts_among(elsewhere)))
        if flat:
            vary = np.logical_or.reduce(list(flat.values()))
            self.findings.append(gap.constant_finding(list(flat), gap.counts_among(vary)))

    def choose_transforms(self, gap: Missing) -> None:
        """Decide which of the columns that nothing is said about get normal scores.

        The rows that are kept decide. Covariates stay as they are: no distribution is assumed.
        """
        kept: Mask | slice = slice(None) if gap.keep is None else gap.keep
        undecided = [
            column
            for column in self.schema
            if column.kind == "continuous" and self.options.undecided(column.name)
        ]
        targets = [column.name for column in undecided if column.role == "target"]
        predictors = [self._predictor(each, kept) for each in self.schema if _predicts(each)]
        weights = gap.kept(self.weights)
        far = {
            name: "nonparanormal"
            for name in targets
            if far_from_normal(self.values[name].numbers()[kept], predictors, weights)
        }
        shapes = (shape_of(name, self._numbers(self.values[name]), settled=True) for name in far)
        self.bent = [shape for shape in shapes if shape is not None]
        chosen = {column.name: far.get(column.name) for column in undecided}
        self.options = replace(self.options, transforms={**self.options.transforms, **chosen})

    def _predictor(self, column: Column, kept: Mask | slice) -> Predictor:
        """Return a column whose effects on the means of others are part of the model."""
        if not column.is_discrete:
            numbers = self.values[column.name].numbers()[kept]
            gaps = np.isnan(numbers)
            spike = numbers == 0.0 if column.node_kind.has_spike else np.zeros_like(gaps)
            return Predictor(np.where(gaps, -1, spike), np.where(gaps, 0.0, numbers))
        codes = self.factors[column.name].codes[kept]
        if column.has_levels or column.n_values <= _FEW_GROUPS:
            return Predictor(codes)
        return Predictor(np.where(codes < 0, -1, codes == 0), column.own_scores[codes])

    def look_for_dependence(self, leave_out: tuple[str, ...]) -> None:
        """Find columns that follow from others."""
        rows = np.arange(self.frame.n_rows)
        rows = rows if self.present is None else rows[self.present]
        if len(rows) < FEWEST_ROWS:
            return
        some = rows[sample_positions(len(rows), len(self.schema))]
        numeric, discrete = self._compared()

        def numbers(column: Column) -> Floats:
            if column.is_discrete:
                codes = self.factors[column.name].codes
                return np.where(codes < 0, np.nan, column.own_scores[codes])
            values = self.values[column.name].numbers()
            # Through a transform, the model sees ranks only.
            return mid_ranks(values) if self.options.transformed(column.name) else values

        sample = Sample(
            {name: numbers(column)[some] for name, column in numeric.items()},
            {name: self.factors[name].codes[some] for name in discrete},
            discrete,
            leave_out,
            self._undeclared(),
        )
        self.findings += dependence_findings(sample)

    def gap_findings(self, gap: Missing, missing: str, forbid: PairsArg) -> list[Finding]:
        """Return findings about missing values, those that another column decides about last."""
        if not gap.gaps:
            return gap.all_findings()
        told = named_pairs(forbid)
        found = [each for each in self._structural_gaps() if each.pair not in told]
        fills = {each.column: self._fill(each.column) for each in found}
        structural = gap_findings(found, fills, self.frame.library, missing)
        return [*gap.all_findings(fills), *structural]

    def _structural_gaps(self) -> list[StructuralGap]:
        """Find columns that are missing where another has certain values."""
        rows = np.arange(self.frame.n_rows)
        rows = rows if self.present is None else rows[self.present]
        levels = self._few_levels()

        def raw(name: str) -> NDArray[Any]:
            return self.factors[name].codes if name in levels else self.values[name].numbers()

        def counts(by: str, column: str, marks: Sequence[Any] | None) -> NDArray[np.int64]:
            size = len(levels[by]) if marks is None else len(marks) + 1
            values = raw(column)[rows]
            gap = values < 0 if column in levels else np.isnan(values)
            return gap_counts(raw(by)[rows], marks, size, gap)

        some = rows[sample_positions(len(rows), len(self.schema))]
        return structural_gaps({c.name: raw(c.name)[some] for c in self.schema}, levels, counts)

    def _few_levels(self) -> dict[str, tuple[Level, ...]]:
        """Return the levels of columns with few; those of others are compared as numbers."""
        few_values = (c for c in self.schema if c.has_levels or c.n_values <= MOST_VALUES)
        return {c.name: self.factors[c.name].levels for c in few_values if c.is_discrete}

    def _fill(self, name: str) -> str:
        """Return what could stand in the gaps of a column: "level", "zero" or nothing."""
        column = next(each for each in self.schema if each.name == name)
        if column.is_discrete:
            return "level"
        numbers = self._numbers(self.values[name])
        # Five values besides zero are what a hurdle column needs.
        return "" if numbers.share(0.0) or numbers.distinct(4) is not None else "zero"

    def _compared(self) -> tuple[dict[str, Column], dict[str, int]]:
        """Return columns that are compared as numbers, and numbers of levels of those with few."""
        numeric = {each.name: each for each in self.schema if each.node_kind.is_numeric}
        few_values = (c for c in self.schema if c.name not in numeric or c.n_values <= MOST_VALUES)
        discrete = {c.name: len(self.factors[c.name].levels) for c in few_values if c.is_discrete}
        return numeric, discrete

    def _undeclared(self) -> list[str]:
        """Return continuous columns that are so by inference, and are not transformed."""
        names = [c.name for c in self.schema if c.kind == "continuous"]
        return [n for n in names if n not in self.options.kinds and not self.options.transformed(n)]

    def _column(self, values: Values, kind: Kind) -> Column:
        name = values.name
        role: Role = "covariate" if name in self.options.covariates else "target"
        dtype = f"{values.library}:{values.dtype}"
        labels = self.frame.labels
        label = labels[self.frame.positions[name]] if labels else None
        if name not in self.factors:
            return Column(name, kind, role, dtype=dtype, label=label)
        factor, wish = self.factors[name], self.options.wishes.get(name)
        if isinstance(wish, Count):
            largest, zero_term = len(factor.levels) - 1, wish.zero_term
            return Column(
                name, kind, role, dtype=dtype, label=label, largest=largest, zero_term=zero_term
            )
        column = Column(name, kind, role, factor.levels, factor.ordered, dtype, label=label)
        if isinstance(wish, Ordinal):
            return replace(column, scores=tuple(wish.scores or ()), thresholds=wish.thresholds)
        return column


def _predicts(column: Column) -> bool:
    return column.role == "covariate" or column.is_discrete or column.node_kind.has_spike


def _has_error(findings: Iterable[Finding]) -> bool:
    return any(finding.severity == "error" for finding in findings)
