"""Task + grid -> Path: warm-started, certified solutions, in wide tables among candidates.

A wide task and a lam -> the solution among all pairs, of which only candidates are laid out.

Pairs become candidates when their gradient comes near its bound.  At a solution among candidates
the rows are asked for all others: what breaks its bound there becomes a candidate, and the lam is
solved on, until the certificate holds for all pairs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.base.errors import DistributionError, ParameterError, TooLargeError, level_of_caller
from mixedgm.base.parallel import Runtime
from mixedgm.base.printable import quoted
from mixedgm.base.progress import track
from mixedgm.base.threads import single_threaded_blas, using_threads
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.moderation import Moderators
from mixedgm.model.params import Coordinates, Params, Units, joined
from mixedgm.path.parted_rows import losses_of
from mixedgm.path.recipe import Loss, Recipe
from mixedgm.path.task import Task
from mixedgm.rows.contract import Outside
from mixedgm.solve.loop import Account, Cost, Status, TraceRow
from mixedgm.solve.working_set import Solution, Start, solve
from mixedgm.table.encode import Design, apply
from mixedgm.table.parted.design import PartedDesign
from mixedgm.table.schema import Schema


@dataclass(frozen=True, eq=False)
class PathPoint(Account):
    """The solution at one lam, active groups only; the objective is in the data's own units."""

    lam: float
    node_terms: Floats
    groups: Ints
    values: Floats
    notes: tuple[str, ...] = ()
    trace: tuple[TraceRow, ...] = ()

    @property
    def terms(self) -> Floats:
        """Node terms, then coefficients of active groups."""
        return np.concatenate([self.node_terms, self.values])


def _per_lam(name: str, doc: str) -> cached_property[Floats]:
    """An attribute of every point, as an array over the points."""

    def column(path: Path) -> Floats:
        return np.array([getattr(point, name) for point in path.points], dtype=np.float64)

    column.__doc__ = doc
    return cached_property(column)


