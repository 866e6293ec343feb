"""Axes or nothing in -> matplotlib axes to draw on; matplotlib is loaded here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mixedgm.errors import MixedGMError, ParameterError
from mixedgm.views.text import cut, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["INK", "axes", "halo", "label", "pixel_in_points"]

INK = "#333333"


def axes(ax: Axes | None, size: tuple[float, float], **options: Any) -> Axes:
    """Return the given axes, or those of a new figure of this size in inches.

    Parameters
    ----------
    ax : matplotlib Axes or None
        Axes of the user, returned as they are.
    size : (float, float)
        Width and height of a new figure.
    **options
        For a new figure, as ``layout="constrained"``.

    Returns
    -------
    matplotlib Axes
        Never shown and never closed here.
    """
    try:
        from matplotlib.axes import Axes
    except ImportError as error:
        raise MixedGMError(
            "drawing needs matplotlib, which is not installed. "
            'Install it with: pip install "mixedgm[plot]"'
        ) from error
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=size, **options).add_subplot()
    elif not isinstance(ax, Axes):
        raise ParameterError.must_be("ax", "matplotlib Axes or None", ax)
    return ax


def halo(width: float = 2.5) -> list[Any]:
    """Return the path effect that keeps text readable on top of lines."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground="white")]


def pixel_in_points(ax: Axes) -> float:
    """Return the size of a pixel of the figure in points, 1/72 inch."""
    return 72.0 / float(ax.get_figure(root=True).dpi)  # type: ignore[union-attr]


def label(text: str, longest: int = 24) -> str:
    """Return a name as it is drawn: on one line and not too long."""
    return cut(one_line(text), longest)
