"""A model file and a question -> distributions, new rows or completed tables as output."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mixedgm.cli.console import Console
from mixedgm.cli.lists import cut_items, listed
from mixedgm.cli.output import check_output, deliver
from mixedgm.errors import ParameterError
from mixedgm.printable import quoted

if TYPE_CHECKING:
    from mixedgm.estimator import MixedGraphicalModel
    from mixedgm.table import Schema

__all__ = ["known_values", "run_impute", "run_query", "run_sample", "usable_model"]


def run_query(args: Namespace, console: Console) -> None:
    """Answer one question about the distribution of columns."""
    check_output(args.output, args.model)
    model = usable_model(args, console)
    given = known_values(args.given, model.schema_)
    how = {"random_state": args.seed, "limit": args.limit}
    if args.discrepancy:
        if given:
            raise ParameterError("--discrepancy is about the whole model; leave out --given.")
        found: Any = model.joint_discrepancy()
    elif args.mean:
        found = model.mean(given, method=args.method, **how)
    elif args.marginal is not None:
        found = model.conditional(listed(args.marginal), given, method=args.method, **how)
    else:
        _deliver_number(args, console, model, given, how)
        return
    deliver(_plain(found.frame()), args, console, lambda width: repr(found))


def _deliver_number(
    args: Namespace, console: Console, model: MixedGraphicalModel, given: Any, how: Any
) -> None:
    from mixedgm.studies.joint_discrepancy import margin_notes, pair_notes

    if args.entropy is not None:
        names = listed(args.entropy)
        what, found = "entropy", model.entropy(names, given, **how)
    else:
        names = listed(args.mutual_information)
        if len(names) != 2:
            got = ", ".join(names)
            raise ParameterError(
                f"--mutual-information takes two columns as A,B. Got {quoted(got)}."
            )
        what, found = (
            "mutual information",
            model.mutual_information(names[0], names[1], given, **how),
        )
    for note in (*margin_notes(model.fitted_), *pair_notes(model.fitted_, [*names, *given])):
        console.note(note)
    error = "exact" if found.exact else f"standard error {found.error:.2g}"
    columns = {what.replace(" ", "_"): [found.value], "error": [found.error]}
    deliver(columns, args, console, lambda width: f"{what}: {found.value:.6g} nats ({error})")


def run_sample(args: Namespace, console: Console) -> None:
    """Draw new rows."""
    check_output(args.output, args.model)
    model = usable_model(args, console)
    given = known_values(args.given, model.schema_)
    rows, report = model.sample(
        args.rows,
        given,
        method=args.method,
        random_state=args.seed,
        limit=args.limit,
        burn_in=args.burn_in,
        thin=args.thin,
        report=True,
    )
    for note in report.notes:
        console.note(note)
    deliver(_plain(rows), args, console)


def run_impute(args: Namespace, console: Console) -> None:
    """Fill the missing cells of a table."""
    from mixedgm.table import read_table
    from mixedgm.table.assemble import unused_name

    check_output(args.output, args.model, args.table)
    model, frame = usable_model(args, console), read_table(args.table)
    how = {"random_state": args.seed, "method": args.method, "limit": args.limit}
    how["unseen"] = args.unseen
    if args.draws is None:
        deliver(_plain(model.impute(frame, **how)), args, console)
        return
    drawn = [_plain(table) for table in model.impute(frame, args.draws, **how)]
    n_rows = len(next(iter(drawn[0].values())))
    name = unused_name("draw", list(drawn[0]))
    stacked: dict[str, list[Any]] = {
        name: [number for number in range(1, len(drawn) + 1) for _ in range(n_rows)]
    }
    for column in drawn[0]:
        stacked[column] = [cell for table in drawn for cell in table[column]]
    deliver(stacked, args, console)


def usable_model(args: Namespace, console: Console) -> MixedGraphicalModel:
    """Read the model, repaired where that is asked for and needed."""
    from mixedgm.estimator import load

    model = load(args.model)
    if not args.repair:
        return model
    valid = model.repaired()
    for note in valid.fitted_.report.notes[len(model.fitted_.report.notes) :]:
        console.note(note)
    return valid


def known_values(
    texts: Sequence[str] | None, schema: Schema, option: str = "--given"
) -> dict[str, Any]:
    """Return NAME=VALUE,... as a mapping; without quotes, the cut is where a column name ends.

    Examples
    --------
    >>> from mixedgm.table import Column, Schema
    >>> schema = Schema((Column("age", "continuous"), Column("a=b", "categorical", levels=("x",))))
    >>> known_values(["age=40,a=b=x"], schema)
    {'age': 40.0, 'a=b': 'x'}
    """
    kinds = {column.name: column.kind for column in schema.columns}
    pairs = cut_items(texts, "=", f"{option} takes NAME=VALUE,...", before=kinds)
    return {
        name: _number(value) if kinds.get(name) == "continuous" else value for name, value in pairs
    }


def _number(text: str) -> float | str:
    """The number, or the text itself for the error to show."""
    try:
        return float(text)
    except ValueError:
        return text


def _plain(frame: Any) -> dict[str, list[Any]]:
    """A frame as lists of plain values, None where there is none."""
    import narwhals as nw
    import numpy as np

    if isinstance(frame, np.ndarray):
        return {f"x{at}": column.tolist() for at, column in enumerate(frame.T)}
    found: dict[str, list[Any]] = nw.from_native(frame, eager_only=True).to_dict(as_series=False)
    return found
