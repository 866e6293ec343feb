"""Checks of columns, pairs and levels -> ModelCheck: frames, text and a picture of them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.studies.check_meanings import LevelCheck, NodeCheck, PairCheck, meanings_text
from mixedgm.table.assemble import Columns, frame
from mixedgm.views.canvas import known_options
from mixedgm.views.plot_check import CheckPicture, plot_check
from mixedgm.views.text import table_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LevelCheck", "ModelCheck", "NodeCheck", "PairCheck"]

_SHOWN = 12


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
        if nodes:
            shown: Columns = {
                "column": [node.column for node in nodes[:_SHOWN]],
                "distance": [node.distance for node in nodes[:_SHOWN]],
                "where": [node.where for node in nodes[:_SHOWN]],
            }
            parts += ["", _heading("Columns", len(nodes)), table_text(shown)]
        if pairs:
            shown = {
                "pair": [f"{pair.source} - {pair.target}" for pair in pairs[:_SHOWN]],
                "edge": ["yes" if pair.edge else "no" for pair in pairs[:_SHOWN]],
                "observed": [f"{pair.observed:.2f}" for pair in pairs[:_SHOWN]],
                "simulated": [f"{pair.simulated:.2f}" for pair in pairs[:_SHOWN]],
                "distance": [pair.distance for pair in pairs[:_SHOWN]],
                "where": [pair.where for pair in pairs[:_SHOWN]],
            }
            parts += ["", _heading("Pairs", len(pairs)), table_text(shown)]
        if nodes or pairs:
            parts += ["", meanings_text(nodes, pairs)]
        return "\n".join(parts)


def _heading(what: str, total: int) -> str:
    return f"{what} ({_SHOWN} of {total})" if total > _SHOWN else what
