"""Params and a seed -> approximate draws by Gibbs sampling, many chains at once.

The continuous columns are integrated out first, so the chains walk over the categorical columns
only and x is drawn at the end, in one piece, from its Gaussian given y.  That mixes at least as
well as drawing x in every sweep, and costs less.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import DistributionError
from mixedgm.joint.field import Gaussian, gaussian, integrate_out
from mixedgm.joint.kernels import add_level_rows, gibbs_sweep
from mixedgm.joint.validity import allowed_levels
from mixedgm.model.layout import Floats
from mixedgm.model.params import Params

Codes = NDArray[np.uint8 | np.uint16 | np.int32]


def draw(
    params: Params, n: int, *, rng: np.random.Generator, sweeps: int = 200
) -> tuple[Floats, Codes]:
    """Draw rows, each the end of a Gibbs chain of its own.

    Parameters
    ----------
    params : Params
        The model; its precision must be positive definite.
    n : int
        Number of rows.
    rng : numpy.random.Generator
        Source of randomness; equal states give equal rows.
    sweeps : int
        Times that every categorical column is redrawn before the chain ends.  Without
        categorical columns the draws are exact whatever its value.

    Returns
    -------
    cont : ndarray (n, p)
        Continuous columns.
    codes : ndarray (n, q)
        Level codes, uint8, uint16 or int32.  A level with bias ``-inf`` never appears.

    Examples
    --------
    >>> params = Params.independent(n_cont=1, n_levels=(2, 3))
    >>> cont, codes = draw(params, 5, rng=np.random.default_rng(0), sweeps=10)
    >>> cont.shape, codes.shape
    ((5, 1), (5, 2))
    """
    given_y = gaussian(params)
    field, _ = integrate_out(params, range(params.n_cont))
    codes = random_start(params, n, rng)
    sweep(field, codes, sweeps, rng)
    return draw_continuous(given_y, params, codes, rng), codes


def random_start(params: Params, n: int, rng: np.random.Generator) -> Codes:
    """Codes drawn uniformly among the levels that have a chance."""
    codes = np.empty((n, len(params.n_levels)), dtype=_code_dtype(params))
    for j, levels in enumerate(allowed_levels(params)):
        if len(levels) == 0:
            raise DistributionError(
                "no level of {columns} has a chance: every bias is -inf", (params.n_cont + j,)
            )
        codes[:, j] = levels[rng.integers(len(levels), size=n)]
    return codes


def sweep(field: Params, codes: Codes, times: int, rng: np.random.Generator) -> None:
    """Redraw all categorical columns of all chains `times` times, in place."""
    if codes.size == 0:
        return
    uniforms = np.empty(codes.shape)
    for _ in range(times):
        rng.random(out=uniforms)
        gibbs_sweep(codes, field.cat_bias, field.cat_interaction, field.level_start, uniforms)


def draw_continuous(
    given_y: Gaussian, params: Params, codes: Codes, rng: np.random.Generator
) -> Floats:
    """Draw x from its Gaussian given the codes of every row."""
    cont = rng.standard_normal((len(codes), params.n_cont)) @ given_y.factor.root
    cont += given_y.start
    add_level_rows(cont, codes, params.level_start, given_y.shift)
    return np.asarray(cont)


def _code_dtype(params: Params) -> type[np.uint8] | type[np.uint16] | type[np.int32]:
    most = max(params.n_levels, default=1)
    return np.uint8 if most <= 2**8 else np.uint16 if most <= 2**16 else np.int32
