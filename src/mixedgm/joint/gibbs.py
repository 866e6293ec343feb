"""A model and a seed -> approximate draws by Gibbs sampling, many chains at once.

The numbers x are integrated out first, so the chains walk over the states y only and x is drawn at
the end, in one piece, from its Gaussian given y.  That mixes at least as well as drawing x in every
sweep, and costs less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import DistributionError
from mixedgm.joint.diagnostics import Diagnostics, diagnose
from mixedgm.joint.effort import FEWER_SWEEPS, begin_chains
from mixedgm.joint.field import Gaussian, gaussian, integrate_out
from mixedgm.joint.kernels import add_level_rows, gibbs_sweep, scored_sweep
from mixedgm.joint.validity import allowed_levels
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.progress import track

Codes = NDArray[np.uint8 | np.uint16 | np.int32]


def draw(
    params: ConditionalGaussian, n: int, *, rng: np.random.Generator, sweeps: int = 200
) -> tuple[Floats, Codes]:
    """Draw numbers (n, p) and level codes (n, q), each row the end of a Gibbs chain of its own.

    Every state is redrawn `sweeps` times before the chain ends; without states the draws are
    exact.  A level with bias ``-inf`` never appears.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 3))
    >>> numbers, codes = draw(params, 5, rng=np.random.default_rng(0), sweeps=10)
    >>> numbers.shape, codes.shape
    ((5, 1), (5, 2))
    """
    given_y = gaussian(params)
    field, _ = integrate_out(params, range(params.n_gaussian))
    codes = random_start(params, n, rng)
    begin_chains(params.n_levels, n, sweeps, by_scores=params.seen is not None)
    sweep(field, codes, sweeps, rng)
    return draw_numbers(given_y, params, codes, rng), codes


@dataclass(frozen=True, eq=False)
class Chains:
    """Kept `numbers` (n_keep, n_chains, p) and `codes` (n_keep, n_chains, q) of many chains."""

    numbers: Floats
    codes: Codes
    diagnostics: Diagnostics


def chains(
    params: ConditionalGaussian,
    n_chains: int,
    n_keep: int,
    *,
    rng: np.random.Generator,
    burn_in: int = 200,
    thin: int = 1,
) -> Chains:
    """Run Gibbs chains side by side and keep several states of each.

    There are `burn_in` sweeps before the first kept state, and `thin` from one to the next.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 3))
    >>> found = chains(params, 8, 50, rng=np.random.default_rng(0), burn_in=10)
    >>> found.codes.shape, found.diagnostics.good
    ((50, 8, 2), False)
    >>> print(found.diagnostics)
    R-hat at most 1.005, effective sample size at least 322 of 400
    """
    given_y = gaussian(params)
    field, _ = integrate_out(params, range(params.n_gaussian))
    state = random_start(params, n_chains, rng)
    n_sweeps, by_scores = burn_in + thin * n_keep, params.seen is not None
    size = params.n_levels, n_chains, n_sweeps
    seconds = begin_chains(*size, FEWER_SWEEPS, by_scores=by_scores)
    runs = runs_of(field) if state.size else None
    sweep(field, state, max(0, burn_in - thin), rng, runs=runs)
    codes = np.empty((n_keep, *state.shape), dtype=state.dtype)
    for kept in track(codes, what="Gibbs chains", seconds=seconds):
        sweep(field, state, thin, rng, runs=runs)
        kept[:] = state
    flat = codes.reshape(n_keep * n_chains, -1)
    numbers = draw_numbers(given_y, params, flat, rng).reshape(n_keep, n_chains, -1)
    states = Nodes.mixed(0, params.n_levels) if params.seen is None else params.seen
    return Chains(numbers, codes, diagnose(numbers, codes, states, by_scores))


def random_start(params: ConditionalGaussian, n: int, rng: np.random.Generator) -> Codes:
    """Codes drawn uniformly among the levels that have a chance."""
    codes = np.empty((n, len(params.n_levels)), dtype=np.int32)
    for j, levels in enumerate(allowed_levels(params)):
        if len(levels) == 0:
            raise DistributionError(
                "no level of {columns} has a chance: every bias is -inf", (params.n_gaussian + j,)
            )
        codes[:, j] = levels[rng.integers(len(levels), size=n)]
    return as_codes(params, codes)


def sweep(
    field: ConditionalGaussian,
    codes: Codes,
    times: int,
    rng: np.random.Generator,
    unary: Floats | None = None,
    runs: Ints | None = None,
) -> None:
    """Redraw all states of all chains `times` times, in place: `codes` is (chains, q).

    The field is a model with its numbers integrated out.  `unary` (m, sum of levels) are biases of
    m fields with the same interactions, for chains in m equal consecutive blocks; `runs` is what
    `runs_of` says of the field, computed when not given.
    """
    if codes.size == 0:
        return
    bias = field.bias[None] if unary is None else unary
    runs = runs_of(field) if runs is None else runs
    uniforms, seen = np.empty(codes.shape), field.seen
    for _ in range(times):
        rng.random(out=uniforms)
        if seen is None:
            gibbs_sweep(codes, bias, field.coupling, field.level_start, runs, uniforms)
        else:
            states = (seen.level_start, seen.column_start, seen.scores, seen.n_scored)
            scored_sweep(codes, bias, field.coupling, states, uniforms)


def runs_of(field: ConditionalGaussian) -> Ints:
    """(q, m, 2) for every state the stretches of levels that it interacts with.

    Empty where states are seen by their scores.
    """
    if field.seen is not None:
        return np.zeros((len(field.n_levels), 0, 2), dtype=np.int64)
    first = field.level_start[:-1]
    touched = np.logical_or.reduceat(field.coupling != 0, first, axis=0)
    by_column = []
    for row in np.logical_or.reduceat(touched, first, axis=1):
        edge = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(np.int8)))
        by_column.append(field.level_start[edge].reshape(-1, 2))
    runs = np.zeros((len(by_column), max(map(len, by_column)), 2), dtype=np.int64)
    for j, stretches in enumerate(by_column):
        runs[j, : len(stretches)] = stretches
    return runs


def draw_numbers(
    given_y: Gaussian, params: ConditionalGaussian, codes: Codes, rng: np.random.Generator
) -> Floats:
    """Draw x from its Gaussian given the codes of every row."""
    numbers = rng.standard_normal((len(codes), params.n_gaussian)) @ given_y.factor.root
    numbers += given_y.start
    add_level_rows(numbers, codes, params.level_start, given_y.shift)
    return np.asarray(numbers)


def as_codes(params: ConditionalGaussian, codes: NDArray[np.integer]) -> Codes:
    """The codes in the smallest type that holds those of every column, as in encoded tables."""
    most = max(params.n_levels, default=1)
    if most <= 2**8:
        return codes.astype(np.uint8)
    return codes.astype(np.uint16) if most <= 2**16 else codes.astype(np.int32)
