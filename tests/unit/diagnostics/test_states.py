"""Expectations over the model itself: gradient zero at the truth, curvature as by hand."""

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.diagnostics.curvature import ContrastCoordinates, expected_curvature, smooth_of
from mixedgm.diagnostics.states import StateRows
from mixedgm.diagnostics.truth import truth_of
from mixedgm.joint import draw
from mixedgm.model.params import from_theta
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.rows.memory import MemoryRows
from tests.unit.diagnostics import by_hand
from tests.unit.joint import brute


def truth(params):
    kinds = {f"x{s}": "continuous" for s in range(params.n_cont)}
    kinds |= {f"y{j}": n for j, n in enumerate(params.n_levels)}
    fitted, rng = mg.from_params(kinds, params).fitted_, np.random.default_rng(0)
    return truth_of(fitted, loss="pseudolikelihood", weights="calibrated", n_draws=1000, rng=rng)


SHAPES = [(0, (2, 3, 2)), (3, ()), (1, (2,)), (2, (2, 3)), (2, (4,)), (3, (2, 2, 2))]


@pytest.mark.parametrize(("n_gaussian", "n_levels"), SHAPES)
def test_the_expected_gradient_is_zero_at_the_truth_only(n_gaussian, n_levels):
    found = truth(mg.Params.of_joint(brute.random_params(1, n_gaussian, n_levels, strength=0.8)))
    smooth = smooth_of(found, "pseudolikelihood")
    assert np.abs(smooth.evaluate(found.theta).gradient).max() < 1e-8
    elsewhere = found.theta + 0.05 * np.random.default_rng(0).random(len(found.theta))
    assert np.abs(smooth.evaluate(elsewhere).gradient).max() > 1e-3
    assert smooth.evaluate(elsewhere).value > smooth.evaluate(found.theta).value


@pytest.mark.parametrize(("n_gaussian", "n_levels"), [(0, (2, 3)), (2, ()), (1, (2, 2)), (2, (3,))])
def test_curvature_is_that_of_the_formula_on_gauss_hermite_points(n_gaussian, n_levels):
    found = truth(mg.Params.of_joint(brute.random_params(2, n_gaussian, n_levels, strength=0.5)))
    rows = by_hand.Rows(found.params)
    smooth, layout = smooth_of(found, "pseudolikelihood"), found.layout
    expected = by_hand.hessian(
        lambda theta: rows.pseudolikelihood(from_theta(layout, theta)), found.theta
    )
    assert smooth.evaluate(found.theta).value == pytest.approx(
        rows.pseudolikelihood(found.params), abs=1e-9
    )
    np.testing.assert_allclose(smooth.curvature(found.theta).dense(), expected, atol=2e-7)


@pytest.mark.parametrize("digits", [25.0, 16.0, 12.0])
def test_a_coarser_grid_is_as_accurate_as_it_says(digits):
    found = truth(mg.Params.of_joint(brute.random_params(3, 2, (2, 3), strength=1.5)))
    fine = smooth_of(found, "pseudolikelihood").curvature(found.theta).dense()
    rows = found.rows
    coarse = StateRows(
        rows.given_y, rows.codes, rows.probability, rows.n_levels, rows.expected, digits
    )
    smooth = smooth_of(found, "pseudolikelihood", coarse)
    off = np.abs(smooth.curvature(found.theta).dense() - fine).max()
    assert off <= 100.0 * np.exp(-digits)


@pytest.mark.statistical
def test_curvature_of_many_drawn_rows_comes_close():
    """Fails by chance about once in 10,000 seeds: every entry within five standard errors."""
    found = truth(mg.Params.of_joint(brute.random_params(5, 2, (2, 3), strength=0.7)))
    exact = smooth_of(found, "pseudolikelihood").curvature(found.theta).dense()
    parts = []
    for seed in range(16):
        rows = draw(found.params.joint, 4000, rng=np.random.default_rng(seed))
        table = MemoryRows(rows.numbers, rows.codes, found.params.nodes)
        smooth = Pseudolikelihood(table, found.layout, table.moments())
        parts.append(smooth.curvature(found.theta).dense())
    error = np.std(parts, axis=0, ddof=1) / 4.0
    assert (np.abs(np.mean(parts, axis=0) - exact) <= 5.0 * error + 1e-9).all()


def test_levels_that_cannot_occur_change_nothing():
    dead = mg.Params.of_joint(brute.random_params(6, 2, (2, 4), dead_level=True))
    keep = np.flatnonzero(np.isfinite(dead.cat_bias))
    alive = mg.Params.of_blocks(
        (2, 3),
        dead.precision,
        dead.cont_bias,
        dead.category_shift[:, keep],
        dead.cat_interaction[np.ix_(keep, keep)],
        dead.cat_bias[keep],
    )
    one, other = truth(dead), truth(alive)
    np.testing.assert_allclose(one.theta, other.theta, atol=1e-10)
    a, b = (expected_curvature(ContrastCoordinates(t), "pseudolikelihood") for t in (one, other))
    np.testing.assert_allclose(a, b, atol=1e-9)
