"""A fitted model and rows with gaps -> the same rows completed, by means and modes or by draws.

Rows with the same columns missing are worked on together.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import level_of_caller
from mixedgm.fitted import FittedModel
from mixedgm.model.kinds import HurdleKind, Kind
from mixedgm.model.layout import Floats, Ints
from mixedgm.parallel import seeds
from mixedgm.progress import track
from mixedgm.studies.joint_cells import sampled_note, with_unseen_levels
from mixedgm.studies.queries import How
from mixedgm.table.gaps import Gaps
from mixedgm.table.naming import with_names

if TYPE_CHECKING:
    from mixedgm.joint import KnownColumns, Posterior

__all__ = ["Completed", "draws", "expected"]

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
    from mixedgm.joint import posterior

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
        kinds = [spans.kinds[spans.n_gaussian + at] for at in pattern.discrete]
        codes_of = _points(kinds, answer.levels, [params.n_levels[at] for at in pattern.discrete])
        mean = answer.mean.copy()
        for at, kind in enumerate(kinds):
            if isinstance(kind, HurdleKind):
                node = pattern.numbers.index(spans.n_gaussian + pattern.discrete[at])
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
    from mixedgm.joint import posterior_draw

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
    from mixedgm.joint import KnownColumns

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
