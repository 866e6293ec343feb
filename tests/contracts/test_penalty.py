"""Every penalty: the proximal map minimises, distances vanish at its fixed points, lam_max."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mixedgm.model.layout import Layout
from mixedgm.penalty.group_lasso import GroupLasso

LAYOUTS = {
    "mixed": Layout.complete(2, (2, 3)),
    "continuous": Layout.complete(3, ()),
    "categorical": Layout.complete(0, (2, 4)),
    "no-groups": Layout(2, (3,), np.zeros((0, 2), dtype=np.int64)),
}


def make(name, seed=0):
    layout = LAYOUTS[name]
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 2.0, size=layout.n_groups)
    weights[::3] = 0.0
    return GroupLasso(layout, weights), rng.normal(size=layout.n_theta), rng


@pytest.fixture(params=LAYOUTS)
def named(request):
    return request.param


def blocks(penalty):
    layout = penalty.layout
    return [slice(a, b) for a, b in zip(layout.starts[:-1], layout.starts[1:], strict=True)]


def test_value_is_the_weighted_sum_of_norms(named):
    penalty, theta, _ = make(named)
    expected = sum(
        w * np.linalg.norm(theta[s]) for w, s in zip(penalty.weights, blocks(penalty), strict=True)
    )
    assert penalty.value(theta) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("step", [0.05, 0.6, 5.0])
def test_prox_beats_a_brute_force_minimiser(named, step):
    penalty, theta, _ = make(named)
    found = penalty.prox(theta, step)

    def aim(u):
        return 0.5 * np.sum((u - theta) ** 2) + step * penalty.value(u)

    tried = [minimize(aim, start, method="L-BFGS-B", tol=1e-14) for start in (theta, found + 1e-3)]
    best = min(result.fun for result in tried)
    assert aim(found) <= best + 1e-12
    # Kinks slow the minimiser down; that it comes near shows that it solved the same problem.
    assert aim(found) >= best - 1e-3


@pytest.mark.parametrize("step", [0.05, 0.6, 5.0])
def test_no_random_point_is_better_than_the_prox(named, step):
    penalty, theta, rng = make(named)
    found = penalty.prox(theta, step)

    def aim(u):
        return 0.5 * np.sum((u - theta) ** 2) + step * penalty.value(u)

    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            assert aim(found + size * rng.normal(size=len(theta))) >= aim(found)


def test_prox_leaves_node_terms_and_free_groups_alone(named):
    penalty, theta, _ = make(named)
    found = penalty.prox(theta, 100.0)
    free = penalty.layout.positions(penalty.free)
    np.testing.assert_array_equal(found[free], theta[free])
    others = np.setdiff1d(np.arange(len(theta)), free)
    np.testing.assert_array_equal(found[others], 0.0)


def test_prox_of_zero_groups_is_zero(named):
    penalty, theta, _ = make(named)
    theta[penalty.layout.edges] = 0.0
    np.testing.assert_array_equal(penalty.prox(theta, 0.3), theta)


def test_prox_does_not_change_its_argument():
    penalty, theta, _ = make("mixed")
    before = theta.copy()
    penalty.prox(theta, 0.5)
    np.testing.assert_array_equal(theta, before)


@pytest.mark.parametrize("step", [0.1, 1.0])
def test_distance_is_zero_at_fixed_points_of_the_prox(named, step):
    """u = prox(u + step * (-grad)) exactly where -grad is a subgradient."""
    penalty, theta, _ = make(named)
    u = penalty.prox(theta, step)
    grad = (u - theta) / step
    found = penalty.subgradient_distance(u, grad, 1.0)
    np.testing.assert_allclose(found, 0.0, atol=1e-13)
    np.testing.assert_allclose(penalty.prox(u - step * grad, step), u, atol=1e-13)


def test_distance_elsewhere_is_that_to_the_nearest_subgradient(named):
    """Brute force: at zero the subgradients are a ball, elsewhere one point."""
    penalty, theta, rng = make(named)
    layout, lam = penalty.layout, 0.7
    for group in range(0, layout.n_groups, 2):
        theta[blocks(penalty)[group]] = 0.0
    grad = rng.normal(size=len(theta))
    found = penalty.subgradient_distance(theta, grad, lam)
    for group, part in enumerate(blocks(penalty)):
        radius = lam * penalty.weights[group]
        if np.any(theta[part]):
            nearest = radius * theta[part] / np.linalg.norm(theta[part])
        else:
            nearest = -grad[part] * min(1.0, radius / np.linalg.norm(grad[part]))
        assert found[group] == pytest.approx(np.linalg.norm(-grad[part] - nearest), abs=1e-12)


def test_distance_is_positive_away_from_fixed_points():
    penalty, theta, rng = make("mixed")
    u = penalty.prox(theta, 0.5)
    grad = (u - theta) / 0.5
    grad[penalty.layout.edges] += 10 * np.sign(grad[penalty.layout.edges] + 1e-12)
    assert np.all(penalty.subgradient_distance(u, grad, 1.0) > 0.1)


def test_lam_max_is_where_zero_becomes_optimal():
    penalty, grad, _ = make("mixed")
    zero = np.zeros(len(grad))
    top = penalty.lam_max(grad)
    penalised = penalty.weights > 0
    assert np.all(penalty.subgradient_distance(zero, grad, top)[penalised] <= 1e-13)
    assert penalty.subgradient_distance(zero, grad, 0.99 * top)[penalised].max() > 1e-3


def test_lam_max_without_penalised_groups_is_zero():
    layout = LAYOUTS["mixed"]
    grad = np.ones(layout.n_theta)
    assert GroupLasso(layout, np.zeros(layout.n_groups)).lam_max(grad) == 0.0
    assert make("no-groups")[0].lam_max(np.ones(LAYOUTS["no-groups"].n_theta)) == 0.0


def test_restriction_keeps_weights_and_values_of_its_groups():
    penalty, theta, _ = make("mixed")
    groups = np.array([1, 3, 4])
    small = penalty.restrict(groups)
    index = penalty.layout.positions(groups)
    padded = np.zeros(len(theta))
    padded[index] = theta[index]
    assert small.value(theta[index]) == pytest.approx(penalty.value(padded), abs=1e-14)
    np.testing.assert_allclose(small.prox(theta[index], 0.4), penalty.prox(padded, 0.4)[index])


def test_groups_almost_at_the_threshold_do_not_change_sign():
    layout = LAYOUTS["continuous"]
    penalty = GroupLasso(layout, np.ones(3))
    theta = np.zeros(layout.n_theta)
    theta[layout.edges] = [1e-300, 1.0, -1.0 - 1e-12]
    found = penalty.prox(theta, 1.0)[layout.edges]
    np.testing.assert_array_equal(found[:2], 0.0)
    assert -2e-12 < found[2] < 0
