"""Curvature in contrasts is that of theta; carried to another working set it keeps what it knew."""

import numpy as np
import pytest

from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.rows.memory import MemoryRows
from mixedgm.solve.contrasts import Contrasts, _triangle, _turn_triangles
from mixedgm.solve.curvature import KnownCurvature, flatten
from mixedgm.solve.subproblem import ActiveSystem
from tests.support.moderated import moderated_task
from tests.support.problems import draw, random_theta

TABLES = {
    "mixed": (60, 3, (2, 3, 4), True),
    "many-levels": (60, 2, (2, 4, 9), False),
    "continuous": (40, 4, (), False),
    "categorical": (60, 0, (2, 3, 4, 2, 3), True),
}


def problem_of(name):
    if name == "moderated":
        return moderated_task(draw(3, 80, 3, (2, 3, 3), True), (0, 4)).problem(0.1)
    if name == "nodewise":
        return draw(3, *TABLES["mixed"]).task(loss="nodewise").problem(0.1)
    return draw(3, *TABLES[name]).task().problem(0.1)


@pytest.fixture(params=[*TABLES, "moderated", "nodewise"])
def problem(request):
    return problem_of(request.param)


def assembled(blocks, n):
    """The sum of all node matrices, by where their runs stand among the contrasts."""
    ptr, local, position, length = blocks.runs
    out = np.zeros((n, n))
    for v, size in enumerate(blocks.node_size):
        start = blocks.matrix_start[v]
        matrix = blocks.matrices[start : start + size**2].reshape(size, size)
        index = np.full(size, -1)
        for k in range(ptr[v], ptr[v + 1]):
            index[local[k] : local[k] + length[k]] = position[k] + np.arange(length[k])
        assert (index >= 0).all()
        out[np.ix_(index, index)] += matrix
    return out


def basis_of(contrasts):
    return np.array([contrasts.up(one) for one in np.eye(contrasts.reduced.n_theta)]).T


def test_contrasts_are_a_change_of_coordinates(problem):
    smooth = problem.smooth
    contrasts, theta = Contrasts(smooth.layout), random_theta(smooth.layout, 1)
    basis = basis_of(contrasts)
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    blocks = flatten(contrasts, smooth, theta, 1)
    found = assembled(blocks, contrasts.reduced.n_theta)
    expected = basis.T @ smooth.curvature(theta).dense() @ basis
    np.testing.assert_allclose(found, expected, atol=1e-12)
    check_eigen(blocks, found)


def check_eigen(blocks, matrix):
    """Every block's eigendecomposition is that of its square on the diagonal."""
    for b, (start, size) in enumerate(zip(blocks.start, blocks.size, strict=True)):
        at = blocks.eigen_start[b]
        vectors = blocks.eigen[1][at : at + size**2].reshape(size, size)
        values = blocks.eigen[2][start : start + size]
        square = matrix[start : start + size, start : start + size]
        # Directions without curvature get a little, so that steps along them stay finite.
        np.testing.assert_allclose(vectors * values @ vectors.T, square, atol=1e-9)


def test_what_was_known_is_carried_over_and_new_groups_get_their_mean(problem):
    n_groups = problem.smooth.layout.n_groups
    before = np.arange(0, n_groups, 2)
    small = problem.restrict(before)
    theta = random_theta(small.smooth.layout, 4)
    contrasts = Contrasts(small.smooth.layout)
    blocks = flatten(contrasts, small.smooth, theta, 1)
    known = KnownCurvature(contrasts, blocks)
    groups = np.union1d(before[1:], [1])  # one is gone, one is new
    larger = problem.restrict(groups)
    carried = known.extended(before, groups, larger)
    assert carried.rough
    layout, old_layout = carried.contrasts.reduced, contrasts.reduced
    new = assembled(carried.blocks, layout.n_theta)
    old = assembled(blocks, old_layout.n_theta)
    kept = np.flatnonzero(np.isin(groups, before))
    here = layout.positions(kept)
    there = old_layout.positions(np.searchsorted(before, groups[kept]))
    np.testing.assert_array_equal(new[np.ix_(here, here)], old[np.ix_(there, there)])
    check_eigen(carried.blocks, new)
    fresh = int(np.searchsorted(groups, 1))
    own = np.arange(layout.starts[fresh], layout.starts[fresh + 1])
    times = np.count_nonzero(carried.blocks.touch_node[carried.blocks.n_node_blocks + fresh] >= 0)
    level = times * larger.yardstick[fresh] ** 2 / max(1, len(own))
    np.testing.assert_allclose(new[np.ix_(own, own)], level * np.eye(len(own)), atol=1e-15)
    assert not new[np.ix_(own, here)].any()


