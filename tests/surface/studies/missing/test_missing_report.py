"""missing_report: counts, patterns, information and hints of tables whose gaps are known."""

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.support.people import people


def gaussian(n=4_000, seed=0):
    """Two correlated columns and one that is independent of both."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x, "y": 0.8 * x + rng.normal(size=n), "z": rng.normal(size=n)})


def small():
    """Six patterns, counted by hand."""
    frame = people(60)[["height", "weight", "group", "smoker"]].astype({"smoker": object})
    frame.loc[:9, "height"] = np.nan
    frame.loc[5:14, "weight"] = np.nan
    frame.loc[14:15, "group"] = None
    return frame


def test_counts():
    frame = small()
    report = (
        mg.MixedGraphicalModel(lam=0.2).fit(people(60)[list(frame.columns)]).missing_report(frame)
    )
    columns = report.columns().set_index("column")
    assert columns.index.tolist() == ["height", "weight", "group", "smoker"]
    assert columns["missing"].tolist() == [10, 10, 2, 0]
    assert columns["share"].tolist() == pytest.approx([10 / 60, 10 / 60, 2 / 60, 0.0])
    assert columns["only_gap"].tolist() == [5, 4, 1, 0]
    assert columns["patterns"].tolist() == [2, 3, 2, 0]
    patterns = report.patterns()
    assert patterns["rows"].tolist() == [44, 5, 5, 4, 1, 1]
    assert patterns["n_missing"].sum() == 0 + 1 + 2 + 1 + 1 + 2
    assert set(patterns["missing"]) == {
        "",
        "height",
        "height, weight",
        "weight",
        "group",
        "weight, group",
    }
    assert (report.n_cells, report.n_incomplete, report.n_rows) == (22, 16, 60)
    both = report.edges().set_index(["source", "target"])["rows"]
    assert both["height", "weight"] == 45


def test_weights_are_frequencies():
    frame, weight = small(), np.arange(60) % 3
    model = mg.MixedGraphicalModel(lam=0.2, missing="model").fit(frame)
    weighted = model.missing_report(frame, weight)
    repeated = model.missing_report(frame.loc[frame.index.repeat(weight)])
    for name in ("columns", "patterns"):
        assert getattr(weighted, name)().equals(getattr(repeated, name)())
    np.testing.assert_allclose(weighted.hints(1.0)["p"], repeated.hints(1.0)["p"])


def test_information_of_a_gaussian_pair_is_that_of_its_complete_rows():
    """y is missing in 30 % of the rows, regardless: these rows say nothing about x - y."""
    frame = gaussian()
    frame.loc[np.random.default_rng(1).random(len(frame)) < 0.3, "y"] = np.nan
    model = mg.MixedGraphicalModel(lam=0.001, missing="model", refit=True).fit(frame)
    edges = model.missing_report(frame).edges().set_index(["source", "target"])
    share = frame["y"].isna().mean()
    assert edges.loc[("x", "y"), "missing_information"] == pytest.approx(share, abs=0.06)
    assert edges.loc[("y", "z"), "missing_information"] == pytest.approx(share, abs=0.06)
    assert edges.loc[("x", "z"), "missing_information"] < 0.1
    assert edges["missing_information"].is_monotonic_decreasing
    assert edges.loc[("x", "y"), "edge"]


def test_hints_find_what_gaps_go_with():
    rng = np.random.default_rng(3)
    frame = people(1_000)[["height", "weight", "group", "smoker"]].astype({"smoker": object})
    rank = frame["height"].rank().to_numpy() / len(frame)
    frame.loc[rng.random(1_000) < 0.6 * (rank > 0.7), "weight"] = np.nan
    frame.loc[rng.random(1_000) < 0.5 * (frame["group"] == "b"), "smoker"] = None
    frame["luck"] = rng.normal(size=1_000)
    frame.loc[rng.random(1_000) < 0.5 * (abs(rank - 0.5) > 0.35), "luck"] = np.nan
    model = mg.MixedGraphicalModel(lam=0.2, missing="model").fit(frame)
    report = model.missing_report(frame)
    hints = report.hints().set_index(["column", "predictor"])
    assert hints.loc[("weight", "height"), "more_often"] == "high values"
    assert hints.loc[("smoker", "group"), "more_often"] == "b"
    assert hints.loc[("luck", "height"), "more_often"] == "extreme values"
    assert (hints["p_bh"] <= 0.05).all()
    assert hints["correlation"].is_monotonic_decreasing
    assert "not missing completely at random" in " ".join(str(report).split())
    strict = model.missing_report(frame, alpha=1e-12).hints()
    assert len(strict) < len(hints)
    every = report.hints(1.0)
    assert len(every) == 3 * 4
    assert not ((every["column"] == every["predictor"]).any())


@pytest.mark.statistical
def test_gaps_at_random_give_few_hints():
    """200 tables, gaps regardless of all values: p-values are uniform, and few tables have a hint.

    The share below 0.05 is within five standard errors of 2,400 tests that are nearly independent.
    """
    p, with_hints = [], 0
    truth = mg.MixedGraphicalModel(lam=0.2).fit(
        people(300)[["height", "weight", "group", "colour"]]
    )
    for seed in range(200):
        frame = people(300, seed=seed)[["height", "weight", "group", "colour"]]
        gaps = np.random.default_rng(seed).random(frame.shape) < 0.15
        report = truth.missing_report(frame.mask(gaps))
        p += report.hints(1.0)["p"].tolist()
        with_hints += len(report.hints()) > 0
    share = np.mean(np.array(p) <= 0.05)
    assert abs(share - 0.05) < 5 * np.sqrt(0.05 * 0.95 / len(p))
    assert with_hints <= 200 * 0.05 + 5 * np.sqrt(200 * 0.05 * 0.95)


def test_a_table_without_gaps():
    frame = people(80)
    report = mg.MixedGraphicalModel(lam=0.2).fit(frame).missing_report(frame)
    assert str(report) == "No cell is missing: 80 rows, 5 columns."
    assert "No cell is missing" in report._repr_html_()
    assert report.hints().empty
    assert (report.edges()["missing_information"] == 0.0).all()
    assert report.patterns()["rows"].tolist() == [80]
    assert report.notes == ()


def test_text_says_what_is_assumed():
    frame = small()
    modelled = mg.MixedGraphicalModel(lam=0.2, missing="model").fit(frame)
    report = modelled.missing_report(frame)
    text = " ".join(str(report).split())
    assert text.startswith("Missing: 22 of 240 cells (9.2%), in 16 of 60 rows (26.7%)")
    assert "(missing at random)" in text
    assert "because of their own values" in report.assumption
    assert report.summary() == str(report)
    for part in ("height, weight", "because of their own values"):
        assert part in report._repr_html_()
    with pytest.warns(mg.TableWarning, match="dropped"):
        dropped = mg.MixedGraphicalModel(lam=0.2, missing="drop").fit(frame)
    assert "missing='model' uses every row" in dropped.missing_report(frame).assumption


def test_names_from_the_data_are_never_markup():
    name = "<b>$x_1$</b>"
    frame = small().rename(columns={"height": name})
    report = mg.MixedGraphicalModel(lam=0.2, missing="model").fit(frame).missing_report(frame)
    assert "<b>" not in report._repr_html_()
    ax = report.plot()
    assert r"<b>\$x_1\$</b>" in [each.get_text() for each in ax.get_xticklabels()]
    ax.figure.canvas.draw()


def test_a_pair_that_is_never_observed_together():
    frame = gaussian(300)
    frame.loc[::2, "y"] = np.nan
    frame.loc[1::2, "z"] = np.nan
    with pytest.warns(mg.TableWarning, match="no row has both 'y' and 'z'"):
        model = mg.MixedGraphicalModel(lam=0.1, missing="model").fit(frame)
    report = model.missing_report(frame)
    assert any("never observed together (y - z)" in note for note in report.notes)
    edges = report.edges().set_index(["source", "target"])
    assert edges.loc[("y", "z"), "rows"] == 0
    assert edges.loc[("y", "z"), "missing_information"] > 0.9


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"moderators": ["group"]}, "edges vary with moderators"),
        ({"covariates": ["group"]}, "covariates are missing"),
    ],
)
def test_why_information_is_not_known(options, why):
    frame = small()
    with pytest.warns(mg.TableWarning, match="dropped"):
        model = mg.MixedGraphicalModel(lam=0.5, missing="drop", **options).fit(frame)
    report = model.missing_report(frame)
    assert report.edges()["missing_information"].isna().all()
    assert any(why in note for note in report.notes)
    assert why in " ".join(str(report).split())


@pytest.mark.parametrize("loss", ["nodewise", "likelihood", "pseudolikelihood"])
def test_every_loss_knows_what_is_missing(loss):
    frame = gaussian(500)
    frame.loc[:149, "y"] = np.nan
    model = mg.MixedGraphicalModel(lam=0.05, missing="model", loss=loss).fit(frame)
    edges = model.missing_report(frame).edges().set_index(["source", "target"])
    assert edges.loc[("x", "y"), "missing_information"] == pytest.approx(0.3, abs=0.12)


def test_frames_are_those_of_the_training_table():
    import polars as pl

    frame = pl.from_pandas(small())
    report = mg.MixedGraphicalModel(lam=0.2, missing="model").fit(frame).missing_report(frame)
    for name in ("columns", "patterns", "edges", "hints"):
        assert isinstance(getattr(report, name)(), pl.DataFrame)


def test_the_picture_has_the_most_frequent_patterns():
    frame = small()
    report = mg.MixedGraphicalModel(lam=0.2, missing="model").fit(frame).missing_report(frame)
    ax = report.plot(n_patterns=3)
    assert [each.get_text() for each in ax.get_xticklabels()] == list(frame.columns[:3])
    assert ax.images[0].get_array().shape == (3, 3)
    assert "1 column without missing cells not drawn" in ax.get_xlabel()
    assert "3 of 6 patterns" in ax.get_xlabel()
    rows, shares = ax.child_axes
    assert [bar.get_width() for bar in rows.patches] == [44.0, 5.0, 5.0]
    assert [round(bar.get_height(), 3) for bar in shares.patches] == [0.167, 0.167, 0.033]
    with pytest.raises(mg.ParameterError, match="n_patterns must be an integer"):
        report.plot(n_patterns=0)


def test_bad_parameters_are_named():
    frame = small()
    model = mg.MixedGraphicalModel(lam=0.2, missing="model").fit(frame)
    with pytest.raises(mg.ParameterError, match=r"alpha must be a number in \[0, 1\]"):
        model.missing_report(frame, alpha=2)
    with pytest.raises(mg.ParameterError, match=r"alpha must be a number in \[0, 1\]"):
        model.missing_report(frame).hints(-1)
    with pytest.raises(mg.TableError, match="the model was fitted with it"):
        model.missing_report(frame.drop(columns="weight"))
