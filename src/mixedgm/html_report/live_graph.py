"""Material in -> LiveGraph: the graph as a notebook shows it."""

from __future__ import annotations

from dataclasses import dataclass

from mixedgm.html_report.document import frame_document, inline_frame
from mixedgm.html_report.material import Material
from mixedgm.printable import number_of

__all__ = ["LiveGraph"]


@dataclass(frozen=True, eq=False, repr=False)
class LiveGraph:
    """The live graph of a model; notebooks show it in a frame that can reach nothing else."""

    material: Material
    height: int

    def __repr__(self) -> str:
        fitted = self.material.fitted
        columns = number_of(len(fitted.schema.columns), "column")
        return f"LiveGraph({columns}, {number_of(len(fitted.edges), 'edge')})"

    def _repr_html_(self) -> str:
        return inline_frame(frame_document(self.material), self.height)
