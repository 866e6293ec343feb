"""Entropy and mutual information against sums over states and numerical integrals."""

import numpy as np
import pytest
from scipy import stats

from mixedgm.base.errors import ParameterError
from mixedgm.joint.marginals import Columns, entropy, mutual_information
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from tests.unit.joint import brute


def table_entropy(prob: np.ndarray) -> float:
    prob = prob[prob > 0]
    return float(-(prob * np.log(prob)).sum())


@pytest.mark.parametrize("seed", range(4))
def test_categorical_columns(seed):
    params = brute.random_params(seed, 2, (3, 2, 4), density=0.7, dead_level=seed == 1)
    states = brute.enumerate_states(params)
    found = entropy(params, Columns(discrete=(2, 0)))
    assert found.exact
    assert found.value == pytest.approx(
        table_entropy(brute.table(states, params.n_levels, [2, 0])), abs=1e-10
    )
    joint = brute.table(states, params.n_levels, [1, 2])
    expected = table_entropy(joint.sum(0)) + table_entropy(joint.sum(1)) - table_entropy(joint)
    shared = mutual_information(params, Columns(discrete=(1,)), Columns(discrete=(2,)))
    assert shared.value == pytest.approx(expected, abs=1e-10)


def test_all_columns():
    params = brute.random_params(6, 2, (3, 2))
    states = brute.enumerate_states(params)
    expected = (
        table_entropy(states.prob) + stats.multivariate_normal(cov=states.covariance).entropy()
    )
    assert entropy(params).value == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("strength", [0.3, 1.0, 3.0])
def test_one_continuous_column_is_integrated(strength):
    params = brute.random_params(6, 2, (3, 2), strength=strength, dead_level=strength == 1.0)
    states = brute.enumerate_states(params)
    spread = np.sqrt(states.covariance[0, 0])
    low, high = states.mean[:, 0].min() - 12 * spread, states.mean[:, 0].max() + 12 * spread
    grid = np.linspace(low, high, 200_001)
    given = stats.norm.pdf(grid[:, None], states.mean[:, 0], spread)

    def integral(weight: np.ndarray) -> float:
        density = given @ weight
        return -float(np.trapezoid(density * np.log(np.maximum(density, 1e-300)), grid))

    alone = integral(states.prob)
    found = entropy(params, Columns(numbers=(0,)))
    assert found.exact
    assert found.value == pytest.approx(alone, abs=1e-8)
    joint = sum(integral(states.prob * (states.codes[:, 0] == a)) for a in range(3))
    shared = mutual_information(params, Columns(numbers=(0,)), Columns(discrete=(0,)))
    expected = alone + table_entropy(brute.table(states, (3, 2), [0])) - joint
    assert shared.exact
    assert shared.value == pytest.approx(expected, abs=1e-8)


@pytest.mark.statistical
def test_a_mixture_in_two_dimensions_is_sampled_and_its_error_is_honest():
    """False alarm at four and a half standard errors: about 7e-6 for each of two numbers."""
    params = brute.random_params(6, 2, (3, 2), strength=0.5)
    states = brute.enumerate_states(params)
    side = np.sqrt(np.diagonal(states.covariance))
    axes = [
        np.linspace(
            states.mean[:, s].min() - 8 * side[s], states.mean[:, s].max() + 8 * side[s], 300
        )
        for s in range(2)
    ]
    mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    cell = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
    given = np.stack(
        [stats.multivariate_normal(mean, states.covariance).pdf(mesh) for mean in states.mean], -1
    )
    density = given @ states.prob
    expected = -(density * np.log(np.maximum(density, 1e-300))).sum() * cell
    found = entropy(params, Columns(numbers=(0, 1)), rng=np.random.default_rng(1))
    assert not found.exact
    assert 0 < found.error < 0.02
    assert abs(found.value - expected) < 4.5 * found.error
    # and with a categorical column: I = H(x) - sum_a P(a) H(x | a)
    within = 0.0
    for a in range(3):
        weight = states.prob * (states.codes[:, 0] == a)
        piece = given @ weight / weight.sum()
        within -= weight.sum() * (piece * np.log(np.maximum(piece, 1e-300))).sum() * cell
    shared = mutual_information(
        params, Columns(numbers=(0, 1)), Columns(discrete=(0,)), rng=np.random.default_rng(2)
    )
    assert not shared.exact
    assert abs(shared.value - (expected - within)) < 4.5 * shared.error


def test_integrals_that_would_take_long_are_sampled():
    """Two normal distributions that are millions of standard deviations apart."""
    params = ConditionalGaussian.independent(1, (2,))
    params.shift[0] = [-5e6, 5e6]
    found = entropy(params, Columns(numbers=(0,)))
    assert not found.exact
    assert abs(found.value - np.log(2) - 0.5 * np.log(2 * np.pi * np.e)) < 5 * found.error < 0.2


def test_sets_with_a_common_column_are_refused():
    params = ConditionalGaussian.independent(1, (2,))
    with pytest.raises(ParameterError, match="column in common"):
        mutual_information(params, Columns(discrete=(0,)), Columns(numbers=(0,), discrete=(0,)))
