"""Tests of edges: Wald tests of precisions, odds ratios, and regressions by statsmodels."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm

import mixedgm as mg
from tests.reference import regression_errors


def edge_tests(table, *, cluster=None, sample_weight=None, covariance="rows", **options):
    model = mg.MixedGraphicalModel(lam=0.2, refit=False, tol=1e-6, **options)
    model.fit(table, sample_weight=sample_weight)
    given = {"cluster": cluster, "sample_weight": sample_weight, "random_state": 0}
    return mg.edge_tests(model, table, method="free", covariance=covariance, **given)


def by_pair(tests):
    frame = tests.edges().rename(columns=lambda name: name.removesuffix(tests.option))
    keys = [frozenset(ends) for ends in zip(frame["source"], frame["target"], strict=True)]
    return dict(zip(keys, frame.to_dict("records"), strict=True))


# -- numbers ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(1)
    n, p = 3000, 5
    precision = np.eye(p)
    for u, v, value in ((0, 1, -0.5), (1, 2, 0.3), (3, 4, -0.7), (0, 4, 0.1)):
        precision[u, v] = precision[v, u] = value
    X = rng.multivariate_normal(np.zeros(p), np.linalg.inv(precision), n)
    return pd.DataFrame(X * [1, 2, 3, 4, 5], columns=list("abcde"))


def standardised(table):
    X = table.to_numpy()
    return (X - X.mean(axis=0)) / X.std(axis=0)


def test_numbers_have_the_errors_of_the_inverse_covariance(numbers):
    """The optimum is the inverse of S, whose change with a row is -S^-1 (xx' - S) S^-1."""
    X = standardised(numbers)
    n, p = X.shape
    precision = np.linalg.inv(X.T @ X / n)
    change = np.einsum("ia,ib->iab", X @ precision, X @ precision) - precision
    variance = (change**2).mean(axis=0) / n
    left = 1 - p / n  # the documented correction: p - 1 predictors and a mean
    found = by_pair(edge_tests(numbers))
    for u, v in zip(*np.triu_indices(p, 1), strict=True):
        row = found[frozenset((numbers.columns[u], numbers.columns[v]))]
        assert row["estimate"] == pytest.approx(-precision[u, v] * left, rel=1e-5, abs=1e-6)
        assert row["se"] == pytest.approx(np.sqrt(variance[u, v] * left), rel=1e-5)
        w = precision[u, v] ** 2 / variance[u, v] * left
        assert row["statistic"] == pytest.approx(w, rel=1e-4, abs=1e-6)
        assert row["p"] == pytest.approx(chi2.sf(w, 1), rel=1e-3)


@pytest.mark.statistical
def test_with_variances_of_the_model_they_are_wald_tests_of_precisions(numbers):
    """Drawn rows have an error of one per cent; this fails in about one of 10,000 runs."""
    X = standardised(numbers)
    n, p = X.shape
    precision = np.linalg.inv(X.T @ X / n)
    own = np.diag(precision)
    wald = precision**2 / ((np.outer(own, own) + precision**2) / (n - p))
    found = by_pair(edge_tests(numbers, covariance="model"))
    for u, v in zip(*np.triu_indices(p, 1), strict=True):
        row = found[frozenset((numbers.columns[u], numbers.columns[v]))]
        assert row["statistic"] == pytest.approx(wald[u, v], rel=0.08)


# -- two levels ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:sample_weight sums to:mixedgm.TableWarning")
@pytest.mark.parametrize("weighted", [False, True])
def test_a_table_of_two_by_two_has_its_log_odds_ratio(weighted):
    counts = np.array([[60, 25], [31, 84]])
    cells = [(a, b) for a in range(2) for b in range(2)]
    times = [1] * 4 if weighted else [int(counts[cell]) for cell in cells]
    rows = [cell for cell, k in zip(cells, times, strict=True) for _ in range(k)]
    weights = np.array([counts[cell] for cell in cells], dtype=float) if weighted else None
    table = pd.DataFrame(rows, columns=["a", "b"]).astype(str)
    tests = edge_tests(table, sample_weight=weights)
    row = tests.edges().iloc[0]
    n = counts.sum()
    ratio = np.log(counts[0, 0] * counts[1, 1] / (counts[0, 1] * counts[1, 0]))
    left = 1 - 2 / n
    assert row["estimate"] == pytest.approx(ratio * left, rel=1e-5)
    assert row["se"] == pytest.approx(np.sqrt((1 / counts).sum() * left), rel=1e-5)
    cell = tests.parameters().iloc[0]
    assert cell["upper"] - cell["estimate"] == pytest.approx(norm.isf(0.025) * cell["se"])
    assert tests.effective_n == n


# -- regressions -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored():
    return json.loads(regression_errors.STORED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("target", ["y", "t"])
@pytest.mark.parametrize("how", ["rows", "clusters"])
def test_one_regression_has_the_sandwich_errors_of_statsmodels(stored, target, how):
    columns = regression_errors.table()
    n, k = regression_errors.design(columns).shape
    table = pd.DataFrame({name: columns[name] for name in ("x", "w", "c", target)})
    table = table.astype({"c": str, target: str})
    homes = columns["home"] if how == "clusters" else None
    found = by_pair(edge_tests(table, cluster=homes, covariates=["x", "w", "c"]))
    n_targets = 1 if target == "y" else 2
    slopes = np.array(stored[target]["coefficients"]).reshape(k, n_targets)
    covariance = np.array(stored[target][how])  # target by target
    units = n
    if how == "clusters":
        units = n // 4
        covariance *= units / (units - 1)
    for name, at in (("x", [1]), ("w", [2]), ("c", [3, 4])):
        row = found[frozenset((name, target))]
        value = slopes[at].T.ravel()
        where = [t * k + j for t in range(n_targets) for j in at]
        V = covariance[np.ix_(where, where)] / (1 - k / units)
        w = value @ np.linalg.solve(V, value)
        assert row["df"] == len(value)
        assert row["statistic"] == pytest.approx(w, rel=1e-6)
        if target == "y" and name != "c":
            spread = columns[name].std()
            assert row["estimate"] == pytest.approx(value[0] * spread * (1 - k / n), rel=1e-6)
            assert row["se"] == pytest.approx(np.sqrt(V[0, 0]) * spread * (1 - k / n), rel=1e-6)


def test_one_regression_of_a_number_has_the_sandwich_errors_of_slope_over_variance():
    columns = regression_errors.table()
    rng = np.random.default_rng(0)
    Z = regression_errors.design(columns).astype(float)
    n, k = Z.shape
    z = Z @ [0.5, 0.8, -0.4, 1.0, 0.2] + rng.normal(size=n) * (1 + 0.5 * np.abs(columns["w"]))
    table = pd.DataFrame({"x": columns["x"], "w": columns["w"], "c": columns["c"].astype(str)})
    found = by_pair(edge_tests(table.assign(z=z), covariates=["x", "w", "c"]))
    # Estimating equations of (slopes, variance): Z'e = 0 and e^2 - s = 0.
    slopes = np.linalg.lstsq(Z, z, rcond=None)[0]
    e = z - Z @ slopes
    s = np.mean(e**2)
    psi = np.column_stack([Z * e[:, None], e**2 - s])
    bread = np.zeros((k + 1, k + 1))
    bread[:k, :k], bread[k, k] = np.linalg.inv(Z.T @ Z / n), 1.0
    V = bread @ (psi.T @ psi / n) @ bread / n / (1 - k / n)
    for name, at in (("x", [1]), ("w", [2]), ("c", [3, 4])):
        turn = np.zeros((len(at), k + 1))
        turn[np.arange(len(at)), at] = 1 / s
        turn[:, k] = -slopes[at] / s**2
        value, matrix = slopes[at] / s, turn @ V @ turn.T
        row = found[frozenset((name, "z"))]
        assert row["statistic"] == pytest.approx(value @ np.linalg.solve(matrix, value), rel=1e-5)
        if len(at) == 1:
            unit = columns[name].std() * z.std()
            assert row["estimate"] == pytest.approx(value[0] * unit * (1 - k / n), rel=1e-5)


def test_a_cluster_for_every_row_makes_weights_those_of_a_design():
    columns = regression_errors.table()
    n = len(columns["x"])
    weights = np.random.default_rng(2).uniform(0.2, 3.0, n)
    table = pd.DataFrame({"x": columns["x"], "w": columns["w"]})
    tests = edge_tests(table, cluster=np.arange(n), sample_weight=weights)
    row = tests.edges().iloc[0]
    X = table.to_numpy() - np.average(table, axis=0, weights=weights)
    X /= np.sqrt(np.average(X**2, axis=0, weights=weights))
    precision = np.linalg.inv((X * weights[:, None]).T @ X / weights.sum())
    change = np.outer(X @ precision[0] * (X @ precision[1]), 1)[:, 0] - precision[0, 1]
    variance = n / (n - 1) * np.sum((weights * change) ** 2) / weights.sum() ** 2
    kish = weights.sum() ** 2 / (weights**2).sum()
    assert tests.effective_n == pytest.approx(kish)
    assert row["estimate"] == pytest.approx(-precision[0, 1] * (1 - 2 / kish), rel=1e-5)
    assert row["se"] == pytest.approx(np.sqrt(variance * (1 - 2 / kish)), rel=1e-5)
