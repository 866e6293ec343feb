"""Every store of rows: moments, softmax and curvature equal the dense formulas."""

from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.diagnostics.states import StateRows
from mixedgm.diagnostics.truth import truth_of
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.rows.contract import Coefficients
from mixedgm.rows.memory import MemoryRows
from tests.support import dense
from tests.support.moderated import moderated_task, written_out
from tests.support.problems import draw, random_theta
from tests.unit.diagnostics import by_hand
from tests.unit.joint import brute

# Rows, continuous columns, levels, pairs kept (None: all), weighted.
TABLES = {
    "mixed": (200, 3, (2, 3, 9), None, False),
    "mixed-weighted": (200, 3, (2, 3, 9), None, True),
    "few-edges": (300, 4, (2, 5, 3, 2, 4, 2, 3, 7), [(0, 5), (4, 5), (5, 9), (7, 11)], False),
    "few-edges-weighted": (300, 4, (2, 5, 3, 2, 4, 2, 3, 7), [(0, 5), (4, 5), (7, 11)], True),
    "no-edges": (50, 2, (2, 4), [], False),
    "all-categorical": (150, 0, (2, 3, 4), None, False),
    "all-categorical-weighted": (150, 0, (2, 3, 4), None, True),
    "one-categorical": (40, 3, (5,), None, False),
    "one-level": (60, 2, (1, 3, 2), None, True),
    "many-columns": (700, 20, (3,) * 20, None, False),
    "many-rows": (9000, 2, (7, 2, 5, 4, 9), None, False),
    "many-rows-weighted": (9000, 2, (7, 2, 5, 4, 9), [(0, 2), (2, 6), (3, 6), (4, 5)], True),
}
# Rows, continuous columns, levels, weighted; moderators; which groups are kept.
MODERATED = {
    "number": ((80, 3, (2, 3), False), (0,), 1),
    "binary": ((80, 2, (2, 3), True), (2,), 1),
    "many-levels": ((90, 2, (3, 8, 4), False), (3,), 3),
    "both-kinds": ((80, 3, (2, 3, 4), True), (0, 5), 1),
    "both-kinds-few": ((80, 3, (2, 3, 4), True), (0, 5), 3),
    "moderated-categorical": ((80, 0, (2, 3, 4), True), (2,), 1),
    "moderated-blocks": ((3000, 2, (2, 3, 7), True), (0, 3), 1),
}
# Continuous columns, levels and density of a model, all of whose states are rows.
DISTRIBUTIONS = {
    "states": (2, (2, 3), 1.0),
    "states-of-levels": (0, (2, 3, 2), 1.0),
    "states-few-edges": (1, (2, 4, 3), 0.4),
}
SHAPES = (*TABLES, *MODERATED, *DISTRIBUTIONS)

# Threads, and how curvature is summed: as is expected to be faster, by BLAS, or level by level.
MEMORY = {
    "memory": {},
    "memory-blas": {"n_threads": 2, "blas_cost": 0.0},
    "memory-levels": {"n_threads": 3, "blas_cost": 1e9},
}
STORES = (*MEMORY, "states")
EVERY = [(s, shape) for s in STORES for shape in (DISTRIBUTIONS if s == "states" else SHAPES)]
FEW = [(store, "mixed") for store in MEMORY] + [("states", "states")]


