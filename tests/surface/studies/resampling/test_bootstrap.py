"""The bootstrap: odd resamples, the model's options, wrong input and its messages."""

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.select.evidence import Choice
from tests.support.people import as_library, people
from tests.support.solvers import Faulty, nth, tables

N_BOOT = 12
LAM = 0.12


def spawned(seed: int, n: int) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(seed).spawn(n)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return people(150)


@pytest.fixture(scope="module")
def model(table):
    return mg.MixedGraphicalModel(lam=LAM, tol=1e-8).fit(table)


@pytest.fixture(scope="module")
def found(model, table) -> mg.Bootstrap:
    return mg.bootstrap(model, table, n_boot=N_BOOT, random_state=5, n_jobs=1)


@pytest.fixture(scope="module")
def dropping(model, table) -> mg.Bootstrap:
    return mg.bootstrap(model, table, 10, "case-dropping", random_state=5, n_jobs=1)


def pairs(frame: pd.DataFrame) -> list[frozenset[str]]:
    return [frozenset(pair) for pair in zip(frame["source"], frame["target"], strict=True)]


# -- degenerate resamples ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rare() -> pd.DataFrame:
    """A level with one row, and a column that differs from its usual value in two rows."""
    table = people(60, seed=4)
    group = table["group"].astype(object)
    group[group == "c"] = "b"
    group[0] = "c"
    rng = np.random.default_rng(0)
    spike = np.zeros(60)
    spike[[3, 4]] = 5.0, -4.0
    return table.assign(
        group=pd.Categorical(group, ["a", "b", "c"]), spike=spike, flag=rng.random(60) < 0.03
    )


def test_rare_levels_and_constant_columns_are_fitted_and_counted(rare) -> None:
    types = {"spike": "continuous", "flag": "categorical"}
    model = mg.MixedGraphicalModel(lam=0.05, types=types).fit(rare)
    found = mg.bootstrap(model, rare, n_boot=40, random_state=1, n_jobs=1)
    assert (found.n_done, found.n_failed, found.n_unconverged) == (40, 0, 0)
    draws = [rare.iloc[np.random.default_rng(s).integers(60, size=60)] for s in spawned(1, 40)]
    lacks_c = sum((d["group"] != "c").all() for d in draws)
    flat_spike = sum(d["spike"].nunique() == 1 for d in draws)
    flat_flag = sum(d["flag"].nunique() == 1 for d in draws)
    assert min(lacks_c, flat_spike, flat_flag) > 0, "the seed shows all cases"
    counted = found.degenerate().set_index("column")
    assert set(counted.index) == {"group", "spike", "flag"}
    assert counted.loc["group"].tolist() == [0, lacks_c]
    assert counted.loc["spike"].tolist() == [flat_spike, 0]
    assert counted.loc["flag"].tolist() == [flat_flag, flat_flag]
    text = found.summary()
    assert f"'spike': constant in {flat_spike}" in text
    assert f"'group': without one of its levels in {lacks_c}" in text
    names = [node.name for node in model.schema_.nodes]
    for k, draw in enumerate(draws):
        for column in ("spike", "flag"):
            own = (found.replicates.ends == names.index(column)).any(axis=1)
            if draw[column].nunique() == 1:
                assert not found.replicates.norms[k, own].any(), "no edges, never free ones"
    assert np.isfinite(found.replicates.norms).all()
    values = found.pair_replicates.values
    ends = found.pair_replicates.layout.pairs
    of_group = np.isin(ends, names.index("group")).any(axis=1)
    at = np.repeat(of_group, found.pair_replicates.layout.sizes)
    lacks = [k for k, draw in enumerate(draws) if (draw["group"] != "c").all()]
    assert np.isnan(values[np.ix_(lacks, np.flatnonzero(at))]).all(), "it says nothing there"
    parameters = found.parameters()
    assert np.isfinite(parameters["estimate"]).all()
    own = parameters[parameters["source"].eq("height") & parameters["target"].isna()]
    assert np.isfinite(own["lower"]).all()


def failing(table: pd.DataFrame, *numbers: int) -> mg.MixedGraphicalModel:
    """A model of the table, whose resamples come fourth and later; some cannot be fitted."""
    solver = Faulty(nth(tables, *numbers), np.linalg.LinAlgError("singular matrix"))
    return mg.MixedGraphicalModel(lam=LAM, tol=1e-8, solver=solver).fit(table)


