"""A column of a table in parts -> `Numbers`, by its summary or by asking all parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.parts.contract import Parts, Sums
from mixedgm.table.numbers import FEW, SAMPLE
from mixedgm.table.part_columns import NumberSummary, RawPart

__all__ = ["PartedNumbers"]

Floats = NDArray[np.float64]

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
