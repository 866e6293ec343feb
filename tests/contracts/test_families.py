"""Every family against its density written down here, integrated, summed and differentiated."""

from collections.abc import Callable
from dataclasses import dataclass
from math import lgamma, log

import numpy as np
import pytest
from scipy.integrate import quad

from mixedgm.families import (
    CATEGORICAL,
    CONTINUOUS,
    KINDS,
    CountKind,
    HurdleKind,
    Kind,
    OrdinalKind,
)

NUMBERS = 3.0, -50.0, 50.0
"""Where a number is likely to be, and where it cannot be."""


@dataclass(frozen=True)
class Case:
    """A column: its log density and statistics by value; a value is a state and a number."""

    kind: Kind
    n_states: int
    has_number: bool
    terms: list[float]
    predictors: list[float]
    log_weight: Callable[[list[float], list[float], int, float], float]
    seen: Callable[[int, float], list[float]]
    statistics: Callable[[int, float], list[float]]

    def own(self, terms: list[float]) -> np.ndarray:
        """(1, slots) from own terms: of scored columns, logits of the values."""
        if self.kind.name not in ("ordinal", "count"):
            return np.array([terms])
        n = self.n_states
        return np.array([[self.log_weight(terms, [0.0], k, 0.0) for k in range(n)]])

    def given(self, terms: list[float], predictors: list[float]):
        """What the family says."""
        m = np.array(predictors)[None, :, None]
        return self.kind.family(self.n_states).given(self.own(terms), m)

    def integral(self, function: Callable[[int, float], float]) -> float:
        """Sum over states; integral over the number of the last one."""
        last = self.n_states - 1 if self.has_number else self.n_states
        total = sum(function(state, 0.0) for state in range(last))
        if self.has_number:
            middle, low, high = NUMBERS
            for ends in ((low, middle), (middle, high)):
                total += quad(lambda x: function(last, x), *ends, epsabs=1e-13, limit=200)[0]
        return total

    def expected(self, what: Callable[[int, float], list[float]]) -> np.ndarray:
        """Means of some functions of the value."""

        def weight(state: int, x: float) -> float:
            return float(np.exp(self.log_weight(self.terms, self.predictors, state, x)))

        total = self.integral(weight)
        length = len(what(0, 1.0))
        parts = [
            self.integral(lambda s, x, k=k: what(s, x)[k] * weight(s, x)) for k in range(length)
        ]
        return np.array(parts) / total


def hurdle(b: int, x: float) -> list[float]:
    return [b, x * b, -0.5 * x * x * b]


def score(value: int) -> float:
    return ([0.0, 1.0, 4.0][value] - 1.5) / 0.8


def root(count: int) -> float:
    return (count**0.5 - 1.2) / 0.7


def counted(t: list[float], c: int) -> float:
    return t[0] * root(c) + t[1] * root(c) ** 2 + (c == 0) * t[2] - lgamma(c + 1.0)


CASES = {
    "continuous": Case(
        CONTINUOUS, 1, True, [0.4, 1.7], [0.9],
        lambda t, m, s, x: (t[0] + m[0]) * x - 0.5 * t[1] * x * x,
        lambda s, x: [x],
        lambda s, x: [x, -0.5 * x * x],
    ),
    "hurdle": Case(
        HurdleKind(location=2.0, centre=(0.3, 0.6), scale=(0.45, 2.5)), 2, True,
        [-0.6, 0.7, 1.4], [0.35, -0.8],
        # x is y / scale here: b and y are seen less their centres, divided by their scales.
        lambda t, m, b, x: b * (t[0] + m[0] / 0.45 + (t[1] + m[1]) * x - 0.5 * t[2] * x * x),
        lambda b, x: [(b - 0.3) / 0.45, b * x - 0.6 / 2.5],
        hurdle,
    ),
    "ordinal": Case(
        OrdinalKind(level_scores=(0.0, 1.0, 4.0), centre=1.5, scale=0.8), 3, False,
        [0.2, -0.5, 0.1], [0.6],
        lambda t, m, s, x: t[s] + score(s) * m[0],
        lambda s, x: [score(s)],
        lambda s, x: [float(s == k) for k in range(3)],
    ),
    "count": Case(
        CountKind(zero_term=True, centre=1.2, scale=0.7), 9, False,
        [1.1, 0.3, 0.8], [-0.4],
        lambda t, m, s, x: counted(t, s) + root(s) * m[0],
        lambda s, x: [root(s)],
        lambda s, x: [root(s), root(s) ** 2, float(s == 0)],
    ),
    "categorical": Case(
        CATEGORICAL, 4, False, [0.3, -1.0, 0.5, 0.0], [0.2, 0.7, -0.6, 0.1],
        lambda t, m, s, x: t[s] + m[s],
        lambda s, x: [float(s == k) for k in range(4)],
        lambda s, x: [float(s == k) for k in range(4)],
    ),
}  # fmt: skip
each_kind = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def values(case: Case) -> list[tuple[int, float]]:
    """Every state; with some numbers in the last one."""
    plain = [(s, 0.0) for s in range(case.n_states - case.has_number)]
    return plain + [(case.n_states - 1, x) for x in (-1.3, 0.2, 2.9) if case.has_number]


