"""A fitted model and rows with gaps -> the same rows completed, by means and modes or by draws.

Rows with the same columns missing are worked on together.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import Finding, SamplingWarning
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats, Ints
from mixedgm.parallel import seeds
from mixedgm.studies.queries import How
from mixedgm.table.check import level_of_caller, raise_or_warn
from mixedgm.table.gaps import Gaps
from mixedgm.table.naming import with_names
from mixedgm.table.wording import number_of

if TYPE_CHECKING:
    from mixedgm.joint import Posterior

__all__ = ["Completed", "draws", "expected", "refuse_unknown_covariates"]


@dataclass(frozen=True, eq=False)
class Completed:
    """A table without gaps: continuous columns (normal scores where transformed), level codes."""

    cont: Floats
    codes: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Pattern:
    """Rows with the same columns known, and the positions of the known and the unknown columns."""

    rows: Ints
    known_cont: list[int]
    known_cat: list[int]
    cont: list[int]
    cat: list[int]


def refuse_unknown_covariates(gaps: Gaps) -> None:
    """Raise TableError where covariates are missing: the model has no distribution of them."""
    missing = gaps.missing[:, list(gaps.schema.covariates)].sum(axis=0)
    raise_or_warn(
        Finding(
            gaps.schema.nodes[node].name,
            f"it is a covariate, and {number_of(int(n), 'value is', 'values are')} missing",
            "fill it in before: the model says how covariates act, not which are likely",
        )
        for node, n in zip(gaps.schema.covariates, missing, strict=True)
        if n
    )


def expected(fitted: FittedModel, gaps: Gaps, how: How) -> Completed:
    """Fill gaps with conditional means and most probable levels, given what a row has.

    Every cell is filled by its own distribution: the levels of two cells of one row need not be
    the most probable pair.
    """
    from mixedgm.joint import posterior

    out = Completed(gaps.cont.copy(), gaps.codes.copy())
    n_sampled, worst = 0, 0.0
    for pattern in _patterns(gaps):
        found: Posterior = with_names(
            fitted.schema,
            posterior,
            fitted.joint_params,
            pattern.known_cont,
            pattern.known_cat,
            *_known(gaps, pattern),
            method=how.method,
            rng=how.rng,
            limit=how.entries,
        )
        modes = _modes(found.levels, [fitted.schema.n_levels[cat] for cat in pattern.cat])
        _write(out, pattern, found.mean, modes)
        if not found.exact:
            n_sampled += len(pattern.rows)
            worst = max(worst, float(found.levels_error.max(initial=0.0)))
    if n_sampled and how.method == "auto":
        warnings.warn(_sampled_note(n_sampled, worst), stacklevel=level_of_caller())
    return out


def draws(fitted: FittedModel, gaps: Gaps, n_draws: int, how: How) -> Iterator[Completed]:
    """Fill gaps with draws from their joint distribution given what a row has, several times.

    The first few of many draws are those of few.
    """
    patterns = list(_patterns(gaps))
    for seed in seeds(how.random_state, n_draws):
        rng = np.random.default_rng(seed)
        out = Completed(gaps.cont.copy(), gaps.codes.copy())
        for pattern in patterns:
            _write(out, pattern, *_drawn(fitted, gaps, pattern, rng, how))
        yield out


def _drawn(
    fitted: FittedModel, gaps: Gaps, pattern: _Pattern, rng: np.random.Generator, how: How
) -> tuple[Floats, NDArray[np.int32]]:
    from mixedgm.joint import posterior_draw

    return with_names(
        fitted.schema,
        posterior_draw,
        fitted.joint_params,
        pattern.known_cont,
        pattern.known_cat,
        *_known(gaps, pattern),
        rng=rng,
        method=how.method,
        limit=how.entries,
    )


def _patterns(gaps: Gaps) -> Iterator[_Pattern]:
    """Yield groups of rows with the same gaps; rows without gaps are left out."""
    missing, p = gaps.missing, gaps.schema.n_cont
    rows = np.flatnonzero(missing.any(axis=1))
    if not len(rows):
        return
    packed = np.packbits(missing[rows], axis=1)
    _, first, group = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(group.ravel()))
    for at, members in zip(first, np.split(rows[order], ends[:-1]), strict=True):
        gap = missing[rows[at]]
        yield _Pattern(
            members,
            np.flatnonzero(~gap[:p]).tolist(),
            np.flatnonzero(~gap[p:]).tolist(),
            np.flatnonzero(gap[:p]).tolist(),
            np.flatnonzero(gap[p:]).tolist(),
        )


def _known(gaps: Gaps, pattern: _Pattern) -> tuple[Floats, NDArray[np.int32]]:
    return (
        gaps.cont[pattern.rows[:, None], pattern.known_cont],
        gaps.codes[pattern.rows[:, None], pattern.known_cat],
    )


def _write(out: Completed, pattern: _Pattern, cont: Floats, codes: NDArray[Any]) -> None:
    out.cont[pattern.rows[:, None], pattern.cont] = cont
    out.codes[pattern.rows[:, None], pattern.cat] = codes


def _modes(levels: Floats, n_levels: list[int]) -> NDArray[np.int64]:
    """(n, columns) most probable level of every unknown categorical column."""
    ends = np.cumsum([0, *n_levels])
    found = [levels[:, ends[k] : ends[k + 1]].argmax(axis=1) for k in range(len(n_levels))]
    return np.array(found, dtype=np.int64).reshape(len(n_levels), len(levels)).T


def _sampled_note(n_rows: int, worst: float) -> SamplingWarning:
    rows = "1 row was" if n_rows == 1 else f"{n_rows:,} rows were"
    return SamplingWarning(
        f"{rows} imputed from Gibbs chains, because exact tables do not fit the limit; the largest "
        f"standard error of a level's probability is {worst:.2g}. To change it: a larger limit="
    )
