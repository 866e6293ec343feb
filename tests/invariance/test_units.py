"""Units of continuous columns: estimates follow them, unless weights are uniform."""

from dataclasses import replace

import numpy as np
import pytest

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
