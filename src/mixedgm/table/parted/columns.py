"""One part of a table -> its columns, and summaries that can be added up and asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import Finding
from mixedgm.base.parts.contract import Parts, Sums
from mixedgm.families import KINDS
from mixedgm.model.nodes import Floats, Mask
from mixedgm.table.checks.columns import family_finding, is_numeric
from mixedgm.table.missing import WeightSummary
from mixedgm.table.read import as_frame
from mixedgm.table.schema import Kind, Level
from mixedgm.table.values import FEW, SAMPLE, Factor, Family, read_values

MOST_LEVELS = 100_000
"""Of text: beyond, its levels are not collected, and the column is left out."""
_MOST_DISTINCT = 1000
_BINS = 2**16


@dataclass(frozen=True)
class PartPlan:
    """How parts are read; the same for all of them."""

    names: tuple[str, ...]
    """Of the columns that are inspected."""
    kinds: Mapping[str, Kind]
    """That the user has declared."""
    weights: str | None = None
    """The column with the frequency of every row."""
    ignored: tuple[str, ...] = ()
    """Columns that are not read at all."""
    most_levels: int = MOST_LEVELS


@dataclass(frozen=True, eq=False)
class NumberSummary:
    """Some numbers of a column, none of them missing.

    Examples
    --------
    >>> one, other = NumberSummary.of(np.array([1.0, 2.0])), NumberSummary.of(np.array([6.0]))
    >>> one.merged(other).mean, one.merged(other).high
    (3.0, 6.0)
    """

    count: int = 0
    n_infinite: int = 0
    low: float = np.inf
    high: float = -np.inf
    n_low: int = 0
    n_high: int = 0
    """How often the smallest and the largest occur."""
    mean: float = 0.0
    powers: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Sums of the second, third and fourth powers of what is left without the mean."""
    whole: bool = True
    values: Floats | None = field(default_factory=lambda: np.zeros(0))
    """The distinct values in order, or None when they are too many."""
    counts: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    """How often each of these occurs."""

    @classmethod
    def of(cls, numbers: Floats) -> NumberSummary:
        """Summarise an array."""
        if not len(numbers):
            return cls()
        infinite = int(np.count_nonzero(np.isinf(numbers)))
        if infinite:  # an error, whatever the others are
            return cls(len(numbers), infinite, float(numbers.min()), float(numbers.max()))
        low, high = float(numbers.min()), float(numbers.max())
        whole = bool((numbers == np.floor(numbers)).all())
        with np.errstate(over="ignore", invalid="ignore"):  # numbers that are refused later
            mean = float(numbers.mean())
            centred = numbers - mean
            squares = centred * centred
            third = float((squares * centred).sum())
            powers = (float(squares.sum()), third, float((squares * squares).sum()))
        n_low, n_high = (int(np.count_nonzero(numbers == end)) for end in (low, high))
        values, counts = _distinct(numbers, low, high, whole)
        size = len(numbers)
        return cls(size, 0, low, high, n_low, n_high, mean, powers, whole, values, counts)

    def merged(self, other: NumberSummary) -> NumberSummary:
        """Return the summary of these numbers and others behind them."""
        if not self.count or not other.count:
            return self if self.count else other
        n_low = sum(s.n_low for s in (self, other) if s.low == min(self.low, other.low))
        n_high = sum(s.n_high for s in (self, other) if s.high == max(self.high, other.high))
        mean, powers = self._merged_powers(other)
        values, counts = self._merged_values(other)
        return NumberSummary(
            self.count + other.count,
            self.n_infinite + other.n_infinite,
            min(self.low, other.low),
            max(self.high, other.high),
            n_low,
            n_high,
            mean,
            powers,
            self.whole and other.whole,
            values,
            counts,
        )

    def _merged_powers(self, other: NumberSummary) -> tuple[float, tuple[float, float, float]]:
        """Mean and sums of powers of both (Pébay 2008)."""
        a, b = float(self.count), float(other.count)
        n, delta = a + b, other.mean - self.mean
        (a2, a3, a4), (b2, b3, b4) = self.powers, other.powers
        step = delta / n
        square = step * step  # never a power, which raises where a product is infinite
        second = a2 + b2 + delta * step * a * b
        third = a3 + b3 + delta * square * a * b * (a - b) + 3.0 * step * (a * b2 - b * a2)
        fourth = a4 + b4 + delta * square * step * a * b * (a * a - a * b + b * b)
        fourth += 6.0 * square * (a * a * b2 + b * b * a2) + 4.0 * step * (a * b3 - b * a3)
        return self.mean + step * b, (second, third, fourth)

    def _merged_values(self, other: NumberSummary) -> tuple[Floats | None, NDArray[np.intp]]:
        nothing = np.zeros(0, dtype=np.intp)
        if self.values is None or other.values is None:
            return None, nothing
        values, at = np.unique(np.concatenate([self.values, other.values]), return_inverse=True)
        if len(values) > _MOST_DISTINCT:
            return None, nothing
        counts = np.bincount(at, np.concatenate([self.counts, other.counts]), len(values))
        return values, counts.astype(np.intp)


