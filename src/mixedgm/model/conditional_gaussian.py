"""Numbers that are Gaussian given finitely many states: the form in which `joint` computes.

Every model whose discrete columns have finitely many values has it, whatever the kinds of its
columns are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixedgm.base.errors import TooLargeError
from mixedgm.model.nodes import Floats, Ints, Nodes

MOST_VALUES = 2048
"""Values of all discrete columns of a model with scored ones up to which the interactions of all
pairs of values are written out: 32 MiB."""


@dataclass(frozen=True, eq=False)
class ConditionalGaussian:
    """A distribution of numbers x and states y.

    The log density is, up to its constant,
    ``-x'Bx/2 + a'x + sum_sj rho_sj(y_j) x_s + sum_j phi_jj(y_j) + sum_{r<j} phi_rj(y_r, y_j)``.

    Parameters
    ----------
    n_levels : tuple of int
        Number of values of every state.
    precision : ndarray (p, p)
        B, symmetric with positive diagonal.
    linear : ndarray (p,)
        The linear terms a.
    shift : ndarray (p, sum of levels)
        rho, one column per level.
    coupling : ndarray (sum of levels, sum of levels)
        phi for r != j, symmetric, zero diagonal blocks.
    bias : ndarray (sum of levels,)
        phi_jj; ``-inf`` for a level that cannot occur.
    seen : Nodes or None
        Where pairs of levels are too many: the states as nodes, some of which are scored.  Then
        `coupling` is over their design columns, and phi_rj(a, b) is the score of a times that of
        b times one number.

    Examples
    --------
    >>> model = ConditionalGaussian.independent(n_numbers=1, n_levels=(2,))
    >>> model.precision, model.bias
    (array([[1.]]), array([0., 0.]))
    """

    n_levels: tuple[int, ...]
    precision: Floats
    linear: Floats
    shift: Floats
    coupling: Floats
    bias: Floats
    seen: Nodes | None = None

    @classmethod
    def independent(cls, n_numbers: int, n_levels: tuple[int, ...]) -> ConditionalGaussian:
        """Standard normal numbers and uniform states without any relation."""
        total = sum(n_levels)
        return cls(
            tuple(n_levels),
            np.eye(n_numbers),
            np.zeros(n_numbers),
            np.zeros((n_numbers, total)),
            np.zeros((total, total)),
            np.zeros(total),
        )

    @property
    def interaction(self) -> Floats:
        """(sum of levels, sum of levels) phi; TooLargeError where pairs of levels are too many."""
        self.require_pairs()
        return self.coupling

    def require_pairs(self) -> None:
        """Raise TooLargeError where pairs of levels are too many for an exact answer."""
        if self.seen is None:
            return
        largest = int(np.argmax(self.n_levels))
        raise TooLargeError(
            f"the discrete columns have {sum(self.n_levels):,} values together, most of them "
            "{columns}, and an exact answer needs tables of pairs of values, for which there may "
            f"be {MOST_VALUES:,}. To fix: draw rows with sample, which needs no tables; or a "
            "smaller largest count",
            (self.n_numbers + largest,),
        )

    @property
    def n_numbers(self) -> int:
        """Number of numbers, p."""
        return len(self.linear)

    @cached_property
    def nodes(self) -> Nodes:
        """Nodes of the density: its Gaussian columns, then its discrete ones."""
        return Nodes.mixed(self.n_numbers, self.n_levels)

    @cached_property
    def level_start(self) -> Ints:
        """First level of every state among those of all, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_levels)]).astype(np.int64)

    def levels_of(self, state: int) -> slice:
        """Levels of one state among those of all."""
        return slice(int(self.level_start[state]), int(self.level_start[state + 1]))
