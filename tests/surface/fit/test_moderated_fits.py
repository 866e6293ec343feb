"""Fits with moderated edges: what they find, what changes nothing, penalties, files, pictures."""

from dataclasses import replace

import numpy as np
import pytest

import mixedgm as mg
from tests.support.command_line import mixedgm
from tests.support.moderated import people

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def model(table):
    options = {"moderators": ["age", "group"], "covariates": ["wave"], "lam": 0.06}
    return mg.MixedGraphicalModel(**options).fit(table)


# -- what was found --------------------------------------------------------------------------------


@pytest.mark.parametrize("select", ["ebic", "cv", "stars"])
def test_the_deviations_that_are_there_are_found_and_few_others(select):
    table = people(1500, seed=1)
    model = mg.MixedGraphicalModel(moderators=["age", "group"], select=select, random_state=0)
    found = {
        (frozenset((e.source, e.target)), e.moderator)
        for e in model.fit(table).edges_
        if e.moderator
    }
    truth = {(frozenset("ab"), "age"), (frozenset("ac"), "group")}
    assert truth <= found
    assert len(found - truth) <= (0 if select == "ebic" else 3)


def test_a_strong_effect_on_columns_alone_is_no_deviation():
    """The moderator moves the means of columns a lot; edges do not vary."""
    rng = np.random.default_rng(2)
    f = rng.normal(size=2000)
    a = 2.0 * f + rng.normal(size=2000)
    b = np.where(rng.random(2000) < 1 / (1 + np.exp(-2.0 * f)), "y", "n")
    c = np.where(rng.random(2000) < 0.05, "rare", "often")
    table = pd.DataFrame({"f": f, "a": a, "b": b, "c": c})
    path = mg.fit_path(table, moderators=["f"], lam_min_ratio=0.1, n_lams=10)
    assert not any(len(edge) == 3 for k in range(len(path)) for edge in path.edges(k))


def test_two_models_of_groups_are_recovered():
    """Rows of two known models; only the edge that differs between them deviates."""
    columns = {"x": "continuous", "y": "continuous", "z": ["n", "y"]}
    blocks = {
        "category_shift": [
            [
                -0.4,
                0.4,
            ],
            [0.0, 0.0],
        ]
    }
    tables = []
    for site, link in (("north", -0.5), ("south", 0.0)):
        truth = mg.from_params(columns, {**blocks, "precision": [[1.0, link], [link, 1.0]]})
        tables.append(truth.sample(1000, random_state=3).assign(site=site))
    model = mg.MixedGraphicalModel(moderators=["site"]).fit(pd.concat(tables, ignore_index=True))
    deviations = [e for e in model.edges_ if e.moderator]
    assert [(e.source, e.target) for e in deviations] == [("x", "y")]
    assert deviations[0].sign == "-"  # weaker in the second level
    refit = mg.MixedGraphicalModel(moderators=["site"], refit=True)
    refit.fit(pd.concat(tables, ignore_index=True))
    for site, link in (("north", 0.5), ("south", 0.0)):
        found = [e for e in refit.at({"site": site}).edges_ if {e.source, e.target} == {"x", "y"}]
        assert found[0].partial_correlation == pytest.approx(link, abs=0.06)


def test_edges_and_interactions_name_the_moderator(model):
    edges = model.edges()
    assert len(edges) == len(model.edges_) == int(model.path_.n_edges[-1])
    own = edges[edges["moderator"].notna()]
    assert set(own["moderator"]) == {"age", "group"}
    assert own["partial_correlation"].isna().all()
    assert not own["directed"].any()
    found = model.interaction("a", "c", "group")
    assert list(found.columns) == ["n", "y"]
    assert list(found.index) == [f"a | group = {level}" for level in "pqr"]
    assert model.interaction("a", "b", "age").shape == (1, 1)
    assert model.interaction("c", "a", "group").shape == (6, 1)
    with pytest.raises(mg.ParameterError, match="'wave' is not a moderator of this model; its"):
        model.interaction("a", "b", "wave")


# -- invariance ------------------------------------------------------------------------------------


