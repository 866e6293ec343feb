"""A table in groups -> GroupComparison: one graph per group, and tests of whether they differ.

Either pairs are estimated in every group and their differences are tested, or labels are shuffled
among rows, which are weighted first such that all groups have the margins of the table.

Rows in groups -> the same rows, moved and weighted such that all groups have equal margins.

The model is an exponential family: weights exp(sum of a_v x_v + b_v x_v^2, or c_level) change the
own terms of its columns and none of its edges, and neither does a number added to a continuous
column.  So groups that have the same edges, and other means, variances and shares, become samples
of one distribution, and their rows may change places.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.base.checkpoint import Outcome, Record, fingerprint
from mixedgm.base.errors import NotYetError, ParameterError
from mixedgm.base.parallel import (
    RandomState,
    check_checkpoint,
    check_n_jobs,
    check_n_tasks,
    run,
    seeds,
)
from mixedgm.base.parameters import ensure, is_real
from mixedgm.base.printable import quoted
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.fitting import encode, fit_design, fit_gaps, warn_about, warn_unless_converged
from mixedgm.fit.options import Options
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params
from mixedgm.path.task import Reference
from mixedgm.studies.groups.differences import FEWEST_BY_ITSELF, GroupTasks
from mixedgm.studies.groups.result import (
    DifferenceComparison,
    GroupComparison,
    PermutationComparison,
    differences,
)
from mixedgm.studies.resampling.bootstrap import plan_of
from mixedgm.studies.resampling.replicates import Failure, Replicates, all_pairs
from mixedgm.studies.resampling.resamples import ResamplingPlan, Seed, drawn_record, estimate_record
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps
from mixedgm.table.labels import Groups, read_groups, without_labels
from mixedgm.table.read import as_frame

TESTS = ("auto", "differences", "permutation")
PENALTIES = ("common", "own")
PERMUTATIONS = 500


@dataclass(frozen=True)
class Request:
    """What `mixedgm.compare`, whose documentation explains it, is asked for besides the model."""

    groups: Any
    paired: Any = None
    cluster: Any = None
    test: str = "auto"
    penalty: str = "common"
    n_perm: int | None = None
    alpha: float = 0.05
    limit: float | None = None
    n_jobs: int | None = None
    random_state: RandomState = None
    checkpoint: str | os.PathLike[str] | None = None
    verbose: int = 0

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("test", self.test, TESTS),
            ("penalty", self.penalty, PENALTIES),
        ):
            ensure(value in allowed, name, " or ".join(map(repr, allowed)), value)
        if self.n_perm is not None:
            check_n_tasks("n_perm", self.n_perm, 0)
        if self.test == "differences" and (self.n_perm or self.checkpoint is not None):
            raise ParameterError(
                "n_perm and checkpoint are for permutations; leave them out with "
                "test='differences'."
            )
        if self.paired is not None and self.cluster is not None:
            raise ParameterError(
                "paired and cluster cannot be given together. To fix: name the larger units, such "
                "as households of persons, under cluster."
            )
        for name, share in (("alpha", self.alpha), ("limit", self.limit)):
            if share is not None:
                ensure(is_real(share) and 0.0 < share < 1.0, name, "a number in (0, 1)", share)
        check_n_jobs(self.n_jobs)
        same = "the labels are shuffled in the same way"
        check_checkpoint(self.checkpoint, self.random_state, same)

    @property
    def count(self) -> int:
        """Permutations, if there are to be some."""
        return PERMUTATIONS if self.n_perm is None else int(self.n_perm)


def compare_groups(
    X: Any, options: Options, request: Request, sample_weight: ArrayLike | None = None
) -> GroupComparison:
    """Fit every group, and test whether their edges differ."""
    if request.penalty == "own" and options.lam is not None:
        raise ParameterError("penalty='own' chooses lam in every group; leave lam out.")
    if options.moderator_names:
        raise NotYetError(
            "the comparison of groups does not cover deviations of moderated edges yet; name the "
            "moderators under covariates, or make the groups a moderator of one model."
        )
    first, *drawn = seeds(request.random_state, request.count + 1)
    options = replace(options, random_state=first, n_jobs=request.n_jobs, verbose=0)
    frame = as_frame(X)
    named = {"groups": request.groups, "paired": request.paired, "cluster": request.cluster}
    rows = encode(without_labels(frame, **named), options, sample_weight)
    dependent = {"paired": request.paired, "cluster": request.cluster}
    groups = read_groups(frame, request.groups, rows, **dependent)
    tasks = GroupTasks.of(rows, options.recipe(rows.schema), groups, options.runtime.n_threads)
    test, reason = _chosen(request, tasks)
    if test == "differences":
        return _by_differences(rows, tasks, options, request, reason, frame.library, first)
    if isinstance(rows, Gaps):
        raise NotYetError(
            f"rows with gaps cannot be permuted yet, and the permutation was chosen because "
            f"{reason}. To fix: drop the rows with gaps (missing='drop'), or leave columns out."
        )
    if groups.dependent is not None and not groups.paired:
        raise NotYetError(
            f"clusters cannot be permuted yet, and the permutation was chosen because {reason}. To "
            "fix: test='differences', or leave columns out."
        )
    return _by_permutation(rows, groups, options, request, reason, frame.library, drawn, first)


def _chosen(request: Request, tasks: GroupTasks) -> tuple[str, str]:
    """Which test, and why."""
    if request.test != "auto":
        return request.test, "it was asked for"
    if request.n_perm is not None or request.checkpoint is not None:
        name = "checkpoint" if request.n_perm is None else "n_perm"
        return "permutation", f"{name} was given"
    against = tasks.obstacle or tasks.shortage
    if against:
        return "permutation", against
    return "differences", f"every group has at least {FEWEST_BY_ITSELF} rows"


def _by_differences(
    rows: Design | Gaps,
    tasks: GroupTasks,
    options: Options,
    request: Request,
    reason: str,
    library: str,
    seed: Seed,
) -> DifferenceComparison:
    """Test differences of pairs; the model of every group is fitted by itself."""
    tasks.require_no_obstacle()
    groups, alpha = tasks.groups, float(request.alpha)
    parts = [rows.take(groups.rows(group)) for group in range(len(groups))]
    fitted = tuple(_fitted(part, options, library) for part in parts)
    seen = [each.rows for each in fitted if each.rows is not None]
    tested = tasks.tested(seed, seen, 1.0 - alpha)
    return DifferenceComparison(
        groups=groups.labels,
        fitted=fitted,
        models={},
        reason=reason,
        dependence=_dependence(groups),
        alpha=alpha,
        tested=tested,
        given_limit=request.limit,
    )


def _dependence(groups: Groups) -> str:
    """How rows depend on each other, in words; empty where they do not."""
    if groups.dependent is None:
        return ""
    units = int(groups.dependent.max()) + 1
    if groups.paired:
        return f"groups are paired: {units:,} units, whose rows may depend on each other"
    return f"rows of the same cluster may depend on each other: {units:,} clusters"


def _by_permutation(
    rows: Design,
    groups: Groups,
    options: Options,
    request: Request,
    reason: str,
    library: str,
    drawn: list[Seed],
    first: Seed,
) -> PermutationComparison:
    """Compare penalised fits of the groups with those of shuffled groups."""
    equal = EqualGroups.of(rows, groups)
    if drawn:
        equal.require_overlap()
    alike = equal.design if equal.overlap else rows
    pooled, options = _pooled(alike, options, request, len(groups), library)
    select = "fixed" if request.penalty == "common" else "again"
    plan = plan_of(pooled, options, alike, select)
    start = None if options.lam is None else plan.penalised
    parts = [rows.take(groups.rows(group)) for group in range(len(groups))]
    fits = tuple(_fitted(part, options, library, plan.reference, start) for part in parts)
    records = [estimate_record(plan, fitted) for fitted in fits]
    compared = [drawn_record(plan, part, first) for part in equal.parts()]
    pairs = all_pairs([*records, *compared])
    outcomes = _shuffles(Shuffle(plan, equal, pairs), drawn, request)
    columns = Layout.without_edges(plan.design.schema.spans)
    every, other = (Replicates.gather(columns, r, pairs) for r in (records, compared))
    observed = _statistics(plan, other, pairs)
    done = [outcome.record for outcome in outcomes if outcome.record is not None]
    return PermutationComparison(
        groups=groups.labels,
        fitted=fits,
        models={},
        reason=reason,
        dependence=_dependence(groups),
        alpha=float(request.alpha),
        penalty=request.penalty,
        n_perm=request.count,
        n_pairs=plan.whole.n_pairs,
        estimates=every,
        compared=other,
        effective_rows=np.array(equal.effective_rows),
        observed=observed,
        permutations=_stacked(done, observed),
        failures=tuple(Failure(o.index, o.error) for o in outcomes if o.error is not None),
    )


def _pooled(
    design: Design, options: Options, request: Request, n_groups: int, library: str
) -> tuple[FittedModel, Options]:
    """The fit of all rows at the lam of the groups, and options with that lam.

    Where it is chosen, rows are weighted such that the whole table counts as much as a mean group:
    EBIC and its like then choose the graph that so many rows support.
    """
    if request.penalty == "common" and options.lam is None:
        as_group = replace(design, weights=row_weights(design) / n_groups)
        lam, refits = _fitted(as_group, options, library).report.lam, options.refits
        options = replace(options, lam=lam, lams=None, select="ebic", refit=refits)
    return _fitted(design, options, library), options


def _fitted(
    rows: Design | Gaps,
    options: Options,
    library: str,
    reference: Reference | None = None,
    start: Params | None = None,
) -> FittedModel:
    """Fit rows, and warn where the optimum was not reached."""
    runtime = replace(options.runtime, keep_interrupted=False)
    fit: Callable[..., FittedModel] = fit_gaps if isinstance(rows, Gaps) else fit_design
    fitted = fit(rows, options, library=library, reference=reference, start=start, runtime=runtime)
    if fitted.path is not None:
        warn_unless_converged(fitted.path, options.tol)
    elif not fitted.report.solved:
        warn_about(fitted.report)
    return fitted


def _shuffles(shuffle: Shuffle, drawn: list[Seed], request: Request) -> list[Outcome]:
    if not drawn:
        return []
    groups = shuffle.groups
    labels, seed = (groups.codes, groups.dependent, groups.names), drawn[0]
    return run(
        partial(shuffled, shuffle),
        drawn,
        n_jobs=request.n_jobs,
        what="permutations",
        show=bool(request.verbose),
        checkpoint=request.checkpoint,
        identity=fingerprint(
            "equal margins",
            shuffle.plan.key,
            *labels,
            shuffle.pairs,
            seed.entropy,
            seed.spawn_key,
        ),
    )


# -- one shuffle -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Shuffle:
    """The same for all shuffles: the rows, and the fit of all of them, from which groups start."""

    plan: ResamplingPlan
    equal: EqualGroups
    pairs: Ints  # that have an edge in some group, by number in ``plan.declared``

    @property
    def groups(self) -> Groups:
        """Before the shuffle."""
        return self.equal.groups

    @cached_property
    def members(self) -> list[Ints]:
        """Rows that change places with each other: of one unit where they are paired, else all."""
        units = self.groups.dependent
        if units is None:
            return [np.arange(len(self.groups.codes))]
        return [np.flatnonzero(units == unit) for unit in range(int(units.max()) + 1)]

    def draw(self, seed: Seed) -> list[Design]:
        """The rows of every group after one shuffle, with equal margins.

        Rows keep the weights that they had in their own groups; what these leave of differences
        between the new groups, which is chance, is taken out as well.
        """
        factors = row_weights(self.equal.design) / row_weights(self.equal.before)
        parts = []
        for rows, counts in self.deal(np.random.default_rng(seed)):
            weights = counts * factors[rows]
            parts.append(Part(rows, weights * counts.sum() / weights.sum()))
        again, design = self.equal.margins.factors(parts), self.equal.design
        return [
            replace(design.take(part.rows), weights=part.weights * more)
            for part, more in zip(parts, again, strict=True)
        ]

    def deal(self, rng: np.random.Generator) -> list[tuple[Ints, Floats]]:
        """Rows of every group after a shuffle, and how often they count.

        Weights that are whole numbers count identical rows, which change places one by one.
        """
        counts = self.equal.frequencies
        if counts is not None:
            dealt = self._dealt(rng, counts)
            return [(np.flatnonzero(part), part[part > 0].astype(np.float64)) for part in dealt]
        codes, weights = self.groups.codes.copy(), row_weights(self.equal.before)
        for rows in self.members:
            codes[rows] = codes[rng.permutation(rows)]
        parts = [np.flatnonzero(codes == group) for group in range(len(self.groups))]
        return [(rows, weights[rows]) for rows in parts]

    def _dealt(self, rng: np.random.Generator, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        weights = np.zeros((len(self.groups), len(counts)), dtype=np.int64)
        for rows in self.members:
            left = counts[rows].copy()
            for group, part in enumerate(weights[:-1]):
                wanted = int(counts[rows][self.groups.codes[rows] == group].sum())
                part[rows] = rng.multivariate_hypergeometric(left, wanted, method="marginals")
                left -= part[rows]
            weights[-1, rows] = left
        return weights


def shuffled(shuffle: Shuffle, seed: Seed) -> Record:
    """Shuffle the labels, fit every group, and keep the statistics."""
    plan = shuffle.plan
    records = [drawn_record(plan, design, seed) for design in shuffle.draw(seed)]
    columns = Layout.without_edges(plan.design.schema.spans)
    return _statistics(plan, Replicates.gather(columns, records), shuffle.pairs)


def _statistics(plan: ResamplingPlan, every: Replicates, pairs: Ints) -> Record:
    """What is kept of one set of groups, which have a row each.

    `edges` are the largest differences between two groups for these pairs; `tests` the statistics
    of the whole graphs, over all pairs; `constant` and `lacking` say which nodes are constant, or
    lack a level of the whole table, in how many groups; `converged` whether all groups are.
    """
    apart = differences(every).max(axis=0, initial=0.0)
    n_nodes = every.layout.n_nodes
    of_pair = np.zeros(n_nodes * (n_nodes - 1) // 2)
    of_pair[every.pairs] = apart
    spread = every.standardised.var(axis=0).sum()
    total = every.norms.sum(axis=1)
    present = every.norms > 0.0
    disagree = present.any(axis=0) & ~present.all(axis=0)
    tests = (apart.max(initial=0.0), np.ptp(total), spread, disagree.sum())
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


# -- equal margins ---------------------------------------------------------------------------------

_STEPS = 100
_TOL = 1e-12
_LENGTHS = 0.5 ** np.arange(40)
_RIDGE = 1e-6
_NOTHING = 1e-20
_FEWEST_EFFECTIVE = 10.0
_LEAST_FACTOR = 1e-6
"""By which a row's weight may fall: with none left a level would have no rows."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one group and their weights."""

    rows: Ints
    weights: Floats

    @property
    def share(self) -> Floats:
        """What every row counts, of one."""
        return np.asarray(self.weights / self.weights.sum())


