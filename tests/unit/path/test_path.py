"""Paths: warm starts give what direct solves give, sparse storage, interruption."""

from dataclasses import dataclass

import numpy as np
import pytest

from mixedgm.base.parallel import Runtime
from mixedgm.path.path import solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.solve.proximal_newton import ProximalNewton
from tests.reference import plain
from tests.support.problems import draw, edges_of, solved

TABLE = draw(11, 80, 3, (2, 4))
BLOCKS = ("precision", "cont_bias", "category_shift", "cat_interaction", "cat_bias")


@dataclass(frozen=True)
class Interrupted:
    """A solver during which the user presses Ctrl-C at one lam."""

    lam: float
    honest: ProximalNewton = ProximalNewton("exact")

    def init(self, problem, theta, here, tol, memory=None):
        if problem.lam == self.lam:
            raise KeyboardInterrupt
        return self.honest.init(problem, theta, here, tol, memory)

    def step(self, problem, state):
        return self.honest.step(problem, state)


@pytest.fixture(scope="module")
def task():
    return TABLE.task()


@pytest.fixture(scope="module")
def lams(task):
    return np.geomspace(task.lam_max, 0.02 * task.lam_max, 8)


@pytest.fixture(scope="module")
def path(task, lams):
    return solve_path(task, lams, Recipe(ProximalNewton(), 1e-9, 500))


def test_path_begins_empty_and_ends_with_edges(path, lams):
    assert len(path) == 8
    np.testing.assert_array_equal(path.lams, lams)
    assert path.n_edges[0] == 0
    assert path.n_edges[-1] > 4


def test_columns_have_one_entry_per_lam(path):
    for name in ("objective", "kkt", "kkt_relative", "passes", "curvature_passes", "seconds"):
        column = getattr(path, name)
        assert column.shape == (8,)
        assert np.all(np.isfinite(column))
    assert np.all(path.kkt <= 1e-9)
    np.testing.assert_allclose(path.kkt_relative, path.kkt / path.lams)
    assert path.converged.all()


def test_only_active_groups_are_stored(path):
    for k, point in enumerate(path.points):
        small = path.layout.restrict(point.groups)
        assert len(point.values) == small.n_theta - small.n_node_terms
        norms = path.layout.group_norms(path.theta(k))
        np.testing.assert_array_equal(np.flatnonzero(norms), point.groups)
        assert path.n_edges[k] == len(point.groups) == len(path.pairs(k))


def test_every_point_equals_a_direct_solve(task, path):
    for k, lam in enumerate(path.lams):
        direct = solved(task, lam, tol=1e-9)
        assert path.objective[k] == pytest.approx(direct.objective + task.log_jacobian, abs=1e-9)
        assert {tuple(pair) for pair in path.pairs(k).tolist()} == edges_of(task, direct.theta)
        params = task.params(direct.theta)
        for name in BLOCKS:
            np.testing.assert_allclose(
                getattr(path.params(k), name), getattr(params, name), atol=1e-6
            )


def test_objective_is_that_of_the_loops_in_own_units(path):
    weights = plain.calibrated_weights(TABLE.X, TABLE.Y, TABLE.n_levels)
    for k in (0, 3, 7):
        expected = plain.objective(path.params(k), TABLE.X, TABLE.Y, path.lams[k], weights)
        assert path.objective[k] == pytest.approx(expected, abs=1e-9)


def test_edges_by_name_are_the_pairs(path):
    names = [column.name for column in path.schema.nodes]
    expected = [(names[u], names[v]) for u, v in path.pairs(5)]
    assert list(path.edges(5)) == expected


def test_score_on_rows_is_minus_the_loss_of_the_loops(path):
    fresh = draw(12, 20, 3, (2, 4))
    names = path.schema.names
    import pandas as pd

    columns = dict(zip(names, (*fresh.X.T, *fresh.Y.T), strict=True))
    frame = pd.DataFrame(columns)
    for name in ("k0", "k1"):
        frame[name] = [f"l{code}" for code in frame[name].astype(int)]
    found = path.score(frame)
    constant = 3 * np.log(2 * np.pi) / 2
    for k in (0, 4, 7):
        expected = -plain.smooth(path.params(k), fresh.X, fresh.Y) - constant
        assert found[k] == pytest.approx(expected, rel=1e-9)