def test_units_of_moderators_and_columns_change_nothing(table):
    options = {"moderators": ["age", "group"], "lam": 0.05, "tol": 1e-9}
    moved = table.assign(age=1000.0 - 12.0 * table["age"], a=5.0 + 0.01 * table["a"])
    one, two = (mg.MixedGraphicalModel(**options).fit(rows) for rows in (table, moved))
    keys = [[(e.source, e.target, e.moderator) for e in m.edges_] for m in (one, two)]
    assert keys[0] == keys[1]
    weights = [[e.norm for e in m.edges_] for m in (one, two)]
    np.testing.assert_allclose(weights[0], weights[1], atol=1e-7)
    shift = one.objective_ - two.objective_
    assert shift == pytest.approx(-np.log(0.01), abs=1e-8)
    a, b = one.at({"age": 47.0, "group": "q"}), two.at({"age": 1000.0 - 12.0 * 47.0, "group": "q"})
    np.testing.assert_allclose([e.norm for e in a.edges_], [e.norm for e in b.edges_], atol=1e-7)
    np.testing.assert_allclose(one.predict(table)["b"], two.predict(moved)["b"], atol=1e-6)
    turned = {"+": "-", "-": "+", None: None}
    signs = [[e.sign for e in m.edges_ if e.moderator == "age"] for m in (one, two)]
    assert signs[1] == [turned[sign] for sign in signs[0]]


def test_names_and_order_of_a_moderators_levels_change_nothing(table):
    options = {"moderators": ["group"], "lam": 0.05, "tol": 1e-9}
    renamed = table.assign(group=table["group"].map({"p": "z", "q": "m", "r": "b"}))
    one, two = (mg.MixedGraphicalModel(**options).fit(rows) for rows in (table, renamed))
    assert one.objective_ == pytest.approx(two.objective_, abs=1e-10)
    a, b = one.at({"group": "p"}), two.at({"group": "z"})
    np.testing.assert_allclose(a.params_.coef, b.params_.coef, atol=1e-7)


def test_weights_are_frequencies_and_jobs_change_nothing(table):
    rng = np.random.default_rng(0)
    times = rng.integers(1, 3, len(table))
    options = {"moderators": ["age", "group"], "lam": 0.08, "tol": 1e-9}
    weighted = mg.MixedGraphicalModel(**options).fit(table, sample_weight=times)
    rows = table.loc[table.index.repeat(times)].reset_index(drop=True)
    repeated = mg.MixedGraphicalModel(**options).fit(rows)
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=1e-10)
    one = mg.MixedGraphicalModel(**options, n_jobs=1).fit(table)
    two = mg.MixedGraphicalModel(**options, n_jobs=2).fit(table)
    np.testing.assert_array_equal(one.params_.coef, two.params_.coef)


def test_a_level_of_a_moderator_without_rows(table):
    declared = pd.Categorical(table["group"], categories=["p", "q", "r", "s"])
    model = mg.MixedGraphicalModel(moderators=["group"], lam=0.05)
    with pytest.warns(mg.TableWarning, match="level without rows"):
        model.fit(table.assign(group=declared))
    with pytest.raises(mg.ParameterError, match="level 's' of column 'group' cannot occur"):
        model.at({"group": "s"})
    assert not model.params_.moderation.deviations[0][3].any()
    plain = mg.MixedGraphicalModel(moderators=["group"], lam=0.05).fit(table)
    np.testing.assert_allclose(
        model.at({"group": "q"}).params_.coef, plain.at({"group": "q"}).params_.coef, atol=1e-6
    )


# -- penalties, losses, studies --------------------------------------------------------------------


def test_factors_of_deviations(table):
    options = {"moderators": ["age"], "lam": 0.05}
    forbidden = mg.MixedGraphicalModel(**options, forbid=[("a", "b")]).fit(table)
    assert not any({e.source, e.target} == {"a", "b"} for e in forbidden.edges_)
    one = mg.MixedGraphicalModel(**options, forbid=[("b", "a", "age")]).fit(table)
    assert [e.moderator for e in one.edges_ if {e.source, e.target} == {"a", "b"}] == [None]
    free = mg.MixedGraphicalModel(moderators=["age"], lam=5.0, require=[("a", "d", "age")])
    assert [(e.source, e.target, e.moderator) for e in free.fit(table).edges_] == [
        ("a", "d", "age")
    ]