@dataclass(frozen=True, eq=False)
class Path:
    """Solutions for many penalties, from the largest to the smallest.

    `mixedgm.fit_path` returns one, and a fitted model holds the one that its penalty was chosen
    from: ``model.path_``.

    Attributes
    ----------
    lams : ndarray
        The penalties, largest first.
    n_edges, objective, kkt, kkt_relative, converged : ndarray
        One entry per lam; `kkt_relative` is `kkt` divided by lam.
    passes, curvature_passes, seconds, pass_seconds, curvature_seconds : ndarray
        Cost of each lam; `seconds` is the total time.
    lam_max : float
        The smallest lam without penalised edges.
    schema : Schema
        The columns of the table.
    loss : str
        Loss that was minimised besides the penalty.
    points : tuple of PathPoint
        Everything about each lam: status, notes, steps.

    See Also
    --------
    mixedgm.fit_path : solves for many penalties.

    Examples
    --------
    >>> import numpy as np, mixedgm as mg
    >>> x = np.random.default_rng(0).normal(size=(200, 2)) @ [[1, 0.5], [0, 1]]
    >>> path = mg.fit_path(x, n_lams=3, lam_min_ratio=0.1)
    >>> path.n_edges.tolist(), path.edges(2)
    ([0, 1, 1], (('x0', 'x1'),))
    """

    points: tuple[PathPoint, ...]
    lam_max: float
    schema: Schema
    layout: Layout
    units: Units
    observed: NDArray[np.bool_]
    total_weight: float
    rule: str = "and"
    loss: Loss = "pseudolikelihood"
    moderators: Moderators | None = None
    end: Start | None = None
    """Where the solver stood at the last lam, with all that it remembers; not kept in files."""
    grown: Task | None = None
    """Task with all candidates of the path of a wide table; not kept in files."""
    n_permitted: int | None = None
    """Number of pairs that may have an edge, where the layout has only some of them."""

    @classmethod
    def of(cls, task: Task, points: tuple[PathPoint, ...] = (), end: Start | None = None) -> Path:
        """The path of a task, as far as it is solved."""
        return cls(
            points,
            task.lam_max,
            task.schema,
            task.layout,
            task.units,
            task.observed,
            task.total_weight,
            task.rule,
            task.loss,
            task.moderators,
            end,
            None if task.beyond is None else task,
            None if task.beyond is None else task.beyond.number,
        )

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "end": None, "grown": None}

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        if not self.points:
            return "<Path of 0 lam>"
        loss = "" if self.loss == "pseudolikelihood" else f"{self.loss}, "
        return (
            f"<Path of {len(self)} lam, {loss}{self.lams[0]:.4g} to {self.lams[-1]:.4g}: "
            f"{self.n_edges[0]} to {self.n_edges[-1]} edges, KKT at most {self.kkt.max():.1e}>"
        )

    lams = _per_lam("lam", "Penalties, largest first.")
    objective = _per_lam("objective", "Objective in the data's own units.")
    kkt = _per_lam("kkt", "Recomputed KKT number.")
    passes = _per_lam("passes", "Passes over the rows.")
    curvature_passes = _per_lam("curvature_passes", "Passes over the rows for curvature.")
    seconds = _per_lam("seconds", "Wall time.")
    pass_seconds = _per_lam("pass_seconds", "Wall time in passes over the rows.")
    curvature_seconds = _per_lam("curvature_seconds", "Wall time in curvature from the rows.")

    @cached_property
    def n_possible(self) -> int:
        """Number of pairs of columns that may have an edge."""
        if self.n_permitted is not None:
            return self.n_permitted
        pairs, n = self.layout.pairs[self.layout.moderator < 0], self.layout.n_nodes
        if not self.layout.nodewise:
            return len(pairs)
        return len(np.unique(pairs.min(axis=1) * n + pairs.max(axis=1)))

    @cached_property
    def n_edges(self) -> NDArray[np.int64]:
        """Number of edges."""
        return np.array([len(self.pairs(k)) for k in range(len(self))], dtype=np.int64)

    @cached_property
    def kkt_relative(self) -> Floats:
        """KKT number divided by lam."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.kkt / self.lams

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether the KKT number is within tol, per lam."""
        return np.array([point.converged for point in self.points], dtype=bool)

    def theta(self, k: int) -> Floats:
        """Solver coordinates at the k-th lam."""
        point = self.points[k]
        return self.layout.expanded(point.groups, point.terms)

    def params(self, k: int) -> Params:
        """Parameters at the k-th lam in the data's own units."""
        coordinates = Coordinates(
            self.layout, self.units, self.observed, self.schema.spans, self.moderators
        )
        return coordinates.params(self.theta(k))

    def pairs(self, k: int) -> Ints:
        """Edges at the k-th lam as pairs of node positions (continuous columns first).

        A moderated edge comes again for each of its deviations.
        """
        return self.triples(k)[:, :2]

    def triples(self, k: int) -> Ints:
        """Edges and deviations found at the k-th lam, as in `Layout.triples`, each once."""
        groups, layout = self.points[k].groups, self.layout
        moderator, pairs = layout.moderator[groups], layout.pairs[groups]
        if not layout.nodewise:
            return np.column_stack([pairs, moderator])
        there = np.zeros((1 + len(layout.n_features), layout.n_nodes, layout.n_nodes), dtype=bool)
        there[1 + moderator, pairs[:, 0], pairs[:, 1]] = True
        fixed = list(layout.covariates)
        there[:, :, fixed] = there[:, fixed].swapaxes(1, 2)  # they have no say of their own
        upper = np.array([np.triu(joined(part, self.rule)) for part in there])
        moderator, first, second = np.nonzero(upper)
        return np.column_stack([first, second, moderator - 1])

    def edges(self, k: int) -> tuple[tuple[str, ...], ...]:
        """Edges at the k-th lam as pairs of column names; of deviations, with the moderator."""
        nodes = self.schema.nodes
        moderators = () if self.moderators is None else self.moderators.nodes
        return tuple(
            (nodes[u].name, nodes[v].name, *([nodes[moderators[m]].name] if m >= 0 else []))
            for u, v, m in self.triples(k).tolist()
        )

    def group_norms(self) -> Floats:
        """(n_lams, n_groups) norms of all groups in standardised units."""
        norms = np.zeros((len(self), self.layout.n_groups))
        for k, point in enumerate(self.points):
            small = self.layout.restrict(point.groups)
            norms[k, point.groups] = small.group_norms(point.terms)
        return norms

    def score(self, X: object, sample_weight: ArrayLike | None = None) -> Floats:
        """Mean log pseudolikelihood of the rows of `X` at every lam, constant included."""
        design = apply(X, self.schema, sample_weight=sample_weight)
        return np.array([-self.losses(k, design).sum() for k in range(len(self))])

    def node_scores(self, X: object, sample_weight: ArrayLike | None = None) -> dict[str, Floats]:
        """Mean negative log likelihood of each column given the others, at every lam.

        Covariates, which are not predicted, are left out.  Minus the sum over columns is `score`.

        Examples
        --------
        >>> import numpy as np, mixedgm as mg
        >>> x = np.random.default_rng(0).normal(size=(200, 2)) @ [[1, 0.5], [0, 1]]
        >>> path = mg.fit_path(x, n_lams=3, lam_min_ratio=0.1)
        >>> path.node_scores(x)["x0"].round(3)
        array([1.398, 1.287, 1.272])
        """
        design = apply(X, self.schema, sample_weight=sample_weight)
        losses = np.array([self.losses(k, design) for k in range(len(self))])
        places = {name: self.schema.node_index(name) for name in self.schema.targets}
        return {name: losses[:, place] for name, place in places.items()}

    def log_likelihood(self, X: object, sample_weight: ArrayLike | None = None) -> Floats:
        """Mean log likelihood of the rows of `X` at every lam, constant included.

        Where the model has covariates, it is that of the other columns given these.  A level that
        had no rows in the fit counts half a row, as in `score`.  NaN at a lam whose estimate has
        no joint distribution: a pseudolikelihood does not force it to have one.

        Examples
        --------
        >>> import numpy as np, mixedgm as mg
        >>> x = np.random.default_rng(0).normal(size=(200, 2)) @ [[1, 0.5], [0, 1]]
        >>> path = mg.fit_path(x, n_lams=3, loss="likelihood", lam_min_ratio=0.1)
        >>> path.log_likelihood(x).round(3)
        array([-2.951, -2.84 , -2.825])
        """
        design = apply(X, self.schema, sample_weight=sample_weight)
        if self.layout.nodewise:
            raise DistributionError(
                "separate regressions have no joint distribution, so rows have no likelihood; "
                "score(X) adds up their conditionals"
            )
        if self.schema.spans.n_spiked:
            spiked = [c.name for c in self.schema.columns if c.node_kind.has_spike]
            raise DistributionError(
                f"{', '.join(map(quoted, spiked))} may be zero or any number, so that likelihoods "
                "have no exact form; score(X) adds up conditionals"
            )
        scores = np.full(len(self), np.nan)
        for k in range(len(self)):
            try:
                joint = self.params(k).joint
                given = (joint, self.total_weight, self.schema.covariates)
                scores[k] = -_negative_log_likelihood(design, *given)
            except TooLargeError as error:
                raise error.named([node.name for node in self.schema.nodes]) from None
            except DistributionError:
                continue
        return scores

    def held_out_loss(self, k: int, design: Design | PartedDesign) -> float:
        """Mean loss of other rows at the k-th lam, constant included.

        After ``loss="likelihood"`` the negative log likelihood, else the negative log
        pseudolikelihood.
        """
        if self.loss != "likelihood":
            return float(self.losses(k, design).sum())
        given = (self.params(k).joint, self.total_weight, self.schema.covariates)
        if not isinstance(design, PartedDesign):
            return _negative_log_likelihood(design, *given)
        (total,) = design.parts.total(_likelihood_sums, *given)
        return float(total / design.total_weight)

    def losses(self, k: int, design: Design | PartedDesign) -> Floats:
        """Mean negative log conditional of every node at the k-th lam; 0 for covariates."""
        losses = losses_of(self.params(k), design, self.total_weight)
        losses[list(self.schema.covariates)] = 0.0
        return losses


