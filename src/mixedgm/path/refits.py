"""A graph, or those of a path -> estimates without shrinkage, finite and stable in any table.

A refit without penalty need not exist: a cell without rows drives an interaction to minus
infinity, a code that determines another column makes both predict each other perfectly, a number
that others determine has no variance left.  On the way there the curvature vanishes: what is left
of it is counted in rows, one row being worth the curvature that it would add if the two columns
were independent.  Edges that the data do not determine get a ridge worth one row, and such numbers
get noise worth one row, of a variance of 1 / n in standard units.  All others are estimated freely.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mixedgm.base.printable import quoted
from mixedgm.base.progress import track
from mixedgm.base.threads import single_threaded_blas
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.contract import Smooth
from mixedgm.objective.ridge import Ridged
from mixedgm.path.path import Path
from mixedgm.path.task import Task
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.monte_carlo import MonteCarlo
from mixedgm.solve.problem import Problem
from mixedgm.solve.working_set import Solution, Start

REFIT_TOL = 1e-4
REFIT_STEPS = 100
FINEST_TOL = 1e-12
TOO_DENSE = "too many parameters for the rows"

ROWS_OF_A_STABLE_EDGE = 10.0
"""An edge is free if every contrast of it has at least the curvature that so many rows of
independent columns would give it."""

_ROUNDS = 4
_SHARE_OF_A_ROW = 0.01
"""Gradient that a refit with a ridge may leave, in those of one row: a ridge is worth a row."""
# Beyond so many parameters in one conditional, its edges are judged one by one.
_LARGEST_INVERTED = 4000
_MOST_BYTES = 2.0**30


def parameters(task: Task, groups: Ints) -> Ints:
    """Identifiable parameters of each of these edges, over observed levels."""
    layout = task.layout
    return np.asarray(
        layout.nodes.freedom[layout.pairs[groups]].prod(axis=1) * layout.n_blocks[groups]
    )


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


# -- edges that the data do not determine ----------------------------------------------------------


def worth_one_row(task: Task, groups: Ints) -> Floats:
    """Mean curvature of each group's contrasts that one row adds, if all columns were independent.

    Zero for groups that are in the conditional of a number: means of a number are always finite.
    """
    layout, one_term = task.layout, task.smooth.terms_per_edge == 1
    ends = layout.pairs[groups]
    number = (layout.is_target & layout.nodes.gaussian_nodes)[ends]
    among = number[:, 1] if layout.nodewise else number.any(axis=1)
    times = layout.conditionals[groups]
    scale = task.yardstick[groups]
    if not one_term:
        scale = scale * layout.conditionals_at_most / times
    terms = np.minimum(times, task.smooth.terms_per_edge)
    level = terms * scale**2 / np.maximum(1, parameters(task, groups)) / task.total_weight
    return np.where(among, 0.0, level)


def ridge_of(task: Task, groups: Ints, held: Ints, variances: Floats | None = None) -> Floats:
    """The ridge of each of these groups: worth one row where it is held.

    Where variances of coefficients (n_groups,) are known it is also at least that of a normal
    distribution with this variance.  Every conditional that an edge is in counts the rows once.
    """
    level = np.where(np.isin(groups, held), worth_one_row(task, groups), 0.0)
    if variances is None:
        return level
    terms = np.minimum(task.layout.conditionals[groups], task.smooth.terms_per_edge)
    return np.maximum(level, terms / (task.total_weight * variances[groups]))


def open_numbers(task: Task, groups: Ints, theta: Floats, rows: float = 1.0) -> NDArray[np.bool_]:
    """Whether its neighbours leave less than rows / n of a number's variance.

    For a hurdle column: of the variance of what is not zero, and of its rows.
    """
    layout, (precision, n) = task.layout, _alone(task)
    joined = np.zeros(layout.n_nodes, dtype=bool)
    joined[layout.pairs[groups]] = True
    explained = (joined & layout.is_target)[: layout.nodes.n_real]
    return np.asarray(explained & (theta[layout.positive] * rows > precision * n))


def noise_worth_one_row(task: Task) -> Floats:
    """(n_real,) noise worth one row: the variance of a number without edges, divided by n."""
    precision, _ = _alone(task)
    return 1.0 / (precision * task.total_weight)


def _alone(task: Task) -> tuple[Floats, Floats]:
    """(n_real,) precisions of numbers without edges, and rows in which they are not zero."""
    layout, nodes = task.layout, task.layout.nodes
    precision, n = np.ones(nodes.n_real), np.full(nodes.n_real, task.total_weight)
    if nodes.n_spiked and task.moments is not None:
        precision = task.smooth.null()[layout.positive]
        there = task.moments.shares[nodes.slot_start[: nodes.n_spiked]]
        n[nodes.spiked_nodes[: nodes.n_real]] *= there
    return precision, n


def open_edges(
    task: Task, groups: Ints, theta: Floats, *, rows: float, free: Ints | None = None
) -> Ints:
    """Groups of which some contrast has less curvature than so many rows would give.

    `groups` are all that are not zero at theta.  Only those that are `free` (all, by default) are
    asked about and can follow one another; what has a penalty stays where it is.
    """
    at = np.arange(len(groups)) if free is None else np.flatnonzero(np.isin(groups, free))
    level = worth_one_row(task, groups)
    asked = at[level[at] > 0.0]
    if len(asked) == 0:
        return groups[asked]
    small = task.smooth.restrict(groups)
    if small.curvature_rows == 0 or _too_large(small):
        return groups[asked]
    here = theta[task.layout.positions(groups)]
    with single_threaded_blas():  # its rounding must not depend on the threads
        least = least_curvature(small, here, asked, at, 1e-6 * float(level[asked].min()))
    return groups[asked[least < rows * level[asked]]]


def _too_large(smooth: Smooth) -> bool:
    """Whether no curvature can be kept, as with two columns of very many levels."""
    sizes = Contrasts(smooth.layout).runs.node_size
    return bool(smooth.by_nodes and 8.0 * float((sizes.astype(float) ** 2).sum()) > _MOST_BYTES)


def least_curvature(
    smooth: Smooth, theta: Floats, asked: Ints, free: Ints, ridge: float = 0.0
) -> Floats:
    """Smallest curvature of the contrasts of each group, node terms and `free` groups following.

    By nodes it is a lower bound: every conditional follows on its own.  `ridge` is added to the
    curvature, so that it can be inverted.
    """
    contrasts = Contrasts(smooth.layout)
    if smooth.by_nodes:
        blocks = _by_nodes(contrasts, smooth, theta, asked, free, ridge)
    else:
        blocks = _of_whole(contrasts, smooth, theta, asked, free, ridge)
    return np.array([np.linalg.eigvalsh(blocks[g])[0] for g in asked.tolist()])


def _by_nodes(
    contrasts: Contrasts, smooth: Smooth, theta: Floats, asked: Ints, free: Ints, ridge: float
) -> dict[int, Floats]:
    size, start, matrices = contrasts.curvature(smooth, theta, 1)
    runs, layout = contrasts.runs, smooth.layout
    group = np.maximum(runs.block - layout.n_node_blocks, -1)  # -1: a node term
    # Of node terms, which come last here, all follow and none is asked about.
    wanted = np.append(_among(layout.n_groups, asked), False)
    follows = np.append(_among(layout.n_groups, free), True)
    total: dict[int, Floats] = {}
    for v in range(layout.n_nodes):
        entries = np.arange(runs.ptr[v], runs.ptr[v + 1])
        entries = entries[follows[group[entries]]]
        if not size[v] or not wanted[group[entries]].any():
            continue
        kept = np.concatenate(
            [np.arange(runs.local[a], runs.local[a] + runs.length[a]) for a in entries.tolist()]
        )
        of = np.repeat(group[entries], runs.length[entries])
        matrix = matrices[start[v] : start[v + 1]].reshape(size[v], size[v])[np.ix_(kept, kept)]
        # A deviation has several runs.
        places = {g: np.flatnonzero(of == g) for g in np.unique(of).tolist() if wanted[g]}
        for g, part in _given_the_rest(matrix, places, ridge).items():
            total[g] = total[g] + part if g in total else part
    return total


def _of_whole(
    contrasts: Contrasts, smooth: Smooth, theta: Floats, asked: Ints, free: Ints, ridge: float
) -> dict[int, Floats]:
    layout = contrasts.reduced
    kept = layout.positions(np.sort(free))
    matrix = contrasts.whole_curvature(smooth, theta, 1)[np.ix_(kept, kept)]
    ends = {g: (layout.starts[g], layout.starts[g + 1]) for g in asked.tolist()}
    places = {g: np.flatnonzero((kept >= a) & (kept < b)) for g, (a, b) in ends.items()}
    return _given_the_rest(matrix, places, ridge)


def _among(n: int, some: Ints) -> NDArray[np.bool_]:
    mask = np.zeros(n, dtype=bool)
    mask[some] = True
    return mask


def _given_the_rest(matrix: Floats, places: dict[int, Ints], ridge: float) -> dict[int, Floats]:
    """Curvature at these places when everything else in the matrix follows: a Schur complement.

    That is the inverse of a part of the inverse.
    """
    if len(matrix) > _LARGEST_INVERTED:
        return {g: matrix[np.ix_(at, at)] for g, at in places.items()}
    ridge += 1e-14 * float(np.trace(matrix)) / len(matrix)
    inverse = _inverse(matrix, ridge)
    return {g: np.asarray(linalg.inv(inverse[np.ix_(at, at)])) for g, at in places.items()}


def _inverse(matrix: Floats, ridge: float) -> Floats:
    """Inverse of the matrix plus a ridge, from its triangular factor."""
    factor, failed = linalg.lapack.dpotrf(matrix + ridge * np.eye(len(matrix)), lower=1)
    if failed:  # rounding: no contrast is certain
        return np.eye(len(matrix)) / ridge
    inverse, _ = linalg.lapack.dpotri(factor, lower=1)
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)


# -- one graph -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Unshrunken:
    """An estimate of a graph without shrinkage."""

    solution: Solution
    """Full-size theta; the certificate is that of the small problem, ridge included."""
    loss: float
    """The smooth loss, without what the ridge adds (with it, where the loss is sampled)."""
    ridge: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Groups that needed a ridge."""
    noisy: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Nodes of numbers that needed noise."""


def unshrunken(
    task: Task,
    groups: Ints,
    start: Start,
    loose: Ints | None = None,
    *,
    tol: float,
    max_iter: int = 200,
) -> Unshrunken:
    """The graph's estimate, with a ridge on those edges only that cannot do without.

    All edges that could be unstable (or `loose` ones, where the estimate of a similar graph says
    which) are estimated with a ridge first.  Those whose curvature there is large enough are set
    free, and estimated again.  Where several edges are open together (three columns that separate a
    fourth), their ridges add up and hide it; then the curvature vanishes now, and they are held as
    well.
    """
    if isinstance(task.solver, MonteCarlo):
        return _sampled(task, groups, start, tol=tol, max_iter=max_iter)
    first = stabilised(task, groups, start, loose, tol=tol, max_iter=max_iter)
    if len(first.ridge) == 0 and loose is None:
        return first
    # A rough solution would not have gone far enough; a finer one than this is beyond rounding.
    tol = min(tol, max(1.0 / task.total_weight, FINEST_TOL))
    again = Start(first.solution.theta, start.evaluation)
    latest, held = first, np.zeros(0, np.int64)
    for _ in range(_ROUNDS):
        weak = open_edges(task, groups, latest.solution.theta, rows=ROWS_OF_A_STABLE_EDGE)
        if latest is not first and np.isin(weak, held).all():
            return latest
        held = np.union1d(held, weak)
        if np.array_equal(held, first.ridge):
            return first
        latest = _solved(task, groups, again, held, tol=tol, max_iter=max_iter)
        if latest.solution.cost.n_iter == 0:  # nothing has moved, so nothing else is weak
            return latest
    if loose is None:
        return first
    return unshrunken(task, groups, start, tol=tol, max_iter=max_iter)


def with_variances(
    task: Task, groups: Ints, fit: Unshrunken, variances: Floats, *, tol: float, max_iter: int
) -> Unshrunken:
    """The graph's estimate where coefficients come from normal distributions with these variances.

    It starts from the estimate without shrinkage, and has the ridge and noise which that needs.
    """
    known = Start(fit.solution.theta, task.null.evaluation)
    if isinstance(task.solver, MonteCarlo):
        return _sampled(task, groups, known, fit, variances, tol=tol, max_iter=max_iter)
    problem = refit_problem(task, groups, fit.ridge, fit.noisy, variances)
    with single_threaded_blas():
        solution = task.confined(problem, groups, known, task.solver, tol, max_iter)
    assert isinstance(problem.smooth, Ridged)
    added = problem.smooth.added(solution.theta[task.layout.positions(groups)])
    return Unshrunken(solution, solution.evaluation.value - added, fit.ridge, fit.noisy)


def stabilised(
    task: Task,
    groups: Ints,
    start: Start,
    loose: Ints | None = None,
    *,
    tol: float,
    max_iter: int = 200,
) -> Unshrunken:
    """The graph's estimate with a ridge on all edges (or `loose` ones) that could be unstable."""
    if isinstance(task.solver, MonteCarlo):
        return _sampled(task, groups, start, tol=tol, max_iter=max_iter)
    loose = groups if loose is None else loose
    could_be = loose[worth_one_row(task, loose) > 0.0]
    return _solved(task, groups, start, could_be, tol=tol, max_iter=max_iter)


