"""Sizes and strengths in -> a table drawn from a known model, and that model."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.base.errors import ParameterError
from mixedgm.base.parallel import RandomState
from mixedgm.base.parameters import ensure, is_integer
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.params import Params

if TYPE_CHECKING:
    from mixedgm.estimator.model import MixedGraphicalModel


def make_ladder(
    n: int = 100,
    p: int = 10,
    *,
    n_levels: int | Sequence[int] = 2,
    beta: float = 0.25,
    rho: float = 0.5,
    phi: float = 0.5,
    random_state: RandomState = None,
    frame: str = "auto",
) -> tuple[Any, MixedGraphicalModel]:
    """Draw a table from the ladder of Lee and Hastie, and return the true model with it.

    One chain of continuous columns x1, x2, ..., one chain of categorical columns y1, y2, ..., and a
    rung between each x and its y: 3p - 2 edges.

    Parameters
    ----------
    n : int
        Rows.
    p : int
        Rungs: the number of continuous, and of categorical columns.
    n_levels : int or sequence of p ints
        Levels of the categorical columns.
    beta : float
        Entry of the precision matrix between neighbours of the continuous chain, on a unit
        diagonal; below 0.5 in size, so that the matrix is positive definite.
    rho : float
        Rungs: the first level of y shifts its x up by rho, the last one down.  Between them the
        shift falls evenly.
    phi : float
        Neighbours of the categorical chain: phi for first with first and last with last level,
        -phi for first with last; evenly in between.
    random_state : int, Generator, RandomState or None
        Equal numbers give equal tables.
    frame : {"auto", "pandas", "polars", "pyarrow", "numpy"}
        The library of the table.

    Returns
    -------
    frame : data frame of n rows and 2p columns
        The table.
    truth : MixedGraphicalModel
        The model that it was drawn from.

    References
    ----------
    Lee and Hastie, "Learning the structure of mixed graphical models", Journal of Computational
    and Graphical Statistics 24 (2015), section 7.1: p = 10 with binary columns.

    Examples
    --------
    >>> import mixedgm as mg
    >>> table, truth = mg.datasets.make_ladder(500, p=4, random_state=0)
    >>> table.shape, len(truth.edges_)
    ((500, 8), 10)
    >>> mg.compare_graphs(truth, [("x1", "x2"), ("x1", "y1")]).recall
    0.2
    """
    from mixedgm.estimator.given_parameters import from_params

    ensure(is_integer(p, 1), "p", "an integer of at least 1", p)
    counts = _counts(n_levels, int(p))
    params = ladder_params(counts, beta, rho, phi)
    numbers = params.nodes.kinds[params.nodes.gaussian]
    columns: dict[str, Any] = {f"x{k + 1}": kind.name for k, kind in enumerate(numbers)}
    columns |= {f"y{k + 1}": count for k, count in enumerate(counts)}
    truth = from_params(columns, params, frame=frame)
    return truth.sample(n, random_state=random_state), truth


def ladder_params(n_levels: tuple[int, ...], beta: float, rho: float, phi: float) -> Params:
    """Parameters of the ladder with these levels on its categorical side."""
    p = len(n_levels)
    params = ConditionalGaussian.independent(p, n_levels)
    falling = [np.linspace(1.0, -1.0, count) for count in n_levels]
    for k in range(p):
        params.shift[k, params.levels_of(k)] = rho * falling[k]
        if k + 1 < p:
            params.precision[k, k + 1] = params.precision[k + 1, k] = beta
            block = phi * np.outer(falling[k], falling[k + 1])
            params.interaction[params.levels_of(k), params.levels_of(k + 1)] = block
            params.interaction[params.levels_of(k + 1), params.levels_of(k)] = block.T
    return Params.of_joint(params)


def _counts(n_levels: int | Sequence[int], p: int) -> tuple[int, ...]:
    counts = (n_levels,) * p if isinstance(n_levels, Integral) else tuple(n_levels)  # type: ignore[arg-type]
    if len(counts) != p or not all(is_integer(count, 2) for count in counts):
        raise ParameterError.must_be(
            "n_levels", f"an integer of at least 2, or a sequence of {p} of them", n_levels
        )
    return tuple(int(count) for count in counts)
