"""The default grid goes on until the choice is made, so that its numbers do not matter."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.support.people import people
from tests.support.shared import shared_data
from tests.support.solvers import interrupted_at

Model = partial(mg.MixedGraphicalModel, n_jobs=1, random_state=0)


def simulated(name):
    data = np.load(shared_data(f"sim/{name}.npz"))
    columns = {f"x{s}": x for s, x in enumerate(data["X"].T)}
    for r, (y, m) in enumerate(zip(data["Y"].T, data["levels"], strict=True)):
        columns[f"y{r}"] = pd.Categorical.from_codes(y, [f"level{a}" for a in range(m)])
    frame = pd.DataFrame(columns)
    return frame, {frozenset((frame.columns[u], frame.columns[v])) for u, v in data["edges"]}


def graph(model):
    return {frozenset((edge.source, edge.target)) for edge in model.edges_}


GRIDS = [(10, 0.5), (20, 0.5), (40, 0.5), (10, 0.1), (40, 0.1), (80, 0.1), (20, 0.01), (80, 0.01)]


@pytest.mark.parametrize(
    "select",
    ["ebic", "aic", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cv", "stars"))],
)
def test_the_answer_depends_on_the_spacing_of_the_grid_only(select):
    """lam is that of the finest grid, up to the two neighbours in the grid's own spacing."""
    frame = people(250, seed=3)
    grids = {"ebic": GRIDS[::2], "aic": GRIDS[1::2]}.get(select, GRIDS[1::3])
    select = {"cv": mg.CV(3, one_se=False), "stars": mg.StARS(n_subsamples=8)}.get(select, select)
    finest = Model(select=select, n_lams=200, lam_min_ratio=0.01).fit(frame)
    for n_lams, ratio in grids:
        model = Model(select=select, n_lams=n_lams, lam_min_ratio=ratio).fit(frame)
        spacing = ratio ** (1 / (n_lams - 1))
        allowed = 1.05 / spacing**1.5
        assert 1 / allowed < model.lam_ / finest.lam_ < allowed, (n_lams, ratio)
        np.testing.assert_allclose(model.path_.lams[1:] / model.path_.lams[:-1], spacing)


@pytest.mark.parametrize("name", ["a", "c10k"])
def test_every_grid_finds_the_simulated_graph(name):
    frame, true = simulated(name)
    found = []
    for n_lams, ratio in [(10, 0.5), (20, 0.5), (40, 0.1), (20, 0.01)]:
        model = Model(n_lams=n_lams, lam_min_ratio=ratio).fit(frame)
        found.append(graph(model))
        assert true <= found[-1]
        assert len(found[-1] - true) <= {"a": 0, "c10k": 1}[name]
    assert all(other == found[0] for other in found)


@pytest.mark.parametrize(("select", "share"), [("ebic", 0.2), (mg.CV(3, one_se=False), 0.5)])
def test_the_grid_ends_where_smaller_values_have_been_tried(select, share):
    model = Model(select=select, n_lams=10, lam_min_ratio=0.8).fit(people(250, seed=3))
    assert len(model.path_) > 10
    assert 0.5 * share * model.lam_ <= model.path_.lams[-1] <= share * model.lam_
    assert len(list(model.fitted_.scores.values())[0]) == len(model.path_)


def test_a_criterion_that_says_nothing_gets_the_grid_as_it_is():
    class Third:
        def choose(self, evidence):
            from mixedgm.select.evidence import Choice

            assert len(evidence.path) == 12
            return Choice(2, "third", {})

    model = Model(select=Third(), n_lams=12, lam_min_ratio=0.01).fit(people(250, seed=3))
    assert model.lam_ == model.path_.lams[2]


def test_given_values_are_not_added_to_but_the_end_is_noted():
    frame = people(250, seed=3)
    with pytest.warns(mg.SelectionWarning) as found:
        model = Model(select="ebic", lams=[0.9, 0.8, 0.7]).fit(frame)
    assert model.path_.lams.tolist() == [0.9, 0.8, 0.7]
    assert model.fitted_.report.notes == (
        "the choice lies near the end of the path at lam = 0.7; "
        "give smaller values to see whether they do better",
    )
    assert [str(each.message) for each in found] == list(model.fitted_.report.notes)
    assert found[0].filename == __file__, "it should point at the line of the caller"


