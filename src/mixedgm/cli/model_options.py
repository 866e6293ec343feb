"""Options about a model file -> the model, and values of its columns."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ActionsContainer
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mixedgm.cli.console import Console
from mixedgm.cli.lists import cut_items
from mixedgm.cli.options import add_choice, add_list, add_quiet, add_seed

if TYPE_CHECKING:
    from mixedgm.estimator.model import MixedGraphicalModel
    from mixedgm.fitted import FittedModel
    from mixedgm.table import Schema

__all__ = [
    "add_at",
    "add_computation",
    "add_given",
    "add_model",
    "add_repair",
    "add_unseen",
    "known_values",
    "model_at_values",
    "usable_model",
]

_QUOTES = "quotes keep a comma, as in 'city=\"Bath, UK\"'"


def add_model(parser: ArgumentParser, **options: Any) -> None:
    """The model that a command reads."""
    text = "a model file that `mixedgm fit` wrote"
    parser.add_argument("model", metavar="MODEL", help=text, **options)


def add_at(parser: ArgumentParser) -> None:
    """Where a model with moderated edges is looked at."""
    text = f"values of the moderators, such as age=40: the graph there; {_QUOTES}"
    add_list(parser, "--at", "NAME=VALUE,...", text)


def add_given(parser: ArgumentParser) -> None:
    """What is known about a row."""
    text = f"known values, such as sex=Female,age=40; {_QUOTES}"
    add_list(parser, "--given", "NAME=VALUE,...", text)


def add_unseen(parser: ArgumentParser) -> None:
    """Levels that a model does not have."""
    text = "levels that the model does not have: stop (default), or ignore such cells when the "
    add_choice(parser, "--unseen", "error", "ignore", text=f"{text}others of a row are predicted")


def add_repair(parser: _ActionsContainer) -> None:
    """The way out for a model without a joint distribution."""
    text = "take the nearest model that has a joint distribution, where the model has none"
    parser.add_argument("--repair", action="store_true", help=text)


def add_computation(parser: ArgumentParser, seeded: str) -> None:
    """How an answer from the joint distribution is computed; `seeded` is what --seed decides."""
    group = parser.add_argument_group("computation")
    text = "exactly, by Gibbs chains, or exactly where that fits the limit (default: auto)"
    add_choice(group, "--method", "auto", "exact", "gibbs", text=text)
    text = "most entries of the tables of an exact answer (default: 16777216)"
    group.add_argument("--limit", type=int, metavar="N", help=text)
    add_seed(group, seeded)
    add_repair(group)
    add_quiet(parser)


def model_at_values(args: Namespace) -> FittedModel:
    """Read the model; where --at names values of its moderators, return the model there."""
    from mixedgm.store import load

    fitted = load(args.model)[0]
    if args.at is None:
        return fitted
    from mixedgm.studies.conditioned import model_at

    return model_at(fitted, known_values(args.at, fitted.schema, "--at"))


def usable_model(args: Namespace, console: Console) -> MixedGraphicalModel:
    """Read the model, repaired where that is asked for and needed."""
    from mixedgm.estimator.model import load

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
    pairs = cut_items(texts, "=", f"{option} takes NAME=VALUE,...", before=schema.names)
    numbers = {column.name for column in schema.columns if not column.has_levels}
    return {name: _number(value) if name in numbers else value for name, value in pairs}


def _number(text: str) -> float | str:
    """The number, or the text itself for the error to show."""
    try:
        return float(text)
    except ValueError:
        return text
