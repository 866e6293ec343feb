"""A fitted model and two columns -> what their edge says, in words and in the data's units."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import quoted
from mixedgm.fit.fitted import FittedModel
from mixedgm.inference.strength import ConditionalInformation
from mixedgm.model.layout import Floats
from mixedgm.studies.queries.conditioned import models_along

FEWEST = 10.0
"""Rows of a level, or of a cell, that is quoted."""
_UNLIKE = 0.05
"""Relative excess of rows from which on a cell is quoted."""
MOST_LEVELS = 4
"""Levels of a moderator at which an edge is told."""


def describe(fitted: FittedModel, a: str, b: str, moderator: str | None = None) -> str:
    """Return what the edge between two columns says, all other columns held fixed.

    With a moderator, what it says at one standard deviation below and above the mean of this
    column, or at its first levels.
    """
    if moderator is not None:
        models, names = models_along(fitted, moderator)
        says = [
            f"at {name}: {describe(model, a, b)}" for name, model in zip(names, models, strict=True)
        ]
        has_levels = fitted.schema.nodes[fitted.schema.node_index(moderator)].has_levels
        return "; ".join(says[:MOST_LEVELS] if has_levels else [says[0], says[-1]])
    u, v = fitted.schema.node_index(a), fitted.schema.node_index(b)
    if u == v:
        raise ParameterError(f"an edge needs two different columns. Got {quoted(a)} twice.")
    first, second = sorted((_End(fitted, u), _End(fitted, v)), key=lambda end: end.rank)
    block = fitted.interaction(first.name, second.name).values
    if not block.any():
        return f"no edge: {a} and {b} are independent given all other columns"
    if second.has_spike and second.is_covariate and not first.has_spike:
        parts = (replace(second, part=k) for k in (0, 1))
        return "; ".join(_beside(first, part, block[:, [part.part]]) for part in parts)
    if first.has_spike or second.has_spike:
        return _of_hurdles(first, second, block)
    if first.is_number or second.is_number:
        return _beside(first, second, block)
    return _of_cells(fitted, first, second, block)


def _beside(first: _End, second: _End, block: Floats) -> str:
    """How the first column, which is no hurdle column, depends on the second."""
    if first.is_real:
        return _of_number(first, second, block[0])
    if first.is_number:
        return _of_odds(first, second, block[0])
    return _of_levels(first, second, block[:, 0])


@dataclass(frozen=True, eq=False)
class _End:
    """One column of an edge, with what its entries are counted in."""

    fitted: FittedModel
    node: int
    part: int = 1
    """Of a hurdle column: 0, whether it is zero; 1, how much it is."""

    @property
    def name(self) -> str:
        return self.fitted.schema.nodes[self.node].name

    @property
    def is_real(self) -> bool:
        return bool(self.fitted.params.nodes.gaussian_nodes[self.node])

    @property
    def has_spike(self) -> bool:
        return bool(self.fitted.params.nodes.spiked_nodes[self.node])

    @property
    def is_number(self) -> bool:
        return bool(self.fitted.params.nodes.numeric_nodes[self.node])

    @property
    def is_covariate(self) -> bool:
        return self.node in self.fitted.schema.covariates

    @property
    def rank(self) -> int:
        """Columns whose mean or odds are told come first."""
        order = 0 if self.is_real else 1 if self.has_spike else 2 if self.is_number else 3
        return order + 10 * self.is_covariate

    @property
    def is_bent(self) -> bool:
        """Whether the model has normal scores in place of the column's numbers."""
        return self.fitted.schema.nodes[self.node].transform is not None

    def shift(self, move: float) -> float:
        """Return a change from the middle in the units of the table."""
        if not self.is_bent:
            return move
        column = self.fitted.schema.nodes[self.node]
        low, high = (float(np.asarray(column.decoded(np.array(at)))) for at in (0.0, move))
        return high - low

    @property
    def precision(self) -> float:
        """Precision of the real number given all others."""
        return float(self.fitted.params.precisions[self.node])

    @property
    def deviation(self) -> float:
        return float(self.fitted.units_of(self.node)[-1])

    @property
    def step(self) -> tuple[float, str]:
        """What an entry is multiplied by, and what it then is about."""
        if self.has_spike and self.part == 0:
            return 1.0, f"where {self.name} is not zero"
        if self.is_bent:
            ends = (self.fitted.schema.nodes[self.node].value(at) for at in (0.0, self.deviation))
            low, high = (_plain(float(end), digits=3) for end in ends)
            return self.deviation, f"as {self.name} goes from {low} to {high}"
        if self.has_spike:
            return self.deviation, f"per {self.deviation:.2g} more of {self.name}"
        if self.is_real:
            return self.deviation, f"per standard deviation of {self.name}"
        nodes = self.fitted.params.nodes
        scores = nodes.scores[nodes.slots_of(nodes.place(self.node))]
        if self.fitted.schema.nodes[self.node].has_levels:
            return float(np.diff(scores).mean()), f"per level of {self.name}"
        return float(scores[1] - scores[0]), f"as {self.name} goes from 0 to 1"

    @property
    def levels(self) -> tuple[str, ...]:
        return self.fitted.schema.nodes[self.node].level_names

    @property
    def counts(self) -> Floats:
        """Rows of every level; of a model that nobody fitted, a share of many."""
        nodes, margins = self.fitted.params.nodes, self.fitted.margins
        place = nodes.place(self.node)
        n = self.fitted.report.total_weight or np.inf
        if margins is not None:
            return np.asarray(margins.share[nodes.levels_of(place)] * n)
        if self.fitted.rows is None:
            return np.full(len(self.levels), np.inf)
        codes, weights = self.fitted.rows.codes[:, place], self.fitted.rows.weights
        count = np.bincount(codes, weights, len(self.levels))
        return np.asarray(count / count.sum() * n)

    @property
    def share(self) -> Floats:
        """Shares of the rows of every level that has enough of them to be quoted."""
        counts = np.where(np.isfinite(self.counts), self.counts, FEWEST)
        enough = counts * (counts >= FEWEST)
        return np.asarray(enough / enough.sum() if enough.any() else counts / counts.sum())

    def centred(self, values: Floats) -> Floats:
        """Values of the levels less their mean over rows."""
        return np.asarray(values - self.share @ values)

    def extremes(self, values: Floats) -> tuple[int, int]:
        """The levels with the largest and the smallest value among those with enough rows."""
        enough = self.counts >= FEWEST
        if enough.sum() < 2:
            enough = self.counts > 0
        high = np.where(enough, values, -np.inf).argmax()
        return int(high), int(np.where(enough, values, np.inf).argmin())


