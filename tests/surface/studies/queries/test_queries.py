"""Questions by name, against a list of all states: marginals, conditions, means, information."""

import itertools

import numpy as np
import pytest
from scipy import stats

import mixedgm as mg
from tests.support.enumerated import COLUMNS, known_model
from tests.support.indefinite import with_strong_edge
from tests.support.people import people

TIGHT = {"rtol": 1e-9, "atol": 1e-11}
EVIDENCE = [
    {},
    {"sex": "Female"},
    {"age": 0.4},
    {"age": -0.3, "wage": 0.2, "city": "Oslo"},
    {"smoker": True, "height": 0.1},
    {"wage": 1.0, "sex": "Male", "city": "Bath & Wells", "smoker": False},
]


def levels_of(name):
    return COLUMNS[name]


# -- distributions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("given", EVIDENCE)
@pytest.mark.parametrize("columns", [["sex"], ["city", "sex"], ["smoker", "city", "sex"]])
def test_tables_have_the_enumerated_probabilities(columns, given):
    model, world = known_model(1)
    columns = [name for name in columns if name not in given]
    if not columns:
        return
    found = model.conditional(columns, given)
    world = world.given(**given)
    frame = found.frame()
    assert list(frame.columns) == [*columns, "probability"]
    states = list(itertools.product(*map(levels_of, columns)))
    assert [tuple(row) for row in frame[columns].to_numpy().tolist()] == states
    expected = [world.chance(**dict(zip(columns, state, strict=True))) for state in states]
    np.testing.assert_allclose(frame["probability"], expected, **TIGHT)
    assert found.exact


@pytest.mark.parametrize("given", EVIDENCE[:3])
@pytest.mark.parametrize("density", [1.0, 0.4])
def test_moments_in_every_state(given, density):
    model, world = known_model(2, density=density)
    columns = [name for name in ("height", "city", "wage") if name not in given]
    found = model.conditional(columns, given)
    world = world.given(**given)
    for _, row in found.frame().iterrows():
        mean, covariance = world.moments("height", "wage", city=row["city"])
        np.testing.assert_allclose([row["height_mean"], row["wage_mean"]], mean, **TIGHT)
        sd = np.sqrt(np.diagonal(covariance))
        np.testing.assert_allclose([row["height_sd"], row["wage_sd"]], sd, **TIGHT)
        inside = found.covariance({"city": row["city"]})
        assert list(inside.index) == list(inside.columns) == ["height", "wage"]
        np.testing.assert_allclose(inside, covariance, **TIGHT)
    mean, covariance = world.moments("height", "wage")
    np.testing.assert_allclose(list(found.mean.values()), mean, **TIGHT)
    np.testing.assert_allclose(found.covariance(), covariance, **TIGHT)


def test_density_of_a_mixture():
    model, world = known_model(3)
    found = model.conditional(["wage", "city", "age"], {"smoker": True})
    world = world.given(smoker=True)
    assert not found.gaussian
    assert "mixtures" in repr(found)
    at = {"wage": 0.3, "city": "Oslo", "age": -0.2}
    expected = world.density({"wage": 0.3, "age": -0.2}, city="Oslo")
    assert found.density(at) == pytest.approx(expected, rel=1e-10)
    ages = np.linspace(-1.0, 1.0, 5)
    several = found.density({**at, "age": ages})
    assert several.shape == (5,)
    for age, value in zip(ages, several, strict=True):
        expected = world.density({"wage": 0.3, "age": age}, city="Oslo")
        assert value == pytest.approx(expected, rel=1e-10)
    rows = model.sample(4, {"smoker": True}, random_state=0)
    for (_, row), value in zip(rows.iterrows(), found.density(rows), strict=True):
        expected = world.density({"wage": row["wage"], "age": row["age"]}, city=row["city"])
        assert value == pytest.approx(expected, rel=1e-9)


def test_density_of_one_column_integrates_to_one():
    model, _ = known_model(3)
    found = model.marginal("wage")
    x = np.linspace(found.mean["wage"] - 30, found.mean["wage"] + 30, 20_001)
    assert np.trapezoid(found.density({"wage": x}), x) == pytest.approx(1.0, abs=1e-9)
    assert list(found.frame().columns) == ["wage_mean", "wage_sd"]


