"""A table with missing cells in -> Gaps: its numbers and codes, and where they are missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.table.check import raise_or_warn
from mixedgm.table.match import match
from mixedgm.table.read import Frame
from mixedgm.table.schema import Schema

__all__ = ["Gaps", "read_gaps"]


@dataclass(frozen=True, eq=False)
class Gaps:
    """A table of which some cells are missing.

    Parameters
    ----------
    schema : Schema
        What the columns mean.
    cont : float64 array (n, p)
        Continuous columns in the schema's order, normal scores where a column has a transform; NaN
        where a value is missing.
    codes : int32 array (n, q)
        Categorical columns as positions in their levels; -1 where a value is missing.
    """

    schema: Schema
    cont: NDArray[np.float64]
    codes: NDArray[np.int32]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """(n, p + q) where cells are missing, continuous columns first."""
        return np.column_stack([np.isnan(self.cont), self.codes < 0])


def read_gaps(frame: Frame, schema: Schema) -> Gaps:
    """Encode a table by a schema that was learnt before, and let missing cells be.

    Parameters
    ----------
    frame : Frame
        The table.  Columns of a frame are found by name, those of an array by position.
    schema : Schema
        The schema of the model.

    Raises
    ------
    TableError
        For absent columns, wrong types, unseen levels and infinite values: all at once.

    Examples
    --------
    >>> from mixedgm.table import as_frame, learn
    >>> design, _ = learn([[1.5, "b"], [2.5, "a"], [0.5, "a"], [3.0, "b"]])
    >>> gaps = read_gaps(as_frame([[None, "b"], [2.0, None]]), design.schema)
    >>> gaps.missing.tolist()
    [[True, False], [False, True]]
    """
    matched = match(frame, schema, "keep", None, None)
    raise_or_warn(matched.findings)
    cont = np.full((frame.n_rows, schema.n_cont), np.nan)
    for at, column in enumerate(schema.continuous):
        values = matched.values[column.name]
        if values.family != "empty":
            numbers = values.numbers()
            transform = column.transform
            cont[:, at] = numbers if transform is None else transform.forward(numbers)
    codes = [matched.codes[column.name] for column in schema.categorical]
    stacked = np.column_stack(codes) if codes else np.zeros((frame.n_rows, 0))
    return Gaps(schema, cont, np.ascontiguousarray(stacked, dtype=np.int32))