def _sampled(
    task: Task,
    groups: Ints,
    start: Start,
    known: Unshrunken | None = None,
    variances: Floats | None = None,
    *,
    tol: float,
    max_iter: int,
) -> Unshrunken:
    """A sampled likelihood gets the ridge that the exact pseudolikelihood of the graph needs."""
    from mixedgm.objective.sampled import RidgedSample, SampledLikelihood

    known = known or unshrunken(task.scoring, groups, start, tol=tol, max_iter=max_iter)
    small = task.smooth.restrict(groups)
    assert isinstance(small, SampledLikelihood)
    edges = ridge_of(task, groups, known.ridge, variances)
    numbers = np.zeros(task.layout.nodes.n_real)
    numbers[known.noisy] = noise_worth_one_row(task)[known.noisy]
    ridged = RidgedSample.of(small, edges, numbers)
    problem = Problem.unpenalised(ridged, task.yardstick[groups])
    solution = task.confined(problem, groups, start, task.solver, tol, max_iter)
    return Unshrunken(solution, solution.evaluation.value, known.ridge, known.noisy)


def _solved(
    task: Task, groups: Ints, start: Start, ridge: Ints, *, tol: float, max_iter: int
) -> Unshrunken:
    """The optimum with a ridge on these groups, and with noise in numbers that turn out to need it.

    A number needs it where the others leave less than 1 / n of its variance unexplained.
    """
    noisy = open_numbers(task, groups, start.theta, rows=2.0)
    for _ in range(_ROUNDS):
        problem = refit_problem(task, groups, ridge, np.flatnonzero(noisy))
        with single_threaded_blas():
            solution = task.confined(problem, groups, start, task.solver, tol, max_iter)
        more = open_numbers(task, groups, solution.theta)
        if not (more & ~noisy).any():
            break
        noisy |= more
    loss = solution.evaluation.value
    if isinstance(problem.smooth, Ridged):
        loss -= problem.smooth.added(solution.theta[task.layout.positions(groups)])
    return Unshrunken(solution, loss, ridge, np.flatnonzero(noisy))


