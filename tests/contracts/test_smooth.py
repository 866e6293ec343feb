"""Every smooth function of theta: value by loops, derivatives by differences, convexity, domain."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import from_theta
from mixedgm.objective.contract import Evaluation
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.objective.ridge import Ridged
from mixedgm.rows.memory import MemoryRows
from tests.reference import optimality, plain
from tests.support.problems import Table, draw, random_theta

# Rows, continuous columns, levels, weighted.
TABLES = {
    "mixed": (40, 2, (2, 3), False),
    "mixed-weighted": (40, 2, (2, 3), True),
    "many-levels": (45, 1, (2, 4, 9), False),
    "all-continuous": (30, 4, (), False),
    "all-continuous-weighted": (30, 4, (), True),
    "all-categorical": (40, 0, (2, 3, 4), False),
    "all-categorical-weighted": (40, 0, (2, 3, 4), True),
}
# Which groups of the complete layout a function is restricted to; None: not restricted.
SETS = {"full": None, "every-group": 1, "every-second": 2, "no-group": 10_000}
# With a ridge on edges and noise in numbers, or without.
RIDGED = {"plain": False, "ridged": True}


@dataclass(eq=False)
class Case:
    """A smooth function and the standardised rows that it is made of."""

    smooth: Pseudolikelihood | Ridged
    X: np.ndarray
    Y: np.ndarray
    row_weights: np.ndarray | None

    def by_loops(self, theta):
        params = from_theta(self.smooth.layout, theta)
        loss = plain.smooth(params, self.X, self.Y, self.row_weights) + self.ridge(params)
        return loss + 0.5 * float(self.noise @ theta[self.smooth.layout.diagonal])

    @property
    def noise(self):
        ridged = isinstance(self.smooth, Ridged)
        return self.smooth.numbers if ridged else np.zeros(self.smooth.layout.n_gaussian)

    def ridge(self, params):
        """Half of r |block|^2 of every pair."""
        if not isinstance(self.smooth, Ridged):
            return 0.0
        total = 0.0
        for r, (u, v) in zip(self.smooth.edges, self.smooth.layout.pairs.tolist(), strict=True):
            total += 0.5 * r * plain.norm(plain.block(params, u, v)) ** 2
        return total

    def gradient_by_loops(self, theta):
        """Gradient in theta's coordinates: minus the precision for continuous pairs."""
        layout, p = self.smooth.layout, self.X.shape[1]
        grad = optimality.gradient(from_theta(layout, theta), self.X, self.Y, self.row_weights)
        matrix = np.block(
            [[-grad.precision, grad.category_shift], [grad.category_shift.T, grad.cat_interaction]]
        )
        edges = layout.from_matrix(matrix)
        assert matrix.shape == (layout.n_columns, layout.n_columns)
        found = np.concatenate([grad.cont_bias, np.diag(grad.precision)[:p], grad.cat_bias, edges])
        for k, one in enumerate(np.eye(len(theta))):  # a quadratic, so its differences are exact
            up, down = (self.ridge(from_theta(layout, theta + sign * one)) for sign in (1, -1))
            found[k] += (up - down) / 2
        found[layout.diagonal] += 0.5 * self.noise
        return found


def standardised(table: Table):
    mean, scale = plain.mean_and_scale(table.X, table.row_weights)
    return np.ascontiguousarray((table.X - np.array(mean)) / np.array(scale))


def pseudolikelihood(table: Table) -> Pseudolikelihood:
    X = standardised(table)
    rows = MemoryRows(X, table.design.codes, table.n_levels, table.row_weights)
    return Pseudolikelihood(
        rows, Layout.complete(Nodes.mixed(X.shape[1], table.n_levels)), rows.moments()
    )


def with_ridge(smooth):
    """On two of three edges and one of two numbers, of different strengths."""
    rng = np.random.default_rng(3)
    edges = rng.uniform(0.1, 2.0, smooth.layout.n_groups)
    edges[::3] = 0.0
    numbers = rng.uniform(0.1, 2.0, smooth.layout.n_gaussian)
    numbers[1::2] = 0.0
    return Ridged(smooth, edges, numbers)


def make(table_name, every=None, ridged=False):
    table = draw(7, *TABLES[table_name])
    smooth = pseudolikelihood(table)
    if ridged:
        smooth = with_ridge(smooth)
    if every is not None:
        groups = np.arange(smooth.layout.n_groups)[every - 1 :: every]
        smooth = smooth.restrict(groups)
    return Case(smooth, standardised(table), table.Y, table.row_weights)


@pytest.fixture(params=product(TABLES, SETS, RIDGED), ids="-".join)
def case(request):
    name, which, ridged = request.param
    return make(name, SETS[which], RIDGED[ridged])


