"""A file of this package and its level orders -> a frame of the library the caller has."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Literal, get_args

from mixedgm.errors import MixedGMError, ParameterError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from narwhals.typing import IntoDataFrame

Library = Literal["pandas", "polars", "pyarrow"]
FrameName = Literal["auto"] | Library

_INSTALL = 'pip install "mixedgm[frames]"'


@dataclass(frozen=True)
class BundledTable:
    """A table shipped with the package.

    Attributes
    ----------
    file : str
        Name under ``datasets/files``; Parquet, or CSV packed with gzip.
    levels : mapping of str to tuple of str
        The categorical columns and the order of their levels. Stated here because CSV has no
        levels and polars does not keep the order that a Parquet file gives them.
    """

    file: str
    levels: Mapping[str, tuple[str, ...]]

    @property
    def is_parquet(self) -> bool:
        """Whether the file is Parquet rather than CSV."""
        return self.file.endswith(".parquet")

    def content(self) -> BytesIO:
        """The file's bytes, unpacked."""
        packed = files("mixedgm.datasets").joinpath("files", self.file).read_bytes()
        return BytesIO(gzip.decompress(packed) if self.file.endswith(".gz") else packed)


def read_bundled(table: BundledTable, frame: FrameName) -> IntoDataFrame:
    """Read a bundled table with the library that ``frame`` names.

    Parameters
    ----------
    table : BundledTable
        What to read.
    frame : {"auto", "pandas", "polars", "pyarrow"}
        The library of the returned frame; "auto" takes the first of them that is installed.

    Raises
    ------
    ParameterError
        If ``frame`` is none of these names.
    MixedGMError
        If the library, or what it needs to read the file, is not installed.
    """
    if frame not in ("auto", *get_args(Library)):
        raise ParameterError(
            f"frame must be 'auto', 'pandas', 'polars' or 'pyarrow'. Got {frame!r} instead."
        )
    return _READERS[_choose(table, frame)](table)


def _choose(table: BundledTable, frame: FrameName) -> Library:
    """Name an installed library that can read the table, as ``frame`` wishes."""
    candidates: tuple[Library, ...] = get_args(Library) if frame == "auto" else (frame,)
    missing = {library: _missing(table, library) for library in candidates}
    for library, packages in missing.items():
        if not packages:
            return library
    if frame == "auto":
        raise MixedGMError(
            f"Reading {table.file} needs pandas with pyarrow, or polars, or pyarrow, and none of "
            f"them is installed. To fix: {_INSTALL}"
        )
    remedy = "pip install polars" if frame == "polars" else _INSTALL
    raise MixedGMError(
        f"frame={frame!r} cannot read {table.file}: {' and '.join(missing[frame])} not installed. "
        f"To fix: {remedy}"
    )


def _missing(table: BundledTable, library: Library) -> list[str]:
    """List the packages that reading the table with this library lacks."""
    needs: list[str] = [library]
    if library == "pandas" and table.is_parquet:
        needs.append("pyarrow")
    return [package for package in needs if find_spec(package) is None]


def _read_pandas(table: BundledTable) -> pd.DataFrame:
    import pandas as pd

    content = table.content()
    frame = pd.read_parquet(content) if table.is_parquet else pd.read_csv(content)
    return frame.astype({c: pd.CategoricalDtype(list(v)) for c, v in table.levels.items()})


def _read_polars(table: BundledTable) -> pl.DataFrame:
    import polars as pl

    content = table.content()
    frame = pl.read_parquet(content) if table.is_parquet else pl.read_csv(content)
    return frame.with_columns(
        pl.col(name).cast(pl.String).cast(pl.Enum(levels)) for name, levels in table.levels.items()
    )


def _read_pyarrow(table: BundledTable) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    if table.is_parquet:
        from pyarrow.parquet import read_table

        frame = read_table(table.content())
    else:
        from pyarrow.csv import ConvertOptions, read_csv

        # Without this option an empty cell of a text column is an empty string.
        options = ConvertOptions(strings_can_be_null=True)
        frame = read_csv(table.content(), convert_options=options)
    for name, levels in table.levels.items():
        values = frame.column(name).cast(pa.string()).combine_chunks()
        codes = pc.index_in(values, value_set=pa.array(levels)).cast(pa.int8())
        column = pa.DictionaryArray.from_arrays(codes, pa.array(levels))
        frame = frame.set_column(frame.schema.get_field_index(name), name, column)
    # The file's note to pandas would describe the columns as they were before.
    return frame.replace_schema_metadata(None)


_READERS: dict[Library, Callable[[BundledTable], IntoDataFrame]] = {
    "pandas": _read_pandas,
    "polars": _read_polars,
    "pyarrow": _read_pyarrow,
}
