"""A table and a column of groups -> a folder with models, tables and pictures of a comparison."""

from __future__ import annotations

from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixedgm.atomic import write_text
from mixedgm.cli.bootstrap import INTERRUPTED, check_checkpoint, columns_of
from mixedgm.cli.console import Console
from mixedgm.cli.output import make_folder, prepare_drawing, save_picture, write_columns
from mixedgm.errors import ParameterError

if TYPE_CHECKING:
    from mixedgm.studies.compare_result import GroupComparison
    from mixedgm.views.comma_separated import Formulas

__all__ = ["run_compare"]


def run_compare(args: Namespace, console: Console) -> int:
    """Fit, shuffle, write everything, print the summary; 130 when Ctrl-C cut it short."""
    from mixedgm.cli.picture_arguments import network_options
    from mixedgm.cli.reading import fit_options, read_columns
    from mixedgm.estimator import compare

    check_checkpoint(args, "permutations")
    folder = make_folder(args.output)
    frame, weights = read_columns(args)
    style = network_options(args, [n for n in frame.names if n not in (args.groups, args.blocks)])
    console.keeps_partial = True
    with console.announcing_compilation():
        found = compare(
            frame,
            args.groups,
            penalty=args.penalty,
            blocks=args.blocks,
            n_perm=args.permutations,
            alpha=args.alpha,
            sample_weight=weights,
            checkpoint=args.checkpoint,
            verbose=int(console.shows_progress),
            **fit_options(args, frame),
        )
    _write_tables(found, folder, args.formulas)
    _write_pictures(found, folder, style, console)
    if not args.quiet:
        console.out(found.summary())
    console.say(f"wrote {folder}")
    return INTERRUPTED if console.interrupted else 0


def _write_tables(found: GroupComparison, folder: Path, formulas: Formulas) -> None:
    # Labels may hold anything, so the files are numbered; groups.csv says which is which.
    files = [f"group{k + 1}.mgm" for k in range(len(found.groups))]
    for file, model in zip(files, found.models.values(), strict=True):
        model.save(folder / file)
    groups = columns_of(found.group_table())
    write_columns({**groups, "model": files}, folder / "groups.csv", formulas)
    for name in ("edges", "tests", "degenerate"):
        write_columns(columns_of(getattr(found, name)()), folder / f"{name}.csv", formulas)
    write_text(folder / "summary.txt", f"{found.summary()}\n")


def _write_pictures(
    found: GroupComparison, folder: Path, style: dict[str, Any], console: Console
) -> None:
    if find_spec("matplotlib") is None:
        console.note('no pictures: matplotlib is missing. To fix: pip install "mixedgm[plot]"')
        return
    prepare_drawing()
    save_picture(found.plot_differences(), folder / "differences.png")
    try:
        networks = found.plot(**style)
    except ParameterError as error:  # too many columns for one picture; all else is written
        console.note(f"no picture of the networks: {error}")
    else:
        save_picture(next(iter(networks.values())).ax, folder / "networks.png")
