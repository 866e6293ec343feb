"""Something the user can put right -> one family of errors that say what, where and what to do."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, Self

from mixedgm.base.printable import bounded, few, quoted

Severity = Literal["error", "warning", "note"]

_FINDING = 2000  # characters of a finding
_LISTED = 3500  # characters of several
_VALUE = 200  # characters of a value that an option cannot have
_COMPARED = 100  # characters of a name


@dataclass(frozen=True)
class Finding:
    """One thing to know about a table.

    Parameters
    ----------
    column : str or None
        The column it is about; None when it is about the whole table or an option.
    what : str
        Problem that was found, with values and counts.
    remedy : str
        Remedy, where possible as the line to write. May be empty.
    severity : {"error", "warning", "note"}
        An error stops the work, a warning does not. A note is shown by `check_table` only.
    wrong_type : bool
        True when a cell is neither text nor a number nor a truth value.
    strong : bool
        True for a note that `fit` mentions, too.
    structural : bool
        True when columns are missing where another has certain values.

    Examples
    --------
    >>> print(Finding("age", "2 infinite values", "replace them by missing values"))
    column 'age': 2 infinite values. To fix: replace them by missing values
    """

    column: str | None
    what: str
    remedy: str
    severity: Severity = "error"
    wrong_type: bool = False
    strong: bool = False
    structural: bool = False

    def __str__(self) -> str:
        """Return the finding as one line."""
        where = "" if self.column is None else f"column {quoted(self.column)}: "
        if not self.remedy:
            return bounded(where + self.what, _FINDING)
        lead = "To fix" if self.severity == "error" else "To change it"
        return bounded(f"{where}{self.what.rstrip('.')}. {lead}: {self.remedy}", _FINDING)


def _listing(findings: tuple[Finding, ...], noun: str) -> str:
    """Return one line for one finding, else a heading with a bullet for each."""
    if len(findings) == 1:
        return bounded(str(findings[0]))
    lines, length = [f"{len(findings):,} {noun} with this table:"], 0
    for line in finding_lines(findings):
        length += len(line)
        if length > _LISTED:
            lines.append("  - ...; mixedgm.check_table(table).findings has all of them")
            break
        lines.append(f"  - {line}")
    return bounded("\n".join(lines))


def finding_lines(
    findings: Iterable[Finding], line: Callable[[Finding], str] = str, most: int = 4
) -> list[str]:
    r"""Return a line for each finding; those that differ in names and numbers only are counted.

    At most `most` of them are shown.

    Examples
    --------
    >>> same = [Finding(f"q{k}", f"it is constant: {k} in all 9 rows", "") for k in range(300)]
    >>> print(*finding_lines(same, most=1), sep="\n")
    column 'q0': it is constant: 0 in all 9 rows
    ... and 299 more columns like it: 'q1', 'q2', 'q3' and 296 more
    """
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        constant_text = _VARYING.sub("", finding.what[:_VALUE])
        kinds.setdefault((finding.severity, constant_text), []).append(finding)
    lines: list[str] = []
    for alike in kinds.values():
        rest = alike[most:] if len(alike) > most + 1 else []
        lines += [line(finding) for finding in alike[: len(alike) - len(rest)]]
        names = [finding.column for finding in rest if finding.column is not None]
        noun = "columns" if len(names) == len(rest) else "findings"
        which = f": {few(names, 3)}" if names else ""
        lines += [f"... and {len(rest):,} more {noun} like it{which}"] if rest else []
    return listed(lines)


# What differs between findings of one kind: values in quotes, and numbers.
_VARYING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[-+]?\d[\d.,e+-]*""")


def listed(lines: Iterable[str], most: int = 50) -> list[str]:
    """Return the first lines, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c"], 1)
    ['a', 'and 2 more']
    """
    lines = list(lines)
    more = len(lines) - most
    return lines if more <= 0 else [*lines[:most], f"and {more:,} more"]


def _as_findings(findings: Finding | Iterable[Finding] | str) -> tuple[Finding, ...]:
    if isinstance(findings, str):
        return (Finding(None, findings, ""),)
    return (findings,) if isinstance(findings, Finding) else tuple(findings)


class MixedGMError(Exception):
    """The family of all errors that mixedgm raises on purpose.

    Whatever names and values a message quotes, it reads as plain text of limited length.
    """

    def __str__(self) -> str:
        return bounded(super().__str__())


class TableError(MixedGMError, ValueError):
    """A table that cannot be used; all findings are reported together.

    Parameters
    ----------
    findings : Finding, iterable of Finding, or str
        What is wrong. A string becomes one finding without a column.

    Attributes
    ----------
    findings : tuple of Finding
        The errors, in the order in which they are listed.

    Examples
    --------
    >>> error = TableError([Finding("a", "it is constant", "leave it out")])
    >>> error.findings[0].column
    'a'
    """

    findings: tuple[Finding, ...]

    def __init__(self, findings: Finding | Iterable[Finding] | str) -> None:
        self.findings = _as_findings(findings)
        super().__init__(self.findings)

    def __str__(self) -> str:
        """Return all findings as a readable list."""
        return _listing(self.findings, "problems")


class TableTypeError(TableError, TypeError):
    """A table with cells that are neither text nor numbers nor truth values."""


