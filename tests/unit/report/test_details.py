"""What a click on an edge opens: rows of the table behind every parameter."""

import warnings

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.report.details import edge_details
from mixedgm.report.material import Material
from mixedgm.table.gaps import read_gaps
from mixedgm.table.read import as_frame
from tests.support.patients import TYPES, patients


def parts(frame, name, rows):
    """Which rows say something about every entry of a column, by its kind."""
    kind = TYPES.get(name)
    if kind == "hurdle":
        return {"whether": rows, "how much": rows & (frame[name] != 0.0)}
    if kind is None and not pd.api.types.is_float_dtype(frame[name]):
        return {level: rows & (frame[name] == level) for level in sorted(frame[name].unique())}
    return {name: rows}


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_behind_parameters_are_counts_of_the_table(weighted):
    frame = patients(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mg.TableWarning)
        fitted = mg.MixedGraphicalModel(types=TYPES, lam=0.02).fit(frame).fitted_
    weights = np.arange(300) % 3 + 1.0 if weighted else np.ones(300)
    given = weights if weighted else None
    gaps = read_gaps(as_frame(frame), fitted.schema, sample_weight=given, require_covariates=False)
    details = edge_details(Material(fitted, gaps=gaps))
    assert len(details) > 20
    every = pd.Series(np.ones(300, dtype=bool))
    for edge, found in zip(fitted.edges, details, strict=True):
        first, second = (parts(frame, name, every) for name in (edge.source, edge.target))
        counts = [[weights[a & b].sum() for b in second.values()] for a in first.values()]
        assert found["parameters"]["behind"] == counts, edge
    assert edge_details(Material(fitted))[0]["parameters"]["behind"] == []


def test_rows_with_gaps_in_either_column_do_not_count():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    frame = pd.DataFrame({"x": x, "y": x + rng.normal(size=200)})
    fitted = mg.MixedGraphicalModel(lam=0.1).fit(frame).fitted_
    frame.loc[:9, "x"] = np.nan
    frame.loc[5:19, "y"] = np.nan
    gaps = read_gaps(as_frame(frame), fitted.schema, require_covariates=False)
    (found,) = edge_details(Material(fitted, gaps=gaps))
    assert found["parameters"]["behind"] == [[180]]
