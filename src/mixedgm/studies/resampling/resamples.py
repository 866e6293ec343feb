"""A design, a fitted model and seeds -> one small record per resample.

Rows that are drawn several times are folded into weights, the table is never encoded again, and
every resample starts from the whole table's estimate.

A graph that the whole table fixes, and a resample -> every pair's estimate without shrinkage.

Selection in a resample finds an edge or does not, so that its weight is no estimate of anything.
Given a graph that is the same in all resamples, every pair has a regular one: edges of the graph by
its refit, other pairs by one Newton step.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.checkpoint import Record
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.fitting import fit_design, fit_gaps
from mixedgm.fit.options import Options
from mixedgm.inference.pairs import estimated_pairs, inverse_curvature
from mixedgm.inference.strength import ConditionalInformation, RestRows, freedom, strength
from mixedgm.model.layout import Floats, Ints, Layout, pair_numbers
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params, to_theta
from mixedgm.path.path import solve_among_all
from mixedgm.path.recipe import Lam, Recipe, by_conditionals
from mixedgm.path.refits import Unshrunken, refit_of_resample, too_dense, unshrunken
from mixedgm.path.rounds import FEWEST, ROUGH, Incomplete, Settled, Unpenalised
from mixedgm.path.task import Reference, Task, prepare
from mixedgm.select.pair_tests import ridged, rows_of
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.loop import Account, Solver
from mixedgm.solve.neighbour import Chord, Neighbour, Secant, neighbour_of
from mixedgm.solve.working_set import Solution, Start, solve
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps

Kind = Literal["nonparametric", "case-dropping"]
Seed = np.random.SeedSequence
_ROUNDS = 6
"""In which a resample with gaps is completed."""

# Plans that this process has seen: resamples that run here share what a plan has computed.
_plans: dict[str, ResamplingPlan] = {}


@dataclass(frozen=True, eq=False)
class ResamplingPlan:
    """Everything that is the same for all resamples: the whole table, its model, how to draw."""

    key: str  # a fingerprint of all the rest
    design: Design
    options: Options  # of the model; with `lam` given where it is kept
    params: Params  # of the model: where every resample starts
    kind: Kind
    clusters: Ints | None = None  # (n,) number of every row's cluster; clusters are drawn whole
    ridge: tuple[tuple[str, str], ...] = ()  # edges of the model that have a ridge
    held: HeldGraph | None = None  # given which all pairs are estimated without shrinkage
    gaps: Gaps | None = None  # the rows that those of the design complete, if they do
    at: RestRows | None = None  # rows at which strengths of edges are computed, if they are

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _plan, tuple(getattr(self, each.name) for each in fields(self))

    @cached_property
    def recipe(self) -> Recipe:
        """How rows become a problem."""
        return self.options.recipe(self.design.schema)

    @cached_property
    def whole(self) -> Task:
        """The problem of the whole table."""
        return self._whole[0]

    @cached_property
    def _whole(self) -> tuple[Task, Params | None]:
        """The same with the optimum at the model's lam, whose candidates a wide table has."""
        task = prepare(self.design, self.recipe)
        if task.beyond is None:
            return task, None
        task = task.with_edges_of(self.params)
        if self.options.lam is None:
            return task, None
        task, solution = _solved(task, self.options, task.theta_of(self.params))
        return task, task.params(solution.theta)

    @cached_property
    def whole_by_pairs(self) -> Task:
        """The same by the pseudolikelihood, in which all pairs are estimated."""
        recipe = by_conditionals(self.recipe)
        same = (recipe.loss, recipe.weights) == (self.recipe.loss, self.recipe.weights)
        return self.whole if same else prepare(self.design, recipe)

    @cached_property
    def solver_by_pairs(self) -> Solver:
        """What refits the graph that is held."""
        assert self.held is not None
        return self.held.solver(self.whole_by_pairs)

    @cached_property
    def reference(self) -> Reference:
        """What resamples keep of the whole table."""
        return replace(Reference.of(self.design), layout=self.whole.layout)

    @cached_property
    def declared(self) -> Layout:
        """All pairs of columns, over all declared levels: how records count parameters."""
        return Layout.complete(self.design.schema.spans)

    @cached_property
    def penalised(self) -> Params:
        """The whole table's optimum at the model's lam; the model itself unless refitted."""
        if not self.options.refits:
            return self.params
        if self._whole[1] is not None:
            return self._whole[1]
        theta = self.whole.theta_of(self.params)
        task, solution = _solved(self.whole, self.options, theta)
        return task.params(solution.theta)

    @cached_property
    def neighbour(self) -> Neighbour:
        """What resamples at the same lam can use of the whole table's solution."""
        problem = self.whole.problem(_lam(self.options, self.whole))
        theta = self.whole.theta_of(self.penalised)
        return neighbour_of(problem, self.options.solver_object, theta)

    @cached_property
    def settled(self) -> Ints:
        """Edges (triples) that the model has, and without a ridge."""
        layout, nodes = self.whole.layout, self.whole.schema.nodes
        with_ridge = {frozenset(pair) for pair in self.ridge}
        edges = layout.triples[layout.active(self.whole.theta_of(self.params))]
        names = (frozenset((nodes[u].name, nodes[v].name)) for u, v, _ in edges.tolist())
        return np.asarray(edges[np.array([pair not in with_ridge for pair in names], dtype=bool)])

    @cached_property
    def alone(self) -> Params:
        """The whole table's columns without edges: biases are logarithms of frequencies."""
        return self.whole.params(self.whole.smooth.null())

    def start(self, task: Task, params: Params) -> Floats:
        """Parameters of the whole table, own terms moved as the frequencies of values have moved.

        Curvature at a rare level is as variable as its frequency.  The logarithm takes account of
        the whole change at once, where Newton steps would need several.
        """
        theta = task.theta_of(params)
        bias, nodes = task.layout.biases, task.layout.nodes
        precisions = task.layout.positive[nodes.spiked_nodes[: nodes.n_real]]
        null, alone, before = task.smooth.null(), task.theta_of(self.alone), theta[precisions]
        theta[bias] += null[bias] - alone[bias]
        theta[precisions] = before * null[precisions] / alone[precisions]
        return theta

    @property
    def chooses(self) -> bool:
        """Whether every resample has a path of its own."""
        return self.options.lam is None and self.options.lams is None

    @property
    def rows(self) -> Design | Gaps:
        """What is drawn from."""
        return self.design if self.gaps is None else self.gaps

    def completed(self, gaps: Gaps) -> Settled:
        """A resample with gaps, completed by what it says itself, starting from the whole table.

        The model that completes it is as dense as any that is looked for: the graph that is held,
        or a fit with little penalty.
        """
        recipe = by_conditionals(self.recipe)
        incomplete = Incomplete.of(gaps, recipe, self.reference, n_draws=FEWEST)
        if self.held is None:
            return incomplete.weak(self.pairwise, most=_ROUNDS)
        goal = Unpenalised(self.held.edges)
        tol = ROUGH / np.sqrt(gaps.total_weight)
        return incomplete.settle(goal, self.held.params, tol=tol, most=_ROUNDS)

    @property
    def pairwise(self) -> Params:
        """The model with one coefficient for both ends of an edge."""
        return self.params.pairwise

    # -- drawing -----------------------------------------------------------------------------------

    @cached_property
    def frequencies(self) -> NDArray[np.int64] | None:
        """Weights that are whole numbers, and so count identical rows."""
        weights = self.rows.weights
        if weights is None or not np.array_equal(weights, np.rint(weights)):
            return None
        return weights.astype(np.int64)

    @property
    def n_units(self) -> int:
        """How many things are drawn from: clusters, identical rows one by one, or rows."""
        if self.clusters is not None:
            return int(self.clusters.max()) + 1
        return self.rows.n_rows if self.frequencies is None else int(self.frequencies.sum())

    def draw(self, seed: Seed, share: float) -> Design | Gaps:
        """The rows of one resample; case-dropping leaves out `share` of them."""
        rng = np.random.default_rng(seed)
        n = self.n_units
        kept = n if self.kind == "nonparametric" else max(1, round((1.0 - share) * n))
        if self.clusters is None and self.frequencies is not None:
            return self.folded(self._frequencies_drawn(rng, kept))
        if self.kind == "nonparametric":
            count = np.bincount(rng.integers(n, size=n), minlength=n)
        else:
            count = np.zeros(n, dtype=np.int64)
            count[rng.permutation(n)[:kept]] = 1
        count = count if self.clusters is None else count[self.clusters]
        weights = self.rows.weights
        return self.folded(count if weights is None else count * weights)

    def _frequencies_drawn(self, rng: np.random.Generator, kept: int) -> NDArray[np.int64]:
        assert self.frequencies is not None
        if self.kind == "nonparametric":
            return rng.multinomial(kept, self.frequencies / self.frequencies.sum())
        return np.asarray(
            rng.multivariate_hypergeometric(self.frequencies, kept, method="marginals")
        )

    def folded(self, weights: NDArray[Any]) -> Design | Gaps:
        """The rows that have a weight, with these weights."""
        rows = np.flatnonzero(weights)
        return replace(self.rows.take(rows), weights=weights[rows].astype(np.float64))


