"""A column or an array of labels -> Groups: the group of each row, and which rows may swap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixedgm.errors import ParameterError, TableError, near_matches
from mixedgm.model.layout import Ints
from mixedgm.printable import quoted
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps
from mixedgm.table.read import Frame

_FEWEST = 2


@dataclass(frozen=True, eq=False)
class Groups:
    """The rows of a design in groups."""

    labels: tuple[Any, ...]  # one per group, sorted; as the user gave them
    codes: Ints  # (n,) number of the group of every row
    blocks: Ints | None = None  # (n,) of the block; labels are shuffled within blocks only

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def names(self) -> tuple[str, ...]:
        """The labels as text."""
        return tuple(str(label) for label in self.labels)

    def rows(self, group: int) -> Ints:
        """Positions of the rows of one group."""
        return np.flatnonzero(self.codes == group)


def without_labels(frame: Frame, groups: Any, blocks: Any) -> Frame:
    """The frame without the columns that `groups` and `blocks` name."""
    given = {"groups": groups, "blocks": blocks}
    named = {name: which for name, which in given.items() if isinstance(which, str)}
    for name, which in named.items():
        _require_column(name, which, frame)
    left = [at for at, name in enumerate(frame.names) if name not in named.values()]
    return Frame(
        tuple(frame.names[at] for at in left),
        tuple(frame.columns[at] for at in left),
        frame.n_rows,
        frame.library,
        tuple(frame.labels[at] for at in left) if frame.labels else (),
    )


def read_groups(frame: Frame, groups: Any, blocks: Any, design: Design | Gaps) -> Groups:
    """Number the groups, and the blocks where there are some; rows that were left out are too."""
    labels, codes = _numbered(row_labels("groups", groups, frame, design))
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
    if blocks is None:
        return Groups(labels, codes)
    _, block = _numbered(row_labels("blocks", blocks, frame, design))
    if len(np.unique(np.column_stack([block, codes]), axis=0)) == block.max() + 1:
        raise ParameterError(
            "every block has rows of one group only, so that no label can change its place; "
            "give blocks in which groups meet, or none."
        )
    return Groups(labels, codes, block)


def _require_column(option: str, name: str, frame: Frame) -> None:
    if name not in frame.positions:
        hint = near_matches(name, frame.names)
        raise ParameterError(f"{option} names {quoted(name)}, which is not a column; {hint}")


def row_labels(name: str, given: Any, frame: Frame, design: Design | Gaps) -> list[Any]:
    """One label per row of the design, from a column that the option `name` names or an array."""
    column: Any = given
    if isinstance(given, str):
        _require_column(name, given, frame)
        column = frame.columns[frame.positions[given]]
    if hasattr(column, "to_list"):  # of pandas, polars and narwhals; types stay as they are
        labels = column.to_list()
    else:
        labels = column.to_pylist() if hasattr(column, "to_pylist") else np.asarray(column).tolist()
    if not isinstance(labels, list) or len(labels) != frame.n_rows:
        count = len(labels) if isinstance(labels, list) else "no"
        raise ParameterError(
            f"{name} must have one label per row. Got {count} labels for {frame.n_rows:,} rows."
        )
    if design.kept is not None:
        labels = [labels[row] for row in design.kept]
    missing = sum(_is_missing(label) for label in labels)
    if missing:
        raise TableError(
            f"{name} has {missing} missing label{'' if missing == 1 else 's'}; every row needs "
            "one. Leave these rows out, or give them a label of their own."
        )
    return labels


def _is_missing(label: Any) -> bool:
    # pandas' own missing values do not even equal themselves.
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)


def _numbered(labels: Sequence[Any]) -> tuple[tuple[Any, ...], Ints]:
    """Different labels in sorted order, so that the order of the rows does not matter."""
    distinct = set(labels)
    try:
        ordered = sorted(distinct)
    except TypeError:
        ordered = sorted(distinct, key=str)
    number = {label: at for at, label in enumerate(ordered)}
    return tuple(ordered), np.array([number[label] for label in labels], dtype=np.int64)


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
