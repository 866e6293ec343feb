"""A table and Options -> FittedModel, or the whole Path: the one-way street through the rooms."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixedgm.fitted import FitReport, FittedModel
from mixedgm.model.layout import Floats
from mixedgm.model.params import Params
from mixedgm.options import Options
from mixedgm.path import grid
from mixedgm.path.criteria import Choice, Criterion
from mixedgm.path.path import Path, PathPoint, solve_path
from mixedgm.path.task import Reference, Task, prepare
from mixedgm.penalty.factors import factor_matrix
from mixedgm.solve.working_set import Start
from mixedgm.table import learn
from mixedgm.table.check import level_of_caller
from mixedgm.table.encode import Design


def fit_path(
    X: Any, lams: ArrayLike | None = None, *, sample_weight: ArrayLike | None = None, **options: Any
) -> Path:
    """Solve a whole path of penalties.

    Parameters
    ----------
    X : data frame, 2-D array or path of a CSV or Parquet file
    lams : sequence of float, optional
        By default `n_lams` values from lam_max down to ``lam_min_ratio * lam_max``.
    sample_weight : array (n,), optional
        Frequencies of the rows.
    **options
        As for `MixedGraphicalModel`.

    Returns
    -------
    Path
        ``path.lams``, ``path.n_edges``, ``path.kkt``, ``path.params(k)``, ``path.edges(k)``,
        ``path.score(X_test)``, ...

    Examples
    --------
    >>> import numpy as np, mixedgm as mg
    >>> x = np.random.default_rng(0).normal(size=(200, 2)) @ [[1, 0.5], [0, 1]]
    >>> path = mg.fit_path(x, n_lams=3, lam_min_ratio=0.1)
    >>> path.n_edges.tolist(), bool((path.kkt <= 1e-5).all())
    ([0, 1, 1], True)
    """
    chosen = Options(lams=lams, **options)
    task = prepare_design(encode(X, chosen, sample_weight), chosen, None, chosen.n_threads)
    path = _solve(task, chosen)
    warn_unless_converged(path, chosen.tol)
    return path


def fit_table(
    X: Any, library: str, options: Options, sample_weight: ArrayLike | None = None
) -> FittedModel:
    """Encode the table, fit it, and warn about what did not converge."""
    design = encode(X, options, sample_weight)
    fitted = fit_design(design, options, library=library, n_threads=options.n_threads)
    if fitted.path is not None:
        warn_unless_converged(fitted.path, options.tol)
    report = fitted.report
    if options.refit and not report.converged:
        _warn(f"refit: {report.message} (KKT {report.kkt:.1e}, tol {report.tol:g}).")
    return fitted


def fit_design(
    design: Design,
    options: Options,
    *,
    library: str = "numpy",
    reference: Reference | None = None,
    start: Params | None = None,
    n_threads: int = 1,
) -> FittedModel:
    """Path, choice of lam, refit if asked, and what was found on the way.

    Parameters
    ----------
    design : Design
        The rows: a whole table, or some rows of one.
    options : Options
    library : str
        Frame library that the model's tables are made with.
    reference : Reference, optional
        Of the whole table, when `design` is a resample of it.
    start : Params, optional
        Where the first lam starts, in the data's own units.
    n_threads : int
        For passes over the rows.

    Returns
    -------
    FittedModel
        Nothing is warned about; `report.converged` and `path.converged` tell.
    """
    criterion = options.criterion
    task = prepare_design(design, options, reference, n_threads)
    path = _solve(task, options, criterion, start)
    choice = Choice(0, "", {})
    if criterion is not None:
        choice = criterion.choose(task, path, show=options.verbose > 0)
    theta = path.theta(choice.index)
    report = _report(task, path.points[choice.index], options, choice)
    if options.refit:
        theta, report = _refitted(task, theta, report, options)
    return FittedModel(
        schema=path.schema,
        params=task.params(theta),
        node_scales=task.node_scales,
        report=report,
        library=library,
        path=path,
        scores=choice.scores,
    )


def encode(X: Any, options: Options, sample_weight: ArrayLike | None = None) -> Design:
    """Check the table and turn it into numbers."""
    solver = options.solver_object  # a wrong name should not wait for a big table to be read
    del solver
    design, _ = learn(
        X,
        types=options.types,
        transform=options.transform,
        missing=options.missing,
        sample_weight=sample_weight,
    )
    return design


def prepare_design(
    design: Design, options: Options, reference: Reference | None = None, n_threads: int = 1
) -> Task:
    """Set up the problem for all lam."""
    factors = factor_matrix(design.schema, options.penalty_factors, options.require, options.forbid)
    return prepare(
        design,
        weights=options.weights,
        factors=factors,
        reference=reference,
        n_threads=n_threads,
    )


def _solve(
    task: Task,
    options: Options,
    criterion: Criterion | None = None,
    start: Params | None = None,
) -> Path:
    """The path; the default grid ends where `criterion` can choose nothing any more."""
    enough = None
    if criterion is not None and options.lams is None:
        enough = partial(criterion.enough, task) if hasattr(criterion, "enough") else None
    if options.lam is not None:
        lams = np.array([float(options.lam)])
    elif options.lams is not None:
        lams = grid.given(options.lams)
    else:
        lams = grid.geometric(task.lam_max, options.n_lams, options.lam_min_ratio)
    return solve_path(
        task,
        lams,
        options.solver_object,
        tol=options.tol,
        max_iter=options.max_iter,
        start=start,
        show=options.verbose > 0,
        keep_trace=len(lams) == 1,
        enough=enough,
    )


def _report(task: Task, point: PathPoint, options: Options, choice: Choice) -> FitReport:
    return FitReport(
        lam=point.lam,
        objective=point.objective,
        kkt=point.kkt,
        tol=options.tol,
        converged=point.converged,
        message=point.status.value,
        n_iter=point.n_iter,
        n_rows=task.smooth.n_rows,
        total_weight=task.total_weight,
        notes=(*point.notes, *choice.notes, *_degenerate_notes(task)),
        criterion=choice.label or None,
    )


def _degenerate_notes(task: Task) -> tuple[str, ...]:
    constant = task.node_scales == 0.0
    names = [repr(task.schema.nodes[v].name) for v in np.flatnonzero(constant)]
    if not names:
        return ()
    return (f"constant in these rows, so without edges: {', '.join(names)}",)


def _refitted(
    task: Task, theta: Floats, report: FitReport, options: Options
) -> tuple[Floats, FitReport]:
    """The chosen support without shrinkage; the certificate is that of the refit."""
    groups = np.flatnonzero(task.layout.group_norms(theta))
    start = Start(theta, task.null.evaluation)
    solution = task.unpenalised(groups, start, tol=options.tol, max_iter=options.max_iter)
    return solution.theta, replace(
        report,
        objective=solution.objective + task.units.log_jacobian,
        kkt=solution.kkt,
        converged=solution.converged,
        message=solution.status.value,
        n_iter=solution.n_iter,
        notes=(*report.notes, *solution.notes, "the chosen graph was refitted without shrinkage"),
    )


def warn_unless_converged(path: Path, tol: float) -> None:
    """Issue one ConvergenceWarning for all values of lam that missed `tol`."""
    bad = [point for point in path.points if not point.converged]
    if not bad:
        return
    worst = max(bad, key=lambda point: point.kkt)
    where = f"at lam = {worst.lam:.4g}"
    if len(path) > 1:
        where = f"at {len(bad)} of {len(path)} values of lam, worst {where}"
    _warn(f"{where}: {worst.status.value} (KKT {worst.kkt:.1e}, tol {tol:g}).")


def _warn(message: str) -> None:
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())
