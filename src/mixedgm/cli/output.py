"""Columns of values or a picture -> text in the wanted format, on the terminal or in a file."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixedgm.base.atomic import check_writable, write_bytes, write_text
from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import json_text, printable, quoted
from mixedgm.cli.console import Console

if TYPE_CHECKING:
    from mixedgm.fit.fitted import FittedModel
    from mixedgm.results.export import Formulas
    from mixedgm.table.read import Columns


FORMAT_OF = {".csv": "csv", ".json": "json", ".txt": "table"}
_PICTURES = (".png", ".svg", ".pdf")
_FILE_WIDTH = 10_000
_STANDARD_OUTPUT = "-"
_DPI = 160


def check_output(output: str | None, *inputs: str) -> None:
    """Refuse, before any work is done, a file that cannot be written or that is an input."""
    if output is None or output == _STANDARD_OUTPUT:
        return
    check_writable(output)
    target = Path(output)
    for each in inputs:
        if target.exists() and Path(each).exists() and target.samefile(each):
            raise ParameterError(f"{quoted(output)} is the input; give another name to write to.")


def check_model_output(output: str | None, *inputs: str) -> None:
    """The same for a model file, which is not text for a terminal."""
    if output == _STANDARD_OUTPUT:
        raise ParameterError("a model file cannot go to standard output; give the name of a file.")
    check_output(output, *inputs)


def deliver(
    columns: Columns,
    args: Namespace,
    console: Console,
    table: Callable[[int], str] | None = None,
) -> None:
    """Write columns in the wanted format to --output, or to standard output.

    `table` makes the readable format from the longest line that is allowed; by default it is made
    of all columns.
    """
    output = None if args.output == _STANDARD_OUTPUT else args.output
    ending = "" if output is None else Path(output).suffix.lower()
    form = args.format or FORMAT_OF.get(ending, args.default_format)
    width = console.width if output is None else _FILE_WIDTH
    if form == "table":
        from mixedgm.results.text import table_text

        text = table_text(columns, width) if table is None else table(width)
    else:
        text = _csv(columns, args.formulas) if form == "csv" else _json(columns)
    if output is None:
        (console.out if form == "table" else console.pass_on)(text)
        return
    if form == "table":
        text = printable(text)
    write_bytes(output, f"{text}\n".encode("utf-8", "backslashreplace"))
    console.say(f"wrote {output}")


def columns_of(frame: object) -> dict[str, list[Any]]:
    """Return a frame of any library as lists of plain values, None where there is none."""
    from mixedgm.table.read import plain_columns

    return plain_columns(frame)


def _csv(columns: Columns, formulas: Formulas) -> str:
    from mixedgm.results.export import csv_text

    rows = [["" if cell is None else cell for cell in row] for row in _rows(columns)]
    return csv_text([list(columns), *rows], formulas).removesuffix("\n")


def _json(columns: Columns) -> str:
    records = [dict(zip(columns, row, strict=True)) for row in _rows(columns)]
    return json_text(records, indent=1)


def _rows(columns: Columns) -> list[list[Any]]:
    import numpy as np

    return [
        [_plain(cell.item() if isinstance(cell, np.generic) else cell) for cell in row]
        for row in zip(*columns.values(), strict=True)
    ]


def _plain(value: object) -> Any:
    """A value as JSON and CSV know it; None where there is none."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def check_picture(output: str) -> None:
    """Refuse a picture in a format that is not offered."""
    if Path(output).suffix.lower() not in _PICTURES:
        wanted = f"a file name that ends in {', '.join(_PICTURES)}"
        raise ParameterError.must_be("the picture", wanted, output)


def can_draw(console: Console) -> bool:
    """Prepare drawing where that is possible, else say that there will be no pictures."""
    if find_spec("matplotlib") is None:
        console.note('no pictures: matplotlib is missing. To fix: pip install "mixedgm[plot]"')
        return False
    from mixedgm.pictures.canvas import draw_without_window

    draw_without_window()
    return True


def draw(fitted: FittedModel, kind: str, output: str | Path, **style: Any) -> None:
    """Draw one kind of picture into a file; `style` belongs to networks."""
    from mixedgm.pictures.matrices import plot_parameters
    from mixedgm.pictures.network.plot import plot_network
    from mixedgm.pictures.path import plot_path, plot_selection

    if kind == "network":
        ax = plot_network(fitted, **style).ax
    else:
        drawings = {
            "path": plot_path,
            "parameters": plot_parameters,
            "selection": plot_selection,
        }
        ax = drawings[kind](fitted)
    save_picture(ax, output)


def save_picture(ax: Any, output: str | Path) -> None:
    """Write the figure of these axes into a file, completely or not at all, and close it."""
    from mixedgm.pictures.canvas import picture_of

    write_bytes(output, picture_of(ax, Path(output).suffix[1:].lower(), _DPI))


def write_columns(columns: Columns, output: str | Path, formulas: Formulas) -> None:
    """Write columns as .json or .csv, as the ending says, completely or not at all."""
    ending = Path(output).suffix.lower()
    text = _json(columns) if ending == ".json" else _csv(columns, formulas)
    write_bytes(output, f"{text}\n".encode("utf-8", "backslashreplace"))


def write_tables(study: Any, names: Sequence[str], folder: Path, formulas: Formulas) -> None:
    """Write the tables of these names, each a method of the study, and its summary."""
    for name in names:
        write_columns(columns_of(getattr(study, name)()), folder / f"{name}.csv", formulas)
    write_text(folder / "summary.txt", f"{study.summary()}\n")


def make_folder(output: str | Path) -> Path:
    """Make the folder and those above it, unless it is there; return it."""
    folder = Path(output)
    if not str(output):
        raise ParameterError("the output has no name; give the name of a folder.")
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{quoted(str(folder))} is a file; give the name of a folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ParameterError(f"the folder {quoted(str(folder))} cannot be made: {error}") from error
    check_writable(folder / "summary.txt")
    return folder
