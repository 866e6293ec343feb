"""Kinds, levels, roles and options, inferred and overridden."""

# ruff: noqa: E501 (messages are quoted whole)

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mixedgm.base.errors import TableError, TableWarning
from mixedgm.table.checks.check import check_table
from mixedgm.table.encode import learn

NOISE = np.random.default_rng(0).normal(size=12)


def schema_of(column, **options):
    """Return the inferred column and the messages of the warnings about it."""
    checked = check_table(pd.DataFrame({"v": column, "noise": NOISE}), **options)
    assert all(finding.severity == "warning" for finding in checked.findings), checked.findings
    return checked.schema.columns[0], [str(finding) for finding in checked.findings]


@pytest.mark.parametrize(
    ("column", "kind", "levels", "warned"),
    [
        (["b", "a", "c"] * 4, "categorical", ("a", "b", "c"), False),
        ([True, False] * 6, "categorical", (False, True), False),
        ([0, 1] * 6, "categorical", (0, 1), False),
        ([7, -3] * 6, "categorical", (-3, 7), False),
        ([0.0, 1.0] * 6, "categorical", (0, 1), False),
        ([0.5, 1.0] * 6, "continuous", (), True),
        ([1, 2, 3] * 4, "continuous", (), True),
        ([*range(10), 0, 1], "continuous", (), True),
        ([*range(11), 0], "continuous", (), False),
        ([1.0, 2.0, 3.0] * 4, "continuous", (), True),
        ([1.5, 2.0, 3.0] * 4, "continuous", (), False),
        (NOISE, "continuous", (), False),
        (pd.array([1, 0] * 6, dtype="Int64"), "categorical", (0, 1), False),
        (pd.array([True, False] * 6, dtype="boolean"), "categorical", (False, True), False),
        (pd.array(["x", "y"] * 6, dtype="string"), "categorical", ("x", "y"), False),
        (pd.array(["x", "y"] * 6, dtype="str"), "categorical", ("x", "y"), False),
        (pd.Series(["x", "y"] * 6, dtype=object), "categorical", ("x", "y"), False),
        (pd.Series([True, False] * 6, dtype=object), "categorical", (False, True), False),
        (pd.Series([1, 2.5, 3, 4] * 3, dtype=object), "continuous", (), False),
        (pd.Series([Decimal(k) / 4 for k in range(12)]), "continuous", (), False),
        (pd.Categorical(["m", "l"] * 6, ["l", "m"]), "categorical", ("l", "m"), False),
        (pd.Categorical([3, 1, 2] * 4, [3, 1, 2]), "categorical", (3, 1, 2), False),
        (pd.cut([1.0, 2.0] * 6, [0, 1, 2]), "ordinal", ("(0, 1]", "(1, 2]"), False),
        (pd.array(NOISE, dtype="Float64"), "continuous", (), False),
        (pd.Series(NOISE).astype("float32"), "continuous", (), False),
        (pd.Series(NOISE).astype("double[pyarrow]"), "continuous", (), False),
    ],
)
def test_kinds(column, kind, levels, warned):
    found, messages = schema_of(column)
    assert (found.kind, found.levels) == (kind, levels)
    assert [type(level) for level in found.levels] == [type(level) for level in levels]
    assert bool(messages) == warned


def test_the_warning_names_column_values_and_line():
    table = pd.DataFrame({"stage": [1, 2, 4] * 4, "noise": NOISE})
    with pytest.warns(TableWarning) as caught:
        learn(table)
    (warning,) = caught
    assert "column 'stage': its 3 distinct values 1, 2, 4 are taken as continuous" in str(
        warning.message
    )
    assert 'types={"stage": "categorical"}' in str(warning.message)
    assert warning.filename == __file__


def test_both_lines_of_the_warning_end_it():
    table = pd.DataFrame({"stage": [1, 2, 4] * 4, "noise": NOISE})
    for kind in ("continuous", "categorical"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            design, findings = learn(table, types={"stage": kind})
        assert findings == ()
        assert design.schema.columns[0].kind == kind
    assert design.schema.columns[0].levels == (1, 2, 4)


def questionnaire():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"q{k}": rng.integers(1, 6, 40) for k in range(25)})
    return table.assign(x=rng.normal(size=40), sex=rng.choice(["f", "m"], 40))


