"""Tables of results -> the tables of docs/experiments.md, between their markers.

    python -m experiments.page

writes the page again; the text around the tables is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from experiments.common import ROOT

PAGE = ROOT / "docs" / "experiments.md"
RESULTS = ROOT / "docs" / "experiments"
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def phase_transition() -> pd.DataFrame:
    """Shares of exact graphs, one row for each n."""
    found = read("phase_transition")
    shares = found[found.n % 200 == 0].pivot(index="n", columns="method", values="share")
    return shares[found.method.unique()].map("{:.2f}".format).reset_index()


def calibration() -> pd.DataFrame:
    """Shares of exact graphs by ladder and n, one column for each choice of weights and lam."""
    found = read("calibration")
    found = found[found.n.isin([500, 1000, 1500, 2000, 3000, 4000, 5000])]
    found["how"] = found.weights + ", λ = " + found.lam
    wide = found.pivot(index=["ladder", "n"], columns="how", values="share")
    wide = wide.sort_index(level="ladder", ascending=False, sort_remaining=False)
    shares = wide[found.how.unique()].map("{:.2f}".format)
    return shares.reset_index().rename(columns={"ladder": "categorical columns"})


def model_selection() -> pd.DataFrame:
    """The best lam of every table."""
    found = read("model_selection_best")[["survey", "n", "lam", "edges", "loss"]]
    found["lam"] = found.lam.map("{:.2g}".format)
    return found.rename(columns={"lam": "λ"})


def separate_regressions() -> pd.DataFrame:
    """Losses by column, each method at its own best lam."""
    return best("separate_regressions_best")


def conditional() -> pd.DataFrame:
    """Losses of the three columns, each model at its own best lam."""
    return best("conditional_best").drop(columns="criterion")


def maximum_likelihood() -> pd.DataFrame:
    """Both losses, each method at its own best lam."""
    return best("maximum_likelihood_best")


def solvers() -> pd.DataFrame:
    """Cost of a KKT number of 1e-5, the default."""
    found = read("solvers")
    found = found[found.converged & (found.tol == 1e-5)]
    wide = found.pivot(index="solver", columns="lam", values=["passes", "seconds"])
    wide = wide.reindex(read("solvers").solver.unique())
    wide = wide.map(lambda x: "–" if pd.isna(x) else f"{x:,.0f}" if x > 5 else f"{x:.2g}")
    wide.columns = [f"{what}, λ = {lam:g}" for what, lam in wide.columns]
    return wide.reset_index()


def times() -> pd.DataFrame:
    """Minutes on the wall, and their sum."""
    found = read("times").rename(columns={"wall_seconds": "minutes"})
    found["minutes"] /= 60.0
    total = {"experiment": "all", "minutes": found.minutes.sum(), "calls": found.calls.sum()}
    found = pd.concat([found, pd.DataFrame([total])])
    found["minutes"] = found.minutes.map("{:.1f}".format)
    return found[["experiment", "calls", "minutes"]]


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    function.__name__: function
    for function in (
        phase_transition,
        calibration,
        model_selection,
        separate_regressions,
        conditional,
        maximum_likelihood,
        solvers,
        times,
    )
}


def read(name: str) -> pd.DataFrame:
    """A table of results."""
    return pd.read_csv(RESULTS / f"{name}.csv")


def best(name: str) -> pd.DataFrame:
    """Losses at the best lam: the difference with its standard error in one cell."""
    found = read(name)
    error = found.pop("standard_error").map(lambda x: "" if pd.isna(x) else f" ± {x:.4f}")
    found["difference"] = found.difference.map("{:+.4f}".format) + error
    return found.rename(columns={"draws": "tables"})


def markdown(table: pd.DataFrame) -> str:
    """Rows between bars."""
    lines = ["| " + " | ".join(table.columns) + " |", "| --- " * table.shape[1] + "|"]
    for row in table.itertuples(index=False):
        lines.append("| " + " | ".join(cell(x) for x in row) + " |")
    return "\n".join(lines) + "\n"


def cell(value: object) -> str:
    """A number as it is read: three digits behind the point, commas between thousands."""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def written(page: str) -> str:
    """The page with its tables made anew."""
    return MARKED.sub(lambda found: found[1] + markdown(TABLES[found[2]]()) + found[3], page)


def main(page: Path = PAGE) -> None:
    """Write the page again."""
    page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
