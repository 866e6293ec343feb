"""predict, predict_proba and score on rows with gaps, against enumeration and closed forms."""

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.support.enumerated import COLUMNS, known_model
from tests.support.indefinite import with_strong_edge
from tests.unit.joint import brute

CATEGORICAL = [name for name, what in COLUMNS.items() if what != "continuous"]
CONTINUOUS = [name for name, what in COLUMNS.items() if what == "continuous"]


def gappy(density, n_rows=50, share=0.3, seed=0):
    """Rows of a known model with some cells missing, its states, and where the gaps are."""
    model, world = known_model(1, density=density)
    rows = model.sample(n_rows, random_state=seed).astype({"smoker": object, "city": object})
    gaps = np.random.default_rng(seed).random(rows.shape) < share
    gaps[0], gaps[1] = True, False  # nothing known, and nothing missing
    return model, world, rows.mask(gaps), gaps


def others(row, name):
    """What a row knows about its other columns."""
    return {
        key: (None if value is None or value != value or key == name else value)
        for key, value in row.items()
    }


# Sparse graphs have cells without an edge to a gap; in dense ones every gap matters.
@pytest.mark.parametrize("density", [0.3, 1.0])
def test_predictions_are_those_of_the_enumerated_states(density):
    model, world, rows, _ = gappy(density)
    whole = model.predict(rows)
    chances = model.predict_proba(rows)
    for at in range(len(rows)):
        for name in COLUMNS:
            rest = world.given(**others(rows.iloc[at], name))
            if name in CONTINUOUS:
                assert whole[name].iloc[at] == pytest.approx(rest.moments(name)[0][0], abs=1e-9)
                continue
            found = [rest.chance(**{name: level}) for level in COLUMNS[name]]
            np.testing.assert_allclose(chances[name].iloc[at], found, atol=1e-10)
            assert whole[name].iloc[at] == COLUMNS[name][int(np.argmax(found))]
    for name in COLUMNS:  # one column asks the same, and need not be there
        alone = model.predict(rows.drop(columns=name), name)
        if name in CONTINUOUS:
            np.testing.assert_allclose(alone, whole[name], rtol=1e-10)
        else:
            assert alone.tolist() == whole[name].tolist()


@pytest.mark.parametrize("density", [0.3, 1.0])
def test_score_adds_observed_cells_given_the_other_observed_ones(density):
    model, world, rows, gaps = gappy(density)
    weights = np.random.default_rng(3).integers(1, 4, len(rows)).astype(float)
    logs = np.full(rows.shape, np.nan)
    for at in range(len(rows)):
        for k, name in enumerate(COLUMNS):
            if gaps[at, k]:
                continue
            rest, value = world.given(**others(rows.iloc[at], name)), rows.iloc[at, k]
            if name in CONTINUOUS:
                logs[at, k] = np.log(rest.density({name: value}))
            else:
                logs[at, k] = np.log(rest.chance(**{name: value}))
    expected = np.average(np.nansum(logs, axis=1), weights=weights)
    assert model.score(rows, sample_weight=weights) == pytest.approx(expected, abs=1e-9)
    nodes = model.node_scores(rows, weights)
    shares = {}
    for k, name in enumerate(COLUMNS):
        there = ~gaps[:, k]
        mean = np.average(logs[there, k], weights=weights[there])
        assert nodes[name] == pytest.approx(-mean, abs=1e-9)
        shares[name] = weights[there].sum() / weights.sum()
    total = -sum(nodes[name] * shares[name] for name in COLUMNS)
    assert model.score(rows, sample_weight=weights) == pytest.approx(total, rel=1e-12)


def test_a_gaussian_model_predicts_by_the_conditional_normal():
    rng = np.random.default_rng(5)
    root = rng.normal(size=(5, 5))
    covariance = root @ root.T + np.eye(5)
    centre = np.array([100.0, -3.0, 0.0, 2000.0, 7.0])
    precision = np.linalg.inv(covariance)
    names = [f"v{k}" for k in range(5)]
    model = mg.from_params(
        dict.fromkeys(names, "continuous"),
        {"precision": precision, "cont_bias": precision @ centre},
    )
    rows = rng.multivariate_normal(centre, covariance, size=40)
    rows[rng.random(rows.shape) < 0.4] = np.nan
    found, total = model.predict(pd.DataFrame(rows, columns=names)).to_numpy(), 0.0
    for row, got in zip(rows, found, strict=True):
        for s in range(5):
            known = [k for k in range(5) if k != s and not np.isnan(row[k])]
            gain = covariance[s, known] @ np.linalg.inv(covariance[np.ix_(known, known)])
            mean = centre[s] + gain @ (row[known] - centre[known])
            variance = covariance[s, s] - gain @ covariance[known, s]
            assert got[s] == pytest.approx(mean, rel=1e-9)
            if not np.isnan(row[s]):
                total -= 0.5 * ((row[s] - mean) ** 2 / variance + np.log(2 * np.pi * variance))
    assert model.score(pd.DataFrame(rows, columns=names)) == pytest.approx(total / 40, rel=1e-9)


