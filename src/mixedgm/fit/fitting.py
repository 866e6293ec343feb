"""A table and Options -> FittedModel, or the whole Path: the one-way street through the rooms."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixedgm.base.errors import (
    DistributionError,
    Finding,
    LongFitWarning,
    NotYetError,
    OutOfMemoryError,
    ParameterError,
    SelectionWarning,
    TableError,
    level_of_caller,
)
from mixedgm.base.parallel import Runtime, seeds
from mixedgm.base.printable import few, quoted
from mixedgm.fit.estimates import (
    Optimum,
    at_given_lams,
    certified,
    chosen_estimate,
    chosen_groups,
    estimate_at,
    of_rounds,
    path_with_bounds_checked,
    refitted,
    with_bounds_checked,
)
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.options import Options
from mixedgm.fit.report import Completion, FitReport
from mixedgm.inference.strength import RestRows
from mixedgm.joint.margins import Margins
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params
from mixedgm.path.path import Path, geometric_lams, given_lams, solve_path
from mixedgm.path.recipe import Lam, Recipe
from mixedgm.path.refits import too_dense
from mixedgm.path.rounds import FEWEST, AtLam, Incomplete, Settled, Unpenalised
from mixedgm.path.task import Reference, Task, prepare
from mixedgm.rows.arrays import arrays_on
from mixedgm.rows.contract import Moments
from mixedgm.select.crossval import CV
from mixedgm.select.evidence import Choice, Evidence, Traits
from mixedgm.select.selection import GivenLam, choose
from mixedgm.select.stability import StabilitySelection, StARS
from mixedgm.solve.loop import Status
from mixedgm.table.checks.effort import REMEDY, effort
from mixedgm.table.encode import Design, learn
from mixedgm.table.gaps import Gaps, learn_gaps
from mixedgm.table.parted.design import PartedDesign, Reader, learn_parts, parts_of
from mixedgm.table.read import as_frame
from mixedgm.table.schema import Schema


def fit_path(
    X: object,
    lams: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | str | None = None,
    **options: Any,
) -> Path:
    """Solve a whole path of penalties.

    Parameters
    ----------
    X : data frame, 2-D array or path of a CSV or Parquet file
        Or a table in parts, as for `MixedGraphicalModel.fit`.
    lams : sequence of float, optional
        By default `n_lams` values from lam_max down to ``lam_min_ratio * lam_max``.
    sample_weight : array (n,) or str, optional
        Frequencies of the rows, or the name of the column that has them.
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
    _require_device(chosen)
    reader = parts_of(X)
    design = (
        encode(X, chosen, sample_weight)
        if reader is None
        else encode_parts(reader, replace(chosen, select="ebic"), sample_weight)
    )
    if isinstance(design, Gaps):
        raise NotYetError(
            "a path alone is not available with missing='model', because every lam has completions "
            "of its own; fit MixedGraphicalModel, whose path_ is at completions of a dense model."
        )
    announce(design, chosen, n_lams=chosen.n_lams)
    _compile_ahead(design, chosen)
    recipe, runtime = replace(chosen.recipe(design.schema), refits=False), chosen.runtime
    with _naming(design.schema), enough_memory(design):
        task = prepare(design, recipe, n_threads=runtime.n_threads)
        path = solve_path(task, _grid(task, chosen), recipe, runtime=runtime)
    path = path_with_bounds_checked(path.grown or task, path, chosen.tol)
    warn_unless_converged(path, chosen.tol)
    return path


def fit_table(
    X: object, library: str, options: Options, sample_weight: ArrayLike | str | None = None
) -> FittedModel:
    """Encode the table, fit it, and warn about what did not converge."""
    _require_device(options)
    design = (
        encode_parts(X, options, sample_weight)
        if isinstance(X, Reader)
        else encode(X, options, sample_weight)
    )
    announce(design, options)
    _compile_ahead(design, options)
    fit: Callable[..., FittedModel] = fit_gaps if isinstance(design, Gaps) else fit_design
    with enough_memory(design):
        fitted = fit(design, options, library=library, runtime=options.runtime, certify=True)
    warn_of_trouble(fitted, options.tol)
    return fitted


def _require_device(options: Options) -> None:
    """Raise ParameterError where the device is not there, before any work."""
    if options.device != "cpu":
        arrays_on(options.device)


