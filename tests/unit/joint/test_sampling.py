"""Draws of both kinds against enumerated probabilities; diagnostics; draws given known columns.

Every check raises a false alarm with probability 1e-4; the seeds are fixed, so a test that passes
once passes always.
"""

import numpy as np
import pytest
from scipy import stats

from mixedgm.base.errors import ParameterError, SamplingWarning, TooLargeError
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.gibbs import _correlation_time, chains, split_r_hat_and_ess
from mixedgm.joint.posteriors import posterior_draw
from mixedgm.joint.sampled import draw
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from tests.unit.joint import brute

FALSE_ALARM = 1e-4


def p_value(codes: np.ndarray, states: brute.States, n_levels: tuple[int, ...]) -> float:
    at = np.ravel_multi_index(codes.T.astype(int), n_levels)
    count = np.bincount(at, minlength=len(states.prob))
    expected = states.prob * len(codes)
    assert count[expected == 0].sum() == 0
    small = expected < 5
    seen = np.append(count[~small], count[small].sum())
    hoped = np.append(expected[~small], expected[small].sum())
    return float(stats.chisquare(seen[hoped > 0], hoped[hoped > 0]).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_levels", [(3, 2, 4, 2), (3, 2, 4, 2, 3, 2)])
def test_exact_draws_have_the_right_probabilities(seed, n_levels):
    """Cliques are joined up to 256 entries, which is all of the first tables."""
    density = 0.4 if seed % 2 else 1.0
    params = brute.random_params(seed, 2, n_levels, density=density, dead_level=seed > 2)
    rows = draw(params, 20_000, rng=np.random.default_rng(seed))
    assert rows.method == "exact"
    assert rows.notes == ()
    assert rows.codes.dtype == np.uint8
    states = brute.enumerate_states(params)
    assert p_value(rows.codes, states, params.n_levels) > FALSE_ALARM
    at = np.ravel_multi_index(rows.codes.T.astype(int), params.n_levels)
    residual = (rows.numbers - states.mean[at]) @ np.linalg.cholesky(params.precision)
    assert stats.kstest(residual.ravel(), "norm").pvalue > FALSE_ALARM
    assert abs(np.corrcoef(residual.T)[0, 1]) < 4 / np.sqrt(20_000)


@pytest.mark.statistical
def test_gibbs_when_the_tables_do_not_fit():
    params = brute.random_params(2, 1, (3, 2, 4), strength=0.4)
    rows = draw(params, 9_000, rng=np.random.default_rng(0), limit=5, thin=20)
    assert rows.method == "gibbs"
    assert rows.diagnostics is not None
    assert rows.diagnostics.good
    assert "not exact" in rows.notes[0]
    assert "R-hat at most 1.0" in rows.notes[1]
    states = brute.enumerate_states(params)
    assert p_value(rows.codes, states, params.n_levels) > FALSE_ALARM
    with pytest.raises(TooLargeError):
        draw(params, 10, rng=np.random.default_rng(0), limit=5, method="exact")


def test_equal_seeds_give_equal_rows():
    params = brute.random_params(2, 1, (3, 2, 4))
    for method in ("exact", "gibbs"):
        first, second = (
            draw(params, 50, rng=np.random.default_rng(7), method=method) for _ in range(2)
        )
        np.testing.assert_array_equal(first.numbers, second.numbers)
        np.testing.assert_array_equal(first.codes, second.codes)


def test_chains_that_do_not_mix_are_reported():
    params = ConditionalGaussian.independent(0, (2, 2))
    params.interaction[0, 2] = params.interaction[2, 0] = 12.0
    params.interaction[1, 3] = params.interaction[3, 1] = 12.0
    with pytest.warns(SamplingWarning, match=r"not mixed well \(R-hat at most .*burn_in="):
        rows = draw(params, 10, rng=np.random.default_rng(0), method="gibbs")
    assert rows.diagnostics is not None
    assert not rows.diagnostics.good


def test_wrong_options_are_refused():
    params = ConditionalGaussian.independent(1, ())
    with pytest.raises(ParameterError, match="method must be 'auto', 'exact' or 'gibbs'"):
        draw(params, 1, rng=np.random.default_rng(0), method="slow")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="n must be an integer of at least 0"):
        draw(params, -1, rng=np.random.default_rng(0))