def _distinct(
    numbers: Floats, low: float, high: float, whole: bool
) -> tuple[Floats | None, NDArray[np.intp]]:
    """Return distinct numbers with their counts; None for too many."""
    if whole and high - low < _BINS:
        counts = np.bincount((numbers - low).astype(np.intp))
        at = np.flatnonzero(counts)
        values, counts = low + at.astype(np.float64), counts[at]
    elif len(np.unique(numbers[:4096])) > _MOST_DISTINCT:
        return None, np.zeros(0, dtype=np.intp)
    else:
        values, counts = np.unique(numbers, return_counts=True)
    if len(values) > _MOST_DISTINCT:
        return None, np.zeros(0, dtype=np.intp)
    return values, counts


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """What a part says about one column; rows of weight zero are left out."""

    family: Family
    dtype: str
    whole: bool
    n_rows: int
    n_missing: int
    numbers: NumberSummary | None = None
    amounts: NumberSummary | None = None
    """Of the numbers that are not zero, where the column was declared as a hurdle column."""
    levels: tuple[Level, ...] | None = None
    counts: tuple[int, ...] = ()
    """How often each level occurs."""
    ordered: bool = False
    too_many: bool = False
    """Whether it has more levels than are collected."""
    finding: Finding | None = None
    """Why the values of this part cannot be used."""
    conflict: tuple[Family, Family] | None = None
    """Families that do not go together."""

    def merged(
        self, other: ColumnSummary, *, by_text: bool, most_levels: int = MOST_LEVELS
    ) -> ColumnSummary:
        """Return the summary of this part and another behind it.

        Levels are sorted `by_text`, or stay in the order in which they come.
        """
        together = replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            n_missing=self.n_missing + other.n_missing,
            finding=self.finding or other.finding,
            conflict=self.conflict or other.conflict,
        )
        if "empty" in (self.family, other.family):
            known = other if self.family == "empty" else self
            return replace(
                known,
                n_rows=together.n_rows,
                n_missing=together.n_missing,
                finding=together.finding,
                conflict=together.conflict,
            )
        if self.family != other.family and {self.family, other.family} != {"text", "category"}:
            return replace(together, conflict=together.conflict or (self.family, other.family))
        if self.numbers is not None and other.numbers is not None:
            together = replace(together, numbers=self.numbers.merged(other.numbers))
        if self.amounts is not None and other.amounts is not None:
            together = replace(together, amounts=self.amounts.merged(other.amounts))
        family: Family = self.family if self.family == other.family else "text"
        together = replace(
            together,
            family=family,
            dtype=_common_type(self.dtype, other.dtype),
            whole=self.whole and other.whole,
        )
        if self.levels is None or other.levels is None:
            too_many = self.too_many or other.too_many
            return replace(together, levels=None, counts=(), too_many=too_many)
        sort = family != "category" or by_text
        out = self._with_levels(together, other, sort=sort)
        if len(out.levels or ()) <= most_levels:
            return out
        return replace(out, levels=None, counts=(), too_many=True)

    def _with_levels(
        self, together: ColumnSummary, other: ColumnSummary, *, sort: bool
    ) -> ColumnSummary:
        assert self.levels is not None
        assert other.levels is not None
        if self.levels == other.levels:
            counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
            return replace(together, counts=counts)
        by_level = dict(zip(self.levels, self.counts, strict=True))
        for level, count in zip(other.levels, other.counts, strict=True):
            by_level[level] = by_level.get(level, 0) + count
        levels = _sorted(by_level) if sort else list(by_level)
        return replace(
            together,
            levels=tuple(levels),
            counts=tuple(by_level[level] for level in levels),
            ordered=False,
        )


