"""Checks of columns, pairs and levels -> ModelCheck: frames, text and a picture of them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixedgm.printable import cut, one_line
from mixedgm.studies.meanings import advice
from mixedgm.table.assemble import Columns, frame
from mixedgm.views.canvas import known_options
from mixedgm.views.plot_check import CheckPicture, plot_check
from mixedgm.views.result import result_html
from mixedgm.views.text import table_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LevelCheck", "ModelCheck", "NodeCheck", "PairCheck", "check_text"]

_SHOWN = 12
_NAMED = 5
_NOTES = (
    "One cause can show in several places: mend one thing, then check again.",
    "With many rows even differences that do not matter are flagged: compare observed and "
    "simulated.",
)


class NodeCheck(NamedTuple):
    """One column: residuals given all other columns, and how odd the column is.

    Numbers of the residuals are those of a continuous column, of a hurdle column where it is not
    zero, of the scores of an ordinal one and of counts, each divided by the standard deviation that
    the model gives its row: mean, standard deviation, skewness, excess kurtosis, the largest in
    size, and how many are beyond 4.
    `dispersion` is the mean squared Pearson residual of a column with finitely many values, or of
    whether a hurdle column is zero, 1 when the model is right.

    `where` names what is oddest about the column, and by how many standard deviations it is off,
    `distance` and `p` how odd that is.  Where the column is flagged, `meaning` says what that
    means in a word or two, and `advice` in sentences, with what to do.
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
    p: float
    p_adjusted: float
    flagged: bool
    where: str
    meaning: str = ""
    advice: str = ""


class PairCheck(NamedTuple):
    """One pair of columns: how strongly it is related in the rows, and in simulated ones.

    `observed` and `simulated` are correlations (no column is categorical; ordinal columns count by
    their scores, counts by their square roots), correlation ratios (one is) or Cramer's V (both);
    with a hurdle column, multiple correlations with its two parts.  They show how large a
    difference is; what is judged are residuals of each column, by the other column, by its square,
    and squared residuals by the other column.  `where` names what is farthest off, in standard
    deviations; `distance`, 1 when the model is right, and `p` how odd that is.  Where the
    pair is flagged, `meaning` and `advice` say what that means and what to do, and `about` names
    the end that it is about, if it is one.
    """

    source: str
    target: str
    kind: str
    edge: bool
    observed: float
    simulated: float
    distance: float
    p: float
    p_adjusted: float
    flagged: bool
    where: str
    meaning: str = ""
    about: str = ""
    advice: str = ""


class LevelCheck(NamedTuple):
    """One level, or one count: rows that have it, and rows expected to."""

    column: str
    level: str
    observed: float
    expected: float
    z: float


