"""Constants of the theorem: the formulas, and the derivatives behind L1 and L2."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.diagnostics import Constants
from mixedgm.diagnostics.theorem import curvature_change, gradient_change
from mixedgm.diagnostics.truth import (
    ContrastCoordinates,
    smooth_of,
    statistics_covariance,
    truth_of,
)
from tests.unit.joint import brute

SOME = Constants(
    tau=0.25,
    tau_bar=1.0,
    convexity=0.4,
    gradient_change=2.0,
    curvature_change=1.5,
    largest_group=3,
    n_pairs=20,
    n_edges=5,
)


def coordinates(params):
    kinds = {f"x{s}": "continuous" for s in range(params.n_cont)}
    kinds |= {f"y{j}": n for j, n in enumerate(params.n_levels)}
    options = {"loss": "likelihood", "weights": "calibrated", "n_draws": 1000}
    fitted, rng = mg.from_params(kinds, params).fitted_, np.random.default_rng(0)
    return ContrastCoordinates(truth_of(fitted, rng=rng, **options))


def test_sample_size_is_the_papers_at_the_chosen_radius():
    m = (1.0 - SOME.radius_share) * 0.4
    r = SOME.radius_share * 0.4 / 1.5
    k_log = 3 * np.log(20)
    first = 4096 * 2.0 * 1.5**2 / (m**4 * 0.25**4) * (2 + 0.25) ** 4 * k_log * 5**2
    second = 2048 * 2.0 / (m**2 * r**2) * (2 + 0.25) ** 2 * k_log * 5
    assert SOME.n_rows == pytest.approx(max(first, second), rel=1e-12)
    for share in (0.8, 1.2):
        m = (1.0 - share * SOME.radius_share) * 0.4
        r = share * SOME.radius_share * 0.4 / 1.5
        first = 4096 * 2.0 * 1.5**2 / (m**4 * 0.25**4) * (2 + 0.25) ** 4 * k_log * 5**2
        second = 2048 * 2.0 / (m**2 * r**2) * (2 + 0.25) ** 2 * k_log * 5
        assert max(first, second) >= SOME.n_rows


def test_promises_are_the_papers():
    promise = SOME.promise(1e6)
    m = (1.0 - SOME.radius_share) * 0.4
    root = np.sqrt(3 * np.log(20) / 1e6)
    lam = 2 * np.sqrt(256 * 2.0) * 1.0 / 0.25 * root
    assert promise.lam == pytest.approx(lam, rel=1e-12)
    assert promise.error_bound == pytest.approx(
        4 / m * (2.0 / 0.5) * np.sqrt(256 * 2.0 * 5) * root, rel=1e-12
    )
    assert promise.smallest_edge == pytest.approx((1 + 0.25 / 2) * np.sqrt(5) * lam / m, rel=1e-12)
    assert not promise.enough_rows
    assert SOME.promise().enough_rows
    assert SOME.promise().n_rows == SOME.n_rows


def test_the_likelihood_has_128_times_less_noise():
    other = replace(SOME, loss="likelihood")
    assert other.n_rows == pytest.approx(SOME.n_rows / 128.0)
    assert other.promise(100.0).lam == pytest.approx(SOME.promise(100.0).lam / np.sqrt(128.0))


@pytest.mark.parametrize("bad", [{"tau": 0.0}, {"tau": -0.1}, {"convexity": 0.0}])
def test_without_its_conditions_it_promises_nothing(bad):
    constants = replace(SOME, **bad)
    assert not constants.applies
    assert np.isnan(constants.n_rows)
    assert np.isnan(constants.promise(1e9).lam)
    assert not constants.promise(1e99).enough_rows


def test_a_loss_of_constant_curvature_needs_no_ball():
    assert replace(SOME, curvature_change=0.0).n_rows == 0.0


def test_gradient_change_is_the_largest_variance_of_a_combination_of_statistics():
    params = mg.Params.of_joint(brute.random_params(0, 0, (2, 3), strength=0.5))
    found = coordinates(params)
    # Statistics by enumeration: indicators of levels and of pairs of levels, as contrasts.
    states = list(product(range(2), range(3)))
    weight = np.exp([brute.exponent(params.joint, np.zeros(0), state) for state in states])
    weight /= weight.sum()
    left = np.linalg.qr(np.column_stack([np.ones(2), np.eye(2)[:, :1]]))[0][:, 1:]
    right = np.linalg.qr(np.column_stack([np.ones(3), np.eye(3)[:, :2]]))[0][:, 1:]
    edge = found.truth.weights[0]
    rows = [
        np.concatenate([left[a], right[b], np.kron(left[a], right[b]) / edge]) for a, b in states
    ]
    centred = np.array(rows) - weight @ np.array(rows)
    largest = np.linalg.eigvalsh(centred.T @ (weight[:, None] * centred))[-1]
    assert gradient_change(found) == pytest.approx(largest, rel=1e-10)
    assert len(statistics_covariance(found)) == 1 + 2 + 2


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood"])
@pytest.mark.parametrize(("n_gaussian", "n_levels"), [(2, ()), (0, (2, 3)), (1, (2, 2))])
def test_curvature_change_bounds_differences_of_the_curvature(loss, n_gaussian, n_levels):
    found = coordinates(
        mg.Params.of_joint(brute.random_params(1, n_gaussian, n_levels, strength=0.5))
    )
    largest = curvature_change(found, loss)
    smooth, theta = smooth_of(found.truth, loss), found.truth.theta
    rng = np.random.default_rng(0)

    def cube(direction):
        """Third derivative along a direction, by differences of values."""
        step = 0.02 * found.up(direction)
        values = [smooth.evaluate(theta + k * step).value for k in (-2, -1, 1, 2)]
        return (values[3] - 2 * values[2] + 2 * values[1] - values[0]) / (2 * 0.02**3)

    directions = rng.normal(size=(100, found.layout.n_theta))
    cubes = [abs(cube(d / np.linalg.norm(d))) for d in directions]
    assert max(cubes) <= largest * 1.01 + 1e-3
    # And it is attained: climbing by random steps comes close.
    best, reached = directions[int(np.argmax(cubes))], max(cubes)
    best = best / np.linalg.norm(best)
    for _ in range(400):
        trial = best + 0.2 * rng.normal(size=len(best)) / np.sqrt(len(best))
        trial = trial / np.linalg.norm(trial)
        here = abs(cube(trial))
        best, reached = (trial, here) if here > reached else (best, reached)
    assert reached == pytest.approx(largest, rel=0.1)
