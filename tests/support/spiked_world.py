"""A small model with columns that may be zero, and its distribution summed over all patterns."""

from itertools import product

import numpy as np

from mixedgm.families import CATEGORICAL, CONTINUOUS, HURDLE, HurdleKind, OrdinalKind
from mixedgm.model.layout import Floats
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params

SCORES = (0.0, 1.0, 4.0)
LOCATION = 0.8  # what is taken from h1 where it is not zero
# Design columns: x, (b1, h1), (b2, h2), score, three indicators.
X, B1, H1, B2, H2, SCORE, LEVEL = 0, 1, 2, 3, 4, 5, 6


def spiked_model() -> Params:
    """One continuous, two hurdle, one ordinal and one categorical column, all pairs related."""
    spiked = (HurdleKind(location=LOCATION), HURDLE)
    kinds = (CONTINUOUS, *spiked, OrdinalKind(level_scores=SCORES), CATEGORICAL)
    rng = np.random.default_rng(7)
    coef = rng.uniform(-0.5, 0.5, (9, 9))
    coef = coef + coef.T
    blocks = [slice(0, 1), slice(1, 3), slice(3, 5), slice(5, 6), slice(6, 9)]
    for block in blocks:
        coef[block, block] = 0.0
    coef[SCORE] *= 0.3
    coef[:, SCORE] *= 0.3
    bias = np.concatenate(
        [[0.4], [-0.8, 0.9, 1.5], [0.3, -0.4, 2.0], [0.0, 0.3, -0.2], [0.2, 0.0, -0.3]]
    )
    return Params(Nodes(kinds, (0, 2, 2, 3, 3)), bias, np.array([1.3]), coef)


class Enumerated:
    """The distribution pattern by pattern: of zeros, ordinal and categorical levels.

    In each the numbers that are not zero are Gaussian.  Written from the density alone.
    """

    def __init__(self, params: Params, known: dict[int, float] | None = None) -> None:
        """`known` has values of nodes 0 to 4: numbers, or codes."""
        known = known or {}
        coef, bias = params.coef, params.bias
        self.rows, log_weight = [], []
        for b1, b2, level, category in product((0, 1), (0, 1), range(3), range(3)):
            code = {3: level, 4: category}
            if any(code[node] != value for node, value in known.items() if node in code):
                continue
            if any((known[node] != 0.0) != b for node, b in ((1, b1), (2, b2)) if node in known):
                continue
            seen = np.zeros(9)  # all design columns but the numbers
            seen[[B1, B2, SCORE]] = b1, b2, SCORES[level]
            seen[LEVEL + category] = 1.0
            constant = bias[1] * b1 + bias[4] * b2 + bias[7 + level] + bias[10 + category]
            constant += 0.5 * seen @ coef @ seen
            columns = np.array([X, *([H1] if b1 else []), *([H2] if b2 else [])])
            linear = {X: bias[0], H1: bias[2], H2: bias[5]}
            slope = np.array([linear[c] for c in columns]) + coef[columns] @ seen
            precision = -coef[np.ix_(columns, columns)]
            diagonal = {X: params.diagonal[0], H1: bias[3], H2: bias[6]}
            precision[np.diag_indices(len(columns))] = [diagonal[c] for c in columns]
            number = {X: known.get(0), H1: known.get(1), H2: known.get(2)}
            if number[H1] is not None:
                number[H1] -= LOCATION
            fixed = [k for k, c in enumerate(columns) if number[c] is not None]
            free = [k for k, c in enumerate(columns) if number[c] is None]
            value = np.array([number[columns[k]] for k in fixed], dtype=float)
            constant += slope[fixed] @ value
            constant -= 0.5 * value @ precision[np.ix_(fixed, fixed)] @ value
            rest = slope[free] - precision[np.ix_(free, fixed)] @ value
            inner = precision[np.ix_(free, free)]
            covariance = np.linalg.inv(inner)
            constant += 0.5 * rest @ covariance @ rest
            constant += 0.5 * (len(free) * np.log(2 * np.pi) - np.linalg.slogdet(inner)[1])
            mean, spread = np.zeros(3), np.zeros((3, 3))
            at = [{X: 0, H1: 1, H2: 2}[columns[k]] for k in free]
            mean[at] = covariance @ rest
            mean[1] += LOCATION * b1
            spread[np.ix_(at, at)] = covariance
            for node in (0, 1, 2):
                mean[node] = known.get(node, mean[node])
            log_weight.append(constant)
            self.rows.append(((b1, b2, level, category), mean, spread))
        self.log_z = float(np.logaddexp.reduce(log_weight))
        self.prob = np.exp(np.array(log_weight) - self.log_z)

    def table(self) -> Floats:
        """Probabilities of zero patterns and levels."""
        out = np.zeros((2, 2, 3, 3))
        for p, (state, _, _) in zip(self.prob, self.rows, strict=True):
            out[state] += p
        return out

    @property
    def mean(self) -> Floats:
        return sum(p * mean for p, (_, mean, _) in zip(self.prob, self.rows, strict=True))

    @property
    def second(self) -> Floats:
        parts = zip(self.prob, self.rows, strict=True)
        return sum(p * (spread + np.outer(mean, mean)) for p, (_, mean, spread) in parts)