def refit_problem(
    task: Task, groups: Ints, ridge: Ints, noisy: Ints, variances: Floats | None = None
) -> Problem:
    """A graph without penalty, with a ridge on some of its groups and noise in some numbers."""
    small = task.smooth.restrict(groups)
    edges = ridge_of(task, groups, ridge, variances)
    numbers = np.zeros(task.layout.nodes.n_real)
    numbers[noisy] = noise_worth_one_row(task)[noisy]
    smooth = Ridged(small, edges, numbers) if edges.any() or len(noisy) else small
    return Problem.unpenalised(smooth, task.yardstick[groups])


def refit_of_resample(
    task: Task,
    whole: Task,
    groups: Ints,
    settled: Ints,
    start: Start,
    *,
    tol: float,
    max_iter: int = 200,
) -> Unshrunken:
    """The graph's estimate on a resample of the whole table.

    `settled` are edges (triples) that need no ridge in the whole table.  They get one here only if
    a cell has lost its rows, or if their curvature vanishes: then the resample has no finite
    estimate, and where the solver stops would depend on its tolerance.
    """
    stable = np.isin(groups, task.layout.groups_of(settled)) & ~emptied(task, whole, groups)
    ridge, free = groups[~stable], groups[stable]
    finest = max(_SHARE_OF_A_ROW / task.total_weight, FINEST_TOL)
    for _ in range(_ROUNDS):
        tol = min(tol, finest) if len(ridge) else tol
        known = stabilised(task, groups, start, ridge, tol=tol, max_iter=max_iter)
        if not known.solution.converged:
            return unshrunken(task, groups, start, tol=tol, max_iter=max_iter)
        theta = known.solution.theta
        if not _moved_far(task, free, theta - start.theta).any():
            break
        weak = open_edges(task, groups, theta, rows=1.0, free=free)
        if len(weak) == 0:
            break
        ridge, free = np.union1d(ridge, weak), np.setdiff1d(free, weak)
    return known


