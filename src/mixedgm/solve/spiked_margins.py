"""A model with spiked columns and the margins of a table -> node terms that have these, by chains.

As in `margins`, edges are fixed and the mean log likelihood is concave in the node terms.  Its
gradient and curvature, means and covariance of the node statistics, are those of rows that Gibbs
chains draw; the chains go on from step to step.  After some Newton steps the terms of the last ones
are averaged, which takes most of the noise out.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import DistributionError, SamplingWarning
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.effort import chain_seconds
from mixedgm.joint.spiked import ChainState, SpikedColumns
from mixedgm.joint.validity import factor
from mixedgm.model.layout import Floats
from mixedgm.model.margins import Margins, NodeTerms
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params
from mixedgm.printable import number_of
from mixedgm.progress import announce, track

MATCHING = "matching margins"
"""Name of the progress bar."""
MOST_TERMS = 1000
"""Node terms up to which margins are matched: their covariance is that of drawn rows."""

_CHAINS = 256
_BURN_IN = 100
_KEPT = 40
_THIN = 2
_STEPS = 6
_AVERAGED = 12
_LONGEST = 1.0
_FAR = 0.1


def matched_by_chains(
    params: Params, margins: Margins, *, limit: int = MOST_TERMS
) -> NodeTerms | None:
    """Node terms with which the joint distribution has the margins, nearly; None where it has none.

    Parameters and margins are in own units.  Beyond so many terms (`limit`) there is no search.
    """
    target = _target(params.nodes, margins)
    terms = _terms(params)
    if len(terms) > limit:
        return None
    rng, sweeps = np.random.default_rng(0), _BURN_IN + _THIN * _KEPT * (_STEPS + _AVERAGED + 5)
    seconds = chain_seconds(params.n_levels, _CHAINS, sweeps, by_scores=True)
    announce_matching(seconds, chains_over(params.n_levels))
    try:
        state = SpikedColumns.of(params, KnownColumns.none()).begin(_CHAINS, rng)
        rows = _drawn(params, state, rng, _BURN_IN)
        scale, free = rows.std(axis=0), np.isfinite(terms) & (rows.std(axis=0) > 0.0)
        kept = []
        for step in track(range(_STEPS + _AVERAGED), what=MATCHING, seconds=seconds):
            terms = _moved(params, terms, _newton(rows, target, scale, free))
            if step >= _STEPS:
                kept.append(terms)
            rows = _drawn(_with_terms(params, terms), state, rng)
        result = _with_terms(params, _possible(params, np.mean(kept, axis=0), terms))
        rows = np.vstack([_drawn(result, state, rng, _KEPT) for _ in range(4)])
    except DistributionError:
        return None
    off = (rows.mean(axis=0) - target) / np.where(scale > 0.0, scale, 1.0)
    by_chain = rows.reshape(-1, _CHAINS, len(target)).mean(axis=0)
    noise = by_chain.std(axis=0, ddof=1) / np.sqrt(_CHAINS) / np.where(scale > 0.0, scale, 1.0)
    error = float((np.abs(off) + 2.0 * noise)[free].max(initial=0.0))
    if error > _FAR:
        message = (
            "the joint distribution could not be given the margins of the table: it is off by up "
            f"to {error:.2g} standard deviations, and so are its answers. To change it: a larger "
            "lam, which makes edges weaker"
        )
        warnings.warn(SamplingWarning(message), stacklevel=4)
    return NodeTerms(result.bias, result.diagonal, error, sampled=True)


def announce_matching(seconds: float, how: str, *, at_most: bool = False) -> None:
    """Announce a search for node terms that takes long."""
    what = f"the first question to this model, which matches the table's margins {how},"
    remedy = (
        "save the model after it, with what was found; or a model with fewer edges or values (a "
        "larger lam, rare levels merged)"
    )
    announce(seconds, what, remedy, at_most=at_most)


def chains_over(n_levels: Sequence[int]) -> str:
    """Return what Gibbs chains have to redraw, as text."""
    columns = number_of(len(n_levels), "column")
    return f"by Gibbs chains ({sum(n_levels):,} values of {columns})"


def _terms(params: Params) -> Floats:
    """Own linear terms, with the diagonal of the precision at the end."""
    return np.concatenate([params.bias, params.diagonal])


def _with_terms(params: Params, terms: Floats) -> Params:
    n = len(params.bias)
    return replace(params, bias=terms[:n], diagonal=terms[n:])


def _target(nodes: Nodes, margins: Margins) -> Floats:
    """Means of what multiplies the terms, in the table."""
    p, mean, variance, share = nodes.n_gaussian, margins.mean, margins.variance, margins.share
    square = variance + mean[: len(variance)] ** 2
    parts = [mean[:p]]
    for column in nodes.spiked_terms[1].tolist():
        parts.append(np.array([mean[column], mean[column + 1], -0.5 * square[column + 1]]))
    for j in range(nodes.n_spiked, len(nodes.n_levels)):
        shares = share[nodes.levels_of(j)]
        scored = j < nodes.first_indicator and not nodes.free[j]
        parts.append(nodes.term_features(j).T @ shares if scored else shares)
    return np.concatenate([*parts, -0.5 * square[:p]])


def _drawn(params: Params, state: ChainState, rng: np.random.Generator, first: int = 0) -> Floats:
    """(rows, terms) statistics of the terms, in rows that the chains go on to draw."""
    model, nodes = SpikedColumns.of(params, KnownColumns.none()), params.nodes
    numbers = nodes.gaussian
    model.sweep(state, first, rng)
    blocks = []
    for _ in range(_KEPT):
        model.sweep(state, _THIN, rng)
        real, codes = model.drawn(state, rng), state.codes
        parts = [real[:, numbers], *nodes.spiked_statistics(real)]
        for j in range(nodes.n_spiked, len(nodes.n_levels)):
            scored = j < nodes.first_indicator and not nodes.free[j]
            table = nodes.term_features(j) if scored else np.eye(nodes.n_levels[j])
            parts.append(table[codes[:, j]])
        blocks.append(np.hstack([*parts, -0.5 * real[:, numbers] ** 2]))
    return np.vstack(blocks)


def _newton(rows: Floats, target: Floats, scale: Floats, free: NDArray[np.bool_]) -> Floats:
    """The Newton step of the free terms, no longer than the means move by one deviation."""
    units = scale[free]
    if not (np.isfinite(rows).all() and np.isfinite(target).all()):
        raise DistributionError("margins so large or small cannot be matched")
    z = (rows[:, free] - target[free]) / units
    off = z.mean(axis=0)
    covariance = np.cov(z.T).reshape(len(units), len(units))
    covariance[np.diag_indices(len(units))] += 1e-6
    step = np.linalg.lstsq(covariance, -off, rcond=1e-8)[0]
    size = float(np.abs(off).max(initial=0.0))
    out = np.zeros(len(scale))
    out[free] = min(1.0, _LONGEST / max(size, 1e-12)) * step / units
    return out


def _moved(params: Params, terms: Floats, step: Floats) -> Floats:
    """The terms after a step, or after a part of it: the first half that leaves a distribution."""
    return _possible(params, terms + step, terms)


def _possible(params: Params, wanted: Floats, terms: Floats) -> Floats:
    """Return the wanted terms, or a point on the way from `terms` that has a distribution."""
    finite = np.isfinite(terms)
    for _ in range(30):
        moved = _with_terms(params, wanted)
        if (moved.precisions > 0.0).all():
            try:
                factor(moved.real_precision)
            except DistributionError:
                pass
            else:
                return wanted
        wanted = np.where(finite, 0.5 * (wanted + np.where(finite, terms, 0.0)), terms)
    return terms
