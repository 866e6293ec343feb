"""Weights are frequencies: a row of weight 2 is the row twice, of weight 0 no row at all."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.path.task import prepare
from mixedgm.table.encode import learn
from tests.support.problems import draw, estimate, solved

TABLES = {
    "mixed": draw(81, 70, 2, (2, 4), weighted=True),
    "continuous": draw(82, 50, 4, (), weighted=True),
    "categorical": draw(83, 70, 0, (2, 3, 4), weighted=True),
}
BLOCKS = ("precision", "cont_bias", "category_shift", "cat_interaction", "cat_bias")


def repeated(table):
    rows = np.repeat(np.arange(len(table.X)), table.row_weights.astype(int))
    return replace(table.take(rows), row_weights=np.ones(len(rows)))


@pytest.mark.parametrize("weights", ["calibrated", "uniform"])
@pytest.mark.parametrize("name", TABLES)
def test_weights_are_repetitions(name, weights):
    table = TABLES[name]
    here, edges, value, lam = estimate(table, 0.1, weights=weights)
    there, other_edges, other_value, other_lam = estimate(repeated(table), 0.1, weights=weights)
    assert other_edges == edges
    assert (other_value, other_lam) == pytest.approx((value, lam), abs=1e-9)
    for block in BLOCKS:
        np.testing.assert_allclose(getattr(there, block), getattr(here, block), atol=1e-6)


@pytest.mark.parametrize("name", TABLES)
def test_value_and_gradient_with_weights_are_those_of_repetitions(name):
    table = TABLES[name]
    here, there = table.task(), repeated(table).task()
    rng = np.random.default_rng(0)
    theta = here.null.theta + 0.1 * rng.normal(size=here.layout.n_theta)
    a, b = here.smooth.evaluate(theta), there.smooth.evaluate(theta)
    assert a.value == pytest.approx(b.value, abs=1e-12)
    np.testing.assert_allclose(a.gradient, b.gradient, atol=1e-12)
    assert here.total_weight == there.total_weight


@pytest.mark.parametrize("name", TABLES)
def test_equal_weights_of_any_size_change_nothing_but_n(name):
    table = TABLES[name]
    ones = replace(table, row_weights=np.ones(len(table.X)))
    sevens = replace(table, row_weights=np.full(len(table.X), 7.0))
    a, b = estimate(ones, 0.1), estimate(sevens, 0.1)
    assert a[1] == b[1]
    assert a[2:] == pytest.approx(b[2:], abs=1e-9)
    assert sevens.task().total_weight == 7 * len(table.X)


def frame_of(table):
    import pandas as pd

    columns = {f"c{s}": x for s, x in enumerate(table.X.T)}
    for r, m in enumerate(table.n_levels):
        columns[f"k{r}"] = pd.Categorical.from_codes(table.Y[:, r], [f"l{a}" for a in range(m)])
    return pd.DataFrame(columns)


def fitted(frame, weights):
    design, _ = learn(frame, sample_weight=weights)
    task = prepare(design)
    solution = solved(task, 0.1, tol=1e-9)
    return task.params(solution.theta), solution.objective + task.log_jacobian


@pytest.mark.filterwarnings("ignore::mixedgm.base.errors.TableWarning")
def test_rows_of_weight_zero_are_no_rows():
    table = TABLES["mixed"]
    weights = table.row_weights.copy()
    weights[10:30] = 0.0
    frame = frame_of(table)
    params, value = fitted(frame, weights)
    kept = weights > 0
    expected, expected_value = fitted(frame[kept], weights[kept])
    assert value == pytest.approx(expected_value, abs=1e-10)
    for block in BLOCKS:
        np.testing.assert_allclose(getattr(params, block), getattr(expected, block), atol=1e-8)


@pytest.mark.filterwarnings("ignore::mixedgm.base.errors.TableWarning")
def test_a_level_whose_rows_have_weight_zero_is_as_good_as_empty():
    table = TABLES["mixed"]
    weights = np.where(table.Y[:, 1] == 2, 0.0, table.row_weights)
    frame = frame_of(table)
    params, value = fitted(frame, weights)
    assert np.isneginf(params.cat_bias[4])
    assert not params.cat_interaction[4].any()
    gone = frame[weights > 0].assign(k1=lambda rows: rows["k1"].cat.remove_unused_categories())
    narrow, narrow_value = fitted(gone, weights[weights > 0])
    assert narrow.n_levels == (2, 3)
    assert value == pytest.approx(narrow_value, abs=1e-10)
    keep = [0, 1, 2, 3, 5]
    np.testing.assert_allclose(params.category_shift[:, keep], narrow.category_shift, atol=1e-8)
