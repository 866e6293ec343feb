"""A known model, and its joint distribution as a list of states: the answer to every question.

All states of the categorical columns are visited one by one; conditioning multiplies their
probabilities by the Gaussian density of the known numbers and takes the Gaussian conditional.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

import mixedgm as mg
from tests.unit.joint import brute

COLUMNS: dict[str, Any] = {
    "age": "continuous",
    "sex": ["Female", "Male"],
    "wage": "continuous",
    "city": ["<b>Rome</b>", "Bath & Wells", "Oslo"],
    "height": "continuous",
    "smoker": [False, True],
}


def known_model(seed: int = 0, *, frame: str = "pandas", density: float = 1.0):
    """A model over COLUMNS, and its states."""
    params = brute.random_params(seed, 3, (2, 3, 2), density=density, strength=0.7)
    return mg.from_params(COLUMNS, mg.Params.of_joint(params), frame=frame), World.of(params)


@dataclass(frozen=True, eq=False)
class World:
    """States: level of every categorical column, probability, mean of the continuous ones."""

    continuous: list[str]
    levels: list[dict[str, Any]]
    prob: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(cls, params: mg.Params) -> World:
        states = brute.enumerate_states(params)
        names = [name for name, what in COLUMNS.items() if what != "continuous"]
        levels = [
            {name: COLUMNS[name][code] for name, code in zip(names, codes, strict=True)}
            for codes in states.codes
        ]
        continuous = [name for name, what in COLUMNS.items() if what == "continuous"]
        return cls(continuous, levels, states.prob, states.mean, states.covariance)

    def given(self, **known: Any) -> World:
        """What is left when some columns are known; smoker=None means that it is not."""
        known = {name: value for name, value in known.items() if value is not None}
        at = [k for k, name in enumerate(self.continuous) if name in known]
        rest = [k for k, name in enumerate(self.continuous) if name not in known]
        values = np.array([known[self.continuous[k]] for k in at])
        prob = self.prob * [
            all(known.get(name, level) == level for name, level in levels.items())
            for levels in self.levels
        ]
        mean, covariance = self.mean[:, rest], self.covariance[np.ix_(rest, rest)]
        if at:
            inner, cross = self.covariance[np.ix_(at, at)], self.covariance[np.ix_(rest, at)]
            prob = prob * [
                stats.multivariate_normal(m, inner).pdf(values) for m in self.mean[:, at]
            ]
            gain = cross @ np.linalg.inv(inner)
            mean = mean + (values - self.mean[:, at]) @ gain.T
            covariance = covariance - gain @ cross.T
        names = [self.continuous[k] for k in rest]
        return replace(
            self, continuous=names, prob=prob / prob.sum(), mean=mean, covariance=covariance
        )

    def chance(self, **levels: Any) -> float:
        """Probability that columns have these levels."""
        return float(self._weights(**levels).sum())

    def _weights(self, **levels: Any) -> np.ndarray:
        fits = [all(state[name] == x for name, x in levels.items()) for state in self.levels]
        return self.prob * fits

    def moments(self, *names: str, **levels: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of continuous columns where others have these levels."""
        weights = self._weights(**levels) / self.chance(**levels)
        at = [self.continuous.index(name) for name in names]
        mean = weights @ self.mean[:, at]
        off = self.mean[:, at] - mean
        return mean, self.covariance[np.ix_(at, at)] + (weights[:, None] * off).T @ off

    def density(self, numbers: dict[str, float], **levels: Any) -> float:
        """Density of some numbers times the probability of some levels."""
        at = [self.continuous.index(name) for name in numbers]
        values, inner = list(numbers.values()), self.covariance[np.ix_(at, at)]
        each = [stats.multivariate_normal(m, inner).pdf(values) for m in self.mean[:, at]]
        return float(self._weights(**levels) @ each)
