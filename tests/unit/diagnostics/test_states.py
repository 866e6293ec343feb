"""Expectations over the model itself: gradient zero at the truth, curvature as by hand."""

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.diagnostics.states import StateRows
from mixedgm.diagnostics.truth import ContrastCoordinates, expected_curvature, smooth_of, truth_of
from mixedgm.joint.sampled import draw
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
        rows.given_y, rows.codes, rows.probability, rows.nodes, rows.expected, digits
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


# -- ordinal columns and counts --------------------------------------------------------------------

ORDERED = {
    "x": "continuous",
    "pain": mg.Ordinal([0, 1, 2], scores=[0, 1, 3]),
    "z": "continuous",
    "visits": mg.Count(largest=4),
    "mood": mg.Ordinal([0, 1, 2], thresholds="quadratic"),
    "sex": ["f", "m"],
}


@pytest.fixture(scope="module")
def ordered():
    plain = mg.from_params(ORDERED, {}).params_
    rng, d = np.random.default_rng(0), plain.nodes.n_columns
    coef = np.triu(0.4 * rng.normal(size=(d, d)), 1)
    coef[-2:, -2:] = coef[0, 1] = coef[2, 4] = 0.0
    bias = 0.3 * rng.normal(size=len(plain.bias))
    params = mg.Params(plain.nodes, bias, np.array([1.5, 2.0]), coef + coef.T)
    return mg.from_params(ORDERED, params)


def of_ordered(model, loss="pseudolikelihood"):
    rng = np.random.default_rng(0)
    return truth_of(model.fitted_, loss=loss, weights="calibrated", n_draws=1000, rng=rng)


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood"])
def test_the_truth_of_ordered_columns_is_the_optimum_of_the_expected_loss(ordered, loss):
    found = of_ordered(ordered, loss)
    assert found.exact
    smooth, theta = smooth_of(found, loss), found.theta
    assert np.abs(smooth.evaluate(theta).gradient).max() < 1e-8
    p, second, mean = found.layout.nodes.n_numeric, found.moments.second, found.moments.mean
    np.testing.assert_allclose(np.diagonal(second)[:p], 1.0, atol=1e-10)
    np.testing.assert_allclose(mean[:p], 0.0, atol=1e-10)
    hessian, step = smooth.curvature(theta).dense(), 1e-5
    for k, one in enumerate(np.eye(len(theta)) * step):
        up, down = (smooth.evaluate(theta + sign * one).gradient for sign in (1, -1))
        np.testing.assert_allclose(hessian[k], (up - down) / (2 * step), atol=2e-8)
    contrasts = ContrastCoordinates(found)
    seen = expected_curvature(contrasts, loss)
    basis = np.array([contrasts.up(one) for one in np.eye(contrasts.layout.n_theta)])
    np.testing.assert_allclose(seen, (basis @ hessian @ basis.T)[:, contrasts.model], atol=1e-9)


@pytest.mark.statistical
def test_curvature_of_drawn_rows_with_ordered_columns_comes_close(ordered):
    """Fails by chance about once in 10,000 seeds: every entry within five standard errors."""
    found = of_ordered(ordered)
    exact = smooth_of(found, "pseudolikelihood").curvature(found.theta).dense()
    parts = []
    for seed in range(16):
        rows = draw(found.params.joint, 4000, rng=np.random.default_rng(seed))
        numbers = np.ascontiguousarray(found.params.nodes.numbers(rows.numbers, rows.codes))
        table = MemoryRows(numbers, rows.codes, found.params.nodes)
        smooth = Pseudolikelihood(table, found.layout, table.moments())
        parts.append(smooth.curvature(found.theta).dense())
    error = np.std(parts, axis=0, ddof=1) / 4.0
    assert (np.abs(np.mean(parts, axis=0) - exact) <= 5.5 * error + 1e-9).all()


def test_consistency_of_two_ordered_levels_is_that_of_two_categories():
    """Half of an effect at either level, and what that adds to the own terms of the other end."""
    columns = {"x": "continuous", "a": mg.Ordinal([0, 1]), "v": mg.Count(largest=5), "b": 3}
    ternary = np.array([0.5, -0.1, -0.4])
    one = mg.from_params(
        columns,
        {
            "score_interaction": [[0.0, 0.5, 0.2], [0.5, 0.0, 0.0], [0.2, 0.0, 0.0]],
            "category_shift": [np.zeros(3), ternary, np.zeros(3)],
        },
    )
    between = np.zeros((5, 5))
    between[:2, 2:] = [-0.5 * ternary, 0.5 * ternary]
    other = mg.from_params(
        {**columns, "a": [0, 1]},
        {
            "score_interaction": [[0.0, 0.2], [0.2, 0.0]],
            "category_shift": [[-0.25, 0.25, 0, 0, 0], np.zeros(5)],
            "cat_interaction": between + between.T,
            "cont_bias": [0.25],
            "cat_bias": [0, 0, 0, 0, *(0.5 * ternary)],
        },
    )
    assert one.mean()["v"] == pytest.approx(other.mean()["v"], abs=1e-10)
    for loss in ("pseudolikelihood", "likelihood"):
        found = [mg.diagnostics.consistency(model, loss=loss) for model in (one, other)]
        assert len(found[0].pairs) == 3
        for name in ("at_truth", "lower", "upper"):
            mine, theirs = (getattr(each, name) for each in found)
            assert mine == pytest.approx(theirs, rel=1e-6), name
