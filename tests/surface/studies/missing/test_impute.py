"""impute: missing cells from what is observed, everything else as it was."""

import numpy as np
import pytest

import mixedgm as mg
from tests.support.enumerated import COLUMNS, known_model
from tests.support.people import LEVELS, people


def gappy(n_rows=60, share=0.3, seed=0, **options):
    """Rows of the known model, some cells missing, and where."""
    model, world = known_model(1, **options)
    rows = model.sample(n_rows, random_state=seed)
    rng = np.random.default_rng(seed)
    gaps = rng.random(rows.shape) < share
    gaps[0], gaps[1] = True, False  # nothing known, and nothing missing
    return model, world, rows.astype({"smoker": object}).mask(gaps), gaps


def evidence(row):
    return {
        name: (None if value != value or value is None else value) for name, value in row.items()
    }


def test_cells_get_means_and_most_probable_levels():
    model, world, rows, gaps = gappy()
    done = model.impute(rows)
    for at in range(len(rows)):
        rest = world.given(**evidence(rows.iloc[at]))
        for k, name in enumerate(COLUMNS):
            cell = done.iloc[at, k]
            if not gaps[at, k]:
                assert cell == rows.iloc[at, k]
            elif COLUMNS[name] == "continuous":
                assert cell == pytest.approx(rest.moments(name)[0][0], rel=1e-9, abs=1e-11)
            else:
                chances = {level: rest.chance(**{name: level}) for level in COLUMNS[name]}
                assert cell == max(chances, key=chances.get)


