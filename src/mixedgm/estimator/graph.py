"""A fitted estimator -> its graph as frames, text, pictures and files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mixedgm import views
from mixedgm.estimator.base import HasModel
from mixedgm.studies.joint_discrepancy import summary_notes
from mixedgm.studies.predictability import ring_shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from networkx import Graph


class GraphMethods(HasModel):
    """What can be asked about the graph."""

    def edges(self) -> Any:
        """Edges, heaviest first, as a frame of the training table's library.

        Columns: source, target, kind, weight (free of units, comparable between kinds), sign
        ("+", "-", or none where an end has three or more levels), partial_correlation (continuous
        pairs only).  Where edges are moderated, the column moderator is empty for an edge itself
        and names the moderator in a row about how an edge varies.
        """
        return views.edges_frame(self._model)

    def nodes(self) -> Any:
        """Columns with kind, levels, number of edges and total edge weight, as a frame."""
        return views.nodes_frame(self._model)

    def interaction(self, a: str, b: str, moderator: str | None = None) -> Any:
        """Parameters between two columns, level names on both axes.

        With a moderator: how they change when it is one unit above its mean, or how they differ at
        each of its levels from their mean over the rows.
        """
        return views.interaction_frame(self._model, a, b, moderator)

    def summary(self) -> views.Summary:
        """What was fitted, how well it converged, and the heaviest edges; prints as text.

        Where the joint distribution is exact and small, and notably far from the table in a pair of
        columns (see `joint_discrepancy`), a note names the worst pair.
        """
        return views.summarise(self._model, summary_notes(self._model))

    def to_networkx(self) -> Graph[str]:
        """The graph with the columns as nodes; kind, weight and sign as attributes."""
        return views.to_networkx(self._model)

    def to_adjacency(self, *, signed: bool = False) -> Any:
        """Symmetric table of edge weights (negative where signed and the sign is "-")."""
        return views.to_adjacency(self._model, signed=signed)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the graph as .graphml, .json (with all parameters) or .csv (edge list)."""
        views.write(self._model, path)

    def plot(
        self,
        *,
        layout: Any = "spring",
        ax: Axes | None = None,
        predictability: Any = None,
        **options: Any,
    ) -> Any:
        """Draw the network.

        Parameters
        ----------
        layout : str or earlier drawing
            "spring", "circle", "kamada-kawai", or the positions of an earlier plot.
        ax : matplotlib Axes, optional
            A new figure by default.
        predictability : data frame or mapping, optional
            Rows, the frame of `predictability`, or shares by column: draws a ring around each node,
            filled to R2 (continuous) or the normalised accuracy (categorical).
        **options
            `labels`, `max_edges`, `node_size`, `legend`.
        """
        model = self._model
        if predictability is not None:
            options["rings"] = ring_shares(model, predictability)
        return views.plot_network(model, layout=layout, ax=ax, **options)

    def plot_path(self, *, ax: Axes | None = None, **options: Any) -> Any:
        """Draw edge weights against lam, with the chosen value marked."""
        return views.plot_path(self._model, ax=ax, **options)

    def plot_selection(self, *, ax: Axes | None = None, **options: Any) -> Any:
        """Draw the scores from which lam was chosen, with the choice marked."""
        return views.plot_selection(self._model, ax=ax, **options)

    def plot_parameters(self, *, ax: Axes | None = None, **options: Any) -> Any:
        """Draw the symmetric matrix of all parameters."""
        return views.plot_parameters(self._model, ax=ax, **options)
