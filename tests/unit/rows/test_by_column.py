"""Passes that are cut by columns: the same bits for any number of threads, the same sums."""

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.rows.by_column import RowsByColumn
from mixedgm.rows.contract import Coefficients
from mixedgm.rows.memory import MUCH_WORK, MemoryRows

THREADS = (1, 2, 3, 5)


def wide_rows(*, weighted: bool = False, **options):
    """1,200 rows of 60 numbers and 80 categories of two to four levels."""
    rng = np.random.default_rng(0)
    n, p, n_levels = 1200, 60, (2, 3, 4, 3) * 20
    numbers = rng.normal(size=(n, p))
    codes = np.column_stack([rng.integers(0, k, size=n) for k in n_levels]).astype(np.uint8)
    weights = rng.random(n) if weighted else None
    return MemoryRows(numbers, codes, Nodes.mixed(p, n_levels), weights, **options)


def sparse_coefficients(rows, n_edges=400):
    rng = np.random.default_rng(1)
    complete = Layout.complete(rows.nodes)
    layout = complete.restrict(np.sort(rng.choice(complete.n_groups, n_edges, replace=False)))
    incidence = layout.incidence
    values = 0.3 * rng.normal(size=len(incidence.theta_index))
    n_values = sum(rows.nodes.n_levels)
    return Coefficients(incidence, values, rng.normal(size=n_values), layout.softmax_targets)


def parts_of(sums):
    return [sums.loss, sums.mean_terms, sums.support, sums.all_pairs]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gradient", ["none", "support", "all"])
def test_the_number_of_threads_does_not_change_a_bit(gradient, weighted):
    coef = sparse_coefficients(wide_rows())
    found = [
        parts_of(wide_rows(weighted=weighted, n_threads=k, cut_from=0).softmax(coef, gradient))
        for k in THREADS
    ]
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None and theirs is not None:
                assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gradient", ["none", "support", "all"])
def test_sums_are_those_of_passes_by_rows(gradient, weighted):
    coef = sparse_coefficients(wide_rows())
    by_column = wide_rows(weighted=weighted, cut_from=0)
    by_rows = wide_rows(weighted=weighted, cut_from=10**18)
    for ours, theirs in zip(
        parts_of(by_column.softmax(coef, gradient)),
        parts_of(by_rows.softmax(coef, gradient)),
        strict=True,
    ):
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-14)


def test_moments_and_curvature_have_the_same_bits_for_any_number_of_threads():
    coef = sparse_coefficients(wide_rows())
    nodes = np.arange(80)
    first = wide_rows(weighted=True, cut_from=0)
    moments, curvature = first.moments(), first.softmax_curvature(coef, nodes, 1)
    for k in THREADS[1:]:
        rows = wide_rows(weighted=True, n_threads=k, cut_from=0)
        assert rows.moments().mean.tobytes() == moments.mean.tobytes()
        assert rows.moments().second.tobytes() == moments.second.tobytes()
        found = rows.softmax_curvature(coef, nodes, 1)
        assert found.sums.tobytes() == curvature.sums.tobytes()


def test_first_levels_follow_from_the_others():
    rows = wide_rows(weighted=True)
    turned = RowsByColumn.of(rows.numbers, rows.codes, rows.nodes, rows.weights)
    assert len(turned.design) == 60 + sum(rows.nodes.n_levels) - 80
    np.testing.assert_allclose(turned.sums, rows.moments().mean * rows.total_weight, atol=1e-10)
    expected = np.random.default_rng(2).random((turned.kept.n_targets, rows.n_rows))
    found = turned.products(expected, 2.0, 1)
    # Level 1 of the last column, with each level of the first categorical one (columns 60 and 61).
    of_last = expected[turned.kept.place[-2]]
    for level in (0, 1):
        wanted = of_last[rows.codes[:, 0] == level].sum() / 2.0
        np.testing.assert_allclose(found[-2, 60 + level], wanted, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_edges", [0, 3, 30])
def test_what_is_expected_of_nodes_without_edges_is_the_same_in_all_rows(n_edges, weighted):
    rows = wide_rows(weighted=weighted, n_threads=2, cut_from=0)
    coef = sparse_coefficients(rows, n_edges)
    found = rows.softmax(coef, "all")
    by_rows = wide_rows(weighted=weighted, cut_from=10**18).softmax(coef, "all")
    np.testing.assert_allclose(found.all_pairs, by_rows.all_pairs, rtol=0.0, atol=1e-14)
    # Those are products of means, and to the last bits; others are not.
    means = rows.moments().mean
    has_edges = np.repeat(np.diff(coef.incidence.target_ptr)[60:] > 0, rows.nodes.n_levels)
    apart = np.abs(found.all_pairs - np.outer(means, found.mean_terms)).max(axis=0)
    assert (apart[~has_edges] <= 1e-15).all()
    assert (apart[has_edges] > 1e-6).all()


def test_moments_from_rows_turned_are_those_by_levels():
    for weighted in (False, True):
        turned = wide_rows(weighted=weighted).moments()
        by_level = wide_rows(weighted=weighted, turned_up_to=0).moments()
        np.testing.assert_allclose(turned.mean, by_level.mean, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(turned.second, by_level.second, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(turned.second, turned.second.T, rtol=0.0, atol=1e-15)


def test_only_few_rows_of_many_columns_are_turned():
    assert wide_rows()._by_column is None  # too little work
    wide = MemoryRows(
        np.zeros((1000, 200)), np.zeros((1000, 300), np.uint8), Nodes.mixed(200, (3,) * 300)
    )
    assert MUCH_WORK < 1000 * 1100 * 900
    assert wide._by_column is not None
    long = MemoryRows(np.zeros((30_000, 60)), np.zeros((30_000, 80), np.uint8), wide_rows().nodes)
    assert long._by_column is None


def test_a_path_has_the_same_bits_for_any_number_of_threads():
    """By default: the table is wide enough for passes by columns and vectors on threads."""
    rng = np.random.default_rng(0)
    n, p, q = 1200, 130, 130
    common = rng.normal(size=(n, 1))
    numbers = rng.normal(size=(n, p)) + 0.3 * common
    codes = (rng.normal(size=(n, q)) + 0.5 * common > 0.4).astype(int) + rng.integers(0, 2, (n, q))
    import pandas as pd

    table = pd.DataFrame(
        {f"x{k}": numbers[:, k] for k in range(p)}
        | {f"c{k}": pd.Categorical(codes[:, k].astype(str)) for k in range(q)}
    )
    assert n * (p + 3 * q) * 3 * q > MUCH_WORK
    found = [mg.fit_path(table, n_lams=3, lam_min_ratio=0.6, n_jobs=k) for k in THREADS]
    assert found[0].n_edges[-1] > 0
    for other in found[1:]:
        assert other.objective.tobytes() == found[0].objective.tobytes()
        assert other.kkt.tobytes() == found[0].kkt.tobytes()
        for ours, theirs in zip(found[0].points, other.points, strict=True):
            assert ours.values.tobytes() == theirs.values.tobytes()
            assert ours.node_terms.tobytes() == theirs.node_terms.tobytes()
