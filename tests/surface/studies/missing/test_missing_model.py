"""Fits with `missing="model"` through the public names: every kind, loss, criterion and study."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import mixedgm as mg
from tests.support.patients import TYPES, patients

pytestmark = [
    pytest.mark.filterwarnings("ignore::mixedgm.SamplingWarning"),
    pytest.mark.filterwarnings("ignore::mixedgm.TableWarning"),
    pytest.mark.filterwarnings("ignore::mixedgm.SelectionWarning"),
]


def mixed(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """Two numbers and three columns with levels, joined in a chain x - y - a - b - c."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = 0.8 * x + rng.normal(size=n)
    a = (1.2 * y + rng.logistic(size=n) > 0).astype(int)
    b = np.where(rng.random(n) < 0.75, a, rng.integers(0, 3, n))
    c = (1.5 * (b > 0) + rng.logistic(size=n) > 0.7).astype(int)
    levels = {"a": a, "b": b, "c": c}
    return pd.DataFrame({"x": x, "y": y} | {k: pd.Categorical(v) for k, v in levels.items()})


def punched(table: pd.DataFrame, share: float, seed: int = 1, columns=None) -> pd.DataFrame:
    """Without some cells, none of the rows empty."""
    holes = np.random.default_rng(seed).random(table.shape) < share
    holes[holes.all(axis=1), 0] = False
    if columns is not None:
        holes &= np.isin(table.columns, columns)
    return table.mask(holes)


def ends(model) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in model.edges()[["source", "target"]].values.tolist()}


CHAIN = {frozenset(pair) for pair in (("x", "y"), ("y", "a"), ("a", "b"), ("b", "c"))}


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_the_chain_is_found(share):
    table = punched(mixed(1500), share)
    model = mg.MixedGraphicalModel(missing="model").fit(table)
    assert ends(model) >= CHAIN - ({frozenset(("b", "c"))} if share == 0.5 else set())
    assert len(ends(model) - CHAIN) <= 1
    report = model.fitted_.report
    assert report.solved
    assert model.kkt_ <= 1e-5
    assert report.n_rows == len(table)
    assert report.total_weight == len(table)
    assert report.completion.n_cells == int(table.isna().to_numpy().sum())
    assert report.completion.n_rows == int(table.isna().any(axis=1).sum())
    assert report.completion.n_rounds >= 1


