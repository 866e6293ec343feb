"""The bundled survey -> its network on the terminal and a folder of files to look at."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from mixedgm.base.atomic import write_bytes
from mixedgm.cli.console import Console
from mixedgm.cli.fitting_options import fitted_model
from mixedgm.cli.options import add_output, add_quiet
from mixedgm.cli.output import can_draw, draw, make_folder

if TYPE_CHECKING:
    from mixedgm.estimator.model import MixedGraphicalModel

USAGE = "[-o FOLDER] [--quiet]"
SUMMARY = "fit a bundled survey, print the edges, write a report and pictures"
EXPLANATION = """
Do the whole job on 3,000 rows of a wage survey that comes with the package: show its columns, learn
the network, list the edges, and write a report to open in a browser, the model, the edges and three
pictures into a folder. It takes some seconds.
"""
EXAMPLES = """
mixedgm demo
mixedgm demo -o somewhere-else
"""

_PICTURES = {
    "network": "circles: continuous columns, squares: categorical ones",
    "path": "how the edges enter as the penalty falls; dashed: the chosen one",
    "parameters": "all parameters, one block for every pair of columns",
}


def add_arguments(parser: ArgumentParser) -> None:
    """Where to write."""
    add_output(parser, "FOLDER", "where to write (default: mixedgm-demo)", default="mixedgm-demo")
    add_quiet(parser)


def run(args: Namespace, console: Console) -> None:
    """Fit the wage survey, print the network and write it into a folder."""
    from mixedgm.datasets import load_wage

    folder = make_folder(Path(args.output))
    console.out("A wage survey: 3,000 men in the Middle Atlantic region, 2003 to 2009.")
    console.out("Which of its columns are directly related, given all the others?\n")
    table = load_wage()
    model = _fit_and_print(table, console)
    console.out(_closing(folder, _write_all(model, table, folder, console)))


def _fit_and_print(table: object, console: Console) -> MixedGraphicalModel:
    from mixedgm.results.text import edges_text

    started = time.perf_counter()
    model = fitted_model(table, None, {}, console)
    seconds = time.perf_counter() - started
    fitted, n = model.fitted_, len(model.schema_.columns)
    console.out(f"{fitted.schema}\n")
    console.out(
        f"{len(fitted.edges)} of {n * (n - 1) // 2} possible edges, found in {seconds:.1f} s, with "
        f"a {fitted.report.criterion};\n{fitted.expected_false:.2g} of them expected to be false:\n"
    )
    console.out(f"{edges_text(fitted.edges, console.width)}\n")
    return model


def _write_all(
    model: MixedGraphicalModel, table: object, folder: Path, console: Console
) -> dict[str, str]:
    """Write the files; return their names and what they are."""
    from mixedgm.datasets.bundled import WAGE

    console.say("Writing the report, for which tables are drawn from the model ...")
    model.report(folder / "wage.html", table, title="Wage survey of 3,000 men")
    written = {"wage.html": "the report, with the graph alive: open it in a browser"}
    if can_draw(console):
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
