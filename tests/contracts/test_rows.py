"""Every store of rows: moments, softmax and curvature equal the dense formulas."""

from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.base.parts.cluster import ClusterParts
from mixedgm.base.parts.local import LocalParts
from mixedgm.diagnostics.states import StateRows
from mixedgm.diagnostics.truth import truth_of
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.pair_weights import PairWeights
from mixedgm.rows.arrays import arrays_on
from mixedgm.rows.contract import Coefficients, Conditionals, Question
from mixedgm.rows.device import DeviceRows
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.parts import PartedRows, sliced
from tests.support import dense
from tests.support.moderated import moderated_task, written_out
from tests.support.problems import SCORED, draw, random_theta
from tests.unit.diagnostics import by_hand
from tests.unit.joint import brute

# Rows, continuous columns, levels, pairs kept (None: all), weighted; kinds of scored columns.
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
    "scored": (200, 2, (4, 5, 14, 18, 3, 9), None, False, SCORED),
    "scored-weighted": (200, 2, (4, 5, 14, 18, 3, 9), None, True, SCORED),
    "scored-few-edges": (300, 1, (4, 5, 14, 18, 2), [(0, 1), (1, 3), (2, 5), (3, 4)], True, SCORED),
    "all-scored": (150, 0, (4, 5, 14, 18), None, True, SCORED),
    "one-scored": (60, 1, (3,), None, False, SCORED[1:2]),
    "scored-many-rows": (9000, 3, (4, 5, 14, 18, 7), None, True, SCORED),
    "large-counts": (300, 1, (4, 3, 300, 3), None, False, SCORED[:3]),
    "spiked": (200, 2, (4, 9, 3), None, False, (SCORED[0], SCORED[3]), 2),
    "spiked-weighted": (200, 2, (4, 9, 3), None, True, (SCORED[0], SCORED[3]), 2),
    "spiked-few-edges": (300, 2, (5, 2), [(0, 2), (1, 3), (2, 3), (3, 5)], True, SCORED[1:2], 2),
    "one-spiked": (60, 0, (3,), None, False, (), 1),
    "spiked-alone": (60, 0, (), [], True, (), 1),
    "spiked-many-rows": (9000, 1, (4, 7), None, True, SCORED[:1], 2),
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
    "moderated-scored": ((80, 1, (4, 5, 14, 18, 3), True, SCORED), (0, 5), 1),
    "scored-moderators": ((90, 2, (4, 5, 14, 18, 8), True, SCORED), (2, 4), 3),
    "moderated-spiked": ((90, 2, (4, 3, 2), True, SCORED[:1], 2), (0, 5), 1),
    "spiked-moderator": ((90, 2, (4, 3), True, SCORED[:1], 2), (3,), 1),
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
    "memory-levels": {"n_threads": 3, "blas_cost": 1e9, "turned_up_to": 0},
    "memory-without-moments": {"n_threads": 2, "most_moments": 0},
    "memory-by-column": {"n_threads": 2, "cut_from": 0},
}
# Library; whether columns are gathered or multiplied all together, and rows at a time.
DEVICE = {
    "device-gathered": ("numpy", {"gathered_cost": 0.0, "block_rows": 71}),
    "device-dense": ("numpy", {"gathered_cost": 1e9}),
    "device-torch": ("torch", {"gathered_cost": 1.0}),
}
# Where the rows are cut, and how many bytes stay in memory: all, or nothing.
PARTS = {"parts": ((0.2, 0.21, 0.9), None), "parts-in-files": ((0.5,), 0)}
TABLE_STORES = (*MEMORY, *PARTS)
# One store meets every table; the others meet some of every sort.
SORTS = (
    *("mixed-weighted", "few-edges", "no-edges", "one-level", "many-rows-weighted"),
    *("scored-weighted", "scored-few-edges", "scored-many-rows", "large-counts"),
    *("spiked-weighted", "spiked-few-edges", "spiked-alone", "spiked-many-rows"),
    *("both-kinds-few", "moderated-blocks", "moderated-scored", "spiked-moderator", "states"),
)
# Every question to a cluster takes some milliseconds.
ON_CLUSTER = ("mixed-weighted", "few-edges", "scored-weighted", "spiked-few-edges", "both-kinds")
SHAPES_OF = dict.fromkeys(TABLE_STORES, SORTS) | {
    **dict.fromkeys(DEVICE, tuple(shape for shape in SORTS if shape not in MODERATED)),
    "memory": SHAPES,
    "device-torch": ("mixed-weighted", "few-edges", "scored-weighted", "spiked-weighted"),
    "parts-in-files": SHAPES[::4],
    "cluster": ON_CLUSTER,
    "states": tuple(DISTRIBUTIONS),
}
EVERY = [(store, shape) for store, shapes in SHAPES_OF.items() for shape in shapes]
FEW = [
    (store, shape) for store in (*TABLE_STORES, *DEVICE) for shape in ("mixed", "scored", "spiked")
]
FEW.append(("states", "states"))