def _plan(key: str, *fields: Any) -> ResamplingPlan:
    """The plan with this key that the process has already, or a new one."""
    if key not in _plans:
        _plans.clear()
        _plans[key] = ResamplingPlan(key, *fields)
    return _plans[key]


# -- fitting ---------------------------------------------------------------------------------------


def resample(plan: ResamplingPlan, task: tuple[Seed, float]) -> Record:
    """Draw one resample, fit it, and keep what the reports need.

    The record holds the numbers of the pairs of columns that have an edge, the parameters of these
    edges (all declared levels, zero for those without rows), the node terms (minus infinity for a
    level without rows), the scale of every column (zero for a constant one), lam, the KKT number
    and whether it is within tol; with a graph that is held, the estimates given it.
    """
    seed, share = task
    drawn = plan.draw(seed, share)
    design = plan.completed(drawn).design if isinstance(drawn, Gaps) else drawn
    if isinstance(drawn, Gaps) and plan.chooses:
        options = replace(plan.options, random_state=_own_seed(seed))
        fitted = fit_gaps(drawn, options, reference=plan.reference, start=plan.pairwise)
        record = estimate_record(plan, fitted)
    else:
        record = drawn_record(plan, design, seed)
    return record | pair_record(plan, design) if plan.held is not None else record