def test_failed_resamples_are_counted_and_never_drawn_again(table) -> None:
    whole = mg.bootstrap(failing(table), table, n_boot=6, random_state=5, n_jobs=1)
    found = mg.bootstrap(failing(table, 6, 9), table, n_boot=6, random_state=5, n_jobs=1)
    assert [failure.resample for failure in found.failures] == [2, 5]
    assert {failure.message for failure in found.failures} == {"LinAlgError: singular matrix"}
    assert (found.n_boot, found.n_done, found.n_failed) == (6, 4, 2)
    np.testing.assert_array_equal(
        found.replicates.scales, whole.replicates.scales[[0, 1, 3, 4]], "the others are the same"
    )
    assert "4 of 6 resamples" in repr(found)
    assert "failed, 2 times: LinAlgError: singular matrix" in found.summary()


def test_when_all_fail_the_reason_is_given(table) -> None:
    with pytest.raises(mg.MixedGMError, match="all 3 resamples failed.*singular"):
        mg.bootstrap(failing(table, 4, 5, 6), table, n_boot=3, random_state=5, n_jobs=1)


# -- the model's options ---------------------------------------------------------------------------


def test_lam_is_kept_or_chosen_again(table) -> None:
    model = mg.MixedGraphicalModel(n_lams=10, lam_min_ratio=0.05).fit(table)
    fixed = mg.bootstrap(model, table, n_boot=3, random_state=2, n_jobs=1)
    assert set(fixed.replicates.lam) == {model.lam_}
    again = mg.bootstrap(model, table, n_boot=3, select="again", random_state=2, n_jobs=1)
    assert "lam again" in repr(again)
    for k, seed in enumerate(spawned(2, 3)):
        rows = np.random.default_rng(seed).integers(150, size=150)
        alone = mg.MixedGraphicalModel(n_lams=10, lam_min_ratio=0.05).fit(table.iloc[rows])
        assert again.replicates.lam[k] == pytest.approx(alone.lam_, rel=1e-6)
        assert np.count_nonzero(again.replicates.norms[k]) == len(alone.edges_)


def test_selection_by_folds_is_reproducible(table) -> None:
    model = mg.MixedGraphicalModel(select=mg.CV(3), n_lams=6, lam_min_ratio=0.1).fit(table)
    runs = [
        mg.bootstrap(model, table, n_boot=3, select="again", random_state=2, n_jobs=1)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0].replicates.values, runs[1].replicates.values)
    np.testing.assert_array_equal(runs[0].replicates.lam, runs[1].replicates.lam)


def test_options_and_transform_of_the_model_apply(table) -> None:
    options = {"transforms": "nonparanormal", "require": [("height", "smoker")]}
    options["forbid"] = [("height", "weight")]
    model = mg.MixedGraphicalModel(lam=0.3, penalty_weights="uniform", **options).fit(table)
    found = mg.bootstrap(model, table, n_boot=8, random_state=2, n_jobs=1)
    edges = found.selection()
    assert frozenset(("height", "weight")) not in pairs(edges)
    required = edges[[p == frozenset(("height", "smoker")) for p in pairs(edges)]]
    assert required["inclusion"].tolist() == [1.0]
    # Normal scores of the whole table: in a resample they are not standardised again.
    terms = found.replicates.scales[:, model.schema_.node_index("weight")]
    assert np.ptp(terms) > 0.01


def test_it_is_said_whether_weights_are_shrunken(found, table) -> None:
    assert not found.refit
    assert "have the edge; shrunken strengths" in found.summary()
    model = mg.MixedGraphicalModel(lam=LAM, refit=True).fit(table)
    refitted = mg.bootstrap(model, table, n_boot=3, random_state=5, n_jobs=1)
    assert refitted.refit
    assert "have the edge; strengths without penalty" in refitted.summary()
    both = [b.selection().set_index(["source", "target"])["mean"].abs() for b in (refitted, found)]
    assert both[0].iloc[0] > both[1].loc[both[0].index[0]]


def test_rows_with_missing_values_are_left_out_as_in_the_fit(table) -> None:
    holes = table.copy()
    holes.loc[[3, 77], "weight"] = np.nan
    groups = np.arange(150) // 5
    with pytest.warns(mg.TableWarning):
        model = mg.MixedGraphicalModel(lam=LAM, missing="drop").fit(holes)
    with pytest.warns(mg.TableWarning):
        found = mg.bootstrap(model, holes, n_boot=3, random_state=2, groups=groups, n_jobs=1)
    rest = holes.drop(index=[3, 77])
    clean = mg.MixedGraphicalModel(lam=LAM).fit(rest)
    other = mg.bootstrap(
        clean, rest, n_boot=3, random_state=2, groups=np.delete(groups, [3, 77]), n_jobs=1
    )
    np.testing.assert_array_equal(found.replicates.values, other.replicates.values)


