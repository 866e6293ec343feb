"""A seed -> a small table with every kind of column, and log densities written out by hand."""

from __future__ import annotations

import math

import numpy as np

PAIN = ["none", "mild", "strong", "severe"]
KIND = {
    "age": "continuous",
    "dose": "continuous",
    "debt": "hurdle",
    "pain": "ordinal",
    "grade": "ordinal",
    "visits": "count",
    "falls": "count",
    "ward": "categorical",
    "smoker": "categorical",
}
TYPES = {name: kind for name, kind in KIND.items() if kind in ("hurdle", "ordinal", "count")}


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
    owes = rng.random(n_rows) < 1 / (1 + np.exp(-1.2 * age - 0.8 * (smoker - 0.5)))
    debt = np.where(owes, 300 + 40 * age - 30 * (ward == 2) + 50 * rng.normal(size=n_rows), 0.0)
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
            "debt": debt,
        }
    )


def values_of(column) -> list:
    """All values of a discrete column, in order; of a hurdle column, its two parts."""
    if column.kind == "hurdle":
        return ["zero", "not zero"]
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
    if column.kind == "hurdle":
        return np.array([1.0, value - column.location]) if value else np.zeros(2)
    if column.kind in ("ordinal", "count"):
        return np.array([score_of(column, value)])
    return np.array([float(level == value) for level in column.levels])


def own_term(params, node, column, value) -> float:
    """What a column says about its own value, up to a constant."""
    terms = params.terms_of(node)
    if column.kind == "continuous":
        return terms[0] * value - 0.5 * params.diagonal[node] * value**2
    if column.kind == "hurdle":
        there, amount = seen(column, value)
        return terms[0] * there + terms[1] * amount - 0.5 * terms[2] * amount**2
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
    column = schema.nodes[schema.node_index(name)]
    if column.kind == "hurdle":
        zero = log_conditional(params, schema, {**row, name: 0.0}, name)
        mean, variance = gaussian(params, schema, row, name)
        most = log_conditional(params, schema, {**row, name: mean}, name)
        logs = np.array([zero, most + 0.5 * math.log(2 * math.pi * variance)])
    else:
        values = values_of(column)
        logs = np.array([log_conditional(params, schema, {**row, name: x}, name) for x in values])
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def gaussian(params, schema, row, name) -> tuple[float, float]:
    """Mean and variance of a continuous column given the rest: the log density is a parabola.

    So it is where a hurdle column is not zero.
    """
    column = schema.nodes[schema.node_index(name)]
    centre, step = (column.location, 50.0) if column.kind == "hurdle" else (0.0, 1.0)
    low, middle, high = (
        log_conditional(params, schema, {**row, name: centre + x}, name) for x in (-step, 0.0, step)
    )
    bend, slope = (low + high - 2.0 * middle) / step**2, 0.5 * (high - low) / step
    return centre - slope / bend, -1.0 / bend


def median_with_zeros(share: float, mean: float, deviation: float) -> float:
    """The smallest number with half of the probability up to it: of zeros and a normal share."""

    def up_to(x: float) -> float:
        normal = 0.5 * (1.0 + math.erf((x - mean) / (deviation * math.sqrt(2.0))))
        return share * normal + (1.0 - share) * (x >= 0.0)

    low, high = -abs(mean) - 10.0 * deviation, abs(mean) + 10.0 * deviation
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if up_to(middle) >= 0.5 else (middle, high)
    return high