@pytest.fixture(params=product(TABLES, RIDGED), ids="-".join)
def full(request):
    name, ridged = request.param
    return make(name, ridged=RIDGED[ridged])


def test_value_equals_the_loops_over_rows(case):
    theta = random_theta(case.smooth.layout, 1)
    expected = case.by_loops(theta)
    assert case.smooth.evaluate(theta).value == pytest.approx(expected, abs=1e-10)
    assert case.smooth.evaluate(theta, gradient=False).value == pytest.approx(expected, abs=1e-10)


def test_gradient_equals_the_loops_over_rows(case):
    theta = random_theta(case.smooth.layout, 2)
    found = case.smooth.evaluate(theta).gradient
    np.testing.assert_allclose(found, case.gradient_by_loops(theta), atol=1e-12)


def test_gradient_equals_central_differences_of_the_value(case):
    theta, step = random_theta(case.smooth.layout, 3), 1e-5
    found = case.smooth.evaluate(theta).gradient
    for k, one in enumerate(np.eye(len(theta)) * step):
        up = case.smooth.evaluate(theta + one, gradient=False).value
        down = case.smooth.evaluate(theta - one, gradient=False).value
        assert found[k] == pytest.approx((up - down) / (2 * step), abs=1e-6, rel=1e-6)


def test_curvature_equals_central_differences_of_the_gradient(case):
    theta, step = random_theta(case.smooth.layout, 4), 1e-5
    hessian = case.smooth.curvature(theta).dense()
    for k, one in enumerate(np.eye(len(theta)) * step):
        up = case.smooth.evaluate(theta + one).gradient
        down = case.smooth.evaluate(theta - one).gradient
        np.testing.assert_allclose(hessian[k], (up - down) / (2 * step), atol=1e-6, rtol=1e-6)


def test_curvature_product_is_that_of_the_dense_matrix(case):
    theta = random_theta(case.smooth.layout, 5)
    curvature = case.smooth.curvature(theta)
    delta = np.random.default_rng(0).normal(size=len(theta))
    np.testing.assert_allclose(curvature.product(delta), curvature.dense() @ delta, atol=1e-10)


def test_node_curvatures_list_own_terms_then_whole_groups(case):
    layout = case.smooth.layout
    nodes = case.smooth.curvature(random_theta(layout, 6)).nodes
    assert len(nodes) == layout.n_nodes
    for v, node in enumerate(nodes):
        own = layout.node_terms_of(v)
        np.testing.assert_array_equal(node.index[: len(own)], own)
        mine = np.flatnonzero((layout.pairs == v).any(axis=1))
        at = len(own)
        for g in mine:
            group = np.arange(layout.starts[g], layout.starts[g + 1])
            np.testing.assert_array_equal(np.sort(node.index[at : at + len(group)]), group)
            at += len(group)
        assert at == len(node.index)


@pytest.mark.parametrize("size", [0.1, 0.5, 2.0])
def test_hessian_is_positive_semidefinite_everywhere(case, size):
    for seed in range(3):
        theta = random_theta(case.smooth.layout, seed, size)
        values = np.linalg.eigvalsh(case.smooth.curvature(theta).dense())
        assert values[0] >= -1e-12 * max(1.0, values[-1])


@pytest.mark.parametrize("size", [0.1, 0.5, 2.0])
def test_midpoints_lie_below_the_chord(case, size):
    rng = np.random.default_rng(1)
    for seed in range(5):
        a = random_theta(case.smooth.layout, seed, size)
        b = random_theta(case.smooth.layout, 100 + seed, size)
        t = rng.uniform(0.1, 0.9)
        between = case.smooth.evaluate(t * a + (1 - t) * b, gradient=False).value
        ends = [case.smooth.evaluate(x, gradient=False).value for x in (a, b)]
        assert between <= t * ends[0] + (1 - t) * ends[1] + 1e-12


@pytest.mark.parametrize("bad", [0.0, -1e-300, -1.0, np.nan])
def test_value_is_infinite_where_a_diagonal_is_not_positive(bad):
    case = make("mixed")
    theta = random_theta(case.smooth.layout, 8)
    theta[case.smooth.layout.diagonal.start + 1] = bad
    assert case.smooth.evaluate(theta).value == np.inf
    assert case.smooth.restrict(np.array([0])).evaluate(theta[: 9 + 1]).value == np.inf


