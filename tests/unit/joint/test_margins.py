"""Node terms that give a joint distribution the margins of a table, against enumeration."""

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.base.errors import SamplingWarning
from mixedgm.joint.exact import expectations
from mixedgm.joint.margins import ACCURACY, MOST_COLUMNS, Margins, matched
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params, Units
from tests.unit.joint import brute


def margins_of(params: Params) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, variances and level probabilities, by enumeration."""
    states = brute.enumerate_states(params.joint)
    mean = states.prob @ states.mean
    variance = np.diagonal(states.covariance) + states.prob @ (states.mean - mean) ** 2
    share = np.zeros(sum(params.n_levels))
    for codes, prob in zip(states.codes, states.prob, strict=True):
        share[params.level_start[:-1] + codes] += prob
    return mean, variance, share


def other_margins(params: Params, seed: int) -> Margins:
    """Margins that are some way from those of the model, as a misfit would have them."""
    rng = np.random.default_rng(seed)
    mean, variance, share = margins_of(params)
    mean = mean + np.sqrt(variance) * rng.normal(0.0, 0.5, len(mean))
    variance = variance * np.exp(rng.normal(0.0, 0.4, len(mean)))
    alive = share > 0.0
    share = np.where(alive, share + rng.uniform(0.1, 1.0, len(share)), 0.0)
    for discrete in range(len(params.n_levels)):
        share[params.levels_of(discrete)] /= share[params.levels_of(discrete)].sum()
    return Margins(np.concatenate([mean, share]), variance)


def assert_same_edges(before: Params, after: Params) -> None:
    off = ~np.eye(len(before.diagonal), dtype=bool)
    assert np.array_equal(before.precision[off], after.precision[off])
    assert np.array_equal(before.category_shift, after.category_shift)
    assert np.array_equal(before.cat_interaction, after.cat_interaction)


@pytest.mark.parametrize(
    ("n_gaussian", "n_levels", "strength"),
    [
        (3, (2, 3, 2), 1.0),
        (2, (4, 2, 3), 2.0),
        (0, (2, 2, 3, 2), 2.0),
        (4, (), 1.0),
        (1, (2,), 3.0),
        (2, (3, 1, 2), 1.0),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_margins_are_those_of_the_table(n_gaussian, n_levels, strength, seed):
    params = Params.of_joint(
        brute.random_params(seed, n_gaussian, n_levels, strength=strength, dead_level=seed == 2)
    )
    margins = other_margins(params, seed)
    found = matched(params, margins)
    assert found is not None
    assert found.error < 1e-10
    assert not found.sampled
    joint = found.put_into(params)
    mean, variance, share = margins_of(joint)
    scale = np.sqrt(margins.variance)
    np.testing.assert_allclose((mean - margins.mean[:n_gaussian]) / scale, 0.0, atol=1e-8)
    np.testing.assert_allclose(variance, margins.variance, rtol=1e-8)
    np.testing.assert_allclose(share, margins.share, atol=1e-8)
    assert_same_edges(params, joint)
    assert np.array_equal(np.isneginf(params.cat_bias), np.isneginf(joint.cat_bias))


def test_the_covariance_that_comes_with_them_is_that_of_the_joint_distribution():
    params = Params.of_joint(brute.random_params(4, 2, (2, 3)))
    found = matched(params, other_margins(params, 4))
    states = brute.enumerate_states(found.put_into(params).joint)
    level = np.zeros((len(states.prob), 5))
    for row, codes in zip(level, states.codes, strict=True):
        row[params.level_start[:-1] + codes] = 1.0
    z = np.hstack([states.mean, level])
    z -= states.prob @ z
    expected = (states.prob[:, None] * z).T @ z
    expected[:2, :2] += states.covariance
    np.testing.assert_allclose(found.covariance, expected, atol=1e-9)


def test_nothing_moves_where_the_margins_are_right_already():
    params = Params.of_joint(brute.random_params(1, 3, (2, 3, 2)))
    mean, variance, share = margins_of(params)
    found = matched(params, Margins(np.concatenate([mean, share]), variance))
    np.testing.assert_allclose(found.diagonal, np.diagonal(params.precision), rtol=1e-9)
    np.testing.assert_allclose(found.bias[:3], params.cont_bias, rtol=1e-9)
    np.testing.assert_allclose(found.bias[3:], params.cat_bias, rtol=1e-9, atol=1e-9)


def test_far_away_levels_and_many_states():
    """Levels of probability 1e-6 that have a third of the rows; more states than are visited."""
    params = Params.of_joint(brute.random_params(2, 2, (3,) * 9, density=0.3, strength=0.5))
    params.cat_bias[::3] -= 14.0
    margins = Margins(np.concatenate([np.zeros(2), np.full(27, 1 / 3)]), np.ones(2))
    found = matched(params, margins)
    assert found.error < 1e-8
    moments = expectations(found.put_into(params).joint)
    np.testing.assert_allclose(moments.share, 1 / 3, atol=1e-8)
    np.testing.assert_allclose(np.diagonal(moments.covariance), 1.0, atol=1e-8)


def test_units_do_not_matter():
    params = Params.of_joint(brute.random_params(5, 3, (2, 3)))
    margins = other_margins(params, 5)
    plain = matched(params, margins).put_into(params)
    units = Units(np.array([1e4, 0.0, -3.0]), np.array([1e-3, 1.0, 1e5]))
    moved = units.to_own(params)
    own = Margins(
        np.concatenate([units.centre + units.scale * margins.mean[:3], margins.share]),
        margins.variance * units.scale**2,
    )
    back = units.to_standard(matched(moved, own).put_into(moved))
    np.testing.assert_allclose(np.diagonal(back.precision), np.diagonal(plain.precision), rtol=1e-6)
    np.testing.assert_allclose(back.cont_bias, plain.cont_bias, rtol=1e-5, atol=1e-6)


def test_a_precision_that_is_not_positive_definite_has_no_node_terms():
    params = Params.independent(Nodes.mixed(2, ()))
    params.coef[0, 1] = params.coef[1, 0] = -1.5
    assert matched(params, Margins(np.zeros(2), np.ones(2))) is None


def test_wide_tables_keep_no_covariance():
    p = MOST_COLUMNS + 1
    found = matched(Params.independent(Nodes.mixed(p, ())), Margins(np.zeros(p), np.full(p, 2.0)))
    assert found.covariance is None
    np.testing.assert_allclose(found.diagonal, 0.5)


# -- sampled ---------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(3))
def test_sampled_margins_are_within_their_stated_error(seed):
    """The seed of the chains is fixed, so this fails always or never."""
    params = Params.of_joint(brute.random_params(seed, 2, (2, 3, 2, 2), strength=0.7))
    margins = other_margins(params, seed)
    found = matched(params, margins, limit=1)
    assert found.sampled
    assert 0.0 < found.error < 8.0 * ACCURACY
    mean, variance, share = margins_of(found.put_into(params))
    scale = np.sqrt(margins.variance)
    assert np.abs((mean - margins.mean[:2]) / scale).max() < found.error
    assert np.abs(variance / margins.variance - 1.0).max() < 2.0 * found.error
    assert np.abs(share - margins.share).max() < found.error
    assert_same_edges(params, found.put_into(params))
    again = matched(params, margins, limit=1)
    assert np.array_equal(again.bias, found.bias)


def test_margins_that_cannot_be_reached_are_told():
    """Two columns that chains cannot take from one agreement to the other."""
    params = Params.independent(Nodes.mixed(0, (2, 2)))
    params.cat_interaction[:] = np.kron([[0, 1], [1, 0]], 15.0 * np.eye(2))
    params.cat_bias[:] = [-8.0, 8.0, 0.0, 0.0]
    with pytest.warns(SamplingWarning, match="could not be given the margins of the table"):
        matched(params, Margins(np.full(4, 0.5), np.zeros(0)), limit=1)


@pytest.mark.statistical
@pytest.mark.parametrize("largest", [None, 3000])
def test_sampled_margins_are_near_the_exact_ones(largest):
    """Off by at most 5 of their standard errors, each at most 0.005.

    With counts up to 3,000 there are no tables of pairs of values.
    """
    rng = np.random.default_rng(0)
    latent = rng.normal(size=600)
    frame = pd.DataFrame(
        {
            "pain": np.digitize(latent + rng.normal(size=600), [-0.8, 0.5, 1.5]),
            "age": 40 + 10 * (0.5 * latent + rng.normal(size=600)),
            "visits": rng.poisson(np.exp(0.4 + 0.4 * latent)),
            "mood": np.digitize(rng.normal(size=600) - 0.6 * latent, [-0.5, 0.8]),
            "sex": np.where(latent + 2 * rng.normal(size=600) > 0, "f", "m"),
        }
    )

    def fitted(largest):
        types = {"pain": "ordinal", "mood": mg.Ordinal(thresholds="quadratic")}
        types["visits"] = mg.Count(largest=largest)
        return mg.MixedGraphicalModel(lam=0.05, types=types, tol=1e-8).fit(frame).fitted_

    known, model = fitted(None), fitted(largest)
    exact = matched(known.params, known.margins)
    found = matched(model.params, model.margins, limit=1)
    assert found.sampled
    assert found.error < 0.05
    scale = np.abs(exact.bias).max()
    np.testing.assert_allclose(found.bias, exact.bias, atol=0.15 * scale)
    np.testing.assert_allclose(found.diagonal, exact.diagonal, rtol=0.1)
