"""One test for each message about a table, and that all messages come at once."""

# ruff: noqa: E501 (messages are quoted whole)

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mixedgm.base.errors import ParameterError, TableError, TableTypeError, TableWarning
from mixedgm.table.checks.check import check_table
from mixedgm.table.encode import learn

NOISE = np.random.default_rng(0).normal(size=6)


def errors_of(table, **options):
    """Return the lines of the error that learning from the table raises."""
    with pytest.raises(TableError) as caught:
        learn(table, **options)
    return [str(finding) for finding in caught.value.findings]


def only_error(column, **options):
    (line,) = errors_of(pd.DataFrame({"v": column, "noise": NOISE}), **options)
    return line


def test_missing_values_of_one_column():
    column = [1.5, np.nan, 2.5, np.nan, 3.5, 4.5]
    assert only_error(column) == (
        "column 'v': 2 missing values (NaN or null). "
        'To fix: missing="model" uses all 6 rows, missing="drop" the 4 complete ones; '
        "or fill them in"
    )


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_missing_values_of_several_columns(make):
    table = make(
        {"a": [1.5, None, 2.5, 0.5], "b": ["x", None, "y", None], "c": [True, False, None, True]}
    )
    assert errors_of(table) == [
        "missing values (NaN or null) in 3 rows, by column: 'b' (2), 'a' (1), 'c' (1). To fix: "
        'missing="model" uses all 4 rows, missing="drop" the 1 complete one; or '
        "leave column 'b' out: 2 of 4 rows are then complete, instead of 1; or fill them in"
    ]


def test_nan_and_null_both_count():
    table = pl.DataFrame({"a": [1.5, float("nan"), None, 0.5], "b": [1.0, 2.5, 3.0, 4.0]})
    assert "column 'a': 2 missing values" in errors_of(table)[0]


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
@pytest.mark.parametrize("dtype", [object, "category", "str"])
def test_missing_levels(gap, dtype):
    column = pd.Series(["x", "y", gap, "x", "y", gap], dtype=object).astype(dtype)
    assert "column 'v': 2 missing values" in only_error(column)


def test_dropping_rows_says_how_many():
    table = pd.DataFrame({"a": [1.5, np.nan, 2.5, 0.5], "b": ["x", "x", "y", None]})
    with pytest.warns(TableWarning, match=r"2 rows dropped .* 'a' \(1\), 'b' \(1\)"):
        design, _ = learn(table, missing="drop")
    assert design.numbers.ravel().tolist() == [1.5, 2.5]
    assert design.kept.tolist() == [0, 2]


def test_dropping_every_row():
    table = pd.DataFrame({"a": [1.5, 2.0, np.nan, np.nan], "b": [np.nan, np.nan, 2.5, 3.0]})
    assert errors_of(table, missing="drop") == [
        "no row is left after missing=\"drop\": gaps in 'a' (2 rows), 'b' (2 rows). "
        "To fix: leave column 'a' out: 2 of 4 rows are then complete, instead of 0"
    ]
    table = pd.DataFrame({"a": [1.5, np.nan, 1.0], "b": [np.nan, 2.5, 1.0]})
    assert "only 1 row (1 sample) is left" in errors_of(table, missing="drop")[0]
    table = pd.DataFrame({"a": [1.5, np.nan], "b": [2.0, 2.5]})
    assert "constant: 1.5 in the only row that has a value" in errors_of(table)[1]


def test_constant_is_judged_after_dropping():
    table = pd.DataFrame({"a": [1.0, 1.0, 2.0, 1.0], "b": [0.5, 1.5, np.nan, 2.5]})
    assert errors_of(table, missing="drop") == [
        "column 'a': it is constant in the 3 complete rows, though not in the table; "
        "the other values are in rows with gaps in 'b' (1 row). "
        "To fix: leave column 'b' out, or fill in the gaps"
    ]


def test_bad_value_of_missing():
    with pytest.raises(
        ParameterError, match="missing must be 'error', 'drop' or 'model'. Got 'skip'"
    ):
        learn([[1.0], [2.0]], missing="skip")


@pytest.mark.parametrize(
    "column",
    [
        [np.nan] * 6,
        [None] * 6,
        pd.Categorical([None] * 6, ["a", "b"]),
        pd.Series([None] * 6, dtype="str"),
        pd.Series([None] * 6, dtype="Int64"),
        pd.Series([pd.NaT] * 6),
    ],
)
@pytest.mark.parametrize("missing", ["error", "drop"])
def test_all_missing(column, missing):
    line = only_error(column, missing=missing)
    assert line == "column 'v': all of its values are missing. To fix: leave column 'v' out"


