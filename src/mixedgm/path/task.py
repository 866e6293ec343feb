"""Design + options -> Task: everything that is the same for all lam.

Here the table's units and declared levels end and the solver's coordinates begin: continuous
columns standardised, levels without rows left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import DistributionError, TooLargeError
from mixedgm.model.coordinates import Coordinates
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.moderation import Moderators
from mixedgm.model.params import Params, Units
from mixedgm.objective.conditional import ConditionalLikelihood
from mixedgm.objective.contract import Smooth
from mixedgm.objective.likelihood import Likelihood
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.path.moderated import Moderated
from mixedgm.penalty import weights as edge_weights
from mixedgm.penalty.contract import Penalty
from mixedgm.penalty.group_lasso import GroupLasso
from mixedgm.rows.contract import Moments
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.threads import single_threaded_blas
from mixedgm.solve.choose import Auto
from mixedgm.solve.loop import Solver
from mixedgm.solve.monte_carlo import MonteCarlo
from mixedgm.solve.problem import Problem
from mixedgm.solve.working_set import Solution, Start, solve
from mixedgm.table.encode import Design
from mixedgm.table.schema import Schema

Weights = Literal["calibrated", "uniform", "adaptive"]
Loss = Literal["pseudolikelihood", "likelihood", "likelihood-mc", "nodewise"]
Masks = list[NDArray[np.bool_]]
Lam = float | tuple[float, ...]
"""One penalty, or one per column of the table (NaN for covariates): of separate regressions."""
PILOT_TOL = 1e-8


@dataclass(frozen=True, eq=False)
class Reference:
    """What a resample keeps of the table it was drawn from.

    Parameters
    ----------
    mean, variance : ndarray (p,)
        Of the continuous columns: the node term of a column that is constant in the resample.
    observed : bool array (sum of declared levels,)
        Levels that have rows.
    layout : Layout, optional
        Of the whole table.  Resamples with the same edges share it, and what it has computed.
    """

    mean: Floats
    variance: Floats
    observed: NDArray[np.bool_]
    layout: Layout | None = None

    @classmethod
    def of(cls, design: Design) -> Reference:
        """Read it from the whole table."""
        units, _ = _standardised(design)
        return cls(units.centre, units.scale**2, observed_levels(design)[0])


@dataclass(frozen=True, eq=False)
class Task:
    """One table, one objective, one penalty: a problem for every lam.

    Parameters
    ----------
    units : Units
        Centre and scale of the continuous columns.
    observed : bool array (sum of declared levels,)
        Levels that have rows.
    schema : Schema
        Columns and declared levels.
    smooth : Smooth
        In standardised units, over observed levels.
    penalty : Penalty
        As seen by standardised parameters.
    yardstick : ndarray (n_groups,)
        Calibrated weight of every edge, standardised.
    total_weight : float
        Number of observations, n.
    degenerate : tuple of str
        Columns that are constant here or lack a level that the reference (without one, the
        schema) has.
    """

    units: Units
    observed: NDArray[np.bool_]
    schema: Schema
    smooth: Smooth
    penalty: Penalty
    yardstick: Floats
    node_scales: Floats
    total_weight: float
    degenerate: tuple[str, ...] = ()
    loss: Loss = "pseudolikelihood"
    rule: str = "and"
    solver: Solver = field(default_factory=Auto)
    """For optima without penalty."""
    scoring_smooth: Smooth | None = None
    moderators: Moderators | None = None
    moments: Moments | None = None
    """Of the standardised rows."""
    too_large: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    """Pairs of nodes that were left out: they alone have too many parameters for the rows."""

    @property
    def coordinates(self) -> Coordinates:
        """From solver coordinates to the user's, and back."""
        n_levels = self.schema.n_levels
        return Coordinates(self.layout, self.units, self.observed, n_levels, self.moderators)

    @property
    def scoring(self) -> Task:
        """The task whose loss scores a graph: this one, unless its loss has no exact value."""
        if self.scoring_smooth is None:
            return self
        return replace(self, smooth=self.scoring_smooth, solver=Auto(), scoring_smooth=None)

    @property
    def layout(self) -> Layout:
        """Which parameters exist."""
        return self.smooth.layout

    @property
    def log_jacobian(self) -> float:
        """Objective in the data's own units minus objective in standardised units."""
        return float(
            np.log(self.units.scale[self.layout.is_target[: self.layout.n_gaussian]]).sum()
        )

    def named(self, error: DistributionError) -> DistributionError:
        """The error with the names of the columns."""
        return error.named([node.name for node in self.schema.nodes])

    def problem(self, lam: Lam) -> Problem:
        """The problem at this lam; one per column is that of its own groups."""
        if not isinstance(lam, tuple):
            return Problem(self.smooth, self.penalty, lam, self.yardstick)
        by_name = dict(zip(self.schema.names, lam, strict=True))
        by_node = np.array([by_name[node.name] for node in self.schema.nodes])
        penalty = self.penalty.with_factors(by_node[self.layout.pairs[:, 1]])
        return Problem(self.smooth, penalty, 1.0, self.yardstick)

    def params(self, theta: Floats) -> Params:
        """Solver coordinates -> the data's own units and all declared levels."""
        return self.coordinates.params(theta)

    def theta_of(self, params: Params) -> Floats:
        """The data's own units and all declared levels -> solver coordinates, for a warm start.

        Edges that do not exist here are dropped.  A level that is observed here only starts with
        its marginal bias.
        """
        coordinates = self.coordinates
        here = coordinates.over_observed(params)
        if np.array_equal(self.observed, params.levels_possible):
            return coordinates.theta(params, here)
        marginal = self.smooth.null()[self.layout.biases]
        biases = np.where(here.levels_possible, here.cat_bias, marginal)
        here = replace(here, bias=np.concatenate([here.cont_bias, biases]))
        theta = coordinates.theta(params, here)
        active = np.flatnonzero(self.layout.group_norms(theta))
        return self.layout.centred(theta, active)

    @cached_property
    def null(self) -> Start:
        """The optimum without penalised edges, from which lam_max is read."""
        theta = self.smooth.null()
        start = Start(theta, self.smooth.evaluate(theta))
        free = self.penalty.free
        if len(free) == 0:
            return start
        return self.start_at(self.unpenalised(free, start, tol=1e-9))

    def start_at(self, solution: Solution) -> Start:
        """A start for the whole problem from a full-size solution of a smaller one."""
        return Start(solution.theta, self.smooth.evaluate(solution.theta))

    def unpenalised(
        self, groups: Ints, start: Start, *, tol: float, max_iter: int = 200
    ) -> Solution:
        """The optimum with these groups free and all others absent.

        Its theta is full-size; its certificate is that of the small problem.
        """
        small = self.smooth.restrict(groups)
        none = GroupLasso.none(small.layout)
        problem = Problem(small, none, 0.0, self.yardstick[groups])
        return self.confined(problem, groups, start, self.solver, tol, max_iter)

    def penalised(
        self, groups: Ints, lam: float, start: Start, *, solver: Solver, tol: float, max_iter: int
    ) -> Solution:
        """The optimum at lam with only these groups, all others absent; else as `unpenalised`."""
        problem = self.problem(lam).restrict(groups)
        return self.confined(problem, groups, start, solver, tol, max_iter)

    def confined(
        self,
        problem: Problem,
        groups: Ints,
        start: Start,
        solver: Solver,
        tol: float,
        max_iter: int,
    ) -> Solution:
        """Solve a problem that is restricted to these groups; its theta is made full-size."""
        index = self.layout.positions(groups)
        begin = Start(start.theta[index], problem.smooth.evaluate(start.theta[index]))
        if begin.evaluation.grad is None:
            # A start put together from two points need not be a distribution.
            theta = problem.smooth.null()
            begin = Start(theta, problem.smooth.evaluate(theta))
        solution = solve(problem, solver, begin, tol=tol, max_iter=max_iter)
        theta = np.zeros(self.layout.n_theta)
        theta[index] = solution.theta
        return replace(solution, theta=theta)

    @cached_property
    def lam_max(self) -> float:
        """Smallest lam without penalised edges."""
        return self.penalty.lam_max(self.null.evaluation.gradient)


