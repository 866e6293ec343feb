"""Strengths of edges in -> Scale: how wide and solid their lines are, and what a legend says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["FROM_COLUMNS", "WIDEST", "Scale", "automatic_cut", "size_text"]

FROM_COLUMNS = 20
"""Columns from which on weak edges recede."""

_STRONG_PER_COLUMN = 2
_THINNEST, WIDEST = 0.5, 6.5
_FAINTEST = 0.1
_RECEDED_WIDTH, _RECEDED = 0.9, 0.3
_SOLID = 0.45


def automatic_cut(sizes: Sequence[float], n_columns: int) -> float | None:
    """Return the size below which edges recede: as many as two per column stand out.

    None with fewer than 20 columns, or no more edges than that.

    Examples
    --------
    >>> automatic_cut([0.5] * 40 + [0.1] * 60, 20)
    0.5
    """
    n_strong = _STRONG_PER_COLUMN * n_columns
    if n_columns < FROM_COLUMNS or len(sizes) <= n_strong:
        return None
    return sorted(sizes, reverse=True)[n_strong - 1]


def size_text(size: float) -> str:
    """Return a size with two digits after the point, or more where it is very small.

    Examples
    --------
    >>> [size_text(size) for size in (1.0, 0.3, 0.046, 0.0012, 0.0)]
    ['1', '0.30', '0.05', '0.001', '0']
    """
    if size in (0.0, 1.0):
        return f"{size:.0f}"
    return f"{size:.2f}" if size >= 0.01 else f"{size:.1g}"


@dataclass(frozen=True)
class Scale:
    """What the widths of lines mean.

    Edges of size `maximum` or more have the widest line. Width and opacity grow with the size.
    Edges smaller than `cut` are thin and faint.
    """

    maximum: float
    cut: float | None = None
    widest: float = WIDEST
    """Width of the widest line in points."""

    def look(self) -> dict[str, float | None]:
        """Return all that decides widths and opacities, for the page of the report."""
        return {
            "maximum": self.maximum,
            "cut": self.cut,
            "thinnest": _THINNEST,
            "receded": _RECEDED_WIDTH,
            "widest": self.widest,
            "faintest": _FAINTEST,
            "faint": _RECEDED,
            "solid": _SOLID,
        }

    def share(self, size: float) -> float:
        """Return the size as a share of the largest, in [0, 1]."""
        return min(size / self.maximum, 1.0) if self.maximum > 0.0 else 0.0

    def recedes(self, size: float) -> bool:
        """Return whether an edge is below the cut."""
        return self.cut is not None and size < self.cut

    def width(self, size: float) -> float:
        """Return the width of a line in points."""
        if self.recedes(size):
            return _THINNEST + (_RECEDED_WIDTH - _THINNEST) * self._below(size)
        return _RECEDED_WIDTH + (self.widest - _RECEDED_WIDTH) * self._above(size)

    def opacity(self, size: float) -> float:
        """Return how solid a line is, from 0.1 to 1."""
        if self.recedes(size):
            return _FAINTEST + (_RECEDED - _FAINTEST) * self._below(size)
        if self.cut is None:
            return max(_FAINTEST, math.sqrt(self.share(size)))
        return _SOLID + (1.0 - _SOLID) * math.sqrt(self._above(size))

    def _below(self, size: float) -> float:
        return size / self.cut if self.cut else 1.0

    def _above(self, size: float) -> float:
        low = self.cut or 0.0
        span = self.maximum - low
        return min((size - low) / span, 1.0) if span > 0.0 else 1.0

    def keys(self, sizes: Sequence[float]) -> list[float]:
        """Return up to three sizes whose lines a legend shows: largest, middle and smallest.

        Sizes below a tenth of the largest, whose lines can hardly be seen, are not shown.

        Examples
        --------
        >>> Scale(0.61).keys([0.61, 0.3, 0.04])
        [0.6, 0.35, 0.05]
        >>> Scale(0.5).keys([0.5, 0.0])
        [0.5, 0.3, 0.05]
        """
        if not sizes or max(sizes) <= 0.0:
            return []
        largest = min(max(sizes), self.maximum)
        smallest = max(min(sizes), 0.1 * largest, math.ceil(20.0 * (self.cut or 0.0)) / 20.0)
        wanted = [largest, (largest + smallest) / 2.0, smallest]
        rounded = [_round(size) for size in wanted]
        return list(dict.fromkeys(size for size in rounded if size >= (self.cut or 0.0)))


def _round(size: float) -> float:
    """Return a size that is read easily: a multiple of 0.05, or one digit below 0.05."""
    return round(round(size * 20.0) / 20.0, 2) if size >= 0.025 else float(f"{size:.1g}")
