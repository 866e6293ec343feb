"""Graphs of groups and tests of them -> GroupComparison: tables, pictures, text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from mixedgm.checkpoint import Record
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.path.recipe import Lam
from mixedgm.printable import few, one_line, quoted
from mixedgm.studies.bootstrap_replicates import (
    Failure,
    Replicates,
    edge_names,
    failure_lines,
    sign_names,
)
from mixedgm.studies.discrepancy import holm
from mixedgm.studies.group_differences import DifferenceTests
from mixedgm.table.assemble import Columns, frame
from mixedgm.views.canvas import known_options

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GroupComparison", "p_values"]

_SHOWN = 12
_WIDTH = 80
_NOTABLE = 0.9
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
    test : {"differences", "permutation"}
        How groups were compared.
    reason : str
        Why in this way.
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
        `edges` (pairs,), `tests` (4,), `constant` and `lacking` (nodes,), `converged`, of the
        groups as permutations compare them.
    permutations : dict of str to ndarray
        The same with one row per permutation.
    estimates : Replicates
        The models, one row per group: `weights`, `signed`, `ends`, `values`, `scales`.
    compared : Replicates
        The same of what permutations compare: groups with equal means, variances and shares.
    effective_rows : ndarray
        How many rows count in every group, once these are equal.
    """

    groups: tuple[Any, ...]
    fitted: tuple[FittedModel, ...]
    models: Mapping[Any, Any]
    test: str
    reason: str
    penalty: str
    n_perm: int
    alpha: float
    n_pairs: int
    estimates: Replicates
    compared: Replicates
    effective_rows: Floats
    observed: Record
    permutations: Record
    tested: DifferenceTests | None = None
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
        """Pairs of columns, the most different first.

        All that may have an edge, where differences are tested; else those that have one in some
        group.  Columns: source, target, kind; weight_<group> and sign_<group> for every group, as
        in its own `edges()` (weight 0 where it has no such edge); present_in, the groups that have
        the edge; estimate_<group>, what is compared, with its sign where it has one, and
        se_<group>, its standard error (of differences only, and of pairs with one parameter);
        difference, the largest between two groups, and between, which two; statistic and df (of
        differences only); p; p_holm, p_bh and p_max, adjusted for all pairs of columns, by
        Holm, by Benjamini and Hochberg, and by the largest difference; significant, by p_max.
        """
        return self._frame(self._edges)

    def tests(self) -> Any:
        """Tests of whole graphs: columns statistic, value, p.

        By permutation: the largest edge difference between two groups; the difference of global
        strengths (sums of edge weights), the largest between two groups; the variance among groups,
        summed over all standardised parameters of edges; the Hamming distance, the number of pairs
        of columns that have an edge in some groups and none in others.

        Of differences: the same but for the Hamming distance; the largest edge difference in
        standard errors (the normal number that has its p-value), strengths without shrinkage, and
        the variance among groups in units of what chance gives.
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
        if self.tested is not None:
            value, p = self.tested.tests.T
            return {heading: TESTS[: len(value)], "value": value, "p": p}
        observed = self.observed["tests"]
        p = p_values(observed, self.permutations["tests"])
        return {heading: TESTS, "value": observed, "p": p}

    @cached_property
    def _edges(self) -> Columns:
        every, names, tested = self.estimates, self._names, self.tested
        apart = differences(self.compared) if tested is None else tested.apart
        values = self.compared.signed if tested is None else tested.estimates
        p = self._edge_p_values
        couples = [f"{a} - {b}" for a, b in combinations(names, 2)]
        columns: dict[str, Any] = {**edge_names(self.fitted[0].schema, every.ends)}
        for row, name in enumerate(names):
            columns[f"weight_{name}"] = every.weights[row]
            columns[f"sign_{name}"] = sign_names(every.sign[row])
        present = every.weights.T > 0.0
        columns["present_in"] = [", ".join(compress(names, pair)) for pair in present]
        columns |= {f"estimate_{name}": each for name, each in zip(names, values, strict=True)}
        if tested is not None:
            columns |= {f"se_{name}": each for name, each in zip(names, tested.se, strict=True)}
        largest = apart.max(axis=0, initial=0.0)
        columns["difference"] = largest
        columns["between"] = [couples[k] for k in apart.argmax(axis=0)]
        if tested is not None:
            columns |= {"statistic": tested.statistic, "df": tested.df}
        columns |= {**p, "significant": p["p_max"] <= self.alpha}
        ties = -every.weights.max(axis=0, initial=0.0)
        order = np.lexsort((ties, -largest) if tested is None else (-largest, tested.log_p))
        return {
            name: each[order] if isinstance(each, np.ndarray) else [each[k] for k in order]
            for name, each in columns.items()
        }

    @cached_property
    def _edge_p_values(self) -> dict[str, Floats]:
        """Single ones, and those that are adjusted for all pairs.

        Pairs without an edge in any group do not differ in permutations: their p-value is 1, and
        they count.
        """
        if self.tested is not None:
            p, p_max = self.tested.p, self.tested.p_max
        else:
            here = self.observed["edges"]
            p = p_values(here, self.permutations["edges"])
            p_max = p_values(here, self.permutations["tests"][:, :1])
        known, others = ~np.isnan(p), np.ones(max(self.n_pairs - len(p), 0))
        p_holm, p_bh = np.full((2, len(p)), np.nan)
        if known.any():
            family = np.concatenate([p[known], others])
            p_holm[known] = holm(family)[: known.sum()]
            p_bh[known] = false_discovery_control(family)[: known.sum()]
        return {"p": p, "p_holm": p_holm, "p_bh": p_bh, "p_max": p_max}

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
        """Draw what is compared of every pair in every group, the most different on top."""
        from mixedgm.views.plot_groups import plot_differences

        return plot_differences(self._edges, self._names, max_edges=max_edges, ax=ax)

    # -- text --------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<GroupComparison: {len(self.groups)} groups, {self._counts()}>"

    def _counts(self) -> str:
        if self.tested is not None:
            return f"tests of differences, {self.penalty} penalty"
        done = str(self.n_done) if self.n_done == self.n_perm else f"{self.n_done} of {self.n_perm}"
        failed = f", {self.n_failed} failed" if self.failures else ""
        return f"{done} permutations, {self.penalty} penalty{failed}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Which test was made, why, and what it compares, in words."""
        if self.tested is None:
            lines = [
                f"tested by permutation of rows, because {self.reason}",
                "numbers are moved and rows weighted first, so that all groups have the same "
                "means, variances and shares: that changes no edge",
            ]
            rows = [fitted.report.total_weight for fitted in self.fitted]
            for name, n, counts in zip(self._names, rows, self.effective_rows, strict=True):
                if counts < _NOTABLE * n:
                    lines.append(
                        f"group {quoted(name)} is unlike the others: its {n:,.6g} rows count as "
                        f"{counts:,.0f} with these weights"
                    )
            return tuple(lines)
        graph = f"given {len(self.tested.graph)} edges that pass a test in some group"
        beside = "given all other pairs" if self.tested.free else graph
        lines = [
            f"tested by differences, because {self.reason}",
            f"each pair is estimated without shrinkage in every group, {beside}, in units of the "
            "whole table; groups may have other means, variances and shares",
        ]
        if len(self.tested.ridge):
            named = edge_names(self.fitted[0].schema, self.tested.ends[self.tested.ridge])
            pairs = [f"{a} - {b}" for a, b in zip(named["source"], named["target"], strict=True)]
            lines.append(
                f"not tested, because some of their cells have too few rows in a group: "
                f"{few(pairs, show=one_line)}; join levels, or use test='permutation'"
            )
        return tuple(lines)

    def summary(self) -> str:
        """What was done and why, what went wrong, and the main numbers, as text."""
        from mixedgm.views.text import table_text

        lines = [f"Comparison of {len(self.groups)} groups: {self._counts()}"]
        fill = textwrap.TextWrapper(_WIDTH, initial_indent="  ", subsequent_indent="    ").fill
        lines += [fill(note) for note in self.notes]
        lines += self._troubles()
        names = ("group", "n_rows", "lam", "n_edges", "strength")
        lines += ["", table_text({name: self._groups[name] for name in names}, _WIDTH)]
        lines += ["", table_text(self._tests("whole graphs"), _WIDTH)]
        n_edges = len(self._edges["source"])
        shown = f", {_SHOWN} of {n_edges}" if n_edges > _SHOWN else ""
        what = "Edges" if self.tested is None else "Pairs"
        lines += ["", f"{what}, the most different first{shown}"]
        wanted = ["source", "target", *(f"estimate_{name}" for name in self._names[:3])]
        wanted += ["difference", "p", "p_max"]
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
            parts = []
            if constant:
                parts.append(f"constant in group {one_line(constant)}")
            if lacks:
                parts.append(f"without one of its levels in group {one_line(lacks)}")
            if often:
                parts.append(f"constant in {often} permutations")
            if lacking:
                parts.append(f"without one of its levels in {lacking} permutations")
            lines.append(f"  column {quoted(name)}: {', '.join(parts)}")
        return [*lines, *failure_lines(self.failures)]