def _sorted(levels: Iterable[Any]) -> list[Any]:
    try:
        return sorted(levels)
    except TypeError:  # of several types, which is an error found elsewhere
        return sorted(levels, key=str)


def _common_type(first: str, second: str) -> str:
    """Return the name of a type that holds the values of both."""
    if first == second:
        return first
    try:
        return str(np.result_type(np.dtype(first), np.dtype(second)))
    except TypeError:
        return first


@dataclass(frozen=True, eq=False)
class PartSummary:
    """What a part says about its columns."""

    names: tuple[str, ...]
    n_read: int
    """Rows, those of weight zero included."""
    n_rows: int
    columns: Mapping[str, ColumnSummary]
    weights: WeightSummary | None = None


@dataclass(frozen=True, eq=False)
class RawPart:
    """The columns of a part before their kinds are known; rows of weight zero are left out."""

    columns: Mapping[str, NDArray[Any]]
    """Numbers, NaN where missing, or codes of the part's own levels, -1 where missing."""
    levels: Mapping[str, tuple[Level, ...]]
    """Of the columns that are codes."""
    weights: Floats | None
    n_rows: int
    summary: PartSummary

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        return sum(each.nbytes for each in self.columns.values())

    def numbers(self, name: str) -> Floats:
        """Return a column of numbers, NaN where missing."""
        if name not in self.columns:
            return np.full(self.n_rows, np.nan)
        return np.asarray(self.columns[name], dtype=np.float64)

    def codes(self, name: str, levels: Sequence[Level]) -> NDArray[np.int32]:
        """Return positions in these levels, -1 where a value is missing."""
        if name not in self.columns:
            return np.full(self.n_rows, -1, dtype=np.int32)
        values = self.columns[name]
        if name in self.levels:
            factor = Factor(values.astype(np.int32), self.levels[name])
            return factor.recoded(levels, -1)
        table = np.array([float(level) for level in levels])
        codes = np.searchsorted(table, values).astype(np.int32)
        codes[np.isnan(values)] = -1
        return codes

    def missing(self, name: str) -> Mask:
        """Return where a column has no value."""
        if name not in self.columns:
            return np.ones(self.n_rows, dtype=bool)
        values = self.columns[name]
        return np.asarray(values < 0 if name in self.levels else np.isnan(values))

    def complete(self, names: Collection[str]) -> Mask:
        """Return the rows that have a value of all these columns."""
        keep = np.ones(self.n_rows, dtype=bool)
        for name in names:
            keep &= ~self.missing(name)
        return keep


def read_part(native: object, plan: PartPlan, weights: Floats | None = None) -> RawPart:
    """Return the columns of a part; `weights` unless the plan names a column of them."""
    frame = as_frame(native)
    if plan.weights is not None and plan.weights in frame.positions:
        at = frame.positions[plan.weights]
        weights = _weights(read_values(plan.weights, frame.columns[at], frame.library))
    of_weights = None if weights is None else WeightSummary.of(weights)
    present = None
    if weights is not None and not (weights > 0.0).all():
        present = weights > 0.0
        weights = weights[present]
    n_rows = frame.n_rows if present is None else int(np.count_nonzero(present))
    columns: dict[str, NDArray[Any]] = {}
    levels: dict[str, tuple[Level, ...]] = {}
    summaries: dict[str, ColumnSummary] = {}
    for name in plan.names:
        if name not in frame.positions or name in plan.ignored:
            continue
        values = read_values(name, frame.columns[frame.positions[name]], frame.library)
        column = _read_column(values, plan, present, n_rows)
        summaries[name] = column.summary
        if column.values is not None:
            columns[name] = column.values
            if column.levels is not None:
                levels[name] = column.levels
    summary = PartSummary(frame.names, frame.n_rows, n_rows, summaries, of_weights)
    return RawPart(columns, levels, weights, n_rows, summary)


