"""Drawn rows and their chains -> SampleReport: how they were drawn, and how well that went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mixedgm.table.assemble import Columns, frame
from mixedgm.table.schema import Schema
from mixedgm.views.result import result_html, result_text

if TYPE_CHECKING:
    from mixedgm.joint import Draw

__all__ = ["SampleReport"]


@dataclass(frozen=True, repr=False)
class SampleReport:
    """How rows were drawn.

    Parameters
    ----------
    method : {"exact", "gibbs"}
        Exact draws are independent of each other and have nothing to diagnose.
    notes : tuple of str
        Why not exact; the chains and their worst numbers.
    columns : mapping of str to list
        For every continuous column and every level of a column: `r_hat`, 1 when all chains agree,
        and `ess`, the effective number of independent states.  Empty for exact draws.
    good : bool
        Whether no R-hat exceeds 1.01 and every effective sample size is at least 400.
    library : str
        Library of the frame.
    """

    method: Literal["exact", "gibbs"]
    notes: tuple[str, ...]
    columns: Columns
    good: bool
    library: str

    @classmethod
    def of(cls, schema: Schema, draw: Draw, library: str) -> SampleReport:
        """Put names to the diagnostics of chains."""
        chains = draw.diagnostics
        names: list[tuple[str, str | None]] = [(c.name, None) for c in schema.real]
        by_score = chains is not None and chains.by_score
        scored = schema.spans.scored_nodes[schema.spans.discrete]
        for column, whole in zip(schema.discrete, scored & by_score, strict=True):
            names += [(column.name, v) for v in ([None] if whole else column.value_names)]
        columns: Columns = {
            "column": [name for name, _ in names if chains is not None],
            "level": [level for _, level in names if chains is not None],
            "r_hat": [] if chains is None else chains.r_hat,
            "ess": [] if chains is None else chains.ess,
        }
        return cls(draw.method, draw.notes, columns, chains is None or chains.good, library)

    def frame(self) -> Any:
        """R-hat and effective sample size of every column and level, as a frame."""
        return frame(self.columns, self.library)

    def _title(self) -> str:
        return "Exact draws" if self.method == "exact" else "Draws by Gibbs chains"

    def __repr__(self) -> str:
        return result_text(self._title(), self.columns, self.notes or ("independent rows",))

    def _repr_html_(self) -> str:
        """Return the same as HTML, with everything from the data escaped."""
        return result_html(self._title(), self.columns, self.notes or ("independent rows",))