# -- another model ---------------------------------------------------------------------------------


@pytest.mark.parametrize("given", EVIDENCE[1:])
def test_a_condition_leaves_a_model_of_the_other_columns(given, tmp_path):
    model, world = known_model(4)
    rest = model.condition(given)
    world = world.given(**given)
    names = [name for name in COLUMNS if name not in given]
    assert list(rest.feature_names_in_) == names
    assert isinstance(rest, mg.MixedGraphicalModel)
    row = model.sample(1, given, random_state=0)
    numbers = {name: row[name].iloc[0] for name in world.continuous}
    levels = {n: row[n].iloc[0] for n in names if n not in numbers}
    log_density = rest.log_density(row[names])[0]
    assert log_density == pytest.approx(np.log(world.density(numbers, **levels)), abs=1e-9)
    kept = {frozenset(e[:2]): e.norm for e in model.edges_ if set(e[:2]) <= set(names)}
    assert {frozenset(edge[:2]): edge.norm for edge in rest.edges_} == pytest.approx(kept)
    rest.save(tmp_path / "rest.mgm")
    again = mg.load(tmp_path / "rest.mgm")
    assert again.log_density(row[names])[0] == log_density


def test_conditions_one_after_the_other_are_one_condition():
    model, _ = known_model(4)
    both = model.condition({"sex": "Male", "age": 0.5})
    after = model.condition({"sex": "Male"}).condition({"age": 0.5})
    np.testing.assert_allclose(after.params_.cont_bias, both.params_.cont_bias, **TIGHT)
    np.testing.assert_allclose(after.params_.cat_bias, both.params_.cat_bias, **TIGHT)
    assert "given sex = Male, age = 0.5" in str(after.summary())
    assert after.predict(model.sample(3, random_state=0)).shape == (3, 4)


def test_a_conditional_is_the_marginal_of_the_condition():
    model, _ = known_model(5)
    given = {"city": "Oslo", "height": 0.3}
    one = model.conditional(["sex", "age"], given).frame()
    other = model.condition(given).marginal(["sex", "age"]).frame()
    assert one.equals(other)


@pytest.mark.parametrize("given", EVIDENCE)
def test_means(given):
    model, world = known_model(6)
    found = model.mean(given)
    world = world.given(**given)
    for name in COLUMNS:
        if name in given:
            with pytest.raises(mg.ParameterError, match="there is no column"):
                found[name]
        elif name in world.continuous:
            assert found[name] == pytest.approx(world.moments(name)[0][0], rel=1e-9)
        else:
            expected = {level: world.chance(**{name: level}) for level in COLUMNS[name]}
            assert found[name] == pytest.approx(expected, rel=1e-9)
    frame = found.frame()
    assert list(frame.columns) == ["column", "level", "mean"]
    assert frame["column"].drop_duplicates().tolist() == [n for n in COLUMNS if n not in given]


# -- information -----------------------------------------------------------------------------------


def entropy_of(shares) -> float:
    return float(-sum(p * np.log(p) for p in shares if p > 0))


def test_entropy_and_information_of_levels():
    model, world = known_model(7)
    world = world.given(age=0.5)
    sexes, cities = COLUMNS["sex"], COLUMNS["city"]
    single = entropy_of([world.chance(sex=x) for x in sexes])
    other = entropy_of([world.chance(city=x) for x in cities])
    both = entropy_of([world.chance(sex=x, city=y) for x in sexes for y in cities])
    found = model.entropy(["sex", "city"], {"age": 0.5})
    assert (float(found), found.exact) == (pytest.approx(both, abs=1e-10), True)
    shared = model.mutual_information("sex", "city", {"age": 0.5})
    assert shared.value == pytest.approx(single + other - both, abs=1e-10)
    gaussian = stats.multivariate_normal(cov=world.covariance).entropy()
    everything = entropy_of(world.prob) + gaussian
    assert model.entropy(given={"age": 0.5}).value == pytest.approx(everything, abs=1e-10)


