"""Columns that name rows, numbers stored as text, stray words and row numbers."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mixedgm.base.errors import ParameterError, TableError, TableWarning
from mixedgm.table.checks.check import check_table
from mixedgm.table.decode import decode
from mixedgm.table.encode import apply, learn
from mixedgm.table.schema import Schema

RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=1000)


def about(column, **options):
    """Return the schema, and the findings about the column."""
    checked = check_table(pd.DataFrame({"v": column, "noise": NOISE[: len(column)]}), **options)
    return checked.schema, [f for f in checked.findings if f.column == "v"]


def test_identifiers_are_left_out_with_a_warning_that_says_how_to_keep_them():
    schema, (found,) = about([f"person {k}" for k in range(12)])
    assert schema.names == ("noise",)
    assert schema.table_names == ("v", "noise")
    assert [(c.name, c.position) for c in schema.left_out] == [("v", 0)]
    assert found.severity == "warning"
    assert str(found) == (
        "column 'v': looks like an identifier or free text, so it is left out: 12 distinct texts "
        'in 12 rows. To change it: types={"v": "categorical"} keeps it as a category '
        "(leave column 'v' out to silence this warning)"
    )
    schema, findings = about([f"person {k}" for k in range(12)], types={"v": "categorical"})
    assert schema.names == ("v", "noise")
    assert findings == []


@pytest.mark.parametrize(
    ("n_levels", "n_rows", "declared", "out"),
    [
        (5, 5, False, False),
        (6, 11, False, True),
        (6, 12, False, False),
        (50, 100, False, False),
        (51, 254, False, True),
        (51, 255, False, False),
        (50, 60, True, False),
        (51, 60, True, True),
    ],
)
def test_the_rule(n_levels, n_rows, declared, out):
    column = pd.Series([f"k{k % n_levels}" for k in range(n_rows)])
    schema, _ = about(column.astype("category") if declared else column)
    assert bool(schema.left_out) == out


def test_many_levels_with_enough_rows_stay_with_a_warning():
    schema, (found,) = about([f"k{k % 51}" for k in range(1000)])
    assert len(schema.columns[0].levels) == 51
    assert "many levels for a category: 51 distinct texts in 1,000 rows" in str(found)


def test_only_rows_with_a_value_and_a_weight_count():
    column = [f"k{k}" if k < 20 else None for k in range(1000)]
    schema, _ = about(column)
    assert schema.left_out
    column = [f"k{k}" for k in range(20)] + ["a", "b"] * 490
    schema, _ = about(column, sample_weight=np.r_[np.ones(20), np.zeros(980)])
    assert schema.left_out
    assert not about(column)[0].left_out


@pytest.mark.parametrize(
    ("library", "line"),
    [
        (pd.DataFrame, 'table["v"] = pd.to_numeric(table["v"], errors="coerce") turns'),
        (pl.DataFrame, 'table = table.with_columns(pl.col("v").cast(pl.Float64, strict=False)) t'),
        (pa.table, "converting it to float, with missing values for what is not a number, turns"),
    ],
)
def test_stray_words_among_numbers_are_named_with_the_line_that_helps(library, line):
    column = [f"{value:.3f}" for value in NOISE]
    column[3] = column[500] = "n.a."
    column[7] = "unknown"
    table = library({"v": column, "noise": NOISE})
    checked = check_table(table)
    (found,) = checked.findings
    assert "except for 2 words: 'n.a.' (2 rows), 'unknown' (1 row)" in found.what
    assert found.remedy.startswith(line)
    assert checked.schema.left_out[0].reason == "numbers, except for 2 words"


def test_the_line_that_helps_does():
    column = [f"{value:.3f}" for value in NOISE]
    column[3] = "n.a."
    table = pd.DataFrame({"v": column, "noise": NOISE})
    (found,) = check_table(table).findings
    exec(found.remedy.partition(" turns it")[0], {"pd": pd, "table": table})
    again = check_table(table)
    assert again.schema.columns[0].kind == "continuous"
    assert again.findings[0].what == "1 missing value (NaN or null)"
    table = pl.DataFrame({"v": column, "noise": NOISE})
    (found,) = check_table(table).findings
    names = {"pl": pl, "table": table}
    exec(found.remedy.partition(" turns it")[0], names)
    assert check_table(names["table"]).schema.columns[0].kind == "continuous"


def test_a_few_codes_and_a_word_are_a_category():
    schema, findings = about(["1", "2", "3", "n.a."] * 50)
    assert schema.columns[0].levels == ("1", "2", "3", "n.a.")
    assert findings == []
    ages = [str(20 + k % 30) for k in range(990)] + ["unknown"] * 10
    schema, (found,) = about(ages)
    assert len(schema.columns[0].levels) == 31
    assert "'unknown' (10 rows); so it is text, and taken as a category of 31 levels" in found.what


def test_numbers_stored_as_text():
    schema, (found,) = about([f"{k}.25" for k in range(12)])
    assert schema.left_out[0].reason == "numbers stored as text"
    assert "its 12 distinct texts in 12 rows are numbers, for example '0.25'" in found.what
    schema, (found,) = about([f"{k % 51}" for k in range(1000)])
    assert schema.left_out
    assert about([f"{k % 20}" for k in range(1000)])[1] == []


def test_a_table_of_identifiers_only_is_an_error():
    with pytest.raises(TableError, match="no column is left to model: 'v' left out"):
        learn(pd.DataFrame({"v": [f"p{k}" for k in range(30)]}))


def test_the_schema_shows_and_stores_what_is_left_out():
    schema, _ = about([f"person {k}" for k in range(12)])
    assert str(schema).splitlines()[1].split()[:3] == ["v", "left", "out"]
    assert "identifier or free text: 12 levels in 12 rows" in schema._repr_html_()
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    without = {"columns": schema.to_dict()["columns"]}  # as older files have it
    assert Schema.from_dict(without).left_out == ()
    with pytest.raises(
        ParameterError, match=r'left out of the model .* types=\{"v": "categorical"'
    ):
        schema.node_index("v")


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table, "rows"])
def test_new_data_may_have_or_lack_it(library):
    columns = {"a": NOISE[:40], "id": [f"p{k}" for k in range(40)], "b": ["x", "y"] * 20}
    make = (
        library if library != "rows" else lambda c: list(map(list, zip(*c.values(), strict=True)))
    )
    with pytest.warns(TableWarning, match="left out"):
        design, _ = learn(make(columns))
    fewer = {name: values for name, values in columns.items() if name != "id"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data in (columns, fewer):
            again = apply(make(data), design.schema)
            np.testing.assert_array_equal(again.numbers, design.numbers)
            np.testing.assert_array_equal(again.codes, design.codes)
    back = decode(design.schema, design.numbers, design.codes, "pandas")
    assert back.shape == (40, 2)


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        (np.arange(50), True),
        (np.arange(1, 51), True),
        (RNG.permutation(50), True),
        (RNG.permutation(50) + 1, True),
        (np.arange(1000, 1050), True),
        (RNG.permutation(50) + 1000, False),
        (np.arange(50) + 0.5, False),
        (np.arange(0, 100, 2), False),
        (np.r_[np.arange(49), 48], False),
        (np.r_[0, 0.5, np.arange(2, 50)], False),
    ],
)
def test_row_numbers(numbers, found):
    _, findings = about(numbers)
    assert bool(findings) == found
    if found:
        assert findings[0].severity == "warning"
        assert findings[0].what.startswith("looks like row numbers: the whole numbers ")
        assert about(numbers, types={"v": "continuous"})[1] == []