@dataclass(eq=False)
class Case:
    """Rows, coefficients, and the same thing as dense matrices."""

    rows: MemoryRows | PartedRows | DeviceRows | StateRows
    codes: np.ndarray
    weights: np.ndarray | None
    values: list[dense.Values | dense.Spiked]
    Z: np.ndarray
    layout: Layout
    theta: np.ndarray
    known: dict = field(default_factory=dict)

    @cached_property
    def coef(self):
        layout = self.layout
        slots = [
            node.slots(self.theta[terms])
            for node, terms in zip(self.values, self.terms, strict=True)
        ]
        entries, bias = self.theta[layout.incidence.theta_index], np.concatenate(slots)
        return Coefficients(layout.incidence, entries, bias, layout.softmax_targets)

    @property
    def terms(self):
        """Where the own terms of every discrete node stand in theta."""
        ends = np.cumsum([0, *(node.n_terms for node in self.values)])
        first = 2 * self.layout.n_gaussian
        return [slice(first + a, first + b) for a, b in zip(ends[:-1], ends[1:], strict=True)]

    @property
    def columns(self):
        """Where the design columns of every discrete node stand among those of all."""
        return dense.level_slices([node.width for node in self.values])

    @property
    def nodes(self):
        return self.layout.softmax_targets

    @property
    def tol(self):
        """Rounding; of expectations over states, the error exp(-25) that they are computed to."""
        return 1e-10 if isinstance(self.rows, StateRows) else 1e-13

    @property
    def is_target(self):
        """Of every discrete node: what is returned for others means nothing."""
        return self.layout.is_target[self.layout.n_gaussian :]

    @property
    def predicted_terms(self):
        return np.repeat(self.is_target, [node.n_terms for node in self.values])

    @property
    def predicted_columns(self):
        return np.repeat(self.is_target, [node.width for node in self.values])

    @property
    def share(self):
        return dense.shares(len(self.Z), self.weights)

    @cached_property
    def given(self):
        """Own terms and (n, columns) predictors of every discrete node."""
        eta = self.Z @ self.layout.to_matrix(self.theta)[:, self.layout.n_gaussian :]
        every = zip(self.terms, self.columns, strict=True)
        return [(self.theta[terms], eta[:, columns]) for terms, columns in every]

    @property
    def mean_terms(self):
        every = zip(self.values, self.given, strict=True)
        means = [
            self.share @ dense.expected(*node.chances(*at))[:, : node.n_terms] for node, at in every
        ]
        return np.concatenate(means)

    @property
    def losses(self):
        every = zip(self.values, self.given, self.codes.T, strict=True)
        return [node.loss(*at, y) for node, at, y in every]

    @property
    def loss(self):
        return np.array([self.share @ one for one in self.losses])

    @property
    def product(self):
        expected = [
            dense.expected(*node.chances(*at))[:, node.n_terms :]
            for node, at in zip(self.values, self.given, strict=True)
        ]
        return self.Z.T @ (self.share[:, None] * np.hstack(expected))