def _compile_ahead(design: Design | PartedDesign | Gaps, options: Options) -> None:
    """Half of what the first fit ever compiles is worth a second process."""
    if design.schema.n_discrete and options.loss in ("pseudolikelihood", "nodewise"):
        from mixedgm.fit.precompile import compile_ahead

        compile_ahead()


def fit_design(
    design: Design | PartedDesign,
    options: Options,
    *,
    library: str = "numpy",
    reference: Reference | None = None,
    start: Params | None = None,
    runtime: Runtime | None = None,
    certify: bool = False,
) -> FittedModel:
    """Path, choice of lam, refit if asked, and what was found on the way.

    The rows are a whole table, or a resample of the one that `reference` describes.  The first lam
    starts from `start`, in the data's own units.  By default there is one thread and one worker,
    and Ctrl-C is passed on.  With `certify` the KKT number is computed once more, apart from the
    solvers.  Nothing is warned about: `report.solved` and `path.converged` tell.
    """
    runtime = runtime or Runtime(show=options.verbose > 0)
    recipe = options.recipe(design.schema)
    seed = seeds(options.random_state, 1)[0]
    lam = options.given_lam(design.schema)
    path, choice = None, Choice(0, "", {})
    with _naming(design.schema):
        task = prepare(design, recipe, reference, runtime.n_threads)
        if isinstance(lam, tuple):  # one lam per column has no path
            shrunken = at_given_lams(task, lam, options, start)
        else:
            path, choice = choose(
                Evidence(design, recipe, task, Path.of(task), seed, reference, runtime),
                options.criterion or GivenLam(),
                _grid(task, options),
                grows=options.lam is None and options.lams is None,
                start=start,
            )
            task = path.grown or task
            shrunken = chosen_estimate(task, path, choice, options)
        optimum = refitted(task, shrunken, options, choice) if options.refits else shrunken
    parts = _Estimated(design, task, shrunken, optimum, path, choice)
    return _fitted(parts, library, certify)


@dataclass(frozen=True, eq=False)
class _Estimated:
    """Estimates of a fit, with and without shrinkage, and where they come from."""

    design: Design | PartedDesign
    task: Task
    shrunken: Optimum
    optimum: Optimum
    """The refit, if one was asked for; else the shrunken estimate."""
    path: Path | None
    choice: Choice
    n_rounds: int = 0
    """Number of rounds that completed the missing cells; 0 without missing cells."""
    kkt_error: float = 0.0


def _fitted(found: _Estimated, library: str, certify: bool) -> FittedModel:
    """The model, with the certificate that was computed apart if asked for."""
    task, choice, shrunken, optimum = found.task, found.choice, found.shrunken, found.optimum
    fitted = FittedModel(
        schema=found.design.schema,
        params=task.params(shrunken.theta),
        node_scales=task.node_scales,
        report=shrunken.report,
        library=library,
        path=found.path,
        scores=choice.scores,
        selection_frequency=_by_nodes(task, choice.frequencies),
        edge_probability=_by_nodes(task, choice.tested.probabilities if choice.tested else None),
        margins=table_margins(task),
        rows=RestRows.of(found.design),
    )
    if optimum.report.refitted:
        norms, params = fitted.all_norms, task.params(optimum.theta)
        fitted = replace(fitted, params=params, shrunken_norms=norms)
    _require_finite(fitted)
    report = certified(found.design, task, optimum) if certify else optimum.report
    if not report.refitted:
        report = with_bounds_checked(task, optimum.theta, report)
    return replace(fitted, report=report)


