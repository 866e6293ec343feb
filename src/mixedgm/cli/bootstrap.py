"""A model file and its table -> a folder with the tables and pictures of a bootstrap."""

from __future__ import annotations

from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixedgm.atomic import write_text
from mixedgm.cli.console import Console
from mixedgm.cli.output import make_folder, prepare_drawing, save_picture, write_columns
from mixedgm.errors import ParameterError
from mixedgm.printable import quoted

if TYPE_CHECKING:
    from mixedgm.studies.bootstrap_result import Bootstrap
    from mixedgm.views.comma_separated import Formulas

__all__ = ["check_checkpoint", "columns_of", "run_bootstrap"]

INTERRUPTED = 130
_TABLES = {
    "nonparametric": ("edges", "parameters", "differences", "centrality"),
    "case-dropping": ("stability", "cs_coefficient"),
}


def run_bootstrap(args: Namespace, console: Console) -> int:
    """Resample, write everything, print the summary; 130 when Ctrl-C cut it short."""
    from mixedgm.cli.reading import read_columns
    from mixedgm.estimator import load
    from mixedgm.studies.bootstrap import bootstrap

    check_checkpoint(args, "resamples")
    folder = make_folder(args.output)
    model = load(args.model)
    frame, weights = read_columns(args)
    console.keeps_partial = True
    with console.announcing_compilation():
        found = bootstrap(
            model,
            frame,
            args.n_boot,
            args.kind,
            args.select,
            args.groups,
            sample_weight=weights,
            n_jobs=args.jobs,
            random_state=args.seed,
            checkpoint=args.checkpoint,
            verbose=int(console.shows_progress),
        )
    _write(found, folder, args.formulas, console)
    if not args.quiet:
        console.out(found.summary())
    console.say(f"wrote {folder}")
    return INTERRUPTED if console.interrupted else 0


def check_checkpoint(args: Namespace, what: str) -> None:
    """Refuse --resume without a folder, and a folder with work without --resume."""
    from mixedgm.checkpoint import holds_work

    if args.checkpoint is None:
        if args.resume:
            raise ParameterError("--resume needs --checkpoint FOLDER, which says what to resume.")
        return
    if holds_work(args.checkpoint) and not args.resume:
        raise ParameterError(
            f"{quoted(args.checkpoint)} already holds finished {what}; "
            "add --resume to go on with them, or give another folder."
        )


def _write(found: Bootstrap, folder: Path, formulas: Formulas, console: Console) -> None:
    for name in (*_TABLES[found.kind], "degenerate"):
        write_columns(columns_of(getattr(found, name)()), folder / f"{name}.csv", formulas)
    write_text(folder / "summary.txt", f"{found.summary()}\n")
    if find_spec("matplotlib") is None:
        console.note('no pictures: matplotlib is missing. To fix: pip install "mixedgm[plot]"')
        return
    prepare_drawing()
    if found.kind == "case-dropping":
        save_picture(found.plot_stability(), folder / "stability.png")
        return
    save_picture(found.plot_edges(), folder / "edges.png")
    save_picture(found.plot_differences(), folder / "differences.png")
    for measure in ("strength", "closeness", "betweenness"):
        save_picture(found.plot_centrality(measure), folder / f"{measure}.png")


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """The columns of a frame of any library."""
    import narwhals as nw

    found: dict[str, list[Any]] = nw.from_native(frame, eager_only=True).to_dict(as_series=False)
    return found
