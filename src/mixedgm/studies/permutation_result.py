"""Graphs of groups and of shuffled groups -> PermutationComparison: tables and text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, compress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mixedgm.checkpoint import Record
from mixedgm.model.layout import Floats
from mixedgm.printable import one_line, quoted
from mixedgm.studies.bootstrap_replicates import (
    Failure,
    Replicates,
    edge_names,
    failure_lines,
    sign_names,
)
from mixedgm.studies.compare_result import GroupComparison, adjusted, couples_of
from mixedgm.table.assemble import Columns, frame

__all__ = ["PermutationComparison", "differences", "p_values"]

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

    For an edge that has a sign this is the difference of the signed norms; for others a change
    of direction counts as well as one of length.
    """
    values, start = every.standardised, every.starts[:-1]
    couples = list(combinations(range(len(values)), 2))
    if len(start) == 0:
        return np.zeros((len(couples), 0))
    squares = np.array([(values[a] - values[b]) ** 2 for a, b in couples])
    return np.asarray(np.sqrt(np.add.reduceat(squares, start, axis=1)))


@dataclass(frozen=True, eq=False, repr=False)
class PermutationComparison(GroupComparison):
    """A comparison by permutation.

    Attributes
    ----------
    penalty : {"common", "own"}
    n_perm : int
        Permutations asked for.
    n_done, n_failed, n_unconverged : int
        Permutations fitted, failed, and fitted but short of tol (they count as fitted).
    failures : tuple of Failure
        Number and message of every failed permutation.
    n_pairs : int
        Pairs of columns that may have an edge: the family of the tests of single edges.
    observed : dict of str to ndarray
        `edges` (pairs,), `tests` (4,), `constant` and `lacking` (nodes,), `converged`, of the
        groups as permutations compare them.
    permutations : dict of str to ndarray
        The same with one row per permutation.
    estimates : Replicates
        The models, one row per group: `norms`, `signed`, `ends`, `values`, `scales`.
    compared : Replicates
        What permutations compare: groups with equal means, variances and shares.
    effective_rows : ndarray
        How many rows count in every group, once these are equal.
    """

    penalty: str
    n_perm: int
    n_pairs: int
    estimates: Replicates
    compared: Replicates
    effective_rows: Floats
    observed: Record
    permutations: Record
    failures: tuple[Failure, ...] = ()

    test: ClassVar[str] = "permutation"
    tables: ClassVar[tuple[str, ...]] = ("edges", "tests", "degenerate")

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

    # -- tables ------------------------------------------------------------------------------------

    def edges(self) -> Any:
        """Pairs of columns that have an edge in some group, the most different first.

        Columns: source, target, kind; strength_<group>, norm_<group> and sign_<group> for every
        group, as in its own `edges()` (0 where it has no such edge); present_in, the groups that
        have the edge; estimate_<group>, the norm that is compared, with its sign where it has one;
        difference, the largest between two groups, and between, which two; p; p_holm, p_bh and
        p_max, adjusted for all pairs of columns, by Holm, by Benjamini and Hochberg, and by the
        largest difference; differs, by p_max.
        """
        return super().edges()

    def tests(self) -> Any:
        """Tests of whole graphs: columns statistic, value, p.

        The largest edge difference between two groups; the difference of global strengths (sums of
        norms of edges), the largest between two groups; the variance among groups, summed over all
        standardised parameters of edges; the Hamming distance, the number of pairs of columns that
        have an edge in some groups and none in others.
        """
        return super().tests()

    def degenerate(self) -> Any:
        """Columns that are constant, or lack one of the table's levels, in some group.

        Columns: column; constant_in and lacks_levels_in, the groups where that is so (missing where
        there are none); constant and lacking, the number of permutations in which it is so in some
        group.
        """
        return frame(self._degenerate, self._library)

    def _tests(self, heading: str) -> Columns:
        observed = self.observed["tests"]
        p = p_values(observed, self.permutations["tests"])
        return {heading: TESTS, "value": observed, "p": p}

    @cached_property
    def _edges(self) -> Columns:
        every, names = self.estimates, self._names
        apart = differences(self.compared)
        columns: dict[str, Any] = {**edge_names(self.fitted[0].schema, every.ends)}
        for row, (name, fitted) in enumerate(zip(names, self.fitted, strict=True)):
            strength = {(edge.source, edge.target): edge.strength for edge in fitted.edges}
            pairs = zip(columns["source"], columns["target"], strict=True)
            columns[f"strength_{name}"] = np.array([strength.get(pair, 0.0) for pair in pairs])
            columns[f"norm_{name}"] = every.norms[row]
            columns[f"sign_{name}"] = sign_names(every.sign[row])
        present = every.norms.T > 0.0
        columns["present_in"] = [", ".join(compress(names, pair)) for pair in present]
        values = zip(names, self.compared.signed, strict=True)
        columns |= {f"estimate_{name}": each for name, each in values}
        largest = apart.max(axis=0, initial=0.0)
        couples = couples_of(names)
        columns["difference"] = largest
        columns["between"] = [couples[k] for k in apart.argmax(axis=0)]
        # Pairs without an edge in any group do not differ in permutations: p = 1, and they count.
        here = self.observed["edges"]
        p = p_values(here, self.permutations["edges"])
        p_max = p_values(here, self.permutations["tests"][:, :1])
        columns |= {"p": p, **adjusted(p, max(self.n_pairs - len(p), 0)), "p_max": p_max}
        columns["differs"] = p_max <= self.alpha
        order = np.lexsort((-every.norms.max(axis=0, initial=0.0), -largest))
        return {
            name: each[order] if isinstance(each, np.ndarray) else [each[k] for k in order]
            for name, each in columns.items()
        }

    @property
    def _graphs(self) -> tuple[list[int], list[float]]:
        of_edges = [[edge.strength for edge in fitted.edges] for fitted in self.fitted]
        return list(map(len, of_edges)), list(map(sum, of_edges))

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

    # -- text --------------------------------------------------------------------------------------

    @property
    def method(self) -> str:
        """How groups were compared, in words."""
        return f"{self.n_done} permutation{'s' * (self.n_done != 1)}"

    @property
    def _counts(self) -> str:
        done = str(self.n_done) if self.n_done == self.n_perm else f"{self.n_done} of {self.n_perm}"
        failed = f", {self.n_failed} failed" if self.failures else ""
        return f"{done} permutations, {self.penalty} penalty{failed}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Why rows were permuted, and what is compared, in words."""
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

    @property
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
