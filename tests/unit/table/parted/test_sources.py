"""Sources that fail while they are read: one family of errors, with the place and the cause."""

from decimal import Decimal
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from mixedgm.base.errors import TableError
from mixedgm.table.checks.check import check_table
from mixedgm.table.files import reading
from mixedgm.table.parted.sources import ParquetFiles, file_part, source_of
from mixedgm.table.read import as_frame


def table(n: int = 20) -> pd.DataFrame:
    numbers = np.arange(float(n))
    return pd.DataFrame({"x": numbers, "y": np.cos(numbers), "g": ["a", "b"] * (n // 2)})


def broken(*_: object) -> object:
    raise ZeroDivisionError("a user's function")


def lazy(failure: str) -> pl.LazyFrame:
    frame = pl.from_pandas(table()).lazy()
    return {
        "no such column": lambda: frame.select("x", "nowhere"),
        "schema": lambda: frame.with_columns(pl.col("g") + 1),
        "compute": lambda: frame.with_columns(pl.col("g").cast(pl.Int64)),
        "function": lambda: frame.with_columns(
            pl.col("x").map_elements(broken, return_dtype=pl.Float64)
        ),
        "batches": lambda: frame.map_batches(broken),
    }[failure]()


CAUSES = {
    "no such column": 'ColumnNotFoundError: unable to find column "nowhere"',
    "schema": "InvalidOperationError: arithmetic",
    "compute": "Error: conversion from `str`",
    "function": "a user's function",
    "batches": "a user's function",
}


@pytest.mark.parametrize("failure", CAUSES)
def test_lazy_frames_of_polars(failure):
    with pytest.raises(TableError) as parts:
        check_table(lazy(failure))
    with pytest.raises(TableError) as whole:
        as_frame(lazy(failure))
    assert str(parts.value).startswith("the lazy frame cannot be read: ")
    assert str(whole.value).startswith("the lazy frame of polars cannot be read: ")
    for caught in (parts, whole):
        assert CAUSES[failure] in str(caught.value)
        assert caught.value.__cause__ is not None


def in_files(folder: Path, n: int = 3) -> Path:
    for k in range(n):
        table().to_parquet(folder / f"p{k}.parquet")
    return folder


def test_files_that_are_gone_or_change(tmp_path):
    whole = dataset.dataset(in_files(tmp_path))
    files = source_of(tmp_path)
    (tmp_path / "p1.parquet").unlink()
    with pytest.raises(TableError, match=r"of the dataset cannot be read: .*p1\.parquet"):
        check_table(whole)
    with pytest.raises(TableError, match=r"the file '.*p1\.parquet' cannot be read: .*[Nn]o such"):
        list(files.frames())
    gone = tmp_path / "p1.parquet"
    for ask in (
        ParquetFiles([gone]).units,
        ParquetFiles([gone]).empty,
        lambda: file_part((gone, 0, 1), "pandas", ()),
    ):
        with pytest.raises(TableError, match=r"the file '.*p1\.parquet' cannot be read"):
            ask()


def test_a_file_that_is_cut_short_says_so_after_its_first_rows(tmp_path):
    file = tmp_path / "p.parquet"
    table(40).to_parquet(file, row_group_size=10)
    start = parquet.ParquetFile(file).metadata.row_group(2).column(0).data_page_offset
    content = bytearray(file.read_bytes())
    content[start : start + 20] = b"\xff" * 20
    file.write_bytes(content)
    with pytest.raises(TableError, match=r"the file '.*p\.parquet' cannot be read"):
        list(source_of([file], most_rows=10).frames())


def test_a_column_in_folder_names_and_in_files(tmp_path):
    for year in (2020, 2021):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        table().to_parquet(folder / "p.parquet")
    assert check_table(tmp_path).schema.names == ("x", "y", "g", "year")
    table().assign(year=2021).to_parquet(folder / "p.parquet")
    with pytest.raises(TableError) as caught:
        check_table(tmp_path)
    assert caught.value.findings[0].column == "year"
    assert "year=2021" in str(caught.value)
    assert "year=2020" not in str(caught.value)


def test_a_column_twice_in_a_later_part(tmp_path):
    in_files(tmp_path, 1)
    again = pa.Table.from_pandas(table(), preserve_index=False)
    columns, names = [*again.columns, again["x"]], [*again.column_names, "x"]
    parquet.write_table(pa.table(columns, names=names), tmp_path / "p1.parquet")
    errors = [f for f in check_table(tmp_path).findings if f.severity == "error"]
    assert [error.column for error in errors] == ["x"]
    assert "several columns in" in errors[0].what
    assert "p1.parquet" in errors[0].what
    # Of weights, the second column must not become data.
    named = check_table(tmp_path, sample_weight="x")
    assert "x" in [f.column for f in named.findings if f.severity == "error"]
    in_files(tmp_path, 2)  # where the first part has it, it is said once
    parquet.write_table(pa.table(columns, names=names), tmp_path / "p0.parquet")
    errors = [f for f in check_table(tmp_path).findings if f.severity == "error"]
    assert [error.what for error in errors] == ["2 columns have this name"]


def test_the_same_file_twice(tmp_path):
    files = sorted(in_files(tmp_path, 2).glob("*"))
    other_name = tmp_path / "." / ".." / tmp_path.name / "p0.parquet"
    with pytest.raises(TableError, match=r"the same file more than once: '.*p0\.parquet'"):
        source_of([*files, other_name])
    (tmp_path / "latest.parquet").symlink_to(files[1])
    with pytest.raises(TableError, match=r"the same file more than once: '.*p1\.parquet'"):
        source_of(tmp_path)


@pytest.mark.parametrize("path", ["x" * 5000 + ".parquet", "x" * 5000 + ".csv", "*" * 5000])
def test_very_long_paths(path):
    for ask in (source_of, as_frame, check_table):
        with pytest.raises(TableError, match="cannot be read: File name too long") as caught:
            ask(path)
        assert len(str(caught.value)) < 500
    with pytest.raises(TableError, match="cannot be read: File name too long"):
        source_of([f"{'x' * 5000}.parquet"])


@pytest.mark.parametrize("kind", ["folder", "list", "dataset", "pattern"])
def test_what_needs_all_rows_says_so(tmp_path, kind):
    folder = in_files(tmp_path)
    given = {
        "folder": folder,
        "list": [str(file) for file in folder.glob("*")],
        "dataset": dataset.dataset(folder),
        "pattern": str(folder / "p*.parquet"),
    }[kind]
    with pytest.raises(TableError, match="is a table in parts, and this needs all of its rows in"):
        as_frame(given)


def partitions(change):
    frame = dd.from_pandas(table(), npartitions=2, sort=False)
    return frame.map_partitions(change, meta=frame._meta, enforce_metadata=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (broken, "partition 0 cannot be read: ZeroDivisionError: a user's function"),
        (lambda part: part.drop(columns="y"), "partition 0 does not have .* it lacks 'y'"),
        (lambda part: part.assign(z=1.0), "partition 0 does not have .* it adds 'z'"),
        (lambda part: part["x"], "partition 0 is of type Series, not a frame"),
    ],
)
def test_partitions_of_dask(change, message):
    with pytest.raises(TableError, match=message):
        check_table(partitions(change))


def test_signalling_nans_are_missing_values():
    cells = [Decimal("sNaN"), *map(Decimal, range(19))]
    quiet = [Decimal("NaN"), *cells[1:]]
    for first, second in ((cells, quiet), ([*cells[:-1], "text"], [*quiet[:-1], "text"])):
        told = [check_table(table().assign(d=each)).findings for each in (first, second)]
        assert told[0] == told[1]
        assert "d" in [finding.column for finding in told[0]]


def test_interrupts_memory_and_errors_of_the_package_pass():
    for error in (KeyboardInterrupt(), MemoryError(), TableError("known"), SystemExit(1)):
        with pytest.raises(type(error)) as caught, reading("a file"):
            raise error
        assert caught.value is error
