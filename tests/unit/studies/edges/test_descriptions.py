"""What edges say in words: the numbers in the sentences, against regressions and counts."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import mixedgm as mg
from tests.support.patients import patients


def numbers(text):
    return [float(part) for part in re.findall(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?", text)]


def test_two_numbers_move_as_in_a_regression():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 2_000))
    table = pd.DataFrame({"x": 10.0 * x, "y": 0.5 * x + 0.3 * z + rng.normal(size=2_000), "z": z})
    model = mg.MixedGraphicalModel(lam=0.0).fit(table)
    columns = np.column_stack([np.ones(2_000), table["y"], table["z"]])
    slope = np.linalg.lstsq(columns, table["x"], rcond=None)[0][1]
    said = model.describe("x", "y")
    assert said.startswith("x is ")
    assert "higher per standard deviation of y" in said
    assert numbers(said) == pytest.approx([slope * table["y"].std(), slope], rel=0.02)


def test_a_number_and_a_category_name_the_extreme_levels_with_enough_rows():
    rng = np.random.default_rng(1)
    n = 3_000
    group = rng.choice(["a", "b", "c", "rare"], n, p=[0.5, 0.3, 0.198, 0.002])
    shift = pd.Series(group).map({"a": 0.0, "b": 1.0, "c": 2.0, "rare": 9.0}).to_numpy()
    table = pd.DataFrame({"x": shift + rng.normal(size=n), "group": group})
    assert (table["group"] == "rare").sum() < 10
    model = mg.MixedGraphicalModel(lam=0.01, refit=True).fit(table)
    said = model.describe("group", "x")
    assert "rare" not in said
    seen = shift[group != "rare"]
    expected = [seen.std(), 2.0 - seen.mean(), seen.mean()]
    assert numbers(said) == pytest.approx(expected, rel=0.1)
    assert said.index("above average for c") < said.index("below for a")


def test_cells_of_categories_are_compared_with_unrelated_columns():
    rng = np.random.default_rng(2)
    share = np.array([[0.25, 0.05], [0.05, 0.25], [0.2, 0.2]])
    u, v = np.divmod(rng.choice(6, 5_000, p=share.ravel()), 2)
    table = pd.DataFrame({"u": np.array(["i", "j", "k"])[u], "v": np.array(["s", "t"])[v]})
    model = mg.MixedGraphicalModel(lam=0.0).fit(table)
    said = model.describe("u", "v")
    counts = pd.crosstab(table["u"], table["v"]).to_numpy()
    ratio = counts * 5_000 / np.outer(counts.sum(axis=1), counts.sum(axis=0))
    most, least = np.unravel_index(ratio.argmax(), (3, 2)), np.unravel_index(ratio.argmin(), (3, 2))
    found = re.findall(r"u = (\w) with v = (\w): ([\d.]+) times.*?\(about ([\d,]+)\)", said)
    assert "times as many rows as if unrelated" in said
    for (i, j, times, rows), at in zip(found, (most, least), strict=True):
        assert (i, j) == ("ijk"[at[0]], "st"[at[1]])
        assert float(times) == pytest.approx(ratio[at], rel=0.02)
        assert int(rows.replace(",", "")) == pytest.approx(counts[at], abs=2)


def test_cells_as_in_unrelated_columns_are_not_quoted():
    u, v = np.divmod(np.repeat(np.arange(4), [251, 249, 249, 251]), 2)
    table = pd.DataFrame({"u": np.array(["i", "j"])[u], "v": np.array(["s", "t"])[v]})
    said = mg.MixedGraphicalModel(lam=0.0).fit(table).describe("u", "v")
    assert said.startswith("no combination of levels with at least 10 rows differs by 5%")


def test_every_pair_of_kinds_has_a_sentence(tmp_path):
    table = patients(300, seed=1)
    types = {"pain": "ordinal", "grade": "ordinal", "debt": "hurdle"}
    types |= {"visits": "count", "falls": "count"}
    model = mg.MixedGraphicalModel(types=types, lam=0.0).fit(table)
    said = model.edges(say=True)["says"]
    assert len(said) == len(model.edges_) > 20
    assert said.str.len().between(10, 400).all()
    assert not said.str.contains("nan|inf", regex=True).any()
    assert "says" not in model.edges().columns


def given(n=4_000):
    """A category, a number, and what they follow."""
    rng = np.random.default_rng(3)
    count, amount = rng.poisson(1.0, n), np.where(rng.random(n) < 0.5, rng.gamma(2.0, size=n), 0.0)
    x = 0.5 * count + 0.8 * (amount > 0) + 0.4 * amount + rng.normal(size=n)
    odds = np.exp(np.outer(0.6 * count + 0.9 * (amount > 0) - 0.3 * amount, [0.0, 1.0, 0.4]))
    level = (rng.random((n, 1)) > np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)).sum(1)
    return pd.DataFrame(
        {"count": count, "amount": amount, "x": x, "level": np.array([*"abc"])[level]}
    )


def test_what_follows_given_counts_and_hurdle_columns_is_told_in_its_own_odds_and_mean():
    types = {"count": "count", "amount": "hurdle"}
    model = mg.MixedGraphicalModel(types=types, covariates=["count", "amount"], lam=0.0)
    table = given()
    model.fit(table)
    said = model.describe("count", "level")
    assert "as count goes from 0 to 1 the odds of level = b against a are" in said
    x = np.column_stack([np.sqrt(table["count"]), table["amount"] > 0, table["amount"], table["x"]])
    fit = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1_000).fit(x, table["level"])
    count, some, amount, _ = fit.coef_[1] - fit.coef_[0]
    assert numbers(said)[-1] == pytest.approx(np.exp(count), rel=0.03)
    said = model.describe("amount", "level")
    assert "where amount is not zero the odds of level" in said
    assert "more of amount the odds of level" in said
    mean = table["amount"][table["amount"] > 0].mean()  # which is more than nothing by so much
    assert numbers(said)[0] == pytest.approx(np.exp(some + amount * mean), rel=0.05)
    said = model.describe("amount", "x")
    assert said.startswith("x is ")
    assert "higher where amount is not zero; x is " in said


def test_no_edge_and_wrong_questions():
    model = mg.from_params({"x": "continuous", "y": "continuous"}, {})
    assert model.describe("x", "y") == "no edge: x and y are independent given all other columns"
    with pytest.raises(mg.ParameterError, match="two different columns"):
        model.describe("x", "x")
    with pytest.raises(mg.ParameterError, match="no column"):
        model.describe("x", "w")


def test_a_number_and_two_levels_differ_by_a_difference_of_means():
    rng = np.random.default_rng(1)
    flag = rng.integers(0, 2, 4_000)
    table = pd.DataFrame({"x": 3_000.0 * flag + 800.0 * rng.normal(size=4_000), "flag": flag})
    table["flag"] = table["flag"].map({0: "no", 1: "yes"})
    said = mg.MixedGraphicalModel(lam=0.0).fit(table).describe("flag", "x")
    assert said.startswith("mean x is ")
    assert said.endswith("higher for flag = yes than for no")
    means = table.groupby("flag")["x"].mean()
    amount = float(said.split()[3].replace(",", ""))
    assert amount == pytest.approx(means["yes"] - means["no"], rel=0.05)


def test_bent_columns_are_told_in_their_own_units():
    rng = np.random.default_rng(2)
    flag = rng.integers(0, 2, 6_000)
    x = np.exp(2.0 + 0.8 * flag + 0.5 * rng.normal(size=6_000))
    table = pd.DataFrame({"x": x, "flag": np.array(["no", "yes"])[flag]})
    model = mg.MixedGraphicalModel(lam=0.0, transforms={"x": "nonparanormal"}).fit(table)
    said = model.describe("flag", "x")
    assert said.startswith("median x is ")
    medians = table.groupby("flag")["x"].median()
    assert numbers(said)[0] == pytest.approx(medians["yes"] - medians["no"], rel=0.1)
    table["y"] = np.log(x) + 0.5 * rng.normal(size=6_000)
    model = mg.MixedGraphicalModel(lam=0.0, transforms={"x": "nonparanormal"})
    said = model.fit(table[["x", "y"]]).describe("y", "x")
    assert "per unit" not in said
    # One standard deviation of normal scores is from the median to the 84th percentile.
    low, high = (float(part) for part in said.split(" goes from ")[1].split(" to "))
    assert (low, high) == pytest.approx(np.quantile(x, [0.5, 0.8413]), rel=0.02)


def test_what_covariates_predict_is_told_by_odds_and_means_as_in_regressions():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    n = 2_000
    age, amount = rng.normal(50.0, 10.0, n), rng.gamma(2.0, size=n)
    spent = np.where(rng.random(n) < 0.4, 0.0, 1.0 + amount)
    visits = rng.poisson(1.5, n)
    pull = 0.06 * (age - 50.0) + 0.7 * (spent > 0.0) + 0.2 * spent + 0.5 * np.sqrt(visits)
    table = pd.DataFrame(
        {
            "age": age,
            "spent": spent,
            "visits": visits,
            "sick": np.where(rng.logistic(size=n) < pull - 1.0, "yes", "no"),
            "y": 0.1 * age + 2.0 * (spent > 0.0) + rng.normal(size=n),
        }
    )
    types, covariates = {"visits": "count", "spent": "hurdle"}, ["age", "spent", "visits"]
    model = mg.MixedGraphicalModel(types=types, covariates=covariates, lam=0.0).fit(table)
    above = np.where(spent > 0.0, spent - spent[spent > 0.0].mean(), 0.0)
    columns = np.column_stack([age, spent > 0.0, above, np.sqrt(visits), table["y"]])
    odds = LogisticRegression(C=np.inf, max_iter=5_000).fit(columns, table["sick"]).coef_[0]
    said = model.describe("age", "sick")
    assert said.startswith("per standard deviation of age the odds of sick = yes against no are")
    assert numbers(said)[0] == pytest.approx(np.exp(odds[0] * age.std()), rel=0.03)
    said = model.describe("sick", "visits")
    assert said.startswith("as visits goes from 0 to 1 the odds of sick = yes against no are")
    assert numbers(said)[-1] == pytest.approx(np.exp(odds[3]), rel=0.03)
    said = model.describe("spent", "sick")
    once, step, more = numbers(said)
    assert once == pytest.approx(np.exp(odds[1]), rel=0.05)
    assert more == pytest.approx(np.exp(odds[2] * step), rel=0.05)
    rest = np.column_stack([np.ones(n), columns[:, :4], table["sick"] == "yes"])
    slope = np.linalg.lstsq(rest, table["y"], rcond=None)[0]
    said = model.describe("y", "spent")
    assert said.startswith("y is ")
    assert numbers(said)[0] == pytest.approx(slope[2], rel=0.05)
    assert all(model.edges(say=True)["says"].str.len() > 20)


def test_how_an_edge_varies_is_told_at_values_of_its_moderator():
    rng = np.random.default_rng(4)
    n = 3_000
    age, x, sex = rng.normal(size=n), rng.normal(size=n), rng.choice(["f", "m"], n)
    slope = 0.3 * age + np.where(sex == "f", 0.5, 0.0)
    table = pd.DataFrame({"x": x, "y": slope * x + rng.normal(size=n), "age": age, "sex": sex})
    model = mg.MixedGraphicalModel(moderators=["age", "sex"], lam=0.0).fit(table)
    edges = model.edges(say=True)
    says = edges.set_index(["source", "target", "moderator"])["says"]
    assert says[("x", "y", None)].startswith("x is ")
    low, high = says[("x", "y", "age")].split("; ")
    assert low.startswith(f"at age = {age.mean() - age.std():.2f}"[:12])
    assert numbers(high.split(": ")[1])[0] > 2.0 * numbers(low.split(": ")[1])[0]
    by_level = says[("x", "y", "sex")].split("; ")
    assert [part.split(":")[0] for part in by_level] == ["at sex = f", "at sex = m"]
    assert numbers(by_level[0])[0] > 2.0 * abs(numbers(by_level[1])[0])