def test_items_of_a_questionnaire_are_one_warning_with_one_line():
    table = questionnaire()
    (finding,) = check_table(table).findings
    assert finding.what.startswith("25 columns with 3 to 10 distinct values are taken as continuou")
    assert "'q0' (1 to 5), " in finding.what
    line = finding.remedy.partition(" (in short")[0]
    types = eval(line.removeprefix("types="))
    assert types == {f"q{k}": "ordinal" for k in range(25)}
    assert check_table(table, types=types).findings == ()
    renamed = table.rename(columns=lambda name: f"a long question that begins with {name}")
    assert check_table(renamed).findings[0].remedy.startswith('types="ordinal" if the order')


@pytest.mark.parametrize("kind", ["ordinal", "categorical", "continuous"])
def test_one_kind_for_all_short_whole_numbers(kind, tmp_path):
    table = questionnaire()
    names = [name for name in table if name.startswith("q")]
    checked = check_table(table, types=kind)
    assert checked.findings == ()
    by_name = check_table(table, types=dict.fromkeys(names, kind))
    assert checked.schema == by_name.schema
    table.iloc[:15].to_parquet(tmp_path / "a.parquet")
    table.iloc[15:].to_parquet(tmp_path / "b.parquet")
    in_parts = check_table(tmp_path, types=kind)
    assert [c.kind for c in in_parts.schema.columns] == [c.kind for c in by_name.schema.columns]
    assert [c.levels for c in in_parts.schema.columns] == [c.levels for c in by_name.schema.columns]


def test_several_warnings_are_issued_together():
    table = pd.DataFrame({"a": [1, 2, 4] * 4, "b": [0.5, 1.5] * 6})
    with pytest.warns(TableWarning, match="2 things to know") as caught:
        learn(table)
    assert len(caught) == 1


def test_half_numbers_can_be_categorical():
    found, _ = schema_of([0.5, 1.0] * 6, types={"v": "categorical"})
    assert found.levels == (0.5, 1.0)


def test_truth_values_and_number_categories_can_be_continuous():
    table = pd.DataFrame({"v": [True, False, True], "w": pd.Categorical([10, 30, 20])})
    design, _ = learn(table, types={"v": "continuous", "w": "continuous"})
    assert design.numbers.tolist() == [[1, 10], [0, 30], [1, 20]]


@pytest.mark.parametrize(
    ("series", "levels"),
    [
        (pl.Series(["u", "v"] * 6, dtype=pl.Enum(["v", "u"])), ("v", "u")),
        (pl.Series(["z", "a"] * 6, dtype=pl.Categorical), ("a", "z")),
        (pl.Series(["z", "a"] * 6), ("a", "z")),
        (pl.Series([True, None] * 5 + [False, False]), (False, True)),
        (pa.DictionaryArray.from_arrays([0, 1] * 6, ["z", "a"]), ("z", "a")),
        (pa.DictionaryArray.from_arrays([0, 1, 2] * 4, ["z", "a", None]), ("z", "a")),
        (pa.DictionaryArray.from_arrays([0, 1, 2] * 4, ["z", "a", "z"]), ("z", "a")),
        (pa.array(["z", "a"] * 6, pa.large_string()), ("a", "z")),
        (pa.array(["z", "a"] * 6, pa.string_view()), ("a", "z")),
        (
            pa.chunked_array(
                [pa.array(["z"] * 6).dictionary_encode(), pa.array(["a"] * 6).dictionary_encode()]
            ),
            ("z", "a"),
        ),
    ],
)
def test_level_order_in_polars_and_pyarrow(series, levels):
    make = pl.DataFrame if isinstance(series, pl.Series) else pa.table
    checked = check_table(make({"v": series, "noise": NOISE}), missing="drop")
    assert checked.schema.columns[0].levels == levels


