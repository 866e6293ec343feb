"""The values of one column, or weights, in -> findings about infinite, constant and unused ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.errors import Finding
from mixedgm.printable import few, quoted
from mixedgm.table.values import Factor
from mixedgm.table.wording import drop_line, number_of, rows

__all__ = [
    "broken",
    "closeness_finding",
    "infinite_finding",
    "level_findings",
    "read_weights",
    "size_finding",
    "spread_finding",
]

Floats = NDArray[np.float64]

# The product of two precisions is a fourth power of the units, and has to be a double.
_HUGE = 1e75
_TINY = 1e-75
# Doubles do not hold every whole number of observations beyond this one.
_MOST_WEIGHT = 2.0**53
# Below this ratio of spread to size, most information in a column is lost to rounding.
_CLOSE = 1e-12


def infinite_finding(name: str, numbers: Floats) -> Finding | None:
    """Return an error that counts infinite values, or None."""
    count = int(np.count_nonzero(np.isinf(numbers)))
    if not count:
        return None
    what = f"{number_of(count, 'infinite value', 'infinite values')} (inf or -inf)"
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
        twice = Counter(names).most_common(1)[0][0]
        return [
            Finding(name, f"two of its levels read {quoted(twice)}", "give each level its own name")
        ]
    unused = [factor.levels[int(at)] for at in np.flatnonzero(counts == 0)]
    if not unused:
        return []
    what = f"{'level' if len(unused) == 1 else 'levels'} without rows: {few(unused)}"
    remedy = "declare only levels that occur"
    return [Finding(name, what, remedy, "warning")]


def read_weights(
    sample_weight: ArrayLike | None, n_rows: int
) -> tuple[Floats | None, list[Finding]]:
    """Return sample weights as floats, None when there are none or they cannot be used.

    The findings are errors, or a warning when the sum is far from the number of rows.
    """
    if sample_weight is None:
        return None, []
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        return None, [Finding(None, "sample_weight holds values that are not numbers", "")]
    bad = _weight_error(weights, n_rows)
    if bad is not None:
        return None, [bad]
    total, n_used = float(weights.sum()), int(np.count_nonzero(weights))
    if 0.5 * n_used <= total <= 2 * n_used:
        return weights, []
    what = (
        f"sample_weight sums to {total:g} over {rows(n_used)} with positive weight; the sum is the "
        "number of observations that every criterion counts"
    )
    remedy = "sample_weight * (n / sample_weight.sum()), unless the weights are frequencies"
    return weights, [Finding(None, what, remedy, "warning")]


def _weight_error(weights: Floats, n_rows: int) -> Finding | None:
    if weights.ndim != 1:
        what = f"sample_weight must be a 1-D array, one weight for each row; got {weights.ndim}-D"
        return Finding(None, what, "")
    if len(weights) != n_rows:
        what = f"sample_weight has {_entries(len(weights))}, but the table has {rows(n_rows)}"
        return Finding(None, what, "")
    infinite = int(np.count_nonzero(~np.isfinite(weights)))
    if infinite:
        entries = f"{_entries(infinite)} that {'is' if infinite == 1 else 'are'}"
        what = f"sample_weight has {entries} missing or infinite (NaN or inf)"
        return Finding(None, what, "weight 0 leaves a row out")
    negative = int(np.count_nonzero(weights < 0))
    if negative:
        what = f"sample_weight has {_entries(negative, 'negative ')}"
        return Finding(None, what, "use weights >= 0")
    if n_rows and not weights.any():
        return Finding(None, "every sample_weight is zero, so no row counts", "")
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if total > _MOST_WEIGHT:
        what = f"sample_weight sums to {total:g}; the sum is a number of observations"
        return Finding(None, f"{what}, at most {_MOST_WEIGHT:g}", "divide it by its largest value")
    smallest = float(weights.min(initial=total, where=weights > 0.0))
    if smallest < _CLOSE * total:
        n_lost = int(np.count_nonzero((weights > 0.0) & (weights < _CLOSE * total)))
        what = f"sample_weight has {_entries(n_lost)} too small to count, down to {smallest:g}"
        remedy = f"set those below {_CLOSE * total:.2g} to 0, which leaves their rows out"
        return Finding(None, f"{what}, in a sum of {total:g}", remedy)
    return None


def _entries(count: int, sort: str = "") -> str:
    return number_of(count, f"{sort}entry", f"{sort}entries")
