"""Tables and chains of a question -> about how long it takes: said before, or too long to begin."""

from __future__ import annotations

from collections.abc import Sequence

from mixedgm.errors import TooLargeError
from mixedgm.joint.plan import LIMIT
from mixedgm.printable import number_of
from mixedgm.progress import announce, duration

__all__ = [
    "CHAIN_HOURS",
    "FEWER_ROWS",
    "FEWER_SWEEPS",
    "KNOWN_VALUES",
    "MOST_TABLES",
    "begin_chains",
    "begin_tables",
    "chain_seconds",
    "table_seconds",
]

MOST_TABLES = 2**11
"""How many sets of tables of the largest size (`limit`) one question may fill: about ten minutes
by default."""
CHAIN_HOURS = 2.0
"""How long chains may take."""

# Measured within a factor of about three: entries of tables per second, and seconds of one chain's
# sweep for every level and column that it may speak to; a level by itself is worth some of these.
# Scores of other columns reach all levels at once.
_ENTRIES_PER_SECOND = 2**26
_PER_LEVEL, _OWN, _OWN_BY_SCORES = 2e-9, 8, 2

FEWER_ROWS = "fewer rows at a time"
FEWER_SWEEPS = "fewer rows, burn_in= or thin=; known values of more columns (given=)"
KNOWN_VALUES = "known values of more columns (given=), or a model with fewer edges or levels"


def table_seconds(entries: float) -> float:
    """Return about how long it takes to fill tables with so many entries.

    Examples
    --------
    >>> table_seconds(2**24)
    0.25
    """
    return entries / _ENTRIES_PER_SECOND


def chain_seconds(
    n_levels: Sequence[int], n_chains: int, sweeps: float, *, by_scores: bool = False
) -> float:
    """Return about how long it takes to redraw columns with these numbers of levels.

    `by_scores` says whether they are seen by their scores, without tables of pairs of levels.

    Examples
    --------
    >>> round(chain_seconds((10,) * 20, 64, 1300), 2)
    0.93
    """
    values, columns = sum(n_levels), len(n_levels)
    steps = _OWN_BY_SCORES * values + columns**2 if by_scores else values * (_OWN + columns)
    return n_chains * sweeps * _PER_LEVEL * steps


def begin_tables(n: int, entries: int, limit: int, remedy: str = FEWER_ROWS) -> float:
    """Announce that tables of so many entries are filled n times; return about how many seconds.

    TooLargeError where that is more than `MOST_TABLES` times the limit; a limit below the default
    one is about single tables only.
    """
    seconds, largest = table_seconds(float(n) * entries), max(limit, LIMIT)
    if n * entries > MOST_TABLES * largest:
        raise TooLargeError(
            f"the exact answer fills tables of {entries:,} entries {number_of(n, 'time')}, which "
            f"takes about {duration(seconds)}; at most {MOST_TABLES * largest:,} entries are "
            f"filled ({MOST_TABLES:,} times the limit of {largest:,}). To fix: {remedy}; or raise "
            "limit="
        )
    announce(
        seconds, f"an exact answer from {number_of(n, 'table')} of {entries:,} entries", remedy
    )
    return seconds


def begin_chains(
    n_levels: Sequence[int],
    n_chains: int,
    sweeps: float,
    remedy: str = FEWER_ROWS,
    *,
    by_scores: bool = False,
) -> float:
    """Announce so many sweeps of Gibbs chains; return about how many seconds they take.

    TooLargeError where that is more than `CHAIN_HOURS`.
    """
    seconds = chain_seconds(n_levels, n_chains, sweeps, by_scores=by_scores)
    what = f"{sweeps:,.0f} sweeps of {number_of(n_chains, 'Gibbs chain')}"
    what += f" over {number_of(sum(n_levels), 'value')} of {number_of(len(n_levels), 'column')}"
    if seconds > 3600.0 * CHAIN_HOURS:
        raise TooLargeError(
            f"{what} would take about {duration(seconds)}, and chains may take "
            f"{CHAIN_HOURS:g} hours. To fix: {remedy}"
        )
    announce(seconds, f"an answer from {what}", remedy)
    return seconds
