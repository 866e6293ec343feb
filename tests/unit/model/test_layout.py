"""Offsets: theta, matrix and named blocks are the same numbers, whatever edges are permitted."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import from_theta, to_theta
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.rows.memory import MemoryRows
from tests.reference import plain
from tests.support.problems import draw, random_theta

QUICK = settings(max_examples=30)


@st.composite
def layouts(draw_value):
    """Up to seven nodes of 2 to 5 levels, with any set of edges between them."""
    n_gaussian = draw_value(st.integers(0, 4))
    n_levels = draw_value(st.lists(st.integers(2, 5), min_size=int(n_gaussian == 0), max_size=3))
    size = n_gaussian + len(n_levels)
    mask = np.zeros((size, size), dtype=bool)
    for u, v in plain.pairs(n_gaussian, len(n_levels)):
        mask[u, v] = mask[v, u] = draw_value(st.booleans())
    return Layout.complete(Nodes.mixed(n_gaussian, tuple(n_levels)), mask)


groups_seed = st.integers(0, 10_000)


def subset(layout, seed):
    chosen = np.random.default_rng(seed).random(layout.n_groups) < 0.5
    return np.flatnonzero(chosen)


@QUICK
@given(layouts())
def test_sizes_are_products_of_widths_and_tile_theta(layout):
    widths = [1] * layout.n_gaussian + list(layout.n_levels)
    sizes = [widths[u] * widths[v] for u, v in layout.pairs]
    assert layout.sizes.tolist() == sizes
    nodes = 2 * layout.n_gaussian + sum(layout.n_levels)
    assert layout.n_theta == nodes + sum(sizes)
    assert layout.starts.tolist() == [nodes + sum(sizes[:g]) for g in range(len(sizes) + 1)]
    taken = [layout.linear, layout.diagonal, layout.biases, layout.edges]
    whole = np.concatenate([np.arange(layout.n_theta)[part] for part in taken])
    np.testing.assert_array_equal(whole, np.arange(layout.n_theta))


@QUICK
@given(layouts())
def test_node_terms_partition_the_node_part(layout):
    terms = [layout.node_terms_of(v) for v in range(layout.n_nodes)]
    assert sorted(np.concatenate(terms).tolist()) == list(range(layout.n_node_terms))


@QUICK
@given(layouts(), groups_seed)
def test_theta_to_matrix_and_back(layout, seed):
    theta = random_theta(layout, seed)
    matrix = layout.to_matrix(theta)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(layout.from_matrix(matrix), theta[layout.edges])
    for v in range(layout.n_nodes):
        own = slice(layout.column_start[v], layout.column_start[v + 1])
        assert not matrix[own, own].any()


@QUICK
@given(layouts(), groups_seed)
def test_each_group_is_its_block_of_the_matrix_row_by_row(layout, seed):
    theta = random_theta(layout, seed)
    matrix = layout.to_matrix(theta)
    for g, (u, v) in enumerate(layout.pairs):
        rows = slice(layout.column_start[u], layout.column_start[u + 1])
        columns = slice(layout.column_start[v], layout.column_start[v + 1])
        group = theta[layout.starts[g] : layout.starts[g + 1]]
        np.testing.assert_array_equal(matrix[rows, columns].ravel(), group)


@QUICK
@given(layouts(), groups_seed)
def test_theta_to_params_and_back(layout, seed):
    theta = random_theta(layout, seed)
    params = from_theta(layout, theta)
    np.testing.assert_array_equal(to_theta(layout, params), theta)
    np.testing.assert_array_equal(params.precision, params.precision.T)
    np.testing.assert_array_equal(params.coef, layout.to_matrix(theta))


@QUICK
@given(layouts(), groups_seed)
def test_blocks_of_params_are_the_groups_with_the_sign_of_a_relation(layout, seed):
    theta = random_theta(layout, seed)
    params = from_theta(layout, theta)
    for g, (u, v) in enumerate(layout.pairs):
        group = theta[layout.starts[g] : layout.starts[g + 1]]
        block = np.array(plain.block(params, int(u), int(v)))
        np.testing.assert_array_equal(block.ravel(), -group if v < layout.n_gaussian else group)
        np.testing.assert_array_equal(params.block(u, v).ravel(), group)
        np.testing.assert_array_equal(params.block(v, u), params.block(u, v).T)


@QUICK
@given(layouts(), groups_seed)
def test_restriction_reads_the_same_numbers_at_its_positions(layout, seed):
    theta, groups = random_theta(layout, seed), subset(layout, seed)
    small, index = layout.restrict(groups), layout.positions(groups)
    assert len(index) == small.n_theta
    assert np.all(np.diff(index) > 0)
    np.testing.assert_array_equal(small.pairs, layout.pairs[groups])
    kept = np.zeros(layout.n_theta)
    kept[index] = theta[index]
    np.testing.assert_array_equal(small.to_matrix(theta[index]), layout.to_matrix(kept))
    np.testing.assert_array_equal(
        small.group_norms(theta[index]), layout.group_norms(theta)[groups]
    )


@QUICK
@given(layouts(), groups_seed)
def test_group_norms_and_spread(layout, seed):
    theta = random_theta(layout, seed)
    norms = [
        np.linalg.norm(theta[a:b])
        for a, b in zip(layout.starts[:-1], layout.starts[1:], strict=True)
    ]
    np.testing.assert_allclose(layout.group_norms(theta), norms, rtol=1e-14)
    spread = layout.spread(np.arange(layout.n_groups, dtype=float))
    counts = np.bincount(spread.astype(int), minlength=layout.n_groups)[: layout.n_groups]
    np.testing.assert_array_equal(counts, layout.sizes)


@QUICK
@given(layouts())
def test_every_edge_parameter_appears_in_exactly_two_conditionals(layout):
    seen = np.bincount(layout.incidence.theta_index, minlength=layout.n_theta)
    np.testing.assert_array_equal(seen[: layout.n_node_terms], 0)
    np.testing.assert_array_equal(seen[layout.n_node_terms :], 2)


@QUICK
@given(layouts(), groups_seed)
def test_incidence_stands_where_it_says_in_the_matrix(layout, seed):
    theta, incidence = random_theta(layout, seed), layout.incidence
    matrix = layout.to_matrix(theta)
    values = theta[incidence.theta_index]
    np.testing.assert_array_equal(matrix[incidence.entry_column, incidence.entry_target], values)


@QUICK
@given(layouts())
def test_incidence_lists_the_neighbours_of_every_node(layout):
    incidence, width = layout.incidence, layout.width
    neighbours = {v: [] for v in range(layout.n_nodes)}
    for u, v in layout.pairs.tolist():
        neighbours[u].append(v)
        neighbours[v].append(u)
    for v in range(layout.n_nodes):
        first, last = incidence.target_ptr[v], incidence.target_ptr[v + 1]
        assert incidence.predictor[first:last].tolist() == sorted(neighbours[v])
        sizes = np.diff(incidence.entry_ptr[first : last + 1])
        np.testing.assert_array_equal(sizes, [width[u] * width[v] for u in sorted(neighbours[v])])
        entries = incidence.entries_of(v)
        node = layout.column_node[incidence.entry_target[entries]]
        assert np.all(node == v)


@QUICK
@given(layouts(), groups_seed)
def test_centring_leaves_the_smooth_value_unchanged(layout, seed):
    table = draw(seed, 12, layout.n_gaussian, layout.n_levels)
    rows = MemoryRows(table.X, table.design.codes, layout.nodes)
    smooth = Pseudolikelihood(rows, layout, rows.moments())
    theta, groups = random_theta(layout, seed), subset(layout, seed)
    centred = layout.centred(theta, groups)
    before, after = smooth.evaluate(theta), smooth.evaluate(centred)
    np.testing.assert_allclose(after.value, before.value, rtol=1e-10)


@QUICK
@given(layouts(), groups_seed)
def test_centred_groups_and_biases_sum_to_zero_and_others_stay(layout, seed):
    theta, groups = random_theta(layout, seed), subset(layout, seed)
    before = theta.copy()
    centred = layout.centred(theta, groups)
    np.testing.assert_array_equal(theta, before)
    for g in range(layout.n_groups):
        u, v = layout.pairs[g]
        part = slice(layout.starts[g], layout.starts[g + 1])
        block = centred[part].reshape(layout.width[u], layout.width[v])
        if g not in groups:
            np.testing.assert_array_equal(centred[part], before[part])
            continue
        for axis, width in ((1, layout.width[v]), (0, layout.width[u])):
            if width > 1:
                np.testing.assert_allclose(block.sum(axis=axis), 0.0, atol=1e-13)
    for v in range(layout.n_gaussian, layout.n_nodes):
        assert abs(centred[layout.node_terms_of(v)].sum()) <= 1e-12


def by_a_plain_loop(layout, theta, groups):
    """`Layout.centred`, one group after the other."""
    theta = theta.copy()
    for g in groups.tolist():
        u, v = layout.pairs[g].tolist()
        run = theta[layout.starts[g] : layout.starts[g + 1]]
        blocks = run.reshape(-1, layout.width[u], layout.width[v])
        for node, axis in ((u, 1), (v, 0)):
            has_levels = blocks.shape[1 + axis] > 1
            if layout.moderator[g] < 0 and has_levels and not (node == u and layout.nodewise):
                terms = layout.node_terms_of(node)[: layout.width[node]]
                theta[terms] += blocks[0].mean(axis=axis)
        for axis in (2, 1):
            if blocks.shape[axis] > 1:
                blocks -= blocks.mean(axis=axis, keepdims=True)
    for v in range(layout.n_gaussian, layout.n_nodes):
        theta[layout.node_terms_of(v)] -= theta[layout.node_terms_of(v)].mean()
    return theta


@QUICK
@given(layouts(), groups_seed, st.sampled_from(["joint", "nodewise", "covariate", "moderated"]))
def test_centring_all_groups_at_once_is_centring_them_one_by_one(layout, seed, form):
    size = layout.n_nodes
    if form == "nodewise":
        layout = Layout.complete(layout.nodes, nodewise=True)
    elif form == "covariate":
        layout = Layout.complete(layout.nodes, covariates=(size - 1,))
    elif form == "moderated":
        layout = Layout.complete(layout.nodes, covariates=(0,))
        layout = layout.moderated((2,), np.zeros((1, size, size), dtype=bool))
    theta = random_theta(layout, seed)
    for groups in (subset(layout, seed), np.arange(layout.n_groups)):
        expected = by_a_plain_loop(layout, theta, groups)
        np.testing.assert_allclose(layout.centred(theta, groups), expected, atol=1e-13)


def test_absent_edges_are_not_in_the_layout():
    absent = np.zeros((3, 3), dtype=bool)
    absent[0, 2] = absent[2, 0] = True
    assert Layout.complete(Nodes.mixed(2, (3,)), absent).pairs.tolist() == [[0, 1], [1, 2]]


def test_restricted_layouts_are_shared_and_pickle_without_what_they_computed():
    layout = Layout.complete(Nodes.mixed(2, (2, 3)))
    few = layout.restrict(np.array([0, 3]))
    assert layout.restrict(np.array([0, 3])) is few
    assert few.pairs.tolist() == layout.pairs[[0, 3]].tolist()
    for bits in range(1, 9):
        layout.restrict(np.flatnonzero([bits >> k & 1 for k in range(6)]))
    assert layout.restrict(np.array([0, 3])) is not few, "only the last few are kept"
    bare = len(pickle.dumps(Layout.complete(Nodes.mixed(2, (2, 3)))))
    assert layout.incidence.theta_index.size
    assert len(pickle.dumps(layout)) == bare
    again = pickle.loads(pickle.dumps(layout))
    assert again.same(layout)
    assert again.starts.tolist() == layout.starts.tolist()


@pytest.mark.parametrize(
    "other",
    [
        Layout.complete(Nodes.mixed(2, (2, 2))),
        Layout.complete(Nodes.mixed(1, (2, 3))),
        Layout.complete(Nodes.mixed(2, (2, 3, 2))),
    ],
)
def test_layouts_of_other_nodes_or_edges_are_not_the_same(other):
    layout = Layout.complete(Nodes.mixed(2, (2, 3)))
    assert not layout.same(other)
    assert not layout.same(layout.restrict(np.array([0, 1])))
    assert layout.same(Layout.complete(Nodes.mixed(2, (2, 3))))


# -- the same edges in other layouts ---------------------------------------------------------------


def named(layout, groups=None):
    groups = range(layout.n_groups) if groups is None else groups
    return [(*layout.pairs[g].tolist(), int(layout.moderator[g])) for g in groups]


@QUICK
@given(layouts(), groups_seed, groups_seed)
def test_edges_are_the_same_in_all_layouts_of_the_columns(layout, first, second):
    """Against sets of plain tuples; pairs of one of them come in any order, as appended ones do."""
    here = layout.restrict(subset(layout, first))
    order = np.random.default_rng(second).permutation(subset(layout, second))
    there = Layout(layout.nodes, layout.pairs[order])
    both = set(named(here)) & set(named(there))
    groups = there.groups_of(here.triples)
    assert set(named(there, groups)) == both
    assert groups.tolist() == sorted(groups.tolist())
    if both == set(named(here)):
        assert named(there, there.numbers_of(here.triples)) == named(here)
    else:
        with pytest.raises(LookupError, match="no group for"):
            there.numbers_of(here.triples)


def test_separate_regressions_have_directions_and_pairs_have_none():
    nodes = Nodes.mixed(3, ())
    directed, pairs = Layout.complete(nodes, nodewise=True), Layout.complete(nodes)
    back = directed.numbers_of(np.array([[2, 0, -1]]))
    assert named(directed, back) == [(2, 0, -1)]
    assert named(pairs, pairs.numbers_of(directed.triples[back])) == [(0, 2, -1)]
    assert pairs.groups_of(directed.triples).tolist() == [0, 1, 2]


def test_a_deviation_is_not_its_edge():
    nodes = Nodes.mixed(3, ())
    none = np.zeros((2, 3, 3), dtype=bool)
    moderated = Layout.complete(nodes, covariates=(2,)).moderated((1, 1), none)
    found = moderated.numbers_of(np.array([[1, 0, 1], [0, 1, -1], [0, 1, 0]]))
    assert named(moderated, found) == [(0, 1, 1), (0, 1, -1), (0, 1, 0)]
    assert Layout.complete(nodes).groups_of(moderated.triples[found]).tolist() == [0]
