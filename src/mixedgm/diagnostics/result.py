"""Numbers of missing edges, and constants -> Consistency: text, frame and picture of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import one_line
from mixedgm.diagnostics.theorem import Constants, Promise
from mixedgm.pictures.canvas import known_options
from mixedgm.pictures.check import plot_consistency
from mixedgm.results.result import result_html
from mixedgm.results.text import facts_lines, table_text
from mixedgm.table.read import Columns, frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SHOWN = 10
_ALLOWED_ERRORS = 2.0


class MissingEdge(NamedTuple):
    """One pair of columns that has no edge: how far the edges there are explain it.

    `at_truth` is the number for the true directions of the edges; `lower` and `upper` bound the
    largest over all directions.
    """

    source: str
    target: str
    kind: str
    at_truth: float
    lower: float
    upper: float


@dataclass(frozen=True, repr=False)
class Consistency:
    """Whether a graph can be found from enough rows, in numbers.

    Parameters
    ----------
    loss, weights : str
        The objective that it is about.
    pairs : tuple of MissingEdge
        Every pair without an edge, the worst first; `frame()` gives them as a frame.
    constants : Constants
        Constants of the theorem; estimates, taken at the truth.
    standard_error : float
        Standard error of the pairs' numbers, by the jackknife; 0 where expectations are exact.
    convexity_error : float
        Standard error of the restricted convexity, by the jackknife; 0 if expectations are exact.
    gradient_at_truth : float
        The largest entry of the expected gradient at the truth.  It is zero in theory, so this is
        how far expectations are off.
    exact : bool
        Whether expectations are over all states of the model, not over draws.
    notes : tuple of str
        How they were found.
    library : str
        Library of the frame.
    """

    loss: str
    weights: str
    pairs: tuple[MissingEdge, ...]
    constants: Constants
    standard_error: float
    convexity_error: float
    gradient_at_truth: float
    exact: bool
    notes: tuple[str, ...]
    library: str

    @property
    def lower(self) -> float:
        """Lower bound of the irrepresentability number; it is attained."""
        return max((pair.lower for pair in self.pairs), default=0.0)

    @property
    def upper(self) -> float:
        """Upper bound of the irrepresentability number; below 1 the condition holds."""
        return max((pair.upper for pair in self.pairs), default=0.0)

    @property
    def at_truth(self) -> float:
        """Irrepresentability number for the true directions of the edges only."""
        return max((pair.at_truth for pair in self.pairs), default=0.0)

    @property
    def convexity(self) -> float:
        """Smallest eigenvalue of the expected curvature on the model subspace."""
        return self.constants.convexity

    @property
    def verdict(self) -> Literal["holds", "fails", "undecided"]:
        """Whether the irrepresentable condition holds, two standard errors allowed for."""
        return _verdict(self.lower, self.upper, self.standard_error)

    @property
    def verdict_at_truth(self) -> Literal["holds", "fails", "undecided"]:
        """Whether the condition holds for the true directions of the edges only."""
        return _verdict(self.at_truth, self.at_truth, self.standard_error)

    def theorem(self, n_rows: float | None = None) -> Promise:
        """Promise of the theorem for a number of rows, by default for as many as it needs.

        Every number is an estimate; NaN where its conditions are not met.
        """
        if n_rows is not None and not n_rows > 0:
            raise ParameterError.must_be("n_rows", "a positive number", n_rows)
        return self.constants.promise(n_rows)

    def frame(self) -> Any:
        """One row per pair without an edge, the worst first, as a frame."""
        return frame(self._columns(), self.library)

    @known_options
    def plot(self, *, max_pairs: int | None = 30, ax: Axes | None = None) -> Axes:
        """Draw the number of every pair without an edge, and the limit 1.

        Parameters
        ----------
        max_pairs : int, optional
            Draw this many of the worst pairs only; None for all.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        return plot_consistency(self._columns(), max_pairs=max_pairs, ax=ax)

    def _columns(self) -> Columns:
        return {name: [getattr(p, name) for p in self.pairs] for name in MissingEdge._fields}

    # -- text --------------------------------------------------------------------------------------

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            ("irrepresentability", self._condition()),
            ("at the true edges", self._condition_at_truth()),
            ("restricted convexity", _with_error(self.convexity, self.convexity_error)),
            ("theorem (estimates)", self._theorem()),
            ("constants (estimates)", self._constants()),
            ("expectations", "; ".join(one_line(note) for note in self.notes)),
        ]
        off = f"the expected gradient at the truth is off by {self.gradient_at_truth:.1g}"
        return [(name, value) for name, value in [*facts, ("check", off)] if value]

    def _condition(self) -> str:
        if not self.pairs:
            return "no pair lacks an edge, so there is nothing to find wrongly"
        worst = self.pairs[0]
        number = _number(self.lower, self.upper, self.standard_error)
        said = {
            "holds": "below 1, the condition holds",
            "fails": "not below 1, THE CONDITION FAILS",
            "undecided": "not decided whether it is below 1",
        }[self.verdict]
        return f"{number}, of {worst.source} - {worst.target}: {said}"

    def _condition_at_truth(self) -> str:
        if not self.pairs:
            return ""
        worst = max(self.pairs, key=lambda pair: round(pair.at_truth, 8))
        number = _with_error(self.at_truth, self.standard_error)
        said = {
            "holds": "below 1, enough rows find this graph",
            "fails": "not below 1, small lams give false edges however many rows",
            "undecided": "not decided whether it is below 1",
        }[self.verdict_at_truth]
        return f"{number}, of {worst.source} - {worst.target}: {said}"

    def _theorem(self) -> str:
        if not self.constants.applies:
            return "it does not apply, since its conditions are not met"
        at = self.theorem()
        return (
            f"from {at.n_rows:.2g} rows; there lam = {at.lam:.2g}, distance to the truth at most "
            f"{at.error_bound:.2g}, edges of a norm above {at.smallest_edge:.2g} are found"
        )

    def _constants(self) -> str:
        c = self.constants
        return (
            f"tau {c.tau:.3g}, tau-bar {c.tau_bar:.3g}, L1 {c.gradient_change:.3g}, "
            f"L2 {c.curvature_change:.3g}; {c.n_edges} of {c.n_pairs} pairs are edges; free "
            f"parameters of the largest: {c.largest_group}"
        )

    def _title(self) -> str:
        return f"Consistency of the {self.loss} with {self.weights} weights"

    def summary(self) -> str:
        """All of this as text."""
        lines = facts_lines(self._title(), self._facts())
        if self.pairs:
            lines += ["", self._heading(), table_text(self._shown())]
        return "\n".join(lines)

    def _heading(self) -> str:
        total = len(self.pairs)
        some = f" ({_SHOWN} of {total:,})" if total > _SHOWN else ""
        return f"Pairs without an edge, worst first{some}"

    def _shown(self) -> Columns:
        pairs = self.pairs[:_SHOWN]
        return {
            "source": [pair.source for pair in pairs],
            "target": [pair.target for pair in pairs],
            "kind": [pair.kind for pair in pairs],
            "at truth": [f"{pair.at_truth:.3f}" for pair in pairs],
            "lower": [f"{pair.lower:.3f}" for pair in pairs],
            "upper": [f"{pair.upper:.3f}" for pair in pairs],
        }

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """Return the same as HTML, with everything from the data escaped."""
        facts = self._facts()
        quantities: Columns = {
            "quantity": [name for name, _ in facts],
            "value": [value for _, value in facts],
        }
        text = result_html(self._title(), quantities, ())
        return text + result_html(self._heading(), self._shown(), ()) if self.pairs else text


def _verdict(lower: float, upper: float, error: float) -> Literal["holds", "fails", "undecided"]:
    if upper + _ALLOWED_ERRORS * error < 1.0:
        return "holds"
    return "fails" if lower - _ALLOWED_ERRORS * error >= 1.0 else "undecided"


def _with_error(value: float, error: float) -> str:
    return f"{value:.3g}" if error == 0.0 else f"{value:.3g} with standard error {error:.1g}"


def _number(lower: float, upper: float, error: float) -> str:
    if f"{lower:.3g}" == f"{upper:.3g}":
        return _with_error(upper, error)
    return f"{lower:.3g} to {_with_error(upper, error)}"
