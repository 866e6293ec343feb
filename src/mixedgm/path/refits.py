"""A path -> what its graphs cost and how well they fit without shrinkage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Ints
from mixedgm.path.path import Path
from mixedgm.path.task import Task
from mixedgm.progress import track
from mixedgm.rows.threads import single_threaded_blas
from mixedgm.solve.working_set import Solution, Start

REFIT_TOL = 1e-4
REFIT_STEPS = 50


def degrees_of_freedom(task: Task, groups: Ints) -> int:
    """Identifiable parameters of these edges, over observed levels."""
    return int(parameters(task, groups).sum())


def parameters(task: Task, groups: Ints) -> Ints:
    """Identifiable parameters of each of these edges."""
    own = _own_parameters(task)
    u, v = task.layout.pairs[groups].T
    return np.asarray(own[u] * own[v] * task.layout.n_blocks[groups])


def _own_parameters(task: Task) -> Ints:
    """1 for a continuous node, levels - 1 for a categorical one."""
    layout = task.layout
    return np.where(np.arange(layout.n_nodes) < layout.n_cont, 1, layout.width - 1)


def refittable(task: Task, groups: Ints) -> NDArray[np.bool_]:
    """Whether each column's regression is small enough for the rows.

    That is, fewer than half as many predictors as rows, and fewer parameters than rows.  Beyond
    that an unshrunken fit says nothing, and from as many predictors as rows on it has no optimum:
    the loss falls without bound.
    """
    predictors, own = _predictors(task, groups)
    n = task.total_weight
    return np.asarray((predictors < 0.5 * n) & (predictors * own < n))


def interpolates(task: Task, groups: Ints) -> bool:
    """Whether some column has at least as many predictors as there are rows."""
    predictors, _ = _predictors(task, groups)
    return bool(predictors.max(initial=0.0) >= task.total_weight)


def _predictors(task: Task, groups: Ints) -> tuple[Floats, Ints]:
    """Free predictors of every predicted column, and its own free parameters per predictor."""
    layout, own = task.layout, _own_parameters(task)
    u, v = layout.pairs[groups].T
    times = layout.n_blocks[groups]
    count = np.bincount(v, own[u] * times, layout.n_nodes).astype(np.float64)
    if not layout.nodewise:
        count += np.bincount(u, own[v] * times, layout.n_nodes)
    return np.where(layout.is_target, count, 0.0), own


def refit_losses(
    task: Task, path: Path, *, known: Floats | None = None, show: bool = False
) -> Floats:
    """Smooth loss (the data's units) at the unshrunken refit of every support of the path.

    Supports repeat along a path and grow slowly, so each distinct one is refitted once, from the
    refit before it.  From the first support that cannot be refitted on, the loss is +inf.
    `known` holds the losses of the first points, when the path has been continued.
    """
    losses = np.full(len(path), np.inf)
    first = 0 if known is None else len(known)
    done: dict[bytes, float] = {}
    if known is not None:
        losses[:first] = known - task.log_jacobian
        done = {path.points[k].groups.tobytes(): float(losses[k]) for k in range(first)}
    start = task.null
    for k in track(range(first, len(path)), show=show, what="refit", total=len(path) - first):
        point = path.points[k]
        key = point.groups.tobytes()
        if key not in done:
            if not refittable(task, point.groups).all():
                break
            refit = _refit(task, path, k, start.theta)
            if not refit.converged:
                break
            start = Start(refit.theta, refit.evaluation)
            done[key] = refit.evaluation.value
        losses[k] = done[key]
    return losses + task.log_jacobian


def _refit(task: Task, path: Path, k: int, before: Floats) -> Solution:
    """Refit from the last refit, with the path's own values for groups that are new."""
    start = Start(with_new_groups(task, before, path.theta(k)), task.null.evaluation)
    groups = path.points[k].groups
    with single_threaded_blas():
        return task.unpenalised(groups, start, tol=REFIT_TOL, max_iter=REFIT_STEPS)


def with_new_groups(task: Task, before: Floats, own: Floats) -> Floats:
    """The theta `before`, with the values of `own` in groups that it has not."""
    theta, edges = before.copy(), task.layout.edges
    fresh = task.layout.group_norms(theta) == 0.0
    theta[edges] = np.where(task.layout.spread(fresh.astype(float)) > 0.0, own[edges], theta[edges])
    return theta