def test_all_missing_in_polars_and_pyarrow():
    for table in (
        pl.DataFrame({"v": [None] * 6, "n": NOISE}),
        pa.table({"v": pa.nulls(6), "n": NOISE}),
    ):
        assert "all of its values are missing" in errors_of(table)[0]


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        ([5.0] * 6, "5"),
        ([5] * 6, "5"),
        (["a"] * 6, "'a'"),
        ([True] * 6, "True"),
        (pd.Categorical(["a"] * 6, ["a", "b"]), "'a'"),
    ],
)
def test_constant(column, shown):
    assert only_error(column) == (
        f"column 'v': it is constant: {shown} in all 6 rows that have a value. To fix: leave column 'v' out"
    )


def test_constant_declared_categorical():
    assert "it is constant: 3 in all" in only_error([3] * 6, types={"v": "categorical"})


def test_infinite_values():
    assert only_error([1.0, np.inf, 2.5, -np.inf, 0.5, 1.5]) == (
        "column 'v': 2 infinite values (inf, -inf or beyond 1.8e308). "
        "To fix: replace them by finite or missing values"
    )
    infinite = [1.0, np.inf, 2.0, 1.0, 2.0, 1.0]
    assert "1 infinite value (inf" in only_error(infinite, types={"v": "categorical"})


def test_values_beyond_double_precision():
    assert "too large for double precision" in only_error([1e200, *range(5)])
    assert "too close together for double precision" in only_error(
        [1e-200, 2e-200, 0, 1e-199, 3e-200, 0]
    )


@pytest.mark.parametrize("column", [1e9 + 1e-6 * NOISE, 1 + 1e-14 * NOISE, -1e6 + 1e-8 * NOISE])
def test_values_too_close_together_for_their_size(column):
    line = only_error(column)
    assert line.startswith(f"column 'v': its values, with mean {column.mean():g} and standard")
    assert line.endswith(
        "are too close together for double precision. "
        "To fix: subtract a constant from it first, for example its smallest value"
    )
    assert "too close" in only_error(column, types={"v": "continuous"})
    remedied = check_table(pd.DataFrame({"v": column - column.min(), "noise": NOISE}))
    assert not [finding for finding in remedied.findings if finding.severity == "error"]


def test_values_just_far_enough_apart():
    for column in (1 + 1e-11 * NOISE, 1e-20 * NOISE):
        assert check_table(pd.DataFrame({"v": column, "noise": NOISE})).findings == ()


def test_large_codes_and_ranks_need_no_precision():
    codes = pd.DataFrame({"v": [10**15, 10**15 + 1] * 3, "noise": NOISE})
    assert check_table(codes).findings == ()
    ranked = pd.DataFrame({"v": 1e9 + 1e-6 * NOISE, "noise": NOISE})
    assert check_table(ranked, transforms={"v": "nonparanormal"}).findings == ()


def test_duplicate_names():
    table = pd.DataFrame(np.column_stack([NOISE, NOISE**2, NOISE]), columns=["a", "b", "a"])
    assert errors_of(table) == [
        "column 'a': 2 columns have this name. To fix: give each column its own name"
    ]
    table = pa.table([NOISE, NOISE], names=["a", "a"])
    assert "2 columns have this name" in errors_of(table)[0]


def test_names_that_collide_as_text():
    table = pd.DataFrame(np.column_stack([NOISE, NOISE**2]), columns=[1, "1"])
    assert "column '1': 2 columns have this name" in errors_of(table)[0]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.empty((0, 3)), "empty: 0 sample(s) (shape=(0, 3)) while a minimum of 2 is required."),
        (
            np.empty((12, 0)),
            "empty: 0 feature(s) (shape=(12, 0)) while a minimum of 1 is required.",
        ),
        (
            np.ones((1, 2)),
            "too short: 1 sample(s) (shape=(1, 2)) while a minimum of 2 is required.",
        ),
        (pd.DataFrame(), "0 feature(s) (shape=(0, 0))"),
        (pd.DataFrame({"a": [], "b": []}), "0 sample(s) (shape=(0, 2))"),
        (pl.DataFrame({"a": ["x"]}), "1 sample(s) (shape=(1, 1))"),
        (pa.table({"a": pa.array([], pa.string())}), "0 sample(s)"),
        ([], "0 feature(s)"),
        ([[], []], "0 feature(s)"),
    ],
)
def test_too_small(table, message):
    (line,) = errors_of(table)
    assert message in line
    remedy = "1 column" if "feature" in message else "2 rows; look at the file or filter that"
    assert "is required. To fix: pass " in line
    assert remedy in line.partition("To fix")[2]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.date_range("2020-01-01", periods=6), "datetime64[us] cannot be modelled. To fix: turn it into a number (for example days"),
        (pd.timedelta_range("1D", periods=6), "cannot be modelled. To fix: turn it into a number, for example of seconds"),
        (pd.period_range("2020", periods=6, freq="D"), "period[D] cannot be modelled. To fix: turn it into a number (for"),
        (NOISE * 1j, "Complex data not supported (complex128). To fix: use its real"),
        (pd.arrays.SparseArray(NOISE), "cannot be modelled. To fix: make it dense with .sparse.to_dense()"),
        (pd.Series(pa.array([b"a"] * 6)).astype(pd.ArrowDtype(pa.binary())), "decode it to text"),
        (["a", 1, 2, "a", "b", 3], "text among other values: 'a' (2 rows), 'b' (1 row). To fix: make all"),
        ([{"foo": "bar"}, *range(5)], "holds dict (1 row); each cell of the argument must be a string, a bool or a number"),
        ([1j, *range(5)], "Complex data not supported"),
        (pd.Series([(1, 2)] * 6), "holds tuple (6 rows)"),
        (pd.interval_range(0, 6), "values of type interval[int64, right] cannot be modelled. To fix: turn it into numbers, truth"),
    ],
)  # fmt: skip
def test_types_that_cannot_be_modelled(column, message):
    assert message in only_error(column)


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"v": [[1], [2]]}),
        pl.DataFrame({"v": [{"a": 1}, {"a": 2}]}),
        pa.table({"v": [[1], [2]]}),
    ],
)
def test_nested_columns(table):
    assert "To fix: make one column of each entry" in errors_of(table)[0]


