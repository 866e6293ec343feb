"""Curvature in contrasts is that of theta; steps correct it, node by node."""

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
from tests.support.problems import SCORED, draw, random_theta

TABLES = {
    "mixed": (60, 3, (2, 3, 4), True),
    "many-levels": (60, 2, (2, 4, 9), False),
    "continuous": (40, 4, (), False),
    "categorical": (60, 0, (2, 3, 4, 2, 3), True),
    "all-kinds": (80, 2, (4, 5, 8, 9, 3), True, SCORED, 2),
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


def node_gradients(smooth, theta):
    """The gradient of every node's conditional alone, by central differences of its loss."""
    nodes, rows, layout = smooth.layout.nodes, smooth.rows, smooth.layout
    start, index = layout.conditional
    out = []
    for v in range(layout.n_nodes):
        at = index[start[v] : start[v + 1]]
        one = Layout(nodes, layout.pairs, tuple(u for u in range(layout.n_nodes) if u != v))
        assert one.n_theta == layout.n_theta
        alone = Pseudolikelihood(rows, one, smooth.moments)
        slopes = []
        for k in at:
            ends = []
            for h in (-1e-5, 1e-5):
                moved = theta.copy()
                moved[k] += h
                ends.append(alone.evaluate(moved, gradient=False).value)
            slopes.append((ends[1] - ends[0]) / 2e-5)
        out.append((at, np.array(slopes)))
    return out


@pytest.mark.parametrize("working", [False, True])
def test_slopes_are_the_gradients_of_conditionals(working):
    problem = problem_of("mixed")
    smooth = problem.smooth
    theta = random_theta(smooth.layout, 2)
    every = np.arange(smooth.layout.n_groups)
    small = smooth.restrict(every)
    evaluated = (small if working else smooth).evaluate(theta)
    layout = small.layout
    slopes = evaluated.slopes.on(layout)
    entries = layout.incidence.node_entries
    for v, (at, expected) in enumerate(node_gradients(smooth, theta)):
        found = slopes[entries[v] : entries[v + 1]]
        n_own = len(at) - len(found)
        np.testing.assert_allclose(found, expected[n_own:], atol=1e-8)
        np.testing.assert_allclose(evaluated.gradient[at[:n_own]], expected[:n_own], atol=1e-8)


def test_slopes_on_a_working_set_need_sums_for_all_pairs():
    smooth = problem_of("mixed").smooth
    groups = np.arange(0, smooth.layout.n_groups, 2)
    small, other = smooth.restrict(groups), smooth.restrict(groups[1:])
    theta = random_theta(small.layout, 2)
    whole = np.zeros(smooth.layout.n_theta)
    whole[smooth.layout.positions(groups)] = theta
    own = small.evaluate(theta).slopes
    np.testing.assert_allclose(
        smooth.evaluate(whole).slopes.on(small.layout), own.on(small.layout), atol=1e-14
    )
    assert own.on(other.layout) is None


def matrices(blocks):
    ends = blocks.matrix_start
    return [
        blocks.matrices[ends[v] : ends[v + 1]].reshape(size, size)
        for v, size in enumerate(blocks.node_size)
    ]


def test_steps_correct_the_curvature_of_every_node(problem):
    """They then explain what the step changed in its own slopes: the update of BFGS."""
    smooth = problem.smooth.restrict(np.arange(0, problem.smooth.layout.n_groups, 2))
    layout = smooth.layout
    contrasts, theta = Contrasts(layout), random_theta(layout, 4)
    theta[layout.positive] = np.abs(theta[layout.positive]) + 0.5
    there = theta + 0.05 * random_theta(layout, 5)
    there[layout.positive] = np.maximum(there[layout.positive], 0.4)
    known = KnownCurvature(contrasts, flatten(contrasts, smooth, theta, 1))
    before = [matrix.copy() for matrix in matrices(known.blocks)]
    ends = [smooth.evaluate(at) for at in (theta, there)]
    slopes = [end.slopes.on(layout) for end in ends]
    change = ends[1].gradient - ends[0].gradient
    after = matrices(known.corrected(there - theta, change, slopes[1] - slopes[0]).blocks)
    for old, kept in zip(matrices(known.blocks), before, strict=True):
        np.testing.assert_array_equal(old, kept)
    # Every node's part of the contrasts, and of the slopes in theta's own coordinates.
    basis, (start, index) = basis_of(contrasts), layout.conditional
    runs, entries = contrasts.runs, layout.incidence.node_entries
    n_corrected = 0
    for v, (old, new) in enumerate(zip(before, after, strict=True)):
        own = slice(runs.ptr[v], runs.ptr[v + 1])
        columns = [
            np.arange(a, a + n) for a, n in zip(runs.position[own], runs.length[own], strict=True)
        ]
        columns = np.concatenate(columns)
        rows = index[start[v] : start[v + 1]]
        single = (slopes[1] - slopes[0])[entries[v] : entries[v + 1]]
        single = np.concatenate([change[rows[: len(rows) - len(single)]], single])
        turn = basis[np.ix_(rows, columns)]
        step, seen = contrasts.down(there - theta)[columns], turn.T @ single
        bent = old @ step
        if not layout.is_target[v] or not 0.05 < (step @ seen) / (step @ bent) < 20.0:
            np.testing.assert_array_equal(new, old)
            continue
        n_corrected += 1
        np.testing.assert_allclose(new @ step, seen, atol=1e-12)
        update = np.outer(seen, seen) / (step @ seen) - np.outer(bent, bent) / (step @ bent)
        np.testing.assert_allclose(new, old + update, atol=1e-12)
    assert n_corrected >= 2


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
