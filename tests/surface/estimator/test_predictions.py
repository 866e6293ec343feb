"""Fits and predictions against other people's code where the models coincide, and by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.covariance import EmpiricalCovariance
from sklearn.linear_model import LinearRegression, LogisticRegression

import mixedgm as mg
from tests.reference import conic, plain
from tests.support.people import LEVELS, assert_same_params, numbers, people

# -- without penalty -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair():
    """A continuous and a three-level column, the saturated model at lam = 0."""
    frame = people(200, seed=3)[["height", "group"]]
    return frame, mg.MixedGraphicalModel(lam=0.0, tol=1e-9).fit(frame)


def test_joint_maximum_of_a_mixed_pair(pair):
    """A mixed pair shares its parameters between both conditionals: compare with the conic one."""
    frame, model = pair
    X, Y = frame[["height"]].to_numpy(), frame[["group"]].apply(lambda c: c.cat.codes).to_numpy()
    exact = conic.solve(X, Y.astype(np.int64), (3,), 0.0)
    assert model.objective_ == pytest.approx(exact.value, abs=1e-8)
    means = model.predict(frame, "height")
    for code, level in enumerate("abc"):
        here = Y[:, 0] == code
        expected = (exact.cont_bias[0] + exact.category_shift[0, code]) / exact.precision[0, 0]
        np.testing.assert_allclose(means[here], expected, atol=1e-4, err_msg=level)


def test_group_means_weighted_by_level_are_the_mean_of_the_column(pair):
    """The bias of a Gaussian conditional makes its residuals sum to zero."""
    frame, model = pair
    assert (model.predict(frame, "height") - frame["height"]).mean() == pytest.approx(0, abs=1e-7)


def test_level_probabilities_average_to_the_frequencies(pair):
    frame, model = pair
    expected = frame["group"].value_counts(normalize=True, sort=False)
    np.testing.assert_allclose(model.predict_proba(frame, "group").mean(), expected, atol=1e-7)


def test_balanced_normal_groups_agree_with_regressions():
    """With normal scores in every group, shifted, both conditionals have the same optimum.

    The group means and the pooled variance fix the Gaussian conditional; the logistic regression
    of exactly normal groups has slopes (mean difference) / variance, which is the same parameter.
    So the joint optimum is close to both regressions, fitted separately.
    """
    from scipy.special import ndtri

    scores = ndtri((np.arange(400) + 0.5) / 400)
    frame = pd.DataFrame({"x": np.r_[scores, scores + 1.0], "g": ["a"] * 400 + ["b"] * 400})
    model = mg.MixedGraphicalModel(lam=0.0).fit(frame)
    design = (frame[["g"]] == "b").astype(float)
    means = LinearRegression().fit(design, frame["x"]).predict(design)
    np.testing.assert_allclose(model.predict(frame, "x"), means, atol=2e-3)
    logistic = LogisticRegression(C=np.inf, tol=1e-10).fit(frame[["x"]], frame["g"])
    chances = logistic.predict_proba(frame[["x"]])
    np.testing.assert_allclose(model.predict_proba(frame, "g"), chances, atol=2e-3)


def test_a_binary_column_alone_with_continuous_ones_held_off_is_its_frequency():
    frame = people()[["height", "smoker"]]
    model = mg.MixedGraphicalModel(lam=0.1, forbid=[("height", "smoker")]).fit(frame)
    np.testing.assert_allclose(
        model.predict_proba(frame, "smoker")["True"], frame["smoker"].mean(), atol=1e-6
    )
    np.testing.assert_allclose(model.predict(frame, "height"), frame["height"].mean(), atol=1e-6)
    beta = 1 / frame["height"].var(ddof=0)
    assert model.params_.precision[0, 0] == pytest.approx(beta, rel=1e-6)


@pytest.mark.filterwarnings("ignore:.*follows from:mixedgm.TableWarning")
def test_all_continuous_without_penalty_is_the_inverse_covariance():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 4)) @ rng.normal(size=(4, 4)) * [1, 10, 0.1, 3] + [0, 100, -1, 5]
    model = mg.MixedGraphicalModel(lam=0.0, tol=1e-8).fit(X)
    expected = EmpiricalCovariance().fit(X).precision_
    np.testing.assert_allclose(model.params_.precision, expected, rtol=1e-5)
    np.testing.assert_allclose(model.params_.cont_bias, expected @ X.mean(axis=0), rtol=1e-5)
    for s in range(4):
        others = np.delete(X, s, axis=1)
        mean = LinearRegression().fit(others, X[:, s]).predict(others)
        np.testing.assert_allclose(model.predict(X)[:, s], mean, atol=1e-5 * X[:, s].std())


def test_two_categorical_columns_without_penalty_give_the_table_of_counts():
    frame = people(300, seed=2)[["group", "colour"]]
    model = mg.MixedGraphicalModel(lam=0.0, tol=1e-8).fit(frame)
    counts = pd.crosstab(frame["group"], frame["colour"], normalize=True).to_numpy()
    params = model.params_
    joint = np.exp(params.cat_bias[:3, None] + params.cat_bias[3:] + params.cat_interaction[:3, 3:])
    np.testing.assert_allclose(joint / joint.sum(), counts, atol=1e-6)
    rows = pd.crosstab(frame["group"], frame["colour"], normalize="index")
    expected = rows.loc[frame["group"]].to_numpy()
    np.testing.assert_allclose(model.predict_proba(frame, "colour"), expected, atol=1e-6)
    modes = rows.idxmax(axis=1).loc[frame["group"].tolist()].tolist()
    assert model.predict(frame, "colour").tolist() == modes


def test_forbidding_all_edges_between_categorical_columns_leaves_margins():
    frame = people()[["group", "colour"]]
    factors = {"categorical-categorical": np.inf}
    model = mg.MixedGraphicalModel(penalty_factors=factors).fit(frame)
    assert model.edges_ == ()
    expected = frame["group"].value_counts(normalize=True, sort=False)
    for row in model.predict_proba(frame, "group").to_numpy()[:5]:
        np.testing.assert_allclose(row, expected, atol=1e-6)


# -- with penalty: score and predictions by the plain formulas -------------------------------------


@pytest.fixture(scope="module")
def fitted():
    frame = people(80, seed=5)
    return frame, mg.MixedGraphicalModel(lam=0.1).fit(frame)


def test_score_is_the_log_pseudolikelihood_with_its_constant(fitted):
    frame, model = fitted
    rows = people(40, seed=6)
    for table in (frame, rows):
        X, Y = numbers(table)
        expected = -plain.smooth(model.params_, X, Y) - 2 * 0.5 * np.log(2 * np.pi)
        assert model.score(table) == pytest.approx(expected, rel=1e-12)


def test_weighted_score_is_the_weighted_mean(fitted):
    frame, model = fitted
    weights = np.random.default_rng(0).integers(0, 4, len(frame))
    X, Y = numbers(frame)
    expected = -plain.smooth(model.params_, X, Y, weights) - np.log(2 * np.pi)
    assert model.score(frame, sample_weight=weights) == pytest.approx(expected, rel=1e-12)


def test_node_scores_sum_to_minus_the_score(fitted):
    frame, model = fitted
    scores = model.node_scores(frame)
    assert list(scores) == ["height", "group", "weight", "smoker", "colour"]
    assert model.score(frame) == -sum(scores.values())
    X, Y = numbers(frame)
    chances = [
        plain.conditional_probabilities(model.params_, 1, x, y)[y[1]]
        for x, y in zip(X.tolist(), Y.tolist(), strict=True)
    ]
    assert scores["smoker"] == pytest.approx(-np.log(chances).mean(), rel=1e-12)


def test_score_is_tied_to_the_objective(fitted):
    """On the training rows: objective = -(score + constant) + penalty."""
    frame, model = fitted
    X, Y = numbers(frame)
    weights = plain.calibrated_weights(X, Y, (3, 2, 2))
    expected = plain.objective(model.params_, X, Y, 0.1, weights)
    assert model.objective_ == pytest.approx(expected, rel=1e-10)
    total = sum(edge.norm for edge in model.edges_)
    constant = np.log(2 * np.pi)
    assert model.objective_ == pytest.approx(
        -model.score(frame) - constant + 0.1 * total, rel=1e-10
    )


def test_predictions_follow_the_conditionals_row_by_row(fitted):
    frame, model = fitted
    rows = people(25, seed=7)
    X, Y = (part.tolist() for part in numbers(rows))
    out = model.predict(rows)
    for s, name in enumerate(("height", "weight")):
        expected = [
            plain.conditional_mean(model.params_, s, x, y) for x, y in zip(X, Y, strict=True)
        ]
        np.testing.assert_allclose(out[name], expected, rtol=1e-10)
    for r, (name, levels) in enumerate(LEVELS.items()):
        expected = np.array(
            [
                plain.conditional_probabilities(model.params_, r, x, y)
                for x, y in zip(X, Y, strict=True)
            ]
        )
        np.testing.assert_allclose(model.predict_proba(rows, name), expected, rtol=1e-9)
        assert out[name].tolist() == [levels[k] for k in expected.argmax(axis=1)]


def test_the_optimum_is_that_of_the_conic_solver(fitted):
    frame, model = fitted
    X, Y = numbers(frame)
    exact = conic.solve(X, Y, (3, 2, 2), 0.1)
    assert model.objective_ == pytest.approx(exact.value, abs=1e-7)
    nodes = ["height", "weight", "group", "smoker", "colour"]
    found = {(nodes.index(edge.source), nodes.index(edge.target)) for edge in model.edges_}
    assert found == set(exact.edges)
    assert_same_params(model.params_, exact, atol=2e-3)


def numbered(frame):
    """The same frame with the names 0, 1, ..., as pandas gives them to an array."""
    return frame.set_axis(range(frame.shape[1]), axis=1)


def test_columns_named_by_numbers_come_back_as_numbers(tmp_path):
    frame = numbered(people())
    model = mg.MixedGraphicalModel(lam=0.2).fit(frame)
    model.save(tmp_path / "model.mgm")
    for own in (model, mg.load(tmp_path / "model.mgm")):
        assert own.predict(frame).columns.tolist() == [0, 1, 2, 3, 4]
        assert own.predict(frame, [3, 0]).columns.tolist() == [3, 0]
        assert own.predict(frame.drop(columns=2), 2).name == 2
        assert own.sample(3, random_state=0).columns.tolist() == [0, 1, 2, 3, 4]
    named = mg.MixedGraphicalModel(lam=0.2).fit(people())
    assert named.predict(people())["height"].tolist() == model.predict(frame)[0].tolist()


def test_only_some_columns_are_named_by_numbers():
    frame = people().rename(columns={"group": 7})
    model = mg.MixedGraphicalModel(lam=0.2).fit(frame)
    expected = ["height", 7, "weight", "smoker", "colour"]
    assert model.predict(frame).columns.tolist() == expected
    assert model.schema_.names == ("height", "7", "weight", "smoker", "colour")
    assert model.predict(frame, 7).tolist() == model.predict(frame)[7].tolist()
