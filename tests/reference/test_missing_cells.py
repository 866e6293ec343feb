"""Tables with missing cells: EM by hand, lavaan, closed forms, and likelihoods by enumeration."""

import dataclasses
import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import block_diag, helmert

import mixedgm as mg
from mixedgm.path.recipe import Recipe
from mixedgm.path.rounds import Incomplete
from mixedgm.select.pair_tests import pairs_given
from mixedgm.table.gaps import learn_gaps
from tests.reference.observed import Rows, count, derivative, levels, ordinal

HERE = Path(__file__).parent

# The largest count is small, so that all states can be visited.
pytestmark = pytest.mark.filterwarnings("ignore:(?s).*the largest count")

VALUES = {"o": ordinal(3), "c": count(4), "a": levels(2), "b": levels(3)}
TYPES = {"o": mg.Ordinal(levels=["0", "1", "2"]), "c": mg.Count(largest=4)}


def fit(table, sample_weight=None, **options):
    types = {name: kind for name, kind in TYPES.items() if name in table}
    options = {"types": types, "missing": "model", "tol": 1e-9} | options
    model = mg.MixedGraphicalModel(**options).fit(table, sample_weight=sample_weight)
    assert model.fitted_.report.solved
    return model


@dataclasses.dataclass(frozen=True, eq=False)
class Example:
    """A table with gaps, for the package and for the reference."""

    table: pd.DataFrame
    rows: Rows


@cache
def example(n, names, gaps, *, seed=0, weighted=False) -> Example:
    """Columns that share a hidden cause, in the order of a model.

    "x" and "w" are numbers, "o" is ordinal, "c" a count, "a" and "b" have levels.  The first that
    is named has no gaps; `gaps` are those of the others with the share of their missing cells, of
    which there are more where the first is high.
    """
    rng = np.random.default_rng(seed)
    hidden, noise = rng.normal(size=n), rng.normal(size=(n, 5))
    columns = {
        "x": 1.0 + 2.0 * (0.7 * hidden + noise[:, 0]),
        "w": 0.5 * (noise[:, 1] - 0.6 * hidden),
        "o": np.digitize(0.8 * hidden + noise[:, 2], [-0.6, 0.6]),
        "c": rng.poisson(np.exp(0.3 * hidden - 0.6)).clip(0, 4),
        "a": np.digitize(0.8 * hidden + noise[:, 3], [0.0]),
        "b": np.digitize(noise[:, 4] - 0.8 * hidden, [-0.6, 0.6]),
    }
    high = np.where(columns[names[0]] > np.median(columns[names[0]]), 1.5, 0.5)
    missing = {name: rng.random(n) < high * dict(gaps).get(name, 0.0) for name in names}
    assert not missing[names[0]].any()
    table, numbers, codes = {}, [], []
    for name in sorted(names, key=list(columns).index):
        if name in "xw":
            numbers.append(np.where(missing[name], np.nan, columns[name]))
            table[name] = numbers[-1]
        else:
            codes.append(np.where(missing[name], -1, columns[name]))
            known = [None if code < 0 else int(code) for code in codes[-1]]
            text = [None if code is None else str(code) for code in known]
            table[name] = pd.array(known, dtype="Int64") if name == "c" else text
    rows = Rows(
        np.array(numbers).reshape(-1, n).T,
        np.array(codes, dtype=np.int64).reshape(-1, n).T,
        tuple(VALUES[name] for name in table if name in VALUES),
        rng.integers(1, 4, n).astype(float) if weighted else None,
    )
    return Example(pd.DataFrame(table), rows)


# -- no gaps ---------------------------------------------------------------------------------------