def test_array_types_that_cannot_be_modelled():
    assert "Complex data not supported" in errors_of(np.ones((3, 1)) * 1j)[0]
    assert "datetime64[D] cannot" in errors_of(np.array([["2020-01-01"]] * 2, dtype="M8[D]"))[0]
    assert "decode it to text" in errors_of(np.array([[b"a"]] * 2))[0]


def test_odd_cells_are_also_a_type_error():
    with pytest.raises(TableTypeError, match="argument must be a string, a bool or a number"):
        learn(np.array([[{"foo": "bar"}], [1.0]], dtype=object))


def test_text_declared_continuous():
    line = only_error(["1.5", "n/a", "1.5", "x", "y", "z"], types={"v": "continuous"})
    assert "types says continuous, but it holds text: '1.5' (2 rows), 'n/a' (1 row)" in line
    assert 'types={"v": "categorical"}' in line


def test_levels_that_read_the_same():
    column = pd.Categorical([1, "1", 1, "1", 1, "1"], [1, "1"])
    assert "two of its levels read '1'. To fix: give each level its own name" in only_error(column)


def test_declared_levels_without_rows_stay():
    column = pd.Categorical(["a", "b"] * 3, ["z", "b", "y", "a"])
    with pytest.warns(TableWarning, match="column 'v': levels without rows: 'z', 'y'"):
        design, _ = learn(pd.DataFrame({"v": column, "noise": NOISE}))
    assert design.schema.columns[0].levels == ("z", "b", "y", "a")
    assert design.codes.ravel().tolist() == [3, 1] * 3


def test_a_level_with_rows_of_weight_zero_only_is_without_rows():
    table = pd.DataFrame({"v": ["a", "b", "c", "a"], "n": NOISE[:4]})
    with pytest.warns(TableWarning, match="column 'v': level without rows: 'c'"):
        design, _ = learn(table, sample_weight=[1, 1, 0, 1])
    assert design.schema.columns[0].levels == ("a", "b", "c")
    assert design.n_rows == 3


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_remedy_for_levels_without_rows_suits_every_library(library):
    if library == "pandas":
        column = pd.Series(pd.Categorical(["a", "b"] * 3, ["a", "b", "z"]))
        table = pd.DataFrame({"v": column, "noise": NOISE})
    else:
        column = pl.Series(["a", "b"] * 3, dtype=pl.Enum(["a", "b", "z"]))
        table = pl.DataFrame({"v": column, "noise": NOISE})
    (finding,) = check_table(table).findings
    assert str(finding) == (
        "column 'v': level without rows: 'z'. To change it: declare only levels that occur"
    )


def test_everything_is_reported_together():
    table = pd.DataFrame(
        {
            "gap": [1.5, np.nan, 2.5, 3.5],
            "flat": [1.0] * 4,
            "wild": [1.0, np.inf, np.inf, 2.0],
            "none": [None] * 4,
            "when": pd.date_range("2020-01-01", periods=4),
            "few": [1, 2, 3, 1],
        }
    )
    found = check_table(table, types={"gapp": "continuous"}, sample_weight=[1, 1, -1, 1]).findings
    lines = [str(finding) for finding in found if finding.severity == "error"]
    for part in (
        "types names 'gapp'",
        "sample_weight has 1 negative",
        "'gap': 1 missing",
        "'flat': it is constant",
        "'wild': 2 infinite",
        "'none': all of its values are missing",
        "'when': values of type",
    ):
        assert sum(part in line for line in lines) == 1, part
    assert len(lines) == 7
    assert [f.column for f in found if f.severity == "warning"] == ["few"]
    with pytest.raises(TableError, match="7 problems with this table"):  # and no warning beside it
        learn(table, types={"gapp": "continuous"}, sample_weight=[1, 1, -1, 1])


