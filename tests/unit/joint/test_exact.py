"""Exact answers against enumeration of all states and Gaussian algebra."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixedgm.base.errors import DistributionError, ParameterError
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.exact import exact, expectations, log_density, log_partition
from mixedgm.joint.field import integrate_out
from mixedgm.joint.marginals import marginal
from mixedgm.joint.posteriors import log_marginal, posterior
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params, from_theta, to_theta
from tests.unit.joint import brute

CLOSE = 1e-10

models = st.builds(
    brute.random_params,
    seed=st.integers(0, 2**20),
    n_gaussian=st.integers(0, 3),
    n_levels=st.lists(st.integers(1, 4), min_size=0, max_size=4).map(tuple),
    density=st.sampled_from([0.2, 0.5, 1.0]),
    strength=st.sampled_from([0.5, 2.0]),
    dead_level=st.booleans(),
)
many = settings(max_examples=120, derandomize=True)


def one_hot(params: ConditionalGaussian, states: brute.States) -> np.ndarray:
    hot = np.zeros((len(states.codes), sum(params.n_levels)))
    for j in range(len(params.n_levels)):
        hot[np.arange(len(hot)), params.level_start[j] + states.codes[:, j]] = 1.0
    return hot


@given(models)
@many
def test_partition_function_and_density(params):
    states = brute.enumerate_states(params)
    assert log_partition(params) == pytest.approx(states.log_z, abs=CLOSE)
    x = np.random.default_rng(0).normal(size=params.n_numbers)
    alive = states.codes[np.isfinite(states.log_weight)][-1]
    found = log_density(params, x[None], alive[None])
    expected = brute.exponent(params, x, tuple(alive)) - states.log_z
    assert found[0] == pytest.approx(expected, abs=CLOSE)


@given(models)
@many
def test_expectations(params):
    states = brute.enumerate_states(params)
    found = expectations(params)
    hot = one_hot(params, states)
    prob = states.prob[:, None]
    np.testing.assert_allclose(found.mean, (prob * states.mean).sum(axis=0), atol=CLOSE)
    second = states.covariance + states.mean.T @ (prob * states.mean)
    np.testing.assert_allclose(found.second, second, rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(found.cross, states.mean.T @ (prob * hot), atol=CLOSE)
    pairs = hot.T @ (prob * hot)
    np.testing.assert_allclose(found.share, np.diagonal(pairs), atol=CLOSE)
    np.testing.assert_allclose(found.pairs, pairs - np.diag(np.diagonal(pairs)), atol=CLOSE)
    assert found.log_partition == pytest.approx(states.log_z, abs=CLOSE)


@pytest.mark.parametrize("seed", range(4))
def test_expectations_are_the_gradient_of_the_log_partition_function(seed):
    params = brute.random_params(seed, 2, (3, 2, 2), density=0.7, strength=0.6)
    layout = Layout.complete(Nodes.mixed(2, (3, 2, 2)))
    theta = to_theta(layout, Params.of_joint(params))
    expected = expectations(params)
    gradient = layout.statistics(expected.column_mean, expected.column_second)
    step = 1e-5
    for k in range(layout.n_theta):
        ends = []
        for sign in (1, -1):
            moved = theta.copy()
            moved[k] += sign * step
            ends.append(log_partition(from_theta(layout, moved).joint))
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6, abs=1e-7)


@given(models, st.integers(0, 2**20))
@many
def test_marginals_over_mixed_sets(params, seed):
    rng = np.random.default_rng(seed)
    q = len(params.n_levels)
    numbers = rng.permutation(params.n_numbers)[: rng.integers(0, params.n_numbers + 1)].tolist()
    discrete = rng.permutation(q)[: rng.integers(0, q + 1)].tolist()
    states = brute.enumerate_states(params)
    found = marginal(params, numbers, discrete)
    prob = brute.table(states, params.n_levels, discrete)
    np.testing.assert_allclose(found.prob, prob, atol=CLOSE)
    inside = states.covariance[np.ix_(numbers, numbers)]
    for state in np.ndindex(*prob.shape):
        here = (states.codes[:, discrete] == state).all(axis=1)
        if prob[state] == 0:
            assert np.isnan(found.mean[state]).all()
            continue
        weight = states.prob[here] / states.prob[here].sum()
        mean = weight @ states.mean[here][:, numbers]
        off = states.mean[here][:, numbers] - mean
        np.testing.assert_allclose(found.mean[state], mean, rtol=CLOSE, atol=CLOSE)
        covariance = inside + off.T @ (weight[:, None] * off)
        np.testing.assert_allclose(found.covariance[state], covariance, rtol=CLOSE, atol=CLOSE)
        if found.gaussian and len(numbers):
            assert np.abs(off[weight > 0]).max() < CLOSE


@given(models, st.integers(0, 2**20))
@many
def test_conditioning_gives_the_same_density_of_the_rest(params, seed):
    rng = np.random.default_rng(seed)
    states = brute.enumerate_states(params)
    x = rng.normal(size=params.n_numbers)
    y = states.codes[np.isfinite(states.log_weight)][0]
    values = {s: x[s] for s in range(params.n_numbers) if rng.random() < 0.5}
    levels = {j: int(y[j]) for j in range(len(y)) if rng.random() < 0.5}
    rest = brute.conditioned(params, values, levels)
    rest_states = brute.enumerate_states(rest)
    # The density of any row of the rest differs from the joint one by a constant.
    free = [s for s in range(params.n_numbers) if s not in values]
    left = [j for j in range(len(y)) if j not in levels]
    gaps = []
    for code in rest_states.codes[np.isfinite(rest_states.log_weight)][:6]:
        x_new, y_new = x.copy(), y.copy()
        x_new[free], y_new[left] = rng.normal(size=len(free)), code
        joint = brute.exponent(params, x_new, tuple(y_new))
        gaps.append(joint - brute.exponent(rest, x_new[free], tuple(code)))
    np.testing.assert_allclose(gaps, gaps[0], atol=CLOSE)
    # ... which with the constant of the rest is the density of what is known.
    at = list(values), list(levels)
    known = posterior(
        params, KnownColumns(*at, np.array([list(values.values())]), y[None, list(levels)])
    )
    assert known.log_weight[0] == pytest.approx(gaps[0] + rest_states.log_z, abs=CLOSE)
    np.testing.assert_allclose(known.mean[0], rest_states.prob @ rest_states.mean, atol=CLOSE)
    hot = one_hot(rest, rest_states)
    np.testing.assert_allclose(known.levels[0], rest_states.prob @ hot, atol=CLOSE)
    off = rest_states.mean - known.mean[0]
    variance = np.diagonal(rest_states.covariance) + rest_states.prob @ off**2
    np.testing.assert_allclose(known.variance[0], variance, rtol=CLOSE, atol=CLOSE)


def test_many_rows_at_once_equal_one_by_one():
    params = brute.random_params(3, 3, (3, 2, 4, 2), density=0.6, dead_level=True)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(700, 2)), rng.integers(0, 2, size=(700, 2))
    known = KnownColumns([2, 0], [3, 1], x, y)
    found, density = posterior(params, known), log_marginal(params, known)
    np.testing.assert_allclose(density, found.log_weight - log_partition(params), atol=CLOSE)
    for i in (0, 350, 699):
        rest = brute.conditioned(params, {2: x[i, 0], 0: x[i, 1]}, {3: y[i, 0], 1: y[i, 1]})
        states = brute.enumerate_states(rest)
        np.testing.assert_allclose(found.levels[i], states.prob @ one_hot(rest, states))
        np.testing.assert_allclose(found.mean[i], states.prob @ states.mean)


def test_density_of_one_column_integrates_to_one():
    params = brute.random_params(8, 2, (2, 3))
    grid = np.linspace(-40, 40, 20001)
    density = log_marginal(
        params, KnownColumns([1], [], grid[:, None], np.zeros((len(grid), 0), int))
    )
    assert np.trapezoid(np.exp(density), grid) == pytest.approx(1.0, abs=1e-8)


@given(models, st.integers(0, 2**20))
@many
def test_integrating_columns_out_keeps_the_rest(params, seed):
    out = [s for s in range(params.n_numbers) if (seed >> s) & 1]
    rest = [s for s in range(params.n_numbers) if s not in out]
    reduced, log_constant = integrate_out(params, out)
    before, after = brute.enumerate_states(params), brute.enumerate_states(reduced)
    assert after.log_z + log_constant == pytest.approx(before.log_z, abs=CLOSE)
    np.testing.assert_allclose(after.prob, before.prob, atol=CLOSE)
    np.testing.assert_allclose(after.mean, before.mean[:, rest], atol=CLOSE)
    np.testing.assert_allclose(
        after.covariance, before.covariance[np.ix_(rest, rest)], rtol=CLOSE, atol=CLOSE
    )


def test_columns_without_a_common_continuous_neighbourhood_stay_apart():
    # x0 - x3 are one connected set, x1 and x2 stand alone; each y hangs on one x.
    params = ConditionalGaussian.independent(4, (2, 2, 2, 2))
    params.precision[0, 3] = params.precision[3, 0] = 0.37
    rng = np.random.default_rng(0)
    for s in range(4):
        params.shift[s, params.levels_of(s)] = rng.normal(size=2)
    field, _ = integrate_out(params, range(4))
    joined = {
        (r, j)
        for r in range(4)
        for j in range(r)
        if field.interaction[field.levels_of(r), field.levels_of(j)].any()
    }
    assert joined == {(3, 0)}
    cliques = exact(params).tree.plan.cliques
    assert sorted(sorted(clique.columns) for clique in cliques) == [[0, 3], [1], [2]]
    np.testing.assert_array_equal(field.interaction, field.interaction.T)


def test_columns_that_do_not_exist_are_refused():
    params = ConditionalGaussian.independent(1, (2, 3))
    with pytest.raises(ParameterError, match="named twice"):
        marginal(params, [0, 0])
    with pytest.raises(ParameterError, match="state 5 does not exist; there are 2"):
        marginal(params, discrete=[5])


def test_impossible_columns_and_indefinite_precisions_are_named():
    params = ConditionalGaussian.independent(2, (2,))
    with pytest.raises(DistributionError, match="no level of columns 2 has a chance"):
        log_partition(replace(params, bias=np.full(2, -np.inf)))
    indefinite = replace(params, precision=np.array([[1.0, 2.0], [2.0, 1.0]]))
    for ask in (log_partition, expectations, lambda bad: marginal(bad, [0])):
        with pytest.raises(DistributionError, match="smallest eigenvalue is -1"):
            ask(indefinite)
    # One column given the other still has a distribution.
    assert brute.conditioned(indefinite, {0: 1.0}, {}).linear[0] == -2.0
