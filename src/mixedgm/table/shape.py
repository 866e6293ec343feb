"""The numbers of continuous columns in -> notes about skew, tails, spikes, bounds and rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import Finding
from mixedgm.printable import few, literal, quoted
from mixedgm.table.wording import types_line

__all__ = ["Shape", "shape_findings", "shape_of"]

Floats = NDArray[np.float64]

_FEWEST_ROWS = 20
_SAMPLE = 10_000  # rows that are sorted to find a common value
_SKEWED, _VERY_SKEWED = 1.0, 3.0
_HEAVY = 4.0  # excess kurtosis; that of Laplace's distribution is 3
_SPIKE, _BOUND = 0.10, 0.05
_MOSTLY = 0.50
_FEW = 20  # distinct values
_MOST = 5  # columns named in one note


@dataclass(frozen=True)
class Shape:
    """What is not normal about the distribution of one column.

    Parameters
    ----------
    name : str
        The column.
    skewness, excess_kurtosis : float
        Third and fourth standardised moments, the latter less 3; both 0 for a normal column.
    common : float
        The value that occurs most often.
    share : float
        Its share of the rows.
    at_bound : str
        "smallest" or "largest" when the common value is that, else empty.
    n_distinct : int
        Number of distinct values; those of a sample when there are many.
    n_rows : int
        Number of values.
    settled : bool
        Whether it is already settled that few distinct values are meant as numbers, or not.
    """

    name: str
    skewness: float
    excess_kurtosis: float
    common: float
    share: float
    at_bound: str
    n_distinct: int
    n_rows: int
    settled: bool = False


def shape_of(name: str, numbers: Floats, *, settled: bool = False) -> Shape | None:
    """Describe the distribution of one column; None with fewer than 20 values.

    The numbers are finite, none of them is missing, and they are not all equal.

    Examples
    --------
    >>> shape = shape_of("hours", np.repeat([0.0, 1.0, 8.0], [70, 20, 10]))
    >>> shape.common, shape.share, shape.at_bound
    (0.0, 0.7, 'smallest')
    """
    n_rows = len(numbers)
    if n_rows < _FEWEST_ROWS:
        return None
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
            lambda s: f"{s.common:.6g}{_bound(s)} in {s.share:.0%} of the rows",
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


def _bound(shape: Shape) -> str:
    return f", its {shape.at_bound} value," if shape.at_bound else ""


def _transform_line(shapes: Sequence[Shape]) -> str:
    """Return the option that makes the columns normal, as the user would write it."""
    if len(shapes) > _MOST:
        return 'transforms="nonparanormal", for all columns'
    names = (literal(shape.name) for shape in shapes)
    return "transforms={" + ", ".join(f'{name}: "nonparanormal"' for name in names) + "}"
