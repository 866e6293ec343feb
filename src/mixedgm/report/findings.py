"""Material in -> what was found, in two or three sentences, and what an edge means."""

from __future__ import annotations

from collections.abc import Sequence

from mixedgm.base.printable import few, number_of
from mixedgm.fit.fitted import Edge
from mixedgm.report.material import Material
from mixedgm.report.plain import Json, shown

_LONGEST = 40
_MOST_NEIGHBOURS = 3
_MOST_LONELY = 5
_MEANING = (
    "A line joins two columns that still go together among rows that are alike in all other "
    "columns. Columns without a line are related through others, if at all. A line does not tell "
    "which of the two columns causes the other, or whether one does."
)


def findings_content(material: Material) -> Json:
    """Return the opening of the report: sentences about the graph, and what an edge means."""
    edges = [edge for edge in material.fitted.edges if edge.moderator is None]
    if not edges:
        text = "No two columns are directly related: given all others, each stands alone."
        return {"sentences": [text], "meaning": _MEANING}
    sentences = [*_strongest(edges), _count(material, edges), *_alone(material, edges)]
    return {"sentences": sentences, "meaning": _MEANING}


def _strongest(edges: Sequence[Edge]) -> list[str]:
    """Name the most connected column and its neighbours, and the strongest edge elsewhere."""
    total: dict[str, float] = {}
    for edge in edges:
        for name in (edge.source, edge.target):
            total[name] = total.get(name, 0.0) + edge.strength
    hub = max(total, key=lambda name: total[name])
    own = [edge for edge in edges if hub in (edge.source, edge.target)][:_MOST_NEIGHBOURS]
    others = [edge.target if edge.source == hub else edge.source for edge in own]
    sentences = [f"{_name(hub)} is most directly related to {_listed(others)}."]
    rest = next((edge for edge in edges if hub not in (edge.source, edge.target)), None)
    if rest is not None:
        ends = f"{_name(rest.source)} and {_name(rest.target)}"
        if rest is edges[0]:
            sentences.append(f"The strongest relation of all is between {ends}.")
        else:
            sentences.append(f"The strongest relation among the other columns is between {ends}.")
    return sentences


def _count(material: Material, edges: Sequence[Edge]) -> str:
    summary = material.summary
    are = "is" if len(edges) == 1 else "are"
    pairs = number_of(summary.n_possible, "pair")
    text = f"Of {pairs} of columns {len(edges):,} {are} directly related"
    if summary.expected_false is None:
        return f"{text}."
    if not summary.rate_known:
        return f"{text}; with so few rows it is not known how many of them are false."
    false = summary.expected_false
    if false < 0.5:
        return f"{text}, and hardly any of these is expected to be false."
    are = "is" if round(false) == 1 else "are"
    return f"{text}; about {false:.0f} of these {are} expected to be false."


def _alone(material: Material, edges: Sequence[Edge]) -> list[str]:
    ends = {name for edge in edges for name in (edge.source, edge.target)}
    alone = [name for name in material.fitted.schema.names if name not in ends]
    if not alone:
        return []
    return [f"Nothing is directly related to {few(alone, _MOST_LONELY, _name)}."]


def _listed(names: Sequence[str]) -> str:
    shown_names = [_name(name) for name in names]
    if len(shown_names) == 1:
        return shown_names[0]
    return f"{', '.join(shown_names[:-1])} and {shown_names[-1]}"


def _name(name: str) -> str:
    return shown(name, _LONGEST)