@pytest.mark.statistical
def test_draws_have_the_distribution_of_the_gaps():
    """Two rows drawn 4,000 times: shares and moments within five standard errors.

    Fourteen numbers, each off with probability below 6e-7: a false alarm in 1e-5, seeds fixed.
    """
    import pandas as pd

    model, world = known_model(1)
    rows = model.sample(2, random_state=5).astype({"smoker": object, "city": object})
    rows.loc[0, ["city", "wage", "smoker"]] = [None, np.nan, None]
    rows.loc[1, ["city", "age"]] = [None, np.nan]
    n = 4_000
    many = pd.concat([rows] * (n // 10), ignore_index=True)
    drawn = pd.concat(model.impute(many, 10, random_state=1), ignore_index=True)
    for at, name in ((0, "wage"), (1, "age")):
        rest = world.given(**evidence(rows.iloc[at]))
        mine = drawn[(drawn.index % 2) == at]
        assert len(mine) == n
        for city in COLUMNS["city"]:
            chance = rest.chance(city=city)
            share = (mine["city"] == city).mean()
            assert abs(share - chance) < 5 * np.sqrt(chance * (1 - chance) / n)
            mean, variance = rest.moments(name, city=city)
            inside = mine.loc[mine["city"] == city, name]
            assert abs(inside.mean() - mean[0]) < 5 * np.sqrt(variance[0, 0] / len(inside))
        mean, variance = rest.moments(name)
        assert abs(mine[name].mean() - mean[0]) < 5 * np.sqrt(variance[0, 0] / n)
    both = world.given(**evidence(rows.iloc[0])).chance(city="Oslo", smoker=True)
    mine = drawn[(drawn.index % 2) == 0]
    share = ((mine["city"] == "Oslo") & mine["smoker"].astype(bool)).mean()
    assert abs(share - both) < 5 * np.sqrt(both * (1 - both) / n)


def test_draws_are_a_list_that_a_seed_repeats():
    model, _, rows, gaps = gappy()
    five = model.impute(rows, 5, random_state=2)
    two = model.impute(rows, 2, random_state=2)
    assert (len(five), len(two)) == (5, 2)
    assert five[0].equals(two[0])
    assert five[1].equals(two[1])
    assert not five[0].equals(five[1])
    for done in five:
        assert done.where(~gaps).equals(rows.where(~gaps))
        assert not done.isna().any(axis=None)
    for bad in (0, 1.5, True, "2"):
        with pytest.raises(mg.ParameterError, match="n_draws must be an integer of at least 1"):
            model.impute(rows, bad)


def with_gaps(library):
    """The people with gaps in every column, in a library and in plain lists."""
    frame = people(80)
    rng = np.random.default_rng(0)
    cells = {name: frame[name].tolist() for name in frame.columns}
    for values in cells.values():
        for at in np.flatnonzero(rng.random(80) < 0.25):
            values[at] = None
    cells["note"] = [f"row {at}" for at in range(80)]
    if library == "polars":
        import polars as pl

        return cells, pl.DataFrame(cells, schema_overrides={"group": pl.Enum(LEVELS["group"])})
    if library == "pyarrow":
        import pyarrow as pa

        columns = {name: pa.array(values) for name, values in cells.items()}
        return cells, pa.table({**columns, "group": columns["group"].dictionary_encode()})
    import pandas as pd

    table = pd.DataFrame(cells, index=pd.Index(range(100, 180), name="person"))
    return cells, table.astype({"group": pd.CategoricalDtype(LEVELS["group"])})


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_come_back_as_they_were(library):
    cells, table = with_gaps(library)
    model = mg.MixedGraphicalModel(lam=0.1).fit(people())
    done = model.impute(table)
    assert type(done) is type(table)
    if library == "pandas":
        assert done.dtypes.equals(table.dtypes)
        assert done.index.equals(table.index)
        found = {name: done[name].tolist() for name in done.columns}
    else:
        assert done.schema == table.schema
        found = done.to_dict(as_series=False) if library == "polars" else done.to_pydict()
    assert list(found) == list(cells)
    for name, values in cells.items():
        assert None not in found[name]
        assert all(
            new == old for new, old in zip(found[name], values, strict=True) if old is not None
        )
    same = mg.MixedGraphicalModel(lam=0.1).fit(people()).impute(with_gaps("pandas")[1])
    assert {name: same[name].tolist() for name in same.columns} == found


def test_arrays_and_lists():
    frame = people(60)
    array = np.array([list(row) for row in frame.itertuples(index=False)], dtype=object)
    model = mg.MixedGraphicalModel(lam=0.1).fit(array)
    array[3, 0] = array[4, 1] = array[5, 3] = None
    done = model.impute(array)
    assert done.dtype == object
    assert isinstance(done[3, 0], float)
    assert done[4, 1] in LEVELS["group"]
    assert done[5, 3] in (True, False)
    observed = [(i, j) for i in range(60) for j in range(5) if array[i, j] is not None]
    assert all(done[at] == array[at] for at in observed)
    numbers = np.array(frame[["height", "weight"]])
    numbers[0, 1] = np.nan
    plain = mg.MixedGraphicalModel(lam=0.1).fit(numbers[1:])
    assert plain.impute(numbers).dtype == np.float64
    np.testing.assert_array_equal(plain.impute(numbers.tolist()), plain.impute(numbers))


LUCK = 4 * np.random.default_rng(1).normal(size=120)


def test_whole_numbers():
    import pandas as pd

    ages = people(120).assign(age=lambda t: (40 + 3 * t["height"] + LUCK).round().astype("Int64"))
    model = mg.MixedGraphicalModel(lam=0.1).fit(ages)
    ages.loc[[2, 7], "age"] = pd.NA
    done = model.impute(ages)
    assert str(done["age"].dtype) == "Int64"
    means = model.impute(ages.astype({"age": "Float64"}))["age"]  # a type that holds decimals
    assert not (means == means.round()).all()
    assert done["age"].tolist() == means.round().tolist()
    assert done["age"].drop([2, 7]).tolist() == ages["age"].drop([2, 7]).tolist()
    assert 20 < done["age"][2] < 60
    for draw in model.impute(ages, 3, random_state=0):
        assert str(draw["age"].dtype) == "Int64"
        assert draw["age"].notna().all()
    floats = ages.assign(age=ages["age"].astype(float))  # as pandas holds gaps by default
    drawn = model.impute(floats, 1, random_state=0)[0]["age"]
    assert (drawn == drawn.round()).all()


def test_a_column_without_any_value_is_predicted():
    frame = people()
    model = mg.MixedGraphicalModel(lam=0.1).fit(frame)
    for empty in (None, np.nan):
        done = model.impute(frame.assign(group=empty, smoker=empty))
        assert done.dtypes.equals(frame.dtypes)
    # One missing cell in a row: what a model with the joint distribution's node terms predicts.
    joint = mg.from_params(model.schema_, model.fitted_.joint_params)
    alone = model.impute(frame.assign(group=None))["group"]
    assert alone.tolist() == joint.predict(frame, "group").tolist()
    weight = model.impute(frame.assign(weight=np.nan))["weight"]
    np.testing.assert_allclose(weight, joint.predict(frame, "weight"), rtol=1e-10)


def test_a_transform_is_undone_and_observed_cells_are_kept_to_the_bit():
    frame = people().assign(weight=lambda table: np.exp(table["weight"] / 20))
    model = mg.MixedGraphicalModel(lam=0.1, transforms="nonparanormal").fit(frame)
    gappy = frame.assign(weight=frame["weight"].mask(np.arange(len(frame)) % 3 == 0))
    done = model.impute(gappy)
    kept = gappy["weight"].notna()
    assert (done.loc[kept, "weight"] == frame.loc[kept, "weight"]).all()
    assert done["height"].equals(frame["height"])
    joint = mg.from_params(model.schema_, model.fitted_.joint_params)
    expected = joint.predict(frame, "weight")[~kept]
    np.testing.assert_allclose(done.loc[~kept, "weight"], expected, rtol=1e-9)


def test_nothing_missing_nothing_changed():
    frame = people()
    model = mg.MixedGraphicalModel(lam=0.1).fit(frame)
    assert model.impute(frame).equals(frame)


def test_problems_of_the_table_come_all_at_once():
    frame = people()
    model = mg.MixedGraphicalModel(lam=0.1).fit(frame)
    bad = frame.drop(columns="weight").assign(colour="green", height=np.inf)
    with pytest.raises(mg.TableError) as caught:
        model.impute(bad)
    text = str(caught.value)
    for part in ("'weight': the model was fitted with it", "'green' (150 rows)", "150 infinite"):
        assert part in text


def test_columns_that_are_numbers_in_pandas():
    frame = people().set_axis([0, 1, 2, 3, "colour"], axis=1)
    model = mg.MixedGraphicalModel(lam=0.1).fit(frame)
    done = model.impute(frame.mask(np.arange(frame.size).reshape(frame.shape) % 3 == 0))
    assert list(done.columns) == [0, 1, 2, 3, "colour"]
    assert not done.isna().any(axis=None)


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "int16[pyarrow]", "polars", "pyarrow"])
def test_integer_types_stay(dtype):
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    table = people(120).assign(age=lambda t: (40 + 3 * t["height"] + LUCK).round().astype("int64"))
    model = mg.MixedGraphicalModel(lam=0.1).fit(table)
    numbers = table["age"].astype(float).mask(table.index % 3 == 0)
    expected = model.impute(table.assign(age=numbers))["age"].round().tolist()
    whole = [None if x != x else int(x) for x in numbers]
    plain = {name: table[name].tolist() for name in table.columns if name != "age"}
    if dtype == "polars":
        done = model.impute(pl.DataFrame({**plain, "age": pl.Series(whole, dtype=pl.Int16)}))
        assert done.schema["age"] == pl.Int16
        assert done["age"].to_list() == expected
    elif dtype == "pyarrow":
        done = model.impute(pa.table({**plain, "age": pa.array(whole, pa.int32())}))
        assert done.schema.field("age").type == pa.int32()
        assert done["age"].to_pylist() == expected
    else:
        for gaps in (whole, [None] * len(whole)):
            done = model.impute(table.assign(age=pd.array(gaps, dtype=dtype)))["age"]
            assert str(done.dtype) == dtype
            assert gaps is not whole or done.tolist() == expected


