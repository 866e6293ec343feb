"""The refit of a graph: closed forms, a plain pseudolikelihood minimised by SciPy, new tables."""

import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import ndtri
from scipy.stats import rankdata

import mixedgm as mg
from mixedgm.studies.fit_check.graph_refit import refit_graph
from mixedgm.table.encode import apply
from tests.support.patients import TYPES, chances, gaussian, patients, values_of


def refitted(model, table, **options):
    """The graph's estimate on a table."""
    return refit_graph(model.fitted_, apply(table, model.schema_, **options))


def fixed(table, edges, **options):
    """A shrunken model with these edges and no others."""
    others = {*combinations(table.columns, 2)} - {*edges}
    model = mg.MixedGraphicalModel(lam=0.03, forbid=[*others], **options).fit(table)
    found = {frozenset((edge.source, edge.target)) for edge in model.edges_}
    assert found == {frozenset(edge) for edge in edges}
    return model


def ordered(edges, names):
    """Pairs in the order of the columns."""
    return [tuple(sorted(edge, key=list(names).index)) for edge in edges]


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    mix = np.eye(4) + 0.4 * rng.normal(size=(4, 4))
    return pd.DataFrame(rng.normal(size=(300, 4)) @ mix, columns=list("abcd"))


def test_of_all_pairs_of_numbers_it_is_the_inverse_covariance(numbers):
    model = fixed(numbers, [*combinations(numbers.columns, 2)])
    found = refitted(model, numbers).fitted.params
    expected = np.linalg.inv(np.cov(numbers.to_numpy().T, ddof=0))
    np.testing.assert_allclose(found.precision, expected, atol=2e-4)


def test_of_two_columns_of_two_levels_it_is_the_odds_ratio():
    rng = np.random.default_rng(1)
    one = rng.random(400) < 0.4
    two = rng.random(400) < np.where(one, 0.7, 0.35)
    table = pd.DataFrame({"one": one, "two": two})
    model = mg.MixedGraphicalModel(lam=0.05, refit=False).fit(table)
    block = refitted(model, table).fitted.params.cat_interaction[:2, 2:]
    counts = pd.crosstab(one, two).to_numpy()
    expected = np.log(counts[0, 0] * counts[1, 1] / (counts[0, 1] * counts[1, 0]))
    assert block[0, 0] - block[0, 1] - block[1, 0] + block[1, 1] == pytest.approx(
        expected, abs=2e-3
    )


def pseudolikelihood(theta, table, edges):
    """Mean of minus the log conditionals of numbers: symmetric coefficients, own precisions."""
    x, p = table.to_numpy() - table.to_numpy().mean(axis=0), table.shape[1]
    log_precision, coupling = theta[:p], np.zeros((p, p))
    for (u, v), value in zip(edges, theta[p:], strict=True):
        coupling[u, v] = coupling[v, u] = value
    residual = x - x @ coupling / np.exp(log_precision)
    return np.mean(np.sum(0.5 * np.exp(log_precision) * residual**2 - 0.5 * log_precision, axis=1))


def test_of_some_pairs_it_minimises_the_pseudolikelihood(numbers):
    """By another minimiser, of the formula written out."""
    names = [("a", "b"), ("b", "c"), ("c", "d")]
    found = refitted(fixed(numbers, names), numbers).fitted.params.precision
    edges = [(0, 1), (1, 2), (2, 3)]
    best = minimize(pseudolikelihood, np.zeros(7), (numbers, edges), tol=1e-10)
    np.testing.assert_allclose(np.diag(found), np.exp(best.x[:4]), atol=1e-3)
    np.testing.assert_allclose([-found[e] for e in edges], best.x[4:], atol=1e-3)
    assert found[0, 2] == found[0, 3] == found[1, 3] == 0.0


class Nudged:
    """Parameters with one entry of one edge a step off."""

    def __init__(self, params, edge, entry, step):
        self.params, self.edge, self.entry, self.step = params, edge, entry, step

    def __getattr__(self, name):
        return getattr(self.params, name)

    def says(self, u, v):
        block = np.array(self.params.says(u, v))
        if (u, v) == self.edge:
            block[self.entry] += self.step
        if (v, u) == self.edge:
            block[self.entry[::-1]] += self.step
        return block