@dataclass(eq=False)
class Case:
    """Rows, coefficients, and the same thing as dense matrices."""

    rows: MemoryRows | StateRows
    table: tuple
    Z: np.ndarray
    layout: Layout
    theta: np.ndarray
    known: dict = field(default_factory=dict)

    @property
    def coef(self):
        layout = self.layout
        values, bias = self.theta[layout.incidence.theta_index], self.theta[layout.biases]
        return Coefficients(layout.incidence, values, bias, layout.softmax_targets)

    @property
    def nodes(self):
        return self.layout.softmax_targets

    @property
    def tol(self):
        """Rounding; of expectations over states, the error exp(-25) that they are computed to."""
        return 1e-10 if isinstance(self.rows, StateRows) else 1e-13

    @property
    def own(self):
        """Which levels are predicted: what is returned for others means nothing."""
        return np.repeat(self.layout.is_target, self.layout.width)[self.layout.n_gaussian :]

    @property
    def share(self):
        return dense.shares(len(self.Z), self.table[2])

    @cached_property
    def prob(self):
        coef = self.layout.to_matrix(self.theta)[:, self.layout.n_gaussian :]
        return dense.probabilities(self.theta[self.layout.biases] + self.Z @ coef, self.table[1])

    @property
    def loss(self):
        hot = dense.indicators(self.table[0], self.table[1])
        by_level = -self.share @ np.where(hot > 0, self.prob[1], 0.0)
        return np.array([by_level[own].sum() for own in dense.level_slices(self.table[1])])

    @property
    def product(self):
        return self.Z.T @ (self.share[:, None] * self.prob[0])


def make(store, shape, size=0.5):
    case = states_of(shape, store == "states") if shape in DISTRIBUTIONS else table_of(shape, size)
    return replace(case, rows=replace(case.rows, **MEMORY.get(store, {})))


@cache
def table_of(shape, size):
    if shape in MODERATED:
        given, moderators, every = MODERATED[shape]
        table = draw(7, *given)
        task = moderated_task(table, moderators)
        rows = task.smooth.rows
        layout = task.layout.restrict(np.arange(task.layout.n_groups)[::every])
        Z = written_out(task, table)
    else:
        n, p, n_levels, pairs, weighted = TABLES[shape]
        table = draw(0, n, p, n_levels, weighted)
        X = (table.X - table.X.mean(axis=0)) / table.X.std(axis=0)
        layout = Layout.complete(Nodes.mixed(p, n_levels))
        if pairs is not None:
            layout = Layout(
                Nodes.mixed(p, n_levels), np.array(pairs, dtype=np.int64).reshape(-1, 2)
            )
        rows = MemoryRows(X, table.design.codes, n_levels, table.row_weights)
        Z = np.hstack([X, dense.indicators(table.Y, n_levels)])
    codes = (table.Y, table.n_levels, table.row_weights)
    return Case(rows, codes, Z, layout, random_theta(layout, 1, size))


@cache
def states_of(shape, as_states):
    """A model's states, or the table of them, with Gauss-Hermite points for x."""
    p, n_levels, density = DISTRIBUTIONS[shape]
    params = mg.Params.of_joint(brute.random_params(1, p, n_levels, density=density, strength=0.8))
    kinds = {f"x{s}": "continuous" for s in range(p)} | {f"y{j}": n for j, n in enumerate(n_levels)}
    fitted, rng = mg.from_params(kinds, params).fitted_, np.random.default_rng(0)
    truth = truth_of(fitted, loss="pseudolikelihood", weights="calibrated", n_draws=10, rng=rng)
    table = by_hand.Rows(truth.params, n_points=60)
    layout = truth.layout.restrict(np.flatnonzero(truth.layout.group_norms(truth.theta)))
    rows = MemoryRows(table.numbers, table.codes.astype(np.uint8), n_levels, table.weight)
    Z = np.hstack([table.numbers, dense.indicators(table.codes, n_levels)])
    codes = (table.codes, n_levels, table.weight)
    return Case(truth.rows if as_states else rows, codes, Z, layout, random_theta(layout, 1))


@pytest.fixture(params=EVERY, ids="-on-".join)
def case(request):
    return make(*request.param)


@pytest.fixture(params=FEW, ids="-on-".join)
def few(request):
    return make(*request.param)


def test_moments_are_those_of_the_columns_written_out(case):
    found, Z, share = case.rows.moments(), case.Z, case.share
    np.testing.assert_allclose(found.mean, share @ Z, atol=1e-13)
    np.testing.assert_allclose(found.second, Z.T @ (share[:, None] * Z), atol=1e-12)
    weights = case.table[2]
    total = len(Z) if weights is None else weights.sum()
    assert found.total_weight == pytest.approx(total, rel=1e-14)


