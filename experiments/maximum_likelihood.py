"""Maximum likelihood against pseudolikelihood on the conditional model, by both criteria.

The paper's last comparison: the three columns of the conditional model, given the other eight, are
fitted by either, each on a path of its own, and held-out rows are scored by the negative log
pseudolikelihood and by the negative log likelihood.  An edge is in one term of the likelihood and
in two of the pseudolikelihood, so that the likelihood at lam / 2 is as strongly penalised as the
pseudolikelihood at lam, and is drawn there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mixedgm as mg
from experiments.common import BLUE, ORANGE, Run, start
from experiments.surveys import (
    TARGETS,
    at_own_best,
    comparisons,
    draw_by_size,
    draws_of_sizes,
    mean_curves,
    split,
)

LOOKS = {"pseudolikelihood": (BLUE, "-"), "maximum likelihood": (ORANGE, "--")}
CRITERIA = ("negative log pseudolikelihood", "negative log likelihood")


def score(
    survey: Path | str, n: int, draw: int, held_out: int, method: str, lams: list[float]
) -> list[dict[str, Any]]:
    """Both losses of the three columns of the held-out rows, at every lam of one path."""
    train, test = split(survey, n, held_out, draw)
    others = [name for name in train if name not in TARGETS]
    if method == "pseudolikelihood":
        path = mg.fit_path(train, lams, covariates=others, n_jobs=1)
    else:
        halves = [lam / 2 for lam in lams]
        path = mg.fit_path(train, halves, covariates=others, loss="likelihood", n_jobs=1)
    losses = (-path.score(test), -path.log_likelihood(test))
    return [
        {"criterion": criterion, "lam": lam, "loss": loss}
        for criterion, at in zip(CRITERIA, losses, strict=True)
        for lam, loss in zip(lams, at, strict=True)
    ]


def main(run: Run) -> None:
    """Score both methods; write curves and each one's best, draw a row of panels per criterion."""
    table = run.table(score, comparisons(run, run.survey(), draws_of_sizes(run), LOOKS))
    curves = mean_curves(table, ["criterion", "n", "method"])
    run.save_table(curves, "maximum_likelihood")
    run.save_table(at_own_best(table, ["criterion", "n"]), "maximum_likelihood_best")
    label = "λ of the pseudolikelihood, 2λ of the likelihood"
    figure = draw_by_size(table, LOOKS, label, "ML minus PL")
    run.save_figure(figure, "maximum_likelihood")


if __name__ == "__main__":
    start(main, __doc__)
