"""The name of a kind of column -> everything that is particular to it, one file per family.

The order of `KINDS` is that of the nodes of a model: Gaussian kinds first, and of the others those
that are numbers to their neighbours before those that are indicators.
"""

from mixedgm.families.contract import Conditional, Family, Kind, Point
from mixedgm.families.finite import CATEGORICAL, COUNT, ORDINAL, CountKind, OrdinalKind, Scored
from mixedgm.families.gaussian import CONTINUOUS
from mixedgm.families.hurdle import HURDLE, HurdleKind

__all__ = [
    "CATEGORICAL",
    "CONTINUOUS",
    "COUNT",
    "HURDLE",
    "KINDS",
    "ORDINAL",
    "Conditional",
    "CountKind",
    "Family",
    "HurdleKind",
    "Kind",
    "OrdinalKind",
    "Point",
    "Scored",
    "edge_kinds",
    "ends_of",
    "indicator_ends",
    "pair_name",
]

KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (CONTINUOUS, HURDLE, ORDINAL, COUNT, CATEGORICAL)
}


def pair_name(first: str, second: str) -> str:
    """Name of the edges between columns of two kinds, whichever comes first.

    Examples
    --------
    >>> pair_name("categorical", "continuous")
    'continuous-categorical'
    """
    order = list(KINDS)
    return "-".join(sorted((first, second), key=order.index))


def edge_kinds() -> tuple[str, ...]:
    """Names of all kinds of edges, in the order of the kinds of their ends."""
    names = list(KINDS)
    return tuple(pair_name(a, b) for at, a in enumerate(names) for b in names[at:])


def ends_of(edge_kind: str) -> tuple[Kind, Kind]:
    """Kinds of the two columns of a kind of edge."""
    first, second = edge_kind.split("-")
    return KINDS[first], KINDS[second]


def indicator_ends(edge_kind: str) -> int:
    """How many ends of a kind of edge are indicators to the other: 0, 1 or 2.

    Examples
    --------
    >>> {kind: indicator_ends(kind) for kind in ("continuous-continuous", "continuous-categorical")}
    {'continuous-continuous': 0, 'continuous-categorical': 1}
    """
    return sum(not kind.is_numeric for kind in ends_of(edge_kind))
