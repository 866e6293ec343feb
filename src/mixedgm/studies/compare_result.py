"""Graphs of groups and tests of them -> GroupComparison: tables, pictures, text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, compress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.stats import false_discovery_control

from mixedgm.fitted import FittedModel
from mixedgm.inference.group_patterns import balanced_limit
from mixedgm.model.layout import Floats
from mixedgm.path.recipe import Lam
from mixedgm.printable import few, one_line
from mixedgm.studies.bootstrap_replicates import edge_names
from mixedgm.studies.discrepancy import holm
from mixedgm.studies.group_differences import DIFFERENCE_TESTS, DifferenceTests
from mixedgm.table.assemble import Columns, frame
from mixedgm.views.canvas import known_options

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DifferenceComparison", "GroupComparison", "adjusted", "couples_of"]

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


def adjusted(p: Floats, n_others: int = 0) -> dict[str, Floats]:
    """Columns p_holm and p_bh: p-values adjusted for all pairs, `n_others` more with p = 1.

    Pairs that were not tested (NaN) do not count.
    """
    known, others = ~np.isnan(p), np.ones(n_others)
    p_holm, p_bh = np.full((2, len(p)), np.nan)
    if known.any():
        family = np.concatenate([p[known], others])
        p_holm[known] = holm(family)[: known.sum()]
        p_bh[known] = false_discovery_control(family)[: known.sum()]
    return {"p_holm": p_holm, "p_bh": p_bh}


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
    alpha : float
        Level of the tests.
    """

    groups: tuple[Any, ...]
    fitted: tuple[FittedModel, ...]
    models: Mapping[Any, Any]
    reason: str
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
        from mixedgm.views.plot_groups import plot_groups

        drawn = plot_groups(self.fitted, self._names, layout=layout, **options)
        return dict(zip(self.groups, drawn, strict=True))

    @known_options
    def plot_differences(self, *, max_edges: int | None = 40, ax: Axes | None = None) -> Axes:
        """Draw the strength of every pair in every group, the most different pairs on top."""
        from mixedgm.views.plot_groups import plot_differences

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
        found = f"; of single pairs, {pairs}" if most else ""
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
        from mixedgm.views.text import table_text

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
        """Pairs that could not be tested: columns source, target, reason."""
        return frame(self._untested, self._library)

    @cached_property
    def _untested(self) -> Columns:
        ridge = self.tested.ridge
        pairs = np.flatnonzero(ridge.any(axis=0))
        named = edge_names(self.fitted[0].schema, self.tested.ends[pairs])
        why = [
            f"some cells have too few rows in {', '.join(compress(self._names, where))}"
            for where in ridge.T[pairs]
        ]
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
        couples = couples_of(names)
        columns["between"] = [couples[k] for k in tested.apart.argmax(axis=0)]
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
                "not tested, because some of their cells have too few rows in a group (see "
                f"untested()): {few(named, show=one_line)}; join levels, or use test='permutation'"
            )
        return tuple(lines)
