"""Named blocks: change of units and levels without rows keep the model the same."""

import numpy as np
import pytest

from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params, Units, from_theta, with_all_levels
from tests.reference import optimality, plain
from tests.support.problems import draw, random_theta

BLOCKS = ("precision", "cont_bias", "category_shift", "cat_interaction", "cat_bias")


def random_params(n_gaussian, n_levels, seed=0):
    layout = Layout.complete(Nodes.mixed(n_gaussian, n_levels))
    return from_theta(layout, random_theta(layout, seed))


@pytest.fixture(params=[(2, (2, 3)), (3, ()), (0, (2, 4))], ids=str)
def shape(request):
    return request.param


def units_of(n_gaussian):
    rng = np.random.default_rng(1)
    return Units(rng.normal(size=n_gaussian) * 10, rng.uniform(0.01, 50, size=n_gaussian))


def test_units_there_and_back(shape):
    params, units = random_params(*shape), units_of(shape[0])
    back = units.to_own(units.to_standard(params))
    for name in BLOCKS:
        np.testing.assert_allclose(getattr(back, name), getattr(params, name), rtol=1e-9, atol=1e-9)


def test_standard_units_are_those_of_the_loops(shape):
    params, units = random_params(*shape), units_of(shape[0])
    expected = optimality.standardised(params, units.centre, units.scale)
    found = units.to_standard(params)
    for name in BLOCKS:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)


def test_change_of_units_shifts_the_loss_by_the_log_scales(shape):
    params, units = random_params(*shape), units_of(shape[0])
    table = draw(2, 20, *shape)
    there = plain.smooth(params, table.X, table.Y)
    here = plain.smooth(units.to_own(params), units.centre + units.scale * table.X, table.Y)
    assert here == pytest.approx(there + np.log(units.scale).sum(), rel=1e-10)


def test_independent_model_has_no_edges():
    params = Params.independent(Nodes.mixed(2, (2, 3)))
    assert params.nodes.n_gaussian == 2
    assert not params.coef.any()
    np.testing.assert_array_equal(params.precision, np.eye(2))
    assert [params.levels_of(j) for j in range(2)] == [slice(0, 2), slice(2, 5)]


def test_levels_without_rows_get_zero_edges_and_no_probability():
    params = random_params(2, (2, 3), seed=4)
    observed = np.array([True, False, True, True, True, True])
    wide = with_all_levels(params, observed, Nodes.mixed(params.n_cont, (3, 3)))
    assert wide.n_levels == (3, 3)
    assert np.isneginf(wide.cat_bias[1])
    assert not wide.category_shift[:, 1].any()
    assert not wide.cat_interaction[1].any()
    assert not wide.cat_interaction[:, 1].any()
    keep = np.flatnonzero(observed)
    np.testing.assert_array_equal(wide.category_shift[:, keep], params.category_shift)
    np.testing.assert_array_equal(wide.cat_interaction[np.ix_(keep, keep)], params.cat_interaction)
    np.testing.assert_array_equal(wide.cat_bias[keep], params.cat_bias)


def test_levels_without_rows_do_not_change_the_loss():
    params = random_params(2, (2, 3), seed=5)
    table = draw(6, 25, 2, (2, 3))
    observed = np.array([True, False, True, True, True, True])
    moved = table.Y.copy()
    moved[:, 0] *= 2
    wide = with_all_levels(params, observed, Nodes.mixed(params.n_cont, (3, 3)))
    narrow = plain.smooth(params, table.X, table.Y)
    assert plain.smooth(wide, table.X, moved) == pytest.approx(narrow, rel=1e-13)
