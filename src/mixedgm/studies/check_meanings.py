"""Checks of columns, pairs and levels in -> what their flags mean and what to do, in sentences."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from mixedgm.printable import cut, one_line

__all__ = ["LevelCheck", "NodeCheck", "PairCheck", "meanings_text"]

_NAMED = 5
_ALIKE = 0.02  # strengths that differ by less, and by less than a tenth, are the same

_COLUMNS = {
    "skewed": "Given the other columns, values lean to one side of what the model expects. To do: "
    'try transforms="nonparanormal" for such columns.',
    "heavy": "Given the other columns, some values lie farther out than in a normal distribution. "
    'To do: look at these rows, or try transforms="nonparanormal".',
    "light": "Given the other columns, values lie closer together than in a normal distribution, "
    "as in a column with bounds or with few values. To do: try "
    'transforms="nonparanormal", or types= to make it categorical.',
    "moved": "Mean or spread, or the share of a level, is not what the model says. To do: see "
    "whether these rows are like those of the fit; if parameters are shrunken, fit with "
    "refit=True.",
    "sure": "The model is too sure of the level: in some rows it is harder to predict than the "
    "model says. To do: merge rare levels, or let an edge vary with a third column (moderators=).",
    "unsure": "The level is easier to predict than the model says, so that edges of this column "
    "are missing or too weak. To do: look at its pairs.",
}
_PAIRS = {
    "missing": "The rows show a relation, and the model has no edge for it. To do: let more edges "
    "in, by a smaller lam or a smaller gamma of EBIC; allow the edge, if it is forbidden.",
    "weak": "The edge is there, but the rows show a stronger relation. To do: fit with refit=True "
    "if parameters are shrunken; else the relation is not a straight line (try transforms=) or "
    "varies with a third column (moderators=).",
    "strong": "The model says more about the pair than the rows show. To do: look at the edges "
    "around it; one of them may not be a straight line (try transforms=) or vary with a third "
    "column (moderators=).",
    "shape": "The relation is about as strong as the model says, but not in the same cells; "
    "`where` names the one that is farthest off. To do: try transforms= or moderators=, or live "
    "with it if the difference does not matter.",
}


class NodeCheck(NamedTuple):
    """One column: residuals given all other columns, and how odd the column is.

    Numbers of the residuals are those of a continuous column: mean, standard deviation, skewness,
    excess kurtosis, the largest in size, and how many are beyond 4.  `dispersion` is that of a
    categorical one: its mean squared Pearson residual, 1 when the model is right.
    """

    column: str
    kind: str
    residual_mean: float
    residual_sd: float
    skewness: float
    kurtosis: float
    largest: float
    n_outliers: float
    dispersion: float
    distance: float
    p_value: float
    p_adjusted: float
    flagged: bool
    where: str


class PairCheck(NamedTuple):
    """One pair of columns: how strongly it is related in the rows, and in simulated ones.

    `observed` and `simulated` are correlations (two continuous columns), correlation ratios (mixed)
    or Cramer's V (two categorical ones); `distance` looks at every cell, and is about 1 when the
    model is right.  `where` names the cell that is farthest off, in standard deviations.
    """

    source: str
    target: str
    kind: str
    edge: bool
    observed: float
    simulated: float
    distance: float
    p_value: float
    p_adjusted: float
    flagged: bool
    where: str


class LevelCheck(NamedTuple):
    """One level of a categorical column: rows that have it, and rows expected to."""

    column: str
    level: str
    observed: float
    expected: float
    z: float


def meanings_text(nodes: Sequence[NodeCheck], pairs: Sequence[PairCheck]) -> str:
    """Return one paragraph per meaning of the flags, with the columns and pairs that have it."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        found.setdefault(_COLUMNS[_column_meaning(node)], []).append(node.column)
    for pair in pairs:
        text = _PAIRS[_pair_meaning(pair)]
        found.setdefault(text, []).append(f"{pair.source} - {pair.target}")
    lines = ["What the flags mean"]
    for text, names in found.items():
        shown = ", ".join(cut(one_line(name), 40) for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        lines.append(
            textwrap.fill(
                f"{shown}{more}: {text}", 80, initial_indent="  ", subsequent_indent="    "
            )
        )
    note = "With many rows even differences that do not matter are flagged: compare the numbers."
    return "\n".join([*lines, textwrap.fill(note, 80)])


def _column_meaning(node: NodeCheck) -> str:
    """By the statistic that is farthest off, which `where` names."""
    name, _, size = node.where.rpartition(" ")
    above = not size.startswith("-")
    if name == "skewness":
        return "skewed"
    if name == "kurtosis":
        return "heavy" if above else "light"
    if name == "dispersion":
        return "sure" if above else "unsure"
    return "moved"


def _pair_meaning(pair: PairCheck) -> str:
    """By the strength in the rows and in simulated tables; one number cannot have another shape."""
    observed, simulated = abs(pair.observed), abs(pair.simulated)
    same_sign = pair.observed * pair.simulated >= 0.0
    alike = abs(observed - simulated) <= max(_ALIKE, 0.1 * max(observed, simulated))
    if pair.kind != "continuous-continuous" and alike:
        return "shape"
    if observed > simulated or not same_sign:
        return "weak" if pair.edge else "missing"
    return "strong"
