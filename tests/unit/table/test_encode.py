"""Learning a Design, applying a schema to new data, and decoding."""

# ruff: noqa: E501 (messages are quoted whole)

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

import mixedgm.base.errors
from mixedgm.base.errors import ParameterError, TableError, TableWarning
from mixedgm.table.decode import decode
from mixedgm.table.encode import Design, apply, code_dtype, learn
from mixedgm.table.schema import Column, Schema

TABLE = pd.DataFrame(
    {
        "sex": ["F", "M", "M", "F", "F"],
        "age": [31, 42, 53, 60, 17],
        "stage": pd.Categorical(["i", "iii", "ii", "i", "ii"], ["i", "ii", "iii"], ordered=True),
        "wage": [1.5, 2.5, 9.0, 3.0, 1.0],
    }
)
SOURCE = str(Path(mixedgm.base.errors.__file__).parents[2])
TYPES = {"age": "continuous", "stage": "categorical"}


@pytest.fixture(scope="module")
def design():
    return learn(TABLE, types=TYPES)[0]


def test_design(design):
    assert [column.name for column in design.schema.nodes] == ["age", "wage", "sex", "stage"]
    assert design.numbers.tolist() == [[31, 1.5], [42, 2.5], [53, 9], [60, 3], [17, 1]]
    assert design.codes.tolist() == [[0, 0], [1, 2], [1, 1], [0, 0], [0, 1]]
    assert design.numbers.flags.c_contiguous
    assert design.codes.flags.c_contiguous
    assert (design.numbers.dtype, design.codes.dtype) == (np.float64, np.uint8)
    assert design.weights is None
    assert design.kept is None
    assert (design.n_rows, design.total_weight) == (5, 5.0)


def test_the_user_s_array_is_not_shared():
    X = np.random.default_rng(0).normal(size=(5, 1))
    before = X.copy()
    design, _ = learn(X)
    design.numbers[:] = 0
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("n_levels", "dtype"), [(2, np.uint8), (256, np.uint8), (257, np.uint16), (65537, np.int32)]
)
def test_codes_have_the_smallest_type(n_levels, dtype):
    schema = Schema((Column("a", "categorical", levels=tuple(range(n_levels))),))
    assert code_dtype(schema) is dtype


def test_many_levels_keep_their_codes():
    levels = [f"{k:04d}" for k in range(300)]
    design, _ = learn(pd.DataFrame({"v": levels}), types={"v": "categorical"})
    assert design.codes.ravel().tolist() == list(range(300))


@pytest.mark.parametrize(
    "rows",
    [[3, 0, 0], np.array([True, False, False, True, True]), slice(1, None, 2), np.array([], int)],
)
def test_take(design, rows):
    weighted = Design(design.schema, design.numbers, design.codes, np.arange(1.0, 6.0))
    taken = weighted.take(rows)
    chosen = np.arange(5)[rows]
    assert taken.numbers.tolist() == design.numbers[chosen].tolist()
    assert taken.codes.tolist() == design.codes[chosen].tolist()
    assert taken.weights.tolist() == (chosen + 1.0).tolist()
    assert taken.kept.tolist() == chosen.tolist()
    assert taken.numbers.flags.c_contiguous
    assert taken.codes.flags.c_contiguous


def test_transformed_columns_hold_normal_scores():
    design, _ = learn(TABLE, types=TYPES, transforms={"wage": "nonparanormal"})
    assert design.numbers[:, 0].tolist() == TABLE["age"].tolist()
    assert abs(design.numbers[:, 1].mean()) < 1e-12
    assert np.argsort(design.numbers[:, 1]).tolist() == np.argsort(TABLE["wage"]).tolist()
    again = apply(TABLE, design.schema)
    np.testing.assert_array_equal(again.numbers, design.numbers)
    back = decode(design.schema, design.numbers, design.codes, "pandas")
    np.testing.assert_allclose(back["wage"], TABLE["wage"], rtol=1e-12)


