"""Grids of lam: geometric ones, given ones, and every mistake by name."""

import numpy as np
import pytest

from mixedgm.base.errors import ParameterError
from mixedgm.path.path import continued_lams, geometric_lams, given_lams


def test_geometric_grid_falls_by_equal_ratios_between_its_ends():
    found = geometric_lams(2.0, 50, 0.01)
    assert found[0] == 2.0
    assert found[-1] == pytest.approx(0.02)
    np.testing.assert_allclose(found[1:] / found[:-1], found[1] / found[0])
    assert len(found) == 50


def test_one_value_is_lam_max():
    np.testing.assert_array_equal(geometric_lams(0.7, 1, 0.01), [0.7])


def test_without_penalised_edges_the_only_value_is_zero():
    np.testing.assert_array_equal(geometric_lams(0.0, 50, 0.01), [0.0])


def test_a_grid_goes_on_at_its_ratio_down_to_the_floor():
    lams = geometric_lams(2.0, 11, 0.5)
    found = continued_lams(lams, floor=2e-3)
    np.testing.assert_array_equal(found[:11], lams)
    np.testing.assert_allclose(found[1:] / found[:-1], 0.5**0.1)
    assert 2e-3 <= found[-1] < 2e-3 / 0.5**0.1


@pytest.mark.parametrize("lams", [[0.7], [0.0], [1.0, 1e-5]])
def test_a_grid_without_a_ratio_or_below_the_floor_stays(lams):
    np.testing.assert_array_equal(continued_lams(np.array(lams), floor=1e-4), lams)


def test_given_values_are_sorted_down_without_repeats():
    np.testing.assert_array_equal(given_lams([0.1, 0.5, 0.1, 0.0]), [0.5, 0.1, 0.0])
    np.testing.assert_array_equal(given_lams(np.float32([1])), [1.0])
    np.testing.assert_array_equal(given_lams(0.3), [0.3])


@pytest.mark.parametrize("bad", [[], [0.1, -0.1], [np.nan], [0.1, np.inf], "abc", [None], ["x"]])
def test_impossible_values_are_named(bad):
    with pytest.raises(ParameterError, match=r"lams must be a .*list of numbers in \[0, inf\)"):
        given_lams(bad)
