"""A table and its options in -> the schema of its columns and all findings at once."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.deprecation import renamed, renamed_arguments
from mixedgm.errors import (
    Finding,
    ParameterError,
    Severity,
    TableError,
    TableTypeError,
    TableWarning,
    finding_lines,
    level_of_caller,
)
from mixedgm.parallel import n_workers
from mixedgm.printable import few
from mixedgm.table.effort import effort
from mixedgm.table.inspection import Inspection
from mixedgm.table.missing import Missing, check_missing
from mixedgm.table.options import ColumnOptions, TransformArg, TypesArg, resolve_options
from mixedgm.table.read import Frame, as_frame
from mixedgm.table.row_checks import broken, read_weights
from mixedgm.table.schema import Schema
from mixedgm.table.shape import shape_findings
from mixedgm.table.values import Factor, Values
from mixedgm.table.wording import number_of, rows, types_line

__all__ = [
    "Checked",
    "MissingArg",
    "check",
    "check_table",
    "level_of_caller",
    "raise_or_warn",
    "size_findings",
]

MissingArg = Literal["error", "drop"]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Checked:
    """What a check of a table shows.

    Parameters
    ----------
    schema : Schema
        The columns that can be used, all of them when there is no error. No transform is fitted.
    findings : tuple of Finding
        Errors, warnings and notes, those about the whole table first.
    frame : Frame
        The table.
    options : ColumnOptions
        The user's options by column name.
    values : mapping of str to Values
        The columns of the schema.
    factors : mapping of str to Factor
        The categorical columns of the schema as level codes, for all rows.
    keep : bool array of shape (n,) or None
        Rows with positive weight and no missing value; None when that is all rows.
    weights : float64 array or None
        Weights of the rows that are kept.
    leave_out : tuple of str
        Columns with gaps without which most cells of the table are in complete rows; the finding
        about missing values proposes to leave them out. Empty when it proposes none.
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

    def __repr__(self) -> str:
        counts = Counter(finding.severity for finding in self.findings)
        shown: list[Severity] = ["error", "warning"]
        shown += ["note"] if counts["note"] else []
        summary = ", ".join(number_of(counts[noun], noun, f"{noun}s") for noun in shown)
        lines = [f"Table of {self.frame.n_rows:,} rows: {summary}", "", str(self.schema)]
        if self.findings:
            lines += ["", *finding_lines(self.findings, lambda each: f"[{each.severity}] {each}")]
        return "\n".join(lines)


@renamed_arguments({"transform": "transforms"})
def check_table(
    X: object,
    *,
    types: TypesArg = None,
    transforms: TransformArg = None,
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
        that of another checked table, gives the kinds of its columns and their levels.
    transforms : "nonparanormal" or mapping, optional
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
        The schema and the findings. Nothing is raised for what is found in the table;
        something that is not a table raises TableError.

    Examples
    --------
    >>> checked = check_table([[1.5, "a"], [2.5, "b"], [None, "a"]])
    >>> print(checked.findings[0])
    column 'x0': 1 missing value (NaN or null). To fix: missing="drop" drops the row, or fill it in
    """
    if missing not in ("error", "drop"):
        raise ParameterError.must_be("missing", "'error' or 'drop'", missing)
    frame = as_frame(X)
    findings = size_findings(frame, minimum=2)
    options, option_findings = resolve_options(frame, types, transforms, covariates)
    weights, weight_findings = read_weights(sample_weight, frame.n_rows)
    findings += option_findings + weight_findings
    if weights is not None and frame.n_rows > 1 and np.count_nonzero(weights) == 1:
        what = (
            "only one row (1 sample) has a positive sample_weight while a minimum of 2 is required."
        )
        findings.append(Finding(None, what, "give at least 2 rows a positive weight"))
    columns = Inspection(frame, options, weights)
    columns.read()
    if not frame.n_rows or not frame.names:
        gap = Missing(None, ())
    else:
        gap = check_missing(columns.gaps(), weights, missing, learning=True)
    findings += gap.findings
    if frame.n_rows > 1 and (weights is None or np.count_nonzero(weights) > 1):
        columns.decide(gap.empty)
        columns.compare_complete(gap)
        columns.look_for_dependence(gap.leave_out)
    if columns.left_out and not columns.values:
        names = [column.name for column in columns.left_out]
        what = f"no column is left to model: {few(names)} left out"
        reason = columns.left_out[0].reason
        remedy = f"{types_line(names[0], 'categorical')} keeps a column ({reason})"
        findings.append(Finding(None, what, remedy))
    n_kept = frame.n_rows if gap.keep is None else int(np.count_nonzero(gap.keep))
    long = effort(columns.schema, n_kept, n_threads=n_workers(None)).finding
    findings += [] if long is None else [long]
    kept_weights = weights if weights is None or gap.keep is None else weights[gap.keep]
    return Checked(
        Schema(tuple(columns.schema), tuple(columns.left_out)),
        tuple(findings + columns.findings + shape_findings(columns.shapes)),
        frame,
        options,
        columns.values,
        columns.factors,
        gap.keep,
        kept_weights,
        gap.leave_out,
    )


check = renamed(check_table, "mixedgm.check", "mixedgm.check_table")


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