def _negative_log_likelihood(
    design: Design, joint: ConditionalGaussian, n_observed: float, covariates: tuple[int, ...]
) -> float:
    from mixedgm.joint.posteriors import mean_loss

    rows = (design.numbers, design.codes, design.weights)
    return mean_loss(joint, *rows, n_observed, covariates)


def _likelihood_sums(
    part: Design, joint: ConditionalGaussian, n_observed: float, covariates: tuple[int, ...]
) -> tuple[float]:
    mean = _negative_log_likelihood(part, joint, n_observed, covariates)
    return (part.total_weight * mean,)


def solve_path(
    task: Task,
    lams: Floats,
    recipe: Recipe,
    *,
    start: Params | Path | Start | None = None,
    enough: Callable[[Task, PathPoint], bool] | None = None,
    runtime: Runtime | None = None,
) -> Path:
    """Solve for every lam, largest first, each from the last solution.

    The first starts from parameters (by default, those of the model without edges), from an
    evaluated point, or where another path of the same task ends; its points are then the first of
    the new path.  The path ends after the first point that is `enough`.

    Where the runtime keeps what is interrupted, Ctrl-C leaves what is solved and warns; it is
    raised again only when nothing is.  The same holds for a graph that is too dense for an exact
    likelihood.
    """
    runtime = runtime or Runtime()
    before = start.points if isinstance(start, Path) else ()
    points = list(before)
    if isinstance(start, Path):
        task = start.grown or task
    task, here = _begin(task, start)
    keep_trace = len(lams) == 1 and not before
    try:
        for lam in track(lams, show=runtime.show and len(lams) > 1, what="lam", total=len(lams)):
            with single_threaded_blas(), using_threads(task.n_threads):
                if task.beyond is not None:
                    task, solution, here = solve_among_all(task, float(lam), recipe, here)
                else:
                    problem = task.problem(float(lam))
                    solution = solve(
                        problem, recipe.solver, here, tol=recipe.tol, max_iter=recipe.max_iter
                    )
                    here = Start.at(solution, float(lam))
            points.append(_point(task, float(lam), solution, keep_trace))
            if enough is not None and enough(task, points[-1]):
                break
    except (KeyboardInterrupt, TooLargeError) as stopped:
        if not runtime.keep_interrupted or not points:
            raise
        n_solved = len(points) - len(before)
        what = (
            f"the path ends at lam = {points[-1].lam:.4g}, {n_solved} of {len(lams)} values solved"
        )
        why = task.named(stopped) if isinstance(stopped, TooLargeError) else None
        message = f"interrupted: {what}" if why is None else f"{what}: {why}"
        warnings.warn(message, RuntimeWarning, stacklevel=level_of_caller())
    return Path.of(task, tuple(points), here)


