"""`mixedgm bootstrap`: files, checkpoints and exit codes of the real command."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.cli import main
from tests.support.command_line import environment, mixedgm, survey, write_csv
from tests.support.load import PATIENCE

TABLES = {
    "nonparametric": {
        *("strengths", "intervals", "parameters", "selection"),
        *("differences", "centrality", "degenerate"),
    },
    "case-dropping": {"stability", "cs_coefficient", "degenerate"},
}
PICTURES = {
    "nonparametric": {
        *("intervals", "selection", "differences"),
        *("total_strength", "closeness", "betweenness"),
    },
    "case-dropping": {"stability"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with survey.csv, with a town for every row, and a model of its other columns."""
    folder = tmp_path_factory.mktemp("cli")
    columns = survey(200)
    write_csv(folder / "columns.csv", columns)
    town = np.repeat(["north", "south", "east", "west"], 50).tolist()
    write_csv(folder / "survey.csv", {**columns, "town": town})
    assert (
        main(
            [
                "fit",
                str(folder / "columns.csv"),
                "-o",
                str(folder / "m.mgm"),
                "--lam",
                "0.2",
                "--quiet",
            ]
        )
        == 0
    )
    return folder


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def words(out: Path, *more: object) -> list[str]:
    return ["bootstrap", "m.mgm", "survey.csv", "-o", str(out), *map(str, more)]


@pytest.mark.parametrize("kind", list(TABLES))
def test_tables_and_pictures_are_written(here: Path, tmp_path: Path, capsys, kind: str) -> None:
    out = tmp_path / "new" / "out"
    assert main(words(out, "--n-boot", 20, "--kind", kind, "--jobs", 1, "--seed", 4)) == 0
    expected = {f"{name}.csv" for name in TABLES[kind]} | {f"{n}.png" for n in PICTURES[kind]}
    assert {file.name for file in out.iterdir()} == {*expected, "summary.txt"}
    for name in PICTURES[kind]:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr()
    assert printed.out == (out / "summary.txt").read_text(encoding="utf-8")
    assert f"20 resamples, {kind}" in printed.out
    assert f"wrote {out}" in printed.err


def test_the_numbers_are_those_of_the_library(here: Path, tmp_path: Path) -> None:
    call = words(tmp_path, "--n-boot", 6, "--jobs", 1, "--seed", 4, "--groups", "town", "--quiet")
    assert main(call) == 0
    table = here / "survey.csv"
    found = mg.bootstrap(mg.load("m.mgm"), table, n_boot=6, groups="town", random_state=4, n_jobs=1)
    sizes = found.intervals()
    rows = rows_of(tmp_path / "intervals.csv")
    assert [row["source"] for row in rows] == sizes["source"].tolist()
    assert [float(row["upper"]) for row in rows] == sizes["upper"].tolist()
    edges = found.selection()
    rows = rows_of(tmp_path / "selection.csv")
    assert [float(row["inclusion"]) for row in rows] == edges["inclusion"].tolist()
    assert [row["sign"] or None for row in rows] == [
        sign if isinstance(sign, str) else None for sign in edges["sign"]
    ]


def test_intervals_can_be_left_out(here: Path, tmp_path: Path) -> None:
    call = words(tmp_path, "--n-boot", 3, "--jobs", 1, "--no-intervals", "--quiet")
    assert main(call) == 0
    names = {file.name for file in tmp_path.iterdir()}
    assert not names & {"strengths.csv", "intervals.csv", "parameters.csv", "intervals.png"}
    assert {"selection.csv", "selection.png"} <= names
    assert "no intervals of all pairs" in (tmp_path / "summary.txt").read_text(encoding="utf-8")


def test_a_checkpoint_is_resumed_only_when_asked(here: Path, tmp_path: Path, capsys) -> None:
    kept = tmp_path / "kept"
    call = words(tmp_path / "a", "--n-boot", 8, "--jobs", 1, "--checkpoint", kept, "--quiet")
    assert main(call) == 0
    first = (tmp_path / "a" / "intervals.csv").read_bytes()
    assert main(call) == 2
    assert "add --resume" in capsys.readouterr().err
    (kept / "000003.npz").unlink()
    assert main([*call, "--resume"]) == 0
    assert (tmp_path / "a" / "intervals.csv").read_bytes() == first
    assert main([*call, "--resume", "--seed", "9"]) == 2
    assert "other data, options or seed" in capsys.readouterr().err
    assert main(words(tmp_path / "a", "--resume")) == 2
    assert "--resume needs --checkpoint" in capsys.readouterr().err


def test_wrong_input_is_said(here: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("")
    for call, text in [
        (words(tmp_path / "file"), "is a file; give the name of a folder"),
        (words(tmp_path, "--n-boot", 0), "n_boot must be"),
        (words(tmp_path, "--groups", "twon"), "did you mean 'town'"),
        (["bootstrap", "m.mgm", "no.csv", "-o", str(tmp_path)], "no.csv"),
    ]:
        assert main(call) == 2
        assert text in capsys.readouterr().err


@pytest.mark.slow
def test_control_c_keeps_what_is_done(folder: Path, tmp_path: Path) -> None:
    kept, out = tmp_path / "kept", tmp_path / "out"
    call = words(out, "--n-boot", 5000, "--jobs", 2, "--checkpoint", kept)
    child = subprocess.Popen(
        [sys.executable, "-m", "mixedgm", *call],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Programs that a shell started in the background ignore Ctrl-C, and so would this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    limit = time.monotonic() + PATIENCE
    while len(list(kept.glob("0*.npz"))) < 6:
        assert child.poll() is None, child.communicate()[1]
        assert time.monotonic() < limit
        time.sleep(0.02)
    os.killpg(child.pid, signal.SIGINT)
    printed, errors = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, errors
    found = re.search(r"interrupted: (\d+) of 5000", errors)
    assert found is not None
    # The signal may come when a resample is on disk and not yet counted.
    assert len(list(kept.glob("0*.npz"))) - int(found[1]) in (0, 1)
    assert f"{found[1]} of 5000 resamples" in printed
    assert (out / "intervals.csv").exists()


def test_the_help_explains_it(tmp_path: Path) -> None:
    done = mixedgm("bootstrap", "--help", cwd=tmp_path)
    assert done.returncode == 0
    for option in ("--n-boot", "--kind", "--jobs", "--checkpoint", "--resume", "--seed"):
        assert option in done.stdout
