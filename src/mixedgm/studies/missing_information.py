"""A fitted model and rows with gaps -> the share of every pair's information that gaps have taken.

The rows are completed by the model itself.  What completions of a row differ in is not known about
it, and what the model would learn from that is missing (Louis 1982).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixedgm.errors import DistributionError, MixedGMError
from mixedgm.fitted import FittedModel
from mixedgm.inference.pairs import estimated_pairs
from mixedgm.model.layout import Floats, Ints
from mixedgm.options import Options
from mixedgm.path.pair_tests import MOST_PARAMETERS, rows_of, untestable
from mixedgm.path.recipe import by_conditionals
from mixedgm.path.refits import parameters
from mixedgm.path.rounds import ROUGH, Incomplete, Unpenalised
from mixedgm.printable import quoted
from mixedgm.table.gaps import Gaps

__all__ = ["PairInformation", "missing_information"]


@dataclass(frozen=True, eq=False)
class PairInformation:
    """Pairs of nodes that may have an edge, and what is missing of each."""

    pairs: Ints
    missing: Floats
    """(pairs,) shares from 0 to 1; NaN where they are not known."""
    unknown: str = ""
    """Why they are not."""


def missing_information(fitted: FittedModel, options: Options, gaps: Gaps) -> PairInformation:
    """The share of the information about every pair that is missing, given the model's edges."""
    if not gaps.missing.any():
        pairs = _pairs(fitted)
        return PairInformation(pairs, np.zeros(len(pairs)))
    try:
        return _computed(fitted, options, gaps)
    except (MixedGMError, np.linalg.LinAlgError) as error:
        pairs = _pairs(fitted)
        return PairInformation(pairs, np.full(len(pairs), np.nan), str(error).rstrip("."))


def _computed(fitted: FittedModel, options: Options, gaps: Gaps) -> PairInformation:
    if fitted.moderators:
        raise DistributionError("edges vary with moderators, and every row has its own model")
    if gaps.missing[:, list(fitted.schema.covariates)].any():
        raise DistributionError("covariates are missing, and the model has no distribution of them")
    empty = np.flatnonzero(gaps.missing.all(axis=0))
    if len(empty):
        name = quoted(fitted.schema.nodes[int(empty[0])].name)
        raise DistributionError(f"{name} has no values in this table")
    some = gaps.take(np.flatnonzero(~gaps.missing.all(axis=1)))
    recipe = by_conditionals(options.recipe(fitted.schema))
    incomplete = Incomplete.of(some, recipe, n_threads=options.runtime.n_threads)
    params = None if fitted.params.nodewise else fitted.params
    task = incomplete.at(params)[1]
    u, v = task.layout.pairs.T
    graph = np.flatnonzero(fitted.edge_norms[u, v] > 0.0)
    reason = untestable(task, graph)
    if parameters(task, np.arange(task.layout.n_groups)).max(initial=0) > MOST_PARAMETERS:
        reason = reason or f"a pair has more than {MOST_PARAMETERS} parameters"
    if reason:
        raise DistributionError(reason)
    if params is None:  # regressions have no joint distribution: that of their graph stands in
        tol = ROUGH / np.sqrt(task.total_weight)
        goal = Unpenalised(task.layout.triples[graph])
        ends = incomplete.settle(goal, None, tol=tol, most=25)
        params, task, graph = ends.params, ends.task, goal.groups(ends.task)
    layout = task.layout
    theta = layout.centred(task.theta_of(params), graph)
    estimates = estimated_pairs(task.smooth, rows_of(task), theta, graph, row=task.row)
    assert estimates.missing is not None
    return PairInformation(layout.pairs, estimates.missing)


def _pairs(fitted: FittedModel) -> Ints:
    """All pairs but those of two covariates."""
    n, covariates = len(fitted.schema.nodes), list(fitted.schema.covariates)
    pairs = np.column_stack(np.triu_indices(n, 1))
    return np.asarray(pairs[~np.isin(pairs, covariates).all(axis=1)])
