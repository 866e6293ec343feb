"""Path -> one score per lam by an information criterion, and the lam with the lowest.

Every support on the path is scored at its *unshrunken refit*: shrinkage makes a sparse support
fit worse than it can, so scores at the shrunken estimates favour far too small a lam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.model.layout import Floats, Ints
from mixedgm.path.evidence import Choice, Evidence
from mixedgm.path.path import Path, PathPoint
from mixedgm.path.task import Task
from mixedgm.progress import track
from mixedgm.rows.threads import single_threaded_blas
from mixedgm.solve.working_set import Solution, Start

_REFIT_TOL = 1e-4
_REFIT_STEPS = 50
# Scores of supports jump, so a minimum may be local; a path that goes down to this share of the
# lam chosen has seen the others.
_LOOK_BELOW = 0.2


class _AtRefits:
    """What criteria that score unshrunken refits have in common."""

    by_parts = True

    def enough(self, task: Task, point: PathPoint) -> bool:
        """Whether the graph is too dense to be refitted, and so are those of smaller lam."""
        return not refittable(task, point.groups)


@dataclass(frozen=True)
class EBIC(_AtRefits):
    """Extended Bayesian information criterion at the refit of each support.

    ``2 n loss + 2 (df log n + 4 gamma edges log(columns))`` with the mean negative log
    pseudolikelihood `loss`, n the sum of weights, and df the identifiable edge parameters:
    (L_r - 1)(L_j - 1) for two categorical columns, L_j - 1 for a mixed pair, 1 for two continuous.
    The outer 2 is there because every edge is in two of the conditionals that `loss` adds up.

    Parameters
    ----------
    gamma : float
        Extra price of an edge in [0, 1]; 0 is the BIC.

    References
    ----------
    Foygel and Drton (2010), "Extended Bayesian information criteria for Gaussian graphical
    models".  Gao and Song (2010), "Composite likelihood Bayesian information criteria for model
    selection in high-dimensional data".

    Examples
    --------
    >>> EBIC(gamma=0.25).label
    'EBIC (gamma = 0.25)'
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        if not (isinstance(self.gamma, (int, float)) and 0.0 <= self.gamma <= 1.0):
            raise ParameterError.must_be("gamma", "a number in [0, 1]", self.gamma)

    @property
    def label(self) -> str:
        """How the choice is described."""
        return f"EBIC (gamma = {self.gamma:g})"

    def choose(self, evidence: Evidence) -> Choice:
        """Lowest score; the largest lam among equals."""
        n, columns = evidence.task.total_weight, evidence.task.layout.n_nodes

        def price(df: float, edges: float) -> float:
            return float(df * np.log(n) + 4.0 * self.gamma * edges * np.log(columns))

        return _information(evidence, "ebic", self.label, price)


@dataclass(frozen=True)
class BIC(_AtRefits):
    """Bayesian information criterion, ``2 n loss + 2 df log n``, at the refit of each support."""

    def choose(self, evidence: Evidence) -> Choice:
        """Lowest score; the largest lam among equals."""
        n = evidence.task.total_weight
        return _information(evidence, "bic", "BIC", lambda df, _: df * np.log(n))


@dataclass(frozen=True)
class AIC(_AtRefits):
    """Akaike information criterion, ``2 n loss + 4 df``, at the refit of each support."""

    def choose(self, evidence: Evidence) -> Choice:
        """Lowest score; the largest lam among equals."""
        return _information(evidence, "aic", "AIC", lambda df, _: 2.0 * df)


class _Price(Protocol):
    """Price of edges in a likelihood, by their parameters and their number; linear in both."""

    def __call__(self, df: float, edges: float, /) -> float: ...


def _information(evidence: Evidence, name: str, label: str, price: _Price) -> Choice:
    task, path = evidence.task.scoring, evidence.path
    known = None if evidence.before is None else evidence.before.scores["refit_loss"]
    losses = refit_losses(task, path, known=known, show=evidence.setup.show)
    df = np.array([degrees_of_freedom(task, point.groups) for point in path.points])
    prices = np.array([price(*_per_term(task, point.groups)) for point in path.points])
    scores = 2.0 * task.total_weight * losses + prices
    n_dense = int(np.isinf(losses).sum())
    notes = []
    if n_dense == len(path):
        notes.append("no graph of the path could be refitted; that of the largest lam was taken")
    elif n_dense:
        notes.append(
            f"{n_dense} of {len(path)} values of lam were not considered: their graphs are too "
            f"dense to be refitted to {task.smooth.n_rows} rows"
        )
    if task is not evidence.task:
        notes.append(f"{label} of the pseudolikelihood: a sampled likelihood has no exact value")
    best = int(np.argmin(scores))
    ended = bool(np.isinf(losses[-1])) or evidence.saturated
    return Choice(
        best,
        label,
        {name: scores, "refit_loss": losses, "degrees_of_freedom": df.astype(np.float64)},
        tuple(notes),
        down_to=None if ended else evidence.below(best, _LOOK_BELOW),
    )


