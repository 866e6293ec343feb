"""A column of text or of declared categories in -> level codes, by its own library's means."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from mixedgm.table.read import RawColumn

__all__ = ["category_codes", "text_codes"]

Codes = NDArray[np.int32]


def text_codes(column: RawColumn) -> tuple[Codes, list[str]]:
    """Return codes into a list of distinct strings in no particular order."""
    if not isinstance(column, nw.Series):
        found, codes = np.unique(column, return_inverse=True)
        return codes.astype(np.int32), [str(each) for each in found]
    native: Any = column.to_native()
    if column.implementation.is_polars():
        levels = native.drop_nulls().unique().sort().to_list()
        return _polars_codes(native, levels), levels
    if column.implementation.is_pyarrow():
        return _arrow_codes(native)[:2]
    factorized, uniques = native.factorize(use_na_sentinel=True)
    return factorized.astype(np.int32), [str(each) for each in uniques]


def category_codes(column: RawColumn) -> tuple[Codes, list[Any], bool]:
    """Return codes into the categories that the frame declares, and whether they are ordered."""
    if not isinstance(column, nw.Series):
        raise TypeError("an array has no declared categories")
    native: Any = column.to_native()
    if column.implementation.is_polars():
        # A polars Categorical shares one pool of strings with all other columns and sorts by text,
        # so its levels are the strings in use, sorted. An Enum declares its levels.
        if column.dtype == nw.Enum:
            categories = native.dtype.categories.to_list()
        else:
            native = native.cast(nw.dependencies.get_polars().String)
            categories = native.drop_nulls().unique().sort().to_list()
        return _polars_codes(native, categories), categories, False
    if column.implementation.is_pyarrow():
        return _arrow_codes(native)
    if str(native.dtype) == "category":
        codes = native.cat.codes.to_numpy().astype(np.int32)
        return codes, native.cat.categories.tolist(), bool(native.cat.ordered)
    return _arrow_codes(column.to_arrow())  # pandas holding an arrow dictionary


def _polars_codes(series: Any, levels: list[str]) -> Codes:
    polars = nw.dependencies.get_polars()
    if not levels:
        return np.full(len(series), -1, dtype=np.int32)
    physical = series.cast(polars.Enum(levels)).to_physical().cast(polars.Int32)
    return np.asarray(physical.fill_null(-1).to_numpy(), dtype=np.int32)


def _arrow_codes(column: Any) -> tuple[Codes, list[Any], bool]:
    pyarrow = nw.dependencies.get_pyarrow()
    types = pyarrow.types
    if not types.is_dictionary(column.type):
        if not (types.is_string(column.type) or types.is_large_string(column.type)):
            column = column.cast(pyarrow.large_string())
        column = column.dictionary_encode()
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if isinstance(
        column, pyarrow.ChunkedArray
    ):  # some versions keep a table without chunks chunked
        return np.empty(0, dtype=np.int32), [], False
    indices = column.indices.cast(pyarrow.int32()).fill_null(-1)
    codes = np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int32)
    return codes, column.dictionary.to_pylist(), bool(column.type.ordered)