def test_an_evaluation_without_gradient_says_so_when_asked():
    with pytest.raises(ValueError, match="without a gradient"):
        _ = Evaluation(1.0).gradient


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_restriction_is_the_full_function_with_zeros(full, seed):
    layout = full.smooth.layout
    rng = np.random.default_rng(seed)
    groups = np.flatnonzero(rng.random(layout.n_groups) < 0.5)
    index = layout.positions(groups)
    theta = np.zeros(layout.n_theta)
    theta[index] = random_theta(layout, seed)[index]
    small = full.smooth.restrict(groups)
    here, there = full.smooth.evaluate(theta), small.evaluate(theta[index])
    assert there.value == pytest.approx(here.value, abs=1e-13)
    np.testing.assert_allclose(there.gradient, here.gradient[index], atol=1e-13)
    wide = full.smooth.curvature(theta).dense()[np.ix_(index, index)]
    np.testing.assert_allclose(small.curvature(theta[index]).dense(), wide, atol=1e-13)


def test_null_is_stationary_in_the_node_terms(case):
    theta = case.smooth.null()
    layout = case.smooth.layout
    np.testing.assert_array_equal(theta[layout.edges], 0.0)
    grad = case.smooth.evaluate(theta).gradient
    np.testing.assert_allclose(grad[: layout.n_node_terms], 0.0, atol=1e-13)


@pytest.mark.parametrize("name", TABLES)
def test_null_gradient_is_twice_the_covariance(name):
    full = make(name)
    layout = full.smooth.layout
    grad = full.smooth.evaluate(full.smooth.null()).gradient
    rows = plain.rows_of(full.X, full.Y, full.row_weights)
    for g, (u, v) in enumerate(layout.pairs):
        shape = (int(layout.width[u]), int(layout.width[v]))
        cov = plain.covariance(rows, layout.n_gaussian, shape, (int(u), int(v)))
        found = grad[layout.starts[g] : layout.starts[g + 1]]
        np.testing.assert_allclose(found, -2 * np.ravel(cov), atol=1e-12)


@pytest.mark.parametrize("name", ["mixed", "mixed-weighted", "many-levels", "all-categorical"])
@pytest.mark.parametrize("which", ["full", "every-group", "every-second"])
def test_extreme_logits_stay_finite_and_right(name, which):
    case = make(name, SETS[which])
    layout = case.smooth.layout
    theta = random_theta(layout, 9, size=1.0)
    theta[layout.biases] = np.resize([800.0, -800.0, 0.0, 400.0, -799.0], layout.n_level_terms)
    here = case.smooth.evaluate(theta)
    assert here.value == pytest.approx(case.by_loops(theta), rel=1e-12)
    np.testing.assert_allclose(here.gradient, case.gradient_by_loops(theta), atol=1e-11)
    hessian = case.smooth.curvature(theta).dense()
    assert np.all(np.isfinite(hessian))
    assert np.linalg.eigvalsh(hessian)[0] >= -1e-10


def test_infinitesimal_and_huge_diagonals(full):
    layout = full.smooth.layout
    if not layout.n_gaussian:
        pytest.skip("no diagonal")
    for size in (1e-8, 1e8):
        theta = random_theta(layout, 10)
        theta[layout.diagonal] = size
        here = full.smooth.evaluate(theta)
        assert here.value == pytest.approx(full.by_loops(theta), rel=1e-9)
        expected = full.gradient_by_loops(theta)
        np.testing.assert_allclose(
            here.gradient, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max()
        )


def test_passes_are_counted_by_the_function_and_its_restrictions():
    smooth = make("mixed").smooth
    theta = smooth.null()
    before = smooth.passes
    smooth.evaluate(theta, gradient=False)
    assert smooth.passes - before == 0.5
    small = smooth.restrict(np.array([1]))
    small.evaluate(theta[smooth.layout.positions(np.array([1]))])
    assert smooth.passes - before == 1.5
    smooth.curvature(theta, stride=2)
    assert smooth.curvature_passes == 0.5
    assert smooth.n_rows == 40


def test_sampled_curvature_takes_softmax_terms_from_every_kth_row():
    table = draw(7, *TABLES["mixed-weighted"])
    case = make("mixed-weighted")
    layout, theta = case.smooth.layout, random_theta(case.smooth.layout, 11)
    sampled, exact = case.smooth.curvature(theta, stride=3), case.smooth.curvature(theta)
    for s in range(layout.n_gaussian):
        np.testing.assert_array_equal(sampled.nodes[s].matrix, exact.nodes[s].matrix)
    rows = MemoryRows(
        np.ascontiguousarray(case.X[::3]),
        np.ascontiguousarray(table.design.codes[::3]),
        table.n_levels,
        np.ascontiguousarray(case.row_weights[::3]),
    )
    thin = Pseudolikelihood(rows, layout, rows.moments()).curvature(theta)
    for v in range(layout.n_gaussian, layout.n_nodes):
        np.testing.assert_allclose(sampled.nodes[v].matrix, thin.nodes[v].matrix, atol=1e-13)
