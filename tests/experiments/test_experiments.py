"""Every experiment at toy size: figures and tables are there, and a second run computes nothing."""

import sys

import matplotlib as mpl
import pandas as pd
import pytest

from experiments import common
from experiments.__main__ import EXPERIMENTS, main

# Experiment -> its tables and figures, and columns that hold shares or losses.
RESULTS = {
    "parameter_matrix": ("parameter_matrix",),
    "phase_transition": ("phase_transition", "calibration"),
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


def table(folder, name):
    return pd.read_csv(folder / "out" / f"{name}.csv")


def test_every_experiment_is_tested():
    assert set(RESULTS) == set(EXPERIMENTS)


@pytest.mark.parametrize("name", RESULTS)
def test_figures_and_tables_are_written_and_work_is_kept(name, folder, capsys):
    run(folder, "--only", name)
    first = {}
    for result in RESULTS[name]:
        assert (folder / "out" / f"{result}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / "out" / f"{result}.svg").read_text().rstrip().endswith("</svg>")
        found = table(folder, result)
        assert len(found) > 1
        assert found.select_dtypes("number").notna().all(axis=None)
        first[result] = found
    capsys.readouterr()
    run(folder, "--only", name)
    assert f"{name}: " in (said := capsys.readouterr().err)
    assert " 0 of " in said
    for result, found in first.items():
        pd.testing.assert_frame_equal(table(folder, result), found)


def test_more_rows_find_more_of_the_ladder(folder):
    run(folder, "--only", "phase_transition")
    found = table(folder, "phase_transition")
    assert found.share.between(found.lower, found.upper).all()
    missed = found.pivot(index="n", columns="method", values="missed")
    assert (missed.diff().iloc[1:] < 0).all(axis=None)


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