WITHOUT_GAPS = {
    "pseudolikelihood": {"lam": 0.1},
    "default": {},
    "ebic": {"select": "ebic", "n_lams": 10},
    "cross-validation": {"select": mg.CV(3), "n_lams": 8, "random_state": 0},
    "refit": {"lam": 0.1, "refit": True},
    "nodewise": {"lam": 0.05, "loss": "nodewise"},
    "likelihood": {"lam": 0.05, "loss": "likelihood"},
    "adaptive": {"lam": 0.1, "penalty_weights": "adaptive"},
    "covariates": {"lam": 0.1, "covariates": ["x"]},
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", WITHOUT_GAPS)
def test_without_gaps_every_number_is_that_of_a_complete_table(name, weighted):
    made = example(120, "xwocab", (), weighted=weighted)
    both = [
        fit(made.table, made.rows.weights, missing=missing, tol=1e-6, **WITHOUT_GAPS[name])
        for missing in ("model", "error")
    ]
    modelled, plain = (model.params_ for model in both)
    for field in ("bias", "diagonal", "coef"):
        assert np.array_equal(getattr(modelled, field), getattr(plain, field))
    assert both[0].edges_ == both[1].edges_
    assert both[0].objective_ == both[1].objective_
    assert both[0].kkt_ == both[1].kkt_


# -- Gaussian columns ------------------------------------------------------------------------------


def em(X, weights=None, rounds=5000, tol=1e-13):
    """Mean and covariance of normal rows with NaN, by expectation and maximisation."""
    n, p = X.shape
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    mean, covariance = np.nanmean(X, axis=0), np.diag(np.nanvar(X, axis=0))
    for _ in range(rounds):
        first, second = np.zeros(p), np.zeros((p, p))
        for x, weight in zip(X, share, strict=True):
            m, o = np.flatnonzero(np.isnan(x)), np.flatnonzero(~np.isnan(x))
            slope = np.linalg.solve(covariance[np.ix_(o, o)], covariance[np.ix_(o, m)])
            filled = x.copy()
            filled[m] = mean[m] + (x[o] - mean[o]) @ slope
            first += weight * filled
            second += weight * np.outer(filled, filled)
            second[np.ix_(m, m)] += weight * (
                covariance[np.ix_(m, m)] - covariance[np.ix_(m, o)] @ slope
            )
        change = np.abs(first - mean).max()
        change = max(change, np.abs(second - np.outer(first, first) - covariance).max())
        mean, covariance = first, second - np.outer(first, first)
        if change < tol:
            return mean, covariance
    raise AssertionError("not converged")


def mean_and_covariance(model):
    covariance = np.linalg.inv(model.params_.precision)
    return covariance @ model.params_.bias, covariance


@pytest.mark.parametrize("weighted", [False, True])
def test_gaussian_columns_have_the_mean_and_covariance_of_em_by_hand(weighted):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)) + [1.0, -2.0, 0.5]
    X[rng.random(X.shape) < np.array([0.1, 0.25, 0.3])] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    weights = rng.uniform(0.5, 2.0, len(X)) if weighted else None
    model = fit(pd.DataFrame(X, columns=["u", "v", "w"]), weights, loss="likelihood", lam=0)
    found, expected = mean_and_covariance(model), em(X, weights)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-6)
    joint = model.marginal(["u", "v", "w"])
    np.testing.assert_allclose([joint.mean[k] for k in "uvw"], expected[0], atol=1e-6)


def test_gaussian_columns_have_the_mean_and_covariance_of_lavaan():
    table = pd.read_csv(HERE / "lavaan_fiml.csv")
    stored = json.loads((HERE / "lavaan_fiml.json").read_text(encoding="utf-8"))
    mean, covariance = mean_and_covariance(fit(table, loss="likelihood", lam=0))
    np.testing.assert_allclose(mean, stored["mean"], rtol=1e-6)
    np.testing.assert_allclose(covariance, stored["covariance"], rtol=1e-6)
    rows = Rows(table.to_numpy(), np.zeros((len(table), 0), dtype=np.int64), ())
    theta = rows.vector(fit(table, loss="likelihood", lam=0).params_)
    assert -len(table) * rows.loss(theta) == pytest.approx(stored["log_likelihood"], abs=1e-8)


# -- a two-way table with a margin of its own ------------------------------------------------------


