"""Refits of single columns: one that fails ends its own column only."""

from dataclasses import dataclass, replace

import numpy as np

from mixedgm.path.path import solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import prepare
from mixedgm.select.criteria import EBIC
from mixedgm.select.evidence import Evidence
from mixedgm.table.encode import learn
from tests.support.people import people
from tests.support.solvers import NEWTON

SEED = np.random.SeedSequence(0)


@dataclass(frozen=True)
class Stuck:
    """Newton steps to the end, except that refits of one regression never leave their start."""

    node: int

    def init(self, problem, *start):
        return NEWTON.init(problem, *start)

    def step(self, problem, state):
        layout = problem.smooth.layout
        if problem.lam > 0.0 or self.node not in layout.pairs[:, 1]:
            return NEWTON.step(problem, state)
        begin, terms = layout.conditional
        terms = terms[begin[self.node] : begin[self.node + 1]]
        start = state.theta[terms]
        while state.measure > state.tol and not state.halted:
            state = NEWTON.step(problem, state)
        theta = state.theta.copy()
        theta[terms] = start
        here = problem.smooth.evaluate(theta)
        measure = problem.measure(theta, here.gradient)
        objective = problem.objective(here, theta)
        return replace(
            state, theta=theta, evaluation=here, objective=objective, measure=measure, halted=True
        )


def test_a_refit_that_does_not_converge_ends_its_own_column_only():
    """Here no refit of `weight` gets away from its start, alone or together with others."""
    design, _ = learn(people(250, seed=5))
    recipe, bad = Recipe(NEWTON, 1e-5, 500, loss="nodewise"), design.schema.node_index("weight")
    task = prepare(design, recipe)
    path = solve_path(task, task.lam_max * np.geomspace(1.0, 0.05, 12), recipe)
    whole, scores = (
        EBIC(per_node=True).choose(Evidence(design, recipe, each, path, SEED)).scores
        for each in (task, replace(task, solver=Stuck(bad)))
    )
    assert np.isfinite(whole["ebic"]).all()
    for at in (0, 1, 3, 4):
        np.testing.assert_allclose(scores["ebic"][:, at], whole["ebic"][:, at], atol=1e-3)
    first = int(np.argmax(whole["degrees_of_freedom"][:, 2] > 0))
    assert np.isfinite(scores["ebic"][:first, 2]).all()
    assert np.isinf(scores["ebic"][first:, 2]).all()
