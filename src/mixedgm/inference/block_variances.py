"""Estimates of the edges of a graph -> the variance of each edge's coefficients, by all of them.

The coefficients of an edge are taken as draws of a normal distribution with mean zero and a
variance of its own; variances are draws of an inverse gamma distribution, whose scale is fitted to
all edges (empirical Bayes).  So an edge of which well-measured coefficients are small does not get
a large one from a cell with hardly any rows.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from mixedgm.inference.pairs import PairEstimates
from mixedgm.model.layout import Floats, Ints
from mixedgm.threads import single_threaded_blas

_SHAPE = 1.0
"""Of the inverse gamma distribution: its scale counts like two coefficients."""
_LOG_VARIANCES = np.linspace(np.log(1e-4), np.log(100.0), 120)


def block_variances(estimates: PairEstimates, graph: Ints) -> Floats:
    """(n_groups,) variances of coefficients, in contrasts of standardised columns.

    They are infinite for edges with one parameter, whose estimate says all that is known about its
    size, and outside the graph.
    """
    out = np.full(estimates.layout.n_groups, np.inf)
    groups, likelihoods = _likelihoods(estimates, graph)
    if len(groups) == 0:
        return out
    scales = np.exp(_LOG_VARIANCES)
    priors = _log_inverse_gamma(scales[:, None])
    evidence = [logsumexp(likelihoods + prior, axis=1).sum() for prior in priors]
    posterior = likelihoods + priors[int(np.argmax(evidence))]
    log_precision = logsumexp(posterior - _LOG_VARIANCES, axis=1) - logsumexp(posterior, axis=1)
    out[groups] = np.exp(-log_precision)
    return out


def _likelihoods(estimates: PairEstimates, graph: Ints) -> tuple[Ints, Floats]:
    """Edges with several parameters, and the log likelihood of each at every variance."""
    groups, rows = [], [np.zeros((0, len(_LOG_VARIANCES)))]
    for of_size, values, covariance in estimates.by_size():
        at = np.flatnonzero(np.isin(of_size, graph))
        if values.shape[1] == 1 or len(at) == 0:
            continue
        with single_threaded_blas():
            own, axes = np.linalg.eigh(covariance[at])
        squares = np.square(np.einsum("gab,ga->gb", axes, values[at]))
        total = np.maximum(own, 0.0)[:, :, None] + np.exp(_LOG_VARIANCES)
        rows.append(-0.5 * (np.log(total) + squares[:, :, None] / total).sum(axis=1))
        groups.append(of_size[at])
    found = np.concatenate([np.zeros(0, dtype=np.int64), *groups])
    return found, np.concatenate(rows)


def _log_inverse_gamma(scale: Floats) -> Floats:
    """Log densities of the logarithm of a variance, at every variance, for every scale."""
    ratio = np.log(_SHAPE * scale) - _LOG_VARIANCES
    return np.asarray(_SHAPE * ratio - np.exp(ratio) - gammaln(_SHAPE))