def fit_gaps(
    gaps: Gaps,
    options: Options,
    *,
    library: str = "numpy",
    reference: Reference | None = None,
    start: Params | None = None,
    runtime: Runtime | None = None,
    certify: bool = False,
) -> FittedModel:
    """Fit a model to rows with missing cells.

    Criteria compare graphs at completions by a model that is denser than any of them.  What they
    choose is then estimated by rounds, at completions of its own.
    """
    runtime = runtime or Runtime(show=options.verbose > 0)
    recipe = options.recipe(gaps.schema)
    with _naming(gaps.schema):
        rough = Incomplete.of(gaps, recipe, reference, runtime.n_threads, n_draws=FEWEST)
        wanted = _chosen_with_gaps(rough, options, recipe, start, runtime)
        incomplete = Incomplete.of(gaps, recipe, reference, runtime.n_threads)
        found = _by_rounds(incomplete, wanted, options, recipe, runtime)
    fitted = _fitted(found, library, certify)
    completion = Completion(
        n_cells=int(gaps.missing.sum()),
        n_rows=int(gaps.missing.any(axis=1).sum()),
        n_completions=found.design.n_rows,
        n_rounds=found.n_rounds,
        drawn=incomplete.completer.has_draws,
    )
    report = replace(
        fitted.report,
        certificate=fitted.report.certificate.of_draws(found.kkt_error, options.tol),
        n_rows=gaps.n_rows,
        total_weight=gaps.total_weight,
        completion=completion,
    )
    fitted = replace(fitted, report=report)
    if not fitted.is_free:
        return fitted
    together = fitted.strengths_from(fitted.rows, gaps.total_weight * gaps.known_together)
    return replace(fitted, known_strengths=together)


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Choice from rows with missing cells, to be estimated at completions by its own model."""

    lam: Lam
    edges: Ints | None
    """Triples of the fit's own loss that are estimated alone; None for all."""
    start: Params
    choice: Choice
    path: Path | None
    dense: str
    """Why the graph cannot be refitted; empty where it can."""


def _chosen_with_gaps(
    incomplete: Incomplete,
    options: Options,
    recipe: Recipe,
    start: Params | None,
    runtime: Runtime,
) -> _Wanted:
    """The penalty, and the graph where a criterion chooses one, at rich completions."""
    gaps, reference = incomplete.gaps, incomplete.reference
    rich = incomplete.weak(start)
    incomplete = replace(incomplete, rich=rich.params)
    lam, choice = options.given_lam(gaps.schema), Choice(0, "", {})
    if lam is not None:
        return _Wanted(lam, None, rich.params, choice, None, "")
    task, seed = _to_choose_from(incomplete, recipe, rich), seeds(options.random_state, 1)[0]
    path, choice = choose(
        Evidence(rich.design, recipe, task, Path.of(task), seed, reference, runtime),
        options.criterion or GivenLam(),
        _grid(task, options),
        grows=options.lams is None,
    )
    shrunken = chosen_estimate(task, path, choice, options)
    groups = chosen_groups(task, shrunken, choice) if options.refits else shrunken.groups
    edges = None if groups is None else task.layout.triples[groups]
    dense = too_dense(task, groups) if options.refits and groups is not None else ""
    begin = choice.params or rich.params
    return _Wanted(shrunken.report.lam, edges, begin, choice, path, dense)


def _to_choose_from(incomplete: Incomplete, recipe: Recipe, rich: Settled) -> Task:
    """The task of the fit's own loss at rich completions, with what is missing of every edge.

    A row says next to nothing about an edge of which it lacks an end.
    """
    task = rich.task
    if recipe.loss == "nodewise":
        task = prepare(rich.design, recipe, incomplete.reference, incomplete.n_threads)
    return replace(task, incomplete=incomplete)


def _by_rounds(
    joint: Incomplete, wanted: _Wanted, options: Options, recipe: Recipe, runtime: Runtime
) -> _Estimated:
    """Alternate completing the missing cells and estimating what was chosen, until both agree."""
    lam, edges, start = wanted.lam, wanted.edges, wanted.start
    choice, nodewise = wanted.choice, recipe.loss == "nodewise"
    one = float(np.nanmean(lam)) if isinstance(lam, tuple) else lam
    goal: AtLam | Unpenalised = AtLam(one, joint.recipe, None if options.refits else edges)
    dense, graph = wanted.dense, edges
    if options.refits and graph is None:
        ends = joint.settle(goal, start, tol=10.0 * options.tol, show=runtime.show)
        groups, start = ends.task.layout.active(ends.theta), ends.params
        graph, dense = ends.task.layout.triples[groups], too_dense(ends.task, groups)
        edges = None if nodewise else graph
        del ends
    if options.refits and not dense:
        variances = None if nodewise or not choice.tested else choice.tested.variances
        goal = Unpenalised(graph, options.max_iter, variances)
    keep = runtime.keep_interrupted
    ends = joint.settle(goal, start, tol=options.tol, show=runtime.show, keep_interrupted=keep)
    error = joint.error(goal, ends)
    if nodewise:
        task = prepare(ends.design, recipe, joint.reference, joint.n_threads)
        only = None if edges is None else task.layout.groups_of(edges)
        shrunken = estimate_at(task, lam, only, options, choice, None)
        optimum = refitted(task, shrunken, options, choice) if options.refits else shrunken
    else:
        task, optimum = ends.task, of_rounds(ends, goal, lam, options, choice)
        shrunken = optimum
        if optimum.report.refitted:
            shrunken = estimate_at(task, lam, choice.groups, options, choice, ends.theta)
        elif options.refits:
            optimum = refitted(task, shrunken, options, choice)  # says why it is not
    # What was chosen is about groups: they are the same in all completions of these rows.
    assert wanted.path is None or task.layout.same(wanted.path.layout)
    return _Estimated(
        ends.design, task, shrunken, optimum, wanted.path, choice, ends.n_rounds, error
    )


