"""Path -> one score per lam by an information criterion, and the lam with the lowest.

Every support on the path is scored at its *unshrunken refit*: shrinkage makes a sparse support
fit worse than it can, so scores at the shrunken estimates favour far too small a lam.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.model.layout import Floats, Ints
from mixedgm.parameters import HasParams
from mixedgm.path.evidence import Choice, Evidence
from mixedgm.path.open_edges import parameters
from mixedgm.path.path import Path, PathPoint
from mixedgm.path.per_node import LOOK_BELOW, Price, choose_per_node
from mixedgm.path.refits import TOO_DENSE, degrees_of_freedom, refit_losses, refittable
from mixedgm.path.task import Task

RISE, RISE_IN_EDGES = 0.05, 10.0
"""A path ends where the score is above the best by this share of what the best graph gained over
the empty one, and by what so many edges of one parameter cost."""


class _Information(HasParams, ABC):
    """What criteria that score unshrunken refits have in common."""

    by_parts = True
    part = 2
    refit = True
    per_node: bool

    def __post_init__(self) -> None:
        if not isinstance(self.per_node, (bool, np.bool_)):
            raise ParameterError.must_be("per_node", "True or False", self.per_node)

    @property
    def label(self) -> str:
        """How the choice is described."""
        return type(self).__name__

    @abstractmethod
    def price(self, task: Task) -> Price:
        """What a parameter and an edge cost, in the units of 2 n loss."""

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
            return choose_per_node(evidence, name, label, price)
        task, path = evidence.task.scoring, evidence.path
        known = None if evidence.before is None else evidence.before.memory
        refits = refit_losses(task, path, known=known, show=evidence.runtime.show)
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
    (L_r - 1)(L_j - 1) for two categorical columns, L_j - 1 for a mixed pair, 1 for two continuous.
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
        if not (isinstance(self.gamma, (int, float)) and 0.0 <= self.gamma <= 1.0):
            raise ParameterError.must_be("gamma", "a number in [0, 1]", self.gamma)

    @property
    def label(self) -> str:
        """How the choice is described."""
        return f"EBIC (gamma = {self.gamma:g})"

    def price(self, task: Task) -> Price:
        """By the logarithm of the number of graphs, or of regressions, of the same size."""
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
        """By the logarithm of the number of rows."""
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
        """The same whatever the table."""
        return Price(2.0)


def _densest(reasons: tuple[str, ...], best: int) -> str:
    """What there is to say where all graphs beyond the chosen one were rejected."""
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
    """
    times = np.minimum(task.layout.conditionals[groups], task.smooth.terms_per_edge)
    return float(times @ parameters(task, groups)), float(times.sum())
