"""Evidence and subsets of its rows -> what their paths say, found in parallel and kept if asked.

Every subset has the schema of the whole table and its values of lam.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.checkpoint import Record, fingerprint, flattened
from mixedgm.base.errors import MixedGMError
from mixedgm.base.parallel import run
from mixedgm.base.parameters import HasParams, ensure
from mixedgm.base.printable import quoted
from mixedgm.model.layout import Floats, Ints
from mixedgm.path.path import Path, PathPoint, solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.refits import interpolates
from mixedgm.path.rounds import Incomplete
from mixedgm.path.task import Reference, Task, prepare
from mixedgm.select.evidence import Evidence
from mixedgm.solve.working_set import Start
from mixedgm.table.encode import Design
from mixedgm.table.parted.design import PartedDesign

T = TypeVar("T")
Split = tuple[Ints, Ints]
End = tuple[Ints, Floats]
"""Active groups at the end of a path, as triples, and the terms of nodes and groups there."""
Location = str | os.PathLike[str] | None


def checkpoint_field() -> Any:
    """Where a criterion keeps finished fits: no part of what it is, nor of a model file."""
    return field(default=None, compare=False, repr=False)


class ByResamples(HasParams):
    """Base class of criteria that fit subsets of the rows."""

    by_parts = True

    def enough(self, task: Task, point: PathPoint) -> bool:
        """Whether a column has as many predictors as rows, so that it is fitted perfectly."""
        return interpolates(task, point.groups)

    def __post_init__(self) -> None:
        folder = getattr(self, "checkpoint", None)
        named = folder is None or isinstance(folder, str | os.PathLike)
        ensure(named, "checkpoint", "the name of a folder or None", folder)


@dataclass(frozen=True, eq=False)
class _Work:
    """Inputs for the fit of every subset, which travel to other processes."""

    design: Design | PartedDesign | Incomplete
    """The rows; with their gaps, where there are some."""
    recipe: Recipe
    reference: Reference
    lams: Floats
    lam: float | None
    """Where the part of the path before this one ended; None for the first."""
    n_threads: int = 1

    def path(self, rows: Ints, end: End | None) -> tuple[Path, Record]:
        """The path of these rows from where its part before ended, and what was odd about them."""
        task = prepare(self.design.take(rows), self.recipe, self.reference, self.n_threads)
        start = None
        if end is not None:
            triples, terms = end
            task = task.with_edges(triples[:, :2])
            theta = task.layout.expanded(task.layout.numbers_of(triples), terms)
            start = Start(theta, task.smooth.evaluate(theta), self.lam)
        path = solve_path(task, self.lams, self.recipe, start=start)
        names = np.array([node.name for node in task.schema.nodes])
        last = path.points[-1]
        return path, {
            "degenerate": np.isin(names, task.degenerate),
            "unconverged": np.array([not path.converged.all()]),
            "end_triples": path.layout.triples[last.groups],
            "end_terms": last.terms,
        }


@dataclass(frozen=True, eq=False)
class Resampled:
    """Notes about all resamples, whether Ctrl-C came, and where their paths ended, if they did."""

    notes: tuple[str, ...]
    interrupted: bool
    ends: tuple[End | None, ...]


@dataclass(frozen=True, eq=False)
class HeldOut(Resampled):
    """(n_splits, n_lams) mean loss of the rows held out, their weights, and what happened.

    The losses of a split that failed are NaN.
    """

    losses: Floats
    weights: Floats


def held_out(
    evidence: Evidence, splits: Sequence[Split], what: str, checkpoint: Location = None
) -> HeldOut:
    """Fit the first part of each split at the fresh lams and score the second."""
    records, resampled = _records(evidence, _score_split, splits, what, checkpoint)
    losses = np.full((len(splits), len(evidence.fresh)), np.nan)
    weights = np.array([evidence.rows.weight_of(test) for _, test in splits])
    for at, record in records.items():
        losses[at] = record["loss"]
    return HeldOut(**vars(resampled), losses=losses, weights=weights)


def _score_split(work: _Work, task: tuple[Split, End | None]) -> Record:
    (train, test), end = task
    path, record = work.path(train, end)
    design = work.design
    if isinstance(design, Design | PartedDesign):
        rows = design.take(test)
        loss = np.array([path.held_out_loss(k, rows) for k in range(len(path))])
    else:
        given = ((path.params(k), path.total_weight) for k in range(len(path)))
        loss = np.array([design.held_out_loss(test, *each) for each in given])
    return record | {"loss": loss}


@dataclass(frozen=True, eq=False)
class Counts(Resampled):
    """(n_lams, n_groups) number of subsamples that have each edge, among `n_subsamples`.

    Separate regressions have two groups for an edge, whose counts are those of the edge; `once`
    marks one group of every edge.
    """

    edges: NDArray[np.int64]
    once: NDArray[np.bool_]
    n_subsamples: int


def edge_counts(
    evidence: Evidence, subsamples: Sequence[Ints], checkpoint: Location = None
) -> Counts:
    """Fit every subsample at the fresh lams and count its edges, over the groups of all rows."""
    records, resampled = _records(evidence, _find_edges, subsamples, "subsamples", checkpoint)
    layout = evidence.task.layout
    undirected = replace(layout, nodewise=False)
    # A group for every group: the first one of its edge.
    edge = undirected.numbers_of(layout.triples)
    counts = np.zeros((len(evidence.fresh), layout.n_groups), dtype=np.int64)
    for record in records.values():
        # A subsample has no edge that the whole table has not.
        np.add.at(counts, (record["lam"], undirected.numbers_of(record["triple"])), 1)
    once = edge == np.arange(layout.n_groups)
    counts = counts[:, edge]
    return Counts(**vars(resampled), edges=counts, once=once, n_subsamples=len(records))


def _find_edges(work: _Work, task: tuple[Ints, End | None]) -> Record:
    path, record = work.path(*task)
    triples = [path.triples(k) for k in range(len(path))]
    lam = np.repeat(np.arange(len(path)), [len(active) for active in triples])
    return record | {"triple": np.concatenate(triples), "lam": lam}


def _records(
    evidence: Evidence,
    function: Callable[[_Work, tuple[T, End | None]], Record],
    subsets: Sequence[T],
    what: str,
    checkpoint: Location,
) -> tuple[dict[int, Record], Resampled]:
    """Call the function for every subset and where its path ended, with what all of them need.

    A grid that grows asks for one part after the other.  Each has a folder of its own in that of
    the checkpoint, named by all that its fits depend on.
    """
    ends = () if evidence.before is None else evidence.before.ends
    tasks = list(zip(subsets, ends or (None,) * len(subsets), strict=True))
    runtime = evidence.runtime
    work = _Work(
        evidence.rows,
        evidence.recipe,
        evidence.reference,
        evidence.fresh,
        float(evidence.path.lams[evidence.n_before - 1]) if evidence.n_before else None,
        # Parts stay where they are: this process asks them, and its threads do the work.
        runtime.n_threads if isinstance(evidence.design, PartedDesign) else 1,
    )
    identity = ""
    if checkpoint is not None:
        identity = fingerprint(*flattened(work), *flattened(tasks))
        checkpoint = os.path.join(checkpoint, f"{what}-{identity[:20]}")
    outcomes = run(
        partial(function, work),
        tasks,
        n_jobs=1 if isinstance(evidence.design, PartedDesign) else runtime.n_jobs,
        what=what,
        show=runtime.show,
        checkpoint=checkpoint,
        identity=identity,
    )
    interrupted = len(outcomes) < len(tasks)
    if interrupted and not runtime.keep_interrupted:
        raise KeyboardInterrupt
    records = {done.index: done.record for done in outcomes if done.record is not None}
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if not records:
        raise MixedGMError(f"all {len(tasks)} {what} failed; the first one: {errors[0]}")
    notes = _notes(evidence, list(records.values()), len(tasks), what)
    if errors:
        notes.append(f"{len(errors)} of {len(tasks)} {what} failed; the first one: {errors[0]}")
    if interrupted:
        notes.append(f"interrupted: {len(outcomes)} of {len(tasks)} {what} were used")
    at = {k: (record["end_triples"], record["end_terms"]) for k, record in records.items()}
    return records, Resampled(tuple(notes), interrupted, tuple(map(at.get, range(len(tasks)))))


def _notes(evidence: Evidence, records: list[Record], n_tasks: int, what: str) -> list[str]:
    nodes = evidence.design.schema.nodes
    odd = Counter(int(v) for record in records for v in np.flatnonzero(record["degenerate"]))
    notes = [
        f"in {count} of {n_tasks} {what} column {quoted(nodes[v].name)} was constant or "
        f"lacked levels"
        for v, count in sorted(odd.items())
    ]
    unconverged = sum(bool(record["unconverged"][0]) for record in records)
    if unconverged:
        notes.append(f"{unconverged} of {n_tasks} {what} did not converge at every lam")
    return notes