@pytest.mark.parametrize("method", ["exact", "gibbs"])
@pytest.mark.parametrize(("n_gaussian", "n_levels"), [(3, ()), (0, (2, 300)), (1, (1, 2))])
@pytest.mark.parametrize("n", [0, 1, 70])
def test_shapes(n_gaussian, n_levels, n, method):
    params = ConditionalGaussian.independent(n_gaussian, n_levels)
    rows = draw(params, n, rng=np.random.default_rng(0), method=method)
    assert rows.numbers.shape == (n, n_gaussian)
    assert rows.codes.shape == (n, len(n_levels))


@pytest.mark.statistical
def test_draws_given_known_columns():
    params = brute.random_params(11, 2, (3, 2, 4), density=0.8, dead_level=True)
    n = 8_000
    x, y = np.tile([[0.7]], (n, 1)), np.tile([[1]], (n, 1))
    x[n // 2 :], y[n // 2 :] = -1.0, 0
    numbers, codes = posterior_draw(
        params, KnownColumns([1], [1], x, y), rng=np.random.default_rng(1)
    )
    for half, value, level in ((slice(n // 2), 0.7, 1), (slice(n // 2, n), -1.0, 0)):
        rest = brute.conditioned(params, {1: value}, {1: level})
        states = brute.enumerate_states(rest)
        assert p_value(codes[half], states, rest.n_levels) > FALSE_ALARM
        at = np.ravel_multi_index(codes[half].T, rest.n_levels)
        residual = (numbers[half] - states.mean[at]) * np.sqrt(rest.precision[0, 0])
        assert stats.kstest(residual.ravel(), "norm").pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_effective_sample_size_of_autoregressions(phi):
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((6_000, 8))
    trace = np.empty_like(noise)
    trace[0] = noise[0] / np.sqrt(1 - phi**2)
    for t in range(1, len(noise)):
        trace[t] = phi * trace[t - 1] + noise[t]
    r_hat, ess = split_r_hat_and_ess(trace)
    assert r_hat == pytest.approx(1.0, abs=0.01)
    assert ess == pytest.approx(trace.size * (1 - phi) / (1 + phi), rel=0.15)


def test_r_hat_sees_chains_that_differ_and_chains_that_drift():
    noise = np.random.default_rng(0).standard_normal((400, 4))
    assert split_r_hat_and_ess(noise + np.arange(4))[0] > 1.2
    drift = np.linspace(0, 4, 400)[:, None]  # the same in all chains: only halves can tell
    assert split_r_hat_and_ess(noise + drift)[0] > 1.2
    assert np.isnan(split_r_hat_and_ess(np.zeros((400, 4)))[0])
    stuck = np.tile(np.arange(4.0), (400, 1))
    assert split_r_hat_and_ess(stuck) == (np.inf, 8.0)


def test_geyers_sequence_stops_at_a_negative_pair_and_never_rises():
    correlation = np.array([1.0, 0.2, 0.1, 0.05, 0.3, 0.2, -0.5, -0.1, 9.0, 9.0])
    # pairs 1.2, 0.15, 0.5 -> 0.15, then stop: 2 * 1.5 - 1
    assert _correlation_time(correlation) == pytest.approx(2.0)


def test_long_chains_are_judged_by_their_end():
    params = brute.random_params(3, 1, (2, 3), strength=0.3)
    found = chains(params, 4, 3_000, rng=np.random.default_rng(0), burn_in=5)
    assert found.diagnostics.n_states == 12_000
    assert 4_000 < found.diagnostics.worst_ess < 14_000
