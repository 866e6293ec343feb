"""Every store of rows: moments, softmax and curvature equal the dense formulas."""

from dataclasses import dataclass

import numpy as np
import pytest

from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.rows import curvature
from mixedgm.rows.contract import Coefficients
from mixedgm.rows.memory import MemoryRows
from tests.support import dense
from tests.support.problems import draw, random_theta

# A store: standardised columns, codes, levels, weights -> Rows.
STORES = {f"memory-{k}": lambda *data, k=k: MemoryRows(*data, n_threads=k) for k in (1, 2, 3)}

# Rows, continuous columns, levels, pairs kept (None: all), weighted.
SHAPES = {
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


@dataclass(eq=False)
class Case:
    """Data, coefficients, and the same thing as dense matrices."""

    data: tuple
    layout: Layout
    coef: Coefficients

    @property
    def share(self):
        return dense.shares(len(self.data[1]), self.data[3])

    @property
    def Z(self):
        return np.hstack([self.data[0], dense.indicators(self.data[1], self.data[2])])

    def prob(self, dense_coef):
        logits = self.coef.bias + self.Z @ dense_coef
        return dense.probabilities(logits, self.data[2])


def make(shape, size=0.5, seed=0):
    n, p, n_levels, pairs, weighted = SHAPES[shape]
    table = draw(seed, n, p, n_levels, weighted)
    X = (table.X - table.X.mean(axis=0)) / table.X.std(axis=0)
    layout = Layout.complete(Nodes.mixed(p, n_levels))
    if pairs is not None:
        layout = Layout(Nodes.mixed(p, n_levels), np.array(pairs, dtype=np.int64).reshape(-1, 2))
    theta = random_theta(layout, seed + 1, size)
    coef = Coefficients(
        layout.incidence,
        theta[layout.incidence.theta_index],
        theta[layout.biases],
        layout.softmax_targets,
    )
    case = Case((X, table.design.codes, n_levels, table.row_weights), layout, coef)
    case.dense_coef = layout.to_matrix(theta)[:, p:]
    return case


@pytest.fixture(params=SHAPES)
def shape(request):
    return request.param


@pytest.fixture(params=STORES)
def store(request):
    return STORES[request.param]


def test_moments_are_those_of_the_indicator_matrix(store, shape):
    case = make(shape)
    found, Z, share = store(*case.data).moments(), case.Z, case.share
    np.testing.assert_allclose(found.mean, share @ Z, atol=1e-13)
    np.testing.assert_allclose(found.second, Z.T @ (share[:, None] * Z), atol=1e-13)
    weights = case.data[3]
    assert found.total_weight == (len(Z) if weights is None else weights.sum())


def test_moments_without_categorical_columns(store):
    X = np.random.default_rng(0).normal(size=(30, 3))
    found = store(X, np.zeros((30, 0), dtype=np.uint8), (), None).moments()
    np.testing.assert_allclose(found.mean, X.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(found.second, X.T @ X / 30, atol=1e-14)


@pytest.mark.parametrize("gradient", ["none", "support", "all"])
def test_loss_is_the_mean_negative_log_probability(store, shape, gradient):
    case = make(shape)
    _, logs = case.prob(case.dense_coef)
    hit = dense.indicators(case.data[1], case.data[2]) * logs
    expected = [-case.share @ hit[:, s].sum(axis=1) for s in dense.level_slices(case.data[2])]
    found = store(*case.data).softmax(case.coef, gradient)
    np.testing.assert_allclose(found.loss, expected, rtol=1e-12)


def test_value_alone_brings_no_gradient(store):
    case = make("mixed")
    found = store(*case.data).softmax(case.coef, "none")
    assert found.mean_prob is None
    assert found.support is None
    assert found.all_pairs is None


@pytest.mark.parametrize("gradient", ["support", "all"])
def test_mean_probabilities(store, shape, gradient):
    case = make(shape)
    prob, _ = case.prob(case.dense_coef)
    found = store(*case.data).softmax(case.coef, gradient)
    np.testing.assert_allclose(found.mean_prob, case.share @ prob, atol=1e-13)


def test_all_pairs_is_z_transposed_times_probabilities(store, shape):
    case = make(shape)
    prob, _ = case.prob(case.dense_coef)
    found = store(*case.data).softmax(case.coef, "all").all_pairs
    np.testing.assert_allclose(found, case.Z.T @ (case.share[:, None] * prob), atol=1e-13)


def test_support_holds_the_same_at_the_entries_of_categorical_targets(store, shape):
    case = make(shape)
    prob, _ = case.prob(case.dense_coef)
    product = case.Z.T @ (case.share[:, None] * prob)
    p, incidence = case.layout.n_gaussian, case.layout.incidence
    discrete = incidence.entry_target >= p
    expected = np.zeros(len(case.coef.values))
    expected[discrete] = product[
        incidence.entry_column[discrete], incidence.entry_target[discrete] - p
    ]
    found = store(*case.data).softmax(case.coef, "support").support
    np.testing.assert_allclose(found, expected, atol=1e-13)


def dense_curvature(case, discrete, rows):
    """Second derivative over (biases, entries): mean of f_a f_b (diag P - P P')."""
    incidence, p = case.layout.incidence, case.layout.n_gaussian
    entries, levels = incidence.entries_of(p + discrete), dense.level_slices(case.data[2])[discrete]
    width = levels.stop - levels.start
    level = np.r_[np.arange(width), incidence.entry_target[entries] - p - levels.start]
    features = np.hstack(
        [np.ones((len(case.Z), width)), case.Z[:, incidence.entry_column[entries]]]
    )
    prob, _ = case.prob(case.dense_coef)
    share = case.share[rows] / case.share[rows].sum()
    features, chosen = features[rows], prob[rows][:, levels][:, level]
    out = features.T @ (share[:, None] * chosen * features) * (level[:, None] == level)
    moved = features * chosen
    return out - moved.T @ (share[:, None] * moved)


@pytest.fixture(params={"by-blas": 0.0, "by-level": 1e9}.items(), ids=lambda item: item[0])
def way(request, monkeypatch):
    """How sums are made, whatever would be cheaper."""
    monkeypatch.setattr(curvature, "_BLAS", request.param[1])


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.usefixtures("way")
def test_curvature_of_every_node(store, shape, stride):
    case = make(shape)
    nodes = np.arange(len(case.data[2]))
    found = store(*case.data).softmax_curvature(case.coef, nodes, stride)
    assert len(found) == len(nodes)
    for discrete, matrix in zip(nodes, found, strict=True):
        expected = dense_curvature(case, discrete, slice(None, None, stride))
        np.testing.assert_allclose(matrix, expected, atol=1e-13)


def test_curvature_of_chosen_nodes_in_the_order_asked(store):
    case = make("mixed")
    found = store(*case.data).softmax_curvature(case.coef, np.array([2, 0]), 1)
    every = store(*case.data).softmax_curvature(case.coef, np.arange(3), 1)
    np.testing.assert_array_equal(found[0], every[2])
    np.testing.assert_array_equal(found[1], every[0])


def answers(rows, case):
    """Everything that a store can say, as one list of arrays."""
    moments = rows.moments()
    every = [rows.softmax(case.coef, want) for want in ("none", "support", "all")]
    curvature = rows.softmax_curvature(case.coef, np.arange(len(case.data[2])), 2)
    arrays = [moments.mean, moments.second, *(sums.loss for sums in every)]
    arrays += [every[1].mean_prob, every[1].support, every[2].mean_prob, every[2].all_pairs]
    return [*arrays, *curvature]


@pytest.mark.usefixtures("way")
def test_results_do_not_depend_on_the_number_of_threads(shape):
    case = make(shape)
    one, *others = (answers(make_store(*case.data), case) for make_store in STORES.values())
    for other in others:
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_weights_that_are_not_whole_numbers_do_not_depend_on_threads():
    """Columns of few and of many levels are added up in blocks of different lengths."""
    rng = np.random.default_rng(0)
    for levels in ((2, 9, 3, 12, 2, 2, 7, 5), (12, 2, 2, 2, 2, 2, 2, 9)):
        SHAPES["fractions"] = (5000, 6, levels, None, True)
        case = make("fractions")
        case.data = (*case.data[:3], rng.random(5000))
        one, *others = (answers(make_store(*case.data), case) for make_store in STORES.values())
        for other in others:
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)
    del SHAPES["fractions"]


def test_asking_twice_gives_the_same_bits(store):
    case = make("many-rows")
    rows = store(*case.data)
    for a, b in zip(answers(rows, case), answers(rows, case), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", ["mixed-weighted", "few-edges-weighted", "many-rows-weighted"])
def test_weight_two_is_the_row_twice(store, shape):
    case = make(shape)
    X, codes, n_levels, weights = case.data
    times = weights.astype(int)
    twice = np.repeat(X, times, axis=0), np.repeat(codes, times, axis=0), n_levels, None
    rows, repeated = store(*case.data), store(*twice)
    nodes = np.arange(len(n_levels))
    a, b = rows.moments(), repeated.moments()
    assert a.total_weight == b.total_weight
    np.testing.assert_allclose(a.second, b.second, atol=1e-12)
    a, b = rows.softmax(case.coef, "all"), repeated.softmax(case.coef, "all")
    np.testing.assert_allclose(a.loss, b.loss, rtol=1e-12)
    np.testing.assert_allclose(a.all_pairs, b.all_pairs, atol=1e-12)
    for a, b in zip(
        rows.softmax_curvature(case.coef, nodes, 1),
        repeated.softmax_curvature(case.coef, nodes, 1),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("shape", ["mixed", "mixed-weighted", "few-edges", "many-rows"])
def test_extreme_logits_stay_finite_and_right(store, shape):
    case = make(shape, size=300.0)
    prob, logs = case.prob(case.dense_coef)
    assert np.abs(case.Z @ case.dense_coef).max() > 800
    found = store(*case.data).softmax(case.coef, "all")
    hit = dense.indicators(case.data[1], case.data[2]) * np.where(np.isfinite(logs), logs, 0)
    expected = [-case.share @ hit[:, s].sum(axis=1) for s in dense.level_slices(case.data[2])]
    np.testing.assert_allclose(found.loss, expected, rtol=1e-12)
    product = case.Z.T @ (case.share[:, None] * prob)
    np.testing.assert_allclose(found.all_pairs, product, atol=1e-12)
    nodes = np.arange(len(case.data[2]))
    for discrete, matrix in zip(
        nodes, store(*case.data).softmax_curvature(case.coef, nodes, 1), strict=True
    ):
        np.testing.assert_allclose(matrix, dense_curvature(case, discrete, slice(None)), atol=1e-12)


def test_wide_level_codes(store):
    n_levels = (300, 2)
    table = draw(3, 900, 1, n_levels)
    assert table.design.codes.dtype == np.uint16
    layout = Layout.complete(Nodes.mixed(1, n_levels))
    theta = random_theta(layout, 4)
    coef = Coefficients(
        layout.incidence,
        theta[layout.incidence.theta_index],
        theta[layout.biases],
        layout.softmax_targets,
    )
    case = Case((table.X, table.design.codes, n_levels, None), layout, coef)
    prob, _ = case.prob(layout.to_matrix(theta)[:, 1:])
    found = store(*case.data).softmax(coef, "all")
    np.testing.assert_allclose(found.all_pairs, case.Z.T @ prob / 900, atol=1e-13)


def test_passes_count_one_with_and_one_half_without_gradient(store):
    case = make("mixed")
    rows = store(*case.data)
    rows.moments()
    before = rows.passes
    rows.softmax(case.coef, "none")
    assert rows.passes - before == 0.5
    rows.softmax(case.coef, "support")
    assert rows.passes - before == 1.5
    rows.softmax(case.coef, "all")
    assert rows.passes - before == 2.5
    rows.softmax_curvature(case.coef, np.arange(3), 4)
    assert rows.curvature_passes == 0.25
    assert rows.n_rows == 200
