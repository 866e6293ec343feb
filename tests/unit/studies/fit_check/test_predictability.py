"""Predictability against scikit-learn's metrics on the model's own predictions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, d2_log_loss_score, r2_score

import mixedgm as mg
from mixedgm.studies.fit_check.predictability import ring_shares
from tests.support.people import CONTINUOUS, LEVELS, as_library, people

WEIGHTS = np.random.default_rng(5).integers(1, 4, 120).astype(float)


@pytest.fixture(scope="module")
def model():
    return mg.MixedGraphicalModel(lam=0.1).fit(people(400))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_numbers_are_those_of_scikit_learn(model, weights):
    new = people(120, seed=9)
    found = model.predictability(new, sample_weight=weights).set_index("column")
    predicted = model.predict(new)
    assert list(found.index) == list(new.columns)
    for name in CONTINUOUS:
        r2 = r2_score(new[name], predicted[name], sample_weight=weights)
        assert found.loc[name, "r2"] == pytest.approx(r2)
        assert found.loc[name, ["accuracy", "normalised_accuracy"]].isna().all()
    for name, levels in LEVELS.items():
        y = new[name].astype(str)
        accuracy = accuracy_score(y, predicted[name].astype(str), sample_weight=weights)
        assert found.loc[name, "accuracy"] == pytest.approx(accuracy)
        majority = max(np.average(y == str(level), weights=weights) for level in levels)
        assert found.loc[name, "majority"] == pytest.approx(majority)
        gain = (accuracy - majority) / (1 - majority)
        assert found.loc[name, "normalised_accuracy"] == pytest.approx(gain)
        names = [str(level) for level in levels]
        proba = model.predict_proba(new, name)[names].to_numpy()
        d2 = d2_log_loss_score(y, proba, sample_weight=weights, labels=names)
        assert found.loc[name, "deviance_explained"] == pytest.approx(d2)
        assert np.isnan(found.loc[name, "r2"])


def test_an_empty_graph_explains_nothing():
    frame = people(200)
    found = mg.MixedGraphicalModel(lam=5.0).fit(frame).predictability(frame)
    for name in ("r2", "normalised_accuracy", "deviance_explained"):
        assert abs(found[name].dropna()).max() < 1e-6


def test_a_column_that_does_not_vary_has_no_share(model):
    new = people(50).query("group == 'a'").assign(height=1.0)
    found = model.predictability(new).set_index("column")
    assert found.loc["group", ["normalised_accuracy", "deviance_explained"]].isna().all()
    assert found.loc["group", "majority"] == 1.0
    assert np.isnan(found.loc["height", "r2"])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_are_of_the_library_of_the_training_table(library):
    frame = as_library(people(), library)
    found = mg.MixedGraphicalModel(lam=0.2).fit(frame).predictability(frame)
    assert type(found) is type(frame)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_rings_from_rows_frames_and_numbers_agree(library):
    frame = as_library(people(), library)
    fitted = mg.MixedGraphicalModel(lam=0.2).fit(frame)
    table = fitted.predictability(frame, folds=5)
    from_rows = ring_shares(fitted.fitted_, frame)
    assert ring_shares(fitted.fitted_, table) == from_rows
    assert ring_shares(fitted.fitted_, from_rows) == from_rows
    assert set(from_rows) == {"height", "group", "weight", "smoker", "colour"}


def test_rings_that_cannot_be(model):
    with pytest.raises(mg.ParameterError, match="no column 'hight'"):
        model.plot(predictability={"hight": 0.5})
    with pytest.raises(mg.ParameterError, match="predictability of 'height' must be a number up"):
        model.plot(predictability={"height": 1.5})
    with pytest.raises(mg.ParameterError, match="a number up to 1"):
        model.plot(predictability={"height": "much"})
    with pytest.raises(mg.TableError, match="'group'"):
        model.plot(predictability=people().drop(columns="group"))


def test_gaps_leave_a_column_to_the_rows_that_have_it():
    """R2 and accuracy from predict alone, over the rows that have the column."""
    frame = people(200)
    model = mg.MixedGraphicalModel(lam=0.05).fit(frame)
    rows = people(80, seed=4).astype({"smoker": object})
    rows = rows.mask(np.random.default_rng(1).random(rows.shape) < 0.2)
    found, given = model.predictability(rows).set_index("column"), model.predict(rows)
    there = rows["weight"].notna()
    x, mean = rows["weight"][there], given["weight"][there]
    r2 = 1 - ((x - mean) ** 2).sum() / ((x - x.mean()) ** 2).sum()
    assert found.loc["weight", "r2"] == pytest.approx(r2, rel=1e-12)
    there = rows["group"].notna()
    right = (rows["group"][there].astype(str) == given["group"][there].astype(str)).mean()
    assert found.loc["group", "accuracy"] == pytest.approx(right, rel=1e-12)
    shares = rows["group"].value_counts(normalize=True)
    entropy = -(shares * np.log(shares)).sum()
    explained = 1 - model.node_scores(rows)["group"] / entropy
    assert found.loc["group", "deviance_explained"] == pytest.approx(explained, rel=1e-12)
    nothing = model.predictability(rows.assign(colour=None)).set_index("column")
    assert nothing.loc["colour", ["accuracy", "majority"]].isna().all()


def test_columns_of_noise_are_predicted_in_the_rows_of_the_fit_and_not_on_held_out_ones():
    """Held-out R2 agrees with regressions on the other folds; of noise it is not above zero."""
    rng = np.random.default_rng(8)
    n = 200
    x = rng.normal(size=n)
    table = pd.DataFrame({"x": x, "y": x + rng.normal(size=n), "z": rng.normal(size=n)})
    model = mg.MixedGraphicalModel(lam=0.0).fit(table)
    found = model.predictability(table, folds=5).set_index("column")
    assert found.columns[-1] == "held_out"
    assert "held_out" not in model.predictability(table).columns
    assert (found["held_out"] < found["r2"]).all()
    assert found.loc["z", "r2"] > 0.0 >= found.loc["z", "held_out"]
    fold = np.random.default_rng(0).permutation(n) % 5
    for target in table.columns:
        others, shares = [c for c in table.columns if c != target], []
        for k in range(5):
            train, test = table[fold != k], table[fold == k]
            columns = np.column_stack([np.ones(len(train)), train[others]])
            slope = np.linalg.lstsq(columns, train[target], rcond=None)[0]
            left = test[target] - np.column_stack([np.ones(len(test)), test[others]]) @ slope
            shares.append(1.0 - (left**2).sum() / ((test[target] - test[target].mean()) ** 2).sum())
        assert found.loc[target, "held_out"] == pytest.approx(np.mean(shares), abs=2e-3)
    with pytest.raises(mg.ParameterError, match="folds must be"):
        model.predictability(table, folds=1)


def test_nodes_tell_what_held_out_rows_say_and_which_columns_are_unpredictable():
    rng = np.random.default_rng(8)
    n = 300
    x, w = rng.normal(size=(2, n))
    table = pd.DataFrame({"x": x, "y": x + w + rng.normal(size=n), "z": rng.normal(size=n), "w": w})
    model = mg.MixedGraphicalModel(lam=0.0, covariates=["w"]).fit(table)
    nodes = model.nodes(table, folds=4).set_index("column")
    assert list(model.nodes().columns) == list(nodes.reset_index().columns[:-3])
    found = model.predictability(table, folds=4).set_index("column")
    for name in ("x", "y", "z"):
        assert nodes.loc[name, "held_out"] == found.loc[name, "held_out"]
        assert nodes.loc[name, "in_sample"] == found.loc[name, "r2"]
    assert nodes["unpredictable"].tolist() == [False, False, True, False]
    assert nodes.loc["w", ["held_out", "in_sample"]].isna().all()
    rings = ring_shares(model.fitted_, table)
    held_out = model.predictability(table, folds=5).set_index("column")["held_out"]
    assert rings == pytest.approx(held_out.to_dict())
    with pytest.raises(mg.ParameterError, match="folds must be"):
        model.nodes(table, folds=1)