def _weights(values: Any) -> Floats:
    if values.family not in ("number", "boolean"):
        return np.full(len(values.column), np.nan)
    return np.asarray(values.numbers(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Column:
    summary: ColumnSummary
    values: NDArray[Any] | None = None
    levels: tuple[Level, ...] | None = None


def _read_column(values: Any, plan: PartPlan, present: Mask | None, n_rows: int) -> _Column:
    kind = plan.kinds.get(values.name)
    of_type = (values.family, values.dtype, values.whole, n_rows)
    if values.family == "empty" or not n_rows:
        # The type of a part without rows says what the column is, all the same.
        return _Column(ColumnSummary("empty", *of_type[1:], n_rows))
    if values.family in ("mixed", "other"):
        return _Column(ColumnSummary(*of_type, 0, finding=family_finding(values, kind)))
    some = slice(None) if present is None else present
    numbers, amounts = None, None
    of_numbers = kind is not None and not KINDS[kind].has_levels
    if of_numbers and values.family == "category" and not is_numeric(values):
        return _Column(ColumnSummary(*of_type, 0, finding=family_finding(values, kind)))
    if values.family == "number" or (of_numbers and is_numeric(values)):
        array = np.ascontiguousarray(values.numbers()[some])
        known = array[~np.isnan(array)]
        numbers = NumberSummary.of(known)
        if kind is not None and KINDS[kind].has_spike:
            amounts = NumberSummary.of(known[known != 0.0])
        if kind is None or of_numbers:
            missing = len(array) - len(known)
            return _Column(ColumnSummary(*of_type, missing, numbers, amounts), array)
    factor = values.factor()
    codes = factor.codes[some]
    missing = int(np.count_nonzero(codes < 0))
    if len(factor.levels) > plan.most_levels:
        return _Column(ColumnSummary(*of_type, missing, numbers, too_many=True))
    counts = tuple(np.bincount(codes[codes >= 0], minlength=len(factor.levels)).tolist())
    summary = ColumnSummary(*of_type, missing, numbers, None, factor.levels, counts, factor.ordered)
    return _Column(summary, codes.astype(_code_type(len(factor.levels))), factor.levels)


def _code_type(n_levels: int) -> type[np.int8] | type[np.int16] | type[np.int32]:
    if n_levels <= 2**7:
        return np.int8
    return np.int16 if n_levels <= 2**15 else np.int32


def merged_columns(
    summaries: Sequence[PartSummary], plan: PartPlan, *, by_text: bool
) -> dict[str, ColumnSummary]:
    """Return the summaries of all columns over all parts."""
    out: dict[str, ColumnSummary] = {}
    for part in summaries:
        for name in plan.names:
            if name not in part.columns:
                continue
            one, known = part.columns[name], out.get(name)
            if known is not None:
                one = known.merged(one, by_text=by_text, most_levels=plan.most_levels)
            out[name] = one
    return out


# -- part numbers ----------------------------------------------------------------------------------

_MOST_TALLIED = 2**24
_MOST_SHOWN = 1000


@dataclass(frozen=True, eq=False)
class PartedNumbers:
    """The numbers of a column, none of them missing, in parts."""

    name: str
    parts: Parts[RawPart]
    summary: NumberSummary
    """Of all parts."""
    counts: Sequence[int]
    """How many numbers every part has."""
    amounts: NumberSummary | None = None
    """Of those that are not zero, if known."""
    amount_counts: Sequence[int] = ()
    nonzero: bool = False
    """Whether only those that are not zero count."""

    @property
    def count(self) -> int:
        """How many there are."""
        return self.summary.count

    @property
    def n_infinite(self) -> int:
        """How many of them are infinite."""
        return self.summary.n_infinite

    @property
    def low(self) -> float:
        """The smallest."""
        return self.summary.low

    @property
    def high(self) -> float:
        """The largest."""
        return self.summary.high

    @property
    def mean(self) -> float:
        """Their mean."""
        return self.summary.mean

    @property
    def deviation(self) -> float:
        """Their standard deviation."""
        return float(np.sqrt(self.summary.powers[0] / self.count))

    @property
    def shape(self) -> tuple[float, float]:
        """Skewness and kurtosis."""
        second, third, fourth = (power / self.count for power in self.summary.powers)
        return third / second**1.5, fourth / second**2

    @property
    def without_zeros(self) -> PartedNumbers:
        """Those that are not zero."""
        amounts = self.amounts if self.amounts is not None else NumberSummary()
        return PartedNumbers(self.name, self.parts, amounts, self.amount_counts, nonzero=True)

    def distinct(self, most: int) -> Floats | None:
        """The distinct values in order, or None when there are more than `most`."""
        values = self.summary.values
        return values if values is not None and len(values) <= most else None

    def commonest(self) -> tuple[float, int]:
        """The commonest value of a sample, and how many values are distinct."""
        stride = max(1, self.count // SAMPLE)
        before = np.cumsum([0, *self.counts])[:-1]
        first = (-before % stride).tolist()
        common = (self.name, self.nonzero, stride)
        value, n_sampled = self.parts.combined(_mode, _sampled, *common, each=first)
        values = self.summary.values
        exact = n_sampled <= FEW and values is not None
        return value, len(values) if exact and values is not None else n_sampled

    def share(self, value: float) -> float:
        """The share of the numbers that are equal to a value."""
        known = {self.low: self.summary.n_low, self.high: self.summary.n_high}
        if value not in known:
            (known[value],) = self.parts.total(_equal, self.name, value)
        return known[value] / self.count

    def dense_whole(self) -> bool:
        """Whether all are whole, and all from the smallest to the third quartile occur.

        A column with a range of more than 16 million is not looked at.
        """
        if not self.summary.whole or self.high - self.low > min(self.count, _MOST_TALLIED):
            return False
        size = int(self.high - self.low) + 1
        (counts,) = self.parts.total(_tallied, self.name, self.nonzero, self.low, size)
        position = 0.75 * (self.count - 1)
        ends = np.searchsorted(
            np.cumsum(counts), [np.floor(position), np.ceil(position)], side="right"
        )
        quartile = ends[0] + (position - np.floor(position)) * (ends[1] - ends[0])
        return bool((counts[: int(np.ceil(quartile))] > 0).all())

    def count_rows(self) -> bool:
        """Whether they are whole numbers in the order of the rows, or a permutation of them."""
        before = np.cumsum([0, *self.counts])[:-1].tolist()
        common = (self.name, self.nonzero, self.low)
        if all(self.parts.map(_in_order, *common, each=before)):
            return True
        if not self.summary.whole or self.low not in (0.0, 1.0):
            return False
        (seen,) = self.parts.total(_seen, *common, self.count)
        return bool((seen > 0).all())

    def unfit(self, limit: float) -> list[tuple[int, Floats]]:
        """How many are negative, not whole, and above the limit; and which values are."""
        found = list(self.parts.map(_unfit, self.name, limit))
        return [
            (sum(n for n, _ in each), np.unique(np.concatenate([some for _, some in each])))
            for each in zip(*found, strict=True)
        ]

    def tally(self, largest: int) -> NDArray[np.intp]:
        """How often every whole number from 0 to the largest occurs."""
        (counts,) = self.parts.total(_tallied, self.name, self.nonzero, 0.0, largest + 1)
        return np.asarray(counts)


def _known(part: RawPart, name: str, nonzero: bool) -> Floats:
    numbers = part.numbers(name)
    return numbers[~np.isnan(numbers) & (numbers != 0.0 if nonzero else True)]


def _sampled(part: RawPart, name: str, nonzero: bool, stride: int, first: int) -> Floats:
    return _known(part, name, nonzero)[first::stride]


def _mode(samples: list[Floats]) -> tuple[float, int]:
    distinct, counts = np.unique(np.concatenate(samples), return_counts=True)
    return float(distinct[int(np.argmax(counts))]), len(distinct)


def _equal(part: RawPart, name: str, value: float) -> Sums:
    return (int(np.count_nonzero(part.numbers(name) == value)),)


def _tallied(part: RawPart, name: str, nonzero: bool, low: float, size: int) -> Sums:
    return (np.bincount((_known(part, name, nonzero) - low).astype(np.intp), minlength=size),)


def _in_order(part: RawPart, name: str, nonzero: bool, low: float, before: int) -> bool:
    numbers = _known(part, name, nonzero)
    return bool((numbers - low == before + np.arange(len(numbers))).all())


def _seen(part: RawPart, name: str, nonzero: bool, low: float, count: int) -> Sums:
    """Where whole numbers occur; counts may run over, and are then of no permutation anyway."""
    seen = np.zeros(count, dtype=np.uint8)
    seen[(_known(part, name, nonzero) - low).astype(np.intp)] = 1
    return (seen,)


def _unfit(part: RawPart, name: str, limit: float) -> list[tuple[int, Floats]]:
    numbers = _known(part, name, nonzero=False)
    bad = (numbers < 0.0, numbers != np.floor(numbers), numbers > limit)
    return [(int(np.count_nonzero(mask)), np.unique(numbers[mask])[:_MOST_SHOWN]) for mask in bad]
