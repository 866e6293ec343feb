"""Tests or shuffles of groups -> GroupComparison: tables, text and pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, compress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.checkpoint import Record
from mixedgm.base.printable import few, one_line, quoted
from mixedgm.fit.fitted import FittedModel
from mixedgm.inference.statistics import adjusted
from mixedgm.inference.two_groups import balanced_limit
from mixedgm.model.layout import Floats
from mixedgm.path.recipe import Lam
from mixedgm.pictures.canvas import known_options
from mixedgm.studies.groups.differences import DIFFERENCE_TESTS, DifferenceTests
from mixedgm.studies.resampling.replicates import (
    Failure,
    Replicates,
    edge_names,
    failure_lines,
    sign_names,
)
from mixedgm.table.read import Columns, frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_BY_GROUP = ("strength", "lower", "upper", "estimate", "se")
_SHOWN = 12
_NAMED = 3
_WIDTH = 80
_WIDEST = 110


def couples_of(names: Sequence[str]) -> list[str]:
    """All pairs of groups, as text.

    Examples
    --------
    >>> couples_of(["a", "b", "c"])
    ['a - b', 'a - c', 'b - c']
    """
    return [f"{a} - {b}" for a, b in combinations(names, 2)]


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
    dependence : str
        How rows depend on each other, by `paired` or `cluster`; empty where they do not.
    alpha : float
        Level of the tests.
    """

    groups: tuple[Any, ...]
    fitted: tuple[FittedModel, ...]
    models: Mapping[Any, Any]
    reason: str
    dependence: str
    alpha: float

    test: ClassVar[str]
    tables: ClassVar[tuple[str, ...]]

    @property
    def lam(self) -> dict[Any, Lam]:
        """The penalty of every group; a tuple where every column has its own."""
        return {g: fitted.report.lam for g, fitted in zip(self.groups, self.fitted, strict=True)}

    # -- tables ------------------------------------------------------------------------------------

    def edges(self) -> Any:
        """Pairs of columns, the most different first."""
        return frame(self._edges, self._library)

    def tests(self) -> Any:
        """Tests of whole graphs: columns statistic, value, p."""
        return frame(self._tests("statistic"), self._library)

    def group_table(self) -> Any:
        """One row per group: group, n_rows, lam, n_edges, strength, kkt, converged.

        `lam` is missing where every column has its own; they are in `lam` of the comparison.
        """
        return frame(self._groups, self._library)

    @property
    def _library(self) -> str:
        return self.fitted[0].library

    @property
    def _edges(self) -> Columns:
        raise NotImplementedError

    def _tests(self, heading: str) -> Columns:
        raise NotImplementedError

    @property
    def _graphs(self) -> tuple[list[int], list[float]]:
        """Number of edges, and the sum of their strengths, in every group."""
        raise NotImplementedError

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(str(label) for label in self.groups)

    @cached_property
    def _groups(self) -> Columns:
        reports = [fitted.report for fitted in self.fitted]
        n_edges, strength = self._graphs
        return {
            "group": list(self._names),
            "n_rows": np.array([report.n_rows for report in reports], dtype=np.int64),
            "lam": np.array([np.nan if isinstance(r.lam, tuple) else r.lam for r in reports]),
            "n_edges": np.array(n_edges, dtype=np.int64),
            "strength": np.array(strength, dtype=np.float64),
            "kkt": np.array([report.kkt for report in reports]),
            "converged": np.array([report.converged for report in reports]),
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
        from mixedgm.pictures.network.groups import plot_groups

        drawn = plot_groups(self.fitted, self._names, layout=layout, **options)
        return dict(zip(self.groups, drawn, strict=True))

    @known_options
    def plot_differences(self, *, max_edges: int | None = 40, ax: Axes | None = None) -> Axes:
        """Draw the strength of every pair in every group, the most different pairs on top."""
        from mixedgm.pictures.network.groups import plot_differences

        return plot_differences(self._edges, self._names, max_edges=max_edges, ax=ax)

    # -- text --------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<GroupComparison: {len(self.groups)} groups, {self._counts}>"

    @property
    def method(self) -> str:
        """How groups were compared, in words."""
        raise NotImplementedError

    @property
    def _counts(self) -> str:
        return self.method

    @property
    def p(self) -> float:
        """The p-value of the test that the graphs differ at all."""
        return float(self._tests("")["p"][0])

    @property
    def sentence(self) -> str:
        """What was found: whether the graphs differ, how many pairs do, and which most."""
        columns = self._edges
        differ = np.flatnonzero(columns["differs"])
        most = [
            f"{columns['source'][k]} - {columns['target'][k]}" for k in differ[:_NAMED].tolist()
        ]
        named = "; most: " + few(most, show=one_line) if most else ""
        pairs = f"{len(differ)} pair{'s' * (len(differ) != 1)}{self._false}{named}"
        if np.isnan(self.p):
            return "The graphs were not tested."
        if self.p <= self.alpha:
            return f"The graphs differ (p = {self.p:.2g}): {pairs}."
        found = f", but single pairs may: {pairs}" if most else ""
        return f"There is no evidence that the graphs differ (p = {self.p:.2g}){found}."

    @property
    def _false(self) -> str:
        """How many of the pairs that differ are expected not to, in words."""
        return ""

    @property
    def notes(self) -> tuple[str, ...]:
        """Which test was made, why, and what it compares, in words."""
        raise NotImplementedError

    @property
    def _troubles(self) -> list[str]:
        return []

    def summary(self) -> str:
        """What was found, what was done and why, what went wrong, and the main numbers."""
        from mixedgm.results.text import table_text

        fill = textwrap.TextWrapper(_WIDTH, initial_indent="  ", subsequent_indent="    ").fill
        lines = [textwrap.fill(self.sentence, _WIDTH), ""]
        lines += [f"Comparison of {len(self.groups)} groups: {self._counts}"]
        lines += [*map(fill, self.notes), *self._troubles]
        names = ("group", "n_rows", "lam", "n_edges", "strength")
        lines += ["", table_text({name: self._groups[name] for name in names}, _WIDTH)]
        lines += ["", table_text(self._tests("whole graphs"), _WIDTH)]
        n_edges = len(self._edges["source"])
        shown = f", {_SHOWN} of {n_edges}" if n_edges > _SHOWN else ""
        lines += ["", f"Pairs, the most different first{shown}"]
        wanted = ["source", "target", *(f"strength_{name}" for name in self._names[:3])]
        wanted += ["difference", "p", "p_max", "probability_differs"]
        top = {name: self._edges[name][:_SHOWN] for name in wanted if name in self._edges}
        for name in list(top)[2:]:
            top[name] = [f"{value:.3f}" for value in top[name]]
        top["differs"] = ["yes" if each else "" for each in self._edges["differs"][:_SHOWN]]
        lines.append(table_text(top, _WIDEST) if n_edges else "none in any group")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


@dataclass(frozen=True, eq=False, repr=False)
class DifferenceComparison(GroupComparison):
    """A comparison by tests of differences.

    Attributes
    ----------
    tested : DifferenceTests
        Estimates and tests of all pairs.
    given_limit : float or None
        The limit that was asked for.
    limit : float
        A pair differs if the probability that it is the same is at most this.
    """

    tested: DifferenceTests
    given_limit: float | None

    test: ClassVar[str] = "differences"
    tables: ClassVar[tuple[str, ...]] = ("edges", "tests", "untested")

    def edges(self) -> Any:
        """All pairs of columns that may have an edge, the most different first.

        Columns: source, target, kind; for every group strength_<group>, with lower_ and
        upper_<group>, the ends of its interval at level 1 - `alpha`; for pairs with one parameter
        estimate_<group> and se_<group>: the partial correlation of two numbers, else the
        coefficient, with numbers in residual standard deviations.  present_in: groups in whose
        graph the edge was found.  difference: the length of the difference of parameters, the
        largest between two groups, and between, which two; statistic and df; p; p_holm, p_bh and
        p_max, adjusted for all pairs by Holm, by Benjamini and Hochberg, and by the largest
        difference; probability_differs; differs, the verdict.
        """
        return super().edges()

    def tests(self) -> Any:
        """Tests of whole graphs: columns statistic, value, p.

        Any difference: the smaller p-value of the largest edge difference and the variance among
        groups, and the p-value of that.  The largest edge difference in standard errors (the normal
        number that has its p-value); the largest difference of strengths (sums of sizes of edges)
        between two groups; the variance among groups in units of what chance gives.
        """
        return super().tests()

    def untested(self) -> Any:
        """Pairs that could not be tested: columns source, target, reason.

        A column lacks a level in some group, or cells have next to no rows there.
        """
        return frame(self._untested, self._library)

    @cached_property
    def _untested(self) -> Columns:
        tested, nodes = self.tested, self.fitted[0].schema.nodes
        lacking = tested.lacking[:, tested.ends]
        pairs = np.flatnonzero((lacking.any(axis=2) | tested.ridge).any(axis=0))
        named = edge_names(self.fitted[0].schema, tested.ends[pairs])

        def groups(where: Any) -> str:
            return ", ".join(compress(self._names, where))

        why = []
        for pair in pairs.tolist():
            reasons = [
                f"{nodes[node].name} lacks a level in {groups(where)}"
                for node, where in zip(tested.ends[pair], lacking[:, pair].T, strict=True)
                if where.any()
            ]
            few = f"some cells have too few rows in {groups(tested.ridge[:, pair])}"
            why.append("; ".join(reasons) or few)
        return {"source": named["source"], "target": named["target"], "reason": why}

    @cached_property
    def limit(self) -> float:
        """The limit that was given, or with which verdicts are expected to be best."""
        if self.given_limit is not None:
            return float(self.given_limit)
        return balanced_limit(self.tested.same[~np.isnan(self.tested.same)])

    @cached_property
    def differs(self) -> Any:
        """(pairs,) verdicts, in the order of `tested`."""
        return np.nan_to_num(self.tested.same, nan=1.0) <= self.limit

    @property
    def expected_false(self) -> float:
        """How many of the pairs that differ are expected to be the same."""
        return float(self.tested.same[self.differs].sum())

    @property
    def n_pairs(self) -> int:
        """Pairs of columns that may have an edge."""
        return len(self.tested.ends)

    def _tests(self, heading: str) -> Columns:
        value, p = self.tested.tests.T
        return {heading: DIFFERENCE_TESTS, "value": value, "p": p}

    @cached_property
    def _edges(self) -> Columns:
        tested, names = self.tested, self._names
        columns: dict[str, Any] = {**edge_names(self.fitted[0].schema, tested.ends)}
        every = (*tested.strengths, tested.estimates, tested.se)
        for what, values in zip(_BY_GROUP, every, strict=True):
            columns |= {f"{what}_{name}": each for name, each in zip(names, values, strict=True)}
        columns["present_in"] = [", ".join(compress(names, pair)) for pair in tested.graphs.T]
        columns["difference"] = tested.apart.max(axis=0, initial=0.0)
        couples, known = couples_of(names), ~np.isnan(columns["difference"])
        most = zip(known, tested.apart.argmax(axis=0), strict=True)
        columns["between"] = [couples[k] if here else None for here, k in most]
        columns |= {"statistic": tested.statistic, "df": tested.df, "p": tested.p}
        columns |= {**adjusted(tested.p), "p_max": tested.p_max}
        columns |= {"probability_differs": 1.0 - tested.same, "differs": self.differs}
        order = np.lexsort((-columns["difference"], tested.log_p, tested.same))
        return {
            name: each[order] if isinstance(each, np.ndarray) else [each[k] for k in order]
            for name, each in columns.items()
        }

    @property
    def _graphs(self) -> tuple[list[int], list[float]]:
        there = self.tested.graphs
        strength = (self.tested.strengths[0] * there).sum(axis=1)
        return there.sum(axis=1).tolist(), strength.tolist()

    @property
    def method(self) -> str:
        """How groups were compared, in words."""
        return "tests of differences"

    @property
    def _false(self) -> str:
        if not self.differs.any():
            return " with enough evidence"
        verb = "is" if self.differs.sum() == 1 else "are"
        return f", of which {self.expected_false:.1f} {verb} expected to be false"

    @property
    def notes(self) -> tuple[str, ...]:
        """Which test was made, why, what it compares and what could not be tested, in words."""
        tested, chosen = self.tested, self.given_limit is None and bool(self.differs.any())
        balance = ", where missed and false differences are expected to balance best"
        lines = [
            f"tested by differences, because {self.reason}",
            "each pair is estimated without shrinkage in every group, given the "
            f"{int(tested.graphs.any(axis=0).sum())} edges found in some group; numbers are in "
            "residual standard deviations of their group, so that means, units and variances may "
            "differ",
            f"a pair differs if the probability that it is the same is at most {self.limit:.2g}"
            + (balance if chosen else ""),
            *filter(None, [self.dependence]),
        ]
        if len(self.groups) == 2 and self.differs.any():
            first, second = tested.strengths[0][:, self.differs]
            more = (first > second).sum(), (second > first).sum()
            counts = [f"{n} in {one_line(g)}" for n, g in zip(more, self._names, strict=True)]
            lines.append(f"pairs that differ by where they are stronger: {', '.join(counts)}")
        missing = self._untested
        if missing["reason"]:
            named = [
                f"{a} - {b}" for a, b in zip(missing["source"], missing["target"], strict=True)
            ]
            lines.append(
                "not tested, because a group lacks a level or has too few rows in some cells (see "
                f"untested()): {few(named, show=one_line)}; join levels, or use test='permutation'"
            )
        return tuple(lines)


# -- PermutationComparison -------------------------------------------------------------------------

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
            *filter(None, [self.dependence]),
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
