"""Evidence for a criterion, and the answer that it gives: Evidence -> Choice."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mixedgm.base.parallel import Runtime
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params
from mixedgm.path.path import Path, PathPoint
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import Reference, Task
from mixedgm.table.encode import Design
from mixedgm.table.parted.design import PartedDesign

if TYPE_CHECKING:
    from mixedgm.path.rounds import Incomplete


@dataclass(frozen=True, eq=False)
class TestedEdges:
    """What tests of all pairs say about each, where a graph is chosen by them."""

    probabilities: Floats
    """(n_groups,) probability of each edge; NaN where it has no test."""
    variances: Floats
    """(n_groups,) variances of the coefficients of each chosen edge, by which it is shrunken."""
    untested: tuple[tuple[str, str, str], ...]
    """Names of the columns of chosen edges without a test, and why they have none."""


@dataclass(frozen=True, eq=False)
class Choice:
    """A chosen point of a path, with all scores."""

    index: int
    """The chosen point."""
    label: str
    """How the choice is described."""
    scores: dict[str, Floats]
    """One value per point of the path; the first entry is the score that decided."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""
    down_to: float | None = None
    """How far down the path should go for the choice to be certain; None when it is."""
    by_node: Ints | None = None
    """(n_nodes,) the chosen point of every node, where each has a lam of its own; `index` is then
    the last of them."""
    uncertain: tuple[str, ...] = ()
    """The columns for which the path should go further down, where each has a lam of its own."""
    groups: Ints | None = None
    """The chosen edges, where they are not just those of the point."""
    frequencies: Floats | None = None
    """(n_groups,) share of subsamples in which each edge was selected at the chosen lam."""
    tested: TestedEdges | None = None
    """Probabilities of all edges, where these were tested."""
    open_end: str = ""
    """Reason to try smaller values of lam than the path has; empty if there is none."""
    reasons: tuple[str, ...] = ()
    """Why a point was not considered, one entry per point; empty where it was."""
    refit: Floats | None = None
    """Theta of the chosen graph without shrinkage, roughly, if it is known."""
    params: Params | None = None
    """The refit in the data's own units, where rows have gaps."""
    memory: Any = None
    """State that the criterion needs again if the path is continued."""
    ends: tuple[Any, ...] = ()
    """Where the paths of folds or subsamples ended: their next parts start from there."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything from which lam is chosen."""

    design: Design | PartedDesign
    """The rows."""
    recipe: Recipe
    """Recipe for fits of some of the rows."""
    task: Task
    """The problem on all rows."""
    path: Path
    """Solutions of the task so far."""
    seed: np.random.SeedSequence
    """Seed of everything that is drawn."""
    table: Reference | None = None
    """Values of the table that the rows are a resample of; None when they are a whole table."""
    runtime: Runtime = field(default_factory=Runtime)
    """Workers for folds and subsamples, progress bars, and what Ctrl-C does."""
    before: Choice | None = None
    """The choice from the first `n_before` points, when the path has been continued since."""
    n_before: int = 0
    grows: bool = False
    """Whether smaller values of lam can be asked for."""

    @property
    def rows(self) -> Design | PartedDesign | Incomplete:
        """Rows from which resamples are taken, with missing cells where the table has some."""
        return self.design if self.task.incomplete is None else self.task.incomplete

    @cached_property
    def reference(self) -> Reference:
        """Values of the whole table that folds and subsamples keep."""
        known = Reference.of(self.design) if self.table is None else self.table
        # Their own candidates are mostly those of all rows.
        return known if self.task.beyond is None else replace(known, layout=self.task.layout)

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
        """Fraction `share` of the best-scored lam; None if the path has been there."""
        wanted = share * float(self.path.lams[best])
        return wanted if self.path.lams[-1] > wanted else None

    @property
    def saturated(self) -> bool:
        """Whether the last graph has every permitted edge."""
        n_active = len(self.path.points[-1].groups)
        return self.task.beyond is None and n_active == self.task.layout.n_groups


class Criterion(Protocol):
    """Chooses from a path.  A criterion may have more attributes: see `Traits`."""

    def choose(self, evidence: Evidence) -> Choice:
        """Score every point and choose one."""


@dataclass(frozen=True)
class Traits:
    """What a criterion says about itself by attributes, which it need not have."""

    refit: bool = False
    """Whether it judges graphs rather than shrunken estimates: these are refitted by default."""
    by_parts: bool = False
    """Whether the default path is solved in parts, each as far as the choice before it wants."""
    part: int = 10
    """Most values of lam in a part."""
    enough: Callable[[Task, PathPoint], bool] | None = None
    """Whether no smaller lam can be chosen, so that a default path may end at this point."""
    effort: float = 1.0
    """About how often the work of EBIC's path is done."""
    all_pairs: bool = False
    """Whether the layout has all permitted pairs, however wide the table is."""
    per_node: bool = False
    """Whether every column gets a lam of its own."""
    checkpoint: str | os.PathLike[str] | None = None
    """Folder in which finished fits are kept."""

    @classmethod
    def of(cls, criterion: object) -> Traits:
        """Read them from a criterion."""
        names = [each.name for each in fields(cls) if hasattr(criterion, each.name)]
        given: dict[str, Any] = {name: getattr(criterion, name) for name in names}
        return cls(**given)
