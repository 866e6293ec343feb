"""Every experiment at toy size: figures and tables are there, and a second run computes nothing."""

import re
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from experiments import common
from experiments.__main__ import EXPERIMENTS, main

# Experiment -> its figures, and its tables.
RESULTS = {
    "parameter_matrix": (["parameter_matrix"], ["parameter_matrix"]),
    "phase_transition": (
        ["phase_transition", "calibration"],
        ["phase_transition", "phase_transition_condition", "calibration"],
    ),
    "model_selection": (["model_selection"], ["model_selection", "model_selection_best"]),
    "separate_regressions": (
        ["separate_regressions_100", "separate_regressions_400"],
        ["separate_regressions", "separate_regressions_best"],
    ),
    "conditional": (["conditional"], ["conditional", "conditional_best"]),
    "maximum_likelihood": (
        ["maximum_likelihood"],
        ["maximum_likelihood", "maximum_likelihood_best"],
    ),
    "consistency": (
        ["consistency"],
        ["consistency", "consistency_rows", "consistency_theorem"],
    ),
    "solvers": (["solvers"], ["solvers"]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("experiments")


@pytest.fixture(autouse=True)
def _no_window(monkeypatch):
    mpl.use("agg")


def run(folder, *more):
    out, cache = str(folder / "out"), str(folder / "cache")
    main(["--toy", "--out", out, "--cache", cache, "--n-jobs", "1", *more])


def results(folder, experiment, name):
    """A table of an experiment, which is run where no test before has done it."""
    if not (folder / "out" / f"{name}.csv").exists():
        run(folder, "--only", experiment)
    return table(folder, name)


def table(folder, name):
    return pd.read_csv(folder / "out" / f"{name}.csv")


def test_every_experiment_is_tested():
    assert set(RESULTS) == set(EXPERIMENTS)


@pytest.mark.parametrize("name", RESULTS)
def test_figures_and_tables_are_written_and_work_is_kept(name, folder, capsys):
    run(folder, "--only", name)
    figures, tables = RESULTS[name]
    for figure in figures:
        assert (folder / "out" / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / "out" / f"{figure}.svg").read_text().rstrip().endswith("</svg>")
    first = {each: table(folder, each) for each in tables}
    for found in first.values():
        numbers = found.select_dtypes("number").drop(columns="standard_error", errors="ignore")
        assert len(found) > 1
        assert np.isfinite(numbers).all(axis=None)
    capsys.readouterr()
    run(folder, "--only", name)
    assert re.search(rf"{name}: \d+ s, 0 of \d+ calls computed", capsys.readouterr().err)
    for each, found in first.items():
        pd.testing.assert_frame_equal(table(folder, each), found)


def test_more_rows_find_more_of_the_ladder(folder):
    found = results(folder, "phase_transition", "phase_transition")
    assert found.share.between(found.lower, found.upper).all()
    missed = found.pivot(index="n", columns="method", values="missed")
    assert (missed.diff().iloc[1:] < 0).all(axis=None)


def test_circles_are_at_the_lowest_loss(folder):
    curves = results(folder, "model_selection", "model_selection")
    for low in table(folder, "model_selection_best").itertuples():
        same = curves[(curves.survey == low.survey) & (curves.n == low.n)]
        assert same.loss.min() == low.loss
        assert same[same.lam == low.lam].edges.item() == low.edges


def test_losses_of_columns_add_up_to_the_total(folder):
    curves = results(folder, "separate_regressions", "separate_regressions")
    at = ["n", "method", "lam"]
    total = curves[curves.column == "all columns"].set_index(at).loss
    parts = curves[curves.column != "all columns"].groupby(at).loss.sum()
    pd.testing.assert_series_equal(parts, total.sort_index(), rtol=1e-4)


def test_each_method_is_scored_by_both_criteria(folder):
    best = results(folder, "maximum_likelihood", "maximum_likelihood_best")
    assert best.groupby("criterion").n.nunique().tolist() == [2, 2]
    assert (abs(best.difference) < 0.1).all()
    gap = best["maximum likelihood"] - best["pseudolikelihood"]
    np.testing.assert_allclose(gap, best.difference, atol=1e-5)


def test_solvers_agree(folder):
    found = results(folder, "solvers", "solvers")
    assert (found[found.converged].kkt <= found[found.converged].tol).all()
    assert found.groupby("lam").solver.nunique().tolist() == [12, 12]
    exact = found[found.converged & (found.tol <= 0.001)]
    assert (exact.above < 1e-3).all()


def test_a_missing_survey_is_a_reason_to_skip():
    run = common.Run("quick", None, None, None, 1)
    with pytest.raises(common.Skip, match="--data"):
        run.survey()


def test_an_unknown_experiment_is_named(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "phase"])
    assert "no experiment 'phase'" in capsys.readouterr().err


# -- the cache ------------------------------------------------------------------------------------

CONSTANT = 1
calls = []


def square(x):
    calls.append(x)
    return [{"square": x * x * CONSTANT}]


@pytest.fixture
def kept(tmp_path):
    calls.clear()
    return common.Run("toy", None, tmp_path, tmp_path, 1)


def test_finished_calls_are_not_repeated(kept):
    assert kept.table(square, [{"x": 2}, {"x": 3}])["square"].tolist() == [4, 9]
    assert kept.table(square, [{"x": 3}, {"x": 4}])["square"].tolist() == [9, 16]
    assert calls == [2, 3, 4]


def test_a_damaged_file_is_computed_again(kept, tmp_path):
    kept.table(square, [{"x": 2}])
    for file in tmp_path.rglob("square-*.json"):
        file.write_text('{"rows": [')
    assert kept.table(square, [{"x": 2}])["square"].tolist() == [4]
    assert calls == [2, 2]


def test_a_changed_constant_is_a_changed_experiment(kept, monkeypatch):
    kept.table(square, [{"x": 2}])
    monkeypatch.setattr(sys.modules[__name__], "CONSTANT", 10)
    assert kept.table(square, [{"x": 2}])["square"].tolist() == [40]


def test_an_interrupted_run_goes_on_where_it_was(kept):
    with pytest.raises(ZeroDivisionError):
        kept.table(inverse, [{"x": 2}, {"x": 0}])
    kept.table(inverse, [{"x": 2}, {"x": 4}])
    assert calls == [2, 0, 4]


def inverse(x):
    calls.append(x)
    return [{"inverse": 1 / x}]