def test_transform_uses_weights_as_frequencies():
    w = np.array([1, 2, 1, 2, 1])
    weighted, _ = learn(TABLE, types=TYPES, transforms="nonparanormal", sample_weight=w)
    repeated, _ = learn(TABLE.loc[np.repeat(range(5), w)], types=TYPES, transforms="nonparanormal")
    np.testing.assert_allclose(np.repeat(weighted.numbers, w, axis=0), repeated.numbers, rtol=1e-12)


# new data


def test_columns_of_frames_are_found_by_name(design):
    shuffled = TABLE[["wage", "stage", "age", "sex"]].assign(more=0.0)
    for table in (shuffled, pl.from_pandas(shuffled), pa.Table.from_pandas(shuffled)):
        again = apply(table, design.schema)
        assert again.numbers.tolist() == design.numbers.tolist()
        assert again.codes.tolist() == design.codes.tolist()
        assert again.schema is design.schema


def test_columns_of_arrays_are_found_by_position(design):
    again = apply(TABLE.to_numpy(dtype=object), design.schema)
    assert again.numbers.tolist() == design.numbers.tolist()
    assert again.codes.tolist() == design.codes.tolist()
    with pytest.raises(
        TableError,
        match=r"^X has 3 features, but MixedGraphicalModel is expecting 4 features as input\.$",
    ):
        apply(TABLE.to_numpy()[:, :3], design.schema)


def test_a_model_of_an_array_takes_a_frame_by_position():
    X = np.random.default_rng(0).normal(size=(5, 2))
    schema = learn(X)[0].schema
    assert apply(pd.DataFrame(X, columns=["a", "b"]), schema).numbers.tolist() == X.tolist()
    renamed = pd.DataFrame(X, columns=["x1", "x0"])
    assert apply(renamed, schema).numbers.tolist() == X[:, ::-1].tolist()


def test_one_new_row_is_enough(design):
    assert apply(TABLE.iloc[[1]], design.schema).codes.tolist() == [[1, 2]]


def test_levels_match_by_value_whatever_the_type():
    schema = learn(pd.DataFrame({"v": [0, 1, 1, 0], "w": [True, False, True, True]}))[0].schema
    new = pd.DataFrame({"v": [1.0, 0.0], "w": pd.array([True, False], dtype="boolean")})
    assert apply(new, schema).codes.tolist() == [[1, 1], [0, 0]]
    new = pd.DataFrame({"v": [True, False], "w": pd.Categorical([0, 1])})
    assert apply(new, schema).codes.tolist() == [[1, 0], [0, 1]]


def test_declared_levels_of_new_data_may_differ(design):
    new = TABLE.assign(stage=pd.Categorical(TABLE["stage"].astype(str), ["x", "iii", "ii", "i"]))
    assert apply(new, design.schema).codes.tolist() == design.codes.tolist()
    assert (
        apply(new.astype({"stage": object}), design.schema).codes.tolist() == design.codes.tolist()
    )


