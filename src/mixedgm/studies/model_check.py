"""Checks of columns, pairs and levels -> ModelCheck: frames, text and a picture of them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixedgm.model.kinds import KINDS, indicator_ends
from mixedgm.printable import cut, one_line
from mixedgm.table.assemble import Columns, frame
from mixedgm.views.canvas import known_options
from mixedgm.views.plot_check import CheckPicture, plot_check
from mixedgm.views.text import table_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ZEROS", "LevelCheck", "ModelCheck", "NodeCheck", "PairCheck", "meanings_text"]

_SHOWN = 12
_NAMED = 5
_ALIKE = 0.02  # strengths that differ by less, and by less than a tenth, are the same
ZEROS = "zeros"
"""How `where` names the share of zeros of a count."""

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
    "varied": "Given the other columns, values vary more than the model says. To do: look for an "
    "edge that is missing or that varies with a third column (moderators=); counts with many zeros "
    "may need types={...: mixedgm.Count(zero_term=True)}.",
    "even": "Given the other columns, values vary less than the model says, so that edges of this "
    "column are missing or too weak. To do: look at its pairs.",
    "amounts": "Where such a column is not zero, values are not normal given the other columns. To "
    "do: look at these rows, or take logarithms (np.log1p keeps zeros).",
    "zeros": "There are more zeros, or fewer, than the model says. To do: "
    "types={...: mixedgm.Count(zero_term=True)}.",
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

    Numbers of the residuals are those of a continuous column, of a hurdle column where it is not
    zero, of the scores of an ordinal one and of counts, each divided by the standard deviation that
    the model gives its row: mean, standard deviation, skewness, excess kurtosis, the largest in
    size, and how many are beyond 4.
    `dispersion` is the mean squared Pearson residual of a column with finitely many values, or of
    whether a hurdle column is zero, 1 when the model is right.
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

    `observed` and `simulated` are correlations (no column is categorical; ordinal columns count by
    their scores, counts by their square roots), correlation ratios (one is) or Cramer's V (both);
    with a hurdle column, multiple correlations with its two parts;
    `distance` looks at every cell, and is about 1 when the model is right.  `where` names the cell
    that is farthest off, in standard deviations.
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
    """One level, or one count: rows that have it, and rows expected to."""

    column: str
    level: str
    observed: float
    expected: float
    z: float


@dataclass(frozen=True)
class ModelCheck:
    """Where the rows are not as the model says.

    Parameters
    ----------
    node_checks, pair_checks, level_checks : tuple
        The results, as plain values; `nodes()`, `pairs()` and `levels()` give them as frames.
    n_rows : int
        Rows of every simulated table.
    n_simulated : int
        Simulated tables.
    alpha : float
        Chance that a right model has anything flagged.
    library : str
        Library of the frames.
    """

    node_checks: tuple[NodeCheck, ...]
    pair_checks: tuple[PairCheck, ...]
    level_checks: tuple[LevelCheck, ...]
    n_rows: int
    n_simulated: int
    alpha: float
    library: str

    def nodes(self) -> Any:
        """One row per column, as a frame."""
        return self._frame(NodeCheck, self.node_checks)

    def pairs(self) -> Any:
        """One row per pair of columns, oddest first, as a frame."""
        return self._frame(PairCheck, self.pair_checks)

    def levels(self) -> Any:
        """Observed and expected counts of every level given the other columns, as a frame."""
        return self._frame(LevelCheck, self.level_checks)

    def _frame(self, row: Any, rows: Sequence[Any]) -> Any:
        return frame({name: [getattr(r, name) for r in rows] for name in row._fields}, self.library)

    @property
    def flagged(self) -> tuple[tuple[str, ...], ...]:
        """Columns and pairs that are not as the model says, oddest pair first."""
        pairs = [(pair.source, pair.target) for pair in self.pair_checks if pair.flagged]
        return (*((n.column,) for n in self.node_checks if n.flagged), *pairs)

    @known_options
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw how odd every pair is, and every column beside it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default; the panel of the columns is appended at its right.

        Returns
        -------
        matplotlib Axes
            Of the pairs.
        """
        names = [node.column for node in self.node_checks]
        ends = [name for pair in self.pair_checks for name in (pair.source, pair.target)]
        names += sorted({*ends} - {*names})  # covariates: they are in pairs only
        at = {name: k for k, name in enumerate(names)}
        distance = np.full((len(names), len(names)), np.nan)
        flagged, edge = (np.zeros(distance.shape, dtype=bool) for _ in range(2))
        for pair in self.pair_checks:
            u, v = at[pair.source], at[pair.target]
            distance[u, v] = distance[v, u] = pair.distance
            flagged[u, v] = flagged[v, u] = pair.flagged
            edge[u, v] = edge[v, u] = pair.edge
        nodes = [(n.distance, n.flagged, n.where) for n in self.node_checks]
        return plot_check(CheckPicture(names, distance, flagged, edge, nodes), ax=ax)

    def __repr__(self) -> str:
        n_items = len(self.node_checks) + len(self.pair_checks)
        head = (
            f"Model check: {len(self.flagged)} of {n_items} columns and pairs flagged "
            f"(a right model: any with chance {self.alpha:g}), against {self.n_simulated} "
            f"simulated tables of {self.n_rows:,} rows"
        )
        pairs = [pair for pair in self.pair_checks if pair.flagged]
        nodes = [node for node in self.node_checks if node.flagged]
        parts = [textwrap.fill(head, 80, subsequent_indent="  ")]
        parts += _listed("Columns", {"column": [node.column for node in nodes]}, nodes)
        shown = {
            "pair": [f"{pair.source} - {pair.target}" for pair in pairs],
            "edge": ["yes" if pair.edge else "no" for pair in pairs],
            "observed": [f"{pair.observed:.2f}" for pair in pairs],
            "simulated": [f"{pair.simulated:.2f}" for pair in pairs],
        }
        parts += _listed("Pairs", shown, pairs)
        if nodes or pairs:
            parts += ["", meanings_text(nodes, pairs)]
        return "\n".join(parts)