def _of_number(number: _End, other: _End, entries: Floats) -> str:
    """How the mean of a number moves with the other column; the median of one that is bent."""
    moves = entries / number.precision
    if other.is_number:
        return _moves(number, moves[0], other)
    moves = np.array([number.shift(move) for move in other.centred(moves)])
    high, low = other.extremes(moves)
    mean = f"{'median' if number.is_bent else 'mean'} {number.name}"
    if len(levels := other.levels) == 2:
        size = _plain(moves[high] - moves[low])
        return f"{mean} is {size} higher for {other.name} = {levels[high]} than for {levels[low]}"
    spread = _plain(float(np.sqrt(other.share @ moves**2)))
    return (
        f"{mean} varies between levels of {other.name} by a standard deviation of {spread}: "
        f"{_extremes(other, moves)}"
    )


def _extremes(category: _End, moves: Floats) -> str:
    """The levels with the largest and the smallest move from the average, and these moves."""
    high, low = category.extremes(moves)
    above, below = _plain(abs(moves[high])), _plain(abs(moves[low]))
    return (
        f"{above} above average for {category.levels[high]}, "
        f"{below} below for {category.levels[low]}"
    )


def _moves(number: _End, slope: float, other: _End) -> str:
    step, words = other.step
    size = number.shift(slope * step)
    text = f"{number.name} is {_plain(abs(size))} {'higher' if size > 0.0 else 'lower'} {words}"
    straight = other.is_real and not (number.is_bent or other.is_bent)
    return f"{text} ({_plain(abs(slope))} per unit)" if straight else text


