"""Columns with their levels, and a number of rows -> about how long a fit takes, and why."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from mixedgm.base.errors import Finding
from mixedgm.base.printable import few, number_of, rows
from mixedgm.base.progress import duration
from mixedgm.base.threads import single_threaded_blas
from mixedgm.model.nodes import Floats
from mixedgm.table.schema import Column

LONG = 40.0
"""Seconds from which a fit is announced: about a minute, as far as one can tell."""
REMEDY = "leave columns out, merge rare levels, or begin with some of the rows"

# Measured, see `effort`, on a machine of _PROBE operations per second and thread in plain matrix
# products: operations per second of a pass, what a level costs beside its products, lams per unit
# of log(rows / parameters of an edge), passes over all pairs that a lam is worth, and seconds that
# a pair of columns takes per lam: less of a wide table, most of whose pairs are only looked at.
_PROBE = 46e9
_NOMINAL = 25e9
_PER_LEVEL = 60.0
_LAMS_PER_LOG = 5.0
_PASSES_PER_LAM = 1.5
_PER_PAIR = 2e-7
_MANY_PAIRS, _PER_ONE_OF_MANY = 2e6, 4e-8
_FEWEST_LAMS, _MOST_LAMS = 3.0, 60.0
_MATRICES = 10.0
_MOST_NAMED, _MANY_LEVELS = 3, 10
_VALUES, _WIDTH, _FREE = range(3)  # rows of `_sizes`


@dataclass(frozen=True)
class Effort:
    """Estimated time and memory of a fit.

    The estimates are right within a factor of about three from ten seconds on, and of seven below.
    """

    seconds: float  # on this machine
    gigabytes: float  # of memory, beside the table
    because: str  # what makes it long

    @property
    def finding(self) -> Finding | None:
        """Finding of `check` and `fit` about a long fit; None about others."""
        if self.seconds < LONG:
            return None
        memory = f" and {self.gigabytes:.0f} GB of memory" if self.gigabytes >= 2.0 else ""
        what = f"a fit takes about {duration(self.seconds)}{memory} ({self.because})"
        return Finding(None, what, REMEDY, "note")


def effort(
    columns: Sequence[Column],
    n_rows: int,
    *,
    n_lams: float | None = None,
    times: float = 1.0,
    n_threads: int = 1,
    speed: float | None = None,
) -> Effort:
    """Return about what a pseudolikelihood fit of these columns takes.

    A pass over n rows multiplies d design columns by those of all that are not Gaussian, and takes
    an exponential for each of their values; everything else is counted in passes.  How many
    lams a default path has follows from the rows per parameter of an edge.  The numbers were
    fitted to tables of 500 to 1,000,000 rows and 10 to 2,000 columns.

    Times of more than ten seconds in docs/studies/effort.csv are met within a factor of three,
    shorter ones within about seven.

    By default, as many values of lam are solved as EBIC will ask for. `times` is how often the work
    of such a path is done: more than once by cross-validation. `speed` is that of this machine,
    relative to that of the measurements; by default it is measured where a fit might be long.

    Examples
    --------
    >>> letters = tuple("abcdefghijklmnopqrstuvwxyz")
    >>> many = [Column(f"x{k}", "categorical", levels=letters) for k in range(500)]
    >>> effort(many, 100_000).seconds > 3600 > 1 > effort(many[:3], 1000).seconds
    True
    """
    sizes = _sizes(columns)
    lams = _lams(sizes, n_rows) if n_lams is None else float(n_lams)
    seconds = times * lams * _seconds_per_lam(sizes, n_rows)
    if speed is not None or seconds > LONG / 4:
        speed = _relative_speed() if speed is None else speed
        seconds /= speed * (0.9 * n_threads if n_threads > 1 else 1.0)
    d = float(sizes[_WIDTH].sum())
    return Effort(seconds, _MATRICES * 8e-9 * d * d, _reason(columns, sizes, n_rows))


def _sizes(columns: Sequence[Column]) -> Floats:
    """Values, design columns and directions of every column: rows of _VALUES, _WIDTH, _FREE."""
    kinds = [(column.node_kind, column.n_values) for column in columns]
    sizes = [(n, kind.width(n), max(1, kind.freedom(n))) for kind, n in kinds]
    return np.array(sizes, dtype=float).reshape(len(sizes), 3).T


def _lams(sizes: Floats, n_rows: int) -> float:
    free = sizes[_FREE]
    pairs = len(free) * (len(free) - 1) / 2
    df = (free.sum() ** 2 - (free**2).sum()) / 2 / max(1.0, pairs)
    lams = _LAMS_PER_LOG * np.log(max(1.0, n_rows / max(1.0, df)))
    return float(np.clip(lams, _FEWEST_LAMS, _MOST_LAMS))


def _seconds_per_lam(sizes: Floats, n_rows: int) -> float:
    values, width = sizes[_VALUES], sizes[_WIDTH]
    d, k = float(width.sum()), len(width)
    predictors, levels = float(width[values > 0].sum()), float(values.sum())
    per_row = predictors * d + levels * _PER_LEVEL
    passes = _PASSES_PER_LAM * 4.0 * n_rows * per_row / _NOMINAL
    pairs = k * (k - 1) / 2
    return (
        passes
        + _PER_PAIR * min(pairs, _MANY_PAIRS)
        + _PER_ONE_OF_MANY * max(0.0, pairs - _MANY_PAIRS)
    )


def _reason(columns: Sequence[Column], sizes: Floats, n_rows: int) -> str:
    """The columns without which it would be half as long, or else the size of the table."""
    levels = sizes[_VALUES]
    order = np.argsort(-levels, kind="stable")
    top = order[:_MOST_NAMED][levels[order[:_MOST_NAMED]] > _MANY_LEVELS]
    rest = np.delete(sizes, top, axis=1)
    if len(top) and _seconds_per_lam(rest, n_rows) < 0.5 * _seconds_per_lam(sizes, n_rows):
        named = few([columns[at].name for at in top])
        noun = "level" if all(columns[at].has_levels for at in top) else "value"
        return f"{number_of(int(levels[top].sum()), noun)} of {named}"
    size = f"{rows(n_rows)}, {number_of(len(columns), 'column')}"
    if levels.any():
        size += f" with {number_of(int(levels.sum()), 'level')} in all"
    return size


@cache
def _relative_speed() -> float:
    """How fast this machine multiplies matrices, relative to that of the measurements."""
    size = 384
    a = np.ones((size, size))
    best = np.inf
    with single_threaded_blas():
        for _ in range(10):
            start = time.perf_counter()
            a @ a
            best = min(best, time.perf_counter() - start)
    return float(np.clip(2.0 * size**3 / best / _PROBE, 0.1, 10.0))