def minus_log_conditionals(params, schema, rows):
    """Summed over all columns of all rows, by formulas written out by hand."""
    total = 0.0
    for row in rows:
        for column in schema.nodes:
            name = column.name
            if column.kind == "continuous":
                mean, variance = gaussian(params, schema, row, name)
                total += 0.5 * np.log(variance) + 0.5 * (row[name] - mean) ** 2 / variance
            else:
                at = values_of(column).index(row[name])
                total -= np.log(chances(params, schema, row, name)[at])
    return total


def test_of_every_kind_no_step_improves_the_conditionals():
    """The slope of the loss in each entry of each edge, in standard errors of a slope."""
    names = ["age", "pain", "visits", "ward", "smoker"]
    table = patients(150, seed=2)[names]
    edges = [("age", "pain"), ("pain", "visits"), ("visits", "smoker"), ("pain", "ward")]
    types = {name: TYPES[name] for name in ("pain", "visits")}
    refit = refitted(fixed(table, ordered(edges, names), types=types), table)
    schema, params, rows = refit.fitted.schema, refit.fitted.params, table.to_dict("records")
    here, step = minus_log_conditionals(params, schema, rows), 0.01
    for one, two in edges:
        edge = schema.node_index(one), schema.node_index(two)
        for entry in np.ndindex(params.says(*edge).shape):
            above, below = (
                minus_log_conditionals(Nudged(params, edge, entry, side), schema, rows)
                for side in (step, -step)
            )
            slope, curvature = (above - below) / (2 * step), (above + below - 2 * here) / step**2
            assert abs(slope) < 0.02 * np.sqrt(curvature), (one, two, entry)


def test_weights_count_rows(numbers):
    model = fixed(numbers, [("a", "b"), ("b", "c")])
    weights = np.where(np.arange(300) < 100, 2.0, 1.0)
    weighted = refitted(model, numbers, sample_weight=weights).fitted
    twice = refitted(model, pd.concat([numbers, numbers.head(100)])).fitted
    np.testing.assert_allclose(weighted.params.precision, twice.params.precision, atol=1e-3)
    assert weighted.report.total_weight == 400.0


def test_shrinkage_of_the_model_leaves_no_trace(numbers):
    edges = [("a", "b"), ("b", "c"), ("c", "d")]
    found = [
        refitted(fixed(numbers, edges, loss=loss), numbers).fitted.params.precision
        for loss in ("pseudolikelihood", "nodewise", "likelihood")
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-3)
    np.testing.assert_allclose(found[2], found[0], atol=1e-3)


def test_transformed_columns_get_normal_scores_of_the_rows(numbers):
    """Whatever the transform was fitted on: van der Waerden's scores, up to their unit."""
    skewed, new = np.exp(numbers), np.exp(2.0 * numbers.head(150) - 1.0)
    model = mg.MixedGraphicalModel(lam=0.2, transforms="nonparanormal").fit(skewed)
    scores = refitted(model, new).design.numbers
    expected = ndtri(rankdata(new, axis=0) / (len(new) + 1))
    for found, own in zip(scores.T, expected.T, strict=True):
        assert np.corrcoef(found, own)[0, 1] > 0.999
    np.testing.assert_array_equal(np.argsort(scores, axis=0), np.argsort(new.to_numpy(), axis=0))


def test_again_on_the_same_rows_is_the_same_and_survives_pickling():
    table = patients(300, seed=1)
    model = mg.MixedGraphicalModel(lam=0.12, types=TYPES).fit(table)
    refit = refitted(model, table)
    params = refit.fitted.params
    for each in (refit, pickle.loads(pickle.dumps(refit))):  # noqa: S301
        again, rows = each.again(refit.design)
        assert rows.n_rows == 300
        for u, v in combinations(range(len(refit.fitted.schema.nodes)), 2):
            np.testing.assert_allclose(again.params.block(u, v), params.block(u, v), atol=0.01)


def test_a_new_table_is_refitted_as_if_it_were_the_first(numbers):
    edges = [("a", "b"), ("b", "c"), ("c", "d")]
    model = fixed(numbers, edges)
    new = numbers.iloc[::-1].head(200) + 0.3
    from_old, _ = refitted(model, numbers).again(apply(new, model.schema_))
    alone = refitted(model, new).fitted
    np.testing.assert_allclose(from_old.params.precision, alone.params.precision, atol=2e-3)


def test_too_few_rows_are_refused_with_the_way_out(numbers):
    model = fixed(numbers, [*combinations(numbers.columns, 2)])
    message = r"too many parameters for the rows: '\w' alone has 3, and there are 5 rows. To fix: "
    with pytest.raises(mg.ParameterError, match=message + "check the model as it is with refit"):
        refitted(model, numbers.head(5))
