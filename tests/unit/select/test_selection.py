"""Paths that grow: they go on where they ended, and end where scores have risen far."""

import pickle
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.path.path import solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import too_large
from mixedgm.select.criteria import RISE, RISE_IN_EDGES, _risen
from mixedgm.select.evidence import Choice
from mixedgm.select.resamples import held_out
from mixedgm.solve.proximal_newton import ProximalNewton
from tests.support.problems import Table, draw, evidence_of


def test_a_path_in_parts_is_the_path():
    task = draw(3, 300, 3, (3, 4)).task()
    lams = task.lam_max * np.geomspace(1, 0.05, 8)
    recipe = Recipe(ProximalNewton(), tol=1e-8, max_iter=200)
    whole = solve_path(task, lams, recipe)
    part = solve_path(task, lams[:3], recipe)
    for first in (3, 4, 7):
        last = {3: 4, 4: 7, 7: 8}[first]
        part = solve_path(task, lams[first:last], recipe, start=part)
    assert part.lams.tolist() == whole.lams.tolist()
    # What the solver remembers goes over, so that the same steps are made.
    for k in range(8):
        np.testing.assert_array_equal(part.theta(k), whole.theta(k))
        assert part.points[k].cost == whole.points[k].cost


@dataclass(frozen=True)
class Counting(ProximalNewton):
    """A solver that counts its steps."""

    steps: ClassVar[list[int]] = []

    def step(self, problem, state):
        self.steps.append(1)
        return super().step(problem, state)


def test_folds_go_on_where_they_ended():
    """The second part begins at the lam at which the first ended, so there is nothing to do."""
    table = draw(3, 300, 3, (3, 4))
    task = table.task()
    lams = task.lam_max * np.array([0.5, 0.2, 0.1])
    evidence = evidence_of(table, solve_path(task, lams, Recipe(tol=1e-8)))
    evidence = replace(evidence, recipe=Recipe(Counting(), tol=1e-8))
    again = replace(evidence, path=solve_path(task, np.append(lams, lams[-1]), evidence.recipe))
    splits = [(np.arange(150), np.arange(150, 300)), (np.arange(150, 300), np.arange(150))]
    first = held_out(evidence, splits, "folds")
    Counting.steps.clear()
    before = Choice(0, "", {}, ends=first.ends)
    second = held_out(replace(again, before=before, n_before=3), splits, "folds")
    assert not Counting.steps
    np.testing.assert_allclose(second.losses[:, 0], first.losses[:, 2], rtol=1e-12)
    forgotten = replace(before, ends=(None, None))
    held_out(replace(again, before=forgotten, n_before=3), splits, "folds")
    assert Counting.steps


def test_what_the_solver_remembers_is_not_pickled():
    task = draw(3, 100, 2, (3,)).task()
    path = solve_path(task, task.lam_max * np.array([1.0, 0.3]), Recipe(ProximalNewton(), 1e-6, 50))
    assert path.end is not None
    again = pickle.loads(pickle.dumps(path))
    assert again.end is None
    np.testing.assert_array_equal(again.theta(1), path.theta(1))
    more = solve_path(
        task, np.array([0.1 * task.lam_max]), Recipe(ProximalNewton(), 1e-6, 50), start=again
    )
    assert len(more) == 3


def test_scores_that_have_risen_far_end_a_path():
    lams = np.array([1.0, 0.5, 0.25, 0.1])
    scores = np.array([1000.0, 200.0, 220.0, 245.0])
    assert RISE * 800 == 40
    assert _risen(scores, lams, 1, edge=1.0)  # 45 above the best, which gained 800
    assert not _risen(scores, lams, 1, edge=45.0 / RISE_IN_EDGES + 0.1)
    assert not _risen(scores - [0, 0, 0, 6], lams, 1, edge=1.0)
    assert not _risen(scores, np.array([1.0, 0.5, 0.4, 0.3]), 1, edge=1.0)  # not far down yet


def test_edges_with_too_many_parameters_do_not_stand_in_the_way():
    """An edge of two columns of 30 levels cannot be refitted to 300 rows; the others can."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    Y = np.column_stack([rng.permutation(np.arange(300) % 30) for _ in range(2)])
    table = Table(np.column_stack([x, x + rng.normal(size=300)]), Y, (30, 30))
    found = too_large(table.design, np.ones((4, 4)))
    assert np.argwhere(found).tolist() == [[2, 3], [3, 2]]
    free = np.ones((4, 4))
    free[2, 3] = free[3, 2] = 0.0
    assert not too_large(table.design, free).any()  # required edges stay
    frame = {"x": table.X[:, 0], "y": table.X[:, 1]}
    frame |= {f"k{j}": [f"l{code}" for code in Y[:, j]] for j in range(2)}
    pd = pytest.importorskip("pandas")
    model = mg.MixedGraphicalModel().fit(pd.DataFrame(frame))
    assert [(edge.source, edge.target) for edge in model.edges_] == [("x", "y")]
    assert any("k0 - k1" in note for note in model.fitted_.report.notes)
    assert len(mg.fit_path(pd.DataFrame(frame), n_lams=3).layout.pairs) == 6


def test_an_edge_to_a_column_with_half_as_many_levels_as_rows_is_left_out():
    rng = np.random.default_rng(0)
    codes = np.column_stack([np.arange(60) % 31, rng.integers(0, 2, 60)])
    table = Table(rng.normal(size=(60, 1)), codes, (31, 2))
    assert np.argwhere(np.triu(too_large(table.design, np.ones((3, 3))))).tolist() == [
        [0, 1],
        [1, 2],
    ]
