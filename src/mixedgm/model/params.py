"""Named parameter blocks: Params <-> theta, change of units, levels without rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.moderation import Moderation, over_levels


@dataclass(frozen=True, eq=False)
class Params:
    """Parameters of a mixed graphical model.

    The log density is, up to its constant,
    ``-x'Bx/2 + a'x + sum_sj rho_sj(y_j) x_s + sum_j phi_jj(y_j) + sum_{r<j} phi_rj(y_r, y_j)``.

    Parameters
    ----------
    n_levels : tuple of int
        Levels of every categorical column.
    precision : ndarray (p, p)
        B, symmetric with positive diagonal.
    cont_bias : ndarray (p,)
        The linear terms a.
    category_shift : ndarray (p, sum of levels)
        rho, one column per level.
    cat_interaction : ndarray (sum of levels, sum of levels)
        phi for r != j, symmetric, zero diagonal blocks.
    cat_bias : ndarray (sum of levels,)
        phi_jj; ``-inf`` for a level that had no rows.
    moderation : Moderation or None
        How edges deviate with other columns.

    Examples
    --------
    >>> params = Params.independent(n_gaussian=1, n_levels=(2,))
    >>> params.precision, params.cat_bias
    (array([[1.]]), array([0., 0.]))
    """

    n_levels: tuple[int, ...]
    precision: Floats
    cont_bias: Floats
    category_shift: Floats
    cat_interaction: Floats
    cat_bias: Floats
    moderation: Moderation | None = field(default=None, kw_only=True)

    @classmethod
    def independent(cls, n_gaussian: int, n_levels: tuple[int, ...]) -> Params:
        """Standard normal and uniform columns without any edge."""
        total = sum(n_levels)
        return cls(
            tuple(n_levels),
            np.eye(n_gaussian),
            np.zeros(n_gaussian),
            np.zeros((n_gaussian, total)),
            np.zeros((total, total)),
            np.zeros(total),
        )

    @property
    def n_gaussian(self) -> int:
        """Number of continuous columns."""
        return len(self.cont_bias)

    @property
    def n_cont(self) -> int:
        """Number of continuous columns."""
        return self.n_gaussian

    @cached_property
    def level_start(self) -> Ints:
        """First level column of every categorical column, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_levels)]).astype(np.int64)

    def levels_of(self, discrete: int) -> slice:
        """Level columns of the categorical column number `discrete`."""
        return slice(int(self.level_start[discrete]), int(self.level_start[discrete + 1]))

    def block(self, u: int, v: int) -> Floats:
        """Edge block of nodes u and v (continuous nodes come first).

        For a continuous pair it is minus the precision entry, as in theta, so that a positive
        number means a positive relation.
        """
        if u > v:
            return self.block(v, u).T
        p = self.n_gaussian
        if v < p:
            return -self.precision[u : u + 1, v : v + 1]
        if u < p:
            return self.category_shift[u : u + 1, self.levels_of(v - p)]
        return self.cat_interaction[self.levels_of(u - p), self.levels_of(v - p)]

    @cached_property
    def node_start(self) -> Ints:
        """First row and column of every node in `coef`, and the end."""
        return np.concatenate([np.arange(self.n_gaussian), self.n_gaussian + self.level_start])

    def edge_coef(self, rule: str) -> Floats:
        """Symmetric d x d matrix of the edges; the rule is for separate regressions."""
        del rule
        return self.coef

    def block_norms(self, matrix: Floats) -> Floats:
        """Euclidean norm of the block of every two nodes in a d x d matrix."""
        start = self.node_start[:-1]
        if len(start) == 0:
            return np.zeros((0, 0))
        return np.sqrt(np.add.reduceat(np.add.reduceat(matrix**2, start, axis=0), start, axis=1))

    @cached_property
    def coef(self) -> Floats:
        """Symmetric d x d matrix of all edge blocks (design columns, zero diagonal blocks)."""
        return _blocks(self, self.category_shift.T)


@dataclass(frozen=True, eq=False)
class NodewiseParams(Params):
    """Parameters of separate regressions: every node has coefficients of its own.

    Off the diagonal, ``-precision[t, s]`` is what x_t says in the conditional of x_s, and
    ``category_shift[s, l]`` what x_s says in the conditional of the column of level l.  Neither
    needs to agree with its counterpart: precision and cat_interaction are not symmetric, and what
    a level says about a continuous column is apart.  A row is a predictor, a column a target.

    Parameters
    ----------
    level_effect : ndarray (sum of levels, p)
        What each level says in the conditional of each continuous column.
    """

    level_effect: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @cached_property
    def coef(self) -> Floats:
        """All blocks as one d x d matrix: a row per predictor, a column per target."""
        return _blocks(self, self.level_effect)

    def says(self, u: int, v: int) -> Floats:
        """What node u says in the conditional of node v: a row per level of u."""
        start = self.node_start
        return self.coef[start[u] : start[u + 1], start[v] : start[v + 1]]

    def edge_coef(self, rule: str) -> Floats:
        """Mean of the two copies of every edge, where the rule finds one: symmetric, d x d."""
        there = joined(self.block_norms(self.coef) > 0.0, rule)
        width = np.diff(self.node_start)
        there = np.repeat(np.repeat(there, width, axis=0), width, axis=1)
        return np.where(there, 0.5 * (self.coef + self.coef.T), 0.0)

    def block(self, u: int, v: int) -> Floats:
        """Mean of what the two nodes say in each other's conditional."""
        return 0.5 * (self.says(u, v) + self.says(v, u).T)


