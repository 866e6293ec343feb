"""Nothing -> the parser of the command line, with the help that a newcomer reads."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from textwrap import dedent, fill, indent
from typing import Any, NoReturn

from mixedgm.cli.common_arguments import (
    add_at,
    add_format,
    add_formulas,
    add_model,
    add_model_form,
    add_output,
    add_quiet,
    add_repair,
    add_table,
    add_unseen,
)
from mixedgm.cli.help_texts import COMMANDS, WELCOME
from mixedgm.cli.joint_arguments import add_impute, add_query, add_sample
from mixedgm.cli.lists import LIST_RULE
from mixedgm.cli.picture_arguments import add_network
from mixedgm.printable import bounded, one_line

__all__ = ["build_parser"]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and a hint, not a page of usage."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(
            f"{self.prog}: error: {bounded(one_line(message))}\nTry: {self.prog} --help\n"
        )
        raise SystemExit(2)


class _Version(argparse.Action):
    """Print the version; it is looked up only when asked for."""

    def __init__(self, option_strings: Any, dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and leave")

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        from mixedgm.store import library_version

        sys.stdout.write(f"mixedgm {library_version()}\n")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """Return the parser; ``command`` of what it parses names the command."""
    parser = _Parser(
        prog="mixedgm",
        description=dedent(WELCOME).strip(),
        epilog="`mixedgm COMMAND --help` explains a command and its options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, add in _ARGUMENTS.items():
        about = COMMANDS[name]
        command = commands.add_parser(
            name,
            usage=f"mixedgm {name} {about.usage}",
            help=about.summary,
            description=fill(dedent(about.explanation).strip(), 79),
            epilog=f"examples:\n{indent(dedent(about.examples).strip(), '  ')}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add(command)
    return parser


# -- what each command takes -------------------------------------------------------------------


def _check(command: argparse.ArgumentParser) -> None:
    add_table(command)
    _columns(command)


def _fit(command: argparse.ArgumentParser) -> None:
    add_table(command)
    add_output(command, "MODEL", "the model file to write, by custom ending in .mgm", required=True)
    command.add_argument(
        "--lam",
        type=float,
        help="one penalty, instead of choosing among many (larger: fewer edges)",
    )
    _refit(command)
    _columns(command)
    _fitting(command)


def _refit(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--refit",
        action=argparse.BooleanOptionalAction,
        default="auto",
        help="estimate the chosen network without shrinkage (default: yes, unless the penalty is "
        "given or chosen by cv or holdout)",
    )


def _path(command: argparse.ArgumentParser) -> None:
    add_table(command)
    add_output(command, "FILE", "where to write, instead of to the terminal")
    add_format(command)
    _columns(command)
    _fitting(command)


def _select(command: argparse.ArgumentParser) -> None:
    add_table(command)
    add_output(command, "MODEL", "write the model with the chosen penalty")
    command.add_argument("--scores", metavar="FILE", help="write all scores (.csv or .json)")
    command.add_argument("--plot", metavar="PICTURE", help="draw the scores (.png, .svg or .pdf)")
    add_formulas(command)
    _refit(command)
    group = command.add_argument_group("criterion", "Each option belongs to one criterion.")
    for option, (kind, metavar, text) in _CRITERION_OPTIONS.items():
        group.add_argument(option, type=kind, metavar=metavar, help=text)
    group.add_argument(
        "--lowest",
        action="store_true",
        help="cv: take the lowest mean, not the sparsest within one standard error of it",
    )
    _checkpoint(group, "cv, stars, stability: where finished fits are kept")
    _columns(command)
    _fitting(command, "--criterion")


_CRITERION_OPTIONS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "--gamma": (float, "G", "ebic: extra price of an edge, 0 to 1 (default: 0.5)"),
    "--folds": (int, "K", "cv: number of folds (default: 5)"),
    "--groups": (
        str,
        "NAME",
        "cv: column that says which rows belong together; not part of the model",
    ),
    "--fraction": (float, "F", "holdout: share of the rows held out (default: 0.2)"),
    "--beta": (float, "B", "stars: instability that is allowed (default: 0.05)"),
    "--subsamples": (int, "N", "stars, stability: how many (default: 20 and 100)"),
    "--threshold": (
        float,
        "T",
        "stability: share of the half-samples that must have an edge (default: 0.75)",
    ),
    "--max-false": (
        float,
        "V",
        "stability: false edges that are expected at most (default: 1)",
    ),
}


def _edges(command: argparse.ArgumentParser) -> None:
    add_model(command)
    add_at(command)
    add_output(
        command, "FILE", "where to write (.csv, .json, .txt, or .graphml for network programs)"
    )
    command.add_argument(
        "--shrunken",
        action="store_true",
        help="show the weights of the penalised estimate beside those without shrinkage",
    )
    add_format(command)


def _plot(command: argparse.ArgumentParser) -> None:
    add_model(command)
    add_at(command)
    add_output(command, "PICTURE", "the picture to write: .png, .svg or .pdf", required=True)
    command.add_argument(
        "--kind",
        choices=("network", "path", "parameters", "selection"),
        default="network",
        help="the network (default), the edges against the penalty, all parameters as a matrix, "
        "or the scores from which the penalty was chosen",
    )
    add_network(command)


def _predict(command: argparse.ArgumentParser) -> None:
    add_model(command)
    add_table(command)
    command.add_argument("--column", metavar="NAME", help="the column to predict (default: all)")
    command.add_argument(
        "--proba", action="store_true", help="probabilities of the levels of a categorical --column"
    )
    add_unseen(command)
    add_repair(command)
    add_output(command, "FILE", "where to write, instead of to the terminal")
    add_format(command, default="csv")


def _bootstrap(command: argparse.ArgumentParser) -> None:
    add_model(command)
    add_table(command)
    add_output(command, "FOLDER", "where to write tables and pictures", required=True)
    command.add_argument(
        "--n-boot", type=int, default=1000, metavar="N", help="resamples (default: 1000)"
    )
    command.add_argument(
        "--kind",
        choices=("nonparametric", "case-dropping"),
        default="nonparametric",
        help="draw rows with replacement (default), or leave more and more rows out",
    )
    command.add_argument(
        "--select",
        choices=("fixed", "again"),
        default="fixed",
        help="keep the penalty of the model (default), or choose it again in every resample",
    )
    command.add_argument(
        "--groups", metavar="NAME", help="column that says which rows belong together"
    )
    command.add_argument(
        "--weights-column", metavar="NAME", help="column with the weights of the fit"
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="which resamples are drawn (default: 0)"
    )
    command.add_argument(
        "--jobs", type=int, metavar="N", help="processor cores to use (default: all)"
    )
    _checkpoint(command, "where finished resamples are kept")
    command.set_defaults(drop=None)
    add_formulas(command)
    add_quiet(command)


def _compare(command: argparse.ArgumentParser) -> None:
    add_table(command)
    add_output(command, "FOLDER", "where to write models, tables and pictures", required=True)
    command.add_argument(
        "--groups", metavar="NAME", required=True, help="column that says who is in which group"
    )
    command.add_argument(
        "--permutations", type=int, default=500, metavar="N", help="shuffles (default: 500)"
    )
    command.add_argument(
        "--penalty",
        choices=("common", "own"),
        default="common",
        help="one penalty for all groups (default), or one chosen in each, which takes long",
    )
    command.add_argument("--lam", type=float, help="the penalty, instead of choosing it")
    command.add_argument(
        "--blocks", metavar="NAME", help="column: labels are shuffled within its values only"
    )
    command.add_argument(
        "--alpha", type=float, default=0.05, help="level of significance (default: 0.05)"
    )
    _checkpoint(command, "where finished shuffles are kept")
    add_formulas(command)
    _columns(command)
    _fitting(command)
    add_network(command)


def _demo(command: argparse.ArgumentParser) -> None:
    add_output(command, "FOLDER", "where to write (default: mixedgm-demo)", default="mixedgm-demo")
    add_quiet(command)


# -- what several commands take ----------------------------------------------------------------


def _checkpoint(command: Any, text: str) -> None:
    command.add_argument("--checkpoint", metavar="FOLDER", help=text)
    command.add_argument(
        "--resume", action="store_true", help="go on with the work that --checkpoint holds"
    )


def _columns(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("columns", fill(LIST_RULE, 76))
    group.add_argument(
        "--types",
        metavar="NAME=KIND,...",
        action="append",
        help="kinds that differ from what `mixedgm check` shows: categorical or continuous",
    )
    group.add_argument(
        "--transform",
        metavar="HOW",
        action="append",
        help="'nonparanormal' makes all continuous columns normal by rank, "
        "NAME=nonparanormal,... only these: for skewed columns; values that are drawn or imputed "
        "stay within the range of the data, unless it is 'nonparanormal-extrapolated'; NAME=none "
        "ends the warning about a column",
    )
    group.add_argument(
        "--missing",
        choices=("error", "drop"),
        default="error",
        help="what to do about rows with missing values (default: stop with an error)",
    )
    group.add_argument("--drop", metavar="NAME,...", action="append", help="columns to leave out")
    group.add_argument(
        "--weights-column",
        metavar="NAME",
        help="column with the frequency of each row (2 = the row twice); not part of the model",
    )


def _fitting(command: argparse.ArgumentParser, select: str = "--select") -> None:
    group = command.add_argument_group("fitting")
    group.add_argument(
        select,
        dest="select",
        default="ebic",
        metavar="NAME",
        help="how to choose the penalty: ebic (default), bic, aic, cv, holdout, stars or stability",
    )
    group.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="which folds and subsamples are drawn (default: 0)",
    )
    group.add_argument("--lams", metavar="L1,L2,...", help="the penalties to try")
    group.add_argument(
        "--n-lams",
        type=int,
        default=50,
        metavar="N",
        help="how many down to --lam-min-ratio: their spacing (default: 50)",
    )
    group.add_argument(
        "--lam-min-ratio",
        type=float,
        default=0.01,
        metavar="R",
        help="smallest penalty as a part of the one that leaves no edges (default: 0.01)",
    )
    add_model_form(group)
    add_quiet(command)


_ARGUMENTS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "check": _check,
    "fit": _fit,
    "select": _select,
    "path": _path,
    "edges": _edges,
    "plot": _plot,
    "predict": _predict,
    "query": add_query,
    "sample": add_sample,
    "impute": add_impute,
    "bootstrap": _bootstrap,
    "compare": _compare,
    "demo": _demo,
}