def moved(at: list[float], k: int, step: float) -> list[float]:
    return [x + step * (i == k) for i, x in enumerate(at)]


def test_every_kind_has_a_case():
    assert set(CASES) == set(KINDS)


@each_kind
def test_the_normaliser_is_the_integral(case):
    total = case.integral(
        lambda s, x: float(np.exp(case.log_weight(case.terms, case.predictors, s, x)))
    )
    given = case.given(case.terms, case.predictors)
    assert given.log_normaliser[0, 0] == pytest.approx(log(total), abs=1e-10)


@each_kind
def test_densities_and_statistics_of_values(case):
    given, family = case.given(case.terms, case.predictors), case.kind.family(case.n_states)
    total = case.integral(
        lambda s, x: float(np.exp(case.log_weight(case.terms, case.predictors, s, x)))
    )
    for state, x in values(case):
        codes, numbers = np.array([[state]]), np.array([[x]])
        columns = family.columns(codes, numbers)
        np.testing.assert_allclose(columns[0, :, 0], case.seen(state, x), atol=1e-13)
        if case.has_number:
            np.testing.assert_allclose(family.numbers(codes, columns), numbers, atol=1e-13)
        statistics = family.statistics(codes, numbers)[0, :, 0]
        np.testing.assert_allclose(statistics, case.statistics(state, x), atol=1e-13)
        scores = [each[0, 0] for each in given.scores(codes, numbers)]
        np.testing.assert_allclose(scores, given.terms[0, :, 0] - statistics, atol=1e-13)
        expected = case.log_weight(case.terms, case.predictors, state, x) - log(total)
        assert given.log_density(codes, numbers)[0, 0] == pytest.approx(expected, abs=1e-10)


@each_kind
def test_expectations_are_integrals(case):
    given = case.given(case.terms, case.predictors)
    np.testing.assert_allclose(given.columns[0, :, 0], case.expected(case.seen), atol=1e-9)
    np.testing.assert_allclose(given.terms[0, :, 0], case.expected(case.statistics), atol=1e-9)


@each_kind
def test_covariances_are_integrals(case):
    of_columns, with_terms = case.given(case.terms, case.predictors).covariances()
    mean = case.expected(case.seen), case.expected(case.statistics)

    def products(first, second):
        return lambda s, x: np.multiply.outer(first(s, x), second(s, x)).ravel()

    for found, other, mean_of_other in (
        (of_columns, case.seen, mean[0]),
        (with_terms, case.statistics, mean[1]),
    ):
        second = case.expected(products(case.seen, other))
        expected = second.reshape(len(mean[0]), -1) - np.outer(mean[0], mean_of_other)
        np.testing.assert_allclose(found[0, :, :, 0], expected, atol=1e-8)


@each_kind
def test_expectations_are_derivatives_of_the_normaliser_and_covariances_theirs(case):
    step, given = 1e-5, case.given(case.terms, case.predictors)
    of_columns, with_terms = given.covariances()
    for k in range(len(case.predictors)):
        up, down = (case.given(case.terms, moved(case.predictors, k, s)) for s in (step, -step))
        slope = (up.columns - down.columns)[0, :, 0] / (2 * step)
        np.testing.assert_allclose(of_columns[0, k, :, 0], slope, atol=1e-8)
    for k in range(len(case.terms)):
        up, down = (case.given(moved(case.terms, k, s), case.predictors) for s in (step, -step))
        slope = (up.log_normaliser - down.log_normaliser)[0, 0] / (2 * step)
        assert given.terms[0, k, 0] == pytest.approx(slope, abs=1e-8)
        slope = (up.columns - down.columns)[0, :, 0] / (2 * step)
        np.testing.assert_allclose(with_terms[0, :, k, 0], slope, atol=1e-8)


