"""Refits of single columns: one that fails ends its own column only."""

from dataclasses import replace

import numpy as np

import mixedgm as mg
from mixedgm.path.task import Task
from mixedgm.solve.loop import Status
from tests.support.people import people


def fit(table, **options):
    select = mg.EBIC(per_node=True)
    return mg.MixedGraphicalModel(loss="nodewise", select=select, n_jobs=1, **options).fit(table)


def test_a_refit_that_does_not_converge_ends_its_own_column_only(monkeypatch):
    """Here no refit of `weight` gets away from its start, alone or together with others."""
    table = people(250, seed=5)
    model = fit(table)
    real, bad = Task.confined, model.schema_.node_index("weight")

    def confined(task, problem, groups, start, *options):
        done, layout = real(task, problem, groups, start, *options), task.layout
        if bad not in layout.pairs[groups, 1]:
            return done
        begin, index = layout.conditional
        own, theta = index[begin[bad] : begin[bad + 1]], done.theta.copy()
        theta[own] = start.theta[own]
        here = problem.smooth.evaluate(theta[layout.positions(groups)])
        certificate = done.certificate.but(Status.ITERATION_LIMIT)
        return replace(done, theta=theta, certificate=certificate, evaluation=here)

    monkeypatch.setattr(Task, "confined", confined)
    scores, whole = fit(table, refit=False).fitted_.scores, model.fitted_.scores
    n = min(len(scores["ebic"]), len(whole["ebic"]))
    for at in (0, 1, 3, 4):
        np.testing.assert_allclose(scores["ebic"][:n, at], whole["ebic"][:n, at], atol=1e-3)
    first = int(np.argmax(whole["degrees_of_freedom"][:, 2] > 0))
    assert np.isfinite(scores["ebic"][:first, 2]).all()
    assert np.isinf(scores["ebic"][first:, 2]).all()