def test_penalised_objective_rises_with_lam(path):
    """The optimal value is concave and increasing in lam."""
    assert np.all(np.diff(path.objective) <= 1e-10)
    slopes = np.diff(path.objective) / np.diff(path.lams)
    assert np.all(np.diff(slopes) >= -1e-8)


def test_the_trace_of_a_single_lam_is_kept(task, lams, path):
    assert all(point.trace == () for point in path.points)
    (point,) = solve_path(task, lams[1:2], Recipe(ProximalNewton(), 1e-5, 50)).points
    assert len(point.trace) > point.n_iter


def test_interruption_keeps_what_is_solved_and_warns(task, lams, path):
    with pytest.warns(RuntimeWarning, match=r"interrupted: the path ends at lam = .*2 of 8 values"):
        found = solve_path(
            task,
            lams,
            Recipe(Interrupted(lams[2]), 1e-9, 500),
            runtime=Runtime(keep_interrupted=True),
        )
    assert len(found) == 2
    np.testing.assert_array_equal(found.lams, lams[:2])
    np.testing.assert_allclose(found.objective, path.objective[:2], atol=1e-9)


def test_interruption_before_anything_is_solved_is_raised(task, lams):
    with pytest.raises(KeyboardInterrupt):
        solve_path(
            task,
            lams,
            Recipe(Interrupted(lams[0]), 1e-9, 500),
            runtime=Runtime(keep_interrupted=True),
        )


def test_interruption_is_passed_on_unless_the_rest_is_wanted(task, lams):
    with pytest.raises(KeyboardInterrupt):
        solve_path(task, lams, Recipe(Interrupted(lams[2]), 1e-9, 500))


def test_a_path_can_be_continued(task, lams, path):
    begun = solve_path(task, lams[:5], Recipe(ProximalNewton(), 1e-9, 500))
    whole = solve_path(task, lams[5:], Recipe(ProximalNewton(), 1e-9, 500), start=begun)
    np.testing.assert_array_equal(whole.lams, lams)
    assert whole.points[:5] == begun.points
    np.testing.assert_allclose(whole.objective, path.objective, atol=1e-9)
    np.testing.assert_array_equal(whole.n_edges, path.n_edges)


def test_interruption_of_a_continued_path_keeps_its_beginning(task, lams):
    begun = solve_path(task, lams[:2], Recipe(ProximalNewton(), 1e-9, 500))
    solver = Interrupted(lams[2])
    with pytest.warns(RuntimeWarning, match="0 of 6 values solved"):
        found = solve_path(
            task,
            lams[2:],
            Recipe(solver, 1e-9, 500),
            start=begun,
            runtime=Runtime(keep_interrupted=True),
        )
    assert found.points == begun.points


def test_other_errors_are_not_swallowed(task, lams):
    class Broken(Interrupted):
        def init(self, problem, theta, here, tol, memory=None):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        solve_path(task, lams, Recipe(Broken(lams[0]), 1e-5, 5))


def test_a_lam_above_lam_max_gives_the_empty_graph(task):
    found = solve_path(
        task, np.array([10.0, 2.0]) * task.lam_max, Recipe(ProximalNewton(), 1e-9, 10)
    )
    assert found.n_edges.tolist() == [0, 0]
    assert found.converged.all()


def test_lam_zero_is_the_unpenalised_optimum():
    table = draw(13, 300, 3, (2,))
    task = table.task()
    found = solve_path(task, np.array([0.0]), Recipe(ProximalNewton("exact"), 1e-9, 200))
    assert found.converged.all()
    assert found.n_edges[0] == task.layout.n_groups
    assert found.lams[0] == 0.0


def test_unpenalised_continuous_columns_give_the_inverse_covariance():
    table = draw(14, 60, 4, ())
    found = solve_path(table.task(), np.array([0.0]), Recipe(ProximalNewton("exact"), 1e-10, 200))
    expected = np.linalg.inv(np.cov(table.X.T, ddof=0))
    params = found.params(0)
    np.testing.assert_allclose(params.precision, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(params.cont_bias, expected @ table.X.mean(axis=0), rtol=1e-6)


def test_unconverged_points_say_so_and_the_path_goes_on(task, lams):
    found = solve_path(task, lams, Recipe(ProximalNewton(), 1e-12, 1))
    assert len(found) == 8
    assert not found.converged[1:].any()
    assert all("max_iter" in point.status.value for point in found.points[1:])
