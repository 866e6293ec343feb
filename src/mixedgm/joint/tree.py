"""A discrete field -> its clique tree with probabilities: constant, marginals, exact draws.

From the leaves to the root every clique's table is summed over its residual, in log space, which
leaves the probabilities of the residual given the separator.  From the root to the leaves these
are multiplied into the probabilities of whole cliques.  The second pass has probabilities only,
so there is nothing to overflow and nothing to cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.joint.discrete import Discrete, discrete
from mixedgm.joint.kernels import draw_residual
from mixedgm.joint.pairs import all_pairs
from mixedgm.joint.plan import LIMIT, Plan, make_plan
from mixedgm.joint.tables import log_potential, marginal, normalise
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats

# Cliques up to this many entries are joined: a step costs about as much as this many numbers.
SMALL = 2**8


@dataclass(frozen=True, eq=False)
class Tree:
    """One or many fields with their plan and, for every clique, probabilities."""

    field: Discrete
    plan: Plan
    log_z: Floats
    """(b,) logarithm of the partition function."""
    given: list[Floats]
    """Probabilities (b, |S|, |R|) of the residual given the separator, for every clique."""

    @cached_property
    def cliques(self) -> list[Floats]:
        """Marginals of the cliques, (b, one axis per column)."""
        out: list[Floats] = []
        for clique, given in zip(self.plan.cliques, self.given, strict=True):
            table = given
            if clique.separator:
                parent = self.plan.cliques[clique.parent].columns
                outer = marginal(out[clique.parent], parent, clique.separator)
                table = outer.reshape(len(outer), -1, 1) * given
            shape = [self.field.n_levels[j] for j in clique.columns]
            out.append(table.reshape(len(table), *shape))
        return out

    @cached_property
    def levels(self) -> Floats:
        """(b, sum of levels) probability of every level of every column."""
        out = np.zeros((self.field.n_fields, sum(self.field.n_declared)))
        kept = self.field.kept
        for clique, table in zip(self.plan.cliques, self.cliques, strict=True):
            for j in clique.residual:
                out[:, kept[self.field.span(j)]] = marginal(table, clique.columns, (j,))
        return out

    @cached_property
    def pairs(self) -> Floats:
        """(b, sum of levels, sum of levels) probability of every pair of levels.

        The block of a column with itself is diagonal and holds the probabilities of its levels.
        """
        total = sum(self.field.n_declared)
        out = np.zeros((self.field.n_fields, total, total))
        kept = self.field.kept
        out[:, kept[:, None], kept] = all_pairs(self.field, self.plan, self.cliques)
        return out

    @property
    def level_covariance(self) -> Floats:
        """(b, sum of levels, sum of levels) covariance of the indicators of the levels."""
        return self.pairs - self.levels[:, :, None] * self.levels[:, None, :]

    def variance_of(self, shift: Floats) -> Floats:
        """(b, k) variances of sums over the states of what each level adds, (sum of levels, k)."""
        return np.asarray(((self.level_covariance @ shift) * shift).sum(axis=1))

    def covariance_of(self, shift: Floats) -> Floats:
        """(b, k, k) covariances of the same sums."""
        return np.asarray(shift.T @ self.level_covariance @ shift)

    def table(self, columns: Sequence[int]) -> Floats:
        """(b, levels of the columns in the given order) probabilities of their states.

        The columns must be in one clique of the plan: see `calibrate` with `together`.
        """
        if len(columns) == 0:
            return np.ones(self.field.n_fields)
        holder = self.plan.holder(tuple(columns))
        if holder is None:
            raise ValueError(f"no clique of this plan holds columns {tuple(columns)}")
        held = self.plan.cliques[holder].columns
        part = marginal(self.cliques[holder], held, columns)
        order = [j for j in held if j in set(columns)]
        part = part.transpose(0, *(1 + order.index(j) for j in columns))
        out = np.zeros((len(part), *(self.field.n_declared[j] for j in columns)))
        out[np.ix_(np.arange(len(part)), *(self.field.labels[j] for j in columns))] = part
        return out

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """(n, q) exact draws, clique by clique from the roots; one row per field if many."""
        codes = np.zeros((n, len(self.field.labels)), dtype=np.int32)
        n_levels = np.array(self.field.n_levels, dtype=np.int64)
        for clique, given in zip(self.plan.cliques, self.given, strict=True):
            separator = np.array(clique.separator, dtype=np.int64)
            residual = np.array(clique.residual, dtype=np.int64)
            uniforms = rng.random(n)
            draw_residual(codes, given.cumsum(axis=2), separator, residual, n_levels, uniforms)
        for j, labels in enumerate(self.field.labels):
            if len(labels) < self.field.n_declared[j]:
                codes[:, j] = labels[codes[:, j]]
        return codes


def calibrate(
    model: ConditionalGaussian | Discrete,
    *,
    together: Sequence[int] = (),
    limit: int = LIMIT,
    small: int = SMALL,
) -> Tree:
    """Build the clique tree of a model without numbers, or of the field made of it.

    The columns `together` must be in one clique, so that `Tree.table` can give their joint table;
    all tables together have at most `limit` entries.  Cliques up to `small` entries are joined.

    Examples
    --------
    >>> tree = calibrate(ConditionalGaussian.independent(n_gaussian=0, n_levels=(2, 4)))
    >>> tree.log_z.round(6), tree.levels[0]
    (array([2.079442]), array([0.5 , 0.5 , 0.25, 0.25, 0.25, 0.25]))
    """
    field = discrete(model) if isinstance(model, ConditionalGaussian) else model
    # With many fields the work is in the tables, not in the steps.
    plan = plan_for(field, together, limit, small // max(1, field.n_fields))
    waiting: list[list[tuple[tuple[int, ...], Floats]]] = [[] for _ in plan.cliques]
    given: list[Floats] = []
    log_z = field.log_constant.copy()
    for c in reversed(range(len(plan.cliques))):
        clique = plan.cliques[c]
        table = log_potential(field, clique.separator, clique.residual)
        for separator, message in waiting[c]:
            table = _add(table, plan, clique.columns, separator, message)
        message = normalise(table)
        given.append(table)
        if clique.separator:
            waiting[clique.parent].append((clique.separator, message))
        else:
            log_z += message[:, 0]
    return Tree(field, plan, log_z, given[::-1])


def plan_for(
    field: Discrete, together: Sequence[int] = (), limit: int = LIMIT, small: int = SMALL
) -> Plan:
    """Plan the elimination of a field; the columns `together` are kept in one clique."""
    masks = list(field.masks)
    kept = {int(j) for j in together}
    inside = sum(1 << j for j in kept)
    for j in kept:
        masks[j] |= inside & ~(1 << j)
    return make_plan(tuple(masks), field.n_levels, limit, small)


def _add(
    table: Floats,
    plan: Plan,
    columns: tuple[int, ...],
    separator: tuple[int, ...],
    message: Floats,
) -> Floats:
    """Add a message over some columns of a clique to its table."""
    inside = set(separator)
    full = [plan.n_levels[j] for j in columns]
    thin = [n if j in inside else 1 for n, j in zip(full, columns, strict=True)]
    grown = table.reshape(len(table), *full) + message.reshape(len(message), *thin)
    return np.asarray(grown.reshape(len(grown), *table.shape[1:]))
