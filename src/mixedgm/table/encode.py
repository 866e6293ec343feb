"""A table in -> Design: numbers, level codes and weights; a schema learnt once, then matched."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.base.errors import Finding, near_matches
from mixedgm.base.parameters import ensure
from mixedgm.base.printable import few, number_of, quoted, rows
from mixedgm.model.nodes import Floats, Mask
from mixedgm.table.checks.check import (
    Checked,
    MissingArg,
    Reading,
    check_whole,
    raise_or_warn,
    size_findings,
)
from mixedgm.table.checks.columns import (
    default_largest,
    family_finding,
    infinite_finding,
    is_numeric,
    size_finding,
)
from mixedgm.table.missing import check_missing, present_rows, read_weights
from mixedgm.table.read import Frame, as_frame, with_weights
from mixedgm.table.schema import Column, Schema, types_line
from mixedgm.table.transform import Nonparanormal
from mixedgm.table.values import Values, read_values

Codes = NDArray[np.uint8 | np.uint16 | np.int32]
UnseenArg = Literal["error", "ignore"]


@dataclass(frozen=True, eq=False)
class Design:
    """A table as numbers.

    Examples
    --------
    >>> design, findings = learn([[1.5, "b"], [2.5, "a"], [0.5, "a"], [3.0, "b"]])
    >>> design.numbers.ravel().tolist(), design.codes.ravel().tolist()
    ([1.5, 2.5, 0.5, 3.0], [1, 0, 0, 1])
    """

    schema: Schema
    numbers: (
        Floats  # (n, n_real), C order, of the first nodes; normal scores of a transformed column
    )
    codes: Codes  # (n, q), C order, of `schema.discrete`: positions in levels, counts, not zero
    weights: Floats | None = None  # (n,) frequencies, all positive; None: each row counts once
    kept: NDArray[np.intp] | None = None  # (n,) rows of the table; None when all of them are kept
    row: NDArray[np.int64] | None = None  # (n,) the row with gaps that each completes, if one does

    @property
    def n_rows(self) -> int:
        """Number of rows, n."""
        return len(self.numbers)

    @property
    def total_weight(self) -> float:
        """Sum of the weights: the number of observations, as criteria count them."""
        return float(self.n_rows) if self.weights is None else float(self.weights.sum())

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        weights = 0 if self.weights is None else self.weights.nbytes
        return self.numbers.nbytes + self.codes.nbytes + weights

    def weight_of(self, rows: NDArray[Any]) -> float:
        """Return the sum of the weights of some rows, by position."""
        return float(len(rows)) if self.weights is None else float(self.weights[rows].sum())

    def values_of(self, node: int) -> NDArray[Any]:
        """Return the numbers or level codes of one node."""
        spans = self.schema.spans
        return self.numbers[:, node] if spans.is_real(node) else self.codes[:, spans.place(node)]

    def take(self, rows: NDArray[Any] | slice | Sequence[int]) -> Design:
        """Return a copy of some of the rows: positions, which may repeat, a mask or a slice."""
        chosen = np.arange(self.n_rows)[rows if isinstance(rows, slice) else np.asarray(rows)]
        return Design(
            self.schema,
            self.numbers[chosen],
            self.codes[chosen],
            None if self.weights is None else self.weights[chosen],
            chosen if self.kept is None else self.kept[chosen],
        )


def learn(X: object, **how: Unpack[Reading]) -> tuple[Design, tuple[Finding, ...]]:
    """Infer the schema of a table and encode the table by it.

    The parameters are those of `check_table`. With `missing="drop"`, rows with missing values are
    dropped with a warning; rows of weight zero are left out. Warnings are returned, and issued
    together as one TableWarning.

    Raises
    ------
    TableError
        With everything that is wrong with the table.
    """
    checked = check_whole(X, **how)
    schema, matched = learnt(checked)
    return design_of(schema, matched), checked.findings


def learnt(checked: Checked) -> tuple[Schema, Matched]:
    """Return the schema of a checked table with its transforms fitted, and the table by it.

    Raises TableError with everything that is wrong with the table.
    """
    raise_or_warn(checked.findings)
    columns = list(checked.schema.columns)
    for at, column in enumerate(columns):
        if column.is_discrete:
            continue
        values, weights = checked.values[column.name].numbers(), checked.weights
        values = values if checked.keep is None else values[checked.keep]
        known = ~np.isnan(values)
        if not known.all():
            values, weights = values[known], None if weights is None else weights[known]
        if column.node_kind.has_spike:
            columns[at] = replace(column, location=_location(values, weights))
        elif checked.options.transformed(column.name):
            beyond = checked.options.extrapolated(column.name)
            fitted = Nonparanormal.fit(values, weights, extrapolate=beyond)
            columns[at] = replace(column, transform=fitted)
    codes = {name: factor.codes for name, factor in checked.factors.items()}
    schema = replace(checked.schema, columns=tuple(columns))
    matched = Matched(
        checked.findings, checked.values, codes, checked.keep, checked.weights, checked.frame.n_rows
    )
    return schema, matched


def apply(
    X: object,
    schema: Schema,
    *,
    sample_weight: ArrayLike | None = None,
    missing: MissingArg = "error",
    require: Collection[str] | None = None,
) -> Design:
    """Encode new data by a schema that was learnt before.

    Columns of a frame are found by name, in any order, and columns that the schema does not know
    are ignored; those of an array are found by position. Rows of weight zero are left out, and so
    are those with gaps where `missing` is "drop"; `Design.kept` tells which rows remain. A column
    that is not among those that `require` names may be absent; it is filled with 0 or its first
    level, which mean nothing.

    Raises
    ------
    TableError
        For missing columns, wrong types, unseen levels, missing and infinite values: all at once.

    Examples
    --------
    >>> design, _ = learn([[1.5, "b"], [2.5, "a"], [0.5, "a"], [3.0, "b"]])
    >>> apply([[7.0, "b"]], design.schema).codes.tolist()
    [[1]]
    """
    ensure(missing in ("error", "drop"), "missing", "'error' or 'drop'", missing)
    matched = match(X, schema, missing, sample_weight, require)
    raise_or_warn(matched.findings)
    return design_of(schema, matched)


def _location(values: Floats, weights: Floats | None) -> float:
    """Return the mean of all values but zeros."""
    there = values != 0.0
    counts = there if weights is None else there * weights
    return float(counts @ values / counts.sum()) if there.any() else 0.0


def design_of(schema: Schema, matched: Matched) -> Design:
    """Return the rows of a matched table that are kept, by the schema."""
    numbers, codes = encoded(schema, matched, 0.0, 0, code_dtype(schema))
    return Design(schema, numbers, codes, matched.weights, matched.kept)


def encoded(
    schema: Schema, matched: Matched, number: float, code: int, dtype: type[Any]
) -> tuple[Floats, NDArray[Any]]:
    """Return numbers and codes of the rows that are kept; `number` and `code` where none was read.

    One column is written after the other, so that at most one is held twice.
    """
    kept: Mask | slice = slice(None) if matched.keep is None else matched.keep
    spans = schema.spans
    numbers = np.full((matched.n_kept, spans.n_real), number)
    for at, column in enumerate(schema.nodes[: spans.n_real]):
        values = matched.values.get(column.name)
        if values is not None and values.family != "empty":
            numbers[:, at] = column.encoded(values.numbers()[kept])
    codes = np.full((matched.n_kept, schema.n_discrete), code, dtype)
    for at, column in enumerate(schema.discrete):
        if column.name in matched.codes:
            codes[:, at] = matched.codes[column.name][kept]
        elif spans.spiked_nodes[node := spans.discrete_nodes[at]]:
            real = numbers[:, node]
            codes[:, at] = np.where(np.isnan(real), -1, real != 0.0) if code < 0 else real != 0.0
    return numbers, codes


def code_dtype(schema: Schema) -> type[np.uint8] | type[np.uint16] | type[np.int32]:
    """Return the smallest integer type that holds the level codes of a schema."""
    most = max(schema.n_levels, default=0)
    if most <= 2**8:
        return np.uint8
    return np.uint16 if most <= 2**16 else np.int32


# -- new data against a schema ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Matched:
    """A table, column by column of a schema.

    Codes are positions in the schema's levels, or counts, for all rows; -1 where a value is
    missing, -2 where its level is not among the schema's, or its count above the largest.
    """

    findings: tuple[Finding, ...]  # everything that does not fit
    values: Mapping[str, Values]  # the columns that were read and fit
    codes: Mapping[str, NDArray[np.int32]]
    keep: Mask | None  # rows with positive weight and no missing value; None when that is all rows
    weights: NDArray[np.float64] | None  # of the rows that are kept
    n_rows: int  # before any is left out

    @property
    def kept(self) -> NDArray[np.intp] | None:
        """Positions of the rows that are kept; None when all of them are."""
        return None if self.keep is None or self.keep.all() else np.flatnonzero(self.keep)

    @property
    def n_kept(self) -> int:
        """Number of rows that are kept."""
        return self.n_rows if self.keep is None else int(np.count_nonzero(self.keep))


def match(
    X: object,
    schema: Schema,
    missing: str,
    sample_weight: ArrayLike | None,
    require: Collection[str] | None,
    unseen: UnseenArg | None = None,
) -> Matched:
    """Find a schema's columns in new data and compare their types, levels and values.

    Nothing is raised for what is found. `missing` is "error", "drop" or "keep", `require` names the
    columns to read, None for all; `unseen` says whether levels that the schema does not have are an
    error, None for an error that offers no choice.
    """
    ensure(unseen in ("error", "ignore", None), "unseen", "'error' or 'ignore'", unseen)
    frame, sample_weight = with_weights(as_frame(X), sample_weight)
    needed = {schema.nodes[schema.node_index(name)].name for name in require or ()}
    columns = [c for c in schema.columns if require is None or c.name in needed]
    positions, findings = find_columns(frame, schema, columns)
    findings += [f for f in size_findings(frame, 1) if f.column is None or f.column in positions]
    weights, weight_findings = read_weights(sample_weight, frame.n_rows)
    findings += [finding for finding in weight_findings if finding.severity == "error"]
    present = present_rows(weights)
    values: dict[str, Values] = {}
    codes: dict[str, NDArray[np.int32]] = {}
    gaps: dict[str, Mask] = {}
    for column in columns if frame.n_rows else ():
        if column.name not in positions:
            continue
        read = read_values(column.name, frame.columns[positions[column.name]], frame.library)
        obstacle = _type_finding(read, column)
        if obstacle is not None:
            findings.append(obstacle)
            continue
        values[column.name] = read
        if column.is_discrete:
            coding = _coded if column.has_levels else _counted
            coded, problem = coding(read, column, present, unseen)
            codes[column.name], gaps[column.name] = coded, coded == -1
        else:
            empty = read.family == "empty"
            numbers = np.full(frame.n_rows, np.nan) if empty else read.numbers()
            gaps[column.name] = np.isnan(numbers)
            in_use = numbers if present is None else numbers[present]
            problem = infinite_finding(column.name, in_use)
            if problem is None and column.transform is None:
                problem = size_finding(column.name, in_use)
        findings += [] if problem is None else [problem]
    gap = check_missing(gaps.items(), weights, missing, learning=False)
    findings += gap.all_findings()
    return Matched(tuple(findings), values, codes, gap.keep, gap.kept(weights), frame.n_rows)


def find_columns(
    frame: Frame, schema: Schema, columns: list[Column]
) -> tuple[dict[str, int], list[Finding]]:
    """Return where each column is: by name in a frame, by position in an array.

    An array has all columns of the table that the schema was learnt from, or those of the model.
    """
    learnt_from_array = all(column.dtype.startswith("numpy:") for column in schema.columns)
    known = sum(name in frame.positions for name in schema.names)
    if not frame.named or (learnt_from_array and known == 0):
        for names in (schema.table_names, schema.names):
            if len(frame.names) == len(names):
                return {name: at for at, name in enumerate(names) if name in schema.names}, []
        what = (
            f"X has {len(frame.names)} features, but MixedGraphicalModel is expecting "
            f"{len(schema.table_names)} features as input."
        )
        return {}, [Finding(None, what, "")]
    absent = [column.name for column in columns if column.name not in frame.positions]
    known_names = set(schema.table_names)
    unknown = [name for name in frame.names if name not in known_names]
    findings = [_absent_finding(name, unknown) for name in absent]
    return {c.name: frame.positions[c.name] for c in columns if c.name in frame.positions}, findings


def _absent_finding(name: str, unknown: list[str]) -> Finding:
    hint = near_matches(name, unknown)
    if not hint.startswith("did"):
        hint = "add it, or rename the column that holds it" if unknown else "add it"
    return Finding(name, "the model was fitted with it, but the table lacks it", hint)


def _type_finding(values: Values, column: Column) -> Finding | None:
    """Return why the values cannot be those of the schema's column, or None."""
    if values.family == "empty":
        return None  # reported among the missing values
    if values.family == "other":
        return family_finding(values, None)
    if not column.has_levels:
        if is_numeric(values):
            return None
        what = f"numbers are expected, but it holds text: {values.shown(text=True)}"
        return Finding(column.name, what, "convert the column to numbers")
    expects_text = any(isinstance(level, str) for level in column.levels)
    if values.family != "mixed" and (
        expects_text != is_numeric(values) or (values.factor().codes < 0).all()
    ):
        return None
    wanted, got = ("text is", "numbers") if expects_text else ("numbers are", "text")
    what = f"{wanted} expected, but it holds {got}: {values.shown(text=not expects_text)}"
    return Finding(column.name, what, f"use its levels {_levels(column)}")


