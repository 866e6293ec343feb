"""Words -> what the real command says and returns, and a small table to try it on."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np

from tests.support.load import PATIENCE

SRC = Path(__file__).resolve().parents[2] / "src"


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SRC), "MPLBACKEND": "Agg", "COLUMNS": "80"}


def mixedgm_process(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the real command, in a process of its own: seconds, for what only a process shows."""
    done = subprocess.run(
        [sys.executable, "-m", "mixedgm", *map(str, words)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def mixedgm(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, and return what a process of its own would."""
    from mixedgm.cli import main

    texts = list(map(str, words))
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.dict(os.environ, COLUMNS="80"),
    ):
        try:
            code: object = main(texts)
        except SystemExit as ended:
            code = ended.code or 0
    printed, errors = (_text(stream) for stream in (out, err))
    return subprocess.CompletedProcess(texts, code, printed, errors)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined]


def command_names() -> list[str]:
    """The commands that the help lists."""
    done = mixedgm("--help", cwd=SRC)
    return re.findall(r"^    (\w+)\b", done.stdout, re.MULTILINE)


def write_csv(file: Path, columns: dict[str, Sequence[object]]) -> Path:
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return file


def survey(n: int = 300) -> dict[str, Sequence[object]]:
    """`height` depends on `group` and `mood`, `weight` on `height`; `luck` on nothing."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, n)
    mood = rng.integers(0, 3, n)
    height = rng.normal(size=n) + 1.5 * group + mood
    return {
        "height": height.round(6).tolist(),
        "weight": (height + rng.normal(size=n)).round(6).tolist(),
        "group": np.array(["a", "b"])[group].tolist(),
        "mood": np.array(["good", "größer ☃", "so, so"])[mood].tolist(),
        "luck": rng.normal(size=n).round(6).tolist(),
    }