def test_expectation_of_a_function():
    """Five standard errors each: a false alarm has a chance of 1e-6, and the seed is fixed."""
    model, world = known_model(7)
    given = {"sex": "Female"}
    world = world.given(**given)
    share = model.expectation(lambda rows: rows["city"] == "Oslo", given)
    assert abs(share.value - world.chance(city="Oslo")) < 5 * share.error
    expected_error = np.sqrt(world.chance(city="Oslo") * (1 - world.chance(city="Oslo")) / 10_000)
    assert share.error == pytest.approx(expected_error, rel=0.05)
    product = model.expectation(lambda rows: rows["age"] * rows["wage"], given, n=20_000)
    mean, covariance = world.moments("age", "wage")
    assert abs(product.value - mean[0] * mean[1] - covariance[0, 1]) < 5 * product.error
    with pytest.raises(mg.ParameterError, match=r"one number for each of 10000 rows.*\(2,\)"):
        model.expectation(lambda rows: np.zeros(2))
    with pytest.raises(mg.ParameterError, match="one number for each row"):
        model.expectation(lambda rows: rows["city"])


# -- densities, partition function, repair ---------------------------------------------------------


def test_log_likelihood_is_the_weighted_mean_of_densities():
    model, world = known_model(8)
    rows = model.sample(5, random_state=0)
    expected = [
        np.log(
            world.density(
                {n: row[n] for n in world.continuous},
                **{n: row[n] for n in COLUMNS if n not in world.continuous},
            )
        )
        for _, row in rows.iterrows()
    ]
    np.testing.assert_allclose(model.log_density(rows), expected, rtol=1e-10)
    assert model.log_likelihood(rows) == pytest.approx(np.mean(expected))
    weights = [1.0, 2.0, 0.0, 1.0, 1.0]
    found = model.log_likelihood(rows, sample_weight=weights)
    assert found == pytest.approx(np.average(expected, weights=weights))


def test_log_partition_turns_weights_into_densities():
    # One standard normal column and two fair levels: sqrt(2 pi) times 2.
    model = mg.from_params({"x": "continuous", "y": 2}, {})
    assert model.log_partition() == pytest.approx(np.log(2 * np.sqrt(2 * np.pi)))


def invalid_model():
    return with_strong_edge(mg.MixedGraphicalModel(lam=0.2).fit(people()), 1.3)


def test_without_a_joint_distribution_every_question_names_the_columns_and_the_remedy():
    model, frame = invalid_model(), people()
    gappy = frame.assign(height=np.nan, weight=np.nan)
    for ask in (
        lambda: model.log_likelihood(frame),
        lambda: model.log_partition(),
        lambda: model.marginal("group"),
        lambda: model.mean(),
        lambda: model.entropy(),
        lambda: model.sample(2),
        lambda: model.impute(gappy),
    ):
        with pytest.raises(mg.DistributionError, match=r"'height', 'weight'.*model.repaired\(\)"):
            ask()
    # Given one of the two columns there is a distribution of the others.
    assert model.conditional("group", {"height": 1.0}).exact
    assert not model.impute(frame.assign(weight=np.nan))["weight"].isna().any()


def test_repaired_tells_what_it_changed():
    model = invalid_model()
    valid = model.repaired()
    assert valid is not model
    assert valid.get_params() == model.get_params()
    assert valid.sample(3, random_state=0).shape == (3, 5)
    text = " ".join(str(valid.summary()).split())
    assert "repaired, so that there is a joint distribution" in text
    assert "height - weight from 1.3 to 0.99" in text
    assert "its certificate does not hold" in text
    assert (valid.converged_, np.isnan(valid.kkt_), np.isnan(valid.objective_)) == (
        False,
        True,
        True,
    )
    unchanged = valid.repaired()
    assert unchanged.summary().values.notes == valid.summary().values.notes
    fine = mg.MixedGraphicalModel(lam=0.2).fit(people())
    assert fine.repaired().fitted_ is fine.fitted_