def test_a_full_graph_ends_the_search():
    """Three columns, all related: at its end the path has every edge, and no more can come."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1)) + rng.normal(size=(300, 3))
    model = Model(select="aic", n_lams=5, lam_min_ratio=0.9).fit(X)
    assert len(model.edges_) == 3
    assert model.path_.n_edges[-1] == 3
    assert model.path_.lams[-1] > 0.01 * model.path_.lam_max
    assert model.fitted_.report.notes == ()


def test_no_grid_goes_below_its_floor():
    """Many rows of strongly related columns: any shrinkage predicts worse."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20_000, 1)) + 0.5 * rng.normal(size=(20_000, 3))
    with pytest.warns(mg.SelectionWarning, match="no smaller value was tried"):
        model = Model(select=mg.Holdout(), n_lams=10, lam_min_ratio=0.01).fit(X)
    share = model.path_.lams[-1] / model.path_.lam_max
    assert share == pytest.approx(1e-4, rel=0.7)
    assert share >= 1e-4 * (1 - 1e-6)
    assert "no smaller value was tried" in model.fitted_.report.notes[-1]


def test_one_value_stays_one_value():
    with pytest.warns(mg.SelectionWarning, match="no smaller value was tried"):
        model = Model(select="ebic", n_lams=1).fit(people())
    assert len(model.path_) == 1
    assert model.edges_ == ()


def test_without_penalised_edges_there_is_nothing_to_choose():
    frame = people()[["height", "weight"]]
    for select in ("ebic", "cv", "stars", mg.StabilitySelection(n_subsamples=4)):
        model = Model(select=select, require=[("height", "weight")]).fit(frame)
        assert model.lam_ == 0.0
        assert len(model.edges_) == 1


def test_ctrl_c_ends_the_growth():
    """What is solved is chosen from, with a warning; the grid is not taken up again."""
    model = Model(select="ebic", n_lams=10, lam_min_ratio=0.8, solver=interrupted_at(12))
    with (
        pytest.warns(RuntimeWarning, match="interrupted: the path ends at lam"),
        pytest.warns(mg.SelectionWarning, match="no smaller value was tried"),
    ):
        model.fit(people(250, seed=3))
    assert len(model.path_) == 11


# -- workers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "select",
    [mg.CV(3), mg.Holdout(), mg.StARS(n_subsamples=4), mg.StabilitySelection(n_subsamples=4)],
)
def test_the_number_of_workers_changes_nothing(select):
    frame = people(150, seed=2)
    options = {"select": select, "random_state": 5, "n_lams": 12}
    one, two = (mg.MixedGraphicalModel(n_jobs=n, **options).fit(frame) for n in (1, 2))
    assert one.lam_ == two.lam_
    for name, scores in one.fitted_.scores.items():
        np.testing.assert_array_equal(two.fitted_.scores[name], scores)
    np.testing.assert_array_equal(two.params_.coef, one.params_.coef)


@pytest.mark.parametrize(
    "select", ["cv", "holdout", "stars", mg.StabilitySelection(n_subsamples=4)]
)
def test_scores_survive_in_a_file(select, tmp_path):
    model = Model(select=select, n_lams=8).fit(people(150, seed=2))
    model.save(tmp_path / "people.mgm")
    twin = mg.load(tmp_path / "people.mgm")
    assert list(twin.fitted_.scores) == list(model.fitted_.scores)
    for name, scores in model.fitted_.scores.items():
        np.testing.assert_array_equal(twin.fitted_.scores[name], scores)
    np.testing.assert_array_equal(
        twin.fitted_.selection_frequency, model.fitted_.selection_frequency
    )
    assert twin.fitted_.report == model.fitted_.report
    assert twin.select == model.select


@pytest.mark.parametrize("select", ["ebic", "bic", "aic"])
def test_weighted_rows_are_repeated_rows(select):
    frame = people(80, seed=9)
    times = np.random.default_rng(0).integers(1, 4, 80)
    repeated = frame.iloc[np.repeat(np.arange(80), times)].reset_index(drop=True)
    options = {"select": select, "n_lams": 15, "tol": 1e-8}
    with pytest.warns(mg.TableWarning, match="sample_weight sums to"):
        weighted = Model(**options).fit(frame, sample_weight=times)
    whole = Model(**options).fit(repeated)
    assert weighted.lam_ == pytest.approx(whole.lam_, rel=1e-9)
    for name, scores in whole.fitted_.scores.items():
        np.testing.assert_allclose(weighted.fitted_.scores[name], scores, rtol=1e-6)
