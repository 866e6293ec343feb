"""A grid and a criterion -> the path and the choice from it; the grid grows where it must."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mixedgm.model.layout import Floats
from mixedgm.model.params import Params
from mixedgm.path import grid
from mixedgm.path.criteria import AIC, BIC, EBIC
from mixedgm.path.crossval import CV, Holdout
from mixedgm.path.evidence import Choice, Criterion, Evidence, Setup
from mixedgm.path.path import Path
from mixedgm.path.stability import StabilitySelection, StARS

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
_PART = 10


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
    """Solve a geometric grid, and more of it at its ratio as long as the choice wants more.

    A criterion that works by parts sees the grid in parts, so that nothing is solved far below
    the lam it chooses.  The first lam starts from `start`.
    """
    by_parts = getattr(criterion, "by_parts", False)
    size = min(_PART, len(lams)) if by_parts else len(lams)
    part, rest = lams[:size], lams[size:]
    path = _solved(setup, criterion, part, None, start)
    choice = criterion.choose(Evidence(setup, path))
    n_before, size = 0, max(_PART, len(lams) // 5)
    while choice.more and len(path) - n_before == len(part):  # else it has ended already
        part, rest = rest[:size], rest[size:]
        if len(part) == 0:
            part = grid.continued(path.lams, size, FLOOR * setup.task.lam_max)
        n_before = len(path)
        path = _solved(setup, criterion, part, path)
        if len(path) == n_before:
            break
        choice = criterion.choose(Evidence(setup, path, choice, n_before))
    return path, _with_end_noted(path, choice, "no smaller value was tried")


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
    if not choice.more:
        return choice
    note = f"the choice lies near the end of the path at lam = {path.lams[-1]:.4g}; {what}"
    return replace(choice, notes=(*choice.notes, note))
