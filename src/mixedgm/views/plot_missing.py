"""Patterns of missing cells in -> a picture: columns by patterns, with counts beside and above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats
from mixedgm.views.canvas import INK, axes, label, n_shown
from mixedgm.views.colours import SIGN_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MissingPicture", "plot_missing"]

_GAP = SIGN_COLOURS["-"]
_THERE = "#E4E7EA"
_BAR = "#8C969F"


@dataclass(frozen=True, eq=False)
class MissingPicture:
    """What is drawn: columns, the share of each that is missing, and patterns with their rows."""

    names: Sequence[str]
    share: Floats
    """(columns,)"""
    gaps: NDArray[np.bool_]
    """(patterns, columns)"""
    rows: Floats
    """(patterns,) most first."""


def plot_missing(
    picture: MissingPicture, *, n_patterns: int | None = 20, ax: Axes | None = None
) -> Axes:
    """Draw one row per pattern, the most frequent on top, and one column per column of the table.

    Vermilion is missing, grey is there.  Bars at the right are the rows that have the pattern; bars
    above are the share of each column that is missing.
    """
    from matplotlib.colors import ListedColormap

    total = len(picture.rows)
    shown, n = n_shown(total, "n_patterns", n_patterns), len(picture.names)
    width, height = (float(np.clip(1.6 + 0.32 * k, 2.6, 11.0)) for k in (n, shown))
    ax = axes(ax, (width + 3.2, height + 2.2), layout="constrained")
    gaps = picture.gaps[:shown].astype(np.float64)
    colours = ListedColormap([_THERE, _GAP])
    ax.imshow(gaps, cmap=colours, vmin=0.0, vmax=1.0, aspect="auto", interpolation="none")
    ax.set_xticks(np.arange(n + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(shown + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5 if max(n, shown) <= 60 else 0.3)
    ax.tick_params(which="both", length=0)
    text = float(np.clip(300.0 / max(n, 1), 4.0, 9.0))
    ax.set_xticks(range(n), [label(name) for name in picture.names], rotation=90, fontsize=text)
    ax.set_yticks([])
    ax.set_ylabel("patterns, most frequent first", fontsize=9, color=INK)
    ax.spines[:].set_visible(False)
    _draw_rows(ax, picture.rows[:shown], float(picture.rows.sum()))
    _draw_shares(ax, picture.share, text)
    if shown < total:
        left = float(picture.rows[shown:].sum() / max(picture.rows.sum(), 1.0))
        note = f"{shown} of {total} patterns; the others are {left:.1%} of the rows"
        ax.set_xlabel(note, fontsize=8, color=INK)
    return ax


def _draw_rows(ax: Axes, rows: Floats, total: float) -> None:
    """Draw how many rows have each pattern, at the right."""
    beside = ax.inset_axes((1.02, 0.0, 0.45, 1.0), sharey=ax)
    at = np.arange(len(rows))
    beside.barh(at, rows, height=0.72, color=_BAR, gid="rows")
    beside.set_xlim(0.0, 2.2 * float(rows.max(initial=1.0)))
    for row, count in zip(at, rows, strict=True):
        text = f"{count:,.6g} ({_percent(count / max(total, 1.0))})"
        beside.annotate(
            text,
            (count, row),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color=INK,
        )
    beside.tick_params(left=False, labelleft=False, which="both", bottom=False, labelbottom=False)
    beside.spines[:].set_visible(False)
    beside.set_title("rows", fontsize=9, color=INK, loc="left")


def _draw_shares(ax: Axes, share: Floats, text: float) -> None:
    """Draw the share of every column that is missing, above."""
    above = ax.inset_axes((0.0, 1.02, 1.0, 0.25), sharex=ax)
    at = np.arange(len(share))
    above.bar(at, share, width=0.72, color=_GAP, gid="shares")
    above.set_ylim(0.0, 1.3 * max(float(share.max(initial=0.0)), 1e-3))
    for column, value in zip(at, share, strict=True):
        if value > 0.0:
            above.annotate(
                _percent(value),
                (column, value),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=min(text, 7.5),
                color=INK,
            )
    above.tick_params(bottom=False, labelbottom=False, left=False, labelleft=False, which="both")
    above.spines[["top", "left", "right"]].set_visible(False)
    above.set_ylabel("share missing", fontsize=9, color=INK)


def _percent(share: float) -> str:
    if 0.0 < share < 0.001:
        return "<0.1%"
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"