@each_kind
@pytest.mark.statistical
def test_draws_have_the_expected_statistics(case):
    """Means of 40,000 draws are within five standard errors: fails once in a million times."""
    n, family = 40_000, case.kind.family(case.n_states)
    m = np.repeat(np.array(case.predictors)[None, :, None], n, axis=2)
    given = family.given(case.own(case.terms), m)
    codes, numbers = given.drawn(np.random.default_rng(5))
    assert codes.min() >= 0
    assert codes.max() < case.n_states
    assert not np.any(numbers[codes < case.n_states - case.has_number])
    drawn = family.statistics(codes, numbers)[0]
    away = drawn.mean(axis=1) - case.expected(case.statistics)
    assert np.all(np.abs(away) <= 5.0 * drawn.std(axis=1) / np.sqrt(n) + 1e-12)


@each_kind
def test_states_add_up_to_the_normaliser(case):
    family = case.kind.family(case.n_states)
    states = family.states(case.own(case.terms)[0])
    logits = states.logits + states.columns @ case.predictors
    weights = np.exp(logits)
    if states.number is not None:
        slope, precision = states.number[0] + case.predictors[-1], states.number[1]
        middle, low, high = NUMBERS
        weights[-1] *= sum(
            quad(lambda x: np.exp(slope * x - 0.5 * precision * x * x), *ends)[0]
            for ends in ((low, middle), (middle, high))
        )
    found = case.given(case.terms, case.predictors).log_normaliser[0, 0]
    assert np.log(weights.sum()) == pytest.approx(found, abs=1e-9)


@each_kind
def test_noise_gives_the_optimum_of_likelihood_and_ridge(case):
    """Own terms with noise minimise the mean loss plus half the noise times the precision."""
    family, noise, step = case.kind.family(case.n_states), 0.3, 1e-5
    own = case.own(case.terms)
    found = family.with_noise(own, np.array([noise]))
    if not case.has_number:
        np.testing.assert_array_equal(found, own)
        return
    still = [0.0] * len(case.predictors)
    means = case.given(case.terms, still).terms[0, :, 0]

    def loss(terms: list[float]) -> float:
        normaliser = case.given(terms, still).log_normaliser[0, 0]
        return float(normaliser - means @ terms + 0.5 * noise * terms[-1])

    at = found[0].tolist()
    for k in range(len(at)):
        slope = (loss(moved(at, k, step)) - loss(moved(at, k, -step))) / (2 * step)
        assert slope == pytest.approx(0.0, abs=1e-8)
        assert abs(at[k] - case.terms[k]) > 1e-3


@each_kind
def test_columns_side_by_side_are_those_alone(case):
    family, rng = case.kind.family(case.n_states), np.random.default_rng(2)
    own = np.repeat(case.own(case.terms), 2, axis=0)
    m = rng.normal(size=(2, len(case.predictors), 5))
    both = type(family).stacked([family, family]).given(own, m)
    for g in range(2):
        alone = family.given(own[:1], m[g : g + 1])
        for found, expected in (
            (both.log_normaliser, alone.log_normaliser),
            (both.columns, alone.columns),
            (both.terms, alone.terms),
            *zip(both.covariances(), alone.covariances(), strict=True),
        ):
            np.testing.assert_allclose(found[g], expected[0], atol=1e-13)


@pytest.mark.parametrize("kind", [OrdinalKind(centre=1.0, scale=0.5), CountKind(), CATEGORICAL])
def test_columns_with_fewer_values_are_padded(kind):
    families, rng = [kind.family(3), kind.family(5)], np.random.default_rng(4)
    if kind is CATEGORICAL:  # indicators are as wide as they are many
        families = [each.in_basis(lambda n: np.eye(n)[:, 1:3]) for each in families]
    own = np.full((2, 5), -np.inf)
    own[0, :3], own[1] = rng.normal(size=3), rng.normal(size=5)
    m = rng.normal(size=(2, 2 if kind is CATEGORICAL else 1, 6))
    both = type(families[0]).stacked(families).given(own, m)
    for g, n in enumerate((3, 5)):
        alone = families[g].given(own[g : g + 1, :n], m[g : g + 1])
        np.testing.assert_allclose(both.columns[g], alone.columns[0], atol=1e-13)
        np.testing.assert_allclose(
            both.terms[g][: alone.terms.shape[1]], alone.terms[0], atol=1e-13
        )
        np.testing.assert_allclose(both.covariances()[0][g], alone.covariances()[0][0], atol=1e-13)