@pytest.mark.parametrize("loss", ["likelihood", "pseudolikelihood"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_two_way_table_with_one_column_partly_missing_has_the_closed_form(weighted, loss):
    """All rows tell about the first column, the complete ones about the second given the first.

    The pseudolikelihood of all edges has the same optimum: with two columns, it has conditionals
    of both, and at their joint shares both are exact.
    """
    rng = np.random.default_rng(2)
    n = 90
    a = rng.integers(3, size=n)
    b = (rng.random(n) < np.array([0.25, 0.5, 0.7])[a]).astype(int)
    missing = rng.random(n) < np.array([0.1, 0.3, 0.6])[a]
    weights = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    table = pd.DataFrame({"a": a.astype(str), "b": b.astype(str).astype(object)})
    table.loc[missing, "b"] = None
    model = fit(table, weights, loss=loss, lam=0)
    joint = model.marginal(["a", "b"]).frame().set_index(["a", "b"])["probability"]
    for i in range(3):
        margin = weights[a == i].sum() / weights.sum()
        known = (a == i) & ~missing
        for j in range(2):
            given = weights[known & (b == j)].sum() / weights[known].sum()
            assert joint[str(i), str(j)] == pytest.approx(margin * given, abs=1e-6)


# -- likelihood ------------------------------------------------------------------------------------

EXAMPLES = {
    "number": (70, "xab", (("a", 0.25), ("b", 0.25))),
    "missing-numbers": (80, "axw", (("x", 0.3), ("w", 0.3)), 1),
    "everything": (90, "xwab", (("w", 0.25), ("a", 0.25), ("b", 0.25)), 2),
    "ordinal-count": (120, "xoca", (("o", 0.25), ("c", 0.25), ("a", 0.2)), 3),
    "discrete": (120, "oab", (("a", 0.3), ("b", 0.3)), 4),
    "weighted": (70, "xwab", (("w", 0.25), ("a", 0.25), ("b", 0.2)), 5, True),
}


def named(name) -> Example:
    """One of the examples."""
    n, columns, gaps, *more = EXAMPLES[name]
    return example(n, columns, gaps, **dict(zip(("seed", "weighted"), more, strict=False)))


@pytest.mark.parametrize("weights", ["calibrated", "uniform"])
@pytest.mark.parametrize("lam", [0.0, 0.03, 0.1])
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_observed_likelihood_is_stationary_at_the_estimate(name, lam, weights):
    made = named(name)
    model = fit(made.table, made.rows.weights, loss="likelihood", lam=lam, penalty_weights=weights)
    theta = made.rows.vector(model.params_)
    gradient = derivative(made.rows.loss, theta)
    assert made.rows.kkt(theta, gradient, lam, weights) < 1e-6


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_point_nearby_has_a_higher_observed_likelihood(name):
    made, rng = named(name), np.random.default_rng(0)
    theta = made.rows.vector(fit(made.table, made.rows.weights, loss="likelihood", lam=0).params_)
    lowest = made.rows.loss(theta)
    for size in (1e-3, 1e-2, 1e-1):
        for _ in range(20):
            move = rng.normal(size=len(theta))
            assert made.rows.loss(theta + size * move / np.linalg.norm(move)) > lowest - 1e-12


# -- pseudolikelihood ------------------------------------------------------------------------------


def expected_gradient(rows, theta, n_points=200, nodes=slice(None)):
    """Of the mean negative log pseudolikelihood, over completions by the parameters themselves."""
    completions = rows.completions(theta, n_points)
    state = completions.numbers, completions.state

    def loss(point):
        return completions.share @ rows.conditional_losses(point, *state)[:, nodes].sum(axis=1)

    return derivative(loss, theta)


@pytest.mark.parametrize("weights", ["calibrated", "uniform"])
@pytest.mark.parametrize("lam", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("name", ["number", "ordinal-count", "discrete"])
def test_the_expected_gradient_vanishes_where_categories_are_missing(name, lam, weights):
    made = named(name)
    model = fit(made.table, made.rows.weights, lam=lam, penalty_weights=weights)
    theta = made.rows.vector(model.params_)
    assert made.rows.kkt(theta, expected_gradient(made.rows, theta), lam, weights) < 1e-7


@pytest.mark.parametrize("lam", [0.0, 0.1])
@pytest.mark.parametrize(
    ("gaps", "accuracy"),
    [
        # Seven points for a number alone: 1e-8 was measured.
        ((("x", 0.25),), 1e-6),
        # Three points for each state of the missing categories: 1.3e-5 was measured.
        ((("x", 0.25), ("o", 0.2), ("a", 0.2), ("b", 0.2)), 5e-5),
    ],
)
def test_the_expected_gradient_vanishes_where_a_number_is_missing(gaps, accuracy, lam):
    made = example(100, "wxoab", gaps, seed=6)
    rows = made.rows
    theta = rows.vector(fit(made.table, lam=lam).params_)
    assert rows.kkt(theta, expected_gradient(rows, theta), lam) < accuracy


@pytest.mark.parametrize("lam", [0.0, 0.1])
def test_where_states_are_drawn_the_error_of_the_certificate_is_as_large_as_it_says(lam):
    """Rows have up to 90 states: too many for all of them to stand.

    Both numbers are maxima over many derivatives, of which one set is drawn: 0.9 to 1.9 times the
    other was measured on three tables.
    """
    made = example(150, "xocab", tuple((name, 0.6) for name in "ocab"))
    model = fit(made.table, lam=lam, tol=1e-7)
    theta = made.rows.vector(model.params_)
    found = made.rows.kkt(theta, expected_gradient(made.rows, theta), lam)
    stated = model.fitted_.report.certificate.kkt_error
    assert 0.3 * stated < found < 3.0 * stated


def test_covariates_are_given_and_not_predicted():
    made = named("number")
    lam, rows = 0.05, made.rows
    model = fit(made.table, lam=lam, covariates=["x"])
    theta = rows.vector(model.params_)
    own = np.ones(len(theta), dtype=bool)
    own[[0, rows.n_own - 1]] = False  # a covariate has no terms of its own
    theta[rows.n_own - 1] = 1.0
    gradient = np.where(own, expected_gradient(rows, theta, nodes=slice(1, None)), 0.0)
    scales = rows.scales(theta)
    assert np.abs(gradient[: rows.n_own]).max() < 1e-7
    for (u, v), at in rows.blocks.items():
        pull = lam * scales[u] * scales[v] * (0.5 if u == 0 else 1.0)
        length = np.linalg.norm(theta[at])
        if length > 0:
            np.testing.assert_allclose(gradient[at], -pull * theta[at] / length, atol=1e-7)
        else:
            assert np.linalg.norm(gradient[at]) <= pull + 1e-7


@pytest.mark.parametrize("lam", [0.0, 0.05])
def test_separate_regressions_are_optimal_at_completions_of_the_joint_model(lam):
    made = named("number")
    rows, joint = made.rows, made.rows.vector(fit(made.table, lam=lam).params_)
    completions, scales = rows.completions(joint), rows.scales(joint)
    params = fit(made.table, lam=lam, loss="nodewise").params_
    for node, span in enumerate(rows.spans):
        coef = np.zeros_like(params.coef)
        coef[:, span] = params.coef[:, span]
        coef[span, :] = coef[:, span].T
        one = SimpleNamespace(bias=params.bias, diagonal=params.diagonal, coef=coef)
        theta = rows.vector(one)
        gradient = derivative(
            lambda point, node=node: (
                completions.share
                @ rows.conditional_losses(point, completions.numbers, completions.state)[:, node]
            ),
            theta,
        )
        assert np.abs(gradient[: rows.n_own]).max() < 1e-6
        for (u, v), at in rows.blocks.items():
            if node not in (u, v):
                continue
            pull, length = lam * scales[u] * scales[v], np.linalg.norm(theta[at])
            if length > 0:
                np.testing.assert_allclose(gradient[at], -pull * theta[at] / length, atol=1e-6)
            else:
                assert np.linalg.norm(gradient[at]) <= pull + 1e-6


# -- standard errors -------------------------------------------------------------------------------


class Sandwich:
    """Expected scores of rows and their derivatives, by differences, and Godambe's covariance.

    Parameters are contrasts of levels, and numbers are in units of their standard deviation.
    """

    def __init__(self, rows, theta, graph):
        self.rows, self.n, self.graph = rows, len(rows.numbers), graph
        scales = rows.scales(theta)
        widths = [span.stop - span.start for span in rows.spans]
        self.bases = [
            np.array([[1.0 / scale]]) if width == 1 else helmert(width).T
            for width, scale in zip(widths, scales, strict=True)
        ]
        own = [np.eye(rows.p)]
        for values in rows.values:
            m, k = values.terms.shape
            own.append(
                helmert(m).T if m == k else np.eye(k)
            )  # a term for every value: one too many
        own.append(np.eye(rows.p))
        blocks = [np.kron(self.bases[u], self.bases[v]) for u, v in rows.pairs]
        self.turn = block_diag(*own, *blocks)
        first = self.turn.shape[1] - sum(block.shape[1] for block in blocks)
        self.held, self.at = list(range(first)), {}
        for pair, block in zip(rows.pairs, blocks, strict=True):
            self.at[pair] = list(range(first, first + block.shape[1]))
            self.held += self.at[pair] if pair in graph else []
            first += block.shape[1]
        self.eta = np.linalg.lstsq(self.turn, theta, rcond=None)[0]

    @property
    def left(self):
        """Of every column, the share of the rows that its predictors and its mean leave."""
        free = [base.shape[1] for base in self.bases]
        used = [1 + sum(free[sum(e) - v] for e in self.graph if v in e) for v in range(len(free))]
        return 1.0 - np.array(used) / self.n

    def scores(self, eta, inflation=None):
        """(n, parameters) expected derivative of every row's loss, given what it has."""
        completions = self.rows.completions(self.turn @ eta)
        by_node = np.ones(len(self.bases)) if inflation is None else inflation

        def losses(point):
            each = self.rows.conditional_losses(
                self.turn @ point, completions.numbers, completions.state
            )
            return self.n * np.bincount(completions.row, completions.share * (each @ by_node))

        return derivative(losses, eta)

    def estimates(self):
        """Estimate and covariance of every pair given the graph, with corrections for few rows.

        A pair outside the graph gets one step of Newton's from zero, everything held following.
        """
        slope = derivative(lambda point: self.scores(point).mean(axis=0), self.eta, 1e-2)
        mean = self.scores(self.eta).mean(axis=0)
        inflated = self.scores(self.eta, self.left**-0.5)
        out = {}
        for pair, at in self.at.items():
            asked = self.held if pair in self.graph else [*self.held, *at]
            bread = np.linalg.inv(slope[np.ix_(asked, asked)])
            moved = -inflated[:, asked] @ bread.T
            covariance = moved.T @ moved / self.n**2
            value = self.eta[asked] - bread @ mean[asked]
            here = [asked.index(k) for k in at]
            shrunken = self.left[list(pair)].mean()
            out[pair] = shrunken * value[here], shrunken**2 * covariance[np.ix_(here, here)]
        return out


def pairs_tested_by_the_package(made, graph):
    """What the package says about all pairs given some: its parameters, and by pair."""
    model = fit(made.table, lam=0.0, tol=1e-7)
    gaps, _ = learn_gaps(made.table, types={k: v for k, v in TYPES.items() if k in made.table})
    _, task = Incomplete.of(gaps, Recipe()).at(model.params_)
    pairs = [tuple(pair) for pair in task.layout.pairs.tolist()]
    held = np.array([g for g, pair in enumerate(pairs) if pair in graph], dtype=np.int64)
    tests = pairs_given(task, held, task.theta_of(model.params_))
    found = {}
    for groups, values, covariance in tests.estimates.by_size():
        for g, value, matrix in zip(groups, values, covariance, strict=True):
            found[pairs[g]] = value, matrix
    return tests.params, found


@pytest.mark.parametrize("absent", [(), ((1, 3), (2, 3))], ids=["all", "some"])
def test_covariances_are_those_of_expected_scores(absent):
    """With their derivative in the law of the completions, too (Louis 1982).

    Estimates of pairs outside the graph are by a curvature that is made symmetric; that moves them
    by less than a thousandth of a standard error.
    """
    made = example(300, "xoab", (("o", 0.25), ("a", 0.25), ("b", 0.25)), seed=7)
    graph = [pair for pair in made.rows.pairs if pair not in absent]
    params, found = pairs_tested_by_the_package(made, graph)
    expected = Sandwich(made.rows, made.rows.vector(params), graph).estimates()
    for pair, (value, covariance) in expected.items():
        error = np.sqrt(np.diag(covariance))
        np.testing.assert_allclose(found[pair][0], value, atol=1e-3 * error.min())
        np.testing.assert_allclose(found[pair][1], covariance, atol=1e-4 * covariance.max())


# -- rows, weights and threads ---------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood"])
def test_a_table_in_which_every_row_has_a_gap(loss):
    """One of the three last cells of every row is missing, and now and then two are."""
    made = example(150, "xoab", (), seed=8)
    rng = np.random.default_rng(8)
    gap = np.eye(3, dtype=bool)[rng.integers(3, size=150)] | (rng.random((150, 3)) < 0.1)
    table, codes = made.table.copy(), np.where(gap, -1, made.rows.codes)
    for j, name in enumerate("oab"):
        table.loc[gap[:, j], name] = None
    assert table.isna().any(axis=1).all()
    rows = dataclasses.replace(made.rows, codes=codes)
    for lam in (0.0, 0.05):
        theta = rows.vector(fit(table, lam=lam, loss=loss).params_)
        if loss == "likelihood":
            gradient = derivative(rows.loss, theta)
        else:
            gradient = expected_gradient(rows, theta)
        assert rows.kkt(theta, gradient, lam) < 1e-6


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood", "nodewise"])
@pytest.mark.parametrize("lam", [0.0, 0.05])
def test_a_row_of_weight_two_is_the_row_twice(lam, loss):
    made = example(80, "xwab", (("w", 0.2), ("a", 0.2), ("b", 0.2)), seed=9)
    counts = np.random.default_rng(9).integers(1, 3, 80)
    twice = made.table.loc[np.repeat(np.arange(80), counts)].reset_index(drop=True)
    options = {"lam": lam, "loss": loss, "tol": 1e-11}
    weighted, repeated = fit(made.table, counts.astype(float), **options), fit(twice, **options)
    for field in ("bias", "diagonal", "coef"):
        one, other = (getattr(model.params_, field) for model in (weighted, repeated))
        np.testing.assert_allclose(one, other, atol=1e-8)


@pytest.mark.parametrize("options", [{"lam": 0.05}, {}, {"lam": 0.05, "loss": "likelihood"}])
def test_the_same_bits_for_every_number_of_threads(options):
    made = example(150, "xwocab", tuple((name, 0.2) for name in "wocab"), seed=10)
    one, two = (fit(made.table, n_jobs=jobs, tol=1e-6, **options) for jobs in (1, 2))
    for field in ("bias", "diagonal", "coef"):
        assert np.array_equal(getattr(one.params_, field), getattr(two.params_, field))
    assert one.edges_ == two.edges_


def test_the_dense_fit_is_as_dense_for_the_likelihood():
    """Its edges are in one term instead of two, so that half the penalty shrinks them alike."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    x[:, 1] += 0.4 * x[:, 0]
    x[rng.random(x.shape) < 0.05] = np.nan
    gaps, _ = learn_gaps(x)
    sizes = []
    for loss in ("pseudolikelihood", "likelihood"):
        dense = Incomplete.of(gaps, Recipe(loss=loss)).weak()
        sizes.append(dense.task.layout.group_norms(dense.theta)[0])
    assert sizes[1] == pytest.approx(sizes[0], rel=0.05)
