"""Parsed arguments -> the table, its weights, and the options of the estimator."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from numpy.typing import NDArray

from mixedgm.cli.lists import cut_items, listed
from mixedgm.errors import ParameterError, near_matches
from mixedgm.printable import quoted
from mixedgm.table import Frame, as_frame

__all__ = [
    "column_options",
    "fit_options",
    "read_columns",
    "with_per_node",
    "without_column",
]


_PASSED_ON = (
    "select",
    "n_lams",
    "lam_min_ratio",
    "loss",
    "rule",
    "penalty_weights",
    "solver",
    "tol",
    "max_iter",
)


_TRANSFORMS = ("nonparanormal", "nonparanormal-extrapolated")


def read_columns(args: Namespace) -> tuple[Frame, NDArray[Any] | None]:
    """Read the table; leave out --drop and --weights-column, and return the latter's values."""
    frame = as_frame(args.table)
    for name in listed(args.drop):
        frame, _ = without_column(frame, name, "--drop")
    if args.weights_column is None:
        return frame, None
    frame, column = without_column(frame, args.weights_column, "--weights-column")
    return frame, column.to_numpy()


def without_column(frame: Frame, name: str, option: str) -> tuple[Frame, Any]:
    """Return the frame without a column, and that column; `option` named it."""
    if name not in frame.positions:
        hint = near_matches(name, frame.names)
        raise ParameterError(f"{option} names {quoted(name)}, which is not a column; {hint}")
    at = frame.positions[name]
    rest = [k for k in range(len(frame.names)) if k != at]
    names, columns = [frame.names[k] for k in rest], [frame.columns[k] for k in rest]
    return Frame(tuple(names), tuple(columns), frame.n_rows, frame.library), frame.columns[at]


def column_options(args: Namespace) -> dict[str, Any]:
    """Return `types`, `transforms` and `missing` as the library takes them."""
    transform: Any = next(iter(listed(args.transform)), None)
    if transform not in _TRANSFORMS or len(listed(args.transform)) > 1:
        wanted = "--transform takes NAME=nonparanormal."
        by_name = cut_items(args.transform, "=", wanted, last=True)
        transform = {name: None if how == "none" else how for name, how in by_name}
    types = cut_items(args.types, "=", "--types takes NAME=categorical.", last=True)
    return {
        "types": dict(types) or None,
        "transforms": transform or None,
        "missing": args.missing,
    }


def fit_options(args: Namespace, frame: Frame) -> dict[str, Any]:
    """Return the parameters of the estimator."""
    options = column_options(args) | {name: getattr(args, name) for name in _PASSED_ON}
    options["select"] = with_per_node(args, args.select)
    options["n_jobs"] = args.jobs
    options["random_state"] = args.seed
    options["lams"] = _numbers(args.lams)
    options["covariates"] = listed(args.covariates) or None
    options["moderators"] = listed(args.moderators) or None
    for name in ("require", "forbid"):
        known = set(frame.names)
        wanted = f"--{name} takes two column names as A:B."
        pairs = cut_items(getattr(args, name), ":", wanted, before=known, after=known)
        options[name] = pairs or None
    for name in ("lam", "refit"):
        if hasattr(args, name):
            options[name] = getattr(args, name)
    return options


def with_per_node(args: Namespace, criterion: Any) -> Any:
    """Return the criterion, one lam per column where --per-node says so."""
    if not args.per_node:
        return criterion
    from dataclasses import replace

    from mixedgm.path.selection import NAMED

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
