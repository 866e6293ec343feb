"""A table, or a model file and its table -> a report in one HTML file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import quoted
from mixedgm.cli.console import Console
from mixedgm.cli.fitting_options import add_fitting, fit_options, fitted_model, read_columns
from mixedgm.cli.options import add_node_group, add_output, node_groups
from mixedgm.cli.output import check_model_output

if TYPE_CHECKING:
    from mixedgm.estimator.model import MixedGraphicalModel

USAGE = "TABLE | MODEL [TABLE] -o FILE [options]"
SUMMARY = "write a report for people: the live graph, tables, what to trust, methods"
EXPLANATION = """
Write one HTML file that needs nothing else and no network: the graph to pan, zoom and search, what
every edge and column consists of, the path of penalties under a slider, tables to sort, filter and
copy, what speaks for the model and against it, and a paragraph about methods for a paper. A table
is fitted first, as `mixedgm fit` does. With a model file, its table adds predictability,
distributions, missing cells and the check of the fit.
"""
EXAMPLES = """
mixedgm report survey.csv -o survey.html
mixedgm report survey.mgm survey.csv -o survey.html
mixedgm report survey.mgm survey.csv -o survey.html --tests --bootstrap 500
mixedgm report survey.csv -o survey.html --groups site --title "Survey"
mixedgm report survey.csv -o survey.html --node-group health=pain,smoker
"""

_TABLES = (".csv", ".tsv", ".parquet", ".gz")
_OF_FITS = (
    *("types", "levels", "level_scores", "thresholds", "largest", "zero_term", "transform"),
    *("missing", "lam", "refit", "select", "lams", "n_lams", "lam_min_ratio", "covariates"),
    *("moderators", "require", "forbid", "loss", "rule", "per_node", "penalty_weights", "solver"),
    *("tol", "max_iter", "device"),
)


def add_arguments(parser: ArgumentParser) -> None:
    """What to report about, what to add, where to write, and how to fit a table."""
    text = "a table to fit (.csv, .tsv or .parquet), or a model file"
    parser.add_argument("input", metavar="TABLE | MODEL", help=text)
    text = "the table of a model file"
    parser.add_argument("table", metavar="TABLE", nargs="?", help=text)
    text = "the report to write, usually ending in .html"
    add_output(parser, "FILE", text, required=True)
    parser.add_argument("--title", metavar="TEXT", help="the heading (default: the table's name)")
    group = parser.add_argument_group("what to add")
    text = "tests of all pairs, as `mixedgm test`"
    group.add_argument("--tests", action="store_true", help=text)
    text = "intervals from so many resamples, as `mixedgm bootstrap`"
    group.add_argument("--bootstrap", type=int, metavar="N", help=text)
    text = "a comparison of the groups that a column names, as `mixedgm compare`"
    group.add_argument("--groups", metavar="NAME", help=text)
    text = "leave out the check of the fit, which simulates 200 tables"
    group.add_argument("--no-check", action="store_true", help=text)
    add_node_group(group)
    parser.add_argument(
        "--lam",
        type=float,
        help="one penalty, instead of choosing among many (larger: fewer edges)",
    )
    add_fitting(parser, refit=True)
    parser.set_defaults(of_fits={name: parser.get_default(name) for name in _OF_FITS})


def run(args: Namespace, console: Console) -> None:
    """Fit or load, study, write the report."""
    from mixedgm.report.material import MOST_CHECKED

    is_table = Path(args.input).suffix.lower() in _TABLES
    inputs = [args.input, *([args.table] if args.table is not None else [])]
    check_model_output(args.output, *inputs)
    if is_table and args.table is not None:
        raise ParameterError(
            f"two tables were given, {quoted(args.input)} and {quoted(args.table)}: give one, or a "
            "model file and its table."
        )
    args.table = args.input if is_table else args.table
    frame, weights = (None, None) if args.table is None else read_columns(args)
    model = _fitted(args, frame, weights, console) if is_table else _loaded(args)
    studies = _studies(args, model, frame, weights, console)
    small = len(model.schema_.columns) <= MOST_CHECKED
    if frame is not None and small and not args.no_check:
        console.say("checking the fit with simulated tables; --no-check leaves this out")
    with console.announcing_compilation():
        model.report(
            args.output,
            frame,
            **studies,
            check=False if args.no_check else None,
            sample_weight=weights,
            groups=node_groups(args, model.schema_.names),
            title=args.title or Path(args.table or args.input).name,
            random_state=args.seed,
            n_jobs=args.jobs,
        )
    console.say(f"wrote {args.output}")


def _fitted(args: Namespace, frame: Any, weights: Any, console: Console) -> MixedGraphicalModel:
    return fitted_model(frame, weights, fit_options(args, frame), console)


def _loaded(args: Namespace) -> MixedGraphicalModel:
    """Read the model; options of a fit have nothing to do with it."""
    from mixedgm.estimator.model import load

    given = [name for name in _OF_FITS if getattr(args, name) != args.of_fits[name]]
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ParameterError(f"the model is fitted already: leave out {names}.")
    return load(args.input)


def _studies(
    args: Namespace, model: MixedGraphicalModel, frame: object, weights: Any, console: Console
) -> dict[str, Any]:
    """Return what the report has besides the model."""
    from mixedgm.estimator.groups import compare
    from mixedgm.studies.edges.tests import edge_tests
    from mixedgm.studies.resampling.bootstrap import bootstrap

    wanted = {"--tests": args.tests, "--bootstrap": args.bootstrap, "--groups": args.groups}
    asked = [name for name, value in wanted.items() if value]
    if asked and frame is None:
        raise ParameterError(f"{', '.join(asked)} needs the table: mixedgm report MODEL TABLE.")
    shared: dict[str, Any] = {"sample_weight": weights, "random_state": args.seed}
    shared["n_jobs"] = args.jobs
    watched: dict[str, Any] = {"verbose": int(console.shows_progress)}
    found: dict[str, Any] = {}
    if args.tests:
        found["tests"] = edge_tests(model, frame, **shared)
    if args.bootstrap is not None:
        found["bootstrap"] = bootstrap(model, frame, args.bootstrap, **shared, **watched)
    if args.groups is not None:
        own = model.get_params(deep=False)
        options = {name: value for name, value in own.items() if name not in (*shared, *watched)}
        if own["transforms"] == "auto":
            del options["transforms"]  # the default of one model, which is not that of compare
        found["comparison"] = compare(frame, args.groups, **options, **shared, **watched)
    return found