def broken(**columns):
    return TABLE.assign(**columns)


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        (
            broken(sex=["F", "X", "X", "d", "M"]),
            ["column 'sex': levels that the model has not seen, in 3 rows: 'X' (2 rows), 'd' (1 row). To fix: use its levels 'F', 'M'"],
        ),
        (
            TABLE.drop(columns=["age", "sex"]),
            [
                "column 'sex': the model was fitted with it, but the table lacks it. To fix: add it",
                "column 'age': the model was fitted with it, but the table lacks it. To fix: add it",
            ],
        ),
        (
            TABLE.rename(columns={"wage": "Wages"}),
            ["column 'wage': the model was fitted with it, but the table lacks it. To fix: did you mean 'Wages'?"],
        ),
        (
            TABLE.rename(columns={"wage": "q"}),
            ["column 'wage': the model was fitted with it, but the table lacks it. To fix: add it, or rename the column that holds it"],
        ),
        (
            broken(age=["31", "42", "x", "60", "17"], sex=[0, 1, 1, 0, 0]),
            [
                "column 'sex': text is expected, but it holds numbers: 0 (3 rows), 1 (2 rows). To fix: use its levels 'F', 'M'",
                "column 'age': numbers are expected, but it holds text: '17' (1 row), '31' (1 row), '42' (1 row), '60' (1 row), 'x' (1 row). To fix: convert the column to numbers",
            ],
        ),
        (
            broken(age=pd.Series([31, 42, "x", 60, 17], dtype=object)),
            ["column 'age': numbers are expected, but it holds text: 'x' (1 row). To fix: convert the column to numbers"],
        ),
        (
            broken(sex=pd.Series(["F", 1, 2, "F", "F"], dtype=object)),
            ["column 'sex': text is expected, but it holds numbers: 1 (1 row), 2 (1 row). To fix: use its levels 'F', 'M'"],
        ),
        (
            broken(wage=pd.date_range("2020-01-01", periods=5)),
            ["column 'wage': values of type datetime64[us] cannot be modelled. To fix: turn it into a number (for example days since a first date) or a category (for example the year), or leave it out"],
        ),
        (
            broken(wage=[1.0, np.nan, np.inf, 2.0, 3.0], sex=["F", None, "M", "M", None]),
            [
                "column 'wage': 1 infinite value (inf, -inf or beyond 1.8e308). To fix: replace them by finite or missing values",
                "missing values (NaN or null) in 2 rows, by column: 'sex' (2), 'wage' (1). To fix: drop the 2 rows, or fill them in",
            ],
        ),
        (
            broken(wage=[None] * 5),
            ["column 'wage': 5 missing values (NaN or null). To fix: drop the 5 rows, or fill them in"],
        ),
        (
            broken(stage=pd.Categorical([None] * 5)),
            ["column 'stage': 5 missing values (NaN or null). To fix: drop the 5 rows, or fill them in"],
        ),
        (TABLE.iloc[:0], ["the table is empty: 0 sample(s) (shape=(0, 4)) while a minimum of 1 is required. To fix: pass at least 1 row; look at the file or filter that the table comes from"]),
        (
            pd.concat([TABLE, TABLE[["age"]]], axis=1),
            ["column 'age': 2 columns have this name. To fix: give each column its own name"],
        ),
    ],
)  # fmt: skip
def test_new_data_that_does_not_fit(design, table, lines):
    with pytest.raises(TableError) as caught:
        apply(table, design.schema)
    assert [str(finding) for finding in caught.value.findings] == lines


def test_text_for_number_levels():
    schema = learn(pd.DataFrame({"v": [0, 1, 1, 0]}))[0].schema
    with pytest.raises(TableError, match="numbers are expected, but it holds text: 'a'"):
        apply(pd.DataFrame({"v": ["a", "a"]}), schema)


def test_everything_about_new_data_is_reported_together(design):
    table = TABLE.assign(
        sex=["F", "X", "M", "M", "M"], age=list("abcde"), stage=["i", None] + ["ii"] * 3
    )
    with pytest.raises(TableError, match="5 problems") as caught:
        apply(table.drop(columns="wage"), design.schema, sample_weight=np.ones(3))
    assert {finding.column for finding in caught.value.findings} == {
        "wage",
        "age",
        "sex",
        "stage",
        None,
    }


def test_columns_that_are_not_required_are_not_read(design):
    new = TABLE.drop(columns="sex").assign(wage="text")
    got = apply(new, design.schema, require=["age", "stage"])
    assert got.numbers[:, 0].tolist() == TABLE["age"].tolist()
    assert got.numbers[:, 1].tolist() == [0.0] * 5
    assert got.codes.tolist() == [[0, code] for code in (0, 2, 1, 0, 1)]
    with pytest.raises(ParameterError, match="did you mean 'stage'"):
        apply(new, design.schema, require=["stagge"])


