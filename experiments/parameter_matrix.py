"""The symmetric parameter matrix of a small mixed model and its three kinds of blocks.

The paper's first figure: three continuous columns, two categorical ones with two and three levels.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

import mixedgm as mg
from experiments.common import BLACK, GREEN, PURPLE, Run, start

COLUMNS = {"x1": "continuous", "x2": "continuous", "x3": "continuous", "y1": 2, "y2": 3}
BLOCKS = {  # what it is: first row and column, height and width of the block, and of one edge in it
    "B: a number βₛₜ for two continuous columns": (GREEN, (0, 0, 3, 3), (1, 0, 1, 1)),
    "ρ: a vector ρₛⱼ(·) for a continuous and a categorical one": (
        PURPLE,
        (0, 3, 3, 5),
        (0, 5, 1, 3),
    ),
    "φ: a matrix φᵣⱼ(·, ·) for two categorical ones": (BLACK, (3, 3, 5, 5), (3, 5, 2, 3)),
}


def model() -> mg.MixedGraphicalModel:
    """All pairs are related, so that every block has something to show."""
    rng = np.random.default_rng(1)
    between = np.zeros((5, 5))
    between[:2, 2:] = rng.normal(scale=0.5, size=(2, 3))
    return mg.from_params(
        COLUMNS,
        {
            "precision": [[1.0, 0.3, -0.2], [0.3, 1.0, 0.25], [-0.2, 0.25, 1.0]],
            "category_shift": rng.normal(scale=0.4, size=(3, 5)),
            "cat_interaction": between + between.T,
        },
    )


def outline(ax: Axes) -> None:
    """Frame the three blocks, and with a thick line the parameters of one edge in each."""
    for name, (colour, block, edge) in BLOCKS.items():
        for (row, column, height, width), line in ((block, 1.5), (edge, 4.0)):
            inset = 0.05 if line < 2.0 else 0.12
            corner = (column - 0.5 + inset, row - 0.5 + inset)
            frame = Rectangle(corner, width - 2 * inset, height - 2 * inset, fill=False)
            frame.set(edgecolor=colour, linewidth=line, label=name if line > 2.0 else None)
            ax.add_patch(frame)
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.1), handlelength=1.2)


def main(run: Run) -> None:
    """Draw the matrix and write the parameters, one row per number."""
    truth = model()
    rows = []
    for edge in truth.edges_:
        block = truth.interaction(edge.source, edge.target)
        for level, values in block.iterrows():
            for other, value in values.items():
                rows.append((edge.source, edge.target, edge.kind, level, other, value))
    names = ["source", "target", "kind", "source_level", "target_level", "value"]
    run.save_table(pd.DataFrame(rows, columns=names), "parameter_matrix")
    ax = truth.plot_parameters()
    outline(ax)
    run.save_figure(ax.figure, "parameter_matrix")


if __name__ == "__main__":
    start(main, __doc__)