@dataclass(frozen=True)
class Sampler:
    """How a likelihood is sampled: the options of its chains, and a seed for them."""

    solver: MonteCarlo = field(default_factory=MonteCarlo)
    seed: np.random.SeedSequence = field(default_factory=lambda: np.random.SeedSequence(0))

    def smooth(self, layout: Layout, moments: Moments, n_rows: int) -> Smooth:
        """The likelihood with chains that have not begun."""
        from mixedgm.objective.sampled import GradientChains, SampledLikelihood

        chains = GradientChains(np.random.default_rng(self.seed), self.solver.n_chains // 64)
        return SampledLikelihood(layout, moments, n_rows, chains)


def prepare(
    design: Design,
    *,
    loss: Loss = "pseudolikelihood",
    weights: Weights = "calibrated",
    factors: Floats | None = None,
    reference: Reference | None = None,
    n_threads: int = 1,
    sampler: Sampler | None = None,
    rule: str = "and",
    moderated: Moderated | None = None,
) -> Task:
    """Standardise, drop levels without rows, lay out the permitted edges and weigh them.

    `factors` is the node-by-node matrix of penalty factors; inf leaves an edge out.  `reference`
    describes the whole table when `design` is a resample of it.  A column that is constant in
    `design` has no edges; its node term is then the reference's mean and variance (without a
    reference: its value, with variance 1).  `sampler` is for ``loss="likelihood-mc"``,
    `rule` for ``loss="nodewise"``.  `moderated` names the columns that edges vary with.
    """
    n_levels = design.schema.n_levels
    observed, codes = observed_levels(design)
    kept = tuple(int(part.sum()) for part in levels_by_column(observed, n_levels))
    units, numbers = _standardised(design, reference)
    rows = MemoryRows(numbers, codes, kept, design.weights, n_threads)
    nodes = design.schema.spans.with_values(kept)
    moments = _with_unit_variances(rows.moments(), nodes.n_gaussian)
    varies = (numbers != 0.0).any(axis=0).astype(np.float64)
    scales = edge_weights.node_scales(nodes, moments.mean, varies)
    absent = _absent(scales, factors)
    layout = Layout.complete(nodes, absent, design.schema.covariates, nodewise=loss == "nodewise")
    moderators = None
    if moderated is not None:
        share = moments.mean[nodes.n_numeric :]
        moderators = Moderators.of(moderated.nodes, share, numbers)
        layout = moderated.layout(layout, moderators, scales)
        rows = moderated.rows(rows, layout, moderators)
        moments = _with_unit_variances(rows.moments(), nodes.n_gaussian)
    shared = None if reference is None else reference.layout
    if shared is not None and layout.same(shared):
        layout = shared
    yardstick = edge_weights.calibrated(layout, scales, one_term=loss.startswith("likelihood"))
    penalty = edge_weights.uniform(layout, units.scale) if weights == "uniform" else yardstick
    if factors is not None:
        own = factors[layout.pairs[:, 0], layout.pairs[:, 1]]
        penalty = penalty * np.where(layout.moderator < 0, own, 1.0)
    if moderated is not None:
        yardstick, penalty = moderated.weights(layout, scales, (yardstick, penalty))
    own_scales = scales.copy()
    own_scales[: len(units.scale)] *= units.scale
    task = Task(
        units,
        observed,
        design.schema,
        Pseudolikelihood(rows, layout, moments),
        GroupLasso(layout, penalty),
        yardstick,
        own_scales,
        design.total_weight,
        _degenerate(design.schema, scales == 0.0, observed, reference),
        loss,
        rule,
        moderators=moderators,
        moments=moments,
    )
    if weights == "adaptive":
        task = _adapted(task)
    return _with_loss(task, rows, moments, sampler or Sampler())


def _adapted(task: Task) -> Task:
    """The task with the weights of an adaptive group lasso (Wang and Leng 2008).

    The pilot is a group lasso of the pseudolikelihood, at the lam that the gradient of an edge
    between independent columns has on average: far denser than a graph that is chosen.  Of the
    penalty factors it knows only which edges are free or absent, so that all others count once.
    """
    layout, penalty, n = task.layout, task.penalty, task.total_weight
    share = layout.conditionals / layout.conditionals_at_most
    scale = task.yardstick / (1.0 if task.loss.startswith("likelihood") else share)
    weights = np.where(penalty.penalised, share * scale, 0.0)
    lam = layout.conditionals_at_most / np.sqrt(n)
    problem = Problem(task.smooth, GroupLasso(layout, weights), lam, share * scale)
    start = replace(task.null, lam=problem.penalty.lam_max(task.null.evaluation.gradient))
    with single_threaded_blas():
        pilot = solve(problem, Auto(), start, tol=PILOT_TOL, max_iter=1000)
    sizes = scale * layout.group_norms(pilot.theta)
    return replace(task, penalty=penalty.with_factors(edge_weights.adaptive(sizes, n)))


def _absent(scales: Floats, factors: Floats | None) -> NDArray[np.bool_]:
    """Pairs without an edge: those of a column without variation, and those left out.

    A weight of zero would make the edges of a constant column free instead.
    """
    absent: NDArray[np.bool_] = np.logical_or.outer(scales == 0.0, scales == 0.0)
    return absent if factors is None else absent | np.isinf(factors)


def _with_loss(task: Task, rows: MemoryRows, moments: Moments, sampler: Sampler) -> Task:
    """The same task with the likelihood, where its loss says so."""
    if task.loss == "likelihood" and task.layout.covariates:
        try:
            return replace(task, smooth=ConditionalLikelihood.of(task.layout, moments, rows))
        except TooLargeError as error:
            raise task.named(error) from None
    if task.loss == "likelihood":
        return replace(task, smooth=Likelihood(task.layout, moments, rows.n_rows))
    if task.loss == "likelihood-mc":
        smooth, solver = sampler.smooth(task.layout, moments, rows.n_rows), sampler.solver
        return replace(task, smooth=smooth, solver=solver, scoring_smooth=task.smooth)
    return task


def _standardised(design: Design, reference: Reference | None = None) -> tuple[Units, Floats]:
    """Population moments (ddof = 0, weighted) and the standardised copy of the columns."""
    share = np.full(design.n_rows, 1.0 / design.n_rows)
    if design.weights is not None:
        share = design.weights / design.total_weight
    centre = share @ design.numbers
    numbers = design.numbers - centre
    scale = np.sqrt(share @ numbers**2)
    constant = scale <= 1e-13 * np.abs(centre)
    scale[constant] = 1.0
    if reference is not None:
        centre = np.where(constant, reference.mean, centre)
        scale = np.where(constant, np.sqrt(reference.variance), scale)
    numbers[:, constant] = 0.0
    numbers /= scale
    return Units(centre, scale), numbers


def _with_unit_variances(moments: Moments, n_gaussian: int) -> Moments:
    """Give a constant column variance 1, so that its own term has an optimum."""
    second = moments.second
    own = np.arange(n_gaussian)
    second[own, own] = np.where(second[own, own] > 0.0, second[own, own], 1.0)
    return moments


def observed_levels(design: Design) -> tuple[NDArray[np.bool_], NDArray[np.integer]]:
    """Levels with rows, and codes counted over those only."""
    masks, columns = [], []
    for at, count in enumerate(design.schema.n_levels):
        column = design.codes[:, at]
        seen = np.bincount(column, minlength=count) > 0
        masks.append(seen)
        if not seen.all():
            column = (np.cumsum(seen) - 1).astype(design.codes.dtype)[column]
        columns.append(column)
    if not masks:
        return np.zeros(0, dtype=bool), design.codes
    mask = np.concatenate(masks)
    return mask, design.codes if mask.all() else np.column_stack(columns)


def levels_by_column(observed: NDArray[np.bool_], n_levels: tuple[int, ...]) -> Masks:
    """The mask of every categorical column by itself."""
    return np.split(observed, np.cumsum(n_levels)[:-1]) if n_levels else []


def _degenerate(
    schema: Schema,
    constant: NDArray[np.bool_],
    observed: NDArray[np.bool_],
    reference: Reference | None,
) -> tuple[str, ...]:
    """Names of the nodes that are constant or lack levels, in the order of the nodes."""
    expected = np.ones_like(observed) if reference is None else reference.observed
    lacking = [bool(part.any()) for part in levels_by_column(expected & ~observed, schema.n_levels)]
    found = constant | np.array([False] * schema.n_gaussian + lacking, dtype=bool)
    return tuple(node.name for node, is_so in zip(schema.nodes, found, strict=True) if is_so)
