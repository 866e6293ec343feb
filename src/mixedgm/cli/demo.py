"""The bundled survey -> its network on the terminal and a folder of files to look at."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mixedgm.atomic import write_bytes
from mixedgm.cli.console import Console
from mixedgm.cli.output import draw, make_folder, prepare_drawing

if TYPE_CHECKING:
    from mixedgm.estimator import MixedGraphicalModel

__all__ = ["run_demo"]

_PICTURES = {
    "network": "circles: continuous columns, squares: categorical ones",
    "path": "how the edges enter as the penalty falls; dashed: the chosen one",
    "parameters": "all parameters, one block for every pair of columns",
}


def run_demo(folder: Path, console: Console) -> None:
    """Fit the wage survey, print what was found and write it into a folder."""
    from mixedgm.datasets import load_wage

    make_folder(folder)
    console.out("A wage survey: 3,000 men in the Middle Atlantic region, 2003 to 2009.")
    console.out("Which of its columns are directly related, given all the others?\n")
    console.out(f"{_fit_and_print(load_wage(), folder, console)}")


def _fit_and_print(table: object, folder: Path, console: Console) -> str:
    from mixedgm.estimator import MixedGraphicalModel
    from mixedgm.views.text import edges_text

    model = MixedGraphicalModel(verbose=int(console.shows_progress))
    started = time.perf_counter()
    with console.announcing_compilation():
        model.fit(table)
    seconds = time.perf_counter() - started
    model.verbose = 0
    fitted, n = model.fitted_, len(model.schema_.columns)
    console.out(f"{fitted.schema}\n")
    console.out(
        f"{len(fitted.edges)} of {n * (n - 1) // 2} possible edges at "
        f"lam = {model.lam_:.3g}, which {fitted.report.criterion} chose\n"
        f"from {len(fitted.scores['ebic'])} values in {seconds:.1f} s:\n"
    )
    console.out(f"{edges_text(fitted.edges, console.width)}\n")
    return _closing(folder, _write_all(model, folder, console))


def _write_all(model: MixedGraphicalModel, folder: Path, console: Console) -> dict[str, str]:
    """Write the files; return their names and what they are."""
    from mixedgm.datasets.bundled import WAGE

    written = {}
    if find_spec("matplotlib") is None:
        console.note('no pictures: matplotlib is missing. To fix: pip install "mixedgm[plot]"')
    else:
        prepare_drawing()
        for kind, text in _PICTURES.items():
            draw(model.fitted_, kind, folder / f"{kind}.png")
            written[f"{kind}.png"] = text
    model.export(folder / "edges.csv")
    model.save(folder / "wage.mgm")
    write_bytes(folder / WAGE.file, WAGE.content().getvalue())
    return written | {
        "edges.csv": "the edges above",
        "wage.mgm": "the model",
        WAGE.file: "the table",
    }


def _closing(folder: Path, written: dict[str, str]) -> str:
    lines = [f"Written to {folder}/:"]
    lines += [f"  {name.ljust(16)} {text}" for name, text in written.items()]
    lines += [
        "",
        "Try next:",
        f"  mixedgm edges {folder}/wage.mgm --format json",
        f"  mixedgm plot {folder}/wage.mgm --layout circle -o circle.png",
        f"  mixedgm predict {folder}/wage.mgm {folder}/wage.parquet --column jobclass --proba",
        "  mixedgm fit your-table.csv -o your-model.mgm",
    ]
    return "\n".join(lines)
