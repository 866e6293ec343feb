"""The command line when something is wrong: one message, the right exit code, nothing written."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr
from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm

from mixedgm.cli import main
from tests.support.command_line import environment, mixedgm, mixedgm_process, survey, write_csv
from tests.support.load import PATIENCE


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a table."""
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "survey.csv", survey(100))
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


FIT = ["fit", "survey.csv", "-o", "x.mgm"]
BAD: list[tuple[list[str], str]] = [
    (["fit", "none.csv", "-o", "x.mgm"], "there is no file 'none.csv'"),
    (["fit", "survey.txt", "-o", "x.mgm"], "'survey.txt' is not a table file"),
    (["fit", "survey.csv", "-o", "survey.csv"], "'survey.csv' is the input; give another name"),
    (["fit", "survey.csv", "-o", "."], "'.' is a folder; give the name of a file"),
    (["fit", "survey.csv", "-o", "no/x.mgm"], "there is no folder 'no' to write 'x.mgm' in"),
    ([*FIT, "--lam", "-1"], "lam must be a float in [0, inf) or None. Got -1.0 instead."),
    ([*FIT, "--tol", "0"], "tol must be"),
    ([*FIT, "--n-lams", "0"], "n_lams must be"),
    ([*FIT, "--max-iter", "0"], "max_iter must be"),
    ([*FIT, "--lams", "a,b"], "--lams takes numbers as 0.5,0.1. Got 'a,b' instead."),
    (
        [*FIT, "--select", "luck"],
        "select must be one of 'local-fdr', 'fdr', 'ebic', 'bic', 'aic', 'cv'",
    ),
    ([*FIT, "--solver", "magic"], "solver must be one of"),
    ([*FIT, "--types", "mood"], "--types takes NAME=categorical. Got 'mood' instead."),
    ([*FIT, "--types", "mod=categorical"], "types names 'mod', which is not a column"),
    ([*FIT, "--transform", "log"], "--transform takes NAME=nonparanormal. Got 'log' instead."),
    ([*FIT, "--drop", "lucc"], "--drop names 'lucc', which is not a column; did you mean 'luck'?"),
    ([*FIT, "--weights-column", "w"], "--weights-column names 'w', which is not a column"),
    ([*FIT, "--weights-column", "luck"], "--weights-column has"),
    ([*FIT, "--forbid", "age"], "--forbid takes two column names as A:B. Got 'age' instead."),
    ([*FIT, "--require", "luck:age"], "there is no column 'age'"),
    (["path", "survey.csv", "-o", "survey.csv"], "is the input"),
    (["edges", "none.mgm"], "there is no file 'none.mgm'"),
    (["edges", "survey.csv"], "'survey.csv' is not a model file of mixedgm"),
    (["edges", "survey.csv", "-o", "survey.csv"], "is the input"),
    (
        ["edges", "survey.csv", "-o", "x.foo"],
        "the output must be a file name that ends in .csv, .json, .txt, .graphml (or add --format)."
        " Got 'x.foo' instead.",
    ),
    (["edges", "survey.csv", "-o", "x"], "the output must be a file name that ends in"),
    (["check", "."], "the folder '.' has no Parquet files. To fix: give the path of a file"),
    (["plot", "survey.csv", "-o", "x.doc"], "the picture must be a file name that ends in .png"),
    (["plot", "none.mgm", "-o", "x.png"], "there is no file 'none.mgm'"),
    (["predict", "survey.csv", "survey.csv"], "is not a model file"),
    (["demo", "-o", "survey.csv"], "'survey.csv' is a file; give the name of a folder"),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_one_message_and_exit_code_2(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (message,) = [line for line in shown.err.splitlines() if not line.startswith("note: ")]
    assert message.startswith(f"mixedgm {words[0]}: error: ")
    assert says in message
    assert names(here) == ["survey.csv"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["fit", "survey.csv"], "mixedgm fit: error: the following arguments are required: -o"),
        ([*FIT, "--lam", "x"], "mixedgm fit: error: argument --lam: invalid float value: 'x'"),
        ([*FIT, "--weights", "x"], "mixedgm fit: error: argument --weights: invalid choice: 'x'"),
        (["path", "t.csv", "--max-iter", "x"], "mixedgm path: error: argument --max-iter: invalid"),
        (["fitt"], "mixedgm: error: argument COMMAND: invalid choice: 'fitt'"),
        (["edges", "m", "--format", "xls"], "mixedgm edges: error: argument --format: invalid"),
    ],
)
def test_bad_words_are_one_message_and_a_hint(
    capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    message, hint = capsys.readouterr().err.splitlines()
    assert message.startswith(says)
    assert hint.startswith("Try: mixedgm")


def test_bad_input_for_real(here: Path) -> None:
    done = mixedgm_process("fit", "none.csv", "-o", "x.mgm", cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("mixedgm fit: error: there is no file 'none.csv'")
    assert mixedgm("fit", cwd=here).returncode == 2


def bad_table(folder: Path) -> None:
    columns: dict[str, Any] = {name: list(values) for name, values in survey(40).items()}
    columns["luck"][3] = ""
    columns["weight"][5] = "inf"
    columns["same"] = ["x"] * 40
    columns["stage"] = [k % 5 for k in range(40)]
    write_csv(folder / "bad.csv", columns)


def test_all_findings_come_at_once_and_speak_of_options(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad_table(here)
    (here / "x.mgm").write_bytes(b"an older model")
    assert main(["fit", "bad.csv", "-o", "x.mgm"]) == 2
    message = capsys.readouterr().err
    for name in ("luck", "weight", "same"):
        assert f"column '{name}'" in message
    assert "--missing drop" in message
    assert 'missing="drop"' not in message
    assert (here / "x.mgm").read_bytes() == b"an older model"
    assert names(here) == ["bad.csv", "survey.csv", "x.mgm"]


def test_one_kind_for_all_columns_with_few_values(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = {"x": [k * 0.37 % 1 for k in range(40)]}
    columns |= {f"q{k}": [float(j // (k + 1) % 5) for j in range(40)] for k in range(3)}
    write_csv(here / "items.csv", columns)
    assert main(["check", "items.csv"]) == 0
    assert "(in short --types ordinal)" in capsys.readouterr().out
    assert main(["check", "items.csv", "--types", "ordinal"]) == 0
    shown = capsys.readouterr().out
    assert shown.count(" ordinal ") == 3
    assert "nothing wrong" in shown
    for beside in (["--types", "ordinal,x=hurdle"], ["--types", "ordinal", "--largest", "q0=9"]):
        assert main(["check", "items.csv", *beside]) == 2
        assert "--types NAME=ordinal,..." in capsys.readouterr().err


def test_gaps_that_another_column_decides_about(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns: dict[str, Any] = {name: list(values) for name, values in survey(80).items()}
    columns["died"] = ["yes" if k % 2 else "no" for k in range(80)]
    columns["cause"] = [("heart", "lung")[k % 4 == 1] if k % 2 else "" for k in range(80)]
    write_csv(here / "deaths.csv", columns)
    assert main(["check", "deaths.csv", "--missing", "model"]) == 2
    shown = capsys.readouterr().out
    assert "missing in all 40 rows with 'died' = \"no\" and in none of 40 other rows" in shown
    assert "or fit the 40 other rows alone; or --forbid cause:died with --missing model" in shown
    assert main(["check", "deaths.csv", "--missing", "model", "--forbid", "cause:died"]) == 0
    assert "no value there" not in capsys.readouterr().out


def test_check_shows_findings_and_tells_whether_it_can_be_fitted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad_table(here)
    assert main(["check", "bad.csv"]) == 2
    shown = capsys.readouterr()
    assert shown.out.count("\nerror: ") == 3
    assert "warning: column 'stage'" in shown.out
    assert "--types stage=categorical" in shown.out
    assert "3 errors have to be fixed" in shown.err
    words = ["--drop", "weight,same", "--missing", "drop", "--types", "stage=categorical"]
    assert main(["check", "bad.csv", *words]) == 0
    assert "error" not in capsys.readouterr().out


def test_warnings_are_notes_on_standard_error(here: Path) -> None:
    bad_table(here)
    words = ("--drop", "weight,same", "--missing", "drop", "--lam", "0.5")
    done = mixedgm("fit", "bad.csv", "-o", "x.mgm", *words, cwd=here)
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    notes = [line for line in lines if line.startswith("note: column 'stage'")]
    assert len(notes) == 1
    assert notes[0].endswith("silences this warning)")
    assert any(line.startswith("note: ") and "1 row dropped" in line for line in lines)
    assert "Warning" not in done.stderr
    quiet = mixedgm("fit", "bad.csv", "-o", "x.mgm", *words, "--quiet", cwd=here)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_not_converged_is_a_note(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--lam", "0.001", "--tol", "1e-300", "--solver", "proximal-gradient"]
    assert main([*FIT, *words]) == 0
    shown = capsys.readouterr()
    assert "note: at lam = 0.001" in shown.err
    assert "NOT converged" in shown.out


def test_max_iter_stops_the_solver(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FIT, "--lam", "0.001", "--max-iter", "1"]) == 0
    assert "stopped at max_iter" in capsys.readouterr().err


def test_a_foreign_table_is_refused_by_check(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "eu.csv").write_text("a;b;c\n1,5;2,5;x\n1,7;2,9;y\n3,7;1,1;x\n")
    assert main(["check", "eu.csv"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "the file 'eu.csv' looks separated by ';'" in shown.err


def test_check_counts_one_row_and_one_column(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "one.csv").write_text("a\n1.5\n")
    assert main(["check", "one.csv"]) == 2
    assert capsys.readouterr().out.startswith("1 row, 1 column\n")


def test_predict_takes_rows_with_gaps(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FIT, "--lam", "0.2", "--quiet"]) == 0
    columns: dict[str, Any] = {name: list(values) for name, values in survey(20).items()}
    columns["weight"][3] = columns["group"][3] = ""
    write_csv(here / "new.csv", columns)
    assert main(["predict", "x.mgm", "new.csv", "-o", "out.csv"]) == 0
    found = (here / "out.csv").read_text().splitlines()
    assert len(found) == 21
    assert all("" not in line.split(",") for line in found)
    assert main([*FIT, "--lam", "0.2", "--quiet", "--loss", "nodewise"]) == 0
    assert main(["predict", "x.mgm", "new.csv"]) == 2
    message = capsys.readouterr().err
    assert "1 row with gaps, in 'weight' (1), 'group' (1)" in message
    assert message.endswith("or drop these rows, or fill them in first\n")


def test_predict_names_unseen_levels_and_missing_columns(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*FIT, "--lam", "0.2", "--quiet"]) == 0
    columns: dict[str, Any] = {name: list(values) for name, values in survey(20).items()}
    del columns["luck"]
    columns["group"][0] = "z"
    write_csv(here / "new.csv", columns)
    assert main(["predict", "x.mgm", "new.csv"]) == 2
    message = capsys.readouterr().err
    assert "'luck'" in message
    assert "'z'" in message
    assert "--unseen ignore" in message
    columns["luck"] = list(survey(20)["luck"])
    write_csv(here / "new.csv", columns)
    assert main(["predict", "x.mgm", "new.csv", "--unseen", "ignore", "-o", "out.csv"]) == 0
    words = ["--column", "luck", "--unseen", "ignore", "-o", "out.csv"]
    assert main(["predict", "x.mgm", "new.csv", *words]) == 0
    assert main(["impute", "x.mgm", "new.csv", "--unseen", "ignore", "-o", "done.csv"]) == 0
    assert "z" in (here / "done.csv").read_text()
    capsys.readouterr()
    assert main(["predict", "x.mgm", "survey.csv", "--proba"]) == 2
    assert "add --column NAME" in capsys.readouterr().err
    assert main(["predict", "x.mgm", "survey.csv", "--proba", "--column", "luck"]) == 2
    assert "'luck' is continuous" in capsys.readouterr().err
    assert main(["predict", "x.mgm", "survey.csv", "--column", "lucky"]) == 2
    assert "did you mean 'luck'?" in capsys.readouterr().err


def test_a_model_without_edges_says_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FIT, "--lam", "50", "--quiet"]) == 0
    assert main(["edges", "x.mgm", "--format", "csv"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "source,target,kind,strength,sign,partial_correlation,norm\n"
    assert "no edges: at lam = 50" in shown.err
    assert main(["plot", "x.mgm", "-o", "x.png"]) == 0


def test_a_full_disk_is_one_message(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main([*FIT, "--lam", "0.5", "--quiet"]) == 2
    assert capsys.readouterr().err == (
        "mixedgm fit: error: 'x.mgm' cannot be written: No space left on device. "
        "Make room, or choose another folder.\n"
    )
    assert names(here) == ["survey.csv"]


# -- Ctrl-C and pipes --------------------------------------------------------------------------


class ImpatientTerminal(io.StringIO):
    """A terminal whose user presses Ctrl-C when the progress bar shows three values of lam."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if re.search(r"lam:.* 3/\d", text) and "3/" not in self.getvalue():
            super().write(text)
            signal.raise_signal(signal.SIGINT)
        return super().write(text)


def interrupted(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a command until the fourth lam, with a bar that is drawn for each -> its messages."""
    drawn_always = partialmethod(tqdm.__init__, mininterval=0.0)
    monkeypatch.setattr(tqdm, "__init__", drawn_always)
    # A shell starts what runs in the background with Ctrl-C switched off.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with redirect_stderr(ImpatientTerminal()) as terminal:
            assert main(words) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    return terminal.getvalue()


def test_an_interrupted_fit_writes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = interrupted(FIT, monkeypatch)
    assert capsys.readouterr().out == ""
    assert messages.splitlines()[-1] == "mixedgm fit: interrupted"
    assert names(here) == ["survey.csv"]


def test_an_interrupted_path_keeps_what_is_solved(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = interrupted(["path", "survey.csv", "--format", "csv"], monkeypatch)
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert "note: interrupted: the path ends at lam" in messages


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_for_real(here: Path, signum: int, code: int) -> None:
    rng = np.random.default_rng(0)
    wide = {f"c{k}": rng.integers(0, 6, 3000).tolist() for k in range(25)}
    write_csv(here / "wide.csv", wide)
    words = ["fit", "wide.csv", "-o", "x.mgm", "--select", "ebic"]
    words += ["--n-lams", "9999", "--lam-min-ratio", "1e-4"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mixedgm", *words],
        cwd=here,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Programs that a shell started in the background ignore Ctrl-C, and so would this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("note: 25 columns with 3 to 10")  # the fit begins
    time.sleep(0.7)
    assert process.poll() is None, "the fit has to last longer for this test"
    process.send_signal(signum)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert out == ""
    assert err.splitlines()[-1] == "mixedgm fit: interrupted"
    assert "Traceback" not in err
    assert names(here) == ["survey.csv", "wide.csv"]


@pytest.mark.skipif(os.name != "posix", reason="pipes")
def test_a_reader_that_goes_away_is_no_error(here: Path) -> None:
    assert main([*FIT, "--lam", "0.1", "--quiet"]) == 0
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "mixedgm", "predict", "x.mgm", "survey.csv"],
        cwd=here,
        env=environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(os.name != "posix", reason="terminals")
def test_progress_is_drawn_for_a_terminal_only(here: Path) -> None:
    import termios

    terminal, its_end = os.openpty()
    termios.tcsetwinsize(its_end, (24, 80))
    done = subprocess.run(
        [sys.executable, "-m", "mixedgm", *FIT, "--n-lams", "40"],
        cwd=here,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=its_end,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    os.close(its_end)
    shown = os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert done.returncode == 0
    assert "lam:" in shown
    assert "/10" in shown  # the first part of the path
    assert "lam:" not in mixedgm(*FIT, "--n-lams", "40", cwd=here).stderr


@pytest.mark.slow
def test_the_first_fit_says_that_it_compiles(here: Path) -> None:
    assert main(["fit", "survey.csv", "-o", "levels.mgm", "--lam", "0.2", "--quiet"]) == 0
    # Numbers alone need few kernels.
    fit = [*FIT, "--lam", "0.2", "--drop", "group,mood"]
    first, second, third = (
        subprocess.run(
            [sys.executable, "-m", "mixedgm", *words],
            cwd=here,
            env={**environment(), "NUMBA_CACHE_DIR": str(here / "cache")},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        for words in (fit, fit, ["query", "levels.mgm", "--mean"])
    )
    assert first.returncode == second.returncode == third.returncode == 0
    assert first.stderr.count("note: compiling numerical kernels, once; about 10 s") == 1
    assert "compiling" not in first.stdout
    assert "compiling" not in second.stderr
    assert "compiling" not in third.stderr  # though it has kernels of its own
