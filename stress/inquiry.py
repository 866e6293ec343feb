"""Questions to a model -> their answers, with everything that an answer must not be."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import mixedgm as mg

_LONGEST_MESSAGE = 4000
_LONGEST_TEXT = 100_000


class Inquiry:
    """Questions with their answers; what should not have been is in `findings`."""

    def __init__(self, *asked_from: str) -> None:
        self.asked_from = asked_from
        self.findings: list[str] = []
        self.refused: dict[str, mg.MixedGMError] = {}

    def ask(self, what: str, question: Callable[[], Any]) -> Any:
        """The answer; None where it is an error of the family, or a finding."""
        with self._listening(what):
            try:
                return question()
            except mg.MixedGMError as error:
                self.refused[what] = error
                self._judge(what, error)
            except WrongAnswerError as wrong:
                self.findings.append(f"{what}: {wrong}")
            except Exception as error:
                where = [
                    f"{Path(each.filename).name}:{each.lineno}"
                    for each in traceback.extract_tb(error.__traceback__)
                    if "mixedgm" in each.filename
                ]
                text = f"{type(error).__name__}: {error}"[:300]
                self.findings.append(f"{what}: {' '.join(where[-4:])} {text}".replace("\n", " "))
        return None

    def end(self, what: str, answer: Any) -> str:
        """How a question ended, in words for the record."""
        if answer is not None:
            return "answer"
        return "error of the family" if what in self.refused else "finding"

    def text(self, text: str) -> None:
        """Look at a text for the user."""
        if "\x1b" in text or "\x00" in text:
            raise WrongAnswerError("control characters in a text")
        if len(text) > _LONGEST_TEXT:
            raise WrongAnswerError(f"a text of {len(text):,} characters")

    def compare(self, checked: Any, model: Any) -> None:
        """What `check` calls an error, and nothing else of the table, stops the fit."""
        error = self.refused.get("fit")
        if checked is None:
            return
        errors = [each for each in checked.findings if each.severity == "error"]
        if errors and model is not None:
            self.findings.append(f"check: the table was fitted in spite of: {errors[0]}"[:300])
        if isinstance(error, mg.TableError) and not errors:
            self.findings.append(f"check: said nothing of: {error}"[:300])

    def _judge(self, what: str, error: mg.MixedGMError) -> None:
        text = str(error)
        if len(text) > _LONGEST_MESSAGE:
            self.findings.append(f"{what}: a message of {len(text):,} characters")
        if not text.strip():
            self.findings.append(f"{what}: an error without a word")
        if "\x1b" in text or "\x00" in text:
            self.findings.append(f"{what}: control characters in a message")
        for each in getattr(error, "findings", ()):
            if each.column is not None and not each.remedy:
                self.findings.append(f"{what}: no remedy in: {each}"[:300])

    @contextmanager
    def _listening(self, what: str) -> Iterator[None]:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            yield
        for each in heard:
            own = issubclass(each.category, UserWarning) and each.filename in self.asked_from
            if not own:
                where = f"{Path(each.filename).name}:{each.lineno}"
                text = f"{each.category.__name__} at {where}: {str(each.message)[:200]}"
                self.findings.append(f"{what}: {text}".replace("\n", " "))
            elif len(str(each.message)) > _LONGEST_MESSAGE:
                self.findings.append(f"{what}: a warning of {len(str(each.message)):,} characters")


class WrongAnswerError(Exception):
    """An answer that cannot be."""


def listed(table: Any) -> dict[str, list[Any]]:
    """Columns of any table as lists."""
    if isinstance(table, np.ndarray):
        table = table.reshape(len(table), -1)
        return {str(at): list(table[:, at]) for at in range(table.shape[1])}
    if hasattr(table, "iloc"):
        return {str(at): list(table.iloc[:, at]) for at in range(table.shape[1])}
    if hasattr(table, "to_pydict"):
        return {str(at): column.to_pylist() for at, column in enumerate(table.columns)}
    return {str(at): each.to_list() for at, each in enumerate(table.get_columns())}


def finite(table: Any) -> None:
    """Every cell has a value, and every number is finite."""
    for name, cells in listed(table).items():
        finite_cells(name, cells)


def missing(cell: Any) -> bool:
    """Whether a cell has no value, in the words of any library."""
    nan = isinstance(cell, float | np.floating) and np.isnan(cell)
    return cell is None or nan or type(cell).__name__ in ("NAType", "NaTType")


def finite_cells(name: str, cells: list[Any]) -> None:
    for at, cell in enumerate(cells):
        cell = cell.as_py() if hasattr(cell, "as_py") else cell
        if missing(cell):
            raise WrongAnswerError(f"column {name}, row {at} has no value")
        if isinstance(cell, float | np.floating) and not np.isfinite(cell):
            raise WrongAnswerError(f"column {name}, row {at} is {cell}")
