"""The chosen graph without shrinkage: when, of what, and all that follows from it."""

import json

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.reference import conic, optimality, plain
from tests.support.command_line import mixedgm
from tests.support.people import assert_same_params, numbers, people

Model = mg.MixedGraphicalModel
NODES = ["height", "weight", "group", "smoker", "colour"]


def near_copy(n=400, seed=0):
    """x, z = x + noise, and a category that has nothing to do with them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {"x": x, "z": x + 0.9 * rng.normal(size=n), "colour": rng.choice(["blue", "red"], n)}
    )


def ship(n=1300, seed=1):
    """A table like that of the Titanic: survival depends on sex and class."""
    rng = np.random.default_rng(seed)
    place = rng.choice(["first", "second", "third"], n, p=[0.25, 0.2, 0.55])
    sex = rng.choice(["female", "male"], n, p=[0.36, 0.64])
    logit = 3.2 - 2.8 * (sex == "male") - 1.0 * (place == "second") - 2.4 * (place == "third")
    age = rng.normal(30, 12, n) + 8 * (place == "first")
    survived = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "yes", "no")
    return pd.DataFrame({"class": place, "sex": sex, "age": age, "survived": survived})


def empty_cell(n=300, seed=0):
    """No row has a = u and b = q; x depends on c, which has nothing to do with the others."""
    rng = np.random.default_rng(seed)
    a, c = rng.choice(["u", "v"], n), rng.choice(["k", "l", "m"], n)
    b = np.where((a == "u") | (rng.random(n) < 0.5), "p", "q")
    return pd.DataFrame({"a": a, "b": b, "x": rng.normal(size=n) + (c == "k"), "c": c})


@pytest.fixture(scope="module")
def table():
    return people(200, seed=5)


@pytest.fixture(scope="module")
def separated():
    return Model(n_jobs=1).fit(empty_cell())


# -- when ------------------------------------------------------------------------------------------

SELECTS = {
    "ebic": ("ebic", True),
    "bic": ("bic", True),
    "aic": ("aic", True),
    "stars": (mg.StARS(n_subsamples=4), True),
    "stability": (mg.StabilitySelection(n_subsamples=4), True),
    "cv": (mg.CV(cv=3), False),
    "holdout": (mg.Holdout(), False),
}


@pytest.mark.filterwarnings("ignore::mixedgm.SelectionWarning")
@pytest.mark.parametrize("name", SELECTS)
def test_the_criterion_says_whether_the_graph_is_refitted(table, name):
    select, refits = SELECTS[name]
    given = {"select": select, "n_lams": 10, "random_state": 0, "n_jobs": 1}
    model = Model(**given).fit(table)
    assert model.fitted_.report.refitted == refits
    twin = Model(**given, refit=refits).fit(table)
    assert_same_params(model.params_, twin.params_)
    text = "without penalty, given these edges" if refits else "shrunken by the penalty"
    assert f"estimates    {text}" in str(model.summary())
    other = Model(**given, refit=not refits).fit(table)
    assert other.fitted_.report.refitted != refits
    assert other.lam_ == model.lam_
    assert [e[:2] for e in sorted(other.edges_)] == [e[:2] for e in sorted(model.edges_)]


def test_a_given_lam_promises_its_objective(table):
    X, Y = numbers(table)
    model = Model(lam=0.2, tol=1e-8).fit(table)
    assert not model.fitted_.report.refitted
    assert model.objective_ == pytest.approx(conic.solve(X, Y, (3, 2, 2), 0.2).value, abs=1e-7)


# -- of what ---------------------------------------------------------------------------------------


def test_a_partial_correlation_is_that_of_the_sample():
    """The example of the issue: shrunken, 0.07; in the sample, 0.73."""
    frame = near_copy()
    edges = Model(tol=1e-8).fit(frame).edges_
    assert [e[:2] for e in edges] == [("x", "z")]
    correlation = np.corrcoef(frame["x"], frame["z"])[0, 1]
    assert edges[0].partial_correlation == pytest.approx(correlation, abs=1e-6)
    (shrunken,) = Model(refit=False).fit(frame).edges_
    assert shrunken.partial_correlation < 0.4 * correlation


def test_certificate_and_objective_are_those_of_what_is_returned(table):
    """Recomputed row by row, with all edges of the graph free and no others."""
    model = Model(select="ebic", tol=1e-8).fit(table)
    X, Y = numbers(table)
    factors = np.full((5, 5), np.inf)
    for edge in model.edges_:
        u, v = NODES.index(edge.source), NODES.index(edge.target)
        factors[u, v] = factors[v, u] = 0.0
    assert model.converged_
    assert model.objective_ == pytest.approx(plain.smooth(model.params_, X, Y), abs=1e-9)
    found = optimality.certificate(model.params_, X, Y, 1.0, factors.tolist())
    assert found.kkt == pytest.approx(model.kkt_, abs=1e-8)
    assert found.kkt <= 1e-7
    exact = conic.solve(X, Y, (3, 2, 2), 1.0, factors=factors)
    assert model.objective_ == pytest.approx(exact.value, abs=1e-7)
    np.testing.assert_allclose(model.params_.coef, _coef(exact), atol=1e-4)


def _coef(optimum):
    names = ("precision", "cont_bias", "category_shift", "cat_interaction", "cat_bias")
    return mg.Params.of_blocks(optimum.n_levels, *(getattr(optimum, name) for name in names)).coef


def test_two_columns_are_a_log_linear_model():
    """Against maximum likelihood of another package, for a table of counts."""
    frame = ship()[["sex", "survived"]]
    found = Model(tol=1e-9).fit(frame).interaction("sex", "survived")
    counts = pd.crosstab(frame["sex"], frame["survived"]).loc[
        list(found.index), list(found.columns)
    ]
    logs = np.log(counts.to_numpy())
    centred = logs - logs.mean(0) - logs.mean(1, keepdims=True) + logs.mean()
    np.testing.assert_allclose(found.to_numpy(), centred, atol=1e-7)


def test_predictions_and_queries_are_those_of_the_rows():
    """P(survived | female, first class): as often as in the table, where the graph can say it."""
    frame = ship()
    model, shrunken = (Model(select="ebic", refit=each).fit(frame) for each in ("auto", False))
    assert {frozenset(e[:2]) for e in model.edges_} >= {
        frozenset(("sex", "survived")),
        frozenset(("class", "survived")),
    }
    lady = (frame["sex"] == "female") & (frame["class"] == "first")
    known = (frame.loc[lady, "survived"] == "yes").mean()
    assert known > 0.93

    def asked(one):
        answer = one.conditional("survived", {"sex": "female", "class": "first"}).frame()
        return float(answer.set_index("survived").loc["yes", "probability"])

    assert asked(model) == pytest.approx(known, abs=0.02)
    assert asked(shrunken) < known - 0.1
    predicted = model.predict_proba(frame[lady], "survived")["yes"].mean()
    assert predicted == pytest.approx(known, abs=0.02)


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood", "nodewise"])
def test_a_separated_edge_is_finite_and_marked(loss):
    model = Model(loss=loss, n_jobs=1).fit(empty_cell())
    report = model.fitted_.report
    assert model.converged_
    assert report.ridge == (("a", "b"),)
    assert {e[:2]: e.ridge for e in model.edges_} == {("a", "b"): True, ("x", "c"): False}
    separated = next(edge for edge in model.edges_ if edge.ridge)
    assert 1.0 < separated.norm < 2.0
    assert 0.0 < separated.strength < 1.0
    frame = model.edges()
    assert frame.columns[-1] == "ridge"
    assert sorted(frame["ridge"].tolist()) == [False, True]
    assert "a ridge worth one row on a - b" in " ".join(str(model.summary()).split())


def test_the_objective_of_a_separated_graph_has_its_ridge():
    frame = empty_cell()
    model = Model(select="ebic").fit(frame)
    X = frame[["x"]].to_numpy()
    Y = np.column_stack([pd.Categorical(frame[name]).codes for name in ("a", "b", "c")])
    factors = np.full((4, 4), np.inf)
    for u, v in ((1, 2), (0, 3)):
        factors[u, v] = factors[v, u] = 0.0
    exact = conic.solve(X, Y, (2, 2, 3), 1.0, factors=factors, ridge={(1, 2): 1.0})
    assert model.objective_ == pytest.approx(exact.value, abs=1e-7)
    loss = plain.smooth(model.params_, X, Y)
    assert loss == pytest.approx(exact.value - exact.added, abs=1e-5)
    assert loss < model.objective_ - 1e-4


def test_a_healthy_table_has_no_column_for_it(table):
    assert "ridge" not in Model().fit(table).edges().columns


@pytest.mark.filterwarnings("ignore:'twice' follows from 'x'")
def test_a_number_that_is_twice_another_stays_finite():
    frame = empty_cell().assign(twice=lambda f: 2 * f["x"])
    model = Model().fit(frame)
    assert model.converged_
    assert set(model.fitted_.report.noisy) == {"x", "twice"}
    strongest = model.edges_[0]
    assert strongest[:2] == ("x", "twice")
    assert strongest.norm < 2 * len(frame)
    assert "noise worth one row in x, twice" in " ".join(str(model.summary()).split())


def test_a_graph_that_is_too_dense_keeps_its_shrunken_estimates():
    X = np.random.default_rng(0).normal(size=(10, 6)) + np.random.default_rng(1).normal(
        size=(10, 1)
    )
    model = Model(lam=0.01, refit=True).fit(X)
    twin = Model(lam=0.01).fit(X)
    assert len(model.edges_) > 10
    assert_same_params(model.params_, twin.params_)
    assert not model.fitted_.report.refitted
    (note,) = model.fitted_.report.notes
    assert note.startswith("the estimates are shrunken: the graph cannot be refitted, too many ")
    assert "and there are 10 rows" in note
    assert "shrunken by the penalty" in str(model.summary())


# -- shrunken weights beside -----------------------------------------------------------------------


def shrunken_cases():
    people_table = people(200, seed=5)
    return {
        "default": (people_table, {}),
        "stability": (people_table, {"select": mg.StabilitySelection(n_subsamples=6, max_false=3)}),
        "per node": (people_table, {"loss": "nodewise", "select": mg.EBIC(per_node=True)}),
        "nodewise, or": (people_table, {"loss": "nodewise", "rule": "or"}),
        "covariates": (people_table, {"covariates": ["group"]}),
        "moderators": (people_table, {"moderators": ["smoker"], "select": "aic"}),
        "given lam": (people_table, {"lam": 0.2, "refit": True}),
        "given lams": (people_table, {"lam": [0.2] * 5, "refit": True, "loss": "nodewise"}),
        "likelihood": (people_table, {"loss": "likelihood"}),
    }


@pytest.mark.parametrize("name", shrunken_cases())
def test_shrunken_norms_are_those_of_a_fit_without_refit(name, tmp_path):
    frame, options = shrunken_cases()[name]
    options = {"random_state": 0, "n_jobs": 1, **options}
    model = Model(**options).fit(frame)
    shrunken = Model(**{**options, "refit": False}).fit(frame)
    assert model.fitted_.report.refitted
    model.save(tmp_path / "model.mgm")
    for each in (model, mg.load(tmp_path / "model.mgm")):
        found = each.edges(shrunken=True)
        assert found.columns[-1] == "shrunken_norm"
        assert found.drop(columns="shrunken_norm").equals(model.edges())
        keys = [c for c in ("source", "target", "moderator") if c in found.columns]
        ours = found.set_index(keys)["shrunken_norm"].to_dict()
        theirs = shrunken.edges().set_index(keys)["norm"].to_dict()
        assert {str(key): value for key, value in ours.items()} == {
            str(key): value for key, value in theirs.items()
        }
        assert len(ours) > 1
    beside = shrunken.edges(shrunken=True)
    np.testing.assert_array_equal(beside["shrunken_norm"], beside["norm"])


# -- files -----------------------------------------------------------------------------------------


def test_files_keep_what_was_said(separated, tmp_path):
    separated.save(tmp_path / "model.mgm")
    twin = mg.load(tmp_path / "model.mgm")
    assert twin.fitted_.report == separated.fitted_.report
    assert twin.fitted_.report.ridge == (("a", "b"),)
    assert twin.edges_ == separated.edges_
    assert str(twin.summary()) == str(separated.summary())


def test_reasons_survive_in_a_file(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 20))
    model = Model(n_lams=10).fit(X)
    reasons = model.fitted_.report.not_considered
    assert any(reasons)
    assert not all(reasons)
    model.save(tmp_path / "model.mgm")
    assert mg.load(tmp_path / "model.mgm").fitted_.report.not_considered == reasons


# -- all that follows ------------------------------------------------------------------------------


def test_the_number_of_cores_changes_no_bit(table):
    one, two = (Model(n_jobs=n).fit(table) for n in (1, 2))
    assert_same_params(one.params_, two.params_)
    assert one.fitted_.report == two.fitted_.report


def test_a_weight_of_two_is_two_rows():
    """Ridge and noise count the weights, not the rows."""
    frame = empty_cell(150)
    twice = pd.concat([frame, frame], ignore_index=True)
    one = Model(tol=1e-8).fit(frame, sample_weight=np.full(150, 2.0))
    other = Model(tol=1e-8).fit(twice)
    assert one.fitted_.report.ridge == other.fitted_.report.ridge == (("a", "b"),)
    assert_same_params(one.params_, other.params_, atol=1e-6)


def test_resamples_are_refitted_like_the_model(table):
    model = Model().fit(table)
    how = {"n_boot": 20, "random_state": 0, "n_jobs": 1, "intervals": False}
    edges = mg.bootstrap(model, table, **how).selection().set_index(["source", "target"])
    for edge in model.edges_[:3]:
        row = edges.loc[(edge.source, edge.target)]
        assert row["strength"] == pytest.approx(edge.strength)
        found_mean = abs(row["mean"]) / row["inclusion"]
        assert found_mean == pytest.approx(edge.strength, rel=0.15)
    plain_found = mg.bootstrap(Model(refit=False).fit(table), table, **how)
    shrunken = plain_found.selection().set_index(["source", "target"])
    first = model.edges_[0]
    assert abs(shrunken.loc[(first.source, first.target), "mean"]) < 0.9 * first.strength


def test_resamples_of_a_separated_table_stay_finite(separated):
    found = mg.bootstrap(separated, empty_cell(), n_boot=20, random_state=0, n_jobs=1)
    edges = found.selection().set_index(["source", "target"])
    assert edges.loc[("a", "b"), "mean"] < 2.5
    assert found.replicates.norms.max() < 2.5
    assert not found.failures
    sizes = found.intervals()
    own = sizes[(sizes["source"] == "a") & (sizes["target"] == "b")]
    assert np.isfinite(own["estimate"]).all()
    assert own["lower"].isna().all(), "a cell without rows has no interval"
    assert "pairs have no interval: some combination of their levels has no rows" in str(found)


def test_groups_are_refitted_like_the_whole(table):
    frame = pd.concat(
        [people(200, seed=5).assign(site="a"), people(200, seed=6).assign(site="b")],
        ignore_index=True,
    )
    found = mg.compare(frame, "site", n_perm=2, random_state=0, n_jobs=1)
    for site, model in found.models.items():
        assert model.fitted_.report.refitted
        rows = frame[frame["site"] == site].drop(columns="site")
        alone = Model(lam=model.lam_, refit=True).fit(rows)
        assert_same_params(model.params_, alone.params_, atol=1e-4)


def test_a_check_judges_the_refit():
    """Of a strong edge: rows drawn from shrunken estimates do not look like the table."""
    frame = near_copy()
    model = Model(refit=False).fit(frame)
    options = {"n_sim": 50, "random_state": 0}
    assert not model.check_fit(frame, **options).flagged
    assert model.check_fit(frame, refit=False, **options).flagged
    assert not Model(refit=True).fit(frame).check_fit(frame, refit=False, **options).flagged


# -- what has no penalty ---------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["pseudolikelihood", "nodewise", "likelihood", "likelihood-mc"])
@pytest.mark.parametrize("how", ["lam", "require"])
def test_what_grows_without_bound_has_not_converged(loss, how):
    given = {"lam": 0.0} if how == "lam" else {"lam": 0.3, "require": [("a", "b")]}
    message = r"grows without bound, because no rows tell .* \(without bound: 'a - b'; KKT"
    with pytest.warns(UserWarning, match=message) as found:
        model = Model(loss=loss, random_state=0, **given).fit(empty_cell())
    assert [type(each.message).__name__ for each in found] == ["ConvergenceWarning"]
    assert not model.converged_
    assert model.fitted_.report.unbounded == ("a - b",)
    assert "NOT converged. an estimate without penalty" in " ".join(str(model.summary()).split())
    again = Model(loss=loss, random_state=0, refit=True, **given).fit(empty_cell())
    assert again.converged_
    assert ("a", "b") in again.fitted_.report.ridge


@pytest.mark.filterwarnings("ignore:'twice' follows from 'x'")
@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood"])
def test_numbers_that_determine_each_other_have_no_bound(loss):
    frame = empty_cell()[["x", "c"]].assign(twice=lambda f: 2 * f["x"])
    with pytest.warns(UserWarning, match="without bound: 'x', 'twice'"):
        model = Model(lam=0.0, loss=loss).fit(frame)
    assert not model.converged_
    assert Model(lam=0.05, loss=loss).fit(frame).converged_


@pytest.mark.filterwarnings("ignore:'z' follows from 'x'")
def test_a_number_that_is_nearly_determined_has_a_bound():
    """One per mille of its variance is left, in 120 rows: a large precision, but a sure one."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=120)})
    frame["z"] = frame["x"] + 0.03 * rng.normal(size=120)
    model = Model(lam=0.0).fit(frame)
    assert model.converged_
    inverse = np.linalg.inv(np.cov(frame.to_numpy().T, ddof=0))
    np.testing.assert_allclose(model.params_.precision, inverse, rtol=0.02)
    assert inverse[0, 0] * frame["x"].var(ddof=0) > 120