def degrees_of_freedom(task: Task, groups: Ints) -> int:
    """Identifiable parameters of these edges, over observed levels."""
    return int(_parameters(task, groups).sum())


def _parameters(task: Task, groups: Ints) -> Ints:
    """Identifiable parameters of each of these edges."""
    own = _own_parameters(task)
    u, v = task.layout.pairs[groups].T
    return np.asarray(own[u] * own[v] * task.layout.n_blocks[groups])


def _own_parameters(task: Task) -> Ints:
    """1 for a continuous node, levels - 1 for a categorical one."""
    layout = task.layout
    return np.where(np.arange(layout.n_nodes) < layout.n_cont, 1, layout.width - 1)


def _per_term(task: Task, groups: Ints) -> tuple[float, float]:
    """Parameters and edges, each counted once for every term of the loss that it is in.

    A likelihood is one term.  In a pseudolikelihood an edge is in the conditionals of both its
    ends, so its gain 2 n (loss - loss with it) is about twice a chi-square of its degrees of
    freedom where there is nothing to find; its price is twice that of a likelihood, too (the
    composite-likelihood criterion of Gao and Song 2010).  An edge of a covariate is in one
    conditional.
    """
    u, v = task.layout.pairs[groups].T
    target = task.layout.is_target.astype(np.int64)
    times = np.minimum(target[u] + target[v], task.smooth.terms_per_edge)
    return float(times @ _parameters(task, groups)), float(times.sum())


def refittable(task: Task, groups: Ints) -> bool:
    """Whether every column's regression is small enough for the rows.

    That is, fewer than half as many predictors as rows, and fewer parameters than rows.  Beyond
    that an unshrunken fit says nothing, and from as many predictors as rows on it has no optimum:
    the loss falls without bound.
    """
    predictors, own = _predictors(task, groups)
    few = predictors.max(initial=0.0) < 0.5 * task.total_weight
    return bool(few and (predictors * own).max(initial=0.0) < task.total_weight)


def interpolates(task: Task, groups: Ints) -> bool:
    """Whether some column has at least as many predictors as there are rows."""
    predictors, _ = _predictors(task, groups)
    return bool(predictors.max(initial=0.0) >= task.total_weight)


def _predictors(task: Task, groups: Ints) -> tuple[Floats, Ints]:
    """Free predictors of every predicted column, and its own free parameters per predictor."""
    layout, own = task.layout, _own_parameters(task)
    u, v = layout.pairs[groups].T
    times = layout.n_blocks[groups]
    count = np.bincount(v, own[u] * times, layout.n_nodes).astype(np.float64)
    if not layout.nodewise:
        count += np.bincount(u, own[v] * times, layout.n_nodes)
    return np.where(layout.is_target, count, 0.0), own


def refit_losses(
    task: Task, path: Path, *, known: Floats | None = None, show: bool = False
) -> Floats:
    """Smooth loss (the data's units) at the unshrunken refit of every support of the path.

    Supports repeat along a path and grow slowly, so each distinct one is refitted once, from the
    refit before it.  From the first support that cannot be refitted on, the loss is +inf.
    `known` holds the losses of the first points, when the path has been continued.
    """
    losses = np.full(len(path), np.inf)
    first = 0 if known is None else len(known)
    done: dict[bytes, float] = {}
    if known is not None:
        losses[:first] = known - task.log_jacobian
        done = {path.points[k].groups.tobytes(): float(losses[k]) for k in range(first)}
    start = task.null
    for k in track(range(first, len(path)), show=show, what="refit", total=len(path) - first):
        point = path.points[k]
        key = point.groups.tobytes()
        if key not in done:
            if not refittable(task, point.groups):
                break
            refit = _refit(task, path, k, start.theta)
            if not refit.converged:
                break
            start = Start(refit.theta, refit.evaluation)
            done[key] = refit.evaluation.value
        losses[k] = done[key]
    return losses + task.log_jacobian


def _refit(task: Task, path: Path, k: int, before: Floats) -> Solution:
    """Refit from the last refit, with the path's own values for groups that are new."""
    theta = before.copy()
    fresh = task.layout.group_norms(theta) == 0.0
    own = path.theta(k)
    edges = task.layout.edges
    theta[edges] = np.where(task.layout.spread(fresh.astype(float)) > 0.0, own[edges], theta[edges])
    start = Start(theta, task.null.evaluation)
    groups = path.points[k].groups
    with single_threaded_blas():
        return task.unpenalised(groups, start, tol=_REFIT_TOL, max_iter=_REFIT_STEPS)
