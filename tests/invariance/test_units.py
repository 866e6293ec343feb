"""Units of columns: estimates follow them, unless weights are uniform, and choices ignore them."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.reference import plain
from tests.support.problems import draw, estimate

TABLES = {
    "mixed": draw(61, 80, 3, (2, 4)),
    "mixed-weighted": draw(62, 80, 3, (2, 4), weighted=True),
    "continuous": draw(63, 50, 4, ()),
}
SHIFT = np.array([100.0, -3.0, 0.0, 1e4])
SLOPE = np.array([0.01, -5.0, -1.0, 250.0])


def moved(table):
    """Every continuous column as a + b x, some with negative b."""
    p = table.n_gaussian
    return replace(table, X=SHIFT[:p] + SLOPE[:p] * table.X), SHIFT[:p], SLOPE[:p]


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param]


@pytest.mark.parametrize("weights", ["calibrated", "adaptive"])
def test_the_estimate_follows_the_units(table, weights):
    other, shift, slope = moved(table)
    here, edges, value, lam = estimate(table, 0.15, weights=weights)
    there, other_edges, other_value, other_lam = estimate(other, 0.15, weights=weights)
    assert other_lam == pytest.approx(lam, rel=1e-9)
    assert other_edges == edges
    assert len(edges) >= 2
    assert other_value == pytest.approx(value + np.log(np.abs(slope)).sum(), abs=1e-8)
    precision = there.precision * np.outer(slope, slope)
    np.testing.assert_allclose(precision, here.precision, atol=1e-6)
    np.testing.assert_allclose(
        there.category_shift * slope[:, None], here.category_shift, atol=1e-6
    )
    np.testing.assert_allclose(there.cat_interaction, here.cat_interaction, atol=1e-6)
    bias = slope * (there.cont_bias - there.precision @ shift)
    np.testing.assert_allclose(bias, here.cont_bias, atol=1e-5)


def test_a_negative_unit_turns_the_sign_of_edges(table):
    flipped = replace(table, X=table.X * np.array([-1.0] + [1.0] * (table.n_gaussian - 1)))
    here, there = estimate(table, 0.15)[0], estimate(flipped, 0.15)[0]
    np.testing.assert_allclose(there.precision[0, 1:], -here.precision[0, 1:], atol=1e-6)
    np.testing.assert_allclose(there.precision[1:, 1:], here.precision[1:, 1:], atol=1e-6)
    np.testing.assert_allclose(there.category_shift[0], -here.category_shift[0], atol=1e-6)
    assert np.abs(np.r_[here.precision[0, 1:], here.category_shift[0]]).max() > 1e-2


def test_conditional_distributions_do_not_depend_on_the_units(table):
    other, _, slope = moved(table)
    here, there = estimate(table, 0.15)[0], estimate(other, 0.15)[0]
    for i in range(3):
        x, y, moved_x = table.X[i], table.Y[i], other.X[i]
        for r in range(len(table.n_levels)):
            np.testing.assert_allclose(
                plain.conditional_probabilities(there, r, moved_x, y),
                plain.conditional_probabilities(here, r, x, y),
                atol=1e-6,
            )
        residual = moved_x[0] - plain.conditional_mean(there, 0, moved_x, y)
        expected = slope[0] * (x[0] - plain.conditional_mean(here, 0, x, y))
        assert residual == pytest.approx(expected, abs=1e-6)


def test_uniform_estimate_does_not_depend_on_the_origin(table):
    other = replace(table, X=table.X + SHIFT[: table.n_gaussian])
    here, edges, value, lam = estimate(table, 0.2, weights="uniform")
    there, other_edges, other_value, other_lam = estimate(other, 0.2, weights="uniform")
    assert (other_lam, other_value) == pytest.approx((lam, value), abs=1e-8)
    assert other_edges == edges
    np.testing.assert_allclose(there.precision, here.precision, atol=1e-6)


def test_uniform_estimate_depends_on_the_scale(table):
    """Weight 1 in the column's own units: a column in small units has large parameters."""
    other = replace(table, X=table.X * np.array([0.02] + [1.0] * (table.n_gaussian - 1)))
    weights = plain.edge_weights("uniform", other.X, other.Y, other.n_levels)
    rows = other.row_weights
    expected = plain.lam_max(other.X, other.Y, other.n_levels, weights, rows)
    here, there = table.task(weights="uniform"), other.task(weights="uniform")
    assert there.lam_max == pytest.approx(expected, rel=1e-9)
    lam = 0.3 * here.lam_max
    before = estimate(table, lam / here.lam_max, weights="uniform")[1]
    after = estimate(other, lam / there.lam_max, weights="uniform")[1]
    assert any(0 in edge for edge in before)
    assert not any(0 in edge for edge in after)


def test_calibrated_path_statistics_do_not_depend_on_the_units(table):
    other, _, _ = moved(table)
    here, there = table.task(), other.task()
    np.testing.assert_allclose(there.penalty.weights, here.penalty.weights, rtol=1e-9)
    np.testing.assert_allclose(there.yardstick, here.yardstick, rtol=1e-9)


