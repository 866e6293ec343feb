"""Moderators and the deviations they cause: features of rows, units, levels, the model at a value.

The log density has, besides the terms of an ordinary model, for every moderator m and every pair of
other columns u and v

    sum_k f_k (z_u - mean z_u)' D_k (z_v - mean z_v)

with the features f_k of m: the standardised column, or the levels' indicators less their
frequencies, in an orthonormal basis of contrasts.  All means are those of the training rows, so
that a deviation says nothing about a column alone: what m does to it is the edge of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Layout

if TYPE_CHECKING:
    from mixedgm.model.params import Params, Units


@cache
def level_basis(n: int) -> Floats:
    """(n, n - 1) orthonormal columns that sum to zero.

    Examples
    --------
    >>> level_basis(2).round(3)
    array([[ 0.707],
           [-0.707]])
    """
    from scipy.linalg import helmert

    return np.asarray(helmert(n).T.copy() if n > 1 else np.zeros((1, 0)), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Moderation:
    """Deviations of edges, in the data's own units.

    Parameters
    ----------
    nodes : tuple of int
        The moderators, as positions among all nodes.
    middle : ndarray (d,)
        Mean of every design column in the training rows: means, then frequencies of levels.
    span : ndarray (moderators, 2)
        Lowest and highest value in the training rows; NaN for a categorical moderator.
    deviations : tuple of ndarray
        For a continuous moderator (1, d, d): how the blocks of edges change when it is one unit
        above its mean.  For a categorical one (L, d, d): how they differ at each level from the
        edges themselves, which are their mean over the rows; zero for a level without rows.
    """

    nodes: tuple[int, ...]
    middle: Floats
    span: Floats
    deviations: tuple[Floats, ...]

    def strengths(self, params: Params, scales: Floats) -> Floats:
        """(moderators, nodes, nodes) norms of the deviations on the calibrated scale."""
        p = params.n_gaussian
        starts = np.concatenate([np.arange(p), p + params.level_start[:-1]]).astype(int)
        found = []
        for node, deviation in zip(self.nodes, self.deviations, strict=True):
            if node >= p:  # the penalty sees them less their mean over the levels that occur
                seen = np.isfinite(params.cat_bias[params.levels_of(node - p)])
                deviation = deviation[seen] - deviation[seen].mean(axis=0)
            square = (deviation**2).sum(axis=0)
            by_node = np.add.reduceat(np.add.reduceat(square, starts, axis=0), starts, axis=1)
            found.append(np.sqrt(by_node) * np.outer(scales, scales) * scales[node])
        return np.array(found)


@dataclass(frozen=True, eq=False)
class Moderators:
    """The moderators of a solver's rows: standardised columns, observed levels.

    Parameters
    ----------
    nodes : tuple of int
        Their positions.
    share : ndarray (sum of observed levels,)
        Frequency of every level.
    span : ndarray (moderators, 2)
        Lowest and highest standardised value; NaN for a categorical moderator.
    """

    nodes: tuple[int, ...]
    share: Floats
    span: Floats

    @classmethod
    def of(cls, nodes: tuple[int, ...], share: Floats, numbers: Floats) -> Moderators:
        """Read their range from standardised rows."""
        span = np.full((len(nodes), 2), np.nan)
        for at, node in enumerate(nodes):
            if node < numbers.shape[1]:
                span[at] = numbers[:, node].min(), numbers[:, node].max()
        return cls(nodes, share, span)

    def n_features(self, layout: Layout) -> tuple[int, ...]:
        """1 for a continuous moderator, levels - 1 for a categorical one."""
        return tuple(1 if m < layout.n_gaussian else int(layout.width[m]) - 1 for m in self.nodes)

    def centre(self, layout: Layout) -> Floats:
        """Mean of every standardised design column."""
        return np.concatenate([np.zeros(layout.n_gaussian), self.share])

    def features(self, layout: Layout, numbers: Floats, codes: NDArray[np.integer]) -> Floats:
        """(n, F) the features of every row, centred; those of a moderator together."""
        parts = [
            numbers[:, [m]]
            if m < layout.n_gaussian
            else self._values(layout, m)[codes[:, m - layout.n_gaussian]]
            for m in self.nodes
        ]
        return np.ascontiguousarray(np.hstack(parts))

    def _values(self, layout: Layout, node: int) -> Floats:
        """(levels, features) what the features are at every level."""
        first = layout.column_start[node] - layout.n_gaussian
        basis = level_basis(int(layout.width[node]))
        return np.asarray(basis - self.share[first : first + len(basis)] @ basis)

    def to_own(self, layout: Layout, theta: Floats, units: Units) -> Moderation:
        """Solver coordinates -> the data's own units, over observed levels."""
        d, p = layout.n_columns, layout.n_gaussian
        scale = np.concatenate([units.scale, np.ones(d - p)])
        stack = layout.to_matrix(theta).reshape(-1, d, d)[1:] / np.outer(scale, scale)
        ends = np.cumsum(layout.n_features)[:-1]
        deviations = []
        for node, part in zip(self.nodes, np.split(stack, ends), strict=True):
            if node < p:
                deviations.append(part / units.scale[node])
            else:
                deviations.append(np.tensordot(self._values(layout, node), part, 1))
        span = self.span.copy()
        for at, node in enumerate(self.nodes):
            if node < p:
                span[at] = units.centre[node] + units.scale[node] * span[at]
        middle = np.concatenate([units.centre, self.share])
        return Moderation(self.nodes, middle, span, tuple(deviations))

    def to_stack(self, layout: Layout, moderation: Moderation, units: Units) -> Floats:
        """The data's own units, over observed levels -> (F d, d) in solver coordinates."""
        d, p = layout.n_columns, layout.n_gaussian
        scale = np.concatenate([units.scale, np.ones(d - p)])
        parts = [
            deviation * units.scale[node]
            if node < p
            else np.tensordot(level_basis(int(layout.width[node])).T, deviation, 1)
            for node, deviation in zip(moderation.nodes, moderation.deviations, strict=True)
        ]
        return (np.concatenate(parts) * np.outer(scale, scale)).reshape(-1, d)


