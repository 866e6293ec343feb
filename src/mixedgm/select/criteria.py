"""Path -> scores by an information criterion, and the lam with the lowest, for all or per column.

Every support on the path is scored at its *unshrunken refit*: shrinkage makes a sparse support
fit worse than it can, so scores at the shrunken estimates favour far too small a lam.  Separate
regressions share no parameters, so each may be scored and chosen alone, and the chosen ones put
together are the optimum of a problem with one lam per column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.parameters import HasParams, ensure, ensure_in, is_flag
from mixedgm.base.printable import few
from mixedgm.base.progress import track
from mixedgm.families.gaussian import LOG_TWO_PI
from mixedgm.model.layout import Floats, Ints
from mixedgm.path.parted_rows import AnyDesign, losses_of
from mixedgm.path.path import Path, PathPoint
from mixedgm.path.refits import (
    REFIT_STEPS,
    TOO_DENSE,
    degrees_of_freedom,
    parameters,
    refit_losses,
    refittable,
    scoring_tol,
    stabilised,
    with_new_groups,
)
from mixedgm.path.task import Task
from mixedgm.select.evidence import Choice, Evidence
from mixedgm.solve.working_set import Start

RISE, RISE_IN_EDGES = 0.05, 10.0
"""A path ends where the score is above the best by this share of what the best graph gained over
the empty one, and by what so many edges of one parameter cost."""

LOOK_BELOW = 0.2
"""Scores of supports jump, so a minimum may be local; a path that goes down to this share of the
lam chosen has seen the others."""


class Price(NamedTuple):
    """Price of every parameter and of every edge, to be added to 2 n loss."""

    parameter: float
    edge: float = 0.0

    def of(self, parameters: float, edges: float) -> float:
        """The price of so many."""
        return self.parameter * parameters + self.edge * edges


class _Information(HasParams, ABC):
    """Base class of criteria that score refits without shrinkage."""

    by_parts = True
    part = 2
    refit = True
    per_node: bool

    def __post_init__(self) -> None:
        ensure(is_flag(self.per_node), "per_node", "True or False", self.per_node)

    @property
    def label(self) -> str:
        """How the choice is described."""
        return type(self).__name__

    @abstractmethod
    def price(self, task: Task) -> Price:
        """Price of a parameter and of an edge, in the units of 2 n loss."""

    def enough(self, task: Task, point: PathPoint) -> bool:
        """Whether the graph is too dense to be refitted, and so are those of smaller lam.

        With one lam per column: whether that is so for all regressions.
        """
        small = refittable(task, point.groups)[task.layout.is_target]
        return not (small.any() if self.per_node else small.all())

    def choose(self, evidence: Evidence) -> Choice:
        """Lowest score, of the graph or of every column; the largest lam among equals."""
        name, label, price = type(self).__name__.lower(), self.label, self.price(evidence.task)
        if self.per_node:
            return _choose_per_node(evidence, name, label, price)
        task, path = evidence.task.scoring, evidence.path
        known = None if evidence.before is None else evidence.before.memory
        tol = scoring_tol(evidence.recipe.tol)
        refits = refit_losses(task, path, tol, known=known, show=evidence.runtime.show)
        losses = refits.values
        df = np.array([degrees_of_freedom(task, point.groups) for point in path.points])
        prices = np.array([price.of(*_per_term(task, point.groups)) for point in path.points])
        scores = 2.0 * task.total_weight * losses + prices
        notes = _not_considered(refits.reasons, path)
        if task is not evidence.task:
            notes.append(
                f"{label} of the pseudolikelihood: a sampled likelihood has no exact value"
            )
        best = int(np.argmin(scores))
        ended = (
            refits.ended
            or evidence.saturated
            or _risen(scores, path.lams, best, price.of(1.0, 1.0) * task.smooth.terms_per_edge)
        )
        return Choice(
            best,
            label,
            {name: scores, "refit_loss": losses, "degrees_of_freedom": df.astype(np.float64)},
            tuple(notes),
            down_to=None if ended else evidence.below(best, LOOK_BELOW),
            open_end=_densest(refits.reasons, best),
            reasons=refits.reasons,
            refit=refits.theta(task.layout, path.points[best].groups),
            memory=refits,
        )


@dataclass(frozen=True)
class EBIC(_Information):
    """Extended Bayesian information criterion at the refit of each support.

    ``2 n loss + 2 (df log n + 4 gamma edges log(columns))`` with the mean negative log
    pseudolikelihood `loss`, n the sum of weights, and df the identifiable edge parameters:
    (L_r - 1)(L_j - 1) for two categorical columns, L_j - 1 for one and a column whose values are
    numbers to the others (continuous, ordinal, count), and 1 for two of these.
    The outer 2 is there because every edge is in two of the conditionals that `loss` adds up.

    Parameters
    ----------
    gamma : float
        Extra price of an edge in [0, 1]; 0 is the BIC.
    per_node : bool
        For ``loss="nodewise"``: choose one lam per column, each by the criterion of its own
        regression, ``2 n loss + df log n + 2 gamma neighbours log(columns - 1)``.

    References
    ----------
    Chen and Chen (2008), "Extended Bayesian information criteria for model selection with large
    model spaces".  Foygel and Drton (2010), "Extended Bayesian information criteria for Gaussian
    graphical models".  Gao and Song (2010), "Composite likelihood Bayesian information criteria
    for model selection in high-dimensional data".

    Examples
    --------
    >>> EBIC(gamma=0.25).label
    'EBIC (gamma = 0.25)'
    """

    gamma: float = 0.5
    per_node: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        ensure_in("[0, 1]", gamma=self.gamma)

    @property
    def label(self) -> str:
        """How the choice is described."""
        return f"EBIC (gamma = {self.gamma:g})"

    def price(self, task: Task) -> Price:
        """Price of log n per parameter; per edge, by the number of graphs of the same size."""
        n, columns = task.total_weight, task.layout.n_nodes
        edge = 2.0 * np.log(max(columns - 1, 1)) if self.per_node else 4.0 * np.log(columns)
        return Price(float(np.log(n)), float(self.gamma * edge))


@dataclass(frozen=True)
class BIC(_Information):
    """Bayesian information criterion, ``2 n loss + 2 df log n``, at the refit of each support.

    Parameters
    ----------
    per_node : bool
        For ``loss="nodewise"``: one lam per column, each by ``2 n loss + df log n`` of its own
        regression.
    """

    per_node: bool = False

    def price(self, task: Task) -> Price:
        """Price of log n per parameter."""
        return Price(float(np.log(task.total_weight)))


@dataclass(frozen=True)
class AIC(_Information):
    """Akaike information criterion, ``2 n loss + 4 df``, at the refit of each support.

    Parameters
    ----------
    per_node : bool
        For ``loss="nodewise"``: one lam per column, each by ``2 n loss + 2 df`` of its own
        regression.
    """

    per_node: bool = False

    def price(self, task: Task) -> Price:
        """Price of 2 per parameter, whatever the table."""
        return Price(2.0)


def _densest(reasons: tuple[str, ...], best: int) -> str:
    """Note that the chosen graph is the last one that could be scored; empty where it is not."""
    after = reasons[best + 1 :]
    if not after or not all(after):
        return ""
    return f"the chosen graph is the last one that could be scored; after it, {after[0]}"


def _risen(scores: Floats, lams: Floats, best: int, edge: float) -> bool:
    """Whether the last score is far above the best one, compared with all that was gained.

    Scores of dense graphs rise and rise, and these graphs take the longest to refit.  `edge` is
    what the cheapest edge costs.
    """
    far = max(RISE * float(scores[0] - scores[best]), RISE_IN_EDGES * edge)
    return bool(lams[-1] <= 0.5 * lams[best] and scores[-1] - scores[best] > far)


def _not_considered(reasons: tuple[str, ...], path: Path) -> list[str]:
    """Which graphs were rejected, and why."""
    rejected = [k for k, reason in enumerate(reasons) if reason]
    if len(rejected) == len(path):
        first = reasons[rejected[0]]
        return [f"no graph of the path could be scored; that of the largest lam was taken: {first}"]
    notes = []
    for dense in (False, True):
        some = [k for k in rejected if reasons[k].startswith(TOO_DENSE) == dense]
        if some:
            notes.append(
                f"{len(some)} of {len(path)} values of lam were not considered, the first of them "
                f"{path.lams[some[0]]:.4g}: {reasons[some[0]]}"
            )
    return notes


def _per_term(task: Task, groups: Ints) -> tuple[float, float]:
    """Parameters and edges, each counted once for every term of the loss that it is in.

    A likelihood is one term.  In a pseudolikelihood an edge is in the conditionals of both its
    ends, so its gain 2 n (loss - loss with it) is about twice a chi-square of its degrees of
    freedom where there is nothing to find; its price is twice that of a likelihood, too (the
    composite-likelihood criterion of Gao and Song 2010).  An edge of a covariate, and each of the
    two copies that separate regressions have of an edge, is in one conditional.

    At completed rows a gain is larger than it would be if nothing were missing, by what is missing
    of the edge's information; so is its price.
    """
    times = np.minimum(task.layout.conditionals[groups], task.smooth.terms_per_edge)
    if task.missing_information is not None:
        times = times / (1.0 - task.missing_information[groups])
    return float(times @ parameters(task, groups)), float(times.sum())


# -- one lam per column ----------------------------------------------------------------------------


def _choose_per_node(evidence: Evidence, name: str, label: str, price: Price) -> Choice:
    """The lowest score of every column's own regression; the largest lam among equals.

    Scores are (n_lams, n_columns), columns in the order of the table, NaN for covariates.
    """
    task, path = evidence.task, evidence.path
    refits = None if evidence.before is None else evidence.before.memory
    refits = refits or _Refits.begun(task, scoring_tol(evidence.recipe.tol))
    refits = refits.continued(task, path, evidence.design, evidence.runtime.show)
    df, neighbours = _counts(task, path)
    prices = price.parameter * df + price.edge * neighbours
    scores = 2.0 * task.total_weight * refits.losses + prices
    target = task.layout.is_target
    best = np.where(target, np.argmin(np.where(target, scores, 0.0), axis=0), 0)
    order = [task.schema.node_index(name) for name in task.schema.names]
    uncertain = _uncertain(task, path, refits, best)
    return Choice(
        int(best.max()),
        label,
        {
            name: scores[:, order],
            "refit_loss": refits.losses[:, order],
            "degrees_of_freedom": np.where(target, df, np.nan)[:, order],
        },
        _notes(task, refits.losses),
        down_to=float(LOOK_BELOW * path.lams[best[uncertain]].min()) if uncertain.any() else None,
        by_node=best,
        uncertain=tuple(task.schema.nodes[v].name for v in np.flatnonzero(uncertain)),
        memory=refits,
    )


def assembled(path: Path, by_node: Ints) -> tuple[Floats, list[PathPoint]]:
    """Theta with the regression of every node from its own point of the path, and these points."""
    theta = np.zeros(path.layout.n_theta)
    chosen = np.unique(by_node).tolist()
    for k in chosen:
        terms = _terms_of(path.layout.conditional, np.flatnonzero(by_node == k))
        theta[terms] = path.theta(k)[terms]
    return theta, [path.points[k] for k in chosen]


def _terms_of(conditional: tuple[Ints, Ints], nodes: Ints) -> Ints:
    """Theta positions of everything in the conditionals of these nodes."""
    start, index = conditional
    parts = [index[start[v] : start[v + 1]] for v in nodes.tolist()]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _counts(task: Task, path: Path) -> tuple[Floats, Floats]:
    """(n_lams, n_nodes) parameters and neighbours of every regression."""
    layout = task.layout
    df, neighbours = np.zeros((2, len(path), layout.n_nodes))
    for k, point in enumerate(path.points):
        target = layout.pairs[point.groups, 1]
        df[k] = np.bincount(target, parameters(task, point.groups), layout.n_nodes)
        neighbours[k] = np.bincount(target, minlength=layout.n_nodes)
    return df, neighbours


def _uncertain(task: Task, path: Path, refits: _Refits, best: Ints) -> NDArray[np.bool_]:
    """Nodes for which smaller values of lam might still be chosen."""
    layout, last = task.layout, path.points[-1].groups
    most = np.bincount(layout.pairs[:, 1], minlength=layout.n_nodes)
    full = np.bincount(layout.pairs[last, 1], minlength=layout.n_nodes) == most
    looked = path.lams[-1] <= LOOK_BELOW * path.lams[best]
    return np.asarray(layout.is_target & refits.open & ~full & ~looked)


def _notes(task: Task, losses: Floats) -> tuple[str, ...]:
    """Columns for which some values of lam, or all, could not be considered."""
    names, dense = [node.name for node in task.schema.nodes], np.isinf(losses)
    some = [names[v] for v in np.flatnonzero(dense.any(axis=0))]
    none = [names[v] for v in np.flatnonzero(dense.all(axis=0))]
    notes = []
    if some:
        notes.append(
            f"small values of lam were not considered for {few(some)}: with so many neighbours a "
            f"regression cannot be refitted to {task.smooth.n_rows} rows"
        )
    if none:
        notes.append(f"the largest lam was taken for {few(none)}: none could be scored")
    return tuple(notes)


@dataclass(eq=False)
class _Refits:
    """Losses of unshrunken refits, regression by regression, as far as a path has been scored."""

    theta: Floats
    """The last refit of every node."""
    open: NDArray[np.bool_]
    """(n_nodes,) nodes whose regressions can be refitted so far."""
    losses: Floats
    """(n_points, n_nodes) +inf from the first that cannot be refitted on; NaN for covariates."""
    tol: float
    """Tolerance of the refits."""
    done: dict[tuple[int, bytes], float] = field(default_factory=dict)
    """Losses by node and support: supports repeat along a path."""

    @classmethod
    def begun(cls, task: Task, tol: float) -> _Refits:
        """Before the first point."""
        layout = task.layout
        losses = np.zeros((0, layout.n_nodes))
        return cls(task.null.theta.copy(), layout.is_target.copy(), losses, tol)

    def continued(self, task: Task, path: Path, design: AnyDesign, show: bool) -> _Refits:
        """Score the points of the path that are not scored yet."""
        first, layout = len(self.losses), task.layout
        losses = np.full((len(path), layout.n_nodes), np.inf)
        losses[:, ~layout.is_target] = np.nan
        losses[:first] = self.losses
        for k in track(range(first, len(path)), show=show, what="refit", total=len(path) - first):
            groups = path.points[k].groups
            target = layout.pairs[groups, 1]
            keys = {
                v: (v, groups[target == v].tobytes())
                for v in np.flatnonzero(layout.is_target).tolist()
            }
            self.open &= refittable(task, groups)
            fresh = [v for v, key in keys.items() if self.open[v] and key not in self.done]
            if fresh:
                refits = self._refit(task, path, k, design, np.array(fresh))
                self.done |= {keys[v]: refits[v] for v in fresh if self.open[v]}
            for v in np.flatnonzero(self.open).tolist():
                losses[k, v] = self.done[keys[v]]
        self.losses = losses
        return self

    def _refit(self, task: Task, path: Path, k: int, design: AnyDesign, nodes: Ints) -> Floats:
        """Refit these nodes at the k-th support; close those without an optimum.

        All at once; then, alone, those that were not done when the steps were used up, because one
        that has no optimum holds up the others.
        """
        left = self._solve(task, path, k, nodes)
        if len(nodes) > 1:
            left = [v for v in left if self._solve(task, path, k, np.array([v]))]
        self.open[left] = False
        lost = _terms_of(task.layout.conditional, np.array(left, dtype=np.int64))
        self.theta[lost] = task.null.theta[lost]
        return _losses(task, self.theta, design)

    def _solve(self, task: Task, path: Path, k: int, nodes: Ints) -> list[int]:
        """Refit these nodes, each from its last refit; return those that did not converge."""
        layout, groups = task.layout, path.points[k].groups
        groups = groups[np.isin(layout.pairs[groups, 1], nodes)]
        positions = _terms_of(layout.conditional, nodes)
        theta = task.null.theta.copy()
        theta[positions] = with_new_groups(task, self.theta, path.theta(k))[positions]
        start = Start(theta, task.null.evaluation)
        refit = stabilised(task, groups, start, tol=self.tol, max_iter=REFIT_STEPS)
        solution = refit.solution
        self.theta[positions] = solution.theta[positions]
        if solution.converged:
            return []
        norms = layout.restrict(groups).group_norms(solution.evaluation.gradient)
        worst = np.zeros(layout.n_nodes)  # gradient of an edge of every node, calibrated
        np.maximum.at(worst, layout.pairs[groups, 1], norms / task.yardstick[groups])
        terms = np.abs(solution.evaluation.gradient[: layout.n_node_terms])
        return [
            v
            for v in nodes.tolist()
            if max(worst[v], terms[layout.node_terms_of(v)].max()) > self.tol
        ]


def _losses(task: Task, theta: Floats, design: AnyDesign) -> Floats:
    """Loss of every node in the data's own units, as the objective counts it."""
    losses = losses_of(task.params(theta), design)
    losses[task.layout.nodes.gaussian] -= 0.5 * LOG_TWO_PI
    return losses