def _moved_far(task: Task, groups: Ints, change: Floats) -> NDArray[np.bool_]:
    """Edges that moved by more than a standard error of the least stable edge that is free."""
    squares = task.layout.group_norms(change)[groups] ** 2
    information = ROWS_OF_A_STABLE_EDGE * task.total_weight * worth_one_row(task, groups)
    return np.asarray(squares * information > parameters(task, groups))


def emptied(task: Task, whole: Task, groups: Ints) -> NDArray[np.bool_]:
    """Edges with a cell that has rows in the whole table, and none in this resample of it."""
    small = task.layout.restrict(groups)
    row, column = (part % small.n_columns for part in small.edge_position)
    lost = task.second_moments(row, column) == 0.0
    # Levels without rows here are no columns of the resample, but may be some of the whole table.
    here, there = (each.schema.spans.columns_kept(each.observed) for each in (task, whole))
    at = np.searchsorted(there, here)
    lost[lost] = whole.second_moments(at[row[lost]], at[column[lost]]) != 0.0
    return small.group_sums(lost.astype(np.float64)) > 0.0


# -- the graphs of a path --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RefitLosses:
    """Smooth losses (the data's units) at the refits of a path's graphs."""

    values: Floats
    """(n_lams,) +inf where a graph was not scored."""
    reasons: tuple[str, ...]
    """Why it was not; empty where it was."""
    refits: dict[bytes, Floats] = field(default_factory=dict)
    """Theta of every refit on its own support, by support."""

    def theta(self, layout: Layout, groups: Ints) -> Floats | None:
        """Full-size theta of the refit of this support, if there was one."""
        kept = self.refits.get(groups.tobytes())
        return None if kept is None else layout.expanded(groups, kept)

    @property
    def ended(self) -> bool:
        """Whether the last graph, and so all denser ones, have too many parameters."""
        return self.reasons[-1].startswith(TOO_DENSE)