@pytest.mark.filterwarnings("ignore::mixedgm.TableWarning")
def test_groups_belong_to_the_rows_that_remain_of_a_table_with_gaps(table) -> None:
    """Rows of weight zero and rows without a value are left out, and so are their labels."""
    weights, groups = np.ones(150), np.arange(150) // 5
    weights[[2, 40, 41]] = 0.0
    holes = table.astype(object)
    holes.loc[[3, 77]] = None
    holes.loc[[10, 90], "weight"] = None
    holes = holes.astype({"weight": float})
    rest = np.delete(np.arange(150), [2, 3, 40, 41, 77])

    def found(rows: np.ndarray) -> mg.Bootstrap:
        model = mg.MixedGraphicalModel(lam=LAM, missing="model")
        part, own = holes.iloc[rows], weights[rows]
        return mg.bootstrap(
            model.fit(part, sample_weight=own),
            part,
            n_boot=3,
            random_state=2,
            groups=groups[rows],
            sample_weight=own,
            n_jobs=1,
        )

    ours, theirs = (found(rows) for rows in (np.arange(150), rest))
    np.testing.assert_array_equal(ours.replicates.values, theirs.replicates.values)


def test_groups_by_name_or_by_array(table) -> None:
    town = np.array(["x", "y", "z", "w", "v"])[np.arange(150) // 30]
    model = mg.MixedGraphicalModel(lam=LAM).fit(table)
    named = mg.bootstrap(
        model, table.assign(town=town), n_boot=4, groups="town", random_state=2, n_jobs=1
    )
    given = mg.bootstrap(model, table, n_boot=4, groups=town, random_state=2, n_jobs=1)
    np.testing.assert_array_equal(named.replicates.values, given.replicates.values)
    for k, seed in enumerate(spawned(2, 4)):
        times = np.bincount(np.random.default_rng(seed).integers(5, size=5), minlength=5)
        alone = mg.MixedGraphicalModel(lam=LAM).fit(
            table.iloc[np.repeat(np.arange(150), times[np.arange(150) // 30])]
        )
        assert np.count_nonzero(given.replicates.norms[k]) == len(alone.edges_)


@pytest.mark.filterwarnings("ignore:sample_weight sums")
def test_weights_of_the_fit_are_needed_again(table) -> None:
    weights = np.arange(150) % 3 + 1.0
    model = mg.MixedGraphicalModel(lam=LAM).fit(table, sample_weight=weights)
    found = mg.bootstrap(model, table, n_boot=3, sample_weight=weights, random_state=2, n_jobs=1)
    assert found.n_done == 3
    with pytest.raises(mg.ParameterError, match=r"total weight of 300.*150.*sample_weight"):
        mg.bootstrap(model, table, n_boot=3, random_state=2, n_jobs=1)


@pytest.mark.parametrize("library", ["polars", "pyarrow", "codes"])
def test_frames_are_of_the_library_of_the_table(table, library) -> None:
    native = as_library(table, library)
    types = {1: "categorical", 3: "categorical", 4: "categorical"} if library == "codes" else None
    model = mg.MixedGraphicalModel(lam=LAM, types=types).fit(native)
    found = mg.bootstrap(model, native, n_boot=3, random_state=2, n_jobs=1)
    for frame in (
        found.intervals(),
        found.selection(),
        found.parameters(),
        found.centrality(),
        found.degenerate(),
    ):
        assert type(frame) is type(model.edges())


def test_a_model_from_a_file_serves_as_well(model, table, found, tmp_path) -> None:
    model.save(tmp_path / "model.mgm")
    again = mg.bootstrap(
        mg.load(tmp_path / "model.mgm"), table, n_boot=N_BOOT, random_state=5, n_jobs=1
    )
    np.testing.assert_array_equal(again.replicates.values, found.replicates.values)


def test_a_table_without_any_edge() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    model = mg.MixedGraphicalModel(lam=1.5).fit(table)
    found = mg.bootstrap(model, table, n_boot=3, random_state=0, n_jobs=1)
    assert len(found.selection()) == len(found.differences()) == 0
    assert (found.centrality()["upper"] == 0).all()
    assert "none in any resample" in found.summary()
    dropping = mg.bootstrap(model, table, 3, "case-dropping", random_state=0, n_jobs=1)
    assert np.isnan(dropping.cs_coefficient("total_strength"))


# -- messages --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"n_boot": 0}, "n_boot must be an integer from 1 to 10,000,000"),
        ({"n_boot": 2.0}, "n_boot must be"),
        ({"kind": "parametric"}, "kind must be 'nonparametric' or 'case-dropping'"),
        ({"select": "none"}, "select must be 'fixed' or 'again'"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"checkpoint": "folder", "random_state": None}, "checkpoint needs random_state"),
        ({"drop": [0.5]}, "drop is for kind='case-dropping'"),
        ({"kind": "case-dropping", "drop": [0.5, 1.0]}, r"drop must be a list of numbers in \(0"),
        ({"kind": "case-dropping", "drop": [0.999]}, "leave at least two of the 150"),
        ({"groups": "gruop"}, "'gruop', which is not a column; did you mean 'group'"),
        ({"groups": [1, 2, 3]}, "Got 3 labels for 150 rows"),
        ({"groups": 7}, "Got a value of type int"),
        ({"groups": np.zeros(150)}, "at least two different labels"),
        ({"groups": [None] * 150}, "150 missing labels"),
    ],
)
def test_wrong_options_are_named(model, table, options, text) -> None:
    call = {"n_boot": 2, "random_state": 0, "n_jobs": 1, **options}
    with pytest.raises(mg.MixedGMError, match=text):
        mg.bootstrap(model, table, **call)


def test_another_table_or_model_is_refused(model, table) -> None:
    with pytest.raises(mg.ParameterError, match="fitted to 150 rows and this table has 149"):
        mg.bootstrap(model, table.iloc[1:], n_boot=2, n_jobs=1)
    with pytest.raises(mg.ParameterError, match="does not give the model.*that the model was"):
        mg.bootstrap(model, people(150, seed=9), n_boot=2, n_jobs=1)
    with pytest.raises(mg.ParameterError, match="model must be a fitted MixedGraphicalModel"):
        mg.bootstrap(table, table, n_boot=2, n_jobs=1)
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        mg.bootstrap(mg.MixedGraphicalModel(), table, n_boot=2, n_jobs=1)


class FirstEdge:
    """Chooses the last lam of the path and one of its edges, as stability selection may do."""

    def choose(self, evidence) -> Choice:
        last = len(evidence.path) - 1
        return Choice(last, "first edge", {}, groups=evidence.path.points[last].groups[:1])


def test_edges_chosen_apart_from_lam_need_selection_again(table) -> None:
    model = mg.MixedGraphicalModel(select=FirstEdge(), lams=[0.3, 0.1]).fit(table)
    assert len(model.edges_) == 1
    with pytest.raises(mg.ParameterError, match="use select='again'"):
        mg.bootstrap(model, table, n_boot=2, random_state=0, n_jobs=1)
    again = mg.bootstrap(model, table, n_boot=2, select="again", random_state=0, n_jobs=1)
    assert (again.replicates.norms > 0).sum(axis=1).tolist() == [1, 1]


def test_methods_of_the_other_kind_say_what_to_use(found, dropping) -> None:
    names = ("intervals", "parameters", "selection", "differences", "centrality")
    for name in (*names, "plot_intervals", "plot_selection"):
        with pytest.raises(mg.ParameterError, match=r"kind='nonparametric'.*use stability\(\)"):
            getattr(dropping, name)()
    for name in ("stability", "cs_coefficient", "plot_stability"):
        with pytest.raises(mg.ParameterError, match=r"kind='case-dropping'.*use strengths\(\)"):
            getattr(found, name)()


def test_wrong_questions(found, dropping) -> None:
    with pytest.raises(mg.ParameterError, match="level must be a number in"):
        found.intervals(level=95)
    with pytest.raises(mg.ParameterError, match="did you mean 'height'"):
        found.difference(("hight", "weight"), ("group", "height"))
    with pytest.raises(mg.ParameterError, match="needs two edges"):
        found.difference(("height", "weight"), ("weight", "height"))
    with pytest.raises(mg.ParameterError, match="a pair of column names"):
        found.difference("height", "weight")
    with pytest.raises(mg.ParameterError, match="did you mean 'total_strength'"):
        dropping.cs_coefficient("strenght")
    with pytest.raises(mg.ParameterError, match="probability must be"):
        dropping.cs_coefficient(probability=95)
    with pytest.raises(mg.ParameterError, match="did you mean 'closeness'"):
        found.plot_centrality("closenes")


def test_memory_is_reported_and_bounded(model, table) -> None:
    small, large = (
        mg.bootstrap(model, table, n_boot=n, random_state=5, n_jobs=1) for n in (10, 40)
    )
    held = [
        sum(a.nbytes for a in vars(b.replicates).values() if isinstance(a, np.ndarray))
        for b in (small, large)
    ]
    assert held[0] <= small.nbytes
    assert held[1] <= large.nbytes <= 4.5 * small.nbytes