def pair_record(plan: ResamplingPlan, design: Design) -> Record:
    """Every pair's estimate given the graph that is held."""
    assert plan.held is not None
    whole, declared = plan.whole_by_pairs, plan.declared
    reference = replace(plan.reference, layout=whole.layout)
    task = prepare(design, by_conditionals(plan.recipe), reference)
    theta = plan.start(task, plan.held.params)
    task = replace(task, solver=plan.solver_by_pairs)
    return plan.held.record(task, whole, theta, declared)


def drawn_record(plan: ResamplingPlan, design: Design, seed: Seed) -> Record:
    """Fit rows that were drawn by this seed, at the plan's lam or choosing it."""
    if plan.options.lam is not None:
        return fitted_record(plan, design)
    options = replace(plan.options, random_state=_own_seed(seed))
    return estimate_record(plan, fit_design(design, options, reference=plan.reference))


def _own_seed(seed: Seed) -> Seed:
    """Folds and the like have a seed of their own."""
    return Seed(seed.entropy, spawn_key=(*seed.spawn_key, 0))


def estimate_record(plan: ResamplingPlan, fitted: FittedModel) -> Record:
    """The record of a fitted model."""
    report = fitted.report
    return _record(plan, fitted.params, fitted.node_scales, report.lam, report)


def fitted_record(plan: ResamplingPlan, design: Design) -> Record:
    """Fit these rows at the plan's lam."""
    task = prepare(design, plan.recipe, plan.reference)
    theta = plan.start(task, plan.penalised)
    task, solution = _solved(task, plan.options, theta, plan.neighbour)
    if plan.options.refits:
        solution = _refitted(plan, task, solution)
    lam, params = _lam(plan.options, task), task.params(solution.theta)
    return _record(plan, params, task.node_scales, lam, solution)


