"""A table and Options -> FittedModel, or the whole Path: the one-way street through the rooms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixedgm.deprecation import renamed_arguments
from mixedgm.errors import DistributionError, Finding, ParameterError, TableError
from mixedgm.estimates import (
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
from mixedgm.notices import announce, enough_memory, warn_of_trouble, warn_unless_converged
from mixedgm.options import RENAMED, Options
from mixedgm.parallel import Runtime, seeds
from mixedgm.path import grid
from mixedgm.path.evidence import Choice, Evidence
from mixedgm.path.path import Path, solve_path
from mixedgm.path.selection import GivenLam, choose
from mixedgm.path.task import Reference, Task, prepare
from mixedgm.printable import few, quoted
from mixedgm.table import as_frame, learn
from mixedgm.table.encode import Design
from mixedgm.table.schema import Schema


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
    announce(design, chosen, n_lams=chosen.n_lams)
    _compile_ahead(design, chosen)
    recipe, runtime = replace(chosen.recipe(design.schema), refits=False), chosen.runtime
    with _naming(design.schema), enough_memory(design):
        task = prepare(design, recipe, n_threads=runtime.n_threads)
        path = solve_path(task, _grid(task, chosen), recipe, runtime=runtime)
    path = path_with_bounds_checked(task, path, chosen.tol)
    warn_unless_converged(path, chosen.tol)
    return path


def fit_table(
    X: Any, library: str, options: Options, sample_weight: ArrayLike | None = None
) -> FittedModel:
    """Encode the table, fit it, and warn about what did not converge."""
    design = encode(X, options, sample_weight)
    announce(design, options)
    _compile_ahead(design, options)
    with enough_memory(design):
        fitted = fit_design(design, options, library=library, runtime=options.runtime, certify=True)
    warn_of_trouble(fitted, options.tol)
    return fitted


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
    runtime: Runtime | None = None,
    certify: bool = False,
) -> FittedModel:
    """Path, choice of lam, refit if asked, and what was found on the way.

    The rows are a whole table, or a resample of the one that `reference` describes.  The first lam
    starts from `start`, in the data's own units.  By default there is one thread and one worker,
    and Ctrl-C is passed on.  With `certify` the KKT number is computed once more, apart from the
    solvers.  Nothing is warned about: `report.converged` and `path.converged` tell.
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
            shrunken = chosen_estimate(task, path, choice, options)
        fitted = FittedModel(
            schema=design.schema,
            params=task.params(shrunken.theta),
            node_scales=task.node_scales,
            report=shrunken.report,
            library=library,
            path=path,
            scores=choice.scores,
            selection_frequency=_by_nodes(task, choice.frequencies),
            edge_probability=_by_nodes(task, choice.probabilities),
            margins=_margins(task),
        )
        optimum = refitted(task, shrunken, options, choice) if options.refits else shrunken
    if optimum.report.refitted:
        weights, params = fitted.all_weights, task.params(optimum.theta)
        fitted = replace(fitted, params=params, shrunken_weights=weights)
    _require_finite(fitted)
    report = certified(design, task, optimum) if certify else optimum.report
    if not report.refitted:
        report = with_bounds_checked(task, optimum.theta, report)
    return replace(fitted, report=report)


def _require_finite(fitted: FittedModel) -> None:
    """Raise TableError where an estimate is not finite, whatever the reason."""
    params = fitted.params
    with np.errstate(invalid="ignore"):  # sums find what is not finite without a copy of all
        edges = params.coef.sum(axis=0) + params.coef.sum(axis=1)
        nodes = np.add.reduceat(edges + fitted.column_scales, params.nodes.column_start[:-1])
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
    moments = task.moments.mean, task.moments.second, task.moments.shares
    return Margins.of(moments, task.units, task.observed, task.schema.spans)


def encode(X: Any, options: Options, sample_weight: ArrayLike | None = None) -> Design:
    """Check the table and turn it into numbers."""
    if options.moderator_names:
        X = as_frame(X)
        options.check_moderators(X)
    design, _ = learn(
        X,
        types=options.types,
        transforms=options.transforms,
        covariates=options.all_covariates,
        missing=options.missing,
        sample_weight=sample_weight,
    )
    _refuse_spiked(design.schema, options.loss)
    if not design.schema.targets:
        raise ParameterError("all columns are covariates; leave at least one to be modelled.")
    if options.moderator_names and len(design.schema.targets) < 2:
        raise ParameterError(
            f"{quoted(design.schema.targets[0])} is the only column that is modelled, so no edge "
            "can be moderated; name the others under covariates instead."
        )
    return design


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
        return grid.given(options.lams)
    return grid.geometric(task.lam_max, options.n_lams, options.lam_min_ratio)


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