def _begin(task: Task, start: Params | Path | Start | None) -> tuple[Task, Start]:
    if isinstance(start, Start):
        return task, start
    if isinstance(start, Path) and start.end is not None:
        return task, start.end
    if isinstance(start, Path) and start.points:
        theta = start.theta(-1)
        return task, Start(theta, task.smooth.evaluate(theta), start.points[-1].lam)
    if isinstance(start, Params):
        task = task.with_edges_of(start)
        theta = task.theta_of(start)
        here = task.smooth.evaluate(theta)
        if here.grad is not None:
            return task, Start(theta, here)
    return task, replace(task.null, lam=task.lam_max)


def _point(task: Task, lam: float, solution: Solution, keep_trace: bool) -> PathPoint:
    layout = task.layout
    groups = layout.active(solution.theta, solution.groups)
    kept = solution.theta[layout.positions(groups)]
    return PathPoint(
        task.certificate(solution),
        solution.cost,
        lam,
        kept[: layout.n_node_terms],
        groups,
        kept[layout.n_node_terms :],
        solution.notes,
        tuple(solution.trace) if keep_trace else (),
    )


def geometric_lams(lam_max: float, n_lams: int, min_ratio: float) -> Floats:
    """`n_lams` values from lam_max down to ``min_ratio * lam_max``, equal ratios.

    Without any penalised edge lam_max is 0, and that is the only value.

    Examples
    --------
    >>> geometric_lams(1.0, 3, 0.01).round(3).tolist()
    [1.0, 0.1, 0.01]
    """
    if lam_max <= 0.0:
        return np.zeros(1)
    if n_lams == 1:
        return np.array([lam_max])
    return np.geomspace(lam_max, lam_max * min_ratio, n_lams)


def continued_lams(lams: Floats, floor: float) -> Floats:
    """A geometric grid, and more values at its ratio, none of them below `floor`.

    Examples
    --------
    >>> continued_lams(np.array([1.0, 0.1]), floor=1e-3).round(5).tolist()
    [1.0, 0.1, 0.01, 0.001]
    """
    if len(lams) < 2 or lams[-1] <= floor:
        return lams
    ratio = (lams[-1] / lams[0]) ** (1.0 / (len(lams) - 1))
    n_more = int(np.log(floor / lams[-1]) / np.log(ratio) + 1e-9)
    return np.concatenate([lams, lams[-1] * ratio ** np.arange(1, n_more + 1)])


def given_lams(lams: ArrayLike) -> Floats:
    """The user's values, checked, unique, largest first."""
    try:
        values = np.unique(np.asarray(lams, dtype=np.float64).ravel())[::-1]
    except (TypeError, ValueError):
        raise ParameterError.must_be("lams", "a list of numbers in [0, inf)", lams) from None
    if len(values) == 0 or not np.all(np.isfinite(values)) or values[-1] < 0.0:
        raise ParameterError.must_be("lams", "a non-empty list of numbers in [0, inf)", lams)
    return values


