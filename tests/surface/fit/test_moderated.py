"""Models with moderated edges: the model at a value, rows, questions, messages."""

import numpy as np
import pytest

import mixedgm as mg
from tests.support.moderated import people

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def model(table):
    options = {"moderators": ["age", "group"], "covariates": ["wave"], "lam": 0.06}
    return mg.MixedGraphicalModel(**options).fit(table)


# -- the model at a value --------------------------------------------------------------------------


def test_at_is_what_the_formulas_say(model):
    """Edges: base + deviation; node terms: covariate effects less the deviations at the means."""
    here, own = model.at({"age": 52.0, "group": "r"}), model.params_.moderation
    p, at = model.schema_.n_gaussian, model.schema_.node_index
    change = (52.0 - own.middle[at("age")]) * own.deviations[0][0] + own.deviations[1][2]
    coef = model.params_.coef + change
    bias = np.concatenate([model.params_.cont_bias, model.params_.cat_bias])
    group = p + model.params_.level_start[at("group") - p] + 2
    bias = bias - own.middle @ change + 52.0 * coef[at("age")] + coef[group]
    nodes = {"a": [at("a")], "b": [at("b")], "d": [at("d")]}
    for name in ("c", "wave"):
        levels = model.params_.levels_of(at(name) - p)
        nodes[name] = list(range(p + levels.start, p + levels.stop))
    kept = [k for column in here.schema_.nodes for k in nodes[column.name]]
    np.testing.assert_allclose(here.params_.coef, coef[np.ix_(kept, kept)], atol=1e-14)
    found = np.concatenate([here.params_.cont_bias, here.params_.cat_bias])
    np.testing.assert_allclose(found, bias[kept], atol=1e-12)
    assert here.schema_.names == ("a", "b", "c", "d", "wave")
    assert [node.name for node in here.schema_.columns if node.role == "covariate"] == ["wave"]


def test_edges_at_a_value_change_as_their_deviations_say(model):
    low, high = (model.at(f={"age": age, "group": "p"}) for age in (25, 55))

    def correlation(fitted):
        edges = [e for e in fitted.edges_ if {e.source, e.target} == {"a", "b"}]
        return edges[0].partial_correlation if edges else 0.0

    assert correlation(low) < 0.05 < 0.3 < correlation(high)
    deviation = next(e for e in model.edges_ if e.moderator == "age")
    assert {deviation.source, deviation.target} == {"a", "b"}
    assert deviation.sign == "+"


def test_rows_are_predicted_at_their_own_values(model, table):
    rows = table.iloc[:12]
    expected = []
    for _, row in rows.iterrows():
        here = model.at({"age": row["age"], "group": row["group"]})
        expected.append(here.predict(rows.loc[[row.name], list(here.schema_.names)]))
    expected = pd.concat(expected)
    found = model.predict(rows)
    for name in ("a", "b", "d"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-12)
    assert found["c"].tolist() == expected["c"].tolist()


def test_log_density_is_that_of_the_model_at_each_row(model, table):
    rows = table.iloc[:8]
    found = model.log_density(rows)
    for k, (_, row) in enumerate(rows.iterrows()):
        here = model.at({"age": row["age"], "group": row["group"]})
        one = here.log_density(rows.iloc[[k]][list(here.schema_.names)])
        assert found[k] == pytest.approx(one[0], abs=1e-12)
    assert model.log_likelihood(rows) == pytest.approx(found.mean(), abs=1e-12)


def test_questions_go_through_the_model_at_the_given_values(model):
    given = {"age": 45, "group": "r", "wave": "w1"}
    here = model.at({"age": 45, "group": "r"}).condition({"wave": "w1"})
    a = model.sample(5, given, random_state=0)
    b = here.sample(5, random_state=0)
    pd.testing.assert_frame_equal(a[list(b.columns)], b)
    assert set(a["age"]) == {45}
    assert set(a["group"]) == {"r"}
    one = model.conditional("c", {**given, "a": 1.0})
    two = here.conditional("c", {"a": 1.0})
    assert str(one).splitlines()[1:] == str(two).splitlines()[1:]
    assert model.mean(given)["b"] == here.mean()["b"]
    assert model.condition(given).edges_ == here.edges_


def test_other_ways_to_ask_say_what_is_missing(model):
    with pytest.raises(mg.ParameterError, match="give values of 'age', 'group', 'wave', too"):
        model.sample(1)
    with pytest.raises(mg.ParameterError, match="edges vary with 'age', 'group'; give a value of"):
        model.condition({"a": 0.0})
    with pytest.raises(mg.ParameterError, match=r"use model.at\(\{'age': ..., 'group': ...\}\)"):
        model.repaired()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"age": 40}, "the edges vary with 'group'; give a value of it, too"),
        ({}, "the edges vary with 'age', 'group'; give a value of each, too"),
        ({"age": None, "group": "p"}, "the edges vary with 'age'; give a value of it"),
        ({"age": float("nan"), "group": "p"}, "the edges vary with 'age'; give a value of it"),
        ({"age": "x", "group": "p"}, "'age' is continuous, so its value must be a number"),
        ({"age": 40, "group": "z"}, "column 'group' has no level 'z'; its levels are 'p', 'q'"),
        ({"agee": 40}, "there is no column 'agee'; did you mean 'age'?"),
        ({"age": 40, "group": "p", "a": 1}, "'a' is not a moderator; the edges vary with 'age'"),
        (None, "f must be a dict with the moderators {'age': ..., 'group': ...}. Got None"),
        (40, "f must be a dict with the moderators"),
    ],
)
def test_values_that_cannot_be(model, values, message):
    with pytest.raises(mg.ParameterError) as caught:
        model.at(values)
    assert message in str(caught.value)


def test_a_value_outside_the_rows_of_the_fit_warns(model, table):
    with pytest.warns(mg.ExtrapolationWarning, match="'age' was between .* at 500 the edges are"):
        far = model.at({"age": 500, "group": "p"})
    with pytest.raises(
        mg.DistributionError, match=r"at age = 500, group = p, the precision matrix"
    ):
        far.sample(1, {"wave": "w1"})
    assert far.repaired().sample(2, {"wave": "w1"}, random_state=0).shape == (2, 5)
    edge = table["age"].max()
    model.at({"age": edge, "group": "p"})  # the end of the range is inside


def test_a_model_without_moderators_has_no_at(table):
    plain = mg.MixedGraphicalModel(lam=0.3).fit(table)
    with pytest.raises(mg.ParameterError, match="has no moderators.*moderators="):
        plain.at({"age": 40})
    with pytest.raises(mg.ParameterError, match="is not a moderator of this model; it has none"):
        plain.interaction("a", "b", "age")
    assert "moderator" not in plain.edges().columns