def over_levels(
    own: Moderation, n_gaussian: int, observed: NDArray[np.bool_], n_levels: tuple[int, ...]
) -> Moderation:
    """Deviations over observed levels -> over all declared levels, zero for those without rows."""
    keep = _columns(n_gaussian, observed)
    d = n_gaussian + len(observed)
    middle = np.zeros(d)
    middle[keep] = own.middle
    deviations = []
    for node, deviation in zip(own.nodes, own.deviations, strict=True):
        seen = _seen(node, n_gaussian, observed, n_levels)
        wide = np.zeros((len(seen), d, d))
        wide[np.ix_(np.flatnonzero(seen), keep, keep)] = deviation
        deviations.append(wide)
    return replace(own, middle=middle, deviations=tuple(deviations))


def over_observed(
    own: Moderation, n_gaussian: int, observed: NDArray[np.bool_], n_levels: tuple[int, ...]
) -> Moderation:
    """Deviations over all declared levels -> over observed ones."""
    keep = _columns(n_gaussian, observed)
    deviations = [
        deviation[np.ix_(np.flatnonzero(_seen(node, n_gaussian, observed, n_levels)), keep, keep)]
        for node, deviation in zip(own.nodes, own.deviations, strict=True)
    ]
    return replace(own, middle=own.middle[keep], deviations=tuple(deviations))


def _columns(n_gaussian: int, observed: NDArray[np.bool_]) -> NDArray[np.intp]:
    return np.concatenate([np.arange(n_gaussian), n_gaussian + np.flatnonzero(observed)])


def _seen(
    node: int, n_gaussian: int, observed: NDArray[np.bool_], n_levels: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Which entries of a moderator's deviations there are: its levels, or the one there is."""
    if node < n_gaussian:
        return np.ones(1, dtype=bool)
    first = sum(n_levels[: node - n_gaussian])
    return observed[first : first + n_levels[node - n_gaussian]]


def at_values(params: Params, values: Sequence[float]) -> Params:
    """The ordinary model when the moderators have these values (of levels: their codes).

    Edges gain their deviations.  These act on columns less their means, so biases lose what the
    deviations would add at the means.

    Examples
    --------
    >>> from mixedgm.model.params import Params
    >>> plain = Params.independent(n_gaussian=3, n_levels=())
    >>> change = np.zeros((1, 3, 3))
    >>> change[0, 0, 1] = change[0, 1, 0] = 0.2
    >>> span = np.array([[20.0, 60.0]])
    >>> age = Moderation((2,), np.array([0.0, 1.0, 40.0]), span, deviations=(change,))
    >>> float(at_values(replace(plain, moderation=age), [42.0]).precision[0, 1])
    -0.4
    """
    own, p = params.moderation, params.n_gaussian
    if own is None:
        return params
    change = np.zeros_like(params.coef)
    for node, value, deviation in zip(own.nodes, values, own.deviations, strict=True):
        if node < p:
            change += (value - own.middle[node]) * deviation[0]
        else:
            change += deviation[int(value)]
    taken = own.middle @ change
    found = replace(
        params,
        moderation=None,
        precision=params.precision - change[:p, :p],
        cont_bias=params.cont_bias - taken[:p],
        category_shift=params.category_shift + change[:p, p:],
        cat_interaction=params.cat_interaction + change[p:, p:],
        cat_bias=params.cat_bias - taken[p:],
    )
    if hasattr(found, "level_effect"):  # separate regressions
        found = replace(found, level_effect=found.level_effect + change[p:, :p])  # type: ignore[call-arg]
    return found


def without(params: Params, nodes: Sequence[int], values: Sequence[float]) -> Params:
    """The model of the other columns when these have the given values (of levels: their codes).

    What they say goes into the biases; for separate regressions, too.
    """
    p, start = params.n_gaussian, params.level_start
    bias = np.concatenate([params.cont_bias, params.cat_bias])
    for node, value in zip(nodes, values, strict=True):
        if node < p:
            bias = bias + value * params.coef[node]
        else:
            bias = bias + params.coef[p + start[node - p] + int(value)]
    numbers = np.array([s for s in range(p) if s not in nodes], dtype=np.int64)
    cats = [j for j in range(len(params.n_levels)) if p + j not in nodes]
    levels = np.concatenate([*(np.arange(start[j], start[j + 1]) for j in cats), numbers[:0]])
    found = replace(
        params,
        n_levels=tuple(params.n_levels[j] for j in cats),
        precision=params.precision[np.ix_(numbers, numbers)],
        cont_bias=bias[:p][numbers],
        category_shift=params.category_shift[np.ix_(numbers, levels)],
        cat_interaction=params.cat_interaction[np.ix_(levels, levels)],
        cat_bias=bias[p:][levels],
    )
    if hasattr(found, "level_effect"):
        effect = found.level_effect[np.ix_(levels, numbers)]
        found = replace(found, level_effect=effect)  # type: ignore[call-arg]
    return found
