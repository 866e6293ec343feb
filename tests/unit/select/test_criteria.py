"""Information criteria: refits in closed form, parameters counted by hand, the lowest wins."""

import numpy as np
import pytest

from mixedgm.base.errors import ParameterError
from mixedgm.path.path import solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.refits import degrees_of_freedom, refit_losses, refittable, scoring_tol
from mixedgm.select.criteria import AIC, BIC, EBIC
from mixedgm.select.selection import NAMED
from mixedgm.solve.proximal_newton import ProximalNewton
from tests.reference import conic, plain
from tests.support.problems import draw, evidence_of


def path_of(task, ratios):
    lams = task.lam_max * np.array(ratios)
    return solve_path(task, lams, Recipe(ProximalNewton(), 1e-8, 500))


def test_refit_of_the_empty_graph_is_the_null_model():
    table = draw(1, 60, 2, (2, 3))
    task = table.task()
    found = refit_losses(task, path_of(task, [1.0]))
    expected = plain.smooth(task.params(task.null.theta), table.X, table.Y)
    assert found.values[0] == pytest.approx(expected, abs=1e-6)
    assert found.reasons == ("",)


def test_refit_of_all_continuous_pairs_is_the_inverse_covariance():
    table = draw(2, 80, 3, ())
    task = table.task()
    path = path_of(task, [0.001])
    assert path.n_edges[0] == 3
    beta = np.diag(np.linalg.inv(np.cov(table.X.T, ddof=0)))
    found = refit_losses(task, path).values[0]
    assert found == pytest.approx(np.sum(0.5 - 0.5 * np.log(beta)), abs=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_refits_have_a_ridge_worth_one_row_on_pairs_of_categories(weighted):
    """Against the conic solver; the loss is that at its optimum, without the ridge."""
    table = draw(3, 60, 1, (2, 3), weighted=weighted)
    table.Y[(table.Y == 0).all(axis=1), 1] = 1  # a cell without rows: no finite optimum without it
    task = table.task()
    path = path_of(task, [0.01])
    assert path.n_edges[0] == 3
    one, two = (
        conic.solve(table.X, table.Y, (2, 3), 0.0, row_weights=table.row_weights, ridge=rows)
        for rows in (1.0, 2.0)
    )
    # To the tolerance of refits; tests/unit/path/test_refits.py compares to eight digits.
    assert refit_losses(task, path).values[0] == pytest.approx(one.value - one.added, abs=1e-5)
    assert two.value - two.added > one.value - one.added + 1e-4


def test_parameters_are_counted_over_observed_levels():
    table = draw(4, 60, 2, (3, 5))
    table.Y[table.Y[:, 1] == 4, 1] = 0
    task = table.task()
    counts = [degrees_of_freedom(task, np.array([g])) for g in range(6)]
    assert task.layout.pairs.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert counts == [1, 2, 3, 2, 3, 6]
    assert degrees_of_freedom(task, np.arange(6)) == 17
    assert degrees_of_freedom(task, np.array([], dtype=int)) == 0


@pytest.mark.parametrize(
    ("criterion", "name", "price"),
    [
        (AIC(), "aic", lambda df, edges, n: 4 * df),
        (BIC(), "bic", lambda df, edges, n: 2 * df * np.log(n)),
        (EBIC(0.0), "ebic", lambda df, edges, n: 2 * df * np.log(n)),
        (EBIC(), "ebic", lambda df, edges, n: 2 * df * np.log(n) + 4 * edges * np.log(4)),
    ],
)
def test_scores_are_the_formula_and_the_lowest_is_chosen(criterion, name, price):
    table = draw(5, 70, 2, (2, 3), weighted=True)
    task = table.task()
    path = path_of(task, [1.0, 0.5, 0.2, 0.05])
    evidence = evidence_of(table, path)
    choice = criterion.choose(evidence)
    n = table.row_weights.sum()
    losses = refit_losses(task, path, scoring_tol(evidence.recipe.tol)).values
    expected = [
        2 * n * loss + price(degrees_of_freedom(task, point.groups), len(point.groups), n)
        for loss, point in zip(losses, path.points, strict=True)
    ]
    np.testing.assert_allclose(choice.scores[name], expected, rtol=1e-9)
    assert choice.index == np.argmin(expected)


def test_independent_columns_give_the_empty_graph():
    rng = np.random.default_rng(0)
    table = draw(6, 400, 2, (2, 3))
    for column in (*table.X.T, *table.Y.T):
        rng.shuffle(column)
    task = table.task()
    path = path_of(task, np.geomspace(1, 0.05, 8))
    assert path.n_edges[EBIC().choose(evidence_of(table, path)).index] == 0


@pytest.mark.parametrize("bad", [-0.1, 1.5, "half", np.nan, None])
def test_impossible_gamma_is_named(bad):
    with pytest.raises(ParameterError, match=r"gamma must be a number in \[0, 1\]\. Got"):
        EBIC(gamma=bad)


# -- supports that cannot be refitted --------------------------------------------------------------


def test_supports_with_too_many_predictors_are_not_considered():
    """Ten rows: a column with five or more predictors has half as many as there are rows."""
    table = draw(7, 10, 8, ())
    task = table.task()
    path = path_of(task, [1.0, 0.7, 0.01])
    assert path.n_edges[-1] > 20
    choice = EBIC().choose(evidence_of(table, path))
    assert np.isfinite(choice.scores["ebic"][0])
    assert choice.scores["ebic"][-1] == np.inf
    assert choice.index < 2
    assert choice.reasons[:2] == ("", "")
    n_edges = np.bincount(task.layout.pairs[path.points[-1].groups].ravel(), minlength=8)
    worst, most = int(np.argmax(n_edges)), int(n_edges.max())
    reason = f"too many parameters for the rows: 'c{worst}' alone has {most}, and there are 10 rows"
    assert choice.reasons[-1] == reason
    assert (
        f"1 of 3 values of lam were not considered, the first of them {path.lams[-1]:.4g}: {reason}"
        in choice.notes
    )


def test_a_support_at_the_limit():
    """A star: its centre has as many predictors as edges, the other columns one each."""
    table = draw(8, 10, 6, ())
    task = table.task()
    star = np.flatnonzero(task.layout.pairs[:, 0] == 0)
    assert len(star) == 5
    assert refittable(task, star[:4]).all()
    assert not refittable(task, star).all()
    assert refittable(task, np.array([], dtype=np.int64)).all()


def test_predictors_are_counted_by_level():
    """A column of five levels is four predictors of each neighbour; two such are eight."""
    table = draw(9, 16, 1, (5, 5))
    task = table.task()
    assert task.layout.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert refittable(task, np.array([0])).all()
    assert not refittable(task, np.array([0, 1])).all()  # column 0 has 8 predictors, 16 rows
    assert refittable(table_twice(table), np.array([0, 1])).all()


def table_twice(table):
    """The same table with weight two for every row: twice as many observations."""
    from dataclasses import replace

    return replace(table, row_weights=np.full(len(table.Y), 2.0)).task()


def test_without_dense_supports_there_is_nothing_to_say():
    table = draw(5, 70, 2, (2, 3))
    path = path_of(table.task(), [1.0, 0.3])
    assert BIC().choose(evidence_of(table, path)).notes == ()


# -- the choice ------------------------------------------------------------------------------------


def test_among_equal_scores_the_largest_lam_is_chosen():
    """Three values of lam with the same (empty) graph have the same score."""
    table = draw(5, 70, 2, (2, 3))
    path = path_of(table.task(), [3.0, 2.0, 1.5])
    choice = EBIC().choose(evidence_of(table, path))
    assert len(set(choice.scores["ebic"].tolist())) == 1
    assert choice.index == 0


def test_a_larger_gamma_never_chooses_more_edges():
    table = draw(10, 60, 4, (2, 3))
    path = path_of(table.task(), np.geomspace(1, 0.02, 12))
    evidence = evidence_of(table, path)
    chosen = [EBIC(gamma).choose(evidence).index for gamma in np.linspace(0, 1, 6)]
    n_edges = [int(path.n_edges[k]) for k in chosen]
    assert n_edges == sorted(n_edges, reverse=True)
    assert path.n_edges[AIC().choose(evidence).index] >= n_edges[0]


def test_refits_grow_with_the_support():
    """More edges never fit worse: supports of a path that are nested have falling losses."""
    task = draw(11, 80, 3, (2, 3)).task()
    path = path_of(task, np.geomspace(1, 0.02, 8))
    losses = refit_losses(task, path).values
    for k in range(len(path) - 1):
        if set(path.points[k].groups) <= set(path.points[k + 1].groups):
            assert losses[k + 1] <= losses[k] + 1e-7


def test_a_refit_fits_better_than_the_shrunken_estimate():
    table = draw(12, 80, 2, (2, 3))
    task = table.task()
    path = path_of(task, [0.6, 0.3])
    for loss, k in zip(refit_losses(task, path).values, range(2), strict=True):
        assert path.n_edges[k] > 0
        assert loss < plain.smooth(path.params(k), table.X, table.Y) - 1e-4


def test_labels_say_how_lam_was_chosen():
    table = draw(5, 70, 2, (2, 3))
    evidence = evidence_of(table, path_of(table.task(), [1.0]))
    labels = [c.choose(evidence).label for c in (EBIC(0.25), BIC(), AIC())]
    assert labels == ["EBIC (gamma = 0.25)", "BIC", "AIC"]
    assert list(NAMED)[2:5] == ["ebic", "bic", "aic"]
    assert NAMED["ebic"] == EBIC(gamma=0.5)