def _lam(options: Options, task: Task) -> Lam:
    lam = options.given_lam(task.schema)
    assert lam is not None
    return lam


def _solved(
    task: Task, options: Options, theta: Floats, neighbour: Neighbour | None = None
) -> tuple[Task, Solution]:
    """The optimum at the model's lam; a wide task may get new candidates."""
    here = task.smooth.evaluate(theta)
    start, solver = Start(theta, here), options.solver_object
    if neighbour is not None:
        start = neighbour.start(theta, here, task.layout)
    if start.memory is not None:
        solver = Chord(solver)
    lam = _lam(options, task)
    if task.beyond is not None:
        assert isinstance(lam, float)
        recipe = Recipe(solver, options.tol, options.max_iter)
        task, solution, _ = solve_among_all(task, lam, recipe, start)
        return task, solution
    problem = task.problem(lam)
    return task, solve(problem, solver, start, tol=options.tol, max_iter=options.max_iter)


def _refitted(plan: ResamplingPlan, task: Task, solution: Solution) -> Solution:
    """The resample's own graph without shrinkage, starting from the whole table's refit."""
    layout, options = task.layout, plan.options
    groups = np.flatnonzero(layout.group_norms(solution.theta))
    theta = plan.start(task, plan.params)
    new = groups[layout.group_norms(theta)[groups] == 0.0]
    at = layout.positions(new)[layout.n_node_terms :]
    theta[at] = solution.theta[at]
    start, tol, max_iter = Start(theta, solution.evaluation), options.tol, options.max_iter
    if too_dense(task, groups):
        return solution
    known = task, plan.whole, groups, plan.settled
    return refit_of_resample(*known, start, tol=tol, max_iter=max_iter).solution


def _record(plan: ResamplingPlan, params: Params, scales: Floats, lam: Lam, end: Account) -> Record:
    own = replace(params, coef=params.edge_coef(plan.options.rule))
    node = own.nodes.column_node
    row, column = (node[part] for part in np.nonzero(own.coef))
    ends = np.unique(np.column_stack([row, column])[row < column], axis=0)
    layout = Layout(plan.design.schema.spans, ends)
    theta = to_theta(layout, own)
    single = np.nan if isinstance(lam, tuple) else lam  # where every column has its own
    strengths = {} if plan.at is None else {"strengths": _strengths(plan, params, own.coef, ends)}
    return (
        strengths
        | {
            "pairs": pair_numbers(layout.n_nodes, ends).astype(np.int32),
            "values": theta[layout.edges].copy(),  # a view would keep theta alive
            "node_terms": theta[: layout.n_node_terms].copy(),
            "scales": scales,
            "account": np.array([single, end.kkt, float(end.converged)]),
        }
    )


def _strengths(plan: ResamplingPlan, params: Params, coef: Floats, ends: Ints) -> Floats:
    """Strengths of the edges of a resample.

    Unshrunken estimates of a resample are noisy twice: as those of the rows that it is drawn from,
    and as its own.
    """
    (u, v), covariates = ends.T, plan.design.schema.covariates
    nats = ConditionalInformation(params, plan.at, covariates).of(u, v, coef)
    if not (plan.options.refits or plan.options.lam == 0.0):
        return strength(nats)
    return strength(nats, freedom(params, u, v) / plan.rows.total_weight)


# -- a graph that is held --------------------------------------------------------------------------

_TOL = 1e-2
"""Of a refit, in standard errors of a mean gradient."""
_MOST_AT_ONCE = 4000
"""Parameters of which the whole table's curvature is inverted."""


