"""Questions to the joint distribution of a model with columns of all kinds, against enumeration."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mixedgm as mg
from mixedgm.base.errors import ParameterError, TooLargeError
from tests.support.scored_world import COLUMNS, DISCRETE, VALUES, World, random_params

SEEDS = (0, 1, 2)
KNOWN = (
    {},
    {"visits": 3},
    {"pain": "severe", "age": 0.4},
    {"mood": 2, "city": "Oslo", "wage": -1.0},
    {"rooms": 0, "visits": 6, "pain": "none", "age": -0.3},
)


@pytest.fixture(scope="module", params=SEEDS)
def known_model(request):
    params = random_params(request.param)
    return mg.from_params(COLUMNS, params), World.of(params)


def test_the_log_density_of_rows_is_that_of_the_enumeration(known_model):
    model, world = known_model
    assert model.log_partition() == pytest.approx(world.log_z, abs=1e-10)
    rows = model.sample(40, random_state=0)
    wanted = []
    for row in rows.to_dict("records"):
        at = world.states.index({name: row[name] for name in DISCRETE})
        numbers = stats.multivariate_normal(world.mean[at], world.covariance)
        wanted.append(np.log(world.prob[at]) + numbers.logpdf([row["age"], row["wage"]]))
    np.testing.assert_allclose(model.log_density(rows), wanted, atol=1e-10)
    assert model.log_likelihood(rows) == pytest.approx(np.mean(wanted), abs=1e-10)


@pytest.mark.parametrize("given", KNOWN, ids=str)
def test_means_and_probabilities_given_known_values(known_model, given):
    model, world = known_model[0], known_model[1].given(**given)
    means = model.mean(given)
    for name in set(COLUMNS) - set(given):
        if name in ("visits", "rooms", "age", "wage"):
            assert means[name] == pytest.approx(world.expected(name), abs=1e-10)
        else:
            wanted = {x: world.chance(**{name: x}) for x in VALUES[name]}
            assert means[name] == pytest.approx(wanted, abs=1e-10)
    if "pain" not in given:
        mild, severe = (world.chance(pain=x) for x in ("mild", "severe"))
        assert means.score("pain") == pytest.approx(mild + 4 * severe, abs=1e-10)
    if given:
        rest = model.condition(given).mean().frame()
        pd.testing.assert_frame_equal(rest, means.frame(), atol=1e-10)


ASKED = (("visits", "pain"), ("rooms", "age"), ("city", "mood", "wage"))


@pytest.mark.parametrize(
    ("asked", "given"), [(a, b) for a in ASKED for b in KNOWN[:4] if not set(a) & set(b)], ids=str
)
def test_distributions_of_several_columns(known_model, asked, given):
    model, world = known_model[0], known_model[1].given(**given)
    found = model.conditional(list(asked), given)
    frame = found.frame()
    discrete = [name for name in DISCRETE if name in asked]
    assert list(frame.columns[: len(discrete)]) == discrete
    assert len(frame) == np.prod([len(VALUES[name]) for name in discrete])
    for row in frame.to_dict("records"):
        state = {name: row[name] for name in discrete}
        assert row["probability"] == pytest.approx(world.chance(**state), abs=1e-10)
        for name in set(asked) - set(discrete):
            assert row[f"{name}_mean"] == pytest.approx(world.expected(name, **state), abs=1e-9)
    for name, mean in found.mean.items():
        assert mean == pytest.approx(world.expected(name), abs=1e-10)
    state = {name: VALUES[name][1] for name in discrete}
    numbers = {name: 0.3 for name in asked if name not in discrete}
    here = world.given(**numbers)
    wanted = np.exp(here.log_z - world.log_z) * here.chance(**state)
    assert found.density(state | numbers) == pytest.approx(wanted, abs=1e-10)


def test_entropy_and_information(known_model):
    model, world = known_model
    cells = itertools.product(VALUES["visits"], VALUES["pain"])
    joint = np.array([world.chance(visits=a, pain=b) for a, b in cells]).reshape(7, 3)
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    assert model.entropy(["visits", "pain"]).value == pytest.approx(stats.entropy(joint.ravel()))
    found = model.mutual_information("visits", "pain").value
    assert found == pytest.approx(stats.entropy(joint.ravel(), apart.ravel()), abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_with_gaps_are_answered_by_what_they_have(seed):
    params = random_params(seed)
    model, world = mg.from_params(COLUMNS, params), World.of(params)
    rows = model.sample(6, random_state=1).astype({"visits": "Int64", "rooms": "Int64"})
    rows.loc[[0, 1, 2], "pain"] = None
    rows.loc[[1, 2, 3], "visits"] = pd.NA
    rows.loc[[2, 4], "age"] = None
    probabilities = {name: model.predict_proba(rows, name) for name in ("mood", "visits")}
    filled = model.impute(rows)
    for at, row in enumerate(rows.to_dict("records")):
        known = {name: value for name, value in row.items() if not pd.isna(value)}
        for name, answer in probabilities.items():
            here = world.given(**{n: x for n, x in known.items() if n != name})
            wanted = [here.chance(**{name: x}) for x in VALUES[name]]
            np.testing.assert_allclose(np.asarray(answer)[at], wanted, atol=1e-9)
        here = world.given(**known)
        for name in set(row) - set(known):
            if name == "age":
                assert filled[name][at] == pytest.approx(here.expected(name), abs=1e-9)
            elif name == "visits":  # the median
                chance = np.cumsum([here.chance(visits=x) for x in VALUES[name]])
                assert filled[name][at] == np.flatnonzero(chance >= 0.5)[0]
            else:
                best = max(VALUES[name], key=lambda x: here.chance(**{name: x}))
                assert filled[name][at] == best


def test_a_count_above_the_largest_is_seen_as_the_largest():
    params = random_params(0)
    model, world = mg.from_params(COLUMNS, params), World.of(params)
    rows = model.sample(2, random_state=1).astype({"rooms": "Int64"})
    rows["visits"] = [50, 6]
    rows["rooms"] = pd.NA
    answer = np.asarray(model.predict_proba(rows, "mood", unseen="ignore"))
    for at, row in enumerate(rows.drop(columns=["mood", "rooms"]).to_dict("records")):
        here = world.given(**{**row, "visits": 6})
        wanted = [here.chance(mood=x) for x in VALUES["mood"]]
        np.testing.assert_allclose(answer[at], wanted, atol=1e-9)


# -- draws -----------------------------------------------------------------------------------------


def agrees(rows, world, worth: float = 1.0):
    """Shares and means within 4.5 standard errors: fails by chance about once in 1,000 seeds."""
    n = worth * len(rows)
    cells = [{name: x} for name in DISCRETE for x in VALUES[name]]
    cells += [{"visits": a, "pain": b} for a in range(3) for b in VALUES["pain"]]
    for cell in cells:
        chance = min(1.0, world.chance(**cell))
        share = np.logical_and.reduce([rows[name] == x for name, x in cell.items()]).mean()
        assert abs(share - chance) < 4.5 * np.sqrt(chance * (1 - chance) / n) + 2 / n, cell
    for name in world.numbers:
        error = np.sqrt(world.variance(name) / n)
        assert abs(rows[name].mean() - world.expected(name)) < 4.5 * error


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["exact", "gibbs"])
def test_draws_have_the_distribution(known_model, method):
    model, world = known_model
    rows = model.sample(20_000, method=method, random_state=0)
    agrees(rows, world, 1.0 if method == "exact" else 0.5)
    given = {"visits": 3, "wage": 0.2}
    agrees(model.sample(20_000, given, method=method, random_state=0), world.given(**given), 0.5)


def with_a_long_count(params):
    """The same columns, and a count up to 2,100 that is independent of them."""
    columns = {**COLUMNS, "steps": mg.Count(largest=2100)}
    one = mg.from_params(columns, {}).params_
    old = np.delete(np.arange(one.nodes.n_columns), [6])  # after the columns of the other counts
    coef = one.coef.copy()
    coef[np.ix_(old, old)] = params.coef
    bias = np.insert(params.bias, [12, 12], [0.0, 0.0])
    return mg.from_params(columns, mg.Params(one.nodes, bias, params.diagonal, coef))


@pytest.mark.statistical
@pytest.mark.parametrize("seed", SEEDS[:1])
def test_without_tables_of_pairs_of_values(seed):
    """A count apart from all others has too many values; for these nothing else changes."""
    params = random_params(seed)
    model, world = with_a_long_count(params), World.of(params)
    rows, report = model.sample(20_000, random_state=0, report=True)
    assert report.method == "gibbs"
    assert report.frame()["column"].tolist() == [
        "age",
        "wage",
        *DISCRETE[:4],
        "steps",
        *["city"] * 3,
    ]
    agrees(rows, world, 0.5)
    given = {"visits": 3, "wage": 0.2}
    agrees(model.sample(20_000, given, random_state=0), world.given(**given), 0.5)
    means = model.mean(given, random_state=0)
    assert not means.exact
    frame = means.frame().set_index(["column", "level"])
    for name in ("rooms", "age"):
        mean, error = frame.loc[(name, None)] if name == "rooms" else frame.loc[name].iloc[0]
        assert abs(mean - world.given(**given).expected(name)) < 4.5 * error + 1e-9
    found = model.marginal(["pain", "rooms"], random_state=0).frame()
    for row in found.to_dict("records"):
        wanted = world.chance(pain=row["pain"], rooms=row["rooms"])
        assert abs(row["probability"] - wanted) < 4.5 * row["probability_error"] + 1e-3
    with pytest.raises(TooLargeError, match="2,123 values together.*'steps'.*sample"):
        model.log_partition()
    with pytest.raises(TooLargeError, match="values together"):
        model.sample(5, method="exact")


@pytest.mark.statistical
def test_gaps_without_tables_of_pairs_of_values():
    params = random_params(0)
    model, world = with_a_long_count(params), World.of(params)
    rows = model.sample(4, random_state=1).astype({"visits": "Int64"})
    rows["visits"] = pd.NA
    rows.loc[:1, "pain"] = None
    with pytest.warns(mg.SamplingWarning, match="4 rows were answered from Gibbs chains"):
        answer = np.asarray(model.predict_proba(rows, "rooms"))
    for at, row in enumerate(rows.drop(columns="rooms").to_dict("records")):
        known = {name: value for name, value in row.items() if not pd.isna(value)}
        wanted = [world.given(**known).chance(rooms=x) for x in VALUES["rooms"]]
        np.testing.assert_allclose(answer[at], wanted, atol=0.06)


@pytest.mark.statistical
def test_thousands_of_values_are_drawn_without_tables_of_their_pairs():
    """Two counts up to 2,500 against their distribution in closed form (6 million cells)."""
    largest, theta, linear = 2500, 0.03, 5.6
    columns = {"a": mg.Count(largest=largest), "b": mg.Count(largest=largest)}
    between = np.array([[0.0, theta], [theta, 0.0]])
    own = [0.1, linear, 0.1, linear]
    model = mg.from_params(columns, {"cat_bias": own, "score_interaction": between})
    rows = model.sample(6400, random_state=0)
    c = np.arange(largest + 1)
    log_own = 0.1 * np.sqrt(c) + linear * c - np.array([0.0, *np.cumsum(np.log(c[1:]))])
    # p(a) = own(a) sum_b own(b) exp(theta sqrt(ab)), where only the b near the middle count.
    near = np.flatnonzero(log_own > log_own.max() - 60)
    inner = log_own[near] + theta * np.sqrt(np.outer(near, near))
    log_p = log_own[near] + np.logaddexp.reduce(inner, axis=1)
    prob = np.exp(log_p - np.logaddexp.reduce(log_p))
    mean = prob @ near
    sd = np.sqrt(prob @ (near - mean) ** 2)
    assert largest / 20 < mean < largest / 5
    means = model.mean(random_state=0)
    for name in ("a", "b"):
        assert abs(rows[name].mean() - mean) < 4.5 * sd / np.sqrt(3000)
        assert rows[name].std() == pytest.approx(sd, rel=0.06)
        assert abs(means[name] - mean) < 4.5 * sd / np.sqrt(3000)
    with pytest.raises(TooLargeError, match="5,002 values together"):
        model.entropy("a")


# -- what is given ---------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [7, -1, 2.5, "many", True])
def test_a_count_that_is_none_is_an_error(known_model, value):
    with pytest.raises(ParameterError, match="'visits' is a count.*from 0 to 6"):
        known_model[0].mean({"visits": value})


def test_counts_are_read_as_numbers_or_text(known_model):
    model, _ = known_model
    assert model.mean({"visits": "3"})["age"] == model.mean({"visits": 3.0})["age"]
    assert (
        str(model.conditional("age", {"visits": 3, "pain": "mild"}).given)
        == "visits = 3, pain = mild"
    )


def test_parameters_by_name_and_as_an_object_agree():
    params = random_params(0)
    names = ("precision", "cont_bias", "category_shift", "cat_interaction", "cat_bias")
    blocks = {name: getattr(params, name) for name in (*names, "score_interaction")}
    one, other = mg.from_params(COLUMNS, blocks), mg.from_params(COLUMNS, params)
    np.testing.assert_array_equal(one.params_.coef, other.params_.coef)
    np.testing.assert_array_equal(one.params_.bias, other.params_.bias)
    world = World.of(
        mg.Params(params.nodes, one.params_.bias, one.params_.diagonal, one.params_.coef)
    )
    wanted = World.of(params).prob  # blocks that sum to zero over levels: the same distribution
    np.testing.assert_allclose(world.prob, wanted, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score_interaction": np.eye(6)}, "between the scores of 'pain' itself"),
        ({"score_interaction": np.eye(6, k=1)}, "score_interaction is not symmetric"),
        ({"score_interaction": np.zeros((5, 5))}, r"needs? \(6, 6\)"),
        ({"cat_bias": np.zeros(15)}, r"needs? \(13,\)"),
        ({"cat_bias": np.full(13, -np.inf)}, "no terms of their own|without any level"),
    ],
)
def test_parameters_that_make_no_model(change, message):
    with pytest.raises(ParameterError, match=message):
        mg.from_params(COLUMNS, change)
