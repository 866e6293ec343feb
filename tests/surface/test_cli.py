"""The command line: every command, its files and formats, its messages and exit codes."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.cli import main
from tests.support.command_line import (
    command_names,
    environment,
    mixedgm,
    mixedgm_process,
    survey,
    write_csv,
)

FIELDS = ["source", "target", "kind", "strength", "sign", "partial_correlation", "norm"]


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with survey.csv and the model that the real command fits to it."""
    folder = tmp_path_factory.mktemp("cli")
    write_csv(folder / "survey.csv", survey())
    done = mixedgm_process("fit", "survey.csv", "-o", "survey.mgm", "--n-lams", 12, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Mixed graphical model\n")
    assert "wrote survey.mgm" in done.stderr
    assert sorted(each.name for each in folder.iterdir()) == ["survey.csv", "survey.mgm"]
    return folder


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder as the working directory, for commands that run in this process."""
    monkeypatch.chdir(folder)
    return folder


# -- commands ----------------------------------------------------------------------------------


def test_edges_in_all_formats_agree_with_the_model(folder: Path) -> None:
    edges = mg.load(folder / "survey.mgm").edges_
    pairs = [{edge.source, edge.target} for edge in edges]
    for pair in ({"height", "weight"}, {"height", "group"}, {"height", "mood"}):
        assert pair in pairs
    records = json.loads(mixedgm("edges", "survey.mgm", "--format", "json", cwd=folder).stdout)
    assert [[record[name] for name in FIELDS] for record in records] == [
        [getattr(edge, name) for name in FIELDS] for edge in edges
    ]
    assert list(records[0]) == [*FIELDS[:5], "probability", *FIELDS[5:]]
    assert all(record["probability"] >= 0.7 for record in records)
    rows = rows_of(mixedgm("edges", "survey.mgm", "--format", "csv", cwd=folder).stdout)
    assert [float(row["strength"]) for row in rows] == [edge.strength for edge in edges]
    assert [row["sign"] or None for row in rows] == [edge.sign for edge in edges]
    lines = mixedgm("edges", "survey.mgm", cwd=folder).stdout.splitlines()
    assert lines[0].split() == ["source", "target", "kind", "strength", "sign", "part.cor"]
    assert [{*line.split()[:2]} for line in lines[1 : len(edges) + 1]] == pairs


def test_the_ending_of_the_output_chooses_the_format(here: Path, tmp_path: Path) -> None:
    for name in ("e.csv", "e.json", "e.txt", "e.graphml"):
        assert main(["edges", "survey.mgm", "-o", str(tmp_path / name)]) == 0
    edges = mg.load("survey.mgm").edges_
    assert len(rows_of((tmp_path / "e.csv").read_text("utf-8"))) == len(edges)
    assert len(json.loads((tmp_path / "e.json").read_text("utf-8"))) == len(edges)
    assert (tmp_path / "e.txt").read_text("utf-8").startswith("source  target")
    space = "{http://graphml.graphdrawing.org/xmlns}"
    assert len(list(ET.parse(tmp_path / "e.graphml").iter(f"{space}edge"))) == len(edges)
    assert main(["edges", "survey.mgm", "--format", "json", "-o", str(tmp_path / "e.csv")]) == 0
    json.loads((tmp_path / "e.csv").read_text("utf-8"))
    assert main(["edges", "survey.mgm", "--format", "csv", "-o", str(tmp_path / "e.foo")]) == 0
    assert len(rows_of((tmp_path / "e.foo").read_text("utf-8"))) == len(edges)


@pytest.mark.parametrize(
    ("words", "weights"),
    [
        ((), "calibrated"),
        (("--weights", "uniform"), "uniform"),
        (("--weights", "adaptive"), "adaptive"),
    ],
)
def test_penalty_weights_are_an_option(
    here: Path, tmp_path: Path, words: tuple[str, ...], weights: str
) -> None:
    file = str(tmp_path / "w.mgm")
    assert main(["fit", "survey.csv", "-o", file, "--lam", "0.2", "--max-iter", "77", *words]) == 0
    settings = mg.load(file).get_params()
    assert (settings["penalty_weights"], settings["max_iter"]) == (weights, 77)


def test_the_path_takes_penalty_weights(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for weights in ("calibrated", "uniform"):
        words = ["--weights", weights, "--max-iter", "500", "--n-lams", "3", "--format", "csv"]
        assert main(["path", "survey.csv", *words]) == 0
        shown.append([row["lam"] for row in rows_of(capsys.readouterr().out)])
    assert shown[0] != shown[1]


def test_check_prints_schema_and_notes(folder: Path) -> None:
    done = mixedgm("check", "survey.csv", cwd=folder)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "300 rows, 5 columns" in done.stdout
    assert "mood    categorical  target  3: good, größer ☃, so, so" in done.stdout
    assert "nothing wrong" in done.stdout


def test_path_lists_every_lam(folder: Path, tmp_path: Path) -> None:
    words = ("survey.csv", "--n-lams", 5, "--lam-min-ratio", 0.1)
    done = mixedgm("path", *words, cwd=folder)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["lam", "n_edges", "objective", "kkt", "seconds", "errors", "chosen"]
    assert len(lines) == 6
    assert sum("<--" in line for line in lines) == 1
    assert "chooses lam" in done.stderr
    done = mixedgm("path", *words, "-o", tmp_path / "p.csv", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    rows = rows_of((tmp_path / "p.csv").read_text("utf-8"))
    lams = [float(row["lam"]) for row in rows]
    np.testing.assert_allclose(np.array(lams[1:]) / lams[:-1], 0.1**0.25)
    assert rows[0]["n_edges"] == "0"
    assert all(float(row["kkt"]) <= 1e-5 and row["converged"] == "True" for row in rows)


@pytest.mark.parametrize(
    ("name", "start"), [("n.png", b"\x89PNG"), ("n.svg", b"<?xml"), ("n.pdf", b"%PDF")]
)
def test_plot_writes_pictures(here: Path, tmp_path: Path, name: str, start: bytes) -> None:
    assert main(["plot", "survey.mgm", "-o", str(tmp_path / name), "--layout", "circle"]) == 0
    assert (tmp_path / name).read_bytes().startswith(start)


def test_plot_for_real(folder: Path, tmp_path: Path) -> None:
    sizes = set()
    for run, kind in (
        (mixedgm_process, "network"),
        (mixedgm, "path"),
        (mixedgm, "parameters"),
    ):
        done = run("plot", "survey.mgm", "-o", tmp_path / "x.png", "--kind", kind, cwd=folder)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        sizes.add((tmp_path / "x.png").stat().st_size)
    assert len(sizes) == 3


def test_predict_one_column_that_is_absent(folder: Path, tmp_path: Path) -> None:
    columns = survey()
    truth = columns.pop("group")
    write_csv(tmp_path / "new.csv", columns)
    words = ("predict", folder / "survey.mgm", "new.csv", "--column", "group")
    rows = rows_of(mixedgm(*words, cwd=tmp_path).stdout)
    assert list(rows[0]) == ["group"]
    right = np.mean([row["group"] == value for row, value in zip(rows, truth, strict=True)])
    assert right > 0.7
    chances = rows_of(mixedgm(*words, "--proba", cwd=tmp_path).stdout)
    assert list(chances[0]) == ["a", "b"]
    for row, chance in zip(rows, chances, strict=True):
        assert float(chance["a"]) + float(chance["b"]) == pytest.approx(1.0)
        assert (float(chance["a"]) > 0.5) == (row["group"] == "a")


def test_predict_all_columns(here: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    assert main(["predict", "survey.mgm", "survey.csv", "-o", str(file)]) == 0
    records = json.loads(file.read_text("utf-8"))
    columns = survey()
    assert len(records) == 300
    assert list(records[0]) == list(columns)
    predicted = [record["weight"] for record in records]
    assert np.corrcoef(predicted, np.array(columns["weight"], dtype=float))[0, 1] > 0.7
    assert {record["mood"] for record in records} <= {"good", "größer ☃", "so, so"}


def test_demo_does_the_whole_job(tmp_path: Path) -> None:
    done = mixedgm("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = {each.name for each in (tmp_path / "mixedgm-demo").iterdir()}
    pictures = {"network.png", "path.png", "parameters.png"}
    assert written == pictures | {"wage.html", "edges.csv", "wage.mgm", "wage.parquet"}
    assert all(name in done.stdout for name in written)
    for text in ("3,000", "education   categorical", "logwage    education", "Try next:"):
        assert text in done.stdout
    model = mg.load(tmp_path / "mixedgm-demo" / "wage.mgm")
    rows = rows_of((tmp_path / "mixedgm-demo" / "edges.csv").read_text("utf-8"))
    assert len(rows) == len(model.edges_) > 5
    assert model.converged_
    tried = [line for line in done.stdout.splitlines() if line.startswith("  mixedgm predict")]
    assert mixedgm(*tried[0].split()[1:], cwd=tmp_path).returncode == 0


# -- options of fit ----------------------------------------------------------------------------


def fitted(here: Path, tmp_path: Path, *words: str) -> set[frozenset[str]]:
    file = tmp_path / "options.mgm"
    assert main(["fit", "survey.csv", "-o", str(file), "--quiet", *words]) == 0
    return {frozenset((edge.source, edge.target)) for edge in mg.load(file).edges_}


def test_require_and_forbid(here: Path, tmp_path: Path) -> None:
    edges = fitted(
        here, tmp_path, "--lam", "0.3", "--forbid", "height:group", "--require", "luck:mood"
    )
    assert frozenset(("luck", "mood")) in edges
    assert frozenset(("height", "group")) not in edges
    assert frozenset(("height", "weight")) in edges


def test_lam_and_drop(here: Path, tmp_path: Path) -> None:
    assert fitted(here, tmp_path, "--lam", "10") == set()
    assert fitted(here, tmp_path, "--lam", "0.3", "--drop", "group,mood", "--drop", "luck") == {
        frozenset(("height", "weight"))
    }


def test_the_options_reach_the_model(here: Path, tmp_path: Path) -> None:
    words = "--lams 0.5,0.2 --select bic --transform luck=nonparanormal --refit --tol 1e-6"
    fitted(here, tmp_path, *words.split(), "--solver", "proximal-gradient", "--jobs", "1")
    model = mg.load(tmp_path / "options.mgm")
    report, settings = model.fitted_.report, model.get_params()
    assert model.path_.lams.tolist() == [0.5, 0.2]
    assert report.criterion == "BIC"
    assert report.tol == 1e-6
    assert report.refitted
    assert [column.name for column in model.schema_.columns if column.transform] == ["luck"]
    assert settings["solver"] == "proximal-gradient"
    assert settings["n_jobs"] == 1
    assert settings["verbose"] == 0


def test_transform_of_all_columns(here: Path, tmp_path: Path) -> None:
    fitted(here, tmp_path, "--lam", "0.5", "--transform", "nonparanormal")
    schema = mg.load(tmp_path / "options.mgm").schema_
    assert all(column.transform is not None for column in schema.continuous)


def test_weights_are_repetitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    columns = {name: list(values[:60]) for name, values in survey().items()}
    weights = [1 + k % 3 for k in range(60)]
    repeated = {name: np.repeat(values, weights).tolist() for name, values in columns.items()}
    write_csv(tmp_path / "once.csv", {**columns, "times": weights})
    write_csv(tmp_path / "often.csv", repeated)
    words = ["--lam", "0.2", "--quiet", "--tol", "1e-9"]
    assert main(["fit", "once.csv", "-o", "once.mgm", "--weights-column", "times", *words]) == 0
    assert main(["fit", "often.csv", "-o", "often.mgm", *words]) == 0
    once, often = mg.load("once.mgm"), mg.load("often.mgm")
    assert once.schema_.names == often.schema_.names
    assert [edge[:2] for edge in once.edges_] == [edge[:2] for edge in often.edges_]
    np.testing.assert_allclose(once.params_.coef, often.params_.coef, atol=1e-6)


def test_names_with_commas_colons_and_equal_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    names = ["height, cm", "a:b", "x=y", "code"]
    table = dict(zip(names, rng.normal(size=(4, 50)).round(3).tolist(), strict=True))
    table["code"] = (np.arange(50) % 4).tolist()
    write_csv(tmp_path / "odd.csv", table)
    words = ["--types", '"x=y=continuous",code=categorical', "--drop", '"height, cm"']
    words += ["--forbid", "a:b:x=y", "--lam", "0", "--quiet"]
    assert main(["fit", "odd.csv", "-o", "odd.mgm", *words]) == 0
    model = mg.load("odd.mgm")
    assert model.schema_.names == ("a:b", "x=y", "code")
    assert model.schema_.n_levels == (4,)
    assert {frozenset(edge[:2]) for edge in model.edges_} == {
        frozenset(("a:b", "code")),
        frozenset(("x=y", "code")),
    }


# -- help --------------------------------------------------------------------------------------


def test_help_of_every_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in command_names():
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
        text = capsys.readouterr().out
        assert text.startswith(f"usage: mixedgm {command} ")
        assert f"\nexamples:\n  mixedgm {command}" in text
        assert max(map(len, text.splitlines())) <= 80
        assert len(text.split("\n\n")[1]) > 150, "a paragraph that explains"


def test_help_for_real(tmp_path: Path) -> None:
    done = mixedgm_process("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert re.findall(r"^    (\w+)\b", done.stdout, re.MULTILINE) == command_names()
    assert mixedgm(cwd=tmp_path).stdout == done.stdout
    version = mixedgm("--version", cwd=tmp_path)
    assert version.returncode == 0
    assert version.stdout.startswith("mixedgm 0")


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from mixedgm.cli import main\n"
        "try: main(['fit', '--help'])\n"
        "except SystemExit: pass\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "heavy = loaded & {'numpy', 'numba', 'scipy', 'sklearn', 'pandas', 'matplotlib'}\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
