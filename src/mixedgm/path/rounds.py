"""Rows with gaps and a goal -> the estimate whose own completions it is the estimate of.

Every round completes the rows by the parameters so far, and estimates them anew.  Where the rounds
end, the gradient vanishes at completions that the estimate itself has made: expectation and
solution agree (Dempster, Laird and Rubin 1977 for likelihoods, Elashoff and Ryan 2004 for other
estimating equations).  Steps are mixed with those before, so that fewer rounds are needed (Anderson
1965).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.progress import track
from mixedgm.base.threads import single_threaded_blas
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Coordinates, Params
from mixedgm.path.recipe import Lam, Recipe
from mixedgm.path.refits import refit_problem, unshrunken
from mixedgm.path.task import Reference, Task, prepare
from mixedgm.rows.predict import cell_losses
from mixedgm.solve.problem import Optimality, Problem
from mixedgm.solve.working_set import Start, solve
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps
from mixedgm.table.schema import Schema

if TYPE_CHECKING:
    from mixedgm.path.completion import Completer

MOST_ROUNDS = 60
ROUGH = 0.05
"""How nearly a graph that is only tried agrees with its completions, in standard errors."""
FEWEST = 20
"""States that are drawn for a row of a resample."""
_REDRAWN = 3
"""Rounds from nothing after which states that were drawn stay."""
_DEPTH = 5
_WORSE = 2.0
"""A mixed step after which the gradient is so many times as large is taken back."""
_STALLED = 8
_LOWEST_BIAS = -500.0
"""Bias of a level without rows: next to impossible. Minus infinity would rule out other levels,
too."""


class Goal(Protocol):
    """Contract of an estimate from completed rows."""

    def kkt(self, task: Task, theta: Floats) -> float:
        """How far theta is from the estimate."""

    def solved(self, task: Task, theta: Floats, tol: float) -> Floats:
        """The estimate, starting from theta."""


@dataclass(frozen=True, eq=False)
class AtLam:
    """The estimate at a penalty, of all edges or of some only."""

    lam: Lam
    recipe: Recipe
    edges: Ints | None = None
    """Triples; None: all that the completed rows have."""

    def groups(self, task: Task) -> Ints | None:
        """Groups that are estimated; None for all."""
        return None if self.edges is None else task.layout.groups_of(self.edges)

    def optimality(self, task: Task, theta: Floats) -> Optimality:
        """Optimality of theta over all edges, or over `edges` only."""
        problem, at = self._problem(task)
        return problem.optimality(theta[at])

    def kkt(self, task: Task, theta: Floats) -> float:
        """KKT number of theta; infinite where theta is not a distribution."""
        problem, at = self._problem(task)
        return _kkt(problem, theta[at])

    def solved(self, task: Task, theta: Floats, tol: float) -> Floats:
        """Estimate by the solver of the fit."""
        problem, at = self._problem(task)
        start = Start(theta[at], problem.smooth.evaluate(theta[at]))
        if start.evaluation.grad is None:  # no distribution
            start = Start(problem.smooth.null(), problem.smooth.evaluate(problem.smooth.null()))
        most, solved = self.recipe.max_iter, np.zeros(task.layout.n_theta)
        with single_threaded_blas():
            solution = solve(problem, self.recipe.solver, start, tol=tol, max_iter=most)
        solved[at] = solution.theta
        return solved

    def _problem(self, task: Task) -> tuple[Problem, Ints | slice]:
        problem, groups = task.problem(self.lam), self.groups(task)
        if groups is None:
            return problem, slice(None)
        small, penalty = task.smooth.restrict(groups), problem.penalty.restrict(groups)
        small_problem = Problem(small, penalty, problem.lam, task.yardstick[groups])
        return small_problem, task.layout.positions(groups)


@dataclass(eq=False)
class Unpenalised:
    """A graph without shrinkage; edges that need a ridge have it in all rounds."""

    edges: Ints | None
    """Triples; None: all that the completed rows have."""
    max_iter: int = 200
    variances: Floats | None = None
    """(n_groups,) variances of the coefficients of every edge, if these are known; see
    `ridge_of`."""
    _ridge: tuple[Ints, Ints] | None = field(default=None, init=False)
    """Edges that need a ridge, and numbers that need noise, once these are known."""
    _judged: Ints | None = field(default=None, init=False)
    """The edges when they became known."""

    def groups(self, task: Task) -> Ints:
        """The graph in the layout of a task."""
        everything = task.layout.triples if self.edges is None else self.edges
        return task.layout.groups_of(everything)

    def ridge(self, task: Task) -> tuple[Ints, Ints]:
        """Groups of a task that need a ridge, and numbers that need noise, as far as is known."""
        edges, noisy = self._ridge or (np.zeros((0, 3), np.int64), np.zeros(0, np.int64))
        return task.layout.groups_of(edges), noisy

    def optimality(self, task: Task, theta: Floats) -> Optimality:
        """Optimality of theta over the graph's own parameters."""
        problem, at = self._problem(task)
        return problem.optimality(theta[at])

    def kkt(self, task: Task, theta: Floats) -> float:
        """KKT number of theta; infinite until it is known which edges need a ridge."""
        if not self._is_known(task):
            return np.inf
        problem, at = self._problem(task)
        return _kkt(problem, theta[at])

    def solved(self, task: Task, theta: Floats, tol: float) -> Floats:
        """Estimate by `unshrunken` the first time, and then with the ridge that this chose."""
        start, groups = Start(theta, task.null.evaluation), self.groups(task)
        if not self._is_known(task):
            fit = unshrunken(task, groups, start, tol=tol, max_iter=self.max_iter)
            triples = task.layout.triples
            self._ridge, self._judged = (triples[fit.ridge], fit.noisy), triples[groups]
            return fit.solution.theta
        problem, _ = self._problem(task)
        how = task.solver, tol, self.max_iter
        with single_threaded_blas():
            return task.confined(problem, groups, start, *how).theta

    def _is_known(self, task: Task) -> bool:
        """Whether it is known which of these edges need a ridge."""
        now = task.layout.triples[self.groups(task)]
        return self._judged is not None and np.array_equal(self._judged, now)

    def _problem(self, task: Task) -> tuple[Problem, Ints]:
        groups = self.groups(task)
        problem = refit_problem(task, groups, *self.ridge(task), self.variances)
        return problem, task.layout.positions(groups)