@dataclass(frozen=True, eq=False)
class RowMargins:
    """Values of all rows, and what multiplies the own terms of their columns."""

    nodes: Nodes
    numbers: Floats
    """(n, n_real) values of real numbers."""
    codes: NDArray[np.integer]

    @cached_property
    def _statistics(self) -> tuple[Floats, Ints]:
        """(n, q) what own terms of other than Gaussian nodes multiply; the node of each."""
        nodes, columns, of_columns = self.nodes, [np.zeros((0, len(self.codes)))], [np.zeros(0)]
        every = nodes.own_statistics(self.numbers, self.codes)
        for (some, _), values in zip(nodes.runs, every, strict=True):
            if not nodes.gaussian_nodes[some.start]:
                columns.append(values.reshape(-1, len(self.codes)))
                of_columns.append(np.repeat(np.arange(some.start, some.stop), values.shape[1]))
        return np.concatenate(columns).T, np.concatenate(of_columns).astype(np.int64)

    def centred(self, parts: Sequence[Part]) -> Floats:
        """Numbers with the means of the whole table in every group, where a number can be added."""
        numbers, some = self.numbers.copy(), self.nodes.gaussian
        weights = np.concatenate([part.weights for part in parts])
        rows = np.concatenate([part.rows for part in parts])
        whole = weights / weights.sum() @ self.numbers[rows, some]
        for part in parts:
            numbers[part.rows, some] += whole - part.share @ numbers[part.rows, some]
        return numbers

    def factors(self, parts: Sequence[Part]) -> list[Floats]:
        """What weights are multiplied by to make margins equal; their sums stay as they are.

        It is the smallest change that does so, by relative entropy.  Columns that do not vary in
        some group, or lack a level there, are left as they are.
        """
        values = self._standardised(parts)
        shares, sizes = [part.share for part in parts], np.array([p.weights.sum() for p in parts])
        tilts = _tilts(values, shares, sizes)
        factors = [tilted / share for tilted, share in zip(tilts, shares, strict=True)]
        return [np.maximum(each, _LEAST_FACTOR) for each in factors]

    def _standardised(self, parts: Sequence[Part]) -> list[Floats]:
        """Statistics of every group, in units of their spread over all, less their common mean."""
        others, of_others = self._statistics
        gaussian = np.flatnonzero(self.nodes.gaussian_nodes)
        node = np.concatenate([gaussian, gaussian, of_others])
        values = []
        for part in parts:
            numbers = self.numbers[part.rows, self.nodes.gaussian]
            numbers = numbers - part.share @ numbers
            values.append(np.hstack([numbers, numbers**2, others[part.rows]]))
        sizes = np.array([part.weights.sum() for part in parts])
        means = np.array([part.share @ each for part, each in zip(parts, values, strict=True)])
        spreads = np.array(
            [
                part.share @ (each - mean) ** 2
                for part, each, mean in zip(parts, values, means, strict=True)
            ]
        )
        whole = np.sqrt(sizes / sizes.sum() @ spreads)
        still = (spreads <= _NOTHING * (1.0 + means**2)).any(axis=0)
        kept = (whole > 0.0) & ~np.isin(node, node[still & (whole > 0.0)])
        middle = sizes / sizes.sum() @ means
        return [(each[:, kept] - middle[kept]) / whole[kept] for each in values]