# -- what criteria choose ------------------------------------------------------------------------

UNITS = {"a": 1e3, "b": 1e-3, "h": 250.0, "k": 1e-3}
KINDS = {
    "a": "continuous",
    "b": "continuous",
    "h": "hurdle",
    "k": "hurdle",
    "g": "categorical",
    "o": "ordinal",
    "c": "count",
}


def every_kind(n_rows=90):
    """A column of every kind, most of them related to one number that is not in the table."""
    rng = np.random.default_rng(5)
    z, noise = rng.normal(size=n_rows), rng.normal(size=(6, n_rows))
    a, there = z + noise[0], rng.random((2, n_rows)) < [1.0 / (1.0 + np.exp(-z)), 0.5 + 0.0 * z]
    return pd.DataFrame(
        {
            "a": a,
            "b": 0.8 * a + noise[1],
            "h": np.where(there[0], np.exp(0.5 * z + 0.6 * noise[2]), 0.0),
            "k": np.where(there[1], 2.0 + 0.6 * noise[1] + noise[3], 0.0),
            "g": np.array(["u", "v", "w"])[np.clip((z + noise[4] + 1.5).astype(int), 0, 2)],
            "o": np.clip(np.round(1.5 + a + 0.5 * noise[5]), 0, 3).astype(int),
            "c": rng.poisson(np.exp(0.4 * z)),
        }
    )


def with_gaps(frame):
    """The table with gaps in some numbers, more of them in the first half of the rows."""
    rng, frame = np.random.default_rng(6), frame.copy()
    for name in frame.columns.intersection(["a", "h"]):
        share = np.where(np.arange(len(frame)) < 0.5 * len(frame), 0.3, 0.05)
        frame.loc[rng.random(len(frame)) < share, name] = np.nan
    return frame


def n_numbers(frame, name):
    """Cells that are neither missing nor the zero of a hurdle column."""
    zero = (frame[name] == 0.0) & (KINDS[name] == "hurdle")
    return int((frame[name].notna() & ~zero).sum())


def chosen(frame, **options):
    """Penalties, edges with their weights, and scores of the graph that is chosen."""
    kinds = {name: KINDS[name] for name in frame}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mg.TableWarning)
        warnings.simplefilter("ignore", mg.SelectionWarning)
        model = mg.MixedGraphicalModel(types=kinds, random_state=0, **options).fit(frame)
    edges = {(edge.source, edge.target): edge.norm for edge in model.edges_}
    return np.atleast_1d(model.lam_), edges, model.fitted_.scores


def assert_units_do_not_matter(frame, **options):
    """The same choice, edges and weights in other units, and the same error over folds.

    The mean over folds is in the units of the data: numbers have one, zeros and gaps have none.
    """
    other = frame.assign(**{name: frame[name] * UNITS[name] for name in UNITS if name in frame})
    (lam, edges, scores), (other_lam, other_edges, other_scores) = (
        chosen(table, **options) for table in (frame, other)
    )
    np.testing.assert_allclose(other_lam, lam, rtol=1e-9)
    assert other_edges.keys() == edges.keys()
    assert len(edges) >= 2
    assert other_edges == pytest.approx(edges, rel=1e-5)
    if "cv_se" in scores:
        np.testing.assert_allclose(other_scores["cv_se"], scores["cv_se"], rtol=1e-6)
        moved = sum(np.log(UNITS[name]) * n_numbers(frame, name) for name in UNITS if name in frame)
        expected = scores["cv"] + moved / len(frame)
        np.testing.assert_allclose(other_scores["cv"], expected, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"select": "fdr"},
        {"select": "ebic"},
        {"select": "bic"},
        {"select": "aic"},
        {"select": "holdout"},
        {"select": mg.CV(3)},
        {"select": mg.CV(3, one_se=False)},
        {"select": mg.StARS(n_subsamples=5)},
        {"select": mg.StabilitySelection(n_subsamples=10)},
        {"select": mg.CV(3), "loss": "nodewise"},
        {"select": mg.EBIC(per_node=True), "loss": "nodewise"},
        {"select": mg.CV(3), "penalty_weights": "adaptive"},
    ],
    ids=lambda options: "-".join(str(value) for value in options.values()) or "default",
)
def test_what_is_chosen_does_not_depend_on_the_units(options):
    assert_units_do_not_matter(every_kind(), **options)


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood"])
def test_gaps_do_not_let_the_units_in(loss):
    """Parts of the rows differ in how many numbers they have."""
    frame = every_kind()[["a", "b", "g", "o"]]
    splits = [(np.arange(45, 90), np.arange(45)), (np.arange(45), np.arange(45, 90))]
    options = {"select": mg.CV(splits), "lams": [0.6, 0.4, 0.3, 0.2, 0.1], "loss": loss}
    assert_units_do_not_matter(with_gaps(frame), missing="model", **options)
