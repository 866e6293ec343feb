"""The values of one column in -> findings: infinite, constant, unused; skew, tails and spikes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import Finding
from mixedgm.printable import few, literal, number_of, quoted, rows
from mixedgm.table.schema import drop_line, types_line
from mixedgm.table.values import Factor

__all__ = [
    "Shape",
    "broken",
    "closeness_finding",
    "infinite_finding",
    "level_findings",
    "shape_findings",
    "shape_of",
    "size_finding",
    "spread_finding",
]

Floats = NDArray[np.float64]

# The product of two precisions is a fourth power of the units, and has to be a double.
_HUGE = 1e75
_TINY = 1e-75
# Below this ratio of spread to size, most information in a column is lost to rounding.
_CLOSE = 1e-12

# Limits of what is not normal about a distribution.
_FEWEST_ROWS = 20
_SAMPLE = 10_000  # rows that are sorted to find a common value
_SKEWED, _VERY_SKEWED = 1.0, 3.0
_HEAVY = 4.0  # excess kurtosis; that of Laplace's distribution is 3
_SPIKE, _BOUND = 0.10, 0.05
_MOSTLY = 0.50
_FEW = 20  # distinct values
_MOST = 5  # columns named in one note


def infinite_finding(name: str, numbers: Floats) -> Finding | None:
    """Return an error that counts infinite values, or None."""
    count = int(np.count_nonzero(np.isinf(numbers)))
    if not count:
        return None
    what = f"{number_of(count, 'infinite value')} (inf or -inf)"
    return Finding(name, what, "replace them by finite or missing values")


def size_finding(name: str, numbers: Floats) -> Finding | None:
    """Return an error when finite numbers are so large that answers would not be finite."""
    largest = float(np.abs(numbers).max(initial=0.0, where=~np.isnan(numbers)))
    if largest <= _HUGE or np.isinf(largest):
        return None
    what = f"its values, up to {largest:g} in size, are too large for double precision"
    return Finding(name, what, "look for wrong units, or replace such values by missing ones")


def spread_finding(name: str, numbers: Floats) -> Finding | None:
    """Return an error when finite numbers do not vary, or vary beyond floating point."""
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        what = f"it is constant: {low:.15g} in {_all_rows(len(numbers))}"
        return Finding(name, what, drop_line(name))
    largest = max(abs(low), abs(high))
    if largest > _HUGE or high - low < _TINY:
        size = "large" if largest > _HUGE else "close together"
        what = f"its values, from {low:g} to {high:g}, are too {size} for double precision"
        return Finding(name, what, "measure it in another unit")
    return None


def closeness_finding(name: str, numbers: Floats) -> Finding | None:
    """Return an error when the numbers of a continuous column hardly differ for their size."""
    mean, deviation = float(numbers.mean()), float(numbers.std())
    if deviation > _CLOSE * abs(mean):
        return None
    what = (
        f"its values, with mean {mean:g} and standard deviation {deviation:.2g}, are too close "
        "together for double precision"
    )
    return Finding(name, what, "subtract a constant from it first, for example its smallest value")


def _all_rows(count: int) -> str:
    one = "the only row that has a value"
    return one if count == 1 else f"all {count:,} rows that have a value"


def broken(text: object) -> bool:
    """Return whether a text has half of a character, which no file or library accepts."""
    return isinstance(text, str) and any("\ud800" <= each <= "\udfff" for each in text)


def level_findings(name: str, factor: Factor, counts: NDArray[np.intp]) -> list[Finding]:
    """Return an error for a column with one level in use, a warning for levels without rows."""
    used = np.flatnonzero(counts)
    if len(used) == 1:
        only = factor.levels[int(used[0])]
        what = f"it is constant: {quoted(only)} in {_all_rows(int(counts.sum()))}"
        return [Finding(name, what, drop_line(name))]
    infinite = [level for level in factor.levels if level in (np.inf, -np.inf)]
    if infinite:
        what = f"an infinite number is one of its levels: {quoted(infinite[0])}"
        return [Finding(name, what, "replace it by a missing value")]
    damaged = [(level, int(counts[at])) for at, level in enumerate(factor.levels) if broken(level)]
    if damaged:
        some = ", ".join(f"{quoted(level)} ({rows(n)})" for level, n in damaged[:5])
        what = f"text that is not valid Unicode, half of a character: {some}"
        return [Finding(name, what, "repair the text, for example by reading its file as UTF-8")]
    names = [str(level) for level in factor.levels]
    if len(set(names)) < len(names):
        what = f"two of its levels read {quoted(Counter(names).most_common(1)[0][0])}"
        return [Finding(name, what, "give each level its own name")]
    unused = [level for level, n in zip(factor.levels, counts, strict=True) if not n]
    if not unused:
        return []
    what = f"{'level' if len(unused) == 1 else 'levels'} without rows: {few(unused)}"
    return [Finding(name, what, "declare only levels that occur", "warning")]


# -- shapes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """What is not normal about the distribution of one column."""

    name: str
    skewness: float
    excess_kurtosis: float  # the fourth standardised moment less 3: 0 for a normal column
    common: float  # the value that occurs most often
    share: float  # of the rows that have the common value
    at_bound: str  # "smallest" or "largest" when the common value is that, else empty
    n_distinct: int  # of a sample when there are many
    n_rows: int
    settled: bool = False  # whether few distinct values are known to be meant as numbers, or not


def shape_of(name: str, numbers: Floats, *, settled: bool = False) -> Shape | None:
    """Describe the distribution of one column; None with fewer than 20 values.

    The numbers are finite, none of them is missing, and they are not all equal.

    Examples
    --------
    >>> shape = shape_of("hours", np.repeat([0.0, 1.0, 8.0], [70, 20, 10]))
    >>> shape.common, shape.share, shape.at_bound
    (0.0, 0.7, 'smallest')
    """
    if len(numbers) < _FEWEST_ROWS:
        return None
    n_rows = len(numbers)
    low, high = float(numbers.min()), float(numbers.max())
    centred = (numbers - numbers.mean()) / (high - low)
    squares = centred * centred
    variance = float(squares.mean())
    skewness = float((squares * centred).mean()) / variance**1.5
    kurtosis = float((squares * squares).mean()) / variance**2
    some = numbers[:: max(1, n_rows // _SAMPLE)]
    distinct, counts = np.unique(some, return_counts=True)
    n_distinct = len(np.unique(numbers)) if len(distinct) <= _FEW else len(distinct)
    candidates = {float(distinct[int(np.argmax(counts))]), low, high}
    shares = {value: float(np.count_nonzero(numbers == value)) / n_rows for value in candidates}
    # A pile at a bound comes first: it matters more than a larger one inside the range.
    common = max(shares, key=shares.__getitem__)
    if shares[common] <= _SPIKE:
        common = max((low, high), key=shares.__getitem__)
    bound = {low: "smallest", high: "largest"}.get(common, "")
    return Shape(
        name, skewness, kurtosis - 3, common, shares[common], bound, n_distinct, n_rows, settled
    )


def shape_findings(shapes: Sequence[Shape]) -> list[Finding]:
    """Return at most four notes: skew, heavy tails, common values, few distinct values.

    Each lists the columns without a transform that it is about, the worst first.
    """
    skewed = [s for s in shapes if abs(s.skewness) > _SKEWED]
    heavy = [s for s in shapes if s.excess_kurtosis > _HEAVY and abs(s.skewness) <= _SKEWED]
    piled = [s for s in shapes if s.share > (_BOUND if s.at_bound else _SPIKE)]
    piled = [s for s in piled if s.n_distinct > _FEW]
    rounded = [s for s in shapes if not s.settled and 2 < s.n_distinct <= _FEW]
    rounded = [s for s in rounded if s.n_rows >= 10 * s.n_distinct]
    notes = (
        _note(
            sorted(skewed, key=lambda s: -abs(s.skewness)),
            ("is skewed, not normal", "are skewed, not normal"),
            lambda s: f"skewness {s.skewness:.1f}",
            _transform_line(skewed),
            strong=any(abs(s.skewness) > _VERY_SKEWED for s in skewed),
        ),
        _note(
            sorted(heavy, key=lambda s: -s.excess_kurtosis),
            ("has heavy tails", "have heavy tails"),
            lambda s: f"kurtosis {s.excess_kurtosis + 3:.1f}; 3 is normal",
            _transform_line(heavy),
        ),
        _note(
            sorted(piled, key=lambda s: -s.share),
            ("has one common value", "have one common value"),
            lambda s: (
                f"{s.common:.6g}{f', its {s.at_bound} value,' if s.at_bound else ''} in "
                f"{s.share:.0%} of the rows"
            ),
            "make a category of such a column, for example this value or not; a transform leaves "
            "the spike",
            strong=any(s.share > _MOSTLY for s in piled),
        ),
        _note(
            sorted(rounded, key=lambda s: s.n_distinct),
            ("has few distinct values for a number", "have few distinct values for numbers"),
            lambda s: f"{s.n_distinct} in {s.n_rows:,} rows",
            ", ".join(types_line(s.name, "categorical") for s in rounded[:1]),
        ),
    )
    return [note for note in notes if note is not None]


def _note(
    shapes: Sequence[Shape],
    phrases: tuple[str, str],
    detail: Callable[[Shape], str],
    remedy: str,
    *,
    strong: bool = False,
) -> Finding | None:
    """Return one note about all these columns, the first of them by name."""
    if not shapes:
        return None
    if len(shapes) == 1:
        what = f"{phrases[0].removeprefix('is ')} ({detail(shapes[0])})"
        return Finding(shapes[0].name, what, remedy, "note", strong=strong)
    listed = few(shapes, _MOST, lambda shape: f"{quoted(shape.name)} ({detail(shape)})")
    what = f"{len(shapes):,} columns {phrases[1]}: {listed}"
    return Finding(None, what, remedy, "note", strong=strong)


def _transform_line(shapes: Sequence[Shape]) -> str:
    """Return the option that makes the columns normal, as the user would write it."""
    if len(shapes) > _MOST:
        return 'transforms="nonparanormal", for all columns'
    names = (literal(shape.name) for shape in shapes)
    return "transforms={" + ", ".join(f'{name}: "nonparanormal"' for name in names) + "}"
