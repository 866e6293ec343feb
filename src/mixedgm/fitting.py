"""A table and Options -> FittedModel, or the whole Path: the one-way street through the rooms."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixedgm.deprecation import renamed_arguments
from mixedgm.errors import (
    DistributionError,
    Finding,
    LongFitWarning,
    OutOfMemoryError,
    ParameterError,
    SelectionWarning,
    TableError,
    level_of_caller,
    near_matches,
)
from mixedgm.estimates import (
    Optimum,
    at_given_lams,
    certified,
    chosen_estimate,
    path_with_bounds_checked,
    refitted,
    with_bounds_checked,
)
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.model.margins import Margins
from mixedgm.model.params import Params
from mixedgm.options import RENAMED, Options
from mixedgm.parallel import seeds
from mixedgm.path import grid
from mixedgm.path.evidence import Choice, Recipe, Setup
from mixedgm.path.moderated import Moderated
from mixedgm.path.path import Path
from mixedgm.path.selection import choose_from, choose_growing
from mixedgm.path.task import Reference, Task
from mixedgm.penalty.factors import deviation_factors, factor_matrix
from mixedgm.printable import few, quoted
from mixedgm.report import FitReport
from mixedgm.solve.loop import Status
from mixedgm.table import Frame, as_frame, learn
from mixedgm.table.check import raise_or_warn
from mixedgm.table.effort import REMEDY, effort
from mixedgm.table.encode import Design
from mixedgm.table.options import resolve_options
from mixedgm.table.schema import Schema

# A single lam is approached from far away: the work of about so many lams of a path.
_LAMS_FOR_ONE = 6.0


@renamed_arguments(RENAMED)
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
    design = encode(X, chosen, sample_weight)
    _announce(design, chosen, n_lams=chosen.n_lams)
    _compile_ahead(design, chosen)
    recipe = replace(recipe_of(chosen, design.schema), refits=False)
    show = chosen.verbose > 0
    with _naming(design.schema), _enough_memory(design):
        task = recipe.task(design, None, chosen.n_threads)
        path = recipe.path(task, _grid(task, chosen), keep_interrupted=True, show=show)
    path = path_with_bounds_checked(task, path, chosen.tol)
    warn_unless_converged(path, chosen.tol)
    return path


def fit_table(
    X: Any, library: str, options: Options, sample_weight: ArrayLike | None = None
) -> FittedModel:
    """Encode the table, fit it, and warn about what did not converge."""
    design = encode(X, options, sample_weight)
    _announce(design, options)
    _compile_ahead(design, options)
    with _enough_memory(design):
        fitted = fit_design(
            design,
            options,
            library=library,
            n_threads=options.n_threads,
            n_jobs=options.n_jobs,
            keep_interrupted=True,
            certify=True,
        )
    report, path = fitted.report, fitted.path
    if path is not None:
        warn_unless_converged(path, options.tol)
    own = report.refitted or report.unbounded  # else the path has said it
    if not report.converged and (own or path is None or path.converged.all()):
        what = "" if path is None or report.unbounded else "estimate of the chosen edges: "
        warn_about(report, "refit: " if report.refitted else what)
    if report.open_end:
        warnings.warn(report.open_end, SelectionWarning, stacklevel=level_of_caller())
    return fitted


def _announce(design: Design, options: Options, n_lams: float | None = None) -> None:
    """Say before a long fit how long it takes, and what makes it long."""
    if options.loss not in ("pseudolikelihood", "nodewise"):
        return  # the number of states is limited there, and the time with it
    if options.lams is not None:
        n_lams = len(grid.given(options.lams))
    expected = effort(
        design.schema.columns,
        design.n_rows,
        n_lams=_LAMS_FOR_ONE if options.lam is not None else n_lams,
        times=getattr(options.criterion, "effort", 1.0),
        n_threads=options.n_threads,
    )
    finding = expected.finding
    if finding is not None:
        progress = "" if options.verbose else "; verbose=1 shows progress"
        warnings.warn(f"{finding}{progress}.", LongFitWarning, stacklevel=level_of_caller())


@contextmanager
def _enough_memory(design: Design) -> Iterator[None]:
    """Say what needs the memory when there is not enough."""
    try:
        yield
    except MemoryError as error:
        expected = effort(design.schema.columns, design.n_rows)
        raise OutOfMemoryError(
            f"there is not enough memory for this fit ({expected.because}; about "
            f"{expected.gigabytes:.1g} GB). To fix: {REMEDY}."
        ) from error


def _compile_ahead(design: Design, options: Options) -> None:
    """Half of what the first fit ever compiles is worth a second process."""
    if design.codes.shape[1] and options.loss in ("pseudolikelihood", "nodewise"):
        from mixedgm.precompile import compile_ahead

        compile_ahead()


def fit_design(
    design: Design,
    options: Options,
    *,
    library: str = "numpy",
    reference: Reference | None = None,
    start: Params | None = None,
    n_threads: int = 1,
    n_jobs: int | None = 1,
    keep_interrupted: bool = False,
    certify: bool = False,
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
    n_jobs : int, optional
        Workers for the folds and subsamples of a criterion.
    keep_interrupted : bool
        Whether Ctrl-C leaves a model from what is done, with a warning, or is passed on.
    certify : bool
        Whether the KKT number is computed once more, apart from the solvers.

    Returns
    -------
    FittedModel
        Nothing else is warned about; `report.converged` and `path.converged` tell.
    """
    recipe = recipe_of(options, design.schema)
    setup = Setup(
        design,
        recipe,
        recipe.task(design, reference, n_threads),
        reference,
        seeds(options.random_state, 1)[0],
        n_jobs,
        keep_interrupted,
        options.verbose > 0,
    )
    with _naming(design.schema):
        path, choice, shrunken = _fitted(setup, options, start)
        fitted = FittedModel(
            schema=design.schema,
            params=setup.task.params(shrunken.theta),
            node_scales=setup.task.node_scales,
            report=shrunken.report,
            library=library,
            path=path,
            scores=choice.scores,
            selection_frequency=_by_nodes(setup.task, choice.frequencies),
            margins=_margins(setup.task),
        )
        optimum = shrunken
        if options.refits:
            optimum = refitted(setup.task, shrunken, options, choice.refit)
    if optimum.report.refitted:
        weights, params = fitted.all_weights, setup.task.params(optimum.theta)
        fitted = replace(fitted, params=params, shrunken_weights=weights)
    _require_finite(fitted)
    report = certified(design, setup.task, optimum) if certify else optimum.report
    if not report.refitted:
        report = with_bounds_checked(setup.task, optimum.theta, report)
    return replace(fitted, report=report)


