"""The numbers of one column -> what checks ask about them: range, moments, distinct values."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["ArrayNumbers", "Numbers", "as_doubles", "as_numbers", "nearest_double"]

Floats = NDArray[np.float64]

SAMPLE = 10_000
"""Rows that are sorted to find a common value."""
FEW = 20
"""Number of distinct values in a sample up to which they are counted in all rows."""


def as_doubles(values: Any) -> Floats:
    """Return numbers as doubles; infinity stands for those that are beyond all doubles.

    Raises TypeError or ValueError for what is no number.

    Examples
    --------
    >>> as_doubles([1, 10**400]).tolist()
    [1.0, inf]
    """
    with np.errstate(over="ignore"):  # of long doubles
        try:
            return np.asarray(values, dtype=np.float64)
        except OverflowError:  # of whole numbers
            cells = np.asarray(values, dtype=object)
            doubles = [nearest_double(cell) for cell in cells.ravel()]
            return np.array(doubles, dtype=np.float64).reshape(cells.shape)


def nearest_double(value: Any) -> float:
    """Return the nearest double; infinity where a whole number is beyond all of them."""
    try:
        return float(value)
    except OverflowError:
        return float("-inf") if value < 0 else float("inf")


class Numbers(Protocol):
    """The numbers of a column, none of them missing, wherever they are."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def n_infinite(self) -> int:
        """How many of them are infinite."""

    @property
    def low(self) -> float:
        """The smallest."""

    @property
    def high(self) -> float:
        """The largest."""

    @property
    def mean(self) -> float:
        """Mean of the numbers."""

    @property
    def deviation(self) -> float:
        """Standard deviation of the numbers, with n below the fraction line."""

    @property
    def shape(self) -> tuple[float, float]:
        """Skewness and kurtosis, the third and the fourth standardised moment."""

    @property
    def without_zeros(self) -> Numbers:
        """Numbers that are not zero."""

    def distinct(self, most: int) -> Floats | None:
        """The distinct values in order, or None when there are more than `most`."""

    def commonest(self) -> tuple[float, int]:
        """The commonest value of a sample, and how many values are distinct.

        These are those of the sample, where it has more than 20.
        """

    def share(self, value: float) -> float:
        """The share of the numbers that are equal to a value."""

    def dense_whole(self) -> bool:
        """Whether all are whole, and all from the smallest to the third quartile occur."""

    def count_rows(self) -> bool:
        """Whether they are whole numbers in the order of the rows, or a permutation of them.

        The range is known to fit the number of rows.
        """

    def unfit(self, limit: float) -> list[tuple[int, Floats]]:
        """How many are negative, not whole, and above the limit; and which values are."""

    def tally(self, largest: int) -> NDArray[np.intp]:
        """How often every whole number from 0 to the largest occurs; there are no others."""


class ArrayNumbers:
    """The numbers of a column as an array.

    Examples
    --------
    >>> numbers = ArrayNumbers(np.array([3.0, 1.0, 2.0, 2.0]))
    >>> numbers.low, numbers.distinct(10).tolist(), numbers.share(2.0)
    (1.0, [1.0, 2.0, 3.0], 0.5)
    """

    def __init__(self, values: Floats) -> None:
        self.values = values

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.values)

    @property
    def n_infinite(self) -> int:
        """How many of them are infinite."""
        return int(np.count_nonzero(np.isinf(self.values)))

    @cached_property
    def low(self) -> float:
        """The smallest."""
        return float(self.values.min())

    @cached_property
    def high(self) -> float:
        """The largest."""
        return float(self.values.max())

    @property
    def mean(self) -> float:
        """Mean of the numbers."""
        return float(self.values.mean())

    @property
    def deviation(self) -> float:
        """Standard deviation of the numbers, with n below the fraction line."""
        return float(self.values.std())

    @property
    def shape(self) -> tuple[float, float]:
        """Skewness and kurtosis."""
        centred = (self.values - self.values.mean()) / (self.high - self.low)
        squares = centred * centred
        variance = float(squares.mean())
        skewness = float((squares * centred).mean()) / variance**1.5
        return skewness, float((squares * squares).mean()) / variance**2

    @property
    def without_zeros(self) -> ArrayNumbers:
        """Numbers that are not zero."""
        return ArrayNumbers(self.values[self.values != 0.0])

    def distinct(self, most: int) -> Floats | None:
        """The distinct values in order, or None when there are more than `most`."""
        # The first ones settle nearly every continuous column.
        if len(np.unique(self.values[:4096])) > most:
            return None
        distinct = np.unique(self.values)
        return distinct if len(distinct) <= most else None

    def commonest(self) -> tuple[float, int]:
        """The commonest value of a sample, and how many values are distinct."""
        some = self.values[:: max(1, self.count // SAMPLE)]
        distinct, counts = np.unique(some, return_counts=True)
        n_distinct = len(np.unique(self.values)) if len(distinct) <= FEW else len(distinct)
        return float(distinct[int(np.argmax(counts))]), n_distinct

    def share(self, value: float) -> float:
        """The share of the numbers that are equal to a value."""
        return float(np.count_nonzero(self.values == value)) / self.count

    def dense_whole(self) -> bool:
        """Whether all are whole, and all from the smallest to the third quartile occur."""
        numbers, low, high = self.values, self.low, float(np.quantile(self.values, 0.75))
        if high - low > len(numbers) or not bool((numbers == np.floor(numbers)).all()):
            return False
        return bool(np.isin(np.arange(low, high), numbers).all())

    def count_rows(self) -> bool:
        """Whether they are whole numbers in the order of the rows, or a permutation of them."""
        steps = self.values - self.low
        if bool((steps == np.arange(self.count)).all()):
            return True
        whole = self.low in (0.0, 1.0) and bool((steps == np.floor(steps)).all())
        return whole and bool(np.bincount(steps.astype(np.intp)).max() <= 1)

    def unfit(self, limit: float) -> list[tuple[int, Floats]]:
        """How many are negative, not whole, and above the limit; and which values are."""
        numbers = self.values
        bad = (numbers < 0.0, numbers != np.floor(numbers), numbers > limit)
        return [(int(np.count_nonzero(mask)), np.unique(numbers[mask])) for mask in bad]

    def tally(self, largest: int) -> NDArray[np.intp]:
        """How often every whole number from 0 to the largest occurs."""
        return np.bincount(self.values.astype(np.int64), minlength=largest + 1)


def as_numbers(numbers: Numbers | Floats) -> Numbers:
    """Return an array as numbers that can be asked."""
    return ArrayNumbers(numbers) if isinstance(numbers, np.ndarray) else numbers
