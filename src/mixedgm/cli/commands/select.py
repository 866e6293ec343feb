"""A table and a criterion -> the scores of all penalties, and what was chosen."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixedgm.base.errors import ParameterError
from mixedgm.cli.console import Console
from mixedgm.cli.fitting_options import (
    add_fitting,
    chosen_criterion,
    fit_options,
    fitted_model,
    read_columns,
    with_per_node,
    without_named,
)
from mixedgm.cli.options import (
    add_checkpoint,
    add_formulas,
    add_output,
    add_table,
    check_checkpoint,
)
from mixedgm.cli.output import check_model_output, check_output, check_picture, draw, write_columns

if TYPE_CHECKING:
    from mixedgm.estimator.model import MixedGraphicalModel
    from mixedgm.fit.fitted import FittedModel
    from mixedgm.table.read import Columns

USAGE = "TABLE [--criterion NAME] [-o MODEL] [options]"
SUMMARY = "choose the penalty by a criterion and list all scores"
EXPLANATION = """
Follow the path of penalties from the largest down, score each, and mark the one that is chosen.
local-fdr and fdr test every pair and keep those that pass: the mark is where the path is nearest to
that graph. Information criteria (ebic, bic, aic) weigh fit against the number of parameters; cv
and holdout predict rows that were not fitted; stars and stability ask which edges come back in
subsamples. The same --seed gives the same answer, whatever --jobs is.
"""
EXAMPLES = """
mixedgm select survey.csv
mixedgm select survey.csv --criterion cv --folds 10 --plot cv.png
mixedgm select survey.csv --loss nodewise --per-node --plot columns.png
mixedgm select survey.csv --criterion stability --max-false 2 -o stable.mgm
"""

# Option -> type, metavar and help.
_OPTIONS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "limit": (float, "P", "local-fdr: largest probability that an edge is false (default: 0.3)"),
    "level": (float, "Q", "fdr: expected share of false edges (default: 0.1)"),
    "gamma": (float, "G", "ebic: extra price of an edge, 0 to 1 (default: 0.5)"),
    "folds": (int, "K", "cv: number of folds (default: 5)"),
    "groups": (
        str,
        "NAME",
        "cv: column that says which rows belong together; not part of the model",
    ),
    "fraction": (float, "F", "holdout: share of the rows held out (default: 0.2)"),
    "beta": (float, "B", "stars: instability that is allowed (default: 0.05)"),
    "subsamples": (int, "N", "stars, stability: how many (default: 20 and 100)"),
    "threshold": (
        float,
        "T",
        "stability: share of the half-samples that must have an edge (default: 0.75)",
    ),
    "max-false": (float, "V", "stability: largest expected number of false edges (default: 1)"),
}
# Option -> criterion -> the parameter of the criterion.
_BELONGS = {
    "limit": {"local-fdr": "limit"},
    "level": {"fdr": "level"},
    "gamma": {"ebic": "gamma"},
    "folds": {"cv": "cv"},
    "groups": {"cv": "groups"},
    "lowest": {"cv": "one_se"},
    "fraction": {"holdout": "fraction"},
    "beta": {"stars": "beta"},
    "subsamples": {"stars": "n_subsamples", "stability": "n_subsamples"},
    "threshold": {"stability": "threshold"},
    "max_false": {"stability": "max_false"},
    "checkpoint": dict.fromkeys(("cv", "stars", "stability"), "checkpoint"),
}
_SCORES = (".csv", ".json")


def add_arguments(parser: ArgumentParser) -> None:
    """The table, the criterion, how to fit, and what to write."""
    add_table(parser)
    add_output(parser, "MODEL", "write the model with the chosen penalty")
    parser.add_argument("--scores", metavar="FILE", help="write all scores (.csv or .json)")
    parser.add_argument("--plot", metavar="PICTURE", help="draw the scores (.png, .svg or .pdf)")
    add_formulas(parser)
    group = parser.add_argument_group("criterion", "Each option belongs to one criterion.")
    for option, (kind, metavar, text) in _OPTIONS.items():
        group.add_argument(f"--{option}", type=kind, metavar=metavar, help=text)
    group.add_argument(
        "--lowest",
        action="store_true",
        help="cv: take the lowest mean, not the sparsest within one standard error of it",
    )
    add_checkpoint(group, "cv, stars, stability: where finished fits are kept")
    add_fitting(parser, "--criterion", refit=True)


def run(args: Namespace, console: Console) -> None:
    """Choose, print the scores, write what was asked for."""
    from mixedgm.pictures.canvas import draw_without_window
    from mixedgm.results.text import lam_text

    check_model_output(args.output, args.table)
    for output in (args.scores, args.plot):
        check_output(output, args.table)
    if args.scores is not None and Path(args.scores).suffix.lower() not in _SCORES:
        wanted = f"a file name that ends in {' or '.join(_SCORES)}"
        raise ParameterError.must_be("the file of scores", wanted, args.scores)
    if args.plot is not None:
        check_picture(args.plot)
        draw_without_window()
    check_checkpoint(args, "folds or subsamples")
    console.keeps_partial = True
    model = _chosen(args, console)
    fitted = model.fitted_
    console.out(_text(fitted, console.width))
    lam = lam_text(fitted.report.lam)
    console.out(f"\n{fitted.report.criterion}: lam = {lam}, {len(fitted.edges)} edges")
    for note in fitted.report.notes:
        if not (console.interrupted and note.startswith("interrupted")):  # said already
            console.note(note)
    if args.scores is not None:
        write_columns(_columns(fitted), args.scores, args.formulas)
        console.say(f"wrote {args.scores}")
    if args.plot is not None:
        draw(fitted, "selection", args.plot)
        console.say(f"wrote {args.plot}")
    if args.output is not None:
        model.save(args.output)
        console.say(f"wrote {args.output}")


def _chosen(args: Namespace, console: Console) -> MixedGraphicalModel:
    _check_options(args)
    frame, weights = read_columns(args)
    groups = None
    if args.groups is not None:
        frame, column = without_named(frame, args.groups, "--groups")
        groups = column.to_numpy()
    criterion = with_per_node(args, _criterion(args, groups))
    options = fit_options(args, frame) | {"select": criterion}
    return fitted_model(frame, weights, options, console)


def _check_options(args: Namespace) -> None:
    """Refuse options of other criteria than the chosen one, which they may choose by themselves."""
    values = {option: getattr(args, option) for option in _BELONGS}
    given = [option for option, value in values.items() if value is not None and value is not False]
    if args.select is None and given:
        args.select = next(iter(_BELONGS[given[0]]))
    args.select = chosen_criterion(args)
    for option in given:
        owners = _BELONGS[option]
        if args.select not in owners:
            raise ParameterError(
                f"--{option.replace('_', '-')} belongs to --criterion {' or '.join(owners)}, "
                f"not to {args.select}."
            )


def _criterion(args: Namespace, groups: object) -> Any:
    """The criterion by its name, with the options that were given."""
    from mixedgm.select.selection import NAMED

    given: dict[str, Any] = {}
    for option, owners in _BELONGS.items():
        value = getattr(args, option)
        if value is not None and option != "lowest":
            given[owners[args.select]] = groups if option == "groups" else value
    if args.lowest:
        given["one_se"] = False
    if not given:
        return args.select
    return replace(NAMED[args.select], **given)  # type: ignore[type-var]


def _columns(fitted: FittedModel) -> Columns:
    """lam, number of edges, all scores, and whether, or for which columns, it was chosen."""
    from mixedgm.results.tables import chosen_columns, path_of, score_columns

    path = path_of(fitted)
    columns: dict[str, Any] = {"lam": path.lams, "n_edges": path.n_edges}
    columns |= score_columns(fitted)
    if isinstance(fitted.report.lam, tuple):
        return columns | {"chosen_for": chosen_columns(fitted)}
    reasons = fitted.report.not_considered
    if reasons:
        columns["not_considered"] = [reason or None for reason in reasons]
    return columns | {"chosen": path.lams == fitted.report.lam}


def _text(fitted: FittedModel, width: int) -> str:
    """The columns that decide, with an arrow at the chosen lam."""
    import numpy as np

    from mixedgm.results.text import table_text

    if isinstance(fitted.report.lam, tuple):
        return table_text(_per_node(fitted), width)
    columns = _columns(fitted)
    shown: dict[str, Any] = {"lam": columns["lam"], "n_edges": columns["n_edges"]}
    name = next(iter(fitted.scores))
    for each in (name, f"{name}_se", f"{name}_limit", f"{name}_stable", "degrees_of_freedom"):
        if each in columns:
            digits = 4 if np.nanmax(np.abs(np.ma.masked_invalid(columns[each]))) < 1e3 else 2
            shown[each] = [f"{value:.{digits}f}".rstrip("0").rstrip(".") for value in columns[each]]
    shown["chosen"] = ["<--" if is_it else "" for is_it in columns["chosen"]]
    if "not_considered" in columns:
        shown["not considered"] = columns["not_considered"]
    return table_text(shown, width)


def _per_node(fitted: FittedModel) -> Columns:
    """The lam of every column that has one, with its predictors, parameters and lowest score."""
    import numpy as np

    name, scores = next(iter(fitted.scores.items()))
    by_column = np.array(fitted.report.lam)
    targets = np.flatnonzero(~np.isnan(by_column))
    names = [fitted.schema.names[k] for k in targets]
    best = [int(np.argmin(scores[:, k])) for k in targets]
    neighbours = fitted.n_predictors
    return {
        "column": names,
        "lam": by_column[targets],
        "neighbours": [neighbours[each] for each in names],
        "parameters": fitted.scores["degrees_of_freedom"][best, targets].astype(np.int64),
        name: [f"{value:.2f}" for value in scores[best, targets]],
    }
