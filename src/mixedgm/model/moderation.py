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
from mixedgm.model.nodes import Mask, Nodes

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
        Lowest and highest value (of what the others see of it: of a hurdle column, how much) in
        the training rows; NaN for a categorical moderator.
    deviations : tuple of ndarray
        For a continuous moderator (1, d, d): how the blocks of edges change when it is one unit
        above its mean; for a hurdle column (2, d, d), when it is not zero, and by how much it is.
        For a categorical one (L, d, d): how they differ at each level from the
        edges themselves, which are their mean over the rows; zero for a level without rows.
    """

    nodes: tuple[int, ...]
    middle: Floats
    span: Floats
    deviations: tuple[Floats, ...]

    def norms(self, params: Params, scales: Floats) -> Floats:
        """(moderators, nodes, nodes) norms of the deviations times scales of design columns."""
        norms = []
        for node, deviation in zip(self.nodes, self.deviations, strict=True):
            if not params.nodes.numeric_nodes[node]:  # the penalty sees contrasts of levels
                seen = params.levels_possible[params.levels_of(params.nodes.place(node))]
                deviation = deviation[seen] - deviation[seen].mean(axis=0)
            own = scales[params.nodes.columns_of(node)][: len(deviation), None, None]
            scaled = np.sqrt(((own * deviation) ** 2).sum(axis=0)) * np.outer(scales, scales)
            norms.append(params.block_norms(scaled))
        return np.array(norms)


@dataclass(frozen=True, eq=False)
class Moderators:
    """The moderators of a solver's rows: standardised columns, observed levels."""

    nodes: tuple[int, ...]
    share: Floats
    """(sum of observed levels,) frequency of every level."""
    span: Floats
    """(moderators, 2) lowest and highest standardised value; NaN for a moderator with levels."""

    @classmethod
    def of(
        cls, nodes: Nodes, moderators: tuple[int, ...], share: Floats, numbers: Floats
    ) -> Moderators:
        """Read their range from standardised rows."""
        span = np.full((len(moderators), 2), np.nan)
        for at, node in enumerate(moderators):
            if nodes.numeric_nodes[node]:
                values = numbers[:, nodes.last_column[node]]
                span[at] = values.min(), values.max()
        return cls(moderators, share, span)

    def n_features(self, layout: Layout) -> tuple[int, ...]:
        """1 for a numeric moderator (2 for a hurdle column), levels - 1 for one with levels."""
        return tuple(int(layout.nodes.freedom[m]) for m in self.nodes)

    def centre(self, layout: Layout) -> Floats:
        """Mean of every standardised design column."""
        return np.concatenate([np.zeros(layout.nodes.n_numeric), self.share])

    def features(self, layout: Layout, numbers: Floats, codes: NDArray[np.integer]) -> Floats:
        """(n, F) the features of every row, centred; those of a moderator together."""
        parts = []
        for m in self.nodes:
            values = self._values(layout, m)
            if values is None:
                parts.append(numbers[:, layout.nodes.columns_of(m)])
            else:
                parts.append(values[codes[:, layout.nodes.place(m)]])
        return np.ascontiguousarray(np.hstack(parts))

    def _values(self, layout: Layout, node: int) -> Floats | None:
        """(levels, features) values of the features at every level; None for a number."""
        if layout.nodes.numeric_nodes[node]:
            return None
        basis, columns = level_basis(int(layout.width[node])), layout.nodes.columns_of(node)
        return np.asarray(basis - self.centre(layout)[columns] @ basis)

    def to_own(self, layout: Layout, theta: Floats, units: Units) -> Moderation:
        """Solver coordinates -> the data's own units, over observed levels."""
        d, scale = layout.n_columns, units.of_columns(layout.nodes)
        stack = layout.to_matrix(theta).reshape(-1, d, d)[1:] / np.outer(scale, scale)
        ends = np.cumsum(layout.n_features)[:-1]
        deviations, span = [], self.span.copy()
        for at, (node, part) in enumerate(zip(self.nodes, np.split(stack, ends), strict=True)):
            values, columns = self._values(layout, node), layout.nodes.columns_of(node)
            if values is None:
                deviations.append(part / units.scale[columns, None, None])
                last = columns.stop - 1
                span[at] = units.centre[last] + units.scale[last] * span[at]
            else:
                deviations.append(np.tensordot(values, part, 1))
        middle = np.concatenate([units.centre, self.share])
        return Moderation(self.nodes, middle, span, tuple(deviations))

    def to_stack(self, layout: Layout, moderation: Moderation, units: Units) -> Floats:
        """The data's own units, over observed levels -> (F d, d) in solver coordinates."""
        d, scale = layout.n_columns, units.of_columns(layout.nodes)
        parts = [
            deviation * units.scale[layout.nodes.columns_of(node), None, None]
            if layout.nodes.numeric_nodes[node]
            else np.tensordot(level_basis(int(layout.width[node])).T, deviation, 1)
            for node, deviation in zip(moderation.nodes, moderation.deviations, strict=True)
        ]
        return (np.concatenate(parts) * np.outer(scale, scale)).reshape(-1, d)