def test_check_returns_the_columns_that_can_be_used():
    checked = check_table(pd.DataFrame({"flat": [1.0] * 6, "v": NOISE, "c": ["a", "b"] * 3}))
    assert checked.schema.names == ("v", "c")
    assert len(checked.findings) == 1


LARGE = np.longdouble("1e400")
"""A long double that no double holds; infinity where long doubles are doubles."""


@pytest.mark.parametrize("kind", ["continuous", "hurdle", "count", "ordinal", "categorical", None])
@pytest.mark.parametrize("form", ["frame", "array", "objects", "integers"])
def test_numbers_beyond_all_doubles(kind, form):
    numbers = np.array([LARGE, *NOISE[1:]], dtype=np.longdouble)
    table = {
        "frame": lambda: pd.DataFrame({"v": numbers}),
        "array": lambda: numbers[:, None],
        "objects": lambda: pd.DataFrame({"v": numbers.astype(object)}),
        "integers": lambda: pd.DataFrame({"v": [10**400, *range(len(NOISE) - 1)]}, dtype=object),
    }[form]()
    types = None if kind is None else {"x0" if form == "array" else "v": kind}
    lines = errors_of(table, types=types)
    assert any("1 infinite value (inf, -inf or beyond 1.8e308)" in line for line in lines)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((6, 2)), "must be a 1-D array, one weight for each row; got shape (6, 2)"),
        (1.0, "must be a 1-D array"),
        (np.full(6, LARGE), "sample_weight has 6 entries that are missing or infinite"),
        ([10**400] * 6, "sample_weight has 6 entries that are missing or infinite"),
        (np.ones(5), "sample_weight has 5 entries, but the table has 6 rows"),
        ([1, 1, np.nan, 1, np.inf, 1], "sample_weight has 2 entries that are missing or infinite"),
        ([1, 1, np.nan, 1, 1, 1], "sample_weight has 1 entry that is missing or infinite"),
        ([1, 1, -1, 1, -2, 1], "sample_weight has 2 negative entries"),
        ([1, 1, -1, 1, 1, 1], "sample_weight has 1 negative entry. To fix"),
        ([1], "sample_weight has 1 entry, but the table has 6 rows"),
        (np.zeros(6), "every sample_weight is zero"),
        (["a"] * 6, "sample_weight holds values that are not numbers"),
        ([0, 0, 0, 0, 0, 1], "only one row (1 sample) has a positive sample_weight"),
        ([0, 0, 0, 0, 0, 1], "is required. To fix: give at least 2 rows a positive weight"),
    ],
)
def test_bad_weights(weights, message):
    lines = errors_of(pd.DataFrame({"v": NOISE}), sample_weight=weights)
    assert any(message in line for line in lines)


@pytest.mark.parametrize(
    ("scale", "warned"), [(0.4, True), (0.6, False), (1.9, False), (2.1, True)]
)
def test_weights_far_from_the_number_of_rows(scale, warned):
    checked = check_table(pd.DataFrame({"v": NOISE}), sample_weight=np.full(6, scale))
    assert bool(checked.findings) == warned
    if warned:
        assert f"sample_weight sums to {6 * scale:g} over 6 rows" in str(checked.findings[0])


def test_missing_values_in_rows_of_weight_zero_are_no_matter():
    table = pd.DataFrame({"v": [1.5, np.nan, 2.5, 3.5]})
    design, findings = learn(table, sample_weight=[1, 0, 1, 2])
    assert findings == ()
    assert design.numbers.ravel().tolist() == [1.5, 2.5, 3.5]
    assert design.weights.tolist() == [1, 1, 2]
    assert design.total_weight == 4


def test_the_result_of_a_check_prints_what_it_found():
    text = repr(check_table([[1.5, "a"], [2.5, "b"], [None, "a"]]))
    assert text.startswith("Table of 3 rows: 1 error, 1 warning\n")
    assert "x1      categorical" in text
    assert "[error] column 'x0': 1 missing value" in text
    fine = repr(check_table([[1.5, "a"], [2.5, "b"], [0.5, "a"]]))
    assert "0 errors, 0 warnings" in fine
    assert "[" not in fine