# -- what may be asked -----------------------------------------------------------------------------


def test_missing_evidence_is_absent():
    import pandas as pd

    model, _ = known_model(1)
    known = model.mean({"sex": "Male"}).frame()
    for nothing in (None, np.nan, pd.NA, pd.NaT):
        assert model.mean({"sex": "Male", "age": nothing, "city": nothing}).frame().equals(known)
    row = pd.Series({"sex": "Male", "age": np.nan})
    assert model.mean(row).frame().equals(known)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sexx": "Male"}, "there is no column 'sexx'; did you mean 'sex'?"),
        ({"sex": "female"}, "column 'sex' has no level 'female'; did you mean 'Female' or"),
        ({"city": 7}, "column 'city' has no level 7; its levels are '<b>Rome</b>', "),
        ({"age": "old"}, "column 'age' is continuous, so its value must be a number. Got 'old'"),
        ({"age": True}, "column 'age' is continuous, so its value must be a number. Got True"),
        ({"age": np.inf}, "the value of column 'age' must be finite. Got inf"),
        ({"smoker": 1}, "column 'smoker' has no level 1; its levels are False, True"),
        ({"smoker": "yes", "agee": 1}, "no level 'yes'; its levels are False, True; there is no"),
        ("sex", "given must be a dict such as {'sex': 'Female', 'age': 40}. Got 'sex' instead."),
        (dict.fromkeys(COLUMNS, 0) | {"sex": "Male", "city": "Oslo", "smoker": True}, "nothing is"),
    ],
)
def test_bad_evidence_is_named(given, message):
    model, _ = known_model(1)
    with pytest.raises(mg.ParameterError) as caught:
        model.mean(given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.marginal([]), "columns must be a column name or a list of them"),
        (lambda m: m.marginal(["age", "age"]), "column 'age' is named twice"),
        (lambda m: m.marginal("agee"), "did you mean 'age' or 'wage'?"),
        (lambda m: m.conditional("age", {"age": 1}), "column 'age' is given, so it has no"),
        (lambda m: m.entropy(["age"], {"age": 1}), "column 'age' is given, so it has no"),
        (lambda m: m.mutual_information("sex", ["city", "sex"]), "'sex' is in both a and b"),
        (lambda m: m.marginal("age", method="magic"), "method must be 'auto', 'exact' or 'gibbs'"),
        (lambda m: m.marginal("age", limit=0), "limit must be a positive integer, or None"),
        (lambda m: m.marginal("sex").density({}), "x needs a value of 'sex', too"),
        (lambda m: m.marginal("age").density({"age": "x"}), "must be numbers"),
        (lambda m: m.marginal("age").density({"age": np.nan}), "must be finite"),
        (lambda m: m.marginal(["age", "sex"]).covariance({}), "state needs a level of 'sex', too"),
    ],
)
def test_bad_questions_are_named(ask, message):
    model, _ = known_model(1)
    with pytest.raises(mg.ParameterError) as caught:
        ask(model)
    assert message in str(caught.value)


def test_levels_may_be_given_by_their_text():
    model, _ = known_model(1)
    assert model.mean({"smoker": "True"})["age"] == model.mean({"smoker": True})["age"]


def test_a_level_without_rows_cannot_be_given():
    columns = {"x": "continuous", "y": ["a", "b", "c"]}
    model = mg.from_params(columns, {"cat_bias": [0.0, 0.0, -np.inf]})
    assert model.mean()["y"] == {"a": 0.5, "b": 0.5, "c": 0.0}
    with pytest.raises(mg.ParameterError, match="level 'c' of column 'y' cannot occur"):
        model.mean({"y": "c"})
    table = model.marginal(["y", "x"]).frame()
    assert table["probability"].tolist() == pytest.approx([0.5, 0.5, 0.0])
    assert model.marginal(["y", "x"]).mean == {"x": 0.0}


# -- transforms ------------------------------------------------------------------------------------


