"""Path of separate regressions -> one lam per column, by an information criterion of each.

Regressions share no parameters, so each may be scored and chosen alone, and the chosen ones put
together are the optimum of a problem with one lam per column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.density import LOG_TWO_PI
from mixedgm.model.layout import Floats, Ints
from mixedgm.path.evidence import Choice, Evidence
from mixedgm.path.open_edges import parameters
from mixedgm.path.path import Path, PathPoint
from mixedgm.path.refits import REFIT_STEPS, REFIT_TOL, refittable, with_new_groups
from mixedgm.path.task import Task
from mixedgm.path.unshrunken import stabilised
from mixedgm.printable import few
from mixedgm.progress import track
from mixedgm.rows.predict import mean_losses
from mixedgm.solve.working_set import Start
from mixedgm.table.encode import Design

LOOK_BELOW = 0.2
"""Scores of supports jump, so a minimum may be local; a path that goes down to this share of the
lam chosen has seen the others."""


class Price(NamedTuple):
    """What every parameter and every edge adds to 2 n loss."""

    parameter: float
    edge: float = 0.0

    def of(self, parameters: float, edges: float) -> float:
        """The price of so many."""
        return self.parameter * parameters + self.edge * edges


def choose_per_node(evidence: Evidence, name: str, label: str, price: Price) -> Choice:
    """The lowest score of every column's own regression; the largest lam among equals.

    Scores are (n_lams, n_columns), columns in the order of the table, NaN for covariates.
    """
    task, path = evidence.task, evidence.path
    refits = _Refits.begun(task) if evidence.before is None else evidence.before.memory
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
        down_to=_down_to(path, best, uncertain),
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


def _down_to(path: Path, best: Ints, uncertain: NDArray[np.bool_]) -> float | None:
    if not uncertain.any():
        return None
    return float(LOOK_BELOW * path.lams[best[uncertain]].min())


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


# -- refits ----------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Refits:
    """Losses of unshrunken refits, regression by regression, as far as a path has been scored.

    Parameters
    ----------
    theta : ndarray
        The last refit of every node.
    open : bool array (n_nodes,)
        Nodes whose regressions can be refitted so far.
    losses : ndarray (n_points, n_nodes)
        +inf from the first regression on that cannot be refitted; NaN for covariates.
    done : dict
        Losses by node and support: supports repeat along a path.
    """

    theta: Floats
    open: NDArray[np.bool_]
    losses: Floats
    done: dict[tuple[int, bytes], float] = field(default_factory=dict)

    @classmethod
    def begun(cls, task: Task) -> _Refits:
        """Before the first point."""
        layout = task.layout
        return cls(task.null.theta.copy(), layout.is_target.copy(), np.zeros((0, layout.n_nodes)))

    def continued(self, task: Task, path: Path, design: Design, show: bool) -> _Refits:
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

    def _refit(self, task: Task, path: Path, k: int, design: Design, nodes: Ints) -> Floats:
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
        refit = stabilised(task, groups, start, tol=REFIT_TOL, max_iter=REFIT_STEPS)
        solution = refit.solution
        self.theta[positions] = solution.theta[positions]
        if solution.converged:
            return []
        small = layout.restrict(groups)
        worst = _worst(task, small.group_norms(solution.evaluation.gradient), groups)
        terms = np.abs(solution.evaluation.gradient[: layout.n_node_terms])
        return [
            v
            for v in nodes.tolist()
            if max(worst[v], terms[layout.node_terms_of(v)].max()) > REFIT_TOL
        ]


def _worst(task: Task, norms: Floats, groups: Ints) -> Floats:
    """Largest gradient of an edge of every node, on the calibrated scale."""
    worst = np.zeros(task.layout.n_nodes)
    np.maximum.at(worst, task.layout.pairs[groups, 1], norms / task.yardstick[groups])
    return worst


def _losses(task: Task, theta: Floats, design: Design) -> Floats:
    """Loss of every node in the data's own units, as the objective counts it."""
    losses = mean_losses(task.params(theta), design.numbers, design.codes, design.weights)
    losses[task.layout.nodes.gaussian] -= 0.5 * LOG_TWO_PI
    return losses
