"""The nonparanormal transform: ranks, ties, inverse, tails."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, norm, rankdata

from mixedgm.base.errors import ModelFileError, ParameterError
from mixedgm.table.transform import Nonparanormal


def test_scores_are_normal_quantiles_of_mid_ranks():
    x = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0])
    expected = norm.ppf((rankdata(x, method="average") - 0.5) / len(x))
    np.testing.assert_allclose(Nonparanormal.fit(x).forward(x), expected, atol=1e-12)


def test_weight_two_is_the_row_twice():
    x = np.array([0.1, 5.0, 2.0, 2.0, 7.0])
    w = np.array([1.0, 2.0, 3.0, 1.0, 2.0])
    weighted = Nonparanormal.fit(x, w)
    repeated = Nonparanormal.fit(np.repeat(x, w.astype(int)))
    np.testing.assert_allclose(weighted.scores, repeated.scores, rtol=1e-13)
    assert weighted.values == repeated.values


def test_a_skewed_column_becomes_standard_normal():
    x = np.random.default_rng(0).lognormal(sigma=2, size=20_000)
    transform = Nonparanormal.fit(x)
    z = transform.forward(x)
    assert len(transform.values) <= 1000
    assert kstest(z, "norm").statistic < 2e-3
    # knots are about 0.016 apart in score, so no score can be off by more
    np.testing.assert_allclose(z, norm.ppf((rankdata(x) - 0.5) / len(x)), atol=0.016)


def test_values_next_to_a_spike_are_not_drawn_into_it():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=5000), np.full(5000, 0.1234), [10.0]])
    z = Nonparanormal.fit(x).forward(x)
    np.testing.assert_allclose(z, norm.ppf((rankdata(x) - 0.5) / len(x)), atol=0.02)


def test_goes_on_in_a_straight_line_outside_the_range():
    x = np.random.default_rng(2).exponential(size=500)
    transform = Nonparanormal.fit(x, extrapolate=True)
    below = transform.forward(x.min() - np.array([0.0, 1.0, 2.0]))
    above = transform.forward(x.max() + np.array([0.0, 1.0, 2.0]))
    assert (np.diff(below) < 0).all()
    assert (np.diff(above) > 0).all()
    np.testing.assert_allclose(np.diff(below)[0], np.diff(below)[1])
    np.testing.assert_allclose(np.diff(above)[0], np.diff(above)[1])
    np.testing.assert_allclose(transform.inverse(above), x.max() + np.array([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(transform.inverse(below), x.min() - np.array([0.0, 1.0, 2.0]))
    again = Nonparanormal.from_dict(transform.to_dict())
    assert again == transform


def test_comes_back_within_the_range_by_default():
    x = np.random.default_rng(2).exponential(size=500)
    transform = Nonparanormal.fit(x)
    found = transform.inverse(np.linspace(-9, 9, 101))
    assert (found.min(), found.max()) == (x.min(), x.max())
    assert (transform.forward([x.max() + 1]) > transform.forward([x.max()])).all()
    old = {key: value for key, value in transform.to_dict().items() if key != "extrapolate"}
    assert Nonparanormal.from_dict(old) == transform


def test_tiny_weights_leave_knots_strictly_increasing():
    transform = Nonparanormal.fit([1.0, 2.0, 3.0, 4.0], [1e-300, 1.0, 1.0, 1e-30])
    assert np.isfinite(transform.scores).all()
    assert (np.diff(transform.scores) > 0).all()


def test_shape_and_missing_values_pass_through():
    transform = Nonparanormal.fit([1.0, 2.0, 4.0])
    z = transform.forward([[1.0, np.nan], [9.0, 2.0]])
    assert z.shape == (2, 2)
    assert np.isnan(z[0, 1])
    assert float(transform.forward(2.0)) == 0.0


def test_needs_two_distinct_values():
    with pytest.raises(ParameterError, match="two or more"):
        Nonparanormal.fit([1.0, 1.0])


def test_a_stored_transform_that_is_none():
    with pytest.raises(ModelFileError, match="unknown transform"):
        Nonparanormal.from_dict({"name": "rank"})
    with pytest.raises(ModelFileError, match="cannot be read"):
        Nonparanormal.from_dict({"name": "nonparanormal", "values": [2, 1], "scores": [0, 1]})


reasonable = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))


@given(st.lists(reasonable, min_size=2, max_size=60).filter(lambda x: len(set(x)) > 1))
def test_is_increasing_and_invertible(x):
    transform = Nonparanormal.fit(x)
    grid = np.unique(np.concatenate([x, np.linspace(min(x) - 1, max(x) + 1, 50)]))
    z = transform.forward(grid)
    assert (np.diff(z) >= 0).all()
    at_data = np.unique(x)
    assert (np.diff(transform.forward(at_data)) > 0).all()
    np.testing.assert_allclose(transform.inverse(transform.forward(at_data)), at_data, rtol=1e-12)
    within = np.clip(grid, min(x), max(x))
    np.testing.assert_allclose(transform.inverse(z), within, rtol=1e-6, atol=1e-4)
    beyond = Nonparanormal.fit(x, extrapolate=True)
    np.testing.assert_allclose(beyond.inverse(z), grid, rtol=1e-6, atol=1e-4)
    assert Nonparanormal.from_dict(json.loads(json.dumps(transform.to_dict()))) == transform