def test_evidence_and_answers_are_in_own_units():
    frame = people(400).assign(weight=lambda table: np.exp(table["weight"] / 10))
    plain = frame.assign(weight=lambda table: np.log(table["weight"]))
    how = {"lam": 0.1, "transforms": {"weight": "nonparanormal"}}
    skewed, straight = (mg.MixedGraphicalModel(**how).fit(each) for each in (frame, plain))
    # Ranks do not see a monotone change of units, so scores, and all that follows, are the same.
    at = float(frame["weight"].iloc[3])
    one, other = skewed.mean({"weight": at}), straight.mean({"weight": np.log(at)})
    assert one["height"] == pytest.approx(other["height"], rel=1e-9)
    assert one["group"] == pytest.approx(other["group"], rel=1e-9)
    transform = next(c.transform for c in skewed.schema_.columns if c.name == "weight")
    group = skewed.marginal(["group", "weight"])
    assert list(group.frame().columns)[2:] == ["weight_centre", "weight_low", "weight_high"]
    score, sd = group.found.mean[:, 0], np.sqrt(group.found.covariance[:, 0, 0])
    np.testing.assert_allclose(group.frame()["weight_centre"], transform.inverse(score))
    np.testing.assert_allclose(group.frame()["weight_high"], transform.inverse(score + sd))
    assert frame["weight"].min() < skewed.mean()["weight"] < frame["weight"].max()
    assert (skewed.sample(3, {"weight": at}, random_state=0)["weight"] == at).all()


# -- how results look ------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_are_of_the_training_library(library):
    model, _ = known_model(1, frame=library)
    for result in (
        model.marginal(["sex", "age", "smoker"]).frame(),
        model.mean({"sex": "Male"}).frame(),
        model.marginal(["age", "wage"]).covariance(),
        model.sample(2, {"sex": "Male"}),
    ):
        assert type(result).__module__.partition(".")[0] == library
    pandas, _ = known_model(1)
    found = model.marginal(["sex", "age", "smoker"]).frame()
    expected = pandas.marginal(["sex", "age", "smoker"]).frame()
    sexes = found["sex"].to_pylist() if library == "pyarrow" else list(found["sex"])
    assert sexes == expected["sex"].tolist()
    np.testing.assert_array_equal(np.asarray(found["age_mean"]), expected["age_mean"])


def test_html_is_escaped():
    model, _ = known_model(1)
    for result in (model.marginal(["city", "age"]), model.mean({"city": "<b>Rome</b>"})):
        html = result._repr_html_()
        assert "<b>Rome" not in html
        assert "&lt;b&gt;Rome&lt;/b&gt;" in html
    assert "Bath &amp; Wells" in model.marginal("city")._repr_html_()
    assert "<b>Rome" not in model.condition({"city": "<b>Rome</b>"})._repr_html_()


def test_text_shows_levels_and_how_it_was_found():
    model, _ = known_model(1)
    text = repr(model.conditional(["city"], {"sex": "Male", "age": 40}))
    assert text.startswith("Distribution of city given age = 40, sex = Male\ncity ")
    assert "Bath & Wells" in text
    assert text.endswith("(exact under the model)")
    columns = {f"y{k}": 3 for k in range(4)}
    many = repr(mg.from_params(columns, {}).marginal(list(columns)))
    assert "24 of 81 rows; frame() has all" in many


def test_names_that_collide_with_the_result_are_kept_apart():
    model = mg.from_params({"probability": ["a", "b"], "x": "continuous", "x_mean": ["c", "d"]}, {})
    frame = model.marginal(["probability", "x", "x_mean"]).frame()
    assert list(frame.columns) == ["probability", "x_mean", "probability_", "x_mean_", "x_sd"]


def test_separate_regressions_have_no_joint_distribution():
    from dataclasses import replace

    model, _ = known_model(1)
    model._adopt(replace(model.fitted_, params=replace(model.params_, nodewise=True)))
    for ask in (
        lambda: model.log_partition(),
        lambda: model.condition({"sex": "Male"}),
        lambda: model.mean(),
        lambda: model.sample(2),
        lambda: model.repaired(),
    ):
        with pytest.raises(mg.DistributionError, match="separate regressions have no joint"):
            ask()
