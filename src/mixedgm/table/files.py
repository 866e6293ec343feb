"""The path of a CSV or Parquet file in -> the table of whichever frame library is installed."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from mixedgm.errors import Finding, TableError

__all__ = ["MISSING_TEXT", "read_table"]

# The same in every library, so that a file means the same everywhere. "None" is left out on
# purpose: it is an answer in many questionnaires.
MISSING_TEXT = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
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
    ending = _ending(file)
    if not file.exists():
        raise TableError(
            f"there is no file {str(file)!r}. Check the path; it is relative to {_here()}."
        )
    if file.is_dir():
        raise TableError(f"{str(file)!r} is a folder, not a file ending in {_ENDINGS}.")
    if file.stat().st_size == 0:
        raise TableError(f"the file {str(file)!r} is empty.")
    reader = _reader(ending)
    try:
        if ending != ".parquet":
            _check_header(file, _SEPARATORS[ending])
        return reader(file)
    except TableError:
        raise
    except Exception as error:  # each library has its own family of parsing errors
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise TableError(f"the file {str(file)!r} cannot be read: {reason}") from error


def _ending(file: Path) -> str:
    name = file.name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    if ending in _SEPARATORS or (ending == ".parquet" and not name.endswith(".gz")):
        return ending
    raise TableError(f"{file.name!r} is not a table file: its name has to end in {_ENDINGS}.")


def _here() -> str:
    return repr(str(Path.cwd()))


def _check_header(file: Path, separator: str) -> None:
    """Report repeated names from the file itself: the libraries rename them silently."""
    opener: Callable[..., Any] = gzip.open if file.suffix.lower() == ".gz" else open
    with opener(file, "rt", encoding="utf-8-sig", newline="") as lines:
        header = next(csv.reader(lines, delimiter=separator), [])
    if not header:
        raise TableError(f"the file {str(file)!r} has no line of column names.")
    repeated = [
        Finding(name, f"{count} columns have this name in {file.name!r}", "give each its own name")
        for name, count in Counter(header).items()
        if count > 1
    ]
    if repeated:
        raise TableError(repeated)


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
    return pd.read_csv(
        file,
        sep=_SEPARATORS[ending],
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

    return arrow_csv.read_csv(
        file,
        parse_options=arrow_csv.ParseOptions(delimiter=_SEPARATORS[ending]),
        convert_options=arrow_csv.ConvertOptions(
            null_values=list(MISSING_TEXT), strings_can_be_null=True
        ),
    )
