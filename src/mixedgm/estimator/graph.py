"""A fitted estimator -> its graph as frames, text, pictures and files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from mixedgm.base.parameters import ensure, is_integer
from mixedgm.estimator.base import HasModel
from mixedgm.results.summary import SummaryText, summarise
from mixedgm.results.tables import edges_columns, interaction_frame, nodes_columns
from mixedgm.studies.edges.descriptions import describe
from mixedgm.studies.fit_check.joint_discrepancy import summary_notes
from mixedgm.studies.queries.conditioned import model_at
from mixedgm.table.gaps import read_gaps
from mixedgm.table.read import as_frame, frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from networkx import Graph
    from numpy.typing import ArrayLike


class GraphMethods(HasModel):
    """What can be asked about the graph."""

    def edges(self, *, shrunken: bool = False, say: bool = False) -> Any:
        """Edges, strongest first, as a frame of the training table's library.

        Columns: source, target, kind, strength, sign ("+", "-", or none where an end is
        categorical with three or more levels), probability (that there is an edge, where tests
        chose the graph), partial_correlation (continuous pairs only), norm.
        The strength is how much the two columns say about each other given all others, from 0 to
        1: sqrt(1 - exp(-2 I)) with their conditional mutual information I.  For two continuous
        columns it is the absolute partial correlation, slightly less because unshrunken estimates
        are corrected.  It is free of units and comparable between kinds.  A rare level or value can
        carry little information, so the strength of a column that hardly varies is small.  The norm
        is that of the parameters, as the penalty sees them.  Where edges are moderated, the column
        moderator is empty for an edge itself and names the moderator in a row about how an edge
        varies.  Where some edges have a ridge, because the rows alone leave their estimates open,
        the column ridge tells which.

        Estimates are without penalty where the graph was refitted (``fitted_.report.refitted``), as
        it is by default, and shrunken by the penalty otherwise.  Where tests chose the graph, edges
        of several parameters are shrunken, each by the variance of its coefficients.

        Parameters
        ----------
        shrunken : bool
            Whether to add the column shrunken_norm: norms of the penalised estimate at `lam_`,
            which ``refit=False`` returns.
        say : bool
            Whether to add the column says: every edge in words, as `describe` has it.
        """
        model = self._model
        columns = dict(edges_columns(model, shrunken=shrunken))
        if say:
            columns["says"] = [
                describe(model, edge.source, edge.target, edge.moderator) for edge in model.edges
            ]
        return frame(columns, model.library)

    def nodes(
        self, X: object = None, sample_weight: ArrayLike | None = None, *, folds: int = 5
    ) -> Any:
        """Columns with kind, levels, number of edges and total strength of these, as a frame.

        Parameters
        ----------
        X : data frame or 2-D array, optional
            Rows, usually the training table.  They add the columns `held_out` and `in_sample`, how
            well each column is predicted from all others (see `predictability`), and
            `unpredictable`: whether `held_out` is 0 or less.
        sample_weight : array (n,) or str, optional
            Frequencies of the rows, or the name of their column.
        folds : int
            Parts of the rows, each of which is held out once.
        """
        model, columns = self._model, dict(nodes_columns(self._model))
        if X is not None:
            from mixedgm.studies.fit_check.predictability import predictability_columns

            ensure(is_integer(folds, 2), "folds", "an integer of at least 2", folds)
            gaps = read_gaps(as_frame(X), model.schema, sample_weight=sample_weight)
            columns |= predictability_columns(model, gaps, folds)
        return frame(columns, model.library)

    def interaction(
        self, a: str, b: str, moderator: str | None = None, *, standardised: bool = False
    ) -> Any:
        """Parameters between two columns, level names on both axes.

        Parameters
        ----------
        a, b : str
            Two different columns.  A categorical one has its levels on its axis, any other its own
            name: an ordinal column counts by the scores of its levels, a count by its square root.
            A hurdle column has two entries: whether it is not zero (and then as much as the mean of
            all values but zeros), and how much it is.
        moderator : str, optional
            How the parameters change when this column is one unit above its mean, or how they
            differ at each of its levels from their mean over the rows.
        standardised : bool
            Numbers and scores, a moderator among them, are counted in standard deviations of the
            training rows (normal scores where a column has a transform) instead of their own units,
            so that parameters of different pairs can be compared.  Categories stay as they are.
            `plot_parameters` draws these numbers.

        Returns
        -------
        frame of the library of the training table

        Notes
        -----
        The `norm` in `edges()` is the root of the sum of squares of the standardised parameters,
        times sqrt(1 - sum of squared shares of the levels) for each categorical column of the two.

        Examples
        --------
        >>> import mixedgm as mg, numpy as np, pandas as pd
        >>> x, e = np.random.default_rng(0).normal(size=(2, 500))
        >>> table = pd.DataFrame({"metres": x, "grams": 1000 * (x + e)})
        >>> model = mg.MixedGraphicalModel(lam=0.01).fit(table)
        >>> bool(model.interaction("metres", "grams").iloc[0, 0] < 0.01)
        True
        >>> standardised = model.interaction("metres", "grams", standardised=True).iloc[0, 0]
        >>> bool(np.isclose(standardised, model.edges()["norm"][0]))
        True
        """
        return interaction_frame(self._model, a, b, moderator, standardised=standardised)

    def describe(self, a: str, b: str) -> str:
        """Say in words, and in the data's own units, what the edge between two columns says.

        All other columns are held fixed.  Of two numbers it is how much the mean of one moves per
        standard deviation and per unit of the other, of a number and a category how the mean
        varies between levels, of two categories which levels are together more and less often
        than in unrelated columns.  Levels and cells with fewer than 10 rows are not quoted.

        Examples
        --------
        >>> import mixedgm as mg
        >>> columns = {"x": "continuous", "y": "continuous"}
        >>> given = mg.from_params(columns, {"precision": [[2.0, -1.0], [-1.0, 2.0]]})
        >>> given.describe("x", "y")
        'x is 0.41 higher per standard deviation of y (0.5 per unit)'
        """
        return describe(self._model, a, b)

    def summary(self) -> SummaryText:
        """Return what was fitted, how well it converged, and the strongest edges, as text.

        Where the joint distribution is exact and small, and notably far from the table in a pair of
        columns (see `joint_discrepancy`), a note names the worst pair.

        Returns
        -------
        SummaryText
            A string, which notebooks show as HTML; its `values` are the numbers that it tells.
        """
        return SummaryText(summarise(self._model, summary_notes(self._model)))

    def to_networkx(self) -> Graph[str]:
        """The graph with the columns as nodes; kind, weight (strength) and sign as attributes."""
        from mixedgm.results.export import to_networkx

        return to_networkx(self._model)

    def to_adjacency(self, *, signed: bool = False) -> Any:
        """Symmetric table of edge strengths (negative where signed and the sign is "-")."""
        from mixedgm.results.export import to_adjacency

        return to_adjacency(self._model, signed=signed)

    def export(
        self, path: str | os.PathLike[str], *, formulas: Literal["keep", "mark"] = "keep"
    ) -> None:
        """Write the graph as .graphml, .json (with all parameters) or .csv (edge list).

        Parameters
        ----------
        path : str or path
            A file name with one of these endings; the file is complete or not written.
        formulas : {"keep", "mark"}
            A spreadsheet runs text in CSV that starts with =, +, -, @, a tab or a line break.
            "keep" writes such names as they are, so that they can be read back; "mark" puts an
            apostrophe before them.
        """
        from mixedgm.results.export import write

        write(self._model, path, formulas)

    def plot(
        self,
        *,
        layout: Any = "spring",
        ax: Axes | None = None,
        predictability: Any = None,
        **options: Any,
    ) -> Any:
        """Draw the network: circles, pentagons and so on by the kinds of columns.

        Parameters
        ----------
        layout : str, earlier drawing, positions or list of models
            "spring" draws columns together by the strengths of their edges, "kamada-kawai" by the
            number of steps between them, "circle" has one circle, "groups" one for each group.
            Several models share a layout by their mean strengths.
        ax : matplotlib Axes, optional
            A new figure by default.
        predictability : data frame or mapping, optional
            Rows, the frame of `predictability`, or shares by column: draws a ring around each node,
            filled to R2, or to the normalised accuracy of a categorical column.
        **options
            What is drawn: `columns` (only these and the edges between them), `max_edges` (only so
            many of the strongest), `minimum` (no edges of a smaller strength).

            How lines look: `maximum`, the strength of the widest line (by default the largest one);
            `cut`: edges of a smaller strength are thin and faint (by default, from 20 columns on,
            all but the strongest two per column; 0 for none); `dashes`, whether negative edges are
            dashed (by default with up to 40 edges).

            Texts: `labels` (False, "short" for abbreviations with a key, or texts by column),
            `edge_labels` (True for signed strengths, a mapping of (name, name) to text, or a
            callable of the two names), `legend` (False for none).

            Nodes: `groups` (group to columns, or column to group), `areas` (False for no areas
            behind groups), `colors` (by group, or by column without groups), `node_size` in points.

            The whole: `size` ("column" or "page" of a journal) and `theme` ("light" or "dark").

        Returns
        -------
        drawing
            With `ax` and `positions`.

        Examples
        --------
        >>> import mixedgm as mg, numpy as np, pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.normal(size=(2, 200))
        >>> table = pd.DataFrame({"x": x, "y": x + y, "z": y + rng.normal(size=200)})
        >>> model = mg.MixedGraphicalModel(lam=0.1).fit(table)
        >>> model.plot(groups={"inputs": ["x", "z"]}, edge_labels=True, minimum=0.05)
        NetworkDrawing(3 nodes)
        """
        from mixedgm.pictures.network.plot import plot_network

        model = self._model
        if predictability is not None:
            from mixedgm.studies.fit_check.predictability import ring_shares

            options["rings"] = ring_shares(model, predictability)
        return plot_network(model, layout=layout, ax=ax, **options)

    def plot_path(self, *, ax: Axes | None = None, **options: Any) -> Any:
        """Draw the norms of edges against lam, with the chosen value marked."""
        from mixedgm.pictures.path import plot_path

        return plot_path(self._model, ax=ax, **options)

    def plot_selection(self, *, ax: Axes | None = None, **options: Any) -> Any:
        """Draw the scores from which lam was chosen, with the choice marked."""
        from mixedgm.pictures.path import plot_selection

        return plot_selection(self._model, ax=ax, **options)

    def plot_parameters(self, *, ax: Axes | None = None, **options: Any) -> Any:
        """Draw the symmetric matrix of all parameters."""
        from mixedgm.pictures.matrices import plot_parameters

        return plot_parameters(self._model, ax=ax, **options)

    def at(self, f: Mapping[Any, Any]) -> Self:
        """Return the ordinary model at given values of the moderators.

        Parameters
        ----------
        f : mapping of column name to value
            A value of every moderator, for example ``{"age": 40}``.

        Returns
        -------
        MixedGraphicalModel
            A model of all other columns, whose edges are those at these values; the effects of the
            moderators on a column itself are in its node terms.  It can be asked, drawn, sampled
            and saved like any other; other covariates stay covariates.  Nothing was fitted, so
            `lam_`, `kkt_` and `objective_` are NaN; the estimator's parameters are those of this
            model.

        Raises
        ------
        ParameterError
            For a name that is not a moderator, a moderator without value, a level that had no rows.

        Warns
        -----
        ExtrapolationWarning
            When a value is outside the range of the rows that the model was fitted to.

        Examples
        --------
        >>> import mixedgm as mg, numpy as np, pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> age, x = rng.uniform(20, 60, 500), rng.normal(size=500)
        >>> y = (age - 40) / 20 * x + rng.normal(size=500)
        >>> table = pd.DataFrame({"age": age, "x": x, "y": y})
        >>> model = mg.MixedGraphicalModel(moderators=["age"]).fit(table)
        >>> [model.at({"age": value}).edges_[0].sign for value in (25, 55)]
        ['-', '+']
        """
        return self._with_model(model_at(self._model, f))

    def plot_moderation(
        self,
        moderator: str,
        values: Sequence[Any] | None = None,
        f: Mapping[Any, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Draw the network at several values of a moderator, side by side.

        Parameters
        ----------
        moderator : str
            The moderator that changes from picture to picture.
        values : sequence, optional
            Its values.  By default its mean and one standard deviation below and above, or all
            levels that have rows.
        f : mapping of column name to value, optional
            Values of the other moderators; by default their means or most frequent levels.
        **options
            As in `plot`, except for `ax`, `predictability` and `legend`.

        Returns
        -------
        list of drawings
            With `ax` and `positions`; nodes in the same places, widths on the same scale.
        """
        from mixedgm.pictures.network.groups import plot_groups
        from mixedgm.studies.queries.conditioned import models_along

        models, names = models_along(self._model, moderator, values, f)
        return plot_groups(models, names, **options)
