"""Numbers that are Gaussian given finitely many states: the form in which `joint` computes.

Every model whose discrete columns have finitely many values has it, whatever the kinds of its
columns are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.nodes import Nodes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    interaction : ndarray (sum of levels, sum of levels)
        phi for r != j, symmetric, zero diagonal blocks.
    bias : ndarray (sum of levels,)
        phi_jj; ``-inf`` for a level that cannot occur.

    Examples
    --------
    >>> model = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2,))
    >>> model.precision, model.bias
    (array([[1.]]), array([0., 0.]))
    """

    n_levels: tuple[int, ...]
    precision: Floats
    linear: Floats
    shift: Floats
    interaction: Floats
    bias: Floats

    @classmethod
    def independent(cls, n_gaussian: int, n_levels: tuple[int, ...]) -> ConditionalGaussian:
        """Standard normal numbers and uniform states without any relation."""
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
        """Number of numbers, p."""
        return len(self.linear)

    @cached_property
    def nodes(self) -> Nodes:
        """Its numbers, then its states, as nodes."""
        return Nodes.mixed(self.n_gaussian, self.n_levels)

    @cached_property
    def level_start(self) -> Ints:
        """First level of every state among those of all, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_levels)]).astype(np.int64)

    def levels_of(self, state: int) -> slice:
        """Levels of one state among those of all."""
        return slice(int(self.level_start[state]), int(self.level_start[state + 1]))
