"""The bundled tables: contents, level orders, frame libraries, messages."""

import sys
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mixedgm.base.errors import MixedGMError, ParameterError
from mixedgm.datasets import bundled, load_penguins, load_taxunits, load_wage

LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
LOADERS: dict[str, Callable[..., Any]] = {
    "wage": load_wage,
    "taxunits": load_taxunits,
    "penguins": load_penguins,
}
TABLES = {"wage": bundled.WAGE, "taxunits": bundled.TAXUNITS, "penguins": bundled.PENGUINS}


@pytest.fixture(params=LOADERS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("library", LIBRARIES)
def test_frame_has_the_type_that_was_asked_for(name: str, library: str) -> None:
    assert type(LOADERS[name](frame=library)) is LIBRARIES[library]


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_libraries_give_equal_tables(name: str, library: str) -> None:
    expected = nw.from_native(LOADERS[name](frame="pandas"))
    actual = nw.from_native(LOADERS[name](frame=library))
    assert actual.columns == expected.columns
    for column in expected.columns:
        left, right = actual[column], expected[column]
        assert left.null_count() == right.null_count(), column
        if column in TABLES[name].levels:
            values = [None if pd.isna(value) else value for value in right.to_list()]
            assert left.to_list() == values, column
        else:
            np.testing.assert_array_equal(left.to_numpy(), right.to_numpy(), err_msg=column)


def test_every_library_keeps_the_level_order(name: str) -> None:
    for column, levels in TABLES[name].levels.items():
        assert tuple(LOADERS[name]("pandas")[column].cat.categories) == levels
        assert tuple(LOADERS[name]("polars")[column].dtype.categories) == levels
        chunk = LOADERS[name]("pyarrow")[column].chunk(0)
        assert tuple(chunk.dictionary.to_pylist()) == levels


@pytest.mark.parametrize("parquet", ["wage", "taxunits"])
def test_stated_levels_are_those_of_the_file(parquet: str) -> None:
    path = files("mixedgm.datasets") / "files" / TABLES[parquet].file
    table = pq.read_table(path)
    stored = {
        field.name: tuple(table[field.name].chunk(0).dictionary.to_pylist())
        for field in table.schema
        if pa.types.is_dictionary(field.type)
    }
    assert dict(TABLES[parquet].levels) == stored


@pytest.mark.parametrize(
    ("name", "shape", "missing"),
    [("wage", (3000, 9), 0), ("taxunits", (176_982, 12), 0), ("penguins", (344, 8), 19)],
    indirect=["name"],
)
def test_size_and_missing_values(name: str, shape: tuple[int, int], missing: int) -> None:
    frame = LOADERS[name]("pandas")
    assert frame.shape == shape
    assert int(frame.isna().sum().sum()) == missing


def test_every_level_has_rows(name: str) -> None:
    frame = LOADERS[name]("pandas")
    for column in TABLES[name].levels:
        assert frame[column].value_counts(sort=False).min() > 0, column


def test_other_columns_are_numbers(name: str) -> None:
    frame = LOADERS[name]("pandas")
    others = frame.drop(columns=list(TABLES[name].levels))
    assert others.shape[1] >= 2
    assert all(pd.api.types.is_numeric_dtype(dtype) for dtype in others.dtypes)


def test_auto_prefers_pandas_then_polars_then_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(load_wage(), pd.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(load_wage(), pl.DataFrame)
    monkeypatch.setitem(sys.modules, "polars", None)
    assert isinstance(load_wage(), pa.Table)


def test_pandas_without_pyarrow_reads_csv_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert isinstance(load_wage(), pl.DataFrame)
    with pytest.raises(MixedGMError, match=r"pyarrow not installed.*mixedgm\[frames\]"):
        load_wage(frame="pandas")


def test_no_library_at_all_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in LIBRARIES:
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MixedGMError, match=r'pip install "mixedgm\[frames\]"'):
        load_penguins()
    with pytest.raises(MixedGMError, match=r"'polars'.*pip install polars"):
        load_penguins(frame="polars")


def test_unknown_frame_is_named() -> None:
    with pytest.raises(ParameterError, match="'pandas', 'polars' or 'pyarrow'. Got 'spark'"):
        load_wage(frame="spark")  # type: ignore[arg-type]
