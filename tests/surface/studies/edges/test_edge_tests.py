"""`mixedgm.edge_tests`: what its result shows, what changes nothing, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2, chi2_contingency, false_discovery_control, norm

import mixedgm as mg
from tests.support.patients import KIND, TYPES, patients


def people(n=400, seed=0):
    """`a` - `x` - `y`, `b` apart; one level of `b` is rare."""
    rng = np.random.default_rng(seed)
    a = rng.integers(2, size=n)
    x = a + rng.normal(size=n)
    y = 10 * (0.5 * x + rng.normal(size=n))
    b = rng.choice(["p", "q", "r"], n, p=[0.5, 0.4, 0.1])
    return pd.DataFrame({"a": np.array(["no", "yes"])[a], "x": x, "y": y, "b": b})


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def model(table):
    return mg.MixedGraphicalModel().fit(table)


@pytest.fixture(scope="module")
def tests(model, table):
    return mg.edge_tests(model, table, random_state=0)


def pair_of(frame, *names):
    found = [{*ends} == {*names} for ends in zip(frame["source"], frame["target"], strict=True)]
    return frame[found]


def test_edges_are_complete_and_the_most_certain_come_first(tests):
    frame = tests.edges()
    assert frame.columns.tolist() == [
        *("source", "target", "kind", "strength", "lower", "upper", "estimate", "se", "norm"),
        *("statistic", "df", "p", "p_holm", "p_bh", "probability", "log_bf", "log_bf_unit"),
        *("verdict", "in_model"),
    ]
    assert len(frame) == 6
    assert frame["p"].is_monotonic_increasing
    first = zip(frame["source"][:2], frame["target"][:2], strict=True)
    assert {frozenset(ends) for ends in first} == {frozenset("ax"), frozenset("xy")}
    assert frame["verdict"].tolist()[:2] == ["present", "present"]
    assert "present" not in frame["verdict"].tolist()[2:]
    assert frame["in_model"].tolist()[:2] == [True, True]
    assert frame["probability"].between(0, 1).all()


def test_p_values_are_adjusted_for_all_pairs(tests):
    frame = tests.edges()
    p = frame["p"].to_numpy()
    np.testing.assert_allclose(frame["p_bh"], false_discovery_control(p))
    expected = np.maximum.accumulate(p * np.arange(len(p), 0, -1)).clip(max=1.0)
    np.testing.assert_allclose(frame["p_holm"], expected)


def test_pairs_with_one_parameter_have_estimates(tests):
    frame = tests.edges()
    one = frame["df"] == 1
    assert frame[~one][["estimate", "se"]].isna().all(axis=None)
    np.testing.assert_allclose((frame["estimate"] / frame["se"])[one] ** 2, frame["statistic"][one])


def test_every_pair_has_a_strength_with_an_interval_that_agrees_with_its_test(model, table, tests):
    frame = tests.edges()
    assert frame[["strength", "lower", "upper"]].notna().all(axis=None)
    assert frame["strength"].between(0.0, 1.0).all()
    assert (frame["lower"] <= frame["upper"]).all()
    assert (frame["lower"][frame["p"] > 0.05] == 0.0).all()
    assert (frame["lower"][frame["verdict"] == "present"] > 0.0).all()
    narrow = mg.edge_tests(model, table, level=0.5, random_state=0).edges()
    assert (narrow["upper"] - narrow["lower"] <= frame["upper"] - frame["lower"] + 1e-12).all()


def test_pairs_that_have_no_test_leave_the_strengths_of_all_others_where_they_are(table, tests):
    rare = np.where(np.arange(len(table)) < 2, "rare", "frequent")
    wide = pd.concat([pd.DataFrame({"rare": rare}), table], axis=1)
    frame = mg.edge_tests(mg.MixedGraphicalModel().fit(wide), wide, random_state=0).edges()
    assert frame["untested"].notna().sum() == 4
    columns = ["strength", "lower", "upper"]
    assert frame.loc[frame["untested"].notna(), columns].isna().all(axis=None)
    for pair, row in tests.edges().set_index(["source", "target"]).iterrows():
        same = pair_of(frame, *pair)[columns].to_numpy()[0]
        np.testing.assert_allclose(same, row[columns].to_numpy(float), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("cells", [[[60, 0], [8, 5]], [[100, 0], [20, 7]]])
def test_where_an_estimate_runs_far_out_statistic_and_p_are_those_of_the_likelihood_ratio(cells):
    place = np.repeat(np.arange(4), np.ravel(cells))
    names = np.array(["no", "yes"])
    z = np.random.default_rng(0).normal(size=len(place))
    table = pd.DataFrame({"a": names[place // 2], "b": names[place % 2], "z": z})
    found = mg.edge_tests(mg.MixedGraphicalModel(lam=0.05).fit(table), table)
    pair = pair_of(found.edges(), "a", "b").iloc[0]
    g, *_ = chi2_contingency(cells, correction=False, lambda_="log-likelihood")
    assert pair["statistic"] == pytest.approx(g, rel=0.02)  # a ridge worth one row
    assert pair["p"] == pytest.approx(chi2.sf(pair["statistic"], 1))
    assert any("1 pairs have the likelihood ratio" in note for note in found.notes)


def test_the_origin_of_a_number_changes_no_strength_and_no_interval(table, tests):
    numbers = table.select_dtypes("number").columns
    moved = table.assign(**{name: table[name] + 50.0 * table[name].std() for name in numbers})
    here = tests.edges().set_index(["source", "target"])
    there = mg.edge_tests(mg.MixedGraphicalModel().fit(moved), moved).edges()
    there = there.set_index(["source", "target"]).loc[here.index]
    for name in ("strength", "lower", "upper"):
        np.testing.assert_allclose(there[name], here[name], atol=1e-3)


def test_the_strength_of_two_numbers_has_fishers_interval():
    rng = np.random.default_rng(0)
    n = 2_000
    z = rng.normal(size=n)
    x = 0.6 * z + rng.normal(size=n)
    table = pd.DataFrame({"x": x, "y": 0.5 * x + rng.normal(size=n), "z": z})
    model = mg.MixedGraphicalModel(lam=0.0).fit(table)
    tests = mg.edge_tests(model, table, method="free", random_state=0).edges()
    inverse = np.linalg.inv(table.corr().to_numpy())
    scale = np.sqrt(np.diag(inverse))
    partial = pd.DataFrame(-inverse / np.outer(scale, scale), table.columns, table.columns)
    for row in tests.itertuples():
        middle = np.arctanh(abs(partial.loc[row.source, row.target]))
        low, high = np.tanh(middle - 1.96 / np.sqrt(n - 4)), np.tanh(middle + 1.96 / np.sqrt(n - 4))
        # The variance is that of redrawn rows: 5 % of a standard error is four times its error.
        assert row.upper == pytest.approx(high, abs=0.1 / np.sqrt(n))
        assert row.lower == pytest.approx(
            max(low, 0.0) if row.p_free < 0.05 else 0.0, abs=0.1 / n**0.5
        )


def test_bayes_factors_and_verdicts_follow_their_definitions(tests):
    frame, n = tests.edges(), 400
    assert tests.effective_n == n
    unit = 0.5 * (frame["statistic"] * n / (1 + n) - frame["df"] * np.log(1 + n))
    np.testing.assert_allclose(frame["log_bf_unit"], unit)
    # Prior odds times Bayes factors, but for rivals: they take from edges, and give to others.
    alone, inside = expit(frame["log_bf"] + logit(tests.share)), frame["in_model"]
    assert (frame["probability"] <= alone + 1e-12)[inside].all()
    assert (frame["probability"] >= alone - 1e-12)[~inside].all()
    np.testing.assert_allclose(frame["probability"], alone, atol=0.05)
    strong = np.log(10)
    probable = frame["probability"] > 0.5
    words = np.where((frame["log_bf"] >= strong) & probable, "present", "undecided")
    absent = (frame["log_bf"] <= -strong) & ~probable & (frame["p"] >= 0.05)
    assert frame["verdict"].tolist() == np.where(absent, "absent", words).tolist()


def test_absence_is_found_in_many_rows_and_never_where_p_is_small():
    table = people(20_000, seed=1)
    tests = mg.edge_tests(mg.MixedGraphicalModel().fit(table), table, random_state=0)
    frame = tests.edges()
    assert frame["verdict"].value_counts().to_dict() == {"absent": 4, "present": 2}
    assert (frame["p"][frame["verdict"] == "absent"] >= 0.05).all()


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariates", [[], ["age", "ward"]])
def test_parameters_are_those_of_a_fit_without_penalty(covariates):
    """All kinds; times what corrects their bias, the mean of 1 - k / n of the conditionals."""
    table = patients(800, seed=3)
    options = {"types": TYPES, "covariates": covariates, "n_jobs": 1}
    model = mg.MixedGraphicalModel(lam=0.1, refit=False, **options).fit(table)
    tests = mg.edge_tests(model, table, method="free", random_state=0)
    names = [name for name in table.columns if name not in covariates]
    pairs = [(a, b) for k, a in enumerate(names) for b in names[:k]]
    pairs += [(c, name) for c in covariates for name in names]
    free = mg.MixedGraphicalModel(lam=0.1, require=pairs, tol=1e-8, **options).fit(table)
    freedom = {name: {"ward": 2, "debt": 2}.get(name, 1) for name in KIND}
    frame = tests.parameters()
    assert len(frame.groupby(["source", "target"])) == len(pairs)
    for (source, target), part in frame.groupby(["source", "target"]):
        block = free.interaction(source, target).to_numpy()
        left = [1 - (1 + sum(freedom.values()) - freedom[name]) / 800 for name in (source, target)]
        share = left[1] if source in covariates else np.mean(left)
        found = part["estimate"].to_numpy().reshape(block.shape)
        scale = part["se"].max()
        np.testing.assert_allclose(found, block * share, atol=2e-3 * scale)
        step = norm.isf(0.025) * part["se"]
        np.testing.assert_allclose(part["upper"] - part["estimate"], step)
    wards = pair_of(frame, "ward", "smoker")
    levels = [set(wards[f"{end}_level"]) for end in ("source", "target")]
    assert {"east", "north", "west"} in levels
    assert {"False", "True"} in levels
    debt = pair_of(frame, "debt", "dose")
    assert set(debt["source_level"].dropna()) | set(debt["target_level"].dropna()) == {
        "debt != 0",
        "debt",
    }


def test_edges_that_vary_are_tested_for_it():
    rng = np.random.default_rng(6)
    n = 900
    group, x = rng.choice(["g", "h", "i"], n), rng.normal(size=n)
    y = x * np.where(group == "h", 0.9, 0.1) + rng.normal(size=n)
    z = 0.5 * x + rng.normal(size=n)
    table = pd.DataFrame({"group": group, "x": x, "y": y, "z": z})
    model = mg.MixedGraphicalModel(moderators=["group"]).fit(table)
    tests = mg.edge_tests(model, table, method="free")
    frame = tests.edges()
    varying = frame[frame["moderator"].notna()]
    assert len(varying) == 3
    assert set(varying["df"]) == {2}
    assert varying.iloc[0][["source", "target", "verdict_free"]].tolist() == ["x", "y", "present"]
    assert (varying["p_free"][1:] > 0.01).all()
    parameters = tests.parameters()
    part = pair_of(parameters[parameters["moderator"].notna()], "x", "y")
    change = dict(zip(part["moderator_level"], part["estimate"], strict=True))
    assert change["h"] > 0.25
    assert change["g"] < -0.1
    # A deviation is one from the mean over the rows.
    shares = table["group"].value_counts(normalize=True)
    assert sum(shares[level] * value for level, value in change.items()) == pytest.approx(
        0.0, abs=1e-9
    )
    free = mg.MixedGraphicalModel(moderators=["group"], lam=1e-6, refit=False).fit(table)
    base = pair_of(parameters[parameters["moderator"].isna()], "x", "y")["estimate"].item()
    for level in "ghi":
        value = free.at({"group": level}).interaction("x", "y").iloc[0, 0]
        left = 1 - (1 + 2 + 2 * 3) / n  # a mean, two contrasts of the group, two columns thrice
        assert base + change[level] == pytest.approx(value * left, abs=1e-3)


def test_a_moderator_of_two_levels_is_told_from_the_first_to_the_second():
    rng = np.random.default_rng(5)
    n = 600
    old, x = rng.integers(2, size=n), rng.normal(size=n)
    y = x * (0.2 + 0.6 * old) + rng.normal(size=n)
    table = pd.DataFrame({"old": np.array(["a", "b"])[old], "x": x, "y": y})
    tests = mg.edge_tests(mg.MixedGraphicalModel(moderators=["old"]).fit(table), table)
    row = tests.edges().query("moderator == 'old'").iloc[0]
    part = tests.parameters().query("moderator == 'old'").set_index("moderator_level")["estimate"]
    spread = table["x"].std(ddof=0) * table["y"].std(ddof=0)
    assert row["estimate"] == pytest.approx((part["b"] - part["a"]) * spread)


# -- what changes nothing --------------------------------------------------------------------------


def test_seeds_and_threads_change_nothing(model, table, tests):
    again = mg.edge_tests(model, table, random_state=1, n_jobs=2)
    pd.testing.assert_frame_equal(again.edges(), tests.edges())
    drawn = [
        mg.edge_tests(model, table, covariance="model", **options).edges()
        for options in ({}, {"n_jobs": 2}, {"random_state": 1})
    ]
    pd.testing.assert_frame_equal(drawn[0], drawn[1])
    one, other = (frame.set_index(["source", "target"])["statistic_drawn"] for frame in drawn[1:])
    assert not one.equals(other[one.index])
    np.testing.assert_allclose(other[one.index], one, rtol=0.1)


def test_models_that_were_chosen_in_another_way_are_tested_alike(table, tests):
    """The search for the graph begins elsewhere, and ends at the same one."""
    empty = mg.MixedGraphicalModel(lam=5.0).fit(table)
    found = mg.edge_tests(empty, table).edges()
    assert not found["in_model"].any()
    expected = tests.edges().drop(columns="in_model")
    pd.testing.assert_frame_equal(found.drop(columns="in_model"), expected, rtol=1e-4)


# -- one probability for a pair --------------------------------------------------------------------


def probabilities(model, tests):
    """Of every edge of the model, as the model and as the tests have it."""
    names = ["source", "target"]
    ours = model.edges().set_index(names)["probability"]
    theirs = tests.edges()
    turned = theirs.rename(columns={"source": "target", "target": "source"})
    theirs = pd.concat([theirs, turned]).set_index(names)["probability"]
    return ours.to_numpy(), theirs[ours.index].to_numpy()


@pytest.mark.filterwarnings("ignore:sample_weight sums to:mixedgm.TableWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"select": "fdr"},
        {"select": mg.LocalFDR(0.2)},
        {"covariates": ["age", "ward"]},
        {"loss": "nodewise"},
        {"penalty_weights": "adaptive"},
    ],
    ids=str,
)
def test_tests_have_the_probabilities_of_the_fit(options, tmp_path):
    """Also from a file, in another order of rows, and with weights."""
    table = patients(250, seed=1)
    weights = np.random.default_rng(0).integers(1, 4, len(table)).astype(float)
    for given in ({}, {"sample_weight": weights})[bool(options) :]:
        model = mg.MixedGraphicalModel(types=TYPES, n_jobs=1, **options).fit(table, **given)
        assert len(model.edges_) > 5
        both = probabilities(model, mg.edge_tests(model, table, **given))
        np.testing.assert_allclose(*both, atol=1e-9)
    model.save(tmp_path / "model.mgm")
    loaded = mg.load(tmp_path / "model.mgm")
    order = np.random.default_rng(1).permutation(len(table))
    again = mg.edge_tests(loaded, table.iloc[order], sample_weight=weights[order])
    np.testing.assert_allclose(*probabilities(model, again), atol=1e-4)
    false = model.fitted_.expected_false
    assert false == pytest.approx((1 - probabilities(model, again)[1]).sum(), abs=1e-3)


def test_where_two_graphs_lead_to_each_other_the_smaller_one_is_taken():
    """In this table each is what a search from the other one finds."""
    model = mg.MixedGraphicalModel(types=TYPES, n_jobs=1).fit(patients(250, seed=1))
    assert any("found no graph whose edges all pass" in note for note in model.fitted_.report.notes)
    assert len(model.edges_) == 12
    assert (model.edges()["probability"] > 0.5).all()


def test_tests_have_the_probabilities_of_a_fit_with_gaps():
    table = patients(200, seed=1)
    table["age"] = table["age"].where(np.arange(200) % 7 > 0)
    table["ward"] = table["ward"].where(np.arange(200) % 11 > 0)
    model = mg.MixedGraphicalModel(types=TYPES, missing="model", n_jobs=1).fit(table)
    both = probabilities(model, mg.edge_tests(model, table))
    np.testing.assert_allclose(*both, atol=1e-9)


def test_what_other_options_decide_has_names_of_its_own(model, table):
    names = ["statistic", "p", "p_holm", "p_bh", "probability", "log_bf", "log_bf_unit", "verdict"]
    home = np.arange(len(table)) // 4
    for options, end in (
        ({"method": "free"}, "_free"),
        ({"covariance": "model"}, "_drawn"),
        ({"method": "free", "covariance": "model"}, "_free_drawn"),
        ({"cluster": home}, "_clusters"),
    ):
        tests = mg.edge_tests(model, table, **options)
        columns = tests.edges().columns
        assert [name for name in columns if name.endswith(end)] == [name + end for name in names]
        assert not set(names) & set(columns)
        assert f"probability{end}" in tests.summary()


def test_weights_are_frequencies(table):
    counts = np.random.default_rng(0).integers(1, 4, len(table))
    longer = table.loc[np.repeat(table.index, counts)].reset_index(drop=True)
    model = mg.MixedGraphicalModel(lam=0.1).fit(longer)
    one = mg.edge_tests(model, longer, covariance="rows")
    other = mg.edge_tests(model, table, covariance="rows", sample_weight=counts.astype(float))
    assert other.effective_n == counts.sum()
    pd.testing.assert_frame_equal(one.edges(), other.edges(), rtol=1e-5)


@pytest.mark.parametrize("covariance", ["rows", "model"])
def test_units_and_the_order_of_rows_change_little(model, table, covariance):
    options = {"covariance": covariance, "random_state": 0}
    other = table.assign(y=3.0 - 100 * table["y"]).sample(frac=1, random_state=1)
    one = mg.edge_tests(model, table, **options).edges()
    two = mg.edge_tests(mg.MixedGraphicalModel().fit(other), other, **options).edges()
    one, two = (frame.set_index(["source", "target"]) for frame in (one, two))
    close, name = (1e-4, "statistic") if covariance == "rows" else (0.1, "statistic_drawn")
    np.testing.assert_allclose(two[name][one.index], one[name], rtol=close, atol=1e-4)


def test_frames_are_of_the_library_of_the_table(table):
    polars = pytest.importorskip("polars")
    theirs = polars.DataFrame({name: table[name].to_list() for name in table.columns})
    tests = mg.edge_tests(mg.MixedGraphicalModel(lam=0.1).fit(theirs), theirs, random_state=0)
    assert isinstance(tests.edges(), polars.DataFrame)
    assert isinstance(tests.parameters(), polars.DataFrame)
    assert tests.edges()["estimate"].null_count() == 3


@pytest.mark.filterwarnings("ignore:column 'b':mixedgm.TableWarning")
def test_levels_without_rows_and_required_and_forbidden_pairs(table):
    wider = table.assign(b=pd.Categorical(table["b"], ["p", "q", "r", "never"]))
    options = {"require": [("a", "b")], "forbid": [("y", "b")], "lam": 0.1}
    model = mg.MixedGraphicalModel(**options).fit(wider)
    tests = mg.edge_tests(model, wider, random_state=0)
    frame = tests.edges()
    assert len(pair_of(frame, "y", "b")) == 0
    required = pair_of(frame, "a", "b").iloc[0]
    assert required["df"] == 2
    assert required["probability"] == 1.0
    assert "never" not in tests.parameters()["target_level"].tolist()


# -- clusters --------------------------------------------------------------------------------------


def households(n=150, seed=0):
    """Households of four: all columns of a household have a common part of their own."""
    rng = np.random.default_rng(seed)
    home = np.repeat(np.arange(n), 4)
    shared = rng.normal(size=(n, 3))[home]
    columns = shared + 0.3 * rng.normal(size=(len(home), 3))
    return pd.DataFrame(columns, columns=["x", "y", "z"]), home


@pytest.mark.statistical
def test_clusters_keep_errors_honest():
    """Without clusters p-values are far too small; fails in about one of a thousand runs."""
    small = {"plain": [], "clusters": []}
    for seed in range(60):
        table, home = households(seed=seed)
        model = mg.MixedGraphicalModel(lam=0.2, refit=False).fit(table)
        plain = mg.edge_tests(model, table, covariance="rows").edges()
        given = mg.edge_tests(model, table, cluster=home).edges()
        small["plain"] += (plain["p"] < 0.05).tolist()
        small["clusters"] += (given["p_clusters"] < 0.05).tolist()
    assert np.mean(small["plain"]) > 0.2
    assert np.mean(small["clusters"]) < 0.11


def test_clusters_of_repeated_rows_with_gaps_are_the_rows():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(150, 3)) + rng.normal(size=(150, 1))
    once = pd.DataFrame(x, columns=list("abc")).mask(rng.random((150, 3)) < 0.1)
    once["d"] = np.where(rng.random(150) < 1 / (1 + np.exp(-x[:, 0])), "no", "yes")
    twice = once.loc[once.index.repeat(2)]
    found = []
    for table, clusters in ((once, None), (twice, np.repeat(np.arange(150), 2))):
        model = mg.MixedGraphicalModel(missing="model", n_jobs=1).fit(table)
        edges = mg.edge_tests(model, table, method="free", cluster=clusters).edges()
        found.append(edges.set_index(["source", "target"]).sort_index())
    np.testing.assert_allclose(found[1]["estimate"], found[0]["estimate"], rtol=0.03)
    np.testing.assert_allclose(found[1]["se"], found[0]["se"], rtol=0.04)


def test_clusters_are_a_column_or_labels():
    table, home = households()
    model = mg.MixedGraphicalModel(lam=0.2).fit(table)
    by_labels = mg.edge_tests(model, table, cluster=[f"home {k}" for k in home])
    by_name = mg.edge_tests(model, table.assign(home=home), cluster="home")
    pd.testing.assert_frame_equal(by_labels.edges(), by_name.edges())
    assert by_labels.covariance == "rows"
    assert by_labels.n_clusters == 150
    assert by_labels.effective_n == pytest.approx(150)
    assert "600 rows in 150 clusters" in by_labels.summary()


# -- refusals --------------------------------------------------------------------------------------


def test_few_rows_and_few_clusters_are_refused(model, table):
    with pytest.raises(mg.ParameterError, match="at least 30 rows, and there are 20"):
        mg.edge_tests(model, table[:20])
    with pytest.raises(mg.ParameterError, match=r"cluster has 3 .* labels.*To fix"):
        mg.edge_tests(model, table, cluster="b")


def test_all_pairs_at_once_need_rows():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 20)), columns=[f"x{k}" for k in range(20)])
    model = mg.MixedGraphicalModel(lam=0.4).fit(table)
    with pytest.raises(mg.ParameterError, match=r"19 predictors, and 60 rows.*method='graph'"):
        mg.edge_tests(model, table, method="free")
    tests = mg.edge_tests(model, table)
    assert tests.method == "graph"
    assert "each given the edges that pass their own tests" in tests.summary()
    assert "present" not in tests.edges()["verdict"].tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "all"}, "method must be 'graph' or 'free'"),
        ({"covariance": "robust"}, "covariance must be 'rows' or 'model'"),
        ({"covariance": "model", "cluster": "x"}, "knows nothing about clusters"),
        ({"level": 1.0}, r"level must be a number in \(0, 1\)"),
        ({"cluster": "home"}, "cluster names 'home', which is not a column"),
        ({"cluster": [1, 2]}, "cluster must have one label per row.*Got 2 labels for 400 rows"),
        ({"cluster": np.ones((400, 2))}, r"in shape \(400,\)\. Got shape \(400, 2\)"),
        ({"cluster": np.ones((400, 1))}, r"Got shape \(400, 1\)"),
        ({"cluster": [[k] for k in range(400)]}, "Got lists as labels"),
        ({"cluster": 3}, "Got a value of type int"),
        ({"sample_weight": "w"}, "sample_weight names 'w', which is not a column"),
    ],
)
def test_options_are_checked(model, table, options, message):
    with pytest.raises(mg.ParameterError, match=message):
        mg.edge_tests(model, table, **options)


def test_a_model_must_be_fitted(table):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        mg.edge_tests(mg.MixedGraphicalModel(), table)
    with pytest.raises(mg.ParameterError, match="model must be a fitted MixedGraphicalModel"):
        mg.edge_tests("model.mgm", table)


def test_nothing_to_test(table):
    two = table[["x", "y"]]
    model = mg.MixedGraphicalModel(lam=0.2, forbid=[("x", "y")]).fit(two)
    with pytest.raises(mg.ParameterError, match="no pair of columns may have an edge"):
        mg.edge_tests(model, two)


def test_a_ladder_of_thirty_columns_and_a_thousand_rows_is_not_refused():
    table, truth = mg.datasets.make_ladder(1000, 15, random_state=0)
    model = mg.MixedGraphicalModel(lam=0.15).fit(table)
    tests = mg.edge_tests(model, table, random_state=0)
    frame = tests.edges()
    edges = {frozenset((edge.source, edge.target)) for edge in truth.edges_}
    ends = zip(frame["source"], frame["target"], strict=True)
    is_edge = np.array([frozenset(pair) in edges for pair in ends])
    kept = frame["p_bh"] <= 0.1
    assert np.mean(is_edge[kept]) > 0.8
    assert np.mean(kept[is_edge]) > 0.9
    assert not (frame["verdict"][is_edge] == "absent").any()


def test_columns_without_edges_are_named(model, table):
    tests = mg.edge_tests(model, table.assign(b="p", y=1.0), random_state=0)
    ends = [set(pair) for pair in tests.edges()[["source", "target"]].to_numpy()]
    assert ends == [{"a", "x"}]
    assert "constant in these rows, so without edges: 'y', 'b'" in tests.notes
    assert "without edges: 'y', 'b'" in " ".join(tests.summary().split())
    with pytest.raises(mg.ParameterError, match="so without edges: 'x', 'y', 'b'"):
        mg.edge_tests(model, table.assign(b="p", y=1.0, x=2.0))


@pytest.mark.parametrize("labels", [["p", np.nan] * 200, [None, *range(399)]])
def test_missing_labels_of_rows_are_refused(model, table, labels):
    """In a list, a missing label among texts must not become a text."""
    for call in (
        lambda: mg.edge_tests(model, table, cluster=labels),
        lambda: mg.bootstrap(model, table, n_boot=1, groups=labels),
        lambda: mg.compare(table, labels),
        lambda: mg.compare(table, "a", paired=labels),
        lambda: mg.MixedGraphicalModel(select=mg.CV(2, groups=labels), lams=[0.3]).fit(table),
    ):
        with pytest.raises(mg.TableError, match="missing label"):
            call()


def test_weights_by_the_name_of_a_column(table):
    """In all functions that take weights, as in `fit`."""
    table = table.head(120)
    weights = np.random.default_rng(2).integers(1, 3, len(table)).astype(float)
    named = table.assign(w=weights)
    model = mg.MixedGraphicalModel(lam=0.1).fit(table, sample_weight=weights)
    path = mg.fit_path(table, sample_weight=weights, lams=[0.3, 0.2])
    for call in (
        lambda X, w: mg.edge_tests(model, X, sample_weight=w, random_state=0).edges(),
        lambda X, w: mg.bootstrap(
            model, X, n_boot=2, sample_weight=w, random_state=0, n_jobs=1, intervals=False
        ).selection(),
        lambda X, w: mg.compare(X, "a", sample_weight=w, lam=0.2, n_perm=0, n_jobs=1).edges(),
        lambda X, w: model.check_fit(
            X, sample_weight=w, n_sim=20, random_state=0, refit=False
        ).pairs(),
        lambda X, w: model.predictability(X, sample_weight=w),
        lambda X, w: model.missing_report(X, sample_weight=w).columns(),
        lambda X, w: model.log_likelihood(X, sample_weight=w),
        lambda X, w: path.score(X, sample_weight=w),
        lambda X, w: path.log_likelihood(X, sample_weight=w),
        lambda X, w: mg.check_table(X, sample_weight=w).schema,
    ):
        assert str(call(named, "w")) == str(call(table, weights))
    twice = pd.concat([named, named[["w"]]], axis=1)
    with pytest.raises(mg.ParameterError, match="names 'w', and 2 columns have this name"):
        mg.edge_tests(model, twice, sample_weight="w")


# -- text and pictures -----------------------------------------------------------------------------


def test_text_html_and_picture_show_verdicts(tests):
    text = tests.summary()
    assert text.startswith("Tests of 6 pairs: 2 present, ")
    assert "variances from the rows" in " ".join(text.split())
    shown = ["source", "target", "strength", "lower", "upper", "statistic", "df", "p"]
    assert text.splitlines()[1].split() == [*shown, "probability", "verdict"]
    assert str(tests) == repr(tests) == text
    html = tests._repr_html_()
    assert "Tests of 6 pairs" in html
    assert "<table" in html
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = tests.plot()
    names = [tick.get_text() for tick in ax.get_xticklabels()]
    shown = ax.images[0].get_array()
    for row in tests.edges().itertuples():
        at = names.index(row.source), names.index(row.target)
        assert shown[at] == pytest.approx(row.probability)
        assert shown[at[::-1]] == shown[at]
    assert [text.get_text() for text in ax.texts].count("●") == 4
    given = plt.figure().add_subplot()
    assert tests.plot(ax=given) is given
    plt.close("all")
