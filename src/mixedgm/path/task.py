"""Design + Recipe -> Task: everything that is the same for all lam.

Here the table's units and declared levels end and the solver's coordinates begin: continuous
columns standardised, levels without rows left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import DistributionError
from mixedgm.base.printable import few, quoted
from mixedgm.base.threads import run_all, single_threaded_blas, threads_for, using_threads
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.moderation import Moderators
from mixedgm.model.nodes import Nodes
from mixedgm.model.pair_weights import PairWeights
from mixedgm.model.params import Coordinates, Params, Units
from mixedgm.objective.conditional import ConditionalLikelihood
from mixedgm.objective.contract import Smooth
from mixedgm.objective.likelihood import Likelihood
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.path.all_pairs import AllPairs, Permitted
from mixedgm.path.parted_rows import parted_levels, parted_rows, parted_spikes, units_of
from mixedgm.path.recipe import Lam, Loss, Recipe
from mixedgm.penalty import weights as edge_weights
from mixedgm.penalty.group_lasso import GroupLasso
from mixedgm.rows.contract import ColumnMoments, Moments, Outside, Question
from mixedgm.rows.device import DeviceRows, rows_on
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.parts import PartedRows
from mixedgm.solve.choose import Auto
from mixedgm.solve.loop import Certificate, Solver
from mixedgm.solve.monte_carlo import MonteCarlo
from mixedgm.solve.problem import Problem
from mixedgm.solve.working_set import Solution, Start, solve
from mixedgm.table.encode import Design
from mixedgm.table.parted.design import PartedDesign
from mixedgm.table.schema import Schema

if TYPE_CHECKING:
    from mixedgm.path.rounds import Incomplete

PILOT_TOL = 1e-10
# Most columns vary, and have all levels, in so many rows.
_FIRST_ROWS = 1000
_NUMBERS_OF_A_BLOCK = 2**18
# Of a wide table so many pairs near their bound are asked for, and so many more per column.
_NEAR_AT_LEAST, _NEAR_PER_NODE = 1000, 4


@dataclass(frozen=True, eq=False)
class Reference:
    """Values of a whole table that its resamples keep."""

    mean: Floats
    variance: Floats
    """Variances of the continuous columns: the node term of a column that is constant in the
    resample."""
    observed: NDArray[np.bool_]
    """(declared levels,) whether each has rows."""
    spiked: Floats
    """(hurdle columns, 3) means of what multiplies their own terms: the node terms of one that has
    no zeros, or does not vary beside them, in the resample."""
    layout: Layout | None = None
    """Layout of the whole table.  Resamples with the same edges share it, and what it has
    computed."""

    @classmethod
    def of(cls, design: Design | PartedDesign) -> Reference:
        """Read it from the whole table."""
        if isinstance(design, PartedDesign):
            units, observed, _, _ = parted_rows(design, None, 1)
            return cls(units.centre, units.scale**2, observed, parted_spikes(design))
        units, _ = _standardised(design)
        share = _shares(design)
        parts = [share @ part for part in design.schema.spans.spiked_statistics(design.numbers)]
        spiked = np.array(parts).reshape(-1, 3)
        return cls(units.centre, units.scale**2, observed_levels(design)[0], spiked)


@dataclass(frozen=True, eq=False)
class Task:
    """One table, one objective, one penalty: a problem for every lam."""

    units: Units
    """Centre and scale of the continuous columns."""
    observed: NDArray[np.bool_]
    """(declared levels,) whether each has rows."""
    schema: Schema
    """Columns and declared levels."""
    smooth: Smooth
    """Smooth loss in standardised units, over observed levels."""
    penalty: GroupLasso
    """Penalty on standardised parameters."""
    yardstick: Floats
    """(n_groups,) calibrated weight of every edge, standardised."""
    node_scales: Floats
    """Scales of all columns of numbers, then of all other nodes, in the data's own units."""
    total_weight: float
    """Number of observations, n."""
    degenerate: tuple[str, ...] = ()
    """Columns that are constant here or lack a level that the reference (without one, the schema)
    has."""
    loss: Loss = "pseudolikelihood"
    rule: str = "and"
    solver: Solver = field(default_factory=Auto)
    """Solver for optima without penalty."""
    scoring_smooth: Smooth | None = None
    moderators: Moderators | None = None
    moments: Moments | ColumnMoments | None = None
    """Moments of the standardised rows; for a wide table, those of single columns only."""
    too_large: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    """Pairs of nodes that were left out: they alone have too many parameters for the rows."""
    incomplete: Incomplete | None = None
    """The rows with gaps that the rows complete, if they do."""
    row: Ints | None = None
    """Which of those each of these completes."""
    beyond: AllPairs | None = None
    """All permitted pairs, where the table is wide and the layout has candidates only."""

    @property
    def without_edges(self) -> tuple[str, ...]:
        """Notes on columns and pairs that cannot have an edge in these rows."""
        names, notes = [node.name for node in self.schema.nodes], []
        flat = np.unique(self.schema.spans.scale_node[self.node_scales == 0.0]).tolist()
        if flat:
            constant = ", ".join(quoted(names[v]) for v in flat)
            notes.append(f"constant in these rows, so without edges: {constant}")
        if len(self.too_large):
            pairs = [f"{names[u]} - {names[v]}" for u, v in self.too_large.tolist()]
            notes.append(
                "left out, because an edge with so many levels has too many parameters for "
                f"{self.total_weight:,.6g} rows: {few(pairs, 3, str)}"
            )
        return tuple(notes)

    @cached_property
    def missing_information(self) -> Floats | None:
        """(n_groups,) the share of every edge's information that gaps have taken, if some have."""
        if self.incomplete is None:
            return None
        u, v = self.layout.pairs.T
        return np.asarray(np.minimum(1.0 - self.incomplete.gaps.known_together[u, v], 0.99))

    @property
    def coordinates(self) -> Coordinates:
        """Coordinates that lead from the solver's to the user's, and back."""
        nodes = self.schema.spans
        return Coordinates(self.layout, self.units, self.observed, nodes, self.moderators)

    @property
    def scoring(self) -> Task:
        """The task whose loss scores a graph: this one, unless its loss has no exact value."""
        if self.scoring_smooth is None:
            return self
        return replace(self, smooth=self.scoring_smooth, solver=Auto(), scoring_smooth=None)

    @property
    def n_threads(self) -> int:
        """Threads of its rows, which may work on long vectors, too."""
        return int(getattr(getattr(self.smooth, "rows", None), "n_threads", 1))

    @property
    def layout(self) -> Layout:
        """Which parameters exist."""
        return self.smooth.layout

    @property
    def log_units(self) -> Floats:
        """(n_real,) log standard deviation of every number that is predicted, else zero."""
        nodes = self.layout.nodes
        there = self.layout.is_target[: nodes.n_real]
        return np.where(there, np.log(self.units.scale[nodes.real_columns]), 0.0)

    @property
    def log_jacobian(self) -> float:
        """Objective in the data's own units minus objective in standardised units.

        The density of a number has its unit, and the probability of a zero has none.
        """
        nodes = self.layout.nodes
        share = np.ones(nodes.n_real)
        share[nodes.spiked_nodes[: nodes.n_real]] = self.units.centre[nodes.spiked_terms[1]]
        return float(share @ self.log_units)

    def certificate(self, solution: Solution) -> Certificate:
        """The certificate of a solution, with the objective in the data's own units."""
        objective = solution.objective + self.log_jacobian
        return replace(solution.certificate, objective=objective)

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
        marginal = self.smooth.null()[self.layout.bias_terms]
        here = replace(here, bias=np.where(np.isneginf(here.bias), marginal, here.bias))
        theta = coordinates.theta(params, here)
        active = np.flatnonzero(self.layout.group_norms(theta))
        return self.layout.centred(theta, active)

    def with_candidates(self, pairs: Ints) -> Task:
        """The task of a wide table with more pairs in its layout, behind those that it has."""
        assert self.beyond is not None
        assert isinstance(self.smooth, Pseudolikelihood)
        layout = self.layout.appended(pairs)
        task = replace(
            self,
            smooth=replace(self.smooth, layout=layout),
            penalty=self.beyond.penalty(layout),
            yardstick=self.beyond.yardstick.of(*layout.pairs.T),
        )
        # Neither depends on the candidates.
        vars(task).update(null=task.extended(self.null), lam_max=self.lam_max)
        return task

    @property
    def n_pairs(self) -> int:
        """Number of pairs of columns that may have an edge."""
        if self.beyond is not None:
            return self.beyond.number
        return len(np.unique(np.sort(self.layout.pairs, axis=1), axis=0))

    def with_edges(self, pairs: Ints) -> Task:
        """The task with these pairs among its candidates, where it is that of a wide table."""
        if self.beyond is None:
            return self
        return self.with_candidates(pairs[np.isfinite(self._weights_outside.of(*pairs.T))])

    def with_edges_of(self, params: Params) -> Task:
        """The task of a wide table with the edges of these parameters as candidates."""
        if self.beyond is None:
            return self
        node = params.nodes.column_node
        row, column = (node[part] for part in np.nonzero(params.coef))
        return self.with_edges(np.unique(np.column_stack([row, column])[row < column], axis=0))

    @cached_property
    def _weights_outside(self) -> PairWeights:
        """Weights of permitted pairs that are no candidates."""
        assert self.beyond is not None
        return self.beyond.outside(self.layout.pairs)

    def extended(self, start: Start) -> Start:
        """A point of this task with fewer candidates as one of this; new groups are zero."""
        more = self.layout.n_theta - len(start.theta)
        theta = np.concatenate([start.theta, np.zeros(more)])
        return replace(start, theta=theta, evaluation=self.smooth.evaluate(theta))

    def second_moments(self, first: Ints, second: Ints) -> Floats:
        """Mean of the product of two standardised columns, for every pair of columns listed."""
        if isinstance(self.moments, Moments):
            return np.asarray(self.moments.second[first, second])
        assert isinstance(self.smooth, Pseudolikelihood)
        return self.smooth.rows.second_moments(first, second)

    def outside(self, theta: Floats, floor: float, most: int | None = None) -> Outside:
        """Permitted pairs that are no candidates and have an entry of `floor` or more."""
        assert isinstance(self.smooth, Pseudolikelihood)
        most = max(_NEAR_AT_LEAST, _NEAR_PER_NODE * self.layout.n_nodes) if most is None else most
        return self.smooth.outside(theta, Question(self._weights_outside, floor, most))

    @cached_property
    def null(self) -> Start:
        """The optimum without penalised edges, from which lam_max is read."""
        with single_threaded_blas(), using_threads(self.n_threads):
            return self._null()

    def _null(self) -> Start:
        theta = self.smooth.null()
        start = Start(theta, self.smooth.evaluate(theta))
        free = self.penalty.free
        if len(free) == 0:
            return self._looked_outside(start)
        small = self.smooth.restrict(free)
        problem = Problem.unpenalised(small, self.yardstick[free])
        theta = self.confined(problem, free, start, self.solver, tol=1e-9, max_iter=200).theta
        return self._looked_outside(Start(theta, self.smooth.evaluate(theta)))

    def _looked_outside(self, start: Start) -> Start:
        """The start with the pairs that enter first, on a wide table."""
        if self.beyond is None:
            return start
        near = self.outside(start.theta, 0.0)
        return replace(start, outside=near, reach=float(near.entries.min(initial=np.inf)))

    def confined(
        self,
        problem: Problem,
        groups: Ints,
        start: Start,
        solver: Solver,
        tol: float,
        max_iter: int,
    ) -> Solution:
        """Solve a problem that is restricted to these groups.

        Theta is made full-size; the certificate is that of the small problem.
        """
        index = self.layout.positions(groups)
        begin = Start(start.theta[index], problem.smooth.evaluate(start.theta[index]))
        if begin.evaluation.grad is None:
            # A start put together from two points need not be a distribution.
            theta = problem.smooth.null()
            begin = Start(theta, problem.smooth.evaluate(theta))
        solution = solve(problem, solver, begin, tol=tol, max_iter=max_iter)
        return replace(solution, theta=self.layout.expanded(groups, solution.theta))

    @cached_property
    def lam_max(self) -> float:
        """Smallest lam without penalised edges."""
        start = self.null
        found = self.penalty.lam_max(start.evaluation.gradient)
        return found if start.outside is None else max(found, start.outside.largest)


