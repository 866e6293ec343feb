"""The bundled wage survey -> the pictures of the documentation, written beside this file.

Run it when a view or a default changes: ``python docs/images/make.py``.
"""

from pathlib import Path

import matplotlib as mpl

import mixedgm as mg

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Fit the survey once and draw the three views of it."""
    mpl.use("Agg")
    model = mg.MixedGraphicalModel().fit(mg.datasets.load_wage())
    drawings = {
        "network": model.plot().ax,
        "path": model.plot_path(),
        "parameters": model.plot_parameters(),
    }
    for name, ax in drawings.items():
        ax.get_figure(root=True).savefig(HERE / f"{name}.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
