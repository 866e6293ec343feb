"""A path -> what its graphs cost and how well they fit without shrinkage."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.path.open_edges import parameters
from mixedgm.path.path import Path
from mixedgm.path.task import Task
from mixedgm.path.unshrunken import Unshrunken, stabilised
from mixedgm.printable import quoted
from mixedgm.progress import track
from mixedgm.solve.working_set import Start

REFIT_TOL = 1e-4
REFIT_STEPS = 100
TOO_DENSE = "too many parameters for the rows"


def degrees_of_freedom(task: Task, groups: Ints) -> int:
    """Identifiable parameters of these edges, over observed levels."""
    return int(parameters(task, groups).sum())


def refittable(task: Task, groups: Ints) -> NDArray[np.bool_]:
    """Whether each column's regression is small enough for the rows.

    That is, fewer than half as many predictors as rows, and fewer parameters than rows.  Beyond
    that an unshrunken fit says nothing, and from as many predictors as rows on it has no optimum:
    the loss falls without bound.
    """
    predictors, freedom = _predictors(task, groups)
    n = task.total_weight
    return np.asarray((predictors < 0.5 * n) & (predictors * freedom < n))


def too_dense(task: Task, groups: Ints) -> str:
    """Why the graph cannot be refitted to so few rows; empty if it can."""
    fits = refittable(task, groups)
    if fits.all():
        return ""
    predictors, freedom = _predictors(task, groups)
    worst = int(np.argmax(np.where(fits, 0.0, predictors * freedom)))
    return (
        f"{TOO_DENSE}: {quoted(task.schema.nodes[worst].name)} alone has "
        f"{int(predictors[worst] * freedom[worst]):,}, and there are {task.total_weight:,.6g} rows"
    )


def interpolates(task: Task, groups: Ints) -> bool:
    """Whether some column has at least as many predictors as there are rows."""
    predictors, _ = _predictors(task, groups)
    return bool(predictors.max(initial=0.0) >= task.total_weight)


def _predictors(task: Task, groups: Ints) -> tuple[Floats, Ints]:
    """Free predictors of every predicted column, and its own free parameters per predictor."""
    layout, freedom = task.layout, task.layout.nodes.freedom
    u, v = layout.pairs[groups].T
    times = layout.n_blocks[groups]
    count = np.bincount(v, freedom[u] * times, layout.n_nodes).astype(np.float64)
    if not layout.nodewise:
        count += np.bincount(u, freedom[v] * times, layout.n_nodes)
    return np.where(layout.is_target, count, 0.0), freedom


@dataclass(frozen=True, eq=False)
class RefitLosses:
    """Smooth losses (the data's units) at the refits of a path's graphs.

    Parameters
    ----------
    values : ndarray (n_lams,)
        +inf where a graph was not scored.
    reasons : tuple of str
        Why it was not; empty where it was.
    refits : dict
        Theta of every refit on its own support, by support.
    """

    values: Floats
    reasons: tuple[str, ...]
    refits: dict[bytes, Floats] = field(default_factory=dict)

    def theta(self, layout: Layout, groups: Ints) -> Floats | None:
        """Full-size theta of the refit of this support, if there was one."""
        kept = self.refits.get(groups.tobytes())
        return None if kept is None else _full_size(layout, groups, kept)

    @property
    def ended(self) -> bool:
        """Whether the last graph, and so all denser ones, have too many parameters."""
        return self.reasons[-1].startswith(TOO_DENSE)


def refit_losses(
    task: Task, path: Path, *, known: RefitLosses | None = None, show: bool = False
) -> RefitLosses:
    """The loss at the refit of every support of the path.

    Supports repeat along a path and grow slowly, so each distinct one is refitted once, from the
    refit before it.  A refit has a ridge worth one row on edges that could be unstable, so that it
    exists whatever the graph; the loss is that without the ridge.  `known` are those of the first
    points, when the path has been continued.
    """
    first = 0 if known is None else len(known.values)
    values, reasons = np.full(len(path), np.inf), [""] * len(path)
    done: dict[bytes, tuple[float, str]] = {}
    if known is not None:
        values[:first], reasons[:first] = known.values, known.reasons
        for k in range(first):
            done[path.points[k].groups.tobytes()] = float(values[k]), reasons[k]
    refits, before = {} if known is None else dict(known.refits), task.null.theta
    if refits:
        last, terms = next(reversed(refits.items()))
        before = _full_size(task.layout, np.frombuffer(last, dtype=np.int64), terms)
    for k in track(range(first, len(path)), show=show, what="refit", total=len(path) - first):
        point = path.points[k]
        key = point.groups.tobytes()
        if key not in done:
            reason = too_dense(task, point.groups)
            if reason:
                done[key] = np.inf, reason
            else:
                # From the last refit, with the path's own values for groups that are new.
                theta = with_new_groups(task, before, path.theta(k))
                start = Start(theta, task.null.evaluation)
                refit = stabilised(task, point.groups, start, tol=REFIT_TOL, max_iter=REFIT_STEPS)
                before = refit.solution.theta
                refits[key] = before[task.layout.positions(point.groups)]
                done[key] = _scored(task, refit)
        values[k], reasons[k] = done[key]
    return RefitLosses(values, tuple(reasons), refits)


def _full_size(layout: Layout, groups: Ints, terms: Floats) -> Floats:
    theta = np.zeros(layout.n_theta)
    theta[layout.positions(groups)] = terms
    return theta


def _scored(task: Task, refit: Unshrunken) -> tuple[float, str]:
    end = refit.solution
    if end.converged:
        return refit.loss + task.log_jacobian, ""
    return np.inf, f"the refit did not converge (KKT {end.kkt:.1e} after {end.n_iter} steps)"


def with_new_groups(task: Task, before: Floats, shrunken: Floats) -> Floats:
    """The theta `before`, with the values of `own` in groups that it has not."""
    theta, edges = before.copy(), task.layout.edges
    fresh = task.layout.group_norms(theta) == 0.0
    is_new = task.layout.spread(fresh.astype(float)) > 0.0
    theta[edges] = np.where(is_new, shrunken[edges], theta[edges])
    return theta
