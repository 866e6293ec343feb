"""Graphs chosen by tests: pairs and tests agree, and where tests cannot be made EBIC chooses."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from mixedgm.path.path import Path
from mixedgm.path.recipe import Recipe
from mixedgm.path.refits import unshrunken
from mixedgm.select.criteria import EBIC
from mixedgm.select.error_rates import FDR, LocalFDR
from mixedgm.select.graph_search import affordable, settled
from mixedgm.select.pair_tests import (
    FEWEST_OF_COLUMN,
    MOST_PARAMETERS,
    pairs_given,
    untestable,
    untested,
)
from mixedgm.select.selection import NAMED, choose
from mixedgm.solve.working_set import Start
from tests.support.problems import Table, draw, evidence_of, factors_of


def chain(n_rows: int, seed: int = 0) -> Table:
    """Four numbers in a chain, a binary column beside the last, and two columns of noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    for k in range(1, 4):
        X[:, k] += 0.8 * X[:, k - 1]
    Y = np.column_stack([X[:, 3] + rng.logistic(size=n_rows) > 0, rng.integers(0, 3, n_rows)])
    return Table(X, Y.astype(np.int64), (2, 3))


EDGES = {(0, 1), (1, 2), (2, 3), (3, 5)}


def pairs_of(task, groups):
    return {tuple(pair) for pair in task.layout.pairs[groups].tolist()}


def chosen(table, criterion, **recipe):
    task = table.task(**recipe)
    if "factors" in recipe:
        recipe["factors"] = factors_of(recipe["factors"])
    evidence = replace(evidence_of(table, Path.of(task), task), recipe=Recipe(**recipe))
    lams = np.geomspace(task.lam_max, 0.01 * task.lam_max, 50)
    return choose(evidence, criterion, lams, grows=True)


@pytest.mark.parametrize("criterion", [LocalFDR(), FDR(), LocalFDR(0.05), FDR(0.01)])
def test_a_clear_graph_is_found(criterion):
    table = chain(500, seed=2)
    path, choice = chosen(table, criterion)
    task = table.task()
    assert pairs_of(task, choice.groups) >= EDGES
    assert len(choice.groups) <= len(EDGES) + 1
    assert (choice.tested.probabilities[choice.groups] > 0.7).all()
    assert len(choice.scores["errors"]) == len(path)
    assert choice.index == np.argmin(choice.scores["errors"])


@pytest.mark.statistical
def test_noise_has_no_edges():
    """Twelve tables of noise: three false edges or more with a chance of about one in a hundred."""
    count = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        table = Table(rng.normal(size=(200, 6)), rng.integers(0, 3, (200, 4)), (3,) * 4)
        count += len(chosen(table, LocalFDR())[1].groups)
    assert count <= 2


def test_tests_and_graph_agree():
    """Given the chosen graph, Benjamini and Hochberg keep just its pairs."""
    task = chain(300).task()
    found = settled(task, np.zeros(0, dtype=np.int64), FDR(0.2).log_limit)
    tests, graph = found.tests, found.graph
    assert found.ended
    exactly = pairs_given(task, graph).statistics
    # While a graph is chosen, its refit is as near as a hundredth of a standard error.
    np.testing.assert_allclose(np.abs(tests.statistics.z), np.abs(exactly.z), atol=0.02)
    p = exactly.p
    assert graph.tolist() == np.flatnonzero(false_discovery_control(p) <= 0.2).tolist()


def test_where_the_search_begins_does_not_matter():
    task = chain(500).task()
    every = np.arange(task.layout.n_groups)
    ends = [settled(task, each, LocalFDR().log_limit).graph.tolist() for each in (every[:0], every)]
    assert ends[0] == ends[1]


def test_a_smaller_limit_keeps_fewer():
    task = draw(3, 300, 4, (2, 3, 3)).task()
    tests = pairs_given(task, np.zeros(0, dtype=np.int64))
    for criterion in (LocalFDR, FDR):
        limits = [criterion(x).log_limit(tests) for x in (0.01, 0.2, 0.6)]
        assert limits == sorted(limits)
        assert limits[0] < limits[2]


def test_required_edges_are_held_and_forbidden_ones_not_tested():
    table, n = chain(500), 7
    factors = np.ones((n, n))
    factors[0, 4] = factors[4, 0] = 0.0
    factors[0, 1] = factors[1, 0] = np.inf
    task = table.task(factors=factors)
    _, choice = chosen(table, LocalFDR(), factors=factors)
    found = pairs_of(task, choice.groups)
    assert (0, 4) in found
    assert (0, 1) not in pairs_of(task, np.arange(task.layout.n_groups))
    assert choice.tested.probabilities[task.penalty.free].tolist() == [1.0]


@pytest.mark.parametrize("loss", ["nodewise", "likelihood"])
def test_other_losses_have_the_same_graph(loss):
    table = chain(500)
    plain = pairs_of(table.task(), chosen(table, LocalFDR())[1].groups)
    task = table.task(loss=loss)
    groups = chosen(table, LocalFDR(), loss=loss)[1].groups
    assert {tuple(sorted(pair)) for pair in pairs_of(task, groups)} == plain


