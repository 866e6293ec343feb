"""What a criterion may look at, and what it answers: Evidence -> Choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params
from mixedgm.parallel import seeds
from mixedgm.path.moderated import Moderated
from mixedgm.path.path import Path, PathPoint, solve_path
from mixedgm.path.refits import too_large
from mixedgm.path.task import Loss, Reference, Sampler, Task, Weights, prepare
from mixedgm.solve.loop import Solver
from mixedgm.solve.monte_carlo import MonteCarlo
from mixedgm.table.encode import Design


@dataclass(frozen=True, eq=False)
class Recipe:
    """How rows become a path; the same for the whole table, its folds and its subsamples.

    Parameters
    ----------
    solver : Solver
    tol : float
    max_iter : int
    weights : {"calibrated", "uniform", "adaptive"}
    factors : ndarray (p + q, p + q)
        Penalty factors by pair of nodes.
    loss : {"pseudolikelihood", "likelihood", "likelihood-mc", "nodewise"}
    seed : SeedSequence, optional
        For losses that are sampled.
    rule : {"and", "or"}
        Which edges separate regressions have.
    moderated : Moderated, optional
        Which columns moderate edges.
    refits : bool
        Whether graphs are refitted: edges that no refit could have are then left out.
    """

    solver: Solver
    tol: float
    max_iter: int
    weights: Weights
    factors: Floats
    loss: Loss = "pseudolikelihood"
    seed: np.random.SeedSequence | None = None
    rule: str = "and"
    moderated: Moderated | None = None
    refits: bool = False

    def task(self, design: Design, reference: Reference | None, n_threads: int = 1) -> Task:
        """Set up the problem of these rows."""
        factors, left_out = self.factors, np.zeros_like(self.factors, dtype=bool)
        if self.refits:
            left_out = too_large(design, factors, reference)
            factors = np.where(left_out, np.inf, factors)
        task = prepare(
            design,
            loss=self.loss,
            weights=self.weights,
            factors=factors,
            reference=reference,
            n_threads=n_threads,
            sampler=self._sampler,
            rule=self.rule,
            moderated=self.moderated,
        )
        return replace(task, too_large=np.argwhere(np.triu(left_out)))

    @property
    def _sampler(self) -> Sampler | None:
        if not isinstance(self.solver, MonteCarlo):
            return None
        return Sampler(self.solver, self.seed or np.random.SeedSequence(0))

    def path(
        self,
        task: Task,
        lams: Floats,
        *,
        start: Params | None = None,
        after: Path | None = None,
        enough: Callable[[PathPoint], bool] | None = None,
        keep_interrupted: bool = False,
        show: bool = False,
    ) -> Path:
        """Solve these lams, or continue the path `after` with them."""
        return solve_path(
            task,
            lams,
            self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            start=start,
            after=after,
            enough=enough,
            keep_interrupted=keep_interrupted,
            keep_trace=len(lams) == 1 and after is None,
            show=show,
        )


@dataclass(frozen=True, eq=False)
class Choice:
    """A chosen point of a path, with all scores.

    Parameters
    ----------
    index : int
        The chosen point.
    label : str
        How the choice is described.
    scores : dict of str to ndarray
        One value per point of the path; the first entry is the score that decided.
    notes : tuple of str
        What the user should know.
    down_to : float, optional
        How far down the path should go for the choice to be certain; None when it is.
    by_node : ndarray (n_nodes,), optional
        The chosen point of every node, where each has a lam of its own; `index` is then the last
        of them.
    uncertain : tuple of str
        The columns for which the path should go further down, where each has a lam of its own.
    groups : ndarray, optional
        The chosen edges, where they are not just those of the point.
    frequencies : ndarray (n_groups,), optional
        How often each edge was selected in subsamples at the chosen lam.
    open_end : str
        What speaks for looking at smaller values of lam than the path has; empty if nothing does.
    reasons : tuple of str
        Why a point was not considered, one entry per point; empty where it was.
    refit : ndarray, optional
        Theta of the chosen graph without shrinkage, roughly, if it is known.
    memory : optional
        What the criterion needs again if the path is continued.
    """

    index: int
    label: str
    scores: dict[str, Floats]
    notes: tuple[str, ...] = ()
    down_to: float | None = None
    by_node: Ints | None = None
    uncertain: tuple[str, ...] = ()
    groups: Ints | None = None
    frequencies: Floats | None = None
    open_end: str = ""
    reasons: tuple[str, ...] = ()
    refit: Floats | None = None
    memory: Any = None


@dataclass(frozen=True, eq=False)
class Setup:
    """What is the same for every part of a path.

    Parameters
    ----------
    design : Design
        The rows.
    recipe : Recipe
        How to fit some of them.
    task : Task
        Of the rows.
    table : Reference or None
        Of the table that the rows are a resample of; None when they are a whole table.
    seed : SeedSequence
        For everything that is drawn.
    n_jobs : int, optional
        Workers for folds and subsamples.
    keep_interrupted : bool
        Whether Ctrl-C leaves what is done, or is passed on.
    show : bool
        Whether to draw progress bars.
    """

    design: Design
    recipe: Recipe
    task: Task
    table: Reference | None
    seed: np.random.SeedSequence
    n_jobs: int | None = 1
    keep_interrupted: bool = False
    show: bool = False

    @cached_property
    def reference(self) -> Reference:
        """What folds and subsamples keep of the whole table."""
        return Reference.of(self.design) if self.table is None else self.table

    def seeds(self, n: int) -> list[np.random.SeedSequence]:
        """One seed for each of n tasks, the same at every call."""
        return seeds(self.seed, n)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything from which lam is chosen.

    Parameters
    ----------
    setup : Setup
        Rows, and how to fit some of them.
    path : Path
        Solutions on all rows.
    before : Choice, optional
        The choice from the first `n_before` points, when the path has been continued since.
    """

    setup: Setup
    path: Path
    before: Choice | None = None
    n_before: int = 0

    @property
    def task(self) -> Task:
        """The problem on all rows."""
        return self.setup.task

    @property
    def design(self) -> Design:
        """All rows."""
        return self.setup.design

    @property
    def fresh(self) -> Floats:
        """Values of lam that no earlier choice has scored."""
        return self.path.lams[self.n_before :]

    def joined(self, name: str, fresh: Floats) -> Floats:
        """The score of that name over the whole path, given its values at the fresh lams."""
        if self.before is None:
            return fresh
        return np.concatenate([self.before.scores[name], fresh])

    def all_notes(self, fresh: tuple[str, ...]) -> tuple[str, ...]:
        """Notes of the choice before and of this one, each once."""
        earlier = () if self.before is None else self.before.notes
        return tuple(dict.fromkeys([*earlier, *fresh]))

    def below(self, best: int, share: float) -> float | None:
        """That share of the lam at which the score is best; None if the path has been there."""
        wanted = share * float(self.path.lams[best])
        return wanted if self.path.lams[-1] > wanted else None

    @property
    def saturated(self) -> bool:
        """Whether the last graph has every permitted edge."""
        return len(self.path.points[-1].groups) == self.task.layout.n_groups


class Criterion(Protocol):
    """Chooses from a path.

    A criterion may have more attributes.  ``refit = True`` says that it judges graphs rather than
    shrunken estimates, so that the chosen graph is refitted by default.  ``enough(task, point) ->
    bool`` tells whether no smaller lam can be chosen, so that a default path may end at this point.
    ``by_parts = True`` asks for the default path in parts, each only as far as the choice from
    those before it wants, and of at most ``part`` values (10 by default).  ``effort`` says about
    how often the work of EBIC's path is done (once by default).
    """

    def choose(self, evidence: Evidence) -> Choice:
        """Score every point and choose one."""
        ...
