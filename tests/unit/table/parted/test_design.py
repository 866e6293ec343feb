"""Tables in parts: the same schema, findings and numbers as the table read whole."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset

from mixedgm import Count, Ordinal, TableError, TableWarning
from mixedgm import check_table as check_any_table
from mixedgm.base.errors import NotYetError, ParameterError
from mixedgm.table.encode import learn
from mixedgm.table.parted.columns import NumberSummary, PartPlan
from mixedgm.table.parted.design import LocalReader, check_parts, learn_parts
from mixedgm.table.parted.sources import source_of

N = 500
CUTS = (0, 40, 41, 300, N)


def table(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N)
    return pd.DataFrame(
        {
            "height": x,
            "weight": x + rng.normal(size=N),
            "wage": np.exp(2.0 * rng.normal(size=N)),
            "debt": np.where(rng.random(N) < 0.6, 0.0, rng.normal(5.0, 1.0, N)),
            "visits": rng.poisson(2.0, N),
            "pain": rng.integers(0, 4, N),
            "sex": rng.integers(0, 2, N),
            "smokes": rng.random(N) < 0.3,
            "region": rng.choice(["north", "south", "west"], N),
            "stage": pd.Categorical(rng.choice(list("cab"), N), categories=list("cbad")),
            "size": pd.Categorical(rng.choice(["s", "m"], N), categories=["s", "m"], ordered=True),
        }
    )


TYPES = {"visits": "count", "pain": "ordinal", "debt": "hurdle"}


def as_parts(frame, folder):
    for k, (a, b) in enumerate(zip(CUTS[:-1], CUTS[1:], strict=True)):
        frame.iloc[a:b].reset_index(drop=True).to_parquet(folder / f"part-{k}.parquet")
    return str(folder / "part-*.parquet")


def check_table(X, **options):
    """Tables in parts get no transforms, so those that they are compared with get none."""
    return check_any_table(X, **({"transforms": None} | options))


def parted(X, **options):
    return check_parts(LocalReader(source_of(X)), **options)


def row_sums(part):
    return (part.n_rows,)


def levels_of(X, name):
    return next(column.levels for column in parted(X).schema.columns if column.name == name)


def assert_same_check(whole, parts):
    assert parts.schema == whole.schema
    assert parts.findings == whole.findings
    assert parts.leave_out == whole.leave_out


def assert_same_design(frame, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        whole, _ = learn(frame, transforms=None, **options)
        parts, _ = learn_parts(LocalReader(source_of(X)), **options)
    assert parts.schema.names == whole.schema.names
    every = list(parts.parts.map(lambda part: part))
    assert parts.sizes == tuple(part.n_rows for part in every)
    np.testing.assert_array_equal(np.concatenate([p.codes for p in every]), whole.codes)
    np.testing.assert_allclose(np.concatenate([p.numbers for p in every]), whole.numbers)
    if whole.weights is not None:
        np.testing.assert_array_equal(np.concatenate([p.weights for p in every]), whole.weights)
    assert parts.total_weight == pytest.approx(whole.total_weight)
    for one, other in zip(parts.schema.columns, whole.schema.columns, strict=True):
        assert one.location == pytest.approx(other.location)


@pytest.mark.parametrize("types", [None, TYPES], ids=["inferred", "declared"])
def test_all_kinds_of_columns(tmp_path, types):
    frame = table()
    X = as_parts(frame, tmp_path)
    assert_same_check(check_table(frame, types=types), parted(X, types=types))
    assert_same_design(frame, X, types=types)


@pytest.mark.parametrize("kind", ["folder", "files", "lazy", "dataset"])
def test_all_sources(tmp_path, kind):
    frame = table().drop(columns="size")
    as_parts(frame, tmp_path)
    if kind in ("lazy", "dataset"):
        frame = pl.read_parquet(tmp_path / "*.parquet")
    if kind == "dataset":
        frame = dataset.dataset(tmp_path).to_table()
    X = {
        "folder": tmp_path,
        "files": sorted(tmp_path.iterdir()),
        "lazy": pl.scan_parquet(tmp_path / "*.parquet"),
        "dataset": dataset.dataset(tmp_path),
    }[kind]
    assert_same_check(check_table(frame), parted(X))
    assert_same_design(frame, X)


def test_check_table_takes_tables_in_parts(tmp_path):
    frame = table()
    checked = check_table(as_parts(frame, tmp_path))
    assert checked.schema == check_table(frame).schema
    assert "Table of 500 rows" in repr(checked)


def test_a_folder_with_values_in_its_names(tmp_path):
    frame = table()[["height", "sex", "region"]]
    pa_table = pa.Table.from_pandas(frame, preserve_index=False)
    dataset.write_dataset(
        pa_table, tmp_path, format="parquet", partitioning=["region"], partitioning_flavor="hive"
    )
    assert parted(tmp_path).schema.names == ("height", "sex", "region")
    assert levels_of(tmp_path, "region") == ("north", "south", "west")


# -- weights and gaps ------------------------------------------------------------------------------


def test_weights_as_a_column_and_as_an_array(tmp_path):
    frame = table()
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float)
    frame["w"] = weights
    X = as_parts(frame, tmp_path)
    plain, options = frame.drop(columns="w"), {"types": TYPES}
    whole = check_table(plain, sample_weight=weights, **options)
    assert_same_check(whole, parted(X, sample_weight="w", **options))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        one, _ = learn_parts(LocalReader(source_of(X)), sample_weight="w", **options)
        other, _ = learn(plain, sample_weight=weights, transforms=None, **options)
    every = list(one.parts.map(lambda part: part))
    np.testing.assert_array_equal(np.concatenate([p.weights for p in every]), other.weights)
    np.testing.assert_array_equal(np.concatenate([p.codes for p in every]), other.codes)
    X = as_parts(plain, tmp_path)
    assert_same_check(whole, parted(X, sample_weight=weights, **options))


@pytest.mark.parametrize(
    ("weights", "what"),
    [
        (np.ones(N - 1), "has 499 entries, but the table has 500 rows"),
        (np.r_[np.ones(N - 1), np.nan], "1 entry that is missing or infinite"),
        (np.r_[np.ones(N - 2), -1.0, -2.0], "2 negative entries"),
        (np.zeros(N), "every sample_weight is zero"),
        (np.full(N, 1e-14) + (np.arange(N) == 0), "too small to count"),
        (np.full(N, 10.0), "sums to 5000 over 500 rows"),
        ((np.arange(N) == 3).astype(float), "only one row"),
        ("nothing", "sample_weight names 'nothing', which is not a column"),
        ("region", "500 entries that are missing or infinite"),
    ],
)
def test_weights_that_cannot_be_used(tmp_path, weights, what):
    findings = parted(as_parts(table(), tmp_path), sample_weight=weights).findings
    assert any(what in str(finding) for finding in findings)


def with_gaps(seed=0):
    frame, rng = table(seed), np.random.default_rng(seed)
    frame["visits"] = frame["visits"].astype(float)
    for name, share in (("height", 0.3), ("wage", 0.02), ("region", 0.1), ("visits", 0.05)):
        frame.loc[rng.random(N) < share, name] = None
    return frame


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_gaps(tmp_path, missing):
    frame = with_gaps()
    options = {"missing": missing, "types": TYPES}
    X = as_parts(frame, tmp_path)
    assert_same_check(check_table(frame, **options), parted(X, **options))
    if missing == "drop":
        assert_same_design(frame, X, **options)
    else:
        with pytest.raises(TableError, match="missing values"):
            learn_parts(LocalReader(source_of(X)), **options)


def test_levels_and_columns_that_vary_in_dropped_rows_only(tmp_path):
    frame = table()[["height", "weight", "region", "sex"]]
    frame.loc[frame["region"] == "west", "height"] = np.nan
    X = as_parts(frame, tmp_path)
    whole = check_table(frame, missing="drop")
    assert any("levels without complete rows" in str(each) for each in whole.findings)
    assert_same_check(whole, parted(X, missing="drop"))
    frame.loc[frame["sex"] == 1, "height"] = np.nan
    frame.loc[frame["weight"] > 0.0, "height"] = np.nan
    frame["weight"] = np.maximum(frame["weight"], 0.0)
    X = as_parts(frame, tmp_path)
    whole = check_table(frame, missing="drop")
    assert any("constant in the" in str(each) for each in whole.findings)
    assert_same_check(whole, parted(X, missing="drop"))


def test_parts_and_columns_without_values(tmp_path):
    frame = table()[["height", "sex", "region", "smokes"]]
    frame.loc[:299, "region"] = None
    frame["nothing"] = None
    X = as_parts(frame, tmp_path)
    assert_same_check(check_table(frame, missing="drop"), parted(X, missing="drop"))


def test_rows_without_any_value(tmp_path):
    frame = table()[["height", "region"]]
    frame.loc[3:7] = None
    X = as_parts(frame, tmp_path)
    assert_same_check(check_table(frame), parted(X))


# -- findings --------------------------------------------------------------------------------------

RNG = np.random.default_rng(5)
X0 = RNG.normal(size=N)
CODE = RNG.integers(0, 6, N)
ODD = {
    "constant": np.ones(N),
    "constant text": np.full(N, "a"),
    "infinite": np.where(np.arange(N) == 450, np.inf, X0),
    "row numbers": np.arange(N),
    "shuffled row numbers": RNG.permutation(N) + 1,
    "not row numbers": np.where(np.arange(N) == 9, 8, np.arange(N)),
    "identifier": np.array([f"id-{k}" for k in range(N)]),
    "numbers as text": np.array([f"{k % 60}" for k in range(N)]),
    "a few words": np.array([f"{k % 40}" if k % 25 else "none" for k in range(N)]),
    "codes": RNG.choice([1.0, 2.0, 5.0], N),
    "two values": RNG.choice([0.5, 1.5], N),
    "skewed": np.exp(3.0 * X0),
    "heavy tails": RNG.standard_t(3, N),
    "spike": np.where(RNG.random(N) < 0.4, 0.0, X0),
    "pile": np.minimum(X0, 0.5),
    "few values": np.round(3.0 * X0),
    "counts": RNG.poisson(6.0, N),
    "large": 1e80 * X0,
    "close together": 1e14 + 64.0 * RNG.integers(0, 3, N),
    "dates": pd.date_range("2020-01-01", periods=N),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_columns(tmp_path, name):
    frame = pd.DataFrame({name: ODD[name], "other": RNG.normal(size=N)})
    X = as_parts(frame, tmp_path)
    assert_same_check(check_table(frame), parted(X))


@pytest.mark.parametrize(
    ("values", "types"),
    [
        (RNG.poisson(6.0, N) - 1, "count"),
        (RNG.poisson(6.0, N) + 0.5, "count"),
        (RNG.poisson(6.0, N), Count(largest=9)),
        (RNG.poisson(6.0, N), Count(largest=14)),
        (RNG.poisson(1.0, N), Count(zero_term=True)),
        (RNG.integers(0, 2, N), "count"),
        (RNG.poisson(6.0, N) * 10**7, "count"),
        (X0, "hurdle"),
        (np.where(X0 > 0.0, 2.0, 0.0), "hurdle"),
        (np.where(X0 > 0.0, np.exp(3.0 * X0), 0.0), "hurdle"),
        (np.zeros(N), "hurdle"),
        (CODE, Ordinal(scores=[0, 1])),
        (CODE, Ordinal(levels=[0, 1, 2, 3, 4])),
        (CODE, Ordinal(levels=[6, 5, 4, 3, 2, 1, 0])),
        (RNG.choice(["low", "high"], N), "ordinal"),
        (RNG.choice(["10 and more", "5-9"], N), "ordinal"),
        (RNG.choice(["low", "high"], N), "continuous"),
        (X0, "categorical"),
        (np.arange(N), "ordinal"),
        (RNG.integers(0, 3, N), "nonsense"),
    ],
)
def test_declared_columns(tmp_path, values, types):
    frame = pd.DataFrame({"x": values, "other": RNG.normal(size=N)})
    X = as_parts(frame, tmp_path)
    options = {"types": {"x": types}}
    assert_same_check(check_table(frame, **options), parted(X, **options))


def test_columns_that_follow_from_others(tmp_path):
    frame = table()[["height", "weight", "region", "pain", "stage"]]
    frame["centimetres"] = 100.0 * frame["height"] + 3.0
    frame["sum"] = frame["height"] - 2.0 * frame["weight"]
    frame["part of the world"] = frame["region"].map({"north": "n", "south": "s", "west": "s"})
    frame["copy"] = frame["stage"].astype(str) + "!"
    frame["rent"] = frame["region"].map({"north": 1.5, "south": 2.5, "west": 7.0})
    frame.loc[3:9, "height"] = np.nan
    X = as_parts(frame, tmp_path)
    whole = check_table(frame, types={"pain": "ordinal"}, missing="drop")
    assert sum("follows" in str(each) or "level" in str(each) for each in whole.findings) >= 5
    assert_same_check(whole, parted(X, types={"pain": "ordinal"}, missing="drop"))


def test_the_schema_of_another_table(tmp_path):
    frame = table()
    schema = check_table(frame, types=TYPES).schema
    X = as_parts(frame.iloc[::-1].reset_index(drop=True), tmp_path)
    assert_same_check(check_table(frame.iloc[::-1], types=schema), parted(X, types=schema))


# -- what only tables in parts have ----------------------------------------------------------------


def test_parts_with_other_columns(tmp_path):
    frame = table()[["height", "sex", "region"]]
    frame.to_parquet(tmp_path / "a.parquet")
    frame.drop(columns="sex").assign(age=1.0).to_parquet(tmp_path / "b.parquet")
    findings = {each.column: each.what for each in parted(tmp_path).findings}
    assert findings["sex"].startswith("is absent in")
    assert "b.parquet" in findings["sex"]
    assert findings["age"].startswith("is not in the first part, but in")


def test_types_that_change_between_parts(tmp_path):
    frame = table()[["height", "sex", "region"]]
    frame.to_parquet(tmp_path / "a.parquet")
    frame.assign(sex="f", height=frame["height"] > 0).to_parquet(tmp_path / "b.parquet")
    findings = {each.column: each.what for each in parted(tmp_path).findings}
    assert findings["sex"] == "its type changes between parts: numbers in some, text in others"
    assert "truth values in others" in findings["height"]


def test_categories_that_differ_between_parts_are_put_together(tmp_path):
    one = pd.DataFrame({"x": [1.0, 2.5, 3.0], "y": pd.Categorical(["b", "a", "b"])})
    other = pd.DataFrame({"x": [0.5, 2.0, 3.5], "y": pd.Categorical(["c", "a", "c"])})
    one.to_parquet(tmp_path / "a.parquet")
    other.to_parquet(tmp_path / "b.parquet")
    assert levels_of(tmp_path, "y") == ("a", "b", "c")


def test_text_with_very_many_levels_is_left_out(tmp_path):
    frame = table()[["height", "sex"]]
    frame["id"] = [f"id-{k}" for k in range(N)]
    checked = parted(as_parts(frame, tmp_path), most_levels=100)
    assert [each.name for each in checked.schema.left_out] == ["id"]
    assert any("more than 100 distinct texts" in str(each) for each in checked.findings)


def test_empty_tables_and_parts(tmp_path):
    frame = table()[["height", "sex"]]
    frame.iloc[:0].to_parquet(tmp_path / "a.parquet")
    assert "the table is empty" in str(parted(tmp_path).findings[0])
    frame.to_parquet(tmp_path / "b.parquet")
    assert_same_design(frame, tmp_path)
    assert "the table is empty" in str(parted(pl.LazyFrame({"x": []})).findings[0])


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"missing": "model"}, "missing='model' needs all rows at once.*missing='drop'"),
        ({"transforms": "nonparanormal"}, "transforms rank all rows of a column at once"),
        ({"transforms": {"wage": "nonparanormal"}}, "Transform its columns before"),
    ],
)
def test_what_needs_all_rows_is_refused(tmp_path, options, what):
    with pytest.raises(NotYetError, match=what):
        parted(as_parts(table(), tmp_path), **options)


def test_options_that_mean_nothing(tmp_path):
    X = as_parts(table(), tmp_path)
    with pytest.raises(ParameterError, match="missing must be"):
        parted(X, missing="guess")
    assert "types names 'heigt'" in str(parted(X, types={"heigt": "continuous"}).findings[0])
    assert parted(X, transforms={"wage": None}).schema == check_table(table()).schema


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("no-*.parquet", "no file fits the pattern"),
        ("*.csv", "is not a Parquet file"),
        ("bad-*.parquet", "cannot be read"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, what):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "bad-1.parquet").write_text("nothing")
    with pytest.raises(TableError, match=what):
        parted(str(tmp_path / name))


def test_a_folder_without_files_and_a_list_with_a_wrong_name(tmp_path):
    with pytest.raises(TableError, match="has no Parquet files"):
        parted(tmp_path)
    with pytest.raises(TableError, match="there is no file"):
        parted([tmp_path / "a.parquet"])


def test_large_files_are_several_parts(tmp_path):
    frame = table()
    frame.to_parquet(tmp_path / "a.parquet")
    source = source_of(tmp_path, most_rows=90)
    assert [len(part) for _, part in source.frames()] == [90, 90, 90, 90, 90, 50]
    reader = LocalReader(source)
    assert reader.read(PartPlan(("height",), {}), None).parts.total(row_sums) == (N,)


def test_rows_that_are_taken(tmp_path):
    frame = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        whole, _ = learn(frame, sample_weight=np.arange(1.0, N + 1.0), transforms=None)
        reader = LocalReader(source_of(as_parts(frame, tmp_path)))
        design, _ = learn_parts(reader, sample_weight=np.arange(1.0, N + 1.0))
    for chosen in (np.arange(0, N, 7), np.array([2, 40, 499]), np.array([300])):
        taken, expected = design.take(chosen), whole.take(chosen)
        assert (taken.n_rows, taken.total_weight) == (len(chosen), expected.total_weight)
        every = list(taken.parts.map(lambda part: part))
        np.testing.assert_array_equal(np.concatenate([p.codes for p in every]), expected.codes)
        assert design.weight_of(chosen) == expected.total_weight


def test_moments_of_merged_parts_are_those_of_the_whole():
    x = np.random.default_rng(0).lognormal(size=90)
    x[20:] += 3.0
    merged = NumberSummary.of(x[:20]).merged(NumberSummary.of(x[20:]))
    assert merged.mean == pytest.approx(x.mean())
    expected = [((x - x.mean()) ** k).sum() for k in (2, 3, 4)]
    assert merged.powers == pytest.approx(expected)
    assert merged.count == 90


@pytest.mark.parametrize("size", [1e110, 1e160, 1.5e308])
def test_numbers_that_are_too_large_are_named_in_parts_as_in_memory(size, tmp_path):
    numbers = size * np.random.default_rng(0).uniform(-1, 1, 60)
    numbers[30:] = np.abs(numbers[30:])
    frame = pd.DataFrame({"x": numbers, "y": np.arange(60.0) ** 0.5})
    parts = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    frame[:30].to_parquet(parts[0])
    frame[30:].to_parquet(parts[1])
    (whole,), (cut,) = (check_any_table(each).findings for each in (frame, parts))
    assert cut == whole
    assert cut.column == "x"
    assert "too large for double precision" in cut.what
