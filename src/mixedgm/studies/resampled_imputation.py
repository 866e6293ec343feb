"""A fitted model and rows with gaps -> draws of these, each by the parameters of a resample.

A Bayesian bootstrap (Rubin 1981): every row gets a random weight, and the model's graph is
estimated again.  No level is lost, as it may be where rows are drawn with replacement, and
estimates vary as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mixedgm.checkpoint import Record
from mixedgm.errors import MixedGMError, ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.fitting import table_margins
from mixedgm.model.pair_weights import PairWeights
from mixedgm.options import Options
from mixedgm.parallel import run, seeds
from mixedgm.path.rounds import ROUGH, AtLam, Incomplete, Unpenalised
from mixedgm.printable import number_of, quoted
from mixedgm.studies.impute import Completed, draws
from mixedgm.studies.queries import How
from mixedgm.table.gaps import Gaps

__all__ = ["resampled_draws"]

FEWEST_ROWS = 30
_MOST_ROUNDS = 25


@dataclass(frozen=True, eq=False)
class _Plan:
    """What is the same for all draws."""

    fitted: FittedModel
    options: Options
    rows: Gaps
    """What the parameters are estimated from."""
    wanted: Gaps
    """What is filled."""
    how: How


def resampled_draws(
    fitted: FittedModel, options: Options, gaps: tuple[Gaps, Gaps], n_draws: int, how: How
) -> Iterator[Completed]:
    """Fill gaps with draws, each by a model that is estimated again from a resample.

    Parameters
    ----------
    fitted : FittedModel
        Its graph is kept; where it is shrunken, its lam.
    options : Options
        Of its fit; workers and progress bar are those of `options.runtime`.
    gaps : tuple of Gaps
        The rows that the parameters are estimated from, and those that are filled.
    n_draws : int
        How many draws, each with parameters of its own.
    how : How
        How cells are drawn.
    """
    fitted.require_joint()
    fitted.require_fixed_edges()
    rows, wanted = gaps
    plan = _Plan(replace(fitted, path=None), options, _usable(rows), wanted, how)
    outcomes = run(
        partial(_draw, plan),
        seeds(how.random_state, n_draws),
        n_jobs=options.n_jobs,
        what="draws",
        show=options.verbose > 0,
    )
    for outcome in outcomes:
        if outcome.record is None:
            raise MixedGMError(f"the model could not be estimated again: {outcome.error}")
        yield Completed(outcome.record["numbers"], outcome.record["codes"])


def _usable(gaps: Gaps) -> Gaps:
    """The rows that have some value; levels that the model does not have are missing."""
    gaps = replace(gaps, codes=np.maximum(gaps.codes, -1))
    gaps = gaps.take(np.flatnonzero(~gaps.missing.all(axis=1)))
    lead = "parameters='resampled' estimates the model again from X, "
    if gaps.n_rows < FEWEST_ROWS:
        raise ParameterError(
            f"{lead}which has {number_of(gaps.n_rows, 'row')} with values, fewer than "
            f"{FEWEST_ROWS}. To fix: give the whole training table, or parameters='fixed'."
        )
    empty = np.flatnonzero(gaps.missing.all(axis=0))
    if len(empty):
        name = quoted(gaps.schema.nodes[int(empty[0])].name)
        raise ParameterError(f"{lead}where {name} has no values. To fix: parameters='fixed'.")
    return gaps


def _draw(plan: _Plan, seed: np.random.SeedSequence) -> Record:
    """One draw, by parameters of its own."""
    of_rows, of_cells = seeds(seed, 2)
    again = _estimated(plan, np.random.default_rng(of_rows))
    how = replace(plan.how, random_state=of_cells)
    completed = next(draws(again, plan.wanted, 1, how))
    return {"numbers": completed.numbers, "codes": completed.codes}


def _estimated(plan: _Plan, rng: np.random.Generator) -> FittedModel:
    """The model's graph, or its lam, with random weights of the rows."""
    fitted, gaps = plan.fitted, plan.rows
    weights = rng.gamma(np.ones(gaps.n_rows) if gaps.weights is None else gaps.weights)
    weights *= gaps.total_weight / weights.sum()
    kept = np.flatnonzero(weights)
    gaps = replace(gaps.take(kept), weights=weights[kept])
    recipe, lam = plan.options.recipe(gaps.schema), fitted.report.lam
    shrunken = fitted.report.was_fitted and not fitted.report.refitted
    if not shrunken:
        edges = np.argwhere(np.triu(fitted.edge_norms > 0.0))
        only = PairWeights.only(len(gaps.schema.nodes), edges)
        recipe = replace(recipe, factors=only)
    incomplete = Incomplete.of(gaps, recipe)
    if shrunken:
        goal: AtLam | Unpenalised = AtLam(lam, recipe)
    else:
        goal = Unpenalised(None, plan.options.max_iter)
    tol = ROUGH / np.sqrt(gaps.total_weight)
    ends = incomplete.settle(goal, fitted.params, tol=tol, most=_MOST_ROUNDS)
    margins = table_margins(ends.task) if fitted.margins is not None else None
    return replace(
        fitted, params=ends.params, margins=margins, known_terms=None, known_strengths=None
    )
