"""Words -> what the real command says and returns, and a small table to try it on."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.support.load import PATIENCE

SRC = Path(__file__).resolve().parents[2] / "src"


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SRC), "MPLBACKEND": "Agg", "COLUMNS": "80"}


def mixedgm(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
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