def test_moments_without_categorical_columns():
    X = np.random.default_rng(0).normal(size=(30, 3))
    found = MemoryRows(X, np.zeros((30, 0), dtype=np.uint8), (), None).moments()
    np.testing.assert_allclose(found.mean, X.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(found.second, X.T @ X / 30, atol=1e-14)


def test_a_pass_returns_what_is_asked_and_the_dense_sums(case):
    value, support, every = (case.rows.softmax(case.coef, w) for w in ("none", "support", "all"))
    assert value.mean_prob is value.support is value.all_pairs is None
    assert support.all_pairs is every.support is None
    loss = case.loss[case.nodes]
    for found in (value, support, every):
        np.testing.assert_allclose(found.loss[case.nodes], loss, rtol=10 * case.tol)
    product, mean = case.product, case.share @ case.prob[0]
    for found in (support, every):
        np.testing.assert_allclose(found.mean_prob[case.own], mean[case.own], atol=case.tol)
    np.testing.assert_allclose(every.all_pairs[:, case.own], product[:, case.own], atol=case.tol)
    p, incidence = case.layout.n_gaussian, case.layout.incidence
    discrete = incidence.entry_target >= p
    expected = np.zeros(len(case.coef.values))
    at = incidence.entry_column[discrete], incidence.entry_target[discrete] - p
    expected[discrete] = product[at]
    np.testing.assert_allclose(support.support, expected, atol=case.tol)


def dense_curvature(case, cat, stride=1):
    """Second derivative over (biases, entries): mean of f_a f_b (diag P - P P')."""
    if (cat, stride) in case.known:
        return case.known[cat, stride]
    incidence, p = case.layout.incidence, case.layout.n_gaussian
    entries, levels = incidence.entries_of(p + cat), dense.level_slices(case.table[1])[cat]
    width = levels.stop - levels.start
    level = np.r_[np.arange(width), incidence.entry_target[entries] - p - levels.start]
    features = case.Z[::stride, incidence.entry_column[entries]]
    features = np.hstack([np.ones((len(features), width)), features])
    share = case.share[::stride] / case.share[::stride].sum()
    chosen = case.prob[0][::stride, levels][:, level]
    out = features.T @ (share[:, None] * chosen * features) * (level[:, None] == level)
    moved = features * chosen
    case.known[cat, stride] = out - moved.T @ (share[:, None] * moved)
    return case.known[cat, stride]


@pytest.mark.parametrize("stride", [1, 3])
def test_curvature_of_every_node(case, stride):
    found = case.rows.softmax_curvature(case.coef, case.nodes, stride)
    assert len(found) == len(case.nodes)
    every = 1 if isinstance(case.rows, StateRows) else stride
    for cat, matrix in zip(case.nodes, found, strict=True):
        np.testing.assert_allclose(matrix, dense_curvature(case, cat, every), atol=case.tol)


def test_curvature_of_chosen_nodes_in_the_order_asked(few):
    every = few.rows.softmax_curvature(few.coef, few.nodes, 1)
    found = few.rows.softmax_curvature(few.coef, few.nodes[[-1, 0]], 1)
    np.testing.assert_array_equal(found[0], every[-1])
    np.testing.assert_array_equal(found[1], every[0])


def answers(rows, case, stride=2):
    """Everything that a store can say, as one list of arrays."""
    moments = rows.moments()
    every = [rows.softmax(case.coef, want) for want in ("none", "support", "all")]
    curvature = rows.softmax_curvature(case.coef, case.nodes, stride)
    arrays = [moments.mean, moments.second, *(sums.loss for sums in every)]
    arrays += [every[1].mean_prob, every[1].support, every[2].mean_prob, every[2].all_pairs]
    return [*arrays, *curvature]


def assert_same_bits(*stores, case):
    one, *others = (answers(rows, case) for rows in stores)
    for other in others:
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("store", ["memory-blas", "memory-levels"])
@pytest.mark.parametrize("shape", SHAPES)
def test_results_do_not_depend_on_the_number_of_threads(store, shape):
    case = make(store, shape)
    assert_same_bits(*(replace(case.rows, n_threads=k) for k in (1, 2, 3)), case=case)


def test_weights_that_are_not_whole_numbers_do_not_depend_on_threads():
    """Columns of few and of many levels are added up in blocks of different lengths."""
    rng = np.random.default_rng(0)
    for levels in ((2, 9, 3, 12, 2, 2, 7, 5), (12, 2, 2, 2, 2, 2, 2, 9)):
        table, layout = draw(0, 5000, 6, levels), Layout.complete(Nodes.mixed(6, levels))
        data = (table.X, table.design.codes, levels, rng.random(5000))
        case = Case(None, (table.Y, levels, None), table.X, layout, random_theta(layout, 1))
        assert_same_bits(*(MemoryRows(*data, n_threads=k) for k in (1, 2, 3)), case=case)


def test_asking_twice_gives_the_same_bits(few):
    assert_same_bits(few.rows, few.rows, case=few)


@pytest.mark.parametrize("store", MEMORY)
@pytest.mark.parametrize(
    "shape", ["mixed-weighted", "few-edges-weighted", "many-rows-weighted", "both-kinds"]
)
def test_weight_two_is_the_row_twice(store, shape):
    case = make(store, shape)
    rows, products = case.rows, case.rows.products
    times = rows.weights.astype(int)
    if products is not None:
        products = replace(products, features=np.repeat(products.features, times, axis=0))
    twice = replace(
        rows,
        numbers=np.repeat(rows.numbers, times, axis=0),
        codes=np.repeat(rows.codes, times, axis=0),
        weights=None,
        products=products,
    )
    assert rows.moments().total_weight == twice.moments().total_weight
    many, once = (
        case.rows.softmax_curvature(case.coef, case.nodes, 1) for case.rows in (rows, twice)
    )
    for a, b in zip(many, once, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    for a, b in zip(answers(rows, case)[:9], answers(twice, case)[:9], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("store", MEMORY)
@pytest.mark.parametrize("shape", ["mixed", "mixed-weighted", "few-edges", "many-rows"])
def test_extreme_logits_stay_finite_and_right(store, shape):
    case = make(store, shape, size=300.0)
    assert case.prob[1].min() < -800
    found = case.rows.softmax(case.coef, "all")
    np.testing.assert_allclose(found.loss, case.loss, rtol=1e-12)
    np.testing.assert_allclose(found.all_pairs, case.product, atol=1e-12)
    curvature = case.rows.softmax_curvature(case.coef, case.nodes, 1)
    for cat, matrix in zip(case.nodes, curvature, strict=True):
        np.testing.assert_allclose(matrix, dense_curvature(case, cat), atol=1e-12)


def test_wide_level_codes():
    n_levels = (300, 2)
    table, layout = draw(3, 900, 1, n_levels), Layout.complete(Nodes.mixed(1, n_levels))
    assert table.design.codes.dtype == np.uint16
    rows = MemoryRows(table.X, table.design.codes, n_levels)
    Z = np.hstack([table.X, dense.indicators(table.Y, n_levels)])
    case = Case(rows, (table.Y, n_levels, None), Z, layout, random_theta(layout, 4))
    found = rows.softmax(case.coef, "all")
    np.testing.assert_allclose(found.all_pairs, case.product, atol=1e-13)


def test_passes_count_one_with_and_one_half_without_gradient(few):
    rows = few.rows
    rows.moments()
    before = rows.passes
    for want, total in (("none", 0.5), ("support", 1.5), ("all", 2.5)):
        rows.softmax(few.coef, want)
        assert rows.passes - before == total
    rows.softmax_curvature(few.coef, few.nodes, 4)
    exact = isinstance(rows, StateRows)  # which visits all states at any stride
    assert rows.curvature_passes == (1.0 if exact else 0.25)
    assert rows.n_rows == (6 if exact else 200)
    assert min(rows.part_seconds) > 0.0
