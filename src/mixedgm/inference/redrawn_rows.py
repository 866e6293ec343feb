"""Rows and an estimate -> rows of the estimate's own distribution, by Gibbs steps from the rows.

The rows themselves are a sample of nearly that distribution, so a few steps are enough to forget
what is particular to them.  Covariates stay as they are, and so do the moderators, which are
covariates.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixedgm.inference.row_scores import Scorer
from mixedgm.model.layout import Floats
from mixedgm.rows.memory import MemoryRows

_STEPS = 4
_ROWS = 4_000, 20_000
_NUMBERS = 2e8


def redrawn(scorer: Scorer, rows: MemoryRows, rng: np.random.Generator) -> MemoryRows:
    """Redraw all columns of copies of the rows, or of some of them.

    There are about 20,000 of them, with which variances have an error of one per cent; fewer where
    there are very many parameters.
    """
    n_rows = int(np.clip(_NUMBERS / scorer.reduced.n_theta, *_ROWS))
    copies = -(-n_rows // rows.n_rows)
    index = np.tile(np.arange(rows.n_rows), copies)
    if copies == 1:
        index = index[:: max(1, rows.n_rows // n_rows)]
    products = rows.products
    if products is not None:
        products = replace(products, features=products.features[index])
    new = replace(
        rows,
        numbers=rows.numbers[index],
        codes=rows.codes[index],
        weights=None if rows.weights is None else rows.weights[index],
        products=products,
    )
    columns = scorer.columns(new)
    for _ in range(_STEPS):
        _step(scorer, new, columns, rng)
    return new


def _step(scorer: Scorer, rows: MemoryRows, columns: Floats, rng: np.random.Generator) -> None:
    """Redraw every column that has a conditional, in place."""
    layout, reduced, coef = scorer.layout, scorer.reduced, scorer.coef
    for v in np.flatnonzero(layout.is_target).tolist():
        at = reduced.nodes.columns_of(v)
        seen = _drawn(scorer, rows, v, columns @ coef[:, at], rng)
        if layout.nodes.numeric_nodes[v]:
            rows.numbers[:, at] = seen
        columns[:, at] = seen
        if rows.products is not None:
            centred = seen - scorer.contrasts_of(rows.products.centre)[at]
            for k, feature in enumerate(rows.products.features.T):
                first = (1 + k) * reduced.n_columns
                columns[:, first + at.start : first + at.stop] = feature[:, None] * centred


def _drawn(
    scorer: Scorer, rows: MemoryRows, node: int, predictors: Floats, rng: np.random.Generator
) -> Floats:
    """(m, columns) what others see of a node, drawn given its predictors; codes are set."""
    layout, nodes, n = scorer.layout, scorer.layout.nodes, len(predictors)
    if nodes.is_gaussian(node):
        precision = float(scorer.theta[layout.diagonal][node])
        mean = (predictors + scorer.theta[layout.linear][node]) / precision
        return np.asarray(mean + rng.standard_normal((n, 1)) / np.sqrt(precision))
    j = nodes.place(node)
    if nodes.spiked_nodes[node]:
        chance, mean, precision = scorer.spiked_parts(j, predictors)
        unit, middle, share = nodes.scores[nodes.slots_of(j)]
        there = rng.random(n) < chance
        amount = np.where(there, mean + rng.standard_normal(n) / np.sqrt(precision), 0.0)
        rows.codes[:, j] = there
        return np.column_stack([unit * there - share, amount - middle])
    odds = scorer.odds(j, predictors).cumsum(axis=0)
    code = (odds[:-1] < rng.random(n) * odds[-1]).sum(axis=0)
    rows.codes[:, j] = code
    return np.asarray(scorer.seen_values(j)[code])