def test_damping_adds_the_curvature_of_independent_columns(problem):
    smooth = problem.smooth
    contrasts, theta = Contrasts(smooth.layout), random_theta(smooth.layout, 4)
    known = KnownCurvature(contrasts, flatten(contrasts, smooth, theta, 1))
    layout = contrasts.reduced
    before = assembled(known.blocks, layout.n_theta)
    blocks = known.damped(0.5, problem.yardstick)
    added = assembled(blocks, layout.n_theta) - before
    np.testing.assert_array_equal(assembled(known.blocks, layout.n_theta), before)
    check_eigen(blocks, before + added)
    np.testing.assert_allclose(added, np.diag(np.diag(added)), atol=1e-12)
    own = slice(0, layout.n_node_terms)
    np.testing.assert_allclose(np.diag(added)[own], 0.125, atol=1e-12)
    n_terms = np.count_nonzero(known.blocks.touch_node[known.blocks.n_node_blocks :] >= 0, axis=1)
    per_group = 0.5 * n_terms * problem.yardstick**2 / np.maximum(1, layout.sizes)
    np.testing.assert_allclose(np.diag(added)[layout.edges], layout.spread(per_group), atol=1e-12)


def test_nothing_is_carried_where_most_groups_are_new():
    problem = problem_of("mixed")
    small = problem.restrict(np.array([0]))
    contrasts = Contrasts(small.smooth.layout)
    theta = random_theta(small.smooth.layout, 4)
    known = KnownCurvature(contrasts, flatten(contrasts, small.smooth, theta, 1))
    groups = np.arange(5)
    assert known.extended(np.array([0]), groups, problem.restrict(groups)) is None


def test_a_final_evaluation_is_the_one_that_the_certificate_needs(problem):
    groups = np.arange(0, problem.smooth.layout.n_groups, 3)
    small = problem.restrict(groups)
    theta = random_theta(small.smooth.layout, 5, 0.1)
    plain = small.evaluate(theta)
    final = small.evaluate(theta, final=True)
    assert final.value == pytest.approx(plain.value, abs=1e-12)
    np.testing.assert_allclose(final.gradient, plain.gradient, atol=1e-12)
    before = problem.smooth.passes
    certificate = problem.optimality(problem.embedded(small.index, theta))
    assert problem.smooth.passes == before
    # Elsewhere it is computed anew.
    other = problem.optimality(problem.embedded(small.index, 1.01 * theta))
    assert other.objective != certificate.objective
    again = problem.optimality(problem.embedded(small.index, theta))
    assert again.objective == certificate.objective


def test_columns_that_do_not_vary_have_no_contrasts():
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, n, 50) for n in (2, 1, 3)]).astype(np.uint8)
    nodes = Nodes.mixed(1, (2, 1, 3))
    rows = MemoryRows(np.ascontiguousarray(rng.normal(size=(50, 1))), codes, nodes)
    layout = Layout(nodes, np.array([[0, 1], [0, 3], [1, 3]]))
    smooth = Pseudolikelihood(rows, layout, rows.moments())
    contrasts, theta = Contrasts(layout), random_theta(layout, 1)
    basis = basis_of(contrasts)
    found = assembled(flatten(contrasts, smooth, theta, 1), contrasts.reduced.n_theta)
    np.testing.assert_allclose(found, basis.T @ smooth.curvature(theta).dense() @ basis, atol=1e-12)


@pytest.mark.parametrize("n_levels", [2, 3, 26])
def test_triangles_of_many_levels_are_turned_one_by_one(n_levels):
    """Without a matrix as large as the fourth power of the number of levels."""
    packed = np.random.default_rng(0).normal(size=(7, n_levels * (n_levels - 1) // 2))
    out = np.empty_like(packed)
    _turn_triangles(packed, n_levels, out)
    np.testing.assert_allclose(out, packed @ _triangle(n_levels), atol=1e-12)


@pytest.mark.parametrize("every", [1, 2])
def test_products_with_the_curvature_of_some_groups(problem, every):
    layout = Contrasts(problem.smooth.layout).reduced
    contrasts, theta = Contrasts(problem.smooth.layout), random_theta(problem.smooth.layout, 6)
    blocks = flatten(contrasts, problem.smooth, theta, 1)
    active = np.arange(0, layout.n_groups, every)
    index = layout.positions(active)
    where = np.full(layout.n_theta, -1)
    where[index] = np.arange(len(index))
    system = ActiveSystem(blocks, where, layout.restrict(active), active, largest=0)
    delta = np.random.default_rng(0).normal(size=len(index))
    matrix = assembled(blocks, layout.n_theta)[np.ix_(index, index)]
    np.testing.assert_allclose(system.product(delta), matrix @ delta, atol=1e-12)
