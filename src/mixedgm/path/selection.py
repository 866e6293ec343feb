"""A grid and a criterion -> the path and the choice from it; the grid grows where it must."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mixedgm.model.layout import Floats
from mixedgm.model.params import Params
from mixedgm.path import grid
from mixedgm.path.criteria import AIC, BIC, EBIC
from mixedgm.path.crossval import CV, Holdout
from mixedgm.path.evidence import Choice, Criterion, Evidence, Setup
from mixedgm.path.path import Path, PathPoint
from mixedgm.path.stability import StabilitySelection, StARS
from mixedgm.path.task import Task
from mixedgm.printable import few

NAMED: dict[str, Criterion] = {
    "ebic": EBIC(),
    "bic": BIC(),
    "aic": AIC(),
    "cv": CV(),
    "holdout": Holdout(),
    "stars": StARS(),
    "stability": StabilitySelection(),
}
# No grid grows below this share of lam_max: there the penalty hardly acts any more.
FLOOR = 1e-4
# Values of lam in the first part of a path, and in others unless the criterion says otherwise.
_FIRST = 10


@dataclass(frozen=True)
class WholeGrid:
    """A criterion that sees the default grid as it is, however far down it chooses."""

    criterion: Criterion

    def choose(self, evidence: Evidence) -> Choice:
        """As the criterion chooses from these values."""
        return replace(self.criterion.choose(evidence), down_to=None)

    @property
    def per_node(self) -> bool:
        """As the criterion has it."""
        return bool(getattr(self.criterion, "per_node", False))

    @property
    def refit(self) -> bool:
        """As the criterion has it."""
        return bool(getattr(self.criterion, "refit", False))

    def enough(self, task: Task, point: PathPoint) -> bool:
        """As the criterion says."""
        enough = getattr(self.criterion, "enough", None)
        return enough is not None and bool(enough(task, point))


def choose_from(setup: Setup, criterion: Criterion, lams: Floats) -> tuple[Path, Choice]:
    """Solve these lams and no others, and choose."""
    path = setup.recipe.path(
        setup.task, lams, keep_interrupted=setup.keep_interrupted, show=setup.show
    )
    choice = criterion.choose(Evidence(setup, path))
    return path, _with_end_noted(path, choice, "give smaller values to see whether they do better")


def choose_growing(
    setup: Setup, criterion: Criterion, lams: Floats, start: Params | None = None
) -> tuple[Path, Choice]:
    """Follow a geometric grid down, past its end if need be, until the choice is certain.

    A criterion that works by parts sees the grid in parts, so that nothing is solved far below
    the lam it chooses; others see the whole grid first.  The first lam starts from `start`.
    """
    by_parts = getattr(criterion, "by_parts", False)
    size = min(_FIRST, len(lams)) if by_parts else len(lams)
    lams = grid.continued(lams, FLOOR * setup.task.lam_max)
    path = _solved(setup, criterion, lams[:size], None, start)
    choice = criterion.choose(Evidence(setup, path))
    n_wanted = size
    while choice.down_to is not None and len(path) == n_wanted < len(lams):
        n_before, last = len(path), int(np.argmax(np.append(lams, 0.0) <= choice.down_to))
        n_wanted = min(max(last, n_before) + 1, n_before + _size(criterion), len(lams))
        path = _solved(setup, criterion, lams[n_before:n_wanted], path)
        if len(path) > n_before:
            choice = criterion.choose(Evidence(setup, path, choice, n_before))
    return path, _with_end_noted(path, choice, "no smaller value was tried")


def _size(criterion: Criterion) -> int:
    """Values of lam in every part but the first."""
    return int(getattr(criterion, "part", _FIRST))


def _solved(
    setup: Setup,
    criterion: Criterion,
    lams: Floats,
    after: Path | None,
    start: Params | None = None,
) -> Path:
    enough = getattr(criterion, "enough", None)
    return setup.recipe.path(
        setup.task,
        lams,
        start=start,
        after=after,
        enough=None if enough is None else partial(enough, setup.task),
        keep_interrupted=setup.keep_interrupted,
        show=setup.show,
    )


def _with_end_noted(path: Path, choice: Choice, what: str) -> Choice:
    if choice.down_to is None:
        return choice
    whose = f" for {few(choice.uncertain)}" if choice.uncertain else ""
    where = f"the choice{whose} lies near the end of the path at lam = {path.lams[-1]:.4g}"
    return replace(choice, open_end=f"{where}; {what}")
