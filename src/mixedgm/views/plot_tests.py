"""Probabilities and verdicts of all pairs in -> a picture of them as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mixedgm.model.layout import Floats, Ints
from mixedgm.views.canvas import INK, axes, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_tests"]

_MARKS = {"present": "●", "absent": "○"}
_MOST_MARKED = 40


def plot_tests(
    names: Sequence[str],
    pairs: Ints,
    probability: Floats,
    verdicts: Sequence[str],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw a matrix: shades are probabilities of an edge, marks are verdicts.

    A full mark says that an edge is present, an empty one that there is none, and no mark that the
    rows do not decide.  A cell without shade is a pair that may not have an edge.
    """
    n = len(names)
    matrix = np.full((n, n), np.nan)
    u, v = pairs.T
    matrix[u, v] = matrix[v, u] = probability
    size = float(np.clip(2.6 + 0.28 * n, 4.0, 11.0))
    ax = axes(ax, (size + 1.2, size), layout="constrained")
    shown = np.ma.masked_invalid(matrix)
    image = ax.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.0, interpolation="none")
    ax.set_facecolor("#f1f1ef")
    if n <= _MOST_MARKED:
        for a, b, chance, verdict in zip(u, v, probability, verdicts, strict=True):
            mark = _MARKS.get(verdict)
            if mark is not None:
                colour = "white" if chance > 0.6 else INK
                for x, y in ((a, b), (b, a)):
                    ax.text(x, y, mark, ha="center", va="center", color=colour, fontsize=8)
    text = [label(name) for name in names]
    points = float(np.clip(220.0 / max(n, 1), 4.0, 9.0))
    ax.set_xticks(range(n), text, rotation=90, fontsize=points)
    ax.set_yticks(range(n), text, fontsize=points)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    figure = ax.get_figure(root=True)
    bar = figure.colorbar(image, ax=ax, shrink=0.7, pad=0.02)  # type: ignore[union-attr]
    bar.set_label("probability of an edge")
    bar.outline.set_visible(False)
    key = "●  present    ○  absent    no mark: undecided"
    if np.isnan(matrix[~np.eye(n, dtype=bool)]).any():
        key += "    grey: not tested"
    ax.set_title(key, fontsize=9, color=INK)
    return ax
