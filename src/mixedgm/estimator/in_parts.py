"""A table in parts and what is asked about rows -> scores and predictions, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.errors import Finding, ParameterError, TableError
from mixedgm.fitted import FittedModel
from mixedgm.printable import number_of, rows
from mixedgm.table.encode import UnseenArg
from mixedgm.table.files import reading
from mixedgm.table.gaps import Gaps
from mixedgm.table.missing import weight_array
from mixedgm.table.read import Frame, as_frame, with_weights
from mixedgm.table.schema import Schema
from mixedgm.table.sources import Source

__all__ = [
    "concatenated",
    "dask_answers",
    "dask_scores",
    "mean_scores",
    "score_sums",
    "weighted_frames",
]

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


def dask_scores(
    model: Any, X: Any, sample_weight: ArrayLike | str | None, unseen: UnseenArg
) -> dict[str, float]:
    """Return means over a Dask frame by column, and of the score under an empty name.

    The partitions are scored where they are; sums come back.
    """
    import dask
    from dask.delayed import delayed

    if sample_weight is not None and not isinstance(sample_weight, str):
        raise ParameterError(
            "rows of a Dask frame have weights by a column: give sample_weight its name."
        )
    score = delayed(_scored_partition, pure=False)
    tasks = [score(part, model, sample_weight, unseen) for part in X.to_delayed()]
    compute: Any = dask.base.compute
    with reading("the Dask frame"):
        every = [sums for sums in compute(*tasks) if sums is not None]
    if not every:
        raise TableError([Finding(None, "the table cannot be scored: no row counts", "")])
    return mean_scores(every)


def _scored_partition(
    part: Any, model: Any, sample_weight: str | None, unseen: UnseenArg
) -> Mapping[str, tuple[float, float]] | None:
    frame, weights = with_weights(as_frame(part), sample_weight)
    if not frame.n_rows or (weights is not None and not np.any(weights)):
        return None
    fitted: FittedModel = model.fitted_
    return score_sums(fitted, model._rows(frame, sample_weight=weights, unseen=unseen))


def dask_answers(model: Any, X: Any, method: str, *given: Any, **options: Any) -> Any:
    """Return a Dask frame with what a method of the model answers for every partition.

    Its columns and types are those of the answer for one row.
    """
    row = pd_row(model.schema_)
    meta = getattr(model, method)(row, *given, **options).iloc[:0]
    return X.map_partitions(_answered, model, method, given, options, meta, meta=meta)


def _answered(
    part: Any, model: Any, method: str, given: tuple[Any, ...], options: dict[str, Any], meta: Any
) -> Any:
    if not len(part):
        return meta
    return getattr(model, method)(part, *given, **options)


def pd_row(schema: Schema) -> Any:
    """Return a pandas frame with one row that fits a schema."""
    import pandas as pd

    return pd.DataFrame({c.name: [c.levels[0] if c.has_levels else 0.0] for c in schema.columns})


def weighted_frames(
    source: Source, sample_weight: ArrayLike | str | None
) -> Iterator[tuple[Any, Frame, NDArray[Any] | None]]:
    """Yield the parts of a table as they are and as frames, with the weights of their rows."""
    given, at, used = None, 0, False
    if sample_weight is not None and not isinstance(sample_weight, str):
        given, bad = weight_array(sample_weight)
        if bad is not None:
            raise TableError([bad])
    for _, native in source.frames():
        frame = as_frame(native)
        weights: Any = None if given is None else given[at : at + frame.n_rows]
        if given is None:
            frame, weights = with_weights(frame, sample_weight)
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