# -- candidates of wide tables ---------------------------------------------------------------------

_GROWTH = 0.5
"""Share of the growth that the strong rule allows a gradient when lam falls: candidates are more
than the groups that a solver begins with, because asking for them is a pass over all pairs."""
_FALL = 0.8
"""Factor by which lam is expected to fall where nothing is known of those before it."""
_LOWEST = 0.3
_NEAR = 0.05
"""When gradients still change, those so near to lam may end above it."""


def solve_among_all(
    task: Task, lam: float, recipe: Recipe, start: Start
) -> tuple[Task, Solution, Start]:
    """Solve for a lam from a start; also the task with new candidates, and the next start."""
    here = start
    if start.outside is not None or start.lam is not None:  # else it is asked at the solution
        task, here = _with_near(task, start, _threshold(lam, start.lam))
    solutions: list[Solution] = []
    while True:
        left = recipe.max_iter - sum(each.n_iter for each in solutions)
        with single_threaded_blas():
            solution = solve(task.problem(lam), recipe.solver, here, tol=recipe.tol, max_iter=left)
        solutions.append(solution)
        before = _counted(task)
        floor = _threshold(_next(lam, start.lam), lam)
        outside = task.outside(solution.theta, floor)
        spent = _counted(task).since(before)
        here = replace(Start.at(solution, lam), outside=outside, reach=_reach(outside, floor))
        violation = _violation(task, outside, lam)
        solutions.append(replace(solution, cost=spent, trace=[]))
        if np.isnan(violation) or violation <= recipe.tol or not solution.converged or left <= 1:
            break
        task, here = _with_near(task, here, (1.0 - _NEAR) * lam)
    return task, _joined(solutions, violation, recipe), here


def _threshold(lam: float, before: float | None) -> float:
    """Entry from which on a pair becomes a candidate for lam, after a larger one."""
    if before is None or not 0.0 < before - lam < 0.5 * lam:
        return lam
    return max(lam - _GROWTH * (before - lam), _LOWEST * lam)


def _next(lam: float, before: float | None) -> float:
    """The lam that is expected to come next."""
    if before is None or not lam < before <= 1.5 * lam:
        return _FALL * lam
    return lam * lam / before


def _reach(outside: Outside, floor: float) -> float:
    """Entry down to which the answer has all pairs."""
    if outside.count > len(outside.entries):
        return float(outside.entries.min(initial=np.inf))
    return floor


def _with_near(task: Task, start: Start, threshold: float) -> tuple[Task, Start]:
    """The task with those pairs as candidates that are near their bound at the start."""
    outside, reach = start.outside, start.reach
    if outside is None or (reach > threshold and outside.count == len(outside.entries)):
        outside = task.outside(start.theta, threshold)
    near = outside.pairs[outside.entries >= threshold]
    if len(near) == 0:
        return task, start
    task = task.with_candidates(near)
    return task, replace(task.extended(start), outside=None)


def _violation(task: Task, outside: Outside, lam: float) -> float:
    """Largest violation of pairs that are no candidates, on the calibrated scale.

    A lower bound where not all were listed that do; so many are more than any tolerance.
    """
    assert task.beyond is not None
    if not outside.largest > lam:  # NaN stays NaN
        return outside.largest if np.isnan(outside.largest) else 0.0
    broken = outside.entries > lam
    u, v = outside.pairs[broken].T
    excess = (outside.entries[broken] - lam) * task.beyond.weights.of(u, v)
    return float((excess / task.beyond.yardstick.of(u, v)).max(initial=0.0))


def _joined(solutions: list[Solution], violation: float, recipe: Recipe) -> Solution:
    """The last solution with the cost of all, and with what other pairs say."""
    last = solutions[-1]
    certificate = replace(last.certificate, kkt=float(np.maximum(last.kkt, violation)))
    if certificate.converged and not certificate.kkt <= recipe.tol:
        certificate = certificate.but(Status.ITERATION_LIMIT)
    return replace(
        last,
        certificate=certificate,
        cost=Cost.total(each.cost for each in solutions),
        trace=[row for each in solutions for row in each.trace],
        notes=tuple(dict.fromkeys(note for each in solutions for note in each.notes)),
    )


def _counted(task: Task) -> Cost:
    return Cost.until_now(task.smooth)