def test_few_rows_are_left_to_ebic():
    table = chain(29)
    _, choice = chosen(table, LocalFDR())
    _, by_ebic = chosen(table, EBIC())
    assert choice.index == by_ebic.index
    assert choice.tested is None
    assert choice.notes[-1] == "chosen by EBIC: tests need 30 rows, and there are 29"


def coarse_and_fine(n_rows: int, seed: int = 0) -> Table:
    """A chain of three numbers; 28 levels, and 16 that are mostly coarser ones; a rare level."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 1]
    fine = rng.permutation(np.arange(n_rows) % 28)
    coarse = np.where(rng.random(n_rows) < 0.9, fine * 16 // 28, rng.integers(0, 16, n_rows))
    X[:, 3] += 0.1 * fine
    rare = (np.arange(n_rows) < FEWEST_OF_COLUMN - 1).astype(np.int64)
    return Table(X, np.column_stack([fine, coarse, rare]), (28, 16, 2))


def test_pairs_of_very_many_parameters_are_judged_apart():
    """All others keep their tests, and the pair has an edge where its likelihood ratio says so."""
    table = coarse_and_fine(1200)
    task = table.task()
    apart = {
        pair: (g, untested(task).get(g)) for g, pair in enumerate(map(tuple, task.layout.pairs))
    }
    large, reason = apart[4, 5]
    assert reason == f"405 parameters, more than {MOST_PARAMETERS}"
    rare = [g for pair, (g, _) in apart.items() if 6 in pair]
    assert sorted(untested(task)) == sorted([large, *rare])
    assert "'k2' has 4 rows outside its most frequent level" in untested(task)[rare[0]]
    _, choice = chosen(table, LocalFDR())
    assert pairs_of(task, choice.groups) >= {(0, 1), (1, 2), (3, 4), (4, 5)}
    assert not np.isin(rare, choice.groups).any()
    assert np.flatnonzero(np.isnan(choice.tested.probabilities)).tolist() == sorted([large, *rare])
    assert choice.tested.untested == (("k0", "k1", reason),)


def test_a_pair_apart_has_the_price_of_ebic():
    """It enters if n times the loss that it saves is more than EBIC asks for, and not otherwise."""
    rng = np.random.default_rng(4)
    codes = np.column_stack([rng.permutation(np.arange(900) % 16) for _ in range(2)])
    for share in (0.0, 0.5):
        codes[:, 1] = np.where(rng.random(900) < share, codes[:, 0], codes[:, 1])
        table = Table(rng.normal(size=(900, 2)), codes, (16, 16))
        task, every = table.task(), np.arange(6)
        pair = int(np.flatnonzero((task.layout.pairs == (2, 3)).all(axis=1))[0])
        found = settled(task, every[:0], LocalFDR().log_limit).graph
        rest = found[found != pair]
        start = Start(task.null.theta, task.null.evaluation)
        one, two = (
            unshrunken(task, g, start, tol=1e-6).loss for g in (rest, np.union1d(rest, pair))
        )
        price = 225 * np.log(900.0) + 2.0 * np.log(4.0)
        assert (pair in found) == (900 * (one - two) > price) == (share > 0.0)


def test_only_pairs_without_a_test_are_left_to_ebic():
    rng = np.random.default_rng(0)
    levels = (16, 16)
    codes = np.vstack([np.tile(np.arange(16), (2, 1)).T, rng.integers(0, 16, (300, 2))])
    task = Table(np.zeros((316, 0)), codes, levels).task()
    nothing = np.zeros(0, dtype=np.int64)
    assert untestable(task, nothing) == (
        f"no pair can be tested ('k0' and 'k1': 225 parameters, more than {MOST_PARAMETERS})"
    )


def test_a_graph_is_held_as_far_as_rows_allow():
    """A column with n / 4 predictors at most: the strongest edges stay."""
    rng = np.random.default_rng(1)
    task = Table(rng.normal(size=(40, 15)), np.zeros((40, 0), dtype=np.int64), ()).task()
    every = np.arange(task.layout.n_groups)
    strength = rng.permutation(len(every)).astype(float)
    kept = affordable(task, every, strength)
    degree = np.bincount(task.layout.pairs[kept].ravel(), minlength=15)
    assert degree.max() <= 10
    strongest = every[np.argsort(-strength)][:10]
    assert np.isin(strongest, kept).all()


@pytest.mark.parametrize(("criterion", "name"), [(LocalFDR, "limit"), (FDR, "level")])
@pytest.mark.parametrize("value", [0.0, 1.0, -1, "x", True, np.nan])
def test_limits_are_checked(criterion, name, value):
    with pytest.raises(ValueError, match=f"{name} must be a number in"):
        criterion(value)


def test_the_default_comes_first():
    assert next(iter(NAMED)) == "local-fdr"
    assert NAMED["local-fdr"] == LocalFDR(0.5)
    assert NAMED["fdr"] == FDR(0.1)
