"""A grid and a criterion -> the path and the choice from it; the grid grows where it must."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixedgm.base.printable import few
from mixedgm.model.layout import Floats
from mixedgm.model.params import Params
from mixedgm.path.path import Path, continued_lams, solve_path
from mixedgm.select.criteria import AIC, BIC, EBIC
from mixedgm.select.crossval import CV, Holdout
from mixedgm.select.error_rates import FDR, LocalFDR
from mixedgm.select.evidence import Choice, Criterion, Evidence, Traits
from mixedgm.select.stability import StabilitySelection, StARS

NAMED: dict[str, Criterion] = {
    "local-fdr": LocalFDR(),
    "fdr": FDR(),
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
# Values of lam in the first part of a path.
_FIRST = 10


class WholeGrid:
    """A criterion that sees the default grid as it is, however far down it chooses."""

    def __init__(self, criterion: Criterion) -> None:
        traits = Traits.of(criterion)
        self.criterion, self.enough = criterion, traits.enough
        self.refit, self.per_node = traits.refit, traits.per_node

    def choose(self, evidence: Evidence) -> Choice:
        """Choose by the criterion, from these values of lam only."""
        return replace(self.criterion.choose(evidence), down_to=None)


@dataclass(frozen=True)
class GivenLam:
    """The criterion where there is nothing to choose."""

    def choose(self, evidence: Evidence) -> Choice:
        """The only point of the path."""
        return Choice(0, "", {})


def choose(
    evidence: Evidence,
    criterion: Criterion,
    lams: Floats,
    *,
    grows: bool = False,
    start: Params | None = None,
) -> tuple[Path, Choice]:
    """Solve these lams and choose; a grid that `grows` is followed until the choice is certain.

    A geometric grid may grow past its end.  A criterion that works by parts sees it in parts, so
    that nothing is solved far below the lam it chooses; others see the whole grid first.  The first
    lam starts from `start`.
    """
    task, path, choice, enough = evidence.task, evidence.path, None, None
    n_wanted, traits = len(lams), Traits.of(criterion)
    if grows:
        if traits.by_parts:
            n_wanted = min(_FIRST, len(lams))
        lams = continued_lams(lams, FLOOR * task.lam_max)
        enough = traits.enough
    while True:
        n_before = len(path)
        path = solve_path(
            task,
            lams[n_before:n_wanted],
            evidence.recipe,
            start=path if n_before else start,
            enough=enough,
            runtime=evidence.runtime,
        )
        goes_on = grows and len(path) == n_wanted < len(lams)
        if len(path) > n_before:
            task = path.grown or task
            evidence = replace(
                evidence, task=task, path=path, before=choice, n_before=n_before, grows=goes_on
            )
            choice = criterion.choose(evidence)
        assert choice is not None  # a path without points is an error
        if not goes_on or choice.down_to is None:
            break
        last = int(np.argmax(np.append(lams, 0.0) <= choice.down_to))
        most = len(path) + traits.part
        n_wanted = min(max(last, len(path)) + 1, most, len(lams))
    return path, _with_end_noted(path, choice, grows)


def _with_end_noted(path: Path, choice: Choice, grows: bool) -> Choice:
    if choice.down_to is None:
        return choice
    whose = f" for {few(choice.uncertain)}" if choice.uncertain else ""
    where = f"the choice{whose} lies near the end of the path at lam = {path.lams[-1]:.4g}"
    tried = "no smaller value was tried"
    what = tried if grows else "give smaller values to see whether they do better"
    return replace(choice, open_end=f"{where}; {what}")
