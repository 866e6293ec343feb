"""Fits by maximum likelihood and joint distributions of tables with ordinal columns and counts."""

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg

TYPES = {"pain": "ordinal", "mood": mg.Ordinal(thresholds="quadratic"), "visits": "count"}


def patients(n=600, seed=0):
    """A table with columns of four kinds that all depend on each other."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=n)
    return pd.DataFrame(
        {
            "pain": np.digitize(latent + rng.normal(size=n), [-0.8, 0.5, 1.5]),
            "age": 40 + 10 * (0.5 * latent + rng.normal(size=n)),
            "visits": rng.poisson(np.exp(0.4 + 0.4 * latent)),
            "mood": np.digitize(rng.normal(size=n) - 0.6 * latent, [-0.5, 0.8]),
            "sex": np.where(latent + 2 * rng.normal(size=n) > 0, "f", "m"),
        }
    )


def poisson_regression(design, count):
    """Coefficients and expected counts of a log-linear model, by Newton's method."""
    beta = np.linalg.lstsq(design, np.log(count + 0.5), rcond=None)[0]
    for _ in range(50):
        mean = np.exp(design @ beta)
        beta += np.linalg.solve(design.T @ (mean[:, None] * design), design.T @ (count - mean))
    return beta, np.exp(design @ beta)


def test_two_ordinal_columns_are_the_linear_by_linear_association_model():
    rng = np.random.default_rng(3)
    a = rng.integers(0, 4, 500)
    b = np.clip(a + rng.integers(-2, 3, 500), 0, 3)
    scores = [0.0, 1.0, 2.0, 5.0]
    types = {"a": "ordinal", "b": mg.Ordinal(scores=scores)}
    model = mg.MixedGraphicalModel(lam=0, loss="likelihood", types=types, tol=1e-10)
    model.fit(pd.DataFrame({"a": a, "b": b}))
    cells = np.array([(i, j) for i in range(4) for j in range(4)])
    count = [np.sum((a == i) & (b == j)) for i, j in cells]
    own = [np.ones(16), *((cells[:, side] == k) for side in (0, 1) for k in (1, 2, 3))]
    product = cells[:, 0] * np.array(scores)[cells[:, 1]]
    coefficients, expected = poisson_regression(np.column_stack([*own, product]), np.array(count))
    found = model.interaction("a", "b").to_numpy()
    assert found.shape == (1, 1)
    assert found.item() == pytest.approx(coefficients[-1], rel=1e-7)
    table = model.marginal(["a", "b"]).frame()["probability"].to_numpy()
    np.testing.assert_allclose(table, expected / 500, atol=1e-8)


@pytest.mark.parametrize("covariates", [None, ["age"], ["treated"]])
@pytest.mark.parametrize("lam", [0.02, 0.1])
def test_two_ordered_levels_are_two_categories(lam, covariates):
    frame = patients(300).assign(treated=lambda t: (t["pain"] + t["visits"]) % 2)
    frame = frame[["age", "visits", "sex", "treated"]]
    models = [
        mg.MixedGraphicalModel(
            lam=lam,
            loss="likelihood",
            types={"visits": mg.Count(largest=24), "treated": kind},
            covariates=covariates,
            refit=False,
            tol=1e-9,
        ).fit(frame)
        for kind in ("ordinal", "categorical")
    ]
    one, other = models
    assert one.objective_ == pytest.approx(other.objective_, abs=1e-9)
    assert max(one.kkt_, other.kkt_) < 1e-8
    weights = [{frozenset(e[:2]): e.norm for e in model.edges_} for model in models]
    assert weights[0] == pytest.approx(weights[1], abs=1e-6)
    known = {name: 1 if name == "treated" else 40.0 for name in covariates or []}
    asked = [model.mean(known) for model in models]
    assert asked[0]["visits"] == pytest.approx(asked[1]["visits"], abs=1e-7)
    assert asked[0]["sex"] == pytest.approx(asked[1]["sex"], abs=1e-7)


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood"])
@pytest.mark.parametrize("lam", [0.3, 0.05])
def test_the_joint_distribution_has_the_margins_of_the_table(loss, lam):
    frame = patients()
    model = mg.MixedGraphicalModel(lam=lam, loss=loss, types=TYPES, tol=1e-9).fit(frame)
    means = model.mean()
    tolerance = 1e-8 if loss == "pseudolikelihood" or lam == 0.05 else 1e-6
    for name in ("pain", "sex"):
        shares = frame[name].value_counts(normalize=True).to_dict()
        assert means[name] == pytest.approx(shares, abs=tolerance)
    assert means["age"] == pytest.approx(frame["age"].mean(), rel=tolerance)
    visits = model.marginal("visits").frame()
    prob, c = visits["probability"].to_numpy(), visits["visits"].to_numpy()
    for power in (0.5, 1.0):  # what multiplies the two terms of a count
        assert prob @ c**power == pytest.approx((frame["visits"] ** power).mean(), rel=tolerance)
    mood = np.array([means["mood"][level] for level in (0, 1, 2)])
    for power in (1, 2):
        wanted = (frame["mood"].astype(float) ** power).mean()
        assert mood @ np.arange(3) ** power == pytest.approx(wanted, rel=tolerance)
    assert model.fitted_.joint_terms.error < 1e-6
    assert not model.fitted_.joint_terms.sampled
    found = model.joint_discrepancy()
    assert {pair.kind for pair in found.pairs} >= {"ordinal-count", "continuous-ordinal"}
    for pair in found.pairs:
        if pair[:2] == ("age", "visits"):
            wanted = np.corrcoef(frame["age"], np.sqrt(frame["visits"]))[0, 1]
            assert pair.table == pytest.approx(wanted, abs=1e-9)


