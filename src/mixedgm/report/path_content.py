"""Material in -> the path of penalties: edges that come and go, and the scores of the choice."""

from __future__ import annotations

import numpy as np

from mixedgm.fit.fitted import Edge
from mixedgm.model.layout import Floats
from mixedgm.pictures.path import SCORE_LABELS, SCORE_LIMITS
from mixedgm.report.material import Material
from mixedgm.report.plain import Json, number, numbers
from mixedgm.results.text import lam_text

_MOST_STEPS = 60
_MOST_PAIRS = 3_000
_DIGITS = 3

Line = tuple[str, str, str | None, str | None]
"""Source, target, moderator and sign."""


def path_content(material: Material) -> Json:
    """Return the path, or None for a model without one.

    Every line is a pair (with its moderator and its sign), the step at which it is first seen, and
    its strengths from there on.  With very many pairs only the strongest are kept.
    """
    fitted = material.fitted
    if fitted.path is None or len(fitted.path) < 2:
        return None
    steps = _steps(len(fitted.path))
    lines: dict[Line, Floats] = {}
    for at, step in enumerate(steps):
        for edge in fitted.edges_at(step):
            if _line(edge) not in lines:
                lines[_line(edge)] = np.zeros(len(steps))
            lines[_line(edge)][at] = edge.strength
    order = sorted(lines, key=lambda line: -float(lines[line].max()))
    lams = fitted.path.lams[steps]
    return {
        "lams": numbers(lams),
        "nEdges": fitted.path.n_edges[steps].tolist(),
        "converged": fitted.path.converged[steps].tolist(),
        "lines": [_line_content(material, line, lines[line]) for line in order[:_MOST_PAIRS]],
        "nLines": len(lines),
        "chosen": _chosen(material, lams),
        "lam": lam_text(fitted.report.lam),
        "criterion": fitted.report.criterion,
        "byTests": fitted.edge_probability is not None,
        "scores": _scores(material, steps),
        "lamMax": number(fitted.path.lam_max),
    }


def _steps(count: int) -> list[int]:
    """Return which values of lam are shown: all, or as many as a slider can use."""
    return sorted(set(np.linspace(0, count - 1, min(count, _MOST_STEPS)).astype(int).tolist()))


def _line(edge: Edge) -> Line:
    return edge.source, edge.target, edge.moderator, edge.sign


def _line_content(material: Material, line: Line, strengths: Floats) -> list[Json]:
    source, target, moderator, sign = line
    place = material.place
    first, last = np.flatnonzero(strengths)[[0, -1]].tolist()
    return [
        place[source],
        place[target],
        -1 if moderator is None else place[moderator],
        sign or "",
        first,
        numbers(strengths[first : last + 1], _DIGITS),
    ]


def _chosen(material: Material, lams: Floats) -> int | None:
    """Return the step nearest to the chosen lam; None where every column has its own."""
    lam = material.fitted.report.lam
    if isinstance(lam, tuple) or not lam > 0.0:
        return None
    known = np.where(lams > 0.0, lams, np.nan)
    return int(np.nanargmin(np.abs(np.log(known) - np.log(lam))))


def _scores(material: Material, steps: list[int]) -> Json:
    """Return the deciding score with its error and limit; None with one lam per column."""
    fitted = material.fitted
    name = next(iter(fitted.scores), None)
    if name is None or isinstance(fitted.report.lam, tuple):
        return None
    parts = {"values": name, "errors": f"{name}_se", "limit": f"{name}_limit"}
    content: dict[str, Json] = {
        part: numbers(np.asarray(fitted.scores[key])[steps], 6)
        for part, key in parts.items()
        if key in fitted.scores
    }
    limit = SCORE_LIMITS.get(name, "limit")
    return {"label": SCORE_LABELS.get(name, name), "limitLabel": limit, **content}
