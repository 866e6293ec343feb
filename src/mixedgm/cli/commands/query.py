"""A model file and a question -> distributions, means or information."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from textwrap import fill
from typing import TYPE_CHECKING, Any

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import quoted
from mixedgm.cli.console import Console, in_options
from mixedgm.cli.fitting_options import read_columns
from mixedgm.cli.lists import LIST_RULE, listed
from mixedgm.cli.options import (
    add_computation,
    add_given,
    add_list,
    add_model,
    add_result,
    known_values,
    usable_model,
)
from mixedgm.cli.output import check_output, columns_of, deliver

if TYPE_CHECKING:
    from mixedgm.estimator.model import MixedGraphicalModel

USAGE = "MODEL (--marginal A,B | --mean | ...) [--given A=X,...]"
SUMMARY = "ask a model for distributions, means and information"
EXPLANATION = """
Ask the joint distribution of all columns. --marginal gives the distribution of some columns, all
others averaged out: probabilities of levels, and means and standard deviations of continuous
columns. --given states what is known. Answers are exact under the model where their tables fit,
else sampled, with standard errors. Single columns have the margins of the table; a pair of columns
that is far from the table is named below an answer about it. --data puts the shares and means of a
table beside those of the model, where at least 30 rows have the known values.
"""
EXAMPLES = """
mixedgm query survey.mgm --marginal jobclass,wage --given sex=Female,age=40
mixedgm query survey.mgm --mean --given "education=HS Grad" --data survey.csv
mixedgm query survey.mgm --mutual-information wage,education
mixedgm query survey.mgm --discrepancy
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The model, the question, what is known, and where to write."""
    add_model(parser)
    question = parser.add_argument_group("question", fill(f"One of these. {LIST_RULE}", 76))
    either = question.add_mutually_exclusive_group(required=True)
    add_list(either, "--marginal", "A,B,...", "the distribution of these columns")
    text = "means of all continuous columns, probabilities of all levels"
    either.add_argument("--mean", action="store_true", help=text)
    add_list(either, "--entropy", "A,B,...", "the entropy of these columns, in nats")
    text = "the mutual information of two columns, in nats"
    add_list(either, "--mutual-information", "A,B", text)
    text = "how far pairs of columns are from the table of the fit, the worst first"
    either.add_argument("--discrepancy", action="store_true", help=text)
    add_given(parser)
    text = "the table, or another one with its columns: what it has beside what the model says"
    parser.add_argument("--data", metavar="TABLE", dest="table", help=text)
    parser.add_argument("--weights-column", metavar="NAME", help="column with its frequencies")
    parser.set_defaults(drop=None)
    add_result(parser)
    add_computation(parser, "the chains where an answer is sampled")


def run(args: Namespace, console: Console) -> None:
    """Answer one question about the distribution of columns."""
    check_output(args.output, *(path for path in (args.model, args.table) if path is not None))
    compared = args.mean or args.marginal is not None
    if args.table is not None and not compared:
        raise ParameterError("--data goes with --marginal and --mean.")
    if args.table is None and args.weights_column is not None:
        raise ParameterError("--weights-column is about the rows of --data TABLE.")
    model = usable_model(args, console)
    given = known_values(args.given, model.schema_)
    how: dict[str, Any] = {"random_state": args.seed, "limit": args.limit}
    if args.table is not None:
        how["data"], how["sample_weight"] = read_columns(args)
    if args.discrepancy:
        if given:
            raise ParameterError("--discrepancy is about the whole model; leave out --given.")
        answer: Any = model.joint_discrepancy()
    elif args.mean:
        answer = model.mean(given, method=args.method, **how)
    elif args.marginal is not None:
        answer = model.conditional(listed(args.marginal), given, method=args.method, **how)
    else:
        _deliver_number(args, console, model, given, how)
        return
    deliver(columns_of(answer.frame()), args, console, lambda width: in_options(repr(answer)))


def _deliver_number(
    args: Namespace, console: Console, model: MixedGraphicalModel, given: Any, how: Any
) -> None:
    from mixedgm.results.result import how_found
    from mixedgm.studies.fit_check.joint_discrepancy import margin_notes, pair_notes

    if args.entropy is not None:
        names = listed(args.entropy)
        what, answer = "entropy", model.entropy(names, given, **how)
    else:
        names = listed(args.mutual_information)
        if len(names) != 2:
            got = ", ".join(names)
            raise ParameterError(
                f"--mutual-information takes two columns as A,B. Got {quoted(got)}."
            )
        what = "mutual information"
        answer = model.mutual_information(names[0], names[1], given, **how)
    for note in (*margin_notes(model.fitted_), *pair_notes(model.fitted_, [*names, *given])):
        console.note(note)
    error = how_found(True) if answer.exact else f"standard error {answer.error:.2g}"
    columns = {what.replace(" ", "_"): [answer.value], "error": [answer.error]}
    deliver(columns, args, console, lambda width: f"{what}: {answer.value:.6g} nats ({error})")