def make(store, shape, size=0.5):
    case = states_of(shape, store == "states") if shape in DISTRIBUTIONS else table_of(shape, size)
    if store in DEVICE:
        library, options = DEVICE[store]
        if library == "torch":
            pytest.importorskip("torch", reason="PyTorch is not part of the test environment")
        return replace(case, rows=DeviceRows(case.rows, arrays_on(library), **options))
    if store in PARTS:
        return replace(case, rows=parted(case.rows, *PARTS[store]))
    if store == "cluster":
        rows = parted(case.rows, (0.3, 0.8), None)
        futures = cluster().scatter(list(rows.parts.map(replace)), hash=False)
        return replace(case, rows=replace(rows, parts=ClusterParts(cluster(), futures)))
    return replace(case, rows=replace(case.rows, **MEMORY.get(store, {})))


@cache
def cluster():
    """Two workers in this process."""
    from distributed import Client

    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    return Client(n_workers=2, **options)


@pytest.fixture(scope="module", autouse=True)
def _closed():
    yield
    if cluster.cache_info().currsize:
        cluster().close()


def parted(rows, cuts, limit):
    """The rows cut at these shares of all."""
    at = [0, *(int(share * rows.n_rows) for share in cuts), rows.n_rows]
    pieces = [sliced(rows, first=a) for a in at[:-1]]
    sizes = np.diff(at).tolist()
    pieces = [sliced_before(piece, n) for piece, n in zip(pieces, sizes, strict=True)]
    return PartedRows(LocalParts(pieces, limit), sliced, sizes, rows.nodes, n_threads=2)


def sliced_before(rows, n):
    products = rows.products
    if products is not None:
        products = replace(products, features=products.features[:n])
    weights = None if rows.weights is None else rows.weights[:n]
    numbers, codes = rows.numbers[:n], rows.codes[:n]
    return replace(rows, numbers=numbers, codes=codes, weights=weights, products=products)


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
        n, p, n_levels, pairs, weighted, *kinds = TABLES[shape]
        table = draw(0, n, p, n_levels, weighted, *kinds)
        rows, Z = store_of(table)
        layout = Layout.complete(rows.nodes)
        if pairs is not None:
            layout = Layout(rows.nodes, np.array(pairs, dtype=np.int64).reshape(-1, 2))
    values = dense.values_of(table, dense.shares(len(table.Y), table.row_weights))
    theta = random_theta(layout, 1, size)
    return Case(rows, table.Y, table.row_weights, values, Z, layout, theta)


def store_of(table):
    """Standardised rows, and the same as design columns written out."""
    share = dense.shares(len(table.Y), table.row_weights)
    k = table.n_spiked + len(table.scored)
    own = table.schema.spans.numbers(table.X, table.Y)
    mean = share @ own
    scale = np.sqrt(share @ (own - mean) ** 2)
    values = zip(dense.values_of(table, share)[:k], table.Y.T, strict=False)
    X = np.column_stack(
        [(own - mean)[:, : table.n_gaussian] / scale[: table.n_gaussian]]
        + [node.observed(y)[:, node.n_terms :] for node, y in values]
    )
    nodes = table.schema.spans.standardised(mean, scale)
    Z = np.hstack([X, dense.indicators(table.Y[:, k:], table.n_levels[k:])])
    return MemoryRows(np.ascontiguousarray(X), table.design.codes, nodes, table.row_weights), Z


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
    nodes = Nodes.mixed(p, n_levels)
    rows = MemoryRows(table.numbers, table.codes.astype(np.uint8), nodes, table.weight)
    Z = np.hstack([table.numbers, dense.indicators(table.codes, n_levels)])
    values = [dense.Values(np.eye(m), np.eye(m), np.zeros(m)) for m in n_levels]
    given = (table.codes, table.weight, values, Z, layout, random_theta(layout, 1))
    return Case(truth.rows if as_states else rows, *given)


@pytest.fixture(params=EVERY, ids="-on-".join)
def case(request):
    return make(*request.param)


@pytest.fixture(params=[each for each in EVERY if each[1] not in MODERATED], ids="-on-".join)
def plain(request):
    """Without moderated edges."""
    return make(*request.param)


@pytest.fixture(params=FEW, ids="-on-".join)
def few(request):
    return make(*request.param)