def prepare(
    design: Design | PartedDesign,
    recipe: Recipe | None = None,
    reference: Reference | None = None,
    n_threads: int = 1,
) -> Task:
    """Standardise, drop levels without rows, lay out the permitted edges and weigh them.

    `reference` describes the whole table when `design` is a resample of it.  A column that is
    constant in `design` has no edges; its node term is then the reference's mean and variance
    (without a reference: its value, with variance 1).  So it is with a hurdle column without zeros,
    or with fewer than two different values beside them: its node terms are the reference's.
    """
    recipe = recipe or Recipe()
    rows: MemoryRows | PartedRows | DeviceRows
    if isinstance(design, PartedDesign):
        units, observed, rows, varies = parted_rows(design, reference, n_threads)
    else:
        units, observed, rows, varies = _rows(design, reference, n_threads)
    nodes, plain = rows.nodes, rows
    if recipe.device != "cpu":
        assert isinstance(rows, MemoryRows)  # tables in parts are refused before
        rows = rows_on(recipe.device, rows)
    spiked = _known_terms(nodes, varies, units, reference)
    # A hurdle column without edges, and with node terms that are given, need not be predicted.
    fixed = tuple(sorted({*design.schema.covariates, *nodes.discrete_nodes[list(spiked)].tolist()}))
    moments = _moments(rows, spiked, wide=_is_wide(nodes, recipe))
    scales = edge_weights.node_scales(nodes, moments.mean, varies)
    # A weight of zero would make the edges of a constant column free instead of absent.
    constant = scales == 0.0
    moderators, moderated, beyond = None, recipe.moderated, None
    if isinstance(moments, ColumnMoments):
        permitted = _permitted(design, recipe, reference, fixed, constant)
        if permitted.n_parameters(nodes.width) <= recipe.most_parameters:
            pairs = permitted.listed()
        else:
            uniform = recipe.weights == "uniform"
            other = edge_weights.uniform_scales(nodes, units.scale) if uniform else None
            beyond = permitted.weighed(scales, other)
            pairs = beyond.first(None if reference is None else reference.layout)
        layout, left_out = Layout(nodes, pairs, fixed), permitted.left_out
    else:
        factors, too_many = _factors(design, recipe, reference)
        left_out = np.argwhere(np.triu(too_many))
        absent = np.logical_or.outer(constant, constant) | np.isinf(factors)
        layout = Layout.complete(nodes, absent, fixed, nodewise=recipe.loss == "nodewise")
    if moderated is not None:
        share = moments.mean[nodes.indicators]
        assert isinstance(plain, MemoryRows)  # tables in parts are refused before
        moderators = Moderators.of(nodes, moderated.nodes, share, plain.numbers)
        layout = moderated.layout(layout, moderators, scales)
        rows = moderated.rows(plain, layout, moderators)
        moments = _moments(rows, spiked)
    if reference is not None and reference.layout is not None and layout.same(reference.layout):
        layout = reference.layout.with_units(nodes)
    yardstick, weights = _weights(layout, scales, units, recipe)
    sampled = recipe.loss == "likelihood-mc"
    own_scales = scales[nodes.scale_node]
    own_scales[nodes.numeric] *= units.scale
    task = Task(
        units=units,
        observed=observed,
        schema=design.schema,
        smooth=_smooth(recipe, layout, rows, moments),
        penalty=GroupLasso(layout, weights),
        yardstick=yardstick,
        node_scales=own_scales,
        total_weight=design.total_weight,
        degenerate=_degenerate(design.schema, scales == 0.0, observed, reference),
        loss=recipe.loss,
        rule=recipe.rule,
        solver=_sampler(recipe) if sampled else Auto(),
        scoring_smooth=Pseudolikelihood(rows, layout, moments) if sampled else None,
        moderators=moderators,
        moments=moments,
        too_large=left_out,
        row=design.row,
        beyond=beyond,
    )
    if recipe.weights != "adaptive":
        return task
    pilot = replace(task, smooth=Pseudolikelihood(rows, layout, moments), solver=Auto())
    if beyond is not None:
        return replace(task, **_adapted_beyond(pilot, beyond))
    return replace(task, penalty=_adapted(pilot))


