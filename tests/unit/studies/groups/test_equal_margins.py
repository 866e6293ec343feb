"""Weights that make margins of groups equal: the smallest change, and none of edges."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import mixedgm as mg
from mixedgm.fit.fitting import encode
from mixedgm.fit.options import Options
from mixedgm.studies.groups.compare import Part, RowMargins, effective

TYPES = {"c": "categorical", "o": "ordinal", "k": "count"}


def margins(table: pd.DataFrame, **types: str) -> RowMargins:
    design = encode(table, Options(types=types), None)
    return RowMargins(design.schema.spans, design.numbers, design.codes)


@pytest.mark.filterwarnings("ignore::mixedgm.TableWarning")
def test_groups_with_the_same_edges_become_one_distribution() -> None:
    """All states of a model with their probabilities, under two sets of own terms."""
    states = np.array(list(product(range(3), range(4), range(6))), dtype=float)
    c, o, k = states.T
    edges = 0.8 * (c == 1) * o - 0.5 * (c == 2) * np.sqrt(k) + 0.3 * o * np.sqrt(k)
    first = edges + 0.2 * (c == 1) - 0.4 * (o - 1) ** 2 + 0.5 * k
    second = edges - 0.9 * (c == 2) + 0.3 * (o == 3) - 0.2 * k + 0.7 * np.sqrt(k)
    table = pd.DataFrame({"c": np.array(list("pqr"))[c.astype(int)], "o": o, "k": k})
    table = pd.concat([table, table], ignore_index=True).astype({"o": int, "k": int})
    at = np.arange(len(states))
    parts = [
        Part(rows, 500 * np.exp(logit) / np.exp(logit).sum())
        for rows, logit in ((at, first), (at + len(at), second))
    ]
    found = margins(table, **TYPES)
    after = [p.share * f for p, f in zip(parts, found.factors(parts), strict=True)]
    assert np.abs(parts[0].share - parts[1].share).max() > 0.02
    np.testing.assert_allclose(after[0], after[1], atol=1e-6)


def test_the_change_is_the_smallest() -> None:
    """Against SciPy's minimiser of relative entropy, subject to equal means and variances."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=8), rng.normal(0.5, 2.0, size=10)])
    table = pd.DataFrame({"x": x, "y": rng.normal(size=18)})
    parts = [Part(np.arange(8), np.ones(8)), Part(np.arange(8, 18), np.ones(10))]
    found = np.concatenate(margins(table).factors(parts))
    values = table.to_numpy()
    moved = [values[p.rows] - values[p.rows].mean(axis=0) for p in parts]
    features = [np.hstack([each, each**2]) for each in moved]

    def apart(w: np.ndarray) -> np.ndarray:
        sums = [w[:8].sum() / 8 - 1, w[8:].sum() / 10 - 1]
        return np.concatenate([w[:8] @ features[0] / 8 - w[8:] @ features[1] / 10, sums])

    best = minimize(
        lambda w: w @ np.log(w),
        np.ones(18),
        jac=lambda w: np.log(w) + 1.0,
        bounds=[(1e-9, None)] * 18,
        constraints={"type": "eq", "fun": apart},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert best.success
    np.testing.assert_allclose(found, best.x, atol=2e-4)


def test_columns_that_cannot_be_balanced_are_left_alone() -> None:
    table = pd.DataFrame({"d": list("ppqqpqrp"), "x": [0.0, 1, 2, 4, 1, 1, 1, 1]})
    parts = [Part(np.arange(4), np.ones(4)), Part(np.arange(4, 8), np.ones(4))]
    for factors in margins(table, x="continuous").factors(parts):
        np.testing.assert_allclose(factors, 1.0)


def test_effective_rows() -> None:
    assert effective(np.ones(4), np.array([2.0, 2.0, 0.0, 0.0])) == 2.0
    assert effective(np.array([3.0, 1.0]), np.array([3.0, 1.0])) == 4.0


def test_groups_that_do_not_overlap_are_refused() -> None:
    rng = np.random.default_rng(0)
    low = rng.integers(0, 4, 80)
    high = rng.integers(40, 90, 80)
    table = pd.DataFrame({"k": np.concatenate([low, high]), "x": rng.normal(size=160)})
    given = {"types": {"k": "count"}, "lam": 0.2, "n_perm": 2, "random_state": 0, "n_jobs": 1}
    with pytest.raises(mg.ParameterError, match="test='differences'"):
        mg.compare(table, np.repeat(["a", "b"], 80), **given)


@pytest.mark.filterwarnings("ignore::mixedgm.TableWarning")
def test_no_row_loses_all_of_its_weight() -> None:
    """One group alone has a value far out: it would have to count nothing there."""
    x = np.concatenate([np.full(20, 1.0), np.full(20, 1.0)])
    x[[0, 1, 20]] = 1.1, 5.0, 1.05
    table = pd.DataFrame({"x": x, "y": np.random.default_rng(0).normal(size=40)})
    parts = [Part(np.arange(20), np.ones(20)), Part(np.arange(20, 40), np.ones(20))]
    found = margins(table)
    for _ in range(3):  # shuffles change weights that were changed before
        factors = found.factors(parts)
        assert all(np.isfinite(each).all() and (each > 0.0).all() for each in factors)
        parts = [
            Part(part.rows, part.weights * each) for part, each in zip(parts, factors, strict=True)
        ]
