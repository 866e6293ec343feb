"""A model and a seed -> rows of the joint distribution, exact where that fits, else by Gibbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from mixedgm.errors import ParameterError, TooLargeError
from mixedgm.joint.diagnostics import Diagnostics
from mixedgm.joint.exact import exact
from mixedgm.joint.gibbs import Codes, as_codes, draw_numbers
from mixedgm.joint.plan import LIMIT
from mixedgm.joint.sampled import chains_of, warn_unless_good
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats
from mixedgm.model.params import Params

Method = Literal["auto", "exact", "gibbs"]
T = TypeVar("T")

# Many chains are cheap, and their agreement is what shows convergence.
_CHAINS = 64
_FEWEST_KEPT = 100


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows drawn from the joint distribution: numbers (n, p) and level codes (n, q)."""

    numbers: Floats
    codes: Codes
    method: Literal["exact", "gibbs"]
    notes: tuple[str, ...] = ()
    """Notes on the rows: why they are not exact draws, how well the chains mixed."""
    diagnostics: Diagnostics | None = None
    """R-hat and effective sample sizes; None for exact draws."""


def draw(
    params: ConditionalGaussian | Params,
    n: int,
    *,
    rng: np.random.Generator,
    method: Method = "auto",
    limit: int = LIMIT,
    burn_in: int = 500,
    thin: int = 5,
) -> Draw:
    """Draw n rows of a model with a positive definite precision.

    Exact draws go through the clique tree of the states, then draw the numbers from their
    Gaussian.  Method "auto" takes Gibbs chains when all tables together have more entries than
    `limit`, or with spiked columns, where the model is given by its parameters: `burn_in` sweeps
    before the first kept state, `thin` from one to the next, and a SamplingWarning when R-hat
    exceeds 1.01 or the effective sample size is below 400.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 3))
    >>> rows = draw(params, 4, rng=np.random.default_rng(0))
    >>> rows.numbers.shape, rows.codes.shape, rows.method
    ((4, 1), (4, 2), 'exact')
    """
    check_method(method)
    if n < 0:
        raise ParameterError.must_be("n", "an integer of at least 0", n)
    if isinstance(params, Params):
        refuse_exact(params, method)
    if method == "gibbs" or isinstance(params, Params):
        return _by_gibbs(params, n, rng, burn_in, thin, ())
    try:
        model = exact(params, limit=limit)
    except TooLargeError as error:
        if method == "exact":
            raise
        return _by_gibbs(params, n, rng, burn_in, thin, (f"not exact: {error}",))
    codes = as_codes(params, model.tree.draw(n, rng))
    return Draw(draw_numbers(model.given_y, params, codes, rng), codes, "exact")


def _by_gibbs(
    params: ConditionalGaussian | Params,
    n: int,
    rng: np.random.Generator,
    burn_in: int,
    thin: int,
    notes: tuple[str, ...],
) -> Draw:
    """Rows picked at random among the kept states of many chains."""
    n_keep = max(_FEWEST_KEPT, -(-n // _CHAINS))
    sample = chains_of(params, _CHAINS, n_keep, rng=rng, burn_in=burn_in, thin=thin)
    picked = rng.choice(n_keep * _CHAINS, n, replace=False)
    numbers = sample.numbers.reshape(n_keep * _CHAINS, -1)[picked]
    codes = sample.codes.reshape(n_keep * _CHAINS, -1)[picked]
    text = f"Gibbs: {_CHAINS} chains, {burn_in} sweeps of burn-in, every {thin}th sweep kept; "
    text += str(sample.diagnostics)
    warn_unless_good(sample.diagnostics, isinstance(params, ConditionalGaussian))
    return Draw(numbers, codes, "gibbs", (*notes, text), sample.diagnostics)


def check_method(method: str) -> None:
    """Raise ParameterError for a method that there is not."""
    if method not in ("auto", "exact", "gibbs"):
        raise ParameterError.must_be("method", "'auto', 'exact' or 'gibbs'", method)


def refuse_exact(params: Params, method: Method) -> None:
    """Say that a model with spiked columns has no exact answer, where one is asked for."""
    check_method(method)
    if method == "exact":
        _ = params.joint


def exact_if_possible(method: Method, compute: Callable[[], T]) -> T | None:
    """The exact answer; None where the method is to sample, because of the size or always."""
    if method == "gibbs":
        return None
    try:
        return compute()
    except TooLargeError:
        if method == "exact":
            raise
        return None
