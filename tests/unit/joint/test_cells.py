"""The log density of one number, the others integrated out, against enumeration."""

import numpy as np
import pytest
from scipy import stats

from mixedgm.base.errors import TooLargeError
from mixedgm.joint.conditioning import KnownColumns, among
from mixedgm.joint.posteriors import log_density_of
from tests.unit.joint import brute


def enumerated(params, values):
    """Log density of continuous column 0, everything else unknown."""
    states = brute.enumerate_states(params)
    deviation = np.sqrt(states.covariance[0, 0])
    each = stats.norm(states.mean[:, 0], deviation).pdf(np.asarray(values)[:, None])
    return np.log(each @ states.prob)


NOTHING = KnownColumns.none(3)
VALUES = np.array([-1.0, 0.3, 40.0])  # the last is far from every state


def test_it_is_the_mixture_of_the_states():
    params = brute.random_params(3, 2, (2, 3), strength=0.8)
    found, exact = log_density_of(params, 0, VALUES, NOTHING)
    assert exact
    np.testing.assert_allclose(found[:2], enumerated(params, VALUES[:2]), rtol=1e-9)
    assert np.isfinite(found).all()


def test_known_columns_give_the_model_of_the_others():
    params = brute.random_params(4, 3, (2, 3, 2), strength=0.8)
    numbers, codes = np.array([[0.4], [-1.0], [2.0]]), np.array([[2], [0], [1]], dtype=np.int32)
    found, _ = log_density_of(params, 1, VALUES[:3] / 10, KnownColumns([2], [1], numbers, codes))
    for at in range(3):
        left = brute.conditioned(params, {2: numbers[at, 0]}, {1: int(codes[at, 0])})
        states = brute.enumerate_states(left)
        spread = np.sqrt(states.covariance[1, 1])
        each = stats.norm(states.mean[:, 1], spread).pdf(VALUES[at] / 10)
        assert found[at] == pytest.approx(np.log(each @ states.prob), rel=1e-9)


@pytest.mark.statistical
def test_chains_average_to_the_same():
    """1,600 states of a row: the log of their mean density is off by less than 0.1.

    Its standard error is about 0.01, so that a false alarm has probability below 1e-20; fixed seed.
    """
    params = brute.random_params(3, 2, (2, 3), strength=0.8)
    rng = np.random.default_rng(0)
    found, exact = log_density_of(params, 0, VALUES, NOTHING, method="gibbs", rng=rng)
    assert not exact
    np.testing.assert_allclose(found[:2], enumerated(params, VALUES[:2]), atol=0.1)
    assert np.isfinite(found).all()
    again, exact = log_density_of(params, 0, VALUES, NOTHING, limit=1)
    assert not exact
    np.testing.assert_allclose(again[:2], found[:2], atol=0.2)
    with pytest.raises(TooLargeError):
        log_density_of(params, 0, VALUES, NOTHING, limit=1, method="exact")


def test_terms_among_some_columns():
    params = brute.random_params(5, 3, (2, 3, 2))
    part = among(params, np.array([0, 2]), np.array([1]))
    assert part.n_levels == (3,)
    np.testing.assert_array_equal(part.precision, params.precision[np.ix_([0, 2], [0, 2])])
    np.testing.assert_array_equal(part.shift, params.shift[[0, 2], 2:5])
    np.testing.assert_array_equal(part.bias, params.bias[2:5])
