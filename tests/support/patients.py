"""A seed -> a small table with every kind of column, and log densities written out by hand."""

from __future__ import annotations

import math

import numpy as np

PAIN = ["none", "mild", "strong", "severe"]
KIND = {
    "age": "continuous",
    "dose": "continuous",
    "pain": "ordinal",
    "grade": "ordinal",
    "visits": "count",
    "falls": "count",
    "ward": "categorical",
    "smoker": "categorical",
}
TYPES = {name: kind for name, kind in KIND.items() if kind in ("ordinal", "count")}


def patients(n_rows: int = 300, seed: int = 0):
    """A pandas frame: a chain of relations through all kinds, in an order that mixes them."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    age = rng.normal(size=n_rows)
    pain = np.digitize(0.9 * age + rng.logistic(size=n_rows), [-1.0, 0.3, 1.8])
    visits = rng.poisson(np.exp(0.2 + 0.35 * pain))
    ward = np.where(rng.random(n_rows) < 0.3, 0, 1 + (rng.random(n_rows) < 0.2 + 0.2 * pain))
    smoker = rng.random(n_rows) < np.where(visits > 2, 0.7, 0.3)
    grade = 1 + np.digitize(-0.8 * age + smoker + rng.logistic(size=n_rows), [-1.0, 0.0, 1.0, 2.5])
    falls = rng.poisson(np.exp(0.5 - 0.6 * (ward == 2)))
    dose = 50 + 10 * (0.5 * pain - 0.4 * np.sqrt(falls) + rng.normal(size=n_rows))
    return pd.DataFrame(
        {
            "visits": visits,
            "ward": pd.Categorical.from_codes(ward, ["east", "north", "west"]),
            "age": age,
            "pain": pd.Categorical.from_codes(pain, PAIN, ordered=True),
            "smoker": smoker,
            "dose": dose,
            "grade": grade,
            "falls": falls,
        }
    )


def values_of(column) -> list:
    """All values of a discrete column, in order."""
    return list(column.levels) if column.levels else list(range(column.largest + 1))


def score_of(column, value) -> float:
    """What the others see of a value of an ordinal or a count column."""
    if column.kind == "count":
        return math.sqrt(value)
    return (
        column.scores[values_of(column).index(value)]
        if column.scores
        else values_of(column).index(value)
    )


def seen(column, value) -> np.ndarray:
    """What the other columns see of a value."""
    if column.kind == "continuous":
        return np.array([value])
    if column.kind in ("ordinal", "count"):
        return np.array([score_of(column, value)])
    return np.array([float(level == value) for level in column.levels])


def own_term(params, node, column, value) -> float:
    """What a column says about its own value, up to a constant."""
    terms = params.terms_of(node)
    if column.kind == "continuous":
        return terms[0] * value - 0.5 * params.diagonal[node] * value**2
    if column.kind == "count":
        zero = terms[2] if column.zero_term and value == 0 else 0.0
        return terms[0] * math.sqrt(value) + terms[1] * value + zero - math.lgamma(value + 1)
    if column.kind == "ordinal" and column.thresholds == "quadratic":
        score = score_of(column, value)
        return terms[0] * score + terms[1] * score**2
    return terms[values_of(column).index(value)]


def log_density(params, schema, row) -> float:
    """Log density of a row, a mapping of names to values, up to a constant."""
    columns = schema.nodes
    z = [seen(column, row[column.name]) for column in columns]
    total = sum(own_term(params, k, c, row[c.name]) for k, c in enumerate(columns))
    for u in range(len(columns)):
        for v in range(u + 1, len(columns)):
            total += z[u] @ params.block(u, v) @ z[v]
    return float(total)


def log_conditional(params, schema, row, name) -> float:
    """Log density of one value of a row given the others, up to a constant."""
    v, columns = schema.node_index(name), schema.nodes
    total = own_term(params, v, columns[v], row[name])
    for u, column in enumerate(columns):
        if u != v:
            total += (
                seen(column, row[column.name]) @ params.says(u, v) @ seen(columns[v], row[name])
            )
    return float(total)


def chances(params, schema, row, name) -> np.ndarray:
    """Probability of every value of a discrete column given the rest of the row."""
    values = values_of(schema.nodes[schema.node_index(name)])
    logs = np.array([log_conditional(params, schema, {**row, name: x}, name) for x in values])
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def gaussian(params, schema, row, name) -> tuple[float, float]:
    """Mean and variance of a continuous column given the rest: the log density is a parabola."""
    low, middle, high = (
        log_conditional(params, schema, {**row, name: x}, name) for x in (-1.0, 0.0, 1.0)
    )
    bend, slope = low + high - 2.0 * middle, 0.5 * (high - low)
    return -slope / bend, -1.0 / bend