def _tilts(values: Sequence[Floats], shares: Sequence[Floats], sizes: Floats) -> list[Floats]:
    """(m,) shares of the rows of every group, tilted such that all groups have equal means.

    Coefficients a_g minimise sum of n_g log sum of share exp(values a_g), subject to
    sum of n_g a_g = 0: a convex function of those of all groups but the last.  Newton steps, each
    halved until it goes down far enough.  Where groups do not overlap, few rows keep a weight.
    """
    n_groups, q = len(values), values[0].shape[1]
    size = sizes / sizes.sum()
    # Of every group's coefficients, as a function of those that are free.
    free = np.vstack([np.eye(n_groups - 1), -size[:-1] / size[-1]])
    a = np.zeros((n_groups, q))
    value, tilted = _tilted(values, shares, a, size)
    for _ in range(_STEPS):
        means = np.array([t @ v for t, v in zip(tilted, values, strict=True)])
        slope = free.T @ (size[:, None] * (means + _RIDGE * a))
        curvature = np.zeros((slope.size, slope.size))
        for g, (t, v) in enumerate(zip(tilted, values, strict=True)):
            own = (v * t[:, None]).T @ v - np.outer(means[g], means[g]) + _RIDGE * np.eye(q)
            curvature += size[g] * np.kron(np.outer(free[g], free[g]), own)
        step = np.linalg.solve(curvature, slope.ravel())
        gain = float(slope.ravel() @ step)
        if gain < _TOL:
            return tilted
        move = free @ step.reshape(n_groups - 1, q)
        for length in _LENGTHS:
            reached, tilted = _tilted(values, shares, a - length * move, size)
            if reached <= value - 0.25 * length * gain:
                break
        a, value = a - length * move, reached
    return tilted


