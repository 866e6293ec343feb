"""The path of a CSV or Parquet file in -> the table of whichever frame library is installed."""

from __future__ import annotations

import csv
import gzip
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from mixedgm.errors import Finding, TableError
from mixedgm.printable import quoted

__all__ = ["MISSING_TEXT", "read_table"]

# The same in every library, so that a file means the same everywhere. "None" is left out on
# purpose: it is an answer in many questionnaires.
MISSING_TEXT = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_NAMES = {",": "commas", "\t": "tabs", ";": "';'", "|": "'|'"}
_ENDINGS = ".csv, .csv.gz, .tsv, .tsv.gz or .parquet"


def read_table(path: str | PathLike[str]) -> Any:
    """Read a table file with pandas, polars or pyarrow, the first of them that is installed.

    Parameters
    ----------
    path : str or path
        A file ending in .csv, .csv.gz, .tsv, .tsv.gz or .parquet. Text files have one line of
        column names; empty fields and NA, N/A, NaN, nan, NULL, null are missing values.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame or pyarrow.Table
        The table.

    Raises
    ------
    TableError
        When the file is not there, is empty, or cannot be read.
    """
    file = Path(fspath(path))
    if file.is_dir():
        raise _refusal(
            f"{quoted(str(file))} is a folder", f"give the path of a file ending in {_ENDINGS}"
        )
    ending = _ending(file)
    if not file.exists():
        raise TableError(
            f"there is no file {quoted(str(file))}. Check the path; it is relative to {_here()}."
        )
    if file.stat().st_size == 0:
        raise TableError(f"the file {quoted(str(file))} is empty.")
    reader = _reader(ending)
    try:
        if ending != ".parquet":
            _check_start(file, _SEPARATORS[ending])
        return reader(file)
    except TableError:
        raise
    except Exception as error:  # each library has its own family of parsing errors
        known = None if ending == ".parquet" else _diagnosis(file, _SEPARATORS[ending])
        if known is not None:
            raise known from error
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise TableError(f"the file {quoted(str(file))} cannot be read: {reason}") from error


def _ending(file: Path) -> str:
    name = file.name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    if ending in _SEPARATORS or (ending == ".parquet" and not name.endswith(".gz")):
        return ending
    raise TableError(f"{quoted(file.name)} is not a table file: its name has to end in {_ENDINGS}.")


def _here() -> str:
    return repr(str(Path.cwd()))


def _refusal(what: str, remedy: str) -> TableError:
    return TableError([Finding(None, what, remedy)])


@contextmanager
def _lines(file: Path, separator: str) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Give the fields of each line that is not blank, with the line's number."""
    opener: Callable[..., Any] = gzip.open if file.suffix.lower() == ".gz" else open
    with opener(file, "rt", encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=separator)
        yield ((reader.line_num, fields) for fields in reader if fields)


def _check_start(file: Path, separator: str) -> None:
    """Look at the first lines of the file itself for what the libraries pass over in silence."""
    with _lines(file, separator) as lines:
        _, header = next(lines, (0, []))
        line, first = next(lines, (0, []))
    if not header:
        raise TableError(f"the file {quoted(str(file))} has no line of column names.")
    _check_separator(file, header, separator)
    repeated = [
        Finding(
            name, f"{count} columns have this name in {quoted(file.name)}", "give each its own name"
        )
        for name, count in Counter(header).items()
        if count > 1
    ]
    if repeated:
        raise TableError(repeated)
    if len(first) > len(header):  # pandas would take the first fields for names of the rows
        raise _long_line(file, line, first, header)


def _check_separator(file: Path, header: list[str], separator: str) -> None:
    """Refuse one long name that is really several names with something else between them."""
    others = [each for each in _NAMES if each != separator and each in header[0]]
    if len(header) > 1 or not others:
        return
    found = max(others, key=header[0].count)
    what = (
        f"the file {quoted(str(file))} looks separated by {_NAMES[found]}, not by "
        f"{_NAMES[separator]}: "
        f"its line of column names reads {quoted(header[0])}"
    )
    rename = "".join(f", name it {ending}" for ending, s in _SEPARATORS.items() if s == found)
    remedy = f"save it with {_NAMES[separator]}{rename}, or read it yourself and pass the frame"
    raise _refusal(what, remedy)


def _long_line(file: Path, line: int, fields: list[str], header: list[str]) -> TableError:
    names = "1 column name" if len(header) == 1 else f"{len(header)} column names"
    what = (
        f"line {line} of the file {quoted(str(file))} has {len(fields)} fields, but "
        f"there are {names}"
    )
    return _refusal(what, "name every column, and put text that holds the separator in quotes")


def _diagnosis(file: Path, separator: str) -> TableError | None:
    """Return why a library could not read a text file, in our words, where we can tell."""
    try:
        with _lines(file, separator) as lines:
            _, header = next(lines, (0, []))
            for line, fields in lines:
                if len(fields) > len(header):
                    return _long_line(file, line, fields, header)
    except UnicodeError:
        return _not_utf8(file)
    except Exception:  # the library's own reason will have to do
        return None
    return None


def _not_utf8(file: Path) -> TableError:
    return _refusal(f"the file {quoted(str(file))} is not UTF-8 text", "save it as UTF-8")


def _reader(ending: str) -> Callable[[Path], Any]:
    """Return the reading function of the first library that is installed."""
    parquet = ending == ".parquet"
    if _installed("pandas") and (not parquet or _installed("pyarrow")):
        return lambda file: _with_pandas(file, ending)
    if _installed("polars"):
        return lambda file: _with_polars(file, ending)
    if _installed("pyarrow"):
        return lambda file: _with_pyarrow(file, ending)
    raise TableError(
        "reading files needs a data frame library, and none is installed. "
        'Install one with: pip install "mixedgm[frames]"'
    )


def _installed(library: str) -> bool:
    return find_spec(library) is not None


def _with_pandas(file: Path, ending: str) -> Any:
    import pandas as pd

    if ending == ".parquet":
        return pd.read_parquet(file)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # fields that would be lost
        return pd.read_csv(
            file,
            sep=_SEPARATORS[ending],
            index_col=False,
            na_values=list(MISSING_TEXT),
            keep_default_na=False,
            low_memory=False,
        )


def _with_polars(file: Path, ending: str) -> Any:
    import polars as pl

    if ending == ".parquet":
        return pl.read_parquet(file)
    return pl.read_csv(
        file,
        separator=_SEPARATORS[ending],
        null_values=list(MISSING_TEXT),
        infer_schema_length=None,
    )


def _with_pyarrow(file: Path, ending: str) -> Any:
    if ending == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(file)
    from pyarrow import csv as arrow_csv
    from pyarrow import types

    table = arrow_csv.read_csv(
        file,
        parse_options=arrow_csv.ParseOptions(delimiter=_SEPARATORS[ending]),
        convert_options=arrow_csv.ConvertOptions(
            null_values=list(MISSING_TEXT), strings_can_be_null=True
        ),
    )
    if any(types.is_binary(each) for each in table.schema.types):  # what is no text to pyarrow
        raise _not_utf8(file)
    return table
