"""Options about a table and its fit -> the table, the parameters of the estimator, and the fit."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

from mixedgm.base.errors import ParameterError, near_matches
from mixedgm.base.printable import quoted
from mixedgm.cli.console import Console
from mixedgm.cli.lists import LIST_RULE, cut_items, cut_list, listed
from mixedgm.cli.options import add_choice, add_jobs, add_list, add_number, add_quiet, add_seed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mixedgm.estimator.model import MixedGraphicalModel
    from mixedgm.table.parted.design import Reader
    from mixedgm.table.parted.sources import Source
    from mixedgm.table.read import Frame


_TRANSFORMS = ("auto", "nonparanormal", "nonparanormal-extrapolated", "none")
_OPTION_OF = {
    "levels": "--levels",
    "scores": "--level-scores",
    "thresholds": "--thresholds",
    "largest": "--largest",
    "zero_term": "--zero-term",
}
_OF_THE_MODEL = [
    "types",
    "levels",
    "level_scores",
    "thresholds",
    "largest",
    "zero_term",
    "transform",
    "forbid",
]
_PASSED_ON = [
    "n_lams",
    "lam_min_ratio",
    "loss",
    "rule",
    "penalty_weights",
    "solver",
    "tol",
    "max_iter",
    "device",
]


def add_columns(parser: ArgumentParser) -> None:
    """How the columns of a table are understood, and which are left out."""
    group = parser.add_argument_group("columns", fill(LIST_RULE, 76))
    add_list(
        group,
        "--types",
        "NAME=KIND,...",
        "kinds that differ from what `mixedgm check` shows: continuous, hurdle, ordinal, count or "
        "categorical; 'ordinal', 'categorical' or 'continuous' alone is for all numbers with 3 to "
        "10 distinct values",
    )
    text = "an ordinal column with its levels, from the lowest to the highest"
    add_list(group, "--levels", "NAME=A,B,...", text)
    text = "an ordinal column with a score for each level, instead of 0, 1, 2, ..."
    add_list(group, "--level-scores", "NAME=S,T,...", text)
    text = "thresholds of ordinal columns: free (one for each level, as by default) or quadratic"
    add_list(group, "--thresholds", "NAME=HOW,...", text)
    text = "count columns with the largest count that is possible"
    add_list(group, "--largest", "NAME=N,...", text)
    add_list(group, "--zero-term", "NAME,...", "count columns in which zero has a term of its own")
    add_list(
        group,
        "--transform",
        "HOW",
        "'auto' (default) replaces continuous columns that are far from normal by normal scores of "
        "their ranks, 'nonparanormal' all of them, 'none' none; NAME=nonparanormal,NAME=none,... "
        "decides about these columns; values that are drawn or imputed stay within the range of "
        "the data, unless it is 'nonparanormal-extrapolated'",
    )
    text = (
        "what to do about missing values: stop (default), drop the rows that have some, or model "
        "them and use every row (see `mixedgm missing`)"
    )
    add_choice(group, "--missing", "error", "drop", "model", text=text)
    add_list(group, "--drop", "NAME,...", "columns to leave out")
    group.add_argument(
        "--weights-column",
        metavar="NAME",
        help="column with the frequency of each row (2 = the row twice); not part of the model",
    )


def add_fitting(parser: ArgumentParser, select: str = "--select", *, refit: bool = False) -> None:
    """How a table is read and fitted; `select` is the option that names the criterion."""
    if refit:
        parser.add_argument(
            "--refit",
            action=BooleanOptionalAction,
            default="auto",
            help="estimate the chosen network without penalty (default: yes, unless the penalty "
            "is given or chosen by cv or holdout)",
        )
    add_columns(parser)
    group = parser.add_argument_group("fitting")
    _add_grid(group, select)
    _add_model_form(group)
    _add_solver(group)
    add_quiet(parser)


def _add_grid(group: Any, select: str) -> None:
    """Which penalties are tried, and how one is chosen."""
    group.add_argument(
        select,
        dest="select",
        metavar="NAME",
        help="how to choose the graph: local-fdr (default), fdr, ebic, bic, aic, cv, holdout, "
        "stars or stability",
    )
    add_seed(group, "which folds and subsamples are drawn")
    group.add_argument("--lams", metavar="L1,L2,...", help="the penalties to try")
    text = "how many down to --lam-min-ratio: their spacing"
    add_number(group, "--n-lams", default=50, text=text)
    text = "smallest penalty as a share of the one that leaves no edges"
    add_number(group, "--lam-min-ratio", default=0.01, metavar="R", text=text)


def _add_model_form(group: Any) -> None:
    """What may have an edge, and what is minimised."""
    text = "columns that predict the others and are not predicted themselves"
    add_list(group, "--covariates", "NAME,...", text)
    text = "columns that the edges between all others vary with; covariates as well"
    add_list(group, "--moderators", "NAME,...", text)
    text = "edges that are not penalised, so that they are always there"
    add_list(group, "--require", "A:B,...", text)
    add_list(group, "--forbid", "A:B,...", "edges that may not be there")
    group.add_argument(
        "--loss",
        default="pseudolikelihood",
        metavar="NAME",
        help="pseudolikelihood (default), likelihood, likelihood-mc (sampled, for dense graphs) or "
        "nodewise (a separate regression for every column)",
    )
    text = "edges of --loss nodewise: those in both regressions (default), or in either"
    add_choice(group, "--rule", "and", "or", text=text)
    group.add_argument(
        "--per-node",
        action="store_true",
        help="--loss nodewise: one penalty per column, by the ebic, bic or aic of its regression",
    )
    group.add_argument(
        "--weights",
        dest="penalty_weights",
        choices=("calibrated", "uniform", "adaptive"),
        default="calibrated",
        help="penalty weights of the edges: fair to every kind of edge (default), all the same, or "
        "smaller for edges that are large in a first fit",
    )


def _add_solver(group: Any) -> None:
    """How it is minimised."""
    group.add_argument(
        "--solver", default="auto", help="auto (default), proximal-newton or proximal-gradient"
    )
    text = "how far from optimal a solution may be (default: 1e-5)"
    group.add_argument("--tol", type=float, default=1e-5, help=text)
    text = "most iterations of the solver at each penalty"
    add_number(group, "--max-iter", default=1000, text=text)
    text = "where passes over the rows are made: cpu (default), or cuda for a GPU (cuda:1, ...)"
    group.add_argument("--device", metavar="NAME", default="cpu", help=text)
    add_jobs(group)


def read_columns(args: Namespace) -> tuple[Frame, NDArray[Any] | None]:
    """Read the table; leave out --drop and --weights-column, and return the latter's values."""
    from mixedgm.table.read import as_frame

    frame = as_frame(args.table)
    for name in listed(args.drop):
        frame, _ = without_named(frame, name, "--drop")
    if args.weights_column is None:
        return frame, None
    frame, column = without_named(frame, args.weights_column, "--weights-column")
    return frame, column.to_numpy()