def test_polars_categorical_does_not_take_levels_of_other_columns():
    pl.Series(["unrelated"], dtype=pl.Categorical)
    table = pl.DataFrame(
        {"v": ["b", "a"] * 6, "w": ["d", "c", "e"] * 4, "noise": NOISE}
    ).with_columns(pl.col("v", "w").cast(pl.Categorical))
    assert [column.levels for column in check_table(table).schema.categorical] == [
        ("a", "b"),
        ("c", "d", "e"),
    ]


def test_pandas_holding_an_arrow_dictionary():
    dtype = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    found, _ = schema_of(pd.Series(["z", "a"] * 6).astype(dtype))
    assert found.levels == ("z", "a")


def test_ordered_is_kept():
    found, _ = schema_of(pd.Categorical(["m", "l"] * 6, ["m", "l"], ordered=True))
    assert found.ordered


def test_types_of_an_array_by_name_position_or_list():
    X = np.column_stack([np.arange(12) % 3, NOISE])
    for types in ({"x0": "categorical"}, {0: "categorical"}, ["categorical", None]):
        checked = check_table(X, types=types)
        assert checked.schema.columns[0].levels == (0, 1, 2)
        assert checked.findings == ()


def test_object_arrays_are_inferred_column_by_column():
    X = np.array(
        [["a", 1.5, True], ["b", 2.5, False], ["a", 3, True], ["b", 4, None]], dtype=object
    )
    checked = check_table(X, missing="drop")
    assert [column.kind for column in checked.schema.columns] == [
        "categorical",
        "continuous",
        "categorical",
    ]
    assert checked.schema.columns[2].levels == (False, True)


def test_text_arrays_are_categorical():
    assert check_table(np.array([["a", "x"], ["b", "y"], ["a", "y"]])).schema.n_levels == (2, 2)


def test_roles():
    table = {"a": NOISE, "b": NOISE**2, "c": ["x", "y"] * 6}
    schema = check_table(pd.DataFrame(table), covariates=["c", "a"]).schema
    assert [column.role for column in schema.columns] == ["covariate", "target", "covariate"]
    assert check_table(pd.DataFrame(table), covariates="b").schema.columns[1].role == "covariate"


def test_transform_for_all_or_by_column():
    table = pd.DataFrame({"a": NOISE, "b": NOISE**2, "c": ["x", "y"] * 6})

    def transformed(transform):
        schema = learn(table, transforms=transform)[0].schema
        return [column.name for column in schema.columns if column.transform is not None]

    assert transformed("nonparanormal") == ["a", "b"]
    assert transformed({"b": "nonparanormal", "a": None}) == ["b"]
    assert transformed(None) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"types": {"stagee": "categorical"}}, "types names 'stagee', which is not a column. To fix: did you mean 'stage'"),
        ({"transforms": {"nose": "nonparanormal"}}, "transforms names 'nose', which is not a column. To fix: did you mean 'noise'"),
        ({"covariates": ["qq"]}, "covariates names 'qq', which is not a column. To fix: the columns are 'stage', 'noise'"),
        ({"types": {0: "categorical"}}, "types names 0, which is not a column"),
        ({"types": {"stage": "nominal"}}, "types['stage'] must be 'continuous', 'hurdle', 'ordinal', 'count' or 'categorical', or mg.Ordinal(...) or mg.Count(...). Got 'nominal' instead"),
        ({"types": ["continuous"]}, "types must be a dictionary by column, a schema, a list of 2 kinds, or 'ordinal', 'categorical' or 'continuous' for all numbers with 3 to 10 distinct values. Got 1 entries"),
        ({"types": "hurdle"}, "for all numbers with 3 to 10 distinct values. Got 'hurdle' instead"),
        ({"transforms": "log"}, "transforms must be 'auto', 'nonparanormal', None, or a dictionary by column. Got 'log'"),
        ({"transforms": {"noise": "log"}}, "transforms['noise'] must be 'auto', 'nonparanormal' or None. Got 'log' instead"),
        ({"transforms": {"stage": "nonparanormal"}}, "column 'stage': transforms names it, but it is categorical"),
    ],
)  # fmt: skip
def test_options_that_fit_no_column(options, message):
    table = pd.DataFrame({"stage": ["i", "ii"] * 6, "noise": NOISE})
    with pytest.raises(TableError) as caught:
        learn(table, **options)
    assert message in str(caught.value)