def test_separate_regressions_can_be_moderated(table):
    model = mg.MixedGraphicalModel(moderators=["age"], loss="nodewise", lam=0.05).fit(table)
    assert ("a", "b", "age") in {(e.source, e.target, e.moderator) for e in model.edges_}
    # Deviations that both regressions have weigh as much as their mean in both.
    fitted = model.fitted_
    moderation = fitted.params.moderation
    mean = tuple(0.5 * (part + part.swapaxes(1, 2)) for part in moderation.deviations)
    params = replace(fitted.params, moderation=replace(moderation, deviations=mean))
    there = fitted.deviation_norms > 0.0
    assert there.any()
    evened = replace(fitted, params=params).deviation_norms[there]
    np.testing.assert_allclose(evened, fitted.deviation_norms[there], rtol=1e-12)
    here = model.at({"age": 50})
    assert here.predict(table.drop(columns="age")).shape == (len(table), 6)
    with pytest.raises(mg.DistributionError, match="separate regressions have no joint"):
        here.sample(1)


def test_arrays_name_moderators_by_position():
    rng = np.random.default_rng(0)
    f, x = rng.normal(size=(2, 600))
    rows = np.column_stack([f, x, f * x + rng.normal(size=600)])
    model = mg.MixedGraphicalModel(moderators=[0]).fit(rows)
    assert [e.moderator for e in model.edges_] == ["x0"]
    with pytest.raises(mg.ParameterError, match="moderators names 7, which is not a column"):
        mg.MixedGraphicalModel(moderators=[7]).fit(rows)
    with pytest.raises(
        mg.ParameterError, match="moderators names 'aeg', which is not a column.*'age'"
    ):
        mg.MixedGraphicalModel(moderators=["aeg"]).fit(people(50))


def test_transformed_moderators_are_given_in_their_own_units(table):
    skewed = table.assign(age=np.exp(table["age"] / 10))
    model = mg.MixedGraphicalModel(
        moderators=["age"], lam=0.06, transforms={"age": "nonparanormal"}
    )
    model.fit(skewed)
    low, high = skewed["age"].quantile([0.1, 0.9])
    weights = [
        {frozenset((e.source, e.target)): e.norm for e in model.at({"age": value}).edges_}
        for value in (low, high)
    ]
    ab = frozenset("ab")
    assert weights[0].get(ab, 0.0) < weights[1][ab]
    with pytest.warns(mg.ExtrapolationWarning, match=f"and {skewed['age'].max():.6g} in the rows"):
        model.at({"age": 1e6})


def test_studies_that_do_not_cover_deviations_say_so(model, table):
    with pytest.raises(mg.NotYetError, match="bootstrap does not cover deviations"):
        mg.bootstrap(model, table, n_boot=2)
    with pytest.raises(mg.NotYetError, match="comparison of groups does not cover deviations"):
        mg.compare(table, "group", moderators=["age"], n_perm=2)
    with pytest.raises(mg.ParameterError, match="use model.at"):
        model.check_fit(table)


# -- files, pictures, command line -----------------------------------------------------------------


@pytest.mark.parametrize("loss", ["pseudolikelihood", "nodewise"])
def test_files_keep_everything(tmp_path, table, loss):
    model = mg.MixedGraphicalModel(moderators=["age", "group"], loss=loss, n_lams=6, select="bic")
    model.fit(table)
    model.save(tmp_path / "model.mgm")
    back = mg.load(tmp_path / "model.mgm")
    assert back.edges_ == model.edges_
    assert back.get_params() == model.get_params()
    assert back.node_scores(table) == model.node_scores(table)
    for k in (0, len(model.path_) - 1):
        assert back.path_.edges(k) == model.path_.edges(k)
        np.testing.assert_array_equal(
            back.path_.score(table.iloc[:9]), model.path_.score(table.iloc[:9])
        )
    here, there = (m.at({"age": 33, "group": "q"}) for m in (model, back))
    # Separate regressions have no joint distribution to draw rows from: strengths are not known.
    assert repr(here.edges_) == repr(there.edges_)
    assert np.isnan([e.strength for e in there.edges_]).any() == (loss == "nodewise")
    here.save(tmp_path / "at.mgm")
    assert mg.load(tmp_path / "at.mgm").fitted_.report.at == "age = 33, group = q"