def _kkt(problem: Problem, theta: Floats) -> float:
    """The KKT number; a mixed step may have left the distributions, where there is none."""
    evaluation = problem.smooth.evaluate(theta)
    return np.inf if evaluation.grad is None else problem.measure(theta, evaluation.grad)


@dataclass(frozen=True, eq=False)
class Settled:
    """Where the rounds ended."""

    params: Params
    design: Design
    """The rows, completed by these parameters."""
    task: Task
    theta: Floats
    kkt: float
    n_rounds: int
    converged: bool
    interrupted: bool = False


@dataclass(frozen=True, eq=False)
class Incomplete:
    """Rows with gaps, and how completed ones become a task.

    Parameters
    ----------
    gaps : Gaps
        The rows.
    recipe : Recipe
        Recipe, with a loss that has a joint distribution.
    reference : Reference, optional
        Values of the table that the rows are a resample of.
    n_threads : int
        Threads for passes over the completed rows.
    """

    gaps: Gaps
    recipe: Recipe
    reference: Reference | None = None
    n_threads: int = 1
    rich: Params | None = None
    """A model at least as dense as any that is looked for, by which resamples begin."""
    completer: Completer = None  # type: ignore[assignment]

    @classmethod
    def of(
        cls,
        gaps: Gaps,
        recipe: Recipe,
        reference: Reference | None = None,
        n_threads: int = 1,
        *,
        n_draws: int | None = None,
    ) -> Incomplete:
        """Separate regressions have no joint distribution: they follow the pseudolikelihood's.

        `n_draws` are the states that are drawn for a row with too many.
        """
        if recipe.loss == "nodewise":
            recipe = replace(recipe, loss="pseudolikelihood")
        from mixedgm.path.completion import Completer, CompletionLimits, with_constants_filled

        likelihood = recipe.loss.startswith("likelihood")
        limits = CompletionLimits(512 if likelihood else 64, sigma=likelihood, n_draws=n_draws)
        completer = Completer(with_constants_filled(gaps), limits)
        return cls(gaps, recipe, reference, n_threads, None, completer)

    def with_recipe(self, recipe: Recipe) -> Incomplete:
        """Return these rows with another recipe."""
        n_draws = self.completer.limits.n_draws
        other = Incomplete.of(self.gaps, recipe, self.reference, self.n_threads, n_draws=n_draws)
        return replace(other, rich=self.rich)

    def at(self, params: Params | None, *, redraw: bool = False) -> tuple[Design, Task]:
        """The rows completed by a model, and the task that they make; without a model, roughly."""
        if params is None:
            design = self.completer.hot_deck()
        else:
            design = self.completer.completed(params, redraw=redraw)
        recipe = replace(self.recipe, most_parameters=np.inf)  # all rounds have the same layout
        task = prepare(design, recipe, self.reference, self.n_threads)
        return design, replace(task, incomplete=self)

    def weak(self, start: Params | None = None, *, most: int = 12) -> Settled:
        """A fit with little penalty: denser than any graph that is chosen."""
        _, task = self.at(start)
        lam = task.smooth.terms_per_edge / np.sqrt(task.total_weight)
        lam = min(lam, 0.5 * task.lam_max) if task.lam_max > 0.0 else lam
        return self.settle(AtLam(lam, self.recipe), start, tol=1e-2 * lam, most=most)

    def settle(
        self,
        goal: Goal,
        start: Params | None,
        *,
        tol: float,
        most: int = MOST_ROUNDS,
        show: bool = False,
        keep_interrupted: bool = False,
    ) -> Settled:
        """Complete and estimate by turns until both agree."""
        mixing, params, judged = _Mixing(), start, None
        redrawn = _REDRAWN if start is None else 1
        best, since, interrupted, rows = np.inf, 0, False, None
        for number in track(range(most), show=show, what="rounds", total=most):
            try:
                rows = None  # completed anew, they need not stand in memory twice
                rows = self.at(params, redraw=number < redrawn and params is not None)
                task = rows[1]
                theta = task.null.theta if params is None else task.theta_of(params)
                kkt = np.inf if params is None else goal.kkt(task, theta)
                judged = None if params is None else (params, number)
                if kkt <= tol and (number >= redrawn or not self.completer.has_draws):
                    break
                if kkt > _WORSE * best and mixing.mixed:
                    params, best = mixing.taken_back(), np.inf
                    continue
                since = 0 if kkt < 0.9 * best else since + 1
                best = min(best, kkt)
                if since >= _STALLED:
                    break
                inner = 0.1 * kkt if np.isfinite(kkt) else 1e-2
                solved = goal.solved(task, theta, max(min(inner, 1e-2), 0.3 * tol))
                if params is None or number < redrawn:
                    params = task.params(solved)
                else:
                    params = mixing.next(task, params, solved)
                del task
            except KeyboardInterrupt:
                if not keep_interrupted or judged is None:
                    raise
                params, interrupted = judged[0], True
                break
        n_rounds = most if judged is None or judged[0] is not params else judged[1]
        if rows is None or judged is None or judged[0] is not params:
            rows = None
            rows = self.at(params)
        design, task = rows
        assert params is not None
        theta = task.theta_of(params)
        kkt = goal.kkt(task, theta)
        done = kkt <= tol and not interrupted
        return Settled(params, design, task, theta, kkt, n_rounds, done, interrupted)

    def error(self, goal: Goal, settled: Settled) -> float:
        """Monte Carlo standard error of the KKT number: what it is with other points and draws."""
        if not self.completer.has_draws and not self.completer.has_points:
            return 0.0
        self.completer.forget()
        other = replace(self, completer=self.completer.reseeded())
        _, task = other.at(settled.params)
        return float(goal.kkt(task, task.theta_of(settled.params)) / np.sqrt(2.0))

    # -- subsets -----------------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of rows of the table with gaps."""
        return self.gaps.n_rows

    def take(self, rows: Ints) -> Design:
        """Some of the rows, completed by what they themselves say."""
        some = Incomplete.of(self.gaps.take(rows), self.recipe, self.reference, n_draws=FEWEST)
        return some.weak(self.rich, most=2).design

    @property
    def schema(self) -> Schema:
        """Schema of the table."""
        return self.gaps.schema

    @property
    def kept(self) -> Ints | None:
        """Where the rows are in the table that they come from; None when all of them are here."""
        return None if self.gaps.kept is None else np.asarray(self.gaps.kept)

    def values_of(self, node: int) -> NDArray[Any]:
        """Numbers or codes of a node, NaN or -1 where they are missing."""
        spans = self.gaps.schema.spans
        if spans.is_real(node):
            return np.asarray(self.gaps.numbers[:, node])
        return np.asarray(self.gaps.codes[:, spans.place(node)])

    def weight_of(self, rows: Ints) -> float:
        """The sum of the weights of some rows."""
        weights = self.gaps.weights
        return float(len(rows)) if weights is None else float(weights[rows].sum())

    def held_out_loss(self, rows: Ints, params: Params, n_observed: float) -> float:
        """Mean negative log likelihood of the observed cells of some rows, given the others there.

        A level that none of the `n_observed` rows of the fit had counts half a row.
        Over completions by the model itself, the mean of 1 / p of a cell given all others is 1 / p
        given those that are observed.  A level that none of the `n_observed` rows of the model had
        counts as half a row, and says nothing about missing cells.
        """
        gaps = self.gaps.take(rows)
        possible = replace(params, bias=np.maximum(params.bias, _LOWEST_BIAS))
        design = self.completer.of(gaps).completed(possible)
        assert design.row is not None
        assert design.weights is not None
        losses = cell_losses(params, design.numbers, design.codes, n_observed)
        order = np.argsort(design.row, kind="stable")
        starts = np.flatnonzero(np.diff(design.row[order], prepend=-1))
        losses, weights = losses[order], design.weights[order]
        total = np.add.reduceat(weights, starts)
        top = np.maximum.reduceat(losses, starts, axis=0)
        number = np.cumsum(np.diff(design.row[order], prepend=-1) != 0) - 1
        sums = np.add.reduceat(weights[:, None] * np.exp(losses - top[number]), starts, axis=0)
        mean = top + np.log(sums / total[:, None])
        targets = [gaps.schema.node_index(name) for name in gaps.schema.targets]
        observed = ~gaps.missing[:, targets]
        return float(total @ np.where(observed, mean[:, targets], 0.0).sum(axis=1) / total.sum())


