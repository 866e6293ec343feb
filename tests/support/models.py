"""A model written down by hand, and chains of continuous columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixedgm.fit.fitted import FitReport, FittedModel
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params
from mixedgm.solve.loop import Certificate, Cost
from mixedgm.table.schema import Column, Schema

REPORT = FitReport(
    Certificate(1.25, 2e-6, converged=True, message="converged"),
    Cost(7),
    lam=0.1,
    tol=1e-5,
    n_rows=120,
    total_weight=120.0,
)


def by_hand(
    library: str = "pandas", names: tuple[str, ...] = ("sex", "age", "edu", "wage")
) -> FittedModel:
    """Nodes age, wage, sex, edu with four edges; everything easy to work out on paper."""
    sex, age, edu, wage = names
    schema = Schema(
        (
            Column(sex, "categorical", levels=("F", "M")),
            Column(age, "continuous"),
            Column(edu, "categorical", levels=("lo", "mid", "hi")),
            Column(wage, "continuous"),
        )
    )
    params = Params.of_blocks(
        n_levels=(2, 3),
        precision=np.array([[2.0, -1.0], [-1.0, 4.0]]),
        cont_bias=np.array([0.5, -0.5]),
        category_shift=np.array([[-0.5, 0.5, 0.0, 0.0, 0.0], [0.25, -0.25, 1.0, 0.0, -1.0]]),
        cat_interaction=np.zeros((5, 5)),
        cat_bias=np.array([0.1, -0.1, 0.0, 0.3, -np.inf]),
    )
    model = FittedModel(schema, params, np.array([2.0, 0.5, 0.7, 0.8]), REPORT, library)
    return replace(model, known_strengths=model.pair_norms)  # round numbers, none above 1


def with_strengths(model: FittedModel) -> FittedModel:
    """The model with strengths that are easy to work out from the norms of its edges."""
    return replace(model, known_strengths=model.pair_norms / np.hypot(1.0, model.pair_norms))


def chain(n: int, edges: list[tuple[int, int]]) -> FittedModel:
    """A model of n continuous columns whose precision has these edges."""
    precision = 3.0 * np.eye(n)
    for u, v in edges:
        precision[u, v] = precision[v, u] = -0.5
    params = Params.independent(Nodes.mixed(n, ())).with_precision(precision)
    schema = Schema(tuple(Column(f"v{k}", "continuous") for k in range(n)))
    return with_strengths(FittedModel(schema, params, np.ones(n), REPORT, "numpy"))
