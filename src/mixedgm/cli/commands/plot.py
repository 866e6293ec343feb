"""A model file -> a picture of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from mixedgm.base.errors import ParameterError
from mixedgm.cli.console import Console
from mixedgm.cli.options import (
    add_at,
    add_choice,
    add_model,
    add_network,
    add_output,
    model_at_values,
    network_options,
)
from mixedgm.cli.output import check_output, check_picture, draw

USAGE = "MODEL -o PICTURE [--kind KIND] [options]"
SUMMARY = "draw the network, the path or the parameters of a model"
EXPLANATION = """
Draw a model. The network has circles for continuous and squares for categorical columns, and wider
lines for stronger edges; from 20 columns on weak edges recede, and the legend says which. The path
shows how edges enter as the penalty falls. The parameters are one matrix with a block for every
pair of columns.
"""
EXAMPLES = """
mixedgm plot survey.mgm -o network.png
mixedgm plot survey.mgm -o network.svg --minimum 0.1 --edge-labels
mixedgm plot survey.mgm -o groups.png --node-group health=bmi,smoker
mixedgm plot survey.mgm -o path.svg --kind path
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The model, what to draw of it, and where to."""
    add_model(parser)
    add_at(parser)
    add_output(parser, "PICTURE", "the picture to write: .png, .svg or .pdf", required=True)
    text = (
        "the network (default), the edges against the penalty, all parameters as a matrix, "
        "or the scores from which the penalty was chosen"
    )
    add_choice(parser, "--kind", "network", "path", "parameters", "selection", text=text)
    add_network(parser)
    text = "width of the network: a column (3.5 inches) or a page (7.2) of a journal"
    parser.add_argument("--size", choices=("column", "page"), help=text)


def run(args: Namespace, console: Console) -> None:
    """Draw a model."""
    from mixedgm.pictures.canvas import draw_without_window

    check_output(args.output, args.model)
    check_picture(args.output)
    draw_without_window()
    fitted = model_at_values(args)
    style = network_options(args, fitted.schema.names)
    if args.size is not None:
        style["size"] = args.size
    if style and args.kind != "network":
        raise ParameterError(
            "the options of the picture of the network, such as --layout and --minimum, belong to "
            f"--kind network, not to {args.kind}."
        )
    draw(fitted, args.kind, args.output, **style)
    console.say(f"wrote {args.output}")
