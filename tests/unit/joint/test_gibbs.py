"""Gibbs draws against enumerated probabilities and moments."""

import numpy as np
import pytest
from scipy import stats

from mixedgm.base.errors import DistributionError
from mixedgm.joint import gibbs
from mixedgm.joint.field import integrate_out
from mixedgm.joint.kernels import _pick
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from tests.unit.joint import brute

# Every check below would raise a false alarm with this probability; the seeds are fixed, so a
# test that passes once passes always.
FALSE_ALARM = 1e-4


def chi_square_is_fine(codes: np.ndarray, states: brute.States) -> bool:
    key = np.ravel_multi_index(codes.T.astype(int), states.codes.max(axis=0) + 1)
    wanted = np.ravel_multi_index(states.codes.T, states.codes.max(axis=0) + 1)
    count = np.array([(key == k).sum() for k in wanted])
    expected = states.prob * len(codes)
    assert count[expected == 0].sum() == 0
    small = expected < 5
    seen = np.append(count[~small], count[small].sum())
    hoped = np.append(expected[~small], expected[small].sum())
    keep = hoped > 0
    return stats.chisquare(seen[keep], hoped[keep]).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(3))
def test_states_have_their_probabilities(seed):
    params = brute.random_params(seed, 2, (3, 2, 4), strength=0.7, dead_level=seed > 0)
    numbers, codes = gibbs.draw(params, 4000, rng=np.random.default_rng(seed), sweeps=60)
    states = brute.enumerate_states(params)
    assert chi_square_is_fine(codes, states)
    # x minus its mean given y is Gaussian with one covariance
    at = np.ravel_multi_index(codes.T.astype(int), params.n_levels)
    residual = (numbers - states.mean[at]) @ np.linalg.cholesky(params.precision)
    for s in range(2):
        assert stats.kstest(residual[:, s], "norm").pvalue > FALSE_ALARM
    assert abs(np.corrcoef(residual.T)[0, 1]) < 4 / np.sqrt(4000)


def test_equal_seeds_give_equal_rows_and_others_do_not():
    params = brute.random_params(5, 1, (2, 3))
    first, second, third = (
        gibbs.draw(params, 20, rng=np.random.default_rng(s), sweeps=5) for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    assert (first[0] != third[0]).any()


@pytest.mark.parametrize(("n_gaussian", "n_levels"), [(3, ()), (0, (2, 2)), (1, (1, 300))])
def test_tables_of_one_kind_and_many_levels(n_gaussian, n_levels):
    params = ConditionalGaussian.independent(n_gaussian, n_levels)
    numbers, codes = gibbs.draw(params, 2000, rng=np.random.default_rng(0), sweeps=2)
    assert numbers.shape == (2000, n_gaussian)
    assert codes.shape == (2000, len(n_levels))
    if 300 in n_levels:
        assert codes.dtype == np.uint16
        assert codes[:, 1].max() > 256


def test_states_are_kept_after_the_burn_in_and_then_every_so_often():
    params = brute.random_params(5, 1, (2, 3, 2))
    found = gibbs.chains(params, 6, 3, rng=np.random.default_rng(4), burn_in=10, thin=2)
    rng = np.random.default_rng(4)
    state = gibbs.random_start(params, 6, rng)
    field, _ = integrate_out(params, [0])
    for kept, sweeps in zip(found.codes, (10, 2, 2), strict=True):
        gibbs.sweep(field, state, sweeps, rng)
        np.testing.assert_array_equal(kept, state)


@pytest.mark.parametrize("u", [0.0, 2.0**-53, 0.5, 1 - 2.0**-53])
def test_levels_without_a_chance_are_not_picked_by_extreme_numbers(u):
    rng = np.random.default_rng(0)
    for _ in range(200):
        logits = 30 * rng.normal(size=6)
        dead = rng.permutation(6)[: rng.integers(1, 6)]
        logits[dead] = -np.inf
        assert _pick(logits, 0, 6, u) not in dead


def test_an_indefinite_precision_is_refused_with_eigenvalue_columns_and_remedy():
    precision = np.eye(3)
    precision[0, 2] = precision[2, 0] = 1.5
    params = ConditionalGaussian(
        (), precision, np.zeros(3), np.zeros((3, 0)), np.zeros((0, 0)), np.zeros(0)
    )
    with pytest.raises(DistributionError, match=r"eigenvalue is -0\.5 .*columns 0, 2.*repaired"):
        gibbs.draw(params, 1, rng=np.random.default_rng(0))


def test_a_column_without_any_possible_level_is_named():
    params = ConditionalGaussian.independent(1, (2, 2))
    params.bias[2:] = -np.inf
    with pytest.raises(DistributionError, match="no level of columns 2 has a chance"):
        gibbs.draw(params, 1, rng=np.random.default_rng(0))


def test_a_column_that_is_a_linear_function_of_another_is_refused():
    params = ConditionalGaussian.independent(2, ())
    params.precision[0, 1] = params.precision[1, 0] = 1 - 1e-12
    with pytest.raises(DistributionError, match=r"eigenvalue is 1e-12 .*columns 0, 1"):
        gibbs.draw(params, 1, rng=np.random.default_rng(0))
