"""Settings -> results kept on disk, tables (CSV) and figures (PNG and SVG): what all share."""

from __future__ import annotations

import argparse
import hashlib
import inspect
import io
import json
import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

import joblib
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from PIL import Image
from tqdm import tqdm

import mixedgm as mg

ROOT = Path(__file__).resolve().parents[1]
T = TypeVar("T")
Settings = Mapping[str, Any]

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, RED, SKY, PURPLE, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#56B4E9",
    "#CC79A7",
    "#000000",
)
STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 110,
    "svg.fonttype": "none",
    "svg.hashsalt": "mixedgm",
}


class Skip(Exception):  # noqa: N818  (nothing went wrong)
    """An experiment cannot run here; the message says why."""


@dataclass
class Run:
    """One call of the command line: how large, from which data, and where results go.

    Parameters
    ----------
    size : {"full", "quick", "toy"}
        As stated in docs/experiments.md; minutes; seconds, for the tests.
    data : Path or None
        Folder with atus_wage.parquet, or that file.
    out : Path
        Folder for figures and tables.
    cache : Path
        Folder in which finished work is kept.
    n_jobs : int
        Processes.
    """

    size: str
    data: Path | None
    out: Path
    cache: Path
    n_jobs: int
    computed: int = field(default=0, init=False)
    work: list[float] = field(default_factory=list, init=False)

    def pick(self, *, full: T, quick: T, toy: T) -> T:
        """What this size asks for."""
        return {"full": full, "quick": quick, "toy": toy}[self.size]

    def survey(self) -> Path | str:
        """The survey that is not bundled; at toy size the wage table may stand in."""
        if self.data is not None:
            file = self.data / "atus_wage.parquet" if self.data.is_dir() else self.data
            if not file.is_file():
                raise SystemExit(f"--data: there is no file {file}")
            return file
        if self.size == "toy":
            return "wage"
        raise Skip("it needs atus_wage.parquet, which is not bundled; name its folder with --data")

    def table(
        self,
        function: Callable[..., Sequence[Settings]],
        settings: Sequence[Settings],
        *,
        n_jobs: int | None = None,
    ) -> pd.DataFrame:
        """Call a function with every setting, in parallel, and return all rows it gave.

        Each finished call is kept in a file of its own, named after the function, its code and the
        setting, so that a second run reads it and an interrupted one goes on where it was.

        Parameters
        ----------
        function : callable
            A module's function.  Setting (as keywords) -> rows, as dictionaries of plain numbers
            and strings.  It must depend on its setting alone.
        settings : sequence of dict
            Plain values; a `Path` counts by name and size of the file.
        n_jobs : int, optional
            Processes, where it should not be all that the run has.

        Returns
        -------
        pandas.DataFrame
            The setting and the result of every row, in the order of the settings.
        """
        files = [self._file(function, each) for each in settings]
        found = {file: _read(file) for file in files}
        left = {f: s for f, s in zip(files, settings, strict=True) if found[f] is None}
        pool = joblib.Parallel(n_jobs=n_jobs or self.n_jobs, return_as="generator_unordered")
        work = pool(joblib.delayed(_work)(function, s, f) for f, s in left.items())
        name = function.__name__
        for file in tqdm(work, total=len(left), desc=name, disable=not left, dynamic_ncols=True):
            found[file] = _read(file)
            self.computed += 1
        rows = []
        for file, setting in zip(files, settings, strict=True):
            kept = found[file]
            assert kept is not None
            self.work.append(kept["seconds"])
            rows += [{**_columns(setting), **row} for row in kept["rows"]]
        return pd.DataFrame(rows)

    def say(self, message: str) -> None:
        """Write a line where the progress bars are."""
        sys.stderr.write(f"{message}\n")

    def _file(self, function: Callable[..., Any], setting: Settings) -> Path:
        plain = {k: _identity(v) if _is_file(v) else v for k, v in setting.items()}
        where = Path(inspect.getsourcefile(function) or "").stem
        parts = [mg.__version__, *_code(function), json.dumps(plain, sort_keys=True)]
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]
        return self.cache / where / f"{function.__name__}-{key}.json"

    def save_table(self, frame: pd.DataFrame, name: str) -> None:
        """Write a CSV file, six digits per number."""
        self.out.mkdir(parents=True, exist_ok=True)
        frame.to_csv(self.out / f"{name}.csv", index=False, float_format="%.6g")

    def save_figure(self, figure: Figure, name: str) -> None:
        """Write a PNG and an SVG file, the same bytes for the same figure."""
        self.out.mkdir(parents=True, exist_ok=True)
        picture = io.BytesIO()
        figure.savefig(picture, format="png")
        # A palette is enough for lines, and a third of the size.
        few = Image.open(picture).convert("RGB").quantize(128)
        few.save(self.out / f"{name}.png", optimize=True)
        figure.savefig(self.out / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


def _is_file(value: object) -> bool:
    return isinstance(value, Path)


def _columns(setting: Settings) -> dict[str, Any]:
    """What of a setting goes into the table: no lists, and of a file its name."""
    plain = {k: v.stem if _is_file(v) else v for k, v in setting.items()}
    return {k: v for k, v in plain.items() if not isinstance(v, list)}


def _identity(file: Path) -> str:
    return f"{file.name}, {file.stat().st_size} bytes"


def _code(function: Callable[..., Any]) -> list[str]:
    """The text of a function, of the experiments' own that it calls, and the constants in them.

    A changed constant asks for new results; a changed colour of a figure does not.
    """
    function = inspect.unwrap(function)
    parts = [inspect.getsource(function)]
    for name in sorted(_names(function.__code__)):
        value = function.__globals__.get(name)
        own = inspect.unwrap(value) if callable(value) else None
        if inspect.isfunction(own) and own is not function:
            if Path(own.__code__.co_filename).parent == Path(__file__).parent:
                parts += _code(own)
        elif name.isupper():
            parts.append(f"{name} = {value!r}")
    return parts


def _names(code: CodeType) -> set[str]:
    """All names in a function, those in its comprehensions included."""
    inner = [_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return set(code.co_names).union(*inner)


def _work(function: Callable[..., Any], setting: Settings, file: Path) -> Path:
    """Call the function and keep what it returns, completely or not at all."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        # A hundred rows of a survey need not have every level, and half a row stands for one.
        warnings.simplefilter("ignore", mg.TableWarning)
        rows = function(**setting)
    kept = {"seconds": time.perf_counter() - begin, "rows": rows}
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump(kept, stream, default=lambda number: number.item())
    os.replace(temporary, file)
    return file


def _read(file: Path) -> dict[str, Any] | None:
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) else None


def wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval of a share of n trials, which does not shrink to nothing at 0 and 1.

    >>> [round(end, 3) for end in wilson(1.0, 100)]
    [0.963, 1.0]
    """
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half))