def over_levels(observed_only: Moderation, nodes: Nodes, observed: Mask) -> Moderation:
    """Deviations over observed levels -> over all levels of `nodes`; zero where without rows."""
    keep, d = nodes.columns_kept(observed), nodes.n_columns
    middle = np.zeros(d)
    middle[keep] = observed_only.middle
    deviations = []
    for node, deviation in zip(observed_only.nodes, observed_only.deviations, strict=True):
        seen = _seen(nodes, node, observed)
        wide = np.zeros((len(seen), d, d))
        wide[np.ix_(np.flatnonzero(seen), keep, keep)] = deviation
        deviations.append(wide)
    return replace(observed_only, middle=middle, deviations=tuple(deviations))


def deviations_over_observed(declared: Moderation, nodes: Nodes, observed: Mask) -> Moderation:
    """Deviations over all levels of `nodes` -> over observed ones."""
    keep = nodes.columns_kept(observed)
    deviations = [
        deviation[np.ix_(np.flatnonzero(_seen(nodes, node, observed)), keep, keep)]
        for node, deviation in zip(declared.nodes, declared.deviations, strict=True)
    ]
    return replace(declared, middle=declared.middle[keep], deviations=tuple(deviations))


def _seen(nodes: Nodes, node: int, observed: Mask) -> Mask:
    """Which entries of a moderator's deviations there are: its levels, or its numbers."""
    if nodes.numeric_nodes[node]:
        return np.ones(nodes.width[node], dtype=bool)
    return observed[nodes.levels_of(nodes.place(node))]


def at_values(params: Params, values: Sequence[float]) -> Params:
    """The ordinary model when the moderators have these values (of levels: their codes).

    Edges gain their deviations.  These act on columns less their means, so biases lose what the
    deviations would add at the means.

    Examples
    --------
    >>> from mixedgm.model.nodes import Nodes
    >>> from mixedgm.model.params import Params
    >>> plain = Params.independent(Nodes.mixed(3, ()))
    >>> change = np.zeros((1, 3, 3))
    >>> change[0, 0, 1] = change[0, 1, 0] = 0.2
    >>> span = np.array([[20.0, 60.0]])
    >>> age = Moderation((2,), np.array([0.0, 1.0, 40.0]), span, deviations=(change,))
    >>> float(at_values(replace(plain, moderation=age), [42.0]).precision[0, 1])
    -0.4
    """
    moderation = params.moderation
    if moderation is None:
        return params
    change = np.zeros_like(params.coef)
    moderators = zip(moderation.nodes, values, moderation.deviations, strict=True)
    for node, value, deviation in moderators:
        if params.nodes.numeric_nodes[node]:
            away = params.nodes.numbers_of(node, value)
            away -= moderation.middle[params.nodes.columns_of(node)]
            change += np.tensordot(away, deviation, 1)
        else:
            change += deviation[int(value)]
    bias = params.bias - params.nodes.moved_terms(moderation.middle @ change)
    return replace(params, moderation=None, bias=bias, coef=params.coef + change)


def without(params: Params, nodes: Sequence[int], values: Sequence[float]) -> Params:
    """The model of the other columns when these have the given values (of levels: their codes).

    Their contributions go into the biases, also for separate regressions.
    """
    bias = params.bias
    for node, value in zip(nodes, values, strict=True):
        columns = params.nodes.columns_of(node)
        if params.nodes.numeric_nodes[node]:
            said = params.nodes.numbers_of(node, value) @ params.coef[columns]
        else:
            said = params.coef[columns.start + int(value)]
        bias = bias + params.nodes.moved_terms(said)
    others = np.setdiff1d(np.arange(len(params.nodes)), nodes)
    return replace(params, bias=bias).take(others)