OPTIONS = {
    "given lam": {"lam": 0.1},
    "refit": {"lam": 0.1, "refit": True},
    "ebic": {"select": "ebic"},
    "bic": {"select": "bic"},
    "fdr": {"select": "fdr"},
    "adaptive": {"select": "ebic", "penalty_weights": "adaptive"},
    "cv": {"select": mg.CV(3), "random_state": 0, "n_lams": 20},
    "hold-out": {"select": "holdout", "random_state": 0, "n_lams": 20},
    "stars": {
        "select": mg.StARS(beta=0.2, n_subsamples=10),
        "random_state": 0,
        "n_lams": 20,
    },
    "stability": {"select": mg.StabilitySelection(n_subsamples=10), "random_state": 0},
    "nodewise": {"loss": "nodewise", "lam": 0.1},
    "nodewise ebic": {"loss": "nodewise", "select": "ebic"},
    "per node": {"loss": "nodewise", "select": mg.EBIC(per_node=True)},
    "likelihood": {"loss": "likelihood", "lam": 0.1},
    "likelihood ebic": {"loss": "likelihood", "select": "ebic"},
    "factors": {"lam": 0.1, "require": [("x", "c")], "forbid": [("x", "y")]},
    "transform": {"lam": 0.1, "transforms": "nonparanormal"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_option(options):
    """It converges, the same twice, and finds most of the chain."""
    table = punched(mixed(500), 0.15)
    first = mg.MixedGraphicalModel(missing="model", **options).fit(table)
    assert first.fitted_.report.solved
    assert first.kkt_ <= 1e-5
    if "random_state" in options or options == OPTIONS["given lam"]:
        second = mg.MixedGraphicalModel(missing="model", **options).fit(table)
        np.testing.assert_array_equal(first.params_.coef, second.params_.coef)
    wanted = CHAIN - {frozenset(pair) for pair in options.get("forbid", ())}
    assert len(ends(first) & wanted) >= 3
    if "forbid" in options:
        assert frozenset(("x", "y")) not in ends(first)
        assert frozenset(("x", "c")) in ends(first)


def test_every_kind():
    """All five kinds with gaps in all of them; hurdles by chains."""
    table = punched(patients(300), 0.1)
    model = mg.MixedGraphicalModel(types=TYPES, missing="model", lam=0.15).fit(table)
    assert model.fitted_.report.completion.drawn
    whole = mg.MixedGraphicalModel(types=TYPES, lam=0.15).fit(patients(300))
    share = len(ends(model) & ends(whole)) / max(len(ends(whole)), 1)
    assert share >= 0.7
    assert np.isfinite(model.params_.coef).all()


def test_covariates_may_stand_beside_gaps_but_not_have_them():
    table = punched(mixed(), 0.2, columns=["y", "a", "b", "c"])
    model = mg.MixedGraphicalModel(missing="model", covariates=["x"], lam=0.1).fit(table)
    assert frozenset(("x", "y")) in ends(model)
    with pytest.raises(mg.TableError, match=r"covariate, and \d+ rows lack it.*leave it out"):
        mg.MixedGraphicalModel(missing="model", covariates=["y"]).fit(table)


def test_weights_count_rows():
    table = punched(mixed(200), 0.2)
    counts = np.random.default_rng(3).integers(1, 3, len(table))
    several = table.loc[np.repeat(table.index, counts)].reset_index(drop=True)
    options = {"missing": "model", "lam": 0.1, "tol": 1e-8}
    weighted = mg.MixedGraphicalModel(**options).fit(table, sample_weight=counts)
    repeated = mg.MixedGraphicalModel(**options).fit(several)
    assert weighted.fitted_.report.total_weight == repeated.fitted_.report.total_weight
    # Points for two missing numbers differ from row to row.
    np.testing.assert_allclose(weighted.params_.coef, repeated.params_.coef, atol=5e-3)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_other_libraries(library):
    frames = pytest.importorskip(library)
    pandas = punched(mixed(300), 0.2).astype({"a": str, "b": str, "c": str}).replace("nan", None)
    table = frames.from_pandas(pandas) if library == "polars" else frames.Table.from_pandas(pandas)
    model = mg.MixedGraphicalModel(missing="model", lam=0.1).fit(table)
    assert frozenset(("x", "y")) in ends_of(model)


def ends_of(model) -> set[frozenset[str]]:
    return {frozenset((edge.source, edge.target)) for edge in model.edges_}


def test_no_row_is_complete():
    table = mixed()
    lacking = np.arange(len(table)) % table.shape[1]
    for at, name in enumerate(table.columns):
        table.loc[lacking == at, name] = None
    assert table.isna().any(axis=1).all()
    model = mg.MixedGraphicalModel(missing="model").fit(table)
    assert ends(model) >= CHAIN - {frozenset(("b", "c"))}


@pytest.mark.filterwarnings("default::mixedgm.TableWarning")
def test_findings():
    table = mixed(200)
    table.loc[:99, "x"] = np.nan
    table.loc[100:, "c"] = None
    with pytest.warns(mg.TableWarning, match="no row has both 'x' and 'c'"):
        mg.MixedGraphicalModel(missing="model", lam=0.3).fit(table)
    with pytest.warns(mg.TableWarning, match=r"5\d% of all values are missing"):
        mg.MixedGraphicalModel(missing="model", lam=0.3).fit(punched(mixed(300), 0.55))
    table = punched(mixed(100), 0.1)
    table.loc[3] = None
    with pytest.warns(mg.TableWarning, match="1 row left out: every value is missing"):
        model = mg.MixedGraphicalModel(missing="model", lam=0.3).fit(table)
    assert model.fitted_.report.n_rows == 99
    table = mixed(100)
    table.loc[5:, "y"] = np.nan
    with pytest.warns(mg.TableWarning, match="column 'y': only 5 values are known, in 100 rows"):
        mg.MixedGraphicalModel(missing="model", lam=0.3).fit(table)


def test_the_error_names_both_remedies():
    table = punched(mixed(100), 0.1)
    n_complete = int(table.notna().all(axis=1).sum())
    wanted = rf'missing="model" uses all 100 rows, missing="drop" the {n_complete} complete ones'
    with pytest.raises(mg.TableError, match=wanted):
        mg.MixedGraphicalModel().fit(table)


@pytest.mark.parametrize(
    "options", [{"moderators": ["a"]}, {"loss": "likelihood-mc", "random_state": 0}]
)
def test_what_is_not_offered_is_refused(options):
    with pytest.raises(mg.NotYetError, match="missing='model' is not available yet"):
        mg.MixedGraphicalModel(missing="model", **options).fit(mixed(50))
    with pytest.raises(mg.NotYetError, match="path_ is at completions"):
        mg.fit_path(punched(mixed(50), 0.1), missing="model")


def test_progress(capsys):
    mg.MixedGraphicalModel(missing="model", lam=0.1, verbose=1).fit(punched(mixed(300), 0.3))
    assert "rounds" in capsys.readouterr().err


def test_ctrl_c_keeps_the_last_round():
    """The estimate of the rounds so far, which is not called converged."""
    table = punched(mixed(400), 0.4)

    class Interrupted(mg.ProximalNewton):
        def step(self, *args, **kwargs):
            calls.append(1)
            if len(calls) == limit:
                raise KeyboardInterrupt
            return super().step(*args, **kwargs)

    options = {"missing": "model", "lam": 0.05, "tol": 1e-9}
    calls, limit = [], 10**9
    mg.MixedGraphicalModel(solver=Interrupted(), **options).fit(table)
    calls, limit = [], len(calls) - 3
    with pytest.warns(ConvergenceWarning, match="before the estimate and the rows"):
        model = mg.MixedGraphicalModel(solver=Interrupted(), **options).fit(table)
    assert not model.fitted_.report.converged
    assert 1e-9 < model.kkt_ < 0.01
    assert ends(model) >= CHAIN - {frozenset(("b", "c"))}


def test_save_and_load(tmp_path):
    table = punched(mixed(300), 0.2)
    model = mg.MixedGraphicalModel(missing="model", lam=0.1).fit(table)
    model.save(tmp_path / "gaps.mgm")
    again = mg.load(tmp_path / "gaps.mgm")
    assert again.fitted_.report.completion == model.fitted_.report.completion
    assert again.missing == "model"


# -- studies ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    table = punched(mixed(600), 0.15)
    return mg.MixedGraphicalModel(missing="model").fit(table), table


def test_tests_of_edges(fitted):
    model, table = fitted
    tests = mg.edge_tests(model, table, n_jobs=1).edges().set_index(["source", "target"])
    whole = mixed(600)
    complete = mg.edge_tests(mg.MixedGraphicalModel().fit(whole), whole, covariance="rows")
    complete = complete.edges().set_index(["source", "target"])
    chain = [tuple(sorted(pair, key=list(whole.columns).index)) for pair in CHAIN]
    assert (tests.loc[chain, "p"] < 1e-3).all()
    assert tests[["strength", "lower", "upper"]].notna().all(axis=None)
    assert list(model.edges().columns[3:8]) == [
        *("strength", "sign", "probability", "partial_correlation", "norm"),
    ]
    loaded = copy.copy(model)
    loaded.fitted_ = replace(model.fitted_, rows=None, known_strengths=model.fitted_.strengths)
    again = mg.edge_tests(loaded, table, n_jobs=1).edges().set_index(["source", "target"])
    pd.testing.assert_frame_equal(again, tests)
    # What gaps take shows in the standard errors of one-parameter edges.
    one = [pair for pair in complete.index if complete.loc[pair, "df"] == 1]
    ratio = tests.loc[one, "se"] / complete.loc[one, "se"]
    assert 1.0 < ratio.mean() < 1.6
    with pytest.raises(mg.NotYetError, match="covariance='rows'"):
        mg.edge_tests(model, table, covariance="model")


def test_strengths_without_penalty_are_corrected_for_the_rows_that_have_both_columns():
    table = punched(mixed(600), 0.4)
    inside = mg.MixedGraphicalModel(missing="model", lam=0.0, refit=False).fit(table).fitted_
    free = inside.strengths_from(inside.rows, np.inf)
    place = {
        edge: at for at, edge in enumerate((e.source, e.target) for e in inside._plain_edges())
    }
    both = int(table[["x", "y"]].notna().all(axis=1).sum())
    nats = -0.5 * np.log1p(-(free[place["x", "y"]] ** 2)) - 0.5 / both
    expected = np.sqrt(1.0 - np.exp(-2.0 * nats))
    assert inside.strengths[place["x", "y"]] == pytest.approx(expected, abs=1e-9)


def test_bootstrap(fitted):
    model, table = fitted
    found = [mg.bootstrap(model, table, 6, random_state=0, n_jobs=n) for n in (1, 2)]
    first, second = (each.intervals() for each in found)
    pd.testing.assert_frame_equal(first, second)
    chain = found[0].selection().set_index(["source", "target"])
    assert chain.loc[("x", "y"), "inclusion"] == 1.0
    again = mg.bootstrap(model, table, 2, random_state=0, n_jobs=1, select="again")
    assert len(again.selection()) > 0


def test_separate_regressions_have_the_estimates_and_tests_of_pairs_that_other_losses_have():
    table = punched(mixed(150)[["x", "y", "a"]], 0.15)
    options = {"missing": "model", "lam": 0.05, "n_jobs": 1}
    joint, separate = (
        mg.MixedGraphicalModel(loss=loss, **options).fit(table)
        for loss in ("pseudolikelihood", "nodewise")
    )
    tests = [mg.edge_tests(each, table).edges() for each in (joint, separate)]
    resampled = [
        mg.bootstrap(each, table, n_boot=3, random_state=0, n_jobs=1) for each in (joint, separate)
    ]
    assert resampled[1].n_failed == 0
    intervals = [each.intervals() for each in resampled]
    for (one, other), columns in ((tests, ["statistic", "p"]), (intervals, ["estimate", "se"])):
        assert other["source"].tolist() == one["source"].tolist()
        np.testing.assert_allclose(other[columns], one[columns], rtol=0.02, atol=1e-3)


def test_check(fitted):
    model, table = fitted
    checked = model.check_fit(table, n_sim=40, random_state=0, n_jobs=1)
    assert checked.flagged == ()
    wrong = mg.MixedGraphicalModel(missing="model", lam=0.1, forbid=[("x", "y")]).fit(table)
    assert ("x", "y") in wrong.check_fit(table, n_sim=40, random_state=0, n_jobs=1).flagged


def test_compare():
    first, second = mixed(500, seed=5), mixed(500, seed=6)
    second["y"] = np.random.default_rng(0).permutation(second["y"])  # x - y and y - a are gone
    table = pd.concat([first, second], ignore_index=True)
    table = punched(table, 0.15).assign(group=["u"] * 500 + ["v"] * 500)
    found = mg.compare(table, "group", missing="model", random_state=0, n_jobs=1)
    assert found.test == "differences"
    p = found.edges().set_index(["source", "target"])["p_bh"]
    assert p[("x", "y")] < 0.01
    assert p[("a", "b")] > 0.05
    with pytest.raises(mg.NotYetError, match="cannot be permuted yet"):
        mg.compare(table, "group", missing="model", test="permutation", n_perm=5, random_state=0)


def test_scores_use_observed_cells_only(fitted):
    model, table = fitted
    rows = table[table.notna().all(axis=1)]
    without = rows.assign(c=pd.Categorical([None] * len(rows), rows["c"].cat.categories))
    before, after = (pd.Series(model.node_scores(each)) for each in (rows, without))
    assert np.isnan(after["c"])
    # x has no edge to c; the score of a row is minus the sum of losses of its observed cells.
    assert after["x"] == pytest.approx(before["x"], abs=1e-12)
    assert model.score(without) == pytest.approx(-after.drop("c").sum(), abs=1e-9)
    assert model.predictability(table)["accuracy"].notna().sum() == 3
