"""The values of columns in -> findings about missing, infinite, constant and weightless rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.errors import Finding
from mixedgm.table.values import Factor
from mixedgm.table.wording import drop_line, number_of, rows

__all__ = [
    "Missing",
    "check_missing",
    "closeness_finding",
    "infinite_finding",
    "level_findings",
    "read_weights",
    "spread_finding",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Squares of such numbers, which every variance needs, leave the range of float64.
_HUGE = 1e150
_TINY = 1e-150
# Below this ratio of spread to size, most of what a column says is lost to rounding.
_CLOSE = 1e-12


@dataclass(frozen=True, eq=False)
class Missing:
    """Which rows are usable, and what was found on the way.

    Parameters
    ----------
    keep : bool array or None
        Rows with positive weight and without missing values; None when that is all rows.
    findings : tuple of Finding
        About missing values.
    empty : tuple of str
        Columns in which every value is missing.
    """

    keep: Mask | None
    findings: tuple[Finding, ...]
    empty: tuple[str, ...] = ()

    def n_kept(self, n_rows: int) -> int:
        """Return how many of `n_rows` rows are kept."""
        return n_rows if self.keep is None else int(np.count_nonzero(self.keep))


def check_missing(
    gaps: Iterable[tuple[str, Mask]], weights: Floats | None, missing: str, *, learning: bool
) -> Missing:
    """Find the rows without missing values.

    Parameters
    ----------
    gaps : iterable of (name, bool array)
        Where each column has missing values.
    weights : float64 array or None
        Weights of the rows; those with weight zero are absent.
    missing : {"error", "drop", "keep"}
        Whether missing values are an error, their rows are dropped, or they are let be.
    learning : bool
        Whether a schema is learnt: a column without any value is then an error of its own, and two
        rows have to remain. New data needs one row.

    Returns
    -------
    Missing
        The rows and the findings.
    """
    present = None if weights is None or (weights > 0).all() else weights > 0
    counts: dict[str, int] = {}
    empty: list[str] = []
    incomplete: Mask | None = None
    for name, gap in gaps:
        gap = gap if present is None else gap & present
        count = int(np.count_nonzero(gap))
        n_present = len(gap) if present is None else int(np.count_nonzero(present))
        if learning and count == n_present:
            empty.append(name)
        elif count:
            counts[name] = count
            incomplete = gap if incomplete is None else incomplete | gap
    findings = [Finding(name, "all of its values are missing", drop_line(name)) for name in empty]
    if incomplete is None or missing == "keep":
        return Missing(present, tuple(findings), tuple(empty))
    keep = ~incomplete if present is None else present & ~incomplete
    n_incomplete, n_kept = int(np.count_nonzero(incomplete)), int(np.count_nonzero(keep))
    findings.append(_missing_finding(counts, n_incomplete, missing, learning))
    if missing == "drop" and n_kept < 1 + learning:
        left = "no row is" if n_kept == 0 else "only 1 row (1 sample) is"
        what = f'{left} left after missing="drop"'
        findings.append(Finding(None, what, "leave out the columns with most missing values"))
    return Missing(keep, tuple(findings), tuple(empty))


def _missing_finding(counts: dict[str, int], n_rows: int, missing: str, learning: bool) -> Finding:
    ranked = sorted(counts.items(), key=lambda pair: -pair[1])
    listed = ", ".join(f"{name!r} ({count})" for name, count in ranked)
    if missing == "drop":
        what = f"{rows(n_rows)} dropped because of missing values (NaN or null) in {listed}"
        return Finding(None, what, "fill the values in before", "warning")
    column, count = ranked[0] if len(ranked) == 1 else (None, 0)
    if column is not None:
        what = f"{count} missing {'value' if count == 1 else 'values'} (NaN or null)"
    else:
        what = f"missing values (NaN or null) in {rows(n_rows)}, by column: {listed}"
    those, them = ("row", "it") if n_rows == 1 else (f"{n_rows} rows", "them")
    drop = 'missing="drop" drops' if learning else "drop"  # predict and score have no such option
    return Finding(column, what, f"{drop} the {those}, or fill {them} in")


def infinite_finding(name: str, numbers: Floats) -> Finding | None:
    """Return an error that counts infinite values, or None."""
    count = int(np.count_nonzero(np.isinf(numbers)))
    if not count:
        return None
    what = f"{count} infinite {'value' if count == 1 else 'values'} (inf or -inf)"
    return Finding(name, what, "replace by a finite value or by a missing one")


def spread_finding(name: str, numbers: Floats) -> Finding | None:
    """Return an error when finite numbers do not vary, or vary beyond floating point."""
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        what = f"it is constant: {low:.15g} in all {len(numbers)} rows used"
        return Finding(name, what, drop_line(name))
    largest = max(abs(low), abs(high))
    if largest > _HUGE or high - low < _TINY:
        what = (
            f"its values, from {low:g} to {high:g}, are too {_size(largest)} for double precision"
        )
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


def _size(largest: float) -> str:
    return "large" if largest > _HUGE else "close together"


def level_findings(name: str, factor: Factor, codes: NDArray[np.int32]) -> list[Finding]:
    """Return an error for a column with one level in use, a warning for levels without rows.

    Parameters
    ----------
    name : str
        The column.
    factor : Factor
        Its levels.
    codes : int32 array
        The codes of the rows that are kept.

    Returns
    -------
    list of Finding
        None, one or two findings.
    """
    counts = np.bincount(codes, minlength=len(factor.levels))
    used = np.flatnonzero(counts)
    if len(used) == 1:
        only = factor.levels[int(used[0])]
        what = f"it is constant: {only!r} in all {len(codes)} rows used"
        return [Finding(name, what, drop_line(name))]
    names = [str(level) for level in factor.levels]
    if len(set(names)) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        return [Finding(name, f"two of its levels read {twice!r}", "give each level its own name")]
    unused = [repr(factor.levels[int(at)]) for at in np.flatnonzero(counts == 0)]
    if not unused:
        return []
    some = ", ".join(unused[:5]) + (f" and {len(unused) - 5} more" if len(unused) > 5 else "")
    what = f"{'level' if len(unused) == 1 else 'levels'} without rows: {some}"
    remedy = "declare only levels that occur among the rows used"
    return [Finding(name, what, remedy, "warning")]


def read_weights(
    sample_weight: ArrayLike | None, n_rows: int
) -> tuple[Floats | None, list[Finding]]:
    """Return sample weights as floats, with findings about them.

    Parameters
    ----------
    sample_weight : array of shape (n,) or None
        Frequencies of the rows.
    n_rows : int
        Number of rows of the table.

    Returns
    -------
    float64 array or None
        The weights; None when there are none or they cannot be used.
    list of Finding
        Errors, or a warning when their sum is far from the number of rows.
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
    return None


def _entries(count: int, sort: str = "") -> str:
    return number_of(count, f"{sort}entry", f"{sort}entries")
