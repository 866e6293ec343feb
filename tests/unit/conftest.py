"""Two models for tests of results and pictures: one written down by hand, one solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mixedgm.fit.fitted import FittedModel
from mixedgm.path.path import solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import prepare
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.table.encode import learn
from tests.support.models import REPORT, by_hand


@pytest.fixture
def hand() -> Callable[..., FittedModel]:
    return by_hand


@pytest.fixture(scope="session")
def solved() -> FittedModel:
    """A model on a real path of six lams, with one level that has no rows."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    group = rng.integers(0, 3, 300)
    a = rng.normal(size=300) + group
    table = pd.DataFrame(
        {
            "group": pd.Categorical.from_codes(group, ["x", "y", "z", "never"]),
            "a": 10.0 * a,
            "flag": np.where(a + rng.normal(size=300) > 1.0, "yes", "no"),
            "b": a - rng.normal(size=300),
        }
    )
    with pytest.warns(UserWarning, match="never"):
        design, _ = learn(table)
    task = prepare(design)
    lams = np.geomspace(task.lam_max, 0.02 * task.lam_max, 6)
    path = solve_path(task, lams, Recipe(ProximalNewton(), 1e-6, 200))
    point = path.points[3]
    report = replace(
        REPORT,
        lam=point.lam,
        certificate=point.certificate,
        cost=point.cost,
        criterion="EBIC",
        n_rows=300,
    )
    scores = {"ebic": np.arange(6.0)}
    return FittedModel(
        design.schema, path.params(3), task.node_scales, report, "pandas", path, scores
    )
