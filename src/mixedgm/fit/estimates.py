"""A path and the choice from it -> the estimate and the account of it: theta and FitReport."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from mixedgm.base.printable import few
from mixedgm.base.threads import single_threaded_blas
from mixedgm.fit.certificate import ROUNDING, Claim, Standardised, kkt
from mixedgm.fit.options import Options
from mixedgm.fit.report import FitReport
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params
from mixedgm.path.path import Path
from mixedgm.path.recipe import Lam
from mixedgm.path.refits import (
    FINEST_TOL,
    noise_worth_one_row,
    open_edges,
    open_numbers,
    ridge_of,
    too_dense,
    unshrunken,
    with_variances,
)
from mixedgm.path.rounds import AtLam, Settled, Unpenalised
from mixedgm.path.task import Task, observed_levels
from mixedgm.select.criteria import assembled
from mixedgm.select.evidence import Choice
from mixedgm.solve.loop import Account, Certificate, Cost, Status
from mixedgm.solve.working_set import Solution, Start, solve
from mixedgm.table.encode import Design
from mixedgm.table.parted.design import PartedDesign


@dataclass(frozen=True, eq=False)
class Optimum:
    """An estimate, the account of it, and what it minimises besides loss and penalty."""

    theta: Floats
    """Parameters in the solver's coordinates."""
    report: FitReport
    groups: Ints | None = None
    """Groups that were estimated alone, all others left out.  None: all are part of the problem."""
    ridge: Floats | None = None
    """(n_groups,) ridge of a refit, for every group; see `Ridged`."""
    noise: Floats | None = None
    """(n_real,) noise of a refit, for every number."""


def chosen_estimate(task: Task, path: Path, choice: Choice, options: Options) -> Optimum:
    """The chosen point of the path; where edges were chosen apart, the optimum with only those."""
    if choice.by_node is not None:
        return _per_column(task, path, choice, options)
    point, theta = path.points[choice.index], path.theta(choice.index)
    report = _report(task, point.lam, options, choice, point, point.notes)
    if choice.groups is None or np.array_equal(choice.groups, point.groups):
        return Optimum(theta, report)
    problem = task.problem(point.lam).restrict(choice.groups)
    start, how = Start(theta, task.null.evaluation), (options.solver_object, options.tol)
    solution = task.confined(problem, choice.groups, start, *how, options.max_iter)
    notes = []
    if choice.tested is None:  # else the account of the tests says so
        notes = [f"the {len(choice.groups)} chosen edges were estimated alone, all others left out"]
    return Optimum(solution.theta, _of_solution(report, solution, task, *notes), choice.groups)


def _per_column(task: Task, path: Path, choice: Choice, options: Options) -> Optimum:
    """Every column's regression at its own lam, with a certificate of the whole."""
    assert choice.by_node is not None
    theta, points = assembled(path, choice.by_node)
    by_name = dict(
        zip((node.name for node in task.schema.nodes), path.lams[choice.by_node], strict=True)
    )
    lam = tuple(
        float(by_name[column.name]) if column.role == "target" else np.nan
        for column in task.schema.columns
    )
    optimality = task.problem(lam).optimality(theta)
    worst = max(points, key=lambda point: point.kkt)
    status = Status.CONVERGED if optimality.kkt <= options.tol else worst.status
    account = Account(
        Certificate.of(status, optimality.objective + task.log_jacobian, optimality.kkt),
        Cost.total(point.cost for point in points),
    )
    notes = [note for point in points for note in point.notes]
    return Optimum(theta, _report(task, lam, options, choice, account, notes))


def at_given_lams(task: Task, lam: Lam, options: Options, start: Params | None) -> Optimum:
    """The optimum at one lam per column, for which there is no path."""
    theta = task.null.theta if start is None else task.theta_of(start)
    here = Start(theta, task.smooth.evaluate(theta))
    problem, solver = task.problem(lam), options.solver_object
    with single_threaded_blas():
        solution = solve(problem, solver, here, tol=options.tol, max_iter=options.max_iter)
    return Optimum(solution.theta, _of_solution(_report(task, lam, options), solution, task))


def estimate_at(
    task: Task,
    lam: Lam,
    groups: Ints | None,
    options: Options,
    choice: Choice,
    start: Floats | None,
) -> Optimum:
    """The optimum at a lam, of all groups or of some only, starting from a theta that is near."""
    theta = task.null.theta if start is None else start
    report, how = _report(task, lam, options, choice), (options.tol, options.max_iter)
    problem = task.problem(lam)
    if groups is not None:
        small, begin = problem.restrict(groups), Start(theta, task.null.evaluation)
        solution = task.confined(small, groups, begin, options.solver_object, *how)
    else:
        here = Start(theta, task.smooth.evaluate(theta))
        tol, most = how
        with single_threaded_blas():
            solution = solve(problem, options.solver_object, here, tol=tol, max_iter=most)
    return Optimum(solution.theta, _of_solution(report, solution, task), groups)