def _require_finite(fitted: FittedModel) -> None:
    """Raise TableError where an estimate is not finite, whatever the reason."""
    params = fitted.params
    with np.errstate(invalid="ignore"):  # sums find what is not finite without a copy of all
        edges = params.coef.sum(axis=0) + params.coef.sum(axis=1)
        nodes = np.add.reduceat(edges, params.nodes.column_start[:-1]) + fitted.node_scales
        nodes[params.nodes.gaussian] += params.diagonal
        nodes += [np.maximum(params.bias_of(v), -1.0).sum() for v in range(len(nodes))]
    bad = np.flatnonzero(~np.isfinite(nodes))
    if len(bad) == 0 and np.isfinite(fitted.all_weights).all():
        return
    what = "its estimate is not finite: values are too large or too close together"
    remedy = "measure it in another unit, leave it out, or fit with a larger lam"
    names = [fitted.schema.nodes[int(k)].name for k in bad]
    raise TableError([Finding(name, what, remedy) for name in names or (None,)])


def _margins(task: Task) -> Margins | None:
    """Of the table; None where the model has no joint distribution of all its columns."""
    if task.moments is None or task.layout.covariates or task.layout.nodewise:
        return None
    return Margins.of(task.moments.mean, task.moments.second, task.units, task.observed)


def encode(X: Any, options: Options, sample_weight: ArrayLike | None = None) -> Design:
    """Check the table and turn it into numbers."""
    solver = options.solver_object  # a wrong name should not wait for a big table to be read
    del solver
    if options.moderator_names:
        X = as_frame(X)
        _check_moderators(X, options)
    design, _ = learn(
        X,
        types=options.types,
        transforms=options.transforms,
        covariates=options.all_covariates,
        missing=options.missing,
        sample_weight=sample_weight,
    )
    if not design.schema.targets:
        raise ParameterError("all columns are covariates; leave at least one to be modelled.")
    if options.moderator_names and len(design.schema.targets) < 2:
        raise ParameterError(
            f"{quoted(design.schema.targets[0])} is the only column that is modelled, "
            f"so no edge can "
            "be moderated; name the others under covariates instead."
        )
    return design


def check_options(options: Options, schema: Schema, library: str) -> None:
    """Raise what a fit of a table with this schema would say about the options, without rows."""
    frame = Frame(schema.table_names, (), 0, library)
    covariates = options.all_covariates
    _, findings = resolve_options(frame, options.types, options.transforms, covariates)
    raise_or_warn(findings)
    _check_moderators(frame, options)
    options.given_lam(schema)
    seeds(options.random_state, 1)
    recipe_of(options, schema)


