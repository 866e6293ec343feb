"""Bounds of the largest sum of norms, against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixedgm.diagnostics.consistency import largest_sum


def value(block, sizes, u):
    parts = np.split(block.T @ u, np.cumsum(sizes)[:-1])
    return sum(np.linalg.norm(part) for part in parts)


@pytest.mark.parametrize("sizes", [[1], [1, 1, 1], [2, 1], [3, 2, 4]])
def test_one_row_is_exact(sizes):
    block = np.random.default_rng(0).normal(size=(1, sum(sizes)))
    lower, upper = largest_sum(block, np.array(sizes))
    assert lower == upper == pytest.approx(value(block, sizes, np.ones(1)), rel=1e-12)


def test_one_part_is_its_largest_singular_value():
    block = np.random.default_rng(1).normal(size=(3, 4))
    assert largest_sum(block, np.array([4])) == pytest.approx([np.linalg.norm(block, 2)] * 2)


@pytest.mark.parametrize("seed", range(6))
def test_two_rows_agree_with_a_fine_circle(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=5)
    block = rng.normal(size=(2, sizes.sum()))
    angles = np.linspace(0.0, np.pi, 2_001)
    best = max(value(block, sizes, np.array([np.cos(a), np.sin(a)])) for a in angles)
    lower, upper = largest_sum(block, sizes)
    assert lower == pytest.approx(best, rel=1e-6)
    assert best <= upper * (1 + 1e-12)


@settings(max_examples=30)
@given(
    st.integers(0, 10_000), st.integers(2, 6), st.lists(st.integers(1, 4), min_size=1, max_size=6)
)
def test_no_direction_exceeds_the_upper_bound_and_the_lower_one_is_attained(seed, rows, sizes):
    rng = np.random.default_rng(seed)
    block = rng.normal(size=(rows, sum(sizes)))
    lower, upper = largest_sum(block, np.array(sizes))
    norms = [np.linalg.norm(part, 2) for part in np.split(block, np.cumsum(sizes)[:-1], axis=1)]
    assert lower <= upper <= sum(norms) * (1 + 1e-12)
    for u in rng.normal(size=(200, rows)):
        assert value(block, sizes, u / np.linalg.norm(u)) <= upper * (1 + 1e-12)
    # Attained: no less than any single part can reach.
    assert lower >= max(norms) * (1 - 1e-9)


def test_nothing_to_explain_with():
    assert largest_sum(np.zeros((2, 0)), np.array([], dtype=int)) == (0.0, 0.0)
    assert largest_sum(np.zeros((2, 3)), np.array([3])) == (0.0, 0.0)