@dataclass(frozen=True, eq=False)
class HeldGraph:
    """What stands beside every pair in all resamples, and where their refits start."""

    method: str
    """ "free": all pairs; "graph": those that pass a test."""
    edges: Ints
    """Triples, as in layouts."""
    params: Params
    """The refit to the whole table."""
    settled: Ints
    """Edges (triples) that needed no ridge there."""

    @classmethod
    def of(cls, whole: Task, groups: Ints, method: str) -> HeldGraph:
        """Refit this graph to the whole table."""
        fit = unshrunken(whole, groups, whole.null, tol=0.01 * _tol(whole))
        params = whole.params(fit.solution.theta)
        triples = whole.layout.triples
        return cls(method, triples[groups], params, triples[np.setdiff1d(groups, fit.ridge)])

    def solver(self, whole: Task) -> Solver:
        """What refits resamples, with the whole table's curvature where that is not too large."""
        groups = whole.layout.groups_of(self.edges)
        small = whole.smooth.restrict(groups)
        if small.layout.n_theta > _MOST_AT_ONCE:
            return whole.solver
        theta = whole.theta_of(self.params)[whole.layout.positions(groups)]
        return Secant(small.layout, inverse_curvature(small, theta), whole.solver)

    def record(self, task: Task, whole: Task, theta: Floats, declared: Layout) -> Record:
        """Estimates of all pairs that may have an edge ("pair_values"), and of own terms ("own").

        All are in the data's own units and over all declared levels.  Those of a column that is
        constant in the resample, or has lost a level there, are not a number.
        """
        groups = task.layout.groups_of(self.edges)
        start = Start(theta, whole.null.evaluation)  # a refit evaluates where it begins
        fit = refit_of_resample(task, whole, groups, self.settled, start, tol=_tol(task))
        values, terms = _estimates(task, fit, groups, declared)
        for name in task.degenerate:
            node = task.schema.node_index(name)
            values[declared.spread((declared.pairs == node).any(axis=1)) > 0.0] = np.nan
            terms[declared.node_terms_of(node)] = np.nan
        numbers = declared.groups_of(whole.layout.triples)
        at = declared.positions(numbers)[declared.n_node_terms :] - declared.n_node_terms
        return {"pair_values": values[at], "own": terms}


def _tol(task: Task) -> float:
    return float(_TOL / np.sqrt(max(task.total_weight, 1.0)))


def has_empty_cells(task: Task, rows: Design) -> NDArray[np.bool_]:
    """(n_groups,) pairs of which some combination of levels has no rows.

    Its coefficient has no finite estimate, and what a ridge makes of it is not uncertain.  The
    amounts of a hurdle column are related to nothing that is the same in all rows that have one.
    """
    layout, nodes = task.layout, task.layout.nodes
    row, column = layout.edge_position
    empty = (np.minimum(row, column) >= nodes.n_numeric) & (task.second_moments(row, column) == 0.0)
    out = layout.group_sums(empty.astype(np.float64)) > 0.0
    for at, (u, v) in enumerate(layout.pairs.tolist()):
        for node, other in ((u, v), (v, u)):
            if nodes.spiked_nodes[node]:
                out[at] |= _is_flat(rows, nodes, other, rows.numbers[:, node] != 0.0)
    return out


def _is_flat(rows: Design, nodes: Nodes, node: int, some: NDArray[np.bool_]) -> bool:
    """Whether a column does not vary in some of the rows, or has not all its levels there."""
    if not nodes.gaussian_nodes[node]:
        codes = rows.codes[:, nodes.place(node)]
        there = np.unique(codes[some])
        indicators = not nodes.numeric_nodes[node]
        if len(there) < (len(np.unique(codes)) if indicators else 2):
            return True
    if not nodes.is_real(node):
        return False
    numbers = rows.numbers[some, node]
    known = numbers if nodes.gaussian_nodes[node] else numbers[numbers != 0.0]
    return len(np.unique(known)) < 2


def _estimates(
    task: Task, fit: Unshrunken, groups: Ints, declared: Layout
) -> tuple[Floats, Floats]:
    """Parameters of all pairs and own terms, in the data's own units and over declared levels."""
    theta = task.layout.centred(fit.solution.theta, groups)
    found = estimated_pairs(
        ridged(task, fit), rows_of(task), theta, groups, errors=False, row=task.row
    )
    contrasts = Contrasts(task.layout)
    eta = contrasts.down(theta)
    eta[contrasts.reduced.edges] = found.eta
    values = to_theta(declared, task.params(contrasts.up(eta)))[declared.edges]
    terms = to_theta(declared, task.params(theta))[: declared.n_node_terms]
    return values, terms.copy()
