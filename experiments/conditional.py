"""A model of three columns given the others, against the model of all columns.

The paper's conditional model: log-wage, education and job class of a survey are described given the
other eight columns.  Both models are fitted by pseudolikelihood to n rows, at 50 values of lam, and
scored by the negative log pseudolikelihood of the three columns of held-out rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mixedgm as mg
from experiments.common import BLUE, RED, Run, start
from experiments.surveys import (
    TARGETS,
    at_own_best,
    comparisons,
    draw_by_size,
    draws_of_sizes,
    mean_curves,
    split,
)

CRITERION = "negative log pseudolikelihood"
LOOKS = {"conditional": (BLUE, "-"), "generative": (RED, "--")}


def score(
    survey: Path | str, n: int, draw: int, held_out: int, method: str, lams: list[float]
) -> list[dict[str, Any]]:
    """Loss of the three columns of the held-out rows, at every lam of one path."""
    train, test = split(survey, n, held_out, draw)
    others = [name for name in train if name not in TARGETS]
    path = mg.fit_path(
        train, lams, covariates=others if method == "conditional" else None, n_jobs=1
    )
    losses = path.node_scores(test)
    total = sum(losses[name] for name in TARGETS)
    return [
        {"criterion": CRITERION, "lam": lam, "loss": loss}
        for lam, loss in zip(path.lams, total, strict=True)
    ]


def main(run: Run) -> None:
    """Score both models; write curves and each one's best, draw one panel for each n."""
    table = run.table(score, comparisons(run, run.survey(), draws_of_sizes(run), LOOKS))
    curves = mean_curves(table, ["criterion", "n", "method"])
    run.save_table(curves, "conditional")
    run.save_table(at_own_best(table, ["criterion", "n"]), "conditional_best")
    figure = draw_by_size(table, LOOKS, "λ", "generative minus\nconditional")
    run.save_figure(figure, "conditional")


if __name__ == "__main__":
    start(main, __doc__)