# -- command line ----------------------------------------------------------------------------------


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that every experiment takes."""
    options = argparse.ArgumentParser(description=description)
    size = options.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="fewer trials and points: minutes")
    size.add_argument("--toy", action="store_true", help="as small as it gets: for the tests")
    options.add_argument("--data", type=Path, help="folder with atus_wage.parquet")
    options.add_argument("--out", type=Path, help="folder for figures and tables")
    options.add_argument(
        "--cache", type=Path, default=ROOT / "experiments" / ".cache", help="folder of results"
    )
    options.add_argument("--n-jobs", type=int, default=-1, help="processes; all cores by default")
    return options


def run_of(chosen: argparse.Namespace) -> Run:
    """Only a full run writes to the documentation by itself; others go to a folder beside it."""
    size = "toy" if chosen.toy else "quick" if chosen.quick else "full"
    home = ROOT / "docs" / "experiments"
    out = chosen.out or (home if size == "full" else home / size)
    return Run(size, chosen.data, out, chosen.cache / size, chosen.n_jobs)


def perform(experiment: Callable[[Run], None], run: Run, name: str) -> dict[str, Any] | None:
    """Run one experiment; return what it cost, or None where it was skipped."""
    run.computed, run.work = 0, []
    begin = time.perf_counter()
    try:
        with plt.rc_context(STYLE):
            experiment(run)
    except Skip as reason:
        run.say(f"{name}: skipped: {reason}")
        return None
    finally:
        seconds = time.perf_counter() - begin
        spent = _spend(run, name, seconds)
    run.say(f"{name}: {seconds:.0f} s, {run.computed} of {len(run.work)} calls computed")
    return {"experiment": name, "wall_seconds": round(spent, 1), "calls": len(run.work)}


def _spend(run: Run, name: str, seconds: float) -> float:
    """Add the time of this run to that of earlier ones that it goes on from; drawing is free."""
    file = run.cache / name / "spent.json"
    before = json.loads(file.read_text()) if file.exists() else 0.0
    if file.exists() and not run.computed:
        return float(before)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(before + seconds))
    return float(before + seconds)


def write_times(run: Run, done: Sequence[dict[str, Any]]) -> None:
    """Wall times of all experiments, those of earlier runs included."""
    file = run.out / "times.csv"
    before = pd.read_csv(file).to_dict("records") if file.exists() else []
    times = {row["experiment"]: row for row in [*before, *done]}
    run.save_table(pd.DataFrame(list(times.values())), "times")


def start(experiment: Callable[[Run], None], description: str | None) -> None:
    """Command line of a single experiment."""
    name = Path(inspect.getsourcefile(experiment) or "").stem
    perform(experiment, run_of(parser(description).parse_args()), name)