def _levels(column: Column) -> str:
    shown = ", ".join(quoted(level) for level in column.levels[:10])
    return f"{shown}, ..." if len(column.levels) > 10 else shown


def _coded(
    values: Values, column: Column, present: Mask | None, choice: UnseenArg | None
) -> tuple[NDArray[np.int32], Finding | None]:
    """Return positions in the schema's levels (-1 missing, -2 unseen), and the unseen levels."""
    if values.family == "empty":
        return np.full(len(values.column), -1, dtype=np.int32), None
    factor = values.factor()
    codes = factor.recoded(column.levels, unknown=-2)
    unseen = codes == -2 if present is None else (codes == -2) & present
    if choice == "ignore" or not unseen.any():
        return codes, None
    n_rows = rows(int(np.count_nonzero(unseen)))
    what = f"levels that the model has not seen, in {n_rows}: {factor.listed(unseen)}"
    return codes, Finding(column.name, what, f"use its levels {_levels(column)}{_IGNORE[choice]}")


def _counted(
    values: Values, column: Column, present: Mask | None, choice: UnseenArg | None
) -> tuple[NDArray[np.int32], Finding | None]:
    """Return counts (-1 missing, -2 above the largest), and what is wrong with them."""
    codes, largest = np.full(len(values.column), -1, dtype=np.int32), column.n_values - 1
    if values.family == "empty":
        return codes, None
    numbers = values.numbers()
    there = ~np.isnan(numbers)
    codes[there] = np.clip(numbers[there], 0.0, largest)
    codes[there & (numbers > largest)] = -2
    used = there if present is None else there & present
    wrong = used & ((numbers < 0.0) | (numbers != np.floor(numbers)))
    if wrong.any():
        n_values = number_of(int(np.count_nonzero(wrong)), "value is", "values are")
        what = f"counts are expected, but {n_values} negative or not whole: {_some(numbers[wrong])}"
        return codes, Finding(column.name, what, f"use whole numbers from 0 to {largest:,}")
    above = used & (codes == -2)
    if choice == "ignore" or not above.any():
        return codes, None
    n_rows = rows(int(np.count_nonzero(above)))
    what = (
        f"counts above the largest of the model, {largest:,}, in {n_rows}: {_some(numbers[above])}"
    )
    line = types_line(column.name, "count", largest=default_largest(numbers[used]))
    remedy = f"fit the model with {line}{_IGNORE[choice]}"
    return codes, Finding(column.name, what, remedy)


def _some(numbers: Floats) -> str:
    return few(np.unique(numbers).tolist(), 5, lambda number: f"{number:.15g}")


_IGNORE = {None: "", "ignore": "", "error": '; unseen="ignore" ignores such cells'}
