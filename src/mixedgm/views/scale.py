"""Weights of edges in -> Scale: how wide and how solid their lines are, and what a legend says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Scale", "weight_text", "widest_weight"]

_THINNEST, _WIDEST = 0.5, 5.0
_FAINT_WIDTH, _SOLID_WIDTH = 0.8, 1.4
_TOWERING = 3.0
_LEAST = 0.1


def widest_weight(weights: Sequence[float]) -> float:
    """Return the weight that gets the widest line by default.

    The heaviest one; but where it dwarfs the others, three times the heaviest weight outside
    the heaviest tenth of the edges (at least one edge is in it), and not less than 0.1.

    Examples
    --------
    >>> widest_weight([0.5, 0.3, 0.1])
    0.5
    >>> widest_weight([15.0, 0.25, 0.2, 0.1])
    0.75
    """
    ordered = sorted(weights, reverse=True)
    if len(ordered) < 2:
        return ordered[0] if ordered else 1.0
    others = ordered[math.ceil(len(ordered) / 10)]
    return min(ordered[0], max(_TOWERING * others, _LEAST))


def weight_text(weight: float) -> str:
    """Return a weight with two digits that matter, and at most three after the point.

    Examples
    --------
    >>> [weight_text(weight) for weight in (150.2, 15.2, 1.26, 0.3, 0.0456, 0.0001)]
    ['150', '15', '1.3', '0.30', '0.046', '0.0001']
    """
    if not 1e-3 <= weight < 1e6:
        return f"{weight:.2g}"
    return f"{weight:.{min(max(1 - math.floor(math.log10(weight)), 0), 3)}f}"


@dataclass(frozen=True)
class Scale:
    """What the widths of lines mean.

    Edges heavier than `maximum` are no wider than it; `heaviest` is the heaviest weight that is
    drawn. Edges lighter than `cut` are thin, and the fainter the lighter; the others are solid, and
    only their widths differ. Without it width and strength of the colour grow together.
    """

    maximum: float
    heaviest: float
    cut: float | None = None

    def width(self, weight: float) -> float:
        """Return the width of a line in points."""
        if self.cut is None:
            return _THINNEST + (_WIDEST - _THINNEST) * min(weight / self.maximum, 1.0)
        if weight < self.cut:
            return _FAINT_WIDTH
        span = self.maximum - self.cut
        share = min((weight - self.cut) / span, 1.0) if span > 0.0 else 1.0
        return _SOLID_WIDTH + (_WIDEST - _SOLID_WIDTH) * share

    def opacity(self, weight: float) -> float:
        """Return how solid a line is, from 0 to 1."""
        if self.cut is None:
            return 0.55 + 0.4 * min(weight / self.maximum, 1.0)
        return 0.15 + 0.35 * weight / self.cut if weight < self.cut else 0.95

    def keys(self) -> list[tuple[str, float, float]]:
        """Return text, width and opacity of the lines that a legend shows."""
        text = f"weight {self.maximum:.2g}"
        if self.heaviest > self.maximum * (1.0 + 1e-9):
            text = f"weight ≥ {weight_text(self.maximum)} (up to {weight_text(self.heaviest)})"
        widest = (text, _WIDEST, 1.0)
        if self.cut is None:
            return [widest]
        return [(f"weight < {weight_text(self.cut)}", _FAINT_WIDTH, 0.4), widest]
