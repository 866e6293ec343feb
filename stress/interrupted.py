"""A command and a signal at a random time -> exit code 130 or 143, one line, whole files."""

from __future__ import annotations

import atexit
import os
import random
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stress.campaign import Found
from stress.processes import descendants, orphans, started

_COMMANDS: dict[str, list[str]] = {
    "check": ["check", "table.csv"],
    "fit": ["fit", "table.csv", "-o", "out.mgm"],
    "edges": ["edges", "model.mgm", "-o", "out.json"],
    "plot": ["plot", "model.mgm", "-o", "out.png"],
    "path": ["path", "table.csv", "-o", "out.csv", "--jobs", "2"],
    "select": ["select", "table.csv", "--criterion", "cv", "--checkpoint", "kept", "--resume"],
    "bootstrap": [
        *("bootstrap", "model.mgm", "table.csv", "-o", "out", "--n-boot", "60", "--jobs", "2"),
        *("--checkpoint", "kept", "--resume"),
    ],
    "compare": ["compare", "table.csv", "--groups", "coin", "-o", "out", "--lam", "0.15",
                "--permutations", "40", "--jobs", "2", "--quiet"],
}  # fmt: skip
_START = 0.4
"""Seconds in which Python may not be at our code yet, and ends in its own way."""
_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def interrupted(rng: random.Random, folder: Path) -> Found:
    name = rng.choice([*_COMMANDS, "bootstrap", "compare", "select"])
    signum, group = rng.choice([signal.SIGINT, signal.SIGTERM]), rng.random() < 0.5
    found = Found(f"{name}: {signum.name}{' to all' if group else ''}")
    place = folder / "place"
    shutil.copytree(_prepared(), place)
    before = {file.name for file in place.iterdir()}
    whole = _undisturbed(name)
    after = rng.uniform(0.0, 1.1 * whole.seconds)
    with started(["-m", "mixedgm", *_COMMANDS[name]], cwd=place) as process:
        time.sleep(after)
        workers = descendants(process.pid)
        if process.poll() is None:
            (os.killpg if group else os.kill)(process.pid, signum)
        sent = time.monotonic()
        out, errors = process.communicate(timeout=90)
        took = time.monotonic() - sent
        left = orphans([*workers, *descendants(process.pid)])
    code = process.returncode
    if left:
        found.findings.append(f"{len(left)} of {len(workers)} workers outlive their parent")
    if code != 0 and took > 20.0:
        found.findings.append(f"it took {took:.1f} s to end")
    names = {file.name for file in place.rglob("*")}
    at_the_end = code in (0, -signum) and out == whole.out and names >= whole.names
    # Python itself is still starting, and answers in its own way.
    too_early = after < _START and (code == -signum or "mixedgm" not in errors)
    if not (at_the_end or too_early):
        _check_end(found, code, signum, errors, after)
    _check_files(found, place, before)
    found.kind += ": finished" if at_the_end else ""
    return found


def _check_end(found: Found, code: int, signum: signal.Signals, errors: str, after: float) -> None:
    where = f"after {after:.2f} s: exit {code}: {errors[-1500:]}"
    if code != _CODES[signum] or "Traceback" in errors or "ignored" in errors:
        found.findings.append(where)
    elif sum("interrupted" in line for line in errors.splitlines()) != 1:
        found.findings.append(f"not one line: {where}")


def _check_files(found: Found, place: Path, before: set[str]) -> None:
    import mixedgm as mg

    for file in place.rglob("*"):
        if file.name.startswith(".") and file.is_file():
            found.findings.append(f"left behind: {file.name}")
        elif file.name not in before and file.suffix == ".mgm":
            mg.load(file)
        elif file.is_file() and file.stat().st_size == 0:
            found.findings.append(f"an empty file: {file.name}")


@cache
def _prepared() -> Path:
    """A folder with a table and its model."""
    import mixedgm as mg
    from stress.jobs import table

    folder = Path(tempfile.mkdtemp(prefix="mixedgm-stress-commands-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    table().to_csv(folder / "table.csv", index=False)
    mg.MixedGraphicalModel(lam=0.12, n_jobs=1).fit(table()).save(folder / "model.mgm")
    return folder


@dataclass(frozen=True)
class _Undisturbed:
    seconds: float
    out: str
    names: set[str]


@cache
def _undisturbed(name: str) -> _Undisturbed:
    """How long the command takes when nobody disturbs it, what it prints and what it leaves."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(_prepared(), folder, dirs_exist_ok=True)
        start = time.monotonic()
        with started(["-m", "mixedgm", *_COMMANDS[name]], cwd=folder) as process:
            out, errors = process.communicate()
        if process.returncode:
            raise RuntimeError(errors)
        names = {file.name for file in Path(folder).rglob("*")}
        return _Undisturbed(time.monotonic() - start, out, names)
