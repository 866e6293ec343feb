"""Entropy and mutual information against sums over states and numerical integrals."""

import numpy as np
import pytest
from scipy import stats

from mixedgm.errors import ParameterError
from mixedgm.joint.information import Columns, entropy, mutual_information
from mixedgm.model.params import Params
from tests.unit.joint import brute


def table_entropy(prob: np.ndarray) -> float:
    prob = prob[prob > 0]
    return float(-(prob * np.log(prob)).sum())


@pytest.mark.parametrize("seed", range(4))
def test_categorical_columns(seed):
    params = brute.random_params(seed, 2, (3, 2, 4), density=0.7, dead_level=seed == 1)
    states = brute.enumerate_states(params)
    found = entropy(params, Columns(cat=(2, 0)))
    assert found.exact
    assert found.value == pytest.approx(
        table_entropy(brute.table(states, params.n_levels, [2, 0])), abs=1e-10
    )
    joint = brute.table(states, params.n_levels, [1, 2])
    expected = table_entropy(joint.sum(0)) + table_entropy(joint.sum(1)) - table_entropy(joint)
    shared = mutual_information(params, Columns(cat=(1,)), Columns(cat=(2,)))
    assert shared.value == pytest.approx(expected, abs=1e-10)


def test_all_columns():
    params = brute.random_params(6, 2, (3, 2))
    states = brute.enumerate_states(params)
    expected = (
        table_entropy(states.prob) + stats.multivariate_normal(cov=states.covariance).entropy()
    )
    assert entropy(params).value == pytest.approx(expected, abs=1e-10)


@pytest.mark.statistical
def test_a_mixture_is_sampled_and_its_error_is_honest():
    """False alarm at four and a half standard errors: about 7e-6 for each of two numbers."""
    params = brute.random_params(6, 2, (3, 2))
    states = brute.enumerate_states(params)
    grid = np.linspace(-60, 60, 60_001)
    spread = np.sqrt(states.covariance[0, 0])
    given = stats.norm.pdf(grid[:, None], states.mean[:, 0], spread)
    density = given @ states.prob
    expected = -np.trapezoid(density * np.log(np.maximum(density, 1e-300)), grid)
    found = entropy(params, Columns(cont=(0,)), rng=np.random.default_rng(1))
    assert not found.exact
    assert 0 < found.error < 0.02
    assert abs(found.value - expected) < 4.5 * found.error
    # and with a categorical column: I = H(x) - sum_a P(a) H(x | a)
    within = 0.0
    for a in range(3):
        weight = states.prob * (states.codes[:, 0] == a)
        piece = given @ weight / weight.sum()
        within -= weight.sum() * np.trapezoid(piece * np.log(np.maximum(piece, 1e-300)), grid)
    shared = mutual_information(
        params, Columns(cont=(0,)), Columns(cat=(0,)), rng=np.random.default_rng(2)
    )
    assert not shared.exact
    assert abs(shared.value - (expected - within)) < 4.5 * shared.error


def test_sets_with_a_common_column_are_refused():
    params = Params.independent(1, (2,))
    with pytest.raises(ParameterError, match="column in common"):
        mutual_information(params, Columns(cat=(0,)), Columns(cont=(0,), cat=(0,)))