def refitted(task: Task, shrunken: Optimum, options: Options, choice: Choice) -> Optimum:
    """The chosen graph without penalty; the certificate is that of the refit.

    A graph with too many parameters for the rows keeps the shrunken estimate, and says so.  Edges
    that passed a test are refitted even where they are zero at the lam nearby.
    """
    theta, report, near = shrunken.theta, shrunken.report, choice.refit
    groups = chosen_groups(task, shrunken, choice)
    dense = too_dense(task, groups)
    if dense:
        note = f"the estimates are shrunken: the graph cannot be refitted, {dense}"
        return replace(shrunken, report=replace(report, notes=(*report.notes, note)))
    start = Start(theta if near is None else near, task.null.evaluation)
    tol, most = options.tol, options.max_iter
    variances = None if choice.tested is None else choice.tested.variances
    refit = unshrunken(task, groups, start, tol=tol, max_iter=most)
    shrinks = variances is not None and bool(np.isfinite(variances[groups]).any())
    if variances is not None and shrinks:
        refit = with_variances(task, groups, refit, variances, tol=tol, max_iter=most)
    report = replace(_of_solution(report, refit.solution, task), shrunken=shrinks)
    found = refit.solution.theta, refit.ridge, refit.noisy
    return _of_refit(task, report, groups, found, variances)


def _of_refit(
    task: Task,
    report: FitReport,
    groups: Ints,
    found: tuple[Floats, Ints, Ints],
    variances: Floats | None,
) -> Optimum:
    """The optimum at theta, with edges that are held by a ridge and numbers by noise."""
    theta, held, noisy = found
    report = replace(
        report,
        refitted=True,
        ridge=_pairs(task, held),
        noisy=tuple(task.schema.nodes[s].name for s in noisy.tolist()),
    )
    ridge, noise = np.zeros(task.layout.n_groups), np.zeros(task.layout.nodes.n_real)
    ridge[groups] = ridge_of(task, groups, held, variances)
    noise[noisy] = noise_worth_one_row(task)[noisy]
    return Optimum(theta, report, groups, ridge, noise)


def chosen_groups(task: Task, shrunken: Optimum, choice: Choice) -> Ints:
    """The graph that is refitted: what passed tests, else what is not zero."""
    if choice.tested is not None and choice.groups is not None:
        return choice.groups
    return np.flatnonzero(task.layout.group_norms(shrunken.theta))


def of_rounds(
    ends: Settled, goal: AtLam | Unpenalised, lam: Lam, options: Options, choice: Choice
) -> Optimum:
    """The estimate at which rounds of completing and estimating ended.

    Its certificate is that at rows which it has completed itself.
    """
    task, theta = ends.task, ends.theta
    optimality = goal.optimality(task, theta)
    status = Status.CONVERGED if ends.converged else Status.ROUND_LIMIT
    objective = optimality.objective + task.log_jacobian
    account = Account(Certificate.of(status, objective, optimality.kkt), Cost())
    report = _report(task, lam, options, choice, account)
    if isinstance(goal, AtLam):
        return Optimum(theta, report, goal.groups(task))
    report = replace(report, shrunken=goal.variances is not None)
    found = theta, *goal.ridge(task)
    return _of_refit(task, report, goal.groups(task), found, goal.variances)


def certified(design: Design | PartedDesign, task: Task, optimum: Optimum) -> FitReport:
    """The report with a KKT number that was computed apart from the solvers.

    Likelihoods keep that of the solvers: their gradients are expectations of the joint
    distribution, which only `joint` knows.
    """
    report = optimum.report
    if task.loss not in ("pseudolikelihood", "nodewise"):
        return report
    problem, beyond = task.problem(0.0 if report.refitted else report.lam), None
    if task.beyond is not None and optimum.groups is None:
        assert isinstance(report.lam, float)
        beyond = task.beyond.bounds(report.lam)
    claim = Claim(
        task.layout,
        optimum.theta,
        problem.penalty.bound(problem.lam),
        task.yardstick,
        optimum.groups,
        optimum.ridge,
        optimum.noise,
        beyond,
    )
    number = kkt(design, _standardised(design, task), claim)
    certificate = replace(report.certificate, kkt=number)
    if report.converged and not number <= report.tol + ROUNDING:
        certificate = certificate.but(Status.NOT_CERTIFIED)
    return replace(report, certificate=certificate)


def _standardised(design: Design | PartedDesign, task: Task) -> Standardised:
    units, moderators = task.units, task.moderators
    if moderators is None or isinstance(design, PartedDesign):
        return Standardised(units.centre, units.scale, task.observed)
    columns = design.schema.spans.numbers(design.numbers, design.codes)
    numbers, codes = (columns - units.centre) / units.scale, observed_levels(design)[1]
    features = moderators.features(task.layout, numbers, codes)
    middle = moderators.centre(task.layout)
    return Standardised(units.centre, units.scale, task.observed, features, middle)


