"""The path of a CSV or Parquet file in -> the table of whichever frame library is installed."""

from __future__ import annotations

import codecs
import csv
import gzip
import math
import stat
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from mixedgm.base.errors import Finding, MixedGMError, TableError, TableWarning, level_of_caller
from mixedgm.base.printable import bounded, few, quoted

# The same in every library, so that a file means the same everywhere. "None" is left out on
# purpose: it is an answer in many questionnaires.
MISSING_TEXT = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_NAMES = {",": "commas", "\t": "tabs", ";": "';'", "|": "'|'"}
_LONGEST_PATH = 300
_LONGEST_REASON = 300
_LONGEST_FIELD = 2**31 - 1
_ENDINGS = ".csv, .csv.gz, .tsv, .tsv.gz or .parquet"


def read_table(path: str | PathLike[str]) -> Any:
    """Read a table file with pandas, polars or pyarrow, the first of them that is installed.

    Its name ends in .csv, .csv.gz, .tsv, .tsv.gz or .parquet. Text files have one line of column
    names; empty fields and NA, N/A, NaN, nan, NULL, null are missing values. A file that is not
    there, is empty, or cannot be read raises TableError.
    """
    file = Path(fspath(path))
    ending = _checked(file)
    read = {"pandas": _with_pandas, "polars": _with_polars, "pyarrow": _with_pyarrow}
    library = _library(ending)
    try:
        if ending != ".parquet":
            _check_start(file, _SEPARATORS[ending])
        return read[library](file, ending)
    except TableError:
        raise
    except Exception as error:  # each library has its own family of parsing errors
        known = None if ending == ".parquet" else _diagnosis(file, _SEPARATORS[ending])
        raise known or _unreadable(f"the file {path_name(file)}", error) from error


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise TableError, with the cause, for whatever goes wrong while `what` is read.

    Errors of this package, interrupts and a lack of memory pass unchanged.

    Examples
    --------
    >>> with reading("partition 3"):
    ...     {}["age"]
    Traceback (most recent call last):
        ...
    mixedgm.base.errors.TableError: partition 3 cannot be read: KeyError: 'age'
    """
    try:
        yield
    except (MixedGMError, MemoryError):
        raise
    except BaseException as error:
        # The panics of polars are no Exceptions, and neither are interrupts.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise _unreadable(what, error) from error


def _checked(file: Path) -> str:
    """Return the ending of a file that is there, and has something in it."""
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        _ending(file)
        here = path_name(Path.cwd())
        raise TableError(
            f"there is no file {path_name(file)}. Check the path; it is relative to {here}."
        ) from None
    except (OSError, ValueError) as error:  # no permission, a name too long, a NUL in it
        raise _unreadable(f"the file {path_name(file)}", error) from error
    if stat.S_ISDIR(mode):
        raise _refusal(
            f"{path_name(file)} is a folder", f"give the path of a file ending in {_ENDINGS}"
        )
    ending = _ending(file)
    if not stat.S_ISREG(mode):  # a pipe can be read only once, and may never end
        raise _refusal(f"{path_name(file)} is not a regular file", "save its content in a file")
    if file.stat().st_size == 0:
        raise TableError(f"the file {path_name(file)} is empty.")
    return ending


def path_name(file: str | PathLike[str]) -> str:
    """Return a path in quotes, shortened where it is long."""
    return quoted(fspath(file), _LONGEST_PATH)


def _unreadable(what: str, error: BaseException) -> TableError:
    name, reason = type(error).__name__, str(error).strip().partition("\n")[0]
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror
    else:
        reason = f"{name}: {reason}" if reason else name
    return TableError(f"{what} cannot be read: {bounded(reason, _LONGEST_REASON)}")


def _ending(file: Path) -> str:
    name = file.name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    if ending in _SEPARATORS or (ending == ".parquet" and not name.endswith(".gz")):
        return ending
    name = quoted(file.name, _LONGEST_PATH)
    raise TableError(f"{name} is not a table file: its name has to end in {_ENDINGS}.")


def _refusal(what: str, remedy: str) -> TableError:
    return TableError([Finding(None, what, remedy)])


def _opened(file: Path, mode: str, **options: Any) -> Any:
    opener: Callable[..., Any] = gzip.open if file.suffix.lower() == ".gz" else open
    return opener(file, mode, **options)


@contextmanager
def _lines(file: Path, separator: str) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Yield the fields of each line that is not blank, with the line's number."""
    usual = csv.field_size_limit(_LONGEST_FIELD)  # 131,072 by default; the libraries have no limit
    try:
        with _opened(file, "rt", encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, delimiter=separator)
            yield ((reader.line_num, fields) for fields in reader if fields)
    finally:
        csv.field_size_limit(usual)