def read_any(args: Namespace) -> tuple[Frame | Reader, Frame, Any]:
    """Read a table, or open one in parts: what is fitted, a frame with its columns, the weights.

    Weights of a table in parts are the name of their column.
    """
    from mixedgm.table.parted.design import LocalReader
    from mixedgm.table.parted.sources import WithoutColumns, source_of
    from mixedgm.table.read import as_frame

    source, scheduler = source_of(args.table), getattr(args, "scheduler", None)
    if source is None:
        if scheduler is not None:
            raise ParameterError(
                '--scheduler is for a table in parts, such as a folder or "part-*.parquet".'
            )
        frame, weights = read_columns(args)
        return frame, frame, weights
    drop = tuple(listed(args.drop))
    every = as_frame(next(source.frames())[1])
    for name in drop:
        every, _ = without_named(every, name, "--drop")
    if args.weights_column is not None:
        without_named(every, args.weights_column, "--weights-column")
    if scheduler is not None:
        return _on_workers(source, drop, scheduler), every, args.weights_column
    reader = LocalReader(WithoutColumns(source, drop) if drop else source)
    return reader, every, args.weights_column


def _on_workers(source: Source, drop: tuple[str, ...], scheduler: str) -> Reader:
    """Return a reader whose parts are read by the workers of a Dask cluster."""
    from mixedgm.table.parted.dask_tables import FilesOnWorkers, connected
    from mixedgm.table.parted.sources import ParquetFiles

    if not isinstance(source, ParquetFiles):
        raise ParameterError("--scheduler reads Parquet files without values in folder names.")
    return FilesOnWorkers(source, connected(scheduler), drop)


