"""A table in groups -> GroupComparison: one graph per group, and tests by shuffled labels."""

from __future__ import annotations

import numbers
import os
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from mixedgm.checkpoint import Outcome, Record, fingerprint
from mixedgm.errors import NotYetError, ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.fitting import encode, fit_design
from mixedgm.notices import warn_about, warn_unless_converged
from mixedgm.options import Options
from mixedgm.parallel import MOST_TASKS, RandomState, check_n_jobs, run, seeds
from mixedgm.parameters import is_integer
from mixedgm.studies.bootstrap import plan_of
from mixedgm.studies.bootstrap_result import Failure
from mixedgm.studies.compare_result import GroupComparison
from mixedgm.studies.compare_shuffle import Shuffle, gathered, shuffled, statistics
from mixedgm.studies.resampling import ResamplingPlan, Seed, estimate_record
from mixedgm.studies.row_groups import Groups, read_groups, without_labels
from mixedgm.table import as_frame
from mixedgm.table.encode import Design

__all__ = ["PENALTIES", "Request", "compare_groups"]

PENALTIES = ("common", "own")


@dataclass(frozen=True)
class Request:
    """What `mixedgm.compare`, whose documentation explains it, is asked for besides the model."""

    groups: Any
    blocks: Any = None
    penalty: str = "common"
    n_perm: int = 500
    alpha: float = 0.05
    n_jobs: int | None = None
    random_state: RandomState = None
    checkpoint: str | os.PathLike[str] | None = None
    verbose: int = 0

    def __post_init__(self) -> None:
        if self.penalty not in PENALTIES:
            raise ParameterError.must_be("penalty", " or ".join(map(repr, PENALTIES)), self.penalty)
        if not is_integer(self.n_perm, 0, MOST_TASKS):
            wanted = f"an integer from 0 to {MOST_TASKS:,}"
            raise ParameterError.must_be("n_perm", wanted, self.n_perm)
        alpha = cast(object, self.alpha)
        if not (isinstance(alpha, numbers.Real) and 0.0 < self.alpha < 1.0):
            raise ParameterError.must_be("alpha", "a number in (0, 1)", alpha)
        check_n_jobs(self.n_jobs)
        if self.checkpoint is not None and self.random_state is None:
            raise ParameterError(
                "a checkpoint needs random_state, so that the labels are shuffled in the same way "
                "when the work goes on; give an integer, for example random_state=0."
            )


def compare_groups(
    X: Any, options: Options, request: Request, sample_weight: ArrayLike | None = None
) -> GroupComparison:
    """Fit every group, shuffle the labels, fit again, and compare."""
    if request.penalty == "own" and options.lam is not None:
        raise ParameterError("penalty='own' chooses lam in every group; leave lam out.")
    if options.moderator_names:
        raise NotYetError(
            "the comparison of groups does not cover deviations of moderated edges yet; name the "
            "moderators under covariates, or make the groups a moderator of one model."
        )
    first, *rest = seeds(request.random_state, int(request.n_perm) + 1)
    options = replace(options, random_state=first, n_jobs=request.n_jobs, verbose=0)
    frame = as_frame(X)
    design = encode(without_labels(frame, request.groups, request.blocks), options, sample_weight)
    groups = read_groups(frame, request.groups, request.blocks, design)
    pooled, options = _pooled(design, options, request, len(groups), frame.library)
    plan = plan_of(
        pooled,
        options,
        design,
        "fixed" if request.penalty == "common" else "again",
        "nonparametric",
        None,
    )
    fits = _fits(plan, groups, pooled, options)
    records = [estimate_record(plan, fitted) for fitted in fits]
    every = gathered(plan.declared, records)
    observed = statistics(plan, records, every.pairs)
    outcomes = _shuffles(Shuffle(plan, groups, every.pairs), rest, request)
    done = [outcome.record for outcome in outcomes if outcome.record is not None]
    return GroupComparison(
        groups=groups.labels,
        fitted=fits,
        models={},
        penalty=request.penalty,
        n_perm=int(request.n_perm),
        alpha=float(request.alpha),
        n_pairs=len(np.unique(np.sort(plan.whole.layout.pairs, axis=1), axis=0)),
        estimates=every,
        observed=observed,
        permutations=_stacked(done, observed),
        failures=tuple(Failure(o.index, o.error) for o in outcomes if o.error is not None),
    )


def _pooled(
    design: Design, options: Options, request: Request, n_groups: int, library: str
) -> tuple[FittedModel, Options]:
    """The whole table's fit at the lam of the groups, and options with that lam.

    Where it is chosen, rows are weighted such that the whole table counts as much as a mean group:
    EBIC and its like then choose the graph that so many rows support.
    """
    runtime = replace(options.runtime, n_jobs=request.n_jobs, keep_interrupted=False)
    if request.penalty == "common" and options.lam is None:
        weights = np.ones(design.n_rows) if design.weights is None else design.weights
        as_group = replace(design, weights=weights / n_groups)
        chosen = fit_design(as_group, options, library=library, runtime=runtime)
        _warn(chosen, options)
        lam, refits = chosen.report.lam, options.refits
        options = replace(options, lam=lam, lams=None, select="ebic", refit=refits)
    pooled = fit_design(design, options, library=library, runtime=runtime)
    _warn(pooled, options)
    return pooled, options


def _fits(
    plan: ResamplingPlan, groups: Groups, pooled: FittedModel, options: Options
) -> tuple[FittedModel, ...]:
    fits = []
    for group in range(len(groups)):
        fitted = fit_design(
            plan.design.take(groups.rows(group)),
            options,
            library=pooled.library,
            reference=plan.reference,
            start=None if options.lam is None else plan.penalised,
            runtime=replace(options.runtime, keep_interrupted=False),
        )
        _warn(fitted, options)
        fits.append(fitted)
    return tuple(fits)


def _warn(fitted: FittedModel, options: Options) -> None:
    if fitted.path is not None:
        warn_unless_converged(fitted.path, options.tol)
    elif not fitted.report.converged:
        warn_about(fitted.report)


def _shuffles(shuffle: Shuffle, rest: list[Seed], request: Request) -> list[Outcome]:
    if not rest:
        return []
    groups = shuffle.groups
    return run(
        partial(shuffled, shuffle),
        rest,
        n_jobs=request.n_jobs,
        what="permutations",
        show=bool(request.verbose),
        checkpoint=request.checkpoint,
        identity=fingerprint(
            shuffle.plan.key,
            groups.codes,
            groups.blocks,
            groups.names,
            shuffle.pairs,
            rest[0].entropy,
            rest[0].spawn_key,
        ),
    )


def _stacked(records: list[Record], like: Record) -> dict[str, Any]:
    """One row per permutation; of the shape of the observed record where there is none."""
    return {
        name: np.array([record[name] for record in records], dtype=value.dtype).reshape(
            len(records), *value.shape
        )
        for name, value in like.items()
    }
