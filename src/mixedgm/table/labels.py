"""Labels of the rows, or the column that holds them -> a list of labels, and Groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import ParameterError, TableError
from mixedgm.base.printable import number_of, quoted, rows
from mixedgm.model.layout import Ints
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps
from mixedgm.table.read import Frame, named_column


def given_labels(option: str, given: object, n_rows: int | None = None) -> list[Any]:
    """Return labels as a list, in their own types.

    ParameterError where they are not one-dimensional, or not as many as `n_rows`.

    Examples
    --------
    >>> given_labels("cluster", ("a", 1), 2)
    ['a', 1]
    """
    if isinstance(given, list | tuple):
        labels: Any = list(given)
    elif hasattr(given, "to_list"):  # of pandas, polars and narwhals
        labels = given.to_list()
    else:
        labels = given.to_pylist() if hasattr(given, "to_pylist") else np.asarray(given).tolist()
    shape = getattr(given, "shape", None)
    if not isinstance(labels, list):
        got = f"a value of type {type(given).__name__}"
    elif any(isinstance(label, list | dict | set | np.ndarray) for label in labels):
        got = "lists as labels" if shape is None or len(shape) == 1 else f"shape {shape}"
    elif n_rows not in (None, len(labels)):
        got = f"{number_of(len(labels), 'label')} for {rows(n_rows or 0)}"
    else:
        return labels
    wanted = "" if n_rows is None else f", in shape ({n_rows},)"
    raise ParameterError(f"{option} must have one label per row{wanted}. Got {got}.")


def refuse_missing(option: str, labels: Sequence[Any]) -> None:
    """Raise TableError where labels are missing."""
    count = sum(map(_is_missing, labels))
    if count:
        raise TableError(
            f"{option} has {number_of(count, 'missing label')}; every row needs one. Leave these "
            "rows out, or give them a label of their own."
        )


def _is_missing(label: object) -> bool:
    if isinstance(label, Decimal):  # a signalling NaN cannot be compared
        return label.is_nan()
    # pandas' own missing values do not even equal themselves.
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)


def numbered(labels: Sequence[Any]) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """Return the different labels in sorted order, and the number of each row's label.

    The order of the rows does not matter.

    Examples
    --------
    >>> numbered(["b", "a", "b"])
    (('a', 'b'), array([1, 0, 1]))
    """
    distinct = set(labels)
    try:
        ordered = sorted(distinct)
    except TypeError:
        ordered = sorted(distinct, key=str)
    number = {label: at for at, label in enumerate(ordered)}
    return tuple(ordered), np.array([number[label] for label in labels], dtype=np.int64)


# -- groups of rows --------------------------------------------------------------------------------

_FEWEST = 2


@dataclass(frozen=True, eq=False)
class Groups:
    """The rows of a design in groups."""

    labels: tuple[Any, ...]  # one per group, sorted; as the user gave them
    codes: Ints  # (n,) number of the group of every row
    dependent: Ints | None = None  # (n,) number of the unit whose rows depend on each other
    paired: bool = False  # whether units are in several groups: labels are shuffled within units

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def names(self) -> tuple[str, ...]:
        """The labels as text."""
        return tuple(str(label) for label in self.labels)

    def rows(self, group: int) -> Ints:
        """Positions of the rows of one group."""
        return np.flatnonzero(self.codes == group)


def without_labels(frame: Frame, **given: Any) -> Frame:
    """The frame without the columns that these options name."""
    named = {name: which for name, which in given.items() if isinstance(which, str)}
    for name, which in named.items():
        named_column(name, which, frame)
    left = [at for at, name in enumerate(frame.names) if name not in named.values()]
    return Frame(
        tuple(frame.names[at] for at in left),
        tuple(frame.columns[at] for at in left),
        frame.n_rows,
        frame.library,
        tuple(frame.labels[at] for at in left) if frame.labels else (),
    )


def read_groups(
    frame: Frame, groups: object, design: Design | Gaps, *, paired: Any = None, cluster: Any = None
) -> Groups:
    """Number the groups, and the units of dependent rows; rows that were left out are too."""
    labels, codes = numbered(row_labels("groups", groups, frame, design))
    if len(labels) < 2:
        raise ParameterError(
            f"groups must have at least two different labels. Got {quoted(labels)}."
        )
    if len({str(label) for label in labels}) < len(labels):
        raise ParameterError("groups has labels that differ in type only, such as 1 and '1'.")
    for label, count in zip(labels, np.bincount(codes), strict=True):
        if count < _FEWEST:
            raise ParameterError(
                f"group {quoted(label)} has {count} row; a group needs at least {_FEWEST}. Leave "
                "its rows out, or join it with another group."
            )
    _refuse_twins(design, codes, len(labels))
    if paired is None and cluster is None:
        return Groups(labels, codes)
    if paired is None:
        return Groups(labels, codes, numbered(row_labels("cluster", cluster, frame, design))[1])
    _, unit = numbered(row_labels("paired", paired, frame, design))
    if len(np.unique(np.column_stack([unit, codes]), axis=0)) == unit.max() + 1:
        raise ParameterError(
            "paired has a label for every row's unit, such as a person, and here all rows of a "
            "unit are in one group, so that nothing is paired. To fix: use cluster= for rows that "
            "belong together within groups."
        )
    return Groups(labels, codes, unit, paired=True)


def row_labels(name: str, given: object, frame: Frame, design: Design | Gaps) -> list[Any]:
    """One label per row of the design, from a column that the option `name` names or an array."""
    column = named_column(name, given, frame) if isinstance(given, str) else given
    labels = given_labels(name, column, frame.n_rows)
    if design.kept is not None:
        labels = [labels[row] for row in design.kept]
    refuse_missing(name, labels)
    return labels


def _refuse_twins(design: Design | Gaps, codes: Ints, n_groups: int) -> None:
    """Raise for a column that says the same as the groups: it is constant in each of them."""
    for at, column in enumerate(design.schema.discrete):
        levels = design.codes[:, at]
        pairs = np.unique(np.column_stack([levels, codes]), axis=0)
        if len(pairs) == n_groups == len(np.unique(levels)):
            raise ParameterError(
                f"column {quoted(column.name)} tells the groups apart exactly, so it is constant "
                f"in each of them; give groups={quoted(column.name)}, or leave the column out."
            )
