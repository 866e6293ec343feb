"""A model and rows with gaps -> the rows completed, by means or draws, also of resamples.

Rows with the same columns missing are worked on together.

A fitted model and rows with gaps -> draws of these, each by the parameters of a resample.

A Bayesian bootstrap (Rubin 1981): every row gets a random weight, and the model's graph is
estimated again.  No level is lost, as it may be where rows are drawn with replacement, and
estimates vary as much.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.checkpoint import Record
from mixedgm.base.errors import MixedGMError, ParameterError, level_of_caller
from mixedgm.base.parallel import run, seeds
from mixedgm.base.printable import number_of, quoted
from mixedgm.base.progress import track
from mixedgm.families import HurdleKind, Kind
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.fitting import table_margins
from mixedgm.fit.options import Options
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.pair_weights import PairWeights
from mixedgm.path.rounds import ROUGH, AtLam, Incomplete, Unpenalised
from mixedgm.studies.missing.cells import sampled_note, with_unseen_levels
from mixedgm.studies.queries.queries import How
from mixedgm.table.gaps import Gaps
from mixedgm.table.schema import with_names

if TYPE_CHECKING:
    from mixedgm.joint.conditioning import KnownColumns
    from mixedgm.joint.posteriors import Posterior


# Rows times values of discrete columns that are worked on at once: 512 MiB.
_MOST_CELLS = 2**26


@dataclass(frozen=True, eq=False)
class Completed:
    """A table without gaps: numbers (normal scores where transformed) and level codes."""

    numbers: Floats
    codes: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Pattern:
    """Rows with the same columns known, and the positions of the known and the unknown columns."""

    rows: Ints
    known: tuple[list[int], list[int]]
    numbers: list[int]
    discrete: list[int]


def expected(fitted: FittedModel, gaps: Gaps, how: How) -> Completed:
    """Fill gaps with conditional means, most probable levels and median counts, given the row.

    A hurdle column gets zero, or the mean where it is not zero, whichever is likelier.

    Every cell is filled by its own distribution: the levels of two cells of one row need not be
    the most probable pair.
    """
    from mixedgm.joint.posteriors import posterior

    out = Completed(gaps.numbers.copy(), gaps.codes.copy())
    params, codes = with_unseen_levels(fitted.joint_params, gaps)
    n_sampled, worst = 0, 0.0
    for pattern in track(list(_patterns(gaps)), what="rows with the same gaps", seconds=None):
        answer: Posterior = with_names(
            fitted.schema,
            posterior,
            params,
            _known(gaps.numbers, codes, pattern),
            method=how.method,
            rng=how.rng,
            limit=how.entries,
        )
        spans = fitted.schema.spans
        kinds = [spans.kinds[node] for node in spans.discrete_nodes[list(pattern.discrete)]]
        codes_of = _points(kinds, answer.levels, [params.n_levels[at] for at in pattern.discrete])
        mean = answer.mean.copy()
        for at, kind in enumerate(kinds):
            if isinstance(kind, HurdleKind):
                node = pattern.numbers.index(spans.discrete_nodes[pattern.discrete[at]])
                share = answer.levels[:, 2 * at + 1]
                parts = kind.parts(mean[:, node], answer.variance[:, node], share)
                mean[:, node] = kind.point(parts)
                codes_of[:, at] = mean[:, node] != 0.0
        _write(out, pattern, mean, codes_of)
        if not answer.exact:
            n_sampled += len(pattern.rows)
            worst = max(worst, float(answer.levels_error.max(initial=0.0)))
    if n_sampled and how.method == "auto":
        note = sampled_note(n_sampled, worst, "imputed", params, "a larger limit=")
        warnings.warn(note, stacklevel=level_of_caller())
    return out


def draws(fitted: FittedModel, gaps: Gaps, n_draws: int, how: How) -> Iterator[Completed]:
    """Fill gaps with draws from their joint distribution given what a row has, several times.

    The first few of many draws are those of few.
    """
    from mixedgm.joint.posteriors import posterior_draw

    patterns = list(_patterns(gaps))
    params, codes = with_unseen_levels(fitted.joint_params, gaps)
    steps = iter(track(range(n_draws * len(patterns)), what="draws of rows", seconds=None))
    for seed in seeds(how.random_state, n_draws):
        rng = np.random.default_rng(seed)
        out = Completed(gaps.numbers.copy(), gaps.codes.copy())
        for pattern in patterns:
            next(steps)
            drawn = with_names(
                fitted.schema,
                posterior_draw,
                params,
                _known(gaps.numbers, codes, pattern),
                rng=rng,
                method=how.method,
                limit=how.entries,
            )
            _write(out, pattern, *drawn)
        yield out


def _patterns(gaps: Gaps) -> Iterator[_Pattern]:
    """Yield groups of rows with the same gaps; rows without gaps are left out.

    Groups in which all values of all rows together would be very many come in parts.
    """
    spans = gaps.schema.spans
    size = max(1, _MOST_CELLS // max(1, sum(spans.n_levels)))
    for rows, gap in gaps.patterns():
        known, unknown = spans.places(np.flatnonzero(~gap)), spans.places(np.flatnonzero(gap))
        for first in range(0, len(rows), size):
            yield _Pattern(rows[first : first + size], known, *unknown)


def _known(numbers: Floats, codes: NDArray[np.int32], pattern: _Pattern) -> KnownColumns:
    from mixedgm.joint.conditioning import KnownColumns

    rows, at = pattern.rows[:, None], pattern.known
    return KnownColumns(*at, numbers[rows, at[0]], codes[rows, at[1]])


def _write(out: Completed, pattern: _Pattern, numbers: Floats, codes: NDArray[Any]) -> None:
    out.numbers[pattern.rows[:, None], pattern.numbers] = numbers
    out.codes[pattern.rows[:, None], pattern.discrete] = codes


def _points(kinds: Sequence[Kind], levels: Floats, n_levels: list[int]) -> NDArray[np.int64]:
    """(n, columns) the code of the value that fills every unknown column; 0 of spiked ones."""
    parts = np.split(levels, np.cumsum(n_levels)[:-1], axis=1) if kinds else []
    with np.errstate(divide="ignore"):
        points = [
            np.zeros(len(part)) if kind.has_spike else kind.point(np.log(part))
            for kind, part in zip(kinds, parts, strict=True)
        ]
    return np.array(points, dtype=np.int64).reshape(len(kinds), len(levels)).T


# -- resampled imputation --------------------------------------------------------------------------

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
