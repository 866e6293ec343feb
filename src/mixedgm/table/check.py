"""A table and its options in -> the schema of its columns and all findings at once."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.errors import Finding, ParameterError, TableError, TableTypeError, TableWarning
from mixedgm.table.infer import family_finding, identifier_finding, kind_of_numbers
from mixedgm.table.options import (
    Options,
    TransformArg,
    TypesArg,
    in_declared_levels,
    resolve_options,
)
from mixedgm.table.read import Frame, as_frame
from mixedgm.table.row_checks import (
    Missing,
    check_missing,
    closeness_finding,
    infinite_finding,
    level_findings,
    read_weights,
    spread_finding,
)
from mixedgm.table.schema import Column, Kind, Role, Schema
from mixedgm.table.values import Factor, Values, read_values
from mixedgm.table.wording import rows

__all__ = ["Checked", "MissingArg", "check", "raise_or_warn", "shape_findings"]

MissingArg = Literal["error", "drop"]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Checked:
    """A table that was looked at from all sides.

    Parameters
    ----------
    schema : Schema
        The columns that can be used, all of them when there is no error. No transform is fitted.
    findings : tuple of Finding
        Errors and warnings, those about the whole table first.
    frame : Frame
        The table.
    options : Options
        The user's options by column name.
    values : mapping of str to Values
        The columns of the schema.
    factors : mapping of str to Factor
        The categorical columns of the schema as level codes, for all rows.
    keep : bool array of shape (n,) or None
        Rows with positive weight and no missing value; None when that is all rows.
    weights : float64 array or None
        Weights of the rows that are kept.
    """

    schema: Schema
    findings: tuple[Finding, ...]
    frame: Frame
    options: Options
    values: Mapping[str, Values]
    factors: Mapping[str, Factor]
    keep: Mask | None
    weights: NDArray[np.float64] | None

    def __repr__(self) -> str:
        errors = sum(finding.severity == "error" for finding in self.findings)
        counts = (("error", errors), ("warning", len(self.findings) - errors))
        found = ", ".join(f"{n} {noun}{'' if n == 1 else 's'}" for noun, n in counts)
        lines = [f"Table of {self.frame.n_rows:,} rows: {found}", "", str(self.schema)]
        if self.findings:
            lines += ["", *(f"[{finding.severity}] {finding}" for finding in self.findings)]
        return "\n".join(lines)


def check(
    X: object,
    *,
    types: TypesArg = None,
    transform: TransformArg = None,
    covariates: Sequence[Any] | str | None = None,
    missing: MissingArg = "error",
    sample_weight: ArrayLike | None = None,
) -> Checked:
    """Look at a table and collect everything that is wrong or worth knowing.

    Parameters
    ----------
    X : data frame, 2-D array or path
        The table.
    types : mapping, sequence or Schema, optional
        Kinds that override inference, for example ``{"stage": "categorical"}``; a schema, such as
        that of another table's `check`, gives the kinds of its columns and their levels.
    transform : "nonparanormal" or mapping, optional
        For all continuous columns, or by column.
    covariates : sequence of names, optional
        Columns that predict but are not predicted.
    missing : {"error", "drop"}
        What to do about missing values.
    sample_weight : array of shape (n,), optional
        Frequencies of the rows.

    Returns
    -------
    Checked
        The schema and the findings. Nothing is raised for what is found in the table; a thing that
        is no table at all raises TableError.

    Examples
    --------
    >>> checked = check([[1.5, "a"], [2.5, "b"], [None, "a"]])
    >>> print(checked.findings[0])
    column 'x0': 1 missing value (NaN or null). To fix: missing="drop" drops the row, or fill it in
    """
    if missing not in ("error", "drop"):
        raise ParameterError.must_be("missing", "'error' or 'drop'", missing)
    frame = as_frame(X)
    findings = shape_findings(frame, minimum=2)
    options, option_findings = resolve_options(frame, types, transform, covariates)
    weights, weight_findings = read_weights(sample_weight, frame.n_rows)
    findings += option_findings + weight_findings
    if weights is not None and frame.n_rows > 1 and np.count_nonzero(weights) == 1:
        what = (
            "only one row (1 sample) has a positive sample_weight while a minimum of 2 is required."
        )
        findings.append(Finding(None, what, "give at least 2 rows a positive weight"))
    columns = _Columns(frame, options)
    columns.read()
    if not frame.n_rows or not frame.names:
        gap = Missing(None, ())
    else:
        gap = check_missing(columns.gaps(), weights, missing, learning=True)
    findings += gap.findings
    if gap.n_kept(frame.n_rows) > 1:
        columns.decide(gap.keep, frozenset(gap.empty))
    kept_weights = weights if weights is None or gap.keep is None else weights[gap.keep]
    return Checked(
        Schema(tuple(columns.schema)),
        tuple(findings + columns.findings),
        frame,
        options,
        columns.values,
        columns.factors,
        gap.keep,
        kept_weights,
    )


class _Columns:
    """The columns of one table while they are checked, one after the other."""

    def __init__(self, frame: Frame, options: Options) -> None:
        self.frame = frame
        self.options = options
        self.findings: list[Finding] = []
        self.values: dict[str, Values] = {}
        self.factors: dict[str, Factor] = {}
        self.schema: list[Column] = []

    def read(self) -> None:
        """Find the family of each column, and the codes of those that have levels."""
        for name, at in self.frame.positions.items():
            values = read_values(name, self.frame.columns[at], self.frame.library)
            declared = self.options.kinds.get(name)
            finding = family_finding(values, declared) if self.frame.n_rows else None
            if finding is not None:
                self.findings.append(finding)
                continue
            self.values[name] = values
            numeric = values.family == "number"
            if declared == "categorical" or (declared is None and not numeric):
                self._set_factor(values)

    def _set_factor(self, values: Values) -> None:
        if values.name not in self.factors:
            declared = self.options.declared.get(values.name)
            self.factors[values.name], finding = in_declared_levels(values.factor(), declared)
            self.findings += [] if finding is None else [finding]

    def gaps(self) -> Iterable[tuple[str, Mask]]:
        """Yield where each column has missing values."""
        for name, values in self.values.items():
            if name in self.factors:
                yield name, self.factors[name].codes < 0
            else:
                yield name, np.isnan(values.numbers())

    def decide(self, keep: Mask | None, empty: frozenset[str]) -> None:
        """Settle the kind of each column on the rows that are kept."""
        for name, values in self.values.items():
            if name in empty:
                continue
            before = sum(finding.severity == "error" for finding in self.findings)
            kind = self._kind(values, keep)
            if kind == "categorical":
                self._check_levels(values, keep)
            if before == sum(finding.severity == "error" for finding in self.findings):
                self.schema.append(self._column(values, kind))

    def _kind(self, values: Values, keep: Mask | None) -> Kind:
        name, declared = values.name, self.options.kinds.get(values.name)
        if name in self.factors and values.family != "number":
            return "categorical"
        numbers = values.numbers()
        numbers = numbers if keep is None else numbers[keep]
        finding = infinite_finding(name, numbers)
        if finding is None and declared != "categorical":
            finding = spread_finding(name, numbers)
        if finding is not None:
            self.findings.append(finding)
            return declared or "continuous"
        kind, finding = (declared, None) if declared else kind_of_numbers(values, numbers)
        if kind == "categorical":
            self._set_factor(values)
        elif not self.options.transformed(name):  # ranks need no precision
            finding = closeness_finding(name, numbers) or finding
        self.findings += [] if finding is None else [finding]
        return kind

    def _check_levels(self, values: Values, keep: Mask | None) -> None:
        name, factor = values.name, self.factors[values.name]
        codes = factor.codes if keep is None else factor.codes[keep]
        found = level_findings(name, factor, codes)
        if name in self.options.declared:  # part of a table: levels may have no rows here
            found = [
                replace(each, severity="warning") for each in found if each.severity == "error"
            ]
        self.findings += found
        if name not in self.options.kinds:
            warning = identifier_finding(values, factor, len(codes))
            self.findings += [] if warning is None else [warning]
        if self.options.transforms.get(name):
            what = "transform names it, but it is categorical"
            self.findings.append(Finding(name, what, "take it out of transform"))

    def _column(self, values: Values, kind: Kind) -> Column:
        name = values.name
        role: Role = "covariate" if name in self.options.covariates else "target"
        dtype = f"{values.library}:{values.dtype}"
        labels = self.frame.labels
        label = labels[self.frame.positions[name]] if labels else None
        if kind == "continuous":
            return Column(name, kind, role, dtype=dtype, label=label)
        factor = self.factors[name]
        return Column(name, kind, role, factor.levels, factor.ordered, dtype, label=label)


def shape_findings(frame: Frame, minimum: int) -> list[Finding]:
    """Return findings about the size of a table and about repeated names.

    Parameters
    ----------
    frame : Frame
        The table.
    minimum : int
        The fewest rows that will do.

    Returns
    -------
    list of Finding
        Errors only.
    """
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
    return findings


def raise_or_warn(findings: Iterable[Finding]) -> None:
    """Raise one TableError with all errors, or else issue one TableWarning with all warnings.

    Parameters
    ----------
    findings : iterable of Finding
        What was found.
    """
    found = list(findings)
    errors = [finding for finding in found if finding.severity == "error"]
    if errors:
        wrong_type = any(finding.wrong_type for finding in errors)
        raise (TableTypeError if wrong_type else TableError)(errors)
    if found:
        warnings.warn(TableWarning(found), stacklevel=level_of_caller())


def level_of_caller() -> int:
    """Return the stack level of the first frame outside this package, for warnings to point at."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("mixedgm."):
        frame, level = frame.f_back, level + 1
    return level
