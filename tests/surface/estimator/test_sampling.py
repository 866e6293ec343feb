"""sample: rows that look like the training table, of the right distribution."""

import numpy as np
import pytest

import mixedgm as mg
from tests.support.indefinite import with_precision
from tests.support.people import LEVELS, as_library, people


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_come_back_as_they_were(library):
    frame = as_library(people(), library)
    model = mg.MixedGraphicalModel(lam=0.2).fit(frame)
    rows = model.sample(40, random_state=0)
    assert type(rows) is type(frame)
    if library == "pyarrow":
        assert rows.schema.equals(frame.schema)
    elif library == "polars":
        assert rows.schema == frame.schema
    else:
        assert rows.dtypes.tolist() == frame.dtypes.tolist()
        assert rows.columns.tolist() == frame.columns.tolist()
    assert len(rows) == 40
    model.score(rows)  # a table that the model itself accepts


@pytest.mark.filterwarnings("ignore:.*follows from:mixedgm.TableWarning")
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("kind", ["int64", "int8", "uint16", "float32"])
def test_numbers_keep_their_type(library, kind):
    ages = (40 + 5 * people()["height"]).round()
    model = mg.MixedGraphicalModel(lam=0.2).fit(
        frame := as_library(people().assign(age=ages.clip(0, 120).astype(kind)), library)
    )
    for given in (None, {"smoker": people()["smoker"][0]}):
        rows = model.sample(50, given, random_state=0)
        types = (rows.schema, frame.schema) if library != "pandas" else (rows.dtypes, frame.dtypes)
        assert types[0].equals(types[1]) if library != "polars" else types[0] == types[1]
    assert len(set(np.asarray(rows["age"]).tolist())) > 5
    # A known value stays what it is; expectations are those of the model, not of rounded rows.
    known = model.sample(2, {"age": 40.5}, random_state=0)["age"]
    assert np.asarray(known).tolist() == [40.5, 40.5]


def test_whole_numbers_stay_within_their_type():
    counts = np.random.default_rng(0).poisson(1.5, 300).astype("uint8")
    frame = people(300).assign(visits=counts)
    model = mg.MixedGraphicalModel(lam=0.2, types={"visits": "continuous"}).fit(frame)
    rows = model.sample(2000, random_state=0)
    assert rows["visits"].dtype == np.uint8
    assert rows["visits"].min() == 0
    assert rows["visits"].max() < 20  # what is below zero does not wrap around


def test_expectations_are_not_of_rounded_rows():
    frame = people(300)
    frame["flag"] = np.random.default_rng(0).integers(0, 3, 300)
    model = mg.MixedGraphicalModel(lam=0.2, types={"flag": "continuous"}).fit(frame)
    decimals = model.expectation(lambda rows: rows["flag"] % 1 != 0, n=200, random_state=0)
    assert decimals.value == 1.0


def test_arrays_come_back_as_arrays():
    model = mg.MixedGraphicalModel(lam=0.2, types={1: "categorical"}).fit(
        as_library(people(), "codes")
    )
    rows = model.sample(10, random_state=0)
    assert rows.shape == (10, 5)
    assert set(rows[:, 1]) <= {0.0, 1.0, 2.0}


def test_seeds():
    model = mg.MixedGraphicalModel(lam=0.2).fit(people())
    assert model.sample(5, random_state=3).equals(model.sample(5, random_state=3))
    assert not model.sample(5, random_state=3).equals(model.sample(5, random_state=4))
    rng = np.random.default_rng(0)
    assert not model.sample(5, random_state=rng).equals(model.sample(5, random_state=rng))


def test_a_transform_is_undone():
    frame = people(300).assign(weight=lambda table: np.exp(table["weight"] / 20))
    model = mg.MixedGraphicalModel(lam=0.2, transforms={"weight": "nonparanormal"}).fit(frame)
    rows = model.sample(300, random_state=0)
    assert rows["weight"].between(0.9 * frame["weight"].min(), 1.1 * frame["weight"].max()).all()


@pytest.mark.statistical
def test_rows_have_the_distribution_of_a_small_model():
    """Enumerated shares of y and moments of x; each bound is five standard errors.

    Ten numbers are compared, each missing with probability below 6e-7: false alarm below 1e-5.
    The seed is fixed, so it either fails always or never.
    """
    phi = np.zeros((5, 5))
    phi[:2, 2:] = [[0.6, -0.2, -0.4], [-0.6, 0.2, 0.4]]
    blocks = {
        "precision": [[2.0]],
        "cont_bias": [0.3],
        "category_shift": [[-0.8, 0.8, 0.5, 0.0, -0.5]],
        "cat_interaction": phi + phi.T,
        "cat_bias": [0.0, 0.4, 0.0, -0.3, 0.2],
    }
    truth = mg.from_params({"x": "continuous", "y": 2, "z": 3}, blocks)
    n = 20_000
    rows = truth.sample(n, random_state=1)
    shift, bias = np.array(blocks["category_shift"])[0], np.array(blocks["cat_bias"])
    states = [(a, b) for a in range(2) for b in range(3)]
    means = np.array([(0.3 + shift[a] + shift[2 + b]) / 2.0 for a, b in states])
    logs = np.array([bias[a] + bias[2 + b] + phi[a, 2 + b] for a, b in states]) + means**2
    shares = np.exp(logs) / np.exp(logs).sum()
    found = [np.mean((rows["y"] == "ab"[a]) & (rows["z"] == "abc"[b])) for a, b in states]
    assert (np.abs(found - shares) < 5 * np.sqrt(shares * (1 - shares) / n)).all()
    mean, variance = shares @ means, 0.5 + shares @ means**2 - (shares @ means) ** 2
    assert abs(rows["x"].mean() - mean) < 5 * np.sqrt(variance / n)
    assert abs(rows["x"].var() - variance) < 5 * variance * np.sqrt(2.5 / n)
    inside = rows.loc[(rows["y"] == "a") & (rows["z"] == "a"), "x"]
    assert abs(inside.mean() - means[0]) < 5 * np.sqrt(0.5 / len(inside))
    assert abs(inside.var() - 0.5) < 5 * 0.5 * np.sqrt(2 / len(inside))


def test_without_a_joint_distribution_the_columns_are_named():
    # Four edges that the conditionals allow and no joint distribution does.
    fit = mg.MixedGraphicalModel(lam=0.2).fit(people())
    model = with_precision(fit, np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(mg.DistributionError, match="'height', 'weight'"):
        model.sample(3)


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", True, None])
def test_n_is_a_positive_whole_number(n):
    model = mg.MixedGraphicalModel(lam=0.2).fit(people())
    with pytest.raises(mg.ParameterError, match="n must be"):
        model.sample(n)


def test_levels_are_known_by_name():
    rows = mg.MixedGraphicalModel(lam=0.2).fit(people()).sample(200, random_state=0)
    assert set(rows["group"]) == set(LEVELS["group"])
