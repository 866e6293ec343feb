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

# Measured within a factor of about three: entries of tables per second, and seconds that one level
# takes per column when one chain is redrawn.
_ENTRIES_PER_SECOND = 2**26
_PER_LEVEL, _OWN = 2e-9, 8.0

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


def chain_seconds(n_levels: Sequence[int], n_chains: int, sweeps: float) -> float:
    """Return about how long it takes to redraw columns with these numbers of levels.

    Examples
    --------
    >>> round(chain_seconds((10,) * 20, 64, 1300), 2)
    0.93
    """
    per_sweep = _PER_LEVEL * sum(n_levels) * (_OWN + len(n_levels))
    return n_chains * sweeps * per_sweep


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
    n_levels: Sequence[int], n_chains: int, sweeps: float, remedy: str = FEWER_ROWS
) -> float:
    """Announce so many sweeps of Gibbs chains; return about how many seconds they take.

    TooLargeError where that is more than `CHAIN_HOURS`.
    """
    seconds = chain_seconds(n_levels, n_chains, sweeps)
    what = f"{sweeps:,.0f} sweeps of {number_of(n_chains, 'Gibbs chain')}"
    what += f" over {number_of(sum(n_levels), 'value')} of {number_of(len(n_levels), 'column')}"
    if seconds > 3600.0 * CHAIN_HOURS:
        raise TooLargeError(
            f"{what} would take about {duration(seconds)}, and chains may take "
            f"{CHAIN_HOURS:g} hours. To fix: {remedy}"
        )
    announce(seconds, f"an answer from {what}", remedy)
    return seconds