def test_a_healthy_table_without_penalty_converges(table):
    for given in ({"lam": 0.0}, {"lam": 0.2, "require": [("smoker", "colour")]}):
        model = Model(**given).fit(table)
        assert model.converged_
        assert model.fitted_.report.unbounded == ()


def test_an_empty_cell_is_found_among_many_rows():
    """A tolerance of 1e-5 is rough beside one row in 200,000; two rows in the cell are enough."""
    frame = empty_cell(200_000)[["a", "b", "x"]]
    with pytest.warns(UserWarning, match="without bound: 'a - b'"):
        assert not Model(lam=0.0).fit(frame).converged_
    frame.loc[:1, "a"], frame.loc[:1, "b"] = "u", "q"
    assert Model(lam=0.0).fit(frame).converged_


def test_an_unbounded_fit_survives_in_a_file(tmp_path):
    with pytest.warns(UserWarning, match="without bound"):
        model = Model(lam=0.0).fit(empty_cell())
    model.save(tmp_path / "model.mgm")
    twin = mg.load(tmp_path / "model.mgm")
    assert twin.fitted_.report == model.fitted_.report


def test_points_of_a_path_without_bound_have_not_converged():
    frame = empty_cell()
    message = "at 1 of 2 values of lam, worst at lam = 0: .* \\(without bound: 'a - b'; KKT"
    with pytest.warns(UserWarning, match=message):
        path = mg.fit_path(frame, [0.2, 0.0])
    assert path.converged.tolist() == [True, False]
    with pytest.warns(
        UserWarning, match="at 2 of 2 values of lam, .* \\(without bound: 'a - b'; KKT"
    ):
        path = mg.fit_path(frame, [0.3, 0.2], require=[("a", "b")])
    assert path.converged.tolist() == [False, False]
    assert mg.fit_path(frame, [0.3, 0.0], require=[("x", "c")], forbid=[("a", "b")]).converged.all()