class Remedy(NamedTuple):
    """Flags that mean the same, with what to do about all of them."""

    meaning: str
    advice: str
    flags: tuple[NodeCheck | PairCheck, ...]


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
    refit : bool
        Whether the graph's estimate on these rows was judged, rather than the model as it is.
    """

    node_checks: tuple[NodeCheck, ...]
    pair_checks: tuple[PairCheck, ...]
    level_checks: tuple[LevelCheck, ...]
    n_rows: int
    n_simulated: int
    alpha: float
    library: str
    refit: bool = True

    @property
    def p(self) -> float:
        """Chance of a table that is as odd as this anywhere, when the model is right."""
        nodes = [node.p_adjusted for node in self.node_checks]
        return min([*nodes, *(pair.p_adjusted for pair in self.pair_checks)], default=1.0)

    def nodes(self) -> Any:
        """One row per column, as a frame."""
        return self._frame(NodeCheck, self.node_checks)

    def pairs(self) -> Any:
        """One row per pair of columns, oddest first, as a frame."""
        return self._frame(PairCheck, self.pair_checks)

    def flags(self) -> Any:
        """What is flagged, columns first, then pairs: what it means and what to do, as a frame."""
        return frame(self._flags, self.library)

    @property
    def _flags(self) -> Columns:
        fields = ("meaning", "where", "distance", "p_adjusted", "advice")
        nodes = [node for node in self.node_checks if node.flagged]
        pairs = [pair for pair in self.pair_checks if pair.flagged]
        return {
            "column": [*(node.column for node in nodes), *(pair.source for pair in pairs)],
            "other": [*(None for _ in nodes), *(pair.target for pair in pairs)],
            **{name: [getattr(check, name) for check in (*nodes, *pairs)] for name in fields},
        }

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

    def by_meaning(self) -> tuple[Remedy, ...]:
        """Return what is flagged by what it means, columns before pairs."""
        found: dict[str, list[NodeCheck | PairCheck]] = {}
        checks: tuple[NodeCheck | PairCheck, ...] = (*self.node_checks, *self.pair_checks)
        for check in checks:
            if check.flagged:
                found.setdefault(check.meaning, []).append(check)
        remedies = []
        for meaning, flags in found.items():
            pairs = [flag for flag in flags if isinstance(flag, PairCheck)]
            about = [flag.column for flag in flags if isinstance(flag, NodeCheck)]
            about += [pair.about for pair in pairs if pair.about]
            ends = [(pair.source, pair.target) for pair in pairs]
            remedies.append(Remedy(meaning, advice(meaning, about, ends), tuple(flags)))
        return tuple(remedies)

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
        nodes = [(n.distance, n.flagged, n.meaning or n.where) for n in self.node_checks]
        meanings = {
            (at[pair.source], at[pair.target]): pair.meaning
            for pair in self.pair_checks
            if pair.flagged
        }
        picture = CheckPicture(names, distance, flagged, edge, nodes, meanings)
        return plot_check(picture, ax=ax)

    @property
    def title(self) -> str:
        """How much is flagged, of what and against what, in a sentence."""
        n_items = len(self.node_checks) + len(self.pair_checks)
        judged = "the graph, refitted to these rows" if self.refit else "the model as it is"
        return (
            f"Model check: {len(self.flagged)} of {n_items} columns and pairs flagged "
            f"(a right model: any with chance {self.alpha:g}); {judged}, against "
            f"{self.n_simulated} simulated tables of {self.n_rows:,} rows"
        )

    def __repr__(self) -> str:
        return check_text(self)

    def _repr_html_(self) -> str:
        columns = dict(self._flags)
        del columns["distance"], columns["p_adjusted"]
        return result_html(self.title, columns, _NOTES if self.flagged else (), "flags()")


def check_text(checked: ModelCheck, reworded: Callable[[str], str] = str) -> str:
    """Return what is flagged, what that means and what to do; `reworded` may rewrite the advice."""
    pairs = [pair for pair in checked.pair_checks if pair.flagged]
    nodes = [node for node in checked.node_checks if node.flagged]
    parts = [textwrap.fill(checked.title, 80, subsequent_indent="  ")]
    parts += _listed("Columns", {"column": [node.column for node in nodes]}, nodes)
    shown = {
        "pair": [f"{pair.source} - {pair.target}" for pair in pairs],
        "observed": [f"{pair.observed:.2f}" for pair in pairs],
        "simulated": [f"{pair.simulated:.2f}" for pair in pairs],
    }
    parts += _listed("Pairs", shown, pairs)
    if nodes or pairs:
        parts += ["", "What the flags mean", *_meanings(checked, reworded)]
        parts += [textwrap.fill(" ".join(_NOTES), 80)]
    return "\n".join(parts)


def _listed(
    what: str, columns: dict[str, list[str]], checks: Sequence[NodeCheck | PairCheck]
) -> list[str]:
    """A heading and the first checks with how far off they are, and where."""
    off = {"where": [c.where for c in checks], "meaning": [c.meaning for c in checks]}
    shown = {name: values[:_SHOWN] for name, values in {**columns, **off}.items()}
    heading = f"{what} ({_SHOWN} of {len(checks)})" if len(checks) > _SHOWN else what
    return ["", heading, table_text(shown)] if checks else []


def _meanings(checked: ModelCheck, reworded: Callable[[str], str]) -> Iterator[str]:
    """One paragraph per meaning of the flags, with the columns and pairs that have it."""
    for each in checked.by_meaning():
        names = [
            flag.column if isinstance(flag, NodeCheck) else f"{flag.source} - {flag.target}"
            for flag in each.flags
        ]
        shown = ", ".join(cut(one_line(name), 40) for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        paragraph = f"{shown}{more}: {reworded(each.advice)}"
        yield textwrap.fill(paragraph, 80, initial_indent="  ", subsequent_indent="    ")