def test_missing_rows_of_new_data_can_be_dropped(design):
    new = TABLE.assign(wage=[1.0, np.nan, 3.0, 4.0, 5.0])
    with pytest.warns(
        TableWarning, match=r"1 row dropped because of missing values .* in 'wage' \(1\)"
    ):
        got = apply(new, design.schema, missing="drop", sample_weight=[1, 1, 0, 1, 1])
    assert got.kept.tolist() == [0, 3, 4]
    assert got.numbers[:, 1].tolist() == [1.0, 4.0, 5.0]
    with pytest.raises(TableError, match="no row is left"):
        apply(new.iloc[[1]], design.schema, missing="drop")
    with pytest.raises(ParameterError, match="missing must be"):
        apply(new, design.schema, missing="maybe")


def test_unseen_levels_in_rows_of_weight_zero_are_no_matter(design):
    new = TABLE.assign(sex=["F", "X", "M", "M", "M"])
    assert apply(new, design.schema, sample_weight=[1, 0, 1, 1, 1]).codes[:, 0].tolist() == [
        0,
        1,
        1,
        1,
    ]


def test_a_bool_column_with_gaps_keeps_its_levels():
    schema = learn(pd.DataFrame({"v": [True, False, True]}))[0].schema
    with pytest.raises(TableError, match="1 missing value"):
        apply(pd.DataFrame({"v": [True, None]}), schema)


# and back


def frames():
    codes = [0, 2, 1, 0, 2]
    texts = [["b", "a", "c"][code] for code in codes]
    whole = [3, 1, 4, 1, 5]
    pandas = pd.DataFrame(
        {
            "text": pd.Series(texts, dtype="str"),
            "object": pd.Series(texts, dtype=object),
            "string": pd.Series(texts, dtype="string"),
            "category": pd.Categorical(texts, ["b", "a", "c"]),
            "ordered": pd.Categorical(texts, ["b", "a", "c"], ordered=True),
            "objects": pd.Series(pd.Categorical(texts, pd.Index(["c", "b", "a"], dtype=object))),
            "numbers": pd.Categorical([10 * code for code in codes], [20, 0, 10]),
            "halves": pd.Categorical([code / 2 for code in codes]),
            "int": np.array(whole, dtype="int16"),
            "Int": pd.array(whole, dtype="Int64"),
            "arrow": pd.Series(whole).astype("int32[pyarrow]"),
            "float": np.array(whole, dtype="float32") / 8,
            "Float": pd.array(np.array(whole) / 8, dtype="Float64"),
            "bool": [True, False, True, True, False],
            "boolean": pd.array([True, False, True, True, False], dtype="boolean"),
            "binary": np.array([0, 1, 1, 0, 1], dtype="uint8"),
            "binary float": [0.0, 1.0, 1.0, 0.0, 1.0],
        }
    )
    polars = pl.DataFrame(
        {
            "text": texts,
            "enum": pl.Series(texts, dtype=pl.Enum(["b", "c", "a"])),
            "categorical": pl.Series(texts, dtype=pl.Categorical),
            "int": pl.Series(whole, dtype=pl.Int16),
            "float": pl.Series(whole, dtype=pl.Float32) / 8,
            "bool": [True, False, True, True, False],
            "binary": pl.Series([0, 1, 1, 0, 1], dtype=pl.UInt8),
        }
    )
    arrow = pa.table(
        {
            "text": pa.array(texts),
            "large": pa.array(texts, pa.large_string()),
            "dictionary": pa.DictionaryArray.from_arrays(
                pa.array(codes, pa.int8()), ["b", "a", "c"]
            ),
            "ordered": pa.DictionaryArray.from_arrays(codes, ["b", "a", "c"], ordered=True),
            "int": pa.array(whole, pa.int16()),
            "float": pa.array(np.array(whole) / 8, pa.float32()),
            "bool": [True, False, True, True, False],
            "binary": pa.array([0, 1, 1, 0, 1], pa.uint8()),
        }
    )
    return {"pandas": pandas, "polars": polars, "pyarrow": arrow}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.filterwarnings("ignore::mixedgm.base.errors.TableWarning")
