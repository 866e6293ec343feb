"""Columns with gaps in -> those that are missing where another column has certain values.

A column has structural gaps when at least 99 % of the rows with certain values of another column
lack it, and at most half of all others: a cause of death where nobody died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import Finding, Severity
from mixedgm.base.printable import few, literal, quoted, rows
from mixedgm.model.nodes import Mask
from mixedgm.table.schema import Level, drop_line, types_line

Counts = NDArray[np.int64]
Pair = frozenset[str]

_FEWEST_ROWS = 20  # with such values, and without
_ROWS_PER_LEVEL = 5  # fewer are no evidence about a level
_PRESENT = 0.01  # share of the rows with such values that may have the column
_ELSEWHERE = 0.5  # share of all others that may lack it
_CHANCE = 1e-12  # that gaps at random would look like that
_MOST_WORK = 5e9  # multiplications
_MOST_SHOWN = 5
_MOST_PAIRS = 20


@dataclass(frozen=True)
class StructuralGap:
    """A column that is missing where another has certain values.

    Parameters
    ----------
    column, by : str
        The column with gaps, and the one that decides about them.
    values : tuple
        Values of `by` where the column is missing.
    other : bool
        Whether it is missing at all values but these.
    n_missing, n_rows : int
        Rows with such values that lack the column, and all of them.
    n_missing_elsewhere, n_elsewhere : int
        Numbers of all other rows: those that lack the column, and all of them.
    lone : bool
        Whether the other rows that know `by` have one and the same value of it.
    """

    column: str
    by: str
    values: tuple[Any, ...]
    other: bool
    n_missing: int
    n_rows: int
    n_missing_elsewhere: int
    n_elsewhere: int
    lone: bool

    @property
    def pair(self) -> Pair:
        """Names of both columns."""
        return frozenset((self.column, self.by))

    @property
    def pattern(self) -> tuple[Any, ...]:
        """All but the column: the same for columns that are missing together."""
        return (self.by, *map(str, self.values), self.other, self.n_missing, self.n_elsewhere)


def named_pairs(pairs: object) -> set[Pair]:
    """Return the pairs of columns that an option such as `forbid` names, and nothing else."""
    if not isinstance(pairs, Iterable) or isinstance(pairs, str):
        return set()
    listed = (pair for pair in pairs if isinstance(pair, tuple | list) and len(pair) == 2)
    return {frozenset(map(str, pair)) for pair in listed}


# -- the rule --------------------------------------------------------------------------------------


def structural_gaps(
    sample: Mapping[str, NDArray[Any]],
    levels: Mapping[str, Sequence[Level]],
    counts: Callable[[str, str, Sequence[Any] | None], Counts],
) -> list[StructuralGap]:
    """Return all pairs of a column with structural gaps and the column that decides about them.

    `sample` has some rows: codes of the columns with `levels`, -1 where missing, and other columns
    as numbers.  Its candidates are confirmed by `counts` of all rows; see `gap_counts`.
    """
    missing = {name: _missing(values) for name, values in sample.items()}
    gappy = {name: gap for name, gap in missing.items() if gap.any() and not gap.all()}
    if not gappy:
        return []
    work = sum(len(each) for each in levels.values()) + 5 * len(sample)
    stride = int(np.ceil(len(next(iter(sample.values()))) * work * len(gappy) / _MOST_WORK))
    gaps = np.column_stack([gap[::stride] for gap in gappy.values()]).astype(np.float32)
    found = []
    for by, values in sample.items():
        marks = None if by in levels else _landmarks(values)
        size = len(levels[by]) if marks is None else len(marks) + 1
        codes = _as_codes(values[::stride], marks)
        at = (codes[:, None] == np.arange(-1, size)).astype(np.float32)
        n_gaps, n_rows = at.T @ gaps, at.sum(axis=0)
        for k, column in enumerate(gappy):
            some = np.column_stack([n_rows - n_gaps[:, k], n_gaps[:, k]]).astype(np.int64)
            if column == by or _where_missing(some, loose=True) is None:
                continue
            every = counts(by, column, marks)
            where = _where_missing(every)
            if where is not None:
                shown = list(levels[by]) if marks is None else [None, *marks]
                found.append(_described(column, by, shown, where, every))
    return found


def gap_counts(values: NDArray[Any], marks: Sequence[Any] | None, size: int, gap: Mask) -> Counts:
    """Return (1 + size, 2) rows that have and that lack a column, by values of another one.

    The first row counts unknown values.  The values are codes below `size`; or they are numbers,
    and the codes count other numbers than `marks` first, then these.
    """
    codes = _as_codes(values, marks) + 1
    return np.bincount(2 * codes + gap, minlength=2 + 2 * size).reshape(-1, 2).astype(np.int64)


def _missing(values: NDArray[Any]) -> Mask:
    return np.asarray(np.isnan(values) if values.dtype.kind == "f" else values < 0)


def _landmarks(numbers: NDArray[Any]) -> list[float]:
    """Return values that may stand for something: zero, the commonest, smallest and largest."""
    distinct, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    if not len(distinct):
        return []
    special = {0.0, float(distinct[np.argmax(counts)]), float(distinct[0]), float(distinct[-1])}
    often = dict(zip(distinct.tolist(), counts.tolist(), strict=True))
    return sorted(value for value in special if often.get(value, 0) >= _ROWS_PER_LEVEL)


def _as_codes(values: NDArray[Any], marks: Sequence[Any] | None) -> NDArray[np.int64]:
    """Return -1 where a value is missing, else its code."""
    if marks is None:
        return values.astype(np.int64)
    codes = np.zeros(len(values), dtype=np.int64)
    for at, mark in enumerate(marks, 1):
        codes[values == mark] = at
    codes[np.isnan(values)] = -1
    return codes


def _where_missing(counts: Counts, *, loose: bool = False) -> Mask | None:
    """Return the values at which a column is missing, by the rule; None where it does not hold.

    In a sample, fewer rows and more exceptions are enough.
    """
    total = counts.sum(axis=1)
    where = (2 * counts[:, 1] > total) & (total >= (1 if loose else _ROWS_PER_LEVEL))
    where[0] = False  # an unknown value decides nothing
    (present, missing), (known, gaps) = counts[where].sum(axis=0), counts[~where].sum(axis=0)
    inside, elsewhere = present + missing, known + gaps
    fewest = _ROWS_PER_LEVEL if loose else _FEWEST_ROWS
    both = known - counts[0, 0]  # rows that have both columns
    if min(inside, both) < fewest or gaps > _ELSEWHERE * elsewhere:
        return None
    if present > (2 if loose else 1) * _PRESENT * inside + (1 if loose else 0):
        return None
    by_chance = missing * np.log(max(gaps, 1) / elsewhere)
    return where if loose or by_chance < np.log(_CHANCE) else None


def _described(
    column: str, by: str, shown: Sequence[Any], where: Mask, counts: Counts
) -> StructuralGap:
    inside, elsewhere = counts[where].sum(axis=0), counts[~where].sum(axis=0)
    chosen = np.flatnonzero(where[1:])
    other = 0 in chosen and shown[0] is None  # numbers that are no landmarks
    if other:
        chosen = np.flatnonzero(~where[1:])
    at_others = ~where[1:] & (counts[1:].sum(axis=1) > 0)
    lone = np.count_nonzero(at_others) == 1 and shown[int(np.argmax(at_others))] is not None
    return StructuralGap(
        column,
        by,
        tuple(shown[k] for k in chosen.tolist()),
        other,
        n_missing=int(inside[1]),
        n_rows=int(inside.sum()),
        n_missing_elsewhere=int(elsewhere[1]),
        n_elsewhere=int(elsewhere.sum()),
        lone=lone,
    )


# -- words -----------------------------------------------------------------------------------------


def gap_findings(
    gaps: Iterable[StructuralGap], fills: Mapping[str, str], library: str, missing: str
) -> list[Finding]:
    """Return one finding about the columns that are missing at the same values of another.

    `fills` says what could stand in the gaps of a column: "level", "zero" or nothing.
    """
    together: dict[tuple[Any, ...], list[StructuralGap]] = {}
    for gap in gaps:
        together.setdefault((*gap.pattern, fills[gap.column]), []).append(gap)
    findings = []
    for alike in together.values():
        first, names = alike[0], [gap.column for gap in alike]
        who = "it seems" if len(names) == 1 else "they seem"
        elsewhere = _of(first.n_missing_elsewhere, first.n_elsewhere, "other ")
        what = (
            f"missing in {_of(first.n_missing, first.n_rows)} with {_values(first)} and in "
            f"{elsewhere}, so {who} to have no value there"
        )
        what = what if len(names) == 1 else f"columns {few(names)}: {what}"
        pairs = ", ".join(f"({literal(n)}, {literal(first.by)})" for n in names[:_MOST_PAIRS])
        told = f'forbid=[{pairs}] with missing="model" if the values exist but are not known'
        ways = [_filled(names, fills[names[0]], library), drop_line(*names)]
        ways += [_other_rows(first, library), told]
        column, severity = names[0] if len(names) == 1 else None, _severity(missing)
        remedy = "; or ".join(way for way in ways if way)
        findings.append(Finding(column, what, remedy, severity, structural=True))
    return findings


def _severity(missing: str) -> Severity:
    return "warning" if missing == "drop" else "error"


def _of(n: int, total: int, which: str = "") -> str:
    """Return "all 5,705 rows", "12 of 1,204 other rows" or "none of 1,204 other rows"."""
    noun = rows(total).replace(" row", f" {which}row")
    return f"all {noun}" if n == total else f"{f'{n:,}' if n else 'none'} of {noun}"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return literal(value)
    return str(value) if isinstance(value, bool) else f"{value:.15g}"


def _values(gap: StructuralGap) -> str:
    if gap.other:
        return f"another {quoted(gap.by)} than {few(gap.values, _MOST_SHOWN, _shown)}"
    between = " = " if len(gap.values) == 1 else " in "
    return f"{quoted(gap.by)}{between}{few(gap.values, _MOST_SHOWN, _shown)}"


def _filled(names: Sequence[str], fill: str, library: str) -> str:
    """Return the line that fills gaps with a level, or with the zeros of a hurdle column."""
    if not fill:
        return ""
    listed = ", ".join(literal(name) for name in names)
    cells = f"table[{listed}]" if len(names) == 1 else f"table[[{listed}]]"
    if library == "pandas":
        way = ".fillna(0)" if fill == "zero" else '.astype(object).fillna("none").astype(str)'
        line = f"{cells} = {cells}{way}"
    elif library == "polars":
        way = ".fill_null(0)" if fill == "zero" else '.cast(pl.String).fill_null("none")'
        line = f"table = table.with_columns(pl.col({listed}){way})"
    else:
        line = "0 in its gaps" if fill == "zero" else 'a value such as "none" in its gaps'
    own = "a level of its own" if len(names) == 1 else "levels of their own"
    return f"{line} with {types_line(names, 'hurdle')}" if fill == "zero" else f"{line} gives {own}"


def _other_rows(gap: StructuralGap, library: str) -> str:
    """Return the line that takes the rows which can have the column."""
    rest = f"fit the {gap.n_elsewhere:,} other rows alone"
    if len(gap.values) > _MOST_SHOWN or library not in ("pandas", "polars"):
        return rest
    by, values = literal(gap.by), ", ".join(map(_shown, gap.values))
    sign = "" if gap.other else "~"
    if library == "pandas":
        line = f"table[{sign}table[{by}].isin([{values}])]"
        line += f".drop(columns={by})" if gap.lone else ""
    else:
        line = f"table.filter({sign}pl.col({by}).is_in([{values}]))"
        line += f".drop({by})" if gap.lone else ""
    return f"{rest}: {line}"
