"""A table in parts and what is asked about rows -> scores and predictions, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.errors import Finding, TableError
from mixedgm.fitted import FittedModel
from mixedgm.printable import number_of, rows
from mixedgm.table.gaps import Gaps
from mixedgm.table.read import Frame, as_frame, with_weights
from mixedgm.table.sources import Source

__all__ = ["concatenated", "mean_scores", "score_sums", "weighted_frames"]

Floats = NDArray[np.float64]


def score_sums(fitted: FittedModel, gaps: Gaps) -> Mapping[str, tuple[float, float]]:
    """Return sums of losses and of weights by column, and of scores (under an empty name).

    The sums of a column are over the rows that have a value of it.
    """
    from mixedgm.studies.incomplete import node_losses, row_score

    weights = np.ones(gaps.n_rows) if gaps.weights is None else gaps.weights
    total, known = float(weights.sum()), weights @ ~gaps.missing
    out = {"": (total * row_score(fitted, gaps), total)}
    for name, loss in node_losses(fitted, gaps).items():
        here = float(known[fitted.schema.node_index(name)])
        out[name] = (here * loss if here > 0.0 else 0.0, here)
    return out


def mean_scores(every: Iterable[Mapping[str, tuple[float, float]]]) -> dict[str, float]:
    """Return means over all parts from their sums."""
    sums: dict[str, list[float]] = {}
    for part in every:
        for name, (value, weight) in part.items():
            total = sums.setdefault(name, [0.0, 0.0])
            total[0] += value
            total[1] += weight
    return {name: value / weight if weight else np.nan for name, (value, weight) in sums.items()}


def weighted_frames(
    source: Source, sample_weight: ArrayLike | str | None
) -> Iterator[tuple[Any, Frame, NDArray[Any] | None]]:
    """Yield the parts of a table as they are and as frames, with the weights of their rows."""
    given, at, used = None, 0, False
    if sample_weight is not None and not isinstance(sample_weight, str):
        given = np.asarray(sample_weight)
    for _, native in source.frames():
        frame, weights = as_frame(native), None
        if isinstance(sample_weight, str):
            frame, weights = with_weights(frame, sample_weight)
        elif given is not None:
            weights = given[at : at + frame.n_rows]
        at += frame.n_rows
        counts = weights is None or bool(np.asarray(weights).any())
        used |= counts
        short = weights is not None and len(weights) < frame.n_rows  # an error, in the end
        if frame.n_rows and counts and not short:
            yield native, frame, weights
    if given is not None and len(given) != at:
        entries = number_of(len(given), "entry", "entries")
        what = f"sample_weight has {entries}, but the table has {rows(at)}"
        raise TableError([Finding(None, what, "")])
    if not at or not used:
        why = "every sample_weight is zero, so no row counts" if at else "it has no rows"
        raise TableError([Finding(None, f"the table cannot be scored: {why}", "")])


def concatenated(parts: list[Any], library: str) -> Any:
    """Return frames or columns of a library one below the other."""
    if library == "pandas":
        import pandas as pd

        plain = all(isinstance(part.index, pd.RangeIndex) for part in parts)
        return pd.concat(parts, ignore_index=plain)
    if library == "polars":
        import polars as pl

        return pl.concat(parts)
    if library == "pyarrow":
        import pyarrow as pa

        if isinstance(parts[0], pa.Table):
            return pa.concat_tables(parts, promote_options="default")
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks])
    return np.concatenate(parts)
