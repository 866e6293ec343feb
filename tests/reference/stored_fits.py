"""Names of fits -> what they found, to compare with what was stored when they were last right.

`python -m tests.reference.stored_fits` writes ``stored_fits.json`` anew: only when a change of
results is meant.  Everything is fitted to tol = 1e-9, far below what is compared.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mixedgm as mg
from tests.support.people import people
from tests.support.shared import shared_data

STORED = Path(__file__).with_name("stored_fits.json")
TOL = 1e-9


def survey(name: str, n_rows: int, *leave_out: str) -> Callable[[], Any]:
    """Rows of a data set, spread over the whole file."""

    def read() -> Any:
        import pandas as pd

        table = pd.read_parquet(shared_data(f"{name}.parquet")).drop(columns=list(leave_out))
        return table.iloc[:: max(1, len(table) // n_rows)].head(n_rows).reset_index(drop=True)

    return read


def simulated(name: str, n_rows: int) -> Callable[[], Any]:
    def read() -> Any:
        import pandas as pd

        with np.load(shared_data(f"sim/{name}.npz")) as stored:
            numbers, codes = stored["X"][:n_rows], stored["Y"][:n_rows]
        columns: dict[str, Any] = {f"x{k}": numbers[:, k] for k in range(numbers.shape[1])}
        columns |= {f"y{k}": codes[:, k].astype(str) for k in range(codes.shape[1])}
        return pd.DataFrame(columns)

    return read


def penguins() -> Any:
    table = mg.datasets.load_penguins("pandas").dropna().reset_index(drop=True)
    return table.drop(columns=[name for name in table.columns if name == "rownames"])


def some_people() -> Any:
    return people(400, seed=3)


WAGE = survey("wage_islr", 1500)
ATUS = survey("atus_wage", 4000, "calendar_year")
TAX = survey("cps_taxunits", 3000)
ADULT = survey("adult", 2000)
CENSUS = survey("census_income_kdd", 3000)
A, B, C = simulated("a", 1000), simulated("b", 600), simulated("c10k", 5000)

CASES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "wage": (WAGE, {}),
    "wage, shrunken": (WAGE, {"refit": False}),
    "wage, BIC": (WAGE, {"select": "bic"}),
    "wage, CV": (WAGE, {"select": mg.CV(3), "n_lams": 20}),
    "wage, hold-out": (WAGE, {"select": "holdout", "n_lams": 20}),
    "wage, StARS": (WAGE, {"select": mg.StARS(n_subsamples=4), "n_lams": 15}),
    "wage, one lam": (WAGE, {"lam": 0.05}),
    "wage, uniform weights": (WAGE, {"penalty_weights": "uniform", "lam": 0.05}),
    "wage, transformed": (WAGE, {"transforms": "nonparanormal", "lam": 0.05}),
    "wage, proximal gradient": (
        WAGE,
        {"lam": 0.2, "solver": "proximal-gradient", "max_iter": 5000},
    ),
    "wage, covariates": (WAGE, {"covariates": ["age", "race"]}),
    "wage, covariates without penalty": (
        WAGE,
        {"covariates": ["age", "race"], "penalize_covariates": False, "lam": 0.05},
    ),
    "wage, moderated by a number": (WAGE, {"moderators": ["age"], "lam": 0.03}),
    "wage, moderated by levels": (WAGE, {"moderators": ["jobclass"], "lam": 0.03}),
    "wage, nodewise": (WAGE, {"loss": "nodewise"}),
    "wage, nodewise, or": (WAGE, {"loss": "nodewise", "rule": "or", "lam": 0.05}),
    "wage, nodewise, moderated": (
        WAGE,
        {"loss": "nodewise", "moderators": ["jobclass"], "lam": 0.04},
    ),
    "wage, one lam per column": (WAGE, {"loss": "nodewise", "select": mg.BIC(per_node=True)}),
    "wage, required and forbidden": (
        WAGE,
        {"require": [("age", "health")], "forbid": [("logwage", "education")], "lam": 0.05},
    ),
    "people, likelihood": (some_people, {"loss": "likelihood"}),
    "people, likelihood, one lam": (some_people, {"loss": "likelihood", "lam": 0.03}),
    "people, conditional likelihood": (
        some_people,
        {"loss": "likelihood", "lam": 0.03, "covariates": ["height", "colour"]},
    ),
    "people, maximum likelihood": (some_people, {"loss": "likelihood", "lam": 0.0}),
    "people, no penalty": (some_people, {"lam": 0.0}),
    "people, AIC": (some_people, {"select": "aic"}),
    "people, given lams": (some_people, {"lams": [0.3, 0.1, 0.03]}),
    "penguins": (penguins, {}),
    "penguins, one lam": (penguins, {"lam": 0.02}),
    "atus": (ATUS, {}),
    "atus, one lam": (ATUS, {"lam": 0.01}),
    "atus, covariates": (ATUS, {"covariates": ["year", "sex"], "lam": 0.02}),
    "tax units": (TAX, {}),
    "tax units, one lam": (TAX, {"lam": 0.02}),
    "adult": (ADULT, {}),
    "adult, one lam": (ADULT, {"lam": 0.05}),
    "census": (CENSUS, {}),
    "census, nodewise": (CENSUS, {"loss": "nodewise", "lam": 0.03}),
    "simulated a": (A, {}),
    "simulated a, one lam": (A, {"lam": 0.1}),
    "simulated b": (B, {}),
    "simulated b, one lam": (B, {"lam": 0.2}),
    "simulated c": (C, {}),
    "simulated c, one lam": (C, {"lam": 0.05}),
}
WEIGHTED = ("wage, one lam", "people, AIC", "tax units", "wage, nodewise, or")


def cases() -> list[tuple[str, bool]]:
    """All fits, some of them a second time with weights of the rows."""
    return [(name, False) for name in CASES] + [(name, True) for name in WEIGHTED]


def fitted(name: str, weighted: bool) -> mg.MixedGraphicalModel:
    read, options = CASES[name]
    table = read()
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, len(table)) * 0.7 if weighted else None
    before = {"select": "ebic", "transforms": None}  # the defaults when these were stored
    options = {**before, **options}
    model = mg.MixedGraphicalModel(tol=TOL, random_state=0, n_jobs=1, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(table, sample_weight=weights)


def found(model: mg.MixedGraphicalModel) -> dict[str, Any]:
    """The numbers that are compared; criteria on the part of the path that every version solves."""
    own = model.fitted_
    path = own.path
    return {
        "lam": np.atleast_1d(own.report.lam).tolist(),
        "objective": own.report.objective,
        "edges": sorted(
            [*sorted((edge.source, edge.target)), edge.moderator or ""] for edge in own.edges
        ),
        "weights": sorted(edge.norm for edge in own.edges),
        "lams": [] if path is None else path.lams.tolist(),
        "objectives": [] if path is None else [point.objective for point in path.points],
        "scores": {key: np.asarray(own.scores[key]).ravel().tolist() for key in own.scores},
    }


def main() -> None:
    everything = {
        f"{name}{', weighted' if weighted else ''}": found(fitted(name, weighted))
        for name, weighted in cases()
    }
    STORED.write_text(json.dumps(everything, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