def with_bounds_checked(task: Task, theta: Floats, report: FitReport) -> FitReport:
    """The report; not converged where the data do not determine what has no penalty."""
    names = unbounded(task, theta, report.lam, report.tol)
    if not names:
        return report
    return replace(
        report,
        certificate=report.certificate.but(Status.UNBOUNDED),
        unbounded=names,
        notes=(*report.notes, _without_bound(names)),
    )


def path_with_bounds_checked(task: Task, path: Path, tol: float) -> Path:
    """The path; points are not converged where the data do not determine what has no penalty.

    That is so at all lam above zero, or at none: it depends on which groups have no penalty.
    """
    points, known = list(path.points), dict[bool, tuple[str, ...]]()
    for k, point in enumerate(points):
        none = point.lam == 0.0
        if none not in known:
            known[none] = unbounded(task, path.theta(k), point.lam, tol)
        if known[none]:
            notes = (*point.notes, _without_bound(known[none]))
            certificate = point.certificate.but(Status.UNBOUNDED)
            points[k] = replace(point, certificate=certificate, notes=notes)
    return replace(path, points=tuple(points)) if any(known.values()) else path


def unbounded(task: Task, theta: Floats, lam: Lam, tol: float) -> tuple[str, ...]:
    """Edges and numbers without penalty that have no finite estimate; theta is solved to `tol`.

    However large such an estimate is, a larger one fits better, and the gradient vanishes.  The
    curvature does so only close to the end: with many rows, or a sampled loss, `tol` is too rough.
    """
    problem = task.problem(lam)
    free = np.flatnonzero(problem.penalty.bound(problem.lam) == 0.0)
    groups = np.flatnonzero(task.layout.group_norms(theta))
    free = np.intersect1d(free, groups)
    judge, fine = task.scoring, max(0.1 / task.total_weight, FINEST_TOL)
    if len(free) == 0 or judge.smooth.curvature_rows == 0:
        return ()
    problem = judge.problem(lam).restrict(groups)

    def solved(theta: Floats, tol: float) -> Floats:
        start = Start(theta, judge.null.evaluation)
        return judge.confined(problem, groups, start, judge.solver, tol, max_iter=200).theta

    if judge is not task or fine < tol:
        theta, tol = solved(theta, fine), fine
    edges = open_edges(judge, groups, theta, rows=1.0, free=free)
    numbers = np.flatnonzero(open_numbers(judge, free, theta))
    if len(numbers):  # a precision that is only large stays where it is
        precisions = task.layout.positive
        further = solved(theta, 1e-3 * tol)[precisions][numbers]
        numbers = numbers[further > 2.0 * theta[precisions][numbers]]
    return (
        *(f"{a} - {b}" for a, b in _pairs(task, edges)),
        *(task.schema.nodes[s].name for s in numbers.tolist()),
    )


def _without_bound(names: tuple[str, ...]) -> str:
    return f"without bound: {few(names)}"


def _pairs(task: Task, groups: Ints) -> tuple[tuple[str, str], ...]:
    """Names of both ends of every edge that these groups belong to."""
    nodes = task.schema.nodes
    pairs = np.sort(task.layout.pairs[groups], axis=1).tolist()
    return tuple(dict.fromkeys((nodes[u].name, nodes[v].name) for u, v in pairs))


def _report(
    task: Task,
    lam: Lam,
    options: Options,
    choice: Choice | None = None,
    account: Account | None = None,
    notes: Iterable[str] = (),
) -> FitReport:
    """The report of an estimate; without an account, what is known before it is solved."""
    return FitReport(
        account.certificate if account else Certificate.none(""),
        account.cost if account else Cost(),
        lam=lam,
        tol=options.tol,
        n_rows=task.smooth.n_rows,
        total_weight=task.total_weight,
        notes=tuple(dict.fromkeys((*notes, *_notes(task, choice)))),
        open_end=choice.open_end if choice else "",
        not_considered=choice.reasons if choice and any(choice.reasons) else (),
        criterion=(choice.label or None) if choice else None,
        untested=choice.tested.untested if choice and choice.tested else (),
        loss=options.loss,
        rule=options.rule,
    )


def _of_solution(report: FitReport, solution: Solution, task: Task, *notes: str) -> FitReport:
    """The report with the certificate of this solution."""
    return replace(
        report,
        certificate=task.certificate(solution),
        cost=solution.cost,
        notes=tuple(dict.fromkeys((*report.notes, *solution.notes, *notes))),
    )


def _notes(task: Task, choice: Choice | None) -> tuple[str, ...]:
    """Notes on the choice, and on columns and pairs that cannot have edges."""
    notes = list(choice.notes) if choice else []
    if choice and choice.open_end:
        notes.append(choice.open_end)
    return (*notes, *task.without_edges)
