"""Expected pseudolikelihoods written out in NumPy, and irrepresentability from a Hessian.

Nothing of the package is used but the names of the blocks of Params.
"""

from itertools import combinations, product

import numpy as np

from mixedgm.model.params import Params


def hessian(function, at, step=1e-3):
    """Second derivatives by central differences of fourth order."""
    at = np.asarray(at, dtype=float)
    n = len(at)
    out = np.empty((n, n))
    offsets = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}
    for i in range(n):
        for j in range(i, n):
            total = 0.0
            for a, b in product(offsets, offsets):
                point = at.copy()
                point[i] += a * step
                point[j] += b * step
                total += offsets[a] * offsets[b] * function(point)
            out[i, j] = out[j, i] = total / step**2
    return out


class Rows:
    """All rows of a model with their probabilities: states of y, Gauss-Hermite points of x."""

    def __init__(self, params: Params, n_points: int = 48):
        p = params.n_cont
        node, weight = np.polynomial.hermite_e.hermegauss(n_points)
        unit = np.array(list(product(node, repeat=p))).reshape(n_points**p, p)
        share = np.array([np.prod(w) for w in product(weight, repeat=p)])
        share = share / share.sum()
        covariance = np.linalg.inv(params.precision)
        root = np.linalg.cholesky(covariance)
        self.codes, self.numbers, self.weight = [], [], []
        for state in product(*(range(n) for n in params.n_levels)):
            at = [int(params.level_start[j]) + level for j, level in enumerate(state)]
            slope = params.cont_bias + params.category_shift[:, at].sum(axis=1)
            log_weight = params.cat_bias[at].sum() + 0.5 * slope @ covariance @ slope
            log_weight += sum(params.cat_interaction[a, b] for a, b in combinations(at, 2))
            self.codes.append(np.tile(np.array(state, dtype=int), (len(unit), 1)))
            self.numbers.append(covariance @ slope + unit @ root.T)
            self.weight.append(np.exp(log_weight) * share)
        self.codes, self.numbers = np.concatenate(self.codes), np.concatenate(self.numbers)
        self.weight = np.concatenate(self.weight)
        self.weight /= self.weight.sum()

    def pseudolikelihood(self, params: Params) -> float:
        """Expected negative log pseudolikelihood, constants of the Gaussians left out."""
        p, start = params.n_cont, params.level_start
        at = self.codes + start[:-1]
        total = np.zeros(len(self.weight))
        for s in range(p):
            b = params.precision[s, s]
            eta = params.cont_bias[s] + params.category_shift[s][at].sum(axis=1)
            eta = eta - self.numbers @ params.precision[s] + b * self.numbers[:, s]
            total += -0.5 * np.log(b) + (eta - b * self.numbers[:, s]) ** 2 / (2 * b)
        for r in range(len(params.n_levels)):
            own = params.levels_of(r)
            logits = params.cat_bias[own] + self.numbers @ params.category_shift[:, own]
            for j in range(len(params.n_levels)):
                if j != r:
                    logits = logits + params.cat_interaction[own][:, at[:, j]].T
            top = logits.max(axis=1)
            log_sum = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
            total += log_sum - logits[np.arange(len(total)), self.codes[:, r]]
        return float(self.weight @ total)


def numbers(hess, weights, n_nodes, active):
    """max |sum_a K_ga z_a| of every missing scalar edge, and with the signs of `active`.

    `hess` is over node terms, then scalar edges; `active` maps the edges of the truth to signs.
    """
    edges = sorted(active)
    inside = [*range(n_nodes), *(n_nodes + a for a in edges)]
    missing = [g for g in range(len(weights)) if g not in active]
    solved = hess[np.ix_([n_nodes + g for g in missing], inside)] @ np.linalg.inv(
        hess[np.ix_(inside, inside)]
    )
    k = solved[:, n_nodes:] * weights[edges] / weights[missing][:, None]
    signs = np.array([active[a] for a in edges])
    return missing, np.abs(k).sum(axis=1), np.abs(k @ signs)