def _blocks(params: Params, below: Floats) -> Floats:
    """All edge blocks as one matrix, which alone takes memory; `below` is its lower left."""
    p, d = params.n_gaussian, int(params.node_start[-1])
    coef = np.empty((d, d))
    np.negative(params.precision, out=coef[:p, :p])
    np.fill_diagonal(coef[:p, :p], 0.0)
    coef[:p, p:], coef[p:, :p] = params.category_shift, below
    coef[p:, p:] = params.cat_interaction
    return coef


def joined(says: NDArray[np.bool_], rule: str) -> NDArray[np.bool_]:
    """Edges of separate regressions: where both nodes have one ("and"), or either ("or").

    Examples
    --------
    >>> says = np.array([[False, True], [False, False]])
    >>> bool(joined(says, "and").any()), bool(joined(says, "or").all(where=~np.eye(2, dtype=bool)))
    (False, True)
    """
    return says | says.T if rule == "or" else says & says.T


@dataclass(frozen=True, eq=False)
class Units:
    """Centre and scale of the continuous columns: x = centre + scale * standardised x."""

    centre: Floats
    scale: Floats

    @property
    def log_jacobian(self) -> float:
        """Objective in the data's units minus objective in standardised units."""
        return float(np.log(self.scale).sum())

    def to_own(self, params: Params) -> Params:
        """Standardised units -> the data's own units."""
        precision = params.precision / np.outer(self.scale, self.scale)
        shift = params.category_shift / self.scale[:, None]
        own = replace(
            params,
            precision=precision,
            cont_bias=params.cont_bias / self.scale + precision.T @ self.centre,
            category_shift=shift,
            cat_bias=params.cat_bias - self.centre @ shift,
        )
        if isinstance(own, NodewiseParams):
            own = replace(own, level_effect=own.level_effect / self.scale)
        return own

    def to_standard(self, params: Params) -> Params:
        """The data's own units -> standardised units."""
        standard = replace(
            params,
            precision=params.precision * np.outer(self.scale, self.scale),
            cont_bias=(params.cont_bias - params.precision.T @ self.centre) * self.scale,
            category_shift=params.category_shift * self.scale[:, None],
            cat_bias=params.cat_bias + self.centre @ params.category_shift,
        )
        if isinstance(standard, NodewiseParams):
            standard = replace(standard, level_effect=standard.level_effect * self.scale)
        return standard


def from_theta(layout: Layout, theta: Floats) -> Params:
    """Flat vector -> named blocks (the sign of the precision is turned here, and only here)."""
    p = layout.n_gaussian
    matrix = layout.to_matrix(theta)
    precision = -matrix[:p, :p]
    np.fill_diagonal(precision, theta[layout.diagonal])
    blocks = (
        layout.n_levels,
        precision,
        theta[layout.cont_bias].copy(),
        matrix[:p, p:],
        matrix[p : layout.n_columns, p:],
        theta[layout.cat_bias].copy(),
    )
    if layout.nodewise:
        return NodewiseParams(*blocks, level_effect=matrix[p : layout.n_columns, :p])
    return Params(*blocks)


def to_theta(layout: Layout, params: Params, deviations: Floats | None = None) -> Floats:
    """Named blocks -> flat vector; blocks of edges outside the layout are dropped.

    `deviations` holds their matrices, one below the other, where the layout has some.
    """
    coef = params.coef if deviations is None else np.vstack([params.coef, deviations])
    return np.concatenate(
        [
            params.cont_bias,
            np.diagonal(params.precision),
            params.cat_bias,
            layout.from_matrix(coef),
        ]
    )


def with_all_levels(
    params: Params, observed: NDArray[np.bool_], n_levels: tuple[int, ...]
) -> Params:
    """Parameters over observed levels -> over all declared levels.

    A level without rows gets edge parameters zero and bias ``-inf``: probability zero in the
    fitted distribution, so the objective at the result is the objective that was minimised.
    """
    total = sum(n_levels)
    keep = np.flatnonzero(observed)
    shift = np.zeros((params.n_gaussian, total))
    shift[:, keep] = params.category_shift
    phi = np.zeros((total, total))
    phi[np.ix_(keep, keep)] = params.cat_interaction
    bias = np.full(total, -np.inf)
    bias[keep] = params.cat_bias
    found = replace(
        params, n_levels=tuple(n_levels), category_shift=shift, cat_interaction=phi, cat_bias=bias
    )
    if isinstance(found, NodewiseParams):
        effect = np.zeros((total, params.n_gaussian))
        effect[keep] = found.level_effect
        found = replace(found, level_effect=effect)
    if params.moderation is not None:
        wide = over_levels(params.moderation, params.n_gaussian, observed, tuple(n_levels))
        found = replace(found, moderation=wide)
    return found