def _adapted(task: Task) -> GroupLasso:
    """The penalty with the weights of an adaptive group lasso (Wang and Leng 2008).

    The pilot is a group lasso of the pseudolikelihood, at the lam that the gradient of an edge
    between independent columns has on average: far denser than a graph that is chosen.  Of the
    penalty factors it knows only which edges are free or absent, so that all others count once.
    """
    layout, penalty, n = task.layout, task.penalty, task.total_weight
    share = layout.conditionals / layout.conditionals_at_most
    scale = task.yardstick / (1.0 if task.loss.startswith("likelihood") else share)
    weights = np.where(penalty.penalised, share * scale, 0.0)
    lam = layout.conditionals_at_most / np.sqrt(n)
    problem = Problem(task.smooth, replace(penalty, weights=weights), lam, share * scale)
    start = replace(task.null, lam=problem.penalty.lam_max(task.null.evaluation.gradient))
    with single_threaded_blas():
        pilot = solve(problem, Auto(), start, tol=PILOT_TOL, max_iter=1000)
    sizes = scale * layout.group_norms(pilot.theta)
    return penalty.with_factors(edge_weights.adaptive(sizes, n))


def _adapted_beyond(task: Task, beyond: AllPairs) -> dict[str, Any]:
    """New `beyond` and `penalty` of a wide table's task: adaptive weights for all pairs."""
    from mixedgm.path.path import solve_among_all

    layout, n = task.layout, task.total_weight
    pilot = beyond.calibrated()
    plain = replace(task, penalty=pilot.penalty(layout), beyond=pilot)
    recipe = Recipe(tol=PILOT_TOL)
    start = replace(plain.null, lam=plain.lam_max)
    lam = layout.conditionals_at_most / np.sqrt(n)
    dense, solution, _ = solve_among_all(plain, float(lam), recipe, start)
    pairs, share = dense.layout.pairs, dense.layout.conditionals / layout.conditionals_at_most
    sizes = dense.yardstick / share * dense.layout.group_norms(solution.theta)
    active = sizes > 0.0
    sizes = edge_weights.adaptive(sizes[active], n)
    adapted = beyond.times(float(edge_weights.adaptive(np.zeros(1), n)[0]), pairs[active], sizes)
    return {"beyond": adapted, "penalty": adapted.penalty(layout)}