def _check_start(file: Path, separator: str) -> None:
    """Look at the first lines of the file itself for what the libraries silently accept."""
    with _lines(file, separator) as lines:
        _, header = next(lines, (0, []))
        line, first = next(lines, (0, []))
    if not header:
        raise TableError(f"the file {path_name(file)} has no line of column names.")
    _check_separator(file, header, separator)
    repeated = {name: count for name, count in Counter(header).items() if count > 1}
    if repeated:
        what = f"columns have this name in {quoted(file.name, _LONGEST_PATH)}"
        remedy = "give each its own name"
        raise TableError(Finding(name, f"{n} {what}", remedy) for name, n in repeated.items())
    if len(first) > len(header):  # pandas would take the first fields for names of the rows
        raise _long_line(file, line, first, header)
    if _looks_like_data(header):
        what = (
            f"the first line of {path_name(file)} was taken as column names, but reads like data: "
        )
        remedy = "add a line of column names at the top, if there is none"
        finding = Finding(None, what + few(header, 4), remedy, "warning")
        warnings.warn(TableWarning(finding), stacklevel=level_of_caller())


def _looks_like_data(header: list[str]) -> bool:
    """Whether names are all numbers, or at least half of them with one that is not whole."""
    numbers = [number for name in header if (number := _number(name)) is not None]
    whole = all(number.is_integer() for number in numbers)
    return len(numbers) == len(header) or (2 * len(numbers) >= len(header) and not whole)


def _number(name: str) -> float | None:
    try:
        number = float(name)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _check_separator(file: Path, header: list[str], separator: str) -> None:
    """Refuse one long name that is really several names with something else between them."""
    others = [each for each in _NAMES if each != separator and each in header[0]]
    if len(header) > 1 or not others:
        return
    actual = max(others, key=header[0].count)
    what = (
        f"the file {path_name(file)} looks separated by {_NAMES[actual]}, not by "
        f"{_NAMES[separator]}: its line of column names reads {quoted(header[0])}"
    )
    rename = "".join(f", name it {ending}" for ending, s in _SEPARATORS.items() if s == actual)
    remedy = f"save it with {_NAMES[separator]}{rename}, or read it yourself and pass the frame"
    raise _refusal(what, remedy)


def _long_line(file: Path, line: int, fields: list[str], header: list[str]) -> TableError:
    names = "1 column name" if len(header) == 1 else f"{len(header)} column names"
    what = (
        f"line {line} of the file {path_name(file)} has {len(fields)} fields, but there are {names}"
    )
    return _refusal(what, "name every column, and put text that holds the separator in quotes")


def _diagnosis(file: Path, separator: str) -> TableError | None:
    """Return a plain reason why a library could not read a text file, where it is known."""
    try:
        with _lines(file, separator) as lines:
            start, header = next(lines, (0, []))
            end = start
            for line, fields in lines:
                if len(fields) > len(header):
                    return _long_line(file, line, fields, header)
                start, end = end + 1, line
        with _opened(file, "rb") as content:
            open_quote = sum(part.count(b'"') for part in content) % 2
    except UnicodeError:
        return _not_utf8(file)
    except Exception:  # the library's own reason will have to do
        return None
    if not open_quote:
        return None
    what = f"the quotes that open in line {start:,} of the file {path_name(file)} are never closed"
    return _refusal(what, "close them, or write a quote inside text twice")


def _not_utf8(file: Path) -> TableError:
    """Return where a file stops being UTF-8 text, and what it seems to be."""
    with _opened(file, "rb") as content:
        start = content.read(4)
    if start.startswith(b"\x1f\x8b"):
        remedy = f"name it {file.name}.gz, or unpack it"
        return _refusal(f"the file {path_name(file)} is compressed, not text", remedy)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _refusal(f"the file {path_name(file)} is UTF-16 text, not UTF-8", "save it as UTF-8")
    with _opened(file, "rb") as content:
        for number, line in enumerate(content, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                where = f"in line {number:,}, {quoted(line[max(error.start - 10, 0) :][:20])}"
                return _refusal(
                    f"the file {path_name(file)} is not UTF-8 text: {where}", "save it as UTF-8"
                )
    return _refusal(f"the file {path_name(file)} is not UTF-8 text", "save it as UTF-8")


def _library(ending: str) -> str:
    """Return the first library that is installed, and able to read such a file."""
    for library in ("pandas", "polars", "pyarrow"):
        able = library != "pandas" or ending != ".parquet" or find_spec("pyarrow") is not None
        if able and find_spec(library) is not None:
            return library
    raise TableError(
        "reading files needs a data frame library, and none is installed. "
        'Install one with: pip install "mixedgm[frames]"'
    )


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
    if any(map(types.is_binary, table.schema.types)):  # what pyarrow cannot read as text
        raise _not_utf8(file)
    return table