def _check_moderators(frame: Frame, options: Options) -> None:
    for name in options.moderator_names:
        by_position = isinstance(name, numbers.Integral) and not frame.named
        if str(name) in frame.positions or (by_position and 0 <= name < len(frame.names)):
            continue
        hint = near_matches(name, frame.names)
        raise ParameterError(f"moderators names {quoted(name)}, which is not a column; {hint}")


def _moderator(schema: Schema, name: Any) -> int:
    """The node of a moderator: by name, or (for an array) by position."""
    if isinstance(name, numbers.Integral) and str(name) not in schema.names:
        name = schema.table_names[int(name)]
    return schema.node_index(name)


def recipe_of(options: Options, schema: Schema) -> Recipe:
    """How the rows of a table with this schema become a path."""
    wishes = options.penalty_factors, options.require, options.forbid
    nodes = tuple(_moderator(schema, name) for name in options.moderator_names)
    factors = factor_matrix(
        schema, *wishes, penalize_covariates=options.penalize_covariates, moderated=bool(nodes)
    )
    moderated = Moderated(nodes, deviation_factors(schema, nodes, *wishes)) if nodes else None
    return Recipe(
        options.solver_object,
        options.tol,
        options.max_iter,
        options.penalty_weights,
        factors,
        options.loss,
        seeds(options.random_state, 1)[0] if options.loss == "likelihood-mc" else None,
        options.rule,
        moderated,
        options.refits,
    )


@contextmanager
def _naming(schema: Schema) -> Iterator[None]:
    """Errors about the joint distribution with the names of the columns."""
    try:
        yield
    except DistributionError as error:
        raise error.named([node.name for node in schema.nodes]) from None


def _grid(task: Task, options: Options) -> Floats:
    lam = options.given_lam(task.schema)
    if isinstance(lam, tuple):
        raise ParameterError("a path has the same lam for all columns; leave lam out.")
    if lam is not None:
        return np.array([lam])
    if options.lams is not None:
        return grid.given(options.lams)
    return grid.geometric(task.lam_max, options.n_lams, options.lam_min_ratio)


def _fitted(
    setup: Setup, options: Options, start: Params | None
) -> tuple[Path | None, Choice, Optimum]:
    """The path, what is chosen from it, and the estimate; one lam per column has no path."""
    lam = options.given_lam(setup.design.schema)
    if isinstance(lam, tuple):
        return None, Choice(0, "", {}), at_given_lams(setup.task, lam, options, start)
    path, choice = _path_and_choice(setup, options, start)
    return path, choice, chosen_estimate(setup.task, path, choice, options)


def _path_and_choice(
    setup: Setup, options: Options, start: Params | None = None
) -> tuple[Path, Choice]:
    """The path, and what is chosen from it; a given lam is a path of one point."""
    lams = _grid(setup.task, options)
    criterion = options.criterion
    if criterion is None:
        return setup.recipe.path(setup.task, lams, start=start), Choice(0, "", {})
    if options.lams is not None:
        return choose_from(setup, criterion, lams)
    return choose_growing(setup, criterion, lams, start)


def _by_nodes(task: Task, per_group: Floats | None) -> Floats | None:
    """A value per edge, the same for all its groups, as a symmetric matrix over nodes.

    Those of deviations follow.
    """
    if per_group is None:
        return None
    layout = task.layout
    matrix = np.zeros((1 + len(layout.n_features), layout.n_nodes, layout.n_nodes))
    u, v = layout.pairs.T
    at = 1 + layout.moderator
    matrix[at, u, v] = matrix[at, v, u] = per_group
    return matrix if layout.n_features else matrix[0]


def warn_unless_converged(path: Path, tol: float) -> None:
    """Issue one ConvergenceWarning for all values of lam that missed `tol`."""
    bad = [point for point in path.points if not point.converged]
    if not bad:
        return
    worst = max(bad, key=lambda point: point.kkt)
    where = f"at lam = {worst.lam:.4g}"
    if len(path) > 1:
        where = f"at {len(bad)} of {len(path)} values of lam, worst {where}"
    which = "".join(f"{note}; " for note in worst.notes if worst.status is Status.UNBOUNDED)
    _warn(f"{where}: {worst.status.value} ({which}KKT {worst.kkt:.1e}, tol {tol:g}).")


def warn_about(report: FitReport, what: str = "") -> None:
    """Issue a ConvergenceWarning for one estimate."""
    which = f"without bound: {few(report.unbounded)}; " if report.unbounded else ""
    _warn(f"{what}{report.message} ({which}KKT {report.kkt:.1e}, tol {report.tol:g}).")


def _warn(message: str) -> None:
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())
