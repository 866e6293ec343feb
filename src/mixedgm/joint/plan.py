"""Which columns interact -> an elimination order within limits, and how long a question takes.

Eliminating a column joins its neighbours; the column and its neighbours are a clique, and a table
over their states is what the elimination costs.  Finding the best order is a hard problem, so two
well-known rules are tried and the cheaper plan is taken: least new edges ("min-fill") and
smallest table ("min-weight").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from heapq import heapify, heappop, heappush
from math import prod

from mixedgm.base.errors import TooLargeError
from mixedgm.base.printable import number_of
from mixedgm.base.progress import announce, duration

# Entries of all tables of a plan together.  16.8 million entries of eight bytes are 128 MiB; up to
# three such sets are alive at a time, and an answer at the limit takes about a second.
LIMIT = 2**24


@dataclass(frozen=True)
class Clique:
    """A set of columns with one table over their states."""

    separator: tuple[int, ...]
    """Columns shared with the parent."""
    residual: tuple[int, ...]
    """The others; every column is in the residual of exactly one clique."""
    parent: int
    """Number of the parent, which comes earlier in the plan; -1 for a root."""

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """All columns, in the order of the table's axes."""
        return self.separator + self.residual


@dataclass(frozen=True)
class Plan:
    """A clique tree (one per connected set of columns), parents before children.

    Within all cliques, columns are in one common order.
    """

    n_levels: tuple[int, ...]
    cliques: tuple[Clique, ...]

    def size(self, columns: tuple[int, ...]) -> int:
        """Number of states of some columns."""
        return prod(self.n_levels[j] for j in columns)

    @cached_property
    def entries(self) -> int:
        """Entries of all tables together."""
        return sum(self.size(clique.columns) for clique in self.cliques)

    @cached_property
    def home(self) -> tuple[int, ...]:
        """Clique of every column: the one that has it in its residual."""
        home = {j: c for c, clique in enumerate(self.cliques) for j in clique.residual}
        return tuple(home[j] for j in range(len(self.n_levels)))

    def holder(self, columns: tuple[int, ...]) -> int | None:
        """A clique that contains all these columns, or None."""
        wanted = set(columns)
        for c, clique in enumerate(self.cliques):
            if wanted <= set(clique.columns):
                return c
        return None


@lru_cache(maxsize=64)
def make_plan(
    masks: tuple[int, ...], n_levels: tuple[int, ...], limit: int = LIMIT, small: int = 0
) -> Plan:
    """Plan an elimination; `masks` are the neighbours of every column, as the bits of an integer.

    A clique is joined with its parent when the table of both has at most `small` entries: a few
    more numbers for fewer steps.  TooLargeError, which names the columns of the largest table, when
    no order that was tried has at most `limit` entries in all tables together.

    Examples
    --------
    >>> chain = make_plan((0b010, 0b101, 0b010), (2, 3, 4))
    >>> [clique.columns for clique in chain.cliques]
    [(2, 1), (1, 0)]
    """
    best: Plan | None = None
    refused: list[tuple[int, int]] = []
    for rule in (_fill_first, _weight_first):
        steps, too_large = _eliminate(masks, n_levels, rule, limit)
        if too_large:
            refused.append((prod(n_levels[j] for j in bits(too_large)), too_large))
            continue
        plan = Plan(n_levels, _cliques(steps, n_levels, small))
        if best is None or plan.entries < best.entries:
            best = plan
    if best is None:
        size, columns = min(refused)
        raise _too_large(size, tuple(bits(columns)), limit)
    if best.entries > limit:
        widest = max(best.cliques, key=lambda clique: best.size(clique.columns))
        raise _too_large(best.entries, tuple(sorted(widest.columns)), limit)
    return best


def _too_large(size: int, columns: tuple[int, ...], limit: int) -> TooLargeError:
    return TooLargeError(
        f"the exact answer needs tables of {size:.3g} entries, more than the limit of {limit:,}: "
        "{columns} have to be kept in one table (columns that share continuous neighbours count "
        "as neighbours). To fix: sample instead, or raise limit=",
        columns,
    )


def bits(mask: int) -> Iterator[int]:
    """Positions of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


Rule = Callable[[int, int], tuple[int, int]]


def _fill_first(fill: int, weight: int) -> tuple[int, int]:
    return fill, weight


def _weight_first(fill: int, weight: int) -> tuple[int, int]:
    return weight, fill


def _eliminate(
    masks: tuple[int, ...], n_levels: tuple[int, ...], rule: Rule, limit: int
) -> tuple[list[tuple[int, int]], int]:
    """Columns in the order of elimination, each with its neighbours at that moment.

    The second value is the clique at which the limit was passed, or 0.
    """
    near = list(masks)

    def price(v: int) -> tuple[int, int, int]:
        around = near[v]
        missing = sum((around & ~near[u]).bit_count() - 1 for u in bits(around))
        return *rule(missing, n_levels[v] * prod(n_levels[u] for u in bits(around))), v

    current = [price(v) for v in range(len(masks))]
    heap = current.copy()
    heapify(heap)
    steps: list[tuple[int, int]] = []
    alive = (1 << len(masks)) - 1
    while heap:
        entry = heappop(heap)
        v = entry[2]
        if not alive >> v & 1 or entry != current[v]:
            continue  # an old price
        around = near[v]
        if n_levels[v] * prod(n_levels[u] for u in bits(around)) > limit:
            return steps, around | 1 << v
        steps.append((v, around))
        alive &= ~(1 << v)
        touched = around
        for u in bits(around):
            if around & ~near[u] & ~(1 << u):
                touched |= near[u]
            near[u] = (near[u] | around) & ~(1 << u) & ~(1 << v)
        if around == alive:  # all that is left is one clique
            _finish(around, steps)
            break
        for u in bits(touched & alive):
            new = price(u)
            if new != current[u]:
                current[u] = new
                heappush(heap, new)
    return steps, 0


def _finish(clique: int, steps: list[tuple[int, int]]) -> None:
    """Eliminate a set of columns that are all neighbours of each other, in any order."""
    for v in bits(clique):
        clique &= ~(1 << v)
        steps.append((v, clique))


def _cliques(
    steps: list[tuple[int, int]], n_levels: tuple[int, ...], small: int
) -> tuple[Clique, ...]:
    """Cliques of an elimination, from the last column eliminated to the first."""
    position = {v: k for k, (v, _) in enumerate(steps)}
    members: list[list[int]] = []
    separators: list[tuple[int, ...]] = []
    parents: list[int] = []
    home: dict[int, int] = {}
    for v, around in reversed(steps):
        later = sorted(bits(around), key=position.__getitem__, reverse=True)
        parent = home[later[-1]] if later else -1
        if later and (
            len(later) == len(members[parent])  # the parent's columns are all here
            or prod(n_levels[j] for j in members[parent]) * n_levels[v] <= small
        ):
            members[parent].append(v)
            home[v] = parent
            continue
        home[v] = len(members)
        members.append([*later, v])
        separators.append(tuple(later))
        parents.append(parent)
    return tuple(
        Clique(separator, tuple(columns[len(separator) :]), parent)
        for columns, separator, parent in zip(members, separators, parents, strict=True)
    )


# -- how long a question takes ---------------------------------------------------------------------

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