def test_moments_are_those_of_the_columns_written_out(case):
    found, Z, share = case.rows.moments(), case.Z, case.share
    np.testing.assert_allclose(found.mean, share @ Z, atol=1e-13)
    np.testing.assert_allclose(found.second, Z.T @ (share[:, None] * Z), atol=1e-12)
    shares = [
        share @ node.observed_slots(y) for y, node in zip(case.codes.T, case.values, strict=True)
    ]
    np.testing.assert_allclose(found.shares, np.concatenate(shares), atol=1e-13)
    weights = case.weights
    total = len(Z) if weights is None else weights.sum()
    assert found.total_weight == pytest.approx(total, rel=1e-14)


def test_moments_without_categorical_columns():
    X = np.random.default_rng(0).normal(size=(30, 3))
    found = MemoryRows(X, np.zeros((30, 0), dtype=np.uint8), Nodes.mixed(3, ())).moments()
    np.testing.assert_allclose(found.mean, X.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(found.second, X.T @ X / 30, atol=1e-14)


def test_a_pass_returns_what_is_asked_and_the_dense_sums(case):
    value, support, every = (case.rows.softmax(case.coef, w) for w in ("none", "support", "all"))
    assert value.mean_terms is value.support is value.all_pairs is None
    assert support.all_pairs is every.support is None
    loss = case.loss[case.nodes]
    for found in (value, support, every):
        np.testing.assert_allclose(found.loss[case.nodes], loss, rtol=10 * case.tol)
    product, mean, kept = case.product, case.mean_terms, case.predicted_terms
    for found in (support, every):
        np.testing.assert_allclose(found.mean_terms[kept], mean[kept], atol=case.tol)
    kept = case.predicted_columns
    np.testing.assert_allclose(every.all_pairs[:, kept], product[:, kept], atol=case.tol)
    p, incidence = case.layout.n_gaussian, case.layout.incidence
    discrete = incidence.entry_target >= p
    expected = np.zeros(len(case.coef.values))
    at = incidence.entry_column[discrete], incidence.entry_target[discrete] - p
    expected[discrete] = product[at]
    np.testing.assert_allclose(support.support, expected, atol=case.tol)


def test_moments_of_single_columns_are_part_of_the_moments(case):
    found, moments = case.rows.column_moments(), case.rows.moments()
    assert found.total_weight == moments.total_weight
    np.testing.assert_allclose(found.mean, moments.mean, atol=1e-13)
    np.testing.assert_allclose(found.squares, np.diagonal(moments.second), atol=1e-12)
    np.testing.assert_allclose(found.shares, moments.shares, atol=1e-13)


def test_second_moments_of_listed_columns(case):
    rng = np.random.default_rng(0)
    first, second = rng.integers(case.Z.shape[1], size=(2, 50))
    products = case.Z.T @ (case.share[:, None] * case.Z)
    found = case.rows.second_moments(first, second)
    np.testing.assert_allclose(found, products[first, second], atol=1e-12)
    assert len(case.rows.second_moments(first[:0], second[:0])) == 0


def conditionals_of(case, shared=True, unpredicted=()):
    """The conditionals at theta."""
    layout = case.layout
    predicted = np.ones(layout.n_nodes, dtype=bool)
    predicted[list(unpredicted)] = False
    coef = replace(case.coef, nodes=np.flatnonzero(predicted[layout.n_gaussian :]))
    linear, precision = case.theta[layout.linear], case.theta[layout.diagonal]
    return Conditionals(coef, linear, precision, predicted, shared)


def residuals_by_hand(case, given):
    """What the conditionals leave of every design column of every row."""
    layout = case.layout
    matrix = layout.to_matrix(case.theta)[:, : layout.n_gaussian]
    numbers = (given.linear + case.Z @ matrix) / given.precision
    expected = [
        dense.expected(*node.chances(*at))[:, node.n_terms :]
        for node, at in zip(case.values, case.given, strict=True)
    ]
    return (np.hstack([numbers, *expected]) - case.Z) * np.repeat(given.predicted, layout.width)


def entries_by_hand(case, given, weights):
    """Entry of every pair of nodes; -1 where it is not asked for."""
    gradient = case.Z.T @ (case.share[:, None] * residuals_by_hand(case, given))
    if given.shared:
        gradient = gradient + gradient.T
    starts, n = case.layout.column_start, case.layout.n_nodes
    norms = np.add.reduceat(np.add.reduceat(gradient**2, starts[:-1], 0), starts[:-1], 1) ** 0.5
    u, v = np.indices((n, n))
    weight = weights.of(u.ravel(), v.ravel()).reshape(n, n)
    asked = np.isfinite(weight) & ((u < v) if given.shared else (u != v))
    return np.where(asked, norms / np.where(asked, weight, 1.0), -1.0)


def outside_by_hand(entries, floor, most):
    """Pairs with an entry of at least `floor`, by falling entry; how many; the largest of all."""
    u, v = np.nonzero(entries >= floor)
    order = np.lexsort((v, u, -entries[u, v]))[:most]
    return entries.max(initial=0.0), len(u), np.column_stack([u, v])[order]


def pair_weights(case, rng):
    """By a formula over three kinds of nodes, one pair of which is not permitted; exceptions."""
    n = case.layout.n_nodes
    by_kind = rng.uniform(0.5, 2.0, size=(3, 3))
    by_kind = by_kind + by_kind.T
    by_kind[0, 2] = by_kind[2, 0] = np.inf
    weights = PairWeights.formula(rng.uniform(0.5, 2.0, n), rng.integers(3, size=n), by_kind)
    pairs = np.array([(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.2])
    pairs = pairs.reshape(-1, 2).astype(np.int64)
    return weights.excepting(pairs, rng.uniform(0.5, 2.0, len(pairs))).without(pairs[::2])


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "ordered"])
def test_pairs_outside_are_those_with_the_largest_gradients(plain, shared):
    rng, n = np.random.default_rng(2), plain.layout.n_nodes
    for unpredicted in ((), (0, n - 1)):
        given, weights = conditionals_of(plain, shared, unpredicted), pair_weights(plain, rng)
        entries = entries_by_hand(plain, given, weights)
        values = np.sort(entries[entries >= 0.0])
        between = (0.5 * (values[1:] + values[:-1]))[np.diff(values) > 1e-9]
        middle = float(between[len(between) // 2]) if len(between) else 0.0
        for floor, most in ((0.0, 10**6), (0.0, 3), (middle, 10**6), (middle, 3), (middle, 0)):
            found = plain.rows.outside(given, Question(weights, floor, most))
            largest, count, pairs = outside_by_hand(entries, floor, most)
            assert found.largest == pytest.approx(largest, rel=1e-11, abs=10 * plain.tol)
            assert found.count == count
            assert found.pairs.dtype == np.int64
            known = entries[tuple(pairs.T)]
            np.testing.assert_allclose(found.entries, known, atol=10 * plain.tol)
            # Equal up to rounding, entries may come in either order.
            if len(known) < 2 or -np.diff(known).max() > 1e-9:
                np.testing.assert_array_equal(found.pairs, pairs)


def test_no_pair_is_asked_about(few):
    given = conditionals_of(few)
    nothing = PairWeights.formula(np.ones(few.layout.n_nodes), by_kind=np.array([[np.inf]]))
    found = few.rows.outside(given, Question(nothing, 0.0, 10))
    assert (found.largest, found.count, found.pairs.shape) == (0.0, 0, (0, 2))


def test_what_is_not_a_number_is_not_hidden(few):
    given = conditionals_of(few)
    broken = replace(given, linear=np.full_like(given.linear, np.nan))
    weights = PairWeights.formula(np.ones(few.layout.n_nodes))
    assert np.isnan(few.rows.outside(broken, Question(weights, 0.1, 10)).largest)


def test_pairs_with_equal_gradients_come_in_their_order():
    x = np.random.default_rng(0).normal(size=(40, 1))
    rows = MemoryRows(np.repeat(x, 5, axis=1), np.zeros((40, 0), np.uint8), Nodes.mixed(5, ()))
    layout = Layout.without_edges(rows.nodes)
    coef = Coefficients(layout.incidence, np.zeros(0), np.zeros(0), layout.softmax_targets)
    given = Conditionals(coef, np.zeros(5), np.ones(5), np.ones(5, dtype=bool), True)
    found = rows.outside(given, Question(PairWeights.formula(np.ones(5)), 0.0, 3))
    assert found.count == 10
    assert found.pairs.tolist() == [[0, 1], [0, 2], [0, 3]]


def dense_curvature(case, j, stride=1):
    """Second derivative over (own terms, entries): mean of f_a f_b cov(g_a, g_b).

    A parameter adds f g to the logits: f is 1 or the column of the entry, and g what multiplies an
    own term, or the target's design column, at every value.
    """
    if (j, stride) in case.known:
        return case.known[j, stride]
    incidence, node, first = case.layout.incidence, case.values[j], case.columns[j].start
    entries, n_terms = incidence.entries_of(case.layout.n_gaussian + j), node.n_terms
    target = incidence.entry_target[entries] - case.layout.n_gaussian - first
    which = np.r_[np.arange(n_terms), n_terms + target]
    f = case.Z[::stride, incidence.entry_column[entries]]
    f = np.hstack([np.ones((len(f), n_terms)), f])
    share = case.share[::stride] / case.share[::stride].sum()
    terms, predictors = case.given[j]
    prob, g = node.chances(terms, predictors[::stride])
    g = g - dense.expected(prob, g)[:, None]
    out = np.zeros((len(which), len(which)))
    for a in range(g.shape[-1]):
        for b in range(g.shape[-1]):
            cov = (prob * g[..., a] * g[..., b]).sum(axis=1)
            at = np.ix_(which == a, which == b)
            out[at] = f[:, which == a].T @ ((share * cov)[:, None] * f[:, which == b])
    case.known[j, stride] = out
    return out


def curvature_of(case, nodes, stride, rows=None):
    """Matrices of these discrete nodes by number: a store has two ways to make them."""
    rows, of = rows or case.rows, case.layout.nodes
    is_scored = of.numeric_nodes[of.discrete]
    scored, others = nodes[is_scored[nodes]], nodes[~is_scored[nodes]]
    out = {}
    if len(others):
        found = rows.softmax_curvature(case.coef, others, stride)
        assert len(found) == len(others)
        out |= dict(zip(others.tolist(), found, strict=True))
    if len(scored):
        found = rows.scored_curvature(case.coef, scored, stride)
        np.testing.assert_array_equal(found.nodes, scored)
        out |= {j: found[k] for k, j in enumerate(scored.tolist())}
    return out


@pytest.mark.parametrize("stride", [1, 3])
def test_curvature_of_every_node(case, stride):
    found = curvature_of(case, case.nodes, stride)
    every = 1 if isinstance(case.rows, StateRows) else stride
    for j in case.nodes.tolist():
        np.testing.assert_allclose(found[j], dense_curvature(case, j, every), atol=case.tol)


def test_curvature_of_chosen_nodes_in_the_order_asked(few):
    every = curvature_of(few, few.nodes, 1)
    for asked in (few.nodes[[-1, 0]], few.nodes[[1, 0]], few.nodes[[-1, -2]]):
        for j, matrix in curvature_of(few, asked, 1).items():
            np.testing.assert_array_equal(matrix, every[j])


def answers(rows, case, stride=2):
    """Everything that a store can say, as one list of arrays."""
    moments = rows.moments()
    every = [rows.softmax(case.coef, want) for want in ("none", "support", "all")]
    curvature = curvature_of(case, case.nodes, stride, rows)
    arrays = [moments.mean, moments.second, moments.shares, *(sums.loss for sums in every)]
    arrays += [every[1].mean_terms, every[1].support, every[2].mean_terms, every[2].all_pairs]
    if case.layout.n_features == () and case.layout.n_gaussian + len(case.values) > 1:
        weights = PairWeights.formula(np.ones(case.layout.n_nodes))
        found = rows.outside(conditionals_of(case), Question(weights, 0.0, 100))
        arrays += [found.pairs, found.entries, np.array([found.largest])]
    return [*arrays, *curvature.values()]


def assert_same_bits(*stores, case):
    one, *others = (answers(rows, case) for rows in stores)
    for other in others:
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("store", ["memory-blas", "memory-levels"])
@pytest.mark.parametrize("shape", SORTS)
def test_results_do_not_depend_on_the_number_of_threads(store, shape):
    case = make(store, shape)
    assert_same_bits(*(replace(case.rows, n_threads=k) for k in (1, 2, 3)), case=case)


def test_weights_that_are_not_whole_numbers_do_not_depend_on_threads():
    """Columns of few and of many levels are added up in blocks of different lengths."""
    rng = np.random.default_rng(0)
    for levels in ((2, 9, 3, 12, 2, 2, 7, 5), (12, 2, 2, 2, 2, 2, 2, 9)):
        table, nodes = draw(0, 5000, 6, levels), Nodes.mixed(6, levels)
        layout, values = Layout.complete(nodes), dense.values_of(table, table.X)
        data = (table.X, table.design.codes, nodes, rng.random(5000))
        case = Case(None, table.Y, None, values, table.X, layout, random_theta(layout, 1))
        assert_same_bits(*(MemoryRows(*data, n_threads=k) for k in (1, 2, 3)), case=case)


def test_asking_twice_gives_the_same_bits(few):
    assert_same_bits(few.rows, few.rows, case=few)


@pytest.mark.parametrize("store", [*MEMORY, *DEVICE])
@pytest.mark.parametrize(
    "shape",
    [
        *("mixed-weighted", "few-edges-weighted", "many-rows-weighted", "both-kinds"),
        *("scored-weighted", "scored-few-edges", "moderated-scored"),
        *("spiked-weighted", "spiked-few-edges", "moderated-spiked"),
    ],
)
def test_weight_two_is_the_row_twice(store, shape):
    if store in DEVICE and shape in MODERATED:
        pytest.skip("a device refuses moderated edges")
    case = make(store, shape)
    rows = case.rows.memory if store in DEVICE else case.rows
    products = rows.products
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
    if store in DEVICE:
        rows, twice = case.rows, replace(case.rows, memory=twice)
    assert rows.moments().total_weight == twice.moments().total_weight
    many, once = (curvature_of(case, case.nodes, 1, each) for each in (rows, twice))
    for j, matrix in many.items():
        np.testing.assert_allclose(matrix, once[j], atol=1e-12)
    for a, b in zip(answers(rows, case)[:10], answers(twice, case)[:10], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("store", [*MEMORY, *DEVICE])
@pytest.mark.parametrize(
    "shape", ["mixed", "mixed-weighted", "few-edges", "many-rows", "scored", "spiked"]
)
def test_extreme_logits_stay_finite_and_right(store, shape):
    case = make(store, shape, size=300.0)
    assert max(loss.max() for loss in case.losses) > 800
    found = case.rows.softmax(case.coef, "all")
    np.testing.assert_allclose(found.loss, case.loss, rtol=1e-12)
    np.testing.assert_allclose(found.all_pairs, case.product, atol=1e-12)
    for j, matrix in curvature_of(case, case.nodes, 1).items():
        np.testing.assert_allclose(matrix, dense_curvature(case, j), atol=1e-12)


def test_wide_level_codes():
    n_levels = (300, 2)
    table, nodes = draw(3, 900, 1, n_levels), Nodes.mixed(1, n_levels)
    assert table.design.codes.dtype == np.uint16
    layout, rows = Layout.complete(nodes), MemoryRows(table.X, table.design.codes, nodes)
    Z = np.hstack([table.X, dense.indicators(table.Y, n_levels)])
    values = dense.values_of(table, table.X)
    case = Case(rows, table.Y, None, values, Z, layout, random_theta(layout, 4))
    found = rows.softmax(case.coef, "all")
    np.testing.assert_allclose(found.all_pairs, case.product, atol=1e-13)


def test_passes_count_one_with_and_one_half_without_gradient(few):
    rows = few.rows
    rows.moments()
    before = rows.passes
    for want, total in (("none", 0.5), ("support", 1.5), ("all", 2.5)):
        rows.softmax(few.coef, want)
        assert rows.passes - before == total
    curvature_of(few, few.nodes, 4)
    exact = isinstance(rows, StateRows)  # which visits all states at any stride
    assert rows.curvature_passes == (1.0 if exact else 0.25)
    assert rows.n_rows == (6 if exact else 200)
    assert min(rows.part_seconds) > 0.0
