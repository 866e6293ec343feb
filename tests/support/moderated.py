"""Tables and moderators -> tasks with moderated edges, and their columns written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixedgm.path.recipe import Moderated, Recipe
from mixedgm.path.task import Task, prepare
from mixedgm.table.schema import Schema
from tests.support import dense
from tests.support.problems import Table


def moderated_task(
    table: Table, moderators, covariates=(), factors=None, n_threads=1, **options
) -> Task:
    """The problem of a table whose edges vary with some of its nodes."""
    design = table.design
    fixed = {design.schema.nodes[k].name for k in (*moderators, *covariates)}
    columns = [
        replace(c, role="covariate") if c.name in fixed else c for c in design.schema.columns
    ]
    n_nodes = len(columns)
    if factors is None:
        factors = np.ones((len(moderators), n_nodes, n_nodes))
    recipe = Recipe(moderated=Moderated(tuple(moderators), factors), **options)
    return prepare(replace(design, schema=Schema(tuple(columns))), recipe, n_threads=n_threads)


def written_out(task: Task, table: Table):
    """(n, columns) design columns and all products, from the standardised rows of a task."""
    rows, k = task.smooth.rows, table.n_spiked + len(table.scored)
    Z = np.hstack([rows.numbers, dense.indicators(rows.codes[:, k:], table.n_levels[k:])])
    share = dense.shares(len(Z), table.row_weights)
    middle = share @ Z
    middle[: rows.numbers.shape[1]] = 0.0
    features = [] if rows.products is None else rows.products.features.T
    return np.hstack([Z, *(f[:, None] * (Z - middle) for f in features)])


def people(n=400, seed=0):
    """Edges that grow with age, and one that is there in one of three groups only."""
    rng = np.random.default_rng(seed)
    age, group = rng.normal(40, 10, n), rng.integers(0, 3, n)
    f = (age - 40) / 10
    a = rng.normal(size=n)
    b = a * (0.3 + 0.4 * f) + rng.normal(size=n)
    c = np.where(rng.random(n) < 1 / (1 + np.exp(-1.5 * (group == 2) * a)), "y", "n")
    d = 0.4 * b + rng.normal(size=n)
    wave = rng.choice(["w1", "w2"], n)
    names = np.array(["p", "q", "r"])[group]
    import pandas as pd

    return pd.DataFrame({"age": age, "group": names, "a": a, "b": b, "c": c, "d": d, "wave": wave})
