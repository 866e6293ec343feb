"""A fitted estimator -> a report in one HTML file, and the live graph for notebooks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from mixedgm.base.parallel import RandomState
from mixedgm.estimator.base import HasModel

if TYPE_CHECKING:
    from mixedgm.report.document import LiveGraph
    from mixedgm.studies.edges.tests import EdgeTests
    from mixedgm.studies.fit_check.result import ModelCheck
    from mixedgm.studies.groups.result import GroupComparison
    from mixedgm.studies.resampling.result import Bootstrap


class ReportMethods(HasModel):
    """What is looked at, shown to a colleague, and put into a paper."""

    def report(
        self,
        path: str | os.PathLike[str],
        data: object = None,
        bootstrap: Bootstrap | None = None,
        tests: EdgeTests | None = None,
        comparison: GroupComparison | None = None,
        *,
        check: ModelCheck | bool | None = None,
        sample_weight: ArrayLike | None = None,
        title: str | None = None,
        groups: Mapping[Any, Any] | None = None,
        random_state: RandomState = 0,
        n_jobs: int | None = None,
    ) -> None:
        """Write a report: one HTML file that needs nothing else, and no network.

        It has the graph (to pan, zoom, drag and search; a click on an edge or a column opens what
        it consists of), the path under a slider, tables, what speaks for the model and against it,
        and a paragraph about methods with what to cite.

        Parameters
        ----------
        path : str or path
            The file to write, usually ending in .html; it is complete or not written.
        data : data frame, 2-D array or file name, optional
            The training table, or another one with the same columns.  It adds how well columns are
            predicted, their distributions, findings about the table, missing cells, and whether
            the model fits.
        bootstrap : Bootstrap, optional
            Of `mixedgm.bootstrap`: intervals of edges, and how often they are found again.
        tests : EdgeTests, optional
            Of `mixedgm.edge_tests`.
        comparison : GroupComparison, optional
            Of `mixedgm.compare`.
        check : ModelCheck or bool, optional
            The result of `check_fit`.  True makes the check from `data`, False leaves it out; by
            default it is made for up to 100 columns.
        sample_weight : array (n,) or str, optional
            Frequencies of the rows of `data`, or the name of their column.
        title : str, optional
            The heading.
        groups : dict of group to columns, or of column to group, optional
            Groups of columns that get a colour and an area each, as in `plot`.
        random_state : int, Generator, RandomState or None
            Of the tables that the check simulates.
        n_jobs : int, optional
            Processes of the check.

        Notes
        -----
        Names and levels are shown as text, with what cannot be printed as escapes; names of more
        than 120 characters lose their middle.  The file contains the graph, parameters and
        distributions of columns, but no rows of `data`.

        Examples
        --------
        >>> import mixedgm as mg, numpy as np, pandas as pd, pathlib, tempfile
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=200)
        >>> table = pd.DataFrame({"x": x, "y": x + rng.normal(size=200)})
        >>> model = mg.MixedGraphicalModel(lam=0.1).fit(table)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "report.html")
        ...     model.report(file, data=table, check=False)
        ...     file.read_text(encoding="utf-8").count("<script")
        2
        """
        from mixedgm.base.atomic import check_writable, write_text
        from mixedgm.report.document import document
        from mixedgm.report.material import Studies, gather

        check_writable(path)
        self._check_groups(groups)
        material = gather(
            self._model,
            self.get_params(deep=False),
            data,
            sample_weight=sample_weight,
            studies=Studies(bootstrap, tests, comparison, check),
            random_state=random_state,
            n_jobs=n_jobs,
        )
        named = replace(material, title=title or "", source=_name_of(data), groups=groups)
        write_text(path, document(named))

    def view(
        self, data: object = None, *, height: int = 560, groups: Mapping[Any, Any] | None = None
    ) -> LiveGraph:
        """Show the live graph in a notebook.

        It is a page of its own in a sandboxed frame: it runs its own script only, and can reach
        neither the notebook nor the network.

        Parameters
        ----------
        data : data frame, 2-D array or file name, optional
            Adds how well columns are predicted, as rings, and their distributions.
        height : int
            Height of the frame in pixels.
        groups : dict of group to columns, or of column to group, optional
            Groups of columns that get a colour and an area each, as in `plot`.

        Examples
        --------
        >>> import mixedgm as mg
        >>> columns = {"x": "continuous", "y": "continuous"}
        >>> mg.from_params(columns, {"precision": [[2, 1], [1, 2]]}).view()
        LiveGraph(2 columns, 1 edge)
        """
        from mixedgm.base.parameters import ensure, is_integer
        from mixedgm.report.document import LiveGraph
        from mixedgm.report.material import Studies, gather

        ensure(is_integer(height, 100), "height", "an integer of at least 100", height)
        self._check_groups(groups)
        settings = self.get_params(deep=False)
        material = gather(self._model, settings, data, studies=Studies(check=False))
        return LiveGraph(replace(material, groups=groups), int(height))

    def _check_groups(self, groups: Mapping[Any, Any] | None) -> None:
        """Raise ParameterError where groups name other columns, or are too many."""
        from mixedgm.pictures.network.appearance import Appearance

        Appearance(groups=groups).group_colours(self._model.schema)


def _name_of(data: object) -> str:
    """Return the name of the file that the rows come from, where that is known."""
    return os.path.basename(os.fspath(data)) if isinstance(data, str | os.PathLike) else ""
