"""Graphs of groups and shuffled statistics -> GroupComparison: tables, tests, pictures, text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.checkpoint import Record
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.path.recipe import Lam
from mixedgm.printable import quoted
from mixedgm.studies.bootstrap_replicates import (
    Failure,
    Replicates,
    edge_names,
    failure_lines,
    sign_names,
)
from mixedgm.studies.discrepancy import holm
from mixedgm.table.assemble import Columns, frame
from mixedgm.views.canvas import known_options

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GroupComparison", "p_values"]

_SHOWN = 12
TESTS = ("largest edge difference", "strength difference", "variance among groups", "Hamming")
"""Statistics of whole graphs, in the order in which they are kept."""


def p_values(observed: Floats, permuted: Floats) -> Floats:
    """Share of the permutations, the observed one among them, that are at least as large.

    Examples
    --------
    >>> p_values(np.array([2.0]), np.array([[1.0], [2.0], [3.0]])).tolist()
    [0.75]
    """
    if len(permuted) == 0:
        return np.full(observed.shape, np.nan)
    return np.asarray((1.0 + (permuted >= observed).sum(axis=0)) / (1.0 + len(permuted)))


def differences(every: Replicates) -> Floats:
    """(pairs of groups, U): length of the difference of each edge's standardised parameters.

    For an edge that has a sign this is the difference of the signed weights; for others a change
    of direction counts as well as one of length.
    """
    values, start = every.standardised, every.starts[:-1]
    couples = list(combinations(range(len(values)), 2))
    if len(start) == 0:
        return np.zeros((len(couples), 0))
    squares = np.array([(values[a] - values[b]) ** 2 for a, b in couples])
    return np.asarray(np.sqrt(np.add.reduceat(squares, start, axis=1)))


@dataclass(frozen=True, eq=False, repr=False)
class GroupComparison:
    """Graphs of groups side by side; `mixedgm.compare` makes it.

    Tables are frames of the table's library.

    Attributes
    ----------
    groups : tuple
        The labels, sorted.
    models : dict
        One fitted MixedGraphicalModel per label.
    penalty : {"common", "own"}
    n_perm : int
        Permutations asked for.
    n_done, n_failed, n_unconverged : int
        Permutations fitted, failed, and fitted but short of tol (they count as fitted).
    failures : tuple of Failure
        Number and message of every failed permutation.
    alpha : float
        Level of `significant`.
    n_pairs : int
        Pairs of columns that may have an edge: the family of the tests of single edges.
    observed : dict of str to ndarray
        `edges` (pairs,), `tests` (4,), `constant` and `lacking` (nodes,), `converged`.
    permutations : dict of str to ndarray
        The same with one row per permutation.
    estimates : Replicates
        One row per group: `weights`, `signed`, `ends`, `values`, `scales`.
    """

    groups: tuple[Any, ...]
    fitted: tuple[FittedModel, ...]
    models: Mapping[Any, Any]
    penalty: str
    n_perm: int
    alpha: float
    n_pairs: int
    estimates: Replicates
    observed: Record
    permutations: Record
    failures: tuple[Failure, ...] = ()

    @property
    def n_done(self) -> int:
        """Permutations that were fitted."""
        return len(self.permutations["tests"])

    @property
    def n_failed(self) -> int:
        """Permutations in which a group could not be fitted."""
        return len(self.failures)

    @property
    def n_unconverged(self) -> int:
        """Permutations in which the KKT number of some group is above tol."""
        return int((~self.permutations["converged"]).sum())

    @property
    def n_degenerate(self) -> int:
        """Permutations in which a column is constant, or lacks a level, in some group."""
        odd = self.permutations["constant"] + self.permutations["lacking"]
        return int((odd > 0).any(axis=1).sum())

    @property
    def lam(self) -> dict[Any, Lam]:
        """The penalty of every group; a tuple where every column has its own."""
        return {g: fitted.report.lam for g, fitted in zip(self.groups, self.fitted, strict=True)}

    # -- tables ------------------------------------------------------------------------------------

    def edges(self) -> Any:
        """Edges of any group, the most different first.

        Columns: source, target, kind; weight_<group> and sign_<group> for every group, as in its
        own `edges()` (weight 0 where it has no such edge); present_in, the groups that have the
        edge; difference, the largest between two groups, and between, which two; p_value of that
        difference; p_holm and p_max, adjusted for all pairs of columns; significant, by p_max.
        """
        return self._frame(self._edges)

    def tests(self) -> Any:
        """Tests of whole graphs: columns statistic, value, p_value.

        The largest edge difference between two groups; the difference of global strengths (sums of
        edge weights), the largest between two groups; the variance among groups, summed over all
        standardised parameters of edges; the Hamming distance, the number of pairs of columns that
        have an edge in some groups and none in others.
        """
        return self._frame(self._tests("statistic"))

    def group_table(self) -> Any:
        """One row per group: group, n_rows, lam, n_edges, strength, kkt, converged.

        `lam` is missing where every column has its own; they are in `lam` of the comparison.
        """
        return self._frame(self._groups)

    def degenerate(self) -> Any:
        """Columns that are constant, or lack one of the table's levels, in some group.

        Columns: column; constant_in and lacks_levels_in, the groups where that is so (missing where
        there are none); constant and lacking, the number of permutations in which it is so in some
        group.
        """
        return self._frame(self._degenerate)

    def _frame(self, columns: Columns) -> Any:
        return frame(columns, self.fitted[0].library)

    def _tests(self, heading: str) -> Columns:
        observed = self.observed["tests"]
        p = p_values(observed, self.permutations["tests"])
        return {heading: TESTS, "value": observed, "p_value": p}

    @cached_property
    def _edges(self) -> Columns:
        every, schema = self.estimates, self.fitted[0].schema
        apart = differences(every)
        p, p_holm, p_max = self._edge_p_values
        order = np.lexsort((-every.weights.max(axis=0, initial=0.0), -self.observed["edges"]))
        couples = [f"{a} - {b}" for a, b in combinations(self._names, 2)]
        columns: dict[str, Any] = {**edge_names(schema, every.ends[order])}
        sign = np.where(every.has_sign, np.sign(every.signed), 0.0)[:, order]
        weights = every.weights[:, order]
        for row, name in enumerate(self._names):
            columns[f"weight_{name}"] = weights[row]
            columns[f"sign_{name}"] = sign_names(sign[row])
        return {
            **columns,
            "present_in": [", ".join(compress(self._names, column)) for column in weights.T > 0.0],
            "difference": self.observed["edges"][order],
            "between": [couples[k] for k in apart[:, order].argmax(axis=0)],
            "p_value": p[order],
            "p_holm": p_holm[order],
            "p_max": p_max[order],
            "significant": p_max[order] <= self.alpha,
        }

    @cached_property
    def _edge_p_values(self) -> tuple[Floats, Floats, Floats]:
        """Single; adjusted by Holm; by the permutations' largest difference among all pairs.

        Pairs without an edge in any group do not differ: their p-value is 1, and they count.
        """
        here = self.observed["edges"]
        p = p_values(here, self.permutations["edges"])
        others = np.ones(max(self.n_pairs - len(p), 0))
        adjusted = holm(np.concatenate([p, others]))[: len(p)]
        return p, adjusted, p_values(here, self.permutations["tests"][:, :1])

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(str(label) for label in self.groups)

    @cached_property
    def _groups(self) -> Columns:
        reports = [fitted.report for fitted in self.fitted]
        return {
            "group": list(self._names),
            "n_rows": np.array([report.n_rows for report in reports], dtype=np.int64),
            "lam": np.array([np.nan if isinstance(r.lam, tuple) else r.lam for r in reports]),
            "n_edges": np.array([len(fitted.edges) for fitted in self.fitted], dtype=np.int64),
            "strength": self.estimates.weights.sum(axis=1),
            "kkt": np.array([report.kkt for report in reports]),
            "converged": np.array([report.converged for report in reports]),
        }

    @cached_property
    def _degenerate(self) -> Columns:
        nodes = self.fitted[0].schema.nodes
        odd = {name: (self.permutations[name] > 0).sum(axis=0) for name in ("constant", "lacking")}
        here = self.observed["constant"] + self.observed["lacking"]
        concerned = np.flatnonzero(odd["constant"] + odd["lacking"] + here)
        every = self.estimates
        constant = every.constant(np.ones_like(every.scales)) & (self.observed["constant"] > 0)
        # Only of levels that some group has, and so the whole table.
        lacking = every.lacking(np.any(~every.lost_levels, axis=0, keepdims=True))

        def where(holds: NDArray[np.bool_]) -> list[str | None]:
            named = (compress(self._names, holds[:, k]) for k in concerned)
            return [", ".join(names) or None for names in named]

        return {
            "column": [nodes[k].name for k in concerned],
            "constant_in": where(constant),
            "lacks_levels_in": where(lacking),
            "constant": odd["constant"][concerned],
            "lacking": odd["lacking"][concerned],
        }

    # -- pictures ----------------------------------------------------------------------------------

    def plot(self, *, layout: Any = "spring", **options: Any) -> Any:
        """Draw one network per group: nodes in the same places, widths on the same scale.

        Parameters
        ----------
        layout : str, positions or earlier drawing
            As for a model's `plot`; computed from the edges of all groups.
        **options
            As for a model's `plot`, but for `ax`, `predictability` and `legend`.  `maximum` is by
            default found from the edges of all groups.  More than 100 columns with names are
            refused: choose some with `columns`.

        Returns
        -------
        dict
            A drawing with `ax` and `positions` for every group.
        """
        from mixedgm.views.plot_groups import plot_groups

        drawn = plot_groups(self.fitted, self._names, layout=layout, **options)
        return dict(zip(self.groups, drawn, strict=True))

    @known_options
    def plot_differences(self, *, max_edges: int | None = 40, ax: Axes | None = None) -> Axes:
        """Draw the weight of every edge in every group, the most different on top."""
        from mixedgm.views.plot_groups import plot_differences

        return plot_differences(self._edges, self._names, max_edges=max_edges, ax=ax)

    # -- text --------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<GroupComparison: {len(self.groups)} groups, {self._counts()}>"

    def _counts(self) -> str:
        done = str(self.n_done) if self.n_done == self.n_perm else f"{self.n_done} of {self.n_perm}"
        failed = f", {self.n_failed} failed" if self.failures else ""
        return f"{done} permutations, {self.penalty} penalty{failed}"

    def summary(self) -> str:
        """What was done, what went wrong, and the main numbers, as text."""
        from mixedgm.views.text import table_text

        lines = [f"Comparison of {len(self.groups)} groups: {self._counts()}", *self._troubles()]
        names = ("group", "n_rows", "lam", "n_edges", "strength")
        lines += ["", table_text({name: self._groups[name] for name in names}, 80)]
        lines += ["", table_text(self._tests("whole graphs"), 80)]
        n_edges = len(self._edges["source"])
        shown = f", {_SHOWN} of {n_edges}" if n_edges > _SHOWN else ""
        lines += ["", f"Edges, the most different first{shown}"]
        wanted = ["source", "target", *(f"weight_{name}" for name in self._names[:3])]
        wanted += ["difference", "p_value", "p_max"]
        top: dict[str, Any] = {name: self._edges[name][:_SHOWN] for name in wanted}
        for name in wanted[2:]:
            top[name] = [f"{value:.3f}" for value in top[name]]
        lines.append(table_text(top, 100) if n_edges else "none in any group")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def _troubles(self) -> list[str]:
        lines = []
        if self.n_unconverged:
            lines.append(f"  {self.n_unconverged} did not reach tol; they are counted as fitted")
        odd = self._degenerate
        for name, constant, lacks, often, lacking in zip(*odd.values(), strict=True):
            parts = [f"constant in group {constant}"] * bool(constant)
            parts += [f"without one of its levels in group {lacks}"] * bool(lacks)
            parts += [f"constant in {often} permutations"] * bool(often)
            parts += [f"without one of its levels in {lacking} permutations"] * bool(lacking)
            lines.append(f"  column {quoted(name)}: {', '.join(parts)}")
        return [*lines, *failure_lines(self.failures)]
