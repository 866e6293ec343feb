"""Edges of several parameters in the default fit: finite, certified, and closer to the truth."""

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg

SHARES = np.array([0.03, 0.47, 0.5])
TRUTH = np.array([[0.6, -0.6, 0.0], [-0.6, 0.3, 0.3], [0.0, 0.3, -0.3]])


def table_of(n, seed):
    """Two columns with a rare level each, and the same two once more, apart from these."""
    rng = np.random.default_rng(seed)
    joint = np.outer(SHARES, SHARES) * np.exp(TRUTH)
    cells = [rng.choice(9, n, p=joint.ravel() / joint.sum()) for _ in range(2)]
    columns = {
        f"{name}{k}": cell // 3 if name == "a" else cell % 3
        for k, cell in enumerate(cells)
        for name in "ab"
    }
    letters = np.array(["r", "s", "t"])
    return pd.DataFrame({name: letters[codes] for name, codes in columns.items()})


@pytest.mark.parametrize("options", [{}, {"loss": "nodewise"}, {"loss": "likelihood"}], ids=str)
def test_fits_are_certified(options):
    model = mg.MixedGraphicalModel(require=[("a0", "b0")], **options).fit(table_of(300, 4))
    report = model.fitted_.report
    assert report.refitted
    assert report.converged
    assert report.kkt <= report.tol


def test_fits_with_gaps_are_certified():
    table = table_of(300, 4)
    table.loc[::7, "a0"] = None
    model = mg.MixedGraphicalModel(require=[("a0", "b0")], missing="model").fit(table)
    assert model.fitted_.report.converged


@pytest.mark.statistical
def test_cells_with_hardly_any_rows_are_nearer_to_the_truth():
    """By half of the mean squared error; fails in fewer than one of a thousand runs."""
    squares = {"default": [], "plain": []}
    for seed in range(30):
        table = table_of(300, seed)
        pair = [("a0", "b0"), ("a1", "b1")]
        default = mg.MixedGraphicalModel(require=pair).fit(table)
        plain = mg.MixedGraphicalModel(require=pair, lam=9.0, refit=True).fit(table)
        for name, model in (("default", default), ("plain", plain)):
            for ends in pair:
                block = model.interaction(*ends).to_numpy()
                block = block - block.mean(axis=0) - block.mean(axis=1)[:, None] + block.mean()
                squares[name].append(((block - TRUTH) ** 2).mean())
    assert np.mean(squares["default"]) < np.mean(squares["plain"]) / 2