def _listed(
    what: str, columns: dict[str, list[str]], checks: Sequence[NodeCheck | PairCheck]
) -> list[str]:
    """A heading and the first checks with how far off they are, and where."""
    off: Columns = {"distance": [c.distance for c in checks], "where": [c.where for c in checks]}
    shown = {name: values[:_SHOWN] for name, values in {**columns, **off}.items()}
    heading = f"{what} ({_SHOWN} of {len(checks)})" if len(checks) > _SHOWN else what
    return ["", heading, table_text(shown)] if checks else []


def meanings_text(nodes: Sequence[NodeCheck], pairs: Sequence[PairCheck]) -> str:
    """Return one paragraph per meaning of the flags, with the columns and pairs that have it."""
    flagged: dict[str, list[str]] = {}
    for node in nodes:
        flagged.setdefault(_COLUMNS[_column_meaning(node)], []).append(node.column)
    for pair in pairs:
        text = _PAIRS[_pair_meaning(pair)]
        flagged.setdefault(text, []).append(f"{pair.source} - {pair.target}")
    lines = ["What the flags mean"]
    for text, names in flagged.items():
        shown = ", ".join(cut(one_line(name), 40) for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        paragraph = f"{shown}{more}: {text}"
        lines.append(textwrap.fill(paragraph, 80, initial_indent="  ", subsequent_indent="    "))
    note = "With many rows even differences that do not matter are flagged: compare the numbers."
    return "\n".join([*lines, textwrap.fill(note, 80)])


def _column_meaning(node: NodeCheck) -> str:
    """By the statistic that is farthest off, which `where` names."""
    name, _, size = node.where.rpartition(" ")
    above = not size.startswith("-")
    kind = KINDS[node.kind]
    if kind.is_numeric and not kind.is_gaussian and not kind.has_spike:
        by_name = {"residual sd": "varied" if above else "even", ZEROS: "zeros"}
        return by_name.get(name, "moved")
    if kind.has_spike and name in ("skewness", "kurtosis"):
        return "amounts"
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
    opposite = pair.observed * pair.simulated < 0.0 and observed > _ALIKE
    alike = abs(observed - simulated) <= max(_ALIKE, 0.1 * max(observed, simulated))
    if indicator_ends(pair.kind) and alike:
        return "shape"
    if observed > simulated or opposite:
        return "weak" if pair.edge else "missing"
    return "strong"