# -- the end of the path ---------------------------------------------------------------------------


def test_a_choice_at_the_end_of_the_path_is_a_warning(table):
    with pytest.warns(mg.SelectionWarning, match="near the end of the path at lam = 0.5;"):
        model = Model(select="ebic", lams=[0.9, 0.7, 0.5]).fit(table)
    assert model.lam_ == 0.5
    assert model.fitted_.report.open_end in model.fitted_.report.notes
    assert issubclass(mg.SelectionWarning, UserWarning)


def test_the_last_graph_that_could_be_scored_is_a_warning():
    """Ten rows of one cause: denser graphs might do better, but cannot be refitted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 1)) + 0.5 * rng.normal(size=(10, 8))
    with pytest.warns(
        mg.SelectionWarning, match="the last one that could be scored; after it, too"
    ):
        model = Model(select="aic", n_lams=30).fit(X)
    assert "too many parameters for the rows" in model.fitted_.report.open_end


# -- the command line ------------------------------------------------------------------------------


def test_commands_refit_by_default_and_show_both(tmp_path):
    people(200, seed=5).to_csv(tmp_path / "people.csv", index=False)
    for flag, refitted in (([], True), (["--refit"], True), (["--no-refit"], False)):
        result = mixedgm("fit", "people.csv", "-o", "people.mgm", *flag, cwd=tmp_path)
        assert result.returncode == 0
        assert mg.load(tmp_path / "people.mgm").fitted_.report.refitted == refitted
    mixedgm("fit", "people.csv", "-o", "people.mgm", cwd=tmp_path)
    told = mixedgm("edges", "people.mgm", "--shrunken", "--format", "json", cwd=tmp_path)
    rows = json.loads(told.stdout)
    expected = mg.load(tmp_path / "people.mgm").edges(shrunken=True)
    assert [row["shrunken_norm"] for row in rows] == pytest.approx(
        expected["shrunken_norm"].tolist()
    )
    text = mixedgm("edges", "people.mgm", "--shrunken", cwd=tmp_path).stdout
    assert text.splitlines()[0].split()[3:5] == ["strength", "norm"]
