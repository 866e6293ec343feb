"""A fitted model and two columns -> what their edge says, in words and in the data's units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.inference.strength import ConditionalInformation
from mixedgm.model.layout import Floats
from mixedgm.printable import quoted
from mixedgm.studies.conditioned import models_along

__all__ = ["describe"]

FEWEST = 10.0
"""Rows of a level, or of a cell, that is quoted."""
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
        return _of_given_hurdle(second, first, block.T)
    if first.has_spike or second.has_spike:
        return _of_hurdles(first, second, block)
    if first.is_real and not first.is_covariate:
        return _of_number(first, second, block[0])
    if first.is_number:
        return _of_odds(first, second, block[0])
    if second.is_number:  # a covariate beside categories
        return _of_odds(second, first, block.T[0])
    return _of_cells(fitted, first, second, block)


@dataclass(frozen=True, eq=False)
class _End:
    """One column of an edge, with what its entries are counted in."""

    fitted: FittedModel
    node: int

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
    def precision(self) -> float:
        """Precision of the real number given all others."""
        return float(self.fitted.params.precisions[self.node])

    @property
    def deviation(self) -> float:
        return float(self.fitted.units_of(self.node)[-1])

    @property
    def step(self) -> tuple[float, str]:
        """What an entry is multiplied by, and what it then is about."""
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

    def extremes(self, values: Floats) -> tuple[int, int]:
        """The levels with the largest and the smallest value among those with enough rows."""
        enough = self.counts >= FEWEST
        if enough.sum() < 2:
            enough = self.counts > 0
        high = np.where(enough, values, -np.inf).argmax()
        return int(high), int(np.where(enough, values, np.inf).argmin())


def _of_number(number: _End, other: _End, entries: Floats) -> str:
    """How the mean of a number moves with the other column."""
    moves = entries / number.precision
    if other.is_number:
        return _moves(number.name, moves[0], other)
    high, low = other.extremes(moves)
    counts = np.where(np.isfinite(other.counts), other.counts, FEWEST)
    share = np.where(counts >= FEWEST, counts, 0.0) / counts[counts >= FEWEST].sum()
    spread = float(np.sqrt(share @ (moves - share @ moves) ** 2))
    levels = other.levels
    return (
        f"mean {number.name} varies between levels of {other.name} by a standard deviation of "
        f"{spread:.2g}: highest for {levels[high]} ({moves[high]:+.2g}), lowest for "
        f"{levels[low]} ({moves[low]:+.2g})"
    )


def _moves(name: str, slope: float, other: _End) -> str:
    step, words = other.step
    text = f"{name} is {abs(slope * step):.2g} {'higher' if slope * step > 0 else 'lower'} {words}"
    return f"{text} ({slope:.2g} per unit)" if other.is_real else text


def _of_odds(scored: _End, other: _End, entries: Floats) -> str:
    """How the odds of one step more of an ordinal column or a count depend on the other column."""
    step, words = scored.step
    if scored.is_covariate:
        odds, more = entries * step, words
        high, low = other.extremes(odds)
        ratio = np.exp(odds[high] - odds[low])
        return (
            f"{more} the odds of {other.name} = {other.levels[high]} against {other.levels[low]} "
            f"are {ratio:.2g} times as high"
        )
    what = f"the odds of one step more of {scored.name}"
    if other.is_number:
        by, words = other.step
        return f"{what} are {np.exp(entries[0] * step * by):.2g} times as high {words}"
    high, low = other.extremes(entries * step)
    ratio = np.exp((entries[high] - entries[low]) * step)
    return f"{what} are {ratio:.2g} times as high for {other.levels[high]} as for " + (
        f"{other.levels[low]} of {other.name}"
    )


def _of_hurdles(first: _End, second: _End, block: Floats) -> str:
    """Whether a hurdle column is zero, and how much it is if not."""
    hurdle, other, entries = (first, second, block) if first.has_spike else (second, first, block.T)
    whether, amount = entries
    odds, moves = f"the odds of {hurdle.name} != 0", amount / hurdle.precision
    if other.is_number:
        column = 0 if other.has_spike else -1
        step, words = (1.0, f"where {other.name} is not zero") if other.has_spike else other.step
        ratio = np.exp(whether[column] * step)
        text = f"{odds} are {ratio:.2g} times as high {words}"
        return f"{text}; where it is not zero, {_moves(hurdle.name, moves[-1], other)}"
    high, low = other.extremes(whether)
    ratio = np.exp(whether[high] - whether[low])
    most, least = other.extremes(moves)
    names = other.levels
    return (
        f"{odds} are {ratio:.2g} times as high for {names[high]} as for {names[low]} of "
        f"{other.name}; where it is not zero, it is highest for {names[most]} "
        f"({moves[most]:+.2g}) and lowest for {names[least]} ({moves[least]:+.2g})"
    )


def _of_given_hurdle(hurdle: _End, other: _End, entries: Floats) -> str:
    """How a column depends on a covariate with zeros: whether it is zero, and how much it is."""
    where = f"where {hurdle.name} is not zero, and then"
    whether, amount = entries[:, :1] if other.is_number else entries
    step, more = hurdle.step
    if other.is_real:
        moves = [float(part[0]) / other.precision for part in (whether, amount * step)]
        first, then = (f"{abs(move):.2g} {'higher' if move > 0 else 'lower'}" for move in moves)
        return f"{other.name} is {first} {where} {then} {more}"
    if other.is_number:
        what, contrast = f"one step more of {other.name}", np.array([other.step[0]])
    else:
        high, low = other.extremes(whether)
        what = f"{other.name} = {other.levels[high]} against {other.levels[low]}"
        contrast = np.eye(len(whether))[high] - np.eye(len(whether))[low]
    first, then = (f"{np.exp(part @ contrast):.2g}" for part in (whether, amount * step))
    return f"the odds of {what} are {first} times as high {where} {then} times as high {more}"


def _of_cells(fitted: FittedModel, first: _End, second: _End, block: Floats) -> str:
    """The cells that are most over- and under-represented, among those with enough rows."""
    rows = fitted.rows or fitted.drawn_rows()
    if rows is None:
        return "no rows are known, so that cells cannot be compared"
    inside = ConditionalInformation(fitted.params, rows, fitted.schema.covariates)
    together, apart = inside.cells(first.node, second.node, block)
    n = fitted.report.total_weight or np.inf
    enough = (np.minimum(together, apart) * n >= FEWEST) & (apart > 0.0)
    if not enough.any():
        return "no combination of levels has enough rows"
    ratio = np.divide(together, apart, out=np.ones_like(apart), where=apart > 0.0)
    parts = []
    for values in (np.where(enough, ratio, -np.inf), np.where(enough, -ratio, -np.inf)):
        i, j = np.unravel_index(int(values.argmax()), values.shape)
        count = f", {together[i, j] * n:,.0f} rows" if np.isfinite(n) else ""
        parts.append(
            f"{first.levels[i]} with {second.levels[j]} {ratio[i, j]:.2g} times as often{count}"
        )
    return (
        f"{first.name} and {second.name}, compared with unrelated columns: {parts[0]}; {parts[1]}"
    )