def test_an_empty_integer_column_is_filled_with_levels():
    import pandas as pd

    model = mg.MixedGraphicalModel(lam=0.1).fit(people(120))
    rows = people(5).assign(group=pd.array([None] * 5, dtype="Int64"))
    assert set(model.impute(rows)["group"]) <= {"a", "b", "c"}


# -- parameters that vary --------------------------------------------------------------------------


def lacking(n_rows=120, seed=0):
    """People of whom a quarter lacks some cell."""
    frame = people(n_rows, seed=seed).astype({"smoker": object})
    rng = np.random.default_rng(seed)
    return frame.mask(rng.random(frame.shape) < [0.0, 0.1, 0.2, 0.1, 0.0])


@pytest.mark.parametrize("options", [{"lam": 0.1}, {"lam": 0.1, "refit": True}])
def test_resampled_draws_repeat_for_every_number_of_workers(options):
    frame = lacking()
    model = mg.MixedGraphicalModel(missing="model", **options).fit(frame)
    how = {"parameters": "resampled", "random_state": 1}
    four = model.impute(frame, 4, n_jobs=1, **how)
    two = model.impute(frame, 2, n_jobs=2, **how)
    assert all(one.equals(other) for one, other in zip(four, two, strict=False))
    assert not four[0].equals(four[1])
    for done in four:
        assert not done.isna().any(axis=None)
        assert done.where(frame.notna()).equals(frame)
        assert done.dtypes.equals(frame.dtypes)