class ParameterError(MixedGMError, ValueError):
    """An option with a value it cannot have."""

    @classmethod
    def must_be(cls, name: str, wanted: str, got: object) -> ParameterError:
        """Return the error "<name> must be <wanted>. Got <got> instead.".

        Examples
        --------
        >>> print(ParameterError.must_be("lam", "a float in (0, inf)", -1))
        lam must be a float in (0, inf). Got -1 instead.
        """
        return cls(f"{name} must be {wanted}. Got {quoted(got, _VALUE)} instead.")


class ModelFileError(MixedGMError, ValueError):
    """A model file that is corrupt, foreign or of a newer format."""


class DistributionError(MixedGMError, ValueError):
    """A joint distribution that does not exist, or that has no exact answer.

    Parameters
    ----------
    message : str
        What is wrong; ``{columns}`` stands where the columns are to be named.
    columns : tuple of int
        The columns it is about, as nodes: continuous columns first, then categorical ones.

    Examples
    --------
    >>> error = DistributionError("no distribution over {columns}.", (0, 2))
    >>> print(error)
    no distribution over columns 0, 2.
    >>> print(error.named(["age", "wage", "sex"]))
    no distribution over 'age', 'sex'.
    """

    def __init__(self, message: str, columns: tuple[int, ...] = ()) -> None:
        self.message = message
        self.columns = columns
        super().__init__(message, columns)

    def __str__(self) -> str:
        """Return the message with the columns as numbers."""
        numbers = few(self.columns, 20)
        return self.message.replace("{columns}", f"columns {numbers}")

    def named(self, names: Sequence[str]) -> Self:
        """Return the same error with the columns by name; `names` are those of all nodes."""
        shown = few([names[column] for column in self.columns], 20)
        return type(self)(self.message.replace("{columns}", shown), self.columns)


class TooLargeError(DistributionError):
    """An exact computation whose tables would exceed the limit."""


class OutputError(ParameterError, OSError):
    """A file that cannot be written: a full disk, a folder that may not be written to."""


class OutOfMemoryError(MixedGMError, MemoryError):
    """A fit that needs more memory than there is."""


class NotYetError(MixedGMError, NotImplementedError):
    """An option that is planned but does not work yet."""


class SamplingWarning(UserWarning):
    """Draws whose diagnostics say that they cannot be relied on.

    Parameters
    ----------
    message : str
        What is wrong; ``{places}`` stands where columns and levels are to be named.
    places : tuple of int
        Positions of the places among the continuous columns and then all levels.

    Examples
    --------
    >>> warning = SamplingWarning("bad draws of {places}.", (0, 2))
    >>> print(warning)
    bad draws of quantities 0, 2.
    >>> print(warning.named(["'age'", "'sex' = F", "'sex' = M"]))
    bad draws of 'age', 'sex' = M.
    """

    def __init__(self, message: str, places: tuple[int, ...] = ()) -> None:
        self.message = message
        self.places = places
        super().__init__(message, places)

    def __str__(self) -> str:
        """Return the message with the places as numbers."""
        numbers = few(self.places, 20)
        return self.message.replace("{places}", f"quantities {numbers}")

    def named(self, names: Sequence[str]) -> Self:
        """Return the same warning with names; `names` are those of all columns and levels."""
        shown = few([names[place] for place in self.places], 20, str)
        return type(self)(self.message.replace("{places}", shown), self.places)


class ExtrapolationWarning(UserWarning):
    """A value of a moderator outside the range of the rows that a model was fitted to."""


class LongRunWarning(UserWarning):
    """A call that will take more than about ten seconds, said before it begins."""


class LongFitWarning(LongRunWarning):
    """A fit that will take more than about a minute, said before it begins."""


class SelectionWarning(UserWarning):
    """A penalty that was chosen at the end of the path, so that a smaller one might do better."""


class TableWarning(UserWarning):
    """Findings about a table that do not stop the work.

    Attributes
    ----------
    findings : tuple of Finding
        The findings, in the order in which they are listed.
    """

    findings: tuple[Finding, ...]

    def __init__(self, findings: Finding | Iterable[Finding] | str) -> None:
        self.findings = _as_findings(findings)
        super().__init__(self.findings)

    def __str__(self) -> str:
        """Return all findings as a readable list."""
        return _listing(self.findings, "things to know")


def near_matches(name: object, known: Iterable[str], noun: str = "columns") -> str:
    """Return a hint with the known names nearest to a wrong one, or the list of them.

    Examples
    --------
    >>> near_matches("agee", ["age", "sex"])
    "did you mean 'age'?"
    >>> near_matches("q", ["age", "sex"])
    "the columns are 'age', 'sex'"
    """
    names = list(known)
    lowered = {each[:_COMPARED].lower(): each for each in reversed(names)}
    near = get_close_matches(str(name)[:_COMPARED].lower(), list(lowered), n=3)
    if near:
        return f"did you mean {' or '.join(quoted(lowered[n]) for n in near)}?"
    return f"the {noun} are {few(names, 8)}" if names else f"there are no {noun}"


def level_of_caller() -> int:
    """Return the stack level of the first frame outside this package, for warnings to point at."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _between(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    return level


def _between(module: str) -> bool:
    """Return whether a module is part of this package, or calls it for a cached property."""
    return module.startswith("mixedgm.") or module == "functools"
