"""The picture of a selection: what is drawn is what was scored, and the choice is marked."""

import numpy as np
import pytest

import mixedgm as mg
from tests.support.people import people

pytest.importorskip("matplotlib")

SELECT = {
    "ebic": mg.EBIC(),
    "holdout": mg.Holdout(),
    "cv": mg.CV(3),
    "stars": mg.StARS(n_subsamples=4),
    "stability": mg.StabilitySelection(n_subsamples=4),
}


@pytest.fixture(scope="module")
def models():
    return {
        name: mg.MixedGraphicalModel(select=select, n_lams=15, random_state=0, n_jobs=1).fit(
            people(150, seed=2)
        )
        for name, select in SELECT.items()
    }


@pytest.fixture
def axes():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield plt.figure().add_subplot()
    plt.close("all")


@pytest.mark.parametrize("name", SELECT)
def test_the_curve_is_the_score_and_the_choice_is_marked(models, axes, name):
    model = models[name]
    ax = model.plot_selection(ax=axes)
    assert ax is axes
    curve = ax.get_lines()[0]
    np.testing.assert_array_equal(curve.get_xdata(), model.path_.lams)
    np.testing.assert_array_equal(curve.get_ydata(), model.fitted_.scores[name])
    mark = ax.get_lines()[-1]
    at = model.path_.lams.tolist().index(model.lam_)
    assert mark.get_xdata() == [model.lam_]
    assert mark.get_ydata() == [model.fitted_.scores[name][at]]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    chosen = f"chosen: lam = {model.lam_:.3g}, {len(model.edges_)} edges"
    assert chosen in legend
    assert ax.get_title(loc="left") == model.fitted_.report.criterion
    assert ax.get_xlim()[0] > ax.get_xlim()[1]


def test_cross_validation_has_error_bars_and_its_line(models, axes):
    model = models["cv"]
    ax = model.plot_selection(ax=axes)
    (bars,) = [c for c in ax.collections if hasattr(c, "get_segments")]
    heights = [segment[1, 1] - segment[0, 1] for segment in bars.get_segments()]
    np.testing.assert_allclose(heights, 2 * model.fitted_.scores["cv_se"], rtol=1e-9)
    mean, error = model.fitted_.scores["cv"], model.fitted_.scores["cv_se"]
    best = int(np.argmin(mean))
    lines = [line.get_ydata() for line in ax.get_lines() if line.get_label().startswith("lowest")]
    np.testing.assert_allclose(lines[0], mean[best] + error[best])


@pytest.mark.parametrize("name", ["stars", "stability"])
def test_limits_are_drawn(models, axes, name):
    ax = models[name].plot_selection(ax=axes)
    (limit,) = [line for line in ax.get_lines() if line.get_label() == "limit"]
    assert set(limit.get_ydata()) == {0.05 if name == "stars" else 1.0}


def test_the_legend_can_be_left_out(models, axes):
    assert models["ebic"].plot_selection(ax=axes, legend=False).get_legend() is None


def test_scores_that_are_not_there_leave_a_gap(axes):
    X = np.random.default_rng(0).normal(size=(10, 8))
    model = mg.MixedGraphicalModel(lams=[0.9, 0.5, 0.01]).fit(X)
    assert np.isinf(model.fitted_.scores["ebic"][-1])
    ax = model.plot_selection(ax=axes)
    assert np.isnan(ax.get_lines()[0].get_ydata()[-1])


def test_a_given_lam_has_nothing_to_draw():
    model = mg.MixedGraphicalModel(lam=0.3).fit(people())
    with pytest.raises(mg.ParameterError, match="no selection scores; fit it without lam"):
        model.plot_selection()
