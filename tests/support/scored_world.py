"""A small model with columns of all kinds, and its joint distribution as a list of states.

Nothing of the package's mathematics is used: states are visited one by one, and every term of the
log density is written out.  The numbers given a state are Gaussian in closed form.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from math import lgamma, sqrt
from typing import Any

import numpy as np
from scipy import stats

import mixedgm as mg
from mixedgm.model.params import Params

COLUMNS: dict[str, Any] = {
    "visits": mg.Count(largest=6, zero_term=True),
    "age": "continuous",
    "pain": mg.Ordinal(["none", "mild", "severe"], scores=[0, 1, 4]),
    "city": ["Bath", "Oslo", "Rome"],
    "mood": mg.Ordinal([1, 2, 3, 4], thresholds="quadratic"),
    "wage": "continuous",
    "rooms": mg.Count(largest=4),
}
NUMBERS = ("age", "wage")
# In the order of the model's arrays: ordinal columns, counts, categories.
DISCRETE = ("pain", "mood", "visits", "rooms", "city")
VALUES = {
    "pain": ["none", "mild", "severe"],
    "mood": [1, 2, 3, 4],
    "visits": list(range(7)),
    "rooms": list(range(5)),
    "city": ["Bath", "Oslo", "Rome"],
}
N_TERMS = {"pain": 3, "mood": 2, "visits": 3, "rooms": 2, "city": 3}


def seen(name: str, code: int) -> list[float]:
    """What the other columns see of a value."""
    if name == "pain":
        return [[0.0, 1.0, 4.0][code]]
    if name == "mood":
        return [float(code)]
    if name == "city":
        return [float(code == k) for k in range(3)]
    return [sqrt(code)]


def own(name: str, code: int, terms: np.ndarray) -> float:
    """Log weight of a value without neighbours."""
    if name in ("pain", "city"):
        return float(terms[code])
    if name == "mood":
        return float(terms[0] * code + terms[1] * code**2)
    weight = terms[0] * sqrt(code) + terms[1] * code - lgamma(code + 1)
    return float(weight + (terms[2] if name == "visits" and code == 0 else 0.0))


def random_params(seed: int, strength: float = 0.3) -> Params:
    """Parameters in which everything depends on everything."""
    rng = np.random.default_rng(seed)
    nodes = mg.from_params(COLUMNS, {}).fitted_.params.nodes
    d = nodes.n_columns
    coef = np.triu(strength * rng.normal(size=(d, d)), 1)
    coef = coef + coef.T
    coef[-3:, -3:] = 0.0
    bias = rng.normal(size=sum(N_TERMS.values()) + 2)
    bias[[6, 9, 11]] = -0.1, -0.2, -0.3  # terms of squares: no value is out of reach
    return Params(nodes, bias, np.array([1.5, 2.0]), coef)


@dataclass(frozen=True, eq=False)
class World:
    """States: values of discrete columns, their probability, and the numbers in them."""

    numbers: tuple[str, ...]
    states: list[dict[str, Any]]
    log_weight: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(cls, params: Params) -> World:
        precision = np.diag(params.diagonal) - params.coef[:2, :2]
        covariance = np.linalg.inv(precision)
        log_det = np.linalg.slogdet(2 * np.pi * covariance)[1]
        start, at = {}, 2
        for name in DISCRETE:
            start[name], at = at, at + N_TERMS[name]
        states, weights, means = [], [], []
        for codes in itertools.product(*(range(len(VALUES[name])) for name in DISCRETE)):
            z, weight = [], 0.0
            for name, code in zip(DISCRETE, codes, strict=True):
                terms = params.bias[start[name] : start[name] + N_TERMS[name]]
                weight += own(name, code, terms)
                z += seen(name, code)
            for a, b in itertools.combinations(range(len(z)), 2):
                weight += z[a] * z[b] * params.coef[2 + a, 2 + b]
            linear = params.bias[:2] + params.coef[:2, 2:] @ z
            weights.append(weight + 0.5 * linear @ covariance @ linear + 0.5 * log_det)
            means.append(covariance @ linear)
            states.append({n: VALUES[n][code] for n, code in zip(DISCRETE, codes, strict=True)})
        return cls(NUMBERS, states, np.array(weights), np.array(means), covariance)

    @cached_property
    def log_z(self) -> float:
        return float(np.logaddexp.reduce(self.log_weight))

    @cached_property
    def prob(self) -> np.ndarray:
        return np.exp(self.log_weight - self.log_z)

    def given(self, **known: Any) -> World:
        """What is left when some columns are known."""
        at = [k for k, name in enumerate(self.numbers) if name in known]
        rest = [k for k, name in enumerate(self.numbers) if name not in known]
        values = np.array([known[self.numbers[k]] for k in at])
        fits = self.fits({name: x for name, x in known.items() if name in VALUES})
        log_weight = np.where(fits, self.log_weight, -np.inf)
        mean, covariance = self.mean[:, rest], self.covariance[np.ix_(rest, rest)]
        if at:
            inner, cross = self.covariance[np.ix_(at, at)], self.covariance[np.ix_(rest, at)]
            density = stats.multivariate_normal(cov=inner)
            log_weight = log_weight + density.logpdf(values - self.mean[:, at])
            gain = cross @ np.linalg.inv(inner)
            mean = mean + (values - self.mean[:, at]) @ gain.T
            covariance = covariance - gain @ cross.T
        names = tuple(self.numbers[k] for k in rest)
        return World(names, self.states, log_weight, mean, covariance)

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        return {name: np.array([state[name] for state in self.states]) for name in VALUES}

    def fits(self, values: dict[str, Any]) -> np.ndarray:
        """Which states have these values."""
        fits = [self.columns[name] == x for name, x in values.items()]
        return np.logical_and.reduce([np.ones(len(self.states), dtype=bool), *fits])

    def chance(self, **values: Any) -> float:
        """Probability that discrete columns have these values."""
        return float(self.prob @ self.fits(values))

    def expected(self, name: str, **values: Any) -> float:
        """Mean of a number, or of a count, where discrete columns have these values."""
        weight = self.prob * self.fits(values)
        if name in self.numbers:
            each = self.mean[:, self.numbers.index(name)]
        else:
            each = self.columns[name].astype(float)
        return float(weight @ each / weight.sum())

    def variance(self, name: str) -> float:
        """Variance of a number over all states."""
        at = self.numbers.index(name)
        spread = self.prob @ (self.mean[:, at] - self.expected(name)) ** 2
        return float(spread + self.covariance[at, at])
