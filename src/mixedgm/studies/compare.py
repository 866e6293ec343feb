"""A table in groups -> GroupComparison: one graph per group, and tests by shuffled labels."""

from __future__ import annotations

import numbers
import os
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.checkpoint import Outcome, Record, fingerprint
from mixedgm.errors import NotYetError, ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.fitting import encode, fit_design
from mixedgm.model.layout import Ints
from mixedgm.model.params import Params
from mixedgm.notices import warn_about, warn_unless_converged
from mixedgm.options import Options
from mixedgm.parallel import RandomState, check_checkpoint, check_n_jobs, check_n_tasks, run, seeds
from mixedgm.parameters import ensure
from mixedgm.path.task import Reference
from mixedgm.studies.bootstrap import plan_of
from mixedgm.studies.bootstrap_replicates import Failure, Replicates
from mixedgm.studies.compare_result import GroupComparison, differences
from mixedgm.studies.resampling import ResamplingPlan, Seed, drawn_record, estimate_record
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
        wanted = " or ".join(map(repr, PENALTIES))
        ensure(self.penalty in PENALTIES, "penalty", wanted, self.penalty)
        check_n_tasks("n_perm", self.n_perm, 0)
        between = isinstance(self.alpha, numbers.Real) and 0.0 < self.alpha < 1.0
        ensure(between, "alpha", "a number in (0, 1)", self.alpha)
        check_n_jobs(self.n_jobs)
        same = "the labels are shuffled in the same way"
        check_checkpoint(self.checkpoint, self.random_state, same)


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
    first, *drawn = seeds(request.random_state, int(request.n_perm) + 1)
    options = replace(options, random_state=first, n_jobs=request.n_jobs, verbose=0)
    frame = as_frame(X)
    design = encode(without_labels(frame, request.groups, request.blocks), options, sample_weight)
    groups = read_groups(frame, request.groups, request.blocks, design)
    pooled, options = _pooled(design, options, request, len(groups), frame.library)
    select = "fixed" if request.penalty == "common" else "again"
    plan = plan_of(pooled, options, design, select)
    start = None if options.lam is None else plan.penalised
    parts = (design.take(groups.rows(group)) for group in range(len(groups)))
    fits = tuple(_fitted(part, options, frame.library, plan.reference, start) for part in parts)
    records = [estimate_record(plan, fitted) for fitted in fits]
    every = Replicates.gather(plan.declared, records)
    observed = _statistics(plan, every, every.pairs)
    outcomes = _shuffles(Shuffle(plan, groups, every.pairs), drawn, request)
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
    if request.penalty == "common" and options.lam is None:
        weights = np.ones(design.n_rows) if design.weights is None else design.weights
        as_group = replace(design, weights=weights / n_groups)
        lam, refits = _fitted(as_group, options, library).report.lam, options.refits
        options = replace(options, lam=lam, lams=None, select="ebic", refit=refits)
    return _fitted(design, options, library), options


def _fitted(
    design: Design,
    options: Options,
    library: str,
    reference: Reference | None = None,
    start: Params | None = None,
) -> FittedModel:
    """Fit rows, and warn where the optimum was not reached."""
    runtime = replace(options.runtime, keep_interrupted=False)
    fitted = fit_design(
        design, options, library=library, reference=reference, start=start, runtime=runtime
    )
    if fitted.path is not None:
        warn_unless_converged(fitted.path, options.tol)
    elif not fitted.report.converged:
        warn_about(fitted.report)
    return fitted


def _shuffles(shuffle: Shuffle, drawn: list[Seed], request: Request) -> list[Outcome]:
    if not drawn:
        return []
    groups = shuffle.groups
    labels, seed = (groups.codes, groups.blocks, groups.names), drawn[0]
    return run(
        partial(shuffled, shuffle),
        drawn,
        n_jobs=request.n_jobs,
        what="permutations",
        show=bool(request.verbose),
        checkpoint=request.checkpoint,
        identity=fingerprint(
            shuffle.plan.key, *labels, shuffle.pairs, seed.entropy, seed.spawn_key
        ),
    )


# -- one shuffle -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Shuffle:
    """The same for all shuffles: the whole table and its fit, from which all groups start."""

    plan: ResamplingPlan
    groups: Groups
    pairs: Ints  # that have an edge in some group, by number in ``plan.declared``

    @cached_property
    def members(self) -> list[Ints]:
        """Rows of every block."""
        blocks = self.groups.blocks
        if blocks is None:
            return [np.arange(len(self.groups.codes))]
        return [np.flatnonzero(blocks == block) for block in range(int(blocks.max()) + 1)]

    def draw(self, seed: Seed) -> list[Design]:
        """The rows of every group after one shuffle.

        Weights that are whole numbers count identical rows, which change places one by one.
        """
        rng = np.random.default_rng(seed)
        if self.plan.frequencies is not None:
            return self._dealt(rng, self.plan.frequencies)
        codes = self.groups.codes.copy()
        for rows in self.members:
            codes[rows] = codes[rng.permutation(rows)]
        shuffled = replace(self.groups, codes=codes)
        return [self.plan.design.take(shuffled.rows(g)) for g in range(len(self.groups))]

    def _dealt(self, rng: np.random.Generator, counts: NDArray[np.int64]) -> list[Design]:
        weights = np.zeros((len(self.groups), len(counts)), dtype=np.int64)
        for rows in self.members:
            left = counts[rows].copy()
            for group, part in enumerate(weights[:-1]):
                wanted = int(counts[rows][self.groups.codes[rows] == group].sum())
                part[rows] = rng.multivariate_hypergeometric(left, wanted, method="marginals")
                left -= part[rows]
            weights[-1, rows] = left
        return [self.plan.folded(part) for part in weights]


def shuffled(shuffle: Shuffle, seed: Seed) -> Record:
    """Shuffle the labels, fit every group, and keep the statistics."""
    plan = shuffle.plan
    records = [drawn_record(plan, design, seed) for design in shuffle.draw(seed)]
    return _statistics(plan, Replicates.gather(plan.declared, records), shuffle.pairs)


def _statistics(plan: ResamplingPlan, every: Replicates, pairs: Ints) -> Record:
    """What is kept of one set of groups, which have a row each.

    `edges` are the largest differences between two groups for these pairs; `tests` the statistics
    of the whole graphs, over all pairs; `constant` and `lacking` say which nodes are constant, or
    lack a level of the whole table, in how many groups; `converged` whether all groups are.
    """
    apart = differences(every).max(axis=0, initial=0.0)
    of_pair = np.zeros(plan.declared.n_groups)
    of_pair[every.pairs] = apart
    spread = every.standardised.var(axis=0).sum()
    strength = every.weights.sum(axis=1)
    present = every.weights > 0.0
    disagree = present.any(axis=0) & ~present.all(axis=0)
    tests = (apart.max(initial=0.0), np.ptp(strength), spread, disagree.sum())
    constant = every.constant(plan.whole.node_scales)
    lacking = every.lacking(plan.reference.observed)
    return {
        "edges": of_pair[pairs],
        "tests": np.array(tests, dtype=np.float64),
        "constant": constant.sum(axis=0, dtype=np.int64),
        "lacking": lacking.sum(axis=0, dtype=np.int64),
        "converged": np.array([every.converged.all()]),
    }


def _stacked(records: list[Record], like: Record) -> dict[str, Any]:
    """One row per permutation; of the shape of the observed record where there is none."""
    return {
        name: np.array([record[name] for record in records], dtype=value.dtype).reshape(
            len(records), *value.shape
        )
        for name, value in like.items()
    }
