"""Evidence and subsets of its rows -> what their paths say, found in parallel and kept if asked.

Every subset has the schema of the whole table and its values of lam.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixedgm.checkpoint import Record, fingerprint, flattened
from mixedgm.errors import MixedGMError, ParameterError
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params
from mixedgm.parallel import run
from mixedgm.path.evidence import Evidence
from mixedgm.path.path import Path, solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import Reference, prepare
from mixedgm.printable import quoted
from mixedgm.table.encode import Design

T = TypeVar("T")
Split = tuple[Ints, Ints]
Location = str | os.PathLike[str] | None


def checkpoint_field() -> Any:
    """Where a criterion keeps finished fits: no part of what it is, nor of a model file."""
    return field(default=None, compare=False, repr=False)


def check_checkpoint(given: object) -> None:
    """Raise ParameterError unless it is None or the name of a folder."""
    if given is not None and not isinstance(given, str | os.PathLike):
        raise ParameterError.must_be("checkpoint", "the name of a folder or None", given)


@dataclass(frozen=True, eq=False)
class _Work:
    """What every subset needs; it travels to other processes."""

    design: Design
    recipe: Recipe
    reference: Reference
    lams: Floats
    start: Params | None

    def path(self, rows: Ints) -> tuple[Path, Record]:
        """The path of these rows, and what was odd about them."""
        task = prepare(self.design.take(rows), self.recipe, self.reference)
        path = solve_path(task, self.lams, self.recipe, start=self.start)
        names = np.array([node.name for node in self.design.schema.nodes])
        return path, {
            "degenerate": np.isin(names, task.degenerate),
            "unconverged": np.array([not path.converged.all()]),
        }


@dataclass(frozen=True, eq=False)
class HeldOut:
    """(n_splits, n_lams) mean loss of the rows held out, their weights, and what happened.

    The losses of a split that failed are NaN.
    """

    losses: Floats
    weights: Floats
    notes: tuple[str, ...]
    interrupted: bool


def held_out(
    evidence: Evidence, splits: Sequence[Split], what: str, checkpoint: Location = None
) -> HeldOut:
    """Fit the first part of each split at the fresh lams and score the second."""
    found = _records(evidence, _score_split, splits, what, checkpoint)
    losses = np.full((len(splits), len(evidence.fresh)), np.nan)
    weights = np.array([evidence.design.take(test).total_weight for _, test in splits])
    for at, record in found.records.items():
        losses[at] = record["loss"]
    return HeldOut(losses, weights, found.notes, found.interrupted)


def _score_split(work: _Work, split: Split) -> Record:
    train, test = split
    path, record = work.path(train)
    rows = work.design.take(test)
    loss = np.array([path.held_out_loss(k, rows) for k in range(len(path))])
    return record | {"loss": loss}


@dataclass(frozen=True, eq=False)
class Counts:
    """(n_lams, n_groups) number of subsamples that have each edge, among `n_subsamples`.

    Separate regressions have two groups for an edge, whose counts are those of the edge; `once`
    marks one group of every edge.
    """

    edges: NDArray[np.int64]
    once: NDArray[np.bool_]
    n_subsamples: int
    notes: tuple[str, ...]
    interrupted: bool


def edge_counts(
    evidence: Evidence, subsamples: Sequence[Ints], checkpoint: Location = None
) -> Counts:
    """Fit every subsample at the fresh lams and count its edges, over the groups of all rows."""
    found = _records(evidence, _find_edges, subsamples, "subsamples", checkpoint)
    layout = evidence.task.layout
    u, v = layout.pairs.T
    # A subsample has no edge that the whole table has not: its own pairs are among the layout's.
    place = [layout.n_nodes**2, layout.n_nodes, 1]
    codes = np.column_stack([layout.moderator, np.minimum(u, v), np.maximum(u, v)]) @ place
    edges, first, edge_of = np.unique(codes, return_index=True, return_inverse=True)
    by_edge = np.zeros((len(evidence.fresh), len(edges)), dtype=np.int64)
    for record in found.records.values():
        at = np.searchsorted(edges, record["triple"] @ place)
        np.add.at(by_edge, (record["lam"], at), 1)
    once = np.isin(np.arange(layout.n_groups), first)
    counts = by_edge[:, edge_of]
    return Counts(counts, once, len(found.records), found.notes, found.interrupted)


def _find_edges(work: _Work, rows: Ints) -> Record:
    path, record = work.path(rows)
    triples = [path.triples(k) for k in range(len(path))]
    lam = np.repeat(np.arange(len(path)), [len(found) for found in triples])
    return record | {"triple": np.concatenate(triples), "lam": lam}


@dataclass(frozen=True, eq=False)
class _Records:
    """Records of the tasks that went well, by number; notes about all; whether Ctrl-C came."""

    records: dict[int, Record]
    notes: tuple[str, ...]
    interrupted: bool


def _records(
    evidence: Evidence,
    function: Callable[[_Work, T], Record],
    tasks: Sequence[T],
    what: str,
    checkpoint: Location,
) -> _Records:
    """Call the function for every task, with what every task needs.

    A grid that grows asks for one part after the other.  Each has a folder of its own in that of
    the checkpoint, named by all that its fits depend on.
    """
    runtime = evidence.runtime
    work = _Work(
        evidence.design,
        evidence.recipe,
        evidence.reference,
        evidence.fresh,
        evidence.path.params(evidence.n_before - 1) if evidence.n_before else None,
    )
    identity = ""
    if checkpoint is not None:
        identity = fingerprint(*flattened(work), *flattened(list(tasks)))
        checkpoint = os.path.join(checkpoint, f"{what}-{identity[:20]}")
    outcomes = run(
        partial(function, work),
        tasks,
        n_jobs=runtime.n_jobs,
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
    return _Records(records, tuple(notes), interrupted)


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