def _require_finite(fitted: FittedModel) -> None:
    """Raise TableError where an estimate is not finite, whatever the reason."""
    params = fitted.params
    with np.errstate(invalid="ignore"):  # sums find what is not finite without a copy of all
        edges = params.coef.sum(axis=0) + params.coef.sum(axis=1)
        nodes = np.add.reduceat(edges + fitted.column_scales, params.nodes.column_start[:-1])
        nodes[params.nodes.gaussian] += params.diagonal
        nodes += [np.maximum(params.bias_of(v), -1.0).sum() for v in range(len(nodes))]
    bad = np.flatnonzero(~np.isfinite(nodes))
    if len(bad) == 0 and np.isfinite(fitted.all_norms).all():
        return
    what = "its estimate is not finite: values are too large or too close together"
    remedy = "measure it in another unit, leave it out, or fit with a larger lam"
    names = [fitted.schema.nodes[int(k)].name for k in bad]
    raise TableError([Finding(name, what, remedy) for name in names or (None,)])


def table_margins(task: Task) -> Margins | None:
    """Margins of the table; None where the model has no joint distribution of all its columns."""
    if task.moments is None or task.layout.covariates or task.layout.nodewise:
        return None
    second = task.moments.second if isinstance(task.moments, Moments) else None
    moments = task.moments.mean, second, task.moments.shares
    return Margins.of(moments, task.units, task.observed, task.schema.spans)


def encode(
    X: object, options: Options, sample_weight: ArrayLike | str | None = None
) -> Design | Gaps:
    """Check the table and turn it into numbers; a table with gaps that are modelled keeps them."""
    if options.moderator_names:
        X = as_frame(X)
        options.check_moderators(X)
    how = options.reading(sample_weight)
    design: Design | Gaps
    if options.missing == "model":
        gaps, _ = learn_gaps(X, **how)
        design = gaps if gaps.missing.any() else gaps.complete
    else:
        design, _ = learn(X, **how)
    _check_roles(design.schema, options)
    return design


def encode_parts(
    reader: Reader, options: Options, sample_weight: ArrayLike | str | None = None
) -> PartedDesign:
    """Check a table in parts and turn every part into numbers."""
    _refuse_parts(options)
    design, _ = learn_parts(reader, **options.reading(sample_weight))
    _check_roles(design.schema, options)
    return design


def _check_roles(schema: Schema, options: Options) -> None:
    """Raise ParameterError where the columns that are left do not make the model asked for."""
    _refuse_spiked(schema, options.loss)
    if not schema.targets:
        raise ParameterError("all columns are covariates; leave at least one to be modelled.")
    if options.moderator_names and len(schema.targets) < 2:
        raise ParameterError(
            f"{quoted(schema.targets[0])} is the only column that is modelled, so no edge "
            "can be moderated; name the others under covariates instead."
        )


_LOAD = "load the table first, if it fits in memory"