def scoring_tol(tol: float) -> float:
    """How finely refits are solved by which the graphs of a path, solved to `tol`, are scored.

    Scores need no more than `REFIT_TOL`, unless somebody asks for very exact ones.
    """
    return min(REFIT_TOL, 10.0 * tol)


def refit_losses(
    task: Task,
    path: Path,
    tol: float = REFIT_TOL,
    *,
    known: RefitLosses | None = None,
    show: bool = False,
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
        before = task.layout.expanded(np.frombuffer(last, dtype=np.int64), terms)
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
                refit = stabilised(task, point.groups, start, tol=tol, max_iter=REFIT_STEPS)
                before = refit.solution.theta
                refits[key] = before[task.layout.positions(point.groups)]
                done[key] = _scored(task, refit)
        values[k], reasons[k] = done[key]
    return RefitLosses(values, tuple(reasons), refits)


def _scored(task: Task, refit: Unshrunken) -> tuple[float, str]:
    end = refit.solution
    if end.converged:
        return refit.loss + task.log_jacobian, ""
    return np.inf, f"the refit did not converge (KKT {end.kkt:.1e} after {end.n_iter} steps)"


def with_new_groups(task: Task, before: Floats, shrunken: Floats) -> Floats:
    """The theta `before`, with the shrunken values in groups that it does not have."""
    theta, edges = before.copy(), task.layout.edges
    fresh = task.layout.group_norms(theta) == 0.0
    is_new = task.layout.spread(fresh.astype(float)) > 0.0
    theta[edges] = np.where(is_new, shrunken[edges], theta[edges])
    return theta
