"""Estimates of pairs and their covariances -> a p-value and an equivalent z for every pair.

A pair of many parameters is tested twice: in all directions at once, W = n e'V^-1 e against a
chi-square of as many degrees of freedom, and along one direction, that of levels in their order,
whose square is part of W.  The smaller p-value counts, calibrated by its null distribution (Tippett
1931).  So a pair of 16 parameters loses little power where its columns behave like ordered ones,
and little where they do not.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache, partial

import numpy as np
from scipy.special import chdtrc, chdtri, gammaln, log_ndtr, ndtri_exp

from mixedgm.base.threads import run_some
from mixedgm.inference.pairs import PairEstimates
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.moderation import level_basis
from mixedgm.model.nodes import Nodes

_TINY = 1e-300
_NODES = 250
_LOWEST = 600.0
"""Beyond the p-value exp(-600), the calibration no longer changes."""
_TERMS = 40
_ROOM, _HALVINGS = 5.0, 40
_RANK = 1e-12
"""Smaller shares of the largest variance are rounding errors."""


@dataclass(frozen=True, eq=False)
class PairStatistics:
    """Tests of all groups."""

    statistic: Floats
    """(n_groups,) W: Wald's, or the score test's, in all directions."""
    df: Ints
    direction: Floats
    """(n_groups,) z along levels in order; of pairs with one parameter, its z with its sign."""
    log_p: Floats
    """(n_groups,) logarithms of the combined p-values."""

    def among(self, groups: Ints, n_groups: int) -> PairStatistics:
        """The same tests as those of some of so many groups; NaN for all others."""
        if len(groups) == n_groups:
            return self
        statistic, direction, log_p = np.full((3, n_groups), np.nan)
        df = np.zeros(n_groups, dtype=np.int64)
        statistic[groups], direction[groups] = self.statistic, self.direction
        log_p[groups], df[groups] = self.log_p, self.df
        return PairStatistics(statistic, df, direction, log_p)

    def replaced(self, groups: Ints, other: PairStatistics) -> PairStatistics:
        """The tests with those of some groups taken from others of the same groups."""
        at = np.isin(np.arange(len(self.df)), groups)
        pairs = [(getattr(other, f.name), getattr(self, f.name)) for f in fields(self)]
        return PairStatistics(*(np.where(at, new, old) for new, old in pairs))

    @property
    def p(self) -> Floats:
        """The combined p-values."""
        return np.exp(self.log_p)

    def log_p_at(self, groups: Ints, statistic: Floats) -> Floats:
        """Logarithms of combined p-values that groups would have at other sizes of their estimates.

        `statistic` is W at that size; the direction of an estimate stays.
        """
        share = np.square(self.direction[groups]) / np.maximum(self.statistic[groups], _TINY)
        out = np.empty(len(groups))
        for df in np.unique(self.df[groups]).tolist():
            at = self.df[groups] == df
            out[at] = log_tail(statistic[at], df)
            if df > 1:
                along = np.minimum(share[at], 1.0) * statistic[at]
                out[at] = combined(out[at], log_tail(along, 1), df)
        return out

    def least_statistic(self, groups: Ints, log_limit: float) -> Floats:
        """W from which on groups have at most this p-value, if their directions stay."""
        low = np.zeros(len(groups))
        high = 2.0 * (_ROOM - log_limit) + 4.0 * self.df[groups]
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            enough = self.log_p_at(groups, middle) <= log_limit
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.asarray(high, dtype=np.float64)

    @property
    def z(self) -> Floats:
        """(n_groups,) the standard normal number, above zero, that has this p-value."""
        return equivalent_z(self.log_p)


def equivalent_z(log_p: Floats) -> Floats:
    """Absolute value of a standard normal number that has this two-sided p-value."""
    return np.asarray(np.maximum(-ndtri_exp(np.minimum(log_p, 0.0) - np.log(2.0)), 0.0))


def pair_statistics(estimates: PairEstimates, full: Nodes) -> PairStatistics:
    """Test every group.  `full` are the nodes with all their levels."""
    layout = estimates.layout
    statistic, direction, log_p = np.zeros((3, layout.n_groups))
    directions, starts = ordered_directions(layout, full), layout.starts - layout.n_node_terms

    def test(groups: Ints, values: Floats, covariance: Floats) -> None:
        k = values.shape[1]
        along = directions[starts[groups][:, None] + np.arange(k)]
        both = np.stack([values, along], axis=2)
        solved = _solved(covariance, both)
        statistic[groups] = np.einsum("ga,ga->g", values, solved[:, :, 0])
        length = np.sqrt(np.einsum("ga,ga->g", along, solved[:, :, 1]))
        across = np.einsum("ga,ga->g", values, solved[:, :, 1])
        direction[groups] = np.divide(across, length, out=np.zeros(len(across)), where=length > 0.0)
        log_p[groups] = log_tail(statistic[groups], k)
        if k > 1:
            log_p[groups] = combined(log_p[groups], log_tail(direction[groups] ** 2, 1), k)

    parts = [partial(test, *part) for part in estimates.by_size()]
    run_some(parts, int((layout.sizes**3).sum()))
    return PairStatistics(statistic, layout.sizes, direction, log_p)


def _solved(matrices: Floats, vectors: Floats) -> Floats:
    """Solutions; the shortest ones where a direction has no variance, or a negative one.

    Covariances of columns that nearly determine each other can be indefinite by rounding.
    """
    try:
        found = np.linalg.solve(matrices, vectors)
    except np.linalg.LinAlgError:
        found = np.full(vectors.shape, np.nan)
    odd = ~(np.einsum("gak,gak->gk", vectors, found) >= 0.0).all(axis=1)
    if odd.any():
        values, axes = np.linalg.eigh(matrices[odd])
        inverse = np.where(values > _RANK * values[:, -1:], values, np.inf) ** -1.0
        turned = np.swapaxes(axes, 1, 2) @ vectors[odd]
        found[odd] = axes @ (inverse[..., None] * turned)
    return np.asarray(found)


def log_tail(x: Floats, df: int) -> Floats:
    """Logarithm of the probability that a chi-square is larger, also where that underflows.

    There it is Legendre's continued fraction of the incomplete gamma function.
    """
    x = np.asarray(x, dtype=np.float64)
    if df == 1:  # twice the tail of a normal number
        return np.asarray(np.log(2.0) + log_ndtr(-np.sqrt(x)))
    near = chdtrc(df, x)
    out = np.log(np.maximum(near, _TINY))
    tiny = ~(near > _TINY)
    if tiny.any():
        out = np.asarray(out)
        out[tiny] = _far_tail(x[tiny], df)
    return np.asarray(out)


def _far_tail(x: Floats, df: int) -> Floats:
    """The same by the continued fraction."""
    half, far = 0.5 * df, np.maximum(0.5 * x, 0.5 * df + 1.0)
    fraction = far + (2 * _TERMS + 1 - half)
    for k in range(_TERMS, 0, -1):
        fraction = far + (2 * k - 1 - half) - k * (k - half) / fraction
    return np.asarray(half * np.log(far) - far - gammaln(half) - np.log(fraction))


def ordered_directions(layout: Layout, full: Nodes) -> Floats:
    """(edge parameters,) for every group, how its contrasts look if both ends are ordered.

    Levels count 1, 2, ..., a column of numbers as it is; of a hurdle column, whether and how much
    count the same.  Of a deviation, so for each feature of its moderator.
    """
    scores = np.concatenate(
        [
            np.ones(n) if is_numeric else np.arange(n) @ level_basis(n)
            for n, is_numeric in zip(full.width.tolist(), full.numeric_nodes, strict=True)
        ]
    )
    row, column = layout.edge_position
    return np.asarray(scores[row % layout.n_columns] * scores[column])


def combined(log_p: Floats, log_p_along: Floats, df: int, df_along: int = 1) -> Floats:
    """Logarithm of the p-value of both tests, in all directions and along some of them.

    It is the probability that the smaller of the two is as small as it is: at least that one, and
    at most twice as much.
    """
    smaller = np.minimum(log_p, log_p_along)
    return np.asarray(smaller + np.interp(smaller, *_calibration(df, df_along)))


@cache
def _calibration(df: int, df_along: int) -> tuple[Floats, Floats]:
    """Logarithms of the smaller p-value, and the terms that make them logarithms of p-values.

    Let t be the part of W along some directions and r the rest, independent chi-squares.  The
    smaller p-value is at most m if that of t is, or if W is as large as a p-value of m asks for.
    The second chance is the mean over t, integrated over q, the p-value of t, on a logarithmic
    scale.
    """
    log_m = np.concatenate([-np.geomspace(_LOWEST, 1.0, 60), np.log(np.linspace(0.4, 1.0, 20))])
    log_q = log_m[:, None] * (np.arange(_NODES) + 0.5) / _NODES
    rest = chdtri(df, np.exp(log_m))[:, None] - chdtri(df_along, np.exp(log_q))
    larger = chdtrc(df - df_along, np.maximum(rest, 0.0)) * np.exp(log_q - log_m[:, None])
    return log_m, np.log1p(np.minimum(larger.mean(axis=1) * -log_m, 1.0))


# -- adjustment for all pairs ----------------------------------------------------------------------


def adjusted(p: Floats, n_others: int = 0) -> dict[str, Floats]:
    """Columns p_holm and p_bh: p-values adjusted for all pairs, `n_others` more with p = 1.

    Pairs that were not tested (NaN) do not count.
    """
    from scipy.stats import false_discovery_control

    known, others = ~np.isnan(p), np.ones(n_others)
    p_holm, p_bh = np.full((2, len(p)), np.nan)
    if known.any():
        family = np.concatenate([p[known], others])
        p_holm[known] = holm(family)[: known.sum()]
        p_bh[known] = false_discovery_control(family)[: known.sum()]
    return {"p_holm": p_holm, "p_bh": p_bh}


def holm(p_values: Floats) -> Floats:
    """Adjust p-values so that one at most alpha is a false alarm with probability at most alpha.

    Examples
    --------
    >>> holm(np.array([0.01, 0.5, 0.02])).tolist()
    [0.03, 0.5, 0.04]
    """
    order = np.argsort(p_values, kind="stable")
    left = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * left))
    return adjusted