def add_scheduler(parser: ArgumentParser) -> None:
    """Which cluster reads and fits a table in parts."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="address of a Dask cluster, such as tcp://host:8786, whose workers read and fit the "
        "parts of the table; they see its files under the same names",
    )


def without_named(frame: Frame, name: str, option: str) -> tuple[Frame, Any]:
    """Return the frame without a column, and that column; `option` named it."""
    from mixedgm.table.read import without_column

    if name not in frame.positions:
        hint = near_matches(name, frame.names)
        raise ParameterError(f"{option} names {quoted(name)}, which is not a column; {hint}")
    return without_column(frame, name), frame.columns[frame.positions[name]]


def column_options(args: Namespace) -> dict[str, Any]:
    """Return `types`, `transforms` and `missing` as the library takes them."""
    transforms: Any = next(iter(listed(args.transform)), "auto")
    if transforms not in _TRANSFORMS or len(listed(args.transform)) > 1:
        wanted = "--transform takes NAME=nonparanormal."
        by_name = cut_items(args.transform, "=", wanted, last=True)
        transforms = {name: None if how == "none" else how for name, how in by_name}
    elif transforms == "none":
        transforms = None
    from mixedgm.table.checks.check import KINDS_OF_FEW_VALUES

    kinds = listed(args.types)
    types: Any = kinds[0] if kinds and kinds[0] in KINDS_OF_FEW_VALUES else _types(args) or None
    others = (args.levels, args.level_scores, args.thresholds, args.largest, args.zero_term)
    if isinstance(types, str) and (len(kinds) > 1 or any(others)):
        wanted = "is for all columns with few values, and has no other kinds beside it"
        raise ParameterError(
            f"--types {types} {wanted}; name the columns: --types NAME={types},..."
        )
    return {"types": types, "transforms": transforms, "missing": args.missing}


def refuse_column_options(args: Namespace) -> None:
    """Raise ParameterError for options about columns that a given model has already settled."""
    given = [f"--{name.replace('_', '-')}" for name in _OF_THE_MODEL if getattr(args, name, None)]
    given += ["--missing"] * (args.missing != "error")
    if given:
        raise ParameterError(f"the model knows its columns: leave out {', '.join(given)}.")


def _types(args: Namespace) -> dict[str, Any]:
    """Return kinds by column; what other options say about ordinal and count columns with them."""
    from mixedgm.table.declarations import Count, Ordinal

    kinds: dict[str, Any] = dict(
        cut_items(args.types, "=", "--types takes NAME=categorical.", last=True)
    )
    ordinal: dict[str, dict[str, Any]] = {}
    count: dict[str, dict[str, Any]] = {}
    for text in args.levels or ():
        name, levels = cut_list(text, "--levels takes NAME=A,B,...", ())
        numbers = [_number(level) for level in levels]
        ordinal.setdefault(name, {})["levels"] = levels if None in numbers else numbers
    for text in args.level_scores or ():
        wanted = "--level-scores takes numbers as NAME=0,1,4."
        name, scores = cut_list(text, wanted, ())
        ordinal.setdefault(name, {})["scores"] = [_needed(score, text, wanted) for score in scores]
    for name, how in cut_items(args.thresholds, "=", "--thresholds takes NAME=HOW.", last=True):
        ordinal.setdefault(name, {})["thresholds"] = how
    wanted = "--largest takes whole numbers as NAME=200."
    for name, largest in cut_items(args.largest, "=", wanted, last=True):
        number = _needed(largest, f"{name}={largest}", wanted)
        count.setdefault(name, {})["largest"] = int(number) if number.is_integer() else number
    for name in listed(args.zero_term):
        count.setdefault(name, {})["zero_term"] = True
    for kind, make, options in (("ordinal", Ordinal, ordinal), ("count", Count, count)):
        for name, given in options.items():
            if kinds.setdefault(name, kind) != kind:
                option = _OPTION_OF[next(iter(given))]
                said = kinds[name] if isinstance(kinds[name], str) else "ordinal"
                raise ParameterError(
                    f"{option} is for {kind} columns, and {quoted(name)} is to be {said}."
                )
            kinds[name] = make(**given)
    return kinds


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _needed(number: str, text: str, wanted: str) -> float:
    value = _number(number)
    if value is None:
        raise ParameterError(f"{wanted} Got {quoted(text)} instead.")
    return value


def fit_options(args: Namespace, frame: Frame) -> dict[str, Any]:
    """Return the parameters of the estimator."""
    options = column_options(args) | {name: getattr(args, name) for name in _PASSED_ON}
    options["select"] = with_per_node(args, chosen_criterion(args))
    options["n_jobs"] = args.jobs
    options["random_state"] = args.seed
    options["lams"] = _numbers(args.lams)
    options["covariates"] = listed(args.covariates) or None
    options["moderators"] = listed(args.moderators) or None
    for name in ("require", "forbid"):
        options[name] = pairs_of(args, name, frame)
    for name in ("lam", "refit"):
        if hasattr(args, name):
            options[name] = getattr(args, name)
    return options


def pairs_of(args: Namespace, name: str, frame: Frame) -> list[tuple[str, str]] | None:
    """Return the pairs of columns that an option names; None for none."""
    known, wanted = set(frame.names), f"--{name} takes two column names as A:B."
    return cut_items(getattr(args, name), ":", wanted, before=known, after=known) or None


def chosen_criterion(args: Namespace) -> str:
    """Return the name of the criterion: the default depends on what else was asked for."""
    if args.select is not None:
        return str(args.select)
    return "ebic" if args.per_node else "local-fdr"


def with_per_node(args: Namespace, criterion: Any) -> Any:
    """Return the criterion, one lam per column where --per-node says so."""
    if not args.per_node:
        return criterion
    from mixedgm.select.selection import NAMED

    criterion = NAMED.get(criterion, criterion) if isinstance(criterion, str) else criterion
    if isinstance(criterion, str) or not hasattr(criterion, "per_node"):
        raise ParameterError(f"--per-node belongs to ebic, bic and aic, not to {args.select}.")
    return replace(criterion, per_node=True)


def _numbers(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(item) for item in listed(text)]
    except ValueError:
        raise ParameterError(
            f"--lams takes numbers as 0.5,0.1. Got {quoted(text)} instead."
        ) from None


def fitted_model(
    table: Any, weights: Any, options: dict[str, Any], console: Console
) -> MixedGraphicalModel:
    """Fit a table, with a progress bar where someone watches."""
    from mixedgm.estimator.model import MixedGraphicalModel

    model = MixedGraphicalModel(**options, verbose=int(console.shows_progress))
    with console.announcing_compilation():
        model.fit(table, sample_weight=weights)
    model.verbose = 0  # the file should not depend on who watched
    return model
