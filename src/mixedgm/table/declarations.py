"""Declarations of ordinal and count columns by a user -> checked values that `types` takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from mixedgm.base.errors import ParameterError
from mixedgm.base.parameters import ensure, is_flag, is_integer, is_real
from mixedgm.base.printable import quoted
from mixedgm.families.finite import Thresholds
from mixedgm.table.schema import (
    MOST_COUNT,
    Column,
    Kind,
    Level,
    fewest_counts,
    levels_problem,
    scores_problem,
)
from mixedgm.table.values import as_levels


@dataclass(frozen=True)
class Ordinal:
    """An ordinal column in `types`: levels with an order, such as answers from "never" to "always".

    ``"ordinal"`` instead of ``Ordinal()`` does the same.  To all other columns an ordinal one is a
    single number, the score of its level, so that it has one signed parameter per pair of columns.

    Parameters
    ----------
    levels : sequence, optional
        The levels from the lowest to the highest. By default numbers are sorted, and categories
        keep the order that the data frame declares (an ordered category of pandas or pyarrow, an
        Enum of polars); other text has no order of its own, unless its levels begin with numbers.
    scores : sequence of float, optional
        One number for each level, increasing; 0, 1, 2, ... by default. Only their spacing matters.
    thresholds : {"free", "quadratic"}
        Whether every level has a term of its own, or all of them a quadratic function of the score:
        two terms, however many levels there are (Blume and Capel).

    Examples
    --------
    >>> import mixedgm as mg
    >>> pain = mg.Ordinal(levels=["none", "mild", "severe"], scores=[0, 1, 4])
    >>> table = {"pain": ["mild", "none", "severe", "mild"], "age": [31.5, 28.0, 64.0, 47.5]}
    >>> import pandas as pd
    >>> print(mg.check_table(pd.DataFrame(table), types={"pain": pain}).schema)
    column  kind        role    levels                             note
    pain    ordinal     target  3: none (0) < mild (1) < severe (4)
    age     continuous  target
    """

    levels: Sequence[Level] | None = None
    scores: Sequence[float] | None = None
    thresholds: Thresholds = "free"

    def __post_init__(self) -> None:
        for name in ("levels", "scores"):
            values = getattr(self, name)
            if values is not None:
                listed = hasattr(values, "__iter__") and not isinstance(values, (str, bytes, dict))
                ensure(listed, name, "a list", values)
                object.__setattr__(self, name, tuple(values))
        problems = []
        if self.levels is not None:
            problems.append(levels_problem(self.levels))
            object.__setattr__(self, "levels", as_levels(list(self.levels)))
        if self.scores is not None:
            if all(is_real(score) for score in self.scores):
                object.__setattr__(self, "scores", tuple(float(score) for score in self.scores))
                problems.append(scores_problem(self.scores, self.levels))
            else:
                problems.append(f"scores must be numbers. Got {quoted(self.scores)} instead")
        if self.thresholds not in get_args(Thresholds):
            wanted = " or ".join(map(repr, get_args(Thresholds)))
            problems.append(f"thresholds must be {wanted}. Got {quoted(self.thresholds)} instead")
        text = "; ".join(problem for problem in problems if problem)
        if text:
            raise ParameterError(f"Ordinal: {text}.")

    @property
    def kind(self) -> Kind:
        """The name of the kind."""
        return "ordinal"


@dataclass(frozen=True)
class Count:
    """A count column in `types`: whole numbers from 0, such as visits, children or accidents.

    ``"count"`` instead of ``Count()`` does the same.  To all other columns a count is one number,
    its square root; its own distribution is that of a Poisson variable with one term more, so that
    it may vary more, or less.

    Parameters
    ----------
    largest : int, optional
        The largest count that is possible; twice the largest of the table plus 10 by default.
        A larger one in new data is treated like a level that the model has not seen.
    zero_term : bool
        Whether zero has a term of its own: for columns with more zeros than the other counts
        suggest, or fewer.

    Examples
    --------
    >>> import mixedgm as mg
    >>> table = [[0, 1.5], [2, 0.5], [1, 2.5], [0, 0.0], [7, 3.5]]
    >>> print(mg.check_table(table, types={"x0": mg.Count(largest=40)}).schema)
    column  kind        role    levels   note
    x0      count       target  0 to 40
    x1      continuous  target
    """

    largest: int | None = None
    zero_term: bool = False

    def __post_init__(self) -> None:
        ensure(is_flag(self.zero_term), "Count: zero_term", "True or False", self.zero_term)
        if self.largest is not None:
            least = fewest_counts(self.zero_term)
            wanted = f"a whole number from {least} to {MOST_COUNT:,}"
            ensure(
                is_integer(self.largest, least, MOST_COUNT), "Count: largest", wanted, self.largest
            )
            object.__setattr__(self, "largest", int(self.largest))
        object.__setattr__(self, "zero_term", bool(self.zero_term))

    @property
    def kind(self) -> Kind:
        """The name of the kind."""
        return "count"


def declared(kind: str, levels: Sequence[Level] | int, largest: int) -> object:
    """Return what describes a column of a kind without a table; `levels` may be their number.

    Examples
    --------
    >>> declared("count", (), 9), declared("categorical", ("a", "b"), 9)
    (Count(largest=9, zero_term=False), ('a', 'b'))
    """
    if kind == "ordinal":
        return Ordinal(range(levels) if isinstance(levels, int) else levels)
    if kind == "count":
        return Count(largest)
    return levels if kind == "categorical" else kind


def declaration(column: Column) -> Kind | Ordinal | Count:
    """Return what `types` would have to say, besides the levels, to get a column like this."""
    if column.kind == "ordinal":
        return Ordinal(scores=column.scores or None, thresholds=column.thresholds)
    return Count(column.largest, column.zero_term) if column.kind == "count" else column.kind