class _Mixing:
    """Steps of the last rounds, from which the next point is extrapolated."""

    def __init__(self) -> None:
        self.coordinates: Coordinates | None = None
        self.steps: list[Floats] = []
        self.ends: list[Floats] = []
        self.mixed = False

    def next(self, task: Task, params: Params, solved: Floats) -> Params:
        """The parameters to go on from, by those that were completed by and those estimated."""
        if self.coordinates is None or not task.layout.same(self.coordinates.layout):
            self.coordinates, self.steps, self.ends = task.coordinates, [], []
        end = self._theta(task.params(solved))
        self.steps.append(end - self._theta(params))
        self.ends.append(end)
        del self.steps[: -_DEPTH - 1], self.ends[: -_DEPTH - 1]
        self.mixed = len(self.steps) > 1
        if not self.mixed:
            return self.coordinates.params(end)
        layout = self.coordinates.layout
        active = layout.positions(np.flatnonzero(layout.group_norms(end)))
        step = self.steps[-1][active]
        apart = np.array([step - each[active] for each in self.steps[:-1]]).T
        share, *_ = np.linalg.lstsq(apart, step, rcond=1e-8)
        mixed = np.zeros_like(end)
        mixed[active] = end[active]
        for times, before in zip(share, self.ends[:-1], strict=True):
            mixed[active] -= times * (end - before)[active]
        positive = layout.positive
        if (mixed[positive] <= 0.2 * end[positive]).any():
            self.mixed = False
            mixed = end
        return self.coordinates.params(mixed)

    def taken_back(self) -> Params:
        """The last estimate itself; what was before it is forgotten."""
        assert self.coordinates is not None
        end = self.ends[-1]
        self.steps, self.ends, self.mixed = [], [], False
        return self.coordinates.params(end)

    def _theta(self, params: Params) -> Floats:
        assert self.coordinates is not None
        return self.coordinates.theta(params, self.coordinates.over_observed(params))