def table(n=400, seed=0, gaps=0.15):
    """Columns that depend on each other, with gaps."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Bath", "Oslo", "Rome"], n)
    age = rng.normal(40, 10, n) + 8 * (city == "Rome")
    wage = 0.5 * age + rng.normal(0, 5, n)
    smoker = rng.choice(["no", "yes"], n)
    out = pd.DataFrame({"age": age, "city": city, "wage": wage, "smoker": smoker})
    return out.mask(rng.random(out.shape) < gaps)


def fitted(**options):
    return mg.MixedGraphicalModel(lam=0.05, **options).fit(table(gaps=0.0))


def test_complete_rows_are_answered_as_before_to_the_last_bit():
    model, rows = fitted(), table(seed=1)
    complete = rows.notna().all(axis=1).to_numpy()
    assert 0 < complete.sum() < len(rows)
    pd.testing.assert_frame_equal(
        model.predict(rows)[complete], model.predict(rows[complete]), check_exact=True
    )


def test_a_gap_that_has_no_edge_changes_nothing():
    model = mg.MixedGraphicalModel(lam=0.05, forbid=[("age", "smoker"), ("wage", "smoker")])
    model.fit(table(gaps=0.0))
    rows = table(seed=1, gaps=0.0)
    hidden = rows.assign(smoker=None)
    np.testing.assert_array_equal(model.predict(hidden)["age"], model.predict(rows)["age"])
    apart = fitted(loss="nodewise", forbid=[("age", "smoker"), ("wage", "smoker")])
    np.testing.assert_array_equal(
        apart.predict(hidden, "age"), apart.predict(rows, "age")
    )  # no joint distribution is needed


def test_separate_regressions_say_why_they_cannot_answer():
    model, rows = fitted(loss="nodewise"), table(seed=1)
    with pytest.raises(mg.DistributionError) as refused:
        model.predict(rows.drop(columns="wage"), "wage")
    said = str(refused.value)
    assert f"'age' ({rows['age'].isna().sum()})" in said
    assert "'wage'" not in said
    assert "drop these rows, or fill them in" in said
    assert "'pseudolikelihood'" in said
    with pytest.raises(mg.DistributionError, match="another loss"):
        model.score(rows)
    with pytest.raises(mg.DistributionError, match=r"1 row with gaps, in 'age' \(1\)"):
        model.predict(rows.iloc[:1].assign(age=np.nan, wage=20.0, city="Rome", smoker="no"))


def test_an_indefinite_precision_says_how_to_repair_it():
    model, rows = with_strong_edge(fitted(), 1.3), table(seed=1, gaps=0.0)
    rows.loc[:2, ["age", "wage"]] = np.nan
    assert model.predict(rows.iloc[3:]).notna().all(axis=None)
    with pytest.raises(mg.DistributionError, match=r"3 rows with gaps, in 'age' \(3\), 'wage' \(3"):
        model.predict(rows)
    with pytest.raises(mg.DistributionError, match=r"repaired\(\).*drop these rows"):
        model.score(rows)
    assert np.isfinite(model.repaired().score(rows))


def test_missing_covariates_are_named_and_counted():
    model, rows = fitted(covariates=["age", "smoker"]), table(seed=1)
    n = rows["age"].isna().sum()
    with pytest.raises(mg.TableError, match=rf"'age': it is a covariate, and {n} values are missi"):
        model.predict(rows)
    with pytest.raises(mg.TableError, match=rf"drop the {rows['smoker'].isna().sum()} rows"):
        model.score(rows)
    known = rows[rows[["age", "smoker"]].notna().all(axis=1)]
    assert np.isfinite(model.score(known))
    assert model.predict(known).notna().all(axis=None)


def test_wide_rows_are_predicted_as_their_cells_are_imputed():
    params = brute.random_params(0, 30, (3,) * 30, density=0.03, strength=0.3)
    columns = {f"x{k}": "continuous" for k in range(30)} | {f"y{k}": list("abc") for k in range(30)}
    model = mg.from_params(columns, mg.Params.of_joint(params))
    rng = np.random.default_rng(0)
    rows = model.sample(300, random_state=0, method="gibbs").astype(object)
    rows = rows.mask(rng.random(rows.shape) < 0.05).astype({f"x{k}": float for k in range(30)})
    found = model.predict(rows)
    for name in ("x0", "x7", "y3", "y11"):
        alone = model.impute(rows.assign(**{name: None}))[name]
        if name.startswith("x"):
            np.testing.assert_allclose(found[name], alone.astype(float), rtol=1e-9, atol=1e-12)
        else:
            assert found[name].tolist() == alone.tolist()


def test_a_probability_too_small_for_a_double_is_not_zero():
    """Two columns that a third makes all but impossible; the third is missing in the row."""
    truth = mg.from_params(
        {"x": "continuous", "a": ["f", "m"], "b": ["f", "m"]},
        {
            "category_shift": [[-900.0, 900.0, 0.0, 0.0]],
            "cat_interaction": [[0, 0, 1, -1], [0, 0, -1, 1], [1, -1, 0, 0], [-1, 1, 0, 0]],
        },
        frame="numpy",
    )
    score = truth.score([[9.0, "f", None]])
    assert np.isfinite(score)
    assert score < -700