@pytest.mark.statistical
def test_resampled_draws_have_the_spread_that_the_rows_leave():
    """The mean of a column of which half is missing at random given another.

    60 rows; between draws, the mean of the missing values varies by about their own noise over 30
    rows where parameters are fixed, and by that of their regression besides, 30 rows as well, where
    they vary: variances of one to two at least.  120 draws of each have a ratio of variances whose
    standard error is 0.18 of it, so that a ratio below 1.2 is 2.5 of them off.
    """
    import pandas as pd

    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    table = pd.DataFrame({"x": x, "y": x + rng.normal(size=60)})
    table.loc[:29, "y"] = np.nan
    model = mg.MixedGraphicalModel(lam=0.001, refit=True, missing="model").fit(table)
    between = {
        how: np.var(
            [each["y"].mean() for each in model.impute(table, 120, parameters=how, random_state=0)]
        )
        for how in ("fixed", "resampled")
    }
    assert between["resampled"] > 1.2 * between["fixed"]


def test_models_without_a_fit_and_weights_are_resampled():
    frame = lacking()
    truth = mg.from_params(
        mg.MixedGraphicalModel(lam=0.1, missing="model").fit(frame).schema_, {}, frame="pandas"
    )
    how = {"parameters": "resampled", "random_state": 0, "n_jobs": 1}
    assert not truth.impute(frame, 1, **how)[0].isna().any(axis=None)
    model = mg.MixedGraphicalModel(lam=0.1, missing="model").fit(frame)
    once = model.impute(frame, 1, **how)[0]
    assert once.equals(model.impute(frame, 1, sample_weight=np.ones(120), **how)[0])
    weights = np.arange(120) % 4
    assert not once.equals(model.impute(frame, 1, sample_weight=weights, **how)[0])
    whole = people(120)
    assert model.impute(whole, 1, **how)[0].equals(whole)


def test_why_parameters_cannot_be_resampled():
    frame = lacking()
    model = mg.MixedGraphicalModel(lam=0.1, missing="model").fit(frame)
    with pytest.raises(mg.ParameterError, match="parameters must be 'fixed' or 'resampled'"):
        model.impute(frame, 2, parameters="drawn")
    with pytest.raises(mg.ParameterError, match="is for draws; say how many with n_draws"):
        model.impute(frame, parameters="resampled")
    with pytest.raises(mg.ParameterError, match="20 rows with values, fewer than 30"):
        model.impute(frame.iloc[:20], 2, parameters="resampled")
    with pytest.raises(mg.ParameterError, match="where 'weight' has no values"):
        model.impute(frame.assign(weight=np.nan), 2, parameters="resampled")
    apart = mg.MixedGraphicalModel(lam=0.1, missing="model", loss="nodewise").fit(frame)
    with pytest.raises(mg.DistributionError, match="separate regressions"):
        apart.impute(frame, 2, parameters="resampled")


@pytest.mark.parametrize("kind", ["categorical", "ordinal"])
@pytest.mark.parametrize("unit", [1e17, 1e19, 1e25])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "double[pyarrow]"])
def test_levels_that_are_large_decimals_stay_decimals(library, unit, kind):
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    as_frame = {
        "pandas": lambda frame: frame,
        "polars": lambda frame: pl.from_pandas(frame, nan_to_null=True),
        "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
        "double[pyarrow]": lambda frame: frame.astype("double[pyarrow]"),
    }[library]
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"k": unit * rng.integers(1, 4, 40), "y": rng.normal(size=40)})
    model = mg.MixedGraphicalModel(lam=0.2, types={"k": kind}).fit(as_frame(table))
    for gaps in (slice(0, 5), slice(0, 40)):
        gappy = table.copy()
        gappy.loc[gappy.index[gaps], "k"] = np.nan
        for done in (model.impute(as_frame(gappy)), model.impute(as_frame(gappy), 1)[0]):
            column = done["k"]
            assert str(getattr(column, "dtype", getattr(column, "type", ""))).lower() in (
                *("float64", "double", "double[pyarrow]"),
            )
            values = column.to_pylist() if library == "pyarrow" else column.to_list()
            assert set(values) <= {unit, 2 * unit, 3 * unit}
            known = slice(5, 40) if gaps.stop == 5 else slice(0)
            assert values[known] == table["k"].tolist()[known]
    for made in (model.sample(3, random_state=0), model.predict(as_frame(table))):
        values = made["k"].to_pylist() if library == "pyarrow" else made["k"].to_list()
        assert all(isinstance(value, float) for value in values)
