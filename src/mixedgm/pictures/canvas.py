"""Axes or nothing in -> axes to draw on, and back to bytes: pyplot is imported here alone."""

from __future__ import annotations

import inspect
import io
import os
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.atomic import write_bytes
from mixedgm.base.errors import MixedGMError, ParameterError, near_matches
from mixedgm.base.parameters import is_integer
from mixedgm.base.printable import cut, one_line, quoted, width
from mixedgm.table.read import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


INK = "#333333"
P = ParamSpec("P")
R = TypeVar("R")


def check_options(picture: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise ParameterError that names every option that a picture does not have.

    Examples
    --------
    >>> check_options("plot", ["layuot"], ["ax", "layout"])
    Traceback (most recent call last):
    ...
    mixedgm.base.errors.ParameterError: plot has no option 'layuot' (did you mean 'layout'?). Its
    options are 'ax', 'layout'.
    """
    known = list(known)
    wrong = []
    for name in given:
        if name not in known:
            near = near_matches(name, known, "options")
            wrong.append(f"{quoted(name)}" + (f" ({near})" if near.startswith("did") else ""))
    if wrong:
        every = ", ".join(map(quoted, known))
        raise ParameterError(
            f"{picture} has no option {' or '.join(wrong)}. Its options are {every}."
        )


def known_options(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function that draws refuse unknown options by a ParameterError."""
    drawn, *known = inspect.signature(function).parameters

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        check_options(function.__name__, [name for name in options if name != drawn], known)
        return function(*args, **options)

    return checked


def require_matplotlib() -> None:
    """Raise MixedGMError, with what to do, where matplotlib is not installed."""
    try:
        import matplotlib.axes  # noqa: F401
    except ImportError as error:
        raise MixedGMError(
            "drawing needs matplotlib, which is not installed. "
            'Install it with: pip install "mixedgm[plot]"'
        ) from error


def axes(ax: Axes | None, size: tuple[float, float], **options: Any) -> Axes:
    """Return the given axes, or those of a new figure of this size in inches.

    `options` are for a new figure, such as ``layout="constrained"``.
    """
    require_matplotlib()
    from matplotlib.axes import Axes

    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=size, **options).add_subplot()
    elif not isinstance(ax, Axes):
        raise ParameterError.must_be("ax", "matplotlib Axes or None", ax)
    return ax


def draw_without_window() -> None:
    """Let new figures go to files only."""
    require_matplotlib()
    import matplotlib as mpl

    mpl.use("Agg")


PICTURES = (".png", ".svg", ".pdf")
_LASTING: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "mixedgm", "pdf.fonttype": 42}
"""Names stay text that can be searched and edited, and a drawing always gives the same bytes."""
_UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def picture_of(ax: Axes, kind: str, dpi: int) -> bytes:
    """Return the figure of these axes as a file of this kind ("png"), and close it."""
    content = _content(ax, kind, dpi)
    close(ax)
    return content


def close(ax: Axes) -> None:
    """Close the figure of these axes."""
    import matplotlib.pyplot as plt

    plt.close(ax.get_figure(root=True))


def save_figure(ax: Axes, path: str | os.PathLike[str], dpi: int) -> None:
    """Write the figure of these axes into a file whose ending says of which kind it is."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in PICTURES:
        raise ParameterError.must_be("path", f"a name that ends in {', '.join(PICTURES)}", path)
    write_bytes(path, _content(ax, ending[1:], dpi))


def _content(ax: Axes, kind: str, dpi: int) -> bytes:
    import matplotlib as mpl

    buffer = io.BytesIO()
    figure = ax.get_figure(root=True)
    assert figure is not None
    with mpl.rc_context(_LASTING):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=_UNDATED.get(kind))
    return buffer.getvalue()


def pixel_in_points(ax: Axes) -> float:
    """Return the size of a pixel of the figure in points, 1/72 inch."""
    return 72.0 / float(ax.get_figure(root=True).dpi)  # type: ignore[union-attr]


def ink_on(colours: NDArray[Any]) -> NDArray[np.str_]:
    """Return for each of these colours (..., 3) what is read better on it: white or `INK`.

    Examples
    --------
    >>> import numpy as np
    >>> ink_on(np.array([[0.48, 0.18, 0.0], [0.9, 0.55, 0.28]])).tolist()
    ['white', '#333333']
    """
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    # Both have the same contrast at a luminance of 0.245.
    return np.where(linear @ [0.2126, 0.7152, 0.0722] < 0.245, "white", INK)


def label(text: str, longest: int = 24) -> str:
    r"""Return a text from the data as it is drawn: on one line, not too long, never a formula.

    Everything that comes from data goes through here: two dollar signs would begin and end what
    matplotlib reads as mathematics.

    Examples
    --------
    >>> print(label("a$_b$"))
    a\$_b\$
    """
    return cut(one_line(text), longest).replace("$", r"\$")


def level_label(text: str, longest: int = 28) -> str:
    """Return a level as it is drawn: like `label`, but a long one loses its end, not its middle.

    Levels often begin alike and are told apart by what comes first.

    Examples
    --------
    >>> level_label("Married, spouse absent from the household")
    'Married, spouse absent from…'
    """
    shown = one_line(text)
    if width(shown) > longest:
        while width(shown) >= longest:
            shown = shown[:-1]
        shown = f"{shown.rstrip()}…"
    return shown.replace("$", r"\$")


def pair_labels(columns: Columns, rows: Iterable[int]) -> list[str]:
    """Return the pairs of columns in these rows, "source" and "target", as they are drawn."""
    return [label(f"{columns['source'][k]} – {columns['target'][k]}", 40) for k in rows]


# -- pictures with one row per edge or column ------------------------------------------------------


def n_shown(total: int, option: str, most: int | None) -> int:
    """Return how many of all rows are drawn: at most as many as the option says."""
    if most is None:
        return total
    if not is_integer(most, 1):
        raise ParameterError.must_be(option, "an integer of at least 1, or None", most)
    return min(total, most)


def name_rows(ax: Axes, rows: Sequence[int] | NDArray[Any], names: Sequence[str]) -> None:
    """Write a name beside every row, and take away the frame at the top and the right."""
    tall = ax.get_window_extent().height * pixel_in_points(ax) / max(len(names), 1)
    ax.set_yticks(rows, names, fontsize=float(np.clip(0.8 * tall, 4.0, 8.0)))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.7, max(len(names), 1) - 0.3)
    ax.spines[["top", "right"]].set_visible(False)


def note_row(ax: Axes, row: float, text: str) -> None:
    """Write a small note at the right-hand end of a row."""
    ax.annotate(
        text,
        (1.0, row),
        xytext=(4, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=7,
        color=INK,
    )