def _refuse_parts(options: Options) -> None:
    """Raise NotYetError for what needs all rows of a table at once."""
    what, instead = "", ""
    if options.moderator_names:
        what = "moderators are"
    elif options.loss == "likelihood" and options.all_covariates:
        what, instead = "loss='likelihood' with covariates is", "use loss='pseudolikelihood', or "
    elif isinstance(options.criterion, CV | StARS | StabilitySelection):
        what = f"{type(options.criterion).__name__}, which fits many subsets of the rows, is"
        instead = "use select='local-fdr', 'ebic' or 'holdout', or "
    elif options.device != "cpu":
        what, instead = f"device={options.device!r} is", "use device='cpu', or "
    if what:
        raise NotYetError(f"{what} not available for a table in parts; {instead}{_LOAD}.")


def _refuse_spiked(schema: Schema, loss: str) -> None:
    """Raise ParameterError for hurdle columns with a loss that needs exact expectations."""
    spiked = [c.name for c in schema.columns if c.node_kind.has_spike]
    if spiked and loss.startswith("likelihood"):
        raise ParameterError(
            f"loss={loss!r} needs the joint distribution, which has no exact form with hurdle "
            f"columns ({few(spiked, 20)}); use loss='pseudolikelihood' or 'nodewise'."
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
        return given_lams(options.lams)
    return geometric_lams(task.lam_max, options.n_lams, options.lam_min_ratio)


def _by_nodes(task: Task, per_group: Floats | None) -> Floats | None:
    """A value per edge, the same for all its groups, as a symmetric matrix over nodes.

    Matrices of deviations follow.
    """
    if per_group is None:
        return None
    layout = task.layout
    matrix = np.zeros((1 + len(layout.n_features), layout.n_nodes, layout.n_nodes))
    u, v = layout.pairs.T
    at = 1 + layout.moderator
    matrix[at, u, v] = matrix[at, v, u] = per_group
    return matrix if layout.n_features else matrix[0]


# -- warnings of a fit -----------------------------------------------------------------------------

# A single lam is approached from far away: the work of about so many lams of a path.
_LAMS_FOR_ONE = 6.0


def announce(
    design: Design | PartedDesign | Gaps, options: Options, n_lams: float | None = None
) -> None:
    """Say before a long fit how long it takes, and what makes it long."""
    if options.loss not in ("pseudolikelihood", "nodewise"):
        return  # the number of states is limited there, and the time with it
    if options.device != "cpu":
        return  # times are known for processors only
    if options.lams is not None:
        n_lams = len(given_lams(options.lams))
    expected = effort(
        design.schema.columns,
        design.n_rows,
        n_lams=_LAMS_FOR_ONE if options.lam is not None else n_lams,
        times=Traits.of(options.criterion).effort,
        n_threads=options.n_threads,
    )
    finding = expected.finding
    if finding is not None:
        progress = "" if options.verbose else "; verbose=1 shows progress"
        warnings.warn(f"{finding}{progress}.", LongFitWarning, stacklevel=level_of_caller())


@contextmanager
def enough_memory(design: Design | PartedDesign | Gaps) -> Iterator[None]:
    """Say what needs the memory when there is not enough."""
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        expected = effort(design.schema.columns, design.n_rows)
        raise OutOfMemoryError(
            f"there is not enough memory for this fit ({expected.because}; about "
            f"{expected.gigabytes:.1g} GB). To fix: {REMEDY}."
        ) from error


def warn_of_trouble(fitted: FittedModel, tol: float) -> None:
    """Warn of what did not converge, and of a choice at the end of its path."""
    report, path = fitted.report, fitted.path
    if path is not None:
        warn_unless_converged(path, tol)
    apart = report.refitted or report.unbounded  # else the path has said it
    if not report.solved and (apart or path is None or path.converged.all()):
        what = "" if path is None or report.unbounded else "estimate of the chosen edges: "
        warn_about(report, "refit: " if report.refitted else what)
    if report.open_end:
        warnings.warn(report.open_end, SelectionWarning, stacklevel=level_of_caller())


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
    _warn(f"{where}: {worst.message} ({which}KKT {worst.kkt:.1e}, tol {tol:g}).")


def warn_about(report: FitReport, what: str = "") -> None:
    """Issue a ConvergenceWarning for one estimate."""
    which = f"without bound: {few(report.unbounded)}; " if report.unbounded else ""
    _warn(f"{what}{report.message} ({which}KKT {report.kkt:.1e}, tol {report.tol:g}).")


def _warn(message: str) -> None:
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())