def _is_wide(nodes: Nodes, recipe: Recipe) -> bool:
    """Whether all pairs would be too many, so that nothing over all of them is made."""
    if recipe.loss != "pseudolikelihood" or recipe.moderated is not None:
        return False
    width = nodes.width.astype(float)
    return 0.5 * float(width.sum() ** 2 - (width**2).sum()) > recipe.most_parameters


def _permitted(
    design: Design | PartedDesign,
    recipe: Recipe,
    reference: Reference | None,
    fixed: tuple[int, ...],
    constant: NDArray[np.bool_],
) -> Permitted:
    """Pairs that may have an edge, of a wide table."""
    target = np.ones(len(constant), dtype=bool)
    target[list(fixed)] = False
    factors = recipe.factors or PairWeights.formula(np.ones(len(constant)))
    observed = _with_rows(design) if reference is None else reference.observed
    most = design.total_weight if recipe.refits else np.inf
    freedom = design.schema.spans.kept(observed).freedom
    return Permitted.of(freedom, factors, target, ~constant, most)


def _factors(
    design: Design | PartedDesign, recipe: Recipe, reference: Reference | None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Penalty factors by pair of nodes, and the pairs that are left out because of refits."""
    n_nodes = len(design.schema.nodes)
    factors = np.ones((n_nodes, n_nodes)) if recipe.factors is None else recipe.factors.matrix()
    if not recipe.refits:
        return factors, np.zeros_like(factors, dtype=bool)
    left_out = too_large(design, factors, reference)
    return np.where(left_out, np.inf, factors), left_out


def too_large(
    design: Design | PartedDesign, factors: Floats, reference: Reference | None = None
) -> NDArray[np.bool_]:
    """Pairs of nodes whose edge, with no other, has too many parameters for the rows.

    As in `refittable`.  Graphs with such an edge cannot be scored, so the edge must not stand in
    the way of others.  Edges that are required stay.
    """
    schema, n = design.schema, design.total_weight
    observed = _with_rows(design) if reference is None else reference.observed
    free = schema.spans.kept(observed).freedom
    target = np.ones(len(free), dtype=bool)
    target[list(schema.covariates)] = False
    many = np.logical_and.outer(free >= 0.5 * n, target)
    pairs = many | many.T | (np.multiply.outer(free, free) >= n)
    pairs[np.diag_indices(len(free))] = False
    return np.asarray(pairs & (factors > 0.0) & np.isfinite(factors))


def _weights(layout: Layout, scales: Floats, units: Units, recipe: Recipe) -> tuple[Floats, Floats]:
    """The yardstick (calibrated weights) and the penalty's weights, of every group."""
    one_term = recipe.loss.startswith("likelihood")
    yardstick = edge_weights.calibrated(layout, scales, one_term=one_term)
    uniform = recipe.weights == "uniform"
    weights = edge_weights.uniform(layout, units.scale) if uniform else yardstick
    if recipe.factors is not None:
        factors = recipe.factors.of(*np.sort(layout.pairs, axis=1).T)
        weights = weights * np.where(layout.moderator < 0, factors, 1.0)
    if recipe.moderated is None:
        return yardstick, weights
    return recipe.moderated.weights(layout, scales, (yardstick, weights))


def _smooth(
    recipe: Recipe,
    layout: Layout,
    rows: MemoryRows | PartedRows | DeviceRows,
    moments: Moments | ColumnMoments,
) -> Smooth:
    """The loss that the recipe asks for."""
    if isinstance(moments, ColumnMoments):
        return Pseudolikelihood(rows, layout, moments)
    if recipe.loss == "likelihood" and layout.covariates:
        assert isinstance(rows, MemoryRows)  # parts and devices are refused before
        return ConditionalLikelihood.of(layout, moments, rows)
    if recipe.loss == "likelihood":
        return Likelihood(layout, moments, rows.n_rows)
    if recipe.loss == "likelihood-mc":
        from mixedgm.joint.gibbs import GradientChains
        from mixedgm.objective.sampled import SampledLikelihood

        rng = np.random.default_rng(recipe.seed or np.random.SeedSequence(0))
        chains = GradientChains(rng, _sampler(recipe).n_chains // 64)
        return SampledLikelihood(layout, moments, rows.n_rows, chains)
    return Pseudolikelihood(rows, layout, moments)


def _sampler(recipe: Recipe) -> MonteCarlo:
    return recipe.solver if isinstance(recipe.solver, MonteCarlo) else MonteCarlo()


def _with_rows(design: Design | PartedDesign) -> NDArray[np.bool_]:
    """Levels with rows."""
    if isinstance(design, PartedDesign):
        return parted_levels(design)
    return observed_levels(design)[0]


def _rows(
    design: Design, reference: Reference | None, n_threads: int
) -> tuple[Units, NDArray[np.bool_], MemoryRows, Floats]:
    """Units, levels with rows, standardised rows, and which design columns of numbers vary."""
    observed, codes = observed_levels(design)
    units, numbers = _standardised(design, reference, n_threads)
    nodes = design.schema.spans.kept(observed).standardised(units.centre, units.scale)
    rows = MemoryRows(numbers, codes, nodes, design.weights, n_threads)
    return units, observed, rows, _varying(numbers, codes, nodes, units.scale)


def _standardised(
    design: Design, reference: Reference | None = None, n_threads: int = 1
) -> tuple[Units, Floats]:
    """Population moments (ddof = 0, weighted) and a standardised copy of all numbers and scores."""
    share = _shares(design)
    columns = design.schema.spans.numbers(design.numbers, design.codes)
    centre = share @ columns
    numbers, squares = np.empty_like(columns), np.empty_like(columns)

    def centred(rows: slice) -> None:
        np.subtract(columns[rows], centre, out=numbers[rows])
        np.square(numbers[rows], out=squares[rows])

    _by_rows(centred, columns.shape, n_threads)
    units, constant = units_of(centre, share @ squares, reference)
    if constant.any():
        numbers[:, constant] = 0.0

    def scaled(rows: slice) -> None:
        numbers[rows] /= units.scale

    _by_rows(scaled, numbers.shape, n_threads)
    return units, numbers


def _by_rows(change: Callable[[slice], None], shape: tuple[int, ...], n_threads: int) -> None:
    """Change every number of a table by itself, blocks of rows on threads."""
    n_rows, n_columns = shape
    n_threads = threads_for(n_rows * n_columns, n_threads)
    some = max(1, -(-n_rows // max(n_threads, n_rows * n_columns // _NUMBERS_OF_A_BLOCK)))
    run_all([partial(change, slice(a, a + some)) for a in range(0, n_rows, some)], n_threads)


def _shares(design: Design) -> Floats:
    """(n,) weight of every row divided by the total weight."""
    if design.weights is None:
        return np.full(design.n_rows, 1.0 / design.n_rows)
    return np.asarray(design.weights / design.total_weight)


def _varying(numbers: Floats, codes: NDArray[np.integer], nodes: Nodes, unit: Floats) -> Floats:
    """1 for every design column of numbers that varies, and 0 for a constant.

    A hurdle column varies if it has zeros and two other values.
    """
    varies = (numbers[:_FIRST_ROWS] != 0.0).any(axis=0)
    same = np.flatnonzero(~varies)  # as far as one sees in the first rows
    varies[same] = (numbers[:, same] != 0.0).any(axis=0)
    varies = varies.astype(np.float64)
    for j, column in enumerate(nodes.spiked_terms[1].tolist()):
        there = numbers[codes[:, j] > 0, column + 1]
        rounding = 1e-13 * abs(nodes.locations[nodes.discrete_nodes[j]]) / unit[column + 1]
        if len(there) in (0, len(codes)) or np.ptp(there) <= rounding:
            varies[column : column + 2] = 0.0
    return np.asarray(varies)


def _known_terms(
    nodes: Nodes, varies: Floats, units: Units, reference: Reference | None
) -> dict[int, Floats | None]:
    """Means of statistics of hurdle columns that do not vary, by number; None where not known."""
    columns = nodes.spiked_terms[1]
    known: dict[int, Floats | None] = {}
    for j in np.flatnonzero(varies[columns] == 0.0).tolist():
        unit = units.scale[columns[j] + 1]
        known[j] = (
            None if reference is None else reference.spiked[j] / np.array([1.0, unit, unit**2])
        )
    return known


def _moments(
    rows: MemoryRows | PartedRows | DeviceRows,
    spiked: dict[int, Floats | None],
    *,
    wide: bool = False,
) -> Moments | ColumnMoments:
    """Moments of the rows; a constant number gets variance 1: its own term has an optimum then.

    Hurdle columns that do not vary get the means of their statistics that are known.  Those of a
    wide table are of single columns.
    """
    moments, nodes = rows.column_moments() if wide else rows.moments(), rows.nodes
    if isinstance(moments, ColumnMoments):
        squares = np.where(moments.squares > 0.0, moments.squares, 1.0)
        moments = replace(moments, squares=squares, shares=moments.shares.copy())
    else:
        second, at = moments.second, np.flatnonzero(nodes.gaussian_nodes)
        second[at, at] = np.where(second[at, at] > 0.0, second[at, at], 1.0)
    for j, means in spiked.items():
        if means is not None:
            moments.shares[nodes.slots_of(j)] = means
    return moments


def observed_levels(design: Design) -> tuple[NDArray[np.bool_], NDArray[np.integer]]:
    """Levels with rows, and codes counted over those only.

    Values that have no term of their own are possible without rows, and count as observed.
    """
    masks, columns, free = [], [], design.schema.spans.free
    first = design.codes[:_FIRST_ROWS]
    for at, count in enumerate(design.schema.n_levels):
        column = design.codes[:, at]
        seen = np.bincount(first[:, at], minlength=count) > 0
        seen |= not free[at]
        if not seen.all():  # in the first rows
            seen |= np.bincount(column, minlength=count) > 0
        masks.append(seen)
        if not seen.all():
            column = (np.cumsum(seen) - 1).astype(design.codes.dtype)[column]
        columns.append(column)
    if not masks:
        return np.zeros(0, dtype=bool), design.codes
    mask = np.concatenate(masks)
    return mask, design.codes if mask.all() else np.column_stack(columns)


def _by_column(observed: NDArray[np.bool_], schema: Schema) -> list[NDArray[np.bool_]]:
    """The mask of every discrete column by itself."""
    return np.split(observed, np.cumsum(schema.n_levels)[:-1]) if schema.n_levels else []


def _degenerate(
    schema: Schema,
    constant: NDArray[np.bool_],
    observed: NDArray[np.bool_],
    reference: Reference | None,
) -> tuple[str, ...]:
    """Names of the nodes that are constant or lack levels, in the order of the nodes."""
    expected = np.ones_like(observed) if reference is None else reference.observed
    lacking = [bool(part.any()) for part in _by_column(expected & ~observed, schema)]
    odd = constant.copy()
    odd[schema.spans.discrete_nodes] |= np.array(lacking, dtype=bool)
    return tuple(node.name for node, is_odd in zip(schema.nodes, odd, strict=True) if is_odd)
