"""One lam per column through the estimator, its views, files, studies and commands."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.cli import main
from tests.support.command_line import survey, write_csv
from tests.support.people import as_library, people

PER_NODE = mg.EBIC(per_node=True)
UNEQUAL = [0.02, 0.3, 0.02, 0.3, 0.02]
NAMES = ["height", "group", "weight", "smoker", "colour"]


def fit(table, select=PER_NODE, weights=None, **options):
    model = mg.MixedGraphicalModel(loss="nodewise", select=select, n_jobs=1, **options)
    return model.fit(table, sample_weight=weights)


@pytest.fixture(scope="module")
def table():
    return people(250, seed=5)


@pytest.fixture(scope="module")
def model(table):
    return fit(table)


@pytest.fixture(scope="module")
def shrunken(table):
    return fit(table, refit=False)


@pytest.fixture(scope="module")
def given_others(table):
    return fit(table, covariates=["height", "colour"])


# -- what it is ------------------------------------------------------------------------------------


def test_lam_has_one_value_per_column_of_the_table(table, model, given_others):
    assert model.lam_.shape == (5,)
    assert set(model.lam_) <= set(model.path_.lams)
    assert len(set(model.lam_)) > 1
    assert np.isnan(given_others.lam_).tolist() == [True, False, False, False, True]
    shuffled = fit(table[NAMES[::-1]])
    np.testing.assert_allclose(shuffled.lam_[::-1], model.lam_, rtol=1e-9)


def test_the_given_lams_are_the_chosen_ones(table, shrunken):
    again, model = fit(table, lam=shrunken.lam_, tol=1e-7), shrunken
    assert again.converged_
    assert again.path_ is None
    np.testing.assert_allclose(again.params_.coef, model.params_.coef, atol=1e-4)
    assert again.objective_ == pytest.approx(model.objective_, abs=1e-8)
    np.testing.assert_array_equal(again.lam_, model.lam_)
    assert "one per column, given" in str(again.summary())
    for draw in (again.plot_path, again.plot_selection):
        with pytest.raises(mg.ParameterError, match="no path of lam values"):
            draw()


def test_equal_lams_are_one_lam(table):
    apart, common = (fit(table, lam=lam, tol=1e-8) for lam in ([0.1] * 5, 0.1))
    np.testing.assert_allclose(apart.params_.coef, common.params_.coef, atol=1e-7)
    assert apart.objective_ == pytest.approx(common.objective_, abs=1e-10)


def test_cores_and_weights_do_not_matter(table, model):
    many = mg.MixedGraphicalModel(loss="nodewise", select=PER_NODE, n_jobs=4).fit(table)
    np.testing.assert_array_equal(many.lam_, model.lam_)
    np.testing.assert_array_equal(many.params_.coef, model.params_.coef)
    counts = np.random.default_rng(0).integers(0, 3, len(table))
    weighted = fit(table, weights=counts)
    repeated = fit(table.loc[np.repeat(table.index, counts)].reset_index(drop=True))
    np.testing.assert_allclose(weighted.lam_, repeated.lam_, rtol=1e-9)
    np.testing.assert_allclose(weighted.params_.coef, repeated.params_.coef, atol=1e-4)


def test_rules_join_the_regressions_of_all_columns(table):
    both, either = (fit(table, lam=UNEQUAL, rule=rule) for rule in ("and", "or"))
    says = both.params_.block_norms(both.params_.coef) > 0.0
    assert len(both.edges_) == np.triu(says & says.T).sum()
    assert len(either.edges_) == np.triu(says | says.T).sum()
    assert len(both.edges_) < len(either.edges_)


def test_an_edge_is_the_mean_of_its_two_copies(model):
    schema, params = model.schema_, model.params_
    for edge in model.edges_:
        u, v = schema.node_index(edge.source), schema.node_index(edge.target)
        mean = 0.5 * (params.says(u, v) + params.says(v, u).T)
        found = model.interaction(edge.source, edge.target).to_numpy()
        np.testing.assert_array_equal(found, mean)
        scale = model.fitted_.node_scales[u] * model.fitted_.node_scales[v]
        assert edge.norm == pytest.approx(np.linalg.norm(mean) * scale)


def test_without_an_edge_there_is_no_interaction(table):
    both = fit(table, lam=UNEQUAL)
    says, nodes = both.params_.block_norms(both.params_.coef) > 0.0, both.schema_.nodes
    u, v = np.argwhere(says & ~says.T)[0]
    assert not both.interaction(nodes[u].name, nodes[v].name).to_numpy().any()


# -- covariates ------------------------------------------------------------------------------------


def test_edges_of_covariates_have_one_copy_which_decides(table, given_others):
    """Under either rule, with the parameters of the one regression that has them."""
    params = given_others.params_
    assert any(edge.directed for edge in given_others.edges_)
    for edge in given_others.edges_:
        if edge.directed:
            assert edge.source in ("height", "colour")
            at = [given_others.schema_.node_index(name) for name in edge[:2]]
            found = given_others.interaction(*edge[:2]).to_numpy()
            np.testing.assert_array_equal(found, params.says(*at))
    either = fit(table, covariates=["height", "colour"], rule="or")
    directed = {edge[:2] for edge in either.edges_ if edge.directed}
    assert directed == {edge[:2] for edge in given_others.edges_ if edge.directed}
    n_edges = [len(given_others.path_.pairs(k)) for k in range(len(given_others.path_))]
    assert n_edges == given_others.path_.n_edges.tolist()
    assert n_edges[-1] > len(directed)


# -- the path --------------------------------------------------------------------------------------


def test_the_grid_goes_down_until_every_choice_is_certain(table):
    coarse = fit(table, n_lams=10, lam_min_ratio=0.8)
    assert len(coarse.path_) > 10
    assert coarse.path_.lams[-1] <= 0.2 * coarse.lam_.min()
    assert not coarse.fitted_.report.notes
    for scores in coarse.fitted_.scores.values():
        assert scores.shape == (len(coarse.path_), 5)
    finest = fit(table, n_lams=200)
    spacing = 0.8 ** (1 / 9)
    ratio = coarse.lam_ / finest.lam_
    assert (ratio < 1.05 / spacing**1.5).all()
    assert (ratio > spacing**1.5 / 1.05).all()


def test_columns_whose_choice_is_uncertain_are_named(table):
    with pytest.warns(mg.SelectionWarning, match="the choice for 'height', .* near the end"):
        model = fit(table, lams=[0.6, 0.5, 0.3])
    (note,) = [note for note in model.fitted_.report.notes if "near the end" in note]
    assert note == model.fitted_.report.open_end
    assert "the choice for 'height'" in note
    assert "give smaller values" in note


def test_regressions_that_are_too_dense_are_left_out_one_by_one():
    """Twelve rows: from six predictors on a column is not refitted, and its path has ended."""
    X = np.random.default_rng(2).normal(size=(12, 8))
    X[:, 1] += 2 * X[:, 0]
    model = fit(X, mg.AIC(per_node=True), lams=np.geomspace(0.9, 0.001, 20))
    losses = model.fitted_.scores["refit_loss"]
    first = [int(np.argmax(np.isinf(column))) for column in losses.T]
    assert len(set(first)) > 1, "columns should end at different lams"
    assert all(np.isinf(column[k:]).all() for column, k in zip(losses.T, first, strict=True))
    assert all(lam > model.path_.lams[k] for lam, k in zip(model.lam_, first, strict=True))
    (note,) = [note for note in model.fitted_.report.notes if "not considered" in note]
    assert "cannot be refitted to 12 rows" in note


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood", "likelihood-mc"])
@pytest.mark.parametrize("criterion", [mg.EBIC, mg.BIC, mg.AIC])
def test_other_losses_share_their_parameters(table, loss, criterion):
    model = mg.MixedGraphicalModel(loss=loss, select=criterion(per_node=True))
    with pytest.raises(mg.ParameterError, match="Use loss='nodewise', or per_node=False") as error:
        model.fit(table)
    assert f"with loss={loss!r} both ends of an edge share it" in str(error.value)


@pytest.mark.parametrize(
    ("lam", "message"),
    [
        ([0.1, 0.2], "lam has 2 values, but the model has 5 columns; give one value per column"),
        ([0.1, np.nan, 0.1, np.nan, 0.1], "lam is missing for 'group', 'smoker'; only covariates"),
        ([0.1, -1.0, 0.1, 0.1, 0.1], r"a float in \[0, inf\), one such per column, or None"),
        (np.ones((5, 1)), "one such per column, or None"),
    ],
)
def test_bad_lams_are_named(table, lam, message):
    with pytest.raises(mg.ParameterError, match=message):
        fit(table, lam=lam)


def test_other_bad_options(table):
    with pytest.raises(mg.ParameterError, match="per_node must be True or False. Got 'yes'"):
        mg.EBIC(per_node="yes")
    with pytest.raises(mg.ParameterError, match="a path has the same lam for all columns"):
        mg.fit_path(table, lam=[0.1] * 5, loss="nodewise")


# -- views and files -------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_views_tell_the_lam_of_every_column(table, library, tmp_path):
    model = fit(as_library(table, library), covariates=["colour"])
    expected = model.lam_[:4]
    low, high = f"{np.nanmin(expected):.4g}", f"{np.nanmax(expected):.4g}"
    assert f"{low} to {high}, one per column, by EBIC (gamma = 0.5)" in str(model.summary())
    assert "one per column" in model.summary()._repr_html_()
    np.testing.assert_array_equal(np.asarray(model.nodes()["lam"])[:4], expected)
    graph = model.to_networkx()
    assert [graph.nodes[name].get("lam") for name in NAMES] == [*expected, None]
    assert "lam" not in graph.graph
    model.export(tmp_path / "model.graphml")
    model.export(tmp_path / "model.json")
    told = json.loads((tmp_path / "model.json").read_text("utf-8"))["fit"]["lam"]
    assert told == dict(zip(NAMES, expected, strict=False))


def test_a_common_lam_is_told_as_before(table):
    common = fit(table, select="ebic")
    assert isinstance(common.lam_, float)
    assert "lam" not in common.nodes().columns
    assert common.to_networkx().graph["lam"] == common.lam_


def test_models_are_kept(given_others, table, tmp_path):
    given_others.save(tmp_path / "model.mgm")
    again = mg.load(tmp_path / "model.mgm")
    np.testing.assert_array_equal(again.lam_, given_others.lam_)
    assert again.get_params()["select"] == PER_NODE
    assert again.edges_ == given_others.edges_
    for name, scores in given_others.fitted_.scores.items():
        np.testing.assert_array_equal(again.fitted_.scores[name], scores)
    assert again.path_.n_edges.tolist() == given_others.path_.n_edges.tolist()
    assert again.node_scores(table) == given_others.node_scores(table)
    assert math.isnan(again.lam_[0])


def test_the_picture_of_the_choice_has_a_curve_and_a_mark_per_column(given_others):
    mpl = pytest.importorskip("matplotlib")
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    ax = given_others.plot_selection()
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["smoker", "weight", "group"]
    lams, scores = given_others.path_.lams, given_others.fitted_.scores["ebic"]
    curves = [line for line in ax.get_lines() if len(line.get_xdata()) == len(lams)]
    marks = [line for line in ax.get_lines() if len(line.get_xdata()) == 1]
    for row, column in enumerate([3, 2, 1]):
        height = curves[row].get_ydata()
        np.testing.assert_array_equal(np.argsort(height), np.argsort(scores[:, column]))
        assert height.min() == row
        assert marks[row].get_xdata() == [given_others.lam_[column]]
        assert marks[row].get_ydata() == [row]
    assert len(ax.get_legend().get_texts()) == 3
    plt.close("all")


def test_the_picture_of_the_path_marks_every_edge_at_its_own_lam(table, model, shrunken):
    """The path is that of penalised estimates, whatever is made of the chosen graph."""
    mpl = pytest.importorskip("matplotlib")
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    ax = model.plot_path(n_labels=3)
    (dots,) = [line for line in ax.get_lines() if line.get_linestyle() == "None"]
    says = shrunken.params_.block_norms(shrunken.params_.coef)
    scale = np.outer(model.fitted_.node_scales, model.fitted_.node_scales)
    np.testing.assert_allclose(np.sort(dots.get_ydata()), np.sort((says * scale)[says > 0]))
    assert set(dots.get_xdata()) <= set(model.lam_)
    assert sum("→" in text.get_text() for text in ax.texts) == 3
    plt.close("all")


# -- studies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("refit", [False, True])
def test_resamples_keep_the_lams_or_choose_them_again(table, refit):
    model = fit(table, refit=refit, covariates=["colour"])
    fixed = mg.bootstrap(model, table, n_boot=20, random_state=0, n_jobs=1)
    edges = fixed.selection().set_index(["source", "target"])
    for edge in model.edges_:
        row = edges.loc[(edge.source, edge.target)]
        assert row["strength"] == pytest.approx(edge.strength, rel=1e-6)
        assert row["inclusion"] > 0.2
    parameters = fixed.parameters()
    assert set(parameters["source"][parameters["target"].isna()]) == set(NAMES[:4])
    assert fixed.replicates.converged.all()
    again = mg.bootstrap(model, table, n_boot=4, select="again", random_state=0, n_jobs=1)
    assert again.replicates.converged.all()


def test_another_table_is_refused_with_the_lams_of_the_model(table, model):
    with pytest.raises(mg.ParameterError, match="one per column does not give the model"):
        mg.bootstrap(model, people(250, seed=6), n_boot=2, random_state=0, n_jobs=1)


@pytest.mark.parametrize("penalty", ["common", "own"])
def test_groups_are_compared_at_the_lams_of_the_columns(table, penalty):
    site = np.repeat(["north", "south"], 125)
    found = mg.compare(
        table,
        site,
        loss="nodewise",
        select=PER_NODE,
        penalty=penalty,
        n_perm=3,
        random_state=0,
        n_jobs=1,
    )
    north, south = found.lam.values()
    assert len(north) == 5
    assert (north == south) == (penalty == "common")
    assert np.isnan(found.group_table()["lam"]).all()
    assert found.n_pairs == 10
    np.testing.assert_array_equal(found.models["north"].lam_, north)


# -- the command line ------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    write_csv(tmp_path / "survey.csv", survey(150))
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMON = ["--loss", "nodewise", "--per-node", "--jobs", "1", "--n-lams", "12"]


def test_select_lists_the_columns(here, capsys):
    files = ["-o", "m.mgm", "--scores", "s.csv", "--plot", "p.svg"]
    assert main(["select", "survey.csv", "--criterion", "bic", *COMMON, *files]) == 0
    twin = fit(pd.read_csv("survey.csv"), mg.BIC(per_node=True), n_lams=12)
    np.testing.assert_array_equal(mg.load("m.mgm").lam_, twin.lam_)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["column", "lam", "neighbours", "parameters", "bic"]
    assert [line.split()[0] for line in lines[1:6]] == list(twin.schema_.names)
    assert [float(line.split()[1]) for line in lines[1:6]] == pytest.approx(twin.lam_, rel=1e-3)
    assert lines[-1].startswith("BIC: lam = ")
    assert ", one per column, " in lines[-1]
    scores = pd.read_csv("s.csv", keep_default_na=False)
    assert scores["bic_mood"].tolist() == twin.fitted_.scores["bic"][:, 3].tolist()
    named = ", ".join(scores["chosen_for"]).replace(", , ", ", ").split(", ")
    assert sorted(name for name in named if name) == sorted(twin.schema_.names)


def test_fit_and_path(here, capsys):
    assert main(["fit", "survey.csv", "-o", "m.mgm", "--covariates", "luck", *COMMON]) == 0
    assert "one per column, by EBIC" in capsys.readouterr().out
    assert np.isnan(mg.load("m.mgm").lam_[4])
    assert main(["path", "survey.csv", *COMMON]) == 0
    done = capsys.readouterr()
    assert done.out.splitlines()[0].split()[-2:] == ["chosen", "for"]
    assert "one per column" in done.err
    assert main(["path", "survey.csv", "-o", "path.csv", *COMMON]) == 0
    assert "ebic_luck" in pd.read_csv("path.csv").columns
    resample = ["bootstrap", "m.mgm", "survey.csv", "-o", "b", "--n-boot", "4", "--jobs", "1"]
    assert main(resample) == 0


def test_criteria_that_have_none_are_named(here, capsys):
    assert main(["fit", "survey.csv", "-o", "m.mgm", "--select", "cv", *COMMON]) == 2
    assert "--per-node belongs to ebic, bic and aic, not to cv." in capsys.readouterr().err
    assert main(["fit", "survey.csv", "-o", "m.mgm", "--per-node"]) == 2
    assert "Use --loss nodewise, or leave out --per-node" in capsys.readouterr().err