def test_subsamples_count_deviations(tmp_path, table):
    options = {"select": mg.StARS(n_subsamples=5), "n_lams": 8, "random_state": 0}
    model = mg.MixedGraphicalModel(moderators=["age"], **options)
    edges = model.fit(table).edges()
    assert edges["frequency"].between(0, 1).all()
    own = edges[edges["moderator"] == "age"]
    assert own["frequency"].iloc[0] >= 0.8
    model.save(tmp_path / "model.mgm")
    pd.testing.assert_frame_equal(mg.load(tmp_path / "model.mgm").edges(), edges)


def test_summary_and_exports(tmp_path, model):
    text = str(model.summary())
    assert "moderated" in text
    assert "of 12 possible, by age, group" in text
    assert "<th" in model._repr_html_()
    assert "moderator" in model._repr_html_()
    graph = model.to_networkx()
    assert graph.edges["a", "b"]["deviation_age"] > 0
    weights = model.to_adjacency()
    assert weights.loc["a", "b"] == pytest.approx(graph.edges["a", "b"]["weight"])
    for name in ("graph.graphml", "graph.json", "graph.csv"):
        model.export(tmp_path / name)
    assert "deviation_age" in (tmp_path / "graph.graphml").read_text()
    assert '"moderator": "age"' in (tmp_path / "graph.json").read_text()
    assert "moderator" in (tmp_path / "graph.csv").read_text().splitlines()[0]


def test_pictures(model):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    ax = model.plot().ax
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "varies with age, group" in texts
    assert any(part.get_label() == "moderated" for part in ax.collections)
    drawn = model.plot_moderation("age", f={"group": "r"})
    assert [d.ax.get_title().split(" = ")[0] for d in drawn] == ["age"] * 3
    assert drawn[0].positions == drawn[2].positions
    titles = [d.ax.get_title() for d in model.plot_moderation("group")]
    assert titles == ["group = p", "group = q", "group = r"]
    assert len(model.plot_moderation("age", [30, 50])) == 2
    with pytest.raises(mg.ParameterError, match="'wave' is not a moderator; the edges vary with"):
        model.plot_moderation("wave")
    with pytest.raises(mg.ParameterError, match="at least one value of the moderator"):
        model.plot_moderation("age", [])
    labels = [text.get_text() for text in model.plot_path().texts]
    assert any(" by age" in label for label in labels)
    plt.close("all")


def test_command_line(tmp_path, table):
    table.to_csv(tmp_path / "people.csv", index=False)
    fit = ("fit", "people.csv", "-o", "model.mgm", "--moderators", "age,group", "--lam", "0.06")
    assert mixedgm(*fit, cwd=tmp_path).returncode == 0
    listed = mixedgm("edges", "model.mgm", "--format", "csv", cwd=tmp_path)
    assert ",moderator" in listed.stdout.splitlines()[0]
    at = ("--at", "age=50,group=r")
    there = mixedgm("edges", "model.mgm", *at, "--format", "csv", cwd=tmp_path)
    assert there.returncode == 0
    assert "moderator" not in there.stdout
    assert "a,b" in there.stdout
    assert mixedgm("plot", "model.mgm", *at, "-o", "net.png", cwd=tmp_path).returncode == 0
    assert (tmp_path / "net.png").exists()
    wrong = mixedgm("edges", "model.mgm", "--at", "age=50", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "the edges vary with 'group'" in wrong.stderr
    given = ("--given", "age=50,group=r")
    sampled = mixedgm("sample", "model.mgm", "-n", "3", *given, cwd=tmp_path)
    assert len(sampled.stdout.splitlines()) == 4
