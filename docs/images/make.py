"""The bundled wage survey -> the pictures of the documentation, written beside this file.

Run it when a view or a default changes: ``python docs/images/make.py``.
"""

from pathlib import Path

import matplotlib as mpl

import mixedgm as mg

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Fit the survey and draw the views of it."""
    mpl.use("Agg")
    wage = mg.datasets.load_wage()
    model = mg.MixedGraphicalModel().fit(wage)
    wrong = mg.MixedGraphicalModel(forbid=[("age", "marital")]).fit(wage)
    given = mg.MixedGraphicalModel(covariates=["age", "race", "year"]).fit(wage)
    own = mg.MixedGraphicalModel(loss="nodewise", select=mg.EBIC(per_node=True)).fit(wage)
    drawings = {
        "network": model.plot().ax,
        "path": model.plot_path(),
        "parameters": model.plot_parameters(),
        "predictability": model.plot(predictability=wage).ax,
        "covariates": given.plot().ax,
        "per_node": own.plot_selection(),
        "check": wrong.check_fit(wage, random_state=0).plot(),
    }
    for name, ax in drawings.items():
        ax.get_figure(root=True).savefig(HERE / f"{name}.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