@pytest.mark.statistical
def test_a_sampled_likelihood_finds_the_exact_estimate():
    frame = patients(400)
    common = {"lam": 0.05, "types": TYPES, "refit": False}
    exact = mg.MixedGraphicalModel(loss="likelihood", tol=1e-8, **common).fit(frame)
    sampled = mg.MixedGraphicalModel(loss="likelihood-mc", random_state=0, **common).fit(frame)
    for edge in exact.edges_:
        found = sampled.interaction(edge.source, edge.target).to_numpy()
        wanted = exact.interaction(edge.source, edge.target).to_numpy()
        unit = exact.fitted_.node_scales
        at = [exact.schema_.node_index(name) for name in edge[:2]]
        np.testing.assert_allclose(unit[at].prod() * found, unit[at].prod() * wanted, atol=0.03)


def test_a_likelihood_with_too_many_values_is_refused_with_a_remedy():
    frame = patients(200)
    types = {**TYPES, "visits": mg.Count(largest=3000)}
    with pytest.raises(mg.TooLargeError, match="likelihood-mc|pseudolikelihood"):
        mg.MixedGraphicalModel(lam=0.1, loss="likelihood", types=types).fit(frame)
    large = {**TYPES, "visits": mg.Count(largest=400)}
    model = mg.MixedGraphicalModel(lam=0.1, types=large).fit(frame)
    small = mg.MixedGraphicalModel(lam=0.1, types={**TYPES, "visits": mg.Count(largest=40)})
    small.fit(frame)
    for edge in small.edges_:
        one, other = (m.interaction(*edge[:2]).to_numpy() for m in (model, small))
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(("moderator", "value"), [("visits", 2), ("pain", 3), ("mood", 0)])
def test_the_model_at_a_value_has_the_conditionals_of_the_moderated_one(moderator, value):
    frame = patients(400)
    model = mg.MixedGraphicalModel(lam=0.02, types=TYPES, moderators=[moderator]).fit(frame)
    assert any(edge.moderator for edge in model.edges_)
    rows = frame[frame[moderator] == value].head(4)
    here = model.at({moderator: value})
    for name in {"visits", "pain", "mood", "sex"} - {moderator}:
        wanted = np.asarray(model.predict_proba(rows, name))
        for row, share in zip(rows.to_dict("records"), wanted, strict=True):
            known = {k: x for k, x in row.items() if k not in (name, moderator)}
            found = here.conditional(name, known).frame()["probability"]
            np.testing.assert_allclose(found, share, atol=1e-10)


def test_moderators_have_their_values_in_what_is_shown():
    frame = patients(400)
    model = mg.MixedGraphicalModel(lam=0.02, types=TYPES, moderators=["visits", "pain"]).fit(frame)
    for name, values in (("visits", (0, 1, 3)), ("pain", (0, 1, 2, 3))):
        drawn = model.plot_moderation(name)
        assert [each.ax.get_title() for each in drawn] == [f"{name} = {v}" for v in values]
    with pytest.warns(mg.ExtrapolationWarning, match="'visits' was between 0 and 6.*at 15 the"):
        model.at({"visits": 15, "pain": 1})