def _tilted(
    values: Sequence[Floats], shares: Sequence[Floats], a: Floats, size: Floats
) -> tuple[float, list[Floats]]:
    """The function that is minimised, and tilted shares, with sum one in every group."""
    total, out = 0.5 * _RIDGE * float(size @ (a**2).sum(axis=1)), []
    for each, share, own, part in zip(values, shares, a, size, strict=True):
        logits = each @ own
        highest = float(logits.max())
        tilted = share * np.exp(logits - highest)
        total += float(part) * (highest + float(np.log(tilted.sum())))
        out.append(tilted / tilted.sum())
    return total, out


def effective(before: Floats, after: Floats) -> float:
    """So many observations count, as Kish counts them, once weights have changed."""
    return float(after.sum() ** 2 / (after**2 / before).sum())


def row_weights(design: Design | Gaps) -> Floats:
    """(n,) how often every row counts."""
    return np.ones(design.n_rows) if design.weights is None else design.weights


@dataclass(frozen=True, eq=False)
class EqualGroups:
    """The rows of all groups, moved and weighted such that groups have equal margins."""

    groups: Groups
    before: Design
    design: Design

    @classmethod
    def of(cls, design: Design, groups: Groups) -> EqualGroups:
        """Take the groups' own means, variances and shares out."""
        margins = RowMargins(design.schema.spans, design.numbers, design.codes)
        weights, parts = row_weights(design).copy(), []
        for group in range(len(groups)):
            rows = groups.rows(group)
            parts.append(Part(rows, weights[rows]))
        for part, factors in zip(parts, margins.factors(parts), strict=True):
            weights[part.rows] *= factors
        parts = [replace(part, weights=weights[part.rows]) for part in parts]
        return cls(groups, design, replace(design, numbers=margins.centred(parts), weights=weights))

    def parts(self) -> list[Design]:
        """The rows of every group."""
        return [self.design.take(self.groups.rows(group)) for group in range(len(self.groups))]

    @cached_property
    def effective_rows(self) -> list[float]:
        """So many rows count in every group."""
        before, after = row_weights(self.before), row_weights(self.design)
        rows = map(self.groups.rows, range(len(self.groups)))
        return [effective(before[some], after[some]) for some in rows]

    @property
    def overlap(self) -> bool:
        """Whether enough rows count in every group."""
        return min(self.effective_rows) >= _FEWEST_EFFECTIVE

    def require_overlap(self) -> None:
        """Raise for groups that are too unlike each other."""
        if not self.overlap:
            least = int(np.argmin(self.effective_rows))
            raise ParameterError(
                "the groups' own means and shares cannot be taken out: group "
                f"{quoted(self.groups.labels[least])} would be left with "
                f"{self.effective_rows[least]:.2g} rows that are like those of the others. To fix: "
                "test='differences', or leave out columns in which groups hardly overlap."
            )

    @cached_property
    def margins(self) -> RowMargins:
        """Of the rows once they are moved."""
        return RowMargins(self.design.schema.spans, self.design.numbers, self.design.codes)

    @cached_property
    def frequencies(self) -> NDArray[np.int64] | None:
        """Weights of the table that are whole numbers, and so count identical rows."""
        weights = self.before.weights
        if weights is None or not np.array_equal(weights, np.rint(weights)):
            return None
        return weights.astype(np.int64)