def test_round_trip_gives_the_same_columns_and_types(library):
    table = frames()[library]
    design, _ = learn(table)
    again = decode(design.schema, design.numbers, design.codes, library)
    if library == "pandas":
        assert_frame_equal(again, table)
    else:
        assert again.equals(table)
        assert again.schema == table.schema


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("like", ["pandas", "polars", "pyarrow"])
@pytest.mark.filterwarnings("ignore::mixedgm.base.errors.TableWarning")
def test_decoding_into_another_library_means_the_same(library, like):
    design, _ = learn(frames()[library])
    table = decode(design.schema, design.numbers, design.codes, like)
    again = apply(table, design.schema)
    assert again.codes.tolist() == design.codes.tolist()
    assert again.numbers.tolist() == design.numbers.tolist()


def test_numbers_come_back_whole_only_when_they_are(design):
    numbers = design.numbers.copy()
    assert decode(design.schema, numbers, design.codes, "pandas")["age"].dtype == "int64"
    numbers[0, 0] += 0.5
    assert decode(design.schema, numbers, design.codes, "pandas")["age"].dtype == "float64"
    schema = learn(pl.from_pandas(TABLE), types=TYPES)[0].schema
    assert decode(schema, numbers, design.codes, "polars")["age"].dtype == pl.Float64
    schema = learn(pa.Table.from_pandas(TABLE), types=TYPES)[0].schema
    assert decode(schema, numbers, design.codes, "pyarrow")["age"].type == pa.float64()


def test_arrays_come_back_as_arrays():
    X = np.column_stack([np.arange(12) % 2, np.arange(12.0) ** 2])
    design, _ = learn(X)
    back = decode(design.schema, design.numbers, design.codes, "numpy")
    assert back.dtype == np.float64
    np.testing.assert_array_equal(back, X)
    X = np.array([["a", 1.5], ["b", 2.5], ["a", 3.5]], dtype=object)
    design, _ = learn(X)
    assert decode(design.schema, design.numbers, design.codes, "numpy").tolist() == X.tolist()


def test_intervals_come_back_as_text():
    design, _ = learn(pd.DataFrame({"v": pd.cut([1.0, 2.0, 1.0], [0, 1, 2])}))
    back = decode(design.schema, design.numbers, design.codes, "pandas")
    assert back["v"].astype(str).tolist() == ["(0, 1]", "(1, 2]", "(0, 1]"]


def test_like_has_to_be_a_library(design):
    with pytest.raises(
        ParameterError, match="like must be one of pandas, polars, pyarrow, numpy. Got 'excel'"
    ):
        decode(design.schema, design.numbers, design.codes, "excel")


def test_arrays_need_no_frame_library():
    code = """
import sys
for name in ("pandas", "polars", "pyarrow"):
    sys.modules[name] = None
import numpy as np
from mixedgm.table.encode import learn, apply; from mixedgm.table.decode import decode
X = np.array([["a", 1.5], ["b", 2.5], ["a", 3.5]], dtype=object)
design, _ = learn(X, transforms="nonparanormal")
assert decode(design.schema, design.numbers, design.codes, "numpy")[0, 0] == "a"
assert apply(X, design.schema).codes.tolist() == [[0], [1], [0]]
try:
    decode(design.schema, design.numbers, design.codes, "pandas")
except ValueError as error:
    assert "pip install pandas" in str(error)
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": SOURCE})


def test_importing_the_room_imports_no_frame_library():
    code = (
        "import sys, mixedgm.table;"
        "heavy = {'pandas', 'polars', 'pyarrow', 'matplotlib'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": SOURCE})