def _plain(value: float, digits: int = 2) -> str:
    """Return a few digits of a number, written out unless it is very large or very small.

    Examples
    --------
    >>> _plain(1234.5), _plain(0.0123), _plain(-3.0), _plain(1.23e9)
    ('1,200', '0.012', '-3', '1.2e+09')
    """
    if 100.0 <= abs(value) < 1e7:
        return f"{float(f'{value:.{digits}g}'):,.0f}"
    return f"{value:.{digits}g}"


def _of_odds(scored: _End, other: _End, entries: Floats) -> str:
    """How the odds of one step more of an ordinal column or a count depend on the other column."""
    step, _ = scored.step
    what = f"the odds of one step more of {scored.name}"
    if other.is_number:
        by, words = other.step
        return f"{what} are {np.exp(entries[0] * step * by):.2g} times as high {words}"
    high, low = other.extremes(entries * step)
    ratio = np.exp((entries[high] - entries[low]) * step)
    levels = f"{other.name} = {other.levels[high]} as for {other.levels[low]}"
    return f"{what} are {ratio:.2g} times as high for {levels}"


def _of_levels(category: _End, covariate: _End, entries: Floats) -> str:
    """How the odds of levels depend on a number that is given."""
    step, words = covariate.step
    odds = entries * step
    high, low = category.extremes(odds)
    ratio = np.exp(odds[high] - odds[low])
    return (
        f"{words} the odds of {category.name} = {category.levels[high]} against "
        f"{category.levels[low]} are {ratio:.2g} times as high"
    )


def _of_hurdles(first: _End, second: _End, block: Floats) -> str:
    """Whether a hurdle column is zero, and how much it is if not."""
    hurdle, other, entries = (first, second, block) if first.has_spike else (second, first, block.T)
    whether, amount = entries
    odds, moves = f"the odds of {hurdle.name} != 0", amount / hurdle.precision
    if other.is_number:
        column = 0 if other.has_spike else -1
        step, words = (replace(other, part=0) if other.has_spike else other).step
        ratio = np.exp(whether[column] * step)
        text = f"{odds} are {ratio:.2g} times as high {words}"
        return f"{text}; where it is not zero, {_moves(hurdle, moves[-1], other)}"
    high, low = other.extremes(whether)
    ratio = np.exp(whether[high] - whether[low])
    names = other.levels
    return (
        f"{odds} are {ratio:.2g} times as high for {other.name} = {names[high]} as for "
        f"{names[low]}; the mean where it is not zero: "
        f"{_extremes(other, other.centred(moves))}"
    )


def _of_cells(fitted: FittedModel, first: _End, second: _End, block: Floats) -> str:
    """The cells that are most over- and under-represented, among those with enough rows."""
    rows = fitted.rows or fitted.drawn_rows()
    if rows is None:
        return "no rows are known, so that cells cannot be compared"
    inside = ConditionalInformation(fitted.params, rows, fitted.schema.covariates)
    together, apart = inside.cells(first.node, second.node, block)
    n = fitted.report.total_weight or np.inf
    enough = (np.minimum(together, apart) * n >= FEWEST) & (apart > 0.0)
    ratio = np.divide(together, apart, out=np.ones_like(apart), where=apart > 0.0)
    if not (enough & (np.abs(ratio - 1.0) >= _UNLIKE)).any():
        return (
            f"no combination of levels with at least {FEWEST:.0f} rows differs by "
            f"{_UNLIKE:.0%} from unrelated columns"
        )
    parts: list[str] = []
    for values in (np.where(enough, ratio, -np.inf), np.where(enough, -ratio, -np.inf)):
        i, j = np.unravel_index(int(values.argmax()), values.shape)
        cell = f"{first.name} = {first.levels[i]} with {second.name} = {second.levels[j]}"
        as_if = "" if parts else " as many rows as if unrelated"
        count = f" (about {together[i, j] * n:,.0f})" if np.isfinite(n) else ""
        parts.append(f"{cell}: {ratio[i, j]:.2g} times{as_if}{count}")
    return "; ".join(parts)
