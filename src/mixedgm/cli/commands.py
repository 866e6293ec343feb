"""Parsed arguments of one command -> the library's work, and its views as output."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixedgm.cli.console import Console, in_options
from mixedgm.cli.output import (
    check_edges,
    check_model_output,
    check_output,
    check_picture,
    deliver,
    draw,
    prepare_drawing,
)
from mixedgm.errors import ParameterError, finding_lines
from mixedgm.fitted import FittedModel

if TYPE_CHECKING:
    from mixedgm.estimator import MixedGraphicalModel

__all__ = [
    "bootstrap",
    "check",
    "compare",
    "demo",
    "edges",
    "fit",
    "impute",
    "path",
    "plot",
    "predict",
    "query",
    "sample",
    "select",
]


def check(args: Namespace, console: Console) -> int:
    """Print the schema and the findings of a table; 2 when it cannot be fitted."""
    from mixedgm.cli.reading import column_options, read_columns
    from mixedgm.table import check_table

    frame, weights = read_columns(args)
    checked = check_table(frame, sample_weight=weights, **column_options(args))
    n_rows, n_columns = frame.shape
    size = f"{n_rows:,} row{'' if n_rows == 1 else 's'}"
    console.out(f"{size}, {n_columns:,} column{'' if n_columns == 1 else 's'}\n")
    if checked.schema.columns:
        console.out(f"{checked.schema}\n")
    errors = [finding for finding in checked.findings if finding.severity == "error"]
    for line in finding_lines(checked.findings, lambda each: f"{each.severity}: {each}"):
        console.out(in_options(line))
    if all(finding.severity == "note" for finding in checked.findings):
        console.out("nothing wrong: ready to fit")
    if errors:
        things = "1 error has" if len(errors) == 1 else f"{len(errors):,} errors have"
        console.error(f"{things} to be put right before this table can be fitted", kind="")
    return 2 if errors else 0


def fit(args: Namespace, console: Console) -> None:
    """Fit a table and write the model."""
    check_model_output(args.output, args.table)
    model = _fitted(args, console)
    # First what may need the joint distribution: its node terms are then part of the file.
    summary = "" if args.quiet else str(model.summary())
    model.save(args.output)
    if summary:
        console.out(summary)
    console.say(f"wrote {args.output}")


def select(args: Namespace, console: Console) -> int:
    """Choose the penalty and list the scores; 130 when Ctrl-C cut it short."""
    from mixedgm.cli.selecting import run_select

    return run_select(args, console)


def path(args: Namespace, console: Console) -> int:
    """Solve a path and list it; 130 when Ctrl-C cut it short."""
    from mixedgm.views.tables import path_columns
    from mixedgm.views.text import lam_text

    check_output(args.output, args.table)
    console.keeps_partial = True
    model = _fitted(args, console, whole_grid=True)
    deliver(
        path_columns(model.fitted_), args, console, lambda width: _path_text(model.fitted_, width)
    )
    report = model.fitted_.report
    console.note(f"{report.criterion} chooses lam = {lam_text(report.lam)}")
    return 130 if console.interrupted else 0


def _path_text(fitted: FittedModel, width: int) -> str:
    """The columns of a path that fit on a terminal, with an arrow at the chosen lam."""
    from mixedgm.views.tables import chosen_columns, path_columns
    from mixedgm.views.text import table_text

    columns = path_columns(fitted)
    short = {name: columns[name] for name in ("lam", "n_edges", "objective", "kkt", "seconds")}
    if isinstance(fitted.report.lam, tuple):
        return table_text({**short, "chosen for": chosen_columns(fitted)}, width)
    for name, scores in list(fitted.scores.items())[:1]:
        short[name] = [f"{score:.2f}" for score in scores]
    short["chosen"] = ["<--" if lam == fitted.report.lam else "" for lam in columns["lam"]]
    return table_text(short, width)


def _fitted(args: Namespace, console: Console, *, whole_grid: bool = False) -> MixedGraphicalModel:
    from mixedgm.cli.reading import fit_options, read_columns
    from mixedgm.estimator import MixedGraphicalModel
    from mixedgm.path.selection import NAMED, WholeGrid

    frame, weights = read_columns(args)
    options = fit_options(args, frame)
    if whole_grid and options["select"] in NAMED:
        options["select"] = NAMED[options["select"]]
    if whole_grid and not isinstance(options["select"], str):
        options["select"] = WholeGrid(options["select"])
    model = MixedGraphicalModel(**options, verbose=int(console.shows_progress))
    with console.announcing_compilation():
        model.fit(frame, sample_weight=weights)
    model.verbose = 0  # the file should not depend on who watched
    return model


def edges(args: Namespace, console: Console) -> None:
    """List the edges of a model."""
    from mixedgm.views import write
    from mixedgm.views.tables import edges_columns
    from mixedgm.views.text import edges_text, lam_text, weights_text

    check_output(args.output, args.model)
    check_edges(args.output, args.format)
    fitted = _loaded(args)
    if not fitted.edges:
        where = fitted.report.at or f"lam = {lam_text(fitted.report.lam)}"
        console.note(f"no edges: at {where} all columns are independent")
    elif fitted.report.was_fitted:
        console.note(f"weights are {weights_text(fitted.report.refitted, fitted.report.lam)}")
    if args.output is not None and Path(args.output).suffix.lower() == ".graphml":
        write(fitted, args.output)
        console.say(f"wrote {args.output}")
        return
    columns = edges_columns(fitted, shrunken=args.shrunken)
    beside = columns["shrunken_weight"] if args.shrunken else None
    deliver(columns, args, console, lambda width: edges_text(fitted.edges, width, beside))


def _loaded(args: Namespace) -> FittedModel:
    """The model of a file; where --at names values of its moderators, the model there."""
    from mixedgm.store import load

    fitted = load(args.model)[0]
    if args.at is None:
        return fitted
    from mixedgm.cli.asking import known_values
    from mixedgm.studies.conditioned import model_at

    return model_at(fitted, known_values(args.at, fitted.schema, "--at"))


def plot(args: Namespace, console: Console) -> None:
    """Draw a model."""
    from mixedgm.cli.picture_arguments import network_options

    check_output(args.output, args.model)
    check_picture(args.output)
    prepare_drawing()
    fitted = _loaded(args)
    style = network_options(args, fitted.schema.names)
    if style and args.kind != "network":
        raise ParameterError(
            "the options of the picture of the network, such as --layout and --minimum, belong to "
            f"--kind network, not to {args.kind}."
        )
    draw(fitted, args.kind, args.output, **style)
    console.say(f"wrote {args.output}")


def predict(args: Namespace, console: Console) -> None:
    """Predict columns of a table."""
    import narwhals as nw

    from mixedgm.cli.asking import usable_model
    from mixedgm.table import read_table

    check_output(args.output, args.model, args.table)
    model = usable_model(args, console)
    frame: Any = read_table(args.table)
    if args.proba:
        if args.column is None:
            raise ParameterError("--proba needs to know of which column: add --column NAME.")
        predicted = model.predict_proba(frame, args.column, unseen=args.unseen)
    else:
        columns = None if args.column is None else [args.column]
        predicted = model.predict(frame, columns, unseen=args.unseen)
    deliver(nw.from_native(predicted, eager_only=True).to_dict(as_series=False), args, console)


def bootstrap(args: Namespace, console: Console) -> int:
    """Resample the table of a model; 130 when Ctrl-C cut it short."""
    from mixedgm.cli.bootstrap import run_bootstrap

    return run_bootstrap(args, console)


def query(args: Namespace, console: Console) -> None:
    """Answer a question about the distribution of columns."""
    from mixedgm.cli.asking import run_query

    run_query(args, console)


def sample(args: Namespace, console: Console) -> None:
    """Draw new rows."""
    from mixedgm.cli.asking import run_sample

    run_sample(args, console)


def impute(args: Namespace, console: Console) -> None:
    """Fill the missing cells of a table."""
    from mixedgm.cli.asking import run_impute

    run_impute(args, console)


def compare(args: Namespace, console: Console) -> int:
    """Compare the networks of groups; 130 when Ctrl-C cut it short."""
    from mixedgm.cli.comparing import run_compare

    return run_compare(args, console)


def demo(args: Namespace, console: Console) -> None:
    """Do the whole job on the bundled survey."""
    from mixedgm.cli.demo import run_demo

    run_demo(Path(args.output), console)
